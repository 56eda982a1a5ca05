/*
 * values.h
 *		The table's values of rows that are in an index, for an insert that codes these
 *		rows again (src/ivf/update/README.md, "Rows from the table").
 */
#ifndef QV_TABLE_VALUES_H
#define QV_TABLE_VALUES_H

#include "postgres.h"

#include "table/row_reader.h"
#include "types/type_ops.h"

typedef struct TableValues
{
	Relation	heap;
	Relation	index;
	const QvOpclassInfo *opclass;
	bool		asked;			/* whether values may be read */
	MemoryContext parent;
	MemoryContext context;		/* of the reader; NULL: none */
	RowReader  *reader;			/* NULL: values may not be read */
} TableValues;

extern void TableValuesInit(TableValues *values, Relation heap, Relation index,
							const QvOpclassInfo *opclass);

/* May values be read at all? */
extern bool TableIsReadable(TableValues *values);

/*
 * Returns the value of a row, detoasted, valid until the next call.  NULL if the row is not there,
 * or is not committed by somebody else, or if no value may be read here: see
 * src/ivf/update/README.md, "Rows from the table".
 */
extern const void *TableValue(TableValues *values, ItemPointer tid);

extern void TableValuesEnd(TableValues *values);

#endif							/* QV_TABLE_VALUES_H */
