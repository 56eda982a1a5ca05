-- the type sparsevec: text, functions, operators

SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS vector;
RESET client_min_messages;

-- text in and out: sorted by index, zeros left out
SELECT v::text::sparsevec::text AS text FROM (VALUES
    ('{1:1.5,3:3.5}/5'), ('{3:-4,1:+2}/5'), ('{}/3'), ('{ }/3'), (E' \t{ 1 : 1 ,\n2 :\x0b2 } / 5\r '),
    ('{1:0,2:1,3:-0,4:0e5}/4'), ('{9:0}/3'), ('{1:1e3,2:.5,3:5.}/3'),
    ('{1000000000:1}/1000000000'), ('{+1:1}/1'), ('{1:1e-45}/1')
) t(v);

-- the type modifier
CREATE TABLE typmod (v sparsevec(3), a sparsevec(2)[], u sparsevec);
SELECT attname, atttypmod, format_type(atttypid, atttypmod)
FROM pg_attribute WHERE attrelid = 'typmod'::regclass AND attnum > 0 ORDER BY attnum;
INSERT INTO typmod VALUES ('{2:1}/3', '{"{1:1}/2","{}/2"}', '{}/1');
INSERT INTO typmod (v) VALUES ('{1:1}/2');
INSERT INTO typmod (v) SELECT u FROM typmod;
SELECT * FROM typmod;
DROP TABLE typmod;

-- comparison is that of the dense vectors
SELECT a, b, a < b AS lt, a <= b AS le, a = b AS eq, a <> b AS ne, a >= b AS ge, a > b AS gt,
    sparsevec_cmp(a, b) AS cmp, vector_cmp(a::vector, b::vector) AS dense
FROM (VALUES ('{1:1,2:2}/3'::sparsevec, '{1:1,2:2}/3'::sparsevec), ('{1:1}/3', '{2:1}/3'), ('{1:-1}/3', '{2:1}/3'),
    ('{2:1}/3', '{1:-1}/3'), ('{}/3', '{3:1}/3'), ('{}/3', '{3:-1}/3'), ('{3:-1}/3', '{}/3'), ('{}/2', '{}/3'),
    ('{}/2', '{3:-1}/3'), ('{3:1}/3', '{}/2'), ('{1:1,3:2}/3', '{1:1,3:3}/3')) t(a, b);
SELECT count(*) AS pairs, count(*) FILTER (WHERE sparsevec_cmp(a, b) <> vector_cmp(a::vector, b::vector)) AS different
FROM (
    SELECT v::vector::sparsevec AS v
    FROM (SELECT ARRAY[i % 3 - 1, i / 3 % 3 - 1, i / 9 % 3 - 1] AS v FROM generate_series(0, 26) i
        UNION ALL SELECT ARRAY[i % 3 - 1, i / 3 - 1] FROM generate_series(0, 8) i) t
) x(a), (
    SELECT v::vector::sparsevec
    FROM (SELECT ARRAY[i % 3 - 1, i / 3 % 3 - 1, i / 9 % 3 - 1] AS v FROM generate_series(0, 26) i
        UNION ALL SELECT ARRAY[i % 3 - 1, i / 3 - 1] FROM generate_series(0, 8) i) t
) y(b);

-- about one value
SELECT l2_norm('{1:3,2:4}/2'::sparsevec), l2_norm('{1:3e37,9:4e37}/9'::sparsevec)::real AS large,
    l2_norm('{}/2'::sparsevec) AS zero;
SELECT l2_normalize('{1:3,5:4}/5'::sparsevec), l2_normalize('{}/2'::sparsevec) AS zero,
    l2_normalize('{1:3e38,2:1e-37}/2'::sparsevec) AS zeros_left_out;

-- distances
SELECT a, b, a <-> b AS l2, a <#> b AS neg_ip, round((a <=> b)::numeric, 6) AS cosine, a <+> b AS l1,
    sparsevec_l2_squared_distance(a, b) AS l2sq, inner_product(a, b)
FROM (VALUES ('{1:3}/3'::sparsevec, '{2:4}/3'::sparsevec), ('{2:4}/3', '{1:3}/3'), ('{1:1,2:2}/2', '{1:2,2:4}/2'),
    ('{1:1,3:3,5:5}/5', '{2:4,3:6,4:8}/5'), ('{1:1,2:1}/2', '{1:-1,2:-1}/2')) t(a, b);
SELECT l2_distance('{}/2'::sparsevec, '{1:3,2:4}/2'), inner_product('{}/2'::sparsevec, '{1:1}/2'),
    cosine_distance('{}/2'::sparsevec, '{1:1}/2') AS zero, l1_distance('{1:1}/2'::sparsevec, '{}/2'),
    sparsevec_negative_inner_product('{1:2}/2', '{1:3}/2');
SELECT inner_product('{1:3e38}/1'::sparsevec, '{1:3e38}/1') AS ip,
    l1_distance('{1:3e38}/1'::sparsevec, '{1:-3e38}/1') AS l1,
    cosine_distance('{1:3e38}/1'::sparsevec, '{1:3e38}/1') AS overflow,
    cosine_distance('{1:1e-30}/2'::sparsevec, '{1:2e-30}/2') AS small;

-- the same as dense vectors, for many pairs
SELECT count(*) AS pairs,
    bool_and(a <-> b = a::vector <-> b::vector) AS l2, bool_and(a <#> b = a::vector <#> b::vector) AS ip,
    bool_and(a <+> b = a::vector <+> b::vector) AS l1,
    bool_and(a <=> b = a::vector <=> b::vector OR abs((a <=> b) - (a::vector <=> b::vector)) < 1e-6) AS cosine
FROM (
    SELECT array_agg(CASE WHEN (i * 7 + n * 3) % 5 = 0 THEN i % 4 - 1 ELSE 0 END ORDER BY i)::sparsevec AS a,
        array_agg(CASE WHEN (i * 11 + n) % 3 = 0 THEN i % 5 - 2 ELSE 0 END ORDER BY i)::sparsevec AS b
    FROM generate_series(1, 40) n, generate_series(1, 30 + n % 3) i GROUP BY n
) t;

-- stored values of all kinds: short header, long header, out of line
CREATE TABLE stored (id int, v sparsevec, w sparsevec);
INSERT INTO stored SELECT n, array_agg(i % 7 - 3 ORDER BY i)::sparsevec, array_agg(i % 5 ORDER BY i)::sparsevec
FROM unnest(ARRAY[3, 15, 16, 20, 300, 3000, 16000]) n, generate_series(1, n) i GROUP BY n;
SELECT id, v <-> w AS l2, v <#> w AS neg_ip, v <+> w AS l1, round((v <=> w)::numeric, 5) AS cosine,
    v = w AS eq, v < w AS lt, l2_norm(v)::real
FROM stored ORDER BY id;
DROP TABLE stored;
