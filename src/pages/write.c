/*
 * write.c
 *		Changing index pages; see write.h.
 */
#include "postgres.h"

#include "access/xloginsert.h"
#include "compat.h"
#include "miscadmin.h"
#include "storage/indexfsm.h"
#include "storage/lmgr.h"
#include "storage/smgr.h"
#include "pages/write.h"

void
QvWriteBegin(QvWrite *w, Relation index, bool building)
{
	w->xlog = building ? NULL : GenericXLogStart(index);
	w->count = 0;
}

Page
QvWriteRegister(QvWrite *w, Buffer buf)
{
	Assert(w->count < MAX_GENERIC_XLOG_PAGES);
	if (w->xlog)
		w->pages[w->count] = GenericXLogRegisterBuffer(w->xlog, buf, 0);
	else
		w->pages[w->count] = BufferGetPage(buf);
	w->buffers[w->count] = buf;
	return w->pages[w->count++];
}

Page
QvWriteRegisterNew(QvWrite *w, Buffer buf, QvPageKind kind)
{
	Page		page;

	Assert(w->count < MAX_GENERIC_XLOG_PAGES);
	if (w->xlog)
		page = GenericXLogRegisterBuffer(w->xlog, buf, GENERIC_XLOG_FULL_IMAGE);
	else
		page = BufferGetPage(buf);
	QvPageInit(page, kind);
	w->buffers[w->count] = buf;
	w->pages[w->count++] = page;
	return page;
}

/*
 * Sets the page's hole to the zeros at its end.  WAL leaves a hole out, and replay fills
 * it with zeros again.
 */
static void
set_hole(Page page)
{
	const uint64 *words = (const uint64 *) page;
	size_t		used = BLCKSZ / sizeof(uint64);

	while (words[used - 1] == 0)	/* the header is never all zero */
		used--;
	((PageHeader) page)->pd_lower = used * sizeof(uint64);
}

void
QvWriteCommit(QvWrite *w)
{
	if (w->xlog)
	{
		for (int i = 0; i < w->count; i++)
			set_hole(w->pages[i]);
		GenericXLogFinish(w->xlog);
	}
	else
		for (int i = 0; i < w->count; i++)
			MarkBufferDirty(w->buffers[i]);
}

void
QvWriteEnd(QvWrite *w)
{
	QvWriteCommit(w);
	while (w->count > 0)
		UnlockReleaseBuffer(w->buffers[--w->count]);
}

Buffer
QvNewPage(Relation index, ForkNumber fork)
{
	return QvExtendRelation(index, fork);
}

Page
QvNewBuildPage(Relation index, ForkNumber fork, QvPageKind kind, Buffer *buf)
{
	Page		page;

	*buf = QvNewPage(index, fork);
	page = BufferGetPage(*buf);
	QvPageInit(page, kind);
	MarkBufferDirty(*buf);
	return page;
}

BlockNumber
QvWriteFloats(Relation index, ForkNumber fork, const float *x, uint32 n)
{
	BlockNumber first = InvalidBlockNumber;

	for (uint32 done = 0; done < n; done += QV_FLOATS_PER_PAGE)
	{
		Buffer		buf;
		Page		page = QvNewBuildPage(index, fork, QV_PAGE_FLOATS, &buf);

		if (done == 0)
			first = BufferGetBlockNumber(buf);
		if (x)
			memcpy(QvPageGetData(page), x + done,
				   Min(n - done, QV_FLOATS_PER_PAGE) * sizeof(float));
		UnlockReleaseBuffer(buf);
	}
	return first;
}

void
QvWriteLogAll(Relation index, ForkNumber fork)
{
	if (RelationNeedsWAL(index) || fork == INIT_FORKNUM)
		log_newpage_range(index, fork, 0,
						  RelationGetNumberOfBlocksInFork(index, fork), true);
}

void
QvPublishFreePages(Relation index)
{
	BlockNumber nblocks;

	IndexFreeSpaceMapVacuum(index);
	if (!RelationNeedsWAL(index) || !smgrexists(RelationGetSmgr(index), FSM_FORKNUM))
		return;
	nblocks = RelationGetNumberOfBlocksInFork(index, FSM_FORKNUM);
	for (BlockNumber block = 0; block < nblocks; block++)
	{
		/*
		 * as in the server, a page of the map that a crash has torn is
		 * replaced by zeros
		 */
		Buffer		buf;

		CHECK_FOR_INTERRUPTS();
		buf = ReadBufferExtended(index, FSM_FORKNUM, block, RBM_ZERO_ON_ERROR, NULL);
		LockBuffer(buf, BUFFER_LOCK_EXCLUSIVE);
		if (!PageIsNew(BufferGetPage(buf)))
		{
			START_CRIT_SECTION();
			MarkBufferDirty(buf);
			log_newpage_buffer(buf, false);
			END_CRIT_SECTION();
		}
		UnlockReleaseBuffer(buf);
	}
}
