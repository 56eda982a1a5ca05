"""One measurement of each kind of workload, on an engine whose index is built.

Each answers metrics, the rules that were broken (notes), and raw arrays to keep.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import psutil

from quiver_bench import conditions, config, load, measure, truth
from quiver_bench.engines.base import ANY, NEAR, Counted, Data, Engine, Search, Session, Where
from quiver_bench.errors import MeasureError, UnsupportedError
from quiver_bench.recall import Allowed, recalls
from quiver_bench.records import Params, disturbed
from quiver_bench.truth import Floats, Truth

# Above this share of one core the client is what is measured.
CLIENT_CPU = 0.8
SHORT_SHARE = 0.001
RATE_MISSED = 0.05
POOL = 5000  # rows that a writing client carries with it
READ_BYTES = 1 << 20
PINGS = 300
LOOKS = 20
SHORTEST = 0.5  # seconds: processor time is counted in ticks of 0.01
PUT_BACK = ("restore", "insert")  # operations of crud that are not timed
COUNTED = 50  # queries of a condition whose pages and rows are counted


@dataclass(frozen=True)
class Measured:
    metrics: Mapping[str, float]
    notes: tuple[str, ...] = ()
    raw: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Setting:
    """What all measurements of a data set share."""

    data: Data
    k: int
    seed: int
    truths: Path  # folder of kept truths
    warm_seconds: float
    longest: float

    def truth(self, queries: Floats, where: Where | None = None) -> Truth:
        dataset = self.data.dataset
        passing = self.data.passing(where) if where else None
        return truth.cached(
            self.truths, dataset.digest, dataset.train, queries, self.k, dataset.metric, passing
        )

    def plan(self, **changes: Any) -> load.Plan:
        return load.Plan(
            **{"seed": self.seed, "warm_seconds": self.warm_seconds, "longest": self.longest}
            | changes
        )

    def ranks(self, rows: Sequence[int] | npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        at = np.asarray(rows) % self.data.dataset.rows
        return np.stack([self.data.any_rank[at], self.data.near_rank[at]], axis=1)


def _processes(pids: Iterable[int]) -> list[psutil.Process]:
    """These and their children, each once, by the kernel's lists of children."""
    pids = list(pids)
    found: dict[int, psutil.Process] = {}
    todo = list(pids)
    while todo:
        pid = todo.pop()
        if pid in found:
            continue
        try:
            found[pid] = psutil.Process(pid)
            lists = Path(f"/proc/{pid}/task").glob("*/children")
            todo += [int(child) for one in lists for child in one.read_text().split()]
        except (psutil.NoSuchProcess, OSError):
            if pid in pids:
                raise
    return list(found.values())


def bytes_read(pids: Iterable[int]) -> float:
    """What these processes and their children read from storage so far; nan when unknown."""
    total = math.nan
    try:
        for process in _processes(pids):
            try:
                read = process.io_counters().read_bytes
            except psutil.NoSuchProcess:  # its parent counts it from now on
                continue
            total = read if math.isnan(total) else total + read
    except (psutil.Error, AttributeError, OSError):
        return math.nan
    return total


def cpu_seconds(pids: Iterable[int]) -> float:
    """Processor time of these processes and their children so far; nan when unknown.

    Of children that have ended, too. One that ends between two looks is counted nowhere, so
    there is another look until two find the same processes.
    """
    pids = list(pids)
    if not pids:
        return math.nan
    for _ in range(LOOKS):
        try:
            before = _processes(pids)
            total = sum(sum(process.cpu_times()[:4]) for process in before)
            if {p.pid for p in before} == {p.pid for p in _processes(pids)}:
                return float(total)
        except psutil.NoSuchProcess:
            if not all(psutil.pid_exists(pid) for pid in pids):
                return math.nan
        except (psutil.Error, AttributeError, OSError):
            return math.nan
    return math.nan


def busy_seconds() -> float:
    """Processor time of the whole machine so far, with what its host took away (steal)."""
    times = psutil.cpu_times()
    idle = ("idle", "iowait", "guest", "guest_nice")  # guest is in user already
    return float(sum(value for name, value in times._asdict().items() if name not in idle))


