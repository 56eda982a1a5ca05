-- indexes on expressions, and exact order by a second ORDER BY, as pgvector's users write them

SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS vector;
RESET client_min_messages;
SET enable_seqscan = off;

CREATE TABLE t (id int PRIMARY KEY, category int, v vector(16));
INSERT INTO t SELECT i, i % 10, array_agg(sin(i * 0.37 + j * j * 0.11)::real ORDER BY j)::vector
FROM generate_series(1, 500) i, generate_series(1, 16) j GROUP BY i;
CREATE VIEW nearest AS
    SELECT id FROM t ORDER BY (v <=> (SELECT v FROM t WHERE id = 100)) + 0, id LIMIT 5;

-- the first coordinates, then all of them
CREATE INDEX t_sub ON t USING hnsw ((subvector(v, 1, 8)::vector(8)) vector_cosine_ops);
EXPLAIN (COSTS OFF) SELECT id FROM t ORDER BY subvector(v, 1, 8)::vector(8) <=> '[1,2,3,4,5,6,7,8]' LIMIT 5;
SELECT array_agg(id ORDER BY id) = (SELECT array_agg(id ORDER BY id) FROM nearest) AS same FROM (
    SELECT id FROM (SELECT id, v FROM t
        ORDER BY subvector(v, 1, 8)::vector(8) <=> (SELECT subvector(v, 1, 8)::vector(8) FROM t WHERE id = 100)
        LIMIT 40) s
    ORDER BY v <=> (SELECT v FROM t WHERE id = 100) LIMIT 5) r;
DROP INDEX t_sub;

-- bits, then all
SET hnsw.ef_search = 200;
CREATE INDEX t_bits ON t USING hnsw ((binary_quantize(v)::bit(16)) bit_hamming_ops);
EXPLAIN (COSTS OFF) SELECT id FROM t
    ORDER BY binary_quantize(v)::bit(16) <~> binary_quantize('[1,2,3,4,5,6,7,8,-1,-2,-3,-4,-5,-6,-7,-8]'::vector)
    LIMIT 5;
SELECT array_agg(id ORDER BY id) = (SELECT array_agg(id ORDER BY id) FROM nearest) AS same FROM (
    SELECT id FROM (SELECT id, v FROM t
        ORDER BY binary_quantize(v)::bit(16) <~> binary_quantize((SELECT v FROM t WHERE id = 100)) LIMIT 150) s
    ORDER BY v <=> (SELECT v FROM t WHERE id = 100) LIMIT 5) r;
DROP INDEX t_bits;
RESET hnsw.ef_search;

-- halves
CREATE INDEX t_half ON t USING hnsw ((v::halfvec(16)) halfvec_l2_ops);
EXPLAIN (COSTS OFF) SELECT id FROM t ORDER BY v::halfvec(16) <-> '[1,2,3,4,5,6,7,8,1,2,3,4,5,6,7,8]' LIMIT 5;
SELECT id FROM t ORDER BY v::halfvec(16) <-> (SELECT v::halfvec(16) FROM t WHERE id = 100) LIMIT 1;
DROP INDEX t_half;

-- filters: the top-k scan finds the rows there are; a plain index scan too few of them,
-- unless it is iterative, and then in strict order ascending
CREATE INDEX t_idx ON t USING hnsw (v vector_l2_ops);
SET enable_bitmapscan = off;
SET hnsw.ef_search = 10;
SELECT count(*) FROM (SELECT FROM t WHERE category = 3 ORDER BY v <-> (SELECT v FROM t WHERE id = 100) LIMIT 10) x;
SET quiver.topk_scan = off;
SELECT count(*) < 10 AS too_few FROM
    (SELECT FROM t WHERE category = 3 ORDER BY v <-> (SELECT v FROM t WHERE id = 100) LIMIT 10) x;
SET hnsw.iterative_scan = relaxed_order;
SELECT count(*), bool_and(category = 3) AS filtered
FROM (SELECT category FROM t WHERE category = 3 ORDER BY v <-> (SELECT v FROM t WHERE id = 100) LIMIT 10) x;
SET hnsw.iterative_scan = strict_order;
SELECT count(*), bool_and(d >= last) AS ascending FROM (
    SELECT d, lag(d, 1, d) OVER () AS last FROM (
        SELECT v <-> (SELECT v FROM t WHERE id = 100) AS d FROM t WHERE category = 3
        ORDER BY v <-> (SELECT v FROM t WHERE id = 100) LIMIT 10) x) y;
RESET hnsw.iterative_scan;
RESET hnsw.ef_search;
RESET enable_bitmapscan;
DROP VIEW nearest;
DROP TABLE t;
RESET enable_seqscan;
