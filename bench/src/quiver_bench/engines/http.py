"""Servers by URL, over HTTP and JSON: Qdrant, OpenSearch, Elasticsearch, Weaviate.

Written from their documentation and tested against a server that only records what it
is sent: none of them has been run here, and every table says so.
"""

from __future__ import annotations

import http.client
import json
import time
import urllib.parse
import uuid
from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

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

NAME = "quiver_bench"
BATCH = 500
READY_SECONDS = 3600


class Client:
    """One kept connection."""

    def __init__(self, url: str, headers: dict[str, str]) -> None:
        parts = urllib.parse.urlsplit(url)
        secure = parts.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        self.connection = kind(parts.hostname or "localhost", parts.port, timeout=600)
        self.path, self.headers = parts.path.rstrip("/"), headers

    def call(self, method: str, path: str, body: Any = None, missing_ok: bool = False) -> Any:
        """The answer's JSON. body: a value, its JSON as bytes, or lines of JSON as text."""
        text = None if body is None else body
        if not isinstance(body, str | bytes | None):
            text = json.dumps(body)
        kind = "application/x-ndjson" if isinstance(body, str) else "application/json"
        try:
            self.connection.request(
                method, self.path + path, text, {"Content-Type": kind, **self.headers}
            )
            answer = self.connection.getresponse()
            data = answer.read()
        except (OSError, http.client.HTTPException) as error:
            self.connection.close()
            raise EngineError(f"{method} {path}: {error}") from error
        if answer.status >= 400 and not (missing_ok and answer.status == 404):
            raise EngineError(f"{method} {path}: {answer.status} {data[:300]!r}")
        return json.loads(data) if data else None


class HttpSession(Session):
    """search() posts what encode() made."""

    def __init__(
        self, dialect: type[HttpEngine], url: str, headers: dict[str, str], search: Search
    ) -> None:
        self.dialect, self.wanted = dialect, search
        self.client = Client(url, headers)

    def encode(self, vector: Floats) -> tuple[str, bytes]:
        path, body = self.dialect.query(vector.tolist(), self.wanted)
        return path, json.dumps(body).encode()

    def search(self, query: Any) -> Sequence[int]:
        path, body = query
        return self.dialect.rows_of(self.client.call("POST", path, body))

    def ping(self) -> None:
        self.client.call("GET", self.dialect.ping_path, missing_ok=True)

    def close(self) -> None:
        self.client.connection.close()


class HttpEngine(Engine):
    """A suite's options: url, and api_key when it needs one."""

    label = "adapter not run for real"
    embedded = False
    parameters = ("m", "ef_construction")
    search_parameters = ("ef_search",)
    ping_path: ClassVar[str] = "/"
    key_header: ClassVar[str] = "Authorization"

    def start(self, server: Params) -> str:
        self.url = str(self.options.get("url") or "")
        if not self.url:
            raise MissingError(f"needs the url of a running {self.adapter} (option url)")
        key = str(self.options.get("api_key") or "")
        self.headers = {self.key_header: key} if key else {}
        self.client = Client(self.url, self.headers)
        try:
            return f"{self.adapter} {self.version_of()}"
        except EngineError as error:
            raise MissingError(f"{self.url.split('@')[-1]} does not answer: {error}") from error

    def version_of(self) -> str:
        raise NotImplementedError

    def load(self, data: Data) -> float:
        self.data = data
        return 0.0

    @staticmethod
    def query(vector: list[float], search: Search) -> tuple[str, Any]:
        """Path and body of a search."""
        raise NotImplementedError

    @staticmethod
    def rows_of(answer: Any) -> list[int]:
        raise NotImplementedError

    def create(self, params: Params) -> None:
        raise NotImplementedError

    def put(self, start: int, stop: int) -> None:
        """Send rows start to stop - 1."""
        raise NotImplementedError

    def wait(self) -> None:
        """Until all rows are indexed."""

    def size(self) -> int:
        """Bytes, 0 when it does not say."""
        return 0

    def row(self, i: int) -> tuple[list[float], dict[str, int]]:
        data = self.data
        columns = {ANY: int(data.any_rank[i]), NEAR: int(data.near_rank[i])}
        return data.dataset.train[i].tolist(), columns

    def build(self, params: Params) -> Built:
        began = time.perf_counter_ns()
        self.create(params)
        rows = self.data.dataset.rows
        for start in range(0, rows, BATCH):
            self.put(start, min(rows, start + BATCH))
        self.wait()
        return Built((time.perf_counter_ns() - began) / 1e9, self.size(), mode="insert")

    def sessions(self, search: Search) -> SessionFactory:
        return partial(HttpSession, type(self), self.url, self.headers, search)


