/*
 * read_lists.c
 *		Reading posting lists: one-bit codes, then records or sketches of the
 *		rows that may matter.  Pages are locked one at a time.
 */
#include "postgres.h"

#include <float.h>
#include <math.h>

#include "ivf/pages.h"
#include "ivf/scan.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"

/*
 * How many standard deviations below its estimate a distance is taken to be
 * possible.  Larger ones read more records for no more recall at the usual
 * probes (src/ivf/README.md, "Bound").
 */
#define BOUND_SIGMAS 1.6

/*
 * The same, relative to that, from the second window on: in strict order a row
 * that its bound keeps out of its window is lost.
 */
#define LATER_BOUND 2.0f

/* Candidates gathered before their records are read: more than fit a page. */
#define MAX_GATHERED Max(4096, BLCKSZ / 4)

/* Blocks asked for ahead of those being read. */
#define READ_AHEAD 32

/* Have what measuring rows of lists wants, for a rotated query. */
void
IvfPrepareReading(IvfScan *scan, const float *rotated)
{
	const IvfLayout *layout = &scan->handle->layout;
	double		share = (double) layout->scan_bits / layout->pdim;

	IvfQueryInit(scan->handle, &scan->query, rotated, true);

	/*
	 * The standard deviation of a one-bit estimate over B of D coordinates, as
	 * a share of |b| and the query's length: src/ivf/README.md, "Bound".
	 */
	scan->bound_factor = BOUND_SIGMAS * 0.5 * sqrt(share) * sqrt(1 - 2 / M_PI * share);
	scan->lut_bias = QvQueryLutBias(&scan->query.base.q, layout->scan_bits);
	if (scan->by_sketch)
	{
		double		sum = 0;

		/* a low bit is -1/2 or 1/2, a high one of the last coordinates -1 or 1 */
		for (uint32 i = 0; i < layout->sketch_lows; i++)
			sum += 0.5 * scan->query.base.q.x[i];
		for (uint32 i = layout->scan_bits; i < layout->pdim; i++)
			sum += scan->query.base.q.x[i];
		scan->sketch_bias = sum;
	}
	scan->gathered = palloc(MAX_GATHERED * sizeof(IvfGathered));
	scan->order.items = palloc(MAX_GATHERED * sizeof(MinHeapItem));
	scan->scratch = palloc(layout->pdim);
}

/* Read one record and offer its row; false when the list has moved. */
static bool
read_record(IvfScan *scan, const IvfGathered *g)
{
	IvfHandle  *handle = scan->handle;
	const IvfLayout *layout = &handle->layout;
	const IvfListRef *ref = &handle->lists->refs[g->list];
	Buffer		buf = IvfReadItemPage(handle, IVF_RECORDS, g->block, g->list, ref->generation,
									  g->number, BUFFER_LOCK_SHARE);
	IvfRecord	record;
	const uint8 *code;
	IvfWindowRow	row;
	float		ip;

	if (!BufferIsValid(buf))
		return false;
	record = IvfPageItem(&layout->items[IVF_RECORDS], BufferGetPage(buf), g->slot);
	row.tid = record->tid;
	row.rank = g->rank;
	if (!ItemPointerIsValid(&row.tid))
	{
		UnlockReleaseBuffer(buf);
		return true;
	}
	code = IvfRecordCode(record);
	if (layout->bits < 8)
	{
		qv_kernels.unpack_bits(code, layout->bits, scan->scratch, layout->pdim);
		code = scan->scratch;
	}
	ip = QvCodeIp(&scan->query.base.q, code, layout->bits, record->scale);
	if (layout->space == QV_SPACE_L2)
	{
		row.distance = g->base + record->add - 2 * ip;
		row.error = 2 * record->error * sqrtf(Max(0, g->base));
	}
	else
	{
		row.distance = g->base - ip;
		row.error = record->error * scan->query.base.norm;
	}
	/* damaged factors: the row itself will tell */
	if (isnan(row.distance))
		row.distance = -INFINITY;
	if (isnan(row.error))
		row.error = INFINITY;
	UnlockReleaseBuffer(buf);
	IvfWindowOffer(&scan->window, &row);
	return true;
}

/* How far the query is from the rows of a list, for the deviation of estimates. */
static float
distance_away(const IvfScan *scan, float base)
{
	float		away = scan->handle->layout.space == QV_SPACE_L2 ? sqrtf(Max(0, base)) :
		scan->query.base.norm;

	return scan->nproposed > 0 ? away * LATER_BOUND : away;
}

