-- distances of the core type bit

SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS vector;
RESET client_min_messages;

SELECT a, b, hamming_distance(a, b), a <~> b AS hamming, round((a <%> b)::numeric, 6) AS jaccard,
    jaccard_distance(a, b) = (a <%> b) AS same
FROM (VALUES (B'111', B'111'), (B'111', B'110'), (B'111', B'100'), (B'111', B'000'),
    (B'000', B'000'), (B'101', B'010')) t(a, b);
SELECT B'' <~> B'' AS hamming, B'' <%> B'' AS jaccard;
SELECT hamming_distance('1', '11');
SELECT jaccard_distance('1', '11');

-- every length up to 600
SELECT count(*) AS lengths,
    bool_and(a <~> b = length(replace((a # b)::text, '0', ''))) AS hamming,
    bool_and(a <%> b = 1 - length(replace((a & b)::text, '0', ''))::float8
        / length(replace((a | b)::text, '0', ''))) AS jaccard
FROM (
    SELECT n, ('1' || string_agg(((i * 7 % 5) % 2)::text, '' ORDER BY i))::varbit::bit AS a,
        ('1' || string_agg(((i * 3 % 7) % 2)::text, '' ORDER BY i))::varbit::bit AS b
    FROM generate_series(1, 600) n, generate_series(1, n) i GROUP BY n
) t;

-- out of line
CREATE TABLE stored (v bit(200000));
ALTER TABLE stored ALTER v SET STORAGE EXTERNAL;
INSERT INTO stored VALUES (repeat('10', 100000)::bit(200000)), (repeat('01', 100000)::bit(200000));
SELECT a.v <~> b.v AS hamming, a.v <%> b.v AS jaccard FROM stored a, stored b ORDER BY 1, 2;
DROP TABLE stored;
