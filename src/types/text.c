/*
 * text.c
 *		Numbers from text and back.
 *
 * A query vector usually arrives as text, so reading its numbers is part of every query's
 * latency. strtof() for each takes seven times as long [M78].  ParseDecimal() reads
 * ordinary decimals.  It declines a number that it cannot round with certainty.
 */
#include "types/text.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "common/shortest_dec.h"

StaticAssertDecl(QV_FLOAT_TEXT_LEN >= FLOAT_SHORTEST_DECIMAL_LEN - 1,
				 "room for a float's text");

/* Number of digits that always fits in 64 bits. */
#define MAX_DIGITS 19

/* The largest power of ten that a double holds exactly, with all smaller ones. */
#define MAX_POWER 22

static const double powers_of_ten[MAX_POWER + 1] = {
	1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12,
	1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22
};

static inline bool
IsDigit(char c)
{
	return c >= '0' && c <= '9';
}

/* Appends the digits at p to *number, modulo 2^64. limit ends the text. */
static inline const char *
AppendDigits(const char *p, const char *limit, uint64 *number)
{
#ifndef WORDS_BIGENDIAN
	/* eight at a time: pairs, then fours, then all, side by side in a word */
	while (limit - p >= 8)
	{
		const uint64 high = UINT64CONST(0xf0f0f0f0f0f0f0f0);
		uint64		w;

		memcpy(&w, p, sizeof(w));

		/* all bytes from 0x30 to 0x39? */
		if (((w & high) | (((w + UINT64CONST(0x0606060606060606)) & high) >> 4)) !=
			UINT64CONST(0x3333333333333333))
			break;

		w &= ~high;
		w = (w * 10 + (w >> 8)) & UINT64CONST(0x00ff00ff00ff00ff);
		w = (w * 100 + (w >> 16)) & UINT64CONST(0x0000ffff0000ffff);
		w = (w * 10000 + (w >> 32)) & UINT64CONST(0xffffffff);
		*number = *number * 100000000 + w;
		p += 8;
	}
#endif
	for (; IsDigit(*p); p++)
		*number = *number * 10 + (uint64) (*p - '0');

	return p;
}

/*
 * Reads a decimal number if it can be rounded to float32 with certainty.
 *
 * The digits, as an integer, are converted to double, and multiplied or divided by an
 * exact power of ten.  Those are two roundings, so the double is within 2 of its units of
 * the true value.  Rounding it to float32 is right unless it lies that close to the
 * middle between two floats.
 */
static bool
ParseDecimal(const char *p, const char *limit, const char **end, float *value)
{
	bool		negative = (*p == '-');
	uint64		mantissa = 0;
	ptrdiff_t	digits;			/* significant ones */
	ptrdiff_t	power = 0;
	const char *start;
	const char *first;
	double		d;
	uint64		bits;
	int64		from_middle;

	if (*p == '-' || *p == '+')
		p++;

	start = p;
	while (*p == '0')
		p++;
	first = p;
	p = AppendDigits(p, limit, &mantissa);
	digits = p - first;

	if (*p == '.')
	{
		const char *point = p++;

		if (digits == 0)
		{
			while (*p == '0')
				p++;
		}
		first = p;
		p = AppendDigits(p, limit, &mantissa);
		digits += p - first;
		power = point + 1 - p;

		if (p == start + 1)
			return false;		/* only a point */
	}
	else if (p == start)
		return false;

	if (digits > MAX_DIGITS)
		return false;

	if (*p == 'e' || *p == 'E')
	{
		bool		below_one = (p[1] == '-');
		int			exponent = 0;

		p += (p[1] == '-' || p[1] == '+') ? 2 : 1;
		if (!IsDigit(*p))
			return false;
		for (; IsDigit(*p); p++)
		{
			if (exponent > 1000)
				return false;
			exponent = exponent * 10 + (*p - '0');
		}
		power += below_one ? -exponent : exponent;
	}

	/* what follows must end the number: not "0x1p3", "1e", "1_0" */
	if (*p != ',' && *p != ']' && *p != '}' && *p != '\0' && QvSkipSpace(p) == p)
		return false;

	if (power < -MAX_POWER || power > MAX_POWER)
		return false;

	d = (double) mantissa;
	d = power < 0 ? d / powers_of_ten[-power] : d * powers_of_ten[power];

	/*
	 * numbers that round to infinity are left to strtof(); nothing here is
	 * subnormal
	 */
	if (d > 3.4e38)
		return false;

	/* the 29 bits that float32 lacks, seen from the middle between floats */
	memcpy(&bits, &d, sizeof(bits));
	from_middle = (int64) (bits & ((UINT64CONST(1) << 29) - 1)) - (INT64CONST(1) << 28);
	if (from_middle >= -4 && from_middle <= 4)
		return false;

	*value = (float) (negative ? -d : d);
	*end = p;
	return true;
}

float
QvParseFloat(const char *p, const char *limit, const char **end, bool *range)
{
	float		value;
	char	   *stop;

	*range = false;
	if (likely(ParseDecimal(p, limit, end, &value)))
		return value;

	/* strtof() rounds once, as in float4in; LC_NUMERIC is always C */
	errno = 0;
	value = strtof(p, &stop);
	*end = stop;
	*range = (errno == ERANGE);
	return value;
}

char *
QvAppendFloat(char *p, float value)
{
	return p + float_to_shortest_decimal_bufn(value, p);
}
