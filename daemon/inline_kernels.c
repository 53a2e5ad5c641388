/* SPDX-License-Identifier: MIT */
/*
 * Kernels that wait for each other must be able to run at the same time, or each waits for a whole
 * time slice. So each rank has a device of its own, or the processes of a device do not take turns.
 *
 * What no rank may decide alone is whether its part is used: a rank that cannot map a slab says so,
 * and then nobody does. Ranks wait for that in the making of the communicator, for as long as they
 * would have waited for each other.
 *
 * A kernel that waits tells nobody, and its host does not wait with it. So while it is on, a timer
 * compares which operations the ranks have begun: one that is behind for as long as nobody else has
 * moved is late.
 */
#include "inline_kernels.h"

#include "comm_mem.h"
#include "daemon.h"
#include "loop.h"
#include "op.h"
#include "peer.h"
#include "reply.h"
#include "region.h"
#include "session.h"
#include "slab.h"
#include "stall.h"
#include "../kernels/device/inline_abi.h"
#include "../shm/rx_cleanup.h"
#include "../shm/rx_clock.h"
#include "../shm/rx_gate.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of each rank: two slots, and words. */
#define PART_BYTES RX_INL_MEM_BYTES(RX_INL_SLOT_DEFAULT)

/* Blocks of a kernel: enough for half a MiB, and few compute units. */
#define MAX_BLOCKS 16u
/* So many of RX_INL_MAX_THREADS fit a compute unit at least, of whatever maker. */
#define BLOCKS_PER_UNIT 2u

/* After the end of a process, until its kernels have ended on all devices. */
#define LINGER_NS (1 * RX_NS_PER_SEC)
/* After one has left that others wait for, until they are told to give up. */
#define LEFT_NS (10 * RX_NS_PER_SEC)

struct rank {
	struct slab_part *part;
	struct region *area; /* a reference; the cell lies in it. NULL: it has not said yet */
	struct rx_cell *cell;
	uint32_t serial; /* of its request, answered when it is decided */
	/* Once the communicator is gone: until the process has ended. */
	int pidfd;
	struct loop_poll *poll;
};

struct inline_kernels {
	struct comm *comm; /* NULL: it is gone */
	struct daemon *daemon;
	struct rx_list link; /* of daemon->kernels_left, then */
	uint32_t n_ranks;
	uint64_t said;  /* bitmap of ranks */
	uint64_t alive; /* once the communicator is gone: bitmap of processes */
	struct loop_timer *timer;
	bool decided;
	bool on;
	/* While it is on. */
	uint64_t late;  /* bitmap of ranks; 0: nobody waits, as far as is known */
	uint32_t front; /* operation that the others have begun, in rounds */
	uint64_t since_ns;
	bool reported;
	struct rank ranks[];
};

/* ---- whether ---- */

static uint32_t device_of(const struct comm *comm, uint32_t rank)
{
	return gpu_find(comm->daemon->gpu, comm->members[rank]->device);
}

static bool no(struct comm *comm, const char *format, ...) RX_PRINTF(2, 3);
static bool no(struct comm *comm, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(comm->kernels_why, sizeof(comm->kernels_why), format, args);
	va_end(args);
	return false;
}

static bool rank_may(struct comm *comm, uint32_t rank)
{
	const struct member *member = comm->members[rank];

	if (!member->gpu)
		return no(comm, "off: the process of rank %u has no GPU runtime", rank);
	if (!member->has_device)
		return no(comm, "off: rank %u had no device when it joined", rank);
	if (device_of(comm, rank) == UINT32_MAX)
		return no(comm, "off: the device of rank %u is none of the daemon's", rank);
	/* Whoever maps a slab can write all of it. */
	if (member->uid != comm->members[0]->uid)
		return no(comm, "off: ranks 0 and %u belong to different users", rank);
	return true;
}

static bool pair_may(struct comm *comm, uint32_t a, uint32_t b)
{
	const struct gpu *gpu = comm->daemon->gpu;
	uint32_t on[2] = {device_of(comm, a), device_of(comm, b)};

	if (on[0] == on[1] && !(comm->members[a]->concurrent && comm->members[b]->concurrent))
		return no(comm,
			"off: kernels of ranks %u and %u would take turns on device %u (on NVIDIA, "
			"unless both use MPS)",
			a, b, on[0]);
	if (!(gpu_peers(gpu, on[0]) >> on[1] & 1) || !(gpu_peers(gpu, on[1]) >> on[0] & 1))
		return no(comm, "off: devices %u and %u do not reach each other", on[0], on[1]);
	return true;
}

