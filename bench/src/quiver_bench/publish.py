"""The public page of results: docs/results/ made of small files that are checked in.

publish LABEL... copies what is needed of each run's results into FOLDER/LABEL.jsonl; then, of all
files there are, it writes README.md, filters.md and the charts. Without a label it makes them
anew. It can put a chart and a table into the project's README, too, between two marks. A file
notes.txt in FOLDER has sentences that both pages begin with.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from quiver_bench import charts, config, drawings, report, results, summary
from quiver_bench.console import say
from quiver_bench.errors import ConfigError
from quiver_bench.like import dataset_title
from quiver_bench.records import MISSING, OK, Result, canonical
from quiver_bench.tables import Table, megabytes, milliseconds, rate
from quiver_bench.views import Row, groups, rows_of, searches_of, select, why_not

# What is kept of a result.
METRICS = (
    "recall", "recall_ids", "recall_ann", "qps", "qps_wall", "p50_ms", "p95_ms", "p99_ms", "queries",
    "build_s", "load_s", "create_s", "index_bytes", "table_bytes", "tps", "read_bytes",
    "server_cpu_ms", "client_cpu_ms", "pages_hit", "pages_read", "pages_planning", "rows",
    "others_cores", "short_results", "pass_share", "near_share", "asked_queries",
    "answered_queries",
)  # fmt: skip
DIGITS = 5
COLUMNS_OF_TEXT = 100
# What of a machine is of no use to readers: the names of its kernel and folders.
PRIVATE = ("kernel", "governor", "swap", "transparent_huge_pages")
FOLDERS = re.compile(r"(/[\w.+~-]+)+/(?=[\w.+~-])")
BEGIN, END = "<!-- quiver-bench publish -->", "<!-- end of quiver-bench publish -->"
# Columns of the README's table, where they were measured.
COLUMNS = ("pgvector_hnsw", "vectorchord", "quiver_graph", "quiver_ivf")


def _short(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def kept(folder: Path) -> str:
    """The lines of a run that the page needs: no raw arrays, no settings but those of builds."""
    found, facts = results.read(folder)
    if not found:
        raise ConfigError(f"{folder} has no results")
    used = {result.environment for result in found}
    lines = [
        canonical({n: v for n, v in one.items() if n not in PRIVATE})
        for name, one in facts.items() if name in used
    ]  # fmt: skip
    for result in found:
        record = json.loads(result.to_json())
        record["metrics"] = {n: _short(result.metrics[n]) for n in METRICS if n in result.metrics}
        record["reason"] = FOLDERS.sub("", record["reason"])
        lines.append(canonical(record))
    return "\n".join(lines) + "\n"


def _place(result: Result, **changes: Any) -> str:
    """A point and its host, however it was measured."""
    return canonical([result.host, asdict(result.point.but(data="", protocol={}, **changes))])


def _index(result: Result) -> str:
    """The build that a result is of."""
    return _place(result, workload="build", query={}, clients=1, tier="", load={})


def newest(found: Sequence[tuple[str, Result]]) -> list[Result]:
    """The results of each case that were measured last: by one run, of one version, in one way.

    found: a result, and the file it is from. A missing engine hides no numbers. The build of an
    index stays unless everything that was measured with it was replaced.
    """

    def case(result: Result) -> str:
        return _index(result) if result.point.workload == "build" else _place(result, version="")

    last: dict[str, tuple[bool, str, str, str]] = {}
    for file, result in found:
        this = (result.status != MISSING, result.started, file, result.point.id)
        last[case(result)] = max(this, last.get(case(result), this))
    kept = [r for file, r in found if (file, r.point.id) == last[case(r)][2:]]
    others, left = (
        {_index(r) for r in some if r.point.workload != "build"}
        for some in ([r for _, r in found], kept)
    )
    gone = others - left
    return [r for r in kept if r.point.workload != "build" or _index(r) not in gone]


def read(folder: Path) -> tuple[list[Result], dict[str, Mapping[str, Any]]]:
    """The results of all files of a folder, each case once, and the environments of these."""
    every: list[tuple[str, Result]] = []
    facts: dict[str, Mapping[str, Any]] = {}
    for path in sorted(folder.glob("*.jsonl")):
        some, environments = results.read_file(path)
        every += [(path.name, result) for result in some]
        facts |= environments
    if not every:
        raise ConfigError(f"{folder} has no results: name a run that has some")
    found = newest(every)
    if len(found) < len(every):
        say(f"  left out, because newer ones are there: {len(every) - len(found)} results")
    used = {result.environment for result in found}
    return found, {name: one for name, one in facts.items() if name in used}


def _name(title: str) -> str:
    """Of a file, by a chart's title: what it shows, and of which data."""
    what, _, of_data = title.rpartition(": ")
    short = f"{what.split(',')[0]} {of_data}"
    return re.sub(r"[^a-z0-9]+", "-", short.lower()).strip("-")


