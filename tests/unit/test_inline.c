/* SPDX-License-Identifier: MIT */
/*
 * The inline executor with ranks as threads on one real arena. What the daemon and the connection
 * provide is replaced by a table of regions here; the arena, the waiting and the algorithms are the
 * product's. Run under ThreadSanitizer it checks the ordering of all of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../../client/err.h"
#include "../../client/import.h"
#include "../../client/inline/inline.h"
#include "../../client/mem.h"
#include "../../kernels/coll_plan.h"
#include "../../shm/rx_clock.h"
#include "../../shm/rx_memfd.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- stand-ins for the connection ---- */

static uint8_t *g_pool; /* "registered" memory; everything else is private */
static uint64_t g_pool_bytes;

bool mem_find(struct rcclx_client *client, const void *ptr, uint64_t bytes, struct mem_ref *ref_p)
{
	uint64_t offset = (uint64_t)((const uint8_t *)ptr - g_pool);

	(void)client;
	if ((const uint8_t *)ptr < g_pool || !rx_range_ok(offset, bytes, g_pool_bytes))
		return false;
	*ref_p = (struct mem_ref){.region_id = 1, .offset = offset};
	return true;
}

/* Not NULL: rank 2 dies, which the others notice and free their memory, before rank 1 looks. */
static struct rx_fabric_ctl *g_page_of_loss;

rcclx_result import_find(
	struct rcclx_comm *comm, uint64_t region_id, uint64_t offset, uint64_t bytes, void **addr_p)
{
	if (g_page_of_loss && comm->rank == 1) {
		atomic_store(&g_page_of_loss->status[2], RX_MEMBER_DEAD);
		return RCCLX_ERR_INVALID;
	}
	if (region_id != 1 || !rx_range_ok(offset, bytes, g_pool_bytes))
		return RCCLX_ERR_INVALID;
	*addr_p = g_pool + offset;
	return RCCLX_OK;
}

rcclx_result err_set(rcclx_result result, const char *format, ...)
{
	(void)format;
	return result;
}

rcclx_result comm_fail(struct rcclx_comm *comm, rcclx_result result)
{
	(void)comm;
	if (g_page_of_loss)
		atomic_store(&g_page_of_loss->abort, RX_ABORT_ERROR);
	return result;
}

rcclx_result comm_fault(struct rcclx_comm *comm, uint32_t peer, const struct rx_op_sig *sig)
{
	const struct rx_fabric_ctl *ctl = comm->fabric.ctl;

	(void)sig;
	if (peer < comm->n_ranks && atomic_load(&ctl->status[peer]) != RX_MEMBER_ALIVE)
		return RCCLX_ERR_PEER_LOST;
	return atomic_load(&ctl->abort) ? RCCLX_ERR_ABORTED : RCCLX_OK;
}

bool comm_daemon_lost(struct rcclx_comm *comm)
{
	(void)comm;
	return false;
}

void comm_tell_over_budget(struct rcclx_comm *comm)
{
	(void)comm;
}

void comm_stall_hint(struct rcclx_comm *comm)
{
	(void)comm;
}

void comm_give_up(struct rcclx_comm *comm, enum rx_abort_reason reason)
{
	(void)comm;
	(void)reason;
}

void comm_describe(const struct rx_op_sig *sig, char *text, size_t bytes)
{
	(void)sig;
	if (bytes > 0)
		text[0] = '\0';
}

rcclx_result comm_mismatch(struct rcclx_comm *comm, const struct rx_op_sig *mine, uint32_t peer,
	const struct rx_op_sig *theirs)
{
	(void)comm;
	(void)mine;
	(void)peer;
	(void)theirs;
	return RCCLX_ERR_MISMATCH;
}

/* ---- one communicator of threads ---- */

struct fixture {
	struct rx_map ctl;
	struct rx_map arena;
	struct rcclx_comm comms[RX_MAX_RANKS];
	uint32_t n_ranks;
	struct rx_fabric_ctl *page;
};

static bool g_single; /* ranks read each other's memory, as processes do */

static void allow_single(struct fixture *f)
{
	f->page->one_user = 1;
	for (uint32_t r = 0; r < f->n_ranks; r++) {
		f->comms[r].reach = (struct reach){.state = RX_REACH_OFFERED, .always = true};
		f->page->pid[r] = (uint32_t)getpid();
	}
}

