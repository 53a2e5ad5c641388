/* SPDX-License-Identifier: MIT */
/*
 * The folds of one data type and its kernel; included once for each type, with what dev_types.h
 * says.
 *
 * What the host does with vectors of the CPU (kernels/host/fold_type.h) is done here with 16 bytes
 * per thread, and gives the same bits.
 */
#define PASTE_(a, b) a##b
#define PASTE(a, b)  PASTE_(a, b)
#define NAME(name)   PASTE(PASTE(name, _), T)
#define LANES        (16 / SIZE)

/* By what values of input @r are multiplied. */
DEV_FN ACC NAME(dev_factor_of)(const struct dev_fold *fold, uint32_t r, uint32_t op)
{
	return op == RX_PREMUL_SUM ? NAME(dev_factor)(fold->a->scalar[r]) : (ACC)0;
}

/* One element of all inputs, for what does not fill vectors. */
DEV_FN void NAME(dev_fold_one)(const struct dev_fold *fold, uint64_t i, uint32_t op)
{
	uint32_t n = fold->a->n_ranks;
	uint64_t at = i * SIZE;
	ACC acc = (ACC)0;

	for (uint32_t first = 0; first < n; first += DEV_FOLD_INPUTS) {
		ACC v[DEV_FOLD_INPUTS] = {0};

		DEV_UNROLL
		for (uint32_t k = 0; k < DEV_FOLD_INPUTS; k++) {
			if (first + k < n)
				v[k] = NAME(dev_load)(dev_pointer(fold->src, first + k) + at);
		}
		DEV_UNROLL
		for (uint32_t k = 0; k < DEV_FOLD_INPUTS; k++) {
			uint32_t r = first + k;
			ACC factor = NAME(dev_factor_of)(fold, r < n ? r : 0, op);
			ACC in = NAME(dev_enter)(v[k], factor, op);

			if (r < n)
				acc = r == 0 ? in : NAME(dev_combine)(acc, in, op);
		}
	}
	acc = NAME(dev_leave)(dev_average_of(fold->a->op, fold->a->n_avg), acc);
	for (uint64_t left = fold->outputs; left; left &= left - 1)
		NAME(dev_store)(dev_pointer(fold->dst, dev_lowest_bit(left)) + at, acc);
}

DEV_FN void NAME(dev_fold_in)(ACC *acc, struct dev_vec16 raw, ACC factor, bool first, uint32_t op)
{
	ACC v[LANES];

	NAME(dev_unpack)(raw, v);
	DEV_UNROLL
	for (uint32_t k = 0; k < LANES; k++) {
		ACC in = NAME(dev_enter)(v[k], factor, op);

		acc[k] = first ? in : NAME(dev_combine)(acc[k], in, op);
	}
}

DEV_FN void NAME(dev_fold_out)(const struct dev_fold *fold, uint64_t at, ACC *acc)
{
	struct dev_vec16 out;

	DEV_UNROLL
	for (uint32_t k = 0; k < LANES; k++)
		acc[k] = NAME(dev_leave)(dev_average_of(fold->a->op, fold->a->n_avg), acc[k]);
	out = NAME(dev_pack)(acc);
	for (uint64_t left = fold->outputs; left; left &= left - 1)
		dev_store16(dev_pointer(fold->dst, dev_lowest_bit(left)) + at, out);
}

/*
 * UNROLL vectors of all inputs, @step bytes apart; all are read before any output is written, so
 * that an output may be an input.
 */
DEV_FN void NAME(dev_fold_many)(
	const struct dev_fold *fold, uint64_t at, uint64_t step, uint32_t op)
{
	ACC acc[UNROLL][LANES] = {{0}};

	for (uint32_t r = 0; r < fold->a->n_ranks; r++) {
		const uint8_t *from = dev_pointer(fold->src, r) + at;
		ACC factor = NAME(dev_factor_of)(fold, r, op);
		struct dev_vec16 raw[UNROLL];

		DEV_UNROLL
		for (uint32_t u = 0; u < UNROLL; u++)
			raw[u] = dev_load16(from + u * step);
		DEV_UNROLL
		for (uint32_t u = 0; u < UNROLL; u++)
			NAME(dev_fold_in)(acc[u], raw[u], factor, r == 0, op);
	}
	DEV_UNROLL
	for (uint32_t u = 0; u < UNROLL; u++)
		NAME(dev_fold_out)(fold, at + u * step, acc[u]);
}

