"""Tables on the terminal and one HTML page with charts, without anything from elsewhere."""

from __future__ import annotations

import html
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from quiver_bench import charts, drawings, like, like_edb, results, summary
from quiver_bench.errors import ConfigError
from quiver_bench.like import data_title, dataset_title
from quiver_bench.records import (
    FAILED,
    MISSING,
    OK,
    UNSUPPORTED,
    Result,
    disturbed,
    unanswered,
)
from quiver_bench.tables import Table, count, decimal, megabytes, milliseconds, rate, small
from quiver_bench.views import (
    Row,
    all_searches,
    at_recall,
    brief,
    groups,
    parameters,
    rows_of,
    searches_of,
    select,
    why_not,
)

# What a report is made of; suite five has all of it.
NEEDED = {
    "katz": "it needs searches by one client",
    "callaghan": "it needs searches by one client",
    "docarray": "it needs a workload crud, as suites five, laptop and docarray have it",
    "rds": "it needs searches or a workload ingest by several numbers of clients",
    "edb": "it needs searches",
}
CALLAGHAN = (1.0, 0.99, 0.98, 0.97, 0.96, 0.95)
TARGETS = (0.90, 0.95, 0.99)
# A sweep that loses recall, or gains speed, by more than this is marked.
LOST_RECALL, GAINED_SPEED, SPREAD, CEILING = 0.02, 0.10, 0.10, 0.5


@dataclass(frozen=True)
class Options:
    like: str | None = None
    best: bool = False
    round_recall: int | None = None
    targets: tuple[float, ...] = ()
    baseline: str = ""
    format: str = "text"


def _spread(row: Row, name: str) -> str:
    """Half the distance of the extremes, in percent of the median."""
    if row.reps < 2 or not row.get(name):
        return "-"
    return f"{(row.high[name] - row.low[name]) / 2 / row.get(name):.0%}"


def target_table(rows: Sequence[Row], target: float) -> Table:
    """Of every index the fastest search that reaches the target. rows: one client."""
    title = f"{dataset_title(rows[0])}: recall@{rows[0].k} >= {target}, one client"
    table = Table(title, ("index", "search", "recall", "QPS", "+-", "p50 ms", "p95 ms", "p99 ms", "n",
                          "build s", "index MB"))  # fmt: skip
    most = max((r.get("queries") for r in rows if "queries" in r.metrics), default=0.0)
    few: dict[str, None] = {}
    for some in groups(rows, lambda r: r.graph).values():
        row = at_recall(some, target, "best")
        if row is None:
            table.add(some[0].title, why_not(some), *[""] * 9)
            continue
        table.add(
            row.title, parameters(row.query) or "-", f"{row.get('recall'):.4f}", rate(row.get("qps")),
            _spread(row, "qps"), milliseconds(row.get("p50_ms")), milliseconds(row.get("p95_ms")),
            milliseconds(row.get("p99_ms")), count(row.get("queries")),
            _or_dash(row.get("build_s"), lambda v: f"{v:.1f}"),
            _or_dash(row.get("index_bytes"), megabytes),
        )  # fmt: skip
        table.notes += [f"{row.title}: {note}" for note in disturbed(row.metrics)]
        if unanswered(row.metrics) or _fewer(row, most):
            few[row.engine] = None
    if few:
        names = ", ".join(few)
        table.notes.append(f"Recall is that of some of the queries, as time was over: {names}.")
    return table


def _fewer(row: Row, most: float) -> bool:
    """Whether others answered more. Older results do not say how many queries were asked."""
    known = "asked_queries" in row.metrics or bool(row.load.get("seconds"))
    return not known and row.get("queries") < most


def _or_dash(value: float, form: Any) -> str:
    return "-" if math.isnan(value) or value == 0 else str(form(value))


def build_table(rows: Sequence[Row]) -> Table:
    """rows: of one data set."""
    title = f"{dataset_title(rows[0])}: loading and building"
    table = Table(title, ("index", "load s", "build s", "+-", "index MB", "table MB",
                                           "label", "version", "remarks"))  # fmt: skip
    for row in rows:
        if row.status != OK:
            table.add(
                row.title,
                brief(f"{row.status}: {row.reason}"),
                *[""] * 4,
                row.label,
                row.version,
                "",
            )
            continue
        table.add(
            row.title, f"{row.get('load_s'):.1f}", f"{row.get('build_s'):.1f}", _spread(row, "build_s"),
            _or_dash(row.get("index_bytes"), megabytes), _or_dash(row.get("table_bytes"), megabytes),
            row.label or "-", row.version, "; ".join(row.notes),
        )  # fmt: skip
    return table


