"""AnnLite, in a process and a Python environment of its own (annlite_worker.py)."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from quiver_bench.console import Step
from quiver_bench.engines.base import Built, Data, Engine, Search, Session, SessionFactory, take
from quiver_bench.errors import EngineError, MissingError
from quiver_bench.records import Params
from quiver_bench.servers import home
from quiver_bench.truth import Floats

METRICS = {"euclidean": "euclidean", "angular": "cosine", "ip": "inner_product"}
BATCH = 5000
# With what was current when it was released: it fails with later ones.
REQUIREMENTS = ("annlite==0.5.10", "docarray==0.21.1", "numpy<2", "scipy<1.14",
                "scikit-learn<1.6", "matplotlib<3.9")  # fmt: skip

TOO_FEW = "2D array"  # in what its copy of hnswlib says when there are fewer than k


def environment(top: Path | None) -> Path:
    """The Python of an environment with AnnLite, made when there is none."""
    folder = home(top) / "annlite"
    python, made = folder / "bin" / "python", folder / ".made"
    wanted = "\n".join([sys.version, *REQUIREMENTS])
    if made.is_file() and made.read_text() == wanted:
        return python
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with Step("AnnLite in an environment of its own"):
        for arguments in (
            [sys.executable, "-m", "venv", str(folder)],
            [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
             *REQUIREMENTS],
        ):  # fmt: skip
            ran = subprocess.run(arguments, capture_output=True, text=True, check=False)
            if ran.returncode != 0:
                last = " ".join((ran.stderr or ran.stdout).strip().splitlines()[-1:])
                raise MissingError(f"AnnLite could not be installed (it needs g++): {last}")
    made.write_text(wanted)
    return python


class Pipe:
    """The other process."""

    def __init__(self, python: Path, log: Path) -> None:
        self.log = log
        with log.open("wb") as errors:
            self.process = subprocess.Popen(
                [str(python), str(Path(__file__).with_name("annlite_worker.py"))],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
            )  # fmt: skip

    def ask(self, do: str, vectors: Floats | bytes = b"", count: int = 1, **rest: Any) -> Any:
        raw = vectors if isinstance(vectors, bytes) else vectors.tobytes()
        head = json.dumps({"do": do, "bytes": len(raw), "count": count, **rest}).encode()
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(head + b"\n" + raw)
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except OSError as error:
            raise EngineError(f"AnnLite's process is gone: {self.last_words()}") from error
        if not line:
            raise EngineError(f"AnnLite's process is gone: {self.last_words()}")
        answer = json.loads(line)
        if "error" in answer:
            raise EngineError(f"AnnLite: {answer['error']}")
        return answer["answer"]

    def last_words(self) -> str:
        return " | ".join(self.log.read_text(errors="replace").splitlines()[-3:])

    def close(self) -> None:
        for file in (self.process.stdin, self.process.stdout):
            if file is not None:
                file.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class AnnLiteSession(Session):
    def __init__(self, pipe: Pipe, search: Search) -> None:
        self.pipe, self.k = pipe, search.k
        where = search.where
        self.filter = {where.column: {"$lt": where.below}} if where else {}

    def encode(self, vector: Floats) -> bytes:
        return vector.tobytes()

    def search(self, query: Any) -> Sequence[int]:
        try:
            rows: list[int] = self.pipe.ask("search", query, k=self.k, filter=self.filter)
        except EngineError as error:
            if TOO_FEW in str(error):
                few = f"its graph found fewer than {self.k} rows that pass, and it answers none"
                raise EngineError(f"{few}: {error}") from error
            raise
        return rows

    def ping(self) -> None:
        self.pipe.ask("ping")

    def read(self, row: int) -> bool:
        return bool(self.pipe.ask("read", row=row))

    def find(self, value: int) -> Sequence[int]:
        rows: list[int] = self.pipe.ask("find", value=value)
        return rows

    def insert(self, row: int, vector: Any, ranks: tuple[int, int]) -> None:
        self.pipe.ask("insert", vector, row=row, ranks=ranks)

    def update(self, row: int, vector: Any, ranks: tuple[int, int]) -> None:
        self.pipe.ask("update", vector, row=row, ranks=ranks)

    def delete(self, row: int) -> None:
        self.pipe.ask("delete", row=row)


class AnnLite(Engine):
    adapter = "annlite"
    label = "in a process of its own, over a pipe"
    embedded = False
    reads_while_writing = False
    several_clients = False
    parameters = ("m", "ef_construction")
    search_parameters = ("ef_search",)
    pipe: Pipe | None = None

    def start(self, server: Params) -> str:
        python = environment(self.top)
        self.place.mkdir(parents=True, exist_ok=True)
        self.pipe = Pipe(python, self.place / "worker.log")
        return f"AnnLite {self.ask('version')}"

    def ask(self, do: str, vectors: Floats | bytes = b"", count: int = 1, **rest: Any) -> Any:
        if self.pipe is None:
            raise EngineError("AnnLite is not started")
        return self.pipe.ask(do, vectors, count, **rest)

    def stop(self) -> None:
        if self.pipe is not None:
            self.pipe.close()
            self.pipe = None
        shutil.rmtree(self.place / "data", ignore_errors=True)

    def alive(self) -> bool:
        return self.pipe is not None and self.pipe.process.poll() is None

    def pids(self) -> Iterable[int]:
        return () if self.pipe is None else (self.pipe.process.pid,)

    def load(self, data: Data) -> float:
        self.data = data
        return 0.0

    def empty(self, params: Params) -> None:
        dataset = self.data.dataset
        self.ask(
            "create", place=str(self.place / "data"), dimensions=dataset.dimensions,
            metric=METRICS[dataset.metric], m=take(params, "m", 16),
            ef_construction=take(params, "ef_construction", 200),
        )  # fmt: skip

    def build(self, params: Params) -> Built:
        self.empty(params)
        train, seconds = self.data.dataset.train, 0.0
        for start in range(0, len(train), BATCH):
            part = np.ascontiguousarray(train[start : start + BATCH])
            ranks = [self.data.ranks(i) for i in range(start, start + len(part))]
            seconds += self.ask("load", part, len(part), start=start, ranks=ranks)
        return Built(seconds, self.ask("size"), mode="insert")

    def sessions(self, search: Search) -> SessionFactory:
        self.ask("ef", ef=max(search.k, take(search.params, "ef_search", 50)))
        pipe = self.pipe
        assert pipe is not None
        return lambda: AnnLiteSession(pipe, search)
