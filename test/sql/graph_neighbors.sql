-- How many neighbors a node has: fewer where the data are easy, and a search, inserts and
-- VACUUM make do with what is no whole batch of 32.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS vector;
CREATE EXTENSION IF NOT EXISTS quiver;
-- three numbers by chance say all 40 coordinates
CREATE FUNCTION easy(i int) RETURNS vector LANGUAGE sql IMMUTABLE AS
	'SELECT array_agg(sin(hashint4($1) / 2.1e9 * j / 8) + cos(hashint4(-$1) / 2.1e9 * j / 5)
			+ hashint4($1 + 1000000) / 2.1e9 * j / 20)::vector(40)
		FROM generate_series(1, 40) j';
-- each coordinate by chance
CREATE FUNCTION hard(i int) RETURNS vector LANGUAGE sql IMMUTABLE AS
	'SELECT array_agg(hashint4(i * 1000 + j) / 2.1e9)::vector(100) FROM generate_series(1, 100) j';
CREATE TABLE n (id int PRIMARY KEY, e vector(40), h vector(100)) WITH (autovacuum_enabled = off);
INSERT INTO n SELECT i, easy(i), hard(i) FROM generate_series(1, 4000) i;
CREATE FUNCTION neighbors(index regclass) RETURNS text LANGUAGE sql AS
	'SELECT format(''%s, %s nodes on a page'', max_degree, nodes_per_page) FROM quiver_index_info($1)';
-- the share of the ten nearest that are found of 100 rows and of as many other values
CREATE FUNCTION found(col text, op text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	query text := format('SELECT array_agg(id) FROM (SELECT id FROM n ORDER BY %1$I %2$s $1 LIMIT 10) q', col, op);
	hits int := 0;
	nearest int[];
	answer int[];
	value vector;
BEGIN
	FOR i IN 1 .. 100 LOOP
		EXECUTE format('SELECT %s(%s)', CASE col WHEN 'e' THEN 'easy' ELSE 'hard' END, i * 90) INTO value;
		SET LOCAL enable_indexscan = off;
		SET LOCAL quiver.topk_scan = off;
		EXECUTE query INTO nearest USING value;
		SET LOCAL enable_indexscan = on;
		SET LOCAL quiver.topk_scan = on;
		SET LOCAL enable_seqscan = off;
		EXECUTE query INTO answer USING value;
		SET LOCAL enable_seqscan = on;
		hits := hits + (SELECT count(*) FROM unnest(nearest) a WHERE a = ANY (answer));
	END LOOP;
	RETURN CASE WHEN hits >= 990 THEN 'nearly all' ELSE hits::text END;
END $$;
SET quiver.ef_search = 200;

-- by m; without rows, of inner products and of hard data as many as ever
CREATE INDEX i ON n USING quiver_graph (e vector_l2_ops) WITH (m = 8);
SELECT neighbors('i'), found('e', '<->');
DROP INDEX i;
CREATE INDEX i ON n USING quiver_graph (e vector_l2_ops) WITH (m = 32);
SELECT neighbors('i'), found('e', '<->');
DROP INDEX i;
CREATE INDEX i ON n USING hnsw (e vector_cosine_ops);
SELECT neighbors('i'), found('e', '<=>');
DROP INDEX i;
CREATE INDEX i ON n USING hnsw (e vector_ip_ops);
SELECT (quiver_index_info('i')).max_degree;
DROP INDEX i;
CREATE INDEX i ON n USING quiver_graph (h vector_l2_ops);
SELECT (quiver_index_info('i')).max_degree;
DROP INDEX i;
CREATE INDEX i ON n USING quiver_graph (e vector_l2_ops) WHERE id < 0;
SELECT (quiver_index_info('i')).max_degree;
DROP INDEX i;

-- as the index grows, and rows go; all rows are there, in order
CREATE INDEX i ON n USING quiver_graph (e vector_l2_ops);
INSERT INTO n SELECT i, easy(i), hard(i) FROM generate_series(4001, 8000) i;
SELECT (quiver_index_info('i')).max_degree, found('e', '<->');
DELETE FROM n WHERE id % 4 = 0;
VACUUM n;
SELECT (quiver_index_info('i')).max_degree, found('e', '<->');
INSERT INTO n SELECT i, easy(i), hard(i) FROM generate_series(8001, 9000) i;
SELECT quiver_check('i');
SET enable_seqscan = off;
SET quiver.iterative_scan = strict_order;
SET quiver.max_scan_tuples = 100000;
SELECT count(*) BETWEEN 6900 AND 7000 AS nearly_all, count(*) FILTER (WHERE d < before - 1e-6) AS late FROM (
	SELECT d, lag(d) OVER () AS before FROM (
		SELECT e <-> easy(-5) AS d FROM n ORDER BY e <-> easy(-5) LIMIT 7000) a) b;
DROP TABLE n;
DROP FUNCTION easy, hard, neighbors, found;
