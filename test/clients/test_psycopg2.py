"""psycopg2 with pgvector-python: literals in the statement, text COPY."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import dataset
import numpy as np
import psycopg2
import psycopg2.extras
import pytest
from dataset import CASES, IVFFLAT_CASES, Case
from pgvector import Bit, HalfVector, SparseVector, Vector
from pgvector.psycopg2 import register_vector
from plans import Plans

PACKAGES = ("psycopg2-binary", "pgvector")

Cursor = psycopg2.extensions.cursor


@pytest.fixture(scope="module")
def cursor() -> Iterator[Cursor]:
    conn = psycopg2.connect("")
    conn.autocommit = True
    with conn.cursor() as cursor:
        cursor.execute("CREATE EXTENSION IF NOT EXISTS vector")
        register_vector(conn)
        cursor.execute(dataset.CREATE_TABLE)
        psycopg2.extras.execute_values(cursor, "INSERT INTO items VALUES %s", tuples())
        for case in CASES:
            cursor.execute(dataset.create_index(case))
        cursor.execute("ANALYZE items")
        cursor.execute("SET hnsw.ef_search = %s", (dataset.EF_SEARCH,))
        yield cursor
    conn.close()


def param(type: str, value: np.ndarray) -> Any:
    match type:
        case "vector":
            return value
        case "halfvec":
            return HalfVector(value)
        case "sparsevec":
            return SparseVector(value)
        case _:
            return dataset.bit_text(value)


def tuples() -> Iterator[tuple[Any, ...]]:
    for i, id in enumerate(dataset.ids):
        yield (id, dataset.categories[i], *(param(t, dataset.rows[t][i]) for t in dataset.rows))


def search(cursor: Cursor, case: Case, category: int | None = None) -> list[list[tuple[int, float]]]:
    operator = case.operator.replace("%", "%%")
    where = "" if category is None else f"WHERE category = {category}"
    found = []
    for query in case.queries:
        cursor.execute(
            f"SELECT id, {case.column} {operator} %s AS d FROM items {where} ORDER BY d LIMIT %s",
            (param(case.type, query), dataset.K),
        )
        found.append(cursor.fetchall())
    return found


@pytest.mark.parametrize("case", CASES, ids=str)
def test_search(cursor: Cursor, plans: Plans, case: Case) -> None:
    found = search(cursor, case)
    plans.assert_used(case.index, dataset.QUERIES)
    case.check(found)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_filter(cursor: Cursor, plans: Plans, case: Case) -> None:
    cursor.execute("SET hnsw.iterative_scan = relaxed_order")
    found = search(cursor, case, category=3)
    cursor.execute("RESET hnsw.iterative_scan")
    plans.assert_used(case.index, dataset.QUERIES)
    # A relaxed order is put right by the client, as pgvector's users do.
    case.check([sorted(answer, key=lambda row: row[1]) for answer in found], category=3)


def test_values(cursor: Cursor) -> None:
    cursor.execute("SELECT vector_, halfvec_, sparsevec_, bit_ FROM items ORDER BY id")
    columns = list(zip(*cursor.fetchall(), strict=True))
    for type, column in zip(("vector", "halfvec", "sparsevec"), columns, strict=False):
        np.testing.assert_array_equal(np.stack([v.to_numpy() for v in column]), dataset.rows[type])
    assert list(columns[3]) == [dataset.bit_text(bits) for bits in dataset.rows["bit"]]


def test_copy(cursor: Cursor) -> None:
    out = io.StringIO()
    cursor.copy_expert("COPY items TO STDOUT", out)
    out.seek(0)
    cursor.execute("CREATE TEMP TABLE copied (LIKE items)")
    cursor.copy_expert("COPY copied FROM STDIN", out)
    cursor.execute("SELECT count(*) FROM copied")
    assert cursor.fetchone() == (dataset.ROWS,)
    cursor.execute("TABLE items EXCEPT ALL TABLE copied")
    assert cursor.fetchall() == []


def test_arrays_and_nulls(cursor: Cursor) -> None:
    cursor.execute("CREATE TEMP TABLE arrays (v vector[], h halfvec[], s sparsevec[], n vector(3))")
    v, h = [Vector([1, 2, 3]), Vector([4, 5])], [HalfVector([1.5])]
    s = [SparseVector({1: 2.0}, 7)]
    cursor.execute("INSERT INTO arrays VALUES (%s::vector[], %s::halfvec[], %s::sparsevec[], %s)", (v, h, s, None))
    cursor.execute("TABLE arrays")
    assert cursor.fetchall() == [(v, h, s, None)]


def test_bits(cursor: Cursor) -> None:
    query = dataset.queries["vector"][0]
    cursor.execute("SELECT binary_quantize(%s::vector)", (Vector(query),))
    assert cursor.fetchone() == (Bit(query > 0).to_text(),)


@pytest.mark.ivfflat
@pytest.mark.parametrize("case", IVFFLAT_CASES, ids=str)
def test_ivfflat(cursor: Cursor, plans: Plans, case: Case) -> None:
    cursor.execute(f"DROP INDEX {case.index}")
    cursor.execute(dataset.create_index(case, "ivfflat"))
    try:
        cursor.execute("SET ivfflat.probes = %s", (dataset.LISTS,))
        found = search(cursor, case)
        plans.assert_used(f"{case.index}_ivfflat", dataset.QUERIES)
        case.check(found, order=dataset.IVFFLAT_ORDER)
    finally:
        cursor.execute(f"DROP INDEX {case.index}_ivfflat")
        cursor.execute(dataset.create_index(case))
