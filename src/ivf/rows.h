/*
 * rows.h
 *		Rows of posting lists in memory, and the pages of a list made of them.
 */
#ifndef QV_IVF_ROWS_H
#define QV_IVF_ROWS_H

#include "ivf/route.h"
#include "pages/write.h"

/* A row as it is put into a list. */
typedef struct IvfRow
{
	ItemPointerData tid;
	float		a;				/* coded: factors of the one-bit code */
	float		b;
	float		scale;			/* coded: as in IvfRecordData */
	float		add;
	float		error;
	const uint8 *code;			/* coded: packed; plain: the value */
	const uint8 *scan;			/* coded: one-bit code of scan_bits */
	const uint8 *sketch;		/* IvfSketchData but for the heap TID, or NULL */
} IvfRow;

/*
 * Code a vector for a list: fills in all but the heap TID.  x is rotated
 * (and, in L2 space, centered); what the row refers to is written to data, of
 * IvfRowBytes(); scratch has 3 * pdim floats.
 */
extern void IvfEncode(const IvfHandle *handle, uint32 list, const float *x,
					  uint8 *data, float *scratch, IvfRow *row);

/* The code, the one-bit code and the sketch of a row, one after the other. */
#define IvfRowBytes(layout) \
	((layout)->code_bytes + (layout)->scan_bits / 8 + (layout)->sketch_bytes)

/* Let a row refer to them. */
extern void IvfSetRowData(const IvfLayout *layout, IvfRow *row, const uint8 *data);

/* The centroid of a list, decoded into out[pdim]. */
extern void IvfDecodeCentroid(const IvfHandle *handle, uint32 list, float *out);

/* The vector of a record of a list, decoded, into out[pdim]. */
extern void IvfDecodeRecord(const IvfHandle *handle, const float *centroid,
							const IvfRecordData *record, uint8 *scratch, float *out);

/* Put a row into a slot of a page of a list. */
extern void IvfPutSlot(const IvfLayout *layout, Page page, uint32 slot, const IvfRow *row);

/* Put its record, or its sketch, into a place on its page. */
extern void IvfPutItem(const IvfLayout *layout, IvfItemKind which, Page page, uint32 place,
					   const IvfRow *row);

/* Fill in the head of a page of records or sketches of a list. */
extern void IvfInitItemPage(Page page, uint32 list, uint32 generation, uint32 number);

/* Set the scales of the factors of a page, from rows that will be on it. */
extern void IvfSetScales(IvfListPage head, const IvfRow *rows, int nrows);

/* Mark all slots of a page empty. */
extern void IvfClearSlots(const IvfLayout *layout, Page page);

/* Is a slot in use?  Dead ones are not. */
extern bool IvfSlotLive(const IvfLayout *layout, Page page, uint32 slot);

/* ---- writing a whole list ---- */

typedef struct IvfWriter IvfWriter;

/*
 * Make the pages of a list; nothing leads to them yet.  building: without WAL.
 * Uses memory for a few tens of pages.
 */
extern IvfWriter *IvfWriterBegin(IvfHandle *handle, bool building);
extern void IvfWriterStart(IvfWriter *writer, uint32 list, uint32 generation);
extern void IvfWriterAdd(IvfWriter *writer, const IvfRow *row);

/* Leaves head and tail invalid when no row was added. */
extern void IvfWriterFinish(IvfWriter *writer, BlockNumber *head, BlockNumber *tail,
							uint32 *rows);
extern void IvfWriterEnd(IvfWriter *writer);

#endif							/* QV_IVF_ROWS_H */
