/*
 * pages.c
 *		Metapage, directory and free pages; see pages.h.
 */
#include "postgres.h"

#include "common/pg_prng.h"
#include "ivf/pages.h"
#include "miscadmin.h"
#include "storage/indexfsm.h"

/* Frozen in each index; the same for all, so that builds repeat exactly. */
#define ROTATION_SEED UINT64CONST(0x5175697665720002)

void
IvfMetaInit(IvfMetaData *meta, int dims, const IvfOptions *options,
			const QvOpclassInfo *opclass)
{
	memset(meta, 0, sizeof(*meta));
	meta->magic = IVF_META_MAGIC;
	meta->dims = dims;
	meta->form = opclass->type->dense_float ? QV_FORM_CODED : QV_FORM_PLAIN;
	meta->metric = opclass->metric;
	meta->bits = options->bits;
	meta->grows = options->centroids == NULL;
	meta->max_lists = options->lists ? options->lists : IVF_MAX_LISTS;
	meta->seed = ROTATION_SEED;
	meta->build_id = pg_prng_uint64(&pg_global_prng_state);
	meta->mean_block = meta->list_head = meta->list_tail = InvalidBlockNumber;
	meta->tops = 1;
	if (meta->form == QV_FORM_CODED)
	{
		meta->pdim = QvPaddedDim(dims);
		meta->space = opclass->metric == QV_METRIC_IP ? QV_SPACE_IP : QV_SPACE_L2;
	}
	else
		meta->value_size = opclass->type->fixed_size(dims);
	IvfChooseLayout(meta);
	meta->version = meta->sketches_per_page > 0 ? IVF_META_VERSION : IVF_META_WITHOUT_SKETCHES;
}

void
IvfCreatePages(Relation index, ForkNumber fork, IvfMetaData *meta,
			   const float *mean, const char *entries, uint32 lists)
{
	Buffer		buf;
	Page		page;

	Assert(lists > 0);
	/* the metapage is filled in last, when the others are known */
	QvNewBuildPage(index, fork, QV_PAGE_META, &buf);
	Assert(BufferGetBlockNumber(buf) == QV_META_BLOCK);
	UnlockReleaseBuffer(buf);

	meta->mean_block = QvWriteFloats(index, fork, mean, meta->pdim);
	meta->lists = lists;
	for (uint32 first = 0; first < lists; first += meta->entries_per_page)
	{
		uint32		n = Min(lists - first, meta->entries_per_page);

		page = QvNewBuildPage(index, fork, QV_PAGE_LISTS, &buf);
		meta->list_tail = BufferGetBlockNumber(buf);
		if (first == 0)
			meta->list_head = meta->list_tail;
		IvfPageDirectory(page)->first = first;
		IvfPageDirectory(page)->count = n;
		memcpy(QvPageGetData(page) + sizeof(IvfDirectoryData),
			   entries + (Size) first * meta->entry_size, (Size) n * meta->entry_size);
		/* the pages of the directory follow one another */
		if (first + n < lists)
			QvPageGetHeader(page)->next = meta->list_tail + 1;
		UnlockReleaseBuffer(buf);
	}

	QvMetaWrite(index, fork, meta, sizeof(*meta));
}

void
IvfMakeEntry(const IvfLayout *layout, const float *centroid, const void *value,
			 uint32 parent, IvfEntry entry)
{
	memset(entry, 0, layout->entry_size);
	entry->head = entry->tail = InvalidBlockNumber;
	entry->generation = 1;
	entry->parent = parent;
	if (layout->form == QV_FORM_PLAIN)
		memcpy(IvfEntryCode(entry), value, layout->value_size);
	else
	{
		uint8	   *bytes = palloc(layout->pdim);
		float	   *decoded = palloc(layout->pdim * sizeof(float));
		QvCodeFactors factors;

		QvEncode(centroid, layout->pdim, layout->centroid_bits, bytes, &factors);
		QvPackCode(bytes, layout->pdim, layout->centroid_bits, IvfEntryCode(entry));
		qv_kernels.decode_u8(bytes, factors.scale, QvCodeOffset(layout->centroid_bits),
							 decoded, layout->pdim);
		/* rows are coded against what is decoded, so that is the centroid */
		entry->scale = factors.scale;
		entry->norm2 = qv_kernels.norm2_f32(decoded, layout->pdim);
		pfree(bytes);
		pfree(decoded);
	}
}

/* ---- allocation ---- */

Buffer
IvfAllocPage(IvfHandle *handle, bool building)
{
	Relation	index = handle->index;
	BlockNumber block;

	while (!building && BlockNumberIsValid(block = GetFreeIndexPage(index)))
	{
		Buffer		buf;
		Page		page;

		/* the map is not WAL-logged: after a crash it may say anything */
		if (block == QV_META_BLOCK || block >= RelationGetNumberOfBlocks(index))
			continue;
		buf = QvReadBuffer(index, block, NULL);
		/* one that is locked is in use; the caller has locks, so do not wait */
		if (!ConditionalLockBuffer(buf))
		{
			ReleaseBuffer(buf);
			continue;
		}
		page = BufferGetPage(buf);
		/* an empty page may be one that somebody has added to fill it later */
		if (!PageIsNew(page) && QvPageIs(page, QV_PAGE_FREE))
			return buf;
		UnlockReleaseBuffer(buf);
	}
	return QvNewPage(index, MAIN_FORKNUM);
}

