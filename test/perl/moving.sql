-- What the tests about moving between pgvector and Quiver move; their indexes follow.

CREATE EXTENSION vector;
CREATE FUNCTION coordinates(i int, n int) RETURNS real[] LANGUAGE sql IMMUTABLE AS
	$$ SELECT array_agg((hashint4(i * 1000 + j) % 1000)::real / 8 ORDER BY j) FROM generate_series(1, n) j $$;

CREATE TABLE items (id int PRIMARY KEY, v vector(12), h halfvec(12), s sparsevec(24), b bit(12));
INSERT INTO items
	SELECT i, c::vector, c::halfvec, ((c::vector - c::vector) || c::vector)::sparsevec, binary_quantize(c::vector)
	FROM generate_series(1, 250) i, coordinates(i, 12) c;
INSERT INTO items VALUES (1001, NULL, NULL, NULL, NULL),
	(1002, array_fill(0, ARRAY[12])::vector, array_fill(0, ARRAY[12])::halfvec, '{}/24', repeat('0', 12)::bit(12));
CREATE INDEX items_btree ON items (v, h, s);
CREATE INDEX items_partial ON items USING hnsw (v vector_l2_ops) WHERE id < 200;
CREATE INDEX items_expression ON items USING hnsw ((subvector(v, 1, 6)::halfvec(6)) halfvec_cosine_ops);
CREATE INDEX items_quantized ON items USING hnsw ((binary_quantize(v)::bit(12)) bit_hamming_ops);
ALTER TABLE items CLUSTER ON items_btree;

CREATE TABLE extremes (v vector, h halfvec, s sparsevec, b bit varying);
INSERT INTO extremes VALUES
	('[-0,1e-45,3.4028234e38]', '[-0,6e-8,65504]', '{1:1e-45,1000000000:-3.4028234e38}/1000000000', '1');
INSERT INTO extremes SELECT c::vector, c::halfvec, c::vector::sparsevec, repeat('10', 32000)::bit(64000)
	FROM coordinates(5, 16000) c;

CREATE TABLE wide (id int, v vector(3000) DEFAULT NULL, many vector(3)[], h halfvec,
	half halfvec(3) GENERATED ALWAYS AS (subvector(v, 1, 3)::halfvec) STORED, CHECK (vector_dims(v) = 3000));
ALTER TABLE wide ALTER h SET STORAGE plain;
INSERT INTO wide SELECT i, coordinates(i, 3000), ARRAY['[1,2,3]', NULL, '[4,5,6]']::vector[], coordinates(i, 3 + i)
	FROM generate_series(1, 5) i;

CREATE DOMAIN unit AS vector(2) CHECK (vector_norm(VALUE) BETWEEN 0.99 AND 1.01);
CREATE TABLE units (u unit);
INSERT INTO units VALUES ('[1,0]'), ('[0,-1]');

CREATE VIEW near AS SELECT id, v <-> array_fill(7, ARRAY[12])::vector AS distance, l2_normalize(v) AS unit
	FROM items WHERE v <> array_fill(0, ARRAY[12])::vector ORDER BY 2 LIMIT 5;
CREATE VIEW counts AS SELECT v, count(*) FROM items GROUP BY v;
CREATE MATERIALIZED VIEW center AS SELECT avg(v) AS v, sum(h) AS h FROM items WHERE id < 1000;
CREATE FUNCTION distance_to(items, vector) RETURNS float8 LANGUAGE sql RETURN $1.v <=> $2;
