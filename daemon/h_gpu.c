/* SPDX-License-Identifier: MIT */
/* Handlers of device memory, and of what people ask about devices. */
#include "dispatch.h"

#include "daemon.h"
#include "gpu_exchange.h"
#include "gpu_mem.h"
#include "inline_kernels.h"
#include "peer.h"
#include "region.h"
#include "reply.h"
#include "session.h"
#include "slab.h"
#include "../shm/rx_gate_abi.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define PAGE_DEVICES 8u

static const char *device_state_name(enum gpu_device_state state)
{
	static const char *const names[_GPU_DEVICE_STATE_N] = {
		[GPU_CLOSED] = "closed",
		[GPU_OPEN] = "open",
		[GPU_FAILED] = "failed",
	};

	return names[state];
}

/* "constant 2, refused 1" */
static void describe_copied(const struct rx_gpu_stats *stats, char *text, size_t bytes)
{
	static const char *const names[RX_GPU_WHY_N] = {
		[RX_GPU_WHY_KIND] = "kind",
		[RX_GPU_WHY_REFUSED] = "refused",
		[RX_GPU_WHY_LIMIT] = "limit",
		[RX_GPU_WHY_CONSTANT] = "constant",
		[RX_GPU_WHY_REPLICA] = "replica",
		[RX_GPU_WHY_DIFFERENT] = "different",
		[RX_GPU_WHY_WRONG] = "wrong",
	};
	size_t used = 0;

	text[0] = '\0';
	for (uint32_t why = 0; why < RX_GPU_WHY_N && used < bytes; why++)
		if (stats->n_copied[why] > 0)
			used += (size_t)snprintf(text + used, bytes - used, "%s%s %llu",
				used ? ", " : "", names[why],
				(unsigned long long)stats->n_copied[why]);
}

/* "limit 2, busy 1" */
static void describe_direct(const struct gpu_exchange_view *view, char *text, size_t bytes)
{
	static const char *const names[_GPU_WHY_DIRECT_N] = {
		[GPU_WAITS] = "",
		[GPU_DIRECT_OFF] = "off",
		[GPU_DIRECT_LIMIT] = "limit",
		[GPU_DIRECT_MEMORY] = "memory",
		[GPU_DIRECT_BUSY] = "busy",
	};
	size_t used = 0;

	text[0] = '\0';
	for (uint32_t why = GPU_WAITS + 1; why < _GPU_WHY_DIRECT_N && used < bytes; why++)
		if (view->n_direct[why] > 0)
			used += (size_t)snprintf(text + used, bytes - used, "%s%s %llu",
				used ? ", " : "", names[why],
				(unsigned long long)view->n_direct[why]);
}

/* What the texts of a page point to. */
struct device_page {
	struct rx_device_info infos[PAGE_DEVICES];
	struct gpu_device_view views[PAGE_DEVICES];
	char copied[PAGE_DEVICES][RX_DEVICE_TEXT_MAX];
	char direct[PAGE_DEVICES][RX_DEVICE_TEXT_MAX];
};

static void fill_device(struct daemon *daemon, uint32_t index, struct device_page *page, size_t at)
{
	struct gpu *gpu = daemon->gpu;
	const struct rx_gpu_device_info *info = gpu_info(gpu, index);
	struct gpu_device_view *view = &page->views[at];
	const struct rx_gpu_stats *stats = &view->stats;

	struct gpu_exchange_view exchange;

	gpu_view(gpu, index, view);
	gpu_exchange_view(gpu, index, &exchange);
	describe_direct(&exchange, page->direct[at], sizeof(page->direct[at]));
	describe_copied(stats, page->copied[at], sizeof(page->copied[at]));
	page->infos[at] = (struct rx_device_info){
		.index = index,
		.name = info->name,
		.arch = info->arch,
		.pci = info->pci,
		.uuid = {.data = info->uuid, .len = sizeof(info->uuid)},
		.memory_bytes = info->memory_bytes,
		.n_units = info->n_units,
		.peers = gpu_peers(gpu, index),
		.state = device_state_name(view->state),
		.error = view->error,
		.n_launches = stats->n_launches,
		.n_imports = stats->n_imports,
		.n_proofs = stats->n_proofs,
		.mapped_bytes = stats->mapped_bytes,
		.n_maps = stats->n_maps,
		.n_quarantined = stats->n_quarantined,
		.copied = page->copied[at],
		.n_ops = view->n_ops,
		.n_op_bytes = view->n_op_bytes,
		.n_failures = view->n_failures,
		.scratch_bytes = stats->scratch_bytes,
		.scratch_high_bytes = stats->scratch_high_bytes,
		.exchange_bytes = exchange.bytes,
		.n_exchange_ops = exchange.n_ops,
		.direct = page->direct[at],
		.n_staged_ops = view->n_staged,
	};
	slab_usage(daemon->slabs, index, &page->infos[at].slab_bytes,
		&page->infos[at].slab_used_bytes);
}

