/* SPDX-License-Identifier: MIT */
/*
 * pair RANK N_RANKS ID_FILE SECONDS: allreduces through the system's daemon for so long.
 *
 * For systemd.sh, whose ranks belong to different users: rank 0 leaves the unique id in a file that
 * the others may read. Exits 0, or 10 + the result of the call that failed.
 */
#include <rcclx.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define COUNT 1000

static void check(rcclx_result result, const char *what)
{
	if (result == RCCLX_OK)
		return;
	printf("%s: %s: %s\n", what, rcclx_strerror(result), rcclx_last_error());
	exit(10 + result);
}

static void fail(const char *what)
{
	perror(what);
	exit(EXIT_FAILURE);
}

static void put_id(const char *path, const struct rcclx_unique_id *id)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0640);

	if (fd < 0 || write(fd, id, sizeof(*id)) != sizeof(*id))
		fail(path);
	close(fd);
}

/* Up to 10 s: the other user's process may start later. */
static void get_id(const char *path, struct rcclx_unique_id *id)
{
	const struct timespec pause = {.tv_nsec = 10000000};

	for (int i = 0; i < 1000; i++) {
		int fd = open(path, O_RDONLY);
		ssize_t n = fd < 0 ? -1 : read(fd, id, sizeof(*id));

		if (fd >= 0)
			close(fd);
		if (n == sizeof(*id))
			return;
		nanosleep(&pause, NULL);
	}
	fail(path);
}

/*
 * Ranks end together: each adds whether its time is up to the last element, and all see that sum.
 */
static unsigned long long run(
	struct rcclx_comm *comm, uint32_t rank, uint32_t n_ranks, time_t seconds)
{
	static float in[COUNT], out[COUNT];
	const time_t end = time(NULL) + seconds;
	unsigned long long n_ops = 0;

	do {
		for (int i = 0; i < COUNT - 1; i++)
			in[i] = (float)((rank + 1) * ((unsigned int)i % 100 + n_ops % 10));
		in[COUNT - 1] = time(NULL) >= end;
		check(rcclx_all_reduce(comm, in, out, COUNT, RCCLX_FLOAT32, RCCLX_SUM, NULL),
			"allreduce");
		for (int i = 0; i < COUNT - 1; i++) {
			float sum = (float)(n_ranks * (n_ranks + 1) / 2 *
					    ((unsigned int)i % 100 + n_ops % 10));

			if (out[i] < sum || out[i] > sum) {
				printf("element %d is %g, not %g\n", i, out[i], sum);
				exit(EXIT_FAILURE);
			}
		}
		n_ops++;
	} while (!(out[COUNT - 1] > 0));
	return n_ops;
}

int main(int argc, char **argv)
{
	struct rcclx_client *client = NULL;
	struct rcclx_unique_id id = {0};
	struct rcclx_comm *comm = NULL;

	if (argc != 5)
		return 2;
	uint32_t rank = (uint32_t)atoi(argv[1]), n_ranks = (uint32_t)atoi(argv[2]);

	setvbuf(stdout, NULL, _IOLBF, 0);
	check(rcclx_connect(NULL, NULL, &client), "connect");
	if (rank == 0) {
		check(rcclx_unique_id_create(client, &id), "unique id");
		put_id(argv[3], &id);
	} else {
		get_id(argv[3], &id);
	}
	check(rcclx_comm_create(client, &id, n_ranks, rank, NULL, &comm), "communicator");
	printf("rank %u of %u: formed, uid %u\n", rank, n_ranks, getuid());
	printf("rank %u: %llu allreduces\n", rank, run(comm, rank, n_ranks, atoi(argv[4])));
	check(rcclx_comm_destroy(comm), "destroy");
	check(rcclx_disconnect(client), "disconnect");
	return EXIT_SUCCESS;
}
