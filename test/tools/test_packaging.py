"""META.json is what PGXN's specification wants, and all packaging names one version."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import tarfile
import tempfile
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
SEMVER = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?$")
TERM = re.compile(r"[^\s/\\\x00-\x1f\x7f]{2,}$")
# of the specification's list; an object of names and addresses would do as well
LICENSES = {
    "agpl_3", "apache_1_1", "apache_2_0", "artistic_1", "artistic_2", "bsd", "freebsd",
    "gfdl_1_2", "gfdl_1_3", "gpl_1", "gpl_2", "gpl_3", "lgpl_2_1", "lgpl_3_0", "mit",
    "mozilla_1_0", "mozilla_1_1", "openssl", "perl_5", "postgresql", "qpl_1_0", "ssleay",
    "sun", "zlib", "open_source", "restricted", "unrestricted", "unknown",
}  # fmt: skip
REQUIRED = {"abstract", "maintainer", "license", "provides", "name", "version", "meta-spec"}
OPTIONAL = {
    "description", "generated_by", "tags", "no_index", "prereqs", "release_status", "resources",
}  # fmt: skip
PHASES = {"configure", "build", "test", "runtime", "develop"}
RELATIONS = {"requires", "recommends", "suggests", "conflicts"}


def text(name: str) -> str:
    return (TOP / name).read_text()


def found(pattern: str, name: str) -> str:
    """What the group of a pattern finds in a file; an error if it finds nothing."""
    match = re.search(pattern, text(name), re.MULTILINE)
    if match is None:
        raise AssertionError(f"{pattern} is not in {name}")
    return match[1]


class Meta(unittest.TestCase):
    def setUp(self) -> None:
        self.meta = json.loads(text("META.json"))

    def test_fields(self) -> None:
        fields = set(self.meta)
        self.assertLessEqual(REQUIRED, fields)
        unknown = {f for f in fields - REQUIRED - OPTIONAL if not f.lower().startswith("x_")}
        self.assertEqual(unknown, set())
        for name in ("abstract", "name", "description", "generated_by", "maintainer"):
            self.assertIsInstance(self.meta[name], str)
            self.assertTrue(self.meta[name].strip(), name)
        self.assertRegex(self.meta["name"], TERM)
        self.assertRegex(self.meta["version"], SEMVER)
        self.assertIn(self.meta["license"], LICENSES)
        self.assertIn(self.meta["release_status"], ("stable", "testing", "unstable"))
        self.assertEqual(self.meta["meta-spec"]["version"], "1.0.0")
        self.assertEqual(self.meta["meta-spec"]["url"], "https://pgxn.org/meta/spec.txt")
        for tag in self.meta["tags"]:
            self.assertTrue(0 < len(tag) < 256 and "/" not in tag and "\\" not in tag, tag)

    def test_provides(self) -> None:
        for name, provided in self.meta["provides"].items():
            with self.subTest(name):
                self.assertRegex(name, TERM)
                self.assertLessEqual({"file", "version"}, set(provided))
                self.assertLessEqual(set(provided), {"file", "version", "abstract", "docfile"})
                self.assertRegex(provided["version"], SEMVER)
                self.assertTrue((TOP / provided["file"]).is_file(), provided["file"])
                self.assertTrue((TOP / provided["docfile"]).is_file(), provided["docfile"])
                self.assertEqual(
                    provided["version"], found(r"^default_version = '(.*)'", f"{name}.control")
                )
        controls = {path.stem for path in TOP.glob("*.control")}
        self.assertEqual(set(self.meta["provides"]), controls)

    def test_prereqs(self) -> None:
        for phase, relations in self.meta["prereqs"].items():
            self.assertIn(phase, PHASES)
            for relation, packages in relations.items():
                self.assertIn(relation, RELATIONS)
                for name, version in packages.items():
                    self.assertRegex(name, TERM)
                    self.assertRegex(version, SEMVER)
        oldest = self.meta["prereqs"]["runtime"]["requires"]["PostgreSQL"]
        self.assertEqual(oldest.split(".")[0], found(r"^qv_oldest=(\d+)", "tools/private_pg.sh"))


class Versions(unittest.TestCase):
    def test_one_version(self) -> None:
        version = found(r"^default_version = '(.*)'", "quiver.control")
        named = {
            "src/version.h": found(r'QUIVER_VERSION "(.*)"', "src/version.h"),
            "META.json": json.loads(text("META.json"))["version"],
            "debian/changelog": found(r"\Aquiver \((.*)-[0-9]+\) ", "debian/changelog"),
            "CHANGELOG.md": found(r"^## (\d+\.\d+\.\d+)", "CHANGELOG.md"),
            "packaging/quiver.spec": found(r"^Version: *(\S+)$", "packaging/quiver.spec"),
        }
        self.assertEqual(named, dict.fromkeys(named, version))

    def test_released_scripts_do_not_change(self) -> None:
        released = re.findall(r"^([0-9a-f]{64})  (\S+)$", text("sql/released"), re.MULTILINE)
        self.assertTrue(released)
        for checksum, name in released:
            with self.subTest(name):
                content = (TOP / "sql" / name).read_bytes()
                self.assertEqual(
                    hashlib.sha256(content).hexdigest(), checksum,
                    f"{name} is released: what is new belongs into an update script,"
                    " see sql/README.md",
                )  # fmt: skip

    @unittest.skipUnless(shutil.which("git"), "no git")
    def test_dist(self) -> None:
        """Both archives of a commit, and checksums that hold."""
        with tempfile.TemporaryDirectory() as folder:
            top = Path(folder)
            for name in ("Makefile", "quiver.control", "vector.control"):
                shutil.copy(TOP / name, top)
            git = ["git", "-C", folder, "-c", "user.name=t", "-c", "user.email=t@localhost"]
            for command in (
                [*git, "init", "-q"], [*git, "add", "."], [*git, "commit", "-q", "-m", "all"],
                ["make", "-s", "-C", folder, "dist"],
            ):  # fmt: skip
                subprocess.run(command, check=True, capture_output=True)
            version = found(r"^default_version = '(.*)'", "quiver.control")
            archives = [f"quiver-{version}.tar.gz", f"quiver-{version}.zip"]
            sums = f"quiver-{version}.sha256"
            self.assertEqual(sorted(p.name for p in (top / "dist").iterdir()), sorted([*archives, sums]))
            check = ["sha256sum", "--check", "--strict", sums]
            said = subprocess.run(check, cwd=top / "dist", check=True, capture_output=True, text=True)
            self.assertEqual(said.stdout.splitlines(), [f"{name}: OK" for name in archives])
            with tarfile.open(top / "dist" / archives[0]) as archive:
                self.assertIn(f"quiver-{version}/quiver.control", archive.getnames())

    def test_servers(self) -> None:
        oldest = int(found(r"^qv_oldest=(\d+)", "tools/private_pg.sh"))
        newest = int(found(r"^qv_newest=(\d+)", "tools/private_pg.sh"))
        wanted = [str(version) for version in range(oldest, newest + 1)]
        self.assertEqual(text("debian/pgversions").split(), wanted)

    def test_vector_version(self) -> None:
        version = found(r"^default_version = '(.*)'", "vector.control")
        self.assertEqual(found(r"^Provides: .* \(= (.*)\)", "debian/control.in"), version)
        newest = found(r"^TO_PGVECTOR = .* (\S+)$", "Makefile")
        self.assertEqual(found(r'QUIVER_PGVECTOR_VERSION "(.*)"', "src/version.h"), newest)

    def test_control_is_of_the_template(self) -> None:
        """debian/control is the template's paragraphs for the versions of a distribution."""
        versions = sorted(set(re.findall(r"^Package: postgresql-(\d+)-", text("debian/control"), re.M)))
        self.assertTrue(versions)
        source, *packages = text("debian/control.in").rstrip("\n").split("\n\n")
        made = [source] + [p.replace("PGVERSION", v) for p in packages for v in versions]
        self.assertEqual(text("debian/control").rstrip("\n"), "\n\n".join(made))


if __name__ == "__main__":
    unittest.main()
