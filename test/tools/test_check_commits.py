"""tools/check_commits refuses messages that are not by the rules, and no others."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
SMALL = "line\n" * 9
LARGE = "line\n" * 10


class Repository:
    def __init__(self, top: str) -> None:
        self.top = top
        self.git("init")
        self.commit("The first: before there were rules, " + "x" * 72, LARGE)
        self.git("tag", "first")

    def git(self, *arguments: str) -> None:
        config = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
        who = ["-c", "user.name=nobody", "-c", "user.email=nobody@localhost"]
        subprocess.run(
            ["git", "-C", self.top, *who, *arguments],
            check=True,
            capture_output=True,
            env={**os.environ, **config},
        )

    def commit(self, message: str, added: str | bytes) -> None:
        """A commit that adds this to a file."""
        data = added.encode() if isinstance(added, str) else added
        with (Path(self.top) / "file").open("ab") as file:
            file.write(data)
        self.git("add", "file")
        self.git("commit", "-m", message)


@unittest.skipUnless(shutil.which("git"), "no git")
class CheckCommits(unittest.TestCase):
    def check(self, top: str, *after: str) -> tuple[int, list[str]]:
        """The exit status, and what is printed."""
        command = [str(TOP / "tools" / "check_commits"), "--top", top, *after]
        run = subprocess.run(command, check=False, capture_output=True, text=True)
        self.assertEqual(run.stderr, "")
        return run.returncode, run.stdout.splitlines()

    def complaints(self, message: str, added: str | bytes) -> list[str]:
        """The complaints about one commit, after those before the rules."""
        with tempfile.TemporaryDirectory() as top:
            Repository(top).commit(message, added)
            status, lines = self.check(top, "first")
            self.assertEqual(status, 1 if len(lines) > 1 else 0, lines)
            self.assertTrue(lines[-1].startswith("check_commits: 1 commits, "), lines)
            return lines[:-1]

    def test_good(self) -> None:
        for message, added in [
            ("src: rooms inside the engines\n\nBecause of the doors.", LARGE),
            ("docs, bench: a page", SMALL),
            ("test/t: 2 more", SMALL),
            ("graph-ivf: " + "x" * 61, SMALL),
        ]:
            with self.subTest(message):
                self.assertEqual(self.complaints(message, added), [])

    def test_bad(self) -> None:
        bad: list[tuple[str, str | bytes, str]] = [
            ("Rooms inside the engines", SMALL, "not "),
            ("Src: rooms", SMALL, "not "),
            ("src:rooms", SMALL, "not "),
            (": rooms", SMALL, "not "),
            ("src: " + "x" * 68, SMALL, "73 characters"),
            ("src: rooms\nand a second line" + "x" * 50, SMALL, "78 characters"),
            ("src: rooms", LARGE, "no body"),
            ("src: rooms", b"\0\1\2", "no body"),
        ]
        for message, added, complaint in bad:
            with self.subTest(message):
                found = self.complaints(message, added)
                self.assertEqual(len(found), 1, found)
                self.assertRegex(found[0], rf"^[0-9a-f]+: {complaint}")

    def test_merges(self) -> None:
        with tempfile.TemporaryDirectory() as top:
            repository = Repository(top)
            repository.git("checkout", "-b", "side")
            repository.commit("src: a side", SMALL)
            repository.git("checkout", "-")
            repository.git("merge", "--no-ff", "-m", "Merge", "side")
            self.assertEqual(
                self.check(top, "first"), (0, ["check_commits: 1 commits, 0 breaches"])
            )

    def test_skipped(self) -> None:
        with tempfile.TemporaryDirectory() as top:
            without_repository = self.check(top)
            Repository(top)
            for status, lines in (without_repository, self.check(top), self.check(top, "nothing")):
                self.assertEqual(status, 77)
                self.assertIn("skipped", lines[-1])


if __name__ == "__main__":
    unittest.main()
