"""./quickstart --scale: many made vectors, and what they take of time and disk.

The vectors are those of `quiver-bench data make`. They stay in a file, of which only the
part that is worked on is in memory; its exact neighbors were found while it was made.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np

from quiver_bench import synthetic
from quiver_bench.console import Step, done_before, duration, say
from quiver_bench.datasets import Dataset
from quiver_bench.errors import DataError
from quiver_bench.truth import Floats, Truth

DATABASE = "scale"
DIMENSIONS = 128
QUERIES = 1000
METRIC = "angular"
SEED = 1

MAKE, LOAD = "make", "load"
GIB = 2**30
# Of max_wal_size, which a checkpoint may overshoot.
WAL_BYTES = 4.5 * GIB


@dataclass(frozen=True)
class Shape:
    """How many vectors of how many dimensions."""

    rows: int
    dimensions: int

    @property
    def file(self) -> str:
        return f"scale-{self.rows}-{self.dimensions}-{METRIC}.hdf5"

    @property
    def identity(self) -> str:
        """All that the numbers depend on."""
        return f"{self.file} {QUERIES} {SEED}"


@dataclass(frozen=True)
class Cost:
    """What a row takes, and each of its dimensions: seconds per million, bytes."""

    seconds: float
    seconds_dimension: float
    bytes: float
    bytes_dimension: float

    def time(self, shape: Shape) -> float:
        return shape.rows / 1e6 * (self.seconds + self.seconds_dimension * shape.dimensions)

    def disk(self, shape: Shape) -> float:
        return shape.rows * (self.bytes + self.bytes_dimension * shape.dimensions)


# Fitted to a run with 1,000,000 rows of 128 dimensions on the machine whose DRAW_SECONDS are
# below; what a dimension takes, to the ratio of runs with 30,000 rows of 128 and 768. All are
# of one process, and rough: the machine had other work too. There are two tables; a row has a
# header of 48 bytes and 22 in the primary key.
COSTS = {
    MAKE: Cost(6, 0.2, 0, 4),
    LOAD: Cost(0, 0.3, 2 * 70, 2 * 4.1),
    "quiver_ivf": Cost(14, 0.05, 40, 1.3),
    "quiver_graph": Cost(204, 0.62, 690, 2.6),
}
MEASURE_SECONDS = 60.0
DRAW_SECONDS = 0.03  # of synthetic.STEP rows of 128 dimensions


def seconds_of(shape: Shape, steps: Sequence[str], slowness: float) -> float:
    """About how long the steps take, on a machine so many times slower than COSTS' one."""
    return slowness * sum(COSTS[step].time(shape) for step in steps) + MEASURE_SECONDS


def bytes_of(shape: Shape, steps: Sequence[str]) -> float:
    """About what the steps need of the disk, and the server's log meanwhile."""
    made = {step: COSTS[step].disk(shape) for step in steps}
    logged = sum(size for step, size in made.items() if step != MAKE)
    return sum(made.values()) + min(WAL_BYTES, logged)


def slowness() -> float:
    """This machine's time for a piece of the work, relative to that of COSTS' machine."""
    mixture = synthetic.Mixture(128, 1000, SEED)
    best = np.inf
    for _ in range(3):
        began = time.perf_counter()
        mixture.draw(synthetic.STEP, 1, 0)
        best = min(best, time.perf_counter() - began)
    return float(best / DRAW_SECONDS)


def announce(shape: Shape, steps: Sequence[str], home: Path) -> None:
    """Say what the steps take; DataError when the disk has no room for it."""
    if not steps:
        return
    needed = bytes_of(shape, steps)
    free = shutil.disk_usage(home).free
    say(
        f"  {shape.rows:,} vectors of {shape.dimensions} dimensions: about"
        f" {duration(seconds_of(shape, steps, slowness()))}, and up to {needed / GIB:.1f} GB of the"
        f" {free / GIB:.1f} GB free below .quiver/"
    )
    if needed > free:
        raise DataError(
            f"{home} has {free / GIB:.1f} GB free, and {needed / GIB:.1f} GB are needed: make room,"
            " or take fewer rows or dimensions"
        )
    say("  (Ctrl-C interrupts; the same command goes on from there)")


def folder(home: Path) -> Path:
    return home / "scale"


def make(home: Path, shape: Shape) -> tuple[Dataset, Truth]:
    """The rows, mapped from their file, which is made first; queries and their neighbors."""
    path = folder(home) / shape.file
    if path.is_file():
        done_before("made vectors and their exact neighbors", f"{shape.rows:,} rows")
    else:
        path.parent.mkdir(exist_ok=True)
        for old in path.parent.iterdir():  # of another shape
            if not old.name.startswith(path.stem):
                old.unlink()
        with Step("make vectors, find exact neighbors") as step:
            synthetic.make(
                path, shape.rows, shape.dimensions, METRIC, QUERIES, SEED, update=step.update
            )
    return read(path, shape)


def read(path: Path, shape: Shape) -> tuple[Dataset, Truth]:
    """A file of synthetic.make() without reading its rows into memory."""
    try:
        with h5py.File(path, "r") as file:
            stored, queries = file["train"], np.asarray(file["test"][:], dtype=np.float32)
            truth = Truth(file["neighbors"][:].astype(np.int64), file["distances"][:].astype("f8"))
            offset = stored.id.get_offset()
            if stored.shape != (shape.rows, shape.dimensions) or offset is None:
                raise DataError(f"{path} is not what it was made as: remove it")
            train: Floats = np.memmap(path, np.float32, "r", offset, stored.shape)
    except (OSError, KeyError) as error:
        raise DataError(f"{path} cannot be read, remove it: {error}") from error
    name = f"made, {shape.dimensions} dimensions"
    return Dataset(name, shape.identity, METRIC, train, queries), truth
