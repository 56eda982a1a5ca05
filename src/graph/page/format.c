/*
 * format.c
 *		Sizes of graph nodes: how many code bits fit, and how many nodes share a page.
 */
#include "postgres.h"

#include "graph/page/format.h"

/* Bytes of a coded node, without the own code and the neighbors' codes. */
#define CodedFixed(degree) (sizeof(GraphNodeData) + (Size) (degree) * (4 + 2 + 2))

/* Share of the places for neighbors that easy data need. */
#define EASY_SHARE (13.0 / 16)

/* Alignment of node slots: that of their largest type. */
#define NODE_ALIGN 4

static uint32
round_down(uint32 value, uint32 to)
{
	return value / to * to;
}

/* The bits that neighbors' codes have if there is room. */
static uint32
most_bits(uint32 pdim)
{
	return pdim <= GRAPH_FEW_BITS ? 2 * pdim : pdim;
}

/* Returns the largest number of code bits with which per_page nodes share a page. */
static int
bits_that_fit(const GraphMetaData *meta, int own_bits, int per_page)
{
	int			room = round_down(QV_PAGE_SPACE / per_page, NODE_ALIGN);
	uint32		bits;

	room -= CodedFixed(meta->degree) + QvCodeBytes(meta->pdim, own_bits);
	if (room <= 0)
		return 0;
	bits = Min(round_down(room * 8 / meta->degree, QV_DIM_ALIGN), most_bits(meta->pdim));
	/* two bits of each coordinate, or one of some or all */
	return bits < most_bits(meta->pdim) ? Min(bits, meta->pdim) : bits;
}

/*
 * Returns the least code bits.  Up to 256 coordinates all are needed.  Above, a third still
 * pays for more nodes on a page [M13].
 */
static int
fewest_bits(const GraphMetaData *meta)
{
	if (meta->pdim <= 256)
		return most_bits(meta->pdim);
	return Max(256, round_down(meta->pdim / 3, QV_DIM_ALIGN));
}

uint32
GraphFullDegree(int m)
{
	/* whole FastScan batches: places past 2m are used, too */
	return (2 * m + QV_BATCH - 1) / QV_BATCH * QV_BATCH;
}

/* Returns the degree for easy data. */
static uint32
easy_degree(int m)
{
	return GraphFullDegree(m) * EASY_SHARE;
}

void
GraphChooseCodedLayout(GraphMetaData *meta, bool easy)
{
	static const int own_choices[] = {8, 4, 2};

	meta->degree = easy ? easy_degree(meta->m) : GraphFullDegree(meta->m);
	meta->entry_bits = Min(meta->pdim, GRAPH_MAX_ENTRY_BITS);

	for (int i = 0; i < lengthof(own_choices); i++)
	{
		int			own_bits = own_choices[i];
		int			fewest = fewest_bits(meta);
		int			bits;

		/*
		 * If not even one node with the least bits fits on a page, 512 bits,
		 * or one of each coordinate, are better than a finer own code.
		 */
		if (bits_that_fit(meta, own_bits, 1) < fewest)
			fewest = own_bits == 2 ? QV_DIM_ALIGN : Min(Min(fewest, meta->pdim), 512);
		for (int per_page = 64; per_page >= 1; per_page--)
		{
			bits = bits_that_fit(meta, own_bits, per_page);
			if (bits < fewest)
				continue;
			meta->own_bits = own_bits;
			meta->code_bits = bits;
			meta->node_size = TYPEALIGN(NODE_ALIGN, CodedFixed(meta->degree) +
										QvCodeBytes(meta->pdim, own_bits) +
										(Size) bits * meta->degree / 8);
			meta->nodes_per_page = QV_PAGE_SPACE / meta->node_size;
			meta->value_size = 0;
			return;
		}
	}
	elog(ERROR, "no graph node layout for %u dimensions and m = %d",
		 meta->dims, meta->m);
}

#define PlainOwnBytes(meta) \
	((meta)->value_size ? (meta)->value_size : sizeof(GraphValueRef))

