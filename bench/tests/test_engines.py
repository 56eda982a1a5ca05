"""Adapters: those in process against the truth, those by URL against a server that records."""

from __future__ import annotations

import http.server
import json
import os
import re
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

from quiver_bench import engines, recall, truth
from quiver_bench.conditions import Clause
from quiver_bench.datasets import Dataset
from quiver_bench.engines import ADAPTERS
from quiver_bench.engines.annlite_ import AnnLiteSession, Pipe
from quiver_bench.engines.base import ANY, Data, Engine, Search, Where
from quiver_bench.engines.http import Client, HttpEngine
from quiver_bench.engines.opensearch import find_java
from quiver_bench.engines.pg_engines import PgEngine
from quiver_bench.engines.postgres import Cluster, Installation, copy_blocks, encode
from quiver_bench.engines.redis_vset import Lift
from quiver_bench.errors import EngineError, MeasureError, MissingError, UnsupportedError

from conftest import make_dataset  # isort: skip

IN_PROCESS = ("numpy", "hnswlib", "faiss", "usearch", "qdrant-edge", "sqlite-vec")


def started(name: str, tmp_path: Path, dataset: Dataset) -> Engine:
    engine = engines.adapter(name)(name, {}, tmp_path / "place", None)
    try:
        engine.start({})
        engine.load(Data.of(dataset, 1))
    except (MissingError, UnsupportedError) as error:
        pytest.skip(str(error))
    return engine


def found_by(engine: Engine, search: Search) -> dict[int, list[int]]:
    session = engine.sessions(search)()
    try:
        queries = engine.data.dataset.queries
        return {i: list(session.search(session.encode(q))) for i, q in enumerate(queries)}
    finally:
        session.close()


@pytest.mark.parametrize("name", IN_PROCESS)
def test_finds_the_neighbors(name: str, tmp_path: Path, dataset: Dataset) -> None:
    engine = started(name, tmp_path, dataset)
    try:
        engine.build({"m": 16, "ef_construction": 100})
        exact = recall.Truth(*truth.nearest(dataset.train, dataset.queries, 10, dataset.metric))
        answers = found_by(engine, Search(10, {"ef_search": 200}))
        # Graphs of inner products are weaker: their metric is none.
        least = 0.8 if dataset.metric == "ip" else 0.98
        assert (
            recall.recalls(answers.items(), dataset.train, dataset.queries, exact, dataset.metric)[
                "recall"
            ]
            > least
        )
    finally:
        engine.stop()


@pytest.mark.parametrize("name", IN_PROCESS)
def test_conditions_and_changes(name: str, tmp_path: Path) -> None:
    dataset = make_dataset()
    engine = started(name, tmp_path, dataset)
    try:
        engine.build({"m": 16, "ef_construction": 100})
        where = Where(ANY, 60)
        try:
            answers = found_by(engine, Search(10, {"ef_search": 300}, where))
        except UnsupportedError:
            answers = {}
        for ids in answers.values():
            assert all(engine.data.any_rank[i] < 60 for i in ids)
        session = engine.sessions(Search(3, {"ef_search": 100}))()
        try:
            vector = session.encode(dataset.queries[0])
            session.insert(1000, vector, (5, 5))
            assert 1000 in list(session.search(vector))
            session.delete(1000)
            assert 1000 not in list(session.search(vector))
            assert session.read(7)
        except UnsupportedError:
            assert name == "faiss"
        finally:
            session.close()
    finally:
        engine.stop()


def test_numpy_keeps_changed_rows_as_it_loads_them(tmp_path: Path, dataset: Dataset) -> None:
    """Their vectors have all lengths."""
    lengths = np.linspace(0.1, 10, dataset.rows, dtype=np.float32)[:, None]
    dataset = replace(dataset, train=dataset.train * lengths)
    engine = started("numpy", tmp_path, dataset)
    exact, _ = truth.nearest(dataset.train, dataset.queries, 10, dataset.metric)
    session = engine.sessions(Search(10))()
    for row in range(0, dataset.rows, 2):
        vector = session.encode(dataset.train[row])
        session.update(row, vector, (0, 0))
        session.insert(row + dataset.rows, vector, (0, 0))
        session.delete(row)
    found = np.array(list(found_by(engine, Search(10)).values()))
    assert (found % dataset.rows == exact).mean() > 0.99


