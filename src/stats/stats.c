/*
 * stats.c
 *		Statistics of searches; see stats.h.
 */
#include "postgres.h"

#include "access/xact.h"
#include "common/hashfn.h"
#include "compat.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "stats/stats.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"
#include "version.h"

#define STATS_NAME "quiver_stats"

/* The places of the table: sets of a few places each. */
#define SETS 128
#define WAYS 8

/*
 * Sets of a table that one session has for itself.  The table is small because a thousand
 * sessions have as many tables.
 */
#define OWN_SETS 16

/* The counts: columns of _quiver_stat(), in order. */
typedef enum Count
{
	COUNT_SEARCHES,
	COUNT_NODES,
	COUNT_NEIGHBORS,
	COUNT_LISTS,
	COUNT_CODES,
	COUNT_RECORDS,
	COUNT_ENTRIES,
	COUNT_REMOVED,
	COUNT_PROPOSED,
	COUNT_FETCHED,
	COUNT_MEASURED,
	COUNTS
} Count;

/*
 * The place of an index.  Index 0 stands for its database: its place stores only when
 * that was reset.
 */
typedef struct Slot
{
	Oid			database;		/* invalid: a free place */
	Oid			index;
	TimestampTz reset;
	pg_atomic_uint64 last;		/* TimestampTz of the last search, or 0 */
	pg_atomic_uint64 counts[COUNTS];
} Slot;

typedef struct Table
{
	LWLock		lock;			/* shared: places stay; exclusive: a place is
								 * taken or reset */
	int			tranche;
	int			sets;
	TimestampTz created;
	Slot		slots[FLEXIBLE_ARRAY_MEMBER];
} Table;

#define TableSize(sets) (offsetof(Table, slots) + (sets) * WAYS * sizeof(Slot))

static Table *table;
static bool table_shared;		/* by the whole server */

/* ---- where the table is ---- */

static void
init_table(Table *new, int sets)
{
	memset(new, 0, TableSize(sets));
	new->sets = sets;
	/* the first search makes the table, and has counted since it began */
	new->created = IsUnderPostmaster ? GetCurrentStatementStartTimestamp() : GetCurrentTimestamp();
	for (int i = 0; i < sets * WAYS; i++)
	{
		Slot	   *slot = &new->slots[i];

		pg_atomic_init_u64(&slot->last, 0);
		for (int j = 0; j < COUNTS; j++)
			pg_atomic_init_u64(&slot->counts[j], 0);
	}
}

/* Initializes a table that sessions share, with a lock. */
static void
init_shared_table(void *at QV_SEGMENT_ARGUMENT)
{
	Table	   *new = at;

	init_table(new, SETS);
	new->tranche = QvNewTranche(STATS_NAME);
	LWLockInitialize(&new->lock, new->tranche);
}

static shmem_request_hook_type previous_request;
static shmem_startup_hook_type previous_startup;

static void
request_table(void)
{
	if (previous_request)
		previous_request();
	RequestAddinShmemSpace(MAXALIGN(TableSize(SETS)));
}

static void
start_table(void)
{
	bool		found;

	if (previous_startup)
		previous_startup();
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	table = ShmemInitStruct(STATS_NAME, TableSize(SETS), &found);
	if (!found)
		init_shared_table(table QV_SEGMENT_NULL);
	LWLockRelease(AddinShmemInitLock);
	QvRegisterTranche(table->tranche, STATS_NAME);
	table_shared = true;
}

void
QvStatsInit(void)
{
	if (!process_shared_preload_libraries_in_progress)
		return;
	previous_request = shmem_request_hook;
	shmem_request_hook = request_table;
	previous_startup = shmem_startup_hook;
	shmem_startup_hook = start_table;
}

/*
 * Finds or makes the segment that sessions share.  Returns NULL if this version of the
 * server has none, or if there is no room for it.
 *
 * A query that is done must not fail for lack of room.  This may run in a parallel
 * worker, where there are no subtransactions, so it releases here what an error leaves
 * behind: pins and lightweight locks.  That is safe because at the end of a scan nothing
 * else holds a lightweight lock.
 */