void
GraphChoosePlainLayout(GraphMetaData *meta)
{
	Size		fixed;

	meta->degree = 2 * meta->m;
	meta->own_bits = 0;
	meta->code_bits = 0;
	meta->entry_bits = 0;
	fixed = sizeof(GraphNodeData) + (Size) meta->degree * 4;
	if (fixed + meta->value_size > QV_PAGE_SPACE)
		meta->value_size = 0;
	meta->node_size = MAXALIGN(fixed + PlainOwnBytes(meta));
	meta->nodes_per_page = QV_PAGE_SPACE / meta->node_size;
}

/*
 * Tells whether nodes can have this degree, and whether all batches lie inside of their
 * node.  A batch may begin before the first place (GraphBatchStart).
 */
static bool
batches_fit(const GraphLayout *layout, const GraphMetaData *meta)
{
	uint32		before = meta->degree < QV_BATCH ? QV_BATCH - meta->degree : 0;

	if (meta->degree != GraphFullDegree(meta->m) &&
		(layout->batches || meta->degree != easy_degree(meta->m)))
		return false;
	return before * sizeof(uint16) <= layout->a &&
		before * meta->code_bits / 8 <= layout->codes &&
		QvBatchBytes(meta->code_bits) <= QV_PAGE_SPACE;
}

bool
GraphLayoutFromMeta(GraphLayout *layout, const GraphMetaData *meta)
{
	Size		end;

	if (meta->dims == 0 || meta->degree == 0 || meta->degree > GRAPH_MAX_DEGREE ||
		meta->nodes_per_page == 0 || meta->node_size == 0 ||
		meta->node_size > QV_PAGE_SPACE || meta->pdim > QV_MAX_PDIM ||
		meta->m < HNSW_MIN_M || meta->m > HNSW_MAX_M ||
		meta->ef_construction < HNSW_MIN_EF_CONSTRUCTION ||
		meta->ef_construction > HNSW_MAX_EF_CONSTRUCTION)
		return false;
	layout->form = meta->form;
	layout->pdim = meta->pdim;
	layout->degree = meta->degree;
	layout->code_bits = meta->code_bits;
	layout->own_bits = meta->own_bits;
	layout->value_size = meta->value_size;
	layout->node_size = meta->node_size;
	layout->per_page = meta->nodes_per_page;
	layout->tids_per_slot = (meta->node_size - offsetof(GraphTidsData, tids)) /
		sizeof(ItemPointerData);
	layout->ids = sizeof(GraphNodeData);
	end = layout->ids + (Size) meta->degree * 4;
	if (meta->form == QV_FORM_CODED)
	{
		if (meta->pdim % QV_DIM_ALIGN != 0 ||
			meta->code_bits % QV_DIM_ALIGN != 0 || meta->code_bits == 0 ||
			(meta->code_bits > meta->pdim && meta->code_bits != most_bits(meta->pdim)) ||
			meta->pdim != QvPaddedDim(meta->dims) ||
			(meta->space != QV_SPACE_L2 && meta->space != QV_SPACE_IP && meta->space != QV_SPACE_POWER) ||
			(meta->space == QV_SPACE_POWER && !isfinite(meta->level)) ||
			meta->entry_bits == 0 || meta->entry_bits % QV_DIM_ALIGN != 0 ||
			meta->entry_bits > Min(meta->pdim, GRAPH_MAX_ENTRY_BITS) ||
			(meta->own_bits != 8 && meta->own_bits != 4 && meta->own_bits != 2))
			return false;
		layout->a = end;
		layout->b = layout->a + meta->degree * 2;
		layout->own = layout->b + meta->degree * 2;
		layout->own_bytes = QvCodeBytes(meta->pdim, meta->own_bits);
		layout->codes = layout->own + layout->own_bytes;
		layout->batches = meta->version == GRAPH_META_BATCHES;
		if (!batches_fit(layout, meta))
			return false;
		end = layout->codes + (Size) meta->code_bits * meta->degree / 8;
	}
	else if (meta->form == QV_FORM_PLAIN)
	{
		if (meta->pdim != 0 || meta->entry_bits != 0 || meta->value_size > QV_PAGE_SPACE)
			return false;
		layout->a = layout->b = layout->codes = 0;
		layout->batches = false;
		layout->own = end;
		layout->own_bytes = PlainOwnBytes(meta);
		end += layout->own_bytes;
	}
	else
		return false;
	return end <= meta->node_size &&
		(Size) meta->node_size * meta->nodes_per_page <= QV_PAGE_SPACE;
}
