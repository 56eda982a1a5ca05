"""PostgreSQL: private clusters, loading by COPY, sessions that send prepared searches."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
from psycopg import sql
from psycopg.adapt import Dumper
from psycopg.pq import Format
from psycopg.types import TypeInfo
from psycopg.types.numeric import Int4

from quiver_bench.conditions import Clause, Columns, Values, word
from quiver_bench.console import time_left
from quiver_bench.engines.base import Counted, Data, Session
from quiver_bench.errors import EngineError, MissingError
from quiver_bench.records import Params
from quiver_bench.truth import Floats

Connection = psycopg.Connection[tuple[Any, ...]]

OPERATORS = {"euclidean": ("<->", "l2"), "angular": ("<=>", "cosine"), "ip": ("<#>", "ip")}
# Vectors up to here are kept in the row, so that a scan reads no second table.
INLINE_DIMENSIONS = 1900
PORT = 5432
COPY_ROWS = 512


def operator(metric: str) -> str:
    return OPERATORS[metric][0]


def operator_class(kind: str, metric: str) -> str:
    return f"{kind}_{OPERATORS[metric][1]}_ops"


@dataclass(frozen=True)
class Server:
    """Where a server listens, and its programs."""

    socket: str
    port: int
    bin: str
    user: str = "postgres"

    def connect(self, dbname: str) -> Connection:
        try:
            return psycopg.connect(
                host=self.socket, port=self.port, user=self.user, dbname=dbname, autocommit=True
            )
        except psycopg.OperationalError as error:
            raise EngineError(f"the private server does not answer: {error}") from error


@dataclass(frozen=True)
class Installation:
    """A private copy of PostgreSQL with an extension in it, and who runs its servers."""

    home: Path
    programs: Path
    user: str


_INSTALLED: dict[tuple[str, ...], Installation] = {}


def install(
    top: Path | None, arguments: tuple[str, ...], environment: Mapping[str, str]
) -> Installation:
    """Have tools/bench_server make it, once a run; the script says what it does."""
    if arguments in _INSTALLED:
        return _INSTALLED[arguments]
    if top is None:
        raise MissingError("needs a checkout of Quiver: run quiver-bench inside one, or set"
                           " QUIVER_TOP")  # fmt: skip
    script = subprocess.Popen(
        [str(top / "tools" / "bench_server"), *arguments], stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**os.environ, **environment},
    )  # fmt: skip
    assert script.stdout is not None
    said: list[str] = []
    ready: list[str] = []
    for line in script.stdout:
        if line.startswith("ready\t"):
            ready = line.rstrip("\n").split("\t")[1:]
        else:
            said.append(line.strip())
            print(line, end="", flush=True)
    if script.wait() != 0 or not ready:
        errors = [line for line in said if "rror" in line] or said[-1:]
        raise MissingError(f"tools/bench_server failed: {' '.join(errors[-1:])}")
    _INSTALLED[arguments] = Installation(Path(ready[0]), Path(ready[1]), ready[2])
    return _INSTALLED[arguments]


class Cluster:
    """A cluster of a private installation, on a Unix socket only; engines share it."""

    def __init__(self, installation: Installation, name: str) -> None:
        self.home, self.programs = installation.home, installation.programs
        self.user = installation.user
        self.data, self.log = self.home / f"data-{name}", self.home / "log" / f"{name}.log"
        self.socket = Path(tempfile.gettempdir())
        self.users = 0  # engines that started it
        self.launches = 0

    def _give(self, path: Path) -> None:
        if os.geteuid() == 0:
            shutil.chown(path, self.user)
        path.chmod(0o700 if path.is_dir() else 0o600)

    def run(self, program: str, *arguments: str) -> str:
        """Run one of its programs as its user; EngineError with what it said."""
        who: dict[str, Any] = {}
        if os.geteuid() == 0:
            entry = pwd.getpwnam(self.user)
            who = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
        # pg_ctl's server keeps what it is given as standard output: a file, not a pipe.
        with tempfile.TemporaryFile("w+") as said:
            done = subprocess.run(
                [str(self.programs / program), *arguments], cwd=self.home, check=False,
                stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT,
                env={**os.environ, "HOME": str(self.home), "LC_ALL": "C.UTF-8"}, **who,
            )  # fmt: skip
            said.seek(0)
            text = said.read()
        if done.returncode != 0:
            raise EngineError(f"{program} failed: {text.strip()[-500:]}{self.last_words()}")
        return text

    def last_words(self) -> str:
        """The end of the server's log."""
        if not self.log.is_file():
            return ""
        lines = self.log.read_text(errors="replace").splitlines()
        return " | " + " | ".join(lines[-3:]) if lines else ""

    def start(self, settings: Params) -> None:
        """Start it with these settings, on the data there is; it may run already."""
        self.users += 1
        if self.users > 1 and self.pid() is not None:
            return
        self.halt()
        self.launch(settings)

    def made_by(self) -> str:
        """The major version of the PostgreSQL that made its data, which no later run needs."""
        file = self.data / "PG_VERSION"
        return file.read_text().strip() if file.is_file() else ""

    def major(self) -> str:
        """That of the programs."""
        said = self.run("postgres", "--version")
        found = re.search(r"\(PostgreSQL\) (\d+)", said)
        if found is None:
            raise EngineError(f"postgres --version says {said.strip()}")
        return found[1]

    def launch(self, settings: Params) -> None:
        self.launches += 1
        (self.data / "postmaster.pid").unlink(missing_ok=True)  # of a server that was killed
        if self.made_by() != self.major():  # nothing is there, or it is of another PostgreSQL
            shutil.rmtree(self.data, ignore_errors=True)
            self.data.mkdir(parents=True)
            self._give(self.data)
            self.run("initdb", "-D", str(self.data), "-U", "postgres", "-A", "trust", "-E", "UTF8",
                     "--locale=C.UTF-8", "--no-sync")  # fmt: skip
            with (self.data / "postgresql.conf").open("a") as file:
                file.write("include 'bench.conf'\n")
        # A socket's path has 107 bytes at most. It stays the same when the server starts anew.
        if not self.socket.name.startswith("quiver-bench-") or not self.socket.is_dir():
            self.socket = Path(tempfile.mkdtemp(prefix="quiver-bench-"))
            self._give(self.socket)
        (self.socket / f".s.PGSQL.{PORT}.lock").unlink(missing_ok=True)  # as above
        lines = ["listen_addresses = ''", f"port = {PORT}", "unix_socket_permissions = 0700",
                 f"unix_socket_directories = '{self.socket}'"]  # fmt: skip
        lines += [f"{name} = '{value}'" for name, value in settings.items()]
        (self.data / "bench.conf").write_text("\n".join(lines) + "\n")
        self.log.parent.mkdir(exist_ok=True)
        self.log.touch()
        self._give(self.log)
        self.run("pg_ctl", "-D", str(self.data), "-l", str(self.log), "-w", "-t", "60", "start")

    def halt(self) -> None:
        if self.pid() is None:
            return
        try:
            self.run("pg_ctl", "-D", str(self.data), "-m", "fast", "-w", "stop")
        except EngineError:
            # A server that comes up again after a crash, in too little memory, may never be ready.
            if self.pid() is not None:
                self.run("pg_ctl", "-D", str(self.data), "-m", "immediate", "-w", "stop")

    def stop(self) -> None:
        """One of its engines has done; the last stops it."""
        self.users = max(0, self.users - 1)
        if self.users:
            return
        try:
            self.halt()
        finally:
            if self.socket.name.startswith("quiver-bench-"):
                shutil.rmtree(self.socket, ignore_errors=True)

    def pid(self) -> int | None:
        """Of the postmaster, when it runs."""
        try:
            pid = int((self.data / "postmaster.pid").read_text().split("\n", 1)[0])
            # After a crash the number may be another's, even another server's.
            return pid if Path(f"/proc/{pid}/cwd").samefile(self.data) else None
        except (OSError, ValueError):
            return None

    @property
    def server(self) -> Server:
        return Server(str(self.socket), PORT, str(self.programs))


