/*
 * values.h
 *		The layout of vector, halfvec and sparsevec values, and how SQL functions get
 *		their arguments.
 *
 * The layouts are pgvector's, byte for byte.  A column written by one library is read by
 * the other. src/types/README.md has the layouts as tables.
 */
#ifndef QV_VALUES_H
#define QV_VALUES_H

#include "compat.h"

#include "fmgr.h"

#define VECTOR_MAX_DIM		16000
#define HALFVEC_MAX_DIM		16000
#define SPARSEVEC_MAX_DIM	1000000000
#define SPARSEVEC_MAX_NNZ	16000

typedef struct Vector
{
	int32		vl_len_;		/* varlena header */
	int16		dim;
	int16		unused;			/* zero */
	float		x[FLEXIBLE_ARRAY_MEMBER];
} Vector;

typedef struct HalfVector
{
	int32		vl_len_;		/* varlena header */
	int16		dim;
	int16		unused;			/* zero */
	uint16		x[FLEXIBLE_ARRAY_MEMBER];	/* IEEE binary16 */
} HalfVector;

/* Values follow the indices: see SparseValues(). */
typedef struct SparseVector
{
	int32		vl_len_;		/* varlena header */
	int32		dim;
	int32		nnz;
	int32		unused;			/* zero */
	int32		indices[FLEXIBLE_ARRAY_MEMBER]; /* from 0, ascending */
} SparseVector;

StaticAssertDecl(offsetof(Vector, x) == 8, "vector layout");
StaticAssertDecl(offsetof(HalfVector, x) == 8, "halfvec layout");
StaticAssertDecl(offsetof(SparseVector, indices) == 16, "sparsevec layout");

static inline float *
SparseValues(SparseVector *v)
{
	return (float *) (v->indices + v->nnz);
}

/*
 * Views of a value, which may have a short varlena header.  Small inline values are used
 * where they lie, instead of being copied for alignment.
 */
typedef float qv_unaligned_float __attribute__((aligned(1)));
typedef uint16 qv_unaligned_half __attribute__((aligned(1)));
typedef int32 qv_unaligned_int __attribute__((aligned(1)));

typedef struct DenseView
{
	int			dim;
	const void *x;				/* float or half elements, unaligned */
} DenseView;

typedef struct SparseView
{
	int			dim;
	int			nnz;
	const qv_unaligned_int *indices;
	const qv_unaligned_float *values;
} SparseView;

typedef struct BitView
{
	int			dim;			/* bits */
	int			bytes;
	const uint8 *x;
} BitView;

/*
 * Makes a view of a value that is neither compressed nor out of line.  Either varlena
 * header is allowed.
 */
static inline DenseView
DenseViewOf(const void *value)
{
	const char *data = VARDATA_ANY(value);
	DenseView	v;
	int16		dim;

	memcpy(&dim, data, sizeof(dim));
	v.dim = dim;
	v.x = data + 2 * sizeof(int16);
	return v;
}

static inline SparseView
SparseViewOf(const void *value)
{
	const qv_unaligned_int *data = (const qv_unaligned_int *) VARDATA_ANY(value);
	SparseView	v;

	v.dim = data[0];
	v.nnz = data[1];
	v.indices = data + 3;
	v.values = (const qv_unaligned_float *) (v.indices + v.nnz);
	return v;
}

static inline BitView
BitViewOf(const void *value)
{
	const qv_unaligned_int *data = (const qv_unaligned_int *) VARDATA_ANY(value);
	BitView		v;

	v.dim = data[0];
	v.bytes = (int) (VARSIZE_ANY_EXHDR(value) - sizeof(int32));
	v.x = (const uint8 *) (data + 1);
	return v;
}

/* The head of an SQL-callable function of any of our types. */
#define QV_FUNCTION(symbol) \
	extern PGDLLEXPORT Datum symbol(PG_FUNCTION_ARGS); \
	PG_FUNCTION_INFO_V1(symbol); \
	Datum symbol(PG_FUNCTION_ARGS)

/*
 * The six comparison operators and the btree support function of a type, all from one
 * three-way comparison of two views. btree calls them without resetting memory, so a
 * detoasted copy is freed.
 */
#define QV_COMPARISON(symbol, view, compare, returned) \
	QV_FUNCTION(symbol) \
	{ \
		struct varlena *a = PG_DETOAST_DATUM_PACKED(PG_GETARG_DATUM(0)); \
		struct varlena *b = PG_DETOAST_DATUM_PACKED(PG_GETARG_DATUM(1)); \
		int			cmp = compare(view(a), view(b)); \
		\
		PG_FREE_IF_COPY(a, 0); \
		PG_FREE_IF_COPY(b, 1); \
		returned; \
	}

#define QV_COMPARISONS(type, view, compare) \
	QV_COMPARISON(type##_lt, view, compare, PG_RETURN_BOOL(cmp < 0)) \
	QV_COMPARISON(type##_le, view, compare, PG_RETURN_BOOL(cmp <= 0)) \
	QV_COMPARISON(type##_eq, view, compare, PG_RETURN_BOOL(cmp == 0)) \
	QV_COMPARISON(type##_ne, view, compare, PG_RETURN_BOOL(cmp != 0)) \
	QV_COMPARISON(type##_ge, view, compare, PG_RETURN_BOOL(cmp >= 0)) \
	QV_COMPARISON(type##_gt, view, compare, PG_RETURN_BOOL(cmp > 0)) \
	QV_COMPARISON(type##_cmp, view, compare, PG_RETURN_INT32(cmp))

/* check.c: conditions of all three types. name is the type's SQL name. */
extern bool QvCheckDim(const char *name, int max, int dim, Node *escontext);
extern bool QvCheckTypmod(int32 typmod, int dim, Node *escontext);
extern void QvCheckUnused(int unused);
extern bool QvCheckFinite(const char *name, float value, Node *escontext);
extern void QvCheckAllFinite(const char *name, const float *x, int n);
pg_noreturn extern void QvDifferentDims(const char *name, int a, int b);
extern Datum QvTypmodIn(FunctionCallInfo fcinfo, const char *name, int max);

/* sparsevec.c */
extern SparseVector *QvSparseFromFloats(const float *x, int dim);

/* bit.c */
extern struct varlena *QvNewBits(int dim);
extern uint8 *QvBitBytes(struct varlena *bits);
pg_noreturn extern void QvDifferentBitLengths(int a, int b);

#endif							/* QV_VALUES_H */
