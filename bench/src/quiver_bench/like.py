"""The tables of the five reports, from rows. Derived columns are computed as theirs were.

recall_ann is the recall of katz and callaghan, recall_ids that of docarray and edb; rds
reports none, and gets ours. bench/README.md says where we differ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from statistics import median

from quiver_bench.records import OK
from quiver_bench.tables import Table, count, milliseconds, rate
from quiver_bench.views import (
    Row,
    at_recall,
    groups,
    parameters,
    searches_of,
    select,
    shown,
    why_not,
)

GIB, MIB = 2**30, 2**20
NAMES = ("katz", "callaghan", "docarray", "rds", "edb")


def data_title(row: Row) -> str:
    return f"{row.dataset} ({row.count:,} rows{row.apart})"


def dataset_title(row: Row) -> str:
    """What rows are compared within: a data set, and a host where there are several."""
    return data_title(row) + (f", {row.shown_host}" if row.shown_host else "")


def _plain(rows: Iterable[Row]) -> list[Row]:
    """Searches of one client."""
    return [row for row in searches_of(rows) if row.clients == 1]


# katz: the first point of a sweep that reaches the target; speedups over the worst row.


def sweep(rows: Sequence[Row]) -> list[Row]:
    """Rows by rising parameters where these are numbers: some may have been measured later."""

    def numbers(row: Row) -> tuple[float, ...]:
        return tuple(v if isinstance(v, int | float) else 0.0 for v in row.query.values())

    return sorted(rows, key=numbers)


def katz_table(rows: Sequence[Row], target: float, host: str, recall: str = "recall_ann") -> Table:
    """rows: of one data set and host, one client."""
    title = f"{data_title(rows[0])} @ {target:.0%} recall on {host}"
    table = Table(title, (
        "Test", "Recall", "Single Connection Throughput (QPS)", "QPS Speedup", "p99 Latency (ms)",
        "p99 Speedup", "Index Build (s)", "Index Build Speedup", "Index Size (GiB)",
        "Size Improvement",
    ))  # fmt: skip
    chosen = {
        title: at_recall(sweep(some), target, "first", recall)
        for title, some in groups(rows, lambda row: row.title).items()
    }
    found = [row for row in chosen.values() if row is not None]
    # An exact scan has no index: it is in no comparison of builds and sizes.
    indexed = [row for row in found if row.get("index_bytes") > 0]
    least = min((row.get("qps") for row in found), default=1.0)
    p99 = max((row.get("p99_ms") for row in found), default=1.0)
    build = max((row.get("build_s") for row in indexed), default=1.0)
    size = max((row.get("index_bytes") for row in indexed), default=1.0)
    for title, row in chosen.items():
        if row is None:
            of_test = [r for r in rows if r.title == title]
            table.add(title, why_not(of_test, recall), *[""] * 8)
            continue
        cells = [
            title, f"{row.get(recall):.3f}", count(row.get("qps")), f"{row.get('qps') / least:.1f}",
            f"{row.get('p99_ms'):.2f}", f"{p99 / row.get('p99_ms'):.1f}",
        ]  # fmt: skip
        if row.get("index_bytes") > 0:
            cells += [
                count(row.get("build_s")) if row.get("build_s") >= 10 else f"{row.get('build_s'):.1f}",
                f"{build / max(row.get('build_s'), 1e-9):.1f}",
                f"{row.get('index_bytes') / GIB:.2f}", f"{size / row.get('index_bytes'):.1f}",
            ]  # fmt: skip
        else:
            cells += ["-"] * 4
        table.add(*cells)
    return table


def katz(rows: Sequence[Row], targets: Sequence[float]) -> list[Table]:
    found = []
    for same in groups(_plain(rows), lambda r: f"{dataset_title(r)} {r.host}").values():
        found += [katz_table(same, target, same[0].host) for target in targets]
    for table in found:
        table.notes.append(
            "first point of the sweep that reaches the target; speedups over the worst row"
        )
    return found


# callaghan: most QPS among all builds and searches that reach the recall.


def config(row: Row) -> str:
    short = {"ef_construction": "ef_cons"}
    params = {**shown(row.build), **row.query}
    inside = ", ".join(f"{short.get(name, name)}={value}" for name, value in params.items())
    return f"{row.engine}({inside})"


def best_rows(
    rows: Sequence[Row], threshold: float, digits: int | None = None, top: int = 1,
    recall: str = "recall_ann",
) -> list[Row]:  # fmt: skip
    """The best of each engine, in the engines' order."""
    found = []
    for some in groups(rows, lambda row: row.engine).values():
        left = list(some)
        for _ in range(top):
            best = at_recall(left, threshold, "best", recall, digits)
            if best is None:
                break
            found.append(best)
            left = [row for row in left if row is not best]
    return found


