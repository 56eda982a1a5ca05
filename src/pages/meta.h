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

/* Rows that an index has left out. */
#define QV_LEFT_OUT_NULLS 1		/* without a value */
#define QV_LEFT_OUT_NANS 2		/* zero under cosine: distances are NaN */
#define QV_LEFT_OUT_ALL 3

/* What a metapage notes of these.  README.md, "Rows left out", has its form. */
typedef struct QvMetaNote
{
	int			left_out;		/* QV_LEFT_OUT_... */
	bool		wanted;			/* a query would use the index, but for rows
								 * without a value */
	bool		may_look;		/* no row without a value was left out since
								 * VACUUM has set this */
	BlockNumber seen;			/* of the table: VACUUM has seen such a row
								 * there; invalid: nowhere */
} QvMetaNote;

/* What is noted.  Raises no error for a damaged or foreign metapage. */
extern QvMetaNote QvMetaGetNote(Relation index);

/* What an index has left out, or may have. */
extern int	QvMetaLeftOut(Relation index);

/* Notes rows that a build or an insert has left out.  Locks the metapage, and writes WAL once. */
extern void QvMetaLeaveOut(Relation index, int left_out);

/*
 * Replaces a note; false when it has changed, or is the same.  Locks the metapage, and writes WAL.
 */
extern bool QvMetaReplaceNote(Relation index, const QvMetaNote *old, const QvMetaNote *note);

/*
 * What an index has left out, of rows that a query needs.  Notes that it needs rows without a
 * value, so that VACUUM looks whether there are any.
 */
extern int	QvMetaMissing(Relation index, int needs);

#endif							/* QV_PAGES_META_H */
