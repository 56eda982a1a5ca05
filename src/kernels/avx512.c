/*
 * avx512.c
 *		Kernels of this level.
 */
#include "kernels/levels.h"

#ifdef QV_X86

void
QvFillAvx512(QvKernels *table, const QvCpu *cpu)
{
	(void) cpu;
	table->level = "avx512";
}

#endif
