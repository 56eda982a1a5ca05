"""Vectors like embeddings, from a seed: a mixture of many anisotropic clusters.

    x = mean direction + topic center + sub-cluster center     (power-law cluster sizes)
      + t * (noise within the cluster, with a decaying spectrum)   (t: spread of a point)
      + a little isotropic noise, then scaled to unit length

all in the coordinates of K principal directions, turned into `dimensions` by one random
orthonormal basis. Every cluster has a spectrum of its own. Queries are fresh draws. The
numbers were fitted on real text embeddings (bench/README.md). Row i depends only on the
seed, the dimensions, the clusters and i: a larger set begins with the rows of a smaller one.
"""

from __future__ import annotations

import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import numpy.typing as npt

from quiver_bench.console import time_left
from quiver_bench.errors import DataError
from quiver_bench.truth import Doubles, Floats, nearest

Numbers = npt.NDArray[np.int64]
Found = tuple[Numbers, Doubles]

ALPHA_BETWEEN = 0.6  # spectrum of the centers: variance of axis i ~ (i + 1)^-alpha
ALPHA_WITHIN = 1.29  # spectrum of the noise inside a cluster
SHIFT = 1.0
TOPIC_SHARE = 0.16  # shares of the variance
CLUSTER_SHARE = 0.105
ISOTROPIC_SHARE = 0.115
ANISOTROPY = 0.84  # sd of the log of a cluster's scale along an axis
SPREAD = 0.11  # sd of the log of a point's spread
CLUSTER_SPREAD = 0.09
ZIPF = 0.4  # size of a cluster ~ rank^-zipf
BLOCK = 32768  # rows of one stream of random numbers: part of the recipe
STEP = 4096
NEIGHBORS = 100


class Mixture:
    """The model; draw() gives rows of it."""

    def __init__(self, dimensions: int, clusters: int, seed: int, mean_cos: float = 0.3) -> None:
        self.dimensions, self.seed, self.clusters = dimensions, seed, clusters
        self.axes = axes = min(dimensions, 768)
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0,)))
        basis = np.linalg.qr(rng.standard_normal((dimensions, axes)))[0].T
        self.basis = np.ascontiguousarray(basis, dtype=np.float32)
        numbers = np.arange(1, axes + 1)
        between = (numbers + SHIFT) ** -ALPHA_BETWEEN
        between /= between.sum()
        within = (numbers + SHIFT) ** -ALPHA_WITHIN
        within /= within.sum()
        within_share = 1.0 - TOPIC_SHARE - CLUSTER_SHARE - ISOTROPIC_SHARE
        topics = max(4, round(clusters**0.5))
        topic_of = rng.integers(0, topics, clusters)
        topic = rng.standard_normal((topics, axes)) * np.sqrt(between * TOPIC_SHARE)
        sub = rng.standard_normal((clusters, axes)) * np.sqrt(between * CLUSTER_SHARE)
        scale = np.sqrt(within)[None, :] * np.exp(
            ANISOTROPY * rng.standard_normal((clusters, axes))
        )
        scale *= np.sqrt(within_share / (scale**2).sum(axis=1, keepdims=True))
        scale *= np.exp(CLUSTER_SPREAD * rng.standard_normal((clusters, 1)))
        mean = rng.standard_normal(axes)
        mean *= np.sqrt(mean_cos / max(1e-9, 1.0 - mean_cos)) / np.linalg.norm(mean)
        self.center = (topic[topic_of] + sub + mean).astype(np.float32)
        self.scale = scale.astype(np.float32)
        weight = np.arange(1, clusters + 1) ** -ZIPF
        self.cumulated = np.cumsum(rng.permutation(weight / weight.sum()))
        self.cumulated[-1] = 1.0
        self.isotropic = np.float32(np.sqrt(ISOTROPIC_SHARE / dimensions))

    def draw(self, rows: int, stream: int, block: int) -> Floats:
        """Rows of a block of a stream (1: rows to index, 2: queries), of unit length."""
        rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(stream, block)))
        out = np.empty((rows, self.dimensions), np.float32)
        for start in range(0, rows, STEP):
            count = min(STEP, rows - start)
            # Always draw STEP rows: so a shorter block is the beginning of a longer one.
            chosen = np.searchsorted(self.cumulated, rng.random(STEP), side="right")[:count]
            chosen = np.minimum(chosen, self.clusters - 1)
            spread = np.exp(SPREAD * rng.standard_normal(STEP, dtype=np.float32))[:count, None]
            noise = rng.standard_normal((STEP, self.axes), dtype=np.float32)[:count]
            isotropic = rng.standard_normal((STEP, self.dimensions), dtype=np.float32)[:count]
            noise *= self.scale[chosen]
            noise *= spread
            noise += self.center[chosen]
            x = noise @ self.basis
            isotropic *= self.isotropic
            x += isotropic
            out[start : start + count] = x
        out /= np.linalg.norm(out, axis=1, keepdims=True)
        return out


