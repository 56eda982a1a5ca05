/*
 * engine.c
 *		The quantized graph as an engine of access methods.
 */
#include "postgres.h"

#include "graph/graph.h"

const QvEngine graph_engine = {
	.build = GraphBuild,
	.build_empty = GraphBuildEmpty,
	.phase_name = GraphBuildPhaseName,
	.insert = GraphInsert,
	.bulk_delete = GraphBulkDelete,
	.vacuum_cleanup = GraphVacuumCleanup,
	.begin = GraphScanBegin,
	.estimate_work = GraphEstimateWork,
	.row_pages = GraphRowPages,
	.get_curve = GraphGetCurve,
	.set_curve = GraphSetCurve
};
