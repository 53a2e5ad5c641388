/* SPDX-License-Identifier: MIT */
#include "create.h"

#include "err.h"
#include "../proto/rx_proto.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define CREATES_MAX 4096u

struct create_entry {
	struct create_request request;
	char name[RX_NAME_MAX + 1];
	pthread_t thread;
	bool started;
	struct err_first error;
};

rcclx_result create_list_add(struct create_list *list, const struct create_request *request)
{
	struct create_entry *entry = NULL;

	if (list->n_entries == list->n_allocated) {
		uint32_t n = list->n_allocated ? 2 * list->n_allocated : 8;

		if (n > CREATES_MAX)
			return err_set(RCCLX_ERR_LIMIT, "more than %u communicators in one group",
				CREATES_MAX);
		entry = reallocarray(list->entries, n, sizeof(*entry));
		if (!entry)
			return err_set(RCCLX_ERR_NO_MEMORY, "out of memory for a group");
		list->entries = entry;
		list->n_allocated = n;
	}
	entry = &list->entries[list->n_entries++];
	*entry = (struct create_entry){.request = *request};
	if (request->config.name)
		(void)snprintf(entry->name, sizeof(entry->name), "%s", request->config.name);
	return RCCLX_OK;
}

static void *create_one(void *arg)
{
	struct create_entry *entry = arg;

	if (entry->request.config.name)
		entry->request.config.name = entry->name;
	err_first_note(&entry->error, comm_create(&entry->request));
	return NULL;
}

rcclx_result create_list_run(struct create_list *list)
{
	struct err_first first = {0};

	for (uint32_t i = 0; i < list->n_entries; i++) {
		struct create_entry *entry = &list->entries[i];
		int r = pthread_create(&entry->thread, NULL, create_one, entry);

		entry->started = r == 0;
		if (r != 0)
			err_first_note(
				&first, err_errno(-r, "starting a thread for a communicator"));
	}
	for (uint32_t i = 0; i < list->n_entries; i++) {
		struct create_entry *entry = &list->entries[i];

		if (!entry->started)
			continue;
		(void)pthread_join(entry->thread, NULL);
		if (entry->error.result != RCCLX_OK)
			err_first_note(&first, err_first_return(&entry->error));
	}
	free(list->entries);
	*list = (struct create_list){0};
	return err_first_return(&first);
}
