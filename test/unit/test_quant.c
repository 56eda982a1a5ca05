/*
 * test_quant.c
 *		Rotation, codes, packing, queries and estimates, at every level.
 */
#include "unit.h"

#include "quant/quant.h"

static void *
alloc64(size_t size)
{
	void	   *p = aligned_alloc(64, (size + 64) / 64 * 64);

	if (p == NULL)
		abort();
	return p;
}

static double
dot(const float *a, const float *b, size_t n)
{
	double		sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += (double) a[i] * (double) b[i];
	return sum;
}

/* ---- rotation ---- */

static void
test_rotation_signs(void)
{
	/* the format: index files depend on these bytes; splitmix64 of seed 0 */
	static const uint8_t want[16] = {
		0xaf, 0xcd, 0x1d, 0x7b, 0x39, 0xa8, 0x20, 0xe2,
		0xf4, 0x65, 0xb9, 0xa1, 0x6a, 0x9e, 0x78, 0x6e
	};
	uint8_t		signs[QV_ROTATION_ROUNDS * 32 / 8];
	uint8_t		other[sizeof(signs)];
	QvRotation	rot;

	CHECK(QvRotationSignBytes(20) == sizeof(signs), "sign bytes");
	QvRotationInit(&rot, 20, 0, signs);
	CHECK(rot.dim == 20 && rot.pdim == 32 && rot.signs == signs, "rotation");
	CHECK(memcmp(signs, want, sizeof(want)) == 0, "signs of seed 0");
	QvRotationInit(&rot, 20, 1, other);
	CHECK(memcmp(signs, other, sizeof(signs)) != 0, "signs depend on the seed");
}

/* The rotation from its definition, in double. */
static void
reference_rotate(const QvRotation *rot, const float *in, double *x)
{
	size_t		n = rot->pdim;
	size_t		m = 1;

	for (size_t i = 0; i < n; i++)
		x[i] = i < rot->dim ? in[i] : 0;
	while (2 * m <= n)
		m *= 2;
	for (size_t round = 0; round < 4; round++)
	{
		double	   *part = round % 2 == 0 ? x : x + n - m;

		for (size_t i = 0; i < n; i++)
			if (rot->signs[(round * n + i) / 8] >> i % 8 & 1)
				x[i] = -x[i];
		for (size_t h = 1; h < m; h *= 2)
			for (size_t i = 0; i < m; i++)
				if ((i & h) == 0)
				{
					double		a = part[i];
					double		b = part[i + h];

					part[i] = (a + b) * sqrt(0.5);
					part[i + h] = (a - b) * sqrt(0.5);
				}
		for (size_t i = 0; i < n / 2 && m != n; i++)
		{
			double		a = x[i];
			double		b = x[i + n / 2];

			x[i] = (a + b) * sqrt(0.5);
			x[i + n / 2] = (a - b) * sqrt(0.5);
		}
	}
}

static void
check_rotation(size_t dim)
{
	size_t		pdim = QvPaddedDim(dim);
	uint8_t    *signs = alloc64(QvRotationSignBytes(dim));
	float	   *a = alloc64(pdim * 4);
	float	   *b = alloc64(pdim * 4);
	float	   *ra = alloc64(pdim * 4);
	float	   *rb = alloc64(pdim * 4);
	double	   *want = alloc64(pdim * 8);
	QvRotation	rot;
	double		norm;
	double		largest = 0;

	UnitFillNormal(a, dim);
	UnitFillNormal(b, dim);
	QvRotationInit(&rot, dim, dim, signs);
	memset(ra, 0xff, pdim * 4);
	QvRotate(&rot, a, ra);
	norm = sqrt(dot(a, a, dim));
	CHECK(fabs(sqrt(dot(ra, ra, pdim)) - norm) <= 1e-6 * norm, "%zu: norm", dim);

	reference_rotate(&rot, a, want);
	for (size_t i = 0; i < pdim; i++)
		CHECK(fabs(ra[i] - want[i]) <= 1e-6 * norm, "%zu: coordinate %zu is %g, not %g",
			  dim, i, (double) ra[i], want[i]);

	/* in place */
	memcpy(rb, b, dim * 4);
	QvRotate(&rot, rb, rb);
	CHECK(fabs(dot(ra, rb, pdim) - dot(a, b, dim)) <=
		  1e-6 * norm * sqrt(dot(b, b, dim)), "%zu: inner product", dim);

	/* a single coordinate is spread over all; 6 sigma of a random rotation */
	memset(a, 0, dim * 4);
	a[dim / 2] = 1;
	QvRotate(&rot, a, ra);
	for (size_t i = 0; i < pdim; i++)
		largest = fmax(largest, fabs(ra[i]));
	if (dim >= 64)
		CHECK(largest <= 6 / sqrt((double) pdim), "%zu: largest coordinate %g", dim, largest);

	free(signs);
	free(a);
	free(b);
	free(ra);
	free(rb);
	free(want);
}

