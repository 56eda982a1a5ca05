/*
 * glance.c
 *		What a few pages of an index of posting lists tell of all.
 */
#include "postgres.h"

#include "common/pg_prng.h"
#include "ivf/cache.h"
#include "ivf/ivf.h"
#include "miscadmin.h"

/* Is a page one that nothing leads to?  A list's pages are of its generation. */
static bool
is_lost(const IvfHandle *handle, Page page)
{
	const IvfLists *lists = handle->lists;
	IvfListPage head = IvfPageList(page);

	if (PageIsNew(page))
		return true;
	return IvfIsListPage(page) &&
		(head->list >= lists->count || head->generation != lists->refs[head->list].generation);
}

void
IvfGlance(Relation index, const QvOpclassInfo *opclass, BlockNumber most, IvfGlanced *glanced)
{
	IvfHandle  *handle = IvfOpen(index, opclass);
	BlockNumber nblocks = RelationGetNumberOfBlocks(index);
	BlockNumber n = Min(nblocks, most);
	BufferAccessStrategy strategy = GetAccessStrategy(BAS_BULKREAD);
	pg_prng_state random;
	uint64		dead = 0,
				lost = 0;

	/* the same pages each time, one of each n-th of the index */
	pg_prng_seed(&random, handle->meta.seed);
	for (BlockNumber i = 0; i < n; i++)
	{
		BlockNumber first = (uint64) nblocks * i / n;
		BlockNumber last = (uint64) nblocks * (i + 1) / n - 1;
		Buffer		buf;
		Page		page;

		CHECK_FOR_INTERRUPTS();
		buf = QvReadBuffer(index, pg_prng_uint64_range(&random, first, last), strategy);
		LockBuffer(buf, BUFFER_LOCK_SHARE);
		page = BufferGetPage(buf);
		if (is_lost(handle, page))
			lost++;
		else if (QvPageIs(page, QV_PAGE_CODES))
			dead += IvfPageList(page)->dead;
		UnlockReleaseBuffer(buf);
	}
	FreeAccessStrategy(strategy);
	glanced->dead = n > 0 ? (double) dead * nblocks / n : 0;
	glanced->lost_pages = n > 0 ? (double) lost * nblocks / n : 0;
	glanced->measured = handle->meta.probes[0] > 0 && !(handle->meta.flags & IVF_MEASURE);
}
