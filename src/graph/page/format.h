/*
 * format.h
 *		Format of a graph index on disk.
 *
 * src/graph/page/README.md has the tables of offsets and the meaning of every field.
 * src/graph/README.md has the invariants.  quiver_check() verifies them.
 */
#ifndef QV_GRAPH_PAGE_FORMAT_H
#define QV_GRAPH_PAGE_FORMAT_H

#include "postgres.h"

#include "kernels/kernels.h"
#include "containers/pool.h"
#include "pages/meta.h"
#include "query/curve.h"
#include "rows/format.h"
#include "space/factor.h"
#include "space/space.h"
#include "storage/itemptr.h"

#define GRAPH_META_MAGIC 0x51764772 /* "QvGr" */
/*
 * Version 1 has the neighbors' codes of a coded node as FastScan batches.  Version 2 has
 * them one after the other, so that an edge that changes is a few bytes of WAL.  Version 3
 * has row pages.
 */
#define GRAPH_META_VERSION 3
#define GRAPH_META_WITH_ROWS 3
#define GRAPH_META_BATCHES 1

/* pgvector's hnsw metapage starts with this number, where ours has its header. */
#define PGVECTOR_HNSW_MAGIC 0xA953A953

/*
 * Node numbers have 31 bits, which leaves one for marks.  2^31 nodes of at least 388 bytes
 * are an index of 0.8 TB.
 */
#define GRAPH_MAX_ID (UINT32_C(0x80000000) - 1)
#define GRAPH_NONE UINT32_MAX	/* no node */
#define GRAPH_INLINE_TIDS 4

/*
 * Bit beside the neighbor's number in a place of a node.  The edge is an anchor, which keeps
 * the neighbor reachable (src/graph/update/README.md, "Anchors").
 */
#define GRAPH_ANCHOR UINT32_C(0x80000000)

StaticAssertDecl((GRAPH_ANCHOR & GRAPH_MAX_ID) == 0, "node numbers leave no bit for anchors");

/* Options, with pgvector's names, ranges and defaults. */
#define HNSW_MIN_M 2
#define HNSW_DEFAULT_M 16
#define HNSW_MAX_M 100
#define HNSW_MIN_EF_CONSTRUCTION 4
#define HNSW_DEFAULT_EF_CONSTRUCTION 64
#define HNSW_MAX_EF_CONSTRUCTION 1000
#define GRAPH_MAX_DEGREE 224	/* 2 * HNSW_MAX_M, in whole batches of 32 */

/* Number of recalls that the metapage has a pool for: graph_recalls (pool.h). */
#define GRAPH_RECALLS 5

/* Number of depths that the metapage has an ef for: graph_depths (pool.h). */
#define GRAPH_DEPTHS 3

typedef struct GraphMetaData
{
	uint32		magic;
	uint32		version;
	uint32		dims;			/* of the column */
	uint32		pdim;			/* coordinates of the own code: dims, padded */
	uint8		form;			/* QvForm */
	uint8		space;			/* QvSpaceKind */
	uint8		metric;			/* QvMetric; an operator class of another is
								 * refused */
	uint8		own_bits;		/* bits per coordinate of the own code: 8, 4
								 * or 2 */
	uint16		m;
	uint16		ef_construction;
	uint16		degree;			/* neighbors that a node has places for */
	uint16		code_bits;		/* B: bits of the neighbors' codes */
	uint16		entry_bits;		/* coordinates in the entry points' codes */
	uint16		nodes_per_page;
	uint32		node_size;
	uint32		value_size;		/* plain: bytes of a value in its node; 0:
								 * values are on value pages */
	uint64		seed;			/* of the rotation and the build */
	uint64		build_id;		/* random; a rebuilt index has another one */
	BlockNumber mean_block;		/* first of consecutive float array pages */
	BlockNumber entry_head;		/* first page of entry points, a chain */
	BlockNumber entry_tail;
	uint32		entry_count;	/* number of entry points */
	uint32		entry_version;	/* changes when an entry is replaced */
	BlockNumber insert_block;	/* node page that inserts try first */
	BlockNumber value_block;	/* plain: first value page with room */
	float		reached_rows;	/* rows of the table when all nodes could last
								 * be reached; 0: not known */
	double		live_nodes;		/* at the end of the last build or VACUUM */
	double		tuples;			/* rows, at the same time */
	float		pool_slope;		/* coded: slope of a scan's pool (pool.h); 0:
								 * not calibrated */
	float		pool_extra;		/* coded: extra of a scan's pool; 0: not
								 * calibrated */
	float		pool_nodes;		/* live nodes when the pool was calibrated,
								 * less twice those removed since, at least 1;
								 * 0: not calibrated */
	float		recall_pools[GRAPH_RECALLS];	/* for each of graph_recalls;
												 * 0: not calibrated */
	uint32		vacuums;		/* number of VACUUMs that may have removed
								 * rows */
	QvRowsMeta	rows;			/* description of the row pages */
	QvCurve		curve;			/* coded: by quiver_calibrate() */
	float		deep_efs[GRAPH_DEPTHS]; /* coded: the ef of each of
										 * graph_depths, by that of 10 rows;
										 * 0: not calibrated */
	float		hard_new_rows[GRAPH_RECALLS];	/* coded: new rows of each of
												 * recall_pools that tell a
												 * hard query (pool.h); 0: not
												 * calibrated */
	float		level;			/* power space: QvSpace.level */
} GraphMetaData;

