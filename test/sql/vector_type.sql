-- the type vector: text, functions, operators

SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS vector;
RESET client_min_messages;

-- text in and out
SELECT v::text::vector::text AS text FROM (VALUES
    ('[1,2,3]'), ('[-1.5,+2.25,0]'), ('[1.,.5,-.5]'), (E' \t\n[ 1 ,\x0b2\f,\r3 ] '),
    ('[1e3,1E-3,1.5e+10]'), ('[0x10,0x1p-2]'), ('[-0,0e5,0e-999]'),
    ('[3.4028235e38,-3.4028235e38]'), ('[1.17549435e-38,1e-45]'), ('[1e-46,-1e-46]'),
    ('[0.1,0.2,0.30000001]'), ('[123456789,16777217,16777219]'),
    ('[0.012345678955316544,0.99999999999999999999]'),
    ('[1.00000005960464477539062500001,1.00000005960464477539062499999]'),
    ('[33554430.99999999999999,33554431.00000000000001]'),
    ('[0000000000000000000000000000001.5]')
) t(v);

-- reading agrees with real for many decimals
SELECT count(*) AS numbers, count(*) FILTER (WHERE s::real <> (('[' || s || ']')::vector::real[])[1]) AS different
FROM (
    SELECT CASE i % 4
        WHEN 0 THEN ((i::numeric * 7919 % 1000003) / 1000003)::text
        WHEN 1 THEN (i::numeric * 104729 * 15485863 * (i % 97 + 1))::text || 'e' || (i % 45 - 35)
        WHEN 2 THEN ((i::float8 * 0.6180339887498949) - 7000)::text
        -- halfway between two floats, and a little beside it
        ELSE (16777216 + i + 0.5)::text || repeat('0', i % 9) || (i % 3)::text
        END AS s
    FROM generate_series(1, 20000) i
) t;

-- the type modifier
CREATE TABLE typmod (v vector(3), a vector(2)[], u vector);
SELECT attname, atttypmod, format_type(atttypid, atttypmod)
FROM pg_attribute WHERE attrelid = 'typmod'::regclass AND attnum > 0 ORDER BY attnum;
INSERT INTO typmod VALUES ('[1,2,3]', '{"[1,2]","[3,4]"}', '[1]');
INSERT INTO typmod (v) VALUES ('[1,2]');
INSERT INTO typmod (a) VALUES ('{"[1,2]","[3]"}');
INSERT INTO typmod (v) SELECT u FROM typmod;
SELECT * FROM typmod;
DROP TABLE typmod;

-- arithmetic
SELECT '[1,2,3]'::vector + '[4,5,6]' AS add, '[1,2,3]'::vector - '[4,5,6]' AS sub,
    '[1,2,3]'::vector * '[4,5,6]' AS mul, '[1,2,3]'::vector || '[4,5]' AS concat;
SELECT '[1,0]'::vector * '[0,1e-38]' AS zero_is_not_underflow;

-- comparison
SELECT a, b, a < b AS lt, a <= b AS le, a = b AS eq, a <> b AS ne, a >= b AS ge, a > b AS gt,
    vector_cmp(a, b) AS cmp
FROM (VALUES ('[1,2,3]'::vector, '[1,2,3]'::vector), ('[1,2,3]', '[1,2,4]'), ('[1,3]', '[1,2,9]'),
    ('[1,2]', '[1,2,3]'), ('[1,2,3]', '[1,2]'), ('[0]', '[-0]'), ('[-2]', '[-1]')) t(a, b);

-- about one value
SELECT vector_dims('[1,2,3]'::vector), vector_norm('[3,4]'), vector_norm('[3e37,4e37]')::real AS large,
    vector_norm('[3e-38,4e-38]')::real AS small, vector_norm('[0,0]') AS zero,
    vector_norm('[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]') AS sixteen;
SELECT l2_normalize('[3,4]'::vector), l2_normalize('[0,0.1]'::vector), l2_normalize('[0,0]'::vector) AS zero,
    l2_normalize('[3e38,0]'::vector) AS large, l2_normalize('[1e-44,0]'::vector) AS small;
