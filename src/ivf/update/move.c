/*
 * move.c
 *		Writing lists again: splits and compaction; see move.h.
 */
#include "postgres.h"

#include <float.h>
#include <math.h>

#include "cluster/kmeans.h"
#include "common/pg_prng.h"
#include "compat.h"
#include "ivf/codec/layout.h"
#include "ivf/page/cache.h"
#include "ivf/page/directory.h"
#include "ivf/page/meta.h"
#include "ivf/page/pages.h"
#include "ivf/page/walk.h"
#include "ivf/page/writer.h"
#include "ivf/search/nearest.h"
#include "ivf/update/calibrate.h"
#include "ivf/update/move.h"
#include "miscadmin.h"
#include "rows/write.h"
#include "space/room.h"
#include "space/sample.h"
#include "storage/indexfsm.h"
#include "storage/lmgr.h"
#include "utils/memutils.h"

/* Policy: a list is split if it has more than this number of times the rows it should have. */
#define SPLIT_FACTOR 2

/* Policy: a list that has at most this number of rows is not split. */
#define MIN_SPLIT_ROWS 128

/*
 * Policy: a list is not split before it has this share more rows than it was written with.  The
 * first inserts after a build would split all lists that are long from the build otherwise.
 */
#define LEAST_GROWTH 0.1

/* Policy: the least share of the rows that each part of a split has. */
#define LEAST_SHARE 0.02

/* Policy: rows that decide where a list is cut, and rounds of k-means. */
#define SPLIT_SAMPLE 4096
#define SPLIT_ITERATIONS 8

/*
 * Policy: rows whose error is more than this share of their distance from the new centroid are
 * coded from the table, and not from their codes [M45].
 */
#define MOST_ERROR (1.0 / 16)

/*
 * Policy: the codes decide where to cut, if fewer rows than this can be read from the table, and
 * fewer than half of the sample.
 */
#define LEAST_EXACT 32

/* Relative: what sums in float32, and a query's 16 bits, may add to a row's error. */
#define ROUNDING 1e-4

/*
 * Policy: rows that an insert may read to measure probes when it has split a list [M48].
 * VACUUM measures without that bound.
 */
#define MEASURE_ROWS 1000000

bool
IvfWantsSplit(const IvfHandle *handle, uint32 list, uint64 rows)
{
	uint64		lists = handle->lists->count;

	return (handle->meta.flags & IVF_GROWS) && lists < handle->meta.max_lists &&
		rows > Max(MIN_SPLIT_ROWS, SPLIT_FACTOR * IvfListLength(&handle->layout, lists)) &&
		rows > (1 + LEAST_GROWTH) * handle->lists->refs[list].rows &&
		rows > 2 * (uint64) handle->lists->refs[list].refused;
}

/*
 * Returns the generation that follows another.  Half of it is random, so that pages which a
 * crash left behind are not taken for pages of the next try.
 */
static uint32
next_generation(uint32 generation)
{
	return ((generation >> 16) + 1) << 16 |
		(uint32) (pg_prng_uint32(&pg_global_prng_state) & 0xFFFF);
}

/* ---- compaction ---- */