@dataclass(frozen=True)
class Spent:
    """What was spent until now; nan where nobody can say."""

    at: float  # seconds, of the monotonic clock
    read_bytes: float
    cpu_s: float  # of the server
    pages_hit: float
    pages_read: float
    machine_s: float  # of all programs on the machine
    ours_s: float  # of server and clients

    @staticmethod
    def by(engine: Engine) -> Spent:
        pids = list(engine.pids())
        hit, read = engine.pages() or (math.nan, math.nan)
        return Spent(
            time.monotonic(), bytes_read(pids), cpu_seconds(pids), hit, read, busy_seconds(),
            cpu_seconds([os.getpid(), *pids]),
        )  # fmt: skip

    def until(self, end: Spent, queries: float) -> dict[str, float]:
        """What is known: bytes read, processor time and buffers of a query, and how many cores
        other programs had meanwhile."""
        seconds = end.at - self.at
        others = (end.machine_s - self.machine_s) - (end.ours_s - self.ours_s)
        found = {
            "read_bytes": end.read_bytes - self.read_bytes,
            "server_cpu_ms": (end.cpu_s - self.cpu_s) * 1e3 / queries,
            "pages_hit": (end.pages_hit - self.pages_hit) / queries,
            "pages_read": (end.pages_read - self.pages_read) / queries,
            "others_cores": others / max(seconds, 1e-9),
        }
        if seconds < SHORTEST:
            found |= dict.fromkeys(("server_cpu_ms", "others_cores"), math.nan)
        # What nobody can say is no 0; counters of a process that has ended may go back.
        return {name: max(0.0, value) for name, value in found.items() if not math.isnan(value)}


def searched(
    engine: Engine, setting: Setting, search: Search, queries: Floats, plan: load.Plan,
    exact: Truth, allowed: Allowed | None = None, values: tuple[Any, ...] = (), cold: bool = False,
) -> Measured:  # fmt: skip
    """Speed and recall of searches. allowed: see recalls().

    values: of each query the numbers of its condition. cold: each in a session of its own.
    """
    if plan.clients > 1 and not engine.several_clients:
        raise UnsupportedError("one client at a time")
    factory = engine.sessions(search)
    spent: list[Spent] = []

    def look() -> None:
        spent.append(Spent.by(engine))

    clients = load.searches(factory, queries, plan, values)
    if cold:
        clients = [(factory, load.ColdJob(factory, queries, plan, values))]
    longest = max(plan.seconds, plan.longest)
    sent = load.run(clients, engine.embedded, longest, look, look)
    dataset = setting.data.dataset
    answers = [pair for one in sent for pair in one.answers.items()]
    if not answers:
        raise MeasureError(f"no query was answered in {plan.longest:.0f} s")
    found = recalls(answers, dataset.train, queries, exact, dataset.metric, allowed)
    metrics = {**measure.speed(sent), **found, "answered": float(len(answers))}
    metrics |= _share(answers, queries, plan)
    if plan.rate:  # latency has the wait in a queue in it: its mean says nothing of speed
        metrics["qps"] = metrics["qps_wall"]
    metrics |= spent[0].until(spent[1], metrics["queries"])
    return Measured(metrics, tuple(_notes(engine, plan, sent, metrics)), measure.raw(sent))


def _share(
    answers: Sequence[tuple[int, list[int]]], queries: Floats, plan: load.Plan
) -> dict[str, float]:
    """How many queries the plan would have sent, and how many were answered, each counted once."""
    orders = [load.orders_of(client, len(queries), plan)[1] for client in range(plan.clients)]
    return {
        "asked_queries": float(len(np.unique(np.concatenate(orders)))),
        "answered_queries": float(len({query for query, _ in answers})),
    }


def _answers(count: float) -> str:
    return f"{count:.0f} answer{'s' if count != 1 else ''}"


def _notes(
    engine: Engine, plan: load.Plan, sent: Sequence[load.Sent], metrics: Mapping[str, float]
) -> Iterable[str]:
    if plan.warm_seconds > 0 and not all(one.settled for one in sent):
        yield "warm-up ended by its limit, not by stable times"
    if "read_bytes" not in metrics and not engine.embedded and engine.adapter != "null":
        yield "reads from storage cannot be counted"
    if metrics.get("read_bytes", 0) > READ_BYTES:
        yield f"read {metrics['read_bytes'] / 2**20:.0f} MB from storage while searching"
    if not engine.embedded and metrics["client_cpu"] > CLIENT_CPU and engine.adapter != "null":
        yield f"the client computed {metrics['client_cpu']:.0%} of the time"
    if plan.rate and metrics["qps"] < (1 - RATE_MISSED) * plan.rate:
        yield f"{plan.rate:,.0f} queries a second were due"
    if metrics["short_results"] > SHORT_SHARE * metrics["answered"]:
        yield f"{_answers(metrics['short_results'])} had fewer rows than there are"
    if metrics["duplicate_results"]:
        yield f"{_answers(metrics['duplicate_results'])} had a row twice"
    if metrics["wrong_results"]:
        yield f"{_answers(metrics['wrong_results'])} had rows that do not belong there"
    yield from disturbed(metrics)
    # Rows that are not there are no neighbors, either; a wrong metric finds k others.
    if metrics["recall"] < 0.1 and metrics["short_results"] < 0.5 * metrics["answered"]:
        yield "recall below 0.1: is this the metric of the data?"