def callaghan_table(
    rows: Sequence[Row], threshold: float, baseline: str = "", digits: int | None = None,
    top: int = 1, recall: str = "recall_ann",
) -> Table:  # fmt: skip
    """With a baseline rel2 is QPS / QPS of the baseline in the same block."""
    best = best_rows(rows, threshold, digits, top, recall)
    base = next((row for row in best if row.engine == baseline), None)
    title = f"Best QPS with recall >= {threshold:.3f}".rstrip("0") if threshold < 1 else (
        "Best QPS with recall >= 1.000"
    )  # fmt: skip
    columns = ["recall", "QPS"] + ([f"rel2({baseline})"] if baseline else []) + ["isecs", "config"]
    table = Table(title, columns)
    for row in best:
        cells = [f"{row.get(recall):.3f}", f"{row.get('qps'):.1f}"]
        if baseline:
            cells.append(f"{row.get('qps') / base.get('qps'):.2f}" if base else "-")
        isecs = row.get("build_s")
        cells += ["-" if math.isnan(isecs) else f"{isecs:.0f}" if isecs >= 10 else f"{isecs:.1f}"]
        table.add(*cells, config(row))
    others = [row.get("qps") for row in best if row.engine != baseline]
    if base and others:
        table.notes.append(headline(baseline, base.get("qps"), max(others)))
    if not best:
        table.notes.append("no algorithms achieved this for the settings used")
    return table


def headline(baseline: str, qps: float, best_other: float) -> str:
    """The factor is cut off after one decimal, not rounded."""
    factor = math.floor(qps / best_other * 10 + 1e-9) / 10
    if factor >= 1:
        return f"{baseline} gets >= {factor:.1f}X more QPS than the others"
    return f"{baseline} gets {qps / best_other:.2f}X the QPS of the best other"


def create_index(rows: Sequence[Row]) -> Table:
    """Seconds and MB by build parameters (down) and engine (across)."""
    built = [row for row in rows if row.get("index_bytes") > 0]
    engines = list(groups(built, lambda row: row.engine))
    columns = ["build"]
    for engine in engines:
        columns += [f"{engine} secs", "size(MB)"]
    table = Table("create index", columns)
    for text, some in groups(built, lambda row: parameters(row.build) or "-").items():
        cells = [text]
        for engine in engines:
            row = next((r for r in some if r.engine == engine), None)
            secs = row.get("build_s") if row else 0.0
            cells += [f"{secs:.0f}" if secs >= 10 else f"{secs:.1f}" if row else "",
                      f"{row.get('index_bytes') / MIB:.0f}" if row else ""]  # fmt: skip
        table.add(*cells)
    return table


def callaghan(rows: Sequence[Row], thresholds: Sequence[float], baseline: str, digits: int | None) -> list[Table]:  # fmt: skip
    found = []
    for same in groups(_plain(rows), lambda r: f"{dataset_title(r)} {r.host}").values():
        points = groups([r for r in same if r.status == OK], lambda r: r.engine)
        note = "points per engine: " + ", ".join(f"{e} {len(p)}" for e, p in points.items())
        for threshold in thresholds:
            table = callaghan_table(same, threshold, baseline, digits)
            table.title = f"{dataset_title(same[0])}: {table.title}"
            table.notes.append(note)
            found.append(table)
        reasons = {r.engine: f"{r.engine}: {r.status}: {r.reason}" for r in same if r.status != OK}
        if reasons:
            found[-1].notes += list(reasons.values())
    builds = groups(select(rows, workload="build"), lambda r: f"{dataset_title(r)} {r.host}")
    for same in builds.values():
        table = create_index(same)
        table.title = f"{dataset_title(same[0])}: {table.title}"
        sizes = {
            row.engine: row.get("table_bytes") / MIB for row in same if row.get("table_bytes") > 0
        }
        table.notes.append("Table sizes: " + ", ".join(f"{e} {s:.0f}M" for e, s in sizes.items()))
        found.append(table)
    return found