void
IvfCompactList(IvfHandle *handle, uint32 list)
{
	IvfListRef *ref = &handle->lists->refs[list];
	IvfListRef	now;
	IvfEntry	entry;
	IvfWriter  *writer;
	IvfWalk		walk;
	IvfRow		row;
	Buffer		buf;

	/*
	 * Lists move under IVF_MOVE_LOCK only, but a list may have got its first
	 * page since the directory was read.  We note changes in our directory,
	 * so that it is not read again for each list.
	 */
	buf = IvfReadEntry(handle, list, BUFFER_LOCK_SHARE, &entry);
	ref->head = entry->head;
	ref->tail = entry->tail;
	UnlockReleaseBuffer(buf);
	now = *ref;
	now.generation = next_generation(ref->generation);
	now.refused = 0;
	writer = IvfWriterBegin(handle);
	IvfWriterStart(writer, list, now.generation);
	IvfWalkInit(&walk, handle);
	IvfWalkStart(&walk, list, ref->head);

	/*
	 * All pages but the last are copied without the list's lock, since rows
	 * are only added at the end.  An insert that waited long for the lock
	 * would have autovacuum canceled, each time.
	 */
	while (IvfWalkNextPage(&walk) && BlockNumberIsValid(walk.next))
		for (uint32 slot = 0; slot < IvfPageList(walk.images.page)->count; slot++)
			if (IvfWalkRead(&walk, slot, &row))
				IvfWriterAdd(writer, &row);

	LockPage(handle->index, IVF_LIST_LOCK(list), ExclusiveLock);
	IvfWalkAgain(&walk);
	while (IvfWalkNext(&walk, &row))
		IvfWriterAdd(writer, &row);
	IvfWriterFinish(writer, &now.head, &now.tail, &now.rows);
	IvfReplaceEntry(handle, list, &now);
	if (QvRowsExist(&handle->rows))
		QvRowsNoteMissing(&handle->rows, now.rows);
	UnlockPage(handle->index, IVF_LIST_LOCK(list), ExclusiveLock);
	IvfFreeList(handle, list, ref->generation, ref->head);
	*ref = now;
	IvfWalkEnd(&walk);
	IvfWriterEnd(writer);
}

/* ---- splitting ---- */

typedef struct Split
{
	IvfHandle  *handle;
	uint32		list;
	TableValues *table;			/* NULL: rows are not read from the table */
	bool		exact;			/* rows are read from the table, if possible */
	float	   *centroid;		/* of the list, decoded: width */
	float	   *decoded;		/* room for a row */
	float	   *sample;			/* nsample rows */
	uint32		nsample;
	double		error2;			/* mean square of the sample's errors */
	double		spread2;		/* mean square of its rows' distances from
								 * their parts' centroids */
	uint32		parts;			/* lists that the list becomes */
	float	   *centroids;		/* of the parts: parts x width */
	IvfEntry	entries[IVF_MAX_PARTS];
	IvfWriter  *writers[IVF_MAX_PARTS];
} Split;

/*
 * Prepares a row from its value in the table.  Returns false if there is no value, or if it is
 * not the one that was indexed: an older version of the row, if the index is of a later one.
 */
static bool
prepare_from_table(Split *s, const IvfRow *row, IvfQuery *query)
{
	const IvfHandle *handle = s->handle;
	const QvOpclassInfo *opclass = &handle->space.opclass;
	uint32		width = handle->layout.width;
	ItemPointerData tid = row->tid;
	const void *value = TableValue(s->table, &tid);
	const float *x;

	if (!value || opclass->type->dims(value) != handle->meta.dims)
		return false;
	handle->layout.codec->prepare(handle, value, 0, query);
	x = query->base.row;
	handle->layout.codec->decode(handle, s->centroid, row, s->decoded);
	return sqrt(qv_kernels.l2sq_f32(x, s->decoded, width)) <=
		row->error + ROUNDING * (row->error + sqrt(qv_kernels.norm2_f32(x, width)));
}

/*
 * Puts the coordinates of a row of the sample into out[width].  Returns false if the row does
 * not decide: a row that is too coarse, and cannot be read, would move the parts away from the
 * other rows.
 */
static bool
take_row(Split *s, const IvfRow *row, float *out)
{
	const IvfHandle *handle = s->handle;
	IvfQuery	query;

	if (s->exact)
	{
		if (!prepare_from_table(s, row, &query))
			return false;
		memcpy(out, query.base.row, handle->layout.width * sizeof(float));
		return true;
	}
	handle->layout.codec->decode(handle, s->centroid, row, out);
	s->error2 += (double) row->error * row->error;
	return true;
}

