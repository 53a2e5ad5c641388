/* SPDX-License-Identifier: MIT */
#include "precision.h"

#include "err.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX         "RCCL_LOW_PRECISION_"
#define SAMPLE_DEFAULT 1024u

#define SAME(public, agreed) ((int)(public) == (int)(agreed))
static_assert(SAME(RCCLX_LOW_PRECISION_ALL_REDUCE, RX_PRECISION_ALL_REDUCE) &&
		      SAME(RCCLX_LOW_PRECISION_ALL_GATHER, RX_PRECISION_ALL_GATHER) &&
		      SAME(RCCLX_LOW_PRECISION_REDUCE_SCATTER, RX_PRECISION_REDUCE_SCATTER) &&
		      SAME(RCCLX_LOW_PRECISION_ALL_TO_ALL, RX_PRECISION_ALL_TO_ALL) &&
		      SAME(RCCLX_LOW_PRECISION_GATHER_BF16, RX_PRECISION_GATHER_BF16) &&
		      SAME(RCCLX_LOW_PRECISION_INT8, RX_PRECISION_AS_INT8),
	"the same bits");

static rcclx_result bad(const char *name, const char *text, const char *expected)
{
	return err_set(RCCLX_ERR_INVALID, "the environment variable %s is \"%.40s\", expected %s",
		name, text, expected);
}

/* Sets or clears @bits of *flags_p; as it is when the variable is not set. */
static rcclx_result take_switch(const char *name, uint32_t bits, uint32_t *flags_p)
{
	const char *text = secure_getenv(name);

	if (!text || !text[0])
		return RCCLX_OK;
	if (strcmp(text, "1") == 0)
		*flags_p |= bits;
	else if (strcmp(text, "0") == 0)
		*flags_p &= ~bits;
	else
		return bad(name, text, "0 or 1");
	return RCCLX_OK;
}

/* As it is when the variable is not set. */
static rcclx_result take_number(const char *name, uint64_t max, uint64_t *number_p)
{
	const char *text = secure_getenv(name);
	unsigned long long number = 0;
	char *end = NULL;

	if (!text || !text[0])
		return RCCLX_OK;
	errno = 0;
	number = strtoull(text, &end, 10);
	if (errno != 0 || *end || text[0] < '0' || text[0] > '9' || number > max)
		return bad(name, text, "a whole number that is not too large");
	*number_p = number;
	return RCCLX_OK;
}

static rcclx_result take_format(uint32_t *flags_p)
{
	const char *text = secure_getenv(PREFIX "FORMAT");

	if (!text || !text[0] || strcmp(text, "fp8") == 0)
		return RCCLX_OK;
	if (strcmp(text, "int8") != 0)
		return bad(PREFIX "FORMAT", text, "fp8 or int8");
	*flags_p |= RX_PRECISION_AS_INT8;
	return RCCLX_OK;
}

/* The collectives' own switches count more than the one for all. */
static rcclx_result switches_of_environment(uint32_t *flags_p)
{
	static const struct {
		const char *name;
		uint32_t bits;
	} switches[] = {
		{PREFIX "ENABLE", RCCLX_LOW_PRECISION_ALL},
		{PREFIX "ENABLE_ALLREDUCE", RX_PRECISION_ALL_REDUCE},
		{PREFIX "ENABLE_ALLGATHER", RX_PRECISION_ALL_GATHER},
		{PREFIX "ENABLE_REDUCESCATTER", RX_PRECISION_REDUCE_SCATTER},
		{PREFIX "ENABLE_ALLTOALL", RX_PRECISION_ALL_TO_ALL},
		{PREFIX "GATHER_BF16", RX_PRECISION_GATHER_BF16},
	};
	rcclx_result r = RCCLX_OK;

	for (size_t i = 0; r == RCCLX_OK && i < RX_ARRAY_SIZE(switches); i++)
		r = take_switch(switches[i].name, switches[i].bits, flags_p);
	return r == RCCLX_OK ? take_format(flags_p) : r;
}

static rcclx_result flags_of(const struct rcclx_comm_config *config, uint32_t *flags_p)
{
	uint32_t flags = config->low_precision;

	if (flags & ~(uint32_t)(RX_PRECISION_FLAGS | RCCLX_LOW_PRECISION_NONE))
		return err_set(RCCLX_ERR_INVALID,
			"rcclx_comm_create: low_precision is %u, expected a sum of "
			"RCCLX_LOW_PRECISION_*",
			flags);
	if ((flags & RCCLX_LOW_PRECISION_NONE) && flags != RCCLX_LOW_PRECISION_NONE)
		return err_set(RCCLX_ERR_INVALID,
			"rcclx_comm_create: low_precision is RCCLX_LOW_PRECISION_NONE and something "
			"else (%u)",
			flags);
	if (flags == 0)
		return switches_of_environment(flags_p);
	*flags_p = flags & RX_PRECISION_FLAGS;
	return RCCLX_OK;
}

/* Of config, else of the environment, else *number_p. */
static rcclx_result number_of(
	uint64_t configured, const char *name, uint64_t max, uint64_t *number_p)
{
	if (configured == 0)
		return take_number(name, max, number_p);
	*number_p = configured;
	return RCCLX_OK;
}

rcclx_result precision_settings(
	const struct rcclx_comm_config *config, struct rx_precision *precision_p)
{
	uint64_t budget = 0;
	uint64_t sample = 0;
	struct rx_precision precision = {0};
	rcclx_result r = flags_of(config, &precision.flags);

	if (r == RCCLX_OK)
		r = number_of(config->low_precision_min, PREFIX "MIN_BYTES", UINT64_MAX,
			&precision.min_bytes);
	if (r == RCCLX_OK)
		r = number_of(
			config->low_precision_budget_ppm, PREFIX "BUDGET_PPM", UINT32_MAX, &budget);
	/* A budget can only be kept where something is checked. */
	sample = budget > 0 ? SAMPLE_DEFAULT : 0;
	if (r == RCCLX_OK)
		r = number_of(config->low_precision_sample, PREFIX "SAMPLE", UINT32_MAX, &sample);
	if (r == RCCLX_OK)
		r = take_number("RCCLX_LINK_RATE", INT64_MAX, &precision.link_rate);
	if (r != RCCLX_OK)
		return r;
	if (sample > 0 && sample < RX_PRECISION_SAMPLE_MIN)
		return err_set(RCCLX_ERR_INVALID,
			"low precision: one block in %llu is to be checked, expected 0 or from %u "
			"(low_precision_sample, " PREFIX "SAMPLE)",
			(unsigned long long)sample, RX_PRECISION_SAMPLE_MIN);
	if (budget > 0 && sample == 0)
		return err_set(RCCLX_ERR_INVALID,
			"low precision: there is an accuracy budget, but no block is to be checked "
			"(" PREFIX "SAMPLE is 0)");
	precision.budget_ppm = (uint32_t)budget;
	precision.sample_every = (uint32_t)sample;
	*precision_p = precision;
	return RCCLX_OK;
}
