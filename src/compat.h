/*
 * compat.h
 *		Every difference between the supported server versions, 15 to 19.
 *		No other file tests PG_VERSION_NUM.
 */
#ifndef QV_COMPAT_H
#define QV_COMPAT_H

#include "postgres.h"

#include "access/amapi.h"
#include "access/genam.h"
#include "access/reloptions.h"
#include "commands/vacuum.h"
#include "nodes/pathnodes.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "utils/guc.h"
#include "utils/rel.h"

#if PG_VERSION_NUM < 150000
#error "Quiver needs PostgreSQL 15 or later"
#endif

/*
 * A place where a test may stop a backend or make it fail, by name.  It does nothing
 * unless the server was built with injection points, which is possible since 17.  The
 * engine's README names the WAL record before each point.  Where a buffer is locked, a
 * stopped backend cannot be canceled, and other backends that need the page wait for it.
 */
#if PG_VERSION_NUM >= 170000 && defined(USE_INJECTION_POINTS)
#include "utils/injection_point.h"
#if PG_VERSION_NUM >= 180000
#define QvInjectionPoint(name) INJECTION_POINT(name, NULL)
#else
#define QvInjectionPoint(name) INJECTION_POINT(name)
#endif
#else
#define QvInjectionPoint(name) ((void) 0)
#endif

/* The varlena macros have had their own header since 16. */
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

/* In 18 the attribute of functions that do not return moved to the front. */
#if PG_VERSION_NUM < 180000
#define pg_noreturn pg_attribute_noreturn()
#endif

/*
 * Since 16 input functions report soft errors.  Returns dummy if escontext saves the
 * error, otherwise raises it.
 */
#if PG_VERSION_NUM >= 160000
#include "nodes/miscnodes.h"
#define QvEreturn(escontext, dummy, ...) \
	ereturn(escontext, dummy, __VA_ARGS__)
#else
#define QvEreturn(escontext, dummy, ...) \
	do { \
		(void) (escontext); \
		ereport(ERROR, __VA_ARGS__); \
		return dummy; \
	} while (0)
#endif

/* RelFileNode became RelFileLocator in 16. */
#if PG_VERSION_NUM >= 160000
#include "storage/relfilelocator.h"
typedef RelFileLocator QvRelLocator;
#define QvRelationLocator(rel) ((rel)->rd_locator)
#define QvRelLocatorEquals(a, b) RelFileLocatorEquals(a, b)
#define QvRelationNumber(rel) ((rel)->rd_locator.relNumber)
#define QvBufferTagRelNumber(tag) BufTagGetRelNumber(&(tag))
#define QvBufferTagTablespace(tag) ((tag).spcOid)
#define QvBufferTagDatabase(tag) ((tag).dbOid)
#else
#include "storage/relfilenode.h"
typedef RelFileNode QvRelLocator;
#define QvRelationLocator(rel) ((rel)->rd_node)
#define QvRelLocatorEquals(a, b) RelFileNodeEquals(a, b)
#define QvRelationNumber(rel) ((rel)->rd_node.relNode)
#define QvBufferTagRelNumber(tag) ((tag).rnode.relNode)
#define QvBufferTagTablespace(tag) ((tag).rnode.spcNode)
#define QvBufferTagDatabase(tag) ((tag).rnode.dbNode)
#endif

/* Since 18 vacuum_delay_point() has an argument: whether ANALYZE calls it. */
#if PG_VERSION_NUM >= 180000
#define QvVacuumDelayPoint() vacuum_delay_point(false)
#else
#define QvVacuumDelayPoint() vacuum_delay_point()
#endif

