-- The members that other indexes tell the top-k scan row by row: against a scan of all rows.
-- A page has one row, so that at 64kB the server's bitmap loses lines where a set does not.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS vector;
CREATE EXTENSION IF NOT EXISTS quiver;
CREATE TABLE m (id int, a int, b int, c int, e int, d int[], r int, s int, n int, v vector(16), w text)
	WITH (fillfactor = 20, toast_tuple_target = 8160, autovacuum_enabled = off);
CREATE FUNCTION make_m(first int, last int) RETURNS void LANGUAGE sql AS $$
	INSERT INTO m SELECT i, CASE WHEN i % 400 > 0 THEN i % 50 END, hashint4(i) & 31, i % 8, i / 3 % 100,
			ARRAY[i % 40, 100 + i % 7], i, i, 0,
			(SELECT array_agg((hashint4(i * 16 + j) % 1000000) / 100000.0 + i % 50 % 3 ORDER BY j)::real[]::vector
				FROM generate_series(1, 16) j),
			repeat('x', 1750)
		FROM generate_series(first, last) i $$;
SELECT make_m(1, 4000);
CREATE INDEX m_a ON m (a);
CREATE INDEX m_b ON m USING hash (b);
CREATE INDEX m_c ON m (c);
CREATE INDEX m_d ON m USING gin (d);
CREATE INDEX m_s ON m USING brin (s) WITH (pages_per_range = 8);
CREATE INDEX m_two ON m (e, r DESC);
CREATE INDEX m_part ON m (id) WHERE id % 3 = 1;
CREATE INDEX m_expr ON m ((b - a));
VACUUM ANALYZE m;
SELECT pg_relation_size('m') / 8192 AS pages;
CREATE TABLE asked AS SELECT id AS q, v FROM m WHERE id IN (17, 1018, 2019, 3020);
CREATE TABLE given (g int, h int);
INSERT INTO given VALUES (1, 3), (2, 7), (3, NULL), (4, 7), (5, -1), (6, 4), (7, 5);
SET max_parallel_workers_per_gather = 0;
-- costs of what is disabled would call for it
SET jit = off;
SET enable_seqscan = off;
SET enable_sort = off;
-- late rows come too, so that of all members none is missing
SET quiver.iterative_scan = relaxed_order;

-- rows that an approximate search has found: as many, and nearly the same
CREATE FUNCTION are_alike(found text, exact text) RETURNS bool LANGUAGE sql AS $$
	SELECT count(f) = count(e) AND count(*) FILTER (WHERE f = e) >= count(e) - count(e) / 10
	FROM string_to_table(found, ' ') f FULL JOIN string_to_table(exact, ' ') e ON f = e $$;
-- a query as an exact scan and as the node; what EXPLAIN says of the node, and of each index below it how many
-- rows it found; in an order of their own, for those of an And and the numbers of what begins anew are not the same
-- in all versions
CREATE FUNCTION look(query text, OUT answer text, OUT strategies text, OUT child text) LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
	exact text;
	found text;
