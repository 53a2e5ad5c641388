/* SPDX-License-Identifier: MIT */
/*
 * librcclx: collectives through the node's rcclxd. See librcclx(3).
 *
 * Structs that may grow start with their size: fill them with their initialiser macro. Every
 * function is safe to call from several threads unless it says otherwise; none is
 * async-signal-safe. After fork() only the parent may use what existed before the fork: in the
 * child every call returns RCCLX_ERR_FORKED and changes nothing.
 */
#ifndef RCCLX_H
#define RCCLX_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RCCLX_VERSION_MAJOR 0
#define RCCLX_VERSION_MINOR 1
#define RCCLX_VERSION_PATCH 0
#define RCCLX_VERSION                                                                              \
	(RCCLX_VERSION_MAJOR * 10000 + RCCLX_VERSION_MINOR * 100 + RCCLX_VERSION_PATCH)

#define RCCLX_API __attribute__((visibility("default")))

/** Largest number of ranks of a communicator on one node. */
#define RCCLX_MAX_RANKS 64
/** No limit, where a function takes a timeout in nanoseconds. */
#define RCCLX_FOREVER         UINT64_MAX
#define RCCLX_UNIQUE_ID_BYTES 128
/** Color of ranks that are in no part of rcclx_comm_split(). */
#define RCCLX_NO_COLOR (-1)

struct rcclx_client; /* a connection to rcclxd */
struct rcclx_comm;   /* one rank's membership in a communicator */
struct rcclx_mem;    /* registered memory */
struct rcclx_op;     /* an asynchronous operation */

typedef int32_t rcclx_result;

enum {
	RCCLX_OK = 0,
	RCCLX_ERR_INVALID = 1,     /* an argument is wrong */
	RCCLX_ERR_NO_DAEMON = 2,   /* nobody answers at the socket */
	RCCLX_ERR_DAEMON_LOST = 3, /* the daemon ended the session or died */
	RCCLX_ERR_PEER_LOST = 4,   /* a rank died or left; the communicator is unusable */
	RCCLX_ERR_MISMATCH = 5,    /* ranks called with different arguments; nothing was moved */
	RCCLX_ERR_ABORTED = 6,     /* the communicator was aborted */
	RCCLX_ERR_TIMEOUT = 7,     /* not yet, or not within the time given */
	RCCLX_ERR_LIMIT = 8,       /* a limit of the daemon is reached */
	RCCLX_ERR_NO_MEMORY = 9,   /* out of memory or file descriptors */
	RCCLX_ERR_DENIED = 10,     /* not permitted */
	RCCLX_ERR_VERSION = 11,    /* library and daemon do not understand each other */
	RCCLX_ERR_FORKED = 12,     /* called in a forked child */
	RCCLX_ERR_BUSY = 13,       /* still in use */
	RCCLX_ERR_SYSTEM = 14,     /* a system call failed */
	RCCLX_ERR_INTERNAL = 15,   /* a bug in rcclx */
	RCCLX_ERR_N
};

/* Data types; the numbers are those of ncclDataType_t. */
enum {
	RCCLX_INT8 = 0,
	RCCLX_UINT8 = 1,
	RCCLX_INT32 = 2,
	RCCLX_UINT32 = 3,
	RCCLX_INT64 = 4,
	RCCLX_UINT64 = 5,
	RCCLX_FLOAT16 = 6,
	RCCLX_FLOAT32 = 7,
	RCCLX_FLOAT64 = 8,
	RCCLX_BFLOAT16 = 9,
	RCCLX_FLOAT8E4M3 = 10, /* OCP */
	RCCLX_FLOAT8E5M2 = 11, /* OCP */
};

/* Reductions; the numbers are those of ncclRedOp_t. */
enum {
	RCCLX_SUM = 0,
	RCCLX_PROD = 1,
	RCCLX_MAX = 2,
	RCCLX_MIN = 3,
	RCCLX_AVG = 4,
	RCCLX_PREMUL_SUM = 5, /* needs rcclx_call_config.scalar */
};

/** A communicator's name before it exists: whoever has it may join. Plain bytes, no pointers. */
struct rcclx_unique_id {
	uint8_t bytes[RCCLX_UNIQUE_ID_BYTES];
};

/* ---- errors and versions ---- */

/**
 * rcclx_version() - version of the library that runs
 *
 * Thread safety: any thread.
 * Return: RCCLX_VERSION of the library, major * 10000 + minor * 100 + patch.
 * Since: 0.1
 */
RCCLX_API uint32_t rcclx_version(void);

/**
 * rcclx_strerror() - short name of a result
 * @result: any value
 *
 * Thread safety: any thread.
 * Return: a static string such as "peer lost"; "unknown result" for other values.
 * Since: 0.1
 */
RCCLX_API const char *rcclx_strerror(rcclx_result result);

/**
 * rcclx_last_error() - the sentence that explains this thread's last failed call
 *
 * Says what was wrong, what was expected and what to do, with ranks, pids and sizes where they
 * matter.
 *
 * Thread safety: any thread; each has its own text, valid until its next failing call.
 * Return: text, never NULL; empty when no call has failed in this thread.
 * Since: 0.1
 */
RCCLX_API const char *rcclx_last_error(void);

/* ---- connection ---- */

struct rcclx_connect_config {
	uint32_t size;       /* sizeof(struct rcclx_connect_config) */
	uint32_t sq_entries; /* half of the operations that the daemon has at a time, others wait
				in this process; power of two, 0: the daemon's default */
	uint64_t timeout_ns; /* for connecting and the first answer; 0: 5 seconds */
	const char *program; /* name shown to operators; NULL: the process's own */
};

#define RCCLX_CONNECT_CONFIG_INIT                                                                  \
	{                                                                                          \
		sizeof(struct rcclx_connect_config), 0, 0, NULL                                    \
	}

/**
 * rcclx_connect() - connect to the node's daemon
 * @socket_path: path of its socket; NULL: $RCCLX_SOCKET and no other where that is set, else
 *               /run/rcclx/rcclxd.sock, else $XDG_RUNTIME_DIR/rcclx/rcclxd.sock, the first at which
 *               a daemon answers
 * @config:      NULL: defaults
 * @client_p:    receives the connection; end it with rcclx_disconnect()
 *
 * One connection per process is enough: it can carry any number of communicators and ranks.
 *
 * Thread safety: any thread.
 * Return: RCCLX_OK; RCCLX_ERR_NO_DAEMON no daemon answers (the text lists what was tried);
 *         RCCLX_ERR_DENIED the socket may not be opened; RCCLX_ERR_VERSION;
 *         RCCLX_ERR_LIMIT too many sessions of this user; RCCLX_ERR_TIMEOUT.
 * Since: 0.1
 */
