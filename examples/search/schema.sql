-- Package descriptions, with what full-text search and vector search need of them.
DROP SCHEMA IF EXISTS packages CASCADE;
CREATE SCHEMA packages;
SET search_path = packages, public;

CREATE TABLE package (
    id int PRIMARY KEY,
    name text NOT NULL,
    section text NOT NULL,
    summary text NOT NULL,
    tags text NOT NULL,
    words tsvector GENERATED ALWAYS AS
        (to_tsvector('english', summary || ' ' || name || ' ' || summary || ' ' || tags)) STORED,
    embedding vector(256)
);

-- The model: a vector for each word, of whose sum a text's vector is made.
CREATE TABLE word (word text PRIMARY KEY, v vector(256) NOT NULL);

-- null for a text of unknown words
CREATE FUNCTION embed(query text) RETURNS vector STABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT l2_normalize(sum(v))
    FROM word WHERE word.word = ANY (tsvector_to_array(to_tsvector('english', query)));
END;

-- Vector and full-text search, by reciprocal rank fusion: 1 / (60 + rank) of each, added.
CREATE FUNCTION hybrid(query text, k int DEFAULT 10)
RETURNS TABLE (name text, summary text, score float8) STABLE PARALLEL SAFE
BEGIN ATOMIC
    WITH near AS (
        SELECT id, row_number() OVER (ORDER BY distance) AS rank
        FROM (SELECT id, embedding <=> embed(query) AS distance
              FROM package WHERE embed(query) IS NOT NULL ORDER BY distance LIMIT 50) n
    ), matching AS (
        SELECT id, row_number() OVER (ORDER BY relevance DESC, id) AS rank
        FROM (SELECT id, ts_rank_cd(words, websearch_to_tsquery('english', query)) AS relevance
              FROM package WHERE words @@ websearch_to_tsquery('english', query)
              ORDER BY relevance DESC, id LIMIT 50) m
    )
    SELECT p.name, p.summary,
        coalesce(1.0 / (60 + near.rank), 0) + coalesce(1.0 / (60 + matching.rank), 0) AS score
    FROM near FULL JOIN matching USING (id) JOIN package p USING (id)
    ORDER BY score DESC, p.name LIMIT k;
END;
