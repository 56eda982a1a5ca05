"""`make install` and `make uninstall` leave a stock pgvector alone unless told to replace it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
PG_CONFIG = os.environ.get("PG_CONFIG", "pg_config")
STOCK = "default_version = '0.8.0'\nmodule_pathname = '$libdir/vector'\n"


class SparePgvector(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.extension = Path(folder.name) / "extension"
        self.library = Path(folder.name) / "lib"
        self.extension.mkdir()
        self.library.mkdir()

    def run_it(self, replace: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [TOP / "tools" / "spare_pgvector", self.extension, self.library, replace],
            capture_output=True,
            text=True,
        )

    def stock(self) -> None:
        (self.extension / "vector.control").write_text(STOCK)
        (self.extension / "vector--0.8.0.sql").write_text("stock")
        (self.library / "vector.so").write_text("stock")

    def test_nothing_there(self) -> None:
        self.assertEqual(self.run_it().returncode, 0)

    def test_our_own(self) -> None:
        (self.extension / "vector.control").write_text((TOP / "vector.control").read_text())
        (self.extension / "vector--0.8.100.sql").write_text("ours")
        self.assertEqual(self.run_it("1").returncode, 0)
        self.assertTrue((self.extension / "vector--0.8.100.sql").exists())

    def test_stock_stops_it(self) -> None:
        self.stock()
        run = self.run_it()
        self.assertEqual(run.returncode, 1)
        for word in ("pgvector 0.8.0", "vector.so", "REPLACE_PGVECTOR=1", "ONLY_QUIVER=1", "./quickstart"):
            self.assertIn(word, run.stderr)
        self.assertEqual((self.extension / "vector.control").read_text(), STOCK)

    def test_replace_keeps_a_copy(self) -> None:
        self.stock()
        self.assertEqual(self.run_it("1").returncode, 0)
        backup = self.extension / "pgvector-backup-0.8.0"
        self.assertEqual((backup / "vector.control").read_text(), STOCK)
        self.assertTrue((backup / "vector--0.8.0.sql").exists())
        self.assertFalse((self.extension / "vector.control").exists())
        self.assertTrue((self.library / "vector.so").exists())

    def test_replace_leaves_our_scripts(self) -> None:
        self.stock()
        ours = sorted((TOP / "sql").glob("vector--*.sql"))
        self.assertTrue(ours)
        for script in ours:
            (self.extension / script.name).write_text(script.read_text())
        self.assertEqual(self.run_it("1").returncode, 0)
        backup = self.extension / "pgvector-backup-0.8.0"
        self.assertEqual(
            sorted(f.name for f in backup.iterdir()), ["vector--0.8.0.sql", "vector.control"]
        )
        for script in ours:
            self.assertTrue((self.extension / script.name).exists())

    def test_a_backup_is_not_overwritten(self) -> None:
        self.stock()
        (self.extension / "pgvector-backup-0.8.0").mkdir()
        self.assertEqual(self.run_it("1").returncode, 1)
        self.assertTrue((self.extension / "vector.control").exists())


@unittest.skipUnless(shutil.which("make") and shutil.which(PG_CONFIG), "needs make and pg_config")
class Uninstall(unittest.TestCase):
    def uninstall(self, vector_control: str) -> list[str]:
        """Which of the files of both extensions, and of pgvector's, stay."""
        with tempfile.TemporaryDirectory() as root:
            shared = subprocess.check_output([PG_CONFIG, "--sharedir"], text=True).strip()
            extension = Path(root + shared) / "extension"
            extension.mkdir(parents=True)
            scripts = [script.name for script in (TOP / "sql").glob("*--*.sql")]
            for name in (*scripts, "vector--0.8.0.sql", "quiver.control"):
                (extension / name).touch()
            (extension / "vector.control").write_text(vector_control)
            command = ["make", "-s", "-C", TOP, "uninstall", f"DESTDIR={root}", f"PG_CONFIG={PG_CONFIG}"]
            subprocess.run(command, check=True, capture_output=True)
            return sorted(file.name for file in extension.iterdir())

    def test_stock_stays(self) -> None:
        self.assertEqual(self.uninstall(STOCK), ["vector--0.8.0.sql", "vector.control"])

    def test_ours_goes(self) -> None:
        ours = (TOP / "vector.control").read_text()
        self.assertEqual(self.uninstall(ours), ["vector--0.8.0.sql"])


if __name__ == "__main__":
    unittest.main()
