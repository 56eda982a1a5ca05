/*
 * toast_reader.h
 *		Values of a table that are out of line, read one after the other.
 *
 * The server opens the TOAST table, its index and a scan of it for each value anew.  Here they
 * stay open, with the locks that a value takes, until the end.
 */
#ifndef QV_TABLE_TOAST_READER_H
#define QV_TABLE_TOAST_READER_H

#include "postgres.h"

#include "utils/relcache.h"

typedef struct ToastReader ToastReader;

/* NULL if the table has none, or none that is read like this. */
extern ToastReader *ToastReaderBegin(Relation table);

/*
 * The value of a row that a snapshot sees, allocated, or NULL: it is not one to be read like this,
 * or damaged, which the server's own way (PG_DETOAST_DATUM) says with the right words.
 */
extern struct varlena *ToastReaderValue(ToastReader *reader, Datum datum);

/* Let go of pages, until the next value. */
extern void ToastReaderRelease(ToastReader *reader);

extern void ToastReaderEnd(ToastReader *reader);

#endif							/* QV_TABLE_TOAST_READER_H */
