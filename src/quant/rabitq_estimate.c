/*
 * rabitq_estimate.c
 *		Inner products of codes with a query and with each other.
 *
 * The integer part is exact and the corrections are made in double, so the
 * only rounding is that of the result, which QvQuery.err16 includes.
 */
#include "quant/quant.h"

#include "kernels/kernels.h"

float
QvCodeIp(const QvQuery *q, const uint8_t *code, int bits, float scale)
{
	int64_t		ip = qv_kernels.ip_u8s16(code, q->hi, q->lo, q->pdim);
	double		exact = (double) ip - (double) QvCodeOffset(bits) * q->sum16;

	return (float) (exact * q->scale16 * scale);
}
