/* SPDX-License-Identifier: MIT */
/*
 * The CUDA plugin on a real driver: this process is the daemon, a child owns the memory.
 *
 *	backend PLUGIN CODE
 *
 * PLUGIN is rcclx_backend_cuda.so, CODE what nvcc made of backend_words.cu. Prints what happened
 *and how long it took, and exits with 1 when something was not as it must be.
 */
#include "../../kernels/rx_backend.h"
#include "../../kernels/device/device_abi.h"

#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PLAIN_BYTES (64u << 20)
#define N_TIMES     2000

enum wish { PLAIN, PLAIN_AGAIN, ZEROS, MARKED, VIRTUAL, POOL, MANAGED, N_WISHES };

static const char *const names[N_WISHES] = {"plain memory", "the same, made again", "zeros",
	"zeros, marked", "virtual memory, 2 pieces", "pool memory", "managed memory"};

struct answer {
	int result;
	uint32_t n;
	uint32_t kind;
	struct rx_gpu_export exports[4];
	uint8_t rows[4][RX_GPU_SAMPLE_BYTES];
	struct rx_gpu_error error;
};

static const struct rx_backend_v1 *ops;
static const char *code;
static int n_bad;

static double now_us(void)
{
	struct timespec ts = {0};

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void say(bool good, const char *what, const char *more)
{
	(void)printf("%-4s %-46s %s\n", good ? "ok" : "BAD", what, more);
	(void)fflush(stdout);
	n_bad += !good;
}

static struct rx_gpu_config config(bool client)
{
	return (struct rx_gpu_config){.size = sizeof(struct rx_gpu_config),
		.flags = client ? RX_GPU_LOADED_ONLY : 0,
		.code_file = code};
}

static struct rx_gpu_sample sample_of(const struct rx_gpu_memory *memory)
{
	return (struct rx_gpu_sample){.bytes = memory->bytes, .seed = 11};
}

/* ---- the owner ---- */

static CUresult make_virtual(CUdeviceptr *address_p, size_t *bytes_p)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	CUmemAccessDesc access = {prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle handle = 0;
	size_t piece = 0;
	CUresult r = cuMemGetAllocationGranularity(&piece, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM);

	*bytes_p = 2 * piece;
	r = r ? r : cuMemAddressReserve(address_p, 2 * piece, 0, 0, 0);
	for (size_t i = 0; i < 2 && r == CUDA_SUCCESS; i++) {
		r = cuMemCreate(&handle, piece, &prop, 0);
		r = r ? r : cuMemMap(*address_p + i * piece, piece, 0, handle, 0);
		r = r ? r : cuMemRelease(handle);
	}
	return r ? r : cuMemSetAccess(*address_p, 2 * piece, &access, 1);
}

static CUresult make(enum wish wish, CUdeviceptr *address_p, size_t *bytes_p)
{
	static CUdeviceptr plain;
	CUresult r = CUDA_SUCCESS;

	*bytes_p = PLAIN_BYTES;
	switch (wish) {
	case VIRTUAL:
		return make_virtual(address_p, bytes_p);
	case POOL:
		r = cuMemAllocAsync(address_p, *bytes_p, NULL);
		return r ? r : cuStreamSynchronize(NULL);
	case MANAGED:
		*bytes_p = 2 << 20;
		return cuMemAllocManaged(address_p, *bytes_p, CU_MEM_ATTACH_GLOBAL);
	default:
		if (wish == PLAIN_AGAIN)
			(void)cuMemFree(plain);
		r = cuMemAlloc(address_p, *bytes_p);
		if (wish == PLAIN || wish == PLAIN_AGAIN)
			plain = *address_p;
		return r;
	}
}

static void put_contents(enum wish wish, CUdeviceptr address, size_t bytes)
{
	/* Others each time: contents that another mapping shows prove nothing. */
	static uint32_t seed;
	uint32_t *words = malloc(bytes);
	uint32_t x = ++seed;

	for (size_t i = 0; i < bytes / 4; i++) {
		x = x * 1664525u + 1013904223u;
		words[i] = wish == ZEROS || wish == MARKED ? 0 : x;
	}
	(void)cuMemcpyHtoD(address, words, bytes);
	(void)cuCtxSynchronize();
	free(words);
}

static void answer_wish(struct rx_gpu *gpu, enum wish wish, struct answer *answer, int *fds)
{
	CUdeviceptr address = 0;
	size_t bytes = 0;
	struct rx_gpu_memory memory = {0};

	memset(answer, 0, sizeof(*answer));
	answer->result = (int)make(wish, &address, &bytes);
	if (answer->result != 0)
		return;
	put_contents(wish, address, bytes);
	answer->result = ops->describe(gpu, address + 100, &memory, &answer->error);
	answer->kind = memory.kind;
	if (answer->result == RX_GPU_OK)
		answer->result = ops->export_memory(
			gpu, address, bytes, answer->exports, fds, 4, &answer->n, &answer->error);
	for (uint32_t i = 0; i < answer->n && answer->result == RX_GPU_OK; i++) {
		struct rx_gpu_sample sample = sample_of(&answer->exports[i].memory);
		uint64_t base = answer->exports[i].memory.base;

		if (wish == MARKED)
			answer->result = ops->sample_fill(gpu, base, &sample, &answer->error);
		if (answer->result == RX_GPU_OK)
			answer->result = ops->sample(
				gpu, base, &sample, NULL, answer->rows[i], &answer->error);
	}
}

static void own(int sock)
{
	struct rx_gpu_config mine = config(true);
	struct rx_gpu *gpu = NULL;
	static struct answer answer;
	CUcontext context = NULL;
	uint32_t wish = 0;

	if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
		ops->open(&mine, &gpu, NULL) != RX_GPU_OK)
		_exit(2);
	while (read(sock, &wish, sizeof(wish)) == sizeof(wish)) {
		char control[CMSG_SPACE(4 * sizeof(int))] = {0};
		int fds[4] = {-1, -1, -1, -1};
		struct iovec iov = {&answer, sizeof(answer)};
		struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

		answer_wish(gpu, (enum wish)wish, &answer, fds);
		if (fds[0] >= 0) {
			msg.msg_control = control;
			msg.msg_controllen = CMSG_SPACE(answer.n * sizeof(int));
			struct cmsghdr *header = CMSG_FIRSTHDR(&msg);

			header->cmsg_level = SOL_SOCKET;
			header->cmsg_type = SCM_RIGHTS;
			header->cmsg_len = CMSG_LEN(answer.n * sizeof(int));
			memcpy(CMSG_DATA(header), fds, answer.n * sizeof(int));
		}
		(void)sendmsg(sock, &msg, 0);
	}
	_exit(0);
}

