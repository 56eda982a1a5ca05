/*
 * write.h
 *		The one way to change an index page.
 *
 *		QvWrite w;
 *		QvWriteBegin(&w, index, building);
 *		page = QvWriteRegister(&w, buf);	(exclusively locked, up to 4)
 *		... change page ...
 *		QvWriteCommit(&w);
 *
 * Whether WAL is written is decided here: a build writes none (its pages are
 * logged whole at the end by QvWriteLogAll()), everything else goes through
 * generic WAL.  Between Begin and Commit nothing may raise an error that
 * leaves a registered page half changed: with generic WAL pages are private
 * copies until Commit; in a build an error drops the whole index.
 */
#ifndef QV_PAGES_WRITE_H
#define QV_PAGES_WRITE_H

#include "access/generic_xlog.h"
#include "pages/page.h"

typedef struct QvWrite
{
	GenericXLogState *xlog;		/* NULL in a build */
	Buffer		buffers[MAX_GENERIC_XLOG_PAGES];
	Page		pages[MAX_GENERIC_XLOG_PAGES];	/* as the caller changes them */
	int			count;
} QvWrite;

extern void QvWriteBegin(QvWrite *w, Relation index, bool building);
extern Page QvWriteRegister(QvWrite *w, Buffer buf);

/* A page to be initialized from nothing: returns it initialized. */
extern Page QvWriteRegisterNew(QvWrite *w, Buffer buf, QvPageKind kind);
extern void QvWriteCommit(QvWrite *w);

/* Add a page at the end of a fork: returns it pinned and exclusively locked. */
extern Buffer QvNewPage(Relation index, ForkNumber fork);

/* The same in a build, initialized: its page, in *buf pinned and exclusively locked. */
extern Page QvNewBuildPage(Relation index, ForkNumber fork, QvPageKind kind, Buffer *buf);

/*
 * Write n floats (NULL: zeros) on consecutive new pages in a build, for
 * QvReadFloats().  Returns the first block, invalid when n is 0.
 */
extern BlockNumber QvWriteFloats(Relation index, ForkNumber fork, const float *x, uint32 n);

/* After a build: log every page of the fork when the index needs WAL. */
extern void QvWriteLogAll(Relation index, ForkNumber fork);

/*
 * VACUUM has recorded the pages that are free: let inserts find them, and after a crash or a
 * promotion too.  The server does not log the free space map, of which one page tells of 4,000.
 */
extern void QvPublishFreePages(Relation index);

#endif							/* QV_PAGES_WRITE_H */
