"""Clients that send queries: how they wait for each other, when they send, what they keep.

closed loop  a client sends its next query when the answer to the one before is there
open loop    queries are due at a fixed rate; latency counts from when one was due, so that
             a queue shows

All clients connect and warm up, then wait at a barrier; time is from the barrier on.
Latencies are taken with perf_counter_ns around Session.search() alone.
"""

from __future__ import annotations

import multiprocessing
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from quiver_bench.engines.base import Session, SessionFactory
from quiver_bench.errors import BenchError, EngineError, UnsupportedError
from quiver_bench.truth import Floats

# Warm until the means of two windows of queries differ by less than this.
CHUNK, WINDOW, DRIFT = 50, 4, 0.05
START_SECONDS = 120
MOVED = 0.01  # of the spread of all coordinates: what one coordinate of a vector is moved by

# In which order a client sends, and which queries:
#   shuffled   all of them, in an order of its own
#   identical  all of them, in the same order as the other clients
#   zipf       the i-th most popular with a chance like 1 / i^zipf; the same are popular for all
#   fresh      each once by one client, and none of those of the warm-up
ORDERS = ("shuffled", "identical", "zipf", "fresh")
WARM_SHARE = 4  # order fresh: one query in so many is for the warm-up


@dataclass(frozen=True)
class Plan:
    """How to send."""

    clients: int = 1
    queries: int = 0  # of each client; 0: until seconds are over
    seconds: float = 0.0
    rate: float = 0.0  # queries a second of all clients together; 0: closed loop
    order: str = "shuffled"  # ORDERS
    zipf: float = 1.0  # exponent of that order
    seed: int = 1
    warm_seconds: float = 10.0  # at most; 0: none
    warm_queries: int = 2000  # at most
    longest: float = 120.0  # seconds after which a client stops, whatever it was asked


@dataclass(frozen=True)
class Sent:
    """What one client kept: a number each per query it sent."""

    query: npt.NDArray[np.int32]
    start_ns: npt.NDArray[np.int64]  # on the machine's monotonic clock
    latency_ns: npt.NDArray[np.int64]
    answers: dict[int, list[int]]  # the last answer to each query
    warm: int  # queries of warming
    settled: bool  # warming ended because times were stable
    cpu: float  # share of the time that the client's own process or thread computed
    cpu_ns: int = 0  # the same in nanoseconds

    @property
    def end_ns(self) -> int:
        return int((self.start_ns + self.latency_ns).max()) if len(self.query) else 0


Ask = Callable[[Any], Sequence[int]]


def warm(ask: Ask, asked: Sequence[Any], order: Sequence[int], plan: Plan) -> tuple[int, bool]:
    """Send until the mean of the last window is that of the one before; (sent, stable)."""
    if plan.warm_seconds <= 0:
        return 0, False
    means: list[float] = []
    sent = 0
    began = time.perf_counter()
    while sent < plan.warm_queries and time.perf_counter() - began < plan.warm_seconds:
        chunk = min(CHUNK, plan.warm_queries)
        start = time.perf_counter()
        for i in range(chunk):
            ask(asked[order[(sent + i) % len(order)]])
            if time.perf_counter() - began > plan.warm_seconds:
                return sent + i + 1, False
        means.append((time.perf_counter() - start) / chunk)
        sent += chunk
        if len(means) >= 2 * WINDOW:
            before = float(np.mean(means[-2 * WINDOW : -WINDOW]))
            now = float(np.mean(means[-WINDOW:]))
            if abs(now - before) < DRIFT * before:
                return sent, True
    return sent, False


Order = npt.NDArray[np.int64]


