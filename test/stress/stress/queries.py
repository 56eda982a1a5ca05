"""What is asked of a table, by its index and past it."""

from __future__ import annotations

from typing import Any, LiteralString

import psycopg
from psycopg import sql

from stress.kinds import Kind
from stress.model import Row

Settings = tuple[tuple[str, str], ...]

INDEX_ONLY: Settings = (
    ("enable_seqscan", "off"),
    ("enable_sort", "off"),
    ("enable_bitmapscan", "off"),
)
# A plain index scan that goes on to the last row.
EXHAUSTIVE: Settings = (
    *INDEX_ONLY,
    ("quiver.topk_scan", "off"),
    ("quiver.iterative_scan", "relaxed_order"),
    ("hnsw.iterative_scan", "relaxed_order"),
    ("ivfflat.iterative_scan", "relaxed_order"),
    ("ivfflat.max_probes", "32768"),
    ("quiver.max_scan_tuples", "2147483647"),
    ("hnsw.max_scan_tuples", "2147483647"),
    ("quiver.scan_mem_multiplier", "1000"),
    ("hnsw.scan_mem_multiplier", "1000"),
)
# Searches that hardly miss the nearest row.
CAREFUL: Settings = (
    *INDEX_ONLY,
    ("quiver.ef_search", "400"),
    ("hnsw.ef_search", "400"),
    ("quiver.probes", "65536"),
    ("ivfflat.probes", "32768"),
)
MODES: tuple[Settings, ...] = (
    (),
    (),
    INDEX_ONLY,
    (*INDEX_ONLY, ("quiver.topk_scan", "off")),
    (*INDEX_ONLY, ("quiver.topk_scan", "off"), ("quiver.iterative_scan", "off")),
    (
        *INDEX_ONLY,
        ("quiver.topk_scan", "off"),
        ("hnsw.iterative_scan", "strict_order"),
        ("ivfflat.iterative_scan", "relaxed_order"),
    ),
    (*EXHAUSTIVE, ("quiver.sketches", "on")),
)


class Queries:
    """Of one table, in one session."""

    def __init__(self, connection: psycopg.Connection[Any], kind: Kind) -> None:
        self.connection = connection
        self.kind = kind

    def search(
        self, n: int, limit: int, where: LiteralString = "true"
    ) -> list[tuple[int, float | None]]:
        """(id, distance) of the rows nearest to a value of the pool."""
        query = self.kind.statement(
            "SELECT id, v {op} (SELECT v FROM {pool} WHERE n = %s) FROM {t} WHERE {where} "
            "ORDER BY v {op} (SELECT v FROM {pool} WHERE n = %s) LIMIT %s",
            where=sql.SQL(where.replace("%", "%%")),
        )
        return self.connection.execute(query, (n, n, limit)).fetchall()

    def declare(self, name: str, n: int, limit: int | None) -> None:
        """A cursor over the rows nearest to a value of the pool; without a limit, all."""
        query = self.kind.statement(
            "DECLARE {c} CURSOR FOR SELECT id FROM {t} "
            "ORDER BY v {op} (SELECT v FROM {pool} WHERE n = {n}) LIMIT {limit}",
            c=sql.Identifier(name),
            n=sql.Literal(n),
            limit=sql.Literal(limit),
        )
        self.connection.execute(query)

    def every_row(self, n: int, limit: int | None = None) -> list[int]:
        """Ids in the order of the index, as the session is set, to the last."""
        query = self.kind.statement(
            "SELECT id FROM {t} ORDER BY v {op} (SELECT v FROM {pool} WHERE n = %s)"
        )
        if limit is None:
            rows = self.connection.execute(query, (n,)).fetchall()
        else:
            rows = self.connection.execute(query + sql.SQL(" LIMIT %s"), (n, limit)).fetchall()
        return [row[0] for row in rows]

    def matching(self, where: LiteralString) -> int:
        """How many rows a condition leaves."""
        query = self.kind.statement(
            "SELECT count(*) FROM {t} WHERE {where}", where=sql.SQL(where.replace("%", "%%"))
        )
        row = self.connection.execute(query, ()).fetchone()
        assert row is not None
        return int(row[0])

    def table_rows(self) -> dict[int, Row]:
        """All rows, past the index."""
        rows = self.connection.execute(
            self.kind.statement("SELECT id, version, n FROM {t}")
        ).fetchall()
        return {i: (version, n) for i, version, n in rows}

    def indexes(self, valid: bool = True) -> list[str]:
        """Names of the vector indexes that are, or are not, valid; the newest last."""
        rows = self.connection.execute(
            "SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid "
            "JOIN pg_am a ON a.oid = c.relam WHERE i.indrelid = %s::regclass "
            "AND a.amname <> 'btree' AND i.indisvalid = %s ORDER BY c.oid",
            (self.kind.name, valid),
        ).fetchall()
        return [row[0] for row in rows]
