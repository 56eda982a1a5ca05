"""tools/indent lays out sources, and keeps what pg_bsd_indent would spoil."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]

# As it should be.
GOOD = """\
#include "postgres.h"

typedef struct Thing
{
	int			one;			/* of two */
	const Buffer *buffers;
} Thing;

static const float tiny = 0x1p-24f;

/* Not laid out by anybody:  two blanks, and no full stop */
static Thing *
thing(Relation index, Thing *text)
{
	Thing		named = {.one = 1, .buffers = NULL};
	double		sum = (named.one + text->one) * 0x1.8p+3 +
		named.one * (text->one +
					 1);
	double		choice = sum > 1 ? sum :
		-sum;

	if (text && text->one == 1)
		*text = (Thing) {1, NULL};
	switch (text->one)
	{
		case 1:
			sum = choice;
			break;
	}
	return text;
}
"""


@unittest.skipUnless(
    shutil.which("pg_bsd_indent") and shutil.which(os.environ.get("PG_CONFIG", "pg_config")),
    "needs pg_bsd_indent and a server's headers",
)
class Indent(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.top = Path(folder.name)
        (self.top / "src").mkdir()
        (self.top / "tools").mkdir()
        (self.top / "tools" / "typedefs.list").write_text("Thing\n")
        self.source = self.top / "src" / "thing.c"

    def indent(self, *options: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [TOP / "tools" / "indent", *options, self.top], capture_output=True, text=True
        )

    def test_good_source_stays(self) -> None:
        self.source.write_text(GOOD)
        run = self.indent("--check")
        self.assertEqual(run.stdout, "indent: 0 of 1 files differ\n", run.stderr)
        self.assertEqual(run.returncode, 0)

    def test_bad_source(self) -> None:
        bad = GOOD.replace("\t", "  ").replace("Thing *text)", "Thing * text )")
        self.source.write_text(bad)
        run = self.indent("--check")
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertIn("+thing(Relation index, Thing *text)\n", run.stdout)
        self.assertEqual(self.source.read_text(), bad)

        self.assertEqual(self.indent().returncode, 0)
        self.assertEqual(self.source.read_text(), GOOD)

    def test_broken_source(self) -> None:
        self.source.write_text("int f(void) { return (1; }\n")
        run = self.indent("--check")
        self.assertEqual(run.returncode, 1)
        self.assertIn("thing.c", run.stderr)

    def test_types(self) -> None:
        self.source.write_text(
            "typedef struct One *Two;\n"
            "typedef struct Three\n{\n\tint\t\t\ta;\n} Three;\n"
            "typedef float four __attribute__((aligned(1)));\n"
            "typedef int five[2][3];\n"
            "typedef void (*Six) (int,\n\t\t\t\t\t int);\n"
        )
        run = subprocess.run(
            [TOP / "tools" / "typedefs", self.top / "src"], capture_output=True, text=True
        )
        self.assertEqual(run.stdout.split(), ["Six", "Three", "Two", "five", "four"])


if __name__ == "__main__":
    unittest.main()
