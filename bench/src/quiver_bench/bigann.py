"""Files of big-ann-benchmarks: vectors, true neighbors, and tags for conditions.

Numbers are little-endian. The layouts are those of its benchmark/dataset_io.py:

    fbin u8bin i8bin  uint32 n, uint32 d, then n * d numbers
    ibin bin          uint32 q, uint32 k, then q * k row numbers (int32), q * k distances
                      (float32); ibin may end after the row numbers
    spmat             int64 rows, columns, entries; int64 [rows + 1] where each row begins;
                      int32 [entries] columns; float32 [entries] values
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from quiver_bench.errors import DataError
from quiver_bench.truth import Floats, distances

KINDS = {".fbin": "<f4", ".u8bin": "u1", ".i8bin": "i1"}
FAR = 1e-2  # relative: published distances are squares of single precision


def read_vectors(path: Path, rows: int | None = None) -> Floats:
    """The vectors of a file [n, d], or its first rows, as float32."""
    kind = np.dtype(KINDS[path.suffix])
    n, d = _head(path)
    if not d or path.stat().st_size != 8 + n * d * kind.itemsize:
        raise DataError(f"{path} is no {path.suffix[1:]} file: {n} x {d} do not fill it")
    wanted = n if rows is None else min(n, rows)
    numbers = np.fromfile(path, dtype=kind, count=wanted * d, offset=8)
    return np.ascontiguousarray(numbers.reshape(wanted, d), dtype=np.float32)


def _head(path: Path) -> tuple[int, int]:
    head = np.fromfile(path, dtype="<u4", count=2)
    if len(head) < 2:
        raise DataError(f"{path} has no head")
    return int(head[0]), int(head[1])


def read_truth(path: Path) -> tuple[npt.NDArray[np.int32], Floats | None]:
    """Row numbers [q, k] and distances [q, k], None without.

    Under a condition that fewer than k rows match, the rest is -1.
    """
    q, k = _head(path)
    size, one = path.stat().st_size, q * k * 4
    if not one or size not in (8 + one, 8 + 2 * one):
        raise DataError(f"{path} is no file of neighbors: {q} x {k} do not fill it")
    ids = np.fromfile(path, dtype="<i4", count=q * k, offset=8).reshape(q, k)
    if size == 8 + one:
        return ids, None
    found = np.fromfile(path, dtype="<f4", count=q * k, offset=8 + one).reshape(q, k)
    return ids, found.astype(np.float32)


def check_truth(path: Path, train: Floats, queries: Floats, metric: str, checked: int) -> int:
    """Compute the distances of the first queries' neighbors again; how many queries.

    DataError when they are others. Distances may be squared, as faiss gives them, and inner
    products may have either sign.
    """
    ids, published = read_truth(path)
    if len(ids) != len(queries):
        raise DataError(f"{path} has {len(ids)} queries, and there are {len(queries)}")
    if ids.max() >= len(train) or ids.min() < -1:
        raise DataError(f"{path} has numbers of rows that are not there")
    if published is None:
        return 0
    for i in range(min(checked, len(ids))):
        here = ids[i] >= 0
        exact = distances(train[ids[i][here]], queries[i], metric)
        told = published[i][here]
        ways = {"euclidean": (exact, exact**2), "ip": (exact, -exact)}.get(metric, (exact,))
        if not any(np.allclose(way, told, rtol=FAR, atol=FAR) for way in ways):
            raise DataError(f"{path}: its distances are not those of the vectors")
    return min(checked, len(ids))


def companion(path: Path, kind: str) -> Path | None:
    """The file of "query" or "truth" beside one of vectors; public ones first."""
    if kind == "query":
        found = [p for p in path.parent.glob(f"*query*{path.suffix}") if p != path]
    else:
        found = [
            p for p in path.parent.iterdir()
            if p.suffix in (".ibin", ".bin")
            and re.search("gt|groundtruth", p.name.lower())
            and "unfiltered" not in p.name
        ]  # fmt: skip
    return min(found, key=lambda p: ("public" not in p.name, p.name), default=None)


@dataclass(frozen=True)
class Tags:
    """Tags of rows, or those that queries ask for: row i has tags[starts[i]:starts[i + 1]]."""

    starts: npt.NDArray[np.int64]
    tags: npt.NDArray[np.int32]
    vocabulary: int

    @property
    def rows(self) -> int:
        return len(self.starts) - 1

    def of(self, row: int) -> npt.NDArray[np.int32]:
        return self.tags[self.starts[row] : self.starts[row + 1]]

    def having(self, wanted: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
        """Which rows have all of these tags; those of no tag are all."""
        rows = np.repeat(np.arange(self.rows), np.diff(self.starts))
        passing = np.ones(self.rows, dtype=np.bool_)
        for tag in wanted:
            has = np.zeros(self.rows, dtype=np.bool_)
            has[rows[self.tags == tag]] = True
            passing &= has
        return passing


def read_tags(path: Path) -> Tags:
    """An spmat file. Its values, which are all 1, are left."""
    sizes = np.fromfile(path, dtype="<i8", count=3)
    if len(sizes) < 3 or (sizes < 0).any():
        raise DataError(f"{path} is no spmat file")
    rows, columns, entries = map(int, sizes)
    if path.stat().st_size != 24 + 8 * (rows + 1) + 8 * entries:
        raise DataError(f"{path} is no spmat file: {rows} rows of {entries} tags do not fill it")
    starts = np.fromfile(path, dtype="<i8", count=rows + 1, offset=24)
    tags = np.fromfile(path, dtype="<i4", count=entries, offset=24 + 8 * (rows + 1))
    if starts[0] != 0 or starts[-1] != entries or (np.diff(starts) < 0).any():
        raise DataError(f"{path}: its rows do not follow each other")
    if entries and (tags.min() < 0 or tags.max() >= columns):
        raise DataError(f"{path} has tags that are not there")
    return Tags(starts, tags, columns)