/* Takes the sample, evenly from the list. */
static void
take_sample(Split *s, uint64 rows)
{
	IvfHandle  *handle = s->handle;
	uint32		width = handle->layout.width;
	Size		most = (Size) QvMaintenanceWorkMem() * 1024 / 3 / (width * sizeof(float));
	uint32		target = Min(SPLIT_SAMPLE, Max(16, most));
	uint32		step = Max(1, (rows + target - 1) / target);
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "quiver split sample",
												  ALLOCSET_DEFAULT_SIZES);
	uint64		i = 0;
	IvfWalk		walk;
	IvfRow		row;

	if (!s->sample)
		s->sample = MemoryContextAllocHuge(CurrentMemoryContext,
										   (Size) target * width * sizeof(float));
	s->nsample = 0;
	s->error2 = 0;
	IvfWalkInit(&walk, handle);
	IvfWalkStart(&walk, s->list, handle->lists->refs[s->list].head);
	while (s->nsample < target && IvfWalkNext(&walk, &row))
		if (i++ % step == 0)
		{
			MemoryContext old = MemoryContextSwitchTo(context);

			if (take_row(s, &row, s->sample + (Size) s->nsample * width))
				s->nsample++;
			MemoryContextSwitchTo(old);
			MemoryContextReset(context);
		}
	IvfWalkEnd(&walk);
	MemoryContextDelete(context);
	s->error2 /= Max(1, s->nsample);
}

/* Clusters the sample into parts; returns false if one part would have hardly a row. */
static bool
find_parts(Split *s, uint32 parts)
{
	uint32		width = s->handle->layout.width;
	QvKmeansParams params = {0};
	uint32	   *assign;
	uint32		sizes[IVF_MAX_PARTS] = {0};
	void	   *workspace;
	bool		found;

	if (s->nsample < parts)
		return false;
	params.rows = s->sample;
	params.n = s->nsample;
	params.dim = width;
	params.k = parts;
	params.iterations = SPLIT_ITERATIONS;
	params.seed = s->handle->meta.seed + s->list;
	params.interrupt = QvClusterInterrupt;
	assign = palloc(s->nsample * sizeof(uint32));
	workspace = MemoryContextAllocHuge(CurrentMemoryContext, QvKmeansWorkspace(s->nsample, width, parts));
	found = QvKmeans(&params, s->centroids, assign, workspace) == parts;
	s->spread2 = 0;
	for (uint32 i = 0; found && i < s->nsample; i++)
	{
		sizes[assign[i]]++;
		s->spread2 += qv_kernels.l2sq_f32(s->sample + (Size) i * width,
										  s->centroids + assign[i] * width, width) / s->nsample;
	}
	for (uint32 i = 0; i < parts; i++)
	{
		found &= sizes[i] >= LEAST_SHARE * s->nsample;
		/* equal rows give equal centroids */
		for (uint32 j = 0; j < i; j++)
			found &= qv_kernels.l2sq_f32(s->centroids + i * width, s->centroids + j * width, width) > 0;
	}
	pfree(workspace);
	pfree(assign);
	s->parts = parts;
	return found;
}

/* The decoded centroids of the parts, while rows are written. */
typedef struct Parts
{
	IvfCentroids centroids;
	float	   *decoded[IVF_MAX_PARTS];
} Parts;

static void
decode_parts(const Split *s, Parts *parts)
{
	const IvfLayout *layout = &s->handle->layout;
	IvfCentroids *centroids = &parts->centroids;

	centroids->stride = s->handle->lists->centroids.stride;
	centroids->codes = palloc(s->parts * centroids->stride);
	centroids->scale = palloc(s->parts * sizeof(float));
	centroids->norm2 = palloc(s->parts * sizeof(float));
	for (uint32 i = 0; i < s->parts; i++)
	{
		(void) layout->codec->take_centroid(layout, &s->handle->space.opclass, s->entries[i],
											centroids, i);
		parts->decoded[i] = palloc(layout->width * sizeof(float));
		layout->codec->decode_centroid(layout, centroids, i, parts->decoded[i]);
	}
}

/* Returns whether a row with that error is too coarse for a part. */
static bool
too_coarse(const Split *s, const Parts *parts, uint32 part, const IvfQuery *query, float error)
{
	float		away2;

	if (!s->table || error == 0)
		return false;
	away2 = qv_kernels.l2sq_f32(query->base.row, parts->decoded[part], s->handle->layout.width);
	return (double) error * error > MOST_ERROR * MOST_ERROR * away2;
}

