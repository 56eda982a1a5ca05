"""Runs a suite: engines in turn, repetition after repetition, so that drift hits all alike.

For every data set and every round (the first build of each engine, then the second, ...):
build each engine's index; then of every workload repetition 1 of all engines, repetition 2,
and so on. What changes rows comes last. What is in the store already is not done again. An
engine that fails is out until the next round, and its points are kept as failed, with why.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from quiver_bench import (
    conditions,
    config,
    datasets,
    environment,
    registry,
    synthetic,
    truth,
    workload,
)
from quiver_bench.console import Step, duration, say
from quiver_bench.datasets import Dataset
from quiver_bench.engines import adapter
from quiver_bench.engines.base import ANY, Built, Data, Engine, Search, Where
from quiver_bench.errors import (
    BenchError,
    ConfigError,
    DataError,
    EngineError,
    MissingError,
    UnsupportedError,
)
from quiver_bench.records import (
    FAILED,
    MISSING,
    OK,
    UNSUPPORTED,
    Params,
    Point,
    Result,
    canonical,
    disturbed,
    unanswered,
)
from quiver_bench.results import Store
from quiver_bench.views import parameters
from quiver_bench.workload import Measured, Setting

Task = Callable[[], Measured]


@dataclass
class Seat:
    """An engine in a run."""

    spec: config.EngineSpec
    engine: Engine
    version: str = ""
    out: str = ""  # why it takes no part in this round
    dirty: bool = True  # its rows are not those of the data set
    running: bool = False
    loaded_s: float = 0.0
    settings: Params = field(default_factory=dict)
    plans: set[str] = field(default_factory=set)  # searches whose plan is checked


class Progress:
    """How many points there are, and how long the rest will take: builds apart, which take longer."""

    def __init__(self, points: Sequence[tuple[str, bool]]) -> None:
        """points: the workload of each, and whether an earlier run has measured it."""
        self.total, self.done = len(points), 0
        self.todo = Counter(kind == "build" for kind, before in points if not before)
        self.measured: Counter[bool] = Counter()
        self.spent = {True: 0.0, False: 0.0}
        self.last = time.monotonic()

    def line(self, text: str, kind: str, again: bool = False) -> None:
        """again: what was measured before is built once more, which counts as no progress."""
        self.done += 1
        now = time.monotonic()
        if not again:
            self.measured[kind == "build"] += 1
            self.spent[kind == "build"] += now - self.last
        self.last = now
        say(f"  [{self.done}/{self.total}{self._left()}] {text}")

    def _left(self) -> str:
        """Empty as long as nothing like what is left was measured."""
        left = 0.0
        for build, todo in self.todo.items():
            if todo > self.measured[build]:
                if not self.measured[build]:
                    return ""
                mean = self.spent[build] / self.measured[build]
                left += mean * (todo - self.measured[build])
        return f", {duration(left) if left else '0 s'} left"

    def skip(self, kind: str) -> None:
        """One that will not be measured: its engine is gone."""
        self.done += 1
        self.todo[kind == "build"] -= 1


class Runner:
    """One run of a suite into a folder."""

    def __init__(self, suite: config.Suite, store: Store, home: Path, top: Path | None) -> None:
        self.suite, self.store, self.home, self.top = suite, store, home, top
        self.facts = environment.describe(top)
        self.seats = [
            Seat(
                spec, adapter(spec.adapter)(spec.id, spec.options, home / "engines" / spec.id, top)
            )
            for spec in suite.engines
        ]
        self.failures = 0
        self.cases: dict[tuple[str, str, str, int], dict[str, conditions.Case]] = {}

    def run(self, fresh: bool = False) -> int:
        """Answers how many points failed. fresh: what was measured before is forgotten."""
        sets = self.sets()  # before servers are built for what cannot be had
        try:
            for seat in self.seats:
                self.start(seat)
            self.any_engine()
            if fresh:
                self.store.forget()
            self.store.environment(
                {**self.facts, "suite": self.suite.name, "report": self.suite.report.model_dump()}
            )
            for spec in sets:
                self.run_dataset(self.dataset(spec))
        finally:
            for seat in self.seats:
                self.stop(seat)
        return self.failures

    # Engines.

    def any_engine(self) -> None:
        """MissingError when this machine has none of them: nothing would be measured."""
        if all(seat.out.startswith("missing") for seat in self.seats):
            why = "; ".join(f"{s.spec.id}: {s.out.removeprefix('missing: ')}" for s in self.seats)
            raise MissingError(f"there is nothing to measure: {why}")

    def start(self, seat: Seat) -> None:
        seat.out = ""
        seat.running, seat.dirty = True, True  # half of it may run: it is stopped in any case
        try:
            seat.version = seat.engine.start(seat.spec.server)
        except Exception as error:
            kind = "missing" if isinstance(error, MissingError) else "failed to start"
            seat.out = f"{kind}: {_words(error)}"
            say(f"  {seat.spec.id}: {seat.out}")

    def stop(self, seat: Seat) -> None:
        if not seat.running:
            return
        seat.running = False
        try:
            seat.engine.stop()
        except Exception as error:
            say(f"  {seat.spec.id}: could not be stopped: {_words(error)}")

    def fail(self, seat: Seat, point: Point, rep: int, error: BaseException) -> None:
        """Keep why there are no numbers; an engine that is gone is out."""
        unsupported = isinstance(error, UnsupportedError)
        status = UNSUPPORTED if unsupported else FAILED
        reason = _words(error)
        if not unsupported:
            self.failures += 1
            alive = False
            try:
                alive = seat.engine.alive()
            except Exception as other:
                reason += f"; {_words(other)}"
            if not alive:
                reason = f"the server is gone: {reason}"
                seat.out = reason
                say(f"  {seat.spec.id}: out until its next build: {reason}")
        self.keep(seat, point, rep, status, reason)

    def keep(self, seat: Seat, point: Point, rep: int, status: str, reason: str = "",
             measured: Measured | None = None) -> None:  # fmt: skip
        self.store.add(
            Result(
                point, rep, status, reason,
                metrics=dict(measured.metrics) if measured else {},
                notes=measured.notes if measured else (),
                settings=dict(seat.settings) if point.workload == "build" else {},
                environment=self.facts["id"], host=self.facts["host"],
                label=seat.engine.label, started=datetime.now(UTC).isoformat(timespec="seconds"),
            ),
            measured.raw if measured else None,
        )  # fmt: skip

    # Data.

    def sets(self) -> list[config.DatasetSpec]:
        """The data sets that can be had. One that cannot is a failure, unless it is the only one."""
        found: list[config.DatasetSpec] = []
        for spec in self.suite.datasets:
            try:
                self.have(spec)
                found.append(spec)
            except (ConfigError, DataError) as error:
                if len(self.suite.datasets) == 1:
                    raise
                say(f"  going on without {spec.name}: {error}")
                self.failures += 1
        if not found:
            raise DataError("none of the suite's data sets can be had")
        return found

    def have(self, spec: config.DatasetSpec) -> None:
        """Make or download its file, unless it is here."""
        if spec.make:
            made = spec.make
            path = self.home / "download" / f"{spec.name}.hdf5"
            if path.is_file():
                synthetic.check(
                    path, made.rows, made.dimensions, made.metric, made.queries, made.seed
                )
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                with Step(f"make {spec.name}") as step:
                    synthetic.make(
                        path, made.rows, made.dimensions, made.metric, made.queries, made.seed,
                        update=step.update,
                    )  # fmt: skip
        elif not registry.is_here(spec.name, self.top, self.home):
            with Step(f"get {spec.name}") as step:
                registry.file_of(spec.name, self.top, self.home, step.update)

    def dataset(self, spec: config.DatasetSpec) -> Dataset:
        with Step(f"read {spec.name}") as step:
            found = registry.get(spec.name, self.top, self.home, step.update)
            step.note = f"{found.metric}, {found.dimensions} dimensions"
            return found.first(spec.rows, spec.queries)

    def run_dataset(self, dataset: Dataset) -> None:
        suite = self.suite
        data = Data.of(dataset, suite.seed)
        if any(spec.kind == "conditions" for spec in suite.workloads):
            with Step("columns for conditions"):
                data = data.with_columns(suite.seed)
        setting = Setting(
            data, suite.k, suite.seed, self.home / "truth", suite.warm_seconds, suite.longest
        )
        with Step(f"exact neighbors of {len(dataset.queries):,} queries"):
            setting.truth(dataset.queries)
        self.digests = dataset.digest, datasets.digest(dataset.queries)
        for seat in self.seats:
            seat.dirty = True
        rounds = max(len(seat.spec.all_builds()) for seat in self.seats)
        points = [
            (point.workload, self.done(point, rep))
            for number in range(rounds)
            for _, point, rep, _ in self.points(dataset, number)
        ]
        self.progress = Progress(points)
        before = sum(done for _, done in points)
        if before:
            say(f"  going on: {before} of {len(points)} were measured before (--fresh forgets)")
        for number in range(rounds):
            self.run_round(setting, number)

    def point(self, seat: Seat, dataset: Dataset, build: Params) -> Point:
        return Point(
            workload="build", engine=seat.spec.id, adapter=seat.spec.adapter,
            version=seat.version, dataset=dataset.name, rows=dataset.rows,
            dimensions=dataset.dimensions, metric=dataset.metric, k=self.suite.k,
            build=dict(build) | _options(seat.spec), server=dict(seat.spec.server),
            data=self.digests[0], protocol=self.protocol(seat.spec, None),
        )  # fmt: skip

    def points(self, dataset: Dataset, number: int) -> Iterator[tuple[Seat, Point, int, Any]]:
        """Everything of a round, in order: the seat, the point, the repetition, its workload.

        In one order for counting and for running.
        """
        suite = self.suite
        seats = [s for s in self.seats if number < len(s.spec.all_builds())]
        for rep in range(suite.build_reps):
            for seat in seats:
                yield seat, self.point(seat, dataset, seat.spec.all_builds()[number]), rep, None
        for spec in sorted(suite.workloads, key=lambda w: ORDER.index(w.kind)):
            if spec.kind in FIRST_ROUND_ONLY and number:
                continue
            reps = 1 if spec.kind in ONCE else spec.reps or suite.reps
            for rep in range(reps):
                for seat in seats:
                    if spec.engines and seat.spec.id not in spec.engines:
                        continue
                    base = self.point(seat, dataset, seat.spec.all_builds()[number])
                    for point in _points_of(spec, seat.spec, base):
                        protocol = self.protocol(seat.spec, spec)
                        yield seat, point.but(protocol=protocol), rep, spec

    def protocol(self, engine: config.EngineSpec, spec: config.Workload | None) -> Params:
        """What else decides the numbers: measured otherwise, they are other ones. None: a build."""
        suite, kind = self.suite, spec.kind if spec else "build"
        found = _other_options(engine)
        if kind in VERSIONS:
            found["version"] = VERSIONS[kind]
        if spec is None:
            return found
        return {
            "seed": suite.seed, "warm_seconds": suite.warm_seconds,
            "longest": getattr(spec, "longest", suite.longest),
            "asked": getattr(spec, "queries", None), "queries": self.digests[1], **found,
        }  # fmt: skip

    # Rounds.

    def done(self, point: Point, rep: int) -> bool:
        return self.store.done(self.facts["host"], point.id, rep)

    def run_round(self, setting: Setting, number: int) -> None:
        dataset = setting.data.dataset
        todo = list(self.points(dataset, number))
        needed = {seat.spec.id for seat, point, rep, _ in todo if not self.done(point, rep)}
        ready: set[str] = set()
        for seat in self.seats:
            if seat.out and not seat.out.startswith("missing"):
                self.stop(seat)
                self.start(seat)
        for seat, point, rep, spec in todo:
            if seat.spec.id not in needed or (self.done(point, rep) and spec is not None):
                self.progress.done += 1
                continue
            if seat.out:
                status = MISSING if seat.out.startswith("missing") else FAILED
                self.keep(seat, point, rep, status, seat.out.removeprefix("missing: "))
                self.failures += status == FAILED
                self.progress.skip(point.workload)
                continue
            if spec is None and seat.spec.id in ready and self.done(point, rep):
                self.progress.done += 1
                continue
            self.measure(seat, point, rep, self.task(setting, seat, point, spec))
            if spec is None:
                ready.add(seat.spec.id)

    def measure(self, seat: Seat, point: Point, rep: int, task: Task) -> None:
        title = _title(point)
        again = self.done(point, rep)
        if again:
            title += " (again, for what is not measured yet)"
        try:
            measured = task()
        except Exception as error:
            self.fail(seat, point, rep, error)
            self.progress.line(f"{title}: {_words(error)}", point.workload, again)
            if point.workload == "build" and not seat.out:
                seat.out = f"no index: {_words(error)}"
            return
        if not again:
            self.keep(seat, point, rep, OK, measured=measured)
        self.progress.line(f"{title}: {_numbers(point, measured)}", point.workload, again)
        for note in (*measured.notes, *unanswered(measured.metrics)):
            say(f"      {note}")

    def task(self, setting: Setting, seat: Seat, point: Point, spec: Any) -> Task:
        if spec is None:
            return lambda: self.build(setting, seat, point)
        if spec.kind == "query":
            return lambda: self.search(setting, seat, point, spec)
        if spec.kind == "filter":
            return lambda: self.filtered(setting, seat, point, spec)
        if spec.kind == "conditions":
            return lambda: self.conditional(setting, seat, point, spec)
        if spec.kind == "ingest":
            return lambda: self.ingest(setting, seat, point, spec)
        if spec.kind == "crud":
            return lambda: self.crud(setting, seat, point, spec)
        if spec.kind == "mixed":
            return lambda: self.dirtying(setting, seat, point, spec)
        return lambda: self.churn(setting, seat, point, spec)

    def build(self, setting: Setting, seat: Seat, point: Point) -> Measured:
        if seat.dirty:
            seat.loaded_s = seat.engine.load(setting.data)
            seat.dirty = False
        before = workload.Spent.by(seat.engine)
        built: Built = seat.engine.build(point.build)
        spent = before.until(workload.Spent.by(seat.engine), 1)
        seat.settings = seat.engine.settings()
        seat.plans.clear()
        metrics = {
            "load_s": seat.loaded_s + built.loading_s,
            "build_s": built.seconds,
            "index_bytes": float(built.index_bytes),
            "table_bytes": float(built.table_bytes),
            "create_s": built.seconds + seat.loaded_s + built.loading_s,
        }
        if "others_cores" in spent:
            metrics["others_cores"] = spent["others_cores"]
        trip = workload.round_trip(seat.engine, setting)
        if trip:
            metrics["ping_ms"] = trip
        notes = (*built.notes, *disturbed(metrics))
        if built.mode == "insert":
            notes = (*notes, "index made as rows arrive: build is load and index")
        return Measured(metrics, notes)

    def check_plan(self, seat: Seat, search: Search) -> None:
        """Once a build and kind of search."""
        key = f"{sorted(search.params.items())} {search.where is None}"
        if key not in seat.plans:
            seat.engine.check_plan(search)
            seat.plans.add(key)

    def filtered(self, setting: Setting, seat: Seat, point: Point, spec: config.Filter) -> Measured:
        share, correlation = point.load["selectivity"], point.load["correlation"]
        self.check_plan(seat, Search(setting.k, point.query, Where(ANY, setting.data.dataset.rows)))
        return workload.filtered(
            seat.engine, setting, point.query, float(str(share)), str(correlation), spec
        )

    def conditional(
        self, setting: Setting, seat: Seat, point: Point, spec: config.Conditions
    ) -> Measured:
        load = point.load
        case = self.case(setting, spec, str(load["suite"]), str(load["case"]))
        self.check_plan(seat, Search(setting.k, point.query, Where(ANY, setting.data.dataset.rows)))
        return workload.conditional(seat.engine, setting, point.query, case, str(load["sessions"]))

    def case(
        self, setting: Setting, spec: config.Conditions, suite: str, name: str
    ) -> conditions.Case:
        """The case of that name, made once for all engines."""
        data, made = setting.data, setting.data.columns
        assert made is not None
        key = (*self.digests, suite, spec.queries)
        if key not in self.cases:
            exact = setting.truth(data.dataset.queries)
            anchor = data.dataset.train[int(np.argmin(data.near_rank))]
            distance = truth.distances(data.dataset.queries, anchor, data.dataset.metric)
            maker = conditions.Cases(
                made, np.argsort(distance, kind="stable"), exact.ids[:, 0], spec.queries,
                self.suite.seed, spec.selectivity, spec.correlation,
            )  # fmt: skip
            self.cases[key] = {case.name: case for case in maker.of(suite)}
        return self.cases[key][name]

    def search(self, setting: Setting, seat: Seat, point: Point, spec: config.Query) -> Measured:
        self.check_plan(seat, Search(setting.k, point.query))
        if not point.tier:
            return workload.query(seat.engine, setting, point.query, point.clients, spec)
        buffers, memory = (int(part) for part in point.tier.split(":"))
        try:
            method = seat.engine.limit_memory(buffers, memory)
            done = workload.query(seat.engine, setting, point.query, point.clients, spec)
        except Exception as error:
            if not seat.engine.out_of_memory():
                raise
            raise EngineError(f"the memory cgroup killed the server: {_words(error)}") from error
        finally:
            seat.engine.limit_memory(0, 0)
        notes = tuple(note for note in done.notes if "from storage" not in note)
        return Measured(done.metrics, (*notes, f"tier by {method}"), done.raw)

    def ingest(self, setting: Setting, seat: Seat, point: Point, spec: config.Ingest) -> Measured:
        workload.check_ingest(seat.engine, point.clients)
        seat.dirty = True
        seat.engine.empty(point.build)
        return workload.ingest(seat.engine, setting, point.clients, spec)

    def crud(self, setting: Setting, seat: Seat, point: Point, spec: config.Crud) -> Measured:
        if seat.dirty:
            self.build(setting, seat, point)
        self.check_plan(seat, Search(setting.k, point.query))
        seat.dirty = True  # until all its rows are back
        done = workload.crud(seat.engine, setting, point.query, spec)
        seat.dirty = False
        return done

    def dirtying(self, setting: Setting, seat: Seat, point: Point, spec: config.Mixed) -> Measured:
        if seat.dirty:
            self.build(setting, seat, point)
        self.check_plan(seat, Search(setting.k, point.query))
        seat.dirty = True
        return workload.mixed(seat.engine, setting, point.query, spec)

    def churn(self, setting: Setting, seat: Seat, point: Point, spec: config.Churn) -> Measured:
        """All rounds at once; those before the last are kept as points of their own."""
        if seat.dirty:
            self.build(setting, seat, point)
        self.check_plan(seat, Search(setting.k, point.query))
        seat.dirty = True
        last = Measured({})
        for turn, last in workload.churn(seat.engine, setting, point.query, spec):
            if turn < spec.rounds:
                of_turn = point.but(load={**point.load, "round": turn})
                self.keep(seat, of_turn, 0, OK, measured=last)
        return last


ORDER = ("query", "filter", "conditions", "crud", "mixed", "churn", "ingest")
FIRST_ROUND_ONLY = ("filter", "conditions", "mixed", "churn", "ingest")
ONCE = ("crud", "churn", "mixed", "ingest")
# What is measured: results of another version are not used again.
VERSIONS = {
    "build": 2, "query": 2, "filter": 2, "conditions": 3, "crud": 3, "mixed": 2, "churn": 2,
    "ingest": 2,
}  # fmt: skip
OF_INDEX = ("index", "type", "quantization")


def _options(spec: config.EngineSpec) -> dict[str, Any]:
    """What an engine's options say about its index, so that results say it too."""
    return {name: spec.options[name] for name in OF_INDEX if name in spec.options}


