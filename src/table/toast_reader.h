/*
 * toast_reader.h
 *		Out-of-line values of a table, read one after the other.
 *
 * The server opens the TOAST table, its index and a scan of it for each value.  Here they
 * stay open until the end, with the locks that reading a value takes.
 */
#ifndef QV_TABLE_TOAST_READER_H
#define QV_TABLE_TOAST_READER_H

#include "postgres.h"

#include "utils/relcache.h"

typedef struct ToastReader ToastReader;

/*
 * Returns NULL if the table has no TOAST table, or one that cannot be read in this way.
 */
extern ToastReader *ToastReaderBegin(Relation table);

/*
 * Returns the allocated value of a row that a snapshot sees.  Returns NULL if the value
 * cannot be read in this way, or is damaged.  The server's own way (PG_DETOAST_DATUM)
 * then raises the right error.
 */
extern struct varlena *ToastReaderValue(ToastReader *reader, Datum datum);

/* Asks for the pages of such a value to be read in the background. */
extern void ToastReaderAskFor(ToastReader *reader, Datum datum);

/* Releases pages, until the next value. */
extern void ToastReaderRelease(ToastReader *reader);

extern void ToastReaderEnd(ToastReader *reader);

#endif							/* QV_TABLE_TOAST_READER_H */
