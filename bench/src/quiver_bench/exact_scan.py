#!/usr/bin/env python3
"""Speed of exact scans of two servers, side by side.

    bench/exact_scan QUIVER PGVECTOR [--rows N] [--dims N] [--repeat N]

QUIVER and PGVECTOR are connection strings of databases with the extension
"vector" in which tables may be made. For each type and metric the time of

    SELECT id FROM exact_scan ORDER BY v <op> q LIMIT 10

without an index is measured: rows in shared buffers, one client, no parallel
workers, no JIT, the servers in turn, the median of the server's own execution
times. Both must return the same rows. Needs psql; run it on an idle machine.
"""

import argparse
import json
import statistics
import subprocess

RANDOM_SPARSE = "sparsevec, random"
TYPES = {
    "vector": ("<->", "<#>", "<=>", "<+>"),
    "halfvec": ("<->", "<#>", "<=>", "<+>"),
    "bit": ("<~>", "<%>"),
    "sparsevec": ("<->", "<#>", "<=>", "<+>"),
    RANDOM_SPARSE: ("<->", "<#>", "<=>", "<+>"),
}
SETTINGS = "SET jit = off; SET max_parallel_workers_per_gather = 0; SET synchronize_seqscans = off;"


def sql(server: str, text: str) -> str:
    return subprocess.run(
        ["psql", "-X", "-q", "-At", "-v", "ON_ERROR_STOP=1", "-d", server],
        input=SETTINGS + text,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()


def type_of(kind: str) -> str:
    return kind.split(",")[0]


def value(kind: str, dims: int, row: str) -> str:
    """An expression for the value of a row, the same on every server."""
    term = f"sin({row} * 12.9898 + j * 78.233)"
    array = f"(SELECT array_agg({term}::real ORDER BY j) FROM generate_series(1, {dims}) j)"
    if kind == "bit":
        return f"binary_quantize({array}::vector)::bit({dims})"
    if type_of(kind) == "sparsevec":
        # one element in ten: every tenth one, or by the bits of a hash
        chosen = f"(j + {row}) % 10 = 0"
        if kind == RANDOM_SPARSE:
            chosen = f"(hashint4(j * 65536 + {row}) & 1023) < 102"
        array = (
            f"(SELECT array_agg(CASE WHEN {chosen} THEN {term} ELSE 0 END::real ORDER BY j)"
            f" FROM generate_series(1, {dims}) j)"
        )
        return f"{array}::vector::sparsevec({dims})"
    return f"{array}::{kind}({dims})"


def load(server: str, kind: str, dims: int, rows: int) -> None:
    sql(
        server,
        f"""SET client_min_messages = warning;
        DROP TABLE IF EXISTS exact_scan;
        CREATE TABLE exact_scan (id int, v {type_of(kind)}({dims}));
        ALTER TABLE exact_scan ALTER v SET STORAGE PLAIN;
        INSERT INTO exact_scan SELECT i, {value(kind, dims, "i")} FROM generate_series(1, {rows}) i;
        VACUUM ANALYZE exact_scan;""",
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("quiver")
    parser.add_argument("pgvector")
    parser.add_argument("--rows", type=int, default=20000)
    parser.add_argument("--dims", type=int, default=768)
    parser.add_argument("--repeat", type=int, default=9)
    args = parser.parse_args()
    servers = (args.quiver, args.pgvector)

    print(f"{args.rows} rows, {args.dims} dimensions, median of {args.repeat}, ms")
    print(f"{'type':17} {'op':4} {'Quiver':>9} {'pgvector':>9} {'ratio':>7}")
    for kind, operators in TYPES.items():
        for server in servers:
            load(server, kind, args.dims, args.rows)
        query = sql(
            args.pgvector,
            f"SELECT {value(kind, args.dims, '5' if type_of(kind) == 'sparsevec' else '0.5')}",
        )
        literal = f"B'{query}'" if kind == "bit" else f"'{query}'::{type_of(kind)}"
        for op in operators:
            select = f"SELECT id FROM exact_scan ORDER BY v {op} {literal}, id LIMIT 10"
            found = [sql(server, select) for server in servers]
            if found[0] != found[1]:
                print(f"{kind:17} {op:4} differs: {found[0].split()} {found[1].split()}")
            times: list[list[float]] = [[], []]
            for _ in range(args.repeat):
                for i, server in enumerate(servers):
                    # the first one loads the library
                    explain = f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {select};"
                    plan = sql(server, f"{explain} \\echo warm\n{explain}").split("warm")[1]
                    times[i].append(json.loads(plan)[0]["Execution Time"])
            quiver, pgvector = (statistics.median(t) for t in times)
            print(
                f"{kind:17} {op:4} {quiver:9.2f} {pgvector:9.2f} {pgvector / quiver:7.2f}",
                flush=True,
            )
    for server in servers:
        sql(server, "DROP TABLE exact_scan")


if __name__ == "__main__":
    main()