/* ExtendBufferedRel() replaced P_NEW under the extension lock in 16. */
static inline Buffer
QvExtendRelation(Relation rel, ForkNumber fork)
{
#if PG_VERSION_NUM >= 160000
	return ExtendBufferedRel(BMR_REL(rel), fork, NULL, EB_LOCK_FIRST);
#else
	Buffer		buf;
	bool		need_lock = !RELATION_IS_LOCAL(rel);

	if (need_lock)
		LockRelationForExtension(rel, ExclusiveLock);
	buf = ReadBufferExtended(rel, fork, P_NEW, RBM_ZERO_AND_LOCK, NULL);
	if (need_lock)
		UnlockRelationForExtension(rel, ExclusiveLock);
	return buf;
#endif
}

/*
 * Makes a path the planner's last resort.  18 counts the disabled nodes of a path, so a
 * high cost alone does not suffice.
 */
static inline void
QvDisablePath(Path *path)
{
#if PG_VERSION_NUM >= 180000
	path->disabled_nodes = 2;
#endif
}

/* Added to the cost of a path that takes the place of a disabled one; 18 has counted that one. */
#if PG_VERSION_NUM >= 180000
#define QvDisabledCost(enabled) 0
#else
#define QvDisabledCost(enabled) ((enabled) ? 0 : disable_cost)
#endif

/* Expressions of a relation, as those of its child; what relations are given by changed in 16. */
#include "optimizer/appendinfo.h"
#if PG_VERSION_NUM >= 160000
#define QvAdjustToChild(root, exprs, child) \
	adjust_appendrel_attrs_multilevel(root, (Node *) (exprs), child, (child)->top_parent)
#else
#define QvAdjustToChild(root, exprs, child) \
	adjust_appendrel_attrs_multilevel(root, (Node *) (exprs), (child)->relids, (child)->top_parent_relids)
#endif

/* Count a path of a disabled kind as such, since 18. */
static inline void
QvCountDisabled(Path *path, bool enabled)
{
#if PG_VERSION_NUM >= 180000
	path->disabled_nodes = enabled ? 0 : 1;
#endif
}

/* A path above another one counts the same disabled nodes. */
static inline void
QvCopyDisabled(Path *path, const Path *below)
{
#if PG_VERSION_NUM >= 180000
	path->disabled_nodes = below->disabled_nodes;
#endif
}

/* Has a column no NULL, by its constraints?  One that is not valid says nothing, since 18. */
#if PG_VERSION_NUM >= 170000
#define QvColumnIsNotNull(table, rel, attribute) bms_is_member(attribute, (rel)->notnullattnums)
#else
#include "access/htup_details.h"
#include "catalog/pg_attribute.h"
#include "utils/syscache.h"
static inline bool
QvColumnIsNotNull(Oid table, const RelOptInfo *rel, AttrNumber attribute)
{
	HeapTuple	tuple = SearchSysCache2(ATTNUM, ObjectIdGetDatum(table), Int16GetDatum(attribute));
	bool		result = HeapTupleIsValid(tuple) && ((Form_pg_attribute) GETSTRUCT(tuple))->attnotnull;

	if (HeapTupleIsValid(tuple))
		ReleaseSysCache(tuple);
	return result;
}
#endif

/*
 * Joins keep this order.  Since 19 the planner keeps only what the sort or another step of the
 * query asks for.  The query must have no window functions: their keys name the order.
 */
#if PG_VERSION_NUM >= 190000
#define QvKeepOrder(root, keys) ((root)->query_pathkeys = (root)->window_pathkeys = (keys))
#else
#define QvKeepOrder(root, keys) ((root)->query_pathkeys = (keys))
#endif

/* The direction of a path key became a comparison type in 18. */
#if PG_VERSION_NUM >= 180000
#define QvPathKeyAscends(key) ((key)->pk_cmptype == COMPARE_LT)
#else
#include "access/stratnum.h"
#define QvPathKeyAscends(key) ((key)->pk_strategy == BTLessStrategyNumber)
#endif

/*
 * Visits the members of an equivalence class, and since 18 also those of children with
 * these relids, which are kept separately.
 */
#if PG_VERSION_NUM >= 180000
#include "optimizer/paths.h"
#define QvForeachMember(member, eclass, relids) \
	for (EquivalenceMemberIterator members_, *it_ = \
		 (setup_eclass_member_iterator(&members_, eclass, relids), &members_); \
		 ((member) = eclass_member_iterator_next(it_)) != NULL;)
