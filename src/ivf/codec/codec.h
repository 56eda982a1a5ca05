/*
 * codec.h
 *		How an index of posting lists keeps values: what depends on it, as a table
 *		of functions.
 *
 * There are two, coded.c and plain.c; an index's is in its layout.  Functions are
 * called for a row, a page or an array of centroids, never for each distance of a
 * scan.
 */
#ifndef QV_IVF_CODEC_CODEC_H
#define QV_IVF_CODEC_CODEC_H

#include "ivf/codec/format.h"
#include "space/query.h"

typedef struct IvfQuery
{
	QvSpaceQuery base;			/* coded */
	const void *value;			/* plain: the value itself */
} IvfQuery;

/* A list and how far it is. */
typedef struct IvfNear
{
	float		distance;		/* of its centroid: see IvfMeasure */
	uint32		list;
} IvfNear;

/* Centroids in memory. */
typedef struct IvfCentroids
{
	Size		stride;			/* bytes from one to the next */
	uint8	   *codes;			/* coded: a byte a coordinate; plain: values */
	float	   *scale;			/* coded: of the codes */
	float	   *norm2;			/* coded: of the decoded centroids */
} IvfCentroids;

/* What the distance of a centroid is for. */
typedef enum IvfMeasure
{
	IVF_TO_SEARCH,				/* squared distance, or negative inner product */
	IVF_TO_ASSIGN				/* a row's: inner product by the angle, or
								 * lists of long rows would draw everything */
} IvfMeasure;

/* A row as it is put into a list. */
typedef struct IvfRow
{
	ItemPointerData tid;
	float		a;				/* coded: factors of the one-bit code; else 0 */
	float		b;
	float		scale;			/* coded: as in IvfRecordData */
	float		add;
	float		error;
	const uint8 *code;			/* coded: packed; plain: the value */
	const uint8 *scan;			/* coded: one-bit code of scan_bits */
	const uint8 *sketch;		/* IvfSketchData but for the heap TID, or NULL */
} IvfRow;

/* Let a row refer to its codes, one after the other, or its value. */
static inline void
IvfSetRowData(const IvfLayout *layout, IvfRow *row, const uint8 *data)
{
	row->code = data;
	row->scan = data + layout->code_bytes;
	row->sketch = layout->sketch_bytes > 0 ? row->scan + layout->scan_bits / 8 : NULL;
}

static inline bool
IvfTidPossible(ItemPointer tid)
{
	return BlockNumberIsValid(ItemPointerGetBlockNumberNoCheck(tid)) &&
		OffsetNumberIsValid(ItemPointerGetOffsetNumberNoCheck(tid));
}

/* Room for what a row refers to, and to work in. */
typedef struct IvfRowRoom
{
	uint8	   *data;			/* data_bytes of the layout */
	float	   *scratch;		/* 2 * width */
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
	/* Sizes: see layout.h. */
	void		(*choose) (IvfMetaData *meta);
	bool		(*derive) (IvfLayout *layout, const IvfMetaData *meta);

	/*
	 * The coordinates of a value in the space, not centered, in out[width];
	 * scratch has as much room.
	 */
	void		(*coordinates) (const QvSpace *space, const void *value, float *scratch,
								float *out);

	/*
	 * Make a value (NULL: of any direction), or a row read back, ready to be
	 * looked for, with a look-up table over nbits coordinates (0: none).  The
	 * query may refer to the value or the row.  Memory from
	 * CurrentMemoryContext.
	 */
	void		(*prepare) (const struct IvfHandle *handle, const void *value, uint32 nbits,
							IvfQuery *query);
	void		(*prepare_row) (const struct IvfHandle *handle, const float *centroid,
								const IvfRow *row, uint32 nbits, IvfQuery *query);

	/*
	 * The code of a centroid[width] (centered) in an entry, which is zero
	 * there; taken out of one, into place i, false when it is damaged;
	 * decoded into out[width].  A plain row does not depend on its centroid,
	 * which is not decoded.
	 */
	void		(*encode_centroid) (const IvfLayout *layout, const QvOpclassInfo *opclass,
									const float *centroid, IvfEntry entry);
	bool		(*take_centroid) (const IvfLayout *layout, const QvOpclassInfo *opclass,
								  IvfEntry entry, IvfCentroids *centroids, uint32 i);
	void		(*decode_centroid) (const IvfLayout *layout, const IvfCentroids *centroids,
									uint32 i, float *out);

	/*
	 * What is wrong with an entry's centroid, a format with the list's
	 * number; NULL when it is sound.
	 */
	const char *(*check_centroid) (const IvfLayout *layout, const QvOpclassInfo *opclass,
								   IvfEntry entry);

	/* Set the distances of n centroids. */
	void		(*measure) (const struct IvfHandle *handle, const IvfQuery *query,
							const IvfCentroids *centroids, IvfMeasure what,
							IvfNear *near, uint32 n);

	/*
	 * Encode a prepared value for a list by its decoded centroid: fills in
	 * all but the heap TID.  And back: the row's coordinates, centered, in
	 * out[width].
	 */
	void		(*encode) (const IvfLayout *layout, const float *centroid,
						   const IvfQuery *query, const IvfRowRoom *room, IvfRow *row);
	void		(*decode) (const struct IvfHandle *handle, const float *centroid,
						   const IvfRow *row, float *out);

	/*
	 * Slots of a page of a list: all empty; put a row into the next; make
	 * them fast to scan rather than cheap to add to (not plain).
	 */
	void		(*clear_slots) (const IvfLayout *layout, Page page);
	void		(*put_slot) (const IvfLayout *layout, Page page, uint32 slot, const IvfRow *row);
	void		(*pack_slots) (const IvfLayout *layout, Page page);

	/* Put its record, or its sketch, into a place on its page. */
	void		(*put_item) (const IvfLayout *layout, IvfItemKind which, Page page,
							 uint32 place, const IvfRow *row);

	/*
	 * A slot's heap TID, invalid when it is empty or dead; records: its page
	 * of them.
	 */
	ItemPointer (*slot_tid) (const IvfLayout *layout, Page page, uint32 slot, Page records);
	void		(*mark_dead) (const IvfLayout *layout, Page page, uint32 slot, Page records);

	/*
	 * Read a live slot back.  The row refers to the images, and to scan,
	 * which has room for a one-bit code.
	 */
	void		(*read) (const struct IvfHandle *handle, const IvfPageImages *images,
						 uint32 slot, uint8 *scan, IvfRow *row);

	/*
	 * Verify a slot of a page whose head is sound; returns whether it is
	 * live.
	 */
	bool		(*check_slot) (const struct IvfHandle *handle, const IvfPageImages *images,
							   uint32 slot);
};

#endif							/* QV_IVF_CODEC_CODEC_H */
