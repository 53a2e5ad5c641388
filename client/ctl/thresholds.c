/* SPDX-License-Identifier: MIT */
#include "thresholds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COMPILED "compiled default"

static void use_compiled(struct thresholds *thresholds)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	*thresholds = (struct thresholds){
		.table = *rx_tuning_default(),
		.devices = *rx_device_tuning_default(),
		.n_cores = n > 0 ? (uint32_t)n : 1,
	};
}

static bool take_text(char **to, const char *from)
{
	free(*to);
	*to = from ? strdup(from) : NULL;
	return !from || *to;
}

/* An older daemon says nothing of them. */
static bool take_devices(struct thresholds *thresholds, const struct rx_tuning_row *row, uint32_t c)
{
	const char *const from[RX_DEVICE_THRESHOLD_N] = {
		[RX_DEVICE_FLAT_MAX] = row->device_flat_max_from,
		[RX_DEVICE_TREE_MIN] = row->device_tree_min_from,
		[RX_DEVICE_SLOTS_MIN] = row->device_slots_min_from,
		[RX_DEVICE_PUSH_MIN] = row->device_push_min_from,
	};
	const uint64_t values[RX_DEVICE_THRESHOLD_N] = {
		[RX_DEVICE_FLAT_MAX] = row->device_flat_max,
		[RX_DEVICE_TREE_MIN] = row->device_tree_min,
		[RX_DEVICE_SLOTS_MIN] = row->device_slots_min,
		[RX_DEVICE_PUSH_MIN] = row->device_push_min,
	};

	for (uint32_t t = 0; t < RX_DEVICE_THRESHOLD_N; t++) {
		if (!*from[t])
			continue;
		thresholds->devices.entries[row->coll][c].values[t] = values[t];
		if (!take_text(&thresholds->device_from[row->coll][c][t], from[t]))
			return false;
	}
	return true;
}

static bool take_row(struct thresholds *thresholds, const struct rx_tuning_row *row)
{
	uint32_t c = rx_tuning_class(row->ranks);
	const char *const from[_EXPLAIN_THRESHOLD_N] = {
		[EXPLAIN_FLAT_MAX] = row->flat_max_from,
		[EXPLAIN_FLAT_MAX_SHARED] = row->flat_max_shared_from,
		[EXPLAIN_CHUNK] = row->chunk_from,
		[EXPLAIN_DIRECT_MIN] = row->direct_min_from,
		[EXPLAIN_STREAM_MIN] = row->stream_min_from,
		[EXPLAIN_LOW_PRECISION_MIN] = row->low_precision_min_from,
		[EXPLAIN_SINGLE_MIN] = row->single_min_from,
	};

	/* A newer daemon's. */
	if (row->coll >= RX_TUNING_COLLS)
		return true;
	thresholds->table.entries[row->coll][c] = (struct rx_tuning_entry){
		.flat_max = row->flat_max,
		.flat_max_shared = row->flat_max_shared,
		.chunk = row->chunk,
		.direct_min = row->direct_min,
		.stream_min = row->stream_min,
		.low_precision_min = row->low_precision_min,
		.single_min = row->single_min,
	};
	for (size_t t = 0; t < RX_ARRAY_SIZE(from); t++)
		if (!take_text(&thresholds->from[row->coll][c][t], from[t]))
			return false;
	return take_devices(thresholds, row, c);
}

static enum ctl_exit out_of_memory(void)
{
	fprintf(stderr, "rcclxctl: out of memory\n");
	return CTL_EXIT_FAILED;
}

static enum ctl_exit take_rows(struct admin *admin, struct thresholds *thresholds)
{
	const struct rx_msg_admin_tuning_reply *reply = &admin->reply.admin_tuning_reply;
	uint64_t after = 0;
	bool more = true;

	while (more) {
		enum ctl_exit status =
			admin_ask(admin, RX_MSG_ADMIN_TUNING, after, RX_MSG_ADMIN_TUNING_REPLY);

		if (status != CTL_EXIT_OK)
			return status;
		for (size_t i = 0; i < reply->n_rows; i++)
			if (!take_row(thresholds, &reply->rows[i]))
				return out_of_memory();
		thresholds->table.epoch = reply->epoch;
		if (*reply->dir && !thresholds->dir) {
			thresholds->dir = strdup(reply->dir);
			if (!thresholds->dir)
				return out_of_memory();
		}
		after += reply->n_rows;
		/* A list that does not get further would be asked for without end. */
		more = reply->more && reply->n_rows > 0;
	}
	return CTL_EXIT_OK;
}

enum ctl_exit thresholds_get(const char *socket, struct thresholds *thresholds)
{
	struct admin *admin = NULL;
	enum ctl_exit status = admin_open(socket, true, &admin);

	use_compiled(thresholds);
	if (status == CTL_EXIT_NO_DAEMON)
		return CTL_EXIT_OK;
	if (status == CTL_EXIT_OK)
		status = take_rows(admin, thresholds);
	if (status == CTL_EXIT_OK)
		status = admin_ask(admin, RX_MSG_ADMIN_TOPOLOGY, 0, RX_MSG_ADMIN_TOPOLOGY_REPLY);
	if (status == CTL_EXIT_OK) {
		thresholds->of_daemon = true;
		thresholds->n_cores = admin->reply.admin_topology_reply.n_cores;
	} else {
		thresholds_deinit(thresholds);
	}
	admin_close(admin);
	return status;
}

const char *thresholds_from(const struct thresholds *thresholds, uint32_t coll, uint32_t n_ranks,
	enum explain_threshold threshold)
{
	const char *from = thresholds->from[coll][rx_tuning_class(n_ranks)][threshold];

	return from ? from : COMPILED;
}

const char *thresholds_device_from(const struct thresholds *thresholds, uint32_t coll,
	uint32_t n_ranks, enum rx_device_threshold threshold)
{
	const char *from = thresholds->device_from[coll][rx_tuning_class(n_ranks)][threshold];

	return from ? from : COMPILED;
}

static void free_texts(char **texts, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(texts[i]);
}

void thresholds_deinit(struct thresholds *thresholds)
{
	for (size_t coll = 0; coll < RX_TUNING_COLLS; coll++)
		for (size_t c = 0; c < RX_TUNING_CLASSES; c++) {
			free_texts(thresholds->from[coll][c], _EXPLAIN_THRESHOLD_N);
			free_texts(thresholds->device_from[coll][c], RX_DEVICE_THRESHOLD_N);
		}
	free(thresholds->dir);
	*thresholds = (struct thresholds){0};
}