static bool may(struct comm *comm)
{
	const struct gpu *gpu = comm->daemon->gpu;
	bool yes = true;

	if (!comm->fabric.ctl->gpu)
		return no(comm, "off: no rank has a GPU runtime");
	if (!comm->daemon->config.gpu.inline_kernels)
		return no(comm, "off: by gpu.inline in the configuration");
	if (gpu_state(gpu) != GPU_READY)
		return no(comm, "off: the daemon has no devices");
	if (comm->n_ranks > RX_INL_MAX_RANKS)
		return no(comm, "off: there are more than %u ranks", RX_INL_MAX_RANKS);
	for (uint32_t rank = 0; rank < comm->n_ranks && yes; rank++)
		yes = rank_may(comm, rank);
	for (uint32_t a = 0; a < comm->n_ranks && yes; a++)
		for (uint32_t b = a + 1; b < comm->n_ranks && yes; b++)
			yes = pair_may(comm, a, b);
	return yes;
}

/* Ranks of one device share it: all of their blocks have to fit. 0: they do not. */
static uint32_t max_blocks(const struct comm *comm)
{
	uint32_t least = MAX_BLOCKS;

	for (uint32_t rank = 0; rank < comm->n_ranks; rank++) {
		uint32_t device = device_of(comm, rank);
		uint32_t n = 0;

		for (uint32_t other = 0; other < comm->n_ranks; other++)
			n += device_of(comm, other) == device;
		least = (uint32_t)rx_min_u64(
			least, gpu_info(comm->daemon->gpu, device)->n_units * BLOCKS_PER_UNIT / n);
	}
	return least;
}

/* ---- parts ---- */

static void give_back(struct inline_kernels *kernels)
{
	for (uint32_t rank = 0; rank < kernels->n_ranks; rank++)
		kernels->ranks[rank].part = slab_put(kernels->ranks[rank].part);
}

static void free_now(struct inline_kernels *kernels)
{
	give_back(kernels);
	for (uint32_t rank = 0; rank < kernels->n_ranks; rank++) {
		struct rank *r = &kernels->ranks[rank];

		r->area = region_unref(r->area);
		r->poll = loop_poll_free(r->poll);
		rx_closep(&r->pidfd);
	}
	kernels->timer = loop_timer_free(kernels->timer);
	rx_list_unlink(&kernels->link);
	free(kernels);
}

static int take_parts(struct inline_kernels *kernels, uint32_t n_blocks, uint32_t *rank_p)
{
	struct comm *comm = kernels->comm;
	struct daemon *daemon = comm->daemon;
	int r = 0;

	for (uint32_t rank = 0; rank < comm->n_ranks && r == 0; rank++) {
		*rank_p = rank;
		r = slab_take(daemon->slabs, daemon->gpu, device_of(comm, rank),
			comm->members[rank]->uid, daemon->config.gpu.slab_bytes, PART_BYTES,
			&kernels->ranks[rank].part);
		if (r == 0)
			kernels->ranks[rank].part->max_blocks = n_blocks;
	}
	return r;
}

static void on_timer(void *owner);

static struct inline_kernels *kernels_new(struct comm *comm, uint32_t n_blocks)
{
	struct inline_kernels *kernels =
		calloc(1, sizeof(*kernels) + comm->n_ranks * sizeof(kernels->ranks[0]));
	uint32_t rank = 0;
	int r = -ENOMEM;

	if (kernels) {
		kernels->comm = comm;
		kernels->daemon = comm->daemon;
		kernels->n_ranks = comm->n_ranks;
		rx_list_init(&kernels->link);
		for (uint32_t i = 0; i < comm->n_ranks; i++)
			kernels->ranks[i].pidfd = -1;
		r = loop_timer_new(comm->daemon->loop, on_timer, kernels, &kernels->timer);
	}
	if (r == 0)
		r = take_parts(kernels, n_blocks, &rank);
	if (r == 0)
		return kernels;
	if (r == -ENOSPC)
		(void)no(comm, "off: the slab of device %u is full", device_of(comm, rank));
	else
		(void)no(comm, "off: out of memory");
	if (kernels)
		free_now(kernels);
	return NULL;
}