RCCLX_API rcclx_result rcclx_connect(const char *socket_path,
	const struct rcclx_connect_config *config, struct rcclx_client **client_p);

/**
 * rcclx_disconnect() - end a connection
 * @client: NULL is allowed
 *
 * Destroy its communicators, operations and memory first: with any of them left, nothing happens
 * and RCCLX_ERR_BUSY is returned. (A process may simply exit instead: the daemon cleans up.)
 *
 * Thread safety: no other thread may use @client any more.
 * Return: RCCLX_OK, RCCLX_ERR_BUSY, RCCLX_ERR_FORKED (the child's copy is left alone).
 * Since: 0.1
 */
RCCLX_API rcclx_result rcclx_disconnect(struct rcclx_client *client);

/* ---- communicators ---- */

/**
 * rcclx_unique_id_create() - make the id under which ranks find each other
 * @client: connection to the daemon that will host the communicator
 * @id_p:   receives 128 plain bytes, to be sent to the other ranks by any channel
 *
 * The id is a capability: whoever knows it may join. It names the daemon that made it.
 *
 * Thread safety: any thread.
 * Return: RCCLX_OK, RCCLX_ERR_DAEMON_LOST.
 * Since: 0.1
 */
RCCLX_API rcclx_result rcclx_unique_id_create(
	struct rcclx_client *client, struct rcclx_unique_id *id_p);

/**
 * rcclx_unique_id_of_name() - the id that belongs to a name
 * @client: connection to the daemon that will host the communicator
 * @name:   any text
 * @id_p:   receives the id: the same for everybody who gives the same daemon the same name
 *
 * For ranks that cannot send each other an id, but know a name that is new for each communicator:
 * as any id, it forms one only. Whoever can guess the name may join; where that matters, use
 * rcclx_unique_id_create().
 *
 * Thread safety: any thread.
 * Return: RCCLX_OK, RCCLX_ERR_INVALID, RCCLX_ERR_DAEMON_LOST.
 * Since: 0.1
 */
RCCLX_API rcclx_result rcclx_unique_id_of_name(
	struct rcclx_client *client, const char *name, struct rcclx_unique_id *id_p);

/* Collectives in low precision, with their variable forms: bits of rcclx_comm_config. */
enum {
	RCCLX_LOW_PRECISION_ALL_REDUCE = 1,
	RCCLX_LOW_PRECISION_ALL_GATHER = 2,
	RCCLX_LOW_PRECISION_REDUCE_SCATTER = 4,
	RCCLX_LOW_PRECISION_ALL_TO_ALL = 8,
	RCCLX_LOW_PRECISION_ALL = 15,
	RCCLX_LOW_PRECISION_GATHER_BF16 = 16, /* allreduce: the sum travels as bfloat16 */
	RCCLX_LOW_PRECISION_NONE = 32,        /* none, whatever the environment says */
	RCCLX_LOW_PRECISION_INT8 = 64,        /* these as INT8 instead of FP8; in host memory */
};

struct rcclx_comm_config {
	uint32_t size;            /* sizeof(struct rcclx_comm_config) */
	uint32_t low_precision;   /* RCCLX_LOW_PRECISION_*, the same on all ranks; 0: as the
				     environment says, see librcclx(3) */
	uint64_t form_timeout_ns; /* for all ranks to come; 0: the daemon's default, 60 seconds */
	uint64_t op_timeout_ns;   /* an op that takes longer aborts the communicator; 0: no limit.
				     The lowest rank's value holds for all. */
	const char *name;         /* shown to operators, at most 63 characters; NULL: none */
	/* About low precision, the same on all ranks; 0: as the environment says. */
	uint64_t low_precision_min;        /* from this many bytes on, of the larger buffer */
	uint32_t low_precision_sample;     /* check one block of 32 in so many, from 128 */
	uint32_t low_precision_budget_ppm; /* exact from then on when the relative error found in
					      an operation is above so many millionths */
};

#define RCCLX_COMM_CONFIG_INIT                                                                     \
	{                                                                                          \
		sizeof(struct rcclx_comm_config), 0, 0, 0, NULL, 0, 0, 0                           \
	}

/**
 * rcclx_comm_create() - join a communicator and wait until all ranks have
 * @client:  connection
 * @id:      from rcclx_unique_id_create(), the same on all ranks
 * @n_ranks: 1 to RCCLX_MAX_RANKS, the same on all ranks
 * @rank:    0 to @n_ranks - 1, each once
 * @config:  NULL: defaults
 * @comm_p:  receives the communicator; end it with rcclx_comm_destroy()
 *
 * Several ranks may live in one process: each created in a thread of its own, or all of them
 * between rcclx_group_start() and rcclx_group_end(), which then waits and fills in @comm_p.
 *
 * Thread safety: any thread.
 * Return: RCCLX_OK; RCCLX_ERR_TIMEOUT ranks are missing (the text names them), or the
 *         daemon does not answer;
 *         RCCLX_ERR_INVALID wrong rank, size or id, or the rank is taken; RCCLX_ERR_PEER_LOST a
 *         rank died meanwhile; RCCLX_ERR_LIMIT; RCCLX_ERR_NO_MEMORY; RCCLX_ERR_DAEMON_LOST.
 * Since: 0.1
 */
RCCLX_API rcclx_result rcclx_comm_create(struct rcclx_client *client,
	const struct rcclx_unique_id *id, uint32_t n_ranks, uint32_t rank,
	const struct rcclx_comm_config *config, struct rcclx_comm **comm_p);

/**
 * rcclx_comm_destroy() - leave a communicator
 * @comm: NULL is allowed
 *
 * Not a collective: it never waits for the other ranks. Free operations of @comm first.
 *
 * Thread safety: no other thread may use @comm any more.
 * Return: RCCLX_OK; RCCLX_ERR_BUSY operations of it are not freed (nothing happens);
 *         RCCLX_ERR_FORKED.
 * Since: 0.1
 */
