"""An exact scan in memory by matrix product: what DocArray's in-memory store does."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from quiver_bench.conditions import Values
from quiver_bench.engines.base import Built, Data, Engine, Search, Session, SessionFactory
from quiver_bench.records import Params
from quiver_bench.truth import Floats


class NumpySession(Session):
    def __init__(self, engine: NumpyExact, search: Search) -> None:
        self.engine, self.k, self.clauses = engine, search.k, search.clauses
        self.rows = None
        if search.where:
            self.rows = np.flatnonzero(engine.data.passing(search.where))

    def encode(self, vector: Floats) -> Any:
        return self.engine.prepared(vector)

    def encode_values(self, values: Values) -> Any:
        """Rows of a run with conditions are those of the set, in its order."""
        made = self.engine.data.columns
        assert made is not None
        return np.flatnonzero(made.passing(self.clauses, values))

    def search_where(self, asked: tuple[Any, Any]) -> Sequence[int]:
        query, self.rows = asked
        return self.search(query)

    def search(self, query: Any) -> Sequence[int]:
        engine = self.engine
        vectors, offset, rows = engine.vectors, engine.offset, engine.rows
        if self.rows is not None:
            vectors, offset, rows = vectors[self.rows], offset[self.rows], rows[self.rows]
        scores = offset - vectors @ query
        k = min(self.k, len(scores))
        if not k:
            return []
        near = np.argpartition(scores, k - 1)[:k]
        found: list[int] = np.asarray(rows[near[np.argsort(scores[near])]]).tolist()
        return found

    def read(self, row: int) -> bool:
        return row in self.engine.slots

    def find(self, value: int) -> Sequence[int]:
        rows: list[int] = self.engine.rows[self.engine.any_rank == value].tolist()
        return rows

    def update(self, row: int, vector: Any, ranks: tuple[int, int]) -> None:
        slot = self.engine.slots[row]
        self.engine.vectors[slot] = vector
        self.engine.offset[slot] = self.engine.offset_of(vector[None])[0]

    def insert(self, row: int, vector: Any, ranks: tuple[int, int]) -> None:
        self.engine.append(row, vector, ranks[0])

    def delete(self, row: int) -> None:
        self.engine.remove(row)


class NumpyExact(Engine):
    adapter = "numpy"
    reads_while_writing = False
    label = "exact; stands in for DocArray's in-memory store"

    def start(self, server: Params) -> str:
        return f"numpy {np.__version__}"

    def prepared(self, vectors: Floats) -> Floats:
        """Rows or a query as they are kept and compared: of length 1, or about the rows' mean."""
        if self.data.dataset.metric == "angular":
            lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
            return np.asarray(vectors / np.maximum(lengths, 1e-30))
        return np.asarray(vectors - self.mean)

    def offset_of(self, vectors: Floats) -> Floats:
        if self.data.dataset.metric == "euclidean":
            return np.asarray(np.einsum("ij,ij->i", vectors, vectors) / 2)
        return np.zeros(len(vectors), dtype=np.float32)

    def load(self, data: Data) -> float:
        self.data = data
        began = time.perf_counter()
        self.mean = np.zeros(data.dataset.dimensions, dtype=np.float32)
        if data.dataset.metric == "euclidean":  # far from the origin, products would cancel
            self.mean += data.dataset.train.mean(axis=0, dtype=np.float64)
        self.vectors = self.prepared(data.dataset.train)
        self.offset = self.offset_of(self.vectors)
        self.rows = np.arange(len(self.vectors), dtype=np.int64)
        self.any_rank = data.any_rank.copy()
        self.slots = {i: i for i in range(len(self.vectors))}
        return time.perf_counter() - began

    def append(self, row: int, vector: Floats, rank: int) -> None:
        self.slots[row] = len(self.rows)
        self.vectors = np.vstack([self.vectors, vector[None]])
        self.offset = np.append(self.offset, self.offset_of(vector[None]))
        self.rows = np.append(self.rows, row)
        self.any_rank = np.append(self.any_rank, np.int32(rank))

    def remove(self, row: int) -> None:
        """Moves the last row into the gap."""
        slot, last = self.slots.pop(row), len(self.rows) - 1
        if slot != last:
            for array in (self.vectors, self.offset, self.rows, self.any_rank):
                array[slot] = array[last]
            self.slots[int(self.rows[slot])] = slot
        self.vectors, self.offset = self.vectors[:last], self.offset[:last]
        self.rows, self.any_rank = self.rows[:last], self.any_rank[:last]

    def build(self, params: Params) -> Built:
        return Built(0.0, 0, self.vectors.nbytes, mode="none")

    def sessions(self, search: Search) -> SessionFactory:
        return lambda: NumpySession(self, search)
