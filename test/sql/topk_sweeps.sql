-- Sweeps by codes that a session keeps find the rows of an exact scan, whatever the metric, the type, the
-- lengths of vectors, and what has become of rows since the codes were made.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS vector;
CREATE EXTENSION IF NOT EXISTS quiver;
SET jit = off;
SET max_parallel_workers_per_gather = 0;

-- 30 clusters; lengths from .01 to 100; some rows equal, some zero, some NULL; far: rows of clusters that are others'
CREATE FUNCTION sweeps_vector(i int, cluster int, dims int) RETURNS real[] LANGUAGE sql IMMUTABLE AS $$
	SELECT CASE WHEN i % 501 = 3 THEN NULL WHEN i % 400 = 7 THEN array_fill(0::real, ARRAY[dims]) ELSE
		(SELECT array_agg(((hashint4(cluster * 5000 + j) % 1000) / 1000.0 + .4 * (hashint4(i / CASE WHEN i % 10 = 0 THEN 100 ELSE 1 END * 5000 + j + 99) % 1000) / 1000.0)
			* power(10, hashint4(i) % 3 - 1 + (hashint4(i + 7) % 100) / 100.0) ORDER BY j)::real[] FROM generate_series(1, dims) j) END $$;
CREATE TABLE sweeps (id int, part int, mark int, v vector, h halfvec);

-- How many of the queries are answered by another row, or less of them, than an exact scan finds; and whether some were by a
-- sweep that read fewer rows than there are.
CREATE FUNCTION sweeps_compare(value text, op text, times int, OUT wrong int, OUT by_codes bool) LANGUAGE plpgsql AS $$
DECLARE
	query text;
	exact float8[];
	found float8[];
	line text;
	sweep bool;
	codes int;
BEGIN
	wrong := 0;
	by_codes := false;
	FOR n IN 1 .. times LOOP
		FOR q IN 1 .. 3 LOOP
			query := format('SELECT %1$s %2$s (SELECT %1$s FROM sweeps_asked WHERE q = %3$s) AS d FROM sweeps WHERE part IN (%4$s, %5$s, %6$s, %7$s) AND mark >= 0
				ORDER BY %1$s %2$s (SELECT %1$s FROM sweeps_asked WHERE q = %3$s) LIMIT 10', value, op, q, (q * 5 + 11) % 30, (q * 5 + 17) % 30, (q * 5 + 22) % 30, (q * 5 + 26) % 30);
			PERFORM set_config('enable_indexscan', 'off', true), set_config('enable_sort', 'on', true);
			EXECUTE format('SELECT array_agg(d) FROM (%s) x', query) INTO exact;
			PERFORM set_config('enable_indexscan', 'on', true), set_config('enable_sort', 'off', true);
			EXECUTE format('SELECT array_agg(d) FROM (%s) x', query) INTO found;
			sweep := false;
			codes := 0;
			FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) ' || query LOOP
				sweep := sweep OR line ~ 'Strategies: .*(sweep|exact)';
				codes := codes + coalesce(substring(line FROM '(?:Codes Scored|Nodes Read|Records Read): (\d+)')::int, 0);
			END LOOP;
			-- other ways are approximate
			IF found IS DISTINCT FROM exact AND sweep THEN
				wrong := wrong + 1;
			END IF;
			by_codes := by_codes OR (sweep AND codes BETWEEN 1 AND 2500);
		END LOOP;
	END LOOP;
END $$;

CREATE FUNCTION sweeps_all(dims int, value text, op text, opclass text) RETURNS TABLE (am text, step text, wrong int, by_codes bool) LANGUAGE plpgsql AS $$
DECLARE
	found record;