RCCLX_API rcclx_result rcclx_comm_destroy(struct rcclx_comm *comm);

/**
 * rcclx_comm_abort() - make every pending and later operation fail, on all ranks
 * @comm: communicator; still to be destroyed afterwards
 *
 * Returns within 200 ms whatever the peers and the daemon do. Blocked calls of this rank return
 * RCCLX_ERR_ABORTED within that time; other ranks' calls do so as soon as the daemon has told them.
 *
 * Thread safety: any thread, also while others are blocked in @comm.
 * Return: RCCLX_OK, RCCLX_ERR_FORKED.
 * Since: 0.1
 */
RCCLX_API rcclx_result rcclx_comm_abort(struct rcclx_comm *comm);

/**
 * rcclx_comm_status() - is the communicator still good?
 * @comm: communicator
 *
 * That a rank has left it, as all do in the end, is no failure. Only an operation that needs the
 * rank fails, and from then on the communicator has.
 *
 * Thread safety: any thread.
 * Return: RCCLX_OK; or what operations on it now return: RCCLX_ERR_PEER_LOST (a rank has died),
 *         RCCLX_ERR_ABORTED, RCCLX_ERR_DAEMON_LOST, RCCLX_ERR_TIMEOUT (its deadline passed).
 * Since: 0.1
 */
RCCLX_API rcclx_result rcclx_comm_status(struct rcclx_comm *comm);

/**
 * rcclx_comm_rank() - own rank in @comm
 * @comm: communicator
 *
 * Thread safety: any thread.
 * Return: 0 to size - 1; UINT32_MAX when @comm is NULL.
 * Since: 0.1
 */
RCCLX_API uint32_t rcclx_comm_rank(const struct rcclx_comm *comm);

/**
 * rcclx_comm_size() - number of ranks of @comm
 * @comm: communicator
 *
 * Thread safety: any thread.
 * Return: 1 to RCCLX_MAX_RANKS; 0 when @comm is NULL.
 * Since: 0.1
 */
RCCLX_API uint32_t rcclx_comm_size(const struct rcclx_comm *comm);

/**
 * rcclx_comm_split() - divide a communicator into several
 * @comm:   communicator; it goes on
 * @color:  ranks with the same color form a new communicator; RCCLX_NO_COLOR: be in none
 * @key:    order of the ranks in the new one; equal keys: as in @comm
 * @config: of the new one; NULL: defaults
 * @comm_p: receives the new communicator, NULL for RCCLX_NO_COLOR
 *
 * A collective of @comm: all ranks call it.
 *
 * Thread safety: as rcclx_all_reduce(), on @comm.
 * Return: as rcclx_all_reduce() and rcclx_comm_create().
 * Since: 0.1
 */
RCCLX_API rcclx_result rcclx_comm_split(struct rcclx_comm *comm, int32_t color, int32_t key,
	const struct rcclx_comm_config *config, struct rcclx_comm **comm_p);

/**
 * rcclx_comm_duplicate() - a new communicator of the same ranks
 * @comm:   communicator; it goes on
 * @config: of the new one; NULL: defaults
 * @comm_p: receives the new communicator
 *
 * All ranks of @comm call it.
 *
 * Thread safety: as rcclx_all_reduce(), on @comm.
 * Return: as rcclx_comm_create().
 * Since: 0.1
 */
RCCLX_API rcclx_result rcclx_comm_duplicate(struct rcclx_comm *comm,
	const struct rcclx_comm_config *config, struct rcclx_comm **comm_p);

/**
 * rcclx_comm_shrink() - a new communicator without some ranks
 * @comm:       communicator; may have failed or be aborted; still to be destroyed
 * @excluded:   ranks to leave out, the same on all callers; NULL when @n_excluded is 0
 * @n_excluded: number of them
 * @config:     of the new one; NULL: defaults
 * @comm_p:     receives the new communicator; ranks keep their order
 *
 * Ranks that have died or left are left out as well. All others call it; none of the excluded does.
 *
 * Thread safety: as rcclx_all_reduce(), on @comm.
 * Return: as rcclx_comm_create(); RCCLX_ERR_INVALID a rank out of range, or the own one is
 *         excluded; RCCLX_ERR_TIMEOUT callers disagree about who is excluded, or one more has
 *         died.
 * Since: 0.1
 */
RCCLX_API rcclx_result rcclx_comm_shrink(struct rcclx_comm *comm, const uint32_t *excluded,
	uint32_t n_excluded, const struct rcclx_comm_config *config, struct rcclx_comm **comm_p);

/* ---- memory ---- */

/**
 * rcclx_mem_alloc() - allocate registered memory, which peers and the daemon use without copying
 * @client: connection
 * @bytes:  > 0; rounded up to whole pages
 * @ptr_p:  receives the address, page-aligned, zeroed
 *
 * Members of a communicator in which the memory is used can read and write all of it.
 *
 * Thread safety: any thread.
 * Return: RCCLX_OK; RCCLX_ERR_INVALID; RCCLX_ERR_LIMIT more than the daemon allows this user;
 *         RCCLX_ERR_NO_MEMORY; RCCLX_ERR_DAEMON_LOST.
 * Since: 0.1
 */
RCCLX_API rcclx_result rcclx_mem_alloc(struct rcclx_client *client, uint64_t bytes, void **ptr_p);

/**
 * rcclx_mem_free() - free memory from rcclx_mem_alloc()
 * @client: the connection it was allocated with
 * @ptr:    the address; NULL is allowed
 *
 * No operation may use it any more. Works also when the daemon is gone.
 *
 * Thread safety: any thread.
 * Return: RCCLX_OK; RCCLX_ERR_INVALID not such an address.
 * Since: 0.1
 */
RCCLX_API rcclx_result rcclx_mem_free(struct rcclx_client *client, void *ptr);

/**
 * rcclx_mem_register() - register a memory file that the caller has mapped
 * @client: connection
 * @ptr:    where the range is mapped, shared and writable; page-aligned
 * @bytes:  length of the range; whole pages
 * @fd:     memfd with F_SEAL_SHRINK; the library keeps no reference, the caller may close it
 * @offset: where the range starts in the file, bytes; whole pages
 * @mem_p:  receives the registration; end it with rcclx_mem_deregister()
 *
 * Afterwards operations whose buffers lie in [ptr, ptr + bytes) need no copies.
 *
 * Thread safety: any thread.
 * Return: RCCLX_OK; RCCLX_ERR_INVALID not a sealed memfd, or out of its bounds, or overlapping
 *         another registration; RCCLX_ERR_LIMIT; RCCLX_ERR_DAEMON_LOST.
 * Since: 0.1
 */
