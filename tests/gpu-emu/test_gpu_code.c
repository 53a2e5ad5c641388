/* SPDX-License-Identifier: MIT */
/* Which of the built-in codes a device gets; compiled for each of the runtimes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "../../kernels/gpu/gpu_impl.h"

#define GPU_CODE(arch, path)                                                                       \
	extern const char gpu_code_##arch[] __attribute__((visibility("hidden")));
#include "code_list.h"
#undef GPU_CODE

#define GPU_CODE(arch, path) {#arch, gpu_code_##arch},
static const struct {
	const char *arch;
	const char *image;
} codes[] = {
#include "code_list.h"
};

static const char *name_of(const void *image)
{
	for (size_t i = 0; i < RX_ARRAY_SIZE(codes); i++) {
		if (codes[i].image == image)
			return codes[i].arch;
	}
	return "another";
}

static void expect(const char *arch, const char *built)
{
	struct rx_gpu gpu = {0};
	struct gpu_code code = {0};
	struct rx_gpu_error error = {0};

	assert_int_equal(gpu_code_find(&gpu, arch, &code, &error), RX_GPU_OK);
	assert_string_equal(name_of(code.image), built);
	assert_null(code.owned);
}

static void expect_none(const char *arch, const char *said)
{
	struct rx_gpu gpu = {0};
	struct gpu_code code = {0};
	struct rx_gpu_error error = {0};

	assert_int_equal(gpu_code_find(&gpu, arch, &code, &error), RX_GPU_E_UNSUPPORTED);
	assert_int_equal(error.result, RX_GPU_E_UNSUPPORTED);
	assert_non_null(strstr(error.text, said));
	assert_non_null(strstr(error.text, "gfx90a, gfx942, sm_80"));
}

static void test_choice(void **state)
{
	(void)state;
#if defined(RX_GPU_HIP)
	expect("gfx942", "gfx942");
	expect("gfx942:sramecc+:xnack-", "gfx942");
	expect("gfx90a", "gfx90a");
	expect_none("gfx94", "no code for gfx94 is built in");
	expect_none("gfx9421", "HIP_ARCHS=gfx9421");
	expect_none("sm_9", "no code for sm_9");
	expect_none("", "no code for this device");
#else
	expect("sm_80", "sm_80");
	expect("sm_86", "sm_86");
	expect("sm_90", "sm_90");
	/* The best of the same major version, in whatever order they come. */
	expect("sm_89", "sm_87");
	expect("sm_81", "sm_80");
	/* A later one: the driver compiles. */
	expect("sm_100", "compute_90");
	expect("sm_120", "compute_90");
	expect_none("sm_75", "no code for sm_75 is built in");
	expect_none("sm_7", "CUDA_ARCHS=sm_7");
	expect_none("gfx942", "no code for gfx942");
#endif
}

/* The whole file, aligned, and a 0 behind it. */
static void test_contents(void **state)
{
	char path[4096];
	char *data = calloc(1, 1 << 20);
	const char *build = getenv("RCCLX_BUILDDIR");
	FILE *file = NULL;
	size_t n = 0;

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/config.h", build ? build : ".");
	file = fopen(path, "r");
	assert_non_null(file);
	n = fread(data, 1, (1 << 20) - 1, file);
	(void)fclose(file);
	assert_true(n > 0);
	for (size_t i = 0; i < RX_ARRAY_SIZE(codes); i++) {
		assert_int_equal((uintptr_t)codes[i].image % 64, 0);
		assert_memory_equal(codes[i].image, data, n + 1);
	}
	free(data);
}

static void test_file_wins(void **state)
{
	char path[] = "/tmp/rcclx_code_XXXXXX";
	int fd = mkstemp(path);
	struct rx_gpu gpu = {.code_file = path};
	struct gpu_code code = {0};
	struct rx_gpu_error error = {0};

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(gpu_code_find(&gpu, "sm_90", &code, &error), RX_GPU_E_UNSUPPORTED);
	assert_non_null(strstr(error.text, path));
	assert_int_equal(write(fd, "code", 4), 4);
	(void)close(fd);
	assert_int_equal(gpu_code_find(&gpu, "sm_90", &code, &error), RX_GPU_OK);
	assert_string_equal(code.image, "code");
	assert_ptr_equal(code.owned, code.image);
	free(code.owned);
	(void)unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_choice),
		cmocka_unit_test(test_contents),
		cmocka_unit_test(test_file_wins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