static void
test_rotation(void)
{
	static const size_t dims[] = {
		384, 512, 784, 1000, 1024, 1536, 2000, 3072, 4096, 16000
	};

	for (size_t dim = 1; dim <= 300; dim++)
		check_rotation(dim);
	for (size_t i = 0; i < sizeof(dims) / sizeof(dims[0]); i++)
		check_rotation(dims[i]);
}

/* ---- multi-bit codes ---- */

enum
{
	NORMAL, CONSTANT, NEGATIVE, ONE_HOT, TWO_HOT, DYNAMIC, TINY, HUGE_VALUES,
	DENORMAL, TIES, OUTLIER, KINDS
};

static void
fill(float *x, size_t n, int kind)
{
	for (size_t i = 0; i < n; i++)
	{
		float		v = UnitNormal();

		switch (kind)
		{
			case NORMAL:
				x[i] = v;
				break;
			case CONSTANT:
				x[i] = 0.37f;
				break;
			case NEGATIVE:
				x[i] = -1.0f / 3;
				break;
			case ONE_HOT:
				x[i] = i == n / 3 ? -5 : 0;
				break;
			case TWO_HOT:
				x[i] = i == 0 ? 1e6f : i == n - 1 ? 1e-6f : 0;
				break;
			case DYNAMIC:
				x[i] = v * powf(10, (float) (UnitUniform() * 24 - 18));
				break;
			case TINY:
				x[i] = v * 1e-30f;
				break;
			case HUGE_VALUES:
				x[i] = v * 2e37f;
				break;
			case DENORMAL:
				x[i] = v * 1e-40f;
				break;
			case TIES:
				x[i] = (float) ((int) (UnitRandom() % 9) - 4);
				break;
			default:
				x[i] = i == 5 ? 100 * v : v;
				break;
		}
	}
}

static const size_t code_dims[] = {16, 32, 112, 272, 768, 1536, 4096};

#define FOR_CODE_DIMS(n) \
	for (size_t i_ = 0; i_ < sizeof(code_dims) / sizeof(code_dims[0]); i_++) \
		for (size_t n = code_dims[i_], once_ = 1; once_; once_ = 0)

/* |x - decode(code)|, and |decode(code)| if wanted */
static double
code_distance(const float *x, const uint8_t *code, int bits, double scale,
			  size_t n, double *norm)
{
	double		distance2 = 0;
	double		norm2 = 0;

	for (size_t i = 0; i < n; i++)
	{
		double		y = scale * (code[i] - (double) QvCodeOffset(bits));

		distance2 += (x[i] - y) * (x[i] - y);
		norm2 += y * y;
	}
	if (norm != NULL)
		*norm = sqrt(norm2);
	return sqrt(distance2);
}

/*
 * The bound that residual promises, for one query.  It is certain, so there
 * is no tolerance but that of this test's own double arithmetic.
 */
static void
check_bound(const char *what, const float *x, const float *query, size_t n,
			const uint8_t *code, int bits, const QvCodeFactors *factors)
{
	void	   *mem = alloc64(QvQuerySize(n, 0));
	QvQuery		q;
	double		norm;
	double		exact = dot(x, query, n);
	double		got;
	double		bound;

	QvQueryInit(&q, mem, query, n, 0);
	(void) code_distance(x, code, bits, factors->scale, n, &norm);
	got = QvCodeIp(&q, code, bits, factors->scale);
	bound = factors->residual * sqrt(dot(query, query, n)) + norm * q.err16;
	CHECK(fabs(got - exact) <= bound * (1 + 1e-9),
		  "%s, %zu dims, %d bits: %g for %g, bound %g", what, n, bits, got, exact, bound);
	free(mem);
}

