/* SPDX-License-Identifier: MIT */
/* What the files of the plugin share: the objects behind rx_backend.h, and their functions. */
#ifndef RX_GPU_IMPL_H
#define RX_GPU_IMPL_H

#include "gpu_error.h"
#include "../../shm/rx_list.h"

#include <pthread.h>
#include <stdatomic.h>

#define GPU_MAX_DEVICES 64u
#define GPU_MAX_STREAMS 256u

/* A device as the runtime shows it; not opened. */
struct gpu_seen {
	struct rx_gpu_device_info info; /* all but caps */
	_Atomic uint32_t caps;
};

struct rx_gpu {
	struct gpu_sym sym;
	int version; /* the runtime's, in its own encoding */
	uint32_t n_devices;
	struct gpu_seen *devices;
	_Atomic uint32_t n_open;
	char *code_file;
	uint64_t scratch_bytes;
	uint32_t max_maps;
	bool is_client;
	/* CUDA: a context for threads that have none; made when it is first needed. */
	pthread_mutex_t primary_lock;
	void *primary;
	int primary_device;
};

/* ---- devices ---- */

/* Rows of the mapping in question, and beside them those of others. */
#define GPU_PROOF_BYTES (2u * RX_GPU_SAMPLE_BYTES)

struct gpu_stream {
	struct rx_list link;
	void *native;
	bool closing; /* destroyed when its work is done */
};

struct gpu_function {
	const char *name;
	void *native;
};

struct gpu_code {
	const void *image;
	void *owned; /* to be freed, or NULL */
};

/* First fit in one piece of device memory. */
struct gpu_scratch {
	uint64_t base; /* 0: not made yet */
	uint64_t bytes;
	struct gpu_block {
		uint64_t offset;
		uint64_t bytes;
	} * blocks; /* in use, by offset */
	uint32_t n;
	uint32_t room;
};

/* One thread at a time. */
struct rx_gpu_device {
	struct rx_gpu *gpu;
	uint32_t index;
	void *context; /* CUDA */
	void *module;
	struct gpu_code code;
	struct rx_gpu_error no_code; /* why there is no module */
	struct gpu_function *functions;
	uint32_t n_functions;
	struct rx_gpu_error lost; /* result RX_GPU_OK: it is not */
	struct rx_list streams;
	uint32_t n_streams;
	struct gpu_stream *proof; /* stream of our own, not in the list */
	uint8_t *proof_rows;      /* registered memory, GPU_PROOF_BYTES */
	uint64_t proof_address;   /* the same for the device */
	struct gpu_scratch scratch;
	struct rx_list maps;        /* in use, or in the cache */
	struct rx_list quarantined; /* unmapped as soon as the device is idle */
	struct rx_gpu_stats stats;
};

struct gpu_piece {
	struct rx_gpu_export export;
	uint64_t at; /* where this device sees it */
	uint8_t verdict;
	uint8_t why;
};

struct rx_gpu_map {
	struct rx_list link;
	struct rx_gpu_device *device;
	uint64_t owner;
	uint64_t address;
	uint64_t bytes;
	bool reserved; /* a range of addresses with pieces in it, not a handle's */
	bool alive;    /* false: the owner freed it, or we make room */
	uint32_t n_refs;
	uint32_t n_pieces;
	uint32_t n_mapped; /* pieces that are mapped */
	struct gpu_piece pieces[];
};

/* ---- the current device of a thread ---- */

struct gpu_scope {
	bool entered;
	int before;
};

/** gpu_enter() - make @device current; gpu_leave() puts back what was */
RX_WARN_UNUSED int gpu_enter(
	struct rx_gpu_device *device, struct gpu_scope *scope, struct rx_gpu_error *error);
/** gpu_enter_any() - any device will do: for calls that need a context only to be there */
RX_WARN_UNUSED int gpu_enter_any(
	struct rx_gpu *gpu, struct gpu_scope *scope, struct rx_gpu_error *error);
/** gpu_enter_pointer() - the context that @address was allocated in */
RX_WARN_UNUSED int gpu_enter_pointer(
	struct rx_gpu *gpu, uint64_t address, struct gpu_scope *scope, struct rx_gpu_error *error);
void gpu_leave(struct rx_gpu *gpu, struct gpu_scope *scope);

/* ---- small differences between the runtimes, for the current device ---- */

