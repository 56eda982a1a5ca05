/*
 * values.h
 *		Pages of values, for values that do not fit into plain nodes.
 *
 * A value is one piece if it fits on a page, and a chain of pieces otherwise.  Pages with
 * room form a list: the metapage's value_block, then each page's next.  The free space map
 * has no value pages.  Value pages stay value pages (src/graph/page/README.md, "Value
 * pages").
 */
#ifndef QV_GRAPH_PAGE_VALUES_H
#define QV_GRAPH_PAGE_VALUES_H

#include "graph/page/handle.h"

/* Memory for a value that is put together from pieces.  It starts zeroed. */
typedef struct GraphScratch
{
	char	   *data;
	Size		size;
} GraphScratch;

/* Stores size bytes.  *ref says where. */
extern void GraphStoreValue(GraphHandle *handle, const void *value, Size size,
							GraphValueRef *ref);

/*
 * Returns a stored value.  A value of one piece lies on its page, which is pinned and
 * share-locked in *buf.  Otherwise it is a copy in scratch, and *buf is invalid.  NULL (and
 * no lock): the value is gone.
 */
extern const void *GraphBorrowStored(GraphHandle *handle, const GraphValueRef *ref,
									 GraphScratch *scratch, Buffer *buf);

/* Frees the space of a value.  Pieces that are gone are left alone. */
extern void GraphFreeStored(GraphHandle *handle, const GraphValueRef *ref);

/* Verifies the structure of a value page.  The caller has it locked, or passes a copy. */
extern void GraphCheckValuePage(Relation index, BlockNumber block, Page page);

#endif							/* QV_GRAPH_PAGE_VALUES_H */
