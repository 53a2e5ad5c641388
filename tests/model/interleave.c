/* SPDX-License-Identifier: MIT */
/*
 * The real rx_ring.c, all interleavings: a client submits N_OPS entries through a ring of two and
 * reaps N_OPS completions, a daemon takes and answers them, both sleep whenever they have nothing
 * to do. The two are coroutines; each atomic access, futex call and doorbell is a step, and a
 * depth-first search goes through every order of the steps.
 *
 * Stores go through a store buffer, as on x86-64: emptying one by one entry is a step of its own;
 * a seq_cst store empties it at once. (Payload is copied by memcpy and is seen at once. Orders
 * weaker than TSO are not explored: ThreadSanitizer checks those on tests/unit/test_ring.c.)
 *
 * A coroutine is deterministic, so where it stands is given by what it has read; each step adds to
 * that history. States are told apart by a hash of it, of the buffers and of the memory; a state
 * seen before is not explored again. Without it the search would not end in reasonable time.
 *
 * Three mutations must be found, or the search itself is at fault: seq_cst stores without their
 * fence, a daemon that ignores what rx_ring_prepare_sleep() says, a client that reads the event
 * word too late.
 */
#include "hook.h"

#include "../../shm/rx_ring.h"
#include "../../shm/rx_wake.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

/* AddressSanitizer looks for other things: no need to go through all that the plain build does. */
#ifdef __SANITIZE_ADDRESS__
#define N_OPS 2u
#else
#define N_OPS 3u
#endif
#define ENTRIES     2u
#define MEM_BYTES   1024u
#define STACK_BYTES 65536u
#define MAX_BUFFER  16u
#define MAX_DEPTH   4096u
#define SEEN_BITS   24u

enum mutation { MUTATE_NOTHING, NO_FENCE, NO_RECHECK, EVENT_LATE, MUTATION_N };
enum who { CLIENT, DAEMON, WHO_N };
enum wait { RUNNABLE, ON_FUTEX, ON_DOORBELL, FINISHED };

struct store {
	void *word;
	size_t bytes;
	uint64_t value;
};

struct fiber {
	ucontext_t context;
	enum wait wait;
	uint64_t history; /* hash of all it has read; every step changes it */
	uint32_t n_buffered;
	struct store buffer[MAX_BUFFER];
	struct rx_ring ring;
	_Alignas(64) char stack[STACK_BYTES];
};

/* One point of decision: who may move (bits: step of each, flush of each), who did last. */
struct choice {
	uint8_t enabled;
	uint8_t taken; /* bit number */
};

static struct {
	enum mutation mutation;
	ucontext_t scheduler;
	struct fiber fibers[WHO_N];
	enum who running;
	bool doorbell;
	const char *complaint;
	struct choice path[MAX_DEPTH];
	uint32_t depth;
	uint64_t *seen;
	uint64_t n_states;
	uint64_t n_runs;
} sim;

static _Alignas(64) uint8_t mem_s[MEM_BYTES];
static _Alignas(64) uint8_t mem_d[MEM_BYTES];

static uint64_t hash(uint64_t h, uint64_t x)
{
	h = (h ^ x) * 0x9e3779b97f4a7c15ull;
	return h ^ h >> 32;
}

static uint64_t hash_bytes(uint64_t h, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i += sizeof(uint64_t)) {
		uint64_t x = 0;

		memcpy(&x, p + i, sizeof(x));
		h = hash(h, x);
	}
	return h;
}

/* ---- what the coroutines see ---- */

static struct fiber *self(void)
{
	return &sim.fibers[sim.running];
}

/* Back to the scheduler; returns when this coroutine has been chosen to move. */
static void step(enum wait wait)
{
	struct fiber *fiber = self();

	fiber->wait = wait;
	swapcontext(&fiber->context, &sim.scheduler);
}

static void flush_one(struct fiber *fiber)
{
	memcpy(fiber->buffer[0].word, &fiber->buffer[0].value, fiber->buffer[0].bytes);
	fiber->n_buffered--;
	memmove(&fiber->buffer[0], &fiber->buffer[1], fiber->n_buffered * sizeof(struct store));
}

static void flush_all(struct fiber *fiber)
{
	while (fiber->n_buffered > 0)
		flush_one(fiber);
}

uint64_t hook_load(const void *word, size_t bytes)
{
	struct fiber *fiber = self();
	uint64_t value = 0;

	step(RUNNABLE);
	memcpy(&value, word, bytes);
	for (uint32_t i = 0; i < fiber->n_buffered; i++) {
		if (fiber->buffer[i].word == word)
			value = fiber->buffer[i].value;
	}
	fiber->history = hash(fiber->history, value);
	return value;
}

void hook_store(void *word, size_t bytes, uint64_t value, int order)
{
	struct fiber *fiber = self();

	step(RUNNABLE);
	if (fiber->n_buffered == MAX_BUFFER)
		flush_one(fiber);
	fiber->buffer[fiber->n_buffered++] = (struct store){word, bytes, value};
	if (order == memory_order_seq_cst && sim.mutation != NO_FENCE)
		flush_all(fiber);
	fiber->history = hash(fiber->history, value);
}

