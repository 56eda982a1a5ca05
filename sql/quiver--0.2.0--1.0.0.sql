-- What extension quiver has since 1.0.0.

\echo Use "ALTER EXTENSION quiver UPDATE" to load this file. \quit

CREATE FUNCTION quiver_pgvector_version() RETURNS text
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION quiver_pgvector_version() IS 'version of pgvector that extension vector of this library stands for';
