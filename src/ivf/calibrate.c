/*
 * calibrate.c
 *		How many lists a search must read for a recall; see calibrate.h.
 *
 * Some rows of the index are looked for, each without itself: a share t of
 * their nearest rows lies in the p lists nearest to them, for the targets t.
 * Searches then read p lists.
 */
#include "postgres.h"

#include <math.h>

#include "common/pg_prng.h"
#include "containers/compare.h"
#include "ivf/calibrate.h"
#include "ivf/pages.h"
#include "miscadmin.h"
#include "utils/memutils.h"

/* Rows looked for, and how many of their neighbors. */
#define QUERIES 200
#define NEIGHBORS 10

/* At most this share of the lists is read for each (and at least so many). */
#define MOST_LISTS 0.25
#define LEAST_LISTS 64

/* Of the share of neighbors that a target may miss, what lists may. */
#define SLACK 0.6

static const double targets[IVF_TARGETS] = {0.90, 0.95, 0.98, 0.99, 0.995};

/* A list, large ones more often. */
static uint32
random_list(IvfHandle *handle, pg_prng_state *random)
{
	const IvfLists *lists = handle->lists;
	uint32		most = 1;
	uint32		list = 0;

	for (uint32 i = 0; i < lists->count; i++)
		most = Max(most, lists->refs[i].rows);
	for (int i = 0; i < 100; i++)
	{
		list = pg_prng_uint64_range(random, 0, lists->count - 1);
		if (pg_prng_uint64_range(random, 0, most - 1) < lists->refs[list].rows)
			break;
	}
	return list;
}

/*
 * A row chosen at random, as a vector in x (plain: its value).  False when the
 * try failed.
 */
static bool
random_row(IvfHandle *handle, pg_prng_state *random, float *centroid, uint8 *scratch,
		   float *x, ItemPointer tid)
{
	const IvfLayout *layout = &handle->layout;
	const IvfItems *items = &layout->items[IVF_RECORDS];
	uint32		list = random_list(handle, random);
	const IvfListRef *ref = &handle->lists->refs[list];
	BlockNumber block = ref->head;
	uint32		skip = ref->rows > 0 ? pg_prng_uint64_range(random, 0, (ref->rows - 1) / layout->slots) : 0;
	uint32		number = 0;
	bool		found = false;

	while (BlockNumberIsValid(block))
	{
		Buffer		buf = IvfReadListPage(handle, block, list, ref->generation, BUFFER_LOCK_SHARE);
		Page		page;
		BlockNumber next;

		CHECK_FOR_INTERRUPTS();
		if (!BufferIsValid(buf))
			return false;
		page = BufferGetPage(buf);
		next = QvPageGetHeader(page)->next;
		if ((skip == 0 || !BlockNumberIsValid(next)) && IvfPageList(page)->count > 0)
		{
			IvfListPage head = IvfPageList(page);
			uint32		slot = pg_prng_uint64_range(random, 0, head->count - 1);

			if (!IvfSlotLive(layout, page, slot))
				block = InvalidBlockNumber;
			else if (layout->form == QV_FORM_PLAIN)
			{
				memcpy(x, IvfPlainValue(IvfPagePlainRow(layout, page, slot)), layout->value_size);
				*tid = IvfPagePlainRow(layout, page, slot)->tid;
				found = handle->space.opclass.type->well_formed(x, layout->value_size, layout->dims);
			}
			else
			{
				block = IvfItemBlock(layout, items, head, slot);
				skip = IvfItemPlace(layout, items, head->number, slot);
				number = IvfItemPageNumber(layout, items, head->number, slot);
			}
			UnlockReleaseBuffer(buf);
			break;
		}
		UnlockReleaseBuffer(buf);
		if (skip > 0)
			skip--;
		block = next;
	}
	if (layout->form == QV_FORM_CODED && BlockNumberIsValid(block))
	{
		Buffer		buf = IvfReadItemPage(handle, IVF_RECORDS, block, list, ref->generation, number,
										  BUFFER_LOCK_SHARE);
		IvfRecord	record;

		if (!BufferIsValid(buf))
			return false;
		IvfDecodeCentroid(handle, list, centroid);
		record = IvfPageItem(items, BufferGetPage(buf), skip);
		IvfDecodeRecord(handle, centroid, record, scratch, x);
		*tid = record->tid;
		UnlockReleaseBuffer(buf);
		found = ItemPointerIsValid(tid);
		/* back to where rows are before they are centered */
		if (found)
			qv_kernels.add_f32(x, handle->space.mean, layout->pdim);
	}
	return found;
}

static void
write_probes(IvfHandle *handle, const uint32 *ranks, uint32 n, bool building)
{
	Buffer		buf = QvReadPage(handle->index, handle->hints, QV_META_BLOCK, QV_PAGE_META,
								 BUFFER_LOCK_EXCLUSIVE);
	IvfMetaData *meta;
	QvWrite		w;

	(void) IvfPageMeta(handle->index, BufferGetPage(buf));
	QvWriteBegin(&w, handle->index, building);
	meta = (IvfMetaData *) QvPageGetData(QvWriteRegister(&w, buf));
	meta->measured_lists = handle->lists->count;
	for (int i = 0; i < IVF_TARGETS; i++)
	{
		uint32		at = ceil(n * (1 - (1 - targets[i]) * SLACK)) - 1;

		meta->probes[i] = (ranks[Min(at, n - 1)] + 1) / (float) handle->lists->count;
	}
	handle->meta = *meta;
	QvWriteCommit(&w);
	UnlockReleaseBuffer(buf);
}

void
IvfMeasureProbes(IvfHandle *handle, bool building)
{
	const IvfLayout *layout = &handle->layout;
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "quiver measuring",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	uint32		most = Max(LEAST_LISTS, MOST_LISTS * handle->lists->count);
	uint32	   *ranks = palloc(QUERIES * NEIGHBORS * sizeof(uint32));
	uint32		n = 0;
	float	   *centroid = palloc(Max(1, layout->pdim) * sizeof(float));
	float	   *x = palloc(Max(layout->pdim * sizeof(float), layout->value_size));
	uint8	   *scratch = palloc(Max(1, layout->pdim));
	pg_prng_state random;

	pg_prng_seed(&random, handle->meta.seed);
	most = Min(most, handle->lists->count);
	for (int i = 0; i < QUERIES; i++)
	{
		ItemPointerData tid;

		CHECK_FOR_INTERRUPTS();
		if (random_row(handle, &random, centroid, scratch, x, &tid))
			n += IvfSearchRanks(handle, x, &tid, NEIGHBORS, most, ranks + n);
	}
	if (n >= NEIGHBORS)
	{
		qsort(ranks, n, sizeof(uint32), CompareUint32);
		write_probes(handle, ranks, n, building);
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
}

double
IvfProbesFor(const IvfMetaData *meta, double recall)
{
	double		below = 0.5,
				share = meta->probes[0] * 0.3;

	/* nobody has measured: a small index, or one that grew from nothing */
	if (meta->probes[0] <= 0)
		return Min(1, 3 / sqrt(meta->lists));
	for (int i = 0; i < IVF_TARGETS; i++)
	{
		if (recall <= targets[i])
		{
			double		t = Max(0, (recall - below) / (targets[i] - below));

			return share * pow(meta->probes[i] / share, t);
		}
		below = targets[i];
		share = meta->probes[i];
	}
	/* all lists for all rows */
	return share * pow(1 / share, (recall - below) / (1 - below));
}