/* The kernel compares and enqueues in one step. */
int rx_futex_wait(const _Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns)
{
	uint32_t now = 0;

	(void)timeout_ns;
	step(RUNNABLE);
	memcpy(&now, (const void *)word, sizeof(now));
	self()->history = hash(self()->history, now);
	if (now == expected) {
		step(ON_FUTEX);
		self()->history = hash(self()->history, 4);
	}
	return 0;
}

/* The kernel has a full fence before it looks for sleepers. There is one futex here. */
void rx_futex_wake(const _Atomic uint32_t *word)
{
	(void)word;
	step(RUNNABLE);
	flush_all(self());
	self()->history = hash(self()->history, 1);
	for (unsigned int who = 0; who < WHO_N; who++) {
		if (sim.fibers[who].wait == ON_FUTEX)
			sim.fibers[who].wait = RUNNABLE;
	}
}

static void doorbell_ring(void)
{
	step(RUNNABLE);
	sim.doorbell = true;
	self()->history = hash(self()->history, 2);
}

static void doorbell_wait(void)
{
	step(ON_DOORBELL);
	sim.doorbell = false;
	self()->history = hash(self()->history, 3);
}

static void complain(const char *complaint)
{
	if (!sim.complaint)
		sim.complaint = complaint;
}

/* ---- the two programs ---- */

static void client_look(struct rx_ring *ring, uint64_t *n_reaped)
{
	bool late = sim.mutation == EVENT_LATE;
	uint32_t event = late ? 0 : rx_ring_event(ring);
	struct rx_cqe cqe = {0};

	if (rx_ring_reap(ring, &cqe)) {
		if (cqe.user_data != *n_reaped || cqe.peer_count != *n_reaped + 100)
			complain("a completion is wrong");
		(*n_reaped)++;
		return;
	}
	rx_ring_sleep(ring, late ? rx_ring_event(ring) : event, 0);
}

static void client_main(void)
{
	struct rx_ring *ring = &self()->ring;
	uint64_t n_sent = 0;
	uint64_t n_reaped = 0;

	while (n_reaped < N_OPS) {
		struct rx_sqe sqe = {.user_data = n_sent, .count = n_sent + 100};
		bool wake = false;

		if (n_sent < N_OPS && rx_ring_submit(ring, &sqe, &wake) == 0) {
			n_sent++;
			if (wake)
				doorbell_ring();
		} else {
			client_look(ring, &n_reaped);
		}
	}
	step(FINISHED);
}

static bool daemon_serve(struct rx_ring *ring, uint64_t *n_taken)
{
	struct rx_sqe sqe = {0};
	struct rx_cqe cqe = {0};
	uint64_t before = *n_taken;
	int r = 0;

	for (; (r = rx_ring_take(ring, &sqe)) == 1; (*n_taken)++) {
		if (sqe.user_data != *n_taken || sqe.count != *n_taken + 100)
			complain("an entry is wrong");
		cqe.user_data = sqe.user_data;
		cqe.peer_count = sqe.count;
		if (rx_ring_complete(ring, &cqe) != 0)
			complain("no room for a completion");
	}
	if (r < 0)
		complain("an index is called impossible");
	if (*n_taken == before)
		return false;
	rx_ring_publish_head(ring);
	rx_ring_announce(ring);
	return true;
}

static void daemon_main(void)
{
	struct rx_ring *ring = &self()->ring;
	uint64_t n_taken = 0;

	while (n_taken < N_OPS) {
		if (daemon_serve(ring, &n_taken))
			continue;
		if (rx_ring_prepare_sleep(ring) && sim.mutation != NO_RECHECK)
			continue;
		doorbell_wait();
		rx_ring_awake(ring);
	}
	step(FINISHED);
}

/* ---- the search ---- */

static void fiber_start(enum who who, void (*fn)(void))
{
	struct fiber *fiber = &sim.fibers[who];
	const struct rx_map s = {.addr = mem_s, .bytes = sizeof(mem_s)};
	const struct rx_map d = {.addr = mem_d, .bytes = sizeof(mem_d)};

	fiber->wait = RUNNABLE;
	fiber->history = 0;
	fiber->n_buffered = 0;
	if (rx_ring_init(&fiber->ring, &s, &d, ENTRIES) != 0)
		abort();
	getcontext(&fiber->context);
	fiber->context.uc_stack.ss_sp = fiber->stack;
	fiber->context.uc_stack.ss_size = sizeof(fiber->stack);
	fiber->context.uc_link = NULL;
	makecontext(&fiber->context, fn, 0);
	/* Up to its first step. */
	sim.running = who;
	swapcontext(&sim.scheduler, &fiber->context);
}

static uint8_t enabled_moves(void)
{
	unsigned int moves = 0;

	for (unsigned int who = 0; who < WHO_N; who++) {
		const struct fiber *fiber = &sim.fibers[who];

		if (fiber->wait == RUNNABLE || (fiber->wait == ON_DOORBELL && sim.doorbell))
			moves |= 1u << who;
		if (fiber->n_buffered > 0)
			moves |= 1u << (WHO_N + who);
	}
	return (uint8_t)moves;
}

