/*
 * stream.c
 *		Rows in the order of their exact distances; see stream.h.
 */
#include "postgres.h"

#include <float.h>
#include <math.h>

#include "access/tableam.h"
#include "catalog/pg_operator_d.h"
#include "catalog/pg_type_d.h"
#include "common/hashfn.h"
#include "compat.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "query/stream.h"
#include "space/grow.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"
#include "utils/tuplesort.h"

/*
 * Rows that may be returned without being measured.  The farther a row is, the more others lie
 * where it may lie.
 */
#define MAX_GUESSED 100

#define FIRST_ROOM 64

/* Rows whose distances tell where the nearer half of the waiting rows ends. */
#define MEDIAN_SAMPLE 101

/* Places in the order after all distances, or before them; distances are less than 1e100. */
#define KEY_INFINITE (DBL_MAX / 4)
#define KEY_NAN (DBL_MAX / 2)
#define KEY_NULL DBL_MAX

/* A hash table of heap TIDs. */
typedef struct TidEntry
{
	ItemPointerData tid;
	char		status;
} TidEntry;

/* A TID may be of a damaged page. */
static inline uint32
hash_tid(ItemPointerData tid)
{
	return murmurhash32(ItemPointerGetBlockNumberNoCheck(&tid)) ^
		murmurhash32(ItemPointerGetOffsetNumberNoCheck(&tid));
}

#define SH_PREFIX tids
#define SH_ELEMENT_TYPE TidEntry
#define SH_KEY_TYPE ItemPointerData
#define SH_KEY tid
#define SH_HASH_KEY(tb, key) hash_tid(key)
#define SH_EQUAL(tb, a, b) (ItemPointerCompare(&(a), &(b)) == 0)
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

/* A row that waits: a heap by its key, and then in the order in which rows were proposed. */
typedef struct Waiting
{
	double		key;			/* no less is its distance; if measured, it is
								 * that */
	double		most;			/* no more */
	uint64		order;
	bool		measured;
	bool		passes;			/* it was not fetched for that */
	ItemPointerData tid;
} Waiting;

StaticAssertDecl(sizeof(Waiting) == 3 * sizeof(double) + sizeof(uint16) + sizeof(ItemPointerData),
				 "rows are written to files, without padding");

struct QvStream
{
	QvStreamSource source;
	MemoryContext context;		/* of rows that wait */
	QvScan	   *scan;			/* NULL: none, or it has ended */
	bool		at_once;		/* rows are returned as they come */
	QvStreamCounters counters;
	int64		proposed_before;	/* rows proposed when this search began */
	bool		ended_early;

	Waiting    *heap;
	uint32		count;
	uint32		room;
	uint64		order;			/* of the next row */
	double		dropped;		/* rows that are no nearer were left out, */
	bool		keeps;			/* or put aside: */
	Tuplesortstate *aside;		/* NULL: none were */
	TupleTableSlot *aside_slot;
	Waiting		aside_next;		/* the nearest of them, when the search has
								 * ended */
	uint64		in_slot;		/* order of the row in the slot, plus 1; 0:
								 * none */

	/* the candidate at hand */
	bool		at_hand;
	QvCandidate candidate;
	double		nearest;		/* no row at all is nearer */
	double		bound;			/* no row of it, or to come, is nearer */
	double		same_bound;		/* rows of one node: no less is their
								 * distance, */
	double		same_nearest;	/* and the least that was measured of it */

	/* rows returned */
	Waiting		last;			/* the last one */
	struct tids_hash *returned; /* all while none had to be measured; then
								 * those at the last distance */
	uint64		nreturned;

	/* late rows, which are returned last */
	Waiting    *late;
	uint32		nlate;
	uint32		late_room;
	uint32		late_next;		/* of those in order; 0: they are not yet */
};

