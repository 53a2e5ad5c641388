/* SPDX-License-Identifier: MIT */
#include "tune_sweep.h"

#include "tune_file.h"
#include "../../kernels/coll_plan.h"
#include "../../shm/rx_clock.h"
#include "../../shm/rx_fabric_abi.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SETTINGS_MAX 3u
#define ROUNDS_MIN   3u
#define ROUNDS_MAX   15u
#define NOISE_MIN    0.02

/* Times of settings that took turns. */
struct samples {
	uint32_t n_settings;
	uint32_t n_sizes;
	uint32_t n_rounds;
	bool too_few; /* rounds, for lack of time */
	uint64_t bytes[TUNE_SIZES_MAX];
	double us[SETTINGS_MAX][TUNE_SIZES_MAX][ROUNDS_MAX];
};

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return (x > y) - (x < y);
}

double tune_median(double *values, uint32_t n)
{
	qsort(values, n, sizeof(*values), by_value);
	return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

static double median_of(const struct samples *samples, uint32_t setting, uint32_t size)
{
	double sorted[ROUNDS_MAX];

	memcpy(sorted, samples->us[setting][size], sizeof(sorted));
	return tune_median(sorted, samples->n_rounds);
}

/* Half of the distance between the quartiles, as a part of the median. */
static double spread_of(const struct samples *samples, uint32_t setting, uint32_t size)
{
	double sorted[ROUNDS_MAX];
	uint32_t n = samples->n_rounds;

	memcpy(sorted, samples->us[setting][size], sizeof(sorted));
	qsort(sorted, n, sizeof(sorted[0]), by_value);
	return (sorted[n - 1 - n / 4] - sorted[n / 4]) / (2 * sorted[n / 2]);
}

static bool take_times(struct samples *samples, uint32_t setting, const struct tune_times *times)
{
	if (samples->n_rounds == 0 && setting == 0) {
		samples->n_sizes = times->n;
		memcpy(samples->bytes, times->bytes, sizeof(samples->bytes));
	}
	if (times->n != samples->n_sizes)
		return false;
	for (uint32_t i = 0; i < times->n; i++)
		samples->us[setting][i][samples->n_rounds] = times->us[i];
	return true;
}

struct turn {
	struct tune_job *job;
	uint32_t step;
	double from; /* of the step, for the progress */
	double to;
	const char *name;
};

/* Rounds of all settings, for about @budget_ns. */
static enum ctl_exit take_turns(const struct turn *turn, struct tune_case *c,
	const struct rx_tuning_entry *settings, uint32_t n_settings, uint64_t budget_ns,
	struct samples *samples)
{
	uint64_t start_ns = rx_now_ns();
	struct tune_times times;

	*samples = (struct samples){.n_settings = n_settings};
	while (samples->n_rounds < ROUNDS_MAX) {
		double spent = (double)(rx_now_ns() - start_ns) / (double)budget_ns;
		double rounds = (double)samples->n_rounds / ROUNDS_MIN;
		double part = fmin(1, rounds < 1 ? fmin(rounds, spent) : spent);

		turn->job->progress(turn->job->ctx, turn->step,
			turn->from + part * (turn->to - turn->from), turn->name);
		if (samples->n_rounds >= ROUNDS_MIN && spent >= 1)
			break;
		for (uint32_t s = 0; s < n_settings; s++) {
			enum ctl_exit status = CTL_EXIT_OK;

			c->entry = settings[s];
			status = tune_measure(turn->job->run, c, &times);
			if (status != CTL_EXIT_OK)
				return status;
			if (times.n == 0) {
				samples->too_few = samples->n_rounds < ROUNDS_MIN;
				return CTL_EXIT_OK;
			}
			if (!take_times(samples, s, &times))
				return CTL_EXIT_FAILED;
		}
		samples->n_rounds++;
	}
	return CTL_EXIT_OK;
}

uint32_t tune_crossing(const double *first_us, const double *second_us, uint32_t n, uint32_t now)
{
	double cost = 0;
	double costs[TUNE_SIZES_MAX + 1];
	uint32_t best = now;

	for (uint32_t i = 0; i < n; i++)
		cost += log(second_us[i]);
	costs[0] = cost;
	for (uint32_t k = 1; k <= n; k++) {
		cost += log(first_us[k - 1]) - log(second_us[k - 1]);
		costs[k] = cost;
	}
	for (uint32_t k = 0; k <= n; k++)
		if (costs[k] < costs[best])
			best = k;
	return best;
}

/* ---- the steps ---- */

struct step {
	enum explain_threshold threshold;
	bool registered;
	uint64_t min_bytes;
	uint64_t max_bytes;
	uint32_t factor;
	uint32_t n_iterations;
	bool single_copy;
	bool is_max; /* what is up to the threshold goes to the first setting; else: below it */
	uint32_t n_settings;
	uint64_t settings[SETTINGS_MAX];
};

static const struct step steps[TUNE_STEPS] = {
	{EXPLAIN_FLAT_MAX, false, 128, RX_FLAT_BYTES, 2, 300, false, true, 2, {RX_FLAT_BYTES, 0}},
	{EXPLAIN_DIRECT_MIN, true, 128, 1u << 20, 2, 100, false, false, 2, {INT64_MAX, 0}},
	{EXPLAIN_CHUNK, false, 256u << 10, 4u << 20, 4, 20, false, false, 3, {16384, 32768, 65536}},
	{EXPLAIN_SINGLE_MIN, false, 4096, 4u << 20, 4, 50, true, false, 2, {UINT32_MAX, 0}},
	{EXPLAIN_STREAM_MIN, true, 1u << 20, 64u << 20, 4, 8, false, false, 2, {INT64_MAX, 0}},
};

/* Without time for them the largest messages would take it all. */
#define LARGE_BYTES     (4ull << 20)
#define LARGE_BUDGET_NS (2 * RX_NS_PER_SEC)

static struct step step_of(const struct tune_job *job, uint32_t index)
{
	struct step step = steps[index];

	if (step.threshold == EXPLAIN_FLAT_MAX && job->cores_shared)
		step.threshold = EXPLAIN_FLAT_MAX_SHARED;
	step.max_bytes = rx_min_u64(step.max_bytes, job->max_bytes);
	if (job->budget_ns / TUNE_STEPS < LARGE_BUDGET_NS)
		step.max_bytes = rx_min_u64(step.max_bytes, LARGE_BYTES);
	return step;
}

/* Number of sizes that a value of the threshold gives to the first setting. */
static uint32_t served_by_first(const struct step *step, const struct samples *s, uint64_t value)
{
	uint32_t n = 0;

	while (n < s->n_sizes && (step->is_max ? s->bytes[n] <= value : s->bytes[n] < value))
		n++;
	return n;
}

static uint64_t value_for(const struct step *step, const struct samples *s, uint32_t n)
{
	if (step->is_max)
		return n == s->n_sizes ? step->settings[0] : (n > 0 ? s->bytes[n - 1] : 0);
	return n == s->n_sizes ? step->settings[0] : (n > 0 ? s->bytes[n] : 0);
}

static uint64_t best_crossing(const struct step *step, const struct samples *s, uint64_t now)
{
	double first[TUNE_SIZES_MAX];
	double second[TUNE_SIZES_MAX];
	uint32_t n_now = served_by_first(step, s, now);
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->n_sizes; i++) {
		first[i] = median_of(s, 0, i);
		second[i] = median_of(s, 1, i);
	}
	n = tune_crossing(first, second, s->n_sizes, n_now);
	return n == n_now ? now : value_for(step, s, n);
}

