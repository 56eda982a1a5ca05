"""hnswlib, in this process."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import numpy as np

from quiver_bench.engines.base import Built, Data, Engine, Search, Session, SessionFactory, take
from quiver_bench.errors import MissingError, UnsupportedError
from quiver_bench.records import Params

SPACES = {"euclidean": "l2", "angular": "cosine", "ip": "ip"}


class HnswlibSession(Session):
    def __init__(self, engine: Hnswlib, search: Search) -> None:
        self.engine, self.k = engine, search.k

    def search(self, query: Any) -> Sequence[int]:
        ids, _ = self.engine.index.knn_query(query, k=self.k, num_threads=1)
        rows: list[int] = ids[0].tolist()
        return rows

    def read(self, row: int) -> bool:
        return len(self.engine.index.get_items([row])) == 1

    def find(self, value: int) -> Sequence[int]:
        """Conditions are a matter of the store around the graph: an array here."""
        rows: list[int] = np.flatnonzero(self.engine.data.any_rank == value).tolist()
        return rows

    def insert(self, row: int, vector: Any, ranks: tuple[int, int]) -> None:
        index = self.engine.index
        if index.get_current_count() >= index.get_max_elements():
            index.resize_index(2 * index.get_max_elements())
        index.add_items(vector[None], [row], num_threads=1)

    def update(self, row: int, vector: Any, ranks: tuple[int, int]) -> None:
        self.engine.index.add_items(vector[None], [row], num_threads=1)

    def delete(self, row: int) -> None:
        self.engine.index.mark_deleted(row)


class Hnswlib(Engine):
    adapter = "hnswlib"
    reads_while_writing = False
    parameters = ("m", "ef_construction")
    search_parameters = ("ef_search",)

    def start(self, server: Params) -> str:
        try:
            import hnswlib
        except ImportError as error:
            raise MissingError("needs hnswlib: pip install quiver-bench[hnswlib] (g++)") from error
        self.hnswlib = hnswlib
        return f"hnswlib {version('hnswlib')}"

    def load(self, data: Data) -> float:
        self.data = data
        return 0.0

    def build(self, params: Params) -> Built:
        dataset = self.data.dataset
        began = time.perf_counter_ns()
        self.empty(params)
        self.index.add_items(dataset.train, np.arange(dataset.rows), num_threads=1)
        seconds = (time.perf_counter_ns() - began) / 1e9
        with tempfile.NamedTemporaryFile() as file:
            self.index.save_index(file.name)
            size = os.path.getsize(file.name)
        return Built(seconds, size, mode="insert")

    def empty(self, params: Params) -> None:
        dataset = self.data.dataset
        self.index = self.hnswlib.Index(SPACES[dataset.metric], dataset.dimensions)
        self.index.init_index(
            max_elements=dataset.rows, M=take(params, "m", 16),
            ef_construction=take(params, "ef_construction", 64), random_seed=1,
        )  # fmt: skip

    def sessions(self, search: Search) -> SessionFactory:
        if search.where:
            raise UnsupportedError("its filter calls Python for every row")
        self.index.set_ef(max(search.k, take(search.params, "ef_search", 40)))
        return lambda: HnswlibSession(self, search)
