-- What a review of the top-k scan found (rows lost or shown twice, work done in vain): each of these
-- failed once.  test/t/032_topk_places.pl has the one about shared buffers.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS vector;
CREATE EXTENSION IF NOT EXISTS quiver;
SET jit = off;
SET max_parallel_workers_per_gather = 0;
SET enable_sort = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;

CREATE TABLE found (id int PRIMARY KEY, a int, part int, v vector(16));
INSERT INTO found SELECT i, i % 100, CASE WHEN i % 10 = 0 THEN i ELSE 0 END,
		(SELECT array_agg(hashint4(i * 16 + j) % 1000 ORDER BY j) FROM generate_series(1, 16) j)::vector
	FROM generate_series(1, 20000) i;
CREATE INDEX ON found (a);
CREATE INDEX ON found (part);
CREATE TABLE two (k int PRIMARY KEY);
INSERT INTO two VALUES (17), (19001);
ANALYZE found, two;
CREATE FUNCTION dear(i int) RETURNS bool LANGUAGE plpgsql STABLE COST 10000 AS 'BEGIN RETURN i % 100 = 3; END';
CREATE TABLE seen (i int);
CREATE FUNCTION noted(i int) RETURNS bool LANGUAGE plpgsql VOLATILE AS $$
BEGIN INSERT INTO seen VALUES (i); RETURN i % 100 = 3; END $$;

-- What EXPLAIN says of a query's node: its lines, and the rows that the node's index scan found for it.
CREATE FUNCTION explained(query text) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF, FORMAT JSON) ' || query INTO plan;
	RETURN jsonb_path_query_first(plan, 'strict $.** ? (@."Custom Plan Provider" == "Quiver Top-K Scan")');
END $$;
-- The memory of searches, and what is done while one is under way.
CREATE FUNCTION search_memory() RETURNS bigint LANGUAGE sql VOLATILE AS $$
	SELECT sum(total_bytes)::bigint FROM pg_backend_memory_contexts
	WHERE name ~ '^quiver (stream|graph scan|ivf scan|members|top-k search)' $$;
