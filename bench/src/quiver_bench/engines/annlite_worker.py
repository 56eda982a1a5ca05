"""AnnLite in a process and a Python environment of its own: annlite_.py talks to it.

It may not be loaded beside hnswlib, whose module has the names of its own, and it needs a
numpy before 2. So this file imports nothing of quiver_bench. A message is a line of JSON,
then so many bytes as its "bytes" says: float32 vectors. An answer is a line of JSON.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

BATCH = 1000


class Worker:
    def __init__(self) -> None:
        self.annlite = import_module("annlite")
        self.docarray = import_module("docarray")
        self.index: Any = None

    def documents(self, rows: Iterable[int], vectors: Any, ranks: Any) -> Any:
        made = [
            self.docarray.Document(
                id=str(row), embedding=vector,
                tags={"any_rank": int(pair[0]), "near_rank": int(pair[1])},
            )
            for row, vector, pair in zip(rows, vectors, ranks, strict=True)
        ]  # fmt: skip
        return self.docarray.DocumentArray(made)

    def version(self, message: Any, vectors: Any) -> Any:
        return version("annlite")

    def create(self, message: Any, vectors: Any) -> Any:
        """An index without rows in the folder "place"."""
        if self.index is not None:
            self.index.close()
        shutil.rmtree(message["place"], ignore_errors=True)
        self.index = self.annlite.AnnLite(
            message["dimensions"], metric=message["metric"], data_path=message["place"],
            columns=[("any_rank", "int"), ("near_rank", "int")],
            max_connection=message["m"], ef_construction=message["ef_construction"],
        )  # fmt: skip
        return None

    def load(self, message: Any, vectors: Any) -> Any:
        """Rows from "start" on; the seconds that the index took."""
        start, ranks, seconds = message["start"], message["ranks"], 0.0
        for i in range(0, len(vectors), BATCH):
            part = vectors[i : i + BATCH]
            rows = range(start + i, start + i + len(part))
            made = self.documents(rows, part, ranks[i : i + BATCH])
            began = time.perf_counter()
            self.index.index(made)
            seconds += time.perf_counter() - began
        return seconds

    def size(self, message: Any, vectors: Any) -> Any:
        """Bytes of the graph, with its vectors."""
        with tempfile.NamedTemporaryFile() as file:
            self.index.vec_index(0).dump(file.name)
            return os.path.getsize(file.name)

    def ef(self, message: Any, vectors: Any) -> Any:
        self.index.vec_index(0).ef_search = message["ef"]
        return None

    def search(self, message: Any, vectors: Any) -> Any:
        _, found = self.index.search_by_vectors(
            vectors, filter=message["filter"], limit=message["k"], include_metadata=False
        )
        return [int(one.id) for one in found[0]]

    def read(self, message: Any, vectors: Any) -> Any:
        return self.index.get_doc_by_id(str(message["row"])) is not None

    def find(self, message: Any, vectors: Any) -> Any:
        found = self.index.filter(
            {"any_rank": {"$eq": message["value"]}}, limit=10, include_metadata=False
        )
        return [int(one.id) for one in found]

    def insert(self, message: Any, vectors: Any) -> Any:
        self.index.index(self.documents([message["row"]], vectors, [message["ranks"]]))
        return None

    def update(self, message: Any, vectors: Any) -> Any:
        self.index.update(self.documents([message["row"]], vectors, [message["ranks"]]))
        return None

    def delete(self, message: Any, vectors: Any) -> Any:
        self.index.delete([str(message["row"])])
        return None

    def ping(self, message: Any, vectors: Any) -> Any:
        return None


def serve(source: BinaryIO, target: BinaryIO) -> None:
    worker = Worker()
    while line := source.readline():
        message = json.loads(line)
        vectors = np.frombuffer(source.read(message["bytes"]), dtype=np.float32)
        if message["bytes"]:
            vectors = vectors.reshape(message["count"], -1)
        do: Callable[[Any, Any], Any] = getattr(worker, message["do"])
        try:
            answer = {"answer": do(message, vectors)}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        target.write(json.dumps(answer).encode() + b"\n")
        target.flush()


if __name__ == "__main__":
    # What AnnLite prints is no answer.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sys.path = [p for p in sys.path if Path(p or ".").resolve() != Path(__file__).parent]
    serve(sys.stdin.buffer, answers)
