/* SPDX-License-Identifier: MIT */
/*
 * In a file, groups of collectives hold groups of classes, which hold thresholds:
 *
 *	all_reduce = { ranks_2 = { flat_max = 8192; }; };
 *
 * The group "default" stands for all collectives. It is taken before the others of its file,
 * wherever it stands, so that what a file says about one collective always counts.
 */
#include "tuning.h"

#include "conf.h"
#include "../shm/rx_cleanup.h"
#include "../shm/rx_fabric_abi.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_NAME "default"
#define SUFFIX       ".conf"

static const struct key {
	const char *name;
	uint64_t min;
	uint64_t max;
} keys[_TUNING_VALUE_N] = {
	[TUNING_FLAT_MAX] = {"flat_max", 0, RX_FLAT_BYTES},
	[TUNING_FLAT_MAX_SHARED] = {"flat_max_shared", 0, RX_FLAT_BYTES},
	[TUNING_CHUNK] = {"chunk", 1024, RX_CHUNK_BYTES},
	[TUNING_DIRECT_MIN] = {"direct_min", 0, INT64_MAX},
	[TUNING_STREAM_MIN] = {"stream_min", 0, INT64_MAX},
	[TUNING_LOW_PRECISION_MIN] = {"low_precision_min", 0, UINT32_MAX},
	[TUNING_SINGLE_MIN] = {"single_min", 0, UINT32_MAX},
	[TUNING_DEVICE + RX_DEVICE_FLAT_MAX] = {"device_flat_max", 0, INT64_MAX},
	[TUNING_DEVICE + RX_DEVICE_TREE_MIN] = {"device_tree_min", 0, INT64_MAX},
	[TUNING_DEVICE + RX_DEVICE_SLOTS_MIN] = {"device_slots_min", 0, INT64_MAX},
	[TUNING_DEVICE + RX_DEVICE_PUSH_MIN] = {"device_push_min", 0, INT64_MAX},
};

struct parse {
	struct tuning *tuning;
	const char *path;
	uint32_t file; /* as in tuning_source */
	struct config_error *error;
};

#define refuse(p, at, ...) conf_refuse((p)->path, at, (p)->error, __VA_ARGS__)

static void store(
	struct tuning *tuning, uint32_t coll, uint32_t tuning_class, int value, uint64_t number)
{
	struct rx_tuning_entry *entry = &tuning->table.entries[coll][tuning_class];

	switch (value) {
	case TUNING_FLAT_MAX:
		entry->flat_max = (uint32_t)number;
		break;
	case TUNING_FLAT_MAX_SHARED:
		entry->flat_max_shared = (uint32_t)number;
		break;
	case TUNING_CHUNK:
		entry->chunk = (uint32_t)number;
		break;
	case TUNING_DIRECT_MIN:
		entry->direct_min = number;
		break;
	case TUNING_STREAM_MIN:
		entry->stream_min = number;
		break;
	case TUNING_LOW_PRECISION_MIN:
		entry->low_precision_min = (uint32_t)number;
		break;
	case TUNING_SINGLE_MIN:
		entry->single_min = (uint32_t)number;
		break;
	default:
		tuning->devices.entries[coll][tuning_class].values[value - TUNING_DEVICE] = number;
		break;
	}
}

static int find_value(const char *name)
{
	for (int i = 0; i < _TUNING_VALUE_N; i++)
		if (strcmp(keys[i].name, name) == 0)
			return i;
	return -1;
}

/* One threshold, for the collectives [first, last]. */
static int take_value(struct parse *p, const config_setting_t *at, uint32_t first, uint32_t last,
	uint32_t tuning_class)
{
	const char *name = config_setting_name(at);
	int value = find_value(name ? name : "");
	uint64_t number = 0;
	int r = 0;

	if (value < 0)
		return refuse(p, at,
			"unknown key; expected flat_max, flat_max_shared, chunk, direct_min, "
			"stream_min, low_precision_min, single_min, device_flat_max, "
			"device_tree_min, device_slots_min or device_push_min");
	r = conf_whole(p->path, at, keys[value].min, keys[value].max, &number, p->error);
	if (r)
		return r;
	if (value == TUNING_CHUNK && number % RX_CACHE_LINE != 0)
		return refuse(p, at, "expected a multiple of %u, not %llu", RX_CACHE_LINE,
			(unsigned long long)number);
	for (uint32_t coll = first; coll <= last; coll++) {
		store(p->tuning, coll, tuning_class, value, number);
		p->tuning->sources[coll][tuning_class][value] = (struct tuning_source){
			.file = p->file,
			.line = (uint32_t)config_setting_source_line(at),
		};
	}
	return 0;
}

/* "ranks_8" to the class of up to 8 ranks; -1: no such class. */
static int find_class(const char *name)
{
	char text[16];

	for (uint32_t c = 0; c < RX_TUNING_CLASSES; c++) {
		(void)snprintf(text, sizeof(text), "ranks_%u", rx_tuning_class_max(c));
		if (strcmp(text, name) == 0)
			return (int)c;
	}
	return -1;
}

static int take_class(struct parse *p, const config_setting_t *group, uint32_t first, uint32_t last)
{
	const char *name = config_setting_name(group);
	int tuning_class = find_class(name ? name : "");
	int r = 0;

	if (tuning_class < 0)
		return refuse(p, group,
			"unknown key; expected ranks_2, ranks_4, ranks_8, ranks_16 or ranks_64");
	if (!config_setting_is_group(group))
		return refuse(p, group, "expected a group: { ... }");
	for (int i = 0; !r && i < config_setting_length(group); i++)
		r = take_value(p, config_setting_get_elem(group, (unsigned int)i), first, last,
			(uint32_t)tuning_class);
	return r;
}

