-- By inner product, rows about equally long that have much in common: an index leaves out what they
-- have in common.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS vector;
CREATE EXTENSION IF NOT EXISTS quiver;
-- a row of one of 100 groups, with the same number added to each coordinate
CREATE FUNCTION row_of(i int, more float8) RETURNS vector LANGUAGE sql IMMUTABLE AS
	'SELECT array_agg(more + hashint4(i % 100 * 1000 + j) / 2.1e9 + hashint4(i * 1000 + j + 500) / 3.5e9)::vector(96)
		FROM generate_series(1, 96) j';
CREATE TABLE p (id int PRIMARY KEY, tag int, e vector(96)) WITH (autovacuum_enabled = off);
-- Does a search find 0.9 of the ten nearest of 30 queries, and read at most so many pages of each?
CREATE FUNCTION found(more float8, pages float8, condition text DEFAULT 'true', long float8 DEFAULT 1) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
	query text := format('SELECT id FROM p WHERE %s ORDER BY e <#> $1 LIMIT 10', condition);
	ids text := 'SELECT array_agg(id) FROM (' || query || ') q';
	v vector;
	nearest int[];
	answer int[];
	plan json;
	hits int := 0;
	n int := 0;
BEGIN
	FOR i IN 1 .. 30 LOOP
		v := row_of(i + 100000, more);
		SET LOCAL enable_indexscan = off;
		SET LOCAL quiver.topk_scan = off;
		EXECUTE ids INTO nearest USING v;
		SET LOCAL enable_indexscan = on;
		SET LOCAL quiver.topk_scan = on;
		SET LOCAL enable_seqscan = off;
		v := (SELECT array_agg(x * long) FROM unnest(v::real[]) x)::vector;
		EXECUTE ids INTO answer USING v;
		EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ' || query INTO plan USING v;
		SET LOCAL enable_seqscan = on;
		hits := hits + (SELECT count(*) FROM unnest(nearest) a WHERE a = ANY (answer));
		plan := plan -> 0 -> 'Plan';
		n := n + (plan ->> 'Shared Hit Blocks')::int + (plan ->> 'Shared Read Blocks')::int;
	END LOOP;
	RETURN CASE WHEN hits >= 270 AND n <= 30 * pages THEN 'enough' ELSE format('%s of 300, %s pages', hits, n / 30) END;
END $$;

-- far from the origin
INSERT INTO p SELECT i, i % 10, row_of(i, 100) FROM generate_series(1, 6000) i;
CREATE INDEX ON p (tag);
VACUUM ANALYZE p;
CREATE INDEX p_e ON p USING quiver_ivf (e vector_ip_ops);
SELECT found(100, 600), found(100, 600, 'tag = 3');
SELECT found(100, 600, long => 0.01), found(100, 600, long => 100);
DROP INDEX p_e;
CREATE INDEX p_e ON p USING quiver_graph (e vector_ip_ops);
SELECT found(100, 100), found(100, 300, 'tag = 3');
SELECT found(100, 100, long => 0.01), found(100, 100, long => 100);
-- the index grows, rows go, and others are written again
INSERT INTO p SELECT i, i % 10, row_of(i, 100) FROM generate_series(6001, 8000) i;
DELETE FROM p WHERE id % 3 = 0;
VACUUM p;
SELECT found(100, 100), found(100, 600, 'tag = 3');
SELECT count(*) FROM quiver_check('p_e');
-- rows half as long again
INSERT INTO p SELECT 30000 + i, i % 10, (SELECT array_agg(x * 1.5) FROM unnest(row_of(i, 100)::real[]) x)::vector
	FROM generate_series(1, 1000) i;
SELECT found(100, 100);
-- queries whose squares leave float32
SELECT count(*) FROM p WHERE e <#> array_fill(1e18::real, ARRAY[96])::vector < -1.44e22;
SELECT found(100, 100, long => 1e-22), found(100, 10000, long => 1e16);
DROP INDEX p_e;
TRUNCATE p;
-- lists are split
INSERT INTO p SELECT i, i % 10, row_of(i, 2) FROM generate_series(1, 2000) i;
CREATE INDEX p_e ON p USING quiver_ivf (e vector_ip_ops);
INSERT INTO p SELECT i, i % 10, row_of(i, 2) FROM generate_series(2001, 8000) i;
SELECT found(2, 600);
DELETE FROM p WHERE id % 3 = 0;
VACUUM ANALYZE p;
SELECT found(2, 600), found(2, 600, 'tag = 3');
SELECT count(*) FROM quiver_check('p_e');
-- distances are those of the operator, also within a radius, and where rows are of other lengths
INSERT INTO p VALUES (20001, 3, row_of(1, 20)), (20002, 3, array_fill(0, ARRAY[96])::vector), (20003, 3, row_of(1, -2));
SELECT (SELECT array_agg(id) FROM (SELECT id FROM p WHERE e <#> row_of(1, 2) < -3000 ORDER BY e <#> row_of(1, 2)) q);
SET quiver.recall = 1;
SET enable_seqscan = off;
SELECT id FROM p ORDER BY e <#> row_of(1, 2) LIMIT 1;
SELECT id FROM (SELECT id, row_number() OVER (ORDER BY d) AS n, count(*) OVER () AS total
	FROM (SELECT id, e <#> row_of(1, 2) AS d FROM p ORDER BY d LIMIT 100000) q) r WHERE n >= total - 1;
DROP TABLE p;
DROP FUNCTION found, row_of;
