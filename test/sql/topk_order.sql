-- Rows that a top-k scan does not measure come in the order of those that it does: a query that returns
-- distances has all measured, one that does not has those only whose place is in doubt.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS vector;
CREATE EXTENSION IF NOT EXISTS quiver;
SET jit = off;
SET max_parallel_workers_per_gather = 0;
SET enable_seqscan = off;
SET enable_sort = off;

-- kind 0: by chance; 1: a thousandth apart, five of each; 2: the same far from the origin; 3: lengths from .001 to
-- 1000; 4, 5: lengths beyond those that an index knows, of all, of half (whose cosine is NaN)
CREATE FUNCTION ordered_vector(i int, kind int) RETURNS real[] LANGUAGE sql IMMUTABLE AS $$
	SELECT (SELECT array_agg((CASE
		WHEN kind IN (1, 2) THEN (hashint4(i % 20 * 5000 + j) % 1000) / 1000.0
			+ (hashint4(i / 5 * 5000 + j + 99) % 1000) / 1000000.0 + CASE WHEN kind = 2 THEN 1000 ELSE 0 END
		WHEN kind = 3 THEN (hashint4(i * 5000 + j) % 1000) / 1000.0 * power(10, hashint4(i) % 4)
		WHEN kind >= 4 THEN (hashint4(i * 5000 + j) % 1000) / 1000.0
			* CASE WHEN kind = 4 THEN 1e17 * (1 + i % 7) WHEN i % 2 = 0 THEN 1e20 ELSE 1 END
		ELSE (hashint4(i * 5000 + j) % 1000) / 1000.0 END) ORDER BY j)::real[] FROM generate_series(1, 32) j) $$;
CREATE TABLE ordered (id int, few int, v vector(32), h halfvec(32));
CREATE TABLE ordered_asked (q int, v vector(32), h halfvec(32));

-- Answers that differ, and whether fewer rows were measured than returned in some.
CREATE FUNCTION ordered_compare(value text, op text, OUT asked int, OUT wrong int, OUT unmeasured bool)
LANGUAGE plpgsql AS $$
DECLARE
	item text;
	query text;
	all_measured int[];
	few_measured int[];
	same bool;
	line text;
BEGIN
	asked := 0; wrong := 0; unmeasured := false;
	FOREACH item IN ARRAY ARRAY['LIMIT 1', 'LIMIT 10', 'LIMIT 7 OFFSET 5', 'LIMIT 100', 'LIMIT 101'] LOOP
		FOR n IN 0 .. 2 LOOP
			FOR q IN 1 .. 5 LOOP
				query := format('FROM ordered WHERE %1$s
					ORDER BY %2$s %3$s (SELECT %2$s FROM ordered_asked WHERE q = %4$s) %5$s',
					CASE n WHEN 0 THEN 'true' WHEN 1 THEN 'few = 3' ELSE 'id % 3 = 1' END, value, op, q, item);
				EXECUTE format('SELECT array_agg(id) FROM (SELECT id,
						%1$s %2$s (SELECT %1$s FROM ordered_asked WHERE q = %3$s) AS d %4$s) x', value, op, q, query)
					INTO all_measured;
				EXECUTE format('SELECT array_agg(id) FROM (SELECT id %s) x', query) INTO few_measured;
				asked := asked + 1;
				-- rows of one distance may come in another order
				EXECUTE format('SELECT count(*) = $3 AND
						count(*) FILTER (WHERE a.%1$s %2$s q.%1$s IS DISTINCT FROM b.%1$s %2$s q.%1$s) = 0
					FROM unnest($1, $2) u(a_id, b_id) JOIN ordered a ON a.id = a_id JOIN ordered b ON b.id = b_id,
						ordered_asked q WHERE q = %3$s', value, op, q)
					USING all_measured, few_measured, cardinality(all_measured) INTO same;
				IF same IS NOT TRUE THEN
					wrong := wrong + 1;
				END IF;
				FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) SELECT id '
						|| query LOOP
					unmeasured := unmeasured OR coalesce(
						substring(line FROM 'Rows Measured: (\d+)')::int < cardinality(few_measured), false);
				END LOOP;
			END LOOP;
		END LOOP;
	END LOOP;
END $$;
CREATE FUNCTION ordered_all(am text)
	RETURNS TABLE (kind int, metric text, asked int, wrong int, unmeasured bool)
LANGUAGE plpgsql AS $$
DECLARE
	found record;
	item text;
