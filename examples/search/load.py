"""Load the package descriptions that apt knows, make a vector of each, and index them.

    load.py [DSN] [--limit N]     DSN as psycopg takes it; without one the PG* variables
"""

import argparse
import re
import subprocess
import time
from pathlib import Path

import numpy as np
import psycopg
from scipy.sparse import coo_array
from sklearn.decomposition import TruncatedSVD
from sklearn.preprocessing import normalize

DIMENSIONS = 256
# Two thirds of the packages are libraries, which few words tell apart: programs alone.
PARTS = re.compile(
    "libs|libdevel|oldlibs|debug|doc|localization|kernel|introspection|python|perl|ruby|php"
    "|javascript|rust|golang|haskell|ocaml|java|gnu-r|lisp|metapackages"
)
PART_NAMES = re.compile(r"^(lib|python|elpa-|fonts-)|-(dev|dbg|docs?|data|common|l10n.*)$")


def packages():
    """(name, section, summary, tags) of every program in apt's lists, each name once."""
    dump = subprocess.run(["apt-cache", "dumpavail"], capture_output=True, check=True)
    seen = set()
    for stanza in dump.stdout.decode(errors="replace").replace("\n ", " ").split("\n\n"):
        fields = dict(line.split(": ", 1) for line in stanza.splitlines() if ": " in line)
        name = fields.get("Package")
        summary = fields.get("Description") or fields.get("Description-en")
        section = fields.get("Section", "other")
        if not name or not summary or name in seen:
            continue
        seen.add(name)
        if not PARTS.fullmatch(section) and not PART_NAMES.search(name):
            tags = re.sub(r"\w+::|[^\w]+", " ", fields.get("Tag", ""))
            yield name, section, summary, tags


def model(connection):
    """The words, a vector of each, and the sum of them for each package, of length 1.

    Latent semantic analysis: word counts, rare words counting more, by their leading
    singular vectors.
    """
    found = connection.execute(
        "SELECT id, lexeme, cardinality(positions) FROM package, unnest(words)"
    ).fetchall()
    ids, words, counts = zip(*found)
    known, column = np.unique(words, return_inverse=True)
    used, texts = np.bincount(column), len(set(ids))
    chosen = (used >= 3) & (used <= texts / 10)  # neither rare nor everywhere
    weight = np.where(chosen, np.log(texts / used), 0)
    values = (1 + np.log(counts)) * weight[column]
    matrix = normalize(coo_array((values, (np.array(ids), column))).tocsr())
    svd = TruncatedSVD(DIMENSIONS, random_state=0, n_iter=3).fit(matrix)
    axes = (svd.components_ / np.sqrt(svd.singular_values_)[:, None]).T
    return known[chosen], (axes * weight[:, None])[chosen], normalize(matrix @ axes)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dsn", nargs="?", default="")
    parser.add_argument("--limit", type=int, help="evenly so many of the packages")
    args = parser.parse_args()
    rows = sorted(packages())
    if args.limit and args.limit < len(rows):
        rows = [rows[i * len(rows) // args.limit] for i in range(args.limit)]
    with psycopg.connect(args.dsn, autocommit=True) as connection:
        began = time.monotonic()
        connection.execute("CREATE EXTENSION IF NOT EXISTS quiver CASCADE")
        connection.execute(Path(__file__).with_name("schema.sql").read_text())
        with connection.cursor().copy(
            "COPY package (id, name, section, summary, tags) FROM STDIN"
        ) as copy:
            for row in enumerate(rows):
                copy.write_row((row[0], *row[1]))
        words, word_vectors, vectors = model(connection)
        with connection.cursor().copy("COPY word FROM STDIN") as copy:
            for word, vector in zip(words, word_vectors):
                copy.write_row((word, str(vector.tolist())))
        connection.execute("CREATE TEMP TABLE made (id int PRIMARY KEY, v vector)")
        with connection.cursor().copy("COPY made FROM STDIN") as copy:
            for row, vector in enumerate(vectors):
                if vector.any():  # not one known word: no direction
                    copy.write_row((row, str(vector.tolist())))
        connection.execute("UPDATE package p SET embedding = v FROM made m WHERE m.id = p.id")
        connection.execute("CREATE INDEX ON package USING quiver_ivf (embedding vector_cosine_ops)")
        connection.execute("CREATE INDEX ON package USING gin (words)")
        connection.execute("VACUUM ANALYZE package, word")
        print(f"{len(rows)} packages, {len(words)} words, {time.monotonic() - began:.1f} s")


if __name__ == "__main__":
    main()
