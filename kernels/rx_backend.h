/* SPDX-License-Identifier: MIT */
/*
 * GPU backends: what a plugin offers to the daemon, and to the library inside a client's process.
 *
 * A plugin is a shared object with one exported symbol, a constant struct rx_backend_v1. It links
 * no GPU library: it finds the runtime when open() is called, and says why where there is none.
 * Loaded once, it is never unloaded: GPU runtimes do not survive that.
 *
 * Two kinds of process use it, with the same functions:
 *
 *	the owner   a client: its own runtime, its own contexts and streams. It describes a pointer,
 *	            exports the allocation behind it, and puts writes and waits into its streams.
 *	the daemon  opens devices, imports allocations, proves the mappings, launches, completes.
 *
 * Errors: functions return enum rx_gpu_result, 0 being success. On failure they fill @error, unless
 * it is NULL, with a sentence. Out-parameters are written on success only.
 * Units: bytes, nanoseconds. Device addresses are uint64_t, streams are the runtime's own handles.
 * Threads: functions that take a struct rx_gpu_device are called by one thread at a time for that
 * device, and different devices may be used in parallel. All others are reentrant, and leave the
 * calling thread's current device as it was. Nothing may be called in a forked child.
 * Blocking: only where it is said.
 */
#ifndef RX_BACKEND_H
#define RX_BACKEND_H

#include "../shm/rx_base.h"

#define RX_BACKEND_SYMBOL "rcclx_backend_v1"
#define RX_BACKEND_ABI    1u

struct rx_gpu;        /* an opened runtime */
struct rx_gpu_device; /* an opened device */
struct rx_gpu_map;    /* an allocation of another process, mapped for one device */

enum rx_gpu_result {
	RX_GPU_OK = 0,
	RX_GPU_BUSY,          /* not finished yet; no error */
	RX_GPU_E_ABSENT,      /* no runtime, no driver, no device */
	RX_GPU_E_PERMISSION,  /* there is a device, and we may not use it */
	RX_GPU_E_UNSUPPORTED, /* this runtime, device or kind of memory cannot do it */
	RX_GPU_E_INVALID,     /* an argument makes no sense: not device memory, out of range */
	RX_GPU_E_MEMORY,      /* out of device or host memory */
	RX_GPU_E_LIMIT,       /* a bound of struct rx_gpu_config is reached */
	RX_GPU_E_GONE,        /* the allocation does not exist any more */
	RX_GPU_E_UNPROVEN,    /* the mapping is not proven: copy instead */
	RX_GPU_E_FAILED,      /* the runtime refused; the device goes on */
	RX_GPU_E_DEVICE,      /* the device is lost for this process; stays so */
	RX_GPU_RESULT_N
};

struct rx_gpu_error {
	uint32_t result; /* enum rx_gpu_result */
	int32_t native;  /* the runtime's own number, 0 when it was not asked */
	char text[248];  /* what was wrong, what was expected, what to do */
};

enum rx_gpu_config_flags {
	/* Take a runtime that this process has loaded already, or none: for clients. */
	RX_GPU_LOADED_ONLY = 1 << 0,
};

struct rx_gpu_config {
	uint32_t size;          /* of this struct, as the caller was compiled */
	uint32_t flags;         /* enum rx_gpu_config_flags */
	const char *library;    /* of the runtime; NULL: the usual names */
	const char *code_file;  /* code object for all devices; NULL: what is built in */
	const char *dev_dir;    /* where device nodes are; NULL: "/dev" */
	uint64_t scratch_bytes; /* most scratch memory per device; 0: 256 MiB */
	uint32_t max_maps;      /* most mappings per device; 0: 1024 */
	uint32_t reserved;
};

enum rx_gpu_caps {
	RX_GPU_CAP_IPC = 1 << 0,        /* plain allocations can be shared by handle */
	RX_GPU_CAP_FD = 1 << 1,         /* virtual memory can be shared by file descriptor */
	RX_GPU_CAP_STREAM_MEM = 1 << 2, /* streams can write and wait for 64-bit words */
	RX_GPU_CAP_CAPTURE_MEM = 1
				 << 3, /* and record that in graphs, instead of doing it at once */
	RX_GPU_CAP_HOST = 1 << 4,      /* host memory can be registered */
	/* Kernels of several processes run at the same time, instead of taking turns. */
	RX_GPU_CAP_CONCURRENT = 1 << 5,
};

