/*
 * coded_scan.c
 *		Scanning lists of codes; see coded_scan.h.
 */
#include "postgres.h"

#include <float.h>
#include <math.h>

#include "ivf/page/pages.h"
#include "ivf/search/coded_scan.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "space/factor.h"

/*
 * How many standard deviations below its estimate a distance is taken to be
 * possible.  Larger ones read more records for no more recall at the usual
 * probes (src/ivf/README.md, "Bound").
 */
#define BOUND_SIGMAS 1.6

/*
 * The same, relative to that, from the second window of sketches on: in order, a row that
 * its bound keeps out of its window is lost.
 */
#define LATER_BOUND 2.0f

/*
 * The same when the user wants all lists read, and so the nearest rows: six standard
 * deviations in all.
 */
#define SURE_BOUND 3.75f

static void
coded_begin_reading(IvfReader *reader)
{
	const IvfLayout *layout = &reader->handle->layout;
	double		share = (double) layout->scan_bits / layout->pdim;

	/*
	 * The standard deviation of a one-bit estimate over B of D coordinates,
	 * as a share of |b| and the query's length: src/ivf/README.md, "Bound".
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
	reader->head = palloc(IvfListHeadSize(layout));
	reader->members = palloc(layout->batches * sizeof(uint32));
	reader->dead = palloc(layout->batches * sizeof(uint32));
	reader->tids = palloc(layout->slots * sizeof(ItemPointerData));
	reader->gathered = palloc(reader->room * sizeof(IvfGathered));
	reader->order.items = palloc(reader->room * sizeof(BacklogItem));
	reader->scratch = palloc(layout->pdim);
	reader->centroid = palloc(layout->pdim * sizeof(float));
}

/* The page of a row's record or sketch; InvalidBuffer when the list has moved. */
static Buffer
read_items(IvfHandle *handle, IvfItemKind which, const IvfGathered *g, const IvfItemAt *at)
{
	IvfItemPageData wanted = {
		.list = g->list,
		.generation = handle->lists->refs[g->list].generation,
		.number = at->number
	};

	return IvfReadItemPage(handle, which, at->block, &wanted, BUFFER_LOCK_SHARE);
}

/*
 * Where the heap TIDs of rows are looked up: those of sketches, which are an eighth as
 * large, are those of the records but for rows that died.
 */
static IvfItemKind
items_with_tids(const IvfReader *reader)
{
	return reader->handle->layout.sketch_bytes > 0 ? IVF_SKETCHES : IVF_RECORDS;
}

/* Factors of one-bit codes are float16, relative to the page's scale: at most 1, rounded. */
#define F16_ROUNDING (1.0f / 4096)

/*
 * How far the distance of a list's centroid may be off, as a share of it (L2: half of it),
 * before it is computed anew.
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

	if (layout->space != QV_SPACE_L2)
		return QvIsShortened(layout->space, reader->query.base.q.norm2) ? INFINITY :
			record->error * reader->query.base.norm + rounding;
	away = sqrtf(Max(0, Max(base, distance))) + 2 * record->error;
	return 2 * (record->error * away + rounding);
}

float
coded_record_distance(IvfReader *reader, IvfRecord record, float base, float *error)
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
	distance = layout->space == QV_SPACE_L2 ? base + record->add - 2 * ip : base - ip;
	*error = record_error(reader, record, base, distance);
	/* damaged factors: the row itself will tell */
	if (isnan(*error))
		*error = INFINITY;
	return isnan(distance) ? -INFINITY : distance;
}

/* Read one record and offer its row; false when the list has moved. */
static bool
read_record(IvfReader *reader, const IvfGathered *g)
{
	IvfHandle  *handle = reader->handle;
	const IvfLayout *layout = &handle->layout;
	Buffer		buf = read_items(handle, IVF_RECORDS, g, &g->item);
	IvfRecord	record;
	IvfWindowRow row;

	if (!BufferIsValid(buf))
		return false;
	record = IvfPageItem(&layout->items[IVF_RECORDS], BufferGetPage(buf), g->item.slot);
	row.tid = record->tid;
	row.rank = g->rank;
	if (!ItemPointerIsValid(&row.tid))
	{
		UnlockReleaseBuffer(buf);
		return true;
	}
	row.distance = coded_record_distance(reader, record, g->base, &row.error);
	UnlockReleaseBuffer(buf);
	IvfOfferRow(reader, &row);
	return true;
}

