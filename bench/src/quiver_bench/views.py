"""Results as rows: repetitions joined, each with what its index took. And what picks among them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

from quiver_bench import tables
from quiver_bench.engines import ADAPTERS, adapter
from quiver_bench.records import FAILED, OK, Params, Result, canonical, unanswered
from quiver_bench.registry import REGISTRY, is_here
from quiver_bench.tables import Table

# In the label of an adapter that was never run against what it is for; then in its name, too.
NOT_RUN = "adapter not run for real"
OF_BUILD = ("build_s", "load_s", "create_s", "index_bytes", "table_bytes")
SELECTORS = ("first", "best", "nearest")
BRIEF = 48


@dataclass(frozen=True)
class Row:
    """A point: the median (or best) of its repetitions, and why there is none."""

    engine: str
    metrics: Mapping[str, float] = field(default_factory=dict)
    workload: str = "query"
    host: str = ""
    version: str = ""
    dataset: str = ""
    count: int = 0  # rows of the data set
    dimensions: int = 0
    metric: str = ""
    k: int = 10
    build: Params = field(default_factory=dict)
    query: Params = field(default_factory=dict)
    server: Params = field(default_factory=dict)
    load: Params = field(default_factory=dict)
    clients: int = 1
    tier: str = ""
    label: str = ""
    reps: int = 1
    low: Mapping[str, float] = field(default_factory=dict)
    high: Mapping[str, float] = field(default_factory=dict)
    status: str = OK
    reason: str = ""
    notes: tuple[str, ...] = ()
    adapter: str = ""
    data: str = ""
    settings: Params = field(default_factory=dict)  # of its server, as it was when it was built
    shown_host: str = ""  # the host, where there are rows of several
    apart: str = ""  # what tells it from others of a data set of this name and number of rows

    def get(self, name: str) -> float:
        return self.metrics.get(name, float("nan"))

    @property
    def graph(self) -> str:
        """Which index this is, apart from how it is searched, but for how many rows."""
        return canonical([self.host, self.engine, self.version, self.dataset, self.count, self.data,
                          self.metric, self.k, dict(self.build), dict(self.server)])  # fmt: skip

    @property
    def place(self) -> str:
        """The point and host, whatever the version, rows and limits."""
        return canonical([self.host, self.workload, self.engine, self.dataset, self.count,
                          self.metric, self.k, dict(self.build), dict(self.query), dict(self.server), dict(self.load),
                          self.clients, self.tier])  # fmt: skip

    @property
    def title(self) -> str:
        return self.engine + (f" ({parameters(self.build)})" if shown(self.build) else "")


ORDER = ("lists", "m", "ef_construction", "ef_search", "probes", "recall")


def shown(params: Params) -> dict[str, object]:
    """Parameters in their usual order, without the options that are in an engine's name anyway."""
    names = sorted(params, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))
    return {n: params[n] for n in names if n not in ("index", "type", "quantization")}


def parameters(params: Params) -> str:
    return ", ".join(f"{name}={value}" for name, value in shown(params).items())


def rows_of(results: Iterable[Result], best: bool = False) -> list[Row]:
    """One row a point and host, in the order of first appearance.

    An engine with several versions on a host, of one data set, has them in its name. Where there
    are several hosts, a data set has the host in its title, by which tables and charts are made.
    So it has its k, metric or digest, where there are several of its name and number of rows.
    Of a point that was measured under several protocols the last one stays. Reasons why there are
    no numbers go when some came later: an engine that was missing may be there now.
    """
    repetitions: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        repetitions.setdefault((result.host, result.point.id), []).append(result)
    found = [_row(group, best) for group in repetitions.values()]
    last = {row.place: i for i, row in enumerate(found) if row.status == OK}
    same = {
        (row.place, row.version, row.data): i for i, row in enumerate(found) if row.status == OK
    }
    found = [
        r for i, r in enumerate(found)
        if (i == same[r.place, r.version, r.data] if r.status == OK else i > last.get(r.place, -1))
    ]  # fmt: skip

    def of_data(row: Row) -> str:
        return canonical([row.host, row.engine, row.dataset, row.count])

    versions = {key: {r.version for r in some} for key, some in groups(found, of_data).items()}
    found = [
        replace(row, engine=f"{row.engine} [{row.version or 'no version'}]")
        if len(versions[of_data(row)]) > 1 else row
        for row in found
    ]  # fmt: skip
    if len({row.host for row in found}) > 1:
        found = [replace(row, shown_host=row.host) for row in found]
    sets = groups((row for row in found if row.status == OK), _set)
    found = [replace(row, apart=_apart(row, sets.get(_set(row), ()))) for row in found]
    builds = {row.graph: row for row in found if row.workload == "build" and row.status == OK}
    joined = []
    for row in found:
        built = builds.get(row.graph)
        taken = {}
        if built and row.workload != "build":
            taken = {name: built.get(name) for name in OF_BUILD if name in built.metrics}
        settings = built.settings if built else row.settings
        joined.append(replace(row, metrics={**taken, **row.metrics}, settings=settings))
    return joined


def _set(row: Row) -> str:
    return canonical([row.dataset, row.count])