QvStream *
QvStreamCreate(void)
{
	QvStream   *s = palloc0(sizeof(QvStream));

	s->context = AllocSetContextCreate(CurrentMemoryContext, "quiver stream", ALLOCSET_DEFAULT_SIZES);
	return s;
}

static void
forget_aside(QvStream *s)
{
	if (s->aside)
		tuplesort_end(s->aside);
	s->aside = NULL;
}

/* How near rows may be.  All rows are alike for a value that has no distance to any. */
static double
nearest_row(const QvStreamSource *source)
{
	if (source->nulls_first)
		return -INFINITY;
	if (source->value == NULL)
		return 0;
	if (QvIsIndexed(source->rows->opclass, source->value))
		return -INFINITY;
	return source->nans_first ? -KEY_NAN : KEY_NAN;
}

void
QvStreamStart(QvStream *s, const QvStreamSource *source)
{
	QvStreamSetScan(s, NULL, false);
	MemoryContextReset(s->context);
	s->source = *source;
	s->nearest = nearest_row(source);
	s->heap = s->late = NULL;
	s->room = s->late_room = 0;
	s->order = 0;
	s->nreturned = 0;
	s->returned = tids_create(s->context, FIRST_ROOM, NULL);
}

void
QvStreamSetScan(QvStream *s, QvScan *scan, bool at_once)
{
	s->scan = scan;
	s->at_once = at_once;
	s->proposed_before = s->counters.proposed;
	s->count = s->nlate = s->late_next = 0;
	s->dropped = INFINITY;
	s->keeps = false;
	forget_aside(s);
	s->in_slot = 0;
	s->at_hand = s->ended_early = false;
	s->bound = scan ? -INFINITY : INFINITY;
	s->same_bound = -INFINITY;
	s->same_nearest = INFINITY;
	if (scan && scan->table_hints)
		RowReaderUseHints(s->source.rows, scan->table_hints);
}

/* ---- rows that wait ---- */

static inline bool
is_before(const Waiting *a, const Waiting *b)
{
	return a->key < b->key || (a->key == b->key && a->order < b->order);
}

static void
sift_up(QvStream *s, uint32 at, Waiting row)
{
	for (; at > 0 && is_before(&row, &s->heap[(at - 1) / 2]); at = (at - 1) / 2)
		s->heap[at] = s->heap[(at - 1) / 2];
	s->heap[at] = row;
}

static void
sift_down(QvStream *s, uint32 at, Waiting row)
{
	uint32		child;

	for (; (child = 2 * at + 1) < s->count; at = child)
	{
		if (child + 1 < s->count && is_before(&s->heap[child + 1], &s->heap[child]))
			child++;
		if (!is_before(&s->heap[child], &row))
			break;
		s->heap[at] = s->heap[child];
	}
	s->heap[at] = row;
}

static void
take_top(QvStream *s)
{
	Waiting		last = s->heap[--s->count];

	if (s->count > 0)
		sift_down(s, 0, last);
}

/* For qsort(): nearest first. */
static int
compare_rows(const void *a, const void *b)
{
	return is_before(a, b) ? -1 : 1;
}

/* ---- rows put aside ---- */

static void
begin_aside(QvStream *s)
{
	MemoryContext old = MemoryContextSwitchTo(s->context);
	TupleDesc	desc = CreateTemplateTupleDesc(3);
	AttrNumber	keys[] = {1, 2};
	Oid			operators[] = {Float8LessOperator, Int8LessOperator};
	Oid			collations[] = {InvalidOid, InvalidOid};
	bool		nulls_first[] = {false, false};

	TupleDescInitEntry(desc, 1, "key", FLOAT8OID, -1, 0);
	TupleDescInitEntry(desc, 2, "order", INT8OID, -1, 0);
	TupleDescInitEntry(desc, 3, "row", BYTEAOID, -1, 0);
	QvTupleDescFinalize(desc);
	/* the least that a sort needs, in kB */
	s->aside = tuplesort_begin_heap(desc, lengthof(keys), keys, operators, collations, nulls_first,
									(int) Max(64, Min(MAX_KILOBYTES, s->source.max_bytes / 2 / 1024)), NULL, TUPLESORT_NONE);
	s->aside_slot = MakeSingleTupleTableSlot(desc, &TTSOpsMinimalTuple);
	MemoryContextSwitchTo(old);
}

