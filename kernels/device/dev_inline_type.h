/* SPDX-License-Identifier: MIT */
/*
 * The inline kernel of one data type; included once for each (dev_types.h says
 * with what). Values enter, are combined and leave as in dev_fold.h.
 */
#define PASTE_(a, b) a##b
#define PASTE(a, b)  PASTE_(a, b)
#define NAME(name)   PASTE(PASTE(name, _), T)
#define LANES        (16 / SIZE)

DEV_FN ACC NAME(dev_inl_factor)(const struct dev_inl_fold *fold, uint32_t r, uint32_t op)
{
	const struct dev_inl *run = fold->run;

	if (op != RX_PREMUL_SUM)
		return (ACC)0;
	if (r == fold->me)
		return NAME(dev_factor)(run->a->scalar[r]);
	return NAME(dev_factor)(dev_load_word64(&dev_inl_mark_of(run, fold->me, r)->scalar));
}

/* Vector @i of all inputs, in the order of ranks. False to give up. */
DEV_FN bool NAME(dev_inl_vector)(const struct dev_inl_fold *fold, uint32_t i, uint32_t op, ACC *acc)
{
	struct dev_vec16 own = dev_inl_load(fold->own + i * 16, fold->bytes - i * 16);
	uint32_t n = fold->run->a->n_ranks;

	DEV_ROLL
	for (uint32_t first = 0; first < n; first += DEV_INL_BATCH) {
		struct dev_vec16 raw[DEV_INL_BATCH] = {{{0}}};

		if (!dev_inl_inputs(fold, first, i, own, raw))
			return false;
		DEV_UNROLL
		for (uint32_t k = 0; k < DEV_INL_BATCH; k++) {
			ACC factor;
			ACC v[LANES];

			if (first + k >= n)
				continue;
			factor = NAME(dev_inl_factor)(fold, first + k, op);
			NAME(dev_unpack)(raw[k], v);
			DEV_UNROLL
			for (uint32_t l = 0; l < LANES; l++) {
				ACC in = NAME(dev_enter)(v[l], factor, op);

				acc[l] = first + k == 0 ? in : NAME(dev_combine)(acc[l], in, op);
			}
		}
	}
	DEV_UNROLL
	for (uint32_t l = 0; l < LANES; l++)
		acc[l] = NAME(dev_leave)(fold->average, acc[l]);
	return true;
}

DEV_FN void NAME(dev_inl_fold)(const struct dev_inl_fold *fold, uint32_t op)
{
	for (uint32_t i = dev_thread(); i * 16 < fold->bytes; i += dev_n_threads()) {
		ACC acc[LANES] = {0};

		if (!NAME(dev_inl_vector)(fold, i, op, acc))
			return;
		dev_inl_result(fold, i, NAME(dev_pack)(acc));
	}
}

/* Sums and averages have a loop of their own; the rest shares one, and decides for each value. */
DEV_FN void NAME(dev_inl_fold_op)(const struct dev_inl_fold *fold)
{
	uint32_t op = fold->run->a->op;

	if (op == RX_SUM || op == RX_AVG)
		NAME(dev_inl_fold)(fold, RX_SUM);
	else
		NAME(dev_inl_fold)(fold, op);
}

DEV_KERNEL(NAME(rx_inl), struct rx_inl_args)
{
	DEV_SHARED_MORE(struct dev_inl_shared, shared);
	struct dev_inl run = dev_inl_begin(DEV_ARGS(struct rx_inl_args), shared, DTYPE);

	if (run.ok) {
		do {
			if (!dev_inl_fold_round(&run))
				break;
			for (uint32_t left = run.a->local; left; left &= left - 1) {
				struct dev_inl_fold fold =
					dev_inl_fold_of(&run, dev_lowest_bit(left));

				NAME(dev_inl_fold_op)(&fold);
			}
		} while (dev_inl_results_round(&run) && dev_inl_more(&run));
	}
	dev_inl_end(&run);
}

#undef LANES
#undef NAME
#undef PASTE
#undef PASTE_
