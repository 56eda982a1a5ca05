/*
 * options.h
 *		What the options of an index say to its build.
 */
#ifndef QV_SPACE_OPTIONS_H
#define QV_SPACE_OPTIONS_H

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

#endif							/* QV_SPACE_OPTIONS_H */
