/* SPDX-License-Identifier: MIT */
/* Configuration files: any text is taken or refused with a reason. */
#include "../../daemon/config.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
const char *__lsan_default_suppressions(void);

/* libconfig 1.5 forgets what it was reading when it meets a syntax error. */
const char *__lsan_default_suppressions(void)
{
	return "leak:libconfig.so\n";
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	struct config config;
	struct config_error error = {""};

	if (!text)
		return 0;
	if (size > 0)
		memcpy(text, data, size);
	text[size] = '\0';
	if (config_parse(text, "fuzz.conf", &config, &error) == 0) {
		/* In bounds, whatever was written. */
		if (config.ring_entries < 2 || config.ring_entries > 4096 ||
			config.host_workers < 1 || config.host_workers > 64 ||
			config.limits.sessions_per_uid == 0)
			abort();
		config_deinit(&config);
	} else if (strncmp(error.text, "fuzz.conf", 9) != 0) {
		abort();
	}
	free(text);
	return 0;
}