def _other_options(spec: config.EngineSpec) -> dict[str, Any]:
    """The rest, as one text: which server it is, and how it is made. A url may have a password."""
    rest = {
        name: hashlib.sha256(str(value).encode()).hexdigest()[:16] if name == "url" else value
        for name, value in spec.options.items()
        if name not in (*OF_INDEX, "api_key") and value not in (None, "")
    }
    return {"options": canonical(rest)} if rest else {}


def _points_of(spec: Any, engine: config.EngineSpec, base: Point) -> Iterator[Point]:
    """The points of a workload for one engine and build."""
    queries = engine.all_queries()
    if spec.kind == "query":
        load = {"loop": "open" if spec.rate else "closed", "rate": spec.rate,
                "seconds": spec.seconds, "order": spec.client_queries}  # fmt: skip
        if spec.client_queries == "zipf":
            load["zipf"] = spec.zipf
        for params in queries:
            for tier in spec.tiers or [""]:
                for clients in spec.clients:
                    yield base.but(
                        workload="query", query=params, clients=clients, tier=tier, load=load
                    )
    elif spec.kind == "filter":
        params = {**queries[len(queries) // 2], **engine.filter}
        for correlation in spec.correlation:
            for share in spec.selectivity:
                load = {"selectivity": share, "correlation": correlation}
                yield base.but(workload="filter", query=params, load=load)
    elif spec.kind == "conditions":
        params = {**queries[len(queries) // 2], **engine.filter}
        for suite in spec.suites:
            for name in conditions.names(suite, (*spec.selectivity,), (*spec.correlation,)):
                for sessions in spec.sessions:
                    load = {"suite": suite, "case": name, "sessions": sessions}
                    yield base.but(workload="conditions", query=params, load=load)
    elif spec.kind == "ingest":
        for clients in spec.clients:
            load = {"seconds": spec.seconds, "vectors": spec.vectors}
            yield base.but(workload="ingest", clients=clients, load=load)
    elif spec.kind == "crud":
        for params in queries:
            yield base.but(workload="crud", query=params, load={"n": spec.n})
    elif spec.kind == "mixed":
        load = {"writers": spec.writers, "seconds": spec.seconds}
        params = queries[len(queries) // 2]
        yield base.but(workload="mixed", query=params, clients=spec.readers, load=load)
    else:
        load = {"round": spec.rounds, "share": spec.share}
        yield base.but(workload="churn", query=queries[len(queries) // 2], load=load)


def _words(error: BaseException) -> str:
    """One line of an error."""
    text = " ".join(str(error).split())
    return text if isinstance(error, BenchError) and text else f"{type(error).__name__}: {text}"


def _title(point: Point) -> str:
    parts = [point.engine]
    parts += [text for text in (parameters(point.build), parameters(point.query)) if text]
    if point.workload != "build":
        parts.append(f"{point.workload}, {point.clients} client{'s' if point.clients > 1 else ''}")
    if point.tier:
        parts.append(f"tier {point.tier} MB")
    if point.workload == "filter":
        parts.append(f"{point.load['selectivity']:.1%} {point.load['correlation']}")
    if point.workload == "conditions":
        parts.append("{suite}: {case}, {sessions}".format(**point.load))
    if point.load.get("order") in ("zipf", "fresh"):
        parts.append(str(point.load["order"]))
    return ", ".join(parts)


def _numbers(point: Point, measured: Measured) -> str:
    m = measured.metrics
    if point.workload == "build":
        return f"built in {m['build_s']:.1f} s, {m['index_bytes'] / 2**20:.1f} MB"
    if point.workload == "ingest":
        return f"{m['tps']:,.0f} rows/s"
    text = f"recall {m['recall']:.4f}, {m['qps']:,.0f} QPS"
    if "p99_ms" in m:
        text += f", p50 {m['p50_ms']:.2f} ms, p99 {m['p99_ms']:.2f} ms (n={m['queries']:.0f})"
    return text + (f", {m['tps']:,.0f} rows/s replaced" if m.get("tps") else "")
