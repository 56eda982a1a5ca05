/*
 * test_kernels.c
 *		Every kernel at every level this CPU can run, against references in
 *		double or in plain loops.
 *
 * Tolerance of float sums: TOLERANCE(n) times the sum of the absolute terms;
 * all else is exact unless its test says otherwise.
 */
#include "unit.h"

#define K qv_kernels

#define MAX_N 32768

/* Float32 accumulation over at least 8 lanes; see kernels.h. */
#define TOLERANCE(n) (3e-7 * (1 + (double) (n) / 128))

static UnitBuffer buf_a;
static UnitBuffer buf_b;
static UnitBuffer buf_c;
static UnitBuffer buf_d;

/* All short lengths, and long ones around what loops are unrolled by. */
static size_t
test_length(size_t i)
{
	static const size_t longer[] = {
		159, 160, 191, 192, 255, 256, 257, 383, 511, 512, 768, 769, 1000, 1536,
		2047, 4096, 16000
	};

	if (i <= 130)
		return i;
	if (i - 131 < sizeof(longer) / sizeof(longer[0]))
		return longer[i - 131];
	return SIZE_MAX;
}

#define FOR_LENGTHS(n) \
	for (size_t i_ = 0, n = 0; (n = test_length(i_)) != SIZE_MAX; i_++)

#define FOR_LENGTHS_OF_16(n) FOR_LENGTHS(n) if (n % 16 == 0)

/* Two placements: at the very end of a buffer, and at an odd address. */
#define FOR_PLACEMENTS(place) for (int place = 0; place < 2; place++)

static void *
place_at(const UnitBuffer *buffer, int place, size_t bytes)
{
	return place == 0 ? UnitAtEnd(buffer, bytes) : UnitAtStart(buffer, 1);
}

static void
put_f32(float *p, size_t i, float v)
{
	memcpy((char *) p + i * sizeof(v), &v, sizeof(v));
}

enum
{
	NORMAL, LARGE, SMALL, MIXED, CONSTANT, KINDS
};

static void
fill_kind(float *p, size_t n, int kind)
{
	for (size_t i = 0; i < n; i++)
	{
		float		v = UnitNormal();

		switch (kind)
		{
			case LARGE:
				v *= 1e16f;
				break;
			case SMALL:
				v *= 1e-16f;
				break;
			case MIXED:
				v *= powf(10.0f, (float) (UnitUniform() * 12 - 6));
				break;
			case CONSTANT:
				v = 0.1f;
				break;
		}
		put_f32(p, i, v);
	}
}

static void
check_sum(const char *what, double got, double want, double terms, size_t n)
{
	CHECK(fabs(got - want) <= TOLERANCE(n) * terms,
		  "%s of %zu: got %.9g, want %.9g, terms %g", what, n, got, want, terms);
}

/* ---- distances ---- */

typedef struct Sums
{
	double		l2sq;
	double		l1;
	double		ab;
	double		aa;
	double		bb;
	double		abs_ab;
} Sums;

static void
add_pair(Sums *s, double x, double y)
{
	s->l2sq += (x - y) * (x - y);
	s->l1 += fabs(x - y);
	s->ab += x * y;
	s->aa += x * x;
	s->bb += y * y;
	s->abs_ab += fabs(x * y);
}

static void
test_pairs_f32(void)
{
	FOR_LENGTHS(n) FOR_PLACEMENTS(place) for (int kind = 0; kind < KINDS; kind++)
	{
		float	   *a = place_at(&buf_a, place, n * 4);
		float	   *b = place_at(&buf_b, place, n * 4);
		Sums		s = {0};
		float		ab;
		float		aa;
		float		bb;

		fill_kind(a, n, kind);
		fill_kind(b, n, kind);
		if (kind == CONSTANT && n > 0)
			put_f32(b, n - 1, -7.5f);	/* the last element alone differs */
		for (size_t i = 0; i < n; i++)
			add_pair(&s, at_f32(a, i), at_f32(b, i));
		check_sum("l2sq_f32", K.l2sq_f32(a, b, n), s.l2sq, s.l2sq, n);
		check_sum("ip_f32", K.ip_f32(a, b, n), s.ab, s.abs_ab, n);
		check_sum("l1_f32", K.l1_f32(a, b, n), s.l1, s.l1, n);
		check_sum("norm2_f32", K.norm2_f32(a, n), s.aa, s.aa, n);
		K.cosine_f32(a, b, n, &ab, &aa, &bb);
		check_sum("cosine_f32 ab", ab, s.ab, s.abs_ab, n);
		check_sum("cosine_f32 aa", aa, s.aa, s.aa, n);
		check_sum("cosine_f32 bb", bb, s.bb, s.bb, n);
	}
	CHECK(K.l2sq_f32(NULL, NULL, 0) == 0, "nothing has distance 0");
}

static void
test_overflow_f32(void)
{
	float		a[40];
	float		b[40];

	for (size_t i = 0; i < 40; i++)
	{
		a[i] = 3e38f;
		b[i] = -3e38f;
	}
	CHECK(K.l2sq_f32(a, b, 40) == INFINITY, "squares overflow to infinity");
	CHECK(K.ip_f32(a, b, 40) == -INFINITY, "products overflow to -infinity");
	CHECK(K.l1_f32(a, b, 40) == INFINITY, "differences overflow");
	for (size_t i = 0; i < 40; i++)
	{
		memset(a, 0, sizeof(a));
		a[i] = NAN;
		CHECK(isnan(K.l2sq_f32(a, b, 40)), "NaN at %zu is kept", i);
		CHECK(isnan(K.ip_f32(a, b, 40)), "NaN at %zu is kept", i);
		CHECK(isnan(K.l1_f32(a, b, 40)), "NaN at %zu is kept", i);
	}
}

static void
fill_halves(uint16_t *p, size_t n, int kind)
{
	for (size_t i = 0; i < n; i++)
	{
		uint16_t	h;

		switch (kind)
		{
			case 0:
				h = UnitHalfFromDouble(UnitNormal());
				break;
			case 1:				/* any finite value, subnormals too */
				do
					h = (uint16_t) UnitRandom();
				while ((h & 0x7c00) == 0x7c00);
				break;
			case 2:				/* +- 65504 */
				h = UnitRandom() % 2 ? 0xfbff : 0x7bff;
				break;
			default:			/* subnormals */
				h = (uint16_t) (UnitRandom() & 0x83ff);
				break;
		}
		memcpy((char *) p + 2 * i, &h, 2);
	}
}

static void
test_pairs_f16(void)
{
	FOR_LENGTHS(n) FOR_PLACEMENTS(place) for (int kind = 0; kind < 4; kind++)
	{
		uint16_t   *a = place_at(&buf_a, place, n * 2);
		uint16_t   *b = place_at(&buf_b, place, n * 2);
		Sums		s = {0};
		float		ab;
		float		aa;
		float		bb;

		fill_halves(a, n, kind);
		fill_halves(b, n, kind);
		for (size_t i = 0; i < n; i++)
			add_pair(&s, UnitHalfValue(at_u16(a, i)), UnitHalfValue(at_u16(b, i)));
		check_sum("l2sq_f16", K.l2sq_f16(a, b, n), s.l2sq, s.l2sq, n);
		check_sum("ip_f16", K.ip_f16(a, b, n), s.ab, s.abs_ab, n);
		check_sum("l1_f16", K.l1_f16(a, b, n), s.l1, s.l1, n);
		K.cosine_f16(a, b, n, &ab, &aa, &bb);
		check_sum("cosine_f16 ab", ab, s.ab, s.abs_ab, n);
		check_sum("cosine_f16 aa", aa, s.aa, s.aa, n);
		check_sum("cosine_f16 bb", bb, s.bb, s.bb, n);
	}
}

/* ---- float16 conversion ---- */

