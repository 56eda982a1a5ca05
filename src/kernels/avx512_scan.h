/*
 * avx512_scan.h
 *		FastScan for AVX-512, included once for each way to take the high
 *		nibbles of bytes.  Parameters, undefined again at the end:
 *
 *		SCAN_TARGET					attribute of the functions
 *		SCAN_NAME(name)				what they are called
 *		SCAN_HIGH_NIBBLES(codes)	the high nibble of every byte
 */

/*
 * Returns the sums of at most SCAN_GROUPS groups, as 16-bit numbers of codes 0 to 31.
 *
 * A looked-up 16-bit word has code 2w below code 2w + 1.  Adding whole words gives
 * sum(low) + 256 * sum(high) modulo 2^16.  Adding the high bytes alone gives sum(high),
 * and the low sum follows.
 */
SCAN_TARGET static inline __m512i
SCAN_NAME(scan_groups) (const uint8_t *batch, const uint8_t *lut, size_t groups)
{
	const __m512i nibble = _mm512_set1_epi8(15);
	const __m512i order =
		_mm512_set_epi16(31, 23, 30, 22, 29, 21, 28, 20,
						 27, 19, 26, 18, 25, 17, 24, 16,
						 15, 7, 14, 6, 13, 5, 12, 4,
						 11, 3, 10, 2, 9, 1, 8, 0);
	__m512i		words0 = _mm512_setzero_si512();	/* codes 0-15 */
	__m512i		words1 = words0;	/* codes 16-31 */
	__m512i		high0 = words0;
	__m512i		high1 = words0;
	__m512i		low0;
	__m512i		low1;
	__m512i		s0;
	__m512i		s1;

	for (size_t g = 0; g < groups; g++)
	{
		__m512i		codes = _mm512_loadu_si512(batch + g * 64);
		__m512i		table = _mm512_loadu_si512(lut + g * 64);
		__m512i		v0 = _mm512_shuffle_epi8(table, _mm512_and_si512(codes, nibble));
		__m512i		v1 = _mm512_shuffle_epi8(table, SCAN_HIGH_NIBBLES(codes));

		words0 = _mm512_add_epi16(words0, v0);
		high0 = _mm512_add_epi16(high0, _mm512_srli_epi16(v0, 8));
		words1 = _mm512_add_epi16(words1, v1);
		high1 = _mm512_add_epi16(high1, _mm512_srli_epi16(v1, 8));
	}
	low0 = _mm512_sub_epi16(words0, _mm512_slli_epi16(high0, 8));
	low1 = _mm512_sub_epi16(words1, _mm512_slli_epi16(high1, 8));

	/* add the four 128-bit lanes of each, ending with one lane for each */
	s0 = _mm512_add_epi16(_mm512_shuffle_i64x2(low0, high0, 0x44),
						  _mm512_shuffle_i64x2(low0, high0, 0xee));
	s1 = _mm512_add_epi16(_mm512_shuffle_i64x2(low1, high1, 0x44),
						  _mm512_shuffle_i64x2(low1, high1, 0xee));
	s0 = _mm512_add_epi16(_mm512_shuffle_i64x2(s0, s1, 0x88),
						  _mm512_shuffle_i64x2(s0, s1, 0xdd));
	return _mm512_permutexvar_epi16(order, s0);
}

/* sums[0] gets codes 0 to 15 and sums[1] codes 16 to 31. */
SCAN_TARGET static inline void
SCAN_NAME(scan_batch) (const uint8_t *batch, const uint8_t *lut,
					   size_t nibbles, __m512i sums[2])
{
	size_t		groups = nibbles / 4;
	size_t		part = groups < SCAN_GROUPS ? groups : SCAN_GROUPS;
	__m512i		s = SCAN_NAME(scan_groups) (batch, lut, part);

	sums[0] = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(s));
	sums[1] = _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(s, 1));
	for (size_t done = part; done < groups; done += part)
	{
		part = groups - done;
		if (part > SCAN_GROUPS)
			part = SCAN_GROUPS;
		s = SCAN_NAME(scan_groups) (batch + done * 64, lut + done * 64, part);
		sums[0] = _mm512_add_epi32(sums[0],
								   _mm512_cvtepu16_epi32(_mm512_castsi512_si256(s)));
		sums[1] = _mm512_add_epi32(sums[1],
								   _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(s, 1)));
	}
}

SCAN_TARGET static void
SCAN_NAME(qv_fastscan) (const uint8_t *batch, const uint8_t *lut,
						size_t nibbles, uint32_t out[QV_BATCH])
{
	__m512i		sums[2];

	SCAN_NAME(scan_batch) (batch, lut, nibbles, sums);
	_mm512_storeu_si512(out, sums[0]);
	_mm512_storeu_si512(out + 16, sums[1]);
}

/* Sixteen estimates; returns the mask of those below the threshold. */
SCAN_TARGET static inline uint32_t
SCAN_NAME(estimate16) (__m512i sums, const uint16_t *a16, const uint16_t *b16,
					   const QvEstimateParams *p, __m512 threshold, float *out)
{
	__m256i		halves = _mm256_loadu_si256((const __m256i *) a16);
	__mmask16	alive = _mm256_cmpneq_epi16_mask(halves, _mm256_set1_epi16(F16_INFINITY));
	__m512		a = _mm512_cvtph_ps(halves);
	__m512		b = load_f16(b16);
	__m512		ip = _mm512_fmadd_ps(_mm512_set1_ps(p->lut_scale),
									 _mm512_cvtepi32_ps(sums),
									 _mm512_set1_ps(p->lut_bias));
	__m512		e = _mm512_fmadd_ps(_mm512_set1_ps(p->a_scale), a,
									_mm512_set1_ps(p->base));

	e = _mm512_fmadd_ps(_mm512_mul_ps(_mm512_set1_ps(p->b_scale), b), ip, e);
	_mm512_storeu_ps(out, e);
	return _mm512_mask_cmp_ps_mask(alive, e, threshold, _CMP_LT_OQ);
}

SCAN_TARGET static uint32_t
SCAN_NAME(qv_fastscan_estimate) (const uint8_t *batch, const uint8_t *lut,
								 size_t nibbles, const QvEstimateParams *p,
								 float threshold, float out[QV_BATCH])
{
	__m512		limit = _mm512_set1_ps(threshold);
	__m512i		sums[2];
	uint32_t	mask;

	SCAN_NAME(scan_batch) (batch, lut, nibbles, sums);
	mask = SCAN_NAME(estimate16) (sums[0], p->a, p->b, p, limit, out);
	mask |= SCAN_NAME(estimate16) (sums[1], p->a + 16, p->b + 16, p, limit, out + 16) << 16;
	return mask;
}

#undef SCAN_TARGET
#undef SCAN_NAME
#undef SCAN_HIGH_NIBBLES
