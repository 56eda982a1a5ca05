/*
 * move.c
 *		Writing lists anew; see move.h.
 */
#include "postgres.h"

#include <math.h>

#include "cluster/kmeans.h"
#include "common/pg_prng.h"
#include "ivf/calibrate.h"
#include "ivf/move.h"
#include "miscadmin.h"
#include "space/sample.h"
#include "storage/indexfsm.h"
#include "storage/lmgr.h"
#include "utils/memutils.h"

/* A list that is so many times as long as it should be is split, ... */
#define SPLIT_FACTOR 2

/* ... but not below so many rows. */
#define MIN_SPLIT_ROWS 128

/* A split that leaves less than this share on one side is none. */
#define LEAST_SHARE 0.02

/* Rows that decide where a list is cut. */
#define SPLIT_SAMPLE 4096
#define SPLIT_ITERATIONS 8

/* Probes are measured again when there are so many times the lists. */
#define MEASURE_AGAIN 1.5
#define LEAST_MEASURED 8

bool
IvfWantsSplit(const IvfHandle *handle, uint32 list, uint64 rows)
{
	uint64		lists = handle->lists->count;

	return handle->meta.grows && lists < handle->meta.max_lists &&
		rows > Max(MIN_SPLIT_ROWS, SPLIT_FACTOR * IvfListLength(&handle->layout, lists)) &&
		rows > 2 * (uint64) handle->lists->refs[list].refused;
}

/*
 * The generation that follows another.  Pages that a crash left behind must not
 * be taken for those of the next try, so half of it is random.
 */
static uint32
next_generation(uint32 generation)
{
	return ((generation >> 16) + 1) << 16 |
		(uint32) (pg_prng_uint32(&pg_global_prng_state) & 0xFFFF);
}

/* ---- walking a list that cannot move ---- */

typedef struct Walk
{
	IvfHandle  *handle;
	uint32		list;
	uint32		generation;
	BlockNumber block;			/* of the page in image, or of the next to read */
	uint32		number;			/* of that page in the list */
	char	   *image;			/* of the page of the list */
	char	   *items[IVF_ITEM_KINDS];	/* of the pages of records and sketches read last */
	BlockNumber item_blocks[IVF_ITEM_KINDS];
	uint32		slot;			/* the next on the page */
	bool		loaded;
	uint8	   *scan;			/* one-bit code */
} Walk;

static void
walk_start(Walk *walk, IvfHandle *handle, uint32 list)
{
	memset(walk, 0, sizeof(*walk));
	walk->handle = handle;
	walk->list = list;
	walk->generation = handle->lists->refs[list].generation;
	walk->block = handle->lists->refs[list].head;
	walk->image = palloc(BLCKSZ);
	for (int which = 0; which < IVF_ITEM_KINDS; which++)
	{
		walk->items[which] = palloc(BLCKSZ);
		walk->item_blocks[which] = InvalidBlockNumber;
	}
	walk->scan = palloc(Max(8, handle->layout.scan_bits / 8));
}

static void
walk_end(Walk *walk)
{
	pfree(walk->image);
	for (int which = 0; which < IVF_ITEM_KINDS; which++)
		pfree(walk->items[which]);
	pfree(walk->scan);
}

static void
load_page(Walk *walk)
{
	Buffer		buf;

	CHECK_FOR_INTERRUPTS();
	buf = IvfReadListPage(walk->handle, walk->block, walk->list, walk->generation, BUFFER_LOCK_SHARE);
	if (!BufferIsValid(buf))
		QvReportCorruption(walk->handle->index, walk->block,
						   "The page does not belong to list %u.", walk->list);
	memcpy(walk->image, BufferGetPage(buf), BLCKSZ);
	UnlockReleaseBuffer(buf);
	if (IvfPageList((Page) walk->image)->number != walk->number)
		QvReportCorruption(walk->handle->index, walk->block, "The page is number %u of list %u, not %u.",
						   IvfPageList((Page) walk->image)->number, walk->list, walk->number);
	walk->loaded = true;
	walk->slot = 0;
}

