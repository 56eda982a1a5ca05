-- ivfflat: pgvector's options, settings, ranges and messages

SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS vector;
CREATE EXTENSION IF NOT EXISTS quiver;
RESET client_min_messages;
SET enable_seqscan = off;
SET enable_sort = off;

-- types and metrics

CREATE TABLE t (id int, v vector(3), h halfvec(3), b bit(4));
INSERT INTO t SELECT i, ARRAY[i, i % 5, 1]::vector, ARRAY[i, i % 5, 1]::halfvec, (i % 16)::bit(4)
FROM generate_series(1, 200) i;
INSERT INTO t VALUES (0, NULL, NULL, NULL);
CREATE INDEX t_l2 ON t USING ivfflat (v vector_l2_ops) WITH (lists = 10);
CREATE INDEX t_ip ON t USING ivfflat (v vector_ip_ops) WITH (lists = 10);
CREATE INDEX t_cos ON t USING ivfflat (v vector_cosine_ops) WITH (lists = 10);
CREATE INDEX t_h ON t USING ivfflat (h halfvec_l2_ops) WITH (lists = 10);
CREATE INDEX t_b ON t USING ivfflat (b bit_hamming_ops) WITH (lists = 4);
SET ivfflat.probes = 10;
SELECT id FROM t ORDER BY v <-> '[50,0,1]' LIMIT 1;
SELECT id FROM t ORDER BY v <#> '[50,0,1]' LIMIT 1;
SELECT id FROM t ORDER BY v <=> '[200,1,2]' LIMIT 1;
SELECT id FROM t ORDER BY h <-> '[77,2,1]' LIMIT 1;
SELECT b FROM t ORDER BY b <~> B'1011' LIMIT 1;
RESET ivfflat.probes;
SELECT quiver_check('t_l2'), quiver_check('t_ip'), quiver_check('t_cos'), quiver_check('t_h'), quiver_check('t_b');

-- one list by default, more by probes and by iteration

SELECT count(*) < 200 AS some FROM (SELECT id FROM t ORDER BY v <-> '[50,0,1]') x;
SET ivfflat.probes = 10;
SELECT count(*) FROM (SELECT id FROM t ORDER BY v <-> '[50,0,1]') x;
SELECT count(*) FROM (SELECT id FROM t ORDER BY v <-> (SELECT NULL::vector)) x;
SET ivfflat.probes = 1;
SET ivfflat.iterative_scan = relaxed_order;
SELECT count(*), count(DISTINCT id) FROM (SELECT id FROM t ORDER BY v <-> '[50,0,1]') x;
SET ivfflat.max_probes = 3;
SELECT count(*) BETWEEN 1 AND 199 AS some FROM (SELECT id FROM t ORDER BY v <-> '[50,0,1]') x;
SET ivfflat.max_probes = 10;
SELECT count(*) FROM (SELECT id FROM t ORDER BY v <-> '[50,0,1]') x;
RESET ivfflat.iterative_scan;
RESET ivfflat.max_probes;
DROP INDEX t_ip, t_cos, t_h, t_b;

-- little data

TRUNCATE t;
SELECT id FROM t ORDER BY v <-> '[3,3,3]';
INSERT INTO t (id, v) VALUES (1, '[1,2,3]');
SELECT id FROM t ORDER BY v <-> '[3,3,3]';

-- options and settings

CREATE INDEX ON t USING ivfflat (v vector_l2_ops) WITH (lists = 0);
CREATE INDEX ON t USING ivfflat (v vector_l2_ops) WITH (lists = 32769);
CREATE INDEX ON t USING ivfflat (v vector_l2_ops) WITH (bits = 4);
CREATE INDEX ON t USING ivfflat (v vector_l1_ops);
CREATE INDEX ON t USING ivfflat (v);
SHOW ivfflat.probes;
RESET ivfflat.probes;
SHOW ivfflat.probes;
SET ivfflat.probes = 0;
SET ivfflat.probes = 32769;
SHOW ivfflat.iterative_scan;
SET ivfflat.iterative_scan = on;
SET ivfflat.iterative_scan = strict_order;
SHOW ivfflat.max_probes;
SET ivfflat.max_probes = 0;
SET ivfflat.max_probes = 32769;
SET ivfflat.bogus = 1;

-- dimensions

CREATE TABLE wide (v vector(2000), w vector(2001), h halfvec(4000), i halfvec(4001),
    b bit(64000), c bit(64001), d varbit(3), n vector);
SET client_min_messages = warning;
CREATE INDEX ON wide USING ivfflat (v vector_l2_ops);
CREATE INDEX ON wide USING ivfflat (h halfvec_l2_ops);
CREATE INDEX ON wide USING ivfflat (b bit_hamming_ops);
CREATE INDEX ON wide USING ivfflat ((d::bit(3)) bit_hamming_ops) WITH (lists = 5);
CREATE INDEX ON wide USING ivfflat (w vector_l2_ops);
CREATE INDEX ON wide USING ivfflat (i halfvec_l2_ops);
CREATE INDEX ON wide USING ivfflat (c bit_hamming_ops);
CREATE INDEX ON wide USING ivfflat (d bit_hamming_ops);
CREATE INDEX ON wide USING ivfflat (n vector_l2_ops);
RESET client_min_messages;
DROP TABLE wide, t;
