/* SPDX-License-Identifier: MIT */
/*
 * Proving that a mapping shows the owner's memory.
 *
 * Equal bytes on both sides are evidence only if other memory would have shown others. So they must
 * have enough different words in them, and no other mapping of this device may show them at the
 * same place: a runtime that mixes mappings up shows memory that it has mapped before. What cannot
 * be decided stays open, and the memory is copied until its contents distinguish it.
 */
#include "gpu_impl.h"
#include "../../shm/rx_clock.h"

#include <stdlib.h>
#include <string.h>

#define LEAST_DIFFERENT_WORDS 16u
#define LONGEST_WAIT_NS       1000000000u

/* Part of the sample by which other mappings are looked through first. */
#define KEY_BYTES      RX_GPU_SAMPLE_WIDTH
#define KEYS_AT_A_TIME (RX_GPU_SAMPLE_BYTES / KEY_BYTES)

struct rows {
	uint64_t first; /* from the mapping's start */
	uint64_t pitch;
	uint64_t width;
	uint32_t n;
	uint64_t bytes; /* of all */
};

static struct rows rows_of(const struct rx_gpu_sample *sample)
{
	struct rows rows = {0};

	rows.n = rx_gpu_sample_rows(sample, &rows.first, &rows.pitch, &rows.width);
	rows.bytes = rows.n * rows.width;
	return rows;
}

/* Wait for the proof stream: not for ever, a kernel may hold the device. */
static int wait_for_copies(struct rx_gpu_device *device, struct rx_gpu_error *error)
{
	uint64_t deadline = rx_now_ns() + LONGEST_WAIT_NS;
	int result = RX_GPU_BUSY;

	while (result == RX_GPU_BUSY) {
		result = gpu_device_check(device,
			device->gpu->sym.stream_query(device->proof->native), "reading a mapping",
			error);
		if (result == RX_GPU_BUSY && rx_now_ns() > deadline)
			return gpu_fail(error, RX_GPU_BUSY, 0,
				"the device did not read a mapping within a second");
	}
	return result;
}

static int read_rows(struct rx_gpu_device *device, uint64_t at, const struct rx_gpu_sample *sample,
	uint8_t *to, struct rx_gpu_error *error)
{
	int result = gpu_device_check(device,
		gpu_copy_rows(&device->gpu->sym, device->proof->native, sample, at, to, false),
		"reading a mapping", error);

	return result == RX_GPU_OK ? wait_for_copies(device, error) : result;
}

/* ---- do the contents distinguish? ---- */

