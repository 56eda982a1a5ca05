"""The command line, and the run: rounds of load, faults and checks."""

from __future__ import annotations

import argparse
import secrets
import shutil
import signal
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from stress import plan
from stress.checks import Checker, ServerLog
from stress.clients import Builder, Client, Load, Reader, Vacuumer, Writer
from stress.kinds import KINDS, METHODS, Kind
from stress.model import Ledger
from stress.queries import Queries
from stress.server import Server, ServerError
from stress.standby import Standby
from stress.trouble import SmallDisk, Trouble

WRITERS = 8
# SQLSTATEs that only these faults explain.
STATES = {"disk": {"53100"}, "memory": {"53200", "58000", "58P01"}}
KILL_ONLY_VACUUM = 5  # so many short rounds from one VACUUM to the next
KEPT = 4  # data directories of findings, of which a run with --keep-going has many
RECALL_EVERY = 10  # and one in so many of them measures recall


def say(text: str) -> None:
    print(text, flush=True)


@dataclass
class Settings:
    programs: Path
    home: Path
    user: str
    seed: int
    rounds: int | None
    minutes: float | None
    kill_only: bool
    kinds: tuple[Kind, ...]
    wal_consistency: bool
    keep_going: bool


@dataclass
class Totals:
    rounds: int = 0
    findings: int = 0
    ends: dict[str, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)


