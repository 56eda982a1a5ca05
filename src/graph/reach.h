/*
 * reach.h
 *		Which nodes a search can come to, from the entry points of a graph on its
 *		pages.
 */
#ifndef QV_GRAPH_REACH_H
#define QV_GRAPH_REACH_H

#include "graph/handle.h"
#include "storage/bufmgr.h"

typedef struct GraphReach
{
	GraphHandle *handle;
	BufferAccessStrategy strategy;	/* may be NULL */
	void		(*pause) (void);	/* called before every page is read */

	/*
	 * Called without locks for a live node that cannot be reached: see to it
	 * that it can.  NULL: only count.
	 */
	void		(*mend) (void *arg, uint32 number);
	void	   *arg;
} GraphReach;

/*
 * Go to all nodes of the index that there are as it begins, in memory of three
 * bits a slot.  Returns how many live ones cannot be reached, and in *live how many
 * there are; those that come after one that is mended are not counted.  *sound: no
 * edge leads to where there are no nodes.
 *
 * What is inserted meanwhile may make it wrong by a node or two, to both sides.
 * Vacuum is not at work, or is the caller.
 */
extern uint32 GraphFindUnreached(const GraphReach *reach, uint32 *live, bool *sound);

/* A pause that answers Ctrl-C, and no more. */
extern void GraphAnswerInterrupts(void);

/*
 * Let neighbors lead to such nodes, or make them entry points.  Returns how many live
 * nodes there are.
 */
extern uint32 GraphReachAll(GraphHandle *handle, BufferAccessStrategy strategy,
							void (*pause) (void), bool *sound);

#endif							/* QV_GRAPH_REACH_H */
