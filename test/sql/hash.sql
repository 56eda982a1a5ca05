-- hash operator classes: DISTINCT, GROUP BY, joins, indexes, partitions

SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS vector;
RESET client_min_messages;

-- equal values hash alike, whatever the sign of a zero
SELECT vector_hash('[0,1,0]') = vector_hash('[-0,1,-0]') AS zeros,
    vector_hash_extended('[0,1,0]', 7) = vector_hash_extended('[-0,1,-0]', 7) AS seeded,
    vector_hash('[-1,1]') = vector_hash('[1,1]') AS signs;
SELECT halfvec_hash('[0,1,0]') = halfvec_hash('[-0,1,-0]') AS zeros,
    halfvec_hash_extended('[0,1,0]', 7) = halfvec_hash_extended('[-0,1,-0]', 7) AS seeded,
    halfvec_hash('[-1,1]') = halfvec_hash('[1,1]') AS signs;
SELECT sparsevec_hash('{1:1}/3') = sparsevec_hash('{1:1,2:-0}/3') AS zeros,
    sparsevec_hash('[-0,1,0]'::vector::sparsevec) = sparsevec_hash('{2:1}/3') AS cast_zeros,
    sparsevec_hash_extended('{1:1}/3', 7) = sparsevec_hash_extended('{1:1,2:-0}/3', 7) AS seeded,
    sparsevec_hash('{1:1}/3') = sparsevec_hash('{1:1}/4') AS dims;

-- the plain hash is the seeded one's lower half for seed 0; seeds matter
CREATE TABLE t (id int, v vector(3), h halfvec(3), s sparsevec(3));
INSERT INTO t SELECT i, a, a::vector::halfvec, a::vector::sparsevec
FROM generate_series(0, 999) i,
    LATERAL (SELECT ARRAY[i % 10, -(i % 5), CASE WHEN i % 4 < 2 THEN '-0' ELSE '0' END::real]::vector) x(a);
SELECT count(DISTINCT v::text) FROM t;
SELECT bool_and(vector_hash(v) = vector_hash_extended(v, 0) << 32 >> 32) AS v,
    bool_and(halfvec_hash(h) = halfvec_hash_extended(h, 0) << 32 >> 32) AS h,
    bool_and(sparsevec_hash(s) = sparsevec_hash_extended(s, 0) << 32 >> 32) AS s,
    bool_or(vector_hash_extended(v, 0) = vector_hash_extended(v, 1)) AS v_seed,
    bool_or(halfvec_hash_extended(h, 0) = halfvec_hash_extended(h, 1)) AS h_seed,
    bool_or(sparsevec_hash_extended(s, 0) = sparsevec_hash_extended(s, 1)) AS s_seed
FROM t;

-- in the row, short and long, and out of line
CREATE TABLE wide (id int, v vector(2000), h halfvec(4000), s sparsevec(4000));
ALTER TABLE wide ALTER v SET STORAGE external;
INSERT INTO wide SELECT i, array_agg(j % 7 + 1)::vector, NULL, NULL
FROM generate_series(1, 2) i, generate_series(1, 2000) j GROUP BY i;
UPDATE wide SET h = v::halfvec || v::halfvec, s = (v || v)::sparsevec;
SELECT pg_column_size(v) > 2000 AS stored, vector_hash(v) = vector_hash((v::real[])::vector) AS v,
    halfvec_hash(h) = halfvec_hash((h::real[])::halfvec) AS h,
    sparsevec_hash(s) = sparsevec_hash(s::vector::sparsevec) AS s
FROM wide;
SELECT count(*), count(DISTINCT v), count(DISTINCT h), count(DISTINCT s) FROM wide;
DROP TABLE wide;

-- hash aggregation
SET enable_sort = off;
EXPLAIN (COSTS OFF) SELECT DISTINCT v FROM t;
SELECT count(*) FROM (SELECT DISTINCT v FROM t) x;
SELECT count(*) FROM (SELECT DISTINCT h FROM t) x;
SELECT count(*) FROM (SELECT DISTINCT s FROM t) x;
SELECT n, count(*) FROM (SELECT count(*) AS n FROM t GROUP BY v, h, s) x GROUP BY n;
RESET enable_sort;

-- hash joins and merge joins agree with nested loops
SET enable_mergejoin = off;
SET enable_nestloop = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM t a JOIN t b USING (v);
SELECT count(*) FROM t a JOIN t b USING (v);
SELECT count(*) FROM t a JOIN t b USING (h);
SELECT count(*) FROM t a JOIN t b USING (s);
SET enable_mergejoin = on;
SET enable_hashjoin = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM t a JOIN t b USING (v);
SELECT count(*) FROM t a JOIN t b USING (v);
SELECT count(*) FROM t a JOIN t b USING (h);
SELECT count(*) FROM t a JOIN t b USING (s);
SET enable_mergejoin = off;
SET enable_nestloop = on;
SELECT count(*) FROM t a JOIN t b USING (v);
RESET enable_mergejoin;
RESET enable_hashjoin;

-- hash indexes
CREATE INDEX t_v ON t USING hash (v);
CREATE INDEX t_h ON t USING hash (h);
CREATE INDEX t_s ON t USING hash (s);
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM t WHERE v = '[3,-3,-0]';
SELECT count(*) FROM t WHERE v = '[3,-3,-0]';
SELECT count(*) FROM t WHERE h = '[3,-3,-0]';
SELECT count(*) FROM t WHERE s = '{1:3,2:-3}/3';
RESET enable_seqscan;

-- hash partitions; equal values come into one
CREATE TABLE p (v vector(3)) PARTITION BY HASH (v);
CREATE TABLE p0 PARTITION OF p FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE p1 PARTITION OF p FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO p SELECT v FROM t;
SELECT count(DISTINCT tableoid) AS partitions, count(*) FROM p;
SELECT max(n) FROM (SELECT count(DISTINCT tableoid) AS n FROM p GROUP BY v) x;
SELECT count(*) FROM p WHERE v = '[3,-3,0]';
DROP TABLE p, t;

SELECT amvalidate(oid) FROM pg_opclass
WHERE opcmethod = (SELECT oid FROM pg_am WHERE amname = 'hash')
    AND opcname IN ('vector_ops', 'halfvec_ops', 'sparsevec_ops');
