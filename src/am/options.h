/*
 * options.h
 *		Settings and index options of the graph access methods.
 */
#ifndef QV_AM_OPTIONS_H
#define QV_AM_OPTIONS_H

#include "postgres.h"

#include "graph/graph.h"

typedef enum IterativeScan
{
	ITERATIVE_SCAN_OFF,
	ITERATIVE_SCAN_RELAXED,
	ITERATIVE_SCAN_STRICT
} IterativeScan;

/* What one access method's settings say about a scan. */
typedef struct ScanSettings
{
	int			ef_search;
	int			iterative_scan; /* IterativeScan */
	int			max_scan_tuples;
	double		scan_mem_multiplier;
} ScanSettings;

/*
 * The settings hnsw.* and quiver.*.  What is pointed to stays up to date,
 * unless a stock pgvector has defined hnsw.*: then it is as of this call.
 */
extern const ScanSettings *HnswSettings(void);
extern const ScanSettings *QuiverSettings(void);

/* Define the settings and options; once, at load. */
extern void QvDefineOptions(void);

/* The value of a setting whose variable a stock pgvector has defined. */
extern int	QvForeignInt(const char *name, int initial, int min, int max);

/*
 * Define hnsw.*, if that is left to do and possible; the handler of our hnsw
 * calls it, see "Beside pgvector" in README.
 */
extern void HnswDefineSettings(void);

/* Index options of hnsw and quiver_graph (the same ones). */
extern bytea *GraphAmOptions(Datum reloptions, bool validate);
extern void GraphAmGetOptions(Relation index, GraphOptions *options);

#endif							/* QV_AM_OPTIONS_H */