def test_numpy_is_exact_far_from_the_origin(tmp_path: Path) -> None:
    near = make_dataset()
    dataset = replace(
        near, train=near.train + np.float32(1e4), queries=near.queries + np.float32(1e4)
    )
    exact, _ = truth.nearest(dataset.train, dataset.queries, 10, dataset.metric)
    engine = started("numpy", tmp_path, dataset)
    found = np.array(list(found_by(engine, Search(10)).values()))
    assert (found == exact).mean() > 0.99


def test_qdrant_edge_says_what_its_build_was_for(tmp_path: Path) -> None:
    engine = started("qdrant-edge", tmp_path, make_dataset())
    try:
        said = [engine.build({"m": 8, **more}).notes[-1] for more in ({}, {"payload_m": 0})]
    finally:
        engine.stop()
    threads = os.cpu_count()
    assert said == [f"build: with links for 2 columns, by {threads} threads",
                    f"build: without links for columns, by {threads} threads"]  # fmt: skip


def test_an_unknown_adapter_is_named() -> None:
    for name in ADAPTERS:
        assert engines.adapter(name).adapter == name


def test_binary_copy_is_what_the_server_reads() -> None:
    vectors = np.array([[1.5, -2.0]], dtype=np.float32)
    whole = b"".join(copy_blocks(vectors, np.array([7], dtype=np.int32)))
    row = (
        b"\0\2"
        + b"\0\0\0\4"
        + b"\0\0\0\7"
        + b"\0\0\0\x0c"
        + b"\0\2\0\0"
        + vectors.astype(">f4").tobytes()
    )
    assert whole == b"PGCOPY\n\xff\r\n\0" + b"\0" * 8 + row + b"\xff\xff"
    assert encode(vectors[0], "halfvec").data == b"\0\2\0\0" + vectors.astype(">f2").tobytes()


@pytest.mark.parametrize("metric", ["euclidean", "ip"])
def test_redis_orders_lifted_vectors_as_the_metric_does(metric: str) -> None:
    dataset = make_dataset(metric)
    lift = Lift.of(dataset.train, metric)
    rows = lift.rows(dataset.train)
    assert np.linalg.norm(rows, axis=1) == pytest.approx(np.linalg.norm(rows[0]), rel=1e-5)
    wanted, _ = truth.nearest(dataset.train, dataset.queries, 10, metric)
    lifted = np.stack([lift.query(q) for q in dataset.queries])
    found, _ = truth.nearest(rows, lifted, 10, "angular")
    assert (found == wanted).mean() > 0.99


# By URL.


class Recorder(http.server.BaseHTTPRequestHandler):
    """Keeps what it is sent and answers from a list."""

    sent: ClassVar[list[tuple[str, str, Any]]] = []
    answers: ClassVar[dict[str, Any]] = {}
    missing: ClassVar[bool] = False  # it has nothing
    close: ClassVar[bool] = False  # it closes the connection when it has answered
    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        lines = [json.loads(line) for line in data.splitlines()] if data else []
        self.sent.append((self.command, self.path, lines[0] if len(lines) == 1 else lines))
        found = next((v for k, v in self.answers.items() if self.path.startswith(k)), {})
        body = json.dumps(found).encode()
        self.send_response(404 if self.missing else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = self.close

    do_GET = do_POST = do_PUT = do_DELETE = answer  # noqa: N815

    def log_message(self, *_: Any) -> None:
        return


@pytest.fixture
def url() -> Iterator[str]:
    Recorder.sent, Recorder.missing, Recorder.close = [], False, False
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Recorder)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


