/* SPDX-License-Identifier: MIT */
#include "backend_fixture.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

const char *flavour;
const struct rx_backend_v1 *ops;
const struct emu_user *user;
struct rx_gpu *gpu;
struct rx_gpu_device *device;
static char emu_path[512];
static char code_path[64];

static void *open_or_exit(const char *path, const char *symbol)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	void *found = library ? dlsym(library, symbol) : NULL;

	if (!found) {
		(void)fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	return found;
}

void backend_load(const char *family)
{
	const char *build = getenv("RCCLX_BUILDDIR") ? getenv("RCCLX_BUILDDIR") : ".";
	char path[512];

	flavour = family;
	(void)snprintf(path, sizeof(path), "%s/.libs/rcclx_backend_%s.so", build, flavour);
	(void)snprintf(emu_path, sizeof(emu_path), "%s/.libs/gpu_emu_%s.so", build, flavour);
	ops = open_or_exit(path, RX_BACKEND_SYMBOL);
	user = open_or_exit(emu_path, EMU_USER_SYMBOL);
}

struct rx_gpu_config backend_config(void)
{
	return (struct rx_gpu_config){.size = sizeof(struct rx_gpu_config),
		.library = emu_path,
		.code_file = code_path,
		.scratch_bytes = 1 << 20,
		.max_maps = 3};
}

int backend_set_up(void **state)
{
	struct rx_gpu_config mine = backend_config();
	struct rx_gpu_error error = {0};

	(void)state;
	assert_int_equal(ops->open(&mine, &gpu, &error), RX_GPU_OK);
	assert_int_equal(ops->device_open(gpu, 0, &device, &error), RX_GPU_OK);
	return 0;
}

int backend_tear_down(void **state)
{
	int result = RX_GPU_BUSY;

	(void)state;
	for (int i = 0; i < WAIT_TURNS && result == RX_GPU_BUSY; i++) {
		result = ops->device_close(device);
		if (result == RX_GPU_BUSY)
			(void)usleep(1000);
	}
	assert_int_equal(result, RX_GPU_OK);
	ops->close(gpu);
	user->set_faults("");
	return 0;
}

void backend_wait_idle(void *stream)
{
	int result = RX_GPU_BUSY;

	for (int i = 0; i < WAIT_TURNS && result == RX_GPU_BUSY; i++) {
		result = ops->stream_query(device, stream, NULL);
		if (result == RX_GPU_BUSY)
			(void)usleep(1000);
	}
	assert_int_equal(result, RX_GPU_OK);
}

int backend_run(const struct CMUnitTest *tests, uint32_t n)
{
	int failed = 0;
	int fd = -1;

	(void)snprintf(code_path, sizeof(code_path), "/tmp/rx-gpu-code-%d", getpid());
	fd = open(code_path, O_CREAT | O_WRONLY | O_EXCL, 0600);
	if (fd < 0 || write(fd, "code", 4) != 4)
		return 1;
	(void)close(fd);
	for (int i = 0; i < 2; i++) {
		backend_load(i ? "cuda" : "hip");
		failed += _cmocka_run_group_tests(flavour, tests, n, NULL, NULL);
	}
	(void)unlink(code_path);
	return failed != 0;
}
