/*
 * centroid_codes.c
 *		One-bit codes of all centroids; see centroid_codes.h.
 */
#include "postgres.h"

#include "ivf/page/centroid_codes.h"
#include "utils/memutils.h"

/* Policy: up to this number of lists every centroid's own code is measured [M40]. */
#define EXACT_LISTS 128

/* Policy: beyond this number of lists, only codes of the nearest groups are scored. */
#define FLAT_LISTS 8192

/* Coordinates in the one-bit codes of centroids. */
#define MOST_BITS 1024
#define CENTROID_BITS(pdim) Min(pdim, MOST_BITS)

uint32
IvfCentroidBits(const IvfHandle *handle)
{
	return handle->lists->nbatches > 0 ? CENTROID_BITS(handle->layout.pdim) : 0;
}

/* Puts the one-bit code of a list's centroid into a place.  Decodes it into centroid[pdim]. */
static void
put_code(const IvfHandle *handle, IvfLists *lists, uint32 list, uint32 place, float *centroid)
{
	uint32		pdim = handle->layout.pdim;
	uint32		nbits = CENTROID_BITS(pdim);
	uint8		bits[MOST_BITS / 8];

	handle->layout.codec->decode_centroid(&handle->layout, &lists->centroids, list, centroid);
	lists->batch_factor[place] = QvEncodeBits(centroid, pdim, nbits, bits);
	lists->batch_list[place] = list;
	QvPackSlot(lists->batch_codes + place / QV_BATCH * QvBatchBytes(nbits), nbits, place % QV_BATCH,
			   bits);
}

