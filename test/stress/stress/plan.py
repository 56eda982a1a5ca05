"""What a round does: all of it from the seed, so that a run can be repeated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from stress.kinds import Kind

# How a round ends, while its clients are at work.
ENDS = ("quiet", "quiet", "kill", "kill all", "immediate", "fast")
# What happens meanwhile.
FAULTS = ("cancel", "terminate", "timeouts", "kill backend", "memory", "disk", "checkpoint")


@dataclass(frozen=True)
class Round:
    seed: int
    number: int
    seconds: float
    end: str
    faults: frozenset[str]
    size: float  # of the tables, in their kinds' rows
    focus: Sequence[Kind]  # tables that have most of the load
    autovacuum: bool
    writers: int
    readers: int
    vacuumers: int
    builders: int

    def __str__(self) -> str:
        focus = ",".join(kind.name for kind in self.focus)
        faults = ", ".join(sorted(self.faults)) or "none"
        return (
            f"{self.seconds:.1f} s on {focus}, size {self.size}, faults: {faults}; "
            f"end: {self.end}{'; autovacuum' if self.autovacuum else ''}"
        )


def make(
    seed: int, number: int, kinds: Sequence[Kind], writers: int, kill_only: bool, disk: bool
) -> Round:
    """Round `number` of a run; `disk`: there is a small disk to fill."""
    rng = Random(f"{seed} {number}")
    if kill_only:
        return Round(
            seed, number, rng.uniform(0.4, 1.0), rng.choice(("kill", "kill all")), frozenset(),
            rng.choice((0.5, 0.6)), kinds, rng.random() < 0.3, writers,
            readers=1, vacuumers=1, builders=0,
        )  # fmt: skip
    faults = {fault for fault in FAULTS if rng.random() < 0.3}
    if not disk:
        faults.discard("disk")
    return Round(
        seed,
        number,
        seconds=rng.uniform(3, 8),
        end=rng.choice(ENDS),
        faults=frozenset(faults),
        size=rng.choice((0.2, 1, 1, 1, 1.8)),
        focus=rng.sample(kinds, min(len(kinds), rng.randrange(1, 5))),
        autovacuum=rng.random() < 0.4,
        writers=writers,
        readers=rng.randrange(2, 5),
        vacuumers=rng.randrange(1, 3),
        builders=rng.choice((0, 1, 1)),
    )
