/*
 * neon.c
 *		Kernels of this level.
 */
#include "kernels/levels.h"

#ifdef QV_NEON

void
QvFillNeon(QvKernels *table)
{
	table->level = "neon";
}

#endif
