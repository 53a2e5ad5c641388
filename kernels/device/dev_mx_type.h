/* SPDX-License-Identifier: MIT */
/*
 * Low precision for one data type, and its kernel; included once for each type, with
 *
 *   T       its short name; dev_mx_in_T(), dev_mx_out_T() exist
 *   DTYPE   its number
 *   SIZE    bytes of an element
 *   ABOVE   bits of the power of two above all its values
 *   UNROLL  blocks of MXFP8, of each source, that a group of threads has in flight
 *   QUICK   have few instructions for usual blocks, and the next source's on their way while
 *           one's are encoded: for both, more registers
 *   DENSE   blocks of threads that a multiprocessor has at once
 */
#define PASTE_(a, b) a##b
#define PASTE(a, b)  PASTE_(a, b)
#define NAME(name)   PASTE(PASTE(name, _), T)
#define LANES        (16 / SIZE)           /* elements of a thread */
#define WIDTH        (RX_MX_BLOCK / LANES) /* threads of a group */

/* This thread's elements of block @block: how many, and where. */
DEV_FN uint32_t NAME(dev_mx_n)(const struct dev_mx_task *task, uint32_t block)
{
	uint64_t at = (uint64_t)block * RX_MX_BLOCK + dev_thread() % WIDTH * LANES;

	return at < task->count ? (uint32_t)dev_min(task->count - at, LANES) : 0;
}

DEV_FN uint64_t NAME(dev_mx_at)(uint32_t block)
{
	return ((uint64_t)block * RX_MX_BLOCK + dev_thread() % WIDTH * LANES) * SIZE;
}

/*
 * Elements beyond the end are zeros, which change nothing. @whole: the task is aligned and the
 * block not the last.
 */
DEV_FN struct dev_vec16 NAME(dev_mx_load)(
	const struct dev_mx_task *task, const uint8_t *p, uint32_t block, bool whole)
{
	uint32_t n = NAME(dev_mx_n)(task, block);
	struct dev_vec16 raw = {{0, 0, 0, 0}};

	p += NAME(dev_mx_at)(block);
	if (whole || (n == LANES && ((uintptr_t)p & 15) == 0))
		return dev_load16(p);
	DEV_UNROLL
	for (uint32_t k = 0; k < LANES; k++) {
		if (k >= n)
			continue;
#if SIZE == 4
		raw.w[k] = *DEV_AS_GLOBAL(const uint32_t, p + k * 4);
#else
		raw.w[k / 2] |= (uint32_t)*DEV_AS_GLOBAL(const uint16_t, p + k * 2) << k % 2 * 16;
#endif
	}
	return raw;
}

DEV_FN void NAME(dev_mx_store)(const struct dev_mx_task *task, uint8_t *p, uint32_t block,
	struct dev_vec16 raw, bool whole)
{
	uint32_t n = NAME(dev_mx_n)(task, block);

	p += NAME(dev_mx_at)(block);
	if (whole || (n == LANES && ((uintptr_t)p & 15) == 0)) {
		dev_store16(p, raw);
		return;
	}
	DEV_UNROLL
	for (uint32_t k = 0; k < LANES; k++) {
		if (k >= n)
			continue;
#if SIZE == 4
		*DEV_AS_GLOBAL(uint32_t, p + k * 4) = raw.w[k];
#else
		*DEV_AS_GLOBAL(uint16_t, p + k * 2) = (uint16_t)(raw.w[k / 2] >> k % 2 * 16);
#endif
	}
}

DEV_FN void NAME(dev_mx_unpack)(struct dev_vec16 raw, float *v)
{
	DEV_UNROLL
	for (uint32_t k = 0; k < LANES; k++)
		v[k] = NAME(dev_mx_in)(raw.w[k * SIZE / 4] >> k * SIZE % 4 * 8);
}

/* ---- encoding ---- */

/* @lost_p: does one of this thread's values become zero that is not? */
DEV_FN struct dev_mx_scale NAME(dev_mx_scale)(const float *v, uint32_t above, bool *lost_p)
{
	struct dev_mx_scale scale;
	uint32_t amax = 0;
	uint32_t finite = 0;
	uint32_t least = UINT32_MAX; /* magnitude, less one */

	DEV_UNROLL
	for (uint32_t k = 0; k < LANES; k++) {
		uint32_t magnitude = dev_bits(v[k]) & RX_MX_MAGNITUDE;

		amax = magnitude > amax ? magnitude : amax;
		least = magnitude - 1u < least ? magnitude - 1u : least;
	}
	amax = dev_group_max(amax, WIDTH);
	if (!dev_step_any(!dev_mx_is_plain(amax))) {
		scale = dev_mx_plain_scale(amax, above);
	} else {
		DEV_UNROLL
		for (uint32_t k = 0; k < LANES; k++) {
			uint32_t magnitude = dev_bits(v[k]) & RX_MX_MAGNITUDE;

			if (magnitude < RX_MX_INF && magnitude > finite)
				finite = magnitude;
		}
		finite = dev_group_max(finite, WIDTH);
		scale = dev_mx_scale_of(finite, amax >= RX_MX_INF, above);
	}
	*lost_p = least < scale.limit;
	return scale;
}

