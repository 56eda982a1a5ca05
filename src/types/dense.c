/*
 * dense.c
 *		Everything vector and halfvec have in common.
 */
#include "types/dense.h"

#include <math.h>

#include "libpq/pqformat.h"
#include "port/pg_bswap.h"
#include "types/text.h"
#include "utils/float.h"

/* The start of all dense values. */
typedef struct DenseHeader
{
	int32		vl_len_;
	int16		dim;
	int16		unused;
} DenseHeader;

void *
QvDenseElems(void *value)
{
	return (char *) value + sizeof(DenseHeader);
}

void *
QvDenseNew(const DenseType *type, int dim)
{
	Size		size = sizeof(DenseHeader) + (Size) dim * type->elem_size;
	DenseHeader *value = palloc(size);

	SET_VARSIZE(value, size);
	value->dim = (int16) dim;
	value->unused = 0;
	return value;
}

/* Returns a new value of zeros. */
static void *
new_zeros(const DenseType *type, int dim)
{
	void	   *value = QvDenseNew(type, dim);

	memset(QvDenseElems(value), 0, (Size) dim * type->elem_size);
	return value;
}

const float *
QvDenseFloats(const DenseType *type, DenseView v)
{
	float	   *x;

	if (type->elem_size == sizeof(float) &&
		(uintptr_t) v.x % sizeof(float) == 0)
		return (const float *) v.x;

	x = palloc(v.dim * sizeof(float));
	type->load(v.x, x, v.dim);
	return x;
}

void
QvDenseCheckFloats(const DenseType *type, const qv_unaligned_float *x, int n)
{
	float		overflow = type->overflow;
	int			bad = 0;

	/* without a branch, so that the compiler uses vector instructions */
	for (int i = 0; i < n; i++)
		bad |= !(fabsf(x[i]) < overflow);
	if (likely(!bad))
		return;

	for (int i = 0; i < n; i++)
		QvCheckFinite(type->name, x[i], NULL);
	for (int i = 0; i < n; i++)
	{
		if (fabsf(x[i]) >= overflow)
		{
			char		text[QV_FLOAT_TEXT_LEN + 1];

			*QvAppendFloat(text, x[i]) = '\0';
			ereport(ERROR,
					(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
					 errmsg("\"%s\" is out of range for type %s", text, type->name)));
		}
	}
}

void *
QvDenseFromFloats(const DenseType *type, const float *x, int dim)
{
	void	   *value;

	QvDenseCheckFloats(type, x, dim);
	value = QvDenseNew(type, dim);
	type->store(x, QvDenseElems(value), dim);
	return value;
}

/* Raises the input functions' usual syntax error; detail may be NULL. */
static bool
SyntaxError(const DenseType *type, const char *text, const char *detail,
			Node *escontext)
{
	QvEreturn(escontext, false,
			  (errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
			   errmsg("invalid input syntax for type %s: \"%s\"", type->name, text),
			   detail ? errdetail("%s", detail) : 0));
}

/*
 * Parses "[1,2,3]" into x, which has room for type->max_dim elements, and its length into
 * *dim.
 */
static bool
ParseList(const DenseType *type, const char *text, float *x, int *dim,
		  Node *escontext)
{
	const char *limit = text + strlen(text);
	const char *p = QvSkipSpace(text);
	int			n = 0;

	if (*p != '[')
		return SyntaxError(type, text, "Vector contents must start with \"[\".",
						   escontext);
	p = QvSkipSpace(p + 1);
	if (*p == ']')
	{
		QvCheckDim(type->name, type->max_dim, 0, escontext);
		return false;
	}

	for (;;)
	{
		const char *end;
		bool		range;
		float		value;

		if (n == type->max_dim)
		{
			QvCheckDim(type->name, type->max_dim, n + 1, escontext);
			return false;
		}

		p = QvSkipSpace(p);
		value = QvParseFloat(p, limit, &end, &range);
		if (end == p)
			return SyntaxError(type, text, NULL, escontext);

		/* underflow to zero is not an error, unlike for real */
		if (unlikely(!(fabsf(value) < type->overflow)))
		{
			if (range || isfinite(value))
				QvEreturn(escontext, false,
						  (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
						   errmsg("\"%s\" is out of range for type %s",
								  pnstrdup(p, end - p), type->name)));
			if (!QvCheckFinite(type->name, value, escontext))
				return false;
		}
		x[n++] = value;

		p = QvSkipSpace(end);
		if (*p == ']')
			break;
		if (*p != ',')
			return SyntaxError(type, text, NULL, escontext);
		p++;
	}

	p = QvSkipSpace(p + 1);
	if (*p != '\0')
		return SyntaxError(type, text, "Junk after closing right brace.",
						   escontext);

	*dim = n;
	return true;
}