void inline_kernels_offer(struct comm *comm)
{
	uint32_t n_blocks = 0;

	if (!may(comm))
		return;
	n_blocks = max_blocks(comm);
	if (n_blocks == 0) {
		(void)no(comm, "off: a device has too many ranks for their kernels to run at once");
		return;
	}
	comm->kernels = kernels_new(comm, n_blocks);
	if (!comm->kernels)
		return;
	comm_mem_kernels(comm, RX_KERNELS_OFFERED);
	(void)no(comm, "not decided: ranks map each other's parts");
	loop_timer_set(comm->kernels->timer, comm->form_timeout_ns);
}

/* ---- deciding ---- */

static void decide(struct inline_kernels *kernels, bool on)
{
	struct comm *comm = kernels->comm;

	kernels->decided = true;
	kernels->on = on;
	if (on)
		loop_timer_set(kernels->timer, comm->daemon->config.stall_report_ns);
	else
		loop_timer_stop(kernels->timer);
	comm_mem_kernels(comm, on ? RX_KERNELS_ON : RX_KERNELS_OFF);
	rx_debug("comm=%" PRIu64 " name=\"%s\" kernels of its ranks %s", comm->id, comm->name,
		comm->kernels_why);
	if (!on)
		give_back(kernels);
	for (uint32_t rank = 0; rank < comm->n_ranks; rank++) {
		const struct member *member = comm->members[rank];

		if (kernels->said >> rank & 1 && member->session)
			reply_ok(member->session->peer, kernels->ranks[rank].serial);
	}
}

static void refuse(struct comm *comm, uint32_t rank, const char *why)
{
	if (!comm->kernels || comm->kernels->decided)
		return;
	if (rank == UINT32_MAX)
		(void)no(comm, "off: %s", why);
	else
		(void)no(comm, "off: rank %u: %s", rank, why);
	decide(comm->kernels, false);
}

/* ---- who is late ---- */

static void abort_cells(const struct inline_kernels *kernels)
{
	for (uint32_t rank = 0; rank < kernels->n_ranks; rank++)
		if (kernels->ranks[rank].cell)
			rx_cell_abort(kernels->ranks[rank].cell, 1);
}

/* Of the last operation that a kernel of @rank has begun: the client's word. */
static uint32_t round_of(const struct inline_kernels *kernels, uint32_t rank)
{
	return (uint32_t)(rx_cell_what(kernels->ranks[rank].cell) >> 32);
}

static struct rx_op_sig sig_of(const struct rx_cell *cell)
{
	uint32_t what = (uint32_t)rx_cell_what(cell);

	return (struct rx_op_sig){
		.coll = (uint8_t)RX_INL_WHAT_COLL(what),
		.dtype = (uint8_t)RX_INL_WHAT_DTYPE(what),
		.op = (uint8_t)RX_INL_WHAT_OP(what),
		.root = RX_INL_WHAT_ROOT(what),
		.count = (uint32_t)rx_cell_count(cell),
	};
}

/* Bitmap of the ranks that have not begun what the first of all has, @front_p of rank @ahead_p. */
static uint64_t find_behind(
	const struct inline_kernels *kernels, uint32_t *front_p, uint32_t *ahead_p)
{
	uint64_t behind = 0;

	*ahead_p = 0;
	*front_p = round_of(kernels, 0);
	for (uint32_t rank = 1; rank < kernels->n_ranks; rank++) {
		uint32_t round = round_of(kernels, rank);

		if (rx_seq_reached(*front_p, round))
			continue;
		*front_p = round;
		*ahead_p = rank;
	}
	for (uint32_t rank = 0; rank < kernels->n_ranks; rank++)
		if (!rx_seq_reached(round_of(kernels, rank), *front_p))
			behind |= 1ull << rank;
	return behind;
}

static void stall_over(struct inline_kernels *kernels)
{
	if (kernels->reported && kernels->comm)
		stall_log_over(kernels->comm, rx_now_ns() - kernels->since_ns);
	kernels->late = 0;
	kernels->reported = false;
}

