/*
 * coded_scan.h
 *		Scanning lists of codes: one-bit codes, then records or sketches of the rows
 *		that may matter.
 */
#ifndef QV_IVF_SEARCH_CODED_SCAN_H
#define QV_IVF_SEARCH_CODED_SCAN_H

#include "ivf/search/reader.h"

/*
 * A row's search distance by its record, which may be off by *error, where base is that of its list's
 * centroid: which may be had exactly, too.
 */
extern float coded_record_distance(IvfReader *reader, IvfRecord record, float base, float *error);
extern float coded_exact_base(IvfReader *reader, uint32 list);

#endif							/* QV_IVF_SEARCH_CODED_SCAN_H */
