-- Posting lists with row pages that have included columns, metapage version 4.
CREATE TABLE :t (id int, v vector(48), tenant int2, made date, mark uuid);
CREATE VIEW :s AS SELECT i AS id, image_vector(i, 48)::vector AS v, (i % 10)::int2 AS tenant,
    CASE WHEN i % 9 > 0 THEN date '2026-01-01' + i END AS made, md5(i::text)::uuid AS mark
    FROM generate_series(1, 400) i;
CREATE TABLE :q AS SELECT i AS id, image_vector(21 - 24 * i, 48)::vector AS v FROM generate_series(1, 12) i;
CREATE VIEW :a AS SELECT q.id AS query, r.ids FROM :q q,
    LATERAL (SELECT array_agg(id) AS ids FROM (SELECT id FROM :t ORDER BY v <-> q.v LIMIT 8) x) r;
INSERT INTO :t SELECT * FROM :s WHERE id <= 240;
CREATE INDEX :i ON :t USING quiver_ivf (v vector_l2_ops) INCLUDE (tenant, made, mark) WITH (lists = 3);
\ir change.sql