static void
test_f16_to_f32(void)
{
	uint16_t   *src = place_at(&buf_a, 0, 65536 * 2);
	float	   *dst = place_at(&buf_b, 0, 65536 * 4);

	for (uint32_t h = 0; h < 65536; h++)
		src[h] = (uint16_t) h;
	K.f16_to_f32(src, dst, 65536);
	for (uint32_t h = 0; h < 65536; h++)
	{
		double		want = UnitHalfValue((uint16_t) h);
		uint32_t	bits;

		memcpy(&bits, &dst[h], 4);
		if (isnan(want))
			CHECK(bits == ((h & 0x8000) << 16 | 0x7fc00000 | (h & 0x3ff) << 13),
				  "NaN 0x%04x became 0x%08x", h, bits);
		else
			CHECK((double) dst[h] == want && !signbit(dst[h]) == !signbit(want),
				  "0x%04x became %a, not %a", h, (double) dst[h], want);
	}
	FOR_LENGTHS(n) FOR_PLACEMENTS(place)
	{
		uint16_t   *in = place_at(&buf_a, place, n * 2);
		uint8_t    *out = place_at(&buf_b, place, n * 4);

		UnitFillBytes(in, n * 2);
		for (size_t i = 0; i < n; i++)
			((uint8_t *) in)[2 * i + 1] &= 0xbb;	/* no NaN */
		if (place == 1)
			out[n * 4] = 0x5a;
		K.f16_to_f32(in, (float *) out, n);
		for (size_t i = 0; i < n; i++)
			CHECK((double) at_f32(out, i) == UnitHalfValue(at_u16(in, i)),
				  "element %zu of %zu", i, n);
		if (place == 1)
			CHECK(out[n * 4] == 0x5a, "wrote past %zu", n);
	}
}

static void
check_to_f16(const float *values, size_t n)
{
	uint16_t   *dst = place_at(&buf_b, 0, n * 2);

	K.f32_to_f16(values, dst, n);
	for (size_t i = 0; i < n; i++)
	{
		float		v = at_f32(values, i);
		uint16_t	got = at_u16(dst, i);

		if (isnan(v))
		{
			uint32_t	bits;

			memcpy(&bits, &v, 4);
			CHECK(got == (bits >> 16 & 0x8000) + (0x7e00 | (bits >> 13 & 0x3ff)),
				  "NaN 0x%08x became 0x%04x", bits, got);
		}
		else
			CHECK(got == UnitHalfFromDouble(v), "%a became 0x%04x, not 0x%04x",
				  (double) v, got, UnitHalfFromDouble(v));
	}
}

static void
test_f32_to_f16(void)
{
	float	   *values = place_at(&buf_a, 1, 0);
	size_t		n = 0;

	/* every half, every tie between two, and both neighbors of each */
	for (uint32_t h = 0; h < 0x7c00; h++)
	{
		double		low = UnitHalfValue((uint16_t) h);
		double		high = h + 1 < 0x7c00 ? UnitHalfValue((uint16_t) (h + 1)) : 65536;
		float		tie = (float) ((low + high) / 2);
		float		cases[4];

		cases[0] = (float) low;
		cases[1] = tie;
		cases[2] = nextafterf(tie, INFINITY);
		cases[3] = nextafterf(tie, -INFINITY);
		for (int c = 0; c < 4; c++)
		{
			put_f32(values, n++, cases[c]);
			put_f32(values, n++, -cases[c]);
		}
		if (n >= 4096)
		{
			check_to_f16(values, n);
			n = 0;
		}
	}
	check_to_f16(values, n);

	/* any bit pattern, with NaN, infinities and float32's own subnormals */
	for (int round = 0; round < 100; round++)
	{
		UnitFillBytes(values, 4096 * 4);
		put_f32(values, 0, INFINITY);
		put_f32(values, 1, -INFINITY);
		put_f32(values, 2, 0x1p-140f);
		put_f32(values, 3, -0x1p-25f);
		put_f32(values, 4, 0x1.000002p-25f);
		check_to_f16(values, 4096);
	}
	FOR_LENGTHS(len)
	{
		float	   *in = place_at(&buf_a, 0, len * 4);

		fill_kind(in, len, NORMAL);
		check_to_f16(in, len);
	}
}

/* ---- bit strings ---- */

static void
test_bits(void)
{
	FOR_LENGTHS(n) FOR_PLACEMENTS(place) for (int kind = 0; kind < 2; kind++)
	{
		uint8_t    *a = place_at(&buf_a, place, n);
		uint8_t    *b = place_at(&buf_b, place, n);
		uint64_t	differ = 0;
		uint64_t	want_both = 0;
		uint64_t	want_either = 0;
		uint64_t	both;
		uint64_t	either;

		UnitFillBytes(a, n);
		UnitFillBytes(b, n);
		if (kind == 1)
		{
			memset(a, 0xff, n);
			memset(b, n % 2 ? 0xff : 0, n);
		}
		for (size_t i = 0; i < n * 8; i++)
		{
			int			x = a[i / 8] >> i % 8 & 1;
			int			y = b[i / 8] >> i % 8 & 1;

			differ += (uint64_t) (x != y);
			want_both += (uint64_t) (x && y);
			want_either += (uint64_t) (x || y);
		}
		CHECK(K.hamming(a, b, n) == differ, "hamming of %zu", n);
		K.jaccard(a, b, n, &both, &either);
		CHECK(both == want_both && either == want_either, "jaccard of %zu", n);
	}
}

/* ---- 8-bit codes ---- */

static void
check_codes(const uint8_t *a, const uint8_t *b, size_t n)
{
	int64_t		ip = 0;
	int64_t		sum = 0;
	int64_t		ip16 = 0;
	const int8_t *hi = (const int8_t *) b;
	const int8_t *lo = (const int8_t *) buf_c.start + 3;

	for (size_t i = 0; i < n; i++)
	{
		ip += a[i] * b[i];
		sum += a[i];
		ip16 += (int64_t) a[i] * (256 * hi[i] + lo[i]);
	}
	CHECK(K.ip_u8u8(a, b, n) == ip, "ip_u8u8 of %zu: %d, not %lld", n,
		  K.ip_u8u8(a, b, n), (long long) ip);
	CHECK(K.sum_u8(a, n) == sum, "sum_u8 of %zu", n);
	CHECK(K.ip_u8s16(a, hi, lo, n) == ip16, "ip_u8s16 of %zu: %lld, not %lld",
		  n, (long long) K.ip_u8s16(a, hi, lo, n), (long long) ip16);
}

static void
test_codes(void)
{
	static const uint8_t extremes[] = {0, 1, 127, 128, 129, 254, 255};
	uint8_t    *lo = buf_c.start + 3;

	UnitFillBytes(lo, MAX_N);
	FOR_LENGTHS(n) FOR_PLACEMENTS(place)
	{
		uint8_t    *a = place_at(&buf_a, place, n);
		uint8_t    *b = place_at(&buf_b, place, n);

		UnitFillBytes(a, n);
		UnitFillBytes(b, n);
		check_codes(a, b, n);
	}
	for (size_t x = 0; x < sizeof(extremes); x++)
	{
		for (size_t y = 0; y < sizeof(extremes); y++)
		{
			memset(buf_a.start, extremes[x], MAX_N);
			memset(buf_b.start, extremes[y], MAX_N);
			memset(lo, extremes[(x + y) % sizeof(extremes)], MAX_N);
			check_codes(buf_a.start, buf_b.start, 75);
			check_codes(buf_a.start, buf_b.start, MAX_N);
		}
	}
	/* the third argument at the end of its memory too */
	for (size_t n = 0; n <= 130; n++)
	{
		uint8_t    *a = UnitAtEnd(&buf_a, n);
		int8_t	   *hi = UnitAtEnd(&buf_b, n);
		int8_t	   *end = UnitAtEnd(&buf_c, n);

		memset(end, 1, n);
		memset(hi, 0, n);
		CHECK(K.ip_u8s16(a, hi, end, n) == K.sum_u8(a, n), "ip_u8s16 of %zu", n);
	}
}

