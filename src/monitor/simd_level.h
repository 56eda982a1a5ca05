/*
 * simd_level.h
 *		The setting quiver.simd_level: which kernels are used.
 */
#ifndef QV_MONITOR_SIMD_LEVEL_H
#define QV_MONITOR_SIMD_LEVEL_H

/* Define it; once, at load. */
extern void QvDefineSimdLevel(void);

#endif							/* QV_MONITOR_SIMD_LEVEL_H */
