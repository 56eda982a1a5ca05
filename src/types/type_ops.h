/*
 * type_ops.h
 *		What the index layers see of an SQL type: one table a type.
 *
 * An index never switches on a type's name: it converts a value to float32
 * once (to_float) and works on that, or, for metrics that are not quantized,
 * asks for the exact distance of two stored values.
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
	int			max_dims;		/* that an index of this type takes */
	bool		dense_float;	/* to_float is there: can be quantized */

	/* Dimensions of a detoasted value. */
	int			(*dims) (const void *value);

	/*
	 * Write dims(value) float32 coordinates (bit: 0 and 1).  NULL where most
	 * would be zero: sparsevec.
	 */
	void		(*to_float) (const void *value, float *out);

	/*
	 * The value nearest to coordinates, palloc'd.  NULL unless to_float is
	 * there and dense_float is not: for centroids of types that are not
	 * quantized.
	 */
	void	   *(*from_float) (const float *x, int dims);

	/*
	 * Exact distance of two detoasted values of equal dimensions in the
	 * metric's index order: squared L2, negative inner product, cosine
	 * distance (NaN for a zero vector), L1, Hamming count, Jaccard distance.
	 */
	double		(*distance) (QvMetric metric, const void *a, const void *b);

	/*
	 * Bytes of a detoasted value that an index must keep to compute distance
	 * (the whole varlena).
	 */
	Size		(*value_size) (const void *value);

	/* The same for every value of that many dimensions; 0: they differ. */
	Size		(*fixed_size) (int dims);

	/*
	 * Whether size bytes, read from a page that may be damaged, are such a
	 * value of that many dimensions: then distance() reads nothing else.
	 */
	bool		(*well_formed) (const void *value, Size size, int dims);

	/* Raise the error of a distance between values of a and b dimensions. */
	void		(*different_dims) (int a, int b);

	/* True when the value's norm is zero (cosine does not index such rows). */
	bool		(*is_zero) (const void *value);
} VectorTypeOps;

extern const VectorTypeOps qv_vector_ops;
extern const VectorTypeOps qv_halfvec_ops;
extern const VectorTypeOps qv_sparsevec_ops;
extern const VectorTypeOps qv_bit_ops;

/*
 * Which type and metric an operator class means.  am/opclass.c finds it by the
 * address of the operator class's support function 1 (and, for cosine, by the
 * presence of the norm function 2), so that pgvector's catalog entries need
 * no addition.
 */
typedef struct QvOpclassInfo
{
	const VectorTypeOps *type;
	QvMetric	metric;
} QvOpclassInfo;

#endif							/* QV_TYPE_OPS_H */
