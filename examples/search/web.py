"""A page to search the packages with: web.py [--port N], then open the address it prints.

The server is the one that the PG* variables name; the page is web.html beside this file.
"""

import argparse
import json
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psycopg
from search import FILTERED, HYBRID, NEAREST

PAGE = Path(__file__).with_name("web.html")
WORDS = """
SELECT name, summary, ts_rank_cd(words, websearch_to_tsquery('english', %(query)s)) AS relevance
FROM package WHERE words @@ websearch_to_tsquery('english', %(query)s)
ORDER BY relevance DESC, name LIMIT 5
"""
SECTIONS = "SELECT DISTINCT section FROM package ORDER BY 1"


def answer(values):
    """Rows, time in the server and plan of the three ways to search."""
    ways = {"vectors": FILTERED if values["section"] else NEAREST}
    if not values["section"]:
        ways |= {"words": WORDS, "both": HYBRID}
    found = {}
    with psycopg.connect(options="-c search_path=packages,public -c default_transaction_read_only=on") as connection:
        for way, statement in ways.items():
            connection.execute(statement, values)  # the first time of a session is another
            began = time.perf_counter()
            rows = connection.execute(statement, values).fetchall()
            took = (time.perf_counter() - began) * 1000
            # the plan of just what was sent
            plan = connection.execute(f"EXPLAIN (ANALYZE, BUFFERS) {statement}", values).fetchall()
            found[way] = {"rows": rows, "ms": took, "plan": "\n".join(line for (line,) in plan)}
    return found


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        address = urlsplit(self.path)
        fields = {key: value[0] for key, value in parse_qs(address.query).items()}
        try:
            if address.path == "/":
                self.send("text/html", PAGE.read_bytes())
            elif address.path == "/sections":
                with psycopg.connect(options="-c search_path=packages") as connection:
                    sections = [row[0] for row in connection.execute(SECTIONS)]
                self.send("application/json", json.dumps(sections).encode())
            elif address.path == "/search":
                values = {"query": fields.get("query", ""), "section": fields.get("section", "")}
                self.send("application/json", json.dumps(answer(values)).encode())
            else:
                self.send_error(404)
        except psycopg.Error as error:
            self.send("application/json", json.dumps({"error": str(error)}).encode(), 500)

    def send(self, kind, content, status=200):
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        """Nothing: the page shows what there is to see."""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8000, help="0 picks a free one")
    server = ThreadingHTTPServer(("127.0.0.1", parser.parse_args().port), Handler)
    print(f"http://127.0.0.1:{server.server_port}/", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
