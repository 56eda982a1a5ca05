/*
 * effort.c
 *		How large the candidate pool of a search is; see effort.h.
 */
#include "postgres.h"

#include <math.h>

#include "graph/graph.h"
#include "graph/page/pool.h"
#include "graph/search/effort.h"

/*
 * The ef for a recall was measured for 10 rows, and a row that was the query.  A few more are
 * proposed to have these in order.
 */
#define FEW_ROWS 16

/* Rows of a search that does not go deeper, by a recall: pgvector's default. */
#define UNKNOWN_ROWS 40

/* An ef that the user has chosen is enough for a quarter as many rows under a condition. */
#define CHOSEN_SHARE 4

/*
 * A deeper search has ef grow with a power of its rows: the least one, unless more was measured.
 * It has at least 1.2 candidates for each row, since the last ones are found last.
 */
#define LEAST_POWER 0.6
#define CANDIDATES_PER_ROW 1.2

/* The factors of ef for graph_depths, as measured, and with which power it goes on. */
static void
init_growth(GraphEffort *effort, const GraphMetaData *meta)
{
	const int	last = GRAPH_DEPTHS - 1;

	for (int i = 0; i < GRAPH_DEPTHS; i++)
	{
		double		measured = meta->deep_efs[i];

		effort->growth[i] = pow((double) graph_depths[i] / GRAPH_MEASURED_ROWS, LEAST_POWER);
		if (i > 0)
			effort->growth[i] = Max(effort->growth[i], effort->growth[i - 1]);
		/* a damaged metapage may have any number */
		if (measured > effort->growth[i] && measured <= GRAPH_MAX_DEEP_EF)
			effort->growth[i] = measured;
	}
	effort->power = log(effort->growth[last] / effort->growth[last - 1]) /
		log((double) graph_depths[last] / graph_depths[last - 1]);
	effort->power = Max(LEAST_POWER, Min(effort->power, 1));
}

void
GraphEffortInit(GraphEffort *effort, const GraphMetaData *meta, const QvScanGoal *goal)
{
	const QvSettings *settings = goal->settings;

	effort->ef = settings->ef_search > 0 ? settings->ef_search :
		GraphEfForRecall(meta, settings);
	effort->power = LEAST_POWER;
	effort->raised = 1;
	effort->hard_new_rows = INFINITY;
	memset(effort->growth, 0, sizeof(effort->growth));
	if (!goal->endless)
	{
		/* all that the search finds; nobody says how many rows are wanted */
		if (settings->ef_search == 0)
			effort->ef = Max(effort->ef, UNKNOWN_ROWS);
		effort->rows = effort->measured = effort->ef;
	}
	else if (settings->ef_search > 0)
		effort->rows = effort->measured = Max(FEW_ROWS, goal->expected > FEW_ROWS ?
											  effort->ef / CHOSEN_SHARE : effort->ef);
	else
	{
		effort->rows = FEW_ROWS;
		effort->measured = GRAPH_SETTLED_ROWS;
		effort->hard_new_rows = GraphHardNewRows(meta, GraphMissesAllowed(meta, settings));
		init_growth(effort, meta);
	}
}

uint32
GraphEffortFor(const GraphEffort *effort, double rank)
{
	double		measured = effort->measured;
	double		growth = 1;

	if (rank <= effort->rows)
		return Min(ceil(effort->ef), GRAPH_MAX_EF);
	for (int i = 0; i < GRAPH_DEPTHS && effort->growth[i] > 0 && rank > measured; i++)
	{
		growth = effort->growth[i];
		measured = graph_depths[i] + 1;
	}
	if (rank > measured)
		growth *= pow(rank / measured, effort->power);
	return Min(ceil(Max(effort->ef * growth, rank * CANDIDATES_PER_ROW) * effort->raised), GRAPH_MAX_EF);
}

double
GraphEffortMost(double rank)
{
	/* a whole number, as ranks are counted */
	return floor(Min(rank, GRAPH_MAX_EF / CANDIDATES_PER_ROW));
}

double
GraphEffortNext(double rank)
{
	return GraphEffortMost(rank * GRAPH_EFFORT_GROWTH);
}