struct rx_gpu_device_info {
	char name[64];         /* "AMD Instinct MI300X" */
	char arch[32];         /* of the code that runs on it: "gfx942", "sm_90" */
	char pci[16];          /* "0000:c1:00.0" */
	uint8_t uuid[16];      /* the same in every process, whatever devices that one sees */
	uint64_t memory_bytes; /* all of it */
	uint32_t n_units;      /* compute units, multiprocessors */
	uint32_t warp;         /* threads that run in step */
	uint32_t clock_khz;    /* of the clock that kernels measure deadlines with */
	uint32_t caps;         /* enum rx_gpu_caps; CAPTURE_MEM is known after device_open() only */
};

struct rx_gpu_peer {
	uint8_t access;  /* 1: one may load and store in the other's memory */
	uint8_t atomics; /* 1: and its atomic operations work there */
	uint8_t hops;    /* links on the way, 0 when unknown or the same device */
	uint8_t reserved;
};

/* ---- memory ---- */

enum rx_gpu_memory_kind {
	RX_GPU_MEM_HOST = 0, /* not the device's: pageable or registered host memory */
	RX_GPU_MEM_PLAIN,    /* an allocation that has a handle */
	RX_GPU_MEM_VIRTUAL,  /* physical memory mapped into a reserved range, shared by fd */
	RX_GPU_MEM_MANAGED,  /* migrates between host and devices: is copied, never shared */
	RX_GPU_MEM_POOL,     /* of a stream-ordered pool: is copied, never shared */
	RX_GPU_MEM_N
};

/*
 * What a pointer is part of. (base, bytes, id) is the allocation's identity within its process: an
 * allocation that was freed and made again at the same address has another id where the runtime
 * numbers them (id is 0 where it does not: then the owner must report that it frees).
 */
struct rx_gpu_memory {
	uint64_t base;    /* first byte of the allocation, in the owner's addresses */
	uint64_t bytes;   /* of the allocation; virtual memory: of the piece mapped at once */
	uint64_t id;      /* number of the allocation, 0: unknown */
	uint8_t uuid[16]; /* of its device */
	uint32_t kind;    /* enum rx_gpu_memory_kind */
	uint32_t device;  /* index in this process */
};

#define RX_GPU_HANDLE_BYTES 64u
/* Pieces of virtual memory that one buffer may lie across: an allocator that grows by 20 MiB. */
#define RX_GPU_MAX_PIECES 64u

/* An exported allocation or piece; travels between processes, the descriptor beside it. */
struct rx_gpu_export {
	struct rx_gpu_memory memory;
	uint8_t handle[RX_GPU_HANDLE_BYTES]; /* RX_GPU_MEM_PLAIN */
};

/*
 * Proofs.
 *
 * A runtime may map other memory than was asked for, and say that all went well. So a mapping is
 * used only after both processes have read the same bytes through their own address of it. The
 * bytes are rows spread evenly over the memory, from a start that a seed decides. Equal bytes prove
 * nothing where other memory holds them too: rows that are all the same (a fresh buffer of zeros),
 * or that another mapping also shows (replicas of one tensor), leave the question open. Memory that
 * belongs to us is first filled at those rows with random bytes; the user's is only read.
 */
#define RX_GPU_SAMPLE_ROWS  64u
#define RX_GPU_SAMPLE_WIDTH 64u
#define RX_GPU_SAMPLE_BYTES (RX_GPU_SAMPLE_ROWS * RX_GPU_SAMPLE_WIDTH)
#define RX_GPU_SAMPLE_PITCH (UINT64_C(1) << 30) /* runtimes copy rows up to 2 GiB apart */

struct rx_gpu_sample {
	uint64_t offset; /* of the sampled range in the allocation */
	uint64_t bytes;  /* of that range; shorter ones than RX_GPU_SAMPLE_BYTES are read whole */
	uint64_t seed;
};

enum rx_gpu_verdict {
	RX_GPU_OPEN = 0, /* nothing known yet, or contents that do not distinguish */
	RX_GPU_PROVEN,   /* may be used */
	RX_GPU_WRONG,    /* shows other memory: never used */
	RX_GPU_VERDICT_N
};

enum rx_gpu_prove_flags {
	/*
	 * Nobody writes the memory from before the owner's reading to after ours: bytes that differ
	 * are then no race but the wrong memory.
	 */
	RX_GPU_PROVE_STABLE = 1 << 0,
	/* The owner filled the rows with random bytes of its own: no look at other mappings. */
	RX_GPU_PROVE_NONCE = 1 << 1,
};

