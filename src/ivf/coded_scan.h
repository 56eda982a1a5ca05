/*
 * coded_scan.h
 *		Scanning lists of codes: one-bit codes, then records or sketches of the rows
 *		that may matter.
 */
#ifndef QV_IVF_CODED_SCAN_H
#define QV_IVF_CODED_SCAN_H

#include "ivf/reader.h"

/* See IvfCodec. */
extern void coded_begin_reading(IvfReader *reader);
extern void coded_begin_list(IvfReader *reader, IvfListScan *list);
extern bool coded_find_members(IvfReader *reader, IvfListScan *list, BlockNumber block, bool *any);
extern void coded_find_dead(IvfReader *reader, Page page);
extern void coded_scan_page(IvfReader *reader, IvfListScan *list, BlockNumber block, Page page);

extern bool coded_keep_members(IvfReader *reader);

/* Read a record, or a sketch, and offer its row; false when the list has moved. */
extern bool coded_read_gathered(IvfReader *reader, const IvfGathered *g);

/*
 * A row's search distance by its record, which may be off by *error, where base is that of its list's
 * centroid: which may be had exactly, too.
 */
extern float coded_record_distance(IvfReader *reader, IvfRecord record, float base, float *error);
extern float coded_exact_base(IvfReader *reader, uint32 list);

#endif							/* QV_IVF_CODED_SCAN_H */
