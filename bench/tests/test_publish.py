"""The public page, its files and pictures, and the first lines of a report."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from quiver_bench import charts, drawings, like, like_edb, publish, report, summary
from quiver_bench.charts import Dot
from quiver_bench.errors import ConfigError
from quiver_bench.records import FAILED, MISSING, OK, Point, Result
from quiver_bench.results import Store
from quiver_bench.views import Row, rows_of

DATA = {"dataset": "d-8-euclidean", "rows": 500, "dimensions": 8, "metric": "euclidean", "k": 10}
FACTS = {"id": "e1", "cores": 2, "cpu": "a processor", "memory_mb": 8192, "system": "Debian",
         "started": "2026-01-02T03:04:05", "kernel": "private", "host": "h", "load_average": [3.0, 1.0, 1.0],
         "report": {"targets": [0.9, 0.95, 0.99], "baseline": "pgvector_hnsw"}}  # fmt: skip
# engine: adapter, [(ef_search, recall, QPS)], build s, index bytes
ENGINES = {
    "quiver_graph": ("quiver", [(10, 0.93, 900.0), (40, 0.97, 500.0)], 2.0, 100.0),
    "pgvector_hnsw": ("pgvector", [(10, 0.90, 400.0), (40, 0.96, 250.0)], 5.0, 200.0),
    "redis": ("redis", [(10, 0.99, 100.0)], 9.0, 50.0),
    "faiss": ("faiss", [(10, 0.96, 5000.0)], 1.0, 150.0),
}


def made() -> list[Result]:
    found = []
    for engine, (adapter, points, build_s, size) in ENGINES.items():
        base = Point("build", engine, adapter, "1", **DATA)  # type: ignore[arg-type]
        found.append(Result(base, 0, OK, metrics={"build_s": build_s, "index_bytes": size * 2**20}))
        for ef, recall, qps in points:
            metrics = {"recall": recall, "recall_ids": recall, "qps": qps, "qps_wall": qps, "p50_ms": 1000 / qps,
                       "p95_ms": 1500 / qps, "p99_ms": 2000 / qps, "queries": 100.0,
                       "others_cores": 0.5, "client_cpu_ms": 0.123456789}  # fmt: skip
            point = replace(base, workload="query", query={"ef_search": ef})
            found.append(Result(point, 0, OK, metrics=metrics))
        for case, share in (("10 %, correlation -1", 0.1), ("1 %, correlation -1", 0.01)):
            load = {"suite": "grid", "case": case, "sessions": "warm"}
            metrics = {"recall": 0.5 if engine == "redis" else 1.0, "p50_ms": 1 / build_s,
                       "qps": build_s, "pass_share": share, "near_share": 0.0,
                       "short_results": 0.0}  # fmt: skip
            point = replace(base, workload="conditions", load=load)
            found.append(Result(point, 0, OK, metrics=metrics))
        for tier in ("16:64", "32:64", "32:128"):
            qps = 10.0 * int(tier.split(":")[0])
            point = replace(base, workload="query", query={"ef_search": 40}, tier=tier)
            found.append(Result(point, 0, OK, metrics={"recall": 0.97, "recall_ids": 0.97, "qps": qps, "p50_ms": 1.0,
                                                       "p99_ms": 2.0, "read_bytes": 0.0}))  # fmt: skip
    gone = Point("build", "weaviate", "weaviate", "", **DATA)  # type: ignore[arg-type]
    found.append(Result(gone, 0, MISSING, "needs /home/someone/place/thing.so, or a url"))
    return [replace(r, environment="e1", host="h") for r in found]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    store = Store(tmp_path / "public")
    store.environment(FACTS)
    for result in made():
        store.add(result)
    return tmp_path / "public"


def test_sentences_come_of_the_rows() -> None:
    ((heading, said),) = summary.sentences(rows_of(made()), 0.95, "pgvector_hnsw").items()
    assert "recall of at least 0.95" in heading
    assert said[0] == (
        "faiss is fastest, with 5,000 queries a second."
        " Next come quiver_graph, pgvector_hnsw and redis."
    )
    assert said[1] == (
        "quiver_graph answers 2.00 times as many queries as pgvector_hnsw."
        " Its build takes 0.40 times as long. Its index has 0.50 times the size."
    )


def test_the_load_of_the_machine_is_the_first_thing_said() -> None:
    rows = rows_of(made())
    assert "0.5 of 2 cores" in summary.load_sentence(rows, {"e1": FACTS})
    one = [replace(r, metrics={"others_cores": 1.5 * (r.engine == "redis")}) for r in rows]
    text = summary.load_sentence(one, {"e1": FACTS})
    assert "mostly quiet" in text
    assert "They took more than 0.5 at 7 points. The most was 1.5." in text
    assert "The highest median was 1.5, that of redis on d-8-euclidean." in text
    quiet = [replace(r, metrics={"others_cores": 0.02}) for r in rows]
    assert "was quiet" in summary.load_sentence(quiet, {"e1": FACTS})
    unknown = [replace(r, metrics={}) for r in rows]
    assert "load average was 3.0" in summary.load_sentence(unknown, {"e1": FACTS})


def test_what_other_programs_took_is_remarked_on_in_old_results_too() -> None:
    busy = [replace(r, metrics={**r.metrics, "others_cores": 0.7}) for r in made()]
    note = "other programs took more than 0.5 cores"
    rows = rows_of(busy)
    assert all(r.notes == (note,) for r in rows if r.status == OK)
    assert all(note not in r.notes for r in rows_of(made()))
    cold = [replace(r, load={**r.load, "sessions": "cold"}, notes=()) for r in rows
            if r.workload == "conditions"]  # fmt: skip
    asked = [r for r in rows if r.workload == "conditions"]
    for table in (
        report.build_table([r for r in rows if r.workload == "build"]),
        report.target_table([r for r in rows if r.workload == "query" and not r.tier], 0.9),
        *report.conditions_tables([*asked, *cold]),
    ):
        assert note in table.text()
        assert f"cold: {note}" in table.text() or table.columns[0] != "case"


def test_lost_cells_name_who_is_ahead_and_by_how_much() -> None:
    servers, libraries = summary.lost_tables(summary.cells(rows_of(made()), (0.9, 0.95, 0.99)))
    lost = {(row[0], row[1]): row[2:] for row in servers.rows}
    title = "d-8-euclidean (500 rows)"
    assert lost[title, "index MB"] == ("quiver_graph", "100", "redis", "50.0", "2.00")
    assert lost[f"{title}, recall >= 0.99", "QPS"] == ("none", "-", "redis", "100", "-")
    assert (title, "build s") not in lost  # only a library is ahead
    # Of an answer that misses the recall nothing is won, however fast it is.
    assert not any(row[4] == "redis" and "grid" in row[0] for row in servers.rows)
    ahead = {(row[0], row[1]): row[4] for row in libraries.rows}
    assert ahead[title, "build s"] == ahead[f"{title}, recall >= 0.95", "QPS"] == "faiss"
    assert servers.notes == [f"{len(servers.rows)} of 13 cells"]
    assert libraries.notes == [f"{len(libraries.rows)} of 11 cells"]
    assert "of 13 cells" in (said := summary.lost_sentence([servers, libraries]))
    assert "of 11 cells" in said


def test_a_cell_that_nobody_else_has_is_not_won() -> None:
    ours = [r for r in rows_of(made()) if r.adapter == "quiver"]
    tables = summary.lost_tables(summary.cells(ours, (0.9, 0.95, 0.99)))
    assert [table.notes for table in tables] == [["0 of 0 cells"]] * 2
    # Who has the number of another is not behind it.
    same = [*ours, *(replace(r, engine="faiss", adapter="faiss") for r in ours)]
    _, libraries = summary.lost_tables(summary.cells(same, (0.9,)))
    assert libraries.notes == [f"0 of {len(summary.cells(same, (0.9,)))} cells"]


def test_versions_are_told_apart_within_a_data_set_only() -> None:
    later = [
        replace(r, point=replace(r.point, version="2", dataset="other-8-euclidean")) for r in made()
    ]
    names = {row.engine for row in rows_of(made() + later)}
    assert "quiver_graph" in names
    assert not any("[2]" in name for name in names)
    same = [replace(r, point=replace(r.point, version="2")) for r in made() if r.status == OK]
    assert {"quiver_graph [1]", "quiver_graph [2]"} <= {r.engine for r in rows_of(made() + same)}


def of_two_hosts() -> list[Result]:
    """A second host, twice as fast, without Quiver."""
    others = [
        replace(r, host="h2", environment="e2", metrics={**r.metrics, "qps": 2 * r.metrics["qps"]})
        for r in made() if "qps" in r.metrics and r.point.adapter != "quiver"
    ]  # fmt: skip
    builds = [replace(r, host="h2", environment="e2") for r in made()
              if r.point.workload == "build" and r.point.adapter != "quiver"]  # fmt: skip
    return [*made(), *builds, *others]


def test_hosts_are_not_compared() -> None:
    rows = rows_of(of_two_hosts())
    first, second = (f"d-8-euclidean (500 rows), {host}" for host in ("h", "h2"))
    told = summary.sentences(rows, 0.95, "pgvector_hnsw")
    assert [heading.split(", one client")[0] for heading in told] == [first, second]
    assert told[f"{first}, one client, recall of at least 0.95"][1].startswith(
        "quiver_graph answers 2.00 times"
    )
    assert all(cell.what.startswith((first, second)) for cell in summary.cells(rows, (0.95,)))
    tables = [*report.default(rows, (0.95,)), *like_edb.edb(rows, "pgvector_hnsw")]
    for table in tables:
        if table.title.startswith("d-8") or "Dataset" in table.columns:
            assert "quiver_graph" not in "".join(
                "".join(row) for row in table.rows if "h2" in table.title + row[0]
            )
    assert sum(f"{second}: " in table.title for table in tables) >= 4
    titles = [chart.title for chart in drawings.of(rows)]
    assert len(set(titles)) == len(titles)
    assert all(title.endswith((", h", ", h2")) for title in titles)
    alone = rows_of(made())
    assert not any(", h" in chart.title for chart in drawings.of(alone))


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"k": 100}, ("k = 10", "k = 100")),
        ({"metric": "ip"}, ("euclidean", "ip")),
        ({"data": "0123456789abcdef"}, ("data unknown", "data 01234567")),
    ],
)
def test_other_k_metrics_and_data_are_not_compared(
    change: dict[str, Any], names: tuple[str, str], tmp_path: Path
) -> None:
    """The second run has no engine of ours, and is twice as fast."""
    others = [
        replace(r, point=replace(r.point, **change), started="2026-01-03",
                metrics={n: v * (1 + (n == "qps")) for n, v in r.metrics.items()})
        for r in made() if r.point.adapter != "quiver"
    ]  # fmt: skip
    rows = rows_of([*made(), *others])
    titles = [f"d-8-euclidean (500 rows, {name})" for name in names]
    told = summary.sentences(rows, 0.95, "pgvector_hnsw")
    assert [heading.split(", one client")[0] for heading in told] == titles
    fast = [said[0].split(" queries")[0] for said in told.values()]
    assert fast == ["faiss is fastest, with 5,000", "faiss is fastest, with 10,000"]
    tables = [*report.default(rows, (0.95,)), *like_edb.edb(rows, "pgvector_hnsw"),
              *like.katz(rows, [0.9]), *like.callaghan(rows, [0.9], "redis", None)]  # fmt: skip
    for table in tables:
        if table.title.startswith("d-8"):
            assert table.title.startswith(tuple(titles))
            ours = any("quiver_graph" in cell for row in table.rows for cell in row)
            assert table.title.startswith(titles[0]) or not ours
    assert all(cell.what.startswith(tuple(titles)) for cell in summary.cells(rows, (0.95,)))
    store = Store(tmp_path / "both")
    store.environment(FACTS)
    for result in [*made(), *others]:
        store.add(result)
    publish.publish([tmp_path / "both"], tmp_path / "out", None)
    text = (tmp_path / "out" / "README.md").read_text()
    assert all(f"### Recall and speed: {title}\n" in text for title in titles)


def test_builds_are_those_of_their_k() -> None:
    other = [replace(r, point=replace(r.point, k=100),
                     metrics={**r.metrics, "build_s": 7.0}) for r in made()]  # fmt: skip
    rows = [r for r in rows_of([*made(), *other]) if r.workload == "query"]
    assert {r.get("build_s") for r in rows if r.k == 100} == {7.0}
    assert 7.0 not in {r.get("build_s") for r in rows if r.k == 10}
    first = {r.graph for r in rows if r.k == 10}
    assert first.isdisjoint(r.graph for r in rows if r.k == 100)


def test_a_chart_and_its_table_are_of_one_host(tmp_path: Path) -> None:
    store = Store(tmp_path / "two")
    for name in ("e1", "e2"):
        store.environment({**FACTS, "id": name})
    gone = Point("query", "exact", "numpy", "1", **{**DATA, "dataset": "a"})  # type: ignore[arg-type]
    store.add(Result(gone, 0, FAILED, "why", environment="e1", host="h"))
    for result in of_two_hosts():
        store.add(result)
    publish.publish([tmp_path / "two"], tmp_path / "out", None)
    text = (tmp_path / "out" / "README.md").read_text().split("## Searches")[1]
    for host in ("h", "h2"):
        part = text.split(f"### Recall and speed: d-8-euclidean (500 rows), {host}\n")[1]
        assert part.split("\n### ")[1].startswith(f"d-8-euclidean (500 rows), {host}: recall")


def test_a_machine_is_named_once_a_day(run: Path, tmp_path: Path) -> None:
    store = Store(tmp_path / "again")
    store.environment({**FACTS, "id": "e2"})
    for result in made():
        other = replace(result.point, dataset="other-8-euclidean")
        store.add(replace(result, point=other, environment="e2"))
    publish.publish([run, tmp_path / "again"], tmp_path / "out", None)
    text = (tmp_path / "out" / "README.md").read_text()
    assert text.count("a processor") == 1


def test_a_case_is_published_of_the_newest_run(tmp_path: Path) -> None:
    old, searches = Point("build", "e", "quiver", "1", **DATA), []  # type: ignore[arg-type]
    for version, protocol, started in (
        ("1", {}, "2026-01-01"),  # as files of before have it
        ("1", {"longest": 5}, "2026-01-03"),
        ("1", {"longest": 9}, "2026-01-02"),
        ("0", {}, "2026-01-01"),
    ):
        base = replace(old, version=version, protocol=protocol)
        build = Result(base, 0, OK, metrics={"build_s": len(searches)}, started=started)
        point = replace(base, workload="query")
        searches += [build, *(Result(point, rep, OK, metrics={"qps": 1.0}, started=started)
                              for rep in range(2))]  # fmt: skip
    missing = replace(old, version="", workload="query")
    found = [(f"{i // 3}.jsonl", r) for i, r in enumerate(searches)]
    found.append(("new.jsonl", Result(missing, 0, MISSING, "not here", started="2026-01-09")))
    for order in (found, found[::-1]):
        kept = publish.newest(order)
        assert {r.started for r in kept} == {"2026-01-03"}
        assert [r.point.workload for r in kept].count("query") == 2
        assert len(kept) == 3
    (row,) = rows_of(r for r in kept if r.point.workload == "query")
    assert (row.reps, row.engine) == (2, "e")
    # The same by two runs is no repetition either; another host is another case.
    twice = [("a", searches[1]), ("b", searches[1]), ("c", replace(searches[1], host="h2"))]
    assert len(publish.newest(twice)) == 2
    # A later run with searches of another kind needs the build of the first.
    other = replace(searches[4], point=replace(searches[4].point, clients=2, version="2"))
    assert len(publish.newest([*found[:6], ("b", other)])) == 4
    alone = [("a", searches[0])]
    assert publish.newest(alone) == [searches[0]]


def test_all_versions_of_an_engine_are_named() -> None:
    other = [replace(r, point=replace(r.point, version="2", dataset="other-8-euclidean"))
             for r in made()]  # fmt: skip
    table = report.labels_table(rows_of([*made(), *other]))
    assert {row[0]: row[1] for row in table.rows}["quiver_graph"] == "1; 2"


def test_the_page_is_made_of_small_files_and_again_without_the_run(
    run: Path, tmp_path: Path
) -> None:
    out = tmp_path / "docs" / "results"
    publish.publish([run], out, None)
    kept = (out / "public.jsonl").read_text()
    assert "private" not in kept
    assert "/home" not in kept
    assert '"client_cpu_ms":0.12346' in kept
    assert '"protocol":{}' in kept
    first = {path.name: path.read_bytes() for path in out.iterdir()}
    text = first["README.md"].decode()
    assert "0.5 of 2 cores" in text
    assert "2.00 times as many" in text
    assert "weaviate" in text
    assert "thing.so" in text
    for picture in re.findall(r"\]\(([\w-]+\.svg)\)", text):
        ET.fromstring(first[picture])
    assert len(re.findall(r"\.svg\)", text)) >= 4
    (out / "of-an-older-run.svg").write_text("x")
    publish.publish([], out, None)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == first
    with pytest.raises(ConfigError, match="no results"):
        publish.publish([], tmp_path / "empty", None)


def test_the_ceiling_of_a_client_is_of_wall_time(tmp_path: Path) -> None:
    """1 / mean latency of an engine that looks into a dictionary is no speed of a client."""
    store = Store(tmp_path / "ceiling")
    store.environment(FACTS)
    for engine, adapter, qps, wall in (
        ("null", "null", 900_000.0, 80_000.0), ("fast", "numpy", 70_000.0, 60_000.0),
    ):  # fmt: skip
        point = Point("query", engine, adapter, "1", **DATA)  # type: ignore[arg-type]
        metrics = {"recall": 1.0, "recall_ids": 1.0, "qps": qps, "qps_wall": wall, "p50_ms": 0.1,
                   "p95_ms": 0.1, "p99_ms": 0.1, "queries": 10.0}  # fmt: skip
        store.add(Result(point, 0, OK, metrics=metrics, environment="e1", host="h"))
    said = report.make([tmp_path / "ceiling"], report.Options(), tmp_path / "page.html")
    assert "80,000 QPS of 1" in said
    line = next(one for one in said.splitlines() if "fast " in one and "75.0%" in one)
    assert "near the client's ceiling" in line


def test_notes_stand_on_both_pages(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "docs" / "results"
    publish.publish([run], out, None)
    (out / "notes.txt").write_text("Those of weaviate are left out.\n")
    publish.publish([], out, None)
    for name in ("README.md", "filters.md"):
        assert "\nThose of weaviate are left out.\n\n" in (out / name).read_text()


def test_the_chart_and_table_of_a_readme(run: Path, tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text("before\n")
    with pytest.raises(ConfigError, match="has no lines"):
        publish.publish([run], tmp_path / "docs" / "results", readme)
    readme.write_text(f"before\n{publish.BEGIN}\nold\n{publish.END}\nafter\n")
    for _ in range(2):
        publish.publish([run], tmp_path / "docs" / "results", readme)
    text = readme.read_text()
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert "old" not in text
    assert "| searches per second | 250 | 500 |" in text
    assert "](docs/results/chart.svg)" in text
    ET.fromstring((tmp_path / "docs" / "results" / "chart.svg").read_text())


def test_the_table_of_a_readme_is_of_the_set_in_which_most_engines_reach_the_recall(
    tmp_path: Path,
) -> None:
    store = Store(tmp_path / "both")
    store.environment(FACTS)
    for result in made():
        first = replace(result.point, dataset="first-8-euclidean")
        low = result.point.engine == "pgvector_hnsw" and "recall" in result.metrics
        metrics = {**result.metrics, **({"recall": 0.923} if low else {}), "others_cores": 1.9}
        store.add(replace(result, point=first, metrics=metrics))
    readme = tmp_path / "README.md"
    readme.write_text(f"{publish.BEGIN}\n{publish.END}\n")
    publish.publish([tmp_path / "both"], tmp_path / "docs", readme)
    text = readme.read_text()
    assert "first-8-euclidean (500 rows)." in text
    assert "| searches per second | - | 500 |" in text
    assert "| at a recall of | not reached (0.923 at most) | 0.970 |" in text
    for result in made():
        store.add(result)
    publish.publish([tmp_path / "both"], tmp_path / "docs", readme)
    text = readme.read_text()
    assert "d-8-euclidean (500 rows)." in text
    assert "first" not in text
    assert "| searches per second | 250 | 500 |" in text
    assert "1.9" not in text


def test_one_shape_and_color_an_engine_in_all_charts() -> None:
    looks = {(charts.look(i)["color"], charts.look(i)["marker"]) for i in range(30)}
    assert len(looks) == 30
    rows = rows_of(made())
    drawn = drawings.of(rows)
    color = charts.look(1)["color"]  # of the second engine, pgvector_hnsw
    for chart in drawn:
        root = ET.fromstring(chart.svg)
        assert root.get("role") == "img"
        assert len(root.get("aria-label") or "") > 20
        assert "#010203" not in chart.svg
        assert "currentColor" in chart.svg
        for group in root.iter("{http://www.w3.org/2000/svg}g"):
            says = group.find("{http://www.w3.org/2000/svg}title")
            if says is not None and (says.text or "").startswith("pgvector_hnsw"):
                assert color in ET.tostring(group, "unicode")
    titles = " ".join(chart.title for chart in drawn)
    assert "Shares and correlation" in titles
    assert "shared_buffers at 64 MB" in titles
    assert "Memory, 1 client" in titles


def test_a_chart_says_at_least_and_names_who_does_not_reach_it() -> None:
    low = [replace(r, metrics={**r.metrics, "recall": 0.94}) if r.engine == "redis" else r
           for r in rows_of(made())]  # fmt: skip
    latency = next(c for c in drawings.of(low) if c.title.startswith("Latency"))
    assert "at least 0.95" in latency.title
    assert "Not reached by: redis." in latency.caption
    assert "redis" not in latency.svg


def test_a_recall_is_reached_at_every_tier_that_a_chart_shows() -> None:
    """The fastest search of the best tier may have less recall at another one."""

    def row(tier: str, ef: int, recall: float, qps: float) -> Row:
        metrics = {"recall": recall, "recall_ids": recall, "qps": qps, "p50_ms": 1.0, "p99_ms": 2.0}
        return Row("quiver_graph", metrics, dataset="d", query={"ef_search": ef}, tier=tier)

    rows = [
        row("8:64", 10, 0.94, 80.0), row("8:64", 40, 0.97, 50.0), row("40:64", 10, 0.93, 90.0),
        row("40:64", 40, 0.94, 60.0), row("128:512", 10, 0.96, 900.0),
        row("128:512", 40, 0.97, 400.0),
    ]  # fmt: skip
    assert [(r.tier, r.query["ef_search"]) for r in like_edb.reaching(rows, 0.95)] == [
        ("8:64", 40), ("128:512", 10),
    ]  # fmt: skip
    curve = like_edb.memory_curves(rows, 0.95)["quiver_graph"]
    assert [(d.x, d.y) for d in curve] == [(64.0, 50.0), (512.0, 900.0)]
    table = like_edb.buffers_table(rows)
    assert table is not None
    assert [(line[1], line[5]) for line in table.rows] == [("8 MB", "50")]


def test_points_below_the_recall_are_hollow() -> None:
    some = {"a": [Dot(0.1, 1.0, "x", hollow=True)]}
    hollow = charts.panels("t", "x", "y", {"p": some}, {"a": 0}, "alt").svg
    full = charts.panels("t", "x", "y", {"p": {"a": [Dot(0.1, 1.0, "x")]}}, {"a": 0}, "alt").svg
    assert "fill-opacity: 0" in hollow
    assert "fill-opacity: 0" not in full


def test_a_page_is_for_dark_mode_and_print(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    text = report.make([run], report.Options(), out)
    markup = out.read_text()
    assert "prefers-color-scheme: dark" in markup
    assert "@media print" in markup
    assert markup.index("0.5 of 2 cores") < markup.index("<h2>")
    assert text.startswith("The machine was shared")
    assert markup.index("Summary") < markup.index("<figure>") < markup.index("<h2>Tables")


def test_the_edb_report_has_its_curve_of_shared_buffers(run: Path, tmp_path: Path) -> None:
    text = report.make([run], report.Options(like="edb"), tmp_path / "page.html")
    assert "shared_buffers at a fixed memory, recall >= 0.95" in text
    lines = [line for line in text.splitlines() if "64 MB" in line and "quiver_graph" in line]
    assert any("16 MB" in line and "160" in line for line in lines)
    assert "quiver_graph: 2.00x between its best and its worst" in text


def test_shared_buffers_without_a_tier_are_those_of_the_server() -> None:
    said = {"quiver_graph": {"shared_buffers": "3013MB", "jit": "off"}, "redis": {"threads": 1}}
    found = [
        replace(r, settings=said.get(r.point.engine, {})) if r.point.workload == "build" else r
        for r in made() if not r.point.tier
    ]  # fmt: skip
    tables = like_edb.edb(rows_of(found), "pgvector_hnsw")
    best = next(t for t in tables if "best results" in t.title)
    buffers = {row[0]: row[-1] for row in best.rows}
    assert buffers == {"quiver_graph": "3,013 MB", "pgvector_hnsw": "", "redis": "", "faiss": ""}
    sweep = next(t for t in tables if ": quiver_graph" in t.title)
    assert sweep.rows[0][:2] == ("no limit", "3,013 MB")


def test_text_of_the_page_has_at_most_a_hundred_columns(run: Path, tmp_path: Path) -> None:
    publish.publish([run], tmp_path / "docs" / "results", None)
    for path in (tmp_path / "docs" / "results").glob("*.md"):
        for line in path.read_text().splitlines():
            assert len(line) <= 100 or line.startswith(("|", "    ", "#")), line


def test_a_failed_engine_is_no_cell() -> None:
    row = Row(
        "quiver_graph", {"recall": 0.97, "qps": 5.0}, dataset="d", status=FAILED, adapter="quiver"
    )
    assert summary.cells([row], (0.95,)) == []


def test_kept_lines_are_results_again(run: Path) -> None:
    lines = [json.loads(line) for line in publish.kept(run).splitlines()]
    assert sum(line["kind"] == "environment" for line in lines) == 1
    assert sum(line["kind"] == "result" for line in lines) == len(made())
