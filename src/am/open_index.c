/*
 * open_index.c
 *		Opening an index that an SQL function is given; see open_index.h.
 */
#include "postgres.h"

#include "access/relation.h"
#include "am/graph_am.h"
#include "am/ivf_am.h"
#include "am/open_index.h"
#include "catalog/index.h"
#include "catalog/pg_class.h"
#include "compat.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"

static void
check_right(Oid index, Oid table, KnnRight right)
{
	if (right == KNN_RIGHT_OWNER && !QvIsIndexOwner(index, GetUserId()))
		aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_INDEX, get_rel_name(index));
	if (right == KNN_RIGHT_SELECT && pg_class_aclcheck(table, GetUserId(), ACL_SELECT) != ACLCHECK_OK)
		aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_TABLE, get_rel_name(table));
}

Relation
KnnOpenIndex(Oid oid, LOCKMODE lockmode, KnnRight right)
{
	Oid			table = IndexGetRelation(oid, true);
	Relation	index;

	/* the table first, as everyone locks them; until the transaction ends */
	if (OidIsValid(table))
	{
		check_right(oid, table, right);
		LockRelationOid(table, AccessShareLock);
	}
	index = relation_open(oid, lockmode);

	if (index->rd_rel->relkind == RELKIND_PARTITIONED_INDEX)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is a partitioned index", RelationGetRelationName(index)),
				 errhint("Name an index of one of its partitions.")));
	if (!IsGraphIndex(index) && !IsIvfIndex(index))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not an index of Quiver",
						RelationGetRelationName(index)),
				 errdetail("Its access methods are hnsw, ivfflat, quiver_graph and quiver_ivf.")));
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