static void
test_unpack_bits(void)
{
	FOR_LENGTHS_OF_16(n) FOR_PLACEMENTS(place) for (int bits = 2; bits <= 4; bits += 2)
	{
		size_t		bytes = n * (size_t) bits / 8;
		uint8_t    *in = place_at(&buf_a, place, bytes);
		uint8_t    *out = place_at(&buf_b, place, n);

		UnitFillBytes(in, bytes);
		if (place == 1)
			out[n] = 0x5a;
		K.unpack_bits(in, bits, out, n);
		for (size_t i = 0; i < n; i++)
		{
			size_t		bit = i * (size_t) bits;

			CHECK(out[i] == (in[bit / 8] >> bit % 8 & ((1 << bits) - 1)),
				  "%d bits: element %zu of %zu", bits, i, n);
		}
		if (place == 1)
			CHECK(out[n] == 0x5a, "wrote past %zu", n);
	}
}

/* ---- FastScan ---- */

static void
reference_scan(const uint8_t *block, const uint8_t *lut, size_t nibbles,
			   uint32_t *out)
{
	for (size_t code = 0; code < QV_BATCH; code++)
	{
		out[code] = 0;
		for (size_t t = 0; t < nibbles; t++)
		{
			uint8_t		byte = block[t / 4 * 64 + t % 4 * 16 + code % 16];
			int			nibble = code < 16 ? byte & 15 : byte >> 4;

			out[code] += lut[t * 16 + (size_t) nibble];
		}
	}
}

static void
check_scan(const uint8_t *block, const uint8_t *lut, size_t nibbles)
{
	uint32_t	want[QV_BATCH];
	uint32_t	got[QV_BATCH];

	reference_scan(block, lut, nibbles, want);
	K.fastscan(block, lut, nibbles, got);
	for (int i = 0; i < QV_BATCH; i++)
		CHECK(got[i] == want[i], "code %d of %zu nibbles: %u, not %u", i,
			  nibbles, got[i], want[i]);
}

/* Code v's bits 4 t to 4 t + 3 are nibble t (src/quant/README.md, "FastScan layout"). */
static void
test_fastscan_pack(void)
{
	for (size_t nbytes = 2; nbytes <= 2048; nbytes += nbytes < 130 ? 2 : 274)
		for (size_t gap = 0; gap <= 9; gap += 3)
		{
			size_t		stride = nbytes + gap;
			size_t		length = (QV_BATCH - 1) * stride + nbytes;

			FOR_PLACEMENTS(place)
			{
				uint8_t    *codes = place_at(&buf_a, place, length);
				uint8_t    *batch = place_at(&buf_b, place, QV_BATCH * nbytes);

				UnitFillBytes(codes, length);
				UnitFillBytes(batch, QV_BATCH * nbytes);
				K.fastscan_pack(codes, stride, nbytes, batch);
				for (size_t v = 0; v < QV_BATCH; v++)
					for (size_t t = 0; t < 2 * nbytes; t++)
					{
						int			want = codes[v * stride + t / 2] >> t % 2 * 4 & 15;
						int			got = batch[16 * t + v % 16] >> v / 16 * 4 & 15;

						CHECK(got == want, "nibble %zu of code %zu of %zu bytes: %d, not %d",
							  t, v, nbytes, got, want);
					}
			}
		}
}

static void
test_fastscan(void)
{
	for (size_t nibbles = 0; nibbles <= 8192;
		 nibbles += nibbles < 300 ? 4 : nibbles < 1100 ? 52 : 1364)
	{
		FOR_PLACEMENTS(place)
		{
			uint8_t    *block = place_at(&buf_a, place, nibbles * 16);
			uint8_t    *lut = place_at(&buf_b, place, nibbles * 16);

			UnitFillBytes(block, nibbles * 16);
			UnitFillBytes(lut, nibbles * 16);
			check_scan(block, lut, nibbles);
			memset(lut, 255, nibbles * 16);
			check_scan(block, lut, nibbles);
		}
	}
	/* the largest sum, and 255 in one byte of each word only */
	memset(buf_b.start, 255, 8192 * 16);
	for (int value = 0; value < 256; value += 15)
	{
		memset(buf_a.start, value, 8192 * 16);
		check_scan(buf_a.start, buf_b.start, 8192);
	}
	for (size_t i = 0; i < 8192 * 16; i++)
	{
		buf_a.start[i] = i % 2 ? 0xff : 0;
		buf_b.start[i] = i % 16 == 15 ? 255 : 0;
	}
	check_scan(buf_a.start, buf_b.start, 8192);
}

typedef struct EstimateCase
{
	uint16_t	a[QV_BATCH];
	uint16_t	b[QV_BATCH];
	QvEstimateParams p;
} EstimateCase;

static void
check_estimate(const uint8_t *block, const uint8_t *lut, size_t nibbles,
			   const EstimateCase *c, float threshold)
{
	const QvEstimateParams *p = &c->p;
	uint32_t	sums[QV_BATCH];
	float		out[QV_BATCH];
	uint32_t	mask;

	reference_scan(block, lut, nibbles, sums);
	mask = K.fastscan_estimate(block, lut, nibbles, p, threshold, out);
	for (int i = 0; i < QV_BATCH; i++)
	{
		double		a = UnitHalfValue(at_u16(p->a, (size_t) i));
		double		b = UnitHalfValue(at_u16(p->b, (size_t) i));
		double		scaled = (double) p->lut_scale * sums[i];
		double		want = p->base + p->a_scale * a +
			p->b_scale * b * (scaled + (double) p->lut_bias);
		double		terms = fabs(p->base) + fabs(p->a_scale * a) +
			fabs(p->b_scale * b) * (fabs(scaled) + fabs(p->lut_bias));
		bool		passes = out[i] < threshold && !(a == INFINITY);

		if (isfinite(want))
			CHECK(fabs(out[i] - want) <= 1e-6 * terms,
				  "estimate %d: %g, not %g", i, (double) out[i], want);
		CHECK((mask >> i & 1) == passes, "mask bit %d of 0x%08x, estimate %g "
			  "against %g", i, mask, (double) out[i], (double) threshold);
	}
}

static void
test_fastscan_estimate(void)
{
	static const float scales[][2] = {{1, 1}, {0.25f, -2}, {-1, 1}, {0, 0.5f}, {1e10f, 1e5f}};

	for (size_t nibbles = 4; nibbles <= 400; nibbles += nibbles < 40 ? 4 : 60)
	{
		uint8_t    *block = UnitAtEnd(&buf_a, nibbles * 16);
		uint8_t    *lut = UnitAtEnd(&buf_b, nibbles * 16);

		UnitFillBytes(block, nibbles * 16);
		UnitFillBytes(lut, nibbles * 16);
		for (size_t s = 0; s < sizeof(scales) / sizeof(scales[0]); s++)
		{
			EstimateCase c;

			for (int i = 0; i < QV_BATCH; i++)
			{
				c.a[i] = UnitHalfFromDouble(fabs(UnitNormal()));
				c.b[i] = UnitHalfFromDouble(UnitNormal());
			}
			c.p.a = memcpy(UnitAtEnd(&buf_c, 64), c.a, 64);
			c.p.b = memcpy(UnitAtEnd(&buf_d, 64), c.b, 64);
			c.p.base = UnitNormal();
			c.p.a_scale = scales[s][0];
			c.p.b_scale = scales[s][1];
			c.p.lut_scale = 0.01f;
			c.p.lut_bias = -0.64f * (float) nibbles;
			for (int t = -4; t <= 4; t++)
				check_estimate(block, lut, nibbles, &c, (float) t);

			/* exactly at the threshold is not below it */
			for (int i = 0; i < QV_BATCH; i++)
			{
				float		out[QV_BATCH];

				(void) K.fastscan_estimate(block, lut, nibbles, &c.p, 0, out);
				check_estimate(block, lut, nibbles, &c, out[i]);
			}
			check_estimate(block, lut, nibbles, &c, INFINITY);
			check_estimate(block, lut, nibbles, &c, -INFINITY);
			check_estimate(block, lut, nibbles, &c, NAN);

			/* emptied slots and NaN, at every position in turn */
			for (int i = 0; i < QV_BATCH; i++)
			{
				uint16_t	special[4] = {0x7c00, 0x7e00, 0x7c00, 0x0000};

				memcpy(UnitAtEnd(&buf_c, 64), c.a, 64);
				memcpy(UnitAtEnd(&buf_d, 64), c.b, 64);
				memcpy((char *) UnitAtEnd(&buf_c, 64) + 2 * i, &special[i % 3], 2);
				if (i % 4 == 3)
					memcpy((char *) UnitAtEnd(&buf_d, 64) + 2 * i, &special[1], 2);
				check_estimate(block, lut, nibbles, &c, INFINITY);
				check_estimate(block, lut, nibbles, &c, 3e38f);
			}
		}
	}
}