#else
#define QvForeachMember(member, eclass, relids) \
	for (int i_ = 0; i_ < list_length((eclass)->ec_members) && \
		 ((member) = list_nth((eclass)->ec_members, i_)) != NULL; i_++)
#endif

/*
 * Outer joins have numbers among a query's relations since 16, and their clauses may be there
 * more than once.
 */
#if PG_VERSION_NUM >= 160000
#define QvAllQueryRels(root) ((root)->all_query_rels)
#define QvIsNullable(root, rel) false
#define QvAddOuterJoin(relids, join) \
	((join)->ojrelid != 0 ? bms_add_member(relids, (join)->ojrelid) : (relids))
#define QvIsClone(info) ((info)->is_clone)
#define QvImpliedEqualities(root, joined, outer, inner, join) \
	generate_join_implied_equalities(root, joined, outer, inner, join)
#else
#define QvAllQueryRels(root) ((root)->all_baserels)
#define QvIsNullable(root, rel) \
	bms_overlap((rel)->top_parent_relids ? (rel)->top_parent_relids : (rel)->relids, (root)->nullable_baserels)
#define QvAddOuterJoin(relids, join) (relids)
#define QvIsClone(info) false
#define QvImpliedEqualities(root, joined, outer, inner, join) \
	generate_join_implied_equalities(root, joined, outer, inner)
#endif

/*
 * Visits the blocks of a TIDBitmap.  Since 18 the heap TIDs of a block that is not lossy
 * are returned by a function of their own.
 */
#include "nodes/tidbitmap.h"
#if PG_VERSION_NUM >= 180000
typedef TBMPrivateIterator QvBitmapIterator;
typedef TBMIterateResult QvBitmapBlock;
#define QvBitmapBegin(bitmap) tbm_begin_private_iterate(bitmap)
#define QvBitmapEnd(iterator) tbm_end_private_iterate(iterator)
#define QvBitmapNext(iterator, block) tbm_private_iterate(iterator, block)
#define QvBitmapIsLossy(block) ((block)->lossy)
static inline int
QvBitmapOffsets(QvBitmapBlock *block, OffsetNumber *offsets, int max)
{
	return tbm_extract_page_tuple(block, offsets, max);
}
#else
typedef TBMIterator QvBitmapIterator;
typedef struct QvBitmapBlock
{
	BlockNumber blockno;
	TBMIterateResult *result;
} QvBitmapBlock;
#define QvBitmapBegin(bitmap) tbm_begin_iterate(bitmap)
#define QvBitmapEnd(iterator) tbm_end_iterate(iterator)
#define QvBitmapIsLossy(block) ((block)->result->ntuples < 0)
static inline bool
QvBitmapNext(QvBitmapIterator *iterator, QvBitmapBlock *block)
{
	block->result = tbm_iterate(iterator);
	if (block->result)
		block->blockno = block->result->blockno;
	return block->result != NULL;
}
static inline int
QvBitmapOffsets(QvBitmapBlock *block, OffsetNumber *offsets, int max)
{
	int			n = Min(block->result->ntuples, max);

	memcpy(offsets, block->result->offsets, n * sizeof(OffsetNumber));
	return n;
}
#endif

/* Since 16 what a check hook keeps is allocated by guc_malloc(). */
#if PG_VERSION_NUM >= 160000
#define QvGucAlloc(size) guc_malloc(LOG, size)
#else
#define QvGucAlloc(size) malloc(size)
#endif

/*
 * A named segment of shared memory, for which nothing had to be preloaded.  NULL before
 * 17.
 */