def default_clusters(rows: int) -> int:
    return max(256, int(4 * rows**0.5))


def _kept(part: Path, state: Path, recipe: str) -> tuple[int, Found] | None:
    """Rows and neighbors so far of a run that was interrupted; None when nothing can be used."""
    try:
        with np.load(state) as kept:
            rows, made = int(kept["rows"]), (kept["ids"], kept["found"])
            same = str(kept["recipe"]) == recipe
        with h5py.File(part, "r") as file:
            return (rows, made) if same and len(file["train"]) >= rows else None
    except (OSError, KeyError, ValueError, zipfile.BadZipFile):
        return None


def _keep(state: Path, recipe: str, rows: int, ids: Numbers, found: Doubles) -> None:
    part = state.with_suffix(".new.npz")
    np.savez(part, recipe=recipe, rows=rows, ids=ids, found=found)
    part.replace(state)


def make(
    path: Path, rows: int, dimensions: int, metric: str, queries: int, seed: int,
    clusters: int = 0, mean_cos: float = 0.3, update: Callable[[str], None] = lambda _: None,
) -> None:  # fmt: skip
    """Write a set in the layout of ann-benchmarks; takes 4 * rows * dimensions bytes.

    Goes on where an interrupted run with the same arguments has ended; reads and keeps in
    memory one block of rows at a time.
    """
    if metric not in ("euclidean", "angular"):
        raise DataError("made data is euclidean or angular")
    if rows < 100 or dimensions < 2 or queries < 1:
        raise DataError("made data needs 100 rows, 2 dimensions and a query at least")
    if clusters < 0 or not 0 <= mean_cos < 1:
        raise DataError("made data needs 0 clusters or more, and a mean cosine from 0 to below 1")
    clusters = clusters or default_clusters(rows)
    mixture = Mixture(dimensions, clusters, seed, mean_cos)
    test = mixture.draw(queries, 2, 0)
    k = min(NEIGHBORS, rows)
    part, state = path.with_suffix(".part"), path.with_suffix(".part.npz")
    recipe = f"{rows} {dimensions} {metric} {queries} {seed} {clusters} {mean_cos}"
    ids = np.full((queries, k), -1, dtype=np.int64)
    found = np.full((queries, k), np.inf)
    done = 0
    kept = _kept(part, state, recipe)
    if kept:
        done, (ids, found) = kept
    began, before = time.monotonic(), done
    with h5py.File(part, "r+" if kept else "w") as file:
        train = file["train"] if kept else file.create_dataset("train", (rows, dimensions), "f4")
        for block in range(done // BLOCK, -(-rows // BLOCK)):
            first = block * BLOCK
            count = min(BLOCK, rows - first)
            x = mixture.draw(count, 1, block)
            train[first : first + count] = x
            near, far = nearest(x, test, k, metric)
            both = np.hstack([found, far])
            named = np.hstack([ids, np.where(near >= 0, near + first, -1)])
            order = np.lexsort((named, both))[:, :k]
            ids = np.take_along_axis(named, order, axis=1)
            found = np.take_along_axis(both, order, axis=1)
            done = first + count
            file.flush()
            _keep(state, recipe, done, ids, found)
            left = time_left(done - before, rows - before, time.monotonic() - began)
            update(f"{done:,} of {rows:,} rows{left}")
        last = {"test": test, "neighbors": ids.astype(np.int32), "distances": found.astype("f4")}
        for name, data in last.items():
            if name in file:
                del file[name]
            file.create_dataset(name, data=data)
        file.attrs["distance"], file.attrs["dimension"] = metric, dimensions
        file.attrs["type"], file.attrs["point_type"] = "dense", "float"
        file.attrs["source"] = source(seed, clusters)
    part.rename(path)
    path.with_name(f"{path.name}.sha256").unlink(missing_ok=True)  # of one there was before
    state.unlink()


def source(seed: int, clusters: int) -> str:
    return f"quiver-bench data make: seed {seed}, {clusters} clusters"


def check(path: Path, rows: int, dimensions: int, metric: str, queries: int, seed: int) -> None:
    """DataError when a file was not made with these arguments."""
    with h5py.File(path, "r") as file:
        found = file["train"].shape, file["test"].shape, file.attrs["distance"]
        same = found == ((rows, dimensions), (queries, dimensions), metric)
        same = same and file.attrs.get("source") == source(seed, default_clusters(rows))
    if not same:
        raise DataError(f"{path} was made with other arguments than the suite's: remove it")
