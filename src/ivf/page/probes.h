/*
 * probes.h
 *		Which share of the lists a search reads for a recall.
 *
 * See src/ivf/page/README.md, "Probes".
 */
#ifndef QV_IVF_PAGE_PROBES_H
#define QV_IVF_PAGE_PROBES_H

#include "ivf/codec/format.h"

/*
 * Sets the shares for IVF_TARGETS recalls.  ranks[n], in ascending order, has the ranks of the
 * lists that the nearest rows of queries were in.  There were that many lists.
 */
extern void IvfSetProbes(IvfMetaData *meta, const uint32 *ranks, uint32 n, uint32 lists);

/* Sets the shares for the nearest IvfDepthRows[depth] rows, from ranks of such rows. */
extern void IvfSetDeepProbes(IvfMetaData *meta, int depth, const uint32 *ranks, uint32 n,
							 uint32 lists);

/*
 * Numbers of nearest rows that shares are measured for, ascending: a fourth more than the limits
 * that people ask for, since a search proposes more rows than it returns.
 */
extern const uint32 IvfDepthRows[IVF_DEPTHS];

/* Returns whether all shares that were measured are shares, and do not fall. */
extern bool IvfProbesAreShares(const IvfMetaData *meta);

/* Returns the share of the lists for a recall, interpolated where it was not measured. */
extern double IvfProbesFor(const IvfMetaData *meta, double recall);

/* Returns the recall for a share of the lists, at least 0.5. */
extern double IvfRecallFor(const IvfMetaData *meta, double share);

/*
 * Sets the shares of the lists for one recall: for a few rows, and then for IvfDepthRows.
 * They do not fall.  Returns false if they were not measured, or with far fewer lists than
 * there are now.
 */
extern bool IvfGetDepthShares(const IvfMetaData *meta, double recall, double *shares);

#endif							/* QV_IVF_PAGE_PROBES_H */
