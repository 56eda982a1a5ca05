/*
 * sample.h
 *		Reading some pages of an index, to estimate what all have.
 */
#ifndef QV_PAGES_SAMPLE_H
#define QV_PAGES_SAMPLE_H

#include "pages/page.h"

/*
 * Passes at most "most" pages to look(), each under its share lock.  The pages are spread
 * evenly, and are the same each time for a seed.  Returns the number of pages of the
 * index that each of them stands for, or 0 if the index has none.
 */
extern double QvSamplePages(Relation index, uint64 seed, BlockNumber most,
							void (*look) (Page page, void *arg), void *arg);

#endif							/* QV_PAGES_SAMPLE_H */
