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
#include "graph/page/format.h"
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
	double		recall;			/* likewise */
} GraphRelOptions;

#define HNSW_MAX_EF_SEARCH 1000

static void
define_max_scan_tuples(const char *prefix, GraphScanSettings *settings)
{
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
	DefineCustomIntVariable("hnsw.ef_search",
							"Size of the candidate list of a search.",
							"A larger one finds more of the true nearest neighbors, and takes longer.",
							&hnsw_settings.ef_search, 40, 1, HNSW_MAX_EF_SEARCH,
							PGC_USERSET, 0, NULL, NULL, NULL);
	define_max_scan_tuples("hnsw", &hnsw_settings);
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

/*
 * Recall and ef_search, each by the session, else by the index, else by what is set for
 * the session; two ways to say one thing, like the recall and the probes of lists.
 */
static void
apply_options(GraphScanSettings *settings, const GraphRelOptions *set)
{
	if (qv_recall_origin != SET_BY_SESSION && set->recall > 0)
		settings->recall = set->recall;
	if (ef_search_origin == SET_BY_SESSION || qv_recall_origin == SET_BY_SESSION)
		return;
	if (set->ef_search > 0 || set->recall > 0)
		settings->ef_search = set->ef_search;
}

const GraphScanSettings *
QuiverGraphSettings(Relation index)
{
	static GraphScanSettings settings;

	settings = quiver_settings;
	settings.recall = qv_recall;
	settings.shared = quiver_scan_settings;
	if (index->rd_options)
		apply_options(&settings, (const GraphRelOptions *) index->rd_options);
	settings.by_recall = settings.ef_search == 0;
	if (settings.by_recall)
		settings.ef_search = GraphEfFor(index, settings.recall);
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
GraphDefineOptions(bool hnsw_too)
{
	if (hnsw_too)
		HnswDefineSettings();
	QvDefineRecall();
	DefineCustomIntVariable("quiver.ef_search",
							"Size of the candidate list of a search of a quiver_graph index.",
							"0 takes one as large as quiver.recall asks for.",
							&quiver_settings.ef_search, 0, 0, GRAPH_MAX_EF,
							PGC_USERSET, 0, check_ef_search, assign_ef_search, NULL);
	define_max_scan_tuples("quiver", &quiver_settings);

	hnsw_relopt_kind = add_reloption_kind();
	add_options(hnsw_relopt_kind);
	quiver_graph_relopt_kind = add_reloption_kind();
	add_options(quiver_graph_relopt_kind);
	add_int_reloption(quiver_graph_relopt_kind, "ef_search",
					  "Size of the candidate list of a search, where the session does not set it",
					  0, 1, GRAPH_MAX_EF, ShareUpdateExclusiveLock);
	add_real_reloption(quiver_graph_relopt_kind, "recall",
					   "Share of the true nearest neighbors that a search is to find, where the session does not set it",
					   0, 0.5, 1, ShareUpdateExclusiveLock);
}

/* hnsw has the first of them. */
#define HNSW_OPTIONS 2
static const relopt_parse_elt graph_options[] = {
	{"m", RELOPT_TYPE_INT, offsetof(GraphRelOptions, m)},
	{"ef_construction", RELOPT_TYPE_INT, offsetof(GraphRelOptions, ef_construction)},
	{"ef_search", RELOPT_TYPE_INT, offsetof(GraphRelOptions, ef_search)},
	{"recall", RELOPT_TYPE_REAL, offsetof(GraphRelOptions, recall)},
};

bytea *
HnswAmOptions(Datum reloptions, bool validate)
{
	return (bytea *) build_reloptions(reloptions, validate, hnsw_relopt_kind,
									  sizeof(GraphRelOptions), graph_options,
									  HNSW_OPTIONS);
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
