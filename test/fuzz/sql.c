/*
 * sql.c
 *		Target "sql": statements made of all functions, operators, casts,
 *		aggregates, settings and options of the extensions, with hostile values.
 *
 * Input: what statements (1 byte each), then choices (1 byte each).
 */
#include "fuzz.h"

#include "executor/spi.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

#define OURS " AND refobjid IN (SELECT oid FROM pg_extension WHERE extname IN ('vector', 'quiver'))"

#define MAX_STATEMENTS 4
#define MAX_DEPTH 3
#define MAX_ARGUMENTS 8

typedef struct Function
{
	char	   *name;			/* quoted; of an operator without */
	char	   *result;
	char		kind;			/* prokind, or 'o' */
	bool		set;
	int			nargs;
	char	   *args[MAX_ARGUMENTS];
} Function;

typedef struct Strings
{
	int			n;
	char	  **items;
} Strings;

static Function *functions;
static int	nfunctions;
static Strings settings,
			tables,
			classes;

/* By type; the first is "any other". */
static const struct
{
	const char *type;
	const char *values[40];
}			pools[] = {
	{"", {"NULL"}},
	{"vector", {
			"'[1,2,3]'", "'[0,0,0]'", "'[-1,2.5,1e-45]'", "'[3e38,3e38,3e38]'", "'[-3e38,3e38,-3e38]'", "'[1]'", "'[]'",
			"'[NaN,1,2]'", "'[Infinity,1,2]'", "'[1e39]'", "array_fill(1, ARRAY[16000])", "array_fill(1e30, ARRAY[16000])",
			"array_fill(1, ARRAY[16001])", "array_fill(0.001, ARRAY[2001])", "'[1e-40,-1e-40,0]'",
			"(SELECT v FROM i_8 WHERE id = 5)", "(SELECT v FROM g_l2 WHERE id = 7)", "(SELECT array_agg(i) FROM generate_series(1, 16) i)",
			"array_fill(0, ARRAY[16])", "array_fill(3e38, ARRAY[16])", "array_fill(-3e38, ARRAY[16])", "array_fill(1e-45, ARRAY[16])",
			"array_fill(1e18, ARRAY[12])", "array_fill(3e38, ARRAY[5])", "array_fill(65504, ARRAY[9])", "array_fill(1e-20, ARRAY[256])",
	"'[1,2,3,4,5]'", "'[0,0,0,0,0]'", "'{1,2}'", "NULL"}},
	{"halfvec", {
			"'[1,2,3]'", "'[0,0,0]'", "'[65504,65504,-65504]'", "'[6e-8,0,-6e-8]'", "'[65520]'", "'[]'", "'[NaN]'", "'[1]'",
			"array_fill(1, ARRAY[16000])", "array_fill(65504, ARRAY[16000])", "array_fill(1, ARRAY[16001])",
			"(SELECT v FROM g_ip WHERE id = 5)", "(SELECT v FROM i_4 WHERE id = 7)", "array_fill(65504, ARRAY[24])", "array_fill(0, ARRAY[24])",
	"array_fill(-65504, ARRAY[30])", "array_fill(6e-8, ARRAY[30])", "NULL"}},
	{"sparsevec", {
			"'{}/3'", "'{1:1,3:-2}/3'", "'{1:3e38,2:3e38}/3'", "'{1:0}/5'", "'{}/1000000000'", "'{1000000000:1}/1000000000'",
			"'{1000000001:1}/1000000001'", "'{0:1}/3'", "'{1:1,1:2}/3'", "'{2:1,1:2}/3'", "'{1:NaN}/3'", "'{-1:1}/3'", "'{1:1}/0'", "'{1:1}/-1'",
			"'{1:1e-46}/3'", "(SELECT v FROM g_sparse WHERE id = 5)", "(SELECT v FROM g_long WHERE id = 3)", "'{}/24'", "'{5:3e38}/24'", "'{}/16000'",
	"array_fill(1, ARRAY[16000])", "'[1,2]'", "NULL"}},
	{"bit", {
			"B''", "B'1'", "B'101'", "B'000'", "repeat('01', 20)", "repeat('0', 40)", "repeat('1', 64000)", "repeat('1', 64001)",
	"(SELECT v FROM g_bit WHERE id = 5)", "(SELECT v FROM i_bit WHERE id = 7)", "NULL"}},
	{"integer", {
	"0", "1", "-1", "2", "3", "16", "100", "-100", "2147483647", "-2147483648", "16000", "16001", "65536", "1000000000", "NULL"}},
	{"bigint", {
	"0", "1", "-1", "9223372036854775807", "-9223372036854775808", "1000000", "1000000000000", "NULL"}},
	{"double precision", {
	"0", "1", "-1", "'NaN'", "'Infinity'", "'-Infinity'", "1e308", "-1e308", "4.9e-324", "1e39", "0.5", "NULL"}},
	{"real", {"0", "1", "'NaN'", "'Infinity'", "3e38", "1e-45", "NULL"}},
	{"double precision[]", {
			"'{}'", "'{1,2,3}'", "'{2,1,2,3}'", "'{NaN}'", "'{{1,2},{3,4}}'", "'[0:2]={1,2,3}'", "'{NULL}'", "'{2,NULL,1}'", "'{1e308,1e308}'",
			"'{-1,1,2,3}'", "'{0,1,2,3}'", "'{NaN,1,2,3}'", "'{Infinity,1}'", "'{1e300,1,2,3}'", "'{1,1e308,-1e308,1}'", "'{0}'", "'{1}'",
	"array_fill(1, ARRAY[16001])", "array_fill(1, ARRAY[16002])", "array_fill(1, ARRAY[20000])", "'[5:8]={1,1,2,3}'", "NULL"}},
	{"real[]", {"'{}'", "'{1,2,3}'", "'{NaN}'", "'{NULL}'", "'{{1,2},{3,4}}'", "'[0:1]={1,2}'", "'{3e38,-3e38}'", "array_fill(1, ARRAY[16001])", "NULL"}},
	{"integer[]", {"'{}'", "'{1,2,3}'", "'{NULL}'", "'{{1,2},{3,4}}'", "'[0:1]={1,2}'", "'{2147483647,-2147483648}'", "array_fill(1, ARRAY[16001])", "NULL"}},
	{"numeric[]", {"'{}'", "'{1,2,3}'", "'{NaN}'", "'{Infinity}'", "'{1e100}'", "'{1e-100}'", "'{NULL}'", "'{{1,2},{3,4}}'", "array_fill(1, ARRAY[16001])", "NULL"}},
	{"text[]", {"'{}'", "'{m=24}'", "'{lists=0}'", "'{lists=65536,bits=4}'", "'{NULL}'", "'{=}'", "'{m}'", "'{{m=2,m=3}}'", "'{nosuch=1}'", "'{m=-1}'", "'{centroids=public.g_l2}'", "'{centroids=x}'", "NULL"}},
	{"cstring[]", {"'{}'", "'{3}'", "'{0}'", "'{-1}'", "'{16001}'", "'{2147483648}'", "'{3,4}'", "'{NULL}'", "'{x}'", "NULL"}},
	{"text", {"''", "'g_l2'", "'SELECT v FROM i_8'", "'TABLE g_l2'", "'SELECT 1'", "'SELECT NULL'", "'SELECT'", "'DELETE FROM i_8'", "'SELECT v FROM i_8; SELECT 1'", "'SELECT ''[1]''::vector'", "repeat('x', 100000)", "NULL"}},
	{"name", {"'v'", "'id'", "'nosuch'", "''", "'ctid'", "'quiver_graph'", "'quiver_ivf'", "'hnsw'", "'ivfflat'", "'btree'", "'vector_l2_ops'", "'vector_cosine_ops'", "'bit_hamming_ops'", "NULL"}},
	{"regclass", {"'g_l2_idx'", "'i_8_idx'", "'i_bit_idx'", "'g_bit_idx'", "'g_sparse_idx'", "'g_few_idx'", "'i_sketches_idx'", "'i_flat_idx'", "'g_l2'", "'i_8'", "'g_long_idx'", "'pg_class'", "'pg_class_oid_index'", "'quiver_indexes'", "'fuzz_kinds'", "0", "4294967295", "NULL"}},
	{"oid", {"'g_l2_idx'::regclass", "'i_8_idx'::regclass", "'i_bit_idx'::regclass", "'g_l2'::regclass", "'pg_class'::regclass", "0", "4294967295", "NULL"}},
	{"boolean", {"true", "false", "NULL"}},
	{"cstring", {"'[1,2,3]'", "'{1:1}/3'", "''", "'['", "'[1'", "'[1,'", "'[ 1 , 2 ] x'", "NULL"}},
	{"jsonb", {"'{}'", "'{\"a\":1}'", "'[]'", "'null'", "NULL"}},
	{"anycompatible", {"'[1,2,3]'::vector", "NULL::vector", "'[1]'::halfvec", "1", "'{}/3'::sparsevec"}},
};