/* Why memory is copied instead of used in place; counted by device. */
enum rx_gpu_why_copied {
	RX_GPU_WHY_KIND = 0,  /* this kind of memory cannot be exported or imported */
	RX_GPU_WHY_REFUSED,   /* the runtime refused to import */
	RX_GPU_WHY_LIMIT,     /* too many mappings */
	RX_GPU_WHY_CONSTANT,  /* contents too plain to prove anything */
	RX_GPU_WHY_REPLICA,   /* another mapping shows the same contents */
	RX_GPU_WHY_DIFFERENT, /* contents differed while they may have been written */
	RX_GPU_WHY_WRONG,     /* the mapping shows other memory */
	RX_GPU_WHY_N
};

struct rx_gpu_map_info {
	uint64_t address; /* where the daemon's device sees the first byte */
	uint64_t bytes;   /* of all pieces together */
	uint64_t base;    /* where the owner sees it */
	uint64_t owner;
	uint32_t verdict; /* enum rx_gpu_verdict; RX_GPU_PROVEN: all pieces are */
	uint32_t why;     /* enum rx_gpu_why_copied, while the verdict is not RX_GPU_PROVEN */
	uint32_t n_refs;
	uint32_t alive; /* 0: the owner freed it; may not be used for anything new */
};

/* ---- running ---- */

struct rx_gpu_launch {
	const char *kernel; /* a name of kernels/device/device_abi.h */
	const void *args;   /* its one argument, passed by value */
	uint32_t args_bytes;
	uint32_t n_blocks;
	uint32_t n_threads;    /* per block */
	uint32_t shared_bytes; /* dynamic memory per block */
};

enum rx_gpu_wait {
	RX_GPU_WAIT_EQ = 0, /* until the word equals the value */
	RX_GPU_WAIT_GEQ,    /* until it is not behind it, as signed difference */
};

enum rx_gpu_capture {
	RX_GPU_CAPTURE_NONE = 0,
	RX_GPU_CAPTURE_ACTIVE, /* what is put into the stream is recorded, not done */
	RX_GPU_CAPTURE_BROKEN, /* the capture was invalidated: the user's EndCapture will say so */
};

struct rx_gpu_stats {
	uint64_t n_launches;
	uint64_t n_imports;              /* mappings made since the device was opened */
	uint64_t n_cache_hits;           /* imports that found a mapping */
	uint64_t n_proofs;               /* mappings that were proven */
	uint64_t n_copied[RX_GPU_WHY_N]; /* answers "copy instead", by reason */
	uint64_t mapped_bytes;           /* now */
	uint64_t scratch_bytes;          /* now in use */
	uint64_t scratch_high_bytes;     /* most at any time */
	uint32_t n_maps;                 /* now, with those in quarantine */
	uint32_t n_quarantined;          /* mappings and streams that wait for the device */
};

struct rx_backend_v1 {
	uint32_t size;    /* of this struct; fields beyond a reader's own size are not looked at */
	uint32_t abi;     /* RX_BACKEND_ABI */
	const char *name; /* "hip", "cuda" */

	/**
	 * open() - find the runtime and its devices
	 *
	 * Blocks: as long as the runtime needs to start, seconds on some machines.
	 * Return: RX_GPU_E_ABSENT or _PERMISSION with the reason and what to do where there is
	 * nothing to use.
	 */
	int (*open)(const struct rx_gpu_config *config, struct rx_gpu **gpu_p,
		struct rx_gpu_error *error);

	/** close() - when no device is open any more; NULL is allowed */
	void (*close)(struct rx_gpu *gpu);

	/** device_count(), device_info(), peer() - known since open(); @device, @from, @to: indices
	 */
	uint32_t (*device_count)(const struct rx_gpu *gpu);
	int (*device_info)(const struct rx_gpu *gpu, uint32_t device,
		struct rx_gpu_device_info *info_p, struct rx_gpu_error *error);
	int (*peer)(const struct rx_gpu *gpu, uint32_t from, uint32_t to,
		struct rx_gpu_peer *peer_p, struct rx_gpu_error *error);

	/* ---- in the owner's process ---- */

	/**
	 * describe() - what is behind @address
	 *
	 * Cheap: meant for every call, to see that an allocation is still the one exported.
	 * Return: RX_GPU_OK also for host memory (kind RX_GPU_MEM_HOST, base and bytes 0).
	 */
	int (*describe)(struct rx_gpu *gpu, uint64_t address, struct rx_gpu_memory *memory_p,
		struct rx_gpu_error *error);