void h_admin_devices(struct peer *peer, const struct rx_msg *msg, struct rx_fdset *fds)
{
	struct gpu *gpu = peer->daemon->gpu;
	struct device_page buffers;
	struct rx_msg answer = {.type = RX_MSG_ADMIN_DEVICES_REPLY, .serial = msg->serial};
	struct rx_msg_admin_devices_reply *page = &answer.admin_devices_reply;
	bool ready = gpu_state(gpu) == GPU_READY;

	(void)fds;
	page->state = gpu_state_name(gpu_state(gpu));
	page->backend = gpu_backend_name(gpu);
	page->reason = gpu_reason(gpu);
	page->devices = buffers.infos;
	for (uint64_t i = msg->admin_list.after; ready && i < gpu_n_devices(gpu); i++) {
		page->more = page->n_devices == PAGE_DEVICES;
		if (page->more)
			break;
		fill_device(peer->daemon, (uint32_t)i, &buffers, page->n_devices);
		page->n_devices++;
	}
	reply(peer, &answer, NULL, 0);
}

/* ---- memory ---- */

static void on_registered(
	struct session *session, uint32_t serial, int r, const struct region *region, uint32_t why)
{
	struct rx_msg answer = {
		.type = RX_MSG_GPU_REPLY,
		.serial = serial,
		.gpu_reply = {.handle = region ? region_handle(region) : 0, .why = why},
	};

	if (r == -EINVAL)
		reply_error(session->peer, serial, RX_ERR_INVALID, 0,
			"cannot register device memory: its pieces do not follow each other, or "
			"the sample is not inside");
	else if (r)
		reply_failure(session->peer, serial, r, "cannot register device memory");
	else
		reply(session->peer, &answer, NULL, 0);
}

void h_gates_open(struct peer *peer, const struct rx_msg *msg, struct rx_fdset *fds)
{
	struct session *session = peer->session;
	struct region *region = region_find(session, msg->gates_open.handle);

	(void)fds;
	if (gpu_state(session->daemon->gpu) == GPU_OFF) {
		reply_error(peer, msg->serial, RX_ERR_INVALID, 0,
			"calls in the order of a stream need a daemon that serves GPUs: %s",
			gpu_reason(session->daemon->gpu));
		return;
	}
	if (session->gates || !region || region->fd < 0 ||
		region->bytes < sizeof(struct rx_gates) || region_map(region) != 0) {
		reply_error(peer, msg->serial, RX_ERR_INVALID, 0,
			"these are no gates: expected %zu bytes of registered host memory, once",
			sizeof(struct rx_gates));
		return;
	}
	session->gates = region_ref(region);
	reply_ok(peer, msg->serial);
}

/* ---- kernels that ranks run themselves ---- */

static void on_slab(
	struct session *session, uint32_t serial, const struct slab_export *shared, const char *why)
{
	struct rx_msg answer = {.type = RX_MSG_SLAB_REPLY, .serial = serial};
	struct rx_msg_slab_reply *slab = &answer.slab_reply;
	const struct rx_gpu_memory *memory = NULL;

	if (!shared) {
		reply_error(session->peer, serial, RX_ERR_SYSTEM, 0,
			"the daemon has no device memory to share: %s", why);
		return;
	}
	memory = &shared->export.memory;
	*slab = (struct rx_msg_slab_reply){
		.start = memory->base,
		.bytes = memory->bytes,
		.id = memory->id,
		.uuid = {.data = memory->uuid, .len = sizeof(memory->uuid)},
		.handle = {.data = shared->export.handle, .len = sizeof(shared->export.handle)},
		.rows = {.data = shared->rows, .len = sizeof(shared->rows)},
		.part_offset = shared->part_offset,
		.part_bytes = shared->part_bytes,
		.max_blocks = shared->max_blocks,
	};
	reply(session->peer, &answer, NULL, 0);
}

void h_slab_get(struct peer *peer, const struct rx_msg *msg, struct rx_fdset *fds)
{
	const struct rx_msg_slab_get *get = &msg->slab_get;
	struct member *member = member_find(peer->session, get->member);
	struct slab_part *part = member ? inline_kernels_part(member->comm, get->rank) : NULL;

	(void)fds;
	if (part)
		slab_share(part, peer->session, msg->serial, on_slab);
	else
		reply_error(peer, msg->serial, RX_ERR_INVALID, 0,
			"there is no device memory for kernels of rank %u", get->rank);
}

void h_kernels_ready(struct peer *peer, const struct rx_msg *msg, struct rx_fdset *fds)
{
	struct member *member = member_find(peer->session, msg->kernels_ready.member);

	(void)fds;
	if (member)
		inline_kernels_say(
			member, msg->serial, msg->kernels_ready.cell, msg->kernels_ready.why);
	else
		reply_error(peer, msg->serial, RX_ERR_INVALID, 0,
			"no membership of this session has the handle %u",
			msg->kernels_ready.member);
}

void h_gpu_register(struct peer *peer, const struct rx_msg *msg, struct rx_fdset *fds)
{
	gpu_mem_register(peer->session, msg->serial, &msg->gpu_register, fds, on_registered);
}
