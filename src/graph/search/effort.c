/*
 * effort.c
 *		How large the candidate pool of a search is; see effort.h.
 */
#include "postgres.h"

#include <math.h>

#include "graph/graph.h"
#include "graph/page/pool.h"
#include "graph/search/effort.h"

/* The ef for a recall was measured for 10 rows.  A few more are proposed to have these in order. */
#define MEASURED_ROWS 10
#define FEW_ROWS 16

/* Rows of a search that does not go deeper, by a recall: pgvector's default. */
#define UNKNOWN_ROWS 40

/* An ef that the user has chosen is enough for a quarter as many rows under a condition. */
#define CHOSEN_SHARE 4

/*
 * A deeper search has ef grow with this power of its rows, and at least 1.2 candidates
 * for each row, since the last ones are found last.
 */
#define EF_POWER 0.6
#define CANDIDATES_PER_ROW 1.2

/* The factor by which rows grow when it goes on. */
#define GROWTH 1.25

void
GraphEffortInit(GraphEffort *effort, const GraphMetaData *meta, const QvScanGoal *goal)
{
	const QvSettings *settings = goal->settings;

	effort->ef = settings->ef_search > 0 ? settings->ef_search :
		GraphEfForRecall(meta, settings);
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
		effort->measured = MEASURED_ROWS;
	}
}

uint32
GraphEffortFor(const GraphEffort *effort, double rank)
{
	double		ef = effort->ef;

	if (rank > effort->rows)
		ef = Max(ef * pow(rank / effort->measured, EF_POWER), rank * CANDIDATES_PER_ROW);
	return Min(ceil(ef), GRAPH_MAX_EF);
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
	return GraphEffortMost(rank * GROWTH);
}
