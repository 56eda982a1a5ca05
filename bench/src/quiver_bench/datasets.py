"""Reading vectors: HDF5 of ann-benchmarks and VIBE, fvecs/bvecs, files of big-ann-benchmarks,
Parquet, npy; finding and checking them.

The registry of the reports' data sets and the download are in registry.py.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import h5py
import numpy as np
import numpy.typing as npt

from quiver_bench import bigann
from quiver_bench.errors import DataError
from quiver_bench.truth import Floats, nearest

METRICS = ("euclidean", "angular", "ip")
# What VIBE calls them; its normalized vectors have length 1, so any metric would do.
VIBE_METRICS = {"cosine": "angular", "normalized": "angular"}
FASHION_MNIST = "fashion-mnist-784-euclidean"

# SHA-256 of the vectors themselves, train then test, a byte a number: the file
# of ann-benchmarks holds them as float32, others as uint8. These bytes are the
# 70,000 images as the authors of Fashion-MNIST published them.
CONTENT = {FASHION_MNIST: "0fbbfcb392782b3b702472ead3688778e1509e8cf40f5c24d9d3303618b193ab"}

CHECKED = 20
MIN_ROWS = 100


@dataclass(frozen=True)
class Dataset:
    """Rows to index [n, d] and queries to ask [q, d], float32."""

    name: str
    identity: str  # of the file; the numbers have a digest
    metric: str
    train: Floats
    queries: Floats

    @property
    def rows(self) -> int:
        return len(self.train)

    @property
    def dimensions(self) -> int:
        return int(self.train.shape[1])

    @cached_property
    def digest(self) -> str:
        """Of the rows. It reads all of them, once."""
        return digest(self.train)

    def first(self, rows: int | None, queries: int | None = None) -> Self:
        """Only the first rows and queries."""
        changed = self
        if rows is not None and rows < len(self.train):
            changed = replace(
                changed, identity=f"{self.identity} first {rows}", train=self.train[:rows]
            )
        if queries is not None and queries < len(self.queries):
            changed = replace(changed, queries=self.queries[:queries])
        return changed


def digest(vectors: Floats) -> str:
    """A short name of these vectors: of their shape and of all numbers."""
    sha = hashlib.sha256(str(vectors.shape).encode())
    sha.update(np.ascontiguousarray(vectors).reshape(-1).data)
    return sha.hexdigest()[:16]


def content_hash(train: Floats, test: Floats) -> str | None:
    """SHA-256 of vectors of whole numbers 0 to 255, None for others."""
    sha = hashlib.sha256()
    for part in (train, test):
        if part.min() < 0 or part.max() > 255:
            return None
        small = part.astype(np.uint8)
        if not np.array_equal(small, part):
            return None
        sha.update(small.tobytes())
    return sha.hexdigest()


def _floats(array: npt.NDArray[Any]) -> Floats:
    return np.ascontiguousarray(array, dtype=np.float32)


def _metric(file: h5py.File) -> str:
    """Of an HDF5 file, by our name if we have one."""
    told = str(file.attrs["distance"])
    return VIBE_METRICS.get(told, told)


def _read_hdf5(path: Path) -> tuple[str, Floats, Floats, npt.NDArray[Any] | None]:
    """VIBE has more in it: point_type (float, uint8, int8, binary), and learn, which is left."""
    with h5py.File(path, "r") as file:
        metric = _metric(file)
        if file.attrs.get("point_type") == "binary":
            raise DataError(f"{path}: vectors of bits with distance {metric} are not measured")
        known = file["distances"][:CHECKED] if "distances" in file else None
        return metric, _floats(file["train"][:]), _floats(file["test"][:]), known


def read_vecs(path: Path) -> Floats:
    """An fvecs or bvecs file: every vector begins with its dimensions, int32."""
    if path.suffix == ".fvecs":
        whole = np.fromfile(path, dtype=np.int32)
        width = 1 + (int(whole[0]) if len(whole) else 0)
        if not len(whole) or width < 2 or len(whole) % width or (whole[::width] != width - 1).any():
            raise DataError(f"{path} is no fvecs file of equally long vectors")
        return _floats(whole.reshape(-1, width)[:, 1:].copy().view(np.float32))
    raw = np.fromfile(path, dtype=np.uint8)
    width = 4 + (int(raw[:4].view(np.int32)[0]) if len(raw) >= 4 else 0)
    if len(raw) < 4 or width < 5 or len(raw) % width:
        raise DataError(f"{path} is no bvecs file of equally long vectors")
    return _floats(raw.reshape(-1, width)[:, 4:])


def read_npy(path: Path) -> Floats:
    with path.open("rb") as file:
        return _floats(np.lib.format.read_array(file, allow_pickle=False))


def read_parquet(path: Path) -> Floats:
    """A Parquet file with a column of lists of numbers: emb, embedding or vector."""
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise DataError("Parquet files need pyarrow: pip install quiver-bench[parquet]") from error
    table = pyarrow.parquet.read_table(path)
    for name in ("emb", "embedding", "vector"):
        if name in table.column_names:
            return _floats(np.stack(table[name].to_numpy()))
    raise DataError(f"{path} has no column emb, embedding or vector")


def _named(*names: str) -> str:
    """The metric of files that do not say theirs: the last word that is one, of the first name
    that has one; else euclidean."""
    words = (word for name in names for word in reversed(re.findall(r"[^\W\d_]+", name.lower())))
    ours = (VIBE_METRICS.get(word, word) for word in words)
    return next((word for word in ours if word in METRICS), "euclidean")


def _read_pair(path: Path) -> tuple[str, Floats, Floats]:
    """Rows from this file, queries from its neighbor: base/query, train/test, or the last tenth."""
    readers: dict[str, Callable[[Path], Any]] = {".npy": read_npy, ".parquet": read_parquet}
    read_one = readers.get(path.suffix, read_vecs)
    train = _floats(read_one(path))
    metric = _named(path.name)
    for base, query in (("base", "query"), ("train", "test"), ("learn", "query")):
        other = path.with_name(path.name.replace(base, query))
        if other != path and other.is_file():
            return metric, train, _floats(read_one(other))
    held = max(1, min(1000, len(train) // 10))
    return metric, train[:-held], train[-held:]


def _read_bigann(path: Path) -> tuple[str, Floats, Floats, str]:
    """Rows and the queries beside them; also says which published neighbors were verified."""
    train = bigann.read_vectors(path)
    metric = _named(path.name, path.parent.name)
    beside = bigann.companion(path, "query")
    if beside is None:
        raise DataError(f"{path}: there is no {path.suffix[1:]} file of queries beside it")
    queries = bigann.read_vectors(beside)
    neighbors = bigann.companion(path, "truth")
    if neighbors is None:
        return metric, train, queries, ""
    checked = bigann.check_truth(neighbors, train, queries, metric, CHECKED)
    return metric, train, queries, f" and {checked} queries' distances" if checked else ""


def _are_rows_and_queries(train: tuple[int, ...], test: tuple[int, ...]) -> bool:
    """Whether arrays of these shapes are."""
    if not len(train) == len(test) == 2:
        return False
    return train[1] == test[1] > 0 and train[0] >= MIN_ROWS and test[0] > 0


def look_at(path: Path, metrics: Sequence[str]) -> None:
    """DataError when even the head of an HDF5 file says that it will not do."""
    if path.suffix not in (".hdf5", ".h5"):
        return
    try:
        with h5py.File(path, "r") as file:
            metric = _metric(file)
            train, test = file["train"].shape, file["test"].shape
    except (OSError, KeyError, AttributeError) as error:
        raise DataError(f"{path} is not a data set of ann-benchmarks: {error}") from error
    if metric not in metrics:
        raise DataError(f"{path}: distance is {metric}, but {' and '.join(metrics)} are taken")
    if not _are_rows_and_queries(train, test):
        raise DataError(f"{path}: shapes {train} and {test} are no rows and queries")


def read(path: Path) -> tuple[Dataset, str]:
    """Read a file of any known kind; also say what was verified about it."""
    known, published = None, ""
    try:
        if path.suffix in (".hdf5", ".h5"):
            metric, train, test, known = _read_hdf5(path)
        elif path.suffix in (".fvecs", ".bvecs", ".npy", ".parquet"):
            metric, train, test = _read_pair(path)
        elif path.suffix in bigann.KINDS:
            metric, train, test, published = _read_bigann(path)
        else:
            raise DataError(
                f"{path}: quiver-bench reads hdf5, fvecs, bvecs, fbin, u8bin, i8bin, parquet and npy"
            )
    except (OSError, KeyError, ValueError, TypeError) as error:
        raise DataError(f"{path} is not a data set of ann-benchmarks: {error}") from error
    if metric not in METRICS:
        raise DataError(f"{path}: distance is {metric}, but {', '.join(METRICS)} are known")
    if not _are_rows_and_queries(train.shape, test.shape):
        raise DataError(f"{path}: shapes {train.shape} and {test.shape} are no rows and queries")
    if not (np.isfinite(train).all() and np.isfinite(test).all()):
        raise DataError(f"{path} has numbers that are not finite")

    verified = f"shapes{published}"
    if known is not None:
        if known.ndim != 2 or len(known) != len(test[:CHECKED]):
            raise DataError(f"{path}: its distances are not those of its queries")
        _, exact = nearest(train, test[:CHECKED], known.shape[1], metric)
        if not np.allclose(exact, known, rtol=1e-3, atol=1e-4):
            raise DataError(f"{path}: its distances are not those of its vectors")
        verified = f"shapes and {CHECKED} queries' distances"
    name = path.name.removesuffix(path.suffix)
    if path.suffix in bigann.KINDS:  # its own says only that it is the base
        name = path.parent.name
    if name in CONTENT:
        if content_hash(train, test) != CONTENT[name]:
            raise DataError(f"{path}: its vectors are not those of {name} (SHA-256)")
        verified = f"SHA-256 of the vectors, {verified}"
    stat = path.stat()
    identity = f"{path.name} {stat.st_size} {int(stat.st_mtime)}"
    return Dataset(name, identity, metric, train, test), verified


def find_file(name: str, given: str | None, top: Path | None, home: Path) -> Path | None:
    """The file of a data set: the one given (a file or a folder), or one at hand.

    top is the checkout, whose neighbors data and shared/data are looked into; home holds
    downloads and what `quiver-bench data make` made.
    """
    if Path(name).suffix and Path(name).expanduser().is_file():
        return Path(name).expanduser()
    file = f"{name}.hdf5"
    if given:
        path = Path(given).expanduser()
        if path.is_file() and path.name.removesuffix(path.suffix) == name:
            return path
        if path.is_dir() and (path / file).is_file():
            return path / file
    folders = [home / "download"]
    if top:
        folders += [top.parent / "data", top.parent / "shared" / "data"]
        folders += [top.parent.parent / "shared" / "data"]
    if given and Path(given).expanduser().is_dir():
        folders.insert(0, Path(given).expanduser())
    whole = [
        next((folder / name).glob(f"base*{kind}"), None)
        for folder in folders
        for kind in bigann.KINDS
    ]
    one = next((folder / file for folder in folders if (folder / file).is_file()), None)
    return one or next((path for path in whole if path), None)


def find_given(top: Path, home: Path) -> Path | None:
    """The one file of the quickstart: what QUIVER_DATA names, or Fashion-MNIST at hand."""
    given = os.environ.get("QUIVER_DATA")
    if given:
        path = Path(given).expanduser()
        path = path / f"{FASHION_MNIST}.hdf5" if path.is_dir() else path
        if not path.is_file():
            raise DataError(f"QUIVER_DATA: there is no file {path}")
        return path
    return find_file(FASHION_MNIST, None, top, home)