CREATE FUNCTION memory_of(query text, n int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	c refcursor;
	most bigint := 0;
BEGIN
	OPEN c FOR EXECUTE query;
	FOR i IN 1 .. n LOOP
		MOVE FORWARD 200 FROM c;
		most := greatest(most, search_memory());
	END LOOP;
	CLOSE c;
	RETURN most;
END $$;
CREATE FUNCTION while_set(query text, OUT rows int, OUT different int) LANGUAGE plpgsql AS $$
DECLARE
	r record;
	ids int[];
BEGIN
	FOR r IN EXECUTE query LOOP
		ids := ids || r.id;
		EXIT WHEN cardinality(ids) = 500;
		IF cardinality(ids) = 40 THEN
			PERFORM set_config('quiver.iterative_scan', 'relaxed_order', true);
		END IF;
	END LOOP;
	PERFORM set_config('quiver.iterative_scan', 'strict_order', true);
	SELECT count(*), count(DISTINCT id) INTO rows, different FROM unnest(ids) id;
END $$;
CREATE FUNCTION nearest_of(condition text, k text) RETURNS text LANGUAGE sql AS $$
	SELECT format('SELECT id FROM found WHERE %s ORDER BY v <-> (SELECT v FROM found WHERE id = 7) LIMIT %s',
		condition, k) $$;
CREATE FUNCTION count_of(query text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	n int;
BEGIN
	EXECUTE format('SELECT count(*) FROM (%s) x', query) INTO n;
	RETURN n;
END $$;

CREATE FUNCTION findings() RETURNS TABLE (n int, finding text, result text) LANGUAGE plpgsql AS $$
DECLARE
	before jsonb;
	number int;
	memory text;
BEGIN
	n := 1; finding := 'rows, and different ones, when a setting changes';
	SELECT concat_ws(' ', w.rows, w.different) INTO result FROM while_set(nearest_of('true', 'ALL')) w;
	RETURN NEXT;

	n := 2; finding := 'a LIMIT of more rows than work_mem / 64';
	PERFORM set_config('work_mem', '64kB', true);
	result := concat_ws(' ', count_of(nearest_of('true', '1024')), count_of(nearest_of('true', '1025')),
		count_of(nearest_of('true', '4000')), count_of(nearest_of('true', '10 OFFSET 6000')));
	RETURN NEXT;

	n := 3; finding := 'a rare condition that no index knows, with little memory';
	result := concat_ws(' ', count_of(nearest_of('id % 700 = 3', '10')), count_of(nearest_of('id % 700 = 3', '20')),
		count_of(nearest_of('id % 700 = 3', '28')));
	RETURN NEXT;
	PERFORM set_config('work_mem', '4MB', true);

	n := 4; finding := 'rows that a dear condition is tested for';
	SELECT CASE WHEN (e->>'Rows Fetched')::int < 2500 THEN 'few' ELSE e->>'Rows Fetched' END INTO result
		FROM explained(nearest_of('dear(id)', '10')) e;
	RETURN NEXT;

	n := 5; finding := 'a volatile condition is tested once for each row';
	result := format('%s, twice for %s, node: %s', count_of(nearest_of('noted(id)', '10')),
		(SELECT count(*) - count(DISTINCT i) FROM seen), explained(nearest_of('noted(id)', '10')) IS NOT NULL);
	TRUNCATE seen;
	RETURN NEXT;

	n := 6; finding := 'the plan of a condition that one row in a hundred passes';
	PERFORM set_config('enable_sort', 'on', true);
	result := coalesce(explained(nearest_of('a = 3', '10'))->>'Custom Plan Provider', 'another');
	PERFORM set_config('enable_sort', 'off', true);
	RETURN NEXT;

	n := 6; finding := 'the plan of a join that two rows pass';
	PERFORM set_config('enable_sort', 'on', true);
	result := coalesce(explained('SELECT id FROM found JOIN two ON k = id
		ORDER BY v <-> (SELECT v FROM found WHERE id = 7) LIMIT 10')->>'Custom Plan Provider', 'another');
	PERFORM set_config('enable_sort', 'off', true);
	RETURN NEXT;

	n := 7; finding := 'what the first query of a session, and one after VACUUM, read';
	before := explained(nearest_of('a < 5', '10')) - 'Last Distance';
	PERFORM count_of(nearest_of('a < ' || i, '10')) FROM generate_series(1, 20) i;
	result := CASE WHEN before = explained(nearest_of('a < 5', '10')) - 'Last Distance'
		THEN 'the same' ELSE 'other things' END;
	RETURN NEXT;

	n := 8; finding := 'members of a frequent value that are collected';
	PREPARE frequent(int) AS SELECT id FROM found WHERE part = $1
		ORDER BY v <-> (SELECT v FROM found WHERE id = 7) LIMIT 10;
	SELECT CASE WHEN (jsonb_path_query_first(e, '$.Plans[*]."Actual Rows"'))::numeric < 9000
		THEN 'not all' ELSE 'all' END INTO result FROM explained('EXECUTE frequent(0)') e;
	DEALLOCATE frequent;
	RETURN NEXT;

	n := 10; finding := 'times that a join which needs all rows reads the table, with much memory and little';
	result := '';
	FOREACH memory IN ARRAY ARRAY['4MB', '64kB'] LOOP
		PERFORM set_config('work_mem', memory, true);
		SELECT result || CASE WHEN (e->>'Rows Fetched')::int < 60000 THEN 'few ' ELSE 'many ' END
			INTO result FROM explained('SELECT id FROM found JOIN two ON k = id
				ORDER BY v <-> (SELECT v FROM found WHERE id = 7) LIMIT 10') e;
	END LOOP;
	PERFORM set_config('work_mem', '4MB', true);
	RETURN NEXT;

	n := 11; finding := 'memory of a search for many rows, in shares of work_mem';
	result := (SELECT string_agg(CASE WHEN memory_of(nearest_of('true', '16000'), 70) < 1.5 * kb * 1024
			THEN 'once' ELSE 'more' END, ' ')
		FROM unnest(ARRAY[1024, 4096]) kb, set_config('work_mem', kb::text, true));
	PERFORM set_config('work_mem', '4MB', true);
	RETURN NEXT;

	n := 12; finding := 'rows fetched by a plan made when the table was empty, beside a later one';
	PREPARE old(int) AS SELECT id FROM filled WHERE id % 100 = $1
		ORDER BY v <-> (SELECT v FROM found WHERE id = 7) LIMIT 10;
	PERFORM explained('EXECUTE old(3)');
	INSERT INTO filled SELECT id, v FROM found;
	number := explained('EXECUTE old(3)')->'Rows Fetched';
	ANALYZE filled;
	SELECT CASE WHEN number < greatest(10000, 2 * (e->>'Rows Fetched')::int) THEN 'few'
			ELSE format('%s, not %s', number, e->>'Rows Fetched') END INTO result FROM explained('EXECUTE old(3)') e;
	DEALLOCATE old;
	RETURN NEXT;

	n := 13; finding := 'IS NOT NULL is no condition';
	PERFORM set_config('quiver.ef_search', '500', true), set_config('quiver.probes', '50', true);
	result := CASE WHEN explained(nearest_of('true', '10')) - '{Filter,Rows Removed by Filter}'::text[]
			= explained(nearest_of('v IS NOT NULL', '10')) - '{Filter,Rows Removed by Filter}'::text[]
		THEN 'the same' ELSE explained(nearest_of('v IS NOT NULL', '10'))->>'Strategies' END;
	PERFORM set_config('quiver.ef_search', '0', true), set_config('quiver.probes', '0', true);
	RETURN NEXT;
END $$;
SET plan_cache_mode = force_generic_plan;
CREATE TABLE filled (id int, v vector(16)) WITH (autovacuum_enabled = off);
CREATE INDEX found_v ON found USING quiver_graph (v vector_l2_ops);
CREATE INDEX filled_v ON filled USING quiver_graph (v vector_l2_ops);
SELECT * FROM findings();
DROP INDEX found_v;
DROP TABLE filled;
CREATE TABLE filled (id int, v vector(16)) WITH (autovacuum_enabled = off);
CREATE INDEX found_v ON found USING quiver_ivf (v vector_l2_ops);
CREATE INDEX filled_v ON filled USING quiver_ivf (v vector_l2_ops);
SELECT * FROM findings();
-- after VACUUM of one row
DELETE FROM found WHERE id = 9017;
VACUUM (INDEX_CLEANUP ON) found;
SELECT * FROM findings() WHERE finding ~ 'VACUUM';
-- ivfflat returns as many rows with a condition and without one
DROP INDEX found_v;
CREATE INDEX found_v ON found USING ivfflat (v vector_l2_ops) WITH (lists = 100);
SELECT count_of(nearest_of('true', '500')), count_of(nearest_of('id > 0', '500')),
	count_of(nearest_of('true', '10 OFFSET 5000'));
RESET plan_cache_mode;

-- what searches of a join have found is no part of the next one's choice
DROP INDEX found_v;
CREATE INDEX found_order ON found USING quiver_graph (v vector_l2_ops);
SELECT c AS condition, n->'Strategies' AS strategies, (n->>'Rows Proposed')::int < 40000 AS few
FROM unnest(ARRAY['id > 0', 'part + 0 < 10000']) c,
	explained(format('SELECT count(*) FROM (SELECT v FROM found WHERE id <= 400) q,
		LATERAL (SELECT id FROM found f WHERE %s ORDER BY f.v <-> q.v LIMIT 10) x', c)) n;
-- a limit on rows that is not reached is no end
SET work_mem = '64kB';
SET quiver.max_scan_tuples = 1000000;
SELECT count_of(nearest_of('id % 100 = 3', '20')), count_of(nearest_of('true', '400'));
SET quiver.max_scan_tuples = 300;
SET quiver.topk_way = index;
SELECT count_of(nearest_of('id % 100 = 3', '20')) < 20 AS ended;
RESET quiver.topk_way;
-- no other way reads more than the limit lets a search read
SET quiver.max_scan_tuples = 3000;
SELECT n->'Strategies' AS strategies, (n->>'Rows Proposed')::int <= 6000 AS ended
FROM explained(nearest_of('id % 10000 = 3', '20')) n;
RESET quiver.max_scan_tuples;
RESET work_mem;
-- a search without a condition that memory ends: rows that it has found come before another way is tried
SET work_mem = '64kB';
SET quiver.topk_way = index;
SELECT explained('SELECT id FROM found ORDER BY v <-> (SELECT v FROM found WHERE id = 8) LIMIT 11')
	->'Strategies' AS strategies;
RESET quiver.topk_way;
RESET work_mem;

-- a page with the number of all rows: a window of all rows
SET enable_seqscan = off;
SET enable_sort = on;
SELECT count(*), min(n), max(n) FROM
	(SELECT id, count(*) OVER () AS n FROM found WHERE id <= 9000
		ORDER BY v <-> '[1,2,3,4,5,6,7,8,1,2,3,4,5,6,7,8]' LIMIT 10) x;
-- and ordered ones whose first rows need the last
SELECT count(*) AS frames, count(*) FILTER (WHERE n = (SELECT count(*) FROM found WHERE id <= 9000)) AS whole FROM
	(SELECT count(*) OVER (ORDER BY v <-> '[1,2,3,4,5,6,7,8,1,2,3,4,5,6,7,8]'
		ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS n FROM found WHERE id <= 9000 LIMIT 3) x;
SELECT explained('SELECT id, ntile(4) OVER (ORDER BY v <-> ''[1,2,3,4,5,6,7,8,1,2,3,4,5,6,7,8]'') FROM found LIMIT 3')
	IS NULL AS is_sorted;
SELECT count(*) AS rows, bool_and(n = 9000 AND m = 9000) AS whole FROM
	(SELECT row_number() OVER (ORDER BY v <-> '[1,2,3,4,5,6,7,8,1,2,3,4,5,6,7,8]'), count(*) OVER () AS n,
		count(*) OVER (ORDER BY v <-> '[1,2,3,4,5,6,7,8,1,2,3,4,5,6,7,8]'
			ROWS BETWEEN CURRENT ROW AND 10000 FOLLOWING) AS m
		FROM found WHERE id <= 9000 LIMIT 1) x;
-- others need no more rows than are asked for
SELECT explained('SELECT id, row_number() OVER (ORDER BY v <-> ''[1,2,3,4,5,6,7,8,1,2,3,4,5,6,7,8]'')
	FROM found LIMIT 3') IS NOT NULL AS is_scan;
RESET enable_seqscan;

-- a table whose conditions seem to leave no row: near rows are looked for before all are sorted
SELECT explained(nearest_of('a % 2 = 1 AND a % 4 < 2 AND part % 2 = 0', '10')) IS NOT NULL AS is_scan;
SET enable_sort = off;
DROP INDEX found_order;

-- many equal rows, read from the table: some wait in memory, and each comes once
CREATE TABLE items AS SELECT i AS id, i % 2 AS g, '[1,2,3]'::vector(3) AS v FROM generate_series(1, 20000) i;
CREATE INDEX items_v ON items USING quiver_graph (v vector_l2_ops);
VACUUM ANALYZE items;
SET work_mem = '64kB';
SET quiver.topk_way = 'table';
SELECT memory_of('SELECT id FROM items WHERE g = 1 ORDER BY v <-> ''[0,0,0]'' LIMIT 9999', 1) < 128 * 1024 AS little;
SELECT count(*), count(DISTINCT id) FROM
	(SELECT id FROM items WHERE g = 1 ORDER BY v <-> '[0,0,0]' LIMIT 9999) x;
RESET quiver.topk_way;
RESET work_mem;

-- a value that has no distance to any row: the first rows will do, and its dimensions count
DROP INDEX items_v;
UPDATE items SET v = ARRAY[id, 1, 2] WHERE id > 2;
UPDATE items SET v = NULL WHERE id = 1;
UPDATE items SET v = '[0,0,0]' WHERE id = 2;
CREATE FUNCTION seen_for_zero() RETURNS bool LANGUAGE sql VOLATILE AS $$
	SELECT (explained('SELECT id FROM items ORDER BY v <=> ''[0,0,0]'' LIMIT 5')->>'Rows Proposed')::int < 1000 $$;
CREATE INDEX items_v ON items USING quiver_graph (v vector_cosine_ops);
SELECT seen_for_zero();
SELECT v <=> '[0,0,0]' AS d, count(*) FROM (SELECT v FROM items ORDER BY v <=> '[0,0,0]' LIMIT 5) x GROUP BY 1;
SELECT id FROM items ORDER BY v <=> '[0,0,0,0]' LIMIT 1;
DROP INDEX items_v;
CREATE INDEX items_v ON items USING quiver_ivf (v vector_cosine_ops);
SELECT seen_for_zero();
SELECT v <=> '[0,0,0]' AS d, count(*) FROM (SELECT v FROM items ORDER BY v <=> '[0,0,0]' LIMIT 5) x GROUP BY 1;
SELECT id FROM items ORDER BY v <=> '[0,0,0,0]' LIMIT 1;
DROP FUNCTION seen_for_zero;
DROP TABLE items;

-- what a sort of all rows answers, and exactly: rows without a value, ends set by the user, a radius of hnsw
CREATE TABLE items AS SELECT i AS id,
	(SELECT array_agg(hashint4(i * 8 + j) % 1000) FROM generate_series(1, 8) j)::vector(8) AS v
	FROM generate_series(1, 10000) i;
CREATE INDEX ON items USING hnsw (v vector_l2_ops) WITH (m = 8, ef_construction = 32);
VACUUM ANALYZE items;
CREATE FUNCTION moved(query text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	c refcursor;
	n int;
BEGIN
	OPEN c FOR EXECUTE query;
	MOVE FORWARD ALL FROM c;
	GET DIAGNOSTICS n = ROW_COUNT;
	RETURN n;
END $$;
SET enable_sort = on;
SELECT count(*) = moved('SELECT id FROM items WHERE v <-> ''[1,2,3,4,5,6,7,8]'' < 1200
	ORDER BY v <-> ''[1,2,3,4,5,6,7,8]''')
	FROM items WHERE (v <-> '[1,2,3,4,5,6,7,8]') + 0 < 1200;
SET hnsw.iterative_scan = strict_order;
SET hnsw.max_scan_tuples = 100;
SELECT count_of('SELECT id FROM items WHERE id::text LIKE ''%77'' ORDER BY v <-> ''[1,2,3,4,5,6,7,8]'' LIMIT 100');
RESET hnsw.max_scan_tuples;
RESET hnsw.iterative_scan;
PREPARE one AS SELECT id FROM items WHERE id::text = '777' ORDER BY v <-> '[1,2,3,4,5,6,7,8]' LIMIT 10;
EXECUTE one;
UPDATE items SET v = NULL WHERE id = 777;
EXECUTE one;
DEALLOCATE one;
SELECT count_of('SELECT id FROM items WHERE id::text = ''777'' ORDER BY v <-> ''[1,2,3,4,5,6,7,8]'' LIMIT 10');
-- a similarity is NaN where a vector is zero, and greater than all numbers
CREATE INDEX items_c ON items USING quiver_graph (v vector_cosine_ops);
UPDATE items SET v = '[0,0,0,0,0,0,0,0]' WHERE id % 10 = 0;
SELECT count_of('SELECT id FROM items WHERE 1 - (v <=> ''[9,0,0,0,0,0,0,0]'') > 0.99
	ORDER BY v <=> ''[9,0,0,0,0,0,0,0]'' LIMIT 500');
SET enable_sort = off;
DROP FUNCTION moved;
DROP TABLE items;

-- values that are stored elsewhere: a sort reads them all
CREATE TABLE items AS SELECT i AS id,
	(SELECT array_agg(hashint4(i * 1000 + j) / 2e9 ORDER BY j) FROM generate_series(1, 800) j)::vector(800) AS v
	FROM generate_series(1, 2000) i;
CREATE INDEX ON items USING hnsw (v vector_l2_ops) WITH (m = 4, ef_construction = 10);
VACUUM ANALYZE items;
SET enable_sort = on;
SELECT explained('SELECT id FROM items ORDER BY v <-> (SELECT v FROM items WHERE id = 7) LIMIT 10') IS NOT NULL AS scan;
SET enable_sort = off;
DROP TABLE items;

DROP TABLE found, two, seen, filled;
DROP FUNCTION findings, count_of, nearest_of, while_set, memory_of, search_memory, explained, noted, dear;

-- groups, totals and rows without a value, that the order alone does not give
CREATE TABLE items (id int, g int, e vector(3));
INSERT INTO items SELECT i, i % 50, CASE WHEN i % 50 = 0 THEN NULL WHEN i % 50 = 1 THEN '[0,0,0]'
	ELSE ARRAY[cos(i / 5000.0), sin(i / 5000.0), (i % 7) / 70.0]::vector END FROM generate_series(1, 5000) i;
CREATE INDEX items_l2 ON items USING quiver_ivf (e vector_l2_ops);
VACUUM ANALYZE items;
SET enable_seqscan = off;
SET enable_sort = off;
SET enable_hashagg = off;
SELECT a = ARRAY(SELECT unnest(a) ORDER BY 1) AS ordered, cardinality(a) FROM (
	SELECT ARRAY(SELECT DISTINCT ON (g) g FROM items WHERE e <-> '[1,0,0]' < 0.3 ORDER BY g, e <-> '[1,0,0]')
	FROM generate_series(1, 1) t ORDER BY t LIMIT 1) x (a);
SELECT g, d IS NULL AS without FROM (
	SELECT DISTINCT ON (g) g, e <-> '[1,0,0]' AS d FROM items ORDER BY g, e <-> '[1,0,0]') x ORDER BY g LIMIT 2;
EXPLAIN (COSTS OFF) SELECT g FROM (
	SELECT DISTINCT ON (g) g, e <-> '[1,0,0]' AS d FROM items ORDER BY g, e <-> '[1,0,0]') x
WHERE d < 2 ORDER BY d LIMIT 2;
SELECT count(*) AS without FROM (
	SELECT round((e <-> '[1,0,0]')::numeric, 1) AS d, count(*) FROM items GROUP BY 1 LIMIT 50) x WHERE d IS NULL;
SELECT cardinality(array_agg(id ORDER BY e <-> '[1,0,0]')) AS all FROM items LIMIT 1;
SELECT count(*) FROM (SELECT id FROM items WHERE e IS NULL ORDER BY e <-> '[1,0,0]' LIMIT 10) x;
DROP INDEX items_l2;
CREATE INDEX items_cosine ON items USING quiver_ivf (e vector_cosine_ops);
SELECT count(*) FROM items WHERE g > 1 AND (1 - (e <=> '[1,-0.3,0]'))::numeric(2, 2) > 0.9;
SELECT count(*), cardinality(array_agg(id ORDER BY e <=> '[1,0,0]')) AS all FROM items
WHERE 1 - (e <=> '[1,0,0]') > 0.99;
SET enable_indexscan = off;
SET quiver.topk_scan = off;
SET enable_seqscan = on;
SELECT count(*) FROM items WHERE g > 1 AND (1 - (e <=> '[1,-0.3,0]'))::numeric(2, 2) > 0.9;
SELECT count(*), cardinality(array_agg(id ORDER BY e <=> '[1,0,0]')) AS all FROM items
WHERE 1 - (e <=> '[1,0,0]') > 0.99;
RESET enable_indexscan;
RESET quiver.topk_scan;
RESET enable_seqscan;
RESET enable_sort;
RESET enable_hashagg;
DROP TABLE items;

-- each search of a join may look at as many rows as the user lets it
CREATE TABLE items (id int, v vector(4)) WITH (autovacuum_enabled = off);
INSERT INTO items SELECT i, CASE WHEN i <= 20 THEN ARRAY[10, 0, 0, 0] ELSE ARRAY[1, i % 7, i % 11, i % 13] END::vector
FROM generate_series(1, 2000) i;
CREATE INDEX ON items USING hnsw (v vector_ip_ops);
SET enable_seqscan = off;
SET hnsw.iterative_scan = strict_order;
SET hnsw.max_scan_tuples = 200;
SELECT count(*), count(DISTINCT o.id) FROM (SELECT id, v FROM items ORDER BY id LIMIT 100) o
CROSS JOIN LATERAL (SELECT id FROM items ORDER BY v <#> o.v LIMIT 10) x;
RESET hnsw.max_scan_tuples;
RESET hnsw.iterative_scan;
-- equal rows, of which those in the node itself have gone
DELETE FROM items WHERE id IN (1, 2, 3, 18, 19, 20);
VACUUM (INDEX_CLEANUP ON) items;
SET quiver.topk_way = 'index';
SELECT count(*) FROM (SELECT 1 FROM items WHERE v <#> '[1,0,0,0]' < -5 ORDER BY v <#> '[1,0,0,0]' LIMIT 50) x;
DROP TABLE items;

-- a row on a line without an entry, of a set that knows the lines of some blocks
CREATE TABLE items (id int, part int, pad text, v vector(64)) WITH (toast_tuple_target = 128, autovacuum_enabled = off);
ALTER TABLE items ALTER pad SET STORAGE PLAIN, ALTER v SET STORAGE EXTERNAL;
INSERT INTO items SELECT i, CASE WHEN i = 20100 THEN 1 ELSE 0 END,
	repeat('x', CASE WHEN i <= 20000 THEN 700 ELSE 0 END),
	(SELECT array_agg(sin(i * j)) FROM generate_series(1, 64) j)::vector FROM generate_series(1, 20120) i;
CREATE INDEX ON items USING brin (id) WITH (pages_per_range = 4);
CREATE INDEX ON items (part);
CREATE INDEX ON items USING quiver_graph (v vector_l2_ops);
VACUUM ANALYZE items;
SELECT v AS query FROM items WHERE id = 20100 \gset
SET quiver.topk_way = 'other_indexes';
SELECT id FROM items WHERE part = 1 OR id BETWEEN 2000 AND 18000 ORDER BY v <-> :'query' LIMIT 1;
RESET quiver.topk_way;
RESET enable_seqscan;
DROP TABLE items;

-- answers in another order than that of the index
CREATE TABLE items (id int, g int, e vector(3));
INSERT INTO items VALUES (1, 1, NULL);
INSERT INTO items SELECT i, i / 100 + 2, ARRAY[i, 0, 0] FROM generate_series(2, 5000) i;
CREATE INDEX items_e ON items USING quiver_ivf (e vector_l2_ops) INCLUDE (id);
VACUUM ANALYZE items;
SET enable_seqscan = off;
SET enable_sort = off;
SET enable_hashagg = off;
SELECT id, rank() OVER (ORDER BY e <-> '[5,0,0]') FROM items ORDER BY id LIMIT 2;
SELECT id, rank() OVER (ORDER BY e <-> '[5,0,0]') AS r FROM items ORDER BY r DESC LIMIT 1;
SELECT g, d, count(*) OVER () AS total FROM (
	SELECT DISTINCT ON (g) g, e <-> '[5,0,0]' AS d FROM items ORDER BY g, e <-> '[5,0,0]') x ORDER BY d LIMIT 1;
RESET enable_seqscan;
RESET enable_sort;
RESET enable_hashagg;
-- a row that was not fetched
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM items ORDER BY e <-> '[5,0,0]' LIMIT 5;
FETCH c;
UPDATE items SET id = -1 WHERE CURRENT OF c;
SELECT id FROM items WHERE e = '[5,0,0]';
ROLLBACK;
-- the end that the user has set
DROP INDEX items_e;
CREATE INDEX items_e ON items USING ivfflat (e vector_l2_ops) WITH (lists = 50);
SET enable_seqscan = off;
SET ivfflat.iterative_scan = relaxed_order;
SET ivfflat.max_probes = 3;
SELECT count(*) < 1000 AS ended FROM (SELECT 1 FROM items ORDER BY e <-> '[5,0,0]' LIMIT 1000) x;
-- is none below the effort, nor where scans do not iterate
SET ivfflat.probes = 40;
SELECT count(*) FROM (SELECT 1 FROM items ORDER BY e <-> '[5,0,0]' LIMIT 1000) x;
RESET ivfflat.probes;
RESET ivfflat.iterative_scan;
SELECT count(*) FROM (SELECT 1 FROM items ORDER BY e <-> '[5,0,0]' LIMIT 1000) x;
RESET ivfflat.max_probes;
DROP INDEX items_e;
CREATE INDEX items_e ON items USING hnsw (e vector_l2_ops);
SET hnsw.max_scan_tuples = 5;
SELECT count(*) FROM (SELECT 1 FROM items ORDER BY e <-> '[5,0,0]' LIMIT 100) x;
SET hnsw.iterative_scan = strict_order;
SELECT count(*) FROM (SELECT 1 FROM items ORDER BY e <-> '[5,0,0]' LIMIT 100) x;
SET hnsw.ef_search = 200;
SELECT count(*) FROM (SELECT 1 FROM items ORDER BY e <-> '[5,0,0]' LIMIT 100) x;
SET quiver.topk_scan = off;
SELECT count(*) FROM (SELECT 1 FROM items ORDER BY e <-> '[5,0,0]' LIMIT 100) x;
RESET quiver.topk_scan;
RESET hnsw.ef_search;
RESET hnsw.iterative_scan;
RESET hnsw.max_scan_tuples;
RESET enable_seqscan;
DROP TABLE items;

-- many rows that codes tell apart badly: a search by the index goes on while it costs less
CREATE TABLE items AS SELECT i AS id,
	(SELECT array_agg(hashint4(i % 120 * 64 + j) / 2.1e9 + hashint4(-i * 64 - j) / 5e9 ORDER BY j)
		FROM generate_series(1, 64) j)::vector(64) AS v FROM generate_series(1, 20000) i;
ALTER TABLE items ALTER v SET STORAGE PLAIN;
CREATE INDEX ON items USING quiver_graph (v vector_l2_ops);
VACUUM ANALYZE items;
SELECT v AS query FROM items WHERE id = 77 \gset
CREATE FUNCTION read_of(query text, OUT strategies text, OUT entries int) LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, FORMAT json) ' || query INTO plan;
	strategies := jsonb_path_query_first(plan::jsonb, '$.**."Strategies"');
	entries := jsonb_path_query_first(plan::jsonb, '$.**."Entries Scored"');
END $$;
SET enable_seqscan = off;
SET enable_sort = off;
SELECT * FROM read_of(format('SELECT id FROM items ORDER BY v <-> %L LIMIT 200', :'query'));
-- and when codes are read again, twice as many rows are kept
SET quiver.topk_way = row_pages;
SELECT * FROM read_of(format('SELECT id FROM items ORDER BY v <-> %L LIMIT 6000', :'query'));
RESET quiver.topk_way;
RESET enable_seqscan;
RESET enable_sort;
DROP FUNCTION read_of;
DROP TABLE items;

-- VACUUM of a table that has lost all rows, where some had no entry
CREATE TABLE items (id int, v vector(4)) WITH (autovacuum_enabled = off);
CREATE FUNCTION add(first int, last int) RETURNS void LANGUAGE sql AS $$
	INSERT INTO items SELECT i, ARRAY[sin(i), sin(2 * i), sin(3 * i), sin(5 * i)]::vector
		FROM generate_series(first, last) i $$;
SELECT add(1, 1000);
CREATE INDEX ON items USING quiver_ivf (v vector_l2_ops);
SELECT add(1001, 4000);
DELETE FROM items;
SET statement_timeout = '1min';
VACUUM items;
RESET statement_timeout;
SELECT add(1, 10);
SELECT count(*) FROM (SELECT 1 FROM items ORDER BY v <-> '[0,0,0,0]' LIMIT 20) x;
DROP FUNCTION add;
DROP TABLE items;

-- a row that was not fetched, whose first version has gone
CREATE TABLE items (id int, note text, e vector(3)) WITH (fillfactor = 50);
INSERT INTO items SELECT i, '', ARRAY[i, 0, 0] FROM generate_series(1, 5000) i;
CREATE INDEX ON items USING quiver_ivf (e vector_l2_ops) INCLUDE (id);
UPDATE items SET note = 'x' WHERE id < 100;
VACUUM ANALYZE items;
SET enable_seqscan = off;
SET enable_sort = off;
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM items ORDER BY e <-> '[5,0,0]' LIMIT 5;
FETCH c;
UPDATE items SET note = 'y' WHERE CURRENT OF c RETURNING id, note;
ROLLBACK;
DROP TABLE items;

-- rows that come late, where DISTINCT relies on the order
CREATE TABLE items AS SELECT i AS id, (hashint4(i)::bit(32) || hashint4(-i)::bit(32))::bit(64) AS b
	FROM generate_series(1, 20000) i;
CREATE INDEX ON items USING hnsw (b bit_hamming_ops) WITH (m = 4, ef_construction = 10);
VACUUM ANALYZE items;
SET hnsw.iterative_scan = relaxed_order;
SET hnsw.ef_search = 1;
SELECT b AS query FROM items WHERE id = 77 \gset
SELECT count(*) > 20 AS many, count(*) = count(DISTINCT d) AS distinct_rows
	FROM (SELECT DISTINCT b <~> :'query'::bit(64) AS d FROM items ORDER BY d LIMIT 40) x;
RESET hnsw.iterative_scan;
RESET hnsw.ef_search;
RESET enable_seqscan;
RESET enable_sort;
DROP TABLE items;

-- groups of the rows within a radius, of which none may be missing
CREATE TABLE items AS SELECT i AS id, i % 7 AS g, ARRAY[sin(i), cos(3 * i), sin(5 * i), cos(7 * i)]::vector(4) AS v
	FROM generate_series(1, 5000) i;
CREATE INDEX ON items USING hnsw (v vector_l2_ops) WITH (m = 4, ef_construction = 10);
VACUUM ANALYZE items;
SET enable_seqscan = off;
SET hnsw.ef_search = 1;
CREATE TABLE groups AS SELECT g, count(*) AS n FROM items WHERE v <-> '[0.5,0.5,0.5,0.5]' < 0.7 GROUP BY g;
SELECT count(*) FROM groups JOIN
	(SELECT g, count(*) AS n FROM items WHERE (v <-> '[0.5,0.5,0.5,0.5]') + 0 < 0.7 GROUP BY g) x USING (g, n);
RESET hnsw.ef_search;
RESET enable_seqscan;
DROP TABLE items, groups;

-- nearest groups of partitions
CREATE TABLE items (id int, g int, kind int, v vector(8), pad text) PARTITION BY RANGE (id);
CREATE TABLE part1 PARTITION OF items FOR VALUES FROM (0) TO (10000);
CREATE TABLE part2 PARTITION OF items FOR VALUES FROM (10000) TO (20000);
INSERT INTO items SELECT i, hashint4(i) % 100, CASE WHEN i % 40 = 0 THEN 1 ELSE 0 END,
	(SELECT array_agg(hashint4(i * 8 + j) % 1000) FROM generate_series(1, 8) j)::vector, repeat(i::text, 200)
	FROM generate_series(0, 19999) i;
CREATE INDEX ON items USING hnsw (v vector_l2_ops) WHERE kind = 1;
VACUUM ANALYZE items;
SET enable_seqscan = off;
CREATE VIEW nearest_groups AS SELECT * FROM (SELECT DISTINCT ON (g) g, v <-> '[0,0,0,0,0,0,0,0]' AS d
	FROM items WHERE kind = 1 ORDER BY g, v <-> '[0,0,0,0,0,0,0,0]') x ORDER BY d LIMIT 200;
CREATE TABLE groups AS SELECT * FROM nearest_groups;
SET quiver.topk_scan = off;
SELECT count(*), (SELECT count(*) FROM groups NATURAL JOIN nearest_groups) AS same FROM nearest_groups;
RESET quiver.topk_scan;
RESET enable_seqscan;
DROP VIEW nearest_groups;
DROP TABLE items, groups;

-- a radius that more rows are within than may wait
CREATE TABLE items AS SELECT i AS id,
	(SELECT array_agg(hashint4(i * 16 + j) / 2147483648.0 ORDER BY j) FROM generate_series(1, 16) j)::vector(16) AS v
	FROM generate_series(1, 10000) i;
CREATE FUNCTION lost(way text) RETURNS TABLE (many bool, few_lost bool, few_lost_in_order bool) LANGUAGE plpgsql AS $$
DECLARE
	q vector := (SELECT v FROM items WHERE id = 17);
	n bigint := (SELECT count(*) FROM items WHERE (v <-> q) + 0 < 3);
BEGIN
	PERFORM set_config('quiver.topk_way', way, true);
	RETURN QUERY SELECT n > 1000, n - (SELECT count(*) FROM items WHERE v <-> q < 3) < n / 20,
		n - (SELECT count(*) FROM (SELECT 1 FROM items WHERE v <-> q < 3 ORDER BY v <-> q LIMIT n) x) < n / 20;
END $$;
CREATE INDEX items_v ON items USING quiver_graph (v vector_l2_ops);
VACUUM ANALYZE items;
SET enable_seqscan = off;
SET work_mem = '64kB';
SELECT * FROM lost('index');
SELECT * FROM lost('row_pages');
DROP INDEX items_v;
CREATE INDEX items_v ON items USING quiver_ivf (v vector_l2_ops) WITH (bits = 4);
SELECT * FROM lost('index');
SELECT * FROM lost('row_pages');
RESET work_mem;
DROP FUNCTION lost;
DROP TABLE items;

-- a partition on the side of an outer join that may be NULL
CREATE TABLE items (id int);
INSERT INTO items VALUES (1), (2);
CREATE TABLE parts (id int, item int, v vector(3)) PARTITION BY HASH (id);
CREATE TABLE part PARTITION OF parts FOR VALUES WITH (MODULUS 1, REMAINDER 0);
INSERT INTO parts VALUES (10, 1, '[1,2,3]'), (20, 2, NULL);
CREATE INDEX ON parts USING quiver_graph (v vector_l2_ops);
ANALYZE parts;
SELECT i.id, p.id FROM items i LEFT JOIN parts p ON p.item = i.id ORDER BY p.v <-> '[0,0,0]' LIMIT 10;
DROP TABLE items, parts;

-- row pages that go on after a search by the index do not pay for it: they are not left for the table
CREATE FUNCTION proposed_of(query text, OUT strategies text, OUT rows int) LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, FORMAT json) ' || query INTO plan;
	strategies := jsonb_path_query_first(plan::jsonb, '$.**."Strategies"');
	rows := jsonb_path_query_first(plan::jsonb, '$.**."Rows Proposed"');
END $$;
CREATE TABLE items (id int, a int, v vector(16)) WITH (autovacuum_enabled = off);
INSERT INTO items SELECT i, i % 7,
	(SELECT array_agg(hashint4(i * 16 + j) % 1000 ORDER BY j) FROM generate_series(1, 16) j)::vector
	FROM generate_series(1, 20000) i;
CREATE INDEX ON items USING quiver_graph (v vector_l2_ops);
VACUUM ANALYZE items;
SET enable_sort = off;
SET work_mem = '1MB';
SELECT strategies FROM proposed_of('SELECT id FROM items
	ORDER BY v <-> ''[1,2,3,4,5,6,7,8,1,2,3,4,5,6,7,8]'' LIMIT 2000');
RESET work_mem;

-- dead rows cost a search as much as others: it is left for the table
DELETE FROM items WHERE id % 20 > 0;
SELECT strategies, rows < 25000 AS soon FROM proposed_of('SELECT id FROM items WHERE a = 3
	ORDER BY v <-> ''[1,2,3,4,5,6,7,8,1,2,3,4,5,6,7,8]'' LIMIT 120');
RESET enable_sort;
DROP TABLE items;
DROP FUNCTION proposed_of;
RESET enable_seqscan;

-- GiST, for whose conditions PostgreSQL expects few rows: collecting them stops, and none is missed
CREATE TABLE items AS SELECT i AS id, i % 2 AS half, point(i % 100, i / 100) AS place,
	(SELECT array_agg(hashint4(i * 8 + j) % 1000 ORDER BY j) FROM generate_series(1, 8) j)::vector(8) AS v
	FROM generate_series(0, 19999) i;
CREATE INDEX ON items (half);
CREATE INDEX ON items USING gist (place);
CREATE INDEX ON items USING quiver_graph (v vector_l2_ops);
VACUUM ANALYZE items;
CREATE FUNCTION placed(way text, condition text, k text, OUT rows int, OUT collected text) LANGUAGE plpgsql AS $$
DECLARE
	query text := format('SELECT id FROM items WHERE %s ORDER BY v <-> ''[1,2,3,4,5,6,7,8]'' LIMIT %s', condition, k);
	plan json;
BEGIN
	PERFORM set_config('quiver.topk_way', way, true);
	EXECUTE format('SELECT count(DISTINCT id) FROM (%s) x', query) INTO rows;
	EXECUTE 'EXPLAIN (ANALYZE, FORMAT json) ' || query INTO plan;
	SELECT CASE WHEN n < 10000 THEN 'few' ELSE n::text END INTO collected FROM
		(SELECT max((node->>'Actual Rows')::numeric::int) AS n FROM
			jsonb_path_query(plan::jsonb, '$.** ? (@."Node Type" == "Bitmap Index Scan")') node) x;
END $$;
SET enable_seqscan = off;
SET enable_sort = off;
SELECT way, condition, k, p.* FROM unnest('{auto,other_indexes}'::text[]) way,
	unnest('{10,20000}'::text[]) k,
	(VALUES ('place <@ box ''((0,0),(99,149))'''), ('place <@ box ''((0,0),(99,149))'' AND half = 1')) c (condition),
	placed(way, condition, k) p ORDER BY way, condition, k::int;
SET work_mem = '64kB';
SELECT p.* FROM placed('other_indexes', 'place <@ box ''((0,0),(99,149))''', '20000') p;
RESET work_mem;
RESET quiver.topk_way;
RESET enable_seqscan;
RESET enable_sort;
DROP FUNCTION placed;
DROP TABLE items;

-- since PostgreSQL 16 rows may come in an aggregate's own order: a count is of all of them
CREATE TABLE items AS SELECT i AS id, i % 7 AS part, repeat('x', 1500) AS note,
	(SELECT array_agg(hashint4(i * 16 + j) % 1000 ORDER BY j) FROM generate_series(1, 16) j)::vector(16) AS v
	FROM generate_series(1, 5000) i;
CREATE INDEX ON items USING quiver_graph (v vector_l2_ops);
VACUUM ANALYZE items;
SET max_parallel_workers_per_gather = 0;
SET random_page_cost = 1;
SET work_mem = '64kB';
SET enable_sort = off;
SELECT count(*), cardinality(array_agg(i ORDER BY v <-> '[1,2,3,4,5,6,7,8,1,2,3,4,5,6,7,8]')) FROM items i;
SELECT count(*), cardinality(array_agg(i ORDER BY v <-> '[1,2,3,4,5,6,7,8,1,2,3,4,5,6,7,8]')) FROM items i LIMIT 1;
SELECT sum(n) FROM (SELECT count(*) AS n FROM items
	GROUP BY round((v <-> '[1,2,3,4,5,6,7,8,1,2,3,4,5,6,7,8]')::numeric)) x;
-- nor do all groups come from a search, or groups in another order; each has one row but for a few
DROP INDEX items_v_idx;
CREATE INDEX ON items USING hnsw (v vector_l2_ops);
SET enable_hashagg = off;
SELECT part, count(*), cardinality(array_agg(i ORDER BY v <-> '[1,2,3,4,5,6,7,8,1,2,3,4,5,6,7,8]')) FROM items i
	WHERE part = 3 GROUP BY part LIMIT 5;
SELECT count(*) > 4000 AS all_groups FROM
	(SELECT v <-> '[1,2,3,4,5,6,7,8,1,2,3,4,5,6,7,8]' FROM items GROUP BY 1 LIMIT ALL) x;
SELECT count(*) > 4000 AS all_groups FROM (SELECT DISTINCT v <-> '[1,2,3,4,5,6,7,8,1,2,3,4,5,6,7,8]' FROM items) x;
INSERT INTO items SELECT 5000 + i, 1, '', array_fill(2000, ARRAY[16])::vector FROM generate_series(1, 9) i;
SELECT count(*) FROM items GROUP BY v <-> '[1,2,3,4,5,6,7,8,1,2,3,4,5,6,7,8]' ORDER BY 1 DESC LIMIT 1;
RESET enable_hashagg;
-- the nearest rows of a query around it
SELECT count(*), count(DISTINCT id) FROM
	(SELECT id FROM items ORDER BY v <-> '[1,2,3,4,5,6,7,8,1,2,3,4,5,6,7,8]' LIMIT 10) x;
RESET enable_sort;
RESET work_mem;
RESET random_page_cost;
RESET max_parallel_workers_per_gather;
-- memory whose number of rows is a multiple of 2^32
DROP INDEX items_v_idx;
SET work_mem = '144GB';
CREATE INDEX ON items USING quiver_ivf (v vector_l2_ops);
SET work_mem = '576GB';
SELECT count(*) FROM (SELECT id FROM items ORDER BY v <-> '[1,2,3,4,5,6,7,8,1,2,3,4,5,6,7,8]' LIMIT 10) x;
RESET work_mem;
DROP TABLE items;

-- groups that are made of rows near and far: a search may miss some
CREATE TABLE items AS SELECT i AS id, i % 7 AS part, repeat('x', 1500) AS note,
	(SELECT array_agg(hashint4(i * 64 + j) % 1000 ORDER BY j) FROM generate_series(1, 64) j)::vector(64) AS v
	FROM generate_series(1, 5000) i;
ALTER TABLE items ALTER v SET NOT NULL, ALTER note SET STORAGE plain, ADD PRIMARY KEY (id);
CREATE INDEX ON items USING ivfflat (v vector_l2_ops);
CREATE TABLE tags AS SELECT i / 3 AS item, i AS tag FROM generate_series(1, 15000) i;
VACUUM FULL items, tags;
VACUUM ANALYZE items, tags;
SET max_parallel_workers_per_gather = 0;
SET enable_seqscan = off;
SET enable_hashagg = off;
-- With a plan for this LIMIT and with one for any: by the index, or not; the same rows as of the table, or not.
CREATE FUNCTION grouped(query text, k text, OUT custom text, OUT generic text) LANGUAGE plpgsql AS $$
DECLARE
	runs text := 'SELECT string_agg(x::text, '' '') FROM (' || replace(query, 'FAR',
		'(v <-> ''' || array_fill(5, ARRAY[64])::vector::text || ''')') || ') x';
	mode text;
	plan json;
	found text;
	exact text;
	result text;
BEGIN
	FOREACH mode IN ARRAY ARRAY['force_custom_plan', 'force_generic_plan'] LOOP
		PERFORM set_config('plan_cache_mode', mode, true);
		EXECUTE 'PREPARE grouped (int) AS ' || runs;
		EXECUTE format('EXPLAIN (FORMAT JSON) EXECUTE grouped(%s)', k) INTO plan;
		EXECUTE format('EXECUTE grouped(%s)', k) INTO found;
		DEALLOCATE grouped;
		PERFORM set_config('enable_indexscan', 'off', true), set_config('quiver.topk_scan', 'off', true);
		EXECUTE 'PREPARE grouped (int) AS ' || runs;
		EXECUTE format('EXECUTE grouped(%s)', k) INTO exact;
		DEALLOCATE grouped;
		PERFORM set_config('enable_indexscan', 'on', true), set_config('quiver.topk_scan', 'on', true);
		result := CASE WHEN plan::text ~ 'Quiver Top-K' THEN 'index' ELSE 'table' END ||
			CASE WHEN found = exact THEN ', same' ELSE ', not the same' END;
		IF mode = 'force_custom_plan' THEN custom := result; ELSE generic := result; END IF;
	END LOOP;
END $$;
SELECT number, g.* FROM (VALUES
	(1, 'SELECT round(FAR::numeric, -2) AS b, count(*) FROM items GROUP BY ROLLUP (1) ORDER BY 1 LIMIT $1', '100'),
	(2, 'SELECT round(FAR::numeric, -2) FROM items GROUP BY GROUPING SETS ((1), ()) ORDER BY 1 LIMIT $1', '100'),
	(3, 'SELECT round(FAR::numeric, -2) AS b, count(*) FROM items GROUP BY CUBE (1) ORDER BY 1 LIMIT $1', '100'),
	(4, 'SELECT round(FAR::numeric, -1), count(*) FROM items GROUP BY 1 HAVING count(*) < 9 ORDER BY 1 LIMIT $1', '99'),
	(5, 'SELECT round(FAR::numeric, -2) AS b, count(*) FROM items GROUP BY 1 ORDER BY 1 LIMIT $1', '100'),
	(6, 'SELECT round(FAR::numeric, -1) AS b, min(id) FROM items GROUP BY 1 ORDER BY 1 LIMIT $1', '100'),
	-- no LIMIT after all: all groups
	(7, 'SELECT DISTINCT round(FAR::numeric) AS b FROM items ORDER BY 1 LIMIT $1', 'NULL'),
	(8, 'SELECT round(FAR::numeric) AS b FROM items GROUP BY 1 ORDER BY 1 LIMIT $1', 'NULL'),
	(9, 'SELECT id, min(FAR) FROM items GROUP BY 1 ORDER BY 2 LIMIT $1', 'NULL'),
	(10, 'SELECT * FROM (
		SELECT DISTINCT ON (id) id, FAR AS d FROM items ORDER BY 1, 2) x ORDER BY d LIMIT $1', 'NULL'),
	(11, 'SELECT id, min(FAR) FROM items GROUP BY 1 ORDER BY 2 LIMIT (SELECT $1)', 'NULL'),
	(12, 'SELECT p, l.* FROM (VALUES (1, $1), (2, $1)) x (p, k), LATERAL (
		SELECT id, min(FAR) FROM items WHERE part = p GROUP BY 1 ORDER BY 2 LIMIT k) l', 'NULL'),
	-- the index proposes enough for these
	(13, 'SELECT count(*) FROM (SELECT DISTINCT round(FAR::numeric, -1) FROM items ORDER BY 1 LIMIT $1) x', '3'),
	(14, 'SELECT count(*) FROM (SELECT id, min(FAR) FROM items GROUP BY 1 ORDER BY 2 LIMIT $1) x', '3'),
	(15, 'SELECT count(*) FROM (SELECT id, min(FAR) FROM items GROUP BY 1 ORDER BY 2 LIMIT (SELECT $1)) x', '3'),
	-- groups of single rows, with all rows that they are joined with
	(16, 'SELECT DISTINCT n FROM (SELECT id, FAR AS d, count(*) AS n FROM items JOIN tags ON item = id AND id > 1
		GROUP BY id, d ORDER BY d LIMIT 20) x', '20'),
	(17, 'SELECT DISTINCT n FROM (SELECT item, FAR AS d, count(*) AS n FROM items JOIN tags ON item = id AND id > 1
		GROUP BY item, d ORDER BY d LIMIT 20) x', '20'),
	-- and of others
	(18, 'SELECT part, FAR AS d, count(*) AS n FROM items JOIN tags ON item = id
		GROUP BY part, d ORDER BY d LIMIT $1', '2000')
	) q (number, query, k), grouped(query, k) g ORDER BY number;
RESET enable_hashagg;
RESET enable_seqscan;
RESET max_parallel_workers_per_gather;
DROP FUNCTION grouped;
DROP TABLE items, tags;

-- work_mem falls while a set is in part
CREATE FUNCTION part_of(i int, j int) RETURNS float8 IMMUTABLE LANGUAGE sql AS
	$$ SELECT (hashint4extended(i * 37 + j, 42) & 1048575)::float8 / 1048576 $$;
CREATE TABLE big (id int, a int, b int, pad text, e vector(8));
ALTER TABLE big ALTER pad SET STORAGE plain;
INSERT INTO big SELECT i, CASE WHEN i % 10 = 0 THEN 1 ELSE i % 10 + 1 END,
	CASE WHEN i % 10 = 0 THEN 1 ELSE (i / 10) % 9 + 2 END, repeat('x', 1900),
	(SELECT array_agg(s + part_of(i, j) ORDER BY j) FROM generate_series(1, 8) j)::vector
	FROM generate_series(1, 160000) i, LATERAL
	(SELECT CASE WHEN i <= 2000 THEN 0 WHEN i % 10 = 0 THEN 8 ELSE 3 END s) z;
CREATE INDEX ON big (a, b);
CREATE INDEX ON big USING quiver_graph (e vector_l2_ops);
VACUUM ANALYZE big;
SET work_mem = '64MB';
SET enable_sort = off;
SET cpu_index_tuple_cost = 0.2;
SET quiver.ef_search = 400;
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM big WHERE a = 1 AND b = 1 ORDER BY e <-> '[0,0,0,0,0,0,0,0]' LIMIT 2000;
MOVE 50 IN c;
SET work_mem = '64kB';
MOVE 1900 IN c;
COMMIT;
DROP TABLE big;
DROP FUNCTION part_of;
RESET ALL;
