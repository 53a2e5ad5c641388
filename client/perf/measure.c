/* SPDX-License-Identifier: MIT */
#include "measure.h"

#include "../../shm/rx_cleanup.h"
#include "../../shm/rx_clock.h"

#define BUDGET_US      80000.0
#define ITERATIONS_MIN 20u
#define ITERATIONS_MAX 20000u

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

struct perf_times perf_times_from(double *us, uint32_t n)
{
	struct perf_times times = {.n = n};
	double sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += us[i];
	qsort(us, n, sizeof(*us), by_value);
	times.mean_us = sum / n;
	times.p50_us = us[n / 2];
	times.p99_us = us[(uint64_t)n * 99 / 100];
	return times;
}

uint32_t perf_iterations(double us_per_call)
{
	double n = us_per_call > 0 ? BUDGET_US / us_per_call : ITERATIONS_MAX;

	if (n >= ITERATIONS_MAX)
		return ITERATIONS_MAX;
	return n <= ITERATIONS_MIN ? ITERATIONS_MIN : (uint32_t)n;
}

/* One byte of each line moves the line as well as all of them would. Atomics, because the compiler
 * must not see that nothing changes. */
static void touch_lines(uint8_t *buffer, uint64_t bytes, bool write)
{
	for (uint64_t i = 0; i < bytes; i += RX_CACHE_LINE) {
		uint8_t byte = __atomic_load_n(&buffer[i], __ATOMIC_RELAXED);

		if (write)
			__atomic_store_n(&buffer[i], byte, __ATOMIC_RELAXED);
	}
}

/* As a program leaves the caches: it has read the last result and made the next input. */
static rcclx_result touch(const struct perf_call *call)
{
	uint32_t size = rx_dtype_size(call->dtype);

	touch_lines(call->recv, call->layout->recv * size, false);
	touch_lines(call->send, call->layout->send * size, true);
	return rcclx_barrier(call->comm, NULL);
}

static rcclx_result time_calls(
	const struct perf_coll *coll, const struct perf_call *call, double *us, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		rcclx_result result = call->touch ? touch(call) : RCCLX_OK;
		uint64_t start_ns = rx_now_ns();

		if (result == RCCLX_OK)
			result = coll->run(call);
		us[i] = (double)(rx_now_ns() - start_ns) / 1e3;
		if (result != RCCLX_OK)
			return result;
	}
	return RCCLX_OK;
}

/* Each call's slowest rank. It also lines the ranks up. */
static rcclx_result take_slowest(const struct perf_call *call, double *us, uint32_t n)
{
	return rcclx_all_reduce(call->comm, us, us, n, RCCLX_FLOAT64, RCCLX_MAX, NULL);
}

static rcclx_result warm_up(const struct perf_coll *coll, const struct perf_call *call,
	uint32_t n_calls, double *typical_us_p)
{
	RX_FREE double *us = calloc(n_calls, sizeof(*us));
	rcclx_result result = RCCLX_OK;

	if (!us)
		return RCCLX_ERR_NO_MEMORY;
	result = time_calls(coll, call, us, n_calls);
	if (result == RCCLX_OK)
		result = take_slowest(call, us, n_calls);
	/* The same numbers on all ranks give the same estimate on all. */
	if (result == RCCLX_OK)
		*typical_us_p = perf_times_from(us, n_calls).p50_us;
	return result;
}

rcclx_result perf_measure(const struct perf_coll *coll, const struct perf_call *call,
	uint32_t n_warmup, uint32_t n_iterations, struct perf_times *times_p)
{
	RX_FREE double *us = NULL;
	double typical_us = 0;
	rcclx_result result = RCCLX_OK;

	if (n_warmup == 0 && n_iterations == 0)
		n_warmup = 1;
	if (n_warmup > 0)
		result = warm_up(coll, call, n_warmup, &typical_us);
	if (result != RCCLX_OK)
		return result;
	if (n_iterations == 0)
		n_iterations = perf_iterations(typical_us);
	us = calloc(n_iterations, sizeof(*us));
	if (!us)
		return RCCLX_ERR_NO_MEMORY;
	result = time_calls(coll, call, us, n_iterations);
	if (result == RCCLX_OK)
		result = take_slowest(call, us, n_iterations);
	if (result == RCCLX_OK)
		*times_p = perf_times_from(us, n_iterations);
	return result;
}
