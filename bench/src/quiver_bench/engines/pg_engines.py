"""The engines inside PostgreSQL: what their indexes, options and settings are called."""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import psutil
import psycopg
from psycopg import sql

from quiver_bench.engines import postgres
from quiver_bench.engines.base import Built, Data, Engine, Search, SessionFactory, take
from quiver_bench.engines.postgres import (
    Cluster,
    Connection,
    Installation,
    PgSession,
    Statements,
)
from quiver_bench.environment import checkout_version, memory_mb
from quiver_bench.errors import (
    ConfigError,
    EngineError,
    MeasureError,
    MissingError,
    UnsupportedError,
)
from quiver_bench.records import Params, canonical
from quiver_bench.tiers import MemoryLimit, forget_files

FAR = 0.1  # share of the rows by which the planner's number of them may be off


def default_settings() -> dict[str, str]:
    """The same for all engines inside PostgreSQL; a suite's server part goes over them."""
    memory = memory_mb()
    return {
        "shared_buffers": f"{min(4096, max(128, memory // 8))}MB",
        "maintenance_work_mem": f"{min(2048, max(64, memory // 12))}MB",
        "max_parallel_maintenance_workers": "0",
        "max_parallel_workers_per_gather": "0",
        "max_wal_size": "4GB",
        "checkpoint_timeout": "1h",
        "jit": "off",
        "autovacuum": "off",
        "fsync": "on",
        "effective_cache_size": f"{memory * 3 // 4}MB",
    }


