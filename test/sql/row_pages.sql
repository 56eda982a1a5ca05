-- Row pages suit the table as it is: which rows have entries, after whatever has become of it
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS vector;
CREATE EXTENSION IF NOT EXISTS quiver;
CREATE SCHEMA row_pages;
SET search_path = row_pages, public;
CREATE FUNCTION make_vector(i int) RETURNS vector LANGUAGE sql IMMUTABLE AS $$
	SELECT array_agg((hashint4(i * 32 + j) % 1000) / 1000.0 + i % 5 ORDER BY j)::vector(32)
	FROM generate_series(1, 32) j $$;
CREATE FUNCTION add_rows(name text, first int, last int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('INSERT INTO %I SELECT i, i %% 50, 0, make_vector(i) FROM generate_series(%s, %s) i',
		name, first, last);
END $$;
-- A search under a condition that one row in 50 meets: entries that meet it, and whether many others
-- were fetched.
CREATE FUNCTION search(name text, OUT entries int, OUT others bool) LANGUAGE plpgsql AS $$
DECLARE
	line text;
	proposed int;
BEGIN
	FOR line IN EXECUTE format('EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF)
			SELECT id FROM %I WHERE a = 7 ORDER BY v <-> make_vector(3) LIMIT 10', name) LOOP
		entries := coalesce(entries, substring(line FROM 'Entries Scored: (\d+)')::int);
		proposed := coalesce(proposed, substring(line FROM 'Rows Proposed: (\d+)')::int);
	END LOOP;
	others := proposed > 1000;
END $$;
SET enable_seqscan = off;

-- An index that is built on a table whose first half is empty.
CREATE TABLE half (id int, a int, b int, v vector(32)) WITH (autovacuum_enabled = off);
SELECT add_rows('half', 1, 10000);
UPDATE half SET b = 1;
VACUUM ANALYZE half;
CREATE INDEX half_v ON half USING quiver_graph (v vector_l2_ops) INCLUDE (a);
SELECT * FROM search('half');
REINDEX INDEX half_v;
SELECT * FROM search('half'), quiver_check('half_v') AS checked;
DROP INDEX half_v;
CREATE INDEX half_v ON half USING quiver_ivf (v vector_l2_ops) INCLUDE (a);
SELECT * FROM search('half'), quiver_check('half_v') AS checked;
-- a partial index of rows that lie together
DROP INDEX half_v;
CREATE INDEX half_v ON half USING quiver_graph (v vector_l2_ops) INCLUDE (a) WHERE id <= 2000;
CREATE VIEW part AS SELECT * FROM half WHERE id <= 2000;
SELECT * FROM search('part'), quiver_check('half_v') AS checked;

-- Row pages begin again when they have entries for few of the rows: VACUUM has made them of one row.
CREATE TABLE grown (id int, a int, b int, v vector(32)) WITH (autovacuum_enabled = off, fillfactor = 80);
CREATE INDEX grown_v ON grown USING quiver_graph (v vector_l2_ops) INCLUDE (a);
CREATE INDEX grown_ivf ON grown USING quiver_ivf (v vector_ip_ops) INCLUDE (a);
SELECT add_rows('grown', 1, 1);
VACUUM grown;
SELECT add_rows('grown', 2, 6000);
SELECT * FROM search('grown'), quiver_check('grown_v') AS checked, quiver_check('grown_ivf') AS checked_ivf;
VACUUM ANALYZE grown;
SELECT * FROM search('grown'), quiver_check('grown_v') AS checked, quiver_check('grown_ivf') AS checked_ivf;
-- they do not when there is nothing to gain
CREATE TABLE sizes AS SELECT pg_relation_size('grown_v') AS graph, pg_relation_size('grown_ivf') AS lists;
VACUUM (INDEX_CLEANUP ON) grown;
SELECT graph = pg_relation_size('grown_v') AS same, lists = pg_relation_size('grown_ivf') AS same_lists FROM sizes;

-- rows move to other lines
DROP INDEX grown_ivf;
UPDATE grown SET b = b + 1;
VACUUM grown;
UPDATE grown SET b = b + 1;
VACUUM grown;
UPDATE grown SET b = b + 1;
VACUUM grown;
UPDATE grown SET b = b + 1;
VACUUM ANALYZE grown;
SELECT * FROM search('grown'), quiver_check('grown_v') AS checked;
REINDEX INDEX grown_v;
SELECT * FROM search('grown'), quiver_check('grown_v') AS checked;

-- a few rows far away do not move the mean, by which the codes of all others are made
CREATE TABLE outliers (id int, v vector(32)) WITH (autovacuum_enabled = off);
INSERT INTO outliers SELECT i, CASE WHEN i % 50 = 0 THEN array_fill(i / 100, ARRAY[32])::vector
	ELSE (SELECT array_agg(1 + (hashint4(i * 32 + j) % 1000) / 20000.0 ORDER BY j)
		FROM generate_series(1, 32) j)::vector END
FROM generate_series(1, 5000) i;
CREATE FUNCTION measures_few() RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	PERFORM set_config('quiver.topk_way', 'row_pages', true), set_config('enable_seqscan', 'off', true);
	EXECUTE 'EXPLAIN (ANALYZE, FORMAT json) SELECT id FROM outliers
		ORDER BY v <-> (SELECT v FROM outliers WHERE id = 7) LIMIT 10' INTO plan;
	RETURN 1000 > coalesce(nullif((jsonb_path_query_first(plan::jsonb, '$.**."Nodes Read"'))::int, 0),
		(jsonb_path_query_first(plan::jsonb, '$.**."Records Read"'))::int);
END $$;
CREATE INDEX outliers_v ON outliers USING quiver_graph (v vector_l2_ops);
VACUUM ANALYZE outliers;
SELECT measures_few();
DROP INDEX outliers_v;
CREATE INDEX outliers_v ON outliers USING quiver_ivf (v vector_l2_ops);
SELECT measures_few();

DROP SCHEMA row_pages CASCADE;
