/*
 * knn_scan.c
 *		Plain index scans in the order of exact distances; see knn_scan.h.
 *
 * The executor tests the conditions, so a scan does not know which rows will do.  It goes on for as
 * long as it is asked, unless iterative scans are off: then it ends with what the effort that the
 * settings name has found, as pgvector's.
 */
#include "postgres.h"

#include "access/relscan.h"
#include "am/knn_scan.h"
#include "am/methods.h"
#include "am/opclass.h"
#include "compat.h"
#include "pgstat.h"
#include "query/stream.h"
#include "stats/stats.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

typedef struct KnnScan
{
	QvOpclassInfo opclass;
	MemoryContext context;
	MemoryContext query_context;
	QvScan	   *engine;			/* NULL before the first row */
	RowReader  *rows;
	QvStream   *stream;
	QvSettings	settings;
	void	   *query;			/* detoasted; NULL: any order */
	int64		most;			/* rows proposed after which the scan stops */
	int64		before;			/* rows proposed before the engine was started */
	bool		started;
	int64		searches;		/* for statistics */
} KnnScan;

IndexScanDesc
KnnBeginScan(Relation index, int nkeys, int norderbys)
{
	IndexScanDesc scan = RelationGetIndexScan(index, nkeys, norderbys);
	KnnScan    *so = palloc0(sizeof(KnnScan));

	so->context = CurrentMemoryContext;
	QvGetOpclass(index, &so->opclass);
	so->query_context = AllocSetContextCreate(CurrentMemoryContext, "quiver query",
											  ALLOCSET_SMALL_SIZES);
	scan->opaque = so;
	return scan;
}

void
KnnRescan(IndexScanDesc scan, ScanKey keys, int nkeys, ScanKey orderbys,
		  int norderbys)
{
	KnnScan    *so = scan->opaque;

	so->started = false;
	if (keys && scan->numberOfKeys > 0)
		memmove(scan->keyData, keys, scan->numberOfKeys * sizeof(ScanKeyData));
	if (orderbys && scan->numberOfOrderBys > 0)
		memmove(scan->orderByData, orderbys, scan->numberOfOrderBys * sizeof(ScanKeyData));
}

/* Open what the first row needs. */
static void
open_engine(IndexScanDesc scan)
{
	KnnScan    *so = scan->opaque;

	if (scan->numberOfOrderBys == 0)
		elog(ERROR, "cannot scan an index of Quiver without ORDER BY");
	if (!IsMVCCSnapshot(scan->xs_snapshot))
		elog(ERROR, "non-MVCC snapshots are not supported by indexes of Quiver");
	if (so->engine)
		return;
	so->engine = KnnMethodOf(scan->indexRelation)->engine->begin(scan->indexRelation, &so->opclass);
	so->rows = RowReaderBegin(scan->heapRelation, scan->indexRelation, &so->opclass);
	so->stream = QvStreamCreate();
}

/* QvStreamSource.again: have the engine propose all rows, from the first on. */
static void
start_engine(void *arg)
{
	KnnScan    *so = arg;
	QvScanGoal	goal = {
		.value = so->query,
		.settings = &so->settings,
		.endless = so->settings.iterative_scan != ITERATIVE_SCAN_OFF
	};

	so->engine->ops->start(so->engine, &goal);
	QvStreamSetScan(so->stream, so->engine, false);
	so->before = QvStreamGetCounters(so->stream)->proposed;
}

static void
start(IndexScanDesc scan)
{
	KnnScan    *so = scan->opaque;
	MemoryContext old = MemoryContextSwitchTo(so->context);
	QvStreamSource source = {0};

	open_engine(scan);
	pgstat_count_index_scan(scan->indexRelation);
	so->searches++;
	QvCountIndexSearch(scan);
	MemoryContextReset(so->query_context);
	MemoryContextSwitchTo(so->query_context);
	so->query = NULL;
	/* a copy: the executor may reuse the value's memory */
	if (!(scan->orderByData->sk_flags & SK_ISNULL))
		so->query = PG_DETOAST_DATUM_COPY(scan->orderByData->sk_argument);
	MemoryContextSwitchTo(so->context);
	KnnSettingsOf(scan->indexRelation, &so->settings);
	/* lists limit an iterative scan, not rows */
	so->most = so->settings.iterative_scan != ITERATIVE_SCAN_OFF && so->settings.max_scan_tuples > 0 ?
		Max(so->settings.max_scan_tuples, so->settings.ef_search) : PG_INT64_MAX;
	source.rows = so->rows;
	source.snapshot = scan->xs_snapshot;
	source.value = so->query;
	source.again = start_engine;
	source.late = so->settings.iterative_scan == ITERATIVE_SCAN_RELAXED ? QV_LATE_NOW : QV_LATE_DROPPED;
	source.arg = so;
	source.max_bytes = so->settings.memory;
	QvStreamStart(so->stream, &source);
	start_engine(so);
	so->started = true;
	MemoryContextSwitchTo(old);
}

/* QvStreamNext()'s pause: does the user let the scan look at more rows? */
static bool
may_propose(void *arg)
{
	KnnScan    *so = arg;

	return QvStreamGetCounters(so->stream)->proposed - so->before < so->most;
}

bool
KnnGetTuple(IndexScanDesc scan, ScanDirection direction)
{
	KnnScan    *so = scan->opaque;
	QvStreamRow row;
	bool		found;

	Assert(ScanDirectionIsForward(direction));
	if (!so->started)
		start(scan);
	found = QvStreamNext(so->stream, may_propose, &row);
	QvTestForOldSnapshot(scan->xs_snapshot, scan->indexRelation);
	RowReleaseValues(so->rows);
	if (!found)
		return false;
	scan->xs_heaptid = row.tid;
	scan->xs_recheck = false;
	scan->xs_recheckorderby = false;
	return true;
}

void
KnnEndScan(IndexScanDesc scan)
{
	KnnScan    *so = scan->opaque;

	if (so->engine)
	{
		QvStatsAdd(RelationGetRelid(scan->indexRelation), so->searches,
				   QvStreamGetCounters(so->stream), &so->engine->counters);
		so->engine->ops->end(so->engine);
		RowReaderEnd(so->rows);
		QvStreamEnd(so->stream);
	}
	MemoryContextDelete(so->query_context);
	pfree(so);
	scan->opaque = NULL;
}
