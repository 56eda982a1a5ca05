/*
 * unit.c
 *		The runner; see unit.h.
 */
#include "unit.h"

#include <stdarg.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAX_MESSAGES 5

static int	passed;
static int	failed;
static int	failures;			/* of the running test */
static uint64_t state;

void
UnitRun(const char *name, const char *level, void (*test) (void))
{
	failures = 0;
	UnitSeed(1);
	test();
	if (failures == 0)
		passed++;
	else
		failed++;
	printf("%s %d - %s%s%s\n", failures == 0 ? "ok" : "not ok",
		   passed + failed, name, level ? " " : "", level ? level : "");
	fflush(stdout);
}

void
UnitFail(const char *file, int line, const char *format,...)
{
	va_list		args;

	if (failures++ >= MAX_MESSAGES)
		return;
	printf("# %s:%d: ", file, line);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
}

void
UnitSeed(uint64_t seed)
{
	state = seed;
}

uint64_t
UnitRandom(void)
{
	uint64_t	z = (state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

double
UnitUniform(void)
{
	return (double) (UnitRandom() >> 11) * 0x1p-53;
}

float
UnitNormal(void)
{
	double		radius = sqrt(-2 * log(1 - UnitUniform()));

	return (float) (radius * cos(6.283185307179586 * UnitUniform()));
}

void
UnitFillNormal(float *x, size_t n)
{
	for (size_t i = 0; i < n; i++)
	{
		float		v = UnitNormal();

		memcpy((char *) x + i * sizeof(v), &v, sizeof(v));
	}
}

void
UnitFillBytes(void *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		((uint8_t *) p)[i] = (uint8_t) (UnitRandom() >> 32);
}

UnitBuffer
UnitBufferNew(size_t size)
{
	size_t		page = (size_t) sysconf(_SC_PAGESIZE);
	UnitBuffer	buffer;
	uint8_t    *base;

	buffer.size = (size + page) / page * page;
	base = mmap(NULL, buffer.size + 2 * page, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (base == MAP_FAILED ||
		mprotect(base, page, PROT_NONE) != 0 ||
		mprotect(base + page + buffer.size, page, PROT_NONE) != 0)
	{
		perror("could not map memory");
		exit(2);
	}
	buffer.start = base + page;
	return buffer;
}

void
UnitBufferFree(UnitBuffer *buffer)
{
	size_t		page = (size_t) sysconf(_SC_PAGESIZE);

	munmap(buffer->start - page, buffer->size + 2 * page);
}

void *
UnitAtEnd(const UnitBuffer *buffer, size_t n)
{
	return buffer->start + buffer->size - n;
}

void *
UnitAtStart(const UnitBuffer *buffer, size_t skew)
{
	return buffer->start + skew;
}

double
UnitHalfValue(uint16_t h)
{
	int			exponent = h >> 10 & 31;
	double		mantissa = h & 0x3ff;
	double		v;

	if (exponent == 31)
		v = mantissa != 0 ? NAN : INFINITY;
	else if (exponent == 0)
		v = ldexp(mantissa, -24);
	else
		v = ldexp(mantissa + 1024, exponent - 25);
	return h & 0x8000 ? -v : v;
}

/* Not for NaN. */
uint16_t
UnitHalfFromDouble(double v)
{
	unsigned	sign = signbit(v) ? 0x8000 : 0;
	int			exponent;
	double		units;

	v = fabs(v);
	if (v >= 65520)
		return (uint16_t) (sign | 0x7c00);
	if (v < ldexp(1, -14))
		return (uint16_t) (sign | (unsigned) nearbyint(ldexp(v, 24)));
	(void) frexp(v, &exponent); /* v in [2^(exponent - 1), 2^exponent) */
	units = nearbyint(ldexp(v, 11 - exponent)); /* 1024 to 2048 */
	return (uint16_t) (sign | ((unsigned) (exponent + 13) * 1024 +
							   (unsigned) units));
}

int
main(void)
{
	SuiteContainers();
	SuiteKernels();
	SuiteQuant();
	SuiteCluster();
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}
