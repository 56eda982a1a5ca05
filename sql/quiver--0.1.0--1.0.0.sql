-- What extension quiver has since 1.0.0: functions and views that show how indexes do.

\echo Use "ALTER EXTENSION quiver UPDATE" to load this file. \quit

-- recall, and the time and memory of an index to come

CREATE FUNCTION quiver_recall(index regclass, k int DEFAULT 10, sample int DEFAULT 100,
    queries text DEFAULT NULL,
    OUT recall float8,
    OUT recall_low float8,
    OUT recall_high float8,
    OUT recall_by_rank float8,
    OUT searches int,
    OUT index_ms float8,
    OUT exact_ms float8)
    AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION quiver_recall(regclass, int, int, text) IS 'share of the k nearest rows that searches of an index find, as it is set now, with a 95 % confidence interval; of pgvector''s indexes, too; reads the table';

CREATE FUNCTION quiver_calibrate(index regclass, queries text, sample int DEFAULT 1000,
    OUT recall float8,
    OUT effort int,
    OUT reached bool)
    RETURNS SETOF record
    AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT ROWS 8;
COMMENT ON FUNCTION quiver_calibrate(regclass, text, int) IS 'measure what effort each recall takes for your own queries, and have the searches of an index go by that; reads the table';

CREATE FUNCTION quiver_estimate(relation regclass, column_name name DEFAULT NULL,
    access_method name DEFAULT 'quiver_graph', options text[] DEFAULT '{}',
    operator_class name DEFAULT NULL, row_count bigint DEFAULT NULL, include name[] DEFAULT '{}',
    OUT rows bigint,
    OUT dimensions int,
    OUT bytes bigint,
    OUT maintenance_work_mem bigint,
    OUT workers int,
    OUT build_seconds float8)
    AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION quiver_estimate(regclass, name, name, text[], name, bigint, name[]) IS 'size of an index before it is built, memory in bytes that its build should have, and very roughly how long that takes; of an index, what a REINDEX would make';

CREATE FUNCTION quiver_prewarm(index regclass) RETURNS bigint
    AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION quiver_prewarm(regclass) IS 'read an index into shared buffers, or as much as these hold; returns the number of pages';

-- statistics of searches

CREATE FUNCTION _quiver_stat(
    OUT indexrelid oid,
    OUT scope text,
    OUT searches bigint,
    OUT nodes_read bigint,
    OUT neighbors_scored bigint,
    OUT lists_read bigint,
    OUT codes_scored bigint,
    OUT records_read bigint,
    OUT entries_scored bigint,
    OUT entries_removed bigint,
    OUT rows_proposed bigint,
    OUT rows_fetched bigint,
    OUT rows_measured bigint,
    OUT last_search timestamptz,
    OUT stats_reset timestamptz)
    RETURNS SETOF record
    AS 'MODULE_PATHNAME', 'quiver_stat' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED ROWS 20;
COMMENT ON FUNCTION _quiver_stat() IS 'for the view quiver_stat_indexes';

CREATE FUNCTION quiver_stat_reset(index regclass DEFAULT NULL) RETURNS void
    AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION quiver_stat_reset(regclass) IS 'begin the statistics of an index anew, or those of all in this database';
REVOKE EXECUTE ON FUNCTION quiver_stat_reset(regclass) FROM PUBLIC;

CREATE FUNCTION _quiver_index_state(index oid,
    OUT bytes bigint,
    OUT readable bool,
    OUT ef_search int,
    OUT recall float8,
    OUT calibrated text,
    OUT probes int,
    OUT lists int,
    OUT dead_entries bigint,
    OUT lost_pages bigint,
    OUT measured bool,
    OUT old_format bool,
    OUT sketches bool,
    OUT error text)
    AS 'MODULE_PATHNAME', 'quiver_index_state' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION _quiver_index_state(oid) IS 'for the view quiver_indexes';

CREATE FUNCTION quiver_cache(OUT index regclass, OUT bytes bigint, OUT in_use bool)
    RETURNS SETOF record
    AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION quiver_cache() IS 'what this session keeps of indexes between queries, in quiver.cache_mem; used last first';

CREATE FUNCTION _quiver_buffers(OUT indexrelid oid, OUT buffers bigint)
    RETURNS SETOF record
    AS 'MODULE_PATHNAME', 'quiver_buffers' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION _quiver_buffers() IS 'for the view quiver_indexes';

-- The views run as whoever reads them, and this script finds operators by a search path that
-- has the schema of the extension. So no operand may need a conversion: an operator of
-- pg_catalog that takes exactly its types is found before any other. Functions are qualified.

