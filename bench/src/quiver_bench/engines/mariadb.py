"""MariaDB 11.7 and later: a private server, its vector index."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from quiver_bench.engines.base import (
    Built,
    Data,
    ProcessEngine,
    Search,
    Session,
    SessionFactory,
    take,
)
from quiver_bench.environment import memory_mb
from quiver_bench.errors import EngineError, MeasureError, MissingError, UnsupportedError
from quiver_bench.records import Params
from quiver_bench.servers import Process, command
from quiver_bench.truth import Floats

DISTANCES = {
    "euclidean": ("VEC_DISTANCE_EUCLIDEAN", "euclidean"),
    "angular": ("VEC_DISTANCE_COSINE", "cosine"),
}
BATCH = 200
DEADLOCK = 1213


def connect(socket: str) -> Any:
    import pymysql

    return pymysql.connect(
        unix_socket=socket, user="root", database="bench", autocommit=True, charset="utf8mb4"
    )


def literal(vector: Floats) -> str:
    return "x'" + vector.astype("<f4").tobytes().hex() + "'"


def search_sql(search: Search, metric: str) -> tuple[str, str]:
    """What stands before and after the query's vector."""
    where = f" WHERE {search.where.column} < {search.where.below}" if search.where else ""
    function = DISTANCES[metric][0]
    return f"SELECT id FROM items{where} ORDER BY {function}(embedding, ", f") LIMIT {search.k}"


class MariaSession(Session):
    def __init__(self, socket: str, search: Search, metric: str) -> None:
        self.db = connect(socket)
        self.cursor = self.db.cursor()
        self.cursor.execute(f"SET mhnsw_ef_search = {take(search.params, 'ef_search', 20)}")
        self.before, self.after = search_sql(search, metric)

    def encode(self, vector: Floats) -> str:
        return literal(vector)

    def search(self, query: Any) -> Sequence[int]:
        self.cursor.execute(self.before + query + self.after)
        return [row[0] for row in self.cursor.fetchall()]

    def ping(self) -> None:
        self.cursor.execute("SELECT 1")
        self.cursor.fetchall()

    def read(self, row: int) -> bool:
        return bool(
            self.cursor.execute(f"SELECT id, any_rank, embedding FROM items WHERE id = {row}")
        )

    def find(self, value: int) -> Sequence[int]:
        self.cursor.execute(f"SELECT id FROM items WHERE any_rank = {value}")
        return [row[0] for row in self.cursor.fetchall()]

    def _write(self, statement: str) -> None:
        """Clients that change its index at the same time deadlock: as its users, try again."""
        import pymysql

        while True:
            try:
                self.cursor.execute(statement)
            except pymysql.err.OperationalError as error:
                if error.args[0] != DEADLOCK:
                    raise
            else:
                return

    def insert(self, row: int, vector: Any, ranks: tuple[int, int]) -> None:
        self._write(f"INSERT INTO items VALUES ({row}, {ranks[0]}, {ranks[1]}, {vector})")

    def update(self, row: int, vector: Any, ranks: tuple[int, int]) -> None:
        self._write(f"UPDATE items SET embedding = {vector} WHERE id = {row}")

    def delete(self, row: int) -> None:
        self._write(f"DELETE FROM items WHERE id = {row}")

    def close(self) -> None:
        self.db.close()