static Table *
find_segment(void)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner outer = CurrentResourceOwner;
	ResourceOwner owner = ResourceOwnerCreate(outer, "quiver statistics");

	/* other versions of the library may have another table */
	char	   *name = psprintf("%s_%s_%zu", STATS_NAME, QUIVER_VERSION, TableSize(SETS));
	Table	   *volatile shared = NULL;
	volatile bool failed = false;
	bool		found;

	CurrentResourceOwner = owner;
	PG_TRY();
	{
		shared = QvNamedSegment(name, TableSize(SETS), init_shared_table, &found);
	}
	PG_CATCH();
	{
		ErrorData  *error;

		LWLockReleaseAll();
		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		if (error->sqlerrcode == ERRCODE_QUERY_CANCELED)
			ReThrowError(error);
		failed = true;
		ereport(WARNING,
				(errmsg("statistics of searches are kept for this session alone"),
				 errdetail("Their shared memory could not be had: %s", error->message)));
		FreeErrorData(error);
	}
	PG_END_TRY();
	CurrentResourceOwner = outer;
	ResourceOwnerRelease(owner, RESOURCE_RELEASE_BEFORE_LOCKS, !failed, false);
	ResourceOwnerRelease(owner, RESOURCE_RELEASE_LOCKS, !failed, false);
	ResourceOwnerRelease(owner, RESOURCE_RELEASE_AFTER_LOCKS, !failed, false);
	ResourceOwnerDelete(owner);
	pfree(name);
	return shared;
}

/* Returns the table: the server's if there is one, otherwise this session's own. */
static Table *
get_table(void)
{
	if (table)
		return table;
	if (IsUnderPostmaster)
		table = find_segment();
	if (table)
	{
		QvRegisterTranche(table->tranche, STATS_NAME);
		table_shared = true;
	}
	else
	{
		Table	   *own = MemoryContextAlloc(TopMemoryContext, TableSize(OWN_SETS));

		init_table(own, OWN_SETS);
		own->created = MyStartTimestamp;
		table = own;
	}
	return table;
}

/* Locks the table.  A session's own table needs no lock. */
static void
lock_table(Table *t, LWLockMode mode)
{
	if (table_shared)
		LWLockAcquire(&t->lock, mode);
}

static void
unlock_table(Table *t)
{
	if (table_shared)
		LWLockRelease(&t->lock);
}

/* ---- places ---- */

/* Returns the set of places where an index of this database may be. */
static Slot *
set_of(Table *t, Oid index)
{
	return &t->slots[hash_combine(murmurhash32(MyDatabaseId), murmurhash32(index)) % t->sets * WAYS];
}

static Slot *
find(Table *t, Oid index)
{
	Slot	   *set = set_of(t, index);

	for (int i = 0; i < WAYS; i++)
		if (set[i].database == MyDatabaseId && set[i].index == index)
			return &set[i];
	return NULL;
}

/*
 * Returns when a place was used last, or 0 if it is free.  The place of this database is
 * never the oldest.
 */
static uint64
last_use(Slot *slot)
{
	if (!OidIsValid(slot->database))
		return 0;
	/* another database may have been dropped */
	if (!OidIsValid(slot->index))
		return slot->database == MyDatabaseId ? UINT64_MAX : Max(1, slot->reset);
	return Max(1, pg_atomic_read_u64(&slot->last));
}

/*
 * Finds the place of an index, or takes one: a free place, otherwise that of the index in
 * the set that was searched longest ago.  The lock must be held exclusively.
 */
static Slot *
find_or_take(Table *t, Oid index)
{
	Slot	   *set = set_of(t, index);
	Slot	   *slot = find(t, index);

	if (slot)
		return slot;
	slot = &set[0];
	for (int i = 1; i < WAYS && last_use(slot) > 0; i++)
		if (last_use(&set[i]) < last_use(slot))
			slot = &set[i];

	/* what was counted of this index before it had to make room is lost */
	slot->reset = OidIsValid(slot->database) ? GetCurrentTimestamp() : 0;
	slot->database = MyDatabaseId;
	slot->index = index;
	pg_atomic_write_u64(&slot->last, 0);
	for (int j = 0; j < COUNTS; j++)
		pg_atomic_write_u64(&slot->counts[j], 0);
	return slot;
}

