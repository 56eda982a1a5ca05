/*
 * options.c
 *		Settings and index options of the access methods, by table; see options.h.
 */
#include "postgres.h"

#include <limits.h>

#include "am/beside.h"
#include "am/options.h"
#include "compat.h"
#include "graph/graph.h"
#include "graph/page/format.h"
#include "ivf/codec/format.h"
#include "miscadmin.h"
#include "space/relcache.h"
#include "utils/guc_tables.h"

/* Index options as they are parsed.  A method without one has 0. */
typedef struct KnnRelOptions
{
	int32		vl_len_;		/* varlena header: do not touch directly */
	int			m;
	int			ef_construction;
	int			lists;
	int			bits;
	int			centroids;		/* offset of the string, or 0 */
	int			ef_search;		/* 0: not set */
	int			probes;			/* likewise */
	double		recall;			/* likewise */
} KnnRelOptions;

/* ---- who has set a setting ---- */

/*
 * An index option stands in for a setting unless the session itself has set it: by SET, by a function's
 * SET or by the connection's options, rather than the server, the database or the role.  A check hook
 * notes the source, an assign hook finds the note.
 */
static bool
note_origin(void **extra, GucSource source)
{
	/* only whether it is there matters; the server frees it */
	if (source >= PGC_S_CLIENT)
		*extra = QvGucAlloc(1);
	return source < PGC_S_CLIENT || *extra != NULL;
}

static bool
check_int(int *value, void **extra, GucSource source)
{
	return note_origin(extra, source);
}

static bool
check_real(double *value, void **extra, GucSource source)
{
	return note_origin(extra, source);
}

#define NOTE_ORIGIN(name, type) \
	static bool name##_of_session; \
	static void \
	assign_##name(type value, void *extra) \
	{ \
		name##_of_session = extra != NULL; \
	}
NOTE_ORIGIN(ef_search, int)
NOTE_ORIGIN(probes, int)
NOTE_ORIGIN(recall, double)

/* ---- settings ---- */

typedef struct Setting
{
	const char *name;			/* after the prefix */
	enum config_type type;
	int			offset;			/* in QvSettings */
	double		initial;
	double		min;
	double		max;
	const char *what;
	const char *more;
	const struct config_enum_entry *names;	/* of an enum's values */
	GucIntAssignHook assign_int;	/* notes the origin, or NULL */
	GucRealAssignHook assign_real;
} Setting;

struct KnnSettingsGroup
{
	const char *prefix;
	bool		pgvectors;
	const Setting *settings;
	int			count;
	bool		defined;		/* else a stock pgvector has defined them */
	QvSettings	values;
};

static const struct config_enum_entry iterative_scan_names[] = {
	{"off", ITERATIVE_SCAN_OFF, false},
	{"relaxed_order", ITERATIVE_SCAN_RELAXED, false},
	{"strict_order", ITERATIVE_SCAN_STRICT, false},
	{NULL, 0, false}
};

/* ivfflat has no strict_order */
static const struct config_enum_entry relaxed_scan_names[] = {
	{"off", ITERATIVE_SCAN_OFF, false},
	{"relaxed_order", ITERATIVE_SCAN_RELAXED, false},
	{NULL, 0, false}
};

static const struct config_enum_entry sketches_names[] = {
	{"auto", SKETCHES_AUTO, false},
	{"on", SKETCHES_ON, false},
	{"off", SKETCHES_OFF, false},
	{NULL, 0, false}
};

#define INT(name) #name, PGC_INT, offsetof(QvSettings, name)
#define REAL(name) #name, PGC_REAL, offsetof(QvSettings, name)
#define ENUM(name) #name, PGC_ENUM, offsetof(QvSettings, name)

#define ITERATIVE_WHAT "Whether a search continues until enough rows match the query's conditions."
#define ITERATIVE_MORE "strict_order returns rows in exact order of distance, relaxed_order may return later ones out of order."
#define MAX_SCAN_TUPLES \
	{INT(max_scan_tuples), DEFAULT_MAX_SCAN_TUPLES, 1, INT_MAX, \
	"Rows after which an iterative search stops."}
#define SCAN_MEM_MULTIPLIER \
	{REAL(scan_mem_multiplier), 1, 1, 1000, \
	"Memory an iterative search may use, in multiples of work_mem."}

