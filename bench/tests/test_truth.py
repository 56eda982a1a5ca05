"""Exact neighbors and recall."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from quiver_bench import truth
from quiver_bench.datasets import Dataset
from quiver_bench.recall import recalls
from quiver_bench.truth import Truth

from conftest import make_dataset  # isort: skip


def by_hand(dataset: Dataset, query: int) -> np.ndarray:
    """All rows by distance, ties by number, in double precision."""
    train, q = dataset.train.astype(np.float64), dataset.queries[query].astype(np.float64)
    if dataset.metric == "euclidean":
        d = ((train - q) ** 2).sum(axis=1)
    elif dataset.metric == "ip":
        d = -(train * q).sum(axis=1)
    else:
        d = -(train @ q) / np.linalg.norm(train, axis=1)
    return np.lexsort((np.arange(len(d)), d))


def test_nearest_is_exact(dataset: Dataset) -> None:
    ids, distances = truth.nearest(dataset.train, dataset.queries, 10, dataset.metric)
    for query in range(len(dataset.queries)):
        assert ids[query].tolist() == by_hand(dataset, query)[:10].tolist()
    assert (np.diff(distances, axis=1) >= 0).all()


@pytest.mark.parametrize("metric", ["euclidean", "angular", "ip"])
def test_nearest_in_blocks(metric: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last block is smaller than k."""
    monkeypatch.setattr(truth, "ROWS", 99)
    monkeypatch.setattr(truth, "QUERIES", 7)
    dataset = make_dataset(metric, rows=300)
    ids, _ = truth.nearest(dataset.train, dataset.queries, 10, metric)
    assert [list(found) for found in ids] == [list(by_hand(dataset, i)[:10]) for i in range(20)]


def test_nearest_far_from_the_origin() -> None:
    """Two clusters that are farther from each other than single precision can tell rows apart."""
    rng = np.random.default_rng(1)
    place = np.where(np.arange(2000) % 2, 10_000.0, -30_000.0)[:, None]
    vectors = (rng.standard_normal((2000, 64)) + place).astype(np.float32)
    dataset = Dataset("far", "far", "euclidean", vectors[:1980], vectors[1980:])
    ids, _ = truth.nearest(dataset.train, dataset.queries, 10, "euclidean")
    assert [list(found) for found in ids] == [list(by_hand(dataset, i)[:10]) for i in range(20)]


def test_nearest_in_a_narrow_cone() -> None:
    rng = np.random.default_rng(1)
    vectors = (rng.standard_normal(64) + 1e-3 * rng.standard_normal((3020, 64))).astype(np.float32)
    dataset = Dataset("cone", "cone", "angular", vectors[:3000], vectors[3000:])
    ids, found = truth.nearest(dataset.train, dataset.queries, 10, "angular")
    every = [truth.distances(dataset.train, q, "angular") for q in dataset.queries]
    assert np.array_equal(found, np.sort(every, axis=1)[:, :10])
    assert np.array_equal(ids, np.argsort(every, axis=1, kind="stable")[:, :10])


def test_fewer_rows_than_k(dataset: Dataset) -> None:
    ids, distances = truth.nearest(dataset.train[:3], dataset.queries, 5, dataset.metric)
    assert (ids[:, 3:] == -1).all()
    assert np.isinf(distances[:, 3:]).all()
    assert sorted(ids[0, :3].tolist()) == [0, 1, 2]


def test_cache_is_by_content_and_filter(dataset: Dataset, tmp_path: Path) -> None:
    def get(passing: np.ndarray | None = None, k: int = 5) -> Truth:
        return truth.cached(
            tmp_path, dataset.digest, dataset.train, dataset.queries, k, dataset.metric, passing
        )

    first = get()
    assert len(list(tmp_path.iterdir())) == 1
    assert np.array_equal(get().ids, first.ids)
    assert len(list(tmp_path.iterdir())) == 1
    passing = np.arange(dataset.rows) % 3 == 0
    filtered = get(passing)
    assert (filtered.ids % 3 == 0).all()
    wanted = [row for row in by_hand(dataset, 0) if row % 3 == 0][:5]
    assert filtered.ids[0].tolist() == wanted
    assert len(list(tmp_path.iterdir())) == 2


def test_every_row_counts_for_what_is_kept(tmp_path: Path) -> None:
    dataset = make_dataset(rows=5000)
    for row in (0, 1, 2, 4999):
        train = dataset.train.copy()
        train[row] = dataset.queries[0]
        other = replace(dataset, train=train)
        assert other.digest != dataset.digest
        found = truth.cached(tmp_path, other.digest, train, dataset.queries, 1, "euclidean")
        assert found.ids[0] == row


