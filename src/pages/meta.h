/*
 * meta.h
 *		Metapages: block 0 of an index, which says what the rest is.
 *
 * An engine's metapage starts with its magic number and format version (two
 * uint32); what follows is the engine's.
 */
#ifndef QV_PAGES_META_H
#define QV_PAGES_META_H

#include "pages/page.h"

#define QV_META_BLOCK 0

typedef struct QvMetaFormat
{
	const char *what;			/* "a graph index", for messages */
	uint32		magic;
	uint32		min_version;	/* that this version of Quiver reads */
	uint32		max_version;
	uint32		pgvector_magic; /* that stock pgvector's metapage starts with */
} QvMetaFormat;

/*
 * The engine's part of a metapage in hand.  Raises ERRCODE_INDEX_CORRUPTED when it is
 * none, and an error with the hint to REINDEX when it is of another version or
 * pgvector's.
 */
extern void *QvMetaGet(Relation index, Page page, const QvMetaFormat *format);

/* Copy it. */
extern void QvMetaRead(Relation index, const QvMetaFormat *format, void *meta, Size size);

/* Write it anew in a build, without WAL. */
extern void QvMetaWrite(Relation index, ForkNumber fork, const void *meta, Size size);

#endif							/* QV_PAGES_META_H */
