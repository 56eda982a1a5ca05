-- Functions and views that show how indexes do: quiver_recall, quiver_estimate,
-- quiver_prewarm, quiver_indexes, quiver_stat_indexes.

SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS vector;
CREATE EXTENSION IF NOT EXISTS quiver;
RESET client_min_messages;

-- clusters of 40 rows, from a hash: the same everywhere
CREATE FUNCTION pg_temp.vec(i int, dims int) RETURNS real[] LANGUAGE sql IMMUTABLE AS $$
	SELECT array_agg((hashint8extended(i % 25 * 1000 + j, 1) & 1023) / 1023.0 * 4
		+ (hashint8extended(i * 1000 + j, 2) & 1023) / 1023.0 ORDER BY j)::real[]
	FROM generate_series(1, dims) j $$;
CREATE TABLE see (id int PRIMARY KEY, v vector(16), h halfvec(16), s sparsevec(40), b bit(64));
INSERT INTO see SELECT i, pg_temp.vec(i, 16), pg_temp.vec(i, 16)::vector::halfvec,
	('{' || (SELECT string_agg(j * 2 + i % 3 - 1 || ':' || x, ',' ORDER BY j) FROM
		unnest(pg_temp.vec(i, 16)) WITH ORDINALITY u(x, j)) || '}/40')::sparsevec,
	(SELECT string_agg((x > 2)::int::text, '' ORDER BY j)
		FROM unnest(pg_temp.vec(i, 64)) WITH ORDINALITY u(x, j))::bit(64)
FROM generate_series(1, 1000) i;
ANALYZE see;
CREATE INDEX see_graph ON see USING quiver_graph (v vector_l2_ops);
CREATE INDEX see_lists ON see USING quiver_ivf (v vector_l2_ops);

-- recall: what SQL finds, of the same rows

CREATE TABLE spread AS SELECT i AS id,
	(SELECT array_agg((hashint8extended(i * 1000 + j, 2) & 1023) / 1023.0 ORDER BY j)::real[]
		FROM generate_series(1, 16) j)::vector(16) AS v
FROM generate_series(1, 2000) i;
CREATE INDEX spread_lists ON spread USING quiver_ivf (v vector_l2_ops);
SET quiver.probes = 2;
CREATE FUNCTION pg_temp.found(q_id int, q vector) RETURNS bigint LANGUAGE sql SET enable_seqscan = off AS $$
	SELECT count(*) FROM
		(SELECT * FROM (SELECT id, v FROM spread ORDER BY v <-> q LIMIT 11) x WHERE id <> q_id LIMIT 10) y
	WHERE (v <-> q) <= (SELECT max(d) FROM
		(SELECT (v <-> q) + 0 AS d FROM spread WHERE id <> q_id ORDER BY 1 LIMIT 10) z) $$;
SELECT abs(recall - (SELECT sum(pg_temp.found(id, v)) / 400 FROM
		(SELECT id, v FROM spread ORDER BY hashtid(ctid), ctid LIMIT 40) q)) < 0.006 AS same,
	recall < 1 AS misses, recall > 0.2 AS finds, recall_low < recall AND recall < recall_high AS between,
	searches, index_ms > 0 AS index_ms, exact_ms > 0 AS exact_ms
FROM quiver_recall('spread_lists', 10, 40);
SELECT a.recall = b.recall AS same_answer
FROM quiver_recall('spread_lists', 10, 40) a, quiver_recall('spread_lists', 10, 40) b;
RESET quiver.probes;

-- as set now, and of the index that is named
SELECT recall > 0.9 AS finds FROM quiver_recall('see_lists', 10, 50);
SET quiver.recall = 1;
SELECT recall, recall_low < 1 AS not_sure, recall_high, searches FROM quiver_recall('see_lists', 10, 50);
SET quiver.probes = 1;
SELECT recall < 1 AS less FROM quiver_recall('spread_lists', 10, 50);
SET enable_indexscan = off;
SET plan_cache_mode = force_custom_plan;
SELECT recall < 1 AS less FROM quiver_recall('spread_lists', 10, 50);
RESET plan_cache_mode;
RESET enable_indexscan;
RESET quiver.probes;
RESET quiver.recall;

-- ties: 3 rows are nearer than the 200 that are tied for the other 7 ranks
CREATE TABLE tied (id int, b bit(16));
INSERT INTO tied SELECT i, CASE WHEN i <= 3 THEN B'0000000000000001' ELSE B'1100000000000000' END
FROM generate_series(1, 203) i;
CREATE INDEX tied_b ON tied USING hnsw (b bit_hamming_ops);
SELECT recall, recall_by_rank, searches
FROM quiver_recall('tied_b', 10, queries => $$SELECT B'0000000000000000'::bit(16)$$);
-- whole-number distances by lists: rows tied for the last ranks stand in for nearer ones
CREATE TABLE whole AS SELECT i AS id, (SELECT array_agg(hashint8extended(i * 1000 + j, 3) & 1 ORDER BY j)::real[]
	FROM generate_series(1, 16) j)::vector(16) AS v
