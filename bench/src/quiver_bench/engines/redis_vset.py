"""Redis 8: vector sets, on a private server.

Vector sets order by the cosine alone. Euclidean and inner-product sets get two more
dimensions that turn their order into that of cosines, exactly but for rounding:

    x -> (x, |x|^2 / a, the rest to norm R)    q -> (q, -a / 2, 0)

for then x.q is the same number as in -|x - q|^2 / 2 up to a term of q alone; a is the
longest row, so that neither part drowns the other.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from quiver_bench.engines.base import (
    ANY,
    NEAR,
    Built,
    Data,
    ProcessEngine,
    Search,
    Session,
    SessionFactory,
    take,
)
from quiver_bench.errors import ConfigError, EngineError, MissingError
from quiver_bench.records import Params
from quiver_bench.servers import Process, command
from quiver_bench.truth import Floats

KEY = "items"
BATCH = 100


@dataclass(frozen=True)
class Lift:
    """Makes the order of a metric that of cosines."""

    metric: str
    longest: float

    @staticmethod
    def of(train: Floats, metric: str) -> Lift:
        return Lift(metric, float(np.linalg.norm(train, axis=1).max()) or 1.0)

    def rows(self, vectors: Floats) -> Floats:
        if self.metric == "angular":
            return vectors
        squares = np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64)
        extra = squares / self.longest if self.metric == "euclidean" else np.zeros(len(vectors))
        rest = 2 * self.longest**2 - squares - extra**2
        lifted = [vectors, extra[:, None], np.sqrt(np.maximum(0, rest))[:, None]]
        return np.hstack(lifted).astype(np.float32)

    def query(self, vector: Floats) -> Floats:
        if self.metric == "angular":
            return vector
        extra = -self.longest / 2 if self.metric == "euclidean" else 0.0
        return np.append(vector, [extra, 0.0]).astype(np.float32)


def client(socket: str) -> Any:
    import redis

    return redis.Redis(unix_socket_path=socket)


class RedisSession(Session):
    def __init__(self, socket: str, search: Search, lift: Lift, add: tuple[Any, ...]) -> None:
        self.db, self.lift, self.add = client(socket), lift, add
        self.after: list[Any] = ["COUNT", search.k]
        self.after += ["EF", max(search.k, take(search.params, "ef_search", 40))]
        if search.where:
            self.after += ["FILTER", f".{search.where.column} < {search.where.below}"]
            if search.params.get("filter_ef"):
                self.after += ["FILTER-EF", take(search.params, "filter_ef", 0)]

    def encode(self, vector: Floats) -> bytes:
        return self.lift.query(vector).tobytes()

    def search(self, query: Any) -> Sequence[int]:
        found = self.db.execute_command("VSIM", KEY, "FP32", query, *self.after)
        return [int(name) for name in found]

    def ping(self) -> None:
        self.db.ping()

    def read(self, row: int) -> bool:
        return self.db.execute_command("VEMB", KEY, str(row)) is not None

    def _put(self, row: int, query: Any, ranks: tuple[int, int]) -> None:
        vector = np.frombuffer(query, dtype=np.float32)
        if self.lift.metric != "angular":
            vector = vector[:-2]
        self.db.execute_command(*vadd(row, self.lift.rows(vector[None])[0], ranks, self.add))

    def insert(self, row: int, vector: Any, ranks: tuple[int, int]) -> None:
        self._put(row, vector, ranks)

    def update(self, row: int, vector: Any, ranks: tuple[int, int]) -> None:
        self._put(row, vector, ranks)

    def delete(self, row: int) -> None:
        self.db.execute_command("VREM", KEY, str(row))

    def close(self) -> None:
        self.db.close()


def vadd(row: int, lifted: Floats, ranks: tuple[int, int], add: tuple[Any, ...]) -> tuple[Any, ...]:
    attributes = json.dumps({ANY: ranks[0], NEAR: ranks[1]})
    return ("VADD", KEY, "FP32", lifted.tobytes(), str(row), *add, "SETATTR", attributes)


class RedisVectorSet(ProcessEngine):
    adapter = "redis"
    label = "vector sets (stand in for RediSearch)"
    parameters = ("m", "ef_construction")
    search_parameters = ("ef_search", "filter_ef")

    def start(self, server: Params) -> str:
        try:
            import redis  # noqa: F401
        except ImportError as error:
            raise MissingError("needs redis: pip install quiver-bench[redis]") from error
        self.type = str(self.options.get("type") or "NOQUANT").upper()
        if self.type not in ("NOQUANT", "Q8", "BIN"):
            raise ConfigError(f"{self.name}: Redis has types noquant, q8 and bin")
        program = command(self.top, "redis-server", "redis-server", (8, 0))
        self.place.mkdir(parents=True, exist_ok=True)
        self.process = Process(self.place)
        self.socket = str(self.process.socket)
        arguments = [*program, "--port", "0", "--unixsocket", self.socket, "--save", "",
                     "--appendonly", "no", "--dir", str(self.place)]  # fmt: skip
        for name, value in server.items():
            arguments += [f"--{name}", str(value)]
        self.db = client(self.socket)
        place = self.process.socket

        def ready() -> None:
            if not place.exists():  # a connection that fails stays open
                raise EngineError("it has no socket yet")
            self.db.ping()

        self.process.start(arguments, ready)
        return f"Redis {self.db.info('server')['redis_version']}"

    def stop(self) -> None:
        if self.process:
            self.db.close()
        super().stop()

    def settings(self) -> Params:
        names = ("maxmemory", "appendonly", "save", "io-threads")
        return {name: str(self.db.config_get(name).get(name)) for name in names} | {
            "type": self.type
        }

    def load(self, data: Data) -> float:
        self.data, self.lift = data, Lift.of(data.dataset.train, data.dataset.metric)
        return 0.0

    def _add(self, params: Params) -> tuple[Any, ...]:
        ef, m = take(params, "ef_construction", 200), take(params, "m", 16)
        return (self.type, "EF", ef, "M", m)

    def build(self, params: Params) -> Built:
        dataset, data = self.data.dataset, self.data
        self.empty(params)
        before = int(self.db.info("memory")["used_memory"])
        began = time.perf_counter_ns()
        for start in range(0, dataset.rows, BATCH):
            lifted = self.lift.rows(dataset.train[start : start + BATCH])
            pipe = self.db.pipeline(transaction=False)
            for i, vector in enumerate(lifted, start):
                pipe.execute_command(*vadd(i, vector, data.ranks(i), self.add))
            pipe.execute()
        seconds = (time.perf_counter_ns() - began) / 1e9
        used = int(self.db.info("memory")["used_memory"]) - before
        return Built(seconds, used, mode="insert", notes=("size: memory, vectors included",))

    def empty(self, params: Params) -> None:
        self.add = self._add(params)
        self.db.flushall()

    def sessions(self, search: Search) -> SessionFactory:
        return partial(RedisSession, self.socket, search, self.lift, self.add)
