-- the type halfvec: text, functions, operators

SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS vector;
RESET client_min_messages;

-- text in and out: the shortest float that names the half
SELECT v::text::halfvec::text AS text FROM (VALUES
    ('[1,2,3]'), ('[-1.5,+2.25,0]'), ('[1.,.5,-.5]'), (E' \t\n[ 1 ,\x0b2\f,\r3 ] '),
    ('[0.1,0.2,0.3]'), ('[65504,-65504,65519.99]'), ('[0x10,1e3,-0]'),
    ('[6.1035156e-05,5.9604645e-08,8.940697e-08]'), ('[2.9802322e-08,2.9802326e-08,1e-46]'),
    ('[2049,2051,4098.0001]'), ('[1.00048828125,1.00146484375]')
) t(v);

-- every half but the infinite ones and NaN reads back as itself
SELECT count(*) AS halves, count(*) FILTER (WHERE h <> h::text::halfvec) AS different,
    count(*) FILTER (WHERE h <> h::vector::halfvec) AS through_vector
FROM (
    SELECT (ARRAY[(CASE WHEN e = 0 THEN m / 1024.0 * 2.0 ^ -14 ELSE (1 + m / 1024.0) * 2.0 ^ (e - 15) END
        * s)::real])::halfvec AS h
    FROM generate_series(0, 30) e, generate_series(0, 1023) m, (VALUES (1), (-1)) t(s)
) t;

-- the type modifier
CREATE TABLE typmod (v halfvec(3), a halfvec(2)[], u halfvec);
SELECT attname, atttypmod, format_type(atttypid, atttypmod)
FROM pg_attribute WHERE attrelid = 'typmod'::regclass AND attnum > 0 ORDER BY attnum;
INSERT INTO typmod VALUES ('[1,2,3]', '{"[1,2]","[3,4]"}', '[1]');
INSERT INTO typmod (v) VALUES ('[1,2]');
INSERT INTO typmod (v) SELECT u FROM typmod;
SELECT * FROM typmod;
DROP TABLE typmod;

-- arithmetic rounds to halves
SELECT '[1,2,3]'::halfvec + '[4,5,6]' AS add, '[1,2,3]'::halfvec - '[4,5,6]' AS sub,
    '[1,2,3]'::halfvec * '[4,5,6]' AS mul, '[1,2,3]'::halfvec || '[4,5]' AS concat;
SELECT '[2048,2048]'::halfvec + '[1,3]' AS rounded, '[0.1]'::halfvec * '[0.1]' AS product,
    '[6e-8]'::halfvec * '[0.6]' AS subnormal, '[0]'::halfvec * '[6e-8]' AS zero_is_not_underflow;

-- comparison
SELECT a, b, a < b AS lt, a <= b AS le, a = b AS eq, a <> b AS ne, a >= b AS ge, a > b AS gt,
    halfvec_cmp(a, b) AS cmp
FROM (VALUES ('[1,2,3]'::halfvec, '[1,2,3]'::halfvec), ('[1,2,3]', '[1,2,4]'), ('[1,3]', '[1,2,9]'),
    ('[1,2]', '[1,2,3]'), ('[1,2,3]', '[1,2]'), ('[0]', '[-0]'), ('[-2]', '[-1]'), ('[-1]', '[6e-8]')) t(a, b);

-- about one value
SELECT vector_dims('[1,2,3]'::halfvec), l2_norm('[3,4]'::halfvec), l2_norm('[3e4,4e4]'::halfvec) AS large,
    l2_norm('[0,0]'::halfvec) AS zero;
SELECT l2_normalize('[3,4]'::halfvec), l2_normalize('[0,0.1]'::halfvec), l2_normalize('[0,0]'::halfvec) AS zero,
    l2_normalize('[65504,0]'::halfvec) AS large, l2_normalize('[6e-8,0]'::halfvec) AS small;
SELECT binary_quantize('[1,0,-1]'::halfvec), binary_quantize('[0,0.1,-0.2,-0.3,0.4,0.5,0.6,-0.7,0.8,-0.9,1]'::halfvec);
SELECT s, n, subvector('[1,2,3,4,5]'::halfvec, s, n)
FROM (VALUES (1, 3), (3, 2), (5, 1), (-1, 3), (3, 9), (-2147483644, 2147483647)) t(s, n);

-- distances
SELECT a, b, round((a <-> b)::numeric, 6) AS l2, a <#> b AS neg_ip, round((a <=> b)::numeric, 6) AS cosine,
    a <+> b AS l1, halfvec_l2_squared_distance(a, b) AS l2sq, inner_product(a, b)
FROM (VALUES ('[1,2]'::halfvec, '[3,4]'::halfvec), ('[1,2]', '[2,4]'), ('[1,1]', '[-1,-1]'),
    ('[1,0]', '[0,2]'), ('[1,2,3,4,5,6,7,8,9]', '[9,8,7,6,5,4,3,2,1]')) t(a, b);
SELECT l2_distance('[0,0]'::halfvec, '[3,4]'), inner_product('[65504]'::halfvec, '[65504]'),
    cosine_distance('[1,2]'::halfvec, '[0,0]') AS zero, l1_distance('[0,0]'::halfvec, '[3,4]'),
    halfvec_negative_inner_product('[1,2]', '[3,4]'), halfvec_spherical_distance('[1,0]', '[0,1]');

-- every length up to 70
SELECT count(*) AS lengths,
    bool_and(a <-> b = sqrt(n::float8)) AS l2,
    bool_and(inner_product(a, b) = n * (n + 1) * (2 * n + 1) / 6 + n * (n + 1) / 2) AS ip,
    bool_and(a <+> b = n) AS l1,
    bool_and(abs((a <=> b) - (1 - inner_product(a, b) / (l2_norm(a) * l2_norm(b)))) < 1e-6) AS cosine
FROM (
    SELECT n, array_agg(i ORDER BY i)::halfvec AS a, array_agg(i + 1 ORDER BY i)::halfvec AS b
    FROM generate_series(1, 70) n, generate_series(1, n) i GROUP BY n
) t;

-- stored values of all kinds: short header, long header, out of line
CREATE TABLE stored (id int, v halfvec, w halfvec);
INSERT INTO stored SELECT n, array_agg(i % 7 - 3 ORDER BY i)::halfvec, array_agg(i % 5 ORDER BY i)::halfvec
FROM unnest(ARRAY[3, 59, 60, 600, 6000, 16000]) n, generate_series(1, n) i GROUP BY n;
SELECT id, vector_dims(v), v <-> w AS l2, v <#> w AS neg_ip, v <+> w AS l1, round((v <=> w)::numeric, 5) AS cosine,
    v = w AS eq, v < w AS lt
FROM stored ORDER BY id;
DROP TABLE stored;
