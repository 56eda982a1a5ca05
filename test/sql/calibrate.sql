-- quiver_calibrate(): what a recall takes on the user's own queries.

SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS vector;
CREATE EXTENSION IF NOT EXISTS quiver;
RESET client_min_messages;

-- Rows without structure, from a hash.  Queries are of the same kind: some to calibrate, the
-- others to see what searches find.
CREATE FUNCTION pg_temp.vec(i int) RETURNS vector LANGUAGE sql IMMUTABLE AS $$
	SELECT array_agg((hashint8extended(i * 1000 + j, 2) & 1023) / 1023.0 ORDER BY j)::real[]::vector
	FROM generate_series(1, 16) j $$;
CREATE TABLE cal AS SELECT i AS id, pg_temp.vec(i)::vector(16) AS v FROM generate_series(1, 4000) i;
CREATE TABLE cal_log AS SELECT i AS id, pg_temp.vec(i)::vector(16) AS v FROM generate_series(10001, 10200) i;
CREATE TABLE cal_held AS SELECT i AS id, pg_temp.vec(i)::vector(16) AS v FROM generate_series(20001, 20300) i;
CREATE INDEX cal_graph ON cal USING quiver_graph (v vector_l2_ops);
CREATE INDEX cal_lists ON cal USING quiver_ivf (v vector_l2_ops) WITH (lists = 60);

CREATE VIEW cal_state AS
	SELECT index_name, recall_target, calibrated_by FROM quiver_indexes WHERE table_name = 'cal' ORDER BY 1;
CREATE FUNCTION pg_temp.plan(index text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	other text := CASE index WHEN 'cal_graph' THEN 'cal_lists' ELSE 'cal_graph' END;
	line text;
BEGIN
	EXECUTE format('UPDATE pg_index SET indisvalid = false WHERE indexrelid = %L::regclass', other);
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) SELECT id FROM cal ORDER BY v <-> (SELECT v FROM cal_log LIMIT 1) LIMIT 10'
	LOOP
		IF line ~ 'Recall|Search:' THEN RETURN NEXT trim(line); END IF;
	END LOOP;
	EXECUTE format('UPDATE pg_index SET indisvalid = true WHERE indexrelid = %L::regclass', other);
END $$;

-- before: by rows

SELECT * FROM cal_state;
SELECT * FROM pg_temp.plan('cal_graph');

-- the curve: a recall more takes no less effort

CREATE TABLE curves AS
	SELECT 'cal_graph' AS index, * FROM quiver_calibrate('cal_graph', 'SELECT v FROM cal_log')
	UNION ALL SELECT 'cal_lists', * FROM quiver_calibrate('cal_lists', 'SELECT v, id FROM cal_log');
SELECT index, recall, reached FROM curves ORDER BY 1, 2;
SELECT index, bool_and(more >= effort) AS grows, min(effort) < max(effort) AS differs
FROM (SELECT *, lead(effort, 1, effort) OVER (PARTITION BY index ORDER BY recall) AS more FROM curves) c
GROUP BY 1 ORDER BY 1;
SELECT * FROM cal_state;
SELECT * FROM pg_temp.plan('cal_graph');
SELECT * FROM pg_temp.plan('cal_lists');
SET quiver.ef_search = 40;
SELECT * FROM pg_temp.plan('cal_graph');
SELECT * FROM cal_state;
RESET quiver.ef_search;

-- settings of the session are no part of what is measured, and stay

SET quiver.topk_scan = off;
SET quiver.iterative_scan = off;
SET quiver.max_scan_tuples = 5;
SELECT bool_and(c.effort = o.effort) AS same FROM quiver_calibrate('cal_graph', 'SELECT v FROM cal_log') c
	JOIN curves o USING (recall) WHERE index = 'cal_graph';
SHOW quiver.max_scan_tuples;
RESET quiver.topk_scan;
RESET quiver.iterative_scan;
RESET quiver.max_scan_tuples;

-- what searches use is the curve; held-out queries find what was asked for

CREATE FUNCTION pg_temp.found(index regclass, wanted float8) RETURNS float8 LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('quiver.recall', wanted::text, true);
	RETURN (SELECT recall FROM quiver_recall(index, 10, 300, 'SELECT v FROM cal_held'));
END $$;
SELECT c.index, c.recall, pg_temp.found(c.index::regclass, c.recall) >= c.recall - 0.02 AS met
FROM curves c WHERE c.recall IN (0.9, 0.95, 0.99) ORDER BY 1, 2;
SET quiver.recall = 0.9;
SELECT i.index_name, coalesce(i.ef_search, i.probes) = c.effort AS same
FROM quiver_indexes i JOIN curves c ON c.index = i.index_name AND c.recall = 0.9 ORDER BY 1;
RESET quiver.recall;
SELECT quiver_check('cal_graph'), quiver_check('cal_lists');

-- queries between the clusters that rows are in: rows find each other with far less effort

