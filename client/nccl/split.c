/* SPDX-License-Identifier: MIT */
/* Communicators out of others. */
#include "api.h"
#include "group.h"

#include <stdlib.h>

/* The child's options: the parent's where the caller gives none. */
static ncclResult_t read_options(const char *function, const struct ncclComm *parent,
	const ncclConfig_t *config, struct options *options_p)
{
	*options_p = config ? (struct options)OPTIONS_INIT : parent->options;
	return options_read(function, config, options_p);
}

static ncclResult_t finish(struct making *making, rcclx_result r, struct rcclx_comm *formed)
{
	struct ncclComm *child = making->child;

	if (r != RCCLX_OK)
		return comm_result(making->parent, r);
	if (!child)
		return ncclSuccess;
	child->device = making->parent->device;
	comm_formed(child, formed, connection_again(making->parent->connection));
	return ncclSuccess;
}

static struct rcclx_comm_config config_of(const struct ncclComm *child)
{
	struct rcclx_comm_config config = RCCLX_COMM_CONFIG_INIT;

	config.name = child && child->options.name[0] ? child->options.name : NULL;
	return config;
}

static ncclResult_t run_split(struct making *making)
{
	struct rcclx_comm_config config = config_of(making->child);
	struct rcclx_comm *formed = NULL;
	rcclx_result r = rcclx_comm_split(
		making->parent->comm, making->color, making->key, &config, &formed);

	return finish(making, r, formed);
}

static ncclResult_t run_shrink(struct making *making)
{
	struct rcclx_comm_config config = config_of(making->child);
	struct rcclx_comm *formed = NULL;
	rcclx_result r = rcclx_comm_shrink(
		making->parent->comm, making->excluded, making->n_excluded, &config, &formed);

	return finish(making, r, formed);
}

/* The parent is entered; what fails here leaves it. */
static ncclResult_t start(
	const char *function, struct making *making, const ncclConfig_t *config, bool member)
{
	struct options options;
	ncclResult_t r = read_options(function, making->parent, config, &options);

	if (r == ncclSuccess && member) {
		making->child = comm_new(&options, 0, 0);
		if (!making->child)
			r = ncclSystemError;
	}
	if (r != ncclSuccess) {
		free(making->excluded);
		comm_leave(making->parent);
		return r;
	}
	if (making->child)
		comm_again(making->child);
	*making->handle_p = making->child;
	return group_make(making);
}

static ncclResult_t split(
	ncclComm_t comm, int color, int key, ncclComm_t *newcomm, const ncclConfig_t *config)
{
	struct making making = {
		.run = run_split,
		.parent = comm,
		.handle_p = newcomm,
		.color = color,
		.key = key,
	};
	ncclResult_t r = comm_enter(comm, "ncclCommSplit");

	if (r != ncclSuccess)
		return r;
	if (!newcomm)
		r = error_set(ncclInvalidArgument, "ncclCommSplit: newcomm is NULL");
	else if (color < 0 && color != NCCL_SPLIT_NOCOLOR)
		r = error_set(ncclInvalidArgument,
			"ncclCommSplit: color is %d, expected 0 or more, or NCCL_SPLIT_NOCOLOR",
			color);
	if (r != ncclSuccess) {
		comm_leave(comm);
		return r;
	}
	return start("ncclCommSplit", &making, config, color != NCCL_SPLIT_NOCOLOR);
}

ncclResult_t ncclCommSplit(
	ncclComm_t comm, int color, int key, ncclComm_t *newcomm, ncclConfig_t *config)
{
	return group_note(split(comm, color, key, newcomm, config));
}
NCCL_TWIN(ncclCommSplit);

static ncclResult_t check_shrink(
	const ncclComm_t comm, const int *excluded, int n, const ncclComm_t *newcomm, int flags)
{
	static const char function[] = "ncclCommShrink";

	if (!newcomm || n < 0 || n >= comm->n_ranks || (n > 0 && !excluded))
		return error_set(ncclInvalidArgument,
			"%s: %d ranks in excludeRanksList (%p), expected less than the "
			"communicator's %d, and a place for the new one (%p)",
			function, n, (const void *)excluded, comm->n_ranks, (const void *)newcomm);
	if (flags & ~NCCL_SHRINK_ABORT)
		return error_set(ncclInvalidArgument,
			"%s: shrinkFlags is 0x%x, expected NCCL_SHRINK_DEFAULT or "
			"NCCL_SHRINK_ABORT",
			function, (unsigned int)flags);
	for (int i = 0; i < n; i++)
		if (excluded[i] < 0 || excluded[i] >= comm->n_ranks || excluded[i] == comm->rank)
			return error_set(ncclInvalidArgument,
				"%s: rank %d cannot be excluded: expected one of the %d ranks, "
				"other than the own",
				function, excluded[i], comm->n_ranks);
	return ncclSuccess;
}

static bool copy_excluded(struct making *making, const int *excluded, int n)
{
	if (n == 0)
		return true;
	making->excluded = calloc((size_t)n, sizeof(*making->excluded));
	if (!making->excluded) {
		(void)error_set(ncclSystemError, "ncclCommShrink: out of memory");
		return false;
	}
	for (int i = 0; i < n; i++)
		making->excluded[i] = (uint32_t)excluded[i];
	making->n_excluded = (uint32_t)n;
	return true;
}

static ncclResult_t shrink(ncclComm_t comm, const int *excluded, int n, ncclComm_t *newcomm,
	const ncclConfig_t *config, int flags)
{
	struct making making = {.run = run_shrink, .parent = comm, .handle_p = newcomm};
	ncclResult_t r = ncclSuccess;

	/* What hangs in it ends, and is no longer in progress. */
	if ((flags & NCCL_SHRINK_ABORT) && comm_check(comm, "ncclCommShrink") == ncclSuccess)
		comm_stop(comm);
	r = comm_enter_failed(comm, "ncclCommShrink");
	if (r != ncclSuccess)
		return r;
	r = check_shrink(comm, excluded, n, newcomm, flags);
	if (r == ncclSuccess && !copy_excluded(&making, excluded, n))
		r = ncclSystemError;
	if (r != ncclSuccess) {
		comm_leave(comm);
		return r;
	}
	return start("ncclCommShrink", &making, config, true);
}

ncclResult_t ncclCommShrink(ncclComm_t comm, int *excludeRanksList, int excludeRanksCount,
	ncclComm_t *newcomm, ncclConfig_t *config, int shrinkFlags)
{
	return group_note(
		shrink(comm, excludeRanksList, excludeRanksCount, newcomm, config, shrinkFlags));
}
NCCL_TWIN(ncclCommShrink);