void
IvfFreePage(IvfHandle *handle, Buffer buf)
{
	BlockNumber block = BufferGetBlockNumber(buf);
	QvWrite		w;

	QvWriteBegin(&w, handle->index, false);
	(void) QvWriteRegisterNew(&w, buf, QV_PAGE_FREE);
	QvWriteCommit(&w);
	RecordFreeIndexPage(handle->index, block);
}

static Buffer read_own_page(IvfHandle *handle, BlockNumber block, QvPageKind kind, uint32 list,
							uint32 generation, int lockmode);

/* Free a block if it is a page of records or sketches of that list. */
static void
free_items(IvfHandle *handle, BlockNumber block, QvPageKind kind, uint32 list, uint32 generation)
{
	Buffer		buf = read_own_page(handle, block, kind, list, generation, BUFFER_LOCK_EXCLUSIVE);

	/* those between two pages come twice */
	if (BufferIsValid(buf))
	{
		IvfFreePage(handle, buf);
		UnlockReleaseBuffer(buf);
	}
}

void
IvfFreeList(IvfHandle *handle, uint32 list, uint32 generation, BlockNumber head)
{
	const IvfLayout *layout = &handle->layout;
	BlockNumber *links = palloc(Max(1, layout->links) * sizeof(BlockNumber));

	while (BlockNumberIsValid(head))
	{
		Buffer		buf;
		BlockNumber next;

		CHECK_FOR_INTERRUPTS();
		buf = IvfReadListPage(handle, head, list, generation, BUFFER_LOCK_EXCLUSIVE);
		if (!BufferIsValid(buf))
			break;
		next = QvPageGetHeader(BufferGetPage(buf))->next;
		memcpy(links, IvfPageList(BufferGetPage(buf))->item_pages, layout->links * sizeof(BlockNumber));
		IvfFreePage(handle, buf);
		UnlockReleaseBuffer(buf);
		for (int which = 0; which < IVF_ITEM_KINDS; which++)
		{
			const IvfItems *items = &layout->items[which];

			for (uint32 i = items->first_link; i < items->first_link + items->max_pages; i++)
				if (BlockNumberIsValid(links[i]))
					free_items(handle, links[i], items->kind, list, generation);
		}
		head = next;
	}
	pfree(links);
	IndexFreeSpaceMapVacuum(handle->index);
}

/* ---- reading ---- */

static Buffer
read_own_page(IvfHandle *handle, BlockNumber block, QvPageKind kind, uint32 list,
			  uint32 generation, int lockmode)
{
	Buffer		buf = QvReadAnyPage(handle->index, handle->hints, block,
									kind == QV_PAGE_RECORDS ? handle->record_strategy : NULL,
									lockmode);
	Page		page = BufferGetPage(buf);

	/* list and generation are the first words of all kinds */
	if (QvPageIs(page, kind) && IvfPageList(page)->list == list &&
		IvfPageList(page)->generation == generation)
		return buf;
	if (PageIsNew(page) || QvPageGetHeader(page)->magic != QV_PAGE_MAGIC ||
		QvPageGetHeader(page)->version != QV_PAGE_VERSION)
		QvPageCheck(handle->index, block, page, kind);
	UnlockReleaseBuffer(buf);
	return InvalidBuffer;
}

Buffer
IvfReadListPage(IvfHandle *handle, BlockNumber block, uint32 list,
				uint32 generation, int lockmode)
{
	Buffer		buf = read_own_page(handle, block, QV_PAGE_CODES, list, generation, lockmode);
	IvfListPage head;

	if (!BufferIsValid(buf))
		return buf;
	head = IvfPageList(BufferGetPage(buf));
	if (head->count > handle->layout.slots)
		QvReportCorruption(handle->index, block, "The page claims %u rows.", head->count);
	/* the position of its last slot is a uint32: IvfItemLink() must not wrap */
	if (head->number >= PG_UINT32_MAX / handle->layout.slots)
		QvReportCorruption(handle->index, block, "The page claims to be number %u of its list.",
						   head->number);
	return buf;
}

Buffer
IvfReadItemPage(IvfHandle *handle, IvfItemKind which, BlockNumber block, uint32 list,
				uint32 generation, uint32 number, int lockmode)
{
	Buffer		buf = read_own_page(handle, block, handle->layout.items[which].kind, list,
									generation, lockmode);

	if (BufferIsValid(buf) && IvfPageItems(BufferGetPage(buf))->number != number)
		QvReportCorruption(handle->index, block, "The page of %s is number %u of list %u, not %u.",
						   handle->layout.items[which].what, IvfPageItems(BufferGetPage(buf))->number, list, number);
	return buf;
}

Buffer
IvfReadEntry(IvfHandle *handle, uint32 list, int lockmode, IvfEntry *entry)
{
	BlockNumber block = handle->lists->refs[list].directory;
	Buffer		buf = QvReadPage(handle->index, handle->hints, block, QV_PAGE_LISTS, lockmode);
	IvfDirectory directory = IvfPageDirectory(BufferGetPage(buf));

	if (list < directory->first || list - directory->first >= directory->count ||
		directory->count > handle->layout.entries_per_page)
		QvReportCorruption(handle->index, block, "The page of the directory does not have list %u.", list);
	*entry = IvfPageEntry(&handle->layout, BufferGetPage(buf), list - directory->first);
	return buf;
}
