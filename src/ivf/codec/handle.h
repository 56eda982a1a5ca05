/*
 * handle.h
 *		An open index of posting lists, and its directory in memory.
 */
#ifndef QV_IVF_CODEC_HANDLE_H
#define QV_IVF_CODEC_HANDLE_H

#include "ivf/codec/codec.h"
#include "rows/rows.h"
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

/* Lists with the same parent. */
typedef struct IvfListGroup
{
	uint32		members;
	uint32		batch;			/* its first one */
	uint32		room;			/* batches */
	bool		changed;		/* it has other centroids than its codes */
} IvfListGroup;

/*
 * The directory.  When there are many lists, one-bit codes of the centroids choose
 * those whose own codes are measured, and groups of lists choose those one-bit
 * codes: see centroid_codes.h.
 */
typedef struct IvfLists
{
	QvRelCachePart part;
	uint32		version;		/* IvfMetaData.version_lists of when it was
								 * read */
	uint32		count;
	uint32		allocated;		/* lists that there is room for */
	bool		broken;			/* an update ended half way: read it again */
	IvfCentroids centroids;
	IvfListRef *refs;

	/* one-bit codes, those of a group together */
	uint32		ngroups;		/* 0: all are swept */
	IvfListGroup *groups;
	float	   *group_center;	/* ngroups x pdim: mean of its centroids */
	uint32		nbatches;
	uint32		batch_room;		/* batches that there is room for */
	uint32	   *batch_list;		/* nbatches x 32: list numbers, or IVF_NO_LIST */
	float	   *batch_factor;	/* likewise: of the code's inner product */
	uint8	   *batch_codes;
} IvfLists;

#define IVF_NO_LIST UINT32_MAX

/*
 * Scan statistics of an index, kept by each backend for itself: whether its scans waited
 * for the disk.  What a scan finds does not depend on them.
 */
typedef struct IvfScanStats
{
	uint32		cold;			/* scans to come that should read ahead */
} IvfScanStats;

typedef struct IvfHandle
{
	Relation	index;
	bool		building;		/* its pages are written without WAL */
	QvSpace		space;
	IvfMetaData meta;			/* as read when the handle was opened */
	IvfLayout	layout;
	IvfLists   *lists;
	QvRows		rows;			/* row pages, */
	bool		has_rows;		/* if there are any */
	QvBufferHints *hints;
	BufferAccessStrategy strategy;	/* for pages of lists, or NULL */
	BufferAccessStrategy record_strategy;	/* and for those of records */
	IvfScanStats *stats;
	struct IvfTidMap **tid_map; /* what is kept of the index: NULL, none yet */
	QvRelCacheEntry *cached;	/* and with what */
	struct IvfRelCache *entry;
	MemoryContextCallback release;
} IvfHandle;

/* The centroid of a list, as rows are encoded for it: see IvfCodec.decode_centroid. */
static inline void
IvfDecodeCentroid(const IvfHandle *handle, uint32 list, float *out)
{
	handle->layout.codec->decode_centroid(&handle->layout, &handle->lists->centroids, list, out);
}

#endif							/* QV_IVF_CODEC_HANDLE_H */
