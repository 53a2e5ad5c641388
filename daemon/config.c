/* SPDX-License-Identifier: MIT */
/*
 * The keys are a table: name, kind, bounds, where the value goes. A key that is not in the table
 * is an error, so that a misspelt limit is noticed and not ignored.
 *
 * libconfig gets a string and never a file: when it cannot read one (a directory, say) it ends the
 * process, which must not happen to a daemon that reads its configuration again.
 */
#include "config.h"

#include "../shm/rx_cleanup.h"
#include "../shm/rx_clock.h"
#include "../shm/rx_ring_abi.h"

#include <errno.h>
#include <libconfig.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#define FILE_BYTES_MAX (1u << 20)

enum kind { KIND_PATH, KIND_LEVEL, KIND_COUNT32, KIND_COUNT64, KIND_SECONDS, KIND_RING };

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
	{"log_level", KIND_LEVEL, AT(log_level), 0, 0},
	{"ring_entries", KIND_RING, AT(ring_entries), 2, RX_RING_ENTRIES_MAX},
	{"host_workers", KIND_COUNT32, AT(host_workers), 1, 64},
	{"form_timeout_s", KIND_SECONDS, AT(form_timeout_ns), 100, 86400000},
	{"stall_report_s", KIND_SECONDS, AT(stall_report_ns), 300, 86400000},
};

static const struct key limit_keys[] = {
	{"sessions_per_uid", KIND_COUNT64, AT(limits.sessions_per_uid), 1, 1u << 20},
	{"comms_per_uid", KIND_COUNT64, AT(limits.comms_per_uid), 1, 1u << 20},
	{"regions_per_uid", KIND_COUNT64, AT(limits.regions_per_uid), 1, 1u << 20},
	{"bytes_per_uid", KIND_COUNT64, AT(limits.bytes_per_uid), 1u << 20, INT64_MAX},
	{"ops_in_flight_per_session", KIND_COUNT64, AT(limits.ops_in_flight_per_session), 1,
		2 * RX_RING_ENTRIES_MAX},
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
		.form_timeout_ns = 60 * RX_NS_PER_SEC,
		.stall_report_ns = RX_NS_PER_SEC,
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
	config->socket = NULL;
	config->admin_socket = NULL;
}

RX_PRINTF(3, 4)
static int refuse(struct parse *p, const config_setting_t *at, const char *format, ...)
{
	const char *name = at ? config_setting_name(at) : NULL;
	unsigned int line = at ? (unsigned int)config_setting_source_line(at) : 0;
	char what[256];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	(void)snprintf(p->error->text, sizeof(p->error->text), "%s:%u: %s: %s", p->path, line,
		name ? name : "?", what);
	return -EINVAL;
}

static void *field(struct parse *p, const struct key *key)
{
	return (char *)p->config + key->offset;
}

