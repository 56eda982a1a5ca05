-- Quiver: the extension "vector".  pgvector's objects, and hash operator classes.
--
-- The scripts that update from a version of pgvector, and back to it, are made of
-- this one: see README.md.  "since" names the version that first had what follows,
-- up to the next "since"; it says nothing about functions, unless pgvector has not
-- got them.

-- complain if the file is sourced in psql
\echo Use "CREATE EXTENSION vector" to load this file. \quit

-- types

CREATE TYPE vector;

-- since 0.7.0
CREATE TYPE halfvec;
CREATE TYPE sparsevec;

-- functions: type input and output

CREATE OR REPLACE FUNCTION vector_in(cstring, oid, integer) RETURNS vector
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION vector_out(vector) RETURNS cstring
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION vector_typmod_in(cstring[]) RETURNS integer
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION vector_recv(internal, oid, integer) RETURNS vector
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION vector_send(vector) RETURNS bytea
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION halfvec_in(cstring, oid, integer) RETURNS halfvec
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION halfvec_out(halfvec) RETURNS cstring
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION halfvec_typmod_in(cstring[]) RETURNS integer
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION halfvec_recv(internal, oid, integer) RETURNS halfvec
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION halfvec_send(halfvec) RETURNS bytea
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION sparsevec_in(cstring, oid, integer) RETURNS sparsevec
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION sparsevec_out(sparsevec) RETURNS cstring
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION sparsevec_typmod_in(cstring[]) RETURNS integer
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION sparsevec_recv(internal, oid, integer) RETURNS sparsevec
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION sparsevec_send(sparsevec) RETURNS bytea
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

-- types, complete

-- since 0.5.0
CREATE TYPE vector (
    INPUT = vector_in,
    OUTPUT = vector_out,
    TYPMOD_IN = vector_typmod_in,
    RECEIVE = vector_recv,
    SEND = vector_send,
    STORAGE = external
);

-- since 0.7.0
CREATE TYPE halfvec (
    INPUT = halfvec_in,
    OUTPUT = halfvec_out,
    TYPMOD_IN = halfvec_typmod_in,
    RECEIVE = halfvec_recv,
    SEND = halfvec_send,
    STORAGE = external
);

CREATE TYPE sparsevec (
    INPUT = sparsevec_in,
    OUTPUT = sparsevec_out,
    TYPMOD_IN = sparsevec_typmod_in,
    RECEIVE = sparsevec_recv,
    SEND = sparsevec_send,
    STORAGE = external
);

-- functions: distances

CREATE OR REPLACE FUNCTION l2_distance(vector, vector) RETURNS double precision
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION inner_product(vector, vector) RETURNS double precision
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION cosine_distance(vector, vector) RETURNS double precision
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION l1_distance(vector, vector) RETURNS double precision
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION vector_l2_squared_distance(vector, vector) RETURNS double precision
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION vector_negative_inner_product(vector, vector) RETURNS double precision
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION vector_spherical_distance(vector, vector) RETURNS double precision
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION l2_distance(halfvec, halfvec) RETURNS double precision
    AS 'MODULE_PATHNAME', 'halfvec_l2_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION inner_product(halfvec, halfvec) RETURNS double precision
    AS 'MODULE_PATHNAME', 'halfvec_inner_product' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION cosine_distance(halfvec, halfvec) RETURNS double precision
    AS 'MODULE_PATHNAME', 'halfvec_cosine_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION l1_distance(halfvec, halfvec) RETURNS double precision
    AS 'MODULE_PATHNAME', 'halfvec_l1_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION halfvec_l2_squared_distance(halfvec, halfvec) RETURNS double precision
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION halfvec_negative_inner_product(halfvec, halfvec) RETURNS double precision
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION halfvec_spherical_distance(halfvec, halfvec) RETURNS double precision
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION l2_distance(sparsevec, sparsevec) RETURNS double precision
    AS 'MODULE_PATHNAME', 'sparsevec_l2_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION inner_product(sparsevec, sparsevec) RETURNS double precision
    AS 'MODULE_PATHNAME', 'sparsevec_inner_product' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION cosine_distance(sparsevec, sparsevec) RETURNS double precision
    AS 'MODULE_PATHNAME', 'sparsevec_cosine_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION l1_distance(sparsevec, sparsevec) RETURNS double precision
    AS 'MODULE_PATHNAME', 'sparsevec_l1_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION sparsevec_l2_squared_distance(sparsevec, sparsevec) RETURNS double precision
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION sparsevec_negative_inner_product(sparsevec, sparsevec) RETURNS double precision
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION hamming_distance(bit, bit) RETURNS double precision
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION jaccard_distance(bit, bit) RETURNS double precision
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

