-- Quiver's own objects, beside those of extension vector.

\echo Use "CREATE EXTENSION quiver" to load this file. \quit

CREATE FUNCTION quiver_version() RETURNS text
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION quiver_version() IS 'version of the Quiver library';

CREATE FUNCTION quiver_simd_level() RETURNS text
    AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION quiver_simd_level() IS 'instruction set level of the distance kernels in use';

CREATE FUNCTION quiver_simd_levels() RETURNS text[]
    AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION quiver_simd_levels() IS 'instruction set levels this CPU can run, best first';

CREATE FUNCTION quiver_index_info(index regclass,
    OUT access_method text,
    OUT row_count bigint,
    OUT dimensions int,
    OUT bytes bigint,
    OUT code_bits int,
    OUT own_code_bits int,
    -- graphs
    OUT nodes bigint,
    OUT deleted_nodes bigint,
    OUT free_slots bigint,
    OUT max_degree int,
    OUT mean_degree float8,
    OUT nodes_per_page int,
    OUT entry_points int,
    -- posting lists
    OUT lists int,
    OUT smallest_list bigint,
    OUT median_list bigint,
    OUT largest_list bigint,
    OUT balance float8,
    OUT probes int,
    OUT dead_rows bigint,
    OUT free_pages bigint,
    OUT lost_pages bigint)
    AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION quiver_index_info(regclass) IS 'facts about an index of Quiver; reads all of it';

CREATE FUNCTION quiver_check(index regclass) RETURNS bigint
    AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION quiver_check(regclass) IS 'verify an index of Quiver: raises an error that names the damaged block, or returns the number of rows in it';

-- search over shards: docs/sharding.md

CREATE FUNCTION quiver_shard_settings(server name, settings jsonb DEFAULT '{}')
RETURNS text LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    wanted jsonb := '{}';
    current jsonb;
    changes text[] := '{}';
    words text[];
    kept text[] := '{}';
    extensions text[];
    setting text;
    content text;
    i int := 1;
    r record;