void
QvStatsAdd(Oid index, int64 searches, const QvStreamCounters *rows, const QvScanCounters *read)
{
	int64		counts[COUNTS] = {
		[COUNT_SEARCHES] = searches,
		[COUNT_NODES] = read->nodes,
		[COUNT_NEIGHBORS] = read->neighbors,
		[COUNT_LISTS] = read->lists,
		[COUNT_CODES] = read->codes,
		[COUNT_RECORDS] = read->records,
		[COUNT_ENTRIES] = read->entries,
		[COUNT_REMOVED] = read->removed,
		[COUNT_PROPOSED] = rows->proposed,
		[COUNT_FETCHED] = rows->fetched,
		[COUNT_MEASURED] = rows->measured
	};
	Table	   *t;
	Slot	   *slot;

	t = get_table();
	lock_table(t, LW_SHARED);
	slot = find(t, index);
	if (slot == NULL)
	{
		unlock_table(t);
		lock_table(t, LW_EXCLUSIVE);
		slot = find_or_take(t, index);
	}
	for (int i = 0; i < COUNTS; i++)
		if (counts[i] != 0)
			pg_atomic_fetch_add_u64(&slot->counts[i], counts[i]);
	/* a statement may have begun before the counts were reset */
	pg_atomic_write_u64(&slot->last, Max(GetCurrentStatementStartTimestamp(), slot->reset));
	unlock_table(t);
}

/* ---- SQL functions ---- */

/* Columns of _quiver_stat() around the counts. */
#define STAT_BEFORE 2			/* index, scope */
#define STAT_COLUMNS (STAT_BEFORE + COUNTS + 2)

/*
 * _quiver_stat(): a row for each index of this database that was searched.  A row of index
 * 0 says since when there are statistics.
 */
PG_FUNCTION_INFO_V1(quiver_stat);
Datum
quiver_stat(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	Table	   *t = get_table();
	Table	   *copy = palloc(TableSize(t->sets));
	Slot	   *all;
	TimestampTz since;
	Slot		whole = {.database = MyDatabaseId};

	InitMaterializedSRF(fcinfo, 0);
	lock_table(t, LW_SHARED);
	memcpy(copy, t, TableSize(t->sets));
	unlock_table(t);
	all = find(copy, InvalidOid);
	since = all && all->reset > copy->created ? all->reset : copy->created;
	if (all == NULL)
		all = &whole;
	for (int i = -1; i < copy->sets * WAYS; i++)
	{
		const Slot *slot = i < 0 ? all : &copy->slots[i];
		Datum		values[STAT_COLUMNS];
		bool		nulls[STAT_COLUMNS] = {0};
		int			n = 0;
		uint64		last = pg_atomic_read_u64((pg_atomic_uint64 *) &slot->last);

		if (slot->database != MyDatabaseId || (i >= 0 && !OidIsValid(slot->index)))
			continue;
		values[n++] = ObjectIdGetDatum(slot->index);
		values[n++] = CStringGetTextDatum(table_shared ? "server" : "session");
		for (int j = 0; j < COUNTS; j++)
			values[n++] = Int64GetDatum(pg_atomic_read_u64((pg_atomic_uint64 *) &slot->counts[j]));
		nulls[n] = (TimestampTz) last < slot->reset || last == 0;
		values[n++] = TimestampTzGetDatum(last);
		values[n++] = TimestampTzGetDatum(Max(since, slot->reset));
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}

static void
reset_slot(Slot *slot, TimestampTz now)
{
	for (int j = 0; j < COUNTS; j++)
		pg_atomic_write_u64(&slot->counts[j], 0);
	slot->reset = now;
}

/*
 * quiver_stat_reset(regclass): begins the statistics of an index again, or those of all
 * in this database (NULL).
 */
PG_FUNCTION_INFO_V1(quiver_stat_reset);
Datum
quiver_stat_reset(PG_FUNCTION_ARGS)
{
	Table	   *t = get_table();
	TimestampTz now = GetCurrentTimestamp();

	lock_table(t, LW_EXCLUSIVE);
	if (!PG_ARGISNULL(0))
		reset_slot(find_or_take(t, PG_GETARG_OID(0)), now);
	else
	{
		for (int i = 0; i < t->sets * WAYS; i++)
			if (t->slots[i].database == MyDatabaseId)
				reset_slot(&t->slots[i], now);
		reset_slot(find_or_take(t, InvalidOid), now);
	}
	unlock_table(t);
	PG_RETURN_VOID();
}
