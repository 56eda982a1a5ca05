/*
 * options.c
 *		Settings and index options; names and ranges of hnsw are pgvector's.
 */
#include "postgres.h"

#include <limits.h>

#include "access/reloptions.h"
#include "am/beside.h"
#include "am/ivf_options.h"
#include "am/options.h"
#include "compat.h"
#include "graph/format.h"
#include "kernels/kernels.h"
#include "utils/guc.h"

static ScanSettings hnsw_settings;
static ScanSettings quiver_settings;

/* hnsw.* are ours in this process; else a stock pgvector has defined them. */
static bool hnsw_settings_defined;

static char *simd_level;

static relopt_kind graph_relopt_kind;

typedef struct GraphRelOptions
{
	int32		vl_len_;		/* varlena header: do not touch directly */
	int			m;
	int			ef_construction;
} GraphRelOptions;

static const struct config_enum_entry iterative_scan_options[] = {
	{"off", ITERATIVE_SCAN_OFF, false},
	{"relaxed_order", ITERATIVE_SCAN_RELAXED, false},
	{"strict_order", ITERATIVE_SCAN_STRICT, false},
	{NULL, 0, false}
};

static bool
check_simd_level(char **newval, void **extra, GucSource source)
{
	if (strcmp(*newval, "auto") == 0)
		return true;
	for (const char *const *level = QvKernelsAvailable(); *level; level++)
		if (strcmp(*newval, *level) == 0)
			return true;
	GUC_check_errdetail("This CPU cannot run that level, or there is none of that name.");
	GUC_check_errhint("See quiver_simd_levels() of extension quiver for what it can run.");
	return false;
}

static void
assign_simd_level(const char *newval, void *extra)
{
	QvKernelsSetLevel(newval);
}

#define HNSW_MAX_EF_SEARCH 1000

static void
define_scan_settings(const char *prefix, ScanSettings *settings, int max_ef,
					 int iterative_default)
{
#define NAME(setting) psprintf("%s.%s", prefix, setting)
	DefineCustomIntVariable(NAME("ef_search"),
							"Size of the candidate list of a search.",
							"A larger one finds more of the true nearest neighbors, and takes longer.",
							&settings->ef_search, 40, 1, max_ef,
							PGC_USERSET, 0, NULL, NULL, NULL);
	/* since 16 an assertion wants the variable to have the default already */
	settings->iterative_scan = iterative_default;
	DefineCustomEnumVariable(NAME("iterative_scan"),
							 "Whether a search goes on until enough rows pass the query's conditions.",
							 "strict_order returns rows in exact order of distance, relaxed_order may return later ones out of order.",
							 &settings->iterative_scan, iterative_default,
							 iterative_scan_options,
							 PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable(NAME("max_scan_tuples"),
							"Rows after which an iterative search stops.",
							NULL,
							&settings->max_scan_tuples, 20000, 1, INT_MAX,
							PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomRealVariable(NAME("scan_mem_multiplier"),
							 "Memory an iterative search may use, in multiples of work_mem.",
							 NULL,
							 &settings->scan_mem_multiplier, 1, 1, 1000,
							 PGC_USERSET, 0, NULL, NULL, NULL);
#undef NAME
}

void
HnswDefineSettings(void)
{
	if (hnsw_settings_defined || !QvMayDefine("hnsw.ef_search"))
		return;
	define_scan_settings("hnsw", &hnsw_settings, HNSW_MAX_EF_SEARCH, ITERATIVE_SCAN_OFF);
	MarkGUCPrefixReserved("hnsw");
	hnsw_settings_defined = true;
}

int
QvForeignInt(const char *name, int initial, int min, int max)
{
	const char *text = GetConfigOption(name, true, false);
	int			value;

	return (text && parse_int(text, &value, 0, NULL) &&
			value >= min && value <= max) ? value : initial;
}

const ScanSettings *
HnswSettings(void)
{
	static ScanSettings foreign;	/* ours keep the defaults until they are defined */
	const char *text;
	double		multiplier;

	if (hnsw_settings_defined)
		return &hnsw_settings;

	foreign.ef_search = QvForeignInt("hnsw.ef_search", 40, 1, HNSW_MAX_EF_SEARCH);
	foreign.max_scan_tuples = QvForeignInt("hnsw.max_scan_tuples", 20000, 1, INT_MAX);
	foreign.iterative_scan = ITERATIVE_SCAN_OFF;
	if ((text = GetConfigOption("hnsw.iterative_scan", true, false)) != NULL)
	{
		for (const struct config_enum_entry *option = iterative_scan_options; option->name; option++)
			if (pg_strcasecmp(text, option->name) == 0)
				foreign.iterative_scan = option->val;
	}
	foreign.scan_mem_multiplier = 1;
	if ((text = GetConfigOption("hnsw.scan_mem_multiplier", true, false)) != NULL &&
		parse_real(text, &multiplier, 0, NULL) && multiplier >= 1 && multiplier <= 1000)
		foreign.scan_mem_multiplier = multiplier;
	return &foreign;
}

const ScanSettings *
QuiverSettings(void)
{
	return &quiver_settings;
}

void
QvDefineOptions(void)
{
	if (QvMayDefineAtLoad("hnsw"))
		HnswDefineSettings();
	define_scan_settings("quiver", &quiver_settings, 65535, ITERATIVE_SCAN_STRICT);
	DefineCustomStringVariable("quiver.simd_level",
							   "Instruction set level of the distance kernels.",
							   "\"auto\" takes the best that this CPU can run; others are for tests.",
							   &simd_level, "auto",
							   PGC_USERSET, 0,
							   check_simd_level, assign_simd_level, NULL);
	QvDefineIvfOptions();
	MarkGUCPrefixReserved("quiver");

	graph_relopt_kind = add_reloption_kind();
	add_int_reloption(graph_relopt_kind, "m",
					  "Neighbors of a node (twice as many on the base layer)",
					  HNSW_DEFAULT_M, HNSW_MIN_M, HNSW_MAX_M, AccessExclusiveLock);
	add_int_reloption(graph_relopt_kind, "ef_construction",
					  "Size of the candidate list when a node's neighbors are searched for",
					  HNSW_DEFAULT_EF_CONSTRUCTION, HNSW_MIN_EF_CONSTRUCTION,
					  HNSW_MAX_EF_CONSTRUCTION, AccessExclusiveLock);
}

bytea *
GraphAmOptions(Datum reloptions, bool validate)
{
	static const relopt_parse_elt tab[] = {
		{"m", RELOPT_TYPE_INT, offsetof(GraphRelOptions, m)},
		{"ef_construction", RELOPT_TYPE_INT, offsetof(GraphRelOptions, ef_construction)},
	};

	return (bytea *) build_reloptions(reloptions, validate, graph_relopt_kind,
									  sizeof(GraphRelOptions), tab, lengthof(tab));
}

void
GraphAmGetOptions(Relation index, GraphOptions *options)
{
	GraphRelOptions *set = (GraphRelOptions *) index->rd_options;

	options->m = set ? set->m : HNSW_DEFAULT_M;
	options->ef_construction = set ? set->ef_construction : HNSW_DEFAULT_EF_CONSTRUCTION;
}
