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
		.n_cores = n > 0 ? (uint32_t)n : 1,
	};
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
	for (size_t t = 0; t < RX_ARRAY_SIZE(from); t++) {
		char **to = &thresholds->from[row->coll][c][t];

		free(*to);
		*to = from[t] ? strdup(from[t]) : NULL;
		if (from[t] && !*to)
			return false;
	}
	return true;
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

void thresholds_deinit(struct thresholds *thresholds)
{
	for (size_t coll = 0; coll < RX_TUNING_COLLS; coll++)
		for (size_t c = 0; c < RX_TUNING_CLASSES; c++)
			for (size_t t = 0; t < _EXPLAIN_THRESHOLD_N; t++)
				free(thresholds->from[coll][c][t]);
	free(thresholds->dir);
	*thresholds = (struct thresholds){0};
}
