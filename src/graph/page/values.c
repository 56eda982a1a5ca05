/*
 * values.c
 *		Pieces of values on pages; see values.h.
 *
 * Locks: one page at a time.  When the list changes, the metapage, one listed page and a
 * new page are locked together, in this order.  A value is written piece by piece, the last
 * piece first, before anything refers to it.  A crash or an error meanwhile loses the space
 * of those pieces, and nothing else.
 */
#include "postgres.h"

#include "common/pg_prng.h"
#include "compat.h"
#include "graph/page/meta.h"
#include "graph/page/values.h"
#include "pages/write.h"

#define PIECE_HEADER offsetof(GraphPieceData, data)

/* Bytes of the header and the lines of a page with that many lines. */
#define PageHead(lines) \
	MAXALIGN(offsetof(GraphValuePageData, line) + (Size) (lines) * sizeof(GraphValueLine))

/* Bytes of the largest piece, on an empty page. */
#define MAX_PIECE (QV_PAGE_SPACE - PageHead(1))

/* Least room for a piece of a value that needs several pieces, in bytes. */
#define MIN_SPLIT 256

/* VACUUM lists a page that has at least this room, in bytes. */
#define LIST_ROOM (QV_PAGE_SPACE / 4)

static inline GraphValuePage
value_page(Page page)
{
	return (GraphValuePage) QvPageGetData(page);
}

/* Raises an error if changing the page would write outside of it. */
static void
check_page(Relation index, BlockNumber block, GraphValuePage vp)
{
	Size		live = 0;

	if (PageHead(vp->lines) > vp->upper || vp->upper > QV_PAGE_SPACE)
		QvReportCorruption(index, block, "The value page's head does not fit together.");
	for (int i = 0; i < vp->lines; i++)
	{
		uint16		offset = vp->line[i].offset,
					size = vp->line[i].size;

		if (offset == 0)
			continue;
		if (offset < vp->upper || offset % MAXIMUM_ALIGNOF != 0 || size <= PIECE_HEADER ||
			offset + size > QV_PAGE_SPACE)
			QvReportCorruption(index, block, "Value piece %d is not within the page.", i);
		live += MAXALIGN(size);
	}
	if (live != vp->live || PageHead(vp->lines) + live > QV_PAGE_SPACE)
		QvReportCorruption(index, block, "The value pieces have %zu bytes, not %u.",
						   live, vp->live);
}

/* Returns the bytes of the largest piece, with its header, that can be added. */
static Size
page_room(GraphValuePage vp)
{
	Size		used = PageHead(vp->lines + 1) + vp->live;

	return used < QV_PAGE_SPACE ? QV_PAGE_SPACE - used : 0;
}

/*
 * Returns how many of the last of "left" bytes to put on a page.  The page gets all of
 * them, or, if no page has room for all, as many as it has room for.  0: none.
 */
static Size
bytes_to_take(GraphValuePage vp, Size left)
{
	Size		room = page_room(vp);

	if (MAXALIGN(PIECE_HEADER + left) <= room)
		return left;
	if (MAXALIGN(PIECE_HEADER + left) > MAX_PIECE && room >= MIN_SPLIT)
		return room - PIECE_HEADER;
	return 0;
}

/* Moves the pieces to the end of the page. */
static void
compact(GraphValuePage vp)
{
	PGAlignedBlock copy;

	memcpy(copy.data, vp, QV_PAGE_SPACE);
	vp->upper = QV_PAGE_SPACE;
	for (int i = 0; i < vp->lines; i++)
		if (vp->line[i].offset != 0)
		{
			vp->upper -= MAXALIGN(vp->line[i].size);
			memcpy((char *) vp + vp->upper, copy.data + vp->line[i].offset,
				   vp->line[i].size);
			vp->line[i].offset = vp->upper;
		}
}

/* Makes a place for a piece of size bytes, with its header.  There must be room. */
static GraphPiece
add_piece(GraphValuePage vp, Size size, uint16 *line)
{
	int			i = 0;

	while (i < vp->lines && vp->line[i].offset != 0)
		i++;
	if (PageHead(Max(vp->lines, i + 1)) + MAXALIGN(size) > vp->upper)
		compact(vp);
	vp->lines = Max(vp->lines, i + 1);
	vp->upper -= MAXALIGN(size);
	vp->live += MAXALIGN(size);
	vp->line[i].offset = vp->upper;
	vp->line[i].size = size;
	*line = i;
	return (GraphPiece) ((char *) vp + vp->upper);
}

static void
remove_piece(GraphValuePage vp, int line)
{
	vp->live -= MAXALIGN(vp->line[line].size);
	vp->line[line].offset = 0;
	while (vp->lines > 0 && vp->line[vp->lines - 1].offset == 0)
		vp->lines--;
	if (vp->lines == 0)
		vp->upper = QV_PAGE_SPACE;
}

