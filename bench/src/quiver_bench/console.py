"""Progress: one line a step, with what was done and how long it took."""

from __future__ import annotations

import os
import sys
import time
from types import TracebackType
from typing import Self

TITLE_WIDTH = 54
# A log file or a pipe gets a line now and then instead of one that is redrawn.
QUIET_SECONDS = 10.0


class Step:
    """A step of the run, used as a context manager."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.note = ""
        self._live = sys.stdout.isatty()
        self._began = self._spoke = 0.0

    def __enter__(self) -> Self:
        self._began = self._spoke = time.monotonic()
        if self._live:
            print(f"  {self.title:<{TITLE_WIDTH}} ", end="", flush=True)
        return self

    def update(self, text: str) -> None:
        """Say how far the step is."""
        now = time.monotonic()
        if self._live:
            print(f"\r\033[K  {self.title:<{TITLE_WIDTH}} {text}", end="", flush=True)
        elif now - self._spoke >= QUIET_SECONDS:
            self._spoke = now
            print(f"  {self.title} ... {text}", flush=True)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        start = "\r\033[K" if self._live else ""
        failed = "interrupted" if kind is KeyboardInterrupt else "FAILED"
        end = failed if kind else f"{self.seconds:6.1f} s"
        note = f"  ({self.note})" if self.note and not kind else ""
        print(f"{start}  {self.title:<{TITLE_WIDTH}} {end}{note}", flush=True)


def duration(seconds: float) -> str:
    """As people say it: 40 s, 5 min, 1 h 20 min."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def time_left(done: float, total: float, seconds: float) -> str:
    """What is left when so much took so long, going on at that speed; empty at first."""
    if seconds < 3 or not 0 < done < total:
        return ""
    return f", about {duration(seconds * (total - done) / done)} left"


def command() -> str:
    """How quiver-bench was called; the script of a checkout says its own name."""
    return os.environ.get("QUIVER_BENCH_COMMAND") or "quiver-bench"


def say(text: str = "") -> None:
    print(text, flush=True)


def done_before(title: str, note: str) -> None:
    """A step that an earlier run has finished."""
    print(f"  {title:<{TITLE_WIDTH}} ready     ({note})", flush=True)
