/*
 * set.h
 *		The rows that other indexes find for a condition, as a set.
 */
#ifndef QV_TOPK_SET_H
#define QV_TOPK_SET_H

#include "postgres.h"

#include "nodes/execnodes.h"
#include "query/tidset.h"

typedef enum TopkSetState
{
	TOPK_SET_NONE,				/* nothing has been read */
	TOPK_SET_PART,				/* some rows have: collecting them can go on */
	TOPK_SET_READY,				/* set->rows has them all */
	TOPK_SET_FAILED				/* there is no memory for a set */
} TopkSetState;

typedef struct TopkSet
{
	PlanState  *child;			/* gives a bitmap; NULL: there is no other
								 * index */
	Relation	table;
	bool		(*enough) (void *arg, double found);	/* see TopkSetCollect() */
	void	   *arg;
	MemoryContext context;		/* of all that follows */
	TopkSetState state;
	QvTidSet   *rows;			/* not READY: the rows found so far, when they
								 * take less memory in it */
	ItemPointerData *found;		/* rows found so far, before that */
	Size		nfound;
	Size		room;
} TopkSet;

/* Begin, in CurrentMemoryContext, with all zero; child may be NULL. */
extern void TopkSetInit(TopkSet *set, PlanState *child, Relation table);

/* Its rows are not those of the child any more. */
extern void TopkSetForget(TopkSet *set);

/*
 * Collect the rows.  After every few, if the child can stop, enough() receives how many were found.
 * It may say that they are too many by now: then the state is TOPK_SET_PART.
 */
extern void TopkSetCollect(TopkSet *set, bool (*enough) (void *arg, double found), void *arg);

#endif							/* QV_TOPK_SET_H */