/* Tells whether an index can have row pages.  Indexes of older versions have none. */
static inline bool
GraphCanHaveRows(const GraphMetaData *meta)
{
	return meta->form == QV_FORM_CODED && meta->version >= GRAPH_META_WITH_ROWS;
}

/*
 * Least pool of estimates, by which others are measured.  It is enough for real-world data
 * (src/graph/page/README.md, "Pools").
 */
#define GRAPH_POOL_SLOPE 1.8
#define GRAPH_POOL_EXTRA 16

/*
 * Factor of the pool where nodes have fewer neighbors than others' indexes.  At the same ef,
 * recall is to be the same.
 */
#define GraphMoreNodes(meta) \
	((meta)->form == QV_FORM_CODED ? Max(1, (double) GraphFullDegree((meta)->m) / (meta)->degree) : 1)

/* Largest slope, extra, pool and growth of ef that calibration may ask for. */
#define GRAPH_MAX_DEEP_EF 1000
#define GRAPH_MAX_SLOPE 8
#define GRAPH_MAX_EXTRA 1000
#define GRAPH_MAX_POOL (GRAPH_MAX_SLOPE * 65535 + GRAPH_MAX_EXTRA)

StaticAssertDecl(sizeof(GraphMetaData) == 224, "on-disk graph metapage changed");

/* States of a node slot. */
#define GRAPH_SLOT_FREE 0		/* an empty page has free slots only */
#define GRAPH_SLOT_LIVE 1
#define GRAPH_SLOT_DELETED 2	/* a way-point until VACUUM takes it out */
#define GRAPH_SLOT_TIDS 3		/* holds heap TIDs of another node */

/*
 * A node slot.  The neighbors' numbers, their factors and codes, and the own code or value
 * follow at the offsets of GraphLayout.
 */
typedef struct GraphNodeData
{
	uint8		state;
	uint8		ntids;			/* heap TIDs used in tids */
	uint16		unused;
	uint32		overflow;		/* first slot of heap TIDs, or GRAPH_NONE */
	float		norm2;			/* |x|^2 of the centered vector */
	float		scale;			/* of the own code: x ~ scale * (code -
								 * offset) */
	float		residual;		/* at most |x - own code| */
	float		aux;			/* <x, mean>, for inner product */
	float		a_scale;		/* scale of the neighbors' factors a */
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
	uint32		next;			/* next slot of the same node, or GRAPH_NONE */
	uint32		owner;			/* number of the node */
	ItemPointerData tids[FLEXIBLE_ARRAY_MEMBER];
} GraphTidsData;

typedef GraphTidsData *GraphTids;

/*
 * Place of a plain node's value that is not in the node.  The value is a chain of pieces on
 * QV_PAGE_VALUES pages.  The stamp is random and stands in every piece.  It shows when a
 * place was freed and used again.
 */
typedef struct GraphValueRef
{
	BlockNumber block;			/* block of the first piece */
	uint32		stamp;
	uint32		size;			/* bytes of the whole value */
	uint16		line;
	uint16		unused;
} GraphValueRef;

StaticAssertDecl(sizeof(GraphValueRef) == 16, "on-disk value reference changed");

/* Line of a value page.  Pieces are placed from the end of the page downward. */
typedef struct GraphValueLine
{
	uint16		offset;			/* of the piece in the page's data; 0: free */
	uint16		size;			/* bytes of the piece with its header */
} GraphValueLine;

typedef struct GraphValuePageData
{
	uint16		lines;			/* number of lines, in use or free */
	uint16		upper;			/* offset where the pieces start */
	uint16		live;			/* bytes of all pieces, aligned */
	uint16		listed;			/* 1: in the list that the metapage's
								 * value_block starts */
	GraphValueLine line[FLEXIBLE_ARRAY_MEMBER];
} GraphValuePageData;

typedef GraphValuePageData *GraphValuePage;

StaticAssertDecl(offsetof(GraphValuePageData, line) == 8, "on-disk value page changed");

typedef struct GraphPieceData
{
	uint32		stamp;
	uint32		rest;			/* bytes of the value from this piece on */
	BlockNumber next;			/* block of the next piece, or invalid */
	uint16		next_line;
	uint16		unused;
	char		data[FLEXIBLE_ARRAY_MEMBER];
} GraphPieceData;