class Qdrant(HttpEngine):
    adapter = "qdrant"
    key_header = "api-key"

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
        self.client.call("DELETE", f"/collections/{NAME}", missing_ok=True)
        self.client.call("PUT", f"/collections/{NAME}", body)
        for column in (ANY, NEAR):
            self.client.call("PUT", f"/collections/{NAME}/index?wait=true",
                             {"field_name": column, "field_schema": "integer"})  # fmt: skip

    def put(self, start: int, stop: int) -> None:
        points = []
        for i in range(start, stop):
            vector, columns = self.row(i)
            points.append({"id": i, "vector": vector, "payload": columns})
        self.client.call("PUT", f"/collections/{NAME}/points?wait=true", {"points": points})

    def wait(self) -> None:
        end = time.monotonic() + READY_SECONDS
        while time.monotonic() < end:
            info = self.client.call("GET", f"/collections/{NAME}")["result"]
            if (
                info["status"] == "green"
                and info["indexed_vectors_count"] >= self.data.dataset.rows
            ):
                return
            time.sleep(0.5)
        raise EngineError("the collection is not green")

    @staticmethod
    def query(vector: list[float], search: Search) -> tuple[str, Any]:
        ef = max(search.k, take(search.params, "ef_search", 40))
        body: dict[str, Any] = {"query": vector, "limit": search.k, "params": {"hnsw_ef": ef}}
        if search.where:
            condition = {"key": search.where.column, "range": {"lt": search.where.below}}
            body["filter"] = {"must": [condition]}
        return f"/collections/{NAME}/points/query", body

    @staticmethod
    def rows_of(answer: Any) -> list[int]:
        return [point["id"] for point in answer["result"]["points"]]


class OpenSearch(HttpEngine):
    adapter = "opensearch"

    def version_of(self) -> str:
        return str(self.client.call("GET", "/")["version"]["number"])

    def field(self, params: Params) -> dict[str, Any]:
        """The vector's part of the mapping."""
        space = {"euclidean": "l2", "angular": "cosinesimil", "ip": "innerproduct"}
        method = {
            "name": "hnsw", "engine": str(self.options.get("engine") or "lucene"),
            "space_type": space[self.data.dataset.metric],
            "parameters": {"m": take(params, "m", 16),
                           "ef_construction": take(params, "ef_construction", 100)},
        }  # fmt: skip
        dimension = self.data.dataset.dimensions
        return {"type": "knn_vector", "dimension": dimension, "method": method}

    def create(self, params: Params) -> None:
        properties = {"embedding": self.field(params), ANY: {"type": "integer"},
                      NEAR: {"type": "integer"}}  # fmt: skip
        settings: dict[str, Any] = {"number_of_shards": 1, "number_of_replicas": 0}
        if self.adapter == "opensearch":
            settings["knn"] = True
        self.client.call("DELETE", f"/{NAME}", missing_ok=True)
        body = {"settings": {"index": settings}, "mappings": {"properties": properties}}
        self.client.call("PUT", f"/{NAME}", body)

    def put(self, start: int, stop: int) -> None:
        lines = []
        for i in range(start, stop):
            vector, columns = self.row(i)
            lines.append(json.dumps({"index": {"_id": str(i)}}))
            lines.append(json.dumps({"embedding": vector, **columns}))
        answer = self.client.call("POST", f"/{NAME}/_bulk", "\n".join(lines) + "\n")
        if answer.get("errors"):
            raise EngineError("a bulk request had errors")

    def wait(self) -> None:
        self.client.call("POST", f"/{NAME}/_forcemerge?max_num_segments=1")
        self.client.call("POST", f"/{NAME}/_refresh")

    def size(self) -> int:
        answer = self.client.call("GET", f"/{NAME}/_stats/store")
        return int(answer["_all"]["primaries"]["store"]["size_in_bytes"])

    @staticmethod
    def query(vector: list[float], search: Search) -> tuple[str, Any]:
        near: dict[str, Any] = {
            "vector": vector, "k": search.k,
            "method_parameters": {"ef_search": max(search.k, take(search.params, "ef_search", 40))},
        }  # fmt: skip
        if search.where:
            near["filter"] = {"range": {search.where.column: {"lt": search.where.below}}}
        body = {"size": search.k, "_source": False, "query": {"knn": {"embedding": near}}}
        return f"/{NAME}/_search", body

    @staticmethod
    def rows_of(answer: Any) -> list[int]:
        return [int(hit["_id"]) for hit in answer["hits"]["hits"]]


