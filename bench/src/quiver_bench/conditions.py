"""Conditions of the filter suites: columns made for a data set, and the cases that ask for them.

Every suite is modeled on a published one, whose columns belong to vectors of its own. The
columns here are made for the vectors at hand, from a seed, so that any data set can be used:

grid     shares of the rows times correlation from -1 to 1, as Lucene's benchmark of filters
labels   labels and ranges, alone and together, as FANNBench
joined   a condition on a second table, as MoReVec's movies and reviews
text     words of a text that a GIN index has, as ParadeDB's harness
tags     many tags of a large vocabulary, one or two a query, as YFCC-10M of big-ann-benchmarks

Text, tags and kinds go with the vectors, as they do in life: half of a row's words and tags come
from the topic that its kind has, and the rest from what all rows have in common. Labels, values
and owners have nothing to do with the vectors. Frequencies of labels, words and tags are
Zipf's (1 / rank).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from quiver_bench.truth import Floats

Ints = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]
Values = tuple[tuple[int, ...], ...]  # of each clause its numbers

SUITES = ("grid", "labels", "joined", "text", "tags")
SHARES = (0.5, 0.1, 0.05, 0.01, 0.001)
CORRELATIONS = (-1.0, -0.5, 0.0, 0.5, 1.0)

KINDS = 50  # of rows: the nearest of so many rows
LABELS = 100
ROWS_OF_OWNER = 20
WORDS, WORDS_OF_ROW = 20_000, 20
TAGS, TAGS_OF_ROW = 200_386, 11  # YFCC-10M: 200,386 tags, 10.8 of them a row
BLOCK = 8192


@dataclass(frozen=True)
class Clause:
    """A part of a condition; all parts must hold. Numbers come with each query.

    equal    column = a
    below    column < a
    between  a <= column < b
    all      the row's numbers in column (tags, words) include all of these
    owner    the row's owner, a row of the second table, has column < a (grade) or = a (owner)
    """

    kind: Literal["equal", "below", "between", "all", "owner"]
    column: str


@dataclass(frozen=True)
class Bags:
    """Several numbers a row: those of row i are numbers[starts[i]:starts[i + 1]], ascending."""

    starts: npt.NDArray[np.int64]  # [n + 1]
    numbers: Ints

    def of(self, row: int) -> list[int]:
        found: list[int] = self.numbers[self.starts[row] : self.starts[row + 1]].tolist()
        return found

    @property
    def rows(self) -> int:
        return len(self.starts) - 1

    @cached_property
    def _inverted(self) -> tuple[Ints, npt.NDArray[np.int64]]:
        """All numbers ascending, and the row of each."""
        order = np.argsort(self.numbers, kind="stable")
        row_of = np.repeat(np.arange(self.rows), np.diff(self.starts))
        return self.numbers[order], row_of[order]

    def having(self, number: int) -> npt.NDArray[np.int64]:
        """The rows that have it."""
        numbers, rows = self._inverted
        first, last = np.searchsorted(numbers, [number, number + 1])
        return rows[first:last]

    @cached_property
    def counts(self) -> npt.NDArray[np.int64]:
        """How many rows have number i."""
        return np.bincount(self.numbers)


@dataclass(frozen=True)
class Columns:
    """What the rows of a data set have beside the vector."""

    numbers: Mapping[str, Ints]  # [n] each
    bags: Mapping[str, Bags]
    owners: Mapping[str, Ints]  # the second table: [owners] each, of owner 0, 1, ...
    kind_of_query: Ints

    def _clause(self, clause: Clause, values: tuple[int, ...]) -> Bools:
        if clause.kind == "all":
            bags = self.bags[clause.column]
            hit = np.zeros(bags.rows, dtype=np.int32)
            for number in set(values):
                hit[bags.having(number)] += 1
            return np.asarray(hit == len(set(values)))
        if clause.kind == "owner":
            owner = self.numbers["owner"]
            if clause.column == "owner":
                return np.asarray(owner == values[0])
            return np.asarray(self.owners[clause.column][owner] < values[0])
        column = self.numbers[clause.column]
        if clause.kind == "equal":
            return np.asarray(column == values[0])
        if clause.kind == "below":
            return np.asarray(column < values[0])
        return np.asarray((column >= values[0]) & (column < values[1]))

    def passing(self, clauses: Sequence[Clause], values: Values) -> Bools:
        """Which rows pass, bool [n]."""
        found = self._clause(clauses[0], values[0])
        for clause, one in zip(clauses[1:], values[1:], strict=True):
            found &= self._clause(clause, one)
        return found


@dataclass(frozen=True)
class Case:
    """One condition, with the numbers of each of its queries."""

    suite: str
    name: str
    clauses: tuple[Clause, ...]
    queries: npt.NDArray[np.int64]  # numbers of the data set's queries
    values: tuple[Values, ...]  # of each of them


def corr_column(correlation: float) -> str:
    """corr_m50 for -0.5, corr_p100 for 1."""
    return f"corr_{'m' if correlation < 0 else 'p'}{abs(round(100 * correlation))}"


def _ranks(score: npt.NDArray[np.float64]) -> Ints:
    ranks = np.empty(len(score), dtype=np.int32)
    ranks[np.argsort(score, kind="stable")] = np.arange(len(score), dtype=np.int32)
    return ranks


def _kinds(anchors: Floats, vectors: Floats, metric: str) -> Ints:
    """Of each vector the number of its nearest anchor."""
    doubles = anchors.astype(np.float64)
    offset = np.zeros(len(anchors))
    if metric == "euclidean":
        offset = np.einsum("ij,ij->i", doubles, doubles) / 2
    elif metric == "angular":
        doubles /= np.maximum(np.linalg.norm(doubles, axis=1, keepdims=True), 1e-30)
    blocks = [
        np.argmin(offset - vectors[start : start + BLOCK].astype(np.float64) @ doubles.T, axis=1)
        for start in range(0, len(vectors), BLOCK)
    ]
    return np.concatenate(blocks).astype(np.int32)


def _zipf(rng: np.random.Generator, size: int, kinds: int) -> npt.NDArray[np.int64]:
    """Numbers 0 to kinds - 1, number i with a chance like 1 / (i + 1)."""
    chances = np.cumsum(1.0 / np.arange(1, kinds + 1))
    return np.asarray(np.searchsorted(chances, rng.random(size) * chances[-1]), dtype=np.int64)


def _bags(rng: np.random.Generator, kind: Ints, mean: int, vocabulary: int) -> Bags:
    """1 to 2 * mean - 1 draws a row, half of them of its kind's topic; a number once a row."""
    n = len(kind)
    sizes = rng.integers(1, 2 * mean, n)
    row = np.repeat(np.arange(n), sizes)
    drawn = _zipf(rng, len(row), vocabulary)
    topics = rng.integers(0, vocabulary, KINDS)
    of_topic = rng.random(len(row)) < 0.5
    drawn = np.where(of_topic, (drawn + topics[kind[row]]) % vocabulary, drawn)
    both = np.unique(row * vocabulary + drawn)
    starts = np.searchsorted(both, np.arange(n + 1) * vocabulary)
    return Bags(starts.astype(np.int64), (both % vocabulary).astype(np.int32))


