-- Rounds of a top-k scan that goes on: relaxed_order returns rows that a later round finds nearer
-- than one that was returned, strict_order leaves them out.
CREATE EXTENSION IF NOT EXISTS vector;
CREATE EXTENSION IF NOT EXISTS quiver;
SET enable_sort = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;

-- Gaussian noise, on which searches miss most
CREATE FUNCTION rounds_noise(a int, b int) RETURNS float8 LANGUAGE sql IMMUTABLE AS
'SELECT sqrt(-2 * ln((1 + abs(hashint4(a * 64 + b)::bigint)) / 2147483650.0)) * cos(hashint4(-a * 64 - b - 1) / 341782637.7)';
CREATE TABLE rounds (id int, v vector(32));
INSERT INTO rounds SELECT i, (SELECT array_agg(rounds_noise(i, j))::vector(32) FROM generate_series(1, 32) j)
FROM generate_series(1, 3000) i;
CREATE TABLE rounds_wanted AS SELECT i * 100 AS id FROM generate_series(1, 30) i;
ANALYZE rounds;
ANALYZE rounds_wanted;

-- Rows that the node returns until none is left, how many rounds it takes, and how many of them the join finds.
CREATE FUNCTION rounds_of(OUT rows int, OUT rounds bool, OUT joined int) LANGUAGE plpgsql AS $$
DECLARE
	query text := 'SELECT r.id FROM rounds r JOIN rounds_wanted w ON r.id = w.id ORDER BY v <-> (SELECT v FROM rounds WHERE id = 7) LIMIT 31';
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
		IF line ~ 'Quiver Top-K Scan' THEN
			rows := substring(line FROM 'rows=(\d+)');
		ELSIF line ~ 'Rounds: ' THEN
			rounds := substring(line FROM 'Rounds: (\d+)')::int > 1;
		END IF;
	END LOOP;
	EXECUTE format('SELECT count(DISTINCT id) FROM (%s) x', query) INTO joined;
END $$;

CREATE INDEX rounds_v ON rounds USING quiver_graph (v vector_l2_ops) WITH (m = 4);
SET quiver.ef_search = 10;
SET quiver.iterative_scan = strict_order;
SELECT rows <= 3000 AS rows, rounds FROM rounds_of();
SET quiver.iterative_scan = relaxed_order;
SELECT * FROM rounds_of();
-- no memory to know all that were returned: in strict order from then on
SET work_mem = '64kB';
SELECT rows <= 3000 AS rows, rounds FROM rounds_of();
RESET work_mem;

DROP INDEX rounds_v;
CREATE INDEX rounds_v ON rounds USING quiver_ivf (v vector_l2_ops);
SELECT * FROM rounds_of();
SET quiver.iterative_scan = strict_order;
SELECT rows <= 3000 AS rows, rounds FROM rounds_of();

DROP TABLE rounds, rounds_wanted;
DROP FUNCTION rounds_of, rounds_noise;
