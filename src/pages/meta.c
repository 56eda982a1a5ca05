/*
 * meta.c
 *		Metapages; see meta.h.
 */
#include "postgres.h"

#include "access/xlog.h"
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

/*
 * A note is the "next" of the metapage's header: a bit for each kind of rows left out, one for
 * may_look, one for wanted, and the number of the block seen, plus 1.  Indexes of older releases
 * have an invalid block there.
 */
#define MAY_LOOK 4
#define WANTED 8
#define SEEN_SHIFT 4
#define MOST_SEEN ((InvalidBlockNumber >> SEEN_SHIFT) - 2)

/* Returns the note of a metapage, which is in a locked buffer; of another page nothing is known. */
static BlockNumber
note_of(Buffer buf)
{
	Page		page = BufferGetPage(buf);

	return QvPageIs(page, QV_PAGE_META) ? QvPageGetHeader(page)->next : InvalidBlockNumber;
}

static BlockNumber
pack_note(const QvMetaNote *note)
{
	BlockNumber packed = note->left_out | (note->may_look ? MAY_LOOK : 0) | (note->wanted ? WANTED : 0);

	return BlockNumberIsValid(note->seen) && note->seen <= MOST_SEEN ?
		packed | (note->seen + 1) << SEEN_SHIFT : packed;
}

static QvMetaNote
unpack_note(BlockNumber packed)
{
	BlockNumber seen = packed >> SEEN_SHIFT;

	/* such a note is never replaced, and nobody need try */
	if (packed == InvalidBlockNumber)
		return (QvMetaNote) {.left_out = QV_LEFT_OUT_ALL, .wanted = true, .seen = InvalidBlockNumber};
	return (QvMetaNote)
	{
		.left_out = packed & QV_LEFT_OUT_ALL,
			.wanted = (packed & WANTED) != 0,
			.may_look = (packed & MAY_LOOK) != 0,
			.seen = seen > 0 ? seen - 1 : InvalidBlockNumber
	};
}

QvMetaNote
QvMetaGetNote(Relation index)
{
	Buffer		buf = QvReadBuffer(index, QV_META_BLOCK, NULL);
	QvMetaNote	note;

	LockBuffer(buf, BUFFER_LOCK_SHARE);
	note = unpack_note(note_of(buf));
	UnlockReleaseBuffer(buf);
	return note;
}

int
QvMetaLeftOut(Relation index)
{
	return QvMetaGetNote(index).left_out;
}

bool
QvMetaReplaceNote(Relation index, const QvMetaNote *old, const QvMetaNote *note)
{
	Buffer		buf = QvReadBuffer(index, QV_META_BLOCK, NULL);
	QvWrite		w;
	bool		changes;

	LockBuffer(buf, BUFFER_LOCK_EXCLUSIVE);
	changes = note_of(buf) == pack_note(old) && pack_note(note) != pack_note(old);
	if (changes)
	{
		QvWriteBegin(&w, index, false);
		QvPageGetHeader(QvWriteRegister(&w, buf))->next = pack_note(note);
		QvWriteCommit(&w);
	}
	UnlockReleaseBuffer(buf);
	return changes;
}

int
QvMetaMissing(Relation index, int needs)
{
	QvMetaNote	old,
				note;

	if (needs == 0)
		return 0;
	old = note = QvMetaGetNote(index);
	note.wanted = true;
	if ((needs & old.left_out & QV_LEFT_OUT_NULLS) && !old.wanted && !RecoveryInProgress())
		QvMetaReplaceNote(index, &old, &note);
	return needs & old.left_out;
}

void
QvMetaLeaveOut(Relation index, int left_out)
{
	for (;;)
	{
		QvMetaNote	old = QvMetaGetNote(index);
		QvMetaNote	note = old;

		note.left_out |= left_out;
		if (left_out & QV_LEFT_OUT_NULLS)
			note.may_look = false;
		if (pack_note(&note) == pack_note(&old) || QvMetaReplaceNote(index, &old, &note))
			return;
	}
}