def columns(
    train: Floats, queries: Floats, metric: str, any_rank: Ints, near_rank: Ints, seed: int
) -> Columns:
    """The columns of all suites for these rows; the same for the same seed."""
    n = len(train)
    rng = np.random.default_rng([seed, 1])
    anchors = train[rng.choice(n, min(KINDS, n), replace=False)]
    kind = _kinds(anchors, train, metric)
    numbers: dict[str, Ints] = {"kind": kind}
    for c in CORRELATIONS:
        numbers[corr_column(c)] = _ranks(c * near_rank + (1 - abs(c)) * any_rank)
    numbers["label"] = _zipf(rng, n, LABELS).astype(np.int32)
    numbers["value"] = rng.permutation(n).astype(np.int32)
    owners = max(1, n // ROWS_OF_OWNER)
    numbers["owner"] = rng.integers(0, owners, n).astype(np.int32)
    bags = {
        "words": _bags(rng, kind, WORDS_OF_ROW, WORDS),
        "tags": _bags(rng, kind, TAGS_OF_ROW, TAGS),
    }
    grade = rng.permutation(owners).astype(np.int32)
    return Columns(numbers, bags, {"grade": grade}, _kinds(anchors, queries, metric))


def word(number: int) -> str:
    """How a text has a word."""
    return f"w{number}"


def percent(share: float) -> str:
    return f"{100 * share:g} %"


class Cases:
    """Makes the cases of a suite, with so many queries each."""

    def __init__(
        self, made: Columns, near: npt.NDArray[np.int64], nearest_row: npt.NDArray[np.int64],
        count: int, seed: int, shares: Sequence[float], correlations: Sequence[float],
    ) -> None:  # fmt: skip
        """near: all queries, those that look where near_rank is low first.
        nearest_row: the nearest row of every query."""
        self.made, self.near, self.nearest_row = made, near, nearest_row
        self.count, self.shares, self.correlations = min(count, len(near)), shares, correlations
        self.rows = len(made.numbers["value"])
        self.rng = np.random.default_rng([seed, 2])
        self.any = np.sort(self.rng.permutation(len(near))[: self.count])

    def _case(
        self, suite: str, name: str, clauses: Sequence[Clause], values: Iterable[Values],
        queries: npt.NDArray[np.int64] | None = None,
    ) -> Case:  # fmt: skip
        chosen = self.any if queries is None else queries
        return Case(suite, name, tuple(clauses), chosen, tuple(values))

    def of(self, suite: str) -> Iterator[Case]:
        """All cases of a suite, in one order."""
        yield from {
            "grid": self.grid, "labels": self.labels, "joined": self.joined, "text": self.text,
            "tags": self.tags,
        }[suite]()  # fmt: skip

    def grid(self) -> Iterator[Case]:
        """The queries are those that look where the rows of correlation 1 are."""
        queries = self.near[: self.count]
        for c in self.correlations:
            for share in self.shares:
                below = max(1, round(share * self.rows))
                values: Values = ((below,),)
                yield self._case("grid", f"{percent(share)}, correlation {c:g}",
                                 [Clause("below", corr_column(c))], [values] * self.count, queries)  # fmt: skip

    def _window(self, share: float) -> tuple[int, int]:
        width = max(1, round(share * self.rows))
        first = int(self.rng.integers(0, self.rows - width + 1))
        return first, first + width

    def labels(self) -> Iterator[Case]:
        label, kind = self.made.numbers["label"], self.made.numbers["kind"]
        own = [int(self.made.kind_of_query[query]) for query in self.any]
        equal, between = Clause("equal", "label"), Clause("between", "value")
        of_kind = [Clause("equal", "kind")]

        def of_a_row() -> tuple[int]:
            return (int(label[self.rng.integers(self.rows)]),)

        def other(number: int) -> tuple[int]:
            others = kind[kind != number]
            return (int(self.rng.choice(others)) if len(others) else number,)

        yield self._case("labels", "a label", [equal], [(of_a_row(),) for _ in own])
        yield self._case("labels", "the query's own kind", of_kind, [((one,),) for one in own])
        yield self._case("labels", "another kind", of_kind, [(other(one),) for one in own])
        for share in (0.1, 0.01):
            ranges = [(self._window(share),) for _ in own]
            yield self._case("labels", f"a range of {percent(share)}", [between], ranges)
        both = [(of_a_row(), self._window(0.1)) for _ in own]
        yield self._case("labels", "a label and a range of 10 %", [equal, between], both)

    def joined(self) -> Iterator[Case]:
        owners = len(self.made.owners["grade"])
        grade = Clause("owner", "grade")
        for share in (0.5, 0.1, 0.01):
            values: Values = ((max(1, round(share * owners)),),)
            name = f"{percent(share)} of the owners"
            yield self._case("joined", name, [grade], [values] * self.count)
        one = [((int(self.rng.integers(owners)),),) for _ in self.any]
        yield self._case("joined", "one owner", [Clause("owner", "owner")], one)
        half = max(1, owners // 2)
        both = [((half,), self._window(0.1)) for _ in self.any]
        yield self._case("joined", "half of the owners and a range of 10 %",
                         [grade, Clause("between", "value")], both)  # fmt: skip

    def text(self) -> Iterator[Case]:
        words = self.made.bags["words"]
        clause = [Clause("all", "words")]
        for share in (0.1, 0.01, 0.001):
            # Ten words whose frequency is nearest to the share.
            wanted = max(1.0, share * self.rows)
            away = np.abs(np.log(np.maximum(words.counts, 1e-9) / wanted))
            some = np.argsort(away, kind="stable")[:10]
            chosen = [((int(self.rng.choice(some)),),) for _ in self.any]
            yield self._case("text", f"a word in {percent(share)}", clause, chosen)
        rows = self.rng.integers(self.rows, size=self.count)
        yield self._case("text", "two words of a row", clause, self._some_of(words, rows, 2))

    def tags(self) -> Iterator[Case]:
        """A query has tags as a row like it has them: those of its nearest row."""
        tags, rows = self.made.bags["tags"], self.nearest_row[self.any]
        for count, name in ((1, "one tag"), (2, "two tags")):
            yield self._case(
                "tags", name, [Clause("all", "tags")], self._some_of(tags, rows, count)
            )

    def _some_of(self, bags: Bags, rows: npt.NDArray[np.int64], count: int) -> Iterator[Values]:
        """Of each of these rows so many of its numbers, or all it has."""
        for row in rows:
            numbers = self.rng.permutation(bags.of(int(row)))[:count]
            yield (tuple(int(number) for number in numbers),)


@cache
def names(suite: str, shares: tuple[float, ...], correlations: tuple[float, ...]) -> list[str]:
    """Of its cases, without making them: a run counts them before it has columns."""
    few = np.zeros((2, 2), dtype=np.float32)
    rank = np.arange(2, dtype=np.int32)
    made = columns(few, few, "euclidean", rank, rank, 1)
    zeros = np.zeros(2, dtype=np.int64)
    return [case.name for case in Cases(made, zeros, zeros, 1, 1, shares, correlations).of(suite)]
