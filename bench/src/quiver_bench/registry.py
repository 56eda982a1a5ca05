"""The data sets of the five reports: what they are, and how to have them."""

from __future__ import annotations

import hashlib
import os
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from quiver_bench.console import command
from quiver_bench.datasets import CONTENT, Dataset, find_file, read
from quiver_bench.errors import ConfigError, DataError

CONNECT_SECONDS = 15
ANN_BENCHMARKS = "https://ann-benchmarks.com/"
HUGGING_FACE = "https://huggingface.co/datasets/"


@dataclass(frozen=True)
class Known:
    """A published data set. url is None when it does not come as one file."""

    rows: int
    queries: int
    dimensions: int
    metric: str
    megabytes: int  # of the file, about
    licence: str
    url: str | None
    where: str = ""

    @property
    def note(self) -> str:
        return self.url or self.where


def _ann(name: str) -> str:
    return f"{ANN_BENCHMARKS}{name}.hdf5"


_TEXMEX = "see corpus-texmex.irisa.fr"
_GLOVE = "PDDL 1.0 (Stanford NLP)"
_DBPEDIA = "CC BY-SA 3.0 (DBpedia); embeddings by OpenAI's ada-002"

# Neither site publishes checksums, and none of ours is invented: a file's SHA-256 is
# kept when it is first read and compared from then on (Fashion-MNIST: known, CONTENT).
REGISTRY: dict[str, Known] = {
    "fashion-mnist-784-euclidean": Known(
        60_000, 10_000, 784, "euclidean", 217, "MIT (Zalando SE)",
        _ann("fashion-mnist-784-euclidean"),
    ),
    "sift-128-euclidean": Known(
        1_000_000, 10_000, 128, "euclidean", 501, _TEXMEX, _ann("sift-128-euclidean")
    ),
    "gist-960-euclidean": Known(
        1_000_000, 1_000, 960, "euclidean", 3700, _TEXMEX, _ann("gist-960-euclidean")
    ),
    "glove-25-angular": Known(
        1_183_514, 10_000, 25, "angular", 121, _GLOVE, _ann("glove-25-angular")
    ),
    "glove-100-angular": Known(
        1_183_514, 10_000, 100, "angular", 463, _GLOVE, _ann("glove-100-angular")
    ),
    **{
        f"dbpedia-openai-{thousands}k-angular": Known(
            thousands * 1000 - 10_000, 10_000, 1536, "angular", thousands * 6, _DBPEDIA, None,
            f"{HUGGING_FACE}KShivendu/dbpedia-entities-openai-1M (Parquet; ann-benchmarks makes"
            " the HDF5 file of its first rows)",
        )
        for thousands in (100, 500, 1000)
    },
    "laion-5m-768-ip": Known(
        5_000_000, 10_000, 768, "ip", 15_400, "CC BY 4.0 (LAION)", None,
        "github.com/EnterpriseDB/vsbt converts the published embeddings",
    ),
    "laion-100m-768-ip": Known(
        100_000_000, 10_000, 768, "ip", 307_000, "CC BY 4.0 (LAION)", None,
        "github.com/EnterpriseDB/vsbt converts the published embeddings",
    ),
    "deep1b-96-euclidean": Known(
        1_000_000_000, 10_000, 96, "euclidean", 384_000, "CC BY 4.0 (Yandex)", None,
        "research.yandex.com/blog/benchmarks-for-billion-scale-similarity-search",
    ),
}  # fmt: skip


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def verify(path: Path, home: Path) -> str:
    """Compare a downloaded file with what it was when it was first read."""
    kept = home / "download" / f"{path.name}.sha256"
    found = sha256(path)
    if kept.is_file():
        if kept.read_text().strip() != found:
            raise DataError(f"{path} is not the file that was read before (its SHA-256 changed)")
        return "SHA-256 as before"
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(found + "\n")
    return "SHA-256 kept"


def download(name: str, home: Path, update: Callable[[str], None]) -> Path:
    """Fetch the file of a data set; DataError with the reason when it cannot be had."""
    known = REGISTRY[name]
    if known.url is None:
        raise DataError(f"{name} does not come as one file: {known.where}")
    folder = home / "download"
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"{name}.hdf5"
    part = target.with_suffix(".part")
    # The site answers 403 to the name that urllib gives itself.
    request = urllib.request.Request(known.url, headers={"User-Agent": "quiver-bench"})
    try:
        with (
            urllib.request.urlopen(request, timeout=CONNECT_SECONDS) as source,
            part.open("wb") as file,
        ):
            size = int(source.headers.get("Content-Length") or 0)
            got = 0
            while chunk := source.read(1 << 20):
                got += len(chunk)
                if got > 2 * known.megabytes << 20:
                    raise OSError("it is larger than it should be")
                file.write(chunk)
                update(f"{got >> 20} of {size >> 20} MB")
        if size and got != size:
            raise OSError(f"it ended after {got} of {size} bytes")
        part.rename(target)
        read(target)
    except (OSError, urllib.error.URLError, DataError) as error:
        part.unlink(missing_ok=True)
        target.unlink(missing_ok=True)
        raise DataError(f"{name} could not be downloaded: {error}") from error
    verify(target, home)
    return target


def is_here(name: str, top: Path | None, home: Path) -> bool:
    return find_file(name, os.environ.get("QUIVER_DATA"), top, home) is not None


def file_of(name: str, top: Path | None, home: Path, update: Callable[[str], None]) -> Path:
    """The file of a data set by name or path: at hand, or downloaded."""
    path = find_file(name, os.environ.get("QUIVER_DATA"), top, home)
    if path is None:
        if name not in REGISTRY:
            raise ConfigError(
                f"no data set {name}: it is not a file, not in the registry"
                f" ({command()} data list), and there is no {name}.hdf5 in QUIVER_DATA"
            )
        try:
            path = download(name, home, update)
        except DataError as error:
            known = REGISTRY[name]
            raise DataError(
                f"{error}\nPut {name}.hdf5 into a folder and set QUIVER_DATA to it, or make"
                " a set of the same shape, and run with --data and the name that it gets:\n"
                f"  {command()} data make --rows {known.rows} --dim {known.dimensions}"
                f" --metric {'angular' if known.metric == 'ip' else known.metric}"
            ) from error
    return path


def get(name: str, top: Path | None, home: Path, update: Callable[[str], None]) -> Dataset:
    """A data set by name or file."""
    path = file_of(name, top, home, update)
    dataset, _ = read(path)
    if path.parent == home / "download" and name not in CONTENT:
        verify(path, home)
    return dataset