/* ---- codes and floats ---- */

static void
test_residual_bits(void)
{
	static const float offsets[] = {127.5f, 7.5f, 1.5f};

	FOR_LENGTHS_OF_16(n) FOR_PLACEMENTS(place) for (int kind = 0; kind < KINDS; kind++)
	{
		uint8_t    *code = place_at(&buf_a, place, n);
		float	   *p = place_at(&buf_b, place, n * 4);
		uint8_t    *bits = place_at(&buf_c, place, n / 8);
		float		offset = offsets[n / 16 % 3];
		float		scale = kind == LARGE ? 1e14f : kind == SMALL ? 1e-18f : 0.013f;
		double		sum_abs = 0;
		double		yp = 0;
		double		terms = 0;
		float		got_abs;
		float		got_yp;

		UnitFillBytes(code, n);
		for (size_t i = 0; i < n; i++)
			code[i] &= (uint8_t) (2 * offset);
		fill_kind(p, n, kind);
		if (place == 1)
			bits[n / 8] = 0x5a;
		K.residual_bits(code, scale, offset, p, n, bits, &got_abs, &got_yp);
		for (size_t i = 0; i < n; i++)
		{
			double		x = at_f32(p, i);
			double		y = (double) scale * ((double) code[i] - (double) offset);
			double		r = y - x;
			bool		bit = bits[i / 8] >> i % 8 & 1;

			if (fabs(r) > 1e-6 * (fabs(x) + fabs(y)))
				CHECK(bit == (r >= 0), "bit %zu of %zu, r = %g", i, n, r);
			sum_abs += fabs(r);
			yp += bit ? 0.5 * x : -0.5 * x;
			terms += fabs(x) + fabs(y);
		}
		check_sum("sum_abs", got_abs, sum_abs, terms, n);
		check_sum("yp", got_yp, yp, terms, n);
		if (place == 1)
			CHECK(bits[n / 8] == 0x5a, "wrote past %zu", n);
	}

	/* a residual of exactly zero, and of minus zero, has its bit set */
	for (size_t i = 0; i < 16; i++)
	{
		uint8_t		code[16];
		float		p[16] = {0};
		uint8_t		bits[2];
		float		sum;
		float		yp;

		memset(code, 200, sizeof(code));
		p[i] = 36.25f;
		K.residual_bits(code, 0.5f, 127.5f, p, 16, bits, &sum, &yp);
		CHECK(bits[0] == 0xff && bits[1] == 0xff, "zero residual at %zu", i);
		K.residual_bits(code, -0.0f, 127.5f, p, 16, bits, &sum, &yp);
		CHECK((bits[0] | bits[1] << 8) == (0xffff & ~(1 << i)), "sign at %zu", i);
	}
}

static void
test_decode_u8(void)
{
	FOR_LENGTHS(n) FOR_PLACEMENTS(place)
	{
		uint8_t    *code = place_at(&buf_a, place, n);
		uint8_t    *out = place_at(&buf_b, place, n * 4);

		UnitFillBytes(code, n);
		if (place == 1)
			out[n * 4] = 0x5a;
		K.decode_u8(code, 0.37f, 127.5f, (float *) out, n);
		for (size_t i = 0; i < n; i++)
			CHECK(at_f32(out, i) == 0.37f * ((float) code[i] - 127.5f),
				  "element %zu of %zu", i, n);
		if (place == 1)
			CHECK(out[n * 4] == 0x5a, "wrote past %zu", n);
	}
}

static void
test_quantize_u8(void)
{
	static const float halves[] = {128, 8, 2};

	FOR_LENGTHS(n) FOR_PLACEMENTS(place) for (int h = 0; h < 3; h++)
	{
		float		half = halves[h];
		float	   *x = place_at(&buf_a, place, n * 4);
		uint8_t    *code = place_at(&buf_b, place, n);
		float		t = half / 2.5f;	/* some values are clamped */
		double		xy = 0;
		double		yy = 0;
		double		abs_xy = 0;
		float		got_xy;
		float		got_yy;

		fill_kind(x, n, NORMAL);
		if (n > 3)
		{
			put_f32(x, 0, 1e30f);
			put_f32(x, 1, -1e30f);
			put_f32(x, 2, n % 2 ? 0.0f : -0.0f);
		}
		if (place == 1)
			code[n] = 0x5a;
		K.quantize_u8(x, n, t, half, code, &got_xy, &got_yy);
		for (size_t i = 0; i < n; i++)
		{
			volatile float product = at_f32(x, i) * t;
			double		f = floor((double) product);
			double		y;

			f = f < -half ? -half : f > half - 1 ? half - 1 : f;
			y = f + 0.5;
			CHECK(code[i] == f + half, "code %zu of %zu: %d, not %g", i, n,
				  code[i], f + half);
			xy += y * at_f32(x, i);
			abs_xy += fabs(y * at_f32(x, i));
			yy += y * y;
		}
		check_sum("xy", got_xy, xy, abs_xy, n);
		check_sum("yy", got_yy, yy, yy, n);
		if (place == 1)
			CHECK(code[n] == 0x5a, "wrote past %zu", n);
	}

	/* whole multiples of the step: the floor must be exact */
	for (int q = -140; q <= 140; q++)
	{
		float		x[70];
		uint8_t		code[70];
		float		xy;
		float		yy;
		int			want = q < -128 ? 0 : q > 127 ? 255 : q + 128;

		for (int i = 0; i < 70; i++)
			x[i] = (float) q / 4;
		K.quantize_u8(x, 70, 4, 128, code, &xy, &yy);
		for (int i = 0; i < 70; i++)
			CHECK(code[i] == want, "%d became code %d", q, code[i]);
		for (int i = 0; i < 70; i++)
			x[i] = nextafterf((float) q / 4, -INFINITY);
		K.quantize_u8(x, 70, 4, 128, code, &xy, &yy);
		want = q - 1 < -128 ? 0 : q - 1 > 127 ? 255 : q + 127;
		if (q != 0)				/* the product of the least float is 0 */
			for (int i = 0; i < 70; i++)
				CHECK(code[i] == want, "just below %d became code %d", q, code[i]);
	}
}

static void
test_maxabs_f32(void)
{
	FOR_LENGTHS(n) FOR_PLACEMENTS(place)
	{
		float	   *x = place_at(&buf_a, place, n * 4);

		for (int kind = 0; kind < KINDS; kind++)
		{
			float		want = 0;

			fill_kind(x, n, kind);
			for (size_t i = 0; i < n; i++)
				want = fmaxf(want, fabsf(at_f32(x, i)));
			CHECK(K.maxabs_f32(x, n) == want, "maxabs of %zu", n);
		}
		for (size_t i = 0; i < n && n <= 130; i++)
		{
			fill_kind(x, n, CONSTANT);
			put_f32(x, i, -9);
			CHECK(K.maxabs_f32(x, n) == 9, "largest of %zu at %zu", n, i);
		}
	}
}