-- functions: about one value

CREATE OR REPLACE FUNCTION vector_dims(vector) RETURNS integer
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION vector_dims(halfvec) RETURNS integer
    AS 'MODULE_PATHNAME', 'halfvec_vector_dims' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION vector_norm(vector) RETURNS double precision
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION l2_norm(halfvec) RETURNS double precision
    AS 'MODULE_PATHNAME', 'halfvec_l2_norm' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION l2_norm(sparsevec) RETURNS double precision
    AS 'MODULE_PATHNAME', 'sparsevec_l2_norm' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION l2_normalize(vector) RETURNS vector
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION l2_normalize(halfvec) RETURNS halfvec
    AS 'MODULE_PATHNAME', 'halfvec_l2_normalize' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION l2_normalize(sparsevec) RETURNS sparsevec
    AS 'MODULE_PATHNAME', 'sparsevec_l2_normalize' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION binary_quantize(vector) RETURNS bit
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION subvector(vector, integer, integer) RETURNS vector
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION binary_quantize(halfvec) RETURNS bit
    AS 'MODULE_PATHNAME', 'halfvec_binary_quantize' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION subvector(halfvec, integer, integer) RETURNS halfvec
    AS 'MODULE_PATHNAME', 'halfvec_subvector' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

-- functions: arithmetic

CREATE OR REPLACE FUNCTION vector_add(vector, vector) RETURNS vector
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION vector_sub(vector, vector) RETURNS vector
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION vector_mul(vector, vector) RETURNS vector
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION vector_concat(vector, vector) RETURNS vector
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION halfvec_add(halfvec, halfvec) RETURNS halfvec
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION halfvec_sub(halfvec, halfvec) RETURNS halfvec
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION halfvec_mul(halfvec, halfvec) RETURNS halfvec
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION halfvec_concat(halfvec, halfvec) RETURNS halfvec
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

-- functions: comparison

CREATE OR REPLACE FUNCTION vector_lt(vector, vector) RETURNS boolean
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION vector_le(vector, vector) RETURNS boolean
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION vector_eq(vector, vector) RETURNS boolean
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION vector_ne(vector, vector) RETURNS boolean
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION vector_ge(vector, vector) RETURNS boolean
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION vector_gt(vector, vector) RETURNS boolean
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION vector_cmp(vector, vector) RETURNS integer
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION halfvec_lt(halfvec, halfvec) RETURNS boolean
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION halfvec_le(halfvec, halfvec) RETURNS boolean
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION halfvec_eq(halfvec, halfvec) RETURNS boolean
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION halfvec_ne(halfvec, halfvec) RETURNS boolean
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION halfvec_ge(halfvec, halfvec) RETURNS boolean
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION halfvec_gt(halfvec, halfvec) RETURNS boolean
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION halfvec_cmp(halfvec, halfvec) RETURNS integer
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OR REPLACE FUNCTION sparsevec_lt(sparsevec, sparsevec) RETURNS boolean
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION sparsevec_le(sparsevec, sparsevec) RETURNS boolean
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION sparsevec_eq(sparsevec, sparsevec) RETURNS boolean
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION sparsevec_ne(sparsevec, sparsevec) RETURNS boolean
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION sparsevec_ge(sparsevec, sparsevec) RETURNS boolean
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION sparsevec_gt(sparsevec, sparsevec) RETURNS boolean
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION sparsevec_cmp(sparsevec, sparsevec) RETURNS integer
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

-- functions: aggregates

CREATE OR REPLACE FUNCTION vector_accum(double precision[], vector) RETURNS double precision[]
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION vector_combine(double precision[], double precision[]) RETURNS double precision[]
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION vector_avg(double precision[]) RETURNS vector
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION halfvec_accum(double precision[], halfvec) RETURNS double precision[]
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION halfvec_combine(double precision[], double precision[]) RETURNS double precision[]
    AS 'MODULE_PATHNAME', 'vector_combine' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION halfvec_avg(double precision[]) RETURNS halfvec
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

-- functions: casts

