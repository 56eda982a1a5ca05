/*
 * bitmap.h
 *		Bits by number, in the caller's memory.
 */
#ifndef QV_BITMAP_H
#define QV_BITMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BitmapBytes(bits) (((size_t) (bits) + 7) / 8)

static inline bool
BitmapHas(const uint8_t *bitmap, size_t i)
{
	return (bitmap[i / 8] & (1 << (i % 8))) != 0;
}

static inline void
BitmapSet(uint8_t *bitmap, size_t i)
{
	bitmap[i / 8] |= 1 << (i % 8);
}

static inline void
BitmapClear(uint8_t *bitmap, size_t i)
{
	bitmap[i / 8] &= ~(1 << (i % 8));
}

#endif							/* QV_BITMAP_H */