/* Read one sketch and offer its row by the bound it gives; false when the list has moved. */
static bool
read_sketch(IvfScan *scan, const IvfGathered *g)
{
	IvfHandle  *handle = scan->handle;
	const IvfLayout *layout = &handle->layout;
	const float *x = scan->query.base.q.x;
	uint32		lows = layout->sketch_lows;
	uint32		rest = layout->pdim - layout->scan_bits;
	Buffer		buf = IvfReadItemPage(handle, IVF_SKETCHES, g->block, g->list,
									  handle->lists->refs[g->list].generation, g->number,
									  BUFFER_LOCK_SHARE);
	IvfSketchData sketch;
	const uint8 *bits;
	IvfWindowRow	row;
	float		ip,
				spread;

	if (!BufferIsValid(buf))
		return false;
	bits = IvfPageItem(&layout->items[IVF_SKETCHES], BufferGetPage(buf), g->slot);
	memcpy(&sketch, bits, sizeof(sketch));
	bits += sizeof(sketch);
	ip = qv_kernels.ip_bits_f32(bits, x, lows) +
		2 * qv_kernels.ip_bits_f32(bits + lows / 8, x + layout->scan_bits, rest);
	UnlockReleaseBuffer(buf);
	ip += 2 * g->ip - scan->sketch_bias;
	qv_kernels.f16_to_f32(&sketch.spread, &spread, 1);
	row.distance = g->base + sketch.a + sketch.b * ip -
		(float) BOUND_SIGMAS * fabsf(sketch.b) * spread * distance_away(scan, g->base);
	row.error = 0;
	row.tid = sketch.tid;
	row.rank = g->rank;
	/* the one-bit code says nothing, or factors are damaged: the row will tell */
	if (!isfinite(row.distance))
		row.distance = -INFINITY;
	if (ItemPointerIsValid(&row.tid))
		IvfWindowOffer(&scan->window, &row);
	return true;
}

/*
 * Ask for the records that are likely to be read next, READ_AHEAD of them: the
 * heap's first entries, which are not in order but near it.
 */
static void
ask_ahead(IvfScan *scan)
{
	uint32		n = Min(READ_AHEAD, scan->order.count);

	for (uint32 i = 0; i < n; i++)
	{
		IvfGathered   *g = &scan->gathered[scan->order.items[i].value];

		if (!g->asked && g->bound < IvfWindowThreshold(&scan->window))
		{
			(void) QvPrefetchBlock(scan->index, scan->handle->hints, g->block);
			g->asked = true;
		}
	}
}

/* Read the records gathered that may still matter, likely ones first. */
bool
IvfReadGathered(IvfScan *scan)
{
	bool		ahead = scan->handle->stats->cold > 0;

	scan->order.count = 0;
	for (uint32 i = 0; i < scan->ngathered; i++)
		if (scan->gathered[i].bound < IvfWindowThreshold(&scan->window))
			MinHeapPush(&scan->order, scan->gathered[i].bound, i);
	for (uint32 taken = 0; scan->order.count > 0; taken++)
	{
		MinHeapItem next;

		CHECK_FOR_INTERRUPTS();
		if (ahead && taken % (READ_AHEAD / 2) == 0)
			ask_ahead(scan);
		next = MinHeapPop(&scan->order);
		if (next.key >= IvfWindowThreshold(&scan->window))
			break;
		if (!(scan->by_sketch ? read_sketch : read_record) (scan, &scan->gathered[next.value]))
			return false;
	}
	scan->ngathered = 0;
	return true;
}

/* What does not change while a list is read. */
typedef struct ListScan
{
	uint32		list;
	uint16		rank;
	float		base;			/* distance of its centroid */
	float		shift;			/* what makes estimates bounds */
	QvEstimateParams estimate;
} ListScan;

/* The inner product that a bound was made of; not finite when there is none in it. */
static float
ip_of_bound(const ListScan *ls, const uint16 *a16, const uint16 *b16, float bound)
{
	float		a,
				b;

	qv_kernels.f16_to_f32(a16, &a, 1);
	qv_kernels.f16_to_f32(b16, &b, 1);
	return (bound - ls->base - a * ls->estimate.a_scale) / (b * ls->estimate.b_scale) - ls->shift;
}

/* Gather the rows of a page of codes that may matter. */
static void
gather(IvfScan *scan, ListScan *ls, BlockNumber block, Page page)
{
	const IvfLayout *layout = &scan->handle->layout;
	IvfListPage head = IvfPageList(page);
	const IvfItems *items = &layout->items[scan->by_sketch ? IVF_SKETCHES : IVF_RECORDS];
	float		limit = IvfWindowThreshold(&scan->window);
	uint32		nblocks = (head->count + QV_BATCH - 1) / QV_BATCH;

	ls->estimate.a_scale = head->a_scale;
	ls->estimate.b_scale = head->b_scale;
	for (uint32 i = 0; i < nblocks; i++)
	{
		uint16	   *codes = IvfPageBatch(layout, page, i);
		float		bounds[QV_BATCH];
		uint32		mask;

		ls->estimate.a = IvfBatchA(codes);
		ls->estimate.b = IvfBatchB(codes);
		mask = qv_kernels.fastscan_estimate(IvfBatchCodes(codes), scan->query.base.q.lut,
											layout->scan_bits / 4, &ls->estimate, limit, bounds);
		while (mask != 0)
		{
			int			j = pg_rightmost_one_pos32(mask);
			uint32		slot = i * QV_BATCH + j;
			IvfGathered   *g = &scan->gathered[scan->ngathered];

			mask &= mask - 1;
			if (slot >= head->count)
				break;
			g->bound = bounds[j];
			g->base = ls->base;
			if (scan->by_sketch)
				g->ip = ip_of_bound(ls, ls->estimate.a + j, ls->estimate.b + j, bounds[j]);
			g->list = ls->list;
			g->rank = ls->rank;
			g->asked = false;
			g->block = IvfItemBlock(layout, items, head, slot);
			g->number = IvfItemPageNumber(layout, items, head->number, slot);
			g->slot = IvfItemPlace(layout, items, head->number, slot);
			if (!BlockNumberIsValid(g->block))
				QvReportCorruption(scan->index, block, "Row %u has no page of %s.", slot, items->what);
			scan->ngathered++;
		}
	}
}

