/* SPDX-License-Identifier: MIT */
/* Communicators as callers know them. What happens inside operations is in comm_state.c. */
#include "comm.h"

#include "args.h"
#include "create.h"
#include "err.h"
#include "gates.h"
#include "group.h"
#include "precision.h"
#include "rank_kernels.h"
#include "session.h"
#include "stream.h"
#include "../shm/rx_cleanup.h"
#include "../shm/rx_clock.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME_MAX_BYTES 63u

/* Descriptors of CommReady, in this order. */
enum { READY_FD_CTL, READY_FD_ARENA };

/* How much later than the daemon this side gives up, so that the daemon's account arrives. */
#define FORM_MARGIN_NS (2 * RX_NS_PER_SEC)
/*
 * The daemon's own limit is not known here, only the highest that it can be set to. A daemon that
 * does not answer at all is found out earlier.
 */
#define FORM_MAX_NS (86400 * RX_NS_PER_SEC)
#define LEAVE_NS    (1 * RX_NS_PER_SEC)

#define SPIN_MAX_US 1000000u

/* At least, by default: of a rank that waits for devices. */
#define DEVICES_SPIN_US 100u

static rcclx_result check_create(const struct rcclx_client *client,
	const struct rcclx_unique_id *id, uint32_t n_ranks, uint32_t rank,
	struct rcclx_comm **comm_p)
{
	if (!client || !id || !comm_p)
		return err_set(RCCLX_ERR_INVALID, "rcclx_comm_create: %s is NULL",
			!client ? "client" : (!id ? "id" : "comm_p"));
	if (n_ranks < 1 || n_ranks > RCCLX_MAX_RANKS)
		return err_set(RCCLX_ERR_INVALID,
			"rcclx_comm_create: n_ranks is %u, expected 1 to %u", n_ranks,
			RCCLX_MAX_RANKS);
	if (rank >= n_ranks)
		return err_set(RCCLX_ERR_INVALID,
			"rcclx_comm_create: rank is %u, expected 0 to %u, since there are %u ranks",
			rank, n_ranks - 1, n_ranks);
	return RCCLX_OK;
}

/* ---- how to wait ---- */

/* What devices do takes longer than other ranks do, and about as long as waking up. */
static uint64_t usual_spin_ns(const struct rcclx_comm *comm)
{
	const struct rx_fabric_ctl *ctl = comm->fabric.ctl;
	uint64_t us = ctl->spin_us;

	if (comm->yield || us == 0)
		return 0;
	return (ctl->gpu ? rx_max_u64(us, DEVICES_SPIN_US) : us) * 1000;
}

/* UINT64_MAX: nobody has said, it depends on whether the ranks have a core each. */
static rcclx_result spin_us(uint64_t *us_p)
{
	const char *text = secure_getenv("RCCLX_SPIN_US");
	unsigned long us = 0;
	char *end = NULL;

	if (!text || !text[0]) {
		*us_p = UINT64_MAX;
		return RCCLX_OK;
	}
	errno = 0;
	us = strtoul(text, &end, 10);
	if (errno != 0 || *end || text[0] < '0' || text[0] > '9' || us > SPIN_MAX_US)
		return err_set(RCCLX_ERR_INVALID,
			"the environment variable RCCLX_SPIN_US is \"%.40s\", expected microseconds "
			"from 0 to %u",
			text, SPIN_MAX_US);
	*us_p = us;
	return RCCLX_OK;
}

/* ---- creation ---- */

/* What the daemon needs to know whether each rank has a core. Nothing: it may be any CPU. */
static size_t allowed_cpus(uint8_t cpus[RX_CPUS_BYTES])
{
	cpu_set_t set;
	size_t n_bytes = 0;

	CPU_ZERO(&set);
	/* Fails where there are more CPUs than the set has room for. */
	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return 0;
	memset(cpus, 0, RX_CPUS_BYTES);
	for (size_t cpu = 0; cpu < 8 * (size_t)RX_CPUS_BYTES; cpu++) {
		if (!CPU_ISSET(cpu, &set))
			continue;
		cpus[cpu / 8] = (uint8_t)(cpus[cpu / 8] | 1u << (cpu % 8));
		n_bytes = cpu / 8 + 1;
	}
	return n_bytes;
}

