/*
 * select.c
 *		Which level's table is in use.
 *
 * A level's table is the table of the level below with the entries the level
 * improves on written over it.
 */
#include "kernels/levels.h"

#define MAX_LEVELS 4

/* Best first, NULL-terminated.  Filled by the first call that needs it. */
static const char *available[MAX_LEVELS + 1];

static void
fill_table(QvKernels *table, const char *level, const QvCpu *cpu)
{
	QvFillScalar(table);
	if (strcmp(level, "scalar") == 0)
		return;
#ifdef QV_NEON
	QvFillNeon(table);
#endif
#ifdef QV_X86
	QvFillAvx2(table);
	if (strcmp(level, "avx512") == 0)
		QvFillAvx512(table, cpu);
	else if (strcmp(level, "avx512bw") == 0)
	{
		QvCpu		plain = *cpu;

		plain.avx512vnni = false;
		plain.avx512vpopcntdq = false;
		plain.gfni = false;
		QvFillAvx512(table, &plain);
		table->level = "avx512bw";
	}
#endif
	(void) cpu;
}

const char *const *
QvKernelsAvailable(void)
{
	if (available[0] == NULL)
	{
		QvCpu		cpu;
		int			n = 0;

		QvCpuDetect(&cpu);
#ifdef QV_NEON
		available[n++] = "neon";
#endif
#ifdef QV_X86
		if (cpu.avx512)
			available[n++] = "avx512";
		if (cpu.avx512 && (cpu.avx512vnni || cpu.avx512vpopcntdq || cpu.gfni))
			available[n++] = "avx512bw";
		if (cpu.avx2)
			available[n++] = "avx2";
#endif
		available[n] = "scalar";
	}
	return available;
}

bool
QvKernelsSetLevel(const char *level)
{
	const char *const *levels = QvKernelsAvailable();

	if (strcmp(level, "auto") == 0)
		level = levels[0];
	for (; *levels != NULL; levels++)
	{
		if (strcmp(*levels, level) == 0)
		{
			QvCpu		cpu;
			QvKernels	table;

			QvCpuDetect(&cpu);
			fill_table(&table, level, &cpu);
			qv_kernels = table;
			return true;
		}
	}
	return false;
}

void
QvKernelsInit(void)
{
	(void) QvKernelsSetLevel("auto");
}
