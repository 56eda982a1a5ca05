-- How many rows the planner takes to be within a radius, and pages that begin at a distance.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS vector;
CREATE EXTENSION IF NOT EXISTS quiver;

CREATE TABLE items AS SELECT i AS id, hashint4(i) AS made,
	(SELECT array_agg(1 + hashint4(i * 16 + j) / 2147483648.0 ORDER BY j)
		FROM generate_series(1, 16) j)::vector(16) AS v
	FROM generate_series(1, 20000) i;
INSERT INTO items (id, made) VALUES (0, 0);
CREATE INDEX items_made ON items (made);
CREATE TABLE others AS SELECT i AS item FROM generate_series(1, 20000, 4) i;
CREATE INDEX others_item ON others (item);

-- the node that reads items, and how many rows it expects
CREATE FUNCTION radius_plan(query text, OUT node text, OUT expected float8) LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
	found jsonb;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	found := jsonb_path_query_first(plan, 'strict $.**?(@."Relation Name" == "items")');
	node := coalesce(found->>'Custom Plan Provider', found->>'Node Type');
	expected := (found->>'Plan Rows')::float8;
END $$;

-- how the planner takes radius_plans of which a share of all rows are within
CREATE FUNCTION radius_plans(form text, sign text, shares float8[])
RETURNS TABLE (share float8, all_rows text, first_rows text, joined text, estimate text) LANGUAGE plpgsql AS $$
DECLARE
	q text := (SELECT v FROM items WHERE id = 77);
	radius float8;
	near text;
	rows bigint;
BEGIN
	form := format(form, q);
	FOREACH share IN ARRAY shares LOOP
		EXECUTE format('SELECT %s FROM items WHERE v IS NOT NULL ORDER BY (%1$s) + 0 %s LIMIT 1 OFFSET %s', form,
			CASE sign WHEN '<' THEN 'ASC' ELSE 'DESC' END, share * 20000) INTO radius;
		near := format('%s %s %L', form, sign, radius);
		EXECUTE format('SELECT count(*) FROM items WHERE (%s) + 0 %s %L', form, sign, radius) INTO rows;
		all_rows := (radius_plan('SELECT count(made) FROM items WHERE ' || near)).node;
		first_rows := (radius_plan('SELECT * FROM items WHERE ' || near || ' ORDER BY made LIMIT 20')).node;
		joined := (radius_plan('SELECT * FROM items JOIN others ON id = item WHERE ' || near ||
			' ORDER BY item LIMIT 20')).node;
		SELECT CASE WHEN expected < rows / 5.0 THEN 'low' WHEN expected > rows * 5 THEN 'high' ELSE 'good' END
			INTO estimate FROM radius_plan('SELECT * FROM items WHERE ' || near);
		RETURN NEXT;
	END LOOP;
END $$;

CREATE INDEX items_v ON items USING quiver_ivf (v vector_l2_ops);
VACUUM ANALYZE items, others;
SELECT * FROM radius_plans('v <-> %L', '<', '{0.9, 0.5, 0.1, 0.001}');
DROP INDEX items_v;
CREATE INDEX items_v ON items USING quiver_graph (v vector_l2_ops);
SELECT * FROM radius_plans('v <-> %L', '<', '{0.9, 0.5, 0.1, 0.001}');
SELECT * FROM radius_plans('100 - (v <-> %L)::real', '>', '{0.5, 0.001}');
DROP INDEX items_v;
CREATE INDEX items_v ON items USING quiver_ivf (v vector_cosine_ops);
SELECT * FROM radius_plans('1 - (v <=> %L)', '>', '{0.5, 0.001}');
DROP INDEX items_v;
CREATE INDEX items_v ON items USING quiver_graph (v vector_ip_ops);
SELECT * FROM radius_plans('v <#> %L', '<', '{0.5, 0.001}');
DROP INDEX items_v;
CREATE INDEX items_v ON items USING quiver_ivf ((v::halfvec(16)) halfvec_l2_ops);
SELECT * FROM radius_plans('v::halfvec(16) <-> %L::halfvec', '<', '{0.5, 0.001}');
DROP INDEX items_v;

