"""What an adapter must do.

An Engine starts its server (or nothing), loads rows, builds an index and hands out
sessions. A Session is one client's connection; its methods are what is timed, and
encode() is not. Embedded engines are shared by threads; the sessions of the others are
made in processes of their own, so their factories are pickled.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from quiver_bench.conditions import Clause, Columns, Values, columns
from quiver_bench.datasets import Dataset
from quiver_bench.errors import UnsupportedError
from quiver_bench.records import Params
from quiver_bench.servers import Process
from quiver_bench.truth import Floats, distances

# The columns of a row beside its vector, for conditions: numbers 0 to n - 1, each once.
ANY = "any_rank"  # in random order
NEAR = "near_rank"  # by distance to one row of the set


@dataclass(frozen=True)
class Where:
    """A condition: column < below. It passes exactly the `below` lowest rows."""

    column: str
    below: int


@dataclass(frozen=True)
class Search:
    """What the sessions are to search with."""

    k: int
    params: Params = field(default_factory=dict)
    where: Where | None = None
    clauses: tuple[Clause, ...] = ()  # of a filter suite; their numbers come with each query


@dataclass(frozen=True)
class Counted:
    """What one search did, by the server's own count."""

    pages_hit: int
    pages_read: int
    pages_planning: int  # hit or read while it was planned
    rows: int  # of the table that were looked at
    plan: str  # the kinds of its scans


@dataclass(frozen=True)
class Data:
    """The rows of a run, with the columns for conditions, int32 [n]."""

    dataset: Dataset
    any_rank: npt.NDArray[np.int32]
    near_rank: npt.NDArray[np.int32]
    columns: Columns | None = None  # of the filter suites, where a run has them

    @staticmethod
    def of(dataset: Dataset, seed: int) -> Data:
        n = dataset.rows
        rng = np.random.default_rng(seed)
        any_rank = rng.permutation(n).astype(np.int32)
        anchor = dataset.train[int(rng.integers(n))]
        near_rank = np.empty(n, dtype=np.int32)
        near_rank[np.argsort(distances(dataset.train, anchor, dataset.metric), kind="stable")] = (
            np.arange(n, dtype=np.int32)
        )
        return Data(dataset, any_rank, near_rank)

    def with_columns(self, seed: int) -> Data:
        """With the columns of the filter suites."""
        made = columns(
            self.dataset.train, self.dataset.queries, self.dataset.metric, self.any_rank,
            self.near_rank, seed,
        )  # fmt: skip
        return replace(self, columns=made)

    def ranks(self, row: int) -> tuple[int, int]:
        """The columns of a row; a row that is inserted again keeps those of its vector."""
        row %= self.dataset.rows
        return int(self.any_rank[row]), int(self.near_rank[row])

    def passing(self, where: Where) -> npt.NDArray[np.bool_]:
        column = self.any_rank if where.column == ANY else self.near_rank
        return column < where.below


@dataclass(frozen=True)
class Built:
    """What building took."""

    seconds: float
    index_bytes: int
    table_bytes: int = 0
    mode: str = "bulk"  # "insert": the index is made as rows arrive, loading is in it
    notes: tuple[str, ...] = ()
    loading_s: float = 0.0  # of loading that only build() can do, not in seconds


class Session(ABC):
    """One client."""

    def encode(self, vector: Floats) -> Any:
        """The query as it is sent; not timed."""
        return vector

    @abstractmethod
    def search(self, query: Any) -> Sequence[int]:
        """The row numbers of the k nearest, nearest first."""

    def encode_values(self, values: Values) -> Any:
        """The numbers of a condition as they are sent; not timed."""
        return values

    def search_where(self, asked: tuple[Any, Any]) -> Sequence[int]:
        """The k nearest rows that meet Search.clauses. asked: what encode() and encode_values()
        made."""
        raise UnsupportedError("has no conditions of the filter suites")

    def count(self, asked: tuple[Any, Any]) -> Counted:
        """Search once more, and say what that took."""
        raise UnsupportedError("does not count pages and rows")

    def flush(self) -> None:
        """Hand over what the server's counters do not show yet; not timed."""

    def ping(self) -> None:
        """The cheapest round trip: what the client and its driver cost."""
        raise UnsupportedError("no round trip to a server")

    def read(self, row: int) -> bool:
        """Fetch a row by its number; whether it is there."""
        raise UnsupportedError("cannot read a row by its number")

    def find(self, value: int) -> Sequence[int]:
        """The rows whose any_rank is this."""
        raise UnsupportedError("cannot search by a condition alone")

    def insert(self, row: int, vector: Any, ranks: tuple[int, int]) -> None:
        raise UnsupportedError("cannot insert under its index")

    def update(self, row: int, vector: Any, ranks: tuple[int, int]) -> None:
        """Give a row another vector."""
        raise UnsupportedError("cannot update a row")

    def delete(self, row: int) -> None:
        raise UnsupportedError("cannot delete a row")

    def close(self) -> None:
        return