RCCLX_API rcclx_result rcclx_mem_register(struct rcclx_client *client, void *ptr, uint64_t bytes,
	int fd, uint64_t offset, struct rcclx_mem **mem_p);

/**
 * rcclx_mem_deregister() - end a registration; the memory stays mapped and is the caller's
 * @mem: NULL is allowed
 *
 * Thread safety: no operation may use the memory meanwhile.
 * Return: RCCLX_OK, RCCLX_ERR_FORKED.
 * Since: 0.1
 */
RCCLX_API rcclx_result rcclx_mem_deregister(struct rcclx_mem *mem);

/* ---- collectives ---- */

enum {
	RCCLX_EXECUTOR_AUTO = 0,   /* blocking calls inline, asynchronous ones by the daemon, and
				      all where a rank's process has a GPU runtime */
	RCCLX_EXECUTOR_INLINE = 1, /* this thread does its part; blocking calls only */
	RCCLX_EXECUTOR_DAEMON = 2, /* the daemon does it */
};

enum {
	RCCLX_PRECISION_AUTO = 0,  /* as the communicator is configured, from its threshold on */
	RCCLX_PRECISION_EXACT = 1, /* exact */
	RCCLX_PRECISION_FP8 = 2,   /* low precision where there is such a form, whatever the size */
	RCCLX_PRECISION_INT8 = 3,  /* the same with INT8, which devices do not have: exact there */
};

/* struct rcclx_call_config, flags */
enum {
	/*
	 * The call is made in the order of a GPU stream: see rcclx_all_reduce(), "In a stream".
	 */
	RCCLX_CALL_IN_STREAM = 1 << 0,
};

struct rcclx_call_config {
	uint32_t size;       /* sizeof(struct rcclx_call_config) */
	uint32_t executor;   /* RCCLX_EXECUTOR_*; the same on all ranks */
	uint64_t timeout_ns; /* blocking calls: give up after this time, which aborts the
				communicator (peers may have used this rank's data); 0: no limit */
	const void *scalar; /* RCCLX_PREMUL_SUM: one element of the call's type; ranks may differ */
	uint32_t precision; /* RCCLX_PRECISION_*; the same on all ranks */
	uint32_t flags;     /* RCCLX_CALL_*; ranks may differ */
	void *stream;       /* RCCLX_CALL_IN_STREAM: a cudaStream_t or hipStream_t of the current
			       device; NULL: the default stream */
};

#define RCCLX_CALL_CONFIG_INIT                                                                     \
	{                                                                                          \
		sizeof(struct rcclx_call_config), 0, 0, NULL, 0, 0, NULL                           \
	}

/**
 * rcclx_all_reduce() - reduce @count elements over all ranks; every rank gets the result
 * @comm:   communicator
 * @send:   @count elements, aligned to their size; NULL when @count is 0
 * @recv:   @count elements; equal to @send (in place) or not overlapping it
 * @count:  elements, >= 0, the same on all ranks; any size
 * @dtype:  RCCLX_INT8 ... RCCLX_FLOAT8E5M2
 * @op:     RCCLX_SUM ... RCCLX_PREMUL_SUM
 * @config: NULL: defaults
 *
 * Element i is the fold of the ranks' values in rank order, whatever the count, the memory and the
 * executor: fp16, bf16 and fp8 in fp32 and rounded once, fp32 and fp64 in their own type, integers
 * wrap. All ranks get the same bits. MIN and MAX ignore NaN unless all values are NaN. See
 * librcclx(3), "Arithmetic".
 *
 * In a stream (RCCLX_CALL_IN_STREAM in @config, any collective, send or recv): returns at once.
 * What is in the stream is done before the operation starts on any rank, and what is put into it
 * afterwards comes when the operation is over here. Calls of a group start together, and none of
 * them waits for another. RCCLX_OK only says that the call is on its way: a failure makes the
 * communicator unusable, which rcclx_comm_status() and the next call say, and the stream goes on,
 * with @recv undefined. While the stream is captured, the call becomes part of the graph and is
 * made with every replay; the ranks capture the same calls in the same order. A graph may not run
 * twice at the same time, replays of a graph whose communicator is gone end at once, and what was
 * recorded takes memory until then. The first call with memory that the library does not know may
 * block for a round trip to the daemon. See librcclx(3), "Streams and graphs".
 *
 * Blocks otherwise: spins briefly, then sleeps. Algorithms: small messages flat (every rank folds
 * everything, one-shot), larger ones reduce-scatter + all-gather (two-shot; Rabenseifner 2004).
 *
 * Thread safety: one operation of a communicator at a time; others in parallel.
 * Return: RCCLX_OK; RCCLX_ERR_INVALID; RCCLX_ERR_MISMATCH ranks called with different arguments:
 *         nothing was moved, the communicator is good; RCCLX_ERR_PEER_LOST, RCCLX_ERR_ABORTED,
 *         RCCLX_ERR_TIMEOUT, RCCLX_ERR_DAEMON_LOST: the communicator is unusable, @recv undefined.
 * Since: 0.1
 */
RCCLX_API rcclx_result rcclx_all_reduce(struct rcclx_comm *comm, const void *send, void *recv,
	uint64_t count, uint32_t dtype, uint32_t op, const struct rcclx_call_config *config);

/**
 * rcclx_barrier() - wait until all ranks have called it
 * @comm:   communicator
 * @config: NULL: defaults
 *
 * Thread safety: one operation of a communicator at a time.
 * Return: as rcclx_all_reduce().
 * Since: 0.1
 */
RCCLX_API rcclx_result rcclx_barrier(
	struct rcclx_comm *comm, const struct rcclx_call_config *config);

/**
 * rcclx_all_gather() - every rank gets every rank's elements
 * @comm:   communicator
 * @send:   @count elements
 * @recv:   size * @count elements: rank r's at r * @count; in place: @send is
 *          @recv + rank * @count elements
 * @count:  elements per rank, >= 0, the same on all ranks
 * @dtype:  data type; data is only moved
 * @config: NULL: defaults
 *
 * Thread safety, Return: as rcclx_all_reduce().
 * Since: 0.1
 */
