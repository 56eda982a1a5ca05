/*
 * reach.h
 *		Which nodes a search can come to, from the entry points of a graph on its
 *		pages; and which it could even if every edge but the anchors were gone.
 */
#ifndef QV_GRAPH_UPDATE_REACH_H
#define QV_GRAPH_UPDATE_REACH_H

#include "graph/page/handle.h"
#include "storage/bufmgr.h"

typedef struct GraphReach
{
	GraphHandle *handle;
	BufferAccessStrategy strategy;	/* may be NULL */
	void		(*pause) (void);	/* called before every page is read */
} GraphReach;

/* What a walk has found.  Vacuum was not at work, or is the caller. */
typedef struct GraphReached
{
	uint32		live;			/* nodes */
	uint32		unreached;		/* live ones that the walk did not come to */
	bool		anchored;		/* nodes have anchors: those of earlier
								 * versions had none */
	bool		sound;			/* no edge leads to where there are no nodes */
} GraphReached;

/*
 * Go to all nodes of the index that there are as it begins, by all edges or by anchors
 * alone, through deleted ones too, in memory of three bits a slot.  What is inserted
 * meanwhile may make it wrong by a node or two, to both sides.
 */
extern void GraphFindUnreached(const GraphReach *reach, bool anchors_only, GraphReached *found);

/*
 * Give a new anchor to every live node that cannot be reached by anchors through live
 * nodes, or make it an entry point.  In a graph without anchors all edges count.
 */
extern void GraphReachAll(const GraphReach *reach, GraphReached *found);

/* A pause that answers Ctrl-C, and no more. */
extern void GraphAnswerInterrupts(void);

#endif							/* QV_GRAPH_UPDATE_REACH_H */
