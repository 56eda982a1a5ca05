-- Included columns: conditions that the index answers by itself
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS vector;
CREATE EXTENSION IF NOT EXISTS quiver;
CREATE SCHEMA included;
SET search_path = included, public;
CREATE TYPE state AS ENUM ('new', 'open', 'done');
CREATE DOMAIN percent AS smallint CHECK (VALUE BETWEEN 0 AND 100);
CREATE FUNCTION make_vector(i int) RETURNS vector LANGUAGE sql IMMUTABLE AS $$
	SELECT array_agg((hashint4(i * 32 + j) % 1000) / 1000.0 + i % 5 ORDER BY j)::vector(32)
	FROM generate_series(1, 32) j $$;
CREATE TABLE t (id int, tenant int, done percent, price float8, made date, at timestamptz, mark uuid, live bool,
	kind state, length interval, big int8, letter "char", note text, v vector(32))
	WITH (autovacuum_enabled = off, fillfactor = 90);
CREATE FUNCTION add_rows(first int, last int) RETURNS void LANGUAGE sql AS $$
	INSERT INTO t SELECT i, i % 100, i % 101, i / 7.0, date '2026-01-01' + i % 300,
		timestamptz '2026-01-01 00:00 UTC' + i * interval '1 hour', md5((i % 40)::text)::uuid, i % 3 = 0,
		('{new,open,done}'::state[])[1 + i % 3], i * interval '1 minute', i * 10000000000, chr(65 + i % 26)::"char",
		'note ' || i, make_vector(i) FROM generate_series(first, last) i $$;
SELECT add_rows(1, 2000);
UPDATE t SET price = NULL, kind = NULL WHERE id % 11 = 0;

-- what cannot be included, and where nothing can
CREATE INDEX ON t USING quiver_ivf (v vector_l2_ops) INCLUDE (tenant, note);
CREATE INDEX ON t USING hnsw (v vector_l2_ops) INCLUDE (tenant);
-- the server's own error, which shows the place since 19
\set VERBOSITY sqlstate
CREATE INDEX ON t USING quiver_graph (v vector_l2_ops) INCLUDE ((tenant + 1));
\set VERBOSITY default

CREATE INDEX t_v ON t USING quiver_graph (v vector_l2_ops)
	INCLUDE (tenant, done, price, made, at, mark, live, kind, length, big, letter);