static void check_single(const struct fixture *f, enum rx_reach_state state)
{
	for (uint32_t r = 0; g_single && r < f->n_ranks; r++)
		assert_int_equal(f->comms[r].reach.state, state);
}

static void fixture_open(struct fixture *f, uint32_t n_ranks)
{
	int fd = -1;
	struct rx_fabric_ctl *ctl = NULL;

	memset(f, 0, sizeof(*f));
	f->n_ranks = n_ranks;
	assert_int_equal(rx_memfd_new("ctl", 4096, RX_MEMFD_SHARED, &fd), 0);
	assert_int_equal(rx_map_open(&f->ctl, fd, 4096, RX_MAP_RW), 0);
	close(fd);
	ctl = f->ctl.addr;
	ctl->n_ranks = n_ranks;
	ctl->op_timeout_ns = RX_FOREVER;
	ctl->tuning = *rx_tuning_default();
	ctl->cores_shared = n_ranks > 2;
	f->page = ctl;
	assert_int_equal(
		rx_memfd_new("arena", rx_fabric_arena_bytes(n_ranks), RX_MEMFD_SHARED, &fd), 0);
	assert_int_equal(rx_map_open(&f->arena, fd, rx_fabric_arena_bytes(n_ranks), RX_MAP_RW), 0);
	close(fd);
	for (uint32_t r = 0; r < n_ranks; r++) {
		struct rcclx_comm *comm = &f->comms[r];

		comm->rank = r;
		comm->n_ranks = n_ranks;
		comm->yield = n_ranks > 2;
		comm->spin_ns = 20000;
		/* Near the wrap, so that it happens in the test. */
		comm->seq = UINT32_MAX - 5;
		comm->step = UINT32_MAX - 20;
		assert_int_equal(rx_fabric_init(&comm->fabric, &f->ctl, &f->arena, n_ranks), 0);
		atomic_store(&comm->fabric.lines[r].entry[0].seq, comm->seq);
		atomic_store(&comm->fabric.lines[r].entry[1].seq, comm->seq);
		atomic_store(&comm->fabric.lines[r].progress.step, comm->step);
	}
	if (g_single)
		allow_single(f);
}

static void fixture_close(struct fixture *f)
{
	rx_map_close(&f->ctl);
	rx_map_close(&f->arena);
}

/* ---- expectations ---- */

/* What rank has at element i of its input. */
static int32_t value(uint32_t rank, uint64_t i, uint32_t seed)
{
	return (int32_t)(i * 2654435761u + rank * 40503u + seed * 97u);
}

static uint64_t v_count(uint64_t base, uint32_t from, uint32_t to)
{
	return base == 0 ? 0 : base - 1 + (from * 3 + to * 5) % 4;
}

struct job {
	struct rcclx_comm *comm;
	uint8_t coll;
	uint32_t root;
	uint64_t count;
	bool registered;
	bool in_place;
	uint32_t seed;
	uint32_t misalign;
	uint64_t wrong;
	rcclx_result result;
	/* variable collectives */
	uint64_t counts[4][RX_MAX_RANKS];
	struct inline_call call;
	int32_t *in;
	int32_t *out;
	uint64_t n_in;
	uint64_t n_out;
};

static bool is_v(uint8_t coll)
{
	return coll == RX_ALL_GATHER_V || coll == RX_REDUCE_SCATTER_V || coll == RX_ALL_TO_ALL_V;
}

/* Fill in counts, sizes of both buffers. */
static void job_shape(struct job *j)
{
	uint32_t n = j->comm->n_ranks;
	uint32_t me = j->comm->rank;
	uint64_t displ[2] = {0, 0};

	j->n_in = j->count;
	j->n_out = j->count;
	switch (j->coll) {
	case RX_ALL_GATHER:
	case RX_GATHER:
		j->n_out = n * j->count;
		break;
	case RX_REDUCE_SCATTER:
	case RX_SCATTER:
		j->n_in = n * j->count;
		break;
	case RX_ALL_TO_ALL:
		j->n_in = j->n_out = n * j->count;
		break;
	default:
		break;
	}
	if (!is_v(j->coll))
		return;
	for (uint32_t p = 0; p < n; p++) {
		uint64_t out = v_count(j->count, j->coll == RX_ALL_TO_ALL_V ? me : 0, p);
		uint64_t in = v_count(j->count, j->coll == RX_ALL_TO_ALL_V ? p : 0,
			j->coll == RX_ALL_TO_ALL_V ? me : p);

		j->counts[0][p] = out;
		j->counts[1][p] = displ[0];
		j->counts[2][p] = in;
		j->counts[3][p] = displ[1];
		displ[0] += out;
		displ[1] += in;
	}
	j->n_in = j->coll == RX_ALL_GATHER_V ? j->counts[2][me] : displ[0];
	j->n_out = j->coll == RX_REDUCE_SCATTER_V ? j->counts[0][me] : displ[1];
}

