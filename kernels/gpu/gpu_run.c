/* SPDX-License-Identifier: MIT */
/* Streams, copies, kernels and the words that say that they are done. */
#include "gpu_impl.h"
#include "../device/device_abi.h"

#include <stdlib.h>
#include <string.h>

/* ---- streams ---- */

int gpu_stream_new(struct rx_gpu_device *device, bool urgent, struct gpu_stream **stream_p,
	struct rx_gpu_error *error)
{
	const struct gpu_sym *sym = &device->gpu->sym;
	struct gpu_stream *stream = calloc(1, sizeof(*stream));
	int least = 0;
	int greatest = 0;
	int result = RX_GPU_OK;

	if (!stream)
		return gpu_fail(error, RX_GPU_E_MEMORY, 0, "no memory for a stream");
	rx_list_init(&stream->link);
	if (sym->stream_range(&least, &greatest) != GPU_SUCCESS)
		least = greatest = 0;
	result = gpu_device_check(device,
		sym->stream_create(
			&stream->native, GPU_STREAM_NON_BLOCKING, urgent ? greatest : least),
		"making a stream", error);
	if (result == RX_GPU_OK)
		*stream_p = stream;
	else
		free(stream);
	return result;
}

void gpu_stream_free(struct rx_gpu_device *device, struct gpu_stream *stream)
{
	if (!stream)
		return;
	if (device->lost.result == RX_GPU_OK)
		(void)device->gpu->sym.stream_destroy(stream->native);
	rx_list_unlink(&stream->link);
	free(stream);
}

int gpu_stream_open(
	struct rx_gpu_device *device, bool urgent, void **stream_p, struct rx_gpu_error *error)
{
	struct gpu_scope scope = {0};
	struct gpu_stream *stream = NULL;
	int result = gpu_device_state(device, error);

	if (result != RX_GPU_OK)
		return result;
	if (device->n_streams == GPU_MAX_STREAMS)
		return gpu_fail(error, RX_GPU_E_LIMIT, 0, "more than %u streams on one device",
			GPU_MAX_STREAMS);
	result = gpu_enter(device, &scope, error);
	if (result != RX_GPU_OK)
		return result;
	result = gpu_stream_new(device, urgent, &stream, error);
	gpu_leave(device->gpu, &scope);
	if (result != RX_GPU_OK)
		return result;
	rx_list_push(&device->streams, &stream->link);
	device->n_streams++;
	*stream_p = stream->native;
	return RX_GPU_OK;
}

void gpu_stream_close(struct rx_gpu_device *device, void *stream)
{
	rx_list_for_each (pos, &device->streams) {
		struct gpu_stream *mine = rx_list_entry(pos, struct gpu_stream, link);

		if (mine->native == stream && !mine->closing) {
			mine->closing = true;
			device->stats.n_quarantined++;
			break;
		}
	}
	(void)gpu_device_reap(device);
}

bool gpu_streams_idle(struct rx_gpu_device *device)
{
	bool idle = true;

	rx_list_for_each_safe (pos, &device->streams) {
		struct gpu_stream *stream = rx_list_entry(pos, struct gpu_stream, link);
		int result = gpu_device_check(device, device->gpu->sym.stream_query(stream->native),
			"asking a stream", NULL);

		if (result != RX_GPU_OK) {
			idle = false;
		} else if (stream->closing) {
			gpu_stream_free(device, stream);
			device->n_streams--;
			device->stats.n_quarantined--;
		}
	}
	return idle && device->lost.result == RX_GPU_OK;
}

/* Make the device current, unless it is lost. On success the caller leaves it again. */
static int begin(struct rx_gpu_device *device, struct gpu_scope *scope, struct rx_gpu_error *error)
{
	int result = gpu_device_state(device, error);

	return result == RX_GPU_OK ? gpu_enter(device, scope, error) : result;
}

int gpu_stream_query(struct rx_gpu_device *device, void *stream, struct rx_gpu_error *error)
{
	struct gpu_scope scope = {0};
	int result = begin(device, &scope, error);

	if (result != RX_GPU_OK)
		return result;
	result = gpu_device_check(
		device, device->gpu->sym.stream_query(stream), "work on the device", error);
	gpu_leave(device->gpu, &scope);
	return result;
}

/* ---- work ---- */

