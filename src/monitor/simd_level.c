/*
 * simd_level.c
 *		The setting quiver.simd_level; see simd_level.h.
 */
#include "postgres.h"

#include "kernels/kernels.h"
#include "monitor/simd_level.h"
#include "utils/guc.h"

static char *simd_level;

static bool
check_level(char **newval, void **extra, GucSource source)
{
	if (strcmp(*newval, "auto") == 0)
		return true;
	for (const char *const *level = QvKernelsAvailable(); *level; level++)
		if (strcmp(*newval, *level) == 0)
			return true;
	GUC_check_errdetail("This CPU cannot run that level, or there is none of that name.");
	GUC_check_errhint("See quiver_simd_levels() of extension quiver for what it can run.");
	return false;
}

static void
assign_level(const char *newval, void *extra)
{
	QvKernelsSetLevel(newval);
}

void
QvDefineSimdLevel(void)
{
	DefineCustomStringVariable("quiver.simd_level",
							   "Instruction set level of the distance kernels.",
							   "\"auto\" takes the best that this CPU can run; others are for tests.",
							   &simd_level, "auto",
							   PGC_SUSET, 0,
							   check_level, assign_level, NULL);
}