static int32_t fold(const struct job *j, uint64_t i)
{
	uint32_t sum = 0;

	for (uint32_t r = 0; r < j->comm->n_ranks; r++)
		sum += (uint32_t)value(r, i, j->seed);
	return (int32_t)sum;
}

/* What must stand at element i of the output. */
static int32_t expected(const struct job *j, uint64_t i)
{
	uint32_t me = j->comm->rank;
	uint64_t c = j->count;
	uint64_t first = 0;
	uint32_t p = 0;

	switch (j->coll) {
	case RX_ALL_REDUCE:
	case RX_REDUCE:
		return fold(j, i);
	case RX_REDUCE_SCATTER:
		return fold(j, me * c + i);
	case RX_REDUCE_SCATTER_V:
		return fold(j, j->counts[1][me] + i);
	case RX_ALL_GATHER:
	case RX_GATHER:
		return value((uint32_t)(i / c), i % c, j->seed);
	case RX_ALL_TO_ALL:
		return value((uint32_t)(i / c), me * c + i % c, j->seed);
	case RX_BROADCAST:
		return value(j->root, i, j->seed);
	case RX_SCATTER:
		return value(j->root, me * c + i, j->seed);
	default:
		break;
	}
	while (p + 1 < j->comm->n_ranks && i >= j->counts[3][p] + j->counts[2][p])
		p++;
	i -= j->counts[3][p];
	if (j->coll == RX_ALL_TO_ALL_V)
		for (uint32_t q = 0; q < me; q++)
			first += v_count(c, p, q);
	return value(p, first + i, j->seed);
}

static bool has_output(const struct job *j)
{
	return (j->coll != RX_REDUCE && j->coll != RX_GATHER) || j->comm->rank == j->root;
}

/* Both buffers, for NCCL's in-place rules one inside the other. */
static void job_buffers(struct job *j, uint8_t *base)
{
	uint32_t me = j->comm->rank;
	uint64_t bytes = 4 * (j->n_in + j->n_out) + 128;

	memset(base, 0xee, bytes);
	j->in = (int32_t *)(void *)(base + 4ull * j->misalign);
	j->out = j->in + j->n_in + 1;
	if (j->in_place && j->n_out >= j->n_in) {
		j->out = j->in;
		if (j->coll == RX_ALL_GATHER || j->coll == RX_GATHER)
			j->in = j->out + me * j->count;
		if (j->coll == RX_ALL_GATHER_V)
			j->in = j->out + j->counts[3][me];
	} else if (j->in_place) {
		uint64_t first = j->coll == RX_REDUCE_SCATTER_V ? j->counts[1][me] : me * j->count;

		j->out = j->in + first;
	}
	for (uint64_t i = 0; i < j->n_in; i++)
		j->in[i] = value(me, i, j->seed);
}

static void *job_run(void *arg)
{
	struct job *j = arg;

	j->result = inline_run(j->comm, &j->call);
	if (!has_output(j) || j->result != RCCLX_OK)
		return NULL;
	for (uint64_t i = 0; i < j->n_out; i++)
		j->wrong += j->out[i] != expected(j, i);
	/* Nothing may be written behind the output. */
	if (!j->in_place)
		j->wrong += j->out[j->n_out] != (int32_t)0xeeeeeeee;
	return NULL;
}

static void job_call(struct job *j)
{
	j->call = (struct inline_call){
		.sig = {.coll = j->coll,
			.dtype = RX_INT32,
			.op = RX_SUM,
			.root = j->root,
			.count = is_v(j->coll) ? 0 : j->count},
		.send = j->in,
		.recv = has_output(j) ? j->out : NULL,
		.deadline_ns = rx_deadline_ns(60 * RX_NS_PER_SEC),
		.v = {j->counts[0], j->counts[1], j->counts[2], j->counts[3]},
	};
}

#define POOL_RANK_BYTES (8ull << 20)

