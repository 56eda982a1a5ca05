/*
 * target.h
 *		What a query lets an index be searched for: an order, a radius, nearest groups.
 */
#ifndef QV_TOPK_TARGET_H
#define QV_TOPK_TARGET_H

#include "postgres.h"

#include "nodes/pathnodes.h"
#include "topk/form.h"

/* What a path searches an index for. */
typedef struct TopkTarget
{
	IndexOptInfo *index;
	TopkForm	form;			/* of the sort key; without one, of a
								 * condition on the distance */
	PathKey    *key;			/* the order that rows come in; NULL: any */
	Expr	   *written;		/* the sort key; NULL: none, or the distance */
	List	   *within;			/* RestrictInfos: conditions on the distance,
								 * which far rows do not meet */
	List	   *outside;		/* and conditions that near rows do not meet */
	bool		is_missed;		/* a search would miss rows of it */
	List	   *filter;			/* RestrictInfos: conditions on included
								 * columns */
	Relids		outer;			/* the value and these conditions are of;
								 * NULL: none */
	int			needs;			/* QV_LEFT_OUT_...: rows that would be missed */
	int			order;			/* TOPK_ORDER_... */
	bool		of_groups;		/* the order is that of nearest groups */
	Node	   *limit;			/* LIMIT of groups, of which all are wanted if
								 * it is NULL; none: it is known */
} TopkTarget;

/*
 * What a query lets an index be searched for: TopkTargets.  Those whose value is of other relations
 * come last.  groups: the order of nearest groups; NULL: none.
 */
extern List *TopkFindTargets(PlannerInfo *root, IndexOptInfo *index, PathKey *groups);

/*
 * Have in a target those of some conditions, none of the radius, that are on included columns of
 * its index.  Returns whether rows of the index may fail the conditions.  Those of "outside" do not
 * count: rows that fail them come before all rows wanted, as with OFFSET.
 */
extern bool TopkAddFilter(TopkTarget *target, List *conditions);

#endif							/* QV_TOPK_TARGET_H */
