/*
 * table_scan.c
 *		Rows of a table in their order; see table_scan.h.
 */
#include "postgres.h"

#include <math.h>

#include "access/htup_details.h"
#include "miscadmin.h"
#include "pages/read.h"
#include "query/table_scan.h"
#include "storage/bufmgr.h"

/* Pages asked for ahead of the one that is read. */
#define PAGES_AHEAD 16

typedef struct TableScan
{
	QvScan		base;
	Relation	table;
	const QvTidSet *set;
	BlockNumber nblocks;
	uint64		block;			/* next */
	uint64		ahead;			/* of the set, next to ask for */
	Buffer		buf;			/* pinned */
	BufferAccessStrategy strategy;
	ItemPointerData tids[MaxHeapTuplesPerPage];
} TableScan;

/* Ask for a page in the background, if it is there. */
static void
ask_for(TableScan *scan, uint64 block)
{
	if (block < scan->nblocks)
		(void) QvPrefetchBlock(scan->table, scan->base.table_hints, block);
}

/* ---- all rows ---- */

/* Unpin the page of the last rows. */
static void
release_page(TableScan *scan)
{
	if (BufferIsValid(scan->buf))
		ReleaseBuffer(scan->buf);
	scan->buf = InvalidBuffer;
}

/*
 * Pin the next page that has lines, and take them all: a line that is no start of a chain gives no
 * row.
 */
static int
next_of_table(TableScan *scan)
{
	int			lines = 0;

	for (; lines == 0 && scan->block < scan->nblocks; scan->block++)
	{
		Page		page;

		CHECK_FOR_INTERRUPTS();
		release_page(scan);
		ask_for(scan, scan->block + PAGES_AHEAD);
		scan->buf = ReadBufferExtended(scan->table, MAIN_FORKNUM, scan->block, RBM_NORMAL, scan->strategy);
		LockBuffer(scan->buf, BUFFER_LOCK_SHARE);
		page = BufferGetPage(scan->buf);
		lines = PageIsNew(page) ? 0 : PageGetMaxOffsetNumber(page);
		LockBuffer(scan->buf, BUFFER_LOCK_UNLOCK);

		/*
		 * reading by a hint raises the usage count, and a ring leaves such
		 * pages
		 */
		if (scan->base.table_hints && scan->strategy == NULL)
			QvRememberBuffer(scan->base.table_hints, scan->block, scan->buf);
		for (int i = 0; i < lines; i++)
			ItemPointerSet(&scan->tids[i], scan->block, FirstOffsetNumber + i);
	}
	return lines;
}

/* ---- rows of a set ---- */

/* The rows of the next page of the set.  Ask for one more of its pages; at first, for several. */
static int
next_of_set(TableScan *scan)
{
	for (int n = scan->ahead == 0 ? PAGES_AHEAD : 1; n > 0; n--)
		if (QvTidSetNext(scan->set, &scan->ahead, scan->tids) > 0)
			ask_for(scan, ItemPointerGetBlockNumber(&scan->tids[0]));
	return QvTidSetNext(scan->set, &scan->block, scan->tids);
}

/* ---- */

static bool
table_scan_next(QvScan *base, QvCandidate *candidate)
{
	TableScan  *scan = (TableScan *) base;
	int			n = scan->set ? next_of_set(scan) : next_of_table(scan);

	QvSetCandidate(base, candidate, -INFINITY, INFINITY, INFINITY, scan->tids, n);
	base->complete = n == 0;

	/*
	 * rows are returned when all have been read: no page stays pinned
	 * meanwhile
	 */
	if (n == 0)
		release_page(scan);
	return n > 0;
}

static void
table_scan_end(QvScan *base)
{
	TableScan  *scan = (TableScan *) base;

	release_page(scan);
	if (scan->strategy)
		FreeAccessStrategy(scan->strategy);
	pfree(scan);
}

static const QvScanOps table_scan_ops = {
	.next = table_scan_next,
	.end = table_scan_end
};

QvScan *
QvTableScanBegin(Relation table, QvBufferHints *hints, const QvTidSet *set)
{
	TableScan  *scan = palloc0(sizeof(TableScan));

	scan->base.ops = &table_scan_ops;
	scan->base.table_hints = hints;
	scan->base.scale = 1;
	scan->table = table;
	scan->set = set;
	scan->nblocks = RelationGetNumberOfBlocks(table);
	if (set == NULL && scan->nblocks > (BlockNumber) NBuffers / 4)
		scan->strategy = GetAccessStrategy(BAS_BULKREAD);
	return &scan->base;
}
