-- Data of the images: functions of the numbers of row and coordinate, the same on every
-- version and machine. Clusters of twelve rows; distances to the near ones are far from equal.

CREATE FUNCTION image_uniform(k bigint, seed bigint) RETURNS float8
    LANGUAGE sql IMMUTABLE AS
    $$ SELECT (hashint8extended(k, seed) & 9007199254740991) / 9007199254740992.0::float8 $$;

-- Row i of so many dimensions; queries are negative.
CREATE FUNCTION image_vector(i int, dims int) RETURNS float4[]
    LANGUAGE sql IMMUTABLE AS
    $$ SELECT array_agg((4 * image_uniform((abs(i) / 12) * 100000 + j, 1)
            + (0.3 + abs(i) % 12 * 0.1) * (image_uniform(i * 100000::bigint + j, 2) - 0.5) - 2)::float4 ORDER BY j)
        FROM generate_series(1, dims) j $$;

-- Bits, whose distances are whole numbers: row i is its cluster's bits with the first
-- few turned, one more for each row; a query is the cluster's with the last three turned.
CREATE FUNCTION image_bits(i int, bits int) RETURNS bit varying
    LANGUAGE sql IMMUTABLE AS
    $$ SELECT string_agg(((image_uniform((abs(i) / 12) * 100000 + j, 3) < 0.5)
            <> CASE WHEN i < 0 THEN j > bits - 3 ELSE j <= 1 + i % 12 END)::int::text, '' ORDER BY j)::bit varying
        FROM generate_series(1, bits) j $$;

-- Elements of a cluster, with other values in each row, and every seventh element of
-- the row's own. Text of a sparsevec.
CREATE FUNCTION image_sparse(i int, dims int, elements int) RETURNS text
    LANGUAGE sql IMMUTABLE AS
    $$ SELECT '{' || string_agg(k || ':' || x, ',' ORDER BY k) || '}/' || dims
        FROM (SELECT DISTINCT ON (k) k, x FROM (
            SELECT 1 + floor(dims * image_uniform(CASE WHEN j % 7 = 0 THEN i ELSE abs(i) / 12 END * 100000::bigint + j,
                    4))::int AS k,
                (1 + (0.2 + abs(i) % 12 * 0.1) * image_uniform(i * 100000::bigint + j, 5))::float4 AS x, j
            FROM generate_series(1, elements) j) e ORDER BY k, j) f $$;