_CLUSTERS: dict[tuple[Path, str], Cluster] = {}


def cluster(installation: Installation, name: str) -> Cluster:
    """The one cluster of that name."""
    return _CLUSTERS.setdefault((installation.home, name), Cluster(installation, name))


# Loading.


def copy_blocks(vectors: Floats, *numbers: Any) -> Iterator[bytes]:
    """A COPY ... (FORMAT binary) of rows of int columns and a vector."""
    dimensions = vectors.shape[1]
    fields: list[Any] = [("fields", ">i2")]
    for i in range(len(numbers)):
        fields += [(f"length{i}", ">i4"), (f"number{i}", ">i4")]
    fields += [("length", ">i4"), ("dimensions", ">i2"), ("unused", ">i2")]
    fields += [("vector", ">f4", (dimensions,))]
    yield b"PGCOPY\n\xff\r\n\0" + b"\0" * 8
    for start in range(0, len(vectors), COPY_ROWS):
        block = vectors[start : start + COPY_ROWS]
        rows = np.zeros(len(block), dtype=np.dtype(fields))
        rows["fields"] = len(numbers) + 1
        for i, column in enumerate(numbers):
            rows[f"length{i}"] = 4
            rows[f"number{i}"] = column[start : start + COPY_ROWS]
        rows["length"], rows["dimensions"] = 4 * dimensions + 4, dimensions
        rows["vector"] = block
        yield rows.tobytes()
    yield b"\xff\xff"