static const Setting hnsw_rows[] = {
	{INT(ef_search), 40, 1, 1000,
		"Size of the candidate list of a search.",
	"A larger one finds more of the true nearest neighbors, and takes longer."},
	{ENUM(iterative_scan), ITERATIVE_SCAN_OFF, 0, 0, ITERATIVE_WHAT, ITERATIVE_MORE,
	iterative_scan_names},
	MAX_SCAN_TUPLES,
	SCAN_MEM_MULTIPLIER
};

static const Setting ivfflat_rows[] = {
	{INT(probes), 1, 1, IVFFLAT_MAX_LISTS,
		"Number of lists that a search reads.",
	"More find more of the true nearest neighbors, and take longer."},
	{ENUM(iterative_scan), ITERATIVE_SCAN_OFF, 0, 0, ITERATIVE_WHAT,
	"relaxed_order may return later rows out of order.", relaxed_scan_names},
	{INT(max_probes), IVFFLAT_MAX_LISTS, 1, IVFFLAT_MAX_LISTS,
	"Lists after which an iterative search stops."}
};

static const Setting quiver_rows[] = {
	{REAL(recall), QV_DEFAULT_RECALL, 0.5, 1,
		"Share of the true nearest neighbors that a search of a quiver_graph or quiver_ivf index is to find.",
	"Nodes or lists are read accordingly, as the index has measured.", .assign_real = assign_recall},
	{INT(ef_search), 0, 0, GRAPH_MAX_EF,
		"Size of the candidate list of a search of a quiver_graph index.",
	"0 lets quiver.recall decide.", .assign_int = assign_ef_search},
	{INT(probes), 0, 0, IVF_MAX_LISTS,
		"Number of lists that a search of a quiver_ivf index reads first.",
	"0 lets quiver.recall decide.", .assign_int = assign_probes},
	{ENUM(iterative_scan), ITERATIVE_SCAN_STRICT, 0, 0, ITERATIVE_WHAT, ITERATIVE_MORE,
	iterative_scan_names},
	MAX_SCAN_TUPLES,
	SCAN_MEM_MULTIPLIER,
	{ENUM(sketches), SKETCHES_AUTO, 0, 0,
		"Whether searches of posting lists read sketches rather than codes.",
		"Sketches are an eighth as large: auto takes them for an index larger than half of the memory for caching.",
	sketches_names}
};

KnnSettingsGroup knn_hnsw_settings = {"hnsw", true, hnsw_rows, lengthof(hnsw_rows)};
KnnSettingsGroup knn_ivfflat_settings = {"ivfflat", true, ivfflat_rows, lengthof(ivfflat_rows)};
KnnSettingsGroup knn_quiver_settings = {"quiver", false, quiver_rows, lengthof(quiver_rows)};

static void
define_setting(const char *name, const Setting *s, void *variable)
{
	if (s->type == PGC_INT)
		DefineCustomIntVariable(name, s->what, s->more, variable, s->initial, s->min, s->max,
								PGC_USERSET, 0, s->assign_int ? check_int : NULL, s->assign_int,
								NULL);
	else if (s->type == PGC_REAL)
		DefineCustomRealVariable(name, s->what, s->more, variable, s->initial, s->min, s->max,
								 PGC_USERSET, 0, s->assign_real ? check_real : NULL,
								 s->assign_real, NULL);
	else
	{
		/*
		 * since 16 an assertion wants the variable to have the default
		 * already
		 */
		*(int *) variable = s->initial;
		DefineCustomEnumVariable(name, s->what, s->more, variable, s->initial, s->names,
								 PGC_USERSET, 0, NULL, NULL, NULL);
	}
}

void
KnnDefineSettings(KnnSettingsGroup *group)
{
	/* a stock pgvector defines all of its settings, or none */
	if (group->defined ||
		(group->pgvectors &&
		 !QvMayDefine(psprintf("%s.%s", group->prefix, group->settings[0].name))))
		return;
	for (int i = 0; i < group->count; i++)
		define_setting(psprintf("%s.%s", group->prefix, group->settings[i].name),
					   &group->settings[i],
					   (char *) &group->values + group->settings[i].offset);
	if (group->pgvectors)
		MarkGUCPrefixReserved(group->prefix);
	group->defined = true;
}