#if PG_VERSION_NUM >= 190000
#include "storage/dsm_registry.h"
#define QvNamedSegment(name, size, init, found) GetNamedDSMSegment(name, size, init, found, NULL)
#elif PG_VERSION_NUM >= 170000
#include "storage/dsm_registry.h"
#define QvNamedSegment(name, size, init, found) GetNamedDSMSegment(name, size, init, found)
#else
#define QvNamedSegment(name, size, init, found) ((void) (name), (void) (found), (void *) NULL)
#endif

/* The function that initializes a segment has a second argument since 19. */
#if PG_VERSION_NUM >= 190000
#define QV_SEGMENT_ARGUMENT , void *unused
#define QV_SEGMENT_NULL , NULL
#else
#define QV_SEGMENT_ARGUMENT
#define QV_SEGMENT_NULL
#endif

/* Since 19 a tranche has its name from the start, and no backend registers it. */
#if PG_VERSION_NUM >= 190000
#define QvNewTranche(name) LWLockNewTrancheId(name)
#define QvRegisterTranche(tranche, name) ((void) (tranche))
#else
#define QvNewTranche(name) LWLockNewTrancheId()
#define QvRegisterTranche(tranche, name) LWLockRegisterTranche(tranche, name)
#endif

/* Since 17 code that runs with another role's rights has a search path of its own. */
#if PG_VERSION_NUM >= 170000
#define QvRestrictSearchPath() RestrictSearchPath()
#else
#define QvRestrictSearchPath() ((void) 0)
#endif

/* Since 16 relations are found by number, not by node. */
#if PG_VERSION_NUM >= 160000
#include "utils/relfilenumbermap.h"
#define QvRelationByNumber(tablespace, number) RelidByRelfilenumber(tablespace, number)
#else
#include "utils/relfilenodemap.h"
#define QvRelationByNumber(tablespace, number) RelidByRelfilenode(tablespace, number)
#endif

/* Headers of EXPLAIN that are new in 18. */
#include "commands/explain.h"
#if PG_VERSION_NUM >= 180000
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#endif

/* In 16 the checks of ownership became one function. */
#if PG_VERSION_NUM >= 160000
#include "utils/acl.h"
#include "catalog/pg_class.h"
#define QvIsIndexOwner(oid, user) object_ownercheck(RelationRelationId, oid, user)
#else
#include "utils/acl.h"
#define QvIsIndexOwner(oid, user) pg_class_ownercheck(oid, user)
#endif

/* Counts an index search for EXPLAIN, since 18. */
#if PG_VERSION_NUM >= 180000
#define QvCountIndexSearch(scan) \
	do { \
		if ((scan)->instrument) \
			(scan)->instrument->nsearches++; \
	} while (0)
#else
#define QvCountIndexSearch(scan) ((void) 0)
#endif

/*
 * Up to 16, with old_snapshot_threshold, VACUUM may remove rows that a snapshot of that
 * age still sees.  This raises the error in that case.  It must be called after a search
 * and before a row is returned, because an index without the row leads to no page of the
 * table that would raise it.
 */
#if PG_VERSION_NUM < 170000
#include "utils/snapmgr.h"
static inline void
QvTestForOldSnapshot(Snapshot snapshot, Relation index)
{
	if (old_snapshot_threshold >= 0 && !XLogRecPtrIsInvalid(snapshot->lsn))
		TestForOldSnapshot_impl(snapshot, index);
}

/* May VACUUM remove rows that a snapshot still sees? */
#define QvSnapshotsAge() (old_snapshot_threshold >= 0)
#else
#define QvTestForOldSnapshot(snapshot, index) ((void) 0)
#define QvSnapshotsAge() false
#endif

/* Since 18 a scan of an index can count its descents for EXPLAIN. Since 19 it has flags. */
#if PG_VERSION_NUM >= 190000
#define QvIndexBeginScan(table, index, snapshot, nkeys) \
	index_beginscan(table, index, snapshot, NULL, nkeys, 0, SO_NONE)
#elif PG_VERSION_NUM >= 180000
#define QvIndexBeginScan(table, index, snapshot, nkeys) \
	index_beginscan(table, index, snapshot, NULL, nkeys, 0)