static void
test_sign_bits_f32(void)
{
	FOR_LENGTHS_OF_16(n) FOR_PLACEMENTS(place)
	{
		float	   *x = place_at(&buf_a, place, n * 4);
		uint8_t    *bits = place_at(&buf_b, place, n / 8);
		double		sum = 0;
		float		got;

		fill_kind(x, n, NORMAL);
		for (size_t i = 0; i < n; i += 7)
			put_f32(x, i, i % 2 ? -0.0f : 0.0f);
		if (place == 1)
			bits[n / 8] = 0x5a;
		got = K.sign_bits_f32(x, n, bits);
		for (size_t i = 0; i < n; i++)
		{
			CHECK((bits[i / 8] >> i % 8 & 1) == (at_f32(x, i) >= 0),
				  "bit %zu of %zu", i, n);
			sum += fabs(at_f32(x, i));
		}
		check_sum("sum", got, sum, sum, n);
		if (place == 1)
			CHECK(bits[n / 8] == 0x5a, "wrote past %zu", n);
		if (n > 0)
		{
			put_f32(x, n - 3, NAN);
			CHECK(isnan(K.sign_bits_f32(x, n, bits)), "NaN is kept in the sum");
			CHECK((bits[n / 8 - 1] >> 5 & 1) == 0, "NaN is not above zero");
		}
	}
}

/*
 * The reference adds in another order; all else about the result, which is
 * stored by l2_normalize(), must be the same at every level.
 */
static void
test_norm2_f64(void)
{
	FOR_LENGTHS(n) FOR_PLACEMENTS(place) for (int kind = 0; kind < KINDS; kind++)
	{
		float	   *x = place_at(&buf_a, place, n * 4);
		long double sum = 0;
		double		sums[4][8] = {0};
		double		lanes[8];
		double		rest = 0;
		double		got;

		fill_kind(x, n, kind);
		for (size_t i = 0; i < n; i++)
		{
			double		v = at_f32(x, i);

			sum += (long double) v * v;
			if (i < n / 8 * 8)
				sums[i / 8 % 4][i % 8] += v * v;
			else
				rest += v * v;
		}
		for (size_t j = 0; j < 8; j++)
			lanes[j] = (sums[0][j] + sums[1][j]) + (sums[2][j] + sums[3][j]);
		got = K.norm2_f64(x, n);
		CHECK(fabsl(got - sum) <= 1e-15L * (1 + n / 8) * sum,
			  "kind %d of %zu: got %.17g, want %.17Lg", kind, n, got, sum);
		CHECK(got == (lanes[0] + lanes[4]) + (lanes[1] + lanes[5]) +
			  (lanes[2] + lanes[6]) + (lanes[3] + lanes[7]) + rest,
			  "kind %d of %zu: another order", kind, n);
	}
	CHECK(K.norm2_f64(NULL, 0) == 0, "nothing has length 0");

	/* squares that a float32 would lose */
	for (size_t i = 0; i < 19; i++)
		put_f32((float *) buf_a.start, i, i % 2 ? 1e-30f : -1e30f);
	CHECK(fabs(K.norm2_f64((float *) buf_a.start, 19) / 1e61 - 1) < 1e-7, "large squares");
	put_f32((float *) buf_a.start, 0, 1e-45f);
	CHECK(K.norm2_f64((float *) buf_a.start, 1) > 0, "small squares");
}

static void
test_divide_f32(void)
{
	static const double divisors[] = {1, 3, 0.1, 1e30, 1e-30, 0x1p-149, 0};

	FOR_LENGTHS(n) FOR_PLACEMENTS(place)
	{
		const float *x = place_at(&buf_a, place, n * 4);
		float	   *dst = place_at(&buf_b, place, n * 4);

		for (size_t d = 0; d < sizeof(divisors) / sizeof(divisors[0]); d++)
		{
			fill_kind((float *) x, n, d % 2 ? MIXED : NORMAL);
			if (place == 1)
				put_f32(dst, n, 5);
			K.divide_f32(x, divisors[d], dst, n);
			for (size_t i = 0; i < n; i++)
			{
				float		want = (float) ((double) at_f32(x, i) / divisors[d]);
				float		got = at_f32(dst, i);

				CHECK(memcmp(&got, &want, sizeof(got)) == 0,
					  "element %zu of %zu by %g: got %.9g, want %.9g", i, n,
					  divisors[d], got, want);
			}
			if (place == 1)
				CHECK(at_f32(dst, n) == 5, "wrote past %zu", n);
		}

		/* in place */
		for (size_t i = 0; i < n; i++)
			put_f32(dst, i, (float) i);
		K.divide_f32(dst, 7, dst, n);
		for (size_t i = 0; i < n; i++)
			CHECK(at_f32(dst, i) == (float) ((double) i / 7), "in place, %zu of %zu", i, n);
	}
}

/* bits: what a kernel wrote for n elements, of which positive() knows the sign */
static void
check_positive_bits(const uint8_t *bits, size_t n, const void *x,
					bool (*positive) (const void *x, size_t i))
{
	for (size_t i = 0; i < (n + 7) / 8 * 8; i++)
		CHECK((bits[i / 8] >> (7 - i % 8) & 1) == (i < n && positive(x, i)),
			  "bit %zu of %zu", i, n);
}

static bool
positive_f32(const void *x, size_t i)
{
	return at_f32(x, i) > 0;
}

static bool
positive_f16(const void *x, size_t i)
{
	return UnitHalfValue(at_u16(x, i)) > 0;
}

static void
test_positive_bits(void)
{
	static const float special[] = {0.0f, -0.0f, NAN, INFINITY, -INFINITY, 1e-45f, -1e-45f};
	static const uint16_t special_f16[] = {
		0, 0x8000, 0x7e00, 0x7c01, 0xfe00, 0x7c00, 0xfc00, 1, 0x8001, 0x7bff
	};

	FOR_LENGTHS(n) FOR_PLACEMENTS(place)
	{
		size_t		bytes = (n + 7) / 8;
		float	   *x = place_at(&buf_a, place, n * 4);
		uint16_t   *h = place_at(&buf_c, place, n * 2);
		uint8_t    *bits = place_at(&buf_b, place, bytes);

		fill_kind(x, n, MIXED);
		UnitFillBytes(h, n * 2);
		for (size_t i = 0; i < n; i += 3)
		{
			put_f32(x, i, special[i / 3 % 7]);
			memcpy((char *) h + i * 2, &special_f16[i / 3 % 10], 2);
		}
		memset(bits, 0xff, bytes);
		if (place == 1)
			bits[bytes] = 0x5a;
		K.positive_bits_f32(x, n, bits);
		check_positive_bits(bits, n, x, positive_f32);
		memset(bits, 0xff, bytes);
		K.positive_bits_f16(h, n, bits);
		check_positive_bits(bits, n, h, positive_f16);
		if (place == 1)
			CHECK(bits[bytes] == 0x5a, "wrote past %zu", n);
	}
}

static void
test_ip_bits_s8(void)
{
	enum
	{
		MOST = 6
	};

	FOR_LENGTHS_OF_16(n) FOR_PLACEMENTS(place)
	{
		int8_t	   *x = place_at(&buf_a, place, n);
		uint8_t    *all = place_at(&buf_b, place, MOST * n / 8);
		const uint8_t *bits[MOST];
		int32_t		want[MOST] = {0};
		int32_t		sums[MOST + 1];

		UnitFillBytes((uint8_t *) x, n);
		UnitFillBytes(all, MOST * n / 8);
		for (size_t c = 0; c < MOST; c++)
		{
			bits[c] = all + (MOST - 1 - c) * n / 8;
			for (size_t i = 0; i < n; i++)
				if (bits[c][i / 8] >> i % 8 & 1)
					want[c] += x[i];
		}
		for (size_t count = 0; count <= MOST; count++)
		{
			sums[count] = 0x5a;
			K.ip_bits_s8(bits, count, x, n, sums);
			for (size_t c = 0; c < count; c++)
				CHECK(sums[c] == want[c], "%zu bytes, code %zu of %zu", n, c, count);
			CHECK(sums[count] == 0x5a, "wrote past %zu", count);
		}
		for (int value = -128; value <= 127; value += 255)
		{
			memset(x, value, n);
			memset(all, 0xff, MOST * n / 8);
			K.ip_bits_s8(bits, MOST, x, n, sums);
			for (size_t c = 0; c < MOST; c++)
				CHECK(sums[c] == (int32_t) n * value, "%zu bytes of %d, code %zu", n, value, c);
		}
	}
}

