/*
 * version.h
 *		The version of the library and of extension quiver, and the pgvector it stands for.
 */
#ifndef QV_VERSION_H
#define QV_VERSION_H

#define QUIVER_VERSION "1.0.0"

/* the pgvector whose objects extension vector has */
#define QUIVER_PGVECTOR_VERSION "0.8.6"

#endif							/* QV_VERSION_H */
