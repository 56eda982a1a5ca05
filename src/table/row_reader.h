/*
 * row_reader.h
 *		The table's rows that an index proposes, and their exact distances.
 */
#ifndef QV_TABLE_ROW_READER_H
#define QV_TABLE_ROW_READER_H

#include "postgres.h"

#include "access/tableam.h"
#include "executor/tuptable.h"
#include "nodes/execnodes.h"
#include "pages/read.h"
#include "table/toast_reader.h"
#include "types/type_ops.h"
#include "utils/snapshot.h"

typedef struct RowReader
{
	const QvOpclassInfo *opclass;
	TupleTableSlot *slot;		/* the row fetched last */
	Relation	index;
	BlockNumber nblocks;		/* blocks of the table when it was last asked */
	IndexFetchTableData *fetch;
	QvBufferHints *hints;		/* hints of the table's pages; may be NULL */
	AttrNumber	attribute;		/* indexed column, or 0 for an expression */
	IndexInfo  *info;			/* for an expression */
	EState	   *estate;
	bool		asked_toast;	/* is it known whether toast can be had? */
	ToastReader *toast;
	MemoryContext context;
	MemoryContext row_context;	/* a detoasted value, an expression's result */
	int64		fetched;		/* rows fetched */
	int64		measured;		/* distances computed */
} RowReader;

extern RowReader *RowReaderBegin(Relation heap, Relation index, const QvOpclassInfo *opclass);

/*
 * Sets the buffer hints of the table (may be NULL).  They must live until the reader
 * ends, or until other hints are set.
 */
extern void RowReaderUseHints(RowReader *reader, QvBufferHints *hints);

/*
 * Asks for the page of a row that will be fetched soon to be read in the background.  value: it
 * will be measured.  Then, if that page is in shared buffers, asks for those of its out-of-line
 * value.
 */
extern void RowAskFor(RowReader *reader, const ItemPointerData *tid, bool value);

/* Is the heap TID not beyond the end of the table? */
extern bool RowMayBe(RowReader *reader, ItemPointer tid);

/*
 * Fetches the visible version of the row that an index calls tid into the slot.  Returns
 * false if there is none, or if tid cannot be one because it is from a damaged page.
 */
extern bool RowFetch(RowReader *reader, ItemPointer tid, Snapshot snapshot);

typedef enum RowMeasure
{
	ROW_MEASURED,
	ROW_NULL,					/* there is no value, */
	ROW_ZERO,					/* or it is zero under cosine: it is in no
								 * index */
	ROW_OTHER					/* of other dimensions than the query */
} RowMeasure;

/*
 * The distance of the row fetched from query (detoasted; NULL: 0), as the operator gives it:
 * infinity and NaN too.
 */
extern RowMeasure RowDistance(RowReader *reader, const void *query, double *distance);

/*
 * Returns the detoasted value of the fetched row, valid until the next row is fetched.
 * Returns NULL if no index has the row.
 */
extern const void *RowValue(RowReader *reader);

/*
 * Releases the pages of out-of-line values, until the next value.  RowReleasePages() also
 * releases those of rows.
 */
extern void RowReleaseValues(RowReader *reader);
extern void RowReleasePages(RowReader *reader);

extern void RowReaderEnd(RowReader *reader);

#endif							/* QV_TABLE_ROW_READER_H */
