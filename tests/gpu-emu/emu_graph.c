/* SPDX-License-Identifier: MIT */
/*
 * Graphs of the test double: what streams record, and its replay. Each stream that takes part in a
 * capture has a lane; lanes run at the same time, and meet where the streams met by events.
 */
#include "emu.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define MAX_LANES 16u

struct lane {
	int device;
	struct emu_work **works;
	size_t n;
	size_t n_joined; /* works that another lane waits for */
};

struct graph {
	_Atomic uint32_t n_refs;
	uint32_t n_lanes;
	struct lane lanes[MAX_LANES];
};

struct emu_capture {
	struct emu_capture *next;
	uint64_t id;
	int mode;
	pthread_t thread;
	bool broken;
	struct graph *graph;
	struct emu_stream *streams[MAX_LANES]; /* by lane */
};

/* May be taken with a stream's lock held. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct emu_capture *captures;
static uint64_t last_id;

/* ---- recording ---- */

/* With the lock held. */
static int append(struct graph *graph, uint32_t index, const struct emu_work *work)
{
	struct lane *lane = &graph->lanes[index];
	struct emu_work **works = reallocarray(lane->works, lane->n + 1, sizeof(*works));
	struct emu_work *copy = malloc(sizeof(*copy));

	if (works)
		lane->works = works;
	if (!works || !copy) {
		free(copy);
		return GPU_OUT_OF_MEMORY;
	}
	*copy = *work;
	lane->works[lane->n++] = copy;
	return GPU_SUCCESS;
}

int emu_record(struct emu_stream *stream, const struct emu_work *work)
{
	int native = GPU_SUCCESS;

	pthread_mutex_lock(&lock);
	native = stream->capture->broken ? EMU_CAPTURE_INVALIDATED
					 : append(stream->capture->graph, stream->lane, work);
	pthread_mutex_unlock(&lock);
	return native;
}

static _Thread_local int thread_mode;

int emu_capture_mode(int *mode)
{
	int before = thread_mode;

	thread_mode = *mode;
	*mode = before;
	return GPU_SUCCESS;
}

int emu_forbid(void)
{
	int native = GPU_SUCCESS;

	if (thread_mode == 2)
		return native;

	pthread_mutex_lock(&lock);
	for (struct emu_capture *capture = captures; capture; capture = capture->next) {
		if (capture->mode == 2 ||
			(capture->mode == 1 && !pthread_equal(capture->thread, pthread_self())))
			continue;
		capture->broken = true;
		native = EMU_CAPTURE_UNSUPPORTED;
	}
	pthread_mutex_unlock(&lock);
	return native;
}

int emu_break(struct emu_stream *stream)
{
	int native = GPU_SUCCESS;

	pthread_mutex_lock(&stream->lock);
	pthread_mutex_lock(&lock);
	if (stream->capture) {
		stream->capture->broken = true;
		native = EMU_CAPTURE_UNSUPPORTED;
	}
	pthread_mutex_unlock(&lock);
	pthread_mutex_unlock(&stream->lock);
	return native;
}

/* ---- captures ---- */

/* With both locks held. */
static int join_capture(struct emu_stream *stream, struct emu_capture *capture)
{
	struct graph *graph = capture->graph;

	if (graph->n_lanes == MAX_LANES)
		return GPU_OUT_OF_MEMORY;
	stream->capture = capture;
	stream->lane = graph->n_lanes;
	graph->lanes[graph->n_lanes].device = stream->device;
	capture->streams[graph->n_lanes++] = stream;
	return GPU_SUCCESS;
}

int emu_capture_begin(void *native_stream, int mode)
{
	struct emu_stream *stream = native_stream;
	struct emu_capture *capture = calloc(1, sizeof(*capture));
	struct graph *graph = calloc(1, sizeof(*graph));
	int native = GPU_INVALID_VALUE;

	if (!capture || !graph)
		abort();
	atomic_init(&graph->n_refs, 1);
	capture->mode = mode;
	capture->thread = pthread_self();
	capture->graph = graph;
	if (stream && mode >= 0 && mode <= 2) {
		pthread_mutex_lock(&stream->lock);
		pthread_mutex_lock(&lock);
		if (!stream->capture) {
			capture->id = ++last_id;
			capture->next = captures;
			captures = capture;
			native = join_capture(stream, capture);
		}
		pthread_mutex_unlock(&lock);
		pthread_mutex_unlock(&stream->lock);
	}
	if (native != GPU_SUCCESS) {
		free(capture);
		free(graph);
	}
	return native;
}

