/*
 * sparsevec.c
 *		The type sparsevec: the non-zero elements of a long vector.
 *
 * Elements are numbered from 1 in text and from 0 everywhere else.
 */
#include "types/values.h"

#include <math.h>

#include "libpq/pqformat.h"
#include "types/dense.h"
#include "types/text.h"
#include "utils/builtins.h"
#include "utils/float.h"

/* An element of a value that is being read from text. */
typedef struct SparseElem
{
	int32		index;
	float		value;
} SparseElem;

/* Returns a new value whose elements the caller sets. */
static SparseVector *
new_sparse(int dim, int nnz)
{
	Size		size = offsetof(SparseVector, indices) +
		(Size) nnz * (sizeof(int32) + sizeof(float));
	SparseVector *result = palloc(size);

	SET_VARSIZE(result, size);
	result->dim = dim;
	result->nnz = nnz;
	result->unused = 0;
	return result;
}

static bool
CheckNnz(int nnz, int dim, Node *escontext)
{
	if (nnz < 0)
		QvEreturn(escontext, false,
				  (errcode(ERRCODE_DATA_EXCEPTION),
				   errmsg("sparsevec cannot have negative number of elements")));
	if (nnz > SPARSEVEC_MAX_NNZ)
		QvEreturn(escontext, false,
				  (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				   errmsg("sparsevec cannot have more than %d non-zero elements",
						  SPARSEVEC_MAX_NNZ)));
	if (nnz > dim)
		QvEreturn(escontext, false,
				  (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				   errmsg("sparsevec cannot have more elements than dimensions")));
	return true;
}

/* Checks that indices[i] is in range and follows indices[i - 1]. */
static bool
CheckIndex(const int32 *indices, int i, int dim, Node *escontext)
{
	if (indices[i] < 0 || indices[i] >= dim)
		QvEreturn(escontext, false,
				  (errcode(ERRCODE_DATA_EXCEPTION),
				   errmsg("sparsevec index out of bounds")));
	if (i > 0 && indices[i] < indices[i - 1])
		QvEreturn(escontext, false,
				  (errcode(ERRCODE_DATA_EXCEPTION),
				   errmsg("sparsevec indices must be in ascending order")));
	if (i > 0 && indices[i] == indices[i - 1])
		QvEreturn(escontext, false,
				  (errcode(ERRCODE_DATA_EXCEPTION),
				   errmsg("sparsevec indices must not contain duplicates")));
	return true;
}

/* Makes a value of the non-zero ones of dim floats.  NaN is not zero. */
SparseVector *
QvSparseFromFloats(const float *x, int dim)
{
	SparseVector *result;
	float	   *values;
	int			nnz = 0;
	int			j = 0;

	for (int i = 0; i < dim; i++)
		nnz += (x[i] != 0);
	CheckNnz(nnz, dim, NULL);

	result = new_sparse(dim, nnz);
	values = SparseValues(result);
	for (int i = 0; i < dim; i++)
	{
		if (x[i] != 0)
		{
			result->indices[j] = i;
			values[j] = x[i];
			j++;
		}
	}
	return result;
}

/* Raises the usual syntax error; detail may be NULL. */
static bool
SyntaxError(const char *text, const char *detail, Node *escontext)
{
	QvEreturn(escontext, false,
			  (errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
			   errmsg("invalid input syntax for type sparsevec: \"%s\"", text),
			   detail ? errdetail("%s", detail) : 0));
}

/*
 * Reads an integer and clamps it to the range of int32.  Returns false if there is none.
 */
static bool
ParseInt(const char **p, int *value)
{
	char	   *end;
	long		number = strtol(*p, &end, 10);

	if (end == *p)
		return false;
	*p = end;
	*value = (int) Min(Max(number, PG_INT32_MIN + 1L), (long) PG_INT32_MAX);
	return true;
}

/*
 * Parses "{index:value,...}/dimensions".  Zeros are left out. elems has room for one
 * element more than the text has commas.
 */
