/*
 * test_containers.c
 *		Containers that do more than hold: the backlog, heaps, and the pool.
 */
#include "unit.h"

#include "containers/backlog.h"
#include "containers/compare.h"
#include "containers/minheap.h"
#include "containers/pool.h"

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
test_min_heap(void)
{
	static MinHeapItem memory[MOST];
	static float model[MOST];

	UnitSeed(5);
	for (int round = 0; round < 40; round++)
	{
		MinHeap		heap = {.items = memory};
		uint32_t	n = 0;

		for (int step = 0; step < 40; step++)
		{
			uint32_t	add = UnitRandom() % 300,
						take = UnitRandom() % 300,
						taken = 0;

			for (uint32_t i = 0; i < add; i++)
			{
				model[n] = UnitRandom() % 50 / 7.0f - 3;
				MinHeapPush(&heap, model[n++], i);
			}
			qsort(model, n, sizeof(float), CompareFloats);
			for (; taken < take && heap.count > 0; taken++)
				CHECK(MinHeapPop(&heap).key == model[taken], "round %d, step %d", round, step);
			CHECK(taken == (take < n ? take : n), "round %d, step %d: as many as there are", round, step);
			memmove(model, model + taken, (n - taken) * sizeof(float));
			n -= taken;
		}
	}
}

/* The least items of a heap are where it says, in their order, and stay there. */
static void
test_min_heap_least(void)
{
	static MinHeapItem memory[MOST];

	UnitSeed(6);
	for (int round = 0; round < 400; round++)
	{
		MinHeap		heap = {.items = memory, .capacity = MOST};
		uint32_t	count = UnitRandom() % 60,
					n = UnitRandom() % 20,
					places[MinHeapRoom(20)];
		MinHeapItem found[20];

		for (uint32_t i = 0; i < count; i++)
			MinHeapPush(&heap, UnitRandom() % 50, i);
		CHECK(MinHeapLeast(&heap, n, places) == (n < count ? n : count), "round %d: as many as there are", round);
		n = n < count ? n : count;
		for (uint32_t i = 0; i < n; i++)
			found[i] = heap.items[places[i]];
		CHECK(heap.count == count, "round %d: none taken", round);
		for (uint32_t i = 0; i < n; i++)
		{
			MinHeapItem top = MinHeapPop(&heap);

			CHECK(top.key == found[i].key, "round %d, item %u", round, i);
			CHECK(heap.items[heap.count].value == top.value, "round %d, item %u stays behind", round, i);
		}
	}
}

/* One candidate of the plain list that a pool is compared with. */
typedef struct ModelCandidate
{
	float		distance;
	uint32_t	id;				/* ascending in the order of insertions */
	bool		expanded;
} ModelCandidate;

/* Returns the first waiting one of the least distance, or n. */
static int
model_next(const ModelCandidate *model, int n)
{
	int			next = n;

	for (int i = 0; i < n; i++)
		if (!model[i].expanded && (next == n || model[i].distance < model[next].distance))
			next = i;
	return next;
}

/* Returns the one that makes room: the farthest, a waiting one first, then the last inserted. */
static int
model_farthest(const ModelCandidate *model, int n)
{
	int			last = 0;

	for (int i = 1; i < n; i++)
		if (model[i].distance > model[last].distance ||
			(model[i].distance == model[last].distance && model[i].expanded <= model[last].expanded))
			last = i;
	return last;
}

static int
model_remove(ModelCandidate *model, int n, int i)
{
	memmove(model + i, model + i + 1, (n - i - 1) * sizeof(ModelCandidate));
	return n - 1;
}

/* Memory of the exact size, so that sanitizers see what is beyond. */
static Candidate *
pool_memory(uint32_t capacity)
{
	return malloc(PoolEntries(capacity) * sizeof(Candidate));
}