/* The record, or the sketch, of a slot of the page in hand. */
static void *
load_item(Walk *walk, IvfItemKind which, uint32 slot)
{
	const IvfLayout *layout = &walk->handle->layout;
	const IvfItems *items = &layout->items[which];
	IvfListPage head = IvfPageList((Page) walk->image);
	BlockNumber block = IvfItemBlock(layout, items, head, slot);

	if (!BlockNumberIsValid(block))
		QvReportCorruption(walk->handle->index, walk->block, "A row has no page of %s.", items->what);
	if (walk->item_blocks[which] != block)
	{
		Buffer		buf = IvfReadItemPage(walk->handle, which, block, walk->list, walk->generation,
										  IvfItemPageNumber(layout, items, head->number, slot),
										  BUFFER_LOCK_SHARE);

		if (!BufferIsValid(buf))
			QvReportCorruption(walk->handle->index, block,
							   "The page of %s does not belong to list %u.", items->what, walk->list);
		memcpy(walk->items[which], BufferGetPage(buf), BLCKSZ);
		UnlockReleaseBuffer(buf);
		walk->item_blocks[which] = block;
	}
	return IvfPageItem(items, (Page) walk->items[which], IvfItemPlace(layout, items, head->number, slot));
}

/*
 * The next live row, and (coded) its record.  What they refer to lives until
 * the next call.
 */
static bool
walk_next(Walk *walk, IvfRow *row, IvfRecord *record)
{
	const IvfLayout *layout = &walk->handle->layout;

	while (BlockNumberIsValid(walk->block))
	{
		Page		page = (Page) walk->image;
		IvfListPage head;
		uint32		slot;

		if (!walk->loaded)
			load_page(walk);
		head = IvfPageList(page);
		if (walk->slot >= head->count)
		{
			walk->block = QvPageGetHeader(page)->next;
			walk->number++;
			walk->loaded = false;
			continue;
		}
		slot = walk->slot++;
		if (!IvfSlotLive(layout, page, slot))
			continue;
		if (layout->form == QV_FORM_PLAIN)
		{
			IvfPlainRow at = IvfPagePlainRow(layout, page, slot);

			if (!walk->handle->space.opclass.type->well_formed(IvfPlainValue(at), layout->value_size, layout->dims))
				QvReportCorruption(walk->handle->index, walk->block, "The value of row %u is damaged.", slot);
			row->tid = at->tid;
			row->a = row->b = 0;
			row->code = IvfPlainValue(at);
			return true;
		}
		else
		{
			uint16	   *block = IvfPageBatch(layout, page, slot / QV_BATCH);

			*record = load_item(walk, IVF_RECORDS, slot);
			if (!ItemPointerIsValid(&(*record)->tid))
				continue;
			row->tid = (*record)->tid;
			row->scale = (*record)->scale;
			row->add = (*record)->add;
			row->error = (*record)->error;
			row->code = IvfRecordCode(*record);
			row->a = QvFactorUnpack(IvfBatchA(block)[slot % QV_BATCH]) * head->a_scale;
			row->b = QvFactorUnpack(IvfBatchB(block)[slot % QV_BATCH]) * head->b_scale;
			QvUnpackSlot(IvfBatchCodes(block), layout->scan_bits, slot % QV_BATCH, walk->scan);
			row->scan = walk->scan;
			row->sketch = layout->sketch_bytes > 0 ? load_item(walk, IVF_SKETCHES, slot) : NULL;
			return true;
		}
	}
	return false;
}

/* ---- leading the directory to what was written ---- */

/* Change the entry of a list that stays what it is. */
static void
replace_entry(IvfHandle *handle, uint32 list, BlockNumber head, BlockNumber tail,
			  uint32 generation, uint32 rows, uint32 refused)
{
	Buffer		meta_buf,
				buf;
	IvfEntry	entry;
	IvfMetaData *meta;
	QvWrite		w;
	Page		page;
	uint32		first;

	buf = IvfReadEntry(handle, list, BUFFER_LOCK_EXCLUSIVE, &entry);
	first = IvfPageDirectory(BufferGetPage(buf))->first;
	meta_buf = QvReadPage(handle->index, handle->hints, QV_META_BLOCK, QV_PAGE_META,
						  BUFFER_LOCK_EXCLUSIVE);
	(void) IvfPageMeta(handle->index, BufferGetPage(meta_buf));
	QvWriteBegin(&w, handle->index, false);
	page = QvWriteRegister(&w, buf);
	entry = IvfPageEntry(&handle->layout, page, list - first);
	entry->head = head;
	entry->tail = tail;
	entry->generation = generation;
	entry->rows = rows;
	entry->refused = refused;
	meta = (IvfMetaData *) QvPageGetData(QvWriteRegister(&w, meta_buf));
	IvfPageDirectory(page)->version = ++meta->version_lists;
	QvWriteCommit(&w);
	UnlockReleaseBuffer(meta_buf);
	UnlockReleaseBuffer(buf);
}

/*
 * Replace the entry of a list by the first of two, and append the second.
 * WAL record: the pages of both entries, a new page when the last is full, the
 * metapage.
 */
