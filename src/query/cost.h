/*
 * cost.h
 *		What a search costs, in the planner's units: one is a page read in sequence.
 *
 * The planner chooses by these costs, and so does a scan that is under way.  The scan uses its own
 * counts in place of what was expected.
 */
#ifndef QV_QUERY_COST_H
#define QV_QUERY_COST_H

#include "postgres.h"

#include "nodes/pathnodes.h"
#include "query/scan.h"

/*
 * Costs are multiples of cpu_operator_cost.  tools/measure_costs prints them for a machine.
 *
 * QV_COORDINATES: coordinates of a code that are scored in the time of one operator.
 */
#define QV_COORDINATES 640.0

/* A visit of a page of the index in shared buffers. */
#define QV_PAGE_OPERATORS 25.0

/* Handling one neighbor of a graph's node, without the scoring of its code. */
#define QV_NEIGHBOR_OPERATORS 4.0

/* Fetching a row of the table, in shared buffers, from a random place. */
#define QV_ROW_OPERATORS 75.0

/* Testing a range of an included column, many entries together. */
#define QV_RANGE_OPERATORS 0.15

/* Any other condition on included columns, besides what the condition itself costs. */
#define QV_INCLUDED_OPERATORS 2.0

/* Starting a search. */
#define QV_START_OPERATORS 2000.0

/* The standard deviation of the errors of codes, as a share of that of the distances of rows. */
#define QV_ERROR_SHARE 0.6

/* Costs of one of each, for an index. */
typedef struct QvUnits
{
	double		page;			/* of the index, visited at random */
	double		next_page;		/* of row pages, in order */
	double		code;
	double		neighbor;
	double		measure;		/* a finer code, or an entry of a row page */
	double		filter;			/* an entry, tested by conditions on included
								 * columns; 0: there are none */
	double		test;			/* of a row's conditions, when it is at hand */
	double		row;			/* of the table: fetched at random, and tested */
	double		row_page;		/* that such a row is on, besides */
	double		next_row;		/* of the table, when all are read in order */
	double		value;			/* of a row: read and measured */
} QvUnits;

/*
 * The share of visits to pages that find them neither in shared buffers nor in the system's memory,
 * where there are that many pages: by effective_cache_size.
 */
extern double QvMissShare(double pages);

/*
 * All units of an index but those of conditions on included columns.  value_pages: that a row's
 * value has for itself.
 */
extern void QvGetUnits(const IndexOptInfo *index, int dims, double value_pages, QvUnits *units);

/* What work costs, or a search has cost so far, without its rows. */
extern double QvWorkCost(const QvUnits *units, const QvWork *work);
extern double QvCountersCost(const QvUnits *units, const QvScanCounters *counters);

/* What it costs to fetch rows from random places of a table of that many pages. */
extern double QvRowsCost(const QvUnits *units, double rows, double pages);

/*
 * How many of the rows whose codes are scored are measured, where the nearest of them are to be
 * proposed, and bounds count that many standard deviations of their errors.  Distances and errors
 * are taken to be normal.
 */
extern double QvMeasuredRows(double rows, double nearest, double sigmas);

/*
 * What it costs to read a number of entries, on at most that many row pages, in order, and to
 * measure the rows that may be among the nearest, of which that many must be proposed.  share: of
 * the entries, that conditions on included columns let pass; 1 without such conditions.  sigmas: as
 * of QvMeasuredRows().
 */
extern double QvEntriesCost(const QvUnits *units, double entries, double pages, double share,
							double nearest, double sigmas);

#endif							/* QV_QUERY_COST_H */
