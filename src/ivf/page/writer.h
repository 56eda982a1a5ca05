/*
 * writer.h
 *		The pages of a list, written one after the other; and what every new page of
 *		a list begins with.
 */
#ifndef QV_IVF_PAGE_WRITER_H
#define QV_IVF_PAGE_WRITER_H

#include "ivf/codec/handle.h"

/* Set the scales of the factors of a page by its first row. */
extern void IvfSetScales(IvfListPage head, const IvfRow *row);

typedef struct IvfWriter IvfWriter;

/*
 * Make the pages of a list; nothing leads to them yet.  Uses memory for a few tens of pages.
 */
extern IvfWriter *IvfWriterBegin(IvfHandle *handle);
extern void IvfWriterStart(IvfWriter *writer, uint32 list, uint32 generation);
extern void IvfWriterAdd(IvfWriter *writer, const IvfRow *row);

/* Leaves head and tail invalid when no row was added. */
extern void IvfWriterFinish(IvfWriter *writer, BlockNumber *head, BlockNumber *tail,
							uint32 *rows);
extern void IvfWriterEnd(IvfWriter *writer);

#endif							/* QV_IVF_PAGE_WRITER_H */
