/* SPDX-License-Identifier: MIT */
/* Four processes add their vectors. cc allreduce.c $(pkg-config --cflags --libs rcclx) */
#include <rcclx.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define N_RANKS 4
#define COUNT   1000

static void check(rcclx_result result, const char *what)
{
	if (result == RCCLX_OK)
		return;
	fprintf(stderr, "%s: %s: %s\n", what, rcclx_strerror(result), rcclx_last_error());
	exit(EXIT_FAILURE);
}

static void run(uint32_t rank, const struct rcclx_unique_id *id)
{
	struct rcclx_client *client = NULL;
	struct rcclx_comm *comm = NULL;
	void *memory = NULL;

	check(rcclx_connect(NULL, NULL, &client), "connect");
	check(rcclx_comm_create(client, id, N_RANKS, rank, NULL, &comm), "communicator");
	check(rcclx_mem_alloc(client, COUNT * sizeof(float), &memory), "memory");
	float *x = memory;
	for (int i = 0; i < COUNT; i++)
		x[i] = (float)(i * (int)(rank + 1));
	check(rcclx_all_reduce(comm, x, x, COUNT, RCCLX_FLOAT32, RCCLX_SUM, NULL), "allreduce");
	printf("rank %u: x[1] = %g, x[%d] = %g\n", rank, x[1], COUNT - 1, x[COUNT - 1]);
	check(rcclx_mem_free(client, x), "free");
	check(rcclx_comm_destroy(comm), "destroy");
	check(rcclx_disconnect(client), "disconnect");
}

int main(void)
{
	struct rcclx_client *client = NULL;
	struct rcclx_unique_id id;
	int failed = 0, status = 0;

	check(rcclx_connect(NULL, NULL, &client), "connect");
	check(rcclx_unique_id_create(client, &id), "unique id");
	check(rcclx_disconnect(client), "disconnect"); /* a connection is not for children */
	for (uint32_t rank = 0; rank < N_RANKS; rank++) {
		if (fork() == 0) {
			run(rank, &id);
			return EXIT_SUCCESS;
		}
	}
	while (wait(&status) > 0)
		failed |= status != 0;
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
