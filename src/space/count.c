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
#include "common/pg_prng.h"
#include "miscadmin.h"
#include "space/count.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"

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
	MemoryContext row_context;	/* reset after every row */
	double		rows;			/* of the table, */
	double		indexed;		/* and of the index, but for those of this
								 * block */

	/* rows of this block */
	BlockNumber block;
	int			known;			/* indexed */
	int			unread;			/* they have a value that was not read */
	int			read;			/* they had an out-of-line value, which was
								 * read */
	int			read_indexed;
} Counting;

static void
end_block(Counting *c)
{
	c->indexed += c->known + (c->read > 0 ? (double) c->unread * c->read_indexed / c->read : 0);
	c->known = c->unread = c->read = c->read_indexed = 0;
}

static void
count_row(Relation index, ItemPointer tid, Datum *values, bool *isnull, bool alive, void *state)
{
	Counting   *c = state;
	BlockNumber block = ItemPointerGetBlockNumber(tid);
	bool		external;
	bool		indexed;
	MemoryContext old;

	if (!alive || isnull[0])
		return;
	if (block != c->block)
		end_block(c);
	c->block = block;
	external = VARATT_IS_EXTERNAL(DatumGetPointer(values[0]));
	if (external && c->read == READ_VALUES)
	{
		c->unread++;
		return;
	}
	old = MemoryContextSwitchTo(c->row_context);
	indexed = QvIsIndexed(c->opclass, PG_DETOAST_DATUM(values[0]));
	MemoryContextSwitchTo(old);
	MemoryContextReset(c->row_context);
	c->known += indexed;
	c->read += external;
	c->read_indexed += external && indexed;
}

/* Counts the rows of n blocks. */
static void
count_range(Counting *c, BlockNumber first, BlockNumber n)
{
	/* there may be no index: the table stands for it, nobody asks */
	c->rows += table_index_build_range_scan(c->heap, c->heap, c->info, false, !c->info->ii_Concurrent,
											false, first, n, count_row, c, NULL);
	end_block(c);
}

/* Counts all rows by n of the table's blocks.  Returns whether the estimate is good enough. */
static bool
count_blocks(Counting *c, BlockNumber nblocks, BlockNumber n)
{
	pg_prng_state random;
	double		before = 0,
				error2 = 0;
	bool		good;

	c->rows = c->indexed = 0;
	pg_prng_seed(&random, SEED);
	for (BlockNumber i = 0; i < n; i++)
	{
		BlockNumber first = (uint64) nblocks * i / n;
		BlockNumber last = (uint64) nblocks * (i + 1) / n - 1;
		double		indexed = c->indexed;

		CHECK_FOR_INTERRUPTS();
		count_range(c, pg_prng_uint64_range(&random, first, last), 1);
		indexed = c->indexed - indexed;
		/* neighbors in the sample are two draws from nearly the same rows */
		if (i > 0)
			error2 += (indexed - before) * (indexed - before) / 2;
		before = indexed;
	}
	good = c->indexed > 0 && sqrt(error2) <= MOST_ERROR * c->indexed;
	c->indexed = rint(c->indexed * nblocks / n);
	c->rows = rint(c->rows * nblocks / n);
	return good;
}

double
QvCountRows(Relation heap, IndexInfo *info, const QvOpclassInfo *opclass, double *table_rows)
{
	BlockNumber nblocks = RelationGetNumberOfBlocks(heap);
	Counting	c = {.heap = heap, .info = info, .opclass = opclass, .block = InvalidBlockNumber};
	bool		done = false;

	/* a table access method need not be able to read a block */
	if (heap->rd_tableam->scan_set_tidrange == NULL)
		return *table_rows = QvEstimateRows(heap);
	c.row_context = AllocSetContextCreate(CurrentMemoryContext, "quiver count row", ALLOCSET_DEFAULT_SIZES);
	for (int i = 0; i < lengthof(sample_sizes) && nblocks > sample_sizes[i] && !done; i++)
		done = count_blocks(&c, nblocks, sample_sizes[i]);
	if (!done)
	{
		c.rows = c.indexed = 0;
		count_range(&c, 0, InvalidBlockNumber);
	}
	MemoryContextDelete(c.row_context);
	*table_rows = c.rows;
	return c.indexed;
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
