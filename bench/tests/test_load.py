"""Clients, and the numbers that come of what they sent."""

from __future__ import annotations

import math
import os
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
    plan = Plan(clients=2, warm_seconds=0, identical=True)
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
    sent, settled = load.warm(session, [(1, 2)], [0], plan)
    assert settled
    assert 400 <= sent < 100_000
    sent, settled = load.warm(session, [(1, 2)], [0], Plan(warm_seconds=30, warm_queries=100))
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
