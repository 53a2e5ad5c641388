/* SPDX-License-Identifier: MIT */
/* Ids, and communicators of ranks that find each other under one. */
#include "api.h"
#include "autostart.h"
#include "debug.h"
#include "group.h"
#include "job.h"
#include "report.h"
#include "runtime.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 1024u

static_assert(sizeof(ncclUniqueId) == sizeof(struct rcclx_unique_id), "the same bytes");

/* ---- ids ---- */

/*
 * NCCL_COMM_ID: ranks that do not talk to each other all ask for an id, and all need the same. The
 * nth that each of them asks for belongs together. Among the jobs of a node, that takes a job that
 * has a name.
 */
static bool name_of_comm_id(char *name, size_t bytes)
{
	static _Atomic unsigned int n_asked;
	const char *text = getenv("NCCL_COMM_ID");
	char job[NAME_BYTES / 2];

	if (!text || !text[0])
		return false;
	if (!job_name(job, sizeof(job))) {
		debug_log(DEBUG_WARN,
			"NCCL_COMM_ID is not followed: nothing says which processes belong to one "
			"job; start them by rcclxctl run, or set RCCLX_JOB to a name for each run");
		return false;
	}
	(void)snprintf(name, bytes, "%s %.200s %u", job, text, atomic_fetch_add(&n_asked, 1));
	return true;
}

static rcclx_result make_id(struct rcclx_client *client, struct rcclx_unique_id *id_p)
{
	char name[NAME_BYTES];

	return name_of_comm_id(name, sizeof(name)) ? rcclx_unique_id_of_name(client, name, id_p)
						   : rcclx_unique_id_create(client, id_p);
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *uniqueId)
{
	rcclx_result r = RCCLX_ERR_DAEMON_LOST;

	if (!uniqueId)
		return error_set(ncclInvalidArgument, "ncclGetUniqueId: uniqueId is NULL");
	/* A second time, with a new daemon, when the one that we had has gone. */
	for (int attempt = 0; attempt < 2 && r == RCCLX_ERR_DAEMON_LOST; attempt++) {
		struct connection *connection = NULL;
		struct rcclx_unique_id id;
		ncclResult_t connected = connection_get("", &connection);

		if (connected != ncclSuccess)
			return connected;
		r = make_id(connection->client, &id);
		if (r == RCCLX_OK) {
			memcpy(uniqueId->internal, id.bytes, sizeof(id.bytes));
			autostart_tag(uniqueId, connection->socket);
			connection_pin(connection);
		}
		if (r == RCCLX_ERR_DAEMON_LOST)
			connection_lost(connection);
		connection_put(connection);
	}
	return error_of(r, false);
}
NCCL_TWIN(ncclGetUniqueId);

/* ---- joining ---- */

static rcclx_result join(const struct making *making, const ncclUniqueId *given,
	struct connection *connection, struct rcclx_comm **formed_p)
{
	const struct ncclComm *comm = making->child;
	struct rcclx_comm_config config = RCCLX_COMM_CONFIG_INIT;
	struct rcclx_unique_id id;

	memcpy(id.bytes, given->internal, sizeof(id.bytes));
	config.name = comm->options.name[0] ? comm->options.name : NULL;
	return rcclx_comm_create(connection->client, &id, (uint32_t)comm->n_ranks,
		(uint32_t)comm->rank, &config, formed_p);
}

static ncclResult_t run_init(struct making *making)
{
	struct ncclComm *comm = making->child;
	struct connection *connection = NULL;
	struct rcclx_comm *formed = NULL;
	char socket[CONNECTION_SOCKET_BYTES];
	ncclUniqueId id = making->id;
	rcclx_result r = RCCLX_ERR_DAEMON_LOST;

	autostart_untag(&id, socket);
	/* A second time, with a new daemon, when the one that we had has gone. */
	for (int attempt = 0; attempt < 2 && r == RCCLX_ERR_DAEMON_LOST; attempt++) {
		ncclResult_t connected = connection_get(socket, &connection);

		if (connected != ncclSuccess)
			return connected;
		r = join(making, &id, connection, &formed);
		if (r == RCCLX_ERR_DAEMON_LOST)
			connection_lost(connection);
		if (r != RCCLX_OK)
			connection_put(connection);
	}
	if (r != RCCLX_OK)
		return comm_result(comm, r);
	connection_unpin(connection);
	comm_formed(comm, formed, connection);
	report_use();
	debug_log(DEBUG_INFO, "rank %d of %d of communicator \"%s\" formed", comm->rank,
		comm->n_ranks, comm->options.name);
	return ncclSuccess;
}

