"""The command line: measures vector indexes side by side, and reports what came out."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from pathlib import Path

from quiver_bench import VERSION, config, registry, servers, synthetic
from quiver_bench.console import Step, command, say
from quiver_bench.errors import BenchError, ConfigError

OK, REGRESSION, USAGE, INVALID = 0, 1, 2, 3


def folder_of(label: str, home: Path) -> Path:
    """results/<label>, or the folder itself when one is named."""
    path = Path(label)
    return path if (path / "results.jsonl").is_file() else home / "results" / label


def positive(text: str) -> int:
    """An argument that is a whole number from 1 on."""
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


positive.__name__ = "positive number"  # argparse says: invalid positive number value


def run(args: argparse.Namespace) -> int:
    from quiver_bench.results import Store
    from quiver_bench.run import Runner

    top = servers.find_top()
    home = servers.home(top)
    suite = config.narrowed(
        config.read(args.suite), args.only or (), args.rows, args.reps, args.queries, args.data
    )
    folder = args.out or home / "results" / (args.label or suite.name)
    say(f"quiver-bench run {suite.name}: results go to {folder}")
    with servers.only_run(home):
        failures = Runner(suite, Store(folder), home, top).run(args.fresh)
    say()
    say(
        f"  for tables: {command()} report {args.label or suite.name if not args.out else args.out}"
    )
    if failures:
        say(f"  {failures} measurement{'s' * (failures > 1)} failed; the report says which")
    return INVALID if failures else OK


def report(args: argparse.Namespace) -> int:
    from quiver_bench import report as reports

    home = servers.home(servers.find_top())
    folders = [folder_of(label, home) for label in args.results]
    options = reports.Options(
        like=args.like, best=args.best, round_recall=args.recall_round,
        targets=tuple(args.targets or ()), baseline=args.baseline or "", format=args.format,
    )  # fmt: skip
    out = args.out or folders[0] / (f"report-{args.like}.html" if args.like else "report.html")
    say(reports.make(folders, options, out))
    say(f"\n{out}")
    return OK


def publish(args: argparse.Namespace) -> int:
    from quiver_bench import publish as publishing

    top = servers.find_top()
    if top is None and args.out is None:
        raise ConfigError("outside of a checkout, --out says where the page goes")
    folders = [folder_of(label, servers.home(top)) for label in args.results]
    out = args.out or Path(str(top)) / "docs" / "results"
    for path in publishing.publish(folders, out, args.readme):
        say(f"  {path}")
    return OK


def compare(args: argparse.Namespace) -> int:
    from quiver_bench import compare as comparing

    home = servers.home(servers.find_top())
    before, after = (comparing.rows(folder_of(label, home)) for label in (args.a, args.b))
    table, _ = comparing.compare(before, after, comparing.LIMITS)
    say(table.text())
    return OK


def gate(args: argparse.Namespace) -> int:
    from quiver_bench import compare as comparing

    home = servers.home(servers.find_top())
    limits = comparing.parse_limits(args.max or ())
    before = comparing.rows(folder_of(args.baseline, home))
    after = comparing.rows(folder_of(args.results, home))
    table, worse = comparing.compare(before, after, limits)
    say(table.text())
    say(f"\n{len(worse)} regressions beyond noise")
    for line in worse:
        say(f"  {line}")
    return REGRESSION if worse else OK


def data(args: argparse.Namespace) -> int:
    top = servers.find_top()
    home = servers.home(top)
    if args.verb == "list":
        from quiver_bench.views import data_table

        say(data_table(top, home).text())
    elif args.verb == "get":
        with Step(f"get {args.name}") as step:
            found = registry.get(args.name, top, home, step.update)
        say(
            f"  {found.rows:,} x {found.dimensions}, {found.metric}, {len(found.queries):,} queries"
        )
    else:
        name = args.name or f"synthetic-{args.rows}-{args.dim}-{args.metric}"
        path = args.out or home / "download" / f"{name}.hdf5"
        path.parent.mkdir(parents=True, exist_ok=True)
        with Step(f"make {path.name}") as step:
            synthetic.make(
                path, args.rows, args.dim, args.metric, args.queries, args.seed, args.clusters,
                args.mean_cos, step.update,
            )  # fmt: skip
        say(f"  {path}")
        named = path if args.out else name
        say(f"  to measure with it: {command()} run SUITE --data {named} --rows {args.rows}")
    return OK


def engines(args: argparse.Namespace) -> int:
    from quiver_bench.views import engine_table

    say(engine_table().text())
    return OK


def suites(args: argparse.Namespace) -> int:
    for name in config.names():
        suite = config.read(name)
        say(f"  {name:<12} {suite.about}")
    return OK


def exact_scan(args: argparse.Namespace) -> int:
    from quiver_bench import exact_scan as scan

    scan.run(args.quiver, args.pgvector, args.rows, args.dims, args.repeat)
    return OK


def parser() -> argparse.ArgumentParser:
    main = argparse.ArgumentParser(prog="quiver-bench", description=__doc__)
    main.add_argument("--version", action="version", version=VERSION)
    verbs = main.add_subparsers(dest="verb_of_main", metavar="COMMAND", required=True)

    one = verbs.add_parser("run", help="run a suite; goes on where it was interrupted")
    one.add_argument("suite", help="name of a suite (quiver-bench suites) or a YAML file")
    one.add_argument("--label", help="name of the results (default: the suite's)")
    one.add_argument("--out", type=Path, help="folder of the results")
    one.add_argument("--only", action="append", metavar="ENGINE", help="this engine (repeatable)")
    one.add_argument("--data", help="another data set: a name or a file")
    one.add_argument("--rows", type=positive, help="only the first rows")
    one.add_argument("--queries", type=positive, help="only the first queries")
    one.add_argument("--reps", type=positive, help="repetitions (default: the suite's)")
    one.add_argument("--fresh", action="store_true", help="forget what was measured before")
    one.set_defaults(do=run)

    one = verbs.add_parser("report", help="tables on the terminal and an HTML page")
    one.add_argument("results", nargs="+", help="labels or folders; several hosts make one report")
    one.add_argument("--like", choices=("katz", "callaghan", "docarray", "rds", "edb"),
                     help="the tables of that published report")  # fmt: skip
    one.add_argument("--best", action="store_true", help="best repetition instead of the median")
    one.add_argument("--recall-round", type=int, help="compare recall rounded to so many decimals")
    one.add_argument("--targets", type=float, nargs="+", help="recall targets")
    one.add_argument("--baseline", help="an engine that others are compared with")
    one.add_argument("--format", choices=("text", "markdown", "csv"), default="text")
    one.add_argument("--out", type=Path, help="the HTML file")
    one.set_defaults(do=report)

    one = verbs.add_parser("publish", help="the public page of results, docs/results/")
    one.add_argument("results", nargs="*",
                     help="runs that go into it; none: made anew of the files that are there")  # fmt: skip
    one.add_argument("--readme", type=Path,
                     help="put a chart and a table into this README, too, between its marks")  # fmt: skip
    one.add_argument("--out", type=Path, help="the folder, instead of docs/results")
    one.set_defaults(do=publish)

    one = verbs.add_parser("compare", help="two results, point by point")
    one.add_argument("a", help="label or folder of the results before")
    one.add_argument("b", help="of those after")
    one.set_defaults(do=compare)

    one = verbs.add_parser("gate", help="exit 1 when something became worse beyond noise")
    one.add_argument("results", help="label or folder")
    one.add_argument("--baseline", required=True, help="results that these are compared with")
    one.add_argument("--max", action="append", metavar="METRIC=PERCENT",
                     help="how much worse is too much, e.g. qps=5 (repeatable)")  # fmt: skip
    one.set_defaults(do=gate)

    one = verbs.add_parser("data", help="data sets")
    kinds = one.add_subparsers(dest="verb", metavar="COMMAND", required=True)
    kinds.add_parser("list", help="those of the reports")
    kind = kinds.add_parser("get", help="download and verify one")
    kind.add_argument("name")
    kind = kinds.add_parser("make", help="vectors like embeddings, from a seed")
    kind.add_argument("--rows", type=positive, default=100_000)
    kind.add_argument("--dim", type=positive, default=768)
    kind.add_argument("--metric", choices=("angular", "euclidean"), default="angular")
    kind.add_argument("--queries", type=positive, default=1000)
    kind.add_argument("--seed", type=int, default=1)
    kind.add_argument("--clusters", type=int, default=0, help="0: by the number of rows")
    kind.add_argument("--mean-cos", type=float, default=0.3, help="mean cosine of two rows")
    kind.add_argument("--name", help="for --data (default: synthetic-ROWS-DIM-METRIC)")
    kind.add_argument("--out", type=Path, help="the file, instead of a name")
    one.set_defaults(do=data)

    verbs.add_parser("engines", help="the adapters").set_defaults(do=engines)
    verbs.add_parser("suites", help="the suites that come along").set_defaults(do=suites)

    one = verbs.add_parser("exact-scan", help="exact scans of two servers, by type and operator")
    one.add_argument("quiver", help="connection string of a database with Quiver's vector")
    one.add_argument("pgvector", help="one with pgvector's")
    one.add_argument("--rows", type=positive, default=20000)
    one.add_argument("--dims", type=positive, default=768)
    one.add_argument("--repeat", type=positive, default=9)
    one.set_defaults(do=exact_scan)
    return main


def main(arguments: list[str] | None = None) -> int:
    args = parser().parse_args(arguments)
    # A run that is told to end stops the servers it started.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # it is under nohup
        signal.signal(signal.SIGHUP, signal.default_int_handler)
    try:
        return int(args.do(args))
    except ConfigError as error:
        print(f"error: {error}", file=sys.stderr)
        return USAGE
    except BenchError as error:
        print(f"error: {error}", file=sys.stderr)
        return INVALID
    except BrokenPipeError:
        # Who read our output has gone (head, less). Nothing is left to be flushed at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except OSError as error:  # a folder that cannot be written, a full disk
        print(f"error: {error}", file=sys.stderr)
        return INVALID
    except KeyboardInterrupt:
        without = " without --fresh" if getattr(args, "fresh", False) else ""
        print(f"\ninterrupted; run the same again{without} to go on", file=sys.stderr)
        return 130