static void
replace_by_two(IvfHandle *handle, uint32 list, IvfEntry entries[2])
{
	const IvfLayout *layout = &handle->layout;
	Relation	index = handle->index;
	IvfEntry	entry;
	Buffer		buf = IvfReadEntry(handle, list, BUFFER_LOCK_EXCLUSIVE, &entry);
	Buffer		tail_buf = buf;
	Buffer		new_buf = InvalidBuffer;
	Buffer		meta_buf;
	uint32		first = IvfPageDirectory(BufferGetPage(buf))->first;
	BlockNumber tail = handle->meta.list_tail;
	IvfMetaData *meta;
	IvfDirectory directory;
	QvWrite		w;
	Page		page,
				tail_page;

	/* only who holds IVF_MOVE_LOCK appends, so the handle's tail is the tail */
	if (tail != BufferGetBlockNumber(buf))
		tail_buf = QvReadPage(index, handle->hints, tail, QV_PAGE_LISTS, BUFFER_LOCK_EXCLUSIVE);
	directory = IvfPageDirectory(BufferGetPage(tail_buf));
	if (directory->first + directory->count != handle->lists->count ||
		directory->count > layout->entries_per_page)
		QvReportCorruption(index, tail, "The directory does not end at list %u.", handle->lists->count);
	if (directory->count == layout->entries_per_page)
		new_buf = IvfAllocPage(handle, false);
	meta_buf = QvReadPage(index, handle->hints, QV_META_BLOCK, QV_PAGE_META, BUFFER_LOCK_EXCLUSIVE);
	(void) IvfPageMeta(index, BufferGetPage(meta_buf));

	QvWriteBegin(&w, index, false);
	page = QvWriteRegister(&w, buf);
	tail_page = tail_buf == buf ? page : QvWriteRegister(&w, tail_buf);
	meta = (IvfMetaData *) QvPageGetData(QvWriteRegister(&w, meta_buf));
	memcpy(IvfPageEntry(layout, page, list - first), entries[0], layout->entry_size);
	if (BufferIsValid(new_buf))
	{
		QvPageGetHeader(tail_page)->next = BufferGetBlockNumber(new_buf);
		tail_page = QvWriteRegisterNew(&w, new_buf, QV_PAGE_LISTS);
		IvfPageDirectory(tail_page)->first = meta->lists;
		IvfPageDirectory(tail_page)->count = 0;
		meta->list_tail = BufferGetBlockNumber(new_buf);
	}
	directory = IvfPageDirectory(tail_page);
	memcpy(IvfPageEntry(layout, tail_page, directory->count++), entries[1], layout->entry_size);
	meta->lists++;
	meta->version_lists++;
	IvfPageDirectory(page)->version = directory->version = meta->version_lists;
	QvWriteCommit(&w);
	UnlockReleaseBuffer(meta_buf);
	if (BufferIsValid(new_buf))
		UnlockReleaseBuffer(new_buf);
	if (tail_buf != buf)
		UnlockReleaseBuffer(tail_buf);
	UnlockReleaseBuffer(buf);
}

/* ---- compaction ---- */

void
IvfCompactList(IvfHandle *handle, uint32 list)
{
	IvfListRef *ref = &handle->lists->refs[list];
	IvfListRef	now;
	IvfEntry	entry;
	IvfWriter  *writer;
	Walk		walk;
	IvfRow		row;
	IvfRecord	record;
	Buffer		buf;

	LockPage(handle->index, IVF_LIST_LOCK(list), ExclusiveLock);

	/*
	 * Only who holds IVF_MOVE_LOCK moves lists, but the first page may be
	 * younger than what we know.  What changes is noted in our directory
	 * instead of reading all of it again for each list.
	 */
	buf = IvfReadEntry(handle, list, BUFFER_LOCK_SHARE, &entry);
	ref->head = entry->head;
	ref->tail = entry->tail;
	UnlockReleaseBuffer(buf);
	now = *ref;
	now.generation = next_generation(ref->generation);
	now.refused = 0;
	writer = IvfWriterBegin(handle, false);
	IvfWriterStart(writer, list, now.generation);
	walk_start(&walk, handle, list);
	while (walk_next(&walk, &row, &record))
		IvfWriterAdd(writer, &row);
	IvfWriterFinish(writer, &now.head, &now.tail, &now.rows);
	replace_entry(handle, list, now.head, now.tail, now.generation, now.rows, now.refused);
	IvfFreeList(handle, list, ref->generation, ref->head);
	*ref = now;
	walk_end(&walk);
	IvfWriterEnd(writer);
	UnlockPage(handle->index, IVF_LIST_LOCK(list), ExclusiveLock);
}

/* ---- splitting ---- */

