"""examples/embeddings: a real model from a package, and an API that speaks as OpenAI's does."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import psycopg
import pytest
from plans import Plans

PROGRAM = Path(__file__).resolve().parents[2] / "examples/embeddings/notes.py"
sys.path.insert(0, str(PROGRAM.parent))
import notes  # noqa: E402

PACKAGES = ("wordllama", "pgvector", "psycopg")
NOTES = [
    "The printer is on the second floor",
    "Lunch is served at noon in the canteen",
    "Call the plumber if water leaks",
    "The train to the airport leaves every ten minutes",
    "Our dog has to see a vet",
]
# words that no note has, and the note that is meant
MEANT = {"a puppy that is ill": 4, "eat dinner": 1, "railway station": 3, "a wet pipe": 2}


@pytest.fixture(autouse=True)
def empty() -> Iterator[None]:
    yield
    with psycopg.connect("", autocommit=True) as db:
        db.execute("DROP TABLE IF EXISTS notes")


def test_offline(plans: Plans, monkeypatch: pytest.MonkeyPatch) -> None:
    """The nearest note is the one that is meant, by the index."""
    monkeypatch.delenv("EMBEDDING_URL", raising=False)
    notes.add(NOTES)
    assert {words: notes.find(words)[0][0] for words in MEANT} == {w: NOTES[i] for w, i in MEANT.items()}
    similarities = [similarity for _, similarity in notes.find("a puppy", 5)]
    assert len(similarities) == 5 and similarities == sorted(similarities, reverse=True)
    plans.assert_used("notes_embedding", len(MEANT) + 1)


def test_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the guide has it."""
    monkeypatch.delenv("EMBEDDING_URL", raising=False)
    for arguments in (["add", *NOTES], ["find", "a puppy that is ill"]):
        said = subprocess.run([sys.executable, PROGRAM, *arguments], capture_output=True, text=True, check=True)
    assert said.stdout.splitlines()[0].endswith(NOTES[4])


class Api(BaseHTTPRequestHandler):
    """POST: vectors of the texts by the offline model, in another order than asked."""

    asked: list[tuple[Any, Any]] = []  # noqa: RUF012

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append((self.headers["Authorization"], body["model"]))
        vectors = notes.embed_offline(body["input"])
        data = [{"index": i, "embedding": v.tolist()} for i, v in enumerate(vectors)]
        answer = json.dumps({"data": data[::-1]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *arguments: Any) -> None:
        pass


def test_api(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same notes by the API that the environment names, with its key."""
    server = HTTPServer(("127.0.0.1", 0), Api)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("EMBEDDING_URL", f"http://127.0.0.1:{server.server_port}/v1/embeddings")
    monkeypatch.setenv("EMBEDDING_MODEL", "a-model")
    monkeypatch.setenv("EMBEDDING_KEY", "secret")
    monkeypatch.setattr(notes, "BATCH", 2)
    notes.add(NOTES)
    assert notes.find("a puppy that is ill")[0][0] == NOTES[4]
    assert Api.asked == [("Bearer secret", "a-model")] * 4
    server.shutdown()
