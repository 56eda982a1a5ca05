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
from quiver_bench.views import Row, parameters, rows_of

# Percent that each may be worse, and which way is better. Recall counts in points of 0.01.
LIMITS: Mapping[str, float] = {
    "qps": 5,
    "p99_ms": 10,
    "build_s": 10,
    "index_bytes": 1,
    "recall": 0.5,
}
MORE_IS_BETTER = {"qps", "recall", "tps"}
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
    """How much worse, in percent (recall: in points of 0.01); negative is better."""
    if name == "recall":
        return (before - after) * 100
    if not before or not after:
        return 0.0
    worse = before / after if name in MORE_IS_BETTER else after / before
    return (worse - 1) * 100


def beyond_noise(before: Row, after: Row, name: str) -> bool:
    """Whether the repetitions of the two do not overlap; one repetition is its own range."""
    ranges = [
        (row.low.get(name, row.get(name)), row.high.get(name, row.get(name)))
        for row in (before, after)
    ]
    (low, high), (low_after, high_after) = ranges
    return high_after < low if name in MORE_IS_BETTER else low_after > high


def compare(
    before: Sequence[Row], after: Sequence[Row], limits: Mapping[str, float]
) -> tuple[Table, list[str]]:
    """The table, and a line for each regression. What is not in both is one as well if lost."""
    table = Table(
        "Change from A to B", ("engine", "build", "what", "metric", "A", "B", "worse by", "")
    )
    # Of several versions in one of them the last counts.
    found = {key(row): row for row in after}
    good = {key(row): row for row in before if row.status == OK}
    if not good:
        raise ConfigError("A has no measurements to compare with")
    worse = []
    for old in good.values():
        what = ", ".join(
            t for t in (old.workload, parameters(old.query), f"{old.clients} clients" * (old.clients > 1), old.tier) if t
        )  # fmt: skip
        build = parameters(old.build) or "-"
        new = found.get(key(old))
        if new is None or new.status != OK:
            reason = "not measured" if new is None else f"{new.status}: {new.reason}"
            table.add(old.engine, build, what, "-", "", reason, "", "LOST")
            worse.append(f"{old.engine}, {what}: {reason}")
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
            bad = by > limits.get(name, limits["qps"]) and beyond_noise(old, new, name)
            unit = "points" if name == "recall" else "%"
            table.add(old.engine, build, what, name, f"{a:,.4g}", f"{b:,.4g}", f"{by:+.1f} {unit}", "WORSE" if bad else "")  # fmt: skip
            if bad:
                worse.append(
                    f"{old.engine}, {what}: {name} {a:,.4g} -> {b:,.4g} ({by:+.1f} {unit})"
                )
    return table, worse
