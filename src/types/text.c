/*
 * text.c
 *		Numbers from text and back.
 *
 * A query vector usually arrives as text, so reading 768 numbers is part of
 * every query's latency.  ParseDecimal() reads ordinary decimals about five
 * times faster than strtof() and declines whatever it cannot read exactly.
 */
#include "types/text.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "common/shortest_dec.h"

StaticAssertDecl(QV_FLOAT_TEXT_LEN >= FLOAT_SHORTEST_DECIMAL_LEN - 1,
				 "room for a float's text");

/* Digits that always fit in 64 bits */
#define MAX_DIGITS 19

/* The powers of ten that a double holds exactly */
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

/*
 * Read a decimal number if it can be rounded to float32 with certainty.
 *
 * The digits as an integer, converted to double and multiplied or divided by
 * an exact power of ten, make two roundings: the double is within 2 of its
 * units of the true value.  Rounding it again, to float32, is right unless it
 * lies that close to the middle between two floats.
 */
static bool
ParseDecimal(const char *p, const char **end, float *value)
{
	uint64		mantissa = 0;
	int			digits = 0;		/* significant ones */
	int			power = 0;
	bool		negative = (*p == '-');
	const char *start;
	double		d;
	uint64		bits;
	int64		from_middle;

	if (*p == '-' || *p == '+')
		p++;

	start = p;
	for (; IsDigit(*p); p++)
	{
		mantissa = mantissa * 10 + (uint64) (*p - '0');
		digits += (mantissa != 0);
	}
	if (*p == '.')
	{
		const char *point = p++;

		for (; IsDigit(*p); p++)
		{
			mantissa = mantissa * 10 + (uint64) (*p - '0');
			digits += (mantissa != 0);
		}
		if (p == start + 1)
			return false;		/* a point alone */
		if (p - point - 1 > MAX_POWER)
			return false;
		power = (int) (point + 1 - p);
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

	/* leave what rounds to infinity to strtof(); nothing here is subnormal */
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
QvParseFloat(const char *p, const char **end, bool *range)
{
	float		value;
	char	   *stop;

	*range = false;
	if (likely(ParseDecimal(p, end, &value)))
		return value;

	/* strtof, as float4in does, to round once; LC_NUMERIC is always C */
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
