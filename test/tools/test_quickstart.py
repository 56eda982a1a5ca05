"""./quickstart: arguments, data that is not there, and which server it starts and stops.

The script runs in a copy, with programs in the place of PostgreSQL's and Python that write
down how they are called.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
REQUIREMENTS = Path("bench/src/quiver_bench/quickstart/requirements.txt")

# Nothing is installed or built.
INSTEAD = """
qv_need_packages() { PG_CONFIG=$qv_top/pg_config qv_version=15.0; echo packages >>"$qv_top/calls"; }
qv_stage() { :; }
qv_build() { :; }
qv_install() { :; }
qv_build_id() { echo 1; }
"""
PG_CONFIG = "#!/bin/sh\necho /bin\n"
INITDB = '#!/bin/sh\necho 15 >"$2/PG_VERSION"\n'
PG_CTL = """#!/bin/sh
data=$2
for action; do :; done
case $action in
	status) [ -f "$data/postmaster.pid" ] ;;
	start) touch "$data/postmaster.pid" ;;
	stop) rm "$data/postmaster.pid" ;;
esac || exit 3
[ "$action" = status ] || echo "$action" >>"$data/calls"
"""
PYTHON = """#!/bin/sh
case "$*" in
	*--check*) echo "check ${*##*--build-id 1}" >>"$CALLS"; exit "${CHECK:-0}" ;;
	*) echo "run ${*##*--build-id 1}" >>"$CALLS"; exit "${RUN:-0}" ;;
