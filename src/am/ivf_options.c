/*
 * ivf_options.c
 *		Settings and index options of the access methods on posting lists; names
 *		and ranges of ivfflat are pgvector's.
 */
#include "postgres.h"

#include "access/reloptions.h"
#include "am/beside.h"
#include "am/ivf_options.h"
#include "compat.h"
#include "ivf/codec/format.h"
#include "utils/guc.h"

static IvfScanSettings ivfflat_settings;
static IvfScanSettings quiver_ivf_settings;

/* Who set quiver.probes. */
static SettingOrigin probes_origin;

/* ivfflat.* are ours in this process; else a stock pgvector has defined them. */
static bool ivfflat_settings_defined;

static const struct config_enum_entry sketches_options[] = {
	{"auto", SKETCHES_AUTO, false},
	{"on", SKETCHES_ON, false},
	{"off", SKETCHES_OFF, false},
	{NULL, 0, false}
};

static relopt_kind ivfflat_relopt_kind;
static relopt_kind quiver_ivf_relopt_kind;

typedef struct IvfflatRelOptions
{
	int32		vl_len_;		/* varlena header: do not touch directly */
	int			lists;
} IvfflatRelOptions;

typedef struct QuiverIvfRelOptions
{
	int32		vl_len_;		/* varlena header: do not touch directly */
	int			lists;
	int			bits;
	int			centroids;		/* offset of the string */
	int			probes;			/* 0: not set */
	double		recall;			/* likewise */
} QuiverIvfRelOptions;