RCCLX_API rcclx_result rcclx_all_gather(struct rcclx_comm *comm, const void *send, void *recv,
	uint64_t count, uint32_t dtype, const struct rcclx_call_config *config);

/**
 * rcclx_reduce_scatter() - reduce, and leave one block of the result on each rank
 * @comm:   communicator
 * @send:   size * @count elements; block r is for rank r
 * @recv:   @count elements; in place: @send + rank * @count elements
 * @count:  elements per block, >= 0, the same on all ranks
 * @dtype:  data type
 * @op:     reduction
 * @config: NULL: defaults
 *
 * Bits as rcclx_all_reduce() would give.
 *
 * Thread safety, Return: as rcclx_all_reduce().
 * Since: 0.1
 */
RCCLX_API rcclx_result rcclx_reduce_scatter(struct rcclx_comm *comm, const void *send, void *recv,
	uint64_t count, uint32_t dtype, uint32_t op, const struct rcclx_call_config *config);

/**
 * rcclx_all_to_all() - every rank sends a different block to every rank
 * @comm:   communicator
 * @send:   size * @count elements; block r is for rank r
 * @recv:   size * @count elements; block r is from rank r; must not overlap @send
 * @count:  elements per block, >= 0, the same on all ranks
 * @dtype:  data type; data is only moved
 * @config: NULL: defaults
 *
 * Thread safety, Return: as rcclx_all_reduce().
 * Since: 0.1
 */
RCCLX_API rcclx_result rcclx_all_to_all(struct rcclx_comm *comm, const void *send, void *recv,
	uint64_t count, uint32_t dtype, const struct rcclx_call_config *config);

/**
 * rcclx_broadcast() - every rank gets the root's elements
 * @comm:   communicator
 * @send:   @count elements on the root; not looked at elsewhere
 * @recv:   @count elements; on the root it may equal @send (in place)
 * @count:  elements, >= 0, the same on all ranks
 * @dtype:  data type; data is only moved
 * @root:   rank that has the data, the same on all ranks
 * @config: NULL: defaults
 *
 * Thread safety, Return: as rcclx_all_reduce().
 * Since: 0.1
 */
RCCLX_API rcclx_result rcclx_broadcast(struct rcclx_comm *comm, const void *send, void *recv,
	uint64_t count, uint32_t dtype, uint32_t root, const struct rcclx_call_config *config);

/**
 * rcclx_reduce() - reduce to one rank
 * @comm:   communicator
 * @send:   @count elements
 * @recv:   @count elements on the root, may equal @send (in place); not looked at elsewhere
 * @count:  elements, >= 0, the same on all ranks
 * @dtype:  data type
 * @op:     reduction
 * @root:   rank that gets the result, the same on all ranks
 * @config: NULL: defaults
 *
 * Bits as rcclx_all_reduce() would give.
 *
 * Thread safety, Return: as rcclx_all_reduce().
 * Since: 0.1
 */
RCCLX_API rcclx_result rcclx_reduce(struct rcclx_comm *comm, const void *send, void *recv,
	uint64_t count, uint32_t dtype, uint32_t op, uint32_t root,
	const struct rcclx_call_config *config);

/**
 * rcclx_gather() - one rank gets every rank's elements
 * @comm:   communicator
 * @send:   @count elements; in place on the root: @recv + root * @count elements
 * @recv:   size * @count elements on the root, rank r's at r * @count; not looked at elsewhere
 * @count:  elements per rank, >= 0, the same on all ranks
 * @dtype:  data type; data is only moved
 * @root:   rank that gets the data, the same on all ranks
 * @config: NULL: defaults
 *
 * Thread safety, Return: as rcclx_all_reduce().
 * Since: 0.1
 */
RCCLX_API rcclx_result rcclx_gather(struct rcclx_comm *comm, const void *send, void *recv,
	uint64_t count, uint32_t dtype, uint32_t root, const struct rcclx_call_config *config);

/**
 * rcclx_scatter() - one rank sends a different block to every rank
 * @comm:   communicator
 * @send:   size * @count elements on the root, block r is for rank r; not looked at elsewhere
 * @recv:   @count elements; in place on the root: @send + root * @count elements
 * @count:  elements per block, >= 0, the same on all ranks
 * @dtype:  data type; data is only moved
 * @root:   rank that has the data, the same on all ranks
 * @config: NULL: defaults
 *
 * Thread safety, Return: as rcclx_all_reduce().
 * Since: 0.1
 */
RCCLX_API rcclx_result rcclx_scatter(struct rcclx_comm *comm, const void *send, void *recv,
	uint64_t count, uint32_t dtype, uint32_t root, const struct rcclx_call_config *config);

/**
 * rcclx_all_gather_v() - all-gather with a different number of elements from each rank
 * @comm:   communicator
 * @send:   counts[rank] elements; in place: @recv + displs[rank] elements
 * @recv:   rank r's counts[r] elements at displs[r]
 * @counts: elements of each rank, size of them, the same on all ranks
 * @displs: where they go, elements from @recv; size of them, not overlapping; may differ by rank
 * @dtype:  data type; data is only moved
 * @config: NULL: defaults
 *
 * Thread safety, Return: as rcclx_all_reduce().
 * Since: 0.1
 */
RCCLX_API rcclx_result rcclx_all_gather_v(struct rcclx_comm *comm, const void *send, void *recv,
	const uint64_t *counts, const uint64_t *displs, uint32_t dtype,
	const struct rcclx_call_config *config);

/**
 * rcclx_reduce_scatter_v() - reduce-scatter with blocks of different lengths
 * @comm:   communicator
 * @send:   all blocks, one behind the other
 * @recv:   counts[rank] elements; in place: this rank's block in @send
 * @counts: elements of each block, size of them, the same on all ranks
 * @dtype:  data type
 * @op:     reduction
 * @config: NULL: defaults
 *
 * Thread safety, Return: as rcclx_all_reduce().
 * Since: 0.1
 */
RCCLX_API rcclx_result rcclx_reduce_scatter_v(struct rcclx_comm *comm, const void *send, void *recv,
	const uint64_t *counts, uint32_t dtype, uint32_t op,
	const struct rcclx_call_config *config);

