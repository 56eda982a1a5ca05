"""One small module an engine. base.py is the contract, catalog() knows them all."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from quiver_bench.errors import ConfigError

if TYPE_CHECKING:
    from quiver_bench.engines.base import Engine

# adapter: (module, class). Modules are imported when they are used: each may need a
# package that is not there.
ADAPTERS = {
    "null": ("null", "Null"),
    "quiver": ("pg_engines", "Quiver"),
    "pgvector": ("pg_engines", "Pgvector"),
    "vectorchord": ("pg_engines", "VectorChord"),
    "pgvectorscale": ("pg_engines", "Pgvectorscale"),
    "mariadb": ("mariadb", "MariaDB"),
    "redis": ("redis_vset", "RedisVectorSet"),
    "qdrant-edge": ("qdrant_edge_", "QdrantEdge"),
    "qdrant": ("qdrant_server", "Qdrant"),
    "opensearch": ("opensearch", "OpenSearch"),
    "elasticsearch": ("opensearch", "Elasticsearch"),
    "weaviate": ("weaviate_", "Weaviate"),
    "annlite": ("annlite_", "AnnLite"),
    "sqlite-vec": ("sqlite_vec_", "SqliteVec"),
    "numpy": ("numpy_exact", "NumpyExact"),
    "hnswlib": ("hnswlib_", "Hnswlib"),
    "faiss": ("faiss_", "Faiss"),
    "usearch": ("usearch_", "Usearch"),
}


def adapter(name: str) -> type[Engine]:
    """The class of an adapter; ConfigError for a name that is none."""
    if name not in ADAPTERS:
        raise ConfigError(f"no adapter {name}; there are {', '.join(ADAPTERS)}")
    module, cls = ADAPTERS[name]
    found: type[Engine] = getattr(import_module(f"quiver_bench.engines.{module}"), cls)
    return found