static void
test_ip_bits_f32(void)
{
	FOR_LENGTHS_OF_16(n) FOR_PLACEMENTS(place)
	{
		float	   *x = place_at(&buf_a, place, n * 4);
		uint8_t    *bits = place_at(&buf_b, place, n / 8);
		double		sum = 0,
					size = 0;

		fill_kind(x, n, NORMAL);
		UnitFillBytes(bits, n / 8);
		for (size_t i = 0; i < n; i++)
			if (bits[i / 8] >> i % 8 & 1)
			{
				sum += at_f32(x, i);
				size += fabs(at_f32(x, i));
			}
		check_sum("sum", K.ip_bits_f32(bits, x, n), sum, size, n);
		if (n > 0)
		{
			/* what is not counted does not matter */
			put_f32(x, n - 3, INFINITY);
			bits[n / 8 - 1] &= (uint8_t) ~(1 << 5);
			CHECK(isfinite(K.ip_bits_f32(bits, x, n)), "counts a bit that is not set");
		}
	}
}

static void
test_split_s16(void)
{
	FOR_LENGTHS(n) FOR_PLACEMENTS(place)
	{
		float	   *x = place_at(&buf_a, place, n * 4);
		int8_t	   *hi = place_at(&buf_b, place, n);
		int8_t	   *lo = place_at(&buf_c, place, n);
		float		max = 3.7f;
		float		inv = 32639 / max;
		float		scale = max / 32639;
		int64_t		want_sum = 0;
		double		want_err2 = 0;
		double		terms = 0;
		int32_t		sum;
		float		err2;

		for (size_t i = 0; i < n; i++)
			put_f32(x, i, (float) (UnitUniform() * 2 - 1) * max);
		if (n > 2)
		{
			put_f32(x, n - 1, max);
			put_f32(x, n - 2, -max);
		}
		K.split_s16(x, n, inv, scale, hi, lo, &sum, &err2);
		for (size_t i = 0; i < n; i++)
		{
			int			q = 256 * hi[i] + lo[i];
			double		v = at_f32(x, i);
			double		e = v - (double) scale * q;

			CHECK(fabs(q - v * (double) inv) <= 0.505, "element %zu of %zu: %d for %g",
				  i, n, q, v * (double) inv);
			want_sum += q;
			want_err2 += e * e;
			terms += e * e + fabs(e) * fabs(v) * 1e-7 / TOLERANCE(1) * 2;
		}
		CHECK(sum == want_sum, "sum of %zu", n);
		check_sum("err2", err2, want_err2, terms, n);
	}

	/* every value there is */
	{
		float	   *x = UnitAtStart(&buf_a, 0);
		int8_t	   *hi = UnitAtStart(&buf_b, 0);
		int8_t	   *lo = UnitAtStart(&buf_c, 0);

		for (int part = 0; part < 2; part++)
		{
			int32_t		sum;
			float		err2;
			int			first = part == 0 ? -32639 : 0;

			for (int i = 0; i < 32640; i++)
				x[i] = (float) (first + i);
			K.split_s16(x, 32640, 1, 1, hi, lo, &sum, &err2);
			for (int i = 0; i < 32640; i++)
				CHECK(256 * hi[i] + lo[i] == first + i, "%d became %d, %d",
					  first + i, hi[i], lo[i]);
			CHECK(err2 == 0, "whole numbers have no error");
		}
	}
}

static void
test_lut_f32(void)
{
	for (size_t nibbles = 0; nibbles <= 65; nibbles++)
	{
		FOR_PLACEMENTS(place)
		{
			float	   *x = place_at(&buf_a, place, nibbles * 16);
			uint8_t    *lut = place_at(&buf_b, place, nibbles * 16);
			float		inv = 60;	/* some entries saturate */

			fill_kind(x, nibbles * 4, NORMAL);
			if (place == 1)
				lut[nibbles * 16] = 0x5a;
			K.lut_f32(x, nibbles, inv, lut);
			for (size_t t = 0; t < nibbles; t++)
			{
				for (size_t v = 0; v < 16; v++)
				{
					double		sum = 0;
					int			got = lut[t * 16 + v];

					for (size_t j = 0; j < 4; j++)
					{
						double		c = at_f32(x, 4 * t + j);

						sum += v >> j & 1 ? fmax(c, 0) : fmax(-c, 0);
					}
					sum = fmin(sum * (double) inv, 255);
					CHECK(fabs(got - sum) <= 0.501, "entry %zu of nibble %zu: %d for %g",
						  v, t, got, sum);
				}
			}
			if (place == 1)
				CHECK(lut[nibbles * 16] == 0x5a, "wrote past %zu", nibbles);
		}
	}
}

/* ---- vectors in place ---- */

static void
test_fht_f32(void)
{
	for (size_t n = 1; n <= 1024; n *= 2)
	{
		FOR_PLACEMENTS(place)
		{
			float	   *x = place_at(&buf_a, place, n * 4);
			float	   *copy = UnitAtStart(&buf_b, 0);

			fill_kind(x, n, NORMAL);
			memcpy(copy, x, n * 4);
			K.fht_f32(x, n);
			for (size_t i = 0; i < n; i++)
			{
				double		sum = 0;

				for (size_t j = 0; j < n; j++)
					sum += __builtin_parityll(i & j) ? -copy[j] : copy[j];
				sum /= sqrt((double) n);
				CHECK(fabs(at_f32(x, i) - sum) <= 3e-6, "element %zu of %zu: %g, not %g",
					  i, n, (double) at_f32(x, i), sum);
			}
		}
	}
	for (size_t n = 2048; n <= MAX_N; n *= 2)
	{
		float	   *x = UnitAtEnd(&buf_a, n * 4);
		size_t		hot[3] = {1, n / 2 + 77, n - 1};

		/* three columns of the matrix, then there and back */
		memset(x, 0, n * 4);
		for (int h = 0; h < 3; h++)
			x[hot[h]] = 1;
		K.fht_f32(x, n);
		for (size_t i = 0; i < n; i++)
		{
			double		sum = 0;

			for (int h = 0; h < 3; h++)
				sum += __builtin_parityll(i & hot[h]) ? -1 : 1;
			CHECK(fabs(x[i] - sum / sqrt((double) n)) <= 1e-7, "element %zu of %zu", i, n);
		}
		K.fht_f32(x, n);
		for (int h = 0; h < 3; h++)
			CHECK(fabsf(x[hot[h]] - 1) < 1e-5f, "the transform is its own inverse");
		CHECK(fabs((double) K.norm2_f32(x, n) - 3) < 1e-4, "nothing else remains");
	}
}

static void
test_flip_signs_f32(void)
{
	FOR_LENGTHS(n) FOR_PLACEMENTS(place)
	{
		float	   *x = place_at(&buf_a, place, n * 4);
		uint8_t    *signs = place_at(&buf_b, place, (n + 7) / 8);
		float	   *copy = UnitAtStart(&buf_c, 0);

		fill_kind(x, n, NORMAL);
		UnitFillBytes(signs, (n + 7) / 8);
		memcpy(copy, x, n * 4);
		K.flip_signs_f32(x, signs, n);
		for (size_t i = 0; i < n; i++)
			CHECK(at_f32(x, i) == (signs[i / 8] >> i % 8 & 1 ? -copy[i] : copy[i]),
				  "element %zu of %zu", i, n);
	}
}

static void
test_mix_add(void)
{
	FOR_LENGTHS(n) FOR_PLACEMENTS(place)
	{
		float	   *a = place_at(&buf_a, place, n * 4);
		float	   *b = place_at(&buf_b, place, n * 4);
		float	   *copy_a = UnitAtStart(&buf_c, 0);
		float	   *copy_b = UnitAtStart(&buf_d, 0);

		fill_kind(a, n, NORMAL);
		fill_kind(b, n, NORMAL);
		memcpy(copy_a, a, n * 4);
		memcpy(copy_b, b, n * 4);
		K.add_f32(a, b, n);
		for (size_t i = 0; i < n; i++)
			CHECK(at_f32(a, i) == copy_a[i] + copy_b[i], "add %zu of %zu", i, n);
		memcpy(a, copy_a, n * 4);
		K.mix_f32(a, b, n, 0.75f);
		for (size_t i = 0; i < n; i++)
			CHECK(at_f32(a, i) == 0.75f * (copy_a[i] + copy_b[i]) &&
				  at_f32(b, i) == 0.75f * (copy_a[i] - copy_b[i]),
				  "mix %zu of %zu", i, n);
	}
}

