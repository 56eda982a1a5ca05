"""Exact neighbors: computed with numpy, kept in files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]

# Scores are products, which may misplace near ties. So many candidates beyond k are ranked again
# by their distances.
MARGIN = 50
ROWS, QUERIES = 4096, 128  # of a block
VERSION = 2  # of how truths are computed: what another one kept is not used


@dataclass(frozen=True)
class Truth:
    """The k nearest of every query: ids [q, k] (-1 where fewer exist), distances [q, k] (inf)."""

    ids: npt.NDArray[np.int64]
    distances: Doubles

    def first(self, k: int) -> Truth:
        return Truth(self.ids[:, :k], self.distances[:, :k])


def distances(rows: Floats, query: Floats, metric: str) -> Doubles:
    """Distances of rows to one query in double precision.

    euclidean and angular (1 - cosine) as ann-benchmarks defines them; ip is the negative
    inner product.
    """
    r, q = rows.astype(np.float64), query.astype(np.float64)
    if metric == "ip":
        return np.asarray(-(r @ q))
    if metric == "angular":
        norms = np.linalg.norm(r, axis=1) * np.linalg.norm(q)
        return np.asarray(1.0 - (r @ q) / np.maximum(norms, 1e-30))
    return np.asarray(np.linalg.norm(r - q, axis=1))


def nearest(
    train: Floats, queries: Floats, k: int, metric: str
) -> tuple[npt.NDArray[np.int64], Doubles]:
    """Every query's k nearest rows: numbers and distances, ascending, ties by number.

    With fewer than k rows the rest is -1 and inf.
    """
    ids = np.full((len(queries), k), -1, dtype=np.int64)
    found = np.full((len(queries), k), np.inf)
    take = min(len(train), k)
    if not take:
        return ids, found
    keep = min(len(train), k + MARGIN)
    near = np.zeros((len(queries), keep), dtype=np.int64)
    best = np.full((len(queries), keep), np.inf)
    for first in range(0, len(train), ROWS):
        rows = train[first : first + ROWS].astype(np.float64)
        offset = np.zeros(len(rows))
        if metric == "angular":
            rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-30)
        elif metric == "euclidean":
            offset = np.einsum("ij,ij->i", rows, rows) / 2
        for start in range(0, len(queries), QUERIES):
            block = slice(start, start + QUERIES)
            scores = np.hstack([best[block], offset - queries[block].astype(np.float64) @ rows.T])
            chosen = np.argpartition(scores, keep - 1, axis=1)[:, :keep]
            before = np.take_along_axis(near[block], np.minimum(chosen, keep - 1), axis=1)
            near[block] = np.where(chosen < keep, before, first + chosen - keep)
            best[block] = np.take_along_axis(scores, chosen, axis=1)
    for i, candidates in enumerate(near):
        exact = distances(train[candidates], queries[i], metric)
        order = np.lexsort((candidates, exact))[:take]
        ids[i, :take] = candidates[order]
        found[i, :take] = exact[order]
    return ids, found


def cached(
    folder: Path, digest: str, train: Floats, queries: Floats, k: int, metric: str,
    passing: npt.NDArray[np.bool_] | None = None,
) -> Truth:  # fmt: skip
    """The truth of these rows and queries, from folder or computed and kept there.

    digest: of train; it is not computed here. passing: the rows that pass a filter, or None for
    all.
    """
    sha = hashlib.sha256(f"{VERSION} {digest} {queries.shape} {k} {metric}".encode())
    sha.update(np.ascontiguousarray(queries).tobytes())
    if passing is not None:
        sha.update(np.packbits(passing).tobytes())
    path = folder / f"truth-{sha.hexdigest()[:24]}.npz"
    if path.is_file():
        with np.load(path) as kept:
            return Truth(kept["ids"], kept["distances"])
    if passing is None:
        ids, found = nearest(train, queries, k, metric)
    else:
        numbers = np.flatnonzero(passing)
        ids, found = nearest(train[numbers], queries, k, metric)
        if len(numbers):
            ids = np.where(ids >= 0, numbers[ids], -1)
    folder.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part.npz")
    np.savez(part, ids=ids, distances=found)
    part.rename(path)
    return Truth(ids, found)


def conditioned(
    folder: Path, digest: str, train: Floats, queries: Floats, k: int, metric: str,
    passing: Iterable[npt.NDArray[np.bool_]],
) -> Truth:  # fmt: skip
    """The truth of queries that have a condition each, from folder or computed and kept there.

    digest: of train. passing: of each query the rows that pass, bool [n].
    """
    ids = np.full((len(queries), k), -1, dtype=np.int64)
    found = np.full((len(queries), k), np.inf)
    packed = [np.packbits(one) for one in passing]
    sha = hashlib.sha256(f"{VERSION} {digest} each {queries.shape} {k} {metric}".encode())
    for array in (queries, *packed):
        sha.update(np.ascontiguousarray(array).tobytes())
    path = folder / f"truth-{sha.hexdigest()[:24]}.npz"
    if path.is_file():
        with np.load(path) as kept:
            return Truth(kept["ids"], kept["distances"])
    same: dict[bytes, list[int]] = {}
    for query, array in enumerate(packed):
        same.setdefault(array.tobytes(), []).append(query)
    for mask, members in same.items():
        bits = np.unpackbits(np.frombuffer(mask, dtype=np.uint8), count=len(train))
        rows = np.flatnonzero(bits)
        near, distance = nearest(train[rows], queries[members], k, metric)
        ids[members] = np.where(near >= 0, rows[near], -1) if len(rows) else near
        found[members] = distance
    folder.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part.npz")
    np.savez(part, ids=ids, distances=found)
    part.rename(path)
    return Truth(ids, found)
