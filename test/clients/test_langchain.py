"""langchain-postgres: the store PGVectorStore with its index calls, and the older
PGVector, with embeddings of our own."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from typing import Any

import dataset
import psycopg
import pytest
from conftest import url
from dataset import Case
from embedding import embed, query_text, row_text
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_postgres import Column, PGEngine, PGVector, PGVectorStore
from langchain_postgres.v2.indexes import (
    DistanceStrategy,
    HNSWIndex,
    HNSWQueryOptions,
    IVFFlatIndex,
    IVFFlatQueryOptions,
)
from plans import Plans

PACKAGES = ("langchain-postgres", "pgvector", "psycopg")

STRATEGIES = {
    "l2": DistanceStrategy.EUCLIDEAN,
    "ip": DistanceStrategy.INNER_PRODUCT,
    "cosine": DistanceStrategy.COSINE_DISTANCE,
}
CASES = [case for case in dataset.VECTOR_CASES if case.metric in STRATEGIES]


class Local(Embeddings):
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [embed(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return embed(text)


def documents() -> tuple[list[Document], list[str]]:
    docs = [
        Document(row_text(id), metadata={"category": dataset.categories[i], "row": id})
        for i, id in enumerate(dataset.ids)
    ]
    return docs, [str(uuid.UUID(int=id)) for id in dataset.ids]


def rows(case: Case, found: list[tuple[Document, float]]) -> list[tuple[int, float]]:
    # Its function inner_product gives the product, the operator orders by the negative.
    sign = -1 if case.metric == "ip" else 1
    return [(doc.metadata["row"], sign * distance) for doc, distance in found]


@pytest.fixture(scope="module")
def engine() -> Iterator[PGEngine]:
    with psycopg.connect(autocommit=True) as conn:
        conn.execute(f"ALTER DATABASE {os.environ['PGDATABASE']} SET hnsw.iterative_scan = strict_order")
    engine = PGEngine.from_connection_string(url("postgresql+psycopg"))
    engine.init_vectorstore_table(
        "items",
        vector_size=dataset.DIMS,
        metadata_columns=[Column("category", "int"), Column("row", "int")],
    )
    docs, ids = documents()
    open_store(engine).add_documents(docs, ids=ids)
    yield engine
    engine._run_as_sync(engine._pool.dispose())


def open_store(engine: PGEngine, **options: Any) -> PGVectorStore:
    return PGVectorStore.create_sync(
        engine, Local(), "items", metadata_columns=["category", "row"], **options
    )


@pytest.mark.parametrize("concurrently", [False, True], ids=["", "concurrently"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_hnsw(engine: PGEngine, plans: Plans, case: Case, concurrently: bool) -> None:
    strategy = STRATEGIES[case.metric]
    store = open_store(
        engine,
        distance_strategy=strategy,
        index_query_options=HNSWQueryOptions(ef_search=dataset.EF_SEARCH),
    )
    index = HNSWIndex(name="items_hnsw", distance_strategy=strategy, m=16, ef_construction=64)
    store.apply_vector_index(index, concurrently=concurrently)
    assert store.is_valid_index("items_hnsw")
    store.reindex("items_hnsw")
    for category in (None, 3):
        plans.forget()
        filter = None if category is None else {"category": {"$eq": category}}
        found = [
            rows(case, store.similarity_search_with_score(query_text(q), k=dataset.K, filter=filter))
            for q in range(dataset.QUERIES)
        ]
        plans.assert_used("items_hnsw", dataset.QUERIES)
        case.check(found, category)
    store.drop_vector_index("items_hnsw")
    assert not store.is_valid_index("items_hnsw")


@pytest.mark.ivfflat
@pytest.mark.parametrize("case", CASES, ids=str)
def test_ivfflat(engine: PGEngine, plans: Plans, case: Case) -> None:
    strategy = STRATEGIES[case.metric]
    store = open_store(
        engine,
        distance_strategy=strategy,
        index_query_options=IVFFlatQueryOptions(probes=dataset.LISTS),
    )
    store.apply_vector_index(
        IVFFlatIndex(name="items_ivfflat", distance_strategy=strategy, lists=dataset.LISTS)
    )
    try:
        found = [
            rows(case, store.similarity_search_with_score(query_text(q), k=dataset.K))
            for q in range(dataset.QUERIES)
        ]
        plans.assert_used("items_ivfflat", dataset.QUERIES)
        case.check(found, order=dataset.IVFFLAT_ORDER)
    finally:
        store.drop_vector_index("items_ivfflat")


def test_delete_and_add(engine: PGEngine) -> None:
    store = open_store(engine)
    (nearest,) = store.similarity_search(row_text(7), k=1)
    assert nearest.page_content == row_text(7)
    id = str(uuid.UUID(int=7))
    assert store.delete([id])
    assert store.similarity_search(row_text(7), k=1)[0].page_content != row_text(7)
    store.add_documents([nearest], ids=[id])
    assert store.similarity_search(row_text(7), k=1) == [nearest]


def test_marginal_relevance(engine: PGEngine) -> None:
    """Fetches the vectors back and ranks them again."""
    found = open_store(engine).max_marginal_relevance_search(row_text(7), k=5, fetch_k=50)
    assert found[0].page_content == row_text(7)
    assert len({doc.page_content for doc in found}) == 5


@pytest.mark.parametrize("case", CASES, ids=str)
def test_older_store(plans: Plans, case: Case) -> None:
    """PGVector: its table, an index as its users create it, its filters."""
    strategy = {"l2": "l2", "ip": "inner", "cosine": "cosine"}[case.metric]
    store = PGVector(
        Local(),
        connection=url("postgresql+psycopg"),
        embedding_length=dataset.DIMS,
        collection_name=f"c_{case.metric}",
        distance_strategy=strategy,
    )
    docs, ids = documents()
    store.add_documents(docs, ids=ids)
    with psycopg.connect(autocommit=True) as conn:
        conn.execute(
            f"CREATE INDEX {case.index} ON langchain_pg_embedding USING hnsw (embedding {case.opclass})"
        )
    for category in (None, 3):
        plans.forget()
        filter = None if category is None else {"category": {"$eq": category}}
        found = []
        for q in range(dataset.QUERIES):
            answer = store.similarity_search_with_score(query_text(q), k=dataset.K, filter=filter)
            found.append([(doc.metadata["row"], distance) for doc, distance in answer])
        plans.assert_used(case.index, dataset.QUERIES)
        case.check(found, category)
    store.drop_tables()
