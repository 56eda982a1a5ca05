"""Suites: what to run, written in YAML and checked here."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from quiver_bench import conditions
from quiver_bench.engines import ADAPTERS, adapter
from quiver_bench.errors import ConfigError
from quiver_bench.records import Params, Value

Grid = Mapping[str, Value | list[Value]]

# Adapters whose rows have one place in a server: two of them would search each other's.
ONE_COLLECTION = ("qdrant", "opensearch", "elasticsearch", "weaviate")


class Model(BaseModel):
    """Unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Made(Model):
    """A set to be made: see synthetic.py."""

    rows: int = Field(ge=100)
    dimensions: int = Field(ge=2)
    metric: Literal["euclidean", "angular"] = "angular"
    queries: int = 1000
    seed: int = 1


class DatasetSpec(Model):
    """A data set by name or file, or one to be made."""

    name: str
    rows: int | None = Field(default=None, ge=100)
    queries: int = Field(default=1000, ge=1)
    make: Made | None = None


class EngineSpec(Model):
    """An engine, what it builds and how it is asked."""

    id: str = Field(pattern=r"^[\w.+-]+$", max_length=48)  # becomes a folder, a database
    adapter: str
    options: dict[str, Value] = {}
    server: dict[str, Value] = {}
    build: dict[str, Value | list[Value]] = {}  # all combinations
    builds: list[dict[str, Value]] = []  # or just these
    query: dict[str, Value | list[Value]] = {}
    filter: dict[str, Value] = {}  # added to query where there is a condition
    why: str = ""

    @model_validator(mode="after")
    def _known(self) -> EngineSpec:
        if self.adapter not in ADAPTERS:
            raise ValueError(f"{self.id}: no adapter {self.adapter}")
        if self.build and self.builds:
            raise ValueError(f"{self.id}: build and builds exclude each other")
        try:
            build, search = adapter(self.adapter).keys(self.options)
        except ConfigError as error:
            raise ValueError(f"{self.id}: {error}") from error
        for part, known in (
            ([*self.build, *itertools.chain(*self.builds)], build),
            ([*self.query, *self.filter], search),
        ):
            unknown = [key for key in part if key not in known]
            if unknown:
                there = f"there are {', '.join(known)}" if known else "there are none"
                raise ValueError(f"{self.id}: no parameter {unknown[0]}; {there}")
        return self

    def all_builds(self) -> list[Params]:
        """Those that are possible: a graph's ef_construction is 2m at least."""
        found: list[Params] = [*self.builds] or [*combinations(self.build)]
        return [
            b for b in found if _number(b, "ef_construction", 1 << 30) >= 2 * _number(b, "m", 0)
        ]

    def all_queries(self) -> list[Params]:
        return list(combinations(self.query))


def _number(params: Params, name: str, default: int) -> int:
    value = params.get(name)
    return default if value is None else int(value)


class OfSome(Model):
    """A workload of all engines, or of those named."""

    engines: list[str] = []
    reps: int = Field(default=0, ge=0)  # 0: the suite's


class Query(OfSome):
    kind: Literal["query"]
    clients: list[int] = [1]
    seconds: float = 0.0  # 0: every query once
    rate: float = 0.0  # of all clients together; 0: closed loop
    client_queries: Literal["shuffled", "identical", "zipf", "fresh"] = "shuffled"  # load.ORDERS
    zipf: float = Field(default=1.0, gt=0)  # exponent of that order
    tiers: list[str] = []  # "shared_buffers:memory" in MB


class Filter(OfSome):
    kind: Literal["filter"]
    selectivity: list[float] = [0.001, 0.01, 0.1, 0.5]
    correlation: list[Literal["none", "positive", "negative"]] = ["none", "positive", "negative"]
    queries: int = 200


class Conditions(OfSome):
    """The filter suites of conditions.py."""

    kind: Literal["conditions"]
    suites: list[Literal["grid", "labels", "joined", "text", "tags"]] = ["grid", "labels", "joined",
                                                                        "text", "tags"]  # fmt: skip
    selectivity: list[Annotated[float, Field(gt=0, le=1)]] = [*conditions.SHARES]  # of grid
    correlation: list[float] = [*conditions.CORRELATIONS]
    queries: int = Field(default=100, ge=1)
    sessions: list[Literal["warm", "cold"]] = ["warm", "cold"]

    @model_validator(mode="after")
    def _made(self) -> Conditions:
        others = set(self.correlation) - set(conditions.CORRELATIONS)
        if others:
            raise ValueError(f"correlation: columns are made for {conditions.CORRELATIONS} only")
        return self


class Ingest(OfSome):
    kind: Literal["ingest"]
    clients: list[int] = [1, 2, 4]
    seconds: float = 10.0
    vectors: Literal["data", "random"] = "data"


