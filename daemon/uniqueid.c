/* SPDX-License-Identifier: MIT */
#include "uniqueid.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

static const uint8_t magic[8] = {'R', 'C', 'C', 'L', 'X', 'U', 'I', 'D'};

#define ID_VERSION 1u

/* Offsets of the fields; what follows the random bytes is zero. */
enum {
	AT_MAGIC = 0,
	AT_VERSION = 8, /* little endian, 8 bytes */
	AT_INSTANCE = 16,
	AT_RANDOM = AT_INSTANCE + RX_INSTANCE_BYTES,
	AT_ZERO = AT_RANDOM + UNIQUEID_RANDOM_BYTES,
};

int uniqueid_make(const uint8_t instance[RX_INSTANCE_BYTES], uint8_t id[RX_UNIQUE_ID_BYTES])
{
	ssize_t n = 0;

	memset(id, 0, RX_UNIQUE_ID_BYTES);
	memcpy(id + AT_MAGIC, magic, sizeof(magic));
	id[AT_VERSION] = ID_VERSION;
	memcpy(id + AT_INSTANCE, instance, RX_INSTANCE_BYTES);
	n = getrandom(id + AT_RANDOM, UNIQUEID_RANDOM_BYTES, 0);
	if (n < 0)
		return -errno;
	return n == UNIQUEID_RANDOM_BYTES ? 0 : -EIO;
}

int uniqueid_check(const uint8_t instance[RX_INSTANCE_BYTES], const uint8_t id[RX_UNIQUE_ID_BYTES])
{
	static const uint8_t version[8] = {ID_VERSION};

	if (memcmp(id + AT_MAGIC, magic, sizeof(magic)) != 0 ||
		memcmp(id + AT_VERSION, version, sizeof(version)) != 0)
		return UNIQUEID_E_FORMAT;
	for (uint32_t i = AT_ZERO; i < RX_UNIQUE_ID_BYTES; i++)
		if (id[i] != 0)
			return UNIQUEID_E_FORMAT;
	if (memcmp(id + AT_INSTANCE, instance, RX_INSTANCE_BYTES) != 0)
		return UNIQUEID_E_FOREIGN;
	return 0;
}

uint32_t uniqueid_hash(const uint8_t id[RX_UNIQUE_ID_BYTES])
{
	uint32_t hash = 0;

	memcpy(&hash, id + AT_RANDOM, sizeof(hash));
	return hash;
}

void uniqueid_log_add(struct uniqueid_log *log, const uint8_t id[RX_UNIQUE_ID_BYTES])
{
	memcpy(log->entries[log->n_added % UNIQUEID_LOG_ENTRIES], id + AT_RANDOM,
		sizeof(log->entries[0]));
	log->n_added++;
}

bool uniqueid_log_has(const struct uniqueid_log *log, const uint8_t id[RX_UNIQUE_ID_BYTES])
{
	uint32_t n = log->n_added < UNIQUEID_LOG_ENTRIES ? log->n_added : UNIQUEID_LOG_ENTRIES;

	for (uint32_t i = 0; i < n; i++)
		if (memcmp(log->entries[i], id + AT_RANDOM, sizeof(log->entries[0])) == 0)
			return true;
	return false;
}