int gpu_copy(const struct gpu_sym *sym, void *stream, uint64_t to, uint64_t from, uint64_t bytes);
/** gpu_copy_rows() - @to_device: from packed host memory into rows, or the other way */
int gpu_copy_rows(const struct gpu_sym *sym, void *stream, const struct rx_gpu_sample *sample,
	uint64_t base, void *rows, bool to_device);
/** gpu_stream_device() - whose @stream is */
int gpu_stream_device(struct rx_gpu *gpu, void *stream, int *device_p);
int gpu_wait64(
	const struct gpu_sym *sym, void *stream, uint64_t address, uint64_t value, int compare);
int gpu_vmm_import(const struct rx_gpu *gpu, int fd, uint64_t *handle_p);
void gpu_arch(const struct gpu_sym *sym, int device, char *arch, size_t bytes);
/** gpu_enable_peers() - let an opened device and all others that are in use reach each other */
void gpu_enable_peers(struct rx_gpu_device *device);
int gpu_alloc_words(const struct gpu_sym *sym, uint64_t *address_p, uint64_t bytes);
/** gpu_is_device_type() - the value of GPU_POINTER_TYPE that means device memory */
bool gpu_is_device_type(const struct rx_gpu *gpu, int type);

/* ---- by file ---- */

/* gpu_absent.c: why is there no device? */
int gpu_explain_absence(const char *dev_dir, int native, struct rx_gpu_error *error);

/* gpu_code.c */
RX_WARN_UNUSED int gpu_code_find(const struct rx_gpu *gpu, const char *arch,
	struct gpu_code *code_p, struct rx_gpu_error *error);

/* gpu_open.c */
int gpu_open(const struct rx_gpu_config *config, struct rx_gpu **gpu_p, struct rx_gpu_error *error);
void gpu_close(struct rx_gpu *gpu);
uint32_t gpu_device_count(const struct rx_gpu *gpu);
int gpu_device_info(const struct rx_gpu *gpu, uint32_t device, struct rx_gpu_device_info *info_p,
	struct rx_gpu_error *error);
int gpu_peer(const struct rx_gpu *gpu, uint32_t from, uint32_t to, struct rx_gpu_peer *peer_p,
	struct rx_gpu_error *error);

/* gpu_owner.c */
uint64_t gpu_identify(struct rx_gpu *gpu, uint64_t address, uint32_t kind);
int gpu_describe(struct rx_gpu *gpu, uint64_t address, struct rx_gpu_memory *memory_p,
	struct rx_gpu_error *error);
int gpu_export(struct rx_gpu *gpu, uint64_t address, uint64_t bytes, struct rx_gpu_export *exports,
	int *fds, uint32_t max, uint32_t *n_p, struct rx_gpu_error *error);
int gpu_sample(struct rx_gpu *gpu, uint64_t base, const struct rx_gpu_sample *sample, void *stream,
	void *rows, struct rx_gpu_error *error);
int gpu_sample_fill(struct rx_gpu *gpu, uint64_t base, const struct rx_gpu_sample *sample,
	struct rx_gpu_error *error);
int gpu_host_register(struct rx_gpu *gpu, void *memory, uint64_t bytes, uint64_t *address_p,
	struct rx_gpu_error *error);
int gpu_host_unregister(struct rx_gpu *gpu, void *memory, struct rx_gpu_error *error);
int gpu_stream_write(struct rx_gpu *gpu, void *stream, uint64_t address, uint64_t value,
	struct rx_gpu_error *error);
int gpu_stream_wait(struct rx_gpu *gpu, void *stream, uint64_t address, uint64_t value,
	uint32_t wait, struct rx_gpu_error *error);
int gpu_device_of_stream(
	struct rx_gpu *gpu, void *stream, uint32_t *device_p, struct rx_gpu_error *error);
void gpu_capture_mode(struct rx_gpu *gpu, int *mode);
int gpu_capture(struct rx_gpu *gpu, void *stream, uint32_t *capture_p, uint64_t *id_p,
	struct rx_gpu_error *error);

/* gpu_device.c */
int gpu_device_open(struct rx_gpu *gpu, uint32_t index, struct rx_gpu_device **device_p,
	struct rx_gpu_error *error);
