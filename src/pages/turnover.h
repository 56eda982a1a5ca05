/*
 * turnover.h
 *		When VACUUM measures an index again: a share of its rows came or went since the last time.
 *
 * The metapage has one number for that: the rows there were when the index was measured, less twice
 * those removed since.  What the index has now, less that number, is how many came and went.
 */
#ifndef QV_PAGES_TURNOVER_H
#define QV_PAGES_TURNOVER_H

/* Returns the number after some rows were removed.  Below 1 it is not known, and stays so. */
static inline float
QvTurnoverRemoved(float measured, double removed)
{
	return measured >= 1 ? Max(1, measured - 2 * removed) : measured;
}

/*
 * Tells whether a share of "rows" rows came or went.  Also true if the index was not measured, and
 * for the NaN of a damaged page.
 */
static inline bool
QvIsTurnedOver(float measured, double rows, double share)
{
	return !(rows - measured < share * rows);
}

#endif							/* QV_PAGES_TURNOVER_H */
