/*
 * options.h
 *		What the options of an index say to its build, and settings and options to a search.
 */
#ifndef QV_QUERY_OPTIONS_H
#define QV_QUERY_OPTIONS_H

#include "postgres.h"

typedef struct QvIndexOptions
{
	const char *access_method;	/* in messages */

	/* graphs */
	int			m;
	int			ef_construction;

	/* posting lists */
	int			lists;			/* 0: chosen from the number of rows */
	int			bits;			/* of the codes: 8, 4 or 2; 0: 8 */
	const char *centroids;		/* table to read them from, or NULL */
	bool		notice_little_data; /* say so when there are fewer rows than
									 * lists */
} QvIndexOptions;

/* The default of quiver.recall. */
#define QV_DEFAULT_RECALL 0.95

typedef enum IterativeScan
{
	ITERATIVE_SCAN_OFF,
	ITERATIVE_SCAN_RELAXED,
	ITERATIVE_SCAN_STRICT
} IterativeScan;

/* Whether searches read sketches rather than records. */
typedef enum Sketches
{
	SKETCHES_AUTO,				/* of indexes that memory is too short for */
	SKETCHES_ON,
	SKETCHES_OFF
} Sketches;

/* A method without a setting has 0. */
typedef struct QvSettings
{
	int			ef_search;		/* graphs; 0: by recall */
	int			probes;			/* lists; 0: by recall */
	double		recall;			/* wanted, where the effort is 0 */
	double		misses;			/* if not 0: the effort is that for this share
								 * of missed rows, as measured on rows */
	int			iterative_scan; /* an IterativeScan */
	int			max_scan_tuples;	/* at least ef_search; 0: any number */
	int			max_probes;		/* at least probes are read; 0: all lists */
	int			sketches;		/* a Sketches */
	double		scan_mem_multiplier;
	bool		fixed;			/* pgvector's: the effort is not less than
								 * they say, nor more at once */
	Size		memory;			/* bytes that a scan may use */
} QvSettings;

#endif							/* QV_QUERY_OPTIONS_H */
