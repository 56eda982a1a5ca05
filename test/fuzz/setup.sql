-- What the targets work on: one table and index for each kind of pages, and the
-- procedures of the driver, whose library variable "driver" names.
CREATE EXTENSION IF NOT EXISTS vector;
CREATE EXTENSION IF NOT EXISTS quiver;
CREATE PROCEDURE quiver_fuzz(target text, arguments text[]) LANGUAGE c AS :'driver', 'quiver_fuzz';
CREATE PROCEDURE quiver_fuzz_replay(target text, folder text) LANGUAGE c AS :'driver', 'quiver_fuzz_replay';

CREATE FUNCTION val(i int, dims int) RETURNS vector LANGUAGE sql IMMUTABLE AS
	'SELECT array_agg(sin(i * j + j * j * 0.3))::vector FROM generate_series(1, dims) j';

-- value: of row i
CREATE TABLE fuzz_kinds (id int GENERATED ALWAYS AS IDENTITY, name text, type text, value text, rows int, operator text,
	indexing text, grown bool, query text, samples text, name_idx regclass, name_table regclass);
INSERT INTO fuzz_kinds (name, type, value, rows, operator, indexing, grown) VALUES
	('g_l2', 'vector(16)', 'val(i, 16)', 120, '<->',
		'hnsw (v vector_l2_ops) WITH (m = 4, ef_construction = 10)', false),
	('g_ip', 'halfvec(24)', 'val(i, 24)::halfvec', 90, '<#>', 'quiver_graph (v halfvec_ip_ops) WITH (m = 16)', true),
	('g_cos', 'vector(40)', 'val(i, 40)', 120, '<=>', 'quiver_graph (v vector_cosine_ops)', false),
	('g_few', 'vector(5)', 'val(i, 5)', 100, '<->', 'hnsw (v vector_l2_ops) WITH (m = 4, ef_construction = 16)', false),
	('g_sparse', 'sparsevec(24)', 'val(i, 24)::sparsevec', 90, '<->', 'hnsw (v sparsevec_l2_ops) WITH (m = 5)', false),
	('g_long', 'sparsevec(16000)',
		$$('{' || (SELECT string_agg(j || ':' || sin(i * j), ',')
			FROM generate_series(1, 1300 + i % 100) j) || '}/16000')::sparsevec$$, 12, '<->',
		'hnsw (v sparsevec_l2_ops) WITH (m = 3, ef_construction = 8)', true),
	('g_bit', 'bit(40)', 'binary_quantize(val(i, 40))', 100, '<~>', 'hnsw (v bit_hamming_ops) WITH (m = 6)', true),
	('i_8', 'vector(16)', 'val(i, 16)', 120, '<->', 'quiver_ivf (v) WITH (lists = 6)', false),
	('i_4', 'halfvec(30)', 'val(i, 30)::halfvec', 120, '<#>',
		'quiver_ivf (v halfvec_ip_ops) WITH (lists = 5, bits = 4)', false),
	('i_2', 'vector(100)', 'val(i, 100)', 100, '<=>',
		'quiver_ivf (v vector_cosine_ops) WITH (bits = 2, lists = 4)', false),
	('i_sketches', 'vector(256)', 'val(i, 256)', 110, '<->', 'quiver_ivf (v) WITH (lists = 4)', false),
	('i_grown', 'vector(12)', 'val(i, 12)', 400, '<->', 'quiver_ivf (v)', true),
	('i_many', 'vector(9)', 'val(i, 9)', 150, '<->', 'quiver_ivf (v) WITH (lists = 130)', false),
	('i_flat', 'vector(16)', 'val(i, 16)', 120, '<->', 'ivfflat (v vector_l2_ops) WITH (lists = 6)', false),
	('i_included', 'vector(16)', 'val(i, 16)', 120, '<->', 'quiver_ivf (v) INCLUDE (id) WITH (lists = 6)', false),
	('i_bit', 'bit(40)', 'binary_quantize(val(i, 40))::bit(40)', 120, '<~>',
		'ivfflat (v bit_hamming_ops) WITH (lists = 6)', false);

SET client_min_messages = error;
DO $$
<<make_kinds>>
DECLARE
	k record;
	query text;