BEGIN
	FOREACH am IN ARRAY ARRAY['quiver_graph', 'quiver_ivf'] LOOP
		TRUNCATE sweeps;
		EXECUTE format('ALTER TABLE sweeps ALTER v TYPE vector(%1$s), ALTER h TYPE halfvec(%1$s)', dims);
		INSERT INTO sweeps SELECT i, i % 30, 0, x::vector, (SELECT array_agg(e / 4) FROM unnest(x) e)::halfvec
			FROM (SELECT i, sweeps_vector(i, i % 30, dims) AS x FROM generate_series(1, 3000) i) r;
		DROP TABLE IF EXISTS sweeps_asked;
		CREATE TABLE sweeps_asked AS SELECT id AS q, v, h FROM sweeps WHERE id BETWEEN 1 AND 6;
		UPDATE sweeps_asked SET v = (SELECT v FROM sweeps WHERE id = 11), h = (SELECT h FROM sweeps WHERE id = 11) WHERE v IS NULL;
		EXECUTE format('CREATE INDEX sweeps_v ON sweeps USING %s (%s %s)', am, value, opclass);
		CREATE INDEX sweeps_part ON sweeps (part);
		ANALYZE sweeps;
		SELECT * FROM sweeps_compare(value, op, 10) INTO found;
		wrong := found.wrong; by_codes := found.by_codes; step := 'built';
		RETURN NEXT;
		INSERT INTO sweeps SELECT 3000 + i, (i + 9) % 30, 0, x::vector, (SELECT array_agg(e / 4) FROM unnest(x) e)::halfvec
			FROM (SELECT i, sweeps_vector(i + 3000, i % 30, dims) AS x FROM generate_series(1, 150) i) r;
		UPDATE sweeps SET part = (part + 7) % 30 WHERE id % 17 = 2;
		DELETE FROM sweeps WHERE id % 19 = 5;
		UPDATE sweeps SET mark = -1 WHERE id % 7 = 0;
		SELECT * FROM sweeps_compare(value, op, 2) INTO found;
		wrong := found.wrong; by_codes := found.by_codes; step := 'changed';
		RETURN NEXT;
		DROP INDEX sweeps_v, sweeps_part;
	END LOOP;
END $$;

SELECT 'vector, <->' AS metric, s.* FROM sweeps_all(40, 'v', '<->', 'vector_l2_ops') s;
SELECT 'vector, <#>' AS metric, s.* FROM sweeps_all(40, 'v', '<#>', 'vector_ip_ops') s;
SELECT 'vector, <=>' AS metric, s.* FROM sweeps_all(40, 'v', '<=>', 'vector_cosine_ops') s;
SELECT 'halfvec, <->' AS metric, s.* FROM sweeps_all(40, 'h', '<->', 'halfvec_l2_ops') s;
-- few dimensions: bounds that are certain
SELECT 'vector, <->, 12' AS metric, s.* FROM sweeps_all(12, 'v', '<->', 'vector_l2_ops') s;

-- The answers of a session stay what they were at first, when nothing was known of rows: with limits, too.
CREATE FUNCTION sweeps_answers(settings text[], OUT asked bigint, OUT answers bigint, OUT rows int) LANGUAGE plpgsql AS $$
DECLARE
	line text;
	found text[] := '{}';
	answer text;
BEGIN
	FOREACH line IN ARRAY settings LOOP
		EXECUTE line;
	END LOOP;
	FOR n IN 1 .. 30 LOOP
		FOR q IN 1 .. 4 LOOP
			EXECUTE format('SELECT array_agg(id) FROM (SELECT id FROM limited WHERE part IN (%1$s, %2$s, %3$s, %4$s) ORDER BY v <=> (SELECT v FROM limited WHERE id = %5$s) LIMIT 10) x',
				(q * 5 + 11) % 24, (q * 5 + 15) % 24, (q * 5 + 17) % 24, (q * 5 + 21) % 24, q) INTO answer;
			found := found || format('%s: %s', q, answer);
		END LOOP;
	END LOOP;
	asked := cardinality(found);
	answers := (SELECT count(DISTINCT f) FROM unnest(found) f);
	rows := (SELECT min(cardinality(substring(f FROM '{.*}')::int[])) FROM unnest(found) f);