def wrapped(lines: Sequence[str]) -> str:
    """Text of at most 100 columns; tables, code and headings stay as they are."""
    found = []
    for line in "\n".join(lines).splitlines():
        if line.startswith(("|", "    ", "#")) or len(line) <= COLUMNS_OF_TEXT:
            found.append(line)
            continue
        indent = "  " if line.startswith("- ") else ""
        found += textwrap.wrap(line, COLUMNS_OF_TEXT, subsequent_indent=indent,
                               break_long_words=False, break_on_hyphens=False)  # fmt: skip
    return "\n".join(found).rstrip() + "\n"


class Page:
    """Writes the files of a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        found, self.facts = read(folder)
        self.rows = rows_of(found)
        last: Mapping[str, Any] = [*self.facts.values()][-1]
        said = last.get("report", {})
        self.targets = tuple(said.get("targets") or report.TARGETS)
        self.aim = sorted(self.targets)[len(self.targets) // 2]
        self.baseline = str(said.get("baseline") or report.baseline_of(self.rows))
        self.pictures: set[str] = set()

    def picture(self, chart: charts.Chart) -> list[str]:
        """Write a chart; the lines of Markdown that show it."""
        stem = name = _name(chart.title)
        number = 1
        while f"{name}.svg" in self.pictures:
            number += 1
            name = f"{stem}-{number}"
        name += ".svg"
        self.pictures.add(name)
        (self.folder / name).write_text(chart.svg + "\n")
        alt = chart.alt.replace("[", "(").replace("]", ")")
        return [f"![{alt}.]({name})", "", *([chart.caption, ""] if chart.caption else [])]

    def write(self) -> None:
        drawn = drawings.of(self.rows)
        filters = [
            c for c in drawn if c.title.startswith(("Shares and", "Labels, joins", "Conditions"))
        ]
        lines = self.head("Results")
        lines += ["## Summary", ""]
        for heading, some in summary.sentences(self.rows, self.aim, self.baseline).items():
            lines += [f"### {heading}", "", *(f"- {line}" for line in some), ""]
        lost = summary.lost_tables(summary.cells(self.rows, self.targets))
        lines += [summary.lost_sentence(lost), ""]
        lines += self.searches([c for c in drawn if c.title.startswith("Recall and speed")])
        lines += ["## Conditions", "", "[filters.md](filters.md) has the numbers of all cases.", ""]
        for chart in filters:
            lines += [f"### {chart.title}", "", *self.picture(chart)]
        tiers = [c for c in drawn if c.title.startswith(("Memory", "shared_buffers"))]
        if tiers:
            lines += ["## Memory", ""]
            for chart in tiers:
                lines += [f"### {chart.title}", "", *self.picture(chart)]
        lines += ["## Builds and sizes", ""]
        builds = [r for r in select(self.rows, workload="build") if r.adapter != "null"]
        for built in groups(builds, dataset_title).values():
            lines += [report.build_table(built).markdown(), ""]
        lines += ["## Where Quiver is not ahead", ""]
        lines += [part for table in lost for part in (table.markdown(), "")]
        lines += ["## Engines", "", report.labels_table(self.rows).markdown(), ""]
        (self.folder / "README.md").write_text(wrapped(lines))
        lines = self.head("Conditions, case by case")
        for table in report.conditions_tables(self.rows):
            lines += [table.markdown().removeprefix("#"), ""]  # a level up, below the title
        (self.folder / "filters.md").write_text(wrapped(lines))
        for path in self.folder.glob("*.svg"):
            if path.name not in self.pictures and path.name != CHART:
                path.unlink()

    def head(self, title: str) -> list[str]:
        """What a reader must know before any number."""
        reps = max(row.reps for row in self.rows)
        often = f"Numbers are medians of up to {reps} repetitions."
        lines = [
            f"# {title}", "", summary.load_sentence(self.rows, self.facts),
            often if reps > 1 else "Everything was measured once.", "",
        ]  # fmt: skip
        table = Table("", ("cores", "processor", "memory MB", "system", "begun"))
        names = ("cores", "cpu", "memory_mb", "system")
        machines = [
            (*(str(one.get(name, "-")) for name in names), str(one.get("started"))[:10])
            for one in self.facts.values()
        ]  # fmt: skip
        for machine in dict.fromkeys(machines):
            table.add(*machine)
        lines += [*table.markdown().splitlines()[2:], ""]
        notes = self.folder / NOTES
        lines += [*notes.read_text().splitlines(), ""] if notes.is_file() else []
        measured = {str(one.get("suite")) for one in self.facts.values()}
        suites = [name for name in config.names() if name in measured] or ["public"]
        lines += [
            "Made by `quiver-bench publish` of the `.jsonl` files beside this page"
            " ([how it is measured](../../bench/README.md)). To measure again:",
            "",
            *(f"    bench/quiver-bench run {suite} --fresh" for suite in suites),
            f"    bench/quiver-bench publish {' '.join(suites)}",
            "",
        ]
        return lines

    def searches(self, drawn: Sequence[charts.Chart]) -> list[str]:
        lines = ["## Searches", ""]
        good = [r for r in searches_of(self.rows) if r.clients == 1 and r.adapter != "null"]
        of_data = groups(good, dataset_title)
        for chart in drawn:
            some = of_data[chart.title.removeprefix("Recall and speed: ")]
            lines += [f"### {chart.title}", "", *self.picture(chart)]
            lines += [report.target_table(some, self.aim).markdown(), ""]
        return lines


CHART = "chart.svg"
NOTES = "notes.txt"  # written by hand: what was left out, and why


def readme_block(page: Page, link: str) -> list[str]:
    """The chart and the table of the project's README. link: to the folder.

    They are of the data set in which most of COLUMNS reach the recall, the first of several.
    """
    good = [
        r for r in searches_of(page.rows)
        if r.clients == 1 and r.adapter != "null" and r.status == OK
    ]  # fmt: skip
    few = groups([r for r in good if r.engine in COLUMNS], dataset_title)
    best = {title: summary.fastest(some, page.aim) for title, some in few.items()}
    title = max(best, key=lambda name: len(best[name]), default="")
    if not best.get(title):
        raise ConfigError(f"none of {', '.join(COLUMNS)} reaches a recall of {page.aim}")
    order = {e: i for i, e in enumerate(groups(page.rows, lambda r: r.engine)) if e != "null"}
    chart = drawings.recall_and_speed(title, few[title], order)
    (page.folder / CHART).write_text(chart.svg + "\n")
    engines = groups(few[title], lambda r: r.engine)
    # How busy the machine was with these.
    same = [r for r in page.rows if dataset_title(r) == title and r.engine in engines]
    facts = {n: f for n, f in page.facts.items() if f.get("host") == same[0].host}
    return [
        f"{title}. One client, recall of at least {page.aim} ([all results]({link}/README.md)).",
        summary.load_sentence(same, facts), "",
        *_few(engines, best[title]).markdown().splitlines()[2:], "", f"![{chart.alt}]({link}/{CHART})",
    ]  # fmt: skip


def _few(engines: Mapping[str, Sequence[Row]], best: Mapping[str, Row]) -> Table:
    """engines: those that were measured. best: those that reach the recall."""
    measured = [name for name in COLUMNS if name in engines]
    table = Table("", ("", *(f"`{name}`" for name in measured)))

    def line(what: str, form: Callable[[Row], str]) -> None:
        table.add(what, *(form(best[name]) if name in best else "-" for name in measured))

    line("searches per second", lambda r: rate(r.get("qps")))
    table.add("at a recall of", *(f"{best[name].get('recall'):.3f}" if name in best
                                  else why_not(engines[name]) for name in measured))  # fmt: skip
    line("p99", lambda r: f"{milliseconds(r.get('p99_ms'))} ms")
    line("build", lambda r: f"{r.get('build_s'):.1f} s")
    line("index", lambda r: f"{megabytes(r.get('index_bytes'))} MB")
    return table


def into_readme(readme: Path, lines: Sequence[str]) -> None:
    """Put the block between its marks."""
    text = readme.read_text()
    if BEGIN not in text or END not in text:
        raise ConfigError(f"{readme} has no lines {BEGIN} and {END}, between which the block goes")
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    readme.write_text(f"{before}{BEGIN}\n\n{wrapped(lines)}\n{END}{after}")


def publish(folders: Sequence[Path], out: Path, readme: Path | None) -> list[Path]:
    """Copy the runs, make the page, and the README's part when asked; the files written."""
    out.mkdir(parents=True, exist_ok=True)
    for folder in folders:
        (out / f"{folder.name}.jsonl").write_text(kept(folder))
    page = Page(out)
    page.write()
    if readme is not None:
        link = out.resolve().relative_to(readme.resolve().parent).as_posix()
        into_readme(readme, readme_block(page, link))
    return sorted(out.iterdir())
