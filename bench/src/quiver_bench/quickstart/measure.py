"""Recall, throughput and latency of one way to search."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from quickstart.database import OPERATORS, TABLES, Connection, Server, index_name
from quickstart.datasets import Dataset
from quickstart.errors import MeasureError
from quickstart.truth import Doubles, recall

K = 10


@dataclass(frozen=True)
class Way:
    """A way to search: the settings it runs under, and what its plan must show."""

    title: str
    method: str | None
    settings: dict[str, str]
    plan: str
    queries: int
    seconds: int

    @property
    def table(self) -> str:
        return TABLES[self.method] if self.method else "items"


@dataclass(frozen=True)
class Result:
    """What was measured of it."""

    way: Way
    recall: float
    qps: float
    p50_ms: float
    p99_ms: float


def exact_way() -> Way:
    return Way("exact scan", None, {"enable_indexscan": "off"}, "Seq Scan on items", 100, 5)


def index_way(method: str, setting: str, value: float) -> Way:
    title = f"{method}, {setting} = {value}"
    return Way(title, method, {f"quiver.{setting}": str(value)}, index_name(method), 1000, 4)


def _search(way: Way, metric: str, query: str) -> str:
    operator = OPERATORS[metric][0]
    return (
        f"SELECT id FROM {way.table} ORDER BY embedding {operator}"
        f" (SELECT embedding FROM queries WHERE id = {query}) LIMIT {K}"
    )


def _answers(server: Server, way: Way, dataset: Dataset) -> list[list[int]]:
    """The ids of every query, after a look at the plan.

    In a session of its own: a prepared plan outlives a change of settings.
    """
    statement = _search(way, dataset.metric, "%s").encode()
    with server.connect() as db:
        for name, value in way.settings.items():
            db.execute("SELECT set_config(%s, %s, false)", (name, value))
        plan = "\n".join(str(row[0]) for row in db.execute(b"EXPLAIN " + statement, (0,)))
        if way.plan not in plan:
            raise MeasureError(f"{way.title}: the planner chose another way\n{plan}")
        return [
            [int(str(row[0])) for row in db.execute(statement, (i,), prepare=True)]
            for i in range(min(way.queries, len(dataset.queries)))
        ]


def _pgbench(server: Server, way: Way, dataset: Dataset) -> tuple[float, float, float]:
    """Throughput and latencies of one client that sends prepared queries."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "search.sql"
        script.write_text(
            f"\\set i random(0, {len(dataset.queries) - 1})\n"
            f"{_search(way, dataset.metric, ':i')};\n"
        )
        environment = dict(
            os.environ,
            PGHOST=server.socket,
            PGPORT=str(server.port),
            PGUSER="postgres",
            PGDATABASE="quickstart",
            PGOPTIONS=" ".join(f"-c {name}={value}" for name, value in way.settings.items()),
        )
        run = subprocess.run(
            [f"{server.bin}/pgbench", "-n", "-M", "prepared", "-c", "1", "-T", str(way.seconds),
             "-f", str(script), "-l", "--log-prefix", f"{folder}/log"],
            env=environment, capture_output=True, text=True,
        )  # fmt: skip
        rate = re.search(r"tps = ([\d.]+)", run.stdout)
        if run.returncode != 0 or not rate:
            raise MeasureError(f"pgbench failed: {(run.stdout + run.stderr).strip()[-500:]}")
        times = [
            int(line.split()[2])
            for log in Path(folder).glob("log*")
            for line in log.read_text().splitlines()
        ]
    p50, p99 = np.percentile(np.asarray(times) / 1000.0, [50, 99])
    return float(rate[1]), float(p50), float(p99)


def measure(server: Server, way: Way, dataset: Dataset, kth: Doubles) -> Result:
    """Recall first (which also warms the cache), then speed."""
    answers = _answers(server, way, dataset)
    found = recall(answers, dataset.train, dataset.queries, kth, K, dataset.metric)
    return Result(way, found, *_pgbench(server, way, dataset))


def search_words(db: Connection, dataset: Dataset, words: str) -> list[tuple[str, str, float]]:
    """The nearest packages to a search in words."""
    if dataset.encode is None:
        raise MeasureError("this data set has no words")
    literal = "[" + ",".join(f"{x:.7g}" for x in dataset.encode(words)) + "]"
    rows = db.execute(
        "SELECT name, description, embedding <=> %(q)s::vector FROM items"
        " ORDER BY embedding <=> %(q)s::vector LIMIT 5",
        {"q": literal},
    )
    return [(str(name), str(text), float(str(distance))) for name, text, distance in rows]
