-- COPY, text and binary, and the binary formats

SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS vector;
RESET client_min_messages;

CREATE TABLE t (id int, v vector(3), h halfvec(3), s sparsevec(5));
CREATE TABLE t2 (LIKE t);
INSERT INTO t VALUES (1, '[1,2,3]', '[1,2,3]', '{1:1,5:-2.5}/5'), (2, '[0,-0,1e-40]', '[0,-0,6e-8]', '{}/5'),
    (3, NULL, NULL, NULL), (4, '[3.4028235e38,-1,0.1]', '[65504,-1,0.1]', '{1:1,2:2,3:3,4:4,5:5}/5');

\copy t TO 'results/qv_copy.bin' WITH (FORMAT binary)
\copy t2 FROM 'results/qv_copy.bin' WITH (FORMAT binary)
SELECT * FROM t2 ORDER BY id;
TRUNCATE t2;
\copy t TO 'results/qv_copy.txt'
\copy t2 FROM 'results/qv_copy.txt'
SELECT * FROM t2 ORDER BY id;

-- large values
CREATE TABLE l (v vector, h halfvec, s sparsevec);
CREATE TABLE l2 (LIKE l);
INSERT INTO l SELECT a::vector, (a::vector * array_fill(0.01, ARRAY[16000])::vector)::halfvec, a::sparsevec
FROM (SELECT array_agg(i) AS a FROM generate_series(1, 16000) i) x;
\copy l TO 'results/qv_copy.bin' WITH (FORMAT binary)
\copy l2 FROM 'results/qv_copy.bin' WITH (FORMAT binary)
SELECT l.v = l2.v AS v, l.h = l2.h AS h, l.s = l2.s AS s FROM l, l2;
DROP TABLE l, l2;

-- the binary formats
SELECT vector_send('[1,-2]'), halfvec_send('[1,-2]'), sparsevec_send('{2:1,5:-2}/7');

-- what is received is checked: a bytea with the format's bytes, copied into a column of the type
\set VERBOSITY terse
CREATE TABLE v (v vector);
CREATE TABLE v3 (v vector(3));
CREATE TABLE h (h halfvec);
CREATE TABLE s (s sparsevec);
CREATE TABLE s3 (s sparsevec(3));

