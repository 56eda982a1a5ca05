"""What is measured, and what came out. Plain data; results.py keeps it in files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

SCHEMA = 1

Value = str | int | float | bool | None
Params = Mapping[str, Value]

OK = "ok"
FAILED = "failed"
MISSING = "missing"
UNSUPPORTED = "unsupported"


OTHERS = 0.5  # cores of other programs, above which numbers are remarked on


def canonical(value: object) -> str:
    """JSON that is the same for equal values."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def disturbed(metrics: Mapping[str, float]) -> tuple[str, ...]:
    """The note on numbers that were measured while other programs took much of the machine."""
    if metrics.get("others_cores", 0.0) <= OTHERS:
        return ()
    return (f"other programs took more than {OTHERS} cores",)


def unanswered(metrics: Mapping[str, float]) -> tuple[str, ...]:
    """The remark on a recall that rests on some of the queries, since time was over."""
    answered, asked = metrics.get("answered_queries", 0.0), metrics.get("asked_queries", 0.0)
    if answered >= asked:
        return ()
    return (f"answered {answered:,.0f} of {asked:,.0f} queries",)


@dataclass(frozen=True)
class Point:
    """All that makes two measurements the same one, repeated."""

    workload: str  # build, query, filter, ingest, crud, mixed, churn
    engine: str  # its name in the suite
    adapter: str
    version: str
    dataset: str
    rows: int
    dimensions: int
    metric: str
    k: int
    build: Params = field(default_factory=dict)
    query: Params = field(default_factory=dict)
    server: Params = field(default_factory=dict)
    clients: int = 1
    tier: str = ""
    load: Params = field(default_factory=dict)  # of the workload: loop, seconds, selectivity
    data: str = ""  # digest of the rows themselves: a name may come to stand for others
    protocol: Params = field(default_factory=dict)  # seed, limits, digest of the queries

    @property
    def id(self) -> str:
        """A short name of it: 16 hexadecimal digits of its SHA-256."""
        return hashlib.sha256(canonical([SCHEMA, asdict(self)]).encode()).hexdigest()[:16]

    def but(self, **changes: Any) -> Point:
        return replace(self, **changes)


@dataclass(frozen=True)
class Result:
    """One repetition of a point: the numbers, or why there are none."""

    point: Point
    rep: int
    status: str
    reason: str = ""
    metrics: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()  # rules of measuring that it broke
    settings: Params = field(default_factory=dict)  # as the engine says they are
    environment: str = ""
    host: str = ""
    label: str = ""  # of the adapter: "not run for real", "stands in for ..."
    started: str = ""  # UTC, ISO 8601

    @property
    def remarks(self) -> tuple[str, ...]:
        """The notes, with the one on other programs, which older results lack."""
        return tuple(dict.fromkeys((*self.notes, *disturbed(self.metrics))))

    def to_json(self) -> str:
        record = {"schema": SCHEMA, "kind": "result", "id": self.point.id, **asdict(self)}
        return json.dumps(record, sort_keys=True)

    @staticmethod
    def from_json(record: Mapping[str, Any]) -> Result:
        known = {name: record[name] for name in Result.__dataclass_fields__ if name in record}
        known["point"] = Point(**record["point"])
        known["notes"] = tuple(record.get("notes", ()))
        return Result(**known)
