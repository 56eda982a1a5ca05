/*
 * type_ops.h
 *		What the index layers see of an SQL type: one table for each type.
 *
 * An index never switches on a type's name.  It converts a value to float32 once
 * (to_float), and works on that.  For metrics that are not quantized it computes the
 * exact distance of two stored values.
 */
#ifndef QV_TYPE_OPS_H
#define QV_TYPE_OPS_H

#include "postgres.h"

#include "fmgr.h"

/* The metrics an operator class can ask for. */
typedef enum QvMetric
{
	QV_METRIC_L2,				/* <->  squared inside indexes */
	QV_METRIC_IP,				/* <#>  negative inner product */
	QV_METRIC_COSINE,			/* <=>  */
	QV_METRIC_L1,				/* <+>  */
	QV_METRIC_HAMMING,			/* <~>  */
	QV_METRIC_JACCARD			/* <%>  */
} QvMetric;

typedef struct VectorTypeOps
{
	const char *name;			/* SQL name */
	int			max_dims;		/* most that an index of this type takes */
	bool		dense_float;	/* to_float is there: can be quantized */

	/* Returns the dimensions of a detoasted value. */
	int			(*dims) (const void *value);

	/*
	 * Writes dims(value) float32 coordinates (bit: 0 and 1).  NULL for
	 * sparsevec, where most would be zero.
	 */
	void		(*to_float) (const void *value, float *out);

	/*
	 * Returns the value nearest to coordinates, palloc'd.  It is for
	 * centroids of types that are not quantized: NULL unless to_float is
	 * there and dense_float is not.
	 */
	void	   *(*from_float) (const float *x, int dims);

	/*
	 * Returns the exact distance of two detoasted values of equal dimensions,
	 * in the metric's index order: squared L2, negative inner product, cosine
	 * distance, L1, Hamming count, Jaccard distance.  The cosine distance of
	 * a zero vector is NaN.
	 */
	double		(*distance) (QvMetric metric, const void *a, const void *b);

	/*
	 * Returns the bytes of a detoasted value that an index must keep to
	 * compute distances: the whole varlena.
	 */
	Size		(*value_size) (const void *value);

	/*
	 * Returns the size of every value of that many dimensions, or 0 if sizes
	 * differ.
	 */
	Size		(*fixed_size) (int dims);

	/*
	 * Are size bytes, read from a page that may be damaged, such a value of
	 * that many dimensions?  If so, distance() reads nothing else.
	 */
	bool		(*well_formed) (const void *value, Size size, int dims);

	/* Raises the error of a distance between values of a and b dimensions. */
	void		(*different_dims) (int a, int b);

	/* Is the value's norm zero?  Cosine does not index such rows. */
	bool		(*is_zero) (const void *value);
} VectorTypeOps;

extern const VectorTypeOps qv_vector_ops;
extern const VectorTypeOps qv_halfvec_ops;
extern const VectorTypeOps qv_sparsevec_ops;
extern const VectorTypeOps qv_bit_ops;

/*
 * The type and the metric of an operator class. am/opclass.c finds them by the address of
 * support function 1.  For cosine it also looks whether there is the norm function,
 * number 2. pgvector's catalog entries therefore need no addition.
 */
typedef struct QvOpclassInfo
{
	const VectorTypeOps *type;
	QvMetric	metric;
} QvOpclassInfo;

#endif							/* QV_TYPE_OPS_H */
