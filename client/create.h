/* SPDX-License-Identifier: MIT */
/* Requests to create a communicator, one now or several at once at the end of a group. */
#ifndef CLIENT_CREATE_H
#define CLIENT_CREATE_H

#include "rank_kernels.h"

struct create_request {
	struct rcclx_client *client;
	struct rcclx_unique_id id;
	uint32_t n_ranks;
	uint32_t rank;
	struct rcclx_comm_config config;
	struct rank_kernels kernels; /* what is known before */
	struct rcclx_comm **comm_p;
};

/** comm_create() - join and wait for the others; the request is checked */
rcclx_result comm_create(const struct create_request *request);

struct create_entry;

struct create_list {
	struct create_entry *entries;
	uint32_t n_entries;
	uint32_t n_allocated;
};

/** create_list_add() - copy a request, with its name */
rcclx_result create_list_add(struct create_list *list, const struct create_request *request);

/**
 * create_list_run() - create all at the same time, wait, and free the list
 *
 * Each waits for the other ranks, which may be in the same list: a thread for each, for that long.
 * Return: RCCLX_OK or the first error; communicators that came to be are there in any case.
 */
rcclx_result create_list_run(struct create_list *list);

#endif
