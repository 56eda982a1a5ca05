/*
 * engine.c
 *		Posting lists as an engine of access methods.
 */
#include "postgres.h"

#include "ivf/ivf.h"

const QvEngine ivf_engine = {
	.build = IvfBuild,
	.build_empty = IvfBuildEmpty,
	.phase_name = IvfBuildPhaseName,
	.insert = IvfInsert,
	.bulk_delete = IvfBulkDelete,
	.vacuum_cleanup = IvfVacuumCleanup,
	.begin = IvfScanBegin,
	.estimate_work = IvfEstimateWork,
	.row_pages = IvfRowPages,
	.get_curve = IvfGetCurve,
	.set_curve = IvfSetCurve
};