# docarray: six operations of every store, their latencies and the same as rates.

TASKS = (
    ("Find by vector", "vector"), ("Find by condition", "condition"), ("Create", "create"),
    ("Read", "read"), ("Update", "update"), ("Delete", "delete"),
)  # fmt: skip


def task_ms(row: Row, task: str) -> float:
    """The mean in milliseconds; Create: of all rows."""
    return row.get("create_s") * 1000 if task == "create" else row.get(f"{task}_mean_ms")


def task_qps(row: Row, task: str) -> float:
    ms = task_ms(row, task)
    return 1000.0 / ms * (row.count if task == "create" else 1) if ms else math.nan


def _keys(row: Row) -> tuple[str, str, str]:
    params = {**row.build, **row.query}
    names = (("m", "lists"), ("ef_construction",), ("ef_search", "probes", "recall"))
    return tuple(next((str(params[n]) for n in some if n in params), "N/A") for some in names)  # type: ignore[return-value]


def docarray_latency(rows: Sequence[Row], recall: str = "recall_ids") -> Table:
    """rows: of one store."""
    units = {}
    for name, task in TASKS:
        values = [task_ms(row, task) for row in rows if not math.isnan(task_ms(row, task))]
        units[task] = "s" if name == "Create" or (values and median(values) >= 1000) else "ms"
    columns = ["m", "ef_construct", "ef", f"Recall@{rows[0].k}"]
    columns += [f"{name} ({units[task]})" for name, task in TASKS]
    table = Table(f"{rows[0].engine}: latency", columns)
    for row in rows:
        cells = [*_keys(row), f"{row.get(recall):.3f}"]
        for _, task in TASKS:
            value = task_ms(row, task)
            text = f"{value / (1000 if units[task] == 's' else 1):,.2f}"
            cells.append("unsupported" if math.isnan(value) else text)
        table.add(*cells)
    return table


def docarray_qps(rows: Sequence[Row], recall: str = "recall_ids") -> Table:
    columns = ["m", "ef_construct", "ef", f"Recall@{rows[0].k}", *(name for name, _ in TASKS)]
    table = Table(f"{rows[0].engine}: QPS", columns)
    for row in rows:
        values = [task_qps(row, task) for _, task in TASKS]
        cells = ["unsupported" if math.isnan(value) else rate(value) for value in values]
        table.add(*_keys(row), f"{row.get(recall):.3f}", *cells)
    return table


def docarray_percentiles(rows: Sequence[Row]) -> Table:
    """What the report leaves out: medians, 99th percentiles and how many they rest on."""
    tasks = [(name, task) for name, task in TASKS if task != "create"]
    table = Table(f"{rows[0].engine}: p50 / p99 in ms (n)",
                  ["m", "ef_construct", "ef", *(name for name, _ in tasks)])  # fmt: skip
    for row in rows:
        cells = []
        for _, task in tasks:
            n = row.get(f"{task}_count")
            numbers = f"{milliseconds(row.get(f'{task}_p50_ms'))} / {milliseconds(row.get(f'{task}_p99_ms'))}"
            cells.append("unsupported" if math.isnan(n) else f"{numbers} ({n:.0f})")
        table.add(*_keys(row), *cells)
    return table


def docarray(rows: Sequence[Row]) -> list[Table]:
    found = []
    for same in groups(
        select(rows, workload="crud"), lambda r: f"{r.engine} {dataset_title(r)} {r.host}"
    ).values():
        good = [row for row in same if row.status == OK]
        if not good:
            found.append(Table(f"{same[0].engine}: {same[0].status}: {same[0].reason}", ()))
            continue
        some = [docarray_latency(good), docarray_qps(good), docarray_percentiles(good)]
        some[0].notes += [
            f"{data_title(good[0])}; {good[0].host}; {good[0].version}; {good[0].label}".rstrip(
                "; "
            )
        ]
        some[0].notes += sorted({note for row in good for note in row.notes if ": " in note})
        found += some
    return found


