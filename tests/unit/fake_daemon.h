/* SPDX-License-Identifier: MIT */
/*
 * The daemon's end of a connection, played by a thread of the test: what it answers, when, and how
 * wrongly, is the test's. Checks in the thread are remembered and reported by fake_join().
 */
#ifndef TEST_FAKE_DAEMON_H
#define TEST_FAKE_DAEMON_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../../client/rcclx.h"
#include "../../proto/rx_frame.h"
#include "../../proto/rx_msg.h"
#include "../../shm/rx_map.h"
#include "../../shm/rx_ring.h"

#include <pthread.h>
#include <stdatomic.h>

#define FAKE_REGIONS 256u

struct fake;
typedef void (*fake_fn)(struct fake *fake);

struct fake {
	char path[64]; /* of the listening socket */
	int listen_fd; /* -1: a socket pair instead */
	int fd;        /* the daemon's end, -1 before fake_accept() */
	int client_fd; /* the client's end of a socket pair, until the client has taken it */
	pthread_t thread;
	fake_fn script;
	void *arg;
	char failure[256];
	struct rx_frame frame;
	struct rx_arena arena;
	/* After fake_hello(). */
	struct rx_map s_map;
	struct rx_map d_map;
	struct rx_ring ring;
	int doorbell;
	/* fake_serve(): memory, by handle - 1. */
	int region_fds[FAKE_REGIONS];
	uint64_t region_bytes[FAKE_REGIONS];
	_Atomic uint32_t n_allocs;
	_Atomic uint32_t n_frees;
	_Atomic uint32_t n_imports;
};

/** fake_listen() - a thread that runs @script and a socket to connect to */
struct fake *fake_listen(fake_fn script, void *arg);

/** fake_pair() - the same with a connected socket pair; its other end is client_fd */
struct fake *fake_pair(fake_fn script, void *arg);

/** fake_join() - end of the thread, which has to come; fails the test for what the script found */
void fake_join(struct fake *fake);

/* ---- for scripts ---- */

/** FAKE_CHECK() - remember the first condition that did not hold */
#define FAKE_CHECK(fake, condition) fake_check(fake, condition, #condition, __LINE__)
bool fake_check(struct fake *fake, bool condition, const char *text, int line);

/** fake_accept() - wait for the client */
bool fake_accept(struct fake *fake);

/** fake_recv() - next message, at most 5 s; false: the client hung up (or a check failed) */
bool fake_recv(struct fake *fake, struct rx_msg *msg_p);

/** fake_expect() - the same, which has to be of @type */
bool fake_expect(struct fake *fake, enum rx_msg_type type, struct rx_msg *msg_p);

/** fake_send() - a message with @n_fds descriptors, which stay open here */
void fake_send(struct fake *fake, const struct rx_msg *msg, const int *fds, uint32_t n_fds);

/** fake_reply_ok() - Ok to @request */
void fake_reply_ok(struct fake *fake, const struct rx_msg *request);

/** fake_hang_up() - close the connection */
void fake_hang_up(struct fake *fake);

/** fake_hello() - accept, and answer Hello with real rings of @sq_entries */
bool fake_hello(struct fake *fake, uint32_t sq_entries);

/** fake_serve() - answer memory messages and pings until the client hangs up */
void fake_serve(struct fake *fake);

/** fake_session() - a script: fake_hello() with 8 entries, then fake_serve() */
void fake_session(struct fake *fake);

/* ---- for tests ---- */

/** open_fds() - descriptors of this process */
unsigned int open_fds(void);

/** fake_fds_setup(), fake_fds_teardown() - a fixture that finds leaked descriptors */
int fake_fds_setup(void **state);
int fake_fds_teardown(void **state);

/** now_ms() - monotonic */
uint64_t now_ms(void);

/** assert_text() - the last error contains @part */
#define assert_text(part)                                                                          \
	do {                                                                                       \
		if (!strstr(rcclx_last_error(), part))                                             \
			fail_msg("no \"%s\" in \"%s\"", part, rcclx_last_error());                 \
	} while (0)

#define FAKE_TEST(function)                                                                        \
	cmocka_unit_test_setup_teardown(function, fake_fds_setup, fake_fds_teardown)

#endif
