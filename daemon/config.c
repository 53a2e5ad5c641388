/* SPDX-License-Identifier: MIT */
/*
 * The keys are a table: name, kind, bounds, where the value goes. A key that is not in the table
 * is an error, so that a misspelt limit is noticed and not ignored.
 */
#include "config.h"

#include "conf.h"
#include "../kernels/backend_load.h"
#include "../kernels/device/device_abi.h"
#include "../shm/rx_cleanup.h"
#include "../shm/rx_clock.h"
#include "../shm/rx_ring_abi.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#define SOCKET_PATH_MAX (sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1)
/* With a file's name and a line it is still a text that messages carry. */
#define DIR_PATH_MAX 700u

enum kind {
	KIND_PATH,
	KIND_DIR,
	KIND_BACKEND,
	KIND_LEVEL,
	KIND_BOOL,
	KIND_COUNT32,
	KIND_COUNT64,
	KIND_SECONDS,
	KIND_RING,
	KIND_SLOT,
};

struct key {
	const char *name;
	enum kind kind;
	size_t offset;
	uint64_t min; /* KIND_SECONDS: milliseconds */
	uint64_t max;
};

#define AT(field) offsetof(struct config, field)

static const struct key top_keys[] = {
	{"socket", KIND_PATH, AT(socket), 0, 0},
	{"admin_socket", KIND_PATH, AT(admin_socket), 0, 0},
	{"tuning_dir", KIND_DIR, AT(tuning_dir), 0, 0},
	{"log_level", KIND_LEVEL, AT(log_level), 0, 0},
	{"ring_entries", KIND_RING, AT(ring_entries), 2, RX_RING_ENTRIES_MAX},
	{"host_workers", KIND_COUNT32, AT(host_workers), 1, 64},
	{"low_precision_scratch_bytes", KIND_COUNT64, AT(scratch_bytes), 1u << 20, INT64_MAX},
	{"form_timeout_s", KIND_SECONDS, AT(form_timeout_ns), 100, 86400000},
	{"stall_report_s", KIND_SECONDS, AT(stall_report_ns), 300, 86400000},
};

static const struct key limit_keys[] = {
	{"sessions_per_uid", KIND_COUNT64, AT(limits.sessions_per_uid), 1, 1u << 20},
	{"comms_per_uid", KIND_COUNT64, AT(limits.comms_per_uid), 1, 1u << 20},
	{"regions_per_uid", KIND_COUNT64, AT(limits.regions_per_uid), 1, 1u << 20},
	{"bytes_per_uid", KIND_COUNT64, AT(limits.bytes_per_uid), 1u << 20, INT64_MAX},
	{"ops_in_flight_per_session", KIND_COUNT64, AT(limits.ops_in_flight_per_session), 4,
		2 * RX_RING_ENTRIES_MAX},
};

static const struct key waiting_keys[] = {
	{"spin_us", KIND_COUNT32, AT(waiting.spin_us), 0, 1000000},
	{"busy_poll_us", KIND_COUNT32, AT(waiting.busy_poll_us), 0, 1000000},
	{"cpu_dma_latency", KIND_BOOL, AT(waiting.cpu_dma_latency), 0, 0},
};

static const struct key gpu_keys[] = {
	{"backend", KIND_BACKEND, AT(gpu.backend), 0, 0},
	{"dir", KIND_DIR, AT(gpu.dir), 0, 0},
	{"library", KIND_DIR, AT(gpu.library), 0, 0},
	{"code", KIND_DIR, AT(gpu.code), 0, 0},
	{"inline", KIND_BOOL, AT(gpu.inline_kernels), 0, 0},
	{"slab_bytes", KIND_COUNT64, AT(gpu.slab_bytes), 1u << 20, UINT64_C(1) << 40},
	{"exchange_bytes", KIND_COUNT64, AT(gpu.exchange_bytes), 0, INT64_MAX},
	{"slot_bytes", KIND_SLOT, AT(gpu.slot_bytes), RX_DEV_SLOT_MIN(RX_DEV_MAX_RANKS), 16u << 20},
	{"stage_bytes", KIND_COUNT64, AT(gpu.stage_bytes), 1u << 16, UINT64_C(1) << 32},
	{"barrier_timeout_s", KIND_SECONDS, AT(gpu.barrier_timeout_ns), 100, 3600000},
};

