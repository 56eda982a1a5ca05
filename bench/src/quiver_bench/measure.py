"""Numbers of what clients sent. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from quiver_bench.load import Sent

PERCENTILES = {"p50_ms": 50, "p95_ms": 95, "p99_ms": 99}


def busy_seconds(start_ns: npt.NDArray[np.int64], end_ns: npt.NDArray[np.int64]) -> float:
    """Length of the union of the intervals."""
    if not len(start_ns):
        return 0.0
    order = np.argsort(start_ns)
    starts, ends = start_ns[order], np.maximum.accumulate(end_ns[order])
    # Time between the end of all before and the start of the next is idle.
    idle = np.maximum(0, starts[1:] - ends[:-1]).sum()
    return float(ends[-1] - starts[0] - idle) / 1e9


def speed(sent: Sequence[Sent]) -> dict[str, float]:
    """Queries a second by four definitions, and latencies in milliseconds.

    qps_wall  all queries / time from the first start to the last end
    qps_mean  clients / mean latency (single client: ann-benchmarks' without its "best of")
    qps_busy  all queries / time in which at least one was under way
    qps       qps_mean for one client, else qps_wall
    """
    starts = np.concatenate([one.start_ns for one in sent])
    latencies = np.concatenate([one.latency_ns for one in sent])
    count = len(latencies)
    if not count:
        return {"queries": 0.0}
    wall = float((starts + latencies).max() - starts.min()) / 1e9
    mean = float(latencies.mean()) / 1e9
    found = {
        "queries": float(count),
        "qps_wall": count / max(wall, 1e-9),
        "qps_mean": len(sent) / max(mean, 1e-9),
        "qps_busy": count / max(busy_seconds(starts, starts + latencies), 1e-9),
        "mean_ms": mean * 1e3,
        "max_ms": float(latencies.max()) / 1e6,
        "client_cpu": float(np.mean([one.cpu for one in sent])),
        "client_cpu_ms": sum(one.cpu_ns for one in sent) / 1e6 / count,
        "warm_queries": float(np.mean([one.warm for one in sent])),
    }
    found["qps"] = found["qps_mean"] if len(sent) == 1 else found["qps_wall"]
    for name, percentile in PERCENTILES.items():
        found[name] = float(np.percentile(latencies, percentile)) / 1e6
    return found


def percentiles(latencies_ns: Sequence[int]) -> dict[str, float]:
    """p50_ms, p95_ms, p99_ms and their count."""
    found = {"count": float(len(latencies_ns))}
    for name, percentile in PERCENTILES.items():
        found[name] = float(np.percentile(np.asarray(latencies_ns), percentile)) / 1e6
    return found


def raw(sent: Sequence[Sent]) -> dict[str, npt.NDArray[np.generic]]:
    """Arrays to keep: of every query its client, number, start (us from the first), latency;
    of each client's answers its number, the query's and the rows (-1: none)."""
    first = min((int(one.start_ns.min()) for one in sent if len(one.start_ns)), default=0)
    answers = [(i, *pair) for i, one in enumerate(sent) for pair in one.answers.items()]
    width = max((len(ids) for _, _, ids in answers), default=0)
    table = np.full((len(answers), width), -1, dtype=np.int64)
    for row, (_, _, ids) in enumerate(answers):
        table[row, : len(ids)] = ids
    return {
        "client": np.concatenate(
            [np.full(len(one.query), i, dtype=np.int16) for i, one in enumerate(sent)]
        ),
        "query": np.concatenate([one.query for one in sent]),
        "start_us": (np.concatenate([one.start_ns for one in sent]) - first) // 1000,
        "latency_us": (np.concatenate([one.latency_ns for one in sent]) // 1000).astype(np.int32),
        "answered_client": np.asarray([client for client, _, _ in answers], dtype=np.int16),
        "answered": np.asarray([query for _, query, _ in answers], dtype=np.int32),
        "ids": table,
    }
