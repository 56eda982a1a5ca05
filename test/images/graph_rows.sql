-- A graph of codes, metapage version 3: row pages.
CREATE TABLE :t (id int, v vector(40));
ALTER TABLE :t ALTER v SET STORAGE PLAIN;
CREATE VIEW :s AS SELECT i AS id, image_vector(i, 40)::vector AS v FROM generate_series(1, 400) i;
CREATE TABLE :q AS SELECT i AS id, image_vector(21 - 24 * i, 40)::vector AS v FROM generate_series(1, 12) i;
CREATE VIEW :a AS SELECT q.id AS query, r.ids FROM :q q,
    LATERAL (SELECT array_agg(id) AS ids FROM (SELECT id FROM :t ORDER BY v <-> q.v LIMIT 10) x) r;
INSERT INTO :t SELECT * FROM :s WHERE id <= 240;
CREATE INDEX :i ON :t USING quiver_graph (v vector_l2_ops);
\ir change.sql