static int set_path(struct parse *p, const struct key *key, const config_setting_t *at)
{
	const char *value = config_setting_get_string(at);
	struct sockaddr_un addr;
	char **path = field(p, key);

	if (!value)
		return refuse(p, at, "expected a path in quotes");
	if (value[0] != '/')
		return refuse(p, at, "expected an absolute path, not \"%.64s\"", value);
	if (strlen(value) >= sizeof(addr.sun_path))
		return refuse(p, at, "expected a path of at most %zu characters",
			sizeof(addr.sun_path) - 1);
	free(*path);
	*path = strdup(value);
	return *path ? 0 : -ENOMEM;
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
	int type = config_setting_type(at);
	long long value = 0;

	if (type != CONFIG_TYPE_INT && type != CONFIG_TYPE_INT64)
		return refuse(p, at, "expected a whole number");
	value = config_setting_get_int64(at);
	if (value < 0 || (uint64_t)value < key->min || (uint64_t)value > key->max)
		return refuse(p, at, "expected a number from %llu to %llu, not %lld",
			(unsigned long long)key->min, (unsigned long long)key->max, value);
	if (key->kind == KIND_RING && (value & (value - 1)) != 0)
		return refuse(p, at, "expected a power of two, not %lld", value);
	if (key->kind == KIND_COUNT64)
		*(uint64_t *)field(p, key) = (uint64_t)value;
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

static int set_key(struct parse *p, const struct key *key, const config_setting_t *at)
{
	switch (key->kind) {
	case KIND_PATH:
		return set_path(p, key, at);
	case KIND_LEVEL:
		return set_level(p, key, at);
	case KIND_SECONDS:
		return set_seconds(p, key, at);
	case KIND_COUNT32:
	case KIND_COUNT64:
	case KIND_RING:
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

/* All settings of one group; @nested: "limits" may stand here. */
static int read_group(struct parse *p, const config_setting_t *group, const struct key *keys,
	size_t n_keys, bool nested)
{
	int n_settings = config_setting_length(group);

	for (int i = 0; i < n_settings; i++) {
		const config_setting_t *at = config_setting_get_elem(group, (unsigned int)i);
		const char *name = config_setting_name(at);
		const struct key *key = name ? find_key(keys, n_keys, name) : NULL;
		int r = 0;

		if (nested && name && strcmp(name, "limits") == 0) {
			if (!config_setting_is_group(at))
				return refuse(p, at, "expected a group: { ... }");
			r = read_group(p, at, limit_keys, RX_ARRAY_SIZE(limit_keys), false);
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

static int syntax_error(const config_t *lib, const char *path, struct config_error *error)
{
	const char *file = config_error_file(lib);

	(void)snprintf(error->text, sizeof(error->text), "%s:%d: %s", file ? file : path,
		config_error_line(lib), config_error_text(lib));
	return -EINVAL;
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

/* Line of an @include, which we do not follow; 0: there is none. */
static unsigned int find_include(const char *text)
{
	unsigned int line = 1;

	for (; *text != '\0'; line++) {
		text += strspn(text, " \t\r");
		if (strncmp(text, "@include", 8) == 0)
			return line;
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
	return 0;
}

int config_parse(
	const char *text, const char *path, struct config *config_p, struct config_error *error)
{
	unsigned int include_line = find_include(text);
	config_t lib;
	int r = 0;

	if (include_line > 0) {
		(void)snprintf(error->text, sizeof(error->text),
			"%s:%u: @include: expected everything in one file", path, include_line);
		return -EINVAL;
	}
	config_init(&lib);
	r = config_read_string(&lib, text) == CONFIG_TRUE ? take(&lib, path, config_p, error)
							  : syntax_error(&lib, path, error);
	config_destroy(&lib);
	return r;
}

static int failed(const char *path, int r, struct config_error *error)
{
	(void)snprintf(error->text, sizeof(error->text), "%s: %s", path, strerror(-r));
	return r;
}

/* The file's text with a NUL behind it; the caller frees it. -errno. */
static int read_text(FILE *file, char **text_p)
{
	RX_FREE char *text = malloc(FILE_BYTES_MAX + 1);
	size_t bytes = 0;

	if (!text)
		return -ENOMEM;
	errno = 0;
	bytes = fread(text, 1, FILE_BYTES_MAX + 1, file);
	if (ferror(file))
		return errno ? -errno : -EIO;
	if (bytes > FILE_BYTES_MAX)
		return -EFBIG;
	text[bytes] = '\0';
	if (strlen(text) != bytes)
		return -EILSEQ;
	*text_p = rx_steal(text);
	return 0;
}

int config_load(
	const char *path, bool must_exist, struct config *config_p, struct config_error *error)
{
	FILE *file = fopen(path, "re");
	RX_FREE char *text = NULL;
	int r = 0;

	if (!file && errno == ENOENT && !must_exist) {
		*config_p = config_default();
		return 0;
	}
	if (!file)
		return failed(path, -errno, error);
	r = read_text(file, &text);
	(void)fclose(file);
	if (r)
		return failed(path, r, error);
	return config_parse(text, path, config_p, error);
}