/**
 * rcclx_all_to_all_v() - all-to-all with a different number of elements for each pair
 * @comm:        communicator
 * @send:        block r, for rank r: send_counts[r] elements at send_displs[r]
 * @send_counts: size of them, elements
 * @send_displs: size of them, elements from @send
 * @recv:        block r, from rank r: recv_counts[r] elements at recv_displs[r]; no overlap with
 * @send
 * @recv_counts: size of them; what rank r's send_counts say for this rank
 * @recv_displs: size of them, elements from @recv; blocks must not overlap
 * @dtype:       data type; data is only moved
 * @config:      NULL: defaults
 *
 * Thread safety, Return: as rcclx_all_reduce().
 * Since: 0.1
 */
RCCLX_API rcclx_result rcclx_all_to_all_v(struct rcclx_comm *comm, const void *send,
	const uint64_t *send_counts, const uint64_t *send_displs, void *recv,
	const uint64_t *recv_counts, const uint64_t *recv_displs, uint32_t dtype,
	const struct rcclx_call_config *config);

/**
 * rcclx_send() - send elements to one rank
 * @comm:   communicator
 * @send:   @count elements
 * @count:  elements, >= 0; what the peer's rcclx_recv() says
 * @dtype:  data type, the same on both sides
 * @peer:   the receiving rank, may be the own one (inside a group)
 * @config: NULL: defaults; RCCLX_EXECUTOR_INLINE is refused
 *
 * Returns when the peer has received. Sends to one peer match its receives from this rank in order.
 * Exchanges in both directions belong in a group, or they deadlock.
 *
 * Thread safety: as rcclx_all_reduce().
 * Return: as rcclx_all_reduce(); RCCLX_ERR_MISMATCH: the peer's receive has another count or type.
 * Since: 0.1
 */
RCCLX_API rcclx_result rcclx_send(struct rcclx_comm *comm, const void *send, uint64_t count,
	uint32_t dtype, uint32_t peer, const struct rcclx_call_config *config);

/**
 * rcclx_recv() - receive elements from one rank
 * @comm:   communicator
 * @recv:   @count elements
 * @count:  elements, >= 0
 * @dtype:  data type
 * @peer:   the sending rank
 * @config: NULL: defaults; RCCLX_EXECUTOR_INLINE is refused
 *
 * Thread safety, Return: as rcclx_send().
 * Since: 0.1
 */
RCCLX_API rcclx_result rcclx_recv(struct rcclx_comm *comm, void *recv, uint64_t count,
	uint32_t dtype, uint32_t peer, const struct rcclx_call_config *config);

/**
 * rcclx_all_reduce_start() - start an allreduce that the daemon executes
 * @comm:   communicator
 * @send:   as for rcclx_all_reduce(); not to be written until the operation is done
 * @recv:   as for rcclx_all_reduce(); not to be touched until the operation is done
 * @count:  elements
 * @dtype:  data type
 * @op:     reduction
 * @config: NULL: defaults; RCCLX_EXECUTOR_INLINE is refused
 * @op_p:   receives the operation; end it with rcclx_op_free()
 *
 * Returns at once. Several may be in flight on one communicator; they are matched in the order in
 * which each rank started them. Private memory is copied into registered memory here and back in
 * rcclx_op_test() or rcclx_op_wait(); registered memory is not copied.
 *
 * Thread safety: as rcclx_all_reduce(), for the time of this call.
 * Return: RCCLX_OK; RCCLX_ERR_INVALID; RCCLX_ERR_LIMIT too many kinds in flight (more pairs
 *         of ranks than the ring has entries): wait for some, or connect with more sq_entries;
 *         RCCLX_ERR_NO_MEMORY; errors of the communicator.
 * Since: 0.1
 */
RCCLX_API rcclx_result rcclx_all_reduce_start(struct rcclx_comm *comm, const void *send, void *recv,
	uint64_t count, uint32_t dtype, uint32_t op, const struct rcclx_call_config *config,
	struct rcclx_op **op_p);

/**
 * rcclx_barrier_start() - start a barrier that the daemon executes
 * @comm:   communicator
 * @config: NULL: defaults
 * @op_p:   receives the operation
 *
 * Thread safety, Return: as rcclx_all_reduce_start().
 * Since: 0.1
 */
RCCLX_API rcclx_result rcclx_barrier_start(
	struct rcclx_comm *comm, const struct rcclx_call_config *config, struct rcclx_op **op_p);

/**
 * rcclx_all_gather_start() - rcclx_all_gather(), executed by the daemon
 * @comm:          as for rcclx_all_gather()
 * @send:          as for rcclx_all_gather()
 * @recv:          as for rcclx_all_gather()
 * @count:         as for rcclx_all_gather()
 * @dtype:         as for rcclx_all_gather()
 * @config:        as for rcclx_all_gather()
 * @op_p:         receives the operation; end it with rcclx_op_free()
 *
 * Returns at once; both buffers belong to the operation until it is done.
 *
 * Thread safety, Return: as rcclx_all_reduce_start().
 * Since: 0.1
 */
RCCLX_API rcclx_result rcclx_all_gather_start(struct rcclx_comm *comm, const void *send, void *recv,
	uint64_t count, uint32_t dtype, const struct rcclx_call_config *config,
	struct rcclx_op **op_p);

/**
 * rcclx_reduce_scatter_start() - rcclx_reduce_scatter(), executed by the daemon
 * @comm:          as for rcclx_reduce_scatter()
 * @send:          as for rcclx_reduce_scatter()
 * @recv:          as for rcclx_reduce_scatter()
 * @count:         as for rcclx_reduce_scatter()
 * @dtype:         as for rcclx_reduce_scatter()
 * @op:            as for rcclx_reduce_scatter()
 * @config:        as for rcclx_reduce_scatter()
 * @op_p:         receives the operation; end it with rcclx_op_free()
 *
 * Returns at once; both buffers belong to the operation until it is done.
 *
 * Thread safety, Return: as rcclx_all_reduce_start().
 * Since: 0.1
 */
RCCLX_API rcclx_result rcclx_reduce_scatter_start(struct rcclx_comm *comm, const void *send,
	void *recv, uint64_t count, uint32_t dtype, uint32_t op,
	const struct rcclx_call_config *config, struct rcclx_op **op_p);

