"""Recall by three definitions. Pure functions on arrays.

recall      rows as near as the true k-th count, equal distances being ties (TIE)
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

# Two distances this close, relative to the larger of 1 and the distance, are a
# tie: engines compute in single precision.
TIE = 1e-6
ANN_BENCHMARKS_EPSILON = 1e-3


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
        found = distances(train[kept % n], queries[query], metric)
        kth = truth.distances[query, eligible - 1]
        hits += min(eligible, int((found <= kth + TIE * max(1.0, abs(kth))).sum()))
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