/* Its streams are theirs again. */
static void dissolve(struct emu_capture *capture)
{
	struct emu_capture **link = &captures;

	pthread_mutex_lock(&lock);
	while (*link != capture)
		link = &(*link)->next;
	*link = capture->next;
	pthread_mutex_unlock(&lock);
	for (uint32_t i = 0; i < capture->graph->n_lanes; i++) {
		struct emu_stream *stream = capture->streams[i];

		pthread_mutex_lock(&stream->lock);
		stream->capture = NULL;
		pthread_mutex_unlock(&stream->lock);
	}
}

int emu_capture_end(void *native_stream, void **graph_p)
{
	struct emu_stream *stream = native_stream;
	struct emu_capture *capture = NULL;
	struct graph *graph = NULL;
	int native = GPU_SUCCESS;

	pthread_mutex_lock(&stream->lock);
	capture = stream->capture;
	pthread_mutex_unlock(&stream->lock);
	if (!capture || stream->lane != 0)
		return EMU_CAPTURE_UNMATCHED;
	dissolve(capture);
	graph = capture->graph;
	for (uint32_t i = 1; i < graph->n_lanes; i++)
		if (graph->lanes[i].n_joined < graph->lanes[i].n)
			native = EMU_CAPTURE_UNJOINED;
	if (capture->broken)
		native = EMU_CAPTURE_INVALIDATED;
	free(capture);
	if (native != GPU_SUCCESS) {
		emu_graph_put(graph);
		graph = NULL;
	}
	*graph_p = graph;
	return native;
}

static int look_at_capture(void *native_stream, int *status_p, unsigned long long *id_p)
{
	struct emu_stream *stream = emu_stream_of(native_stream);

	*status_p = 0;
	pthread_mutex_lock(&stream->lock);
	if (stream->capture) {
		pthread_mutex_lock(&lock);
		*status_p = stream->capture->broken ? 2 : 1;
		*id_p = stream->capture->id;
		pthread_mutex_unlock(&lock);
	}
	pthread_mutex_unlock(&stream->lock);
	return GPU_SUCCESS;
}

int emu_stream_capturing(void *stream, int *status_p)
{
	unsigned long long id = 0;

	return look_at_capture(stream, status_p, &id);
}

int emu_capture_info(void *stream, int *status_p, unsigned long long *id_p, void **graph_p,
	const void **nodes_p, size_t *n_nodes_p)
{
	return graph_p || nodes_p || n_nodes_p ? GPU_NOT_SUPPORTED
					       : look_at_capture(stream, status_p, id_p);
}

/* ---- events ---- */

int emu_event_record(struct emu_event *event, void *native_stream)
{
	struct emu_stream *stream = emu_stream_of(native_stream);
	bool captured = false;

	pthread_mutex_lock(&stream->lock);
	pthread_mutex_lock(&lock);
	captured = stream->capture;
	event->capture_id = captured ? stream->capture->id : 0;
	if (captured) {
		event->lane = stream->lane;
		event->index = stream->capture->graph->lanes[stream->lane].n;
	}
	pthread_mutex_unlock(&lock);
	pthread_mutex_unlock(&stream->lock);
	if (captured)
		return GPU_SUCCESS;
	return emu_put(stream, &(struct emu_work){.kind = WORK_RECORD,
				       .object = event,
				       .value = atomic_fetch_add(&event->n_recorded, 1) + 1});
}

