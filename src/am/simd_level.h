/*
 * simd_level.h
 *		The setting quiver.simd_level: which kernels are used.
 */
#ifndef QV_AM_SIMD_LEVEL_H
#define QV_AM_SIMD_LEVEL_H

/* Define it; once, at load. */
extern void QvDefineSimdLevel(void);

#endif							/* QV_AM_SIMD_LEVEL_H */
