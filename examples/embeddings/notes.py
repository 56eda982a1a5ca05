"""Notes that are found by what they mean, with a real embedding model.

    python notes.py add "The printer is on the second floor" "Lunch is at noon"
    python notes.py find "where can I print?"

The model is an API that the environment names, in the form that OpenAI's has and most
others offer, too:

    EMBEDDING_URL     https://api.openai.com/v1/embeddings, for example
    EMBEDDING_MODEL   text-embedding-3-small, for example
    EMBEDDING_KEY     the key, if the API wants one

Without EMBEDDING_URL it is a small model that comes with a package (wordllama, 256
dimensions, English) and needs no network. PGDATABASE and the like name the database.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from pathlib import Path

import numpy as np
import psycopg
from pgvector.psycopg import register_vector

BATCH = 100  # texts of a call


def embed_by_api(texts: list[str]) -> np.ndarray:
    """A row for each text, [n, dimensions]; urllib's errors if the API cannot be asked."""
    body = json.dumps({"model": os.environ["EMBEDDING_MODEL"], "input": texts}).encode()
    headers = {"Content-Type": "application/json"}
    if key := os.environ.get("EMBEDDING_KEY"):
        headers["Authorization"] = f"Bearer {key}"
    request = urllib.request.Request(os.environ["EMBEDDING_URL"], body, headers)
    with urllib.request.urlopen(request, timeout=60) as response:
        data = json.load(response)["data"]
    return np.array([item["embedding"] for item in sorted(data, key=lambda item: item["index"])], "float32")


def embed_offline(texts: list[str]) -> np.ndarray:
    """The same by a model that the package wordllama has inside."""
    import wordllama

    inside = Path(wordllama.__file__).parent
    model = wordllama.WordLlama.load(cache_dir=inside, disable_download=True)
    return model.embed(texts, norm=True)


def embed(texts: list[str]) -> np.ndarray:
    """A row for each text, by the API of the environment, or else offline."""
    by = embed_by_api if os.environ.get("EMBEDDING_URL") else embed_offline
    return np.vstack([by(texts[i : i + BATCH]) for i in range(0, len(texts), BATCH)])


def connect(dimensions: int) -> psycopg.Connection:
    """A connection to a database that has the table; the model fixes its dimensions."""
    db = psycopg.connect("", autocommit=True)
    db.execute("CREATE EXTENSION IF NOT EXISTS quiver CASCADE")
    register_vector(db)
    db.execute(
        "CREATE TABLE IF NOT EXISTS notes (id bigserial PRIMARY KEY, text text NOT NULL,"
        f" embedding vector({dimensions}) NOT NULL)"
    )
    db.execute(
        "CREATE INDEX IF NOT EXISTS notes_embedding ON notes USING quiver_graph (embedding vector_cosine_ops)"
    )
    return db


def add(texts: list[str]) -> None:
    """Stores texts with their vectors."""
    vectors = embed(texts)
    with connect(vectors.shape[1]) as db, db.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO notes (text, embedding) VALUES (%s, %s)", list(zip(texts, vectors, strict=True))
        )


def find(words: str, limit: int = 3) -> list[tuple[str, float]]:
    """The nearest texts, and their cosine similarities."""
    (vector,) = embed([words])
    with connect(len(vector)) as db:
        return db.execute(
            "SELECT text, 1 - (embedding <=> %(v)s) FROM notes"
            " ORDER BY embedding <=> %(v)s LIMIT %(limit)s",
            {"v": vector, "limit": limit},
        ).fetchall()


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["add", *texts] if texts:
            add(texts)
        case ["find", words]:
            for text, similarity in find(words):
                print(f"{similarity:.2f}  {text}")
        case _:
            sys.exit(__doc__)
