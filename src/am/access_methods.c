/*
 * access_methods.c
 *		The access methods of Quiver; see access_methods.h.
 */
#include "postgres.h"

#include "am/access_methods.h"
#include "am/hnsw.h"
#include "am/ivfflat.h"
#include "am/quiver_graph.h"
#include "am/quiver_ivf.h"

const KnnAccessMethod *
KnnAccessMethodOf(amcostestimate_function costestimate)
{
	static const KnnAccessMethod all[] = {
		{hnswcostestimate, &hnsw_scans, GraphAmGetOptions, HnswSettings},
		{ivfflatcostestimate, &ivfflat_scans, NULL, NULL, IvfflatGetOptions, IvfflatSettings},
		{quivergraphcostestimate, &quiver_graph_scans, GraphAmGetOptions, QuiverGraphSettings},
		{quiverivfcostestimate, &quiver_ivf_scans, NULL, NULL, QuiverIvfGetOptions, QuiverIvfSettings},
	};

	for (int i = 0; i < lengthof(all); i++)
		if (all[i].costestimate == costestimate)
			return &all[i];
	return NULL;
}