SELECT binary_quantize('[1,0,-1]'::vector), binary_quantize('[0,0.1,-0.2,-0.3,0.4,0.5,0.6,-0.7,0.8,-0.9,1]'::vector),
    binary_quantize('[1,-1,1,-1,1,-1,1,-1]'::vector), binary_quantize('[-0]'::vector) AS zero;
SELECT s, n, subvector('[1,2,3,4,5]'::vector, s, n)
FROM (VALUES (1, 3), (3, 2), (5, 1), (-1, 3), (0, 2), (3, 9), (3, 2147483647),
    (-2147483644, 2147483647)) t(s, n);

-- distances
SELECT a, b, round((a <-> b)::numeric, 6) AS l2, a <#> b AS neg_ip, round((a <=> b)::numeric, 6) AS cosine,
    a <+> b AS l1, vector_l2_squared_distance(a, b) AS l2sq, inner_product(a, b)
FROM (VALUES ('[1,2]'::vector, '[3,4]'::vector), ('[1,2]', '[2,4]'), ('[1,1]', '[-1,-1]'),
    ('[1,0]', '[0,2]'), ('[1,2,3,4,5,6,7,8,9]', '[9,8,7,6,5,4,3,2,1]')) t(a, b);
SELECT l2_distance('[0,0]'::vector, '[3,4]'), inner_product('[1,2]'::vector, '[3,4]'),
    cosine_distance('[1,2]'::vector, '[2,4]'), l1_distance('[0,0]'::vector, '[3,4]'),
    vector_negative_inner_product('[1,2]', '[3,4]'), vector_spherical_distance('[1,0]', '[0,1]'),
    vector_spherical_distance('[2,0]', '[2,0]') AS clamped;
SELECT cosine_distance('[1,2]'::vector, '[0,0]') AS zero, cosine_distance('[3e38]'::vector, '[3e38]') AS overflow,
    cosine_distance('[1e-30,1e-30]'::vector, '[2e-30,2e-30]') AS small,
    l2_distance('[3e38]'::vector, '[-3e38]') AS l2, inner_product('[3e38]'::vector, '[3e38]') AS ip,
    l1_distance('[3e38]'::vector, '[-3e38]') AS l1;

-- every length up to 70: all tails of the kernels, and both varlena headers
SELECT count(*) AS lengths,
    bool_and(a <-> b = sqrt(n::float8)) AS l2,
    bool_and(inner_product(a, b) = n * (n + 1) * (2 * n + 1) / 6 + n * (n + 1) / 2) AS ip,
    bool_and(a <+> b = n) AS l1,
    bool_and(abs((a <=> b) - (1 - inner_product(a, b) / (vector_norm(a) * vector_norm(b)))) < 1e-6) AS cosine
FROM (
    SELECT n, array_agg(i ORDER BY i)::vector AS a, array_agg(i + 1 ORDER BY i)::vector AS b
    FROM generate_series(1, 70) n, generate_series(1, n) i GROUP BY n
) t;

-- stored values of all kinds: short header, long header, out of line
CREATE TABLE stored (id int, v vector, w vector);
INSERT INTO stored SELECT n, array_agg(i % 7 - 3 ORDER BY i)::vector, array_agg(i % 5 ORDER BY i)::vector
FROM unnest(ARRAY[3, 29, 30, 300, 3000, 16000]) n, generate_series(1, n) i GROUP BY n;
SELECT id, vector_dims(v), v <-> w AS l2, v <#> w AS neg_ip, v <+> w AS l1, round((v <=> w)::numeric, 5) AS cosine,
    v = w AS eq, v < w AS lt
FROM stored ORDER BY id;
-- one side is the same out-of-line value for all rows
SELECT count(*), sum(v <+> (SELECT w FROM stored WHERE id = 3000)), sum((SELECT w FROM stored WHERE id = 3000) <#> v)
FROM (SELECT v FROM stored, generate_series(1, 5) WHERE id = 3000) t;
SELECT id FROM stored WHERE vector_dims(v) = 3000 ORDER BY v <-> (SELECT v FROM stored WHERE id = 3000) LIMIT 1;
DROP TABLE stored;
