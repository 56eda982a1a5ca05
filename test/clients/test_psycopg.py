"""psycopg 3 with pgvector-python: parameters and COPY in text and in binary."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import dataset
import numpy as np
import psycopg
import pytest
from dataset import CASES, IVFFLAT_CASES, Case
from pgvector import Bit, HalfVector, SparseVector, Vector
from pgvector.psycopg import register_vector, register_vector_async
from plans import Plans
from psycopg import sql

PACKAGES = ("psycopg", "pgvector")


@pytest.fixture(scope="module")
def conn() -> Iterator[psycopg.Connection]:
    with psycopg.connect(autocommit=True) as conn:
        conn.execute("CREATE EXTENSION IF NOT EXISTS vector")
        register_vector(conn)
        conn.execute(dataset.CREATE_TABLE)
        copy_in(conn, "items", binary=True)
        for case in CASES:
            conn.execute(dataset.create_index(case))
        conn.execute("ANALYZE items")
        conn.execute(f"SET hnsw.ef_search = {dataset.EF_SEARCH}")
        yield conn


def param(type: str, value: np.ndarray) -> Any:
    match type:
        case "vector":
            return value  # numpy arrays go as they are
        case "halfvec":
            return HalfVector(value)
        case "sparsevec":
            return SparseVector(value)
        case _:
            return Bit(value)


def read(type: str, value: Any) -> np.ndarray:
    if type == "bit":
        # psycopg reads bits as text, and leaves the binary format to its caller.
        text = value if isinstance(value, str) else Bit.from_binary(value).to_text()
        return np.array([bit == "1" for bit in text])
    return value.to_numpy()


def tuples() -> Iterator[tuple[Any, ...]]:
    for i, id in enumerate(dataset.ids):
        yield (id, dataset.categories[i], *(param(t, dataset.rows[t][i]) for t in dataset.rows))


def copy_in(conn: psycopg.Connection, table: str, *, binary: bool) -> None:
    statement = sql.SQL("COPY {} FROM STDIN" + (" WITH (FORMAT BINARY)" if binary else ""))
    with conn.cursor().copy(statement.format(sql.Identifier(table))) as copy:
        if binary:
            copy.set_types(["int4", "int4", *dataset.rows])
        for row in tuples():
            copy.write_row(row)


def search(
    conn: psycopg.Connection,
    case: Case,
    *,
    binary: bool = False,
    category: int | None = None,
    k: int = dataset.K,
    prepare: bool | None = None,
) -> list[list[tuple[int, float]]]:
    mark = "%b" if binary else "%t"
    statement = sql.SQL(
        f"SELECT id, {{column}} {case.operator.replace('%', '%%')} {mark} AS distance FROM items "
        + ("WHERE category = %s " if category is not None else "")
        + "ORDER BY distance LIMIT %s"
    ).format(column=sql.Identifier(case.column))
    filter = () if category is None else (category,)
    return [
        conn.execute(
            statement, (param(case.type, query), *filter, k), binary=binary, prepare=prepare
        ).fetchall()
        for query in case.queries
    ]


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_search(conn: psycopg.Connection, plans: Plans, case: Case, binary: bool) -> None:
    found = search(conn, case, binary=binary)
    plans.assert_used(case.index, dataset.QUERIES)
    case.check(found)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_filter(conn: psycopg.Connection, plans: Plans, case: Case) -> None:
    with conn.transaction():
        conn.execute("SET LOCAL hnsw.iterative_scan = strict_order")
        found = search(conn, case, category=3)
    plans.assert_used(case.index, dataset.QUERIES)
    case.check(found, category=3)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_exact(conn: psycopg.Connection, plans: Plans, case: Case) -> None:
    with conn.transaction():
        conn.execute("SET LOCAL enable_indexscan = off; SET LOCAL enable_seqscan = on")
        # Settings do not change a plan that is kept for a prepared statement.
        found = search(conn, case, prepare=False)
    plans.assert_used(case.index, 0)
    case.check(found, recall=1.0)


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
@pytest.mark.parametrize("type", dataset.rows)
def test_values(conn: psycopg.Connection, type: str, binary: bool) -> None:
    statement = sql.SQL("SELECT {} FROM items ORDER BY id").format(sql.Identifier(f"{type}_"))
    got = conn.execute(statement, binary=binary).fetchall()
    np.testing.assert_array_equal(np.stack([read(type, value) for (value,) in got]), dataset.rows[type])


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
def test_copy(conn: psycopg.Connection, binary: bool) -> None:
    """In by one format and out by the other: the same values as by binary COPY."""
    conn.execute("CREATE TEMP TABLE copied (LIKE items)")
    copy_in(conn, "copied", binary=binary)
    assert conn.execute("TABLE items EXCEPT ALL TABLE copied").fetchall() == []
    out = "COPY copied (id, vector_, halfvec_, sparsevec_) TO STDOUT"
    with conn.cursor().copy(out + ("" if binary else " WITH (FORMAT BINARY)")) as copy:
        copy.set_types(["int4", "vector", "halfvec", "sparsevec"])
        got = list(copy.rows())
    conn.execute("DROP TABLE copied")
    assert len(got) == dataset.ROWS
    for id, *values in got:
        for type, value in zip(("vector", "halfvec", "sparsevec"), values, strict=True):
            np.testing.assert_array_equal(value.to_numpy(), dataset.rows[type][id - 1])


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
def test_arrays_and_nulls(conn: psycopg.Connection, binary: bool) -> None:
    conn.execute("CREATE TEMP TABLE arrays (v vector[], h halfvec[], s sparsevec[], n vector(3))")
    v, h = [Vector([1, 2, 3]), Vector([4, 5])], [HalfVector([1.5])]
    s = [SparseVector({1: 2.0}, 7)]
    mark = "%b" if binary else "%t"
    conn.execute(f"INSERT INTO arrays VALUES ({mark}, {mark}, {mark}, {mark})", (v, h, s, None))
    assert conn.execute("TABLE arrays", binary=binary).fetchall() == [(v, h, s, None)]
    conn.execute("DROP TABLE arrays")


def test_prepared(conn: psycopg.Connection, plans: Plans) -> None:
    """Custom plans at first, then a generic one: both read the index."""
    case = dataset.find("vector", "cosine")
    statement = "SELECT id, vector_ <=> %b AS d FROM items ORDER BY vector_ <=> %b LIMIT %s"
    found = [
        conn.execute(statement, (query, query, dataset.K), prepare=True).fetchall() for query in case.queries
    ]
    plans.assert_used(case.index, dataset.QUERIES)
    case.check(found)


def test_server_cursor(conn: psycopg.Connection, plans: Plans) -> None:
    """Rows come in the order of their distances for as long as the client reads."""
    case = dataset.find("vector", "l2")
    with conn.transaction(), conn.cursor(name="nearest") as cursor:
        conn.execute("SET LOCAL hnsw.iterative_scan = strict_order")
        cursor.itersize = 50
        cursor.execute("SELECT id, vector_ <-> %s AS d FROM items ORDER BY d", (case.queries[0],))
        found = [row for row, _ in zip(cursor, range(200), strict=False)]
    plans.assert_used(case.index, 1)
    distances = [distance for _, distance in found]
    assert distances == sorted(distances) and len({id for id, _ in found}) == 200
    truth = np.sort(case.distances(case.queries[0]))[:200]
    assert np.mean(np.array(distances) <= truth[-1] + 1e-4) >= dataset.RECALL


def test_rerank(conn: psycopg.Connection, plans: Plans) -> None:
    """Candidates by the bits of the signs, then in the order of the whole vectors."""
    case = dataset.find("vector", "l2")
    bit = f"bit({dataset.DIMS})"
    conn.execute(
        f"CREATE INDEX items_signs ON items USING hnsw ((binary_quantize(vector_)::{bit}) bit_hamming_ops)"
    )
    statement = f"""
        SELECT id, vector_ <-> %(q)s AS d FROM (
            SELECT id, vector_ FROM items ORDER BY binary_quantize(vector_)::{bit} <~> binary_quantize(%(q)s) LIMIT 100
        ) AS candidates ORDER BY d LIMIT %(k)s"""
    with conn.transaction():
        conn.execute("SET LOCAL hnsw.ef_search = 100")
        found = [conn.execute(statement, {"q": q, "k": dataset.K}).fetchall() for q in case.queries]
    plans.assert_used("items_signs", dataset.QUERIES)
    case.check(found, recall=0.9)
    conn.execute("DROP INDEX items_signs")


def test_updates(conn: psycopg.Connection, plans: Plans) -> None:
    """What a client inserts, changes and deletes is found, or found no more."""
    far = np.full(dataset.DIMS, 9, dtype=np.float32)
    nearest = "SELECT id FROM items ORDER BY vector_ <-> %s LIMIT 1"
    conn.execute("INSERT INTO items (id, category, vector_) VALUES (9999, 0, %s)", (far,))
    assert conn.execute(nearest, (far,)).fetchone() == (9999,)
    conn.execute("UPDATE items SET vector_ = %s WHERE id = 9999", (-far,))
    assert conn.execute(nearest, (-far,)).fetchone() == (9999,)
    assert conn.execute(nearest, (far,)).fetchone() != (9999,)
    conn.execute("DELETE FROM items WHERE id = 9999")
    assert conn.execute(nearest, (-far,)).fetchone() != (9999,)
    plans.assert_used("items_vector_l2", 4)


def test_errors(conn: psycopg.Connection) -> None:
    with pytest.raises(psycopg.errors.DataException, match=f"expected {dataset.DIMS} dimensions, not 2"):
        conn.execute("INSERT INTO items (id, category, vector_) VALUES (0, 0, '[1,2]')")
    with pytest.raises(psycopg.errors.DataException, match="different vector dimensions"):
        conn.execute("SELECT id FROM items ORDER BY vector_ <-> '[1,2]' LIMIT 1")
    with pytest.raises(psycopg.errors.InvalidTextRepresentation, match="invalid input syntax for type vector"):
        conn.execute("SELECT 'one'::vector")


def test_async(conn: psycopg.Connection, plans: Plans) -> None:
    case = dataset.find("halfvec", "ip")

    async def run() -> list[list[tuple[int, float]]]:
        async with await psycopg.AsyncConnection.connect() as conn:
            await register_vector_async(conn)
            await conn.execute(f"SET hnsw.ef_search = {dataset.EF_SEARCH}")
            statement = "SELECT id, halfvec_ <#> %s AS d FROM items ORDER BY d LIMIT %s"
            return [
                await (await conn.execute(statement, (HalfVector(q), dataset.K))).fetchall()
                for q in case.queries
            ]

    found = asyncio.run(run())
    plans.assert_used(case.index, dataset.QUERIES)
    case.check(found)


@pytest.mark.ivfflat
@pytest.mark.parametrize("case", IVFFLAT_CASES, ids=str)
def test_ivfflat(conn: psycopg.Connection, plans: Plans, case: Case) -> None:
    conn.execute(f"DROP INDEX {case.index}")
    conn.execute(dataset.create_index(case, "ivfflat"))
    try:
        conn.execute(f"SET ivfflat.probes = {dataset.LISTS}")
        found = search(conn, case)
        plans.assert_used(f"{case.index}_ivfflat", dataset.QUERIES)
        case.check(found, order=dataset.IVFFLAT_ORDER)
    finally:
        conn.execute(f"DROP INDEX {case.index}_ivfflat")
        conn.execute(dataset.create_index(case))
