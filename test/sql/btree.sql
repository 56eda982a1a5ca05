-- btree operator classes: order, lookup, uniqueness, merge

SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS vector;
RESET client_min_messages;

SET enable_seqscan = off;

CREATE TABLE t (v vector(2), h halfvec(2), s sparsevec(2));
INSERT INTO t SELECT ARRAY[i % 5, i / 5]::vector, ARRAY[i % 5, i / 5]::vector, ARRAY[i % 5, i / 5]::vector
FROM generate_series(0, 24) i;
INSERT INTO t VALUES (NULL, NULL, NULL), ('[-1,0]', '[-1,0]', '{1:-1}/2');

CREATE UNIQUE INDEX ON t (v);
CREATE UNIQUE INDEX ON t (h);
CREATE UNIQUE INDEX ON t (s);

EXPLAIN (COSTS OFF) SELECT v FROM t WHERE v = '[2,3]';
SELECT v FROM t WHERE v = '[2,3]';
SELECT h FROM t WHERE h = '[2,3]';
SELECT s FROM t WHERE s = '{1:2,2:3}/2';
SELECT count(*) FROM t WHERE v < '[2,3]';
SELECT count(*) FROM t WHERE h >= '[2,3]';
SELECT count(*) FROM t WHERE s BETWEEN '{}/2' AND '{1:2}/2';
SELECT v FROM t ORDER BY v LIMIT 4;
SELECT h FROM t ORDER BY h DESC NULLS LAST LIMIT 3;
SELECT s FROM t ORDER BY s LIMIT 4;

INSERT INTO t (v) VALUES ('[2,3]');
INSERT INTO t (h) VALUES ('[2,3]');
INSERT INTO t (s) VALUES ('{1:2,2:3}/2');

SELECT min(v::text), max(v::text), count(DISTINCT v) FROM t WHERE v IS NOT NULL;
SET enable_hashjoin = off;
SET enable_nestloop = off;
SELECT count(*) FROM t a JOIN t b ON a.v = b.v AND a.h = b.h AND a.s = b.s;

DROP TABLE t;
