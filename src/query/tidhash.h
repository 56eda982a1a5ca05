/*
 * tidhash.h
 *		A hash table of heap TIDs, the server's simplehash: QvTids_create(),
 *		QvTids_insert(), QvTids_lookup(), ...
 */
#ifndef QV_QUERY_TIDHASH_H
#define QV_QUERY_TIDHASH_H

#include "postgres.h"

#include "common/hashfn.h"
#include "storage/itemptr.h"

typedef struct QvTidEntry
{
	ItemPointerData tid;
	char		status;
} QvTidEntry;

/* A TID may be of a damaged page. */
static inline uint32
QvTidHash(ItemPointerData tid)
{
	return murmurhash32(ItemPointerGetBlockNumberNoCheck(&tid)) ^
		murmurhash32(ItemPointerGetOffsetNumberNoCheck(&tid));
}

#define SH_PREFIX QvTids
#define SH_ELEMENT_TYPE QvTidEntry
#define SH_KEY_TYPE ItemPointerData
#define SH_KEY tid
#define SH_HASH_KEY(tb, key) QvTidHash(key)
#define SH_EQUAL(tb, a, b) (ItemPointerCompare(&(a), &(b)) == 0)
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

#endif							/* QV_QUERY_TIDHASH_H */
