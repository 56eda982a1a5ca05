/*
 * coded_scan.c
 *		Scanning lists of codes; see reader.h.
 */
#include "postgres.h"

#include <float.h>
#include <math.h>

#include "ivf/page/pages.h"
#include "ivf/search/reader.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "space/factor.h"

/*
 * This many times the rows that may be missed may have a bound above their distance.  Most of them
 * are found: they have a lesser bound than the farthest row that is wanted.  By sketches none is.
 */
#define WRONG_BOUNDS 2

static void
coded_begin_reading(IvfReader *reader)
{
	const IvfLayout *layout = &reader->handle->layout;
	double		share = (double) layout->scan_bits / layout->pdim;

	reader->sigmas = QvCurveSigmas(reader->misses * (reader->by_sketch ? 1 : WRONG_BOUNDS));

	/*
	 * The standard deviation of a one-bit estimate over B of D coordinates,
	 * as a share of |b| and the query's length: src/ivf/codec/README.md,
	 * "Bound".
	 */
	reader->code_deviation = 0.5 * sqrt(share) * sqrt(1 - 2 / M_PI * share);
	/* entries of the look-up table are whole multiples of its scale */
	reader->lut_deviation = reader->query.base.q.lut_scale * sqrt(layout->scan_bits / 4 / 12.0);
	reader->lut_bias = QvQueryLutBias(&reader->query.base.q, layout->scan_bits);
	if (reader->by_sketch)
	{
		double		sum = 0;

		/*
		 * a low bit is -1/2 or 1/2, a high one of the last coordinates -1 or
		 * 1
		 */
		for (uint32 i = 0; i < layout->sketch_lows; i++)
			sum += 0.5 * reader->query.base.q.x[i];
		for (uint32 i = layout->scan_bits; i < layout->pdim; i++)
			sum += reader->query.base.q.x[i];
		reader->sketch_bias = sum;
	}
	reader->scratch = palloc(layout->pdim);
	reader->centroid = palloc(layout->pdim * sizeof(float));
}

/* Factors of one-bit codes are float16, relative to the page's scale: at most 1, rounded. */
#define F16_ROUNDING (1.0f / 4096)

/*
 * How far the distance of a list's centroid may be off, as a share of it (L2: half of it),
 * before it is computed again.
 */
#define BASE_TOLERANCE 2.5e-4f

/*
 * How far a search distance by a record may be from the true one, certain by
 * Cauchy-Schwarz: the code is off by record->error, the query's 16-bit form by err16.
 * A row that a split moved has its |r|^2 from what was decoded, so the first counts at
 * the query's distance from the row as well as from the centroid.
 */
static float
record_error(const IvfReader *reader, IvfRecord record, float base, float distance)
{
	const IvfLayout *layout = &reader->handle->layout;
	float		decoded = record->scale * QvCodeOffset(layout->bits) * sqrtf(layout->pdim);
	float		rounding = decoded * reader->query.base.q.err16 + BASE_TOLERANCE * fabsf(base);
	float		away;

	if (reader->query.base.shortened)
		return INFINITY;
	if (layout->space == QV_SPACE_IP)
		return record->error * reader->query.base.norm + rounding;
	away = sqrtf(Max(0, Max(base, distance))) + 2 * record->error;
	return 2 * (record->error * away + rounding);
}

static float
record_distance(IvfReader *reader, IvfRecord record, float base, float *error)
{
	const IvfLayout *layout = &reader->handle->layout;
	const uint8 *code = IvfRecordCode(record);
	float		distance;
	float		ip;

	if (layout->bits < 8)
	{
		qv_kernels.unpack_bits(code, layout->bits, reader->scratch, layout->pdim);
		code = reader->scratch;
	}
	ip = QvCodeIp(&reader->query.base.q, code, layout->bits, record->scale);
	distance = layout->space != QV_SPACE_IP ? base + record->add - 2 * ip : base - ip;
	*error = record_error(reader, record, base, distance);
	/* damaged factors: the row itself will tell */
	if (isnan(*error))
		*error = INFINITY;
	return isnan(distance) ? -INFINITY : distance;
}

/* How far the query is from the rows of a list, for the deviation of estimates. */
static float
distance_away(const IvfReader *reader, float base)
{
	return reader->handle->layout.space != QV_SPACE_IP ? sqrtf(Max(0, base)) :
		reader->query.base.norm;
}

/* The bound that a sketch gives. */
static float
sketch_bound(const IvfReader *reader, const IvfGathered *g, const IvfSketchData *sketch, const uint8 *bits)
{
	const IvfLayout *layout = &reader->handle->layout;
	const float *x = reader->query.base.q.x;
	float		base = reader->lists[g->rank].distance;
	uint32		lows = layout->sketch_lows;
	uint32		rest = layout->pdim - layout->scan_bits;
	float		ip;
	float		bound;

	ip = qv_kernels.ip_bits_f32(bits, x, lows) +
		2 * qv_kernels.ip_bits_f32(bits + lows / 8, x + layout->scan_bits, rest);
	ip += 2 * g->ip - reader->sketch_bias;
	bound = base + sketch->a + sketch->b * ip -
		reader->sigmas * fabsf(sketch->b) * QvFactorUnpack(sketch->spread) * distance_away(reader, base);

	/*
	 * the one-bit code says nothing, or factors are damaged: the row will
	 * tell
	 */
	return isfinite(bound) ? bound : -INFINITY;
}