static void
check_code(const float *x, size_t n, int bits, int kind)
{
	uint8_t    *code = alloc64(n);
	float	   *query = alloc64(n * 4);
	QvCodeFactors factors;
	double		distance;
	double		norm = sqrt(dot(x, x, n));
	double		largest = 0;

	memset(code, 0xee, n);
	QvEncode(x, n, bits, code, &factors);
	for (size_t i = 0; i < n; i++)
	{
		CHECK(code[i] >> bits == 0, "code %d of %d bits", code[i], bits);
		largest = fmax(largest, fabs(x[i]));
	}
	distance = code_distance(x, code, bits, factors.scale, n, NULL);
	CHECK(factors.residual >= distance, "kind %d, %zu dims, %d bits: residual %.9g below %.9g",
		  kind, n, bits, (double) factors.residual, distance);
	if (largest < 1e37 && largest > 1e-36)
		CHECK(factors.residual <= distance * (1 + 1e-4) + 1e-6 * norm,
			  "kind %d, %zu dims, %d bits: residual %.9g is loose for %.9g",
			  kind, n, bits, (double) factors.residual, distance);
	if (norm * norm < 1e38 && norm * norm > 1e-36)
		CHECK(fabs(factors.norm2 - norm * norm) <= 1e-5 * norm * norm, "norm2");
	CHECK(isfinite(factors.scale) && factors.scale >= 0, "scale %g", (double) factors.scale);
	CHECK(distance <= norm * (1 + 1e-6), "kind %d, %zu dims, %d bits: worse than nothing",
		  kind, n, bits);

	if (largest < 1e15 && largest > 1e-15)
	{
		UnitFillNormal(query, n);
		check_bound("random query", x, query, n, code, bits, &factors);
		check_bound("the vector itself", x, x, n, code, bits, &factors);

		/* Cauchy-Schwarz is an equality for a query along the error */
		for (size_t i = 0; i < n; i++)
			query[i] = x[i] - factors.scale * (code[i] - QvCodeOffset(bits));
		check_bound("query along the error", x, query, n, code, bits, &factors);
		for (size_t i = 0; i < n; i++)
			query[i] = -query[i];
		check_bound("query against the error", x, query, n, code, bits, &factors);
		for (size_t i = 0; i < n; i++)
			query[i] = 1;
		check_bound("constant query", x, query, n, code, bits, &factors);
		fill(query, n, DYNAMIC);
		check_bound("query of wide range", x, query, n, code, bits, &factors);
		fill(query, n, ONE_HOT);
		check_bound("one-hot query", x, query, n, code, bits, &factors);
	}
	free(code);
	free(query);
}

static void
test_codes(void)
{
	FOR_CODE_DIMS(n)
	{
		float	   *x = alloc64(n * 4);

		for (int kind = 0; kind < KINDS; kind++)
		{
			for (int bits = 2; bits <= 8; bits *= 2)
			{
				fill(x, n, kind);
				check_code(x, n, bits, kind);
			}
		}
		free(x);
	}
}

static void
test_zero_code(void)
{
	for (int bits = 2; bits <= 8; bits *= 2)
	{
		float		x[32] = {0};
		uint8_t		code[32];
		uint8_t		sign_bits[4];
		QvCodeFactors factors = {1, 1, 1};

		x[3] = -0.0f;
		QvEncode(x, 32, bits, code, &factors);
		CHECK(factors.norm2 == 0 && factors.scale == 0 && factors.residual == 0,
			  "a zero vector has zero factors");
		for (int i = 0; i < 32; i++)
			CHECK(code[i] >> bits == 0, "code %d of %d bits", code[i], bits);
		CHECK(QvEncodeBits(x, 32, 32, sign_bits) == 0, "factor of a zero vector");
		x[31] = 1;
		CHECK(QvEncodeBits(x, 32, 16, sign_bits) == 0, "factor of a zero prefix");
	}
}

