/*
 * assign.c
 *		The nearest centroid of every row, a tile of rows and centroids at a time.
 *
 * |x - c|^2 = |x|^2 + 2 (|c|^2 / 2 - <x, c>), so the nearest centroid is the one with the
 * least |c|^2 / 2 - <x, c>.
 */
#include "cluster/assign.h"

#include "kernels/kernels.h"

#include <math.h>

size_t
QvAssignWorkspace(size_t k)
{
	return QV_ALIGN64(k * sizeof(float)) +
		QV_ASSIGN_ROWS * QV_ASSIGN_CENTROIDS * sizeof(float);
}

/* Assigns at most QV_ASSIGN_ROWS rows from row number "first" on. */
static size_t
assign_rows(const QvAssignJob *job, size_t first, const float *half_norms,
			float *tile)
{
	float		best[QV_ASSIGN_ROWS];
	uint32_t	nearest[QV_ASSIGN_ROWS];
	const float *rows = job->rows + first * job->dim;
	size_t		n = job->n - first;
	size_t		changed = 0;

	if (n > QV_ASSIGN_ROWS)
		n = QV_ASSIGN_ROWS;
	for (size_t i = 0; i < n; i++)
	{
		best[i] = INFINITY;
		nearest[i] = 0;
	}
	for (size_t c = 0; c < job->k; c += QV_ASSIGN_CENTROIDS)
	{
		size_t		m = job->k - c;

		if (m > QV_ASSIGN_CENTROIDS)
			m = QV_ASSIGN_CENTROIDS;
		qv_kernels.ip_f32_block(rows, n, job->dim,
								job->centroids + c * job->dim, m, job->dim,
								job->dim, tile, QV_ASSIGN_CENTROIDS);
		for (size_t i = 0; i < n; i++)
		{
			float		score;
			size_t		j;

			j = qv_kernels.argmin_diff_f32(half_norms + c,
										   tile + i * QV_ASSIGN_CENTROIDS,
										   m, &score);
			if (score < best[i])
			{
				best[i] = score;
				nearest[i] = (uint32_t) (c + j);
			}
		}
	}
	for (size_t i = 0; i < n; i++)
	{
		changed += job->assign[first + i] != nearest[i];
		job->assign[first + i] = nearest[i];
		/* from the definition: the score has lost digits to cancellation */
		if (job->dist != NULL)
			job->dist[first + i] =
				qv_kernels.l2sq_f32(rows + i * job->dim,
									job->centroids + nearest[i] * job->dim,
									job->dim);
	}
	return changed;
}

size_t
QvAssignRun(const QvAssignJob *job)
{
	float	   *half_norms = job->workspace;
	float	   *tile = (float *) ((char *) job->workspace +
								  QV_ALIGN64(job->k * sizeof(float)));
	size_t		changed = 0;

	for (size_t c = 0; c < job->k; c++)
		half_norms[c] = 0.5f *
			qv_kernels.norm2_f32(job->centroids + c * job->dim, job->dim);
	for (size_t i = 0; i < job->n; i += QV_ASSIGN_ROWS)
	{
		changed += assign_rows(job, i, half_norms, tile);
		if (job->interrupt != NULL)
			job->interrupt(job->interrupt_arg);
	}
	return changed;
}

void
QvAssign(const float *rows, size_t n, size_t dim, const float *centroids,
		 size_t k, uint32_t *assign, float *dist, void *workspace)
{
	QvAssignJob job = {
		.rows = rows,
		.n = n,
		.dim = dim,
		.centroids = centroids,
		.k = k,
		.assign = assign,
		.dist = dist,
		.workspace = workspace,
	};

	(void) QvAssignRun(&job);
}