class Run:
    """A run from an empty data directory to the last round."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.totals = Totals()
        self.checker = Checker(settings.seed, settings.kinds)
        self.ledgers = {
            kind.name: {number: Ledger() for number in range(WRITERS)} for kind in settings.kinds
        }
        for part in ("primary", "standby"):
            shutil.rmtree(settings.home / part, ignore_errors=True)
            (settings.home / f"{part}.log").unlink(missing_ok=True)
        settings.home.mkdir(parents=True, exist_ok=True)
        self.server = Server(settings.programs, settings.home, "primary", settings.user)
        self.server.own(settings.home)
        self.disk = SmallDisk(self.server)
        self.standby: Standby | None = None
        self.kept = 0
        self.log = ServerLog(self.server.log)

    def configure(self, autovacuum: bool) -> None:
        self.server.configure(
            {
                # The processes are killed, not the machine: what was written stays.
                "fsync": "off",
                "shared_buffers": "'16MB'",  # small, so that pages come and go
                "max_connections": "60",
                "max_wal_size": "'256MB'",
                "checkpoint_timeout": "'30s'",
                "deadlock_timeout": "'100ms'",
                "restart_after_crash": "on",
                "log_line_prefix": "'%m [%p] %e '",
                "log_checkpoints": "off",
                "autovacuum": "on" if autovacuum else "off",
                "autovacuum_naptime": "'1s'",
                "autovacuum_vacuum_threshold": "50",
                "autovacuum_vacuum_scale_factor": "0.02",
                "max_parallel_maintenance_workers": "2",
                "min_parallel_table_scan_size": "0",
                "jit": "off",
                **({"wal_consistency_checking": "'all'"} if self.settings.wal_consistency else {}),
            }
        )

    def prepare(self) -> None:
        self.server.initdb()
        self.configure(False)
        self.server.start()
        with self.server.connect() as connection:
            connection.execute("CREATE EXTENSION vector")
            connection.execute("CREATE EXTENSION quiver")
            for kind in self.settings.kinds:
                self.make_table(connection, kind)
            if self.disk.usable:
                connection.execute(f"CREATE TABLESPACE small LOCATION '{self.disk.space}'")
        if self.settings.wal_consistency:
            self.standby = Standby(self.server, self.disk)
            self.standby.make()

    def make_table(self, connection: psycopg.Connection[Any], kind: Kind) -> None:
        connection.execute(kind.statement("CREATE TABLE {pool} (n int PRIMARY KEY, v {type})"))
        with connection.cursor().copy(kind.statement("COPY {pool} FROM STDIN")) as copy:
            for row in kind.pool_values():
                copy.write_row(row)
        connection.execute(
            kind.statement(
                "CREATE TABLE {t} (id bigint PRIMARY KEY, version int NOT NULL, n int NOT NULL, "
                "tag int NOT NULL, v {type}) WITH (fillfactor = 70)"
            )
        )
        if kind.out_of_line:
            connection.execute(kind.statement("ALTER TABLE {t} ALTER v SET STORAGE EXTERNAL"))
        ledger = self.ledgers[kind.name][0]
        rows = {i * 100: (1, 1 + i) for i in range(1, kind.rows + 1)}
        ledger.next_id = kind.rows
        connection.execute(
            kind.statement(
                "INSERT INTO {t} SELECT i * 100, 1, 1 + i, i %% 97, v "
                "FROM generate_series(1, %s) i JOIN {pool} p ON p.n = i + 1"
            ),
            (kind.rows,),
        )
        ledger.commit(dict(rows))
        connection.execute(kind.create_index(f"{kind.name}_idx"))
        connection.execute(kind.statement("ANALYZE {t}"))
        self.checker.fresh(connection, kind, kind.rows)

    def round(self, number: int) -> list[str]:
        """One round; returns its findings."""
        settings = self.settings
        todo = plan.make(
            settings.seed, number, settings.kinds, WRITERS, settings.kill_only, self.disk.usable
        )
        self.configure(todo.autovacuum)
        self.server.send(signal.SIGHUP)
        if "disk" in todo.faults:
            self.move_indexes(todo, "small")
        load = Load(self.server, todo, settings.kinds)
        clients = self.clients(load)
        for client in clients:
            client.start()
        time.sleep(todo.seconds)
        began = time.monotonic()
        self.end(todo, load)
        load.findings += self.join(clients)
        self.disk.empty()
        if self.server.process is None:
            self.server.start()
        else:
            self.server.wait()
        recovered = time.monotonic()
        findings = load.findings + self.check(todo, number)
        for what, count in load.counts.items():
            self.totals.counts[what] = self.totals.counts.get(what, 0) + count
        self.totals.ends[todo.end] = self.totals.ends.get(todo.end, 0) + 1
        say(
            f"round {number}: {todo}; {load.counts.get('commits', 0)} commits, "
            f"{load.counts.get('lost commits', 0)} lost, {load.counts.get('searches', 0)} searches"
            f"; up again after {recovered - began:.1f} s, checked in "
            f"{time.monotonic() - recovered:.1f} s"
        )
        return findings

    def clients(self, load: Load) -> list[Client]:
        todo = load.plan
        clients: list[Client] = [
            Writer(
                load, f"writer {i}", i,
                {name: ledgers[i] for name, ledgers in self.ledgers.items()},
            )
            for i in range(todo.writers)
        ]  # fmt: skip
        clients += [Reader(load, f"reader {i}") for i in range(todo.readers)]
        clients += [Vacuumer(load, f"vacuumer {i}") for i in range(todo.vacuumers)]
        clients += [Builder(load, f"builder {i}") for i in range(todo.builders)]
        if todo.faults - {"timeouts"}:
            clients.append(Trouble(load, self.disk))
        return clients

    def end(self, todo: plan.Round, load: Load) -> None:
        """The end that the plan wants, while clients are at work."""
        if todo.end in ("kill", "kill all"):
            self.server.kill(everyone=todo.end == "kill all")
        elif todo.end == "immediate":
            self.server.stop(signal.SIGQUIT)
        elif todo.end == "fast":
            self.server.stop(signal.SIGINT)
        load.stop.set()

    def join(self, clients: list[Client]) -> list[str]:
        """All clients have ended; what they wait for is canceled after a while."""
        findings = []
        until = time.monotonic() + 90
        canceled = False
        for client in clients:
            client.join(5)
            if client.is_alive() and not canceled and self.server.process is not None:
                canceled = True
                try:
                    with self.server.connect() as connection:
                        connection.execute(
                            "SELECT pg_cancel_backend(pid) FROM pg_stat_activity "
                            "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
                        )
                except psycopg.Error:
                    pass  # it was stopped: the client will know
            client.join(max(1, until - time.monotonic()))
            if client.is_alive():
                findings.append(f"{client.name} hangs, and does not answer a cancel")
        return findings

    def move_indexes(self, todo: plan.Round, tablespace: str) -> None:
        """Indexes of the round's tables to the small disk."""
        with self.server.connect() as connection:
            for kind in todo.focus:
                for name in Queries(connection, kind).indexes():
                    connection.execute(f"ALTER INDEX {name} SET TABLESPACE {tablespace}")

    def check(self, todo: plan.Round, number: int) -> list[str]:
        kill_only = self.settings.kill_only
        vacuum = not kill_only or number % KILL_ONLY_VACUUM == 0
        recall = not kill_only or number % RECALL_EVERY == 0
        findings: list[str] = []
        with self.server.connect() as connection:
            connection.add_notice_handler(lambda _: None)
            connection.execute("SET client_min_messages = error")
            for kind in self.settings.kinds:
                findings += self.checker.table(
                    connection, kind, self.ledgers[kind.name], number, vacuum, recall
                )
                self.checker.keep_one_index(connection, kind)
            if "disk" in todo.faults:
                self.move_indexes(todo, "pg_default")
            if self.standby is not None:
                findings += self.standby.check(connection, self.settings.kinds)
        states = frozenset[str]().union(*(STATES.get(fault, set()) for fault in todo.faults))
        findings += [f"server log: {line}" for line in self.log.wrong(states, todo.end)]
        return findings

    def keep(self, number: int) -> Path | None:
        """A copy of the data directory as it is; the server goes on afterwards."""
        kept = self.settings.home / f"finding-{self.settings.seed}-{number}"
        if self.server.process is not None:
            self.server.stop(signal.SIGQUIT)
        self.kept += 1
        if self.kept > KEPT:
            return None
        shutil.rmtree(kept, ignore_errors=True)
        kept.mkdir()
        shutil.copytree(self.server.data, kept / "primary", symlinks=True)
        shutil.copy(self.server.log, kept)
        if self.disk.usable:
            shutil.copytree(self.disk.space, kept / "small", symlinks=True)
        return kept

    def go_on(self) -> None:
        """After a finding: indexes anew, so that it is not found again and again."""
        self.server.start()
        with self.server.connect() as connection:
            for kind in self.settings.kinds:
                for name in Queries(connection, kind).indexes():
                    connection.execute(f"REINDEX INDEX {name}")
        self.log.wrong(frozenset())

    def run(self) -> None:
        settings = self.settings
        until = None if settings.minutes is None else time.monotonic() + settings.minutes * 60
        number = 0
        while (settings.rounds is None or number < settings.rounds) and (
            until is None or time.monotonic() < until
        ):
            number += 1
            try:
                findings = self.round(number)
            except ServerError as error:
                findings = [str(error), *(f"server log: {x}" for x in self.log.wrong(frozenset()))]
                self.report(number, findings)
                return
            self.totals.rounds += 1
            if findings:
                self.report(number, findings)
                if not settings.keep_going:
                    return
                self.go_on()

    def report(self, number: int, findings: list[str]) -> None:
        kept = self.keep(number)
        self.totals.findings += len(findings)
        for what in findings:
            say(f"FINDING seed {self.settings.seed} round {number}: {what}")
        if kept is not None:
            say(f"  the data directory is kept in {kept}")

    def finish(self) -> None:
        if self.standby is not None:
            self.standby.server.stop(signal.SIGQUIT)
            self.standby.server.forget()
        if self.server.process is not None:
            self.server.stop(signal.SIGQUIT)
        self.server.forget()
        self.disk.unmount()

    def summary(self) -> None:
        totals, checker = self.totals, self.checker
        say("")
        for name in (kind.name for kind in self.settings.kinds):
            lowest = checker.lowest.get(name)
            say(
                f"  {name:14} recall {'' if lowest is None else f'{lowest:.3f}'} at the lowest, "
                f"size {checker.largest.get(name, 0):.0%} of the bound, rows missed before VACUUM "
                f"{checker.most_missed.get(name, 0)} at most"
            )
        say("  " + ", ".join(f"{n} {what}" for what, n in sorted(totals.counts.items())))
        say("  ends: " + ", ".join(f"{n} {what}" for what, n in sorted(totals.ends.items())))
        say(f"seed {self.settings.seed}: {totals.rounds} rounds, {totals.findings} findings")


