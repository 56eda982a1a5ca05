/*
 * plain.h
 *		Rows as whole values, on the pages of a list.
 */
#ifndef QV_IVF_PLAIN_H
#define QV_IVF_PLAIN_H

#include "ivf/codec.h"

extern const IvfCodec ivf_plain_codec;

#endif							/* QV_IVF_PLAIN_H */
