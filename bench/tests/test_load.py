"""Clients, and the numbers that come of what they sent."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from quiver_bench import load, measure, tiers, workload
from quiver_bench.engines.base import Session
from quiver_bench.errors import EngineError, UnsupportedError
from quiver_bench.load import Plan, Sent

QUERIES = np.arange(40, dtype=np.float32).reshape(20, 2)


class Echo(Session):
    """Answers the first number of a query, after a while."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds

    def search(self, query: Any) -> Sequence[int]:
        if self.seconds:
            time.sleep(self.seconds)
        return [int(query[0])]


class Broken(Session):
    def search(self, query: Any) -> Sequence[int]:
        raise ValueError("no such thing")


class Unable(Session):
    def search(self, query: Any) -> Sequence[int]:
        raise UnsupportedError("cannot")


def sent_of(start: Sequence[int], latency: Sequence[int]) -> Sent:
    return Sent(
        np.zeros(len(start), dtype=np.int32), np.asarray(start, dtype=np.int64),
        np.asarray(latency, dtype=np.int64), {}, 0, True, 0.5,
    )  # fmt: skip


def test_every_query_once_in_an_order_of_the_clients_own() -> None:
    plan = Plan(clients=2, warm_seconds=0)
    sent = load.run(load.searches(Echo, QUERIES, plan), embedded=True)
    for one in sent:
        assert sorted(one.query.tolist()) == list(range(20))
        assert one.answers == {i: [2 * i] for i in range(20)}
    assert sent[0].query.tolist() != sent[1].query.tolist()


def test_identical_order_on_request() -> None:
    plan = Plan(clients=2, warm_seconds=0, order="identical")
    sent = load.run(load.searches(Echo, QUERIES, plan), embedded=True)
    assert sent[0].query.tolist() == sent[1].query.tolist() == list(range(20))


def test_processes_begin_together() -> None:
    plan = Plan(clients=3, warm_seconds=0.2)
    told: list[str] = []
    sent = load.run(
        load.searches(partial(Echo, 0.001), QUERIES, plan), embedded=False,
        started=lambda: told.append("started"), ended=lambda: told.append("ended"),
    )  # fmt: skip
    assert told == ["started", "ended"]
    assert [len(one.query) for one in sent] == [20, 20, 20]
    first = [int(one.start_ns.min()) for one in sent]
    last = [one.end_ns for one in sent]
    assert max(first) < min(last)  # all were under way at one time


def test_open_loop_counts_from_when_a_query_was_due() -> None:
    plan = Plan(warm_seconds=0, rate=1000.0)
    sent = load.run(load.searches(partial(Echo, 0.01), QUERIES, plan), embedded=True)[0]
    # Due every millisecond and answered in ten: the queue grows.
    assert np.diff(sent.start_ns) == pytest.approx(1e6, rel=0.01)
    assert sent.latency_ns[-1] > 3 * sent.latency_ns[0]


@pytest.mark.parametrize("embedded", [True, False])
def test_a_client_that_fails_is_an_error(embedded: bool) -> None:
    plan = Plan(clients=2, warm_seconds=0)
    with pytest.raises(EngineError, match="no such thing"):
        load.run(load.searches(Broken, QUERIES, plan), embedded)
    with pytest.raises(UnsupportedError, match="cannot"):
        load.run(load.searches(Unable, QUERIES, plan), embedded)


def test_warming_ends_when_times_are_stable() -> None:
    plan = Plan(warm_seconds=30, warm_queries=100_000)
    session = Echo(0.0005)
    sent, settled = load.warm(session.search, [(1, 2)], [0], plan)
    assert settled
    assert 400 <= sent < 100_000
    sent, settled = load.warm(
        session.search, [(1, 2)], [0], Plan(warm_seconds=30, warm_queries=100)
    )
    assert (sent, settled) == (100, False)


def test_definitions_of_speed() -> None:
    # Two clients, 4 queries of 1 ms and 2 of 2 ms; nothing under way from 4 to 6 ms.
    ms = 1_000_000
    sent = [sent_of([0, ms, 6 * ms, 7 * ms], [ms] * 4), sent_of([0, 2 * ms], [2 * ms] * 2)]
    found = measure.speed(sent)
    assert found["qps_wall"] == pytest.approx(6 / 0.008)
    assert found["qps_busy"] == pytest.approx(6 / 0.006)
    assert found["qps_mean"] == pytest.approx(2 / (8 / 6 / 1000))
    assert found["qps"] == found["qps_wall"]
    assert found["p50_ms"] == pytest.approx(1.0)
    assert found["max_ms"] == pytest.approx(2.0)
    assert measure.speed(sent[:1])["qps"] == pytest.approx(1000)


def test_overlapping_intervals_count_once() -> None:
    start = np.array([0, 5, 20], dtype=np.int64)
    end = np.array([100, 10, 30], dtype=np.int64)
    assert measure.busy_seconds(start, end) == pytest.approx(100e-9)


def test_replacing_rows_gives_them_new_numbers() -> None:
    done: list[tuple[str, int]] = []

    class Writer(Echo):
        def insert(self, row: int, vector: Any, ranks: tuple[int, int]) -> None:
            done.append(("insert", row))

        def delete(self, row: int) -> None:
            done.append(("delete", row))

    ranks = np.zeros((2, 2), dtype=np.int32)
    job = load.ReplaceJob(np.array([3, 4]), QUERIES[:2], ranks, 20)
    load.run([(Writer, job)], embedded=True)
    assert done == [("insert", 23), ("delete", 3), ("insert", 24), ("delete", 4)]


