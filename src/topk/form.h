/*
 * form.h
 *		Forms of a distance: expressions that rise or fall with it, as 1 - (e <=> $1) does.
 */
#ifndef QV_TOPK_FORM_H
#define QV_TOPK_FORM_H

#include "postgres.h"

#include "nodes/pathnodes.h"
#include "topk/topk.h"

typedef struct TopkForm
{
	Expr	   *distance;		/* of the index, as written: an operator or a
								 * function */
	Expr	   *value;			/* that the index is searched for */
	TopkResult	result;			/* what "distance" makes of the index's
								 * distance */
	bool		falls;			/* the farther a row, the less; else the more */
	double		least;			/* range; infinite: not known */
	double		most;
	bool		may_be_nan;		/* for some row */
	bool		may_fail;		/* with an error, for some distances */
	bool		fills_nulls;	/* may be a number where the distance is NULL */
	bool		fills_nans;		/* may be a number where the distance is NaN */
} TopkForm;

/*
 * Is an expression a form of a distance that the index orders rows by?  The value may be of other
 * relations.  The expression must not be volatile.
 */
extern bool TopkMatchForm(const IndexOptInfo *index, Node *expr, TopkForm *form);

/* Returns the function of an operator or a function, and its arguments; InvalidOid of others. */
extern Oid	TopkFunctionOf(const Node *expr, List **args);

/* Is a function that distance of an operator class, or its negative, inner_product()? */
extern bool TopkIsDistance(Oid function, Oid distance);

/* Are two expressions the same distance of the same values?  Both are operators or functions. */
extern bool TopkSameDistance(const Node *a, const Node *b);

/* Does an expression contain that distance? */
extern bool TopkHasDistance(Node *expr, void *distance);

/* Returns a copy of an expression that takes that distance from ExprContext.caseValue_datum. */
extern Node *TopkReplaceDistance(Node *expr, void *distance);

#endif							/* QV_TOPK_FORM_H */
