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
		{hnswcostestimate, &hnsw_scans},
		{ivfflatcostestimate, &ivfflat_scans},
		{quivergraphcostestimate, &quiver_graph_scans},
		{quiverivfcostestimate, &quiver_ivf_scans},
	};

	for (int i = 0; i < lengthof(all); i++)
		if (all[i].costestimate == costestimate)
			return &all[i];
	return NULL;
}