/* Prepares a row, and chooses its part.  Returns the error that the prepared row has. */
static float
prepare_for_part(Split *s, const Parts *parts, const IvfRow *row, IvfQuery *query, uint32 *part)
{
	const IvfHandle *handle = s->handle;
	bool		exact = s->exact && prepare_from_table(s, row, query);

	if (!exact)
		handle->layout.codec->prepare_row(handle, s->centroid, row, 0, query);
	*part = IvfNearestPart(handle, query, &parts->centroids, s->parts);
	if (!exact && !s->exact && too_coarse(s, parts, *part, query, row->error))
	{
		IvfQuery	read;

		exact = prepare_from_table(s, row, &read);
		if (exact)
		{
			*query = read;
			*part = IvfNearestPart(handle, query, &parts->centroids, s->parts);
		}
	}
	return exact ? 0 : row->error;
}

/* Writes every row of the list into one of its parts, encoded for the part's centroid. */
static void
write_parts(Split *s)
{
	IvfHandle  *handle = s->handle;
	const IvfLayout *layout = &handle->layout;
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "quiver split row",
												  ALLOCSET_DEFAULT_SIZES);
	Parts		parts;
	IvfRowRoom	room;
	IvfWalk		walk;
	IvfRow		from;

	decode_parts(s, &parts);
	room.data = palloc(layout->data_bytes);
	room.scratch = palloc(2 * layout->width * sizeof(float));
	IvfWalkInit(&walk, handle);
	IvfWalkStart(&walk, s->list, handle->lists->refs[s->list].head);
	while (IvfWalkNext(&walk, &from))
	{
		MemoryContext old = MemoryContextSwitchTo(context);
		IvfQuery	query;
		IvfRow		row;
		uint32		part;
		float		before = prepare_for_part(s, &parts, &from, &query, &part);

		layout->codec->encode(layout, parts.decoded[part], &query, &room, &row);
		row.tid = from.tid;
		/* the new code's error, and that of what was decoded */
		row.error = Min(row.error + before, FLT_MAX / 2);
		MemoryContextSwitchTo(old);
		IvfWriterAdd(s->writers[part], &row);
		MemoryContextReset(context);
	}
	IvfWalkEnd(&walk);
	MemoryContextDelete(context);
}

/* Returns the list number of part i.  The first part keeps the list's number. */
static uint32
part_number(const Split *s, uint32 i)
{
	return i == 0 ? s->list : s->handle->lists->count + i - 1;
}

/*
 * Notes in its entry that a list was to be split.  If it is not, or the work is canceled, the list
 * is left alone until it has twice the rows.
 */
static void
note_try(Split *s, uint64 rows)
{
	IvfListRef	ref = s->handle->lists->refs[s->list];

	ref.refused = rows;
	IvfReplaceEntry(s->handle, s->list, &ref);
}

/* Finds as many parts as there can be; returns false if that is fewer than two. */
static bool
find_most_parts(Split *s, uint32 most)
{
	while (most > 1 && !find_parts(s, most))
		most--;
	return most > 1;
}

/* Takes a sample, of values in the table or of codes, and finds as many parts as there can be. */
static bool
try_parts(Split *s, uint64 rows, uint32 most, bool exact)
{
	s->exact = exact;
	take_sample(s, rows);
	return find_most_parts(s, most);
}

/*
 * Decides where to cut.  Rows that were coded for much larger lists may be off by so much that
 * they are as near to one part as to another, and would stay so.  Then they are read from the
 * table.
 */
static bool
choose_parts(Split *s, uint64 rows, uint32 most)
{
	bool		found = try_parts(s, rows, most, false);
	uint32		n = s->nsample;

	if (s->table && s->error2 > MOST_ERROR * MOST_ERROR * (found ? s->spread2 : 0))
	{
		bool		exact = try_parts(s, rows, most, true);

		/* perhaps hardly a row is committed, and the committed rows are alike */
		if (s->nsample < Min(LEAST_EXACT, n / 2) || (!exact && s->nsample < n / 2))
			found = try_parts(s, rows, most, false);
		else
			found = exact;
	}
	pfree(s->sample);
	return found;
}

