/* SPDX-License-Identifier: MIT */
/*
 * Memory that ranks and daemon use without copying: of the current device where the process has
 * loaded a GPU runtime, which the library finds and shares by itself; else the daemon's, of the
 * host.
 */
#include "api.h"
#include "connection.h"
#include "runtime.h"

#include <pthread.h>
#include <stdlib.h>

struct allocation {
	struct allocation *next;
	void *at;
	struct connection *connection; /* NULL: a device's */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct allocation *allocations;

static ncclResult_t allocate_on_device(
	const struct runtime *runtime, struct allocation *allocation, size_t size)
{
	uintptr_t at = 0;
	int r = runtime->allocate(&at, size);

	if (r != 0)
		return error_set(ncclUnhandledCudaError,
			"ncclMemAlloc: the GPU runtime says %d when asked for %zu bytes on the "
			"current device",
			r, size);
	allocation->at = (void *)at; /* NOLINT(performance-no-int-to-ptr): a device's address */
	return ncclSuccess;
}

static ncclResult_t allocate_on_host(struct allocation *allocation, size_t size)
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
	const struct runtime *runtime = NULL;
	struct allocation *allocation = NULL;
	ncclResult_t r = ncclSuccess;

	if (!ptr || size == 0)
		return error_set(
			ncclInvalidArgument, "ncclMemAlloc: %s", ptr ? "size is 0" : "ptr is NULL");
	allocation = calloc(1, sizeof(*allocation));
	if (!allocation)
		return error_set(ncclSystemError, "ncclMemAlloc: out of memory");
	runtime_look();
	runtime = runtime_get();
	r = runtime ? allocate_on_device(runtime, allocation, size)
		    : allocate_on_host(allocation, size);
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

static ncclResult_t free_on_host(const struct allocation *allocation)
{
	rcclx_result r = rcclx_mem_free(allocation->connection->client, allocation->at);

	connection_put(allocation->connection);
	return error_of(r, false);
}

static ncclResult_t free_on_device(const void *ptr)
{
	int r = runtime_get()->release((uintptr_t)ptr);

	return r == 0 ? ncclSuccess
		      : error_set(ncclUnhandledCudaError,
				"ncclMemFree: the GPU runtime says %d of %p", r, ptr);
}

ncclResult_t ncclMemFree(void *ptr)
{
	struct allocation *allocation = NULL;
	ncclResult_t r = ncclSuccess;

	if (!ptr)
		return ncclSuccess;
	allocation = take(ptr);
	if (!allocation)
		return error_set(ncclInvalidArgument,
			"ncclMemFree: %p was not allocated by ncclMemAlloc(), or is free already",
			ptr);
	r = allocation->connection ? free_on_host(allocation) : free_on_device(ptr);
	free(allocation);
	return r;
}
NCCL_TWIN(ncclMemFree);