DEV_FN void NAME(dev_mx_count)(struct dev_shared *shared, const struct dev_mx_task *task,
	uint32_t block, const struct dev_mx_scale *scale, bool lost)
{
	if (!dev_uniform(task->counted))
		return;
	lost = dev_group_any(lost, WIDTH);
	if (dev_thread() % WIDTH || (uint64_t)block * RX_MX_BLOCK >= task->count)
		return;
	/* All of that is rare. */
	if (scale->saturated)
		dev_shared_add(&shared->counts[1], 1);
	if (lost)
		dev_shared_add(&shared->counts[2], 1);
	if (scale->special)
		dev_shared_add(&shared->counts[3], 1);
}

/* Values as they are when they have been encoded; returns whether a sum may leave fp32's range. */
DEV_FN bool NAME(dev_mx_through)(float *v, const struct dev_mx_task *task,
	struct dev_shared *shared, uint32_t block, uint32_t above)
{
	bool lost = false;
	struct dev_mx_scale scale = NAME(dev_mx_scale)(v, above, &lost);

	if (scale.plain) {
		DEV_UNROLL
		for (uint32_t k = 0; k < LANES; k += 4)
			dev_mx_plain_through(v + k, &scale);
	} else {
		DEV_UNROLL
		for (uint32_t k = 0; k < LANES; k++)
			v[k] = dev_mx_back(
				dev_mx_round(v[k] * scale.down, scale.special), v[k], &scale);
	}
	NAME(dev_mx_count)(shared, task, block, &scale, lost);
	return scale.byte >= DEV_MX_WILD;
}

/*
 * The usual case, in few instructions: rounded values, and what they are to be multiplied by.
 * False, for the whole group: @odd, or the block is not plain, or it has, or may have, lost a
 * value, which is counted. dev_mx_through() does what this does, and everything else.
 */
DEV_FN bool NAME(dev_mx_usual)(
	const float *v, uint32_t above, bool odd, float *rounded, float *up_p)
{
	struct dev_mx_scale scale;
	uint32_t amax = 0;

	DEV_UNROLL
	for (uint32_t k = 0; k < LANES; k++) {
		uint32_t magnitude = dev_bits(v[k]) & RX_MX_MAGNITUDE;

		amax = magnitude > amax ? magnitude : amax;
	}
	amax = dev_group_max(amax, WIDTH);
	scale = dev_mx_plain_scale(amax, above);
	odd |= amax - DEV_MX_PLAIN_FIRST >= DEV_MX_PLAIN_SPAN || scale.saturated;
	DEV_UNROLL
	for (uint32_t k = 0; k < LANES; k += 4)
		odd |= dev_mx_plain_round(v + k, &scale, rounded + k);
	*up_p = scale.up;
	return !dev_step_some(odd, WIDTH);
}

/* Codes of block @block into the lanes of all outputs. */
DEV_FN void NAME(dev_mx_put)(dev_args a, const float *v, const struct dev_mx_task *task,
	struct dev_shared *shared, uint32_t block, uint32_t above)
{
	struct dev_many dst = dev_mx_many(a, &task->dst);
	bool lost = false;
	struct dev_mx_scale scale = NAME(dev_mx_scale)(v, above, &lost);
	uint64_t at = NAME(dev_mx_at)(block) / SIZE;
	uint32_t codes[LANES / 4];

	DEV_UNROLL
	for (uint32_t i = 0; i < LANES / 4; i++)
		codes[i] = dev_mx_codes(v + i * 4, &scale);
	NAME(dev_mx_count)(shared, task, block, &scale, lost);
	if ((uint64_t)block * RX_MX_BLOCK >= task->count)
		return;
	DEV_ROLL
	for (uint64_t left = dev_uniform64(task->outputs); left; left &= left - 1) {
		uint8_t *lane = dev_pointer(dst, dev_lowest_bit(left));

#if SIZE == 4
		*DEV_AS_GLOBAL(uint32_t, lane + at) = codes[0];
#else
		struct dev_vec8 both = {{codes[0], codes[1]}};

		dev_store8(lane + at, both);
#endif
		if (dev_thread() % WIDTH == 0)
			*DEV_AS_GLOBAL(uint8_t, lane + task->scale_at + block) =
				(uint8_t)scale.byte;
	}
}

