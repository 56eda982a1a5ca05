"""A database of the quickstart: its tables, and what an earlier run left in them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from psycopg import sql
from psycopg.types.json import Json

from quiver_bench.console import Step, time_left
from quiver_bench.datasets import Dataset
from quiver_bench.engines.postgres import (
    COPY_ROWS,
    INLINE_DIMENSIONS,
    Connection,
    Server,
    copy_blocks,
    copy_into,
    operator_class,
    watched_build,
)
from quiver_bench.quickstart.packages import Packages
from quiver_bench.truth import Floats

# An index has a table of its own, or the planner would choose between them. "hnsw" is a stock
# pgvector's, in a database of its own.
TABLES = {"quiver_graph": "items", "quiver_ivf": "items_in_lists", "hnsw": "items"}


@dataclass(frozen=True)
class Place:
    """A database of the private server, of Quiver's or of this version of a stock pgvector."""

    server: Server
    name: str
    pgvector: str | None = None

    @property
    def methods(self) -> tuple[str, ...]:
        return ("hnsw",) if self.pgvector else ("quiver_graph", "quiver_ivf")

    @property
    def extensions(self) -> dict[str, str | None]:
        """Names, and the versions that are not the default ones."""
        return {"vector": self.pgvector} if self.pgvector else {"vector": None, "quiver": None}

    def connect(self) -> Connection:
        return self.server.connect(self.name)


def find_database(place: Place, build_id: str, identity: str) -> Connection | None:
    """The database, when it was made by this library for these data."""
    with place.server.connect("postgres") as admin:
        row = admin.execute(
            "SELECT 1 FROM pg_database WHERE datname = %s", (place.name,)
        ).fetchone()
    if not row:
        return None
    db = place.connect()
    if recall_state(db, "made") == {"build": build_id, "data": identity}:
        return db
    db.close()
    return None


def open_database(place: Place, build_id: str, identity: str) -> Connection:
    """Connect; start afresh when the library or the data is another one."""
    found = find_database(place, build_id, identity)
    if found:
        return found
    with place.server.connect("postgres") as admin:
        name = sql.Identifier(place.name)
        admin.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(name))
        admin.execute(sql.SQL("CREATE DATABASE {}").format(name))
    db = place.connect()
    db.execute("CREATE TABLE quickstart_state (key text PRIMARY KEY, value jsonb NOT NULL)")
    for extension, version in place.extensions.items():
        create = sql.SQL("CREATE EXTENSION {}").format(sql.Identifier(extension))
        db.execute(
            create + sql.SQL(" VERSION {}").format(sql.Identifier(version)) if version else create
        )
    keep_state(db, "made", {"build": build_id, "data": identity})
    return db


def keep_state(db: Connection, key: str, value: object) -> None:
    db.execute(
        "INSERT INTO quickstart_state VALUES (%s, %s)"
        " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (key, Json(value)),
    )


def recall_state(db: Connection, key: str) -> object:
    """What keep_state() kept, or None."""
    row = db.execute("SELECT to_regclass('quickstart_state') IS NOT NULL").fetchone()
    if not row or not row[0]:
        return None
    row = db.execute("SELECT value FROM quickstart_state WHERE key = %s", (key,)).fetchone()
    return row[0] if row else None


def _text_rows(vectors: Floats, texts: list[tuple[str, str]]) -> Iterator[bytes]:
    """A COPY ... (FORMAT binary) of id, two texts, vector."""
    yield b"PGCOPY\n\xff\r\n\0" + b"\0" * 8
    for start in range(0, len(vectors), COPY_ROWS):
        block = b""
        for i in range(start, min(start + COPY_ROWS, len(vectors))):
            block += b"\0\4" + b"\0\0\0\4" + i.to_bytes(4, "big")
            for text in texts[i]:
                data = text.encode()
                block += len(data).to_bytes(4, "big") + data
            body = vectors[i].astype(">f4").tobytes()
            block += (len(body) + 4).to_bytes(4, "big")
            block += vectors.shape[1].to_bytes(2, "big") + b"\0\0" + body
        yield block
    yield b"\xff\xff"


def _load_table(
    db: Connection, name: str, vectors: Floats, texts: list[tuple[str, str]] | None, step: Step
) -> None:
    dimensions = vectors.shape[1]
    table = sql.Identifier(name)
    words = "name text, description text, " if texts else ""
    db.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(table))
    db.execute(
        sql.SQL("CREATE TABLE {} (id int PRIMARY KEY, {} embedding vector({}))").format(
            table, sql.SQL(words), sql.Literal(dimensions)
        )
    )
    if dimensions <= INLINE_DIMENSIONS:
        db.execute(sql.SQL("ALTER TABLE {} ALTER COLUMN embedding SET STORAGE PLAIN").format(table))
    count = len(vectors)
    numbers = np.arange(count, dtype=np.int32)
    blocks = _text_rows(vectors, texts) if texts else copy_blocks(vectors, numbers)
    began = time.monotonic()

    def tell(block: int) -> None:
        done = min(count, (block + 1) * COPY_ROWS)
        left = time_left(done, count, time.monotonic() - began)
        step.update(f"{name}: {done:,} of {count:,} rows{left}")

    copy_into(db, name, blocks, tell)
    step.update(f"{name}: vacuum and analyze")
    db.execute(sql.SQL("VACUUM (ANALYZE) {}").format(table))


def load(db: Connection, place: Place, dataset: Dataset, step: Step) -> None:
    """Fill queries and the tables of the indexes."""
    _load_table(db, "queries", dataset.queries, None, step)
    texts = dataset.texts if isinstance(dataset, Packages) else None
    for name in (TABLES[method] for method in place.methods):
        _load_table(db, name, dataset.train, texts, step)
    keep_state(db, "loaded", len(dataset.train))


def index_name(method: str) -> str:
    return f"{TABLES[method]}_embedding_idx"


def build_index(db: Connection, place: Place, method: str, metric: str, step: Step) -> float:
    """CREATE INDEX; answers the seconds it took."""
    index = sql.Identifier(index_name(method))
    db.execute(sql.SQL("DROP INDEX IF EXISTS {}").format(index))
    with watched_build(db, place.connect, step.update):
        began = time.perf_counter_ns()
        db.execute(
            sql.SQL("CREATE INDEX {} ON {} USING {} (embedding {})").format(
                index,
                sql.Identifier(TABLES[method]),
                sql.Identifier(method),
                sql.Identifier(operator_class("vector", metric)),
            )
        )
        seconds = (time.perf_counter_ns() - began) / 1e9
    keep_state(db, method, seconds)
    return seconds


def index_ready(db: Connection, method: str) -> float | None:
    """How long the valid index of an earlier run took to build, None when there is none."""
    seconds = recall_state(db, method)
    row = db.execute(
        "SELECT 1 FROM pg_index WHERE indexrelid = to_regclass(%s) AND indisvalid",
        (index_name(method),),
    ).fetchone()
    return float(str(seconds)) if row and seconds is not None else None


def read_into_memory(db: Connection, method: str) -> None:
    """So that no search waits for the disk, where the server has the means (pg_prewarm)."""
    name = "pg_prewarm"
    if not db.execute("SELECT 1 FROM pg_available_extensions WHERE name = %s", (name,)).fetchone():
        return
    db.execute(sql.SQL("CREATE EXTENSION IF NOT EXISTS {}").format(sql.Identifier(name)))
    for relation in (TABLES[method], index_name(method)):
        db.execute("SELECT pg_prewarm(%s::regclass)", (relation,))