/* One operation on all ranks, each in a thread. */
static void run_all(struct fixture *f, const struct job *like, uint8_t *pool)
{
	static struct job jobs[RX_MAX_RANKS];
	pthread_t threads[RX_MAX_RANKS];

	for (uint32_t r = 0; r < f->n_ranks; r++) {
		jobs[r] = *like;
		jobs[r].comm = &f->comms[r];
		job_shape(&jobs[r]);
		assert_true(4 * (jobs[r].n_in + jobs[r].n_out) + 128 <= POOL_RANK_BYTES);
		job_buffers(&jobs[r], pool + r * POOL_RANK_BYTES);
		job_call(&jobs[r]);
	}
	for (uint32_t r = 0; r < f->n_ranks; r++)
		assert_int_equal(pthread_create(&threads[r], NULL, job_run, &jobs[r]), 0);
	for (uint32_t r = 0; r < f->n_ranks; r++)
		assert_int_equal(pthread_join(threads[r], NULL), 0);
	for (uint32_t r = 0; r < f->n_ranks; r++) {
		if (jobs[r].wrong != 0 || jobs[r].result != RCCLX_OK)
			print_error("%s ranks %u rank %u root %u count %llu registered %d in place "
				    "%d: result %d, %llu wrong\n",
				rx_coll_name(like->coll), f->n_ranks, r, like->root,
				(unsigned long long)like->count, like->registered, like->in_place,
				jobs[r].result, (unsigned long long)jobs[r].wrong);
		assert_int_equal(jobs[r].result, RCCLX_OK);
		assert_int_equal(jobs[r].wrong, 0);
	}
}

static void sweep(uint32_t n_ranks, const uint64_t *counts, size_t n_counts)
{
	static const uint8_t colls[] = {RX_ALL_REDUCE, RX_ALL_GATHER, RX_REDUCE_SCATTER,
		RX_ALL_TO_ALL, RX_BROADCAST, RX_REDUCE, RX_GATHER, RX_SCATTER, RX_ALL_GATHER_V,
		RX_REDUCE_SCATTER_V, RX_ALL_TO_ALL_V};
	struct fixture f;
	uint8_t *private = calloc(n_ranks, POOL_RANK_BYTES);
	uint32_t seed = n_ranks;

	g_pool_bytes = n_ranks * POOL_RANK_BYTES;
	g_pool = calloc(n_ranks, POOL_RANK_BYTES);
	assert_non_null(private);
	assert_non_null(g_pool);
	fixture_open(&f, n_ranks);
	for (size_t c = 0; c < n_counts; c++) {
		for (size_t k = 0; k < RX_ARRAY_SIZE(colls); k++) {
			for (uint32_t variant = 0; variant < 4; variant++) {
				struct job like = {
					.coll = colls[k],
					.root = seed % n_ranks,
					.count = counts[c],
					.registered = variant & 1,
					.in_place = (variant & 2) && colls[k] != RX_ALL_TO_ALL &&
						    colls[k] != RX_ALL_TO_ALL_V,
					.misalign = seed % 16,
					.seed = seed,
				};

				run_all(&f, &like, like.registered ? g_pool : private);
				seed++;
			}
		}
	}
	check_single(&f, RX_REACH_PROVEN);
	fixture_close(&f);
	free(private);
	free(g_pool);
	g_pool = NULL;
}

/* ---- one operation right after the other, no rendezvous of the test's own between them ---- */

#define BURST_OPS 400u

struct burst {
	struct rcclx_comm *comm;
	uint8_t *private;
	uint64_t wrong;
	rcclx_result result;
};

static uint32_t mix(uint32_t x)
{
	x = (x ^ (x >> 16)) * 0x7feb352du;
	x = (x ^ (x >> 15)) * 0x846ca68bu;
	return x ^ (x >> 16);
}

/* Op @i, the same on all ranks but for the memory. */
static void burst_job(const struct burst *b, uint32_t i, struct job *j)
{
	static const uint32_t counts[] = {0, 1, 5, 24, 200, 1024, 1500, 9000, 40000};
	uint32_t draw = mix(i);
	uint8_t *base = b->private;

	*j = (struct job){
		.comm = b->comm,
		.coll = (uint8_t)(RX_ALL_REDUCE + draw % 8),
		.root = (draw >> 8) % b->comm->n_ranks,
		.count = counts[(draw >> 16) % RX_ARRAY_SIZE(counts)],
		.seed = i,
	};
	/* All registered, all private, or some of each. */
	if (i % 3 == 0 || (i % 3 == 1 && b->comm->rank == 0))
		base = g_pool + b->comm->rank * POOL_RANK_BYTES;
	job_shape(j);
	job_buffers(j, base);
	job_call(j);
}

