/*
 * tid_map.c
 *		Where in its lists an index has the rows of the table; see tid_map.h.
 */
#include "postgres.h"

#include "ivf/page/pages.h"
#include "ivf/search/tid_map.h"
#include "miscadmin.h"
#include "utils/memutils.h"

/* Of all maps. */
static uint64 last_change = 0;

/* A new map, kept with the index; without places when they would take too much memory. */
static IvfTidMap *
make_map(IvfHandle *handle, BlockNumber blocks)
{
	IvfTidMap  *map = QvRelCacheNewPart(sizeof(IvfTidMap));
	IvfTidMap  *old = *handle->tid_map;

	(void) QvTidMapInit(&map->map, map->part.context, blocks, handle->meta.tuples, QvTidMapMemory());
	map->changes = ++last_change;
	QvRelCacheKeepPart(&map->part, handle->cached);
	*handle->tid_map = map;
	if (old)
		QvRelCacheRetirePart(&old->part);
	return map;
}

/* Nothing is known of any list. */
static void
forget_lists(IvfTidMap *map)
{
	if (map->lists)
		memset(map->lists, 0, map->nlists * sizeof(IvfKnownList));
}

/* It has become too large: there will be another when there is more memory for it. */
static void
drop_places(IvfTidMap *map)
{
	if (map->map.places)
		pfree(map->map.places);
	map->map.places = NULL;
	map->map.blocks = map->map.lines = 0;
	forget_lists(map);
}

/* The map for a search; NULL when there is none. */
static IvfTidMap *
map_for(const IvfKnowledge *k)
{
	uint32		lists = k->handle->lists->count;
	IvfTidMap  *map;

	/* by an older directory lists that were split since would be learned, too */
	if (k->only == NULL || k->only->words == 0 || !k->handle->lists->part.current)
		return NULL;
	map = *k->handle->tid_map;
	if (map == NULL || (map->map.places == NULL && map->map.max_bytes < QvTidMapMemory()))
		map = make_map(k->handle, QvTidMapRoom(k->only->nblocks));

	/*
	 * there may be room for another, but not for both; with room to grow, or
	 * for none
	 */
	if (map->map.places && !QvTidMapExtend(&map->map, k->only->nblocks))
	{
		drop_places(map);
		map = make_map(k->handle, QvTidMapRoom(k->only->nblocks));
	}
	if (map->map.places == NULL)
		return NULL;
	if (lists > map->nlists)
	{
		Size		bytes = lists * sizeof(IvfKnownList);

		map->lists = map->lists ? repalloc(map->lists, bytes) : MemoryContextAlloc(map->part.context, bytes);
		memset(map->lists + map->nlists, 0, (lists - map->nlists) * sizeof(IvfKnownList));
		map->nlists = lists;
	}
	return map;
}

/* ---- members ---- */

void
IvfBeginKnowing(IvfKnowledge *k, IvfHandle *handle, const QvTidSet *only)
{
	memset(k, 0, sizeof(*k));
	k->handle = handle;
	k->only = only;
	k->context = CurrentMemoryContext;
}

/* Sort the members by lists; false when there is no memory for it. */
static bool
sort_members(IvfKnowledge *k, const IvfTidMap *map)
{
	IvfMemberSlots *found = &k->found;
	QvTidSetIterator it = {.set = k->only};
	Size		members = k->only->members;
	Size		bytes = members * (sizeof(uint32) + sizeof(uint16)) + map->nids * sizeof(uint32);
	MemoryContext old;
	ItemPointerData tid;
	uint32	   *places;
	Size		n = 0;
	uint32		end = 0;

	if (bytes > (Size) work_mem * 1024 / 2)
		return false;
	old = MemoryContextSwitchTo(k->context);
	if (found->ends)
	{
		pfree(found->ends);
		pfree(found->slots);
	}
	found->ends = palloc0(Max(1, map->nids) * sizeof(uint32));
	found->slots = palloc_extended(Max(1, members) * sizeof(uint16), MCXT_ALLOC_HUGE);
	places = palloc_extended(Max(1, members) * sizeof(uint32), MCXT_ALLOC_HUGE);
	MemoryContextSwitchTo(old);
	while (QvTidSetNext(&it, &tid))
	{
		uint32		place = QvTidMapFind(&map->map, &tid);

		if (place == QV_NOWHERE || IvfPlaceId(place) >= map->nids)
			continue;
		if (n % 4096 == 0)
			CHECK_FOR_INTERRUPTS();
		places[n++] = place;
		found->ends[IvfPlaceId(place)]++;
	}
	for (uint32 i = 0; i < map->nids; i++)
	{
		end += found->ends[i];
		found->ends[i] = end - found->ends[i];
	}
	for (Size i = 0; i < n; i++)
		found->slots[found->ends[IvfPlaceId(places[i])]++] = IvfPlaceSlot(places[i]);
	pfree(places);
	found->as_of = map->changes;
	return true;
}

bool
IvfKnowsMembers(IvfKnowledge *k, uint32 list, bool may_find)
{
	const IvfTidMap *map = map_for(k);
	const IvfKnownList *known;

	if (map == NULL)
		return false;
	known = &map->lists[list];
	if (known->learned == 0 || known->generation != k->handle->lists->refs[list].generation)
		return false;
	if (k->found.as_of == 0 && (!may_find || !sort_members(k, map)))
		return false;
	return known->learned <= k->found.as_of;
}