FROM generate_series(1, 3000) i;
CREATE INDEX whole_lists ON whole USING quiver_ivf (v vector_l2_ops);
SET quiver.probes = 2;
SET enable_seqscan = off;
-- what a search finds of the k nearest: rows no farther than the last, and these without surplus ties
CREATE FUNCTION pg_temp.found_ranked(q vector, OUT near bigint, OUT ranked bigint) LANGUAGE sql AS $$
	WITH found AS MATERIALIZED (SELECT (v <-> q) + 0 AS d FROM (SELECT v FROM whole ORDER BY v <-> q LIMIT 10) x),
		exact AS MATERIALIZED (SELECT (v <-> q) + 0 AS d FROM whole ORDER BY 1 LIMIT 10)
	SELECT (SELECT count(*) FROM found WHERE d <= (SELECT max(d) FROM exact)),
		(SELECT sum(least(f.n, e.n)) FROM (SELECT d, count(*) AS n FROM found GROUP BY d) f
			JOIN (SELECT d, count(*) AS n FROM exact GROUP BY d) e USING (d)) $$;
SELECT abs(r.recall - f.near) <= 0.01 AS by_distance, abs(r.recall_by_rank - f.ranked) <= 0.01 AS by_rank,
	f.near - f.ranked > 0.02 AS ties_hide_misses, r.searches,
	r.recall_by_rank::text ~ '^0[.]\d{1,3}$' AS rounded,
	r.index_ms::text ~ '^(\d{3,}|[\d.]{1,4}|0[.]0*\d{1,3})$' AS ms_rounded
FROM quiver_recall('whole_lists', 10, 60, 'SELECT v FROM whole ORDER BY id') r,
	(SELECT sum(near) / 600 AS near, sum(ranked) / 600 AS ranked
		FROM (SELECT v FROM whole ORDER BY id LIMIT 60) q, pg_temp.found_ranked(v)) f;
RESET quiver.probes;
RESET enable_seqscan;
DROP TABLE tied, whole;

-- queries of one's own: no row leaves out itself
SELECT recall, searches FROM quiver_recall('see_graph', 1, 7, 'SELECT v FROM see ORDER BY id');
SELECT recall, searches FROM quiver_recall('see_graph', queries => 'SELECT v FROM see WHERE id = 0');
SELECT searches
FROM quiver_recall('see_graph', queries => 'SELECT NULL::vector UNION ALL SELECT v FROM see WHERE id = 3');
CREATE TABLE asked AS SELECT v, id FROM see WHERE id <= 12;
SELECT recall > 0.9 AS finds, searches FROM quiver_recall('see_lists', queries => 'TABLE asked');
SELECT * FROM quiver_recall('see_graph', queries => 'SELECT id FROM see');
SELECT * FROM quiver_recall('see_graph', queries => 'SELECT');
SELECT * FROM quiver_recall('see_graph', queries => 'DELETE FROM see');
SELECT * FROM quiver_recall('see_graph', queries => 'ANALYZE see');
SELECT * FROM quiver_recall('see_graph', queries => 'SELECT ''[1,2]''::vector');
SELECT * FROM quiver_recall('see_graph', queries => '');

-- plans that others make meanwhile have all indexes
PREPARE by_id AS SELECT v FROM see WHERE id = $1;
CREATE FUNCTION pg_temp.by_id() RETURNS vector LANGUAGE plpgsql AS $$
	DECLARE v vector; BEGIN EXECUTE 'EXECUTE by_id(3)' INTO v; RETURN v; END $$;
SET plan_cache_mode = force_generic_plan;
SELECT searches FROM quiver_recall('see_graph', queries => 'SELECT pg_temp.by_id()');
EXPLAIN (COSTS OFF) EXECUTE by_id(3);
DEALLOCATE by_id;
RESET plan_cache_mode;

-- nothing is left of how it was measured, after errors too
SHOW enable_seqscan;
SET enable_indexscan = off;
SELECT recall > 0.5 AS finds FROM quiver_recall('see_graph');
SHOW enable_indexscan;
RESET enable_indexscan;
\set VERBOSITY terse
SET statement_timeout = 200;
SELECT r.* FROM generate_series(901, 1000) i, quiver_recall('see_graph', 100, i) r;
RESET statement_timeout;
\set VERBOSITY default
SHOW enable_seqscan;
EXPLAIN (COSTS OFF) SELECT id FROM see WHERE id = 3;

