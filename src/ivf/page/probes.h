/*
 * probes.h
 *		How many lists a search reads for a recall, by what was measured.
 */
#ifndef QV_IVF_PAGE_PROBES_H
#define QV_IVF_PAGE_PROBES_H

#include "ivf/codec/format.h"

/*
 * Fill in the shares for IVF_TARGETS recalls from n ranks, in order: of the lists
 * that near rows of as many queries were in, of so many lists.
 */
extern void IvfSetProbes(IvfMetaData *meta, const uint32 *ranks, uint32 n, uint32 lists);

/* The same of the nearest IvfDepths[depth] rows. */
extern void IvfSetDeepProbes(IvfMetaData *meta, int depth, const uint32 *ranks, uint32 n,
							 uint32 lists);

extern const uint32 IvfDepths[IVF_DEPTHS];

/* Are all that were measured shares of the lists, that do not fall? */
extern bool IvfProbesAreShares(const IvfMetaData *meta);

/* The share of the lists for a recall, between and beyond what was measured. */
extern double IvfProbesFor(const IvfMetaData *meta, double recall);

/* The recall for which that is the share, at least .5. */
extern double IvfRecallFor(const IvfMetaData *meta, double share);

/*
 * The shares of the lists that the nearest rows take, for one recall: of a few rows, then of
 * IvfDepths.  They do not fall.  False when it was not measured, or with far fewer lists than
 * there are.
 */
extern bool IvfGetDepthShares(const IvfMetaData *meta, double recall, double *shares);

#endif							/* QV_IVF_PAGE_PROBES_H */