/* ---- sums that travel as bfloat16 ---- */

DEV_FN void NAME(dev_mx_put_sums)(
	dev_args a, const float *v, const struct dev_mx_task *task, uint32_t block)
{
	struct dev_many dst = dev_mx_many(a, &task->dst);
	uint64_t at = NAME(dev_mx_at)(block) / SIZE * 2;
	uint32_t pairs[LANES / 2];

	if ((uint64_t)block * RX_MX_BLOCK >= task->count)
		return;
	DEV_UNROLL
	for (uint32_t i = 0; i < LANES / 2; i++)
		pairs[i] = dev_mx_out_bf16(v[i * 2]) | dev_mx_out_bf16(v[i * 2 + 1]) << 16;
	DEV_ROLL
	for (uint64_t left = dev_uniform64(task->outputs); left; left &= left - 1) {
		uint8_t *to = dev_pointer(dst, dev_lowest_bit(left)) + at;

#if SIZE == 4
		struct dev_vec8 out = {{pairs[0], pairs[1]}};

		dev_store8(to, out);
#else
		struct dev_vec16 out = {{pairs[0], pairs[1], pairs[2], pairs[3]}};

		dev_store16(to, out);
#endif
	}
}

DEV_FN void NAME(dev_mx_get_sums)(const uint8_t *lane, uint32_t block, float *v)
{
	const uint8_t *from = lane + NAME(dev_mx_at)(block) / SIZE * 2;

#if SIZE == 4
	struct dev_vec8 raw = dev_load8(from);
#else
	struct dev_vec16 raw = dev_load16(from);
#endif

	DEV_UNROLL
	for (uint32_t k = 0; k < LANES; k++)
		v[k] = dev_widen_bf16(raw.w[k / 2] >> k % 2 * 16 & 0xffffu);
}

/* ---- adding up ---- */

/* Before anything is added: the zero that changes nothing. */
DEV_FN void NAME(dev_mx_clear)(float *acc)
{
	DEV_UNROLL
	for (uint32_t k = 0; k < LANES; k++)
		acc[k] = -0.0f;
}

/* A block of one more source; @wild: sums may leave the range of fp32. */
DEV_FN void NAME(dev_mx_add)(float *acc, const float *v, bool wild)
{
	if (!dev_step_any(wild)) {
		DEV_UNROLL
		for (uint32_t k = 0; k < LANES; k++)
			acc[k] += v[k];
		return;
	}
	DEV_UNROLL
	for (uint32_t k = 0; k < LANES; k++)
		acc[k] = rx_mx_add(acc[k], v[k]);
}

/* What dev_mx_out() makes of a value that the type has. */
DEV_FN uint32_t NAME(dev_mx_out_plain)(float v)
{
#if SIZE == 4
	return dev_bits(v);
#elif ABOVE == RX_MX_INF
	return dev_bits(v) >> 16;
#else
	return NAME(dev_mx_out)(v);
#endif
}

/* What has been added up, to where it goes. */
DEV_FN void NAME(dev_mx_leave)(dev_args a, float *acc, const struct dev_mx_task *task,
	struct dev_shared *shared, uint32_t block, bool whole)
{
	struct dev_many dst = dev_mx_many(a, &task->dst);
	uint32_t result = dev_uniform(task->result);
	struct dev_vec16 out = {{0, 0, 0, 0}};
	float rounded[LANES];
	float up = 0;

	if (dev_uniform(task->average)) {
		/* With a power of two, the inverse is exact. */
		bool times = (a->n_avg & (a->n_avg - 1)) == 0 && a->n_avg <= 64;
		float inverse = 1.0f / (float)a->n_avg;

		DEV_UNROLL
		for (uint32_t k = 0; k < LANES; k++)
			acc[k] = times ? acc[k] * inverse : acc[k] / (float)a->n_avg;
	}
	if (result == DEV_MX_CODES) {
		NAME(dev_mx_put)(a, acc, task, shared, block, RX_MX_INF);
		return;
	}
	if (result == DEV_MX_SUMS) {
		NAME(dev_mx_put_sums)(a, acc, task, block);
		return;
	}
	if (QUICK && result == DEV_MX_AGAIN &&
		NAME(dev_mx_usual)(acc, RX_MX_INF, false, rounded, &up)) {
		DEV_UNROLL
		for (uint32_t k = 0; k < LANES; k++)
			out.w[k * SIZE / 4] |= NAME(dev_mx_out_plain)(rounded[k] * up)
					       << k * SIZE % 4 * 8;
	} else {
		if (result == DEV_MX_AGAIN)
			(void)NAME(dev_mx_through)(acc, task, shared, block, RX_MX_INF);
		DEV_UNROLL
		for (uint32_t k = 0; k < LANES; k++) {
			if (result == DEV_MX_BF16)
				acc[k] = dev_widen_bf16(dev_mx_out_bf16(acc[k]));
			out.w[k * SIZE / 4] |= NAME(dev_mx_out)(acc[k]) << k * SIZE % 4 * 8;
		}
	}
	DEV_ROLL
	for (uint64_t left = dev_uniform64(task->outputs); left; left &= left - 1)
		NAME(dev_mx_store)
	(task, dev_pointer(dst, dev_lowest_bit(left)), block, out, whole);
}