-- every access method and type
DO $$
DECLARE
	r record;
	found record;
BEGIN
	FOR r IN SELECT * FROM (VALUES
		('hnsw', 'v', 'vector_l2_ops'), ('hnsw', 'v', 'vector_ip_ops'), ('hnsw', 'v', 'vector_cosine_ops'),
		('hnsw', 'v', 'vector_l1_ops'), ('hnsw', 'h', 'halfvec_l2_ops'), ('hnsw', 's', 'sparsevec_l2_ops'),
		('hnsw', 's', 'sparsevec_ip_ops'), ('hnsw', 's', 'sparsevec_cosine_ops'), ('hnsw', 'b', 'bit_hamming_ops'),
		('hnsw', 'b', 'bit_jaccard_ops'), ('quiver_graph', 'h', 'halfvec_cosine_ops'),
		('quiver_graph', 's', 'sparsevec_l1_ops'), ('ivfflat', 'v', 'vector_cosine_ops'),
		('ivfflat', 'h', 'halfvec_ip_ops'), ('ivfflat', 'b', 'bit_hamming_ops'), ('quiver_ivf', 'h', 'halfvec_l2_ops'),
		('quiver_ivf', 'b', 'bit_hamming_ops'), ('quiver_ivf', 'v', 'vector_ip_ops')) x (am, col, opclass)
	LOOP
		EXECUTE format('CREATE INDEX see_any ON see USING %I (%I %I) %s', r.am, r.col, r.opclass,
			CASE r.am WHEN 'ivfflat' THEN 'WITH (lists = 10)' END);
		PERFORM set_config('ivfflat.probes', '10', true), set_config('hnsw.ef_search', '200', true),
			set_config('quiver.ef_search', '200', true), set_config('quiver.recall', '1', true);
		SELECT * INTO found FROM quiver_recall('see_any', 5, 30);
		IF found.recall IS NULL OR found.recall < 0.97 OR found.searches <> 30 THEN
			RAISE WARNING '% % %: %', r.am, r.col, r.opclass, found;
		END IF;
		DROP INDEX see_any;
	END LOOP;
END $$;

-- expressions, conditions, names that need quotes
CREATE SCHEMA "See Me";
CREATE TABLE "See Me"."A ""table""" ("Id" int, "The v" vector(16), "sold?" bool);
INSERT INTO "See Me"."A ""table""" SELECT id, v, id % 3 = 0 FROM see;
CREATE INDEX "An index" ON "See Me"."A ""table""" USING quiver_graph (("The v"::halfvec(16)) halfvec_l2_ops)
	WHERE "sold?" AND "Id" > 10;
ANALYZE "See Me"."A ""table""";
SELECT recall > 0.9 AS finds, searches FROM quiver_recall('"See Me"."An index"', 3, 1000);
SELECT rows, dimensions, bytes = pg_relation_size('"See Me"."An index"') AS as_it_is
FROM quiver_estimate('"See Me"."An index"');
SELECT quiver_prewarm('"See Me"."An index"') * 8192 = pg_relation_size('"See Me"."An index"') AS all_of_it;

-- rows that no index has: NULL, zero under cosine
CREATE TABLE few (v vector(3));
CREATE INDEX few_idx ON few USING quiver_ivf (v vector_cosine_ops);
SELECT * FROM quiver_recall('few_idx');
INSERT INTO few VALUES (NULL), ('[0,0,0]');
SELECT * FROM quiver_recall('few_idx');
INSERT INTO few VALUES ('[1,2,3]');
SELECT * FROM quiver_recall('few_idx');
INSERT INTO few VALUES ('[1,2,3]'), ('[3,2,1]');
SELECT recall, searches FROM quiver_recall('few_idx');
SELECT quiver_prewarm('few_idx') > 0 AS read;

-- an expression that is defined for rows of the index alone
CREATE TABLE models (model int, v vector);
INSERT INTO models SELECT 1 + i % 2, CASE i % 2 WHEN 0 THEN '[1,2,3]' ELSE '[1,2]' END::vector
FROM generate_series(1, 100) i;
CREATE INDEX models_v ON models USING quiver_graph ((v::vector(3)) vector_l2_ops) WHERE model = 1;
SELECT e.bytes > 0 AS estimated FROM quiver_estimate('models_v') e LIMIT 1;
DROP TABLE models;
-- what cannot be
SELECT quiver_recall(NULL), quiver_recall('see_graph', NULL), quiver_prewarm(NULL),
	quiver_estimate(NULL) IS NULL AS estimate;
