/* SPDX-License-Identifier: MIT */
/* The 128 bytes under which ranks find each other: a random capability that names its daemon. */
#ifndef DAEMON_UNIQUEID_H
#define DAEMON_UNIQUEID_H

#include "../proto/rx_proto.h"

#define UNIQUEID_RANDOM_BYTES 32u
#define UNIQUEID_LOG_ENTRIES  1024u

/** uniqueid_make() - a fresh id of daemon @instance; -errno when there is no randomness */
RX_WARN_UNUSED int uniqueid_make(
	const uint8_t instance[RX_INSTANCE_BYTES], uint8_t id[RX_UNIQUE_ID_BYTES]);

enum {
	UNIQUEID_E_FORMAT = 1,  /* not an id of rcclxd */
	UNIQUEID_E_FOREIGN = 2, /* of another daemon, or of an earlier run of this one */
};

/** uniqueid_check() - 0, UNIQUEID_E_FORMAT, UNIQUEID_E_FOREIGN */
RX_WARN_UNUSED int uniqueid_check(
	const uint8_t instance[RX_INSTANCE_BYTES], const uint8_t id[RX_UNIQUE_ID_BYTES]);

/** uniqueid_hash() - for tables; @id as received */
uint32_t uniqueid_hash(const uint8_t id[RX_UNIQUE_ID_BYTES]);

/* The ids that were formed most recently, so that none is formed twice. */
struct uniqueid_log {
	uint8_t entries[UNIQUEID_LOG_ENTRIES][16];
	uint32_t n_added;
};

void uniqueid_log_add(struct uniqueid_log *log, const uint8_t id[RX_UNIQUE_ID_BYTES]);
bool uniqueid_log_has(const struct uniqueid_log *log, const uint8_t id[RX_UNIQUE_ID_BYTES]);

#endif
