/* SPDX-License-Identifier: MIT */
#include "fake.h"

#include "../../kernels/device/device_abi.h"
#include "../../kernels/host/reduce.h"
#include "../../kernels/rx_backend.h"
#include "../../shm/rx_list.h"

#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define DEVICES_MAX 8u
#define HOST_BIT    (1ull << 62) /* of registered host memory as devices see it */

/* ---- memory ---- */

struct block {
	struct rx_list link;
	uint64_t address; /* nobody can touch it */
	uint8_t *alias;   /* the same memory, for us */
	uint64_t bytes;
	uint64_t id;
	uint32_t device;
	int fd;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rx_list blocks = {&blocks, &blocks};
static uint64_t last_id;

static struct block *map_block(int fd, uint64_t bytes)
{
	struct block *block = calloc(1, sizeof(*block));
	void *alias = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	void *address = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (!block || alias == MAP_FAILED || address == MAP_FAILED)
		abort();
	block->alias = alias;
	block->address = (uintptr_t)address;
	block->bytes = bytes;
	block->fd = fd;
	pthread_mutex_lock(&lock);
	block->id = ++last_id;
	rx_list_push(&blocks, &block->link);
	pthread_mutex_unlock(&lock);
	return block;
}

static void unmap_block(struct block *block)
{
	pthread_mutex_lock(&lock);
	rx_list_unlink(&block->link);
	pthread_mutex_unlock(&lock);
	(void)munmap(block->alias, block->bytes);
	(void)munmap((void *)(uintptr_t)block->address, block->bytes);
	(void)close(block->fd);
	free(block);
}

static struct block *find_block(uint64_t address)
{
	struct block *found = NULL;

	pthread_mutex_lock(&lock);
	rx_list_for_each (pos, &blocks) {
		struct block *block = rx_list_entry(pos, struct block, link);

		if (address >= block->address && address - block->address < block->bytes)
			found = block;
	}
	pthread_mutex_unlock(&lock);
	return found;
}

/* Where we reach what a device calls @address. */
static uint8_t *reach(uint64_t address)
{
	struct block *block = find_block(address);

	if (block)
		return block->alias + (address - block->address);
	return (uint8_t *)(uintptr_t)(address & ~HOST_BIT);
}

static uint64_t fake_alloc(uint32_t device, uint64_t bytes)
{
	uint64_t whole = rx_align_up(bytes, 4096);
	int fd = memfd_create("fake-gpu", MFD_CLOEXEC);
	struct block *block = NULL;

	if (fd < 0 || ftruncate(fd, (off_t)whole) != 0)
		return 0;
	block = map_block(fd, whole);
	block->device = device;
	return block->address;
}

static void fake_free(uint64_t address)
{
	unmap_block(find_block(address));
}

static void fake_write(uint64_t to, const void *from, uint64_t bytes)
{
	memcpy(reach(to), from, bytes);
}

static void fake_read(void *to, uint64_t from, uint64_t bytes)
{
	memcpy(to, reach(from), bytes);
}

/* ---- the backend ---- */

struct rx_gpu {
	uint32_t n_devices;
};

struct rx_gpu_device {
	uint32_t index;
	bool lost;
	struct rx_gpu_stats stats;
};

struct rx_gpu_map {
	struct rx_gpu_device *device;
	struct block *block;
	uint64_t owner;
	uint64_t base;
	uint32_t verdict;
	uint32_t why;
	bool alive;
};

static bool fault(const char *name)
{
	const char *wanted = getenv("RCCLX_FAKE_FAULT");

	return wanted && strcmp(wanted, name) == 0;
}

static int say(struct rx_gpu_error *error, int result, const char *text)
{
	if (error) {
		error->result = (uint32_t)result;
		(void)snprintf(error->text, sizeof(error->text), "%s", text);
	}
	return result;
}

static int fake_open(
	const struct rx_gpu_config *config, struct rx_gpu **gpu_p, struct rx_gpu_error *error)
{
	const char *n = getenv("RCCLX_FAKE_DEVICES");
	struct rx_gpu *gpu = calloc(1, sizeof(*gpu));

	if (config->size != sizeof(*config) || !gpu)
		abort();
	gpu->n_devices = n ? (uint32_t)strtoul(n, NULL, 10) : DEVICES_MAX;
	if (gpu->n_devices == 0) {
		free(gpu);
		return say(error, RX_GPU_E_ABSENT, "RCCLX_FAKE_DEVICES is 0");
	}
	*gpu_p = gpu;
	return 0;
}

static void fake_close(struct rx_gpu *gpu)
{
	free(gpu);
}

static uint32_t device_count(const struct rx_gpu *gpu)
{
	return gpu->n_devices;
}

static int device_info(const struct rx_gpu *gpu, uint32_t device, struct rx_gpu_device_info *info_p,
	struct rx_gpu_error *error)
{
	(void)gpu;
	(void)error;
	*info_p = (struct rx_gpu_device_info){
		.arch = "fake1",
		.memory_bytes = 1ull << 30,
		.n_units = 2,
		.warp = 4,
		.caps = RX_GPU_CAP_IPC | RX_GPU_CAP_FD | RX_GPU_CAP_HOST,
	};
	(void)snprintf(info_p->name, sizeof(info_p->name), "Fake GPU %u", device);
	(void)snprintf(info_p->pci, sizeof(info_p->pci), "0000:%02x:00.0", device);
	memset(info_p->uuid, (int)(0x40 + device), sizeof(info_p->uuid));
	return 0;
}

static int peer(const struct rx_gpu *gpu, uint32_t from, uint32_t to, struct rx_gpu_peer *peer_p,
	struct rx_gpu_error *error)
{
	(void)gpu;
	(void)error;
	/* The last one is alone, if there are three. */
	*peer_p = (struct rx_gpu_peer){
		.access = gpu->n_devices != 3 || (from != 2 && to != 2), .hops = 1};
	return 0;
}

/* ---- the owner's side ---- */

static uint32_t kind_of(const struct block *block)
{
	return block->device % 2 ? RX_GPU_MEM_PLAIN : RX_GPU_MEM_VIRTUAL;
}

static int describe(struct rx_gpu *gpu, uint64_t address, struct rx_gpu_memory *memory_p,
	struct rx_gpu_error *error)
{
	const struct block *block = find_block(address);