/* Root mean square error in units of |o| |q| / sqrt(D). */
static void
test_code_error(void)
{
	static const struct
	{
		int			bits;
		double		rms;
	}			want[] = {{8, 0.008}, {4, 0.105}, {2, 0.345}};
	const size_t n = 768;
	float	   *x = alloc64(n * 4);
	float	   *y = alloc64(n * 4);
	uint8_t    *code = alloc64(n);
	void	   *mem = alloc64(QvQuerySize(n, 0));

	for (int b = 0; b < 3; b++)
	{
		double		sum = 0;
		double		sum2 = 0;
		const int	rounds = 2000;

		for (int round = 0; round < rounds; round++)
		{
			QvCodeFactors factors;
			QvQuery		q;
			double		e;

			UnitFillNormal(x, n);
			UnitFillNormal(y, n);
			QvEncode(x, n, want[b].bits, code, &factors);
			QvQueryInit(&q, mem, y, n, 0);
			e = QvCodeIp(&q, code, want[b].bits, factors.scale) - dot(x, y, n);
			e /= sqrt(dot(x, x, n) * dot(y, y, n) / (double) n);
			sum += e;
			sum2 += e * e;
		}
		sum2 = sqrt(sum2 / rounds);
		CHECK(sum2 <= want[b].rms * 1.1 && sum2 >= want[b].rms * 0.7,
			  "%d bits: rms error %g", want[b].bits, sum2);
		CHECK(fabs(sum / rounds) <= 4 * sum2 / sqrt(rounds), "%d bits: mean error %g",
			  want[b].bits, sum / rounds);
	}
	free(x);
	free(y);
	free(code);
	free(mem);
}

static void
test_pair_ip(void)
{
	FOR_CODE_DIMS(n)
	{
		float	   *x = alloc64(n * 4);
		uint8_t    *a = alloc64(n);
		uint8_t    *b = alloc64(n);

		for (int bits = 2; bits <= 8; bits *= 2)
		{
			QvCodeFactors fa;
			QvCodeFactors fb;
			int32_t		suma = 0;
			int32_t		sumb = 0;
			double		want = 0;
			double		offset = (double) QvCodeOffset(bits);
			double		got;
			double		terms = 0;

			UnitFillNormal(x, n);
			QvEncode(x, n, bits, a, &fa);
			UnitFillNormal(x, n);
			QvEncode(x, n, bits, b, &fb);
			for (size_t i = 0; i < n; i++)
			{
				double		p = (a[i] - offset) * fa.scale * (b[i] - offset) * fb.scale;

				suma += a[i];
				sumb += b[i];
				want += p;
				terms += fabs(p);
			}
			got = QvCodePairIp(a, fa.scale, suma, b, fb.scale, sumb, n, bits);
			CHECK(fabs(got - want) <= 1e-7 * terms, "%zu dims, %d bits: %g, not %g",
				  n, bits, got, want);
		}
		free(x);
		free(a);
		free(b);
	}
}

/* ---- packing ---- */

static void
test_pack_code(void)
{
	for (size_t n = 16; n <= 400; n += 16)
	{
		for (int bits = 2; bits <= 8; bits *= 2)
		{
			uint8_t		code[400];
			uint8_t		packed[401];
			uint8_t		back[400];

			UnitFillBytes(code, n);
			for (size_t i = 0; i < n; i++)
				code[i] &= (uint8_t) ((1 << bits) - 1);
			packed[QvCodeBytes(n, bits)] = 0x5a;
			QvPackCode(code, n, bits, packed);
			CHECK(packed[QvCodeBytes(n, bits)] == 0x5a, "wrote past the code");
			if (bits == 8)
				memcpy(back, packed, n);
			else
				qv_kernels.unpack_bits(packed, bits, back, n);
			CHECK(memcmp(code, back, n) == 0, "%zu elements of %d bits", n, bits);
		}
	}
}

