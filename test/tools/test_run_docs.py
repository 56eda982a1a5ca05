"""tools/run_docs finds what it is there to find: on pages, and on a server."""

from __future__ import annotations

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]

# A server of PostgreSQL's alone, in a folder of its own.
SERVER = """
set -euo pipefail
tools=$1 qv_top=$2
. "$tools/private_pg.sh"
qv_init
if [ -z "${PG_CONFIG:-}" ]; then qv_find_pg_config || exit 77; fi
qv_version=$("$PG_CONFIG" --version | sed 's/^PostgreSQL //')
qv_make_home
qv_bin=$("$PG_CONFIG" --bindir)
qv_%s >&2 9>&-
echo "$qv_bin $qv_socket"
"""


class Pages(unittest.TestCase):
    """A checkout of a few pages, and what is said of it."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.top = Path(folder.name).resolve()
        self.write({"README.md": "# A page\n", "docs/other.md": "# Other\n\n## A `b` (c)\n\n## Twice\n\n## Twice\n"})

    def write(self, files: dict[str, str]) -> None:
        for name, text in files.items():
            (self.top / name).parent.mkdir(parents=True, exist_ok=True)
            (self.top / name).write_text(text)

    def complaints(self, text: str, *options: str, environment: dict[str, str] | None = None) -> list[str]:
        """The lines about a page of this text but for the last; the status must fit them."""
        self.write({"README.md": text})
        run = subprocess.run(
            [TOP / "tools" / "run_docs", "--top", self.top, *options],
            capture_output=True,
            text=True,
            env={**os.environ, **(environment or {})},
        )
        self.assertEqual(run.stderr, "")
        lines = run.stdout.splitlines()
        self.assertEqual(run.returncode, 0 if lines[-1].endswith(": 0 wrong") else 1, run.stdout)
        self.last = lines[-1]
        return lines[:-1]


class Links(Pages):
    def test_good(self) -> None:
        text = (
            "# One\n\n[a](docs/other.md), [b](docs/other.md#a-b-c), [c](docs/other.md#twice-1), [d](#one),\n"
            "[e](docs), [f](https://example.org/x_(y)#z), `[code](nowhere)`, <mailto:a@example.org>, [g][g]\n\n"
            "[g]: docs/other.md\n\n```sh\necho '[no](link)'\n```\n"
        )
        self.assertEqual(self.complaints(text), [])
        self.assertTrue(self.last.startswith("8 links of 2 pages, 1 programs"), self.last)

    def test_bad(self) -> None:
        links = {
            "[a](gone.md)": "no such file: gone.md",
            "[a](docs/other.md#gone)": "no such heading: docs/other.md#gone",
            "[a](docs/other.md#twice-2)": "no such heading: docs/other.md#twice-2",
            "[a](#gone)": "no such heading: #gone",
            "[![a](gone.svg)](docs/other.md)": "no such file: gone.svg",
            '<img src="gone.svg">': "no such file: gone.svg",
            "[a](../outside.md)": "no such file: ../outside.md",
            "[a](/docs/other.md)": "not a relative link: '/docs/other.md'",
            "[a](https://nowhere)": "not an address: https://nowhere",
            "[a][gone]": "reference that is not defined: [gone]",
        }
        for link, complaint in links.items():
            with self.subTest(link):
                self.assertEqual(self.complaints(f"# One\n\n{link}\n"), [f"README.md:3: {complaint}"])

    def test_headings(self) -> None:
        self.assertEqual(self.complaints("# One\n\n## Two\n\n### Three\n\n## Four\n\n```sh\n#### no\n```\n"), [])
        self.assertEqual(
            self.complaints("# One\n\n### Three\n\n#### Four\n"),
            ["README.md:3: heading of level 3 below one of level 1"],
        )

    def test_blocks(self) -> None:
        pages = {
            "```sh\nif true\n```\n": "syntax error",
            "```python\na = 1\nif a\n```\n": "README.md:3: Python: ",
            "```sql\nSELECT 1;\n": "the block does not end",
            "```sql\nSELECT 1\n```\n": "the last statement has no end",
            "<!-- not run: -->\n```sql\nSELECT 1;\n```\n": "says nothing",
            "<!-- nut run: why -->\n```sql\nSELECT 1;\n```\n": "unknown comment",
            "<!-- fails -->\nText.\n": "a comment that no block follows",
            "```text\n1\n```\n": "text that no SQL block is before",
        }
        for text, complaint in pages.items():
            with self.subTest(text):
                found = self.complaints(text)
                self.assertEqual([complaint in line for line in found if "README.md" in line], [True], found)


class Answers(Pages):
    """With a server."""

    environment: dict[str, str]

    @classmethod
    def setUpClass(cls) -> None:
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        os.chmod(folder.name, 0o755)
        cls.home = Path(folder.name).resolve()
        words = cls.server("start 'fsync = off'")
        cls.addClassCleanup(cls.server, "stop")
        cls.psql = f"{words[0]}/psql"
        cls.environment = {"PGHOST": words[1], "PGUSER": "postgres", "PGPORT": "5432"}

    @classmethod
    def server(cls, command: str) -> list[str]:
        run = subprocess.run(
            ["bash", "-c", SERVER % command, "-", TOP / "tools", cls.home], capture_output=True, text=True
        )
        if run.returncode == 77:
            raise unittest.SkipTest("no PostgreSQL")
        if run.returncode != 0:
            raise RuntimeError(run.stdout + run.stderr)
        return run.stdout.split("\n")[-2].split(" ", 1)

    def on_server(self, text: str) -> list[str]:
        return self.complaints(text, "--psql", self.psql, environment=self.environment)

    def test_good(self) -> None:
        found = self.on_server(
            "<!-- setup\nCREATE TABLE t (a int);\n-->\n<!-- replace: THREE => 3 -->\n"
            "```sql\nINSERT INTO t VALUES (1), (THREE);\nSET search_path = public, pg_catalog;\n```\n\n"
            "```sql\nSELECT a FROM t ORDER BY a;\n```\n\n```text\n a\n---\n 1\n 3\n(2 rows)\n```\n\n"
            "- in a list:\n\n  ```sql\n  SHOW search_path \\gx\n  ```\n\n  ```text\n"
            "  -[ RECORD 1 ]-------------------\n  search_path | public, pg_catalog\n  ```\n\n"
            "<!-- fails -->\n```sql\nSELECT 1 / 0;\n```\n\n```text\nERROR:  division by zero\n```\n\n"
            "```sql\nSELECT now(), pi();\n```\n\n<!-- roughly -->\n```text\n"
            "              now              |        pi\n-------------+----\n"
            " 2025-01-02 03:04:05.678901+00 | 1.5\n(1 row)\n```\n\n"
            "```sql\nSELECT * FROM generate_series(1, 4);\n```\n\n<!-- roughly -->\n```text\n"
            " generate_series\n---\n...\n 7\n(3 rows)\n```\n\n"
            "<!-- in: one two -->\n```sql\nCREATE TABLE t (b int);\n```\n\n"
            "<!-- run -->\n```sh\npsql -c 'INSERT INTO t VALUES (4)'\n```\n\n"
            "```sql\nSELECT count(*) FROM t \\g (format=unaligned tuples_only)\n```\n\n```text\n3\n```\n\n"
            "<!-- not run: needs a second machine -->\n```sql\nSELECT nothing();\n```\n\n"
            "<!-- needs: nothing_of_this_name -->\n```sql\nSELECT 1 / 0;\n```\n"
        )
        self.assertEqual(
            [line.split(": ", 1)[1] for line in found if ": " in line],
            ["not run: needs a second machine", "not run: no nothing_of_this_name"],
        )
        self.assertIn("9 SQL blocks run, 6 answers compared, 2 not run", self.last)

    def test_bad(self) -> None:
        query = "```sql\nSELECT 41 + 1 AS a;\n```\n\n"
        pages = {
            "```sql\nSELECT 1;\nSELECT nothing();\n```\n": (2, "line 2: ERROR:  function nothing() does not exist"),
            "```sql\nSELECT 'open;\n```\n": (2, "unterminated quoted string"),
            query + "```text\n a\n----\n 43\n(1 row)\n```\n": (6, "another answer"),
            query + "<!-- roughly -->\n```text\n b\n----\n 43\n(1 row)\n```\n": (7, "another answer"),
            query + "<!-- roughly -->\n```text\n a\n---\n...\n b\n```\n": (7, "another answer"),
            "<!-- fails -->\n" + query: (3, "no error"),
            "<!-- in: one -->\n```sql\nSELECT nothing();\n```\n": (3, "one: line 1: ERROR"),
            query + "<!-- run -->\n```sh\nfalse\n```\n": (7, ""),
            "<!-- setup\nSELECT nothing();\n-->\n": (1, "nothing()"),
        }
        for text, (line, complaint) in pages.items():
            with self.subTest(text):
                found = self.on_server(text)
                self.assertTrue(found[0].startswith(f"README.md:{line}: "), found)
                self.assertIn(complaint, "\n".join(found))
                self.assertTrue(found[-2 if "docs/" in found[-1] else -1].startswith("FAILED"), found)

    def test_blocks_follow_each_other(self) -> None:
        """A page stops at its first failure, and leaves no database."""
        found = self.on_server("```sql\nSELECT nothing();\n```\n\n```sql\nSELECT nothing_either();\n```\n")
        self.assertNotIn("nothing_either", "\n".join(found))
        left = subprocess.run(
            [self.psql, "-XAtc", "SELECT count(*) FROM pg_database WHERE datname LIKE 'docs%'", "postgres"],
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
        )
        self.assertEqual(left.stdout, "0\n")


if __name__ == "__main__":
    unittest.main()
