/*
 * options.h
 *		Settings (parameters) and index options of the access methods, by table.
 *
 * Names, ranges and defaults of hnsw and ivfflat are pgvector's.
 */
#ifndef QV_AM_OPTIONS_H
#define QV_AM_OPTIONS_H

#include "postgres.h"

#include "access/reloptions.h"
#include "query/options.h"
#include "utils/guc.h"
#include "utils/rel.h"

/* Options of ivfflat, with pgvector's ranges and defaults. */
#define IVFFLAT_MIN_LISTS 1
#define IVFFLAT_DEFAULT_LISTS 100
#define IVFFLAT_MAX_LISTS 32768

#define DEFAULT_MAX_SCAN_TUPLES 20000

/* The settings of one prefix. */
typedef struct KnnSettingsGroup KnnSettingsGroup;
extern KnnSettingsGroup knn_hnsw_settings;
extern KnnSettingsGroup knn_ivfflat_settings;
extern KnnSettingsGroup knn_quiver_settings;

/* Define a group's settings, unless that is done, or not possible: see QvMayDefine(). */
extern void KnnDefineSettings(KnnSettingsGroup *group);

/*
 * Define all settings and options; once, at load.  hnsw_too, ivfflat_too: see
 * QvMayDefineAtLoad().
 */
extern void KnnDefineOptions(bool hnsw_too, bool ivfflat_too);

/*
 * What settings and options say of scans of an index, as of this call (README.md, "Settings
 * and options").
 */
extern void KnnGetSettings(const KnnSettingsGroup *group, Relation index, QvSettings *settings);

/* The options of one method. */
typedef struct KnnOptionSet KnnOptionSet;
extern const KnnOptionSet knn_hnsw_options;
extern const KnnOptionSet knn_ivfflat_options;
extern const KnnOptionSet knn_quiver_graph_options;
extern const KnnOptionSet knn_quiver_ivf_options;

/* amoptions */
extern bytea *KnnParseOptions(const KnnOptionSet *set, Datum reloptions, bool validate);

/* What options parsed say to a build; NULL: the defaults. */
extern void KnnGetOptions(const KnnOptionSet *set, const bytea *parsed, QvIndexOptions *options);

/* Name of the nth option that only a build reads, from 0 on; NULL after the last. */
extern const char *KnnBuildOption(const KnnOptionSet *set, int n);

#endif							/* QV_AM_OPTIONS_H */
