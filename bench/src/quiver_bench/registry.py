"""Published data sets, those of the five reports among them: what they are, and how to have them."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from quiver_bench.console import command
from quiver_bench.datasets import CONTENT, VIBE_METRICS, Dataset, find_file, read
from quiver_bench.download import fetch, sha256
from quiver_bench.errors import ConfigError, DataError

ANN_BENCHMARKS = "https://ann-benchmarks.com/"
BIG_ANN = "https://dl.fbaipublicfiles.com/billion-scale-ann-benchmarks/"
HUGGING_FACE = "https://huggingface.co/datasets/"


@dataclass(frozen=True)
class Known:
    """A published data set. url is None when it cannot be fetched.

    With files it is that of their folder; they are fetched in this order, rows first.
    """

    rows: int
    queries: int
    dimensions: int
    metric: str
    megabytes: int  # of the file, about
    licence: str
    url: str | None
    where: str = ""
    files: tuple[str, ...] = ()

    @property
    def note(self) -> str:
        return self.url or self.where


def _ann(name: str) -> str:
    return f"{ANN_BENCHMARKS}{name}.hdf5"


def _vibe(rows: int, queries: int, name: str) -> Known:
    """VIBE's files are named NAME-DIMENSIONS-METRIC."""
    dimensions, metric = int(name.split("-")[-2]), name.split("-")[-1]
    return Known(
        rows, queries, dimensions, VIBE_METRICS.get(metric, metric),
        (rows + queries) * dimensions * 4 // 1_000_000, "see its page (the code is MIT)",
        f"{HUGGING_FACE}vector-index-bench/vibe/resolve/main/{name}.hdf5",
    )  # fmt: skip


_TEXMEX = "see corpus-texmex.irisa.fr"
_GLOVE = "PDDL 1.0 (Stanford NLP)"
_DBPEDIA = "CC BY-SA 3.0 (DBpedia); embeddings by OpenAI's ada-002"

# Only Hugging Face publishes checksums (download.py), and none of ours is invented: a file's
# SHA-256 is kept when it is first read and compared from then on (Fashion-MNIST: known, CONTENT).
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
    **{
        name: _vibe(rows, 1_000, name)
        for name, rows in (
            ("agnews-mxbai-1024-euclidean", 769_382),
            ("arxiv-nomic-768-normalized", 1_344_643),
            ("landmark-dino-768-cosine", 760_757),
            ("laion-clip-512-normalized", 1_000_448),  # queries of another kind than the rows
            ("yahoo-minilm-384-normalized", 677_305),
            ("yi-128-ip", 187_843),
        )
    },
    # With tags: bigann.read_tags() reads those of rows and queries.
    "yfcc-10m-192-euclidean": Known(
        10_000_000, 100_000, 192, "euclidean", 3000, "see big-ann-benchmarks.com",
        f"{BIG_ANN}yfcc100M/", "",
        ("base.10M.u8bin", "query.public.100K.u8bin", "GT.public.ibin",
         "base.metadata.10M.spmat", "query.metadata.public.100K.spmat"),
    ),
}  # fmt: skip


def verify(path: Path, home: Path) -> str:
    """Compare a downloaded file with what it was when it was first read."""
    folder = home / "download"
    known = path.relative_to(folder) if folder in path.parents else Path(path.name)
    kept = folder / f"{known}.sha256"
    found = sha256(path)
    if kept.is_file():
        if kept.read_text().strip() != found:
            raise DataError(f"{path} is not the file that was read before (its SHA-256 changed)")
        return "SHA-256 as before"
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(found + "\n")
    return "SHA-256 kept"


def download(name: str, home: Path, update: Callable[[str], None]) -> Path:
    """Fetch the files of a data set; DataError with the reason when they cannot be had.

    Answers the file of its rows. What arrived of a broken transfer stays for the next call.
    """
    known = REGISTRY[name]
    if known.url is None:
        raise DataError(f"{name} does not come as one file: {known.where}")
    folder = home / "download"
    pairs = [(known.url, folder / f"{name}.hdf5")]
    if known.files:
        folder = folder / name
        pairs = [(known.url + file, folder / file) for file in known.files]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        for url, target in pairs:
            if not (known.files and target.is_file()):
                fetch(url, target, 2 * known.megabytes << 20, update)
    except (DataError, OSError) as error:
        raise DataError(f"{name} could not be downloaded: {error}") from error
    found = pairs[0][1]
    try:
        read(found)
    except DataError as error:
        for _, target in pairs:
            target.unlink(missing_ok=True)
        raise DataError(f"{name} could not be downloaded: {error}") from error
    verify(found, home)
    return found


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
    if home / "download" in path.parents and name not in CONTENT:
        verify(path, home)
    return dataset
