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
from quiver_bench.quickstart import database, measure, packages, report
from quiver_bench.truth import Truth

QUERIES = 1000

# What is measured of each index: a setting of quiver.* and its values.
WAYS: dict[str, tuple[str, tuple[float, ...]]] = {
    "quiver_graph": ("ef_search", (10, 40, 160)),
    "quiver_ivf": ("recall", (0.9, 0.95, 0.99)),
}


def choose_data(top: Path, home: Path) -> datasets.Dataset:
    """The first source that there is."""
    given = os.environ.get("QUIVER_DATA")
    if given != "packages":
        path = datasets.find_given(top, home) or download(home)
        if path:
            with Step(f"read {path.name}") as step:
                dataset, verified = datasets.read(path)
                step.note = f"verified: {verified}"
            if dataset.metric == "ip":
                raise DataError(f"{path}: the quickstart takes euclidean and angular")
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


def prepare(server: Server, build_id: str, dataset: datasets.Dataset) -> Connection:
    """A database with the rows in it."""
    db = database.open_database(server, build_id, dataset)
    n, dimensions = dataset.train.shape
    if database.recall_state(db, "loaded") == n:
        done_before("load", f"{n:,} rows of {dimensions} dimensions")
    else:
        with Step(f"load {n:,} rows of {dimensions} dimensions") as step:
            database.load(db, dataset, step)
    return db


def run(arguments: argparse.Namespace) -> None:
    server = Server(arguments.socket, arguments.port, arguments.bin)
    dataset = choose_data(arguments.top, arguments.home).first(arguments.rows)
    db = prepare(server, arguments.build_id, dataset)

    with Step(f"exact neighbors of {len(dataset.queries):,} queries (numpy)"):
        exact = Truth(*truth.nearest(dataset.train, dataset.queries, measure.K, dataset.metric))

    ways = [measure.exact_way()]
    with Step("exact scan: recall and speed"):
        results = [measure.measure_way(server, ways[0], dataset, exact)]

    seconds: dict[str, float] = {}
    sizes: dict[str, int] = {}
    for method, (setting, values) in WAYS.items():
        built = database.index_ready(db, method)
        if built is None:
            with Step(f"build the index, {method}") as step:
                built = database.build_index(db, server, method, dataset.metric, step)
        else:
            done_before(f"index, {method}", f"built in {built:.1f} s by an earlier run")
        seconds[method] = built
        sizes[method] = relation_bytes(db, database.index_name(method))
        for value in values:
            way = measure.index_way(method, setting, value)
            with Step(f"{way.title}: recall and speed"):
                results.append(measure.measure_way(server, way, dataset, exact))

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
    db.close()
    say()
    say_how_to_go_on(server, dataset)


def say_how_to_go_on(server: Server, dataset: datasets.Dataset) -> None:
    nearer = operator(dataset.metric)
    if isinstance(dataset, packages.Packages):
        columns, source = "name, description", "items WHERE name = 'gnuchess'"
    else:
        columns, source = "id", "queries WHERE id = 7"
    query = (
        f"SELECT {columns} FROM items"
        f" ORDER BY embedding {nearer} (SELECT embedding FROM {source}) LIMIT 5"
    )
    psql = [f"{server.bin}/psql", "-h", server.socket, "-p", str(server.port)]
    psql += ["-U", "postgres", "-d", database.DATABASE]
    tables = ", ".join(f"{table} has {method}" for method, table in database.TABLES.items())
    say(f"The same rows are in a table for each index: {tables}.")
    say("Try it by hand (./quickstart psql is short for the first part):")
    say()
    say(f"  {shlex.join(psql)} \\")
    say(f'    -c "{query}"')
    say()
    say("./quickstart stop stops the server, ./quickstart clean removes everything.")


def main() -> int:
    parser = argparse.ArgumentParser(prog="./quickstart")
    parser.add_argument("--top", type=Path, required=True)
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--socket", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--build-id", required=True)
    parser.add_argument("--rows", type=int)
    arguments = parser.parse_args()
    try:
        run(arguments)
    except (BenchError, psycopg.Error) as error:
        print(f"\nerror: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted; what is finished stays", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