/*
 * A late rank whose stream waits in an operation of the daemon's does not come. Where it only has
 * posted one, its stream may still come to the kernel before.
 */
static bool waits_elsewhere(struct inline_kernels *kernels, uint32_t rank, uint32_t ahead)
{
	const struct op_part *part = op_pending_of(kernels->comm, rank, ahead);
	struct rx_op_sig sig[2];

	if (!part || !part->gate.word || !gate_is_open(&part->gate))
		return false;
	sig[0] = sig_of(kernels->ranks[ahead].cell);
	sig[1] = part->sig;
	comm_abort(kernels->comm, RX_ABORT_MISMATCH, ahead, rank, sig);
	return true;
}

/* True: it is over with them. */
static bool cannot_come(struct inline_kernels *kernels, uint64_t late, uint32_t ahead)
{
	for (uint64_t left = late; left; left &= left - 1) {
		uint32_t rank = (uint32_t)__builtin_ctzll(left);

		if (waits_elsewhere(kernels, rank, ahead))
			return true;
		/* What it put into its stream before may still run: so not at once. */
		if (kernels->comm->members[rank]->status == RX_MEMBER_LEFT &&
			rx_now_ns() - kernels->since_ns >= LEFT_NS) {
			abort_cells(kernels);
			return true;
		}
	}
	return false;
}

static void look(struct inline_kernels *kernels)
{
	struct comm *comm = kernels->comm;
	uint32_t front = 0;
	uint32_t ahead = 0;
	uint64_t late = 0;

	if (comm->state != COMM_READY)
		return;
	late = find_behind(kernels, &front, &ahead);
	if (late == 0 || kernels->late == 0 || front != kernels->front) {
		stall_over(kernels);
		kernels->late = late;
		kernels->front = front;
		kernels->since_ns = rx_now_ns();
	} else {
		const struct rx_op_sig sig = sig_of(kernels->ranks[ahead].cell);

		kernels->late = late;
		if (!kernels->reported)
			stall_log_late(comm, &sig, rx_now_ns() - kernels->since_ns, late);
		kernels->reported = true;
		if (cannot_come(kernels, late, ahead))
			return;
	}
	loop_timer_set(kernels->timer, comm->daemon->config.stall_report_ns);
}

uint64_t inline_kernels_late(const struct inline_kernels *kernels, uint64_t *since_ns_p)
{
	if (!kernels || !kernels->reported)
		return 0;
	*since_ns_p = kernels->since_ns;
	return kernels->late;
}

bool inline_kernels_mismatch(
	const struct member *member, uint32_t *other_p, struct rx_op_sig sig[2])
{
	const struct inline_kernels *kernels = member->comm->kernels;
	uint32_t status = 0;
	uint32_t others = 0;

	if (!kernels || !kernels->on)
		return false;
	status = rx_cell_status(kernels->ranks[member->rank].cell);
	others = RX_INL_STATUS_RANKS(status) & ~(1u << member->rank);
	if (RX_INL_STATUS_CODE(status) != RX_INL_E_MISMATCH || others == 0 ||
		(uint32_t)__builtin_ctz(others) >= kernels->n_ranks)
		return false;
	*other_p = (uint32_t)__builtin_ctz(others);
	sig[0] = sig_of(kernels->ranks[member->rank].cell);
	sig[1] = sig_of(kernels->ranks[*other_p].cell);
	return true;
}

/* ---- */

static void on_timer(void *owner)
{
	struct inline_kernels *kernels = owner;

	if (kernels->comm && kernels->on)
		look(kernels);
	else if (kernels->comm)
		refuse(kernels->comm, (uint32_t)__builtin_ctzll(~kernels->said),
			"did not say in time whether it can");
	else
		free_now(kernels);
}

/* Its kernels look at it. */
static bool take_cell(struct inline_kernels *kernels, const struct member *member, uint32_t cell)
{
	struct rank *rank = &kernels->ranks[member->rank];
	struct region *area = member->session->gates;
	struct rx_gates *gates = area ? region_at(area, 0) : NULL;

	if (!gates || cell == RX_CELL_NONE || cell >= RX_CELLS)
		return false;
	rank->area = region_ref(area);
	rank->cell = &gates->cells[cell];
	rank->pidfd = fcntl(member->session->peer->pidfd, F_DUPFD_CLOEXEC, 0);
	return rank->pidfd >= 0;
}