def test_answers_are_those_of_the_end() -> None:
    """Rows may change meanwhile: the first answers would be those of the rows as they were."""

    class Counting(Echo):
        def __init__(self) -> None:
            super().__init__(0.001)
            self.sent = 0

        def search(self, query: Any) -> Sequence[int]:
            super().search(query)
            self.sent += 1
            return [self.sent]

    plan = Plan(warm_seconds=0, queries=60)
    sent = load.run(load.searches(Counting, QUERIES, plan), embedded=True)[0]
    assert sorted(row for (row,) in sent.answers.values()) == list(range(41, 61))


def test_what_cannot_be_counted_is_not_none() -> None:
    assert workload.bytes_read([os.getpid()]) >= 0
    assert math.isnan(workload.bytes_read([]))
    assert math.isnan(workload.bytes_read([os.getpid(), 1 << 30]))


def test_a_server_that_cannot_enter_a_group_is_not_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = tiers.MemoryLimit()
    monkeypatch.setattr(limit, "_make", lambda _: tmp_path / "gone")
    assert limit.enter([1 << 30], 64).startswith("buffer pool only")


def test_a_limit_says_whether_it_has_killed(tmp_path: Path) -> None:
    limit = tiers.MemoryLimit()
    assert not limit.killed()
    limit.folder = tmp_path
    for name, head in (("memory.oom_control", "under_oom 1\n"), ("memory.events", "oom 1\n")):
        assert not limit.killed()
        for number in (0, 2):
            (tmp_path / name).write_text(f"{head}oom_kill {number}\n")
            assert limit.killed() == (number > 0)
        (tmp_path / name).unlink()


def test_a_group_ends_with_what_is_left_in_it() -> None:
    limit = tiers.MemoryLimit()
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as process:
        try:
            method = limit.enter([process.pid], 256)
            if method != "cgroup":
                pytest.skip(method)
            folder = limit.folder
            assert folder is not None
            limit.leave()
            assert not folder.exists()
            assert process.wait(10) == -signal.SIGKILL
        finally:
            process.kill()


def test_zipf_repeats_the_same_few_queries_for_all_clients() -> None:
    queries = np.arange(4000, dtype=np.float32).reshape(2000, 2)
    plan = Plan(clients=2, order="zipf", warm_seconds=0)
    orders = [load.orders_of(client, len(queries), plan)[1] for client in (0, 1)]
    tops = []
    for order in orders:
        numbers, times = np.unique(order, return_counts=True)
        assert len(numbers) < 0.6 * len(order)
        tops.append(int(numbers[np.argmax(times)]))
        # 1 / (1 + 1/2 + ... + 1/2000) of the queries are the most popular one.
        assert times.max() == pytest.approx(2000 / 8.178, rel=0.3)
    assert tops[0] == tops[1]
    assert orders[0].tolist() != orders[1].tolist()
    flat = load.orders_of(0, len(queries), Plan(order="zipf", zipf=0.01))[1]
    assert len(set(flat.tolist())) > 1.1 * len(set(orders[0].tolist()))


def test_fresh_queries_are_asked_once_by_one_client_and_not_before() -> None:
    plan = Plan(clients=3, order="fresh", warm_seconds=0.05, seconds=5)
    seen: list[int] = []
    for client in range(3):
        first, order = load.orders_of(client, 20, plan)
        assert not set(first.tolist()) & set(order.tolist())
        seen += [*first.tolist(), *order.tolist()]
    assert sorted(seen) == list(range(20))
    sent = load.run(load.searches(Echo, QUERIES, plan), embedded=True)
    asked = [query for one in sent for query in one.query.tolist()]
    assert len(asked) == len(set(asked)) == 17  # it ends long before its 5 seconds
    few = Plan(clients=30, order="fresh", warm_seconds=0)
    with pytest.raises(EngineError, match="too few"):
        load.run(load.searches(Echo, QUERIES, few), embedded=True)


class OneUse(Session):
    asked = False

    def search(self, query: Any) -> Sequence[int]:
        assert not self.asked
        self.asked = True
        return [int(query[0])]


def test_cold_queries_have_a_session_each() -> None:
    plan = Plan(warm_seconds=0)
    sent = load.run([(OneUse, load.ColdJob(OneUse, QUERIES, plan))], embedded=True)[0]
    assert sent.answers == {i: [2 * i] for i in range(20)}


def test_processor_time_of_processes_that_ended_is_counted() -> None:
    script = "import os, time\nfor _ in range(3):\n p = os.fork()\n" \
             " if not p:\n  end = time.thread_time() + 0.1\n" \
             "  while time.thread_time() < end: pass\n  os._exit(0)\n os.waitpid(p, 0)\n" \
             "print('done', flush=True); input()"  # fmt: skip
    child = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True)  # fmt: skip
    with child:
        assert child.stdout is not None
        assert child.stdin is not None
        child.stdout.readline()
        spent = workload.cpu_seconds([child.pid])
        both = workload.cpu_seconds([child.pid, child.pid])
        child.stdin.close()
    assert spent >= 0.28
    assert both == pytest.approx(spent, abs=0.05)  # each once
    assert math.isnan(workload.cpu_seconds([]))


def test_what_nobody_can_count_is_no_zero() -> None:
    before = workload.Spent(0.0, math.nan, 1.0, 100, 5, 10.0, 4.0)
    after = workload.Spent(2.0, math.nan, 3.0, 300, 5, 14.0, 6.0)
    assert before.until(after, 100) == {
        "server_cpu_ms": 20.0, "pages_hit": 2.0, "pages_read": 0.0, "others_cores": 1.0
    }  # fmt: skip
    soon = workload.Spent(0.1, math.nan, 1.01, 300, 5, 10.02, 4.01)  # a tick or two
    assert before.until(soon, 100) == {"pages_hit": 2.0, "pages_read": 0.0}
