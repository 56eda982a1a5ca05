/*
 * quiver.c
 *		Loading the library.
 */
#include "postgres.h"

#include "am/beside.h"
#include "am/options.h"
#include "fmgr.h"
#include "kernels/kernels.h"
#include "monitor/monitor.h"
#include "monitor/simd_level.h"
#include "stats/stats.h"
#include "topk/topk.h"

PG_MODULE_MAGIC;

PGDLLEXPORT void _PG_init(void);

void
_PG_init(void)
{
	/*
	 * the look-ups come first: one may be canceled, and then all is done
	 * again
	 */
	bool		hnsw_too = QvMayDefineAtLoad("hnsw");
	bool		ivfflat_too = QvMayDefineAtLoad("ivfflat");

	QvKernelsInit();
	QvDefineSimdLevel();
	KnnDefineOptions(hnsw_too, ivfflat_too);
	QvTopkInit();
	QvMonitorInit();
	QvNoticesInit();
	QvStatsInit();
	MarkGUCPrefixReserved("quiver");
}
