/*
 * members.c
 *		A search of the rows of a set by row pages; see members.h.
 */
#include "postgres.h"

#include <float.h>
#include <math.h>

#include "containers/backlog.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "rows/code.h"
#include "rows/rows.h"
#include "query/curve.h"
#include "query/members.h"
#include "query/nearest.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/*
 * One in 16 rows is kept in the first pass, until the nearest are known.  Where many proposals are
 * expected, it is 16 times as many: most rows that are kept are farther than their bounds.
 */
#define KEPT_SHARE 16

/* Rows are sorted as far as they will likely be measured. */
#define RUN_SHARE 16

/* Rows that are measured together, so that waiting for one is waiting for all. */
#define MEASURED_TOGETHER 16

/* Row pages asked for ahead of the one that is read. */
#define PAGES_AHEAD 8

/* The CPU is asked for the columns of a page that many pages ahead. */
#define COLUMNS_AHEAD 2

/* Rows of one page that are read and scored together. */
#define RUN_ROWS QV_ROW_BATCH

/* Rows that are kept at least. */
#define LEAST_KEPT 4096

/*
 * Share of the rows that may be missed whose bounds may be too high, where a set or a filter leaves
 * some of the rows.  The nearest of these are often all of one cluster, whose codes err together.
 */
#define WRONG_BOUNDS 0.5

/* Rows of one page are often alike, so a sample is of this many. */
#define SAMPLED_PAGES 64

typedef struct Member
{
	ItemPointerData tid;
	uint16		slot;			/* of its place */
	uint32		block;
} Member;

typedef struct Found
{
	ItemPointerData tid;
	QvMeasured	measured;
} Found;

typedef struct CrowdedPage
{
	uint32		number;
	uint32		last_line;
} CrowdedPage;

typedef struct Members
{
	QvScan		base;
	QvScan	   *engine;
	const QvRows *rows;
	const QvTidSet *set;		/* NULL: all rows */
	QvFilter   *filter;			/* NULL: all entries will do */
	BlockNumber nblocks;		/* of the table */
	QvRowQuery	query;
	QvRowsFinder finder;

	/* rows that were not measured yet */
	Member	   *members;
	Backlog		waiting;		/* places in members, by their bound */
	uint32		most;			/* kept in a pass, */
	uint32		room;			/* and there is memory for */
	float		limit;			/* rows of a greater bound were left out of
								 * this pass, */
	bool		dropped;		/* and there were such; */
	bool		again;			/* this is not the first pass: */
	float		before;			/* rows of no greater bound than that were in
								 * those before */
	bool		begun;

	/* rows without an entry */
	ItemPointerData *unknown;
	uint32		nunknown;
	uint32		unknown_room;
	uint32		unknown_next;

	/* pages with rows on lines that have no entries */
	CrowdedPage *crowded;
	uint32		ncrowded;
	uint32		crowded_room;
	uint32		crowded_next;
	uint64		crowded_line;	/* of these lines, the next one of that page */

	/* rows that were measured and not proposed yet */
	Found	   *found;
	MinHeap		nearest;		/* places in found, by their bound */
	ItemPointerData tid;		/* of a candidate without an entry */
} Members;

/* ---- reading entries ---- */

/* A member of the set has no entry.  Of a block whose lines are not known, crowded lines tell. */
static void
add_unknown(Members *m, const ItemPointerData *tid)
{
	/* they were proposed in the first pass */
	if (m->again || !QvTidSetKnowsBlock(m->set, ItemPointerGetBlockNumberNoCheck(tid)))
		return;
	if (m->nunknown == m->unknown_room)
		m->unknown = QvGrow(m->base.context, m->unknown, &m->unknown_room, RUN_ROWS, sizeof(ItemPointerData));
	m->unknown[m->nunknown++] = *tid;
}

/* Note the lines without entries of a row page, if it has such. */
static void
add_crowded(Members *m, uint32 number, uint32 last_line)
{
	/* it may be of a damaged page */
	last_line = Min(last_line, MaxHeapTuplesPerPage);
	if (m->again || last_line <= m->rows->meta.lines ||
		(m->ncrowded > 0 && m->crowded[m->ncrowded - 1].number == number))
		return;
	if (m->ncrowded == m->crowded_room)
		m->crowded = QvGrow(m->base.context, m->crowded, &m->crowded_room, RUN_ROWS, sizeof(CrowdedPage));
	m->crowded[m->ncrowded++] = (CrowdedPage) {number, last_line};
}

