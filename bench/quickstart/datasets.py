"""Where the vectors come from: an HDF5 file at hand, a download, or this machine's packages."""

from __future__ import annotations

import hashlib
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import h5py
import numpy as np

from quickstart.console import Step, say
from quickstart.errors import DataError
from quickstart.truth import Floats, nearest

FILE = "fashion-mnist-784-euclidean.hdf5"
URL = f"https://ann-benchmarks.com/{FILE}"
DOWNLOAD_LIMIT = 1 << 30
CONNECT_SECONDS = 15

# SHA-256 of the vectors themselves, train then test, a byte a number: the file
# of ann-benchmarks holds them as float32, others as uint8. These bytes are the
# 70,000 images as the authors of Fashion-MNIST published them.
FASHION_MNIST = "0fbbfcb392782b3b702472ead3688778e1509e8cf40f5c24d9d3303618b193ab"

QUERIES = 1000
CHECKED = 20


@dataclass(frozen=True)
class Dataset:
    """Rows to index and queries to ask."""

    name: str
    identity: str
    metric: str
    train: Floats
    queries: Floats
    texts: list[tuple[str, str]] | None = None
    encode: Callable[[str], Floats] | None = None
    searches: tuple[str, ...] = ()

    def first(self, rows: int | None) -> Dataset:
        """Only the first rows."""
        if rows is None or rows >= len(self.train):
            return self
        return replace(
            self,
            identity=f"{self.identity} first {rows}",
            train=self.train[:rows],
            texts=self.texts[:rows] if self.texts else None,
        )


def find_file(given: str | None, top: Path, home: Path) -> Path | None:
    """The HDF5 file to read: the one asked for, or one at hand."""
    if given:
        path = Path(given).expanduser()
        path = path / FILE if path.is_dir() else path
        if not path.is_file():
            raise DataError(f"QUIVER_DATA: there is no file {path}")
        return path
    for folder in (top.parent / "data", top.parent / "shared" / "data", home / "download"):
        if (folder / FILE).is_file():
            return folder / FILE
    return None


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


def read(path: Path) -> tuple[Dataset, str]:
    """Read an ann-benchmarks file; also say what was verified about it."""
    try:
        with h5py.File(path, "r") as file:
            metric = str(file.attrs["distance"])
            train = file["train"][:].astype(np.float32)
            test = file["test"][:].astype(np.float32)
            known = file["distances"][:CHECKED] if "distances" in file else None
    except (OSError, KeyError, ValueError) as error:
        raise DataError(f"{path} is not a data set of ann-benchmarks: {error}") from error
    if metric not in ("euclidean", "angular"):
        raise DataError(f"{path}: distance is {metric}, but euclidean or angular is needed")
    if train.ndim != 2 or test.ndim != 2 or train.shape[1] != test.shape[1] or len(train) < 100:
        raise DataError(f"{path}: shapes {train.shape} and {test.shape} are no rows and queries")
    if not (np.isfinite(train).all() and np.isfinite(test).all()):
        raise DataError(f"{path} has numbers that are not finite")

    verified = "shapes"
    if known is not None:
        exact = nearest(train, test[:CHECKED], known.shape[1], metric)
        if not np.allclose(exact, known, rtol=1e-3, atol=1e-4):
            raise DataError(f"{path}: its distances are not those of its vectors")
        verified = f"shapes and {CHECKED} queries' distances"
    if path.name == FILE:
        if content_hash(train, test) == FASHION_MNIST:
            verified = f"SHA-256 of the vectors, {verified}"
        else:
            raise DataError(f"{path}: its vectors are not those of Fashion-MNIST (SHA-256)")

    stat = path.stat()
    identity = f"{path.name} {stat.st_size} {int(stat.st_mtime)}"
    name = path.name.removesuffix(".hdf5")
    return Dataset(name, identity, metric, train, test[:QUERIES]), verified


def download(home: Path) -> Path | None:
    """Fetch the file from ann-benchmarks; None when it cannot be had."""
    folder = home / "download"
    folder.mkdir(exist_ok=True)
    part = folder / f"{FILE}.part"
    try:
        with (
            Step(f"download {FILE}") as step,
            urllib.request.urlopen(URL, timeout=CONNECT_SECONDS) as source,
            part.open("wb") as target,
        ):
            size = int(source.headers.get("Content-Length") or 0)
            got = 0
            while chunk := source.read(1 << 20):
                got += len(chunk)
                if got > DOWNLOAD_LIMIT:
                    raise OSError("it is larger than it should be")
                target.write(chunk)
                step.update(f"{got >> 20} of {size >> 20} MB")
            if size and got != size:
                raise OSError(f"it ended after {got} of {size} bytes")
        part.rename(folder / FILE)
        read(folder / FILE)
    except (OSError, urllib.error.URLError, DataError) as error:
        part.unlink(missing_ok=True)
        (folder / FILE).unlink(missing_ok=True)
        say(f"  could not be downloaded: {error}")
        return None
    return folder / FILE