-- what is not known when the query is planned is taken for few rows
CREATE INDEX items_v ON items USING quiver_graph (v vector_l2_ops);
SET plan_cache_mode = force_generic_plan;
PREPARE near(vector, float8) AS SELECT count(made) FROM items WHERE v <-> $1 < $2;
SELECT node FROM radius_plan('EXECUTE near(array_fill(1, ARRAY[16])::vector, 10)');
SET plan_cache_mode = force_custom_plan;
SELECT node FROM radius_plan('EXECUTE near(array_fill(1, ARRAY[16])::vector, 10)');
SELECT node FROM radius_plan('EXECUTE near(array_fill(1, ARRAY[16])::vector, 0.1)');
EXECUTE near(array_fill(1, ARRAY[16])::vector, 10);
-- a radius that is not known, from a value that is
SET plan_cache_mode = force_generic_plan;
PREPARE within(float8) AS SELECT count(made) FROM items WHERE v <-> '[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]' < $1;
SELECT node FROM radius_plan('EXECUTE within(10)');
EXECUTE within(10);
RESET plan_cache_mode;
DEALLOCATE near;

-- no more rows than there are
SELECT expected FROM radius_plan('SELECT * FROM (SELECT * FROM items WHERE v <-> array_fill(1, ARRAY[16])::vector < 10
	LIMIT 100000) x ORDER BY made');

-- values that have no distance, or none that is possible
SELECT node FROM radius_plan($$SELECT * FROM items WHERE v <-> '[1,2]' < 1$$);
SELECT count(*) FROM items WHERE v <-> '[1,2]' < 1;
SELECT count(*) FROM items WHERE v <-> NULL < 1;
SELECT count(*) FROM items WHERE v <-> array_fill(1, ARRAY[16])::vector < NULL;
SELECT count(*) FROM items WHERE v <-> array_fill(1, ARRAY[16])::vector < -1;
SELECT count(*) FROM items WHERE v <-> array_fill(1, ARRAY[16])::vector < 'NaN';
SELECT count(*) FROM items WHERE v <-> (SELECT v FROM items WHERE id = 77) < 'Infinity';
SELECT count(*) FROM items WHERE v <-> array_fill(1e18, ARRAY[16])::vector < 1;

-- a function that may take long is not called to plan
CREATE FUNCTION radius_model() RETURNS vector STABLE LANGUAGE plpgsql AS $$BEGIN RAISE 'called'; END $$;
SELECT node FROM radius_plan('SELECT count(made) FROM items WHERE v <-> radius_model() < 10');
DROP FUNCTION radius_model;

