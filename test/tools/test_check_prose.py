"""tools/check_prose finds what it is there to find, and only that."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
EXCEPTIONS = "tools/prose_exceptions"


def a(words: int) -> str:
    """That many words, short ones: 40 fit on a line."""
    return " ".join(["a"] * words)


class Tree:
    """A folder with these files, on which check_prose runs."""

    def __init__(self, top: str, files: dict[str, str]) -> None:
        self.top = Path(top)
        self.write(files)

    def write(self, files: dict[str, str]) -> None:
        for name, text in files.items():
            path = self.top / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def read(self, name: str) -> str:
        return (self.top / name).read_text()

    def git(self, *arguments: str) -> None:
        config = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
        who = ["-c", "user.name=nobody", "-c", "user.email=nobody@localhost"]
        subprocess.run(
            ["git", "-C", self.top, *who, *arguments],
            check=True,
            capture_output=True,
            env={**os.environ, **config},
        )

    def run(self, *options: str) -> subprocess.CompletedProcess[str]:
        command: list[str | Path] = [TOP / "tools" / "check_prose", "--top", self.top, *options]
        return subprocess.run(command, check=False, capture_output=True, text=True)


class CheckProse(unittest.TestCase):
    def complaints_of(self, tree: Tree, *options: str) -> list[str]:
        run = tree.run(*options)
        lines = run.stdout.splitlines()
        self.assertTrue(lines, run.stderr)
        self.assertTrue(lines[-1].startswith("check_prose: "), run.stdout)
        self.assertEqual(run.returncode, 1 if len(lines) > 1 else 0, run.stdout + run.stderr)
        return lines[:-1]

    def complaints(self, files: dict[str, str]) -> list[str]:
        """The complaints about a tree of these files."""
        with tempfile.TemporaryDirectory() as top:
            return self.complaints_of(Tree(top, files))

    def check(self, names: str, rule: str, good: list[str], bad: list[tuple[int, str]]) -> None:
        """No text in good is complained of, and each in bad once, by that rule, at that line."""
        texts = [*good, *(text for _, text in bad)]
        files = {names.format(f"{number:03}"): f"{text}\n" for number, text in enumerate(texts)}
        lines = self.complaints(files)
        for name, line in zip(files, [0] * len(good) + [line for line, _ in bad], strict=True):
            with self.subTest(rule=rule, text=files[name]):
                found = [complaint for complaint in lines if complaint.startswith(f"{name}:")]
                self.assertEqual(len(found), 1 if line else 0, found)
                for complaint in found:
                    self.assertTrue(complaint.startswith(f"{name}:{line}: {rule}: "), complaint)

    def test_sentence(self) -> None:
        good = [
            f"{a(30)}.",
            f"{a(30)}.\n{a(30)}!\n{a(30)}?",
            f"**{a(20)}.** ({a(20)}.)",
            f"{a(29)}\n`{a(20)}`.",
            f"{a(29)}\n`{a(20)}\n{a(20)}`.",
            f"{a(10)} + = - < / {a(20)}.",
            f"{a(20)}:\n\n- {a(20)}\n- {a(20)}\n  {a(10)}",
            f"1. {a(20)}\n   - {a(20)}\n2. {a(20)}",
            f"{a(20)}\n\n{a(20)}",
            f"# {a(40)}",
            f"| {a(40)} | |\n|---|---|\n| {a(40)} | |",
            f"a:\n\n    {a(40)}\n\n    {a(40)}",
            f"- a:\n\n      {a(40)}",
            f"```text\n{a(40)}\n```",
            f"<!-- {a(20)}\n{a(20)} -->",
            f"{a(29)}\n[a](one.md).",
        ]
        bad = [
            (1, f"{a(31)}."),
            (1, f"{a(20)}\n{a(20)}"),
            (2, f"A.\nA. {a(31)}. A."),
            (3, f"- {a(20)}\n\n  {a(31)}"),
            (2, f"- {a(20)}\n- {a(31)}"),
            (1, f"{a(20)} e.g. {a(20)}."),
            (1, f"{a(30)}\n`a`."),
            (1, f"{a(30)}\n[a](one.md)."),
            (1, f"> {a(20)}\n> {a(20)}"),
            (1, f"|x - q| is {a(30)}."),
            (5, f"```text\n{a(40)}\n```\n\n{a(31)}"),
            (5, f"a:\n\n    {a(40)}\n\n{a(31)}"),
        ]
        self.check("docs/guide/{}.md", "sentence", good, bad)

    def test_numbers(self) -> None:
        good = [
            "From 1 to 2.",
            "1 of 2. 3 of 4.",
            "PostgreSQL 15 to 18 with pgvector 0.8.6.",
            "1,000,000 x 768 in 0.5 to 0.9 seconds.",
            "16-bit, 32-bit and 64-bit; L2, float32, recall@10, 2^31 and [M12].",
            "`1` and `2` and `3` and 4.",
            "| 1 | 2 | 3 |",
            "# 1, 2, 3",
            "1. one of 1 and 2",
        ]
        bad = [
            (1, "One of 1, 2 and 3."),
            (2, "1, 2.\nOf 3 in 4, 5 %."),
            (1, "On 2026-11-25, 1 of\n2."),
            (1, "- 1, 2, 3"),
        ]
        self.check("src/{}/README.md", "numbers", good, bad)

    def test_decimal(self) -> None:
        self.check(
            "src/{}/README.md",
            "decimal",
            ["0.35", "`.35`", "a:\n\n    .35", "```\n.35\n```", "1.2.3", "x.2", "a...2"],
            [(1, "A .35"), (2, "A\n(.35)"), (3, "| a |\n|---|\n| .35 |"), (1, "+-.05")],
        )
        self.check(
            "src/{}.c",
            "decimal",
            ["float x = .35;", "/* 0.35 */", 'char *x = "%.2f %5.2f %-.3g";', "char x = '.';"],
            [
                (1, "/* .35 */"),
                (3, "/*\n * a\n * .35\n */"),
                (1, "int x; // .35"),
                (1, 'char *x = "a .35";'),
                (1, "char x = '\"'; // .35"),
            ],
        )
        self.check("src/a/{}.h", "decimal", ["#define X .35"], [(1, "#define X 1 /* .35 */")])

    def test_phrase(self) -> None:
        good = [
            "It is so many that it fails.",
            'The word "likewise" and `so many` are quoted.',
            "Versions are told apart in compat.h.",
        ]
        bad = [
            (1, "It takes so many rows."),
            (1, "Rows likewise."),
            (1, "It does without rows."),
            (1, "It goes by rows."),
            (1, "It is told rows."),
            (1, "It sees what it has."),
            (1, "It sees those that fail."),
            (1, "It is worn."),
            (2, "It is built\nanew."),
            (1, "It takes so\nmany rows."),
        ]
        self.check("src/{}/README.md", "phrase", good, bad)
        self.check("src/{}/README.md", "phrase", [], [(3, "| a |\n|---|\n| so many |")])
        in_comment = [f"/* {text} */" for text in good]
        self.check("src/{}.c", "phrase", [*in_comment, 'char *x = "so many";'], [])
        comments = [
            (line + 1, "/*\n * {}\n */".format(text.replace("\n", "\n * "))) for line, text in bad
        ]
        self.check("src/a/{}.h", "phrase", [], comments)

    def test_opening(self) -> None:
        good = [
            "/* Often */",
            "int of; /* of it */",
            "/*\n * Rows.\n * And nodes.\n */",
            "/* The */",
        ]
        bad = [
            (1, "/* Of it. */"),
            (2, "\n/*\n * And rows.\n */"),
            (1, "/* But rows. */"),
            (1, "/*- The same rows. */"),
            (1, "int x; // The same rows."),
        ]
        self.check("src/a/{}.c", "opening", good, bad)
        self.check("src/{}/README.md", "opening", ["And rows."], [])

    def test_columns(self) -> None:
        long = "x" * 120
        self.check(
            "src/{}/README.md",
            "columns",
            [
                f"{a(9)}\n{long}\n{a(9)}",
                f"- [{long}]({long})",
                f"| {long} {long} |",
                f"# {long} a",
                f"a:\n\n    a {long}",
                f"{a(15)} {'x' * 70}",
            ],
            [
                (1, f"a {long}"),
                (2, f"a\n{long} a"),
                (2, f"- a\n- a {long}"),
                (1, f"{a(15)} {'x' * 71}"),
            ],
        )
        self.check(
            "src/{}.c",
            "columns",
            [f"int {long};", f"/* {'x' * 94} */", f"\t/* {'x' * 90} */"],
            [(1, f"/* {'x' * 95} */"), (1, f"\t/* {'x' * 91} */"), (2, f"/*\n * {long}\n */")],
        )
        for name in ("test/t/{}_a.pl", "test/perl/A{}.pm", "test/sql/{}.sql"):
            self.check(
                name,
                "columns",
                [long, f"\t{'x' * 116}"],
                [(2, f"a\n{long}x"), (1, f"\t{'x' * 117}")],
            )
        self.check("tools/{}.pl", "columns", [long + long], [])

    def test_exceptions(self) -> None:
        with tempfile.TemporaryDirectory() as top:
            tree = Tree(
                top, {"README.md": "A .1.\nA .2.\n", EXCEPTIONS: "# why\nREADME.md decimal 2\n"}
            )
            self.assertEqual(self.complaints_of(tree), [])
            self.assertEqual(self.complaints_of(tree, "--lower"), [])

            tree.write({"README.md": "A .1.\nA .2.\nA .3.\n"})
            found = self.complaints_of(tree)
            self.assertEqual(len(found), 4)
            self.assertTrue(found[2].startswith("README.md:3: decimal: "), found)
            self.assertEqual(found[3], "README.md:1: decimal: 3 breaches, 2 are allowed")
            self.assertEqual(self.complaints_of(tree, "--lower"), found)
            self.assertEqual(tree.read(EXCEPTIONS), "# why\nREADME.md decimal 2\n")

            tree.write({"README.md": "A .1.\n"})
            found = self.complaints_of(tree)
            self.assertEqual(len(found), 1, found)
            self.assertTrue(found[0].endswith("run tools/check_prose --lower"), found)
            self.assertEqual(self.complaints_of(tree, "--lower"), [])
            self.assertEqual(tree.read(EXCEPTIONS), "# why\nREADME.md decimal 1\n")

            (tree.top / "README.md").unlink()
            self.assertEqual(len(self.complaints_of(tree)), 1)
            self.assertEqual(self.complaints_of(tree, "--lower"), [])
            self.assertEqual(tree.read(EXCEPTIONS), "# why\n")

            for line in ("README.md decimal", "README.md novel 1", "README.md decimal -1"):
                tree.write({EXCEPTIONS: f"{line}\n"})
                self.assertIn(f"{EXCEPTIONS}:1: ", tree.run().stderr)
                self.assertEqual(tree.run().returncode, 1)

    @unittest.skipUnless(shutil.which("git"), "no git")
    def test_repository(self) -> None:
        """Tracked files are checked, and of those with exceptions what is new is printed."""
        with tempfile.TemporaryDirectory() as top:
            tree = Tree(top, {"README.md": "A .1.\nA .2.\n", EXCEPTIONS: "README.md decimal 2\n"})
            tree.git("init")
            tree.git("add", ".")
            tree.git("commit", "-m", "first")
            tree.write({"README.md": "A .3.\nA .1.\nA .2.\n", "untracked.md": "A .4.\n"})
            found = self.complaints_of(tree)
            self.assertEqual(len(found), 2, found)
            self.assertTrue(found[0].startswith("README.md:1: decimal: .3"), found)

            tree.write({"README.md": "A .1.\nA .2.\n"})
            tree.git("mv", "README.md", "OTHER.md")
            self.assertEqual(len(self.complaints_of(tree)), 3)
            self.assertEqual(self.complaints_of(tree, "--lower"), [])
            self.assertEqual(tree.read(EXCEPTIONS), "OTHER.md decimal 2\n")

    def test_statistics(self) -> None:
        with tempfile.TemporaryDirectory() as top:
            text = f"{a(10)}. {a(20)}.\n\n| {a(40)} |\n\nA .1. {a(31)}.\n"
            run = Tree(top, {"README.md": text, "src/a.c": "/* .1 .2 */\n"}).run("--statistics")
            self.assertEqual(run.returncode, 0, run.stderr)
            lines = run.stdout.splitlines()
            self.assertEqual(lines[1].split(), ["15.8", "25.0%", "4", "README.md"])
            self.assertTrue(lines[-1].startswith("3 decimals "), lines)


if __name__ == "__main__":
    unittest.main()