/* Have the next row without an entry in m->tid, or the next line; false when there is none. */
static bool
next_without_entry(Members *m)
{
	if (m->unknown_next < m->nunknown)
	{
		m->tid = m->unknown[m->unknown_next++];
		return true;
	}
	while (m->crowded_next < m->ncrowded)
	{
		const CrowdedPage *page = &m->crowded[m->crowded_next];
		uint32		lines = m->rows->meta.lines;
		uint32		more = page->last_line - lines;
		uint64		block = QvRowsFirstBlock(m->rows, page->number) + m->crowded_line / more;

		CHECK_FOR_INTERRUPTS();
		if (block >= Min(m->nblocks, QvRowsFirstBlock(m->rows, page->number + 1)))
		{
			m->crowded_next++;
			m->crowded_line = 0;
			continue;
		}
		ItemPointerSet(&m->tid, block, lines + 1 + m->crowded_line % more);
		m->crowded_line++;
		if (m->set == NULL || QvTidSetHas(m->set, &m->tid))
			return true;
	}
	return false;
}

/*
 * Leave out the farther half of the rows.  Where all have one bound, memory is what it takes.  The
 * loop has no branch on a bound, which a processor could not predict.
 */
static void
drop_farthest(Members *m)
{
	float		limit = BacklogMiddle(&m->waiting);
	uint32		kept = 0;

	for (uint32 i = 0; i < m->waiting.count; i++)
	{
		float		bound = BacklogDistance(m->waiting.items[i]);

		m->members[kept] = m->members[i];
		m->waiting.items[kept] = BacklogMake(bound, kept);
		kept += bound <= limit;
	}
	if (kept < m->waiting.count)
	{
		m->limit = limit;
		m->dropped = true;
	}
	m->waiting.count = kept;
}

/* Have room for the rows of one more batch. */
static void
make_room(Members *m)
{
	uint32		room = m->waiting.capacity;

	if (m->waiting.count + RUN_ROWS <= room)
		return;
	if (room >= m->most)
		drop_farthest(m);
	if (m->waiting.count + RUN_ROWS <= room)
		return;
	m->members = QvGrow(m->base.context, m->members, &room, RUN_ROWS, sizeof(Member));
	m->waiting.items = QvGrow(m->base.context, m->waiting.items, &m->waiting.capacity, RUN_ROWS, sizeof(BacklogItem));
}

/* Entries of a page, which are scored together. */
typedef struct Batch
{
	uint32		n;
	ItemPointerData tids[RUN_ROWS];
	const QvRowEntryData *entries[RUN_ROWS];
} Batch;

/* Score the entries.  Their page is locked, so nothing may fail but for lack of memory. */
static void
take_batch(Members *m, Batch *batch)
{
	float		bounds[RUN_ROWS];
	uint32		near[RUN_ROWS];
	uint32		nnear = 0;

	make_room(m);
	QvRowLeast(&m->query, batch->entries, batch->n, bounds);
	/* a processor could not predict which rows are near */
	for (uint32 i = 0; i < batch->n; i++)
	{
		near[nnear] = i;
		nnear += (bounds[i] <= m->limit) & !(m->again & (bounds[i] <= m->before));
	}
	for (uint32 n = 0; n < nnear; n++)
	{
		uint32		i = near[n];
		QvRowPlace	place = QvRowEntryPlace(batch->entries[i]);

		m->members[m->waiting.count] = (Member) {batch->tids[i], place.slot, place.block};
		BacklogAdd(&m->waiting, bounds[i], m->waiting.count);
	}
	m->engine->counters.entries += batch->n;
	batch->n = 0;
}

static inline void
add_to_batch(Members *m, Batch *batch, const ItemPointerData *tid, const QvRowEntryData *entry)
{
	batch->tids[batch->n] = *tid;
	batch->entries[batch->n++] = entry;
	if (batch->n == RUN_ROWS)
		take_batch(m, batch);
}

/* Rows of the set whose entries are on one page. */
typedef struct Run
{
	uint32		number;			/* of the page */
	int			n;
	ItemPointerData tids[RUN_ROWS];
	uint16		at[RUN_ROWS];	/* places of their entries */
} Run;

