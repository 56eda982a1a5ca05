-- With the library preloaded, a wrong setting is refused at once, and settings can be shown.

SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS vector;
CREATE EXTENSION IF NOT EXISTS quiver;

-- not preloaded: any name is taken until the library is loaded
\c -
SET quiver.no_such_setting = 1;
SET quiver.recall = 3;
SELECT format('ALTER DATABASE %I SET session_preload_libraries = quiver', current_database()) \gexec
\c -
SHOW quiver.recall;
SHOW hnsw.ef_search;
SET quiver.no_such_setting = 1;
SET quiver.recall = 3;
SET hnsw.ef_search = 1001;
-- loaded once, whatever else asks for it: its hooks are set once, or each would call itself
LOAD 'quiver';
LOAD '$libdir/quiver';
CREATE TABLE preloaded (v vector(2));
INSERT INTO preloaded SELECT ARRAY[i, 1]::vector FROM generate_series(1, 300) i;
CREATE INDEX ON preloaded USING quiver_ivf (v vector_l2_ops) WITH (lists = 1);
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT v FROM preloaded ORDER BY v <-> '[3,1]' LIMIT 1;
SELECT v FROM preloaded ORDER BY v <-> '[3,1]' LIMIT 1;
DROP TABLE preloaded;
CREATE ROLE regress_quiver_preload;
ALTER ROLE regress_quiver_preload SET quiver.recall = 3;
ALTER ROLE regress_quiver_preload SET quiver.recall = 0.9;
DROP ROLE regress_quiver_preload;
SELECT format('ALTER DATABASE %I RESET session_preload_libraries', current_database()) \gexec
