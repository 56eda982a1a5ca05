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
	uint32		rows;			/* as of the last build, split or compaction */
	uint32		refused;		/* rows it had when it was to be split; 0:
								 * never */
} IvfListRef;

/* A group: lists with the same parent. */
typedef struct IvfListGroup
{
	uint32		members;		/* lists in it */
	uint32		batch;			/* number of its first batch of codes */
	uint32		room;			/* batches that it has room in */
	bool		changed;		/* its codes are not those of its centroids */
} IvfListGroup;

/*
 * The directory in memory.  If there are many lists, one-bit codes of the centroids choose
 * the centroids whose own codes are measured.  If there are very many, groups of lists choose
 * the one-bit codes that are scored: see page/centroid_codes.h.
 */
typedef struct IvfLists
{
	QvRelCachePart part;
	uint32		version;		/* IvfMetaData.version_lists when it was read */
	uint32		count;			/* lists */
	uint32		filled;			/* of these, lists that have a page */
	uint32		allocated;		/* lists that there is room for */
	bool		broken;			/* an update ended half way: read it again */
	IvfCentroids centroids;
	IvfListRef *refs;

	/* one-bit codes, the codes of a group together */
	uint32		ngroups;		/* 0: all codes are scored */
	IvfListGroup *groups;
	float	   *group_center;	/* ngroups x pdim: mean of the centroids */
	uint32		nbatches;		/* in use; 0: no codes */
	uint32		batch_room;		/* batches that there is room for */
	uint32	   *batch_list;		/* nbatches x 32: list numbers, or IVF_NO_LIST */
	float	   *batch_factor;	/* nbatches x 32: factors of inner products */
	uint8	   *batch_codes;
} IvfLists;

#define IVF_NO_LIST UINT32_MAX

/* Rows of all lists, roughly: inserts count the rows of a list when it is split. */
static inline double
IvfListRows(const IvfLists *lists)
{
	double		rows = 0;

	for (uint32 i = 0; i < lists->count; i++)
		rows += lists->refs[i].rows;
	return rows;
}

typedef struct IvfHandle
{
	Relation	index;
	bool		building;		/* its pages are written without WAL */
	QvSpace		space;
	IvfMetaData meta;			/* as read when the handle was opened */
	IvfLayout	layout;
	IvfLists   *lists;			/* the cached directory */
	QvRows		rows;			/* row pages: see QvRowsExist() */
	QvBufferHints *hints;
	BufferAccessStrategy strategy;	/* for pages of codes and sketches, or
									 * NULL */
	BufferAccessStrategy record_strategy;	/* for pages of records, or NULL */
	QvRelCacheUse cached;		/* its cache entry */
} IvfHandle;

/* Decodes the centroid of a list, as rows are encoded for it: see IvfCodec.decode_centroid. */
static inline void
IvfDecodeCentroid(const IvfHandle *handle, uint32 list, float *out)
{
	handle->layout.codec->decode_centroid(&handle->layout, &handle->lists->centroids, list, out);
}

#endif							/* QV_IVF_CODEC_HANDLE_H */
