/*
 * test_containers.c
 *		Containers that do more than hold: the backlog, and a heap of its items.
 */
#include "unit.h"

#include "containers/item_heap.h"

#define MOST 20000

static int
compare_items(const void *a, const void *b)
{
	BacklogItem x = *(const BacklogItem *) a,
				y = *(const BacklogItem *) b;

	return (x > y) - (x < y);
}

/* Numbers are in the order of distances, and lead back to them. */
static void
test_items(void)
{
	static const float distances[] = {-INFINITY, -3, -1e-30f, 0, 1e-30f, 1, 2.5f, 1e30f, INFINITY};

	for (int i = 0; i < 9; i++)
	{
		BacklogItem item = BacklogMake(distances[i], UINT32_MAX - 7);

		CHECK(BacklogDistance(item) == distances[i], "distance %g", distances[i]);
		CHECK(BacklogId(item) == UINT32_MAX - 7, "id at %g", distances[i]);
		if (i > 0)
			CHECK(BacklogMake(distances[i - 1], UINT32_MAX) < BacklogMake(distances[i], 0),
				  "order at %g", distances[i]);
	}
	CHECK(BacklogMake(1, 2) < BacklogMake(1, 3), "the lower id is first");
	CHECK(BacklogMake(NAN, 0) > BacklogMake(INFINITY, 0) && BacklogMake(-NAN, 0) > BacklogMake(INFINITY, 0) &&
		  isnan(BacklogDistance(BacklogMake(-NAN, 0))), "what is no number is last");
}

/* The front of any data, in order, and nothing lost. */
static void
test_sort_front(void)
{
	static BacklogItem items[2000],
				expected[2000];

	UnitSeed(3);
	for (int round = 0; round < 2000; round++)
	{
		uint32_t	n = UnitRandom() % 2001;
		uint32_t	want = UnitRandom() % (n + 1);

		for (uint32_t i = 0; i < n; i++)
			switch (round % 4)
			{
				case 0:
					items[i] = UnitRandom() % 5;
					break;
				case 1:
					items[i] = i;
					break;
				case 2:
					items[i] = n - i;
					break;
				default:
					items[i] = UnitRandom();
			}
		memcpy(expected, items, sizeof(items));
		qsort(expected, n, sizeof(BacklogItem), compare_items);
		BacklogSortFront(items, n, want);
		CHECK(memcmp(items, expected, want * sizeof(BacklogItem)) == 0, "%u of %u", want, n);
		qsort(items, n, sizeof(BacklogItem), compare_items);
		CHECK(memcmp(items, expected, n * sizeof(BacklogItem)) == 0, "%u of %u: lost", want, n);
	}
}

/* Orders that a careless choice of pivots takes minutes for. */
static void
test_sort_orders(void)
{
	enum
	{
		N = 1000000
	};
	BacklogItem *items = malloc(N * sizeof(BacklogItem));

	for (int order = 0; order < 4; order++)
	{
		bool		sorted = true;

		for (uint32_t i = 0; i < N; i++)
			items[i] = order == 0 ? i : order == 1 ? N - 1 - i :
				order == 2 ? (i < N / 2 ? 2 * i : 2 * (N - 1 - i) + 1) : (i < N / 2 ? N - 1 - 2 * i : 2 * i - N);
		BacklogSortFront(items, N, N);
		for (uint32_t i = 0; i < N; i++)
			sorted &= items[i] == i;
		CHECK(sorted, "order %d", order);
	}
	free(items);
}

/* Put aside and taken by turns: always the nearest of all that there are. */
static void
test_backlog(void)
{
	static BacklogItem memory[MOST],
				model[MOST];

	UnitSeed(4);
	for (int round = 0; round < 40; round++)
	{
		Backlog		log = {.items = memory, .capacity = MOST};
		uint32_t	n = 0;

		BacklogClear(&log);
		for (int step = 0; step < 40; step++)
		{
			uint32_t	add = UnitRandom() % 400,
						take = UnitRandom() % 300,
						taken = 0;

			for (uint32_t i = 0; i < add; i++)
			{
				/* nearer and farther than those before, and the same */
				float		distance = UnitRandom() % 1000 / 7.0f + step * (UnitRandom() % 3);
				uint32_t	id = UnitRandom() % 5000;

				BacklogAdd(&log, distance, id);
				model[n++] = BacklogMake(distance, id);
			}
			qsort(model, n, sizeof(BacklogItem), compare_items);
			for (; taken < take && BacklogSort(&log, 1 + UnitRandom() % 64); taken++)
				CHECK(BacklogTake(&log) == model[taken], "round %d, step %d", round, step);
			CHECK(taken == (take < n ? take : n), "round %d, step %d: as many as there are", round, step);
			memmove(model, model + taken, (n - taken) * sizeof(BacklogItem));
			n -= taken;
		}
	}
}

/* Pushed and popped by turns: always the least of all that there are. */
static void
test_item_heap(void)
{
	static BacklogItem memory[MOST],
				model[MOST];

	UnitSeed(5);
	for (int round = 0; round < 40; round++)
	{
		ItemHeap	heap = {.items = memory};
		uint32_t	n = 0;

		for (int step = 0; step < 40; step++)
		{
			uint32_t	add = UnitRandom() % 300,
						take = UnitRandom() % 300,
						taken = 0;

			for (uint32_t i = 0; i < add; i++)
			{
				model[n] = BacklogMake(UnitRandom() % 50 / 7.0f - 3, UnitRandom() % 100);
				ItemHeapPush(&heap, model[n++]);
			}
			qsort(model, n, sizeof(BacklogItem), compare_items);
			for (; taken < take && heap.count > 0; taken++)
				CHECK(ItemHeapPop(&heap) == model[taken], "round %d, step %d", round, step);
			CHECK(taken == (take < n ? take : n), "round %d, step %d: as many as there are", round, step);
			memmove(model, model + taken, (n - taken) * sizeof(BacklogItem));
			n -= taken;
		}
	}
}

void
SuiteContainers(void)
{
	UnitRun("backlog items", NULL, test_items);
	UnitRun("backlog sort", NULL, test_sort_front);
	UnitRun("backlog sort of a million", NULL, test_sort_orders);
	UnitRun("backlog", NULL, test_backlog);
	UnitRun("item heap", NULL, test_item_heap);
}