BEGIN
	FOR k IN 0 .. 5 LOOP
		kind := k;
		TRUNCATE ordered, ordered_asked;
		INSERT INTO ordered SELECT i, i % 17, x::vector, CASE WHEN k < 4 THEN x::vector::halfvec END
			FROM (SELECT i, ordered_vector(i, k) AS x FROM generate_series(1, 1500) i) r;
		INSERT INTO ordered_asked SELECT i, x::vector, CASE WHEN k < 4 THEN x::vector::halfvec END
			FROM (SELECT i, ordered_vector(CASE WHEN i > 3 THEN i ELSE i + 3000 END, k) AS x
				FROM generate_series(1, 5) i) r;
		FOREACH item IN ARRAY ARRAY['v <-> vector_l2_ops', 'v <#> vector_ip_ops', 'v <=> vector_cosine_ops',
				'h <-> halfvec_l2_ops'] LOOP
			CONTINUE WHEN k >= 4 AND item NOT LIKE 'v %' OR k = 5 AND item LIKE '%<=>%';
			EXECUTE format('CREATE INDEX ordered_index ON ordered USING %s (%s %s)', am,
				split_part(item, ' ', 1), split_part(item, ' ', 3));
			CREATE INDEX ordered_few ON ordered (few);
			ANALYZE ordered;
			SELECT * FROM ordered_compare(split_part(item, ' ', 1), split_part(item, ' ', 2)) INTO found;
			metric := split_part(item, ' ', 1) || ' ' || split_part(item, ' ', 2);
			asked := found.asked; wrong := found.wrong; unmeasured := found.unmeasured;
			RETURN NEXT;
			DROP INDEX ordered_index, ordered_few;
		END LOOP;
	END LOOP;
END $$;

SELECT * FROM ordered_all('quiver_graph');
SELECT * FROM ordered_all('quiver_ivf');

-- what returns distances, or needs more rows than the limit, has them measured
TRUNCATE ordered;
INSERT INTO ordered SELECT i, i % 17, x::vector, NULL
	FROM (SELECT i, ordered_vector(i, 0) AS x FROM generate_series(1, 1500) i) r;
CREATE INDEX ON ordered USING quiver_ivf (v vector_l2_ops);
ANALYZE ordered;
SELECT v AS q FROM ordered WHERE id = 77 \gset
SELECT set_config('ordered.q', :'q', false) IS NOT NULL AS set;
CREATE FUNCTION ordered_measured(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) ' || query LOOP
		IF line ~ 'Rows Measured' THEN
			RETURN trim(line);
		END IF;
	END LOOP;
