/*
 * coded_choice.c
 *		Which edge a full node of a coded graph leaves out; see coded_choice.h.
 */
#include "postgres.h"

#include <math.h>

#include "graph/form/coded_choice.h"
#include "graph/page/rows.h"
#include "graph/walk/select.h"

/* GraphChoosePlace()'s rivals. */
typedef struct CodeRivals
{
	GraphRivals base;
	const GraphHandle *handle;
	GraphCode	codes[GRAPH_MAX_DEGREE + 1];
} CodeRivals;

static float
between(const GraphHandle *handle, const GraphCode *a, const GraphCode *b)
{
	return GraphCodeDistance(&handle->layout, handle->meta.space, handle->space.mean_norm2, a, b);
}

static float
code_pair(void *arg, uint32_t a, uint32_t b)
{
	const CodeRivals *r = arg;

	return between(r->handle, &r->codes[a], &r->codes[b]);
}

/*
 * Copies the own code of node id, its bytes to pdim bytes of memory.  Returns false if
 * there is no such node.
 */
static bool
copy_own_code(GraphHandle *handle, uint32 id, GraphCode *code, uint8 *bytes)
{
	const GraphLayout *layout = &handle->layout;
	GraphNode	node;
	Buffer		buf = GraphLockNode(handle, id, BUFFER_LOCK_SHARE, &node);

	if (node != NULL)
	{
		GraphNodeCode(layout, node, code, bytes);
		if (code->bytes != bytes)
			memcpy(bytes, code->bytes, layout->pdim);
		code->bytes = bytes;
	}
	UnlockReleaseBuffer(buf);
	return node != NULL;
}

int
GraphChooseByCodes(GraphHandle *handle, uint32 to, const GraphCode *newcomer,
				   const uint32 *places, bool force)
{
	uint32		degree = handle->layout.degree;
	uint32		pdim = handle->layout.pdim;
	CodeRivals *r = palloc(sizeof(CodeRivals));
	float	   *from_self = r->base.from_self;
	uint8	   *bytes = palloc((Size) (degree + 1) * pdim);
	BlockNumber nblocks = RelationGetNumberOfBlocks(handle->index);
	GraphCode	self;
	int			place = -1;
	uint32		n = 0;

	r->handle = handle;
	if (copy_own_code(handle, to, &self, bytes + (Size) degree * pdim))
	{
		while (n < degree && place < 0)
		{
			uint32		id = GraphEdgeTo(places[n]);

			if (GraphNodeBlock(&handle->layout, id) >= nblocks ||
				!copy_own_code(handle, id, &r->codes[n], bytes + (Size) n * pdim))
				place = n;		/* the edge leads to no node */
			else
			{
				r->base.anchored[n] = GraphEdgeIsAnchor(places[n]);
				from_self[n] = between(handle, &self, &r->codes[n]);
				n++;
			}
		}
		if (place < 0)
		{
			r->base.n = n;
			r->codes[n] = *newcomer;
			from_self[n] = between(handle, &self, &r->codes[n]);
			place = GraphChoosePlace(&r->base, code_pair, r, force);
		}
	}
	pfree(bytes);
	pfree(r);
	return place;
}
