/*
 * write.h
 *		The only way to change an index page.
 *
 *		QvWrite w;
 *		QvWriteBegin(&w, index, building);
 *		page = QvWriteRegister(&w, buf);	(exclusively locked, up to 4)
 *		... change page ...
 *		QvWriteCommit(&w);					(or QvWriteEnd(&w))
 *
 * The functions decide whether WAL is written.  A build writes none: QvWriteLogAll() logs
 * all pages at its end.  All other changes use generic WAL.
 *
 * An error between Begin and Commit leaves no page half changed.  With generic WAL, pages
 * are private copies until Commit.  In a build, an error drops the whole index.
 */
#ifndef QV_PAGES_WRITE_H
#define QV_PAGES_WRITE_H

#include "access/generic_xlog.h"
#include "pages/page.h"

typedef struct QvWrite
{
	GenericXLogState *xlog;		/* NULL in a build */
	Buffer		buffers[MAX_GENERIC_XLOG_PAGES];
	Page		pages[MAX_GENERIC_XLOG_PAGES];	/* the caller's to change */
	int			count;
} QvWrite;

extern void QvWriteBegin(QvWrite *w, Relation index, bool building);
extern Page QvWriteRegister(QvWrite *w, Buffer buf);

/* Registers a new page, and returns it initialized. */
extern Page QvWriteRegisterNew(QvWrite *w, Buffer buf, QvPageKind kind);
extern void QvWriteCommit(QvWrite *w);

/* Commits, and unlocks and releases the pages that were registered. */
extern void QvWriteEnd(QvWrite *w);

/* Adds a page at the end of a fork.  Returns it pinned and exclusively locked. */
extern Buffer QvNewPage(Relation index, ForkNumber fork);

/*
 * Adds an initialized page in a build.  Returns the page.  *buf is pinned and exclusively
 * locked.
 */
extern Page QvNewBuildPage(Relation index, ForkNumber fork, QvPageKind kind, Buffer *buf);

/*
 * Writes n floats (NULL: zeros) to consecutive new pages in a build, for QvReadFloats().
 * Returns the first block, which is invalid when n is 0.
 */
extern BlockNumber QvWriteFloats(Relation index, ForkNumber fork, const float *x, uint32 n);

/* After a build: logs every page of the fork, if the index needs WAL. */
extern void QvWriteLogAll(Relation index, ForkNumber fork);

/*
 * Lets inserts find the free pages that VACUUM has recorded, after a crash or a
 * promotion, too.  The server does not log the free space map.  One page of the map
 * covers 4,000 pages of the index.
 */
extern void QvPublishFreePages(Relation index);

#endif							/* QV_PAGES_WRITE_H */