static uint64_t best_setting(const struct step *step, const struct samples *s)
{
	double best_cost = INFINITY;
	uint32_t best = 0;

	for (uint32_t k = 0; k < s->n_settings; k++) {
		double cost = 0;

		for (uint32_t i = 0; i < s->n_sizes; i++)
			cost += log(median_of(s, k, i));
		if (cost < best_cost) {
			best_cost = cost;
			best = k;
		}
	}
	return step->settings[best];
}

/* Old against new: sizes for which both do the same say nothing. */
static void judge(
	const struct step *step, const struct samples *s, bool all_sizes, struct tune_gain *gain)
{
	double sum = 0;
	double noise = 0;
	double best = 0;
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->n_sizes; i++) {
		double old_us = median_of(s, 0, i);
		double new_us = median_of(s, 1, i);
		bool differs = (served_by_first(step, s, gain->old_value) > i) !=
			       (served_by_first(step, s, gain->new_value) > i);

		if (!differs && !all_sizes)
			continue;
		n++;
		sum += log(old_us / new_us);
		noise += spread_of(s, 0, i) + spread_of(s, 1, i);
		if (old_us / new_us > best) {
			best = old_us / new_us;
			gain->best_bytes = s->bytes[i];
			gain->best_old_us = old_us;
			gain->best_new_us = new_us;
		}
	}
	if (n == 0)
		return;
	gain->ratio = exp(sum / n);
	gain->noise = fmax(NOISE_MIN, noise / n);
	gain->kept = gain->ratio > 1 + gain->noise;
}