int gpu_device_close(struct rx_gpu_device *device);
int gpu_device_state(const struct rx_gpu_device *device, struct rx_gpu_error *error);
void gpu_device_stats(const struct rx_gpu_device *device, struct rx_gpu_stats *stats_p);
void gpu_count_copied(struct rx_gpu_device *device, uint32_t why);
/**
 * gpu_device_check() - gpu_check(), and keep in mind when the device is lost
 *
 * A device that is lost answers every call with the error that lost it.
 */
RX_WARN_UNUSED int gpu_device_check(
	struct rx_gpu_device *device, int native, const char *what, struct rx_gpu_error *error);

/* gpu_run.c */
int gpu_stream_open(
	struct rx_gpu_device *device, bool urgent, void **stream_p, struct rx_gpu_error *error);
void gpu_stream_close(struct rx_gpu_device *device, void *stream);
int gpu_stream_query(struct rx_gpu_device *device, void *stream, struct rx_gpu_error *error);
int gpu_run_copy(struct rx_gpu_device *device, void *stream, uint64_t to, uint64_t from,
	uint64_t bytes, struct rx_gpu_error *error);
int gpu_launch(struct rx_gpu_device *device, void *stream, const struct rx_gpu_launch *launch,
	struct rx_gpu_error *error);
int gpu_signal(struct rx_gpu_device *device, void *stream, uint64_t address, uint64_t value,
	struct rx_gpu_error *error);
RX_WARN_UNUSED int gpu_stream_new(struct rx_gpu_device *device, bool urgent,
	struct gpu_stream **stream_p, struct rx_gpu_error *error);
void gpu_stream_free(struct rx_gpu_device *device, struct gpu_stream *stream);
/** gpu_streams_idle() - has the device nothing to do? Frees streams that were closed and are done.
 */
bool gpu_streams_idle(struct rx_gpu_device *device);

/* gpu_memory.c */
int gpu_alloc_shared(struct rx_gpu_device *device, uint64_t bytes, uint64_t *address_p,
	struct rx_gpu_error *error);
int gpu_alloc(struct rx_gpu_device *device, uint64_t bytes, uint64_t *address_p,
	struct rx_gpu_error *error);
void gpu_free(struct rx_gpu_device *device, uint64_t address);
int gpu_clear(
	struct rx_gpu_device *device, uint64_t address, uint64_t bytes, struct rx_gpu_error *error);
int gpu_scratch_get(struct rx_gpu_device *device, uint64_t bytes, uint64_t *address_p,
	struct rx_gpu_error *error);
void gpu_scratch_put(struct rx_gpu_device *device, uint64_t address);

/* gpu_map.c */
int gpu_import(struct rx_gpu_device *device, uint64_t owner, const struct rx_gpu_export *exports,
	const int *fds, uint32_t n, struct rx_gpu_map **map_p, struct rx_gpu_error *error);
int gpu_map_address(struct rx_gpu_map *map, uint64_t offset, uint64_t bytes, uint64_t *address_p,
	struct rx_gpu_error *error);
void gpu_map_info(const struct rx_gpu_map *map, struct rx_gpu_map_info *info_p);
void gpu_map_release(struct rx_gpu_map *map);
void gpu_owner_freed(struct rx_gpu_device *device, uint64_t owner, uint64_t base);
void gpu_owner_gone(struct rx_gpu_device *device, uint64_t owner);

uint32_t gpu_device_reap(struct rx_gpu_device *device);
/** gpu_same_piece() - do two exports name the same allocation of one process? */
bool gpu_same_piece(const struct rx_gpu_export *a, const struct rx_gpu_export *b);
/** gpu_maps_free() - forget all mappings; @unmap: and give them back, the device is idle */
void gpu_maps_free(struct rx_gpu_device *device, bool unmap);

/* gpu_map_new.c */
/** gpu_map_new() - map @n pieces, which were checked */
RX_WARN_UNUSED int gpu_map_new(struct rx_gpu_device *device, uint64_t owner,
	const struct rx_gpu_export *exports, const int *fds, uint32_t n, struct rx_gpu_map **map_p,
	struct rx_gpu_error *error);
/** gpu_unmap() - give back @map's addresses, now, in the current device; @map is freed */
void gpu_unmap(struct rx_gpu_map *map);

/* gpu_prove.c */
int gpu_prove(struct rx_gpu_map *map, const struct rx_gpu_sample *sample, const void *rows,
	uint32_t flags, uint32_t *verdict_p, struct rx_gpu_error *error);

#endif
