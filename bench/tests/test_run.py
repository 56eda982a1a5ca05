"""Whole runs on engines that need nothing: resume, failures, every workload, the report."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from quiver_bench import cli, compare, config, datasets, environment, like, report, results
from quiver_bench.config import narrowed, parse
from quiver_bench.engines import numpy_exact
from quiver_bench.engines.base import Counted
from quiver_bench.errors import ConfigError, DataError, EngineError, MeasureError, MissingError
from quiver_bench.records import FAILED, MISSING, OK, UNSUPPORTED, Point, Result
from quiver_bench.results import Store
from quiver_bench.run import Runner
from quiver_bench.servers import only_run
from quiver_bench.views import rows_of, select

from conftest import make_dataset  # isort: skip

SUITE = """
name: small
reps: 3
warm_seconds: 0
longest: 5
datasets:
  - {name: small-8-euclidean, rows: 250, queries: 15}
engines:
  - {id: "null", adapter: "null"}
  - {id: exact, adapter: numpy}
workloads:
  - {kind: query, clients: [1]}
  - {kind: filter, selectivity: [0.1], queries: 5}
  - {kind: crud, n: 20}
  - {kind: churn, rounds: 2, share: 0.3}
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    dataset = make_dataset()
    folder = tmp_path / "home" / "download"
    folder.mkdir(parents=True)
    with h5py.File(folder / "small-8-euclidean.hdf5", "w") as file:
        file["train"], file["test"] = dataset.train, dataset.queries
        file.attrs["distance"] = "euclidean"
    return tmp_path / "home"


def run(home: Path, text: str = SUITE) -> list[Result]:
    folder = home / "results"
    Runner(parse(text, "test"), Store(folder), home, None).run()
    return results.read(folder)[0]


def test_all_workloads(home: Path) -> None:
    found = run(home)
    kinds = {(r.point.engine, r.point.workload): r.status for r in found}
    assert kinds["exact", "query"] == kinds["exact", "filter"] == kinds["exact", "crud"] == OK
    assert kinds["null", "filter"] == UNSUPPORTED
    exact = [r for r in found if r.point.engine == "exact" and r.status == OK]
    for result in exact:
        if "recall" in result.metrics:
            assert result.metrics["recall"] == 1.0, result.point
            assert result.metrics.get("wrong_results", 0) == 0
    reps = [r.rep for r in exact if r.point.workload == "query"]
    assert sorted(reps) == [0, 1, 2]
    churn = {r.point.load["round"]: r for r in exact if r.point.workload == "churn"}
    assert set(churn) == {0, 1, 2}
    crud = next(r for r in exact if r.point.workload == "crud")
    assert crud.metrics["delete_count"] == crud.metrics["condition_count"] == 20
    raws = {p.stem for p in (home / "results" / "raw").iterdir()}
    assert f"{crud.point.id}-0" in raws


