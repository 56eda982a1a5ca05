"""asyncpg with pgvector-python: everything in the binary format."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import asyncpg
import dataset
import numpy as np
import pytest
from dataset import CASES, IVFFLAT_CASES, Case
from pgvector import HalfVector, SparseVector, Vector
from pgvector.asyncpg import register_vector
from plans import Plans

PACKAGES = ("asyncpg", "pgvector")


class Client:
    """One connection and its event loop, for tests that are not coroutines."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.conn: asyncpg.Connection = self.run(asyncpg.connect())

    def run(self, call: Any) -> Any:
        return self.loop.run_until_complete(call)

    def close(self) -> None:
        self.run(self.conn.close())
        self.loop.close()


async def load(conn: asyncpg.Connection) -> None:
    await conn.execute("CREATE EXTENSION IF NOT EXISTS vector")
    await register_vector(conn)
    await conn.execute(dataset.CREATE_TABLE)
    half = dataset.ROWS // 2
    rows = list(tuples())
    await conn.executemany("INSERT INTO items VALUES ($1, $2, $3, $4, $5, $6)", rows[:half])
    await conn.copy_records_to_table("items", records=rows[half:])
    for case in CASES:
        await conn.execute(dataset.create_index(case))
    await conn.execute("ANALYZE items")
    await conn.execute(f"SET hnsw.ef_search = {dataset.EF_SEARCH}")


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    client = Client()
    client.run(load(client.conn))
    yield client
    client.close()


def param(type: str, value: np.ndarray) -> Any:
    match type:
        case "vector":
            return value
        case "halfvec":
            return HalfVector(value)
        case "sparsevec":
            return SparseVector(value)
        case _:
            return asyncpg.BitString(dataset.bit_text(value))


def tuples() -> Iterator[tuple[Any, ...]]:
    for i, id in enumerate(dataset.ids):
        yield (id, dataset.categories[i], *(param(t, dataset.rows[t][i]) for t in dataset.rows))


async def search(conn: asyncpg.Connection, case: Case, category: int | None = None) -> list[list[Any]]:
    where = "" if category is None else "WHERE category = $3"
    filter = () if category is None else (category,)
    statement = await conn.prepare(
        f"SELECT id, {case.column} {case.operator} $1 AS d FROM items {where} "
        f"ORDER BY {case.column} {case.operator} $1 LIMIT $2"
    )
    return [
        [tuple(row) for row in await statement.fetch(param(case.type, query), dataset.K, *filter)]
        for query in case.queries
    ]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_search(client: Client, plans: Plans, case: Case) -> None:
    found = client.run(search(client.conn, case))
    plans.assert_used(case.index, dataset.QUERIES)
    case.check(found)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_filter(client: Client, plans: Plans, case: Case) -> None:
    async def run() -> list[list[Any]]:
        async with client.conn.transaction():
            await client.conn.execute("SET LOCAL hnsw.iterative_scan = strict_order")
            return await search(client.conn, case, category=3)

    found = client.run(run())
    plans.assert_used(case.index, dataset.QUERIES)
    case.check(found, category=3)


def test_values(client: Client) -> None:
    got = client.run(client.conn.fetch("SELECT vector_, halfvec_, sparsevec_, bit_ FROM items ORDER BY id"))
    for type in ("vector", "halfvec", "sparsevec"):
        np.testing.assert_array_equal(np.stack([r[f"{type}_"].to_numpy() for r in got]), dataset.rows[type])
    bits = [row["bit_"].as_string().replace(" ", "") for row in got]
    assert bits == [dataset.bit_text(row) for row in dataset.rows["bit"]]


def test_arrays_and_nulls(client: Client) -> None:
    v, h = [Vector([1, 2, 3]), Vector([4, 5])], [HalfVector([1.5])]
    s = [SparseVector({1: 2.0}, 7)]
    got = client.run(
        client.conn.fetchrow("SELECT $1::vector[], $2::halfvec[], $3::sparsevec[], $4::vector(3)", v, h, s, None)
    )
    assert tuple(got) == (v, h, s, None)


def test_wrong_dimensions(client: Client) -> None:
    with pytest.raises(asyncpg.DataError, match=f"expected {dataset.DIMS} dimensions, not 2"):
        client.run(client.conn.execute("INSERT INTO items VALUES (0, 0, $1)", Vector([1, 2])))


@pytest.mark.ivfflat
@pytest.mark.parametrize("case", IVFFLAT_CASES, ids=str)
def test_ivfflat(client: Client, plans: Plans, case: Case) -> None:
    async def run() -> list[list[Any]]:
        await client.conn.execute(f"DROP INDEX {case.index}")
        await client.conn.execute(dataset.create_index(case, "ivfflat"))
        await client.conn.execute(f"SET ivfflat.probes = {dataset.LISTS}")
        found = await search(client.conn, case)
        await client.conn.execute(f"DROP INDEX {case.index}_ivfflat")
        await client.conn.execute(dataset.create_index(case))
        return found

    found = client.run(run())
    plans.assert_used(f"{case.index}_ivfflat", dataset.QUERIES)
    case.check(found, order=dataset.IVFFLAT_ORDER)
