/*
 * aggregate.c
 *		avg and sum of vector and halfvec.
 *
 * The state of avg is a float8[]: the number of rows, then the sums of the
 * elements; {0} before the first row.  A state that belongs to the aggregate
 * (nodeAgg.c) is changed in place, as float8_accum() does, so a row costs no
 * allocation.
 */
#include "types/aggregate.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/float.h"

typedef struct AvgState
{
	ArrayType  *array;
	float8	   *count;
	float8	   *sums;
	int			dim;			/* 0 before the first row */
} AvgState;

/* Returns argument n as a state.  Anyone can call these functions, with any array. */
static AvgState
GetState(FunctionCallInfo fcinfo, int n, const char *type, const char *function)
{
	ArrayType  *array = PG_GETARG_ARRAYTYPE_P(n);
	AvgState	state;

	/* pgvector's code and text */
	if (ARR_NDIM(array) != 1 || ARR_DIMS(array)[0] < 1 ||
		ARR_HASNULL(array) || ARR_ELEMTYPE(array) != FLOAT8OID)
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("%s_%s: expected state array", type, function)));

	state.array = array;
	state.count = (float8 *) ARR_DATA_PTR(array);
	state.sums = state.count + 1;
	state.dim = ARR_DIMS(array)[0] - 1;
	return state;
}

static AvgState
NewState(int dim)
{
	Size		size = ARR_OVERHEAD_NONULLS(1) + (Size) (dim + 1) * sizeof(float8);
	ArrayType  *array = palloc0(size);
	AvgState	state;

	SET_VARSIZE(array, size);
	array->ndim = 1;
	array->dataoffset = 0;
	array->elemtype = FLOAT8OID;
	ARR_DIMS(array)[0] = dim + 1;
	ARR_LBOUND(array)[0] = 1;

	state.array = array;
	state.count = (float8 *) ARR_DATA_PTR(array);
	state.sums = state.count + 1;
	state.dim = dim;
	return state;
}

/* Returns the state to write a result into: old itself if the aggregate owns it. */
static AvgState
WritableState(FunctionCallInfo fcinfo, const AvgState *old)
{
	AvgState	state;

	if (AggCheckCallContext(fcinfo, NULL))
		return *old;

	state = NewState(old->dim);
	memcpy(state.count, old->count, (old->dim + 1) * sizeof(float8));
	return state;
}

static void
CheckSums(const AvgState *state)
{
	bool		overflow = false;

	for (int i = 0; i < state->dim; i++)
		overflow |= isinf(state->sums[i]);
	if (overflow)
		float_overflow_error();
}

/* Adds a row to a state. */
Datum
QvDenseAccum(FunctionCallInfo fcinfo, const DenseType *type)
{
	AvgState	old = GetState(fcinfo, 0, type->name, "accum");
	DenseView	v = QV_ARG_DENSE(1);
	AvgState	state;

	if (old.dim == 0)
	{
		state = NewState(v.dim);
		*state.count = *old.count;
		/* the sum of no rows, so that one of -0 stays */
		for (int i = 0; i < v.dim; i++)
			state.sums[i] = -0.0;
	}
	else
	{
		QvCheckTypmod(old.dim, v.dim, NULL);
		state = WritableState(fcinfo, &old);
	}

	*state.count += 1;
	if (type->elem_size == sizeof(float))
	{
		const qv_unaligned_float *x = v.x;

		for (int i = 0; i < v.dim; i++)
			state.sums[i] += x[i];
	}
	else
	{
		const float *x = QvDenseFloats(type, v);

		for (int i = 0; i < v.dim; i++)
			state.sums[i] += x[i];
	}
	CheckSums(&state);

	PG_RETURN_ARRAYTYPE_P(state.array);
}

/*
 * Combines two states.  SQL's halfvec_combine is this function too, so the messages say
 * vector.  Two states without rows make one. pgvector up to 0.8.6 raises an error for
 * them, which breaks a parallel avg over no rows.
 */
QV_FUNCTION(vector_combine)
{
	AvgState	a = GetState(fcinfo, 0, "vector", "combine");
	AvgState	b = GetState(fcinfo, 1, "vector", "combine");
	AvgState	state;

	if (a.dim == 0 && b.dim == 0)
	{
		state = NewState(0);
		*state.count = *a.count + *b.count;
		PG_RETURN_ARRAYTYPE_P(state.array);
	}

	QvCheckDim("vector", VECTOR_MAX_DIM, Max(a.dim, b.dim), NULL);

	if (a.dim == 0)
	{
		state = NewState(b.dim);
		*state.count = *a.count;
	}
	else
	{
		if (b.dim != 0)
			QvCheckTypmod(a.dim, b.dim, NULL);
		state = WritableState(fcinfo, &a);
	}

	*state.count += *b.count;
	for (int i = 0; i < b.dim; i++)
		state.sums[i] += b.sums[i];
	CheckSums(&state);

	PG_RETURN_ARRAYTYPE_P(state.array);
}

/* avg of no rows is NULL */
Datum
QvDenseAvg(FunctionCallInfo fcinfo, const DenseType *type)
{
	AvgState	state = GetState(fcinfo, 0, type->name, "avg");
	float	   *x;

	if (*state.count == 0)
		PG_RETURN_NULL();

	QvCheckDim(type->name, type->max_dim, state.dim, NULL);

	x = palloc(state.dim * sizeof(float));
	for (int i = 0; i < state.dim; i++)
		x[i] = (float) (state.sums[i] / *state.count);

	PG_RETURN_POINTER(QvDenseFromFloats(type, x, state.dim));
}

/*
 * The operator +, and sum().  The state of sum is a value of the type, and the
 * sum of halfvecs is rounded to halves after every row.
 */
Datum
QvDenseAdd(FunctionCallInfo fcinfo, const DenseType *type)
{
	struct varlena *state = (struct varlena *) PG_GETARG_POINTER(0);
	DenseView	a;
	DenseView	b;
	const float *y;
	bool		overflow = false;

	/*
	 * Only the state of a plain aggregate, with an aligned header, can be
	 * added to.  The state of a window aggregate cannot: the result may be
	 * the state itself.
	 */
	if (AggCheckCallContext(fcinfo, NULL) != AGG_CONTEXT_AGGREGATE ||
		VARATT_IS_EXTENDED(state))
		return QvDenseArithmetic(fcinfo, type, DENSE_ADD);

	a = DenseViewOf(state);
	b = QV_ARG_DENSE(1);
	if (a.dim != b.dim)
		QvDifferentDims(type->name, a.dim, b.dim);

	y = QvDenseFloats(type, b);
	if (type->elem_size == sizeof(float))
	{
		float	   *x = QvDenseElems(state);

		for (int i = 0; i < a.dim; i++)
		{
			x[i] += y[i];
			overflow |= isinf(x[i]);
		}
	}
	else
	{
		float	   *x = palloc(a.dim * sizeof(float));

		type->load(a.x, x, a.dim);
		for (int i = 0; i < a.dim; i++)
		{
			x[i] += y[i];
			overflow |= (fabsf(x[i]) >= type->overflow);
		}
		type->store(x, QvDenseElems(state), a.dim);
	}
	if (overflow)
		float_overflow_error();

	PG_RETURN_POINTER(state);
}
