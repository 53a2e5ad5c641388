/* SPDX-License-Identifier: MIT */
#include "redop.h"

#include "api.h"
#include "comm.h"
#include "runtime.h"

#include <stdlib.h>
#include <string.h>

#define REDOPS_MAX 65536u

void redops_init(struct redops *redops)
{
	(void)pthread_mutex_init(&redops->lock, NULL);
}

void redops_deinit(struct redops *redops)
{
	(void)pthread_mutex_destroy(&redops->lock);
	free(redops->table);
}

static struct redop *slot(struct redops *redops, ncclRedOp_t op)
{
	unsigned int i = (unsigned int)op - ncclNumOps;

	return op >= ncclNumOps && i < redops->n && redops->table[i].used ? &redops->table[i]
									  : NULL;
}

bool redops_find(struct redops *redops, ncclRedOp_t op, struct redop *redop_p)
{
	const struct redop *found = NULL;

	(void)pthread_mutex_lock(&redops->lock);
	found = slot(redops, op);
	if (found)
		*redop_p = *found;
	(void)pthread_mutex_unlock(&redops->lock);
	return found != NULL;
}

/* False: out of memory, or too many. */
static bool add_locked(struct redops *redops, const struct redop *redop, ncclRedOp_t *op_p)
{
	unsigned int i = 0;

	while (i < redops->n && redops->table[i].used)
		i++;
	if (i == redops->n) {
		unsigned int n = redops->n ? 2 * redops->n : 8;
		struct redop *table = NULL;

		if (n > REDOPS_MAX)
			return false;
		table = reallocarray(redops->table, n, sizeof(*table));
		if (!table)
			return false;
		memset(table + redops->n, 0, (n - redops->n) * sizeof(*table));
		redops->table = table;
		redops->n = n;
	}
	redops->table[i] = *redop;
	*op_p = (ncclRedOp_t)(ncclNumOps + i);
	return true;
}

static size_t element_size(ncclDataType_t dtype)
{
	static const unsigned char sizes[ncclNumTypes] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};

	return sizes[dtype];
}

ncclResult_t redop_read(
	const struct redop *redop, const char *function, void *stream, uint64_t *scalar_p)
{
	*scalar_p = redop->scalar;
	if (!redop->on_device)
		return ncclSuccess;
	return runtime_read(
		function, scalar_p, redop->on_device, element_size(redop->dtype), stream);
}

static ncclResult_t check(const ncclRedOp_t *op, const void *scalar, ncclDataType_t dtype,
	ncclScalarResidence_t residence)
{
	static const char function[] = "ncclRedOpCreatePreMulSum";

	if (!op || !scalar)
		return error_set(
			ncclInvalidArgument, "%s: %s is NULL", function, op ? "scalar" : "op");
	if ((unsigned int)dtype >= ncclNumTypes)
		return error_set(ncclInvalidArgument, "%s: datatype is %d, expected 0 to %d",
			function, (int)dtype, ncclNumTypes - 1);
	if (residence == ncclScalarDevice && !runtime_get())
		return error_set(ncclInvalidUsage,
			"%s: the scalar is in GPU memory, but this process has loaded no GPU "
			"runtime: expected ncclScalarHostImmediate",
			function);
	if (residence != ncclScalarHostImmediate && residence != ncclScalarDevice)
		return error_set(ncclInvalidArgument,
			"%s: residence is %d, expected ncclScalarDevice (0) or "
			"ncclScalarHostImmediate (1)",
			function, (int)residence);
	return ncclSuccess;
}

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t *op, void *scalar, ncclDataType_t datatype,
	ncclScalarResidence_t residence, ncclComm_t comm)
{
	struct redop redop = {.used = true, .dtype = datatype};
	bool added = false;
	ncclResult_t r = comm_enter(comm, "ncclRedOpCreatePreMulSum");

	if (r != ncclSuccess)
		return r;
	r = check(op, scalar, datatype, residence);
	if (r == ncclSuccess) {
		if (residence == ncclScalarDevice)
			redop.on_device = scalar;
		else
			memcpy(&redop.scalar, scalar, element_size(datatype));
		(void)pthread_mutex_lock(&comm->redops.lock);
		added = add_locked(&comm->redops, &redop, op);
		(void)pthread_mutex_unlock(&comm->redops.lock);
		if (!added)
			r = error_set(ncclSystemError,
				"ncclRedOpCreatePreMulSum: out of memory, or more than %u "
				"reductions",
				REDOPS_MAX);
	}
	comm_leave(comm);
	return r;
}
NCCL_TWIN(ncclRedOpCreatePreMulSum);

ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm)
{
	struct redop *found = NULL;
	ncclResult_t r = comm_check(comm, "ncclRedOpDestroy");

	if (r != ncclSuccess)
		return r;
	(void)pthread_mutex_lock(&comm->redops.lock);
	found = slot(&comm->redops, op);
	if (found)
		found->used = false;
	(void)pthread_mutex_unlock(&comm->redops.lock);
	return found ? ncclSuccess
		     : error_set(ncclInvalidArgument,
			       "ncclRedOpDestroy: op is %d, which ncclRedOpCreatePreMulSum() has not "
			       "made for this communicator",
			       (int)op);
}
NCCL_TWIN(ncclRedOpDestroy);