CREATE OR REPLACE FUNCTION vector(vector, integer, boolean) RETURNS vector
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION halfvec(halfvec, integer, boolean) RETURNS halfvec
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION sparsevec(sparsevec, integer, boolean) RETURNS sparsevec
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION array_to_vector(integer[], integer, boolean) RETURNS vector
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION array_to_vector(real[], integer, boolean) RETURNS vector
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION array_to_vector(double precision[], integer, boolean) RETURNS vector
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION array_to_vector(numeric[], integer, boolean) RETURNS vector
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION array_to_halfvec(integer[], integer, boolean) RETURNS halfvec
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION array_to_halfvec(real[], integer, boolean) RETURNS halfvec
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION array_to_halfvec(double precision[], integer, boolean) RETURNS halfvec
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION array_to_halfvec(numeric[], integer, boolean) RETURNS halfvec
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION array_to_sparsevec(integer[], integer, boolean) RETURNS sparsevec
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION array_to_sparsevec(real[], integer, boolean) RETURNS sparsevec
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION array_to_sparsevec(double precision[], integer, boolean) RETURNS sparsevec
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION array_to_sparsevec(numeric[], integer, boolean) RETURNS sparsevec
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION vector_to_float4(vector, integer, boolean) RETURNS real[]
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION halfvec_to_float4(halfvec, integer, boolean) RETURNS real[]
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION halfvec_to_vector(halfvec, integer, boolean) RETURNS vector
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION vector_to_halfvec(vector, integer, boolean) RETURNS halfvec
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION sparsevec_to_vector(sparsevec, integer, boolean) RETURNS vector
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION vector_to_sparsevec(vector, integer, boolean) RETURNS sparsevec
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION sparsevec_to_halfvec(sparsevec, integer, boolean) RETURNS halfvec
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION halfvec_to_sparsevec(halfvec, integer, boolean) RETURNS sparsevec
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

-- functions: access methods

CREATE OR REPLACE FUNCTION hnswhandler(internal) RETURNS index_am_handler
    AS 'MODULE_PATHNAME' LANGUAGE C;
CREATE OR REPLACE FUNCTION hnsw_halfvec_support(internal) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C;
CREATE OR REPLACE FUNCTION hnsw_bit_support(internal) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C;
CREATE OR REPLACE FUNCTION hnsw_sparsevec_support(internal) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C;

-- aggregates

-- since 0.5.0
CREATE AGGREGATE avg(vector) (
    SFUNC = vector_accum,
    STYPE = double precision[],
    FINALFUNC = vector_avg,
    COMBINEFUNC = vector_combine,
    INITCOND = '{0}',
    PARALLEL = SAFE
);

CREATE AGGREGATE sum(vector) (
    SFUNC = vector_add,
    STYPE = vector,
    COMBINEFUNC = vector_add,
    PARALLEL = SAFE
);

-- since 0.7.0
CREATE AGGREGATE avg(halfvec) (
    SFUNC = halfvec_accum,
    STYPE = double precision[],
    FINALFUNC = halfvec_avg,
    COMBINEFUNC = halfvec_combine,
    INITCOND = '{0}',
    PARALLEL = SAFE
);

CREATE AGGREGATE sum(halfvec) (
    SFUNC = halfvec_add,
    STYPE = halfvec,
    COMBINEFUNC = halfvec_add,
    PARALLEL = SAFE
);

-- casts

-- since 0.5.0
CREATE CAST (vector AS vector)
    WITH FUNCTION vector(vector, integer, boolean) AS IMPLICIT;
CREATE CAST (vector AS real[])
    WITH FUNCTION vector_to_float4(vector, integer, boolean) AS IMPLICIT;
CREATE CAST (integer[] AS vector)
    WITH FUNCTION array_to_vector(integer[], integer, boolean) AS ASSIGNMENT;
CREATE CAST (real[] AS vector)
    WITH FUNCTION array_to_vector(real[], integer, boolean) AS ASSIGNMENT;
CREATE CAST (double precision[] AS vector)
    WITH FUNCTION array_to_vector(double precision[], integer, boolean) AS ASSIGNMENT;
CREATE CAST (numeric[] AS vector)
    WITH FUNCTION array_to_vector(numeric[], integer, boolean) AS ASSIGNMENT;

-- since 0.7.0
CREATE CAST (halfvec AS halfvec)
    WITH FUNCTION halfvec(halfvec, integer, boolean) AS IMPLICIT;
CREATE CAST (sparsevec AS sparsevec)
    WITH FUNCTION sparsevec(sparsevec, integer, boolean) AS IMPLICIT;
CREATE CAST (halfvec AS real[])
    WITH FUNCTION halfvec_to_float4(halfvec, integer, boolean) AS ASSIGNMENT;