/* Pin and lock row page "number"; InvalidBuffer: there is none. */
static Buffer
read_page(Members *m, uint32 number)
{
	BlockNumber block = QvRowsFindPage(&m->finder, number);

	CHECK_FOR_INTERRUPTS();
	if (block == QV_ROWS_NO_PAGE)
		return InvalidBuffer;
	m->engine->counters.pages++;
	return QvRowsReadPage(m->rows, block, number, BUFFER_LOCK_SHARE);
}

/*
 * Find which rows of a page may pass the filter: of a run, or all.  The page is not locked while
 * conditions other than ranges are tested.
 */
static void
test_page(Members *m, Buffer buf, uint32 number, const Run *run)
{
	const QvRows *rows = m->rows;
	const char *at = QvRowsIncluded(rows, QvPageEntries(BufferGetPage(buf)));
	bool		others = false;

	if (run == NULL)
		others = QvFilterTestRanges(m->filter, at, 0, rows->per_page);
	for (int i = 0; run && i < run->n; i++)
		others |= QvFilterTestRanges(m->filter, at, run->at[i], 1);
	if (!others)
		return;
	QvFilterSee(m->filter, at, (QvRowNumber) number * rows->per_page);
	LockBuffer(buf, BUFFER_LOCK_UNLOCK);
	if (run == NULL)
		QvFilterTestOthers(m->filter, 0, rows->per_page);
	for (int i = 0; run && i < run->n; i++)
		QvFilterTestOthers(m->filter, run->at[i], 1);
	LockBuffer(buf, BUFFER_LOCK_SHARE);
}

/* The first row of a page, from one on, that may pass; per_page: there is none. */
static uint32
next_passing(const Members *m, uint32 from)
{
	const uint8 *next = memchr(m->filter->may_pass + from, true, m->rows->per_page - from);

	return next ? next - m->filter->may_pass : m->rows->per_page;
}

/*
 * The row page that many pages after one that is locked, if its block is known without reading a
 * page of the directory.
 */
static BlockNumber
page_ahead(Members *m, uint32 number, uint32 pages)
{
	return (number + pages) / QV_ROWS_FANOUT == number / QV_ROWS_FANOUT ?
		QvRowsFindPage(&m->finder, number + pages) : QV_ROWS_NO_PAGE;
}

/* Have the row pages after a page read in the background. */
static void
ask_ahead(Members *m, uint32 number)
{
	for (uint32 i = number % PAGES_AHEAD == 0 ? 1 : PAGES_AHEAD; i <= PAGES_AHEAD; i++)
	{
		BlockNumber block = page_ahead(m, number, i);

		if (block != QV_ROWS_NO_PAGE)
			(void) QvPrefetchBlock(m->rows->index, m->rows->hints, block);
	}
}

/* Test all rows of a page, and ask the CPU for what is needed next. */
static void
filter_page(Members *m, Buffer buf, uint32 number)
{
	const QvRows *rows = m->rows;
	BlockNumber soon = page_ahead(m, number, COLUMNS_AHEAD);
	const char *entries = QvPageEntries(BufferGetPage(buf));

	if (soon != QV_ROWS_NO_PAGE)
		QvFilterPrefetch(m->filter, soon);
	test_page(m, buf, number, NULL);
	for (uint32 i = 0; (i = next_passing(m, i)) < rows->per_page; i++)
		QvPrefetchBytes(QvRowsEntry(rows, entries, i), rows->code_size);
}

/* The rows that have not been put into a run. */
typedef struct RunReader
{
	ItemPointerData tids[MaxHeapTuplesPerPage]; /* of one block */
	int			n;
	int			at;				/* the next one */
	uint64		block;			/* after it */
} RunReader;

/*
 * The next run; false when there is none.  Rows beyond the lines that have entries are set aside.
 */
static bool
next_run(Members *m, RunReader *reader, Run *run)
{
	const QvRows *rows = m->rows;
	QvRowNumber first = 0;

	for (run->n = 0; run->n < RUN_ROWS; reader->at++)
	{
		const ItemPointerData *tid;
		QvRowNumber row;

		if (reader->at == reader->n)
		{
			reader->at = 0;
			reader->n = QvTidSetNext(m->set, &reader->block, reader->tids);
			if (reader->n == 0)
				break;
		}
		tid = &reader->tids[reader->at];
		if (!QvRowsHasNumber(rows, tid, &row))
		{
			add_unknown(m, tid);
			continue;
		}
		if (run->n == 0)
		{
			run->number = row / rows->per_page;
			first = row - row % rows->per_page;
		}
		else if (row - first >= rows->per_page)
			break;
		run->tids[run->n] = *tid;
		run->at[run->n++] = row - first;
	}
	return run->n > 0;
}

