"""What a reader should know first, in sentences whose numbers come of the same rows as the tables;
and the cells that an engine loses."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from statistics import median
from typing import Any

from quiver_bench.engines import adapter as adapter_of
from quiver_bench.like import dataset_title
from quiver_bench.records import OK, OTHERS
from quiver_bench.tables import Table, megabytes, milliseconds, rate
from quiver_bench.views import Row, at_recall, groups, parameters, searches_of, select

QUIET = 0.1  # cores of other programs, up to which a machine counts as quiet
FASTEST = 3


def _measured(row: Row) -> str:
    """An engine, and what it was measured on."""
    return f"{row.engine} on {row.dataset}" + (f", {row.shown_host}" if row.shown_host else "")


def load_sentence(rows: Sequence[Row], facts: Mapping[str, Mapping[str, Any]]) -> str:
    """How busy the machine was with other things; the first line of a report."""
    known = [r for r in rows if "others_cores" in r.metrics]
    shares = [r.get("others_cores") for r in known]
    cores = ", ".join(sorted({str(one.get("cores", "?")) for one in facts.values()}))
    if not shares:
        averages = [one["load_average"][0] for one in facts.values() if one.get("load_average")]
        if not averages:
            return "Nobody measured what else the machine did."
        return (
            f"When the run began, the load average was {max(averages):.1f} on {cores} cores. What"
            " other programs took meanwhile was not measured."
        )
    middle, most = median(shares), max(shares)
    if most <= QUIET:
        return f"The machine was quiet: other programs took at most {most:.2f} of {cores} cores."
    quiet = middle <= QUIET
    text = (
        f"The machine was {'mostly quiet' if quiet else 'shared with other programs'}. Other programs"
        f" took {middle:.1f} of {cores} cores at the median."
    )
    much = sum(share > OTHERS for share in shares)
    if much:
        text += f" They took more than {OTHERS} at {much} point{'s' * (much > 1)}."
    text += f" The most was {most:.1f}."
    middles = {
        name: median(r.get("others_cores") for r in some)
        for name, some in groups(known, _measured).items()
    }
    worst = max(middles, key=lambda name: middles[name])
    if middles[worst] > QUIET:
        text += f" The highest median was {middles[worst]:.1f}, that of {worst}."
    return text + ("" if quiet else " Speeds are lower than on a quiet machine, and noisy.")


def _times(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}"


def fastest(single: Sequence[Row], target: float) -> dict[str, Row]:
    """engine: its fastest search that reaches the target."""
    found = {
        e: at_recall(some, target, "best") for e, some in groups(single, lambda r: r.engine).items()
    }
    return {e: r for e, r in found.items() if r is not None}


def sentences(
    rows: Sequence[Row], target: float, baseline: str, adapter: str = "quiver"
) -> dict[str, list[str]]:
    """Data set: who is fastest at a recall, and how the engines of an adapter compare with the
    baseline."""
    found: dict[str, list[str]] = {}
    good = [
        r for r in searches_of(rows) if r.status == OK and r.clients == 1 and r.adapter != "null"
    ]
    for title, single in groups(good, dataset_title).items():
        said = found.setdefault(f"{title}, one client, recall of at least {target}", [])
        best = fastest(single, target)
        if not best:
            said.append("No engine reaches this recall.")
            continue
        first, *others = sorted(best.values(), key=lambda r: -r.get("qps"))
        text = f"{first.engine} is fastest, with {rate(first.get('qps'))} queries a second."
        if others:
            names = [r.engine for r in others[:FASTEST]]
            text += f" Next {'come' if len(names) > 1 else 'comes'} {_and(names)}."
        said.append(text)
        base = best.get(baseline)
        for engine, row in best.items():
            if base is None or row.adapter != adapter or engine == baseline:
                continue
            times = _times(row.get("qps") / base.get("qps"))
            text = f"{engine} answers {times} times as many queries as {baseline}."
            for name, what in (("build_s", "Its build takes {} times as long."),
                               ("index_bytes", "Its index has {} times the size.")):  # fmt: skip
                if base.get(name) > 0 and row.get(name) > 0:
                    text += " " + what.format(_times(row.get(name) / base.get(name)))
            said.append(text)
    return found


def _and(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


@dataclass(frozen=True)
class Cell:
    """Something that can be won. Lower values are better unless most is set."""

    what: str
    unit: str
    values: Mapping[str, tuple[float, str]]  # engine: value, how it was had
    ours: frozenset[str]
    libraries: frozenset[str]  # engines without a server: no round trip is in their numbers
    most: bool = False

    def winner(self, among: AbstractSet[str]) -> str | None:
        """The best of these engines that have a number."""
        some = {e: v for e, (v, _) in self.values.items() if e in among and not math.isnan(v)}
        if not some:
            return None
        return (max if self.most else min)(some, key=lambda e: some[e])


def cells(rows: Sequence[Row], targets: Sequence[float], adapter: str = "quiver") -> list[Cell]:
    """Everything that can be won in these rows: speed at each recall, builds, sizes, conditions,
    tiers of memory."""
    found: list[Cell] = []
    rows = [r for r in rows if r.adapter != "null" and r.status == OK]
    ours = frozenset(r.engine for r in rows if r.adapter == adapter)
    inside = {name for name in {r.adapter for r in rows} if name and adapter_of(name).embedded}
    libraries = frozenset(r.engine for r in rows if r.adapter in inside)
    for title, single in groups(
        [r for r in searches_of(rows) if r.clients == 1], dataset_title
    ).items():
        for target in targets:
            best = fastest(single, target)
            for name, what, most in (("qps", "QPS", True), ("p99_ms", "p99 ms", False)):
                values = {e: (r.get(name), parameters(r.query)) for e, r in best.items()}
                found.append(
                    Cell(f"{title}, recall >= {target}", what, values, ours, libraries, most)
                )
    for title, built in groups(select(rows, workload="build"), dataset_title).items():
        for name, what in (("build_s", "build s"), ("index_bytes", "index MB")):
            scale = 2**20 if name == "index_bytes" else 1
            # of an engine with several builds the best
            least = sorted((r for r in built if r.get(name) > 0), key=lambda r: -r.get(name))
            values = {r.engine: (r.get(name) / scale, parameters(r.build)) for r in least}
            found.append(Cell(title, what, values, ours, libraries))
    aim = sorted(targets)[len(targets) // 2]
    asked = [r for r in rows if r.workload == "conditions" and r.get("recall") >= aim]
    for key, some in groups(
        asked,
        lambda r: f"{dataset_title(r)}, {r.load['suite']}: {r.load['case']}, {r.load['sessions']}",
    ).items():
        values = {r.engine: (r.get("p50_ms"), f"recall {r.get('recall'):.3f}") for r in some}
        found.append(Cell(key, "p50 ms", values, ours, libraries))
    tiered = [r for r in rows if r.tier and r.clients == 1]
    for key, some in groups(tiered, lambda r: f"{dataset_title(r)}, tier {r.tier} MB").items():
        best = fastest(some, aim)
        values = {e: (r.get("qps"), parameters(r.query)) for e, r in best.items()}
        found.append(Cell(f"{key}, recall >= {aim}", "QPS", values, ours, libraries, most=True))
    return [cell for cell in found if cell.values]


def lost_tables(found: Sequence[Cell]) -> list[Table]:
    """The cells in which a server, and those in which a library in the client's process, is ahead
    of all of ours, or none of ours has a number. Cells without a number of theirs do not count."""
    tables = []
    for title, library in (
        ("Where another server is ahead of Quiver", False),
        ("Where a library in the client's process is ahead of Quiver", True),
    ):
        table = Table(title, ("what", "unit", "Quiver", "value", "ahead", "value of it", "times"))
        compared = 0
        for cell in found:
            others = set(cell.values) - cell.ours
            among = others & cell.libraries if library else others - cell.libraries
            ahead, mine = cell.winner(among), cell.winner(cell.ours)
            if ahead is None:
                continue
            compared += 1
            value = cell.values[ahead][0]
            own = cell.values[mine][0] if mine else math.nan
            if own >= value if cell.most else own <= value:
                continue
            ratio = max(value, own) / max(min(value, own), 1e-12)
            table.add(
                cell.what, cell.unit, mine or "none", _form(cell, own), ahead, _form(cell, value),
                "-" if math.isnan(own) else _times(ratio),
            )  # fmt: skip
        table.notes.append(f"{len(table.rows)} of {compared} cells")
        tables.append(table)
    return tables


def lost_sentence(tables: Sequence[Table]) -> str:
    servers, libraries = (table.notes[0] for table in tables)
    return (
        f"Another server is ahead of all of Quiver's indexes in {servers}."
        f" A library in the client's process is ahead in {libraries}. Tables name them."
    )


def _form(cell: Cell, value: float) -> str:
    if math.isnan(value):
        return "-"
    if cell.unit == "index MB":
        return megabytes(value * 2**20)
    return rate(value) if cell.most else milliseconds(value)
