/*
 * rest.c
 *		The rows that a long scan has left; see rest.h.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/tuptable.h"
#include "ivf/search/rest.h"
#include "miscadmin.h"
#include "utils/typcache.h"

/* Columns of a sort. */
enum
{
	REST_DISTANCE = 1,
	REST_TID,
	REST_ERROR,
	REST_COLUMNS = REST_ERROR
};

/* A sort by two columns. */
static Tuplesortstate *
begin_sort(const IvfRest *rest, AttrNumber first, AttrNumber second)
{
	TupleDesc	desc = rest->in->tts_tupleDescriptor;
	AttrNumber	keys[] = {first, second};
	Oid			operators[lengthof(keys)];
	Oid			collations[lengthof(keys)] = {0};
	bool		nulls_first[lengthof(keys)] = {0};

	for (int i = 0; i < lengthof(keys); i++)
		operators[i] = lookup_type_cache(TupleDescAttr(desc, keys[i] - 1)->atttypid,
										 TYPECACHE_LT_OPR)->lt_opr;
	return tuplesort_begin_heap(desc, lengthof(keys), keys, operators, collations, nulls_first,
								rest->memory, NULL, TUPLESORT_NONE);
}

IvfRest *
IvfRestBegin(uint32 room, Size max_memory)
{
	IvfRest    *rest = palloc0(sizeof(IvfRest));
	TupleDesc	desc = CreateTemplateTupleDesc(REST_COLUMNS);

	TupleDescInitEntry(desc, REST_DISTANCE, "distance", FLOAT4OID, -1, 0);
	TupleDescInitEntry(desc, REST_TID, "tid", TIDOID, -1, 0);
	TupleDescInitEntry(desc, REST_ERROR, "error", FLOAT4OID, -1, 0);
	rest->in = MakeSingleTupleTableSlot(desc, &TTSOpsVirtual);
	rest->out = MakeSingleTupleTableSlot(desc, &TTSOpsMinimalTuple);
	rest->memory = Min(max_memory / 1024, MAX_KILOBYTES);
	rest->sort = begin_sort(rest, REST_DISTANCE, REST_TID);
	rest->room = room;
	rest->added = palloc(room * sizeof(IvfWindowRow));
	return rest;
}

static void
put_row(IvfRest *rest, Tuplesortstate *sort, IvfWindowRow *row)
{
	ExecClearTuple(rest->in);
	rest->in->tts_values[REST_DISTANCE - 1] = Float4GetDatum(row->distance);
	rest->in->tts_values[REST_TID - 1] = PointerGetDatum(&row->tid);
	rest->in->tts_values[REST_ERROR - 1] = Float4GetDatum(row->error);
	memset(rest->in->tts_isnull, false, REST_COLUMNS * sizeof(bool));
	ExecStoreVirtualTuple(rest->in);
	tuplesort_puttupleslot(sort, rest->in);
}

static bool
get_row(IvfRest *rest, Tuplesortstate *sort, IvfWindowRow *row)
{
	bool		isnull;

	if (!tuplesort_gettupleslot(sort, true, false, rest->out, NULL))
		return false;
	row->distance = DatumGetFloat4(slot_getattr(rest->out, REST_DISTANCE, &isnull));
	row->tid = *(ItemPointer) DatumGetPointer(slot_getattr(rest->out, REST_TID, &isnull));
	row->error = DatumGetFloat4(slot_getattr(rest->out, REST_ERROR, &isnull));
	row->rank = 0;
	return true;
}

void
IvfRestKeep(IvfRest *rest)
{
	for (uint32 i = 0; i < rest->nadded; i++)
		put_row(rest, rest->sort, &rest->added[i]);
	rest->nadded = 0;
}

/* Sort the rows of the sort that there is by these columns instead, without doubles. */
static void
sort_anew(IvfRest *rest, AttrNumber first, AttrNumber second)
{
	Tuplesortstate *sort = begin_sort(rest, first, second);
	IvfWindowRow row;
	ItemPointerData last;

	ItemPointerSetInvalid(&last);
	tuplesort_performsort(rest->sort);
	while (get_row(rest, rest->sort, &row))
	{
		CHECK_FOR_INTERRUPTS();
		if (ItemPointerCompare(&row.tid, &last) != 0)
			put_row(rest, sort, &row);
		last = row.tid;
	}
	ExecClearTuple(rest->out);
	tuplesort_end(rest->sort);
	rest->sort = sort;
}

void
IvfRestSort(IvfRest *rest, bool doubles)
{
	if (doubles)
	{
		sort_anew(rest, REST_TID, REST_DISTANCE);
		sort_anew(rest, REST_DISTANCE, REST_TID);
	}
	tuplesort_performsort(rest->sort);
}

void
IvfRestNext(IvfRest *rest, IvfWindow *window)
{
	IvfWindowClear(window);
	while (window->count < window->size &&
		   get_row(rest, rest->sort, &window->rows[window->count]))
		window->count++;
	if (window->count > 0)
		window->left = window->rows[window->count - 1].distance -
			rest->most_error * window->certainty;
}

void
IvfRestEnd(IvfRest *rest)
{
	ExecDropSingleTupleTableSlot(rest->in);
	ExecDropSingleTupleTableSlot(rest->out);
	tuplesort_end(rest->sort);
}
