"""Downloads, from a server here that behaves as those of the publishers do."""

from __future__ import annotations

import hashlib
import http.server
import io
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import h5py
import numpy as np
import pytest

from quiver_bench import bigann, download, registry
from quiver_bench.errors import DataError
from quiver_bench.registry import Known
from quiver_bench.truth import nearest

BODY = bytes(range(256)) * 2000
MOST = 1 << 20


class Publisher(http.server.BaseHTTPRequestHandler):
    """/moved... redirects to the file, as Hugging Face does to its store."""

    files: ClassVar[dict[str, bytes]] = {}
    etag: ClassVar[str] = '"one"'
    published: ClassVar[str] = ""  # SHA-256, beside the redirect
    cut: ClassVar[list[int]] = []  # the next answers end after so many bytes
    errors: ClassVar[list[int]] = []  # the next answers are these
    ranges: ClassVar[bool] = True
    stray: ClassVar[bool] = False  # answers with another part than was asked for
    log: ClassVar[list[str]] = []
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        asked = self.headers.get("Range") or ""
        self.log.append(f"{self.path} {asked}".strip())
        if self.path.startswith("/moved"):
            self.send_response(302)
            self.send_header("Location", self.path.removeprefix("/moved") or "/moved")
            if self.published:
                self.send_header("X-Linked-Etag", f'"{self.published}"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        body = self.files.get(self.path)
        code = self.errors.pop(0) if self.errors else 200 if body is not None else 404
        if code != 200 or body is None:
            self.send_response(code)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        start = 0
        match = re.fullmatch(r"bytes=(\d+)-", asked)
        if match and self.ranges and self.headers.get("If-Range") == self.etag:
            start = int(match.group(1))
            if start >= len(body):
                self.send_response(416)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            start -= 10 if self.stray else 0
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(len(body) - start))
        self.send_header("ETag", self.etag)
        self.end_headers()
        end = start + self.cut.pop(0) if self.cut else len(body)
        self.wfile.write(body[start:end])
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(download, "PAUSE_SECONDS", 0.0)
    Publisher.files = {"/file": BODY}
    Publisher.etag, Publisher.published = '"one"', ""
    Publisher.cut, Publisher.errors, Publisher.log = [], [], []
    Publisher.ranges, Publisher.stray = True, False
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Publisher)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def fetch(url: str, tmp_path: Path, most: int = MOST, expected: str = "") -> bytes:
    target = tmp_path / "target"
    found = download.fetch(url, target, most, lambda _: None, expected)
    assert found == hashlib.sha256(BODY).hexdigest()
    assert [p.name for p in tmp_path.iterdir()] == ["target"]
    return target.read_bytes()


def test_redirects_and_the_sum_beside_them(site: str, tmp_path: Path) -> None:
    Publisher.published = hashlib.sha256(BODY).hexdigest()
    assert fetch(f"{site}/moved/moved/file", tmp_path) == BODY
    assert Publisher.log == ["/moved/moved/file", "/moved/file", "/file"]


def test_a_redirect_to_itself_ends(site: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="302"):
        fetch(f"{site}/moved", tmp_path)


def test_a_broken_transfer_goes_on_where_it_was(site: str, tmp_path: Path) -> None:
    Publisher.cut = [1000, 5000]
    assert fetch(f"{site}/moved/file", tmp_path) == BODY
    assert Publisher.log[1::2] == ["/file", "/file bytes=1000-", "/file bytes=6000-"]


def test_a_server_without_ranges_starts_again(site: str, tmp_path: Path) -> None:
    Publisher.cut, Publisher.ranges = [1000], False
    assert fetch(f"{site}/file", tmp_path) == BODY
    assert Publisher.log == ["/file", "/file bytes=1000-"]


def test_a_weak_tag_is_no_ground_to_go_on(site: str, tmp_path: Path) -> None:
    Publisher.cut, Publisher.etag = [1000], 'W/"one"'
    assert fetch(f"{site}/file", tmp_path) == BODY
    assert Publisher.log == ["/file", "/file"]


