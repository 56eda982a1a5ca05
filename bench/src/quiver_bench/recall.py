"""Recall by three definitions. Pure functions on arrays.

recall      rows as near as the true k-th count, equal distances being ties (TIE)
recall_ann  the same within 1e-3, as ann-benchmarks counts (katz, callaghan)
recall_ids  the row numbers themselves (docarray, edb)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from quiver_bench.truth import Floats, Truth, distances

# Two distances this close, relative to the larger of 1 and the distance, are a
# tie: engines compute in single precision.
TIE = 1e-6
ANN_BENCHMARKS_EPSILON = 1e-3


def recalls(
    answers: Mapping[int, Sequence[int]],
    train: Floats,
    queries: Floats,
    truth: Truth,
    metric: str,
) -> dict[str, float]:
    """Mean recalls of the answered queries, and how many answers were short or repeated a row.

    answers: row numbers by query number. A row counts once. Row number i stands for the
    vector train[i % n]: rows that are inserted again get new numbers.
    """
    n, k = len(train), truth.ids.shape[1]
    hits = hits_ann = hits_ids = possible = short = repeated = 0
    for query, answered in answers.items():
        ids = list(dict.fromkeys(int(i) for i in answered))
        true = truth.ids[query]
        eligible = int((true >= 0).sum())
        possible += eligible
        repeated += len(ids) < len(answered)
        short += len(ids) < eligible
        if not ids or not eligible:
            continue
        kept = np.asarray(ids[:k])
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
    }
