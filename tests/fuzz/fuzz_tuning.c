/* SPDX-License-Identifier: MIT */
/* Tuning files: any text is taken, with values that plans can work with, or refused. */
#include "../../daemon/tuning.h"

#include "../../shm/rx_fabric_abi.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
const char *__lsan_default_suppressions(void);

/* libconfig 1.5 forgets what it was reading when it meets a syntax error. */
const char *__lsan_default_suppressions(void)
{
	return "leak:libconfig.so\n";
}

static void check(const struct rx_tuning_entry *entry)
{
	if (entry->flat_max > RX_FLAT_BYTES || entry->flat_max_shared > RX_FLAT_BYTES ||
		entry->chunk < 1024 || entry->chunk > RX_CHUNK_BYTES ||
		entry->chunk % RX_CACHE_LINE != 0 || entry->direct_min > INT64_MAX ||
		entry->stream_min > INT64_MAX)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	struct tuning *tuning = NULL;
	struct config_error error = {""};

	if (!text)
		return 0;
	if (size > 0)
		memcpy(text, data, size);
	text[size] = '\0';
	if (tuning_load(NULL, false, &tuning, &error) == 0) {
		if (tuning_take(tuning, text, "fuzz.conf", &error) != 0 &&
			strncmp(error.text, "fuzz.conf", 9) != 0)
			abort();
		/* Also what a refused file has left behind. */
		for (uint32_t coll = 0; coll < RX_TUNING_COLLS; coll++)
			for (uint32_t c = 0; c < RX_TUNING_CLASSES; c++)
				check(&tuning->table.entries[coll][c]);
	}
	(void)tuning_free(tuning);
	free(text);
	return 0;
}