CREATE CAST (integer[] AS halfvec)
    WITH FUNCTION array_to_halfvec(integer[], integer, boolean) AS ASSIGNMENT;
CREATE CAST (real[] AS halfvec)
    WITH FUNCTION array_to_halfvec(real[], integer, boolean) AS ASSIGNMENT;
CREATE CAST (double precision[] AS halfvec)
    WITH FUNCTION array_to_halfvec(double precision[], integer, boolean) AS ASSIGNMENT;
CREATE CAST (numeric[] AS halfvec)
    WITH FUNCTION array_to_halfvec(numeric[], integer, boolean) AS ASSIGNMENT;
CREATE CAST (halfvec AS vector)
    WITH FUNCTION halfvec_to_vector(halfvec, integer, boolean) AS ASSIGNMENT;
CREATE CAST (vector AS halfvec)
    WITH FUNCTION vector_to_halfvec(vector, integer, boolean) AS IMPLICIT;
CREATE CAST (sparsevec AS vector)
    WITH FUNCTION sparsevec_to_vector(sparsevec, integer, boolean) AS ASSIGNMENT;
CREATE CAST (vector AS sparsevec)
    WITH FUNCTION vector_to_sparsevec(vector, integer, boolean) AS IMPLICIT;
CREATE CAST (sparsevec AS halfvec)
    WITH FUNCTION sparsevec_to_halfvec(sparsevec, integer, boolean) AS ASSIGNMENT;
CREATE CAST (halfvec AS sparsevec)
    WITH FUNCTION halfvec_to_sparsevec(halfvec, integer, boolean) AS IMPLICIT;

-- since 0.8.0
CREATE CAST (integer[] AS sparsevec)
    WITH FUNCTION array_to_sparsevec(integer[], integer, boolean) AS ASSIGNMENT;
CREATE CAST (real[] AS sparsevec)
    WITH FUNCTION array_to_sparsevec(real[], integer, boolean) AS ASSIGNMENT;
CREATE CAST (double precision[] AS sparsevec)
    WITH FUNCTION array_to_sparsevec(double precision[], integer, boolean) AS ASSIGNMENT;
CREATE CAST (numeric[] AS sparsevec)
    WITH FUNCTION array_to_sparsevec(numeric[], integer, boolean) AS ASSIGNMENT;

-- operators: distances

-- since 0.5.0
CREATE OPERATOR <-> (
    LEFTARG = vector, RIGHTARG = vector, FUNCTION = l2_distance,
    COMMUTATOR = <->
);
CREATE OPERATOR <#> (
    LEFTARG = vector, RIGHTARG = vector, FUNCTION = vector_negative_inner_product,
    COMMUTATOR = <#>
);
CREATE OPERATOR <=> (
    LEFTARG = vector, RIGHTARG = vector, FUNCTION = cosine_distance,
    COMMUTATOR = <=>
);

-- since 0.7.0
CREATE OPERATOR <+> (
    LEFTARG = vector, RIGHTARG = vector, FUNCTION = l1_distance,
    COMMUTATOR = <+>
);
CREATE OPERATOR <-> (
    LEFTARG = halfvec, RIGHTARG = halfvec, FUNCTION = l2_distance,
    COMMUTATOR = <->
);
CREATE OPERATOR <#> (
    LEFTARG = halfvec, RIGHTARG = halfvec, FUNCTION = halfvec_negative_inner_product,
    COMMUTATOR = <#>
);
CREATE OPERATOR <=> (
    LEFTARG = halfvec, RIGHTARG = halfvec, FUNCTION = cosine_distance,
    COMMUTATOR = <=>
);
CREATE OPERATOR <+> (
    LEFTARG = halfvec, RIGHTARG = halfvec, FUNCTION = l1_distance,
    COMMUTATOR = <+>
);
CREATE OPERATOR <-> (
    LEFTARG = sparsevec, RIGHTARG = sparsevec, FUNCTION = l2_distance,
    COMMUTATOR = <->
);
CREATE OPERATOR <#> (
    LEFTARG = sparsevec, RIGHTARG = sparsevec, FUNCTION = sparsevec_negative_inner_product,
    COMMUTATOR = <#>
);
CREATE OPERATOR <=> (
    LEFTARG = sparsevec, RIGHTARG = sparsevec, FUNCTION = cosine_distance,
    COMMUTATOR = <=>
);
CREATE OPERATOR <+> (
    LEFTARG = sparsevec, RIGHTARG = sparsevec, FUNCTION = l1_distance,
    COMMUTATOR = <+>
);
CREATE OPERATOR <~> (
    LEFTARG = bit, RIGHTARG = bit, FUNCTION = hamming_distance,
    COMMUTATOR = <~>
);
CREATE OPERATOR <%> (
    LEFTARG = bit, RIGHTARG = bit, FUNCTION = jaccard_distance,
    COMMUTATOR = <%>
);

