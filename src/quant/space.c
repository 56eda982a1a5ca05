/*
 * space.c
 *		From a table's vector to the rotated one that codes are taken of.
 */
#include "quant/quant.h"

#include "kernels/kernels.h"

#include <math.h>
#include <string.h>

/*
 * Longer vectors are shortened to this length inside an index, so that no
 * square or product overflows float32.  Their rows are still returned, in
 * exact order among what a search finds: distances come from the table.
 */
#define MAX_LENGTH 1e17

bool
QvSpaceRotate(const QvRotation *rot, bool unit, const float *value, float *out)
{
	size_t		dim = rot->dim;

	if (unit)
	{
		double		norm2 = 0;
		float		inv;

		for (size_t i = 0; i < dim; i++)
			norm2 += (double) value[i] * value[i];
		if (norm2 == 0)
		{
			memset(out, 0, rot->pdim * sizeof(float));
			return false;
		}
		inv = 1 / sqrt(norm2);
		if (isfinite(inv) && inv > 0)
			for (size_t i = 0; i < dim; i++)
				out[i] = value[i] * inv;
		else
			for (size_t i = 0; i < dim; i++)
				out[i] = value[i] / sqrt(norm2);
	}
	else
	{
		double		length = qv_kernels.maxabs_f32(value, dim) * sqrt(dim);

		memcpy(out, value, dim * sizeof(float));
		if (length > MAX_LENGTH)
			for (size_t i = 0; i < dim; i++)
				out[i] = value[i] * (MAX_LENGTH / length);
	}
	QvRotate(rot, out, out);
	return true;
}