SELECT * FROM quiver_recall('see');
SELECT * FROM quiver_recall('see_pkey');
SELECT * FROM quiver_recall('see_graph', 0);
SELECT * FROM quiver_recall('see_graph', 1001);
SELECT * FROM quiver_recall('see_graph', 10, 0);
SELECT * FROM quiver_recall('see_graph', 10, 10001);
SELECT * FROM quiver_recall(1);
-- not an internal error: anyone may write any number
\set VERBOSITY sqlstate
SELECT quiver_prewarm(0);
SELECT quiver_check(1);
SELECT * FROM quiver_estimate(1, 'v');
\set VERBOSITY default
SELECT quiver_prewarm('see');
SELECT quiver_prewarm('see_pkey');
CREATE TABLE parts (id int, v vector(3)) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (100);
CREATE INDEX parts_idx ON parts USING quiver_graph (v vector_l2_ops) WITH (ef_search = 55);
SELECT * FROM quiver_recall('parts_idx');
SELECT quiver_prewarm('parts_idx');
SELECT * FROM quiver_estimate('parts_idx');
SELECT * FROM quiver_estimate('parts', 'v');
SELECT quiver_check('parts_idx');
SELECT searches FROM quiver_recall('parts_1_v_idx');

-- estimate: the size of the index that is then built, with the memory it says

CREATE FUNCTION pg_temp.estimated(am text, col text, opclass text, opts text[]) RETURNS TABLE (what text, off numeric)
LANGUAGE plpgsql AS $$
DECLARE
	e record;
BEGIN
	SELECT * INTO e FROM quiver_estimate('see', col, am, opts, opclass);
	PERFORM set_config('maintenance_work_mem',
		greatest(1024, ceil(e.maintenance_work_mem / 1024.0))::bigint::text, true);
	EXECUTE format('CREATE INDEX see_any ON see USING %I (%I %I) WITH (%s)', am, col, opclass,
		array_to_string(opts, ','));
	what := format('%s %s %s %s', am, opclass, opts, e.rows);
	off := round(abs(e.bytes / pg_relation_size('see_any')::numeric - 1), 2);
	DROP INDEX see_any;
	RETURN NEXT;
END $$;
SELECT * FROM pg_temp.estimated('quiver_graph', 'v', 'vector_l2_ops', '{m=8}');
SELECT * FROM pg_temp.estimated('hnsw', 'h', 'halfvec_cosine_ops', '{m=32,ef_construction=64}');
SELECT * FROM pg_temp.estimated('hnsw', 'b', 'bit_hamming_ops', '{m=16}');
SELECT what, off < 0.05 AS close FROM pg_temp.estimated('quiver_graph', 's', 'sparsevec_l2_ops', '{m=16}');
SELECT what, off < 0.15 AS close FROM pg_temp.estimated('quiver_ivf', 'v', 'vector_l2_ops', '{bits=8}');
SELECT what, off < 0.15 AS close FROM pg_temp.estimated('ivfflat', 'v', 'vector_ip_ops', '{lists=20}');
SELECT what, off < 0.15 AS close FROM pg_temp.estimated('quiver_ivf', 'b', 'bit_hamming_ops', '{lists=5}');
SELECT rows, dimensions, bytes, maintenance_work_mem > 3e9 AS gigabytes, workers, build_seconds > 1 AS seconds
FROM quiver_estimate('see', 'v', row_count => 10000000);
SELECT rows, dimensions, bytes, maintenance_work_mem > 0 AS memory, build_seconds
FROM quiver_estimate('see', 'v', row_count => 0);
SELECT rows FROM quiver_estimate('few', 'v', 'quiver_ivf', '{}', 'vector_cosine_ops', 100);
SELECT rows FROM quiver_estimate('see_graph', options => '{m=32}');
SELECT * FROM quiver_estimate('see');
SELECT * FROM quiver_estimate('see', 'nothing');
SELECT * FROM quiver_estimate('see', 'id');
SELECT * FROM quiver_estimate('see', 'v', 'btree');
SELECT * FROM quiver_estimate('see', 'v', 'nothing');
SELECT * FROM quiver_estimate('see', 'v', 'quiver_graph', '{lists=3}');
SELECT * FROM quiver_estimate('see', 'v', 'quiver_graph', '{}', 'halfvec_l2_ops');
SELECT * FROM quiver_estimate('see', 's', 'quiver_ivf');
SELECT * FROM quiver_estimate('see', 'v', row_count => -1);
SELECT * FROM quiver_estimate('see', 'v', row_count => 9223372036854775807);
SELECT rows, bytes > 1e14 AS bytes, maintenance_work_mem > 1e14 AS memory, build_seconds > 1e6 AS seconds
FROM quiver_estimate('see', 'v', row_count => 1000000000000);
-- wherever the extensions are
SET search_path = pg_catalog;
SELECT rows FROM public.quiver_estimate('public.see', 'v');
SELECT rows FROM public.quiver_estimate('public.see', 'b', 'hnsw');
RESET search_path;
SELECT * FROM quiver_estimate('see_pkey');
CREATE TABLE loose (v vector);
SELECT * FROM quiver_estimate('loose', 'v');

