/*
 * quiver.c
 *		Loading the library.
 */
#include "postgres.h"

#include "am/options.h"
#include "fmgr.h"
#include "kernels/kernels.h"

PG_MODULE_MAGIC;

PGDLLEXPORT void _PG_init(void);

void
_PG_init(void)
{
	QvKernelsInit();
	QvDefineOptions();
}
