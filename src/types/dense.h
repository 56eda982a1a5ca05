/*
 * dense.h
 *		The types whose values are a list of floats, vector and halfvec: one
 *		description each, and the functions that work from it.
 *
 * Functions named after SQL functions take the SQL call as it is.  The types' own files
 * give them their SQL symbols.  They compute in float32, whatever the elements are.
 */
#ifndef QV_DENSE_H
#define QV_DENSE_H

#include "types/values.h"

#include "kernels/kernels.h"

typedef struct DenseType
{
	const char *name;			/* SQL name */
	int			max_dim;
	int			elem_size;

	/* A float of this magnitude or more becomes infinite as an element. */
	float		overflow;
	/* A float of up to this magnitude becomes zero. */
	float		underflow;

	/* Elements to floats and back; the elements need no alignment. */
	void		(*load) (const void *elems, float *out, int n);
	void		(*store) (const float *x, void *elems, int n);

	/*
	 * Writes the dim elements of a sparse vector.  False if an index or a
	 * value is out of range.
	 */
	bool		(*scatter) (const QvSparse *v, void *elems, int dim);

	/*
	 * Writes (n + 7) / 8 bytes of a bit string.  A bit is set where an
	 * element is positive.
	 */
	void		(*positive_bits) (const void *elems, uint8 *bytes, int n);
} DenseType;

extern const DenseType qv_vector_type;
extern const DenseType qv_halfvec_type;

/* Returns a new value whose elements the caller sets. */
extern void *QvDenseNew(const DenseType *type, int dim);

/* Returns the elements of a value that has the long varlena header. */
extern void *QvDenseElems(void *value);

/*
 * Returns the elements as floats: in place if they are floats, otherwise converted into
 * new memory.
 */
extern const float *QvDenseFloats(const DenseType *type, DenseView v);

/* Raises an error unless each float, which comes from outside, fits as an element. */
extern void QvDenseCheckFloats(const DenseType *type, const qv_unaligned_float *x, int n);

/* Checks such floats, and makes a value of them. */
extern void *QvDenseFromFloats(const DenseType *type, const float *x, int dim);

/* Type input and output. */
extern Datum QvDenseIn(FunctionCallInfo fcinfo, const DenseType *type);
extern Datum QvDenseOut(FunctionCallInfo fcinfo, const DenseType *type);
extern Datum QvDenseRecv(FunctionCallInfo fcinfo, const DenseType *type);
extern Datum QvDenseSend(FunctionCallInfo fcinfo, const DenseType *type);

/* SQL functions. */
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

/* The argument as a view.  An inline value is used where it lies. */
#define QV_ARG_DENSE(n) \
	DenseViewOf(PG_DETOAST_DATUM_PACKED(PG_GETARG_DATUM(n)))

#endif							/* QV_DENSE_H */
