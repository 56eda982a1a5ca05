/*
 * codec.h
 *		The functions that depend on how an index of posting lists keeps values, as
 *		a table.
 *
 * There are two tables, in coded.c and plain.c.  The layout of an index names its
 * table.  Functions are called for a row, a page or an array of centroids, and never
 * for each distance of a scan.
 */
#ifndef QV_IVF_CODEC_CODEC_H
#define QV_IVF_CODEC_CODEC_H

#include "ivf/codec/format.h"
#include "space/query.h"

typedef struct IvfQuery
{
	QvSpaceQuery base;			/* coded: the vector, made ready */
	const void *value;			/* plain: the value itself */
} IvfQuery;

/* A list and the distance of its centroid. */
typedef struct IvfNear
{
	float		distance;		/* see IvfMeasure */
	uint32		list;
} IvfNear;

/* Centroids in memory. */
typedef struct IvfCentroids
{
	Size		stride;			/* bytes from one to the next, in codes */
	uint8	   *codes;			/* coded: a byte per coordinate; plain: values */
	float	   *scale;			/* coded: of the codes */
	float	   *norm2;			/* coded: |decoded centroid|^2 */
} IvfCentroids;

/* What the distance of a centroid is for. */
typedef enum IvfMeasure
{
	IVF_TO_SEARCH,				/* squared distance, or negative inner product */
	IVF_TO_ASSIGN				/* choosing a row's list: in inner product
								 * space by the angle, since lists of long
								 * rows would draw all rows otherwise */
} IvfMeasure;

/* A row as it is put into a list. */
typedef struct IvfRow
{
	ItemPointerData tid;
	float		a;				/* factors of the one-bit code; plain: 0 */
	float		b;
	float		scale;			/* coded: as in IvfRecordData */
	float		add;
	float		error;
	const uint8 *code;			/* coded: packed code; plain: the value */
	const uint8 *scan;			/* coded: one-bit code of scan_bits */
	const uint8 *sketch;		/* IvfSketchData but for the heap TID; NULL:
								 * none */
} IvfRow;

/* Lets a row refer to its codes, which lie one after the other, or to its value. */
static inline void
IvfSetRowData(const IvfLayout *layout, IvfRow *row, const uint8 *data)
{
	row->code = data;
	row->scan = data + layout->code_bytes;
	row->sketch = layout->sketch_bytes > 0 ? row->scan + layout->scan_bits / 8 : NULL;
}

/* Returns whether a heap TID names a block and a line. */
static inline bool
IvfTidPossible(ItemPointer tid)
{
	return BlockNumberIsValid(ItemPointerGetBlockNumberNoCheck(tid)) &&
		OffsetNumberIsValid(ItemPointerGetOffsetNumberNoCheck(tid));
}

/* Memory for encoding a row. */
typedef struct IvfRowRoom
{
	uint8	   *data;			/* what the row refers to: data_bytes of the
								 * layout */
	float	   *scratch;		/* to work in: 2 * width */
} IvfRowRoom;

/* Images of a page of a list, and of the pages of records and sketches read last. */
typedef struct IvfPageImages
{
	Page		page;
	BlockNumber block;
	Page		items[IVF_ITEM_KINDS];
	BlockNumber item_blocks[IVF_ITEM_KINDS];
} IvfPageImages;

struct IvfHandle;

struct IvfCodec
{
	/* Choose sizes, and derive the layout from them: see layout.h. */
	void		(*choose) (IvfMetaData *meta);
	bool		(*derive) (IvfLayout *layout, const IvfMetaData *meta);

	/*
	 * Puts the coordinates of a value in the space, not centered, into
	 * out[width].  scratch has as much room.
	 */
	void		(*coordinates) (const QvSpace *space, const void *value, float *scratch,
								float *out);