/* ---- @n_u blocks from @block on, @step apart; all are read before anything is written ---- */

DEV_FN void NAME(dev_mx_loads)(const struct dev_mx_task *task, const uint8_t *from, uint32_t block,
	uint32_t step, uint32_t n_u, bool whole, struct dev_vec16 *raw)
{
	DEV_UNROLL
	for (uint32_t u = 0; u < n_u; u++)
		raw[u] = NAME(dev_mx_load)(task, from, block + u * step, whole);
}

/* Values into lanes. */
DEV_FN void NAME(dev_mx_encode)(dev_args a, const struct dev_mx_task *task,
	struct dev_shared *shared, uint32_t block, uint32_t step, uint32_t n_u, bool whole)
{
	struct dev_many src = dev_mx_many(a, &task->src);
	uint32_t first = dev_uniform(task->first);
	const uint8_t *from = dev_pointer(src, first);
	struct dev_vec16 raw[UNROLL];

	NAME(dev_mx_loads)(task, from, block, step, n_u, whole, raw);
	DEV_UNROLL
	for (uint32_t u = 0; u < n_u; u++) {
		float v[LANES];

		NAME(dev_mx_unpack)(raw[u], v);
		NAME(dev_mx_put)(a, v, task, shared, block + u * step, ABOVE);
	}
}

/* Values, as if they had been encoded and sent. */
DEV_FN void NAME(dev_mx_fold)(dev_args a, const struct dev_mx_task *task, struct dev_shared *shared,
	uint32_t block, uint32_t step, uint32_t n_u, bool whole)
{
	struct dev_many src = dev_mx_many(a, &task->src);
	uint32_t first = dev_uniform(task->first);
	uint32_t n = dev_uniform(task->n);
	float acc[UNROLL][LANES];
	bool wild[UNROLL];
	struct dev_vec16 next[UNROLL];

	DEV_UNROLL
	for (uint32_t u = 0; u < n_u; u++) {
		NAME(dev_mx_clear)(acc[u]);
		wild[u] = false;
	}
	if (QUICK)
		NAME(dev_mx_loads)(task, dev_pointer(src, first), block, step, n_u, whole, next);
	DEV_ROLL
	for (uint32_t i = 0; i < n; i++) {
		struct dev_vec16 raw[UNROLL];

		DEV_UNROLL
		for (uint32_t u = 0; QUICK && u < n_u; u++)
			raw[u] = next[u];
		if (i + QUICK < n) {
			const uint8_t *from = dev_pointer(src, first + i + QUICK);

			NAME(dev_mx_loads)
			(task, from, block, step, n_u, whole, QUICK ? next : raw);
		}
		DEV_UNROLL
		for (uint32_t u = 0; u < n_u; u++) {
			float v[LANES];
			float rounded[LANES];
			float up = 0;

			NAME(dev_mx_unpack)(raw[u], v);
			if (QUICK && NAME(dev_mx_usual)(v, ABOVE, wild[u], rounded, &up)) {
				/* The product is exact. */
				DEV_UNROLL
				for (uint32_t k = 0; k < LANES; k++)
					acc[u][k] = dev_exact_mad(rounded[k], up, acc[u][k]);
				continue;
			}
			wild[u] |= NAME(dev_mx_through)(v, task, shared, block + u * step, ABOVE);
			NAME(dev_mx_add)(acc[u], v, wild[u]);
		}
	}
	DEV_UNROLL
	for (uint32_t u = 0; u < n_u; u++)
		NAME(dev_mx_leave)(a, acc[u], task, shared, block + u * step, whole);
}

