"""Servers over HTTP and JSON: what Qdrant, OpenSearch, Elasticsearch and Weaviate share.

A dialect says what is sent (paths and bodies) and how an answer is read. A body is made
once a session, with VECTOR where the numbers go: they alone are written for each query. Under
the conditions of a filter suite so is what stands for CONDITION.
"""

from __future__ import annotations

import http.client
import json
import time
import urllib.parse
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from quiver_bench.conditions import Clause, Values
from quiver_bench.engines.base import (
    ANY,
    NEAR,
    Built,
    Data,
    ProcessEngine,
    Search,
    Session,
    SessionFactory,
)
from quiver_bench.errors import EngineError, MissingError, UnsupportedError
from quiver_bench.records import Params
from quiver_bench.truth import Floats

NAME = "quiver_bench"
VECTOR = "@vector@"
CONDITION = "@condition@"
BATCH = 500

Ranks = tuple[int, int]
Request = tuple[str, str, Any]  # method, path, body: a value, or None


def columns_of(ranks: Ranks) -> dict[str, int]:
    return {ANY: ranks[0], NEAR: ranks[1]}


def filled(template: str, vector: str) -> bytes:
    """A body with its numbers, which may stand in another text (GraphQL)."""
    return template.replace(f'"{VECTOR}"', vector).replace(VECTOR, vector).encode()


class Client:
    """One kept connection."""

    def __init__(self, url: str, headers: dict[str, str]) -> None:
        parts = urllib.parse.urlsplit(url)
        secure = parts.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        self.connection = kind(parts.hostname or "localhost", parts.port, timeout=600)
        self.path, self.headers = parts.path.rstrip("/"), headers

    def connect(self) -> None:
        try:
            self.connection.connect()
        except OSError as error:
            raise EngineError(f"cannot connect: {error}") from error

    def call(self, method: str, path: str, body: Any = None, missing_ok: bool = False) -> Any:
        """The answer's JSON. body: a value, its JSON as bytes, or lines of JSON as text.

        missing_ok: None for what is not there. EngineError for every other failure.
        """
        text = None if body is None else body
        if not isinstance(body, str | bytes | None):
            text = json.dumps(body)
        kind = "application/x-ndjson" if isinstance(body, str) else "application/json"
        headers = {"Content-Type": kind, **self.headers}
        try:
            status, data = self._exchange(method, self.path + path, text, headers)
        except (OSError, http.client.HTTPException) as error:
            self.connection.close()
            raise EngineError(f"{method} {path}: {error}") from error
        if status == 404 and missing_ok:
            return None
        if status >= 400:
            raise EngineError(f"{method} {path}: {status} {data[:300]!r}")
        return json.loads(data) if data else None

    def _exchange(
        self, method: str, path: str, text: Any, headers: dict[str, str]
    ) -> tuple[int, bytes]:
        """A server may have closed a connection that was idle: it is opened again, once."""
        fresh = self.connection.sock is None
        try:
            self.connection.request(method, path, text, headers)
            answer = self.connection.getresponse()
        except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
            self.connection.close()
            if fresh:
                raise
            self.connection.request(method, path, text, headers)
            answer = self.connection.getresponse()
        return answer.status, answer.read()


@dataclass(frozen=True)
class Encoded:
    """A vector as JSON, and the search for it."""

    vector: str
    search: bytes


class HttpSession(Session):
    """search() posts what encode() made."""

    def __init__(
        self, dialect: type[HttpEngine], url: str, headers: dict[str, str], search: Search
    ) -> None:
        self.dialect = dialect
        self.path, body = dialect.query(search)
        self.template = json.dumps(body)
        self.clauses = search.clauses
        self.client = Client(url, headers)
        self.client.connect()

    def encode(self, vector: Floats) -> Encoded:
        text = json.dumps(vector.tolist())
        return Encoded(text, filled(self.template, text))

    def search(self, query: Encoded) -> Sequence[int]:
        return self.dialect.rows_of(self.client.call("POST", self.path, query.search))

    def encode_values(self, values: Values) -> bytes:
        """Part of a text in a body of JSON."""
        return json.dumps(self.dialect.where(self.clauses, values))[1:-1].encode()

    def search_where(self, asked: tuple[Encoded, bytes]) -> Sequence[int]:
        query, condition = asked
        body = query.search.replace(CONDITION.encode(), condition)
        return self.dialect.rows_of(self.client.call("POST", self.path, body))

    def ping(self) -> None:
        self.client.call("GET", self.dialect.ping_path, missing_ok=True)

    def read(self, row: int) -> bool:
        return self.client.call("GET", self.dialect.place_of(row), missing_ok=True) is not None

    def find(self, value: int) -> Sequence[int]:
        path, body = self.dialect.condition(value)
        return self.dialect.rows_of(self.client.call("POST", path, body))

    def insert(self, row: int, vector: Encoded, ranks: Ranks) -> None:
        self._send(self.dialect.inserting(row, ranks), vector)

    def update(self, row: int, vector: Encoded, ranks: Ranks) -> None:
        self._send(self.dialect.updating(row, ranks), vector)

    def _send(self, request: Request, vector: Encoded) -> None:
        method, path, body = request
        self.client.call(method, path, filled(json.dumps(body), vector.vector))

    def delete(self, row: int) -> None:
        self.client.call(*self.dialect.deleting(row))

    def close(self) -> None:
        self.client.connection.close()


