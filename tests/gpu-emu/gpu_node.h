/* SPDX-License-Identifier: MIT */
/* Daemons and ranks with the real plugins, on the test double of one family of runtimes. */
#ifndef TEST_GPU_NODE_H
#define TEST_GPU_NODE_H

#include "emu_user.h"
#include "../integration/coll_case.h"
#include "../integration/harness.h"

/** gpu_fits_sanitizer() - false, and says why: not in this build */
bool gpu_fits_sanitizer(const char *family);

/** gpu_setup() - @family: "hip", "cuda"; before anything else. False: tests cannot run here */
bool gpu_setup(const char *family);

/** gpu_cleanup() - when all tests are done */
void gpu_cleanup(void);

/**
 * gpu_configure() - daemons from now on
 * @thresholds: of all collectives and numbers of ranks, as in tuning files
 * @keys: more of the group gpu
 */
void gpu_configure(const char *thresholds, const char *keys);

/** gpu_faults() - of all daemons, from now on; emu.h has the list. NULL: none */
void gpu_faults(const char *faults);

/**
 * gpu_node_cold() - a daemon that has not opened a device yet
 * gpu_node() - one that has opened what it can of all devices, with the faults of @always; then
 *		those of @then come instead
 */
struct node *gpu_node_cold(const char *faults);
struct node *gpu_node(const char *always, const char *then);

/** gpu_expect() - what rcclxctl @options devices says has to contain @part, within 2 s */
void gpu_expect(const struct node *node, const char *options, const char *part);

/** gpu_count() - the number behind "@key": of @device */
unsigned long gpu_count(const struct node *node, uint32_t device, const char *key);

/** gpu_expect_status() - the same of rcclxctl @options status */
void gpu_expect_status(const struct node *node, const char *options, const char *part);

/* ---- in ranks ---- */

/** gpu_user() - the process's runtime, loaded as programs load theirs; NULL: it cannot be loaded */
const struct emu_user *gpu_user(void);

/** gpu_open_rank() - coll_open(), and device memory: plain on odd ranks, virtual on even ones */
int gpu_open_rank(struct coll_rank *c, struct rank_ctx *ctx, uint32_t device, uint64_t bytes);
int gpu_close_rank(struct coll_rank *c);

/**
 * gpu_in_stream() - calls of @c are made in the order of a stream on @device
 * @n_replays: 0: at once; else each is recorded, and the graph launched so many times. Results have
 *	       to be those of the first time, so the calls are not in place.
 */
int gpu_in_stream(struct coll_rank *c, uint32_t device, uint32_t n_replays);
int gpu_out_of_stream(struct coll_rank *c);

/** gpu_give_memory(), gpu_take_memory() - the part of it that is memory */
int gpu_give_memory(struct coll_rank *c, struct rank_ctx *ctx, uint32_t device);
int gpu_take_memory(struct coll_rank *c);

#endif
