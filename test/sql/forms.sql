-- Forms of a distance: an index serves 1 - (v <=> $1), functions, radii alone, and longer sort keys
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS vector;
CREATE EXTENSION IF NOT EXISTS quiver;
CREATE TABLE t (id int PRIMARY KEY, tag int, v vector(3) NOT NULL);
INSERT INTO t SELECT i, i % 10, ARRAY[cos(i * 0.01), sin(i * 0.01), 0.1 * (i % 5)]::vector
	FROM generate_series(1, 500) i;
CREATE INDEX t_v ON t USING quiver_graph (v vector_cosine_ops);
VACUUM ANALYZE t;
SET enable_seqscan = off;
SET quiver.ef_search = 500;
-- plans: a falling form, a function, a longer key, a threshold
EXPLAIN (COSTS OFF) SELECT id, 1 - (v <=> '[1,0,0]') AS s FROM t WHERE 1 - (v <=> '[1,0,0]') > 0.9
	ORDER BY s DESC LIMIT 5;
EXPLAIN (COSTS OFF) SELECT id FROM t ORDER BY cosine_distance(v, '[1,0,0]') LIMIT 5;
EXPLAIN (COSTS OFF) SELECT id FROM t ORDER BY v <=> '[1,0,0]', id LIMIT 5;
EXPLAIN (COSTS OFF) SELECT id FROM t ORDER BY round((v <=> '[1,0,0]')::numeric, 2), id LIMIT 5;
EXPLAIN (COSTS OFF) WITH s AS (SELECT id, (2 - (v <=> '[1,0,0]')) / 2 AS score FROM t)
	SELECT * FROM s WHERE score >= 0.9 ORDER BY score DESC NULLS LAST LIMIT 5;