static const char *const typmods[] = {"", "(3)", "(1)", "(16000)", "(16001)", "(0)", "(-1)", "(2147483647)", "(3,4)", "(1000000000)", "(1000000001)", "(64000)", "(64001)", "('x')"};
static const char *const casts[] = {"vector", "halfvec", "sparsevec", "bit", "real[]", "integer[]", "double precision[]", "numeric[]", "text", "varbit", "vector[]", "halfvec[]"};
static const char *const setting_values[] = {"0", "1", "-1", "2", "0.5", "0.95", "1.5", "NaN", "Infinity", "on", "off", "auto", "strict_order", "relaxed_order", "65535", "65536", "2147483647", "1000", "scalar", "avx2", "", "x"};
static const char *const options[] = {"m", "ef_construction", "ef_search", "recall", "lists", "bits", "centroids", "probes"};
static const char *const option_values[] = {"0", "1", "2", "4", "8", "16", "64", "100", "150", "1000", "65536", "-1", "0.5", "0.99", "1", "NaN", "x", "''", "'public.i_8'", "'public.fuzz_kinds'", "'nosuch.x'"};
static const char *const methods[] = {"hnsw", "quiver_graph", "quiver_ivf", "ivfflat"};
static const char *const limits[] = {"1", "5", "0", "10000", "NULL", "-1", "9223372036854775807", "2147483648", "(SELECT 3)", "id", "100"};
static const char *const conditions[] = {"", "id % 3 = 0", "id < 0", "id > 5", "v IS NOT NULL", "v IS NULL", "id = 7", "random() < 2", "false", "id IN (SELECT id FROM g_few)", "id::text LIKE '1%'"};

