-- The ways of the top-k scan find the same rows: those of an exact scan, but for a few that an approximate
-- search misses.  In relaxed order none is missed for good.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS vector;
CREATE EXTENSION IF NOT EXISTS quiver;
SET jit = off;
SET max_parallel_workers_per_gather = 0;
SET enable_sort = off;

-- 30 clusters; lengths from 0.01 to 100; some rows equal, some zero, some NULL
CREATE FUNCTION ways_vector(i int, cluster int, dims int) RETURNS real[] LANGUAGE sql IMMUTABLE AS $$
	SELECT CASE WHEN i % 501 = 3 THEN NULL WHEN i % 400 = 7 THEN array_fill(0::real, ARRAY[dims]) ELSE
		(SELECT array_agg(((hashint4(cluster * 5000 + j) % 1000) / 1000.0
				+ 0.4 * (hashint4(i / CASE WHEN i % 10 = 0 THEN 100 ELSE 1 END * 5000 + j + 99) % 1000) / 1000.0)
			* power(10, hashint4(i) % 3 - 1 + (hashint4(i + 7) % 100) / 100.0) ORDER BY j)::real[]
		FROM generate_series(1, dims) j) END $$;
CREATE TABLE ways (id int, part int, mark int, v vector, h halfvec);

-- Of 12 searches for ten rows: the share of rows that is right; and whether EXPLAIN shows the way.
CREATE FUNCTION ways_compare(value text, op text, condition text, way text, OUT share float8, OUT way_taken bool)
LANGUAGE plpgsql AS $$
DECLARE
	query text;
	exact float8[];
	answer float8[];
	line text;
	hits int := 0;
	total int := 0;
BEGIN
	way_taken := true;
	FOR q IN 1 .. 12 LOOP
		query := format('SELECT %1$s %2$s (SELECT %1$s FROM ways_asked WHERE q = %3$s) AS d FROM ways WHERE %4$s
			ORDER BY %1$s %2$s (SELECT %1$s FROM ways_asked WHERE q = %3$s) LIMIT 10',
			value, op, q, replace(condition, '$', q::text));
		PERFORM set_config('enable_indexscan', 'off', true);
		EXECUTE format('SELECT array_agg(d) FROM (%s) x', query) INTO exact;
		PERFORM set_config('enable_indexscan', 'on', true), set_config('quiver.topk_way', way, true);
		EXECUTE format('SELECT array_agg(d) FROM (%s) x', query) INTO answer;
		FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) ' || query LOOP
			IF line ~ 'Strategies: ' THEN
				way_taken := way_taken AND replace(substring(line FROM 'Strategies: (.*)'), ' ', '_') = way;
			END IF;
		END LOOP;
		total := total + cardinality(exact);
		hits := hits + (SELECT count(*) FROM unnest(answer) a WHERE a <= exact[cardinality(exact)]);
	END LOOP;
	share := hits / total::float8;
END $$;

CREATE FUNCTION ways_all(dims int, value text, op text, opclass text)
	RETURNS TABLE (am text, step text, way text, same text, way_taken bool)
LANGUAGE plpgsql AS $$
DECLARE
	result record;
	condition text := 'part IN (($ * 5 + 11) % 30, ($ * 5 + 17) % 30, ($ * 5 + 22) % 30, ($ * 5 + 26) % 30)
		AND mark >= 0';
