"""Recall, throughput and latency of one way to search."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from psycopg.conninfo import make_conninfo

from quiver_bench import load, measure
from quiver_bench.datasets import Dataset
from quiver_bench.engines.postgres import Connection, PgSession, Statements, operator
from quiver_bench.errors import MeasureError
from quiver_bench.quickstart.database import TABLES, Place, index_name
from quiver_bench.quickstart.packages import Packages
from quiver_bench.recall import recalls
from quiver_bench.truth import Truth

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
    whose = "pgvector hnsw" if method == "hnsw" else method
    title = f"{whose}, {setting.partition('.')[2]} = {value}"
    settings = {setting: str(value)}
    if method == "hnsw":
        # with few rows the planner prefers to read them all
        settings["enable_seqscan"] = "off"
    return Way(title, method, settings, index_name(method), 1000, 4)


def _factory(place: Place, way: Way, dataset: Dataset) -> partial[PgSession]:
    """Makes the session that is measured, after a look at its plan."""
    text = f"SELECT id FROM {way.table} ORDER BY embedding {operator(dataset.metric)} %s LIMIT {K}"
    server = place.server
    conninfo = make_conninfo(
        host=server.socket, port=server.port, user=server.user, dbname=place.name
    )
    factory = partial(
        PgSession, Statements(conninfo, way.table, text, 1, "vector", dict(way.settings))
    )
    session = factory()
    try:
        query = session.encode(dataset.queries[0])
        rows = session.db.execute(b"EXPLAIN " + text.encode(), (query,)).fetchall()
    finally:
        session.close()
    plan = "\n".join(str(row[0]) for row in rows)
    if way.plan not in plan:
        raise MeasureError(f"{way.title}: the planner chose another way\n{plan}")
    return factory


def measure_way(place: Place, way: Way, dataset: Dataset, exact: Truth) -> Result:
    """Recall, throughput and latency of one client that sends prepared queries."""
    queries = dataset.queries[: way.queries]
    plan = load.Plan(seconds=way.seconds, warm_seconds=2.0)
    sent = load.run(load.searches(_factory(place, way, dataset), queries, plan), embedded=False)
    found = recalls(sent[0].answers.items(), dataset.train, queries, exact, dataset.metric)
    speed = measure.speed(sent)
    return Result(way, found["recall"], speed["qps"], speed["p50_ms"], speed["p99_ms"])


def search_words(db: Connection, dataset: Packages, words: str) -> list[tuple[str, str, float]]:
    """The nearest packages to a search in words."""
    literal = "[" + ",".join(f"{x:.7g}" for x in dataset.encode(words)) + "]"
    rows = db.execute(
        "SELECT name, description, embedding <=> %(q)s::vector FROM items"
        " ORDER BY embedding <=> %(q)s::vector LIMIT 5",
        {"q": literal},
    )
    return [(str(name), str(text), float(str(distance))) for name, text, distance in rows]


def search_near(db: Connection, program: str) -> list[tuple[str, str, float]]:
    """The nearest packages to a package."""
    rows = db.execute(
        "SELECT name, description, embedding <=> (SELECT embedding FROM items WHERE name = %(p)s)"
        " FROM items WHERE name <> %(p)s"
        " ORDER BY embedding <=> (SELECT embedding FROM items WHERE name = %(p)s) LIMIT 5",
        {"p": program},
    )
    return [(str(name), str(text), float(str(distance))) for name, text, distance in rows]
