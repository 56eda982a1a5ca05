/*
 * scan.c
 *		Searching posting lists.
 *
 * A search reads the lists nearest to the query, nearest first.  One-bit codes
 * give every row a lower bound of its distance; rows that may be among the
 * best have their finer code read, which gives a distance for the access
 * method to judge by the row itself.
 *
 * When pages have to be read from disk, a scan by sketches leaves the finer
 * codes alone: the two-bit codes, an eighth as large, give a closer bound of
 * the distance, and what they leave is judged by the row itself at once.
 *
 * How many rows will be wanted is not known.  The best so many are collected
 * in a "window"; when they are used up the lists are read again for the rows
 * after them, four times as many.  Rows proposed before are told by their row
 * pointers: by its place a row that a bound kept out of the window before would
 * be lost.
 *
 * A window that takes most rows of the lists read takes far rows while nearer
 * ones are in other lists.  With "widen" it has a small share of those rows,
 * and lists are added for the next.
 *
 * Scans hold one page lock at a time and no other, so lists can move under
 * them (split, vacuum): the page read then is of another generation.  The
 * window is collected again from the directory as it is now, without the rows
 * already proposed.
 */
#include "postgres.h"

#include <float.h>
#include <math.h>

#include "port/pg_bitutils.h"
#include "executor/instrument.h"
#include "ivf/calibrate.h"
#include "ivf/ivf.h"
#include "ivf/pages.h"
#include "ivf/window.h"
#include "lib/minheap.h"
#include "miscadmin.h"
#include "utils/memutils.h"

/* Rows of the first window when nothing is known, and the least. */
#define FIRST_WINDOW 32
#define LEAST_WINDOW 12
#define WINDOW_GROWTH 4

/* Rows that a scan is expected to take at most, whatever earlier ones took. */
#define MOST_EXPECTED 1000

/*
 * With "widen", the lists read have so many rows for each of the window: what
 * is nearer than a row of the window is then hardly in another list.  Scanning
 * codes costs a thousandth of what fetching a row does, so when many rows are
 * taken, as under a filter, much more is scanned.
 */
#define ROWS_PER_ROW 8
#define ROWS_PER_ROW_OF_MANY 64
#define MANY_ROWS 64

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

/*
 * Rows equal to one that is looked for to measure probes are in its own list,
 * and say nothing of other queries: of so many times the rows wanted, those
 * within this share of the farthest's squared distance do not count.
 */
#define RANKED_ROWS 4
#define EQUAL_SHARE 1e-3f

/* Candidates that the window is first filled from. */
#define FILL_FROM 512

/* Candidates gathered before their records are read: more than fit a page. */
#define MAX_GATHERED Max(4096, BLCKSZ / 4)

/* Blocks asked for ahead of those being read. */
#define READ_AHEAD 32

/* Rows that a scan by sketches is expected to return when nothing is known. */
#define FIRST_TOGETHER 10

/* One that returned more does not tell of the next. */
#define MOST_TOGETHER 100

/* Rows asked for ahead of the one being judged, when more than usual are taken. */
#define FEW_AHEAD 4

/* Share of what scans by sketches take on average that is asked for at once. */
#define SURE_SHARE 0.8

/* Scans that go on reading ahead after one found a page out of memory. */
#define COLD_SCANS 64

/* A row whose record may be worth reading. */
typedef struct Gathered
{
	float		bound;			/* its distance is hardly less */
	float		base;			/* distance of its centroid */
	float		ip;				/* by sketches: of its one-bit code and the query */
	uint32		list;
	BlockNumber block;			/* of its record or sketch */
	uint32		number;			/* of that page in the list */
	uint16		slot;
	uint16		rank;			/* of its list */
	bool		asked;			/* to be read ahead */
} Gathered;