class PgEngine(Engine):
    """What they share. A suite's options: index, type, url, version."""

    embedded = False
    parameters: ClassVar[tuple[str, ...]] = ("m", "ef_construction", "lists")
    extensions: ClassVar[tuple[str, ...]] = ("vector",)
    # index: option of a suite's query -> setting
    settings_of: ClassVar[Mapping[str, Mapping[str, str]]] = {}
    preload: ClassVar[str] = ""
    cluster: Cluster | None = None
    warmed = 0  # launches of the cluster when the index was last read into memory

    def __init__(self, name: str, options: Params, place: Path, top: Path | None) -> None:
        super().__init__(name, options, place, top)
        self.index = self.index_of(options)
        self.type = str(options.get("type") or "vector")
        self.url = str(options.get("url") or "")
        self.limit = MemoryLimit()
        # Names of its own: engines by url may be in one database.
        own = re.sub("[^a-z0-9]", "_", name.lower())[:40]
        self.table, self.index_name = f"quiver_bench_{own}", f"quiver_bench_{own}_index"
        if self.type not in ("vector", "halfvec", "bit_hamming", "bit_jaccard"):
            raise ConfigError(f"{name}: no type {self.type}")

    @classmethod
    def index_of(cls, options: Params) -> str:
        index = str(options.get("index") or next(iter(cls.settings_of)))
        if index not in cls.settings_of:
            raise ConfigError(f"{cls.adapter} has no index {index}")
        return index

    @classmethod
    def keys(cls, options: Params) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Of bits, ef_search is the number of candidates, whatever the index."""
        bits = ("ef_search",) if str(options.get("type")).startswith("bit_") else ()
        search = dict.fromkeys((*cls.settings_of[cls.index_of(options)], *bits))
        return cls.parameters, tuple(search)

    # The server.

    def install(self) -> Installation:
        raise NotImplementedError

    def version_of(self, db: Connection) -> str:
        return self.built(db, "vector")

    def built(self, db: Connection, extension: str) -> str:
        """Its version, with a digest of the library in a server of ours: a version has many builds."""
        version = str(_one(db, "SELECT extversion FROM pg_extension WHERE extname = %s", extension))
        if self.cluster is None:
            return version
        return f"{version} {library_digest(db, extension)}".strip()

    def start(self, server: Params) -> str:
        """Engines of an installation share a cluster when they have the same settings."""
        if self.url:
            self.conninfo = self.url
        else:
            asked = {**default_settings(), **{name: str(v) for name, v in server.items()}}
            if self.preload:
                asked["shared_preload_libraries"] = self.preload
            self.asked = asked
            short = hashlib.sha256(canonical(asked).encode()).hexdigest()[:8]
            self.cluster = postgres.cluster(self.install(), short)
            self.cluster.start(asked)
            database = re.sub("[^a-z0-9]", "_", f"bench_{self.name.lower()}")
            # Anew: what an earlier version of the extension made would stay as it was.
            name = sql.Identifier(database)
            with self.cluster.server.connect("postgres") as admin:
                admin.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(name))
                admin.execute(sql.SQL("CREATE DATABASE {}").format(name))
            self.conninfo = (
                f"host={self.cluster.socket} port={postgres.PORT} user=postgres dbname={database}"
            )
        with self.connect() as db:
            for extension in self.extensions:
                db.execute(
                    sql.SQL("CREATE EXTENSION IF NOT EXISTS {}").format(sql.Identifier(extension))
                )
            self._check_settings(db)
            return f"{self.version_of(db)}, PostgreSQL {db.info.parameter_status('server_version')}"

    def _check_settings(self, db: Connection) -> None:
        """Settings that a server did not take are no settings."""
        rows = db.execute(
            "SELECT name, error FROM pg_file_settings WHERE sourcefile LIKE '%%/bench.conf'"
            " AND (NOT applied OR error IS NOT NULL)"
        ).fetchall()
        if rows and not self.url:
            raise EngineError(f"the server did not take settings: {rows}")

    def connect(self) -> Connection:
        try:
            return psycopg.connect(self.conninfo, autocommit=True)
        except psycopg.Error as error:
            words = self.cluster.last_words() if self.cluster else ""
            raise EngineError(f"cannot connect: {error}{words}") from error

    def stop(self) -> None:
        if self.cluster:
            try:
                self.cluster.stop()
            finally:
                self.limit.leave()
            self.cluster = None

    def alive(self) -> bool:
        return self.cluster is None or self.cluster.pid() is not None

    def pids(self) -> Iterable[int]:
        pid = self.cluster.pid() if self.cluster else None
        return () if pid is None else (pid,)

    def pages(self) -> tuple[int, int] | None:
        """Of its database. The question itself is asked in another one."""
        if self.cluster is None:
            return None
        with self.cluster.server.connect("postgres") as db:
            row = db.execute(
                "SELECT blks_hit, blks_read FROM pg_stat_database WHERE datname = %s",
                (psycopg.conninfo.conninfo_to_dict(self.conninfo)["dbname"],),
            ).fetchone()
        return None if row is None else (row[0], row[1])

    def limit_memory(self, buffers_mb: int, memory_mb: int) -> str:
        if self.cluster is None:
            raise UnsupportedError("memory tiers need a server of our own, not a url")
        try:
            self.cluster.halt()
        finally:
            self.limit.leave()
        method = ""
        if buffers_mb:
            forget_files(self.cluster.data)
            # Memory of a tier holds the buffers and the file cache, as the planner is told.
            cache = {"effective_cache_size": f"{memory_mb or buffers_mb}MB"}
            self.cluster.launch({**self.asked, "shared_buffers": f"{buffers_mb}MB", **cache})
            parent = psutil.Process(self.cluster.pid())
            pids = [parent.pid, *(child.pid for child in parent.children(recursive=True))]
            method = self.limit.enter(pids, memory_mb)
        else:
            self.cluster.launch(self.asked)
        return method

    def out_of_memory(self) -> bool:
        return self.limit.killed()

    def settings(self) -> Params:
        names = [*(self.asked if not self.url else default_settings()), "server_version"]
        with self.connect() as db:
            return {name: str(_one(db, "SELECT current_setting(%s)", name)) for name in names}

    # Rows and indexes.

    def load(self, data: Data) -> float:
        self.data = data
        with self.connect() as db:
            return postgres.load_items(db, self.table, data)

    def options_of(self, params: Params) -> dict[str, Any]:
        """What goes into WITH ()."""
        return {name: params[name] for name in self.parameters if params.get(name) is not None}

    def indexed(self) -> sql.Composed:
        """The expression that the index is on, and its operator class."""
        metric, d = self.data.dataset.metric, sql.Literal(self.data.dataset.dimensions)
        if self.type == "vector":
            text: sql.Composable = sql.SQL("embedding")
            ops = postgres.operator_class("vector", metric)
        elif self.type == "halfvec":
            text = sql.SQL("(embedding::halfvec({}))").format(d)
            ops = postgres.operator_class("halfvec", metric)
        else:
            text = sql.SQL("(binary_quantize(embedding)::bit({}))").format(d)
            ops = f"{self.type}_ops"
        return sql.SQL("{} {}").format(text, sql.Identifier(ops))

    def build(self, params: Params) -> Built:
        notices: list[str] = []
        with self.connect() as db:
            db.add_notice_handler(lambda d: notices.append(str(d.message_primary)))
            db.execute(sql.SQL("DROP INDEX IF EXISTS {}").format(sql.Identifier(self.index_name)))
            notices.clear()
            began = time.perf_counter_ns()
            db.execute(self.create_index(params))
            seconds = (time.perf_counter_ns() - began) / 1e9
            self.count_rows(db)
            notes = tuple(n for n in notices if "maintenance_work_mem" in n)
            sizes = [postgres.relation_bytes(db, name) for name in (self.index_name, self.table)]
            db.execute("CHECKPOINT")
        self.prewarm()
        return Built(seconds, sizes[0], sizes[1], notes=notes)

    def count_rows(self, db: Connection) -> None:
        """Let the planner know how many rows there are.

        Building an index may change pg_class.reltuples, as VectorChord's does to 0, and autovacuum
        is off.
        """
        db.execute(sql.SQL("VACUUM (ANALYZE) {}").format(sql.Identifier(self.table)))
        known = _one(db, "SELECT reltuples FROM pg_class WHERE oid = to_regclass(%s)", self.table)
        rows = self.data.dataset.rows
        if abs(float(known) - rows) > FAR * rows:
            raise MeasureError(
                f"the planner takes the table for one of {known:,.0f} rows of {rows:,}"
            )

    def prewarm(self) -> None:
        """Read table and index into memory: after a build, and after the server was restarted."""
        if self.cluster:
            self.warmed = self.cluster.launches
        with self.connect() as db:
            if not _one(
                db, "SELECT count(*) FROM pg_available_extensions WHERE name = 'pg_prewarm'"
            ):
                return
            db.execute("CREATE EXTENSION IF NOT EXISTS pg_prewarm")
            for name in (self.table, self.index_name):
                db.execute("SELECT pg_prewarm(to_regclass(%s))", (name,))

    def create_index(self, params: Params) -> sql.Composed:
        options = self.options_of(params)
        pairs = sql.SQL(", ").join(
            sql.SQL("{} = {}").format(sql.Identifier(name), sql.Literal(value))
            for name, value in options.items()
        )
        return sql.SQL("CREATE INDEX {} ON {} USING {} ({}){}").format(
            sql.Identifier(self.index_name), sql.Identifier(self.table), sql.Identifier(self.index),
            self.indexed(), sql.SQL(" WITH ({})").format(pairs) if options else sql.SQL(""),
        )  # fmt: skip

    def empty(self, params: Params) -> None:
        with self.connect() as db:
            db.execute(sql.SQL("DROP INDEX IF EXISTS {}").format(sql.Identifier(self.index_name)))
            db.execute(sql.SQL("TRUNCATE {}").format(sql.Identifier(self.table)))
            db.execute(self.create_index(params))

    def settle(self) -> None:
        with self.connect() as db:
            db.execute(sql.SQL("VACUUM (ANALYZE) {}").format(sql.Identifier(self.table)))

    # Searches.

    def statements(self, search: Search) -> Statements:
        metric, d = self.data.dataset.metric, self.data.dataset.dimensions
        op = postgres.operator(metric)
        known = self.settings_of[self.index]
        settings = {
            known[name]: str(value) for name, value in search.params.items()
            if name in known and value is not None
        }  # fmt: skip
        table, condition = self.table, ""
        if search.clauses:
            if self.type not in ("vector", "halfvec"):
                raise UnsupportedError("conditions are for indexes of the vectors themselves")
            table, condition = postgres.condition(self.table, search.clauses)
            condition = f" WHERE {condition}"
        elif search.where:
            condition = f" WHERE {search.where.column} < {search.where.below}"
        else:
            settings["enable_seqscan"] = "off"
        if self.type in ("vector", "halfvec"):
            expression = "embedding" if self.type == "vector" else f"embedding::halfvec({d})"
            text = (
                f"SELECT id FROM {table}{condition} ORDER BY {expression} {op} %s LIMIT {search.k}"
            )
            return Statements(
                self.conninfo, self.table, text, 1, self.type, settings, search.clauses
            )
        # The index finds candidates by their bits; the vectors themselves rank them.
        first = "<~>" if self.type == "bit_hamming" else "<%%>"
        candidates = max(search.k, take(search.params, "ef_search", 40))
        text = (
            f"SELECT id FROM (SELECT id, embedding FROM {self.table}{condition}"
            f" ORDER BY binary_quantize(embedding)::bit({d}) {first} binary_quantize(%s)"
            f" LIMIT {candidates}) near ORDER BY embedding {op} %s LIMIT {search.k}"
        )
        return Statements(self.conninfo, self.table, text, 2, "vector", settings)

    def sessions(self, search: Search) -> SessionFactory:
        if self.cluster and self.warmed != self.cluster.launches:
            self.prewarm()  # the tiers of another engine of this server emptied its memory
        return partial(PgSession, self.statements(search))

    def check_plan(self, search: Search) -> None:
        """The index is used (without a condition, at least), and the settings are in force.

        A setting made before its library is loaded may be thrown away then, with a warning.
        """
        statements = self.statements(search)
        session = PgSession(statements)
        try:
            query = session.encode(self.data.dataset.queries[0])
            explain = b"EXPLAIN (COSTS OFF) " + statements.search.encode()
            rows = session.db.execute(explain, (query,) * statements.uses).fetchall()
            for name, value in statements.settings.items():
                was = _one(session.db, "SELECT current_setting(%s, true)", name)
                if was != _one(session.db, "SELECT set_config(%s, %s, false)", name, value):
                    raise MeasureError(f"{name} = {value} is not in force: it is {was}")
        except psycopg.Error as error:
            raise MeasureError(f"a search cannot be planned: {error}") from error
        finally:
            session.close()
        plan = "\n".join(str(row[0]) for row in rows)
        if self.index_name not in plan and search.where is None:
            raise MeasureError(f"the planner chose another way: {' '.join(plan.split())}")


def library_digest(db: Connection, extension: str) -> str:
    """8 hexadecimal digits of the SHA-256 of an extension's library, which is on this machine.

    Empty when the library cannot be read.
    """
    name = _one(
        db,
        "SELECT probin FROM pg_extension e JOIN pg_depend d ON d.refobjid = e.oid"
        " AND d.refclassid = 'pg_extension'::regclass AND d.classid = 'pg_proc'::regclass"
        " JOIN pg_proc p ON p.oid = d.objid"
        " WHERE e.extname = %s AND d.deptype = 'e' AND probin IS NOT NULL LIMIT 1",
        extension,
    )
    folder = _one(db, "SELECT setting FROM pg_config WHERE name = 'PKGLIBDIR'")
    path = str(name).replace("$libdir", str(folder))
    if "/" not in path:  # PostgreSQL looks for it by dynamic_library_path, which is $libdir
        path = f"{folder}/{path}"
    library = Path(path if path.endswith(".so") else f"{path}.so")
    try:
        return hashlib.sha256(library.read_bytes()).hexdigest()[:8]
    except OSError:
        return ""


def _one(db: Connection, statement: str, *values: Any) -> Any:
    row = db.execute(statement.encode(), values or None).fetchone()
    return row[0] if row else None


_HNSW = {
    "ef_search": "hnsw.ef_search", "iterative_scan": "hnsw.iterative_scan",
    "max_scan_tuples": "hnsw.max_scan_tuples",
}  # fmt: skip
_IVFFLAT = {"probes": "ivfflat.probes", "iterative_scan": "ivfflat.iterative_scan"}


class Quiver(PgEngine):
    adapter = "quiver"
    extensions = ("vector", "quiver")
    parameters = ("m", "ef_construction", "lists", "bits")
    settings_of: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "quiver_graph": {
            "recall": "quiver.recall", "ef_search": "quiver.ef_search",
            "iterative_scan": "quiver.iterative_scan",
        },
        "quiver_ivf": {
            "recall": "quiver.recall", "probes": "quiver.probes",
            "iterative_scan": "quiver.iterative_scan",
        },
        "hnsw": _HNSW,
        "ivfflat": _IVFFLAT,
    }  # fmt: skip

    def install(self) -> Installation:
        try:
            return postgres.install(self.top, ("quiver", "quiver"), {})
        except MissingError as error:
            # Other engines may be missing. If the checkout's own cannot be built, the run failed.
            if self.top is None:
                raise
            raise EngineError(str(error)) from error

    def version_of(self, db: Connection) -> str:
        return f"{_one(db, 'SELECT quiver_version()')} {checkout_version(self.top)}".strip()


class Pgvector(PgEngine):
    adapter = "pgvector"
    settings_of: ClassVar[Mapping[str, Mapping[str, str]]] = {"hnsw": _HNSW, "ivfflat": _IVFFLAT}

    def install(self) -> Installation:
        version = str(self.options.get("version") or "")
        environment = {}
        if version:
            if not os.environ.get("PGVECTOR_SOURCE"):
                raise MissingError(
                    f"pgvector {version} needs PGVECTOR_SOURCE, a git repository of it"
                )
            environment["PGVECTOR_VERSION"] = version
        name = f"pgvector-{version}" if version else "pgvector"
        return postgres.install(self.top, (name, "pgvector"), environment)


class _Beside(PgEngine):
    """An extension beside pgvector, built by us or by somebody, for the PostgreSQL that is here.

    VARIABLE_SOURCE is a checkout of it, VARIABLE_PREFIX the root below which it is installed.
    """

    variable: ClassVar[str]
    extension: ClassVar[str]

    def install(self) -> Installation:
        prefix, source = f"{self.variable}_PREFIX", f"{self.variable}_SOURCE"
        folder = os.environ.get(prefix) or os.environ.get(source)
        if not folder:
            raise MissingError(
                f"{self.adapter} needs {source}, a checkout of it (and cargo to build it), or"
                f" {prefix}, the root below which it is installed (make install DESTDIR=...)"
                f" for this machine's PostgreSQL; or a url"
            )
        return postgres.install(self.top, (self.adapter, "pgvector", folder), {})

    def version_of(self, db: Connection) -> str:
        return f"{self.built(db, self.extension)}, pgvector {super().version_of(db)}"


class VectorChord(_Beside):
    adapter = "vectorchord"
    variable, extension, preload = "VECTORCHORD", "vchord", "vchord"
    extensions = ("vector", "vchord")
    of_lists = ("lists", "residual", "sampling_factor", "threads")
    of_graph = ("m", "ef_construction", "bits")
    parameters = (*of_lists, *of_graph)
    settings_of: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "vchordrq": {
            "probes": "vchordrq.probes",
            "epsilon": "vchordrq.epsilon",
            "prefilter": "vchordrq.prefilter",
        },
        "vchordg": {
            "ef_search": "vchordg.ef_search",
            "beam_search": "vchordg.beam_search",
            "max_scan_tuples": "vchordg.max_scan_tuples",
        },
    }

    @classmethod
    def keys(cls, options: Params) -> tuple[tuple[str, ...], tuple[str, ...]]:
        build = cls.of_graph if cls.index_of(options) == "vchordg" else cls.of_lists
        return build, super().keys(options)[1]

    def create_index(self, params: Params) -> sql.Composed:
        """Its options are a text in TOML."""
        lines = self._graph(params) if self.index == "vchordg" else self._lists(params)
        options = sql.SQL(" WITH (options = {})").format(sql.Literal("\n".join(lines)))
        return sql.SQL("CREATE INDEX {} ON {} USING {} ({}){}").format(
            sql.Identifier(self.index_name), sql.Identifier(self.table), sql.Identifier(self.index),
            self.indexed(), options if lines else sql.SQL(""),
        )  # fmt: skip

    def _graph(self, params: Params) -> list[str]:
        return [f"{n} = {params[n]}" for n in self.of_graph if params.get(n) is not None]

    def _lists(self, params: Params) -> list[str]:
        """lists: "100" or, of two levels, "10,1000"."""
        metric = self.data.dataset.metric
        lists = str(params.get("lists") or max(10, round(self.data.dataset.rows / 500)))
        residual = params.get("residual")
        return [
            f"residual_quantization = {str(residual if residual is not None else metric != 'angular').lower()}",
            "[build.internal]",
            f"lists = [{lists}]",
            f"spherical_centroids = {str(metric != 'euclidean').lower()}",
            f"sampling_factor = {take(params, 'sampling_factor', 256)}",
            f"build_threads = {take(params, 'threads', 1)}",
        ]


class Pgvectorscale(_Beside):
    adapter = "pgvectorscale"
    variable, extension = "PGVECTORSCALE", "vectorscale"
    extensions = ("vector", "vectorscale")
    parameters = ("num_neighbors", "search_list_size")
    settings_of: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "diskann": {
            "ef_search": "diskann.query_search_list_size", "rescore": "diskann.query_rescore",
        }
    }  # fmt: skip