	/**
	 * export_memory() - make [@address, @address + @bytes) importable
	 * @exports: the allocation; or the pieces of virtual memory in the order of their
	 * addresses, without gaps
	 * @fds:     as many, close-on-exec, owned by the caller; -1 where the handle suffices
	 * @max:     how many fit, at most RX_GPU_MAX_PIECES are needed
	 *
	 * Return: RX_GPU_E_UNSUPPORTED for memory that is copied instead; RX_GPU_E_INVALID when the
	 * range is not device memory; RX_GPU_E_LIMIT when it lies across more than @max pieces.
	 */
	int (*export_memory)(struct rx_gpu *gpu, uint64_t address, uint64_t bytes,
		struct rx_gpu_export *exports, int *fds, uint32_t max, uint32_t *n_p,
		struct rx_gpu_error *error);

	/**
	 * sample() - read the rows of @sample
	 * @base:   of the allocation, or of the first piece
	 * @stream: the owner's; the rows are as they are when @stream comes to them
	 * @rows:   RX_GPU_SAMPLE_BYTES of host memory; they are all there when @stream has come so
	 *          far, if it is registered memory, and when the call returns otherwise
	 */
	int (*sample)(struct rx_gpu *gpu, uint64_t base, const struct rx_gpu_sample *sample,
		void *stream, void *rows, struct rx_gpu_error *error);

	/**
	 * sample_fill() - fill the rows of @sample with random bytes, in memory that is ours
	 *
	 * Blocks until it is done.
	 */
	int (*sample_fill)(struct rx_gpu *gpu, uint64_t base, const struct rx_gpu_sample *sample,
		struct rx_gpu_error *error);

	/**
	 * host_register() - let devices reach [@memory, @memory + @bytes), whole pages
	 * @address_p: where all devices see it
	 */
	int (*host_register)(struct rx_gpu *gpu, void *memory, uint64_t bytes, uint64_t *address_p,
		struct rx_gpu_error *error);
	int (*host_unregister)(struct rx_gpu *gpu, void *memory, struct rx_gpu_error *error);

	/**
	 * stream_write() - when @stream comes to it, *@address = @value, after all that was before
	 * stream_wait()  - @stream goes on when the word at @address is as told
	 * @address: from host_register(), a multiple of 8; the word is 64 bits wide
	 *
	 * Both may be recorded in a graph when the device has RX_GPU_CAP_CAPTURE_MEM; otherwise
	 * RX_GPU_E_UNSUPPORTED while capture() says RX_GPU_CAPTURE_ACTIVE: record a kernel instead.
	 * A stream that waits holds no host thread; whoever makes it wait must release it, also
	 * when things fail.
	 */
	int (*stream_write)(struct rx_gpu *gpu, void *stream, uint64_t address, uint64_t value,
		struct rx_gpu_error *error);
	int (*stream_wait)(struct rx_gpu *gpu, void *stream, uint64_t address, uint64_t value,
		uint32_t wait, struct rx_gpu_error *error);

	/**
	 * capture() - is @stream being captured, and into which graph
	 * @capture_p: enum rx_gpu_capture
	 * @id_p:      the same for all streams of one capture, another for the next capture
	 */
	int (*capture)(struct rx_gpu *gpu, void *stream, uint32_t *capture_p, uint64_t *id_p,
		struct rx_gpu_error *error);

	/* ---- with an opened device ---- */

	/**
	 * device_open() - context, code, scratch pool, peer access to all devices that have it
	 *
	 * Blocks: the first device of a process takes up to a second.
	 * Return: RX_GPU_E_UNSUPPORTED when there is no code for this device; with
	 * RX_GPU_LOADED_ONLY launch() says so instead, and everything else works.
	 */
	int (*device_open)(struct rx_gpu *gpu, uint32_t device, struct rx_gpu_device **device_p,
		struct rx_gpu_error *error);

	/**
	 * device_close() - give back everything
	 *
	 * Return: RX_GPU_BUSY while the device still works, and nothing was done: try later, or let
	 * the end of the process clean up. A lost device is always closed.
	 */
	int (*device_close)(struct rx_gpu_device *device);

	/** device_state() - RX_GPU_OK, or RX_GPU_E_DEVICE with the first error that lost it */
	int (*device_state)(const struct rx_gpu_device *device, struct rx_gpu_error *error);