#else
#define QvIndexBeginScan(table, index, snapshot, nkeys) \
	index_beginscan(table, index, snapshot, nkeys, 0)
#endif

/* Since 19 scans of tables, too, have flags, and so have the slots of scans. */
#include "access/tableam.h"
#if PG_VERSION_NUM >= 190000
#define QvTableBeginScan(table, snapshot) table_beginscan(table, snapshot, 0, NULL, SO_NONE)
#define QvTableBeginParallel(table, scan) table_beginscan_parallel(table, scan, SO_NONE)
#define QvTableFetchBegin(table) table_index_fetch_begin(table, SO_NONE)
#define QvInitScanTupleSlot(estate, scan, desc, ops) ExecInitScanTupleSlot(estate, scan, desc, ops, 0)
#else
#define QvTableBeginScan(table, snapshot) table_beginscan(table, snapshot, 0, NULL)
#define QvTableBeginParallel(table, scan) table_beginscan_parallel(table, scan)
#define QvTableFetchBegin(table) table_index_fetch_begin(table)
#define QvInitScanTupleSlot(estate, scan, desc, ops) ExecInitScanTupleSlot(estate, scan, desc, ops)
#endif

/*
 * The page that a fetch has pinned.  Since 19 its block is beside it, and pruning may pin a
 * page of the visibility map, which the end of the fetch releases.
 */
#include "access/heapam.h"
static inline void
QvSetFetchBuffer(IndexFetchHeapData *fetch, Buffer buf, BlockNumber block)
{
	fetch->xs_cbuf = buf;
#if PG_VERSION_NUM >= 190000
	fetch->xs_blk = block;
#endif
}
#if PG_VERSION_NUM >= 190000
#define QvPagePrune(fetch, buf) \
	heap_page_prune_opt((fetch)->xs_base.rel, buf, &(fetch)->xs_vmbuffer, false)
#else
#define QvPagePrune(fetch, buf) heap_page_prune_opt((fetch)->xs_base.rel, buf)
#endif

/* The state of a buffer, 64 bits since 19.  The callers include storage/buf_internals.h. */
#if PG_VERSION_NUM >= 190000
typedef uint64 QvBufferState;
#define QvReadBufferState(buffer) pg_atomic_read_u64(&(buffer)->state)
#define QvExchangeBufferState(buffer, old, new) \
	pg_atomic_compare_exchange_u64(&(buffer)->state, old, new)
#else
typedef uint32 QvBufferState;
#define QvReadBufferState(buffer) pg_atomic_read_u32(&(buffer)->state)
#define QvExchangeBufferState(buffer, old, new) \
	pg_atomic_compare_exchange_u32(&(buffer)->state, old, new)
#endif

/* A handler returns a routine that the server frees, or since 19, one that stays. */
#if PG_VERSION_NUM >= 190000
#define QvRoutineToReturn(routine) (routine)
#else
static inline IndexAmRoutine *
QvRoutineToReturn(const IndexAmRoutine *routine)
{
	IndexAmRoutine *copy = palloc(sizeof(IndexAmRoutine));

	*copy = *routine;
	return copy;
}
#endif

/* The hook that may change what the planner knows of a table, its indexes above all. */
#if PG_VERSION_NUM >= 190000
#include "optimizer/pathnode.h"
typedef build_simple_rel_hook_type QvRelationHook;
#define qv_relation_hook build_simple_rel_hook
#define QV_RELATION_HOOK_PARAMETERS PlannerInfo *root, RelOptInfo *rel, RangeTblEntry *rte
#define QV_RELATION_HOOK_ARGUMENTS root, rel, rte
#define QV_RELATION_HOOK_TABLE ((rte)->relid)
#else
#include "optimizer/plancat.h"
typedef get_relation_info_hook_type QvRelationHook;
#define qv_relation_hook get_relation_info_hook
#define QV_RELATION_HOOK_PARAMETERS PlannerInfo *root, Oid table, bool inhparent, RelOptInfo *rel
#define QV_RELATION_HOOK_ARGUMENTS root, table, inhparent, rel
#define QV_RELATION_HOOK_TABLE (table)
#endif

