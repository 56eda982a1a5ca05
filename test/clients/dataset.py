"""The rows that every client stores, and what its searches must find.

One table holds a column of each type. Distances are numpy's, in double precision,
of the values as the types keep them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

ROWS = 600
QUERIES = 10
DIMS = 32
SPARSE_DIMS = 400
BITS = 64
CATEGORIES = 5
K = 10
LISTS = 10
IVFFLAT_ORDER = 1e-3

EF_SEARCH = 100
# Least share of the true neighbors, over all queries of a case. With ef_search at
# 100 of 600 rows, a graph in order finds nearly all.
RECALL = 0.95

Found = Sequence[tuple[int, float]]


def _dense(rng: np.random.Generator, n: int, centers: np.ndarray) -> np.ndarray:
    picked = centers[rng.integers(len(centers), size=n)]
    return (picked + 0.7 * rng.standard_normal((n, DIMS))).astype(np.float32)


def _sparse(rng: np.random.Generator, n: int, topics: np.ndarray) -> np.ndarray:
    """Each row has words of its topic and words that all topics share."""
    rows = np.zeros((n, SPARSE_DIMS), dtype=np.float32)
    for row, topic in zip(rows, rng.integers(len(topics), size=n), strict=True):
        words = np.concatenate([rng.choice(topics[topic], 10, replace=False), rng.choice(20, 6, replace=False)])
        row[words] = rng.uniform(0.25, 2.0, len(words))
    return rows


def _bits(dense: np.ndarray, planes: np.ndarray) -> np.ndarray:
    return dense @ planes > 0


_rng = np.random.default_rng(20)
_centres = 1.5 * _rng.standard_normal((25, DIMS))
_topics = np.stack([20 + _rng.choice(SPARSE_DIMS - 20, 30, replace=False) for _ in range(25)])
_planes = _rng.standard_normal((DIMS, BITS))

_dense_rows, _dense_queries = _dense(_rng, ROWS, _centres), _dense(_rng, QUERIES, _centres)
rows: dict[str, np.ndarray] = {
    "vector": _dense_rows,
    "halfvec": _dense_rows.astype(np.float16),
    "sparsevec": _sparse(_rng, ROWS, _topics),
    "bit": _bits(_dense_rows, _planes),
}
queries: dict[str, np.ndarray] = {
    "vector": _dense_queries,
    "halfvec": _dense_queries.astype(np.float16),
    "sparsevec": _sparse(_rng, QUERIES, _topics),
    "bit": _bits(_dense_queries, _planes),
}
ids: list[int] = list(range(1, ROWS + 1))
categories: list[int] = [int(c) for c in _rng.integers(CATEGORIES, size=ROWS)]


def bit_text(bits: np.ndarray) -> str:
    return "".join("1" if bit else "0" for bit in bits)


@dataclass(frozen=True)
class Case:
    """A type and an operator; the column has the name of the type and an _."""

    type: str
    metric: str
    operator: str

    @property
    def column(self) -> str:
        return f"{self.type}_"

    @property
    def opclass(self) -> str:
        return f"{self.type}_{self.metric}_ops"

    @property
    def index(self) -> str:
        return f"items_{self.type}_{self.metric}"

    @property
    def queries(self) -> np.ndarray:
        return queries[self.type]

    def distances(self, query: np.ndarray, stored: np.ndarray | None = None) -> np.ndarray:
        a = rows[self.type] if stored is None else stored
        return METRICS[self.metric](a.astype(np.float64), query.astype(np.float64))

    def check(
        self,
        found: Sequence[Found],
        category: int | None = None,
        recall: float = RECALL,
        order: float = 1e-5,
    ) -> None:
        """found has for each query the ids and distances that the client read. In order,
        but for rounding: pgvector's ivfflat of normalized halves goes by the halves.
        """
        assert len(found) == QUERIES
        passing = np.array([category is None or c == category for c in categories])
        hits = 0
        for query, answer in zip(self.queries, found, strict=True):
            truth = self.distances(query)
            at = np.array([id for id, _ in answer]) - 1
            got = np.array([distance for _, distance in answer], dtype=np.float64)
            assert len(set(at)) == len(at) == K
            assert passing[at].all()
            np.testing.assert_allclose(got, truth[at], rtol=1e-4, atol=1e-4)
            assert (np.diff(got) >= -order).all()
            worst = np.sort(truth[passing])[K - 1]
            hits += int((truth[at] <= worst + 1e-4).sum())
        assert hits >= recall * K * QUERIES, f"recall {hits / (K * QUERIES)}"

    def __str__(self) -> str:
        return f"{self.type} {self.metric}"


def _cosine(a: np.ndarray, q: np.ndarray) -> np.ndarray:
    return 1 - (a @ q) / (np.linalg.norm(a, axis=1) * np.linalg.norm(q))


METRICS = {
    "l2": lambda a, q: np.linalg.norm(a - q, axis=1),
    "ip": lambda a, q: -(a @ q),
    "cosine": _cosine,
    "l1": lambda a, q: np.abs(a - q).sum(axis=1),
    "hamming": lambda a, q: np.abs(a - q).sum(axis=1),
    "jaccard": lambda a, q: 1 - np.minimum(a, q).sum(axis=1) / np.maximum(a, q).sum(axis=1),
}
_OPERATORS = {"l2": "<->", "ip": "<#>", "cosine": "<=>", "l1": "<+>", "hamming": "<~>", "jaccard": "<%>"}

CASES = [
    Case(type, metric, _OPERATORS[metric])
    for type, metrics in {
        "vector": ("l2", "ip", "cosine", "l1"),
        "halfvec": ("l2", "ip", "cosine", "l1"),
        "sparsevec": ("l2", "ip", "cosine", "l1"),
        "bit": ("hamming", "jaccard"),
    }.items()
    for metric in metrics
]
VECTOR_CASES = [case for case in CASES if case.type == "vector"]
IVFFLAT_CASES = [
    case
    for case in CASES
    if (case.type in ("vector", "halfvec") and case.metric != "l1") or case.metric == "hamming"
]


def find(type: str, metric: str) -> Case:
    return next(case for case in CASES if (case.type, case.metric) == (type, metric))


CREATE_TABLE = f"""
CREATE TABLE items (
    id int PRIMARY KEY,
    category int NOT NULL,
    vector_ vector({DIMS}),
    halfvec_ halfvec({DIMS}),
    sparsevec_ sparsevec({SPARSE_DIMS}),
    bit_ bit({BITS})
)"""


def create_index(case: Case, method: str = "hnsw") -> str:
    """The statement, for clients that have no call of their own for it."""
    options = "m = 16, ef_construction = 64" if method == "hnsw" else f"lists = {LISTS}"
    return (
        f"CREATE INDEX {case.index}{'' if method == 'hnsw' else '_' + method} ON items "
        f"USING {method} ({case.column} {case.opclass}) WITH ({options})"
    )


def as_json() -> str:
    """The same for a client of another language: rows, queries, true distances."""
    return json.dumps(
        {
            "dims": DIMS,
            "sparseDims": SPARSE_DIMS,
            "bits": BITS,
            "k": K,
            "lists": LISTS,
            "ivfflatOrder": IVFFLAT_ORDER,
            "efSearch": EF_SEARCH,
            "recall": RECALL,
            "categories": categories,
            "rows": {t: _plain(t, v) for t, v in rows.items()},
            "queries": {t: _plain(t, v) for t, v in queries.items()},
            "cases": [
                {
                    "type": case.type,
                    "metric": case.metric,
                    "operator": case.operator,
                    "opclass": case.opclass,
                    "column": case.column,
                    "index": case.index,
                    "ivfflat": case in IVFFLAT_CASES,
                    "distances": [case.distances(query).tolist() for query in case.queries],
                }
                for case in CASES
            ],
        }
    )


def _plain(type: str, values: np.ndarray) -> list:
    return [bit_text(v) for v in values] if type == "bit" else values.tolist()


if __name__ == "__main__":
    sys.stdout.write(as_json())