static enum ctl_exit confirm(struct turn *turn, const struct step *step, struct tune_case *c,
	uint64_t budget_ns, struct tune_gain *gain)
{
	struct rx_tuning_entry settings[2] = {turn->job->entry, turn->job->entry};
	struct samples samples;
	enum ctl_exit status = CTL_EXIT_OK;

	turn->from = turn->to;
	turn->to = 1;
	tune_file_set(&settings[1], step->threshold, gain->new_value);
	status = take_turns(turn, c, settings, 2, budget_ns, &samples);
	if (status != CTL_EXIT_OK)
		return status;
	gain->no_time = samples.too_few;
	if (samples.too_few)
		return CTL_EXIT_OK;
	judge(step, &samples, step->threshold == EXPLAIN_CHUNK, gain);
	if (gain->kept)
		turn->job->entry = settings[1];
	return CTL_EXIT_OK;
}

/* Some collectives are never served by single copy. */
static bool may_be_single(uint32_t coll, uint32_t n_ranks)
{
	const struct rx_plan_query query = {
		.coll = coll, .dtype = RX_INT8, .n_ranks = n_ranks, .count = 1u << 20};

	return rx_plan_may_be_single(&query, rx_tuning_for(rx_tuning_default(), coll, n_ranks));
}

static enum ctl_exit run_step(struct tune_job *job, uint32_t index, struct tune_gain *gain)
{
	struct step step = step_of(job, index);
	struct turn turn = {job, index, 0, 0.6, explain_threshold_name(step.threshold)};
	struct rx_tuning_entry settings[SETTINGS_MAX];
	struct samples samples;
	uint64_t budget_ns = job->budget_ns / TUNE_STEPS;
	struct tune_case c = {
		.end_ns = job->end_ns,
		.single_copy = step.single_copy,
		.coll = job->coll,
		.n_ranks = job->n_ranks,
		.registered = step.registered,
		.min_bytes = step.min_bytes,
		.max_bytes = step.max_bytes,
		.factor = step.factor,
		.n_iterations = step.n_iterations,
	};
	enum ctl_exit status = CTL_EXIT_OK;

	*gain = (struct tune_gain){.threshold = step.threshold};
	gain->old_value = explain_value(&job->entry, step.threshold);
	gain->new_value = gain->old_value;
	if (step.max_bytes < 2 * step.min_bytes ||
		(step.single_copy && !may_be_single(job->coll, job->n_ranks)))
		return CTL_EXIT_OK;
	for (uint32_t s = 0; s < step.n_settings; s++) {
		settings[s] = job->entry;
		tune_file_set(&settings[s], step.threshold, step.settings[s]);
	}
	status = take_turns(&turn, &c, settings, step.n_settings, budget_ns * 6 / 10, &samples);
	if (status != CTL_EXIT_OK)
		return status;
	gain->measured = true;
	gain->no_time = samples.too_few;
	if (samples.too_few)
		return CTL_EXIT_OK;
	gain->new_value = step.threshold == EXPLAIN_CHUNK
				  ? best_setting(&step, &samples)
				  : best_crossing(&step, &samples, gain->old_value);
	if (gain->new_value == gain->old_value)
		return CTL_EXIT_OK;
	return confirm(&turn, &step, &c, budget_ns * 4 / 10, gain);
}

enum ctl_exit tune_job_run(struct tune_job *job, struct tune_gain gains[TUNE_STEPS])
{
	enum ctl_exit status = CTL_EXIT_OK;

	for (uint32_t i = 0; status == CTL_EXIT_OK && i < TUNE_STEPS; i++)
		status = run_step(job, i, &gains[i]);
	return status;
}
