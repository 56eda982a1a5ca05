/*
 * see.h
 *		Functions that show how an index does (src/see/README.md).
 */
#ifndef QV_SEE_SEE_H
#define QV_SEE_SEE_H

/* recall.c: at load. */
extern void QvSeeInit(void);

#endif							/* QV_SEE_SEE_H */