	(void)gpu;
	(void)error;
	*memory_p = (struct rx_gpu_memory){.kind = RX_GPU_MEM_HOST};
	if (block) {
		*memory_p = (struct rx_gpu_memory){
			.base = block->address,
			.bytes = block->bytes,
			.id = block->id,
			.kind = kind_of(block),
			.device = block->device,
		};
		memset(memory_p->uuid, (int)(0x40 + block->device), sizeof(memory_p->uuid));
	}
	return 0;
}

/* A handle names the process and its descriptor. */
static int export_memory(struct rx_gpu *gpu, uint64_t address, uint64_t bytes,
	struct rx_gpu_export *exports, int *fds, uint32_t max, uint32_t *n_p,
	struct rx_gpu_error *error)
{
	const struct block *block = find_block(address);
	struct rx_gpu_export export = {0};

	(void)max;
	if (!block || !rx_range_ok(address - block->address, bytes, block->bytes))
		return say(error, RX_GPU_E_INVALID, "not one allocation");
	(void)describe(gpu, address, &export.memory, error);
	fds[0] = -1;
	if (kind_of(block) == RX_GPU_MEM_VIRTUAL)
		fds[0] = fcntl(block->fd, F_DUPFD_CLOEXEC, 0);
	else
		(void)snprintf((char *)export.handle, sizeof(export.handle), "/proc/%d/fd/%d",
			(int)getpid(), block->fd);
	exports[0] = export;
	*n_p = 1;
	return 0;
}

static void read_rows(const uint8_t *memory, const struct rx_gpu_sample *sample, uint8_t *rows)
{
	uint64_t first = 0, pitch = 0, width = 0;
	uint32_t n = rx_gpu_sample_rows(sample, &first, &pitch, &width);

	for (uint32_t i = 0; i < n; i++)
		memcpy(rows + i * width, memory + first + i * pitch, width);
}

static int sample(struct rx_gpu *gpu, uint64_t base, const struct rx_gpu_sample *what, void *stream,
	void *rows, struct rx_gpu_error *error)
{
	(void)gpu;
	(void)stream;
	(void)error;
	read_rows(reach(base), what, rows);
	return 0;
}

static int host_register(struct rx_gpu *gpu, void *memory, uint64_t bytes, uint64_t *address_p,
	struct rx_gpu_error *error)
{
	(void)gpu;
	if ((uintptr_t)memory % 4096 != 0 || bytes % 4096 != 0)
		return say(error, RX_GPU_E_INVALID, "not whole pages");
	*address_p = (uintptr_t)memory | HOST_BIT;
	return 0;
}

static int host_unregister(struct rx_gpu *gpu, void *memory, struct rx_gpu_error *error)
{
	(void)gpu;
	(void)memory;
	(void)error;
	return 0;
}

/* ---- devices ---- */

static int device_open(struct rx_gpu *gpu, uint32_t index, struct rx_gpu_device **device_p,
	struct rx_gpu_error *error)
{
	struct rx_gpu_device *device = NULL;