static void *burst_run(void *arg)
{
	struct burst *b = arg;
	struct job *j = malloc(sizeof(*j));

	for (uint32_t i = 0; j != NULL && i < BURST_OPS && b->result == RCCLX_OK; i++) {
		burst_job(b, i, j);
		job_run(j);
		b->wrong += j->wrong;
		b->result = j->result;
	}
	free(j);
	return NULL;
}

static void burst(uint32_t n_ranks)
{
	struct fixture f;
	struct burst bursts[RX_MAX_RANKS];
	pthread_t threads[RX_MAX_RANKS];

	g_pool_bytes = n_ranks * POOL_RANK_BYTES;
	g_pool = calloc(n_ranks, POOL_RANK_BYTES);
	assert_non_null(g_pool);
	fixture_open(&f, n_ranks);
	for (uint32_t r = 0; r < n_ranks; r++) {
		bursts[r] = (struct burst){.comm = &f.comms[r]};
		bursts[r].private = malloc(POOL_RANK_BYTES);
		assert_non_null(bursts[r].private);
		assert_int_equal(pthread_create(&threads[r], NULL, burst_run, &bursts[r]), 0);
	}
	for (uint32_t r = 0; r < n_ranks; r++) {
		assert_int_equal(pthread_join(threads[r], NULL), 0);
		assert_int_equal(bursts[r].result, RCCLX_OK);
		assert_int_equal(bursts[r].wrong, 0);
		free(bursts[r].private);
	}
	fixture_close(&f);
	free(g_pool);
	g_pool = NULL;
}

static void test_burst(void **state)
{
	(void)state;
	burst(2);
	burst(3);
	burst(6);
}

static const uint64_t sizes[] = {
	0, 1, 2, 3, 7, 24, 25, 100, 511, 512, 513, 1000, 1025, 8192, 16384, 16385, 20000};

static void test_one_rank(void **state)
{
	(void)state;
	sweep(1, sizes, RX_ARRAY_SIZE(sizes));
}

static void test_two_ranks(void **state)
{
	static const uint64_t large[] = {65536, 200001};

	(void)state;
	sweep(2, sizes, RX_ARRAY_SIZE(sizes));
	sweep(2, large, RX_ARRAY_SIZE(large));
}

static void test_odd_ranks(void **state)
{
	(void)state;
	sweep(3, sizes, RX_ARRAY_SIZE(sizes));
	sweep(5, sizes + 4, 8);
	sweep(7, sizes + 4, 6);
}

static void test_many_ranks(void **state)
{
	static const uint64_t few[] = {1, 33, 700, 5000};

	(void)state;
	sweep(8, few, RX_ARRAY_SIZE(few));
	sweep(16, few, RX_ARRAY_SIZE(few));
}

static void test_single_copy(void **state)
{
	static const uint64_t large[] = {5000, 65536, 200001};

	(void)state;
	g_single = true;
	sweep(2, sizes, RX_ARRAY_SIZE(sizes));
	sweep(2, large, RX_ARRAY_SIZE(large));
	sweep(3, sizes + 10, 7);
	sweep(7, sizes + 12, 3);
	burst(2);
	burst(5);
	g_single = false;
}

static void test_no_single_copy_among_users(void **state)
{
	uint8_t *private = calloc(2, POOL_RANK_BYTES);
	const struct job like = {.coll = RX_ALL_GATHER, .count = 20000, .seed = 5};
	struct fixture f;

	(void)state;
	assert_non_null(private);
	g_single = true;
	fixture_open(&f, 2);
	f.page->one_user = 0;
	run_all(&f, &like, private);
	run_all(&f, &like, private);
	check_single(&f, RX_REACH_NO);
	for (uint32_t r = 0; r < 2; r++)
		assert_int_equal(f.comms[r].fabric.lines[r].proof.at, 0);
	fixture_close(&f);
	g_single = false;
	free(private);
}

