"""Which charts a page has: recall and speed, latency, clients, builds, sizes, tiers, inserts."""

from __future__ import annotations

from collections.abc import Sequence

from quiver_bench import charts, like_edb
from quiver_bench.like import dataset_title
from quiver_bench.records import OK
from quiver_bench.views import Row, at_recall, groups, parameters, searches_of, select


def of(rows: Sequence[Row]) -> list[str]:
    """All charts that these rows give."""
    found: list[str] = []
    engines_of = groups([r for r in rows if r.adapter != "null"], lambda r: r.engine)
    order = {engine: number for number, engine in enumerate(engines_of)}
    colors = order | {r.title: order[r.engine] for some in engines_of.values() for r in some}
    searches = [r for r in searches_of(rows) if r.status == OK and r.adapter != "null"]
    for title, same in groups(searches, lambda r: f"{dataset_title(r)}, {r.host}").items():
        single = [r for r in same if r.clients == 1]
        engines = groups(single, lambda r: r.engine)
        points = {e: [(r.get("recall"), r.get("qps")) for r in some] for e, some in engines.items()}
        if points:
            found.append(charts.recall_qps(f"Recall and speed: {title}", points, colors))
        near = {e: at_recall(some, 0.95, "nearest") for e, some in engines.items()}
        latencies = {
            f"{e} ({parameters(r.query) or 'exact'}), recall {r.get('recall'):.3f}": (r.get("p50_ms"), r.get("p95_ms"), r.get("p99_ms"))
            for e, r in near.items() if r is not None
        }  # fmt: skip
        if latencies:
            found.append(
                charts.ranges(f"Latency at the recall nearest 0.95: {title}", "ms", latencies)
            )
        scaling: dict[str, list[tuple[float, float]]] = {}
        for engine, some in groups(same, lambda r: r.engine).items():
            chosen = near.get(engine)
            line = [
                (float(r.clients), r.get("qps_wall"))
                for r in some
                if chosen and r.query == chosen.query and r.build == chosen.build
            ]
            if len(line) > 1:
                scaling[engine] = sorted(line)
        if scaling:
            ticks = sorted({c for line in scaling.values() for c, _ in line})
            found.append(
                charts.lines(
                    f"Clients, at the recall nearest 0.95: {title}",
                    "clients",
                    "queries a second",
                    scaling,
                    colors,
                    True,
                    True,
                    ticks,
                )
            )
    for title, same in groups(select(rows, workload="build", status=OK), dataset_title).items():
        built = [r for r in same if r.get("index_bytes") > 0]
        if built:
            found.append(
                charts.bars(
                    f"Building: {title}",
                    "seconds",
                    {r.title: r.get("build_s") for r in built},
                )
            )
            found.append(
                charts.bars(
                    f"Index size: {title}",
                    "MB",
                    {r.title: r.get("index_bytes") / 2**20 for r in built},
                )
            )
    tiered = [r for r in rows if r.tier and r.status == OK]
    for clients in sorted({r.clients for r in tiered}):
        lines: dict[str, list[tuple[float, float]]] = {}
        for title, some in groups(
            [r for r in tiered if r.clients == clients], lambda r: r.title
        ).items():
            chosen_rows = like_edb.operating(some, "recall", like_edb.TARGET)
            lines[title] = sorted(
                (float(like_edb.tier_of(r)[1]), r.get("qps")) for r in chosen_rows
            )
        ticks = sorted({x for line in lines.values() for x, _ in line})
        found.append(charts.lines(f"Memory tiers, {clients} client{'s' * (clients > 1)}, recall nearest 0.95",
                                  "memory of server and file cache, MB", "queries a second", lines, colors, True, True, ticks))  # fmt: skip
    loads = [r for r in rows if r.workload == "ingest" and r.status == OK]
    if loads:
        series = {
            t: sorted((float(r.clients), r.get("tps")) for r in some)
            for t, some in groups(loads, lambda r: r.title).items()
        }
        ticks = sorted({x for line in series.values() for x, _ in line})
        found.append(
            charts.lines(
                "Inserts under an index",
                "clients",
                "rows a second",
                series,
                colors,
                True,
                True,
                ticks,
            )
        )
    return found