-- good
\copy (SELECT '\x000200003f800000c0000000'::bytea) TO 'results/qv_copy.bin' WITH (FORMAT binary)
\copy v FROM 'results/qv_copy.bin' WITH (FORMAT binary)
SELECT * FROM v;
-- other dimensions than the column's
\copy v3 FROM 'results/qv_copy.bin' WITH (FORMAT binary)
-- as halfvec: too long
\copy h FROM 'results/qv_copy.bin' WITH (FORMAT binary)
-- empty
\copy (SELECT '\x'::bytea) TO 'results/qv_copy.bin' WITH (FORMAT binary)
\copy v FROM 'results/qv_copy.bin' WITH (FORMAT binary)
\copy h FROM 'results/qv_copy.bin' WITH (FORMAT binary)
\copy s FROM 'results/qv_copy.bin' WITH (FORMAT binary)
-- no dimensions
\copy (SELECT '\x00000000'::bytea) TO 'results/qv_copy.bin' WITH (FORMAT binary)
\copy v FROM 'results/qv_copy.bin' WITH (FORMAT binary)
\copy h FROM 'results/qv_copy.bin' WITH (FORMAT binary)
-- negative dimensions
\copy (SELECT '\xffff0000'::bytea) TO 'results/qv_copy.bin' WITH (FORMAT binary)
\copy v FROM 'results/qv_copy.bin' WITH (FORMAT binary)
-- too many dimensions
\copy (SELECT '\x3e810000'::bytea) TO 'results/qv_copy.bin' WITH (FORMAT binary)
\copy v FROM 'results/qv_copy.bin' WITH (FORMAT binary)
\copy h FROM 'results/qv_copy.bin' WITH (FORMAT binary)
-- the reserved field
\copy (SELECT '\x000100013f800000'::bytea) TO 'results/qv_copy.bin' WITH (FORMAT binary)
\copy v FROM 'results/qv_copy.bin' WITH (FORMAT binary)
\copy h FROM 'results/qv_copy.bin' WITH (FORMAT binary)
-- too short
\copy (SELECT '\x000200003f800000'::bytea) TO 'results/qv_copy.bin' WITH (FORMAT binary)
\copy v FROM 'results/qv_copy.bin' WITH (FORMAT binary)
-- NaN and infinity
\copy (SELECT '\x000200003f8000007fc00000'::bytea) TO 'results/qv_copy.bin' WITH (FORMAT binary)
\copy v FROM 'results/qv_copy.bin' WITH (FORMAT binary)
\copy (SELECT '\x00010000ff800000'::bytea) TO 'results/qv_copy.bin' WITH (FORMAT binary)
\copy v FROM 'results/qv_copy.bin' WITH (FORMAT binary)
\copy (SELECT '\x000100007e00'::bytea) TO 'results/qv_copy.bin' WITH (FORMAT binary)
\copy h FROM 'results/qv_copy.bin' WITH (FORMAT binary)
\copy (SELECT '\x000100007c00'::bytea) TO 'results/qv_copy.bin' WITH (FORMAT binary)
\copy h FROM 'results/qv_copy.bin' WITH (FORMAT binary)
-- sparsevec: good, and into a column of other dimensions
\copy (SELECT '\x000000050000000200000000000000000000000440000000c0000000'::bytea) TO 'results/qv_copy.bin' WITH (FORMAT binary)
\copy s FROM 'results/qv_copy.bin' WITH (FORMAT binary)
SELECT * FROM s;
\copy s3 FROM 'results/qv_copy.bin' WITH (FORMAT binary)
-- dimensions 0, -1, 1000000001
\copy (SELECT '\x000000000000000000000000'::bytea) TO 'results/qv_copy.bin' WITH (FORMAT binary)
\copy s FROM 'results/qv_copy.bin' WITH (FORMAT binary)
\copy (SELECT '\xffffffff0000000000000000'::bytea) TO 'results/qv_copy.bin' WITH (FORMAT binary)
\copy s FROM 'results/qv_copy.bin' WITH (FORMAT binary)
\copy (SELECT '\x3b9aca010000000000000000'::bytea) TO 'results/qv_copy.bin' WITH (FORMAT binary)
\copy s FROM 'results/qv_copy.bin' WITH (FORMAT binary)
-- elements: -1, more than dimensions, more than 16000, missing
\copy (SELECT '\x00000005ffffffff00000000'::bytea) TO 'results/qv_copy.bin' WITH (FORMAT binary)
\copy s FROM 'results/qv_copy.bin' WITH (FORMAT binary)
\copy (SELECT '\x000000050000000600000000'::bytea) TO 'results/qv_copy.bin' WITH (FORMAT binary)
\copy s FROM 'results/qv_copy.bin' WITH (FORMAT binary)
\copy (SELECT '\x0000ffff00003e8100000000'::bytea) TO 'results/qv_copy.bin' WITH (FORMAT binary)
\copy s FROM 'results/qv_copy.bin' WITH (FORMAT binary)
\copy (SELECT '\x00000005000000020000000000000000'::bytea) TO 'results/qv_copy.bin' WITH (FORMAT binary)
\copy s FROM 'results/qv_copy.bin' WITH (FORMAT binary)
-- the reserved field
\copy (SELECT '\x000000050000000000000001'::bytea) TO 'results/qv_copy.bin' WITH (FORMAT binary)
\copy s FROM 'results/qv_copy.bin' WITH (FORMAT binary)
-- indices: out of range, negative, descending, twice
\copy (SELECT '\x0000000500000001000000000000000540000000'::bytea) TO 'results/qv_copy.bin' WITH (FORMAT binary)
\copy s FROM 'results/qv_copy.bin' WITH (FORMAT binary)
\copy (SELECT '\x000000050000000100000000ffffffff40000000'::bytea) TO 'results/qv_copy.bin' WITH (FORMAT binary)
\copy s FROM 'results/qv_copy.bin' WITH (FORMAT binary)
\copy (SELECT '\x000000050000000200000000000000040000000040000000c0000000'::bytea) TO 'results/qv_copy.bin' WITH (FORMAT binary)
\copy s FROM 'results/qv_copy.bin' WITH (FORMAT binary)
\copy (SELECT '\x000000050000000200000000000000040000000440000000c0000000'::bytea) TO 'results/qv_copy.bin' WITH (FORMAT binary)
\copy s FROM 'results/qv_copy.bin' WITH (FORMAT binary)
-- values: zero, NaN, infinity
\copy (SELECT '\x0000000500000001000000000000000000000000'::bytea) TO 'results/qv_copy.bin' WITH (FORMAT binary)
\copy s FROM 'results/qv_copy.bin' WITH (FORMAT binary)
\copy (SELECT '\x000000050000000100000000000000007fc00000'::bytea) TO 'results/qv_copy.bin' WITH (FORMAT binary)
\copy s FROM 'results/qv_copy.bin' WITH (FORMAT binary)
\copy (SELECT '\x000000050000000100000000000000007f800000'::bytea) TO 'results/qv_copy.bin' WITH (FORMAT binary)
\copy s FROM 'results/qv_copy.bin' WITH (FORMAT binary)

DROP TABLE t, t2, v, v3, h, s, s3;