def points_table(rows: Sequence[Row], ceilings: Mapping[int, float]) -> Table:
    """Every point. ceilings: queries a second of the client alone, by wall time, by clients."""
    table = Table(
        f"{dataset_title(rows[0])}: every search",
        ("index", "search", "clients", "recall", "by ids", "QPS", "+-", "p50 ms", "p95 ms", "p99 ms",
         "n", "of ceiling", "remarks"),
    )  # fmt: skip
    for row in rows:
        if row.status != OK:
            table.add(row.title, parameters(row.query) or "-", str(row.clients), *[""] * 9,
                      f"{row.status}: {row.reason}")  # fmt: skip
            continue
        remarks = list(row.notes)
        share = row.get("qps_wall") / ceilings.get(row.clients, math.nan)
        if share > CEILING and row.adapter != "null":
            remarks.append("near the client's ceiling")
        if row.reps > 1 and row.get("qps") and (
            (row.high["qps"] - row.low["qps"]) / row.get("qps") > SPREAD
        ):  # fmt: skip
            remarks.append("repetitions differ by more than 10 %")
        table.add(
            row.title, parameters(row.query) or "-", str(row.clients), f"{row.get('recall'):.4f}",
            f"{row.get('recall_ids'):.4f}", rate(row.get("qps")), _spread(row, "qps"),
            milliseconds(row.get("p50_ms")), milliseconds(row.get("p95_ms")),
            milliseconds(row.get("p99_ms")), count(row.get("queries")),
            "-" if math.isnan(share) else f"{share:.1%}", "; ".join(remarks),
        )  # fmt: skip
    table.notes += odd_sweeps(rows)
    return table


def cost_table(rows: Sequence[Row]) -> Table | None:
    """What a query costs: processor time of server and client, buffers."""
    some = [r for r in rows if r.status == OK and "client_cpu_ms" in r.metrics
            and r.adapter != "null"]  # fmt: skip
    if not some:
        return None
    table = Table(
        f"{dataset_title(some[0])}: cost of a query",
        ("index", "search", "queries", "clients", "recall", "QPS", "server CPU ms",
         "client CPU ms", "buffers hit", "buffers read", "others' cores"),
    )  # fmt: skip
    for r in some:
        table.add(
            r.title, parameters(r.query) or "-", order_of(r), str(r.clients),
            f"{r.get('recall'):.4f}", rate(r.get("qps")), _known(r, "server_cpu_ms", small),
            _known(r, "client_cpu_ms", small), _known(r, "pages_hit", decimal),
            _known(r, "pages_read", decimal), _known(r, "others_cores", decimal),
        )  # fmt: skip
    table.notes += [
        "processor time of all processes of the server, per query; an engine that lives in this"
        " process has all of it in the client's",
        "zipf: the i-th most popular query with a chance like 1 / i; fresh: no query twice, none"
        " of those of the warm-up; others' cores: what other programs took of the machine",
    ]
    return table


def order_of(row: Row) -> str:
    order = str(row.load.get("order", "shuffled"))
    exponent = row.load.get("zipf", 1.0)
    return f"zipf {exponent}" if order == "zipf" and exponent != 1.0 else order


def _known(row: Row, name: str, form: Callable[[float], str]) -> str:
    """A metric as it is printed; - where nobody counted it."""
    value = row.get(name)
    return "-" if math.isnan(value) else form(value)


def odd_sweeps(rows: Sequence[Row]) -> list[str]:
    """Sweeps of one parameter in which more of it gives less recall or much more speed."""
    found = []
    plain = [r for r in rows if r.clients == 1 and r.status == OK and len(r.query) == 1]
    for some in groups(plain, lambda r: r.graph).values():
        ordered = sorted(some, key=lambda r: float(str(next(iter(r.query.values())))))
        for before, after in itertools.pairwise(ordered):
            step = f"{before.title}: from {parameters(before.query)} to {parameters(after.query)}"
            if after.get("recall") < before.get("recall") - LOST_RECALL:
                found.append(f"{step} recall falls to {after.get('recall'):.3f}")
            if after.get("qps") > before.get("qps") * (1 + GAINED_SPEED):
                found.append(f"{step} QPS rises to {after.get('qps'):,.0f}")
    return found