static int take_coll(struct parse *p, const config_setting_t *group)
{
	const char *name = config_setting_name(group);
	int coll = rx_coll_parse(name);
	bool all = strcmp(name, DEFAULT_NAME) == 0;
	uint32_t first = all ? 0 : (uint32_t)coll;
	uint32_t last = all ? RX_COLL_N - 1 : (uint32_t)coll;
	int r = 0;

	/* An alias would be a second name for one thing, which libconfig cannot see as a duplicate.
	 */
	if (!all && (coll < 0 || strcmp(rx_coll_name((uint32_t)coll), name) != 0))
		return refuse(p, group, "unknown key; expected a collective or " DEFAULT_NAME);
	if (!config_setting_is_group(group))
		return refuse(p, group, "expected a group: { ... }");
	for (int i = 0; !r && i < config_setting_length(group); i++)
		r = take_class(p, config_setting_get_elem(group, (unsigned int)i), first, last);
	return r;
}

static int take_root(struct parse *p, const config_setting_t *root)
{
	const config_setting_t *all = config_setting_get_member(root, DEFAULT_NAME);
	int r = all ? take_coll(p, all) : 0;

	for (int i = 0; !r && i < config_setting_length(root); i++) {
		const config_setting_t *group = config_setting_get_elem(root, (unsigned int)i);

		if (group != all)
			r = take_coll(p, group);
	}
	return r;
}

int tuning_take(
	struct tuning *tuning, const char *text, const char *path, struct config_error *error)
{
	struct parse p = {.tuning = tuning, .path = path, .error = error};
	config_t lib;
	int r = 0;

	if (tuning->n_files == TUNING_FILES_MAX) {
		(void)snprintf(error->text, sizeof(error->text),
			"%s: there are more than %u tuning files", path, TUNING_FILES_MAX);
		return -EINVAL;
	}
	tuning->files[tuning->n_files] = strdup(path);
	if (!tuning->files[tuning->n_files]) {
		(void)snprintf(error->text, sizeof(error->text), "%s: out of memory", path);
		return -ENOMEM;
	}
	p.file = ++tuning->n_files;
	r = conf_parse(&lib, text, path, error);
	if (!r)
		r = take_root(&p, config_root_setting(&lib));
	config_destroy(&lib);
	return r;
}

static int is_conf(const struct dirent *entry)
{
	size_t len = strlen(entry->d_name);
	size_t suffix = strlen(SUFFIX);

	return entry->d_name[0] != '.' && len > suffix &&
	       strcmp(entry->d_name + len - suffix, SUFFIX) == 0;
}

/* Not by alphasort(): the order must not depend on the locale. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int take_file(struct tuning *tuning, const char *name, struct config_error *error)
{
	RX_FREE char *path = NULL;
	RX_FREE char *text = NULL;
	int r = 0;

	if (asprintf(&path, "%s/%s", tuning->dir, name) < 0) {
		path = NULL;
		(void)snprintf(error->text, sizeof(error->text), "%s: out of memory", name);
		return -ENOMEM;
	}
	r = conf_read(path, &text, error);
	return r ? r : tuning_take(tuning, text, path, error);
}

static int take_dir(struct tuning *tuning, bool must_exist, struct config_error *error)
{
	struct dirent **entries = NULL;
	int n = scandir(tuning->dir, &entries, is_conf, by_name);
	int r = 0;

	if (n < 0 && errno == ENOENT && !must_exist)
		return 0;
	if (n < 0) {
		r = -errno;
		(void)snprintf(
			error->text, sizeof(error->text), "%s: %s", tuning->dir, strerror(-r));
		return r;
	}
	for (int i = 0; i < n; i++) {
		if (!r)
			r = take_file(tuning, entries[i]->d_name, error);
		free(entries[i]);
	}
	free(entries);
	return r;
}

int tuning_load(
	const char *dir, bool must_exist, struct tuning **tuning_p, struct config_error *error)
{
	struct tuning *tuning = calloc(1, sizeof(*tuning));
	int r = -ENOMEM;

	if (tuning) {
		tuning->table = *rx_tuning_default();
		tuning->devices = *rx_device_tuning_default();
		tuning->table.epoch = 1;
		tuning->dir = dir ? strdup(dir) : NULL;
	}
	if (!tuning || (dir && !tuning->dir))
		(void)snprintf(error->text, sizeof(error->text), "tuning: out of memory");
	else
		r = dir ? take_dir(tuning, must_exist, error) : 0;
	if (r) {
		(void)tuning_free(tuning);
		return r;
	}
	*tuning_p = tuning;
	return 0;
}

struct tuning *tuning_free(struct tuning *tuning)
{
	if (!tuning)
		return NULL;
	for (uint32_t i = 0; i < tuning->n_files; i++)
		free(tuning->files[i]);
	free(tuning->dir);
	free(tuning);
	return NULL;
}

void tuning_describe(const struct tuning *tuning, uint32_t coll, uint32_t tuning_class,
	enum tuning_value value, char *text, size_t bytes)
{
	const struct tuning_source *source = &tuning->sources[coll][tuning_class][value];

	if (source->file == 0)
		(void)snprintf(text, bytes, "compiled default");
	else
		(void)snprintf(text, bytes, "%s:%u", tuning->files[source->file - 1], source->line);
}

bool tuning_equal(const struct tuning *a, const struct tuning *b)
{
	return memcmp(a->table.entries, b->table.entries, sizeof(a->table.entries)) == 0 &&
	       memcmp(&a->devices, &b->devices, sizeof(a->devices)) == 0;
}
