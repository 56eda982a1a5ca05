/*
 * select.c
 *		Choosing neighbors; see select.h.
 */
#include "postgres.h"

#include "graph/walk/select.h"

/* Candidates in ascending order, and how the rule has judged each so far. */
typedef struct Judgment
{
	Candidate	order[GRAPH_MAX_DEGREE + 1];
	bool		judged[GRAPH_MAX_DEGREE + 1];
	bool		kept[GRAPH_MAX_DEGREE + 1];
	GraphPairDistance pair;
	void	   *arg;
} Judgment;

/* Tells whether candidate i is nearer to the base than to every nearer candidate that is kept. */
static bool
is_kept(Judgment *g, int i)
{
	Candidate	c = g->order[i];

	if (g->judged[i])
		return g->kept[i];
	g->judged[i] = true;
	g->kept[i] = true;
	for (int j = 0; j < i && g->kept[i]; j++)
	{
		if (g->judged[j] && !g->kept[j])
			continue;
		/* first the distance: few candidates need judging */
		if (g->pair(g->arg, c.id, g->order[j].id) < c.distance && is_kept(g, j))
			g->kept[i] = false;
	}
	return g->kept[i];
}

/*
 * The farthest candidate that the rule rejects is left out.  The judging starts at the far
 * end, where most are rejected.  This needs a tenth of the distances that GraphSelect() would
 * need.
 */
int
GraphChoosePlace(const GraphRivals *rivals, GraphPairDistance pair, void *arg, bool force)
{
	Judgment	g = {.pair = pair, .arg = arg};
	int			n = rivals->n;
	int			farthest = -1;
	int			out;

	for (int i = 0; i <= n; i++)
	{
		Candidate	c = {rivals->from_self[i], i};
		int			j = i;

		for (; j > 0 && g.order[j - 1].distance > c.distance; j--)
			g.order[j] = g.order[j - 1];
		g.order[j] = c;
	}
	/* anchors and a forced newcomer stay, whatever the rule says */
	for (int i = 0; i <= n; i++)
	{
		bool		stays = g.order[i].id == n ? force : rivals->anchored[g.order[i].id];

		g.judged[i] = g.kept[i] = stays;
		if (!stays)
			farthest = i;
	}
	for (out = farthest; out >= 0; out--)
		if (!is_kept(&g, out))
			break;
	/* all are kept: the farthest one is left out */
	if (out < 0)
		out = farthest;
	return out < 0 || g.order[out].id == n ? -1 : (int) g.order[out].id;
}