SUITES = {
    "grid": "Shares and correlation, as Lucene's grid",
    "labels": "Labels and ranges, as FANNBench",
    "joined": "Two tables joined, as MoReVec",
    "text": "Words of a text (GIN), as ParadeDB's harness",
    "tags": "Tags of a large vocabulary, as YFCC-10M",
}


def conditions_tables(rows: Sequence[Row]) -> list[Table]:
    """The filter suites: a table each, warm and cold sessions side by side."""
    found = []
    some = [r for r in select(rows, workload="conditions") if r.adapter != "null"]
    for title, of_data in groups(some, dataset_title).items():
        for suite, of_suite in groups(of_data, lambda r: str(r.load["suite"])).items():
            table = Table(
                f"{title}: {SUITES[suite]}",
                ("case", "index", "rows pass", "near pass", "n", "recall", "warm ms", "cold ms",
                 "pages", "cold pages", "rows read", "short", "remarks"),
            )  # fmt: skip
            for case, of_case in groups(of_suite, lambda r: str(r.load["case"])).items():
                for one in groups(of_case, lambda r: r.title).values():
                    table.add(case, *_conditional(one))
            table.notes += CONDITIONS_NOTES
            found.append(table)
    return found


CONDITIONS_NOTES = (
    "The columns are made for these vectors, from a seed (bench/README.md).",
    "near pass: the share of the k nearest rows of all that pass.",
    "n: queries that were answered warm, in the time that the suite allows.",
    "warm, cold: p50 of one client; cold is a session for each query, without connecting.",
    "pages: buffers of a search, hit or read, by EXPLAIN; cold pages include planning.",
    "rows read: of tables, by EXPLAIN.",
)


def _conditional(rows: Sequence[Row]) -> tuple[str, ...]:
    """The cells of an index and case."""
    by = {str(r.load["sessions"]): r for r in rows}
    warm = by.get("warm", rows[0])
    cold = by.get("cold")
    if warm.status != OK:
        return (warm.title, *[""] * 10, f"{warm.status}: {warm.reason}")
    cold_ms = "-" if cold is None or cold.status != OK else milliseconds(cold.get("p50_ms"))
    pages = warm.get("pages_hit") + warm.get("pages_read")
    cold_pages = math.nan
    if cold is not None and cold.status == OK:
        cold_pages = sum(cold.get(f"pages_{kind}") for kind in ("hit", "read", "planning"))
    remarks = _plans_first(warm.notes)
    if cold is not None:
        said = (*unanswered(cold.metrics), *disturbed(cold.metrics))
        remarks += [f"cold: {note}" for note in said]
    if cold is not None and cold.status == FAILED:
        remarks.append(f"cold: {cold.status}: {cold.reason}")
    return (
        warm.title, f"{warm.get('pass_share'):.2%}", f"{warm.get('near_share'):.1%}",
        count(warm.get("queries")), f"{warm.get('recall'):.4f}", milliseconds(warm.get("p50_ms")), cold_ms,
        _or_dash(pages, count), _or_dash(cold_pages, count), _or_dash(warm.get("rows"), count),
        count(warm.get("short_results")), "; ".join(remarks),
    )  # fmt: skip


def _plans_first(notes: Sequence[str]) -> list[str]:
    """Remarks, beginning with those on plans."""
    return sorted(notes, key=lambda note: not note.startswith("plan of "))


