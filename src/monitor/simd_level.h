/*
 * simd_level.h
 *		The setting quiver.simd_level, which chooses the kernels.
 */
#ifndef QV_MONITOR_SIMD_LEVEL_H
#define QV_MONITOR_SIMD_LEVEL_H

/* Defines the setting, once, at load. */
extern void QvDefineSimdLevel(void);

#endif							/* QV_MONITOR_SIMD_LEVEL_H */
