/*
 * casts.c
 *		The casts: between the three types, and from and to arrays.
 *
 * Every cast function takes (value, typmod, explicit) and checks the typmod.
 */
#include "types/casts.h"

#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/fmgrprotos.h"

/* Casts a type to itself: only the typmod is checked, and the value stays as it is. */
Datum
QvDenseTypmodCast(FunctionCallInfo fcinfo)
{
	int32		typmod = PG_GETARG_INT32(1);

	if (typmod != -1)
		QvCheckTypmod(typmod, QV_ARG_DENSE(0).dim, NULL);

	PG_RETURN_DATUM(PG_GETARG_DATUM(0));
}

QV_FUNCTION(sparsevec)
{
	int32		typmod = PG_GETARG_INT32(1);

	if (typmod != -1)
	{
		struct varlena *value = PG_DETOAST_DATUM_PACKED(PG_GETARG_DATUM(0));

		QvCheckTypmod(typmod, SparseViewOf(value).dim, NULL);
	}

	PG_RETURN_DATUM(PG_GETARG_DATUM(0));
}

/*
 * Checks the number of elements of a one-dimensional array of one of the four number
 * types, and returns them as floats.
 */
static float *
ArrayFloats(ArrayType *array, const char *name, int max_dim, int32 typmod, int *dim)
{
	int			n = ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));
	const char *data = ARR_DATA_PTR(array);
	float	   *x;

	if (ARR_NDIM(array) > 1)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_EXCEPTION),
				 errmsg("array must be 1-D")));
	if (ARR_HASNULL(array) && array_contains_nulls(array))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("array must not contain nulls")));
	QvCheckDim(name, max_dim, n, NULL);
	QvCheckTypmod(typmod, n, NULL);

	x = palloc(n * sizeof(float));
	switch (ARR_ELEMTYPE(array))
	{
		case INT4OID:
			for (int i = 0; i < n; i++)
				x[i] = (float) ((const int32 *) data)[i];
			break;
		case FLOAT4OID:
			memcpy(x, data, n * sizeof(float));
			break;
		case FLOAT8OID:
			for (int i = 0; i < n; i++)
				x[i] = (float) ((const float8 *) data)[i];
			break;
		case NUMERICOID:
			{
				Datum	   *elems;
				int			count;

				deconstruct_array(array, NUMERICOID, -1, false, TYPALIGN_INT,
								  &elems, NULL, &count);
				for (int i = 0; i < n; i++)
					x[i] = DatumGetFloat4(DirectFunctionCall1(numeric_float4,
															  elems[i]));
				pfree(elems);
				break;
			}
		default:
			ereport(ERROR,
					(errcode(ERRCODE_DATA_EXCEPTION),
					 errmsg("unsupported array type")));
	}

	*dim = n;
	return x;
}

static Datum
DenseFromArray(FunctionCallInfo fcinfo, const DenseType *type)
{
	int			dim;
	float	   *x = ArrayFloats(PG_GETARG_ARRAYTYPE_P(0), type->name,
								type->max_dim, PG_GETARG_INT32(1), &dim);

	PG_RETURN_POINTER(QvDenseFromFloats(type, x, dim));
}

QV_FUNCTION(array_to_vector)
{
	return DenseFromArray(fcinfo, &qv_vector_type);
}

QV_FUNCTION(array_to_halfvec)
{
	return DenseFromArray(fcinfo, &qv_halfvec_type);
}

QV_FUNCTION(array_to_sparsevec)
{
	int			dim;
	float	   *x = ArrayFloats(PG_GETARG_ARRAYTYPE_P(0), "sparsevec",
								SPARSEVEC_MAX_DIM, PG_GETARG_INT32(1), &dim);
	SparseVector *result = QvSparseFromFloats(x, dim);

	QvCheckAllFinite("sparsevec", SparseValues(result), result->nnz);
	PG_RETURN_POINTER(result);
}