int gpu_run_copy(struct rx_gpu_device *device, void *stream, uint64_t to, uint64_t from,
	uint64_t bytes, struct rx_gpu_error *error)
{
	struct gpu_scope scope = {0};
	int result = gpu_device_state(device, error);

	if (result != RX_GPU_OK || bytes == 0)
		return result;
	result = gpu_enter(device, &scope, error);
	if (result != RX_GPU_OK)
		return result;
	result = gpu_device_check(
		device, gpu_copy(&device->gpu->sym, stream, to, from, bytes), "copying", error);
	gpu_leave(device->gpu, &scope);
	return result;
}

static int find_function(
	struct rx_gpu_device *device, const char *name, void **native_p, struct rx_gpu_error *error)
{
	struct gpu_function *grown = NULL;
	void *native = NULL;
	char *copy = NULL;
	int result = RX_GPU_OK;

	for (uint32_t i = 0; i < device->n_functions; i++) {
		if (strcmp(device->functions[i].name, name) == 0) {
			*native_p = device->functions[i].native;
			return RX_GPU_OK;
		}
	}
	if (!device->module)
		return gpu_fail(error, RX_GPU_E_UNSUPPORTED, device->no_code.native, "%s",
			device->no_code.text);
	if (device->gpu->sym.module_function(&native, device->module, name) != GPU_SUCCESS)
		return gpu_fail(error, RX_GPU_E_UNSUPPORTED, 0, "there is no kernel %s", name);
	copy = strdup(name);
	grown = realloc(device->functions, (device->n_functions + 1) * sizeof(*grown));
	if (grown)
		device->functions = grown;
	if (grown && copy)
		grown[device->n_functions++] = (struct gpu_function){copy, native};
	else
		result = gpu_fail(error, RX_GPU_E_MEMORY, 0, "no memory for a kernel's name");
	if (result != RX_GPU_OK)
		free(copy);
	else
		*native_p = native;
	return result;
}

static int launch_here(struct rx_gpu_device *device, void *stream,
	const struct rx_gpu_launch *launch, struct rx_gpu_error *error)
{
	size_t bytes = launch->args_bytes;
	/* The runtime copies the arguments before it returns, and does not write them. */
	const void *args = launch->args;
	void *extra[] = {(void *)GPU_LAUNCH_ARGS, NULL, (void *)GPU_LAUNCH_ARGS_BYTES, &bytes,
		(void *)GPU_LAUNCH_END};
	void *function = NULL;
	int result = find_function(device, launch->kernel, &function, error);

	if (result != RX_GPU_OK || launch->n_blocks == 0)
		return result;
	memcpy(&extra[1], &args, sizeof(args));
	result = gpu_device_check(device,
		device->gpu->sym.launch(function, launch->n_blocks, 1, 1, launch->n_threads, 1, 1,
			launch->shared_bytes, stream, NULL, extra),
		launch->kernel, error);
	if (result == RX_GPU_OK)
		device->stats.n_launches++;
	return result;
}

int gpu_launch(struct rx_gpu_device *device, void *stream, const struct rx_gpu_launch *launch,
	struct rx_gpu_error *error)
{
	struct gpu_scope scope = {0};
	int result = begin(device, &scope, error);

	if (result != RX_GPU_OK)
		return result;
	result = launch_here(device, stream, launch, error);
	gpu_leave(device->gpu, &scope);
	return result;
}

static uint32_t caps_of(const struct rx_gpu_device *device)
{
	return atomic_load_explicit(
		&device->gpu->devices[device->index].caps, memory_order_relaxed);
}

int gpu_signal(struct rx_gpu_device *device, void *stream, uint64_t address, uint64_t value,
	struct rx_gpu_error *error)
{
	struct rx_dev_words words = {.first_value = value};
	struct rx_gpu_launch launch = {.kernel = RX_DEV_WORDS_NAME,
		.args = &words,
		.args_bytes = sizeof(words),
		.n_blocks = 1,
		.n_threads = 1};
	struct gpu_scope scope = {0};
	int result = gpu_device_state(device, error);

	if (result != RX_GPU_OK)
		return result;
	if (!(caps_of(device) & RX_GPU_CAP_STREAM_MEM)) {
		memcpy(&words.first, &address, sizeof(address));
		return gpu_launch(device, stream, &launch, error);
	}
	result = gpu_enter(device, &scope, error);
	if (result != RX_GPU_OK)
		return result;
	result = gpu_device_check(device,
		device->gpu->sym.stream_write64(stream, address, value, 0), "signalling", error);
	gpu_leave(device->gpu, &scope);
	return result;
}
