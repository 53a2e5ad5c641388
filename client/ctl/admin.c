/* SPDX-License-Identifier: MIT */
#include "admin.h"

#include "../../shm/rx_clock.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define TIMEOUT_NS  (5 * RX_NS_PER_SEC)
#define REQUEST_MAX 64u
#define PATHS_MAX   3u

struct search {
	char paths[PATHS_MAX][sizeof(((struct sockaddr_un *)NULL)->sun_path)];
	int errors[PATHS_MAX]; /* errno of each */
	size_t n;
};

static void add_path(struct search *search, const char *dir, size_t dir_bytes, const char *name)
{
	char *path = search->paths[search->n];
	size_t cap = sizeof(search->paths[0]);
	int n = snprintf(path, cap, "%.*s%s", (int)dir_bytes, dir, name);

	search->errors[search->n] = n < 0 || (size_t)n >= cap ? ENAMETOOLONG : 0;
	search->n++;
}

/* A path that somebody has chosen is the only one; the well-known ones are tried in turn. */
static void choose_paths(struct search *search, const char *given)
{
	const char *admin = getenv("RCCLX_ADMIN_SOCKET");
	const char *control = getenv("RCCLX_SOCKET");
	const char *runtime = getenv("XDG_RUNTIME_DIR");

	if (!given)
		given = admin;
	if (given) {
		add_path(search, given, strlen(given), "");
		return;
	}
	if (control) {
		const char *slash = strrchr(control, '/');

		add_path(search, control, slash ? (size_t)(slash - control) + 1 : 0, "admin.sock");
		return;
	}
	add_path(search, "/run/rcclx", strlen("/run/rcclx"), "/admin.sock");
	if (runtime)
		add_path(search, runtime, strlen(runtime), "/rcclx/admin.sock");
}

static int connect_to(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct timeval timeout = {.tv_sec = TIMEOUT_NS / RX_NS_PER_SEC};
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int saved = 0;

	if (sock < 0)
		return -errno;
	memcpy(address.sun_path, path, strlen(path) + 1);
	/* Bounds connect() too, which waits while the daemon's backlog is full. */
	if (setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)) == 0 &&
		connect(sock, (struct sockaddr *)&address, sizeof(address)) == 0)
		return sock;
	saved = errno;
	(void)close(sock);
	return -saved;
}

static enum ctl_exit not_found(const struct search *search, bool quiet)
{
	bool denied = false;

	for (size_t i = 0; i < search->n; i++)
		denied |= search->errors[i] == EACCES || search->errors[i] == EPERM;
	if (quiet && !denied)
		return CTL_EXIT_NO_DAEMON;
	fprintf(stderr, "rcclxctl: %s; tried", denied ? "permission denied" : "no rcclxd answers");
	for (size_t i = 0; i < search->n; i++)
		fprintf(stderr, "%s %s (%s)", i ? "," : "", search->paths[i],
			strerror(search->errors[i]));
	if (denied)
		fprintf(stderr,
			"\nThe admin socket is for root and the daemon's own user: try sudo "
			"rcclxctl\n");
	else
		fprintf(stderr, "\nStart the daemon with: systemctl start rcclxd\n"
				"or, without root: rcclxd --private\n"
				"or name its admin socket with --socket or RCCLX_ADMIN_SOCKET\n");
	return denied ? CTL_EXIT_DENIED : CTL_EXIT_NO_DAEMON;
}

enum ctl_exit admin_open(const char *path, bool quiet, struct admin **admin_p)
{
	struct search search = {0};
	struct admin *admin = NULL;
	int sock = -1;

	choose_paths(&search, path);
	for (size_t i = 0; i < search.n && sock < 0; i++) {
		if (search.errors[i])
			continue;
		sock = connect_to(search.paths[i]);
		search.errors[i] = sock < 0 ? -sock : 0;
	}
	if (sock < 0)
		return not_found(&search, quiet);
	admin = calloc(1, sizeof(*admin));
	if (!admin) {
		fprintf(stderr, "rcclxctl: out of memory\n");
		(void)close(sock);
		return CTL_EXIT_FAILED;
	}
	admin->sock = sock;
	*admin_p = admin;
	return CTL_EXIT_OK;
}

void admin_close(struct admin *admin)
{
	if (!admin)
		return;
	(void)close(admin->sock);
	free(admin);
}

static enum ctl_exit complain(const char *what)
{
	fprintf(stderr, "rcclxctl: %s\n", what);
	return CTL_EXIT_FAILED;
}

static enum ctl_exit await(const struct admin *admin, short events, uint64_t deadline_ns)
{
	struct pollfd pfd = {.fd = admin->sock, .events = events};

	for (;;) {
		uint64_t now = rx_now_ns();
		int ms = 0, n = 0;

		if (now >= deadline_ns)
			return complain("the daemon does not answer within 5 s");
		ms = (int)((deadline_ns - now + RX_NS_PER_MS - 1) / RX_NS_PER_MS);
		n = poll(&pfd, 1, ms);
		if (n > 0)
			return CTL_EXIT_OK;
		if (n < 0 && errno != EINTR)
			return complain("poll failed");
	}
}

