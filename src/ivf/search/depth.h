/*
 * depth.h
 *		How many lists, and rows in them, a search reads for a window of so many rows.
 *
 * With "widen" (ivf.h); see src/ivf/README.md, "Depth".
 */
#ifndef QV_IVF_SEARCH_DEPTH_H
#define QV_IVF_SEARCH_DEPTH_H

#include "ivf/codec/format.h"
#include "ivf/ivf.h"

/* So few rows take the lists that were measured for a few: the least window of a search. */
#define IVF_FEW_ROWS 18

/* The share of the lists that the nearest so many rows take, for one recall. */
typedef struct IvfDepth
{
	bool		measured;		/* is it known? */
	double		rows[IVF_DEPTHS + 1];
	double		shares[IVF_DEPTHS + 1];
} IvfDepth;

extern void IvfDepthInit(IvfDepth *depth, const IvfMetaData *meta, const IvfScanParams *params);

/*
 * How many times the lists read, "probes" of "lists" with so many rows, a window of so many
 * takes.
 */
extern double IvfDepthTimes(const IvfDepth *depth, double window, uint64 rows, uint32 probes,
							uint32 lists);

/* The window that they are deep enough for. */
extern double IvfDepthWindow(const IvfDepth *depth, uint64 rows, uint32 probes, uint32 lists);

/* Of so many rows in all lists, those of the lists that such a window takes. */
extern double IvfDepthRows(const IvfDepth *depth, double window, double rows);

#endif							/* QV_IVF_SEARCH_DEPTH_H */
