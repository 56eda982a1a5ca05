"""The filter suites: their columns, their truth, and whole runs of them without a server."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from quiver_bench import conditions, config, report, results, truth
from quiver_bench.conditions import CORRELATIONS, SHARES, SUITES, Case, Cases, Clause, Columns
from quiver_bench.engines import numpy_exact, postgres
from quiver_bench.engines.base import Data
from quiver_bench.errors import ConfigError
from quiver_bench.records import OK, UNSUPPORTED
from quiver_bench.results import Store
from quiver_bench.run import Runner

from conftest import make_dataset  # isort: skip

ROWS = 3000


@pytest.fixture(scope="module")
def data() -> Data:
    return Data.of(make_dataset(rows=ROWS), seed=1).with_columns(seed=1)


def made_of(data: Data) -> Columns:
    assert data.columns is not None
    return data.columns


def cases_of(data: Data, suite: str) -> list[Case]:
    queries = data.dataset.queries
    exact, _ = truth.nearest(data.dataset.train, queries, 1, "euclidean")
    anchor = data.dataset.train[int(np.argmin(data.near_rank))]
    order = np.argsort(truth.distances(queries, anchor, "euclidean"))
    return list(Cases(made_of(data), order, exact[:, 0], 10, 1, SHARES, CORRELATIONS).of(suite))


@pytest.mark.parametrize("suite", SUITES)
def test_every_case_has_queries_values_and_a_name_known_before(data: Data, suite: str) -> None:
    found = cases_of(data, suite)
    assert [case.name for case in found] == conditions.names(suite, SHARES, CORRELATIONS)
    assert len({case.name for case in found}) == len(found)
    for case in found:
        assert len(case.queries) == len(case.values) == 10
        for values in case.values:
            assert made_of(data).passing(case.clauses, values).any(), case.name
    again = cases_of(data, suite)
    assert [case.values for case in again] == [case.values for case in found]


@pytest.mark.parametrize("metric", ["euclidean", "angular", "ip"])
def test_a_kind_is_that_of_the_nearest_row(metric: str) -> None:
    """Far from the origin, where products in single precision tell rows no longer apart."""
    train = make_dataset(rows=500).train + np.float32(10_000)
    kinds = conditions._kinds(train[:50], train, metric)
    wanted = [np.argmin(truth.distances(train[:50], row, metric)) for row in train]
    assert (kinds == wanted).mean() > 0.99


def test_the_grid_has_the_shares_and_correlations_it_names(data: Data) -> None:
    near = data.near_rank.astype(float)
    last = 2.0
    for c in sorted(CORRELATIONS, reverse=True):
        clause = (Clause("below", conditions.corr_column(c)),)
        passing = made_of(data).passing(clause, ((ROWS // 10,),))
        assert passing.sum() == ROWS // 10
        found = -float(np.corrcoef(passing, near)[0, 1])
        assert found < last  # a lower correlation passes rows that are farther away
        assert abs(found) < 0.1 if c == 0 else found * np.sign(c) > 0.2
        last = found
    assert (made_of(data).passing((Clause("below", "corr_p100"),), ((5,),)) == (near < 5)).all()


def test_clauses_mean_what_they_say(data: Data) -> None:
    made = made_of(data)
    tags, owner = made.bags["tags"], made.numbers["owner"]
    row = next(r for r in range(ROWS) if len(tags.of(r)) > 2)
    two = tuple(tags.of(row)[:2])
    expected = [set(two) <= set(tags.of(r)) for r in range(ROWS)]
    assert (made.passing((Clause("all", "tags"),), (two,)) == expected).all()
    assert expected[row]
    grade = made.owners["grade"]
    both = (Clause("owner", "grade"), Clause("between", "value"))
    value = made.numbers["value"]
    expected = [grade[owner[r]] < 9 and 100 <= value[r] < 700 for r in range(ROWS)]
    assert (made.passing(both, ((9,), (100, 700))) == expected).all()
    assert sum(expected) > 0
    one = made.passing((Clause("owner", "owner"),), ((3,),))
    assert (one == (owner == 3)).all()


def test_half_of_the_tags_go_with_the_kind(data: Data) -> None:
    made = made_of(data)
    kind, tags = made.numbers["kind"], made.bags["tags"]
    rng = np.random.default_rng(1)
    pairs = rng.integers(0, ROWS, (20_000, 2))
    shared = np.array([bool(set(tags.of(a)) & set(tags.of(b))) for a, b in pairs.tolist()])
    same = kind[pairs[:, 0]] == kind[pairs[:, 1]]
    assert shared[same].mean() > 1.3 * shared[~same].mean()


def test_truth_of_queries_with_a_condition_each(tmp_path: Path) -> None:
    dataset = make_dataset(rows=200)
    queries = dataset.queries[:4]
    passing = [np.zeros(200, dtype=bool) for _ in range(4)]
    passing[0][[3, 77, 120]] = True
    passing[1][50:] = True
    passing[3][:] = True
    for _ in range(2):  # computed, then kept
        found = truth.conditioned(
            tmp_path, dataset.digest, dataset.train, queries, 5, "euclidean", passing
        )
        for i, mask in enumerate(passing):
            away = truth.distances(dataset.train, queries[i], "euclidean")
            rows = [r for r in np.argsort(away) if mask[r]][:5]
            assert found.ids[i].tolist() == rows + [-1] * (5 - len(rows))
    assert len(list(tmp_path.iterdir())) == 1


SUITE = """
name: small
reps: 1
warm_seconds: 0
datasets:
  - {name: small-8-euclidean, rows: 250, queries: 15}
