-- Rows come in the order of their distances, and all of them, where many rows of one node
-- stand between others whose bounds are below their distance.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS vector;
CREATE EXTENSION IF NOT EXISTS quiver;
CREATE FUNCTION order_value(i int) RETURNS vector LANGUAGE sql IMMUTABLE AS
    'SELECT array_agg(sin(i * j + j * j * 0.3))::vector FROM generate_series(1, 16) j';
CREATE TABLE in_order (id int, v vector(16)) WITH (autovacuum_enabled = off);
INSERT INTO in_order SELECT i, order_value(i) FROM generate_series(1, 120) i;
INSERT INTO in_order SELECT 120 + j, order_value(9 * (1 + j % 8)) FROM generate_series(1, 400) j;
CREATE INDEX in_order_idx ON in_order USING quiver_graph (v) WITH (m = 4, ef_construction = 10);
CREATE FUNCTION out_of_order(query int, OUT late bigint, OUT lost bigint) LANGUAGE plpgsql AS $$
DECLARE
    last float8 := 0;
    d float8;
    seen bigint := 0;
BEGIN
    late := 0;
    FOR d IN EXECUTE format('SELECT v <-> %1$L FROM in_order ORDER BY v <-> %1$L', order_value(query)) LOOP
        seen := seen + 1;
        IF d < last - 1e-6 THEN
            late := late + 1;
        END IF;
        last := d;
    END LOOP;
    lost := 520 - seen;
END $$;

SET enable_seqscan = off;
SET enable_sort = off;
SET quiver.topk_scan = off;
SET quiver.ef_search = 200;
SET quiver.iterative_scan = off;
SELECT sum(late) AS late, sum(lost) AS lost FROM generate_series(1, 100) i, out_of_order(-i);
SET quiver.iterative_scan = strict_order;
SELECT sum(late) AS late, sum(lost) AS lost FROM generate_series(1, 100) i, out_of_order(-i);
DROP TABLE in_order;
DROP FUNCTION out_of_order, order_value;

-- Rows of islands: a search that goes on from one finds rows of others late, and goes deeper for it.
CREATE FUNCTION order_island(i int, island int) RETURNS vector LANGUAGE sql IMMUTABLE AS
    'SELECT array_agg(hashint4extended(island, j) % 1000 + 0.6 * (hashint4extended(i, j) % 1000) ORDER BY j)::vector
	FROM generate_series(1, 256) j';
CREATE TABLE islands AS SELECT i AS id, order_island(i, i % 60)::vector(256) AS v FROM generate_series(1, 8000) i;
CREATE INDEX islands_v ON islands USING quiver_graph (v);
VACUUM ANALYZE islands;
RESET enable_sort;
RESET quiver.topk_scan;
RESET quiver.ef_search;
RESET quiver.iterative_scan;
SET quiver.topk_way = 'index';
SELECT k, avg((SELECT count(*) FROM (SELECT id FROM islands ORDER BY v <-> q LIMIT k) f
	JOIN (SELECT id FROM islands ORDER BY (v <-> q) + 0 LIMIT k) e USING (id))) / k > 0.955 AS found
FROM (VALUES (100), (600)) k(k), (SELECT order_island(-i, i % 60) AS q FROM generate_series(1, 20) i) q
GROUP BY k ORDER BY k;
RESET quiver.topk_way;
-- rows in groups of ten, as chunks of documents: more rows than a group has are as near as they should be
CREATE TABLE chunks AS SELECT i AS id, subvector(order_island(i, i % 600), 1, 64)::vector(64) AS v
FROM generate_series(1, 6000) i;
CREATE INDEX chunks_graph ON chunks USING quiver_graph (v);
CREATE INDEX chunks_lists ON chunks USING quiver_ivf (v);
VACUUM ANALYZE chunks;
SELECT i AS index, k, recall > 0.95 AS found
FROM unnest('{chunks_graph, chunks_lists}'::regclass[]) i, unnest('{16, 20, 50}'::int[]) k, quiver_recall(i, k, 100)
ORDER BY i::text, k;
DROP TABLE chunks;
-- groups of twelve, and a condition that whole groups meet: rows that fail it use up the depth, too
CREATE FUNCTION order_chunk(i int, chunk int) RETURNS vector LANGUAGE sql IMMUTABLE AS
    'SELECT array_agg((hashint4extended(chunk, j) & 4095) / 4096.0 - 0.5 +
	((hashint4extended(i, j) & 4095) / 4096.0 - 0.5) * 0.02 ORDER BY j)::vector FROM generate_series(1, 64) j';
CREATE TABLE chunks AS SELECT i AS id, hashint4extended(i % 1000, 7) & 1 AS part, repeat(md5(i::text), 10) AS pad,
	order_chunk(i, i % 1000)::vector(64) AS v FROM generate_series(1, 12000) i;
CREATE INDEX chunks_graph ON chunks USING quiver_graph (v vector_cosine_ops);
VACUUM ANALYZE chunks;
SELECT part, avg((SELECT count(*) FROM (SELECT id FROM chunks WHERE part = p.part ORDER BY v <=> q LIMIT 10) f
	JOIN (SELECT id FROM chunks WHERE part = p.part ORDER BY (v <=> q) + 0 LIMIT 10) e USING (id))) / 10 > 0.955
	AS found
FROM unnest('{0, 1}'::int[]) p(part),
	(SELECT order_chunk(i + 500000, i) AS q FROM generate_series(1, 50) i OFFSET 0) q
GROUP BY part ORDER BY part;
DROP TABLE chunks;
DROP FUNCTION order_chunk;
-- where memory is short, it rather finds as many rows (before 18 the sort in order_island() calls for jit)
SET jit = off;
SET quiver.topk_scan = off;
SET enable_sort = off;
SET work_mem = '1MB';
SELECT min((SELECT count(*) FROM (SELECT id FROM islands ORDER BY v <-> q LIMIT 2000) f))
FROM (SELECT order_island(-i, i % 60) AS q FROM generate_series(1, 20) i) q;
DROP TABLE islands;
DROP FUNCTION order_island;