BEGIN
    IF server IS NULL OR settings IS NULL OR jsonb_typeof(settings) <> 'object' THEN
        RAISE EXCEPTION 'settings of a shard must be a JSON object of names and values'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT coalesce(jsonb_object_agg(o.option_name, o.option_value)
            FILTER (WHERE o.option_name IS NOT NULL), '{}') INTO current
        FROM pg_foreign_server s LEFT JOIN LATERAL pg_options_to_table(s.srvoptions) o ON true
        WHERE s.srvname = server HAVING count(*) > 0;
    IF current IS NULL THEN
        RAISE EXCEPTION 'server "%" does not exist', server USING ERRCODE = 'undefined_object';
    END IF;

    -- A value is tried here, because a shard that loads the library later than
    -- it reads a wrong one takes the default, with no more than a warning.
    EXECUTE (SELECT format('SELECT %I.quiver_version()', n.nspname)
        FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'quiver');
    FOR r IN SELECT lower(s.key) AS key, s.value #>> '{}' AS value, jsonb_typeof(s.value) AS kind
        FROM jsonb_each(settings) s ORDER BY 1
    LOOP
        IF r.key !~ '^[a-z_][a-z0-9_$]*(\.[a-z_][a-z0-9_$]*)*$' OR r.kind IN ('object', 'array') THEN
            RAISE EXCEPTION 'invalid setting of a shard: "%"', r.key
                USING ERRCODE = 'invalid_parameter_value';
        END IF;
        IF r.value IS NOT NULL THEN
            BEGIN
                PERFORM set_config(r.key, r.value, true);
                RAISE EXCEPTION USING ERRCODE = 'QV000';
            EXCEPTION WHEN SQLSTATE 'QV000' THEN
                NULL;               -- and the old value is back
            END;
        END IF;
        wanted := wanted || jsonb_build_object(r.key, r.value);
    END LOOP;

    -- The server's words are those that pg_split_opts() in the backend finds.
    words := ARRAY(SELECT m[1] FROM regexp_matches(current ->> 'options', '((?:\\.|[^\s\\])+)', 'g') m);
    WHILE i <= cardinality(words) LOOP
        content := words[i];
        IF content = '-c' AND i < cardinality(words) THEN
            i := i + 1;
            content := '-c ' || words[i];
        END IF;
        setting := lower(replace((regexp_match(content, '^(?:-c ?|--)([^=]+)='))[1], '-', '_'));
        IF setting IS NULL OR NOT wanted ? setting THEN
            kept := kept || content;
            -- off would let a search end after ef_search rows
            IF setting IN ('hnsw.iterative_scan', 'ivfflat.iterative_scan') THEN
                wanted := wanted || jsonb_build_object(setting, NULL);
            END IF;
        END IF;
        i := i + 1;
    END LOOP;
    wanted := '{"hnsw.iterative_scan": "strict_order", "ivfflat.iterative_scan": "relaxed_order"}' || wanted;
    FOR r IN SELECT s.key, s.value #>> '{}' AS value FROM jsonb_each(wanted) s ORDER BY 1 LOOP
        IF r.value IS NOT NULL THEN
            kept := kept || format('-c %s=%s', r.key, regexp_replace(r.value, '([\s\\])', '\\\1', 'g'));
        END IF;
    END LOOP;
    content := array_to_string(kept, ' ');

    -- without vector among the extensions no search is sent to the shard
    extensions := ARRAY(SELECT btrim(e) FROM regexp_split_to_table(current ->> 'extensions', ',') e
        WHERE btrim(e) <> '');
    IF NOT 'vector' = ANY (extensions) THEN
        extensions := extensions || 'vector'::text;
    END IF;
    FOR r IN SELECT * FROM (VALUES
            ('options', content),
            ('extensions', array_to_string(extensions, ', ')),
            ('async_capable', coalesce(current ->> 'async_capable', 'true'))) o (name, value)
        WHERE current ->> o.name IS DISTINCT FROM o.value
    LOOP
        changes := changes || format('%s %I %L',
            CASE WHEN current ? r.name THEN 'SET' ELSE 'ADD' END, r.name, r.value);
    END LOOP;
    IF cardinality(changes) > 0 THEN
        EXECUTE format('ALTER SERVER %I OPTIONS (%s)', server, array_to_string(changes, ', '));
    END IF;
    RETURN content;
END $$;
COMMENT ON FUNCTION quiver_shard_settings(name, jsonb) IS 'prepare a postgres_fdw server for searches: settings of its sessions, iterative scans, and what it may be sent';

CREATE FUNCTION quiver_sharded_search(relation regclass, embedding name, query anycompatible, k int,
    columns name[], op text DEFAULT '<->', filter text DEFAULT NULL, settings jsonb DEFAULT '{}')
RETURNS SETOF record LANGUAGE plpgsql ROWS 10 SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    alias text;
    kind "char";
    type text;              -- of the vectors
    operator text;
    literal text;
    targets text;           -- what is returned, for a select list
    result text;            -- and for a column definition list
    condition text;
    leaves oid[];
    dblink text;            -- its schema
    prelude text;           -- sets what a search needs, on a shard
    shards jsonb := '[]';   -- one a server: its name, connection and statement
    sources text[] := '{}';
    saved jsonb := '{}';
    plan json;
    -- until 17 the wait for a result cannot be canceled
    polls constant boolean := current_setting('server_version_num')::int < 170000;
    reused boolean;
    content text;
    shard jsonb;
    r record;
