/*
 * scan_settings.h
 *		What the settings of all access methods say alike about a scan.
 */
#ifndef QV_AM_SCAN_SETTINGS_H
#define QV_AM_SCAN_SETTINGS_H

#include "postgres.h"

#include "utils/guc.h"

typedef enum IterativeScan
{
	ITERATIVE_SCAN_OFF,
	ITERATIVE_SCAN_RELAXED,
	ITERATIVE_SCAN_STRICT
} IterativeScan;

typedef struct ScanSettings
{
	int			iterative_scan; /* IterativeScan */
	double		scan_mem_multiplier;
} ScanSettings;

/*
 * Whether a setting that index options may stand in for was set by the session (SET, a
 * function's SET, the connection's options), or for it: by server, database or role, if
 * at all.  A check hook notes the source, an assign hook finds it noted.
 */
typedef enum SettingOrigin
{
	SET_FOR_SESSION,
	SET_BY_SESSION
} SettingOrigin;

extern bool QvNoteOrigin(void **extra, GucSource source);
extern SettingOrigin QvOriginNoted(const void *extra);

/* The values of quiver.*; they stay up to date. */
extern ScanSettings quiver_scan_settings;

/* quiver.recall, and who set it. */
extern double qv_recall;
extern SettingOrigin qv_recall_origin;

/* Define quiver.recall, for graphs and lists. */
extern void QvDefineRecall(void);

/* Define quiver.cache_mem, likewise. */
extern void QvDefineCacheMem(void);

/* Bytes that a scan may use. */
extern Size QvScanMemory(const ScanSettings *settings);

/*
 * Define PREFIX.iterative_scan and PREFIX.scan_mem_multiplier.
 */
extern void QvDefineScanSettings(const char *prefix, ScanSettings *settings,
								 IterativeScan iterative_default);

/* The names of IterativeScan; ivfflat has no strict_order. */
extern const struct config_enum_entry qv_iterative_scan_options[];
extern const struct config_enum_entry qv_relaxed_scan_options[];

/*
 * The values of settings whose variables a stock pgvector has defined: initial when
 * there is no such setting.
 */
extern int	QvForeignInt(const char *name, int initial, int min, int max);
extern double QvForeignReal(const char *name, double initial, double min, double max);
extern int	QvForeignEnum(const char *name, const struct config_enum_entry *options,
						  int initial);

#endif							/* QV_AM_SCAN_SETTINGS_H */