/* ---- blocks ---- */

static void
test_ip_f32_block(void)
{
	static const size_t dims[] = {0, 1, 7, 8, 9, 15, 16, 17, 33, 64, 100, 130, 1023, 1024, 1025, 2060};

	for (size_t d = 0; d < sizeof(dims) / sizeof(dims[0]); d++)
	{
		size_t		dim = dims[d];
		size_t		most = dim > 130 ? 8 : 15;

		for (size_t na = 0; na <= most; na++)
		{
			for (size_t nb = 0; nb <= most; nb++)
			{
				size_t		lda = dim + na % 3;
				size_t		ldb = dim + nb % 2 * 5;
				size_t		ldo = nb + 2;
				size_t		out_size = na * ldo * 4;
				float	   *a = place_at(&buf_a, (int) (nb % 2), na * lda * 4);
				float	   *b = place_at(&buf_b, (int) (na % 2), nb * ldb * 4);
				float	   *out = place_at(&buf_c, (int) (nb % 2), out_size);

				if (nb == 0 || na == 0)
					out_size = 0;
				fill_kind(a, na * lda, NORMAL);
				fill_kind(b, nb * ldb, NORMAL);
				memset(out, 0x5a, out_size);
				K.ip_f32_block(a, na, lda, b, nb, ldb, dim, out, ldo);
				for (size_t i = 0; i < na && nb > 0; i++)
				{
					for (size_t j = 0; j < nb; j++)
					{
						double		sum = 0;
						double		terms = 0;

						for (size_t k = 0; k < dim; k++)
						{
							double		p = (double) at_f32(a, i * lda + k) *
								(double) at_f32(b, j * ldb + k);

							sum += p;
							terms += fabs(p);
						}
						check_sum("ip", at_f32(out, i * ldo + j), sum, terms, dim);
					}
					for (size_t j = nb; j < ldo; j++)
					{
						uint32_t	bits;

						memcpy(&bits, (char *) out + (i * ldo + j) * 4, 4);
						CHECK(bits == 0x5a5a5a5a, "wrote between rows, %zu x %zu", na, nb);
					}
				}
			}
		}
	}
}

static void
test_argmin_diff_f32(void)
{
	float		min;

	FOR_LENGTHS(n) FOR_PLACEMENTS(place)
	{
		float	   *a = place_at(&buf_a, place, n * 4);
		float	   *b = place_at(&buf_b, place, n * 4);

		for (int kind = 0; kind < 3; kind++)
		{
			size_t		want = 0;
			float		want_min = INFINITY;
			size_t		got;

			fill_kind(a, n, kind == 2 ? CONSTANT : NORMAL);
			fill_kind(b, n, kind == 2 ? CONSTANT : NORMAL);
			if (kind == 1)
				for (size_t i = 0; i < n; i++)
				{
					/* few values, so that there are ties; NaN and infinity */
					put_f32(a, i, rintf(at_f32(a, i)));
					put_f32(b, i, i % 5 == 0 ? NAN : i % 7 == 0 ? -INFINITY : 0);
				}
			for (size_t i = 0; i < n; i++)
			{
				float		d = at_f32(a, i) - at_f32(b, i);

				if (d < want_min)
				{
					want_min = d;
					want = i;
				}
			}
			got = K.argmin_diff_f32(a, b, n, &min);
			CHECK(got == want && min == want_min, "of %zu: %zu with %g, not %zu with %g",
				  n, got, (double) min, want, (double) want_min);
		}
		for (size_t i = 0; i < n && n <= 130; i++)
		{
			fill_kind(a, n, CONSTANT);
			fill_kind(b, n, CONSTANT);
			put_f32(b, i, 9);
			CHECK(K.argmin_diff_f32(a, b, n, &min) == i, "least of %zu at %zu", n, i);
		}
	}
}

/* ---- sparse vectors ---- */

/* n ascending indices, each 1 to 1 + step above the one before */
static void
fill_indices(int32_t *p, size_t n, uint32_t step)
{
	int32_t		index = 0;

	for (size_t i = 0; i < n; i++)
	{
		index += 1 + (int32_t) (UnitUniform() * step);
		memcpy((char *) p + i * 4, &index, 4);
	}
}

/* The sum of |x|, of x^2 or of products, over a merge; in double. */
static void
sparse_sums(const QvSparse *a, const QvSparse *b, double *l2sq, double *ip,
			double *ip_abs, double *l1)
{
	size_t		i = 0;
	size_t		j = 0;

	*l2sq = *ip = *ip_abs = *l1 = 0;
	while (i < a->n || j < b->n)
	{
		int32_t		p = INT32_MAX;
		int32_t		q = INT32_MAX;
		double		x;
		double		y;

		if (i < a->n)
			memcpy(&p, (const char *) a->indices + i * 4, 4);
		if (j < b->n)
			memcpy(&q, (const char *) b->indices + j * 4, 4);
		x = p <= q ? (double) at_f32(a->values, i) : 0;
		y = q <= p ? (double) at_f32(b->values, j) : 0;
		i += (p <= q);
		j += (q <= p);
		*l2sq += (x - y) * (x - y);
		*l1 += fabs(x - y);
		*ip += x * y;
		*ip_abs += fabs(x * y);
	}
}

static void
test_sparse(void)
{
	static const size_t other[] = {0, 1, 7, 15, 16, 17, 63, 64, 65, 77, 128, 200, 1000};

	FOR_LENGTHS(n) FOR_PLACEMENTS(place)
	{
		for (size_t o = 0; o < sizeof(other) / sizeof(other[0]); o++)
		{
			size_t		m = other[o];
			QvSparse	a = {place_at(&buf_a, place, n * 4), place_at(&buf_b, place, n * 4), n};
			QvSparse	b = {place_at(&buf_c, place, m * 4), place_at(&buf_d, place, m * 4), m};

			for (int kind = 0; kind < 3; kind++)
			{
				double		l2sq;
				double		ip;
				double		ip_abs;
				double		l1;

				/* the scalar level has one chain: half a unit a term */
				double		most = 6e-8 * (double) (n + m + 5);

				/* dense, half of the indices shared, and one much sparser */
				fill_indices((int32_t *) a.indices, n, kind == 0 ? 0 : 3);
				fill_indices((int32_t *) b.indices, m, kind == 0 ? 0 : kind == 1 ? 3 : 60);
				fill_kind((float *) a.values, n, NORMAL);
				fill_kind((float *) b.values, m, NORMAL);
				sparse_sums(&a, &b, &l2sq, &ip, &ip_abs, &l1);
				CHECK(fabs((double) K.l2sq_sparse(&a, &b) - l2sq) <= most * l2sq,
					  "l2sq of %zu and %zu: not %g", n, m, l2sq);
				CHECK(fabs((double) K.l2sq_sparse(&b, &a) - l2sq) <= most * l2sq,
					  "l2sq of %zu and %zu: not %g", m, n, l2sq);
				CHECK(fabs((double) K.l1_sparse(&a, &b) - l1) <= most * l1,
					  "l1 of %zu and %zu: not %g", n, m, l1);
				CHECK(fabs((double) K.ip_sparse(&a, &b) - ip) <= most * ip_abs,
					  "ip of %zu and %zu: not %g", n, m, ip);
			}
			CHECK(K.l2sq_sparse(&a, &a) == 0 && K.l1_sparse(&b, &b) == 0,
				  "distance to itself, %zu and %zu", n, m);
		}
	}
}

/* ---- levels ---- */