-- operators: arithmetic

-- since 0.5.0
CREATE OPERATOR + (
    LEFTARG = vector, RIGHTARG = vector, FUNCTION = vector_add,
    COMMUTATOR = +
);
CREATE OPERATOR - (
    LEFTARG = vector, RIGHTARG = vector, FUNCTION = vector_sub
);
CREATE OPERATOR * (
    LEFTARG = vector, RIGHTARG = vector, FUNCTION = vector_mul,
    COMMUTATOR = *
);

-- since 0.7.0
CREATE OPERATOR || (
    LEFTARG = vector, RIGHTARG = vector, FUNCTION = vector_concat
);
CREATE OPERATOR + (
    LEFTARG = halfvec, RIGHTARG = halfvec, FUNCTION = halfvec_add,
    COMMUTATOR = +
);
CREATE OPERATOR - (
    LEFTARG = halfvec, RIGHTARG = halfvec, FUNCTION = halfvec_sub
);
CREATE OPERATOR * (
    LEFTARG = halfvec, RIGHTARG = halfvec, FUNCTION = halfvec_mul,
    COMMUTATOR = *
);
CREATE OPERATOR || (
    LEFTARG = halfvec, RIGHTARG = halfvec, FUNCTION = halfvec_concat
);

-- operators: comparison

-- since 0.5.0
CREATE OPERATOR < (
    LEFTARG = vector, RIGHTARG = vector, FUNCTION = vector_lt,
    COMMUTATOR = >, NEGATOR = >=,
    RESTRICT = scalarltsel, JOIN = scalarltjoinsel
);
CREATE OPERATOR <= (
    LEFTARG = vector, RIGHTARG = vector, FUNCTION = vector_le,
    COMMUTATOR = >=, NEGATOR = >,
    RESTRICT = scalarlesel, JOIN = scalarlejoinsel
);
CREATE OPERATOR = (
    LEFTARG = vector, RIGHTARG = vector, FUNCTION = vector_eq,
    COMMUTATOR = =, NEGATOR = <>,
    RESTRICT = eqsel, JOIN = eqjoinsel,
    HASHES, MERGES
);
CREATE OPERATOR <> (
    LEFTARG = vector, RIGHTARG = vector, FUNCTION = vector_ne,
    COMMUTATOR = <>, NEGATOR = =,
    RESTRICT = eqsel, JOIN = eqjoinsel
);
CREATE OPERATOR >= (
    LEFTARG = vector, RIGHTARG = vector, FUNCTION = vector_ge,
    COMMUTATOR = <=, NEGATOR = <,
    RESTRICT = scalargesel, JOIN = scalargejoinsel
);
CREATE OPERATOR > (
    LEFTARG = vector, RIGHTARG = vector, FUNCTION = vector_gt,
    COMMUTATOR = <, NEGATOR = <=,
    RESTRICT = scalargtsel, JOIN = scalargtjoinsel
);