def orders_of(client: int, queries: int, plan: Plan) -> tuple[Order, Order]:
    """The numbers of the queries that a client sends, in order: to warm up, and measured."""
    own = np.random.default_rng([plan.seed, client])
    if plan.order == "identical":
        order = np.arange(queries)
    elif plan.order == "zipf":
        chances = np.arange(1, queries + 1) ** -plan.zipf
        popular = np.random.default_rng(plan.seed).permutation(queries)
        order = popular[own.choice(queries, queries, p=chances / chances.sum())]
    elif plan.order == "fresh":
        part = np.random.default_rng(plan.seed).permutation(queries)[client :: plan.clients]
        first = max(1, len(part) // WARM_SHARE)
        return part[:first], part[first:]
    else:
        order = own.permutation(queries)
    return order, order


class Job(ABC):
    """What one client does."""

    @abstractmethod
    def run(self, session: Session, wait: Callable[[], float]) -> Sent:
        """Get ready, wait for the others, work. wait() answers when that began."""


class Recorder:
    """Takes the times of one client."""

    def __init__(self, begin: float) -> None:
        """begin, of the monotonic clock in seconds, may be a little ahead."""
        pause = begin - time.monotonic()
        if pause > 0:
            time.sleep(pause)
        self.begin = int(begin * 1e9)
        self.clock = time.perf_counter_ns
        self.skew = time.monotonic_ns() - self.clock()  # perf_counter may count from elsewhere
        self.cpu = time.thread_time_ns()
        self.numbers: list[int] = []
        self.starts: list[int] = []
        self.latencies: list[int] = []

    def over(self, seconds: float) -> bool:
        return self.clock() + self.skew >= self.begin + seconds * 1e9

    def add(self, number: int, start: int, latency: int) -> None:
        """start is of the monotonic clock."""
        self.numbers.append(number)
        self.starts.append(start)
        self.latencies.append(latency)

    def sent(self, answers: dict[int, list[int]], warmed: int, settled: bool) -> Sent:
        elapsed = max(1, time.monotonic_ns() - self.begin)
        cpu = time.thread_time_ns() - self.cpu
        return Sent(
            np.asarray(self.numbers, dtype=np.int32), np.asarray(self.starts, dtype=np.int64),
            np.asarray(self.latencies, dtype=np.int64), answers, warmed, settled,
            cpu / elapsed, cpu,
        )  # fmt: skip


@dataclass(frozen=True)
class SearchJob(Job):
    """Searches of one client of a plan."""

    queries: Floats
    client: int
    plan: Plan
    values: tuple[Any, ...] = ()  # of each query the numbers of its condition

    def run(self, session: Session, wait: Callable[[], float]) -> Sent:
        plan = self.plan
        ask, asked = asking(session, self.queries, self.values)
        first, order = orders_of(self.client, len(self.queries), plan)
        if not len(order):
            raise EngineError(f"{len(self.queries)} queries are too few for {plan.clients} clients")
        warmed, settled = warm(ask, asked, first.tolist(), plan)
        count = plan.queries or (len(order) if plan.seconds <= 0 else 1 << 30)
        if plan.order == "fresh":
            count = min(count, len(order))
        step = plan.clients / plan.rate * 1e9 if plan.rate else 0.0
        limit = plan.seconds if plan.seconds > 0 else plan.longest
        answers: dict[int, list[int]] = {}
        session.flush()
        record = Recorder(wait())
        for i in range(count):
            query = int(order[i % len(order)])
            due = 0
            if step:
                due = record.begin + int(step * (i + self.client / plan.clients))
                pause = due - record.skew - record.clock()
                if pause > 0:
                    time.sleep(pause / 1e9)
            if record.over(limit):
                break
            start = record.clock()
            found = ask(asked[query])
            done = record.clock()
            begun = due or start + record.skew
            record.add(query, begun, done + record.skew - begun)
            answers[query] = [int(row) for row in found]
        sent = record.sent(answers, warmed, settled)
        session.flush()
        return sent


def asking(session: Session, queries: Floats, values: Sequence[Any]) -> tuple[Ask, list[Any]]:
    """What a session is called with, and how: with the numbers of a condition, if there are."""
    encoded = [session.encode(vector) for vector in queries]
    if not values:
        return session.search, encoded
    numbers = [session.encode_values(one) for one in values]
    return session.search_where, list(zip(encoded, numbers, strict=True))


@dataclass(frozen=True)
class ColdJob(Job):
    """Every query once, each in a session of its own that has asked nothing before.

    Connecting is not in the latency.
    """

    factory: SessionFactory
    queries: Floats
    plan: Plan
    values: tuple[Any, ...] = ()

    def run(self, session: Session, wait: Callable[[], float]) -> Sent:
        answers: dict[int, list[int]] = {}
        record = Recorder(wait())
        for query in range(len(self.queries)):
            if record.over(self.plan.longest):
                break
            fresh = self.factory()
            try:
                one = slice(query, query + 1)
                ask, asked = asking(fresh, self.queries[one], self.values[one])
                start = record.clock()
                found = ask(asked[0])
                record.add(query, start + record.skew, record.clock() - start)
                answers[query] = [int(row) for row in found]
            finally:
                fresh.close()
        return record.sent(answers, 0, True)


@dataclass(frozen=True)
class InsertJob(Job):
    """Inserts rows first, first + step, ... for so long.

    Vectors come round again, each time moved a little: some engines fold equal ones.
    """

    vectors: Floats
    ranks: npt.NDArray[np.int32]  # [n, 2]
    first: int
    step: int
    seconds: float

    def run(self, session: Session, wait: Callable[[], float]) -> Sent:
        step = np.float32(MOVED * self.vectors.std())
        record = Recorder(wait())
        row = self.first
        while not record.over(self.seconds):
            turn, at = divmod(row, len(self.vectors))
            ranks = (int(self.ranks[at, 0]), int(self.ranks[at, 1]))
            vector = self.vectors[at].copy()
            vector[turn % len(vector)] += step * (1 + turn // len(vector))
            encoded = session.encode(vector)
            start = record.clock()
            session.insert(row, encoded, ranks)
            record.add(row, start + record.skew, record.clock() - start)
            row += self.step
        return record.sent({}, 0, True)


@dataclass(frozen=True)
class ReplaceJob(Job):
    """Gives rows new numbers, n higher: inserts the vector again and deletes the old row.

    So that the true neighbors stay what they were (recall.py). seconds 0: every row once.
    """

    rows: npt.NDArray[np.int64]  # their numbers to begin with
    vectors: Floats  # of these rows
    ranks: npt.NDArray[np.int32]  # of these rows, [len(rows), 2]
    n: int
    seconds: float = 0.0

    def run(self, session: Session, wait: Callable[[], float]) -> Sent:
        rows = self.rows.tolist()
        record = Recorder(wait())
        i = 0
        while not record.over(self.seconds) if self.seconds else i < len(rows):
            at = i % len(rows)
            encoded = session.encode(self.vectors[at])
            ranks = (int(self.ranks[at, 0]), int(self.ranks[at, 1]))
            start = record.clock()
            session.insert(rows[at] + self.n, encoded, ranks)
            session.delete(rows[at])
            record.add(rows[at], start + record.skew, record.clock() - start)
            rows[at] += self.n
            i += 1
        return record.sent({}, 0, True)


Client = tuple[SessionFactory, Job]


def _process(factory: SessionFactory, job: Job, pipe: Any) -> None:
    """A client in a process: says when it is ready, is told when to begin."""

    def wait() -> float:
        pipe.send(("ready", None))
        return float(pipe.recv())

    try:
        session = factory()
        try:
            pipe.send(("done", job.run(session, wait)))
            pipe.recv()  # stay connected until the reads of the server are counted
        finally:
            session.close()
    except EOFError:
        return
    except UnsupportedError as error:
        pipe.send(("unsupported", str(error)))
    except BaseException as error:
        pipe.send(("failed", f"{type(error).__name__}: {error}"))


def _run_processes(
    clients: Sequence[Client], longest: float, started: Callable[[], None],
    ended: Callable[[], None],
) -> list[Sent]:  # fmt: skip
    # Forked from a small server process that has no threads and what clients import.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["quiver_bench.load", "quiver_bench.engines.postgres"])
    pipes: list[Any] = []
    processes = []
    try:
        for factory, job in clients:
            ours, theirs = context.Pipe()
            process = context.Process(target=_process, args=(factory, job, theirs), daemon=True)
            process.start()
            theirs.close()
            pipes.append(ours)
            processes.append(process)

        def expect(wanted: str, timeout: float) -> list[Any]:
            answers = []
            for pipe in pipes:
                if not pipe.poll(timeout):
                    raise EngineError(f"a client is not {wanted} after {timeout:.0f} s")
                kind, value = pipe.recv()
                if kind == "unsupported":
                    raise UnsupportedError(value)
                if kind != wanted:
                    raise EngineError(f"a client failed: {value}")
                answers.append(value)
            return answers

        expect("ready", START_SECONDS + 5 * len(clients))
        started()
        begin = time.monotonic() + 0.05
        for pipe in pipes:
            pipe.send(begin)
        sent = expect("done", longest + START_SECONDS)
        ended()
        for pipe in pipes:
            pipe.send("go")
        for process in processes:
            process.join(10)
    except (EOFError, OSError) as error:
        raise EngineError("a client ended without a word") from error
    finally:
        for process in processes:
            if process.is_alive():
                process.terminate()
        for pipe in pipes:
            pipe.close()
    return sent


def _run_threads(
    clients: Sequence[Client], started: Callable[[], None], ended: Callable[[], None]
) -> list[Sent]:
    """Clients of an engine that lives in this process, or a single one."""
    sent: list[Sent | None] = [None] * len(clients)
    sessions: list[Session] = []  # open until what the server spent is counted
    failures: list[Exception] = []
    begin = [0.0]

    def all_ready() -> None:
        started()
        begin[0] = time.monotonic()

    barrier = threading.Barrier(len(clients), all_ready)

    def wait() -> float:
        barrier.wait()
        return begin[0]

    def work(number: int) -> None:
        try:
            factory, job = clients[number]
            session = factory()
            sessions.append(session)
            sent[number] = job.run(session, wait)
        except threading.BrokenBarrierError:
            pass
        except Exception as error:
            failures.append(error)
            barrier.abort()

    try:
        if len(clients) == 1:
            work(0)
        else:
            threads = [threading.Thread(target=work, args=(i,)) for i in range(len(clients))]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        ended()
    finally:
        for session in sessions:
            session.close()
    if failures:
        error = failures[0]
        if isinstance(error, BenchError):
            raise error
        raise EngineError(f"a client failed: {type(error).__name__}: {error}") from error
    return [one for one in sent if one is not None]


def run(
    clients: Sequence[Client], embedded: bool, longest: float = 3600.0,
    started: Callable[[], None] = lambda: None, ended: Callable[[], None] = lambda: None,
) -> list[Sent]:  # fmt: skip
    """What every client kept. started() and ended() are called around the measured time.

    longest: seconds that the measured time may take before the clients count as lost.
    """
    if embedded or len(clients) == 1:
        return _run_threads(clients, started, ended)
    return _run_processes(clients, longest, started, ended)


def searches(
    factory: SessionFactory, queries: Floats, plan: Plan, values: tuple[Any, ...] = ()
) -> list[Client]:
    """The clients of a plan. values: of each query the numbers of its condition, if it has one."""
    return [(factory, SearchJob(queries, client, plan, values)) for client in range(plan.clients)]