CREATE VIEW quiver_stat_indexes AS
SELECT i.indrelid AS relid, i.indexrelid, n.nspname AS schemaname, t.relname, c.relname AS indexrelname,
    a.amname AS access_method, d.scope,
    coalesce(s.searches, 0::bigint) AS searches,
    coalesce(s.nodes_read, 0::bigint) AS nodes_read,
    coalesce(s.neighbors_scored, 0::bigint) AS neighbors_scored,
    coalesce(s.lists_read, 0::bigint) AS lists_read,
    coalesce(s.codes_scored, 0::bigint) AS codes_scored,
    coalesce(s.records_read, 0::bigint) AS records_read,
    coalesce(s.entries_scored, 0::bigint) AS entries_scored,
    coalesce(s.entries_removed, 0::bigint) AS entries_removed,
    coalesce(s.rows_proposed, 0::bigint) AS rows_proposed,
    coalesce(s.rows_fetched, 0::bigint) AS rows_fetched,
    coalesce(s.rows_measured, 0::bigint) AS rows_measured,
    s.last_search,
    coalesce(s.stats_reset, d.stats_reset) AS stats_reset
FROM pg_catalog.pg_index i
    JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid AND c.relkind = 'i'
    JOIN pg_catalog.pg_class t ON t.oid = i.indrelid
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_catalog.pg_am a ON a.oid = c.relam
    JOIN pg_catalog.pg_proc h ON h.oid = a.amhandler::pg_catalog.oid
        AND h.prosrc IN ('hnswhandler', 'ivfflathandler', 'quivergraphhandler', 'quiverivfhandler')
        AND h.probin ~ '(^|/)quiver(\.[a-z]+)?$'
    CROSS JOIN (SELECT * FROM _quiver_stat() WHERE indexrelid = '0'::oid) d
    LEFT JOIN _quiver_stat() s ON s.indexrelid = i.indexrelid;
COMMENT ON VIEW quiver_stat_indexes IS 'what searches of each index have read since stats_reset: of all sessions (scope server), or of this one';

CREATE VIEW quiver_indexes AS
SELECT n.nspname AS schema_name, t.relname AS table_name, c.relname AS index_name,
    c.oid AS index_oid, a.amname AS access_method, e.engine, i.indisvalid AS valid, c.reloptions AS options,
    s.bytes,
    CASE WHEN c.reltuples >= 0::real AND c.relkind = 'i' THEN c.reltuples::bigint END AS row_count,
    CASE WHEN c.relkind = 'i' AND c.relpersistence <> 't' AND s.bytes > 0::bigint AND s.readable THEN
        least(1::float8, (coalesce(b.buffers, 0::bigint) * p.page)::float8 / s.bytes::float8) END AS cached,
    CASE WHEN e.engine = 'quiver' THEN s.ef_search
        WHEN e.kind = 'graph' THEN coalesce(pg_catalog.substring(pg_catalog.current_setting('hnsw.ef_search', true), '^\d{1,6}$')::int, 40)
        END AS ef_search,
    s.recall AS recall_target,
    s.calibrated AS calibrated_by,
    CASE WHEN e.engine = 'quiver' THEN s.probes
        WHEN e.kind = 'lists' THEN coalesce(pg_catalog.substring(pg_catalog.current_setting('ivfflat.probes', true), '^\d{1,6}$')::int, 1)
        END AS probes,
    s.lists,
    pg_catalog.pg_stat_get_dead_tuples(t.oid) AS dead_rows,
    s.dead_entries, s.lost_pages,
    nullif(pg_catalog.concat_ws('; ',
        CASE WHEN NOT i.indisvalid AND c.relkind = 'i' THEN 'REINDEX or drop it: its build did not finish' END,
        CASE WHEN NOT i.indisvalid AND c.relkind = 'I' THEN 'a partition has no such index yet' END,
        CASE WHEN s.error IS NOT NULL THEN 'REINDEX: ' || s.error END,
        CASE WHEN s.old_format THEN 'REINDEX: an earlier version made it, without the row pages that conditions are answered by' END,
        CASE WHEN (s.lost_pages * p.page)::float8 > 0.1::float8 * s.bytes::float8 THEN 'REINDEX: a crash left pages that nothing leads to' END,
        CASE WHEN s.dead_entries > 1000::bigint AND s.dead_entries::float8
            > 0.2::float8 * (greatest(0::float8, c.reltuples::float8) + s.dead_entries::float8) THEN
            'REINDEX: more than a fifth of it is of dead rows' END,
        CASE WHEN NOT s.measured AND c.reltuples >= 10000::real THEN
            'VACUUM: how many lists a search needs has to be measured again' END,
        CASE WHEN pg_catalog.pg_stat_get_dead_tuples(t.oid)::float8 > greatest(1000::float8,
            0.2::float8 * pg_catalog.pg_stat_get_live_tuples(t.oid)::float8) THEN 'VACUUM: searches meet rows that are gone' END,
        CASE WHEN s.bytes > p.shared * CASE e.kind WHEN 'lists' THEN 5::bigint ELSE 1::bigint END THEN
            'shared_buffers: more of them would hold ' || CASE e.kind WHEN 'lists' THEN 'its codes' ELSE 'it' END END,
        CASE WHEN s.sketches AND s.bytes > greatest(p.cache, p.shared) / 2::bigint
            AND p.cache_unset THEN
            'effective_cache_size: it is the default, by which searches may take the index for larger than memory' END,
        CASE WHEN c.reltuples >= 100000::real AND r.searches >= 100::bigint
            AND greatest(r.entries_removed, r.rows_fetched)::float8
                > 0.5::float8 * r.searches::float8 * c.reltuples::float8
            AND greatest(r.entries_removed, r.rows_fetched)
                > 100::bigint * (CASE WHEN r.entries_removed > r.rows_fetched THEN r.entries_scored ELSE r.rows_measured END + 1::bigint) THEN
            'CREATE INDEX: a b-tree on the column of most conditions would find their rows faster'
            || ' than this index, where fewer than one row in 100 matches' END), '') AS advice
