/* SPDX-License-Identifier: MIT */
/*
 * The node's thresholds: compiled defaults, overridden by the files of a folder, and for each value
 * where it comes from. See rcclx-tuning(5). A loaded table never changes: a reload makes a new one.
 */
#ifndef DAEMON_TUNING_H
#define DAEMON_TUNING_H

#include "config_error.h"
#include "../kernels/device_plan.h"

enum tuning_value {
	TUNING_FLAT_MAX,
	TUNING_FLAT_MAX_SHARED,
	TUNING_CHUNK,
	TUNING_DIRECT_MIN,
	TUNING_STREAM_MIN,
	TUNING_LOW_PRECISION_MIN,
	TUNING_SINGLE_MIN,
	TUNING_DEVICE, /* and so on, as enum rx_device_threshold */
	_TUNING_VALUE_N = TUNING_DEVICE + RX_DEVICE_THRESHOLD_N
};

struct tuning_source {
	uint32_t file; /* index + 1 in tuning->files; 0: compiled default */
	uint32_t line;
};

#define TUNING_FILES_MAX 64u

struct tuning {
	struct rx_tuning table;
	struct rx_device_tuning devices; /* the daemon's own: ranks do not choose there */
	struct tuning_source sources[RX_TUNING_COLLS][RX_TUNING_CLASSES][_TUNING_VALUE_N];
	char *dir; /* NULL: no files are read */
	char *files[TUNING_FILES_MAX];
	uint32_t n_files;
};

/**
 * tuning_load() - compiled defaults and then the files DIR/NAME.conf in order of name
 * @dir:        NULL: no files
 * @must_exist: an absent folder is an error instead of an empty one
 *
 * Return: 0; -EINVAL a file is bad; other -errno; text in @error.
 */
RX_WARN_UNUSED int tuning_load(
	const char *dir, bool must_exist, struct tuning **tuning_p, struct config_error *error);

/** tuning_take() - one file's text on top of what is there; @path is what its values come from */
RX_WARN_UNUSED int tuning_take(
	struct tuning *tuning, const char *text, const char *path, struct config_error *error);

/** tuning_free() - returns NULL; NULL is allowed */
struct tuning *tuning_free(struct tuning *tuning);

/** tuning_describe() - where a value comes from, for people: "compiled default", "FILE:LINE" */
void tuning_describe(const struct tuning *tuning, uint32_t coll, uint32_t tuning_class,
	enum tuning_value value, char *text, size_t bytes);

/** tuning_equal() - the same thresholds, wherever they come from? */
bool tuning_equal(const struct tuning *a, const struct tuning *b);

#endif
