/*
 * reach.h
 *		Which nodes a search can reach from the entry points of a graph on its pages, by
 *		all edges or by anchors alone.
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

/* Result of a walk.  VACUUM was not at work, or is the caller. */
typedef struct GraphReached
{
	uint32		live;			/* nodes */
	uint32		unreached;		/* live nodes that the walk did not reach */
	bool		anchored;		/* nodes have anchors; in version 1 they may
								 * have none */
	bool		sound;			/* every edge leads to a page of nodes */
} GraphReached;

/*
 * Walks through all nodes that the index has as the walk begins, by all edges or by anchors
 * alone, through deleted nodes, too.  Needs three bits of memory for each slot.  Nodes that
 * are inserted meanwhile may make the numbers wrong by a node or two, in both directions.
 */
extern void GraphFindUnreached(const GraphReach *reach, bool anchors_only, GraphReached *found);

/*
 * Gives a new anchor to every live node that anchors do not reach through live nodes, or
 * makes it an entry point.  In a graph without anchors all edges count.
 */
extern void GraphReachAll(const GraphReach *reach, GraphReached *found);

/* A GraphReach.pause that answers Ctrl-C. */
extern void GraphAnswerInterrupts(void);

#endif							/* QV_GRAPH_UPDATE_REACH_H */