class Elasticsearch(OpenSearch):
    adapter = "elasticsearch"

    def field(self, params: Params) -> dict[str, Any]:
        space = {"euclidean": "l2_norm", "angular": "cosine", "ip": "max_inner_product"}
        options = {"type": "hnsw", "m": take(params, "m", 16),
                   "ef_construction": take(params, "ef_construction", 100)}  # fmt: skip
        dataset = self.data.dataset
        return {"type": "dense_vector", "dims": dataset.dimensions, "index": True,
                "similarity": space[dataset.metric], "index_options": options}  # fmt: skip

    @staticmethod
    def query(vector: list[float], search: Search) -> tuple[str, Any]:
        near: dict[str, Any] = {
            "field": "embedding", "query_vector": vector, "k": search.k,
            "num_candidates": max(search.k, take(search.params, "ef_search", 40)),
        }  # fmt: skip
        if search.where:
            near["filter"] = {"range": {search.where.column: {"lt": search.where.below}}}
        return f"/{NAME}/_search", {"size": search.k, "_source": False, "knn": near}


class Weaviate(HttpEngine):
    adapter = "weaviate"
    ping_path = "/v1/.well-known/ready"
    collection = "QuiverBench"

    def version_of(self) -> str:
        return str(self.client.call("GET", "/v1/meta")["version"])

    def create(self, params: Params) -> None:
        distance = {"euclidean": "l2-squared", "angular": "cosine", "ip": "dot"}
        # ef is a setting of the collection, not of a query.
        index = {
            "distance": distance[self.data.dataset.metric],
            "maxConnections": take(params, "m", 16),
            "efConstruction": take(params, "ef_construction", 100),
            "ef": take(self.options, "ef_search", 64),
        }
        self.client.call("DELETE", f"/v1/schema/{self.collection}", missing_ok=True)
        columns: list[dict[str, object]] = [
            {"name": name, "dataType": ["int"]} for name in ("row", ANY, NEAR)
        ]
        body = {"class": self.collection, "vectorizer": "none", "vectorIndexConfig": index,
                "properties": columns}  # fmt: skip
        self.client.call("POST", "/v1/schema", body)

    def put(self, start: int, stop: int) -> None:
        objects: list[dict[str, object]] = []
        for i in range(start, stop):
            vector, columns = self.row(i)
            objects.append({"class": self.collection, "id": str(uuid.UUID(int=i + 1)),
                            "properties": {"row": i, **columns}, "vector": vector})  # fmt: skip
        answer = self.client.call("POST", "/v1/batch/objects", {"objects": objects})
        for one in answer or ():  # each has its own success
            if one.get("result", {}).get("errors"):
                raise EngineError(f"a row was not taken: {str(one['result']['errors'])[:300]}")

    def sessions(self, search: Search) -> SessionFactory:
        if search.params.get("ef_search") not in (None, self.options.get("ef_search")):
            raise UnsupportedError("ef is a setting of its collection: give the option ef_search")
        return super().sessions(search)

    @staticmethod
    def query(vector: list[float], search: Search) -> tuple[str, Any]:
        where = ""
        if search.where:
            where = (
                f', where: {{path: ["{search.where.column}"], operator: LessThan,'
                f" valueInt: {search.where.below}}}"
            )
        text = (
            f"{{ Get {{ QuiverBench(limit: {search.k}, nearVector: {{vector: {vector}}}{where})"
            " { row } } }"
        )
        return "/v1/graphql", {"query": text}

    @staticmethod
    def rows_of(answer: Any) -> list[int]:
        if answer.get("errors"):
            raise EngineError(str(answer["errors"])[:300])
        return [one["row"] for one in answer["data"]["Get"]["QuiverBench"]]
