"""The clients of a round: writers, readers, those who look after the tables, and trouble.

Each is a thread with a connection of its own. An error of the server ends a client's
transaction, not the client; whether the error may be is judged by the server's log (checks.py).
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from math import inf, isnan
from random import Random
from typing import Any, LiteralString

import psycopg
from psycopg import pq, sql

from stress.kinds import Kind, draw
from stress.model import Changes, Ledger
from stress.plan import Round
from stress.queries import EXHAUSTIVE, MODES, Queries
from stress.server import Server

Connection = psycopg.Connection[Any]


class Load:
    """What the clients of a round share."""

    def __init__(self, server: Server, plan: Round, kinds: Sequence[Kind]) -> None:
        self.server = server
        self.plan = plan
        self.kinds = kinds
        self.stop = threading.Event()
        self.findings: list[str] = []
        self.counts: dict[str, int] = {}
        self._lock = threading.Lock()

    def found(self, what: str) -> None:
        with self._lock:
            self.findings.append(what)

    def count(self, what: str) -> None:
        with self._lock:
            self.counts[what] = self.counts.get(what, 0) + 1

    def some_kind(self, rng: Random) -> Kind:
        """Any, but more often one of those that the round is about."""
        return rng.choice(self.plan.focus if rng.random() < 0.6 else self.kinds)


class Client(threading.Thread):
    """Does act() again and again until the round ends."""

    def __init__(self, load: Load, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.load = load
        self.rng = Random(f"{load.plan.seed} {load.plan.number} {name}")
        self.connection: Connection | None = None

    def run(self) -> None:
        while not self.load.stop.is_set():
            try:
                if self.connection is None or self.connection.broken or self.connection.closed:
                    self.connection = self.load.server.connect(application_name=self.name)
                    self.prepare(self.connection)
                self.act(self.connection)
            except psycopg.OperationalError:
                self.load.stop.wait(0.05)
            except psycopg.Error:
                pass
            except Exception as error:  # of this program: no round is sound with it
                self.load.found(f"{self.name}: {error!r}")
                raise
            self.tidy()
        if self.connection is not None:
            self.connection.close()

    def tidy(self) -> None:
        """An error may have left a transaction open."""
        try:
            if (
                self.connection is not None
                and self.connection.info.transaction_status != pq.TransactionStatus.IDLE
            ):
                self.connection.execute("ROLLBACK")
        except psycopg.Error:
            pass

    def prepare(self, connection: Connection) -> None:
        """Settings of a new connection: now and then timeouts that strike."""
        connection.execute("SET statement_timeout = '60s'")
        if "timeouts" in self.load.plan.faults and self.rng.random() < 0.5:
            set_to(connection, "statement_timeout", str(self.rng.choice((3, 10, 40, 150))))
            set_to(connection, "lock_timeout", str(self.rng.choice((1, 5, 50))))
        set_to(connection, "work_mem", self.rng.choice(("64kB", "1MB", "4MB")))

    def act(self, connection: Connection) -> None:
        raise NotImplementedError


def set_to(connection: Connection, name: str, value: str) -> None:
    connection.execute("SELECT set_config(%s, %s, false)", (name, value))


class Writer(Client):
    """Changes its own rows: transactions of several statements, with savepoints and ends of
    every kind, toward as many rows as the round wants."""

    def __init__(self, load: Load, name: str, number: int, ledgers: dict[str, Ledger]) -> None:
        super().__init__(load, name)
        self.number = number
        self.ledgers = ledgers

    def act(self, connection: Connection) -> None:
        kind = self.load.some_kind(self.rng)
        ledger = self.ledgers[kind.name]
        changes: Changes = {}
        connection.execute("BEGIN")
        for _ in range(self.rng.randrange(1, 4)):
            if self.rng.random() < 0.3:
                self.subtransaction(connection, kind, ledger, changes)
            else:
                self.change(connection, kind, ledger, changes)
        if self.rng.random() < 0.12:
            connection.execute("ROLLBACK")
            self.load.count("rollbacks")
            return
        try:
            connection.execute("COMMIT")
        except psycopg.Error:
            if connection.broken:
                ledger.lose(changes)
                self.load.count("lost commits")
            raise
        ledger.commit(changes)
        self.load.count("commits")

    def subtransaction(
        self, connection: Connection, kind: Kind, ledger: Ledger, changes: Changes
    ) -> None:
        """Kept, rolled back, or failed at a row that the table refuses after others went in."""
        connection.execute("SAVEPOINT s")
        inner = dict(changes)
        self.change(connection, kind, ledger, inner)
        end = self.rng.randrange(3)
        if end == 0:
            connection.execute("RELEASE s")
            changes.update(inner)
        elif end == 1:
            connection.execute("ROLLBACK TO s")
        else:
            new = [self.new_id(ledger) for _ in range(10)]
            try:
                self.insert(connection, kind, ledger, [*new, new[0]], {})
            except psycopg.errors.UniqueViolation:
                connection.execute("ROLLBACK TO s")

    def new_id(self, ledger: Ledger) -> int:
        ledger.next_id += 1
        return ledger.next_id * 100 + self.number

    def change(self, connection: Connection, kind: Kind, ledger: Ledger, changes: Changes) -> None:
        live = [i for i in ledger.known() if i not in changes]
        live += [i for i, row in changes.items() if row is not None]
        wanted = kind.rows * self.load.plan.size / self.load.plan.writers
        what = self.rng.random()
        count = self.rng.choice((1, 1, 3, 10, 40))
        if what < 0.35 and live:
            chosen = self.rng.sample(live, min(count, len(live)))
            self.update(connection, kind, ledger, chosen, changes)
        elif len(live) < wanted * self.rng.uniform(0.9, 1.1):
            more = count * (4 if len(live) < wanted / 2 else 1)
            new = [self.new_id(ledger) for _ in range(more)]
            self.insert(connection, kind, ledger, new, changes)
        elif live:
            more = count * (4 if len(live) > wanted * 1.5 else 1)
            chosen = self.rng.sample(live, min(more, len(live)))
            done = connection.execute(
                kind.statement("DELETE FROM {t} WHERE id = ANY(%s)"), (chosen,)
            ).rowcount
            self.expect(kind, "DELETE", done, len(chosen))
            changes.update(dict.fromkeys(chosen))

    def insert(
        self, connection: Connection, kind: Kind, ledger: Ledger, ids: list[int], changes: Changes
    ) -> None:
        rows = {i: (1, draw(self.rng)) for i in ids}
        ledger.written += len(ids)
        connection.execute(
            kind.statement(
                "INSERT INTO {t} (id, version, n, tag, v) SELECT x.id, 1, x.n, x.id %% 97, p.v "
                "FROM unnest(%s::bigint[], %s::int[]) x (id, n) JOIN {pool} p ON p.n = x.n"
            ),
            (ids, [rows[i][1] for i in ids]),
        )
        changes.update(rows)

    def update(
        self, connection: Connection, kind: Kind, ledger: Ledger, ids: list[int], changes: Changes
    ) -> None:
        """To another value, to the same one, or of another column only."""
        rows: Changes = {}
        for i in ids:
            before = changes.get(i) or ledger.rows[i]
            n = before[1] if self.rng.random() < 0.2 else draw(self.rng)
            rows[i] = (before[0] + 1, n)
        ledger.written += len(ids)
        done = connection.execute(
            kind.statement(
                "UPDATE {t} SET version = version + 1, n = x.n, v = p.v "
                "FROM unnest(%s::bigint[], %s::int[]) x (id, n) JOIN {pool} p ON p.n = x.n "
                "WHERE {t}.id = x.id"
            ),
            (ids, [row[1] for row in rows.values() if row]),
        ).rowcount
        self.expect(kind, "UPDATE", done, len(ids))
        changes.update(rows)

    def expect(self, kind: Kind, what: str, done: int, wanted: int) -> None:
        if done != wanted:
            self.load.found(f"{kind.name}: {what} of {wanted} rows of {self.name} met {done}")


class Reader(Client):
    """Searches of all ways, and what must hold of each answer whatever others do."""

    def act(self, connection: Connection) -> None:
        kind = self.load.some_kind(self.rng)
        queries = Queries(connection, kind)
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        for name, value in self.rng.choice(MODES):
            set_to_local(connection, name, value)
        do = self.rng.choice((self.search, self.search, self.cursor, self.cursor, self.all_rows))
        do(connection, kind, queries)
        connection.execute("COMMIT")
        self.load.count("searches")

    def search(self, connection: Connection, kind: Kind, queries: Queries) -> None:
        engine = kind.method if kind.method in ("hnsw", "ivfflat") else "quiver"
        shown = connection.execute("SELECT current_setting(%s)", (f"{engine}.iterative_scan",))
        in_order = shown.fetchone() != ("relaxed_order",)
        for _ in range(5):
            where = self.rng.choice(("true", "tag < 50", "tag = 3", "id % 2 = 0"))
            limit = self.rng.choice((1, 10, 100, 2000))
            n = draw(self.rng)
            answer = queries.search(n, limit, where)
            self.judge(kind, [i for i, _ in answer], f"LIMIT {limit} WHERE {where}")
            # NaN, of zeros under cosine, comes last
            distances = [inf if isnan(d) else d for _, d in answer if d is not None]
            at = first_descent(distances)
            if in_order and at and not self.may_be_late(queries, distances[at:], limit, where):
                self.load.found(
                    f"{kind.name}: LIMIT {limit} WHERE {where} (value {n}) is out of order: row "
                    f"{answer[at]} after {answer[at - 1]}, the {at}th of {len(answer)}"
                )

    def may_be_late(
        self, queries: Queries, tail: list[float], limit: int, where: LiteralString
    ) -> bool:
        """Rows that are found late come last, in order, where the query asks for all that match.
        A few of them may be beyond the limit."""
        return first_descent(tail) is None and queries.matching(where) <= limit + 2 + limit // 50

    def cursor(self, connection: Connection, kind: Kind, queries: Queries) -> None:
        """Left open while others write and vacuum, and this session searches elsewhere."""
        limit = self.rng.choice((None, 300, 5000))
        queries.declare("c", draw(self.rng), limit)
        seen: list[int] = []
        for _ in range(self.rng.randrange(2, 12)):
            rows = connection.execute(
                sql.SQL("FETCH {} FROM c").format(sql.Literal(self.rng.choice((1, 5, 50, 400))))
            ).fetchall()
            seen += [row[0] for row in rows]
            if not rows:
                break
            if self.rng.random() < 0.3:
                Queries(connection, self.load.some_kind(self.rng)).search(draw(self.rng), 5)
            self.load.stop.wait(self.rng.choice((0, 0.01, 0.1, 0.4)))
        self.judge(kind, seen, f"a cursor of LIMIT {limit}")

    def all_rows(self, connection: Connection, kind: Kind, queries: Queries) -> None:
        """In one snapshot the index and the table have the same rows, but for what a graph may
        miss until the next VACUUM (a search finds no path to it)."""
        for name, value in EXHAUSTIVE:
            set_to_local(connection, name, value)
        # With less, a scan of posting lists ends when it has forgotten what it has proposed and
        # lists move (src/ivf/README.md, "Search").
        set_to_local(connection, "work_mem", "4MB")
        by_index = queries.every_row(draw(self.rng))
        self.judge(kind, by_index, "a scan of all rows")
        by_table = queries.table_rows()
        missing = {i for i, (_, n) in by_table.items() if kind.indexed(n)} - set(by_index)
        extra = set(by_index) - by_table.keys()
        if extra:
            self.load.found(f"{kind.name}: a scan returned rows of no table: {sorted(extra)[:5]}")
        allowed = 3 + len(by_table) // 50 if kind.is_graph else 0
        if len(missing) > allowed:
            self.load.found(
                f"{kind.name}: a scan of all {len(by_table)} rows missed {len(missing)}: "
                f"{sorted(missing)[:5]}"
            )
        self.load.count("scans of all rows")

    def judge(self, kind: Kind, ids: list[int], what: str) -> None:
        if len(set(ids)) != len(ids):
            twice = sorted({i for i in ids if ids.count(i) > 1})
            self.load.found(f"{kind.name}: {what} returned rows twice: {twice[:5]}")


def first_descent(distances: list[float]) -> int | None:
    """Where the first distance is that is less than the one before it."""
    return next((i for i in range(1, len(distances)) if distances[i] < distances[i - 1]), None)


def set_to_local(connection: Connection, name: str, value: str) -> None:
    connection.execute("SELECT set_config(%s, %s, true)", (name, value))


class Vacuumer(Client):
    """VACUUM with delays, so that it is met at work; now and then quiver_check() as well."""

    def act(self, connection: Connection) -> None:
        kind = self.load.some_kind(self.rng)
        set_to(connection, "vacuum_cost_delay", self.rng.choice(("0", "0", "1ms", "5ms")))
        set_to(connection, "vacuum_cost_limit", self.rng.choice(("1", "20", "200")))
        cleanup = sql.SQL(self.rng.choice(("ON", "ON", "AUTO")))
        connection.execute(kind.statement("VACUUM (INDEX_CLEANUP {c}) {t}", c=cleanup))
        self.load.count("vacuums")
        self.load.stop.wait(self.rng.uniform(0, 0.1))


class Builder(Client):
    """Makes, remakes and drops indexes, and checks them meanwhile."""

    def act(self, connection: Connection) -> None:
        kind = self.load.some_kind(self.rng)
        names = Queries(connection, kind).indexes()
        set_to(connection, "maintenance_work_mem", self.rng.choice(("1MB", "64MB")))
        set_to(connection, "max_parallel_maintenance_workers", str(self.rng.choice((0, 0, 2))))
        name = self.rng.choice(names) if names else None
        what = self.rng.randrange(6)
        if what == 0 or name is None:
            self.create(connection, kind, names)
        elif what == 1:
            connection.execute(kind.statement("REINDEX INDEX {i}", i=sql.Identifier(name)))
        elif what == 2:
            connection.execute(
                kind.statement("REINDEX INDEX CONCURRENTLY {i}", i=sql.Identifier(name))
            )
        else:
            connection.execute("SELECT quiver_check(%s::regclass)", (name,))
        self.load.count("index commands")
        self.load.stop.wait(self.rng.uniform(0, 0.3))

    def create(self, connection: Connection, kind: Kind, names: list[str]) -> None:
        """Another index in the place of those there are."""
        new = f"{kind.name}_idx_{self.rng.getrandbits(40):x}"
        concurrently = self.rng.random() < 0.7
        connection.execute(kind.create_index(new, concurrently))
        how = sql.SQL("DROP INDEX CONCURRENTLY {}" if concurrently else "DROP INDEX {}")
        for name in names:
            connection.execute(how.format(sql.Identifier(name)))