def _apart(row: Row, rows: Sequence[Row]) -> str:
    """The row's k, metric and digest, of each if these rows have several."""
    told = {"k": f"k = {row.k}", "metric": row.metric, "data": f"data {row.data[:8] or 'unknown'}"}
    return "".join(
        f", {t}" for name, t in told.items() if len({getattr(r, name) for r in rows}) > 1
    )


def _row(group: Sequence[Result], best: bool) -> Row:
    good = [result for result in group if result.status == OK]
    last = (good or list(group))[-1]
    p = last.point
    names = {name for result in good for name in result.metrics}
    values = {n: [r.metrics[n] for r in good if n in r.metrics] for n in names}
    middle = {name: median(numbers) for name, numbers in values.items()}
    if best and good and "qps" in names:
        middle = dict(max(good, key=lambda r: r.metrics.get("qps", 0.0)).metrics)
    notes = tuple(dict.fromkeys(note for result in good for note in result.remarks))
    failed = [result for result in group if result.status == FAILED]
    if good and failed:
        lost = f"{len(failed)} of {len(group)} repetitions failed: {failed[0].reason}"
        notes = (*notes, lost)
    notes = (*notes, *unanswered(middle))
    engine = p.engine + (f" [{NOT_RUN}]" if NOT_RUN in last.label else "")
    return Row(
        engine, middle, p.workload, last.host, p.version, p.dataset, p.rows, p.dimensions,
        p.metric, p.k, p.build, p.query, p.server, p.load, p.clients, p.tier, last.label,
        len(good), {n: min(v) for n, v in values.items()}, {n: max(v) for n, v in values.items()},
        OK if good else last.status, "" if good else last.reason, notes, p.adapter, p.data,
        last.settings,
    )  # fmt: skip


def select(rows: Iterable[Row], **wanted: object) -> list[Row]:
    """Rows whose attributes are these."""
    return [r for r in rows if all(getattr(r, name) == value for name, value in wanted.items())]


def searches_of(rows: Iterable[Row]) -> list[Row]:
    """Closed-loop searches with all of the memory, of queries in no special order."""
    return [r for r in all_searches(rows) if r.load.get("order") not in ("zipf", "fresh")]


def all_searches(rows: Iterable[Row]) -> list[Row]:
    """Those of skewed and of fresh queries, too."""
    return [r for r in rows if r.workload == "query" and not r.load.get("rate") and not r.tier]


def groups(rows: Iterable[Row], key: Callable[[Row], str]) -> dict[str, list[Row]]:
    """Rows by a key, in order of appearance."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return found


def at_recall(
    rows: Iterable[Row], target: float, selector: str, recall: str = "recall",
    digits: int | None = None,
) -> Row | None:  # fmt: skip
    """One of rows, by its recall; None when none has it.

    first    the first in the order of rows that reaches the target
    best     the most QPS of those that reach it
    nearest  the nearest to it, above or below
    """
    good = [row for row in rows if row.status == OK and recall in row.metrics]

    def value(row: Row) -> float:
        return round(row.get(recall), digits) if digits is not None else row.get(recall)

    if selector == "nearest":
        return min(good, key=lambda row: abs(value(row) - target), default=None)
    reached = [row for row in good if value(row) >= target]
    if selector == "first":
        return reached[0] if reached else None
    return max(reached, key=lambda row: row.get("qps"), default=None)


def brief(text: str) -> str:
    """The beginning of a reason, for a column between others; remarks have the whole."""
    return text if len(text) <= BRIEF else text[: BRIEF - 3].rstrip() + "..."


def why_not(rows: Sequence[Row], recall: str = "recall") -> str:
    """Why at_recall() found nothing."""
    failed = [row for row in rows if row.status != OK]
    if len(failed) == len(rows) and failed:
        return brief(f"{failed[0].status}: {failed[0].reason}")
    most = max((row.get(recall) for row in rows if row.status == OK), default=0.0)
    return f"not reached ({most:.3f} at most)"


# Tables about quiver-bench itself.


def engine_table() -> Table:
    table = Table("Adapters", ("adapter", "label", "clients", "build", "search"))
    for name in ADAPTERS:
        cls = adapter(name)
        build = ", ".join(cls.parameters) or "-"
        search = ", ".join(cls.search_parameters) or "-"
        if hasattr(cls, "settings_of"):
            search = "; ".join(f"{i}: {', '.join(s)}" for i, s in cls.settings_of.items())
        table.add(name, cls.label or "-", "threads" if cls.embedded else "processes", build, search)
    return table


def data_table(top: Path | None, home: Path) -> Table:
    table = Table(
        "Data sets of the reports",
        ("name", "rows", "queries", "dim", "metric", "MB", "here", "licence", "from"),
    )
    for name, known in REGISTRY.items():
        here = is_here(name, top, home)
        table.add(
            name, tables.count(known.rows), tables.count(known.queries), str(known.dimensions),
            known.metric, tables.count(known.megabytes), "yes" if here else "-", known.licence,
            known.note,
        )  # fmt: skip
    table.notes.append(
        "SHA-256: of Fashion-MNIST's vectors known; others are kept at first reading"
    )
    made = sorted(p.stem for p in (home / "download").glob("*.hdf5") if p.stem not in REGISTRY)
    if made:
        table.notes.append(f"also here: {', '.join(made)}")
    return table
