/*
 * layout.h
 *		Sizes of the pages of an index, and the number of its lists.
 */
#ifndef QV_IVF_CODEC_LAYOUT_H
#define QV_IVF_CODEC_LAYOUT_H

#include "ivf/codec/codec.h"

/*
 * Choose the sizes for dims, metric and form (and bits when they are given),
 * filling in the metapage.  Plain: value_size is set already.
 */
extern void IvfChooseLayout(IvfMetaData *meta);

/* Derive the layout; false when the numbers cannot be (a damaged metapage). */
extern bool IvfLayoutFromMeta(IvfLayout *layout, const IvfMetaData *meta);

/*
 * How many lists n rows should have: as many as fill a page each, but between
 * once and IVF_LISTS_PER_ROOT times the square root of n.  And how many rows a
 * list should have when there are so many lists, which is the same law.
 * Measured: src/ivf/README.md, "Number of lists".
 */
#define IVF_LISTS_PER_ROOT 4

extern uint32 IvfChooseLists(const IvfLayout *layout, double rows);
extern double IvfListLength(const IvfLayout *layout, double lists);

#endif							/* QV_IVF_CODEC_LAYOUT_H */