static void move(unsigned int bit)
{
	if (bit >= WHO_N) {
		flush_one(&sim.fibers[bit - WHO_N]);
		return;
	}
	sim.running = (enum who)bit;
	swapcontext(&sim.scheduler, &sim.fibers[bit].context);
}

static uint64_t state_hash(void)
{
	uint64_t h = hash(1, sim.doorbell);

	h = hash_bytes(h, mem_s, sizeof(mem_s));
	h = hash_bytes(h, mem_d, sizeof(mem_d));
	for (unsigned int who = 0; who < WHO_N; who++) {
		const struct fiber *fiber = &sim.fibers[who];

		h = hash(h, fiber->history);
		h = hash(h, fiber->wait);
		for (uint32_t i = 0; i < fiber->n_buffered; i++) {
			h = hash(h, (uintptr_t)fiber->buffer[i].word);
			h = hash(h, fiber->buffer[i].value);
		}
	}
	return h | 1;
}

/* Enters the state; true when it was there already. */
static bool seen_before(uint64_t h)
{
	const uint64_t mask = (1ull << SEEN_BITS) - 1;
	uint64_t i = h & mask;

	for (; sim.seen[i] != 0; i = (i + 1) & mask) {
		if (sim.seen[i] == h)
			return true;
	}
	sim.seen[i] = h;
	if (++sim.n_states > mask / 2)
		complain("more states than the table was made for");
	return false;
}

static unsigned int lowest_bit(unsigned int bits)
{
	return (unsigned int)__builtin_ctz(bits);
}

/* One run: the first @replay moves as in the path, then always the first that is possible. */
static void run_once(uint32_t replay)
{
	memset(mem_s, 0, sizeof(mem_s));
	memset(mem_d, 0, sizeof(mem_d));
	sim.doorbell = false;
	fiber_start(CLIENT, client_main);
	fiber_start(DAEMON, daemon_main);
	for (sim.depth = 0; sim.depth < MAX_DEPTH && !sim.complaint; sim.depth++) {
		struct choice *choice = &sim.path[sim.depth];

		if (sim.depth >= replay) {
			if (seen_before(state_hash()))
				return;
			choice->enabled = enabled_moves();
			if (choice->enabled == 0)
				break;
			choice->taken = (uint8_t)lowest_bit(choice->enabled);
		}
		move(choice->taken);
	}
	if (sim.depth == MAX_DEPTH)
		complain("the run does not end");
	else if (sim.fibers[CLIENT].wait != FINISHED || sim.fibers[DAEMON].wait != FINISHED)
		complain("a wake-up was lost");
}

/* Turns the path to the next untried move; false when there is none. */
static bool backtrack(void)
{
	while (sim.depth > 0) {
		struct choice *choice = &sim.path[--sim.depth];
		unsigned int rest = choice->enabled & ~((2u << choice->taken) - 1);

		if (rest) {
			choice->taken = (uint8_t)lowest_bit(rest);
			sim.depth++;
			return true;
		}
	}
	return false;
}

static const char *search(enum mutation mutation)
{
	uint32_t replay = 0;

	memset(sim.seen, 0, sizeof(uint64_t) << SEEN_BITS);
	sim.mutation = mutation;
	sim.complaint = NULL;
	sim.n_states = 0;
	sim.n_runs = 0;
	do {
		run_once(replay);
		sim.n_runs++;
		if (sim.complaint)
			return sim.complaint;
		if (!backtrack())
			return NULL;
		replay = sim.depth;
	} while (true);
}

#if defined(__SANITIZE_THREAD__)
#define NO_COROUTINES true
#elif defined(__has_feature)
#define NO_COROUTINES __has_feature(thread_sanitizer)
#else
#define NO_COROUTINES false
#endif

int main(void)
{
	static const char *const names[MUTATION_N] = {
		"rx_ring.c", "without fences", "without the second look", "event read too late"};
	int n_failed = 0;

	if (NO_COROUTINES) {
		printf("SKIP: ThreadSanitizer does not follow swapcontext()\n");
		return 77;
	}
	sim.seen = calloc(1ull << SEEN_BITS, sizeof(uint64_t));
	if (!sim.seen)
		return 99;
	for (unsigned int i = 0; i < MUTATION_N; i++) {
		const char *complaint = search((enum mutation)i);
		/* The mutations must end as the models do, not with some other complaint. */
		bool ok = i == MUTATE_NOTHING
				  ? complaint == NULL
				  : complaint && strcmp(complaint, "a wake-up was lost") == 0;

		printf("%s: %s: %s (%ju states, %ju runs)\n", ok ? "PASS" : "FAIL", names[i],
			complaint ? complaint : "every order is right", (uintmax_t)sim.n_states,
			(uintmax_t)sim.n_runs);
		n_failed += !ok;
	}
	free(sim.seen);
	return n_failed > 0;
}
