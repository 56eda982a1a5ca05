-- quiver_ivf with centroids from a table
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS vector;
CREATE EXTENSION IF NOT EXISTS quiver;
RESET client_min_messages;
CREATE SCHEMA "Odd schema";
CREATE TABLE points AS
SELECT i AS id, ARRAY[i % 20 + (i % 7) / 10.0, i / 20 % 10, (i % 3) / 5.0]::vector(3) AS v
FROM generate_series(1, 2000) i;
CREATE TABLE "Odd schema"."Odd "" table" ("the ""column" vector(3), note text);
INSERT INTO "Odd schema"."Odd "" table"
SELECT ARRAY[x, y, 0.2]::vector(3), 'x' FROM generate_series(1, 19, 3) x, generate_series(1, 9, 3) y;
SELECT count(*) FROM "Odd schema"."Odd "" table";

CREATE INDEX points_idx ON points USING quiver_ivf (v vector_l2_ops) WITH (centroids = '"Odd schema"."Odd "" table"');
SELECT lists, row_count FROM quiver_index_info('points_idx');
SELECT quiver_check('points_idx');
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT id FROM points ORDER BY v <-> '[4,4,0.2]' LIMIT 3;
SELECT v <-> '[4,4,0.2]' AS d, count(*) FROM (SELECT v FROM points ORDER BY v <-> '[4,4,0.2]' LIMIT 40) s
GROUP BY 1 ORDER BY 1 LIMIT 3;
-- nothing but the nearest list
SET quiver.probes = 1;
SET quiver.iterative_scan = off;
SET quiver.topk_scan = off;
SELECT count(*) BETWEEN 20 AND 400 FROM (SELECT v FROM points ORDER BY v <-> '[4,4,0.2]' LIMIT 2000) s;
RESET quiver.probes;
RESET quiver.iterative_scan;
RESET quiver.topk_scan;

-- lists do not grow beyond the table, and REINDEX reads it again
INSERT INTO points SELECT i, ARRAY[4 + i / 1e5, 4, 0.2]::vector(3) FROM generate_series(2001, 6000) i;
SELECT lists, row_count FROM quiver_index_info('points_idx');
DELETE FROM "Odd schema"."Odd "" table" WHERE "the ""column" <-> '[0,0,0]' > 10;
SET search_path = pg_catalog, public;
REINDEX INDEX points_idx;
RESET search_path;
SELECT lists < 21, row_count FROM quiver_index_info('points_idx');
SELECT quiver_check('points_idx');

-- lists may be given if they agree
CREATE TABLE three AS SELECT v::halfvec(3) AS v FROM points LIMIT 3;
CREATE INDEX ON points USING quiver_ivf (v vector_cosine_ops) WITH (centroids = 'public.three', lists = 3);
CREATE INDEX ON points USING quiver_ivf (v vector_ip_ops) WITH (centroids = 'public.three');
CREATE INDEX half_idx ON points USING quiver_ivf ((v::halfvec(3)) halfvec_l2_ops) WITH (centroids = 'public.three');
SELECT lists, row_count FROM quiver_index_info('half_idx');
CREATE INDEX ON points USING quiver_ivf (v vector_l2_ops) WITH (centroids = 'public.three', lists = 4);

-- errors
CREATE INDEX ON points USING quiver_ivf (v vector_l2_ops) WITH (centroids = 'three');
CREATE INDEX ON points USING quiver_ivf (v vector_l2_ops) WITH (centroids = 'public.four');
CREATE INDEX ON points USING quiver_ivf (v vector_l2_ops) WITH (centroids = 'nowhere.three');
CREATE INDEX ON points USING quiver_ivf (v vector_l2_ops) WITH (centroids = 'public."three');
CREATE INDEX ON points USING quiver_ivf (v vector_l2_ops) WITH (centroids = 'public.points');
CREATE INDEX ON points USING quiver_ivf (v vector_l2_ops) WITH (centroids = '');
CREATE VIEW three_view AS SELECT * FROM three;
CREATE INDEX ON points USING quiver_ivf (v vector_l2_ops) WITH (centroids = 'public.three_view');
CREATE TABLE bad (v vector);
CREATE INDEX ON points USING quiver_ivf (v vector_l2_ops) WITH (centroids = 'public.bad');
INSERT INTO bad VALUES ('[1,2,3]'), ('[0,0,0]');
CREATE INDEX ON points USING quiver_ivf (v vector_cosine_ops) WITH (centroids = 'public.bad');
INSERT INTO bad VALUES (NULL);
CREATE INDEX ON points USING quiver_ivf (v vector_l2_ops) WITH (centroids = 'public.bad');
TRUNCATE bad;
INSERT INTO bad VALUES ('[1,2,3,4]');
CREATE INDEX ON points USING quiver_ivf (v vector_l2_ops) WITH (centroids = 'public.bad');
CREATE TABLE flags (b bit(8));
CREATE INDEX ON flags USING quiver_ivf (b bit_hamming_ops) WITH (centroids = 'public.three');

-- the table's owner must be allowed to read them
CREATE ROLE quiver_centroids_user;
GRANT CREATE ON SCHEMA public TO quiver_centroids_user;
SET ROLE quiver_centroids_user;
CREATE TABLE mine (v vector(3));
CREATE INDEX ON mine USING quiver_ivf (v vector_l2_ops) WITH (centroids = 'public.three');
RESET ROLE;

-- more lists than one page of the directory, in groups
CREATE TABLE many AS SELECT ARRAY[x, y, 0]::vector(3) AS v FROM generate_series(1, 20) x, generate_series(1, 20) y;
CREATE INDEX many_idx ON points USING quiver_ivf (v vector_l2_ops) WITH (centroids = 'public.many');
SELECT lists, row_count FROM quiver_index_info('many_idx');
SELECT quiver_check('many_idx');

DROP TABLE points, three, bad, flags, mine, many CASCADE;
DROP SCHEMA "Odd schema" CASCADE;
REVOKE CREATE ON SCHEMA public FROM quiver_centroids_user;
DROP ROLE quiver_centroids_user;