/* Leave out a row: it is put aside, or the search will be run again. */
static void
leave_out(QvStream *s, const Waiting *row)
{
	struct
	{
		int32		vl_len;
		char		data[sizeof(Waiting)];
	}			value;
	TupleTableSlot *slot;

	s->dropped = Min(s->dropped, row->key);
	if (!s->keeps)
		return;
	if (s->aside == NULL)
		begin_aside(s);
	SET_VARSIZE(&value, sizeof(value));
	memcpy(value.data, row, sizeof(Waiting));
	slot = s->aside_slot;
	ExecClearTuple(slot);
	slot->tts_values[0] = Float8GetDatum(row->key);
	slot->tts_values[1] = Int64GetDatum((int64) row->order);
	slot->tts_values[2] = PointerGetDatum(&value);
	memset(slot->tts_isnull, false, 3 * sizeof(bool));
	ExecStoreVirtualTuple(slot);
	tuplesort_puttupleslot(s->aside, slot);
}

/* Have the next of the rows put aside at hand: rows that wait are returned up to it. */
static void
next_aside(QvStream *s)
{
	bool		isnull;

	if (tuplesort_gettupleslot(s->aside, true, false, s->aside_slot, NULL))
	{
		memcpy(&s->aside_next, VARDATA_ANY(DatumGetPointer(slot_getattr(s->aside_slot, 3, &isnull))),
			   sizeof(Waiting));
		s->bound = s->aside_next.key;
		return;
	}
	forget_aside(s);
	s->bound = INFINITY;
}

/* No more rows are proposed.  Rows put aside come after the rows that wait. */
static void
end_scan(QvStream *s)
{
	s->scan = NULL;
	s->at_hand = false;
	s->bound = INFINITY;
	if (s->aside == NULL)
		return;
	s->dropped = INFINITY;
	tuplesort_performsort(s->aside);
	next_aside(s);
}

/* ---- room for rows ---- */

/* Leave out the farther half of the rows that wait. */
static void
drop_farthest(QvStream *s)
{
	Waiting		sample[MEDIAN_SAMPLE];
	Waiting		limit;
	uint32		kept = 0;

	for (int i = 0; i < MEDIAN_SAMPLE; i++)
		sample[i] = s->heap[(uint64) s->count * i / MEDIAN_SAMPLE];
	qsort(sample, MEDIAN_SAMPLE, sizeof(Waiting), compare_rows);
	limit = sample[MEDIAN_SAMPLE / 2];
	for (uint32 i = 0; i < s->count; i++)
		if (is_before(&s->heap[i], &limit))
			s->heap[kept++] = s->heap[i];
		else
			leave_out(s, &s->heap[i]);
	s->count = kept;
	for (uint32 i = kept / 2; i-- > 0;)
		sift_down(s, i, s->heap[i]);
}

static void
make_room(QvStream *s)
{
	/* when the search has ended, rows come one by one */
	if (s->count == s->room && s->scan && s->room * sizeof(Waiting) >= s->source.max_bytes / 2)
		drop_farthest(s);
	if (s->count == s->room)
		s->heap = QvGrow(s->context, s->heap, &s->room, FIRST_ROOM, sizeof(Waiting));
}

static void
add_row(QvStream *s, const Waiting *row)
{
	if (row->key < s->dropped)
		make_room(s);
	/* rows that were left out to have room for it may be nearer */
	if (row->key >= s->dropped)
	{
		leave_out(s, row);
		return;
	}
	s->count++;
	sift_up(s, s->count - 1, *row);
}

/* ---- measuring ---- */

