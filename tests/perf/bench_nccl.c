/* SPDX-License-Identifier: MIT */
/*
 * What NCCL's interface adds to librcclx: an allreduce of 8 bytes on a communicator of one rank,
 * where nothing else is to be done, called both ways in turn. Prints medians; exit status 1 when
 * the difference is more than the target. $RCCLX_SOCKET names the daemon.
 */
#include "../../client/nccl/nccl.h"
#include "../../client/rcclx.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ROUNDS    301
#define CALLS     2000
#define TARGET_NS 150.0

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

static int prepare(struct rcclx_comm **direct_p, ncclComm_t *nccl_p)
{
	struct rcclx_client *client = NULL;
	struct rcclx_unique_id id;
	ncclUniqueId nccl_id;

	if (rcclx_connect(NULL, NULL, &client) || rcclx_unique_id_create(client, &id) ||
		rcclx_comm_create(client, &id, 1, 0, NULL, direct_p)) {
		fprintf(stderr, "bench_nccl: %s\n", rcclx_last_error());
		return 1;
	}
	if (ncclGetUniqueId(&nccl_id) || ncclCommInitRank(nccl_p, 1, nccl_id, 0)) {
		fprintf(stderr, "bench_nccl: %s\n", ncclGetLastError(NULL));
		return 1;
	}
	return 0;
}

int main(void)
{
	static double direct_ns[ROUNDS], nccl_ns[ROUNDS];
	struct rcclx_comm *direct = NULL;
	ncclComm_t nccl = NULL;
	double in = 1, out = 0, added = 0;
	int wrong = 0;

	if (prepare(&direct, &nccl))
		return 2;
	for (int round = 0; round < ROUNDS; round++) {
		double began = now_ns();

		for (int i = 0; i < CALLS; i++)
			wrong |= rcclx_all_reduce(
				direct, &in, &out, 1, RCCLX_FLOAT64, RCCLX_SUM, NULL);
		direct_ns[round] = (now_ns() - began) / CALLS;
		began = now_ns();
		for (int i = 0; i < CALLS; i++)
			wrong |= (int)ncclAllReduce(&in, &out, 1, ncclFloat64, ncclSum, nccl, NULL);
		nccl_ns[round] = (now_ns() - began) / CALLS;
	}
	if (wrong || out != 1) {
		fprintf(stderr, "bench_nccl: a call failed\n");
		return 2;
	}
	added = median(nccl_ns) - median(direct_ns);
	printf("allreduce of 8 bytes, 1 rank: librcclx %.1f ns, NCCL's interface %.1f ns: adds %.1f "
	       "ns (target %.0f)\n",
		median(direct_ns), median(nccl_ns), added, TARGET_NS);
	return added > TARGET_NS;
}