/**
 * rcclx_all_to_all_start() - rcclx_all_to_all(), executed by the daemon
 * @comm:          as for rcclx_all_to_all()
 * @send:          as for rcclx_all_to_all()
 * @recv:          as for rcclx_all_to_all()
 * @count:         as for rcclx_all_to_all()
 * @dtype:         as for rcclx_all_to_all()
 * @config:        as for rcclx_all_to_all()
 * @op_p:         receives the operation; end it with rcclx_op_free()
 *
 * Returns at once; both buffers belong to the operation until it is done.
 *
 * Thread safety, Return: as rcclx_all_reduce_start().
 * Since: 0.1
 */
RCCLX_API rcclx_result rcclx_all_to_all_start(struct rcclx_comm *comm, const void *send, void *recv,
	uint64_t count, uint32_t dtype, const struct rcclx_call_config *config,
	struct rcclx_op **op_p);

/**
 * rcclx_broadcast_start() - rcclx_broadcast(), executed by the daemon
 * @comm:          as for rcclx_broadcast()
 * @send:          as for rcclx_broadcast()
 * @recv:          as for rcclx_broadcast()
 * @count:         as for rcclx_broadcast()
 * @dtype:         as for rcclx_broadcast()
 * @root:          as for rcclx_broadcast()
 * @config:        as for rcclx_broadcast()
 * @op_p:         receives the operation; end it with rcclx_op_free()
 *
 * Returns at once; both buffers belong to the operation until it is done.
 *
 * Thread safety, Return: as rcclx_all_reduce_start().
 * Since: 0.1
 */
RCCLX_API rcclx_result rcclx_broadcast_start(struct rcclx_comm *comm, const void *send, void *recv,
	uint64_t count, uint32_t dtype, uint32_t root, const struct rcclx_call_config *config,
	struct rcclx_op **op_p);

/**
 * rcclx_reduce_start() - rcclx_reduce(), executed by the daemon
 * @comm:          as for rcclx_reduce()
 * @send:          as for rcclx_reduce()
 * @recv:          as for rcclx_reduce()
 * @count:         as for rcclx_reduce()
 * @dtype:         as for rcclx_reduce()
 * @op:            as for rcclx_reduce()
 * @root:          as for rcclx_reduce()
 * @config:        as for rcclx_reduce()
 * @op_p:         receives the operation; end it with rcclx_op_free()
 *
 * Returns at once; both buffers belong to the operation until it is done.
 *
 * Thread safety, Return: as rcclx_all_reduce_start().
 * Since: 0.1
 */
RCCLX_API rcclx_result rcclx_reduce_start(struct rcclx_comm *comm, const void *send, void *recv,
	uint64_t count, uint32_t dtype, uint32_t op, uint32_t root,
	const struct rcclx_call_config *config, struct rcclx_op **op_p);

/**
 * rcclx_gather_start() - rcclx_gather(), executed by the daemon
 * @comm:          as for rcclx_gather()
 * @send:          as for rcclx_gather()
 * @recv:          as for rcclx_gather()
 * @count:         as for rcclx_gather()
 * @dtype:         as for rcclx_gather()
 * @root:          as for rcclx_gather()
 * @config:        as for rcclx_gather()
 * @op_p:         receives the operation; end it with rcclx_op_free()
 *
 * Returns at once; both buffers belong to the operation until it is done.
 *
 * Thread safety, Return: as rcclx_all_reduce_start().
 * Since: 0.1
 */
RCCLX_API rcclx_result rcclx_gather_start(struct rcclx_comm *comm, const void *send, void *recv,
	uint64_t count, uint32_t dtype, uint32_t root, const struct rcclx_call_config *config,
	struct rcclx_op **op_p);

/**
 * rcclx_scatter_start() - rcclx_scatter(), executed by the daemon
 * @comm:          as for rcclx_scatter()
 * @send:          as for rcclx_scatter()
 * @recv:          as for rcclx_scatter()
 * @count:         as for rcclx_scatter()
 * @dtype:         as for rcclx_scatter()
 * @root:          as for rcclx_scatter()
 * @config:        as for rcclx_scatter()
 * @op_p:         receives the operation; end it with rcclx_op_free()
 *
 * Returns at once; both buffers belong to the operation until it is done.
 *
 * Thread safety, Return: as rcclx_all_reduce_start().
 * Since: 0.1
 */
RCCLX_API rcclx_result rcclx_scatter_start(struct rcclx_comm *comm, const void *send, void *recv,
	uint64_t count, uint32_t dtype, uint32_t root, const struct rcclx_call_config *config,
	struct rcclx_op **op_p);

/**
 * rcclx_all_gather_v_start() - rcclx_all_gather_v(), executed by the daemon
 * @comm:          as for rcclx_all_gather_v()
 * @send:          as for rcclx_all_gather_v()
 * @recv:          as for rcclx_all_gather_v()
 * @counts:        as for rcclx_all_gather_v()
 * @displs:        as for rcclx_all_gather_v()
 * @dtype:         as for rcclx_all_gather_v()
 * @config:        as for rcclx_all_gather_v()
 * @op_p:         receives the operation; end it with rcclx_op_free()
 *
 * Returns at once; both buffers belong to the operation until it is done.
 *
 * Thread safety, Return: as rcclx_all_reduce_start().
 * Since: 0.1
 */
RCCLX_API rcclx_result rcclx_all_gather_v_start(struct rcclx_comm *comm, const void *send,
	void *recv, const uint64_t *counts, const uint64_t *displs, uint32_t dtype,
	const struct rcclx_call_config *config, struct rcclx_op **op_p);

/**
 * rcclx_reduce_scatter_v_start() - rcclx_reduce_scatter_v(), executed by the daemon
 * @comm:          as for rcclx_reduce_scatter_v()
 * @send:          as for rcclx_reduce_scatter_v()
 * @recv:          as for rcclx_reduce_scatter_v()
 * @counts:        as for rcclx_reduce_scatter_v()
 * @dtype:         as for rcclx_reduce_scatter_v()
 * @op:            as for rcclx_reduce_scatter_v()
 * @config:        as for rcclx_reduce_scatter_v()
 * @op_p:         receives the operation; end it with rcclx_op_free()
 *
 * Returns at once; both buffers belong to the operation until it is done.
 *
 * Thread safety, Return: as rcclx_all_reduce_start().
 * Since: 0.1
 */
