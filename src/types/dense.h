/*
 * dense.h
 *		The types whose values are a list of floats, vector and halfvec: one
 *		description each, and the functions that work from it.
 *
 * The functions named after SQL functions take the SQL call as it is; the
 * types' own files give them their SQL symbols.  They compute in float32
 * whatever the elements are.
 */
#ifndef QV_DENSE_H
#define QV_DENSE_H

#include "types/values.h"

typedef struct DenseType
{
	const char *name;			/* SQL name */
	int			max_dim;
	int			elem_size;

	/* A float of this magnitude becomes infinite as an element ... */
	float		overflow;
	/* ... and one up to this magnitude becomes zero. */
	float		underflow;

	/* Elements to floats and back; the elements need no alignment. */
	void		(*load) (const void *elems, float *out, int n);
	void		(*store) (const float *x, void *elems, int n);
} DenseType;

extern const DenseType qv_vector_type;
extern const DenseType qv_halfvec_type;

/* A new value of n dimensions, elements zero. */
extern void *QvDenseNew(const DenseType *type, int dim);

/* The elements of a value whose varlena header is the long one. */
extern void *QvDenseElems(void *value);

/*
 * The elements as floats: where they lie if they are floats, else converted
 * into new memory.
 */
extern const float *QvDenseFloats(const DenseType *type, DenseView v);

/* A value made of floats that come from outside: checks that each fits. */
extern void *QvDenseFromFloats(const DenseType *type, const float *x, int dim);

/* Type input and output */
extern Datum QvDenseIn(FunctionCallInfo fcinfo, const DenseType *type);
extern Datum QvDenseOut(FunctionCallInfo fcinfo, const DenseType *type);
extern Datum QvDenseRecv(FunctionCallInfo fcinfo, const DenseType *type);
extern Datum QvDenseSend(FunctionCallInfo fcinfo, const DenseType *type);

/* Functions */
extern Datum QvDenseDims(FunctionCallInfo fcinfo);
extern Datum QvDenseNorm(FunctionCallInfo fcinfo, const DenseType *type);
extern Datum QvDenseNormalize(FunctionCallInfo fcinfo, const DenseType *type);
extern Datum QvDenseQuantize(FunctionCallInfo fcinfo, const DenseType *type);
extern Datum QvDenseSubvector(FunctionCallInfo fcinfo, const DenseType *type);

typedef enum DenseOperator
{
	DENSE_ADD,
	DENSE_SUB,
	DENSE_MUL
} DenseOperator;

extern Datum QvDenseArithmetic(FunctionCallInfo fcinfo, const DenseType *type,
							   DenseOperator op);
extern Datum QvDenseConcat(FunctionCallInfo fcinfo, const DenseType *type);

/* Sum of squares without overflow or underflow */
extern double QvSquaredNorm(const float *x, int n);

/* aggregate.c */
extern Datum QvDenseAdd(FunctionCallInfo fcinfo, const DenseType *type);
extern Datum QvDenseAccum(FunctionCallInfo fcinfo, const DenseType *type);
extern Datum QvDenseAvg(FunctionCallInfo fcinfo, const DenseType *type);

/* casts.c */
extern Datum QvDenseTypmodCast(FunctionCallInfo fcinfo);

/* The argument as a view, inline values where they lie. */
#define QV_ARG_DENSE(n) \
	DenseViewOf(PG_DETOAST_DATUM_PACKED(PG_GETARG_DATUM(n)))

#endif							/* QV_DENSE_H */
