/*
 * rotate.c
 *		FHT-Kac random rotation: see src/quant/README.md, "Rotation".
 */
#include "quant/quant.h"

#include "kernels/kernels.h"

#include <string.h>

/* Sebastiano Vigna's splitmix64, public domain. */
static uint64_t
splitmix64(uint64_t *state)
{
	uint64_t	z = (*state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

size_t
QvRotationSignBytes(size_t dim)
{
	return QV_ROTATION_ROUNDS * QvPaddedDim(dim) / 8;
}

void
QvRotationInit(QvRotation *rot, size_t dim, uint64_t seed, uint8_t *signs)
{
	uint64_t	state = seed;
	uint64_t	word = 0;
	size_t		n = QvRotationSignBytes(dim);

	/* byte by byte: the same signs whatever the machine's byte order */
	for (size_t i = 0; i < n; i++)
	{
		if (i % 8 == 0)
			word = splitmix64(&state);
		signs[i] = (uint8_t) (word >> i % 8 * 8);
	}
	rot->dim = dim;
	rot->pdim = QvPaddedDim(dim);
	rot->signs = signs;
}

void
QvRotate(const QvRotation *rot, const float *in, float *out)
{
	size_t		pdim = rot->pdim;
	size_t		pow2 = QV_DIM_ALIGN;

	if (pdim == 0)
		return;
	if (in != out)
		memcpy(out, in, rot->dim * sizeof(float));
	for (size_t i = rot->dim; i < pdim; i++)
		out[i] = 0;
	while (pow2 * 2 <= pdim)
		pow2 *= 2;

	for (size_t round = 0; round < QV_ROTATION_ROUNDS; round++)
	{
		qv_kernels.flip_signs_f32(out, rot->signs + round * pdim / 8, pdim);
		qv_kernels.fht_f32(round % 2 == 0 ? out : out + (pdim - pow2), pow2);
		if (pow2 != pdim)
			qv_kernels.mix_f32(out, out + pdim / 2, pdim / 2, 0.70710678f);
	}
}