struct IvfScan
{
	Relation	index;
	QvOpclassInfo opclass;
	MemoryContext context;		/* of one search */
	IvfScanParams params;
	IvfHandle  *handle;
	IvfQuery	query;
	const void *value;			/* NULL: any order */
	float		bound_factor;	/* of the query's distance from the centroid */
	float		lut_bias;		/* of the one-bit codes */
	bool		by_sketch;		/* finer codes are left alone */
	float		sketch_bias;	/* of an inner product with a sketch's bits */

	/* lists */
	IvfNear    *near;			/* room for all */
	uint32		nnear;			/* read in this batch */
	uint32		probes;			/* that the first batch was to have */
	uint32		probed;			/* in all batches */
	uint8	   *done;			/* bitmap: lists of earlier batches */

	IvfWindow	window;
	uint32		wanted;			/* rows it would take if enough were read */
	uint32		position;		/* next to propose */
	uint32		told;			/* rows that IvfScanAhead() has told */
	bool		complete;		/* no rows after the window */
	bool		announced;		/* its end has been */

	/* rows proposed so far; from the second window on, the window knows them */
	ItemPointerData *proposed;
	uint32		nproposed;
	uint32		max_proposed;

	Gathered   *gathered;
	uint32		ngathered;
	MinHeap		order;			/* of those gathered, nearest bound first */
	uint8	   *scratch;		/* an unpacked code */
	ItemPointerData tid;		/* of the candidate */
};

#define BitmapHas(bitmap, i) (((bitmap)[(i) / 8] & (1 << ((i) % 8))) != 0)
#define BitmapSet(bitmap, i) ((bitmap)[(i) / 8] |= 1 << ((i) % 8))

/* ---- reading lists ---- */

/* Read one record and offer its row; false when the list has moved. */
static bool
read_record(IvfScan *scan, const Gathered *g)
{
	IvfHandle  *handle = scan->handle;
	const IvfLayout *layout = &handle->layout;
	const IvfListRef *ref = &handle->lists->refs[g->list];
	Buffer		buf = IvfReadSidePage(handle, IVF_RECORDS, g->block, g->list, ref->generation,
									  g->number, BUFFER_LOCK_SHARE);
	IvfRecord	record;
	const uint8 *code;
	IvfWindowRow	row;
	float		ip;

	if (!BufferIsValid(buf))
		return false;
	record = IvfPageItem(&layout->sides[IVF_RECORDS], BufferGetPage(buf), g->slot);
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
	ip = QvCodeIp(&scan->query.q, code, layout->bits, record->scale);
	if (layout->space == IVF_SPACE_L2)
	{
		row.distance = g->base + record->add - 2 * ip;
		row.error = 2 * record->error * sqrtf(Max(0, g->base));
	}
	else
	{
		row.distance = g->base - ip;
		row.error = record->error * scan->query.norm;
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
	float		away = scan->handle->layout.space == IVF_SPACE_L2 ? sqrtf(Max(0, base)) :
		scan->query.norm;

	return scan->nproposed > 0 ? away * LATER_BOUND : away;
}

/* Read one sketch and offer its row by the bound it gives; false when the list has moved. */
static bool
read_sketch(IvfScan *scan, const Gathered *g)
{
	IvfHandle  *handle = scan->handle;
	const IvfLayout *layout = &handle->layout;
	const float *x = scan->query.q.x;
	uint32		lows = layout->sketch_lows;
	uint32		rest = layout->pdim - layout->scan_bits;
	Buffer		buf = IvfReadSidePage(handle, IVF_SKETCHES, g->block, g->list,
									  handle->lists->refs[g->list].generation, g->number,
									  BUFFER_LOCK_SHARE);
	IvfSketchData sketch;
	const uint8 *bits;
	IvfWindowRow	row;
	float		ip,
				spread;

	if (!BufferIsValid(buf))
		return false;
	bits = IvfPageItem(&layout->sides[IVF_SKETCHES], BufferGetPage(buf), g->slot);
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
		Gathered   *g = &scan->gathered[scan->order.items[i].value];

		if (!g->asked && g->bound < IvfWindowThreshold(&scan->window))
		{
			(void) QvPrefetchBlock(scan->index, scan->handle->hints, g->block);
			g->asked = true;
		}
	}
}

