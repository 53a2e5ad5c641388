/* SPDX-License-Identifier: MIT */
/*
 * A stream that waits for a gate waits for ever if nobody writes it, and a graph may be replayed
 * long after its communicator. So the gates are the process's, not a session's: made once, known to
 * the GPU runtime once, and never given back, as a stream may come to them at any time.
 *
 * The thread sleeps until a daemon hangs up, or this process's part of a session ends. Then it
 * opens all gates of the session for calls that were made, and from then on plays the daemon for
 * recorded ones: it answers every bell at once. With no such bells it costs nothing.
 */
#include "gates.h"

#include "comm.h"
#include "err.h"
#include "gpu_runtime.h"
#include "session.h"
#include "../shm/rx_clock.h"
#include "../shm/rx_gate.h"
#include "../shm/rx_memfd.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#define ANSWER_NS (200 * 1000)         /* between two looks at bells while they ring */
#define CALM_NS   (5 * RX_NS_PER_MS)   /* while they do not */
#define CELL_NS   (10 * RX_NS_PER_SEC) /* from the end of a communicator to that of its kernels */
#define BUSY_NS   (20 * RX_NS_PER_MS)  /* how long after one has rung */

enum use { FREE, EAGER, CAPTURED };

struct use_info {
	const struct rcclx_comm *comm; /* NULL: it is gone */
	const struct rcclx_client *client;
	uint64_t value; /* EAGER: of the present use, or the last one */
	uint32_t next;  /* FREE */
	enum use use;
};

struct bell_info {
	const struct rcclx_comm *comm;
	const struct rcclx_client *client;
	const void *stream;
	uint64_t capture;
	uint32_t position;
	bool orphan; /* we answer it */
};

struct cell_info {
	const struct rcclx_comm *comm; /* NULL: it is gone */
	const struct rcclx_client *client;
	uint64_t abort_ns; /* when kernels that still wait give up; RX_FOREVER: not of themselves */
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t turned; /* the thread has gone round once */
	bool is_made;
	int fd;
	struct rx_gates *gates;
	uint64_t address;   /* for streams */
	uint32_t free_head; /* RX_GATE_NONE: none */
	uint32_t n_gates;   /* ever taken; 0 is none */
	uint32_t n_bells;
	struct use_info *infos;
	struct bell_info *bells;
	struct cell_info *cells;
	uint32_t n_cells;  /* ever taken; 0 is none */
	uint64_t abort_ns; /* the first of the cells' */
	uint32_t n_orphans;
	uint64_t rung_ns;
	struct rx_list sessions;
	uint32_t n_sessions;
	uint64_t n_turns;
	int wake;
} all = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.turned = PTHREAD_COND_INITIALIZER,
	.fd = -1,
	.n_gates = 1,
	.n_bells = 1,
	.n_cells = 1,
	.abort_ns = RX_FOREVER,
	.sessions = {&all.sessions, &all.sessions},
	.wake = -1,
};

/* ---- letting go, with the lock held ---- */

static void orphan(uint32_t bell)
{
	if (!all.bells[bell].orphan)
		all.n_orphans++;
	all.bells[bell].orphan = true;
	all.bells[bell].comm = NULL;
}

static void let_go(const struct rcclx_client *client, const struct rcclx_comm *comm)
{
	for (uint32_t i = 1; i < all.n_gates; i++) {
		const struct use_info *info = &all.infos[i];

		if (info->use == EAGER && info->client == client && (!comm || info->comm == comm))
			rx_gate_release(&all.gates->gates[i], info->value);
	}
	for (uint32_t i = 1; i < all.n_bells; i++)
		if (all.bells[i].client == client && (!comm || all.bells[i].comm == comm))
			orphan(i);
	/* Kernels of one that is gone may still meet their peers': they have their time. */
	for (uint32_t i = 1; i < all.n_cells; i++)
		if (all.cells[i].client == client && all.cells[i].comm &&
			(!comm || all.cells[i].comm == comm))
			rx_cell_abort(&all.gates->cells[i], 1);
}