static void
test_pack_block(void)
{
	for (size_t nbits = 16; nbits <= 256; nbits += 48)
	{
		size_t		bytes = nbits / 8;
		size_t		stride = bytes + 3;
		uint8_t    *codes = alloc64(QV_BATCH * stride);
		uint8_t    *block = alloc64(QvBatchBytes(nbits) + 1);
		uint8_t    *slots = alloc64(QvBatchBytes(nbits) + 1);
		uint8_t		back[32];

		UnitFillBytes(codes, QV_BATCH * stride);

		/* the layout itself, from its definition */
		QvPackBatch(block, nbits, codes, stride, QV_BATCH);
		for (size_t v = 0; v < QV_BATCH; v++)
			for (size_t t = 0; t < nbits / 4; t++)
			{
				int			nibble = 0;
				uint8_t		byte = block[t / 4 * 64 + t % 4 * 16 + (v & 15)];

				for (size_t j = 0; j < 4; j++)
				{
					size_t		bit = 4 * t + j;

					nibble |= (codes[v * stride + bit / 8] >> bit % 8 & 1) << j;
				}
				CHECK((v < 16 ? byte & 15 : byte >> 4) == nibble,
					  "code %zu, nibble %zu of %zu bits", v, t, nbits);
			}

		/* slot by slot into garbage, in an order of no pattern */
		UnitFillBytes(slots, QvBatchBytes(nbits));
		slots[QvBatchBytes(nbits)] = 0x5a;
		for (int i = 0; i < QV_BATCH; i++)
		{
			int			slot = i * 11 % QV_BATCH;

			QvPackSlot(slots, nbits, slot, codes + (size_t) slot * stride);
		}
		CHECK(memcmp(block, slots, QvBatchBytes(nbits)) == 0, "slots make the block");
		CHECK(slots[QvBatchBytes(nbits)] == 0x5a, "wrote past the block");

		/* replacing one leaves the others alone */
		for (int slot = 0; slot < QV_BATCH; slot++)
		{
			uint8_t		fresh[32];

			UnitFillBytes(fresh, bytes);
			QvPackSlot(slots, nbits, slot, fresh);
			for (int other = 0; other < QV_BATCH; other++)
			{
				QvUnpackSlot(slots, nbits, other, back);
				CHECK(memcmp(back, other == slot ? fresh : codes + (size_t) other * stride,
							 bytes) == 0, "slot %d after writing %d", other, slot);
			}
			QvPackSlot(slots, nbits, slot, codes + (size_t) slot * stride);
		}

		/* fewer than 32 */
		for (int n = 0; n <= QV_BATCH; n++)
		{
			memset(block, 0xff, QvBatchBytes(nbits));
			block[QvBatchBytes(nbits)] = 0x5a;
			QvPackBatch(block, nbits, codes, stride, n);
			CHECK(block[QvBatchBytes(nbits)] == 0x5a, "wrote past the block");
			for (int slot = 0; slot < QV_BATCH; slot++)
			{
				QvUnpackSlot(block, nbits, slot, back);
				for (size_t i = 0; i < bytes; i++)
					CHECK(back[i] == (slot < n ? codes[(size_t) slot * stride + i] : 0),
						  "slot %d of %d", slot, n);
			}
		}
		free(codes);
		free(block);
		free(slots);
	}
}

/* ---- queries ---- */