-- since 0.7.0
CREATE OPERATOR < (
    LEFTARG = halfvec, RIGHTARG = halfvec, FUNCTION = halfvec_lt,
    COMMUTATOR = >, NEGATOR = >=,
    RESTRICT = scalarltsel, JOIN = scalarltjoinsel
);
CREATE OPERATOR <= (
    LEFTARG = halfvec, RIGHTARG = halfvec, FUNCTION = halfvec_le,
    COMMUTATOR = >=, NEGATOR = >,
    RESTRICT = scalarlesel, JOIN = scalarlejoinsel
);
CREATE OPERATOR = (
    LEFTARG = halfvec, RIGHTARG = halfvec, FUNCTION = halfvec_eq,
    COMMUTATOR = =, NEGATOR = <>,
    RESTRICT = eqsel, JOIN = eqjoinsel,
    HASHES, MERGES
);
CREATE OPERATOR <> (
    LEFTARG = halfvec, RIGHTARG = halfvec, FUNCTION = halfvec_ne,
    COMMUTATOR = <>, NEGATOR = =,
    RESTRICT = eqsel, JOIN = eqjoinsel
);
CREATE OPERATOR >= (
    LEFTARG = halfvec, RIGHTARG = halfvec, FUNCTION = halfvec_ge,
    COMMUTATOR = <=, NEGATOR = <,
    RESTRICT = scalargesel, JOIN = scalargejoinsel
);
CREATE OPERATOR > (
    LEFTARG = halfvec, RIGHTARG = halfvec, FUNCTION = halfvec_gt,
    COMMUTATOR = <, NEGATOR = <=,
    RESTRICT = scalargtsel, JOIN = scalargtjoinsel
);
CREATE OPERATOR < (
    LEFTARG = sparsevec, RIGHTARG = sparsevec, FUNCTION = sparsevec_lt,
    COMMUTATOR = >, NEGATOR = >=,
    RESTRICT = scalarltsel, JOIN = scalarltjoinsel
);
CREATE OPERATOR <= (
    LEFTARG = sparsevec, RIGHTARG = sparsevec, FUNCTION = sparsevec_le,
    COMMUTATOR = >=, NEGATOR = >,
    RESTRICT = scalarlesel, JOIN = scalarlejoinsel
);
CREATE OPERATOR = (
    LEFTARG = sparsevec, RIGHTARG = sparsevec, FUNCTION = sparsevec_eq,
    COMMUTATOR = =, NEGATOR = <>,
    RESTRICT = eqsel, JOIN = eqjoinsel,
    HASHES, MERGES
);
CREATE OPERATOR <> (
    LEFTARG = sparsevec, RIGHTARG = sparsevec, FUNCTION = sparsevec_ne,
    COMMUTATOR = <>, NEGATOR = =,
    RESTRICT = eqsel, JOIN = eqjoinsel
);
CREATE OPERATOR >= (
    LEFTARG = sparsevec, RIGHTARG = sparsevec, FUNCTION = sparsevec_ge,
    COMMUTATOR = <=, NEGATOR = <,
    RESTRICT = scalargesel, JOIN = scalargejoinsel
);
CREATE OPERATOR > (
    LEFTARG = sparsevec, RIGHTARG = sparsevec, FUNCTION = sparsevec_gt,
    COMMUTATOR = <, NEGATOR = <=,
    RESTRICT = scalargtsel, JOIN = scalargtjoinsel
);

-- operator classes: btree

-- since 0.5.0
CREATE OPERATOR CLASS vector_ops
    DEFAULT FOR TYPE vector USING btree AS
    OPERATOR 1 <,
    OPERATOR 2 <=,
    OPERATOR 3 =,
    OPERATOR 4 >=,
    OPERATOR 5 >,
    FUNCTION 1 vector_cmp(vector, vector);

-- since 0.7.0
CREATE OPERATOR CLASS halfvec_ops
    DEFAULT FOR TYPE halfvec USING btree AS
    OPERATOR 1 <,
    OPERATOR 2 <=,
    OPERATOR 3 =,
    OPERATOR 4 >=,
    OPERATOR 5 >,
    FUNCTION 1 halfvec_cmp(halfvec, halfvec);

CREATE OPERATOR CLASS sparsevec_ops
    DEFAULT FOR TYPE sparsevec USING btree AS
    OPERATOR 1 <,
    OPERATOR 2 <=,
    OPERATOR 3 =,
    OPERATOR 4 >=,
    OPERATOR 5 >,
    FUNCTION 1 sparsevec_cmp(sparsevec, sparsevec);

-- hash: beyond pgvector

-- since 0.8.100
CREATE OR REPLACE FUNCTION vector_hash(vector) RETURNS integer
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION vector_hash_extended(vector, bigint) RETURNS bigint
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION halfvec_hash(halfvec) RETURNS integer
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION halfvec_hash_extended(halfvec, bigint) RETURNS bigint
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION sparsevec_hash(sparsevec) RETURNS integer
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OR REPLACE FUNCTION sparsevec_hash_extended(sparsevec, bigint) RETURNS bigint
    AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OPERATOR CLASS vector_ops
    DEFAULT FOR TYPE vector USING hash AS
    OPERATOR 1 =,
    FUNCTION 1 vector_hash(vector),
    FUNCTION 2 vector_hash_extended(vector, bigint);

CREATE OPERATOR CLASS halfvec_ops
    DEFAULT FOR TYPE halfvec USING hash AS
    OPERATOR 1 =,
    FUNCTION 1 halfvec_hash(halfvec),
    FUNCTION 2 halfvec_hash_extended(halfvec, bigint);

CREATE OPERATOR CLASS sparsevec_ops
    DEFAULT FOR TYPE sparsevec USING hash AS
    OPERATOR 1 =,
    FUNCTION 1 sparsevec_hash(sparsevec),
    FUNCTION 2 sparsevec_hash_extended(sparsevec, bigint);

