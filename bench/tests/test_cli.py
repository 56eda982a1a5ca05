"""The command line: what is a wrong argument, what cannot be done, and what it exits with."""

from __future__ import annotations

import io
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from quiver_bench import cli, config, registry
from quiver_bench.console import command
from quiver_bench.engines import ADAPTERS
from quiver_bench.run import Progress


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Outside any checkout, with an empty cache."""
    for name in ("QUIVER_TOP", "QUIVER_DATA", "QUIVER_BENCH_COMMAND"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    "arguments",
    [
        "run nosuch",
        "run quick --only nosuch",
        "run quick --only null --data nosuch",
        "report nosuch",
        "gate a --baseline b --max qps",
        "data get nosuch",
    ],
)
def test_wrong_names_are_usage(arguments: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(arguments.split()) == cli.USAGE
    assert capsys.readouterr().err.startswith("error: ")


@pytest.mark.parametrize("option", ["--rows", "--reps", "--queries"])
def test_numbers_begin_with_one(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["run", "quick", option, "0"])
    assert ended.value.code == cli.USAGE
    assert "invalid positive number value: '0'" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    for arguments in (
        ["run", "quick", "--only", "null", "--out", "file/folder"],
        ["data", "make", "--rows", "200", "--dim", "4", "--out", "file/x.hdf5"],
    ):
        assert cli.main(arguments) == cli.INVALID
        said = capsys.readouterr().err
        assert said.startswith("error: ")
        assert said.count("\n") == 1


def test_a_reader_that_goes_away_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

        def fileno(self) -> int:
            return descriptor

    with open("output", "w") as file:
        descriptor = file.fileno()
        monkeypatch.setattr("sys.stdout", Gone())
        assert cli.main(["suites"]) == 141


def test_what_is_made_can_be_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["data", "make", "--rows", "200", "--dim", "4", "--queries", "5"]) == cli.OK
    assert "--data synthetic-200-4-angular" in capsys.readouterr().out
    assert cli.main(["data", "list"]) == cli.OK
    assert "also here: synthetic-200-4-angular" in capsys.readouterr().out
    for wrong in ("1", "-0.1"):
        assert cli.main(["data", "make", "--rows", "200", "--mean-cos", wrong]) == cli.INVALID


def test_data_are_wanted_before_servers_are_built(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def download(*_: Any) -> Path:
        raise registry.DataError("no network")

    monkeypatch.setattr(registry, "download", download)
    assert cli.main(["run", "quick"]) == cli.INVALID
    said = capsys.readouterr()
    assert "needs a checkout" not in said.out  # no engine was started
    assert "set QUIVER_DATA" in said.err


def test_a_run_without_any_engine_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Outside of a checkout Quiver cannot be built. Earlier results stay."""
    monkeypatch.setattr("quiver_bench.run.Runner.sets", lambda _: [])
    kept = tmp_path / "out" / "results.jsonl"
    kept.parent.mkdir()
    kept.write_text('{"schema": 1, "kind": "environment", "id": "before"}\n')
    run = ["run", "quick", "--only", "quiver_graph", "--out", str(kept.parent), "--fresh"]
    assert cli.main(run) == cli.INVALID
    said = capsys.readouterr().err
    assert "there is nothing to measure: quiver_graph: needs a checkout of Quiver" in said
    assert "before" in kept.read_text()


def test_an_interrupted_fresh_run_says_how_to_go_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("quiver_bench.run.Runner.run", interrupted)
    assert cli.main(["run", "quick", "--fresh"]) == 130
    assert "run the same again without --fresh to go on" in capsys.readouterr().err
    assert cli.main(["run", "quick"]) == 130
    assert "run the same again to go on" in capsys.readouterr().err


def test_the_script_of_a_checkout_says_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    assert command() == "quiver-bench"
    monkeypatch.setenv("QUIVER_BENCH_COMMAND", "bench/quiver-bench")
    assert command() == "bench/quiver-bench"


def test_the_time_left_is_of_what_is_measured_now(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of 100 points an earlier run has measured 90; each of the others takes 10 s."""
    clock = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    progress = Progress([("query", i < 90) for i in range(100)])
    progress.done = 90
    clock[0] = 10.0
    progress.line("one", "query")
    assert "[91/100, 2 min left] one" in capsys.readouterr().out  # 9 x 10 s
    progress.skip("query")
    clock[0] = 20.0
    progress.line("two", "query")
    assert "[93/100, 70 s left] two" in capsys.readouterr().out


def test_builds_do_not_count_for_the_time_of_searches(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two builds of 800 s, then 250 searches of 4 s."""
    clock = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    progress = Progress([("build", False)] * 2 + [("query", False)] * 250)
    for _ in range(2):
        clock[0] += 800.0
        progress.line("built", "build")
    clock[0] += 4.0
    progress.line("searched", "query")
    said = capsys.readouterr().out.splitlines()
    assert said == ["  [1/252] built", "  [2/252] built", "  [3/252, 17 min left] searched"]


def test_the_script_lists_suites_and_engines_without_its_environment(tmp_path: Path) -> None:
    bench = Path(__file__).resolve().parents[1]
    copy = tmp_path / "checkout" / "bench"
    shutil.copytree(bench / "src/quiver_bench/suites", copy / "src/quiver_bench/suites")
    (copy / "src/quiver_bench/engines").mkdir()
    shutil.copy(bench / "src/quiver_bench/engines/__init__.py", copy / "src/quiver_bench/engines")
    shutil.copy(bench / "quiver-bench", copy)

    def listed(what: str) -> list[str]:
        shown = subprocess.run(
            [copy / "quiver-bench", what], capture_output=True, text=True, check=True
        )
        return shown.stdout.splitlines()

    wanted = [f"  {name:<12} {config.read(name).about}" for name in config.names()]
    assert listed("suites") == wanted
    assert [line.strip() for line in listed("engines")[1:-1]] == list(ADAPTERS)
    assert not (tmp_path / "checkout" / ".quiver").exists()