BEGIN
    IF query IS NULL THEN
        RETURN;
    END IF;
    IF k IS NULL OR k < 0 THEN
        RAISE EXCEPTION 'k must not be negative or null' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF columns IS NULL OR cardinality(columns) = 0 THEN
        RAISE EXCEPTION 'no columns to return' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF settings IS NULL OR jsonb_typeof(settings) <> 'object' THEN
        RAISE EXCEPTION 'settings of a search must be a JSON object of names and values'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT c.relname, c.relkind INTO alias, kind FROM pg_class c WHERE c.oid = relation;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'table with OID % does not exist', relation::oid USING ERRCODE = 'undefined_table';
    END IF;
    -- The shards see the user of the mapping, so that these two are ours to keep.
    IF NOT has_table_privilege(relation, 'SELECT') THEN
        RAISE EXCEPTION 'permission denied for table %', alias USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF row_security_active(relation) THEN
        RAISE EXCEPTION 'cannot search the shards of "%", which has row-level security', alias
            USING ERRCODE = 'feature_not_supported';
    END IF;

    -- Names.
    SELECT format_type(t.base, -1), 'OPERATOR(' || quote_ident(n.nspname) || '.' || o.oprname || ')' INTO type, operator
        FROM pg_attribute a
        JOIN LATERAL (SELECT CASE ty.typtype WHEN 'd' THEN ty.typbasetype ELSE ty.oid END AS base
            FROM pg_type ty WHERE ty.oid = a.atttypid) t ON true
        LEFT JOIN (pg_operator o
            JOIN pg_namespace n ON n.oid = o.oprnamespace
            JOIN pg_depend d ON d.classid = 'pg_operator'::regclass AND d.objid = o.oid AND d.deptype = 'e'
            JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
                AND e.extname = 'vector')
            ON o.oprleft = t.base AND o.oprright = t.base AND o.oprname = op
                AND o.oprresult = 'float8'::regtype
        WHERE a.attrelid = relation AND a.attname = embedding AND a.attnum > 0 AND NOT a.attisdropped;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'column "%" of relation "%" does not exist', embedding, alias
            USING ERRCODE = 'undefined_column';
    END IF;
    IF operator IS NULL THEN
        RAISE EXCEPTION 'type % has no distance operator "%"', type, op USING ERRCODE = 'undefined_function';
    END IF;
    FOR r IN SELECT c.name, a.attname, format_type(a.atttypid, a.atttypmod) AS type, c.i
        FROM unnest(columns) WITH ORDINALITY c (name, i)
        LEFT JOIN pg_attribute a ON a.attrelid = relation AND a.attname = c.name AND NOT a.attisdropped
            AND a.attnum > 0
        ORDER BY c.i
    LOOP
        IF r.attname IS NULL THEN
            RAISE EXCEPTION 'column "%" of relation "%" does not exist', r.name, alias
                USING ERRCODE = 'undefined_column';
        END IF;
        targets := concat_ws(', ', targets, format('%I.%I AS c%s', alias, r.name, r.i));
        result := concat_ws(', ', result, format('c%s %s', r.i, r.type));
    END LOOP;
    literal := format('%L::%s', query::text, type);
    condition := format('%I.%I IS NOT NULL', alias, embedding);
    IF filter IS NOT NULL THEN
        condition := condition || format(E' AND (\n%s\n)', filter);
    END IF;

    -- A bad query fails here; a good one loads the library, whose settings follow.
    EXECUTE format('SELECT %s %s %1$s', literal, operator);

    -- The partitions that the filter leaves.
    IF kind = 'p' THEN
        leaves := ARRAY(SELECT t.relid FROM pg_partition_tree(relation) t WHERE t.isleaf AND t.relid <> relation);
        IF filter IS NOT NULL THEN
            EXECUTE format('EXPLAIN (VERBOSE, COSTS OFF, FORMAT JSON) SELECT FROM %s AS %I WHERE %s',
                relation, alias, condition) INTO plan;
            leaves := ARRAY(SELECT c.oid FROM unnest(leaves) l
                JOIN pg_class c ON c.oid = l
                JOIN pg_namespace n ON n.oid = c.relnamespace
                WHERE EXISTS (SELECT FROM jsonb_path_query(plan::jsonb, 'strict $.** ? (exists (@."Relation Name"))') p
                    WHERE p ->> 'Relation Name' = c.relname AND p ->> 'Schema' = n.nspname));
        END IF;
    ELSE
        leaves := ARRAY[relation::oid];
    END IF;
    IF cardinality(leaves) = 0 OR k = 0 THEN
        RETURN;
    END IF;

    -- What each of them is asked. The second half is for a scan of an index that
    -- gave up before k rows: those in that shard are then found without it.
    FOR r IN SELECT l.relation, s.srvname, s.oid AS server, f.remote_columns,
            coalesce(f.remote_table, format('%I.%I', n.nspname, c.relname)) AS source,
            'quiver_' || concat_ws('_', s.oid, u.umuser, current_user::regrole::oid,
                left(md5(concat(s.srvoptions::text, u.umoptions::text)), 12), s.srvname) AS connection
        FROM unnest(leaves) WITH ORDINALITY l (relation, i)
        JOIN pg_class c ON c.oid = l.relation
        JOIN pg_namespace n ON n.oid = c.relnamespace
        LEFT JOIN (pg_foreign_table ft
            JOIN pg_foreign_server s ON s.oid = ft.ftserver
            JOIN pg_foreign_data_wrapper w ON w.oid = s.srvfdw AND w.fdwname = 'postgres_fdw')
            ON ft.ftrelid = l.relation
        LEFT JOIN LATERAL (SELECT um.umuser, um.umoptions FROM pg_user_mappings um
            WHERE um.srvid = s.oid AND um.umuser IN (0, current_user::regrole)
            ORDER BY um.umuser DESC LIMIT 1) u ON true
        LEFT JOIN LATERAL (SELECT
            format('%I.%I',
                coalesce((SELECT option_value FROM pg_options_to_table(ft.ftoptions)
                    WHERE option_name = 'schema_name'), n.nspname),
                coalesce((SELECT option_value FROM pg_options_to_table(ft.ftoptions)
                    WHERE option_name = 'table_name'), c.relname)) AS remote_table,
            (SELECT string_agg(format('%I AS %I',
                coalesce((SELECT option_value FROM pg_options_to_table(a.attfdwoptions)
                    WHERE option_name = 'column_name'), a.attname), a.attname), ', ' ORDER BY a.attnum)
                FROM pg_attribute a
                WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) AS remote_columns
            ) f ON s.oid IS NOT NULL
        ORDER BY l.i
    LOOP
        content := format('(WITH quiver_hit AS MATERIALIZED (SELECT %1$s, %2$s AS d FROM %3$s AS %4$I WHERE %5$s ORDER BY %2$s LIMIT %6$s)'
            ' SELECT * FROM quiver_hit WHERE (SELECT count(*) FROM quiver_hit) >= %6$s'
            ' UNION ALL SELECT * FROM (SELECT %1$s, %2$s AS d FROM %3$s AS %4$I WHERE %5$s ORDER BY (%2$s) + 0 LIMIT %6$s) quiver_exact'
            ' WHERE (SELECT count(*) FROM quiver_hit) < %6$s)',
            targets, format('%I.%I %s %s', alias, embedding, operator, literal),
            CASE WHEN r.server IS NULL THEN r.source ELSE format('(SELECT %s FROM %s)', r.remote_columns, r.source) END,
            alias, condition, k);
        IF r.server IS NULL THEN
            sources := sources || content;
        ELSIF shards @> jsonb_build_array(jsonb_build_object('server', r.server)) THEN
            shards := (SELECT jsonb_agg(CASE WHEN s.value -> 'server' = to_jsonb(r.server)
                THEN jsonb_set(s.value, '{statement}', to_jsonb(s.value ->> 'statement' || ' UNION ALL ' || content))
                ELSE s.value END) FROM jsonb_array_elements(shards) s);
        ELSE
            shards := shards || jsonb_build_object('server', r.server, 'name', r.srvname,
                'connection', r.connection::name, 'statement', content);
        END IF;
    END LOOP;

    -- Settings: those of the search; and enough candidates for k rows, and scans
    -- that go on until there are k rows, where the shard has it otherwise.
    prelude := format('%1$s %2$s %1$s, pg_catalog.set_config(''search_path'', ''pg_catalog, pg_temp'', true),'
        ' pg_catalog.set_config(''statement_timeout'', %3$L, true)',
        literal, operator, current_setting('statement_timeout'));
    FOR r IN SELECT s.key, s.value, NULL AS unless FROM jsonb_each_text(settings) s
        UNION ALL
        SELECT d.key, d.value, d.unless FROM (VALUES
            ('hnsw.ef_search', least(k, 1000)::text, '::int4 OPERATOR(pg_catalog.>=) ' || k),
            ('quiver.ef_search', least(k, 65535)::text, '::int4 OPERATOR(pg_catalog.>=) ' || k),
            ('hnsw.iterative_scan', 'strict_order', ' OPERATOR(pg_catalog.<>) ''off'''),
            ('quiver.iterative_scan', 'strict_order', ' OPERATOR(pg_catalog.<>) ''off'''),
            ('ivfflat.iterative_scan', 'relaxed_order', ' OPERATOR(pg_catalog.<>) ''off''')) d (key, value, unless)
            WHERE NOT settings ? d.key
    LOOP
        content := format('pg_catalog.set_config(%L, %L, true)', r.key, r.value);
        IF r.unless IS NOT NULL THEN        -- nor where there is no such setting
            content := format('CASE WHEN NOT pg_catalog.current_setting(%L, true)%s THEN %s END',
                r.key, r.unless, content);
        END IF;
        prelude := concat_ws(', ', prelude, content);
        IF cardinality(sources) > 0 THEN
            saved := saved || jsonb_build_object(r.key, current_setting(r.key, true));
            EXECUTE 'SELECT ' || content;
        END IF;
    END LOOP;
    prelude := format('SELECT pg_catalog.concat(%s); ', prelude);

    IF shards <> '[]' THEN
        SELECT quote_ident(n.nspname) INTO dblink
            FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'dblink';
        IF NOT FOUND THEN
            RAISE EXCEPTION 'extension "dblink" is not there, which asks the shards'
                USING ERRCODE = 'undefined_object', HINT = 'Run CREATE EXTENSION dblink.';
        END IF;
    END IF;
    FOR shard IN SELECT s.value FROM jsonb_array_elements(shards) s LOOP
        sources := sources || format('SELECT * FROM %s.dblink_get_result(%L) AS shard (%s, d float8)',
            dblink, shard ->> 'connection', result);
    END LOOP;
    SELECT format('SELECT %s, d FROM (%s) found ORDER BY d LIMIT %s',
        string_agg(format('c%s', i), ', '), array_to_string(sources, ' UNION ALL '), k) INTO content
        FROM generate_series(1, cardinality(columns)) i;

    -- Ask all, then gather. A connection that was kept from an earlier search may
    -- have ended since: then once more with new ones.
    LOOP
        reused := false;
        BEGIN
            FOR shard IN SELECT s.value FROM jsonb_array_elements(shards) s LOOP
                EXECUTE format('SELECT %L = ANY (%s.dblink_get_connections()) AS kept', shard ->> 'connection', dblink)
                    INTO r;
                IF r.kept THEN
                    reused := true;
                ELSE
                    EXECUTE format('SELECT %s.dblink_disconnect(c) FROM unnest(%1$s.dblink_get_connections()) c'
                        ' WHERE starts_with(c, %L)', dblink, format('quiver_%s_', shard ->> 'server'));
                    EXECUTE format('SELECT %s.dblink_connect(%L, %L)', dblink, shard ->> 'connection', shard ->> 'name');
                END IF;
                EXECUTE format('SELECT %s.dblink_send_query(%L, %L) AS sent', dblink, shard ->> 'connection',
                    prelude || format('SELECT * FROM (%s) found ORDER BY d LIMIT %s', shard ->> 'statement', k)) INTO r;
                IF r.sent <> 1 THEN
                    RAISE EXCEPTION 'could not send the search to server "%"', shard ->> 'name'
                        USING ERRCODE = 'connection_failure';
                END IF;
            END LOOP;
            -- first the answers to the prelude, then until all have those that count
            FOR step IN 1 .. 2 LOOP
                FOR shard IN SELECT s.value FROM jsonb_array_elements(shards) s LOOP
                    WHILE polls LOOP
                        EXECUTE format('SELECT %s.dblink_is_busy(%L) AS busy', dblink, shard ->> 'connection')
                            INTO r;
                        EXIT WHEN r.busy = 0;
                        PERFORM pg_sleep(0.001);
                    END LOOP;
                    IF step = 1 THEN
                        EXECUTE format('SELECT FROM %s.dblink_get_result(%L) AS shard (prelude text)',
                            dblink, shard ->> 'connection');
                    END IF;
                END LOOP;
            END LOOP;
            RETURN QUERY EXECUTE content;
            FOR shard IN SELECT s.value FROM jsonb_array_elements(shards) s LOOP
                EXECUTE format('SELECT FROM %s.dblink_get_result(%L) AS shard (nothing text)',
                    dblink, shard ->> 'connection');
            END LOOP;
            EXIT;
        EXCEPTION WHEN query_canceled OR OTHERS THEN
            -- no answer may wait in a connection for the next search
            IF dblink IS NOT NULL THEN
                EXECUTE format('SELECT %s.dblink_disconnect(c) FROM unnest(%1$s.dblink_get_connections()) c'
                    ' WHERE c IN (SELECT s.value ->> ''connection'' FROM jsonb_array_elements($1) s)', dblink)
                    USING shards;
            END IF;
            IF NOT reused OR SQLSTATE !~ '^(08|57P)' THEN
                RAISE;
            END IF;
        END;
    END LOOP;

    FOR r IN SELECT s.key, s.value FROM jsonb_each_text(saved) s LOOP
        PERFORM set_config(r.key, r.value, true);
    END LOOP;
