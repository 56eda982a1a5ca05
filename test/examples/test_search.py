"""The example of examples/search: load, search from Python and from Node, and the page.

tools/examples.sh runs it: the PG* variables name a server with an empty database,
EXAMPLE_HOME a copy of the example with its packages, EXAMPLE_NODE and EXAMPLE_CHROMIUM
the two programs, empty where there is none.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import unittest
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import psycopg

HOME = Path(os.environ["EXAMPLE_HOME"])
NODE = os.environ.get("EXAMPLE_NODE", "")
CHROMIUM = os.environ.get("EXAMPLE_CHROMIUM", "")
PROGRAMS = 6000
QUERY = "play chess against the computer"
LINE = re.compile(r"^  (-?\d+\.\d{3})  (\S+): (.+)$")


def run(*command: str) -> str:
    result = subprocess.run(
        command, cwd=HOME, capture_output=True, text=True, check=False, timeout=900
    )
    if result.returncode != 0:
        raise AssertionError(f"{command[1:]} fails:\n{result.stdout}{result.stderr}")
    return result.stdout


def connect() -> psycopg.Connection:
    return psycopg.connect(options="-c search_path=packages,public", autocommit=True)


def parts(output: str) -> dict[str, list[tuple[str, str]]]:
    """What a program printed: a title without its time, then (number, name) of each row."""
    found: dict[str, list[tuple[str, str]]] = {}
    for line in output.splitlines():
        match = LINE.match(line)
        if match:
            found[list(found)[-1]].append((match[1], match[2]))
        else:
            title = re.fullmatch(r"(.*) \(\d+\.\d ms\)", line)
            if title is None:
                raise AssertionError(f"unexpected line: {line}")
            found[title[1]] = []
    return found


class Search(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        said = run(sys.executable, "load.py", "--limit", str(PROGRAMS))
        match = re.match(r"(\d+) packages, (\d+) words, ", said)
        assert match, said
        cls.loaded = int(match[1])

    def test_loaded(self) -> None:
        self.assertGreater(self.loaded, 1000)
        self.assertLessEqual(self.loaded, PROGRAMS)
        with connect() as connection:
            rows, vectors, lengths = connection.execute(
                "SELECT count(*), count(embedding), avg(vector_norm(embedding)) FROM package"
            ).fetchone()
            checked = connection.execute(
                "SELECT quiver_check('package_embedding_idx')"
            ).fetchone()[0]
        self.assertEqual(rows, self.loaded)
        self.assertGreater(vectors, rows * 0.95)
        self.assertAlmostEqual(lengths, 1, places=4)
        self.assertEqual(checked, vectors)

    def test_texts_are_near_themselves(self) -> None:
        """A summary's vector, made in SQL, is near that of the program it is of."""
        with connect() as connection:
            first = connection.execute(
                """
                SELECT count(*) FILTER (WHERE place <= 10), count(*) FROM (
                    SELECT (SELECT count(*) FROM package o
                            WHERE o.embedding <=> embed(p.summary) <= p.embedding <=> embed(p.summary))
                            AS place
                    FROM package p WHERE id % 60 = 0 AND embed(p.summary) IS NOT NULL
                        AND embedding IS NOT NULL) q
                """
            ).fetchone()
        self.assertGreater(first[0], first[1] * 0.8)

    def test_unknown_words(self) -> None:
        with connect() as connection:
            self.assertIsNone(connection.execute("SELECT embed('zzxqy')").fetchone()[0])
        found = parts(run(sys.executable, "search.py", "zzxqy"))
        self.assertEqual(list(found.values()), [[], [], []])

    def test_python(self) -> None:
        found = parts(run(sys.executable, "search.py", QUERY))
        self.assertEqual(list(found), ["nearest", "nearest in section games", "hybrid"])
        for rows in found.values():
            self.assertEqual(len(rows), 5)
        # the nearest rows of an exact scan, but for one that the index may miss
        with connect() as connection:
            connection.execute("SET enable_indexscan = off")
            for title, condition in (("nearest", "true"), ("nearest in section games", "section = 'games'")):
                exact = connection.execute(
                    f"SELECT name FROM package WHERE {condition} ORDER BY embedding <=> embed(%s) LIMIT 5",
                    [QUERY],
                ).fetchall()
                got = {name for _, name in found[title]}
                self.assertGreaterEqual(len(got & {name for (name,) in exact}), 4, title)
            texts = dict(connection.execute("SELECT name, tags || summary FROM package").fetchall())
            sections = dict(connection.execute("SELECT name, section FROM package").fetchall())
        distances = [float(number) for number, _ in found["nearest"]]
        self.assertEqual(distances, sorted(distances))
        self.assertEqual({sections[name] for _, name in found["nearest in section games"]}, {"games"})
        chess = [name for _, name in found["nearest"] if "chess" in texts[name].lower()]
        self.assertGreaterEqual(len(chess), 3, found["nearest"])

    def test_hybrid(self) -> None:
        """A program that both ways find is above those that one finds."""
        with connect() as connection:
            connection.execute("SET enable_indexscan = off")
            near = {n for (n,) in connection.execute(
                "SELECT name FROM package ORDER BY embedding <=> embed('chess') LIMIT 50")}
            words = {n for (n,) in connection.execute(
                "SELECT name FROM package WHERE words @@ to_tsquery('english', 'chess')")}
            scores = connection.execute("SELECT name, score FROM hybrid('chess', 200)").fetchall()
        both = near & words
        self.assertTrue(both)
        names = [name for name, _ in scores]
        self.assertLessEqual(set(names), near | words)
        first = names[: len(both)]
        self.assertGreaterEqual(len(set(first) & both), len(both) - 1)
        self.assertEqual([s for _, s in scores], sorted((s for _, s in scores), reverse=True))
        self.assertLessEqual(scores[0][1], 2 / 61)

    def test_index_is_used(self) -> None:
        with connect() as connection:
            connection.execute("SET enable_seqscan = off")
            plan = connection.execute(
                "EXPLAIN SELECT name FROM package ORDER BY embedding <=> embed('chess') LIMIT 5"
            ).fetchall()
        self.assertIn("package_embedding_idx", str(plan))

    def test_node_finds_the_same(self) -> None:
        if not NODE:
            self.skipTest("there is no node")
        for words in ([QUERY], ["edit photos", "graphics"]):
            python = [words[0], *(f"--section={section}" for section in words[1:])]
            self.assertEqual(
                parts(run(NODE, "search.mjs", *words)),
                parts(run(sys.executable, "search.py", *python)),
            )

    def test_short(self) -> None:
        for name in ("load.py", "search.py", "search.mjs", "web.py", "web.html"):
            self.assertLess(len((HOME / name).read_text().splitlines()), 100, name)


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        with connect() as connection:
            if connection.execute("SELECT to_regclass('packages.package')").fetchone()[0] is None:
                run(sys.executable, "load.py", "--limit", str(PROGRAMS))
        cls.server = subprocess.Popen(
            [sys.executable, "web.py", "--port", "0"], cwd=HOME, stdout=subprocess.PIPE, text=True
        )
        cls.address = cls.server.stdout.readline().strip()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.server.terminate()
        cls.server.wait(timeout=20)
        cls.server.stdout.close()

    def get(self, path: str) -> bytes:
        with urllib.request.urlopen(self.address + path, timeout=60) as response:
            return response.read()

    def test_answers(self) -> None:
        found = json.loads(self.get("search?" + urllib.parse.urlencode({"query": QUERY})))
        self.assertEqual(list(found), ["vectors", "words", "both"])
        printed = parts(run(sys.executable, "search.py", QUERY))
        for way, title in (("vectors", "nearest"), ("both", "hybrid")):
            self.assertEqual([row[0] for row in found[way]["rows"]], [name for _, name in printed[title]])
        for way in found.values():
            self.assertRegex(way["plan"], r"Execution Time: [\d.]+ ms")
            self.assertGreater(way["ms"], 0)
        self.assertIn("games", json.loads(self.get("sections")))

    def test_bad_requests(self) -> None:
        with self.assertRaises(urllib.error.HTTPError) as caught:
            self.get("nothing")
        self.assertEqual(caught.exception.code, 404)
        caught.exception.close()
        with self.assertRaises(urllib.error.HTTPError) as caught:
            self.get("search?query=a%00b")
        self.assertEqual(caught.exception.code, 500)
        self.assertIn("error", json.loads(caught.exception.read()))
        caught.exception.close()
        self.assertEqual(json.loads(self.get("search?query="))["vectors"]["rows"], [])

    def test_browser(self) -> None:
        if not NODE or not CHROMIUM:
            self.skipTest("there is no chromium or no node")
        picture = os.environ.get("EXAMPLE_SCREENSHOT", "")
        run(NODE, str(HOME / "test_web.mjs"), self.address, CHROMIUM, picture)


if __name__ == "__main__":
    unittest.main()
