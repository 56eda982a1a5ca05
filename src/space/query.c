/*
 * query.c
 *		A query vector, prepared for estimates from codes; see query.h.
 */
#include "postgres.h"

#include <math.h>

#include "kernels/kernels.h"
#include "space/query.h"

/* Returns <mean, x>.  Where the mean is long, float32 would round off what rows differ by. */
static double
mean_ip(const QvSpace *space, const float *x)
{
	double		sum = 0;

	for (uint32 i = 0; i < space->pdim; i++)
		sum += (double) space->mean[i] * x[i];
	return sum;
}

/* Returns by what to multiply a query.  It may be beyond float32 where the query is short. */
static double
stretch_of(const QvSpace *space, const float *rotated)
{
	double		norm2 = 0;

	for (uint32 i = 0; i < space->pdim; i++)
		norm2 += (double) rotated[i] * rotated[i];
	return norm2 > 0 ? sqrt(((double) space->mean_norm2 + space->level) / norm2) : 1;
}

void
QvSpaceQueryInit(QvSpaceQuery *query, const QvSpace *space, const float *rotated,
				 uint32 nbits)
{
	uint32		pdim = space->pdim;
	Size		size = TYPEALIGN(64, QvQuerySize(pdim, nbits));
	char	   *mem = palloc(size + 64 + pdim * sizeof(float));
	float	   *x = (float *) (TYPEALIGN(64, mem) + size);
	float	   *q = x;

	query->kind = space->kind;
	query->shortened = QvIsShortened(space->kind, qv_kernels.norm2_f32(rotated, pdim));
	query->scale = 1;
	query->offset = 0;
	memcpy(x, rotated, pdim * sizeof(float));
	/* <o, q> = <o - mean, q> + <mean, q> */
	if (space->kind != QV_SPACE_L2 && space->mean_norm2 > 0)
		query->offset = -mean_ip(space, x);
	if (space->kind != QV_SPACE_IP)
		QvSpaceCenter(space, x, x);
	query->row = x;
	if (space->kind == QV_SPACE_POWER)
	{
		double		stretch = stretch_of(space, rotated);

		q = palloc(pdim * sizeof(float));
		for (uint32 i = 0; i < pdim; i++)
			q[i] = stretch * rotated[i] - space->mean[i];
		/* src/space/README.md, "Power distances" */
		query->scale = 0.5 / stretch;
		query->offset = 2 * stretch * query->offset - qv_kernels.norm2_f32(q, pdim) - space->level;
	}
	QvQueryInit(&query->q, (void *) TYPEALIGN(64, mem), q, pdim, nbits);
	query->row_norm2 = space->kind != QV_SPACE_POWER ? query->q.norm2 :
		QvSpaceNorm2(space, 0, mean_ip(space, x));
	query->norm = sqrtf(query->q.norm2);
	query->length = query->norm + sqrtf(space->mean_norm2);
	/* 1 - cos is computed from unit vectors */
	query->summed = space->opclass.metric == QV_METRIC_COSINE ? Max(1, query->norm) : query->norm;
}
