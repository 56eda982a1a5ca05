"""The steps that need vectors; ./quickstart has built and started the server before."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from pathlib import Path

import psycopg

from quiver_bench import datasets, registry, truth
from quiver_bench.console import Step, done_before, say
from quiver_bench.engines.postgres import Connection, Server, operator, relation_bytes
from quiver_bench.errors import BenchError, DataError
from quiver_bench.quickstart import database, measure, packages, report, scale
from quiver_bench.quickstart.database import Place
from quiver_bench.truth import Truth

DATABASE = "quickstart"
QUERIES = 1000
TAKES = ("euclidean", "angular")

# What is measured of each index: a setting and its values.
WAYS: dict[str, tuple[str, tuple[float, ...]]] = {
    "quiver_graph": ("quiver.recall", (0.9, 0.95, 0.99)),
    "quiver_ivf": ("quiver.recall", (0.9, 0.95, 0.99)),
    "hnsw": ("hnsw.ef_search", (40, 100, 200)),
}


def check(top: Path, home: Path) -> None:
    """Look at what QUIVER_DATA names before a server is started for it."""
    given = os.environ.get("QUIVER_DATA")
    path = datasets.find_given(top, home) if given and given != "packages" else None
    if path:
        datasets.look_at(path, TAKES)


def choose_data(top: Path, home: Path) -> datasets.Dataset:
    """The first source that there is."""
    given = os.environ.get("QUIVER_DATA")
    if given != "packages":
        path = datasets.find_given(top, home) or download(home)
        if path:
            with Step(f"read {path.name}") as step:
                dataset, verified = datasets.read(path)
                step.note = f"verified: {verified}"
            if dataset.metric not in TAKES:
                raise DataError(f"{path}: the quickstart takes {' and '.join(TAKES)}")
            return dataset.first(None, QUERIES)
    return packages.make(home)


def download(home: Path) -> Path | None:
    """Fashion-MNIST from ann-benchmarks; None when it cannot be had."""
    try:
        with Step(f"download {datasets.FASHION_MNIST}.hdf5") as step:
            return registry.download(datasets.FASHION_MNIST, home, step.update)
    except DataError as error:
        say(f"  {error}")
        return None


def prepare(place: Place, build_id: str, dataset: datasets.Dataset) -> Connection:
    """A database with the rows in it."""
    db = database.open_database(place, build_id, dataset.identity)
    n, dimensions = dataset.train.shape
    if database.recall_state(db, "loaded") == n:
        done_before("load", f"{n:,} rows of {dimensions} dimensions")
    else:
        with Step(f"load {n:,} rows of {dimensions} dimensions") as step:
            database.load(db, place, dataset, step)
    return db


def steps_left(place: Place, build_id: str, home: Path, shape: scale.Shape) -> list[str]:
    """What is to be done before searches can be measured."""
    left = [] if (scale.folder(home) / shape.file).is_file() else [scale.MAKE]
    db = database.find_database(place, build_id, shape.identity)
    if db is None:
        return [*left, scale.LOAD, *place.methods]
    with db:
        if database.recall_state(db, "loaded") != shape.rows:
            return [*left, scale.LOAD, *place.methods]
        return left + [
            method for method in place.methods if database.index_ready(db, method) is None
        ]


def run_quickstart(server: Server, arguments: argparse.Namespace) -> None:
    dataset = choose_data(arguments.top, arguments.home).first(arguments.rows)
    place = Place(server, DATABASE)
    db = prepare(place, arguments.build_id, dataset)
    with Step(f"exact neighbors of {len(dataset.queries):,} queries (numpy)"):
        exact = Truth(*truth.nearest(dataset.train, dataset.queries, measure.K, dataset.metric))
    stock = Place(server, "pgvector", arguments.pgvector) if arguments.pgvector else None
    index_and_measure(place, db, dataset, exact, list(place.methods), stock)


def run_scale(server: Server, arguments: argparse.Namespace) -> None:
    shape = scale.Shape(arguments.scale, arguments.dimensions or scale.DIMENSIONS)
    place = Place(server, scale.DATABASE)
    left = steps_left(place, arguments.build_id, arguments.home, shape)
    scale.announce(shape, left, arguments.home)
    dataset, exact = scale.make(arguments.home, shape)
    db = prepare(place, arguments.build_id, dataset)
    # The one that is built soon comes first.
    index_and_measure(place, db, dataset, exact.first(measure.K), ["quiver_ivf", "quiver_graph"])


def measure_index(
    place: Place, db: Connection, dataset: datasets.Dataset, exact: Truth, method: str
) -> tuple[float, int, list[measure.Result]]:
    """Seconds that the index took, its bytes, and what each value of its setting gives."""
    setting, values = WAYS[method]
    name = f"pgvector {place.pgvector} {method}" if place.pgvector else method
    built = database.index_ready(db, method)
    if built is None:
        with Step(f"build the index, {name}") as step:
            built = database.build_index(db, place, method, dataset.metric, step)
    else:
        done_before(f"index, {name}", f"built in {built:.1f} s by an earlier run")
    with Step(f"read {database.TABLES[method]} and its index into memory"):
        database.read_into_memory(db, method)
    results = []
    for value in values:
        way = measure.index_way(method, setting, value)
        with Step(f"{way.title}: recall and speed"):
            results.append(measure.measure_way(place, way, dataset, exact))
    return built, relation_bytes(db, database.index_name(method)), results


def index_and_measure(
    place: Place,
    db: Connection,
    dataset: datasets.Dataset,
    exact: Truth,
    methods: list[str],
    stock: Place | None = None,
) -> None:
    """Builds and measures the indexes of Quiver, and a stock pgvector's where there is one."""
    with Step("exact scan: recall and speed"):
        results = [measure.measure_way(place, measure.exact_way(), dataset, exact)]
    seconds: dict[str, float] = {}
    sizes: dict[str, int] = {}
    for method in methods:
        seconds[method], sizes[method], more = measure_index(place, db, dataset, exact, method)
        results += more
    if stock:
        with prepare(stock, f"pgvector {stock.pgvector}", dataset) as other:
            seconds["hnsw"], sizes["hnsw"], more = measure_index(
                stock, other, dataset, exact, "hnsw"
            )
            results += more

    rows_size = relation_bytes(db, "items")
    say()
    say(f"{dataset.name}: {len(dataset.train):,} rows ({rows_size / 2**20:.0f} MB), one client")
    say()
    say(report.table(results, seconds, sizes))
    if isinstance(dataset, packages.Packages):
        for words in packages.SEARCHES:
            say()
            say(f'  "{words}"')
            for name, text, distance in measure.search_words(db, dataset, words):
                say(f"    {distance:.3f}  {name:<28} {text[:70]}")
        for program, its in ((name, text) for name, text in dataset.texts if name in packages.NEAR):
            say()
            say(f"  near {program} ({its})")
            for name, text, distance in measure.search_near(db, program):
                say(f"    {distance:.3f}  {name:<28} {text[:70]}")
    db.close()
    say()
    say_how_to_go_on(place, dataset)