/* Returns the piece in a line, or NULL if there is none with that stamp. */
static GraphPiece
find_piece(GraphValuePage vp, int line, uint32 stamp, Size *bytes)
{
	GraphPiece	piece;
	uint16		offset,
				size;

	if (line >= vp->lines || vp->lines > QV_PAGE_SPACE / sizeof(GraphValueLine))
		return NULL;
	offset = vp->line[line].offset;
	size = vp->line[line].size;
	if (offset == 0 || offset % MAXIMUM_ALIGNOF != 0 || size < PIECE_HEADER ||
		offset + size > QV_PAGE_SPACE)
		return NULL;
	piece = (GraphPiece) ((char *) vp + offset);
	*bytes = size - PIECE_HEADER;
	return piece->stamp == stamp ? piece : NULL;
}

/*
 * Returns another page when the page "full" has no room for the last of "left" bytes: the
 * next one of the list, or a new one.
 */
static BlockNumber
next_page(GraphHandle *handle, BlockNumber full, Size left)
{
	Relation	index = handle->index;
	GraphMetaData *meta;
	Buffer		meta_buf = GraphLockMeta(index, handle->hints, &meta);
	Buffer		full_buf = InvalidBuffer,
				new_buf = InvalidBuffer;
	BlockNumber next = meta->value_block;
	QvWrite		w;

	if (next != full)
	{
		/* another backend went on already */
		UnlockReleaseBuffer(meta_buf);
		return next;
	}
	next = InvalidBlockNumber;
	if (BlockNumberIsValid(full))
	{
		full_buf = QvReadPage(index, handle->hints, full, QV_PAGE_VALUES,
							  BUFFER_LOCK_EXCLUSIVE);
		if (bytes_to_take(value_page(BufferGetPage(full_buf)), left) > 0)
		{
			/* VACUUM has made room meanwhile */
			UnlockReleaseBuffer(full_buf);
			UnlockReleaseBuffer(meta_buf);
			return full;
		}
		next = QvPageGetHeader(BufferGetPage(full_buf))->next;
	}
	if (!BlockNumberIsValid(next))
	{
		new_buf = QvNewPage(index, MAIN_FORKNUM);
		next = BufferGetBlockNumber(new_buf);
	}

	QvWriteBegin(&w, index, handle->building);
	GraphRegisterMeta(&w, meta_buf)->value_block = next;
	if (BufferIsValid(full_buf))
	{
		Page		page = QvWriteRegister(&w, full_buf);

		value_page(page)->listed = 0;
		QvPageGetHeader(page)->next = InvalidBlockNumber;
	}
	if (BufferIsValid(new_buf))
	{
		GraphValuePage vp = value_page(QvWriteRegisterNew(&w, new_buf, QV_PAGE_VALUES));

		vp->upper = QV_PAGE_SPACE;
		vp->listed = 1;
	}
	QvWriteCommit(&w);
	if (BufferIsValid(new_buf))
		UnlockReleaseBuffer(new_buf);
	if (BufferIsValid(full_buf))
		UnlockReleaseBuffer(full_buf);
	UnlockReleaseBuffer(meta_buf);
	QvInjectionPoint("quiver-graph-value-page-added");
	return next;
}

/*
 * Locks the page that the last of "left" bytes go to, *take of them.  *block is the page to
 * try first (invalid: none), then the page that is locked.
 */
static Buffer
lock_room(GraphHandle *handle, Size left, BlockNumber *block, Size *take)
{
	for (;;)
	{
		if (BlockNumberIsValid(*block))
		{
			Buffer		buf = QvReadPage(handle->index, handle->hints, *block, QV_PAGE_VALUES,
										 BUFFER_LOCK_EXCLUSIVE);

			check_page(handle->index, *block, value_page(BufferGetPage(buf)));
			*take = bytes_to_take(value_page(BufferGetPage(buf)), left);
			if (*take > 0)
				return buf;
			UnlockReleaseBuffer(buf);
		}
		*block = next_page(handle, *block, left);
	}
}

void
GraphStoreValue(GraphHandle *handle, const void *value, Size size, GraphValueRef *ref)
{
	BlockNumber block = handle->meta.value_block;
	Size		take;

	memset(ref, 0, sizeof(*ref));
	ref->block = InvalidBlockNumber;
	ref->stamp = pg_prng_uint32(&pg_global_prng_state);
	ref->size = size;
	for (Size left = size; left > 0; left -= take)
	{
		Buffer		buf = lock_room(handle, left, &block, &take);
		QvWrite		w;
		GraphPiece	piece;
		uint16		line;

		QvWriteBegin(&w, handle->index, handle->building);
		piece = add_piece(value_page(QvWriteRegister(&w, buf)), PIECE_HEADER + take, &line);
		piece->stamp = ref->stamp;
		piece->rest = size - (left - take);
		piece->next = ref->block;
		piece->next_line = ref->line;
		piece->unused = 0;
		memcpy(piece->data, (const char *) value + left - take, take);
		QvWriteCommit(&w);
		UnlockReleaseBuffer(buf);
		ref->block = block;
		ref->line = line;
		QvInjectionPoint("quiver-graph-piece-stored");
	}
	/* this backend tries this page first the next time */
	handle->meta.value_block = block;
}

