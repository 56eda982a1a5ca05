/*
 * distance.c
 *		The SQL distance functions of all types, from one list.
 *
 * An exact scan calls one of them for every row.  An inline value is used where it lies,
 * whatever its varlena header.  The usual call therefore allocates and copies nothing.
 */
#include "types/measure.h"

#include "access/detoast.h"
#include "access/xact.h"

/*
 * The query vector of a scan may itself be out of line, for example if it comes from a
 * subquery.  It would then be fetched again for every row.  So when an argument is the
 * same TOAST pointer for the second time, its value is kept with the function's state.
 */
typedef struct KeptArg
{
	struct varatt_external pointer;
	struct varlena *value;		/* NULL until the second time */
} KeptArg;

typedef struct KeptArgs
{
	/* TOAST pointers can be used again by later transactions */
	TimestampTz transaction;
	KeptArg		args[2];
} KeptArgs;

static struct varlena *
DetoastArg(FunctionCallInfo fcinfo, int n, struct varlena *value)
{
	FmgrInfo   *flinfo = fcinfo->flinfo;
	TimestampTz transaction = GetCurrentTransactionStartTimestamp();
	struct varatt_external pointer;
	KeptArgs   *kept;
	KeptArg    *arg;
	MemoryContext old;

	if (flinfo == NULL || !VARATT_IS_EXTERNAL_ONDISK(value))
		return pg_detoast_datum_packed(value);

	kept = flinfo->fn_extra;
	if (kept == NULL)
	{
		kept = MemoryContextAllocZero(flinfo->fn_mcxt, sizeof(KeptArgs));
		kept->transaction = transaction;
		flinfo->fn_extra = kept;
	}

	VARATT_EXTERNAL_GET_POINTER(pointer, value);
	arg = &kept->args[n];

	if (kept->transaction != transaction ||
		memcmp(&pointer, &arg->pointer, sizeof(pointer)) != 0)
	{
		/* forget both if the transaction is another */
		for (int i = 0; i < 2; i++)
		{
			if (kept->args[i].value != NULL &&
				(i == n || kept->transaction != transaction))
			{
				pfree(kept->args[i].value);
				kept->args[i].value = NULL;
			}
		}
		if (kept->transaction != transaction)
			memset(&kept->args[1 - n].pointer, 0, sizeof(pointer));
		kept->transaction = transaction;
		arg->pointer = pointer;
		return pg_detoast_datum_packed(value);
	}

	if (arg->value == NULL)
	{
		old = MemoryContextSwitchTo(flinfo->fn_mcxt);
		arg->value = pg_detoast_datum_packed(value);
		MemoryContextSwitchTo(old);
	}
	return arg->value;
}

/*
 * An exact scan in memory waits for memory.  768 floats need 30 ns of computation, and
 * 300 ns to arrive.  The reason is that a core reads ahead only within 4 kB, and knows
 * nothing of the next row while the executor works on this one.
 *
 * A table that was loaded or scanned in order lies in consecutive buffers, in ascending
 * order.  Buffers that a dropped table left free are in descending order.  If a value
 * lies one block beside the latest value at its place, its place in the next block is
 * prefetched. [M74] has what that saves.
 *
 * Prefetching cannot fault, whatever lies there.  Where rows come in no such order, as
 * from an index, nothing is prefetched.
 */
#define PREFETCH_LINE		64	/* bytes of a line of a cache */
#define PREFETCH_MIN_BYTES	256 /* shorter values gain nothing */
#define PREFETCH_TRACE		(BLCKSZ / PREFETCH_MIN_BYTES)

