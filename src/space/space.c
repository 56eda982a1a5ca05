/*
 * space.c
 *		The vector space of an index; see space.h.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type_d.h"
#include "commands/defrem.h"
#include "kernels/kernels.h"
#include "space/space.h"

void
QvSpaceInit(QvSpace *space, const QvOpclassInfo *opclass, uint32 dims, uint32 pdim, uint64 seed)
{
	memset(space, 0, sizeof(*space));
	space->opclass = *opclass;
	space->dims = dims;
	space->pdim = pdim;
	if (pdim == 0)
		return;
	space->kind = QvSpaceKindOf(opclass);
	QvRotationInit(&space->rotation, dims, seed, palloc(QvRotationSignBytes(dims)));
}

void
QvSpaceSetMean(QvSpace *space, const float *mean)
{
	space->mean = mean;
	space->mean_norm2 = qv_kernels.norm2_f32(mean, space->pdim);
}

/*
 * Power distances are better where rows are about equally long, and have much in common: where no
 * row's squared length is more than MOST_LENGTH times their mean, and where the squared length of
 * the mean row is at least LEAST_IN_COMMON times that mean [M124].
 */
#define MOST_LENGTH 2
#define LEAST_IN_COMMON (1.0 / 3)

void
QvSpaceChoose(QvSpace *space, const float *rows, int n)
{
	double		mean = 0,
				most = 0;

	for (int i = 0; i < n && space->kind == QV_SPACE_IP; i++)
	{
		double		norm2 = qv_kernels.norm2_f32(rows + (Size) i * space->pdim, space->pdim);

		mean += norm2 / n;
		most = Max(most, norm2);
	}
	/* a mean of at most a quarter of QV_MAX_LENGTH: see QvIsShortened() */
	if (mean > 0 && most <= QV_MAX_LENGTH * QV_MAX_LENGTH / 16 &&
		most <= MOST_LENGTH * mean && space->mean_norm2 >= LEAST_IN_COMMON * mean)
	{
		space->kind = QV_SPACE_POWER;
		space->level = Max(0, mean - space->mean_norm2);
	}
}

static double
squared_length(const float *value, size_t dim)
{
	double		sum = 0;

	for (size_t i = 0; i < dim; i++)
		sum += (double) value[i] * value[i];
	return sum;
}

void
QvScaleAndRotate(const QvRotation *rotation, bool unit, const float *value, float *out)
{
	size_t		dim = rotation->dim;

	if (unit)
	{
		double		norm2 = squared_length(value, dim);
		float		inv;

		if (norm2 == 0)
		{
			memset(out, 0, rotation->pdim * sizeof(float));
			return;
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
		if (length > QV_MAX_LENGTH)
			length = sqrt(squared_length(value, dim));
		if (length > QV_MAX_LENGTH)
			for (size_t i = 0; i < dim; i++)
				out[i] = value[i] * (QV_MAX_LENGTH / length);
	}
	QvRotate(rotation, out, out);
}

void
QvSpaceRotateValue(const QvSpace *space, const void *value, float *scratch, float *out)
{
	if (value)
		space->opclass.type->to_float(value, scratch);
	else
		memset(scratch, 0, space->dims * sizeof(float));
	QvScaleAndRotate(&space->rotation, space->opclass.metric == QV_METRIC_COSINE, scratch, out);
}

void
QvSpaceCenter(const QvSpace *space, const float *rotated, float *out)
{
	for (uint32 i = 0; i < space->pdim; i++)
		out[i] = rotated[i] - space->mean[i];
}

/* ---- values of the column ---- */

int
QvColumnDims(Relation index, const QvOpclassInfo *opclass)
{
	Form_pg_attribute column = TupleDescAttr(RelationGetDescr(index), 0);
	int			dims = column->atttypmod;

	/* bit's operator classes take it, but its values differ in length */
	if (column->atttypid == VARBITOID)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("type not supported for %s index",
						get_am_name(index->rd_rel->relam))));
	if (dims < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("column does not have dimensions")));
	if (dims > opclass->type->max_dims)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("column cannot have more than %d dimensions for %s index",
						opclass->type->max_dims, get_am_name(index->rd_rel->relam))));
	return dims;
}

void
QvCheckDims(const QvOpclassInfo *opclass, uint32 dims, const void *value)
{
	int			found = opclass->type->dims(value);

	if (found != dims)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_EXCEPTION),
				 errmsg("expected %u dimensions, not %d", dims, found)));
}

const void *
QvSearchedValue(const QvOpclassInfo *opclass, uint32 dims, const void *value)
{
	if (value && opclass->type->dims(value) != dims)
		opclass->type->different_dims(dims, opclass->type->dims(value));
	return value && QvIsIndexed(opclass, value) ? value : NULL;
}

const void *
QvIndexedValue(const QvSpace *space, Datum value)
{
	const void *detoasted = PG_DETOAST_DATUM(value);

	QvCheckDims(&space->opclass, space->dims, detoasted);
	return QvIsIndexed(&space->opclass, detoasted) ? detoasted : NULL;
}
