-- quiver_ivf: operators, options, settings, values that are not indexed, kinds of
-- tables. Lists grow as rows come, so that all tables may start empty.

SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS vector;
CREATE EXTENSION IF NOT EXISTS quiver;
RESET client_min_messages;
SET enable_seqscan = off;
SET enable_sort = off;

-- l2, ip, cosine; NULLs and (cosine) zero vectors are left out

CREATE TABLE t (id int, val vector(3));
INSERT INTO t VALUES (1, '[1,2,3]'), (2, '[1,1,1]'), (3, '[-4,5,0.5]'), (4, NULL), (5, '[0,0,0]');
CREATE INDEX t_l2 ON t USING quiver_ivf (val vector_l2_ops);
CREATE INDEX t_ip ON t USING quiver_ivf (val vector_ip_ops);
CREATE INDEX t_cos ON t USING quiver_ivf (val vector_cosine_ops);
INSERT INTO t VALUES (6, '[1,2,4]'), (7, '[0,0,0]'), (8, NULL);
EXPLAIN (COSTS OFF) SELECT id FROM t ORDER BY val <-> '[3,3,3.2]' LIMIT 3;
SELECT id, val FROM t ORDER BY val <-> '[3,3,3.2]' LIMIT 3;
EXPLAIN (COSTS OFF) SELECT id FROM t ORDER BY val <#> '[3,3,3.2]' LIMIT 3;
SELECT id, val FROM t ORDER BY val <#> '[3,3,3.2]' LIMIT 3;
EXPLAIN (COSTS OFF) SELECT id FROM t ORDER BY val <=> '[3,3,3.2]' LIMIT 3;
SELECT id, val FROM t ORDER BY val <=> '[3,3,3.2]' LIMIT 3;
SELECT count(*) FROM (SELECT * FROM t ORDER BY val <-> '[0,0,0]' LIMIT 20) x;
SELECT count(*) FROM (SELECT * FROM t ORDER BY val <=> '[0,0,0]' LIMIT 20) x;
SELECT count(*) FROM (SELECT * FROM t ORDER BY val <-> (SELECT NULL::vector) LIMIT 20) x;
SELECT quiver_check('t_l2'), quiver_check('t_ip'), quiver_check('t_cos');
UPDATE t SET val = '[3,3,3.25]' WHERE id = 3;
DELETE FROM t WHERE id = 1;
SELECT id, val FROM t ORDER BY val <-> '[3,3,3.2]' LIMIT 3;
VACUUM (INDEX_CLEANUP ON) t;
SELECT id, val FROM t ORDER BY val <-> '[3,3,3.2]' LIMIT 3;
SELECT quiver_check('t_l2'), quiver_check('t_ip'), quiver_check('t_cos');

-- what a column cannot hold, and a query cannot ask

INSERT INTO t VALUES (9, '[1,2]');
INSERT INTO t VALUES (9, '[NaN,1,2]');
SELECT id FROM t ORDER BY val <-> '[1,2]' LIMIT 1;
TRUNCATE t;
SELECT id FROM t ORDER BY val <-> '[3,3,3]' LIMIT 3;
INSERT INTO t VALUES (9, '[1,2,3]');
SELECT id FROM t ORDER BY val <-> '[3,3,3]' LIMIT 3;
DROP INDEX t_ip, t_cos;

-- a filter, a partial index, an expression, a cursor

INSERT INTO t SELECT i, ARRAY[i, i % 7, i % 3]::vector FROM generate_series(10, 400) i;
SELECT id FROM t WHERE id % 50 = 0 ORDER BY val <-> '[60,0,0]' LIMIT 3;
CREATE INDEX t_some ON t USING quiver_ivf (val) WHERE id % 2 = 0;
SELECT quiver_check('t_some') = count(*) FROM t WHERE id % 2 = 0;
BEGIN;
DROP INDEX t_l2;
EXPLAIN (COSTS OFF) SELECT id FROM t WHERE id % 2 = 0 ORDER BY val <-> '[61,0,0]' LIMIT 2;
ROLLBACK;
SELECT id FROM t WHERE id % 2 = 0 ORDER BY val <-> '[60.9,5,1]' LIMIT 2;
CREATE INDEX t_half ON t USING quiver_ivf ((val::halfvec(3)) halfvec_l2_ops);
SELECT id FROM t ORDER BY val::halfvec(3) <-> '[100,2,1]' LIMIT 1;
CREATE INDEX t_bits ON t USING quiver_ivf ((binary_quantize(val)::bit(3)) bit_hamming_ops);
SELECT count(*) FROM (SELECT id FROM t ORDER BY binary_quantize(val)::bit(3) <~> '111' LIMIT 1000) x;
DROP INDEX t_some, t_half, t_bits;
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM t ORDER BY val <-> '[200,4,2]';
FETCH 1 FROM c;
FETCH 2 FROM c;
COMMIT;

-- unlogged and temporary tables

