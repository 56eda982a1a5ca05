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
	BlockNumber nblocks;		/* of the table, when last asked */
	IndexFetchTableData *fetch;
	QvBufferHints *hints;		/* where its pages were found; may be NULL */
	AttrNumber	attribute;		/* indexed column, or 0 for an expression */
	IndexInfo  *info;			/* for an expression */
	EState	   *estate;
	bool		asked_toast;	/* is known whether there is a reader of
								 * out-of-line values: */
	ToastReader *toast;
	MemoryContext context;
	MemoryContext row_context;	/* a detoasted value, an expression's result */
	int64		fetched;		/* rows so far */
	int64		measured;		/* distances */
} RowReader;

extern RowReader *RowReaderBegin(Relation heap, Relation index, const QvOpclassInfo *opclass);

/* Where pages of the table were found (may be NULL), until the reader ends or is told anew. */
extern void RowReaderUseHints(RowReader *reader, QvBufferHints *hints);

/* Is that not beyond the end of the table? */
extern bool RowMayBe(RowReader *reader, ItemPointer tid);

/*
 * Fetch the visible version of the row that an index calls tid into the slot.  False
 * when there is none, or tid cannot be one (it is of a damaged page).
 */
extern bool RowFetch(RowReader *reader, ItemPointer tid, Snapshot snapshot);

/*
 * The distance of the row fetched from query (detoasted; NULL: 0), infinity for what is
 * no number.  False when the row is in no index (NULL, zero under cosine, other
 * dimensions than the query's).
 */
extern bool RowDistance(RowReader *reader, const void *query, double *distance);

/*
 * The value of the row fetched, detoasted, valid until the next one is fetched; NULL when the
 * row is in no index.
 */
extern const void *RowValue(RowReader *reader);

/* Let go of the out-of-line values' pages, until the next one; and of the rows' too. */
extern void RowReleaseValues(RowReader *reader);
extern void RowReleasePages(RowReader *reader);

extern void RowReaderEnd(RowReader *reader);

#endif							/* QV_TABLE_ROW_READER_H */
