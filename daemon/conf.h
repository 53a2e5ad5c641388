/* SPDX-License-Identifier: MIT */
/* Files in libconfig's syntax: read, parsed, and refused with file, line and key. */
#ifndef DAEMON_CONF_H
#define DAEMON_CONF_H

#include "config_error.h"
#include "../shm/rx_base.h"

#include <libconfig.h>

/** conf_parse() - @text into @lib, which the caller destroys; @path only names it in errors */
RX_WARN_UNUSED int conf_parse(
	config_t *lib, const char *text, const char *path, struct config_error *error);

/**
 * conf_read() - the text of a file
 *
 * Return: 0, and the caller frees *text_p; -errno, with @error filled.
 */
RX_WARN_UNUSED int conf_read(const char *path, char **text_p, struct config_error *error);

/** conf_refuse() - fill @error for the setting @at; returns -EINVAL */
int conf_refuse(const char *path, const config_setting_t *at, struct config_error *error,
	const char *format, ...) RX_PRINTF(4, 5);

/** conf_whole() - a whole number in [min, max], else refused */
RX_WARN_UNUSED int conf_whole(const char *path, const config_setting_t *at, uint64_t min,
	uint64_t max, uint64_t *value_p, struct config_error *error);

#endif