-- access method: hnsw

-- since 0.5.0
CREATE ACCESS METHOD hnsw TYPE INDEX HANDLER hnswhandler;
COMMENT ON ACCESS METHOD hnsw IS 'hnsw index access method';

-- Support functions: 1 the distance to order by, 2 the norm (rows with norm 0
-- are left out), 3 the type, for other types than vector.

CREATE OPERATOR CLASS vector_l2_ops
    FOR TYPE vector USING hnsw AS
    OPERATOR 1 <-> (vector, vector) FOR ORDER BY float_ops,
    FUNCTION 1 vector_l2_squared_distance(vector, vector);

CREATE OPERATOR CLASS vector_ip_ops
    FOR TYPE vector USING hnsw AS
    OPERATOR 1 <#> (vector, vector) FOR ORDER BY float_ops,
    FUNCTION 1 vector_negative_inner_product(vector, vector);

CREATE OPERATOR CLASS vector_cosine_ops
    FOR TYPE vector USING hnsw AS
    OPERATOR 1 <=> (vector, vector) FOR ORDER BY float_ops,
    FUNCTION 1 vector_negative_inner_product(vector, vector),
    FUNCTION 2 vector_norm(vector);

-- since 0.7.0
CREATE OPERATOR CLASS vector_l1_ops
    FOR TYPE vector USING hnsw AS
    OPERATOR 1 <+> (vector, vector) FOR ORDER BY float_ops,
    FUNCTION 1 l1_distance(vector, vector);

CREATE OPERATOR CLASS halfvec_l2_ops
    FOR TYPE halfvec USING hnsw AS
    OPERATOR 1 <-> (halfvec, halfvec) FOR ORDER BY float_ops,
    FUNCTION 1 halfvec_l2_squared_distance(halfvec, halfvec),
    FUNCTION 3 hnsw_halfvec_support(internal);

CREATE OPERATOR CLASS halfvec_ip_ops
    FOR TYPE halfvec USING hnsw AS
    OPERATOR 1 <#> (halfvec, halfvec) FOR ORDER BY float_ops,
    FUNCTION 1 halfvec_negative_inner_product(halfvec, halfvec),
    FUNCTION 3 hnsw_halfvec_support(internal);

CREATE OPERATOR CLASS halfvec_cosine_ops
    FOR TYPE halfvec USING hnsw AS
    OPERATOR 1 <=> (halfvec, halfvec) FOR ORDER BY float_ops,
    FUNCTION 1 halfvec_negative_inner_product(halfvec, halfvec),
    FUNCTION 2 l2_norm(halfvec),
    FUNCTION 3 hnsw_halfvec_support(internal);

CREATE OPERATOR CLASS halfvec_l1_ops
    FOR TYPE halfvec USING hnsw AS
    OPERATOR 1 <+> (halfvec, halfvec) FOR ORDER BY float_ops,
    FUNCTION 1 l1_distance(halfvec, halfvec),
    FUNCTION 3 hnsw_halfvec_support(internal);

CREATE OPERATOR CLASS sparsevec_l2_ops
    FOR TYPE sparsevec USING hnsw AS
    OPERATOR 1 <-> (sparsevec, sparsevec) FOR ORDER BY float_ops,
    FUNCTION 1 sparsevec_l2_squared_distance(sparsevec, sparsevec),
    FUNCTION 3 hnsw_sparsevec_support(internal);

CREATE OPERATOR CLASS sparsevec_ip_ops
    FOR TYPE sparsevec USING hnsw AS
    OPERATOR 1 <#> (sparsevec, sparsevec) FOR ORDER BY float_ops,
    FUNCTION 1 sparsevec_negative_inner_product(sparsevec, sparsevec),
    FUNCTION 3 hnsw_sparsevec_support(internal);

CREATE OPERATOR CLASS sparsevec_cosine_ops
    FOR TYPE sparsevec USING hnsw AS
    OPERATOR 1 <=> (sparsevec, sparsevec) FOR ORDER BY float_ops,
    FUNCTION 1 sparsevec_negative_inner_product(sparsevec, sparsevec),
    FUNCTION 2 l2_norm(sparsevec),
    FUNCTION 3 hnsw_sparsevec_support(internal);

CREATE OPERATOR CLASS sparsevec_l1_ops
    FOR TYPE sparsevec USING hnsw AS
    OPERATOR 1 <+> (sparsevec, sparsevec) FOR ORDER BY float_ops,
    FUNCTION 1 l1_distance(sparsevec, sparsevec),
    FUNCTION 3 hnsw_sparsevec_support(internal);

