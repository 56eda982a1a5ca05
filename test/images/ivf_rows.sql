-- Posting lists with raw batches and row pages, metapage version 4.
CREATE TABLE :t (id int, v vector(272));
ALTER TABLE :t ALTER v SET STORAGE PLAIN;
CREATE VIEW :s AS SELECT i AS id, image_vector(i, 272)::vector AS v FROM generate_series(1, 400) i;
CREATE TABLE :q AS SELECT i AS id, image_vector(21 - 24 * i, 272)::vector AS v FROM generate_series(1, 12) i;
CREATE VIEW :a AS SELECT q.id AS query, r.ids FROM :q q,
    LATERAL (SELECT array_agg(id) AS ids FROM (SELECT id FROM :t ORDER BY v <-> q.v LIMIT 8) x) r;
INSERT INTO :t SELECT * FROM :s WHERE id <= 240;
CREATE INDEX :i ON :t USING quiver_ivf (v vector_l2_ops) WITH (lists = 3);
\ir change.sql
