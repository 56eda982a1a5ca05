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
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from quiver_bench.engines.base import Session, SessionFactory
from quiver_bench.errors import EngineError
from quiver_bench.truth import Floats

# Warm until the means of two windows of queries differ by less than this.
CHUNK, WINDOW, DRIFT = 50, 4, 0.05
START_SECONDS = 120


@dataclass(frozen=True)
class Plan:
    """How to send."""

    clients: int = 1
    queries: int = 0  # of each client; 0: until seconds are over
    seconds: float = 0.0
    rate: float = 0.0  # queries a second of all clients together; 0: closed loop
    identical: bool = False  # every client sends in the same order
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
    answers: dict[int, list[int]]  # the first answer to each query
    warm: int  # queries of warming
    settled: bool  # warming ended because times were stable
    cpu: float  # share of the time that the client's own process or thread computed

    @property
    def end_ns(self) -> int:
        return int((self.start_ns + self.latency_ns).max()) if len(self.query) else 0


def warm(
    session: Session, encoded: Sequence[Any], order: Sequence[int], plan: Plan
) -> tuple[int, bool]:
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
            session.search(encoded[order[(sent + i) % len(order)]])
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


def order_of(client: int, queries: int, plan: Plan) -> npt.NDArray[np.int64]:
    """The order in which a client sends."""
    if plan.identical:
        return np.arange(queries)
    return np.random.default_rng([plan.seed, client]).permutation(queries)


def run_client(
    factory: SessionFactory, queries: Floats, client: int, plan: Plan, wait: Callable[[], float]
) -> Sent:
    """Connect, warm, wait for the others, send. wait() answers the common start."""
    session = factory()
    try:
        encoded = [session.encode(vector) for vector in queries]
        order = order_of(client, len(queries), plan)
        warmed, settled = warm(session, encoded, order.tolist(), plan)
        count = plan.queries or (len(queries) if plan.seconds <= 0 else 1 << 30)
        step = plan.clients / plan.rate * 1e9 if plan.rate else 0.0
        numbers: list[int] = []
        starts: list[int] = []
        latencies: list[int] = []
        answers: dict[int, list[int]] = {}
        begin = int(wait() * 1e9)
        limit = plan.seconds if plan.seconds > 0 else plan.longest
        end = begin + int(limit * 1e9)
        cpu = time.thread_time_ns()
        clock = time.perf_counter_ns
        skew = time.monotonic_ns() - clock()  # perf_counter may count from elsewhere
        for i in range(count):
            query = int(order[i % len(order)])
            due = 0
            if step:
                due = begin + int(step * i + step * client / plan.clients)
                pause = due - skew - clock()
                if pause > 0:
                    time.sleep(pause / 1e9)
            start = clock()
            if start + skew >= end:
                break
            found = session.search(encoded[query])
            done = clock()
            numbers.append(query)
            starts.append(due or start + skew)
            latencies.append(done + skew - due if due else done - start)
            if query not in answers:
                answers[query] = [int(row) for row in found]
        elapsed = max(1, time.monotonic_ns() - begin)
        return Sent(
            np.asarray(numbers, dtype=np.int32), np.asarray(starts, dtype=np.int64),
            np.asarray(latencies, dtype=np.int64), answers, warmed, settled,
            (time.thread_time_ns() - cpu) / elapsed,
        )  # fmt: skip
    finally:
        session.close()


def _process(factory: SessionFactory, queries: Floats, client: int, plan: Plan, pipe: Any) -> None:
    """A client in a process: says when it is ready, is told when to begin."""

    def wait() -> float:
        pipe.send(("ready", None))
        return float(pipe.recv())

    try:
        pipe.send(("done", run_client(factory, queries, client, plan, wait)))
        pipe.recv()  # stay connected until the reads of the server are counted
    except EOFError:
        return
    except BaseException as error:
        pipe.send(("failed", f"{type(error).__name__}: {error}"))


def _run_processes(
    factory: SessionFactory, queries: Floats, plan: Plan, started: Callable[[], None],
    ended: Callable[[], None],
) -> list[Sent]:  # fmt: skip
    context = multiprocessing.get_context("spawn")
    pipes: list[Any] = []
    processes = []
    try:
        for client in range(plan.clients):
            ours, theirs = context.Pipe()
            process = context.Process(
                target=_process, args=(factory, queries, client, plan, theirs), daemon=True
            )
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
                if kind != wanted:
                    raise EngineError(f"a client failed: {value}")
                answers.append(value)
            return answers

        expect("ready", START_SECONDS + plan.warm_seconds + plan.clients)
        started()
        begin = time.monotonic() + 0.05
        for pipe in pipes:
            pipe.send(begin)
        sent = expect("done", max(plan.seconds, plan.longest) + START_SECONDS)
        ended()
        for pipe in pipes:
            pipe.send("go")
        for process in processes:
            process.join(10)
        return sent
    except (EOFError, BrokenPipeError) as error:
        raise EngineError("a client ended without a word") from error
    finally:
        for process in processes:
            if process.is_alive():
                process.terminate()
        for pipe in pipes:
            pipe.close()


def _run_threads(
    factory: SessionFactory, queries: Floats, plan: Plan, started: Callable[[], None],
    ended: Callable[[], None],
) -> list[Sent]:  # fmt: skip
    """Clients of an engine that lives in this process."""
    sent: list[Sent | None] = [None] * plan.clients
    failures: list[str] = []
    begin = [0.0]

    def all_ready() -> None:
        started()
        begin[0] = time.monotonic()

    barrier = threading.Barrier(plan.clients, all_ready)

    def wait() -> float:
        barrier.wait()
        return begin[0]

    def client(number: int) -> None:
        try:
            sent[number] = run_client(factory, queries, number, plan, wait)
        except threading.BrokenBarrierError:
            pass
        except Exception as error:
            failures.append(f"{type(error).__name__}: {error}")
            failures.append(traceback.format_exc())
            barrier.abort()

    threads = [threading.Thread(target=client, args=(i,)) for i in range(plan.clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ended()
    if failures:
        raise EngineError(f"a client failed: {failures[0]}")
    return [one for one in sent if one is not None]


def run(
    factory: SessionFactory, queries: Floats, plan: Plan, embedded: bool,
    started: Callable[[], None] = lambda: None, ended: Callable[[], None] = lambda: None,
) -> list[Sent]:  # fmt: skip
    """What every client kept. started() and ended() are called around the measured time."""
    if embedded or plan.clients == 1:
        return _run_threads(factory, queries, plan, started, ended)
    return _run_processes(factory, queries, plan, started, ended)
