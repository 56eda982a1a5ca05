"""SQLAlchemy with pgvector-python: models, indexes, operators and reflection, by
every driver that is there."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import dataset
import numpy as np
import pytest
import sqlalchemy as sa
from conftest import url
from dataset import CASES, IVFFLAT_CASES, Case
from pgvector import HalfVector, SparseVector, Vector
from pgvector.sqlalchemy import BIT, HALFVEC, SPARSEVEC, VECTOR, avg
from plans import Plans
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

PACKAGES = ("SQLAlchemy", "pgvector")


class Base(DeclarativeBase):
    pass


class Item(Base):
    __tablename__ = "items"

    id: Mapped[int] = mapped_column(primary_key=True)
    category: Mapped[int]
    vector_: Mapped[Any] = mapped_column(VECTOR(dataset.DIMS), nullable=True)
    halfvec_: Mapped[Any] = mapped_column(HALFVEC(dataset.DIMS), nullable=True)
    sparsevec_: Mapped[Any] = mapped_column(SPARSEVEC(dataset.SPARSE_DIMS), nullable=True)
    bit_: Mapped[Any] = mapped_column(BIT(dataset.BITS), nullable=True)


def hnsw(case: Case) -> sa.Index:
    return sa.Index(
        case.index,
        getattr(Item, case.column),
        postgresql_using="hnsw",
        postgresql_with={"m": 16, "ef_construction": 64},
        postgresql_ops={case.column: case.opclass},
    )


def ivfflat(case: Case) -> sa.Index:
    return sa.Index(
        f"{case.index}_ivfflat",
        getattr(Item, case.column),
        postgresql_using="ivfflat",
        postgresql_with={"lists": dataset.LISTS},
        postgresql_ops={case.column: case.opclass},
    )


# These are there before the rows are, the others are made from them.
FIRST = (dataset.find("vector", "l2"), dataset.find("bit", "hamming"))
indexes = {case: hnsw(case) for case in FIRST}
signs = sa.Index(
    "items_signs",
    sa.cast(sa.func.binary_quantize(Item.vector_), BIT(dataset.DIMS)).label("signs"),
    postgresql_using="hnsw",
    postgresql_ops={"signs": "bit_hamming_ops"},
)
halves = sa.Index(
    "items_halves",
    sa.cast(Item.vector_, HALFVEC(dataset.DIMS)).label("halves"),
    postgresql_using="hnsw",
    postgresql_ops={"halves": "halfvec_l2_ops"},
)


@pytest.fixture(scope="module")
def engine() -> Iterator[sa.Engine]:
    engine = sa.create_engine(url("postgresql+psycopg"))
    sa.event.listen(engine, "connect", set_ef_search)
    with Session(engine) as session:
        session.execute(sa.text("CREATE EXTENSION IF NOT EXISTS vector"))
        session.commit()
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        for i, id in enumerate(dataset.ids):
            values = {f"{t}_": param(t, dataset.rows[t][i]) for t in dataset.rows}
            session.add(Item(id=id, category=dataset.categories[i], **values))
        session.commit()
        for case in CASES:
            if case not in indexes:
                indexes[case] = hnsw(case)
                indexes[case].create(session.connection())
        session.commit()
        session.execute(sa.text("ANALYZE items"))
        session.commit()
    yield engine
    engine.dispose()


def set_ef_search(connection: Any, record: Any) -> None:
    cursor = connection.cursor()
    cursor.execute(f"SET hnsw.ef_search = {dataset.EF_SEARCH}")
    cursor.execute("SET hnsw.iterative_scan = strict_order")
    cursor.close()
    connection.commit()


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


def distance(case: Case, query: np.ndarray) -> Any:
    name = {"ip": "max_inner_product"}.get(case.metric, f"{case.metric}_distance")
    return getattr(getattr(Item, case.column), name)(param(case.type, query))


def statement(case: Case, query: np.ndarray, category: int | None = None) -> sa.Select[Any]:
    nearest = distance(case, query)
    select = sa.select(Item.id, nearest.label("distance")).order_by(nearest).limit(dataset.K)
    return select if category is None else select.where(Item.category == category)


def search(engine: sa.Engine, case: Case, category: int | None = None) -> list[list[tuple[int, float]]]:
    with Session(engine) as session:
        return [
            [(id, distance) for id, distance in session.execute(statement(case, query, category))]
            for query in case.queries
        ]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_search(engine: sa.Engine, plans: Plans, case: Case) -> None:
    found = search(engine, case)
    plans.assert_used(case.index, dataset.QUERIES)
    case.check(found)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_filter(engine: sa.Engine, plans: Plans, case: Case) -> None:
    found = search(engine, case, category=3)
    plans.assert_used(case.index, dataset.QUERIES)
    case.check(found, category=3)


DRIVER_CASES = [
    dataset.find(*pair)
    for pair in (("vector", "l2"), ("halfvec", "ip"), ("sparsevec", "cosine"), ("bit", "hamming"))
]


@pytest.mark.parametrize("driver", [name for name in ("psycopg2", "pg8000") if find_spec(name)])
def test_drivers(engine: sa.Engine, plans: Plans, driver: str) -> None:
    where, options = url(f"postgresql+{driver}"), {}
    if driver == "pg8000":
        env = engine.url.query
        where = where.partition("?")[0]
        options = {"unix_sock": f"{env['host']}/.s.PGSQL.{env['port']}"}
    other = sa.create_engine(where, connect_args=options)
    sa.event.listen(other, "connect", set_ef_search)
    for case in DRIVER_CASES:
        found = search(other, case)
        plans.assert_used(case.index, dataset.QUERIES)
        case.check(found)
    other.dispose()


def test_asyncpg(engine: sa.Engine, plans: Plans) -> None:
    async def run() -> list[Any]:
        other = create_async_engine(url("postgresql+asyncpg"))
        found = []
        async with other.connect() as conn:
            await conn.execute(sa.text(f"SET hnsw.ef_search = {dataset.EF_SEARCH}"))
            for case in DRIVER_CASES:
                answers = [await conn.execute(statement(case, query)) for query in case.queries]
                found.append([[tuple(row) for row in answer] for answer in answers])
        await other.dispose()
        return found

    for case, found in zip(DRIVER_CASES, asyncio.run(run()), strict=True):
        plans.assert_used(case.index, dataset.QUERIES)
        case.check(found)


def dense(value: Any) -> np.ndarray:
    """Later versions give a list, earlier ones an array or an object."""
    return value.to_numpy() if hasattr(value, "to_numpy") else np.array(value, dtype=np.float32)


def test_values(engine: sa.Engine) -> None:
    with Session(engine) as session:
        for item in session.scalars(sa.select(Item)):
            at = item.id - 1
            np.testing.assert_array_equal(dense(item.vector_), dataset.rows["vector"][at])
            np.testing.assert_array_equal(dense(item.halfvec_).astype(np.float16), dataset.rows["halfvec"][at])
            np.testing.assert_array_equal(item.sparsevec_.to_numpy(), dataset.rows["sparsevec"][at])
            assert item.bit_ == dataset.bit_text(dataset.rows["bit"][at])


def test_reflection(engine: sa.Engine) -> None:
    """Types with their sizes, and the indexes with class and options, come back."""
    table = sa.Table("items", sa.MetaData(), autoload_with=engine)
    for name, kind in {"vector_": VECTOR, "halfvec_": HALFVEC, "sparsevec_": SPARSEVEC}.items():
        assert isinstance(table.c[name].type, kind)
        assert table.c[name].type.dim == getattr(Item, name).type.dim
    reflected = {index.name: index for index in table.indexes}
    for case in CASES:
        options = reflected[case.index].dialect_options["postgresql"]
        assert options["using"] == "hnsw"
        assert options["with"] == {"m": "16", "ef_construction": "64"}
        assert options["ops"] == {case.column: case.opclass}


@pytest.mark.parametrize("kind", ["halves", "signs"])
def test_expressions(engine: sa.Engine, plans: Plans, kind: str) -> None:
    """Candidates from an index on halves or signs, ranked by the whole vectors."""
    case = dataset.find("vector", "l2")
    found = []
    with Session(engine) as session:
        session.execute(sa.text("SET LOCAL hnsw.ef_search = 100"))
        for query in case.queries:
            if kind == "halves":
                near = sa.cast(Item.vector_, HALFVEC(dataset.DIMS)).l2_distance(HalfVector(query))
            else:
                near = sa.cast(sa.func.binary_quantize(Item.vector_), BIT(dataset.DIMS)).hamming_distance(
                    sa.func.binary_quantize(sa.cast(Vector(query), VECTOR(dataset.DIMS)))
                )
            inner = sa.select(Item.id, Item.vector_).order_by(near).limit(100).subquery()
            exact = inner.c.vector_.l2_distance(query)
            outer = sa.select(inner.c.id, exact.label("d")).order_by(exact).limit(dataset.K)
            found.append([tuple(row) for row in session.execute(outer)])
    plans.assert_used(f"items_{kind}", dataset.QUERIES)
    case.check(found, recall=0.9)


def test_average(engine: sa.Engine) -> None:
    with Session(engine) as session:
        for type in ("vector", "halfvec"):
            column = getattr(Item, f"{type}_")
            mean, total = session.execute(sa.select(avg(column), sa.func.sum(column))).one()
            rows = dataset.rows[type].astype(np.float64)
            for got, truth in ((mean, rows.mean(axis=0)), (total, rows.sum(axis=0))):
                rtol = 1e-4 if type == "vector" else 2e-3
                # A sum of halfvec is kept in halves: it rounds at every row.
                atol = 0.01 if type == "vector" or got is mean else 5.0
                np.testing.assert_allclose(dense(got), truth, rtol=rtol, atol=atol)


@pytest.mark.ivfflat
@pytest.mark.parametrize("case", IVFFLAT_CASES, ids=str)
def test_ivfflat(engine: sa.Engine, plans: Plans, case: Case) -> None:
    index = ivfflat(case)
    indexes[case].drop(engine)
    index.create(engine)
    try:
        with Session(engine) as session:
            session.execute(sa.text(f"SET LOCAL ivfflat.probes = {dataset.LISTS}"))
            found = [[tuple(row) for row in session.execute(statement(case, q))] for q in case.queries]
        plans.assert_used(str(index.name), dataset.QUERIES)
        case.check(found, order=dataset.IVFFLAT_ORDER)
    finally:
        index.drop(engine)
        indexes[case].create(engine)
        Item.__table__.indexes.discard(index)  # type: ignore[attr-defined]