/* Have a row in the slot; false when it is not there any more. */
static bool
have_in_slot(QvStream *s, const Waiting *row)
{
	ItemPointerData tid = row->tid;

	if (s->in_slot == row->order + 1)
		return true;
	s->in_slot = 0;
	s->counters.looked_up += row->passes;
	if (!RowFetch(s->source.rows, &tid, s->source.snapshot))
		return false;
	s->counters.fetched += row->passes;
	s->in_slot = row->order + 1;
	return true;
}

/* Measure a row; false when it has gone, or cannot be compared. */
static bool
measure(QvStream *s, Waiting *row)
{
	double		distance = 0;
	RowMeasure	found;

	if (!have_in_slot(s, row))
		return false;
	found = RowDistance(s->source.rows, s->source.value, &distance);
	if (found == ROW_OTHER || (found != ROW_MEASURED && !s->source.unindexed))
		return false;
	s->counters.measured += found == ROW_MEASURED;
	if (found == ROW_NULL)
		distance = s->source.nulls_first ? -KEY_NULL : KEY_NULL;
	else if (found == ROW_ZERO || isnan(distance))
		distance = s->source.nans_first ? -KEY_NAN : KEY_NAN;
	else if (distance == INFINITY)
		distance = KEY_INFINITE;
	row->key = row->most = distance;
	row->measured = true;
	return true;
}

/* A row comes late. */
static void
add_late(QvStream *s, const Waiting *row)
{
	if (s->source.late == QV_LATE_NOW)
		add_row(s, row);
	if (s->source.late != QV_LATE_LAST || s->nlate * sizeof(Waiting) >= s->source.max_bytes / 4)
		return;
	if (s->nlate == s->late_room)
		s->late = QvGrow(s->context, s->late, &s->late_room, FIRST_ROOM, sizeof(Waiting));
	s->late[s->nlate++] = *row;
}

/*
 * Have a row wait, or be returned as a late one; it may have gone, or have been returned.  It is
 * measured if it may be nearer than the row returned last, or be that one.
 */
static void
place_row(QvStream *s, Waiting *row)
{
	bool		late = false;

	if (s->nreturned > 0 && row->key <= s->last.most && !row->measured && !measure(s, row))
		return;
	if (s->nreturned > 0 && row->key <= s->last.most)
	{
		if (!s->last.measured && !measure(s, &s->last))
			s->last.key = s->last.most;
		if (tids_lookup(s->returned, row->tid) != NULL)
			return;
		late = row->key < s->last.key;
	}
	/* it is returned next */
	if (s->at_once)
		row->key = -INFINITY;
	if (late)
		add_late(s, row);
	else
		add_row(s, row);
}

/* Take a row, which lies between two distances.  It is in the slot, unless it is known to pass. */
static void
take_row(QvStream *s, const ItemPointerData *tid, double least, double most, bool passes)
{
	Waiting		row = {.key = least, .most = most, .order = s->order++, .passes = passes, .tid = *tid};

	s->in_slot = passes ? 0 : row.order + 1;
	if (!(isfinite(least) && isfinite(most) && s->source.guess && s->nreturned < MAX_GUESSED))
	{
		if (!measure(s, &row))
			return;
		s->same_nearest = Min(s->same_nearest, row.key);
	}
	place_row(s, &row);
}

/* ---- candidates ---- */

/* Fetch and test the rows of the candidate at hand. */
static void
take_candidate(QvStream *s)
{
	const QvCandidate *c = &s->candidate;
	double		distance = QvScanDistance(s->scan, c->distance);
	double		error = s->scan->scale * c->error;

	s->at_hand = false;
	s->counters.proposed += c->ntids;
	for (int i = 0; i < c->ntids; i++)
	{
		QvAdmission admission = QV_ROW_MAY_PASS;

		CHECK_FOR_INTERRUPTS();
		if (s->source.admit)
			admission = s->source.admit(s->source.arg, &c->tids[i]);
		if (admission == QV_ROW_FAILS)
			continue;
		if (admission == QV_ROW_MAY_PASS)
		{
			s->in_slot = 0;
			s->counters.looked_up++;
			if (!RowFetch(s->source.rows, &c->tids[i], s->source.snapshot))
				continue;
			s->counters.fetched++;
			if (s->source.test && !s->source.test(s->source.arg))
				continue;
		}
		s->counters.passed++;
		take_row(s, &c->tids[i], distance - error, distance + error, admission == QV_ROW_PASSES);
	}
}