engines:
  - {id: "null", adapter: "null"}
  - {id: exact, adapter: numpy}
workloads:
  - {kind: conditions, queries: 5, selectivity: [0.5, 0.1], correlation: [-1.0, 1.0]}
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


def test_a_run_of_all_suites_and_its_report(home: Path) -> None:
    folder = home / "results"
    Runner(config.parse(SUITE, "test"), Store(folder), home, None).run()
    found = [r for r in results.read(folder)[0] if r.point.workload == "conditions"]
    assert {r.point.load["suite"] for r in found} == set(SUITES)
    exact = [r for r in found if r.point.engine == "exact"]
    warm = [r for r in exact if r.point.load["sessions"] == "warm"]
    assert len(warm) == 4 + 6 + 5 + 4 + 2
    for result in warm:
        assert result.status == OK, result.reason
        assert result.metrics["recall"] == 1.0, result.point.load
        assert result.metrics["wrong_results"] == result.metrics["short_results"] == 0
    near = {r.point.load["case"]: r.metrics["near_share"] for r in warm}
    assert near["10 %, correlation 1"] > near["10 %, correlation -1"]
    assert all(r.status == UNSUPPORTED for r in exact if r.point.load["sessions"] == "cold")
    assert all(r.status == UNSUPPORTED for r in found if r.point.engine == "null")
    text = report.make([folder], report.Options(), home / "page.html")
    assert "10 %, correlation -1" in text


def test_wrong_rows_are_no_hits(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = numpy_exact.NumpySession.search

    def unfiltered(self: Any, asked: tuple[Any, Any]) -> Any:
        self.rows = None
        return whole(self, asked[0])

    monkeypatch.setattr(numpy_exact.NumpySession, "search_where", unfiltered)
    folder = home / "results"
    Runner(config.parse(SUITE, "test"), Store(folder), home, None).run()
    far = [
        r for r in results.read(folder)[0]
        if r.point.load.get("case") == "10 %, correlation -1" and r.status == OK
    ]  # fmt: skip
    assert far
    assert all(r.metrics["recall"] == 0 and r.metrics["wrong_results"] == 5 for r in far)


def test_a_correlation_without_a_column_is_refused() -> None:
    with pytest.raises(ConfigError, match="correlation"):
        config.parse(SUITE.replace("[-1.0, 1.0]", "[0.3]"), "test")


def test_conditions_in_sql() -> None:
    clauses = (Clause("owner", "grade"), Clause("all", "words"), Clause("all", "tags"),
               Clause("between", "value"), Clause("equal", "label"))  # fmt: skip
    source, where = postgres.condition("t", clauses)
    assert source == "t i JOIN t_owners o ON o.owner = i.owner"
    assert where == (
        "o.grade < %s AND i.words @@ to_tsquery('simple', %s) AND i.tags @> %s"
        " AND i.value >= %s AND i.value < %s AND i.label = %s"
    )
    values = postgres.condition_values(clauses, ((7,), (1, 2), (3, 4), (5, 6), (8,)))
    assert values == (7, "w1 & w2", [3, 4], 5, 6, 8)
    assert where.count("%s") == len(values)


def test_what_explain_counts() -> None:
    plan = {
        "Plan": {
            "Node Type": "Limit", "Actual Rows": 10, "Actual Loops": 1, "Shared Hit Blocks": 40,
            "Shared Read Blocks": 2, "Plans": [
                {"Node Type": "Nested Loop", "Actual Rows": 10, "Actual Loops": 1, "Plans": [
                    {"Node Type": "Index Scan", "Index Name": "t_index", "Actual Rows": 30.0,
                     "Actual Loops": 1, "Rows Removed by Filter": 12},
                    {"Node Type": "Index Only Scan", "Index Name": "o_pkey", "Actual Rows": 0.5,
                     "Actual Loops": 30},
                ]},
            ],
        },
        "Planning": {"Shared Hit Blocks": 3, "Shared Read Blocks": 1},
    }  # fmt: skip
    found = postgres.counted(plan)
    assert (found.pages_hit, found.pages_read, found.pages_planning) == (40, 2, 4)
    assert found.rows == 30 + 12 + 15
    assert found.plan == "Nested Loop, Index Scan on vectors, Index Only Scan"


def test_columns_of_another_seed_are_others() -> None:
    plain = Data.of(make_dataset(), seed=1)
    one, two = made_of(plain.with_columns(1)), made_of(plain.with_columns(2))
    assert (one.numbers["value"] != two.numbers["value"]).any()
    assert (replace(plain).with_columns(1).columns or one).bags["tags"].of(3) == one.bags[
        "tags"
    ].of(3)