RCCLX_API rcclx_result rcclx_reduce_scatter_v_start(struct rcclx_comm *comm, const void *send,
	void *recv, const uint64_t *counts, uint32_t dtype, uint32_t op,
	const struct rcclx_call_config *config, struct rcclx_op **op_p);

/**
 * rcclx_all_to_all_v_start() - rcclx_all_to_all_v(), executed by the daemon
 * @comm:          as for rcclx_all_to_all_v()
 * @send:          as for rcclx_all_to_all_v()
 * @send_counts:   as for rcclx_all_to_all_v()
 * @send_displs:   as for rcclx_all_to_all_v()
 * @recv:          as for rcclx_all_to_all_v()
 * @recv_counts:   as for rcclx_all_to_all_v()
 * @recv_displs:   as for rcclx_all_to_all_v()
 * @dtype:         as for rcclx_all_to_all_v()
 * @config:        as for rcclx_all_to_all_v()
 * @op_p:         receives the operation; end it with rcclx_op_free()
 *
 * Returns at once; both buffers belong to the operation until it is done.
 *
 * Thread safety, Return: as rcclx_all_reduce_start().
 * Since: 0.1
 */
RCCLX_API rcclx_result rcclx_all_to_all_v_start(struct rcclx_comm *comm, const void *send,
	const uint64_t *send_counts, const uint64_t *send_displs, void *recv,
	const uint64_t *recv_counts, const uint64_t *recv_displs, uint32_t dtype,
	const struct rcclx_call_config *config, struct rcclx_op **op_p);

/**
 * rcclx_send_start() - rcclx_send(), executed by the daemon
 * @comm:          as for rcclx_send()
 * @send:          as for rcclx_send()
 * @count:         as for rcclx_send()
 * @dtype:         as for rcclx_send()
 * @peer:          as for rcclx_send()
 * @config:        as for rcclx_send()
 * @op_p:         receives the operation; end it with rcclx_op_free()
 *
 * Returns at once; both buffers belong to the operation until it is done.
 *
 * Thread safety, Return: as rcclx_all_reduce_start().
 * Since: 0.1
 */
RCCLX_API rcclx_result rcclx_send_start(struct rcclx_comm *comm, const void *send, uint64_t count,
	uint32_t dtype, uint32_t peer, const struct rcclx_call_config *config,
	struct rcclx_op **op_p);

/**
 * rcclx_recv_start() - rcclx_recv(), executed by the daemon
 * @comm:          as for rcclx_recv()
 * @recv:          as for rcclx_recv()
 * @count:         as for rcclx_recv()
 * @dtype:         as for rcclx_recv()
 * @peer:          as for rcclx_recv()
 * @config:        as for rcclx_recv()
 * @op_p:         receives the operation; end it with rcclx_op_free()
 *
 * Returns at once; both buffers belong to the operation until it is done.
 *
 * Thread safety, Return: as rcclx_all_reduce_start().
 * Since: 0.1
 */
RCCLX_API rcclx_result rcclx_recv_start(struct rcclx_comm *comm, void *recv, uint64_t count,
	uint32_t dtype, uint32_t peer, const struct rcclx_call_config *config,
	struct rcclx_op **op_p);

/**
 * rcclx_op_test() - is an operation done?
 * @op: operation
 *
 * Thread safety: one thread per @op; different ops in parallel.
 * Return: as rcclx_op_wait() with a timeout of 0.
 * Since: 0.1
 */
RCCLX_API rcclx_result rcclx_op_test(struct rcclx_op *op);

/**
 * rcclx_op_wait() - wait until an operation is done
 * @op:         operation from rcclx_all_reduce_start() and friends; not consumed
 * @timeout_ns: longest time to wait, nanoseconds, CLOCK_MONOTONIC; 0: look once,
 *              RCCLX_FOREVER: no limit
 *
 * Spins briefly, then sleeps. Returns early if the daemon dies. May be called again: the result
 * stays.
 *
 * Thread safety: one thread per @op; different ops of one communicator in parallel.
 * Return: RCCLX_OK done; RCCLX_ERR_TIMEOUT not yet (the op goes on); else how it failed, as
 *         rcclx_all_reduce().
 * Since: 0.1
 */
RCCLX_API rcclx_result rcclx_op_wait(struct rcclx_op *op, uint64_t timeout_ns);

/**
 * rcclx_op_free() - forget an operation that is done
 * @op: NULL is allowed
 *
 * Thread safety: no other thread may use @op any more.
 * Return: RCCLX_OK; RCCLX_ERR_BUSY not done yet (nothing happens: wait, or abort the
 *         communicator); RCCLX_ERR_FORKED.
 * Since: 0.1
 */
RCCLX_API rcclx_result rcclx_op_free(struct rcclx_op *op);

/* ---- groups ---- */

/**
 * rcclx_group_start() - collect the calls of this thread until the group ends
 *
 * Between here and the end of the group, rcclx_comm_create(), blocking collectives, rcclx_send()
 * and rcclx_recv() check their arguments, are kept, and return RCCLX_OK. At the end all are handed
 * to the daemon before any is waited for: sends and receives in any order, several communicators,
 * and several ranks of one communicator in one thread cannot block each other. Calls in groups
 * match calls in groups, asynchronous calls, and calls with RCCLX_EXECUTOR_DAEMON. Arrays of
 * variable collectives must live until the end of the group. Groups nest; the outermost counts.
 *
 * Thread safety: each thread has its own group.
 * Return: RCCLX_OK.
 * Since: 0.1
 */
RCCLX_API rcclx_result rcclx_group_start(void);

/**
 * rcclx_group_end() - execute the group's calls and wait for all of them
 *
 * Thread safety: of the thread that started the group.
 * Return: RCCLX_OK; the first error, in the order of the calls (all others are executed or failed
 *         too: none is left over); RCCLX_ERR_INVALID no group is open.
 * Since: 0.1
 */
RCCLX_API rcclx_result rcclx_group_end(void);

/**
 * rcclx_group_end_start() - execute the group's calls without waiting for them
 * @op_p: receives one operation for the whole group; end it with rcclx_op_free()
 *
 * Thread safety: of the thread that started the group.
 * Return: RCCLX_OK; RCCLX_ERR_INVALID no group is open, or this one is inside another; why nothing
 *         could be started.
 * Since: 0.1
 */
RCCLX_API rcclx_result rcclx_group_end_start(struct rcclx_op **op_p);

#ifdef __cplusplus
}
#endif

#endif