/* ---- the daemon ---- */

static bool ask(int sock, uint32_t wish, struct answer *answer, int *fds)
{
	char control[CMSG_SPACE(4 * sizeof(int))] = {0};
	struct iovec iov = {answer, sizeof(*answer)};
	struct msghdr msg = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control)};

	for (int i = 0; i < 4; i++)
		fds[i] = -1;
	if (write(sock, &wish, sizeof(wish)) != sizeof(wish) ||
		recvmsg(sock, &msg, MSG_CMSG_CLOEXEC) != sizeof(*answer))
		return false;
	if (CMSG_FIRSTHDR(&msg))
		memcpy(fds, CMSG_DATA(CMSG_FIRSTHDR(&msg)),
			CMSG_FIRSTHDR(&msg)->cmsg_len - CMSG_LEN(0));
	return true;
}

static struct rx_gpu_map *share(
	struct rx_gpu_device *device, const struct answer *answer, const int *fds, enum wish wish)
{
	struct rx_gpu_map *map = NULL;
	struct rx_gpu_error error = {0};
	uint32_t verdict = RX_GPU_VERDICT_N;
	uint32_t expected = wish == ZEROS ? RX_GPU_OPEN : RX_GPU_PROVEN;
	double start = now_us();
	double opened = 0;
	char text[400];
	int r = ops->import(device, 1, answer->exports, fds, answer->n, &map, &error);