BEGIN
	FOREACH am IN ARRAY ARRAY['quiver_graph', 'quiver_ivf'] LOOP
		TRUNCATE ways;
		EXECUTE format('ALTER TABLE ways ALTER v TYPE vector(%1$s), ALTER h TYPE halfvec(%1$s)', dims);
		INSERT INTO ways SELECT i, i % 30, 0, x::vector, (SELECT array_agg(e / 4) FROM unnest(x) e)::halfvec
			FROM (SELECT i, ways_vector(i, i % 30, dims) AS x FROM generate_series(1, 3000) i) r;
		DROP TABLE IF EXISTS ways_asked;
		CREATE TABLE ways_asked AS SELECT row_number() OVER (ORDER BY id) AS q, v, h
			FROM ways WHERE v IS NOT NULL AND (op <> '<=>' OR vector_norm(v) > 0) ORDER BY id LIMIT 12;
		EXECUTE format('CREATE INDEX ways_v ON ways USING %s (%s %s)', am, value, opclass);
		CREATE INDEX ways_part ON ways (part);
		ANALYZE ways;
		FOREACH step IN ARRAY ARRAY['built', 'changed'] LOOP
			IF step = 'changed' THEN
				INSERT INTO ways SELECT 3000 + i, (i + 9) % 30, 0, x::vector,
						(SELECT array_agg(e / 4) FROM unnest(x) e)::halfvec
					FROM (SELECT i, ways_vector(i + 3000, i % 30, dims) AS x FROM generate_series(1, 150) i) r;
				UPDATE ways SET part = (part + 7) % 30 WHERE id % 17 = 2;
				DELETE FROM ways WHERE id % 19 = 5;
				UPDATE ways SET mark = -1 WHERE id % 7 = 0;
			END IF;
			FOREACH way IN ARRAY ARRAY['index', 'row_pages', 'other_indexes', 'table'] LOOP
				SELECT * FROM ways_compare(value, op, condition, way) INTO result;
				same := CASE WHEN result.share < 0.95 THEN result.share::text
					WHEN result.share = 1 AND way = 'table' THEN 'all' ELSE 'nearly' END;
				way_taken := result.way_taken;
				RETURN NEXT;
			END LOOP;
		END LOOP;
		DROP INDEX ways_v, ways_part;
	END LOOP;
END $$;

SELECT 'vector, <->' AS metric, s.* FROM ways_all(40, 'v', '<->', 'vector_l2_ops') s;
SELECT 'vector, <#>' AS metric, s.* FROM ways_all(40, 'v', '<#>', 'vector_ip_ops') s;
SELECT 'vector, <=>' AS metric, s.* FROM ways_all(40, 'v', '<=>', 'vector_cosine_ops') s;
SELECT 'halfvec, <->' AS metric, s.* FROM ways_all(40, 'h', '<->', 'halfvec_l2_ops') s;
SELECT 'vector, <->, 12' AS metric, s.* FROM ways_all(12, 'v', '<->', 'vector_l2_ops') s;
DROP FUNCTION ways_all, ways_compare, ways_vector;
DROP TABLE ways, ways_asked;
RESET enable_sort;

-- Gaussian noise, on which searches miss most
SET enable_sort = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
CREATE FUNCTION noise_value(a int, b int) RETURNS float8 LANGUAGE sql IMMUTABLE AS
'SELECT sqrt(-2 * ln((1 + abs(hashint4(a * 64 + b)::bigint)) / 2147483650.0))
	* cos(hashint4(-a * 64 - b - 1) / 341782637.7)';
CREATE TABLE noise (id int, v vector(32));
INSERT INTO noise SELECT i, (SELECT array_agg(noise_value(i, j))::vector(32) FROM generate_series(1, 32) j)
FROM generate_series(1, 3000) i;
CREATE TABLE wanted AS SELECT i * 100 AS id FROM generate_series(1, 30) i;
ANALYZE noise;
ANALYZE wanted;

-- Rows that the node returns until none is left, and how many of them the join finds.
CREATE FUNCTION noise_rows(OUT rows int, OUT joined int) LANGUAGE plpgsql AS $$
DECLARE
	query text := 'SELECT r.id FROM noise r JOIN wanted w ON r.id = w.id
		ORDER BY v <-> (SELECT v FROM noise WHERE id = 7) LIMIT 31';
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
		rows := coalesce(rows, substring(line FROM 'Quiver Top-K Scan.* rows=(\d+)')::int);
	END LOOP;
	EXECUTE format('SELECT count(DISTINCT id) FROM (%s) x', query) INTO joined;
END $$;

CREATE INDEX noise_v ON noise USING quiver_graph (v vector_l2_ops) WITH (m = 4);
SET quiver.ef_search = 10;
SET quiver.topk_way = index;
SET quiver.iterative_scan = strict_order;
SELECT rows BETWEEN 2000 AND 3000 AS rows FROM noise_rows();
SET quiver.iterative_scan = relaxed_order;
SELECT * FROM noise_rows();
-- no memory to know all that were returned: in strict order from then on
SET work_mem = '64kB';
SELECT rows BETWEEN 1000 AND 3000 AS rows FROM noise_rows();
RESET work_mem;

