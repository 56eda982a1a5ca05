-- A graph of whole values, which are on pages of their own; two do not fit into a page.
CREATE TABLE :t (id int, v sparsevec(5000));
CREATE VIEW :s AS SELECT i AS id,
    image_sparse(i, 5000, CASE WHEN i IN (100, 260) THEN 1800 ELSE 20 END)::sparsevec(5000) AS v
    FROM generate_series(1, 400) i;
CREATE TABLE :q AS SELECT i AS id, image_sparse(21 - 24 * i, 5000, 20)::sparsevec(5000) AS v
    FROM generate_series(1, 12) i;
CREATE VIEW :a AS SELECT q.id AS query, r.ids FROM :q q,
    LATERAL (SELECT array_agg(id) AS ids FROM (SELECT id FROM :t ORDER BY v <-> q.v LIMIT 8) x) r;
INSERT INTO :t SELECT * FROM :s WHERE id <= 240;
CREATE INDEX :i ON :t USING hnsw (v sparsevec_l2_ops);
\ir change.sql