/* How far the query is from the rows of a list, for the deviation of estimates. */
static float
distance_away(const IvfReader *reader, float base)
{
	return reader->handle->layout.space == QV_SPACE_L2 ? sqrtf(Max(0, base)) :
		reader->query.base.norm;
}

/* How many standard deviations a bound is below its estimate. */
static float
bound_sigmas(const IvfReader *reader)
{
	return (float) BOUND_SIGMAS * (reader->sure ? SURE_BOUND : reader->later ? LATER_BOUND : 1);
}

/* Read one sketch and offer its row by the bound it gives; false when the list has moved. */
static bool
read_sketch(IvfReader *reader, const IvfGathered *g)
{
	IvfHandle  *handle = reader->handle;
	const IvfLayout *layout = &handle->layout;
	const float *x = reader->query.base.q.x;
	uint32		lows = layout->sketch_lows;
	uint32		rest = layout->pdim - layout->scan_bits;
	Buffer		buf = read_items(handle, IVF_SKETCHES, g, &g->item);
	IvfSketchData sketch;
	const uint8 *bits;
	IvfWindowRow row;
	float		ip,
				spread;

	if (!BufferIsValid(buf))
		return false;
	bits = IvfPageItem(&layout->items[IVF_SKETCHES], BufferGetPage(buf), g->item.slot);
	memcpy(&sketch, bits, sizeof(sketch));
	bits += sizeof(sketch);
	ip = qv_kernels.ip_bits_f32(bits, x, lows) +
		2 * qv_kernels.ip_bits_f32(bits + lows / 8, x + layout->scan_bits, rest);
	UnlockReleaseBuffer(buf);
	ip += 2 * g->ip - reader->sketch_bias;
	qv_kernels.f16_to_f32(&sketch.spread, &spread, 1);
	row.distance = g->base + sketch.a + sketch.b * ip -
		bound_sigmas(reader) * fabsf(sketch.b) * spread * distance_away(reader, g->base);
	row.error = 0;
	row.tid = sketch.tid;
	row.rank = g->rank;

	/*
	 * the one-bit code says nothing, or factors are damaged: the row will
	 * tell
	 */
	if (!isfinite(row.distance))
		row.distance = -INFINITY;
	if (ItemPointerIsValid(&row.tid))
		IvfOfferRow(reader, &row);
	return true;
}

/* The heap TID of a row, on its page of records or sketches. */
static ItemPointerData
tid_of_item(const IvfReader *reader, IvfItemKind which, Page page, uint32 place)
{
	const uint8 *item = IvfPageItem(&reader->handle->layout.items[which], page, place);
	IvfSketchData sketch;

	if (which == IVF_RECORDS)
		return ((IvfRecord) item)->tid;
	memcpy(&sketch, item, sizeof(sketch));
	return sketch.tid;
}

static bool
coded_keep_members(IvfReader *reader)
{
	IvfItemKind which = items_with_tids(reader);
	float		limit = IvfWindowThreshold(&reader->window);
	Buffer		buf = InvalidBuffer;
	uint32		kept = 0;

	/* in the order in which they were gathered: page by page */
	for (uint32 i = 0; i < reader->ngathered; i++)
	{
		IvfGathered *g = &reader->gathered[i];
		ItemPointerData tid;

		if (!(g->bound < limit))
			continue;
		if (g->member)
		{
			reader->gathered[kept++] = *g;
			continue;
		}
		if (!BufferIsValid(buf) || BufferGetBlockNumber(buf) != g->tid.block)
		{
			if (BufferIsValid(buf))
				UnlockReleaseBuffer(buf);
			CHECK_FOR_INTERRUPTS();
			buf = read_items(reader->handle, which, g, &g->tid);
			if (!BufferIsValid(buf))
				return false;
		}
		tid = tid_of_item(reader, which, BufferGetPage(buf), g->tid.slot);
		if (IvfWantsRow(reader, &tid))
			reader->gathered[kept++] = *g;
	}
	if (BufferIsValid(buf))
		UnlockReleaseBuffer(buf);
	reader->ngathered = kept;
	return true;
}

static bool
coded_read_gathered(IvfReader *reader, const IvfGathered *g)
{
	reader->counters->records++;
	return reader->by_sketch ? read_sketch(reader, g) : read_record(reader, g);
}

float
coded_exact_base(IvfReader *reader, uint32 list)
{
	const IvfLayout *layout = &reader->handle->layout;
	const QvQuery *q = &reader->query.base.q;

	layout->codec->decode_centroid(layout, &reader->handle->lists->centroids, list, reader->centroid);
	return layout->space == QV_SPACE_L2 ? qv_kernels.l2sq_f32(q->x, reader->centroid, layout->pdim) :
		-qv_kernels.ip_f32(q->x, reader->centroid, layout->pdim);
}