static const char *
one_of(FuzzInput *in, const char *const *from, int n)
{
	return from[FuzzByte(in) % n];
}

#define ONE_OF(in, array) one_of(in, array, lengthof(array))

static char *
kept(uint64 row, int column)
{
	char	   *value = SPI_getvalue(SPI_tuptable->vals[row], SPI_tuptable->tupdesc, column);

	return MemoryContextStrdup(TopMemoryContext, value ? value : "");
}

static Strings
strings(const char *sql)
{
	Strings		s;

	if (SPI_execute(sql, true, 0) != SPI_OK_SELECT || SPI_processed == 0)
		elog(ERROR, "no rows: %s", sql);
	s.n = SPI_processed;
	s.items = MemoryContextAlloc(TopMemoryContext, sizeof(char *) * s.n);
	for (int i = 0; i < s.n; i++)
		s.items[i] = kept(i, 1);
	return s;
}

static void
begin(void)
{
	SPI_execute("LOAD 'quiver'", false, 0);
	settings = strings("SELECT name FROM pg_settings WHERE name ~ '^(quiver|hnsw|ivfflat)\\.' UNION "
					   "SELECT unnest('{work_mem,enable_seqscan,enable_indexscan,enable_sort,maintenance_work_mem,effective_cache_size,"
					   "enable_bitmapscan,plan_cache_mode,cursor_tuple_fraction,random_page_cost}'::text[]) ORDER BY 1");
	tables = strings("SELECT name FROM fuzz_kinds ORDER BY id");
	classes = strings("SELECT DISTINCT opcname FROM pg_opclass JOIN pg_am a ON a.oid = opcmethod "
					  "WHERE amname IN ('hnsw', 'ivfflat', 'quiver_graph', 'quiver_ivf') ORDER BY 1");
	/* all members of both extensions that SQL can call */
	if (SPI_execute("SELECT quote_ident(proname), prorettype::regtype::text, prokind, proretset, pronargs, "
					"a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8] FROM pg_proc p JOIN pg_depend d ON d.objid = p.oid, "
					"LATERAL (SELECT array_agg(t::regtype::text ORDER BY n) a FROM unnest(proargtypes) WITH ORDINALITY x(t, n)) x "
					"WHERE classid = 'pg_proc'::regclass AND deptype = 'e'" OURS " AND pronargs <= 8 AND NOT 'internal'::regtype = ANY (proargtypes) "
					"UNION ALL SELECT oprname, oprresult::regtype::text, 'o', false, 2, oprleft::regtype::text, oprright::regtype::text, "
					"null, null, null, null, null, null FROM pg_operator o JOIN pg_depend d ON d.objid = o.oid "
					"WHERE classid = 'pg_operator'::regclass AND deptype = 'e'" OURS " ORDER BY 3, 1, 6, 7", true, 0) != SPI_OK_SELECT)
		elog(ERROR, "could not list the functions");
	nfunctions = SPI_processed;
	functions = MemoryContextAllocZero(TopMemoryContext, sizeof(Function) * nfunctions);
	for (int i = 0; i < nfunctions; i++)
	{
		Function   *f = &functions[i];

		f->name = kept(i, 1);
		f->result = kept(i, 2);
		f->kind = kept(i, 3)[0];
		f->set = kept(i, 4)[0] == 't';
		f->nargs = atoi(kept(i, 5));
		for (int j = 0; j < f->nargs; j++)
			f->args[j] = kept(i, 6 + j);
	}
}