static void
test_query(void)
{
	FOR_CODE_DIMS(n)
	{
		float	   *x = alloc64(n * 4);
		void	   *mem = alloc64(QvQuerySize(n, n));

		for (int kind = 0; kind < KINDS; kind++)
		{
			QvQuery		q;
			double		err2 = 0;
			int64_t		sum = 0;
			double		norm2;
			double		largest = 0;

			fill(x, n, kind);
			norm2 = dot(x, x, n);
			memset(mem, 0xee, QvQuerySize(n, n));
			QvQueryInit(&q, mem, x, n, n);
			CHECK(q.pdim == n && q.nbits == n && q.x != x &&
				  memcmp(q.x, x, n * 4) == 0, "the query is a copy");
			CHECK((uintptr_t) q.lut % 64 == 0 && (const uint8_t *) mem <= q.lut &&
				  q.lut + n * 4 <= (uint8_t *) mem + QvQuerySize(n, n), "the table's place");
			for (size_t i = 0; i < n; i++)
			{
				int			v = 256 * q.hi[i] + q.lo[i];
				double		e = x[i] - (double) q.scale16 * v;

				err2 += e * e;
				sum += v;
				largest = fmax(largest, fabs(x[i]));
			}
			CHECK(sum == q.sum16, "sum16");
			CHECK(fabs(q.sum - (double) q.scale16 * (double) sum) <=
				  2e-7 * fabs(q.sum), "sum");
			CHECK(q.err16 >= sqrt(err2), "kind %d: err16 %g below %g", kind,
				  (double) q.err16, sqrt(err2));
			if (largest > 1e-25)
				CHECK(q.err16 <= largest / 65000 * sqrt((double) n) * 1.1,
					  "kind %d: err16 %g for %g", kind, (double) q.err16, largest);
			if (largest < 1e15 && largest > 1e-15)
				CHECK(fabs(q.norm2 - norm2) <= 1e-5 * norm2, "norm2");
		}
		free(x);
		free(mem);
	}
}

/*
 * FastScan over packed codes gives <bits - 0.5, x> within half a step of the
 * look-up table for each nibble, for the whole code and for prefixes.
 */
static void
test_lut(void)
{
	FOR_CODE_DIMS(n)
	{
		float	   *x = alloc64(n * 4);
		void	   *mem = alloc64(QvQuerySize(n, n));
		uint8_t    *codes = alloc64(QV_BATCH * n / 8);
		uint8_t    *block = alloc64(QvBatchBytes(n));

		for (int kind = 0; kind < KINDS; kind++)
		{
			for (size_t nbits = n; nbits >= 16; nbits = nbits / 32 * 16)
			{
				uint32_t	sums[QV_BATCH];
				float		bias;
				QvQuery		q;

				/* sums of the largest values leave float32's range */
				fill(x, n, kind == HUGE_VALUES && n > 32 ? NORMAL : kind);
				UnitFillBytes(codes, QV_BATCH * n / 8);
				QvPackBatch(block, nbits, codes, n / 8, QV_BATCH);
				QvQueryInit(&q, mem, x, n, n);
				qv_kernels.fastscan(block, q.lut, nbits / 4, sums);
				bias = nbits == n ? q.lut_bias : QvQueryLutBias(&q, nbits);
				CHECK(isfinite(bias) && isfinite(q.lut_scale), "kind %d", kind);
				for (size_t v = 0; v < QV_BATCH; v++)
				{
					double		want = 0;
					double		terms = 0;
					double		got = (double) q.lut_scale * sums[v] + (double) bias;

					for (size_t i = 0; i < nbits; i++)
					{
						int			bit = codes[v * n / 8 + i / 8] >> i % 8 & 1;

						want += (bit - 0.5) * x[i];
						terms += fabs(x[i]);
					}
					CHECK(fabs(got - want) <= 0.502 * q.lut_scale * (double) (nbits / 4) +
						  1e-6 * terms + 1e-34, "kind %d, %zu bits of %zu: %g, not %g",
						  kind, nbits, n, got, want);
				}
			}
		}

		/* a zero query has an empty table, not one of NaN */
		{
			QvQuery		q;

			memset(x, 0, n * 4);
			memset(mem, 0xee, QvQuerySize(n, n));
			QvQueryInit(&q, mem, x, n, n);
			CHECK(q.lut_scale == 0 && q.lut_bias == 0 && q.err16 == 0, "zero query");
			for (size_t i = 0; i < 4 * n; i++)
				CHECK(q.lut[i] == 0, "entry %zu of a zero query", i);
		}
		free(x);
		free(mem);
		free(codes);
		free(block);
	}
}

/* ---- one-bit codes ---- */

