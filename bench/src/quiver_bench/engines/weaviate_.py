"""Weaviate, by URL or a server of ours, over REST and GraphQL.

Its server is a program in Go: `go install` builds it. Searches go over GraphQL, the rest
over REST, as the clients did that the docarray report used; newer ones have gRPC.

The second table of the filter suites is a collection of owners: a row refers to its own.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import uuid
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from quiver_bench.conditions import Clause, Ints, Values, word
from quiver_bench.console import Step
from quiver_bench.engines.base import ANY, NEAR, Built, Search, SessionFactory, take
from quiver_bench.engines.http import (
    BATCH,
    CONDITION,
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

MODULE = "github.com/weaviate/weaviate/cmd/weaviate-server"
VERSION = "v1.35.2"
CLASS = "QuiverBench"
OWNERS, OWNER_OF_ROW = "QuiverBenchOwner", "ownerOfRow"  # the second table, a reference to it
PORTS = ("GRPC_PORT", "CLUSTER_GOSSIP_BIND_PORT", "CLUSTER_DATA_BIND_PORT", "RAFT_PORT",
         "RAFT_INTERNAL_RPC_PORT", "GO_PROFILING_PORT")  # fmt: skip


def name_of(row: int) -> str:
    return str(uuid.UUID(int=row + 1))


def program(top: Path | None, version: str) -> Path:
    """The server: WEAVIATE_SERVER, one in the path, or built by go."""
    given = os.environ.get("WEAVIATE_SERVER") or shutil.which("weaviate-server")
    if given:
        if not Path(given).is_file():
            raise MissingError(f"WEAVIATE_SERVER: there is no program {given}")
        return Path(given)
    folder = home(top) / f"weaviate-{version}"
    made = folder / "weaviate-server"
    if made.is_file():
        return made
    if not shutil.which("go"):
        raise MissingError(
            "needs the url of a running Weaviate, the program weaviate-server (WEAVIATE_SERVER),"
            f" or go to build {version} of it"
        )
    folder.mkdir(parents=True, exist_ok=True)
    with Step(f"Weaviate {version} by go install (minutes)"):
        ran = subprocess.run(
            ["go", "install", "-buildvcs=false", f"{MODULE}@{version}"],
            env=os.environ | {"GOBIN": str(folder)}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if ran.returncode != 0 or not made.is_file():
            last = " ".join(ran.stderr.strip().splitlines()[-1:])
            raise MissingError(f"Weaviate could not be built: {last}")
    return made


class Weaviate(HttpEngine):
    """A suite's options: version, of the server to be built."""

    adapter = "weaviate"
    label = "over REST and GraphQL"
    ping_path = "/v1/.well-known/ready"
    has_conditions = True

    def launch(self, server: Params) -> str:
        """server: more variables of its environment."""
        made = program(self.top, str(self.options.get("version") or VERSION))
        shutil.rmtree(self.place, ignore_errors=True)
        self.place.mkdir(parents=True)
        self.process = Process(self.place)
        port, *ports = free_ports(1 + len(PORTS))
        environment = {
            "PERSISTENCE_DATA_PATH": str(self.place / "data"),
            "AUTHENTICATION_ANONYMOUS_ACCESS_ENABLED": "true",
            "DEFAULT_VECTORIZER_MODULE": "none",
            "DISABLE_TELEMETRY": "true",
            "CLUSTER_HOSTNAME": "quiver-bench",
            "CLUSTER_ADVERTISE_ADDR": "127.0.0.1",
            "RAFT_BOOTSTRAP_EXPECT": "1",
            **dict(zip(PORTS, map(str, ports), strict=True)),
            **{name: str(value) for name, value in server.items()},
        }
        url = f"http://127.0.0.1:{port}"
        client = Client(url, {})
        self.process.start(
            [str(made), "--host", "127.0.0.1", "--port", str(port), "--scheme", "http"],
            lambda: client.call("GET", self.ping_path), environment=environment,
        )  # fmt: skip
        client.connection.close()
        return url

    def version_of(self) -> str:
        return str(self.client.call("GET", "/v1/meta")["version"])

    def create(self, params: Params) -> None:
        distance = {"euclidean": "l2-squared", "angular": "cosine", "ip": "dot"}
        index = {
            "distance": distance[self.data.dataset.metric],
            "maxConnections": take(params, "m", 16),
            "efConstruction": take(params, "ef_construction", 100),
        }
        columns = [_number("row", ranges=False), _number(ANY), _number(NEAR)]
        self.client.call("DELETE", f"/v1/schema/{CLASS}", missing_ok=True)
        if self.data.columns:
            self._create_owners(self.data.columns.owners)
            columns += map(_number, self.data.columns.numbers)
            columns += [
                {"name": "tags", "dataType": ["int[]"]},
                {"name": "words", "dataType": ["text"], "tokenization": "whitespace",
                 "indexSearchable": False},
                {"name": OWNER_OF_ROW, "dataType": [OWNERS]},
            ]  # fmt: skip
        self._create(CLASS, columns, vectorIndexConfig=index)

    def _create(self, name: str, columns: Sequence[Any], **more: object) -> None:
        body = {"class": name, "vectorizer": "none", "properties": columns, **more}
        self.client.call("POST", "/v1/schema", body)

    def _create_owners(self, made: Mapping[str, Ints]) -> None:
        columns = [_number("owner", ranges=False), *map(_number, made)]
        self.client.call("DELETE", f"/v1/schema/{OWNERS}", missing_ok=True)
        self._create(OWNERS, columns, vectorIndexConfig={"skip": True})
        rows = zip(*(column.tolist() for column in made.values()), strict=True)
        objects = [
            {"class": OWNERS, "id": name_of(i),
             "properties": {"owner": i, **dict(zip(made, one, strict=True))}}
            for i, one in enumerate(rows)
        ]  # fmt: skip
        for start in range(0, len(objects), BATCH):
            body = {"objects": objects[start : start + BATCH]}
            self.check(self.client.call("POST", "/v1/batch/objects", body))

    def batch(self, start: int, stop: int) -> Request:
        objects: list[dict[str, object]] = []
        for i in range(start, stop):
            vector, columns = self.row(i)
            properties = {"row": i, **columns, **self._columns_of(i)}
            objects.append({"class": CLASS, "id": name_of(i),
                            "properties": properties, "vector": vector})  # fmt: skip
        return "POST", "/v1/batch/objects", {"objects": objects}

    def _columns_of(self, row: int) -> dict[str, object]:
        """Those of the filter suites, if there are any."""
        made = self.data.columns
        if made is None:
            return {}
        owner = name_of(int(made.numbers["owner"][row]))
        return {
            **{name: int(column[row]) for name, column in made.numbers.items()},
            "tags": made.bags["tags"].of(row),
            "words": " ".join(map(word, made.bags["words"].of(row))),
            OWNER_OF_ROW: [{"beacon": f"weaviate://localhost/{OWNERS}/{owner}"}],
        }

    def check(self, answer: Any) -> None:
        for one in answer or ():  # each has its own success
            if one.get("result", {}).get("errors"):
                raise EngineError(f"a row was not taken: {str(one['result']['errors'])[:300]}")

    def build(self, params: Params) -> Built:
        built = super().build(params)
        if self.process is None:
            return built
        files = [p for p in (self.place / "data").rglob("*") if p.is_file()]
        sizes = {p: p.stat().st_size for p in files}
        graph = sum(size for p, size in sizes.items() if "commitlog" in str(p))
        note = "size: the log that the graph is loaded from"
        return Built(built.seconds, graph, sum(sizes.values()) - graph, built.mode, (note,))

    def sessions(self, search: Search) -> SessionFactory:
        """ef is a setting of the collection, so it is made for these sessions before them."""
        ef = max(search.k, take(search.params, "ef_search", 40))
        body = self.client.call("GET", f"/v1/schema/{CLASS}")
        if body["vectorIndexConfig"].get("ef") != ef:
            body["vectorIndexConfig"]["ef"] = ef
            self.client.call("PUT", f"/v1/schema/{CLASS}", body)
            now = self.client.call("GET", f"/v1/schema/{CLASS}")["vectorIndexConfig"].get("ef")
            if now != ef:
                raise EngineError(f"ef is {now}, not {ef}")
        return super().sessions(search)

    @staticmethod
    def query(search: Search) -> tuple[str, Any]:
        where = CONDITION if search.clauses else ""
        if search.where:
            where = _where(_compared([search.where.column], "LessThan", search.where.below))
        return _get(f"limit: {search.k}, nearVector: {{vector: {VECTOR}}}{where}")

    @staticmethod
    def where(clauses: Sequence[Clause], values: Values) -> str:
        pairs = zip(clauses, values, strict=True)
        return _where(*(part for one in pairs for part in _parts(*one)))

    @staticmethod
    def condition(value: int) -> tuple[str, Any]:
        return _get(f"limit: 10{_where(_compared([ANY], 'Equal', value))}")

    @staticmethod
    def rows_of(answer: Any) -> list[int]:
        if answer.get("errors"):
            raise EngineError(str(answer["errors"])[:300])
        return [one["row"] for one in answer["data"]["Get"][CLASS]]

    @staticmethod
    def place_of(row: int) -> str:
        return f"/v1/objects/{CLASS}/{name_of(row)}"

    @staticmethod
    def inserting(row: int, ranks: Ranks) -> Request:
        return "POST", "/v1/objects", _object(row, ranks)

    @classmethod
    def updating(cls, row: int, ranks: Ranks) -> Request:
        return "PUT", cls.place_of(row), _object(row, ranks)