-- the same rows as of the table, with parameters, in views, partitions, joins and PL/pgSQL
CREATE FUNCTION compare(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	found text;
	exact text;
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	EXECUTE format('SELECT string_agg(x::text, '' '') FROM (%s) x', query) INTO found;
	PERFORM set_config('quiver.topk_scan', 'off', true), set_config('enable_indexscan', 'off', true),
		set_config('plan_cache_mode', 'force_custom_plan', true);
	EXECUTE format('SELECT string_agg(x::text, '' '') FROM (%s) x', query) INTO exact;
	PERFORM set_config('quiver.topk_scan', 'on', true), set_config('enable_indexscan', 'on', true),
		set_config('plan_cache_mode', 'auto', true);
	RETURN CASE WHEN plan::text LIKE '%Quiver Top-K Scan%' THEN 'served' ELSE 'not served' END ||
		CASE WHEN found IS NOT DISTINCT FROM exact THEN ', same' ELSE format(', %s, not %s', found, exact) END;
END $$;
CREATE VIEW scores AS SELECT id, tag, v, 1 - (v <=> '[1,0,0]') AS s FROM t;
SELECT compare('SELECT id, s FROM scores WHERE tag < 3 ORDER BY s DESC, id LIMIT 7');
SELECT compare('SELECT id, tag, s FROM scores JOIN (VALUES (1), (2)) l(n) ON tag = n WHERE s > 0.5
	ORDER BY s DESC, id LIMIT 7');
SELECT compare('SELECT id FROM t ORDER BY inner_product(v, ''[1,0,0]'') DESC, id LIMIT 3');
SELECT compare('SELECT max(1 - (v <=> ''[1,0,0]'')) FROM t');
SELECT compare('SELECT t.id, n.id FROM t, LATERAL (SELECT id FROM t n
	ORDER BY 1 - (n.v <=> t.v) DESC, id LIMIT 2) n WHERE t.id < 4 ORDER BY 1, 2');
-- not served: the farthest rows, what does not turn in one way, other metrics, columns
SELECT compare('SELECT id FROM t ORDER BY 1 - (v <=> ''[1,0,0]''), id LIMIT 5');
SELECT compare('SELECT id FROM t ORDER BY abs((v <=> ''[1,0,0]'') - 1), id LIMIT 5');
SELECT compare('SELECT id FROM t ORDER BY 1 - (v <-> ''[1,0,0]'') DESC, id LIMIT 5');
SELECT compare('SELECT id FROM t ORDER BY (v <=> ''[1,0,0]'') * tag, id LIMIT 5');
SELECT compare('SELECT id FROM t ORDER BY 1 / (1 - (v <=> ''[1,0,0]'')), id LIMIT 5');
SELECT compare('SELECT id FROM t ORDER BY 1 - (v <=> ''[1,0,0]'') + random() * 0 DESC, id LIMIT 5');
SET plan_cache_mode = force_generic_plan;
PREPARE similar_to_it(vector, float8, int) AS SELECT id FROM t WHERE 1 - (v <=> $1) > $2
	ORDER BY 1 - (v <=> $1) DESC, id LIMIT $3;
SET enable_incremental_sort = off;
EXPLAIN (COSTS OFF) EXECUTE similar_to_it('[1,0,0]', 0.99, 5);
RESET enable_incremental_sort;
EXECUTE similar_to_it('[1,0,0]', 0.99, 3);
EXECUTE similar_to_it('[1,0,0]', 1.5, 3);
EXECUTE similar_to_it('[1,0,0]', NULL, 3);
EXECUTE similar_to_it(NULL, 0.5, 3);
PREPARE weighed(vector, float8) AS SELECT id FROM t ORDER BY $2 * (v <=> $1), id LIMIT 3;
EXECUTE weighed('[1,0,0]', -1);
PREPARE shifted(vector, float8) AS SELECT id FROM t ORDER BY $2 - (v <=> $1) DESC, id LIMIT 3;
EXPLAIN (COSTS OFF) EXECUTE shifted('[1,0,0]', 'NaN');
EXECUTE shifted('[1,0,0]', 1);
RESET plan_cache_mode;

-- a radius alone: all rows within
EXPLAIN (COSTS OFF) SELECT count(*) FROM t WHERE v <=> '[1,0,0]' < 0.05;
SELECT compare('SELECT count(*), sum(id) FROM t WHERE v <=> ''[1,0,0]'' < 0.05');
SELECT compare('SELECT count(*), sum(id) FROM t WHERE v <=> ''[1,0,0]'' BETWEEN 0.01 AND 0.05 AND tag = 3');
SELECT compare('SELECT count(*), sum(id) FROM t WHERE 0.95 <= 1 - cosine_distance(''[1,0,0]'', v)');
SELECT compare('SELECT count(*), sum(id) FROM t WHERE v <=> ''[1,0,0]'' < -1');
SELECT compare('SELECT count(*), sum(id) FROM t WHERE v <=> ''[1,0,0]'' < 5');
SELECT compare('SELECT count(*), sum(a.id), sum(t.id) FROM (SELECT id, v FROM t
	WHERE id % 100 = 0) a JOIN t ON t.v <=> a.v < 0.001');
SELECT compare('SELECT count(*), sum(id)
	FROM (VALUES (''[1,0,0]''::vector, 1), (''[0,1,0]'', 2), (''[0,-1,0]'', 3)) a(w, id)
	WHERE EXISTS (SELECT 1 FROM t WHERE 1 - (t.v <=> a.w) > 0.999)');
BEGIN;
EXPLAIN (COSTS OFF) UPDATE t SET tag = -1 WHERE v <=> '[1,0,0]' < 0.0001;
UPDATE t SET tag = -1 WHERE v <=> '[1,0,0]' < 0.0001;
EXPLAIN (COSTS OFF) DELETE FROM t WHERE v <=> '[1,0,0]' < 0.0001;
DELETE FROM t WHERE v <=> '[1,0,0]' < 0.0001 RETURNING id, tag;
ROLLBACK;
-- few rows are expected within: the first one is not looked for in the table
CREATE TABLE many (id int, v vector(3), text text DEFAULT repeat('x', 100));
INSERT INTO many (id, v)
	SELECT i, ARRAY[cos(i * 0.01), sin(i * 0.01), i * 0.01]::vector FROM generate_series(1, 50000) i;
CREATE INDEX ON many USING quiver_graph (v vector_cosine_ops);
ANALYZE many;
RESET enable_seqscan;
RESET quiver.ef_search;
SELECT compare('SELECT EXISTS (SELECT 1 FROM many WHERE v <=> ''[1,0,0]'' < 0.05)');
EXPLAIN (COSTS OFF) SELECT id FROM many WHERE 1 - (v <=> '[1,0,0]') > 0.95 LIMIT 1;
SET enable_seqscan = off;
SET quiver.ef_search = 500;
DROP TABLE many;
-- what is assigned to a part of a value
CREATE TYPE pair AS (f float8, g int);
CREATE TABLE parts (id int, v vector(3) NOT NULL, a float8[] DEFAULT '{7,7}', c pair DEFAULT ROW (7, 7)::pair);
INSERT INTO parts SELECT id, v FROM t;
CREATE INDEX ON parts USING quiver_graph (v vector_l2_ops);
EXPLAIN (COSTS OFF) UPDATE parts SET a[1] = v <-> '[2,0,0]', c.f = 1 - (v <-> '[2,0,0]') WHERE v <-> '[2,0,0]' < 1.01;
UPDATE parts SET a[1] = v <-> '[2,0,0]', c.f = 1 - (v <-> '[2,0,0]') WHERE v <-> '[2,0,0]' < 1.01
	RETURNING a[1] = v <-> '[2,0,0]' AS a, (c).f = 1 - (v <-> '[2,0,0]') AS c;
DROP TABLE parts;
-- a zero vector is at no distance: NaN is greater than all numbers
SELECT compare('SELECT count(*) FROM t WHERE 1 - (v <=> ''[0,0,0]'') > 0.5');
SELECT compare('SELECT count(*) FROM t WHERE v <=> ''[0,0,0]'' < 0.5');
SELECT compare('SELECT count(*) FROM (SELECT id FROM t WHERE 1 - (v <=> ''[0,0,0]'') > 0.5
	ORDER BY 1 - (v <=> ''[0,0,0]'') DESC LIMIT 5) x');
-- conditions that fail for distances of rows that are not asked for
CREATE TABLE far (id int PRIMARY KEY, v vector(3) NOT NULL);
INSERT INTO far SELECT i, ARRAY[i * 100, 0, 0]::vector FROM generate_series(1, 500) i;
CREATE INDEX ON far USING quiver_graph (v vector_l2_ops);
SELECT compare('SELECT id FROM far WHERE id % 1000 = 999 AND exp(-power(v <-> ''[-3000,0,0]'', 2)) > 0.5
	ORDER BY v <-> ''[-3000,0,0]'' LIMIT 5');
SELECT compare('SELECT id FROM far WHERE id % 1000 = 999 AND (1e9 * (v <-> ''[-3000,0,0]''))::int < 5
	ORDER BY v <-> ''[-3000,0,0]'' LIMIT 5');
DROP TABLE far;

-- rows that no index has come first where SQL has them first
CREATE TABLE n (id int PRIMARY KEY, v vector(3));
INSERT INTO n SELECT id, v FROM t WHERE id <= 200;
CREATE INDEX n_v ON n USING quiver_ivf (v vector_cosine_ops);
ANALYZE n;
SET plan_cache_mode = force_generic_plan;
PREPARE first_of AS SELECT id FROM n ORDER BY 1 - (v <=> '[1,0,0]') DESC, id LIMIT 3;
EXPLAIN (COSTS OFF) EXECUTE first_of;
EXECUTE first_of;
INSERT INTO n VALUES (1000, NULL);
EXECUTE first_of;
INSERT INTO n VALUES (1001, '[0,0,0]');
EXECUTE first_of;
CREATE FUNCTION strategies(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, FORMAT JSON) ' || query INTO plan;
	RETURN substring(plan::text from '"Strategies": [[][^]]*[]]');
END $$;
SELECT strategies('EXECUTE first_of');
RESET plan_cache_mode;
-- planned now, the table is read; not if these rows are not asked for
SELECT compare('SELECT id FROM n ORDER BY 1 - (v <=> ''[1,0,0]'') DESC, id LIMIT 3');
SELECT compare('SELECT id FROM n WHERE v IS NOT NULL ORDER BY 1 - (v <=> ''[1,0,0]'') DESC, id LIMIT 3');
DELETE FROM n WHERE id = 1001;
REINDEX INDEX n_v;
SELECT compare('SELECT id FROM n ORDER BY 1 - (v <=> ''[1,0,0]'') DESC, id LIMIT 3');
SELECT compare('SELECT id FROM n ORDER BY 1 - (v <=> ''[1,0,0]'') DESC NULLS LAST, id LIMIT 3');
SELECT compare('SELECT id FROM n WHERE v <=> ''[0,1,0]'' < 0.5 ORDER BY 1 - (v <=> ''[1,0,0]'') DESC, id LIMIT 3');
SELECT compare('SELECT id FROM n ORDER BY coalesce(v <=> ''[1,0,0]'', 0), id LIMIT 3');
SELECT compare('SELECT id FROM n WHERE v IS NOT NULL ORDER BY coalesce(v <=> ''[1,0,0]'', 0), id LIMIT 3');
SELECT compare('SELECT id FROM n ORDER BY v <=> ''[1,0,0]'' NULLS FIRST, id LIMIT 3');
DELETE FROM n WHERE id = 1000;
REINDEX INDEX n_v;
SELECT compare('SELECT id FROM n ORDER BY v <=> ''[1,0,0]'' NULLS FIRST, id LIMIT 3');

-- VACUUM finds that there are none any more, if none came since the last one
CREATE TEMP TABLE filled AS SELECT * FROM n;
CREATE INDEX ON filled USING quiver_graph (v vector_cosine_ops);
ANALYZE filled;
CREATE FUNCTION first_filled() RETURNS text LANGUAGE sql RETURN
	compare('SELECT id FROM filled ORDER BY 1 - (v <=> ''[1,0,0]'') DESC, id LIMIT 3');
BEGIN;
INSERT INTO filled VALUES (1002, NULL);
ROLLBACK;
SELECT first_filled();
VACUUM filled;
SELECT first_filled();
BEGIN;
INSERT INTO filled VALUES (1002, NULL);
ROLLBACK;
VACUUM filled;
SELECT first_filled();
VACUUM filled;
SELECT first_filled();
INSERT INTO filled VALUES (1002, NULL), (1003, NULL);
VACUUM filled;
VACUUM filled;
SELECT first_filled();
UPDATE filled SET v = '[1,0,0]' WHERE id = 1002;
VACUUM filled;
SELECT first_filled();
DELETE FROM filled WHERE id = 1003;
VACUUM filled;
SELECT first_filled();
-- zero vectors are not looked for
BEGIN;
INSERT INTO filled VALUES (1004, NULL), (1005, '[0,0,0]');
ROLLBACK;
SELECT first_filled();
VACUUM filled;
VACUUM filled;
SELECT first_filled();
SELECT compare('SELECT id FROM filled ORDER BY v <=> ''[1,0,0]'' NULLS FIRST, id LIMIT 3');
DROP FUNCTION first_filled;

-- nearest groups
CREATE TABLE docs (id int PRIMARY KEY, title text);
INSERT INTO docs SELECT i, 'title ' || i FROM generate_series(0, 99) i;
CREATE TABLE chunks (id int PRIMARY KEY, doc int NOT NULL, part text, v vector(3) NOT NULL);
INSERT INTO chunks SELECT i, i / 5, 'p' || i % 3, ARRAY[cos(i * 0.37), sin(i * 0.37), 0.1 * (i % 7)]::vector
	FROM generate_series(0, 499) i;
CREATE INDEX chunks_v ON chunks USING quiver_graph (v vector_cosine_ops);
VACUUM ANALYZE docs, chunks;
SELECT compare('SELECT doc, min(v <=> ''[1,0,0]'') AS d FROM chunks GROUP BY doc ORDER BY d, doc LIMIT 5');
SELECT compare('SELECT doc, 1 - min(v <=> ''[1,0,0]'') AS s FROM chunks GROUP BY doc ORDER BY s DESC, doc LIMIT 5');
SELECT compare('SELECT doc, max(1 - (v <=> ''[1,0,0]'')) AS s, min(v <=> ''[1,0,0]'') FROM chunks
	GROUP BY doc ORDER BY s DESC, doc LIMIT 5');
SELECT compare('SELECT doc, part, max(1 - (v <=> ''[1,0,0]'')) AS s FROM chunks WHERE id % 3 > 0
	GROUP BY doc, part ORDER BY s DESC, doc, part LIMIT 5');
SELECT compare('SELECT upper(part), round(min(v <=> ''[1,0,0]'')::numeric, 1) FROM chunks
	GROUP BY upper(part) ORDER BY min(v <=> ''[1,0,0]''), 1 LIMIT 2');
SELECT compare('SELECT doc, min(v <=> ''[1,0,0]'') AS d FROM chunks WHERE v <=> ''[1,0,0]'' < 0.05
	GROUP BY doc ORDER BY d, doc LIMIT 50');
EXPLAIN (COSTS OFF) SELECT docs.id, title, min(v <=> '[1,0,0]') AS d FROM chunks JOIN docs ON docs.id = doc
	GROUP BY docs.id ORDER BY d LIMIT 3;
SELECT compare('SELECT docs.id, title, min(v <=> ''[1,0,0]'') AS d FROM chunks JOIN docs ON docs.id = doc
	WHERE title LIKE ''%7%'' GROUP BY docs.id ORDER BY d, docs.id LIMIT 5');
SELECT compare('SELECT c.id, x.doc FROM chunks c, LATERAL (SELECT doc FROM chunks n GROUP BY doc
	ORDER BY min(n.v <=> c.v), doc LIMIT 2) x
	WHERE c.id < 5 ORDER BY c.id, x.doc');
EXPLAIN (COSTS OFF) SELECT * FROM (SELECT DISTINCT ON (doc) doc, id, v <=> '[1,0,0]' AS d FROM chunks
	ORDER BY doc, v <=> '[1,0,0]') x ORDER BY d LIMIT 3;
SELECT compare('SELECT * FROM (SELECT DISTINCT ON (doc) doc, id, part, v <=> ''[1,0,0]'' AS d FROM chunks
	ORDER BY doc, v <=> ''[1,0,0]'') x ORDER BY d, doc LIMIT 5');
SELECT compare('WITH b AS (SELECT DISTINCT ON (doc) doc, title, 1 - (v <=> ''[1,0,0]'') AS s
	FROM chunks JOIN docs ON docs.id = doc WHERE part <> ''p1'' ORDER BY doc, s DESC)
	SELECT title, s FROM b ORDER BY s DESC, title LIMIT 5');
SELECT compare('SELECT doc, d FROM (SELECT DISTINCT ON (doc) doc, v <=> ''[1,0,0]'' AS d FROM chunks
	ORDER BY doc, v <=> ''[1,0,0]'') x WHERE doc > 50 ORDER BY d, doc LIMIT 5');
SELECT compare('SELECT lower(part), min(v <=> ''[1,0,0]'') FROM chunks GROUP BY lower(part) ORDER BY 2, 1 LIMIT 2');
SELECT compare('SELECT doc, grouping(doc), min(v <=> ''[1,0,0]'') FROM chunks GROUP BY doc ORDER BY 3, 1 LIMIT 2');
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET enable_hashagg = off;
SELECT compare('SELECT lower(part), min(v <=> ''[1,0,0]'') FROM chunks GROUP BY lower(part) ORDER BY 2, 1 LIMIT 2');
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
RESET enable_hashagg;
-- not served: other aggregates, the farthest, rows that are wanted in the order of their groups
SELECT compare('SELECT * FROM (SELECT DISTINCT ON (doc) doc, v <=> ''[1,0,0]'' AS d FROM chunks
	ORDER BY doc, v <=> ''[1,0,0]'') x LIMIT 5');
SELECT compare('SELECT * FROM (SELECT DISTINCT ON (doc) doc, v <=> ''[1,0,0]'' AS d FROM chunks
	ORDER BY doc, v <=> ''[1,0,0]'') x ORDER BY d DESC, doc LIMIT 5');
SELECT compare('SELECT doc, min(v <=> ''[1,0,0]'') AS d, count(*) FROM chunks GROUP BY doc ORDER BY d, doc LIMIT 3');
SELECT compare('SELECT doc, max(v <=> ''[1,0,0]'') AS d FROM chunks GROUP BY doc ORDER BY d, doc LIMIT 3');
SELECT compare('SELECT doc, avg(v <=> ''[1,0,0]'') AS d FROM chunks GROUP BY doc ORDER BY d, doc LIMIT 3');
-- distances that are NaN come first where similarities fall
SET plan_cache_mode = force_generic_plan;
PREPARE least AS SELECT doc, 1 - min(v <=> '[1,0,0]') AS s FROM chunks GROUP BY doc ORDER BY s DESC, doc LIMIT 3;
PREPARE greatest AS SELECT doc, max(1 - (v <=> '[1,0,0]')) AS s FROM chunks GROUP BY doc ORDER BY s DESC, doc LIMIT 3;
EXECUTE least;
EXECUTE greatest;
INSERT INTO chunks VALUES (500, 100, 'p', '[0,0,0]'), (501, 1, 'p', '[0,0,0]');
EXECUTE least;
EXECUTE greatest;
-- and so do groups without a distance; groups that have one leave NULLs out
ALTER TABLE chunks ALTER v DROP NOT NULL;
DELETE FROM chunks WHERE id >= 500;
REINDEX INDEX chunks_v;
EXECUTE least;
SELECT compare('SELECT doc, 1 - min(v <=> ''[1,0,0]'') AS s FROM chunks GROUP BY doc ORDER BY s DESC, doc LIMIT 4');
INSERT INTO chunks VALUES (500, 100, 'p', NULL), (501, 1, 'p', NULL), (502, 101, 'p', '[0,0,0]'),
	(503, 2, 'p', '[0,0,0]');
EXECUTE least;
EXECUTE greatest;
RESET plan_cache_mode;
SELECT compare('SELECT doc, 1 - min(v <=> ''[1,0,0]'') AS s FROM chunks GROUP BY doc ORDER BY s DESC, doc LIMIT 5');
SELECT compare('SELECT doc, max(1 - (v <=> ''[1,0,0]'')) AS s FROM chunks GROUP BY doc ORDER BY s DESC, doc LIMIT 5');

-- partitions, and row security
CREATE TABLE p (id int, v vector(3) NOT NULL) PARTITION BY RANGE (id);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (250);
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (250) TO (501);
INSERT INTO p SELECT id, v FROM t;
CREATE INDEX ON p USING quiver_graph (v vector_cosine_ops);
ANALYZE p;
EXPLAIN (COSTS OFF) SELECT id FROM p ORDER BY 1 - (v <=> '[-1,0,0]') DESC LIMIT 5;
SELECT compare('SELECT id FROM p ORDER BY 1 - (v <=> ''[-1,0,0]'') DESC, id LIMIT 5');
-- a radius of another table, partition by partition
CREATE TABLE o (k int, v vector(3) NOT NULL) PARTITION BY LIST (k);
CREATE TABLE o1 PARTITION OF o FOR VALUES IN (1);
CREATE TABLE o2 PARTITION OF o FOR VALUES IN (2);
CREATE TABLE i (k int, v vector(3) NOT NULL) PARTITION BY LIST (k);
CREATE TABLE i1 PARTITION OF i FOR VALUES IN (1);
CREATE TABLE i2 PARTITION OF i FOR VALUES IN (2);
INSERT INTO o SELECT 1 + id % 2, v FROM t WHERE id % 50 = 0;
INSERT INTO i SELECT 1 + id % 2, v FROM t;
CREATE INDEX ON i USING quiver_graph (v vector_l2_ops);
ANALYZE o, i;
SET enable_partitionwise_join = on;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
SELECT compare('SELECT count(*) FROM o JOIN i ON o.k = i.k AND o.v <-> i.v < 0.05');
RESET enable_partitionwise_join;
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_material;
DROP TABLE o, i;
-- groups are forgotten at each rescan
SELECT compare('SELECT count(*), sum(d) FROM generate_series(1, 20) q,
	LATERAL (SELECT doc, min(v <=> ARRAY[q, 1, 0]::vector) AS d FROM chunks WHERE v IS NOT NULL
		GROUP BY doc ORDER BY d LIMIT 5) x');
SELECT compare('SELECT q, (SELECT array_agg(doc ORDER BY d, doc) FROM
	(SELECT doc, min(v <=> ARRAY[q, 1, 0]::vector) AS d FROM chunks WHERE v IS NOT NULL
		GROUP BY doc ORDER BY d LIMIT 5) x) FROM generate_series(1, 20) q ORDER BY q');
-- and so is the memory that they took
CREATE FUNCTION executor_memory() RETURNS bigint LANGUAGE sql VOLATILE AS $$
	SELECT sum(used_bytes)::bigint FROM pg_backend_memory_contexts
	WHERE name ~ '^(quiver |ExecutorState|ExprContext|TupleHash)' $$;
SELECT max(used) FILTER (WHERE q = 300) <= max(used) FILTER (WHERE q = 30) + 1000 AS all_of_it, count(*)
	FROM (SELECT q, CASE WHEN q IN (30, 300) THEN executor_memory() END AS used FROM generate_series(1, 300) q,
		LATERAL (SELECT doc, min(v <=> ARRAY[q, 1, 0]::vector) AS d FROM chunks WHERE v IS NOT NULL
			GROUP BY doc ORDER BY d LIMIT 5) x) y;
DROP FUNCTION executor_memory();
CREATE ROLE forms_reader;
GRANT SELECT ON t TO forms_reader;
GRANT ALL ON FUNCTION compare(text) TO forms_reader;
ALTER TABLE t ENABLE ROW LEVEL SECURITY;
CREATE POLICY three ON t USING (tag = 3);
SET ROLE forms_reader;
SELECT compare('SELECT id FROM t WHERE 1 - (v <=> ''[1,0,0]'') > 0.8
	ORDER BY 1 - (v <=> ''[1,0,0]'') DESC, id LIMIT 5');
RESET ROLE;
DROP TABLE p, n, t, chunks, docs CASCADE;
DROP OWNED BY forms_reader;
DROP ROLE forms_reader;
