/*
 * layout.h
 *		Sizes of the pages of an index, and the number of its lists.
 *
 * src/ivf/codec/README.md, "Layout", has the choices.
 */
#ifndef QV_IVF_CODEC_LAYOUT_H
#define QV_IVF_CODEC_LAYOUT_H

#include "ivf/codec/codec.h"

/*
 * Chooses the sizes for dims, metric and form, and bits if they are given.  Fills them
 * into the metapage.  Plain: value_size is set already.
 */
extern void IvfChooseLayout(IvfMetaData *meta);

/* Derives the layout; false if the numbers do not fit together (a damaged metapage). */
extern bool IvfLayoutFromMeta(IvfLayout *layout, const IvfMetaData *meta);

/* Policy: an index has at most this number times sqrt(rows) lists, and at least sqrt(rows). */
#define IVF_LISTS_PER_ROOT 4

/*
 * Returns how many lists an index should have: as many as fill a page each, within the
 * limits above.  See src/ivf/build/README.md, "Number of lists", and [M41].
 */
extern uint32 IvfChooseLists(const IvfLayout *layout, double rows);

/* Returns how many rows a list should have, by the same rule, if there are that many lists. */
extern double IvfListLength(const IvfLayout *layout, double lists);

#endif							/* QV_IVF_CODEC_LAYOUT_H */
