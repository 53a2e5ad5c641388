/* SPDX-License-Identifier: MIT */
/* Words of host memory that devices write: done, and what a kernel complains of. Worker only. */
#ifndef DAEMON_GPU_WORDS_H
#define DAEMON_GPU_WORDS_H

#include "gpu.h"

/* A slot is for one operation: a word for each device, a status, and one that kernels look at. */
struct gpu_words;

/** gpu_words_new() - NULL: no memory; devices get to see it on first use */
struct gpu_words *gpu_words_new(void);

/** gpu_words_free() - @gpu: it is not used any more; NULL: devices may still write it. Returns
 * NULL.
 */
struct gpu_words *gpu_words_free(struct gpu_words *words, struct gpu *gpu);

/** gpu_words_take() - a cleared slot; UINT32_MAX: all are in use */
uint32_t gpu_words_take(struct gpu_words *words);

/** gpu_words_address() - of the word that @device writes, as devices see it */
RX_WARN_UNUSED int gpu_words_address(struct gpu *gpu, uint32_t slot, uint32_t device,
	uint64_t *address_p, struct rx_gpu_error *error);

/** gpu_words_status() - of the status word, as devices see it */
RX_WARN_UNUSED int gpu_words_status(
	struct gpu *gpu, uint32_t slot, uint64_t *address_p, struct rx_gpu_error *error);

/** gpu_words_abort_address() - of the word that tells kernels to give up, as devices see it */
RX_WARN_UNUSED int gpu_words_abort_address(
	struct gpu *gpu, uint32_t slot, uint64_t *address_p, struct rx_gpu_error *error);

/** gpu_words_abort() - kernels that wait for others, give up */
void gpu_words_abort(struct gpu *gpu, uint32_t slot);

/** gpu_words_complaint() - the status so far */
uint32_t gpu_words_complaint(struct gpu *gpu, uint32_t slot);

/** gpu_words_again() - all that were to write their words have: clear them for the next time */
void gpu_words_again(struct gpu *gpu, uint32_t slot);

/** gpu_words_is_done() - has @device written its word? */
bool gpu_words_is_done(struct gpu *gpu, uint32_t slot, uint32_t device);

/** gpu_words_put() - give the slot back; returns its status */
uint32_t gpu_words_put(struct gpu *gpu, uint32_t slot);

#endif
