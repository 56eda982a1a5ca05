"""Embeddings of the texts that these tests use: the rows and queries of the data
set, by their names. No model, no network."""

from __future__ import annotations

import dataset

CASE = dataset.find("vector", "cosine")


def row_text(id: int) -> str:
    return f"row {id}"


def query_text(at: int) -> str:
    return f"query {at}"


def embed(text: str) -> list[float]:
    kind, number = text.split()
    if kind == "row":
        return [float(x) for x in dataset.rows["vector"][int(number) - 1]]
    return [float(x) for x in dataset.queries["vector"][int(number)]]
