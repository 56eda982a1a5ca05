"""pg8000 with pgvector-python: a driver in pure Python, text format."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import dataset
import numpy as np
import pg8000.native
import pytest
from dataset import CASES, IVFFLAT_CASES, Case
from pgvector import HalfVector, SparseVector
from pgvector.pg8000 import register_vector
from plans import Plans

PACKAGES = ("pg8000", "pgvector")


@pytest.fixture(scope="module")
def conn() -> Iterator[pg8000.native.Connection]:
    env = os.environ
    conn = pg8000.native.Connection(
        env["PGUSER"],
        database=env["PGDATABASE"],
        unix_sock=f"{env['PGHOST']}/.s.PGSQL.{env['PGPORT']}",
    )
    conn.run("CREATE EXTENSION IF NOT EXISTS vector")
    register_vector(conn)
    conn.run(dataset.CREATE_TABLE)
    insert = conn.prepare("INSERT INTO items VALUES (:id, :category, :vector, :halfvec, :sparsevec, :bit)")
    for i, id in enumerate(dataset.ids):
        values = {t: param(t, dataset.rows[t][i]) for t in dataset.rows}
        insert.run(id=id, category=dataset.categories[i], **values)
    for case in CASES:
        conn.run(dataset.create_index(case))
    conn.run("ANALYZE items")
    conn.run(f"SET hnsw.ef_search = {dataset.EF_SEARCH}")
    conn.run("SET hnsw.iterative_scan = strict_order")
    yield conn
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


def search(conn: pg8000.native.Connection, case: Case, where: str = "") -> list[list[Any]]:
    cast = f"::bit({dataset.BITS})" if case.type == "bit" else ""
    distance = f"{case.column} {case.operator} :query{cast}"
    statement = f"SELECT id, {distance} FROM items {where} ORDER BY {distance} LIMIT {dataset.K}"
    return [conn.run(statement, query=param(case.type, query)) for query in case.queries]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_search(conn: pg8000.native.Connection, plans: Plans, case: Case) -> None:
    found = search(conn, case)
    plans.assert_used(case.index, dataset.QUERIES)
    case.check(found)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_filter(conn: pg8000.native.Connection, plans: Plans, case: Case) -> None:
    found = search(conn, case, "WHERE category = 3")
    plans.assert_used(case.index, dataset.QUERIES)
    case.check(found, category=3)


def test_values(conn: pg8000.native.Connection) -> None:
    for id, *values in conn.run("SELECT id, vector_, halfvec_, sparsevec_ FROM items"):
        for type, value in zip(("vector", "halfvec", "sparsevec"), values, strict=True):
            np.testing.assert_array_equal(value.to_numpy(), dataset.rows[type][id - 1])


@pytest.mark.ivfflat
@pytest.mark.parametrize("case", IVFFLAT_CASES, ids=str)
def test_ivfflat(conn: pg8000.native.Connection, plans: Plans, case: Case) -> None:
    conn.run(f"DROP INDEX {case.index}")
    conn.run(dataset.create_index(case, "ivfflat"))
    try:
        conn.run(f"SET ivfflat.probes = {dataset.LISTS}")
        found = search(conn, case)
        plans.assert_used(f"{case.index}_ivfflat", dataset.QUERIES)
        case.check(found, order=dataset.IVFFLAT_ORDER)
    finally:
        conn.run(f"DROP INDEX {case.index}_ivfflat")
        conn.run(dataset.create_index(case))