/* Any order of insertions, removals, expansions and growth. */
static void
test_pool(void)
{
	static const uint32_t capacities[] = {1, 2, 85, 86, 255, 256, 257, 1000};
	static ModelCandidate model[1200];

	UnitSeed(11);
	for (int round = 0; round < 240; round++)
	{
		uint32_t	capacity = capacities[round % 8];
		int			values = round % 3 ? 100000 : 20;
		int			n = 0;
		Candidate  *memory = pool_memory(capacity);
		Candidate  *waiting;
		Pool		pool;

		PoolReset(&pool, memory, capacity);
		for (uint32_t id = 0; id < 3000; id++)
		{
			float		distance = (int) (UnitRandom() % values) - values / 2;
			Candidate	dropped = {0, UINT32_MAX};
			bool		full = n == (int) capacity;
			int			farthest = model_farthest(model, n);
			bool		enters = !full || distance < model[farthest].distance;
			int			next;

			CHECK(PoolThreshold(&pool) == (full ? model[farthest].distance : INFINITY), "threshold");
			CHECK(!PoolInsert(&pool, NAN, id, &dropped) && !PoolInsert(&pool, INFINITY, id, &dropped),
				  "no distance");
			CHECK(PoolInsert(&pool, distance, id, &dropped) == enters, "enters");
			if (enters && full)
			{
				CHECK(dropped.id == (model[farthest].expanded ? UINT32_MAX : model[farthest].id), "dropped");
				n = model_remove(model, n, farthest);
			}
			else
				CHECK(dropped.id == UINT32_MAX, "none dropped");
			if (enters)
				model[n++] = (ModelCandidate) {distance, id, false};
			if (n > 0 && UnitRandom() % 2 == 0)
			{
				int			i = UnitRandom() % n;

				if (!model[i].expanded)
				{
					PoolRemove(&pool, model[i].distance, model[i].id);
					n = model_remove(model, n, i);
				}
			}
			next = model_next(model, n);
			CHECK(PoolHasNext(&pool) == (next < n), "has one that waits");
			if (next < n && UnitRandom() % 4 == 0)
			{
				CHECK(PoolPop(&pool).id == model[next].id, "pop");
				model[next].expanded = true;
			}
			if (id % 1000 == 999)
			{
				Candidate  *larger = pool_memory(capacity += UnitRandom() % 60);

				PoolGrow(&pool, larger, capacity);
				free(memory);
				memory = larger;
			}
			CHECK(PoolCount(&pool) == (uint32_t) n, "count");
		}
		waiting = pool_memory(capacity);
		CHECK(PoolCopyWaiting(&pool, waiting) == pool.nwaiting, "copied");
		CHECK(PoolPeek(&pool, pool.nwaiting) == NULL, "none behind the last");
		for (uint32_t i = 0; i < pool.nwaiting; i++)
			CHECK(PoolPeek(&pool, i)->id == waiting[i].id, "number %u", i);
		for (int next; (next = model_next(model, n)) < n; model[next].expanded = true)
			CHECK(PoolPop(&pool).id == model[next].id, "rest");
		for (uint32_t i = 1; i < pool.nexpanded; i++)
			CHECK(pool.expanded[i - 1].distance <= pool.expanded[i].distance, "order of the others");
		free(waiting);
		free(memory);
	}
}

#define CAPACITY 4096

/* Chunks that lost most of their candidates are packed when no chunk is free. */
static void
test_pool_packed(void)
{
	Candidate  *memory = pool_memory(CAPACITY);
	uint32_t	packed = 0;
	uint32_t	id = 0;
	uint32_t	expected = 0;
	Pool		pool;

	PoolReset(&pool, memory, CAPACITY);
	/* ascending, so that each chunk stays half full */
	for (; id < CAPACITY; id++)
		PoolInsert(&pool, id, id, NULL);
	for (uint32_t i = 0; i < CAPACITY; i++)
		if (i % 16)
			PoolRemove(&pool, i, i);
	for (; PoolCount(&pool) < CAPACITY; id++)
	{
		uint32_t	before = pool.nchunks;

		PoolInsert(&pool, id, id, NULL);
		packed += pool.nchunks < before;
		CHECK(pool.nchunks <= PoolChunks(CAPACITY), "%u chunks", pool.nchunks);
	}
	CHECK(packed > 0, "never packed");
	for (uint32_t i = 0; PoolHasNext(&pool); i++)
	{
		CHECK(PoolPop(&pool).id == expected, "%u of all", i);
		expected += expected < CAPACITY - 16 ? 16 : expected < CAPACITY ? CAPACITY - expected : 1;
	}
	CHECK(pool.nexpanded == CAPACITY, "none lost");
	free(memory);
}

void
SuiteContainers(void)
{
	UnitRun("backlog items", NULL, test_items);
	UnitRun("backlog sort", NULL, test_sort_front);
	UnitRun("backlog sort of a million", NULL, test_sort_orders);
	UnitRun("backlog", NULL, test_backlog);
	UnitRun("heap", NULL, test_min_heap);
	UnitRun("least of a heap", NULL, test_min_heap_least);
	UnitRun("pool", NULL, test_pool);
	UnitRun("pool that is packed", NULL, test_pool_packed);
}