typedef struct Split
{
	IvfHandle  *handle;
	uint32		list;
	Size		width;			/* coordinates of a row */
	float	   *centroid;		/* of the list, decoded */
	uint8	   *scratch;
	float	   *x;				/* a row */
	float	   *halves;			/* two centroids */
} Split;

/* The coordinates of a row, centered as centroids are. */
static void
row_coordinates(Split *s, const IvfRow *row, IvfRecord record, float *x)
{
	if (s->handle->layout.form == QV_FORM_PLAIN)
		s->handle->space.opclass.type->to_float(row->code, x);
	else
		IvfDecodeRecord(s->handle, s->centroid, record, s->scratch, x);
}

/* Cluster a sample of the rows in two; false when they are all the same. */
static bool
find_halves(Split *s, uint64 rows)
{
	QvKmeansParams params = {0};
	Size		most = (Size) maintenance_work_mem * 1024 / 3 / (s->width * sizeof(float));
	uint32		target = Min(SPLIT_SAMPLE, Max(16, most));
	uint32		step = Max(1, (rows + target - 1) / target);
	float	   *sample = MemoryContextAllocHuge(CurrentMemoryContext, (Size) target * s->width * sizeof(float));
	uint32		n = 0;
	uint64		i = 0;
	Walk		walk;
	IvfRow		row;
	IvfRecord	record = NULL;
	void	   *workspace;
	bool		two;

	walk_start(&walk, s->handle, s->list);
	while (n < target && walk_next(&walk, &row, &record))
		if (i++ % step == 0)
			row_coordinates(s, &row, record, sample + (Size) n++ * s->width);
	if (n < 2)
		return false;
	params.rows = sample;
	params.n = n;
	params.dim = s->width;
	params.k = 2;
	params.iterations = SPLIT_ITERATIONS;
	params.seed = s->handle->meta.seed + s->list;
	params.interrupt = QvClusterInterrupt;
	workspace = MemoryContextAllocHuge(CurrentMemoryContext, QvKmeansWorkspace(n, s->width, 2));
	two = QvKmeans(&params, s->halves, NULL, workspace) == 2 &&
		qv_kernels.l2sq_f32(s->halves, s->halves + s->width, s->width) > 0;
	pfree(workspace);
	pfree(sample);
	return two;
}

/*
 * A handle whose directory has only the two halves, so that rows are coded for
 * them as they are for any list.
 */
static IvfHandle *
handle_of_halves(Split *s, IvfEntry entries[2])
{
	const IvfLayout *layout = &s->handle->layout;
	IvfHandle  *handle = palloc(sizeof(IvfHandle));
	IvfLists   *lists = palloc0(sizeof(IvfLists));

	*handle = *s->handle;
	lists->count = 2;
	lists->stride = s->handle->lists->stride;
	lists->codes = palloc(2 * lists->stride);
	lists->scale = palloc(2 * sizeof(float));
	lists->norm2 = palloc(2 * sizeof(float));
	for (int i = 0; i < 2; i++)
	{
		uint8	   *code = lists->codes + i * lists->stride;

		if (layout->form == QV_FORM_CODED && layout->centroid_bits < 8)
			qv_kernels.unpack_bits(IvfEntryCode(entries[i]), layout->centroid_bits, code, layout->pdim);
		else
			memcpy(code, IvfEntryCode(entries[i]), layout->centroid_bytes);
		lists->scale[i] = entries[i]->scale;
		lists->norm2[i] = entries[i]->norm2;
	}
	handle->lists = lists;
	return handle;
}

/* Write every row of the list into one of two. */
static void
write_halves(Split *s, IvfHandle *halves, IvfWriter *writers[2])
{
	const IvfLayout *layout = &s->handle->layout;
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "quiver split row",
												  ALLOCSET_DEFAULT_SIZES);
	uint8	   *data = palloc(Max(8, IvfRowBytes(layout)));
	float	   *scratch = palloc(3 * s->width * sizeof(float));
	Walk		walk;
	IvfRow		row;
	IvfRecord	record = NULL;

	walk_start(&walk, s->handle, s->list);
	while (walk_next(&walk, &row, &record))
	{
		MemoryContext old = MemoryContextSwitchTo(context);
		IvfQuery	query;
		uint32		half;

		if (layout->form == QV_FORM_PLAIN)
		{
			query.value = row.code;
			half = IvfNearestList(halves, &query);
		}
		else
		{
			float		error = row.error;
			ItemPointerData tid = row.tid;

			row_coordinates(s, &row, record, s->x);
			qv_kernels.add_f32(s->x, s->handle->space.mean, layout->pdim);
			IvfQueryInit(halves, &query, s->x, false);
			half = IvfNearestList(halves, &query);
			IvfEncode(halves, half, query.base.q.x, data, scratch, &row);
			row.tid = tid;
			/* of what was decoded, which was off itself */
			row.error += error;
		}
		MemoryContextSwitchTo(old);
		IvfWriterAdd(writers[half], &row);
		MemoryContextReset(context);
	}
	MemoryContextDelete(context);
}