	(void)gpu;
	if (index == 1 && fault("open"))
		return say(error, RX_GPU_E_UNSUPPORTED, "no code for this fake device");
	device = calloc(1, sizeof(*device));
	if (!device)
		abort();
	device->index = index;
	*device_p = device;
	return 0;
}

static int device_close(struct rx_gpu_device *device)
{
	free(device);
	return 0;
}

static int device_state(const struct rx_gpu_device *device, struct rx_gpu_error *error)
{
	return device->lost ? say(error, RX_GPU_E_DEVICE, "the fake device fell off its bus") : 0;
}

static void device_stats(const struct rx_gpu_device *device, struct rx_gpu_stats *stats_p)
{
	*stats_p = device->stats;
}

static uint32_t device_reap(struct rx_gpu_device *device)
{
	(void)device;
	return 0;
}

static int open_export(const struct rx_gpu_export *export, int fd)
{
	if (fault("import"))
		return -1;
	if (fault("wrong")) {
		int other = memfd_create("fake-wrong", MFD_CLOEXEC);
		uint8_t noise[64];

		memset(noise, 0x5a, sizeof(noise));
		if (ftruncate(other, (off_t) export->memory.bytes) != 0 ||
			write(other, noise, sizeof(noise)) < 0)
			abort();
		return other;
	}
	return fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 0)
		       : open((const char *)export->handle, O_RDWR | O_CLOEXEC);
}

static int import(struct rx_gpu_device *device, uint64_t owner, const struct rx_gpu_export *exports,
	const int *fds, uint32_t n, struct rx_gpu_map **map_p, struct rx_gpu_error *error)
{
	struct rx_gpu_map *map = NULL;
	int fd = n == 1 ? open_export(&exports[0], fds[0]) : -1;

	if (fd < 0)
		return say(error, RX_GPU_E_FAILED, "the fake runtime refused to import");
	map = calloc(1, sizeof(*map));
	if (!map)
		abort();
	map->device = device;
	map->block = map_block(fd, exports[0].memory.bytes);
	map->owner = owner;
	map->base = exports[0].memory.base;
	map->alive = true;
	device->stats.n_imports++;
	device->stats.n_maps++;
	device->stats.mapped_bytes += map->block->bytes;
	*map_p = map;
	return 0;
}

static bool is_plain(const uint8_t *rows, uint64_t bytes)
{
	for (uint64_t i = 1; i < bytes; i++)
		if (rows[i] != rows[0])
			return false;
	return true;
}

static int prove(struct rx_gpu_map *map, const struct rx_gpu_sample *what, const void *rows,
	uint32_t flags, uint32_t *verdict_p, struct rx_gpu_error *error)
{
	static const uint8_t empty[RX_GPU_SAMPLE_BYTES];
	uint8_t own[RX_GPU_SAMPLE_BYTES];

	(void)error;
	assert(flags == RX_GPU_PROVE_STABLE);
	memcpy(own, empty, sizeof(own));
	read_rows(map->block->alias, what, own);
	map->verdict = RX_GPU_OPEN;
	map->why = RX_GPU_WHY_CONSTANT;
	if (memcmp(own, rows, sizeof(own)) != 0) {
		map->verdict = RX_GPU_WRONG;
		map->why = RX_GPU_WHY_WRONG;
	} else if (!is_plain(own, rx_min_u64(what->bytes, sizeof(own)))) {
		map->verdict = RX_GPU_PROVEN;
		map->device->stats.n_proofs++;
	}
	*verdict_p = map->verdict;
	return 0;
}

