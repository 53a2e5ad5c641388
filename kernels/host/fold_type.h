/* SPDX-License-Identifier: MIT */
/*
 * The folds of one data type; included once for each, with
 *
 *   T          its short name: widen4_T() and narrow4_T() exist
 *   ACC        the type in which values are accumulated, as in vec_ACC
 *   LANE       the same as a type of C, LANE_CMP the signed or unsigned type that compares right
 *   MASK       vector that a comparison gives
 *   CMP        vector that compares right
 *   N_RAW      vectors of memory that four vectors of accumulators come from
 *   IS_FLOAT   0 or 1
 *
 * The operation is a constant argument of functions that are always inlined, so that each fold is
 * a loop without a branch on it.
 */
#define PASTE_(a, b) a##b
#define PASTE(a, b)  PASTE_(a, b)
#define NAME(name)   PASTE(PASTE(name, _), T)
#define VEC          PASTE(vec_, ACC)
#define FOUR         struct PASTE(four_, ACC)
#define BLOCK_BYTES  (N_RAW * VEC_BYTES)
#define LANES        (VEC_BYTES / sizeof(LANE))
#define WIDEN4       NAME(widen4)
#define NARROW4      NAME(narrow4)

RX_INLINE VEC NAME(choose)(MASK take, VEC v, VEC acc)
{
	return (VEC)(((MASK)v & take) | ((MASK)acc & ~take));
}

/* An accumulator that is not a number gives way to any value. */
RX_INLINE MASK NAME(no_number)(VEC acc)
{
#if IS_FLOAT
	return (MASK)(acc != acc);
#else
	return (MASK)(acc ^ acc);
#endif
}

RX_INLINE VEC NAME(combine)(VEC acc, VEC v, int op)
{
	switch (op) {
	case RX_PROD:
		return acc * v;
	case RX_MAX:
		return NAME(choose)((MASK)((CMP)v > (CMP)acc) | NAME(no_number)(acc), v, acc);
	case RX_MIN:
		return NAME(choose)((MASK)((CMP)v < (CMP)acc) | NAME(no_number)(acc), v, acc);
	default:
		return acc + v;
	}
}

RX_INLINE FOUR NAME(combine4)(FOUR acc, FOUR v, int op)
{
	return (FOUR){NAME(combine)(acc.v0, v.v0, op), NAME(combine)(acc.v1, v.v1, op),
		NAME(combine)(acc.v2, v.v2, op), NAME(combine)(acc.v3, v.v3, op)};
}

/* The values of source @s, as they enter the fold. */
RX_INLINE FOUR NAME(take4)(const struct rx_fold *fold, uint32_t s, const uint8_t *from, int op)
{
	FOUR v = WIDEN4(from);
	VEC scale = {0};

	if (op != RX_PREMUL_SUM)
		return v;
	scale = VEC_SPLAT(VEC, fold->scale[s].ACC);
	return (FOUR){v.v0 * scale, v.v1 * scale, v.v2 * scale, v.v3 * scale};
}

#if IS_FLOAT
RX_INLINE FOUR NAME(average4)(const struct rx_fold *fold, FOUR a)
{
	VEC factor = VEC_SPLAT(VEC, fold->avg_factor.ACC);

	if (fold->avg_times)
		return (FOUR){a.v0 * factor, a.v1 * factor, a.v2 * factor, a.v3 * factor};
	return (FOUR){a.v0 / factor, a.v1 / factor, a.v2 / factor, a.v3 / factor};
}
#else
/*
 * No instruction set divides vectors of integers, but a power of two only needs a shift, which
 * rounds down, after an addition that turns that into rounding towards zero.
 */
RX_INLINE VEC NAME(average)(const struct rx_fold *fold, VEC v)
{
	LANE lane[LANES];

	if (fold->avg_times) {
		const bool is_signed = (LANE_CMP)-1 < (LANE_CMP)1;
		LANE up = is_signed ? (LANE)(fold->n_avg - 1) : 0;
		VEC negative = (VEC)((MASK)v >> (int)(sizeof(LANE) * 8 - 1));

		return (VEC)((CMP)(v + (negative & up)) >> __builtin_ctz(fold->n_avg));
	}
	/* Up to 32 bits, cutting off the quotient in fp64 gives the integer one. */
	memcpy(lane, &v, sizeof(v));
	for (size_t i = 0; i < LANES; i++) {
		if (sizeof(LANE) < sizeof(uint64_t))
			lane[i] = (LANE)(LANE_CMP)((double)(LANE_CMP)lane[i] / fold->n_avg);
		else
			lane[i] = (LANE)((LANE_CMP)lane[i] / (LANE_CMP)fold->n_avg);
	}
	memcpy(&v, lane, sizeof(v));
	return v;
}

RX_INLINE FOUR NAME(average4)(const struct rx_fold *fold, FOUR a)
{
	return (FOUR){NAME(average)(fold, a.v0), NAME(average)(fold, a.v1),
		NAME(average)(fold, a.v2), NAME(average)(fold, a.v3)};
}
#endif

