/*
 * values.h
 *		The table's values of rows that are in an index.  An insert that splits a list
 *		encodes rows from them again (src/ivf/update/README.md, "Rows from the
 *		table").
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
	bool		asked;			/* has "may values be read" been decided? */
	MemoryContext parent;
	MemoryContext context;		/* of the reader; NULL before it is decided */
	RowReader  *reader;			/* NULL: values may not be read */
} TableValues;

/*
 * The expressions of an index, or its condition, as they were written; NULL: none.  In those of the
 * relation cache constants are evaluated and SQL functions inlined, with what this user's
 * search_path finds.  column: Anum_pg_index_indexprs, or Anum_pg_index_indpred.
 */
extern Node *IndexAsWritten(Oid index, AttrNumber column);

/* May an expression of an index, or its condition, run code that a user wrote? */
extern bool IndexRunsUsersCode(Oid index, bool or_condition);

extern void TableValuesInit(TableValues *values, Relation heap, Relation index,
							const QvOpclassInfo *opclass);

/* May values be read at all? */
extern bool TableIsReadable(TableValues *values);

/*
 * Returns the detoasted value of a row, valid until the next call.  Returns NULL if the
 * row is not there, if another transaction has not committed it, or if no value may be
 * read here: see src/ivf/update/README.md, "Rows from the table".
 */
extern const void *TableValue(TableValues *values, ItemPointer tid);

extern void TableValuesEnd(TableValues *values);

#endif							/* QV_TABLE_VALUES_H */