/* Offer the rows of a page of values. */
static void
offer_values(IvfScan *scan, const IvfNear *near, BlockNumber block, Page page)
{
	const IvfLayout *layout = &scan->handle->layout;
	const VectorTypeOps *type = scan->opclass.type;

	for (uint32 slot = 0; slot < IvfPageList(page)->count; slot++)
	{
		IvfPlainRow at = IvfPagePlainRow(layout, page, slot);
		IvfWindowRow	row = {0};

		if (!ItemPointerIsValid(&at->tid))
			continue;
		if (!type->well_formed(IvfPlainValue(at), layout->value_size, layout->dims))
			QvReportCorruption(scan->index, block, "The value of row %u is damaged.", slot);
		row.distance = scan->value == NULL ? 0 :
			type->distance(scan->opclass.metric, scan->value, IvfPlainValue(at));
		row.tid = at->tid;
		row.rank = near - scan->near;
		if (isnan(row.distance))
			row.distance = FLT_MAX;
		IvfWindowOffer(&scan->window, &row);
	}
}

/* Read one list into the window; false when it has moved. */
bool
IvfReadList(IvfScan *scan, const IvfNear *near)
{
	IvfHandle  *handle = scan->handle;
	const IvfLayout *layout = &handle->layout;
	const IvfListRef *ref = &handle->lists->refs[near->list];
	BlockNumber block = ref->head;
	uint32		number = 0;
	ListScan	ls;

	ls.list = near->list;
	ls.rank = near - scan->near;
	ls.base = near->distance;
	if (layout->form == QV_FORM_CODED)
	{
		ls.shift = scan->bound_factor * distance_away(scan, near->distance);
		ls.estimate.base = near->distance;
		ls.estimate.lut_scale = scan->query.base.q.lut_scale;
		ls.estimate.lut_bias = scan->lut_bias + ls.shift;
	}
	while (BlockNumberIsValid(block))
	{
		Buffer		buf;
		Page		page;
		BlockNumber next;

		CHECK_FOR_INTERRUPTS();
		buf = IvfReadListPage(handle, block, near->list, ref->generation, BUFFER_LOCK_SHARE);
		if (!BufferIsValid(buf))
			return false;
		page = BufferGetPage(buf);
		if (IvfPageList(page)->number != number++)
			QvReportCorruption(scan->index, block, "The page is number %u of list %u, not %u.",
							   IvfPageList(page)->number, near->list, number - 1);
		next = QvPageGetHeader(page)->next;
		if (layout->form == QV_FORM_PLAIN)
			offer_values(scan, near, block, page);
		else
		{
			if (scan->ngathered + layout->slots > MAX_GATHERED)
			{
				UnlockReleaseBuffer(buf);
				if (!IvfReadGathered(scan))
					return false;
				number--;
				continue;
			}
			gather(scan, &ls, block, page);
		}
		UnlockReleaseBuffer(buf);
		block = next;
	}
	return true;
}

/* Ask for more of the blocks of lists. */
void
IvfAskForLists(IvfScan *scan, IvfReadAhead *ahead, uint32 reading)
{
	const IvfLayout *layout = &scan->handle->layout;

	if (ahead->near < reading)
	{
		ahead->near = reading;
		ahead->page = 0;
	}
	for (int asked = 0; asked < READ_AHEAD && ahead->near < scan->nnear;)
	{
		const IvfListRef *ref = &scan->handle->lists->refs[scan->near[ahead->near].list];
		uint32		pages = (ref->rows + layout->slots - 1) / layout->slots;

		if (!BlockNumberIsValid(ref->head) || ahead->page >= pages ||
			ahead->page >= READ_AHEAD || ahead->near > reading + READ_AHEAD)
		{
			if (ahead->near > reading + READ_AHEAD)
				return;
			ahead->near++;
			ahead->page = 0;
			continue;
		}
		(void) QvPrefetchBlock(scan->index, scan->handle->hints, ref->head + ahead->page);
		ahead->page++;
		asked++;
	}
}