/*
 * Have the table's pages of rows to come read in the background, and those of their values, if most
 * rows are measured.
 */
static void
ask_ahead(QvStream *s)
{
	ItemPointerData tids[QV_ROWS_AHEAD];
	int			n = s->scan->ops->prefetch ? s->scan->ops->prefetch(s->scan, tids) : 0;
	bool		values = 2 * s->counters.passed >= s->counters.fetched &&
		!(s->source.guess && isfinite(s->candidate.error));

	for (int i = 0; i < n; i++)
		RowAskFor(s->source.rows, &tids[i], values);
}

/* How far off a search distance may be by rounding to float32. */
static double
rounding_of(const QvScan *scan, double distance)
{
	double		rounding = FLT_EPSILON * fabs(distance);

	return scan->query ? rounding + QvSpaceQueryRounding(scan->query, distance) : rounding;
}

/*
 * How near more rows of a node may be: as near as its rows that were measured, where it is known
 * how much rounding makes them differ.
 */
static double
same_node_bound(const QvStream *s)
{
	const QvScan *scan = s->scan;

	if (!isfinite(s->same_nearest) || (scan->query && scan->query->kind != QV_SPACE_L2))
		return s->same_bound;
	return s->same_nearest -
		scan->scale * rounding_of(scan, s->same_nearest / scan->scale - scan->offset);
}

/* Have the next candidate at hand, or none and an infinite bound. */
static void
next_candidate(QvStream *s)
{
	QvCandidate *c = &s->candidate;

	if (s->at_hand || s->scan == NULL)
		return;
	s->at_hand = s->scan->ops->next(s->scan, c);
	if (!s->at_hand)
	{
		s->ended_early = !s->scan->complete;
		end_scan(s);
		return;
	}
	s->bound = QvScanDistance(s->scan, c->bound - rounding_of(s->scan, c->bound));
	if (!c->same_node)
	{
		s->same_bound = s->bound;
		s->same_nearest = INFINITY;
	}
	else
		s->bound = Min(s->bound, same_node_bound(s));
	/* damaged factors: then nothing is known */
	if (isnan(s->bound))
		s->bound = -INFINITY;
	s->bound = Max(s->bound, s->nearest);
	ask_ahead(s);
}

/* ---- rows that are returned ---- */

/*
 * Are all rows returned remembered?  They are while they are not measured, or late ones are
 * returned and there is memory.  Afterwards only rows at the last distance are, and late ones are
 * dropped.
 */
static bool
remembers_all(QvStream *s)
{
	Size		bytes = s->returned->members * sizeof(TidEntry);

	if (s->source.late != QV_LATE_DROPPED &&
		bytes > s->source.max_bytes / (s->source.late == QV_LATE_LAST ? 4 : 1))
		s->source.late = QV_LATE_DROPPED;
	return s->source.late != QV_LATE_DROPPED || (s->source.guess && s->nreturned < MAX_GUESSED);
}

static void
note_returned(QvStream *s, const Waiting *row)
{
	bool		found;

	/*
	 * those at other distances are of no use; to clear a large table takes
	 * long
	 */
	if (row->measured && !remembers_all(s) && row->key > s->last.most && s->returned->members >= FIRST_ROOM)
	{
		tids_destroy(s->returned);
		s->returned = tids_create(s->context, FIRST_ROOM, NULL);
	}
	(void) tids_insert(s->returned, row->tid, &found);
	if (s->nreturned == 0 || row->most >= s->last.most)
		s->last = *row;
	s->nreturned++;
	s->counters.returned++;
}

