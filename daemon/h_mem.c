/* SPDX-License-Identifier: MIT */
/* Handlers of registered memory. */
#include "dispatch.h"

#include "comm.h"
#include "comm_mem.h"
#include "daemon.h"
#include "peer.h"
#include "region.h"
#include "reply.h"
#include "session.h"
#include "../shm/rx_cleanup.h"

static void reply_region(
	struct peer *peer, uint32_t serial, const struct region *region, bool with_fd)
{
	struct rx_msg answer = {
		.type = RX_MSG_MEM_REPLY,
		.serial = serial,
		.mem_reply =
			{
				.handle = region_handle(region),
				.region_id = region->id,
				.bytes = region->bytes,
			},
	};

	reply(peer, &answer, &region->fd, with_fd ? 1 : 0);
}

static void on_alloc(struct session *session, uint32_t serial, int r, const struct region *region)
{
	if (r)
		reply_failure(session->peer, serial, r, "cannot allocate memory");
	else
		reply_region(session->peer, serial, region, true);
}

void h_mem_alloc(struct peer *peer, const struct rx_msg *msg, struct rx_fdset *fds)
{
	(void)fds;
	region_alloc(peer->session, msg->serial, msg->mem_alloc.bytes, on_alloc);
}

void h_mem_register(struct peer *peer, const struct rx_msg *msg, struct rx_fdset *fds)
{
	struct region *region = NULL;
	RX_CLOSE int fd = rx_fdset_take(fds, 0);
	int r = region_register(
		peer->session, &fd, msg->mem_register.offset, msg->mem_register.bytes, &region);

	if (r == 0)
		reply_region(peer, msg->serial, region, false);
	else if (r == REGION_E_SEALS)
		reply_error(peer, msg->serial, RX_ERR_INVALID, 0,
			"cannot register the file: expected a memfd sealed with F_SEAL_SHRINK");
	else if (r == REGION_E_RANGE)
		reply_error(peer, msg->serial, RX_ERR_INVALID, 0,
			"cannot register the range: expected whole pages inside the file");
	else
		reply_failure(peer, msg->serial, r, "cannot register memory");
}

/* The members of the session's communicators may have mapped what is about to go. */
static void tell_comms(const struct session *session)
{
	rx_list_for_each (pos, &session->members) {
		struct member *member = rx_list_entry(pos, struct member, session_link);

		if (member->comm->state != COMM_FORMING)
			comm_mem_forget(member->comm);
	}
}

void h_mem_free(struct peer *peer, const struct rx_msg *msg, struct rx_fdset *fds)
{
	struct region *region = region_find(peer->session, msg->mem_free.handle);

	(void)fds;
	if (!region) {
		reply_error(peer, msg->serial, RX_ERR_INVALID, 0,
			"no memory of this session has the handle %u", msg->mem_free.handle);
		return;
	}
	tell_comms(peer->session);
	region_close(region);
	reply_ok(peer, msg->serial);
}

void h_mem_import(struct peer *peer, const struct rx_msg *msg, struct rx_fdset *fds)
{
	struct member *member = member_find(peer->session, msg->mem_import.member);
	struct region *region = rx_idmap_find(&peer->daemon->regions, msg->mem_import.region_id);
	struct rx_msg answer = {.type = RX_MSG_MEM_IMPORT_REPLY, .serial = msg->serial};

	(void)fds;
	/* One text for both: whether somebody else's region exists is nobody's business. */
	if (!member || !region || !region->session || region->fd < 0 ||
		!comm_has_session(member->comm, region->session)) {
		reply_error(peer, msg->serial, RX_ERR_INVALID, 0,
			"no member of that communicator has such memory");
		return;
	}
	answer.mem_import_reply = (struct rx_msg_mem_import_reply){
		.bytes = region->bytes,
		.offset = region->offset,
	};
	reply(peer, &answer, &region->fd, 1);
}
