/*
 * cache.h
 *		What a backend keeps of an index of posting lists between queries: the
 *		mean, the rotation, the directory with all centroids, and where its
 *		pages were last found in shared buffers.
 */
#ifndef QV_IVF_CACHE_H
#define QV_IVF_CACHE_H

#include "ivf/format.h"
#include "space/relcache.h"

/* Where a list is. */
typedef struct IvfListRef
{
	BlockNumber head;
	BlockNumber tail;
	BlockNumber directory;		/* page of the directory with its entry */
	uint32		generation;
	uint32		parent;
	uint32		rows;			/* as of the last build, split or vacuum */
	uint32		refused;		/* to be split, when it had so many rows */
} IvfListRef;

/*
 * The directory.  Centroids are kept as decoded bytes (coded) or values
 * (plain), stride bytes apart; past EXACT_LISTS of route.c one-bit codes of them
 * choose those that are looked at, and past its FLAT_LISTS groups of lists
 * choose those codes.
 */
typedef struct IvfLists
{
	QvRelCachePart part;
	uint32		version;		/* IvfMetaData.version_lists of when it was read */
	uint32		count;
	uint32		allocated;		/* lists that there is room for */
	bool		broken;			/* an update ended half way: read it again */
	Size		stride;
	uint8	   *codes;			/* count x stride */
	float	   *scale;			/* of the codes */
	float	   *norm2;
	IvfListRef *refs;

	/* one-bit codes, in order of the groups: route.c */
	uint32		ngroups;
	uint32	   *group_start;	/* ngroups + 1: first block of each */
	float	   *group_center;	/* ngroups x pdim; NULL: all are swept */
	uint32		nbatches;
	uint32		batch_room;		/* blocks that there is room for */
	uint32	   *batch_list;		/* nblocks x 32: list numbers, or IVF_NO_LIST */
	float	   *batch_factor;	/* likewise: of the code's inner product */
	uint8	   *batch_codes;
} IvfLists;

#define IVF_NO_LIST UINT32_MAX

/* What scans of this backend learn for the next ones: guesses only. */
typedef struct IvfScanStats
{
	uint32		rows;			/* that scans took lately; 0: not known */
	uint32		returned;		/* of these, to the user; 0: not known */
	uint32		sketched;		/* rows taken by scans by sketches */
	float		typical;		/* rows that these take on average */
	uint32		cold;			/* scans to come that should read ahead */
} IvfScanStats;

typedef struct IvfHandle
{
	Relation	index;
	QvSpace		space;
	IvfMetaData meta;			/* as read when the handle was opened */
	IvfLayout	layout;
	IvfLists   *lists;
	QvBufferHints *hints;
	BufferAccessStrategy record_strategy;	/* or NULL */
	struct IvfScanStats *stats;
	struct IvfRelCache *entry;
	MemoryContextCallback release;
} IvfHandle;

/*
 * Open an index: reads the metapage (always) and the rest when it is not
 * cached or has changed.  The handle lives in CurrentMemoryContext and is
 * released with it.  Raises ERRCODE_INDEX_CORRUPTED, or the request to REINDEX
 * when the index was built by pgvector.
 */
extern IvfHandle *IvfOpen(Relation index, const QvOpclassInfo *opclass);

/* Have the directory as it is now.  False when it is what it was. */
extern bool IvfRefresh(IvfHandle *handle);

/* Read and check the metapage alone. */
extern void IvfReadMeta(Relation index, IvfMetaData *meta);

/* Take the metapage of a page in hand, checked: see IvfReadMeta. */
extern IvfMetaData *IvfPageMeta(Relation index, Page page);

#endif							/* QV_IVF_CACHE_H */