END $$;
CREATE TABLE limited AS SELECT i AS id, i % 24 AS part,
	(SELECT array_agg(hashint4(i % 24 * 5000 + j) % 1000 / 1000.0 + (hashint4(i * 64 + j) % 1000) / 500.0 ORDER BY j)::vector(48) FROM generate_series(1, 48) j) AS v
FROM generate_series(1, 6000) i;
CREATE INDEX ON limited (part);
CREATE INDEX limited_v ON limited USING ivfflat (v vector_cosine_ops) WITH (lists = 40);
ANALYZE limited;
SELECT * FROM sweeps_answers(ARRAY['SET enable_seqscan = off', 'SET enable_sort = off', 'SET ivfflat.iterative_scan = relaxed_order', 'SET ivfflat.max_probes = 8']);
DROP INDEX limited_v;
CREATE INDEX limited_v ON limited USING quiver_ivf (v vector_cosine_ops);
SELECT * FROM sweeps_answers('{}');

SET enable_seqscan = off;
SET enable_sort = off;

-- Bounds by both bits of a coordinate, of a row that is rotated to equal coordinates: a lower bound that is a
-- thousandth too high lets those be found first that lie by chance somewhat farther.
CREATE FUNCTION level_normal(i int, j bigint) RETURNS float8 LANGUAGE sql IMMUTABLE AS $$
	SELECT sqrt(-2 * ln((hashint4((i * 64 + j)::int) & 65535) / 65536.0 + .00001)) * cos(2 * pi() * (hashint4((i * 64 + j + 32)::int) & 65535) / 65536.0) $$;
CREATE FUNCTION level_vector(i int, along float8, across float8) RETURNS vector LANGUAGE sql IMMUTABLE AS $$
	SELECT array_agg(along * e + across * (e = 0)::int * level_normal(i, j) ORDER BY j)::vector(16)
	FROM unnest('{1,-1,0,0,-1,-1,0,0,0,0,0,0,0,0,0,0}'::float8[]) WITH ORDINALITY u (e, j) $$;
CREATE TABLE level (id int, part int, v vector(16)) WITH (autovacuum_enabled = false);
INSERT INTO level SELECT i, 0, level_vector(i, (2 * (i % 2) - 1) * (2 + i / 2 % 997 / 1000.0), .002) FROM generate_series(1, 6000) i;
CREATE INDEX ON level (part);
CREATE INDEX level_v ON level USING quiver_graph (v vector_ip_ops);
INSERT INTO level VALUES (100000, 1, '[1,-1,0,0,-1,-1,0,0,0,0,0,0,0,0,0,0]');
INSERT INTO level SELECT 100000 + i, 1, ARRAY[c, -c, 2 * cos(i), sin(i) * cos(i * 3), -c, -c, sin(i) * sin(i * 3) * cos(i * 7), sin(i) * sin(i * 3) * sin(i * 7), 0, 0, 0, 0, 0, 0, 0, 0]::vector(16)
	FROM (SELECT i, CASE WHEN i <= 30 THEN .9993 + .0004 * (i / 30.0) ELSE .97 + .0293 * ((i - 30) / 600.0) END AS c FROM generate_series(1, 630) i) x;
INSERT INTO level SELECT 200000 + i, 1, level_vector(i + 10000, .35 + i % 100 / 330.0, .6) FROM generate_series(1, 5000) i;
ANALYZE level;
CREATE FUNCTION level_answers(OUT asked bigint, OUT answers bigint, OUT nearest int) LANGUAGE plpgsql AS $$
DECLARE
	found text[] := '{}';
	answer int[];