/* What lanes hold. */
DEV_FN void NAME(dev_mx_decode)(dev_args a, const struct dev_mx_task *task,
	struct dev_shared *shared, uint32_t block, uint32_t step, uint32_t n_u, bool whole)
{
	struct dev_many src = dev_mx_many(a, &task->src);
	uint32_t first = dev_uniform(task->first);
	uint32_t n = dev_uniform(task->n);
	float acc[UNROLL][LANES];
	bool wild[UNROLL];

	DEV_UNROLL
	for (uint32_t u = 0; u < n_u; u++) {
		NAME(dev_mx_clear)(acc[u]);
		wild[u] = false;
	}
	DEV_ROLL
	for (uint32_t i = 0; i < n; i++) {
		const uint8_t *lane = dev_pointer(src, first + i);
		uint32_t codes[UNROLL][LANES / 4];
		uint32_t byte[UNROLL];

		if (dev_uniform(task->sums)) {
			DEV_UNROLL
			for (uint32_t u = 0; u < n_u; u++)
				NAME(dev_mx_get_sums)
			(lane, dev_mx_readable(task, block + u * step), acc[u]);
			continue;
		}
		DEV_UNROLL
		for (uint32_t u = 0; u < n_u; u++) {
			uint32_t from = dev_mx_readable(task, block + u * step);
			uint64_t at = NAME(dev_mx_at)(from) / SIZE;

#if SIZE == 4
			codes[u][0] = *DEV_AS_GLOBAL(const uint32_t, lane + at);
#else
			struct dev_vec8 both = dev_load8(lane + at);

			codes[u][0] = both.w[0];
			codes[u][1] = both.w[1];
#endif
			byte[u] = *DEV_AS_GLOBAL(const uint8_t, lane + task->scale_at + from);
		}
		DEV_UNROLL
		for (uint32_t u = 0; u < n_u; u++) {
			float v[LANES];

			DEV_UNROLL
			for (uint32_t k = 0; k < LANES / 4; k++)
				dev_mx_values(codes[u][k], byte[u], v + k * 4);
			wild[u] |= byte[u] >= DEV_MX_WILD;
			NAME(dev_mx_add)(acc[u], v, wild[u]);
		}
	}
	DEV_UNROLL
	for (uint32_t u = 0; u < n_u; u++)
		NAME(dev_mx_leave)(a, acc[u], task, shared, block + u * step, whole);
}

/* A whole task. Threads that run in step go on as long as one of them has something to do. */
#define ALL_BLOCKS(STEP)                                                                           \
	do {                                                                                       \
		uint32_t n = (uint32_t)((task->count + RX_MX_BLOCK - 1) / RX_MX_BLOCK);            \
		uint32_t n_whole = dev_mx_n_whole(run.a, task);                                    \
		uint32_t step = dev_n_threads() / WIDTH;                                           \
		uint32_t at = dev_thread() / DEV_STEP * (DEV_STEP / WIDTH);                        \
		uint32_t own = dev_thread() % DEV_STEP / WIDTH;                                    \
                                                                                                   \
		DEV_ROLL                                                                           \
		for (; at + step * (UNROLL - 1) + DEV_STEP / WIDTH <= n_whole;                     \
			at += step * UNROLL)                                                       \
			NAME(STEP)(run.a, task, shared, at + own, step, UNROLL, true);             \
		DEV_ROLL                                                                           \
		for (; at < n; at += step)                                                         \
			NAME(STEP)(run.a, task, shared, at + own, step, 1, false);                 \
	} while (0)

DEV_DENSE_KERNEL(NAME(rx_mx), struct rx_dev_args, DENSE)
{
	DEV_SHARED(shared);
	DEV_SHARED_MORE(struct dev_mx_flow, flow);
	const struct dev_mx_task *task = &flow->task;
	struct dev_run run;

	dev_mx_counts_begin(shared);
	run = dev_begin(DEV_ARGS(struct rx_dev_args), shared, DTYPE);
	if (dev_mx_begin(&run, flow)) {
		do {
			DEV_ROLL
			while (dev_mx_next_task(&run, flow)) {
				uint32_t phase = dev_uniform(flow->phase);

				if (phase == DEV_MX_DIRECT)
					ALL_BLOCKS(dev_mx_fold);
				else if (phase == DEV_MX_PUT)
					ALL_BLOCKS(dev_mx_encode);
				else
					ALL_BLOCKS(dev_mx_decode);
			}
		} while (dev_mx_next_phase(&run, flow));
	}
	dev_mx_report(&run);
	dev_end(&run);
}

#undef ALL_BLOCKS
#undef WIDTH
#undef LANES
#undef NAME
#undef PASTE
#undef PASTE_
#undef DENSE
#undef QUICK
#undef UNROLL
#undef ABOVE
#undef SIZE
#undef DTYPE
#undef T