def test_an_engine_that_cannot_insert_keeps_its_rows(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    emptied: list[Any] = []
    monkeypatch.setattr(numpy_exact.NumpyExact, "indexes_inserts", False)
    monkeypatch.setattr(numpy_exact.NumpyExact, "empty", lambda _, params: emptied.append(params))
    text = (
        SUITE.split("workloads:")[0] + "workloads:\n  - {kind: ingest, clients: [1], seconds: 1}\n"
    )
    exact = [r for r in run(home, text) if r.point.engine == "exact"]
    assert [r.status for r in exact if r.point.workload == "ingest"] == [UNSUPPORTED]
    assert emptied == []


def test_repetitions_are_interleaved(home: Path) -> None:
    lines = [r for r in run(home) if r.point.workload == "query"]
    assert [(r.rep, r.point.engine) for r in lines] == [
        (rep, engine) for rep in range(3) for engine in ("null", "exact")
    ]


def test_an_interrupted_run_goes_on(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = numpy_exact.NumpySession.search
    asked = [0]

    def interrupted(self: Any, query: Any) -> Sequence[int]:
        asked[0] += 1
        if asked[0] > 20:
            raise KeyboardInterrupt
        return whole(self, query)

    monkeypatch.setattr(numpy_exact.NumpySession, "search", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(home)
    before = results.read(home / "results")[0]
    assert sum(r.status == OK for r in before) > 0
    path = home / "results" / results.FILE
    path.write_text(path.read_text() + '{"kind": "resu')  # a line that the crash cut off
    monkeypatch.setattr(numpy_exact.NumpySession, "search", whole)
    after = run(home)
    times = {(r.point.id, r.rep): r.started for r in before if r.status == OK}
    kept = {(r.point.id, r.rep): r.started for r in after}
    assert all(kept[key] == started for key, started in times.items())
    assert sum(r.point.workload == "query" and r.status == OK for r in after) == 6
    lines = path.read_text().splitlines()
    assert sum('"kind": "result"' in line and '"workload": "query"' in line for line in lines) == 6


def test_a_server_that_dies_is_reported_and_others_go_on(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def search(self: Any, query: Any) -> Sequence[int]:
        raise EngineError("connection reset")

    monkeypatch.setattr(numpy_exact.NumpySession, "search", search)
    monkeypatch.setattr(numpy_exact.NumpyExact, "alive", lambda _: False)
    found = run(home)
    failed = [r for r in found if r.point.engine == "exact" and r.point.workload != "build"]
    assert failed
    assert all(r.status == FAILED and "the server is gone" in r.reason for r in failed)
    assert all(
        r.status == OK for r in found if r.point.workload == "query" and r.point.engine == "null"
    )
    text = report.make([home / "results"], report.Options(), home / "page.html")
    assert "failed: the server is gone: connection reset" in text
    assert max(len(line) for line in text.splitlines()) < 300
    again = Runner(parse(SUITE, "test"), Store(home / "results"), home, None)
    failures = again.run()
    now = results.read(home / "results")[0]
    assert failures == sum(r.status == FAILED for r in now)


def test_a_missing_engine_is_one_line(home: Path, monkeypatch: pytest.MonkeyPatch,
                                      capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    def start(self: Any, server: Any) -> str:
        raise MissingError("needs a thing: pip install thing")

    monkeypatch.setattr(numpy_exact.NumpyExact, "start", start)
    found = run(home)
    lines = [one for one in capsys.readouterr().out.splitlines() if "needs a thing" in one]
    assert lines == ["  exact: missing: needs a thing: pip install thing"]
    assert {r.status for r in found if r.point.engine == "exact"} == {MISSING}


def test_every_point_without_numbers_has_its_whole_reason(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = "the server said no, at length: " + "why " * 40 + "end"

    def search(self: Any, query: Any) -> Sequence[int]:
        raise EngineError(whole)

    monkeypatch.setattr(numpy_exact.NumpySession, "search", search)
    found = run(home)
    text = report.make([home / "results"], report.Options(), home / "page.html")
    table = text.split("What has no numbers, and why")[1].split("\n\n")[1].splitlines()[1:]
    for status in (FAILED, UNSUPPORTED):
        bad = {r.point.id: (r.point.engine, r.reason) for r in found if r.status == status}
        said = [line.split(maxsplit=3)[:3] for line in table if line.split()[1] == status]
        assert sum(int(points) for _, _, points in said) == len(bad) > 0
        for engine, reason in set(bad.values()):
            assert any(line.split()[0] == engine and line.endswith(reason) for line in table)
    assert any(line.endswith(whole) for line in table)
    assert "What has no numbers" in (home / "page.html").read_text()


def test_report_compare_and_gate(home: Path) -> None:
    run(home)
    page = home / "page.html"
    text = report.make([home / "results"], report.Options(), page)
    assert "recall@10 >= 0.99, one client" in text
    markup = page.read_text()
    assert markup.count("<svg") >= 2
    assert "http://" not in markup.replace("http://www.w3.org", "")  # nothing from elsewhere
    for kind in ("katz", "callaghan", "docarray", "edb"):
        assert "exact" in report.make([home / "results"], report.Options(like=kind), page)

    assert "null" not in text.split("every search")[0].split("loading and building")[1]

    rows = compare.rows(home / "results")
    _, worse = compare.compare(rows, rows, compare.LIMITS)
    assert worse == []
    slower = home / "slower"
    slower.mkdir()
    lines = []
    for line in (home / "results" / results.FILE).read_text().splitlines():
        record = json.loads(line)
        if (
            record["kind"] == "result"
            and record["point"]["engine"] == "exact"
            and "qps" in record["metrics"]
        ):
            record["metrics"]["qps"] /= 1e9  # beyond what a busy machine does to one repetition
        lines.append(json.dumps(record))
    (slower / results.FILE).write_text("\n".join(lines) + "\n")
    _, worse = compare.compare(rows, compare.rows(slower), compare.LIMITS)
    assert any(line.startswith("exact, query: qps") for line in worse)
    _, worse = compare.compare(rows, [r for r in rows if r.engine != "exact"], compare.LIMITS)
    assert any("not measured" in line for line in worse)


def test_the_metric_is_printed(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(home, SUITE.split("  - {kind: filter")[0])
    read = next(line for line in capsys.readouterr().out.splitlines() if "  read " in line)
    assert read.endswith("(euclidean, 8 dimensions)")
    text = report.make([home / "results"], report.Options(), home / "page.html")
    said = "small-8-euclidean (250 rows): euclidean, 8 dimensions"
    assert said in text
    assert said in (home / "page.html").read_text()


def test_two_runs_do_not_share_servers(tmp_path: Path) -> None:
    second = pytest.raises(EngineError, match="another run")
    with only_run(tmp_path), second, only_run(tmp_path):
        pass
    with only_run(tmp_path):
        pass


def test_noise_is_no_regression() -> None:
    def row(low: float, middle: float, high: float) -> Any:
        point = Point("query", "e", "numpy", "1", "d", 10, 2, "euclidean", 10)
        found = [
            Result(point, i, OK, metrics={"qps": q}) for i, q in enumerate((low, middle, high))
        ]
        return rows_of(found)

    before = row(80, 100, 120)
    assert compare.compare(before, row(70, 85, 90), {"qps": 5})[1] == []
    assert len(compare.compare(before, row(60, 70, 79), {"qps": 5})[1]) == 1
    assert compare.compare(before, row(60, 70, 79), {"qps": 50})[1] == []
    _, worse = compare.compare(before, row(60, 70, 79), {"qps": 5})
    assert worse == ["e, query: qps 100 -> 70 (+30.0 %)"]


def test_what_was_measured_once_has_the_noise_of_its_engine() -> None:
    def rows(share: float) -> Any:
        point = Point("query", "e", "numpy", "1", "d", 10, 2, "euclidean", 10)
        tier = point.but(tier="32:96")
        found = [Result(point, i, OK, metrics={"qps": q}) for i, q in enumerate((80, 100, 120))]
        metrics = {"qps": 100 * share, "recall": share}
        return rows_of([*found, Result(tier, 0, OK, metrics=metrics)])

    limits = {"qps": 5, "recall": 0.5}
    worse = compare.compare(rows(1), rows(0.7), limits)[1]  # 80 to 120 and 56 to 84
    assert worse == ["e, query, 32:96 MB: recall 1 -> 0.7 (+30.0 points)"]
    worse = compare.compare(rows(1), rows(0.6), limits)[1]  # 80 to 120 and 48 to 72
    assert worse[0] == "e, query, 32:96 MB: qps 100 -> 60 (+40.0 %)"


def test_conditions_have_names_of_their_own() -> None:
    def rows(qps: float) -> Any:
        point = Point("filter", "e", "numpy", "1", "d", 10, 2, "euclidean", 10, {"m": 16})
        return rows_of(
            Result(
                point.but(load={"selectivity": s, "correlation": "none"}),
                0,
                OK,
                metrics={"qps": qps},
            )
            for s in (0.01, 0.1)
        )

    worse = compare.compare(rows(100), rows(10), {"qps": 5})[1]
    assert [line.partition(": ")[0] for line in worse] == [
        "e (m=16), filter, 1.0% none", "e (m=16), filter, 10.0% none"]  # fmt: skip


def test_medians_and_spread(home: Path) -> None:
    point = Point("query", "e", "numpy", "1", "d", 10, 2, "euclidean", 10)
    found = [
        Result(point, i, OK, metrics={"qps": q, "recall": 1.0}) for i, q in enumerate((9, 10, 14))
    ]
    row = rows_of(found)[0]
    assert (row.get("qps"), row.low["qps"], row.high["qps"], row.reps) == (10, 9, 14, 3)
    assert rows_of(found, best=True)[0].get("qps") == 14
    built = Result(point.but(workload="build"), 0, OK, metrics={"build_s": 2.0, "index_bytes": 5.0})
    joined = select(rows_of([built, *found]), workload="query")[0]
    assert joined.get("build_s") == 2.0


@pytest.mark.parametrize("name", config.names())
def test_suites_are_valid(name: str) -> None:
    suite = config.read(name)
    assert suite.name == name
    for engine in suite.engines:
        assert engine.all_builds()
        assert engine.all_queries()


def test_callaghan_has_the_whole_grid() -> None:
    suite = config.read("callaghan")
    engines = {engine.id: engine for engine in suite.engines}
    assert len(engines["pgvector"].all_builds()) == 19
    assert len(engines["pgvector"].all_queries()) == 9
    assert len(engines["mariadb"].all_builds()) == 9


def test_docarray_has_24_points() -> None:
    engine = next(e for e in config.read("docarray").engines if e.id == "annlite")
    assert len(engine.all_builds()) * len(engine.all_queries()) == 24


def test_impossible_builds_are_left_out() -> None:
    text = SUITE.replace(
        "adapter: numpy}", "adapter: hnswlib, build: {m: [8, 64], ef_construction: [16, 200]}}"
    )
    builds = parse(text, "test").engines[1].all_builds()
    assert [(b["m"], b["ef_construction"]) for b in builds] == [(8, 16), (8, 200), (64, 200)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("reps: 3", "repps: 3"), "repps"),
        (("adapter: numpy", "adapter: nothing"), "no adapter nothing"),
        (("id: exact", 'id: "null"'), "same name"),
        (("id: exact", 'id: "Null"'), "same name"),
        (("id: exact", "id: ../exact"), "pattern"),
        (("engines:", "engines: []\nx:"), "engines: List should have at least 1 item"),
        (("datasets:", "datasets: []\nx:"), "datasets: List should have at least 1 item"),
        (
            (
                "id: exact, adapter: numpy}",
                "id: a, adapter: qdrant, options: {url: x}}\n  - {id: b, adapter: qdrant, options: {url: x}}",
            ),
            "a and b need a server each",
        ),
        (("clients: [1]", "clients: [1], engines: [x]"), "no engines x"),
        (
            ("adapter: numpy", "adapter: numpy, query: {m: 1}"),
            "exact: no parameter m; there are none",
        ),
        (
            ("adapter: numpy", "adapter: quiver, options: {index: hnsw}, build: {M: [4, 64]}"),
            "exact: no parameter M; there are m, ef_construction, lists, bits",
        ),
        (
            ("adapter: numpy", "adapter: quiver, options: {index: hnsw}, query: {efSearch: 4}"),
            "no parameter efSearch; there are ef_search, iterative_scan, max_scan_tuples",
        ),
        (
            ("adapter: numpy", "adapter: pgvector, filter: {probes: 4}"),
            "exact: no parameter probes; there are ef_search",
        ),
        (("adapter: numpy", "adapter: vectorchord, builds: [{lists: 9}, {m: 9}]"), "parameter m;"),
        (("adapter: numpy", "adapter: faiss, query: {probes: 9}"), "no parameter probes"),
        (
            ("adapter: numpy", "adapter: faiss, options: {index: x}"),
            "exact: faiss has indexes hnsw",
        ),
        (("adapter: numpy", "adapter: pgvector, options: {index: x}"), "pgvector has no index x"),
    ],
)
def test_a_bad_suite_says_where(change: tuple[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse(SUITE.replace(*change), "test")


def test_candidates_of_bits_and_threads_of_vectorchord_are_known() -> None:
    for text in (
        "adapter: pgvector, options: {index: ivfflat, type: bit_hamming}, query: {ef_search: 100}",
        "adapter: vectorchord, options: {index: vchordrq}, build: {lists: 9, threads: 2}",
        "adapter: vectorchord, options: {index: vchordg}, build: {m: 9, bits: 2}",
    ):
        assert parse(SUITE.replace("adapter: numpy", text), "test").engines[1].all_builds()


def test_only_some_engines() -> None:
    suite = narrowed(parse(SUITE, "test"), ["exact"], rows=100, reps=1)
    assert [e.id for e in suite.engines] == ["exact"]
    assert (suite.datasets[0].rows, suite.reps) == (100, 1)
    with pytest.raises(ConfigError, match="has no engine mariadb"):
        narrowed(suite, ["mariadb"])


def test_rows_are_back_after_crud(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However few of the deletes there was time for."""
    text = SUITE.replace("{kind: crud, n: 20}", "{kind: crud, n: 20, longest: 0.5}")
    delete = numpy_exact.NumpySession.delete

    def slow(self: Any, row: int) -> None:
        time.sleep(0.1)
        delete(self, row)

    monkeypatch.setattr(numpy_exact.NumpySession, "delete", slow)
    crud = next(
        r for r in run(home, text) if r.point.workload == "crud" and r.point.engine == "exact"
    )
    assert 0 < crud.metrics["delete_count"] < 20
    assert crud.metrics["recall"] == crud.metrics["recall_ids"] == 1.0


def test_a_tier_that_kills_the_server_says_so(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def search(self: Any, query: Any) -> Sequence[int]:
        raise EngineError("server closed the connection")

    text = SUITE.split("  - {kind: filter")[0].replace(
        "clients: [1]", "clients: [1], tiers: ['8:8']"
    )
    monkeypatch.setattr(numpy_exact.NumpySession, "search", search)
    monkeypatch.setattr(numpy_exact.NumpyExact, "limit_memory", lambda *_: "cgroup")
    for killed, reason in (
        (True, "the memory cgroup killed the server: server closed the connection"),
        (False, "server closed the connection"),
    ):
        monkeypatch.setattr(numpy_exact.NumpyExact, "out_of_memory", lambda _, said=killed: said)
        bad = [r for r in run(home, text) if r.status == FAILED]
        assert {r.reason for r in bad} == {reason}
        (home / "results" / results.FILE).unlink()


def test_an_update_changes_the_vector_and_is_taken_back(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a server may skip it. However few of the updates there was time for."""
    text = SUITE.replace("{kind: crud, n: 20}", "{kind: crud, n: 20, longest: 0.5}")
    train = make_dataset().train
    update = numpy_exact.NumpySession.update
    away: list[float] = []

    def slow(self: Any, row: int, vector: Any, ranks: tuple[int, int]) -> None:
        away.append(float(np.abs(vector - self.encode(train[row])).max()))
        time.sleep(0.1 if away[-1] else 0.0)
        update(self, row, vector, ranks)

    monkeypatch.setattr(numpy_exact.NumpySession, "update", slow)
    crud = next(
        r for r in run(home, text) if r.point.workload == "crud" and r.point.engine == "exact"
    )
    count = int(crud.metrics["update_count"])
    assert 0 < count < 20
    assert all(0 < one < 0.1 for one in away[:count])
    assert away[count:] == [0.0] * count
    assert "restore_count" not in crud.metrics
    assert crud.metrics["recall_ids"] == 1.0


def test_an_adapter_that_was_not_run_says_so_in_every_table() -> None:
    point = Point("query", "far", "qdrant", "1", "d", 10, 2, "euclidean", 10)
    found = Result(point, 0, OK, metrics={"qps": 1.0}, label="adapter not run for real")
    assert rows_of([found])[0].title == "far [adapter not run for real]"


def test_lost_repetitions_are_not_hidden() -> None:
    point = Point("query", "e", "redis", "1", "d", 10, 2, "euclidean", 10)
    found = [Result(point, 0, OK, metrics={"qps": 1.0}), Result(point, 1, FAILED, "it is gone")]
    assert rows_of(found)[0].notes == ("1 of 2 repetitions failed: it is gone",)


def test_an_engine_that_ignores_the_condition_gets_no_recall_for_it(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions = numpy_exact.NumpyExact.sessions
    monkeypatch.setattr(
        numpy_exact.NumpyExact, "sessions",
        lambda self, search: sessions(self, replace(search, where=None)),
    )  # fmt: skip
    found = run(home)
    row = next(r for r in found if r.point.workload == "filter" and r.point.engine == "exact")
    assert row.metrics["recall"] < 0.6
    assert any("do not belong there" in note for note in row.notes)


def test_a_search_with_a_condition_names_its_plan(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def count(self: Any, asked: tuple[Any, Any]) -> Counted:
        query, values = asked
        assert self.search(query)
        assert values == ()
        return Counted(1, 2, 3, 4, "Index Scan on vectors")

    monkeypatch.setattr(numpy_exact.NumpySession, "count", count)
    run(home)
    text = report.make([home / "results"], report.Options(), home / "page.html")
    table = text.split("Searches with a condition")[1].split("\n\n")[1].splitlines()
    lines = [line for line in table if line.strip().startswith("exact")]
    assert len(lines) == 3
    assert all(" plan of " in line and "Index Scan on vectors" in line for line in lines)


def test_a_low_recall_has_one_explanation(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def remarks(rows: list[int]) -> str:
        monkeypatch.setattr(numpy_exact.NumpySession, "search", lambda *_: rows)
        found = run(home)
        (home / "results" / results.FILE).unlink()
        query = [r for r in found if r.point.workload == "query" and r.point.engine == "exact"]
        return " ".join(query[0].notes)

    assert "the metric of the data?" in remarks([*range(240, 250)])
    few = remarks([])
    assert "15 answers had fewer rows than there are" in few
    assert "metric" not in few


def test_a_recall_of_some_of_the_queries_says_so(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of every repetition the median, in one remark."""
    search = numpy_exact.NumpySession.search

    def slow(self: Any, query: Any) -> Sequence[int]:
        time.sleep(0.05)
        return search(self, query)

    monkeypatch.setattr(numpy_exact.NumpySession, "search", slow)
    found = run(home, SUITE.split("  - {kind: filter")[0].replace("longest: 5", "longest: 0.3"))
    exact = select(rows_of(found), engine="exact", workload="query")[0]
    told = f"answered {exact.get('answered_queries'):.0f} of 15 queries"
    assert 0 < exact.get("answered_queries") < 15
    assert [note for note in exact.notes if note.startswith("answered")] == [told]
    null = select(rows_of(found), engine="null", workload="query")[0]
    assert null.get("answered_queries") == null.get("asked_queries") == 15
    assert not any(note.startswith("answered") for note in null.notes)
    some = "some of the queries, as time was over: exact."
    assert some in report.target_table([exact, null], 0.9).text()
    old = replace(exact, metrics={"recall": 1.0, "qps": 1.0, "queries": 5.0})
    other = replace(old, engine="other", metrics={**old.metrics, "queries": 15.0})
    assert some in report.target_table([old, other], 0.9).text()
    assert "some of" not in report.target_table([other], 0.9).text()


def test_speed_of_an_open_loop_is_what_was_answered_not_the_latency(home: Path) -> None:
    text = SUITE.replace("clients: [1]}", "clients: [1], rate: 100, seconds: 0.5}")
    for result in run(home, text):
        if result.point.workload == "query":
            assert result.metrics["qps"] < 130, result.point.engine


def test_what_is_not_the_same_is_measured_again(home: Path) -> None:
    """Other rows or queries under the same name, other limits, another machine."""
    text = SUITE.split("  - {kind: filter")[0].replace("reps: 3", "reps: 1")

    def searches() -> int:
        lines = (home / "results" / results.FILE).read_text().splitlines()
        return sum('"workload": "query"' in line for line in lines)

    run(home, text)
    assert searches() == 2
    run(home, text)
    assert searches() == 2
    for change in (("queries: 15", "queries: 10"), ("longest: 5", "longest: 4")):
        before = searches()
        run(home, text.replace(*change))
        assert searches() == before + 2
    with h5py.File(home / "download" / "small-8-euclidean.hdf5", "r+") as file:
        file["train"][0] += 1
    (home / "download" / "small-8-euclidean.hdf5.sha256").unlink()
    before = searches()
    run(home, text)
    assert searches() == before + 2


def test_rows_are_hashed_once_a_set(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed = []

    def digest(vectors: Any) -> str:
        hashed.append(len(vectors))
        return "0123456789abcdef"

    monkeypatch.setattr(datasets, "digest", digest)
    run(home)
    assert sorted(hashed) == [15, 250]


def test_results_of_another_server_are_not_used_again(home: Path) -> None:
    text = SUITE.split("  - {kind: filter")[0].replace("reps: 3", "reps: 1")
    exact = "adapter: numpy"
    for options in ('{url: ""}', "{url: 'http://a:secret@b'}", "{url: c}", "{url: c, engine: d}",
                    "{url: c, engine: d, api_key: secret}"):  # fmt: skip
        found = run(home, text.replace(exact, f"{exact}, options: {options}"))
    kinds = [r.point.workload for r in found if r.point.engine == "exact"]
    assert kinds.count("build") == kinds.count("query") == 4
    assert "secret" not in (home / "results" / results.FILE).read_text()
    assert len(select(rows_of(found), engine="exact")) == 2  # of the last server alone


def test_results_of_another_machine_are_not_ours(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = len(run(home))
    monkeypatch.setenv("QUIVER_BENCH_HOST", "another")
    assert len(run(home)) == 2 * ours


def test_versions_of_a_changed_checkout(tmp_path: Path) -> None:
    def version() -> str:
        return environment.checkout_version(tmp_path)

    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.c").write_text("one")
    without = version()
    (tmp_path / "src" / "a.c").write_text("two")
    assert version() != without
    git = ["git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=e"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-qm", "m"], check=True)
    clean = version()
    assert "+" not in clean
    found = {clean}
    for text in ("three", "four"):
        (tmp_path / "src" / "a.c").write_text(text)
        found.add(version())
        (tmp_path / "src" / "new.c").write_text(text)
        found.add(version())
    assert len(found) == 5


def test_an_engine_that_was_missing_and_is_there_now() -> None:
    point = Point("query", "e", "redis", "", "d", 10, 2, "euclidean", 10)
    found = [
        Result(point, 0, MISSING, "needs redis"),
        Result(replace(point, version="8"), 0, OK, metrics={"qps": 1.0}),
    ]
    assert [(row.status, row.engine) for row in rows_of(found)] == [(OK, "e")]
    # One that fails later is not hidden by what it did before.
    assert [row.status for row in rows_of(found[::-1])] == [OK, MISSING]


def test_two_versions_are_not_one_engine() -> None:
    point = Point("query", "e", "quiver", "1 a", "d", 10, 2, "euclidean", 10)
    both = [
        Result(point, 0, OK, metrics={"qps": 1.0}),
        Result(replace(point, version="1 b"), 0, OK, metrics={"qps": 3.0}),
    ]
    rows = rows_of(both)
    assert [row.title for row in rows] == ["e [1 a]", "e [1 b]"]
    last = rows_of(both[1:])
    assert compare.compare(rows, last, compare.LIMITS)[1] == []
    assert compare.compare(last, rows, compare.LIMITS)[1] == []
    assert len(compare.compare(last, rows[:1], compare.LIMITS)[1]) == 1


def test_a_gate_that_compares_nothing_is_no_pass() -> None:
    point = Point("query", "e", "redis", "8", "d", 10, 2, "euclidean", 10)
    failed = rows_of([Result(point, 0, FAILED, "it is gone")])
    with pytest.raises(ConfigError, match="no measurements"):
        compare.compare(failed, failed, compare.LIMITS)
    for text in ("qsp=5", "qps=nan", "qps"):
        with pytest.raises(ConfigError, match="--max"):
            compare.parse_limits([text])
    assert compare.parse_limits(["qps=7%"])["qps"] == 7
    other = [
        rows_of([Result(replace(point, data=data), 0, OK, metrics={"qps": 1.0})]) for data in "ab"
    ]
    assert "not the same" in compare.compare(*other, compare.LIMITS)[1][0]


def test_the_plan_is_checked_before_all_searches(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check_plan(self: Any, search: Any) -> None:
        raise MeasureError("ef_search = 2000 is not in force")

    monkeypatch.setattr(numpy_exact.NumpyExact, "check_plan", check_plan)
    found = [r for r in run(home) if r.point.engine == "exact" and r.point.workload != "build"]
    assert {r.point.workload for r in found} == {"query", "filter", "crud", "churn"}
    assert {(r.status, r.reason) for r in found} == {(FAILED, "ef_search = 2000 is not in force")}


def test_made_data_is_what_the_suite_says(home: Path) -> None:
    made = "{name: made, queries: 10, make: {rows: 200, dimensions: 4, queries: 10, seed: 1}}"
    text = SUITE.split("  - {kind: filter")[0]
    text = text.replace("{name: small-8-euclidean, rows: 250, queries: 15}", made)
    assert all(r.point.rows == 200 for r in run(home, text))
    for change in (("seed: 1", "seed: 2"), ("rows: 200", "rows: 300")):
        with pytest.raises(DataError, match="other arguments"):
            run(home, text.replace(*change))
    (home / "download" / "made.hdf5").unlink()
    run(home, text.replace("seed: 1", "seed: 2"))  # nothing is kept of the file before


def test_the_first_of_a_sweep_is_its_lowest_not_its_oldest() -> None:
    point = Point("query", "e", "redis", "8", "d", 10, 2, "euclidean", 10)
    found = [
        Result(replace(point, query={"ef_search": ef}), 0, OK,
               metrics={"qps": 1000.0 / ef, "recall_ann": 1.0, "p99_ms": 1.0})
        for ef in (40, 160, 20)
    ]  # fmt: skip
    assert like.katz(rows_of(found), [0.9])[0].rows[0][2] == "50"


def test_a_full_disk_is_said_and_not_a_regression(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(_: Any) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cli, "suites", full)
    assert cli.main(["suites"]) == cli.INVALID
    assert "No space left" in capsys.readouterr().err


def test_a_suite_says_what_its_report_shows(home: Path) -> None:
    text = SUITE.split("  - {kind: filter")[0]
    run(home, text + 'report: {targets: [0.77], baseline: "exact"}\n')
    page = home / "page.html"
    said = report.make([home / "results"], report.Options(), page)
    assert "recall@10 >= 0.77" in said
    assert "recall@10 >= 0.9," not in said
    said = report.make([home / "results"], report.Options(like="callaghan"), page)
    assert "recall >= 0.99" in said
    assert "rel2(exact)" in said
    said = report.make([home / "results"], report.Options(targets=(0.5,)), page)
    assert "recall@10 >= 0.5," in said


def test_what_could_not_start_whole_is_stopped(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []

    def start(self: Any, server: Any) -> str:
        told.append("server started")
        raise EngineError("no such extension")

    monkeypatch.setattr(numpy_exact.NumpyExact, "start", start)
    monkeypatch.setattr(numpy_exact.NumpyExact, "stop", lambda _: told.append("stopped"))
    run(home)
    assert told == ["server started", "stopped"] * (len(told) // 2)


def test_a_data_set_that_cannot_be_had_is_left_out(home: Path) -> None:
    two = SUITE.replace("datasets:\n", "datasets:\n  - {name: nowhere-8-euclidean, queries: 15}\n")
    folder = home / "results"
    assert Runner(parse(two, "test"), Store(folder), home, None).run() == 1
    found = results.read(folder)[0]
    assert {r.point.dataset for r in found} == {"small-8-euclidean"}
    # what was measured is kept where a run cannot even begin
    none = SUITE.replace("small-8-euclidean, rows: 250", "nowhere-8-euclidean")
    with pytest.raises(ConfigError):
        Runner(parse(none, "test"), Store(folder), home, None).run(fresh=True)
    assert len(results.read(folder)[0]) == len(found)
    Runner(parse(SUITE, "test"), Store(folder), home, None).run(fresh=True)
    assert len(results.read(folder)[0]) == len(found)