-- index options: the session, else the index, else server, database and role

CREATE FUNCTION pg_temp.set_as(name text) RETURNS text LANGUAGE sql AS $$
	SELECT concat_ws(' ', 'ef ' || ef_search, 'recall ' || recall_target, 'probes ' || probes)
	FROM quiver_indexes WHERE index_name = name $$;
SELECT pg_temp.set_as('see_graph'), pg_temp.set_as('see_lists');
ALTER INDEX see_graph SET (recall = 0.8);
SELECT pg_temp.set_as('see_graph');
SET quiver.recall = 0.7;
SELECT pg_temp.set_as('see_graph');
RESET quiver.recall;
ALTER INDEX see_graph RESET (recall);
ALTER INDEX see_graph SET (ef_search = 77);
ALTER INDEX see_lists SET (recall = 0.99);
SELECT pg_temp.set_as('see_graph'), pg_temp.set_as('see_lists');
ALTER INDEX see_lists SET (probes = 3);
SELECT pg_temp.set_as('see_lists');
SET quiver.ef_search = 50;
SET quiver.recall = 0.9;
SELECT pg_temp.set_as('see_graph'), pg_temp.set_as('see_lists');
SET quiver.probes = 2;
SELECT pg_temp.set_as('see_lists');
RESET quiver.recall;
RESET quiver.probes;
SET quiver.ef_search = 40;
SELECT pg_temp.set_as('see_graph') AS the_default_set_on_purpose, pg_temp.set_as('see_lists');
BEGIN;
SET LOCAL quiver.ef_search = 60;
SELECT pg_temp.set_as('see_graph');
ROLLBACK;
SELECT pg_temp.set_as('see_graph');
RESET quiver.ef_search;
SELECT pg_temp.set_as('see_graph');
CREATE FUNCTION pg_temp.set_by_function() RETURNS text LANGUAGE plpgsql SET quiver.ef_search = 33 AS $$
BEGIN RETURN pg_temp.set_as('see_graph'); END $$;
SELECT pg_temp.set_by_function();
SELECT pg_temp.set_as('see_graph');
ALTER INDEX see_lists RESET (probes, recall);
SELECT pg_temp.set_as('see_lists'), pg_temp.set_as('parts_1_v_idx');
ALTER INDEX see_graph SET (ef_search = 0);
ALTER INDEX see_lists SET (recall = 1.1);
ALTER INDEX see_lists SET (probes = 0);
CREATE INDEX ON see USING hnsw (v vector_l2_ops) WITH (ef_search = 10);
CREATE INDEX ON see USING ivfflat (v vector_l2_ops) WITH (probes = 10);
-- searches go by it, and cached plans from the next execution on
SET enable_seqscan = off;
DROP INDEX see_lists;
PREPARE all_found AS SELECT count(*) FROM
	(SELECT id FROM see ORDER BY v <-> (SELECT v FROM see WHERE id = 5) LIMIT 1000) x;
SET quiver.iterative_scan = off;
SET quiver.topk_scan = off;
SET plan_cache_mode = force_generic_plan;
EXECUTE all_found \gset at_77_
ALTER INDEX see_graph SET (ef_search = 300);
EXECUTE all_found \gset at_300_
ALTER INDEX see_graph RESET (ef_search);
EXECUTE all_found \gset at_40_
SELECT :at_40_count < :at_77_count AND :at_77_count < :at_300_count AS as_set;
RESET quiver.topk_scan;
RESET quiver.iterative_scan;
RESET plan_cache_mode;
-- and so do costs
CREATE FUNCTION pg_temp.cost(query text) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN ' || query LOOP
		RETURN substring(line FROM 'cost=(\d+[.]\d+)');
	END LOOP;
END $$;
SELECT pg_temp.cost('SELECT id FROM see ORDER BY v <-> ''[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]'' LIMIT 1') AS before \gset
ALTER INDEX see_graph SET (ef_search = 400);
SELECT pg_temp.cost('SELECT id FROM see ORDER BY v <-> ''[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]'' LIMIT 1') > :before
	AS dearer;
ALTER INDEX see_graph RESET (ef_search);
RESET enable_seqscan;
CREATE INDEX see_lists ON see USING quiver_ivf (v vector_l2_ops) WITH (recall = 0.97);
SELECT pg_get_indexdef('see_lists'::regclass);

