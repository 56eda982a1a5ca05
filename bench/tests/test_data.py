"""Readers, the model of made data, and files that are not what they say."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

from quiver_bench import bigann, datasets, registry, synthetic
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


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("wikipedia", "euclidean"),
        ("recipes_base", "euclidean"),
        ("clip-angular", "angular"),
        ("clip_Cosine-768", "angular"),
        ("trip2ip", "ip"),
        ("ip-of-l2-euclidean", "euclidean"),
    ],
)
def test_a_metric_is_a_word_of_the_name(name: str, metric: str, tmp_path: Path) -> None:
    np.save(tmp_path / f"{name}.npy", VECTORS)
    assert datasets.read(tmp_path / f"{name}.npy")[0].metric == metric
    folder = tmp_path / name
    folder.mkdir()
    for file in ("base.fbin", "query.fbin"):
        bigann_file(folder / file, VECTORS)
    assert datasets.read(folder / "base.fbin")[0].metric == metric


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


def test_files_that_are_none_are_errors(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    for begins in (b"", b"PK\3\4" + bytes(100), b"hello" * 100):
        path.write_bytes(begins)
        with pytest.raises(DataError, match=r"x\.npy is not a data set"):
            datasets.read(path)
    np.save(path, VECTORS[:, :0])
    with pytest.raises(DataError, match="no rows and queries"):
        datasets.read(path)


@pytest.mark.parametrize("queries", [0, 20])
@pytest.mark.parametrize("shape", [(20,), (5, 3), (0, 3)])
def test_hdf5_with_arrays_of_other_shapes(
    queries: int, shape: tuple[int, ...], tmp_path: Path
) -> None:
    path = tmp_path / "set.hdf5"
    with h5py.File(path, "w") as file:
        file["train"], file["test"] = VECTORS[:100], VECTORS[100 : 100 + queries]
        file["distances"] = np.zeros(shape)
        file.attrs["distance"] = "euclidean"
    with pytest.raises(DataError, match="not those of its queries" if queries else "no rows and"):
        datasets.read(path)
    with h5py.File(path, "a") as file:
        del file["train"]
        file.create_group("train")
    for look in (datasets.read, lambda p: datasets.look_at(p, datasets.METRICS)):
        with pytest.raises(DataError, match="is not a data set"):
            look(path)


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


def bigann_file(path: Path, vectors: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> None:
    head = np.array(vectors.shape, dtype="<u4")
    kind = bigann.KINDS.get(path.suffix, "<i4")
    path.write_bytes(head.tobytes() + vectors.astype(kind).tobytes())


def test_files_of_big_ann_benchmarks(tmp_path: Path) -> None:
    path = tmp_path / "euclidean" / "base.120.fbin"
    path.parent.mkdir()
    bigann_file(path, VECTORS)
    with pytest.raises(DataError, match="no fbin file of queries"):
        datasets.read(path)
    bigann_file(path.with_name("query.public.9.fbin"), VECTORS[:9])
    bigann_file(path.with_name("query.private.9.fbin"), VECTORS[9:18])
    found, verified = datasets.read(path)
    assert np.array_equal(found.train, VECTORS)
    assert np.array_equal(found.queries, VECTORS[:9])
    assert (found.name, verified) == ("euclidean", "shapes")
    assert np.array_equal(bigann.read_vectors(path, 5), VECTORS[:5])
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DataError, match="no fbin file: 120 x 4 do not fill it"):
        datasets.read(path)
    for kind in (".u8bin", ".i8bin"):
        small = (100 * VECTORS - (0 if kind == ".u8bin" else 50)).astype(np.int8)
        bigann_file(tmp_path / f"base{kind}", small)
        assert np.array_equal(bigann.read_vectors(tmp_path / f"base{kind}"), small)


def test_neighbors_of_big_ann_benchmarks(tmp_path: Path) -> None:
    path = tmp_path / "GT.ibin"
    ids, exact = nearest(VECTORS[:100], VECTORS[100:], 5, "euclidean")
    bigann_file(path, ids)
    assert bigann.check_truth(path, VECTORS[:100], VECTORS[100:], "euclidean", 20) == 0
    whole = path.read_bytes() + (exact**2).astype("<f4").tobytes()
    path.write_bytes(whole)
    assert np.array_equal(bigann.read_truth(path)[0], ids)
    assert bigann.check_truth(path, VECTORS[:100], VECTORS[100:], "euclidean", 20) == 20
    with pytest.raises(DataError, match="not those of the vectors"):
        bigann.check_truth(path, VECTORS[:100], VECTORS[80:100], "euclidean", 20)
    with pytest.raises(DataError, match="numbers of rows that are not there"):
        bigann.check_truth(path, VECTORS[:50], VECTORS[100:], "euclidean", 20)
    with pytest.raises(DataError, match="has 20 queries, and there are 19"):
        bigann.check_truth(path, VECTORS[:100], VECTORS[101:], "euclidean", 20)
    path.write_bytes(whole[:-4])
    with pytest.raises(DataError, match="no file of neighbors"):
        bigann.read_truth(path)


def test_tags_of_big_ann_benchmarks(tmp_path: Path) -> None:
    path = tmp_path / "base.spmat"
    starts, tags = np.array([0, 2, 2, 3], dtype="<i8"), np.array([4, 1, 4], dtype="<i4")
    sizes = np.array([3, 5, 3], dtype="<i8")
    whole = sizes.tobytes() + starts.tobytes() + tags.tobytes() + np.ones(3, "<f4").tobytes()
    path.write_bytes(whole)
    found = bigann.read_tags(path)
    assert [found.of(i).tolist() for i in range(found.rows)] == [[4, 1], [], [4]]
    assert found.vocabulary == 5
    for wanted, rows in (([4], [0, 2]), ([4, 1], [0]), ([], [0, 1, 2]), ([0], [])):
        assert np.flatnonzero(found.having(np.array(wanted, dtype=np.int32))).tolist() == rows
    path.write_bytes(whole[:-4])
    with pytest.raises(DataError, match="do not fill it"):
        bigann.read_tags(path)
    path.write_bytes(whole.replace(tags.tobytes(), np.array([4, 5, 4], dtype="<i4").tobytes()))
    with pytest.raises(DataError, match="tags that are not there"):
        bigann.read_tags(path)


@pytest.mark.parametrize(
    ("told", "metric"), [("cosine", "angular"), ("normalized", "angular"), ("ip", "ip")]
)
def test_vibe(told: str, metric: str, tmp_path: Path) -> None:
    path = tmp_path / "set.hdf5"
    unit = VECTORS / np.linalg.norm(VECTORS, axis=1, keepdims=True)
    with h5py.File(path, "w") as file:
        file["train"], file["test"], file["learn"] = unit[:100], unit[100:], unit[:3]
        file["distances"] = nearest(unit[:100], unit[100:], 10, metric)[1]
        file.attrs["distance"], file.attrs["point_type"] = told, "float"
    found, verified = datasets.read(path)
    assert found.metric == metric
    assert "20 queries" in verified
    datasets.look_at(path, (metric,))


def test_vibe_of_bits(tmp_path: Path) -> None:
    path = tmp_path / "set.hdf5"
    with h5py.File(path, "w") as file:
        file["train"] = file["test"] = (VECTORS > 0.5).astype(np.uint8)
        file.attrs["distance"], file.attrs["point_type"] = "hamming", "binary"
    with pytest.raises(DataError, match="vectors of bits"):
        datasets.read(path)