/* The entries on the page of a run that will be read soon; NULL where its buffer is not known. */
static const char *
entries_of(Members *m, const Run *run)
{
	BlockNumber block = QvRowsFindPage(&m->finder, run->number);
	Buffer		buf = block == QV_ROWS_NO_PAGE ? InvalidBuffer : QvHintedBuffer(m->rows->hints, block);

	return buf > 0 ? (const char *) BufferGetBlock(buf) + QV_PAGE_START + sizeof(QvRowPageData) : NULL;
}

/* Read the entries of a run, and ask the CPU for those of the next one meanwhile. */
static void
read_run(Members *m, const Run *run, const Run *next)
{
	const QvRows *rows = m->rows;
	const char *soon = next->n > 0 ? entries_of(m, next) : NULL;
	Batch		batch;
	Buffer		buf = read_page(m, run->number);

	ask_ahead(m, run->number);
	if (!QvTidSetIsExact(m->set) && BufferIsValid(buf))
		add_crowded(m, run->number, QvPageRows(BufferGetPage(buf))->last_line);
	if (m->filter && BufferIsValid(buf))
		test_page(m, buf, run->number, run);
	batch.n = 0;
	for (int i = 0; i < run->n; i++)
	{
		const QvRowEntryData *entry = NULL;

		if (soon && i < next->n)
			QvPrefetchBytes(soon + next->at[i] * rows->code_size, rows->code_size);
		if (BufferIsValid(buf))
			entry = QvRowsEntry(rows, QvPageEntries(BufferGetPage(buf)), run->at[i]);
		if (entry == NULL || !QvRowEntryIsThere(entry))
			add_unknown(m, &run->tids[i]);
		else if (m->filter == NULL || m->filter->may_pass[run->at[i]])
			add_to_batch(m, &batch, &run->tids[i], entry);
	}
	take_batch(m, &batch);
	if (BufferIsValid(buf))
		UnlockReleaseBuffer(buf);
	for (int i = run->n; soon && i < next->n; i++)
		QvPrefetchBytes(soon + next->at[i] * rows->code_size, rows->code_size);
}

/* Read the entries of the set's rows, page by page. */
static void
read_set(Members *m)
{
	RunReader	reader = {0};
	Run			runs[2];
	int			now = 0;
	bool		found;

	found = next_run(m, &reader, &runs[now]);
	while (found)
	{
		found = next_run(m, &reader, &runs[!now]);
		read_run(m, &runs[now], &runs[!now]);
		now = !now;
	}
}

/* Move a TID to the one of the next entry. */
static inline void
next_line(const QvRows *rows, ItemPointerData *tid)
{
	OffsetNumber line = ItemPointerGetOffsetNumberNoCheck(tid);

	if (line < rows->meta.lines)
		ItemPointerSetOffsetNumber(tid, line + 1);
	else
		ItemPointerSet(tid, ItemPointerGetBlockNumberNoCheck(tid) + 1, FirstOffsetNumber);
}

/* Read all entries; of a set that knows blocks only, those of its blocks. */
static void
read_all(Members *m)
{
	const QvRows *rows = m->rows;
	uint32		end = QvRowsEnd(rows, NULL);
	Batch		batch;

	for (uint32 number = 0; number < end; number++)
	{
		Buffer		buf = read_page(m, number);
		QvRowNumber first = (QvRowNumber) number * rows->per_page;
		ItemPointerData tid;
		Page		page;

		if (!BufferIsValid(buf))
			continue;
		page = BufferGetPage(buf);
		ask_ahead(m, number);
		add_crowded(m, number, QvPageRows(page)->last_line);
		QvRowsTid(rows, first, &tid);
		batch.n = 0;
		if (m->filter)
			filter_page(m, buf, number);
		for (uint32 i = 0; i < rows->per_page; i++, next_line(rows, &tid))
		{
			const QvRowEntryData *entry;

			if (m->filter)
			{
				i = next_passing(m, i);
				if (i == rows->per_page)
					break;
				QvRowsTid(rows, first + i, &tid);
			}
			entry = QvRowsEntry(rows, QvPageEntries(page), i);
			if (QvRowEntryIsThere(entry) && (m->set == NULL || QvTidSetHas(m->set, &tid)))
				add_to_batch(m, &batch, &tid, entry);
		}
		take_batch(m, &batch);
		UnlockReleaseBuffer(buf);
	}
}

