/* SPDX-License-Identifier: MIT */
#include "session.h"

#include "args.h"
#include "dial.h"
#include "err.h"
#include "fork_guard.h"
#include "../proto/rx_check.h"
#include "../shm/rx_cleanup.h"
#include "../shm/rx_clock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define CONNECT_TIMEOUT_NS (5 * RX_NS_PER_SEC)

/* Descriptors of HelloReply, in this order. */
enum { HELLO_FD_S, HELLO_FD_D, HELLO_FD_DOORBELL };

rcclx_result session_usable(const struct rcclx_client *client)
{
	if (rx_likely(fork_guard_same(client->epoch)))
		return RCCLX_OK;
	return err_set(RCCLX_ERR_FORKED,
		"called in a forked child: only the parent may use what existed before the fork; "
		"the child can connect on its own with rcclx_connect()");
}

bool session_lost(struct rcclx_client *client)
{
	return rx_ring_closed(&client->ops.ring) || conn_lost(&client->conn);
}

rcclx_result session_lost_error(const struct rcclx_client *client)
{
	return conn_lost_error(&client->conn);
}

/* ---- connecting ---- */

static rcclx_result read_config(
	const struct rcclx_connect_config *given, struct rcclx_connect_config *config)
{
	rcclx_result r = args_config(given, config, sizeof(*config), "struct rcclx_connect_config");
	uint32_t n = config->sq_entries;

	if (r == RCCLX_OK)
		r = args_text(config->program, RX_NAME_MAX, "program");
	if (r != RCCLX_OK)
		return r;
	if (n == 1 || n > RX_RING_ENTRIES_MAX || (n & (n - 1)) != 0)
		return err_set(RCCLX_ERR_INVALID,
			"sq_entries is %u, expected a power of two from 2 to %u, or 0 for the "
			"daemon's default",
			n, RX_RING_ENTRIES_MAX);
	if (config->timeout_ns == 0)
		config->timeout_ns = CONNECT_TIMEOUT_NS;
	return RCCLX_OK;
}

/* The process's own name, which may be anything. */
static void own_name(char name[RX_NAME_MAX + 1])
{
	(void)snprintf(name, RX_NAME_MAX + 1, "%s", program_invocation_short_name);
	for (char *c = name; *c; c++) {
		if (*c < 0x20 || *c == 0x7f)
			*c = '?';
	}
	/* Cut in the middle of a character, or not UTF-8 at all. */
	if (rx_check_text(name, RX_NAME_MAX))
		return;
	for (char *c = name; *c; c++) {
		if (*c & ~0x7f)
			*c = '?';
	}
}

static rcclx_result map_rings(struct rcclx_client *client, struct conn_reply *hello)
{
	const uint32_t n = hello->msg.hello_reply.sq_entries;
	RX_CLOSE int s_fd = rx_fdset_take(&hello->fds, HELLO_FD_S);
	RX_CLOSE int d_fd = rx_fdset_take(&hello->fds, HELLO_FD_D);
	int r = rx_map_open(&client->s_map, s_fd, rx_ring_s_bytes(n), RX_MAP_RW | RX_MAP_DONTFORK);

	if (r == 0)
		r = rx_map_open(
			&client->d_map, d_fd, rx_ring_d_bytes(n), RX_MAP_RO | RX_MAP_DONTFORK);
	if (r == 0)
		r = op_queue_init(&client->ops, &client->s_map, &client->d_map, n);
	if (r < 0) {
		rx_map_close(&client->s_map);
		rx_map_close(&client->d_map);
		return err_errno(r, "mapping the rings that rcclxd made");
	}
	client->doorbell = rx_fdset_take(&hello->fds, HELLO_FD_DOORBELL);
	return RCCLX_OK;
}

static rcclx_result say_hello(struct rcclx_client *client,
	const struct rcclx_connect_config *config, uint64_t deadline_ns, const char *path)
{
	char name[RX_NAME_MAX + 1];
	struct rx_msg hello = {
		.type = RX_MSG_HELLO,
		.hello =
			{
				.version_min = RX_PROTO_VERSION_MIN,
				.version_max = RX_PROTO_VERSION_MAX,
				.features = RX_PROTO_FEATURES,
				.abi = RX_ABI_MAGIC,
				.program = config->program ? config->program : name,
				.sq_entries = config->sq_entries,
				.pid = (uint64_t)getpid(),
			},
	};
	struct conn_wait wait = {.deadline_ns = deadline_ns};
	struct conn_reply reply;
	rcclx_result r = RCCLX_OK;

	own_name(name);
	r = conn_call(&client->conn, &hello, -1, RX_MSG_HELLO_REPLY, &wait, &reply);
	if (r == RCCLX_ERR_DAEMON_LOST && client->conn.said_code != RCCLX_OK)
		return err_set(client->conn.said_code, "%s", client->conn.said);
	if (r == RCCLX_ERR_DAEMON_LOST)
		return err_set(RCCLX_ERR_NO_DAEMON,
			"the daemon at %s hung up without an answer (%s); its log says why", path,
			client->conn.lost_why ? client->conn.lost_why : "no reason known");
	if (r == RCCLX_ERR_TIMEOUT)
		return err_set(r,
			"the daemon at %s accepted the connection but did not answer within %llu "
			"ms; is it stopped or overloaded?",
			path, (unsigned long long)(config->timeout_ns / RX_NS_PER_MS));
	if (r != RCCLX_OK)
		return r;
	client->session_id = reply.msg.hello_reply.session_id;
	client->max_alloc_bytes = reply.msg.hello_reply.max_alloc_bytes;
	if (reply.msg.hello_reply.version < RX_PROTO_VERSION_MIN ||
		reply.msg.hello_reply.version > RX_PROTO_VERSION_MAX)
		r = err_set(RCCLX_ERR_VERSION,
			"the daemon at %s (%s) speaks version %u of the protocol, this library %u "
			"to %u; update the older of them",
			path, reply.msg.hello_reply.daemon_version, reply.msg.hello_reply.version,
			RX_PROTO_VERSION_MIN, RX_PROTO_VERSION_MAX);
	else
		r = map_rings(client, &reply);
	conn_reply_deinit(&reply);
	return r;
}