static void
test_encode_bits(void)
{
	FOR_CODE_DIMS(n)
	{
		float	   *x = alloc64(n * 4);
		uint8_t    *bits = alloc64(n / 8 + 1);

		for (int kind = 0; kind < KINDS; kind++)
		{
			for (size_t nbits = 16; nbits <= n; nbits += 16 * (1 + n / 256))
			{
				double		sum = 0;
				double		want;
				double		got;

				fill(x, n, kind);
				bits[nbits / 8] = 0x5a;
				got = QvEncodeBits(x, n, nbits, bits);
				CHECK(bits[nbits / 8] == 0x5a, "wrote past the code");
				for (size_t i = 0; i < nbits; i++)
				{
					CHECK((bits[i / 8] >> i % 8 & 1) == (x[i] >= 0), "bit %zu", i);
					sum += 0.5 * fabs(x[i]);
				}
				want = sum > 0 ? dot(x, x, n) / sum : 0;
				if (want < 3e38 && (want == 0 || want > 1e-38))
					CHECK(fabs(got - want) <= 1e-5 * want, "kind %d: factor %g, not %g",
						  kind, got, want);
			}
		}
		free(x);
		free(bits);
	}
}

/*
 * Unbiased, and an error of 0.75 |o| |q| / sqrt(D), over random rotations of
 * one fixed pair that is neither orthogonal nor parallel; through packing, the
 * look-up table and FastScan.
 */
static void
test_one_bit_estimate(void)
{
	static const size_t dims[][2] = {{128, 128}, {768, 768}, {1000, 1008}, {768, 384}};

	for (size_t d = 0; d < 4; d++)
	{
		size_t		dim = dims[d][0];
		size_t		nbits = dims[d][1];
		size_t		pdim = QvPaddedDim(dim);
		float	   *o = alloc64(pdim * 4);
		float	   *q = alloc64(pdim * 4);
		float	   *ro = alloc64(pdim * 4);
		float	   *rq = alloc64(pdim * 4);
		uint8_t    *signs = alloc64(QvRotationSignBytes(dim));
		uint8_t    *bits = alloc64(nbits / 8);
		uint8_t    *block = alloc64(QvBatchBytes(nbits));
		void	   *mem = alloc64(QvQuerySize(pdim, nbits));
		const int	rounds = 3000;
		double		sum = 0;
		double		sum2 = 0;
		double		exact;
		double		unit;
		double		want;

		UnitFillNormal(o, dim);
		UnitFillNormal(q, dim);
		for (size_t i = 0; i < dim; i++)
			q[i] = 0.4f * q[i] + 0.3f * o[i];
		exact = dot(o, q, dim);
		unit = sqrt(dot(o, o, dim) * dot(q, q, dim) / (double) pdim);
		memset(block, 0, QvBatchBytes(nbits));
		for (int round = 0; round < rounds; round++)
		{
			int			slot = round % QV_BATCH;
			uint32_t	sums[QV_BATCH];
			QvRotation	rot;
			QvQuery		query;
			float		factor;
			double		e;

			QvRotationInit(&rot, dim, (uint64_t) round, signs);
			QvRotate(&rot, o, ro);
			QvRotate(&rot, q, rq);
			factor = QvEncodeBits(ro, pdim, nbits, bits);
			QvPackSlot(block, nbits, slot, bits);
			QvQueryInit(&query, mem, rq, pdim, nbits);
			qv_kernels.fastscan(block, query.lut, nbits / 4, sums);
			e = (double) factor * ((double) query.lut_scale * sums[slot] +
								   (double) query.lut_bias) - exact;
			sum += e / unit;
			sum2 += e / unit * e / unit;
		}
		sum2 = sqrt(sum2 / rounds);

		/*
		 * sqrt(pi / 2 - 1) = 0.756 of the part of q across o; a prefix of
		 * half the bits sees only half the terms.
		 */
		want = sqrt(M_PI / 2 * (double) pdim / (double) nbits - 1) *
			sqrt(1 - exact * exact / (dot(o, o, dim) * dot(q, q, dim)));
		CHECK(fabs(sum2 / want - 1) <= 0.06, "%zu dims, %zu bits: rms error %g, not %g",
			  dim, nbits, sum2, want);
		CHECK(fabs(sum / rounds) <= 4 * sum2 / sqrt(rounds), "%zu dims, %zu bits: mean error %g",
			  dim, nbits, sum / rounds);
		free(o);
		free(q);
		free(ro);
		free(rq);
		free(signs);
		free(bits);
		free(block);
		free(mem);
	}
}