BEGIN
	FOR n IN 1 .. 12 LOOP
		SELECT array_agg(id) INTO answer FROM (SELECT id FROM level WHERE part = 1 ORDER BY v <#> '[1,-1,0,0,-1,-1,0,0,0,0,0,0,0,0,0,0]' LIMIT 10) x;
		found := found || answer::text;
	END LOOP;
	asked := cardinality(found);
	answers := (SELECT count(DISTINCT f) FROM unnest(found) f);
	nearest := answer[1];
END $$;
SELECT * FROM level_answers();
DROP TABLE level;
DROP FUNCTION level_answers, level_vector, level_normal;

-- Three indexes in turn, of which not all codes fit into quiver.cache_mem: lower bits go, and none is read anew.
CREATE TABLE turns AS SELECT i AS id, i % 6 AS part,
	(SELECT array_agg(hashint4(i * 64 + j) % 1000 / 1000.0 ORDER BY j)::vector(64) FROM generate_series(1, 64) j) AS v
FROM generate_series(1, 4000) i;
CREATE TABLE turns_2 AS SELECT * FROM turns;
CREATE TABLE turns_3 AS SELECT * FROM turns;
CREATE INDEX turns_v ON turns USING quiver_graph (v vector_l2_ops);
CREATE INDEX turns_2_v ON turns_2 USING quiver_graph (v vector_l2_ops);
CREATE INDEX turns_3_v ON turns_3 USING quiver_graph (v vector_l2_ops);
CREATE INDEX ON turns (part);
CREATE INDEX ON turns_2 (part);
CREATE INDEX ON turns_3 (part);
ANALYZE turns, turns_2, turns_3;
CREATE FUNCTION turns_by_codes(times int, OUT turns bool, OUT turns_2 bool, OUT turns_3 bool, OUT answers bigint) LANGUAGE plpgsql AS $$
DECLARE
	query text := 'SELECT id FROM %I WHERE part IN (1, 2, 3) ORDER BY v <-> (SELECT v FROM turns WHERE id = 1) LIMIT 10';
	by_codes bool[] := '{}';
	found text[] := '{}';
	answer int[];
	line text;
BEGIN
	FOR n IN 1 .. times LOOP
		FOR t IN 1 .. 3 LOOP
			by_codes[t] := false;
			EXECUTE format('SELECT array_agg(id) FROM (%s) x', format(query, ('{turns,turns_2,turns_3}'::text[])[t])) INTO answer;
			found := found || answer::text;
			FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || format(query, ('{turns,turns_2,turns_3}'::text[])[t]) LOOP
				by_codes[t] := by_codes[t] OR (line ~ 'Codes Scored: 2001');
			END LOOP;
		END LOOP;
	END LOOP;
	turns := by_codes[1]; turns_2 := by_codes[2]; turns_3 := by_codes[3];
	answers := (SELECT count(DISTINCT f) FROM unnest(found) f);
END $$;
SELECT * FROM turns_by_codes(30);
SELECT count(*) FROM quiver_cache();
CREATE TEMP TABLE turns_bytes AS SELECT * FROM quiver_cache() WHERE index::text ~ 'turns';
-- one that is too large by itself takes nothing of another's
CREATE TABLE wide (id int, v vector(2000));
INSERT INTO wide SELECT i, array_fill(i, ARRAY[2000])::vector FROM generate_series(1, 400) i;
CREATE INDEX wide_v ON wide USING quiver_ivf (v vector_l2_ops) WITH (lists = 400);
SELECT set_config('quiver.cache_mem', (sum(bytes) / 1024 + 50)::int::text, false) IS NOT NULL AS bounded FROM turns_bytes;
SELECT id FROM wide ORDER BY v <-> array_fill(1, ARRAY[2000])::vector LIMIT 1;
SELECT count(*), bool_and(c.bytes = b.bytes) AS same FROM quiver_cache() c JOIN turns_bytes b USING (index);
SELECT set_config('quiver.cache_mem', (sum(bytes) / 1024 - 60)::int::text, false) IS NOT NULL AS bounded FROM turns_bytes;
SELECT * FROM turns_by_codes(3);
SELECT count(*), count(*) FILTER (WHERE c.bytes < b.bytes) AS smaller FROM quiver_cache() c JOIN turns_bytes b USING (index);
RESET quiver.cache_mem;
DROP TABLE turns, turns_2, turns_3, turns_bytes, wide;
DROP FUNCTION turns_by_codes;

DROP TABLE sweeps, sweeps_asked, limited;
DROP FUNCTION sweeps_answers, sweeps_all, sweeps_compare, sweeps_vector;