static enum ctl_exit explain_frame(int r, const char *why)
{
	if (r == RX_FRAME_E_CLOSED)
		return complain("the daemon closed the connection");
	if (r == RX_FRAME_E_VIOLATION || r == RX_FRAME_E_NO_FDS)
		fprintf(stderr, "rcclxctl: the daemon's answer is not understood: %s\n", why);
	else
		fprintf(stderr, "rcclxctl: admin socket: %s\n", strerror(-r));
	return CTL_EXIT_FAILED;
}

static enum ctl_exit send_request(
	struct admin *admin, enum rx_msg_type request, uint64_t after, uint64_t deadline_ns)
{
	struct rx_msg msg = {.type = request, .serial = ++admin->serial};
	uint8_t payload[REQUEST_MAX] = {0};
	size_t len = 0;
	int r = RX_FRAME_E_AGAIN;

	msg.admin_list.after = after;
	if (rx_msg_pack(&msg, payload, sizeof(payload), &len))
		return complain("a request does not fit its frame");
	while (r == RX_FRAME_E_AGAIN) {
		enum ctl_exit status = await(admin, POLLOUT, deadline_ns);

		if (status != CTL_EXIT_OK)
			return status;
		r = rx_frame_send(admin->sock, request, msg.serial, payload, len, NULL, 0);
	}
	return r == RX_FRAME_OK ? CTL_EXIT_OK : explain_frame(r, "");
}

static enum ctl_exit recv_reply(struct admin *admin, uint64_t deadline_ns)
{
	const struct rx_frame_header *header = &admin->frame.header;
	const char *why = "";
	int r = RX_FRAME_E_AGAIN;

	while (r == RX_FRAME_E_AGAIN) {
		enum ctl_exit status = await(admin, POLLIN, deadline_ns);

		if (status != CTL_EXIT_OK)
			return status;
		r = rx_frame_recv(admin->sock, &admin->frame, &why);
	}
	if (r != RX_FRAME_OK)
		return explain_frame(r, why);
	rx_fdset_close(&admin->frame.fds);
	if (header->serial != admin->serial)
		return complain("the daemon answered another request");
	if (rx_msg_unpack((enum rx_msg_type)header->type, header->serial, admin->frame.payload,
		    header->bytes, &admin->arena, &admin->reply, &why))
		return explain_frame(RX_FRAME_E_VIOLATION, why);
	return CTL_EXIT_OK;
}

enum ctl_exit admin_ask(
	struct admin *admin, enum rx_msg_type request, uint64_t after, enum rx_msg_type expect)
{
	uint64_t deadline_ns = rx_deadline_ns(TIMEOUT_NS);
	enum ctl_exit status = send_request(admin, request, after, deadline_ns);

	if (status == CTL_EXIT_OK)
		status = recv_reply(admin, deadline_ns);
	if (status != CTL_EXIT_OK)
		return status;
	if (admin->reply.type == RX_MSG_ERROR) {
		fprintf(stderr, "rcclxctl: the daemon refuses: %s\n", admin->reply.error.text);
		return CTL_EXIT_FAILED;
	}
	if (admin->reply.type != expect)
		return complain("the daemon's answer is of another kind");
	return CTL_EXIT_OK;
}

/* A list that does not get further would be asked for without end. */
static enum ctl_exit advance(uint64_t *after, uint64_t last)
{
	if (last <= *after)
		return complain("the daemon's list does not go on");
	*after = last;
	return CTL_EXIT_OK;
}

enum ctl_exit admin_each_session(struct admin *admin, admin_session_fn fn, void *ctx)
{
	const struct rx_msg_admin_sessions_reply *reply = &admin->reply.admin_sessions_reply;
	uint64_t after = 0;
	bool more = true;

	while (more) {
		enum ctl_exit status =
			admin_ask(admin, RX_MSG_ADMIN_SESSIONS, after, RX_MSG_ADMIN_SESSIONS_REPLY);

		for (size_t i = 0; status == CTL_EXIT_OK && i < reply->n_sessions; i++)
			status = fn(&reply->sessions[i], ctx);
		more = status == CTL_EXIT_OK && reply->more;
		if (more)
			status = advance(&after,
				reply->n_sessions ? reply->sessions[reply->n_sessions - 1].id : 0);
		if (status != CTL_EXIT_OK)
			return status;
	}
	return CTL_EXIT_OK;
}

enum ctl_exit admin_each_comm(struct admin *admin, admin_comm_fn fn, void *ctx)
{
	const struct rx_msg_admin_comms_reply *reply = &admin->reply.admin_comms_reply;
	uint64_t after = 0;
	bool more = true;

	while (more) {
		enum ctl_exit status =
			admin_ask(admin, RX_MSG_ADMIN_COMMS, after, RX_MSG_ADMIN_COMMS_REPLY);

		for (size_t i = 0; status == CTL_EXIT_OK && i < reply->n_comms; i++)
			status = fn(&reply->comms[i], ctx);
		more = status == CTL_EXIT_OK && reply->more;
		if (more)
			status = advance(
				&after, reply->n_comms ? reply->comms[reply->n_comms - 1].id : 0);
		if (status != CTL_EXIT_OK)
			return status;
	}
	return CTL_EXIT_OK;
}
