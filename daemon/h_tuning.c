/* SPDX-License-Identifier: MIT */
/* Handlers of the admin socket: thresholds and where they come from, and the node's topology. */
#include "dispatch.h"

#include "daemon.h"
#include "peer.h"
#include "reply.h"
#include "topology.h"
#include "tuning.h"

#include <errno.h>
#include <stdlib.h>

#define PAGE_BYTES   (RX_FRAME_MAX - (uint32_t)sizeof(struct rx_frame_header))
#define PAGE_ROWS    32u
#define PAGE_OBJECTS 128u

struct tuning_page {
	struct rx_tuning_row rows[PAGE_ROWS];
	char texts[PAGE_ROWS][_TUNING_VALUE_N][RX_ERROR_TEXT_MAX + 1];
};

static void fill_row(const struct tuning *tuning, uint64_t index, struct rx_tuning_row *row,
	char texts[_TUNING_VALUE_N][RX_ERROR_TEXT_MAX + 1])
{
	uint32_t coll = (uint32_t)(index / RX_TUNING_CLASSES);
	uint32_t tuning_class = (uint32_t)(index % RX_TUNING_CLASSES);
	const struct rx_tuning_entry *entry = &tuning->table.entries[coll][tuning_class];
	const struct rx_device_tuning_entry *devices = &tuning->devices.entries[coll][tuning_class];

	for (uint32_t v = 0; v < _TUNING_VALUE_N; v++)
		tuning_describe(tuning, coll, tuning_class, (enum tuning_value)v, texts[v],
			RX_ERROR_TEXT_MAX + 1);
	*row = (struct rx_tuning_row){
		.coll = coll,
		.ranks = rx_tuning_class_max(tuning_class),
		.flat_max = entry->flat_max,
		.flat_max_shared = entry->flat_max_shared,
		.chunk = entry->chunk,
		.direct_min = entry->direct_min,
		.stream_min = entry->stream_min,
		.low_precision_min = entry->low_precision_min,
		.flat_max_from = texts[TUNING_FLAT_MAX],
		.flat_max_shared_from = texts[TUNING_FLAT_MAX_SHARED],
		.chunk_from = texts[TUNING_CHUNK],
		.direct_min_from = texts[TUNING_DIRECT_MIN],
		.stream_min_from = texts[TUNING_STREAM_MIN],
		.low_precision_min_from = texts[TUNING_LOW_PRECISION_MIN],
		.single_min = entry->single_min,
		.single_min_from = texts[TUNING_SINGLE_MIN],
		.device_flat_max = devices->values[RX_DEVICE_FLAT_MAX],
		.device_tree_min = devices->values[RX_DEVICE_TREE_MIN],
		.device_slots_min = devices->values[RX_DEVICE_SLOTS_MIN],
		.device_push_min = devices->values[RX_DEVICE_PUSH_MIN],
		.device_flat_max_from = texts[TUNING_DEVICE + RX_DEVICE_FLAT_MAX],
		.device_tree_min_from = texts[TUNING_DEVICE + RX_DEVICE_TREE_MIN],
		.device_slots_min_from = texts[TUNING_DEVICE + RX_DEVICE_SLOTS_MIN],
		.device_push_min_from = texts[TUNING_DEVICE + RX_DEVICE_PUSH_MIN],
	};
}

void h_admin_tuning(struct peer *peer, const struct rx_msg *msg, struct rx_fdset *fds)
{
	const struct tuning *tuning = peer->daemon->tuning;
	struct tuning_page *buffers = malloc(sizeof(*buffers));
	struct rx_msg answer = {.type = RX_MSG_ADMIN_TUNING_REPLY, .serial = msg->serial};
	struct rx_msg_admin_tuning_reply *page = &answer.admin_tuning_reply;

	(void)fds;
	if (!buffers) {
		reply_failure(peer, msg->serial, -ENOMEM, "cannot list thresholds");
		return;
	}
	page->epoch = tuning->table.epoch;
	page->dir = tuning->dir;
	page->rows = buffers->rows;
	for (uint64_t i = msg->admin_list.after; i < RX_TUNING_COLLS * RX_TUNING_CLASSES; i++) {
		size_t n = page->n_rows;

		page->more = true;
		if (n == PAGE_ROWS)
			break;
		fill_row(tuning, i, &buffers->rows[n], buffers->texts[n]);
		page->n_rows++;
		if (rx_msg_packed_size(&answer) > PAGE_BYTES) {
			page->n_rows--;
			break;
		}
		page->more = false;
	}
	reply(peer, &answer, NULL, 0);
	free(buffers);
}

void h_admin_topology(struct peer *peer, const struct rx_msg *msg, struct rx_fdset *fds)
{
	const struct topology *topology = peer->daemon->topology;
	struct rx_topology_object objects[PAGE_OBJECTS];
	char cpus[PAGE_OBJECTS][TOPOLOGY_CPUS_TEXT];
	struct rx_msg answer = {.type = RX_MSG_ADMIN_TOPOLOGY_REPLY, .serial = msg->serial};
	struct rx_msg_admin_topology_reply *page = &answer.admin_topology_reply;

	(void)fds;
	topology_counts(topology, page);
	page->objects = objects;
	for (uint64_t i = msg->admin_list.after;; i++) {
		struct rx_topology_object spare;
		char spare_cpus[TOPOLOGY_CPUS_TEXT];

		if (page->n_objects == PAGE_OBJECTS) {
			page->more = topology_object(topology, i, &spare, spare_cpus);
			break;
		}
		if (!topology_object(topology, i, &objects[page->n_objects], cpus[page->n_objects]))
			break;
		page->n_objects++;
	}
	reply(peer, &answer, NULL, 0);
}
