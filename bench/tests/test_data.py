"""Readers, the model of made data, and files that are not what they say."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

from quiver_bench import datasets, registry, synthetic
from quiver_bench.errors import ConfigError, DataError
from quiver_bench.truth import nearest

VECTORS = np.random.default_rng(1).random((120, 4)).astype(np.float32)


def test_hdf5(tmp_path: Path) -> None:
    path = tmp_path / "set.hdf5"
    _, distances = nearest(VECTORS[:100], VECTORS[100:], 10, "euclidean")
    with h5py.File(path, "w") as file:
        file["train"], file["test"] = VECTORS[:100], VECTORS[100:]
        file["distances"] = distances
        file.attrs["distance"] = "euclidean"
    found, verified = datasets.read(path)
    assert np.array_equal(found.train, VECTORS[:100])
    assert "20 queries" in verified
    assert found.first(50, 7).train.shape == (50, 4)
    assert found.first(50).identity != found.identity
    with h5py.File(path, "a") as file:
        file["distances"][0, 0] += 1
    with pytest.raises(DataError, match="not those of its vectors"):
        datasets.read(path)


def test_head_of_hdf5(tmp_path: Path) -> None:
    path = tmp_path / "set.hdf5"
    with h5py.File(path, "w") as file:
        file["train"], file["test"] = VECTORS[:100], VECTORS[100:]
        file.attrs["distance"] = "ip"
    datasets.look_at(path, datasets.METRICS)
    with pytest.raises(DataError, match="distance is ip"):
        datasets.look_at(path, ("euclidean", "angular"))
    with h5py.File(path, "a") as file:
        del file["test"]
        file["test"] = VECTORS[:, :3]
    with pytest.raises(DataError, match="no rows and queries"):
        datasets.look_at(path, datasets.METRICS)
    path.write_text("no HDF5")
    with pytest.raises(DataError, match=r"set\.hdf5 is not a data set"):
        datasets.look_at(path, datasets.METRICS)


def test_fvecs_and_bvecs(tmp_path: Path) -> None:
    head = np.full((120, 1), 4, dtype=np.int32)
    path = tmp_path / "set_base.fvecs"
    np.hstack([head, VECTORS.view(np.int32)]).tofile(path)
    np.hstack([head[:5], VECTORS[:5].view(np.int32)]).tofile(tmp_path / "set_query.fvecs")
    found, _ = datasets.read(path)
    assert np.array_equal(found.train, VECTORS)
    assert np.array_equal(found.queries, VECTORS[:5])
    small = (VECTORS * 255).astype(np.uint8)
    path = tmp_path / "bytes.bvecs"
    np.hstack([head.view(np.uint8).reshape(120, 4), small]).tofile(path)
    found, _ = datasets.read(path)
    assert np.array_equal(np.vstack([found.train, found.queries]), small.astype(np.float32))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DataError):
        datasets.read(path)


def test_npy_and_its_metric(tmp_path: Path) -> None:
    path = tmp_path / "words-angular-train.npy"
    np.save(path, VECTORS)
    np.save(tmp_path / "words-angular-test.npy", VECTORS[:9])
    found, _ = datasets.read(path)
    assert (found.metric, len(found.queries)) == ("angular", 9)


def test_parquet(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "train.parquet"
    parquet.write_table(pyarrow.table({"id": range(120), "emb": list(VECTORS)}), path)
    found, _ = datasets.read(path)
    assert np.array_equal(np.vstack([found.train, found.queries]), VECTORS)


def test_not_finite_and_unknown_files(tmp_path: Path) -> None:
    path = tmp_path / "bad.npy"
    bad = VECTORS.copy()
    bad[3, 1] = np.nan
    np.save(path, bad)
    with pytest.raises(DataError, match="not finite"):
        datasets.read(path)
    text = tmp_path / "notes.txt"
    text.write_text("x")
    with pytest.raises(DataError, match="reads hdf5"):
        datasets.read(text)


def test_made_data(tmp_path: Path) -> None:
    path = tmp_path / "made.hdf5"
    synthetic.make(path, 5000, 16, "angular", 30, seed=7, clusters=20)
    found, verified = datasets.read(path)
    assert "20 queries" in verified  # across what would be several blocks of truth
    assert np.allclose(np.linalg.norm(found.train, axis=1), 1, atol=1e-5)
    assert len(np.unique(found.train, axis=0)) == 5000


def test_made_data_begins_with_the_smaller_set() -> None:
    mixture = synthetic.Mixture(12, 20, 5)
    assert np.allclose(mixture.draw(5000, 1, 0)[:100], mixture.draw(100, 1, 0), atol=1e-6)
    assert not np.allclose(mixture.draw(100, 2, 0), mixture.draw(100, 1, 0))


MODEL = [-0.498045, -0.643933, -0.250016]


def test_made_data_is_the_same_everywhere() -> None:
    """Numbers of the model when it was fitted (bench/README.md)."""
    x = synthetic.Mixture(8, 16, 1).draw(3, 1, 0)
    assert np.linalg.norm(x, axis=1) == pytest.approx(1, abs=1e-6)
    assert x[0, :3] == pytest.approx(MODEL, abs=1e-5)


def test_what_cannot_be_had_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("QUIVER_DATA", raising=False)
    with pytest.raises(ConfigError, match="no data set nothing"):
        registry.get("nothing", None, tmp_path, lambda _: None)
    with pytest.raises(DataError, match="data make --rows 1000000000 --dim 96"):
        registry.get("deep1b-96-euclidean", None, tmp_path, lambda _: None)


def test_a_file_that_changed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.hdf5"
    path.write_text("one")
    assert registry.verify(path, tmp_path) == "SHA-256 kept"
    assert registry.verify(path, tmp_path) == "SHA-256 as before"
    path.write_text("two")
    with pytest.raises(DataError, match="changed"):
        registry.verify(path, tmp_path)
