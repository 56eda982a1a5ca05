/*
 * glance.c
 *		What a few pages of a graph index tell of all.
 */
#include "postgres.h"

#include "common/pg_prng.h"
#include "graph/graph.h"
#include "graph/meta.h"
#include "miscadmin.h"

void
GraphGlance(Relation index, BlockNumber most, double *deleted)
{
	GraphMetaData meta;
	GraphLayout layout;
	BlockNumber nblocks = RelationGetNumberOfBlocks(index);
	BlockNumber n = Min(nblocks, most);
	BufferAccessStrategy strategy = GetAccessStrategy(BAS_BULKREAD);
	pg_prng_state random;
	uint64		seen = 0;

	GraphReadMeta(index, &meta);
	if (!GraphLayoutFromMeta(&layout, &meta))
		QvReportCorruption(index, QV_META_BLOCK, "The metapage's numbers do not fit together.");
	/* the same pages each time, one of each n-th of the index */
	pg_prng_seed(&random, meta.seed);
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
		if (!PageIsNew(page) && QvPageIs(page, QV_PAGE_NODES))
			for (uint32 slot = 0; slot < layout.per_page; slot++)
				seen += GraphPageNode(&layout, page, slot)->state == GRAPH_SLOT_DELETED;
		UnlockReleaseBuffer(buf);
	}
	FreeAccessStrategy(strategy);
	*deleted = n > 0 ? (double) seen * nblocks / n : 0;
}