/* With both locks held. */
static int wait_in_capture(struct emu_event *event, struct emu_stream *stream)
{
	struct emu_capture *capture = captures;
	struct lane *lane = NULL;
	int native = GPU_SUCCESS;

	while (capture && capture->id != event->capture_id)
		capture = capture->next;
	if (!capture || (stream->capture && stream->capture != capture))
		return GPU_INVALID_VALUE;
	if (!stream->capture)
		native = join_capture(stream, capture);
	if (native != GPU_SUCCESS || event->lane == stream->lane)
		return native;
	lane = &capture->graph->lanes[event->lane];
	lane->n_joined = event->index > lane->n_joined ? event->index : lane->n_joined;
	return append(capture->graph, stream->lane,
		&(struct emu_work){.kind = WORK_JOIN, .lane = event->lane, .value = event->index});
}

int emu_event_wait(struct emu_event *event, void *native_stream)
{
	struct emu_stream *stream = emu_stream_of(native_stream);
	int native = GPU_SUCCESS;

	if (!event->capture_id)
		return emu_put(stream, &(struct emu_work){.kind = WORK_AWAIT,
					       .object = event,
					       .value = atomic_load(&event->n_recorded)});
	pthread_mutex_lock(&stream->lock);
	pthread_mutex_lock(&lock);
	native = wait_in_capture(event, stream);
	pthread_mutex_unlock(&lock);
	pthread_mutex_unlock(&stream->lock);
	return native;
}

/* ---- replay ---- */

struct replay {
	const struct graph *graph;
	_Atomic size_t n_done[MAX_LANES];
};

struct lane_run {
	struct replay *replay;
	uint32_t lane;
	pthread_t thread;
};

static void *run_lane(void *arg)
{
	const struct lane_run *run = arg;
	struct replay *replay = run->replay;
	const struct lane *lane = &replay->graph->lanes[run->lane];

	for (size_t i = 0; i < lane->n; i++) {
		const struct emu_work *work = lane->works[i];

		while (work->kind == WORK_JOIN &&
			atomic_load(&replay->n_done[work->lane]) < work->value)
			(void)sched_yield();
		emu_run(work, lane->device);
		atomic_store(&replay->n_done[run->lane], i + 1);
	}
	return NULL;
}

/* The first lane is that of the stream it is launched in. */
void emu_graph_run(void *native_graph, int device)
{
	struct replay replay = {.graph = native_graph};
	struct lane_run runs[MAX_LANES];
	uint32_t n = replay.graph->n_lanes;

	(void)device;
	for (uint32_t i = 0; i < n; i++) {
		runs[i] = (struct lane_run){.replay = &replay, .lane = i};
		if (i > 0 && pthread_create(&runs[i].thread, NULL, run_lane, &runs[i]) != 0)
			abort();
	}
	(void)run_lane(&runs[0]);
	for (uint32_t i = 1; i < n; i++)
		(void)pthread_join(runs[i].thread, NULL);
}

int emu_graph_launch(void *native_graph, void *stream)
{
	struct graph *graph = native_graph;
	int native = GPU_SUCCESS;

	(void)atomic_fetch_add(&graph->n_refs, 1);
	native = emu_put(stream, &(struct emu_work){.kind = WORK_GRAPH, .object = graph});
	if (native != GPU_SUCCESS)
		emu_graph_put(graph);
	return native;
}

int emu_graph_nodes(void *native_graph, void **nodes, size_t *n_p)
{
	const struct graph *graph = native_graph;

	(void)nodes;
	*n_p = 0;
	for (uint32_t i = 0; i < graph->n_lanes; i++)
		*n_p += graph->lanes[i].n;
	return GPU_SUCCESS;
}

void emu_graph_put(void *native_graph)
{
	struct graph *graph = native_graph;

	if (atomic_fetch_sub(&graph->n_refs, 1) != 1)
		return;
	for (uint32_t i = 0; i < graph->n_lanes; i++) {
		for (size_t k = 0; k < graph->lanes[i].n; k++) {
			if (graph->lanes[i].works[k]->kind == WORK_GRAPH)
				emu_graph_put(graph->lanes[i].works[k]->object);
			free(graph->lanes[i].works[k]);
		}
		free(graph->lanes[i].works);
	}
	free(graph);
}

int emu_graph_destroy(void *graph)
{
	emu_graph_put(graph);
	return GPU_SUCCESS;
}
