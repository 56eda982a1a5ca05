/*
 * scan_settings.c
 *		What the settings of all access methods say alike; see scan_settings.h.
 */
#include "postgres.h"

#include "am/scan_settings.h"
#include "compat.h"
#include "miscadmin.h"
#include "space/relcache.h"

ScanSettings quiver_scan_settings;
double		qv_recall;
SettingOrigin qv_recall_origin;

const struct config_enum_entry qv_iterative_scan_options[] = {
	{"off", ITERATIVE_SCAN_OFF, false},
	{"relaxed_order", ITERATIVE_SCAN_RELAXED, false},
	{"strict_order", ITERATIVE_SCAN_STRICT, false},
	{NULL, 0, false}
};

const struct config_enum_entry qv_relaxed_scan_options[] = {
	{"off", ITERATIVE_SCAN_OFF, false},
	{"relaxed_order", ITERATIVE_SCAN_RELAXED, false},
	{NULL, 0, false}
};

Size
QvScanMemory(const ScanSettings *settings)
{
	return (Size) (work_mem * 1024.0 * settings->scan_mem_multiplier);
}

bool
QvNoteOrigin(void **extra, GucSource source)
{
	if (source >= PGC_S_CLIENT)
	{
		/* there is nothing to say but that it is there; the server frees it */
		*extra = QvGucAlloc(1);
		return *extra != NULL;
	}
	return true;
}

SettingOrigin
QvOriginNoted(const void *extra)
{
	return extra ? SET_BY_SESSION : SET_FOR_SESSION;
}

static bool
check_recall(double *value, void **extra, GucSource source)
{
	return QvNoteOrigin(extra, source);
}

static void
assign_recall(double value, void *extra)
{
	qv_recall_origin = QvOriginNoted(extra);
}

void
QvDefineRecall(void)
{
	DefineCustomRealVariable("quiver.recall",
							 "Share of the true nearest neighbors that a search of a quiver_graph or quiver_ivf index is to find.",
							 "Nodes or lists are read accordingly, as the index has measured.",
							 &qv_recall, 0.95, 0.5, 1,
							 PGC_USERSET, 0, check_recall, assign_recall, NULL);
}

void
QvDefineCacheMem(void)
{
	DefineCustomIntVariable("quiver.cache_mem",
							"Memory that a session keeps of indexes between queries.",
							"What was used longest ago is freed first. An index of which more is to be kept is opened anew by each transaction that uses it, and after each use of another.",
							&qv_cache_mem, QV_DEFAULT_CACHE_MEM, 0, MAX_KILOBYTES,
							PGC_USERSET, GUC_UNIT_KB, NULL, NULL, NULL);
}

void
QvDefineScanSettings(const char *prefix, ScanSettings *settings,
					 IterativeScan iterative_default)
{
	/* since 16 an assertion wants the variable to have the default already */
	settings->iterative_scan = iterative_default;
	DefineCustomEnumVariable(psprintf("%s.iterative_scan", prefix),
							 "Whether a search goes on until enough rows pass the query's conditions.",
							 "strict_order returns rows in exact order of distance, relaxed_order may return later ones out of order.",
							 &settings->iterative_scan, iterative_default,
							 qv_iterative_scan_options,
							 PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomRealVariable(psprintf("%s.scan_mem_multiplier", prefix),
							 "Memory an iterative search may use, in multiples of work_mem.",
							 NULL,
							 &settings->scan_mem_multiplier, 1, 1, 1000,
							 PGC_USERSET, 0, NULL, NULL, NULL);
}

int
QvForeignInt(const char *name, int initial, int min, int max)
{
	const char *text = GetConfigOption(name, true, false);
	int			value;

	return (text && parse_int(text, &value, 0, NULL) &&
			value >= min && value <= max) ? value : initial;
}

double
QvForeignReal(const char *name, double initial, double min, double max)
{
	const char *text = GetConfigOption(name, true, false);
	double		value;

	return (text && parse_real(text, &value, 0, NULL) &&
			value >= min && value <= max) ? value : initial;
}

int
QvForeignEnum(const char *name, const struct config_enum_entry *options, int initial)
{
	const char *text = GetConfigOption(name, true, false);

	for (; text && options->name; options++)
		if (pg_strcasecmp(text, options->name) == 0)
			return options->val;
	return initial;
}
