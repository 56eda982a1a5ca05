/*
 * values.h
 *		Pages of values, for those that do not fit into plain nodes.
 *
 * A value is one piece when it fits into a page, and a chain of pieces
 * otherwise.  Pages with room for more form a list: the metapage's value_block,
 * then each page's next.  The free space map knows nothing of them: it holds
 * node pages, and value pages stay value pages (src/graph/README.md, "Value pages").
 */
#ifndef QV_GRAPH_PAGE_VALUES_H
#define QV_GRAPH_PAGE_VALUES_H

#include "graph/page/handle.h"

/* Memory for values that are put together from pieces; starts zeroed. */
typedef struct GraphScratch
{
	char	   *data;
	Size		size;
} GraphScratch;

/* Store size bytes and say where, in *ref. */
extern void GraphStoreValue(GraphHandle *handle, const void *value, Size size,
							GraphValueRef *ref);

/*
 * Look at a stored value: where it lies, its page pinned and share-locked in
 * *buf, when it is one piece, else a copy in scratch and *buf invalid.  NULL
 * (and no lock) when it is not there any more.
 */
extern const void *GraphBorrowStored(GraphHandle *handle, const GraphValueRef *ref,
									 GraphScratch *scratch, Buffer *buf);

/* Give its space back.  What is not there any more is left alone. */
extern void GraphFreeStored(GraphHandle *handle, const GraphValueRef *ref);

/* Verify the structure of a value page that is locked. */
extern void GraphCheckValuePage(Relation index, BlockNumber block, Page page);

#endif							/* QV_GRAPH_PAGE_VALUES_H */