/* Groups at the top level. */
static const struct group {
	const char *name;
	const struct key *keys;
	size_t n_keys;
} groups[] = {
	{"limits", limit_keys, RX_ARRAY_SIZE(limit_keys)},
	{"waiting", waiting_keys, RX_ARRAY_SIZE(waiting_keys)},
	{"gpu", gpu_keys, RX_ARRAY_SIZE(gpu_keys)},
};

struct parse {
	const char *path;
	struct config *config;
	struct config_error *error;
};

static uint64_t half_of_memory(void)
{
	long pages = sysconf(_SC_PHYS_PAGES);
	long page_bytes = sysconf(_SC_PAGESIZE);

	if (pages <= 0 || page_bytes <= 0)
		return 1ull << 30;
	return (uint64_t)pages / 2 * (uint64_t)page_bytes;
}

struct config config_default(void)
{
	return (struct config){
		.log_level = RX_LOG_INFO,
		.ring_entries = RX_RING_SQ_ENTRIES_DEFAULT,
		.host_workers = 1,
		.scratch_bytes = 64u << 20,
		.form_timeout_ns = 60 * RX_NS_PER_SEC,
		.stall_report_ns = RX_NS_PER_SEC,
		.waiting = {.spin_us = 20},
		.gpu =
			{
				.slab_bytes = 256u << 20,
				.exchange_bytes = 512u << 20,
				.slot_bytes = 256u << 10,
				.stage_bytes = 64u << 20,
				.barrier_timeout_ns = 30 * RX_NS_PER_SEC,
			},
		.limits =
			{
				.sessions_per_uid = 1024,
				.comms_per_uid = 4096,
				.regions_per_uid = 4096,
				.bytes_per_uid = half_of_memory(),
				.ops_in_flight_per_session = 2 * RX_RING_ENTRIES_MAX,
			},
	};
}

void config_deinit(struct config *config)
{
	free(config->socket);
	free(config->admin_socket);
	free(config->tuning_dir);
	free(config->gpu.backend);
	free(config->gpu.dir);
	free(config->gpu.library);
	free(config->gpu.code);
	config->socket = NULL;
	config->admin_socket = NULL;
	config->tuning_dir = NULL;
	config->gpu = (struct gpu_config){0};
}

#define refuse(p, at, ...) conf_refuse((p)->path, at, (p)->error, __VA_ARGS__)

static void *field(struct parse *p, const struct key *key)
{
	return (char *)p->config + key->offset;
}

static int set_path(struct parse *p, const struct key *key, const config_setting_t *at)
{
	const char *value = config_setting_get_string(at);
	size_t most = key->kind == KIND_DIR ? DIR_PATH_MAX : SOCKET_PATH_MAX;
	char **path = field(p, key);

	if (!value)
		return refuse(p, at, "expected a path in quotes");
	if (value[0] != '/')
		return refuse(p, at, "expected an absolute path, not \"%.64s\"", value);
	if (strlen(value) > most)
		return refuse(p, at, "expected a path of at most %zu characters", most);
	free(*path);
	*path = strdup(value);
	return *path ? 0 : -ENOMEM;
}

static int set_backend(struct parse *p, const struct key *key, const config_setting_t *at)
{
	const char *value = config_setting_get_string(at);
	char **backend = field(p, key);

	if (!value || !rx_backend_name_ok(value))
		return refuse(p, at, "expected \"auto\", \"none\", \"hip\" or \"cuda\"");
	free(*backend);
	*backend = strdup(value);
	return *backend ? 0 : -ENOMEM;
}

static int set_level(struct parse *p, const struct key *key, const config_setting_t *at)
{
	const char *value = config_setting_get_string(at);

	if (!value || rx_log_level_parse(value, field(p, key)))
		return refuse(p, at, "expected \"err\", \"warn\", \"info\" or \"debug\"");
	return 0;
}

static int set_count(struct parse *p, const struct key *key, const config_setting_t *at)
{
	uint64_t value = 0;
	int r = conf_whole(p->path, at, key->min, key->max, &value, p->error);

	if (r)
		return r;
	if (key->kind == KIND_RING && (value & (value - 1)) != 0)
		return refuse(
			p, at, "expected a power of two, not %llu", (unsigned long long)value);
	if (key->kind == KIND_SLOT && value % RX_DEV_SLOT_UNIT != 0)
		return refuse(p, at, "expected a multiple of %u, not %llu", RX_DEV_SLOT_UNIT,
			(unsigned long long)value);
	if (key->kind == KIND_COUNT64 || key->kind == KIND_SLOT)
		*(uint64_t *)field(p, key) = value;
	else
		*(uint32_t *)field(p, key) = (uint32_t)value;
	return 0;
}

