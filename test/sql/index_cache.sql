-- What a backend keeps of indexes goes when they change or are dropped.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS vector;
CREATE EXTENSION IF NOT EXISTS quiver;
SET enable_seqscan = off;
CREATE TABLE cached (id int, v vector(3)) WITH (autovacuum_enabled = false);
INSERT INTO cached SELECT i, ARRAY[i, i % 7, i % 5]::vector FROM generate_series(1, 200) i;
CREATE INDEX cached_graph ON cached USING quiver_graph (v vector_l2_ops);
CREATE INDEX cached_lists ON cached USING quiver_ivf (v vector_ip_ops);
CREATE VIEW kept AS SELECT count(*) FROM pg_backend_memory_contexts WHERE name = 'quiver index';

SELECT id FROM cached ORDER BY v <-> '[1,1,1]' LIMIT 1;
SELECT id FROM cached ORDER BY v <#> '[1,1,1]' LIMIT 1;
SELECT * FROM kept;
-- used again by the next statements
SELECT id FROM cached ORDER BY v <-> '[5,5,0]' LIMIT 1;
SELECT * FROM kept;

-- an open scan keeps what it has, and both are gone after it
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM cached ORDER BY v <-> '[1,1,1]';
FETCH 1 FROM c;
REINDEX INDEX cached_lists;
FETCH 1 FROM c;
COMMIT;
SELECT * FROM kept;

DROP INDEX cached_graph;
SELECT * FROM kept;
SELECT id FROM cached ORDER BY v <#> '[1,1,1]' LIMIT 1;
VACUUM cached;
SELECT id FROM cached ORDER BY v <#> '[1,1,1]' LIMIT 1;
SELECT * FROM kept;
DROP TABLE cached CASCADE;
SELECT count(*) FROM pg_backend_memory_contexts WHERE name = 'quiver index';

-- what is kept is counted, and bounded: what was used longest ago goes first
CREATE VIEW kept_bytes AS SELECT
	(SELECT sum(bytes) FROM quiver_cache()) AS counted,
	(SELECT sum(total_bytes) FROM pg_backend_memory_contexts
		WHERE name IN ('quiver index', 'quiver index part', 'quiver entry values')) AS taken;
CREATE TABLE three (id int, a vector(3), b vector(3), c vector(3)) WITH (autovacuum_enabled = false);
INSERT INTO three SELECT i, x, x, x
FROM generate_series(1, 300) i, LATERAL (SELECT ARRAY[i, i % 7, i % 5]::vector AS x) v;
CREATE INDEX three_a ON three USING quiver_graph (a vector_l2_ops);
CREATE INDEX three_b ON three USING quiver_ivf (b vector_l2_ops);
CREATE INDEX three_c ON three USING hnsw (c vector_l2_ops);
SELECT id FROM three ORDER BY b <-> '[1,1,1]' LIMIT 1;
SELECT id FROM three ORDER BY a <-> '[1,1,1]' LIMIT 1;
SELECT id FROM three ORDER BY c <-> '[1,1,1]' LIMIT 1;
SELECT index, bytes > 1000 AS bytes, in_use FROM quiver_cache();
SELECT counted = taken AS all_counted FROM kept_bytes;
SELECT ident FROM pg_backend_memory_contexts WHERE name = 'quiver index' ORDER BY 1;
SELECT set_config('quiver.cache_mem', (sum(bytes) / 1024 - 1)::int::text, false) IS NOT NULL AS bounded
FROM quiver_cache();
SELECT index FROM quiver_cache();
-- it comes again, and another goes
SELECT id FROM three ORDER BY b <-> '[1,1,1]' LIMIT 1;
SELECT index FROM quiver_cache();

-- one that is too large by itself takes no other's place
CREATE TABLE wide (id int, v vector(8000));
INSERT INTO wide SELECT i, array_fill(i, ARRAY[8000])::vector FROM generate_series(1, 3) i;
CREATE INDEX wide_v ON wide USING quiver_ivf (v vector_l2_ops);
RESET quiver.cache_mem;
SELECT id FROM three ORDER BY b <-> '[1,1,1]' LIMIT 1;
SELECT id FROM three ORDER BY a <-> '[1,1,1]' LIMIT 1;
SELECT id FROM wide ORDER BY v <-> array_fill(1, ARRAY[8000])::vector LIMIT 1;
SELECT index, bytes = max(bytes) OVER () AS largest FROM quiver_cache();
SELECT set_config('quiver.cache_mem', (max(bytes) / 1024 - 1)::int::text, false) IS NOT NULL AS bounded,
	sum(bytes) < 2 * max(bytes) AS others_fit FROM quiver_cache();
SELECT index FROM quiver_cache();
SELECT id FROM wide ORDER BY v <-> array_fill(1, ARRAY[8000])::vector LIMIT 1;
SELECT index FROM quiver_cache();
DROP TABLE wide;

-- nothing is kept after a transaction, and in it the index used last
SET quiver.cache_mem = 0;
SELECT * FROM quiver_cache();
BEGIN;
SELECT id FROM three ORDER BY a <-> '[1,1,1]' LIMIT 1;
SELECT id FROM three ORDER BY b <-> '[1,1,1]' LIMIT 1;
SELECT index, in_use FROM quiver_cache();
-- what an open scan uses stays
DECLARE c CURSOR FOR SELECT id FROM three ORDER BY c <-> '[1,1,1]';
FETCH 2 FROM c;
SELECT id FROM three ORDER BY a <-> '[1,1,1]' LIMIT 1;
SELECT index, in_use FROM quiver_cache();
FETCH 2 FROM c;
COMMIT;
SELECT * FROM quiver_cache();
SELECT * FROM kept_bytes;
RESET quiver.cache_mem;

-- DROP, REINDEX, a rollback
SELECT id FROM three ORDER BY a <-> '[1,1,1]' LIMIT 1;
SELECT id FROM three ORDER BY b <-> '[1,1,1]' LIMIT 1;
BEGIN;
REINDEX INDEX three_a;
SELECT id FROM three ORDER BY a <-> '[1,1,1]' LIMIT 1;
ROLLBACK;
SELECT id FROM three ORDER BY a <-> '[1,1,1]' LIMIT 1;
SELECT index FROM quiver_cache();
REINDEX INDEX three_b;
SELECT index FROM quiver_cache();
SELECT id FROM three ORDER BY b <-> '[1,1,1]' LIMIT 1;
SELECT index FROM quiver_cache();
DROP TABLE three;
SELECT * FROM quiver_cache();
SELECT * FROM kept_bytes;

-- of whose table the user may not read, the name is not told
CREATE TABLE hidden (v vector(3));
INSERT INTO hidden SELECT ARRAY[i, i, 1]::vector FROM generate_series(1, 100) i;
CREATE INDEX hidden_v ON hidden USING quiver_graph (v vector_l2_ops);
SELECT count(*) FROM (SELECT v FROM hidden ORDER BY v <-> '[1,1,1]' LIMIT 1) x;
CREATE ROLE quiver_cache_reader;
SET ROLE quiver_cache_reader;
SELECT index, bytes > 1000 AS bytes FROM quiver_cache();
RESET ROLE;
DROP ROLE quiver_cache_reader;
DROP TABLE hidden CASCADE;
DROP VIEW kept_bytes;
