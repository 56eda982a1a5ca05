"""OpenSearch, by URL or as a node of ours, and Elasticsearch by URL.

Elasticsearch's distribution is in no package registry, OpenSearch's node and its plugin for
vectors are in Maven's: OpenSearch stands in for Elasticsearch. Both have Lucene's graphs.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from quiver_bench.console import Step
from quiver_bench.engines.base import ANY, NEAR, Search, take
from quiver_bench.engines.http import (
    NAME,
    VECTOR,
    Client,
    HttpEngine,
    Ranks,
    Request,
    columns_of,
)
from quiver_bench.errors import EngineError, MissingError
from quiver_bench.records import Params
from quiver_bench.servers import Process, free_ports, home

OLDEST_JAVA = 21
NODE_LABEL = "an embedded node, Lucene's graphs; stands in for Elasticsearch"


def java_homes() -> list[Path]:
    given = os.environ.get("JAVA_HOME")
    return [*([Path(given)] if given else []), *Path("/usr/lib/jvm").glob("*")]


def find_java(homes: Iterable[Path]) -> Path:
    """The newest of these that is new enough, and has a compiler."""
    found: list[tuple[int, Path]] = []
    for place in homes:
        if (place / "bin" / "javac").is_file() and (place / "release").is_file():
            match = re.search(r'JAVA_VERSION="(\d+)', (place / "release").read_text())
            found.append((int(match.group(1)) if match else 0, place))
    version, newest = max(found, default=(0, Path()))
    if version < OLDEST_JAVA:
        raise MissingError(
            f"needs the url of a running OpenSearch, or a JDK {OLDEST_JAVA} or later"
            " (JAVA_HOME) and Maven to make a node of it"
        )
    return newest


class OpenSearch(HttpEngine):
    adapter = "opensearch"
    label = NODE_LABEL
    indexes_inserts = False  # searches see them after a refresh
    size_of = "all files, with the rows"

    def start(self, server: Params) -> str:
        version = super().start(server)
        if self.process is None and self.label == NODE_LABEL:  # by url it is no such node
            self.label = ""
        return version

    def launch(self, server: Params) -> str:
        """server: heap, of Java (2g)."""
        if self.top is None:
            raise MissingError("needs the url of a running OpenSearch, or a checkout of Quiver")
        java = find_java(java_homes())
        if not shutil.which("mvn"):
            raise MissingError("needs the url of a running OpenSearch, or Maven to make a node")
        made = home(self.top) / "opensearch"
        with Step("OpenSearch from Maven's packages") as step:
            ran = subprocess.run(
                [str(self.top / "tools" / "opensearch_node"), str(made), str(java)],
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            if ran.returncode != 0:
                last = (ran.stderr.strip() or ran.stdout.strip()).splitlines()[-1:]
                raise MissingError(f"OpenSearch could not be made: {' '.join(last)}")
            step.note = ran.stdout.strip().splitlines()[-1]
        shutil.rmtree(self.place, ignore_errors=True)
        (self.place / "config").mkdir(parents=True)
        self.process = Process(self.place)
        port, inner = free_ports(2)
        url = f"http://127.0.0.1:{port}"
        heap = str(server.get("heap") or "2g")
        path = f"{made}/classes:{made}/lib/*:{made}/plugin/*"
        arguments = [
            str(java / "bin" / "java"), f"-Xms{heap}", f"-Xmx{heap}",
            "--add-modules=jdk.incubator.vector", "-cp", path,
            "OpenSearchNode", str(self.place), str(port), str(inner),
        ]  # fmt: skip
        client = Client(url, {})
        self.process.start(arguments, lambda: client.call("GET", "/_cluster/health"))
        client.connection.close()
        return url

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

    def batch(self, start: int, stop: int) -> Request:
        lines = []
        for i in range(start, stop):
            vector, columns = self.row(i)
            lines.append(json.dumps({"index": {"_id": str(i)}}))
            lines.append(json.dumps({"embedding": vector, **columns}))
        return "POST", f"/{NAME}/_bulk", "\n".join(lines) + "\n"

    def check(self, answer: Any) -> None:
        if answer.get("errors"):
            first = next((one for one in answer["items"] if "error" in one["index"]), "")
            raise EngineError(f"a row was not taken: {str(first)[:300]}")

    def wait(self) -> None:
        self.client.call("POST", f"/{NAME}/_forcemerge?max_num_segments=1")
        self.settle()

    def settle(self) -> None:
        self.client.call("POST", f"/{NAME}/_refresh")

    def size(self) -> int:
        answer = self.client.call("GET", f"/{NAME}/_stats/store")
        return int(answer["_all"]["primaries"]["store"]["size_in_bytes"])

    @staticmethod
    def query(search: Search) -> tuple[str, Any]:
        near: dict[str, Any] = {
            "vector": VECTOR, "k": search.k,
            "method_parameters": {"ef_search": max(search.k, take(search.params, "ef_search", 40))},
        }  # fmt: skip
        if search.where:
            near["filter"] = {"range": {search.where.column: {"lt": search.where.below}}}
        body = {"size": search.k, "_source": False, "query": {"knn": {"embedding": near}}}
        return f"/{NAME}/_search", body

    @staticmethod
    def condition(value: int) -> tuple[str, Any]:
        body = {"size": 10, "_source": False, "query": {"term": {ANY: {"value": value}}}}
        return f"/{NAME}/_search", body

    @staticmethod
    def rows_of(answer: Any) -> list[int]:
        return [int(hit["_id"]) for hit in answer["hits"]["hits"]]

    @staticmethod
    def place_of(row: int) -> str:
        return f"/{NAME}/_doc/{row}"

    @staticmethod
    def inserting(row: int, ranks: Ranks) -> Request:
        return "PUT", f"/{NAME}/_doc/{row}", {"embedding": VECTOR, **columns_of(ranks)}


class Elasticsearch(OpenSearch):
    adapter = "elasticsearch"
    label = "adapter not run for real: no package registry has its distribution"
    why_not = "no package registry has its distribution, opensearch stands in for it"

    def launch(self, server: Params) -> str:
        return HttpEngine.launch(self, server)

    def field(self, params: Params) -> dict[str, Any]:
        space = {"euclidean": "l2_norm", "angular": "cosine", "ip": "max_inner_product"}
        options = {"type": "hnsw", "m": take(params, "m", 16),
                   "ef_construction": take(params, "ef_construction", 100)}  # fmt: skip
        dataset = self.data.dataset
        return {"type": "dense_vector", "dims": dataset.dimensions, "index": True,
                "similarity": space[dataset.metric], "index_options": options}  # fmt: skip

    @staticmethod
    def query(search: Search) -> tuple[str, Any]:
        near: dict[str, Any] = {
            "field": "embedding", "query_vector": VECTOR, "k": search.k,
            "num_candidates": max(search.k, take(search.params, "ef_search", 40)),
        }  # fmt: skip
        if search.where:
            near["filter"] = {"range": {search.where.column: {"lt": search.where.below}}}
        return f"/{NAME}/_search", {"size": search.k, "_source": False, "knn": near}