/* Splits a list, whose lock and the move lock are held.  Returns false if it is not split. */
static bool
split_list(IvfHandle *handle, uint32 list, uint64 rows, TableValues *table)
{
	const IvfLayout *layout = &handle->layout;
	const IvfListRef *ref = &handle->lists->refs[list];
	Split		s = {.handle = handle, .list = list};
	uint32		total = 0,
				largest = 0;

	/* parts after the first are appended on two directory pages at most */
	uint32		most = Min(IVF_MAX_PARTS, Min(layout->entries_per_page, handle->meta.max_lists - handle->lists->count) + 1);

	s.centroid = palloc(layout->width * sizeof(float));
	s.decoded = palloc(layout->width * sizeof(float));
	s.table = handle->meta.form == QV_FORM_CODED && TableIsReadable(table) ? table : NULL;
	s.centroids = palloc(IVF_MAX_PARTS * layout->width * sizeof(float));
	IvfDecodeCentroid(handle, list, s.centroid);
	note_try(&s, rows);
	if (!choose_parts(&s, rows, most))
		return false;
	for (uint32 i = 0; i < s.parts; i++)
	{
		s.entries[i] = palloc(layout->entry_size);
		IvfMakeEntry(layout, &handle->space.opclass, s.centroids + i * layout->width, ref->parent,
					 s.entries[i]);
		s.entries[i]->generation = next_generation(i == 0 ? ref->generation : 0);
		s.writers[i] = IvfWriterBegin(handle);
		IvfWriterStart(s.writers[i], part_number(&s, i), s.entries[i]->generation);
	}
	write_parts(&s);
	for (uint32 i = 0; i < s.parts; i++)
	{
		IvfWriterFinish(s.writers[i], &s.entries[i]->head, &s.entries[i]->tail, &s.entries[i]->rows);
		total += s.entries[i]->rows;
		largest = Max(largest, s.entries[i]->rows);
	}
	if (largest > (1 - LEAST_SHARE) * total)
	{
		/* nearly all rows are in one part, unlike those of the sample */
		for (uint32 i = 0; i < s.parts; i++)
			IvfFreeList(handle, part_number(&s, i), s.entries[i]->generation, s.entries[i]->head);
		return false;
	}
	IvfReplaceByParts(handle, list, s.entries, s.parts);
	if (QvRowsExist(&handle->rows))
		QvRowsNoteMissing(&handle->rows, total);
	IvfFreeList(handle, list, ref->generation, ref->head);
	return true;
}

/* Measures probes again, if there are many more lists than the last time. */
static void
measure_again(IvfHandle *handle)
{
	IvfReadMeta(handle->index, &handle->meta, &handle->layout);
	if (!IvfHasManyMoreLists(&handle->meta))
		return;
	/* the directory has changed, too */
	(void) IvfRefresh(handle);
	IvfMeasureProbes(handle, MEASURE_ROWS, 0);
}

void
IvfTrySplit(Relation index, const QvOpclassInfo *opclass, uint32 list,
			uint32 generation, uint64 rows, TableValues *table)
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
		/* another backend may have split it just now */
		if (list < handle->lists->count && IvfWantsSplit(handle, list, rows) &&
			handle->lists->refs[list].generation == generation)
		{
			/* a flag that was set before stays, for VACUUM */
			bool		before = (handle->meta.flags & IVF_MOVING) != 0;

			IvfSetFlags(handle, IVF_MOVING, 0);
			QvInjectionPoint("quiver-ivf-move-begun");
			split = split_list(handle, list, rows, table);
			if (!before)
				IvfSetFlags(handle, 0, IVF_MOVING);
			QvInjectionPoint("quiver-ivf-move-ended");
		}
		UnlockPage(index, IVF_LIST_LOCK(list), ExclusiveLock);
		if (split)
			measure_again(handle);
		MemoryContextSwitchTo(old);
		MemoryContextDelete(context);
	}
	UnlockPage(index, IVF_MOVE_LOCK, ExclusiveLock);
}
