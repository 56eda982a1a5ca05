/*
 * text.h
 *		Reading the numbers of a vector's text form.
 */
#ifndef QV_TEXT_H
#define QV_TEXT_H

#include "postgres.h"

/* The white space that may stand between the tokens; not locale dependent. */
static inline const char *
QvSkipSpace(const char *p)
{
	while (*p == ' ' || (*p >= '\t' && *p <= '\r'))
		p++;
	return p;
}

/*
 * Read the float32 nearest to the number at p, which is not white space, as
 * strtof() does.  limit is the end of the text, where its zero byte is.  *end
 * is p when there is no number; *range is set when it is too large or too
 * small for a float32 (the result is then infinite, zero or subnormal).
 */
extern float QvParseFloat(const char *p, const char *limit, const char **end,
						  bool *range);

/* Append the shortest text that reads back as value; returns its end. */
extern char *QvAppendFloat(char *p, float value);

/* Bytes QvAppendFloat may write. */
#define QV_FLOAT_TEXT_LEN 15

#endif							/* QV_TEXT_H */
