/* SPDX-License-Identifier: MIT */
/* Memory that ranks and daemon use without copying. */
#include "api.h"
#include "connection.h"

#include <pthread.h>
#include <stdlib.h>

struct allocation {
	struct allocation *next;
	void *at;
	struct connection *connection;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct allocation *allocations;

static ncclResult_t allocate(struct allocation *allocation, size_t size)
{
	rcclx_result r = RCCLX_OK;

	/* A second time, with a new daemon, when the one that we had has gone. */
	for (int attempt = 0; attempt < 2; attempt++) {
		ncclResult_t connected = connection_get("", &allocation->connection);

		if (connected != ncclSuccess)
			return connected;
		r = rcclx_mem_alloc(allocation->connection->client, size, &allocation->at);
		if (r == RCCLX_OK)
			return ncclSuccess;
		if (r == RCCLX_ERR_DAEMON_LOST)
			connection_lost(allocation->connection);
		connection_put(allocation->connection);
		if (r != RCCLX_ERR_DAEMON_LOST)
			break;
	}
	return error_of(r, false);
}

ncclResult_t ncclMemAlloc(void **ptr, size_t size)
{
	struct allocation *allocation = NULL;
	ncclResult_t r = ncclSuccess;

	if (!ptr || size == 0)
		return error_set(
			ncclInvalidArgument, "ncclMemAlloc: %s", ptr ? "size is 0" : "ptr is NULL");
	allocation = calloc(1, sizeof(*allocation));
	if (!allocation)
		return error_set(ncclSystemError, "ncclMemAlloc: out of memory");
	r = allocate(allocation, size);
	if (r != ncclSuccess) {
		free(allocation);
		return r;
	}
	*ptr = allocation->at;
	(void)pthread_mutex_lock(&lock);
	allocation->next = allocations;
	allocations = allocation;
	(void)pthread_mutex_unlock(&lock);
	return ncclSuccess;
}
NCCL_TWIN(ncclMemAlloc);

static struct allocation *take(const void *ptr)
{
	struct allocation *found = NULL;

	(void)pthread_mutex_lock(&lock);
	for (struct allocation **place = &allocations; *place; place = &(*place)->next) {
		if ((*place)->at != ptr)
			continue;
		found = *place;
		*place = found->next;
		break;
	}
	(void)pthread_mutex_unlock(&lock);
	return found;
}

ncclResult_t ncclMemFree(void *ptr)
{
	struct allocation *allocation = NULL;
	rcclx_result r = RCCLX_OK;

	if (!ptr)
		return ncclSuccess;
	allocation = take(ptr);
	if (!allocation)
		return error_set(ncclInvalidArgument,
			"ncclMemFree: %p was not allocated by ncclMemAlloc(), or is free already",
			ptr);
	r = rcclx_mem_free(allocation->connection->client, ptr);
	connection_put(allocation->connection);
	free(allocation);
	return error_of(r, false);
}
NCCL_TWIN(ncclMemFree);
