-- avg and sum

SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS vector;
RESET client_min_messages;

CREATE TABLE t (g int, v vector(3), h halfvec(3));
INSERT INTO t SELECT i % 3, ARRAY[i, i * 2, -i]::vector, ARRAY[i, i * 2, -i]::vector FROM generate_series(1, 60) i;
INSERT INTO t VALUES (0, NULL, NULL), (3, NULL, NULL);

SELECT avg(v), sum(v), avg(h), sum(h) FROM t;
SELECT g, avg(v), sum(v), avg(h), sum(h), count(v) FROM t GROUP BY g ORDER BY g;
SELECT avg(v), sum(v), avg(h), sum(h) FROM t WHERE false;
SELECT avg('[-0,0]'::vector), sum('[-0,0]'::vector), avg('[-0,0]'::halfvec);

-- running totals, where the state must not be shared with the result
SELECT v, sum(v) OVER w, sum(h) OVER w AS sum_h, avg(v) OVER w
FROM t WHERE v IS NOT NULL WINDOW w AS (ORDER BY v) ORDER BY v LIMIT 4;
SELECT array_agg(s ORDER BY s) FROM (SELECT sum(v) OVER (ORDER BY v ROWS 1 PRECEDING) AS s FROM t WHERE v < '[5]') x;
SELECT g, avg(v), sum(h) FROM t GROUP BY GROUPING SETS ((g), ()) ORDER BY g;
SELECT count(*), sum(v) FROM t a WHERE v <= (SELECT avg(v) FROM t b WHERE b.g = a.g);

-- parallel
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
EXPLAIN (COSTS OFF) SELECT avg(v), sum(h) FROM t;
SELECT avg(v), sum(v), avg(h), sum(h) FROM t;
SELECT avg(v), sum(v), avg(h), sum(h) FROM t WHERE g = 9;
SELECT avg(v), sum(v) FROM t WHERE g = 3;
SET max_parallel_workers_per_gather = 0;

-- out-of-line and large values
SELECT vector_dims(avg(v)), subvector(avg(v), 1, 2), subvector(sum(v), 15999, 2)
FROM (SELECT array_fill(i, ARRAY[16000])::vector AS v FROM generate_series(1, 3) i) x;

-- the sum of halfvecs is rounded every time; avg is not
SELECT sum(h), avg(h) FROM (SELECT '[2048]'::halfvec UNION ALL SELECT '[1]' FROM generate_series(1, 10)) x(h);

-- float8 sums
SELECT avg(v) FROM unnest(ARRAY['[3e38]'::vector, '[3e38]']) v;
SELECT avg(h) FROM unnest(ARRAY['[65504]'::halfvec, '[65504]']) h;
SELECT sum(v) FROM unnest(ARRAY['[3e38]'::vector, '[3e38]']) v;
SELECT sum(h) FROM unnest(ARRAY['[65504]'::halfvec, '[65504]']) h;
SELECT avg(v) FROM unnest(ARRAY['[1,2]'::vector, '[3]']) v;
SELECT sum(v) FROM unnest(ARRAY['[1,2]'::vector, '[3]']) v;

-- the support functions by themselves leave their argument alone
SELECT vector_accum(a, '[1,2]'), vector_combine(a, a), a FROM (SELECT '{1,5,6}'::float8[] AS a) x;
SELECT vector_accum('{0}', '[1,2]'), halfvec_accum('{0}', '[1,2]'), vector_accum('{2,1,1}', '[1,2]');
SELECT vector_combine('{0}', '{2,1,1}'), vector_combine('{2,1,1}', '{0}'), vector_combine('{2,1,1}', '{3,4,5}'),
    vector_combine('{0}', '{0}');
SELECT vector_avg('{0}'), halfvec_avg('{0}'), vector_avg('{2,2,4}'), halfvec_avg('{2,2,4}');
DROP TABLE t;