FROM pg_catalog.pg_index i
    JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
    JOIN pg_catalog.pg_class t ON t.oid = i.indrelid
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_catalog.pg_am a ON a.oid = c.relam
    JOIN pg_catalog.pg_proc h ON h.oid = a.amhandler::pg_catalog.oid
        AND h.prosrc IN ('hnswhandler', 'ivfflathandler', 'quivergraphhandler', 'quiverivfhandler')
    CROSS JOIN LATERAL (SELECT
        CASE WHEN h.probin ~ '(^|/)quiver(\.[a-z]+)?$' THEN 'quiver' ELSE 'pgvector' END AS engine,
        CASE WHEN h.prosrc IN ('hnswhandler', 'quivergraphhandler') THEN 'graph' ELSE 'lists' END AS kind) e
    CROSS JOIN (SELECT pg_catalog.current_setting('block_size')::bigint AS page,
        pg_catalog.pg_size_bytes(pg_catalog.current_setting('shared_buffers')) AS shared,
        pg_catalog.pg_size_bytes(pg_catalog.current_setting('effective_cache_size')) AS cache,
        (SELECT source = 'default' FROM pg_catalog.pg_settings WHERE name = 'effective_cache_size') AS cache_unset) p
    LEFT JOIN _quiver_buffers() b ON b.indexrelid = c.oid
    LEFT JOIN _quiver_stat() r ON r.indexrelid = c.oid
    CROSS JOIN LATERAL _quiver_index_state(c.oid) s;
COMMENT ON VIEW quiver_indexes IS 'every vector index of the database: size, settings, how it does, and what to do';

COMMENT ON COLUMN quiver_stat_indexes.relid IS 'OID of the table';
COMMENT ON COLUMN quiver_stat_indexes.indexrelid IS 'OID of the index';
COMMENT ON COLUMN quiver_stat_indexes.schemaname IS 'schema of both';
COMMENT ON COLUMN quiver_stat_indexes.relname IS 'name of the table';
COMMENT ON COLUMN quiver_stat_indexes.indexrelname IS 'name of the index';
COMMENT ON COLUMN quiver_stat_indexes.access_method IS 'access method of the index';
COMMENT ON COLUMN quiver_stat_indexes.scope IS 'whose searches are counted: server (all sessions) or session (this one)';
COMMENT ON COLUMN quiver_stat_indexes.searches IS 'searches of the index';
COMMENT ON COLUMN quiver_stat_indexes.nodes_read IS 'nodes of graphs that searches read';
COMMENT ON COLUMN quiver_stat_indexes.neighbors_scored IS 'neighbors of these nodes whose distance was estimated';
COMMENT ON COLUMN quiver_stat_indexes.lists_read IS 'posting lists that searches read';
COMMENT ON COLUMN quiver_stat_indexes.codes_scored IS 'codes in these lists whose distance was estimated';
COMMENT ON COLUMN quiver_stat_indexes.records_read IS 'finer codes of rows that were read';
COMMENT ON COLUMN quiver_stat_indexes.entries_scored IS 'codes on row pages whose distance was estimated';
COMMENT ON COLUMN quiver_stat_indexes.entries_removed IS 'rows that did not match conditions on included columns';
COMMENT ON COLUMN quiver_stat_indexes.rows_proposed IS 'rows that searches named';
COMMENT ON COLUMN quiver_stat_indexes.rows_fetched IS 'proposed rows that are visible';
COMMENT ON COLUMN quiver_stat_indexes.rows_measured IS 'matching rows whose exact distance was computed';
COMMENT ON COLUMN quiver_stat_indexes.last_search IS 'end of the last search';
COMMENT ON COLUMN quiver_stat_indexes.stats_reset IS 'when counting began';

