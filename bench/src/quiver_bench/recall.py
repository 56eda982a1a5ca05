"""Recall by three definitions. Pure functions on arrays.

recall      rows as near as the true k-th count, equal distances being ties (tie())
recall_ann  the same within 1e-3, as ann-benchmarks counts (katz, callaghan)
recall_ids  the row numbers themselves (docarray, edb)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from quiver_bench.truth import Floats, Truth, distances

Answers = Iterable[tuple[int, Sequence[int]]]
Allowed = Callable[[int, npt.NDArray[np.int64]], npt.NDArray[np.bool_]]

TIE = 1e-6  # engines compute in single precision
ANN_BENCHMARKS_EPSILON = 1e-3


def tie(rows: Floats, query: Floats, kth: float, metric: str) -> float:
    """How much farther than the true k-th one of these rows may be, and count as near as it.

    It is relative to what a distance is computed from: euclidean to the distance itself, ip to
    the lengths of the query and of the longest of the rows. Angular distances are at most 2.
    """
    if metric == "ip":
        lengths = np.linalg.norm(rows.astype(np.float64), axis=1)
        return TIE * float(np.linalg.norm(query.astype(np.float64)) * lengths.max(initial=0.0))
    return TIE * (kth if metric == "euclidean" else 1.0)


def recalls(
    answers: Answers,
    train: Floats,
    queries: Floats,
    truth: Truth,
    metric: str,
    allowed: Allowed | None = None,
) -> dict[str, float]:
    """Mean recalls of the answered queries, and how many answers were short, repeated a row
    or had one that they must not have.

    answers: a query's number and row numbers, of each client. A row counts once; numbers below 0 are none. Row
    number i stands for the vector train[i % n]: rows that are inserted again get new numbers.
    allowed says of a query which rows may be found: those that pass the condition, those that are
    there. Others may well be nearer than the true neighbors, and are no hits.
    """
    n, k = len(train), truth.ids.shape[1]
    hits = hits_ann = hits_ids = possible = short = repeated = wrong = 0
    for query, answered in answers:
        given = [int(i) for i in answered if i >= 0]
        ids = list(dict.fromkeys(given))
        true = truth.ids[query]
        eligible = int((true >= 0).sum())
        possible += eligible
        repeated += len(ids) < len(given)
        short += len(ids) < eligible
        if not ids or not eligible:
            continue
        kept = np.asarray(ids[:k], dtype=np.int64)
        if allowed is not None:
            may = allowed(query, kept)
            wrong += not may.all()
            kept = kept[may]
        rows = train[kept % n]
        found = distances(rows, queries[query], metric)
        kth = truth.distances[query, eligible - 1]
        near = kth + tie(rows, queries[query], kth, metric)
        hits += min(eligible, int((found <= near).sum()))
        hits_ann += min(eligible, int((found <= kth + ANN_BENCHMARKS_EPSILON).sum()))
        hits_ids += len({int(i) % n for i in kept} & set(true.tolist()))
    whole = max(1, possible)
    return {
        "recall": hits / whole,
        "recall_ann": hits_ann / whole,
        "recall_ids": hits_ids / whole,
        "short_results": float(short),
        "duplicate_results": float(repeated),
        "wrong_results": float(wrong),
    }
