/*
 * sample.c
 *		Reading some pages of an index; see sample.h.
 */
#include "postgres.h"

#include "common/pg_prng.h"
#include "miscadmin.h"
#include "pages/read.h"
#include "pages/sample.h"

double
QvSamplePages(Relation index, uint64 seed, BlockNumber most,
			  void (*look) (Page page, void *arg), void *arg)
{
	BlockNumber nblocks = RelationGetNumberOfBlocks(index);
	BlockNumber n = Min(nblocks, most);
	BufferAccessStrategy strategy = GetAccessStrategy(BAS_BULKREAD);
	pg_prng_state random;

	pg_prng_seed(&random, seed);
	for (BlockNumber i = 0; i < n; i++)
	{
		/* a page of each n-th of the index */
		BlockNumber first = (uint64) nblocks * i / n;
		BlockNumber last = (uint64) nblocks * (i + 1) / n - 1;
		Buffer		buf;

		CHECK_FOR_INTERRUPTS();
		buf = QvReadBuffer(index, pg_prng_uint64_range(&random, first, last), strategy);
		LockBuffer(buf, BUFFER_LOCK_SHARE);
		look(BufferGetPage(buf), arg);
		UnlockReleaseBuffer(buf);
	}
	FreeAccessStrategy(strategy);
	return n > 0 ? (double) nblocks / n : 0;
}
