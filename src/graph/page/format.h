/*
 * format.h
 *		What a graph index looks like on disk.
 *
 * The tables of offsets, the meaning of every field and the rules that keep
 * them true are in src/graph/README.md; quiver_check() verifies them.
 */
#ifndef QV_GRAPH_PAGE_FORMAT_H
#define QV_GRAPH_PAGE_FORMAT_H

#include "postgres.h"

#include "kernels/kernels.h"
#include "containers/pool.h"
#include "pages/meta.h"
#include "rows/format.h"
#include "space/factor.h"
#include "space/space.h"
#include "storage/itemptr.h"

#define GRAPH_META_MAGIC 0x51764772 /* "QvGr" */
/*
 * Version 1 has the neighbors' codes of a coded node as FastScan batches; 2 one
 * after the other, so that an edge that changes is a few bytes of WAL.  Version 3 has
 * row pages.
 */
#define GRAPH_META_VERSION 3
#define GRAPH_META_WITH_ROWS 3
#define GRAPH_META_BATCHES 1

/* stock pgvector's hnsw metapage starts with this, where ours has its header */
#define PGVECTOR_HNSW_MAGIC 0xA953A953

#define GRAPH_NONE UINT32_MAX	/* no node */
#define GRAPH_INLINE_TIDS 4

/*
 * In a place of a node, beside the number of the neighbor: the edge is an anchor,
 * the one that keeps the neighbor reachable (src/graph/README.md, "Anchors").
 */
#define GRAPH_ANCHOR UINT32_C(0x80000000)

StaticAssertDecl((GRAPH_ANCHOR & POOL_MAX_ID) == 0, "node numbers leave no bit for anchors");

/* Options, with pgvector's names, ranges and defaults. */
#define HNSW_MIN_M 2
#define HNSW_DEFAULT_M 16
#define HNSW_MAX_M 100
#define HNSW_MIN_EF_CONSTRUCTION 4
#define HNSW_DEFAULT_EF_CONSTRUCTION 64
#define HNSW_MAX_EF_CONSTRUCTION 1000
#define GRAPH_MAX_DEGREE 224	/* 2 * HNSW_MAX_M, in whole batches of 32 */

/* Recalls that an index knows a pool for: graph_recalls (recall.h). */
#define GRAPH_RECALLS 5

typedef struct GraphMetaData
{
	uint32		magic;
	uint32		version;
	uint32		dims;			/* of the column */
	uint32		pdim;			/* padded: coordinates of the own code */
	uint8		form;			/* QvForm */
	uint8		space;			/* QvSpaceKind */
	uint8		metric;			/* QvMetric, to refuse another opclass */
	uint8		own_bits;		/* 8, 4 or 2 bits a coordinate */
	uint16		m;
	uint16		ef_construction;
	uint16		degree;			/* neighbors a node has room for */
	uint16		code_bits;		/* B: coordinates in the neighbors' codes */
	uint16		entry_bits;		/* coordinates in the entry points' codes */
	uint16		nodes_per_page;
	uint32		node_size;
	uint32		value_size;		/* inline value of a plain node; 0 = chained */
	uint64		seed;			/* of the rotation and of the build */
	uint64		build_id;		/* random: tells rebuilt indexes apart */
	BlockNumber mean_block;		/* first of consecutive float array pages */
	BlockNumber entry_head;		/* entry points: a chain of pages */
	BlockNumber entry_tail;
	uint32		entry_count;	/* entries */
	uint32		entry_version;	/* changes when an entry is replaced */
	BlockNumber insert_block;	/* page that may have a free slot */
	BlockNumber value_block;	/* plain: page that may have room for values */
	float		reached_rows;	/* of the table when all nodes could last be
								 * reached; 0: not known */
	double		live_nodes;		/* as of the last build or vacuum */
	double		tuples;			/* heap rows, likewise */
	float		pool_slope;		/* coded: a scan's pool is pool_slope x ef + */
	float		pool_extra;		/* pool_extra, measured; 0: not */
	float		pool_nodes;		/* when there were so many nodes */
	float		recall_pools[GRAPH_RECALLS];	/* for graph_recalls; 0: not
												 * measured */
	uint32		vacuums;		/* that may have removed rows: changes before
								 * their heap TIDs are used again */
	QvRowsMeta	rows;			/* row pages */
} GraphMetaData;

/*
 * The smallest pool of estimates, and what others are measured against: enough for
 * data of the real world (src/graph/README.md, "ef").
 */
#define GRAPH_POOL_SLOPE 1.8
#define GRAPH_POOL_EXTRA 16

/*
 * By how much pools are larger where nodes have fewer neighbors than others' indexes:
 * at the same ef, recall is to be the same.
 */