BEGIN
	FOR k IN SELECT * FROM fuzz_kinds ORDER BY id LOOP
		EXECUTE format('CREATE TABLE %I (id int, v %s) WITH (autovacuum_enabled = false)', k.name, k.type);
		IF k.grown THEN
			EXECUTE format('CREATE INDEX %I ON %I USING %s', k.name || '_idx', k.name, k.indexing);
		END IF;
		EXECUTE format('INSERT INTO %I SELECT i, (%s)::%s FROM generate_series(1, %s) i',
			k.name, k.value, k.type, k.rows);
		-- one value many times: chains of heap TIDs
		EXECUTE format('INSERT INTO %I SELECT %s + j, (%s)::%s FROM (SELECT 9 AS i) x, generate_series(1, %s) j',
			k.name, k.rows, k.value, k.type, least(60, k.rows / 3));
		IF NOT k.grown THEN
			EXECUTE format('CREATE INDEX %I ON %I USING %s', k.name || '_idx', k.name, k.indexing);
			EXECUTE format('INSERT INTO %I SELECT i, (%s)::%s FROM generate_series(%s, %s) i', k.name, k.value, k.type,
				k.rows + 101, k.rows + 108);
		END IF;
		EXECUTE format('SELECT quote_literal(((%s)::%s)::text) || ''::%s'' FROM (SELECT -3 AS i) x',
			k.value, k.type, k.type) INTO query;
		-- two rows with their own values, two with new ones
		UPDATE fuzz_kinds f SET query = make_kinds.query, name_idx = (k.name || '_idx')::regclass,
			name_table = k.name::regclass,
			samples = format('(SELECT ctid, v FROM %s WHERE id IN (5, 6)) UNION ALL '
				'(SELECT ctid, (%s)::%s FROM (SELECT ctid, -id AS i FROM %s WHERE id IN (7, 8)) x)',
				k.name, k.value, k.type, k.name)
			WHERE f.id = k.id;
	END LOOP;
END $$;

-- with nothing in them yet
CREATE TABLE g_empty AS SELECT i AS id, NULL::vector(5) AS v FROM generate_series(1, 10) i;
CREATE INDEX g_empty_idx ON g_empty USING hnsw (v vector_l2_ops);
CREATE TABLE i_empty AS SELECT i AS id, NULL::vector(12) AS v FROM generate_series(1, 10) i;
CREATE INDEX i_empty_idx ON i_empty USING quiver_ivf (v);
INSERT INTO fuzz_kinds (name, type, operator, query, samples, name_idx, name_table)
	SELECT n, k.type, k.operator, k.query,
		format('SELECT e.ctid, k.v FROM %s e JOIN %s k USING (id) WHERE id BETWEEN 5 AND 8', n, k.name),
		(n || '_idx')::regclass, n::regclass
	FROM fuzz_kinds k JOIN (VALUES ('g_empty', 'g_few'), ('i_empty', 'i_grown')) x(n, like_this)
		ON k.name = x.like_this ORDER BY x.n;

DELETE FROM g_sparse WHERE id % 10 = 4;
DELETE FROM i_8 WHERE id % 10 = 4;
DELETE FROM g_l2 WHERE id % 10 = 4;
VACUUM g_l2, g_sparse, i_8;
ANALYZE;

-- Pages that lie, in memory, behind those of the indexes.
CREATE TABLE fuzz_pad (filler text) WITH (autovacuum_enabled = false);
ALTER TABLE fuzz_pad ALTER filler SET STORAGE PLAIN;
INSERT INTO fuzz_pad SELECT repeat('x', 5000) FROM generate_series(1,
	(SELECT sum(pg_relation_size(name_idx) / 8192 + 1) FROM fuzz_kinds)::int);

-- for the targets' own sessions
DO $$
DECLARE
	setting text;
BEGIN
	FOREACH setting IN ARRAY '{enable_seqscan = off,enable_sort = off,enable_bitmapscan = off,jit = off,'
			'max_parallel_workers_per_gather = 0,max_parallel_maintenance_workers = 0}'::text[] LOOP
		EXECUTE format('ALTER DATABASE %I SET %s', current_database(), setting);
	END LOOP;
END $$;
CHECKPOINT;
