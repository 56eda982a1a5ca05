/*
 * tid_map.h
 *		Where in its lists an index has the rows of the table, as far as this backend has
 *		looked them up.
 *
 * A search for the members of a set looks up the heap TIDs of all rows of the lists that it reads
 * before it has found enough.  What it learns so is kept: the next one knows which
 * rows of a list are members, and passes over a list that has none.  Nobody tells a backend of
 * rows that come or go.  But lists only grow at their ends, and a list that has moved is of
 * another generation: so its last page tells whether all of its rows are known.  A slot stays
 * what it was, or is dead.  So what the map says of a row that is gone, or is somebody else's now,
 * finds a slot that is dead; and the other is in a slot that is not known.
 */
#ifndef QV_IVF_SEARCH_TID_MAP_H
#define QV_IVF_SEARCH_TID_MAP_H

#include "ivf/codec/handle.h"
#include "space/tidmap.h"
#include "space/tidset.h"

/* A list whose rows are known, up to a slot. */
typedef struct IvfKnownList
{
	uint64		learned;		/* IvfTidMap.changes when it was; 0: not */
	bool		has_id;
	uint32		id;				/* in the map, of the list in this generation */
	uint32		generation;
	BlockNumber last;			/* its last page then, */
	uint32		number;			/* that page's number, */
	uint32		count;			/* and slots in use on it */
	uint32		rows;			/* slots in use in all */
} IvfKnownList;

typedef struct IvfTidMap
{
	QvRelCachePart part;
	QvTidMap	map;			/* of IvfPlace; no places at all: they would
								 * take too much memory */
	uint32		nlists;
	IvfKnownList *lists;
	uint32		nids;			/* given out */
	uint64		changes;		/* grows whenever a list becomes known; no two
								 * maps have the same */
} IvfTidMap;

/*
 * Places in the map: the id of a list, and a slot of it.  When a list has moved, it has another id,
 * and what the map says by the old one of rows that are gone finds nothing.
 */
#define IVF_MAPPED_IDS PG_UINT16_MAX
#define IVF_MAPPED_SLOTS PG_UINT16_MAX
#define IvfPlace(id, slot) ((id) << 16 | (slot))
#define IvfPlaceId(place) ((place) >> 16)
#define IvfPlaceSlot(place) ((uint16) (place))

/* The members of a set, by lists. */
typedef struct IvfMemberSlots
{
	uint64		as_of;			/* IvfTidMap.changes; 0: not looked for yet */
	uint32	   *ends;			/* in slots, of those of each id */
	uint16	   *slots;
} IvfMemberSlots;

/* What is being learned of a list, which is read from its first page on. */
typedef struct IvfLesson
{
	IvfTidMap  *map;			/* NULL: nothing */
	uint32		list;
	IvfKnownList now;			/* what will be known */
} IvfLesson;

/* What a search for the members of a set knows, and learns. */
typedef struct IvfKnowledge
{
	IvfHandle  *handle;
	const QvTidSet *only;		/* NULL: there is no set */
	MemoryContext context;		/* of the search */
	IvfMemberSlots found;
	IvfLesson	lesson;
} IvfKnowledge;

/* Begin a search, in CurrentMemoryContext. */
extern void IvfBeginKnowing(IvfKnowledge *k, IvfHandle *handle, const QvTidSet *only);

/*
 * Is it known which rows of the list are members, but for those that have come since?  To find them
 * takes some time for each member once for a search: not before may_find.
 */
extern bool IvfKnowsMembers(IvfKnowledge *k, uint32 list, bool may_find);

/* Is that known, and has it none?  Then its last page is where rows come to. */
extern bool IvfKnowsNone(IvfKnowledge *k, uint32 list, BlockNumber *last);

/* How many rows such a list has, none of them a member; 0 when rows have come since. */
extern uint32 IvfRowsToPassOver(IvfKnowledge *k, uint32 list);

/*
 * Set a bit in members, a word for each batch, for those of the page of a list of which they are
 * known; false when the page has rows that have come since.
 */
extern bool IvfFindKnownMembers(const IvfKnowledge *k, uint32 list, const IvfListPageData *head,
								uint32 *members);

/*
 * Learn about a list: begin; note a page that is to be looked up, and say whether its rows
 * are to be noted; note these, from a slot on (invalid ones are dead); and when all were, keep it.
 */
extern void IvfBeginLesson(IvfKnowledge *k, uint32 list);
extern bool IvfLearnPage(IvfLesson *lesson, BlockNumber block, const IvfListPageData *head);
extern void IvfLearnRows(IvfLesson *lesson, uint32 slot, const ItemPointerData *tids, uint32 n);
extern void IvfEndLesson(IvfLesson *lesson);

/* Stop learning: not all rows of the list will have been noted. */
static inline void
IvfDropLesson(IvfLesson *lesson)
{
	lesson->map = NULL;
}

#endif							/* QV_IVF_SEARCH_TID_MAP_H */