def round_trip(engine: Engine, setting: Setting) -> float:
    """Median milliseconds of the cheapest thing a server can be asked; 0 without a server."""
    session = engine.sessions(Search(setting.k))()
    try:
        times = []
        for _ in range(PINGS):
            start = time.perf_counter_ns()
            session.ping()
            times.append(time.perf_counter_ns() - start)
        return float(np.median(times)) / 1e6
    except UnsupportedError:
        return 0.0
    finally:
        session.close()


def query(
    engine: Engine, setting: Setting, params: Params, clients: int, spec: config.Query
) -> Measured:
    queries = setting.data.dataset.queries
    plan = setting.plan(
        clients=clients, seconds=spec.seconds, rate=spec.rate,
        order=spec.client_queries, zipf=spec.zipf,
    )  # fmt: skip
    return searched(
        engine, setting, Search(setting.k, params), queries, plan, setting.truth(queries)
    )


def filtered(
    engine: Engine, setting: Setting, params: Params, share: float, correlation: str,
    spec: config.Filter,
) -> Measured:  # fmt: skip
    """Searches among a share of the rows: any, or those near (far) to where queries look."""
    dataset = setting.data.dataset
    where = Where(ANY if correlation == "none" else NEAR, max(1, round(share * dataset.rows)))
    queries = dataset.queries
    if correlation != "none":
        anchor = dataset.train[int(np.argmin(setting.data.near_rank))]
        order = np.argsort(truth.distances(queries, anchor, dataset.metric), kind="stable")
        part = max(1, len(queries) // 4)
        queries = queries[order[:part] if correlation == "positive" else order[-part:]]
    queries = queries[: spec.queries]
    search = Search(setting.k, params, where)
    passing = setting.data.passing(where)
    plans = _plans(_counted(engine, search, queries))
    done = searched(
        engine, setting, search, queries, setting.plan(), setting.truth(queries, where),
        lambda _, ids: passing[ids % dataset.rows],
    )  # fmt: skip
    return Measured(done.metrics, (*done.notes, *plans), done.raw)


def conditional(
    engine: Engine, setting: Setting, params: Params, case: conditions.Case, sessions: str
) -> Measured:
    """Searches that meet a case of a filter suite. sessions: warm, or cold (one a query).

    Beside speed and recall: the share of the rows that pass, the share of the k nearest rows of
    all that pass, and of a query the pages and rows that the server counts.
    """
    if sessions == "cold" and engine.embedded:
        raise UnsupportedError("lives in this process: it has no sessions that could be new")
    dataset, made = setting.data.dataset, setting.data.columns
    if made is None:
        raise MeasureError("the run has no columns for conditions")
    queries = dataset.queries[case.queries]
    passing = [made.passing(case.clauses, one) for one in case.values]
    exact = truth.conditioned(
        setting.truths, dataset.digest, dataset.train, queries, setting.k, dataset.metric, passing
    )
    near = setting.truth(dataset.queries).ids[case.queries]
    search = Search(setting.k, params, clauses=case.clauses)
    counted = _counted(engine, search, queries, case.values, sessions == "cold")
    done = searched(
        engine, setting, search, queries, setting.plan(), exact,
        lambda query, ids: passing[query][ids % dataset.rows], case.values, sessions == "cold",
    )  # fmt: skip
    metrics = {
        **done.metrics,
        "pass_share": float(np.mean([one.mean() for one in passing])),
        "near_share": float(np.mean([passing[i][near[i]].mean() for i in range(len(near))])),
    }
    notes = list(done.notes)
    if counted:
        for name in ("pages_hit", "pages_read", "pages_planning", "rows"):
            metrics[name] = float(np.mean([getattr(one, name) for one in counted]))
    notes += _plans(counted)
    return Measured(metrics, tuple(notes), done.raw)


def _plans(counted: Sequence[Counted]) -> list[str]:
    """The plans of these searches, the most frequent first."""
    plans = [one.plan for one in counted]
    kinds = sorted(set(plans), key=plans.count, reverse=True)
    return [f"plan of {plans.count(kind)} of {len(plans)}: {kind}" for kind in kinds]


def _counted(
    engine: Engine, search: Search, queries: Floats, values: tuple[Any, ...] = (),
    cold: bool = False,
) -> list[Counted]:  # fmt: skip
    """What some of the searches took by the server's own count; none when it does not count.

    values: of each query the numbers of its condition; none when the search has them itself.
    """
    found: list[Counted] = []
    factory = engine.sessions(search)
    session = factory()
    try:
        for i in range(min(COUNTED, len(queries))):
            if cold:
                session.close()
                session = factory()
            ask, asked = load.asking(session, queries[i : i + 1], values[i : i + 1])
            if not cold and not i:
                ask(asked[0])
            found.append(session.count(asked[0] if values else (asked[0], ())))
    except UnsupportedError:
        return found
    finally:
        session.close()
    return found


def check_ingest(engine: Engine, clients: int) -> None:
    """UnsupportedError when so many clients cannot insert under its index."""
    if not engine.indexes_inserts:
        raise UnsupportedError("rows come into its index later")
    if clients > 1 and not engine.reads_while_writing:
        raise UnsupportedError("one client inserts at a time")


def ingest(engine: Engine, setting: Setting, clients: int, spec: config.Ingest) -> Measured:
    """Inserts under an index that was empty, by so many clients, for a time."""
    dataset = setting.data.dataset
    vectors = dataset.train[:POOL]
    if spec.vectors == "random":
        rng = np.random.default_rng(setting.seed)
        vectors = rng.random(vectors.shape, dtype=np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    ranks = setting.ranks(np.arange(len(vectors)))
    factory = engine.sessions(Search(setting.k))
    jobs = [load.InsertJob(vectors, ranks, c, clients, spec.seconds) for c in range(clients)]
    sent = load.run([(factory, job) for job in jobs], engine.embedded, spec.seconds)
    speed = measure.speed(sent)
    speed["tps"] = sum(len(one.query) for one in sent) / spec.seconds
    return Measured(speed, (), measure.raw(sent))


def mixed(engine: Engine, setting: Setting, params: Params, spec: config.Mixed) -> Measured:
    """Searches while other clients replace rows by equal ones."""
    if not engine.reads_while_writing:
        raise UnsupportedError("no searches while rows change")
    dataset = setting.data.dataset
    factory = engine.sessions(Search(setting.k, params))
    plan = setting.plan(clients=spec.readers, seconds=spec.seconds)
    clients = load.searches(factory, dataset.queries, plan)
    for writer in range(spec.writers):
        rows = np.arange(writer, dataset.rows, spec.writers)[:POOL]
        job = load.ReplaceJob(
            rows, dataset.train[rows], setting.ranks(rows), dataset.rows, spec.seconds
        )
        clients.append((factory, job))
    sent = load.run(clients, engine.embedded, spec.seconds)
    readers, writers = sent[: spec.readers], sent[spec.readers :]
    answers = [pair for one in readers for pair in one.answers.items()]
    exact = setting.truth(dataset.queries)
    metrics = measure.speed(readers)
    metrics |= recalls(answers, dataset.train, dataset.queries, exact, dataset.metric)
    metrics |= _share(answers, dataset.queries, plan)
    metrics["tps"] = sum(len(one.query) for one in writers) / spec.seconds
    writes = np.concatenate([one.latency_ns for one in writers])
    if len(writes):
        metrics["write_p99_ms"] = float(np.percentile(writes, 99)) / 1e6
    return Measured(metrics, (), measure.raw(sent))


def churn(
    engine: Engine, setting: Setting, params: Params, spec: config.Churn
) -> Iterable[tuple[int, Measured]]:
    """Recall and speed before, and after each round in which a share of the rows is replaced."""
    dataset = setting.data.dataset
    n = dataset.rows
    live = np.arange(n, dtype=np.int64)
    rng = np.random.default_rng(setting.seed)
    exact = setting.truth(dataset.queries)
    search = Search(setting.k, params)
    for turn in range(spec.rounds + 1):
        tps = 0.0
        if turn:
            chosen = rng.choice(n, max(1, round(spec.share * n)), replace=False)
            job = load.ReplaceJob(live[chosen], dataset.train[chosen], setting.ranks(chosen), n)
            began = time.perf_counter()
            load.run([(engine.sessions(search), job)], engine.embedded)
            tps = len(chosen) / (time.perf_counter() - began)
            live[chosen] += n
            engine.settle()
        done = searched(
            engine, setting, search, dataset.queries, setting.plan(), exact,
            lambda _, ids: live[ids % n] == ids,
        )  # fmt: skip
        yield turn, Measured({**done.metrics, "tps": tps}, done.notes, done.raw)


def crud(engine: Engine, setting: Setting, params: Params, spec: config.Crud) -> Measured:
    """Reads, updates, deletes by number, searches by a condition and by vector: n each.

    An update moves a row's vector a little: a server may skip work for one that stays the same.
    Rows are as before at the end. Vectors that were moved are put back, and what was deleted is
    inserted again; neither is timed.
    """
    dataset = setting.data.dataset
    n = dataset.rows
    rng = np.random.default_rng(setting.seed)
    chosen = rng.choice(n, min(spec.n, n), replace=False)
    session = engine.sessions(Search(setting.k, params))()
    metrics: dict[str, float] = {}
    notes: list[str] = []
    raw: dict[str, npt.NDArray[Any]] = {}
    try:
        for name, operate in _operations(session, setting, chosen).items():
            try:
                limit = math.inf if name in PUT_BACK else spec.longest
                latencies = _timed(operate, len(chosen), limit)
            except UnsupportedError as error:
                if name not in PUT_BACK:
                    notes.append(f"{name}: {error}")
                continue
            if name in PUT_BACK:
                continue
            raw[f"{name}_us"] = (np.asarray(latencies) // 1000).astype(np.int32)
            metrics |= {f"{name}_{key}": v for key, v in measure.percentiles(latencies).items()}
            metrics[f"{name}_mean_ms"] = float(np.mean(latencies)) / 1e6
    finally:
        session.close()
    engine.settle()
    queries = dataset.queries
    plan = setting.plan(longest=spec.longest)
    done = searched(
        engine, setting, Search(setting.k, params), queries, plan, setting.truth(queries)
    )
    metrics |= {"vector_mean_ms": done.metrics["mean_ms"], "vector_count": done.metrics["queries"]}
    metrics |= {f"vector_{name}": done.metrics[name] for name in measure.PERCENTILES}
    of_search = ("recall", "recall_ann", "recall_ids", "qps", "asked_queries", "answered_queries")
    metrics |= {name: done.metrics[name] for name in of_search}
    return Measured(metrics, (*done.notes, *notes), raw)


def _operations(
    session: Session, setting: Setting, chosen: npt.NDArray[np.int64]
) -> dict[str, Callable[[int], Callable[[], object]]]:
    """Each answers what to call, and time, for the i-th row; encoding is before that."""
    train, data = setting.data.dataset.train, setting.data
    step = np.float32(load.MOVED * train[chosen].std())
    updated, deleted = [0], [0]

    def read(i: int) -> Callable[[], object]:
        row = int(chosen[i])

        def call() -> None:
            if not session.read(row):
                raise MeasureError(f"row {row} is not there")

        return call

    def find(i: int) -> Callable[[], object]:
        row = int(chosen[i])
        value = int(data.any_rank[row])

        def call() -> None:
            if list(session.find(value)) != [row]:
                raise MeasureError(f"a search for row {row} by its number found another")

        return call

    def update(i: int) -> Callable[[], object]:
        row = int(chosen[i])
        vector = train[row].copy()
        vector[i % len(vector)] += step
        encoded, ranks = session.encode(vector), data.ranks(row)
        updated[0] = i + 1
        return lambda: session.update(row, encoded, ranks)

    def restore(i: int) -> Callable[[], object]:
        row = int(chosen[i])
        if i >= updated[0]:
            return lambda: None
        encoded, ranks = session.encode(train[row]), data.ranks(row)
        return lambda: session.update(row, encoded, ranks)

    def delete(i: int) -> Callable[[], object]:
        deleted[0] = i + 1
        return lambda: session.delete(int(chosen[i]))

    def insert(i: int) -> Callable[[], object]:
        row = int(chosen[i])
        if i >= deleted[0]:
            return lambda: None
        encoded, ranks = session.encode(train[row]), data.ranks(row)
        return lambda: session.insert(row, encoded, ranks)

    return {
        "read": read, "condition": find, "update": update, "restore": restore, "delete": delete,
        "insert": insert,
    }  # fmt: skip


def _timed(operate: Callable[[int], Callable[[], object]], count: int, longest: float) -> list[int]:
    """Latencies in ns; fewer than count when they take longer than `longest` seconds."""
    latencies = []
    began = time.perf_counter()
    for i in range(count):
        call = operate(i)
        start = time.perf_counter_ns()
        call()
        latencies.append(time.perf_counter_ns() - start)
        if time.perf_counter() - began > longest:
            break
    return latencies
