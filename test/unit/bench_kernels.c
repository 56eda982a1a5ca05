/*
 * bench_kernels.c
 *		Nanoseconds of CPU time per call of every kernel at every level,
 *		operands in cache.
 */
#include "cluster/kmeans.h"
#include "kernels/kernels.h"
#include "quant/quant.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_DIM 1536
#define BLOCK_ROWS 120
#define BLOCK_COLS 64

static float *fa;
static float *fb;
static float *scratch;
static uint16_t *ha;
static uint16_t *hb;
static uint8_t *ua;
static uint8_t *ub;
static uint8_t *bytes;
static float tile[BLOCK_ROWS * BLOCK_COLS];
static uint8_t signs[QV_ROTATION_ROUNDS * MAX_DIM / 8];
static volatile double sink;

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double) t.tv_sec * 1e9 + (double) t.tv_nsec;
}

/* Best of several runs of about 2 ms each. */
#define TIME(result, statement) \
do { \
	double		best_ = INFINITY; \
	size_t		calls_ = 1; \
\
	for (int run_ = 0; run_ < 12; run_++) \
	{ \
		double		start_ = now(); \
		double		elapsed_; \
\
		for (size_t call_ = 0; call_ < calls_; call_++) \
		{ \
			statement; \
			__asm__ volatile("" ::: "memory"); \
		} \
		elapsed_ = now() - start_; \
		if (elapsed_ < 2e6 && run_ < 8) \
		{ \
			calls_ = elapsed_ < 1e4 ? calls_ * 50 : \
				(size_t) ((double) calls_ * 2.2e6 / elapsed_) + 1; \
			run_ = run_ > 6 ? run_ : -1 + (elapsed_ >= 1e6); \
			continue; \
		} \
		if (elapsed_ / (double) calls_ < best_) \
			best_ = elapsed_ / (double) calls_; \
	} \
	result = best_; \
} while (0)

#define ROW(label, statement) \
do { \
	printf("%-9s %-19s", qv_kernels.level, label); \
	for (size_t d_ = 0; d_ < 3; d_++) \
	{ \
		size_t		n = dims[d_]; \
		double		ns_; \
\
		(void) n; \
		TIME(ns_, statement); \
		printf(" %10.1f", ns_); \
	} \
	printf("\n"); \
} while (0)

#define PAD(n) ((n) / 16 * 16 + 16 * ((n) % 16 != 0))

static void
bench_level(const size_t *dims)
{
	float		x;
	float		y;
	float		z;
	uint64_t	u;
	uint64_t	v;
	uint32_t	sums[QV_BATCH];
	float		out[QV_BATCH];
	int32_t		total;
	QvEstimateParams p = {ha, hb, 1.0f, 1.0f, 0.5f, 0.01f, -1.0f};
	QvRotation	rot;
	QvCodeFactors factors;
	QvQuery		query;
	const uint8_t *codes[4] = {ua, ua, ua, ua};

	ROW("l2sq_f32", sink = qv_kernels.l2sq_f32(fa, fb, n));
	ROW("ip_f32", sink = qv_kernels.ip_f32(fa, fb, n));
	ROW("l1_f32", sink = qv_kernels.l1_f32(fa, fb, n));
	ROW("cosine_f32", qv_kernels.cosine_f32(fa, fb, n, &x, &y, &z));
	ROW("l2sq_f16", sink = qv_kernels.l2sq_f16(ha, hb, n));
	ROW("ip_f16", sink = qv_kernels.ip_f16(ha, hb, n));
	ROW("cosine_f16", qv_kernels.cosine_f16(ha, hb, n, &x, &y, &z));
	ROW("f16_to_f32", qv_kernels.f16_to_f32(ha, scratch, n));
	ROW("f32_to_f16", qv_kernels.f32_to_f16(fa, (uint16_t *) bytes, n));
	ROW("hamming", sink = (double) qv_kernels.hamming(ua, ub, n / 8));
	ROW("jaccard", qv_kernels.jaccard(ua, ub, n / 8, &u, &v));
	ROW("ip_u8u8", sink = qv_kernels.ip_u8u8(ua, ub, n));
	ROW("sum_u8", sink = qv_kernels.sum_u8(ua, n));
	ROW("ip_u8s16", sink = (double) qv_kernels.ip_u8s16(ua, (int8_t *) ub, (int8_t *) ub + 1, n));
	ROW("unpack_bits(4)", qv_kernels.unpack_bits(ua, 4, bytes, PAD(n)));
	ROW("unpack_bits(2)", qv_kernels.unpack_bits(ua, 2, bytes, PAD(n)));
	ROW("fastscan", qv_kernels.fastscan(ua, ub, PAD(n) / 4, sums));
	ROW("fastscan_pack", qv_kernels.fastscan_pack(ua, PAD(n) / 8, PAD(n) / 8, bytes));
	ROW("fastscan_estimate", sink = qv_kernels.fastscan_estimate(ua, ub, PAD(n) / 4, &p, 1.0f, out));
	ROW("residual_bits", qv_kernels.residual_bits(ua, 0.01f, 127.5f, fb, PAD(n), bytes, &x, &y));
	ROW("decode_u8", qv_kernels.decode_u8(ua, 0.01f, 127.5f, scratch, n));
	ROW("quantize_u8", qv_kernels.quantize_u8(fa, n, 30.0f, 128.0f, bytes, &x, &y));
	ROW("norm2_f32", sink = qv_kernels.norm2_f32(fa, n));
	ROW("norm2_f64", sink = qv_kernels.norm2_f64(fa, n));
	ROW("divide_f32", qv_kernels.divide_f32(fa, 3.0, scratch, n));
	ROW("positive_bits_f32", qv_kernels.positive_bits_f32(fa, n, bytes));
	ROW("positive_bits_f16", qv_kernels.positive_bits_f16(ha, n, bytes));
	ROW("maxabs_f32", sink = qv_kernels.maxabs_f32(fa, n));
	ROW("fht_f32(2^k<=n)", qv_kernels.fht_f32(scratch, n < 128 ? 64 : n < 1024 ? 512 : 1024));
	ROW("flip_signs_f32", qv_kernels.flip_signs_f32(scratch, ua, n));
	ROW("sign_bits_f32", sink = qv_kernels.sign_bits_f32(fa, PAD(n), bytes));
	ROW("ip_bits_s8, 4 codes", qv_kernels.ip_bits_s8(codes, 4, (const int8_t *) ub, PAD(n), (int32_t *) sums));
	ROW("ip_bits_f32", sink = qv_kernels.ip_bits_f32(ua, fa, PAD(n)));
	ROW("split_s16", qv_kernels.split_s16(fa, n, 5000.0f, 0.0002f, (int8_t *) bytes, (int8_t *) bytes + MAX_DIM, &total, &x));
	ROW("lut_f32", qv_kernels.lut_f32(fa, PAD(n) / 4, 20.0f, bytes));
	ROW("mix_f32", qv_kernels.mix_f32(scratch, scratch + n / 2, n / 2, 0.7071f));
	ROW("add_f32", qv_kernels.add_f32(scratch, fa, n));
	ROW("argmin_diff_f32", sink = (double) qv_kernels.argmin_diff_f32(fa, fb, n, &x));
	ROW("ip_f32_block 120x64", qv_kernels.ip_f32_block(fa, BLOCK_ROWS, n, fb, BLOCK_COLS, n, n, tile, BLOCK_COLS));

	ROW("QvRotate", (QvRotationInit(&rot, n, 1, signs), QvRotate(&rot, fa, scratch)));
	ROW("QvEncode 8", QvEncode(fa, PAD(n), 8, bytes, &factors));
	ROW("QvEncode 4", QvEncode(fa, PAD(n), 4, bytes, &factors));
	ROW("QvEncode 2", QvEncode(fa, PAD(n), 2, bytes, &factors));
	ROW("QvQueryInit", QvQueryInit(&query, bytes, fa, PAD(n), PAD(n)));
	ROW("QvCodeIp", (query.pdim = PAD(n), sink = QvCodeIp(&query, ua, 8, 0.1f)));
}

