/*
 * plain.h
 *		Rows as whole values, on the pages of a list.
 */
#ifndef QV_IVF_CODEC_PLAIN_H
#define QV_IVF_CODEC_PLAIN_H

#include "ivf/codec/codec.h"
#include "ivf/codec/handle.h"

extern const IvfCodec ivf_plain_codec;

/* Raises ERRCODE_INDEX_CORRUPTED if the value of a row, in a slot of a block, is damaged. */
extern void IvfCheckValue(const IvfHandle *handle, BlockNumber block, uint32 slot, IvfPlainRow row);

#endif							/* QV_IVF_CODEC_PLAIN_H */
