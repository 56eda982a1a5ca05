/*
 * methods.h
 *		The access methods: one row each.
 *
 * A row gives a method's identifier in SQL function names, its name, its engine, its
 * settings and its index options (options.h), and how many support functions its operator
 * classes have.  A method with pgvector's name keeps pgvector's defaults.
 */
#ifndef QV_AM_METHODS_H
#define QV_AM_METHODS_H

#include "postgres.h"

#include "access/amapi.h"
#include "am/options.h"
#include "graph/graph.h"
#include "ivf/ivf.h"

#define KNN_METHODS(METHOD) \
	METHOD(hnsw, "hnsw", graph_engine, hnsw, hnsw, 3) \
	METHOD(ivfflat, "ivfflat", ivf_engine, ivfflat, ivfflat, 5) \
	METHOD(quivergraph, "quiver_graph", graph_engine, quiver, quiver_graph, 3) \
	METHOD(quiverivf, "quiver_ivf", ivf_engine, quiver, quiver_ivf, 3)

typedef struct KnnMethod
{
	const char *name;			/* in SQL */
	const QvEngine *engine;
	KnnSettingsGroup *settings;
	const KnnOptionSet *options;
	int			support;		/* support functions of operator classes */
	amoptions_function parse_options;	/* tells the method of a routine */
} KnnMethod;

#define KNN_DECLARE(id, name, engine, settings, options, support) \
	extern const KnnMethod knn_##id##_method;
KNN_METHODS(KNN_DECLARE)
#undef KNN_DECLARE

/* Dimensions of an index's column; a guess when it has none. */
extern int	KnnDimensions(Relation index);

/*
 * If not 0, the effort of searches by a recall is that for this share of missed rows, as
 * measured on rows: for quiver_calibrate().
 */
extern double knn_trial_misses;

/* What settings and options say of scans of an index, as of this call. */
extern void KnnSettingsOf(Relation index, QvSettings *settings);

/* The method of an index, or of a routine; NULL when it is none of Quiver's. */
extern const KnnMethod *KnnMethodOf(Relation index);
extern const KnnMethod *KnnMethodOfRoutine(const IndexAmRoutine *routine);

/* Do searches of an access method have a recall to reach?  In pgvector's they have an effort. */
extern bool KnnHasRecall(Oid am);

/* Is it an index that a stock pgvector built and reads? */
extern bool KnnIsPgvectors(Relation index);

/* Does a query have a LIMIT, other than LIMIT ALL? */
extern bool KnnHasLimit(const Query *query);

/*
 * The LIMIT of a query if it is known when the query runs only, as a parameter is; else NULL.  It
 * may turn out to be NULL, which is no LIMIT.
 */
extern Node *KnnUnknownLimit(const Query *query);

/* Can a scan find out whether the LIMIT of a query is NULL? */
extern bool KnnCanEvaluateLimit(const Query *query);

/*
 * Must a query have all rows of a relation?  It has groups of them, or a window, unless it takes
 * the first ones only, and all that they are made of comes before later rows.
 * evaluates_limit: the scan will find out whether an unknown LIMIT is NULL.
 */
extern bool KnnNeedsAllRows(const PlannerInfo *root, const RelOptInfo *rel, bool evaluates_limit);

/* Is a condition that test of an index's column: whether it has a value, or has none? */
extern bool KnnIsNullTest(const Node *clause, NullTestType type, IndexOptInfo *index);

/* Is one of these RestrictInfos such a test? */
extern bool KnnHasNullTest(const List *conditions, NullTestType type, IndexOptInfo *index);

#endif							/* QV_AM_METHODS_H */