INFO = {"result": {"status": "green", "indexed_vectors_count": 300}}
SCHEMA = {"vectorIndexConfig": {"ef": 40}}
# What they answer, and the path of a search.
HTTP = {
    "qdrant": (
        {"/collections/quiver_bench/points/query": {"result": {"points": [{"id": 4}]}},
         "/collections/quiver_bench/points/scroll": {"result": {"points": [{"id": 4}]}},
         "/collections/quiver_bench": INFO, "/": {"version": "1.2.3"}},
        "/collections/quiver_bench/points/query",
    ),
    "opensearch": (
        {"/quiver_bench/_search": {"hits": {"hits": [{"_id": "4"}]}},
         "/quiver_bench/_stats": {"_all": {"primaries": {"store": {"size_in_bytes": 99}}}},
         "/quiver_bench": {"errors": False}, "/": {"version": {"number": "1.2.3"}}},
        "/quiver_bench/_search",
    ),
    "weaviate": (
        {"/v1/graphql": {"data": {"Get": {"QuiverBench": [{"row": 4}]}}},
         "/v1/schema/QuiverBench": SCHEMA, "/v1/meta": {"version": "1.2.3"}},
        "/v1/graphql",
    ),
}  # fmt: skip
HTTP["elasticsearch"] = HTTP["opensearch"]
# A row, its ranks and its numbers, as its update is sent.
UPDATED = {
    "qdrant": {"points": [{"id": 4, "vector": [1, 2], "payload": {"any_rank": 5, "near_rank": 6}}]},
    "opensearch": {"embedding": [1, 2], "any_rank": 5, "near_rank": 6},
    "weaviate": {
        "class": "QuiverBench", "id": "00000000-0000-0000-0000-000000000005", "vector": [1, 2],
        "properties": {"row": 4, "any_rank": 5, "near_rank": 6},
    },
}  # fmt: skip
UPDATED["elasticsearch"] = UPDATED["opensearch"]
DELETED: dict[str, tuple[str, str, Any]] = {
    "qdrant": ("POST", "/collections/quiver_bench/points/delete?wait=true", {"points": [4]}),
    "opensearch": ("DELETE", "/quiver_bench/_doc/4", []),
    "weaviate": ("DELETE", "/v1/objects/QuiverBench/00000000-0000-0000-0000-000000000005", []),
}
DELETED["elasticsearch"] = DELETED["opensearch"]


@pytest.mark.parametrize("name", list(HTTP))
def test_http_adapters_send_rows_and_read_answers(name: str, url: str, tmp_path: Path) -> None:
    Recorder.answers, path = HTTP[name]
    engine = engines.adapter(name)(name, {"url": url}, tmp_path, None)
    assert isinstance(engine, HttpEngine)
    assert engine.start({}) == f"{name} 1.2.3"
    # What was tried with a real server (test_servers.py) says nothing of it.
    assert ("not run" in engine.label) == (name in ("qdrant", "elasticsearch"))
    assert "stands in" not in engine.label
    dataset = make_dataset()
    engine.load(Data.of(dataset, 1))
    engine.build({"m": 8, "ef_construction": 50})
    text = json.dumps(Recorder.sent)
    assert text.count("any_rank") >= dataset.rows
    session = engine.sessions(Search(10, {}, Where(ANY, 60)))()
    try:
        assert list(session.search(session.encode(dataset.queries[0]))) == [4]
        method, asked, body = Recorder.sent[-1]
        assert (method, asked) == ("POST", path)
        sent = json.dumps(body)
        assert "any_rank" in sent
        assert "60" in sent
        assert json.dumps(dataset.queries[0].tolist()) in sent
        assert list(session.find(7)) == [4]
        assert "7" in json.dumps(Recorder.sent[-1][2])
        session.update(4, session.encode(np.array([1, 2])), (5, 6))
        assert Recorder.sent[-1][2] == UPDATED[name]
        session.insert(4, session.encode(np.array([1, 2])), (5, 6))
        assert Recorder.sent[-1][2] == UPDATED[name]
        assert session.read(4)
        Recorder.missing = True
        assert not session.read(4)
        Recorder.missing = False
        session.delete(4)
        assert Recorder.sent[-1] == DELETED[name]
    finally:
        session.close()
        engine.stop()