/* The value of a setting that somebody else has defined; the default where nobody has. */
static void
read_foreign(const char *name, const Setting *s, void *variable)
{
	const char *text = GetConfigOption(name, true, false);
	double		real = s->initial;
	int			integer;

	if (text && s->type == PGC_INT && parse_int(text, &integer, 0, NULL))
		real = integer;
	else if (text && s->type == PGC_REAL)
		(void) parse_real(text, &real, 0, NULL);
	else if (text && s->type == PGC_ENUM)
		for (const struct config_enum_entry *name = s->names; name->name; name++)
			if (pg_strcasecmp(text, name->name) == 0)
				real = name->val;
	if (s->type != PGC_ENUM && !(real >= s->min && real <= s->max))
		real = s->initial;
	if (s->type == PGC_REAL)
		*(double *) variable = real;
	else
		*(int *) variable = real;
}

/*
 * An effort and a recall are two ways to say one thing.  What the session says counts, then what the
 * index says: its effort is 0 where it says a recall.
 */
static void
apply_effort(int *effort, bool of_session, int of_index, double recall_of_index)
{
	if (of_session)
		return;
	if (recall_of_session)
		*effort = 0;
	else if (of_index > 0 || recall_of_index > 0)
		*effort = of_index;
}

void
KnnGetSettings(const KnnSettingsGroup *group, Relation index, QvSettings *settings)
{
	const KnnRelOptions *set = (const KnnRelOptions *) index->rd_options;

	*settings = group->values;
	for (int i = 0; i < group->count && !group->defined; i++)
	{
		char		name[NAMEDATALEN];

		snprintf(name, sizeof(name), "%s.%s", group->prefix, group->settings[i].name);
		read_foreign(name, &group->settings[i], (char *) settings + group->settings[i].offset);
	}
	settings->fixed = group->pgvectors;
	settings->sketches = knn_quiver_settings.values.sketches;
	settings->scan_mem_multiplier = Max(1, settings->scan_mem_multiplier);
	settings->memory = (Size) (work_mem * 1024.0 * settings->scan_mem_multiplier);
	/* pgvector's methods have an effort, and no such options */
	if (settings->fixed)
	{
		/* nor an end, unless scans iterate */
		if (settings->iterative_scan == ITERATIVE_SCAN_OFF)
			settings->max_scan_tuples = settings->max_probes = 0;
		return;
	}
	if (!recall_of_session && set && set->recall > 0)
		settings->recall = set->recall;
	apply_effort(&settings->ef_search, ef_search_of_session, set ? set->ef_search : 0, set ? set->recall : 0);
	apply_effort(&settings->probes, probes_of_session, set ? set->probes : 0, set ? set->recall : 0);
}

/* ---- index options ---- */

typedef struct Option
{
	const char *name;
	relopt_type type;
	int			offset;			/* in KnnRelOptions */
	const char *what;
	LOCKMODE	lock;			/* to change it */
	double		initial;
	double		min;
	double		max;
} Option;

#define MOST_OPTIONS 8

struct KnnOptionSet
{
	const char *access_method;	/* in messages */
	bool		notice_little_data;
	relopt_kind *kind;
	Option		options[MOST_OPTIONS + 1];	/* the end has no name */
};

#define OPTION(name, type) #name, RELOPT_TYPE_##type, offsetof(KnnRelOptions, name)

/* Changes nothing before REINDEX. */
#define OF_BUILD AccessExclusiveLock

/* Counts from the next search on. */
#define OF_SEARCH ShareUpdateExclusiveLock

#define GRAPH_OPTIONS \
	{OPTION(m, INT), "Neighbors of a node (twice as many on the base layer)", OF_BUILD, \
	HNSW_DEFAULT_M, HNSW_MIN_M, HNSW_MAX_M}, \
	{OPTION(ef_construction, INT), \
	"Size of the candidate list when a node's neighbors are searched for", OF_BUILD, \
	HNSW_DEFAULT_EF_CONSTRUCTION, HNSW_MIN_EF_CONSTRUCTION, HNSW_MAX_EF_CONSTRUCTION}
#define RECALL_OPTION \
	{OPTION(recall, REAL), \
	"Share of the true nearest neighbors that a search is to find, where the session does not set it", \
	OF_SEARCH, 0, 0.5, 1}

static relopt_kind hnsw_kind;
static relopt_kind ivfflat_kind;
static relopt_kind quiver_graph_kind;
static relopt_kind quiver_ivf_kind;

const KnnOptionSet knn_hnsw_options = {"hnsw", true, &hnsw_kind, {GRAPH_OPTIONS}};

const KnnOptionSet knn_ivfflat_options = {"ivfflat", true, &ivfflat_kind, {
		{OPTION(lists, INT), "Number of inverted lists", OF_BUILD, IVFFLAT_DEFAULT_LISTS, IVFFLAT_MIN_LISTS, IVFFLAT_MAX_LISTS}
}};