# rds: transactions a second by clients, and one against another.


def percent(old: float, new: float, of: str = "old") -> float:
    """new / old - 1; of="new" is the other formula of that report, (new - old) / new."""
    return (new / old - 1 if of == "old" else 1 - old / new) * 100


def _tps(row: Row) -> float:
    return row.get("tps") if row.workload == "ingest" else row.get("qps_wall")


def scaling(title: str, rows: Sequence[Row]) -> Table:
    """A line an engine and host, a column a number of clients."""
    clients = sorted({row.clients for row in rows})
    table = Table(title, ["Instance", "Version", *(str(c) for c in clients)])
    for some in groups(rows, lambda r: f"{r.host} {r.title} {r.version}").values():
        by = {row.clients: row for row in some}
        cells = [
            count(_tps(by[c])) if c in by and by[c].status == OK
            else by[c].reason[:40] if c in by else "" for c in clients
        ]  # fmt: skip
        table.add(some[0].host, some[0].title, *cells)
    return table


def ab_speedup(title: str, rows: Sequence[Row], key: Callable[[Row], str], a: str, b: str) -> Table:
    """b against a, by clients."""
    table = Table(title, ["Clients", f"{a} (TPS)", f"{b} (TPS)", "Speedup (%)"])
    for clients in sorted({row.clients for row in rows}):
        pair = [
            next(
                (r for r in rows if r.clients == clients and key(r) == one and r.status == OK), None
            )
            for one in (a, b)
        ]
        if pair[0] is None or pair[1] is None:
            continue
        old, new = _tps(pair[0]), _tps(pair[1])
        table.add(str(clients), count(old), count(new), f"{percent(old, new):+.1f}%")
    return table


def rds(rows: Sequence[Row], baseline: str) -> list[Table]:
    found = []
    loads = [row for row in rows if row.workload == "ingest"]
    for title, same in groups(loads, lambda r: f"{r.dimensions} dimensions{r.apart}").items():
        found.append(scaling(f"Inserts under an index, {title} (TPS)", same))
        found += _pairs("Inserts", same, baseline)
    searches = searches_of(rows)
    by_query = groups(
        searches, lambda r: f"{data_title(r)}, {parameters(r.query) or 'no parameters'}"
    )
    for title, same in by_query.items():
        table = scaling(f"Searches, {title} (TPS)", same)
        several = len({row.clients for row in same}) > 1
        recalls = {r.title: f"{r.get('recall'):.3f}" for r in same if r.status == OK}
        table.notes.append("recall: " + ", ".join(f"{t} {v}" for t, v in recalls.items()))
        if several:
            found += [table, *_pairs(title, same, baseline)]
    sizes = {
        row.title: f"{row.title}: table {row.get('table_bytes') / GIB:.2f} GB, index"
        f" {row.get('index_bytes') / GIB:.2f} GB"
        for row in select(rows, workload="build", status=OK)
    }
    if found:
        found[0].notes += list(sizes.values())
        found[0].notes.append("Speedup is new / old - 1 in all tables")
    return found


def _pairs(title: str, rows: Sequence[Row], baseline: str) -> list[Table]:
    """Every engine against the baseline, and every host against the first."""
    found = []
    for host_rows in groups(rows, lambda r: r.host).values():
        titles = list(groups(host_rows, lambda r: r.title))
        base = next((r.title for r in host_rows if r.engine == baseline), titles[0])
        for other in titles:
            if other != base:
                table = ab_speedup(f"{title}: {other} against {base}", host_rows, lambda r: r.title, base, other)  # fmt: skip
                found += [table] if table.rows else []
    hosts = list(groups(rows, lambda r: r.host))
    for host in hosts[1:]:
        for engine, some in groups(rows, lambda r: r.title).items():
            table = ab_speedup(f"{title}: {engine}, {host} against {hosts[0]}", some, lambda r: r.host, hosts[0], host)  # fmt: skip
            found += [table] if table.rows else []
    return found