const void *
GraphBorrowStored(GraphHandle *handle, const GraphValueRef *ref,
				  GraphScratch *scratch, Buffer *buf)
{
	BlockNumber block = ref->block;
	uint16		line = ref->line;
	Size		done = 0;

	*buf = InvalidBuffer;
	while (done < ref->size)
	{
		Buffer		at;
		GraphPiece	piece;
		Size		bytes;

		if (!BlockNumberIsValid(block))
			return NULL;
		at = QvReadPage(handle->index, handle->hints, block, QV_PAGE_VALUES,
						BUFFER_LOCK_SHARE);
		piece = find_piece(value_page(BufferGetPage(at)), line, ref->stamp, &bytes);
		if (piece == NULL || bytes == 0 || piece->rest != ref->size - done ||
			bytes > piece->rest)
		{
			UnlockReleaseBuffer(at);
			return NULL;
		}
		if (bytes == ref->size)
		{
			*buf = at;
			return piece->data;
		}
		if (scratch->size < ref->size)
		{
			if (scratch->data)
				pfree(scratch->data);
			scratch->data = MemoryContextAllocHuge(CurrentMemoryContext, ref->size);
			scratch->size = ref->size;
		}
		memcpy(scratch->data + done, piece->data, bytes);
		done += bytes;
		block = piece->next;
		line = piece->next_line;
		UnlockReleaseBuffer(at);
	}
	return scratch->data;
}

/* Puts a page into the list of pages with room. */
static void
list_page(GraphHandle *handle, BlockNumber block)
{
	GraphMetaData *meta;
	Buffer		meta_buf = GraphLockMeta(handle->index, handle->hints, &meta);
	Buffer		buf = QvReadPage(handle->index, handle->hints, block, QV_PAGE_VALUES,
								 BUFFER_LOCK_EXCLUSIVE);

	if (!value_page(BufferGetPage(buf))->listed)
	{
		Page		page;
		QvWrite		w;

		QvWriteBegin(&w, handle->index, handle->building);
		meta = GraphRegisterMeta(&w, meta_buf);
		page = QvWriteRegister(&w, buf);
		value_page(page)->listed = 1;
		QvPageGetHeader(page)->next = meta->value_block;
		meta->value_block = block;
		QvWriteCommit(&w);
	}
	UnlockReleaseBuffer(buf);
	UnlockReleaseBuffer(meta_buf);
	QvInjectionPoint("quiver-graph-value-page-listed");
}

void
GraphFreeStored(GraphHandle *handle, const GraphValueRef *ref)
{
	BlockNumber block = ref->block;
	uint16		line = ref->line;

	while (BlockNumberIsValid(block))
	{
		BlockNumber at = block;
		Buffer		buf = QvReadPage(handle->index, handle->hints, at, QV_PAGE_VALUES,
									 BUFFER_LOCK_EXCLUSIVE);
		GraphValuePage vp = value_page(BufferGetPage(buf));
		Size		bytes;
		GraphPiece	piece = find_piece(vp, line, ref->stamp, &bytes);
		bool		list = false;

		block = InvalidBlockNumber;
		if (piece != NULL)
		{
			QvWrite		w;
			uint16		next_line = piece->next_line;

			block = piece->next;
			check_page(handle->index, at, vp);
			QvWriteBegin(&w, handle->index, handle->building);
			vp = value_page(QvWriteRegister(&w, buf));
			remove_piece(vp, line);
			list = !vp->listed && page_room(vp) >= LIST_ROOM;
			QvWriteCommit(&w);
			line = next_line;
		}
		UnlockReleaseBuffer(buf);
		QvInjectionPoint("quiver-graph-piece-freed");
		if (list)
			list_page(handle, at);
	}
}

/* Only quiver_check() finds overlapping pieces.  They damage no other value. */
void
GraphCheckValuePage(Relation index, BlockNumber block, Page page)
{
	GraphValuePage vp = value_page(page);

	check_page(index, block, vp);
	for (int i = 0; i < vp->lines; i++)
		for (int j = 0; j < i && vp->line[i].offset != 0; j++)
			if (vp->line[j].offset != 0 &&
				vp->line[i].offset < vp->line[j].offset + vp->line[j].size &&
				vp->line[j].offset < vp->line[i].offset + vp->line[i].size)
				QvReportCorruption(index, block, "Value pieces %d and %d overlap.", j, i);
}