def test_a_part_is_kept_for_the_next_call_unless_the_file_changed(
    site: str, tmp_path: Path
) -> None:
    target = tmp_path / "target"

    def broken() -> None:
        Publisher.log.clear()
        Publisher.cut = [1000] + [0] * download.TRIES
        with pytest.raises(DataError, match=f"ended after 1000 of {len(BODY)} bytes"):
            download.fetch(f"{site}/file", target, MOST, lambda _: None)
        assert not target.exists()

    broken()
    assert fetch(f"{site}/file", tmp_path) == BODY
    assert Publisher.log[-1] == "/file bytes=1000-"
    target.unlink()
    broken()
    Publisher.etag = '"two"'  # If-Range: the server sends all of it
    assert fetch(f"{site}/file", tmp_path) == BODY


def test_another_part_than_was_asked_for(site: str, tmp_path: Path) -> None:
    Publisher.cut, Publisher.stray = [1000], True
    assert fetch(f"{site}/file", tmp_path) == BODY
    assert Publisher.log == ["/file", "/file bytes=1000-", "/file"]


def test_a_part_that_is_longer_than_the_file(site: str, tmp_path: Path) -> None:
    (tmp_path / "target.part").write_bytes(BODY + b"more")
    (tmp_path / "target.part.version").write_text('"one"')
    assert fetch(f"{site}/file", tmp_path) == BODY


def test_answers_that_may_be_another_soon(site: str, tmp_path: Path) -> None:
    Publisher.errors = [503, 429]
    assert fetch(f"{site}/file", tmp_path) == BODY
    Publisher.errors = [503] * download.TRIES
    with pytest.raises(DataError, match="503"):
        download.fetch(f"{site}/file", tmp_path / "other", MOST, lambda _: None)


def test_what_is_not_there_is_asked_for_once(site: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="404"):
        fetch(f"{site}/nothing", tmp_path)
    assert Publisher.log == ["/nothing"]


def test_nobody_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "PAUSE_SECONDS", 0.0)
    with pytest.raises(DataError, match="refused"):
        fetch("http://127.0.0.1:9/file", tmp_path)


@pytest.mark.parametrize("beside", [True, False])
def test_a_wrong_sum_leaves_nothing(site: str, tmp_path: Path, beside: bool) -> None:
    wrong = "0" * 64
    Publisher.published = wrong if beside else ""
    with pytest.raises(DataError, match="as published"):
        fetch(f"{site}/moved/file", tmp_path, expected="" if beside else wrong)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_too_long_leaves_nothing(site: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="larger than it should be"):
        fetch(f"{site}/file", tmp_path, most=1000)
    assert list(tmp_path.iterdir()) == []


# Whole data sets.

TRAIN = np.random.default_rng(1).integers(0, 256, (300, 8)).astype(np.float32)
QUERIES = np.random.default_rng(2).integers(0, 256, (20, 8)).astype(np.float32)


def of_vibe(metric: str, distances: bool = True) -> bytes:
    file = io.BytesIO()
    with h5py.File(file, "w") as hdf5:
        hdf5["train"], hdf5["test"] = TRAIN, QUERIES
        hdf5["learn"] = QUERIES
        known = nearest(TRAIN, QUERIES, 10, "angular")[1]
        hdf5["distances"] = known if distances else known + 1
        hdf5.attrs["distance"], hdf5.attrs["point_type"] = metric, "float"
    return file.getvalue()


