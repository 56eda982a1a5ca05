/*
 * meta.h
 *		Metapages: block 0 of an index, which describes the rest.
 *
 * The metapage of an engine begins with its magic number and its format version (two
 * uint32).  The rest is the engine's.
 */
#ifndef QV_PAGES_META_H
#define QV_PAGES_META_H

#include "pages/page.h"

#define QV_META_BLOCK 0

typedef struct QvMetaFormat
{
	const char *what;			/* "a graph index", for messages */
	uint32		magic;
	uint32		min_version;	/* that this release of Quiver reads */
	uint32		max_version;
	uint32		pgvector_magic; /* start of stock pgvector's metapage */
} QvMetaFormat;

/*
 * Returns the engine's part of a metapage.  Raises ERRCODE_INDEX_CORRUPTED if the page is
 * no metapage of the engine.  Raises an error with the hint to REINDEX if it is of
 * another version, or pgvector's.
 */
extern void *QvMetaGet(Relation index, Page page, const QvMetaFormat *format);

/* Copies the engine's part into meta. */
extern void QvMetaRead(Relation index, const QvMetaFormat *format, void *meta, Size size);

/* Overwrites the engine's part in a build, without WAL. */
extern void QvMetaWrite(Relation index, ForkNumber fork, const void *meta, Size size);

#endif							/* QV_PAGES_META_H */
