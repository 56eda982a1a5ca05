-- After CREATE INDEX: rows that come one by one, equal ones (of one id, so that their
-- order does not matter), rows that VACUUM takes away, and rows deleted since.

INSERT INTO :t SELECT * FROM :s WHERE id BETWEEN 241 AND 300;
INSERT INTO :t SELECT * FROM :t WHERE id % 10 = 3;
INSERT INTO :t SELECT t.* FROM :t t, generate_series(1, 8) WHERE id = 5;
DELETE FROM :t WHERE id % 7 = 0;
VACUUM (INDEX_CLEANUP ON) :t;
DELETE FROM :t WHERE id % 11 = 0;
