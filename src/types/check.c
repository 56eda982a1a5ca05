/*
 * check.c
 *		The conditions that values of all three types must meet, with the messages
 *		that clients match on.
 *
 * Functions with an escontext return false after a soft error, from PostgreSQL 16 on.
 * NULL means a hard error.
 */
#include "types/values.h"

#include <math.h>

#include "utils/array.h"

/* Checks that there are 1 to max dimensions. */
bool
QvCheckDim(const char *name, int max, int dim, Node *escontext)
{
	if (dim < 1)
		QvEreturn(escontext, false,
				  (errcode(ERRCODE_DATA_EXCEPTION),
				   errmsg("%s must have at least 1 dimension", name)));
	if (dim > max)
		QvEreturn(escontext, false,
				  (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				   errmsg("%s cannot have more than %d dimensions", name, max)));
	return true;
}

/*
 * Checks the dimensions of the column, if it has any.  The typmod is the number itself.
 */
bool
QvCheckTypmod(int32 typmod, int dim, Node *escontext)
{
	if (typmod != -1 && typmod != dim)
		QvEreturn(escontext, false,
				  (errcode(ERRCODE_DATA_EXCEPTION),
				   errmsg("expected %d dimensions, not %d", typmod, dim)));
	return true;
}

/* Checks the reserved field of the binary formats. */
void
QvCheckUnused(int unused)
{
	if (unused != 0)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_EXCEPTION),
				 errmsg("expected unused to be 0, not %d", unused)));
}

bool
QvCheckFinite(const char *name, float value, Node *escontext)
{
	if (unlikely(isnan(value)))
		QvEreturn(escontext, false,
				  (errcode(ERRCODE_DATA_EXCEPTION),
				   errmsg("NaN not allowed in %s", name)));
	if (unlikely(isinf(value)))
		QvEreturn(escontext, false,
				  (errcode(ERRCODE_DATA_EXCEPTION),
				   errmsg("infinite value not allowed in %s", name)));
	return true;
}

void
QvCheckAllFinite(const char *name, const float *x, int n)
{
	bool		finite = true;

	/* one pass without branches, then a search for the bad element */
	for (int i = 0; i < n; i++)
		finite &= (x[i] - x[i] == 0);
	if (likely(finite))
		return;
	for (int i = 0; i < n; i++)
		QvCheckFinite(name, x[i], NULL);
}

void
QvDifferentDims(const char *name, int a, int b)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATA_EXCEPTION),
			 errmsg("different %s dimensions %d and %d", name, a, b)));
}

/* The typmod input function.  It takes one number, the dimensions. */
Datum
QvTypmodIn(FunctionCallInfo fcinfo, const char *name, int max)
{
	int			n;
	int32	   *typmods = ArrayGetIntegerTypmods(PG_GETARG_ARRAYTYPE_P(0), &n);

	if (n != 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid type modifier")));
	if (typmods[0] < 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("dimensions for type %s must be at least 1", name)));
	if (typmods[0] > max)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("dimensions for type %s cannot exceed %d", name, max)));

	PG_RETURN_INT32(typmods[0]);
}
