"""The database of the quickstart: its tables, and what an earlier run left in them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

import psycopg
from psycopg import sql
from psycopg.types.json import Json

from quickstart.console import Step
from quickstart.datasets import Dataset
from quickstart.errors import MeasureError, QuickstartError
from quickstart.truth import Floats

DATABASE = "quickstart"
# An index has a table of its own, or the planner would choose between them.
TABLES = {"quiver_graph": "items", "quiver_ivf": "items_in_lists"}
OPERATORS = {"euclidean": ("<->", "vector_l2_ops"), "angular": ("<=>", "vector_cosine_ops")}
# Vectors up to here are kept in the row, so that a scan reads no second table.
INLINE_DIMENSIONS = 1900


@dataclass(frozen=True)
class Server:
    """Where the private server listens, and its programs."""

    socket: str
    port: int
    bin: str

    def connect(self, dbname: str = DATABASE) -> psycopg.Connection[tuple[object, ...]]:
        try:
            return psycopg.connect(
                host=self.socket, port=self.port, user="postgres", dbname=dbname, autocommit=True
            )
        except psycopg.OperationalError as error:
            raise QuickstartError(f"the private server does not answer: {error}") from error


Connection = psycopg.Connection[tuple[object, ...]]


def open_database(server: Server, build_id: str, dataset: Dataset) -> Connection:
    """Connect; start afresh when the library or the data is another one."""
    wanted = {"build": build_id, "data": dataset.identity}
    with server.connect("postgres") as admin:
        row = admin.execute("SELECT 1 FROM pg_database WHERE datname = %s", (DATABASE,)).fetchone()
        if row:
            with server.connect() as db:
                if recall_state(db, "made") == wanted:
                    return server.connect()
        admin.execute(
            sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(DATABASE))
        )
        admin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE)))
    db = server.connect()
    db.execute("CREATE TABLE quickstart_state (key text PRIMARY KEY, value jsonb NOT NULL)")
    for extension in ("vector", "quiver"):
        db.execute(sql.SQL("CREATE EXTENSION {}").format(sql.Identifier(extension)))
    keep_state(db, "made", wanted)
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


def _copy_rows(vectors: Floats, texts: list[tuple[str, str]] | None) -> Iterator[bytes]:
    """The rows of COPY ... (FORMAT binary): id, texts if any, vector."""
    fields = (4 if texts else 2).to_bytes(2, "big")
    for i, vector in enumerate(vectors):
        row = fields + b"\0\0\0\4" + i.to_bytes(4, "big")
        if texts:
            for text in texts[i]:
                data = text.encode()
                row += len(data).to_bytes(4, "big") + data
        body = vector.astype(">f4").tobytes()
        row += (len(body) + 4).to_bytes(4, "big") + len(vector).to_bytes(2, "big") + b"\0\0" + body
        yield row


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
    statement = sql.SQL("COPY {} FROM STDIN WITH (FORMAT binary)").format(table)
    with db.cursor().copy(statement) as copy:
        copy.write(b"PGCOPY\n\xff\r\n\0" + b"\0" * 8)
        for i, row in enumerate(_copy_rows(vectors, texts)):
            copy.write(row)
            if i % 2000 == 0:
                step.update(f"{i:,} of {len(vectors):,} rows")
        copy.write(b"\xff\xff")
    step.update("vacuum and analyze")
    db.execute(sql.SQL("VACUUM (ANALYZE) {}").format(table))


def load(db: Connection, dataset: Dataset, step: Step) -> None:
    """Fill items, its copies and queries."""
    _load_table(db, "queries", dataset.queries, None, step)
    _load_table(db, "items", dataset.train, dataset.texts, step)
    for name in TABLES.values():
        if name == "items":
            continue
        step.update(f"copy to {name}")
        table = sql.Identifier(name)
        db.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(table))
        db.execute(sql.SQL("CREATE TABLE {} (LIKE items INCLUDING ALL)").format(table))
        db.execute(sql.SQL("INSERT INTO {} SELECT * FROM items").format(table))
        db.execute(sql.SQL("VACUUM (ANALYZE) {}").format(table))
    keep_state(db, "loaded", len(dataset.train))


def _watch(server: Server, pid: int, step: Step, stop: threading.Event) -> None:
    """Show pg_stat_progress_create_index from a second connection."""
    with server.connect() as db:
        while not stop.wait(0.5):
            row = db.execute(
                "SELECT phase, tuples_done, tuples_total, blocks_done, blocks_total"
                " FROM pg_stat_progress_create_index WHERE pid = %s",
                (pid,),
            ).fetchone()
            if row:
                phase, tuples, tuples_total, blocks, blocks_total = row
                text = f"{step.seconds:.0f} s, {phase}"
                for done, total, what in (
                    (tuples, tuples_total, "rows"),
                    (blocks, blocks_total, "blocks"),
                ):
                    if total:
                        text += f", {done:,} of {total:,} {what}"
                        break
                step.update(text)


def index_name(method: str) -> str:
    return f"{TABLES[method]}_embedding_idx"


def build_index(db: Connection, server: Server, method: str, metric: str, step: Step) -> float:
    """CREATE INDEX; answers the seconds it took."""
    index = sql.Identifier(index_name(method))
    stop = threading.Event()
    watcher = threading.Thread(target=_watch, args=(server, db.info.backend_pid, step, stop))
    watcher.start()
    try:
        db.execute(sql.SQL("DROP INDEX IF EXISTS {}").format(index))
        began = time.perf_counter_ns()
        db.execute(
            sql.SQL("CREATE INDEX {} ON {} USING {} (embedding {})").format(
                index,
                sql.Identifier(TABLES[method]),
                sql.Identifier(method),
                sql.Identifier(OPERATORS[metric][1]),
            )
        )
        seconds = (time.perf_counter_ns() - began) / 1e9
    finally:
        stop.set()
        watcher.join()
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


def relation_bytes(db: Connection, name: str) -> int:
    row = db.execute("SELECT pg_relation_size(%s::regclass)", (name,)).fetchone()
    if row is None or not isinstance(row[0], int):
        raise MeasureError(f"{name} has no size")
    return row[0]
