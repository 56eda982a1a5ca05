"""What goes wrong during a round, on purpose."""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
import time
from pathlib import Path

from stress.clients import Client, Connection, Load
from stress.server import Server, kill

DISK_BYTES = 48 << 20


class SmallDisk:
    """A tmpfs as a tablespace for indexes, to be filled up. Only root can mount one."""

    TABLESPACE = "small"

    def __init__(self, server: Server) -> None:
        self.server = server
        self.folder = server.home / "disk"
        self.filler = self.folder / "filler"
        self.reason = ""  # why there is none
        if os.geteuid() != 0:
            self.reason = "only root can mount one"
            return
        self.folder.mkdir(exist_ok=True)
        self.unmount()
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(self.folder)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if mounted.returncode != 0:
            self.reason = mounted.stderr.strip()
            return
        self.space = self.folder / "space"
        self.space.mkdir(mode=0o700)
        server.own(self.space)

    @property
    def usable(self) -> bool:
        return not self.reason

    def fill(self, left: int) -> None:
        """Leave so many bytes."""
        free = os.statvfs(self.folder)
        size = free.f_bavail * free.f_frsize - left
        # when somebody was quicker, it is full all the same
        with self.filler.open("wb") as out, contextlib.suppress(OSError):
            os.posix_fallocate(out.fileno(), 0, max(size, 1))

    def empty(self) -> None:
        self.filler.unlink(missing_ok=True)

    def unmount(self) -> None:
        if os.path.ismount(self.folder):
            subprocess.run(["umount", "--lazy", str(self.folder)], check=False)


class Trouble(Client):
    """Chooses a fault of the round, a process that it befalls, and does it."""

    def __init__(self, load: Load, disk: SmallDisk) -> None:
        super().__init__(load, "trouble")
        self.disk = disk
        # A kill takes all sessions down: one in a round is enough.
        self.killed = False

    def act(self, connection: Connection) -> None:
        self.load.stop.wait(self.rng.uniform(0.02, 0.4))
        faults = sorted(self.load.plan.faults - {"timeouts"})
        if not faults or self.load.stop.is_set():
            self.load.stop.wait(0.5)
            return
        fault = self.rng.choice(faults)
        if fault == "disk":
            self.full_disk()
        elif fault == "checkpoint":
            connection.execute("CHECKPOINT")
        elif fault == "kill backend":
            if self.killed:
                return
            self.killed = True
            self.load.stop.wait(self.rng.uniform(0.5, self.load.plan.seconds - 1))
            if children := self.load.server.children():
                kill(self.rng.choice(children))
        else:
            pids = self.sessions(connection)
            if not pids:
                return
            pid = self.rng.choice(pids)
            if fault == "memory":
                self.short_of_memory(pids)
            elif fault == "cancel":
                connection.execute("SELECT pg_cancel_backend(%s)", (pid,))
            else:
                connection.execute("SELECT pg_terminate_backend(%s)", (pid,))
        self.load.count(fault)

    def sessions(self, connection: Connection) -> list[int]:
        rows = connection.execute(
            "SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND "
            "backend_type IN ('client backend', 'autovacuum worker', 'parallel worker')"
        ).fetchall()
        return [row[0] for row in rows]

    def full_disk(self) -> None:
        self.disk.fill(left=self.rng.choice((0, 16, 100, 400)) * 1024)
        self.load.stop.wait(self.rng.uniform(0.05, 0.8))
        self.disk.empty()

    def short_of_memory(self, pids: list[int]) -> None:
        """What `ulimit -v` does, to sessions at work: they have what they have and little more."""
        more = self.rng.choice((0, 1 << 17, 1 << 20, 4 << 20))
        for pid in pids:
            with contextlib.suppress(FileNotFoundError):  # the session has ended
                pages = int(Path(f"/proc/{pid}/statm").read_text().split()[0])
                self.limit(pid, str(pages * resource.getpagesize() + more))
        time.sleep(self.rng.uniform(0.05, 1))
        for pid in pids:
            self.limit(pid, "unlimited")

    def limit(self, pid: int, address_space: str) -> None:
        """The soft limit of a process: its user may lower and raise it, another's root not
        everywhere."""
        self.load.server.attempt("prlimit", "--pid", str(pid), f"--as={address_space}:")
