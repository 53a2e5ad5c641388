/* SPDX-License-Identifier: MIT */
#include "gpu_stage.h"

#include "gpu_blocks.h"
#include "gpu_launch.h"
#include "gpu_mem.h"
#include "gpu_run.h"
#include "gpu_streams.h"

/* Elements of which the parts are multiples: no block of low precision is divided. */
#define STAGE_UNIT 256u
/* Memory is made anew when it is too small, so not too small at first. */
#define STAGE_LEAST (UINT64_C(1) << 20)

static const struct gpu_buffer *buffer_of(const struct gpu_run *run, uint32_t rank, bool recv)
{
	return recv ? &run->recv[rank] : &run->send[rank];
}

static uint32_t owner_of(const struct gpu_run *run, const struct gpu_buffer *buffer)
{
	uint32_t device = gpu_mem_device(buffer->region);

	return device == UINT32_MAX ? gpu_launch_first(run) : device;
}

uint64_t gpu_stage_devices(const struct gpu_run *run)
{
	uint64_t memory = 0;
	uint64_t reached = UINT64_MAX;

	for (uint32_t i = 0; i < 2 * run->n_ranks; i++) {
		uint32_t device = gpu_mem_device(buffer_of(run, i / 2, i % 2)->region);

		if (device != UINT32_MAX)
			memory |= 1ull << device;
	}
	for (uint64_t left = run->devices; left; left &= left - 1)
		reached &= gpu_peers(run->gpu, (uint32_t)__builtin_ctzll(left));
	return memory & ~reached ? memory | run->devices : 0;
}

/* ---- a rank's blocks ---- */

static uint32_t n_blocks_of(const struct gpu_run *run, uint32_t rank, bool recv)
{
	const struct gpu_buffer *buffer = buffer_of(run, rank, recv);
	uint64_t bytes = run->count * rx_dtype_size(run->dtype);

	if (!buffer->region || bytes == 0)
		return 0;
	if (run->counts)
		return run->coll == (recv ? RX_REDUCE_SCATTER_V : RX_ALL_GATHER_V) ? 1
										   : run->n_ranks;
	return (uint32_t)(buffer->bytes / bytes);
}

/* Elements of the buffer that are block @i. */
static void block_at(const struct gpu_run *run, uint32_t rank, bool recv, uint32_t i,
	uint64_t *first_p, uint64_t *count_p)
{
	struct rx_dev_block block = {.count = run->count, .send_at = i * run->count};
	uint32_t other = n_blocks_of(run, rank, recv) == 1 ? rank : i;

	*first_p = block.send_at;
	if (run->counts && recv) {
		block = gpu_blocks_of(run->coll, run->counts, other, rank);
		*first_p = block.recv_at;
	} else if (run->counts) {
		block = gpu_blocks_of(run->coll, run->counts, rank, other);
		*first_p = block.send_at;
	}
	*count_p = block.count;
}

static uint32_t n_blocks_before(const struct gpu_run *run, uint32_t end)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < end; i++)
		n += n_blocks_of(run, i / 2, i % 2);
	return n;
}

/* ---- phases ---- */

static void begin_part(struct gpu_run *run, uint64_t first)
{
	struct gpu_stage *stage = &run->stage;

	stage->first = first;
	stage->count = rx_min_u64(stage->most, run->count - first);
	stage->phase = GPU_STAGE_IN;
}

int gpu_stage_begin(struct gpu_run *run, uint64_t most, struct rx_gpu_error *error)
{
	struct gpu_host *host = &run->streams->stage;
	uint64_t element = rx_max_u64(1, n_blocks_before(run, 2 * run->n_ranks)) *
			   rx_dtype_size(run->dtype); /* of each block */
	uint64_t bytes = STAGE_LEAST;
	int r = 0;

	while (bytes < most && bytes / element < run->count + STAGE_UNIT)
		bytes *= 2;
	bytes = rx_max_u64(rx_min_u64(bytes, most), element * STAGE_UNIT);
	if (host->memory && host->bytes < bytes)
		gpu_host_deinit(run->gpu, host);
	r = gpu_host_make(
		run->gpu, host, bytes, "data between devices that do not reach each other", error);
	if (r)
		return r;
	run->stage.most = bytes / element / STAGE_UNIT * STAGE_UNIT;
	begin_part(run, 0);
	return 0;
}