CREATE FUNCTION pg_temp.near(i int, spread float8) RETURNS vector LANGUAGE sql IMMUTABLE AS $$
	SELECT array_agg(((hashint8extended(i % 50 * 1000 + j, 3) & 1023)
		+ (hashint8extended(i * 1000 + j, 4) & 1023) * spread) / 1023.0 ORDER BY j)::real[]::vector
	FROM generate_series(1, 16) j $$;
CREATE TABLE crowds AS SELECT i AS id, pg_temp.near(i, 0.05)::vector(16) AS v FROM generate_series(1, 4000) i;
CREATE INDEX crowds_graph ON crowds USING quiver_graph (v vector_l2_ops);
SELECT recall, reached FROM quiver_calibrate('crowds_graph', 'SELECT v FROM cal_log') WHERE recall < 0.99;
SET quiver.recall = 0.98;
SELECT recall > 0.96 AS found FROM quiver_recall('crowds_graph', 10, 300, 'SELECT v FROM cal_held');
RESET quiver.recall;
CREATE INDEX crowds_lists ON crowds USING quiver_ivf (v vector_l2_ops);
-- the queries that were measured find what it says, also where each list more finds many more rows
CREATE FUNCTION pg_temp.meets(wanted float8) RETURNS bool LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('quiver.recall', wanted::text, true);
	RETURN (SELECT r.recall > wanted - 0.002 FROM quiver_recall('crowds_lists', 10, 200, 'SELECT v FROM cal_log') r);
END $$;
SELECT recall, reached, pg_temp.meets(recall) FROM quiver_calibrate('crowds_lists', 'SELECT v FROM cal_log');
DROP TABLE crowds;

-- it stays: VACUUM, inserts; it goes with REINDEX

DELETE FROM cal WHERE id % 5 = 0;
VACUUM cal;
SELECT * FROM cal_state;
-- easier queries: the rows themselves
SELECT c.recall, c.effort <= o.effort AS less
FROM quiver_calibrate('cal_graph', 'SELECT v FROM cal WHERE id < 300', 150) c
	JOIN curves o ON o.index = 'cal_graph' AND o.recall = c.recall ORDER BY 1;
REINDEX INDEX cal_graph;
SELECT * FROM cal_state;
SELECT quiver_check('cal_graph'), quiver_check('cal_lists');

-- a plain graph; lists of bits

CREATE TABLE cal_bits AS SELECT id, binary_quantize(v::vector(16) - (SELECT avg(v) FROM cal)::vector(16))::bit(16) AS b
	FROM cal;
CREATE INDEX cal_bits_graph ON cal_bits USING quiver_graph (b bit_hamming_ops);
CREATE INDEX cal_bits_lists ON cal_bits USING quiver_ivf (b bit_hamming_ops);
SELECT count(*) FROM quiver_calibrate('cal_bits_graph', 'SELECT b FROM cal_bits WHERE id < 100');
SELECT count(*) FROM quiver_calibrate('cal_bits_lists', 'SELECT b FROM cal_bits WHERE id < 100');
SELECT quiver_check('cal_bits_graph') = quiver_check('cal_bits_lists') AS sound;

-- what is refused

SELECT * FROM quiver_calibrate('cal_lists', 'SELECT v FROM cal_log LIMIT 19');
SELECT * FROM quiver_calibrate('cal_lists', 'SELECT NULL::vector FROM cal_log');
SELECT * FROM quiver_calibrate('cal_lists', 'SELECT id FROM cal_log');
SELECT * FROM quiver_calibrate('cal_lists', 'DELETE FROM cal_log');
SELECT * FROM quiver_calibrate('cal_lists', 'TABLE cal_held', 19);
SELECT * FROM quiver_calibrate('cal_lists', 'TABLE cal_held', 10001);
SELECT * FROM quiver_calibrate('cal', 'SELECT v FROM cal_log');
CREATE INDEX cal_hnsw ON cal USING hnsw (v vector_l2_ops);
SELECT * FROM quiver_calibrate('cal_hnsw', 'SELECT v FROM cal_log');
BEGIN READ ONLY;
SELECT * FROM quiver_calibrate('cal_lists', 'SELECT v FROM cal_log');
ROLLBACK;
CREATE ROLE regress_quiver_caller;
GRANT SELECT ON cal, cal_log TO regress_quiver_caller;
SET ROLE regress_quiver_caller;
SELECT * FROM quiver_calibrate('cal_lists', 'SELECT v FROM cal_log');
RESET ROLE;
REVOKE ALL ON cal, cal_log FROM regress_quiver_caller;
DROP ROLE regress_quiver_caller;
SELECT count(*) FROM quiver_calibrate(NULL, 'SELECT v FROM cal_log');
-- an error of a query ends it, and leaves what was
SELECT * FROM quiver_calibrate('cal_lists', 'SELECT CASE WHEN 1 / (id - 10100) >= -1 THEN v END FROM cal_log');
SELECT * FROM cal_state;

DROP VIEW cal_state;
DROP TABLE cal, cal_log, cal_held, cal_bits, curves;
