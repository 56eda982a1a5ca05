/*
 * graph_options.h
 *		Settings and index options of the access methods on graphs.
 */
#ifndef QV_AM_GRAPH_OPTIONS_H
#define QV_AM_GRAPH_OPTIONS_H

#include "postgres.h"

#include "am/scan_settings.h"
#include "graph/graph.h"

/* What one access method's settings say about a scan. */
typedef struct GraphScanSettings
{
	int			ef_search;
	int			max_scan_tuples;
	ScanSettings shared;
} GraphScanSettings;

/*
 * The settings hnsw.* and quiver.*.  What is pointed to stays up to date,
 * unless a stock pgvector has defined hnsw.*: then it is as of this call.
 */
extern const GraphScanSettings *HnswSettings(void);
extern const GraphScanSettings *QuiverGraphSettings(void);

/* Define the settings and options; once, at load. */
extern void GraphDefineOptions(void);

/*
 * Define hnsw.*, if that is left to do and possible; the handler of our hnsw
 * calls it, see "Beside pgvector" in README.
 */
extern void HnswDefineSettings(void);

/* Index options of hnsw and quiver_graph (the same ones). */
extern bytea *GraphAmOptions(Datum reloptions, bool validate);
extern void GraphAmGetOptions(Relation index, GraphOptions *options);

#endif							/* QV_AM_GRAPH_OPTIONS_H */