DROP INDEX noise_v;
CREATE INDEX noise_v ON noise USING quiver_ivf (v vector_l2_ops);
SELECT * FROM noise_rows();
SET quiver.iterative_scan = strict_order;
SELECT rows BETWEEN 2000 AND 3000 AS rows FROM noise_rows();

-- of rows that wait memory has room for a few: those that were left out come later, and none is missed
SET quiver.topk_way = "table";
SET work_mem = '64kB';
SELECT count(*), count(DISTINCT id) FROM
	(SELECT id FROM noise ORDER BY v <-> (SELECT v FROM noise WHERE id = 7) LIMIT 3000) x;
RESET work_mem;
-- likewise by row pages, but for rows whose bounds are wrong
-- the first row that there is no room for is a far one
CREATE TABLE copies (id int, v vector(32));
INSERT INTO copies SELECT i, v FROM noise JOIN generate_series(0, 4095) i ON id = i % 256 + 1 ORDER BY i;
INSERT INTO copies SELECT 4096 + id, v + array_fill(9, ARRAY[32])::vector FROM noise WHERE id <= 512;
CREATE INDEX ON copies USING quiver_ivf (v vector_l2_ops) WITH (lists = 2);
ANALYZE copies;
SET quiver.topk_way = row_pages;
SELECT count(*) > 0.97 * 4096 AS nearly_all FROM
	(SELECT id FROM copies ORDER BY v <-> (SELECT v FROM noise WHERE id = 7) LIMIT 4096) x;
DROP TABLE copies;
SET quiver.topk_way = index;

-- a graph proposes more rows than its largest pool is for
CREATE TABLE many (id int, v vector(3) NOT NULL);
INSERT INTO many SELECT i, ARRAY[noise_value(i, 1), noise_value(i, 2), noise_value(i, 3)]::vector
	FROM generate_series(1, 70000) i;
CREATE INDEX ON many USING quiver_graph (v vector_l2_ops) WITH (m = 8);
SET work_mem = '32MB';
-- rather than not to end
SET statement_timeout = '120s';
SELECT count(*) FROM many WHERE v <-> '[0.5,0.5,0.5]' < 10;
RESET statement_timeout;
RESET work_mem;
DROP TABLE many;

DROP TABLE noise, wanted;
DROP FUNCTION noise_rows, noise_value;

-- Plans of joins, by the rows that the server expects of them.
RESET ALL;
SET max_parallel_workers_per_gather = 0;
CREATE TABLE goods (id int PRIMARY KEY, v vector(16));
INSERT INTO goods SELECT i, (SELECT array_agg((hashint4(i % 300 * 64 + j) % 1000 + hashint4(i * 64 + j) % 300)::real)
	FROM generate_series(1, 16) j)::vector(16) FROM generate_series(1, 10000) i;
CREATE TABLE marks (item int PRIMARY KEY, r int, few int);
INSERT INTO marks SELECT i, i % 1000, i % 2 FROM generate_series(1, 10000) i;
CREATE INDEX ON marks (r);
CREATE INDEX goods_v ON goods USING quiver_graph (v vector_l2_ops);
VACUUM ANALYZE goods, marks;
CREATE FUNCTION is_scan(query text) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE format('EXPLAIN (COSTS OFF) %s ORDER BY v <-> %L LIMIT 10', query,
			array_fill(5, ARRAY[16])::vector) LOOP
		IF line ~ 'Quiver Top-K Scan' THEN
			RETURN true;
		END IF;
	END LOOP;
	RETURN false;
END $$;
SELECT condition, is_scan('SELECT id FROM goods JOIN marks ON item = id WHERE ' || condition) AS joined,
	is_scan('SELECT id FROM goods WHERE EXISTS (SELECT FROM marks WHERE item = id AND ' || condition || ')') AS exists,
	is_scan('SELECT id FROM goods WHERE id IN (SELECT item FROM marks WHERE ' || condition || ')') AS in,
	is_scan('SELECT id FROM goods WHERE NOT EXISTS (SELECT FROM marks WHERE item = id AND NOT ('
		|| condition || '))') AS anti,
	is_scan('SELECT id FROM goods LEFT JOIN marks ON item = id AND ' || condition) AS outer
