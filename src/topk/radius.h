/*
 * radius.h
 *		How many rows are within a radius.
 */
#ifndef QV_TOPK_RADIUS_H
#define QV_TOPK_RADIUS_H

#include "postgres.h"

#include "topk/target.h"

/*
 * The share of an index's rows that meet a target's conditions on the distance, by a sample of the
 * codes of its row pages; 0: hardly any do; negative: not known.  What they are compared with must
 * be known when the query is planned.
 */
extern double TopkShareWithin(PlannerInfo *root, const RelOptInfo *rel,
							  const TopkTarget *target, Relation index);

/*
 * The possible distance that is nearest to one that was estimated.  Conditions may not be defined
 * for others.
 */
extern double TopkPossibleDistance(QvMetric metric, double distance);

#endif							/* QV_TOPK_RADIUS_H */
