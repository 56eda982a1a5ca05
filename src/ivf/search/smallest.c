/*
 * smallest.c
 *		Choosing the nearest of many lists; see smallest.h.
 */
#include "postgres.h"

#include "ivf/search/smallest.h"

#define ST_SORT sort_near
#define ST_ELEMENT_TYPE IvfNear
#define ST_COMPARE(a, b) (IvfNearer(a, b) ? -1 : IvfNearer(b, a))
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

uint32
IvfSelect(IvfNear *items, uint32 count, uint32 n)
{
	uint32		lo = 0,
				hi = count;

	/* quickselect: everything before lo is nearer than everything after hi */
	while (n < hi && hi - lo > 16)
	{
		IvfNear		pivot = items[lo + (hi - lo) / 2];
		uint32		i = lo,
					j = hi - 1;

		for (;;)
		{
			while (IvfNearer(&items[i], &pivot))
				i++;
			while (IvfNearer(&pivot, &items[j]))
				j--;
			if (i >= j)
				break;
			{
				IvfNear		swap = items[i];

				items[i++] = items[j];
				items[j--] = swap;
			}
		}
		/* [lo, i) are not farther than the pivot, [i, hi) not nearer */
		if (i == lo)
			i++;
		if (n <= i)
			hi = i;
		else
			lo = i;
	}
	return Min(hi, count);
}

void
IvfSelectNearest(IvfNear *items, uint32 count, uint32 n)
{
	sort_near(items, IvfSelect(items, count, n));
}

/* Items that IvfSelectFew() keeps at least. */
#define KEPT_LEAST 20

/*
 * The items are dealt out to lanes; KEPT_LEAST lanes have their nearest within a
 * bound, so as many items are within it.  That is three passes almost without a
 * branch that the processor cannot foresee, which took a partition and a heap most
 * of their time.
 */
uint32
IvfSelectFew(IvfNear *items, uint32 count)
{
	float		lanes[IVF_SELECT_FEW];
	float		bound;
	uint32		kept = 0;

	Assert(count >= IVF_SELECT_FEW);
	for (int j = 0; j < IVF_SELECT_FEW; j++)
		lanes[j] = items[j].distance;
	for (uint32 i = IVF_SELECT_FEW; i + IVF_SELECT_FEW <= count; i += IVF_SELECT_FEW)
		for (int j = 0; j < IVF_SELECT_FEW; j++)
			lanes[j] = items[i + j].distance < lanes[j] ? items[i + j].distance : lanes[j];
	for (uint32 i = count / IVF_SELECT_FEW * IVF_SELECT_FEW; i < count; i++)
		lanes[0] = Min(lanes[0], items[i].distance);
	bound = lanes[0];
	for (int j = 0; j < IVF_SELECT_FEW; j++)
	{
		int			below = 0;

		for (int i = 0; i < IVF_SELECT_FEW; i++)
			below += lanes[i] < lanes[j] || (lanes[i] == lanes[j] && i < j);
		if (below == KEPT_LEAST - 1)
			bound = lanes[j];
	}
	for (uint32 i = 0; i < count; i++)
	{
		items[kept] = items[i];
		kept += items[i].distance <= bound;
	}
	return kept;
}
