-- The searches of public clients, as they send them: each by the index, with the rows of the table
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS vector;
CREATE EXTENSION IF NOT EXISTS quiver;
CREATE TABLE items (id serial PRIMARY KEY, name text, content text, metadata jsonb, collection int NOT NULL,
	embedding vector(3));
INSERT INTO items (name, content, metadata, collection, embedding)
	SELECT 'name ' || i, 'content ' || i, jsonb_build_object('topic', i % 7, 'lang', 'en'), 1 + i % 2,
		ARRAY[cos(i * 0.01), sin(i * 0.01), 0.1 * (i % 5)]::vector
	FROM generate_series(1, 2000) i;
CREATE TABLE collections (uuid int PRIMARY KEY, name text);
INSERT INTO collections VALUES (1, 'one'), (2, 'two');
CREATE INDEX items_embedding ON items USING hnsw (embedding vector_cosine_ops);
VACUUM ANALYZE items, collections;
SET hnsw.ef_search = 400;
-- the table is small
SET enable_seqscan = off;

-- By the index or not, with a plan for these parameters and with one for any; and the same rows or not.
CREATE FUNCTION client(query text, types text, arguments text, OUT custom text, OUT generic text)
LANGUAGE plpgsql AS $$
DECLARE
	mode text;
	line text;
	plan text;
	found text;
	exact text;
BEGIN
	EXECUTE format('PREPARE client%s AS %s', types, query);
	FOREACH mode IN ARRAY ARRAY['force_custom_plan', 'force_generic_plan'] LOOP
		PERFORM set_config('plan_cache_mode', mode, true);
		plan := 'table';
		FOR line IN EXECUTE format('EXPLAIN EXECUTE client%s', arguments) LOOP
			plan := CASE WHEN line ~ 'Quiver Top-K' THEN 'index' ELSE plan END;
		END LOOP;
		found := rows_of(format('EXECUTE client%s', arguments));
		PERFORM set_config('enable_indexscan', 'off', true), set_config('quiver.topk_scan', 'off', true);
		DEALLOCATE client;
		EXECUTE format('PREPARE client%s AS %s', types, query);
		exact := rows_of(format('EXECUTE client%s', arguments));
		PERFORM set_config('enable_indexscan', 'on', true), set_config('quiver.topk_scan', 'on', true);
		DEALLOCATE client;
		EXECUTE format('PREPARE client%s AS %s', types, query);
		plan := plan || CASE WHEN found IS NOT DISTINCT FROM exact THEN ', same'
			ELSE format(', %s, not %s', found, exact) END;
		IF mode = 'force_custom_plan' THEN custom := plan; ELSE generic := plan; END IF;
	END LOOP;
	DEALLOCATE client;
