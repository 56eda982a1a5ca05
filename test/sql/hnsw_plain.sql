-- graphs of whole values: types and metrics that are not quantized

SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS vector;
CREATE EXTENSION IF NOT EXISTS quiver;
RESET client_min_messages;
SET enable_seqscan = off;
SET jit = off;
SET hnsw.ef_search = 100;
SET quiver.ef_search = 100;

-- 400 values in 20 groups; sparse ones have 5 to 14 of 50 elements
CREATE TABLE source AS
SELECT i AS id, v::vector(24) AS vector, v::vector(24)::halfvec(24) AS halfvec,
    binary_quantize(v::vector(24))::bit(24) AS bit,
    (SELECT '{' || string_agg(j || ':' || (1 + (i * j) % 7) / 4.0, ',') || '}/50'
     FROM (SELECT DISTINCT 1 + ((i % 20) * 3 + k * k * 5 + (i / 20) * (k % 3)) % 50 AS j
           FROM generate_series(1, 5 + i % 10) k) s)::sparsevec(50) AS sparsevec
FROM generate_series(1, 400) i, LATERAL (
    SELECT array_agg((sin((i % 20) * 7.1 + j * 1.3) + sin(i * 0.7 + j * j) / 3)::real ORDER BY j) AS v
    FROM generate_series(1, 24) j) a;

