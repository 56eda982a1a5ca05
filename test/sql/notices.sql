-- What is said of an index that does not do what one may expect: by EXPLAIN, by ALTER INDEX.

SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS vector;
CREATE EXTENSION IF NOT EXISTS quiver;
RESET client_min_messages;

CREATE TABLE told (id int PRIMARY KEY, v vector(3), h halfvec(3));
INSERT INTO told SELECT i, ARRAY[i, i % 7, 1]::vector, ARRAY[i, i % 7, 1]::vector::halfvec
FROM generate_series(1, 50) i;
ANALYZE told;

-- no index: nothing is said
EXPLAIN (COSTS OFF) SELECT id FROM told ORDER BY v <=> '[1,2,3]' LIMIT 1;
-- an index for another operator, and a b-tree
CREATE INDEX told_l2 ON told USING quiver_graph (v);
CREATE INDEX told_btree ON told (v);
EXPLAIN (COSTS OFF) SELECT id FROM told ORDER BY v <=> '[1,2,3]' LIMIT 1;
EXPLAIN (COSTS OFF) SELECT id FROM told ORDER BY '[1,2,3]' <#> v LIMIT 1;
-- a function, and a form of a distance
EXPLAIN (COSTS OFF) SELECT id FROM told ORDER BY cosine_distance(v, '[1,2,3]') LIMIT 1;
EXPLAIN (COSTS OFF) SELECT id, 1 - (v <=> '[1,2,3]') AS alike FROM told ORDER BY alike DESC NULLS LAST LIMIT 1;
EXPLAIN (COSTS OFF) SELECT id FROM told ORDER BY round(inner_product(v, '[1,2,3]')::numeric, 2) DESC LIMIT 1;
-- a radius alone
EXPLAIN (COSTS OFF) SELECT id FROM told WHERE id > 3 AND v <=> '[1,2,3]' < 0.3;
EXPLAIN (COSTS OFF) SELECT id FROM told WHERE 0.3 >= cosine_distance(v, '[1,2,3]');
-- a query of another type
EXPLAIN (COSTS OFF) SELECT id FROM told ORDER BY v <-> '[1,2,3]'::halfvec LIMIT 1;
EXPLAIN (COSTS OFF) DELETE FROM told WHERE v <-> '[1,2,3]'::halfvec < 2;
-- what no index would serve: nothing
EXPLAIN (COSTS OFF) SELECT id FROM told ORDER BY (v <=> '[1,2,3]') * id LIMIT 1;
EXPLAIN (COSTS OFF) SELECT id FROM told ORDER BY (v <=> '[1,2,3]') + (v <#> '[1,2,3]') LIMIT 1;
EXPLAIN (COSTS OFF) SELECT id FROM told ORDER BY vector_spherical_distance(v, '[1,2,3]') LIMIT 1;
EXPLAIN (COSTS OFF) SELECT id FROM told WHERE v <=> '[1,2,3]' > 0.3;
CREATE FUNCTION pg_temp.lines(query text, pattern text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE line text; n bigint := 0;
BEGIN
	FOR line IN EXECUTE query LOOP n := n + (line ~ pattern)::int; END LOOP;
	RETURN n;
END $$;
-- in a subquery, in other formats, and in a plan that is run
SELECT pg_temp.lines('EXPLAIN (ANALYZE, FORMAT yaml)
	SELECT 1 WHERE EXISTS (SELECT id FROM told ORDER BY v <+> ''[1,2,3]'' LIMIT 1)', 'Relation Name: "told"') > 0
	AS a_plan;
-- the operator that the index has, other columns, other operators: nothing
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT id FROM told ORDER BY v <-> '[1,2,3]' LIMIT 1;
EXPLAIN (COSTS OFF) SELECT id FROM told WHERE v <=> '[1,2,3]' < 0.3 ORDER BY v <-> '[1,2,3]' LIMIT 1;
RESET enable_seqscan;
EXPLAIN (COSTS OFF) SELECT id FROM told ORDER BY h <=> '[1,2,3]' LIMIT 1;
EXPLAIN (COSTS OFF) SELECT id FROM told ORDER BY v LIMIT 1;
-- one of two serves it
CREATE INDEX told_cosine ON told USING ivfflat (v vector_cosine_ops) WITH (lists = 1);
EXPLAIN (COSTS OFF) SELECT id FROM told ORDER BY v <=> '[1,2,3]' LIMIT 1;
-- not when its build did not finish
UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'told_cosine'::regclass;
DROP INDEX told_btree;
EXPLAIN (COSTS OFF) SELECT id FROM told ORDER BY v <=> '[1,2,3]' LIMIT 1;
DROP INDEX told_cosine;
-- a cast helps where an index has the column's type
EXPLAIN (COSTS OFF) SELECT id FROM told WHERE v <-> '[1,2,3]' < 1;
EXPLAIN (COSTS OFF) SELECT id FROM told ORDER BY v <+> '[1,2,3]'::halfvec LIMIT 1;
-- no index could serve these
EXPLAIN (COSTS OFF) SELECT id FROM told ORDER BY v <=> v LIMIT 1;
EXPLAIN (COSTS OFF) SELECT id FROM told ORDER BY (v <=> '[1,2,3]') < 0.5 DESC LIMIT 1;
EXPLAIN (COSTS OFF) SELECT id FROM told ORDER BY (v <=> '[1,2,3]') + random() LIMIT 1;
-- settings of EXPLAIN do as always
SELECT pg_temp.lines('EXPLAIN (ANALYZE, BUFFERS) SELECT id FROM told', 'Planning Time|Execution Time|Buffers: ') > 2
	AS all_there;

-- options that a REINDEX has to follow
ALTER INDEX told_l2 SET (m = 24, ef_construction = 100, ef_search = 50);
ALTER INDEX told_l2 SET (m = 24, recall = 0.8);
ALTER INDEX told_l2 RESET (m, recall);
ALTER INDEX told_l2 RESET (m);
CREATE INDEX told_lists ON told USING quiver_ivf (v vector_l2_ops);
ALTER INDEX told_lists SET (bits = 4);
ALTER TABLE told_lists SET (probes = 3);
ALTER INDEX told_lists RENAME TO told_lists_2;
ALTER INDEX told_pkey SET (fillfactor = 80);
ALTER TABLE told SET (fillfactor = 80);
CREATE SCHEMA elsewhere;
ALTER TABLE told SET SCHEMA elsewhere;
ALTER TABLE elsewhere.told SET SCHEMA public;
DROP SCHEMA elsewhere;
BEGIN;
ALTER INDEX told_lists_2 SET (lists = 2);
REINDEX INDEX told_lists_2;
SELECT lists, own_code_bits FROM quiver_index_info('told_lists_2');
ROLLBACK;


-- pgvector's methods serve a radius with ORDER BY and LIMIT only
CREATE TABLE flat (id int, v vector(3));
CREATE INDEX flat_hnsw ON flat USING hnsw (v vector_l2_ops);
EXPLAIN (COSTS OFF) SELECT id FROM flat WHERE v <-> '[1,2,3]' < 1;
EXPLAIN (COSTS OFF) SELECT id FROM flat WHERE v <-> '[1,2,3]' < 1 LIMIT 5;
EXPLAIN (COSTS OFF) SELECT id FROM flat WHERE v <-> '[1,2,3]' < 1 ORDER BY id LIMIT 5;
EXPLAIN (COSTS OFF) SELECT id FROM flat WHERE v <=> '[1,2,3]' < 1 LIMIT 5;
EXPLAIN (COSTS OFF) SELECT id FROM flat WHERE v <-> '[1,2,3]'::halfvec < 1 LIMIT 5;
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT id FROM flat WHERE v <-> '[1,2,3]' < 1 ORDER BY v <-> '[1,2,3]' LIMIT 5;
CREATE INDEX flat_graph ON flat USING quiver_graph (v vector_l2_ops);
EXPLAIN (COSTS OFF) SELECT id FROM flat WHERE v <-> '[1,2,3]' < 1 LIMIT 5;
RESET enable_seqscan;
DROP TABLE flat;

-- an expression that no index could serve: nothing; and one that it could
CREATE FUNCTION told_of(key text, grouped text DEFAULT '') RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	RAISE NOTICE '-- %', key;
	EXECUTE format('EXPLAIN SELECT 1 FROM told %s ORDER BY %s LIMIT 3', grouped,
		replace(key, 'FAR', '(v <=> ''[1,2,3]'')'));
	RETURN key;
END $$;
SELECT count(told_of(key, 'GROUP BY id')) FROM unnest(ARRAY['avg(FAR)', 'sum(FAR)', 'count(FAR)', 'min(FAR) - max(id)',
	'min(FAR) FILTER (WHERE id > 3)', 'array_agg(FAR)', 'percentile_cont(0.5) WITHIN GROUP (ORDER BY FAR)']) key;
SELECT count(told_of('min(FAR)', grouped)) FROM unnest(ARRAY['', 'GROUP BY id HAVING count(*) > 1',
	'GROUP BY ROLLUP (id)']) grouped;
SELECT count(told_of(key)) FROM unnest(ARRAY['FAR IS NULL', 'FAR IN (1, 2)', 'FAR IN (1, id)', 'ARRAY[FAR]',
	'ROW(FAR, 1)', 'nullif(FAR, 3)', 'FAR::text', 'FAR = 1', 'float8eq(FAR, 1)', 'FAR IS DISTINCT FROM 3',
	'(FAR < 1) IS TRUE', 'NOT FAR < 1', 'CASE WHEN FAR < 1 THEN 1 END',
	'row_number() OVER (ORDER BY FAR)', '(SELECT FAR)', '(ARRAY[FAR])[1]']) key;
SELECT count(told_of(key, 'GROUP BY id')) FROM unnest(ARRAY['min(FAR)', '1 - max(1 - FAR) + 2']) key;
SELECT count(told_of(key)) FROM unnest(ARRAY['1 - FAR', 'coalesce(FAR, 3)', 'least(FAR, 3)', 'FAR::real::numeric(4, 2)',
	'round(FAR::numeric, 2)', '-sqrt(FAR + 1)']) key;
DROP FUNCTION told_of;

-- an operator class without an operator
CREATE TABLE bare (v vector(3));
CREATE INDEX bare_l2 ON bare USING hnsw (v vector_l2_ops);
CREATE OPERATOR CLASS bare_ops FOR TYPE vector USING hnsw AS FUNCTION 1 vector_l2_squared_distance(vector, vector);
CREATE INDEX bare_bare ON bare USING hnsw (v bare_ops);
EXPLAIN (COSTS OFF) SELECT 1 FROM bare ORDER BY v <=> '[1,2,3]'::halfvec LIMIT 3;
EXPLAIN (COSTS OFF) SELECT 1 FROM bare ORDER BY v <=> '[1,2,3]' LIMIT 3;
DROP TABLE bare;
DROP OPERATOR FAMILY bare_ops USING hnsw CASCADE;

DROP TABLE told;