#define GraphMoreNodes(meta) \
	((meta)->form == QV_FORM_CODED ? Max(1, (double) GraphFullDegree((meta)->m) / (meta)->degree) : 1)

/* The largest that an index may ask for. */
#define GRAPH_MAX_SLOPE 8
#define GRAPH_MAX_EXTRA 1000
#define GRAPH_MAX_POOL (GRAPH_MAX_SLOPE * 65535 + GRAPH_MAX_EXTRA)

StaticAssertDecl(sizeof(GraphMetaData) == 152, "on-disk graph metapage changed");

/* States of a node slot. */
#define GRAPH_SLOT_FREE 0		/* an empty page is all free slots */
#define GRAPH_SLOT_LIVE 1
#define GRAPH_SLOT_DELETED 2	/* a way-point until vacuum unlinks it */
#define GRAPH_SLOT_TIDS 3		/* holds heap TIDs of another node */

/*
 * A node slot.  Followed, at the offsets of GraphLayout, by the neighbors'
 * numbers, their factors and codes, and the own code or value.
 */
typedef struct GraphNodeData
{
	uint8		state;
	uint8		ntids;			/* heap TIDs used in tids[] */
	uint16		unused;
	uint32		overflow;		/* first slot with more heap TIDs */
	float		norm2;			/* |x|^2 of the centered vector */
	float		scale;			/* own code: x ~ scale * (code - offset) */
	float		residual;		/* |x - its own code|, at most */
	float		aux;			/* <x, mean>: inner product graphs */
	float		a_scale;		/* of the neighbors' a factors */
	float		b_scale;
	ItemPointerData tids[GRAPH_INLINE_TIDS];
} GraphNodeData;

typedef GraphNodeData *GraphNode;

StaticAssertDecl(sizeof(GraphNodeData) == 56, "on-disk graph node changed");

/* A slot in state GRAPH_SLOT_TIDS. */
typedef struct GraphTidsData
{
	uint8		state;
	uint8		unused;
	uint16		ntids;
	uint32		next;			/* next such slot of the same node */
	uint32		owner;			/* the node */
	ItemPointerData tids[FLEXIBLE_ARRAY_MEMBER];
} GraphTidsData;

typedef GraphTidsData *GraphTids;

/*
 * Where a plain node's value is, when it is not in the node: pieces on
 * QV_PAGE_VALUES pages that lead from one to the next.  The stamp is random and
 * stands in every piece: it shows that a place was freed and used again since.
 */
typedef struct GraphValueRef
{
	BlockNumber block;			/* of the first piece */
	uint32		stamp;
	uint32		size;			/* of the whole value */
	uint16		line;
	uint16		unused;
} GraphValueRef;

StaticAssertDecl(sizeof(GraphValueRef) == 16, "on-disk value reference changed");

/* What a value page starts with; pieces are placed from its end downward. */
typedef struct GraphValueLine
{
	uint16		offset;			/* in the page's data; 0: free */
	uint16		size;			/* of the piece with its header */
} GraphValueLine;

typedef struct GraphValuePageData
{
	uint16		lines;			/* used or not */
	uint16		upper;			/* where the pieces start */
	uint16		live;			/* bytes of all pieces, aligned */
	uint16		listed;			/* 1: in the list from the metapage's
								 * value_block */
	GraphValueLine line[FLEXIBLE_ARRAY_MEMBER];
} GraphValuePageData;

typedef GraphValuePageData *GraphValuePage;

StaticAssertDecl(offsetof(GraphValuePageData, line) == 8, "on-disk value page changed");

typedef struct GraphPieceData
{
	uint32		stamp;
	uint32		rest;			/* bytes of the value from here on */
	BlockNumber next;			/* the next piece, or invalid */
	uint16		next_line;
	uint16		unused;
	char		data[FLEXIBLE_ARRAY_MEMBER];
} GraphPieceData;

typedef GraphPieceData *GraphPiece;

StaticAssertDecl(offsetof(GraphPieceData, data) == 16, "on-disk value piece changed");

/*
 * Where the parts of a node slot are; derived from the metapage, never stored.
 */
typedef struct GraphLayout
{
	QvForm		form;
	uint32		pdim;
	uint32		degree;
	uint32		code_bits;
	int			own_bits;
	uint32		node_size;
	uint32		per_page;
	uint32		tids_per_slot;	/* in a GraphTidsData */
	uint32		value_size;		/* plain: of a value in its node; 0: elsewhere */
	/* offsets in a slot */
	uint32		ids;			/* uint32[degree] */
	uint32		a;				/* float16[degree] */
	uint32		b;				/* float16[degree] */
	uint32		own;			/* packed own code, value or GraphValueRef */
	uint32		own_bytes;
	uint32		codes;			/* of the neighbors, code_bits each */
	bool		batches;		/* these are in degree / 32 FastScan batches */
} GraphLayout;

