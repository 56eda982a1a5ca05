"""Qdrant's server by URL. qdrant_edge_.py has its engine without a server."""

from __future__ import annotations

import time
from typing import Any

from quiver_bench.engines.base import ANY, NEAR, Search, take
from quiver_bench.engines.http import NAME, VECTOR, HttpEngine, Ranks, Request, columns_of
from quiver_bench.errors import EngineError
from quiver_bench.records import Params

READY_SECONDS = 3600
HERE = f"/collections/{NAME}"


class Qdrant(HttpEngine):
    adapter = "qdrant"
    label = "adapter not run for real: no package registry has its server"
    key_header = "api-key"
    why_not = "no package registry has its server, qdrant-edge has its engine"
    indexes_inserts = False  # its optimizers do, later

    def version_of(self) -> str:
        return str(self.client.call("GET", "/")["version"])

    def create(self, params: Params) -> None:
        distance = {"euclidean": "Euclid", "angular": "Cosine", "ip": "Dot"}
        dataset = self.data.dataset
        body: dict[str, Any] = {
            "vectors": {"size": dataset.dimensions, "distance": distance[dataset.metric]},
            "hnsw_config": {"m": take(params, "m", 16),
                            "ef_construct": take(params, "ef_construction", 100)},
            "optimizers_config": {"indexing_threshold": 1},
        }  # fmt: skip
        if self.options.get("quantization") == "scalar":
            body["quantization_config"] = {"scalar": {"type": "int8", "always_ram": True}}
        self.client.call("DELETE", HERE, missing_ok=True)
        self.client.call("PUT", HERE, body)
        for column in (ANY, NEAR):
            self.client.call("PUT", f"{HERE}/index?wait=true",
                             {"field_name": column, "field_schema": "integer"})  # fmt: skip

    def batch(self, start: int, stop: int) -> Request:
        points = []
        for i in range(start, stop):
            vector, columns = self.row(i)
            points.append({"id": i, "vector": vector, "payload": columns})
        return "PUT", f"{HERE}/points?wait=true", {"points": points}

    def wait(self) -> None:
        self._wait_for(self.data.dataset.rows)

    def settle(self) -> None:
        self._wait_for(0)

    def _wait_for(self, indexed: int) -> None:
        end = time.monotonic() + READY_SECONDS
        while time.monotonic() < end:
            info = self.client.call("GET", HERE)["result"]
            if info["status"] == "green" and info["indexed_vectors_count"] >= indexed:
                return
            time.sleep(0.5)
        raise EngineError("the collection is not green")

    @staticmethod
    def query(search: Search) -> tuple[str, Any]:
        ef = max(search.k, take(search.params, "ef_search", 40))
        body: dict[str, Any] = {"query": VECTOR, "limit": search.k, "params": {"hnsw_ef": ef}}
        if search.where:
            condition = {"key": search.where.column, "range": {"lt": search.where.below}}
            body["filter"] = {"must": [condition]}
        return f"{HERE}/points/query", body

    @staticmethod
    def condition(value: int) -> tuple[str, Any]:
        match = {"key": ANY, "match": {"value": value}}
        return f"{HERE}/points/scroll", {"limit": 10, "filter": {"must": [match]}}

    @staticmethod
    def rows_of(answer: Any) -> list[int]:
        return [point["id"] for point in answer["result"]["points"]]

    @staticmethod
    def place_of(row: int) -> str:
        return f"{HERE}/points/{row}"

    @staticmethod
    def inserting(row: int, ranks: Ranks) -> Request:
        point = {"id": row, "vector": VECTOR, "payload": columns_of(ranks)}
        return "PUT", f"{HERE}/points?wait=true", {"points": [point]}

    @classmethod
    def deleting(cls, row: int) -> Request:
        return "POST", f"{HERE}/points/delete?wait=true", {"points": [row]}