Datum
QvDenseIn(FunctionCallInfo fcinfo, const DenseType *type)
{
	char	   *text = PG_GETARG_CSTRING(0);
	int32		typmod = PG_GETARG_INT32(2);
	float		x[VECTOR_MAX_DIM];
	int			dim;
	void	   *value;

	StaticAssertStmt(HALFVEC_MAX_DIM <= VECTOR_MAX_DIM, "room for any dense type");

	if (!ParseList(type, text, x, &dim, fcinfo->context) ||
		!QvCheckTypmod(typmod, dim, fcinfo->context))
		PG_RETURN_NULL();

	value = QvDenseNew(type, dim);
	type->store(x, QvDenseElems(value), dim);
	PG_RETURN_POINTER(value);
}

/* Halves are printed as the shortest float32, because clients read that. */
Datum
QvDenseOut(FunctionCallInfo fcinfo, const DenseType *type)
{
	DenseView	v = QV_ARG_DENSE(0);
	const float *x = QvDenseFloats(type, v);
	char	   *text = palloc((Size) v.dim * (QV_FLOAT_TEXT_LEN + 1) + 3);
	char	   *p = text;

	*p++ = '[';
	for (int i = 0; i < v.dim; i++)
	{
		if (i > 0)
			*p++ = ',';
		p = QvAppendFloat(p, x[i]);
	}
	*p++ = ']';
	*p = '\0';

	PG_RETURN_CSTRING(text);
}

/* Copies elements between host order and network order. */
static void
SwapElems(const DenseType *type, void *dst, const void *src, int n)
{
	if (type->elem_size == sizeof(float))
	{
		const char *from = src;
		char	   *to = dst;

		for (int i = 0; i < n; i++, from += sizeof(uint32), to += sizeof(uint32))
		{
			uint32		bits;

			memcpy(&bits, from, sizeof(bits));
			bits = pg_hton32(bits);
			memcpy(to, &bits, sizeof(bits));
		}
	}
	else
	{
		const char *from = src;
		char	   *to = dst;

		for (int i = 0; i < n; i++, from += sizeof(uint16), to += sizeof(uint16))
		{
			uint16		bits;

			memcpy(&bits, from, sizeof(bits));
			bits = pg_hton16(bits);
			memcpy(to, &bits, sizeof(bits));
		}
	}
}

Datum
QvDenseRecv(FunctionCallInfo fcinfo, const DenseType *type)
{
	StringInfo	buf = (StringInfo) PG_GETARG_POINTER(0);
	int32		typmod = PG_GETARG_INT32(2);
	int			dim = (int16) pq_getmsgint(buf, sizeof(int16));
	int			unused = (int16) pq_getmsgint(buf, sizeof(int16));
	const char *elems;
	void	   *value;
	DenseView	v;

	QvCheckDim(type->name, type->max_dim, dim, NULL);
	QvCheckTypmod(typmod, dim, NULL);
	QvCheckUnused(unused);

	elems = pq_getmsgbytes(buf, dim * type->elem_size);
	value = QvDenseNew(type, dim);
	SwapElems(type, QvDenseElems(value), elems, dim);

	v = DenseViewOf(value);
	QvCheckAllFinite(type->name, QvDenseFloats(type, v), dim);

	PG_RETURN_POINTER(value);
}

Datum
QvDenseSend(FunctionCallInfo fcinfo, const DenseType *type)
{
	DenseView	v = QV_ARG_DENSE(0);
	int			bytes = v.dim * type->elem_size;
	StringInfoData buf;

	pq_begintypsend(&buf);
	pq_sendint16(&buf, (uint16) v.dim);
	pq_sendint16(&buf, 0);
	enlargeStringInfo(&buf, bytes);
	SwapElems(type, buf.data + buf.len, v.x, v.dim);
	buf.len += bytes;

	PG_RETURN_BYTEA_P(pq_endtypsend(&buf));
}

Datum
QvDenseDims(FunctionCallInfo fcinfo)
{
	struct varlena *value = (struct varlena *) PG_GETARG_POINTER(0);

	/* only the first bytes are fetched from TOAST */
	if (VARATT_IS_EXTERNAL(value))
		value = PG_DETOAST_DATUM_SLICE(PG_GETARG_DATUM(0), 0,
									   sizeof(DenseHeader) - VARHDRSZ);
	else
		value = PG_DETOAST_DATUM_PACKED(PG_GETARG_DATUM(0));

	PG_RETURN_INT32(DenseViewOf(value).dim);
}

Datum
QvDenseNorm(FunctionCallInfo fcinfo, const DenseType *type)
{
	DenseView	v = QV_ARG_DENSE(0);

	PG_RETURN_FLOAT8(sqrt(qv_kernels.norm2_f64(QvDenseFloats(type, v), v.dim)));
}

/*
 * Makes a new value and returns where its floats are computed: in the value itself, if
 * its elements are floats.  Computed() completes it.
 */
static float *
NewComputed(const DenseType *type, int dim, void **value)
{
	*value = QvDenseNew(type, dim);
	if (type->elem_size == sizeof(float))
		return QvDenseElems(*value);
	return palloc(dim * sizeof(float));
}

