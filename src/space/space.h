/*
 * space.h
 *		The vector space of an index: its metric and dimensions, and the rotation and
 *		the mean that come before its codes.
 *
 * The coordinates of a value are scaled (cosine: to unit length), padded to pdim
 * coordinates and rotated.  Stored vectors are then centered on the mean, and in L2 space
 * query vectors, too.  Search distances are the distances of these vectors: see
 * src/space/README.md.
 */
#ifndef QV_SPACE_SPACE_H
#define QV_SPACE_SPACE_H

#include "postgres.h"

#include "pages/read.h"
#include "quant/quant.h"
#include "types/type_ops.h"

/* The form in which an index keeps values.  On disk: a value is never used again. */
typedef enum QvForm
{
	QV_FORM_CODED = 1,			/* codes of rotated vectors */
	QV_FORM_PLAIN = 2			/* the whole values */
} QvForm;

/* The distance that the codes estimate.  On disk: a value is never used again. */
typedef enum QvSpaceKind
{
	QV_SPACE_L2 = 1,			/* squared L2; of unit vectors for cosine */
	QV_SPACE_IP = 2,			/* negative inner product */
	QV_SPACE_POWER = 3			/* inner product of rows about equally long:
								 * power distances */
} QvSpaceKind;

/* Returns the space of the coded indexes of an operator class, unless a build chooses another. */
static inline QvSpaceKind
QvSpaceKindOf(const QvOpclassInfo *opclass)
{
	return opclass->metric == QV_METRIC_IP ? QV_SPACE_IP : QV_SPACE_L2;
}

/* Can a coded index of an operator class have this space? */
static inline bool
QvSpaceKindFits(QvSpaceKind kind, const QvOpclassInfo *opclass)
{
	return kind == QvSpaceKindOf(opclass) || (kind == QV_SPACE_POWER && opclass->metric == QV_METRIC_IP);
}

typedef struct QvSpace
{
	QvOpclassInfo opclass;
	uint32		dims;			/* of the column */

	/* coded indexes only; zero in plain ones */
	QvSpaceKind kind;
	uint32		pdim;			/* coordinates of rotated vectors */
	QvRotation	rotation;
	const float *mean;			/* rotated, pdim */
	float		mean_norm2;
	float		level;			/* power space: about the mean of |x|^2 */
} QvSpace;

/*
 * Makes a space that has no mean yet.  The rotation of a coded index is made from its seed, in
 * CurrentMemoryContext.  pdim is 0 in a plain index.
 */
extern void QvSpaceInit(QvSpace *space, const QvOpclassInfo *opclass, uint32 dims, uint32 pdim,
						uint64 seed);

/* Sets the mean[pdim], which must live as long as the space. */
extern void QvSpaceSetMean(QvSpace *space, const float *mean);

/*
 * Scales and rotates value[dims] into out[pdim], which is another array.  With "unit" the
 * value is scaled to unit length.  Otherwise it is shortened if squares of its
 * coordinates could leave float32.  A zero vector stays zero.
 */
extern void QvScaleAndRotate(const QvRotation *rotation, bool unit, const float *value,
							 float *out);

/*
 * Converts a detoasted value, which has the column's dimensions, to a rotated vector out[pdim],
 * scaled as the space's metric needs it.  NULL: a zero vector.  scratch has room for dims
 * coordinates.
 */
extern void QvSpaceRotateValue(const QvSpace *space, const void *value, float *scratch,
							   float *out);

/* Centers: out[pdim] = rotated - mean.  The arrays may be the same. */
extern void QvSpaceCenter(const QvSpace *space, const float *rotated, float *out);

/*
 * Returns what stands for |x|^2 in the search distance of a row x, which is centered.  mean_ip is
 * <x, mean>.
 */
static inline float
QvSpaceNorm2(const QvSpace *space, float norm2, float mean_ip)
{
	/* |x|^2 - weight: src/space/README.md, "Power distances" */
	return space->kind == QV_SPACE_POWER ? space->level - 2 * mean_ip : norm2;
}

/*
 * Chooses the space of an index by inner product, from a sample of n rows that is not centered.
 * The mean is set.  Sets kind and level.
 */
extern void QvSpaceChoose(QvSpace *space, const float *rows, int n);

/* Returns the factor from a search distance to the units of VectorTypeOps.distance. */
static inline double
QvSpaceMetricScale(const QvSpace *space)
{
	/* |a - b|^2 = 2 - 2 cos of unit vectors */
	return space->pdim > 0 && space->opclass.metric == QV_METRIC_COSINE ? 0.5 : 1;
}

/* ---- values of the column ---- */

/*
 * Returns the dimensions of an index's column.  Raises an error if it has none, too many
 * for the type, or a type that no index takes.
 */
extern int	QvColumnDims(Relation index, const QvOpclassInfo *opclass);

/* Raises an error unless the value has the index's dimensions. */
extern void QvCheckDims(const QvOpclassInfo *opclass, uint32 dims, const void *value);

/*
 * Does an index have rows with this value at all?  A zero vector has no direction, as in
 * pgvector.
 */
static inline bool
QvIsIndexed(const QvOpclassInfo *opclass, const void *value)
{
	return opclass->metric != QV_METRIC_COSINE || !opclass->type->is_zero(value);
}

/*
 * Returns a value that is searched for (NULL: any order), or NULL if it has no distance to any row.
 * Raises the operator's error for a value of other dimensions than the column's.
 */
extern const void *QvSearchedValue(const QvOpclassInfo *opclass, uint32 dims, const void *value);

/*
 * Returns a value of the column detoasted, or NULL if an index does not have it.  Raises an error
 * for a value of other dimensions than the column's.
 */
extern const void *QvIndexedValue(const QvSpace *space, Datum value);

/*
 * Longer vectors are shortened to this length inside an index, so that no square or
 * product overflows float32.  Their rows are still returned in exact order, because
 * distances come from the table: QvSpaceQueryError() returns infinity for them.  In L2
 * space shortening only brings vectors nearer to each other, so bounds hold.  An inner
 * product of a shortened vector says nothing.
 */
#define QV_MAX_LENGTH 1e17

/*
 * May a vector of that squared length be a shortened one, for which no bound holds?  It may be one
 * that was centered on a mean of at most a quarter of the length, as that of power distances is.
 */
#define QvIsShortened(kind, norm2) \
	((kind) != QV_SPACE_L2 && (norm2) >= (float) (0.5 * QV_MAX_LENGTH * QV_MAX_LENGTH))

#endif							/* QV_SPACE_SPACE_H */
