"""Peewee with pgvector-python."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import dataset
import numpy as np
import peewee
import pytest
from dataset import CASES, Case
from pgvector import HalfVector, SparseVector
from pgvector.peewee import FixedBitField, HalfVectorField, SparseVectorField, VectorField
from plans import Plans

PACKAGES = ("peewee", "psycopg2-binary", "pgvector")

db = peewee.PostgresqlDatabase(os.environ["PGDATABASE"])


class Item(peewee.Model):
    category = peewee.IntegerField()
    vector_ = VectorField(dimensions=dataset.DIMS, null=True)
    halfvec_ = HalfVectorField(dimensions=dataset.DIMS, null=True)
    sparsevec_ = SparseVectorField(dimensions=dataset.SPARSE_DIMS, null=True)
    bit_ = FixedBitField(max_length=dataset.BITS, null=True)

    class Meta:
        database = db
        table_name = "items"


# Its names are of Peewee's making, from the columns: one index for a column.
INDEXED = [
    dataset.find(*pair)
    for pair in (("vector", "l2"), ("halfvec", "cosine"), ("sparsevec", "ip"), ("bit", "hamming"))
]


@pytest.fixture(scope="module")
def items() -> Iterator[type[Item]]:
    db.connect()
    db.execute_sql("CREATE EXTENSION IF NOT EXISTS vector")
    Item.create_table(safe=False)
    rows = [
        {
            "id": id,
            "category": dataset.categories[i],
            **{f"{t}_": param(t, dataset.rows[t][i]) for t in dataset.rows},
        }
        for i, id in enumerate(dataset.ids)
    ]
    with db.atomic():
        for batch in peewee.chunked(rows, 200):
            Item.insert_many(batch).execute()
    for case in INDEXED:
        Item.add_index(f"{case.column} {case.opclass}", using="hnsw")
    Item._schema.create_indexes(safe=True)
    db.execute_sql("ANALYZE items")
    db.execute_sql(f"SET hnsw.ef_search = {dataset.EF_SEARCH}")
    db.execute_sql("SET hnsw.iterative_scan = strict_order")
    yield Item
    db.close()


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


def search(items: type[Item], case: Case, category: int | None = None) -> list[list[tuple[int, float]]]:
    found = []
    for query in case.queries:
        name = {"ip": "max_inner_product"}.get(case.metric, f"{case.metric}_distance")
        distance = getattr(getattr(items, case.column), name)(param(case.type, query))
        select = items.select(items.id, distance.alias("d")).order_by(distance).limit(dataset.K)
        if category is not None:
            select = select.where(items.category == category)
        found.append(list(select.tuples()))
    return found


def index_of(case: Case) -> str:
    cursor = db.execute_sql(
        "SELECT indexname FROM pg_indexes WHERE tablename = 'items' AND indexdef LIKE %s",
        (f"%USING hnsw ({case.column} {case.opclass}%",),
    )
    return str(cursor.fetchone()[0])


@pytest.mark.parametrize("case", INDEXED, ids=str)
@pytest.mark.parametrize("category", [None, 3], ids=["all", "filter"])
def test_search(items: type[Item], plans: Plans, case: Case, category: int | None) -> None:
    index = index_of(case)
    plans.forget()
    found = search(items, case, category)
    plans.assert_used(index, dataset.QUERIES)
    case.check(found, category)


@pytest.mark.parametrize("case", [case for case in CASES if case not in INDEXED], ids=str)
def test_exact(items: type[Item], case: Case) -> None:
    case.check(search(items, case), recall=1.0)


def test_values(items: type[Item]) -> None:
    for item in items.select():
        at = item.id - 1
        np.testing.assert_array_equal(item.sparsevec_.to_numpy(), dataset.rows["sparsevec"][at])
        assert item.bit_ == dataset.bit_text(dataset.rows["bit"][at])
        for type in ("vector", "halfvec"):
            got = getattr(item, f"{type}_")
            got = got.to_numpy() if hasattr(got, "to_numpy") else np.array(got)
            np.testing.assert_array_equal(got.astype(dataset.rows[type].dtype), dataset.rows[type][at])
