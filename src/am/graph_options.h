/*
 * graph_options.h
 *		Settings and index options of the access methods on graphs.
 */
#ifndef QV_AM_GRAPH_OPTIONS_H
#define QV_AM_GRAPH_OPTIONS_H

#include "postgres.h"

#include "am/scan_settings.h"
#include "graph/graph.h"

#define DEFAULT_MAX_SCAN_TUPLES 20000

/* What one access method's settings say about a scan. */
typedef struct GraphScanSettings
{
	int			ef_search;		/* as set, or as a recall asks for */
	bool		by_recall;
	double		recall;			/* asked for when by_recall */
	int			max_scan_tuples;	/* DEFAULT_MAX_SCAN_TUPLES unless the user
									 * said so */
	ScanSettings shared;
} GraphScanSettings;

/*
 * What hnsw.* and quiver.* and the index's options say of its scans, as of this
 * call (README.md, "Settings and options").
 */
extern const GraphScanSettings *HnswSettings(Relation index);
extern const GraphScanSettings *QuiverGraphSettings(Relation index);

typedef const GraphScanSettings *(*GraphSettingsOf) (Relation index);

/* Define the settings and options; once, at load. hnsw_too: see QvMayDefineAtLoad(). */
extern void GraphDefineOptions(bool hnsw_too);

/*
 * Define hnsw.*, if that is left to do and possible; the handler of our hnsw
 * calls it, see "Beside pgvector" in README.
 */
extern void HnswDefineSettings(void);

/* Index options: those of hnsw, to which quiver_graph adds ef_search. */
extern bytea *HnswAmOptions(Datum reloptions, bool validate);
extern bytea *QuiverGraphAmOptions(Datum reloptions, bool validate);

/* What those parsed mean; NULL: none are set. */
extern void GraphAmGetOptions(const bytea *set, GraphOptions *options);

#endif							/* QV_AM_GRAPH_OPTIONS_H */
