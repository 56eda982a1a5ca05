"""What a run ran on: goes into the results."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from quiver_bench.records import canonical

PACKAGES = (
    "apsw", "faiss-cpu", "h5py", "hnswlib", "numpy", "psycopg", "pymysql", "qdrant-edge-py",
    "quiver-bench", "redis", "sqlite-vec", "usearch",
)  # fmt: skip
FLAGS = ("avx2", "avx512f", "avx512_vpopcntdq", "avx512_vnni", "asimd", "asimdhp", "sve")
# What the extension is made of.
SOURCES = ("src", "sql", "Makefile", "vector.control", "quiver.control")


def _read(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def memory_mb() -> int:
    """Memory of the machine, or of the container when it has less."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    for file in ("memory.max", "memory/memory.limit_in_bytes"):  # version 2, version 1
        limit = _read(f"/sys/fs/cgroup/{file}")
        if limit.isdigit():
            total = min(total, int(limit) >> 20)
    return total


def cpu() -> tuple[str, list[str]]:
    """Its name, and those instruction sets that matter here."""
    name, flags = platform.processor() or platform.machine(), set[str]()
    for line in _read("/proc/cpuinfo").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            name = value.strip()
        elif key.strip() in ("flags", "Features"):
            flags = set(value.split())
            break
    return name, [flag for flag in FLAGS if flag in flags]


def packages() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def host() -> str:
    """A short name of this machine: its processor and cores, not its owner's name for it."""
    return os.environ.get("QUIVER_BENCH_HOST") or f"{os.cpu_count()} x {cpu()[0]}"


def checkout_version(top: Path | None) -> str:
    """The last commit that changed the extension, with + and a digest of all when changed since."""
    if top is None:
        return ""

    def git(*arguments: str) -> str:
        command = ["git", "-c", "safe.directory=*", "-C", str(top), *arguments, "--", *SOURCES]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()

    commit = git("log", "-1", "--format=%h", "--abbrev=10")
    if commit and not git("status", "--porcelain"):
        return commit
    # Changes on changes are another extension: what was measured is not what is there now.
    names = git("ls-files", "--cached", "--others", "--exclude-standard").splitlines()
    if not names:  # no git: all files, with what compiling left among them
        files = [path for name in SOURCES for path in (top / name, *(top / name).rglob("*"))]
        names = [str(path.relative_to(top)) for path in files]
    sha = hashlib.sha256()
    for name in sorted(names):
        if (top / name).is_file():
            sha.update(name.encode() + b"\0" + (top / name).read_bytes())
    return f"{commit}+{sha.hexdigest()[:8]}"


def describe(top: Path | None) -> dict[str, Any]:
    """The facts, with an id that is the same for the same machine and software."""
    name, flags = cpu()
    facts: dict[str, Any] = {
        "cpu": name,
        "cpu_flags": flags,
        "cores": os.cpu_count(),
        "memory_mb": memory_mb(),
        "kernel": platform.release(),
        "system": _read("/etc/os-release").partition('PRETTY_NAME="')[2].partition('"')[0],
        "governor": _read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "transparent_huge_pages": _read("/sys/kernel/mm/transparent_hugepage/enabled"),
        "swap": len(_read("/proc/swaps").splitlines()) > 1,
        "python": platform.python_version(),
        "packages": packages(),
        "quiver": checkout_version(top),
        "host": host(),
    }
    facts["id"] = hashlib.sha256(canonical(facts).encode()).hexdigest()[:16]
    facts["started"] = datetime.now(UTC).isoformat(timespec="seconds")
    facts["load_average"] = list(os.getloadavg())
    return facts