/* Read the records gathered that may still matter, likely ones first. */
static bool
read_gathered(IvfScan *scan)
{
	bool		ahead = scan->handle->habits->cold > 0;

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
	const IvfSide *side = &layout->sides[scan->by_sketch ? IVF_SKETCHES : IVF_RECORDS];
	float		limit = IvfWindowThreshold(&scan->window);
	uint32		nblocks = (head->count + QV_BLOCK - 1) / QV_BLOCK;

	ls->estimate.a_scale = head->a_scale;
	ls->estimate.b_scale = head->b_scale;
	for (uint32 i = 0; i < nblocks; i++)
	{
		uint16	   *codes = IvfPageBlock(layout, page, i);
		float		bounds[QV_BLOCK];
		uint32		mask;

		ls->estimate.a = IvfBlockA(codes);
		ls->estimate.b = IvfBlockB(codes);
		mask = qv_kernels.fastscan_estimate(IvfBlockCodes(codes), scan->query.q.lut,
											layout->scan_bits / 4, &ls->estimate, limit, bounds);
		while (mask != 0)
		{
			int			j = pg_rightmost_one_pos32(mask);
			uint32		slot = i * QV_BLOCK + j;
			Gathered   *g = &scan->gathered[scan->ngathered];

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
			g->block = IvfSideBlock(layout, side, head, slot);
			g->number = IvfSideNumber(layout, side, head->number, slot);
			g->slot = IvfSideSlot(layout, side, head->number, slot);
			if (!BlockNumberIsValid(g->block))
				QvReportCorruption(scan->index, block, "Row %u has no page of %s.", slot, side->what);
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
static bool
read_list(IvfScan *scan, const IvfNear *near)
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
	if (layout->form == IVF_CODED)
	{
		ls.shift = scan->bound_factor * distance_away(scan, near->distance);
		ls.estimate.base = near->distance;
		ls.estimate.lut_scale = scan->query.q.lut_scale;
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
		if (layout->form == IVF_PLAIN)
			offer_values(scan, near, block, page);
		else
		{
			if (scan->ngathered + layout->slots > MAX_GATHERED)
			{
				UnlockReleaseBuffer(buf);
				if (!read_gathered(scan))
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

/*
 * The blocks of lists, a few lists ahead of the one being read.  Pages of a
 * list that was built or compacted follow one another.
 */
typedef struct ReadAhead
{
	uint32		near;			/* next list to ask for */
	uint32		page;			/* next page of it */
	uint32		pages;			/* asked for, ahead of the list being read */
} ReadAhead;

static void
read_ahead(IvfScan *scan, ReadAhead *ahead, uint32 reading)
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

/* Have the window take no row that was proposed. */
static void
exclude_proposed(IvfScan *scan)
{
	if (scan->window.seen == NULL)
		IvfWindowExclude(&scan->window, scan->proposed, scan->nproposed, scan->context);
}

static uint32
most_lists(const IvfScan *scan)
{
	uint32		lists = scan->handle->lists->count;

	return scan->params.max_probes > 0 ? Min(lists, (uint32) scan->params.max_probes) : lists;
}

/*
 * The lists have moved: have the directory as it is now, and the lists of this
 * batch again.  Lists of earlier batches may have been split: their rows are
 * told by their row pointers.
 */
static void
restart_batch(IvfScan *scan)
{
	IvfHandle  *handle = scan->handle;
	bool		all = scan->probed >= handle->lists->count;
	uint32		wanted;
	MemoryContext old;

	if (!IvfRefresh(handle))
		QvReportCorruption(scan->index, IVF_META_BLOCK,
						   "A page of a list does not belong to it, and nothing has changed.");
	exclude_proposed(scan);
	/* there may be more lists than there were */
	wanted = all ? handle->lists->count : Max(scan->probed, (uint32) scan->params.probes);
	scan->probed = wanted = Min(wanted, most_lists(scan));
	old = MemoryContextSwitchTo(scan->context);
	scan->near = repalloc(scan->near, handle->lists->count * sizeof(IvfNear));
	scan->done = palloc0((handle->lists->count + 7) / 8);
	MemoryContextSwitchTo(old);
	scan->nnear = IvfNearest(handle, &scan->query, wanted, scan->near);
}

/* Read twice as many lists; false when there are no more. */
static bool
widen(IvfScan *scan)
{
	uint32		probes = Min(most_lists(scan), scan->nnear * 2);

	if (probes <= scan->nnear)
		return false;
	scan->nnear = IvfNearest(scan->handle, &scan->query, probes, scan->near);
	scan->probed = scan->nnear;
	return true;
}

/* Rows of the lists read. */
static uint64
rows_read(const IvfScan *scan)
{
	uint64		rows = 0;

	for (uint32 i = 0; i < scan->nnear; i++)
		rows += scan->handle->lists->refs[scan->near[i].list].rows;
	return rows;
}

/*
 * Read as many lists as the window wants; limit it to what they have rows for
 * when the user said how many are to be read.
 */
static void
fit_window(IvfScan *scan)
{
	uint64		rows,
				want;

	scan->window.size = scan->wanted;
	if (!scan->params.widen)
		return;
	want = (uint64) scan->window.size *
		(scan->window.size <= MANY_ROWS ? ROWS_PER_ROW : ROWS_PER_ROW_OF_MANY);
	rows = rows_read(scan);
	while (rows < want && (scan->params.probes == 0 || scan->nproposed > 0))
	{
		if (!widen(scan))
			return;
		rows = rows_read(scan);
	}
	if (scan->nnear < most_lists(scan))
	{
		Size		most = Max(Min(MANY_ROWS, rows / ROWS_PER_ROW), rows / ROWS_PER_ROW_OF_MANY);

		scan->window.size = Min(scan->wanted, Max(LEAST_WINDOW, most));
	}
}

/* Collect the window anew. */
static void
fill_window(IvfScan *scan)
{
	IvfHandle  *handle = scan->handle;
	int64		misses = pgBufferUsage.shared_blks_read;
	uint32		i = 0;
	ReadAhead	ahead = {0};

	fit_window(scan);
	scan->window.count = 0;
	scan->position = scan->told = 0;
	scan->announced = false;
	scan->ngathered = 0;
	while (i < scan->nnear)
	{
		bool		cold = handle->habits->cold > 0;

		if (cold)
			read_ahead(scan, &ahead, i);

		/*
		 * The window is filled from enough rows that the best of them are good.
		 * Then records are read at the end of each list; with reads to wait for,
		 * of all lists at once.
		 */
		if (!read_list(scan, &scan->near[i]) ||
			((i + 1 == scan->nnear ||
			  (scan->window.count < scan->window.size ? scan->ngathered >= FILL_FROM : !cold)) &&
			 !read_gathered(scan)))
		{
			restart_batch(scan);
			scan->window.count = scan->ngathered = 0;
			fit_window(scan);
			memset(&ahead, 0, sizeof(ahead));
			i = 0;
			continue;
		}
		i++;
		if (pgBufferUsage.shared_blks_read != misses)
			handle->habits->cold = COLD_SCANS;
	}
	scan->complete = scan->window.count < scan->window.size;
	IvfWindowSort(&scan->window);
}

/* As many rows as memory allows, else four times as many as before. */
static void
grow_window(IvfScan *scan)
{
	Size		most = Max(LEAST_WINDOW, scan->params.max_memory / sizeof(IvfWindowRow));

	most = Min(most, PG_INT32_MAX);
	scan->wanted = Min(most, (Size) scan->wanted * WINDOW_GROWTH);
}

/* ---- the interface ---- */

IvfScan *
IvfScanBegin(Relation index, const QvOpclassInfo *opclass)
{
	IvfScan    *scan = palloc0(sizeof(IvfScan));

	scan->index = index;
	scan->opclass = *opclass;
	scan->context = AllocSetContextCreate(CurrentMemoryContext, "quiver ivf scan",
										  ALLOCSET_DEFAULT_SIZES);
	return scan;
}

/* What is known of the rows that scans like this one take. */
static uint32 *
rows_of_habit(const IvfScan *scan)
{
	IvfHabits  *habits = scan->handle->habits;

	return scan->by_sketch ? &habits->sketched : &habits->rows;
}

/*
 * Let the next scans expect what this one took: more at once, less by and by,
 * since the rows that a LIMIT takes under a filter vary; but a scan that took
 * much more than the others soon counts no longer.
 */
static void
learn_rows(uint32 *habit, int64 taken)
{
	uint32		rows = Max(1, Min(taken, MOST_EXPECTED));

	if (rows >= *habit)
		*habit = rows;
	else if (rows < *habit / 4)
		*habit -= (*habit - rows) / 2;
	else
		*habit -= (*habit - rows + 7) / 8;
}

static void
learn(IvfScan *scan)
{
	IvfHabits  *habits;

	if (scan->handle == NULL)
		return;
	habits = scan->handle->habits;
	if (scan->by_sketch)
		habits->typical += (Min(scan->nproposed, MOST_EXPECTED) - habits->typical) / 16;
	learn_rows(rows_of_habit(scan), scan->nproposed);
	if (habits->cold > 0)
		habits->cold--;
}

static uint32
choose_probes(const IvfScan *scan)
{
	double		lists = scan->handle->lists->count;

	if (scan->params.probes > 0)
		return Min(lists, scan->params.probes);
	return Max(1, Min(lists, ceil(lists * IvfProbesFor(&scan->handle->meta, scan->params.recall))));
}

/* Have what measuring rows of lists wants, for a rotated query. */
static void
prepare_coded(IvfScan *scan, const float *rotated)
{
	const IvfLayout *layout = &scan->handle->layout;
	double		share = (double) layout->scan_bits / layout->pdim;

	IvfQueryInit(scan->handle, &scan->query, rotated, true);

	/*
	 * The standard deviation of a one-bit estimate over B of D coordinates, as
	 * a share of |b| and the query's length: src/ivf/README.md, "Bound".
	 */
	scan->bound_factor = BOUND_SIGMAS * 0.5 * sqrt(share) * sqrt(1 - 2 / M_PI * share);
	scan->lut_bias = QvQueryLutBias(&scan->query.q, layout->scan_bits);
	if (scan->by_sketch)
	{
		double		sum = 0;

		/* a low bit is -1/2 or 1/2, a high one of the last coordinates -1 or 1 */
		for (uint32 i = 0; i < layout->sketch_lows; i++)
			sum += 0.5 * scan->query.q.x[i];
		for (uint32 i = layout->scan_bits; i < layout->pdim; i++)
			sum += scan->query.q.x[i];
		scan->sketch_bias = sum;
	}
	scan->gathered = palloc(MAX_GATHERED * sizeof(Gathered));
	scan->order.items = palloc(MAX_GATHERED * sizeof(MinHeapItem));
	scan->scratch = palloc(layout->pdim);
}

static void
prepare_query(IvfScan *scan)
{
	IvfHandle  *handle = scan->handle;
	const IvfLayout *layout = &handle->layout;
	float	   *value,
			   *rotated;

	if (layout->form == IVF_PLAIN)
	{
		scan->query.value = scan->value;
		if (scan->value == NULL)
		{
			value = palloc0(layout->dims * sizeof(float));
			scan->query.value = scan->opclass.type->from_float(value, layout->dims);
		}
		return;
	}
	value = palloc0(layout->pdim * sizeof(float));
	rotated = palloc(layout->pdim * sizeof(float));
	if (scan->value)
		scan->opclass.type->to_float(scan->value, value);
	(void) IvfRotate(handle, value, rotated);
	prepare_coded(scan, rotated);
}

/* Collect the first window of so many rows from so many lists. */
static void
start_search(IvfScan *scan, uint32 probes, uint32 window)
{
	IvfHandle  *handle = scan->handle;

	scan->near = palloc(handle->lists->count * sizeof(IvfNear));
	scan->done = palloc0((handle->lists->count + 7) / 8);
	scan->probes = probes;
	scan->nnear = scan->probed = IvfNearest(handle, &scan->query,
											Min(probes, most_lists(scan)), scan->near);
	scan->wanted = window;
	IvfWindowInit(&scan->window, window);
	scan->proposed = NULL;
	scan->nproposed = scan->max_proposed = 0;
	fill_window(scan);
}

void
IvfScanStart(IvfScan *scan, const void *value, const IvfScanParams *params)
{
	MemoryContext old;
	IvfHandle  *handle;
	uint32		rows;

	learn(scan);
	scan->handle = NULL;
	MemoryContextReset(scan->context);
	old = MemoryContextSwitchTo(scan->context);
	handle = IvfOpen(scan->index, &scan->opclass);

	/*
	 * Of an index larger than shared buffers, pages of records are read through
	 * a few of them: the pages of codes, which are read much more often, stay.
	 */
	handle->hints->scarce = handle->habits->cold > 0;
	if (handle->habits->cold > 0 &&
		RelationGetNumberOfBlocks(scan->index) > (BlockNumber) NBuffers / 2)
		handle->record_strategy = GetAccessStrategy(BAS_BULKREAD);
	if (value && scan->opclass.type->dims(value) != handle->meta.dims)
		scan->opclass.type->different_dims(handle->meta.dims, scan->opclass.type->dims(value));
	scan->handle = handle;
	scan->params = *params;
	scan->value = value;
	scan->by_sketch = handle->habits->cold > 0 && handle->layout.sketch_bytes > 0;
	prepare_query(scan);

	rows = *rows_of_habit(scan);
	rows = rows == 0 ? FIRST_WINDOW : Max(LEAST_WINDOW, rows + rows / 8 + 2);
	/* in which those found together should be */
	if (scan->by_sketch)
		rows = Max(rows, 2 * IvfScanTogether(scan));
	rows = Min(rows, Max(LEAST_WINDOW, params->max_memory / sizeof(IvfWindowRow)));
	start_search(scan, choose_probes(scan), rows);
	MemoryContextSwitchTo(old);
}

uint32
IvfSearchRanks(IvfHandle *handle, const float *x, ItemPointer self, uint32 k,
			   uint32 lists, uint32 *ranks)
{
	IvfScan    *scan = IvfScanBegin(handle->index, &handle->opclass);
	MemoryContext old = MemoryContextSwitchTo(scan->context);
	uint32		n = 0;
	float		least = -INFINITY;

	scan->handle = handle;
	if (handle->layout.form == IVF_PLAIN)
		scan->value = scan->query.value = x;
	else
		prepare_coded(scan, x);
	start_search(scan, lists, RANKED_ROWS * k + 1);
	if (handle->layout.space == IVF_SPACE_L2 && scan->window.count > 0)
		least = EQUAL_SHARE * scan->window.rows[scan->window.count - 1].distance;
	for (uint32 i = 0; i < scan->window.count && n < k; i++)
		if (!ItemPointerEquals(&scan->window.rows[i].tid, self) && scan->window.rows[i].distance > least)
			ranks[n++] = scan->window.rows[i].rank;
	MemoryContextSwitchTo(old);
	MemoryContextDelete(scan->context);
	pfree(scan);
	return n;
}

static void
add_proposed(IvfScan *scan, ItemPointer tid)
{
	if (scan->nproposed == scan->max_proposed)
	{
		Size		size = Max(64, (Size) scan->max_proposed * 2);

		scan->proposed = scan->proposed ?
			repalloc_huge(scan->proposed, size * sizeof(ItemPointerData)) :
			MemoryContextAlloc(scan->context, size * sizeof(ItemPointerData));
		scan->max_proposed = size;
	}
	scan->proposed[scan->nproposed++] = *tid;
	if (scan->window.seen)
		IvfWindowExclude(&scan->window, tid, 1, scan->context);
}

bool
IvfScanNext(IvfScan *scan, QvRowCandidate *candidate)
{
	MemoryContext old;

	for (;;)
	{
		if (scan->position < scan->window.count)
		{
			const IvfWindowRow *row = &scan->window.rows[scan->position++];

			candidate->distance = row->distance;
			candidate->error = row->error;
			candidate->same_node = false;
			candidate->ntids = 1;
			scan->tid = row->tid;
			candidate->tids = &scan->tid;
			add_proposed(scan, &scan->tid);
			return true;
		}
		if (scan->complete)
			return false;
		if (!scan->announced)
		{
			scan->announced = true;
			candidate->distance = scan->window.rows[scan->window.count - 1].distance;
			candidate->error = scan->window.rows[scan->window.count - 1].error;
			candidate->same_node = false;
			candidate->ntids = 0;
			candidate->tids = NULL;
			return true;
		}
		old = MemoryContextSwitchTo(scan->context);
		exclude_proposed(scan);
		grow_window(scan);
		if (scan->params.widen)
			(void) widen(scan);
		fill_window(scan);
		MemoryContextSwitchTo(old);
	}
}

bool
IvfScanMore(IvfScan *scan)
{
	MemoryContext old = MemoryContextSwitchTo(scan->context);
	bool		more;

	if (scan->params.widen)
	{
		exclude_proposed(scan);
		grow_window(scan);
		more = widen(scan);
	}
	else
	{
		/* another batch: the nearest lists that were in none */
		uint32		wanted = Min(most_lists(scan), scan->probed + scan->probes);
		uint32		found;

		for (uint32 i = 0; i < scan->nnear; i++)
			BitmapSet(scan->done, scan->near[i].list);
		found = IvfNearest(scan->handle, &scan->query, wanted, scan->near);
		scan->nnear = 0;
		for (uint32 i = 0; i < found; i++)
			if (!BitmapHas(scan->done, scan->near[i].list))
				scan->near[scan->nnear++] = scan->near[i];
		scan->probed = wanted;
		more = scan->nnear > 0;
	}
	if (more)
		fill_window(scan);
	MemoryContextSwitchTo(old);
	return more;
}

int
IvfScanAhead(IvfScan *scan, ItemPointerData *tids, int max)
{
	int			n = 0;
	uint32		end = scan->window.count;

	/* in runs, so that the reads overlap */
	if (scan->handle->habits->cold == 0 || scan->told > scan->position + max / 2)
		return 0;

	/* what scans mostly take, then a few more at a time: none should be read in vain */
	if (scan->by_sketch)
	{
		if (scan->told >= scan->position + FEW_AHEAD / 2)
			return 0;
		end = Min(end, Max(SURE_SHARE * scan->handle->habits->typical, scan->position + FEW_AHEAD));
	}
	for (uint32 i = Max(scan->told, scan->position); i < end && n < max; i++)
		tids[n++] = scan->window.rows[i].tid;
	scan->told = Max(scan->told, scan->position) + n;
	return n;
}

double
IvfScanDistance(const IvfScan *scan, double distance)
{
	if (scan->opclass.metric == QV_METRIC_COSINE)
		return distance / 2;
	return distance;
}

int
IvfScanDims(const IvfScan *scan)
{
	return scan->handle->meta.dims;
}

uint32
IvfScanTogether(const IvfScan *scan)
{
	uint32		returned = scan->handle->habits->returned;

	return !scan->by_sketch ? 0 : returned > 0 ? returned : FIRST_TOGETHER;
}

void
IvfScanReturned(IvfScan *scan, int64 rows)
{
	learn_rows(&scan->handle->habits->returned, Min(rows, MOST_TOGETHER));
}

void
IvfScanEnd(IvfScan *scan)
{
	learn(scan);
	MemoryContextDelete(scan->context);
	pfree(scan);
}