static void unmap_rings(struct rcclx_client *client)
{
	op_queue_deinit(&client->ops);
	rx_map_close(&client->s_map);
	rx_map_close(&client->d_map);
	(void)close(client->doorbell);
}

/* The parts that stand on a session that has said hello. */
static int init_gpu_parts(struct rcclx_client *client)
{
	int r = gpu_table_init(&client->gpu);

	gates_init(&client->gates, client);
	if (r < 0)
		return r;
	r = stages_init(&client->stages);
	if (r < 0)
		gpu_table_deinit(&client->gpu);
	return r;
}

static rcclx_result init_parts(struct rcclx_client *client)
{
	int r = mem_table_init(&client->mem);

	if (r == 0) {
		r = bounce_cache_init(&client->bounce);
		if (r == 0) {
			r = init_gpu_parts(client);
			if (r < 0)
				bounce_cache_deinit(&client->bounce);
		}
		if (r < 0)
			mem_table_deinit(&client->mem);
	}
	return r < 0 ? err_errno(r, "setting up a connection") : RCCLX_OK;
}

static rcclx_result open_session(struct rcclx_client *client, const char *socket_path,
	const struct rcclx_connect_config *config)
{
	uint64_t deadline_ns = rx_deadline_ns(config->timeout_ns);
	char path[DIAL_PATH_BYTES];
	int fd = -1;
	rcclx_result result = dial(socket_path, deadline_ns, &fd, path);
	int r = 0;

	if (result != RCCLX_OK)
		return result;
	r = conn_open(&client->conn, fd);
	if (r < 0)
		return err_errno(r, "setting up a connection");
	result = say_hello(client, config, deadline_ns, path);
	if (result == RCCLX_OK) {
		result = init_parts(client);
		if (result != RCCLX_OK)
			unmap_rings(client);
	}
	if (result != RCCLX_OK)
		conn_close(&client->conn);
	return result;
}

rcclx_result rcclx_connect(const char *socket_path, const struct rcclx_connect_config *given,
	struct rcclx_client **client_p)
{
	struct rcclx_connect_config config = RCCLX_CONNECT_CONFIG_INIT;
	rcclx_result result = RCCLX_OK;
	int r = 0;

	if (!client_p)
		return err_set(RCCLX_ERR_INVALID, "rcclx_connect: client_p is NULL");
	result = read_config(given, &config);
	if (result != RCCLX_OK)
		return result;

	RX_FREE struct rcclx_client *client = calloc(1, sizeof(*client));

	if (!client)
		return err_set(RCCLX_ERR_NO_MEMORY, "rcclx_connect: out of memory");
	r = fork_guard_epoch(&client->epoch);
	if (r < 0)
		return err_errno(r, "setting up the guard against use after fork");
	result = open_session(client, socket_path, &config);
	if (result == RCCLX_OK)
		*client_p = rx_steal(client);
	return result;
}

rcclx_result rcclx_disconnect(struct rcclx_client *client)
{
	uint32_t n_comms = 0;
	uint32_t n_regions = 0;
	rcclx_result r = RCCLX_OK;

	if (!client)
		return RCCLX_OK;
	r = session_usable(client);
	if (r != RCCLX_OK)
		return r;
	n_comms = atomic_load(&client->n_comms);
	n_regions = atomic_load(&client->mem.n_regions);
	if (n_comms > 0 || n_regions > 0)
		return err_set(RCCLX_ERR_BUSY,
			"rcclx_disconnect: %u communicators and %u pieces of memory are left; "
			"destroy and free them first",
			n_comms, n_regions);
	op_queue_stop(&client->ops);
	/* Streams go on first: freeing device memory waits for them. */
	gates_close(&client->gates);
	stages_deinit(&client->stages);
	conn_close(&client->conn);
	gpu_table_deinit(&client->gpu);
	bounce_cache_deinit(&client->bounce);
	mem_table_deinit(&client->mem);
	unmap_rings(client);
	free(client);
	return RCCLX_OK;
}

rcclx_result rcclx_unique_id_create(struct rcclx_client *client, struct rcclx_unique_id *id_p)
{
	struct rx_msg request = {.type = RX_MSG_UNIQUE_ID_GET};
	struct conn_wait wait = {.deadline_ns = rx_deadline_ns(CONN_TIMEOUT_NS)};
	struct conn_reply reply;
	rcclx_result r = RCCLX_OK;

	if (!client || !id_p)
		return err_set(RCCLX_ERR_INVALID, "rcclx_unique_id_create: %s is NULL",
			client ? "id_p" : "client");
	r = session_usable(client);
	if (r == RCCLX_OK)
		r = conn_call(&client->conn, &request, -1, RX_MSG_UNIQUE_ID_REPLY, &wait, &reply);
	if (r != RCCLX_OK)
		return r;
	/* Its length has been checked with the message. */
	memcpy(id_p->bytes, reply.msg.unique_id_reply.id.data, sizeof(id_p->bytes));
	conn_reply_deinit(&reply);
	return RCCLX_OK;
}
