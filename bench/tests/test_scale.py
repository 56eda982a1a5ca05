"""./quickstart --scale: what it announces, and where an interrupted run goes on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from quiver_bench import datasets, synthetic
from quiver_bench.console import duration, time_left
from quiver_bench.errors import DataError
from quiver_bench.quickstart import scale
from quiver_bench.truth import nearest

STEPS = list(scale.COSTS)


def test_made_once_and_mapped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shape = scale.Shape(3000, 16)
    (tmp_path / "scale").mkdir()
    other = tmp_path / "scale" / scale.Shape(2000, 16).file
    other.write_text("of another shape")
    dataset, truth = scale.make(tmp_path, shape)
    assert not other.exists()
    assert isinstance(dataset.train, np.memmap)
    ids, distances = nearest(dataset.train, dataset.queries, 10, scale.METRIC)
    assert np.array_equal(truth.first(10).ids, ids)
    assert np.allclose(truth.first(10).distances, distances, atol=1e-6)
    again, _ = scale.make(tmp_path, shape)
    assert "ready" in capsys.readouterr().out
    assert again.identity == dataset.identity != scale.Shape(3000, 17).identity


def test_a_file_of_other_rows_is_refused(tmp_path: Path) -> None:
    shape = scale.Shape(3000, 16)
    path = tmp_path / "made.hdf5"
    synthetic.make(path, 2000, 16, scale.METRIC, 10, scale.SEED)
    with pytest.raises(DataError, match="remove it"):
        scale.read(path, shape)
    path.write_text("no HDF5")
    with pytest.raises(DataError, match="remove it"):
        scale.read(path, shape)


@pytest.mark.parametrize("metric", ["angular", "euclidean"])
def test_interrupted_making_goes_on(
    tmp_path: Path, metric: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(synthetic, "BLOCK", 1024)
    whole, parts = tmp_path / "whole.hdf5", tmp_path / "parts.hdf5"
    synthetic.make(whole, 5000, 12, metric, 20, seed=3)
    drawn: list[int] = []
    draw = synthetic.Mixture.draw

    def counted(self: synthetic.Mixture, rows: int, stream: int, block: int) -> datasets.Floats:
        if stream == 1:
            drawn.append(block)
        return draw(self, rows, stream, block)

    def interrupt(text: str) -> None:
        if text.startswith("2,048"):
            raise KeyboardInterrupt

    monkeypatch.setattr(synthetic.Mixture, "draw", counted)
    with pytest.raises(KeyboardInterrupt):
        synthetic.make(parts, 5000, 12, metric, 20, seed=3, update=interrupt)
    assert not parts.exists()
    synthetic.make(parts, 5000, 12, metric, 20, seed=3)
    assert drawn == [0, 1, 2, 3, 4]
    one, other = datasets.read(whole)[0], datasets.read(parts)[0]
    assert np.array_equal(one.train, other.train)
    assert np.array_equal(one.queries, other.queries)
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["parts.hdf5", "whole.hdf5"]


def test_another_recipe_begins_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synthetic, "BLOCK", 1024)
    path = tmp_path / "made.hdf5"

    def interrupt(text: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        synthetic.make(path, 3000, 8, "angular", 5, seed=1, update=interrupt)
    synthetic.make(path, 3000, 8, "angular", 5, seed=2)
    fresh = tmp_path / "fresh.hdf5"
    synthetic.make(fresh, 3000, 8, "angular", 5, seed=2)
    assert np.array_equal(datasets.read(path)[0].train, datasets.read(fresh)[0].train)


def test_announced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small, large = scale.Shape(100_000, 128), scale.Shape(1_000_000, 128)
    assert 0 < scale.bytes_of(small, STEPS) < scale.bytes_of(large, STEPS)
    assert scale.seconds_of(large, STEPS[:1], 1) < scale.seconds_of(large, STEPS, 1)
    scale.announce(small, STEPS, tmp_path)
    assert "100,000 vectors of 128 dimensions: about " in capsys.readouterr().out
    scale.announce(small, [], tmp_path)
    assert capsys.readouterr().out == ""


def test_no_room_is_told_before(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="GB are needed"):
        scale.announce(scale.Shape(10**12, 1900), STEPS, tmp_path)


def test_time_left() -> None:
    assert time_left(0, 10, 60) == ""
    assert time_left(10, 10, 60) == ""
    assert time_left(1, 4, 10) == ", about 30 s left"
    assert time_left(1, 61, 60) == ", about 60 min left"
    assert duration(5400) == "1 h 30 min"
