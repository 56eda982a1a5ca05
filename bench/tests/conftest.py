"""Small sets of vectors."""

from __future__ import annotations

import numpy as np
import pytest

from quiver_bench.datasets import Dataset


def make_dataset(metric: str = "euclidean", rows: int = 300, dimensions: int = 8) -> Dataset:
    rng = np.random.default_rng(3)
    train = rng.standard_normal((rows, dimensions)).astype(np.float32)
    queries = rng.standard_normal((20, dimensions)).astype(np.float32)
    return Dataset("small", f"small {metric}", metric, train, queries)


@pytest.fixture(params=["euclidean", "angular", "ip"])
def dataset(request: pytest.FixtureRequest) -> Dataset:
    return make_dataset(request.param)