END $$;
COMMENT ON FUNCTION quiver_sharded_search(regclass, name, anycompatible, int, name[], text, text, jsonb) IS 'the k nearest rows of a table whose partitions are on postgres_fdw servers: the columns, and the distance';

-- access method: quiver_graph

CREATE FUNCTION quivergraphhandler(internal) RETURNS index_am_handler
    AS 'MODULE_PATHNAME' LANGUAGE C;

CREATE ACCESS METHOD quiver_graph TYPE INDEX HANDLER quivergraphhandler;
COMMENT ON ACCESS METHOD quiver_graph IS 'quantised graph for nearest-neighbor search';

CREATE OPERATOR CLASS vector_l2_ops
    DEFAULT FOR TYPE vector USING quiver_graph AS
    OPERATOR 1 <-> (vector, vector) FOR ORDER BY float_ops,
    FUNCTION 1 vector_l2_squared_distance(vector, vector);

CREATE OPERATOR CLASS vector_ip_ops
    FOR TYPE vector USING quiver_graph AS
    OPERATOR 1 <#> (vector, vector) FOR ORDER BY float_ops,
    FUNCTION 1 vector_negative_inner_product(vector, vector);

CREATE OPERATOR CLASS vector_cosine_ops
    FOR TYPE vector USING quiver_graph AS
    OPERATOR 1 <=> (vector, vector) FOR ORDER BY float_ops,
    FUNCTION 1 vector_negative_inner_product(vector, vector),
    FUNCTION 2 vector_norm(vector);