END $$;
SET quiver.topk_way = index;
SELECT ordered_measured(format('SELECT id FROM ordered ORDER BY v <-> %L LIMIT 10', :'q')) AS few;
SELECT ordered_measured(format('SELECT id, v <-> %L FROM ordered ORDER BY v <-> %1$L LIMIT 10', :'q')) AS returned;
SELECT ordered_measured(format('SELECT d FROM (SELECT id, v <-> %L AS d FROM ordered
	ORDER BY v <-> %1$L LIMIT 10) x ORDER BY d DESC', :'q')) AS above;
SELECT array_agg(id) FROM (SELECT id FROM ordered ORDER BY v <-> :'q' FETCH FIRST 3 ROWS WITH TIES) x;
SELECT count(*), count(d), bool_and(d = real) AS same FROM
	(SELECT id, v <-> :'q' AS d, 1 - (v <-> :'q') AS less FROM ordered ORDER BY v <-> :'q' LIMIT 20) x JOIN
	(SELECT id, (v::real[]::vector) <-> :'q' AS real FROM ordered) y USING (id);
SELECT bool_and(less = 1 - ((SELECT v FROM ordered o WHERE o.id = x.id) <-> :'q')) AS same FROM
	(SELECT id, 1 - (v <-> :'q') AS less FROM ordered ORDER BY v <-> :'q' LIMIT 20) x;

-- a distance that the planner has in a placeholder for a while
SELECT count(*), count(d), bool_and(d = s.real) AS same FROM
	(SELECT s.* FROM (SELECT 1 AS x) u LEFT JOIN
		(SELECT id, v, v <-> coalesce(current_setting('ordered.q')::vector, '[1,2]') AS d,
			(v::real[]::vector) <-> :'q' AS real FROM ordered) s ON true
	WHERE s.id IS NOT NULL ORDER BY s.v <-> coalesce(current_setting('ordered.q')::vector, '[1,2]') LIMIT 10) s;

-- by a limit that is known when the plan runs; none at all; a cursor that goes back
PREPARE ordered_limit(int) AS SELECT id FROM ordered ORDER BY v <-> (SELECT v FROM ordered WHERE id = 77) LIMIT $1;
SET plan_cache_mode = force_generic_plan;
CREATE TEMP TABLE by_distance AS SELECT id, row_number() OVER (ORDER BY v <-> :'q', ctid) AS n FROM ordered;
EXECUTE ordered_limit(3);
SELECT array_agg(id ORDER BY n) FROM by_distance WHERE n <= 3;
CREATE TEMP TABLE without_limit AS EXECUTE ordered_limit(NULL);
SELECT count(*), count(DISTINCT id) FROM without_limit;

-- all rows that pass, however few: what is found late comes last, and only that is out of order
CREATE FUNCTION ordered_whole(condition text, OUT got int, OUT there int, OUT late int) LANGUAGE plpgsql AS $$
DECLARE
	item record;
	farthest float8 := 0;
	ids int[];
BEGIN
	late := 0;
	FOR item IN EXECUTE format('SELECT id, v <-> %L AS d FROM ordered WHERE %s ORDER BY v <-> %1$L LIMIT 5000',
			current_setting('ordered.q'), condition) LOOP
		late := late + (item.d < farthest)::int;
		farthest := greatest(farthest, item.d);
		ids := ids || item.id;
	END LOOP;
	got := (SELECT count(DISTINCT i) FROM unnest(ids) i);
	EXECUTE format('SELECT count(*) FROM ordered WHERE %s', condition) INTO there;
END $$;
RESET quiver.topk_way;
SELECT count(*) FILTER (WHERE got = there) AS whole, sum(late) < sum(there) / 50 AS few_late
FROM generate_series(0, 16) i, LATERAL ordered_whole('few = ' || i);
CREATE INDEX ON ordered (few);
ANALYZE ordered;
SELECT count(*) FILTER (WHERE got = there) AS whole, sum(late) < sum(there) / 50 AS few_late
FROM generate_series(0, 16) i, LATERAL ordered_whole('few = ' || i);
SET quiver.topk_way = other_indexes;
SELECT count(*) FILTER (WHERE got = there) AS whole, sum(late) > 0 AS some_late,
	sum(late) < sum(there) / 50 AS few_late
FROM generate_series(0, 16) i, LATERAL ordered_whole('few = ' || i);
SELECT got, there, late BETWEEN 1 AND 30 AS few_late FROM ordered_whole('true');

-- what finds equal neighbors, or merges, gets none of them
SET quiver.topk_way = index;
CREATE TABLE tied AS SELECT i AS id, (SELECT array_agg((abs(hashint4(i * 5000 + j)) % 3)::real ORDER BY j)
	FROM generate_series(1, 32) j)::vector(32) AS v FROM generate_series(1, 20000) i;
CREATE INDEX tied_idx ON tied USING quiver_graph (v vector_l2_ops);
ANALYZE tied;
SELECT v AS q FROM tied WHERE id = 77 \gset
CREATE TEMP TABLE tied_distinct AS SELECT DISTINCT v <-> :'q' AS d FROM tied ORDER BY 1 LIMIT 100;
SELECT count(*) > 30 AS many, count(*) - count(DISTINCT d) AS doubles FROM tied_distinct;
CREATE TEMP TABLE tied_groups AS SELECT v <-> :'q' AS d, count(*) AS n FROM tied GROUP BY 1 ORDER BY 1 LIMIT 100;
SELECT count(*) > 30 AS many, count(*) - count(DISTINCT d) AS doubles FROM tied_groups;
SELECT max(n) <= (SELECT count(DISTINCT v <-> :'q') FROM tied) AS ranks
FROM (SELECT dense_rank() OVER (ORDER BY v <-> :'q') AS n FROM tied LIMIT 30000) x;
CREATE TABLE merged AS SELECT id, v <-> :'q' AS d FROM tied;
CREATE INDEX ON merged (d);
ANALYZE merged;
SET enable_hashjoin = off;
SET enable_nestloop = off;
CREATE TEMP TABLE joined AS SELECT t.id FROM tied t JOIN merged m ON t.v <-> :'q' = m.d AND m.id = t.id
	ORDER BY t.v <-> :'q' LIMIT 5000;
SELECT count(*) > 4900 AS many, count(*) - count(DISTINCT id) AS doubles FROM joined;
RESET enable_hashjoin;
RESET enable_nestloop;
DROP TABLE tied, merged;
RESET quiver.topk_way;

BEGIN;
DECLARE back SCROLL CURSOR FOR SELECT id FROM ordered ORDER BY v <-> :'q' LIMIT 4;
FETCH 6 FROM back;
FETCH BACKWARD 6 FROM back;
FETCH 6 FROM back;
COMMIT;

DROP TABLE ordered, ordered_asked;
DROP FUNCTION ordered_whole, ordered_measured, ordered_all, ordered_compare, ordered_vector;
