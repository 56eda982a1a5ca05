"""Less memory for a server without another machine: a memory cgroup around it and its file cache.

Version 1 and 2 of the kernel's control groups, as root. Where neither can be had, the
server's buffers alone are limited, and the tier is named so.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")
NAME = "quiver-bench"
# Files of a group that count the processes which its limit has killed, of both versions.
EVENTS = ("memory.oom_control", "memory.events")
LEAVE_SECONDS = 10  # a process that is killed is in its group until its memory is free


class MemoryLimit:
    """A control group of ours with a limit. enter() says what it did, and does not raise."""

    def __init__(self) -> None:
        self.folder: Path | None = None

    def _make(self, megabytes: int) -> Path | None:
        limit = str(megabytes << 20)
        first = (CGROUP / "memory" / f"{NAME}-{os.getpid()}", "memory.limit_in_bytes")
        second = (CGROUP / f"{NAME}-{os.getpid()}", "memory.max")
        for folder, file in (first, second):
            try:
                folder.mkdir(exist_ok=True)
                if not (folder / file).is_file():
                    folder.rmdir()
                    continue
                (folder / file).write_text(limit)
            except OSError:
                if folder.is_dir():
                    folder.rmdir()
                continue
            return folder
        return None

    def enter(self, pids: Iterable[int], megabytes: int) -> str:
        """Limit a server and those it has started, and what they start; names the method."""
        self.leave()
        self.folder = self._make(megabytes)
        if self.folder is None:
            return "buffer pool only: no memory cgroup can be made here"
        first, *others = pids
        try:
            (self.folder / "cgroup.procs").write_text(str(first))
        except OSError as error:
            self.leave()
            return f"buffer pool only: the server cannot enter a memory cgroup ({error.strerror})"
        for pid in others:
            try:
                (self.folder / "cgroup.procs").write_text(str(pid))
            except OSError:  # it ended meanwhile
                continue
        return "cgroup"

    def killed(self) -> bool:
        """Whether the limit has killed a process of the group."""
        files = [self.folder / name for name in EVENTS] if self.folder else []
        lines = [line for f in files if f.is_file() for line in f.read_text().splitlines()]
        return any(line.startswith("oom_kill ") and line != "oom_kill 0" for line in lines)

    def leave(self) -> None:
        """Remove the group. The server was stopped before: what is left of it is killed."""
        end = time.monotonic() + LEAVE_SECONDS
        while folder := self.folder:
            try:
                folder.rmdir()
                self.folder = None
            except OSError:
                if time.monotonic() > end:
                    return
                self._kill(folder)
                time.sleep(0.05)

    @staticmethod
    def _kill(folder: Path) -> None:
        """Children of a postmaster that was killed may go on for a while."""
        with suppress(OSError):
            for pid in (folder / "cgroup.procs").read_text().split():
                with suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)


def forget_files(folder: Path) -> None:
    """Drop a folder's files from the file cache: what was read before would be charged to others."""
    for path in folder.rglob("*"):
        if not path.is_file():
            continue
        try:
            file = os.open(path, os.O_RDONLY)
        except OSError:
            continue
        try:
            os.fsync(file)
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(file)
