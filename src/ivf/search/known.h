/*
 * known.h
 *		Searching for the members of a set by codes that a backend keeps of all rows of an index
 *		(src/space/README.md, "Members").
 */
#ifndef QV_IVF_SEARCH_KNOWN_H
#define QV_IVF_SEARCH_KNOWN_H

#include "ivf/search/reader.h"
#include "space/members.h"

struct IvfKnownRows;

/* Can those of an index be kept, and what they take if it has so many rows? */
extern bool IvfCanKnow(const IvfLayout *layout);
extern Size IvfKnownSize(const IvfLayout *layout, BlockNumber table_blocks, double rows);

/*
 * Begin a search for the members of reader->only.  When nothing is kept yet, or it does not do any
 * more, all rows are read, if what was to be had without that has cost as much.  False when
 * another way has to be taken.  Answers Ctrl-C.
 */
extern bool IvfSearchKnown(IvfReader *reader, Size max_memory, QvMemberSearch *search);

/* The share of the members of the last searches that was known; 0: it is good no more. */
extern double IvfShareKnown(const struct IvfKnownRows *known, const IvfMetaData *meta);

/* What it costs to read all rows, in rows that a search looks at. */
#define IVF_LEARNING_ROWS(rows) (15 * (rows))

#endif							/* QV_IVF_SEARCH_KNOWN_H */