def say_how_to_go_on(place: Place, dataset: datasets.Dataset) -> None:
    nearer = operator(dataset.metric)
    if isinstance(dataset, packages.Packages):
        columns, source = "name, description", "items WHERE name = 'gnuchess'"
    else:
        columns, source = "id", "queries WHERE id = 7"
    query = (
        f"SELECT {columns} FROM items"
        f" ORDER BY embedding {nearer} (SELECT embedding FROM {source}) LIMIT 5"
    )
    psql = ["./quickstart", "psql"]
    if place.name != DATABASE:
        psql += ["-d", place.name]
    tables = ", ".join(f"{database.TABLES[method]} has {method}" for method in place.methods)
    say(f"The same rows are in a table for each index: {tables}.")
    say("Try it by hand:")
    say()
    say(f"  {shlex.join(psql)} \\")
    say(f'    -c "{query}"')
    say()
    server = place.server
    url = [f"{server.bin}/psql", "-h", server.socket, "-p", str(server.port)]
    say(f"(which is {shlex.join([*url, '-U', server.user, '-d', place.name])} ...)")
    say("./quickstart stop stops the server, ./quickstart clean removes everything.")


def main() -> int:
    parser = argparse.ArgumentParser(prog="./quickstart")
    parser.add_argument("--top", type=Path, required=True)
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--socket", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--build-id", required=True)
    parser.add_argument("--pgvector", help="the version of a stock pgvector to compare with")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--scale", type=int)
    parser.add_argument("--dimensions", type=int)
    parser.add_argument("--check", action="store_true", help="only look whether the data will do")
    arguments = parser.parse_args()
    server = Server(arguments.socket, arguments.port, arguments.bin)
    try:
        if arguments.check:
            if not arguments.scale:
                check(arguments.top, arguments.home)
        elif arguments.scale:
            run_scale(server, arguments)
        else:
            run_quickstart(server, arguments)
    except (BenchError, psycopg.Error) as error:
        print(f"\nerror: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted; what is finished stays", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
