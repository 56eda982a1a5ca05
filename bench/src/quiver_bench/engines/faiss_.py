"""faiss: HNSW, IVF-Flat and exact indexes, in this process, one thread a client."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from quiver_bench.engines.base import Built, Data, Engine, Search, Session, SessionFactory, take
from quiver_bench.errors import ConfigError, MissingError
from quiver_bench.records import Params
from quiver_bench.truth import Floats


def normalized(vectors: Floats, metric: str) -> Floats:
    """Rows of unit length for the angular distance, else as they are."""
    if metric != "angular":
        return vectors
    return np.asarray(
        vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-30),
        dtype=np.float32,
    )


class FaissSession(Session):
    def __init__(self, index: Any, k: int, parameters: Any, metric: str) -> None:
        self.index, self.k, self.parameters, self.metric = index, k, parameters, metric

    def encode(self, vector: Floats) -> Floats:
        return normalized(vector, self.metric)[None]

    def search(self, query: Any) -> Sequence[int]:
        _, ids = self.index.search(query, self.k, params=self.parameters)
        return [i for i in ids[0].tolist() if i >= 0]


class Faiss(Engine):
    adapter = "faiss"
    reads_while_writing = False
    parameters = ("m", "ef_construction", "lists")
    search_parameters = ("ef_search", "probes")
    keys_of: ClassVar[Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
        "hnsw": (("m", "ef_construction"), ("ef_search",)),
        "ivfflat": (("lists",), ("probes",)),
        "flat": ((), ()),
    }

    @classmethod
    def keys(cls, options: Params) -> tuple[tuple[str, ...], tuple[str, ...]]:
        index = str(options.get("index") or "hnsw")
        if index not in cls.keys_of:
            raise ConfigError(f"faiss has indexes {', '.join(cls.keys_of)} here, and no {index}")
        return cls.keys_of[index]

    def start(self, server: Params) -> str:
        try:
            import faiss
        except ImportError as error:
            raise MissingError("needs faiss-cpu: pip install quiver-bench[faiss]") from error
        self.faiss = faiss
        self.kind = str(self.options.get("index") or "hnsw")
        faiss.omp_set_num_threads(1)
        return f"faiss {faiss.__version__}"

    def load(self, data: Data) -> float:
        self.data = data
        began = time.perf_counter()
        self.vectors = normalized(data.dataset.train, data.dataset.metric)
        return time.perf_counter() - began

    def build(self, params: Params) -> Built:
        faiss, d = self.faiss, self.data.dataset.dimensions
        metric = (
            faiss.METRIC_L2
            if self.data.dataset.metric == "euclidean"
            else faiss.METRIC_INNER_PRODUCT
        )
        began = time.perf_counter_ns()
        if self.kind == "hnsw":
            self.index = faiss.IndexHNSWFlat(d, take(params, "m", 16), metric)
            self.index.hnsw.efConstruction = take(params, "ef_construction", 64)
        elif self.kind == "flat":
            self.index = faiss.IndexFlat(d, metric)
        else:
            lists = take(params, "lists", max(10, self.data.dataset.rows // 1000))
            self.coarse = faiss.IndexFlat(d, metric)
            self.index = faiss.IndexIVFFlat(self.coarse, d, lists, metric)
            self.index.train(self.vectors)
        self.index.add(self.vectors)
        seconds = (time.perf_counter_ns() - began) / 1e9
        return Built(seconds, len(faiss.serialize_index(self.index)))

    def sessions(self, search: Search) -> SessionFactory:
        faiss, chosen = self.faiss, None
        if search.where:
            passing = self.data.passing(search.where)
            # The selector keeps no copy of the bits.
            self.bits = np.packbits(passing, bitorder="little")
            chosen = faiss.IDSelectorBitmap(self.bits)
        if self.kind == "hnsw":
            parameters = faiss.SearchParametersHNSW()
            parameters.efSearch = max(search.k, take(search.params, "ef_search", 40))
        elif self.kind == "ivfflat":
            parameters = faiss.SearchParametersIVF()
            parameters.nprobe = take(search.params, "probes", 1)
        else:
            parameters = faiss.SearchParameters()
        if chosen is not None:
            parameters.sel = chosen
        metric = self.data.dataset.metric
        return lambda: FaissSession(self.index, search.k, parameters, metric)
