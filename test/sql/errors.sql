-- every error a user can cause, with its SQLSTATE: clients match on both

SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS vector;
RESET client_min_messages;

CREATE FUNCTION attempt(expression text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    result text;
    state text;
    message text;
    detail text;
BEGIN
    EXECUTE 'SELECT (' || expression || ')::text' INTO result;
    RETURN 'no error: ' || left(result, 60);
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL;
    RETURN state || ' ' || message || CASE WHEN detail <> '' THEN ' / ' || detail ELSE '' END;
END
$$;

\pset format unaligned
\pset tuples_only on
\pset fieldsep '  ->  '

-- text of vector and halfvec
SELECT quote_literal(input) || '::' || type, attempt(quote_literal(input) || '::' || type)
FROM (VALUES ('vector'), ('halfvec')) t(type), (VALUES
    (''), (' '), ('['), ('[ '), ('[,'), ('[]'), ('[ ]'), ('[,]'), ('[1'), ('[1,'), ('[1,2,3'), ('[1,]'), ('[1,,3]'),
    ('[1, ,3]'), ('[1 2]'), ('1,2,3'), ('{1,2}'), ('[1,2,3]9'), ('[1]]'), ('[[1]]'), ('[hello,1]'), ('[1a]'), ('[1e]'),
    ('[1e+,2]'),
    ('[.]'), ('[-]'), ('[+-1]'), ('[1.2.3]'), ('[1_0]'), ('[NaN,1]'), ('[nan]'), ('[Infinity,1]'), ('[-inf]'),
    ('[4e38,1]'), ('[-4e38,1]'), ('[1e400]'), ('[65520]'), ('[-65520,1]'), ('[65519.996,1]')) i(input);
SELECT type, attempt(format('(''['' || repeat(''1,'', 15999) || ''1]'')::%s IS NOT NULL', type)),
    attempt(format('(''['' || repeat(''1,'', 16000) || ''1]'')::%s IS NOT NULL', type)),
    attempt(format('(''['' || repeat(''1,'', 16000) || '']'')::%s IS NOT NULL', type))
FROM (VALUES ('vector'), ('halfvec')) t(type);

-- text of sparsevec
SELECT quote_literal(input), attempt(quote_literal(input) || '::sparsevec')
FROM (VALUES
    (''), ('{'), ('{ '), ('{:'), ('{,'), ('{}'), ('{}/'), ('{}1'), ('{}/1a'), ('{}/1 1'), ('{:}/1'), ('{,}/1'),
    ('{1,}/1'), ('{:1}/1'), ('{1:}/1'), ('{1:,2:1}/2'), ('{1a:1}/1'), ('{1:1a}/1'), ('{1:1,}/1'), ('{1:1,,2:1}/2'),
    ('{1:1 2:1}/2'), ('{1:1'), ('{1:1,'),
    ('[1]/1'), ('{a:1}/1'), ('{1.5:1}/3'),
    ('{1:1,1:1}/2'), ('{1:1,2:1,1:1}/2'), ('{0:1}/1'), ('{-1:1}/1'), ('{2:1}/1'), ('{2147483647:1}/1'),
    ('{2147483648:1}/1'),
    ('{-2147483648:1}/1'), ('{-2147483649:1}/1'), ('{99999999999999999999:1}/1'),
    ('{}/0'), ('{}/-1'), ('{}/1000000001'), ('{}/2147483648'), ('{}/-2147483649'), ('{}/9223372036854775808'),
    ('{1:NaN}/1'), ('{1:inf}/1'), ('{1:-Infinity}/1'), ('{1:4e38}/1'), ('{1:1e-46}/1'), ('{1:hello}/1')) i(input);
SELECT attempt('(''{'' || (SELECT string_agg(i || '':1'', '','') FROM generate_series(1, 16000) i)
        || ''}/16001'')::sparsevec IS NOT NULL'),
    attempt('(''{'' || (SELECT string_agg(i || '':1'', '','') FROM generate_series(1, 16001) i)
        || ''}/16001'')::sparsevec IS NOT NULL');

-- type modifiers
SELECT type || modifier, attempt(format('NULL::%s%s', type, modifier))
FROM (VALUES ('vector'), ('halfvec'), ('sparsevec')) t(type),
    (VALUES ('(0)'), ('(-1)'), ('(1)'), ('(16000)'), ('(16001)'), ('(1000000000)'), ('(1000000001)'), ('(3,2)'),
        ('(''a'')')) m(modifier);