FROM unnest('{few = 1,r < 10,r = 7}'::text[]) condition;
DROP TABLE goods, marks;
DROP FUNCTION is_scan;

-- a set of another index's rows, whose first ones are on the first lines of their pages
CREATE TABLE filled (line int, v vector(3));
INSERT INTO filled SELECT 0, ARRAY[i % 100, i % 7, i % 3]::vector FROM generate_series(1, 20000) i;
CREATE TABLE lines AS SELECT (ctid::text::point)[1]::int AS line, v FROM filled;
CREATE INDEX ON lines (line);
CREATE INDEX ON lines USING quiver_graph (v vector_l2_ops);
VACUUM ANALYZE lines;
SET quiver.topk_way = other_indexes;
SET enable_seqscan = off;
SELECT count(*) > 0.99 * (SELECT count(*) FROM filled WHERE (ctid::text::point)[1] < 90) AS nearly_all,
	max(line) AS last
FROM (SELECT line FROM lines WHERE line < 90 ORDER BY v <-> '[1,1,1]' LIMIT 100000) x;
RESET enable_seqscan;
RESET quiver.topk_way;
DROP TABLE filled, lines;

-- a set that knows blocks of some rows, or of all, and rows that are in no index
CREATE TABLE sparse (id int, s int, v vector(3)) WITH (fillfactor = 10);
INSERT INTO sparse SELECT i, i, CASE WHEN i % 4 > 0 THEN ARRAY[i % 100, i % 7, i % 3]::vector END
FROM generate_series(1, 30000) i;
CREATE INDEX ON sparse USING brin (s) WITH (pages_per_range = 4);
CREATE INDEX ON sparse USING quiver_ivf (v vector_l2_ops);
VACUUM ANALYZE sparse;
CREATE FUNCTION sparse_rows(way text, memory text, OUT plan text, OUT nearly_all bool, OUT nulls int)
LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	PERFORM set_config('quiver.topk_way', way, true), set_config('work_mem', memory, true),
		set_config('enable_seqscan', 'off', true), set_config('enable_sort', 'off', true);
	plan := '';
	FOR line IN EXPLAIN SELECT id FROM sparse WHERE s < 25000 AND id % 30 < 2 ORDER BY v <-> '[1,1,1]' LIMIT 5000 LOOP
		plan := plan || coalesce(substring(line FROM 'Top-K Scan|Bitmap Index Scan'), '');
	END LOOP;
	SELECT count(*) > 1650, count(*) FILTER (WHERE v IS NULL) INTO nearly_all, nulls FROM
		(SELECT * FROM sparse WHERE s < 25000 AND id % 30 < 2 ORDER BY v <-> '[1,1,1]' LIMIT 5000) x;
END $$;
SELECT count(*), count(*) FILTER (WHERE v IS NULL) AS nulls FROM sparse WHERE s < 25000 AND id % 30 < 2;
SELECT memory, way, found.*
FROM unnest('{64kB,4MB}'::text[]) memory, unnest('{auto,index,row_pages,other_indexes}'::text[]) way,
	sparse_rows(way, memory) found;
DROP TABLE sparse;
DROP FUNCTION sparse_rows;

-- a way that measures most rows before it proposes one is left in time
CREATE TABLE noise (id int, many bool, v vector(32));
SELECT setseed(0.5);
INSERT INTO noise SELECT i, i % 5 = 0, (SELECT array_agg(random()) FROM generate_series(1, 32) WHERE i > 0)::vector
FROM generate_series(1, 10000) i;
CREATE INDEX ON noise USING quiver_graph (v vector_l2_ops);
VACUUM ANALYZE noise;
CREATE FUNCTION nodes_read() RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	line text;
	nodes int;
BEGIN
	FOR line IN EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) SELECT id FROM noise WHERE many
		ORDER BY v <-> (SELECT v FROM noise WHERE id = 1) LIMIT 10 LOOP
		nodes := coalesce(substring(line FROM 'Nodes Read: (\d+)')::int, nodes);
	END LOOP;
	RETURN coalesce(nodes, 0);
END $$;
SET quiver.recall = 1;
SELECT nodes_read() < 5000 AS in_time;
RESET quiver.recall;
DROP TABLE noise;
DROP FUNCTION nodes_read;