/* A rank that is not where it was: a pid of another process, or of none. */
static void test_single_copy_refused(void **state)
{
	static const uint8_t colls[] = {
		RX_ALL_GATHER, RX_ALL_TO_ALL, RX_ALL_GATHER_V, RX_BROADCAST, RX_SCATTER};
	uint8_t *private = calloc(3, POOL_RANK_BYTES);
	struct fixture f;

	(void)state;
	assert_non_null(private);
	g_single = true;
	for (uint32_t i = 0; i < 3 * RX_ARRAY_SIZE(colls); i++) {
		struct job like = {.coll = colls[i / 3], .count = 20000, .seed = i};

		fixture_open(&f, 3);
		run_all(&f, &like, private);
		check_single(&f, RX_REACH_PROVEN);
		run_all(&f, &like, private);
		check_single(&f, RX_REACH_PROVEN);
		if (i % 3 == 0)
			f.page->pid[0] = INT32_MAX;
		else if (i % 3 == 1)
			f.page->pid[0] = (uint32_t)getppid();
		else
			f.comms[0].reach.nonce[1]++;
		run_all(&f, &like, private);
		check_single(&f, RX_REACH_NO);
		run_all(&f, &like, private);
		fixture_close(&f);
	}
	g_single = false;
	free(private);
}

static void test_mismatch_is_seen_by_all(void **state)
{
	struct fixture f;
	pthread_t threads[3];
	struct job jobs[3];
	int32_t in[3][64];
	int32_t out[3][64];

	(void)state;
	fixture_open(&f, 3);
	for (int round = 0; round < 50; round++) {
		memset(out, 0x55, sizeof(out));
		for (uint32_t r = 0; r < 3; r++) {
			jobs[r] = (struct job){.comm = &f.comms[r],
				.coll = RX_ALL_REDUCE,
				.count = r == 1 ? 8 : 9,
				.in = in[r],
				.out = out[r]};
			job_call(&jobs[r]);
			jobs[r].n_out = 0;
			pthread_create(&threads[r], NULL, job_run, &jobs[r]);
		}
		for (uint32_t r = 0; r < 3; r++) {
			pthread_join(threads[r], NULL);
			assert_int_equal(jobs[r].result, RCCLX_ERR_MISMATCH);
			assert_int_equal(out[r][0], 0x55555555);
		}
	}
	fixture_close(&f);
}

/* Rank 0's memory is not there any more, since rank 2 died: that is the error, not an argument. */
static void test_memory_gone_with_a_third(void **state)
{
	static const uint8_t colls[] = {RX_ALL_REDUCE, RX_REDUCE_SCATTER, RX_REDUCE_SCATTER_V};
	static struct job jobs[3];
	struct fixture f;

	(void)state;
	g_pool_bytes = 3 * POOL_RANK_BYTES;
	g_pool = calloc(3, POOL_RANK_BYTES);
	assert_non_null(g_pool);
	for (uint32_t k = 0; k < RX_ARRAY_SIZE(colls); k++) {
		pthread_t threads[3];
		uint32_t status;

		fixture_open(&f, 3);
		g_page_of_loss = f.page;
		for (uint32_t r = 0; r < 3; r++) {
			jobs[r] = (struct job){.comm = &f.comms[r],
				.coll = colls[k],
				.count = 200000,
				.registered = true};
			job_shape(&jobs[r]);
			job_buffers(&jobs[r], g_pool + r * POOL_RANK_BYTES);
			job_call(&jobs[r]);
			pthread_create(&threads[r], NULL, job_run, &jobs[r]);
		}
		/* Whatever it says, the others need not wait for it. */
		pthread_join(threads[1], NULL);
		atomic_store(&f.page->abort, RX_ABORT_ERROR);
		pthread_join(threads[0], NULL);
		pthread_join(threads[2], NULL);
		/* The next test needs all this put away, also when this one fails. */
		status = atomic_load(&f.page->status[2]);
		g_page_of_loss = NULL;
		fixture_close(&f);
		assert_int_equal(jobs[1].result, RCCLX_ERR_PEER_LOST);
		assert_int_equal(status, RX_MEMBER_DEAD);
	}
	free(g_pool);
	g_pool = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory_gone_with_a_third),
		cmocka_unit_test(test_one_rank),
		cmocka_unit_test(test_two_ranks),
		cmocka_unit_test(test_odd_ranks),
		cmocka_unit_test(test_many_ranks),
		cmocka_unit_test(test_single_copy),
		cmocka_unit_test(test_no_single_copy_among_users),
		cmocka_unit_test(test_single_copy_refused),
		cmocka_unit_test(test_burst),
		cmocka_unit_test(test_mismatch_is_seen_by_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