static int map_address(struct rx_gpu_map *map, uint64_t offset, uint64_t bytes, uint64_t *address_p,
	struct rx_gpu_error *error)
{
	if (!map->alive)
		return say(error, RX_GPU_E_GONE, "the owner freed the memory");
	if (map->verdict != RX_GPU_PROVEN)
		return say(error, RX_GPU_E_UNPROVEN, "not proven");
	if (!rx_range_ok(offset, bytes, map->block->bytes))
		return say(error, RX_GPU_E_INVALID, "out of range");
	*address_p = map->block->address + offset;
	return 0;
}

static void map_info(const struct rx_gpu_map *map, struct rx_gpu_map_info *info_p)
{
	*info_p = (struct rx_gpu_map_info){
		.address = map->block->address,
		.bytes = map->block->bytes,
		.base = map->base,
		.owner = map->owner,
		.verdict = map->verdict,
		.why = map->why,
		.n_refs = 1,
		.alive = map->alive,
	};
}

static void map_release(struct rx_gpu_map *map)
{
	map->device->stats.n_maps--;
	map->device->stats.mapped_bytes -= map->block->bytes;
	unmap_block(map->block);
	free(map);
}

/* There is no cache: each mapping belongs to whoever imported it. */
static void owner_freed(struct rx_gpu_device *device, uint64_t owner, uint64_t base)
{
	(void)device;
	(void)owner;
	(void)base;
}

static void owner_gone(struct rx_gpu_device *device, uint64_t owner)
{
	(void)device;
	(void)owner;
}

static void count_copied(struct rx_gpu_device *device, uint32_t why)
{
	device->stats.n_copied[why]++;
}

/* ---- streams: a thread each ---- */

struct task {
	struct rx_list link;
	bool kernel;
	struct rx_dev_args args;
	uint64_t to; /* copies; signals have bytes 0 */
	uint64_t from;
	uint64_t bytes;
	uint64_t value;
};

struct stream {
	pthread_t thread;
	pthread_cond_t wanted;
	struct rx_list tasks;
	uint32_t n_tasks;
	bool stopping;
};

static void nap(uint64_t ms)
{
	(void)nanosleep(&(struct timespec){.tv_sec = (time_t)(ms / 1000),
				.tv_nsec = (long)(ms % 1000 * 1000000)},
		NULL);
}

static void fold(const struct rx_dev_args *a, uint64_t first, uint64_t count, void *const *out,
	uint32_t n_out)
{
	const void *src[RX_DEV_MAX_RANKS];
	struct rx_reduce_args reduce = {
		.src = src,
		.n_src = a->n_ranks,
		.dst = out,
		.n_dst = n_out,
		.count = count,
		.dtype = a->dtype,
		.op = a->op,
		.n_avg = a->n_avg,
		.scalars = a->op == RX_PREMUL_SUM ? a->scalar : NULL,
	};

	for (uint32_t rank = 0; rank < a->n_ranks; rank++)
		src[rank] = reach((uintptr_t)a->send[rank]) + first * a->elem_bytes;
	if (count > 0)
		rx_reduce(&reduce);
}

static const struct rx_dev_block *block_of(const struct rx_dev_args *a, uint32_t from, uint32_t to)
{
	const struct rx_dev_block *table = (const void *)reach((uintptr_t)a->blocks);

	return &table[from * a->n_ranks + to];
}

static void reduce_for(const struct rx_dev_args *a, uint32_t rank)
{
	void *out[RX_DEV_MAX_RANKS];
	uint64_t first = a->count * rank / a->n_ranks;
	uint64_t count = a->count * (rank + 1) / a->n_ranks - first;
	uint32_t n = 0;

	out[0] = reach((uintptr_t)a->recv[rank]);
	if (a->coll == RX_REDUCE_SCATTER) {
		fold(a, rank * a->count, a->count, out, 1);
		return;
	}
	if (a->coll == RX_REDUCE_SCATTER_V) {
		fold(a, block_of(a, 0, rank)->send_at, block_of(a, 0, rank)->count, out, 1);
		return;
	}
	for (uint32_t to = 0; to < a->n_ranks; to++)
		if (a->coll == RX_ALL_REDUCE || to == a->root)
			out[n++] = reach((uintptr_t)a->recv[to]) + first * a->elem_bytes;
	fold(a, first, count, out, n);
}

