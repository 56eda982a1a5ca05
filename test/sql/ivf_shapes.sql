-- Lists are as even as on other data where rows are far from the origin, a few are very long, or some are zero.

SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS vector;
CREATE EXTENSION IF NOT EXISTS quiver;
RESET client_min_messages;

CREATE FUNCTION noise(i int, j int) RETURNS float8 LANGUAGE sql IMMUTABLE AS
	'SELECT (hashint8extended(i, j) % 1000000 / 1e6)::float8';
CREATE FUNCTION evenness(index regclass) RETURNS TABLE (lists int, even bool) LANGUAGE sql AS
	'SELECT lists, balance < 1.2 FROM quiver_index_info(index)';
SET enable_seqscan = off;

-- meters of a map: the distances of rows are a thousandth of their lengths
CREATE TABLE far (id int, v vector(2));
INSERT INTO far SELECT i, ARRAY[500000 + 1000 * noise(i, 1), 5400000 + 1000 * noise(i, 2)]::vector
FROM generate_series(1, 9000) i;
CREATE INDEX far_i ON far USING ivfflat (v vector_l2_ops) WITH (lists = 50);
SELECT * FROM evenness('far_i');

CREATE TABLE long (id int, v vector(3));
INSERT INTO long SELECT i, ARRAY[noise(i, 1), noise(i, 2), noise(i, 3)]::vector FROM generate_series(1, 9000) i;
INSERT INTO long VALUES (0, '[1e15,0,0]');
CREATE INDEX long_i ON long USING ivfflat (v vector_l2_ops) WITH (lists = 50);
SELECT * FROM evenness('long_i');
SELECT id FROM long ORDER BY v <-> '[1e15,0,0]' LIMIT 1;

-- items without a rating, by inner product: searches read the records of few rows
CREATE TABLE zero (id int, v vector(16));
INSERT INTO zero SELECT i, (SELECT array_agg(CASE WHEN i % 20 = 0 THEN 0 ELSE noise(i, j) * 0.05 END)::vector
	FROM generate_series(1, 16) j) FROM generate_series(1, 20000) i;
CREATE INDEX zero_i ON zero USING ivfflat (v vector_ip_ops) WITH (lists = 200);
SET ivfflat.probes = 10;
SELECT count(*) FROM generate_series(1, 50) i,
	LATERAL (SELECT z.id FROM zero z ORDER BY z.v <#> (SELECT q.v FROM zero q WHERE q.id = i) LIMIT 10) x;
SELECT searches, records_read < 30000 AS few FROM quiver_stat_indexes WHERE indexrelname = 'zero_i';
RESET ivfflat.probes;

-- directions near each other: lists by cosine
CREATE TABLE cone (id int, v vector(8));
INSERT INTO cone SELECT i, (SELECT array_agg(1 + noise(i, j))::vector FROM generate_series(1, 8) j)
FROM generate_series(1, 9000) i;
CREATE TABLE directions AS SELECT v FROM cone WHERE id <= 90;
CREATE INDEX cone_d ON cone USING quiver_ivf (v vector_cosine_ops) WITH (centroids = 'public.directions');
SELECT lists, balance < 2 AS even, probes < 18 AS few FROM quiver_index_info('cone_d');
SELECT quiver_check('far_i'), quiver_check('long_i'), quiver_check('zero_i'), quiver_check('cone_d');

DROP TABLE far, long, zero, cone, directions;
DROP FUNCTION noise, evenness;
