/*
 * bit.c
 *		What we need of the core type bit.
 */
#include "types/values.h"

#include "utils/varbit.h"

/* Returns a new bit string of zeros. */
struct varlena *
QvNewBits(int dim)
{
	Size		size = VARBITTOTALLEN(dim);
	VarBit	   *bits = palloc0(size);

	SET_VARSIZE(bits, size);
	VARBITLEN(bits) = dim;
	return (struct varlena *) bits;
}

uint8 *
QvBitBytes(struct varlena *bits)
{
	return VARBITS((VarBit *) bits);
}

/* Raises pgvector's error, whose message differs from that of the other types. */
void
QvDifferentBitLengths(int a, int b)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATA_EXCEPTION),
			 errmsg("different bit lengths %u and %u", (unsigned) a, (unsigned) b)));
}