static rcclx_result join(struct rcclx_comm *comm, const struct rcclx_unique_id *id,
	const struct rcclx_comm_config *config, const struct rx_precision *precision,
	struct conn_reply *reply)
{
	uint64_t timeout_ns = config->form_timeout_ns ? config->form_timeout_ns : FORM_MAX_NS;
	uint8_t cpus[RX_CPUS_BYTES];
	size_t n_cpus_bytes = allowed_cpus(cpus);
	struct rx_msg request = {
		.type = RX_MSG_COMM_JOIN,
		.comm_join =
			{
				.id = {.data = id->bytes, .len = sizeof(id->bytes)},
				.n_ranks = comm->n_ranks,
				.rank = comm->rank,
				.form_timeout_ns = config->form_timeout_ns,
				.op_timeout_ns = config->op_timeout_ns,
				.name = config->name,
				.cpus = {.data = cpus, .len = n_cpus_bytes},
				.precision_flags = precision->flags,
				.precision_sample_every = precision->sample_every,
				.precision_budget_ppm = precision->budget_ppm,
				.precision_min_bytes = precision->min_bytes,
				.link_rate = precision->link_rate,
				.gpu = gpu_is_there(),
				.concurrent = comm->kernels.concurrent,
			},
	};
	struct conn_wait wait = {.deadline_ns = rx_deadline_ns(timeout_ns), .patient = true};

	if (!rx_add_u64(wait.deadline_ns, FORM_MARGIN_NS, &wait.deadline_ns))
		wait.deadline_ns = RX_FOREVER;
	if (comm->kernels.has_device)
		request.comm_join.device = (struct rx_bytes){
			.data = comm->kernels.uuid, .len = sizeof(comm->kernels.uuid)};
	return conn_call(&comm->client->conn, &request, -1, RX_MSG_COMM_READY, &wait, reply);
}

static int map_memory(struct rcclx_comm *comm, int ctl_fd, int arena_fd, uint64_t arena_bytes)
{
	int r = 0;

	if (arena_bytes != rx_fabric_arena_bytes(comm->n_ranks))
		return -EPROTO;
	r = rx_map_open(
		&comm->ctl_map, ctl_fd, sizeof(struct rx_fabric_ctl), RX_MAP_RO | RX_MAP_DONTFORK);
	if (r == 0)
		r = rx_map_open(&comm->arena_map, arena_fd, arena_bytes,
			RX_MAP_RW | RX_MAP_DONTFORK | RX_MAP_DONTDUMP);
	if (r == 0)
		r = rx_fabric_init(&comm->fabric, &comm->ctl_map, &comm->arena_map, comm->n_ranks);
	if (r == 0 && comm->fabric.ctl->n_ranks != comm->n_ranks)
		r = -EPROTO;
	return r;
}

static void unmap_memory(struct rcclx_comm *comm)
{
	rx_map_close(&comm->ctl_map);
	rx_map_close(&comm->arena_map);
}

static rcclx_result attach(struct rcclx_comm *comm, struct conn_reply *reply)
{
	const struct rx_msg_comm_ready *ready = &reply->msg.comm_ready;
	RX_CLOSE int ctl_fd = rx_fdset_take(&reply->fds, READY_FD_CTL);
	RX_CLOSE int arena_fd = rx_fdset_take(&reply->fds, READY_FD_ARENA);
	int r = map_memory(comm, ctl_fd, arena_fd, ready->arena_bytes);

	if (r < 0) {
		unmap_memory(comm);
		conn_forget_member(&comm->client->conn, ready->member);
		return err_errno(r, "mapping the communicator's memory");
	}
	comm->member = ready->member;
	comm->comm_id = ready->comm_id;
	comm->yield = comm->fabric.ctl->cores_shared != 0;
	if (comm->spin_ns == UINT64_MAX)
		comm->spin_ns = usual_spin_ns(comm);
	return RCCLX_OK;
}

rcclx_result comm_create(const struct create_request *request)
{
	struct conn_reply reply;
	struct rx_precision precision;
	uint64_t us = 0;
	rcclx_result r = spin_us(&us);

	if (r == RCCLX_OK)
		r = precision_settings(&request->config, &precision);
	if (r != RCCLX_OK)
		return r;

	RX_FREE struct rcclx_comm *comm = calloc(1, sizeof(*comm));

	if (!comm)
		return err_set(RCCLX_ERR_NO_MEMORY, "rcclx_comm_create: out of memory");
	comm->client = request->client;
	comm->id = request->id;
	comm->rank = request->rank;
	comm->n_ranks = request->n_ranks;
	comm->spin_ns = us == UINT64_MAX ? UINT64_MAX : us * 1000;
	comm->kernels = request->kernels;
	r = reach_init(&comm->reach);
	if (r != RCCLX_OK)
		return r;
	comm->lanes = op_lanes_open(&comm->client->ops, comm->n_ranks);
	if (!comm->lanes)
		return err_set(RCCLX_ERR_NO_MEMORY, "rcclx_comm_create: out of memory");
	r = join(comm, &request->id, &request->config, &precision, &reply);
	if (r == RCCLX_OK) {
		r = attach(comm, &reply);
		conn_reply_deinit(&reply);
	}
	if (r != RCCLX_OK) {
		op_lanes_close(&comm->client->ops, comm->lanes, comm->n_ranks);
		return r;
	}
	rank_kernels_open(comm);
	atomic_fetch_add(&request->client->n_comms, 1);
	*request->comm_p = rx_steal(comm);
	return RCCLX_OK;
}

