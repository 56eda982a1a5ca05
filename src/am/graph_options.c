/*
 * graph_options.c
 *		Settings and index options of the access methods on graphs; names and
 *		ranges of hnsw are pgvector's.
 */
#include "postgres.h"

#include <limits.h>

#include "access/reloptions.h"
#include "am/beside.h"
#include "am/graph_options.h"
#include "compat.h"
#include "graph/format.h"
#include "utils/guc.h"

static GraphScanSettings hnsw_settings;
static GraphScanSettings quiver_settings;

/* hnsw.* are ours in this process; else a stock pgvector has defined them. */
static bool hnsw_settings_defined;

/* Who set quiver.ef_search. */
static SettingOrigin ef_search_origin;

static relopt_kind hnsw_relopt_kind;
static relopt_kind quiver_graph_relopt_kind;

typedef struct GraphRelOptions
{
	int32		vl_len_;		/* varlena header: do not touch directly */
	int			m;
	int			ef_construction;
	int			ef_search;		/* 0: not set */
} GraphRelOptions;

#define HNSW_MAX_EF_SEARCH 1000

static void
define_settings(const char *prefix, GraphScanSettings *settings, int max_ef,
				GucIntCheckHook check_ef, GucIntAssignHook assign_ef)
{
	DefineCustomIntVariable(psprintf("%s.ef_search", prefix),
							"Size of the candidate list of a search.",
							"A larger one finds more of the true nearest neighbors, and takes longer.",
							&settings->ef_search, 40, 1, max_ef,
							PGC_USERSET, 0, check_ef, assign_ef, NULL);
	DefineCustomIntVariable(psprintf("%s.max_scan_tuples", prefix),
							"Rows after which an iterative search stops.",
							NULL,
							&settings->max_scan_tuples, DEFAULT_MAX_SCAN_TUPLES, 1, INT_MAX,
							PGC_USERSET, 0, NULL, NULL, NULL);
}

void
HnswDefineSettings(void)
{
	if (hnsw_settings_defined || !QvMayDefine("hnsw.ef_search"))
		return;
	define_settings("hnsw", &hnsw_settings, HNSW_MAX_EF_SEARCH, NULL, NULL);
	QvDefineScanSettings("hnsw", &hnsw_settings.shared, ITERATIVE_SCAN_OFF);
	MarkGUCPrefixReserved("hnsw");
	hnsw_settings_defined = true;
}

const GraphScanSettings *
HnswSettings(Relation index)
{
	static GraphScanSettings foreign;	/* ours keep the defaults until they
										 * are defined */

	if (hnsw_settings_defined)
		return &hnsw_settings;
	foreign.ef_search = QvForeignInt("hnsw.ef_search", 40, 1, HNSW_MAX_EF_SEARCH);
	foreign.max_scan_tuples = QvForeignInt("hnsw.max_scan_tuples", DEFAULT_MAX_SCAN_TUPLES, 1, INT_MAX);
	foreign.shared.iterative_scan = QvForeignEnum("hnsw.iterative_scan", qv_iterative_scan_options,
												  ITERATIVE_SCAN_OFF);
	foreign.shared.scan_mem_multiplier = QvForeignReal("hnsw.scan_mem_multiplier", 1, 1, 1000);
	return &foreign;
}

const GraphScanSettings *
QuiverGraphSettings(Relation index)
{
	static GraphScanSettings settings;
	const GraphRelOptions *set = (const GraphRelOptions *) index->rd_options;

	settings = quiver_settings;
	settings.shared = quiver_scan_settings;
	if (set && set->ef_search > 0 && ef_search_origin != SET_BY_SESSION)
		settings.ef_search = set->ef_search;
	return &settings;
}

static bool
check_ef_search(int *value, void **extra, GucSource source)
{
	return QvNoteOrigin(extra, source);
}

static void
assign_ef_search(int value, void *extra)
{
	ef_search_origin = QvOriginNoted(extra);
}

/* What hnsw has, for a kind. */
static void
add_options(relopt_kind kind)
{
	add_int_reloption(kind, "m",
					  "Neighbors of a node (twice as many on the base layer)",
					  HNSW_DEFAULT_M, HNSW_MIN_M, HNSW_MAX_M, AccessExclusiveLock);
	add_int_reloption(kind, "ef_construction",
					  "Size of the candidate list when a node's neighbors are searched for",
					  HNSW_DEFAULT_EF_CONSTRUCTION, HNSW_MIN_EF_CONSTRUCTION,
					  HNSW_MAX_EF_CONSTRUCTION, AccessExclusiveLock);
}

void
GraphDefineOptions(void)
{
	if (QvMayDefineAtLoad("hnsw"))
		HnswDefineSettings();
	define_settings("quiver", &quiver_settings, GRAPH_MAX_EF, check_ef_search, assign_ef_search);

	hnsw_relopt_kind = add_reloption_kind();
	add_options(hnsw_relopt_kind);
	quiver_graph_relopt_kind = add_reloption_kind();
	add_options(quiver_graph_relopt_kind);
	add_int_reloption(quiver_graph_relopt_kind, "ef_search",
					  "Size of the candidate list of a search, where the session does not set it",
					  0, 1, GRAPH_MAX_EF, ShareUpdateExclusiveLock);
}

/* hnsw has all but the last. */
static const relopt_parse_elt graph_options[] = {
	{"m", RELOPT_TYPE_INT, offsetof(GraphRelOptions, m)},
	{"ef_construction", RELOPT_TYPE_INT, offsetof(GraphRelOptions, ef_construction)},
	{"ef_search", RELOPT_TYPE_INT, offsetof(GraphRelOptions, ef_search)},
};

bytea *
HnswAmOptions(Datum reloptions, bool validate)
{
	return (bytea *) build_reloptions(reloptions, validate, hnsw_relopt_kind,
									  sizeof(GraphRelOptions), graph_options,
									  lengthof(graph_options) - 1);
}

bytea *
QuiverGraphAmOptions(Datum reloptions, bool validate)
{
	return (bytea *) build_reloptions(reloptions, validate, quiver_graph_relopt_kind,
									  sizeof(GraphRelOptions), graph_options,
									  lengthof(graph_options));
}

void
GraphAmGetOptions(const bytea *parsed, GraphOptions *options)
{
	const GraphRelOptions *set = (const GraphRelOptions *) parsed;

	options->m = set ? set->m : HNSW_DEFAULT_M;
	options->ef_construction = set ? set->ef_construction : HNSW_DEFAULT_EF_CONSTRUCTION;
}
