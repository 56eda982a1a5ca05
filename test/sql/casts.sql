-- the casts

SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS vector;
RESET client_min_messages;

-- their contexts
SELECT castsource::regtype AS source, casttarget::regtype AS target, castcontext
FROM pg_cast WHERE 'vector'::regtype IN (castsource, casttarget) OR 'halfvec'::regtype IN (castsource, casttarget)
    OR 'sparsevec'::regtype IN (castsource, casttarget)
ORDER BY castsource::regtype::text COLLATE "C", casttarget::regtype::text COLLATE "C";

-- arrays
SELECT '{1,2,3}'::int[]::vector, '{1,2,3}'::real[]::vector,
    '{1,2.5,3}'::float8[]::vector, '{1,2.5,3}'::numeric[]::vector;
SELECT '{1,2,3}'::int[]::halfvec, '{1,2,3}'::real[]::halfvec,
    '{1,2.5,3}'::float8[]::halfvec, '{1,2.5,3}'::numeric[]::halfvec;
SELECT '{0,2,0}'::int[]::sparsevec, '{0,2,0}'::real[]::sparsevec,
    '{0,2.5,0}'::float8[]::sparsevec, '{0,2.5,0}'::numeric[]::sparsevec;
SELECT '[5:7]={1,2,3}'::int[]::vector AS other_bounds, ('{1,2,NULL}'::int[])[1:2]::vector AS slice_of_nulls;
SELECT '{16777217,-16777219}'::int[]::vector, '{0.1,1e-46,-1e-46}'::float8[]::vector, '{1e-8,2049}'::float8[]::halfvec,
    '{1e-46,1}'::float8[]::sparsevec;
SELECT '[1,2,3]'::vector::real[], '[1,2,0.1]'::halfvec::real[], pg_typeof('[1]'::vector::real[]);

-- each other
SELECT '[0,1.5,0]'::vector::halfvec, '[0,1.5,0]'::vector::sparsevec,
    '[0,1.5,-0]'::halfvec::vector, '[0,1.5,-0]'::halfvec::sparsevec,
    '{2:1.5}/3'::sparsevec::vector, '{2:1.5}/3'::sparsevec::halfvec;
SELECT '[1e-8,2049]'::vector::halfvec AS rounded, '{1:1e-8}/1'::sparsevec::halfvec AS to_zero;

-- with a type modifier
SELECT '[1,2]'::vector::halfvec(2), '[1,2]'::vector::sparsevec(2),
    '[1,2]'::halfvec::vector(2), '[1,2]'::halfvec::sparsevec(2),
    '{1:1}/2'::sparsevec::vector(2), '{1:1}/2'::sparsevec::halfvec(2),
    '{1,2}'::real[]::vector(2), '{1,2}'::real[]::halfvec(2), '{1,2}'::real[]::sparsevec(2);

-- implicit ones find operators, assignment ones do not
SELECT '[1,2]'::vector <-> '[1,2]'::halfvec AS implicit;
\set VERBOSITY sqlstate
SELECT '[1,2]'::vector <-> '{1,2}'::real[];
\set VERBOSITY default
CREATE TABLE assigned (v vector(2), h halfvec(2), s sparsevec(2));
INSERT INTO assigned VALUES ('{1,2}'::int[], '{1,2}'::float8[], '{1,2}'::numeric[]),
    ('[3,4]'::halfvec, '{1:3}/2'::sparsevec, '[5,0]'::vector);
SELECT * FROM assigned ORDER BY v;
DROP TABLE assigned;

-- the largest
SELECT vector_dims(a::vector), vector_dims(a::halfvec), l2_norm(a::sparsevec)
FROM (SELECT array_fill(1, ARRAY[16000]) AS a) t;
SELECT '{16000:1}/16000'::sparsevec::vector = (array_fill(0, ARRAY[15999]) || 1)::vector AS same;