void
IvfflatDefineSettings(void)
{
	if (ivfflat_settings_defined || !QvMayDefine("ivfflat.probes"))
		return;
	DefineCustomIntVariable("ivfflat.probes",
							"Number of lists that a search reads.",
							"More find more of the true nearest neighbors, and take longer.",
							&ivfflat_settings.probes, 1, 1, IVFFLAT_MAX_LISTS,
							PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomEnumVariable("ivfflat.iterative_scan",
							 "Whether a search goes on until enough rows pass the query's conditions.",
							 "relaxed_order may return later rows out of order.",
							 &ivfflat_settings.shared.iterative_scan, ITERATIVE_SCAN_OFF,
							 qv_relaxed_scan_options,
							 PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("ivfflat.max_probes",
							"Lists after which an iterative search stops.",
							NULL,
							&ivfflat_settings.max_probes, IVFFLAT_MAX_LISTS, 1, IVFFLAT_MAX_LISTS,
							PGC_USERSET, 0, NULL, NULL, NULL);
	MarkGUCPrefixReserved("ivfflat");
	ivfflat_settings_defined = true;
}

const IvfScanSettings *
IvfflatSettings(Relation index)
{
	static IvfScanSettings foreign; /* ours keep the defaults until they are
									 * defined */
	IvfScanSettings *settings = &ivfflat_settings;

	if (!ivfflat_settings_defined)
	{
		settings = &foreign;
		settings->probes = QvForeignInt("ivfflat.probes", 1, 1, IVFFLAT_MAX_LISTS);
		settings->max_probes = QvForeignInt("ivfflat.max_probes", IVFFLAT_MAX_LISTS, 1,
											IVFFLAT_MAX_LISTS);
		settings->shared.iterative_scan = QvForeignEnum("ivfflat.iterative_scan",
														qv_relaxed_scan_options,
														ITERATIVE_SCAN_OFF);
	}
	settings->shared.scan_mem_multiplier = 1;
	settings->widen = false;
	settings->sketches = quiver_ivf_settings.sketches;
	return settings;
}

/*
 * Recall and probes, each by the session, else by the index, else by what is set for
 * the session.  They are two ways to say one thing: of an index or a session that says
 * recall and no probes, the probes of what goes before it do not count.
 */
static void
apply_options(IvfScanSettings *settings, const QuiverIvfRelOptions *set)
{
	if (qv_recall_origin != SET_BY_SESSION && set->recall > 0)
		settings->recall = set->recall;
	if (probes_origin == SET_BY_SESSION || qv_recall_origin == SET_BY_SESSION)
		return;
	if (set->probes > 0 || set->recall > 0)
		settings->probes = set->probes;
}

const IvfScanSettings *
QuiverIvfSettings(Relation index)
{
	static IvfScanSettings settings;

	settings = quiver_ivf_settings;
	settings.recall = qv_recall;
	settings.shared = quiver_scan_settings;
	settings.max_probes = 0;
	settings.widen = quiver_scan_settings.iterative_scan != ITERATIVE_SCAN_OFF;
	if (index->rd_options)
		apply_options(&settings, (const QuiverIvfRelOptions *) index->rd_options);
	return &settings;
}

static bool
check_probes(int *value, void **extra, GucSource source)
{
	return QvNoteOrigin(extra, source);
}

static void
assign_probes(int value, void *extra)
{
	probes_origin = QvOriginNoted(extra);
}

void
IvfDefineOptions(bool ivfflat_too)
{
	if (ivfflat_too)
		IvfflatDefineSettings();
	DefineCustomIntVariable("quiver.probes",
							"Number of lists that a search of a quiver_ivf index reads first.",
							"0 takes as many as quiver.recall asks for.",
							&quiver_ivf_settings.probes, 0, 0, IVF_MAX_LISTS,
							PGC_USERSET, 0, check_probes, assign_probes, NULL);

	DefineCustomEnumVariable("quiver.sketches",
							 "Whether searches of posting lists read sketches rather than codes.",
							 "Sketches are an eighth as large: auto takes them for an index larger than half of effective_cache_size.",
							 &quiver_ivf_settings.sketches, SKETCHES_AUTO, sketches_options,
							 PGC_USERSET, 0, NULL, NULL, NULL);

	ivfflat_relopt_kind = add_reloption_kind();
	add_int_reloption(ivfflat_relopt_kind, "lists", "Number of inverted lists",
					  IVFFLAT_DEFAULT_LISTS, IVFFLAT_MIN_LISTS, IVFFLAT_MAX_LISTS,
					  AccessExclusiveLock);
	quiver_ivf_relopt_kind = add_reloption_kind();
	add_int_reloption(quiver_ivf_relopt_kind, "lists",
					  "Number of posting lists; 0 goes by the number of rows",
					  0, 0, IVF_MAX_LISTS, AccessExclusiveLock);
	add_int_reloption(quiver_ivf_relopt_kind, "bits",
					  "Bits of a code for each coordinate: 8, 4 or 2",
					  8, 2, 8, AccessExclusiveLock);
	add_string_reloption(quiver_ivf_relopt_kind, "centroids",
						 "Table that the centroids of the lists are read from",
						 NULL, NULL, AccessExclusiveLock);
	add_int_reloption(quiver_ivf_relopt_kind, "probes",
					  "Number of lists that a search reads first, where the session does not set it",
					  0, 1, IVF_MAX_LISTS, ShareUpdateExclusiveLock);
	add_real_reloption(quiver_ivf_relopt_kind, "recall",
					   "Share of the true nearest neighbors that a search is to find, where the session does not set it",
					   0, 0.5, 1, ShareUpdateExclusiveLock);
}

bytea *
IvfflatAmOptions(Datum reloptions, bool validate)
{
	static const relopt_parse_elt tab[] = {
		{"lists", RELOPT_TYPE_INT, offsetof(IvfflatRelOptions, lists)},
	};

	return (bytea *) build_reloptions(reloptions, validate, ivfflat_relopt_kind,
									  sizeof(IvfflatRelOptions), tab, lengthof(tab));
}

void
IvfflatGetOptions(const bytea *parsed, IvfOptions *options)
{
	const IvfflatRelOptions *set = (const IvfflatRelOptions *) parsed;

	memset(options, 0, sizeof(*options));
	options->access_method = "ivfflat";
	options->lists = set ? set->lists : IVFFLAT_DEFAULT_LISTS;
	options->notice_little_data = true;
}

bytea *
QuiverIvfAmOptions(Datum reloptions, bool validate)
{
	static const relopt_parse_elt tab[] = {
		{"lists", RELOPT_TYPE_INT, offsetof(QuiverIvfRelOptions, lists)},
		{"bits", RELOPT_TYPE_INT, offsetof(QuiverIvfRelOptions, bits)},
		{"centroids", RELOPT_TYPE_STRING, offsetof(QuiverIvfRelOptions, centroids)},
		{"probes", RELOPT_TYPE_INT, offsetof(QuiverIvfRelOptions, probes)},
		{"recall", RELOPT_TYPE_REAL, offsetof(QuiverIvfRelOptions, recall)},
	};
	QuiverIvfRelOptions *set = (QuiverIvfRelOptions *)
		build_reloptions(reloptions, validate, quiver_ivf_relopt_kind,
						 sizeof(QuiverIvfRelOptions), tab, lengthof(tab));

	if (validate && set && set->bits != 8 && set->bits != 4 && set->bits != 2)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("value %d out of bounds for option \"bits\"", set->bits),
				 errdetail("Valid values are 8, 4 and 2.")));
	return (bytea *) set;
}

void
QuiverIvfGetOptions(const bytea *parsed, IvfOptions *options)
{
	const QuiverIvfRelOptions *set = (const QuiverIvfRelOptions *) parsed;

	memset(options, 0, sizeof(*options));
	options->access_method = "quiver_ivf";
	if (set)
	{
		options->lists = set->lists;
		options->bits = set->bits;
		if (set->centroids != 0)
			options->centroids = (const char *) set + set->centroids;
	}
}