def arguments() -> Settings:
    parser = argparse.ArgumentParser(prog="tools/check_stress", description=__doc__)
    parser.add_argument("--bin", type=Path, required=True, help="folder of the server's programs")
    parser.add_argument("--home", type=Path, required=True, help="folder to work in")
    parser.add_argument("--user", required=True, help="who runs the server when we are root")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--kill-only", action="store_true")
    parser.add_argument("--am", default=",".join(METHODS))
    parser.add_argument("--wal-consistency", action="store_true")
    parser.add_argument("--keep-going", action="store_true")
    given = parser.parse_args()
    methods = given.am.split(",")
    if unknown := set(methods) - set(METHODS):
        parser.error(f"--am: {', '.join(sorted(unknown))}: not among {', '.join(METHODS)}")
    return Settings(
        given.bin, given.home, given.user,
        secrets.randbelow(10**6) if given.seed is None else given.seed,
        given.rounds, given.minutes, given.kill_only,
        tuple(kind for kind in KINDS if kind.method in methods),
        given.wal_consistency, given.keep_going,
    )  # fmt: skip


def main() -> int:
    settings = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    run = Run(settings)
    say(f"seed {settings.seed}: {', '.join(kind.name for kind in settings.kinds)}")
    if not run.disk.usable and not settings.kill_only:
        say(f"  no small disk to fill: {run.disk.reason}")
    try:
        run.prepare()
        run.run()
        run.summary()
    finally:
        run.finish()
    return 1 if run.totals.findings else 0


if __name__ == "__main__":
    sys.exit(main())
