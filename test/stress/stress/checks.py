"""What must hold after a round, when nobody is at work."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import psycopg
from psycopg import sql

from stress.kinds import POOL, Kind
from stress.model import Ledger, Row
from stress.queries import CAREFUL, EXHAUSTIVE, INDEX_ONLY, Queries, Settings

# An index may have so many times the pages that a build makes of as many rows as there were
# at most between two VACUUMs, dead ones counted, and some pages more.
SIZE_FACTOR = 3
SIZE_PAGES = 96
# Recall is measured in the first rounds of a kind; later it may be lower by so much, which
# is four standard deviations of 30 searches and what indexes that grew lose.
FLOOR_ROUNDS = 4
FLOOR_MARGIN = 0.1
SEARCHES = 30
VACUUMS = 20  # autovacuum's ANALYZE may hold dead rows back for a while
K = 10

# Errors that faults cause: canceled, terminated, a lock not had, a deadlock, restarts, broken
# connections, rows refused on purpose, indexes that others dropped or rename.
EXPECTED = {
    "57014", "57P01", "57P02", "57P03", "55P03", "40P01", "08006", "08003", "08000", "08P01",
    "23505", "42P01", "42704", "25P02", "55006", "55000",
}  # fmt: skip
LOG_LINE = re.compile(r"^\S+ \S+ \S+ \[(\d+)\] (\w{5}) (ERROR|FATAL|PANIC|WARNING):  (.*)$")
# An assertion of the server's own (18): a leader of workers that sees the postmaster gone.
SERVERS_OWN = 'TRAP: failed Assert("!IsTransactionOrTransactionBlock()"), File: "pgstat.c"'
DEATH = re.compile(r"TRAP:|was terminated by signal (?!9\b)|inconsistent page found")
# What the server itself says of a kill -9: of files that a crash left or of lost connections.
HARMLESS = re.compile(
    r"could not (receive|send) data|connection to client lost|the database system is|"
    r"unexpected EOF|terminating"
)


class ServerLog:
    """What a server's log says since the last look."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.offset = 0

    def wrong(self, also: frozenset[str], end: str = "") -> list[str]:
        """Lines that no fault of the round, and not its end, explains; `also`: SQLSTATEs that
        are expected."""
        with self.path.open(errors="replace") as log:
            log.seek(self.offset)
            lines = log.read().splitlines()
            self.offset = log.tell()
        found: dict[str, str] = {}  # what a line says: the first such line
        for line in lines:
            parts = LOG_LINE.match(line)
            if line.startswith(SERVERS_OWN) and "kill" in end:
                continue
            if DEATH.search(line) or (parts and parts[3] == "PANIC"):
                found.setdefault(parts[4] if parts else line, line)
            elif parts and not HARMLESS.search(parts[4]):
                state, level = parts[2], parts[3]
                bad = state not in EXPECTED | also if level != "WARNING" else state[:2] == "XX"
                if bad:
                    found.setdefault(parts[4], line)
        return list(found.values())