	/*
	 * Make a query of a value, or of a row that was read back.  nbits is the
	 * number of coordinates in its look-up table; 0: no table.  The value
	 * NULL gives a query of any direction.  The query may refer to the value
	 * or the row.  Memory is from CurrentMemoryContext.
	 */
	void		(*prepare) (const struct IvfHandle *handle, const void *value, uint32 nbits,
							IvfQuery *query);
	void		(*prepare_row) (const struct IvfHandle *handle, const float *centroid,
								const IvfRow *row, uint32 nbits, IvfQuery *query);

	/*
	 * Encode a centroid[width], which is centered, into an entry that has
	 * zeros there.  Take the code out of an entry, into place i; false if it
	 * is damaged.  Decode it into out[width].  A plain row does not depend on
	 * its centroid, which is not decoded.
	 */
	void		(*encode_centroid) (const IvfLayout *layout, const QvOpclassInfo *opclass,
									const float *centroid, IvfEntry entry);
	bool		(*take_centroid) (const IvfLayout *layout, const QvOpclassInfo *opclass,
								  IvfEntry entry, IvfCentroids *centroids, uint32 i);
	void		(*decode_centroid) (const IvfLayout *layout, const IvfCentroids *centroids,
									uint32 i, float *out);

	/*
	 * Returns what is wrong with an entry's centroid, as a format for the
	 * list's number; NULL if nothing is.
	 */
	const char *(*check_centroid) (const IvfLayout *layout, const QvOpclassInfo *opclass,
								   IvfEntry entry);

	/* Sets the distances of n centroids, whose numbers are in near[]. */
	void		(*measure) (const struct IvfHandle *handle, const IvfQuery *query,
							const IvfCentroids *centroids, IvfMeasure what,
							IvfNear *near, uint32 n);

	/*
	 * Encode a query as a row of a list, by the list's decoded centroid: all
	 * but the heap TID is filled in.  Decode a row: its coordinates,
	 * centered, are put into out[width].
	 */
	void		(*encode) (const IvfLayout *layout, const float *centroid,
						   const IvfQuery *query, const IvfRowRoom *room, IvfRow *row);
	void		(*decode) (const struct IvfHandle *handle, const float *centroid,
						   const IvfRow *row, float *out);

	/*
	 * Returns QvSpaceNorm2() of a row that was read back (NULL in a plain
	 * index).
	 */
	float		(*norm2) (const struct IvfHandle *handle, const float *centroid, const IvfRow *row);

	/*
	 * Change the slots of a page of a list: make all of them empty; put a row
	 * into the next one; make them fast to scan rather than cheap to add to
	 * (NULL in a plain index).
	 */
	void		(*clear_slots) (const IvfLayout *layout, Page page);
	void		(*put_slot) (const IvfLayout *layout, Page page, uint32 slot, const IvfRow *row);
	void		(*pack_slots) (const IvfLayout *layout, Page page);

	/* Puts a row's record, or its sketch, into a place on its page. */
	void		(*put_item) (const IvfLayout *layout, IvfItemKind which, Page page,
							 uint32 place, const IvfRow *row);

	/*
	 * Return a slot's heap TID, invalid if the slot is empty or dead; mark
	 * the slot dead.  records is the slot's page of records.
	 */
	ItemPointer (*slot_tid) (const IvfLayout *layout, Page page, uint32 slot, Page records);
	void		(*mark_dead) (const IvfLayout *layout, Page page, uint32 slot, Page records);

	/*
	 * Reads a live slot back.  The row refers to the images, and to scan,
	 * which has room for a one-bit code.
	 */
	void		(*read) (const struct IvfHandle *handle, const IvfPageImages *images,
						 uint32 slot, uint8 *scan, IvfRow *row);

	/*
	 * Verifies a slot of a page whose head is sound.  Returns whether the
	 * slot is live.
	 */
	bool		(*check_slot) (const struct IvfHandle *handle, const IvfPageImages *images,
							   uint32 slot);
};

#endif							/* QV_IVF_CODEC_CODEC_H */
