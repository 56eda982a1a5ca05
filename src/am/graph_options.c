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

static relopt_kind graph_relopt_kind;

typedef struct GraphRelOptions
{
	int32		vl_len_;		/* varlena header: do not touch directly */
	int			m;
	int			ef_construction;
} GraphRelOptions;

#define HNSW_MAX_EF_SEARCH 1000

static void
define_settings(const char *prefix, GraphScanSettings *settings, int max_ef)
{
	DefineCustomIntVariable(psprintf("%s.ef_search", prefix),
							"Size of the candidate list of a search.",
							"A larger one finds more of the true nearest neighbors, and takes longer.",
							&settings->ef_search, 40, 1, max_ef,
							PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable(psprintf("%s.max_scan_tuples", prefix),
							"Rows after which an iterative search stops.",
							NULL,
							&settings->max_scan_tuples, 20000, 1, INT_MAX,
							PGC_USERSET, 0, NULL, NULL, NULL);
}

void
HnswDefineSettings(void)
{
	if (hnsw_settings_defined || !QvMayDefine("hnsw.ef_search"))
		return;
	define_settings("hnsw", &hnsw_settings, HNSW_MAX_EF_SEARCH);
	QvDefineScanSettings("hnsw", &hnsw_settings.shared, ITERATIVE_SCAN_OFF);
	MarkGUCPrefixReserved("hnsw");
	hnsw_settings_defined = true;
}

const GraphScanSettings *
HnswSettings(void)
{
	static GraphScanSettings foreign;	/* ours keep the defaults until they
										 * are defined */

	if (hnsw_settings_defined)
		return &hnsw_settings;
	foreign.ef_search = QvForeignInt("hnsw.ef_search", 40, 1, HNSW_MAX_EF_SEARCH);
	foreign.max_scan_tuples = QvForeignInt("hnsw.max_scan_tuples", 20000, 1, INT_MAX);
	foreign.shared.iterative_scan = QvForeignEnum("hnsw.iterative_scan", qv_iterative_scan_options,
												  ITERATIVE_SCAN_OFF);
	foreign.shared.scan_mem_multiplier = QvForeignReal("hnsw.scan_mem_multiplier", 1, 1, 1000);
	return &foreign;
}

const GraphScanSettings *
QuiverGraphSettings(void)
{
	quiver_settings.shared = quiver_scan_settings;
	return &quiver_settings;
}

void
GraphDefineOptions(void)
{
	if (QvMayDefineAtLoad("hnsw"))
		HnswDefineSettings();
	define_settings("quiver", &quiver_settings, GRAPH_MAX_EF);

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
