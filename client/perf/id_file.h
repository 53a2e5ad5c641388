/* SPDX-License-Identifier: MIT */
/* How ranks of a launcher on one node find each other: rank 0 leaves the unique id in a file. */
#ifndef PERF_ID_FILE_H
#define PERF_ID_FILE_H

#include "../rcclx.h"
#include "../../shm/rx_base.h"

struct perf_id_file {
	char path[4096];
	bool made; /* by this process, which removes it */
};

/**
 * perf_id_file_init() - choose the path
 * @given: --id-file; NULL: $RCCLX_PERF_ID_FILE, else one in /tmp named by the user and the parent
 *         process, which is the launcher, or its agent, of all ranks on a node
 *
 * Return: false when the path is too long.
 */
RX_WARN_UNUSED bool perf_id_file_init(struct perf_id_file *file, const char *given);

/** perf_id_file_write() - rank 0: create the file, which must not exist; false: explained */
RX_WARN_UNUSED bool perf_id_file_write(struct perf_id_file *file, const struct rcclx_unique_id *id);

/** perf_id_file_read() - other ranks: wait for the file for @timeout_ns; false: explained */
RX_WARN_UNUSED bool perf_id_file_read(
	const struct perf_id_file *file, uint64_t timeout_ns, struct rcclx_unique_id *id_p);

/** perf_id_file_remove() - remove the file if this process made it */
void perf_id_file_remove(struct perf_id_file *file);

#endif