CREATE UNLOGGED TABLE u AS TABLE t;
CREATE INDEX u_idx ON u USING quiver_ivf (val);
SELECT id FROM u ORDER BY val <-> '[200,4,2]' LIMIT 1;
CREATE TEMPORARY TABLE temp AS TABLE t;
CREATE INDEX temp_idx ON temp USING quiver_ivf (val);
DELETE FROM temp WHERE id = 200;
VACUUM (INDEX_CLEANUP ON) temp;
SELECT quiver_check('u_idx') - quiver_check('temp_idx') AS one;
DROP TABLE u, temp;

-- options

CREATE INDEX t_idx2 ON t USING quiver_ivf (val) WITH (lists = 7, bits = 4);
SELECT pg_get_indexdef('t_idx2'::regclass);
SELECT access_method, row_count, own_code_bits, lists, dead_rows, lost_pages FROM quiver_index_info('t_idx2');
ALTER INDEX t_idx2 SET (lists = 9, bits = 2);
REINDEX INDEX t_idx2;
SELECT own_code_bits, lists FROM quiver_index_info('t_idx2');
DROP INDEX t_idx2;
CREATE INDEX ON t USING quiver_ivf (val) WITH (lists = -1);
CREATE INDEX ON t USING quiver_ivf (val) WITH (lists = 65537);
CREATE INDEX ON t USING quiver_ivf (val) WITH (bits = 1);
CREATE INDEX ON t USING quiver_ivf (val) WITH (bits = 3);
CREATE INDEX ON t USING quiver_ivf (val) WITH (m = 16);
CREATE UNIQUE INDEX ON t USING quiver_ivf (val);
CREATE INDEX ON t USING quiver_ivf (val, val);
CREATE INDEX ON t USING quiver_ivf (val vector_l1_ops);
CREATE INDEX ON t USING quiver_ivf (id);

-- settings

SHOW quiver.probes;
SET quiver.probes = -1;
SET quiver.probes = 65537;
SHOW quiver.recall;
SET quiver.recall = 0.4;
SET quiver.recall = 1.1;
SET quiver.probes = 1;
SELECT count(*) FROM (SELECT id FROM t ORDER BY val <-> '[200,4,2]' LIMIT 50) x;
SET quiver.iterative_scan = off;
SELECT count(*) BETWEEN 1 AND 399 AS some FROM (SELECT id FROM t ORDER BY val <-> '[200,4,2]' LIMIT 1000) x;
SET quiver.iterative_scan = relaxed_order;
SELECT count(*), count(DISTINCT id) FROM (SELECT id FROM t ORDER BY val <-> '[200,4,2]' LIMIT 1000) x;

DROP TABLE t;

-- a scan that goes on to the last of many lists has every row, though the first lists are found by estimates
SELECT setseed(0.5);
CREATE TABLE noise AS
SELECT i AS id, (SELECT array_agg(random()) FROM generate_series(1, 16) WHERE i > 0)::vector(16) AS v
FROM generate_series(1, 4000) i;
CREATE INDEX noise_idx ON noise USING quiver_ivf (v vector_l2_ops) WITH (lists = 400);
SET enable_seqscan = off;
SET enable_sort = off;
SET quiver.topk_scan = off;
SET quiver.iterative_scan = relaxed_order;
SELECT min(x.rows), count(*) FROM noise q,
	LATERAL (SELECT count(DISTINCT id) AS rows FROM (SELECT id FROM noise ORDER BY v <-> q.v) y) x
WHERE q.id % 100 = 0;
RESET quiver.iterative_scan;
RESET quiver.topk_scan;
RESET enable_sort;
RESET enable_seqscan;
DROP TABLE noise;

-- rows of the first lists leave room for those of others, where memory is short
SELECT setseed(0.5);
SET work_mem = '2MB';
CREATE TABLE noise AS
SELECT i AS id, (SELECT array_agg(random()) FROM generate_series(1, 32) WHERE i > 0)::vector(32) AS v
FROM generate_series(1, 120000) i;
SELECT setseed(0.1);
CREATE TABLE queries AS
SELECT i AS query, (SELECT array_agg(random()) FROM generate_series(1, 32) WHERE i > 0)::vector(32) AS q
FROM generate_series(1, 20) i;
CREATE INDEX noise_idx ON noise USING quiver_ivf (v vector_l2_ops) WITH (lists = 32);
SET enable_seqscan = off;
SET enable_sort = off;
SET quiver.topk_scan = off;
RESET quiver.probes;
SET quiver.recall = 1;
CREATE TABLE found AS
SELECT query, id FROM queries, LATERAL (SELECT id FROM noise ORDER BY v <-> q LIMIT 20) x;
DROP INDEX noise_idx;
RESET enable_seqscan;
RESET enable_sort;
RESET quiver.recall;
SELECT count(*) > 395 AS nearly_all FROM found JOIN (
	SELECT query, id FROM queries, LATERAL (SELECT id FROM noise ORDER BY v <-> q LIMIT 20) x) y USING (query, id);
DROP TABLE noise, queries, found;