class HttpEngine(ProcessEngine):
    """A suite's options: url, and api_key when it needs one. Without a url, launch()."""

    parameters = ("m", "ef_construction")
    search_parameters = ("ef_search",)
    ping_path: ClassVar[str] = "/"
    key_header: ClassVar[str] = "Authorization"
    why_not: ClassVar[str] = ""  # why it cannot be started here
    size_of: ClassVar[str] = ""  # what size() counts
    has_conditions: ClassVar[bool] = False  # those of the filter suites: where()

    def start(self, server: Params) -> str:
        self.url = str(self.options.get("url") or "")
        given = bool(self.url)
        if not given:
            self.url = self.launch(server)
        key = str(self.options.get("api_key") or "")
        self.headers = {self.key_header: key} if key else {}
        self.client = Client(self.url, self.headers)
        try:
            return f"{self.adapter} {self.version_of()}"
        except EngineError as error:
            kind = MissingError if given else EngineError
            raise kind(f"{self.url.split('@')[-1]} does not answer: {error}") from error

    def launch(self, server: Params) -> str:
        """Start a server of our own; its URL."""
        why = f"{self.why_not}; " if self.why_not else ""
        raise MissingError(f"{why}needs the url of a running {self.adapter} (option url)")

    def stop(self) -> None:
        if hasattr(self, "client"):
            self.client.connection.close()
        super().stop()

    def alive(self) -> bool:
        return self.process is None or super().alive()

    def version_of(self) -> str:
        raise NotImplementedError

    def load(self, data: Data) -> float:
        self.data = data
        return 0.0

    # The dialect. These are static: sessions of other processes have them by the class.

    @staticmethod
    def query(search: Search) -> tuple[str, Any]:
        """Path and body of a search for VECTOR, under CONDITION if it has clauses."""
        raise NotImplementedError

    @staticmethod
    def where(clauses: Sequence[Clause], values: Values) -> str:
        """What goes in place of CONDITION."""
        raise NotImplementedError

    @staticmethod
    def condition(value: int) -> tuple[str, Any]:
        """Path and body of a search for the rows whose any_rank is this."""
        raise NotImplementedError

    @staticmethod
    def rows_of(answer: Any) -> list[int]:
        """The rows of the answer to either."""
        raise NotImplementedError

    @staticmethod
    def place_of(row: int) -> str:
        """The path of a row."""
        raise NotImplementedError

    @staticmethod
    def inserting(row: int, ranks: Ranks) -> Request:
        """With VECTOR in the body."""
        raise NotImplementedError

    @classmethod
    def updating(cls, row: int, ranks: Ranks) -> Request:
        return cls.inserting(row, ranks)

    @classmethod
    def deleting(cls, row: int) -> Request:
        return "DELETE", cls.place_of(row), None

    # Indexes.

    def create(self, params: Params) -> None:
        """A collection without rows, in place of the one before."""
        raise NotImplementedError

    def batch(self, start: int, stop: int) -> Request:
        """What puts rows start to stop - 1."""
        raise NotImplementedError

    def check(self, answer: Any) -> None:
        """EngineError when a batch was not taken whole."""

    def wait(self) -> None:
        """Until all rows are indexed."""

    def size(self) -> int:
        """Bytes, 0 when it does not say."""
        return 0

    def row(self, i: int) -> tuple[list[float], dict[str, int]]:
        return self.data.dataset.train[i].tolist(), columns_of(self.data.ranks(i))

    def build(self, params: Params) -> Built:
        """Seconds are the server's: a batch is made ready before its time is taken."""
        self.create(params)
        rows, spent = self.data.dataset.rows, 0
        for start in range(0, rows, BATCH):
            method, path, body = self.batch(start, min(rows, start + BATCH))
            ready = body if isinstance(body, str) else json.dumps(body).encode()
            began = time.perf_counter_ns()
            answer = self.client.call(method, path, ready)
            spent += time.perf_counter_ns() - began
            self.check(answer)
        began = time.perf_counter_ns()
        self.wait()
        spent += time.perf_counter_ns() - began
        notes = (f"size: {self.size_of}",) if self.size_of else ()
        return Built(spent / 1e9, self.size(), mode="insert", notes=notes)

    def empty(self, params: Params) -> None:
        self.create(params)

    def sessions(self, search: Search) -> SessionFactory:
        if search.clauses and not self.has_conditions:
            raise UnsupportedError("has no conditions of the filter suites")
        return partial(HttpSession, type(self), self.url, self.headers, search)
