/*
 * depth.h
 *		How many lists a search reads for the rows that it proposes.
 *
 * See src/ivf/search/README.md, "Depth".
 */
#ifndef QV_IVF_SEARCH_DEPTH_H
#define QV_IVF_SEARCH_DEPTH_H

#include "ivf/page/probes.h"
#include "query/scan.h"

/* Up to this number, rows need the lists that were measured for a few. */
#define IVF_FEW_ROWS 18

/* Those few: queries were rows, so ten others and the row itself. */
#define IVF_MEASURED_ROWS 11

typedef struct IvfDepth
{
	double		probes;			/* lists that a few rows take: as set, or as
								 * the recall wanted takes */
	double		lists;			/* of the index */
	bool		fixed;			/* a search reads "probes" lists at a time,
								 * whatever it proposes */
	bool		measured;		/* is it known how many more rows take? */
	double		shares[IVF_DEPTHS + 1]; /* of the lists, for a few rows, and
										 * for the rows of each depth */
} IvfDepth;

/* lists: that there are now. */
extern void IvfDepthInit(IvfDepth *depth, const IvfMetaData *meta, double lists,
						 const QvSettings *settings);

/*
 * The least number of rows that a search reads lists for, where it will likely propose "rows": a
 * few more, to have these in order.
 */
extern double IvfDepthUp(double rows);

/* Lists that a search reads, of rows_per_list rows each, to propose "rank" rows. */
extern double IvfDepthLists(const IvfDepth *depth, double rank, double rows_per_list);

#endif							/* QV_IVF_SEARCH_DEPTH_H */
