"""Vectors of this machine's own package descriptions, where no file can be had.

TF-IDF over name, description and tags of every package that apt knows, reduced
by a truncated SVD (latent semantic analysis) and scaled to unit length.
"""

from __future__ import annotations

import hashlib
import importlib.util
import pickle
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np

from quiver_bench.console import Step, done_before
from quiver_bench.datasets import Dataset
from quiver_bench.errors import DataError
from quiver_bench.truth import Floats

LIMIT = 100_000
DIMENSIONS = 256
QUERIES = 1000
# What is shown at the end: a search in words, and rows near a row. The model knows which words go
# together. A search in few words has little of that, a whole description has more.
SEARCHES = ("play chess against the computer",)
NEAR = ("lynx", "nmap", "texmaker")
LIBRARY = re.compile(
    r"^(lib|python3?-|golang|ruby-|r-|node-|elpa-|php|fonts-|linux-|haskell|ghc)"
    r"|-(dev|dbg|dbgsym|docs?|data|common|l10n.*)$"
)


@dataclass(frozen=True)
class Packages(Dataset):
    """Rows with their texts, and how words become a vector."""

    texts: list[tuple[str, str]]
    encode: Callable[[str], Floats]

    def first(self, rows: int | None, queries: int | None = None) -> Self:
        fewer = super().first(rows, queries)
        return replace(fewer, texts=fewer.texts[: len(fewer.train)])


@dataclass(frozen=True)
class Package:
    """What apt says of one package."""

    name: str
    summary: str
    tags: str

    @property
    def text(self) -> str:
        """All its words; the summary twice, because it says most."""
        tags = " ".join(tag.split("::")[-1] for tag in re.split(r",\s*", self.tags))
        name = re.sub(r"[^a-zA-Z+]+", " ", self.name)
        return f"{name} {self.summary} {self.summary} {tags}"


def parse(lines: Iterable[str]) -> Iterator[Package]:
    """Read the stanzas of `apt-cache dumpavail`, the first version of every package."""
    fields: dict[str, str] = {}
    seen: set[str] = set()
    last = ""
    for raw in [*lines, ""]:
        line = raw.rstrip("\n")
        if line.startswith((" ", "\t")):
            if last == "Tag":
                fields[last] += " " + line.strip()
        elif line:
            last, _, value = line.partition(":")
            last = "Description" if last == "Description-en" else last
            fields[last] = value.strip()
        else:
            name, summary = fields.get("Package", ""), fields.get("Description", "")
            if name and summary and name not in seen:
                seen.add(name)
                yield Package(name, summary, fields.get("Tag", ""))
            fields, last = {}, ""


def known_packages() -> list[Package]:
    """What apt's lists on this machine hold."""
    try:
        dump = subprocess.run(
            ["apt-cache", "dumpavail"], capture_output=True, text=True, errors="replace", check=True
        )
    except (OSError, subprocess.CalledProcessError) as error:
        raise DataError(f"apt's package lists cannot be read: {error}") from error
    packages = list(parse(dump.stdout.splitlines()))
    if len(packages) > LIMIT:  # evenly, because they come in alphabetical order
        packages = [packages[i * len(packages) // LIMIT] for i in range(LIMIT)]
    if len(packages) < 5000:
        raise DataError(
            f"apt's lists hold only {len(packages)} packages with a description;"
            " run apt-get update, or set QUIVER_DATA"
        )
    return packages


def teachers(packages: list[Package]) -> list[int]:
    """The rows that the SVD learns from: programs, one of each kind.

    Two thirds of the packages are libraries, and the same few words tell them
    apart; they are indexed, but must not use up the dimensions.
    """
    first: dict[str, int] = {}
    for row, package in enumerate(packages):
        if not LIBRARY.search(package.name):
            kind = re.split(r"\(| - ", package.summary)[0].strip().lower()
            first.setdefault(kind, row)
    return list(first.values())


class TextModel:
    """TF-IDF, a truncated SVD whose leading axes are damped, unit length."""

    def __init__(self, packages: list[Package], update: Callable[[str], None]) -> None:
        from sklearn.decomposition import TruncatedSVD
        from sklearn.feature_extraction.text import TfidfVectorizer

        self.words = TfidfVectorizer(
            sublinear_tf=True, min_df=3, max_df=0.1, stop_words="english",
            token_pattern=r"(?u)\b[a-zA-Z][a-zA-Z0-9+]+\b",
        )  # fmt: skip
        update("TF-IDF")
        counted = self.words.fit_transform(package.text for package in packages)
        update("truncated SVD")
        self.svd = TruncatedSVD(DIMENSIONS, random_state=0, n_iter=3)
        self.svd.fit(counted[teachers(packages)])

    def encode(self, texts: list[str]) -> Floats:
        """Vectors of unit length; zero for a text without a known word."""
        vectors = self.svd.transform(self.words.transform(texts)) / np.sqrt(
            self.svd.singular_values_
        )
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors / np.where(norms > 0, norms, 1), dtype=np.float32)


def _need_scikit_learn() -> None:
    if importlib.util.find_spec("sklearn"):
        return
    with Step("Python package scikit-learn (.quiver/venv)"):
        wanted = Path(__file__).with_name("requirements-text.txt")
        pip = subprocess.run(  # noqa: PLW1510 - what it says is shown
            [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
             "-r", str(wanted)],
            capture_output=True, text=True,
        )  # fmt: skip
        if pip.returncode != 0:
            raise DataError(f"pip could not install scikit-learn: {pip.stderr.strip()[-300:]}")
        importlib.invalidate_caches()


def _fit(packages: list[Package], kept: Path) -> tuple[Floats, TextModel]:
    """Vectors of the packages and the model that made them, kept for the next run."""
    with Step(f"vectors of {len(packages):,} package descriptions") as step:
        model = TextModel(packages, step.update)
        vectors = model.encode([package.text for package in packages])
        step.note = f"{DIMENSIONS} dimensions"
    for old in kept.parent.glob("packages-*.pickle"):
        old.unlink()
    with kept.open("wb") as file:
        pickle.dump((vectors, model), file)
    return vectors, model


def make(home: Path) -> Packages:
    """The data set, made once and kept in home."""
    packages = known_packages()
    sources = [Path(__file__).read_text(), *(package.text for package in packages)]
    key = hashlib.sha256("\n".join(sources).encode()).hexdigest()[:16]
    kept = home / f"packages-{key}.pickle"
    _need_scikit_learn()
    if kept.is_file():
        with kept.open("rb") as file:
            vectors, model = pickle.load(file)
        done_before("vectors of package descriptions", f"{len(packages):,} packages")
    else:
        vectors, model = _fit(packages, kept)

    # Rows none of whose words the model knows have no direction.
    rows = np.flatnonzero(vectors.any(axis=1))
    # Queries as people put them: a summary alone, without name and tags.
    chosen = np.random.default_rng(1).choice(rows, min(len(rows), 2 * QUERIES), replace=False)
    queries = model.encode([packages[i].summary for i in chosen])
    return Packages(
        name=f"Debian packages, {DIMENSIONS} dimensions",
        identity=f"packages {key}",
        metric="angular",
        train=vectors[rows],
        queries=queries[queries.any(axis=1)][:QUERIES],
        texts=[(packages[i].name, packages[i].summary) for i in rows],
        encode=lambda words: model.encode([words])[0],
    )