typedef GraphPieceData *GraphPiece;

StaticAssertDecl(offsetof(GraphPieceData, data) == 16, "on-disk value piece changed");

/* Offsets of the parts of a node slot.  They are derived from the metapage, and never stored. */
typedef struct GraphLayout
{
	QvForm		form;
	uint32		pdim;
	uint32		degree;
	uint32		code_bits;
	int			own_bits;
	uint32		node_size;
	uint32		per_page;
	uint32		tids_per_slot;	/* heap TIDs that a GraphTidsData holds */
	uint32		value_size;		/* plain: bytes of a value in its node; 0: on
								 * value pages */
	/* offsets in a slot: */
	uint32		ids;			/* uint32[degree] */
	uint32		a;				/* float16[degree] */
	uint32		b;				/* float16[degree] */
	uint32		own;			/* packed own code, value, or GraphValueRef */
	uint32		own_bytes;
	uint32		codes;			/* of the neighbors, code_bits each */
	bool		batches;		/* codes are in degree / 32 FastScan batches */
} GraphLayout;

/* Tells whether values are on value pages, with a GraphValueRef in the node. */
#define GraphValuesApart(layout) ((layout)->form == QV_FORM_PLAIN && (layout)->value_size == 0)

/* Batch of 32 entry points, on a QV_PAGE_ENTRIES page. */
typedef struct GraphEntryBatch
{
	uint32		count;			/* entry points used */
	uint32		unused;
	uint32		ids[QV_BATCH];	/* numbers of their nodes */
	float		a[QV_BATCH];	/* L2: |x|^2 */
	float		b[QV_BATCH];	/* factor of the code's inner product */
	uint8		codes[FLEXIBLE_ARRAY_MEMBER];	/* QvBatchBytes(entry_bits) */
} GraphEntryBatch;

#define GRAPH_MAX_ENTRY_BITS 1024
#define GraphEntryBatchSize(entry_bits) \
	MAXALIGN(offsetof(GraphEntryBatch, codes) + QvBatchBytes(entry_bits))
#define GraphEntryBatchesPerPage(entry_bits) \
	(QV_PAGE_SPACE / GraphEntryBatchSize(entry_bits))

/* Address of batch i of a page. */
#define GraphPageEntryBatch(page, entry_bits, i) \
	((GraphEntryBatch *) (QvPageGetData(page) + (Size) (i) * GraphEntryBatchSize(entry_bits)))

/* Returns the degree of a coded graph whose data need all neighbors. */
extern uint32 GraphFullDegree(int m);

/*
 * Chooses the sizes of a coded graph's nodes for pdim and m.  Sets own_bits, degree,
 * code_bits, entry_bits, node_size and nodes_per_page.  Nodes of easy data get fewer
 * neighbors (src/graph/page/README.md, "Neighbors").
 */
extern void GraphChooseCodedLayout(GraphMetaData *meta, bool easy);

/*
 * Chooses the sizes of a plain graph's nodes.  They hold a value of value_size bytes; 0, or
 * too large a value: values are on value pages.
 */
extern void GraphChoosePlainLayout(GraphMetaData *meta);

/* Derives the layout.  Returns false if the numbers of the metapage cannot be true. */
extern bool GraphLayoutFromMeta(GraphLayout *layout, const GraphMetaData *meta);

/*
 * Estimates from codes of at most this many bits are worse than others.  Where one bit of each
 * coordinate would be as few, codes have two.
 */
#define GRAPH_FEW_BITS 96

/* Do the neighbors' codes have two bits of each coordinate, and not one of some or all? */
#define GraphHasTwoBits(layout) ((layout)->code_bits > (layout)->pdim)

/* Block, slot and number of a node. */
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
 * Most anchors that lead from a node.  The other half of its places stays free to choose.  On
 * average one anchor leads from a node.
 */
#define GraphMaxAnchors(layout) ((layout)->degree / 2)

/* Depth to which the descendants of a node without room for an anchor are asked. */
#define GRAPH_MAX_ANCHOR_DEPTH 32

/* Returns the neighbor in a place, or GRAPH_NONE. */
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

/*
 * Address of the neighbors' codes from place "first" on: a multiple of 32 if codes are in
 * batches.
 */
#define GraphNodeCodes(layout, node, first) \
	((uint8 *) ((char *) (node) + (layout)->codes) + \
	 (int64) (first) * (int64) ((layout)->code_bits / 8))

/*
 * Returns the place where the batch that scores "place" begins.  A batch has 32 places, and
 * a node may have fewer from "place" on.  The batch then begins before it: at places that
 * were scored already, or before the node's first factor and code.  The caller leaves those
 * estimates out.
 */
static inline int
GraphBatchStart(const GraphLayout *layout, int place)
{
	return Min(place, (int) layout->degree - QV_BATCH);
}

#endif							/* QV_GRAPH_PAGE_FORMAT_H */