def _number(name: str, ranges: bool = True) -> dict[str, object]:
    """A column of a schema."""
    return {"name": name, "dataType": ["int"], "indexRangeFilters": ranges}


def _compared(path: Sequence[str], operator: str, value: object, kind: str = "Int") -> str:
    """A part of a condition. value: as GraphQL writes it."""
    return f"{{path: {json.dumps(path)}, operator: {operator}, value{kind}: {value}}}"


def _parts(clause: Clause, numbers: tuple[int, ...]) -> Iterable[str]:
    """What must hold for a clause."""
    path = [clause.column]
    if clause.kind == "all" and clause.column == "words":
        yield _compared(path, "ContainsAll", json.dumps([*map(word, numbers)]), "Text")
    elif clause.kind == "all":
        yield _compared(path, "ContainsAll", json.dumps(numbers))
    elif clause.kind == "between":
        yield _compared(path, "GreaterThanEqual", numbers[0])
        yield _compared(path, "LessThan", numbers[1])
    else:
        if clause.kind == "owner":
            path = [OWNER_OF_ROW, OWNERS, *path]
        equal = clause.kind == "equal" or clause.column == "owner"
        yield _compared(path, "Equal" if equal else "LessThan", numbers[0])


def _where(*parts: str) -> str:
    """All parts hold."""
    whole = parts[0]
    if len(parts) > 1:
        whole = f"{{operator: And, operands: [{', '.join(parts)}]}}"
    return f", where: {whole}"


def _get(arguments: str) -> tuple[str, Any]:
    return "/v1/graphql", {"query": f"{{ Get {{ {CLASS}({arguments}) {{ row }} }} }}"}


def _object(row: int, ranks: Ranks) -> dict[str, Any]:
    properties = {"row": row, **columns_of(ranks)}
    return {"class": CLASS, "id": name_of(row), "properties": properties, "vector": VECTOR}