SessionFactory = Callable[[], Session]


class Engine(ABC):
    """One engine of a suite."""

    adapter: ClassVar[str]
    label: str = ""  # said beside its name in every table
    embedded: ClassVar[bool] = True
    reads_while_writing: ClassVar[bool] = True  # and takes inserts of several clients
    several_clients: ClassVar[bool] = True
    indexes_inserts: ClassVar[bool] = True  # at once
    parameters: ClassVar[tuple[str, ...]] = ()  # of build
    search_parameters: ClassVar[tuple[str, ...]] = ()  # of query and filter

    def __init__(self, name: str, options: Params, place: Path, top: Path | None) -> None:
        """place: a folder of its own; top: the checkout, if there is one."""
        self.name, self.options, self.place, self.top = name, options, place, top
        self.data: Data

    @classmethod
    def keys(cls, options: Params) -> tuple[tuple[str, ...], tuple[str, ...]]:  # noqa: ARG003
        """The parameters, and those of a search, that an engine with these options reads."""
        return cls.parameters, cls.search_parameters

    @abstractmethod
    def start(self, server: Params) -> str:
        """Make it ready, with these settings; answers its version.

        MissingError when it is not on this machine.
        """

    def stop(self) -> None:
        return

    def alive(self) -> bool:
        return True

    def pids(self) -> Iterable[int]:
        """The processes whose reads and processor time are watched."""
        return ()

    def pages(self) -> tuple[int, int] | None:
        """Buffers that were found in memory, and that were read, so far; None: nobody counts."""
        return None

    @abstractmethod
    def load(self, data: Data) -> float:
        """Take the rows, without an index; seconds."""

    @abstractmethod
    def build(self, params: Params) -> Built:
        """Make the index, in place of the one before."""

    def empty(self, params: Params) -> None:
        """No rows, and the index made: for inserts."""
        raise UnsupportedError("cannot insert under its index")

    def settle(self) -> None:
        """After changes: what its users would run (VACUUM, optimize)."""

    def settings(self) -> Params:
        """Settings as the engine says they are."""
        return {}

    def limit_memory(self, buffers_mb: int, memory_mb: int) -> str:
        """Go on with these buffers, and so much memory with the file cache; names the method.

        0 and 0 end it.
        """
        raise UnsupportedError("memory tiers are made for engines inside PostgreSQL")

    def out_of_memory(self) -> bool:
        """Whether limit_memory() has cost it a process."""
        return False

    def check_plan(self, search: Search) -> None:
        """MeasureError when a search would not use the index, or not its settings.

        Under a condition a planner may choose another way.
        """

    @abstractmethod
    def sessions(self, search: Search) -> SessionFactory:
        """Makes a session; UnsupportedError when it cannot search like that."""


class ProcessEngine(Engine):
    """An engine whose start() runs a server of ours, which is not PostgreSQL."""

    embedded = False
    process: Process | None = None  # before start()

    def stop(self) -> None:
        if self.process:
            self.process.stop()

    def alive(self) -> bool:
        return self.process is not None and self.process.alive()

    def pids(self) -> Iterable[int]:
        return (self.process.process.pid,) if self.process and self.process.process else ()


def take(params: Params, name: str, default: int) -> int:
    """A whole number of params."""
    value = params.get(name, default)
    return default if value is None else int(value)