SELECT e, attempt(e) FROM (VALUES
    ('''[1,2,3]''::vector(2)'), ('''[1,2,3]''::halfvec(2)'), ('''{}/3''::sparsevec(2)'),
    ('''{"[1,2,3]"}''::vector(2)[]'),
    ('''[1,2,3]''::vector::vector(2)'), ('''[1,2,3]''::halfvec::halfvec(2)'), ('''{}/3''::sparsevec::sparsevec(2)'),
    ('''[1,2,3]''::vector::halfvec(2)'), ('''[1,2,3]''::vector::sparsevec(2)'), ('''[1,2,3]''::halfvec::vector(2)'),
    ('''[1,2,3]''::halfvec::sparsevec(2)'), ('''{}/3''::sparsevec::vector(2)'), ('''{}/3''::sparsevec::halfvec(2)'),
    ('''{1,2,3}''::real[]::vector(2)'), ('''{1,2,3}''::real[]::halfvec(2)'),
    ('''{1,2,3}''::real[]::sparsevec(2)')) i(e);

-- casts
SELECT a || '::' || type, attempt(format('%s::%s', a, type))
FROM (VALUES ('vector'), ('halfvec'), ('sparsevec')) t(type), (VALUES
    ('''{}''::real[]'), ('''{NULL}''::real[]'), ('''{1,NULL}''::int[]'), ('''{{1}}''::real[]'),
    ('''{{1,2},{3,4}}''::numeric[]'),
    ('''{NaN}''::real[]'), ('''{Infinity}''::float8[]'), ('''{-Infinity}''::real[]'), ('''{NaN}''::numeric[]'),
    ('''{4e38}''::float8[]'), ('''{65520}''::float8[]'), ('''{-65520}''::int[]'),
    ('array_fill(1, ARRAY[16001])'), ('array_fill(0, ARRAY[16001])')) i(a);
SELECT e, attempt(e) FROM (VALUES
    ('''[65520]''::vector::halfvec'), ('''[-1e38]''::vector::halfvec'), ('''{1:65520}/1''::sparsevec::halfvec'),
    ('''{}/16001''::sparsevec::vector'), ('''{}/16001''::sparsevec::halfvec')) i(e);

-- different dimensions
SELECT e, attempt(e) FROM (
    SELECT format(f, a, b) AS e
    FROM (VALUES ('''[1,2]''::vector', '''[3]''::vector'), ('''[1,2]''::halfvec', '''[3]''::halfvec'),
            ('''{1:1}/2''::sparsevec', '''{1:1}/1''::sparsevec')) v(a, b),
        (VALUES ('%s <-> %s'), ('%s <#> %s'), ('%s <=> %s'), ('%s <+> %s'), ('inner_product(%s, %s)')) o(f)
    UNION ALL
    SELECT format(f, a, b)
    FROM (VALUES ('''[1,2]''::vector', '''[3]''::vector'), ('''[1,2]''::halfvec', '''[3]''::halfvec')) v(a, b),
        (VALUES ('%s + %s'), ('%s - %s'), ('%s * %s')) o(f)
) x;
SELECT e, attempt(e) FROM (VALUES
    ('vector_l2_squared_distance(''[1]'', ''[1,2]'')'), ('vector_spherical_distance(''[1]'', ''[1,2]'')'),
    ('halfvec_l2_squared_distance(''[1]'', ''[1,2]'')'), ('halfvec_spherical_distance(''[1]'', ''[1,2]'')'),
    ('sparsevec_l2_squared_distance(''{}/1'', ''{}/2'')'), ('B''1'' <~> B''11'''), ('B''1'' <%> B''11''')) i(e);

-- arithmetic
SELECT e, attempt(e) FROM (VALUES
    ('''[3e38]''::vector + ''[3e38]'''), ('''[-3e38]''::vector - ''[3e38]'''), ('''[1e37]''::vector * ''[1e37]'''),
    ('''[1e-37]''::vector * ''[1e-37]'''), ('''[1e-37,1e37]''::vector * ''[1e-37,1e37]'''),
    ('''[65504]''::halfvec + ''[65504]'''), ('''[65504]''::halfvec + ''[15]'''), ('''[65504]''::halfvec + ''[16]'''),
    ('''[-65504]''::halfvec - ''[65504]'''), ('''[65504]''::halfvec * ''[2]'''), ('''[6e-8]''::halfvec * ''[0.5]'''),
    ('''[6e-8]''::halfvec * ''[0.51]'''), ('''[1e-4]''::halfvec * ''[1e-4]'''),
    ('array_fill(0, ARRAY[16000])::vector || ''[1]'''), ('array_fill(0, ARRAY[16000])::halfvec || ''[1]''')) i(e);
SELECT e, attempt(e) FROM (
    SELECT format('subvector(''[1,2,3]''::%s, %s, %s)', type, s, n) AS e
    FROM (VALUES ('vector'), ('halfvec')) t(type),
        (VALUES (1, 0), (2, -1), (1, -2147483648), (4, 1), (2147483647, 10), (-1, 2), (-2147483648, 2147483647)) i(s, n)
) x;

-- aggregates' functions
SELECT e, attempt(e) FROM (
    SELECT format('%s_avg(%L)', type, a) AS e FROM (VALUES ('vector'), ('halfvec')) t(type),
        (VALUES ('{}'), ('{1}'), ('{NULL,1}'), ('{{1,2}}'), ('{1,NaN}'), ('{1,1e300}'), ('{1,65520}')) i(a)
    UNION ALL
    SELECT format('%s_accum(%L, ''[1,2]'')', type, a) FROM (VALUES ('vector'), ('halfvec')) t(type),
        (VALUES ('{}'), ('{0,0}'), ('{NULL}'), ('{{0}}')) i(a)
    UNION ALL
    SELECT format('%s_combine(%L, %L)', type, a, b) FROM (VALUES ('vector'), ('halfvec')) t(type),
        (VALUES ('{}', '{0}'), ('{0}', '{}'), ('{NULL}', '{0}'), ('{0}', '{{0}}'), ('{1,2}', '{1,2,3}'),
            ('{1,1e308}', '{1,1e308}')) i(a, b)
    UNION ALL
    SELECT 'vector_accum(''{1,1.7976931348623157e308}'', ''[3.4e38]'')'
    UNION ALL
    SELECT 'vector_avg(array_fill(1::float8, ARRAY[16002]))'
    UNION ALL
    SELECT 'vector_combine(''{0}'', array_fill(1::float8, ARRAY[16002]))'
) x;

DROP FUNCTION attempt;