/* dim elements of which nnz are given, at ascending indices, the last included */
static void
test_scatter(void)
{
	static const size_t counts[] = {0, 1, 7, 8, 9, 15, 16, 17, 33, 64, 200};

	FOR_LENGTHS(dim) for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++)
	{
		size_t		n = counts[c];
		int			place = (int) (c % 2);
		int32_t    *indices = place_at(&buf_a, place, n * 4);
		float	   *values = place_at(&buf_b, place, n * 4);
		float	   *x = place_at(&buf_c, place, dim * 4);
		uint16_t   *h = place_at(&buf_d, place, dim * 2);
		QvSparse	v = {indices, values, n};
		size_t		at = 0;

		if (n > dim)
			continue;
		for (size_t i = 0; i < n; i++)
		{
			int32_t		index = (int32_t) ((i + 1) * dim / n - 1);

			memcpy((char *) indices + i * 4, &index, 4);
			put_f32(values, i, UnitNormal() * 100);
		}
		memset(x, 0xff, dim * 4);
		memset(h, 0xff, dim * 2);
		if (place == 1)
			put_f32(x, dim, 5);
		CHECK(K.scatter_f32(&v, INFINITY, x, dim), "%zu of %zu", n, dim);
		CHECK(K.scatter_f16(&v, 65520, h, dim), "%zu of %zu as halves", n, dim);
		for (size_t i = 0; i < dim; i++)
		{
			float		want = 0;
			int32_t		index = -1;

			if (at < n)
				memcpy(&index, (char *) indices + at * 4, 4);
			if (index == (int32_t) i)
				want = at_f32(values, at++);
			CHECK(at_f32(x, i) == want, "element %zu of %zu", i, dim);
			CHECK(at_u16(h, i) == UnitHalfFromDouble(want), "half %zu of %zu", i, dim);
		}
		if (place == 1)
			CHECK(at_f32(x, dim) == 5, "wrote past %zu", dim);

		/* the first and the last one may be bad */
		for (size_t i = 0; i < n; i += n > 1 ? n - 1 : 1)
		{
			int32_t		bad[] = {(int32_t) dim, -1, INT32_MIN, INT32_MAX};
			float		wrong[] = {INFINITY, -INFINITY, NAN, 65520, -65520};
			float		value = at_f32(values, i);
			int32_t		index;

			memcpy(&index, (char *) indices + i * 4, 4);
			for (int j = 0; j < 4; j++)
			{
				memcpy((char *) indices + i * 4, &bad[j], 4);
				CHECK(!K.scatter_f32(&v, INFINITY, x, dim), "index %d of %zu", bad[j], dim);
				CHECK(!K.scatter_f16(&v, 65520, h, dim), "index %d of %zu", bad[j], dim);
			}
			memcpy((char *) indices + i * 4, &index, 4);
			for (int j = 0; j < 5; j++)
			{
				put_f32(values, i, wrong[j]);
				CHECK(K.scatter_f32(&v, INFINITY, x, dim) == (j > 2), "value %g", wrong[j]);
				CHECK(!K.scatter_f16(&v, 65520, h, dim), "value %g", wrong[j]);
			}
			put_f32(values, i, value);
		}
	}
}

static void
test_levels(void)
{
	const char *const *levels = QvKernelsAvailable();
	const char *best = levels[0];
	int			n = 0;

	CHECK(strcmp(qv_kernels.level, "scalar") == 0, "scalar before initialization");
	for (size_t i = 0; i < sizeof(QvKernels) / sizeof(void *); i++)
		CHECK(((void *const *) &qv_kernels)[i] != NULL, "entry %zu is missing", i);
	QvKernelsInit();
	CHECK(strcmp(qv_kernels.level, best) == 0, "the best level is chosen");
	CHECK(!QvKernelsSetLevel("mmx") && strcmp(qv_kernels.level, best) == 0,
		  "an unknown level changes nothing");
	for (; levels[n] != NULL; n++)
	{
		CHECK(QvKernelsSetLevel(levels[n]), "level %s can be set", levels[n]);
		CHECK(strcmp(qv_kernels.level, levels[n]) == 0, "level %s calls itself %s",
			  levels[n], qv_kernels.level);
		for (size_t i = 0; i < sizeof(QvKernels) / sizeof(void *); i++)
			CHECK(((void *const *) &qv_kernels)[i] != NULL, "%s lacks entry %zu",
				  levels[n], i);
	}
	CHECK(n > 0 && strcmp(levels[n - 1], "scalar") == 0, "scalar is the last level");
#ifdef __x86_64__
	/* "avx512bw" does without what "avx512" may use */
	if (QvKernelsSetLevel("avx512bw"))
	{
		QvKernels	plain = qv_kernels;

		CHECK(QvKernelsSetLevel("avx512"), "there is avx512");
		if (__builtin_cpu_supports("avx512vnni"))
			CHECK(plain.ip_u8u8 != qv_kernels.ip_u8u8 &&
				  plain.ip_u8s16 != qv_kernels.ip_u8s16, "VNNI is used and avoided");
		if (__builtin_cpu_supports("avx512vpopcntdq"))
			CHECK(plain.hamming != qv_kernels.hamming &&
				  plain.jaccard != qv_kernels.jaccard, "VPOPCNTDQ is used and avoided");
		if (__builtin_cpu_supports("gfni"))
			CHECK(plain.fastscan != qv_kernels.fastscan &&
				  plain.fastscan_estimate != qv_kernels.fastscan_estimate,
				  "GFNI is used and avoided");
	}
#endif
	CHECK(QvKernelsSetLevel("auto") && strcmp(qv_kernels.level, best) == 0,
		  "auto is the best level");
}

void
SuiteKernels(void)
{
	UnitRun("levels", NULL, test_levels);

	buf_a = UnitBufferNew(65536 * 4);
	buf_b = UnitBufferNew(65536 * 4);
	buf_c = UnitBufferNew(65536 * 4);
	buf_d = UnitBufferNew(65536 * 4);
	for (const char *const *l = QvKernelsAvailable(); *l != NULL; l++)
	{
		if (!QvKernelsSetLevel(*l))
			abort();
		UnitRun("l2sq, ip, l1, cosine, norm2 of f32", *l, test_pairs_f32);
		UnitRun("overflow and NaN of f32", *l, test_overflow_f32);
		UnitRun("l2sq, ip, l1, cosine of f16", *l, test_pairs_f16);
		UnitRun("f16_to_f32", *l, test_f16_to_f32);
		UnitRun("f32_to_f16", *l, test_f32_to_f16);
		UnitRun("hamming, jaccard", *l, test_bits);
		UnitRun("ip_u8u8, sum_u8, ip_u8s16", *l, test_codes);
		UnitRun("unpack_bits", *l, test_unpack_bits);
		UnitRun("fastscan", *l, test_fastscan);
		UnitRun("fastscan_pack", *l, test_fastscan_pack);
		UnitRun("fastscan_estimate", *l, test_fastscan_estimate);
		UnitRun("residual_bits", *l, test_residual_bits);
		UnitRun("decode_u8", *l, test_decode_u8);
		UnitRun("quantize_u8", *l, test_quantize_u8);
		UnitRun("maxabs_f32", *l, test_maxabs_f32);
		UnitRun("sign_bits_f32", *l, test_sign_bits_f32);
		UnitRun("norm2_f64", *l, test_norm2_f64);
		UnitRun("divide_f32", *l, test_divide_f32);
		UnitRun("positive_bits_f32, positive_bits_f16", *l, test_positive_bits);
		UnitRun("ip_bits_f32", *l, test_ip_bits_f32);
		UnitRun("ip_bits_s8", *l, test_ip_bits_s8);
		UnitRun("split_s16", *l, test_split_s16);
		UnitRun("lut_f32", *l, test_lut_f32);
		UnitRun("fht_f32", *l, test_fht_f32);
		UnitRun("flip_signs_f32", *l, test_flip_signs_f32);
		UnitRun("mix_f32, add_f32", *l, test_mix_add);
		UnitRun("ip_f32_block", *l, test_ip_f32_block);
		UnitRun("argmin_diff_f32", *l, test_argmin_diff_f32);
		UnitRun("sparse", *l, test_sparse);
		UnitRun("scatter_f32, scatter_f16", *l, test_scatter);
	}
	UnitBufferFree(&buf_a);
	UnitBufferFree(&buf_b);
	UnitBufferFree(&buf_c);
	UnitBufferFree(&buf_d);
}