def test_truths_of_another_version_are_not_used(
    dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = [np.ones(dataset.rows, dtype=bool)] * len(dataset.queries)
    for version in (truth.VERSION, truth.VERSION + 1):
        monkeypatch.setattr(truth, "VERSION", version)
        arguments = (tmp_path, "x", dataset.train, dataset.queries, 5, dataset.metric)
        truth.cached(*arguments)
        truth.conditioned(*arguments, every)
    assert len(list(tmp_path.iterdir())) == 4


def test_a_filter_that_nothing_passes(dataset: Dataset, tmp_path: Path) -> None:
    nothing = np.zeros(dataset.rows, dtype=bool)
    found = truth.cached(tmp_path, "x", dataset.train, dataset.queries, 5, dataset.metric, nothing)
    assert (found.ids == -1).all()
    empty: dict[int, list[int]] = {0: [], 1: []}
    assert (
        recalls(empty.items(), dataset.train, dataset.queries, found, dataset.metric)["recall"]
        == 0.0
    )


def small() -> tuple[np.ndarray, np.ndarray, Truth]:
    train = np.array([[0.0], [1.0], [1.0], [2.0], [3.0]], dtype=np.float32)
    queries = np.array([[0.0]], dtype=np.float32)
    return train, queries, Truth(*truth.nearest(train, queries, 2, "euclidean"))


@pytest.mark.parametrize(
    ("answer", "recall", "by_ids"),
    [
        ([0, 1], 1.0, 1.0),
        ([0, 2], 1.0, 0.5),
        ([0, 3], 0.5, 0.5),
        ([0, 0], 0.5, 0.5),
        ([], 0.0, 0.0),
    ],
)
def test_ties_count_by_distance(answer: list[int], recall: float, by_ids: float) -> None:
    train, queries, exact = small()
    found = recalls({0: answer}.items(), train, queries, exact, "euclidean")
    assert (found["recall"], found["recall_ids"]) == (recall, by_ids)


@pytest.mark.parametrize("scale", [1e-7, 1.0, 1e7])
def test_ties_are_relative_to_the_data(dataset: Dataset, scale: float) -> None:
    """Whatever the scale: rows that are no neighbors are no ties, and rounding makes no miss."""
    train, queries = dataset.train * np.float32(scale), dataset.queries * np.float32(scale)
    exact = Truth(*truth.nearest(train, queries, 10, dataset.metric))
    beyond, _ = truth.nearest(train, queries, 20, dataset.metric)
    rounded = Truth(exact.ids, exact.distances.astype(np.float32).astype(np.float64))
    for near, ids, recall in ((rounded, exact.ids, 1.0), (exact, beyond[:, 10:], 0.0)):
        found = recalls(enumerate(ids), train, queries, near, dataset.metric)
        assert found["recall"] == recall


def test_repeated_rows_and_short_answers_are_counted() -> None:
    train, queries, exact = small()
    found = recalls({0: [0, 0]}.items(), train, queries, exact, "euclidean")
    assert found["duplicate_results"] == 1
    assert found["short_results"] == 1
    assert recalls({0: [0]}.items(), train, queries, exact, "euclidean")["duplicate_results"] == 0


def test_rows_inserted_again_stand_for_their_vector() -> None:
    train, queries, exact = small()
    found = recalls({0: [5, 11]}.items(), train, queries, exact, "euclidean")
    assert found["recall"] == found["recall_ids"] == 1.0


def test_ann_benchmarks_epsilon_is_wider() -> None:
    train = np.array([[1.0], [1.0005], [2.0]], dtype=np.float32)
    queries = np.zeros((1, 1), dtype=np.float32)
    exact = Truth(*truth.nearest(train, queries, 1, "euclidean"))
    found = recalls({0: [1]}.items(), train, queries, exact, "euclidean")
    assert (found["recall"], found["recall_ann"]) == (0.0, 1.0)


def test_rows_that_do_not_pass_are_no_hits_however_near() -> None:
    train, queries, _ = small()
    passing = np.array([False, False, False, True, True])
    exact = Truth(np.array([[3, 4]]), np.array([[2.0, 3.0]]))
    for answer, recall, wrong in (([0, 1], 0.0, 1), ([3, 1], 0.5, 1), ([4, 3], 1.0, 0)):
        found = recalls(
            {0: answer}.items(), train, queries, exact, "euclidean", lambda _, ids: passing[ids % 5]
        )
        assert (found["recall"], found["recall_ann"], found["recall_ids"]) == (recall,) * 3
        assert found["wrong_results"] == wrong


def test_padding_is_no_row() -> None:
    train = np.array([[5.0], [1.0], [0.0]], dtype=np.float32)
    exact = Truth(np.array([[2, 1]]), np.array([[0.0, 1.0]]))
    queries = np.zeros((1, 1), dtype=np.float32)
    found = recalls({0: [1, -1, -1]}.items(), train, queries, exact, "euclidean")
    assert (found["recall"], found["short_results"], found["duplicate_results"]) == (0.5, 1, 0)


def test_every_client_counts() -> None:
    train, queries, exact = small()
    right, wrong = (0, exact.ids[0].tolist()), (0, [-1, -1])
    for answers in ([right, wrong], [wrong, right]):
        found = recalls(answers, train, queries, exact, "euclidean")
        assert (found["recall"], found["short_results"]) == (0.5, 1)