void inline_kernels_say(struct member *member, uint32_t serial, uint32_t cell, const char *why)
{
	struct comm *comm = member->comm;
	struct inline_kernels *kernels = comm->kernels;
	uint64_t all = comm->n_ranks == 64 ? UINT64_MAX : (1ull << comm->n_ranks) - 1;

	if (!kernels || kernels->decided || kernels->said >> member->rank & 1) {
		reply_ok(member->session->peer, serial);
		return;
	}
	kernels->said |= 1ull << member->rank;
	kernels->ranks[member->rank].serial = serial;
	if (why[0]) {
		refuse(comm, member->rank, why);
	} else if (!take_cell(kernels, member, cell)) {
		refuse(comm, member->rank, "its kernels and its process cannot be watched");
	} else if (kernels->said == all) {
		(void)no(comm, "possible: all ranks reach each other's memory for them");
		decide(kernels, true);
	}
}

void inline_kernels_member_gone(struct member *member)
{
	refuse(member->comm, member->rank, "has gone");
}

void inline_kernels_abort(struct comm *comm)
{
	refuse(comm, UINT32_MAX, "the communicator was aborted");
	if (!comm->kernels)
		return;
	abort_cells(comm->kernels);
	if (comm->kernels->on) {
		stall_over(comm->kernels);
		loop_timer_stop(comm->kernels->timer);
	}
}

struct slab_part *inline_kernels_part(const struct comm *comm, uint32_t rank)
{
	return comm->kernels && rank < comm->n_ranks ? comm->kernels->ranks[rank].part : NULL;
}

/* ---- the end ---- */

static void on_process(void *owner, int events)
{
	struct inline_kernels *kernels = owner;

	(void)events;
	for (uint32_t rank = 0; rank < kernels->n_ranks; rank++) {
		struct rank *r = &kernels->ranks[rank];
		struct pollfd p = {.fd = r->pidfd, .events = POLLIN};

		if (!r->poll || poll(&p, 1, 0) != 1)
			continue;
		r->poll = loop_poll_free(r->poll);
		rx_closep(&r->pidfd);
		kernels->alive &= ~(1ull << rank);
	}
	if (kernels->alive == 0)
		loop_timer_set(kernels->timer, LINGER_NS);
}

static bool any_died(const struct comm *comm)
{
	for (uint32_t rank = 0; rank < comm->n_ranks; rank++)
		if (comm->members[rank]->status == RX_MEMBER_DEAD)
			return true;
	return false;
}

/* A process that cannot be watched keeps its part until the daemon ends. */
static void watch(struct inline_kernels *kernels)
{
	rx_list_push(&kernels->daemon->kernels_left, &kernels->link);
	for (uint32_t rank = 0; rank < kernels->n_ranks; rank++) {
		struct rank *r = &kernels->ranks[rank];

		kernels->alive |= 1ull << rank;
		if (loop_poll_new(kernels->daemon->loop, r->pidfd, UV_READABLE, on_process, kernels,
			    &r->poll))
			r->poll = NULL;
	}
}

struct inline_kernels *inline_kernels_free(struct inline_kernels *kernels)
{
	if (!kernels)
		return NULL;
	/* What still waits for a rank that will not come. */
	if (kernels->on && any_died(kernels->comm))
		abort_cells(kernels);
	for (uint32_t rank = 0; rank < kernels->n_ranks; rank++) {
		kernels->ranks[rank].cell = NULL;
		kernels->ranks[rank].area = region_unref(kernels->ranks[rank].area);
	}
	kernels->comm = NULL;
	loop_timer_stop(kernels->timer);
	if (kernels->on && kernels->daemon->state < DAEMON_STOPPED)
		watch(kernels);
	else
		free_now(kernels);
	return NULL;
}

void inline_kernels_end(struct daemon *daemon)
{
	while (!rx_list_empty(&daemon->kernels_left))
		free_now(rx_list_entry(daemon->kernels_left.next, struct inline_kernels, link));
}
