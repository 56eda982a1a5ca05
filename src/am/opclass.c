/*
 * opclass.c
 *		From an index's operator class to its type and metric.
 *
 * pgvector's operator classes say what they are by their distance function
 * and, for cosine, by having a norm function.  We go by the address of the
 * distance function, so the catalog needs nothing that pgvector's has not.
 * Where extension vector is a stock pgvector, the functions are those of its
 * library: then we go by the name of the C symbol, which is the same.
 */
#include "postgres.h"

#include "access/genam.h"
#include "am/beside.h"
#include "am/opclass.h"
#include "utils/lsyscache.h"

#define DISTANCE_FUNCTIONS(F) \
	F(vector_l2_squared_distance, qv_vector_ops, QV_METRIC_L2) \
	F(vector_negative_inner_product, qv_vector_ops, QV_METRIC_IP) \
	F(l1_distance, qv_vector_ops, QV_METRIC_L1) \
	F(halfvec_l2_squared_distance, qv_halfvec_ops, QV_METRIC_L2) \
	F(halfvec_negative_inner_product, qv_halfvec_ops, QV_METRIC_IP) \
	F(halfvec_l1_distance, qv_halfvec_ops, QV_METRIC_L1) \
	F(sparsevec_l2_squared_distance, qv_sparsevec_ops, QV_METRIC_L2) \
	F(sparsevec_negative_inner_product, qv_sparsevec_ops, QV_METRIC_IP) \
	F(sparsevec_l1_distance, qv_sparsevec_ops, QV_METRIC_L1) \
	F(hamming_distance, qv_bit_ops, QV_METRIC_HAMMING) \
	F(jaccard_distance, qv_bit_ops, QV_METRIC_JACCARD)

#define DECLARE(function, type, metric) extern Datum function(PG_FUNCTION_ARGS);
DISTANCE_FUNCTIONS(DECLARE)
#undef DECLARE

static const struct
{
	PGFunction	function;
	const char *symbol;
	const VectorTypeOps *type;
	QvMetric	metric;
}			distance_functions[] = {
#define ENTRY(function, type, metric) {function, #function, &type, metric},
	DISTANCE_FUNCTIONS(ENTRY)
#undef ENTRY
};

/* False when the distance function is none that we know. */
static bool
find_opclass(const FmgrInfo *proc, bool has_norm, QvOpclassInfo *info)
{
	char	   *symbol;
	int			i = 0;

	while (i < lengthof(distance_functions) &&
		   proc->fn_addr != distance_functions[i].function)
		i++;
	if (i == lengthof(distance_functions) &&
		(symbol = QvSharedSymbol(proc->fn_oid)) != NULL)
	{
		for (i = 0; i < lengthof(distance_functions); i++)
			if (strcmp(symbol, distance_functions[i].symbol) == 0)
				break;
		pfree(symbol);
	}
	if (i == lengthof(distance_functions))
		return false;
	info->type = distance_functions[i].type;
	info->metric = distance_functions[i].metric;
	if (info->metric == QV_METRIC_IP && has_norm)
		info->metric = QV_METRIC_COSINE;
	return true;
}

void
QvGetOpclass(Relation index, QvOpclassInfo *info)
{
	const FmgrInfo *proc = index_getprocinfo(index, 1, HNSW_DISTANCE_PROC);

	if (!find_opclass(proc, OidIsValid(index_getprocid(index, 1, HNSW_NORM_PROC)), info))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("operator class of index \"%s\" orders by %s, which Quiver does not know",
						RelationGetRelationName(index), get_func_name(proc->fn_oid))));
}

void
QvGetOpclassOf(Oid distance, bool has_norm, const char *name, QvOpclassInfo *info)
{
	FmgrInfo	proc;

	fmgr_info(distance, &proc);
	if (!find_opclass(&proc, has_norm, info))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("operator class \"%s\" orders by %s, which Quiver does not know",
						name, get_func_name(distance))));
}