const KnnOptionSet knn_quiver_graph_options = {"quiver_graph", false, &quiver_graph_kind, {
		GRAPH_OPTIONS,
		{OPTION(ef_search, INT), "Size of the candidate list of a search, where the session does not set it", OF_SEARCH, 0, 1, GRAPH_MAX_EF},
		RECALL_OPTION
}};

const KnnOptionSet knn_quiver_ivf_options = {"quiver_ivf", false, &quiver_ivf_kind, {
		{OPTION(lists, INT), "Number of posting lists; 0 goes by the number of rows", OF_BUILD, 0, 0, IVF_MAX_LISTS},
		{OPTION(bits, INT), "Bits of a code for each coordinate: 8, 4 or 2", OF_BUILD, 8, 2, 8},
		{OPTION(centroids, STRING), "Table that the centroids of the lists are read from", OF_BUILD},
		{OPTION(probes, INT), "Number of lists that a search reads first, where the session does not set it", OF_SEARCH, 0, 1, IVF_MAX_LISTS},
		RECALL_OPTION
}};

const char *
KnnBuildOption(const KnnOptionSet *set, int n)
{
	for (const Option *o = set->options; o->name; o++)
		if (o->lock == OF_BUILD && n-- == 0)
			return o->name;
	return NULL;
}

static void
define_options(const KnnOptionSet *set)
{
	*set->kind = add_reloption_kind();
	for (const Option *o = set->options; o->name; o++)
	{
		if (o->type == RELOPT_TYPE_INT)
			add_int_reloption(*set->kind, o->name, o->what, o->initial, o->min, o->max, o->lock);
		else if (o->type == RELOPT_TYPE_REAL)
			add_real_reloption(*set->kind, o->name, o->what, o->initial, o->min, o->max, o->lock);
		else
			add_string_reloption(*set->kind, o->name, o->what, NULL, NULL, o->lock);
	}
}

bytea *
KnnParseOptions(const KnnOptionSet *set, Datum reloptions, bool validate)
{
	relopt_parse_elt elements[MOST_OPTIONS] = {0};
	KnnRelOptions *parsed;
	int			n = 0;

	for (const Option *o = set->options; o->name; o++)
		elements[n++] = (relopt_parse_elt) {o->name, o->type, o->offset};
	parsed = build_reloptions(reloptions, validate, *set->kind, sizeof(KnnRelOptions), elements, n);
	if (validate && parsed && parsed->bits != 0 && parsed->bits != 8 && parsed->bits != 4 &&
		parsed->bits != 2)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("value %d out of bounds for option \"bits\"", parsed->bits),
				 errdetail("Valid values are 8, 4 and 2.")));
	return (bytea *) parsed;
}

void
KnnGetOptions(const KnnOptionSet *set, const bytea *parsed, QvIndexOptions *options)
{
	const KnnRelOptions *found = (const KnnRelOptions *) parsed;
	KnnRelOptions defaults = {0};

	if (found == NULL)
	{
		for (const Option *o = set->options; o->name; o++)
			if (o->type == RELOPT_TYPE_INT)
				*(int *) ((char *) &defaults + o->offset) = o->initial;
		found = &defaults;
	}
	*options = (QvIndexOptions)
	{
		.access_method = set->access_method,
			.m = found->m,
			.ef_construction = found->ef_construction,
			.lists = found->lists,
			.bits = found->bits,
			.centroids = found->centroids ? (const char *) found + found->centroids : NULL,
			.notice_little_data = set->notice_little_data
	};
}

/* ---- */

void
KnnDefineOptions(bool hnsw_too, bool ivfflat_too)
{
	DefineCustomIntVariable("quiver.cache_mem",
							"Memory that a session keeps of indexes between queries.",
							"When the limit is reached, the least recently used index is evicted. An index that alone needs more is loaded again in every transaction.",
							&qv_cache_mem, QV_DEFAULT_CACHE_MEM, 0, MAX_KILOBYTES,
							PGC_USERSET, GUC_UNIT_KB, NULL, NULL, NULL);
	KnnDefineSettings(&knn_quiver_settings);
	if (hnsw_too)
		KnnDefineSettings(&knn_hnsw_settings);
	if (ivfflat_too)
		KnnDefineSettings(&knn_ivfflat_settings);
	define_options(&knn_hnsw_options);
	define_options(&knn_ivfflat_options);
	define_options(&knn_quiver_graph_options);
	define_options(&knn_quiver_ivf_options);
}