static Datum
DenseToFloat4(FunctionCallInfo fcinfo, const DenseType *type)
{
	DenseView	v = QV_ARG_DENSE(0);
	Size		size = ARR_OVERHEAD_NONULLS(1) + (Size) v.dim * sizeof(float4);
	ArrayType  *array = palloc0(size);

	SET_VARSIZE(array, size);
	array->ndim = 1;
	array->dataoffset = 0;
	array->elemtype = FLOAT4OID;
	ARR_DIMS(array)[0] = v.dim;
	ARR_LBOUND(array)[0] = 1;
	type->load(v.x, (float *) ARR_DATA_PTR(array), v.dim);

	PG_RETURN_ARRAYTYPE_P(array);
}

QV_FUNCTION(vector_to_float4)
{
	return DenseToFloat4(fcinfo, &qv_vector_type);
}

QV_FUNCTION(halfvec_to_float4)
{
	return DenseToFloat4(fcinfo, &qv_halfvec_type);
}

static Datum
DenseFromDense(FunctionCallInfo fcinfo, const DenseType *to, const DenseType *from)
{
	DenseView	v = QV_ARG_DENSE(0);

	QvCheckDim(to->name, to->max_dim, v.dim, NULL);
	QvCheckTypmod(PG_GETARG_INT32(1), v.dim, NULL);

	PG_RETURN_POINTER(QvDenseFromFloats(to, QvDenseFloats(from, v), v.dim));
}

QV_FUNCTION(halfvec_to_vector)
{
	return DenseFromDense(fcinfo, &qv_vector_type, &qv_halfvec_type);
}

QV_FUNCTION(vector_to_halfvec)
{
	return DenseFromDense(fcinfo, &qv_halfvec_type, &qv_vector_type);
}

static Datum
DenseFromSparse(FunctionCallInfo fcinfo, const DenseType *to)
{
	SparseView	v = SparseViewOf(PG_DETOAST_DATUM_PACKED(PG_GETARG_DATUM(0)));
	QvSparse	from = {(const int32_t *) v.indices, (const float *) v.values, v.nnz};
	void	   *value;

	QvCheckDim(to->name, to->max_dim, v.dim, NULL);
	QvCheckTypmod(PG_GETARG_INT32(1), v.dim, NULL);

	value = QvDenseNew(to, v.dim);
	if (unlikely(!to->scatter(&from, QvDenseElems(value), v.dim)))
	{
		/* a damaged value must not write outside the new one */
		for (int i = 0; i < v.nnz; i++)
		{
			if (v.indices[i] < 0 || v.indices[i] >= v.dim)
				ereport(ERROR,
						(errcode(ERRCODE_DATA_CORRUPTED),
						 errmsg("sparsevec index out of bounds")));
		}
		QvDenseCheckFloats(to, v.values, v.nnz);
	}

	PG_RETURN_POINTER(value);
}

QV_FUNCTION(sparsevec_to_vector)
{
	return DenseFromSparse(fcinfo, &qv_vector_type);
}

QV_FUNCTION(sparsevec_to_halfvec)
{
	return DenseFromSparse(fcinfo, &qv_halfvec_type);
}

static Datum
SparseFromDense(FunctionCallInfo fcinfo, const DenseType *from)
{
	DenseView	v = QV_ARG_DENSE(0);

	QvCheckDim("sparsevec", SPARSEVEC_MAX_DIM, v.dim, NULL);
	QvCheckTypmod(PG_GETARG_INT32(1), v.dim, NULL);

	PG_RETURN_POINTER(QvSparseFromFloats(QvDenseFloats(from, v), v.dim));
}

QV_FUNCTION(vector_to_sparsevec)
{
	return SparseFromDense(fcinfo, &qv_vector_type);
}

QV_FUNCTION(halfvec_to_sparsevec)
{
	return SparseFromDense(fcinfo, &qv_halfvec_type);
}
