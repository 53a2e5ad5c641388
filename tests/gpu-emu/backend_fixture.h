/* SPDX-License-Identifier: MIT */
/* A backend's plugin over the test double, as the daemon would open it: both families, one after
 * the other. */
#ifndef TEST_BACKEND_FIXTURE_H
#define TEST_BACKEND_FIXTURE_H

#include "emu_user.h"
#include "../../kernels/rx_backend.h"

#define WAIT_TURNS 5000 /* of a millisecond */

struct CMUnitTest;

extern const char *flavour; /* "hip", "cuda" */
extern const struct rx_backend_v1 *ops;
extern const struct emu_user *user;
extern struct rx_gpu *gpu;           /* between set-up and tear-down, as */
extern struct rx_gpu_device *device; /* the first one */

/** backend_load() - the plugin and the double of a family; ends the process if it cannot */
void backend_load(const char *family);
struct rx_gpu_config backend_config(void);
int backend_set_up(void **state);
int backend_tear_down(void **state);
void backend_wait_idle(void *stream);
/** backend_run() - @n tests with each plugin; what main() returns */
int backend_run(const struct CMUnitTest *tests, uint32_t n);

#define BACKEND_RUN(tests) backend_run(tests, RX_ARRAY_SIZE(tests))

#endif