CREATE OPERATOR CLASS vector_l1_ops
    FOR TYPE vector USING quiver_graph AS
    OPERATOR 1 <+> (vector, vector) FOR ORDER BY float_ops,
    FUNCTION 1 l1_distance(vector, vector);

CREATE OPERATOR CLASS halfvec_l2_ops
    FOR TYPE halfvec USING quiver_graph AS
    OPERATOR 1 <-> (halfvec, halfvec) FOR ORDER BY float_ops,
    FUNCTION 1 halfvec_l2_squared_distance(halfvec, halfvec);

CREATE OPERATOR CLASS halfvec_ip_ops
    FOR TYPE halfvec USING quiver_graph AS
    OPERATOR 1 <#> (halfvec, halfvec) FOR ORDER BY float_ops,
    FUNCTION 1 halfvec_negative_inner_product(halfvec, halfvec);

CREATE OPERATOR CLASS halfvec_cosine_ops
    FOR TYPE halfvec USING quiver_graph AS
    OPERATOR 1 <=> (halfvec, halfvec) FOR ORDER BY float_ops,
    FUNCTION 1 halfvec_negative_inner_product(halfvec, halfvec),
    FUNCTION 2 l2_norm(halfvec);

CREATE OPERATOR CLASS halfvec_l1_ops
    FOR TYPE halfvec USING quiver_graph AS
    OPERATOR 1 <+> (halfvec, halfvec) FOR ORDER BY float_ops,
    FUNCTION 1 l1_distance(halfvec, halfvec);

