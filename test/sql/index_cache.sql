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
