/*
 * query.c
 *		A query vector, prepared for estimates from codes; see query.h.
 */
#include "postgres.h"

#include "kernels/kernels.h"
#include "space/query.h"

void
QvSpaceQueryInit(QvSpaceQuery *query, const QvSpace *space, const float *rotated,
				 uint32 nbits)
{
	uint32		pdim = space->pdim;
	Size		size = TYPEALIGN(64, QvQuerySize(pdim, nbits));
	char	   *mem = palloc(size + 64 + pdim * sizeof(float));
	float	   *x = (float *) (TYPEALIGN(64, mem) + size);

	query->kind = space->kind;
	query->offset = 0;
	if (space->kind == QV_SPACE_L2)
		QvSpaceCenter(space, rotated, x);
	else
	{
		/* <o, q> = <o - mean, q> + <mean, q>: the query is not centered */
		memcpy(x, rotated, pdim * sizeof(float));
		if (space->mean_norm2 > 0)
			query->offset = -qv_kernels.ip_f32(space->mean, rotated, pdim);
	}
	QvQueryInit(&query->q, (void *) TYPEALIGN(64, mem), x, pdim, nbits);
	query->norm = sqrtf(query->q.norm2);
	query->length = query->norm + sqrtf(space->mean_norm2);
	/* 1 - cos is computed from unit vectors */
	query->summed = space->opclass.metric == QV_METRIC_COSINE ? Max(1, query->norm) : query->norm;
}
