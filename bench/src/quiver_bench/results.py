"""A folder of results: results.jsonl, one JSON object a line, and raw/, one file a repetition.

results.jsonl only ever grows, and a line that a crash cut off is passed over, so a run
goes on where it was interrupted. Lines are of kind "environment" or "result".
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from quiver_bench.errors import ConfigError
from quiver_bench.records import OK, SCHEMA, Result, canonical

FILE = "results.jsonl"


class Store:
    """Appends to one folder and knows what is in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "raw").mkdir(parents=True, exist_ok=True)
        path = folder / FILE
        # What was measured on another machine is not measured here.
        self._done = {(r.host, r.point.id, r.rep) for r in read(folder)[0] if r.status == OK}
        if path.is_file() and not path.read_bytes().endswith(b"\n"):
            with path.open("a") as file:  # after a crash within a line
                file.write("\n")

    def forget(self) -> None:
        """Delete all that was measured before."""
        (self.folder / FILE).unlink(missing_ok=True)
        shutil.rmtree(self.folder / "raw", ignore_errors=True)
        (self.folder / "raw").mkdir()
        self._done.clear()

    def done(self, host: str, point_id: str, rep: int) -> bool:
        return (host, point_id, rep) in self._done

    def _append(self, line: str) -> None:
        with (self.folder / FILE).open("a") as file:
            file.write(line + "\n")
            file.flush()
            os.fsync(file.fileno())

    def environment(self, facts: Mapping[str, Any]) -> None:
        self._append(canonical({"schema": SCHEMA, "kind": "environment", **facts}))

    def add(self, result: Result, raw: Mapping[str, npt.NDArray[Any]] | None = None) -> None:
        """Keep a result; its raw arrays go to raw/<id>-<rep>.npz first."""
        if raw:
            name = self.folder / "raw" / f"{result.point.id}-{result.rep}.npz"
            np.savez_compressed(name, **dict(raw))  # type: ignore[arg-type]
        self._append(result.to_json())
        if result.status == OK:
            self._done.add((result.host, result.point.id, result.rep))


def read(folder: Path) -> tuple[list[Result], dict[str, Mapping[str, Any]]]:
    """The results of a folder, the last of each host, point and repetition; its environments."""
    return read_file(folder / FILE)


def read_file(path: Path) -> tuple[list[Result], dict[str, Mapping[str, Any]]]:
    """Those of one file."""
    found: dict[tuple[str, str, int], Result] = {}
    environments: dict[str, Mapping[str, Any]] = {}
    if not path.is_file():
        return [], {}
    for line in path.read_text().splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue  # cut off by a crash
        if record.get("schema") != SCHEMA:
            raise ConfigError(f"{path} has results of schema {record.get('schema')}, not {SCHEMA}")
        if record["kind"] == "environment":
            environments[record["id"]] = record
            continue
        result = Result.from_json(record)
        key = (result.host, result.point.id, result.rep)
        if key not in found or result.status == OK or found[key].status != OK:
            found[key] = result
    return list(found.values()), environments


def read_all(folders: Iterable[Path]) -> tuple[list[Result], dict[str, Mapping[str, Any]]]:
    """The results of several folders, as of several hosts."""
    results: list[Result] = []
    environments: dict[str, Mapping[str, Any]] = {}
    for folder in folders:
        if not (folder / FILE).is_file():
            raise ConfigError(f"{folder} has no results: there is no {FILE} in it")
        some, facts = read(folder)
        results += some
        environments |= facts
    return results, environments
