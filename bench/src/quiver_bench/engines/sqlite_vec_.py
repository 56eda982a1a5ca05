"""SQLite with sqlite-vec: exact scans of a file, a connection a client.

Through apsw, whose SQLite always loads extensions; Python's own often cannot.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from quiver_bench.engines.base import Built, Data, Engine, Search, Session, SessionFactory
from quiver_bench.errors import MissingError, UnsupportedError
from quiver_bench.records import Params
from quiver_bench.truth import Floats

METRICS = {"euclidean": "l2", "angular": "cosine"}
CACHE_KB = 2 << 20
BUSY_MS = 30_000


def connect(path: str) -> Any:
    import apsw
    import sqlite_vec

    db = apsw.Connection(path)
    db.enable_load_extension(True)
    db.load_extension(sqlite_vec.loadable_path())
    db.set_busy_timeout(BUSY_MS)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute(f"PRAGMA cache_size = -{CACHE_KB}")
    db.execute(f"PRAGMA mmap_size = {CACHE_KB << 10}")
    return db


class SqliteSession(Session):
    def __init__(self, path: str, search: Search) -> None:
        self.db = connect(path)
        where = f" AND {search.where.column} < {search.where.below}" if search.where else ""
        self.sql = f"SELECT rowid FROM items WHERE embedding MATCH ? AND k = {search.k}{where}"

    def encode(self, vector: Floats) -> bytes:
        return vector.tobytes()

    def search(self, query: Any) -> Sequence[int]:
        return [row[0] for row in self.db.execute(self.sql, (query,))]

    def read(self, row: int) -> bool:
        return bool(
            self.db.execute("SELECT embedding FROM items WHERE rowid = ?", (row,)).fetchall()
        )

    def find(self, value: int) -> Sequence[int]:
        found = self.db.execute("SELECT rowid FROM items WHERE any_rank = ?", (value,))
        return [row[0] for row in found]

    def insert(self, row: int, vector: Any, ranks: tuple[int, int]) -> None:
        self.db.execute(
            "INSERT INTO items (rowid, any_rank, near_rank, embedding) VALUES (?, ?, ?, ?)",
            (row, *ranks, vector),
        )

    def update(self, row: int, vector: Any, ranks: tuple[int, int]) -> None:
        self.db.execute("UPDATE items SET embedding = ? WHERE rowid = ?", (vector, row))

    def delete(self, row: int) -> None:
        self.db.execute("DELETE FROM items WHERE rowid = ?", (row,))

    def close(self) -> None:
        self.db.close()


class SqliteVec(Engine):
    adapter = "sqlite-vec"
    label = "exact"
    embedded = False  # a process a client: SQLite shares its file, not its connections

    def start(self, server: Params) -> str:
        try:
            import apsw
            import sqlite_vec  # noqa: F401
        except ImportError as error:
            raise MissingError(
                "needs sqlite-vec and apsw: pip install quiver-bench[sqlite]"
            ) from error
        self.place.mkdir(parents=True, exist_ok=True)
        self.path = str(self.place / "items.db")
        return f"sqlite-vec {version('sqlite-vec')}, SQLite {apsw.sqlite_lib_version()}"

    def pids(self) -> Iterable[int]:
        """This process, and so its children: the clients read the file themselves."""
        return (os.getpid(),)

    def load(self, data: Data) -> float:
        if data.dataset.metric not in METRICS:
            raise UnsupportedError("sqlite-vec knows no inner product")
        self.data = data
        for suffix in ("", "-wal", "-shm"):
            Path(self.path + suffix).unlink(missing_ok=True)
        db = connect(self.path)
        try:
            db.execute(
                "CREATE VIRTUAL TABLE items USING vec0(any_rank integer, near_rank integer,"
                f" embedding float[{data.dataset.dimensions}]"
                f" distance_metric={METRICS[data.dataset.metric]})"
            )
            began = time.perf_counter()
            with db:
                db.executemany(
                    "INSERT INTO items (rowid, any_rank, near_rank, embedding) VALUES (?, ?, ?, ?)",
                    (
                        (i, int(data.any_rank[i]), int(data.near_rank[i]), vector.tobytes())
                        for i, vector in enumerate(data.dataset.train)
                    ),
                )
            return time.perf_counter() - began
        finally:
            db.close()

    def build(self, params: Params) -> Built:
        return Built(0.0, 0, Path(self.path).stat().st_size, mode="none")

    def sessions(self, search: Search) -> SessionFactory:
        return partial(SqliteSession, self.path, search)