def copy_into(
    db: Connection, table: str, blocks: Iterator[bytes], update: Callable[[int], None]
) -> None:
    """update is told the number of the block."""
    statement = sql.SQL("COPY {} FROM STDIN WITH (FORMAT binary)").format(sql.Identifier(table))
    with db.cursor().copy(statement) as copy:
        for i, block in enumerate(blocks):
            copy.write(block)
            update(i)


def load_items(db: Connection, table: str, data: Data) -> float:
    """Table (id, any_rank, near_rank, embedding) with its rows; seconds of the COPY alone."""
    dimensions = data.dataset.dimensions
    name = sql.Identifier(table)
    db.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(name))
    db.execute(
        sql.SQL(
            "CREATE TABLE {} (id int, any_rank int, near_rank int, embedding vector({}))"
        ).format(name, sql.Literal(dimensions))
    )
    if dimensions <= INLINE_DIMENSIONS:
        db.execute(sql.SQL("ALTER TABLE {} ALTER COLUMN embedding SET STORAGE PLAIN").format(name))
    began = time.perf_counter()
    numbers = np.arange(data.dataset.rows, dtype=np.int32)
    blocks = copy_blocks(data.dataset.train, numbers, data.any_rank, data.near_rank)
    copy_into(db, table, blocks, lambda _: None)
    seconds = time.perf_counter() - began
    if data.columns:
        add_columns(db, table, data.columns)
    db.execute(sql.SQL("ALTER TABLE {} ADD PRIMARY KEY (id)").format(name))
    for column in ("any_rank", "near_rank"):
        db.execute(sql.SQL("CREATE INDEX ON {} ({})").format(name, sql.Identifier(column)))
    db.execute(sql.SQL("VACUUM (ANALYZE) {}").format(name))
    return seconds


def owners_table(table: str) -> str:
    return f"{table}_owners"


