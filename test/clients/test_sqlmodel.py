"""SQLModel with pgvector-python: models whose columns are SQLAlchemy's types."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import dataset
import pytest
import sqlalchemy as sa
from conftest import url
from dataset import Case
from pgvector import HalfVector
from pgvector.sqlalchemy import HALFVEC, VECTOR
from plans import Plans
from sqlmodel import Field, Session, SQLModel, create_engine, select, text

PACKAGES = ("sqlmodel", "SQLAlchemy", "pgvector")

CASES = [case for case in dataset.CASES if case.type in ("vector", "halfvec")]


class Item(SQLModel, table=True):
    __tablename__ = "items"

    id: int | None = Field(default=None, primary_key=True)
    category: int
    vector_: Any = Field(sa_type=VECTOR(dataset.DIMS))
    halfvec_: Any = Field(sa_type=HALFVEC(dataset.DIMS))


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    engine = create_engine(url("postgresql+psycopg"))
    with Session(engine) as session:
        session.exec(text("CREATE EXTENSION IF NOT EXISTS vector"))
        session.commit()
        SQLModel.metadata.create_all(engine)
        for i, id in enumerate(dataset.ids):
            vector, half = dataset.rows["vector"][i], HalfVector(dataset.rows["halfvec"][i])
            session.add(Item(id=id, category=dataset.categories[i], vector_=vector, halfvec_=half))
        session.commit()
        for case in CASES:
            index = sa.Index(
                case.index,
                getattr(Item, case.column),
                postgresql_using="hnsw",
                postgresql_with={"m": 16, "ef_construction": 64},
                postgresql_ops={case.column: case.opclass},
            )
            index.create(session.connection())
        session.commit()
        session.exec(text(f"SET hnsw.ef_search = {dataset.EF_SEARCH}"))
        session.exec(text("SET hnsw.iterative_scan = strict_order"))
        yield session
    engine.dispose()


def search(session: Session, case: Case, category: int | None = None) -> list[list[tuple[int, float]]]:
    found = []
    for query in case.queries:
        name = {"ip": "max_inner_product"}.get(case.metric, f"{case.metric}_distance")
        value = HalfVector(query) if case.type == "halfvec" else query
        distance = getattr(getattr(Item, case.column), name)(value)
        statement = select(Item.id, distance).order_by(distance).limit(dataset.K)
        if category is not None:
            statement = statement.where(Item.category == category)
        found.append([tuple(row) for row in session.exec(statement)])
    session.commit()  # ends the last statement: its plan is logged then
    return found


@pytest.mark.parametrize("case", CASES, ids=str)
def test_search(session: Session, plans: Plans, case: Case) -> None:
    found = search(session, case)
    plans.assert_used(case.index, dataset.QUERIES)
    case.check(found)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_filter(session: Session, plans: Plans, case: Case) -> None:
    found = search(session, case, category=3)
    plans.assert_used(case.index, dataset.QUERIES)
    case.check(found, category=3)
