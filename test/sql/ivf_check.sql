-- quiver_check() and quiver_index_info() of posting lists: built, grown from
-- nothing, with dead rows, compacted, emptied

SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS vector;
CREATE EXTENSION IF NOT EXISTS quiver;
RESET client_min_messages;

CREATE TABLE t (id int, v vector(16), b bit(64));
CREATE INDEX t_v ON t USING quiver_ivf (v vector_l2_ops);
CREATE INDEX t_ip ON t USING quiver_ivf (v vector_ip_ops) WITH (bits = 2, lists = 5);
CREATE INDEX t_b ON t USING quiver_ivf (b bit_hamming_ops);
CREATE FUNCTION fill(first int, last int) RETURNS void LANGUAGE sql AS $$
	INSERT INTO t SELECT i,
		(SELECT array_agg(hashint8extended(i, j) % 1000 / 100.0::float4) FROM generate_series(1, 16) j)::vector,
		(hashint8extended(i, 17)::bit(64))
	FROM generate_series(first, last) i
$$;
CREATE FUNCTION checked()
	RETURNS TABLE (index regclass, rows bigint, same bool, lists bool, sizes bool, dead bigint, lost bigint)
LANGUAGE sql AS $$
	SELECT i, quiver_check(i), row_count = quiver_check(i), info.lists BETWEEN 1 AND 100,
		smallest_list <= median_list AND median_list <= largest_list AND balance >= 1
			AND probes BETWEEN 1 AND info.lists,
		dead_rows, lost_pages
	FROM pg_index, LATERAL (SELECT indexrelid::regclass AS i) x, quiver_index_info(i) info
	WHERE indrelid = 't'::regclass ORDER BY i::text
$$;

SELECT * FROM checked();
SELECT fill(1, 3000);
SELECT * FROM checked();
REINDEX TABLE t;
SELECT * FROM checked();
DELETE FROM t WHERE id % 10 = 1;
VACUUM t;
SELECT index, rows, same, lists, sizes, dead > 0 AS dead, lost FROM checked();
DELETE FROM t WHERE id % 3 = 1;
VACUUM t;
SELECT index, rows, same, lists, sizes, dead < 1000 AS compacted, lost FROM checked();
SELECT fill(3001, 4000);
SELECT index, rows, same, lists, sizes, lost FROM checked();
DELETE FROM t;
VACUUM t;
SELECT * FROM checked();
SELECT fill(1, 100);
SELECT * FROM checked();

-- a scan to the end returns every row once, though lists are added as it goes on

SELECT fill(101, 3000);
REINDEX TABLE t;
SET enable_seqscan = off;
SET quiver.iterative_scan = relaxed_order;
SET quiver.probes = 1;
SELECT i, count(id), count(DISTINCT id) FROM generate_series(1, 5) i,
	LATERAL (SELECT id FROM t ORDER BY v <-> (SELECT q.v FROM t q WHERE q.id = i) LIMIT 10000) x GROUP BY i ORDER BY i;
RESET enable_seqscan;
RESET quiver.iterative_scan;
RESET quiver.probes;
DELETE FROM t WHERE id > 100;

-- what does not apply is null

REINDEX TABLE t;
SELECT access_method, row_count, dimensions, code_bits, own_code_bits, nodes, entry_points, dead_rows, free_pages,
	lost_pages
FROM pg_index, quiver_index_info(indexrelid) WHERE indrelid = 't'::regclass ORDER BY indexrelid::regclass::text;
-- probes are measured of whole values, too: random bits are near to nothing
SELECT fill(101, 3000);
REINDEX INDEX t_b;
SELECT probes > 5 AS many FROM quiver_index_info('t_b');
SELECT quiver_check('t');
DROP TABLE t;
DROP FUNCTION checked, fill;