RX_INLINE struct four_u8 NAME(finish4)(const struct rx_fold *fold, FOUR acc, int op)
{
	if (op == RX_AVG)
		acc = NAME(average4)(fold, acc);
	return NARROW4(acc);
}

RX_INLINE void NAME(put)(uint8_t *to, struct four_u8 raw, bool stream)
{
	void (*const store)(uint8_t *, vec_u8) = stream ? vec_stream : vec_store;

	store(to, raw.v0);
	if (N_RAW > 1)
		store(to + VEC_BYTES, raw.v1);
	if (N_RAW > 2) {
		store(to + VEC_BYTES * 2, raw.v2);
		store(to + VEC_BYTES * 3, raw.v3);
	}
}

RX_INLINE void NAME(put_all)(const struct rx_fold *fold, uint64_t at, struct four_u8 raw)
{
	for (uint32_t d = 0; d < fold->n_dst; d++) {
		if (fold->stream)
			NAME(put)((uint8_t *)fold->dst[d] + at, raw, true);
		else
			NAME(put)((uint8_t *)fold->dst[d] + at, raw, false);
	}
}

RX_INLINE void NAME(block)(const struct rx_fold *fold, uint64_t at, int op)
{
	FOUR acc = NAME(take4)(fold, 0, (const uint8_t *)fold->src[0] + at, op);

	for (uint32_t s = 1; s < fold->n_src; s++) {
		const uint8_t *from = (const uint8_t *)fold->src[s] + at;

		acc = NAME(combine4)(acc, NAME(take4)(fold, s, from, op), op);
	}
	NAME(put_all)(fold, at, NAME(finish4)(fold, acc, op));
}

/*
 * The blocks of two sources and one or two destinations, which is what most of them are: the
 * pointers stay in registers. Returns where it stopped.
 */
RX_INLINE uint64_t NAME(pairs)(const struct rx_fold *fold, uint64_t at, uint64_t end, int op)
{
	const uint8_t *a = fold->src[0];
	const uint8_t *b = fold->src[1];
	uint8_t *to = fold->dst[0];
	uint8_t *also_to = fold->n_dst > 1 ? fold->dst[1] : NULL;

	for (; end - at >= BLOCK_BYTES; at += BLOCK_BYTES) {
		FOUR acc = NAME(combine4)(WIDEN4(a + at), WIDEN4(b + at), op);
		struct four_u8 raw = NAME(finish4)(fold, acc, op);

		NAME(put)(to + at, raw, false);
		if (also_to)
			NAME(put)(also_to + at, raw, false);
	}
	return at;
}

/* What is left at the end: less than a block, through copies of its size. */
RX_INLINE void NAME(rest)(const struct rx_fold *fold, uint64_t at, uint64_t bytes, int op)
{
	vec_u8 in[N_RAW] = {{0}};
	vec_u8 out[N_RAW];
	const uint8_t *from = (const uint8_t *)in;
	FOUR acc = {0};

	stage_in(in, (const uint8_t *)fold->src[0] + at, bytes, N_RAW);
	acc = NAME(take4)(fold, 0, from, op);
	for (uint32_t s = 1; s < fold->n_src; s++) {
		stage_in(in, (const uint8_t *)fold->src[s] + at, bytes, N_RAW);
		acc = NAME(combine4)(acc, NAME(take4)(fold, s, from, op), op);
	}
	NAME(put)((uint8_t *)out, NAME(finish4)(fold, acc, op), false);
	for (uint32_t d = 0; d < fold->n_dst; d++)
		stage_out((uint8_t *)fold->dst[d] + at, out, bytes, N_RAW);
}

RX_INLINE void NAME(fold)(const struct rx_fold *fold, uint64_t at, uint64_t end, int op)
{
	bool often = op == RX_SUM || op == RX_AVG;

	if (often && fold->n_src == 2 && fold->n_dst <= 2 && !fold->stream)
		at = NAME(pairs)(fold, at, end, op);
	for (; end - at >= BLOCK_BYTES; at += BLOCK_BYTES)
		NAME(block)(fold, at, op);
	if (at < end)
		NAME(rest)(fold, at, end - at, op);
}

#define FOLD_OF(name, op)                                                                          \
	static void NAME(name)(const struct rx_fold *fold, uint64_t at, uint64_t end)              \
	{                                                                                          \
		NAME(fold)(fold, at, end, op);                                                     \
	}

FOLD_OF(sum, RX_SUM)
FOLD_OF(prod, RX_PROD)
FOLD_OF(max, RX_MAX)
FOLD_OF(min, RX_MIN)
FOLD_OF(avg, RX_AVG)
FOLD_OF(premul, RX_PREMUL_SUM)

#undef FOLD_OF
#undef NARROW4
#undef WIDEN4
#undef LANES
#undef BLOCK_BYTES
#undef FOUR
#undef VEC
#undef NAME
#undef PASTE
#undef PASTE_
#undef IS_FLOAT
#undef N_RAW
#undef CMP
#undef MASK
#undef LANE_CMP
#undef LANE
#undef ACC
#undef T