class Checker:
    """The checks, and what they remember from round to round."""

    def __init__(self, seed: int, kinds: tuple[Kind, ...]) -> None:
        self.seed = seed
        self.bytes_per_row: dict[str, float] = {}
        self.peak: dict[str, int] = {kind.name: 0 for kind in kinds}
        self.measured: dict[str, list[float]] = {kind.name: [] for kind in kinds}
        self.most_missed: dict[str, int] = {}
        self.lowest: dict[str, float] = {}
        self.largest: dict[str, float] = {}  # index bytes by what they may be

    def fresh(self, connection: psycopg.Connection[Any], kind: Kind, rows: int) -> None:
        """Note the size of an index that was just built of so many rows."""
        self.bytes_per_row[kind.name] = self._bytes(connection, kind) / rows
        self.peak[kind.name] = rows

    def _bytes(self, connection: psycopg.Connection[Any], kind: Kind) -> int:
        name = Queries(connection, kind).indexes()[-1]
        row = connection.execute("SELECT pg_relation_size(%s::regclass)", (name,)).fetchone()
        assert row is not None
        return int(row[0])

    def table(
        self,
        connection: psycopg.Connection[Any],
        kind: Kind,
        ledgers: dict[int, Ledger],
        round_number: int,
        vacuum: bool,
        recall: bool,
    ) -> Iterator[str]:
        """What is wrong with a table and its indexes. With `vacuum` it is vacuumed, and what
        must hold only then is looked at as well."""
        rng = Random(f"{self.seed} {round_number} {kind.name} check")
        rows = Queries(connection, kind).table_rows()
        yield from self._model(kind, ledgers, rows)
        yield from self._values(connection, kind)
        for name in self._tidy_indexes(connection, kind):
            yield from self._check_function(connection, kind, name, None)
        yield from self._exact_rows(connection, kind, rows, rng, False)
        written = sum(ledger.written for ledger in ledgers.values())
        self.peak[kind.name] = max(self.peak[kind.name], len(rows) + written)
        yield from self._size(connection, kind)
        if vacuum:
            yield from self._vacuum(connection, kind, rows, rng, ledgers)
            for ledger in ledgers.values():
                ledger.written = 0
        if recall:
            yield from self._own(connection, kind, rows, rng)
            yield from self._recall(connection, kind, rows, rng)

    def _model(self, kind: Kind, ledgers: dict[int, Ledger], rows: dict[int, Row]) -> Iterator[str]:
        of_writer: dict[int, dict[int, Row]] = {number: {} for number in ledgers}
        for i, row in rows.items():
            of_writer[i % 100][i] = row
        for number, ledger in ledgers.items():
            for what in ledger.settle(of_writer[number]):
                yield f"{kind.name}: {what}"

    def _values(self, connection: psycopg.Connection[Any], kind: Kind) -> Iterator[str]:
        row = connection.execute(
            kind.statement(
                "SELECT count(*) FROM {t} JOIN {pool} p USING (n) "
                "WHERE {t}.v::text IS DISTINCT FROM p.v::text"
            )
        ).fetchone()
        if row != (0,):
            yield f"{kind.name}: values of {row} rows are not theirs"

    def _tidy_indexes(self, connection: psycopg.Connection[Any], kind: Kind) -> list[str]:
        """Drop what interrupted builds left; there is an index, and its names are returned."""
        queries = Queries(connection, kind)
        for name in queries.indexes(valid=False):
            connection.execute(sql.SQL("DROP INDEX {}").format(sql.Identifier(name)))
        if not queries.indexes():
            connection.execute(kind.create_index(f"{kind.name}_idx"))
        return queries.indexes()

    def keep_one_index(self, connection: psycopg.Connection[Any], kind: Kind) -> None:
        for name in Queries(connection, kind).indexes()[:-1]:
            connection.execute(sql.SQL("DROP INDEX {}").format(sql.Identifier(name)))

    def _check_function(
        self, connection: psycopg.Connection[Any], kind: Kind, name: str, rows: int | None
    ) -> Iterator[str]:
        """quiver_check() has no complaint, and counts so many rows."""
        try:
            row = connection.execute("SELECT quiver_check(%s::regclass)", (name,)).fetchone()
        except psycopg.Error as error:
            yield f"{kind.name}: quiver_check({name}): {error}"
            return
        if rows is not None and row != (rows,):
            yield f"{kind.name}: quiver_check({name}) counts {row} rows of {rows}"

    def _exact_rows(
        self,
        connection: psycopg.Connection[Any],
        kind: Kind,
        rows: dict[int, Row],
        rng: Random,
        vacuumed: bool,
    ) -> Iterator[str]:
        """Every row by the index, once: by a plain scan, and by LIMIT. A graph may miss a few
        of those that came since the last VACUUM."""
        queries = Queries(connection, kind)
        wanted = {i for i, (_, n) in rows.items() if kind.indexed(n)}
        ways: list[tuple[str, Settings, int | None]] = [
            ("a scan of all rows", EXHAUSTIVE, None),
            ("LIMIT", LIMITED, len(rows) + 10),
        ]
        for what, settings, limit in ways:
            n = rng.randrange(2, POOL)
            with settings_of(connection, settings):
                ids = queries.every_row(n, limit)
            missing, extra = wanted - set(ids), set(ids) - rows.keys()
            if len(ids) != len(set(ids)):
                twice = sorted({i for i in ids if ids.count(i) > 1})
                yield f"{kind.name}: {what} returned rows twice: {twice[:5]}"
            if extra:
                yield f"{kind.name}: {what} returned rows that are not there: {sorted(extra)[:5]}"
            allowed = 2 + len(wanted) // 100 if kind.is_graph and not vacuumed else 0
            if len(missing) > allowed:
                yield (
                    f"{kind.name}: {what} (value {n}) missed {len(missing)} of {len(wanted)} rows"
                    f"{' after VACUUM' if vacuumed else ''}: "
                    f"{[(i, rows[i]) for i in sorted(missing)[:5]]}"
                )
            self.most_missed[kind.name] = max(self.most_missed.get(kind.name, 0), len(missing))
        yield from self._limited(connection, kind, len(wanted), rng)

    def _limited(
        self, connection: psycopg.Connection[Any], kind: Kind, wanted: int, rng: Random
    ) -> Iterator[str]:
        """LIMIT k has k rows, as there are more, and none twice."""
        limit = rng.choice((1, 10, 100, wanted // 2))
        with settings_of(connection, LIMITED):
            ids = Queries(connection, kind).every_row(rng.randrange(2, POOL), limit)
        if len(set(ids)) < min(limit, wanted) or len(set(ids)) != len(ids):
            yield (
                f"{kind.name}: LIMIT {limit} has {len(ids)} rows of {wanted}, "
                f"{len(ids) - len(set(ids))} of them twice"
            )

    def _vacuum(
        self,
        connection: psycopg.Connection[Any],
        kind: Kind,
        rows: dict[int, Row],
        rng: Random,
        ledgers: dict[int, Ledger],
    ) -> Iterator[str]:
        """With a row to remove, so that VACUUM looks at all of the index."""
        if rows:
            gone = rng.choice(sorted(rows))
            connection.execute(kind.statement("DELETE FROM {t} WHERE id = %s"), (gone,))
            del rows[gone]
            del ledgers[gone % 100].rows[gone]
        indexed = sum(kind.indexed(n) for _, n in rows.values())
        for tries in range(1, VACUUMS + 1):
            connection.execute(kind.statement("VACUUM (INDEX_CLEANUP ON) {t}"))
            wrong = list(
                self._check_function(
                    connection, kind, Queries(connection, kind).indexes()[-1], indexed
                )
            )
            if not wrong:
                break
            if tries == VACUUMS:
                yield from wrong
            time.sleep(0.2)
        yield from self._exact_rows(connection, kind, rows, rng, True)

    def _size(self, connection: psycopg.Connection[Any], kind: Kind) -> Iterator[str]:
        size = self._bytes(connection, kind)
        most = SIZE_FACTOR * self.bytes_per_row[kind.name] * self.peak[kind.name]
        most += SIZE_PAGES * 8192
        self.largest[kind.name] = max(self.largest.get(kind.name, 0), size / most)
        if size > most:
            yield (
                f"{kind.name}: the index has {size} bytes; {most:.0f} are {SIZE_FACTOR} times "
                f"what a build takes for {self.peak[kind.name]} rows"
            )

    def _own(
        self,
        connection: psycopg.Connection[Any],
        kind: Kind,
        rows: dict[int, Row],
        rng: Random,
    ) -> Iterator[str]:
        """A sample of rows, each by its own value."""
        if not kind.finds_itself:
            return
        queries = Queries(connection, kind)
        same: dict[int, int] = {}
        for _, n in rows.values():
            same[n] = same.get(n, 0) + 1
        able = sorted(i for i, (_, n) in rows.items() if kind.indexed(n))
        for i in rng.sample(able, min(10, len(able))):
            n = rows[i][1]
            with settings_of(connection, CAREFUL):
                answer = queries.search(n, same[n] + 10)
            if i not in [found for found, _ in answer]:
                yield f"{kind.name}: row {i} is not found by its own value, {n}"

    def _recall(
        self,
        connection: psycopg.Connection[Any],
        kind: Kind,
        rows: dict[int, Row],
        rng: Random,
    ) -> Iterator[str]:
        """Not below the floor that the first rounds have set; ties count."""
        if len(rows) < 20 * K:
            return
        queries = Queries(connection, kind)
        hits = wanted = 0
        for _ in range(SEARCHES):
            n = rng.randrange(2, POOL)
            with settings_of(connection, EXACT):
                exact = queries.search(n, K)
            with settings_of(connection, RECALL):
                found = queries.search(n, K)
            farthest = exact[-1][1]
            assert farthest is not None
            tie = 1e-6 * (1 + abs(farthest))
            hits += sum(d is not None and d <= farthest + tie for _, d in found)
            wanted += len(exact)
        recall = hits / wanted
        self.lowest[kind.name] = min(self.lowest.get(kind.name, 1), recall)
        first = self.measured[kind.name]
        if len(first) < FLOOR_ROUNDS:
            first.append(recall)
        elif recall < min(first) - FLOOR_MARGIN:
            yield f"{kind.name}: recall {recall:.3f}; in the first rounds {min(first):.3f}"


EXACT: Settings = (("enable_indexscan", "off"), ("quiver.topk_scan", "off"))
LIMITED: Settings = (*INDEX_ONLY, ("ivfflat.probes", "32768"))
RECALL: Settings = (*INDEX_ONLY, ("ivfflat.probes", "6"))


@contextlib.contextmanager
def settings_of(connection: psycopg.Connection[Any], settings: Settings) -> Iterator[None]:
    """A transaction with these settings."""
    with connection.transaction():
        for name, value in settings:
            connection.execute("SELECT set_config(%s, %s, true)", (name, value))
        yield
