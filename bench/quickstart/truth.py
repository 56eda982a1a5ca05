"""Exact neighbors, and recall measured against them. Pure functions on arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]

# Candidates beyond k that are ranked again in double precision: single
# precision may misplace near ties.
MARGIN = 50
# Two distances this close, relative to the larger of 1 and the distance, are a
# tie: the server computes in single precision.
TIE = 1e-6
BLOCK = 128


def distances(rows: Floats, query: Floats, metric: str) -> Doubles:
    """Distances of rows to one query as ann-benchmarks defines them, in double precision."""
    r, q = rows.astype(np.float64), query.astype(np.float64)
    if metric == "angular":
        norms = np.linalg.norm(r, axis=1) * np.linalg.norm(q)
        return np.asarray(1.0 - (r @ q) / np.maximum(norms, 1e-30))
    return np.asarray(np.linalg.norm(r - q, axis=1))


def nearest(train: Floats, queries: Floats, k: int, metric: str) -> Doubles:
    """The distances of every query's k nearest rows, ascending."""
    if metric == "angular":
        scaled = train / np.maximum(np.linalg.norm(train, axis=1, keepdims=True), 1e-30)
        offset = np.zeros(len(train), dtype=np.float32)
    else:
        scaled = train
        offset = np.einsum("ij,ij->i", train, train) / 2
    keep = min(len(train), k + MARGIN)
    found = np.empty((len(queries), k))
    for start in range(0, len(queries), BLOCK):
        block = queries[start : start + BLOCK]
        scores = offset - block @ scaled.T
        near = np.argpartition(scores, keep - 1, axis=1)[:, :keep]
        for i, candidates in enumerate(near):
            exact = distances(train[candidates], block[i], metric)
            found[start + i] = np.sort(exact)[:k]
    return found


def recall(
    answers: Sequence[Sequence[int]],
    train: Floats,
    queries: Floats,
    kth: Doubles,
    k: int,
    metric: str,
) -> float:
    """The share of the true k nearest that was answered; ties count by distance."""
    hits = 0
    for ids, query, limit in zip(answers, queries, kth, strict=False):
        if len(ids) > 0:
            found = distances(train[np.asarray(sorted(set(ids)))], query, metric)
            hits += min(k, int((found <= limit + TIE * max(1.0, abs(limit))).sum()))
    return hits / (k * len(answers))
