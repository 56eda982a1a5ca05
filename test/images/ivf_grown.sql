-- Posting lists that grew from nothing, without sketches: split, moved and compacted.
CREATE TABLE :t (id int, v halfvec(24));
ALTER TABLE :t ALTER v SET STORAGE PLAIN;
CREATE VIEW :s AS SELECT i AS id, image_vector(i, 24)::halfvec AS v FROM generate_series(1, 400) i;
CREATE TABLE :q AS SELECT i AS id, image_vector(21 - 24 * i, 24)::halfvec AS v FROM generate_series(1, 12) i;
CREATE VIEW :a AS SELECT q.id AS query, r.ids FROM :q q,
    LATERAL (SELECT array_agg(id) AS ids FROM (SELECT id FROM :t ORDER BY v <=> q.v LIMIT 10) x) r;
CREATE INDEX :i ON :t USING quiver_ivf (v halfvec_cosine_ops);
INSERT INTO :t SELECT * FROM :s WHERE id <= 240;
\ir change.sql