#define CURRENT_DEVICE (-1)

/* @device: what ncclCommCuDevice() shall say. */
static ncclResult_t start(const char *function, ncclComm_t *comm_p, int n_ranks,
	const ncclUniqueId *id, int rank, int device, const ncclConfig_t *config)
{
	struct options options = OPTIONS_INIT;
	struct making making = {.run = run_init, .handle_p = comm_p, .id = *id};
	ncclResult_t r = ncclSuccess;

	if (!comm_p)
		return error_set(ncclInvalidArgument, "%s: there is no place for the communicator",
			function);
	if (n_ranks < 1 || n_ranks > RCCLX_MAX_RANKS || rank < 0 || rank >= n_ranks)
		return error_set(ncclInvalidArgument,
			"%s: rank is %d of %d, expected 0 to nranks - 1, and at most %d ranks",
			function, rank, n_ranks, RCCLX_MAX_RANKS);
	r = options_read(function, config, &options);
	if (r != ncclSuccess)
		return r;
	making.child = comm_new(&options, n_ranks, rank);
	if (!making.child)
		return ncclSystemError;
	runtime_look();
	making.child->device = device == CURRENT_DEVICE ? runtime_device() : device;
	comm_again(making.child);
	*comm_p = making.child;
	return group_make(&making);
}

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId commId, int rank)
{
	return group_note(
		start("ncclCommInitRank", comm, nranks, &commId, rank, CURRENT_DEVICE, NULL));
}
NCCL_TWIN(ncclCommInitRank);

ncclResult_t ncclCommInitRankConfig(
	ncclComm_t *comm, int nranks, ncclUniqueId commId, int rank, ncclConfig_t *config)
{
	return group_note(start(
		"ncclCommInitRankConfig", comm, nranks, &commId, rank, CURRENT_DEVICE, config));
}
NCCL_TWIN(ncclCommInitRankConfig);

ncclResult_t ncclCommInitRankScalable(ncclComm_t *newcomm, int nranks, int myrank, int nId,
	ncclUniqueId *commIds, ncclConfig_t *config)
{
	if (nId < 1 || nId > nranks || !commIds)
		return group_note(error_set(ncclInvalidArgument,
			"ncclCommInitRankScalable: nId is %d, expected 1 to nranks ids in commIds "
			"(%p)",
			nId, (void *)commIds));
	/* The ids are the same on all ranks, and one daemon needs only one of them. */
	return group_note(start("ncclCommInitRankScalable", newcomm, nranks, commIds, myrank,
		CURRENT_DEVICE, config));
}
NCCL_TWIN(ncclCommInitRankScalable);

/* ---- all ranks in this process ---- */

static ncclResult_t check_devices(int n, const int *devices)
{
	for (int i = 0; devices && i < n; i++) {
		if (devices[i] < 0)
			return error_set(ncclInvalidArgument,
				"ncclCommInitAll: devlist[%d] is %d, expected 0 or more", i,
				devices[i]);
		for (int j = 0; j < i; j++)
			if (devices[i] == devices[j])
				return error_set(ncclInvalidUsage,
					"ncclCommInitAll: devlist has %d twice", devices[i]);
	}
	return ncclSuccess;
}

static void destroy_all(ncclComm_t *comms, int n)
{
	for (int i = 0; i < n; i++) {
		if (comms[i])
			(void)ncclCommAbort(comms[i]);
		comms[i] = NULL;
	}
}

ncclResult_t ncclCommInitAll(ncclComm_t *comms, int ndev, const int *devlist)
{
	ncclUniqueId id;
	bool outermost = !group_is_open();
	ncclResult_t r = ncclSuccess;

	if (!comms || ndev < 1)
		return group_note(error_set(ncclInvalidArgument, "ncclCommInitAll: %s",
			comms ? "ndev is below 1" : "comms is NULL"));
	r = check_devices(ndev, devlist);
	if (r == ncclSuccess)
		r = ncclGetUniqueId(&id);
	if (r != ncclSuccess)
		return group_note(r);
	group_start();
	for (int i = 0; i < ndev; i++) {
		comms[i] = NULL;
		(void)group_note(start("ncclCommInitAll", &comms[i], ndev, &id, i,
			devlist ? devlist[i] : i, NULL));
	}
	r = group_end();
	if (outermost && r != ncclSuccess)
		destroy_all(comms, ndev);
	return r;
}
NCCL_TWIN(ncclCommInitAll);