CREATE OPERATOR CLASS bit_hamming_ops
    FOR TYPE bit USING hnsw AS
    OPERATOR 1 <~> (bit, bit) FOR ORDER BY float_ops,
    FUNCTION 1 hamming_distance(bit, bit),
    FUNCTION 3 hnsw_bit_support(internal);

CREATE OPERATOR CLASS bit_jaccard_ops
    FOR TYPE bit USING hnsw AS
    OPERATOR 1 <%> (bit, bit) FOR ORDER BY float_ops,
    FUNCTION 1 jaccard_distance(bit, bit),
    FUNCTION 3 hnsw_bit_support(internal);

-- access method: ivfflat
--
-- Support functions: 1 the distance to order by, 2 the norm (rows with norm 0 are left
-- out), 3 the distance of k-means, 4 its norm, 5 the type, for other types than vector.

CREATE OR REPLACE FUNCTION ivfflathandler(internal) RETURNS index_am_handler
    AS 'MODULE_PATHNAME' LANGUAGE C;
CREATE OR REPLACE FUNCTION ivfflat_halfvec_support(internal) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C;
CREATE OR REPLACE FUNCTION ivfflat_bit_support(internal) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C;

-- since 0.5.0
CREATE ACCESS METHOD ivfflat TYPE INDEX HANDLER ivfflathandler;
COMMENT ON ACCESS METHOD ivfflat IS 'ivfflat index access method';

CREATE OPERATOR CLASS vector_l2_ops
    DEFAULT FOR TYPE vector USING ivfflat AS
    OPERATOR 1 <-> (vector, vector) FOR ORDER BY float_ops,
    FUNCTION 1 vector_l2_squared_distance(vector, vector),
    FUNCTION 3 l2_distance(vector, vector);

CREATE OPERATOR CLASS vector_ip_ops
    FOR TYPE vector USING ivfflat AS
    OPERATOR 1 <#> (vector, vector) FOR ORDER BY float_ops,
    FUNCTION 1 vector_negative_inner_product(vector, vector),
    FUNCTION 3 vector_spherical_distance(vector, vector),
    FUNCTION 4 vector_norm(vector);

CREATE OPERATOR CLASS vector_cosine_ops
    FOR TYPE vector USING ivfflat AS
    OPERATOR 1 <=> (vector, vector) FOR ORDER BY float_ops,
    FUNCTION 1 vector_negative_inner_product(vector, vector),
    FUNCTION 2 vector_norm(vector),
    FUNCTION 3 vector_spherical_distance(vector, vector),
    FUNCTION 4 vector_norm(vector);

-- since 0.7.0
CREATE OPERATOR CLASS halfvec_l2_ops
    FOR TYPE halfvec USING ivfflat AS
    OPERATOR 1 <-> (halfvec, halfvec) FOR ORDER BY float_ops,
    FUNCTION 1 halfvec_l2_squared_distance(halfvec, halfvec),
    FUNCTION 3 l2_distance(halfvec, halfvec),
    FUNCTION 5 ivfflat_halfvec_support(internal);

CREATE OPERATOR CLASS halfvec_ip_ops
    FOR TYPE halfvec USING ivfflat AS
    OPERATOR 1 <#> (halfvec, halfvec) FOR ORDER BY float_ops,
    FUNCTION 1 halfvec_negative_inner_product(halfvec, halfvec),
    FUNCTION 3 halfvec_spherical_distance(halfvec, halfvec),
    FUNCTION 4 l2_norm(halfvec),
    FUNCTION 5 ivfflat_halfvec_support(internal);

CREATE OPERATOR CLASS halfvec_cosine_ops
    FOR TYPE halfvec USING ivfflat AS
    OPERATOR 1 <=> (halfvec, halfvec) FOR ORDER BY float_ops,
    FUNCTION 1 halfvec_negative_inner_product(halfvec, halfvec),
    FUNCTION 2 l2_norm(halfvec),
    FUNCTION 3 halfvec_spherical_distance(halfvec, halfvec),
    FUNCTION 4 l2_norm(halfvec),
    FUNCTION 5 ivfflat_halfvec_support(internal);

CREATE OPERATOR CLASS bit_hamming_ops
    FOR TYPE bit USING ivfflat AS
    OPERATOR 1 <~> (bit, bit) FOR ORDER BY float_ops,
    FUNCTION 1 hamming_distance(bit, bit),
    FUNCTION 3 hamming_distance(bit, bit),
    FUNCTION 5 ivfflat_bit_support(internal);
