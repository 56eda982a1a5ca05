"""Adapters against real servers, which quiver-bench starts itself.

Redis, unpacked from Debian's packages, is up in seconds and always tried. The others are
made first, which takes minutes and much from package registries. QUIVER_BENCH_SERVERS names
those to be tried, "all" for all of them; QUIVER_BENCH_QDRANT is the URL of a running Qdrant.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from quiver_bench import config, engines, recall, truth, workload
from quiver_bench.conditions import CORRELATIONS, SHARES, SUITES, Cases
from quiver_bench.engines.base import ANY, Data, Engine, Search, Where
from quiver_bench.engines.http import HttpEngine
from quiver_bench.errors import MissingError
from quiver_bench.servers import find_top
from quiver_bench.workload import Setting

from conftest import make_dataset  # isort: skip

# What is made before a server can start: not by default.
FIRST = {
    "weaviate": "go builds it, 6 minutes of processor time",
    "opensearch": "Maven brings it, about a minute",
    "annlite": "pip compiles it, some minutes",
    "mariadb": "unpacks 40 packages of Debian",
    "qdrant": "needs a running server",
}
NAMES = ("redis", *FIRST)


@pytest.fixture(params=NAMES)
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    name = request.param
    options = {}
    wanted = os.environ.get("QUIVER_BENCH_SERVERS", "").replace(",", " ").split()
    if name == "qdrant":
        options["url"] = os.environ.get("QUIVER_BENCH_QDRANT", "")
        if not options["url"]:
            pytest.skip("needs a running server: QUIVER_BENCH_QDRANT")
    elif name in FIRST and name not in wanted and "all" not in wanted:
        pytest.skip(f"{FIRST[name]}: QUIVER_BENCH_SERVERS={name}")
    made = engines.adapter(name)(name, options, tmp_path / "place", find_top())
    try:
        made.start({})
    except MissingError as error:
        pytest.skip(str(error))
    yield made
    made.stop()


def test_real_server(engine: Engine, tmp_path: Path) -> None:
    """All that a run asks of it: recall, conditions, both, and the six operations."""
    dataset = make_dataset(rows=1000)
    engine.load(Data.of(dataset, 1))
    built = engine.build({"m": 16, "ef_construction": 100})
    assert built.seconds > 0
    assert engine.alive()

    def found(search: Search) -> dict[int, list[int]]:
        session = engine.sessions(search)()
        try:
            return {
                i: list(session.search(session.encode(q))) for i, q in enumerate(dataset.queries)
            }
        finally:
            session.close()

    exact = recall.Truth(*truth.nearest(dataset.train, dataset.queries, 10, dataset.metric))
    answers = found(Search(10, {"ef_search": 200}))
    got = recall.recalls(answers.items(), dataset.train, dataset.queries, exact, dataset.metric)
    assert got["recall"] > 0.98
    where = Where(ANY, 100)
    passing = engine.data.passing(where)
    few = found(Search(10, {"ef_search": 200}, where))
    assert all(passing[i] for ids in few.values() for i in ids)
    assert sum(map(len, few.values())) > 0.9 * 10 * len(few)

    # Six operations: workload.crud() fails when a row is not found where it should be.
    setting = Setting(engine.data, 10, 1, tmp_path / "truth", 0.0, 10.0)
    done = workload.crud(engine, setting, {"ef_search": 200}, config.Crud(kind="crud", n=20))
    cannot = [note.partition(":")[0] for note in done.notes if ":" in note]
    assert cannot == (["condition"] if engine.adapter == "redis" else [])
    for name in {"read", "condition", "update", "delete", "vector"}.difference(cannot):
        assert done.metrics[f"{name}_mean_ms"] > 0
    assert done.metrics["recall"] > 0.98  # rows are as before

    session = engine.sessions(Search(10, {"ef_search": 200}))()
    try:
        far = session.encode(-dataset.train[9])
        session.insert(5000, far, (5, 5))
        engine.settle()
        assert session.read(5000)
        assert 5000 in list(session.search(far))
        session.delete(5000)
        engine.settle()
        assert not session.read(5000)
        assert 5000 not in list(session.search(far))
    finally:
        session.close()


def test_filter_suites_on_a_real_server(engine: Engine, tmp_path: Path) -> None:
    """Every case answers the rows that pass, nearest first, and no others."""
    if not (isinstance(engine, HttpEngine) and engine.has_conditions):
        pytest.skip("has no conditions of the filter suites")
    dataset = make_dataset(rows=1000)
    data = Data.of(dataset, 1).with_columns(1)
    assert data.columns is not None
    engine.load(data)
    engine.build({"m": 16, "ef_construction": 100})
    every = np.arange(len(dataset.queries))
    nearest, _ = truth.nearest(dataset.train, dataset.queries, 1, dataset.metric)
    cases = Cases(data.columns, every, nearest[:, 0], 5, 1, SHARES, CORRELATIONS)
    for case in (case for suite in SUITES for case in cases.of(suite)):
        session = engine.sessions(Search(10, {"ef_search": 200}, clauses=case.clauses))()
        try:
            for query, values in zip(case.queries, case.values, strict=True):
                asked = session.encode(dataset.queries[query]), session.encode_values(values)
                passing = data.columns.passing(case.clauses, values)
                away = truth.distances(dataset.train, dataset.queries[query], dataset.metric)
                wanted = [int(row) for row in np.argsort(away) if passing[row]][:10]
                assert list(session.search_where(asked)) == wanted, case.name
        finally:
            session.close()
