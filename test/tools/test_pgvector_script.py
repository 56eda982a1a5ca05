"""Scripts that update extension vector from a version of pgvector, and back."""

from __future__ import annotations

import re
import subprocess
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
VERSION = re.search(r"default_version = '(.*)'", (TOP / "vector.control").read_text()).group(1)
INSTALL = TOP / "sql" / f"vector--{VERSION}.sql"
FUNCTION = re.compile(r"^CREATE OR REPLACE FUNCTION (.*?) RETURNS", re.MULTILINE)


def script(way: str, version: str) -> str:
    run = subprocess.run(
        [TOP / "tools" / "pgvector_script", way, version, INSTALL],
        capture_output=True,
        text=True,
        check=True,
    )
    return run.stdout


class PgvectorScript(unittest.TestCase):
    def test_all_functions_come_to_our_library(self) -> None:
        expected = FUNCTION.findall(INSTALL.read_text())
        self.assertGreater(len(expected), 110)
        for version in ("0.5.0", "0.6.2", "0.7.4", "0.8.6"):
            self.assertEqual(FUNCTION.findall(script("in", version)), expected)

    def test_only_what_a_version_lacks(self) -> None:
        old, middle, new = (script("in", version) for version in ("0.6.0", "0.7.4", "0.8.6"))
        for statement, present in (
            ("ALTER TYPE vector SET", (False, False, False)),
            ("DROP OPERATOR - (vector, vector);", (True, False, False)),
            ("CREATE TYPE halfvec (", (True, False, False)),
            ("CREATE CAST (integer[] AS sparsevec)", (True, True, False)),
            ("DEFAULT FOR TYPE vector USING hash", (True, True, True)),
            ("CREATE TYPE vector", (False, False, False)),
            ("CREATE ACCESS METHOD", (False, False, False)),
        ):
            self.assertEqual(tuple(statement in s for s in (old, middle, new)), present, statement)
        self.assertIn("ALTER TYPE vector SET", script("in", "0.5.1"))

    def test_back_to_the_library_of_pgvector(self) -> None:
        back = script("out", "0.8.6")
        ours = {f for f in FUNCTION.findall(INSTALL.read_text()) if "_hash" in f}
        self.assertEqual(len(ours), 6)
        self.assertEqual(
            set(FUNCTION.findall(back)), set(FUNCTION.findall(INSTALL.read_text())) - ours
        )
        self.assertNotIn("MODULE_PATHNAME", back)
        for function in ours:
            self.assertIn(f"DROP FUNCTION {function};", back)


if __name__ == "__main__":
    unittest.main()