/* Since 19 a descriptor of rows is finished by a call. */
#include "access/tupdesc.h"
#if PG_VERSION_NUM >= 190000
#define QvTupleDescFinalize(desc) TupleDescFinalize(desc)
#else
#define QvTupleDescFinalize(desc) ((void) (desc))
#endif

/* Since 16 stringToQualifiedNameList() can report soft errors. */
#include "utils/regproc.h"
#if PG_VERSION_NUM >= 160000
#define QvQualifiedNameList(text) stringToQualifiedNameList(text, NULL)
#else
#define QvQualifiedNameList(text) stringToQualifiedNameList(text)
#endif

/*
 * The workers that a build may have.  17 asks every access method that says that it can
 * use workers; before 17, the server asks btree only.
 */
#if PG_VERSION_NUM >= 170000
#define QvSetBuildsInParallel(am) ((am)->amcanbuildparallel = true)
#define QvBuildWorkers(heap, index, info) ((info)->ii_ParallelWorkers)
#else
#include "optimizer/optimizer.h"
#define QvSetBuildsInParallel(am) ((void) (am))
#define QvBuildWorkers(heap, index, info) \
	plan_create_index_workers(RelationGetRelid(heap), RelationGetRelid(index))
#endif

/* Since 18 a hash table of tuples needs the kind of its slots. */
#include "executor/executor.h"
static inline TupleHashTable
QvBuildTupleHash(PlanState *parent, TupleDesc desc, const TupleTableSlotOps *ops, int ncolumns,
				 AttrNumber *columns, Oid *equal, FmgrInfo *hash, Oid *collations, long nbuckets,
				 MemoryContext meta, MemoryContext table, MemoryContext temporary)
{
#if PG_VERSION_NUM >= 180000
	return BuildTupleHashTable(parent, desc, ops, ncolumns, columns, equal, hash, collations, nbuckets, 0,
							   meta, table, temporary, false);
#else
	return BuildTupleHashTableExt(parent, desc, ncolumns, columns, equal, hash, collations, nbuckets, 0,
								  meta, table, temporary, false);
#endif
}

/*
 * Plans and explains a query as PostgreSQL itself does.  The function is exported since 17.
 */
#include "commands/explain.h"
#if PG_VERSION_NUM >= 170000
#define QvExplainOneQuery standard_ExplainOneQuery
#else
#include "portability/instr_time.h"
#include "tcop/tcopprot.h"
static inline void
QvExplainOneQuery(Query *query, int cursor_options, IntoClause *into, ExplainState *es,
				  const char *sql, ParamListInfo params, QueryEnvironment *environment)
{
	PlannedStmt *plan;
	instr_time	duration;
	instr_time	started;
	BufferUsage before = pgBufferUsage;
	BufferUsage used = {0};

	INSTR_TIME_SET_CURRENT(started);
	plan = pg_plan_query(query, sql, cursor_options, params);
	INSTR_TIME_SET_CURRENT(duration);
	INSTR_TIME_SUBTRACT(duration, started);
	BufferUsageAccumDiff(&used, &pgBufferUsage, &before);
	ExplainOnePlan(plan, into, es, sql, params, environment, &duration, es->buffers ? &used : NULL);
}
#endif

/* In 17 the test for an autovacuum worker got another name. */
#if PG_VERSION_NUM < 170000
#define AmAutoVacuumWorkerProcess() IsAutoVacuumWorkerProcess()
#endif

/* Number of pathkeys of GROUP BY.  Since 16 those of an aggregate's own order may follow. */
static inline int
QvGroupKeys(const PlannerInfo *root)
{
#if PG_VERSION_NUM >= 160000
	return root->num_groupby_pathkeys;
#else
	return list_length(root->group_pathkeys);
#endif
}

#endif							/* QV_COMPAT_H */
