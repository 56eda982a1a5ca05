/*
 * node_value.c
 *		The value of a plain graph's node; see node_value.h.
 */
#include "postgres.h"

#include "graph/page/node_value.h"
#include "graph/page/rows.h"
#include "utils/memutils.h"

const void *
GraphBorrowValue(GraphHandle *handle, uint32 id, GraphScratch *scratch, Buffer *buf)
{
	const GraphLayout *layout = &handle->layout;
	GraphValueRef ref;
	GraphNode	node;
	const void *value;
	Size		size = layout->value_size;

	*buf = GraphLockNode(handle, id, BUFFER_LOCK_SHARE, &node);
	if (node == NULL)
	{
		UnlockReleaseBuffer(*buf);
		*buf = InvalidBuffer;
		return NULL;
	}
	value = GraphNodeOwn(layout, node);
	if (size == 0)
	{
		memcpy(&ref, value, sizeof(ref));
		UnlockReleaseBuffer(*buf);
		*buf = InvalidBuffer;
		size = ref.size;
		value = size <= MaxAllocSize ? GraphBorrowStored(handle, &ref, scratch, buf) : NULL;
		if (value == NULL)
			return NULL;
	}
	if (unlikely(!handle->space.opclass.type->well_formed(value, size, handle->meta.dims)))
		QvReportCorruption(handle->index, GraphNodeBlock(layout, id),
						   "The value of slot %u is none of the column's.",
						   GraphNodeSlot(layout, id));
	return value;
}

void *
GraphCopyValue(GraphHandle *handle, uint32 id, GraphScratch *scratch)
{
	Buffer		buf;
	const void *value = GraphBorrowValue(handle, id, scratch, &buf);
	void	   *copy = NULL;

	if (value != NULL)
	{
		Size		size = handle->space.opclass.type->value_size(value);

		copy = palloc(size);
		memcpy(copy, value, size);
	}
	GraphReturnValue(buf);
	return copy;
}

void
GraphFreeValue(GraphHandle *handle, uint32 id)
{
	GraphNode	node;
	GraphValueRef ref;
	Buffer		buf;

	if (!GraphValuesApart(&handle->layout))
		return;
	buf = GraphLockNode(handle, id, BUFFER_LOCK_SHARE, &node);
	if (node != NULL)
		memcpy(&ref, GraphNodeOwn(&handle->layout, node), sizeof(ref));
	UnlockReleaseBuffer(buf);
	if (node != NULL)
		GraphFreeStored(handle, &ref);
}