SELECT pg_get_indexdef('t_v'::regclass);
VACUUM ANALYZE t;
SET enable_seqscan = off;
SET quiver.recall = 1;
CREATE FUNCTION plan(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		IF line ~ 'Top-K Scan|Filter' THEN
			RETURN NEXT trim(line);
		END IF;
	END LOOP;
END $$;
-- the rows of a query by each way, against a scan of the table
CREATE FUNCTION compare(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	found text;
	exact text;
	ways text := '';
BEGIN
	PERFORM set_config('quiver.topk_scan', 'off', true), set_config('enable_indexscan', 'off', true);
	EXECUTE format('SELECT string_agg(x::text, '' '') FROM (%s) x', query) INTO exact;
	PERFORM set_config('quiver.topk_scan', 'on', true), set_config('enable_indexscan', 'on', true);
	FOREACH ways IN ARRAY '{auto,index,row_pages,table}'::text[] LOOP
		PERFORM set_config('quiver.topk_way', ways, true);
		EXECUTE format('SELECT string_agg(x::text, '' '') FROM (%s) x', query) INTO found;
		IF found IS DISTINCT FROM exact THEN
			RETURN format('%s: %s, not %s', ways, found, exact);
		END IF;
	END LOOP;
	PERFORM set_config('quiver.topk_way', 'auto', true);
	RETURN (string_to_array(exact, ' '))[1];
END $$;
CREATE TABLE conditions (n serial, condition text);
INSERT INTO conditions (condition) VALUES ('tenant = 7'), ('7 = tenant'), ('tenant IN (1, 50, 99)'),
	('tenant BETWEEN 10 AND 12'),
	('tenant < 5::bigint AND done >= 50'), ('price > 100.5'), ('price IS NULL'), ('made < ''2026-01-20'''),
	('at >= ''2026-03-01 UTC'' AND at < ''2026-03-05 UTC'''), ('made < timestamp ''2026-01-20 12:00'''),
	('mark = md5(''7'')::uuid'), ('live AND tenant > 90'), ('NOT live'), ('live IS NOT TRUE'), ('kind = ''open'''),
	('kind > ''new'''), ('kind IS NULL'), ('length < interval ''30 minutes'''), ('big = 70000000000'),
	('big > 9223372036854775807'), ('big >= -9223372036854775808'), ('done < 40000'),
	('done > -40000::int8 AND tenant < 3'),
	('letter = ''C'''), ('tenant + done < 10'), ('tenant = 7 AND note LIKE ''note 1%'''), ('tenant <> 7'),
	('tenant = NULL'),
	('CASE WHEN live THEN tenant ELSE done END = 3');
-- one plan of each kind: all conditions on included columns, some, none
SELECT * FROM plan('SELECT id FROM t WHERE tenant = 7 ORDER BY v <-> make_vector(3) LIMIT 5');
SELECT * FROM plan('SELECT id FROM t WHERE tenant = 7 AND note <> '''' AND price < 5
	ORDER BY v <-> make_vector(3) LIMIT 5');
SELECT * FROM plan('SELECT id FROM t WHERE tenant + id = 7 ORDER BY v <-> make_vector(3) LIMIT 5');
SELECT * FROM plan('SELECT id FROM t WHERE v <-> make_vector(3) < 1 AND tenant < 50');
SELECT * FROM plan('SELECT a.id, n.id FROM t a, LATERAL (SELECT id FROM t b WHERE b.tenant = a.tenant AND b.id <> a.id
	ORDER BY b.v <-> a.v LIMIT 2) n WHERE a.id < 4');
CREATE FUNCTION ask(condition text, i int) RETURNS text LANGUAGE sql AS $$
	SELECT compare(format('SELECT id FROM t WHERE %s ORDER BY v <-> make_vector(%s) LIMIT 8', condition, i)) $$;
SELECT n, condition, ask(condition, n * 7) FROM conditions ORDER BY n;
SELECT compare('SELECT a.id, n.id FROM t a, LATERAL (SELECT id FROM t b WHERE b.tenant = a.tenant AND b.id <> a.id
	ORDER BY b.v <-> a.v LIMIT 2) n WHERE a.id < 4 ORDER BY 1, 2');
SELECT compare('SELECT count(*) FROM t WHERE v <-> make_vector(3) < 2 AND tenant < 50');
-- rows that the condition removes are not fetched
CREATE FUNCTION counts(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF, FORMAT JSON) ' || query INTO plan;
	plan := jsonb_path_query_first(plan, 'strict $.** ? (@."Custom Plan Provider" == "Quiver Top-K Scan")');
	RETURN format('%s of %s removed by the index, %s by rows, %s fetched%s', plan->'Rows Removed by Index Filter',
		plan->'Rows Proposed', coalesce(plan->'Rows Removed by Filter', '0'),
		CASE WHEN (plan->'Rows Fetched')::int <= 8 THEN 'at most 8' ELSE plan->>'Rows Fetched' END,
		CASE WHEN plan ? 'Heap Fetches' THEN ', index only' ELSE '' END);
END $$;
SET quiver.topk_way = row_pages;
SELECT counts('SELECT id FROM t WHERE tenant = 7 AND live ORDER BY v <-> make_vector(3) LIMIT 8');
SELECT counts('SELECT tenant, price FROM t WHERE tenant = 7 ORDER BY v <-> make_vector(3) LIMIT 8');
SELECT counts('SELECT tenant, v <-> make_vector(3) FROM t WHERE tenant = 7 ORDER BY v <-> make_vector(3) LIMIT 8');
SELECT counts('SELECT ctid, tenant FROM t WHERE tenant = 7 ORDER BY v <-> make_vector(3) LIMIT 8');
RESET quiver.topk_way;
-- answers of included columns alone
SELECT compare('SELECT tenant, done, price, made, at, mark, live, kind, length, big, letter FROM t
	WHERE price IS DISTINCT FROM 5 ORDER BY v <-> make_vector(3) LIMIT 8');
SELECT compare('SELECT big, price FROM t ORDER BY v <-> make_vector(4) LIMIT 30');

-- compiled code may take it for granted that NOT NULL columns have values
CREATE TABLE n (id int NOT NULL, note text NOT NULL, tenant int NOT NULL, x int, v vector(32) NOT NULL);
INSERT INTO n SELECT i, 'note ' || i, i % 10, i, make_vector(i) FROM generate_series(1, 300) i;
CREATE INDEX n_v ON n USING quiver_ivf (v vector_l2_ops) INCLUDE (tenant);
VACUUM n;
SET jit = on;
SET jit_above_cost = 0;
SELECT compare('SELECT tenant + 1 FROM n WHERE tenant IN (3, 7) ORDER BY v <-> make_vector(4) LIMIT 8');
RESET jit_above_cost;
RESET jit;

-- rows that change: other values, rows added, removed and rolled back, heap TIDs used again
UPDATE t SET note = 'changed' WHERE id % 4 = 0;
UPDATE t SET tenant = 7, price = -1 WHERE id % 10 = 3;
DELETE FROM t WHERE id % 9 = 2;
SELECT add_rows(2001, 2200);
BEGIN;
UPDATE t SET tenant = 7, live = NOT live;
ROLLBACK;
SELECT string_agg(ask(condition, n * 5), ' ' ORDER BY n) FROM conditions WHERE n % 3 = 0;
VACUUM t;
SELECT add_rows(2201, 2400);
SELECT string_agg(ask(condition, n * 3), ' ' ORDER BY n) FROM conditions WHERE n % 3 = 1;
SELECT quiver_check('t_v') = count(v) FROM t;
REINDEX INDEX CONCURRENTLY t_v;
SELECT string_agg(ask(condition, n), ' ' ORDER BY n) FROM conditions WHERE n % 3 = 2;

-- the same of posting lists, begun on an empty table; and of a table that grew in one transaction
CREATE TABLE u (LIKE t);
CREATE INDEX u_v ON u USING quiver_ivf (v vector_l2_ops)
	INCLUDE (tenant, done, price, made, at, mark, live, kind, length, big, letter);
INSERT INTO u SELECT * FROM t;
ALTER TABLE t RENAME TO other;
ALTER TABLE u RENAME TO t;
SELECT string_agg(ask(condition, n), ' ' ORDER BY n) FROM conditions WHERE n % 3 = 0;
VACUUM ANALYZE t;
SELECT string_agg(ask(condition, n), ' ' ORDER BY n) FROM conditions WHERE n % 3 = 1;
SET quiver.topk_way = row_pages;
SELECT counts('SELECT id FROM t WHERE tenant = 7 AND live ORDER BY v <-> make_vector(3) LIMIT 8');
RESET quiver.topk_way;
SELECT quiver_check('u_v') = count(v) FROM t;
ALTER INDEX u_v SET (lists = 20);
REINDEX INDEX u_v;
ALTER TABLE t ALTER done TYPE int;
SELECT pg_get_indexdef('u_v'::regclass);
SELECT compare('SELECT id FROM t WHERE done > 50 ORDER BY v <-> make_vector(4) LIMIT 8');
-- a transaction that made the rows, and an index of few of them
BEGIN;
CREATE TABLE w AS SELECT * FROM t WHERE id < 1000;
CREATE INDEX w_v ON w USING quiver_ivf (v vector_l2_ops) INCLUDE (tenant);
SELECT compare('SELECT id FROM w WHERE tenant = 5 ORDER BY v <-> make_vector(4) LIMIT 3');
COMMIT;
CREATE INDEX w_few ON w USING quiver_graph (v vector_l2_ops) INCLUDE (tenant) WHERE live;
SELECT compare('SELECT id FROM w WHERE live AND tenant = 5 ORDER BY v <-> make_vector(4) LIMIT 3');

-- a condition does not see rows that the query does not see: here of a row with tenant 0, which is dead
CREATE TABLE d (id int, tenant int, v vector(32)) WITH (autovacuum_enabled = off);
INSERT INTO d SELECT i, i % 10, make_vector(i) FROM generate_series(1, 300) i;
CREATE INDEX d_v ON d USING quiver_graph (v vector_l2_ops) INCLUDE (tenant);
DELETE FROM d WHERE tenant = 0;
ANALYZE d;
SELECT * FROM plan('SELECT id FROM d WHERE 10 / tenant > 2 ORDER BY v <-> make_vector(4) LIMIT 3');
SELECT compare('SELECT id FROM d WHERE 10 / tenant > 2 ORDER BY v <-> make_vector(4) LIMIT 3');
VACUUM d;
SELECT compare('SELECT id FROM d WHERE 10 / tenant > 2 ORDER BY v <-> make_vector(4) LIMIT 3');
-- conditions that might leak are tested after those of row security
ALTER TABLE d ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON d USING (id % 2 = 0);
CREATE ROLE included_user;
GRANT USAGE ON SCHEMA included TO included_user;
GRANT SELECT ON d TO included_user;
SET ROLE included_user;
SELECT * FROM plan('SELECT id FROM d WHERE 10 / tenant > 2 AND tenant < 9 ORDER BY v <-> make_vector(4) LIMIT 3');
SELECT id FROM d WHERE 10 / tenant > 2 AND tenant < 9 ORDER BY v <-> make_vector(4) LIMIT 3;
RESET ROLE;

-- partitions, prepared statements, updates of what was found, locked rows, cursors
CREATE TABLE p (id int, region int, tenant int, v vector(32)) PARTITION BY LIST (region);
CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1) WITH (fillfactor = 70);
CREATE TABLE p2 (v vector(32), tenant int, region int, id int);
ALTER TABLE p ATTACH PARTITION p2 FOR VALUES IN (2);
INSERT INTO p SELECT i, 1 + i % 2, i % 20, make_vector(i) FROM generate_series(1, 600) i;
CREATE INDEX p_v ON p USING quiver_ivf (v vector_l2_ops) INCLUDE (tenant);
ANALYZE p;
SELECT * FROM plan('SELECT id FROM p WHERE tenant = 4 ORDER BY v <-> make_vector(4) LIMIT 5');
SELECT compare('SELECT id FROM p WHERE tenant IN (4, 5) ORDER BY v <-> make_vector(4) LIMIT 5');
SET plan_cache_mode = force_generic_plan;
PREPARE of_tenant(int, vector) AS SELECT id FROM p WHERE tenant = $1 AND region = 1 ORDER BY v <-> $2 LIMIT 3;
EXECUTE of_tenant(4, make_vector(4));
EXECUTE of_tenant(6, make_vector(4));
EXECUTE of_tenant(NULL, make_vector(4));
BEGIN;
SELECT id FROM p1 WHERE tenant = 4 ORDER BY v <-> make_vector(4) LIMIT 2 FOR UPDATE;
UPDATE p1 SET tenant = 5 WHERE id IN (SELECT id FROM p1 WHERE tenant = 4 ORDER BY v <-> make_vector(4) LIMIT 2);
DECLARE c SCROLL CURSOR FOR SELECT id FROM p1 WHERE tenant = 4 ORDER BY v <-> make_vector(4) LIMIT 4;
FETCH 2 FROM c;
FETCH BACKWARD 1 FROM c;
FETCH 2 FROM c;
COMMIT;
RESET plan_cache_mode;
-- what it takes
SELECT round((a.bytes - b.bytes) / 100000.0) AS bytes_a_row, a.bytes = c.bytes AS same
	FROM quiver_estimate('t', 'v', 'quiver_ivf', row_count => 100000, include => '{tenant,done,big}') a,
		quiver_estimate('t', 'v', 'quiver_ivf', row_count => 100000) b,
		quiver_estimate('t', 'v', 'quiver_ivf', '{}', NULL, 100000, '{tenant,done,big}') c;
SELECT * FROM quiver_estimate('t', 'v', include => '{note}');
SELECT * FROM quiver_estimate('t', 'v', include => '{none}');
SELECT * FROM quiver_estimate('t', 'v', 'hnsw', include => '{tenant}');
SELECT * FROM quiver_estimate('t', 'v', 'quiver_graph', '{m=40}');
-- verified against the table: an update that the index has missed
SELECT quiver_check('p1_v_tenant_idx') > 0 AS checked;
UPDATE pg_index SET indislive = false WHERE indexrelid = 'p1_v_tenant_idx'::regclass;
ALTER TABLE p1 SET (autovacuum_enabled = off);
UPDATE p1 SET tenant = 77 WHERE id = 8;
UPDATE pg_index SET indislive = true WHERE indexrelid = 'p1_v_tenant_idx'::regclass;
ALTER TABLE p1 RESET (autovacuum_enabled);
\set VERBOSITY sqlstate
SELECT quiver_check('p1_v_tenant_idx');
\set VERBOSITY default
DROP SCHEMA included CASCADE;
DROP ROLE included_user;
