/*
 * sample.h
 *		A look at some pages of an index, to tell of all.
 */
#ifndef QV_PAGES_SAMPLE_H
#define QV_PAGES_SAMPLE_H

#include "pages/page.h"

/*
 * Show each of at most so many pages, spread evenly and for a seed the same ones each
 * time, to look(), under its share lock.  Returns how many pages of the index each of
 * them stands for; 0 when there is none.
 */
extern double QvSamplePages(Relation index, uint64 seed, BlockNumber most,
							void (*look) (Page page, void *arg), void *arg);

#endif							/* QV_PAGES_SAMPLE_H */