rcclx_result rcclx_comm_create(struct rcclx_client *client, const struct rcclx_unique_id *id,
	uint32_t n_ranks, uint32_t rank, const struct rcclx_comm_config *given,
	struct rcclx_comm **comm_p)
{
	struct create_request request = {
		.client = client,
		.n_ranks = n_ranks,
		.rank = rank,
		.config = RCCLX_COMM_CONFIG_INIT,
		.comm_p = comm_p,
	};
	rcclx_result r = check_create(client, id, n_ranks, rank, comm_p);

	if (r == RCCLX_OK)
		r = session_usable(client);
	if (r == RCCLX_OK)
		r = args_config(
			given, &request.config, sizeof(request.config), "struct rcclx_comm_config");
	if (r == RCCLX_OK)
		r = args_text(request.config.name, NAME_MAX_BYTES, "rcclx_comm_create: name");
	if (r != RCCLX_OK)
		return r;
	request.id = *id;
	gpu_look();
	/* Now, as a group makes communicators in other threads. */
	rank_kernels_look(&request.kernels);
	return group_is_open() ? group_add_create(&request) : comm_create(&request);
}

/* ---- the end ---- */

static void leave(struct rcclx_comm *comm)
{
	struct rx_msg request = {
		.type = RX_MSG_COMM_LEAVE,
		.comm_leave = {.member = comm->member},
	};
	struct conn_wait wait = {.deadline_ns = rx_deadline_ns(LEAVE_NS)};
	struct conn_reply reply;

	/* Whatever the answer: the daemon notices at the latest when the session ends. */
	if (conn_call(&comm->client->conn, &request, -1, RX_MSG_OK, &wait, &reply) == RCCLX_OK)
		conn_reply_deinit(&reply);
}

rcclx_result rcclx_comm_destroy(struct rcclx_comm *comm)
{
	uint32_t n_ops = 0;
	rcclx_result r = RCCLX_OK;

	if (!comm)
		return RCCLX_OK;
	r = session_usable(comm->client);
	if (r != RCCLX_OK)
		return r;
	n_ops = atomic_load(&comm->n_ops);
	if (n_ops > 0)
		return err_set(RCCLX_ERR_BUSY,
			"rcclx_comm_destroy: %u asynchronous operations are not freed; wait for "
			"them (or abort the communicator) and free them",
			n_ops);
	stream_drain(comm);
	leave(comm);
	/* Its graphs may still be replayed. */
	gates_orphan(comm);
	op_forget_in_stream(comm);
	import_clear(&comm->imports);
	unmap_memory(comm);
	op_lanes_close(&comm->client->ops, comm->lanes, comm->n_ranks);
	atomic_fetch_sub(&comm->client->n_comms, 1);
	free(comm);
	return RCCLX_OK;
}

rcclx_result rcclx_comm_abort(struct rcclx_comm *comm)
{
	rcclx_result r = RCCLX_OK;

	if (!comm)
		return err_set(RCCLX_ERR_INVALID, "rcclx_comm_abort: comm is NULL");
	r = session_usable(comm->client);
	if (r != RCCLX_OK)
		return r;
	/* Release: a thread that sees it and fails does so after everything before the call. */
	if (atomic_exchange(&comm->abort_called, 1) != 0)
		return RCCLX_OK;
	gates_release(comm);
	rx_fabric_wake_all(&comm->fabric);
	op_queue_wake(&comm->client->ops);
	comm_give_up(comm, RX_ABORT_USER);
	return RCCLX_OK;
}

/* ---- questions ---- */

rcclx_result rcclx_comm_status(struct rcclx_comm *comm)
{
	rcclx_result r = RCCLX_OK;

	if (!comm)
		return err_set(RCCLX_ERR_INVALID, "rcclx_comm_status: comm is NULL");
	/* Calls in streams tell nobody else how they ended. */
	if (session_usable(comm->client) == RCCLX_OK)
		op_take_completions(comm->client);
	r = comm_usable(comm);
	/* One that has left is no failure: all may be about to do so. */
	for (uint32_t rank = 0; r == RCCLX_OK && rank < comm->n_ranks; rank++)
		if (atomic_load(&comm->fabric.ctl->status[rank]) == RX_MEMBER_DEAD)
			r = comm_fault(comm, rank, NULL);
	if (r == RCCLX_OK && comm_daemon_lost(comm))
		r = session_lost_error(comm->client);
	return r;
}

uint32_t rcclx_comm_rank(const struct rcclx_comm *comm)
{
	return comm ? comm->rank : UINT32_MAX;
}

uint32_t rcclx_comm_size(const struct rcclx_comm *comm)
{
	return comm ? comm->n_ranks : 0;
}