-- the view of all indexes

CREATE TABLE invalid (v vector(2));
INSERT INTO invalid VALUES ('[1,2]'), ('[1,2]');
CREATE INDEX invalid_idx ON invalid USING quiver_graph (v vector_l2_ops);
UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'invalid_idx'::regclass;
CREATE TEMP TABLE own (v vector(2));
CREATE INDEX own_idx ON own USING ivfflat (v vector_l2_ops) WITH (lists = 3);
SELECT quiver_prewarm('see_graph') > 0 AS read, quiver_prewarm('own_idx') > 0 AS read_own;
SELECT table_name, index_name, access_method, engine, valid, options, bytes > 0 AS bytes, row_count, cached,
	ef_search, recall_target, probes > 0 AS probes, lists > 0 AS lists, dead_rows, dead_entries, lost_pages, advice
FROM quiver_indexes WHERE schema_name !~ '^pg_toast' ORDER BY index_name;
SELECT * FROM quiver_recall('invalid_idx');
SELECT quiver_prewarm('invalid_idx');
DROP TABLE invalid;

-- slots of dead rows
CREATE TABLE gone (id int, v vector(16)) WITH (autovacuum_enabled = off);
INSERT INTO gone SELECT i, pg_temp.vec(i, 16) FROM generate_series(1, 12000) i;
CREATE INDEX gone_lists ON gone USING quiver_ivf (v vector_l2_ops);
DELETE FROM gone WHERE id % 11 = 0;
VACUUM gone;
SELECT dead_entries > 100 AS many, row_count, advice FROM quiver_indexes WHERE index_name = 'gone_lists';
SELECT i.dead_rows = v.dead_entries AS as_counted, i.lost_pages = v.lost_pages AS none_lost
FROM quiver_index_info('gone_lists') i, quiver_indexes v WHERE v.index_name = 'gone_lists';
-- a fifth is of all that it holds
UPDATE pg_class SET reltuples = 4.5 * dead_entries FROM quiver_indexes
WHERE oid = index_oid AND index_name = 'gone_lists';
SELECT dead_entries > 1000 AS many, advice FROM quiver_indexes WHERE index_name = 'gone_lists';
UPDATE pg_class SET reltuples = 3.5 * dead_entries FROM quiver_indexes
WHERE oid = index_oid AND index_name = 'gone_lists';
SELECT advice FROM quiver_indexes WHERE index_name = 'gone_lists';

-- statistics

CREATE TABLE counted (id int, v vector(16));
INSERT INTO counted SELECT id, v FROM see;
CREATE INDEX counted_graph ON counted USING quiver_graph (v vector_l2_ops);
CREATE FUNCTION pg_temp.stats(name text, OUT searches bigint, OUT nodes bool, OUT lists bool, OUT codes bool,
	OUT records bool, OUT entries bool, OUT proposed bool, OUT fetched bool, OUT measured bool, OUT late bool)
LANGUAGE sql AS $$
	SELECT s.searches, nodes_read > 0 AND neighbors_scored > nodes_read, lists_read > 0, codes_scored > 0,
		records_read > 0, entries_scored > 0,
		rows_proposed > 0, rows_fetched > 0, rows_measured > 0, last_search >= stats_reset
	FROM quiver_stat_indexes s WHERE indexrelname = name $$;
SET enable_seqscan = off;
SET quiver.topk_way = index;
SELECT * FROM pg_temp.stats('counted_graph');
SELECT count(*) FROM (SELECT id FROM counted ORDER BY v <-> (SELECT v FROM see WHERE id = 1) LIMIT 3) x;
SELECT * FROM pg_temp.stats('counted_graph');
SELECT count(*) FROM (SELECT x.id FROM generate_series(2, 6) i,
	LATERAL (SELECT id FROM counted ORDER BY v <-> (SELECT v FROM see WHERE id = i) LIMIT 3) x) y;
SET quiver.topk_scan = off;
SELECT count(*) FROM
	(SELECT id FROM counted WHERE id % 100 = 7 ORDER BY v <-> (SELECT v FROM see WHERE id = 1) LIMIT 3) x;
RESET quiver.topk_scan;
SELECT searches FROM pg_temp.stats('counted_graph');
-- by the codes on row pages
SET quiver.topk_way = row_pages;
SELECT count(*) FROM
	(SELECT id FROM counted WHERE id % 100 = 7 ORDER BY v <-> (SELECT v FROM see WHERE id = 1) LIMIT 3) x;