/* Are values on pages of their own, with a GraphValueRef in the node? */
#define GraphValuesApart(layout) ((layout)->form == QV_FORM_PLAIN && (layout)->value_size == 0)

/* Entry points: batches of 32 on QV_PAGE_ENTRIES pages. */
typedef struct GraphEntryBatch
{
	uint32		count;			/* entries used */
	uint32		unused;
	uint32		ids[QV_BATCH];	/* node numbers */
	float		a[QV_BATCH];	/* L2: |x|^2 */
	float		b[QV_BATCH];	/* factor of the code's inner product */
	uint8		codes[FLEXIBLE_ARRAY_MEMBER];	/* QvBatchBytes(entry_bits) */
} GraphEntryBatch;

#define GRAPH_MAX_ENTRY_BITS 1024
#define GraphEntryBatchSize(entry_bits) \
	MAXALIGN(offsetof(GraphEntryBatch, codes) + QvBatchBytes(entry_bits))
#define GraphEntryBatchesPerPage(entry_bits) \
	(QV_PAGE_SPACE / GraphEntryBatchSize(entry_bits))

/* Batch number i of a page. */
#define GraphPageEntryBatch(page, entry_bits, i) \
	((GraphEntryBatch *) (QvPageGetData(page) + (Size) (i) * GraphEntryBatchSize(entry_bits)))

/* The neighbors of a node of a coded graph, at most, where all are needed. */
extern uint32 GraphFullDegree(int m);

/*
 * Choose the sizes of a coded graph's nodes for pdim and m, filling in
 * own_bits, degree, code_bits, entry_bits, node_size and nodes_per_page.  Of easy
 * data fewer neighbors do (src/graph/README.md, "Neighbors").
 */
extern void GraphChooseCodedLayout(GraphMetaData *meta, bool easy);

/* The same for nodes that hold a value of value_size bytes (0: chained). */
extern void GraphChoosePlainLayout(GraphMetaData *meta);

/* Derive the layout; false when the numbers cannot be (a damaged metapage). */
extern bool GraphLayoutFromMeta(GraphLayout *layout, const GraphMetaData *meta);

/* Addresses. */
#define GraphNodeBlock(layout, id) ((BlockNumber) ((id) / (layout)->per_page))
#define GraphNodeSlot(layout, id) ((id) % (layout)->per_page)
#define GraphNodeNumber(layout, block, slot) \
	((uint32) (block) * (layout)->per_page + (slot))

static inline GraphNode
GraphPageNode(const GraphLayout *layout, Page page, uint32 slot)
{
	return (GraphNode) (QvPageGetData(page) + (Size) slot * layout->node_size);
}

/*
 * Anchors that a node has at most: the other half of its places stays free to
 * choose.  A node is the anchor of one other on average.
 */
#define GraphMaxAnchors(layout) ((layout)->degree / 2)

/* How far down from a node with so many those that hang on it are asked instead. */
#define GRAPH_MAX_ANCHOR_DEPTH 32

/* What a place holds: the neighbor, or GRAPH_NONE; is the edge an anchor? */
static inline uint32
GraphEdgeTo(uint32 place)
{
	return place == GRAPH_NONE ? GRAPH_NONE : place & ~GRAPH_ANCHOR;
}

static inline bool
GraphEdgeIsAnchor(uint32 place)
{
	return place != GRAPH_NONE && (place & GRAPH_ANCHOR) != 0;
}

#define GraphNodeIds(layout, node) ((uint32 *) ((char *) (node) + (layout)->ids))
#define GraphNodeA(layout, node) ((uint16 *) ((char *) (node) + (layout)->a))
#define GraphNodeB(layout, node) ((uint16 *) ((char *) (node) + (layout)->b))
#define GraphNodeOwn(layout, node) ((uint8 *) ((char *) (node) + (layout)->own))

/* The neighbors' codes from place "first" on: a multiple of 32 where they are in batches. */
#define GraphNodeCodes(layout, node, first) \
	((uint8 *) ((char *) (node) + (layout)->codes) + \
	 (int64) (first) * (int64) ((layout)->code_bits / 8))

/*
 * Neighbors are scored 32 at a time.  Where those from "place" on are fewer, the batch
 * begins before: at places that have been scored, or, of fewer than 32, with what is
 * in the node before their factors and codes, which says nothing.
 */
static inline int
GraphBatchStart(const GraphLayout *layout, int place)
{
	return Min(place, (int) layout->degree - QV_BATCH);
}

#endif							/* QV_GRAPH_PAGE_FORMAT_H */
