/*
 * text.h
 *		Reading the numbers of a vector's text form.
 */
#ifndef QV_TEXT_H
#define QV_TEXT_H

#include "postgres.h"

/*
 * Skips the white space that may stand between tokens.  It does not depend on the locale.
 */
static inline const char *
QvSkipSpace(const char *p)
{
	while (*p == ' ' || (*p >= '\t' && *p <= '\r'))
		p++;
	return p;
}

/*
 * Reads the float32 nearest to the number at p, as strtof() does. p is not at white
 * space. limit is the end of the text, where its zero byte is.  *end is p if there is no
 * number.
 *
 * *range is set if the number is too large or too small for a float32.  The result is
 * then infinite, zero or subnormal.
 */
extern float QvParseFloat(const char *p, const char *limit, const char **end,
						  bool *range);

/* Appends the shortest text that reads back as value.  Returns its end. */
extern char *QvAppendFloat(char *p, float value);

/* The most bytes that QvAppendFloat() writes. */
#define QV_FLOAT_TEXT_LEN 15

#endif							/* QV_TEXT_H */