SET quiver.topk_way = index;
SELECT searches, entries FROM pg_temp.stats('counted_graph');
SELECT rows_proposed >= rows_fetched AND rows_fetched >= rows_measured AS funnel
FROM quiver_stat_indexes WHERE indexrelname = 'counted_graph';
-- PostgreSQL's own view counts what the index has read: idx_scan, idx_tup_read, idx_tup_fetch
BEGIN;
SELECT pg_stat_get_xact_numscans(c) AS scans, pg_stat_get_xact_tuples_returned(c) AS tuples,
	pg_stat_get_xact_tuples_fetched(c) AS fetched FROM (SELECT 'counted_graph'::regclass::oid AS c) x \gset
SELECT count(*) FROM (SELECT id FROM counted ORDER BY v <-> (SELECT v FROM see WHERE id = 1) LIMIT 3) x;
SELECT pg_stat_get_xact_numscans(c) - :scans AS scans,
	pg_stat_get_xact_tuples_returned(c) - :tuples >= 3 AS tuples_read,
	pg_stat_get_xact_tuples_fetched(c) - :fetched >= 3 AS tuples_fetched
FROM (SELECT 'counted_graph'::regclass::oid AS c) x;
COMMIT;
-- of what is only planned nothing
EXPLAIN (COSTS OFF) SELECT id FROM counted ORDER BY v <-> '[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]' LIMIT 3;
SELECT searches FROM pg_temp.stats('counted_graph');
SELECT stats_reset AS reset FROM quiver_stat_indexes WHERE indexrelname = 'counted_graph' \gset
SELECT quiver_stat_reset('counted_graph');
SELECT searches, s.stats_reset > :'reset' AS reset FROM quiver_stat_indexes s WHERE indexrelname = 'counted_graph';
DROP INDEX counted_graph;
CREATE INDEX counted_lists ON counted USING quiver_ivf (v vector_l2_ops);
SELECT count(*) FROM (SELECT id FROM counted ORDER BY v <-> (SELECT v FROM see WHERE id = 1) LIMIT 3) x;
SELECT * FROM pg_temp.stats('counted_lists');
SELECT quiver_stat_reset();
SELECT sum(searches), count(*) > 3 AS of_all, min(stats_reset) > :'reset' AS reset FROM quiver_stat_indexes;
RESET enable_seqscan;

-- conditions on included columns that few rows match, and a b-tree that finds them
RESET quiver.topk_way;
CREATE TABLE keyed (id int, tenant int, v vector(3)) WITH (autovacuum_enabled = off);
INSERT INTO keyed SELECT i, i % 2000, ARRAY[i % 317, i % 211, i % 103]::vector FROM generate_series(1, 100000) i;
CREATE INDEX keyed_lists ON keyed USING quiver_ivf (v vector_l2_ops) INCLUDE (tenant);
ANALYZE keyed;
CREATE FUNCTION pg_temp.ask(first int, last int, wanted int DEFAULT 3) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE rows bigint := 0;
BEGIN
	FOR i IN first..last LOOP
		rows := rows + (SELECT count(*) FROM
			(SELECT id FROM keyed WHERE tenant = i ORDER BY v <-> '[1,2,3]' LIMIT wanted) x);
	END LOOP;
	RETURN rows;
END $$;
SELECT pg_temp.ask(1, 99);
SELECT advice FROM quiver_indexes WHERE index_name = 'keyed_lists';
SELECT pg_temp.ask(100, 100);
SELECT advice FROM quiver_indexes WHERE index_name = 'keyed_lists';
SELECT entries_removed > 90 * entries_scored AS removed FROM quiver_stat_indexes WHERE indexrelname = 'keyed_lists';
CREATE INDEX keyed_tenant ON keyed (tenant);
SELECT quiver_stat_reset('keyed_lists');
SELECT pg_temp.ask(1, 100);
SELECT advice FROM quiver_indexes WHERE index_name = 'keyed_lists';
-- the same without included columns: rows of the table are tested
DROP INDEX keyed_lists, keyed_tenant;
CREATE INDEX keyed_lists ON keyed USING quiver_ivf (v vector_l2_ops);
SET enable_sort = off;
SELECT pg_temp.ask(1, 100, 40);
SELECT advice FROM quiver_indexes WHERE index_name = 'keyed_lists';
RESET enable_sort;
DROP TABLE keyed;

-- every column of the views has a comment; helpers are no quiver_*
SELECT attrelid::regclass, attname FROM pg_attribute
WHERE attrelid IN ('quiver_indexes'::regclass, 'quiver_stat_indexes'::regclass) AND attnum > 0
	AND coalesce(col_description(attrelid, attnum), '') = '';