CREATE OPERATOR CLASS sparsevec_l2_ops
    FOR TYPE sparsevec USING quiver_graph AS
    OPERATOR 1 <-> (sparsevec, sparsevec) FOR ORDER BY float_ops,
    FUNCTION 1 sparsevec_l2_squared_distance(sparsevec, sparsevec);

CREATE OPERATOR CLASS sparsevec_ip_ops
    FOR TYPE sparsevec USING quiver_graph AS
    OPERATOR 1 <#> (sparsevec, sparsevec) FOR ORDER BY float_ops,
    FUNCTION 1 sparsevec_negative_inner_product(sparsevec, sparsevec);

CREATE OPERATOR CLASS sparsevec_cosine_ops
    FOR TYPE sparsevec USING quiver_graph AS
    OPERATOR 1 <=> (sparsevec, sparsevec) FOR ORDER BY float_ops,
    FUNCTION 1 sparsevec_negative_inner_product(sparsevec, sparsevec),
    FUNCTION 2 l2_norm(sparsevec);

CREATE OPERATOR CLASS sparsevec_l1_ops
    FOR TYPE sparsevec USING quiver_graph AS
    OPERATOR 1 <+> (sparsevec, sparsevec) FOR ORDER BY float_ops,
    FUNCTION 1 l1_distance(sparsevec, sparsevec);