	opened = now_us();
	for (uint32_t i = 0; r == RX_GPU_OK && i < answer->n; i++) {
		struct rx_gpu_sample sample = sample_of(&answer->exports[i].memory);

		sample.offset = answer->exports[i].memory.base - answer->exports[0].memory.base;
		r = ops->prove(map, &sample, answer->rows[i],
			wish == MARKED ? RX_GPU_PROVE_NONCE : RX_GPU_PROVE_STABLE, &verdict,
			&error);
	}
	(void)snprintf(text, sizeof(text), "open %.0f us, prove %.0f us; id %llu, %llu bytes %s",
		opened - start, now_us() - opened, (unsigned long long)answer->exports[0].memory.id,
		(unsigned long long)answer->exports[0].memory.bytes, error.text);
	say(r == RX_GPU_OK && verdict == expected, names[wish], text);
	return map;
}

static void try_wish(struct rx_gpu_device *device, int sock, enum wish wish)
{
	static struct answer answer;
	int fds[4];
	char text[300];

	if (!ask(sock, wish, &answer, fds)) {
		say(false, names[wish], "the owner is gone");
		return;
	}
	(void)snprintf(text, sizeof(text), "kind %u, result %d %s", answer.kind, answer.result,
		answer.error.text);
	if (wish == POOL || wish == MANAGED) {
		say(answer.result == RX_GPU_E_UNSUPPORTED &&
				answer.kind ==
					(wish == POOL ? RX_GPU_MEM_POOL : RX_GPU_MEM_MANAGED),
			names[wish], text);
		return;
	}
	if (answer.result != RX_GPU_OK) {
		say(false, names[wish], text);
		return;
	}
	ops->map_release(share(device, &answer, fds, wish));
	if (wish == VIRTUAL) {
		struct rx_gpu_map *map = NULL;

		answer.exports[0].memory.bytes *= 2;
		say(ops->import(device, 2, answer.exports, fds, 1, &map, &answer.error) !=
				RX_GPU_OK,
			"a size that is a lie", answer.error.text);
	}
	for (int i = 0; i < 4; i++) {
		if (fds[i] >= 0)
			(void)close(fds[i]);
	}
}

static bool wait_word(const _Atomic uint64_t *word, uint64_t value)
{
	double end = now_us() + 2e6;

	while (*word != value) {
		if (now_us() > end)
			return false;
	}
	return true;
}

enum way { KERNEL, SIGNAL, STREAM_ORDER };

/* Median time from the call to the word that the host sees. */
static void time_words(struct rx_gpu *gpu, struct rx_gpu_device *device, enum way way)
{
	static const char *const what[] = {"a kernel writes the word", "the stream writes it",
		"host releases a waiting stream, it writes"};
	static double times[N_TIMES];
	_Atomic uint64_t *words =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t at = 0;
	void *stream = NULL;
	bool good = ops->host_register(gpu, words, 4096, &at, NULL) == RX_GPU_OK &&
		    ops->stream_open(device, true, &stream, NULL) == RX_GPU_OK;
	char text[64] = "";

	for (uint64_t i = 1; i <= N_TIMES && good; i++) {
		struct rx_dev_words args = {.first = (uint64_t *)at, .first_value = i};
		struct rx_gpu_launch launch = {RX_DEV_WORDS_NAME, &args, sizeof(args), 1, 1, 0};
		double start = now_us();

		if (way == KERNEL) {
			good = ops->launch(device, stream, &launch, NULL) == RX_GPU_OK;
		} else if (way == SIGNAL) {
			good = ops->signal(device, stream, at, i, NULL) == RX_GPU_OK;
		} else {
			good = ops->stream_wait(gpu, stream, at + 64, i, RX_GPU_WAIT_GEQ, NULL) ==
				       RX_GPU_OK &&
			       ops->stream_write(gpu, stream, at, i, NULL) == RX_GPU_OK;
			(void)usleep(20);
			start = now_us();
			words[8] = i;
		}
		good &= wait_word(words, i);
		times[i - 1] = now_us() - start;
	}
	qsort(times, N_TIMES, sizeof(times[0]), compare);
	(void)snprintf(text, sizeof(text), "p50 %.1f us", times[N_TIMES / 2]);
	say(good, what[way], text);
	ops->stream_close(device, stream);
	(void)ops->host_unregister(gpu, words, NULL);
}

