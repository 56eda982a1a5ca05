"""Qdrant's own engine as a library, in this process: no server, no network."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from quiver_bench.conditions import Columns, Values, word
from quiver_bench.engines.base import (
    ANY,
    NEAR,
    Built,
    Data,
    Engine,
    Search,
    Session,
    SessionFactory,
    take,
)
from quiver_bench.errors import EngineError, MissingError, UnsupportedError
from quiver_bench.records import Params
from quiver_bench.truth import Floats

METRICS = {"euclidean": "Euclid", "angular": "Cosine", "ip": "Dot"}
THREADS = os.cpu_count() or 1  # of a build
BATCH = 500


def _payload(made: Columns | None, row: int) -> dict[str, Any]:
    """The columns of the filter suites, if there are any. A shard has no second table."""
    if made is None:
        return {}
    text = " ".join(word(number) for number in made.bags["words"].of(row))
    numbers = {name: int(column[row]) for name, column in made.numbers.items()}
    return {**numbers, "tags": made.bags["tags"].of(row), "words": text}


class QdrantSession(Session):
    def __init__(self, engine: QdrantEdge, search: Search) -> None:
        q = self.q = engine.q
        self.shard, self.k, self.clauses = engine.shard, search.k, search.clauses
        if any(clause.kind == "owner" for clause in search.clauses):
            raise UnsupportedError("has no second table")
        self.filter = None
        if search.where:
            below = q.RangeFloat(lt=float(search.where.below))
            self.filter = q.Filter(must=[q.FieldCondition(search.where.column, range=below)])
        self.parameters = q.SearchParams(
            hnsw_ef=max(search.k, take(search.params, "ef_search", 40)),
            exact=False,
            acorn=q.AcornSearchParams(enable=True) if take(search.params, "acorn", 0) else None,
        )

    def encode(self, vector: Floats) -> Any:
        return vector.tolist()

    def search(self, query: Any) -> Sequence[int]:
        q = self.q
        request = q.SearchRequest(
            q.Query.Nearest(query), limit=self.k, filter=self.filter, params=self.parameters
        )
        return [point.id for point in self.shard.search(request)]

    def encode_values(self, values: Values) -> Any:
        q, must = self.q, []
        for clause, numbers in zip(self.clauses, values, strict=True):
            if clause.kind in ("below", "between"):
                ends = [float(number) for number in numbers]
                span = (
                    q.RangeFloat(lt=ends[0])
                    if len(ends) == 1
                    else q.RangeFloat(gte=ends[0], lt=ends[1])
                )
                must.append(q.FieldCondition(clause.column, range=span))
            elif clause.column == "words":
                text = " ".join(word(number) for number in numbers)
                must.append(q.FieldCondition("words", match=q.MatchText(text)))
            else:
                must += [
                    q.FieldCondition(clause.column, match=q.MatchValue(number))
                    for number in numbers
                ]
        return q.Filter(must=must)

    def search_where(self, asked: tuple[Any, Any]) -> Sequence[int]:
        query, self.filter = asked
        return self.search(query)

    def read(self, row: int) -> bool:
        return len(self.shard.retrieve([row], with_payload=True, with_vector=True)) == 1

    def find(self, value: int) -> Sequence[int]:
        q = self.q
        condition = q.FieldCondition(ANY, match=q.MatchValue(value))
        found, _ = self.shard.scroll(q.ScrollRequest(limit=10, filter=q.Filter(must=[condition])))
        return [record.id for record in found]

    def insert(self, row: int, vector: Any, ranks: tuple[int, int]) -> None:
        point = self.q.Point(row, vector, {ANY: ranks[0], NEAR: ranks[1]})
        self.shard.update(self.q.UpdateOperation.upsert_points([point]))

    def update(self, row: int, vector: Any, ranks: tuple[int, int]) -> None:
        self.insert(row, vector, ranks)

    def delete(self, row: int) -> None:
        self.shard.update(self.q.UpdateOperation.delete_points([row]))


class QdrantEdge(Engine):
    """payload_m: the links of a row for each indexed column, m as Qdrant's default, or 0.

    acorn: 1 for Qdrant's search that also walks through rows that a condition excludes.
    """

    adapter = "qdrant-edge"
    label = "Qdrant's engine in process: no server, no network"
    indexes_inserts = False  # not before optimize()
    parameters = ("m", "ef_construction", "full_scan_threshold", "payload_m")
    search_parameters = ("ef_search", "acorn")
    shard: Any = None

    def start(self, server: Params) -> str:
        try:
            import qdrant_edge
        except ImportError as error:
            raise MissingError("needs qdrant-edge-py: pip install quiver-bench[qdrant]") from error
        self.q = qdrant_edge
        return f"qdrant-edge {version('qdrant-edge-py')}"

    def stop(self) -> None:
        if self.shard is not None:
            self.shard.close()
            self.shard = None
        shutil.rmtree(self.place, ignore_errors=True)

    def load(self, data: Data) -> float:
        self.data = data
        self.loaded: Params | None = None
        return 0.0

    def empty(self, params: Params) -> None:
        """A shard without rows, its payload indexes made: filters need them before the graph."""
        q, dataset, m = self.q, self.data.dataset, take(params, "m", 16)
        self.stop()
        self.place.mkdir(parents=True)
        quantization = None
        if self.options.get("quantization") == "scalar":
            quantization = q.ScalarQuantizationConfig(q.ScalarType.Int8, always_ram=True)
        self.shard = q.EdgeShard.create(
            str(self.place),
            q.EdgeConfig(
                vectors=q.EdgeVectorParams(dataset.dimensions, getattr(q.Distance, METRICS[dataset.metric])),
                hnsw_config=q.HnswIndexConfig(
                    m, take(params, "ef_construction", 100),
                    full_scan_threshold=take(params, "full_scan_threshold", 10),
                    payload_m=take(params, "payload_m", m),
                    max_indexing_threads=THREADS,
                ),
                quantization_config=quantization,
                optimizers=q.EdgeOptimizersConfig(
                    default_segment_number=1, indexing_threshold=1, max_segment_size=1 << 30
                ),
            ),
        )  # fmt: skip
        kinds = dict.fromkeys((ANY, NEAR), q.PayloadSchemaType.Integer)
        if self.data.columns:
            of_rows = (*self.data.columns.numbers, "tags")
            kinds |= dict.fromkeys(of_rows, q.PayloadSchemaType.Integer)
            kinds["words"] = q.PayloadSchemaType.Text
        self.indexed = len(kinds)
        for column, kind in kinds.items():
            self.shard.update(q.UpdateOperation.create_field_index(column, kind))

    def build(self, params: Params) -> Built:
        """The rows come first, in batches; optimize() makes the graph, and is what is timed."""
        q, dataset, data = self.q, self.data.dataset, self.data
        loading = time.perf_counter_ns()
        self.empty(params)
        for start in range(0, dataset.rows, BATCH):
            points = [
                q.Point(i, dataset.train[i].tolist(),
                        {ANY: int(data.any_rank[i]), NEAR: int(data.near_rank[i]),
                         **_payload(data.columns, i)})
                for i in range(start, min(start + BATCH, dataset.rows))
            ]  # fmt: skip
            self.shard.update(q.UpdateOperation.upsert_points(points))
        began = time.perf_counter_ns()
        self.shard.optimize()
        seconds = (time.perf_counter_ns() - began) / 1e9
        loading_s = (began - loading) / 1e9
        self.shard.flush()
        info = self.shard.info()
        indexed = int(info.indexed_vectors_count or 0)
        if indexed < dataset.rows:
            raise EngineError(f"only {indexed:,} of {dataset.rows:,} rows are in the graph")
        size = sum(p.stat().st_size for p in self.place.rglob("vector_index*/*") if p.is_file())
        whole = sum(p.stat().st_size for p in self.place.rglob("*") if p.is_file())
        linked = take(params, "payload_m", take(params, "m", 16))
        links = f"with links for {self.indexed} columns" if linked else "without links for columns"
        return Built(
            seconds, size, whole - size, loading_s=loading_s,
            notes=("size: files of the graph alone", f"build: {links}, by {THREADS} threads"),
        )  # fmt: skip

    def settle(self) -> None:
        self.shard.optimize()

    def sessions(self, search: Search) -> SessionFactory:
        return lambda: QdrantSession(self, search)