/* Kernels of communicators that are gone have had their time. */
static void abort_leftovers(void)
{
	uint64_t now = rx_now_ns();
	uint64_t next = RX_FOREVER;

	if (now < all.abort_ns)
		return;
	for (uint32_t i = 1; i < all.n_cells; i++) {
		struct cell_info *info = &all.cells[i];

		if (now >= info->abort_ns) {
			rx_cell_abort(&all.gates->cells[i], 1);
			info->abort_ns = RX_FOREVER;
		}
		next = rx_min_u64(next, info->abort_ns);
	}
	all.abort_ns = next;
}

static void answer_orphans(void)
{
	for (uint32_t i = 1; i < all.n_bells; i++) {
		uint64_t gate = all.bells[i].orphan ? rx_bell_take(&all.gates->bells[i]) : 0;

		if (gate == 0 || gate >= RX_GATES)
			continue;
		all.rung_ns = rx_now_ns();
		rx_gate_release(&all.gates->gates[gate], 1);
	}
}

static void wake(void)
{
	(void)eventfd_write(all.wake, 1);
}

/* ---- the thread ---- */

/* NULL: no memory, and another try a little later. */
static struct pollfd *list_fds(uint32_t *n_p)
{
	struct pollfd *fds = calloc(1 + (size_t)all.n_sessions, sizeof(*fds));
	uint32_t n = 0;

	if (!fds)
		return NULL;
	fds[n++] = (struct pollfd){.fd = all.wake, .events = POLLIN};
	rx_list_for_each (pos, &all.sessions)
		fds[n++] = (struct pollfd){.fd = rx_list_entry(pos, struct gates, link)->fd};
	*n_p = n;
	return fds;
}

static void look_at_sessions(void)
{
	rx_list_for_each_safe (pos, &all.sessions) {
		struct gates *gates = rx_list_entry(pos, struct gates, link);
		struct pollfd p = {.fd = gates->fd};

		if (poll(&p, 1, 0) == 0)
			continue;
		let_go(gates->client, NULL);
		rx_list_unlink(pos);
		all.n_sessions--;
	}
}

static const struct timespec *patience(struct timespec *when)
{
	uint64_t now = rx_now_ns();
	uint64_t ns = now - all.rung_ns < BUSY_NS ? ANSWER_NS : CALM_NS;

	if (all.n_orphans == 0 && all.abort_ns == RX_FOREVER)
		return NULL;
	if (all.n_orphans == 0)
		ns = all.abort_ns > now ? all.abort_ns - now : 0;
	*when = (struct timespec){
		.tv_sec = (time_t)(ns / RX_NS_PER_SEC), .tv_nsec = (long)(ns % RX_NS_PER_SEC)};
	return when;
}

static void *guard(void *arg)
{
	(void)arg;
	(void)pthread_mutex_lock(&all.lock);
	for (;;) {
		struct timespec when = {.tv_nsec = CALM_NS};
		const struct timespec *timeout = patience(&when);
		uint32_t n = 0;
		struct pollfd *fds = list_fds(&n);
		eventfd_t value = 0;

		(void)pthread_mutex_unlock(&all.lock);
		(void)ppoll(fds, n, fds ? timeout : &when, NULL);
		free(fds);
		(void)eventfd_read(all.wake, &value);
		(void)pthread_mutex_lock(&all.lock);
		look_at_sessions();
		answer_orphans();
		abort_leftovers();
		all.n_turns++;
		(void)pthread_cond_broadcast(&all.turned);
	}
	return NULL;
}