/*
 * The distance of a list's centroid within BASE_TOLERANCE: by its code and the query's
 * 16-bit form, unless the query is so far from the mean that these are too coarse.
 */
static float
precise_base(IvfReader *reader, const IvfListScan *ls)
{
	const IvfLayout *layout = &reader->handle->layout;
	const IvfCentroids *centroids = &reader->handle->lists->centroids;
	const QvQuery *q = &reader->query.base.q;
	float		length = sqrtf(centroids->norm2[ls->list]);
	float		rounding = length * q->err16;

	if (layout->space == QV_SPACE_L2)	/* a difference of squares */
		rounding += 2 * FLT_EPSILON * (q->norm2 + length * length);
	if (rounding <= BASE_TOLERANCE * fabsf(ls->base))
		return ls->base;
	return coded_exact_base(reader, ls->list);
}

static void
coded_begin_list(IvfReader *reader, IvfListScan *ls)
{
	ls->base = precise_base(reader, ls);
	ls->shift = bound_sigmas(reader) *
		hypotf(reader->code_deviation * distance_away(reader, ls->base), reader->lut_deviation);
	ls->estimate.base = ls->base;
	ls->estimate.lut_scale = reader->query.base.q.lut_scale;
	ls->estimate.lut_bias = reader->lut_bias + ls->shift;
}

/* The inner product that a bound was made of; not finite when there is none in it. */
static float
ip_of_bound(const IvfListScan *ls, const uint16 *a16, const uint16 *b16, float bound)
{
	float		a,
				b;

	qv_kernels.f16_to_f32(a16, &a, 1);
	qv_kernels.f16_to_f32(b16, &b, 1);
	return (bound - ls->estimate.base - a * ls->estimate.a_scale) / (b * ls->estimate.b_scale) - ls->shift;
}

static IvfItemAt
find_item(const IvfReader *reader, IvfItemKind which, BlockNumber block, IvfListPage head,
		  uint32 slot)
{
	const IvfLayout *layout = &reader->handle->layout;
	const IvfItems *items = &layout->items[which];
	IvfItemAt	at = {
		.block = IvfItemBlock(layout, items, head, slot),
		.number = IvfItemPageNumber(layout, items, head->number, slot),
		.slot = IvfItemPlace(layout, items, head->number, slot)
	};

	if (!BlockNumberIsValid(at.block))
		QvReportCorruption(reader->handle->index, block, "Row %u has no page of %s.", slot, items->what);
	return at;
}

static void
coded_find_dead(IvfReader *reader, Page page)
{
	const IvfLayout *layout = &reader->handle->layout;
	IvfListPage head = IvfPageList(page);

	memset(reader->dead, 0, layout->batches * sizeof(uint32));
	if (IvfDeadSlots(head) == 0)
		return;
	for (uint32 slot = 0; slot < head->count; slot++)
		if (*IvfSlotFactor(layout, page, slot) == QV_EMPTY_FACTOR)
			reader->dead[slot / QV_BATCH] |= UINT32_C(1) << (slot % QV_BATCH);
}

/*
 * Rows that come to the page after this are of transactions that the search does not see.
 * Sketches of dead rows have their heap TIDs still, which may be others' now.
 */
static bool
coded_find_members(IvfReader *reader, IvfListScan *ls, BlockNumber block, bool *any)
{
	const IvfLayout *layout = &reader->handle->layout;
	IvfItemKind which = items_with_tids(reader);
	uint32		count = reader->head->count;
	uint32		end;

	*any = false;
	reader->counters->tested += count;
	memset(reader->members, 0, layout->batches * sizeof(uint32));
	for (uint32 slot = 0; slot < count; slot = end)
	{
		IvfGathered first = {.list = ls->list, .tid = find_item(reader, which, block, reader->head, slot)};
		Buffer		buf = read_items(reader->handle, which, &first, &first.tid);
		Page		page;

		if (!BufferIsValid(buf))
			return false;
		page = BufferGetPage(buf);
		end = Min(count, slot + layout->items[which].per_page - first.tid.slot);
		for (uint32 i = slot; i < end; i++)
		{
			ItemPointerData tid = tid_of_item(reader, which, page, first.tid.slot + i - slot);

			if (reader->dead[i / QV_BATCH] & (UINT32_C(1) << (i % QV_BATCH)))
				ItemPointerSetInvalid(&tid);
			reader->tids[i] = tid;
			if (!ItemPointerIsValid(&tid) || !QvTidSetHas(reader->only, &tid))
				continue;
			reader->members[i / QV_BATCH] |= UINT32_C(1) << (i % QV_BATCH);
			reader->counters->members++;
			*any = true;
		}
		UnlockReleaseBuffer(buf);
	}
	reader->nlooked += count;
	return true;
}