def other_tables(rows: Sequence[Row]) -> list[Table]:
    """What the workloads beside plain searches gave. rows: of one data set."""
    found: list[Table] = []
    some = [r for r in select(rows, workload="filter") if r.adapter != "null"]
    if some:
        table = Table("Searches with a condition", ("index", "search", "rows pass", "correlation", "recall",
                                                   "QPS", "p99 ms", "short answers", "remarks"))  # fmt: skip
        for r in some:
            keys = (r.title, parameters(r.query) or "-", f"{float(str(r.load['selectivity'])):.1%}",
                    str(r.load["correlation"]))  # fmt: skip
            if r.status != OK:
                table.add(*keys, *[""] * 4, f"{r.status}: {r.reason}")
            else:
                table.add(*keys, f"{r.get('recall'):.4f}", rate(r.get("qps")),
                          milliseconds(r.get("p99_ms")), count(r.get("short_results")),
                          "; ".join(_plans_first(r.notes)))  # fmt: skip
        found.append(table)
    for kind, title in (
        ("mixed", "Searches while rows are replaced"),
        ("churn", "After replacing rows"),
    ):
        some = sorted(
            select(rows, workload=kind), key=lambda r: (r.engine, int(str(r.load.get("round", 0))))
        )
        if not some:
            continue
        first = "readers/writers" if kind == "mixed" else "round"
        table = Table(
            title, ("index", first, "recall", "QPS", "p99 ms", "replaced rows/s", "remarks")
        )
        for r in some:
            key = (
                f"{r.clients}/{r.load.get('writers')}"
                if kind == "mixed"
                else str(r.load.get("round"))
            )
            if r.status != OK:
                table.add(r.title, key, *[""] * 4, f"{r.status}: {r.reason}")
            else:
                table.add(r.title, key, f"{r.get('recall'):.4f}", rate(r.get("qps")),
                          milliseconds(r.get("p99_ms")), _or_dash(r.get("tps"), rate), "; ".join(r.notes))  # fmt: skip
        found.append(table)
    some = [r for r in rows if r.tier or r.load.get("rate")]
    if some:
        table = Table("Memory tiers and fixed rates", ("index", "search", "clients", "tier MB", "rate",
                                                      "n", "recall", "QPS", "p50 ms", "p99 ms", "read MB", "remarks"))  # fmt: skip
        for r in some:
            about = (
                r.title,
                parameters(r.query) or "-",
                str(r.clients),
                r.tier or "-",
                str(r.load.get("rate") or "-"),
            )
            if r.status != OK:
                table.add(*about, *[""] * 6, f"{r.status}: {r.reason}")
            else:
                table.add(*about, count(r.get("queries")), f"{r.get('recall'):.4f}", rate(r.get("qps")), milliseconds(r.get("p50_ms")),
                          milliseconds(r.get("p99_ms")), megabytes(r.get("read_bytes")).replace("nan", "?"), "; ".join(r.notes))  # fmt: skip
        found.append(table)
    for table in found:
        table.title = f"{dataset_title(rows[0])}: {table.title}"
    return found


