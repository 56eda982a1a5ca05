"""Servers that are not PostgreSQL: found on this machine, or unpacked from Debian's packages."""

from __future__ import annotations

import ctypes
import fcntl
import os
import platform
import pwd
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from quiver_bench.console import Step
from quiver_bench.errors import EngineError, MissingError

START_SECONDS = 120


def home(top: Path | None) -> Path:
    """Where quiver-bench keeps what it makes: .quiver/bench of a checkout, else the user's cache."""
    if top is not None:
        link = top / ".quiver"
        if not link.exists():  # where servers' users can enter it, the script knows
            subprocess.run([str(top / "tools" / "bench_server"), "home"], check=False)
        return link.resolve() / "bench"
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache) / "quiver-bench"


@contextmanager
def only_run(place: Path) -> Iterator[None]:
    """One run at a time has the servers below place."""
    place.mkdir(parents=True, exist_ok=True)
    with (place / "run.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise EngineError(f"another run of quiver-bench is at work in {place}") from error
        yield


def find_top() -> Path | None:
    """The checkout of Quiver: QUIVER_TOP, or one that the current folder is in."""
    given = os.environ.get("QUIVER_TOP")
    here = Path(given) if given else Path.cwd()
    for folder in (here, *here.parents):
        if (folder / "quiver.control").is_file() and (folder / "tools").is_dir():
            return folder.resolve()
    return None


def command(top: Path | None, name: str, package: str, oldest: tuple[int, ...]) -> list[str]:
    """How to run a server: the system's when it is new enough, else Debian stable's, unpacked.

    Beside the unpacked program lies the library that it needs, down to the C library, so
    it runs through the loader that came along.
    """
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")
    if found:
        said = subprocess.run([found, "--version"], capture_output=True, text=True, check=False)
        match = re.search(r"(?:v=|Ver )(\d+)\.(\d+)", said.stdout)
        if match and tuple(map(int, match.groups())) >= oldest:
            return [found]
    wanted = ".".join(map(str, oldest))
    if top is None:
        raise MissingError(f"needs {name} {wanted} or later; none is in the path")
    folder = home(top) / "debian" / package
    if not (folder / "unpacked").is_file():
        with Step(f"{name} from Debian's packages") as step:
            made = subprocess.run(
                [str(top / "tools" / "deb_prefix"), str(folder), package],
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            if made.returncode != 0:
                last = (made.stderr.strip() or made.stdout.strip()).splitlines()[-1:]
                raise MissingError(
                    f"needs {name} {wanted} or later, and Debian's package {package} could not"
                    f" be had: {' '.join(last)}"
                )
            step.note = made.stdout.strip().splitlines()[-1]
        (folder / "unpacked").touch()
    root = folder / "root"
    libraries = root / "usr" / "lib" / f"{platform.machine()}-linux-gnu"
    loaders = sorted(libraries.glob("ld-linux-*.so.*"))
    programs = [root / "usr" / place / name for place in ("bin", "sbin")]
    program = next((p for p in programs if p.exists()), None)
    if not loaders or program is None:
        raise MissingError(f"the package {package} has no {name} for this machine")
    return [str(loaders[0]), "--argv0", name, "--library-path", str(libraries), str(program)]


def free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 that nobody listens on now."""
    found = [socket.socket() for _ in range(count)]
    try:
        for one in found:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in found]
    finally:
        for one in found:
            one.close()


def _end_with_parent() -> None:
    """Of Linux: the kernel ends a server whose run has crashed."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)


class Process:
    """A server of ours. It may have a Unix socket, in a folder of its own."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.log = place / "server.log"
        self.folder = Path(tempfile.mkdtemp(prefix="quiver-bench-"))
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def socket(self) -> Path:
        return self.folder / "socket"

    def start(
        self, arguments: Sequence[str], ready: Callable[[], Any], user: str = "",
        environment: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        """Start it and wait until ready() raises no more. environment: added to ours."""
        who: dict[str, Any] = {}
        if user and os.geteuid() == 0:
            entry = pwd.getpwnam(user)
            who = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
            for path in (self.place, self.folder):
                shutil.chown(path, user)
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                list(arguments), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                cwd=self.place, start_new_session=True, env=os.environ | dict(environment or {}),
                **who,
                preexec_fn=_end_with_parent,  # noqa: PLW1509 - no threads at this time
            )  # fmt: skip
        began = time.monotonic()
        while True:
            try:
                ready()
                return
            except Exception as error:
                if self.process.poll() is not None:
                    self.stop()
                    raise EngineError(f"the server ended at once: {self.last_words()}") from error
                if time.monotonic() - began > START_SECONDS:
                    self.stop()
                    raise EngineError(f"the server is not ready: {error}") from error
                time.sleep(0.2)

    def last_words(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines() if self.log.is_file() else []
        return " | ".join(line.strip() for line in lines[-3:])

    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process = None
        shutil.rmtree(self.folder, ignore_errors=True)
