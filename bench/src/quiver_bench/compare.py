"""Two results point by point, and whether one is worse beyond noise."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from quiver_bench import results
from quiver_bench.errors import ConfigError
from quiver_bench.records import OK
from quiver_bench.tables import Table
from quiver_bench.views import Row, brief, parameters, rows_of

# Percent that each may be worse, and which way is better. Recall counts in points of 0.01.
LIMITS: Mapping[str, float] = {
    "qps": 5,
    "p99_ms": 10,
    "build_s": 10,
    "index_bytes": 1,
    "recall": 0.5,
}
MORE_IS_BETTER = {"qps", "recall", "tps"}
EXACT = {"recall", "index_bytes"}  # no times: one measurement tells
METRICS = {
    "build": ("build_s", "index_bytes"),
    "ingest": ("tps",),
}


def rows(folder: Path) -> list[Row]:
    found, _ = results.read_all([folder])
    return rows_of(found)


def parse_limits(given: Iterable[str]) -> dict[str, float]:
    """Of "qps=5"; what is not given stays."""
    limits = dict(LIMITS)
    for text in given:
        name, _, number = text.partition("=")
        try:
            limits[name] = float(number.rstrip("%"))
        except ValueError as error:
            raise ConfigError(f"--max takes METRIC=PERCENT, not {text}") from error
        if name not in (*LIMITS, "tps") or not math.isfinite(limits[name]):
            raise ConfigError(f"--max {text}: it takes {', '.join(LIMITS)} or tps, and a number")
    return limits


def key(row: Row) -> str:
    """What the two have in common: all but version and host."""
    return replace(row, host="", engine=row.engine.partition(" [")[0]).place


def change(before: float, after: float, name: str) -> float:
    """How much worse, in percent of before (recall: in points of 0.01); negative is better."""
    if name == "recall":
        return (before - after) * 100
    if not before or not after:
        return 0.0
    share = after / before - 1
    return (-share if name in MORE_IS_BETTER else share) * 100


Spreads = Mapping[tuple[str, str], float]


def spreads(rows: Iterable[Row]) -> Spreads:
    """By engine and metric the widest (high - low) / median of its repeated points."""
    found: dict[tuple[str, str], float] = {}
    for row in rows:
        for name in row.low if row.reps > 1 else ():
            wide = (row.high[name] - row.low[name]) / row.get(name) if row.get(name) else 0.0
            found[row.engine, name] = max(wide, found.get((row.engine, name), 0.0))
    return found


def beyond_noise(before: Row, after: Row, name: str, wide: Spreads) -> bool:
    """Whether the ranges of the two do not overlap.

    A range is that of the repetitions. What was measured once has shown none: its range is
    as wide as the widest that this engine's repeated points have (wide), with it in the middle.
    """

    def span(row: Row) -> tuple[float, float]:
        value = row.get(name)
        if row.reps > 1 or name in EXACT:
            return row.low.get(name, value), row.high.get(name, value)
        half = wide.get((row.engine, name), 0.0) / 2
        return value * (1 - half), value * (1 + half)

    (low, high), (low_after, high_after) = span(before), span(after)
    return high_after < low if name in MORE_IS_BETTER else low_after > high


def _what(row: Row) -> str:
    """A point of an engine and build, in words."""
    clients = f"{row.clients} clients" * (row.clients > 1)
    tier = f"{row.tier} MB" if row.tier else ""
    load = ""
    if row.workload == "filter":
        load = f"{float(str(row.load['selectivity'])):.1%} {row.load['correlation']}"
    elif row.workload == "churn":
        load = f"round {row.load['round']}"
    elif row.load.get("rate"):
        load = f"{row.load['rate']} a second"
    return ", ".join(t for t in (row.workload, parameters(row.query), clients, tier, load) if t)


def compare(
    before: Sequence[Row], after: Sequence[Row], limits: Mapping[str, float]
) -> tuple[Table, list[str]]:
    """The table, and a line for each regression. What is not in both is one as well if lost."""
    table = Table(
        "Change from A to B", ("engine", "build", "what", "metric", "A", "B", "worse by", "")
    )
    # Of several versions in one of them the last counts.
    found = {key(row): row for row in after}
    good = {key(row): row for row in before if row.status == OK and row.adapter != "null"}
    if not good:
        raise ConfigError("A has no measurements to compare with")
    wide = spreads([*before, *after])
    worse = []
    for old in good.values():
        what = _what(old)
        build = parameters(old.build) or "-"
        new = found.get(key(old))
        if new is None or new.status != OK:
            reason = "not measured" if new is None else f"{new.status}: {new.reason}"
            table.add(old.engine, build, what, "-", "", brief(reason), "", "LOST")
            worse.append(f"{old.title}, {what}: {reason}")
            continue
        if old.data and new.data and old.data != new.data:
            reason = f"the rows of {old.dataset} are not the same"
            table.add(old.engine, build, what, "-", "", reason, "", "LOST")
            worse.append(f"{old.engine}, {what}: {reason}")
            continue
        for name in METRICS.get(old.workload, ("qps", "p99_ms", "recall")):
            a, b = old.get(name), new.get(name)
            if math.isnan(a) or math.isnan(b) or (name not in limits and old.workload != "ingest"):
                continue
            by = change(a, b, name)
            bad = by > limits.get(name, limits["qps"]) and beyond_noise(old, new, name, wide)
            unit = "points" if name == "recall" else "%"
            table.add(old.engine, build, what, name, f"{a:,.4g}", f"{b:,.4g}", f"{by:+.1f} {unit}", "WORSE" if bad else "")  # fmt: skip
            if bad:
                worse.append(f"{old.title}, {what}: {name} {a:,.4g} -> {b:,.4g} ({by:+.1f} {unit})")
    return table, worse