static int compare_words(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a;
	uint64_t y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static uint32_t n_different_words(const uint8_t *bytes, uint64_t n_bytes)
{
	uint64_t words[RX_GPU_SAMPLE_BYTES / 8];
	size_t n = n_bytes / 8;
	uint32_t different = n > 0;

	memcpy(words, bytes, n * 8);
	qsort(words, n, sizeof(words[0]), compare_words);
	for (size_t i = 1; i < n; i++)
		different += words[i] != words[i - 1];
	return different;
}

/* The row, or part of the only row, that other memory is least likely to hold. */
static uint64_t choose_key(const uint8_t *bytes, const struct rows *rows)
{
	uint64_t best = 0;
	uint32_t most = 0;

	for (uint64_t at = 0; at + KEY_BYTES <= rows->bytes; at += KEY_BYTES) {
		uint32_t different = n_different_words(bytes + at, KEY_BYTES);

		if (different > most) {
			most = different;
			best = at;
		}
	}
	return best;
}

/* Where byte @at of the packed rows lies in the mapping. */
static uint64_t offset_of(const struct rows *rows, uint64_t at)
{
	return rows->first + at / rows->width * rows->pitch + at % rows->width;
}

struct candidates {
	const struct rx_gpu_map *maps[KEYS_AT_A_TIME];
	uint32_t n;
};

/* Return: RX_GPU_OK and *found_p when one of @candidates shows the same rows. */
static int look_through(struct rx_gpu_device *device, const struct candidates *candidates,
	const struct rx_gpu_sample *sample, const struct rows *rows, uint64_t key, bool *found_p,
	struct rx_gpu_error *error)
{
	const struct gpu_sym *sym = &device->gpu->sym;
	const uint8_t *ours = device->proof_rows;
	uint8_t *others = device->proof_rows + RX_GPU_SAMPLE_BYTES;
	uint8_t keys[RX_GPU_SAMPLE_BYTES];
	int result = RX_GPU_OK;

	for (uint32_t i = 0; i < candidates->n && result == RX_GPU_OK; i++)
		result = gpu_device_check(device,
			gpu_copy(sym, device->proof->native, (uintptr_t)(others + i * KEY_BYTES),
				candidates->maps[i]->address + offset_of(rows, key), KEY_BYTES),
			"reading a mapping", error);
	if (result == RX_GPU_OK)
		result = wait_for_copies(device, error);
	memcpy(keys, others, sizeof(keys));
	for (uint32_t i = 0; i < candidates->n && result == RX_GPU_OK && !*found_p; i++) {
		if (memcmp(keys + i * KEY_BYTES, ours + key, KEY_BYTES) != 0)
			continue;
		result = read_rows(device, candidates->maps[i]->address, sample, others, error);
		*found_p = result == RX_GPU_OK && memcmp(others, ours, rows->bytes) == 0;
	}
	return result;
}

/* The same memory, mapped a second time: that it looks the same says nothing. */
static bool is_same_memory(const struct rx_gpu_map *map, const struct rx_gpu_map *other)
{
	const struct rx_gpu_export *a = &map->pieces[0].export;
	const struct rx_gpu_export *b = &other->pieces[0].export;

	if (map == other || (map->owner == other->owner && gpu_same_piece(a, b)))
		return true;
	return a->memory.kind == RX_GPU_MEM_PLAIN && b->memory.kind == RX_GPU_MEM_PLAIN &&
	       memcmp(a->handle, b->handle, RX_GPU_HANDLE_BYTES) == 0;
}

static int find_replica(const struct rx_gpu_map *map, const struct rx_gpu_sample *sample,
	const struct rows *rows, bool *found_p, struct rx_gpu_error *error)
{
	struct rx_gpu_device *device = map->device;
	struct candidates candidates = {0};
	uint64_t key = choose_key(device->proof_rows, rows);
	uint64_t end = offset_of(rows, rows->bytes - 1) + 1;
	int result = RX_GPU_OK;

	rx_list_for_each (pos, &device->maps) {
		const struct rx_gpu_map *other = rx_list_entry(pos, struct rx_gpu_map, link);

		if (is_same_memory(map, other) || other->bytes < end)
			continue;
		candidates.maps[candidates.n++] = other;
		if (candidates.n < KEYS_AT_A_TIME)
			continue;
		result = look_through(device, &candidates, sample, rows, key, found_p, error);
		candidates.n = 0;
		if (result != RX_GPU_OK || *found_p)
			break;
	}
	if (result == RX_GPU_OK && !*found_p && candidates.n > 0)
		result = look_through(device, &candidates, sample, rows, key, found_p, error);
	return result;
}

/* ---- deciding ---- */

/* Does a row lie in @piece, at least in part? */
static bool has_row(
	const struct rx_gpu_map *map, const struct gpu_piece *piece, const struct rows *rows)
{
	uint64_t start = piece->at - map->address;
	uint64_t end = start + piece->export.memory.bytes;

	for (uint32_t i = 0; i < rows->n; i++) {
		uint64_t row = rows->first + i * rows->pitch;

		if (row < end && row + rows->width > start)
			return true;
	}
	return false;
}

static void decide(struct rx_gpu_map *map, const struct rows *rows, uint8_t verdict, uint8_t why)
{
	for (uint32_t i = 0; i < map->n_pieces; i++) {
		struct gpu_piece *piece = &map->pieces[i];

		if (piece->verdict == RX_GPU_WRONG || !has_row(map, piece, rows))
			continue;
		if (verdict == RX_GPU_OPEN && piece->verdict == RX_GPU_PROVEN)
			continue; /* it stays so */
		map->device->stats.n_proofs +=
			verdict == RX_GPU_PROVEN && piece->verdict != RX_GPU_PROVEN;
		piece->verdict = verdict;
		piece->why = why;
	}
}

/* Of the pieces in the sampled range: the worst. */
static uint32_t verdict_on(const struct rx_gpu_map *map, const struct rx_gpu_sample *sample)
{
	uint32_t verdict = RX_GPU_PROVEN;

	for (uint32_t i = 0; i < map->n_pieces; i++) {
		const struct gpu_piece *piece = &map->pieces[i];
		uint64_t start = piece->at - map->address;

		if (start >= sample->offset + sample->bytes ||
			start + piece->export.memory.bytes <= sample->offset)
			continue;
		if (piece->verdict == RX_GPU_WRONG)
			return RX_GPU_WRONG;
		if (piece->verdict == RX_GPU_OPEN)
			verdict = RX_GPU_OPEN;
	}
	return verdict;
}

static int judge(struct rx_gpu_map *map, const struct rx_gpu_sample *sample, const void *theirs,
	uint32_t flags, struct rx_gpu_error *error)
{
	struct rx_gpu_device *device = map->device;
	struct rows rows = rows_of(sample);
	bool replica = false;
	int result = read_rows(device, map->address, sample, device->proof_rows, error);

	if (result != RX_GPU_OK)
		return result;
	if (memcmp(device->proof_rows, theirs, rows.bytes) != 0) {
		if (flags & (RX_GPU_PROVE_STABLE | RX_GPU_PROVE_NONCE))
			decide(map, &rows, RX_GPU_WRONG, RX_GPU_WHY_WRONG);
		else
			decide(map, &rows, RX_GPU_OPEN, RX_GPU_WHY_DIFFERENT);
		return RX_GPU_OK;
	}
	if (verdict_on(map, sample) == RX_GPU_PROVEN)
		return RX_GPU_OK;
	if (n_different_words(device->proof_rows, rows.bytes) < LEAST_DIFFERENT_WORDS) {
		decide(map, &rows, RX_GPU_OPEN, RX_GPU_WHY_CONSTANT);
		return RX_GPU_OK;
	}
	if (!(flags & RX_GPU_PROVE_NONCE))
		result = find_replica(map, sample, &rows, &replica, error);
	if (result != RX_GPU_OK)
		return result;
	decide(map, &rows, replica ? RX_GPU_OPEN : RX_GPU_PROVEN, RX_GPU_WHY_REPLICA);
	return RX_GPU_OK;
}

int gpu_prove(struct rx_gpu_map *map, const struct rx_gpu_sample *sample, const void *rows,
	uint32_t flags, uint32_t *verdict_p, struct rx_gpu_error *error)
{
	struct rx_gpu_device *device = map->device;
	struct gpu_scope scope = {0};
	int result = gpu_device_state(device, error);

	if (result != RX_GPU_OK)
		return result;
	if (!map->alive)
		return gpu_fail(error, RX_GPU_E_GONE, 0, "the owner has freed this memory");
	if (sample->bytes == 0 || !rx_range_ok(sample->offset, sample->bytes, map->bytes))
		return gpu_fail(error, RX_GPU_E_INVALID, 0,
			"a sample of %llu bytes at %llu of a mapping of %llu",
			(unsigned long long)sample->bytes, (unsigned long long)sample->offset,
			(unsigned long long)map->bytes);
	if (verdict_on(map, sample) == RX_GPU_WRONG) {
		*verdict_p = RX_GPU_WRONG;
		return RX_GPU_OK;
	}
	result = gpu_enter(device, &scope, error);
	if (result != RX_GPU_OK)
		return result;
	/* A copy that came too late for its own proof would fall into this one. */
	result = wait_for_copies(device, error);
	if (result == RX_GPU_OK)
		result = judge(map, sample, rows, flags, error);
	gpu_leave(device->gpu, &scope);
	if (result == RX_GPU_OK)
		*verdict_p = verdict_on(map, sample);
	return result;
}