static void copy_block(const struct rx_dev_args *a, uint32_t from, uint64_t send_block, uint32_t to,
	uint64_t recv_block)
{
	uint64_t bytes = a->count * a->elem_bytes;

	if (bytes > 0)
		memmove(reach((uintptr_t)a->recv[to]) + recv_block * bytes,
			reach((uintptr_t)a->send[from]) + send_block * bytes, bytes);
}

static void copy_variable(const struct rx_dev_args *a, uint32_t from, uint32_t to)
{
	const struct rx_dev_block *block = block_of(a, from, to);
	uint64_t bytes = block->count * a->elem_bytes;

	if (bytes > 0)
		memmove(reach((uintptr_t)a->recv[to]) + block->recv_at * a->elem_bytes,
			reach((uintptr_t)a->send[from]) + block->send_at * a->elem_bytes, bytes);
}

static void copy_for(const struct rx_dev_args *a, uint32_t rank)
{
	for (uint32_t from = 0; from < a->n_ranks; from++) {
		if (a->blocks)
			copy_variable(a, from, rank);
		else if (a->coll == RX_ALL_GATHER || (a->coll == RX_GATHER && rank == a->root))
			copy_block(a, from, 0, rank, from);
		else if (a->coll == RX_ALL_TO_ALL)
			copy_block(a, from, rank, rank, from);
		else if (a->coll == RX_BROADCAST && from == a->root)
			copy_block(a, from, 0, rank, 0);
		else if (a->coll == RX_SCATTER && from == a->root)
			copy_block(a, from, rank, rank, 0);
		else if (a->coll == RX_SEND && from == a->root && rank == a->peer)
			copy_block(a, from, 0, rank, 0);
	}
}

static void run_kernel(const struct rx_dev_args *a)
{
	while (fault("stuck"))
		nap(10);
	if (fault("slow"))
		nap(300);
	if (fault("status")) {
		*(uint32_t *)(void *)reach((uintptr_t)a->status) = RX_DEV_E_ARGS;
		return;
	}
	for (uint32_t rank = 0; rank < a->n_ranks; rank++) {
		if (!(a->local >> rank & 1))
			continue;
		if (rx_coll_reduces(a->coll))
			reduce_for(a, rank);
		else
			copy_for(a, rank);
	}
}

static void run_task(const struct task *task)
{
	if (task->kernel)
		run_kernel(&task->args);
	else if (task->bytes > 0)
		memcpy(reach(task->to), reach(task->from), task->bytes);
	else
		atomic_store_explicit((_Atomic uint64_t *)(void *)reach(task->to), task->value,
			memory_order_release);
}

static void *run_stream(void *arg)
{
	struct stream *stream = arg;

	pthread_mutex_lock(&lock);
	for (;;) {
		struct task *task = NULL;

		if (rx_list_empty(&stream->tasks)) {
			if (stream->stopping)
				break;
			pthread_cond_wait(&stream->wanted, &lock);
			continue;
		}
		task = rx_list_entry(stream->tasks.next, struct task, link);
		rx_list_unlink(&task->link);
		pthread_mutex_unlock(&lock);
		run_task(task);
		free(task);
		pthread_mutex_lock(&lock);
		stream->n_tasks--;
	}
	pthread_mutex_unlock(&lock);
	return NULL;
}

static int stream_open(
	struct rx_gpu_device *device, bool urgent, void **stream_p, struct rx_gpu_error *error)
{
	struct stream *stream = calloc(1, sizeof(*stream));

	(void)device;
	(void)urgent;
	(void)error;
	if (!stream)
		abort();
	rx_list_init(&stream->tasks);
	(void)pthread_cond_init(&stream->wanted, NULL);
	if (pthread_create(&stream->thread, NULL, run_stream, stream) != 0)
		abort();
	*stream_p = stream;
	return 0;
}

static void stream_close(struct rx_gpu_device *device, void *handle)
{
	struct stream *stream = handle;
	bool busy = false;

	(void)device;
	pthread_mutex_lock(&lock);
	stream->stopping = true;
	busy = stream->n_tasks > 0;
	pthread_cond_signal(&stream->wanted);
	pthread_mutex_unlock(&lock);
	/* Stuck for ever: left to the end of the process. */
	if (busy)
		return;
	(void)pthread_join(stream->thread, NULL);
	(void)pthread_cond_destroy(&stream->wanted);
	free(stream);
}