/* ---- two-bit codes ---- */

/* By the definition, and <y, q> through packing, the look-up table and FastScan. */
static void
test_two_bits(void)
{
	for (size_t n = 16; n <= 112; n += 16)
	{
		float	   *p = alloc64(n * 4);
		float	   *q = alloc64(n * 4);
		uint8_t    *code = alloc64(n);
		uint8_t    *bits = alloc64(n / 4 + 1);
		uint8_t    *block = alloc64(QvBatchBytes(2 * n));
		void	   *mem = alloc64(QvQuerySize(n, 2 * n));

		for (int kind = 0; kind < KINDS; kind++)
		{
			const float scale = 0.02f;
			const float step = 0.9f;
			double		want_r = 0;
			double		want_p = 0;
			double		want_q = 0;
			double		sizes = 0;
			double		got_q;
			float		yr,
						yp;
			uint32_t	sums[QV_BATCH];
			QvQuery		query;

			UnitFillBytes(code, n);
			UnitFillNormal(p, n);
			fill(q, n, kind);
			bits[n / 4] = 0x5a;
			QvResidualTwoBits(code, scale, 127.5f, p, n, step, bits, &yr, &yp);
			CHECK(bits[n / 4] == 0x5a, "wrote past the code");
			for (size_t i = 0; i < n; i++)
			{
				int			low = bits[i / 8] >> i % 8 & 1;
				int			high = bits[(n + i) / 8] >> i % 8 & 1;
				double		y = 2 * high + low - 1.5;
				float		r = scale * ((float) code[i] - 127.5f) - p[i];

				CHECK(y == copysign(fabsf(r) > step ? 1.5 : 0.5, r), "coordinate %zu: %g for %g", i, y, r);
				want_r += y * r;
				want_p += y * p[i];
				want_q += y * q[i];
				sizes += fabs(q[i]);
			}
			CHECK(fabs(yr - want_r) <= 1e-5 * want_r, "<y, r> is %g, not %g", yr, want_r);
			CHECK(fabs(yp - want_p) <= 1e-4 * (double) n, "<y, p> is %g, not %g", yp, want_p);

			memset(block, 0, QvBatchBytes(2 * n));
			QvPackSlot(block, 2 * n, 7, bits);
			QvQueryInit(&query, mem, q, n, 2 * n);
			qv_kernels.fastscan(block, query.lut, 2 * n / 4, sums);
			got_q = (double) query.lut_scale * sums[7] + (double) query.lut_bias;
			/* half a step of the table for each of its nibbles */
			if (sizes > 1e-30 && sizes < 1e30)
				CHECK(fabs(got_q - want_q) <= query.lut_scale * 2 * (double) n / 4 * 0.51 + 1e-5 * sizes,
					  "kind %d: <y, q> is %g, not %g", kind, got_q, want_q);
		}
		free(p);
		free(q);
		free(code);
		free(bits);
		free(block);
		free(mem);
	}
}

void
SuiteQuant(void)
{
	UnitRun("signs of the rotation", NULL, test_rotation_signs);
	for (const char *const *l = QvKernelsAvailable(); *l != NULL; l++)
	{
		if (!QvKernelsSetLevel(*l))
			abort();
		UnitRun("rotation", *l, test_rotation);
		UnitRun("codes within their error bound", *l, test_codes);
		UnitRun("codes of a zero vector", *l, test_zero_code);
		UnitRun("error of codes", *l, test_code_error);
		UnitRun("inner product of two codes", *l, test_pair_ip);
		UnitRun("packing of codes", *l, test_pack_code);
		UnitRun("packing of blocks", *l, test_pack_block);
		UnitRun("16-bit query", *l, test_query);
		UnitRun("look-up table", *l, test_lut);
		UnitRun("one-bit codes", *l, test_encode_bits);
		UnitRun("two-bit codes", *l, test_two_bits);
		UnitRun("one-bit estimate", *l, test_one_bit_estimate);
	}
}
