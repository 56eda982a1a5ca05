"""Search the packages in words: search.py 'play chess' [--section games] [--dsn DSN]"""

import argparse
import time

import psycopg

NEAREST = """
SELECT name, summary, embedding <=> embed(%(query)s) AS distance FROM package
WHERE embed(%(query)s) IS NOT NULL ORDER BY distance LIMIT 5
"""
FILTERED = """
SELECT name, summary, embedding <=> embed(%(query)s) AS distance FROM package
WHERE embed(%(query)s) IS NOT NULL AND section = %(section)s ORDER BY distance LIMIT 5
"""
HYBRID = "SELECT name, summary, score FROM hybrid(%(query)s, 5)"


def show(connection, title, statement, values):
    began = time.perf_counter()
    rows = connection.execute(statement, values).fetchall()
    print(f"{title} ({(time.perf_counter() - began) * 1000:.1f} ms)")
    for name, summary, number in rows:
        print(f"  {number:.3f}  {name}: {summary}")
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("query")
    parser.add_argument("--section", default="games")
    parser.add_argument("--dsn", default="")
    args = parser.parse_args()
    values = {"query": args.query, "section": args.section}
    with psycopg.connect(args.dsn) as connection:
        connection.execute("SET search_path = packages, public")
        show(connection, "nearest", NEAREST, values)
        show(connection, f"nearest in section {args.section}", FILTERED, values)
        show(connection, "hybrid", HYBRID, values)


if __name__ == "__main__":
    main()