/*
 * Completes a value whose floats x are the result of arithmetic, finite or overflowed.
 * Floats from users go through QvDenseFromFloats().
 */
static Datum
Computed(const DenseType *type, void *value, const float *x, int dim)
{
	float		limit = type->overflow;
	int			overflow = 0;

	for (int i = 0; i < dim; i++)
		overflow |= (fabsf(x[i]) >= limit);
	if (overflow)
		float_overflow_error();

	if (x != QvDenseElems(value))
		type->store(x, QvDenseElems(value), dim);
	PG_RETURN_POINTER(value);
}

/* The zero vector is its own normalization. */
Datum
QvDenseNormalize(FunctionCallInfo fcinfo, const DenseType *type)
{
	DenseView	v = QV_ARG_DENSE(0);
	const float *x = QvDenseFloats(type, v);
	double		norm = sqrt(qv_kernels.norm2_f64(x, v.dim));
	void	   *value;
	float	   *out;

	if (norm == 0)
		PG_RETURN_POINTER(new_zeros(type, v.dim));

	out = NewComputed(type, v.dim, &value);
	qv_kernels.divide_f32(x, norm, out, v.dim);

	return Computed(type, value, out, v.dim);
}

/* Raises the error of the first bad product, if one of the products is too small. */
static void
ProductError(const DenseType *type, const float *x, const float *y,
			 const float *out, int dim)
{
	for (int i = 0; i < dim; i++)
	{
		if (fabsf(out[i]) >= type->overflow)
			float_overflow_error();
		if (fabsf(out[i]) <= type->underflow && x[i] != 0 && y[i] != 0)
			float_underflow_error();
	}
}

Datum
QvDenseArithmetic(FunctionCallInfo fcinfo, const DenseType *type, DenseOperator op)
{
	DenseView	a = QV_ARG_DENSE(0);
	DenseView	b = QV_ARG_DENSE(1);
	const float *x;
	const float *y;
	void	   *value;
	float	   *out;

	if (a.dim != b.dim)
		QvDifferentDims(type->name, a.dim, b.dim);

	x = QvDenseFloats(type, a);
	y = QvDenseFloats(type, b);
	out = NewComputed(type, a.dim, &value);

	switch (op)
	{
		case DENSE_ADD:
			for (int i = 0; i < a.dim; i++)
				out[i] = x[i] + y[i];
			break;
		case DENSE_SUB:
			for (int i = 0; i < a.dim; i++)
				out[i] = x[i] - y[i];
			break;
		case DENSE_MUL:
			{
				float		low = type->underflow;
				int			underflow = 0;

				for (int i = 0; i < a.dim; i++)
				{
					out[i] = x[i] * y[i];
					underflow |= (fabsf(out[i]) <= low) & (x[i] != 0) & (y[i] != 0);
				}
				if (unlikely(underflow))
					ProductError(type, x, y, out, a.dim);
				break;
			}
	}

	return Computed(type, value, out, a.dim);
}

Datum
QvDenseConcat(FunctionCallInfo fcinfo, const DenseType *type)
{
	DenseView	a = QV_ARG_DENSE(0);
	DenseView	b = QV_ARG_DENSE(1);
	void	   *value;
	char	   *elems;

	QvCheckDim(type->name, type->max_dim, a.dim + b.dim, NULL);

	value = QvDenseNew(type, a.dim + b.dim);
	elems = QvDenseElems(value);
	memcpy(elems, a.x, (Size) a.dim * type->elem_size);
	memcpy(elems + (Size) a.dim * type->elem_size, b.x,
		   (Size) b.dim * type->elem_size);

	PG_RETURN_POINTER(value);
}

/* Sets one bit for each element: 1 where it is positive. */
Datum
QvDenseQuantize(FunctionCallInfo fcinfo, const DenseType *type)
{
	DenseView	v = QV_ARG_DENSE(0);
	struct varlena *bits = QvNewBits(v.dim);

	type->positive_bits(v.x, QvBitBytes(bits), v.dim);

	PG_RETURN_POINTER(bits);
}

/*
 * Returns count elements from start, counted from 1.  As in substring, what lies before
 * the first or after the last element is cut off.
 */
Datum
QvDenseSubvector(FunctionCallInfo fcinfo, const DenseType *type)
{
	DenseView	v = QV_ARG_DENSE(0);
	int64		start = PG_GETARG_INT32(1);
	int64		count = PG_GETARG_INT32(2);
	int64		first = Max(start, 1);
	int64		end = Min(start + count, (int64) v.dim + 1);
	int			dim = count < 1 ? 0 : (int) Max(end - first, 0);
	void	   *value;

	QvCheckDim(type->name, type->max_dim, dim, NULL);

	value = QvDenseNew(type, dim);
	memcpy(QvDenseElems(value),
		   (const char *) v.x + (first - 1) * type->elem_size,
		   (Size) dim * type->elem_size);

	PG_RETURN_POINTER(value);
}
