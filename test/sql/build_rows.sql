-- A build counts the rows of its index before it plans. What it makes does not depend on ANALYZE.

SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS vector;
CREATE EXTENSION IF NOT EXISTS quiver;
RESET client_min_messages;

-- rows of a tenant lie together; those of a kind are everywhere; a third has no vector or zeros
CREATE TABLE counted (id int, tenant int, kind int, v vector(48), h halfvec(48))
WITH (autovacuum_enabled = false);
INSERT INTO counted
SELECT i, (i - 1) / 1500, i % 8, v,
	CASE i % 6 WHEN 0 THEN NULL WHEN 1 THEN array_fill(0, ARRAY[48])::halfvec(48) ELSE v END
FROM generate_series(1, 12000) i,
	LATERAL (SELECT array_agg(sin(i * 0.37 + d * (i % 40)))::vector(48) v FROM generate_series(1, 48) d) x;
CREATE TABLE indexes (n int, am text, what text);
INSERT INTO indexes
SELECT row_number() OVER (ORDER BY w, am), am, what
FROM unnest(ARRAY['quiver_ivf', 'quiver_graph']) am,
	unnest(ARRAY['(v vector_l2_ops)', '(h halfvec_cosine_ops)', '((v::halfvec(48)) halfvec_ip_ops)',
		'(v vector_l2_ops) WHERE tenant = 1', '(v vector_l2_ops) WHERE kind = 1',
		'(v vector_l2_ops) WHERE kind < 0']) WITH ORDINALITY x (what, w);

-- what an index is: lists or entry points for each root of the rows; and all else that a plan decides
CREATE FUNCTION made(index text, OUT per_root numeric, OUT rest text) LANGUAGE sql AS $$
	SELECT round(coalesce(lists, entry_points) / sqrt(greatest(row_count, 1))::numeric, 1),
		concat_ws(' ', lists, entry_points, probes, balance, row_count, mean_degree, pg_relation_size($1::regclass))
	FROM quiver_index_info($1::regclass)
$$;
CREATE FUNCTION try(am text, what text, OUT per_root numeric, OUT rest text) LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('CREATE INDEX tried ON counted USING %I %s', am, what);
	SELECT * FROM made('tried') INTO per_root, rest;
	DROP INDEX tried;
END $$;
CREATE TABLE before AS SELECT n, t.* FROM indexes, try(am, what) t;
ANALYZE counted;
CREATE TABLE after AS SELECT n, t.* FROM indexes, try(am, what) t;
SELECT am, what, b.per_root, b = a AS same
FROM indexes JOIN before b USING (n) JOIN after a USING (n) ORDER BY n;

-- the planner's number of rows is of no account
UPDATE pg_class SET reltuples = 3000000, relpages = 10 WHERE oid = 'counted'::regclass;
SELECT n, t.rest = a.rest AS same
FROM indexes JOIN after a USING (n), try(am, what) t WHERE n IN (1, 2, 7) ORDER BY n;

-- other ways to build
SET client_min_messages = warning;
CREATE INDEX counted_ivf ON counted USING quiver_ivf (v vector_l2_ops) WHERE tenant = 1;
CREATE INDEX counted_graph ON counted USING quiver_graph (v vector_l2_ops) WHERE tenant = 1;
CREATE INDEX CONCURRENTLY counted_ivf_c ON counted USING quiver_ivf (v vector_l2_ops) WHERE tenant = 1;
CREATE INDEX CONCURRENTLY counted_graph_c ON counted USING quiver_graph (v vector_l2_ops) WHERE tenant = 1;
CREATE INDEX counted_id ON counted (id);
CREATE VIEW all_made AS
SELECT made('counted_ivf') = made('counted_ivf_c') AS ivf, made('counted_graph') = made('counted_graph_c') AS graph,
	(made('counted_ivf')).per_root AS lists, (made('counted_graph')).per_root AS entry_points;
SELECT * FROM all_made;
REINDEX TABLE counted;
SELECT * FROM all_made;
REINDEX TABLE CONCURRENTLY counted;
SELECT * FROM all_made;
CLUSTER counted USING counted_id;
SELECT * FROM all_made;
VACUUM FULL counted;
SELECT * FROM all_made;
RESET client_min_messages;
-- most rows have gone, and nothing says so yet
DELETE FROM counted WHERE tenant > 1;
REINDEX INDEX counted_ivf;
SELECT per_root FROM made('counted_ivf');
TRUNCATE counted;
SELECT * FROM all_made;

-- partitions: each has the lists of its own rows
CREATE TABLE parted (id int, v vector(8)) PARTITION BY RANGE (id);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (100);
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (100) TO (10000);
INSERT INTO parted SELECT i, ARRAY(SELECT sin(i * d) FROM generate_series(1, 8) d) FROM generate_series(0, 9999) i;
CREATE INDEX ON parted USING quiver_ivf (v vector_l2_ops);
SELECT (made('parted_1_v_idx')).per_root AS few, (made('parted_2_v_idx')).per_root AS many;

-- a transaction that has made the rows, and one whose snapshot is old
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT count(*) > 0 AS rows FROM parted;
CREATE TABLE own (v vector(8));
INSERT INTO own SELECT v FROM parted;
CREATE INDEX own_idx ON own USING quiver_ivf (v vector_l2_ops);
SELECT per_root FROM made('own_idx');
COMMIT;

-- forecasts count, too
SELECT rows FROM quiver_estimate('own', 'v', 'quiver_ivf');
DELETE FROM own WHERE v <-> '[0,0,0,0,0,0,0,0]' < 2;
SELECT e.rows = count(v) AS counted FROM own, quiver_estimate('own_idx') e GROUP BY e.rows;

-- a table of more blocks than are read at first, with a row in each: all, some, few, none
CREATE TABLE wide (id int, filler text, v vector(3)) WITH (autovacuum_enabled = false);
ALTER TABLE wide ALTER filler SET STORAGE PLAIN;
INSERT INTO wide SELECT i, repeat('x', 7000), ARRAY[i % 7, i % 11, 1] FROM generate_series(1, 3000) i;
SELECT pg_relation_size('wide') / current_setting('block_size')::int AS blocks;
CREATE INDEX wide_all ON wide USING quiver_ivf (v vector_l2_ops);
CREATE INDEX wide_some ON wide USING quiver_ivf (v vector_l2_ops) WHERE id BETWEEN 1001 AND 1400;
CREATE INDEX wide_each ON wide USING quiver_graph (v vector_l2_ops) WHERE id % 3 = 0;
CREATE INDEX wide_few ON wide USING quiver_graph (v vector_l2_ops) WHERE id IN (77, 2001, 2002);
CREATE INDEX wide_none ON wide USING quiver_ivf (v vector_l2_ops) WHERE id < 0;
SELECT index, e.rows BETWEEN 0.8 * row_count AND 1.2 * row_count AS close, row_count
FROM unnest('{wide_all,wide_some,wide_each,wide_few,wide_none}'::regclass[]) index,
	quiver_index_info(index), quiver_estimate(index) e;
DROP TABLE wide;

DROP VIEW all_made;
DROP TABLE own, parted, counted, before, after, indexes;
DROP FUNCTION try;
DROP FUNCTION made;
