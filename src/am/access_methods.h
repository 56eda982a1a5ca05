/*
 * access_methods.h
 *		The access methods of Quiver, for those who meet them in the planner or in
 *		the catalog.
 */
#ifndef QV_AM_ACCESS_METHODS_H
#define QV_AM_ACCESS_METHODS_H

#include "access/amapi.h"
#include "am/graph_options.h"
#include "am/ivf_options.h"
#include "am/knn_scan.h"

/* On graphs, or on posting lists: of the other engine the functions are NULL. */
typedef struct KnnAccessMethod
{
	amcostestimate_function costestimate;
	const KnnScanSource *scans;
	void		(*graph_options) (const bytea *set, GraphOptions *options);
	GraphSettingsOf graph_settings;
	void		(*ivf_options) (const bytea *set, IvfOptions *options);
	IvfSettingsOf ivf_settings;
} KnnAccessMethod;

/* The access method with that cost function; NULL: it is none of ours. */
extern const KnnAccessMethod *KnnAccessMethodOf(amcostestimate_function costestimate);

#endif							/* QV_AM_ACCESS_METHODS_H */