def add_columns(db: Connection, table: str, made: Columns) -> None:
    """The columns of the filter suites, with an index each, and the table of owners."""
    name, owners = sql.Identifier(table), sql.Identifier(owners_table(table))
    numbers = [sql.Identifier(column) for column in made.numbers]
    db.execute(
        sql.SQL("CREATE TEMP TABLE columns_of_rows (id int, {}, tags int[], words text)").format(
            sql.SQL(", ").join(sql.SQL("{} int").format(column) for column in numbers)
        )
    )
    tags, words = made.bags["tags"], made.bags["words"]
    lists = [column.tolist() for column in made.numbers.values()]
    with db.cursor().copy("COPY columns_of_rows FROM STDIN WITH (FORMAT binary)") as copy:
        copy.set_types(["int4"] * (1 + len(lists)) + ["int4[]", "text"])
        for row, values in enumerate(zip(*lists, strict=True)):
            text = " ".join(word(number) for number in words.of(row))
            copy.write_row((row, *values, [Int4(tag) for tag in tags.of(row)], text))
    loaded = sql.Identifier(f"{table}_loaded")
    db.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(loaded))
    db.execute(sql.SQL("ALTER TABLE {} RENAME TO {}").format(name, loaded))
    db.execute(sql.SQL("CREATE TABLE {} (LIKE {} INCLUDING STORAGE)").format(name, loaded))
    for column in numbers:
        db.execute(sql.SQL("ALTER TABLE {} ADD {} int").format(name, column))
    db.execute(sql.SQL("ALTER TABLE {} ADD tags int[], ADD words tsvector").format(name))
    db.execute(
        sql.SQL(
            "INSERT INTO {} SELECT l.*, {}, c.tags, to_tsvector('simple', c.words)"
            " FROM {} l JOIN columns_of_rows c USING (id) ORDER BY id"
        ).format(name, sql.SQL(", ").join(sql.SQL("c.{}").format(c) for c in numbers), loaded)
    )
    db.execute(sql.SQL("DROP TABLE {}").format(loaded))
    for column in numbers:
        db.execute(sql.SQL("CREATE INDEX ON {} ({})").format(name, column))
    for bag in ("tags", "words"):
        db.execute(sql.SQL("CREATE INDEX ON {} USING gin ({})").format(name, sql.Identifier(bag)))
    db.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(owners))
    db.execute(sql.SQL("CREATE TABLE {} (owner int PRIMARY KEY, grade int)").format(owners))
    with db.cursor().copy(sql.SQL("COPY {} FROM STDIN").format(owners)) as copy:
        for row, grade in enumerate(made.owners["grade"].tolist()):
            copy.write_row((row, grade))
    db.execute(sql.SQL("CREATE INDEX ON {} (grade)").format(owners))
    db.execute(sql.SQL("VACUUM (ANALYZE) {}").format(owners))


def condition(table: str, clauses: Sequence[Clause]) -> tuple[str, str]:
    """What goes behind FROM, and behind WHERE; the table is called i."""
    source, parts = f"{table} i", []
    for clause in clauses:
        if clause.kind == "owner":
            source += f" JOIN {owners_table(table)} o ON o.owner = i.owner"
            sign = "=" if clause.column == "owner" else "<"
            parts.append(f"o.{clause.column} {sign} %s")
        elif clause.kind == "all":
            query = "to_tsquery('simple', %s)" if clause.column == "words" else "%s"
            parts.append(f"i.{clause.column} {'@@' if clause.column == 'words' else '@>'} {query}")
        elif clause.kind == "between":
            parts.append(f"i.{clause.column} >= %s AND i.{clause.column} < %s")
        else:
            parts.append(f"i.{clause.column} {'=' if clause.kind == 'equal' else '<'} %s")
    return source, " AND ".join(parts)


def condition_values(clauses: Sequence[Clause], values: Values) -> tuple[Any, ...]:
    """The parameters of condition(), of one type each whatever the numbers are."""
    found: list[Any] = []
    for clause, numbers in zip(clauses, values, strict=True):
        if clause.kind == "all" and clause.column == "words":
            found.append(" & ".join(word(number) for number in numbers))
        elif clause.kind == "all":
            found.append([Int4(number) for number in numbers])
        else:
            found += [Int4(number) for number in numbers]
    return tuple(found)


