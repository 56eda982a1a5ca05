/*
 * cpu.c
 *		What the CPU and the operating system support.
 *
 * The only place that asks.  __builtin_cpu_supports() answers no for AVX and
 * AVX-512 when the operating system does not save their registers.
 */
#include "kernels/levels.h"

#ifdef QV_X86
#include <cpuid.h>
#endif

void
QvCpuDetect(QvCpu *cpu)
{
	memset(cpu, 0, sizeof(*cpu));
#ifdef QV_X86
	{
		unsigned int eax;
		unsigned int ebx;
		unsigned int ecx;
		unsigned int edx;

		__builtin_cpu_init();
		/* clang 14 does not know "f16c" as a name */
		if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_F16C) &&
			__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
			cpu->avx2 = true;
		if (cpu->avx2 && __builtin_cpu_supports("avx512f") &&
			__builtin_cpu_supports("avx512bw") &&
			__builtin_cpu_supports("avx512dq") &&
			__builtin_cpu_supports("avx512vl"))
		{
			cpu->avx512 = true;
			if (__builtin_cpu_supports("avx512vnni"))
				cpu->avx512vnni = true;
			if (__builtin_cpu_supports("avx512vpopcntdq"))
				cpu->avx512vpopcntdq = true;
			if (__builtin_cpu_supports("gfni"))
				cpu->gfni = true;
		}
	}
#endif
}