def test_conditions_as_weaviate_is_sent_them(url: str, tmp_path: Path) -> None:
    Recorder.answers, _ = HTTP["weaviate"]
    engine = engines.adapter("weaviate")("weaviate", {"url": url}, tmp_path, None)
    engine.start({})
    engine.load(Data.of(make_dataset(), 1).with_columns(1))
    engine.build({})
    assert engine.data.columns is not None
    owner = engine.data.columns.numbers["owner"][0]
    batches = [body for _, path, body in Recorder.sent if path == "/v1/batch/objects"]
    row = batches[-1]["objects"][0]["properties"]  # after those of owners
    assert row["ownerOfRow"][0]["beacon"].endswith(f"QuiverBenchOwner/{uuid.UUID(int=owner + 1)}")
    assert row["tags"] == engine.data.columns.bags["tags"].of(0)
    clauses = (Clause("owner", "grade"), Clause("all", "words"), Clause("all", "tags"),
               Clause("between", "value"))  # fmt: skip
    session = engine.sessions(Search(10, {}, clauses=clauses))()
    try:
        query = session.encode(np.array([1, 2]))
        for values in (((7,), (1, 2), (3, 4), (5, 6)), ((8,), (1,), (9,), (5, 6))):
            assert list(session.search_where((query, session.encode_values(values)))) == [4]
        first, second = (sent[2]["query"] for sent in Recorder.sent[-2:])
        assert first == (
            "{ Get { QuiverBench(limit: 10, nearVector: {vector: [1, 2]}, where: {operator: And,"
            ' operands: [{path: ["ownerOfRow", "QuiverBenchOwner", "grade"], operator: LessThan,'
            ' valueInt: 7}, {path: ["words"], operator: ContainsAll, valueText: ["w1", "w2"]},'
            ' {path: ["tags"], operator: ContainsAll, valueInt: [3, 4]}, {path: ["value"],'
            ' operator: GreaterThanEqual, valueInt: 5}, {path: ["value"], operator: LessThan,'
            " valueInt: 6}]}) { row } } }"
        )
        assert "valueInt: 8}" in second
        with pytest.raises(UnsupportedError, match="does not count"):
            session.count((query, session.encode_values(values)))
    finally:
        session.close()
        engine.stop()


def test_servers_without_conditions_of_the_suites(url: str, tmp_path: Path) -> None:
    Recorder.answers, _ = HTTP["qdrant"]
    engine = engines.adapter("qdrant")("qdrant", {"url": url}, tmp_path, None)
    engine.start({})
    with pytest.raises(UnsupportedError, match="no conditions of the filter suites"):
        engine.sessions(Search(10, {}, clauses=(Clause("equal", "label"),)))
    engine.stop()


def test_an_idle_connection_that_the_server_closed_is_opened_again(url: str) -> None:
    Recorder.answers = {"/": {"here": 1}}
    client = Client(url, {})
    try:
        for _ in range(2):
            Recorder.close = True  # after this answer, and without saying so
            assert client.call("GET", "/") == {"here": 1}
    finally:
        client.connection.close()


def test_a_row_that_weaviate_does_not_take_is_an_error(url: str, tmp_path: Path) -> None:
    refused = [{"result": {"errors": {"error": [{"message": "no vector"}]}}}]
    Recorder.answers = {"/v1/batch": refused, "/v1/meta": {"version": "1"}}
    engine = engines.adapter("weaviate")("weaviate", {"url": url}, tmp_path, None)
    assert isinstance(engine, HttpEngine)
    engine.start({})
    engine.load(Data.of(make_dataset(), 1))
    try:
        with pytest.raises(EngineError, match="no vector"):
            engine.build({})
    finally:
        engine.stop()


def test_engines_in_one_database_have_tables_of_their_own(tmp_path: Path) -> None:
    both = [engines.adapter("pgvector")(n, {"url": "x"}, tmp_path, None) for n in ("a-1", "b")]
    assert isinstance(both[0], PgEngine)
    assert isinstance(both[1], PgEngine)
    assert both[0].table == "quiver_bench_a_1"
    assert both[1].table == "quiver_bench_b"


def test_options_of_vectorchord_s_indexes(tmp_path: Path) -> None:
    def created(index: str, params: dict[str, Any]) -> str:
        engine = engines.adapter("vectorchord")("v", {"url": "x", "index": index}, tmp_path, None)
        assert isinstance(engine, PgEngine)
        engine.data = Data.of(make_dataset(), 1)
        return engine.create_index(params).as_string(None).partition(" USING ")[2]

    assert created("vchordg", {}) == '"vchordg" (embedding "vector_l2_ops")'
    assert created("vchordg", {"m": 16, "ef_construction": 64}).endswith(
        " WITH (options = 'm = 16\nef_construction = 64')"
    )
    assert "lists = [10]\nspherical_centroids = false" in created("vchordrq", {})