END $$;
CREATE FUNCTION rows_of(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	r record;
	result text := '';
BEGIN
	FOR r IN EXECUTE query LOOP
		result := result || ' ' ||
			coalesce(to_jsonb(r)->>'id', to_jsonb(r)->>'embedding_id', to_jsonb(r)->>'name', r::text);
	END LOOP;
	RETURN result;
END $$;

-- Drizzle's guide
SELECT * FROM client('select "name", 1 - ("items"."embedding" <=> $1) as "similarity" from "items"
	where 1 - ("items"."embedding" <=> $1) > $2 order by 1 - ("items"."embedding" <=> $1) desc, id limit $3',
	'(vector, float8, int)', '(''[1,0,0.1]'', 0.5, 4)');
-- SQLAlchemy
SELECT * FROM client('SELECT items.id, items.embedding FROM items ORDER BY items.embedding <=> $1, id LIMIT $2',
	'(vector, int)', '(''[1,0,0.1]'', 5)');
-- Django: an annotation, a filter on it, and a similarity
SELECT * FROM client('SELECT "items"."id", ("items"."embedding" <=> $1) AS "distance" FROM "items"
	WHERE ("items"."embedding" <=> $1) < $2 ORDER BY 2 ASC, 1 LIMIT 5', '(vector, float8)', '(''[1,0,0.1]'', 0.5)');
SELECT * FROM client('SELECT "items"."id", (1 - ("items"."embedding" <=> $1)) AS "similarity" FROM "items"
	WHERE "items"."embedding" IS NOT NULL ORDER BY 2 DESC, 1 LIMIT 5', '(vector)', '(''[1,0,0.1]'')');
-- LangChain
SELECT * FROM client('SELECT items.id, content, items.metadata, items.embedding <=> $1 AS distance
	FROM items JOIN collections ON items.collection = collections.uuid
	WHERE items.collection = $2 AND jsonb_path_match(items.metadata, ''$.topic == $value'', ''{"value": 3}'')
	ORDER BY distance ASC, id LIMIT $3', '(vector, int, int)', '(''[1,0,0.1]'', 1, 4)');
-- LlamaIndex
SELECT * FROM client('SELECT id, content, metadata, embedding <=> $1 AS distance FROM items
	WHERE metadata->>''topic'' = $2 ORDER BY distance asc, id LIMIT $3',
	'(vector, text, int)', '(''[1,0,0.1]'', ''3'', 4)');
-- Haystack
SELECT * FROM client('SELECT *, 1 - (embedding <=> $1) AS score FROM items ORDER BY score DESC, id LIMIT 10',
	'(vector)', '(''[1,0,0.1]'')');
-- langchain4j
SELECT * FROM client('WITH temp AS
	(SELECT (2 - (embedding <=> $1)) / 2 AS score, id AS embedding_id, embedding, content FROM items)
	SELECT * FROM temp WHERE score >= $2 ORDER BY score desc, embedding_id LIMIT $3', '(vector, float8, int)',
	'(''[1,0,0.1]'', 0.7, 5)');
-- a Java framework that rounds
SELECT * FROM client('SELECT id FROM items
	WHERE round(cast(float8 (embedding <=> $1) as numeric), 8) <= round(2 - 2 * $2, 8)
	ORDER BY embedding <=> $1, id LIMIT $3', '(vector, numeric, int)', '(''[1,0,0.1]'', 0.8, 5)');
-- Spring AI
SELECT * FROM client('SELECT *, embedding <=> $1 AS distance FROM items WHERE embedding <=> $2 < $3
	AND metadata::jsonb @@ ''$.topic == 3''::jsonpath ORDER BY distance, id LIMIT $4', '(vector, vector, float8, int)',
	'(''[1,0,0.1]'', ''[1,0,0.1]'', 0.8, 5)');
-- Rails neighbor
SELECT * FROM client('SELECT "items".*, "items"."embedding" <=> ''[1,0,0.1]'' AS neighbor_distance FROM "items"
	WHERE "items"."embedding" IS NOT NULL ORDER BY "items"."embedding" <=> ''[1,0,0.1]'', id LIMIT $1', '(int)', '(5)');
-- functions match_documents() of a host's templates
CREATE FUNCTION match_documents(query_embedding vector(3), match_threshold float8, match_count int)
RETURNS TABLE (id int, content text, similarity float8) LANGUAGE sql STABLE AS $$
	SELECT items.id, items.content, 1 - (items.embedding <=> query_embedding) AS similarity FROM items
	WHERE 1 - (items.embedding <=> query_embedding) > match_threshold
	ORDER BY (items.embedding <=> query_embedding) ASC, id LIMIT match_count;
$$;
CREATE FUNCTION match_documents_filtered(query_embedding vector(3), match_count int, filter jsonb)
RETURNS TABLE (id int, content text, metadata jsonb, similarity float8) LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
	RETURN QUERY SELECT id, content, metadata, 1 - (items.embedding <=> query_embedding) AS similarity FROM items
		WHERE metadata @> filter ORDER BY items.embedding <=> query_embedding, id LIMIT match_count;
END $$;
SELECT * FROM client('SELECT * FROM match_documents($1, $2, $3)', '(vector, float8, int)', '(''[1,0,0.1]'', 0.5, 4)');
BEGIN;
SELECT id, content, round(similarity::numeric, 3) AS similarity
	FROM match_documents_filtered('[1,0,0.1]', 3, '{"topic": 3}');
SELECT pg_stat_get_xact_numscans('items_embedding'::regclass) > 0 AS by_index,
	pg_stat_get_xact_tuples_returned('items_embedding'::regclass) >= 3 AS tuples_read;
COMMIT;
DROP TABLE items, collections CASCADE;
DROP FUNCTION client(text, text, text), rows_of(text), match_documents, match_documents_filtered;
