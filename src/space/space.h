/*
 * space.h
 *		The vector space of an index: its metric and dimensions, the rotation and
 *		the mean that its codes are taken after.
 *
 * A value's coordinates are scaled (to unit length under cosine), padded to pdim
 * coordinates and rotated; before they are stored, or searched for in L2 space,
 * they are centered on the mean.  Distances in the space ("search distances") are
 * those of these vectors: see src/space/README.md.
 */
#ifndef QV_SPACE_SPACE_H
#define QV_SPACE_SPACE_H

#include "postgres.h"

#include "pages/read.h"
#include "quant/quant.h"
#include "types/type_ops.h"

/* How an index keeps values.  On disk: never reuse one. */
typedef enum QvForm
{
	QV_FORM_CODED = 1,			/* codes of rotated vectors */
	QV_FORM_PLAIN = 2			/* the whole values */
} QvForm;

/* What distance the codes estimate.  On disk: never reuse one. */
typedef enum QvSpaceKind
{
	QV_SPACE_L2 = 1,			/* squared L2 (also of unit vectors, for
								 * cosine) */
	QV_SPACE_IP = 2				/* negative inner product */
} QvSpaceKind;

/* The space of the coded indexes of an operator class. */
static inline QvSpaceKind
QvSpaceKindOf(const QvOpclassInfo *opclass)
{
	return opclass->metric == QV_METRIC_IP ? QV_SPACE_IP : QV_SPACE_L2;
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
} QvSpace;

/* A space without rotation and mean yet.  pdim: 0 in a plain index. */
extern void QvSpaceInit(QvSpace *space, const QvOpclassInfo *opclass, uint32 dims, uint32 pdim);

/* Make the rotation of a coded index from its seed, in CurrentMemoryContext. */
extern void QvSpaceInitRotation(QvSpace *space, uint64 seed);

/* Center on mean[pdim], which lives as long as the space. */
extern void QvSpaceSetMean(QvSpace *space, const float *mean);

/*
 * Both of these, the mean from consecutive float pages from block on.  Memory from
 * CurrentMemoryContext.
 */
extern void QvSpaceRead(QvSpace *space, uint64 seed, Relation index,
						QvBufferHints *hints, BlockNumber block);

/*
 * Rotate value[dims], scaled first, into out[pdim] (another array): to unit length
 * when unit is set, else shorter when squares of its coordinates could leave
 * float32.  Returns false for a zero vector that should have unit length; out is
 * zero then.
 */
extern bool QvScaleAndRotate(const QvRotation *rotation, bool unit, const float *value,
							 float *out);

/* The same as the space's metric wants it. */
extern bool QvSpaceRotate(const QvSpace *space, const float *value, float *out);

/*
 * A value (detoasted, of the column's dimensions) as a rotated vector out[pdim];
 * scratch has room for dims coordinates.
 */
extern bool QvSpaceRotateValue(const QvSpace *space, const void *value, float *scratch,
							   float *out);

/* out[pdim] = rotated - mean; they may be the same. */
extern void QvSpaceCenter(const QvSpace *space, const float *rotated, float *out);

/* Distance in units of VectorTypeOps.distance: this times the search distance. */
static inline double
QvSpaceMetricScale(const QvSpace *space)
{
	/* |a - b|^2 = 2 - 2 cos of unit vectors */
	return space->pdim > 0 && space->opclass.metric == QV_METRIC_COSINE ? 0.5 : 1;
}

/* ---- values of the column ---- */

/*
 * The dimensions of an index's column.  Raises an error when it has none, too many
 * for the type, or a type that no index takes.
 */
extern int	QvColumnDims(Relation index, const QvOpclassInfo *opclass);

/* Raise an error unless the value has the index's dimensions. */
extern void QvCheckDims(const QvOpclassInfo *opclass, uint32 dims, const void *value);

/* Does an index hold rows with this value at all?  Zero has no direction, as in pgvector. */
static inline bool
QvIsIndexed(const QvOpclassInfo *opclass, const void *value)
{
	return opclass->metric != QV_METRIC_COSINE || !opclass->type->is_zero(value);
}

/*
 * Longer vectors are shortened to this length inside an index, so that no square or product
 * overflows float32.  Their rows are still returned in exact order, since distances come
 * from the table (QvSpaceQueryError() says of none how far it is).  In L2 space vectors only come nearer to each other by it, so bounds hold;
 * an inner product tells nothing then.
 */
#define QV_MAX_LENGTH 1e17

/* May a vector of that squared length be a shortened one, of which nothing is certain? */
#define QvIsShortened(kind, norm2) \
	((kind) == QV_SPACE_IP && (norm2) >= (float) (0.99 * QV_MAX_LENGTH * QV_MAX_LENGTH))

#endif							/* QV_SPACE_SPACE_H */
