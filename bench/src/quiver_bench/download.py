"""Fetching a file over HTTP as publishers of data sets serve them.

They redirect to another host, cut long transfers, and take up a file in its middle (Range).
Some send a SHA-256: Hugging Face as X-Linked-Etag, beside the redirect.
"""

from __future__ import annotations

import hashlib
import http.client
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from email.message import Message
from pathlib import Path
from typing import IO, Any

from quiver_bench.errors import DataError

CONNECT_SECONDS = 15
PAUSE_SECONDS = 1.0
TRIES = 4  # in a row that bring no byte
CHUNK = 1 << 20
AGAIN = (408, 429, 500, 502, 503, 504)  # answers that may be another soon


class BrokenError(Exception):
    """The transfer ended too early; the next try goes on where this one was."""


class Redirects(urllib.request.HTTPRedirectHandler):
    """Follows them, and keeps the SHA-256 that one brought along."""

    sha256 = ""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Any,
        newurl: str,
    ) -> urllib.request.Request | None:  # fmt: skip
        self.sha256 = published_sha256(headers) or self.sha256
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def published_sha256(headers: Message) -> str:
    """The SHA-256 of the file that these headers name, or nothing."""
    match = re.fullmatch(r'"?([0-9a-f]{64})"?', headers.get("X-Linked-Etag") or "")
    return match.group(1) if match else ""


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass
class Transfer:
    """One file on its way into part. Beside it a file keeps which version it is a part of."""

    url: str
    part: Path
    most: int  # bytes; a longer file is refused
    update: Callable[[str], None]
    redirects: Redirects = field(default_factory=Redirects)

    @property
    def mark(self) -> Path:
        return self.part.with_name(self.part.name + ".version")

    def got(self) -> int:
        return self.part.stat().st_size if self.part.is_file() else 0

    def forget(self) -> None:
        self.part.unlink(missing_ok=True)
        self.mark.unlink(missing_ok=True)

    def once(self) -> None:
        """One request, from where the last one ended. BrokenError when it ends too early."""
        # A site answers 403 to the name that urllib gives itself.
        headers = {"User-Agent": "quiver-bench"}
        version = self.mark.read_text() if self.mark.is_file() else ""
        if version and self.got():
            headers |= {"Range": f"bytes={self.got()}-", "If-Range": version}
        request = urllib.request.Request(self.url, headers=headers)
        opener = urllib.request.build_opener(self.redirects)
        with opener.open(request, timeout=CONNECT_SECONDS) as source:
            self.redirects.sha256 = published_sha256(source.headers) or self.redirects.sha256
            start, total = 0, int(source.headers.get("Content-Length") or 0)
            if source.status == 206:
                match = re.fullmatch(
                    r"bytes (\d+)-\d+/(\d+)", source.headers.get("Content-Range") or ""
                )
                if not match or int(match.group(1)) != self.got():
                    self.forget()
                    raise BrokenError("the server sent another part than was asked for")
                start, total = self.got(), int(match.group(2))
            etag = source.headers.get("ETag") or ""
            # A weak one does not promise the same bytes.
            known = source.headers.get("Last-Modified") if etag.startswith("W/") else etag
            self.mark.write_text(known or source.headers.get("Last-Modified") or "")
            self._receive(source, start, total)

    def _receive(self, source: Any, start: int, total: int) -> None:
        got = start
        if total > self.most:
            raise DataError("it is larger than it should be")
        with self.part.open("ab" if start else "wb") as file:
            try:
                while chunk := source.read(CHUNK):
                    got += len(chunk)
                    if got > self.most:
                        raise DataError("it is larger than it should be")
                    file.write(chunk)
                    self.update(f"{got >> 20} of {total >> 20} MB")
            except http.client.IncompleteRead as error:
                file.write(error.partial)
                got += len(error.partial)
        if total and got != total:
            raise BrokenError(f"it ended after {got} of {total} bytes")


def fetch(
    url: str, target: Path, most: int, update: Callable[[str], None], expected: str = ""
) -> str:
    """Fetch url into target and answer its SHA-256.

    most: bytes; a longer file is refused. expected: its SHA-256, or nothing when its publisher
    names none. DataError says why it cannot be had. What arrived of a broken transfer is kept
    as target.part, and the next call goes on from there.
    """
    transfer = Transfer(url, target.with_name(target.name + ".part"), most, update)
    idle = 0
    while True:
        before = transfer.got()
        try:
            transfer.once()
            break
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == 416:  # what is here is no part of what is there
                transfer.forget()
            elif error.code not in AGAIN:
                raise DataError(f"{error.code} {error.reason}") from error
            reason = f"{error.code} {error.reason}"
        except (BrokenError, OSError, http.client.HTTPException) as error:
            reason = str(getattr(error, "reason", "") or error)
        except DataError:
            transfer.forget()
            raise
        idle = 0 if transfer.got() > before else idle + 1
        if idle >= TRIES:
            raise DataError(reason)
        time.sleep(PAUSE_SECONDS * idle)
    found = sha256(transfer.part)
    wanted = expected or transfer.redirects.sha256
    if wanted and found != wanted:
        transfer.forget()
        raise DataError(f"its SHA-256 is {found}, and not {wanted} as published")
    transfer.part.rename(target)
    transfer.mark.unlink(missing_ok=True)
    return found
