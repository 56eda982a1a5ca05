"""mem0's store pgvector, and its Memory on top with embeddings of our own."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from typing import Any

os.environ["MEM0_TELEMETRY"] = "False"

import dataset
import psycopg
import pytest
from conftest import url
from embedding import embed, query_text, row_text
from mem0 import Memory
from mem0.utils.factory import EmbedderFactory, LlmFactory, VectorStoreFactory
from plans import Plans

PACKAGES = ("mem0ai", "psycopg")

CASE = dataset.find("vector", "cosine")


@pytest.fixture(scope="module", autouse=True)
def settings() -> None:
    with psycopg.connect(autocommit=True) as conn:
        name = os.environ["PGDATABASE"]
        conn.execute(f"ALTER DATABASE {name} SET hnsw.iterative_scan = strict_order")
        conn.execute(f"ALTER DATABASE {name} SET hnsw.ef_search = {dataset.EF_SEARCH}")


def options(collection: str) -> dict[str, Any]:
    return {
        "connection_string": url("postgresql"),
        "collection_name": collection,
        "embedding_model_dims": dataset.DIMS,
        "hnsw": True,
        "diskann": False,
    }


@pytest.fixture(scope="module")
def store() -> Iterator[Any]:
    unused = {"dbname": None, "user": None, "password": None, "host": None, "port": None}
    store = VectorStoreFactory.create("pgvector", {**options("items"), **unused})
    store.insert(
        [[float(x) for x in row] for row in dataset.rows["vector"]],
        payloads=[{"category": c, "data": row_text(i)} for i, c in zip(dataset.ids, dataset.categories, strict=True)],
        ids=[str(uuid.UUID(int=id)) for id in dataset.ids],
    )
    yield store
    store.connection_pool.close()


def rows(found: list[Any]) -> list[tuple[int, float]]:
    return [(uuid.UUID(row.id).int, 1 - row.score) for row in found]


@pytest.mark.parametrize("category", [None, 3], ids=["all", "filter"])
def test_search(store: Any, plans: Plans, category: int | None) -> None:
    filters = None if category is None else {"category": category}
    found = [
        rows(store.search(query_text(q), embed(query_text(q)), top_k=dataset.K, filters=filters))
        for q in range(dataset.QUERIES)
    ]
    plans.assert_used("items_hnsw_idx", dataset.QUERIES)
    CASE.check(found, category)


def test_update_and_delete(store: Any) -> None:
    def nearest() -> int:
        return rows(store.search("", embed(row_text(7)), top_k=1))[0][0]

    id = str(uuid.UUID(int=7))
    assert nearest() == 7
    store.update(id, vector=[-x for x in embed(row_text(7))])
    assert nearest() != 7
    store.update(id, vector=embed(row_text(7)))
    assert nearest() == 7
    store.delete(id)
    assert nearest() != 7


class Local:
    config = None

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        return embed(text)

    def embed_batch(self, texts: list[str], memory_action: str | None = None) -> list[list[float]]:
        return [embed(text) for text in texts]


def test_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Any, plans: Plans) -> None:
    """Texts in, texts out, as an application uses it; no model extracts facts."""
    monkeypatch.setattr(EmbedderFactory, "create", lambda *args: Local())
    monkeypatch.setattr(LlmFactory, "create", lambda *args: None)
    memory = Memory.from_config(
        {
            "vector_store": {"provider": "pgvector", "config": options("memories")},
            "history_db_path": str(tmp_path / "history.db"),
        }
    )
    for id in range(1, 101):
        memory.add(row_text(id), user_id="one" if id % 2 else "two", infer=False)
    plans.forget()
    found = memory.search(row_text(7), filters={"user_id": "one"})["results"]
    assert found[0]["memory"] == row_text(7)
    assert all(int(row["memory"].split()[1]) % 2 for row in found)
    assert plans.ordered_scans("memories_hnsw_idx") >= 1
    memory.delete(found[0]["id"])
    found = memory.search(row_text(7), filters={"user_id": "one"})["results"]
    assert row_text(7) not in [row["memory"] for row in found]
