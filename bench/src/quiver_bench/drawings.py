"""Which charts a page has: recall and speed, latency, clients, cost, conditions, memory, builds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from quiver_bench import charts, like_edb
from quiver_bench.charts import Chart, Dot
from quiver_bench.like import dataset_title
from quiver_bench.records import OK
from quiver_bench.tables import rate
from quiver_bench.views import Row, at_recall, groups, parameters, searches_of, select

SAID = 5  # engines that the words for a chart name
TARGET = 0.95  # of recall, where a chart shows one point of an engine
Colors = Mapping[str, int]


def of(rows: Sequence[Row]) -> list[Chart]:
    """All charts that these rows give."""
    rows = brief_titles([r for r in rows if r.adapter != "null"])
    order = {engine: number for number, engine in enumerate(groups(rows, lambda r: r.engine))}
    colors = order | {r.title: order[r.engine] for r in rows}
    good = [r for r in rows if r.status == OK]
    found: list[Chart] = []
    for title, same in groups(searches_of(good), dataset_title).items():
        found += _searches(title, same, colors)
    found += conditions(good, colors)
    found += _tiers([r for r in good if r.tier], colors)
    for title, same in groups(select(good, workload="build"), dataset_title).items():
        found += _builds(title, [r for r in same if r.get("index_bytes") > 0], colors)
    for title, loads in groups(select(good, workload="ingest"), dataset_title).items():
        series = {
            t: sorted((Dot(float(r.clients), r.get("tps"), f"{rate(r.get('tps'))} rows/s")
                       for r in some), key=lambda d: d.x)
            for t, some in groups(loads, lambda r: r.title).items()
        }  # fmt: skip
        alt = _best("Rows inserted a second by clients", series)
        found.append(charts.lines(f"Inserts under an index: {title}", "clients", "rows a second", series,
                                  colors, alt))  # fmt: skip
    return found


def brief_titles(rows: Sequence[Row]) -> list[Row]:
    """An engine that has one build is called by its name alone."""
    builds: dict[str, set[str]] = {}
    for r in rows:
        builds.setdefault(r.engine, set()).add(r.title)
    return [replace(r, build={}) if len(builds[r.engine]) == 1 else r for r in rows]


def _best(what: str, series: charts.Series) -> str:
    """For those who do not see the chart: what it shows, and who is ahead."""
    ends = {name: max(d.y for d in dots) for name, dots in series.items() if dots}
    return f"{what}. The most have, in order: {_some(sorted(ends, key=lambda n: -ends[n]))}"


def _some(texts: Sequence[str]) -> str:
    """The first of them, and how many others there are; without parameters where that is clear."""
    short = [text.split(" (")[0] for text in texts]
    said = short if len({*short}) == len(texts) else texts
    rest = len(texts) - SAID
    return ", ".join(said[:SAID]) + (f", and {rest} others" if rest > 0 else "")


def missed(rows: Sequence[Row], target: float) -> str:
    """A sentence on the engines that did not reach the recall of a chart."""
    names = [
        engine for engine, some in groups(rows, lambda r: r.engine).items()
        if at_recall(some, target, "best") is None
    ]  # fmt: skip
    return f" Not reached by: {', '.join(names)}." if names else ""


def recall_and_speed(title: str, single: Sequence[Row], colors: Colors) -> Chart:
    """single: searches of one client that were measured."""
    engines = groups(single, lambda r: r.engine)
    points = {
        e: [
            Dot(r.get("recall"), r.get("qps"),
                f"{parameters(r.query) or 'exact'}, recall {r.get('recall'):.4f}, {rate(r.get('qps'))} QPS")
            for r in some
        ]
        for e, some in engines.items()
    }  # fmt: skip
    chosen = {e: at_recall(some, TARGET, "best") for e, some in engines.items()}
    best = sorted((r for r in chosen.values() if r), key=lambda r: -r.get("qps"))
    alt = (
        f"Recall and queries a second of one client. Fastest at a recall of at least"
        f" {TARGET}, in order: " + _some([r.engine for r in best])
    )
    caption = (
        "Up and to the right is better. Every measured point is shown. The line joins the points"
        " that no other point of the engine beats."
    )
    return charts.recall_qps(f"Recall and speed: {title}", points, colors, alt, caption)


def _searches(title: str, same: Sequence[Row], colors: Colors) -> list[Chart]:
    found: list[Chart] = []
    single = [r for r in same if r.clients == 1]
    if not single:
        return found
    found.append(recall_and_speed(title, single, colors))
    engines = groups(single, lambda r: r.engine)
    chosen = {e: r for e, some in engines.items() if (r := at_recall(some, TARGET, "best"))}
    none = missed(single, TARGET)
    latencies = {
        f"{e} ({parameters(r.query) or 'exact'}), recall {r.get('recall'):.3f}":
        (e, r.get("p50_ms"), r.get("p95_ms"), r.get("p99_ms"))
        for e, r in chosen.items()
    }  # fmt: skip
    if latencies:
        quick = sorted(latencies.values(), key=lambda value: value[1])
        alt = "Latency of one client, p50 to p99. The lowest p50 have: " + _some(
            [engine for engine, *_ in quick]
        )
        found.append(
            charts.ranges(
                f"Latency at a recall of at least {TARGET}: {title}", "ms", latencies, colors, alt,
                f"Shape: p50. Tick: p95. End: p99. The fastest search of each engine that"
                f" reaches the recall.{none}",
            )
        )  # fmt: skip
    scaling: dict[str, list[Dot]] = {}
    for engine, some in groups(same, lambda r: r.engine).items():
        one = chosen.get(engine)
        line = [
            Dot(float(r.clients), r.get("qps_wall"), f"{r.clients} clients, {rate(r.get('qps_wall'))} QPS")
            for r in some
            if one and r.query == one.query and r.build == one.build
        ]  # fmt: skip
        if len({d.x for d in line}) > 1:
            scaling[engine] = sorted(line, key=lambda d: d.x)
    if scaling:
        alt = _best("Queries a second by clients", scaling)
        found.append(
            charts.lines(f"Clients, at a recall of at least {TARGET}: {title}", "clients",
                         "queries a second", scaling, colors, alt,
                         f"The searches of the picture before, by more clients.{none}")
        )  # fmt: skip
    return found


def _dot(row: Row, x: float) -> Dot:
    says = f"p50 {row.get('p50_ms'):.2f} ms, recall {row.get('recall'):.3f}"
    return Dot(x, row.get("p50_ms"), says, row.get("recall") < TARGET)


HOLLOW = f"Hollow shapes: recall below {TARGET}. Lower is better."


def conditions(rows: Sequence[Row], colors: Colors) -> list[Chart]:
    """Filters: the grid of shares and correlations, and a line a case of the other suites."""
    found: list[Chart] = []
    old = select(rows, workload="filter")
    for title, some in groups(old, dataset_title).items():
        found += _grid(
            f"Conditions: {title}", some, lambda r: str(r.load["correlation"]),
            lambda r: float(str(r.load["selectivity"])), colors, "",
        )  # fmt: skip
    warm = [r for r in select(rows, workload="conditions") if r.load["sessions"] == "warm"]
    for title, some in groups(warm, dataset_title).items():
        found += _grid(
            f"Shares and correlation: {title}", [r for r in some if r.load["suite"] == "grid"],
            lambda r: str(r.load["case"]).split("correlation ")[1],
            lambda r: float(str(r.load["case"]).split(" %")[0]) / 100, colors,
            " Correlation 1: the rows that pass are nearest to the queries; -1: farthest.",
        )  # fmt: skip
        others = [r for r in some if r.load["suite"] != "grid"]
        cases = {
            case: {r.title: Dot(r.get("p50_ms"), 0.0, _dot(r, 0.0).says, r.get("recall") < TARGET)
                   for r in of_case}
            for case, of_case in groups(
                others, lambda r: f"{r.load['suite']}: {r.load['case']}"
            ).items()
        }  # fmt: skip
        if cases:
            first = [min(one, key=lambda name: one[name].x) for one in cases.values()]
            won = sorted({name: first.count(name) for name in first}.items(), key=lambda p: -p[1])
            alt = "Milliseconds (p50) of a search by condition. Most often fastest: " + _some(
                [name for name, _ in won]
            )
            found.append(charts.rows(f"Labels, joins, text and tags: {title}", "ms (p50), warm",
                                     cases, colors, alt, HOLLOW))  # fmt: skip
    return found


def _grid(
    title: str, rows: Sequence[Row], part: Callable[[Row], str], share: Callable[[Row], float],
    colors: Colors, also: str,
) -> list[Chart]:  # fmt: skip
    if not rows:
        return []
    parts: dict[str, dict[str, list[Dot]]] = {}
    for name, some in groups(rows, part).items():
        series = {
            t: sorted((_dot(r, share(r)) for r in own), key=lambda d: d.x)
            for t, own in groups(some, lambda r: r.title).items()
        }
        parts[f"correlation {name}"] = series
    alt = "Milliseconds (p50) of a search by the share of rows that pass. " + ". ".join(
        f"At {name} the slowest points have, in order: "
        + _some(sorted(series, key=lambda t: -max(d.y for d in series[t])))
        for name, series in parts.items()
    )
    return [charts.panels(title, "share that passes", "ms (p50), warm", parts, colors, alt,
                          HOLLOW + also)]  # fmt: skip


EACH_TIER = (
    "Every point is the fastest search that reaches the recall there; without one it is missing."
)


def _tiers(tiered: Sequence[Row], colors: Colors) -> list[Chart]:
    """Less memory, and, where tiers have one memory and several buffers, that curve."""
    found: list[Chart] = []
    for title, of_data in groups(tiered, dataset_title).items():
        for clients in sorted({r.clients for r in of_data}):
            some = [r for r in of_data if r.clients == clients]
            of_clients = f"{clients} client{'s' * (clients > 1)}, recall of at least {TARGET}"
            for memory, series in like_edb.buffer_curves(some, TARGET).items():
                alt = _best(f"Queries a second by shared_buffers, {memory} MB of memory", series)
                found.append(
                    charts.lines(
                        f"shared_buffers at {memory:,} MB of memory, {of_clients}: {title}",
                        "shared_buffers, MB", "queries a second", series, colors, alt,
                        "Server and file cache have the same memory at all points."
                        f" {EACH_TIER}{missed(like_edb.same_memory(some)[memory], TARGET)}",
                    )
                )  # fmt: skip
            series = like_edb.memory_curves(some, TARGET)
            if any(len(dots) > 1 for dots in series.values()):
                alt = _best("Queries a second by memory", series)
                found.append(
                    charts.lines(
                        f"Memory, {of_clients}: {title}", "memory of server and file cache, MB",
                        "queries a second", series, colors, alt,
                        f"The best of the buffers that were tried. {EACH_TIER}"
                        f"{missed(some, TARGET)}",
                    )
                )  # fmt: skip
    return found


def _builds(title: str, built: Sequence[Row], colors: Colors) -> list[Chart]:
    if not built:
        return []
    times = {r.title: r.get("build_s") for r in built}
    sizes = {r.title: r.get("index_bytes") / 2**20 for r in built}

    def alt(what: str, values: Mapping[str, float]) -> str:
        return f"{what}. The least have, in order: {_some(sorted(values, key=lambda n: values[n]))}"

    return [
        charts.bars(
            f"Building: {title}", "seconds", times, colors, alt("Seconds of building", times)
        ),
        charts.bars(f"Index size: {title}", "MB", sizes, colors, alt("Index size in MB", sizes)),
    ]