static inline void
PrefetchNextBlock(int n, const struct varlena *value)
{
	/* the latest value at each place of a block; no two share a place */
	static uintptr_t trace[2][PREFETCH_TRACE];

	uintptr_t	here = (uintptr_t) value;
	uintptr_t  *place = &trace[n][here / PREFETCH_MIN_BYTES % PREFETCH_TRACE];
	uintptr_t	step = here - *place;
	Size		bytes = VARSIZE(value);

	if (step == 0 || bytes < PREFETCH_MIN_BYTES || bytes > BLCKSZ)
		return;
	*place = here;

	if (step == BLCKSZ || step == -(uintptr_t) BLCKSZ)
	{
		for (Size i = 0; i < bytes; i += PREFETCH_LINE)
			__builtin_prefetch((const void *) (here + step + i), 0, 2);
	}
}

static inline struct varlena *
GetArg(FunctionCallInfo fcinfo, int n)
{
	struct varlena *value = (struct varlena *) PG_GETARG_POINTER(n);

	if (likely(!VARATT_IS_EXTENDED(value)))
	{
		PrefetchNextBlock(n, value);
		return value;
	}
	if (VARATT_IS_SHORT(value) && !VARATT_IS_EXTERNAL(value))
		return value;
	return DetoastArg(fcinfo, n, value);
}

/* View and error of each type, by its name. */
#define vector_view(value)		DenseViewOf(value)
#define halfvec_view(value)		DenseViewOf(value)
#define sparsevec_view(value)	SparseViewOf(value)
#define bit_view(value)			BitViewOf(value)

#define vector_different(a, b)		QvDifferentDims("vector", a, b)
#define halfvec_different(a, b)		QvDifferentDims("halfvec", a, b)
#define sparsevec_different(a, b)	QvDifferentDims("sparsevec", a, b)
#define bit_different(a, b)			QvDifferentBitLengths(a, b)

#define DISTANCE(symbol, type, View, measure, result) \
	QV_FUNCTION(symbol) \
	{ \
		View		a = type##_view(GetArg(fcinfo, 0)); \
		View		b = type##_view(GetArg(fcinfo, 1)); \
		double		d; \
		\
		if (unlikely(a.dim != b.dim)) \
			type##_different(a.dim, b.dim); \
		d = type##_##measure(a, b); \
		PG_RETURN_FLOAT8(result); \
	}

DISTANCE(l2_distance, vector, DenseView, l2sq, sqrt(d))
DISTANCE(vector_l2_squared_distance, vector, DenseView, l2sq, d)
DISTANCE(inner_product, vector, DenseView, ip, d)
DISTANCE(vector_negative_inner_product, vector, DenseView, ip, -d)
DISTANCE(vector_spherical_distance, vector, DenseView, ip, SphericalDistance(d))
DISTANCE(cosine_distance, vector, DenseView, cosine, d)
DISTANCE(l1_distance, vector, DenseView, l1, d)

DISTANCE(halfvec_l2_distance, halfvec, DenseView, l2sq, sqrt(d))
DISTANCE(halfvec_l2_squared_distance, halfvec, DenseView, l2sq, d)
DISTANCE(halfvec_inner_product, halfvec, DenseView, ip, d)
DISTANCE(halfvec_negative_inner_product, halfvec, DenseView, ip, -d)
DISTANCE(halfvec_spherical_distance, halfvec, DenseView, ip, SphericalDistance(d))
DISTANCE(halfvec_cosine_distance, halfvec, DenseView, cosine, d)
DISTANCE(halfvec_l1_distance, halfvec, DenseView, l1, d)

DISTANCE(sparsevec_l2_distance, sparsevec, SparseView, l2sq, sqrt(d))
DISTANCE(sparsevec_l2_squared_distance, sparsevec, SparseView, l2sq, d)
DISTANCE(sparsevec_inner_product, sparsevec, SparseView, ip, d)
DISTANCE(sparsevec_negative_inner_product, sparsevec, SparseView, ip, -d)
DISTANCE(sparsevec_cosine_distance, sparsevec, SparseView, cosine, d)
DISTANCE(sparsevec_l1_distance, sparsevec, SparseView, l1, d)

DISTANCE(hamming_distance, bit, BitView, hamming, d)
DISTANCE(jaccard_distance, bit, BitView, jaccard, d)
