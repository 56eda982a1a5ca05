/*
 * radius.h
 *		How many rows are within a radius.
 */
#ifndef QV_TOPK_RADIUS_H
#define QV_TOPK_RADIUS_H

#include "postgres.h"

#include "topk/target.h"

/*
 * The share of the rows that pass all other conditions that meet a target's conditions on the
 * distance, by a sample of the codes of row pages; 0: hardly any do; negative: not known.  The
 * value and what distances are compared with must be constants.
 */
extern double TopkShareWithin(PlannerInfo *root, const TopkTarget *target, Relation index);

#endif							/* QV_TOPK_RADIUS_H */