static char *expression(FuzzInput *in, const char *type, int depth);

/* A call with hostile arguments. */
static char *
call(FuzzInput *in, const Function *f, int depth)
{
	StringInfoData s;

	initStringInfo(&s);
	if (f->kind == 'o')
	{
		char	   *left = expression(in, f->args[0], depth);

		appendStringInfo(&s, "(%s %s %s)", left, f->name, expression(in, f->args[1], depth));
		return s.data;
	}
	appendStringInfo(&s, "%s(", f->name);
	for (int i = 0; i < f->nargs; i++)
		appendStringInfo(&s, "%s%s", i ? ", " : "", expression(in, f->args[i], depth));
	appendStringInfoChar(&s, ')');
	return s.data;
}

/* Of that type: a value of its pool, a vector of chosen numbers, or a call. */
static char *
expression(FuzzInput *in, const char *type, int depth)
{
	uint32		how = FuzzByte(in);
	int			pool = 0,
				n = 0;

	for (int i = 1; i < lengthof(pools); i++)
		if (strcmp(pools[i].type, type) == 0)
			pool = i;
	if (how >= 192 && depth < MAX_DEPTH)
	{
		int			first = FuzzByte(in);

		for (int i = 0; i < nfunctions; i++)
		{
			const Function *f = &functions[(first + i) % nfunctions];

			if ((f->kind == 'f' || f->kind == 'o') && !f->set && strcmp(f->result, type) == 0)
				return psprintf("%s::%s", call(in, f, depth + 1), type);
		}
	}
	if (how >= 160 && (strcmp(type, "vector") == 0 || strcmp(type, "halfvec") == 0))
	{
		StringInfoData s;
		int			dims = 1 + FuzzByte(in) % 20;

		initStringInfo(&s);
		for (int i = 0; i < dims; i++)
		{
			int32		x = (int8) FuzzByte(in);

			appendStringInfo(&s, "%c%ge%d", i ? ',' : '[', x / 16.0, x % 7 == 0 ? x / 4 : 0);
		}
		return psprintf("'%s]'::%s", s.data, type);
	}
	while (pools[pool].values[n] != NULL)
		n++;
	if (strcmp(type, "anycompatible") == 0)
		return pstrdup(pools[pool].values[how % n]);
	return psprintf("(%s)::%s", pools[pool].values[how % n], type);
}