BEGIN
	PERFORM set_config(name, 'off', true)
		FROM unnest(ARRAY['enable_indexscan', 'enable_bitmapscan', 'quiver.topk_scan']) name;
	PERFORM set_config(name, 'on', true) FROM unnest(ARRAY['enable_seqscan', 'enable_sort']) name;
	EXECUTE format('SELECT string_agg(x::text, '' '') FROM (%s) x', query) INTO exact;
	PERFORM set_config(name, 'on', true)
		FROM unnest(ARRAY['enable_indexscan', 'enable_bitmapscan', 'quiver.topk_scan']) name;
	PERFORM set_config(name, 'off', true) FROM unnest(ARRAY['enable_seqscan', 'enable_sort']) name;
	EXECUTE format('SELECT string_agg(x::text, '' '') FROM (%s) x', query) INTO found;
	EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF, FORMAT JSON) ' || query INTO plan;
	plan := jsonb_path_query_first(plan, 'strict $.** ? (@."Custom Plan Provider" == "Quiver Top-K Scan")');
	-- the way that it has come to: whether another was tried before depends on the version's costs
	strategies := plan->'Strategies'->>-1;
	answer := CASE WHEN found IS NULL AND exact IS NULL THEN 'none'
		WHEN found = exact OR are_alike(found, exact) THEN 'same'
		ELSE format('%s rows and %s of %s right', cardinality(string_to_array(found, ' ')),
			(SELECT count(*) FROM string_to_table(found, ' ') f JOIN string_to_table(exact, ' ') e ON f = e),
			cardinality(string_to_array(exact, ' '))) END;
	child := (SELECT string_agg(line, ', ' ORDER BY line COLLATE "C") FROM
		(SELECT CASE WHEN n->>'Node Type' IN ('BitmapAnd', 'BitmapOr') THEN substr(n->>'Node Type', 7)
			WHEN n->>'Actual Loops' = '0' THEN n->>'Index Name'
			ELSE format('%s %s', n->>'Index Name', (n->>'Actual Rows')::numeric::int) END AS line
		FROM jsonb_path_query(plan->'Plans', 'strict $.** ? (@."Node Type" like_regex "Bitmap")') n) l);
END $$;
CREATE FUNCTION nearest(condition text, k int) RETURNS text LANGUAGE sql AS $$
	SELECT format('SELECT id FROM m WHERE %s ORDER BY v <-> (SELECT v FROM asked WHERE q = 17) LIMIT %s',
		condition, k) $$;

CREATE TABLE conditions (n serial, condition text);
INSERT INTO conditions (condition) VALUES
	-- btree: one value, a range, a list, none, two columns, a part of the table, an expression
	('a = 7'), ('a < 5'), ('a BETWEEN 48 AND 60'), ('a IN (1, 3, 3, NULL, 49, 77)'), ('a IS NULL'), ('a = -1'),
	('a = NULL::int'), ('e = 5 AND r > 1500'), ('e IN (5, 70, 99) AND r IN (17, 3299, 1515, 3298)'),
	('id % 3 = 1 AND id < 600'), ('b - a = 3'),
	-- hash, which does not take lists
	('b = 5'), ('b IN (5, 6)'), ('b = 99'),
	-- two and more of them
	('a < 10 AND b = 5'), ('b = 5 AND a < 10 AND e < 50'), ('a < 10 AND b = 99'), ('a = -1 AND b = 5'),
	('a = 1 OR b = 2'), ('a = 1 OR a > 48 OR e = 9'), ('a < 3 OR a <= 3'), ('a = -1 OR b = 99'),
	('e < 50 AND (b = 1 OR a = 2)'), ('b = 3 AND (a < 20 OR e < 20)'),
	('(a = 1 AND b = 2) OR (a = 2 AND b = 1) OR e = 77'),
	('a IN (1, 2, 3, 4) AND (e < 20 OR b = 7 OR a IS NULL)'),
	-- with indexes that give bitmaps only
	('d @> ARRAY[3, 101]'), ('a < 10 AND d @> ARRAY[3]'), ('a = 1 OR d @> ARRAY[3]'), ('s < 300'),
	('a < 10 AND s < 300'), ('b = 5 OR s < 30'), ('b = 4 AND (a < 10 OR d @> ARRAY[102])');
-- the conditions whose rows are not those of an exact scan
CREATE FUNCTION differing(also text, k int)
	RETURNS TABLE (condition text, answer text, strategies text, child text)
LANGUAGE sql AS $$
	SELECT c.condition, l.* FROM conditions c, look(nearest(also || c.condition, k)) l
	WHERE l.answer NOT IN ('same', 'none') ORDER BY c.n $$;