def test_data_of_another_postgresql_are_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster(Installation(tmp_path, tmp_path, "postgres"), "a")
    ran: list[str] = []
    version = [""]

    def run(_: Cluster, program: str, *arguments: str) -> str:
        ran.append(program)
        if program == "initdb":
            (cluster.data / "PG_VERSION").write_text(version[0][:2] + "\n")
        return f"postgres (PostgreSQL) {version[0]}\n" if program == "postgres" else ""

    monkeypatch.setattr(Cluster, "run", run)
    monkeypatch.setattr(Cluster, "_give", lambda *_: None)
    try:
        for number, kept in (("15.20 (Debian)", False), ("15.21", True), ("19rc1", False)):
            version[0] = number
            cluster.launch({})
            assert (cluster.data / "rows").exists() == kept
            (cluster.data / "rows").mkdir(exist_ok=True)
            assert ran.pop() == "pg_ctl"
    finally:
        cluster.stop()


def test_a_server_that_does_not_stop_is_stopped_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster(Installation(tmp_path, tmp_path, "postgres"), "a")
    cluster.socket = tmp_path / "quiver-bench-socket"
    cluster.socket.mkdir()
    ran: list[str] = []
    pid: list[int | None] = [7]

    def run(_: Cluster, *arguments: str) -> str:
        ran.append(arguments[arguments.index("-m") + 1])
        if ran[-1] == "fast":
            raise EngineError("pg_ctl failed: server does not shut down")
        pid[0] = None
        return ""

    monkeypatch.setattr(Cluster, "run", run)
    monkeypatch.setattr(Cluster, "pid", lambda _: pid[0])
    cluster.stop()
    assert ran == ["fast", "immediate"]
    assert not cluster.socket.exists()


def test_nothing_is_left_of_a_server_that_cannot_be_stopped(tmp_path: Path) -> None:
    engine: Any = engines.adapter("pgvector")("p", {}, tmp_path, None)
    done: list[str] = []

    def halt() -> None:
        raise EngineError("pg_ctl failed")

    engine.cluster = SimpleNamespace(halt=halt, stop=halt)
    engine.limit = SimpleNamespace(leave=lambda: done.append("left"))
    with pytest.raises(EngineError):
        engine.limit_memory(0, 0)
    with pytest.raises(EngineError):
        engine.stop()
    assert done == ["left", "left"]


class Asked:
    """A connection to a database with one extension."""

    def __init__(self, answers: dict[str, str]) -> None:
        self.answers = answers

    def execute(self, statement: bytes, values: object) -> Any:
        name = next(name for name in self.answers if f"SELECT {name}".encode() in statement)
        return SimpleNamespace(fetchone=lambda: (self.answers[name],))


@pytest.mark.parametrize("path", ["$libdir/vchord-1.1", "vchord-1.1"])
def test_two_builds_of_a_version_are_two_versions(path: str, tmp_path: Path) -> None:
    """The path is $libdir/NAME or, as VectorChord's control file has it, the name alone."""
    db: Any = Asked({"extversion": "1.1.1", "probin": path, "setting": str(tmp_path)})
    engine: Any = engines.adapter("vectorchord")("vectorchord", {}, tmp_path, None)
    assert engine.version_of(db) == "1.1.1, pgvector 1.1.1"  # by url
    engine.cluster = object()
    assert engine.version_of(db) == "1.1.1, pgvector 1.1.1"  # no library that can be read
    found = set()
    for build in (b"one", b"two"):
        (tmp_path / "vchord-1.1.so").write_bytes(build)
        found.add(engine.version_of(db))
    assert len(found) == 2
    assert all(re.fullmatch(r"1\.1\.1 (\w{8}), pgvector 1\.1\.1 \1", text) for text in found)


class Server:
    """A connection to a server that loses the number of rows when an index is built."""

    def __init__(self, counted: bool) -> None:
        self.counted, self.rows = counted, 300

    def add_notice_handler(self, _: object) -> None:
        return

    def execute(self, statement: Any, _: object = None) -> Any:
        text = str(statement if isinstance(statement, str | bytes) else statement.as_string(None))
        if text.startswith("CREATE INDEX"):
            self.rows = 0
        if text.startswith("VACUUM (ANALYZE)") and self.counted:
            self.rows = 300
        found = {"SELECT reltuples": self.rows, "SELECT pg_relation_size": 8192}
        answer = next((value for head, value in found.items() if head in text), 0)
        return SimpleNamespace(fetchone=lambda: (answer,))