static const Function *
function_of(FuzzInput *in, const char *kinds)
{
	uint32		first = FuzzByte(in);

	first += FuzzByte(in) % 2 * 256;
	for (int i = 0; i < nfunctions; i++)
		if (strchr(kinds, functions[(first + i) % nfunctions].kind) != NULL)
			return &functions[(first + i) % nfunctions];
	return &functions[0];
}

/* An ORDER BY on an indexed column. */
static char *
search(FuzzInput *in)
{
	const char *table = tables.items[FuzzByte(in) % tables.n];
	const char *type = strstr(table, "bit") ? "bit" : strcmp(table, "g_ip") == 0 || strcmp(table, "i_4") == 0 ? "halfvec" :
		strcmp(table, "g_sparse") == 0 || strcmp(table, "g_long") == 0 ? "sparsevec" : "vector";
	const Function *op = NULL;
	uint32		first = FuzzByte(in);
	char	   *query = expression(in, type, 1);
	const char *condition = ONE_OF(in, conditions);
	const char *bound = "",
			   *limit,
			   *offset = "0";
	uint32		more;

	for (int i = 0; i < nfunctions; i++)
	{
		op = &functions[(first + i) % nfunctions];
		if (op->kind == 'o' && strcmp(op->result, "double precision") == 0 && strcmp(op->args[0], type) == 0)
			break;
	}
	more = FuzzByte(in);
	if (more & 1)
		bound = psprintf("AND v %s %s < %s", op->name, query, expression(in, "double precision", 2));
	if (more & 2)
		return psprintf("SELECT a.id, b.id FROM (SELECT * FROM %s LIMIT 5) a, LATERAL (SELECT id FROM %s b WHERE %s ORDER BY b.v %s a.v LIMIT 3) b",
						table, table, condition[0] ? condition : "true", op->name);
	limit = ONE_OF(in, limits);
	if (more & 16)
		offset = ONE_OF(in, limits);
	return psprintf("%sSELECT id, v %s %s FROM %s WHERE %s %s ORDER BY v %s %s %s LIMIT %s OFFSET %s", more & 4 ? "EXPLAIN (ANALYZE, BUFFERS) " : "",
					op->name, query, table, condition[0] ? condition : "true", bound, op->name, query, more & 8 ? ", id DESC" : "",
					limit, offset);
}