def counted(plan: Mapping[str, Any]) -> Counted:
    """What EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) says of one search.

    Rows: those that scans of tables returned, and those that they tested and dropped.
    """
    top, planning = plan["Plan"], plan.get("Planning", {})
    scans: list[str] = []
    rows = 0.0

    def visit(node: Mapping[str, Any]) -> None:
        nonlocal rows
        kind = str(node["Node Type"])
        if kind == "Custom Scan":
            kind = str(node.get("Custom Plan Provider", kind))
        if "Scan" in kind or kind not in ("Limit", "Sort", "Result", "BitmapAnd"):
            index = str(node.get("Index Name", ""))
            scans.append(f"{kind} {'on vectors' if index.endswith('_index') else ''}".strip())
        if "Rows Fetched" in node:
            rows += float(node["Rows Fetched"])
        elif kind.endswith("Scan") and kind != "Bitmap Index Scan":
            dropped = sum(float(node.get(f"Rows Removed by {why}", 0))
                          for why in ("Filter", "Index Recheck"))  # fmt: skip
            rows += (float(node["Actual Rows"]) + dropped) * float(node["Actual Loops"])
        for child in node.get("Plans", ()):
            visit(child)

    visit(top)
    return Counted(
        int(top["Shared Hit Blocks"]), int(top["Shared Read Blocks"]),
        int(planning.get("Shared Hit Blocks", 0)) + int(planning.get("Shared Read Blocks", 0)),
        round(rows), ", ".join(dict.fromkeys(scans)),
    )  # fmt: skip


def relation_bytes(db: Connection, name: str) -> int:
    row = db.execute("SELECT pg_relation_size(%s::regclass)", (name,)).fetchone()
    if row is None or not isinstance(row[0], int):
        raise EngineError(f"{name} has no size")
    return row[0]


@contextmanager
def watched_build(
    db: Connection, connect: Callable[[], Connection], update: Callable[[str], None]
) -> Iterator[None]:
    """Tell update what pg_stat_progress_create_index says meanwhile."""
    stop = threading.Event()
    pid = db.info.backend_pid
    began = phase_began = time.monotonic()
    phase_before = None

    def watch() -> None:
        nonlocal phase_began, phase_before
        with connect() as other:
            while not stop.wait(0.5):
                row = other.execute(
                    "SELECT phase, tuples_done, tuples_total, blocks_done, blocks_total"
                    " FROM pg_stat_progress_create_index WHERE pid = %s",
                    (pid,),
                ).fetchone()
                if not row:
                    continue
                phase, tuples, tuples_total, blocks, blocks_total = row
                now = time.monotonic()
                if phase != phase_before:
                    phase_began, phase_before = now, phase
                text = f"{now - began:.0f} s, {phase}"
                pairs = ((tuples, tuples_total, "rows"), (blocks, blocks_total, "blocks"))
                for done, total, what in pairs:
                    if done < total:
                        text += f", {done:,} of {total:,} {what}"
                        text += time_left(done, total, now - phase_began)
                        break
                update(text)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        stop.set()
        watcher.join()


# Sessions.


class Encoded:
    """A vector as it goes over the wire."""

    def __init__(self, data: bytes) -> None:
        self.data = data


def encode(vector: Floats, kind: str) -> Encoded:
    """The binary form of vector and halfvec: dimensions, 0, the numbers."""
    number = ">f2" if kind == "halfvec" else ">f4"
    head = len(vector).to_bytes(2, "big") + b"\0\0"
    return Encoded(head + np.asarray(vector).astype(number).tobytes())


def register(db: Connection, kind: str) -> None:
    """Let this connection send Encoded as that type."""
    info = TypeInfo.fetch(db, kind)
    if info is None:
        raise EngineError(f"the database has no type {kind}")

    def dump(_: Dumper, value: Encoded) -> bytes:
        return value.data

    members = {"format": Format.BINARY, "oid": info.oid, "dump": dump}
    db.adapters.register_dumper(Encoded, type("EncodedDumper", (Dumper,), members))