/* n rows of 768 dimensions into k clusters, six rounds */
static void
bench_kmeans(size_t n, size_t k)
{
	const size_t dim = 768;
	float	   *rows = malloc(n * dim * sizeof(float));
	float	   *centroids = malloc(k * dim * sizeof(float));
	uint32_t   *assign = malloc(n * sizeof(uint32_t));
	void	   *workspace = malloc(QvKmeansWorkspace(n, dim, k));
	QvKmeansParams p = {rows, n, dim, k, 6, 1, 0, NULL, NULL};
	double		start;

	for (size_t i = 0; i < n * dim; i++)
		rows[i] = (float) rand() / (float) RAND_MAX - 0.5f;
	start = now();
	QvKmeans(&p, centroids, NULL, workspace);
	printf("%-9s kmeans n=%zu k=%zu: %.3f s", qv_kernels.level, n, k, (now() - start) / 1e9);
	p.iterations = 0;
	start = now();
	QvKmeans(&p, centroids, NULL, workspace);
	printf(", of it seeding %.3f s\n", (now() - start) / 1e9);
	free(rows);
	free(centroids);
	free(assign);
	free(workspace);
}

int
main(int argc, char **argv)
{
	const size_t dims[3] = {100, 768, 1536};
	const size_t room = BLOCK_ROWS * MAX_DIM;

	fa = aligned_alloc(64, room * sizeof(float));
	fb = aligned_alloc(64, room * sizeof(float));
	scratch = aligned_alloc(64, room * sizeof(float));
	ha = aligned_alloc(64, room * sizeof(uint16_t));
	hb = aligned_alloc(64, room * sizeof(uint16_t));
	ua = aligned_alloc(64, room);
	ub = aligned_alloc(64, room);
	bytes = aligned_alloc(64, room);
	for (size_t i = 0; i < room; i++)
	{
		float		u = sqrtf(-2 * logf(((float) rand() + 1) / ((float) RAND_MAX + 2)));
		float		w = 6.2831853f * (float) rand() / (float) RAND_MAX;

		fa[i] = u * cosf(w);
		fb[i] = u * sinf(w);
		ua[i] = (uint8_t) rand();
		ub[i] = (uint8_t) rand();
	}
	memset(scratch, 0, room * sizeof(float));
	qv_kernels.f32_to_f16(fa, ha, room);
	qv_kernels.f32_to_f16(fb, hb, room);

	printf("%-9s %-19s %10s %10s %10s   ns per call\n", "level", "kernel", "100", "768", "1536");
	for (const char *const *l = QvKernelsAvailable(); *l != NULL; l++)
	{
		if (argc > 1 && strcmp(argv[1], *l) != 0)
			continue;
		if (!QvKernelsSetLevel(*l))
			return 1;
		bench_level(dims);
		if (strcmp(*l, "scalar") != 0)
			bench_kmeans(18000, 900);
	}
	return 0;
}
