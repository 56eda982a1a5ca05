-- quiver_graph on vector: operators, plans, options, settings

SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS vector;
CREATE EXTENSION IF NOT EXISTS quiver;
RESET client_min_messages;
SET enable_seqscan = off;

-- A plan, without what versions from 18 say about settings that are off.
CREATE FUNCTION pg_temp.plan(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		IF line !~ '^ *Disabled: true$' THEN
			RETURN NEXT line;
		END IF;
	END LOOP;
END $$;

-- l2

CREATE TABLE t (id int, val vector(3));
INSERT INTO t VALUES (1, '[1,2,3]'), (2, '[1,1,1]'), (3, '[-4,5,0.5]'), (4, NULL), (5, '[0,0,0]');
CREATE INDEX t_idx ON t USING quiver_graph (val vector_l2_ops);
INSERT INTO t VALUES (6, '[1,2,4]'), (7, '[0,0,0]'), (8, NULL);

EXPLAIN (COSTS OFF) SELECT * FROM t ORDER BY val <-> '[3,3,3.2]' LIMIT 3;
SELECT id, val FROM t ORDER BY val <-> '[3,3,3.2]' LIMIT 3;
SELECT count(*) FROM (SELECT * FROM t ORDER BY val <-> '[0,0,0]' LIMIT 20) x;
SELECT count(*) FROM (SELECT * FROM t ORDER BY val <-> (SELECT NULL::vector) LIMIT 20) x;
SELECT pg_temp.plan('SELECT count(*) FROM t');

UPDATE t SET val = '[3,3,3.25]' WHERE id = 3;
DELETE FROM t WHERE id = 1;
SELECT id, val FROM t ORDER BY val <-> '[3,3,3.2]' LIMIT 3;
VACUUM t;
SELECT id, val FROM t ORDER BY val <-> '[3,3,3.2]' LIMIT 3;

TRUNCATE t;
SELECT * FROM t ORDER BY val <-> '[3,3,3]' LIMIT 3;
INSERT INTO t VALUES (9, '[1,2,3]');
SELECT * FROM t ORDER BY val <-> '[3,3,3]' LIMIT 3;
DROP TABLE t;

-- ip

CREATE TABLE t (id int, val vector(3));
INSERT INTO t VALUES (1, '[1,2,3]'), (2, '[1,1,1]'), (3, '[-4,5,0.5]'), (4, NULL), (5, '[0,0,0]');
CREATE INDEX t_idx ON t USING quiver_graph (val vector_ip_ops);
INSERT INTO t VALUES (6, '[1,2,4]'), (7, '[0,0,0]'), (8, NULL);

EXPLAIN (COSTS OFF) SELECT * FROM t ORDER BY val <#> '[3,3,3.2]' LIMIT 3;
SELECT id, val FROM t ORDER BY val <#> '[3,3,3.2]' LIMIT 3;
SELECT count(*) FROM (SELECT * FROM t ORDER BY val <#> '[0,0,0]' LIMIT 20) x;
SELECT count(*) FROM (SELECT * FROM t ORDER BY val <#> (SELECT NULL::vector) LIMIT 20) x;
SELECT pg_temp.plan('SELECT count(*) FROM t');

UPDATE t SET val = '[3,3,3.25]' WHERE id = 3;
DELETE FROM t WHERE id = 1;
SELECT id, val FROM t ORDER BY val <#> '[3,3,3.2]' LIMIT 3;
VACUUM t;
SELECT id, val FROM t ORDER BY val <#> '[3,3,3.2]' LIMIT 3;

TRUNCATE t;
SELECT * FROM t ORDER BY val <#> '[3,3,3]' LIMIT 3;
INSERT INTO t VALUES (9, '[1,2,3]');
SELECT * FROM t ORDER BY val <#> '[3,3,3]' LIMIT 3;
DROP TABLE t;

-- cosine

CREATE TABLE t (id int, val vector(3));
INSERT INTO t VALUES (1, '[1,2,3]'), (2, '[1,1,1]'), (3, '[-4,5,0.5]'), (4, NULL), (5, '[0,0,0]');
CREATE INDEX t_idx ON t USING quiver_graph (val vector_cosine_ops);
INSERT INTO t VALUES (6, '[1,2,4]'), (7, '[0,0,0]'), (8, NULL);

EXPLAIN (COSTS OFF) SELECT * FROM t ORDER BY val <=> '[3,3,3.2]' LIMIT 3;
SELECT id, val FROM t ORDER BY val <=> '[3,3,3.2]' LIMIT 3;
SELECT count(*) FROM (SELECT * FROM t ORDER BY val <=> '[0,0,0]' LIMIT 20) x;
SELECT count(*) FROM (SELECT * FROM t ORDER BY val <=> (SELECT NULL::vector) LIMIT 20) x;
SELECT pg_temp.plan('SELECT count(*) FROM t');

UPDATE t SET val = '[3,3,3.25]' WHERE id = 3;
DELETE FROM t WHERE id = 1;
SELECT id, val FROM t ORDER BY val <=> '[3,3,3.2]' LIMIT 3;
VACUUM t;
SELECT id, val FROM t ORDER BY val <=> '[3,3,3.2]' LIMIT 3;

TRUNCATE t;
SELECT * FROM t ORDER BY val <=> '[3,3,3]' LIMIT 3;
INSERT INTO t VALUES (9, '[1,2,3]');
SELECT * FROM t ORDER BY val <=> '[3,3,3]' LIMIT 3;
DROP TABLE t;

-- the operator must be the index's

CREATE TABLE t (id int, val vector(3));
INSERT INTO t SELECT i, ARRAY[i, i % 7, i % 3]::vector FROM generate_series(1, 60) i;
CREATE INDEX t_idx ON t USING quiver_graph (val vector_l2_ops);
SET enable_seqscan = on;
EXPLAIN (COSTS OFF) SELECT id FROM t ORDER BY val <=> '[3,3,3]' LIMIT 2;
SET enable_seqscan = off;

-- plans: a filter, a join, a prepared statement

EXPLAIN (COSTS OFF) SELECT id FROM t WHERE id > 5 ORDER BY val <-> '[3,3,3]' LIMIT 2;
SELECT id FROM t WHERE id > 5 ORDER BY val <-> '[3,3,0]' LIMIT 2;
SELECT pg_temp.plan('SELECT a.id, b.id FROM (SELECT * FROM t WHERE id < 3) a,
	LATERAL (SELECT id FROM t ORDER BY t.val <-> a.val LIMIT 1) b');
SELECT a.id, b.id FROM (SELECT * FROM t WHERE id < 3) a,
	LATERAL (SELECT id FROM t ORDER BY t.val <-> a.val LIMIT 1) b ORDER BY 1;
PREPARE nearest(vector) AS SELECT id FROM t ORDER BY val <-> $1 LIMIT 2;
EXPLAIN (COSTS OFF) EXECUTE nearest('[9,2,0]');
EXECUTE nearest('[9,2,0]');
EXECUTE nearest('[20,6,2]');
DEALLOCATE nearest;

-- a cursor

BEGIN;
DECLARE c CURSOR FOR SELECT id FROM t ORDER BY val <-> '[1,1,1]';
FETCH 2 FROM c;
FETCH 1 FROM c;
CLOSE c;
COMMIT;

-- properties

SELECT amname, pg_indexam_has_property(a.oid, 'can_order') AS can_order,
	pg_indexam_has_property(a.oid, 'can_unique') AS can_unique,
	pg_indexam_has_property(a.oid, 'can_multi_col') AS can_multi_col,
	pg_indexam_has_property(a.oid, 'can_exclude') AS can_exclude,
	pg_indexam_has_property(a.oid, 'can_include') AS can_include
FROM pg_am a WHERE amname = 'quiver_graph';
SELECT p, pg_index_has_property('t_idx', p)
FROM unnest(ARRAY['clusterable', 'index_scan', 'bitmap_scan', 'backward_scan']) p;
SELECT p, pg_index_column_has_property('t_idx', 1, p)
FROM unnest(ARRAY['asc', 'desc', 'orderable', 'distance_orderable', 'returnable',
	'search_array', 'search_nulls']) p;

-- what an index cannot be

CREATE UNIQUE INDEX ON t USING quiver_graph (val vector_l2_ops);
CREATE INDEX ON t USING quiver_graph (val vector_l2_ops, val vector_l2_ops);
CREATE INDEX ON t USING quiver_graph (val vector_l2_ops) INCLUDE (val);
\set VERBOSITY sqlstate
CREATE INDEX ON t USING quiver_graph (val vector_l2_ops DESC);
\set VERBOSITY default
CREATE INDEX ON t USING quiver_graph (id);
CLUSTER t USING t_idx;
CREATE INDEX t_default ON t USING quiver_graph (val);
SELECT pg_get_indexdef('t_default'::regclass);
DROP INDEX t_default;

-- options

CREATE INDEX t_idx2 ON t USING quiver_graph (val vector_l2_ops) WITH (m = 2, ef_construction = 4);
SELECT pg_get_indexdef('t_idx2'::regclass);
SELECT reloptions FROM pg_class WHERE relname = 't_idx2';
ALTER INDEX t_idx2 SET (ef_construction = 300);
REINDEX INDEX t_idx2;
ALTER INDEX t_idx2 RESET (m);
DROP INDEX t_idx2;
CREATE INDEX ON t USING quiver_graph (val vector_l2_ops) WITH (m = 1);
CREATE INDEX ON t USING quiver_graph (val vector_l2_ops) WITH (m = 101);
CREATE INDEX ON t USING quiver_graph (val vector_l2_ops) WITH (ef_construction = 3);
CREATE INDEX ON t USING quiver_graph (val vector_l2_ops) WITH (ef_construction = 1001);
CREATE INDEX ON t USING quiver_graph (val vector_l2_ops) WITH (m = 16, ef_construction = 31);
CREATE INDEX ON t USING quiver_graph (val vector_l2_ops) WITH (lists = 10);

-- settings

SHOW quiver.ef_search;
SET quiver.ef_search = -1;
SET quiver.ef_search = 65536;
SET quiver.ef_search = 65535;
RESET quiver.ef_search;
SHOW quiver.iterative_scan;
SET quiver.iterative_scan = on;
SET quiver.iterative_scan = relaxed_order;
SET quiver.iterative_scan = strict_order;
SET quiver.iterative_scan = off;
RESET quiver.iterative_scan;
SHOW quiver.max_scan_tuples;
SET quiver.max_scan_tuples = 0;
SHOW quiver.scan_mem_multiplier;
SET quiver.scan_mem_multiplier = 0;
SET quiver.scan_mem_multiplier = 1001;
SET quiver.bogus = 1;

-- iterative scans: all rows, nearest first

SET quiver.ef_search = 1;
SET quiver.iterative_scan = strict_order;
SELECT count(*), bool_and(d >= before) FROM (SELECT d, lag(d, 1, 0) OVER () AS before FROM
	(SELECT val <-> '[9,2,0]' AS d FROM t ORDER BY val <-> '[9,2,0]' LIMIT 10) x) y;
SET quiver.iterative_scan = relaxed_order;
SELECT count(DISTINCT id) FROM (SELECT id FROM t ORDER BY val <-> '[9,2,0]' LIMIT 100) x;
RESET quiver.ef_search;
RESET quiver.iterative_scan;

-- functions of extension quiver

SELECT quiver_check('t_idx');
SELECT access_method, row_count, dimensions, bytes % 8192 AS rest, nodes, deleted_nodes, max_degree,
	mean_degree > 1 AS linked, code_bits, own_code_bits, entry_points > 0 AS entered
FROM quiver_index_info('t_idx');
SELECT quiver_version() ~ '^[0-9]+[.][0-9]+[.][0-9]+' AS version;
SELECT quiver_pgvector_version() ~ '^0[.]8[.][0-9]+$' AS version;
SELECT quiver_simd_level() = ANY (quiver_simd_levels()) AS level;
CREATE INDEX t_btree ON t (id);
SELECT quiver_check('t_btree');
SELECT quiver_check('t');
SELECT quiver_check(0);
SELECT quiver_index_info('t_btree');
CREATE ROLE regress_quiver_other;
SET ROLE regress_quiver_other;
SELECT quiver_check('t_idx');
SELECT quiver_index_info('t_idx');
RESET ROLE;
DROP ROLE regress_quiver_other;
SET quiver.simd_level = 'scalar';
SELECT quiver_simd_level();
SELECT id FROM t ORDER BY val <-> '[9,2,0]' LIMIT 2;
SET quiver.simd_level = 'abacus';
RESET quiver.simd_level;

DROP TABLE t;
