/*
 * count.c
 *		How many rows an index build will read; see count.h.
 *
 * Blocks are drawn as a stratified sample: one from each n-th part of the table.  The
 * differences between neighbors in the sample say how far the estimate may be off.  Rows that
 * lie together, as those of a condition often do, differ from their neighbors only where they
 * begin and end.
 */
#include "postgres.h"

#include <math.h>

#include "access/tableam.h"
#include "catalog/index.h"
#include "common/pg_prng.h"
#include "compat.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "space/count.h"
#include "storage/bufmgr.h"
#include "utils/snapmgr.h"

double
QvEstimateRows(Relation heap)
{
	BlockNumber pages;
	double		tuples,
				allvisible;

	table_relation_estimate_size(heap, NULL, &pages, &tuples, &allvisible);
	return tuples;
}

/* Policy: blocks of the first samples.  Then all blocks are read. */
static const BlockNumber sample_sizes[] = {1024, 4096};

/* Policy: the largest standard error of the estimate, as a share of it. */
#define MOST_ERROR 0.05

/*
 * Policy: out-of-line values of a block that are read to see whether they are indexed.  Reading
 * all would take longer than all else.
 */
#define READ_VALUES 8

/* Policy: there is a notice if the count was off by this share of it, and by this many rows. */
#define NOTICE_SHARE 0.2
#define NOTICE_ROWS 1000

/* Draws the same blocks each time. */
#define SEED 40

typedef struct Counting
{
	Relation	heap;
	IndexInfo  *info;
	const QvOpclassInfo *opclass;
	BufferAccessStrategy strategy;
	TableScanDesc scan;
	TupleTableSlot *slot;
	EState	   *estate;
	ExprState  *condition;		/* of a partial index; NULL: none */
} Counting;

static void
begin_counting(Counting *c)
{
	ItemPointerData none;

	ItemPointerSet(&none, 0, FirstOffsetNumber);
	/* the newest snapshot: the build will index what has committed by now */
	PushActiveSnapshot(GetLatestSnapshot());
	c->strategy = GetAccessStrategy(BAS_BULKREAD);
	c->scan = QvTableBeginTidRange(c->heap, GetActiveSnapshot(), &none, &none);
	c->slot = table_slot_create(c->heap, NULL);
	c->estate = CreateExecutorState();
	GetPerTupleExprContext(c->estate)->ecxt_scantuple = c->slot;
	c->condition = ExecPrepareQual(c->info->ii_Predicate, c->estate);
}

static void
end_counting(Counting *c)
{
	table_endscan(c->scan);
	ExecDropSingleTupleTableSlot(c->slot);
	FreeExecutorState(c->estate);
	/* FormIndexDatum() left these, which were in the executor's memory */
	c->info->ii_ExpressionsState = NIL;
	FreeAccessStrategy(c->strategy);
	PopActiveSnapshot();
}

/* What the rows of a block are. */
typedef struct BlockRows
{
	int			live;
	int			known;			/* indexed */
	int			unread;			/* they have a value that was not read */
	int			read;			/* they had an out-of-line value, which was
								 * read */
	int			read_indexed;
} BlockRows;

/* Counts the row in the slot.  The caller resets the memory of the row. */
static void
count_row(Counting *c, BlockRows *rows)
{
	Datum		values[INDEX_MAX_KEYS];
	bool		nulls[INDEX_MAX_KEYS];
	bool		external;
	bool		indexed;

	rows->live++;
	if (!ExecQual(c->condition, GetPerTupleExprContext(c->estate)))
		return;
	FormIndexDatum(c->info, c->slot, c->estate, values, nulls);
	if (nulls[0])
		return;
	external = VARATT_IS_EXTERNAL(DatumGetPointer(values[0]));
	if (external && rows->read == READ_VALUES)
	{
		rows->unread++;
		return;
	}
	indexed = QvIsIndexed(c->opclass, PG_DETOAST_DATUM(values[0]));
	rows->known += indexed;
	rows->read += external;
	rows->read_indexed += external && indexed;
}

/* Returns the rows of a block that are indexed, and adds all its rows to *live. */
static double
count_block(Counting *c, BlockNumber block, double *live)
{
	BlockRows	rows = {0};
	ItemPointerData first,
				last;

	/*
	 * a scan by TID ranges has no ring of buffers, but finds the block in
	 * ours
	 */
	ReleaseBuffer(ReadBufferExtended(c->heap, MAIN_FORKNUM, block, RBM_NORMAL, c->strategy));
	ItemPointerSet(&first, block, FirstOffsetNumber);
	ItemPointerSet(&last, block, MaxOffsetNumber);
	table_rescan_tidrange(c->scan, &first, &last);
	while (table_scan_getnextslot_tidrange(c->scan, ForwardScanDirection, c->slot))
	{
		MemoryContext old = MemoryContextSwitchTo(GetPerTupleMemoryContext(c->estate));

		count_row(c, &rows);
		MemoryContextSwitchTo(old);
		ResetPerTupleExprContext(c->estate);
	}
	*live += rows.live;
	return rows.known + (rows.read > 0 ? (double) rows.unread * rows.read_indexed / rows.read : 0);
}

/*
 * Counts the rows by n of the table's blocks.  Returns whether the estimate is good enough.
 */
static bool
count_blocks(Counting *c, BlockNumber nblocks, BlockNumber n, QvRowCount *count)
{
	pg_prng_state random;
	double		before = 0,
				error2 = 0;

	memset(count, 0, sizeof(*count));
	pg_prng_seed(&random, SEED);
	for (BlockNumber i = 0; i < n; i++)
	{
		BlockNumber first = (uint64) nblocks * i / n;
		BlockNumber last = (uint64) nblocks * (i + 1) / n - 1;
		double		indexed;

		CHECK_FOR_INTERRUPTS();
		indexed = count_block(c, pg_prng_uint64_range(&random, first, last), &count->table);
		/* neighbors in the sample are two draws from nearly the same rows */
		if (i > 0)
			error2 += (indexed - before) * (indexed - before) / 2;
		before = indexed;
		count->indexed += indexed;
	}
	if (n == nblocks)
		return true;
	if (count->indexed == 0 || sqrt(error2) > MOST_ERROR * count->indexed)
		return false;
	count->indexed = rint(count->indexed * nblocks / n);
	count->table = rint(count->table * nblocks / n);
	return true;
}

void
QvCountRows(Relation heap, IndexInfo *info, const QvOpclassInfo *opclass, QvRowCount *count)
{
	BlockNumber nblocks = RelationGetNumberOfBlocks(heap);
	Counting	c = {.heap = heap, .info = info, .opclass = opclass};
	bool		done = false;

	/* a table access method need not be able to read a block */
	if (heap->rd_tableam->scan_set_tidrange == NULL)
	{
		count->table = count->indexed = QvEstimateRows(heap);
		return;
	}
	begin_counting(&c);
	for (int i = 0; i < lengthof(sample_sizes) && !done; i++)
		done = count_blocks(&c, nblocks, Min(nblocks, sample_sizes[i]), count);
	if (!done)
		(void) count_blocks(&c, nblocks, nblocks, count);
	end_counting(&c);
}

void
QvReportCount(Relation index, double planned, double rows)
{
	double		off = fabs(rows - planned);
	bool		far = off > NOTICE_ROWS && off > NOTICE_SHARE * planned;

	ereport(far ? NOTICE : DEBUG1,
			(errmsg("index \"%s\" was planned for %.0f rows, and has %.0f",
					RelationGetRelationName(index), planned, rows)));
}