esac
"""


class Quickstart(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.folder.chmod(0o755)
        self.top = self.folder / "a checkout"
        (self.top / "tools").mkdir(parents=True)
        shutil.copy(TOP / "quickstart", self.top)
        original = (TOP / "tools" / "private_pg.sh").read_text()
        (self.top / "tools" / "private_pg.sh").write_text(original + INSTEAD)
        (self.top / REQUIREMENTS).parent.mkdir(parents=True)
        shutil.copy(TOP / REQUIREMENTS, self.top / REQUIREMENTS)
        self.program(self.top / "pg_config", PG_CONFIG)
        self.home = self.top / ".quiver"
        self.calls = self.top / "calls"

    def program(self, path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def installed(self) -> None:
        """What a first run has made."""
        for name, text in {"initdb": INITDB, "pg_ctl": PG_CTL, "postgres": PG_CTL}.items():
            self.program(self.home / "pg" / "bin" / name, text)
        self.program(self.home / "venv" / "bin" / "python", PYTHON)
        version = subprocess.run(
            [sys.executable, "--version"], capture_output=True, text=True, check=True
        ).stdout
        made = version + (TOP / REQUIREMENTS).read_text()
        (self.home / "venv" / ".made").write_text(made.rstrip("\n") + "\n")

    def environment(self, **more: str) -> dict[str, str]:
        """That of the test, in which the Python that runs this is the first one found."""
        path = self.folder / "path"
        if not path.exists():
            self.program(path / "python3", f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        given = {k: v for k, v in os.environ.items() if k not in ("QUIVER_DATA", "SUDO_USER")}
        return {**given, "PATH": f"{path}:{given['PATH']}", "CALLS": str(self.calls), **more}

    def run_it(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.top / "quickstart", *arguments], capture_output=True, text=True, timeout=60,
            env=self.environment(**environment), cwd=self.folder,
        )  # fmt: skip

    def called(self) -> list[str]:
        """What the script called, in order; then what the server was told."""
        server = self.home / "data" / "calls"
        return [
            " ".join(line.split())
            for path in (self.calls, server)
            if path.exists()
            for line in path.read_text().splitlines()
        ]

    def assert_refused(self, said: str, *arguments: str, **environment: str) -> None:
        run = self.run_it(*arguments, **environment)
        self.assertEqual(run.returncode, 1, run.stdout + run.stderr)
        self.assertIn(said, run.stderr)
        self.assertEqual(self.called(), [])

    def test_help_names_what_there_is(self) -> None:
        run = self.run_it("--help")
        self.assertEqual(run.returncode, 0)
        for word in ("psql", "start", "stop", "clean", "--rows", "--scale", "--dimensions"):
            self.assertIn(f"{word} ", run.stdout)
        for name in ("QUIVER_DATA", "PG_CONFIG"):
            self.assertIn(f"\n  {name} ", run.stdout)

    def test_wrong_arguments(self) -> None:
        for said, arguments in {
            "unknown argument: --row": "--row 5000",
            "unknown argument: begin": "begin",
            "--rows takes a number": "--rows",
            "--rows takes a number from 1000": "--rows 999",
            "--rows takes a number from 1000 to": "--rows=00000",
            "--scale takes a number from 1000 to 100000000": "--scale 1e6",
            "--scale takes a number from": "--scale 99999999999999999999",
            "--scale is given twice": "--scale 1000 --scale=2000",
            "--dimensions takes a number from 8 to 1900": "--scale 1000 --dimensions 2000",
            "--dimensions goes with --scale": "--dimensions 64",
            "exclude each other": "--rows 1000 --scale 1000",
            "start takes no arguments": "start 1",
            "stop takes no arguments": "stop now",
        }.items():
            with self.subTest(arguments):
                self.assert_refused(said, *arguments.split())
        self.assertFalse(self.home.exists())

    def test_env_leaves_programs_of_the_system_first(self) -> None:
        self.installed()
        self.assertEqual(self.run_it().returncode, 0)
        for folder in (self.folder / "path", self.home / "pg" / "bin"):
            self.program(folder / "pg_config", PG_CONFIG)
        self.program(self.home / "pg" / "bin" / "only_there", PG_CONFIG)
        found = subprocess.run(
            ["bash", "-c", 'eval "$("$0" env)" && command -v pg_config only_there', self.top / "quickstart"],
            capture_output=True, text=True, env=self.environment(),
        )  # fmt: skip
        folders = [Path(line).parent for line in found.stdout.splitlines()]
        self.assertEqual(folders, [self.folder / "path", self.home / "pg" / "bin"], found.stderr)

    def test_what_a_user_makes_is_no_source(self) -> None:
        made = ("venv/pyvenv.cfg", "node_modules/pg/index.js", "__pycache__/notes.pyc")
        for name in ("notes.py", *made):
            path = self.top / "examples" / "embeddings" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        sources = subprocess.run(
            ["bash", "-c", '. "$0/tools/private_pg.sh"; qv_top=$0; qv_sources', self.top],
            capture_output=True, text=True, check=True,
        ).stdout.split("\n")  # fmt: skip
        self.assertEqual([s for s in sources if s.startswith("examples")], ["examples/embeddings/notes.py"])

    def test_arguments_arrive(self) -> None:
        self.installed()
        for given, arrived in {
            "": "",
            "--rows 02000": "--rows 2000",
            "--scale=1000000": "--scale 1000000",
            "--dimensions 64 --scale 5000": "--dimensions 64 --scale 5000",
        }.items():
            with self.subTest(given):
                self.calls.unlink(missing_ok=True)
                run = self.run_it(*given.split())
                self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
                calls = [call.strip() for call in self.called()]
                self.assertIn(f"check --check {arrived}".strip(), calls)
                self.assertIn(f"run {arrived}".strip(), calls)

    def test_data_that_is_not_there(self) -> None:
        missing = self.folder / "no such" / "file.hdf5"
        self.assert_refused(f"there is no file {missing}", QUIVER_DATA=str(missing))
        wanted = self.folder / "fashion-mnist-784-euclidean.hdf5"
        self.assert_refused(f"there is no file {wanted}", QUIVER_DATA=f"{self.folder}/")
        self.assert_refused(
            f"there is no file {self.folder}/x.hdf5", QUIVER_DATA="~/x.hdf5", HOME=str(self.folder)
        )
        self.assertFalse(self.home.exists())

    def test_data_that_is_there(self) -> None:
        self.installed()
        file = self.folder / "fashion-mnist-784-euclidean.hdf5"
        file.write_text("")
        for given in (str(file), str(self.folder), file.name, "packages"):
            with self.subTest(given):
                self.assertEqual(self.run_it(QUIVER_DATA=given).returncode, 0)

    def test_bad_data_starts_no_server(self) -> None:
        self.installed()
        run = self.run_it(CHECK="1")
        self.assertEqual(run.returncode, 1)
        self.assertEqual(self.called(), ["packages", "check --check"])

    def test_a_failure_stops_the_server_it_started(self) -> None:
        self.installed()
        self.assertEqual(self.run_it(RUN="1").returncode, 1)
        self.assertEqual(self.called(), ["packages", "check --check", "run", "start", "stop"])

    def test_a_failure_leaves_the_server_that_ran(self) -> None:
        self.installed()
        self.assertEqual(self.run_it().returncode, 0)
        self.assertEqual(self.run_it(RUN="130").returncode, 130)
        self.assertEqual(self.called()[-1], "start")

    def test_start_and_stop(self) -> None:
        self.installed()
        self.assertEqual(self.run_it().returncode, 0)
        for verb, said, calls in (
            ("start", "running already", ["start"]),
            ("stop", "stop the private server", ["start", "stop"]),
            ("stop", "is not running", ["start", "stop"]),
            ("start", "start the private server", ["start", "stop", "start"]),
        ):
            run = self.run_it(verb)
            self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
            self.assertIn(said, run.stdout)
            self.assertEqual((self.home / "data" / "calls").read_text().split(), calls)
        self.assertIn("shared_buffers = ", (self.home / "data" / "quiver.conf").read_text())
        self.run_it("stop")
        run = self.run_it("psql")
        self.assertEqual(run.returncode, 1)
        self.assertIn("./quickstart start", run.stderr)

    def test_nothing_to_start(self) -> None:
        for verb in ("start", "stop", "psql"):
            with self.subTest(verb):
                self.assert_refused("there is no .quiver/ here: ./quickstart makes it", verb)
        run = self.run_it("clean")
        self.assertEqual(run.returncode, 0)
        self.assertIn("nothing to do", run.stdout)
        self.installed()
        self.assertEqual(self.run_it(CHECK="1").returncode, 1)
        run = self.run_it("start")
        self.assertEqual(run.returncode, 1)
        self.assertIn("no server in .quiver/ to start", run.stderr)

    def test_clean(self) -> None:
        self.installed()
        self.run_it()
        self.assertEqual(self.run_it("clean").returncode, 0)
        self.assertFalse(self.home.exists())
        self.home.symlink_to(self.folder / "gone")
        self.assertEqual(self.run_it("clean").returncode, 0)
        self.assertFalse(self.home.is_symlink())

    def test_one_at_a_time(self) -> None:
        self.installed()
        with (self.top / "quickstart").open() as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            for verb in ("start", "stop", "clean"):
                with self.subTest(verb):
                    self.assert_refused("another ./quickstart is at work", verb)
            waiting = subprocess.Popen(
                [self.top / "quickstart"],
                stdout=subprocess.PIPE, text=True, env=self.environment(),
            )  # fmt: skip
            assert waiting.stdout is not None
            with waiting.stdout:
                said = [waiting.stdout.readline(), waiting.stdout.readline()]
                self.assertIn("waiting for its end", said[1])
                self.assertEqual(self.called(), [])
                fcntl.flock(file, fcntl.LOCK_UN)
                rest = waiting.stdout.read()
        self.assertEqual(waiting.wait(timeout=60), 0, rest)
        self.assertIn("run", self.called())


if __name__ == "__main__":
    unittest.main()
