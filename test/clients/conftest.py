"""What all clients' tests share. tools/check_clients runs them, each file in a
database of its own, and sets PGHOST, PGPORT, PGUSER, PGDATABASE and

QUIVER_LOG             the server's log, with plans by auto_explain
QUIVER_ACCESS_METHODS  names in pg_am
QUIVER_RESULT          a file for the line that tells the result
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from plans import Plans

needs_ivfflat = pytest.mark.skipif(
    "ivfflat" not in os.environ["QUIVER_ACCESS_METHODS"].split(), reason="no access method ivfflat"
)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "ivfflat: needs the access method ivfflat")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("ivfflat"):
            item.add_marker(needs_ivfflat)


@pytest.fixture
def plans() -> Plans:
    return Plans()


@pytest.fixture(scope="session", autouse=True)
def no_network() -> Iterator[None]:
    """The server listens on a Unix socket: no other machine is to be reached."""
    connect = socket.socket.connect

    def only_local(self: socket.socket, address: Any) -> None:
        if self.family != socket.AF_UNIX and address[0] != "127.0.0.1":
            raise ConnectionRefusedError(f"the tests reach no network: {address}")
        connect(self, address)

    socket.socket.connect = only_local  # type: ignore[method-assign]
    yield
    socket.socket.connect = connect  # type: ignore[method-assign]


def url(scheme: str) -> str:
    env = os.environ
    return (
        f"{scheme}://{env['PGUSER']}@/{env['PGDATABASE']}"
        f"?host={quote(env['PGHOST'], safe='')}&port={env['PGPORT']}"
    )


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Versions of the packages that the test file names, and the counts."""
    if not (path := os.environ.get("QUIVER_RESULT")):
        return
    stats = terminalreporter.stats
    packages: list[str] = []
    reasons: set[str] = set()
    for report in stats.get("skipped", []):
        reasons.add(str(report.longrepr[2]).removeprefix("Skipped: "))
    for item in getattr(terminalreporter.config, "quiver_modules", []):
        packages += [p for p in item.PACKAGES if p not in packages]
    line = ", ".join(f"{package} {metadata.version(package)}" for package in packages)
    line += f": {len(stats.get('passed', []))} tests"
    if skipped := len(stats.get("skipped", [])):
        line += f", {skipped} skipped ({'; '.join(sorted(reasons))})"
    Path(path).write_text(line + "\n")


def pytest_collection_finish(session: pytest.Session) -> None:
    modules = {item.module for item in session.items if isinstance(item, pytest.Function)}
    session.config.quiver_modules = sorted(modules, key=lambda m: m.__name__)  # type: ignore[attr-defined]
