/*
 * groups.h
 *		Nearest groups: GROUP BY g ORDER BY min(distance) LIMIT k, or DISTINCT ON (g) by distance,
 *		from rows in the order of their distances (src/topk/README.md, "Nearest groups").
 */
#ifndef QV_TOPK_GROUPS_H
#define QV_TOPK_GROUPS_H

#include "postgres.h"

#include "nodes/pathnodes.h"
#include "topk/form.h"

/*
 * The order of rows in which the groups that a query asks for are met in their order; NULL: the
 * query does not ask for nearest groups.
 */
extern PathKey *TopkGroupsKey(PlannerInfo *root);

/*
 * Does every aggregate of such a query take the nearest row's value?  key: a form of a distance,
 * in that order (TOPK_ORDER_...), which gets the places of NaN and NULL for aggregates.
 */
extern bool TopkGroupsMatch(PlannerInfo *root, const IndexOptInfo *index, const TopkForm *key, int *order);

/*
 * Does the query around one of DISTINCT ON take the groups in the order of their distances?  Then
 * groups without one are last.
 */
extern bool TopkGroupsKeepOrder(const PlannerInfo *root);

/*
 * Is an aggregate min() or max() of all rows of a group?  Returns BTLessStrategyNumber for min(),
 * BTGreaterStrategyNumber for max(), and 0 for any other.
 */
extern int	TopkTakesExtreme(const Aggref *aggregate);

/* The query whose LIMIT is that of the groups: the one around a query of DISTINCT ON, or itself. */
extern const Query *TopkGroupsLimited(const PlannerInfo *root);

/* Lets the planner know of the node, once. */
extern void TopkGroupsInit(void);

#endif							/* QV_TOPK_GROUPS_H */
