/*
 * params.h
 *		What the parts of a build work on.
 */
#ifndef QV_IVF_BUILD_PARAMS_H
#define QV_IVF_BUILD_PARAMS_H

#include "ivf/codec/format.h"
#include "ivf/ivf.h"
#include "space/space.h"

/* Phases for pg_stat_progress_create_index, after PROGRESS_CREATEIDX_SUBPHASE_INITIALIZE. */
#define IVF_PHASE_SAMPLE 2
#define IVF_PHASE_CLUSTER 3
#define IVF_PHASE_ASSIGN 4
#define IVF_PHASE_WRITE 5
#define IVF_PHASE_MEASURE 6

typedef struct IvfBuildParams
{
	Relation	heap;
	Relation	index;
	IndexInfo  *info;
	const QvIndexOptions *options;
	int			workers;		/* most workers, beside this process */
	QvSpace		space;			/* its mean is not known yet */
	IvfMetaData meta;
	IvfLayout	layout;
} IvfBuildParams;

#endif							/* QV_IVF_BUILD_PARAMS_H */