/* Read the record or sketch of a row, and offer the row; false when the list has moved. */
static bool
coded_read_gathered(IvfReader *reader, const IvfGathered *g)
{
	IvfHandle  *handle = reader->handle;
	IvfItemKind which = reader->by_sketch ? IVF_SKETCHES : IVF_RECORDS;
	const IvfNear *list = &reader->lists[g->rank];
	IvfItemPageData wanted = {
		.list = list->list,
		.generation = handle->lists->refs[list->list].generation,
		.number = g->number
	};
	IvfRead		row = {.gathered = g->bound, .rank = g->rank};
	Buffer		buf = IvfReadItemPage(handle, which, g->block, &wanted, BUFFER_LOCK_SHARE);
	void	   *item;

	if (!BufferIsValid(buf))
		return false;
	item = IvfPageItem(&handle->layout.items[which], BufferGetPage(buf), g->slot);
	if (reader->by_sketch)
	{
		IvfSketchData sketch;

		memcpy(&sketch, item, sizeof(sketch));
		row.tid = sketch.tid;
		/* it is a bound itself: its error stays 0 */
		row.distance = sketch_bound(reader, g, &sketch, (uint8 *) item + sizeof(sketch));
	}
	else
	{
		row.tid = ((IvfRecord) item)->tid;
		row.distance = record_distance(reader, item, list->distance, &row.error);
	}
	UnlockReleaseBuffer(buf);
	if (ItemPointerIsValid(&row.tid))
		IvfAddRow(reader, &row);
	return true;
}

static float
exact_base(IvfReader *reader, uint32 list)
{
	const IvfLayout *layout = &reader->handle->layout;
	const QvQuery *q = &reader->query.base.q;

	IvfDecodeCentroid(reader->handle, list, reader->centroid);
	return layout->space != QV_SPACE_IP ? qv_kernels.l2sq_f32(q->x, reader->centroid, layout->pdim) :
		-qv_kernels.ip_f32(q->x, reader->centroid, layout->pdim);
}

/*
 * The distance of a list's centroid within BASE_TOLERANCE: by its code and the query's
 * 16-bit form, unless the query is so far from the mean that these are too coarse.
 */
static float
precise_base(IvfReader *reader, const IvfNear *near)
{
	const IvfLayout *layout = &reader->handle->layout;
	const IvfCentroids *centroids = &reader->handle->lists->centroids;
	const QvQuery *q = &reader->query.base.q;
	float		length = sqrtf(centroids->norm2[near->list]);
	float		rounding = length * q->err16;

	if (layout->space != QV_SPACE_IP)	/* a difference of squares */
		rounding += 2 * FLT_EPSILON * (q->norm2 + length * length);
	if (rounding <= BASE_TOLERANCE * fabsf(near->distance))
		return near->distance;
	return exact_base(reader, near->list);
}

static void
coded_begin_list(IvfReader *reader, IvfListScan *ls)
{
	IvfNear    *near = &reader->lists[ls->rank];

	near->distance = precise_base(reader, near);
	ls->shift = reader->sigmas *
		hypotf(reader->code_deviation * distance_away(reader, near->distance), reader->lut_deviation);
	ls->estimate.lut_scale = reader->query.base.q.lut_scale;
	ls->estimate.lut_bias = reader->lut_bias + ls->shift;
}

/* The inner product that a bound was made of; not finite when there is none in it. */
static float
ip_of_bound(const IvfListScan *ls, const uint16 *a16, const uint16 *b16, float bound)
{
	float		a = QvFactorUnpack(*a16),
				b = QvFactorUnpack(*b16);

	return (bound - ls->estimate.base - a * ls->estimate.a_scale) / (b * ls->estimate.b_scale) - ls->shift;
}

/* Note where the record, or sketch, of a row is. */
static void
find_item(const IvfReader *reader, BlockNumber block, IvfListPage head, uint32 slot, IvfGathered *g)
{
	const IvfLayout *layout = &reader->handle->layout;
	const IvfItems *items = &layout->items[reader->by_sketch ? IVF_SKETCHES : IVF_RECORDS];

	g->block = IvfItemBlock(layout, items, head, slot);
	g->number = IvfItemPageNumber(layout, items, head->number, slot);
	g->slot = IvfItemPlace(layout, items, head->number, slot);
	if (!BlockNumberIsValid(g->block))
		QvReportCorruption(reader->handle->index, block, "Row %u has no page of %s.", slot, items->what);
}

/*
 * Rows whose factors did not fit, which lie beside others: nothing is known of how near they are.
 */
static uint32
find_unknown(const IvfListScan *ls, float *bounds, uint32 rows)
{
	uint32		found = 0;

	for (uint32 i = 0; i < rows; i++)
		found |= (uint32) (ls->estimate.a[i] == IVF_UNKNOWN_FACTOR) << i;
	for (uint32 left = found; left != 0; left &= left - 1)
		bounds[pg_rightmost_one_pos32(left)] = -INFINITY;
	return found;
}