SELECT count(*) > 15 AS counted FROM pg_description d
WHERE classoid = 'pg_class'::regclass AND objoid = 'quiver_indexes'::regclass AND objsubid > 0;
SELECT proname FROM pg_depend d JOIN pg_proc p ON p.oid = d.objid
WHERE d.classid = 'pg_proc'::regclass AND d.deptype = 'e'
	AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'quiver') AND proname ~ '^quiver_' ORDER BY 1;

-- who may

CREATE ROLE regress_quiver_see;
CREATE FUNCTION pg_temp.asked() RETURNS vector LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'asked'; END $$;
GRANT USAGE ON SCHEMA "See Me" TO regress_quiver_see;
SET ROLE regress_quiver_see;
SELECT * FROM quiver_recall('see_graph');
SELECT * FROM quiver_estimate('see', 'v');
SELECT * FROM quiver_estimate('see_graph');
SELECT quiver_prewarm('see_graph');
SELECT quiver_stat_reset();
-- before queries run
SELECT * FROM quiver_recall('see_graph', queries => 'SELECT pg_temp.asked()');
RESET ROLE;
GRANT SELECT (id) ON see TO regress_quiver_see;
SET ROLE regress_quiver_see;
SELECT * FROM quiver_recall('see_graph', queries => 'SELECT pg_temp.asked()');
SELECT * FROM quiver_estimate('see', 'v');
SELECT count(*) FROM _quiver_buffers() WHERE indexrelid >= 16384;
SELECT ef_search, dead_entries, bytes > 0 AS bytes, cached, valid FROM quiver_indexes WHERE index_name = 'see_graph';
SELECT searches FROM quiver_stat_indexes WHERE indexrelname = 'see_graph';
RESET ROLE;
GRANT SELECT ON see TO regress_quiver_see;
SET ROLE regress_quiver_see;
SELECT searches FROM quiver_recall('see_graph');
SELECT rows FROM quiver_estimate('see', 'v');
SELECT quiver_prewarm('see_graph') > 0 AS read;
SELECT ef_search, dead_entries, cached > 0 AS cached FROM quiver_indexes WHERE index_name = 'see_graph';
SELECT DISTINCT indrelid::regclass FROM _quiver_buffers() b JOIN pg_index i USING (indexrelid)
WHERE indexrelid >= 16384;
RESET ROLE;
-- under row security, the rows that the role sees
ALTER TABLE see ENABLE ROW LEVEL SECURITY;
CREATE POLICY few ON see USING (id <= 20);
SET ROLE regress_quiver_see;
SELECT recall, searches FROM quiver_recall('see_graph', 3, 1000);
RESET ROLE;

-- functions of others that an index runs: as their owner, or not at all
CREATE SCHEMA trap;
CREATE TABLE trap.t (v vector(3));
INSERT INTO trap.t VALUES ('[1,2,3]'), ('[3,2,1]');
CREATE FUNCTION trap.through(v vector) RETURNS vector IMMUTABLE LANGUAGE sql AS 'SELECT v';
ALTER FUNCTION trap.through(vector) OWNER TO regress_quiver_see;
ALTER TABLE trap.t OWNER TO regress_quiver_see;
GRANT USAGE, CREATE ON SCHEMA trap TO regress_quiver_see;
SET ROLE regress_quiver_see;
CREATE INDEX trap_value ON trap.t USING hnsw ((trap.through(v)::vector(3)) vector_l2_ops);
CREATE INDEX trap_condition ON trap.t USING ivfflat (v vector_l2_ops) WITH (lists = 1)
	WHERE trap.through('[1,2,3]') IS NOT NULL;
CREATE OR REPLACE FUNCTION trap.through(v vector) RETURNS vector IMMUTABLE LANGUAGE plpgsql AS $$
	BEGIN RAISE NOTICE 'run as %', CASE current_user WHEN 'regress_quiver_see' THEN 'owner' ELSE 'someone else' END;
	RETURN v; END $$;
RESET ROLE;
SELECT rows FROM quiver_estimate('trap.trap_value');
SELECT current_user = session_user AS oneself;
\set VERBOSITY terse
SELECT * FROM quiver_recall('trap.trap_value');
SELECT * FROM quiver_recall('trap.trap_condition');
\set VERBOSITY default
SET client_min_messages = warning;
SET ROLE regress_quiver_see;
SELECT searches FROM quiver_recall('trap.trap_value');
RESET ROLE;
ALTER FUNCTION trap.through(vector) OWNER TO CURRENT_USER;
SELECT searches FROM quiver_recall('trap.trap_condition');
DROP SCHEMA trap CASCADE;
RESET client_min_messages;
DROP SCHEMA "See Me" CASCADE;
DROP TABLE see, spread, asked, few, parts, loose, gone, counted;
DROP ROLE regress_quiver_see;