static bool
ParseElems(const char *text, SparseElem *elems, int *nnz, int *dim,
		   Node *escontext)
{
	const char *limit = text + strlen(text);
	const char *p = QvSkipSpace(text);
	int			n = 0;

	if (*p != '{')
		return SyntaxError(text, "Vector contents must start with \"{\".",
						   escontext);
	p = QvSkipSpace(p + 1);

	while (*p != '}')
	{
		const char *end;
		int			index;
		float		value;
		bool		range;

		p = QvSkipSpace(p);
		if (!ParseInt(&p, &index))
			return SyntaxError(text, NULL, escontext);
		p = QvSkipSpace(p);
		if (*p != ':')
			return SyntaxError(text, NULL, escontext);
		p = QvSkipSpace(p + 1);

		value = QvParseFloat(p, limit, &end, &range);
		if (end == p)
			return SyntaxError(text, NULL, escontext);
		if (range && (value == 0 || isinf(value)))
			QvEreturn(escontext, false,
					  (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
					   errmsg("\"%s\" is out of range for type sparsevec",
							  pnstrdup(p, end - p))));
		if (!QvCheckFinite("sparsevec", value, escontext))
			return false;

		if (value != 0)
		{
			elems[n].index = index - 1;
			elems[n].value = value;
			n++;
		}

		p = QvSkipSpace(end);
		if (*p == ',')
		{
			/* another element must follow, so "}" here is an error */
			p = QvSkipSpace(p + 1);
			if (*p == '}')
				return SyntaxError(text, NULL, escontext);
		}
		else if (*p != '}')
			return SyntaxError(text, NULL, escontext);
	}

	p = QvSkipSpace(p + 1);
	if (*p != '/')
		return SyntaxError(text, "Unexpected end of input.", escontext);
	p = QvSkipSpace(p + 1);
	if (!ParseInt(&p, dim))
		return SyntaxError(text, NULL, escontext);
	p = QvSkipSpace(p);
	if (*p != '\0')
		return SyntaxError(text, "Junk after closing.", escontext);

	*nnz = n;
	return true;
}

static int
CompareElems(const void *a, const void *b)
{
	int32		x = ((const SparseElem *) a)->index;
	int32		y = ((const SparseElem *) b)->index;

	return (x > y) - (x < y);
}

QV_FUNCTION(sparsevec_in)
{
	char	   *text = PG_GETARG_CSTRING(0);
	int32		typmod = PG_GETARG_INT32(2);
	Node	   *escontext = fcinfo->context;
	SparseElem *elems;
	SparseVector *result;
	float	   *values;
	int			room = 1;
	int			nnz;
	int			dim;

	/* before allocating: zeros count too, as in pgvector */
	for (const char *p = text; *p; p++)
		room += (*p == ',');
	if (!CheckNnz(room, PG_INT32_MAX, escontext))
		PG_RETURN_NULL();

	elems = palloc(room * sizeof(SparseElem));
	if (!ParseElems(text, elems, &nnz, &dim, escontext) ||
		!QvCheckDim("sparsevec", SPARSEVEC_MAX_DIM, dim, escontext) ||
		!QvCheckTypmod(typmod, dim, escontext))
		PG_RETURN_NULL();

	for (int i = 1; i < nnz; i++)
	{
		if (elems[i].index < elems[i - 1].index)
		{
			qsort(elems, nnz, sizeof(SparseElem), CompareElems);
			break;
		}
	}

	result = new_sparse(dim, nnz);
	values = SparseValues(result);
	for (int i = 0; i < nnz; i++)
	{
		result->indices[i] = elems[i].index;
		values[i] = elems[i].value;
		if (!CheckIndex(result->indices, i, dim, escontext))
			PG_RETURN_NULL();
	}
	pfree(elems);

	PG_RETURN_POINTER(result);
}

QV_FUNCTION(sparsevec_out)
{
	SparseView	v = SparseViewOf(PG_DETOAST_DATUM_PACKED(PG_GETARG_DATUM(0)));

	/* ",", index, ":", value; then "{", "}/", dimensions and the end */
	char	   *text = palloc((Size) v.nnz * (1 + 11 + 1 + QV_FLOAT_TEXT_LEN) + 3 + 11 + 1);
	char	   *p = text;

	*p++ = '{';
	for (int i = 0; i < v.nnz; i++)
	{
		if (i > 0)
			*p++ = ',';
		p += pg_ltoa(v.indices[i] + 1, p);
		*p++ = ':';
		p = QvAppendFloat(p, v.values[i]);
	}
	*p++ = '}';
	*p++ = '/';
	p += pg_ltoa(v.dim, p);
	*p = '\0';

	PG_RETURN_CSTRING(text);
}

QV_FUNCTION(sparsevec_typmod_in)
{
	return QvTypmodIn(fcinfo, "sparsevec", SPARSEVEC_MAX_DIM);
}