bool gpu_stage_ends(const struct gpu_run *run)
{
	const struct gpu_stage *stage = &run->stage;

	return stage->phase == GPU_STAGE_NONE ||
	       (stage->phase == GPU_STAGE_OUT && stage->first + stage->count >= run->count);
}

/* Where the blocks of a variable collective lie in this part; nobody reads the table now. */
static void fill_table(struct gpu_run *run)
{
	const struct gpu_stage *stage = &run->stage;
	struct rx_dev_block *blocks = run->streams->blocks.memory;
	uint32_t n = run->n_ranks;

	for (uint32_t i = 0; i < n * n; i++) {
		uint64_t whole = gpu_blocks_of(run->coll, run->counts, i / n, i % n).count;

		blocks[i] = (struct rx_dev_block){
			.count = whole > stage->first
					 ? rx_min_u64(whole - stage->first, stage->count)
					 : 0,
			.send_at = run->coll == RX_ALL_GATHER_V ? 0 : i % n * stage->count,
			.recv_at = run->coll == RX_REDUCE_SCATTER_V ? 0 : i / n * stage->count,
		};
	}
}

bool gpu_stage_next(struct gpu_run *run)
{
	struct gpu_stage *stage = &run->stage;

	if (gpu_stage_ends(run)) {
		stage->phase = GPU_STAGE_NONE;
		return false;
	}
	if (stage->phase == GPU_STAGE_OUT) {
		begin_part(run, stage->first + stage->count);
		return true;
	}
	stage->phase++;
	if (stage->phase == GPU_STAGE_RUN && run->counts)
		fill_table(run);
	return true;
}

/* ---- copying ---- */

uint64_t gpu_stage_address(const struct gpu_run *run, uint32_t rank, bool recv)
{
	if (!buffer_of(run, rank, recv)->region)
		return 0;
	return run->streams->stage.address +
	       n_blocks_before(run, 2 * rank + recv) * run->stage.most * rx_dtype_size(run->dtype);
}

static int copy_one(struct gpu_run *run, uint32_t device, void *stream, uint64_t mine,
	uint64_t staged, uint64_t bytes, struct rx_gpu_error *error)
{
	bool in = run->stage.phase == GPU_STAGE_IN;

	return gpu_ops(run->gpu)->copy(gpu_opened(run->gpu, device), stream, in ? staged : mine,
		in ? mine : staged, bytes, error);
}

static int copy_blocks(struct gpu_run *run, uint32_t device, void *stream, uint32_t rank,
	uint64_t mine, struct rx_gpu_error *error)
{
	const struct gpu_stage *stage = &run->stage;
	bool recv = stage->phase == GPU_STAGE_OUT;
	uint64_t staged = gpu_stage_address(run, rank, recv);
	uint32_t n_blocks = n_blocks_of(run, rank, recv);
	uint64_t size = rx_dtype_size(run->dtype);
	int r = 0;

	/* All at once, one behind the other. */
	if (!run->counts && stage->count == run->count && n_blocks > 0)
		return copy_one(
			run, device, stream, mine, staged, n_blocks * stage->count * size, error);
	for (uint32_t i = 0; i < n_blocks && r == 0; i++) {
		uint64_t first = 0;
		uint64_t count = 0;

		block_at(run, rank, recv, i, &first, &count);
		if (count <= stage->first)
			continue;
		r = copy_one(run, device, stream, mine + (first + stage->first) * size,
			staged + i * stage->count * size,
			rx_min_u64(count - stage->first, stage->count) * size, error);
	}
	return r;
}

int gpu_stage_copy(struct gpu_run *run, uint32_t device, void *stream, struct rx_gpu_error *error)
{
	bool recv = run->stage.phase == GPU_STAGE_OUT;
	int r = 0;

	for (uint32_t rank = 0; rank < run->n_ranks && r == 0; rank++) {
		const struct gpu_buffer *buffer = buffer_of(run, rank, recv);
		uint64_t mine = 0;

		if (!buffer->region || buffer->bytes == 0 || owner_of(run, buffer) != device)
			continue;
		r = gpu_mem_address(run->gpu, buffer->region, device, buffer->offset, buffer->bytes,
			&mine, error);
		if (r == 0)
			r = copy_blocks(run, device, stream, rank, mine, error);
	}
	return r;
}