COMMENT ON COLUMN quiver_indexes.schema_name IS 'schema of table and index';
COMMENT ON COLUMN quiver_indexes.table_name IS 'name of the table';
COMMENT ON COLUMN quiver_indexes.index_name IS 'name of the index';
COMMENT ON COLUMN quiver_indexes.index_oid IS 'OID of the index';
COMMENT ON COLUMN quiver_indexes.access_method IS 'access method of the index';
COMMENT ON COLUMN quiver_indexes.engine IS 'whose index it is: quiver or pgvector';
COMMENT ON COLUMN quiver_indexes.valid IS 'false after a build that did not finish';
COMMENT ON COLUMN quiver_indexes.options IS 'options of the index, as in pg_class.reloptions';
COMMENT ON COLUMN quiver_indexes.bytes IS 'size of the index; null while it is locked';
COMMENT ON COLUMN quiver_indexes.row_count IS 'rows, as of the last VACUUM, ANALYZE or build';
COMMENT ON COLUMN quiver_indexes.cached IS 'share of the index that is in shared buffers, from 0 to 1';
COMMENT ON COLUMN quiver_indexes.ef_search IS 'graphs: candidates that a search of this session uses';
COMMENT ON COLUMN quiver_indexes.recall_target IS 'recall that decides ef_search or probes; null if these are set';
COMMENT ON COLUMN quiver_indexes.calibrated_by IS 'what recall_target was measured on: rows of the index, or queries given to quiver_calibrate()';
COMMENT ON COLUMN quiver_indexes.probes IS 'posting lists: lists that a search of this session reads first';
COMMENT ON COLUMN quiver_indexes.lists IS 'posting lists: their number';
COMMENT ON COLUMN quiver_indexes.dead_rows IS 'dead rows of the table, by the servers statistics';
COMMENT ON COLUMN quiver_indexes.dead_entries IS 'entries of dead rows in the index, estimated from up to 500 pages';
COMMENT ON COLUMN quiver_indexes.lost_pages IS 'pages of the index that a crash left, estimated from up to 500 pages';
COMMENT ON COLUMN quiver_indexes.advice IS 'what to do and why; null: nothing';

GRANT SELECT ON quiver_stat_indexes, quiver_indexes TO PUBLIC;

-- quiver.ef_search is 0 where quiver.recall decides, which knows k: only what is set to
-- less than k is raised to it. (n + 65535) % 65536 is n - 1, and 65535 of 0. A setting may be
-- missing, or empty. A cast to regrole folds the letters of a name.
DO $do$
DECLARE
    before text := pg_catalog.pg_get_functiondef('quiver_sharded_search'::pg_catalog.regproc);
    changes text[] := ARRAY[
        $$('quiver.ef_search', least(k, 65535)::text, '::int4 OPERATOR(pg_catalog.>=) ' || k)$$,
        $$('quiver.ef_search', least(k, 65535)::text, '::int4 OPERATOR(pg_catalog.+) 65535'
                ' OPERATOR(pg_catalog.%) 65536 OPERATOR(pg_catalog.>=) ' || k - 1)$$,
        $$current_user::regrole$$,
        $$quote_ident(current_user)::regrole$$,
        $$pg_catalog.current_setting(%L, true)%s THEN$$,
        $$pg_catalog.substring(pg_catalog.current_setting(%L, true), ''.+'')%s THEN$$,
        $$FROM jsonb_each_text(saved) s LOOP$$,
        $$FROM jsonb_each_text(saved) s
        WHERE s.value IS DISTINCT FROM current_setting(s.key, true) LOOP$$,
        $$PERFORM set_config(r.key, r.value, true);$$,
        $$PERFORM set_config(r.key, nullif(r.value, ''), true);$$,
        $$IF cardinality(leaves) = 0 OR k = 0 THEN$$,
        $$IF EXISTS (SELECT FROM unnest(leaves) l WHERE row_security_active(l)) THEN
        RAISE EXCEPTION 'cannot search the shards of "%", a partition of which has row-level security', alias
            USING ERRCODE = 'feature_not_supported';
    END IF;
    IF cardinality(leaves) = 0 OR k = 0 THEN$$];
    after text;
BEGIN
    FOR i IN 1 .. 6 LOOP
        after := pg_catalog.replace(before, changes[2 OPERATOR(pg_catalog.*) i OPERATOR(pg_catalog.-) 1],
            changes[2 OPERATOR(pg_catalog.*) i]);
        IF after OPERATOR(pg_catalog.=) before THEN
            RAISE EXCEPTION 'quiver_sharded_search is not that of extension quiver 0.1.0';
        END IF;
        before := after;
    END LOOP;
    EXECUTE after;
END $do$;

CREATE FUNCTION quiver_pgvector_version() RETURNS text
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION quiver_pgvector_version() IS 'version of pgvector that extension vector of this library stands for';
