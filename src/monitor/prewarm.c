/*
 * prewarm.c
 *		quiver_prewarm(): reads an index into shared buffers.
 */
#include "postgres.h"

#include "access/relation.h"
#include "containers/bitmap.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "monitor/open_index.h"
#include "pages/page.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* Pages that are prefetched ahead of the one that is read. */
#define AHEAD 64

/* Is the page of a kind that every search reads, or that rows may be scored from? */
static bool
is_first(Page page)
{
	QvPageHeader header = QvPageGetHeader(page);

	return !PageIsNew(page) && header->magic == QV_PAGE_MAGIC && header->kind != QV_PAGE_RECORDS &&
		header->kind != QV_PAGE_VALUES && header->kind != QV_PAGE_FREE;
}

/*
 * Parameters of read_pages(), which reads pages of an index in order: the pages in "only"
 * (a bitmap; NULL: all) that are not in "but", at most "most" of them.  Without a
 * strategy the pages stay in shared buffers.  "first" (may be NULL) gets a bit for each
 * page that is to be read first.
 */
typedef struct Pass
{
	Relation	index;
	BlockNumber nblocks;
	const uint8 *only;
	const uint8 *but;
	BlockNumber most;
	BufferAccessStrategy strategy;
	uint8	   *first;
} Pass;

static bool
in_pass(const Pass *pass, BlockNumber block)
{
	return (pass->only == NULL || BitmapHas(pass->only, block)) &&
		(pass->but == NULL || !BitmapHas(pass->but, block));
}

static BlockNumber
read_pages(const Pass *pass)
{
	BlockNumber asked = 0,
				ahead = 0,
				n = 0;

	for (BlockNumber block = 0; block < pass->nblocks && n < pass->most; block++)
	{
		Buffer		buf;

		if (!in_pass(pass, block))
			continue;
		CHECK_FOR_INTERRUPTS();
		for (ahead = Max(ahead, block); ahead < pass->nblocks && asked < n + AHEAD; ahead++)
			if (in_pass(pass, ahead))
			{
				(void) PrefetchBuffer(pass->index, MAIN_FORKNUM, ahead);
				asked++;
			}
		buf = ReadBufferExtended(pass->index, MAIN_FORKNUM, block, RBM_NORMAL, pass->strategy);
		n++;
		if (pass->first)
		{
			LockBuffer(buf, BUFFER_LOCK_SHARE);
			if (is_first(BufferGetPage(buf)))
				BitmapSet(pass->first, block);
			UnlockReleaseBuffer(buf);
		}
		else
			ReleaseBuffer(buf);
	}
	return n;
}

/*
 * quiver_prewarm(regclass): reads an index into shared buffers, or as many of its pages
 * as fit.  It then reads first the pages that searches read first.  Returns the number of
 * pages.
 */
PG_FUNCTION_INFO_V1(quiver_prewarm);
Datum
quiver_prewarm(PG_FUNCTION_ARGS)
{
	Relation	index = KnnOpenIndex(PG_GETARG_OID(0), AccessShareLock, KNN_RIGHT_SELECT);
	Pass		pass = {.index = index, .nblocks = RelationGetNumberOfBlocks(index)};
	BlockNumber room = RelationUsesLocalBuffers(index) ? num_temp_buffers : NBuffers;
	int64		n;

	pass.most = pass.nblocks;
	if (pass.nblocks <= room)
		n = read_pages(&pass);
	else
	{
		uint8	   *first = MemoryContextAllocExtended(CurrentMemoryContext, pass.nblocks / 8 + 1,
													   MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);

		/*
		 * a first pass through a few buffers shows of which kind the pages
		 * are
		 */
		pass.strategy = GetAccessStrategy(BAS_BULKREAD);
		pass.first = first;
		(void) read_pages(&pass);
		FreeAccessStrategy(pass.strategy);
		pass.strategy = NULL;
		pass.first = NULL;
		pass.most = room;
		pass.only = first;
		n = read_pages(&pass);
		pass.only = NULL;
		pass.but = first;
		pass.most = room - n;
		n += read_pages(&pass);
	}
	relation_close(index, AccessShareLock);
	PG_RETURN_INT64(n);
}