def test_the_planner_knows_the_number_of_rows_after_a_build(tmp_path: Path) -> None:
    engine: Any = engines.adapter("vectorchord")("v", {"url": "x"}, tmp_path, None)
    engine.data = Data.of(make_dataset(), 1)
    server = Server(counted=True)
    engine.connect = lambda: nullcontext(server)
    assert engine.build({}).index_bytes == 8192
    assert server.rows == 300
    server = Server(counted=False)
    with pytest.raises(MeasureError, match="one of 0 rows of 300"):
        engine.build({})


def test_extension_that_nobody_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, variable in (("vectorchord", "VECTORCHORD"), ("pgvectorscale", "PGVECTORSCALE")):
        for kind in ("SOURCE", "PREFIX"):
            monkeypatch.delenv(f"{variable}_{kind}", raising=False)
        with pytest.raises(MissingError, match=f"needs {variable}_SOURCE, a checkout"):
            engines.adapter(name)("v", {}, tmp_path, None).start({})


def test_sources_of_another_extension(tmp_path: Path) -> None:
    (tmp_path / "Cargo.toml").write_text('[package]\nname = "something"\n')
    script = Path(__file__).parents[2] / "tools" / "rust_extension"
    made = subprocess.run(
        [script, tmp_path, "pg_config", tmp_path / "work", tmp_path / "out"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert made.returncode == 1
    assert "neither a checkout of VectorChord nor one of pgvectorscale" in made.stderr


def test_http_adapter_without_a_server(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="needs the url"):
        engines.adapter("qdrant")("q", {}, tmp_path, None).start({})
    with pytest.raises(MissingError, match="no package registry has its distribution"):
        engines.adapter("elasticsearch")("e", {}, tmp_path, None).start({})
    with pytest.raises(MissingError, match="does not answer"):
        engines.adapter("qdrant")("q", {"url": "http://127.0.0.1:9"}, tmp_path, None).start({})


def test_server_that_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("WEAVIATE_SERVER", raising=False)
    weaviate = engines.adapter("weaviate")("w", {}, tmp_path / "place", None)
    with pytest.raises(MissingError, match=r"\(WEAVIATE_SERVER\), or go to build v1"):
        weaviate.start({})
    monkeypatch.setenv("WEAVIATE_SERVER", "/nowhere")
    with pytest.raises(MissingError, match="there is no program /nowhere"):
        weaviate.start({})
    with pytest.raises(MissingError, match="or a checkout of Quiver"):
        engines.adapter("opensearch")("o", {}, tmp_path / "place", None).start({})


def test_the_newest_java_is_taken(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="a JDK 21 or later"):
        find_java([])
    for version in ("17.0.1", "25", "21.0.2"):
        (tmp_path / version / "bin").mkdir(parents=True)
        (tmp_path / version / "bin" / "javac").touch()
        (tmp_path / version / "release").write_text(f'JAVA_VERSION="{version}"\n')
    with pytest.raises(MissingError, match="a JDK 21 or later"):
        find_java([tmp_path / "17.0.1"])
    (tmp_path / "26").mkdir()  # without a compiler
    (tmp_path / "26" / "release").write_text('JAVA_VERSION="26"\n')
    assert find_java(tmp_path.iterdir()) == tmp_path / "25"


def test_annlite_that_finds_too_few_says_so() -> None:
    class Few(Pipe):
        def __init__(self) -> None:
            return

        def ask(self, do: str, *_: Any, **__: Any) -> Any:
            raise EngineError(
                "AnnLite: RuntimeError: Cannot return the results in a contigious 2D array."
            )

    session = AnnLiteSession(Few(), Search(10, {}, Where(ANY, 60)))
    with pytest.raises(EngineError, match=r"found fewer than 10 rows that pass, .*Runtime"):
        session.search(b"")


def test_annlite_s_process_that_ends(tmp_path: Path) -> None:
    """Here that is because AnnLite is not in this environment; it says so."""
    pipe = Pipe(Path(sys.executable), tmp_path / "log")
    try:
        with pytest.raises(EngineError, match="No module named 'annlite'"):
            pipe.ask("version")
    finally:
        pipe.close()