class MariaDB(ProcessEngine):
    adapter = "mariadb"
    parameters = ("m",)
    search_parameters = ("ef_search",)

    def start(self, server: Params) -> str:
        try:
            import pymysql  # noqa: F401
        except ImportError as error:
            raise MissingError("needs pymysql: pip install quiver-bench[mariadb]") from error
        program = command(self.top, "mariadbd", "mariadb-server-core", (11, 7))
        self.place.mkdir(parents=True, exist_ok=True)
        self.process = Process(self.place)
        self.socket = str(self.process.socket)
        data = self.place / "data"
        data.mkdir(exist_ok=True)
        arguments = [*program, "--no-defaults", f"--datadir={data}", f"--socket={self.socket}",
                     "--skip-networking", "--skip-grant-tables", f"--tmpdir={self.place}"]  # fmt: skip
        prefix = Path(program[-1]).parents[2]
        if prefix != Path("/"):  # unpacked: its messages and plugins lie beside it
            arguments += [f"--lc-messages-dir={prefix}/usr/share/mysql",
                          f"--plugin-dir={prefix}/usr/lib/mysql/plugin"]  # fmt: skip
        if os.geteuid() == 0:
            arguments.append("--user=root")
        memory = memory_mb()
        asked = {
            "innodb-buffer-pool-size": f"{min(4096, memory // 8)}M",
            "mhnsw-max-cache-size": f"{min(4096, memory // 8) << 20}",
            "innodb-log-file-size": "1G",
            "performance-schema": "OFF",
            **server,
        }
        arguments += [f"--{name}={value}" for name, value in asked.items()]
        self.process.start(arguments, self._ready)
        db = connect(self.socket)
        with db, db.cursor() as cursor:
            cursor.execute("SELECT version()")
            row = cursor.fetchone()
        return f"MariaDB {row[0]}"

    def _ready(self) -> None:
        import pymysql

        with pymysql.connect(unix_socket=self.socket, user="root") as db, db.cursor() as cursor:
            cursor.execute("CREATE DATABASE IF NOT EXISTS bench")

    def settings(self) -> Params:
        with connect(self.socket) as db, db.cursor() as cursor:
            cursor.execute(
                "SHOW GLOBAL VARIABLES WHERE Variable_name LIKE 'mhnsw%' OR Variable_name IN"
                " ('innodb_buffer_pool_size', 'innodb_flush_log_at_trx_commit', 'version')"
            )
            return {str(name): str(value) for name, value in cursor.fetchall()}

    def _create(self, cursor: Any) -> None:
        cursor.execute("DROP TABLE IF EXISTS items")
        cursor.execute(
            "CREATE TABLE items (id INT PRIMARY KEY, any_rank INT NOT NULL, near_rank INT NOT"
            f" NULL, embedding VECTOR({self.data.dataset.dimensions}) NOT NULL,"
            " KEY (any_rank), KEY (near_rank)) ENGINE = InnoDB"
        )

    def load(self, data: Data) -> float:
        if data.dataset.metric not in DISTANCES:
            raise UnsupportedError("MariaDB's vector index knows no inner product")
        self.data = data
        with connect(self.socket) as db, db.cursor() as cursor:
            self._create(cursor)
            began = time.perf_counter()
            for start in range(0, data.dataset.rows, BATCH):
                rows = [
                    f"({i},{data.any_rank[i]},{data.near_rank[i]},{literal(data.dataset.train[i])})"
                    for i in range(start, min(start + BATCH, data.dataset.rows))
                ]
                cursor.execute("INSERT INTO items VALUES " + ",".join(rows))
            seconds = time.perf_counter() - began
            cursor.execute("ANALYZE TABLE items")
        self.indexed = False
        return seconds

    def _add_index(self, cursor: Any, params: Params) -> None:
        distance = DISTANCES[self.data.dataset.metric][1]
        cursor.execute(
            "ALTER TABLE items ADD VECTOR INDEX v (embedding)"
            f" M = {take(params, 'm', 6)} DISTANCE = {distance}"
        )

    def build(self, params: Params) -> Built:
        with connect(self.socket) as db, db.cursor() as cursor:
            cursor.execute("ALTER TABLE items DROP INDEX IF EXISTS v")
            began = time.perf_counter_ns()
            self._add_index(cursor, params)
            seconds = (time.perf_counter_ns() - began) / 1e9
        files = self.place / "data" / "bench"
        size = sum(path.stat().st_size for path in files.glob("items#*"))
        return Built(seconds, size, (files / "items.ibd").stat().st_size)

    def empty(self, params: Params) -> None:
        with connect(self.socket) as db, db.cursor() as cursor:
            self._create(cursor)
            self._add_index(cursor, params)

    def settle(self) -> None:
        with connect(self.socket) as db, db.cursor() as cursor:
            cursor.execute("ANALYZE TABLE items")

    def sessions(self, search: Search) -> SessionFactory:
        return partial(MariaSession, self.socket, search, self.data.dataset.metric)

    def check_plan(self, search: Search) -> None:
        before, after = search_sql(search, self.data.dataset.metric)
        with connect(self.socket) as db, db.cursor() as cursor:
            cursor.execute("EXPLAIN " + before + literal(self.data.dataset.queries[0]) + after)
            row = cursor.fetchone()
            columns = [column[0] for column in cursor.description or ()]
        if row is None:
            raise EngineError("EXPLAIN said nothing")
        plan = dict(zip(columns, row, strict=True))
        if plan.get("key") != "v" and search.where is None:
            raise MeasureError(f"the planner chose another way: {plan}")
