/*
 * writer.h
 *		Writing the pages of a list, in the order of its rows.
 *
 * See src/ivf/page/README.md, "Writing a list".
 */
#ifndef QV_IVF_PAGE_WRITER_H
#define QV_IVF_PAGE_WRITER_H

#include "ivf/codec/handle.h"

/* Sets the scales of the factors of a page, by its first row. */
extern void IvfSetScales(IvfListPage head, const IvfRow *row);

typedef struct IvfWriter IvfWriter;

/* Makes a writer.  It has memory for an extent: some 16 pages of codes with their items. */
extern IvfWriter *IvfWriterBegin(IvfHandle *handle);

/* Starts a list.  Nothing leads to its pages until the caller changes the directory. */
extern void IvfWriterStart(IvfWriter *writer, uint32 list, uint32 generation);
extern void IvfWriterAdd(IvfWriter *writer, const IvfRow *row);

/* Writes the rest of the list.  Sets head and tail to invalid if no row was added. */
extern void IvfWriterFinish(IvfWriter *writer, BlockNumber *head, BlockNumber *tail,
							uint32 *rows);
extern void IvfWriterEnd(IvfWriter *writer);

#endif							/* QV_IVF_PAGE_WRITER_H */
