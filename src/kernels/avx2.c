/*
 * avx2.c
 *		Kernels of this level.
 */
#include "kernels/levels.h"

#ifdef QV_X86

void
QvFillAvx2(QvKernels *table)
{
	table->level = "avx2";
}

#endif