/* One vector, of several inputs at a time, so that a short message waits for memory less often. */
DEV_FN void NAME(dev_fold_few)(const struct dev_fold *fold, uint64_t at, uint32_t op)
{
	uint32_t n = fold->a->n_ranks;
	ACC acc[LANES] = {0};

	for (uint32_t first = 0; first < n; first += DEV_FOLD_INPUTS) {
		struct dev_vec16 raw[DEV_FOLD_INPUTS] = {{{0}}};

		DEV_UNROLL
		for (uint32_t i = 0; i < DEV_FOLD_INPUTS; i++) {
			if (first + i < n)
				raw[i] = dev_load16(dev_pointer(fold->src, first + i) + at);
		}
		DEV_UNROLL
		for (uint32_t i = 0; i < DEV_FOLD_INPUTS; i++) {
			uint32_t r = first + i;
			ACC factor = NAME(dev_factor_of)(fold, r < n ? r : 0, op);

			if (r < n)
				NAME(dev_fold_in)(acc, raw[i], factor, r == 0, op);
		}
	}
	NAME(dev_fold_out)(fold, at, acc);
}

/*
 * Elements [0, count) by all threads of the block: vectors where all pointers are equally far from
 * a boundary of 16 bytes, and one by one what is left in front and behind, or everything.
 */
DEV_FN void NAME(dev_fold)(const struct dev_fold *fold, uint32_t op)
{
	const uint8_t *base = dev_pointer(fold->src, 0);
	uint64_t differ = (dev_differ(fold->src, dev_all_ranks(fold->a), base) |
				  dev_differ(fold->dst, fold->outputs, base)) &
			  15;
	uint64_t head = dev_min(((0 - (uint64_t)(uintptr_t)base) & 15) / SIZE, fold->count);
	uint64_t n = differ ? 0 : (fold->count - head) / LANES;
	uint64_t n_single = fold->count - n * LANES;
	uint64_t step = (uint64_t)dev_n_threads() * 16;
	uint64_t end = head * SIZE + n * 16;
	uint64_t at = head * SIZE + (uint64_t)dev_thread() * 16;

	for (; UNROLL > 1 && at + step * (UNROLL - 1) < end; at += step * UNROLL)
		NAME(dev_fold_many)(fold, at, step, op);
	for (; at < end; at += step)
		NAME(dev_fold_few)(fold, at, op);
	for (uint64_t i = dev_thread(); i < n_single; i += dev_n_threads())
		NAME(dev_fold_one)(fold, n == 0 || i < head ? i : i + n * LANES, op);
}

/* Sums and averages have loops of their own; the rest shares one, and decides for each value. */
DEV_FN void NAME(dev_fold_op)(const struct dev_fold *fold)
{
	uint32_t op = fold->a->op;

	if (op == RX_SUM || op == RX_AVG)
		NAME(dev_fold)(fold, RX_SUM);
	else
		NAME(dev_fold)(fold, op);
}

DEV_KERNEL(NAME(rx_reduce), struct rx_dev_args)
{
	DEV_SHARED(shared);
	struct dev_run run = dev_begin(DEV_ARGS(struct rx_dev_args), shared, DTYPE);
	struct dev_reduce reduce;

	if (dev_reduce_begin(&run, &reduce)) {
		for (; dev_reduce_round(&run, &reduce); reduce.round++) {
			for (uint32_t s = 0; s < dev_n_segments(dev_fresh(run.a)); s++) {
				struct dev_fold fold = dev_reduce_next(&run, &reduce, s);

				if (fold.outputs)
					NAME(dev_fold_op)(&fold);
			}
		}
		dev_reduce_gather(&run);
	}
	dev_end(&run);
}

#undef LANES
#undef NAME
#undef PASTE
#undef PASTE_
