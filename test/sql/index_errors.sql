-- errors of indexes

SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS vector;
CREATE EXTENSION IF NOT EXISTS quiver;
RESET client_min_messages;
SET enable_seqscan = off;

-- text and SQLSTATE of what a statement raises
CREATE FUNCTION error_of(statement text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE statement;
	RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
	RETURN SQLSTATE || ' ' || SQLERRM;
END $$;

CREATE TABLE t (id int, val vector(3), any_dims vector);
INSERT INTO t VALUES (1, '[1,2,3]', '[1,2]'), (2, '[4,5,6]', '[1,2,3]');
CREATE INDEX t_idx ON t USING hnsw (val vector_l2_ops);

-- dimensions

SELECT error_of($$INSERT INTO t VALUES (3, '[1,2]')$$);
SELECT error_of($$SELECT * FROM t ORDER BY val <-> '[1,2]' LIMIT 1$$);
SELECT error_of($$SELECT * FROM t ORDER BY val <-> '[1,2,3,4]' LIMIT 1$$);
SELECT error_of($$CREATE INDEX ON t USING hnsw (any_dims vector_l2_ops)$$);
SELECT error_of($$CREATE INDEX ON t USING quiver_graph (any_dims)$$);
-- an expression's value is not held to the column's dimensions
SELECT error_of($$CREATE INDEX ON t USING hnsw ((any_dims::vector(3)) vector_l2_ops)$$);
CREATE TABLE e (v vector);
CREATE INDEX e_idx ON e USING hnsw ((v::vector(3)) vector_l2_ops);
SELECT error_of($$INSERT INTO e VALUES ('[1,2]')$$);
INSERT INTO e VALUES ('[1,2,3]');
SELECT v FROM e ORDER BY v::vector(3) <-> '[1,1,1]' LIMIT 5;
DROP TABLE e;

-- types of other limits

SELECT error_of($$CREATE TABLE big (v vector(16001))$$);
CREATE TABLE big (v vector(16000), h halfvec(16000));
CREATE INDEX ON big USING hnsw (v vector_l2_ops);
CREATE INDEX ON big USING quiver_graph (v);
CREATE INDEX ON big USING hnsw (h halfvec_cosine_ops);
DROP TABLE big;

-- values

SELECT error_of($$INSERT INTO t VALUES (3, '[NaN,1,2]')$$);
SELECT error_of($$INSERT INTO t VALUES (3, '[Infinity,1,2]')$$);
SELECT error_of($$INSERT INTO t VALUES (3, '[1e39,1,2]')$$);
SELECT error_of($$INSERT INTO t VALUES (3, '[1,2,')$$);
SELECT error_of($$INSERT INTO t VALUES (3, '')$$);
SELECT error_of($$SELECT * FROM t ORDER BY val <-> '[NaN,1,2]' LIMIT 1$$);

-- options

SELECT error_of($$CREATE INDEX ON t USING hnsw (val vector_l2_ops) WITH (m = 1)$$);
SELECT error_of($$CREATE INDEX ON t USING hnsw (val vector_l2_ops) WITH (m = 101)$$);
SELECT error_of($$CREATE INDEX ON t USING hnsw (val vector_l2_ops) WITH (m = many)$$);
SELECT error_of($$CREATE INDEX ON t USING hnsw (val vector_l2_ops) WITH (ef_construction = 3)$$);
SELECT error_of($$CREATE INDEX ON t USING hnsw (val vector_l2_ops) WITH (ef_construction = 1001)$$);
SELECT error_of($$CREATE INDEX ON t USING hnsw (val vector_l2_ops) WITH (m = 40, ef_construction = 64)$$);
SELECT error_of($$CREATE INDEX ON t USING quiver_graph (val) WITH (m = 40, ef_construction = 64)$$);
SELECT error_of($$CREATE INDEX ON t USING hnsw (val vector_l2_ops) WITH (lists = 1)$$);
SELECT error_of($$CREATE UNLOGGED TABLE u (v vector(3));
    CREATE INDEX ON u USING hnsw (v vector_l2_ops) WITH (m = 40)$$);

-- settings

SELECT error_of($$SET hnsw.ef_search = 0$$);
SELECT error_of($$SET hnsw.ef_search = 1001$$);
SELECT error_of($$SET hnsw.iterative_scan = maybe$$);
SELECT error_of($$SET hnsw.scan_mem_multiplier = 0.5$$);
SELECT error_of($$SET quiver.ef_search = 65536$$);
SELECT error_of($$SET hnsw.bogus = 1$$);
SELECT error_of($$SET quiver.bogus = 1$$);

-- operator classes

SELECT error_of($$CREATE INDEX ON t USING hnsw (val)$$);
SELECT error_of($$CREATE INDEX ON t USING hnsw (val halfvec_l2_ops)$$);
SELECT error_of($$CREATE INDEX ON t USING hnsw (id)$$);
CREATE OPERATOR CLASS spherical_ops FOR TYPE vector USING hnsw AS
	OPERATOR 1 <=> (vector, vector) FOR ORDER BY float_ops,
	FUNCTION 1 vector_spherical_distance(vector, vector);
SELECT error_of($$CREATE INDEX ON t USING hnsw (val spherical_ops)$$);
DROP OPERATOR FAMILY spherical_ops USING hnsw;

-- the index is what it was

SELECT quiver_check('t_idx');
SELECT id FROM t ORDER BY val <-> '[1,2,3]' LIMIT 5;

DROP TABLE t;
DROP FUNCTION error_of(text);