/* Go through the entries: the first time, or for the rows that were left out. */
static void
read_entries(Members *m)
{
	m->again = m->begun;
	/* as many rows are wanted, more will likely be, and a pass costs much */
	if (m->again)
		m->most = Min(4 * m->most, m->room);
	m->before = m->limit;
	m->limit = INFINITY;
	m->dropped = false;
	m->begun = true;
	BacklogClear(&m->waiting);
	QvRowsFinderInit(&m->finder, m->rows);
	if (m->set && m->set->words > 0)
		read_set(m);
	else
		read_all(m);
}

/* ---- measuring ---- */

/* How near the nearest that was not measured may be; INFINITY when there is none. */
static double
waits_at(Members *m)
{
	return BacklogSort(&m->waiting, Max(MEASURED_TOGETHER, m->waiting.count / RUN_SHARE)) ?
		BacklogDistance(m->waiting.items[m->waiting.first]) : m->dropped ? m->limit : INFINITY;
}

static void
measure_one(Members *m, const ItemPointerData *tid, QvRowPlace place)
{
	QvMeasured	measured;
	double		bound;

	/* not there: the caller measures the row itself */
	if (!m->engine->ops->measure(m->engine, tid, place, &measured))
		measured = (QvMeasured) {-INFINITY, INFINITY};
	/* an error may be zero, where float32 has rounded the distance */
	bound = measured.distance - measured.error * m->base.certainty -
		4 * FLT_EPSILON * fabs(measured.distance);
	m->found[QvNearestAdd(&m->nearest, bound)] = (Found) {*tid, measured};
}

/* Measure the nearest of the rows that wait. */
static void
measure_some(Members *m)
{
	Backlog    *waiting = &m->waiting;
	uint32		n = Min(MEASURED_TOGETHER, waiting->sorted - waiting->first);
	const Member *members[MEASURED_TOGETHER];
	QvRowPlace	places[MEASURED_TOGETHER];

	CHECK_FOR_INTERRUPTS();
	m->found = QvNearestRoom(&m->nearest, n, m->base.context, m->found, sizeof(Found));
	for (uint32 i = 0; i < n; i++)
	{
		members[i] = &m->members[BacklogId(BacklogTake(waiting))];
		places[i] = (QvRowPlace) {members[i]->block, members[i]->slot};
	}
	m->engine->ops->prefetch_places(m->engine, places, n);
	for (uint32 i = 0; i < n; i++)
		measure_one(m, &members[i]->tid, places[i]);
}

/* ---- what the caller calls ---- */

static bool
members_next(QvScan *base, QvCandidate *candidate)
{
	Members    *m = (Members *) base;

	for (;;)
	{
		double		waits;

		if (!m->begun)
			read_entries(m);
		if (next_without_entry(m))
		{
			QvSetCandidate(base, candidate, -INFINITY, INFINITY, INFINITY, &m->tid, 1);
			return true;
		}
		waits = waits_at(m);
		if (m->nearest.count > 0 && m->nearest.items[0].key <= waits)
		{
			MinHeapItem top = MinHeapPop(&m->nearest);
			Found	   *found = &m->found[top.value];

			QvSetCandidate(base, candidate, top.key, found->measured.distance, found->measured.error,
						   &found->tid, 1);
			return true;
		}
		if (BacklogHasRun(&m->waiting))
		{
			measure_some(m);
			if (BacklogHasRun(&m->waiting))
				continue;
			/* the owner may think of another way */
			QvSetCandidate(base, candidate, -INFINITY, INFINITY, INFINITY, NULL, 0);
			return true;
		}
		else if (m->dropped)
			read_entries(m);
		else
		{
			base->complete = true;
			return false;
		}
	}
}

static const QvScanOps members_ops = {
	.next = members_next,
	.end = QvScanEnd
};

