/*
 * probes.h
 *		How many lists a search reads for a recall, by what was measured.
 */
#ifndef QV_IVF_PROBES_H
#define QV_IVF_PROBES_H

#include "ivf/format.h"

/*
 * Fill in the shares for IVF_TARGETS recalls from n ranks, in order: of the lists
 * that near rows of as many queries were in, of so many lists.
 */
extern void IvfSetProbes(IvfMetaData *meta, const uint32 *ranks, uint32 n, uint32 lists);

/* The share of the lists for a recall, between and beyond what was measured. */
extern double IvfProbesFor(const IvfMetaData *meta, double recall);

#endif							/* QV_IVF_PROBES_H */