/* Drops all codes and groups, and makes room for batches. */
static void
make_batches(const IvfHandle *handle, IvfLists *lists, uint32 room)
{
	uint32		nbits = CENTROID_BITS(handle->layout.pdim);
	MemoryContext old = MemoryContextSwitchTo(lists->part.context);

	if (lists->batch_room > 0)
	{
		pfree(lists->batch_list);
		pfree(lists->batch_factor);
		pfree(lists->batch_codes);
	}
	if (lists->ngroups > 0)
	{
		pfree(lists->groups);
		pfree(lists->group_center);
		lists->ngroups = 0;
	}
	lists->batch_room = 0;
	lists->batch_list = palloc((Size) room * QV_BATCH * sizeof(uint32));
	memset(lists->batch_list, 0xFF, (Size) room * QV_BATCH * sizeof(uint32));
	lists->batch_factor = palloc0((Size) room * QV_BATCH * sizeof(float));
	lists->batch_codes = MemoryContextAllocExtended(CurrentMemoryContext, room * QvBatchBytes(nbits),
													MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	lists->batch_room = room;
	MemoryContextSwitchTo(old);
}

/* Makes all codes, in the order of the lists. */
static void
flat_codes(const IvfHandle *handle, IvfLists *lists, float *centroid)
{
	make_batches(handle, lists, IVF_BATCHES(lists->allocated));
	for (uint32 list = 0; list < lists->count; list++)
		put_code(handle, lists, list, list, centroid);
	lists->nbatches = IVF_BATCHES(lists->count);
}

/* Makes groups without codes, with room for each group and for all to grow. */
static void
make_groups(const IvfHandle *handle, IvfLists *lists)
{
	uint32		tops = handle->meta.tops;
	uint32		batches = IVF_BATCHES(lists->count) + 2 * tops;
	MemoryContext old;

	make_batches(handle, lists, batches + batches / 4);
	old = MemoryContextSwitchTo(lists->part.context);
	lists->groups = palloc0(tops * sizeof(IvfListGroup));
	lists->group_center = MemoryContextAllocExtended(CurrentMemoryContext,
													 (Size) tops * handle->layout.pdim * sizeof(float),
													 MCXT_ALLOC_HUGE);
	MemoryContextSwitchTo(old);
	for (uint32 i = 0; i < tops; i++)
		lists->groups[i].changed = true;
	lists->ngroups = tops;
	lists->nbatches = 0;
}

/*
 * Gives each group batches for its members.  If its batches are too few, it gets new ones at
 * the end.  Returns false if there is no more room.
 */
static bool
place_groups(IvfLists *lists)
{
	for (uint32 i = 0; i < lists->ngroups; i++)
		lists->groups[i].members = 0;
	for (uint32 list = 0; list < lists->count; list++)
		lists->groups[lists->refs[list].parent].members++;
	for (uint32 i = 0; i < lists->ngroups; i++)
	{
		IvfListGroup *group = &lists->groups[i];
		uint32		room = IVF_BATCHES(group->members);

		if (room <= group->room)
			continue;
		if (lists->nbatches + room > lists->batch_room)
			return false;
		/* one batch more, if there is room for it */
		room = Min(room + 1, lists->batch_room - lists->nbatches);
		group->batch = lists->nbatches;
		group->room = room;
		lists->nbatches += room;
	}
	return true;
}

/*
 * Makes the codes and centers of the groups that changed, as if all were made.  They depend
 * on the directory alone.
 */
static void
fill_groups(const IvfHandle *handle, IvfLists *lists, float *centroid)
{
	uint32		pdim = handle->layout.pdim;
	uint32	   *filled = palloc0(lists->ngroups * sizeof(uint32));

	for (uint32 i = 0; i < lists->ngroups; i++)
	{
		const IvfListGroup *group = &lists->groups[i];

		if (!group->changed)
			continue;
		memset(lists->group_center + (Size) i * pdim, 0, pdim * sizeof(float));
		memset(lists->batch_list + (Size) group->batch * QV_BATCH, 0xFF,
			   (Size) group->room * QV_BATCH * sizeof(uint32));
	}
	for (uint32 list = 0; list < lists->count; list++)
	{
		uint32		i = lists->refs[list].parent;

		if (!lists->groups[i].changed)
			continue;
		put_code(handle, lists, list, lists->groups[i].batch * QV_BATCH + filled[i]++, centroid);
		qv_kernels.add_f32(lists->group_center + (Size) i * pdim, centroid, pdim);
	}
	for (uint32 i = 0; i < lists->ngroups; i++)
	{
		float	   *center = lists->group_center + (Size) i * pdim;

		if (!lists->groups[i].changed)
			continue;
		for (uint32 j = 0; j < pdim && filled[i] > 0; j++)
			center[j] /= filled[i];
		lists->groups[i].changed = false;
	}
	pfree(filled);
}

void
IvfUpdateCentroidCode(const IvfHandle *handle, IvfLists *lists, uint32 list)
{
	float	   *centroid;

	/* codes in groups are made at the end */
	if (lists->ngroups > 0)
	{
		if (lists->refs[list].parent < lists->ngroups)
			lists->groups[lists->refs[list].parent].changed = true;
		return;
	}
	if (list / QV_BATCH >= lists->batch_room)
		return;
	centroid = palloc(handle->layout.pdim * sizeof(float));
	put_code(handle, lists, list, list, centroid);
	pfree(centroid);
}

void
IvfFinishCentroidCodes(const IvfHandle *handle, IvfLists *lists)
{
	float	   *centroid;

	if (lists->count <= EXACT_LISTS || handle->layout.scan_bits == 0)
		return;
	centroid = palloc(handle->layout.pdim * sizeof(float));
	if (lists->count > FLAT_LISTS && handle->meta.tops > 1)
	{
		if (lists->ngroups != handle->meta.tops || !place_groups(lists))
		{
			make_groups(handle, lists);
			(void) place_groups(lists);
		}
		fill_groups(handle, lists, centroid);
	}
	else if ((Size) lists->batch_room * QV_BATCH < lists->count || lists->ngroups > 0)
		flat_codes(handle, lists, centroid);
	else
		lists->nbatches = IVF_BATCHES(lists->count);
	pfree(centroid);
}