static uint32
first_member(const IvfMemberSlots *found, uint32 id)
{
	return id > 0 ? found->ends[id - 1] : 0;
}

bool
IvfKnowsNone(IvfKnowledge *k, uint32 list, BlockNumber *last)
{
	const IvfKnownList *known;

	if (!IvfKnowsMembers(k, list, false))
		return false;
	known = &(*k->handle->tid_map)->lists[list];
	*last = known->last;
	return first_member(&k->found, known->id) == k->found.ends[known->id];
}

uint32
IvfRowsToPassOver(IvfKnowledge *k, uint32 list)
{
	const IvfKnownList *known;
	BlockNumber last;
	Buffer		buf;
	bool		grown;

	if (!IvfKnowsNone(k, list, &last))
		return 0;
	known = &(*k->handle->tid_map)->lists[list];
	buf = IvfReadListPage(k->handle, last, list, known->generation, BUFFER_LOCK_SHARE);
	if (!BufferIsValid(buf))
		return 0;
	grown = BlockNumberIsValid(QvPageGetHeader(BufferGetPage(buf))->next) ||
		IvfPageList(BufferGetPage(buf))->number != known->number ||
		IvfPageList(BufferGetPage(buf))->count != known->count;
	UnlockReleaseBuffer(buf);
	return grown ? 0 : known->rows;
}

bool
IvfFindKnownMembers(const IvfKnowledge *k, uint32 list, const IvfListPageData *head, uint32 *members)
{
	const IvfLayout *layout = &k->handle->layout;
	const IvfKnownList *known = &(*k->handle->tid_map)->lists[list];
	uint32		first = head->number * layout->slots;

	if (head->number > known->number || (head->number == known->number && head->count != known->count))
		return false;
	memset(members, 0, layout->batches * sizeof(uint32));
	for (uint32 i = first_member(&k->found, known->id); i < k->found.ends[known->id]; i++)
	{
		uint32		slot = k->found.slots[i] - first;

		/* those of the pages before are large numbers */
		if (slot < head->count)
			members[slot / QV_BATCH] |= UINT32_C(1) << (slot % QV_BATCH);
	}
	return true;
}

/* ---- learning ---- */

/* What was known of the list when it was last read to its end. */
static const IvfKnownList *
known_before(const IvfLesson *lesson)
{
	const IvfKnownList *known = &lesson->map->lists[lesson->list];

	return known->learned > 0 ? known : NULL;
}

/* An id for a list that is another than before. */
static uint32
new_id(IvfTidMap *map)
{
	if (map->nids >= IVF_MAPPED_IDS)
	{
		/* those that are used up mean others from now on */
		memset(map->map.places, 0xff, (Size) map->map.blocks * map->map.lines * sizeof(uint32));
		forget_lists(map);
		map->nids = 0;
	}
	return map->nids++;
}

void
IvfBeginLesson(IvfKnowledge *k, uint32 list)
{
	uint32		generation = k->handle->lists->refs[list].generation;
	IvfLesson  *lesson = &k->lesson;
	IvfKnownList *known;

	memset(lesson, 0, sizeof(*lesson));
	lesson->map = map_for(k);
	if (lesson->map == NULL)
		return;
	known = &lesson->map->lists[list];
	if (!known->has_id || known->generation != generation)
	{
		uint32		id = new_id(lesson->map);

		*known = (IvfKnownList)
		{
			.has_id = true, .id = id, .generation = generation
		};
	}
	lesson->list = list;
	lesson->now = *known;
	lesson->now.last = InvalidBlockNumber;
	lesson->now.rows = 0;
}

bool
IvfLearnPage(IvfLesson *lesson, BlockNumber block, const IvfListPageData *head)
{
	const IvfKnownList *known;

	if (lesson->map == NULL)
		return false;
	lesson->now.last = block;
	lesson->now.number = head->number;
	lesson->now.count = head->count;
	lesson->now.rows += head->count;
	if (lesson->now.rows > IVF_MAPPED_SLOTS)
	{
		IvfDropLesson(lesson);
		return false;
	}
	known = known_before(lesson);
	return known == NULL || head->number > known->number ||
		(head->number == known->number && head->count != known->count);
}

void
IvfLearnRows(IvfLesson *lesson, uint32 slot, const ItemPointerData *tids, uint32 n)
{
	for (uint32 i = 0; i < n && lesson->map; i++)
	{
		if (!ItemPointerIsValid(&tids[i]))
			continue;
		/* of a block that is new */
		if (ItemPointerGetBlockNumberNoCheck(&tids[i]) >= lesson->map->map.blocks)
			IvfDropLesson(lesson);
		else if (!QvTidMapPut(&lesson->map->map, IvfPlace(lesson->now.id, slot + i), &tids[i]))
		{
			drop_places(lesson->map);
			IvfDropLesson(lesson);
		}
	}
}

void
IvfEndLesson(IvfLesson *lesson)
{
	IvfTidMap  *map = lesson->map;
	const IvfKnownList *known;

	if (map == NULL || !BlockNumberIsValid(lesson->now.last))
		return;
	known = known_before(lesson);
	if (known && known->number == lesson->now.number && known->count == lesson->now.count)
		return;
	map->changes = lesson->now.learned = ++last_change;
	map->lists[lesson->list] = lesson->now;
}
