/*
 * open_index.c
 *		Opening an index that an SQL function is given; see open_index.h.
 */
#include "postgres.h"

#include "access/relation.h"
#include "am/methods.h"
#include "catalog/index.h"
#include "catalog/pg_class.h"
#include "compat.h"
#include "miscadmin.h"
#include "monitor/open_index.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"

static void
check_right(Oid index, Oid table, KnnRight right)
{
	if (right == KNN_RIGHT_OWNER && !QvIsIndexOwner(index, GetUserId()))
		aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_INDEX, get_rel_name(index));
	if (right != KNN_RIGHT_OWNER && pg_class_aclcheck(table, GetUserId(), ACL_SELECT) != ACLCHECK_OK &&
		(right != KNN_RIGHT_SOME ||
		 pg_attribute_aclcheck_all(table, GetUserId(), ACL_SELECT, ACLMASK_ANY) != ACLCHECK_OK))
		aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_TABLE, get_rel_name(table));
}

static void
report_other(Oid oid)
{
	ereport(ERROR,
			(errcode(ERRCODE_WRONG_OBJECT_TYPE),
			 errmsg("\"%s\" is not an index of Quiver", get_rel_name(oid)),
			 errdetail("Its access methods are hnsw, ivfflat, quiver_graph and quiver_ivf.")));
}

static void
report_pgvectors(Relation index)
{
	ereport(ERROR,
			(errcode(ERRCODE_WRONG_OBJECT_TYPE),
			 errmsg("\"%s\" is an index of pgvector", RelationGetRelationName(index)),
			 errdetail("Of indexes of pgvector, Quiver measures the recall only.")));
}

/* Opens an index; pgvectors: those of a stock pgvector, too. */
static Relation
open_index(Oid oid, LOCKMODE lockmode, KnnRight right, bool pgvectors)
{
	Oid			table = IndexGetRelation(oid, true);
	Relation	index;

	/*
	 * the table is locked before the index, as everywhere, until the
	 * transaction ends
	 */
	if (OidIsValid(table))
	{
		check_right(oid, table, right);
		LockRelationOid(table, AccessShareLock);
	}
	else if (get_rel_relkind(oid) != '\0')
		report_other(oid);

	/*
	 * the OID may be that of no relation, and the index may be dropped
	 * meanwhile
	 */
	index = try_relation_open(oid, lockmode);
	if (index == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("could not open relation with OID %u", oid)));

	if (index->rd_rel->relkind == RELKIND_PARTITIONED_INDEX)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is a partitioned index", RelationGetRelationName(index)),
				 errhint("Name an index of one of its partitions.")));
	if (KnnMethodOf(index) == NULL && !KnnIsPgvectors(index))
		report_other(oid);
	if (KnnMethodOf(index) == NULL && !pgvectors)
		report_pgvectors(index);
	if (RELATION_IS_OTHER_TEMP(index))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot access temporary indexes of other sessions")));
	if (!index->rd_index->indisvalid)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("index \"%s\" is not valid", RelationGetRelationName(index)),
				 errdetail("Its build did not finish."),
				 errhint("Drop it, or REINDEX it.")));
	return index;
}

Relation
KnnOpenIndex(Oid oid, LOCKMODE lockmode, KnnRight right)
{
	return open_index(oid, lockmode, right, false);
}

Relation
KnnOpenAnyIndex(Oid oid, LOCKMODE lockmode, KnnRight right)
{
	return open_index(oid, lockmode, right, true);
}
