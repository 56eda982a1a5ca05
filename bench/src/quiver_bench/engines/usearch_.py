"""usearch, in this process."""

from __future__ import annotations

import time
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import numpy as np

from quiver_bench.engines.base import Built, Data, Engine, Search, Session, SessionFactory, take
from quiver_bench.errors import MissingError, UnsupportedError
from quiver_bench.records import Params

METRICS = {"euclidean": "l2sq", "angular": "cos", "ip": "ip"}


class UsearchSession(Session):
    def __init__(self, index: Any, k: int) -> None:
        self.index, self.k = index, k

    def search(self, query: Any) -> Sequence[int]:
        rows: list[int] = self.index.search(query, self.k, threads=1).keys.tolist()
        return rows

    def read(self, row: int) -> bool:
        return bool(self.index.contains(row))

    def insert(self, row: int, vector: Any, ranks: tuple[int, int]) -> None:
        self.index.add(row, vector, threads=1)

    def update(self, row: int, vector: Any, ranks: tuple[int, int]) -> None:
        self.index.remove(row)
        self.index.add(row, vector, threads=1)

    def delete(self, row: int) -> None:
        self.index.remove(row)


class Usearch(Engine):
    adapter = "usearch"
    reads_while_writing = False
    several_clients = False  # its threads are numbered, and Python's all count as the first
    parameters = ("m", "ef_construction")
    search_parameters = ("ef_search",)

    def start(self, server: Params) -> str:
        try:
            from usearch.index import Index
        except ImportError as error:
            raise MissingError("needs usearch: pip install quiver-bench[usearch]") from error
        self.make = Index
        return f"usearch {version('usearch')}"

    def load(self, data: Data) -> float:
        self.data = data
        return 0.0

    def build(self, params: Params) -> Built:
        began = time.perf_counter_ns()
        self.empty(params)
        dataset = self.data.dataset
        self.index.add(np.arange(dataset.rows, dtype=np.uint64), dataset.train, threads=1)
        seconds = (time.perf_counter_ns() - began) / 1e9
        return Built(seconds, int(self.index.serialized_length), mode="insert")

    def empty(self, params: Params) -> None:
        dataset = self.data.dataset
        self.index = self.make(
            ndim=dataset.dimensions, metric=METRICS[dataset.metric],
            dtype=str(self.options.get("type") or "f32"), connectivity=take(params, "m", 16),
            expansion_add=take(params, "ef_construction", 64),
        )  # fmt: skip

    def sessions(self, search: Search) -> SessionFactory:
        if search.where:
            raise UnsupportedError("no conditions from Python")
        self.index.expansion_search = max(search.k, take(search.params, "ef_search", 40))
        return lambda: UsearchSession(self.index, search.k)
