/*
 * sweep.h
 *		One-bit codes of all centroids, by which those are found whose own codes are
 *		measured, when there are many lists; in very many, only those of the nearest
 *		groups are read.
 */
#ifndef QV_IVF_SWEEP_H
#define QV_IVF_SWEEP_H

#include "ivf/handle.h"

/* Coordinates that a query's look-up table needs for them; 0: there are none. */
extern uint32 IvfSweepBits(const IvfHandle *handle);

/* Are n nearest lists to be found by them? */
extern bool IvfWantsSweep(const IvfHandle *handle, const IvfQuery *query, uint32 n);

/*
 * The lists that may be among the n nearest; returns how many.  out has room for
 * all lists.
 */
extern uint32 IvfSweep(const IvfHandle *handle, const IvfQuery *query, uint32 n,
					   IvfNear *out);

/*
 * Make the codes of a directory: Update for a list whose centroid was read (again),
 * Finish when all have been.  Nothing in a plain index.
 */
extern void IvfSweepUpdate(const IvfHandle *handle, IvfLists *lists, uint32 list);
extern void IvfSweepFinish(const IvfHandle *handle, IvfLists *lists);

#endif							/* QV_IVF_SWEEP_H */