	/** device_stats() - counters since device_open() */
	void (*device_stats)(const struct rx_gpu_device *device, struct rx_gpu_stats *stats_p);

	/**
	 * device_reap() - unmap what is in quarantine and not used by the device any more
	 *
	 * Never blocks on the device. Return: how many still wait.
	 */
	uint32_t (*device_reap)(struct rx_gpu_device *device);

	/** stream_open() - @urgent: before the streams that are not, where the device can */
	int (*stream_open)(struct rx_gpu_device *device, bool urgent, void **stream_p,
		struct rx_gpu_error *error);
	/** stream_close() - at once, or in quarantine until its work is done; never blocks */
	void (*stream_close)(struct rx_gpu_device *device, void *stream);
	/** stream_query() - RX_GPU_OK: all done; RX_GPU_BUSY; RX_GPU_E_DEVICE */
	int (*stream_query)(struct rx_gpu_device *device, void *stream, struct rx_gpu_error *error);

	/**
	 * alloc() - device memory of our own, can be exported; cleared
	 *
	 * Blocks until it is cleared.
	 * free() blocks until the device is idle: not while others work.
	 */
	int (*alloc)(struct rx_gpu_device *device, uint64_t bytes, uint64_t *address_p,
		struct rx_gpu_error *error);
	void (*free)(struct rx_gpu_device *device, uint64_t address);

	/**
	 * scratch_get() - part of the device's pool, for one operation; 256-byte aligned
	 * scratch_put() - when the operation that used it is done
	 *
	 * The pool has config->scratch_bytes, is made when it is first needed and stays. Return:
	 * RX_GPU_BUSY when the rest of the pool is in use: try when something was put back;
	 * RX_GPU_E_LIMIT: larger than the pool.
	 */
	int (*scratch_get)(struct rx_gpu_device *device, uint64_t bytes, uint64_t *address_p,
		struct rx_gpu_error *error);
	void (*scratch_put)(struct rx_gpu_device *device, uint64_t address);

	/**
	 * import() - map an exported allocation for this device
	 * @owner:   number of the exporting process, never used again for another one
	 * @exports: @n of them, pieces in order; checked, as they come from outside
	 * @fds:     @n descriptors, not consumed
	 *
	 * An allocation that is mapped already is found again by its identity. One that overlaps
	 * pieces of the same owner in another way replaces those mappings: they were freed. A new
	 * mapping is not proven. The mapping may be larger than what was asked for.
	 * Return: 0 with a reference; RX_GPU_E_UNSUPPORTED, _LIMIT, _FAILED: copy instead.
	 */
	int (*import)(struct rx_gpu_device *device, uint64_t owner,
		const struct rx_gpu_export *exports, const int *fds, uint32_t n,
		struct rx_gpu_map **map_p, struct rx_gpu_error *error);

	/**
	 * prove() - compare the owner's rows with ours
	 * @rows:  RX_GPU_SAMPLE_BYTES, as the owner's sample() gave them for this @sample
	 * @flags: enum rx_gpu_prove_flags
	 *
	 * Blocks: for one small copy in a stream of its own.
	 * A mapping that is proven stays so when the contents do not distinguish, and becomes
	 * RX_GPU_WRONG when stable contents differ; RX_GPU_WRONG stays.
	 * Return: 0 with the verdict on the sampled range (virtual memory: on each piece that a row
	 * lies in), or RX_GPU_E_GONE, _INVALID, _DEVICE; RX_GPU_BUSY when the device did not come
	 * to it for a second: nothing was decided.
	 */
	int (*prove)(struct rx_gpu_map *map, const struct rx_gpu_sample *sample, const void *rows,
		uint32_t flags, uint32_t *verdict_p, struct rx_gpu_error *error);

	/**
	 * map_address() - where the device sees [@offset, @offset + @bytes) of the allocation
	 *
	 * Return: RX_GPU_E_UNPROVEN (counted, with the reason), RX_GPU_E_GONE, RX_GPU_E_INVALID.
	 */
	int (*map_address)(struct rx_gpu_map *map, uint64_t offset, uint64_t bytes,
		uint64_t *address_p, struct rx_gpu_error *error);

	/** map_info() - what is known of @map */
	void (*map_info)(const struct rx_gpu_map *map, struct rx_gpu_map_info *info_p);

	/**
	 * map_release() - give a reference back
	 *
	 * A mapping without references stays in the cache until its owner frees it or is gone, or
	 * the room is needed; unmapped when the device does not use it any more.
	 */
	void (*map_release)(struct rx_gpu_map *map);