-- of two radii the one that is known counts, whichever index comes first
ALTER TABLE items ADD w vector(16);
UPDATE items SET w = v;
VACUUM FULL ANALYZE items;
CREATE INDEX items_w ON items USING quiver_ivf (w vector_l2_ops);
SELECT expected > 5000 AS is_known FROM radius_plan('SELECT * FROM items
	WHERE v <-> array_fill(1, ARRAY[16])::vector < 10 AND w <-> (SELECT array_fill(1, ARRAY[16])::vector) < 10');
SELECT expected > 5000 AS is_known FROM radius_plan('SELECT * FROM items
	WHERE w <-> array_fill(1, ARRAY[16])::vector < 10 AND v <-> (SELECT array_fill(1, ARRAY[16])::vector) < 10');

-- rows without a value are not within a radius
UPDATE items SET w = NULL WHERE id % 4 > 0;
VACUUM ANALYZE items;
SELECT expected BETWEEN 4500 AND 5500 AS is_quarter FROM radius_plan('SELECT * FROM items
	WHERE w <-> array_fill(1, ARRAY[16])::vector < 10');
SELECT expected BETWEEN 4500 AND 5500 AS is_quarter FROM radius_plan('SELECT * FROM items
	WHERE w <-> array_fill(1, ARRAY[16])::vector < 10 AND w IS NOT NULL');
ALTER TABLE items DROP w;

-- Pages that begin at a distance show the nearest rows, each once.
CREATE FUNCTION radius_pages(condition text) RETURNS TABLE (pages int, twice bigint, are_nearest bool)
LANGUAGE plpgsql AS $$
DECLARE
	q vector := (SELECT v FROM items WHERE id = 77);
	least float8 := -1;
	shown int[] := '{}';
	page int[];
BEGIN
	FOR i IN 1..30 LOOP
		EXECUTE format('SELECT array_agg(id), max(d) FROM (SELECT id, v <-> $1 AS d FROM items
			WHERE v <-> $1 > $2 AND %s ORDER BY v <-> $1 LIMIT 10) x', condition) INTO page, least USING q, least;
		shown := shown || page;
	END LOOP;
	EXECUTE format('SELECT count(*) > 290 FROM (SELECT id FROM items WHERE %s ORDER BY (v <-> $1) + 0 LIMIT 300) x
		WHERE id = ANY ($2)', condition) INTO are_nearest USING q, shown;
	pages := cardinality(shown) / 10;
	twice := (SELECT count(*) - count(DISTINCT id) FROM unnest(shown) id);
	RETURN NEXT;
END $$;
SET enable_seqscan = off;
SELECT * FROM radius_pages('true');
SELECT * FROM radius_pages('made > 0');

-- The rows before a page are no sign that few rows match: the walk goes on.
CREATE FUNCTION radius_ways(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, FORMAT JSON) ' || query INTO plan;
	RETURN jsonb_path_query_first(plan, 'strict $.**.Strategies');
END $$;
SELECT radius_ways(format('SELECT id FROM items WHERE v <-> %L > 0 ORDER BY v <-> %1$L LIMIT 10', v))
	FROM items WHERE id = 77;
SELECT radius_ways(format('SELECT id FROM items WHERE v <-> %L > %s ORDER BY v <-> %1$L LIMIT 10', v,
	(SELECT v <-> q.v FROM items ORDER BY (v <-> q.v) + 0 OFFSET 30 LIMIT 1))) FROM items q WHERE id = 77;

-- Conditions are tested in their order: one may guard the next, or be dear.
SELECT count(*) FROM (SELECT 1 FROM items, (SELECT v AS q FROM items WHERE id = 77) x
	WHERE v <-> q > 0 AND 1 / (v <-> q) < 100 ORDER BY v <-> q LIMIT 3) y;
SELECT v AS q FROM items WHERE id = 77 \gset
SELECT count(*) FROM (SELECT 1 FROM items WHERE v <-> :'q' > 0 AND 1 / (v <-> :'q') < 100
	ORDER BY v <-> :'q' LIMIT 3) y;
CREATE SEQUENCE radius_calls;
CREATE FUNCTION radius_dear(int) RETURNS bool STABLE COST 1000 LANGUAGE plpgsql AS
	$$BEGIN PERFORM nextval('radius_calls'); RETURN true; END $$;
SELECT count(*) FROM (SELECT 1 FROM items WHERE v <-> :'q' > 1.2 AND radius_dear(made)
	ORDER BY v <-> :'q' LIMIT 3) y;
SELECT last_value < 100 AS is_tested_last FROM radius_calls;

-- A policy on the distance hides rows from the conditions of others.
CREATE ROLE radius_reader;
GRANT SELECT ON items TO radius_reader;
ALTER TABLE items ENABLE ROW LEVEL SECURITY;
CREATE POLICY near ON items USING (v <-> :'q' > 1);
SET ROLE radius_reader;
SELECT min(d) > 1 AS is_hidden FROM (SELECT v <-> :'q' AS d FROM items
	WHERE CASE WHEN id = 77 THEN 1 / (id - 77) = 0 ELSE true END ORDER BY v <-> :'q' LIMIT 10) y;
RESET ROLE;
RESET enable_seqscan;
DROP SEQUENCE radius_calls;
DROP FUNCTION radius_dear;
DROP FUNCTION radius_plan, radius_plans, radius_pages, radius_ways;
DROP TABLE items, others;
DROP ROLE radius_reader;
