/* SPDX-License-Identifier: MIT */
#include "gpu_streams.h"

#include "gpu_exchange.h"

#include <stdlib.h>

struct gpu_streams *gpu_streams_new(struct gpu *gpu)
{
	struct gpu_streams *streams = calloc(1, sizeof(*streams));

	if (streams)
		streams->gpu = gpu;
	return streams;
}

static bool close_streams(struct gpu_job *job, struct gpu *gpu)
{
	struct gpu_streams *streams = rx_container_of(job, struct gpu_streams, job);

	for (uint32_t i = 0; i < gpu_n_devices(gpu); i++)
		if (streams->streams[i])
			gpu_ops(gpu)->stream_close(gpu_opened(gpu, i), streams->streams[i]);
	if (!streams->stuck) {
		gpu_host_deinit(gpu, &streams->blocks);
		gpu_host_deinit(gpu, &streams->counts);
		gpu_host_deinit(gpu, &streams->stage);
		gpu_exchange_leave(gpu, streams->set);
	}
	gpu_reap_later(gpu);
	return true;
}

static void on_closed(struct gpu_job *job)
{
	free(rx_container_of(job, struct gpu_streams, job));
}

struct gpu_streams *gpu_streams_free(struct gpu_streams *streams)
{
	if (streams) {
		streams->job.run = close_streams;
		streams->job.done = on_closed;
		gpu_submit(streams->gpu, &streams->job);
	}
	return NULL;
}

int gpu_streams_open(
	struct gpu_streams *streams, uint32_t device, void **stream_p, struct rx_gpu_error *error)
{
	struct gpu *gpu = streams->gpu;
	void **stream = &streams->streams[device];
	int r = 0;

	if (!*stream)
		r = gpu_ops(gpu)->stream_open(gpu_opened(gpu, device), true, stream, error);
	if (r == 0)
		*stream_p = *stream;
	return r;
}