/* Both locks are held, and the handle is fresh.  False when it is not split. */
static bool
split_list(IvfHandle *handle, uint32 list, uint64 rows)
{
	const IvfLayout *layout = &handle->layout;
	IvfListRef	ref = handle->lists->refs[list];
	Split		s = {0};
	IvfEntry	entries[2];
	IvfWriter  *writers[2];
	IvfHandle  *halves;
	uint32		counts[2];

	s.handle = handle;
	s.list = list;
	s.width = layout->form == QV_FORM_PLAIN ? layout->dims : layout->pdim;
	s.centroid = palloc(s.width * sizeof(float));
	s.scratch = palloc(s.width);
	s.x = palloc(s.width * sizeof(float));
	s.halves = palloc(2 * s.width * sizeof(float));
	if (layout->form == QV_FORM_CODED)
		IvfDecodeCentroid(handle, list, s.centroid);
	if (!find_halves(&s, rows))
	{
		replace_entry(handle, list, ref.head, ref.tail, ref.generation, ref.rows, rows);
		return false;
	}
	for (int i = 0; i < 2; i++)
	{
		float	   *half = s.halves + i * s.width;

		entries[i] = palloc(layout->entry_size);
		IvfMakeEntry(layout, half,
					 layout->form == QV_FORM_PLAIN ? handle->space.opclass.type->from_float(half, layout->dims) : NULL,
					 ref.parent, entries[i]);
		writers[i] = IvfWriterBegin(handle, false);
	}
	halves = handle_of_halves(&s, entries);

	/* the first half stays list "list", the other becomes a new one */
	entries[0]->generation = next_generation(ref.generation);
	entries[1]->generation = next_generation(0);
	IvfWriterStart(writers[0], list, entries[0]->generation);
	IvfWriterStart(writers[1], handle->lists->count, entries[1]->generation);
	write_halves(&s, halves, writers);
	for (int i = 0; i < 2; i++)
	{
		IvfWriterFinish(writers[i], &entries[i]->head, &entries[i]->tail, &counts[i]);
		entries[i]->rows = counts[i];
	}
	if (Min(counts[0], counts[1]) < LEAST_SHARE * (counts[0] + counts[1]))
	{
		/* hardly a cut: leave the list alone, and until it is twice as long */
		IvfFreeList(handle, list, entries[0]->generation, entries[0]->head);
		IvfFreeList(handle, handle->lists->count, entries[1]->generation, entries[1]->head);
		replace_entry(handle, list, ref.head, ref.tail, ref.generation, ref.rows, rows);
		return false;
	}
	replace_by_two(handle, list, entries);
	IvfFreeList(handle, list, ref.generation, ref.head);
	return true;
}

/* Measure probes again when there are many more lists than the last time. */
static void
measure_again(IvfHandle *handle)
{
	(void) IvfRefresh(handle);
	if (handle->lists->count >= LEAST_MEASURED &&
		handle->lists->count >= MEASURE_AGAIN * handle->meta.measured_lists)
		IvfMeasureProbes(handle, false);
}

void
IvfTrySplit(Relation index, const QvOpclassInfo *opclass, uint32 list,
			uint32 generation, uint64 rows)
{
	MemoryContext context;
	MemoryContext old;
	IvfHandle  *handle;

	if (!ConditionalLockPage(index, IVF_MOVE_LOCK, ExclusiveLock))
		return;
	if (ConditionalLockPage(index, IVF_LIST_LOCK(list), ExclusiveLock))
	{
		bool		split = false;

		context = AllocSetContextCreate(CurrentMemoryContext, "quiver split",
										ALLOCSET_DEFAULT_SIZES);
		old = MemoryContextSwitchTo(context);
		handle = IvfOpen(index, opclass);
		/* somebody may have split it just now */
		if (list < handle->lists->count && IvfWantsSplit(handle, list, rows) &&
			handle->lists->refs[list].generation == generation)
			split = split_list(handle, list, rows);
		UnlockPage(index, IVF_LIST_LOCK(list), ExclusiveLock);
		if (split)
			measure_again(handle);
		MemoryContextSwitchTo(old);
		MemoryContextDelete(context);
	}
	UnlockPage(index, IVF_MOVE_LOCK, ExclusiveLock);
}