def _fact(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {one}" for name, one in value.items())
    if isinstance(value, list):
        return ", ".join(f"{one:.2f}" if isinstance(one, float) else str(one) for one in value)
    return str(value) or "-"


def environment_table(facts: Mapping[str, Mapping[str, Any]]) -> Table:
    table = Table("What it ran on", ("fact", *facts))
    names = dict.fromkeys(name for one in facts.values() for name in one)
    for name in names:
        if name not in ("schema", "kind", "id", "report"):
            table.add(name, *(_fact(one.get(name, "")) for one in facts.values()))
    return table


def settings_table(found: Sequence[Result]) -> Table:
    """Settings as the engines say they are."""
    table = Table("Settings read back", ("engine", "settings"))
    seen = {}
    for result in found:
        if result.settings:
            seen[result.point.engine] = ", ".join(f"{k}={v}" for k, v in result.settings.items())
    for engine, text in seen.items():
        table.add(engine, text)
    return table


def unmeasured_table(rows: Sequence[Row]) -> Table | None:
    """Every point without numbers, by engine and whole reason: failures first."""
    table = Table("What has no numbers, and why", ("engine", "status", "points", "of", "reason"))
    for status in (FAILED, MISSING, UNSUPPORTED):
        bad = [row for row in rows if row.status == status]
        for some in groups(bad, lambda r: f"{r.host} {r.engine} {r.reason}").values():
            kinds = ", ".join(dict.fromkeys(row.workload for row in some))
            table.add(some[0].engine, status, count(len(some)), kinds, some[0].reason)
    return table if table.rows else None


def default(rows: Sequence[Row], targets: Sequence[float]) -> list[Table]:
    found = []
    searches = searches_of(rows)
    for same in groups(searches, dataset_title).values():
        single = [r for r in same if r.clients == 1 and r.adapter != "null"]
        ceilings = {
            r.clients: r.get("qps_wall") for r in same if r.adapter == "null" and r.status == OK
        }
        found += [target_table(single, target) for target in targets] if single else []
        found.append(points_table(same, ceilings))
    for same in groups(all_searches(rows), dataset_title).values():
        cost = cost_table(same)
        found += [cost] if cost else []
    built = [r for r in select(rows, workload="build") if r.adapter != "null"]
    found = [*(build_table(some) for some in groups(built, dataset_title).values()), *found]
    loads = like.rds(select(rows, workload="ingest"), "")
    found += [table for table in loads if table.title.startswith("Inserts under")]
    found += conditions_tables(rows)
    for same in groups(rows, dataset_title).values():
        found += other_tables(same)
    found += like.docarray([r for r in rows if r.adapter != "null"])
    lost = unmeasured_table(rows)
    return [*found, lost] if lost else found


STYLE = """
:root { color-scheme: light dark; --ink: #1c1c1c; --page: #fff; --line: #d9d9d9; --head: #888;
        --soft: #555; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e4e4; --page: #16181b; --line: #3a3d42; --head: #8a8d92; --soft: #a8abb0; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page);
       margin: 2rem auto; max-width: 84rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.25rem; margin-top: 2.5rem; }
h3 { font-size: 1rem; margin: 2rem 0 .5rem; }
.scroll { overflow-x: auto; } td:first-child { white-space: nowrap; }
td.remarks { min-width: 11rem; }
table { border-collapse: collapse; font-size: .85rem; width: max-content; } td { max-width: 24rem; }
th, td { padding: .22rem .45rem; border-bottom: 1px solid var(--line); text-align: left;
         vertical-align: top; }
th { border-bottom: 2px solid var(--head); }
.n { text-align: right; font-variant-numeric: tabular-nums; }
tr.won td { font-weight: 600; } .note, figcaption { color: var(--soft); font-size: .85rem; margin: .3rem 0; }
.summary li { margin: .3rem 0; } .machine { font-weight: 600; }
figure { margin: 1.5rem 0; max-width: 52rem; }
svg.chart { width: 100%; min-width: 34rem; height: auto; }
@media print {
  body { margin: 0; max-width: none; font-size: 10pt; } .scroll { overflow: visible; }
  figure, tr { break-inside: avoid; } h2, h3 { break-after: avoid; }
  table { font-size: 7pt; width: auto; } th, td { padding: .1rem .2rem; } td:first-child { white-space: normal; }
  svg.chart { min-width: 0; max-width: 17cm; } }
"""


def page(title: str, machine: str, told: Mapping[str, Sequence[str]], lead: Sequence[str],
         drawn: Sequence[charts.Chart], tables: Sequence[Table]) -> str:  # fmt: skip
    """machine: how busy it was. told: the summary. lead: how numbers are to be read."""
    parts = ["<!doctype html>", '<html lang="en"><head><meta charset="utf-8">']
    parts.append('<meta name="viewport" content="width=device-width, initial-scale=1">')
    parts.append(f"<title>{html.escape(title)}</title><style>{STYLE}</style></head><body><main>")
    parts.append(f"<h1>{html.escape(title)}</h1>")
    parts.append(f'<p class="machine">{html.escape(machine)}</p>')
    parts.append("<h2>Summary</h2>")
    for heading, some in told.items():
        items = "".join(f"<li>{html.escape(line)}</li>" for line in some)
        parts.append(f'<h3>{html.escape(heading)}</h3><ul class="summary">{items}</ul>')
    parts += [f'<p class="note">{html.escape(line)}</p>' for line in lead]
    if drawn:
        parts += ["<h2>Charts</h2>", *(chart.html() for chart in drawn)]
    parts += ["<h2>Tables</h2>", *(table.html() for table in tables), "</main></body></html>"]
    return "\n".join(parts)


def baseline_of(rows: Sequence[Row]) -> str:
    """The engine that others are compared with where nobody says which."""
    return next((r.engine for r in rows if r.engine.startswith("pgvector")), rows[0].engine)


def like_tables(rows: Sequence[Row], options: Options) -> list[Table]:
    baseline = options.baseline or baseline_of(rows)
    if options.like == "katz":
        return like.katz(rows, options.targets or (0.99, 0.95, 0.90))
    if options.like == "callaghan":
        return like.callaghan(rows, options.targets or CALLAGHAN, baseline, options.round_recall)
    if options.like == "docarray":
        return like.docarray(rows)
    return like.rds(rows, baseline) if options.like == "rds" else like_edb.edb(rows, baseline)


def asked(options: Options, facts: Mapping[str, Mapping[str, Any]], rows: Sequence[Row]) -> Options:
    """Options with what the suite says where the command line says nothing.

    Its targets are those of its own tables: of no report, or of the one that it is named after.
    """
    last: Mapping[str, Any] = [{}, *facts.values()][-1]
    said = last.get("report", {})
    own = options.like in (None, last.get("suite"))
    baseline = str(said.get("baseline", ""))
    return replace(
        options,
        targets=options.targets or (tuple(said.get("targets", ())) if own else ()),
        baseline=options.baseline or (baseline if any(r.engine == baseline for r in rows) else ""),
    )


def make(folders: Sequence[Path], options: Options, out: Path) -> str:
    """Write the page; answers the tables as text."""
    found, facts = results.read_all(folders)
    if not found:
        raise ConfigError("there are no results yet")
    rows = rows_of(found, options.best)
    options = asked(options, facts, rows)
    statistic = "the best" if options.best else "the median"
    reps = max(row.reps for row in rows)
    data = dict.fromkeys(
        f"{data_title(r)}: {r.metric}, {r.dimensions} dimensions" for r in rows if r.metric
    )
    lead = [
        f"Made {datetime.now(UTC):%Y-%m-%d %H:%M} UTC from {', '.join(f.name for f in folders)}:"
        f" {len(found)} measurements; {statistic} of up to {reps} repetitions, interleaved between"
        " engines. +- is half the distance of the extremes.",
        "recall: rows as near as the true k-th count (ties by distance)"
        + {"katz": "; here within 1e-3, as ann-benchmarks counts", "callaghan": "; here within 1e-3,"
           " as ann-benchmarks counts", "docarray": "; here by row numbers", "edb": "; here by row"
           " numbers"}.get(options.like or "", "") + ". QPS: of one client 1 / mean latency, of"
        " several all queries / wall time from a common start.",
        *data,
    ]  # fmt: skip
    ceilings = sorted(
        {
            (r.clients, r.get("qps_wall"))
            for r in searches_of(rows)
            if r.adapter == "null" and r.status == OK and "qps_wall" in r.metrics
        }
    )
    if ceilings:
        alone = ", ".join(f"{count(qps)} QPS of {clients}" for clients, qps in ceilings)
        lead.append(f"What the client alone can do (null engine, wall time), by clients: {alone}.")
    if options.like:
        tables = like_tables([r for r in rows if r.adapter != "null"], options)
        if not tables:
            raise ConfigError(
                f"these results have nothing for --like {options.like}: {NEEDED[options.like]}"
            )
        title = f"quiver-bench, like {options.like}"
    else:
        tables = default(rows, options.targets or TARGETS)
        title = f"quiver-bench: {', '.join(f.name for f in folders)}"
    machine = summary.load_sentence(rows, facts)
    aims = options.targets or TARGETS
    baseline = options.baseline or baseline_of(rows)
    told = summary.sentences(rows, aims[len(aims) // 2], baseline)
    if not options.like and any(r.adapter == "quiver" for r in rows):
        lost = summary.lost_tables(summary.cells(rows, aims))
        tables += lost
        told["Quiver and the others"] = [summary.lost_sentence(lost)]
    said = [table.form(options.format) for table in tables]
    extra = [labels_table(rows), settings_table(found), environment_table(facts)]
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(page(title, machine, told, lead, drawings.of(rows), [*tables, *extra]))
    first = [machine]
    for heading, some in told.items():
        first += ["", f"{heading}:", *(f"  {line}" for line in some)]
    first += ["", *lead]
    if options.format == "csv":
        first = [f"# {line}" for line in first]
    return "\n\n".join(["\n".join(first), *said])


def labels_table(rows: Sequence[Row]) -> Table:
    table = Table("Engines", ("engine", "version", "label", "measured"))
    for engine, some in groups(rows, lambda r: r.engine).items():
        good = sum(r.status == OK for r in some)
        bad = next((f"; {r.status}: {r.reason}" for r in some if r.status != OK), "")
        versions = "; ".join(dict.fromkeys(r.version for r in some if r.version))
        table.add(engine, versions or "-", some[0].label or "-", f"{good} of {len(some)}{bad}")
    return table