/* Gather the rows of a page that may matter. */
static void
coded_scan_page(IvfReader *reader, IvfListScan *ls, BlockNumber block, Page page)
{
	const IvfLayout *layout = &reader->handle->layout;
	IvfListPage head = IvfPageList(page);
	uint32		nbatches = (head->count + QV_BATCH - 1) / QV_BATCH;
	uint8		packed[BLCKSZ];
	bool		unknown;

	ls->estimate.a_scale = head->a_scale;
	ls->estimate.b_scale = head->b_scale;

	/*
	 * half a unit of the last place of both factors, |<y, q>| being hardly
	 * more than 2 |q|
	 */
	ls->estimate.base = reader->lists[ls->rank].distance -
		F16_ROUNDING * (head->a_scale + 2 * head->b_scale * reader->query.base.norm);

	/*
	 * of a page that began with a small row their estimate is not below all
	 * distances
	 */
	unknown = layout->space != QV_SPACE_L2 ||
		ls->estimate.base + QvFactorUnpack(IVF_UNKNOWN_FACTOR) * head->a_scale > 0;
	for (uint32 i = 0; i < nbatches; i++)
	{
		uint32		rows = Min(QV_BATCH, head->count - i * QV_BATCH);
		uint16	   *batch = IvfPageBatch(layout, page, i);
		const uint8 *codes = IvfBatchCodes(batch);
		float		bounds[QV_BATCH];
		uint32		mask;

		/* the processor does not foresee what page comes next */
		if (ls->ahead)
			QvPrefetchBytes(ls->ahead + ((char *) batch - (char *) page), layout->batch_size);
		ls->estimate.a = IvfBatchA(batch);
		ls->estimate.b = IvfBatchB(batch);
		if (IvfIsRaw(head, i))
		{
			qv_kernels.fastscan_pack(codes, layout->scan_bits / 8, layout->scan_bits / 8, packed);
			codes = packed;
		}
		mask = qv_kernels.fastscan_estimate(codes, reader->query.base.q.lut,
											layout->scan_bits / 4, &ls->estimate, reader->limit, bounds);
		if (unknown)
			mask |= find_unknown(ls, bounds, rows);
		while (mask != 0)
		{
			int			j = pg_rightmost_one_pos32(mask);
			uint32		slot = i * QV_BATCH + j;
			IvfGathered *g;

			mask &= mask - 1;
			if (slot >= head->count)
				break;
			if (bounds[j] < reader->low)
				continue;
			g = &reader->gathered[reader->order.count];
			BacklogAdd(&reader->order, bounds[j], reader->order.count);
			g->bound = bounds[j];
			if (reader->by_sketch)
				g->ip = ip_of_bound(ls, ls->estimate.a + j, ls->estimate.b + j, bounds[j]);
			g->rank = ls->rank;
			find_item(reader, block, head, slot, g);
		}
	}
}

/* ---- rows by their place ---- */

/* The distance of a list's centroid, computed once. */
static float
base_of(IvfReader *reader, uint32 list)
{
	uint32		count = reader->handle->lists->count;

	if (reader->bases == NULL)
	{
		reader->bases = MemoryContextAllocHuge(reader->scan->context, count * sizeof(float));
		for (uint32 i = 0; i < count; i++)
			reader->bases[i] = NAN;
	}
	if (isnan(reader->bases[list]))
		reader->bases[list] = exact_base(reader, list);
	return reader->bases[list];
}

static bool
coded_measure_place(IvfReader *reader, const ItemPointerData *tid, QvRowPlace place, QvMeasured *measured)
{
	const IvfHandle *handle = reader->handle;
	const IvfItems *items = &handle->layout.items[IVF_RECORDS];
	Buffer		buf;
	Page		page;
	bool		there = false;

	/* the list may have moved since, and its pages may be others' */
	buf = QvReadAnyPage(handle->index, handle->hints, place.block, NULL, BUFFER_LOCK_SHARE);
	page = BufferGetPage(buf);
	if (QvPageIs(page, QV_PAGE_RECORDS) && place.slot < items->per_page)
	{
		const IvfItemPageData *head = IvfPageItems(page);
		IvfRecord	record = IvfPageItem(items, page, place.slot);

		there = head->list < handle->lists->count &&
			head->generation == handle->lists->refs[head->list].generation &&
			ItemPointerIsValid(&record->tid) && ItemPointerEquals(&record->tid, (ItemPointer) tid);
		if (there)
			measured->distance = record_distance(reader, record, base_of(reader, head->list),
												 &measured->error);
	}
	UnlockReleaseBuffer(buf);
	reader->scan->counters.pages++;
	reader->scan->counters.records += there;
	return there;
}

const struct IvfReadingOps ivf_coded_reading = {
	.begin_reading = coded_begin_reading,
	.begin_list = coded_begin_list,
	.scan_page = coded_scan_page,
	.read_gathered = coded_read_gathered,
	.measure_place = coded_measure_place
};