QV_FUNCTION(sparsevec_recv)
{
	StringInfo	buf = (StringInfo) PG_GETARG_POINTER(0);
	int32		typmod = PG_GETARG_INT32(2);
	int			dim = (int) pq_getmsgint(buf, sizeof(int32));
	int			nnz = (int) pq_getmsgint(buf, sizeof(int32));
	int			unused = (int) pq_getmsgint(buf, sizeof(int32));
	SparseVector *result;
	float	   *values;

	QvCheckDim("sparsevec", SPARSEVEC_MAX_DIM, dim, NULL);
	CheckNnz(nnz, dim, NULL);
	QvCheckTypmod(typmod, dim, NULL);
	QvCheckUnused(unused);

	result = new_sparse(dim, nnz);
	values = SparseValues(result);
	for (int i = 0; i < nnz; i++)
	{
		result->indices[i] = (int32) pq_getmsgint(buf, sizeof(int32));
		CheckIndex(result->indices, i, dim, NULL);
	}
	for (int i = 0; i < nnz; i++)
	{
		values[i] = pq_getmsgfloat4(buf);
		QvCheckFinite("sparsevec", values[i], NULL);
		if (values[i] == 0)
			ereport(ERROR,
					(errcode(ERRCODE_DATA_EXCEPTION),
					 errmsg("binary representation of sparsevec cannot contain zero values")));
	}

	PG_RETURN_POINTER(result);
}

QV_FUNCTION(sparsevec_send)
{
	SparseView	v = SparseViewOf(PG_DETOAST_DATUM_PACKED(PG_GETARG_DATUM(0)));
	StringInfoData buf;

	pq_begintypsend(&buf);
	pq_sendint32(&buf, (uint32) v.dim);
	pq_sendint32(&buf, (uint32) v.nnz);
	pq_sendint32(&buf, 0);
	for (int i = 0; i < v.nnz; i++)
		pq_sendint32(&buf, (uint32) v.indices[i]);
	for (int i = 0; i < v.nnz; i++)
		pq_sendfloat4(&buf, v.values[i]);

	PG_RETURN_BYTEA_P(pq_endtypsend(&buf));
}

static double
SparseNorm(SparseView v)
{
	return sqrt(qv_kernels.norm2_f64((const float *) v.values, v.nnz));
}

QV_FUNCTION(sparsevec_l2_norm)
{
	SparseView	v = SparseViewOf(PG_DETOAST_DATUM_PACKED(PG_GETARG_DATUM(0)));

	PG_RETURN_FLOAT8(SparseNorm(v));
}

/* Returns v, which has nnz non-zero elements, without the others. */
static SparseVector *
WithoutZeros(SparseVector *v, int nnz)
{
	SparseVector *result = new_sparse(v->dim, nnz);
	const float *from = SparseValues(v);
	float	   *to = SparseValues(result);
	int			j = 0;

	for (int i = 0; i < v->nnz; i++)
	{
		if (from[i] != 0)
		{
			result->indices[j] = v->indices[i];
			to[j] = from[i];
			j++;
		}
	}
	return result;
}

/* Elements that become zero in float32 are left out, as zeros always are. */
QV_FUNCTION(sparsevec_l2_normalize)
{
	SparseView	v = SparseViewOf(PG_DETOAST_DATUM_PACKED(PG_GETARG_DATUM(0)));
	SparseVector *result = new_sparse(v.dim, v.nnz);
	float	   *values = SparseValues(result);
	int			zeros = 0;

	memcpy(result->indices, v.indices, v.nnz * sizeof(int32));
	qv_kernels.divide_f32((const float *) v.values, SparseNorm(v), values, v.nnz);

	/* no element is longer than the norm, so none overflows */
	for (int i = 0; i < v.nnz; i++)
		zeros += (values[i] == 0);
	if (unlikely(zeros > 0))
		result = WithoutZeros(result, v.nnz - zeros);

	PG_RETURN_POINTER(result);
}

/*
 * Compares two values as the dense vectors that they stand for.  The first element that
 * differs decides; an element that one of them lacks is zero.  Then the number of
 * dimensions decides.
 */
static int
CompareSparse(const void *value_a, const void *value_b)
{
	SparseView	a = SparseViewOf(value_a);
	SparseView	b = SparseViewOf(value_b);
	int			n = Min(a.nnz, b.nnz);
	int			i = 0;

	while (i < n && a.indices[i] == b.indices[i] && a.values[i] == b.values[i])
		i++;
	if (i < n)
	{
		if (a.indices[i] < b.indices[i])
			return a.values[i] < 0 ? -1 : 1;
		if (a.indices[i] > b.indices[i])
			return b.values[i] < 0 ? 1 : -1;
		return a.values[i] < b.values[i] ? -1 : 1;
	}

	/* one has more elements: do they lie within the other's dimensions? */
	if (a.nnz < b.nnz && b.indices[n] < a.dim)
		return b.values[n] < 0 ? 1 : -1;
	if (a.nnz > b.nnz && a.indices[n] < b.dim)
		return a.values[n] < 0 ? -1 : 1;

	return (a.dim > b.dim) - (a.dim < b.dim);
}

/* A view passed by value would go through memory: see CompareSparse(). */
#define VALUE_ITSELF(value) (value)

QV_COMPARISONS(sparsevec, VALUE_ITSELF, CompareSparse)
