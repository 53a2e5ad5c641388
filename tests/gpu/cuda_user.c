/* SPDX-License-Identifier: MIT */
/*
 * What tests/gpu-emu/emu_user.h asks for, by NVIDIA's driver: lets tests/gpu-emu/test_gpu_stream.c
 * run on a GPU. Devices that are not there are the first one.
 */
#include "../gpu-emu/emu_user.h"

#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define USED __attribute__((visibility("default")))

static CUcontext context_of(uint32_t device)
{
	static CUcontext contexts[16];
	CUdevice dev = 0;
	int n = 0;

	if (cuInit(0) != CUDA_SUCCESS || cuDeviceGetCount(&n) != CUDA_SUCCESS || n == 0)
		abort();
	dev = (CUdevice)(device % (uint32_t)n);
	if (!contexts[dev] && cuDevicePrimaryCtxRetain(&contexts[dev], dev) != CUDA_SUCCESS)
		abort();
	return contexts[dev];
}

static void use(uint32_t device)
{
	if (cuCtxSetCurrent(context_of(device)) != CUDA_SUCCESS)
		abort();
}

static uint64_t user_alloc(uint32_t device, uint64_t bytes)
{
	CUdeviceptr at = 0;

	use(device);
	return cuMemAlloc(&at, bytes) == CUDA_SUCCESS ? at : 0;
}

static int user_free(uint64_t address)
{
	return (int)cuMemFree(address);
}

/* In no stream that others wait for. */
static void copy_now(uint64_t to, uint64_t from, uint64_t bytes)
{
	CUstream stream = NULL;

	if (cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS ||
		cuMemcpyAsync(to, from, bytes, stream) != CUDA_SUCCESS ||
		cuStreamSynchronize(stream) != CUDA_SUCCESS ||
		cuStreamDestroy(stream) != CUDA_SUCCESS)
		abort();
}

static void user_write(uint64_t to, const void *from, uint64_t bytes)
{
	copy_now(to, (uint64_t)(uintptr_t)from, bytes);
}

static void user_read(void *to, uint64_t from, uint64_t bytes)
{
	copy_now((uint64_t)(uintptr_t)to, from, bytes);
}

static void *user_stream_new(uint32_t device)
{
	CUstream stream = NULL;

	use(device);
	return cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS ? stream : NULL;
}

static int user_stream_free(void *stream)
{
	return (int)cuStreamDestroy(stream);
}

static int user_stream_sync(void *stream)
{
	return (int)cuStreamSynchronize(stream);
}

static int user_stream_query(void *stream)
{
	return (int)cuStreamQuery(stream);
}

static int user_copy(void *stream, uint64_t to, uint64_t from, uint64_t bytes)
{
	return (int)cuMemcpyAsync(to, from, bytes, stream);
}

static void CUDA_CB nap(void *data)
{
	uint64_t ms = (uint64_t)(uintptr_t)data;

	(void)nanosleep(&(struct timespec){.tv_sec = (time_t)(ms / 1000),
				.tv_nsec = (long)(ms % 1000 * 1000000)},
		NULL);
}

static int user_busy(void *stream, uint32_t ms)
{
	return (int)cuLaunchHostFunc(stream, nap, (void *)(uintptr_t)ms);
}

static int user_capture_begin(void *stream, int mode)
{
	return (int)cuStreamBeginCapture(stream, (CUstreamCaptureMode)mode);
}

static int user_capture_end(void *stream, void **graph_p)
{
	CUgraph graph = NULL;
	CUgraphExec exec = NULL;
	CUresult r = cuStreamEndCapture(stream, &graph);

	if (r == CUDA_SUCCESS)
		r = cuGraphInstantiate(&exec, graph, 0);
	*graph_p = exec;
	return (int)r;
}

static int user_graph_launch(void *graph, void *stream)
{
	return (int)cuGraphLaunch(graph, stream);
}

/* Of one that may still run. */
static void user_graph_free(void *graph)
{
	(void)cuGraphExecDestroy(graph);
}

USED const struct emu_user emu_user = {
	.alloc = user_alloc,
	.free = user_free,
	.write = user_write,
	.read = user_read,
	.stream_new = user_stream_new,
	.stream_free = user_stream_free,
	.stream_sync = user_stream_sync,
	.stream_query = user_stream_query,
	.copy = user_copy,
	.busy = user_busy,
	.capture_begin = user_capture_begin,
	.capture_end = user_capture_end,
	.graph_launch = user_graph_launch,
	.graph_free = user_graph_free,
};
