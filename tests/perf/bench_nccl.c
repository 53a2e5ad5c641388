/* SPDX-License-Identifier: MIT */
/*
 * What NCCL's interface adds to librcclx: an allreduce of 8 bytes on a communicator of one rank,
 * where nothing else is to be done, called both ways in turn. Prints medians; exit status 1 when
 * the difference is more than the target. $RCCLX_SOCKET names the daemon.
 *
 *	bench_nccl [RUNTIME]
 *
 * With a library that has EMU_USER_SYMBOL (tests/gpu-emu/emu_user.h), also for a call in the order
 * of a stream: how long the caller is in it, whenever it is executed.
 */
#include "../../client/nccl/nccl.h"
#include "../../client/rcclx.h"
#include "../gpu-emu/emu_user.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ROUNDS           301
#define CALLS            2000
#define STREAM_CALLS     16 /* then the stream is waited for: a full queue is not what is measured */
#define TARGET_NS        150.0
#define STREAM_TARGET_NS 1000.0

struct sides {
	struct rcclx_comm *direct;
	ncclComm_t nccl;
};

struct stream {
	const struct emu_user *user;
	void *stream;
	void *in; /* the device's */
	void *out;
};

static double direct_ns[ROUNDS], nccl_ns[ROUNDS];

static double now_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values)
{
	qsort(values, ROUNDS, sizeof(*values), compare);
	return values[ROUNDS / 2];
}

static int prepare(struct sides *sides)
{
	struct rcclx_client *client = NULL;
	struct rcclx_unique_id id;
	ncclUniqueId nccl_id;

	if (rcclx_connect(NULL, NULL, &client) || rcclx_unique_id_create(client, &id) ||
		rcclx_comm_create(client, &id, 1, 0, NULL, &sides->direct)) {
		fprintf(stderr, "bench_nccl: %s\n", rcclx_last_error());
		return 2;
	}
	if (ncclGetUniqueId(&nccl_id) || ncclCommInitRank(&sides->nccl, 1, nccl_id, 0)) {
		fprintf(stderr, "bench_nccl: %s\n", ncclGetLastError(NULL));
		return 2;
	}
	return 0;
}

static int report(const char *what, double target_ns)
{
	double direct = median(direct_ns);
	double nccl = median(nccl_ns);

	printf("%s, 1 rank: librcclx %.1f ns, NCCL's interface %.1f ns: adds %.1f ns (target "
	       "%.0f)\n",
		what, direct, nccl, nccl - direct, target_ns);
	return nccl - direct > target_ns;
}

static int failed(int wrong, double out)
{
	if (!wrong && out == 1)
		return 0;
	fprintf(stderr, "bench_nccl: a call failed (%d), or its result is %g instead of 1: %s\n",
		wrong, out, rcclx_last_error());
	return 2;
}

static int on_host(const struct sides *sides)
{
	double in = 1, out = 0;
	int wrong = 0;

	for (int round = 0; round < ROUNDS; round++) {
		double began = now_ns();

		for (int i = 0; i < CALLS; i++)
			wrong |= rcclx_all_reduce(
				sides->direct, &in, &out, 1, RCCLX_FLOAT64, RCCLX_SUM, NULL);
		direct_ns[round] = (now_ns() - began) / CALLS;
		began = now_ns();
		for (int i = 0; i < CALLS; i++)
			wrong |= (int)ncclAllReduce(
				&in, &out, 1, ncclFloat64, ncclSum, sides->nccl, NULL);
		nccl_ns[round] = (now_ns() - began) / CALLS;
	}
	wrong = failed(wrong, out);
	return wrong ? wrong : report("allreduce of 8 bytes", TARGET_NS);
}

static int load(const char *path, struct stream *stream)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);

	stream->user = library ? dlsym(library, EMU_USER_SYMBOL) : NULL;
	if (!stream->user) {
		fprintf(stderr, "bench_nccl: %s: %s\n", path, dlerror());
		return 2;
	}
	stream->stream = stream->user->stream_new(0);
	stream->in = (void *)(uintptr_t)stream->user->alloc(0, 4096);
	stream->out = (void *)(uintptr_t)stream->user->alloc(0, 4096);
	if (stream->stream && stream->in && stream->out)
		return 0;
	fprintf(stderr, "bench_nccl: %s: no stream, or no memory\n", path);
	return 2;
}

static double directly(const struct sides *sides, const struct stream *stream, int *wrong_p)
{
	struct rcclx_call_config config = RCCLX_CALL_CONFIG_INIT;
	double began = now_ns();

	config.flags = RCCLX_CALL_IN_STREAM;
	config.stream = stream->stream;
	for (int i = 0; i < STREAM_CALLS; i++)
		*wrong_p |= rcclx_all_reduce(sides->direct, stream->in, stream->out, 1,
			RCCLX_FLOAT64, RCCLX_SUM, &config);
	began = now_ns() - began;
	*wrong_p |= stream->user->stream_sync(stream->stream);
	return began / STREAM_CALLS;
}

static double by_nccl(const struct sides *sides, const struct stream *stream, int *wrong_p)
{
	double began = now_ns();

	for (int i = 0; i < STREAM_CALLS; i++)
		*wrong_p |= (int)ncclAllReduce(stream->in, stream->out, 1, ncclFloat64, ncclSum,
			sides->nccl, stream->stream);
	began = now_ns() - began;
	*wrong_p |= stream->user->stream_sync(stream->stream);
	return began / STREAM_CALLS;
}

static int in_stream(const struct sides *sides, const struct stream *stream)
{
	double in = 1, out = 0;
	int wrong = 0;

	stream->user->write((uintptr_t)stream->in, &in, sizeof(in));
	/* The first calls make what later ones use. */
	(void)directly(sides, stream, &wrong);
	(void)by_nccl(sides, stream, &wrong);
	for (int round = 0; round < ROUNDS && !wrong; round++) {
		if (round % 2 == 0)
			direct_ns[round] = directly(sides, stream, &wrong);
		nccl_ns[round] = by_nccl(sides, stream, &wrong);
		if (round % 2 != 0)
			direct_ns[round] = directly(sides, stream, &wrong);
	}
	stream->user->read(&out, (uintptr_t)stream->out, sizeof(out));
	wrong = failed(wrong, out);
	return wrong ? wrong : report("allreduce of 8 bytes in a stream", STREAM_TARGET_NS);
}

int main(int argc, char **argv)
{
	struct sides sides = {0};
	struct stream stream = {0};
	int r = 0;

	/* A runtime that is there when a communicator is made has all of its calls go to the
	 * daemon: so the calls of hosts come first, in communicators of their own. */
	r = prepare(&sides);
	if (!r)
		r = on_host(&sides);
	if (r == 2 || argc < 2)
		return r;
	if (load(argv[1], &stream) || prepare(&sides))
		return 2;
	return r | in_stream(&sides, &stream);
}