class Crud(OfSome):
    kind: Literal["crud"]
    n: int = Field(default=1000, ge=1)
    longest: float = 20.0  # seconds an operation


class Mixed(OfSome):
    kind: Literal["mixed"]
    readers: int = 1
    writers: int = 1
    seconds: float = 10.0


class Churn(OfSome):
    kind: Literal["churn"]
    rounds: int = 3
    share: float = Field(default=0.2, gt=0, lt=1)  # of the rows, replaced each round


Workload = Query | Filter | Conditions | Ingest | Crud | Mixed | Churn


class ReportSpec(Model):
    targets: list[float] = [0.90, 0.95, 0.99]
    baseline: str = ""


class Suite(Model):
    """One file."""

    name: str
    about: str = ""
    k: int = 10
    reps: int = Field(default=3, ge=1)
    build_reps: int = Field(default=1, ge=1)
    seed: int = 1
    warm_seconds: float = 5.0
    longest: float = 60.0  # seconds of a measurement of searches
    datasets: list[DatasetSpec] = Field(min_length=1)
    engines: list[EngineSpec] = Field(min_length=1)
    workloads: list[Workload]
    report: ReportSpec = ReportSpec()

    @model_validator(mode="after")
    def _unique(self) -> Suite:
        names = [engine.id for engine in self.engines]
        places = [re.sub(r"\W", "_", name.lower()) for name in names]  # as a database is called
        double = {n for n, p in zip(names, places, strict=True) if places.count(p) > 1}
        if double:
            raise ValueError(f"engines of the same name: {', '.join(sorted(double))}")
        urls: dict[object, str] = {}
        for engine in self.engines:
            url = engine.options.get("url")
            if url and engine.adapter in ONE_COLLECTION:
                if url in urls:
                    raise ValueError(f"{urls[url]} and {engine.id} need a server each, not {url}")
                urls[url] = engine.id
        for workload in self.workloads:
            unknown = set(workload.engines) - set(names)
            if unknown:
                raise ValueError(f"{workload.kind}: no engines {', '.join(sorted(unknown))}")
        return self


def combinations(grid: Grid) -> Iterable[Params]:
    """Every combination of the values, in the order of the lists."""
    lists = [value if isinstance(value, list) else [value] for value in grid.values()]
    for values in itertools.product(*lists):
        yield dict(zip(grid, values, strict=True))


def names() -> list[str]:
    """The suites that come along."""
    folder = resources.files("quiver_bench") / "suites"
    return sorted(
        f.name.removesuffix(".yaml") for f in folder.iterdir() if f.name.endswith(".yaml")
    )


def parse(text: str, source: str) -> Suite:
    try:
        return Suite.model_validate(yaml.safe_load(text))
    except yaml.YAMLError as error:
        raise ConfigError(f"{source} is not YAML: {error}") from error
    except ValidationError as error:
        lines = [
            ": ".join(t for t in (".".join(str(part) for part in one["loc"]), one["msg"]) if t)
            for one in error.errors()
        ]
        raise ConfigError(f"{source}: " + "; ".join(lines)) from error


def read(name: str) -> Suite:
    """A suite that comes along, by name, or a file."""
    if name in names():
        folder = resources.files("quiver_bench") / "suites"
        return parse((folder / f"{name}.yaml").read_text(), name)
    path = Path(name)
    if not path.is_file():
        raise ConfigError(f"no suite {name}: there are {', '.join(names())}, or give a file")
    return parse(path.read_text(), name)


def narrowed(
    suite: Suite, only: Iterable[str] = (), rows: int | None = None, reps: int | None = None,
    queries: int | None = None, data: str | None = None,
) -> Suite:  # fmt: skip
    """The suite with fewer engines, rows, repetitions or queries, or with other data."""
    changed: dict[str, object] = {}
    wanted = list(only)
    if wanted:
        chosen = [e for e in suite.engines if any(w in (e.id, e.adapter) for w in wanted)]
        unknown = [w for w in wanted if all(w not in (e.id, e.adapter) for e in suite.engines)]
        if unknown:
            raise ConfigError(
                f"suite {suite.name} has no engine {', '.join(unknown)};"
                f" it has {', '.join(engine.id for engine in suite.engines)}"
            )
        changed["engines"] = chosen
        there = {engine.id for engine in chosen}
        changed["workloads"] = [
            one.model_copy(update={"engines": [e for e in one.engines if e in there]})
            for one in suite.workloads
            if not one.engines or there & set(one.engines)
        ]
    if reps:
        changed["reps"] = reps
    datasets = suite.datasets
    if data:
        first = datasets[0]
        datasets = [DatasetSpec(name=data, rows=first.rows, queries=first.queries)]
    if rows or queries:
        datasets = [
            one.model_copy(update={"rows": rows or one.rows, "queries": queries or one.queries})
            for one in datasets
        ]
    changed["datasets"] = datasets
    return suite.model_copy(update=changed)