/* Return a row; false when it was returned, or has gone. */
static bool
return_row(QvStream *s, Waiting row, QvStreamRow *out)
{
	/* it was proposed twice, or has gone */
	if (tids_lookup(s->returned, row.tid) != NULL)
		return false;
	out->filled = row.passes && s->in_slot != row.order + 1 && s->source.fill(s->source.arg, &row.tid);
	if (s->source.test && !out->filled && !have_in_slot(s, &row))
		return false;
	if (s->at_once)
		s->counters.returned++;
	else
		note_returned(s, &row);
	/* infinity and NaN alike */
	out->distance = fabs(row.most) >= KEY_INFINITE ? INFINITY : row.most;
	out->measured = row.measured;
	out->tid = row.tid;
	return true;
}

/*
 * Return the nearest row that waits, if it is that one for sure.  Else measure it: then it may be
 * another.
 */
static bool
return_top(QvStream *s, QvStreamRow *out)
{
	Waiting		row = s->heap[0];
	double		next;

	take_top(s);
	next = s->count > 0 ? s->heap[0].key : INFINITY;
	if (row.measured || row.most <= Min(Min(s->bound, s->dropped), next))
		return return_row(s, row, out);
	if (measure(s, &row))
		place_row(s, &row);
	return false;
}

/* Return the next late row, after all others. */
static bool
return_late(QvStream *s, QvStreamRow *out)
{
	if (s->late_next == 0)
		qsort(s->late, s->nlate, sizeof(Waiting), compare_rows);
	while (s->late_next < s->nlate)
		if (return_row(s, s->late[s->late_next++], out))
			return true;
	return false;
}

/* Is all that the search may still propose beyond the radius? */
static bool
is_beyond(const QvStream *s)
{
	return s->source.beyond && s->source.beyond(s->source.arg, s->bound);
}

/*
 * Have as many rows left the stream as the search is deep enough for?  Rows that failed a condition
 * have: they are among the nearest that the search has found.
 */
static bool
wants_depth(const QvStream *s)
{
	return s->scan && s->scan->returns > 0 &&
		s->counters.proposed - s->proposed_before - s->count >= s->scan->returns && !is_beyond(s);
}

bool
QvStreamNext(QvStream *s, bool (*pause) (void *arg), QvStreamRow *row)
{
	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		if (s->scan && !s->at_hand && !pause(s->source.arg))
		{
			s->ended_early = true;
			end_scan(s);
		}
		next_candidate(s);

		/*
		 * before rows are returned that another search may find to be farther
		 * than its own
		 */
		if (s->scan == NULL && s->ended_early && s->source.early && s->source.early(s->source.arg))
			continue;
		if (s->count > 0 && s->heap[0].key <= s->bound && !wants_depth(s))
		{
			if (return_top(s, row))
				return true;
		}
		else if (s->scan && !is_beyond(s))
			take_candidate(s);
		else if (s->scan == NULL && s->aside)
		{
			add_row(s, &s->aside_next);
			next_aside(s);
		}
		else if (s->dropped == INFINITY)
			return return_late(s, row);
		else if (s->scan)
			/* rows that were left out may be within the radius */
			end_scan(s);
		else
		{
			s->source.again(s->source.arg);
			s->keeps = true;
		}
	}
}

bool
QvStreamHasWaiting(const QvStream *s)
{
	return s->count > 0;
}

double
QvStreamBound(const QvStream *s)
{
	return s->bound;
}

const QvStreamCounters *
QvStreamGetCounters(const QvStream *s)
{
	return &s->counters;
}

void
QvStreamEnd(QvStream *s)
{
	forget_aside(s);
	MemoryContextDelete(s->context);
	pfree(s);
}
