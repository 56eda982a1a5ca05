-- Lists are as even as on other data where rows are far from the origin, a few are very long, or some are zero.

SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS vector;
CREATE EXTENSION IF NOT EXISTS quiver;
RESET client_min_messages;

CREATE FUNCTION noise(i int, j int) RETURNS float8 LANGUAGE sql IMMUTABLE AS
	'SELECT (hashint8extended(i, j) % 1000000 / 1e6)::float8';
CREATE FUNCTION evenness(index regclass) RETURNS TABLE (lists int, even bool) LANGUAGE sql AS
	'SELECT lists, balance < 1.2 FROM quiver_index_info(index)';

-- meters of a map: the distances of rows are a thousandth of their lengths
CREATE TABLE far (id int, v vector(2));
INSERT INTO far SELECT i, ARRAY[500000 + 1000 * noise(i, 1), 5400000 + 1000 * noise(i, 2)]::vector
FROM generate_series(1, 9000) i;
CREATE INDEX far_i ON far USING ivfflat (v vector_l2_ops) WITH (lists = 50);
SELECT * FROM evenness('far_i');
CREATE TABLE centroids AS SELECT v FROM far WHERE id <= 50;
CREATE INDEX far_c ON far USING quiver_ivf (v vector_l2_ops) WITH (centroids = 'public.centroids');

CREATE TABLE long (id int, v vector(3));
INSERT INTO long SELECT i, ARRAY[noise(i, 1), noise(i, 2), noise(i, 3)]::vector FROM generate_series(1, 9000) i;
INSERT INTO long VALUES (0, '[1e15,0,0]');
CREATE INDEX long_i ON long USING ivfflat (v vector_l2_ops) WITH (lists = 50);
SELECT * FROM evenness('long_i');
SET enable_seqscan = off;
SELECT id FROM long ORDER BY v <-> '[1e15,0,0]' LIMIT 1;
RESET enable_seqscan;

-- items without a rating, by inner product
CREATE TABLE zero (id int, v vector(8));
INSERT INTO zero SELECT i, (SELECT array_agg(CASE WHEN i % 20 = 0 THEN 0 ELSE noise(i, j) * 0.05 END)::vector
	FROM generate_series(1, 8) j) FROM generate_series(1, 5000) i;
CREATE INDEX zero_i ON zero USING ivfflat (v vector_ip_ops) WITH (lists = 200);
SELECT lists FROM evenness('zero_i');
SELECT quiver_check('far_i'), quiver_check('far_c'), quiver_check('long_i'), quiver_check('zero_i');

DROP TABLE far, centroids, long, zero;
DROP FUNCTION noise, evenness;