-- lists, then a graph
CREATE INDEX m_v ON m USING quiver_ivf (v vector_l2_ops) WITH (lists = 16);
SELECT condition, l.* FROM conditions, look(nearest(condition, 10)) l ORDER BY n;
-- all members and more are wanted
SELECT * FROM differing('', 1000);
-- a condition that no index knows, and that must be tested
SELECT * FROM differing('n = 0 AND id % 3 = 1 AND ', 1000);
DROP INDEX m_v;
CREATE INDEX m_v ON m USING quiver_graph (v vector_l2_ops);
SELECT condition, l.* FROM conditions, look(nearest(condition, 10)) l ORDER BY n;
SELECT * FROM differing('', 1000);
SELECT * FROM differing('n = 0 AND id % 3 = 1 AND ', 1000);

-- Memory: 1,500 rows and their set; 3,000 rows, but no set; 4,000 rows, for which there is room in a set of all lines.
CREATE TABLE many (n serial, condition text);
INSERT INTO many (condition) VALUES ('c < 3'), ('c < 6'), ('c < 8'), ('c < 8 AND b = 5'), ('c < 3 OR b = 5'),
	('c < 6 OR b = 5'), ('c < 4 OR c > 3'), ('c < 7 AND (e < 70 OR a < 30)');
SELECT condition, l.* FROM many, look(nearest('id % 5 = 1 AND ' || condition, 900)) l ORDER BY n;
SET work_mem = '64kB';
SELECT condition, l.answer, strategies FROM many, look(nearest('id % 5 = 1 AND ' || condition, 900)) l ORDER BY n;
SET quiver.topk_way = other_indexes;
SELECT condition, l.answer, strategies FROM many, look(nearest('id % 5 = 1 AND ' || condition, 900)) l ORDER BY n;
RESET work_mem;
SELECT condition, l.* FROM many, look(nearest('id % 5 = 1 AND ' || condition, 900)) l ORDER BY n;
RESET quiver.topk_way;
SET work_mem = '64kB';
SELECT * FROM differing('', 900);
RESET work_mem;

CREATE FUNCTION for_each(condition text, k int) RETURNS text LANGUAGE sql AS $$
	SELECT format('SELECT g, l.id FROM (SELECT * FROM given ORDER BY g OFFSET 0) o LEFT JOIN LATERAL
		(SELECT id FROM m WHERE %s ORDER BY v <-> (SELECT v FROM asked WHERE q = 17) LIMIT %s) l ON true',
		condition, k) $$;
-- for each row of another table: keys found at run time, the same ones again, NULL, none; and of one index of two
SELECT x, l.answer, child FROM (VALUES (1, 'a = h', 3), (2, 'b = h', 3), (3, 'a < 10 AND b = h', 4),
		(4, 'b = h OR a = 3', 3), (5, 'a = 3 OR b = h', 200), (6, 'a = ANY (ARRAY[h, g, NULL])', 5),
		(7, 'b = ANY (ARRAY[h, g])', 5), (8, 'e < 20 AND (b = 3 OR a = h)', 5), (9, 'e = g AND r > 100 * h', 50),
		(10, 'a = h AND d @> ARRAY[3]', 5), (11, 'a = (SELECT h FROM given o2 WHERE o2.g = o.g)', 3),
		(12, 'a = (SELECT max(h) FROM given)', 3), (13, 'a = ANY (ARRAY[h, g]) OR b = h', 300)) c (x, condition, k),
	look(for_each(condition, k)) l ORDER BY x;
