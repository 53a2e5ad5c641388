/* SPDX-License-Identifier: MIT */
#include "error.h"

#include "colls.h"
#include "../../kernels/precision_check.h"

#include <math.h>

bool perf_error_known(const struct perf_coll *coll, uint32_t dtype, uint32_t op)
{
	bool type = dtype == RX_FLOAT32 || dtype == RX_BFLOAT16 || dtype == RX_FLOAT16;

	return coll->expect && type &&
	       (!rx_coll_reduces(coll->coll) || op == RX_SUM || op == RX_AVG);
}

/* Elements [first, first + n) of the result in fp64. */
static void reference(struct perf_fold *fold, uint64_t first, uint64_t n, double *out)
{
	const struct perf_layout *layout = fold->layout;
	uint32_t dtype = fold->data.dtype;
	uint8_t elements[PERF_FOLD_BLOCK * sizeof(float)];
	float values[PERF_FOLD_BLOCK];
	bool in_low_precision = fold->in_low_precision;

	if (!rx_coll_reduces(fold->coll->coll)) {
		fold->in_low_precision = false;
		fold->coll->expect(fold, first, n, elements);
		fold->in_low_precision = in_low_precision;
		rx_precision_widen(values, elements, dtype, (uint32_t)n);
		for (uint64_t i = 0; i < n; i++)
			out[i] = (double)values[i];
		return;
	}
	if (fold->coll->shape != PERF_WHOLE)
		first += layout->displs[layout->rank];
	for (uint32_t r = 0; r < layout->n_ranks; r++) {
		perf_data_fill(&fold->data, r, first, n, elements);
		rx_precision_widen(values, elements, dtype, (uint32_t)n);
		for (uint64_t i = 0; i < n; i++)
			out[i] = (r > 0 ? out[i] : 0) + (double)values[i];
	}
	for (uint64_t i = 0; fold->op == RX_AVG && i < n; i++)
		out[i] /= layout->n_ranks;
}

void perf_error_add(struct perf_error *error, struct perf_fold *fold, const void *result)
{
	uint32_t size = rx_dtype_size(fold->data.dtype);
	uint64_t count = fold->layout->recv;
	double exact[PERF_FOLD_BLOCK];
	float got[PERF_FOLD_BLOCK];
	uint64_t n = 0;

	for (uint64_t first = 0; first < count; first += n) {
		n = rx_min_u64(PERF_FOLD_BLOCK, count - first);
		reference(fold, first, n, exact);
		rx_precision_widen(
			got, (const uint8_t *)result + first * size, fold->data.dtype, (uint32_t)n);
		for (uint64_t i = 0; i < n; i++) {
			double difference = fabs((double)got[i] - exact[i]);

			error->error2 += difference * difference;
			error->exact2 += exact[i] * exact[i];
			error->worst = difference > error->worst ? difference : error->worst;
		}
	}
}

double perf_error_l2(const struct perf_error *error)
{
	return error->exact2 > 0 ? sqrt(error->error2 / error->exact2) : 0;
}
