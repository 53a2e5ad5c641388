/* SPDX-License-Identifier: MIT */
/*
 * libconfig gets a string and never a file: when it cannot read one (a directory, say) it ends the
 * process, which must not happen to a daemon that reads its configuration again.
 */
#include "conf.h"

#include "../shm/rx_cleanup.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_BYTES_MAX (1u << 20)

int conf_refuse(const char *path, const config_setting_t *at, struct config_error *error,
	const char *format, ...)
{
	const char *name = at ? config_setting_name(at) : NULL;
	unsigned int line = at ? (unsigned int)config_setting_source_line(at) : 0;
	char what[256];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	(void)snprintf(error->text, sizeof(error->text), "%s:%u: %s: %s", path, line,
		name ? name : "?", what);
	return -EINVAL;
}

int conf_whole(const char *path, const config_setting_t *at, uint64_t min, uint64_t max,
	uint64_t *value_p, struct config_error *error)
{
	int type = config_setting_type(at);
	long long value = 0;

	if (type != CONFIG_TYPE_INT && type != CONFIG_TYPE_INT64)
		return conf_refuse(path, at, error, "expected a whole number");
	value = config_setting_get_int64(at);
	if (value < 0 || (uint64_t)value < min || (uint64_t)value > max)
		return conf_refuse(path, at, error, "expected a number from %llu to %llu, not %lld",
			(unsigned long long)min, (unsigned long long)max, value);
	*value_p = (uint64_t)value;
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

int conf_parse(config_t *lib, const char *text, const char *path, struct config_error *error)
{
	unsigned int include_line = find_include(text);
	const char *file = NULL;

	config_init(lib);
	if (include_line > 0) {
		(void)snprintf(error->text, sizeof(error->text),
			"%s:%u: @include: expected everything in one file", path, include_line);
		return -EINVAL;
	}
	if (config_read_string(lib, text) == CONFIG_TRUE)
		return 0;
	file = config_error_file(lib);
	(void)snprintf(error->text, sizeof(error->text), "%s:%d: %s", file ? file : path,
		config_error_line(lib), config_error_text(lib));
	return -EINVAL;
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

int conf_read(const char *path, char **text_p, struct config_error *error)
{
	FILE *file = fopen(path, "re");
	int r = file ? read_text(file, text_p) : -errno;

	if (file)
		(void)fclose(file);
	if (r)
		(void)snprintf(error->text, sizeof(error->text), "%s: %s", path, strerror(-r));
	return r;
}
