-- What must hold of an image and its table, one fact a line: where the rows are, what
-- quiver_check() and quiver_index_info() say, and the answers of the queries.
\ir names.sql

SELECT 'table', count(*), md5(string_agg(ctid || ' ' || id, ',' ORDER BY ctid)) FROM :t;
SELECT 'check', quiver_check(:'i');
SELECT 'info', key, value
    FROM jsonb_each_text(to_jsonb(quiver_index_info(:'i'))) WHERE value IS NOT NULL ORDER BY key COLLATE "C";
SET enable_seqscan = off;
SET enable_sort = off;
SET ivfflat.probes = 4;
SELECT 'answer', query, array_to_string(ids, ' ') FROM :a ORDER BY query;
