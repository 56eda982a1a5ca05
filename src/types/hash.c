/*
 * hash.c
 *		Hash support of the types: for DISTINCT, GROUP BY, hash joins and hash
 *		partitions. pgvector has none.
 *
 * Equal values must have equal hashes, and 0.0 equals -0.0.  No other equal values differ
 * in a bit, because no type has NaN and a sparsevec keeps no zeros.
 */
#include "types/values.h"

#include "common/hashfn.h"

typedef uint32 unaligned_uint32 __attribute__((aligned(1)));

/*
 * Sets elements that are -0.0 to 0.0 in a copy.  The copy is made of the bytes when the
 * first such element is found.
 */
#define DEFINE_CLEAR_ZEROS(name, elem, minus_zero) \
	static void * \
	name(const char *bytes, int size, const elem *x, int n) \
	{ \
		char	   *copy = NULL; \
		\
		for (int i = 0; i < n; i++) \
		{ \
			if (likely(x[i] != (minus_zero))) \
				continue; \
			if (copy == NULL) \
				copy = memcpy(palloc(size), bytes, size); \
			((elem *) (copy + ((const char *) x - bytes)))[i] = 0; \
		} \
		return copy; \
	}

DEFINE_CLEAR_ZEROS(ClearFloats, unaligned_uint32, 0x80000000)
DEFINE_CLEAR_ZEROS(ClearHalves, qv_unaligned_half, 0x8000)

typedef enum HashedType
{
	HASHED_VECTOR,
	HASHED_HALFVEC,
	HASHED_SPARSEVEC
} HashedType;

/* Support functions 1 (value) and 2 (value, seed).  They are equal for seed 0. */
static Datum
HashValue(FunctionCallInfo fcinfo, HashedType type, bool extended)
{
	struct varlena *value = PG_DETOAST_DATUM_PACKED(PG_GETARG_DATUM(0));
	const char *bytes = VARDATA_ANY(value);
	int			size = VARSIZE_ANY_EXHDR(value);
	void	   *copy = NULL;
	DenseView	dense;
	Datum		result;

	switch (type)
	{
		case HASHED_VECTOR:
			dense = DenseViewOf(value);
			copy = ClearFloats(bytes, size, dense.x, dense.dim);
			break;
		case HASHED_HALFVEC:
			dense = DenseViewOf(value);
			copy = ClearHalves(bytes, size, dense.x, dense.dim);
			break;
		case HASHED_SPARSEVEC:
			break;
	}
	if (copy)
		bytes = copy;
	result = extended ?
		UInt64GetDatum(hash_bytes_extended((const unsigned char *) bytes, size,
										   PG_GETARG_INT64(1))) :
		UInt32GetDatum(hash_bytes((const unsigned char *) bytes, size));
	if (copy)
		pfree(copy);
	PG_FREE_IF_COPY(value, 0);
	return result;
}

#define HASH_FUNCTIONS(name, type) \
	QV_FUNCTION(name##_hash) { return HashValue(fcinfo, type, false); } \
	QV_FUNCTION(name##_hash_extended) { return HashValue(fcinfo, type, true); }

HASH_FUNCTIONS(vector, HASHED_VECTOR)
HASH_FUNCTIONS(halfvec, HASHED_HALFVEC)
HASH_FUNCTIONS(sparsevec, HASHED_SPARSEVEC)
