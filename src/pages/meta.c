/*
 * meta.c
 *		Metapages; see meta.h.
 */
#include "postgres.h"

#include "pages/meta.h"
#include "pages/read.h"
#include "pages/write.h"

void *
QvMetaGet(Relation index, Page page, const QvMetaFormat *format)
{
	const uint32 *meta = (const uint32 *) QvPageGetData(page);

	if (!QvPageIs(page, QV_PAGE_META) &&
		!PageIsNew(page) &&
		*(uint32 *) PageGetContents(page) == format->pgvector_magic)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("index \"%s\" was built by pgvector",
						RelationGetRelationName(index)),
				 errdetail("Quiver does not read pgvector's index pages."),
				 errhint("Please REINDEX it.")));
	QvPageCheck(index, QV_META_BLOCK, page, QV_PAGE_META);
	if (meta[0] != format->magic)
		QvReportCorruption(index, QV_META_BLOCK, "The metapage is not that of %s.", format->what);
	if (meta[1] < format->min_version || meta[1] > format->max_version)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("index \"%s\" has format version %u, which this version of Quiver does not read",
						RelationGetRelationName(index), meta[1]),
				 errhint("Please REINDEX it.")));
	return QvPageGetData(page);
}

void
QvMetaRead(Relation index, const QvMetaFormat *format, void *meta, Size size)
{
	Buffer		buf = QvReadBuffer(index, QV_META_BLOCK, NULL);

	LockBuffer(buf, BUFFER_LOCK_SHARE);
	memcpy(meta, QvMetaGet(index, BufferGetPage(buf), format), size);
	UnlockReleaseBuffer(buf);
}

void
QvMetaWrite(Relation index, ForkNumber fork, const void *meta, Size size)
{
	Buffer		buf = ReadBufferExtended(index, fork, QV_META_BLOCK, RBM_NORMAL, NULL);

	LockBuffer(buf, BUFFER_LOCK_EXCLUSIVE);
	memcpy(QvPageGetData(BufferGetPage(buf)), meta, size);
	MarkBufferDirty(buf);
	UnlockReleaseBuffer(buf);
}

/* Returns what a metapage notes, which is in a locked buffer; of another page nothing is known. */
static int
left_out_of(Buffer buf)
{
	Page		page = BufferGetPage(buf);
	BlockNumber noted = QvPageIs(page, QV_PAGE_META) ? QvPageGetHeader(page)->next : InvalidBlockNumber;

	return noted > QV_LEFT_OUT_ALL ? QV_LEFT_OUT_ALL : (int) noted;
}

int
QvMetaLeftOut(Relation index)
{
	Buffer		buf = QvReadBuffer(index, QV_META_BLOCK, NULL);
	int			result;

	LockBuffer(buf, BUFFER_LOCK_SHARE);
	result = left_out_of(buf);
	UnlockReleaseBuffer(buf);
	return result;
}

void
QvMetaLeaveOut(Relation index, int left_out)
{
	Buffer		buf;
	QvWrite		w;
	int			noted;

	if ((QvMetaLeftOut(index) & left_out) == left_out)
		return;
	buf = QvReadBuffer(index, QV_META_BLOCK, NULL);
	LockBuffer(buf, BUFFER_LOCK_EXCLUSIVE);
	noted = left_out_of(buf);
	if ((noted & left_out) != left_out)
	{
		QvWriteBegin(&w, index, false);
		QvPageGetHeader(QvWriteRegister(&w, buf))->next = noted | left_out;
		QvWriteCommit(&w);
	}
	UnlockReleaseBuffer(buf);
}
