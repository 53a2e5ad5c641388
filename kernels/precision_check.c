/* SPDX-License-Identifier: MIT */
#include "precision_check.h"

#include "precision.h"
#include "host/convert.h"

#include <string.h>

/* Finaliser of splitmix64 (Steele, Lea, Flood 2014). */
static uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

void rx_precision_check_init(struct rx_precision_check *check, uint32_t every, uint64_t number)
{
	*check = (struct rx_precision_check){
		.every = every,
		.phase = every > 0 ? (uint32_t)(mix(number) % every) : 0,
	};
}

uint64_t rx_precision_check_next(const struct rx_precision_check *check, uint64_t block)
{
	uint64_t at = 0;

	if (check->every == 0)
		return UINT64_MAX;
	at = block % check->every;
	return block + (check->phase + check->every - at) % check->every;
}

static bool is_finite(double value)
{
	return value - value == 0;
}

void rx_precision_check_add(
	struct rx_precision_check *check, const double *exact, const float *got, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		double error = (double)got[i] - exact[i];

		if (!is_finite(error) || !is_finite(exact[i]))
			continue;
		check->error2 += error * error;
		check->exact2 += exact[i] * exact[i];
	}
	check->n_blocks++;
}

/* Newton's method, from above, for a value from 1 on: libm would be one more library. */
static double root(double value)
{
	double x = value;
	double next = (x + 1) / 2;

	while (next < x) {
		x = next;
		next = (x + value / x) / 2;
	}
	return x;
}

uint64_t rx_precision_check_ppm(const struct rx_precision_check *check)
{
	double ratio = 0;

	if (check->error2 == 0)
		return 0;
	ratio = check->error2 / check->exact2 * 1e12;
	/* Also where nothing exact was left to compare with. */
	if (!(ratio < 1e18))
		return 1000000000;
	return ratio < 1 ? 1 : (uint64_t)root(ratio);
}

uint64_t rx_precision_account(struct rx_precision_counts *sum, const struct rx_precision_work *work)
{
	uint64_t ppm = rx_precision_check_ppm(&work->check);
	const struct rx_precision_counts counts = {
		.n_ops = 1,
		.exact_bytes = work->exact_bytes,
		.wire_bytes = work->wire_bytes,
		.n_blocks = work->stats.n_blocks,
		.n_saturated = work->stats.n_saturated,
		.n_flushed = work->stats.n_flushed,
		.n_special = work->stats.n_special,
		.n_sampled = work->check.n_blocks,
		.worst_ppm = ppm,
	};

	rx_precision_add(sum, &counts);
	if (work->check.n_blocks > 0)
		sum->error_ppm = ppm;
	return ppm;
}

/* What @from has for @to. */
static uint64_t sent_count(const struct rx_precision_message *message, uint32_t from, uint32_t to)
{
	switch (message->coll) {
	case RX_ALL_GATHER_V:
		return message->counts[0].recv_counts[from];
	case RX_REDUCE_SCATTER_V:
		return message->counts[0].send_counts[to];
	case RX_ALL_TO_ALL_V:
		return message->counts[from].send_counts[to];
	default:
		return message->count;
	}
}

void rx_precision_traffic(
	struct rx_precision_work *work, const struct rx_precision_message *message)
{
	uint64_t n_others = message->n_ranks - 1;
	uint64_t n = message->count;
	uint32_t size = rx_dtype_size(message->dtype);

	if (message->coll == RX_ALL_REDUCE) {
		work->exact_bytes += 2 * n_others * n * size;
		work->wire_bytes += n_others * rx_mx_bytes(n);
		work->wire_bytes +=
			n_others * (message->bf16 ? n * sizeof(uint16_t) : rx_mx_bytes(n));
		return;
	}
	for (uint32_t from = 0; from < message->n_ranks; from++) {
		for (uint32_t to = 0; to < message->n_ranks; to++) {
			n = from == to ? 0 : sent_count(message, from, to);
			work->exact_bytes += n * size;
			work->wire_bytes += rx_mx_bytes(n);
		}
	}
}

void rx_precision_widen(float *dst, const void *src, uint32_t dtype, uint32_t n)
{
	const uint8_t *at = src;
	uint16_t code = 0;

	if (dtype == RX_FLOAT32) {
		memcpy(dst, src, n * sizeof(float));
		return;
	}
	for (uint32_t i = 0; i < n; i++) {
		memcpy(&code, at + i * sizeof(code), sizeof(code));
		dst[i] = dtype == RX_BFLOAT16 ? rx_widen_bf16(code) : rx_widen_f16(code);
	}
}
