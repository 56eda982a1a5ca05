"""The tables of a run: every access method in each of its forms, and the values in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import LiteralString

from psycopg import sql

POOL = 4000  # values of a table's pool
NO_VALUE, ZERO = 0, 1  # n of a row without a vector, and of the vector of zeros
HOT = 14  # the first values are shared by many rows: nodes with chains of heap TIDs


@dataclass(frozen=True)
class Kind:
    """A table with one index. Its rows have values of a pool, so the model knows them by number."""

    name: LiteralString
    method: LiteralString
    type: LiteralString
    opclass: LiteralString
    op: LiteralString
    value: Callable[[Random], str]
    zero: str
    options: LiteralString = ""
    rows: int = 1200  # what writers keep the table at, times the round's factor
    out_of_line: bool = False  # values are in the TOAST table

    @property
    def is_graph(self) -> bool:
        return self.method in ("hnsw", "quiver_graph")

    @property
    def finds_itself(self) -> bool:
        """Is a row nearest to its own value?"""
        return self.op != "<#>"

    def indexed(self, n: int) -> bool:
        """Rows without a vector, and under cosine those of zeros, are in no index."""
        return n != NO_VALUE and not (n == ZERO and self.op == "<=>")

    def statement(self, text: LiteralString, **more: sql.Composable) -> sql.Composed:
        """A statement about this table {t}, its pool {pool} and its distance {op}."""
        return sql.SQL(text).format(
            t=sql.Identifier(self.name),
            pool=sql.Identifier(f"{self.name}_pool"),
            op=sql.SQL(self.op),
            type=sql.SQL(self.type),
            **more,
        )

    def create_index(self, name: str, concurrently: bool = False) -> sql.Composed:
        how: LiteralString = "CREATE INDEX CONCURRENTLY" if concurrently else "CREATE INDEX"
        return self.statement(
            "{how} {index} ON {t} USING {method} (v {opclass}) {options}",
            how=sql.SQL(how),
            index=sql.Identifier(name),
            method=sql.SQL(self.method),
            opclass=sql.SQL(self.opclass),
            options=sql.SQL(self.options),
        )

    def pool_values(self) -> list[tuple[int, str | None]]:
        """(n, value as text) of the pool, the same in every run."""
        rng = Random(self.name)
        values = [self.value(rng) for _ in range(POOL - 2)]
        return [(NO_VALUE, None), (ZERO, self.zero), *enumerate(values, start=2)]


def draw(rng: Random) -> int:
    """The n of a new row's value."""
    return rng.randrange(HOT) if rng.random() < 0.15 else rng.randrange(HOT, POOL)


def dense(dims: int) -> Callable[[Random], str]:
    """40 clusters, so that lists are uneven and searches find something near."""
    centers = Random(dims)
    clusters = [[centers.uniform(-2, 2) for _ in range(dims)] for _ in range(40)]

    def value(rng: Random) -> str:
        center = clusters[rng.randrange(40)]
        return "[" + ",".join(f"{x + rng.uniform(-1, 1):.4f}" for x in center) + "]"

    return value


def zeros(dims: int) -> str:
    return "[" + ",".join(["0"] * dims) + "]"


def bits(dims: int) -> Callable[[Random], str]:
    centers = Random(dims)
    clusters = [centers.getrandbits(dims) for _ in range(40)]

    def value(rng: Random) -> str:
        flips = rng.getrandbits(dims) & rng.getrandbits(dims) & rng.getrandbits(dims)
        return format(clusters[rng.randrange(40)] ^ flips, f"0{dims}b")

    return value


def sparse(dims: int) -> Callable[[Random], str]:
    """Of very different lengths: values that lie on pages of their own, some on several.

    Near a center, too: of rows that all have the same distance from each other a graph that
    grows loses many until the next VACUUM.
    """
    centers = Random(dims)
    clusters = [
        {i: centers.uniform(1, 3) for i in centers.sample(range(1, dims + 1), 40)}
        for _ in range(40)
    ]

    def value(rng: Random) -> str:
        value = {i: x + rng.uniform(-0.7, 0.7) for i, x in clusters[rng.randrange(40)].items()}
        for i in rng.sample(range(1, dims + 1), rng.choice((0, 5, 20, 1100))):
            value.setdefault(i, rng.uniform(0.001, 0.01))
        return "{" + ",".join(f"{i}:{value[i]:.4f}" for i in sorted(value)) + f"}}/{dims}"

    return value


KINDS = (
    Kind("graph_coded", "quiver_graph", "vector(24)", "vector_l2_ops", "<->", dense(24), zeros(24)),
    Kind("graph_few", "quiver_graph", "vector(6)", "vector_l2_ops", "<->", dense(6), zeros(6)),
    Kind("graph_values", "quiver_graph", "sparsevec(3000)", "sparsevec_cosine_ops", "<=>",
         sparse(3000), "{}/3000", "WITH (m = 8, ef_construction = 32)", rows=400),
    Kind("hnsw_coded", "hnsw", "halfvec(32)", "halfvec_cosine_ops", "<=>", dense(32), zeros(32)),
    Kind("hnsw_taxicab", "hnsw", "vector(16)", "vector_l1_ops", "<+>", dense(16), zeros(16)),
    Kind("hnsw_bit", "hnsw", "bit(128)", "bit_hamming_ops", "<~>", bits(128), "0" * 128,
         "WITH (m = 6, ef_construction = 24)"),
    Kind("ivf_coded", "quiver_ivf", "vector(24)", "vector_l2_ops", "<->", dense(24), zeros(24),
         rows=2500),
    Kind("ivf_sketches", "quiver_ivf", "vector(272)", "vector_ip_ops", "<#>", dense(272),
         zeros(272), rows=1000),
    Kind("ivf_coarse", "quiver_ivf", "vector(528)", "vector_l2_ops", "<->", dense(528),
         zeros(528), "WITH (bits = 4)", rows=700, out_of_line=True),
    Kind("ivf_bit", "quiver_ivf", "bit(128)", "bit_hamming_ops", "<~>", bits(128), "0" * 128,
         rows=2500),
    Kind("ivfflat_coded", "ivfflat", "vector(16)", "vector_cosine_ops", "<=>", dense(16),
         zeros(16), "WITH (lists = 12)"),
    Kind("ivfflat_bit", "ivfflat", "bit(128)", "bit_hamming_ops", "<~>", bits(128), "0" * 128,
         "WITH (lists = 12)"),
)  # fmt: skip
METHODS = tuple(sorted({kind.method for kind in KINDS}))
