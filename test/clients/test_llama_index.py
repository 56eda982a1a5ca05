"""llama-index-vector-stores-postgres, with embeddings of our own."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from typing import Any

import dataset
import numpy as np
import psycopg2
import pytest
from conftest import url
from dataset import Case
from embedding import embed, query_text, row_text
from llama_index.core import VectorStoreIndex
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores.types import (
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryResult,
)
from llama_index.vector_stores.postgres import PGVectorStore
from plans import Plans

PACKAGES = ("llama-index-vector-stores-postgres", "llama-index-core", "pgvector")

# Its searches are by cosine.
CASES = [dataset.find("vector", "cosine"), dataset.find("halfvec", "cosine")]


class Local(BaseEmbedding):
    def _get_text_embedding(self, text: str) -> list[float]:
        return embed(text)

    def _get_query_embedding(self, query: str) -> list[float]:
        return embed(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return embed(query)


def execute(*statements: str) -> None:
    conn = psycopg2.connect("")
    conn.autocommit = True
    with conn.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
    conn.close()


def open_store(case: Case, **options: Any) -> PGVectorStore:
    return PGVectorStore(
        connection_string=url("postgresql+psycopg2"),
        async_connection_string=url("postgresql+asyncpg"),
        table_name=f"items_{case.type}",
        embed_dim=dataset.DIMS,
        use_halfvec=case.type == "halfvec",
        use_jsonb=True,
        initialization_fail_on_error=True,
        **options,
    )


def index_name(case: Case) -> str:
    return f"data_items_{case.type}_embedding_idx"


@pytest.fixture(scope="module")
def stores() -> Iterator[dict[Case, PGVectorStore]]:
    execute(f"ALTER DATABASE {os.environ['PGDATABASE']} SET hnsw.iterative_scan = strict_order")
    stores = {}
    for case in CASES:
        stores[case] = open_store(
            case,
            hnsw_kwargs={
                "hnsw_m": 16,
                "hnsw_ef_construction": 64,
                "hnsw_ef_search": dataset.EF_SEARCH,
                "hnsw_dist_method": case.opclass,
            },
        )
        stores[case].add(
            [
                TextNode(
                    id_=str(id),
                    text=row_text(id),
                    embedding=[float(x) for x in dataset.rows[case.type][i]],
                    metadata={"category": dataset.categories[i]},
                )
                for i, id in enumerate(dataset.ids)
            ]
        )
    yield stores
    for store in stores.values():
        asyncio.run(store.close())


def to_query(query: np.ndarray, category: int | None) -> VectorStoreQuery:
    filters = None
    if category is not None:
        filters = MetadataFilters(
            filters=[MetadataFilter(key="category", value=category, operator=FilterOperator.EQ)]
        )
    return VectorStoreQuery(
        query_embedding=[float(x) for x in query], similarity_top_k=dataset.K, filters=filters
    )


def rows(result: VectorStoreQueryResult) -> list[tuple[int, float]]:
    return [(int(id), 1 - s) for id, s in zip(result.ids, result.similarities, strict=True)]


@pytest.mark.parametrize("category", [None, 3], ids=["all", "filter"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_search(stores: Any, plans: Plans, case: Case, category: int | None) -> None:
    found = [rows(stores[case].query(to_query(query, category))) for query in case.queries]
    plans.assert_used(index_name(case), dataset.QUERIES)
    case.check(found, category)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_async(stores: Any, plans: Plans, case: Case) -> None:
    async def run() -> list[Any]:
        found = [rows(await stores[case].aquery(to_query(query, None))) for query in case.queries]
        await stores[case]._async_engine.dispose()
        return found

    found = asyncio.run(run())
    plans.assert_used(index_name(case), dataset.QUERIES)
    case.check(found)


def test_retriever(stores: Any, plans: Plans) -> None:
    """From texts to texts, by the class that users hold."""
    case = CASES[0]
    index = VectorStoreIndex.from_vector_store(stores[case], embed_model=Local())
    retriever = index.as_retriever(similarity_top_k=dataset.K)
    found = []
    for q in range(dataset.QUERIES):
        answer = retriever.retrieve(query_text(q))
        found.append([(int(node.node_id), 1 - node.score) for node in answer])
        assert [node.text for node in answer] == [row_text(int(node.node_id)) for node in answer]
    plans.assert_used(index_name(case), dataset.QUERIES)
    case.check(found)


def test_delete_and_add(stores: Any) -> None:
    store = stores[CASES[0]]
    query = VectorStoreQuery(query_embedding=embed(row_text(7)), similarity_top_k=1)
    found = store.query(query)
    assert found.ids == ["7"]
    store.delete_nodes(["7"])
    assert store.query(query).ids != ["7"]
    (node,) = found.nodes
    node.embedding = embed(row_text(7))
    store.add([node])
    assert store.query(query).ids == ["7"]


@pytest.mark.ivfflat
@pytest.mark.parametrize("case", CASES, ids=str)
def test_ivfflat(stores: Any, plans: Plans, case: Case) -> None:
    """It sets the probes; the index is its user's to create. Comes last."""
    execute(
        f"DROP INDEX {index_name(case)}",
        f"CREATE INDEX items_ivfflat ON data_items_{case.type} "
        f"USING ivfflat (embedding {case.opclass}) WITH (lists = {dataset.LISTS})",
    )
    store = open_store(case, perform_setup=False)
    found = [
        rows(store.query(to_query(query, None), ivfflat_probes=dataset.LISTS)) for query in case.queries
    ]
    plans.assert_used("items_ivfflat", dataset.QUERIES)
    case.check(found, order=dataset.IVFFLAT_ORDER)
    asyncio.run(store.close())
    execute("DROP INDEX items_ivfflat")
