-- By inner product, rows of very different lengths: a long row is the nearest of many queries, and
-- estimates at it tell its neighbors apart.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS vector;
CREATE EXTENSION IF NOT EXISTS quiver;
CREATE FUNCTION row_of(i int, long float8 DEFAULT 1) RETURNS vector LANGUAGE sql IMMUTABLE AS
	'SELECT array_agg(long * (hashint4(i % 200 * 1000 + j) / 2.1e9 + hashint4(i * 1000 + j + 500) / 3.5e9))::vector(96)
		FROM generate_series(1, 96) j';
CREATE TABLE l (id int PRIMARY KEY, e vector(96)) WITH (autovacuum_enabled = off);
CREATE TABLE s WITH (autovacuum_enabled = off) AS
	SELECT i AS id, row_of(i, CASE i WHEN 5 THEN 1000 ELSE 1 END) AS e FROM generate_series(1, 12000) i;
-- Does the index find a share of the k nearest of 60 queries?  Of one: of those whose nearest is the long row.
CREATE FUNCTION found(k int, share float8) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	query text := 'SELECT array_agg(id) FROM (SELECT id FROM l ORDER BY e <#> $1 LIMIT $2) q';
	hits int := 0;
	total int := 0;
	nearest int[];
	answer int[];
BEGIN
	FOR i IN 1 .. 60 LOOP
		SET LOCAL enable_indexscan = off;
		SET LOCAL quiver.topk_scan = off;
		EXECUTE query INTO nearest USING row_of(i + 100000), k;
		SET LOCAL enable_indexscan = on;
		SET LOCAL quiver.topk_scan = on;
		SET LOCAL enable_seqscan = off;
		EXECUTE query INTO answer USING row_of(i + 100000), k;
		SET LOCAL enable_seqscan = on;
		IF k > 1 OR nearest = '{5}' THEN
			hits := hits + (SELECT count(*) FROM unnest(nearest) a WHERE a = ANY (answer));
			total := total + k;
		END IF;
	END LOOP;
	RETURN CASE WHEN hits >= share * total THEN 'enough' ELSE format('%s of %s', hits, total) END;
END $$;

-- built
INSERT INTO l TABLE s;
CREATE INDEX l_idx ON l USING quiver_graph (e vector_ip_ops);
ANALYZE l;
SELECT found(1, 0.65), found(10, 0.9), found(100, 0.9);
-- the long row comes after the build
DROP INDEX l_idx;
DELETE FROM l WHERE id = 5;
VACUUM l;
CREATE INDEX l_idx ON l USING quiver_graph (e vector_ip_ops);
INSERT INTO l SELECT * FROM s WHERE id = 5;
SELECT found(1, 0.65), found(10, 0.9), found(100, 0.9);
-- grown from nothing, and measured by VACUUM
DROP INDEX l_idx;
TRUNCATE l;
CREATE INDEX l_idx ON l USING quiver_graph (e vector_ip_ops);
INSERT INTO l TABLE s ORDER BY id;
VACUUM ANALYZE l;
SELECT found(1, 0.65), found(10, 0.9), found(100, 0.9);
SELECT * FROM quiver_check('l_idx');
DROP TABLE l, s;
DROP FUNCTION found, row_of;
-- rows that are multiples of others: nothing is left of these beside the node
CREATE FUNCTION row_of(i int, long float8) RETURNS vector LANGUAGE sql IMMUTABLE AS
	'SELECT array_agg(long * hashint8(i * 1000::int8 + j) / 2.1e9)::vector(96) FROM generate_series(1, 96) j';
CREATE TABLE m (id int, e vector(96)) WITH (autovacuum_enabled = off);
CREATE INDEX m_idx ON m USING quiver_graph (e vector_ip_ops);
INSERT INTO m SELECT i, row_of(i % 600, 1 + i / 600) FROM generate_series(1, 8000) i ORDER BY hashint4(i);
VACUUM ANALYZE m;
CREATE TABLE q AS SELECT row_of(1000000 + i, 1)::vector(96) AS e FROM generate_series(1, 100) i;
SELECT recall > 0.88 AS enough FROM quiver_recall('m_idx', 100, 100, 'SELECT e FROM q');
DROP TABLE m, q;
DROP FUNCTION row_of;