-- rows of plain lists stay in memory
SET work_mem = '64kB';
CREATE TABLE bits AS
SELECT i AS id,
	(SELECT string_agg((random() < 0.5)::int::text, '') FROM generate_series(1, 64) WHERE i > 0)::bit(64) AS v
FROM generate_series(1, 40000) i;
CREATE INDEX bits_idx ON bits USING quiver_ivf (v bit_hamming_ops) WITH (lists = 32);
SET enable_seqscan = off;
SET quiver.probes = 32;
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM bits ORDER BY v <~> (SELECT v FROM bits WHERE id = 1);
FETCH 1 FROM c;
SELECT sum(total_bytes) < 400000 AS little FROM pg_backend_memory_contexts WHERE name = 'quiver ivf scan';
ROLLBACK;
DROP TABLE bits;
RESET quiver.probes;
RESET quiver.topk_scan;
RESET enable_seqscan;
RESET work_mem;

-- rows whose factors have no place beside those of a tiny one are found, also after their list was written again
CREATE TABLE scales (id serial, v vector(32)) WITH (autovacuum_enabled = off);
CREATE INDEX ON scales USING quiver_ivf (v vector_l2_ops) WITH (lists = 1);
INSERT INTO scales (v) SELECT array_fill(1e-5::real, ARRAY[32])::vector;
INSERT INTO scales (v)
SELECT (SELECT array_agg((j = i % 2)::int + (hashint4(i * 32 + j) % 1000) / 1e5) FROM generate_series(1, 32) j)::vector
FROM generate_series(2, 300) i;
SET enable_seqscan = off;
SET quiver.topk_scan = off;
SELECT array_agg((SELECT id FROM scales ORDER BY v <-> (SELECT v FROM scales WHERE id = q) LIMIT 1))
FROM generate_series(201, 211, 2) q;
DELETE FROM scales WHERE id = 1 OR id % 4 = 0;
VACUUM (INDEX_CLEANUP ON) scales;
SELECT array_agg((SELECT id FROM scales ORDER BY v <-> (SELECT v FROM scales WHERE id = q) LIMIT 1))
FROM generate_series(201, 211, 2) q;
RESET quiver.topk_scan;
RESET enable_seqscan;
DROP TABLE scales;

-- with little memory, a search that must find the nearest rows reads them while it reads lists
CREATE TABLE many AS SELECT i AS id, (SELECT array_agg(hashint8extended(i * 1000 + j, 5) % 1000 ORDER BY j)::real[]
	FROM generate_series(1, 16) j)::vector(16) AS v
FROM generate_series(1, 40000) i;
CREATE INDEX many_lists ON many USING quiver_ivf (v);
ANALYZE many;
SET quiver.topk_way = index;
SET quiver.recall = 1;
SET work_mem = '64kB';
SET enable_seqscan = off;
SELECT count(*) FROM (SELECT id FROM many ORDER BY v <-> (SELECT v FROM many WHERE id = 7) LIMIT 3000) f
JOIN (SELECT id FROM many ORDER BY (v <-> (SELECT v FROM many WHERE id = 7)) + 0 LIMIT 3000) e USING (id);
RESET enable_seqscan;
RESET work_mem;
RESET quiver.recall;
RESET quiver.topk_way;
DROP TABLE many;
-- equal rows, more than a search can have read and waiting
CREATE FUNCTION waves(q int) RETURNS vector LANGUAGE sql IMMUTABLE AS
	'SELECT array_agg(sin(j * 1.7) + q * 0.03 * cos(j * q))::vector FROM generate_series(1, 32) j';
CREATE TABLE same AS SELECT i AS id, waves(0)::vector(32) AS v FROM generate_series(1, 40000) i;
CREATE INDEX same_lists ON same USING ivfflat (v vector_l2_ops) WITH (lists = 1);
ANALYZE same;
SET enable_seqscan = off;
SELECT q, (SELECT count(*) FROM (SELECT id FROM same ORDER BY v <-> waves(q) LIMIT 10) x) FROM generate_series(1, 4) q;
RESET enable_seqscan;
DROP TABLE same;
DROP FUNCTION waves;
-- after most rows are deleted, the nearest hundreds are of more groups: VACUUM measures that
CREATE FUNCTION grouped(i int, part int) RETURNS real[] LANGUAGE sql IMMUTABLE AS
	'SELECT array_agg(hashint4extended(part, j) % 1000 + 0.3 * (hashint4extended(i, j) % 1000) ORDER BY j)::real[]
	FROM generate_series(1, 64) j';
CREATE TABLE thin AS SELECT i AS id, grouped(i, i % 150)::vector(64) AS v FROM generate_series(1, 15000) i;
CREATE INDEX thin_lists ON thin USING quiver_ivf (v);
DELETE FROM thin WHERE id % 4 <> 0;
VACUUM ANALYZE thin;
SELECT recall > 0.92 AS found FROM quiver_recall('thin_lists', 200, 60);
DROP TABLE thin;
DROP FUNCTION grouped;
