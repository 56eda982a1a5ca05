"""Returns the true neighbors at once: the ceiling of the client, and a test of the harness."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from quiver_bench.engines.base import Built, Data, Engine, Search, Session, SessionFactory
from quiver_bench.errors import UnsupportedError
from quiver_bench.records import Params
from quiver_bench.truth import Floats, nearest


class NullSession(Session):
    def __init__(self, answers: dict[bytes, list[int]], microseconds: int) -> None:
        self.answers, self.seconds = answers, microseconds / 1e6

    def encode(self, vector: Floats) -> bytes:
        return vector.tobytes()

    def search(self, query: Any) -> Sequence[int]:
        if self.seconds:
            time.sleep(self.seconds)
        return self.answers[query]

    def ping(self) -> None:
        return


class Null(Engine):
    adapter = "null"
    label = "no engine: the client alone"
    embedded = False  # clients are processes, as they are for a server
    search_parameters = ("sleep_us",)

    def start(self, server: Params) -> str:
        return "-"

    def load(self, data: Data) -> float:
        self.data = data
        self._answers: npt.NDArray[np.int64] | None = None
        return 0.0

    def build(self, params: Params) -> Built:
        return Built(0.0, 0, mode="none")

    def sessions(self, search: Search) -> SessionFactory:
        if search.where:
            raise UnsupportedError("the null engine has no conditions")
        dataset = self.data.dataset
        if self._answers is None or self._answers.shape[1] != search.k:
            self._answers, _ = nearest(dataset.train, dataset.queries, search.k, dataset.metric)
        rows = zip(dataset.queries, self._answers, strict=True)
        answers = {query.tobytes(): ids.tolist() for query, ids in rows}
        sleep = int(search.params.get("sleep_us", 0) or 0)
        return partial(NullSession, answers, sleep)
