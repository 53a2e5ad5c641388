/* SPDX-License-Identifier: MIT */
/*
 * Registration changes nothing about how data travels: memory from ncclMemAlloc() is known to the
 * daemon anyway, and other memory cannot be shared after the fact. Handles are still told apart and
 * checked, so that programs that mix them up learn of it here.
 */
#include "ranges.h"

#include "api.h"
#include "comm.h"

#include <stdlib.h>

void ranges_init(struct ranges *ranges)
{
	(void)pthread_mutex_init(&ranges->lock, NULL);
}

void ranges_deinit(struct ranges *ranges)
{
	while (ranges->first) {
		struct range *range = ranges->first;

		ranges->first = range->next;
		free(range);
	}
	(void)pthread_mutex_destroy(&ranges->lock);
}

static ncclResult_t add(
	struct ncclComm *comm, enum range_kind kind, void *at, size_t bytes, void **handle_p)
{
	struct range *range = malloc(sizeof(*range));

	if (!range)
		return error_set(ncclSystemError, "out of memory for a registration");
	*range = (struct range){.kind = kind, .at = at, .bytes = bytes};
	(void)pthread_mutex_lock(&comm->ranges.lock);
	range->next = comm->ranges.first;
	comm->ranges.first = range;
	(void)pthread_mutex_unlock(&comm->ranges.lock);
	*handle_p = range;
	return ncclSuccess;
}

/* Where the list points to @handle; the lock is held. NULL: nowhere. */
static struct range **place_of(struct ranges *ranges, enum range_kind kind, const void *handle)
{
	for (struct range **place = &ranges->first; *place; place = &(*place)->next)
		if (*place == handle && (*place)->kind == kind)
			return place;
	return NULL;
}

static ncclResult_t unknown(const char *function, const char *what, const void *handle)
{
	return error_set(ncclInvalidArgument, "%s: %s (%p) is not one of this communicator",
		function, what, handle);
}

static ncclResult_t drop(struct ncclComm *comm, const char *function, enum range_kind kind,
	const char *what, void *handle)
{
	struct range **place = NULL;

	(void)pthread_mutex_lock(&comm->ranges.lock);
	place = place_of(&comm->ranges, kind, handle);
	if (place)
		*place = (*place)->next;
	(void)pthread_mutex_unlock(&comm->ranges.lock);
	if (!place)
		return unknown(function, what, handle);
	free(handle);
	return ncclSuccess;
}

static ncclResult_t check_range(
	const char *function, const void *at, size_t bytes, const void *handle_p)
{
	if (!at || !handle_p || bytes == 0)
		return error_set(ncclInvalidArgument, "%s: %s", function,
			!at ? "buff is NULL"
			    : (bytes == 0 ? "size is 0" : "there is no place for the handle"));
	return ncclSuccess;
}

ncclResult_t ncclCommRegister(const ncclComm_t comm, void *buff, size_t size, void **handle)
{
	ncclResult_t r = comm_check(comm, "ncclCommRegister");

	if (r == ncclSuccess)
		r = check_range("ncclCommRegister", buff, size, handle);
	return r == ncclSuccess ? add(comm, RANGE_REGISTRATION, buff, size, handle) : r;
}
NCCL_TWIN(ncclCommRegister);

ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle)
{
	ncclResult_t r = comm_check(comm, "ncclCommDeregister");

	return r == ncclSuccess
		       ? drop(comm, "ncclCommDeregister", RANGE_REGISTRATION, "handle", handle)
		       : r;
}
NCCL_TWIN(ncclCommDeregister);

ncclResult_t ncclCommWindowRegister(
	ncclComm_t comm, void *buff, size_t size, ncclWindow_t *win, int winFlags)
{
	void *handle = NULL;
	ncclResult_t r = comm_check(comm, "ncclCommWindowRegister");

	if (r == ncclSuccess)
		r = check_range("ncclCommWindowRegister", buff, size, win);
	if (r != ncclSuccess)
		return r;
	if ((uintptr_t)buff % NCCL_WIN_REQUIRED_ALIGNMENT != 0)
		return error_set(ncclInvalidArgument,
			"ncclCommWindowRegister: buff is %p, expected a multiple of %d", buff,
			NCCL_WIN_REQUIRED_ALIGNMENT);
	if (winFlags & ~(NCCL_WIN_COLL_SYMMETRIC | NCCL_WIN_STRICT_ORDERING))
		return error_set(ncclInvalidArgument,
			"ncclCommWindowRegister: winFlags is 0x%x, expected NCCL_WIN_* values",
			(unsigned int)winFlags);
	r = add(comm, RANGE_WINDOW, buff, size, &handle);
	if (r == ncclSuccess)
		*win = handle;
	return r;
}
NCCL_TWIN(ncclCommWindowRegister);

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t win)
{
	ncclResult_t r = comm_check(comm, "ncclCommWindowDeregister");

	return r == ncclSuccess ? drop(comm, "ncclCommWindowDeregister", RANGE_WINDOW, "win", win)
				: r;
}
NCCL_TWIN(ncclCommWindowDeregister);

ncclResult_t ncclWinGetUserPtr(ncclComm_t comm, ncclWindow_t win, void **outUserPtr)
{
	struct range **place = NULL;
	ncclResult_t r = comm_check(comm, "ncclWinGetUserPtr");

	if (r == ncclSuccess && !outUserPtr)
		r = error_set(ncclInvalidArgument, "ncclWinGetUserPtr: outUserPtr is NULL");
	if (r != ncclSuccess)
		return r;
	(void)pthread_mutex_lock(&comm->ranges.lock);
	place = place_of(&comm->ranges, RANGE_WINDOW, win);
	if (place)
		*outUserPtr = (*place)->at;
	(void)pthread_mutex_unlock(&comm->ranges.lock);
	return place ? ncclSuccess : unknown("ncclWinGetUserPtr", "win", win);
}
NCCL_TWIN(ncclWinGetUserPtr);
