"""Speed of exact scans of two servers, side by side: every type and operator.

For each the server's own execution time of

    SELECT id FROM exact_scan ORDER BY v <op> q LIMIT 10

without an index: rows in shared buffers, one client, no parallel workers, no JIT, the
servers in turn, the median. Both must return the same rows; a line says where they differ.
"""

from __future__ import annotations

import statistics
from typing import Any

import psycopg

from quiver_bench.console import say
from quiver_bench.engines.postgres import Connection
from quiver_bench.errors import EngineError
from quiver_bench.tables import Table

RANDOM_SPARSE = "sparsevec, random"
TYPES = {
    "vector": ("<->", "<#>", "<=>", "<+>"),
    "halfvec": ("<->", "<#>", "<=>", "<+>"),
    "bit": ("<~>", "<%>"),
    "sparsevec": ("<->", "<#>", "<=>", "<+>"),
    RANDOM_SPARSE: ("<->", "<#>", "<=>", "<+>"),
}
SETTINGS = ("jit = off", "max_parallel_workers_per_gather = 0", "synchronize_seqscans = off",
            "client_min_messages = warning")  # fmt: skip


def connect(conninfo: str) -> Connection:
    try:
        db: Connection = psycopg.connect(conninfo, autocommit=True)
    except psycopg.Error as error:
        raise EngineError(f"cannot connect: {error}") from error
    for setting in SETTINGS:
        db.execute(f"SET {setting}".encode())
    return db


def type_of(kind: str) -> str:
    return kind.split(",", maxsplit=1)[0]


def value(kind: str, dims: int, row: str) -> str:
    """An expression for the value of a row, the same on every server."""
    term = f"sin({row} * 12.9898 + j * 78.233)"
    array = f"(SELECT array_agg({term}::real ORDER BY j) FROM generate_series(1, {dims}) j)"
    if kind == "bit":
        return f"binary_quantize({array}::vector)::bit({dims})"
    if type_of(kind) == "sparsevec":
        # one element in ten: every tenth one, or by the bits of a hash
        chosen = f"(j + {row}) % 10 = 0"
        if kind == RANDOM_SPARSE:
            chosen = f"(hashint4(j * 65536 + {row}) & 1023) < 102"
        array = (
            f"(SELECT array_agg(CASE WHEN {chosen} THEN {term} ELSE 0 END::real ORDER BY j)"
            f" FROM generate_series(1, {dims}) j)"
        )
        return f"{array}::vector::sparsevec({dims})"
    return f"{array}::{kind}({dims})"


def load(db: Connection, kind: str, dims: int, rows: int) -> None:
    for statement in (
        "DROP TABLE IF EXISTS exact_scan",
        f"CREATE TABLE exact_scan (id int, v {type_of(kind)}({dims}))",
        "ALTER TABLE exact_scan ALTER v SET STORAGE PLAIN",
        f"INSERT INTO exact_scan SELECT i, {value(kind, dims, 'i')} FROM generate_series(1, {rows}) i",
        "VACUUM ANALYZE exact_scan",
    ):
        db.execute(statement.encode())


def one(db: Connection, statement: str) -> Any:
    row = db.execute(statement.encode()).fetchone()
    return row[0] if row else None


def run(quiver: str, pgvector: str, rows: int, dims: int, repeat: int) -> None:
    """Measure and print; the tables are dropped again."""
    servers = [connect(quiver), connect(pgvector)]
    table = Table(
        f"Exact scans: {rows} rows, {dims} dimensions, median of {repeat}, ms",
        ("type", "op", "Quiver", "pgvector", "ratio", ""),
    )
    for kind, operators in TYPES.items():
        for db in servers:
            load(db, kind, dims, rows)
        seed = "5" if type_of(kind) == "sparsevec" else "0.5"
        query = one(servers[1], f"SELECT ({value(kind, dims, seed)})::text")
        literal = f"B'{query}'" if kind == "bit" else f"'{query}'::{type_of(kind)}"
        for op in operators:
            select = f"SELECT id FROM exact_scan ORDER BY v {op} {literal}, id LIMIT 10"
            found = [db.execute(select.encode()).fetchall() for db in servers]  # warms as well
            times: list[list[float]] = [[], []]
            for _ in range(repeat):
                for i, db in enumerate(servers):
                    plan = one(db, f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {select}")
                    times[i].append(plan[0]["Execution Time"])
            ours, theirs = (statistics.median(t) for t in times)
            differs = "" if found[0] == found[1] else f"differs: {found}"
            table.add(kind, op, f"{ours:.2f}", f"{theirs:.2f}", f"{theirs / ours:.2f}", differs)
    for db in servers:
        db.execute("DROP TABLE exact_scan")
        db.close()
    say(table.text())
