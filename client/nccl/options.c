/* SPDX-License-Identifier: MIT */
/*
 * ncclConfig_t has grown with almost every release. Its size does not say which fields it has: some
 * were put where older versions have padding, and one fork has a pointer where others have two
 * numbers. The version says it; the size says how far one may read.
 */
#include "options.h"

#include "error.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* Offsets of what we read, and the versions that brought them. */
enum {
	AT_SIZE = 0,
	AT_MAGIC = 8,
	AT_VERSION = 12,
	AT_BLOCKING = 16,
	AT_COMM_NAME = 48,
	AT_COMM_DESC = 80,

	SMALLEST = AT_BLOCKING + 4,
	VERSION_NAME = 22700,
	VERSION_TIMEOUT = 23000,
	/* RCCLX 2.28 is NCCL's 2.28 with a description behind it. */
	VERSION_DESC = 22800,
	VERSION_DESC_END = 22900,
	SIZE_DESC = 88,
};

static_assert(offsetof(ncclConfig_t, blocking) == AT_BLOCKING, "as of 2.14");
static_assert(offsetof(ncclConfig_t, commName) == AT_COMM_NAME, "as of 2.27");
static_assert(sizeof(ncclConfig_t) == AT_COMM_DESC, "as of 2.28");
static_assert(sizeof(ncclCollConfig_t) == 64, "as of 2.31");

struct header {
	size_t size;
	unsigned int magic;
	unsigned int version;
};

static ncclResult_t check_header(const char *function, const char *what, const void *given,
	unsigned int magic, size_t smallest, struct header *header_p)
{
	memcpy(header_p, given, sizeof(*header_p));
	if (header_p->magic != magic)
		return error_set(ncclInvalidArgument,
			"%s: %s does not begin as it should (magic 0x%x, expected 0x%x): fill it "
			"with its initialiser macro",
			function, what, header_p->magic, magic);
	if (header_p->size < smallest)
		return error_set(ncclInvalidArgument,
			"%s: the size of %s is %zu, expected %zu or more: fill it with its "
			"initialiser macro",
			function, what, header_p->size, smallest);
	return ncclSuccess;
}

static const char *name_at(const void *config, size_t offset)
{
	const char *name = NULL;

	memcpy(&name, (const char *)config + offset, sizeof(name));
	return name;
}

static const char *find_name(const void *config, const struct header *header)
{
	const char *name = NULL;

	if (header->version >= VERSION_NAME && header->size >= AT_COMM_NAME + sizeof(name))
		name = name_at(config, AT_COMM_NAME);
	if (!name && header->version >= VERSION_DESC && header->version < VERSION_DESC_END &&
		header->size == SIZE_DESC)
		name = name_at(config, AT_COMM_DESC);
	return name;
}

/* Shown to operators: cut where it is too long, and nothing that a terminal would act on. */
static void copy_name(char name_p[OPTIONS_NAME_BYTES], const char *name)
{
	(void)snprintf(name_p, OPTIONS_NAME_BYTES, "%s", name);
	for (char *c = name_p; *c; c++)
		if (*c < 0x20 || *c == 0x7f)
			*c = '?';
}

ncclResult_t options_read(
	const char *function, const ncclConfig_t *config, struct options *options_p)
{
	struct header header;
	const char *name = NULL;
	int blocking = 0;
	ncclResult_t r = ncclSuccess;

	if (!config)
		return ncclSuccess;
	r = check_header(function, "config", config, NCCL_API_MAGIC, SMALLEST, &header);
	if (r != ncclSuccess)
		return r;
	memcpy(&blocking, (const char *)config + AT_BLOCKING, sizeof(blocking));
	if (blocking != 0 && blocking != 1 && blocking != NCCL_CONFIG_UNDEF_INT)
		return error_set(ncclInvalidArgument,
			"%s: config.blocking is %d, expected 0, 1 or NCCL_CONFIG_UNDEF_INT",
			function, blocking);
	if (blocking != NCCL_CONFIG_UNDEF_INT)
		options_p->blocking = blocking != 0;
	options_p->knows_timeout = header.version >= VERSION_TIMEOUT;
	name = find_name(config, &header);
	if (name)
		copy_name(options_p->name, name);
	return ncclSuccess;
}

ncclResult_t options_check_call(const char *function, const ncclCollConfig_t *config)
{
	struct header header;
	ncclResult_t r = ncclSuccess;

	if (!config)
		return ncclSuccess;
	r = check_header(
		function, "config", config, NCCL_API_MAGIC, sizeof(ncclCollConfig_t), &header);
	if (r != ncclSuccess)
		return r;
	if (config->algSelection && config->forceAlgSelection)
		return error_set(ncclInvalidArgument,
			"%s: config.algSelection \"%.60s\" cannot be forced: rcclxd has none of "
			"NCCL's algorithms; set forceAlgSelection to 0",
			function, config->algSelection);
	return ncclSuccess;
}

ncclResult_t options_check_sim(const char *function, const ncclSimInfo_t *info)
{
	struct header header;

	return check_header(function, "simInfo", info, NCCL_SIM_INFO_MAGIC,
		offsetof(ncclSimInfo_t, estimatedTime) + sizeof(info->estimatedTime), &header);
}