static char *
aggregate(FuzzInput *in)
{
	const Function *f = function_of(in, "a");
	uint32		how = FuzzByte(in);
	int			n = how % 5;
	StringInfoData s;

	initStringInfo(&s);
	for (int i = 0; i < n; i++)
		appendStringInfo(&s, "%s(%d, %s)", i ? ", " : "VALUES ", i % 2, expression(in, f->args[0], 2));
	if (n == 0)
		appendStringInfo(&s, "SELECT 1, %s WHERE false", expression(in, f->args[0], 2));
	switch (how / 5 % 4)
	{
		case 0:
			return psprintf("SELECT %s(x) FROM (%s) t(g, x)", f->name, s.data);
		case 1:
			return psprintf("SELECT g, %s(DISTINCT x ORDER BY x) FROM (%s) t(g, x) GROUP BY g", f->name, s.data);
		case 2:
			return psprintf("SELECT %s(x) OVER (ORDER BY g ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM (%s) t(g, x)", f->name, s.data);
		default:
			return psprintf("SELECT x, count(*), %s(x) FROM (%s) t(g, x) GROUP BY x ORDER BY x DESC", f->name, s.data);
	}
}

static char *
statement(FuzzInput *in)
{
	uint32		what = FuzzByte(in);
	const char *table,
			   *type;
	char	   *a;
	uint32		how;

	switch (what % 16)
	{
		case 0:
		case 1:
		case 2:
		case 3:
			return psprintf("SELECT %s", call(in, function_of(in, "f"), 0));
		case 4:
			return psprintf("SELECT * FROM %s", call(in, function_of(in, "f"), 0));
		case 5:
			return psprintf("SELECT %s", call(in, function_of(in, "o"), 0));
		case 6:
			type = ONE_OF(in, casts);
			a = expression(in, type, 0);
			type = ONE_OF(in, casts);
			return psprintf("SELECT %s::%s%s", a, type, ONE_OF(in, typmods));
		case 7:
		case 8:
			return aggregate(in);
		case 9:
			a = settings.items[FuzzByte(in) % settings.n];
			return psprintf("SET LOCAL %s = '%s'", a, ONE_OF(in, setting_values));
		case 10:
			table = tables.items[FuzzByte(in) % tables.n];
			a = classes.items[FuzzByte(in) % classes.n];
			how = FuzzByte(in);
			type = ONE_OF(in, options);
			return psprintf("CREATE INDEX ON %s USING %s (%s %s) WITH (%s = %s)", table, methods[how % lengthof(methods)],
							how & 16 ? "(v || v)" : "v", how & 32 ? "" : a, type, ONE_OF(in, option_values));
		case 11:
			table = tables.items[FuzzByte(in) % tables.n];
			a = expression(in, strncmp(table, "g_bit", 5) == 0 ? "bit" : "vector", 1);
			if (what & 16)
				return psprintf("UPDATE %s SET v = %s WHERE id < 5", table, a);
			return psprintf("INSERT INTO %s SELECT 0, %s FROM generate_series(1, 3)", table, a);
		case 12:
			table = tables.items[FuzzByte(in) % tables.n];
			type = ONE_OF(in, options);
			return psprintf("ALTER INDEX %s_idx SET (%s = %s)", table, type, ONE_OF(in, option_values));
		default:
			return search(in);
	}
}

typedef struct Script
{
	int			n;
	char	   *sql[MAX_STATEMENTS];
} Script;

static void
run_script(void *arg)
{
	Script	   *s = arg;

	for (int i = 0; i < s->n; i++)
	{
		SPI_execute(s->sql[i], false, 200);
		/* what users see of it: output functions */
		if (SPI_tuptable == NULL)
			continue;
		for (uint64 row = 0; row < Min(SPI_processed, 3); row++)
			for (int column = 1; column <= SPI_tuptable->tupdesc->natts; column++)
				SPI_getvalue(SPI_tuptable->vals[row], SPI_tuptable->tupdesc, column);
		SPI_freetuptable(SPI_tuptable);
	}
}

static void
run(FuzzInput *in)
{
	Script		s = {0};
	StringInfoData all;

	initStringInfo(&all);
	while (s.n < MAX_STATEMENTS && in->left > 0)
	{
		s.sql[s.n] = statement(in);
		appendStringInfo(&all, "%s; ", s.sql[s.n++]);
	}
	FuzzTry(run_script, &s, all.data);
}

const FuzzTarget FuzzSql = {"sql", begin, run};
