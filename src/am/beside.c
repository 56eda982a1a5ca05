/*
 * beside.c
 *		Living in one database, and one process, with a stock pgvector.
 *
 * See "Beside pgvector" in the README of this folder.
 */
#include "postgres.h"

#include <unistd.h>

#include "access/amapi.h"
#include "access/htup_details.h"
#include "access/parallel.h"
#include "access/xact.h"
#include "am/beside.h"
#include "catalog/pg_am.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/syscache.h"

#define OUR_LIBRARY "quiver"
#define PGVECTOR_LIBRARY "vector"

/* Whether a pg_proc.probin such as "$libdir/vector" names that library. */
static bool
names_library(const char *probin, const char *library)
{
	const char *name = last_dir_separator(probin);
	size_t		length = strlen(library);

	name = name ? name + 1 : probin;
	return strncmp(name, library, length) == 0 &&
		(name[length] == '\0' || strcmp(name + length, DLSUFFIX) == 0);
}

char *
QvFunctionLibrary(Oid function, char **symbol)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	char	   *library = NULL;
	Datum		value;
	bool		isnull;

	if (!HeapTupleIsValid(tuple))
		return NULL;
	if (((Form_pg_proc) GETSTRUCT(tuple))->prolang == ClanguageId)
	{
		value = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_probin, &isnull);
		if (!isnull)
			library = TextDatumGetCString(value);
		value = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_prosrc, &isnull);
		if (symbol && !isnull)
			*symbol = TextDatumGetCString(value);
	}
	ReleaseSysCache(tuple);
	return library;
}

char *
QvSharedSymbol(Oid function)
{
	char	   *symbol = NULL;
	char	   *library = QvFunctionLibrary(function, &symbol);
	bool		shared = library && (names_library(library, OUR_LIBRARY) ||
									 names_library(library, PGVECTOR_LIBRARY));

	/* an insert asks for each row */
	if (library)
		pfree(library);
	if (shared || symbol == NULL)
		return symbol;
	pfree(symbol);
	return NULL;
}

/* Whether this database's access method of that name is ours. */
static bool
access_method_is_ours(const char *name)
{
	HeapTuple	tuple = SearchSysCache1(AMNAME, CStringGetDatum(name));
	Oid			handler;
	char	   *library;

	if (!HeapTupleIsValid(tuple))
		return false;
	handler = ((Form_pg_am) GETSTRUCT(tuple))->amhandler;
	ReleaseSysCache(tuple);
	library = QvFunctionLibrary(handler, NULL);
	return library && names_library(library, OUR_LIBRARY);
}

bool
QvMayDefineAtLoad(const char *access_method)
{
	char		path[MAXPGPATH];

	if (IsTransactionState() && OidIsValid(MyDatabaseId))
		return access_method_is_ours(access_method);
	/* preloaded: for all databases */
	snprintf(path, sizeof(path), "%s/%s%s", pkglib_path, PGVECTOR_LIBRARY, DLSUFFIX);
	return access(path, F_OK) != 0;
}

bool
QvMayDefine(const char *setting)
{
	/* a value that was set before would be set again, which is refused */
	if (IsInParallelMode())
		return false;
	return GetConfigOption(setting, true, false) == NULL ||
		(GetConfigOptionFlags(setting, true) & GUC_CUSTOM_PLACEHOLDER);
}
