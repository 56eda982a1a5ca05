"""A standby that replays all of it, for wal_consistency_checking and equal answers."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Sequence
from typing import Any

import psycopg

from stress.checks import ServerLog, settings_of
from stress.kinds import Kind
from stress.queries import EXHAUSTIVE, Queries
from stress.server import Server
from stress.trouble import SmallDisk

REPLAY_SECONDS = 120


class Standby:
    """Made from a base backup; looked at when the primary is at rest."""

    def __init__(self, primary: Server, disk: SmallDisk) -> None:
        self.primary = primary
        self.disk = disk
        self.server = Server(primary.programs, primary.home, "standby", primary.user)
        self.log = ServerLog(self.server.log)

    def make(self) -> None:
        """Raises ServerError when the backup fails or the standby does not start."""
        place = self.server.home / "standby-disk"
        shutil.rmtree(place, ignore_errors=True)  # of an earlier run
        moved: list[str] = []
        if self.disk.usable:
            moved = ["-T", f"{self.disk.space}={place}"]
        self.server.run(
            "pg_basebackup", "-D", str(self.server.data), "-h", str(self.primary.sockets),
            "-U", "postgres", "-R", "-C", "-S", "standby", "-X", "stream", "-c", "fast",
            "--no-sync", *moved,
        )  # fmt: skip
        with (self.server.data / "postgresql.conf").open("a") as out:
            out.write(f"unix_socket_directories = '{self.server.sockets}'\n")
            out.write("wal_retrieve_retry_interval = '200ms'\n")
        self.server.start()

    def check(self, connection: psycopg.Connection[Any], kinds: Sequence[Kind]) -> Iterator[str]:
        """After the replay of all there is: sound indexes, and the primary's rows in each."""
        if not self._caught_up(connection):
            yield f"the standby did not replay all within {REPLAY_SECONDS} s"
            yield from (f"standby log: {line}" for line in self.log.wrong(frozenset()))
            return
        with self.server.connect() as there:
            there.execute("SET client_min_messages = error")
            for kind in kinds:
                for name in Queries(there, kind).indexes():
                    try:
                        there.execute("SELECT quiver_check(%s::regclass)", (name,))
                    except psycopg.Error as error:
                        yield f"{kind.name}: quiver_check({name}) on the standby: {error}"
                answers = []
                for session in (connection, there):
                    with settings_of(session, EXHAUSTIVE):
                        answers.append(Queries(session, kind).every_row(2))
                if answers[0] != answers[1]:
                    yield (
                        f"{kind.name}: primary and standby answer differently "
                        f"({len(answers[0])} and {len(answers[1])} rows)"
                    )
        yield from (f"standby log: {line}" for line in self.log.wrong(frozenset()))

    def _caught_up(self, connection: psycopg.Connection[Any]) -> bool:
        row = connection.execute("SELECT pg_current_wal_insert_lsn()").fetchone()
        assert row is not None
        until = time.monotonic() + REPLAY_SECONDS
        while time.monotonic() < until:
            try:
                with self.server.connect() as there:
                    answer = there.execute(
                        "SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn", (row[0],)
                    ).fetchone()
                if answer == (True,):
                    return True
            except psycopg.OperationalError:
                if self.server.process is None or self.server.process.poll() is not None:
                    return False
            time.sleep(0.1)
        return False
