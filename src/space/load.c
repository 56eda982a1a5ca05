/*
 * load.c
 *		Loading the rows of the table into a new index; see load.h.
 */
#include "postgres.h"

#include "access/tableam.h"
#include "commands/progress.h"
#include "pages/meta.h"
#include "space/load.h"
#include "utils/backend_progress.h"
#include "utils/memutils.h"

/* Rows between two progress reports. */
#define REPORT_ROWS 1000

typedef struct Loading
{
	const QvLoader *loader;
	MemoryContext row_context;	/* reset after every row */
	int64		rows;			/* indexed */
	int			left_out;		/* rows that are not (pages/meta.h) */
} Loading;

void
QvBuildSharedInit(QvBuildShared *shared, Relation heap, Relation index, const IndexInfo *info,
				  int participants)
{
	memset(shared, 0, sizeof(*shared));
	shared->heap = RelationGetRelid(heap);
	shared->index = RelationGetRelid(index);
	shared->concurrent = info->ii_Concurrent;
	shared->participants = participants;
	pg_atomic_init_u64(&shared->progress, 0);
	SpinLockInit(&shared->mutex);
}

/* Counts the rows of a participant.  The leader reports how many all have. */
static void
report_rows(const QvLoader *loader, int64 rows)
{
	int64		all;

	if (rows % REPORT_ROWS != 0)
		return;
	all = pg_atomic_add_fetch_u64(&loader->shared->progress, REPORT_ROWS);
	if (loader->leader)
		pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, all);
}

static void
load_row(Relation index, ItemPointer tid, Datum *values, bool *isnull, bool alive, void *state)
{
	Loading    *loading = state;
	const QvLoader *loader = loading->loader;
	MemoryContext old;
	const void *value;

	if (isnull[0])
	{
		loading->left_out |= QV_LEFT_OUT_NULLS;
		return;
	}
	old = MemoryContextSwitchTo(loading->row_context);
	value = QvIndexedValue(loader->space, values[0]);
	if (value)
	{
		loader->add(loader->state, value, tid);
		report_rows(loader, ++loading->rows);
	}
	else
		loading->left_out |= QV_LEFT_OUT_NANS;
	MemoryContextSwitchTo(old);
	MemoryContextReset(loading->row_context);
}

void
QvLoadRows(const QvLoader *loader, TableScanDesc scan)
{
	QvBuildShared *shared = loader->shared;
	Loading		loading = {.loader = loader};
	double		tuples;

	loading.row_context = AllocSetContextCreate(CurrentMemoryContext, "quiver build row",
												ALLOCSET_DEFAULT_SIZES);
	tuples = table_index_build_scan(loader->heap, loader->index, loader->info, true, loader->leader,
									load_row, &loading, scan);
	MemoryContextDelete(loading.row_context);
	SpinLockAcquire(&shared->mutex);
	shared->heap_tuples += tuples;
	shared->index_tuples += loading.rows;
	shared->left_out |= loading.left_out;
	shared->broken_hot_chain |= loader->info->ii_BrokenHotChain;
	SpinLockRelease(&shared->mutex);
}