@dataclass(frozen=True)
class Statements:
    """What a session sends. The search takes the query's vector `uses` times."""

    conninfo: str
    table: str
    search: str
    uses: int
    kind: str  # type of the query's vector
    settings: Mapping[str, str]
    clauses: tuple[Clause, ...] = ()  # their values go before the query's vector


class PgSession(Session):
    """A connection with its settings made."""

    def __init__(self, statements: Statements) -> None:
        self.s = statements
        try:
            self.db: Connection = psycopg.connect(statements.conninfo, autocommit=True)
        except psycopg.Error as error:
            raise EngineError(f"cannot connect: {error}") from error
        register(self.db, statements.kind)
        for name, value in statements.settings.items():
            self.db.execute("SELECT set_config(%s, %s, false)", (name, value))
        if statements.clauses:
            # Else a session changes to a generic plan after some searches. count() explains one
            # for the values at hand.
            self.db.execute("SET plan_cache_mode = force_custom_plan")
        self.cursor = self.db.cursor(binary=True)
        self.search_sql = statements.search.encode()
        self.once = statements.uses == 1
        table = sql.Identifier(statements.table)
        self.sql = {
            name: sql.SQL(text).format(table)
            for name, text in {
                "read": "SELECT id, any_rank, embedding FROM {} WHERE id = %s",
                "find": "SELECT id FROM {} WHERE any_rank = %s",
                "insert": "INSERT INTO {} (id, any_rank, near_rank, embedding) VALUES (%s, %s, %s, %s)",
                "update": "UPDATE {} SET embedding = %s WHERE id = %s",
                "delete": "DELETE FROM {} WHERE id = %s",
            }.items()
        }

    def encode(self, vector: Floats) -> Encoded:
        return encode(vector, self.s.kind)

    def search(self, query: Any) -> Sequence[int]:
        values = (query,) if self.once else (query,) * self.s.uses
        found = self.cursor.execute(self.search_sql, values, prepare=True).fetchall()
        return [row[0] for row in found]

    def encode_values(self, values: Values) -> Any:
        return condition_values(self.s.clauses, values)

    def search_where(self, asked: tuple[Any, Any]) -> Sequence[int]:
        query, values = asked
        everything = (*values, *(query,) * self.s.uses)
        found = self.cursor.execute(self.search_sql, everything, prepare=True).fetchall()
        return [row[0] for row in found]

    def count(self, asked: tuple[Any, Any]) -> Counted:
        query, values = asked
        explain = b"EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) " + self.search_sql
        row = self.db.execute(explain, (*values, *(query,) * self.s.uses)).fetchone()
        if row is None:
            raise EngineError("EXPLAIN says nothing")
        return counted(row[0][0])

    def flush(self) -> None:
        with suppress(psycopg.errors.UndefinedFunction):  # a url may lead to a server before 15
            self.cursor.execute(b"SELECT pg_stat_force_next_flush()").fetchall()

    def ping(self) -> None:
        self.cursor.execute(b"SELECT 1", prepare=True).fetchall()

    def read(self, row: int) -> bool:
        return self.cursor.execute(self.sql["read"], (row,), prepare=True).fetchone() is not None

    def find(self, value: int) -> Sequence[int]:
        found = self.cursor.execute(self.sql["find"], (value,), prepare=True).fetchall()
        return [one[0] for one in found]

    def insert(self, row: int, vector: Any, ranks: tuple[int, int]) -> None:
        self.cursor.execute(self.sql["insert"], (row, *ranks, vector), prepare=True)

    def update(self, row: int, vector: Any, ranks: tuple[int, int]) -> None:
        self.cursor.execute(self.sql["update"], (vector, row), prepare=True)

    def delete(self, row: int) -> None:
        self.cursor.execute(self.sql["delete"], (row,), prepare=True)

    def close(self) -> None:
        self.db.close()
