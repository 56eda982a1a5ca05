/*
 * beside.h
 *		Living in one database, and one process, with a stock pgvector.
 */
#ifndef QV_AM_BESIDE_H
#define QV_AM_BESIDE_H

#include "postgres.h"

/*
 * The library of a C function, as pg_proc.probin names it; NULL for others.
 * *symbol gets its symbol, unless it is NULL.
 */
extern char *QvFunctionLibrary(Oid function, char **symbol);

/*
 * The C symbol of a function of our library or of pgvector's, whose functions
 * of one name do the same; NULL for any other function.
 */
extern char *QvSharedSymbol(Oid function);

/*
 * Whether settings named after a pgvector access method (hnsw.*) can be
 * defined when the library is loaded: no stock pgvector, loaded later, will
 * want to.
 */
extern bool QvMayDefineAtLoad(const char *access_method);

/*
 * Whether a setting can be defined now: nobody has, and PostgreSQL lets us.
 */
extern bool QvMayDefine(const char *setting);

#endif							/* QV_AM_BESIDE_H */