QvScan *
QvMembersBegin(QvScan *engine, Relation table, const QvTidSet *set, QvFilter *filter,
			   double proposals, Size max_bytes)
{
	Members    *m = palloc0(sizeof(Members));
	double		rows;

	m->base.ops = &members_ops;
	m->base.context = AllocSetContextCreate(CurrentMemoryContext, "quiver members", ALLOCSET_DEFAULT_SIZES);
	m->base.table_hints = engine->table_hints;
	m->base.query = engine->query;
	m->base.certainty = engine->certainty;
	m->base.scale = engine->scale;
	m->base.offset = engine->offset;
	m->engine = engine;
	m->nblocks = RelationGetNumberOfBlocks(table);
	m->rows = engine->rows;
	m->set = set;

	/*
	 * row pages that were made after the filter's search was begun are
	 * without one
	 */
	m->filter = filter && filter->rows ? filter : NULL;
	m->finder.context = m->base.context;
	/* farther ones are hardly ever wanted; they are read again then */
	rows = set ? set->members : (double) m->nblocks * m->rows->meta.lines;
	/* room grows by powers of two */
	m->room = Max(LEAST_KEPT, pg_prevpower2_32(Min(PG_INT32_MAX, max_bytes / (sizeof(Member) + sizeof(BacklogItem)))));
	m->most = Max(LEAST_KEPT, Min(m->room, Max(rows / KEPT_SHARE, proposals * KEPT_SHARE)));
	QvRowQueryInit(&m->query, m->rows->space, engine->query,
				   QvCurveSigmas(engine->misses * (set || filter ? WRONG_BOUNDS : 1)));
	return &m->base;
}

/*
 * Distances that were estimated vary more than those of the rows, by the variance of their errors.
 * Let them vary as much.
 */
static void
undo_errors(double *distances, uint32 n, double error2)
{
	double		mean = 0;
	double		variance = 0;
	double		share;

	for (uint32 i = 0; i < n; i++)
		mean += distances[i] / n;
	for (uint32 i = 0; i < n; i++)
		variance += (distances[i] - mean) * (distances[i] - mean) / n;
	share = variance > error2 ? sqrt(1 - error2 / variance) : 0;
	for (uint32 i = 0; i < n; i++)
		distances[i] = mean + (distances[i] - mean) * share;
}

uint32
QvMembersSample(QvScan *engine, BlockNumber blocks, double distances[QV_MEMBERS_SAMPLE])
{
	const QvRows *rows = engine->rows;
	QvRowsFinder finder = {0};
	ItemPointerData last;
	QvRowQuery	query,
				lower;
	double		error2 = 0;
	uint32		npages,
				nread,
				wanted;
	uint32		n = 0;

	if (rows == NULL || blocks == 0)
		return 0;
	QvRowQueryInit(&query, rows->space, engine->query, 0);
	QvRowQueryInit(&lower, rows->space, engine->query, 1);
	QvRowsFinderInit(&finder, rows);
	ItemPointerSet(&last, blocks - 1, FirstOffsetNumber);
	npages = QvRowsPageOfBlock(rows, &last) + 1;
	nread = Min(npages, SAMPLED_PAGES);
	wanted = Min(QV_ROW_BATCH, QV_MEMBERS_SAMPLE / nread);
	for (uint32 i = 0; i < nread; i++)
	{
		uint32		number = (2 * i + 1) * (uint64) npages / (2 * nread);
		BlockNumber block = QvRowsFindPage(&finder, number);
		const QvRowEntryData *entries[QV_ROW_BATCH];
		float		estimates[QV_ROW_BATCH];
		float		bounds[QV_ROW_BATCH];
		uint32		nentries = 0;
		Buffer		buf;

		CHECK_FOR_INTERRUPTS();
		if (block == QV_ROWS_NO_PAGE)
			continue;
		buf = QvRowsReadPage(rows, block, number, BUFFER_LOCK_SHARE);
		for (uint32 at = 0; at < rows->per_page && nentries < wanted;
			 at += Max(1, rows->per_page / wanted))
		{
			const QvRowEntryData *entry = QvRowsEntry(rows, QvPageEntries(BufferGetPage(buf)), at);

			if (QvRowEntryIsThere(entry))
				entries[nentries++] = entry;
		}
		QvRowLeast(&query, entries, nentries, estimates);
		QvRowLeast(&lower, entries, nentries, bounds);
		UnlockReleaseBuffer(buf);
		for (uint32 j = 0; j < nentries; j++)
		{
			double		error = (double) estimates[j] - bounds[j];

			/* else the code says nothing */
			if (!isfinite(estimates[j]) || !isfinite(error))
				continue;
			distances[n++] = estimates[j];
			error2 += error * error;
		}
	}
	undo_errors(distances, n, error2 / Max(1, n));
	for (uint32 i = 0; i < n; i++)
		distances[i] = QvScanDistance(engine, distances[i]);
	return n;
}
