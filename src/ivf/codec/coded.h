/*
 * coded.h
 *		Rows as codes: one-bit codes on the pages of a list, finer codes in records
 *		beside them, and sketches between the two.
 *
 * See src/ivf/codec/README.md.
 */
#ifndef QV_IVF_CODEC_CODED_H
#define QV_IVF_CODEC_CODED_H

#include "ivf/codec/codec.h"

extern const IvfCodec ivf_coded_codec;

#endif							/* QV_IVF_CODEC_CODED_H */
