"""A private server: to start, to kill in several ways, and to start again."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import psycopg


class ServerError(Exception):
    """The server did not do what every server does: it did not start, say."""


class Server:
    """A data directory and its server. It runs as `user` when we are root."""

    def __init__(self, programs: Path, home: Path, name: str, user: str) -> None:
        self.programs = programs
        self.home = home
        self.name = name
        self.data = home / name
        self.log = home / f"{name}.log"
        self._as: dict[str, Any] = {}
        if os.geteuid() == 0:
            self._as = {"user": user, "group": user, "extra_groups": []}
        self.user = user
        # a socket's path has 107 bytes at most
        self.sockets = Path(tempfile.mkdtemp(prefix="quiver-stress-"))
        self.own(self.sockets)
        self.process: subprocess.Popen[bytes] | None = None

    def own(self, path: Path) -> None:
        """Give a file or folder to the user that the server runs as."""
        if self._as:
            shutil.chown(path, self.user, self.user)

    def run(self, program: str, *args: str) -> None:
        """One of PostgreSQL's programs, to its end.

        Raises ServerError with what it said when it failed.
        """
        done = subprocess.run(
            [str(self.programs / program), *args],
            cwd=self.home, capture_output=True, text=True, check=False, **self._as,
        )  # fmt: skip
        if done.returncode != 0:
            raise ServerError(f"{program}: {done.stdout}{done.stderr}")

    def attempt(self, *command: str) -> None:
        """A command as the server's user, which may fail: its process may have ended."""
        subprocess.run(command, cwd=self.home, capture_output=True, check=False, **self._as)

    def initdb(self) -> None:
        self.run("initdb", "-D", str(self.data), "-U", "postgres", "-A", "trust", "-E", "UTF8",
                 "--locale=C.UTF-8", "--no-sync")  # fmt: skip

    def configure(self, settings: dict[str, str]) -> None:
        """Settings in a file of their own, written anew."""
        lines = {
            "listen_addresses": "''",
            "unix_socket_directories": f"'{self.sockets}'",
            **settings,
        }
        conf = self.data / "stress.conf"
        conf.write_text("".join(f"{name} = {value}\n" for name, value in lines.items()))
        self.own(conf)
        main = self.data / "postgresql.conf"
        if "stress.conf" not in main.read_text():
            with main.open("a") as out:
                out.write("include 'stress.conf'\n")

    def start(self, seconds: float = 120) -> None:
        """Start it and wait until it answers, after recovery.

        Raises ServerError when it ends instead, or does not answer for so long.
        """
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [str(self.programs / "postgres"), "-D", str(self.data)],
                cwd=self.home, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **self._as,
            )  # fmt: skip
        self.wait(seconds)

    def wait(self, seconds: float = 120) -> None:
        """Until it takes connections; see start()."""
        until = time.monotonic() + seconds
        while True:
            try:
                self.connect().close()
                return
            except psycopg.OperationalError as error:
                assert self.process is not None
                if self.process.poll() is not None:
                    raise ServerError(f"{self.name}: the server ended at its start") from error
                if time.monotonic() > until:
                    raise ServerError(f"{self.name}: no answer for {seconds} s: {error}") from error
            time.sleep(0.05)

    def connect(self, **more: Any) -> psycopg.Connection[Any]:
        return psycopg.connect(
            host=str(self.sockets), user="postgres", dbname="postgres", autocommit=True,
            connect_timeout=30, **more,
        )  # fmt: skip

    def processes(self) -> list[int]:
        """All of the server's, also those that outlive the postmaster."""
        found = []
        for folder in Path("/proc").glob("[0-9]*/cwd"):
            with contextlib.suppress(OSError):  # ended by itself
                if folder.readlink() == self.data:
                    found.append(int(folder.parent.name))
        return found

    def children(self) -> list[int]:
        """Process ids below the postmaster."""
        if self.process is None:
            return []
        pid = self.process.pid
        try:
            return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        except FileNotFoundError:
            return []

    def send(self, number: signal.Signals) -> None:
        if self.process is not None:
            self.process.send_signal(number)

    def kill(self, everyone: bool) -> None:
        """SIGKILL of the postmaster, and with `everyone` of all its processes at once, as when
        the power fails; else backends go on until they see that it is gone. Returns when all
        have ended."""
        self.send(signal.SIGKILL)
        if everyone:
            for pid in self.processes():
                kill(pid)
        self._ended()

    def stop(self, mode: signal.Signals) -> None:
        """SIGINT: fast; SIGQUIT: immediate."""
        self.send(mode)
        self._ended()

    def _ended(self) -> None:
        if self.process is None:
            return
        try:
            self.process.wait(120)
        except subprocess.TimeoutExpired as error:
            raise ServerError(f"{self.name}: does not stop") from error
        self.process = None
        until = time.monotonic() + 60
        while left := self.processes():
            if time.monotonic() > until:
                raise ServerError(f"{self.name}: processes {left} outlive the postmaster")
            time.sleep(0.02)

    def forget(self) -> None:
        shutil.rmtree(self.sockets, ignore_errors=True)


def kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):  # ended by itself
        os.kill(pid, signal.SIGKILL)