/*
 * Note how much farther than their centroid rows may be, by the bounds of a batch; not of
 * those that are dead, or damaged, or whose code says nothing.
 */
static void
note_beyond_base(IvfReader *reader, const IvfListScan *ls, const float *bounds, uint32 rows)
{
	for (uint32 i = 0; i < rows; i++)
	{
		double		beyond = (double) bounds[i] - ls->estimate.base;

		if (!isfinite(beyond) || ls->estimate.a[i] == IVF_UNKNOWN_FACTOR)
			continue;
		reader->beyond_base += beyond;
		reader->beyond_base2 += beyond * beyond;
		reader->scored++;
	}
}

/* Rows whose factors did not fit, which lie beside others: nothing is known of how near they are. */
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
	float		limit = IvfWindowThreshold(&reader->window);
	uint32		nbatches = (head->count + QV_BATCH - 1) / QV_BATCH;
	uint8		packed[BLCKSZ];
	bool		unknown;

	ls->estimate.a_scale = head->a_scale;
	ls->estimate.b_scale = head->b_scale;

	/*
	 * half a unit of the last place of both factors, |<y, q>| being hardly
	 * more than 2 |q|
	 */
	ls->estimate.base = ls->base - F16_ROUNDING * (head->a_scale + 2 * head->b_scale * reader->query.base.norm);

	/*
	 * of a page that began with a small row their estimate is not below all
	 * distances
	 */
	unknown = layout->space != QV_SPACE_L2 ||
		ls->estimate.base + QvFactorUnpack(IVF_UNKNOWN_FACTOR) * head->a_scale > 0;
	for (uint32 i = 0; i < nbatches; i++)
	{
		uint32		rows = Min(QV_BATCH, head->count - i * QV_BATCH);
		uint32		wanted = ls->members_known ? reader->members[i] : PG_UINT32_MAX;
		uint16	   *batch = IvfPageBatch(layout, page, i);
		const uint8 *codes = IvfBatchCodes(batch);
		float		bounds[QV_BATCH];
		uint32		mask;

		if (wanted == 0)
			continue;
		reader->counters->codes += rows;
		ls->estimate.a = IvfBatchA(batch);
		ls->estimate.b = IvfBatchB(batch);
		if (IvfIsRaw(head, i))
		{
			qv_kernels.fastscan_pack(codes, layout->scan_bits / 8, layout->scan_bits / 8, packed);
			codes = packed;
		}
		mask = qv_kernels.fastscan_estimate(codes, reader->query.base.q.lut,
											layout->scan_bits / 4, &ls->estimate, limit, bounds) & wanted;
		if (unknown)
			mask |= find_unknown(ls, bounds, rows) & wanted;
		if (reader->only)
			note_beyond_base(reader, ls, bounds, rows);
		while (mask != 0)
		{
			int			j = pg_rightmost_one_pos32(mask);
			uint32		slot = i * QV_BATCH + j;
			IvfGathered *g = &reader->gathered[reader->ngathered];

			mask &= mask - 1;
			if (slot >= head->count)
				break;
			g->bound = bounds[j];
			g->base = ls->base;
			if (reader->by_sketch)
				g->ip = ip_of_bound(ls, ls->estimate.a + j, ls->estimate.b + j, bounds[j]);
			g->list = ls->list;
			g->rank = ls->rank;
			g->asked = false;
			g->member = ls->members_known;
			g->item = find_item(reader, reader->by_sketch ? IVF_SKETCHES : IVF_RECORDS,
								block, head, slot);
			if (reader->only && !g->member)
				g->tid = find_item(reader, items_with_tids(reader), block, head, slot);
			reader->ngathered++;
			reader->nlooked += !g->member;
		}
	}
}

const struct IvfReadingOps ivf_coded_reading = {
	.begin_reading = coded_begin_reading,
	.begin_list = coded_begin_list,
	.find_members = coded_find_members,
	.find_dead = coded_find_dead,
	.scan_page = coded_scan_page,
	.keep_members = coded_keep_members,
	.read_gathered = coded_read_gathered
};