CREATE OPERATOR CLASS bit_hamming_ops
    FOR TYPE bit USING quiver_graph AS
    OPERATOR 1 <~> (bit, bit) FOR ORDER BY float_ops,
    FUNCTION 1 hamming_distance(bit, bit);

CREATE OPERATOR CLASS bit_jaccard_ops
    FOR TYPE bit USING quiver_graph AS
    OPERATOR 1 <%> (bit, bit) FOR ORDER BY float_ops,
    FUNCTION 1 jaccard_distance(bit, bit);

-- access method: quiver_ivf

CREATE FUNCTION quiverivfhandler(internal) RETURNS index_am_handler
    AS 'MODULE_PATHNAME' LANGUAGE C;

CREATE ACCESS METHOD quiver_ivf TYPE INDEX HANDLER quiverivfhandler;
COMMENT ON ACCESS METHOD quiver_ivf IS 'posting lists of codes for nearest-neighbor search';

CREATE OPERATOR CLASS vector_l2_ops
    DEFAULT FOR TYPE vector USING quiver_ivf AS
    OPERATOR 1 <-> (vector, vector) FOR ORDER BY float_ops,
    FUNCTION 1 vector_l2_squared_distance(vector, vector);

CREATE OPERATOR CLASS vector_ip_ops
    FOR TYPE vector USING quiver_ivf AS
    OPERATOR 1 <#> (vector, vector) FOR ORDER BY float_ops,
    FUNCTION 1 vector_negative_inner_product(vector, vector);

CREATE OPERATOR CLASS vector_cosine_ops
    FOR TYPE vector USING quiver_ivf AS
    OPERATOR 1 <=> (vector, vector) FOR ORDER BY float_ops,
    FUNCTION 1 vector_negative_inner_product(vector, vector),
    FUNCTION 2 vector_norm(vector);

CREATE OPERATOR CLASS halfvec_l2_ops
    FOR TYPE halfvec USING quiver_ivf AS
    OPERATOR 1 <-> (halfvec, halfvec) FOR ORDER BY float_ops,
    FUNCTION 1 halfvec_l2_squared_distance(halfvec, halfvec);

CREATE OPERATOR CLASS halfvec_ip_ops
    FOR TYPE halfvec USING quiver_ivf AS
    OPERATOR 1 <#> (halfvec, halfvec) FOR ORDER BY float_ops,
    FUNCTION 1 halfvec_negative_inner_product(halfvec, halfvec);

CREATE OPERATOR CLASS halfvec_cosine_ops
    FOR TYPE halfvec USING quiver_ivf AS
    OPERATOR 1 <=> (halfvec, halfvec) FOR ORDER BY float_ops,
    FUNCTION 1 halfvec_negative_inner_product(halfvec, halfvec),
    FUNCTION 2 l2_norm(halfvec);

CREATE OPERATOR CLASS bit_hamming_ops
    FOR TYPE bit USING quiver_ivf AS
    OPERATOR 1 <~> (bit, bit) FOR ORDER BY float_ops,
    FUNCTION 1 hamming_distance(bit, bit);