static int stream_query(struct rx_gpu_device *device, void *handle, struct rx_gpu_error *error)
{
	struct stream *stream = handle;
	bool busy = false;

	if (device->lost)
		return device_state(device, error);
	pthread_mutex_lock(&lock);
	busy = stream->n_tasks > 0;
	pthread_mutex_unlock(&lock);
	return busy ? RX_GPU_BUSY : RX_GPU_OK;
}

static int put(struct rx_gpu_device *device, struct stream *stream, const struct task *what)
{
	struct task *task = NULL;

	/* Nothing that it is given is ever done. */
	if (device->lost)
		return 0;
	task = malloc(sizeof(*task));
	if (!task)
		abort();
	*task = *what;
	rx_list_init(&task->link);
	pthread_mutex_lock(&lock);
	rx_list_push(&stream->tasks, &task->link);
	stream->n_tasks++;
	pthread_cond_signal(&stream->wanted);
	pthread_mutex_unlock(&lock);
	return 0;
}

static int copy(struct rx_gpu_device *device, void *stream, uint64_t to, uint64_t from,
	uint64_t bytes, struct rx_gpu_error *error)
{
	(void)error;
	return put(device, stream, &(struct task){.to = to, .from = from, .bytes = bytes});
}

static bool kernel_fits(const struct rx_gpu_launch *what, const struct rx_dev_args *args)
{
	static const char *const suffixes[RX_DTYPE_N] = {"i8", "u8", "i32", "u32", "i64", "u64",
		"f16", "f32", "f64", "bf16", "e4m3", "e5m2"};
	char name[32];

	(void)snprintf(name, sizeof(name), RX_DEV_REDUCE_PREFIX "%s", suffixes[args->dtype]);
	return strcmp(what->kernel, rx_coll_reduces(args->coll) ? name : RX_DEV_COPY_NAME) == 0;
}

static int launch(struct rx_gpu_device *device, void *stream, const struct rx_gpu_launch *what,
	struct rx_gpu_error *error)
{
	struct task task = {.kernel = true};

	if (device->index == 1 && fault("launch"))
		return say(error, RX_GPU_E_FAILED, "the fake runtime refused to launch");
	if (device->index == 1 && fault("lost"))
		device->lost = true;
	assert(what->args_bytes == sizeof(task.args));
	memcpy(&task.args, what->args, sizeof(task.args));
	if (task.args.abi != RX_DEV_ABI || task.args.algorithm != RX_DEV_DIRECT ||
		what->n_blocks == 0 || what->n_threads == 0 || !kernel_fits(what, &task.args))
		return say(error, RX_GPU_E_INVALID, "no such launch");
	device->stats.n_launches++;
	return put(device, stream, &task);
}

static int signal_word(struct rx_gpu_device *device, void *stream, uint64_t address, uint64_t value,
	struct rx_gpu_error *error)
{
	(void)error;
	return put(device, stream, &(struct task){.to = address, .value = value});
}

/* What the daemon and the library have no use for yet is not there. */
__attribute__((visibility("default"))) const struct rx_backend_v1 rcclx_backend_v1 = {
	.size = sizeof(struct rx_backend_v1),
	.abi = RX_BACKEND_ABI,
	.name = "fake",
	.open = fake_open,
	.close = fake_close,
	.device_count = device_count,
	.device_info = device_info,
	.peer = peer,
	.describe = describe,
	.export_memory = export_memory,
	.sample = sample,
	.host_register = host_register,
	.host_unregister = host_unregister,
	.device_open = device_open,
	.device_close = device_close,
	.device_state = device_state,
	.device_stats = device_stats,
	.device_reap = device_reap,
	.stream_open = stream_open,
	.stream_close = stream_close,
	.stream_query = stream_query,
	.import = import,
	.prove = prove,
	.map_address = map_address,
	.map_info = map_info,
	.map_release = map_release,
	.owner_freed = owner_freed,
	.owner_gone = owner_gone,
	.count_copied = count_copied,
	.copy = copy,
	.launch = launch,
	.signal = signal_word,
};

__attribute__((visibility("default"))) const struct fake_runtime rcclx_fake_runtime = {
	.alloc = fake_alloc,
	.free = fake_free,
	.write = fake_write,
	.read = fake_read,
};