static int start_guard(void)
{
	pthread_t thread;
	pthread_attr_t attr;
	sigset_t signals;
	sigset_t before;
	int r = pthread_attr_init(&attr);

	if (r)
		return -r;
	(void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	(void)sigfillset(&signals);
	(void)pthread_sigmask(SIG_SETMASK, &signals, &before);
	r = pthread_create(&thread, &attr, guard, NULL);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	(void)pthread_attr_destroy(&attr);
	if (r == 0)
		(void)pthread_setname_np(thread, "rcclx-gates");
	return -r;
}

/* ---- making them ---- */

static void unmake(void)
{
	if (all.gates)
		(void)munmap(all.gates, sizeof(*all.gates));
	if (all.fd >= 0)
		(void)close(all.fd);
	if (all.wake >= 0)
		(void)close(all.wake);
	free(all.infos);
	free(all.bells);
	free(all.cells);
	all.cells = NULL;
	all.gates = NULL;
	all.infos = NULL;
	all.bells = NULL;
	all.fd = all.wake = -1;
}

static int map_gates(void)
{
	void *at = NULL;
	int r = rx_memfd_new("rcclx-gates", sizeof(*all.gates), RX_MEMFD_SHARED, &all.fd);

	if (r < 0)
		return r;
	at = mmap(NULL, sizeof(*all.gates), PROT_READ | PROT_WRITE, MAP_SHARED, all.fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	all.gates = at;
	(void)madvise(at, sizeof(*all.gates), MADV_DONTFORK);
	all.infos = calloc(RX_GATES, sizeof(*all.infos));
	all.bells = calloc(RX_BELLS, sizeof(*all.bells));
	all.cells = calloc(RX_CELLS, sizeof(*all.cells));
	all.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (!all.infos || !all.bells || !all.cells)
		return -ENOMEM;
	return all.wake < 0 ? -errno : 0;
}

/* With the lock held. */
static rcclx_result make(void)
{
	rcclx_result r = RCCLX_OK;
	int e = 0;

	if (all.is_made)
		return RCCLX_OK;
	e = map_gates();
	if (e == 0) {
		r = gpu_reach_host(all.gates, sizeof(*all.gates), &all.address);
		if (r == RCCLX_OK)
			e = start_guard();
	}
	if (r == RCCLX_OK && e < 0)
		r = err_errno(e, "setting up calls in the order of a stream");
	if (r != RCCLX_OK) {
		unmake();
		return r;
	}
	all.is_made = true;
	return RCCLX_OK;
}

/* ---- sessions ---- */

void gates_init(struct gates *gates, struct rcclx_client *client)
{
	rx_list_init(&gates->link);
	gates->client = client;
	gates->fd = -1;
	atomic_init(&gates->opened, 0);
}

/* The registered memory is the session's until it ends. */
static rcclx_result tell_daemon(struct rcclx_client *client)
{
	struct conn_wait wait = {.deadline_ns = rx_deadline_ns(CONN_TIMEOUT_NS)};
	struct rx_msg request = {
		.type = RX_MSG_MEM_REGISTER,
		.mem_register = {.bytes = sizeof(struct rx_gates)},
	};
	struct conn_reply reply;
	uint32_t handle = 0;
	rcclx_result r =
		conn_call(&client->conn, &request, all.fd, RX_MSG_MEM_REPLY, &wait, &reply);

	if (r != RCCLX_OK)
		return r;
	handle = reply.msg.mem_reply.handle;
	conn_reply_deinit(&reply);
	request = (struct rx_msg){.type = RX_MSG_GATES_OPEN, .gates_open = {.handle = handle}};
	r = conn_call(&client->conn, &request, -1, RX_MSG_OK, &wait, &reply);
	if (r != RCCLX_OK) {
		conn_forget_memory(&client->conn, handle);
		return r;
	}
	conn_reply_deinit(&reply);
	return RCCLX_OK;
}

rcclx_result gates_open(struct rcclx_client *client)
{
	struct gates *gates = &client->gates;
	rcclx_result r = RCCLX_OK;

	if (atomic_load_explicit(&gates->opened, memory_order_acquire))
		return RCCLX_OK;
	(void)pthread_mutex_lock(&all.lock);
	if (!atomic_load_explicit(&gates->opened, memory_order_relaxed)) {
		r = make();
		if (r == RCCLX_OK)
			r = tell_daemon(client);
		if (r == RCCLX_OK) {
			gates->fd = client->conn.fd;
			rx_list_push(&all.sessions, &gates->link);
			all.n_sessions++;
			wake();
			atomic_store_explicit(&gates->opened, 1, memory_order_release);
		}
	}
	(void)pthread_mutex_unlock(&all.lock);
	return r;
}

void gates_close(struct gates *gates)
{
	uint64_t turn = 0;

	if (!atomic_load_explicit(&gates->opened, memory_order_acquire))
		return;
	(void)pthread_mutex_lock(&all.lock);
	let_go(gates->client, NULL);
	for (uint32_t i = 1; i < all.n_gates; i++) {
		struct use_info *info = &all.infos[i];

		if (info->client != gates->client)
			continue;
		info->client = NULL;
		info->comm = NULL;
		/* Its last value is written, and the next one is greater. */
		if (info->use == EAGER) {
			info->use = FREE;
			info->next = all.free_head;
			all.free_head = i;
		}
	}
	for (uint32_t i = 1; i < all.n_bells; i++)
		if (all.bells[i].client == gates->client)
			all.bells[i].client = NULL;
	for (uint32_t i = 1; i < all.n_cells; i++)
		if (all.cells[i].client == gates->client)
			all.cells[i].client = NULL;
	/* The descriptor is about to be closed: the thread may not have it in its hands then. */
	if (!rx_list_empty(&gates->link)) {
		rx_list_unlink(&gates->link);
		all.n_sessions--;
	}
	turn = all.n_turns + 2;
	while (all.n_turns < turn) {
		wake();
		(void)pthread_cond_wait(&all.turned, &all.lock);
	}
	(void)pthread_mutex_unlock(&all.lock);
}

/* ---- gates ---- */

static uint64_t address_of(const void *word)
{
	return all.address + (uint64_t)((const char *)word - (const char *)all.gates);
}

/* With the lock held; RX_GATE_NONE: all are in use. */
static uint32_t take(const struct rcclx_comm *comm, enum use use)
{
	/* A stream may still be about to look at one that was used: it must not be set back. */
	uint32_t number = use == EAGER ? all.free_head : RX_GATE_NONE;
	struct use_info *info = NULL;

	if (number != RX_GATE_NONE)
		all.free_head = all.infos[number].next;
	else if (all.n_gates < RX_GATES)
		number = all.n_gates++;
	else
		return RX_GATE_NONE;
	info = &all.infos[number];
	info->use = use;
	info->comm = comm;
	info->client = comm->client;
	return number;
}

static rcclx_result none_left(void)
{
	return err_set(RCCLX_ERR_LIMIT,
		"all %u gates of this process are in use: by calls in streams that are not over, "
		"and by calls that were recorded in graphs, which keep theirs",
		RX_GATES - 1);
}

rcclx_result gates_take(struct rcclx_comm *comm, struct gate_ref *ref_p)
{
	uint32_t number = RX_GATE_NONE;

	(void)pthread_mutex_lock(&all.lock);
	number = take(comm, EAGER);
	if (number != RX_GATE_NONE) {
		struct rx_gate *gate = &all.gates->gates[number];

		*ref_p = (struct gate_ref){
			.number = number,
			.value = ++all.infos[number].value,
			.ready = address_of(&gate->ready),
			.done = address_of(&gate->done),
		};
	}
	(void)pthread_mutex_unlock(&all.lock);
	return number != RX_GATE_NONE ? RCCLX_OK : none_left();
}

void gates_put(uint32_t number)
{
	(void)pthread_mutex_lock(&all.lock);
	if (all.infos[number].use == EAGER) {
		/* For a call that the daemon never heard of, as well. */
		rx_gate_release(&all.gates->gates[number], all.infos[number].value);
		all.infos[number].use = FREE;
		all.infos[number].comm = NULL;
		all.infos[number].client = NULL;
		all.infos[number].next = all.free_head;
		all.free_head = number;
	}
	(void)pthread_mutex_unlock(&all.lock);
}

/* With the lock held; RX_BELL_NONE: all are in use. */
static uint32_t find_bell(
	const struct rcclx_comm *comm, uint64_t capture, const void *stream, uint32_t position)
{
	for (uint32_t i = all.n_bells - 1; i > 0 && capture != 0; i--) {
		const struct bell_info *info = &all.bells[i];

		if (info->comm == comm && info->capture == capture && info->stream == stream &&
			info->position == position)
			return i;
	}
	if (all.n_bells == RX_BELLS)
		return RX_BELL_NONE;
	all.bells[all.n_bells] = (struct bell_info){
		.comm = comm,
		.client = comm->client,
		.stream = stream,
		.capture = capture,
		.position = position,
	};
	return all.n_bells++;
}

rcclx_result gates_take_captured(struct rcclx_comm *comm, uint64_t capture, const void *stream,
	uint32_t position, struct gate_ref *ref_p)
{
	uint32_t number = RX_GATE_NONE;
	uint32_t bell = RX_BELL_NONE;

	(void)pthread_mutex_lock(&all.lock);
	bell = find_bell(comm, capture, stream, position);
	if (bell != RX_BELL_NONE)
		number = take(comm, CAPTURED);
	if (number != RX_GATE_NONE) {
		struct rx_gate *gate = &all.gates->gates[number];

		rx_gate_prepare(gate, bell, 0);
		*ref_p = (struct gate_ref){
			.number = number,
			.done = address_of(&gate->done),
			.bell = address_of(&all.gates->bells[bell]),
		};
	}
	(void)pthread_mutex_unlock(&all.lock);
	if (bell == RX_BELL_NONE)
		return err_set(RCCLX_ERR_LIMIT,
			"this process has recorded calls in %u graphs and streams, and cannot in "
			"more",
			RX_BELLS - 1);
	return number != RX_GATE_NONE ? RCCLX_OK : none_left();
}

rcclx_result gates_take_cell(struct rcclx_comm *comm, struct cell_ref *ref_p)
{
	uint32_t number = RX_CELL_NONE;

	(void)pthread_mutex_lock(&all.lock);
	if (all.n_cells < RX_CELLS) {
		number = all.n_cells++;
		all.cells[number] = (struct cell_info){
			.comm = comm, .client = comm->client, .abort_ns = RX_FOREVER};
		*ref_p = (struct cell_ref){
			.number = number,
			.cell = &all.gates->cells[number],
			.address = address_of(&all.gates->cells[number]),
		};
	}
	(void)pthread_mutex_unlock(&all.lock);
	return number != RX_CELL_NONE
		       ? RCCLX_OK
		       : err_set(RCCLX_ERR_LIMIT,
				 "this process has made %u communicators with kernels of its own",
				 RX_CELLS - 1);
}

void gates_release(const struct rcclx_comm *comm)
{
	if (!atomic_load_explicit(&comm->client->gates.opened, memory_order_acquire))
		return;
	(void)pthread_mutex_lock(&all.lock);
	let_go(comm->client, comm);
	wake();
	(void)pthread_mutex_unlock(&all.lock);
}

void gates_orphan(const struct rcclx_comm *comm)
{
	if (!atomic_load_explicit(&comm->client->gates.opened, memory_order_acquire))
		return;
	(void)pthread_mutex_lock(&all.lock);
	for (uint32_t i = 1; i < all.n_bells; i++)
		if (all.bells[i].comm == comm)
			orphan(i);
	for (uint32_t i = 1; i < all.n_gates; i++)
		if (all.infos[i].comm == comm)
			all.infos[i].comm = NULL;
	for (uint32_t i = 1; i < all.n_cells; i++) {
		struct cell_info *info = &all.cells[i];

		if (info->comm != comm)
			continue;
		/* Those that are on their way may still meet their peers'. */
		info->comm = NULL;
		info->abort_ns = rx_deadline_ns(CELL_NS);
		all.abort_ns = rx_min_u64(all.abort_ns, info->abort_ns);
	}
	wake();
	(void)pthread_mutex_unlock(&all.lock);
}
