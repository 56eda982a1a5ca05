"""The plans that the server ran, from its log: auto_explain writes them there for
whatever statement a client sent."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Node = dict[str, Any]


class Plans:
    """The plans since this was made, or since the last forget()."""

    def __init__(self) -> None:
        self._log = Path(os.environ["QUIVER_LOG"])
        # The prefix of a line ends with the database: others' plans are not ours.
        self._prefix = f" {os.environ['PGDATABASE']} LOG:  duration:"
        self.forget()

    def forget(self) -> None:
        self._offset = self._log.stat().st_size

    def __iter__(self) -> Iterator[Node]:
        with self._log.open("rb") as log:
            log.seek(self._offset)
            lines = log.read().decode(errors="replace").splitlines()
        entry: list[str] | None = None
        # The lines after the first of an entry begin with a tab.
        for line in [*lines, ""]:
            if entry is not None and line.startswith("\t"):
                entry.append(line[1:])
                continue
            if entry:
                yield json.loads("\n".join(entry))["Plan"]
            entry = [] if self._prefix in line and line.endswith(" plan:") else None

    def ordered_scans(self, index: str) -> int:
        """How often rows were read from this index in the order of their distances."""
        return sum(
            node["Node Type"] in ("Index Scan", "Custom Scan")
            and node.get("Index Name") == index
            and "Order By" in node
            for plan in self
            for node in _nodes(plan)
        )

    def assert_used(self, index: str, times: int) -> None:
        assert self.ordered_scans(index) == times, [
            (node["Node Type"], node.get("Index Name")) for plan in self for node in _nodes(plan)
        ]


def _nodes(plan: Node) -> Iterator[Node]:
    yield plan
    for child in plan.get("Plans", []):
        yield from _nodes(child)
