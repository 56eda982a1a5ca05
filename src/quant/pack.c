/*
 * pack.c
 *		Packed multi-bit codes, and the layout of FastScan batches: see
 *		src/quant/README.md, "FastScan layout".
 */
#include "quant/quant.h"

#include "kernels/kernels.h"

#include <string.h>

void
QvPackCode(const uint8_t *code, size_t pdim, int bits, uint8_t *packed)
{
	size_t		per_byte = 8 / (size_t) bits;

	if (bits == 8)
	{
		memcpy(packed, code, pdim);
		return;
	}
	for (size_t i = 0; i < pdim / per_byte; i++)
	{
		unsigned	byte = 0;

		for (size_t j = 0; j < per_byte; j++)
			byte |= (unsigned) code[i * per_byte + j] << j * (size_t) bits;
		packed[i] = (uint8_t) byte;
	}
}

void
QvPackSlot(uint8_t *batch, size_t nbits, int slot, const uint8_t *bits)
{
	uint8_t    *out = batch + (slot & 15);
	int			shift = slot < 16 ? 0 : 4;
	unsigned	keep = 0xf0u >> shift;

	for (size_t i = 0; i < nbits / 8; i++, out += 32)
	{
		unsigned	low = bits[i] & 15u;
		unsigned	high = (unsigned) bits[i] >> 4;

		out[0] = (uint8_t) ((out[0] & keep) | low << shift);
		out[16] = (uint8_t) ((out[16] & keep) | high << shift);
	}
}

void
QvUnpackSlot(const uint8_t *batch, size_t nbits, int slot, uint8_t *bits)
{
	const uint8_t *in = batch + (slot & 15);
	int			shift = slot < 16 ? 0 : 4;

	for (size_t i = 0; i < nbits / 8; i++, in += 32)
		bits[i] = (uint8_t) ((in[0] >> shift & 15) |
							 (in[16] >> shift & 15) << 4);
}

void
QvPackBatch(uint8_t *batch, size_t nbits, const uint8_t *bits,
			size_t bits_stride, int n)
{
	if (n == QV_BATCH)
	{
		qv_kernels.fastscan_pack(bits, bits_stride, nbits / 8, batch);
		return;
	}
	memset(batch, 0, QvBatchBytes(nbits));
	for (int slot = 0; slot < n; slot++)
		QvPackSlot(batch, nbits, slot, bits + (size_t) slot * bits_stride);
}
