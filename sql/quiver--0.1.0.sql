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
    OUT nodes bigint,
    OUT deleted_nodes bigint,
    OUT free_slots bigint,
    OUT max_degree int,
    OUT mean_degree float8,
    OUT code_bits int,
    OUT own_code_bits int,
    OUT nodes_per_page int,
    OUT entry_points int)
    AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION quiver_index_info(regclass) IS 'facts about a graph index; reads all of it';

CREATE FUNCTION quiver_check(index regclass) RETURNS bigint
    AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION quiver_check(regclass) IS 'verify a graph index: raises an error that names the damaged block, or returns the number of rows in it';

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