static int set_seconds(struct parse *p, const struct key *key, const config_setting_t *at)
{
	int type = config_setting_type(at);
	double seconds = 0;

	if (type == CONFIG_TYPE_FLOAT)
		seconds = config_setting_get_float(at);
	else if (type == CONFIG_TYPE_INT || type == CONFIG_TYPE_INT64)
		seconds = (double)config_setting_get_int64(at);
	else
		return refuse(p, at, "expected a number of seconds");
	/* Written so that NaN is refused. */
	if (!(seconds * 1000 >= (double)key->min && seconds * 1000 <= (double)key->max))
		return refuse(p, at, "expected seconds from %g to %g, not %g",
			(double)key->min / 1000, (double)key->max / 1000, seconds);
	*(uint64_t *)field(p, key) = (uint64_t)(seconds * 1e9);
	return 0;
}

static int set_bool(struct parse *p, const struct key *key, const config_setting_t *at)
{
	if (config_setting_type(at) != CONFIG_TYPE_BOOL)
		return refuse(p, at, "expected true or false");
	*(bool *)field(p, key) = config_setting_get_bool(at) != 0;
	return 0;
}

static int set_key(struct parse *p, const struct key *key, const config_setting_t *at)
{
	switch (key->kind) {
	case KIND_PATH:
	case KIND_DIR:
		return set_path(p, key, at);
	case KIND_BACKEND:
		return set_backend(p, key, at);
	case KIND_LEVEL:
		return set_level(p, key, at);
	case KIND_BOOL:
		return set_bool(p, key, at);
	case KIND_SECONDS:
		return set_seconds(p, key, at);
	case KIND_COUNT32:
	case KIND_COUNT64:
	case KIND_RING:
	case KIND_SLOT:
		break;
	}
	return set_count(p, key, at);
}

static const struct key *find_key(const struct key *keys, size_t n_keys, const char *name)
{
	for (size_t i = 0; i < n_keys; i++)
		if (strcmp(keys[i].name, name) == 0)
			return &keys[i];
	return NULL;
}

static const struct group *find_group(const char *name)
{
	for (size_t i = 0; i < RX_ARRAY_SIZE(groups); i++)
		if (strcmp(groups[i].name, name) == 0)
			return &groups[i];
	return NULL;
}

/* All settings of one group; @nested: further groups may stand here. */
static int read_group(struct parse *p, const config_setting_t *group, const struct key *keys,
	size_t n_keys, bool nested)
{
	int n_settings = config_setting_length(group);

	for (int i = 0; i < n_settings; i++) {
		const config_setting_t *at = config_setting_get_elem(group, (unsigned int)i);
		const char *name = config_setting_name(at);
		const struct key *key = name ? find_key(keys, n_keys, name) : NULL;
		const struct group *inner = nested && name ? find_group(name) : NULL;
		int r = 0;

		if (inner) {
			if (!config_setting_is_group(at))
				return refuse(p, at, "expected a group: { ... }");
			r = read_group(p, at, inner->keys, inner->n_keys, false);
		} else if (key) {
			r = set_key(p, key, at);
		} else {
			r = refuse(p, at, "unknown key");
		}
		if (r)
			return r;
	}
	return 0;
}

/* @lib has been read; on success @config_p is replaced. */
static int take(
	const config_t *lib, const char *path, struct config *config_p, struct config_error *error)
{
	struct config config = config_default();
	struct parse p = {.path = path, .config = &config, .error = error};
	int r = read_group(&p, config_root_setting(lib), top_keys, RX_ARRAY_SIZE(top_keys), true);

	if (r) {
		if (r == -ENOMEM)
			(void)snprintf(error->text, sizeof(error->text), "%s: out of memory", path);
		config_deinit(&config);
		return r;
	}
	*config_p = config;
	return 0;
}

int config_parse(
	const char *text, const char *path, struct config *config_p, struct config_error *error)
{
	config_t lib;
	int r = conf_parse(&lib, text, path, error);

	if (!r)
		r = take(&lib, path, config_p, error);
	config_destroy(&lib);
	return r;
}

int config_load(
	const char *path, bool must_exist, struct config *config_p, struct config_error *error)
{
	RX_FREE char *text = NULL;
	int r = conf_read(path, &text, error);

	if (r == -ENOENT && !must_exist) {
		*config_p = config_default();
		return 0;
	}
	return r ? r : config_parse(text, path, config_p, error);
}
