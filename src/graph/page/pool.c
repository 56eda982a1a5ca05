/*
 * pool.c
 *		The pool of a search; see pool.h.
 */
#include "postgres.h"

#include <math.h>

#include "graph/graph.h"
#include "graph/page/meta.h"
#include "graph/page/pool.h"

const double graph_recalls[GRAPH_RECALLS] = {0.90, 0.95, 0.98, 0.99, 0.995};
const int	graph_depths[GRAPH_DEPTHS] = {20, 50, GRAPH_DEEPEST};

/* Least share of misses that differs from none. */
#define LEAST_MISSES 0.0005

/* What "none" means, unless the user's queries need fewer for the highest recall of the curve. */
#define NO_MISSES 1e-6

/* Least power of the pool with which misses fall, and the power below LEAST_MISSES. */
#define LEAST_POWER 0.3
#define POWER_BELOW 3

/*
 * Without calibration: the ef for recall 0.95, and the power with which it grows as misses
 * get fewer.
 */
#define USUAL_EF 40
#define USUAL_POWER 0.7

/* Without calibration: the least ef, since most queries want ten rows. */
#define LEAST_EF 10

void
GraphPoolLine(const GraphMetaData *meta, double *slope, double *extra)
{
	double		more;

	*slope = GRAPH_POOL_SLOPE;
	*extra = GRAPH_POOL_EXTRA;

	/*
	 * Two bits of a coordinate are worth those of four coordinates.  Inner
	 * products are worst, since the query is not centered.
	 */
	if (meta->code_bits * (GraphHasTwoBits(meta) ? 2 : 1) <= GRAPH_FEW_BITS)
	{
		*slope = 3.4;
		*extra = meta->space == QV_SPACE_IP ? 40 : 24;
	}
	/* with fewer neighbors a search needs more nodes */
	more = GraphMoreNodes(meta);
	*slope *= more;
	*extra *= more;
	/* a damaged metapage may have any number */
	if (meta->pool_slope > *slope && meta->pool_slope <= GRAPH_MAX_SLOPE)
		*slope = meta->pool_slope;
	if (meta->pool_extra > *extra && meta->pool_extra <= GRAPH_MAX_EXTRA)
		*extra = meta->pool_extra;
}

double
GraphPoolForMisses(const GraphRecallPoint *points, int n, double wanted)
{
	int			at = 0;
	double		misses,
				before,
				power;

	while (at < n && 1 - points[at].recall > wanted)
		at++;
	if (n == 1)
		return points[0].pool;
	/* the two points around it, or the first two, or the last two */
	at = Max(1, Min(at, n - 1));
	misses = Max(1 - points[at].recall, LEAST_MISSES);
	before = Max(1 - points[at - 1].recall, LEAST_MISSES);
	if (before <= misses)
		return points[at].pool;
	power = Max(LEAST_POWER, log(before / misses) / log(points[at].pool / points[at - 1].pool));
	return points[at - 1].pool * pow(before / wanted, 1 / power);
}

double
GraphPoolFor(const GraphMetaData *meta, uint32 ef)
{
	double		slope,
				extra;

	if (meta->code_bits == 0)
		return ef;
	GraphPoolLine(meta, &slope, &extra);
	return slope * ef + extra;
}

double
GraphHardNewRows(const GraphMetaData *meta, double misses)
{
	int			at = 0;

	while (at < GRAPH_RECALLS - 1 && 1 - graph_recalls[at] > misses)
		at++;
	/* also false for the NaN of a damaged metapage */
	return meta->hard_new_rows[at] >= 1 ? meta->hard_new_rows[at] : INFINITY;
}

double
GraphMissesAllowed(const GraphMetaData *meta, const QvSettings *settings)
{
	double		misses = QvCurveMisses(&meta->curve, settings);

	if (misses == 0 && meta->curve.queries > 0)
		misses = Min(NO_MISSES, meta->curve.misses[QV_CURVE_POINTS - 1]);
	/* what was measured on rows tells no smaller shares apart */
	return Max(misses, meta->curve.queries > 0 || settings->misses > 0 ?
			   QV_CURVE_LEAST_MISSES : LEAST_MISSES);
}

int
GraphEfForRecall(const GraphMetaData *meta, const QvSettings *settings)
{
	double		misses = GraphMissesAllowed(meta, settings);
	GraphRecallPoint points[GRAPH_RECALLS];
	double		ef,
				slope,
				extra;

	GraphPoolLine(meta, &slope, &extra);
	if (!(meta->recall_pools[0] > 0))
		ef = Max(LEAST_EF, USUAL_EF * pow(0.05 / misses, USUAL_POWER));
	else
	{
		for (int i = 0; i < GRAPH_RECALLS; i++)
			points[i] = (GraphRecallPoint) {meta->recall_pools[i], graph_recalls[i]};
		ef = GraphPoolForMisses(points, GRAPH_RECALLS, Max(misses, LEAST_MISSES));
		if (misses < LEAST_MISSES)
			ef *= pow(LEAST_MISSES / misses, 1.0 / POWER_BELOW);
		ef = (ef - extra) / slope;
	}
	/* also true for NaN */
	if (!(ef > 1))
		return 1;
	return Min(ceil(ef), GRAPH_MAX_EF);
}

int
GraphEfFor(Relation index, const QvSettings *settings)
{
	GraphMetaData meta;

	GraphReadMeta(index, &meta);
	return GraphEfForRecall(&meta, settings);
}