-- the value searched for changes, not the condition: the set stays
SELECT * FROM look('SELECT q, l.id FROM (SELECT * FROM asked ORDER BY q OFFSET 0) o CROSS JOIN LATERAL
	(SELECT id FROM m WHERE a < 10 AND b = 5 ORDER BY v <-> o.v LIMIT 4) l');
-- ... and all of these, and other ones, where there is no memory for some
SET work_mem = '64kB';
SELECT x, l.answer FROM (VALUES (1, 'c <= h', 50), (2, 'c <= h AND id % 31 = 1', 5), (3, 'c <= h AND b = 5', 5),
		(4, '(c <= h OR b = 5) AND id % 16 = 1', 300), (5, 'a = h', 3), (6, 'b = h', 3),
		(7, 'c = ANY (ARRAY[1, 2, 3, 4, 5, 6, h]) AND id % 31 = 1', 50)) c (x, condition, k),
	look(for_each(condition, k)) l ORDER BY x;
SELECT l.answer FROM look(nearest('c IN (0, 1, 2, 3, 4, 5, 6) AND id % 5 = 1', 900)) l;
RESET work_mem;
-- where nothing else is: a subquery in the list
SELECT h,
		(SELECT array_agg(id) FROM (SELECT id FROM m WHERE a = h
			ORDER BY v <-> (SELECT v FROM asked WHERE q = 17) LIMIT 2) x) =
		(SELECT array_agg(id) FROM (SELECT id FROM m WHERE a + 0 = h
			ORDER BY (v <-> (SELECT v FROM asked WHERE q = 17)) + 0 LIMIT 2) x) AS same
	FROM given ORDER BY g;

-- prepared statements that are planned once
SET plan_cache_mode = force_generic_plan;
PREPARE by_value (int, int) AS SELECT array_agg(id % 50) FROM
	(SELECT id FROM m WHERE a = $1 ORDER BY v <-> (SELECT v FROM asked WHERE q = 17) LIMIT $2) x;
CREATE FUNCTION plan_of(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		IF line ~ 'Top-K|Bitmap|Cond' THEN RETURN NEXT ltrim(line); END IF;
	END LOOP;
END $$;
SELECT plan_of('EXECUTE by_value (1, 2)');
EXECUTE by_value (7, 3);
EXECUTE by_value (8, 1);
EXECUTE by_value (NULL, 3);
EXECUTE by_value (7, NULL);
EXECUTE by_value (-1, 3);
PREPARE by_list (int[], int) AS
	SELECT count(*), count(*) FILTER (WHERE a = ANY ($1) AND b = $2), min(id) FROM
		(SELECT id, a, b FROM m WHERE a = ANY ($1) AND b = $2
			ORDER BY v <-> (SELECT v FROM asked WHERE q = 17) LIMIT 1000) x;
EXECUTE by_list ('{1,2,3,2,NULL}', 5);
EXECUTE by_list ('{}', 5);
EXECUTE by_list (NULL, 5);
EXECUTE by_list ('{NULL}', 5);
EXECUTE by_list ('{1,2,3}', NULL);
EXECUTE by_list ('{4}', 6);
SELECT count(*), min(id) FROM m WHERE a + 0 IN (1, 2, 3) AND b + 0 = 5;
RESET plan_cache_mode;
DEALLOCATE by_value;
DEALLOCATE by_list;

-- cursors: some rows at a time, back, two of them, more than the first round has; what is changed
-- meanwhile is not seen
CREATE FUNCTION rest(name refcursor, n int) RETURNS int[] LANGUAGE plpgsql AS $$
DECLARE
	row_found int;
	all_found int[];
BEGIN
	FOR i IN 1 .. n LOOP
		FETCH name INTO row_found;
		EXIT WHEN NOT found;
		all_found := all_found || row_found;
	END LOOP;
	RETURN all_found;
END $$;
SET quiver.recall = 0.999;
SELECT array_agg(id) AS exact FROM (SELECT id FROM m WHERE a + 0 < 10 AND b + 0 = 5
	ORDER BY (v <-> (SELECT v FROM asked WHERE q = 17)) + 0 LIMIT 12) x \gset
BEGIN;
DECLARE one CURSOR FOR SELECT id FROM m WHERE a < 10 AND b = 5
	ORDER BY v <-> (SELECT v FROM asked WHERE q = 17) LIMIT 12;
DECLARE two SCROLL CURSOR FOR SELECT id FROM m WHERE a < 10 AND b = 5
	ORDER BY v <-> (SELECT v FROM asked WHERE q = 17) LIMIT 12;
DECLARE hinted CURSOR FOR SELECT m.id FROM m JOIN given ON g = 1 WHERE a = 7
	ORDER BY m.v <-> (SELECT v FROM asked WHERE q = 17) LIMIT 60;
SELECT rest('one', 4) || rest('two', 2) = (:'exact'::int[])[1:4] || (:'exact'::int[])[1:2] AS same;
SELECT array_length(rest('hinted', 3), 1);
UPDATE m SET n = 1 WHERE a < 5;
UPDATE m SET a = a + 20, b = 6 WHERE a BETWEEN 5 AND 7;
DELETE FROM m WHERE a BETWEEN 8 AND 10;
SELECT rest('one', 4) || rest('two', 3) = (:'exact'::int[])[5:8] || (:'exact'::int[])[3:5] AS same;
MOVE BACKWARD ALL FROM two;
SELECT rest('two', 20) || rest('one', 20) = :'exact'::int[] || (:'exact'::int[])[9:12] AS same;
SELECT array_length(rest('hinted', 100), 1);
SELECT condition, l.answer FROM conditions, look(nearest(condition, 1000)) l
	WHERE condition ~ '^a < 10|b = 5' ORDER BY n;
ROLLBACK;
RESET quiver.recall;
SELECT * FROM differing('', 1000);

-- rows updated in their page and out of it, deleted, and their lines used again
UPDATE m SET n = 1 WHERE id % 5 = 1;
UPDATE m SET n = 2 WHERE id % 10 = 1;
UPDATE m SET a = (a + 1) % 50, b = (b + 1) % 32 WHERE id % 7 = 2;
UPDATE m SET v = v + array_fill(0.25, ARRAY[16])::vector WHERE id % 97 = 2;
UPDATE m SET a = NULL WHERE id % 31 = 3;
DELETE FROM m WHERE id % 3 = 2;
SELECT * FROM differing('', 1000);
VACUUM m;
SELECT * FROM differing('', 1000);
SELECT make_m(4001, 6000);
SELECT * FROM differing('', 1000);
SET work_mem = '256kB';
SELECT condition, l.* FROM many, look(nearest('id % 5 = 1 AND ' || condition, 900)) l
	WHERE l.answer <> 'same' ORDER BY n;
RESET work_mem;

-- pages without WAL keep their pins while they are read: a scan that is left in the middle
CREATE UNLOGGED TABLE u (LIKE m) WITH (autovacuum_enabled = off);
INSERT INTO u SELECT * FROM m;
CREATE INDEX u_c ON u (c);
CREATE INDEX u_b ON u USING hash (b);
CREATE INDEX u_v ON u USING quiver_ivf (v vector_l2_ops) WITH (lists = 4);
ANALYZE u;
SET work_mem = '64kB';
SELECT c, l.answer FROM unnest(ARRAY['c < 8', 'c < 7 OR b = 5']) c,
	look(replace(nearest('id % 31 = 1 AND ' || c, 150), 'FROM m', 'FROM u')) l ORDER BY c COLLATE "C";
UPDATE u SET c = 1, b = 5;
UPDATE u SET b = 6 WHERE id % 50 = 0;
ANALYZE u;
-- keys of rows that the planner does not know of; an error while they are found
SELECT c, l.answer FROM unnest(ARRAY['b = (SELECT 5)', 'c = (SELECT 1)', 'b = (SELECT 6) AND c = (SELECT 1)']) c,
	look(replace(nearest('id % 31 = 1 AND ' || c, 150), 'FROM m', 'FROM u')) l ORDER BY c COLLATE "C";
SELECT id FROM u WHERE c = (SELECT 1 / (g - 1) FROM given WHERE g = 1)
	ORDER BY v <-> (SELECT v FROM asked WHERE q = 17) LIMIT 3;
RESET work_mem;

SELECT quiver_check('m_v'), quiver_check('u_v');
DROP TABLE m, u, asked, given, conditions, many;
DROP FUNCTION differing, look, are_alike, nearest, for_each, plan_of, rest, make_m;