def test_data_get_of_vibe(site: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("QUIVER_DATA", raising=False)
    known = Known(300, 20, 8, "angular", 1, "", f"{site}/moved/words-8-cosine.hdf5")
    monkeypatch.setitem(registry.REGISTRY, "words-8-cosine", known)
    body = of_vibe("cosine")
    Publisher.files = {"/words-8-cosine.hdf5": body}
    Publisher.published, Publisher.cut = hashlib.sha256(body).hexdigest(), [100]
    found = registry.get("words-8-cosine", None, tmp_path, lambda _: None)
    assert found.metric == "angular"
    assert np.array_equal(found.train, TRAIN)
    asked = len(Publisher.log)
    registry.get("words-8-cosine", None, tmp_path, lambda _: None)
    assert len(Publisher.log) == asked  # it is here
    (tmp_path / "download" / "words-8-cosine.hdf5").write_bytes(of_vibe("normalized"))
    with pytest.raises(DataError, match="its SHA-256 changed"):
        registry.get("words-8-cosine", None, tmp_path, lambda _: None)


def test_data_get_of_another_content(
    site: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = Known(300, 20, 8, "angular", 1, "", f"{site}/words.hdf5")
    monkeypatch.setitem(registry.REGISTRY, "words", known)
    Publisher.files = {"/words.hdf5": of_vibe("cosine", distances=False)}
    with pytest.raises(DataError, match="not those of its vectors"):
        registry.download("words", tmp_path, lambda _: None)
    Publisher.files = {"/words.hdf5": b"<html>please log in</html>"}
    with pytest.raises(DataError, match="not a data set"):
        registry.download("words", tmp_path, lambda _: None)
    assert list((tmp_path / "download").iterdir()) == []


def of_bigann(kind: str, numbers: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> bytes:
    head = np.array(numbers.shape, dtype="<u4")
    return head.tobytes() + numbers.astype(bigann.KINDS[kind]).tobytes()


def of_tags(rows: list[list[int]], vocabulary: int) -> bytes:
    starts = np.cumsum([0] + [len(row) for row in rows])
    tags = np.array([tag for row in rows for tag in row], dtype="<i4")
    sizes = np.array([len(rows), vocabulary, len(tags)], dtype="<i8")
    values = np.ones(len(tags), dtype="<f4")
    return b"".join(part.tobytes() for part in (sizes, starts.astype("<i8"), tags, values))


def of_truth(
    ids: list[list[int]], distances: np.ndarray[tuple[int, ...], np.dtype[np.generic]]
) -> bytes:
    head = np.array(distances.shape, dtype="<u4")
    return head.tobytes() + np.array(ids, dtype="<i4").tobytes() + distances.astype("<f4").tobytes()


def test_data_get_of_several_files(
    site: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As YFCC-10M: rows, queries, neighbors under a condition, and the tags."""
    monkeypatch.delenv("QUIVER_DATA", raising=False)
    names = ("base.300.u8bin", "query.public.20.u8bin", "GT.public.ibin",
             "base.metadata.300.spmat", "query.metadata.public.20.spmat")  # fmt: skip
    known = Known(300, 20, 8, "euclidean", 1, "", f"{site}/yfcc/", "", names)
    monkeypatch.setitem(registry.REGISTRY, "tagged", known)
    rows = [[i % 3, 3 + i % 5] for i in range(300)]
    wanted = [[i % 3] if i % 2 else [i % 3, 3 + i % 5] for i in range(20)]
    tags = bigann.Tags(np.cumsum([0] + [2] * 300), np.array(rows, dtype=np.int32).ravel(), 8)
    ids, squares = [], []
    for query, asked in zip(QUERIES, wanted, strict=True):
        passing = np.flatnonzero(tags.having(np.array(asked, dtype=np.int32)))
        near, distances = nearest(TRAIN[passing], query[None], 10, "euclidean")
        ids.append(passing[near[0]].tolist())
        squares.append(distances[0] ** 2)
    Publisher.files = {
        "/yfcc/base.300.u8bin": of_bigann(".u8bin", TRAIN),
        "/yfcc/query.public.20.u8bin": of_bigann(".u8bin", QUERIES),
        "/yfcc/GT.public.ibin": of_truth(ids, np.array(squares)),
        "/yfcc/base.metadata.300.spmat": of_tags(rows, 8),
        "/yfcc/query.metadata.public.20.spmat": of_tags(wanted, 8),
    }
    Publisher.cut = [100]
    found = registry.get("tagged", None, tmp_path, lambda _: None)
    assert (found.name, found.metric) == ("tagged", "euclidean")
    assert np.array_equal(found.train, TRAIN)
    assert np.array_equal(found.queries, QUERIES)
    folder = tmp_path / "download" / "tagged"
    read = bigann.read_tags(folder / names[3])
    assert [read.of(i).tolist() for i in range(300)] == rows
    assert bigann.read_tags(folder / names[4]).of(0).tolist() == wanted[0]
    asked = len(Publisher.log)
    assert registry.get("tagged", None, tmp_path, lambda _: None).rows == 300
    assert len(Publisher.log) == asked  # it is here
    _, verified = registry.read(folder / names[0])
    assert verified == "shapes and 20 queries' distances"