	/** owner_freed() - the allocation at @base is gone: no new use of its mapping */
	void (*owner_freed)(struct rx_gpu_device *device, uint64_t owner, uint64_t base);
	/** owner_gone() - all of @owner's are */
	void (*owner_gone)(struct rx_gpu_device *device, uint64_t owner);

	/** count_copied() - note that memory was copied without a mapping; enum rx_gpu_why_copied
	 */
	void (*count_copied)(struct rx_gpu_device *device, uint32_t why);

	/**
	 * copy() - bytes from anywhere to anywhere this device reaches, in the order of @stream
	 *
	 * Host memory should be registered: the call may block for other memory.
	 */
	int (*copy)(struct rx_gpu_device *device, void *stream, uint64_t to, uint64_t from,
		uint64_t bytes, struct rx_gpu_error *error);

	/**
	 * launch() - put a kernel into @stream; a kernel that is not there is RX_GPU_E_UNSUPPORTED
	 *
	 * With no blocks it is only looked for, and loaded.
	 */
	int (*launch)(struct rx_gpu_device *device, void *stream,
		const struct rx_gpu_launch *launch, struct rx_gpu_error *error);

	/**
	 * signal() - *@address = @value for the host to see, when all before in @stream is done
	 * @address: from host_register()
	 */
	int (*signal)(struct rx_gpu_device *device, void *stream, uint64_t address, uint64_t value,
		struct rx_gpu_error *error);

	/**
	 * alloc_words() - alloc() for words that kernels of several devices synchronise with
	 *
	 * Such memory is never in one device's cache. free() takes it, too.
	 */
	int (*alloc_words)(struct rx_gpu_device *device, uint64_t bytes, uint64_t *address_p,
		struct rx_gpu_error *error);

	/* ---- in the owner's process, again ---- */

	/** stream_device() - index of the device that @stream belongs to */
	int (*stream_device)(
		struct rx_gpu *gpu, void *stream, uint32_t *device_p, struct rx_gpu_error *error);

	/**
	 * capture_mode() - exchange what this thread may do while a stream is captured
	 * @mode: in: 2 anything that is not put into captured streams; out: what was
	 *
	 * Without it, allocating and registering memory during a capture may invalidate it. Hand
	 * back what came out. Does nothing where the runtime has no such function.
	 */
	void (*capture_mode)(struct rx_gpu *gpu, int *mode);

	/**
	 * identify() - rx_gpu_memory.id of what is behind @address now, by one question
	 * @kind: that describe() gave when the same memory was there
	 *
	 * Return: 0 when there is none, or something else of another kind.
	 */
	uint64_t (*identify)(struct rx_gpu *gpu, uint64_t address, uint32_t kind);

	/* ---- with an opened device, again ---- */

	/**
	 * clear() - zeros into [@address, @address + @bytes) of memory from alloc(), alloc_words()
	 *
	 * Blocks until they are there.
	 */
	int (*clear)(struct rx_gpu_device *device, uint64_t address, uint64_t bytes,
		struct rx_gpu_error *error);
};

/**
 * rx_gpu_sample_rows() - where the rows of @sample lie
 * @first_p: of the first row, from the allocation's start
 * @pitch_p: from row to row
 * @width_p: of each
 * Return: number of rows; 0 when the range is empty.
 */
static inline uint32_t rx_gpu_sample_rows(
	const struct rx_gpu_sample *sample, uint64_t *first_p, uint64_t *pitch_p, uint64_t *width_p)
{
	uint64_t stripe = rx_min_u64(sample->bytes / RX_GPU_SAMPLE_ROWS, RX_GPU_SAMPLE_PITCH);
	uint64_t pitch = stripe & ~(uint64_t)15;

	*first_p = sample->offset;
	if (sample->bytes == 0)
		return 0;
	if (pitch <= RX_GPU_SAMPLE_WIDTH) { /* too short for rows with gaps */
		*pitch_p = *width_p = rx_min_u64(sample->bytes, RX_GPU_SAMPLE_BYTES);
		return 1;
	}
	/* Rows never leave their stripe, so the last one ends inside the range. */
	*first_p += sample->seed % ((pitch - RX_GPU_SAMPLE_WIDTH) / 16 + 1) * 16;
	*pitch_p = pitch;
	*width_p = RX_GPU_SAMPLE_WIDTH;
	return RX_GPU_SAMPLE_ROWS;
}

#endif
