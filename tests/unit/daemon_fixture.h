/* SPDX-License-Identifier: MIT */
/*
 * A daemon in a thread of the test, and clients that speak the protocol by hand. Everything fails
 * the running test by cmocka's assertions.
 */
#ifndef DAEMON_FIXTURE_H
#define DAEMON_FIXTURE_H

#include "../../daemon/daemon.h"
#include "../../proto/rx_msg.h"
#include "../../shm/rx_fabric.h"
#include "../../shm/rx_map.h"
#include "../../shm/rx_result.h"
#include "../../shm/rx_ring.h"

#include <pthread.h>

struct fixture {
	char dir[64];
	char socket[96];
	char admin[96];
	char log[96]; /* what the daemon logged */
	struct config config;
	uv_loop_t loop;
	uv_async_t stop;
	struct daemon daemon;
	pthread_t thread;
	bool stopped;
};

/** fixture_start() - serve; change fixture->config before, from fixture_init() */
void fixture_init(struct fixture *fixture);
void fixture_start(struct fixture *fixture);
/** fixture_stop() - as by SIGTERM, and wait for the end; checks that nothing is left */
void fixture_stop(struct fixture *fixture);

/** fixture_log_count() - lines of the log that contain @text */
int fixture_log_count(const struct fixture *fixture, const char *text);

struct client {
	int sock;
	uint32_t serial;
	uint64_t session_id;
	uint8_t instance[RX_INSTANCE_BYTES];
	struct rx_map s_map;
	struct rx_map d_map;
	struct rx_ring ring;
	int doorbell;
	/* The last received message, and what it points to. */
	struct rx_msg msg;
	struct rx_fdset fds;
	struct rx_frame frame;
	struct rx_arena arena;
};

/** client_connect() - connect only; client_open() - and say Hello */
struct client *client_connect(const char *path);
struct client *client_open(const char *path);
void client_close(struct client *client);

/** client_send() - send @msg with a new serial, which is returned */
uint32_t client_send(
	struct client *client, const struct rx_msg *msg, const int *fds, uint32_t n_fds);

/** client_receive() - next message, within 10 s; false: the daemon ended the session */
bool client_receive(struct client *client);

/** client_ask() - send, receive, and check that the answer is of @type */
void client_ask(struct client *client, const struct rx_msg *msg, enum rx_msg_type type);
/** client_ask_error() - the answer is an Error with @code, whose text contains @text */
void client_ask_error(
	struct client *client, const struct rx_msg *msg, enum rx_result code, const char *text);
/** client_expect_error() - the same without asking */
void client_expect_error(struct client *client, enum rx_result code, const char *text);
/** client_expect_end() - the session ends, without another message */
void client_expect_end(struct client *client);

/** client_id() - a unique id from the daemon into @id */
void client_id(struct client *client, uint8_t id[RX_UNIQUE_ID_BYTES]);

struct rank {
	struct client *client;
	uint32_t rank;
	uint32_t member;
	uint64_t comm_id;
	struct rx_map ctl;
	struct rx_map arena;
	struct rx_fabric fabric;
};

struct rx_msg join_msg(const uint8_t *id, uint32_t n_ranks, uint32_t rank);

/** rank_ready() - receive CommReady and map */
void rank_ready(struct rank *rank, struct client *client, uint32_t index, uint32_t n_ranks);
void rank_unmap(struct rank *rank);
/** ranks_form() - a communicator of all @clients, in order */
void ranks_form(struct rank *ranks, struct client **clients, uint32_t n_ranks);
/** rank_status() - what the control page says of @other */
uint32_t rank_status(const struct rank *rank, uint32_t other);
uint32_t rank_abort_word(const struct rank *rank);

struct memory {
	uint32_t handle;
	uint64_t region_id;
	struct rx_map map;
};

void memory_alloc(struct client *client, uint64_t bytes, struct memory *memory);

/** client_submit() - one entry into the ring, with the doorbell if need be */
void client_submit(struct client *client, const struct rx_sqe *sqe);
/** client_reap() - next completion, within 10 s */
struct rx_cqe client_reap(struct client *client);
/** client_no_completion() - nothing comes for @ms after the daemon has taken all entries */
void client_no_completion(struct client *client, uint32_t ms);

/** all_reduce_entry() - sum of @count floats from @send to @recv, at offset 0 */
struct rx_sqe all_reduce_entry(const struct rank *rank, uint64_t user_data,
	const struct memory *send, const struct memory *recv, uint64_t count);
struct rx_sqe barrier_entry(const struct rank *rank, uint64_t user_data);

void sleep_ms(uint32_t ms);

#endif