static void owner_dies(struct rx_gpu_device *device, int sock, pid_t pid)
{
	static struct answer answer;
	int fds[4];
	struct rx_gpu_map *map = NULL;
	struct rx_gpu_sample sample;
	struct rx_gpu_stats stats;
	uint32_t verdict = 0;
	char text[64];
	int r = RX_GPU_OK;

	if (!ask(sock, PLAIN, &answer, fds) || answer.result != RX_GPU_OK) {
		say(false, "memory for an owner that dies", answer.error.text);
		return;
	}
	map = share(device, &answer, fds, PLAIN);
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	sample = sample_of(&answer.exports[0].memory);
	r = ops->prove(map, &sample, answer.rows[0], RX_GPU_PROVE_STABLE, &verdict, &answer.error);
	(void)snprintf(text, sizeof(text), "result %d, verdict %u", r, verdict);
	say(r == RX_GPU_OK && verdict == RX_GPU_PROVEN, "still there after kill -9 of the owner",
		text);
	ops->owner_gone(device, 1);
	ops->map_release(map);
	for (int i = 0; i < 1000 && ops->device_reap(device) > 0; i++)
		(void)usleep(1000);
	ops->device_stats(device, &stats);
	(void)snprintf(text, sizeof(text), "%u mappings, %u in quarantine", stats.n_maps,
		stats.n_quarantined);
	say(stats.n_maps == 0 && stats.n_quarantined == 0, "nothing stays mapped", text);
}

int main(int argc, char **argv)
{
	struct rx_gpu_config mine;
	struct rx_gpu *gpu = NULL;
	struct rx_gpu_device *device = NULL;
	struct rx_gpu_device_info info = {0};
	struct rx_gpu_error error = {0};
	int pair[2];
	pid_t pid = 0;
	void *plugin = argc == 3 ? dlopen(argv[1], RTLD_NOW) : NULL;
	char text[200];
	double start = 0;

	if (!plugin || !(ops = dlsym(plugin, RX_BACKEND_SYMBOL))) {
		(void)fprintf(
			stderr, "usage: backend PLUGIN CODE: %s\n", argc == 3 ? dlerror() : "");
		return 2;
	}
	code = argv[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) != 0)
		return 2;
	pid = fork();
	if (pid == 0) {
		(void)close(pair[0]);
		own(pair[1]);
	}
	(void)close(pair[1]);
	mine = config(false);
	start = now_us();
	if (ops->open(&mine, &gpu, &error) != RX_GPU_OK ||
		ops->device_open(gpu, 0, &device, &error) != RX_GPU_OK) {
		(void)printf("BAD  %s\n", error.text);
		return 1;
	}
	(void)ops->device_info(gpu, 0, &info, NULL);
	(void)snprintf(text, sizeof(text), "%s, %s, caps %#x, %.0f ms", info.name, info.arch,
		info.caps, (now_us() - start) / 1e3);
	say(info.caps == 0x1f, "device", text);
	for (uint32_t wish = 0; wish < N_WISHES; wish++)
		try_wish(device, pair[0], (enum wish)wish);
	for (uint32_t i = 0; i < 5; i++)
		try_wish(device, pair[0], PLAIN_AGAIN);
	time_words(gpu, device, KERNEL);
	time_words(gpu, device, SIGNAL);
	time_words(gpu, device, STREAM_ORDER);
	owner_dies(device, pair[0], pid);
	start = now_us();
	while (ops->device_close(device) == RX_GPU_BUSY && now_us() - start < 2e6)
		(void)usleep(1000);
	ops->close(gpu);
	(void)printf("%s\n", n_bad ? "something is wrong" : "all is well");
	return n_bad != 0;
}