-- do the ten nearest of 40 queries come, as near as those of an exact scan?
CREATE FUNCTION recall(op text) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE found numeric;
BEGIN
    EXECUTE format('
        SELECT count(*) FILTER (WHERE i.d <= e.d)::numeric / greatest(count(*), 1)
        FROM t q,
            LATERAL (SELECT max(d) AS d FROM (
                SELECT (val %1$s q.val) + 0 AS d FROM t ORDER BY (val %1$s q.val) + 0 LIMIT 10) x) e,
            LATERAL (SELECT val %1$s q.val AS d FROM t ORDER BY val %1$s q.val LIMIT 10) i
        WHERE q.id BETWEEN 101 AND 140', op) INTO found;
    RETURN found;
END $$;

-- built, changed, filled from nothing: heap TIDs by quiver_check(), and recall
CREATE FUNCTION life(am text, type text, dims int, metric text, op text)
    RETURNS TABLE (step text, row_count bigint, recall_at_10 text) LANGUAGE plpgsql AS $$
DECLARE
    step_name text;
BEGIN
    EXECUTE format('CREATE TABLE t (id int, val %s(%s))', type, dims);
    FOREACH step_name IN ARRAY ARRAY['built', 'deleted', 'refilled', 'inserted', 'emptied', 'again'] LOOP
        CASE step_name
            WHEN 'built' THEN
                EXECUTE format('INSERT INTO t SELECT id, %I FROM source', type);
                EXECUTE format('CREATE INDEX t_idx ON t USING %I (val %I)', am, type || '_' || metric || '_ops');
            WHEN 'deleted' THEN
                DELETE FROM t WHERE id % 3 = 0;
            WHEN 'refilled' THEN
                EXECUTE format('INSERT INTO t SELECT id, %I FROM source WHERE id %% 3 = 0', type);
            WHEN 'inserted' THEN
                TRUNCATE t;
                EXECUTE format('INSERT INTO t SELECT id, %I FROM source', type);
            WHEN 'emptied' THEN
                DELETE FROM t;
            WHEN 'again' THEN
                EXECUTE format('INSERT INTO t SELECT id, %I FROM source', type);
        END CASE;
        step := step_name;
        row_count := quiver_check('t_idx');
        recall_at_10 := CASE WHEN NOT EXISTS (SELECT FROM t) THEN 'no rows' WHEN recall(op) > 0.98 THEN 'good'
            ELSE recall(op)::text END;
        RETURN NEXT;
    END LOOP;
    DROP TABLE t;
END $$;

SELECT metric, s.* FROM (VALUES ('l1', '<+>')) m(metric, op), life('hnsw', 'vector', 24, metric, op) s;
SELECT metric, s.* FROM (VALUES ('l1', '<+>')) m(metric, op), life('hnsw', 'halfvec', 24, metric, op) s;
SELECT metric, s.* FROM (VALUES ('hamming', '<~>'), ('jaccard', '<%>')) m(metric, op),
    life('hnsw', 'bit', 24, metric, op) s;
SELECT metric, s.* FROM (VALUES ('l2', '<->'), ('ip', '<#>'), ('cosine', '<=>'), ('l1', '<+>')) m(metric, op),
    life('hnsw', 'sparsevec', 50, metric, op) s;

-- quiver_graph has the same operator classes
SELECT type, metric, s.* FROM (VALUES ('vector', 24, 'l1', '<+>'), ('halfvec', 24, 'l1', '<+>'),
    ('halfvec', 24, 'l2', '<->'), ('halfvec', 24, 'ip', '<#>'), ('halfvec', 24, 'cosine', '<=>'),
    ('bit', 24, 'hamming', '<~>'), ('bit', 24, 'jaccard', '<%>'), ('sparsevec', 50, 'l2', '<->'),
    ('sparsevec', 50, 'ip', '<#>'), ('sparsevec', 50, 'cosine', '<=>'), ('sparsevec', 50, 'l1', '<+>'))
    m(type, dims, metric, op), life('quiver_graph', type, dims, metric, op) s
WHERE step = 'built';

-- vacuum: dead nodes and their values give their space back

CREATE TABLE t (id int, val sparsevec(50));
INSERT INTO t SELECT id, sparsevec FROM source;
CREATE INDEX t_idx ON t USING hnsw (val sparsevec_l1_ops);
SELECT quiver_check('t_idx'), recall('<+>') > 0.98 AS good;
SELECT pg_relation_size('t_idx') AS before_vacuum \gset
DELETE FROM t WHERE id % 3 = 0;
VACUUM t;
SELECT quiver_check('t_idx'), recall('<+>') > 0.98 AS good;
INSERT INTO t SELECT id, sparsevec FROM source WHERE id % 3 = 0;
SELECT quiver_check('t_idx'), recall('<+>') > 0.98 AS good;
DELETE FROM t;
VACUUM t;
SELECT quiver_check('t_idx'), (SELECT count(*) FROM (SELECT FROM t ORDER BY val <+> '{}/50' LIMIT 5) x);
INSERT INTO t SELECT id, sparsevec FROM source;
SELECT quiver_check('t_idx'), recall('<+>') > 0.98 AS good,
    pg_relation_size('t_idx') <= 1.5 * :before_vacuum AS space_used_again;
DROP TABLE t;

-- values that take several pages

CREATE TABLE t (id int, val vector(5000));
INSERT INTO t SELECT i, array_agg(sin(i + j * 0.01))::vector
FROM generate_series(1, 60) i, generate_series(1, 5000) j GROUP BY i;
CREATE INDEX t_idx ON t USING hnsw (val vector_l1_ops);
SELECT quiver_check('t_idx');
INSERT INTO t SELECT id + 60, val FROM t WHERE id <= 20;
SELECT array_agg(id ORDER BY id) FROM (SELECT id FROM t ORDER BY val <+> (SELECT val FROM t WHERE id = 7) LIMIT 2) x;
SELECT nodes, row_count FROM quiver_index_info('t_idx');
SELECT pg_relation_size('t_idx') AS before_vacuum \gset
DELETE FROM t WHERE id <= 30;
VACUUM t;
SELECT quiver_check('t_idx');
INSERT INTO t SELECT i, array_agg(sin(i + j * 0.01))::vector
FROM generate_series(1, 10) i, generate_series(1, 5000) j GROUP BY i;
SELECT quiver_check('t_idx'), pg_relation_size('t_idx') <= :before_vacuum AS space_used_again;
SELECT id FROM t ORDER BY val <+> (SELECT val FROM t WHERE id = 7) LIMIT 1;
DROP TABLE t;

CREATE TABLE t (id int, val sparsevec(1000000000));
INSERT INTO t SELECT i, (SELECT '{' || string_agg(j * i || ':' || i, ',') || '}/1000000000'
    FROM generate_series(1, i * i * 20) j)::sparsevec FROM generate_series(1, 28) i;
CREATE INDEX t_idx ON t USING hnsw (val sparsevec_cosine_ops);
SELECT quiver_check('t_idx');
INSERT INTO t SELECT id + 28, val FROM t WHERE id % 3 = 0;
SELECT quiver_check('t_idx'), nodes FROM quiver_index_info('t_idx');
SELECT id FROM t ORDER BY val <=> (SELECT val FROM t WHERE id = 28) LIMIT 1;
DELETE FROM t WHERE id % 2 = 0;
VACUUM t;
SELECT quiver_check('t_idx');
DROP TABLE t;

-- a node for each value

CREATE TABLE t (id int, val bit(10));
CREATE INDEX t_idx ON t USING hnsw (val bit_hamming_ops);
INSERT INTO t SELECT i, (i % 4)::bit(10) FROM generate_series(1, 1000) i;
SELECT quiver_check('t_idx');
SELECT access_method, row_count, dimensions, nodes, max_degree, code_bits, own_code_bits
FROM quiver_index_info('t_idx');
SELECT count(*), count(DISTINCT val) FROM (SELECT val FROM t ORDER BY val <~> B'0000000000' LIMIT 250) x;
REINDEX INDEX t_idx;
SELECT quiver_check('t_idx'), nodes FROM quiver_index_info('t_idx');
DELETE FROM t WHERE id % 4 = 1;
VACUUM t;
SELECT quiver_check('t_idx'), nodes FROM quiver_index_info('t_idx');
DROP TABLE t;

-- what is not indexed, and what has no finite distance

CREATE TABLE t (id int, val sparsevec(3));
INSERT INTO t VALUES (1, '{}/3'), (2, '{1:1}/3'), (3, NULL);
CREATE INDEX t_idx ON t USING hnsw (val sparsevec_cosine_ops);
INSERT INTO t VALUES (4, '{}/3'), (5, '{2:1}/3'), (6, NULL);
SELECT id FROM t ORDER BY val <=> '{1:2,2:1}/3' LIMIT 5;
SELECT count(*) FROM (SELECT id FROM t ORDER BY val <=> '{}/3' LIMIT 5) x;
SELECT count(*) FROM (SELECT id FROM t ORDER BY val <=> (SELECT NULL::sparsevec) LIMIT 5) x;
SELECT quiver_check('t_idx');
DROP TABLE t;

CREATE TABLE t (id int, val vector(3));
INSERT INTO t VALUES (1, '[3e38,3e38,3e38]'), (2, '[-3e38,-3e38,-3e38]'), (3, '[1e-45,0,0]'), (4, '[0,0,0]'),
    (5, '[-3e38,3e38,0]');
CREATE INDEX t_idx ON t USING hnsw (val vector_l1_ops);
INSERT INTO t SELECT id + 5, val FROM t;
SELECT quiver_check('t_idx');
SELECT id % 5 AS id FROM t ORDER BY val <+> '[-3e38,-3e38,-3e38]' LIMIT 2;
SELECT count(*) FROM (SELECT id FROM t ORDER BY val <+> '[3e38,-3e38,3e38]' LIMIT 20) x;
DROP TABLE t;

-- errors

CREATE TABLE t (b bit(3), vb varbit(3), s sparsevec, s3 sparsevec(3));
CREATE INDEX ON t USING hnsw (vb bit_hamming_ops);
CREATE INDEX ON t USING hnsw (s sparsevec_l2_ops);
CREATE INDEX ON t USING hnsw ((b::bit(64001)) bit_hamming_ops);
CREATE INDEX ON t USING hnsw (b bit_jaccard_ops);
CREATE INDEX ON t USING hnsw (s3 sparsevec_ip_ops);
SELECT b FROM t ORDER BY b <%> B'10' LIMIT 1;
SELECT s3 FROM t ORDER BY s3 <#> '{1:1}/4' LIMIT 1;
DROP TABLE t;

-- more than maintenance_work_mem, and iterative scans

CREATE TABLE t (id int, val bit(2000));
INSERT INTO t SELECT i, repeat(i::bit(20)::text, 100)::bit(2000) FROM generate_series(1, 3000) i;
SET maintenance_work_mem = '1MB';
SET client_min_messages = warning;
CREATE INDEX t_idx ON t USING hnsw (val bit_hamming_ops);
RESET client_min_messages;
RESET maintenance_work_mem;
SELECT quiver_check('t_idx');
SET hnsw.iterative_scan = strict_order;
SELECT id FROM t WHERE id % 500 = 0 ORDER BY val <~> repeat(1000::bit(20)::text, 100)::bit(2000), id LIMIT 1;
SELECT count(*) >= 5 AS enough FROM
    (SELECT id FROM t WHERE id % 500 = 0 ORDER BY val <~> repeat(1000::bit(20)::text, 100)::bit(2000) LIMIT 6) x;
RESET hnsw.iterative_scan;
DROP TABLE t;

DROP FUNCTION life;
DROP FUNCTION recall;
DROP TABLE source;
RESET hnsw.ef_search;
RESET quiver.ef_search;
RESET jit;
RESET enable_seqscan;
