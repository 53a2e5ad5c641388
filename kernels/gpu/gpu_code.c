/* SPDX-License-Identifier: MIT */
/* Which machine code a device gets. */
#include "gpu_impl.h"
#include "../../shm/rx_cleanup.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* More than any code object that we make; a wrong file is refused rather than read. */
#define MAX_CODE_BYTES (256u << 20)

static int read_file(const char *path, void **data_p, struct rx_gpu_error *error)
{
	struct stat st = {0};
	uint64_t done = 0;
	RX_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	RX_FREE char *data = NULL;

	if (fd < 0 || fstat(fd, &st) != 0)
		return gpu_fail(error, RX_GPU_E_UNSUPPORTED, 0, "code file %.100s: %s", path,
			strerror(errno));
	if (!S_ISREG(st.st_mode) || st.st_size <= 0 || st.st_size > MAX_CODE_BYTES)
		return gpu_fail(error, RX_GPU_E_UNSUPPORTED, 0,
			"code file %.100s: expected a file of 1 byte to 256 MiB", path);
	/* The runtime looks for the end of text. */
	data = calloc(1, (size_t)st.st_size + 1);
	if (!data)
		return gpu_fail(error, RX_GPU_E_MEMORY, 0, "no memory for %.100s", path);
	while (done < (uint64_t)st.st_size) {
		ssize_t n = read(fd, data + done, (size_t)st.st_size - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return gpu_fail(error, RX_GPU_E_UNSUPPORTED, 0, "code file %.100s: %s",
				path, n < 0 ? strerror(errno) : "shorter than it was");
		done += (uint64_t)n;
	}
	*data_p = rx_steal(data);
	return RX_GPU_OK;
}

/* ---- built in ---- */

#if defined(RX_GPU_CODE_LIST)

/* The 0 behind it ends what is text. */
#define GPU_CODE(arch, path)                                                                       \
	__asm__(".pushsection .rodata,\"a\",%progbits\n"                                           \
		".balign 64\n"                                                                     \
		".globl gpu_code_" #arch "\n"                                                      \
		".hidden gpu_code_" #arch "\n"                                                     \
		"gpu_code_" #arch ":\n"                                                            \
		".incbin \"" path "\"\n"                                                           \
		".byte 0\n"                                                                        \
		".popsection\n");                                                                  \
	extern const uint8_t gpu_code_##arch[] __attribute__((visibility("hidden")));
#include RX_GPU_CODE_LIST
#undef GPU_CODE

#endif

#define GPU_CODE(arch, path) {#arch, gpu_code_##arch},
static const struct built_in {
	const char *arch; /* NULL: the end */
	const uint8_t *image;
} built_in[] = {
#if defined(RX_GPU_CODE_LIST)
#include RX_GPU_CODE_LIST
#endif
	{NULL, NULL},
};

#if defined(RX_GPU_CUDA)

/*
 * How well code for @built suits @arch, 0 being not at all. Machine code runs on the same major
 * version from its minor one on; PTX, which the driver has to compile, on everything later.
 */
static int suits(const char *built, const char *arch)
{
	int of_code = 0;
	int of_device = 0;

	if (sscanf(arch, "sm_%d", &of_device) != 1)
		return 0;
	if (sscanf(built, "sm_%d", &of_code) == 1)
		return of_code / 10 == of_device / 10 && of_code <= of_device ? 10000 + of_code : 0;
	return sscanf(built, "compute_%d", &of_code) == 1 && of_code <= of_device ? of_code : 0;
}

#else

/* "gfx942:sramecc+:xnack-": ours is for any setting of these features. */
static int suits(const char *built, const char *arch)
{
	size_t n = strcspn(arch, ":");

	return strlen(built) == n && strncmp(built, arch, n) == 0;
}

#endif

static int find_built_in(const char *arch, struct gpu_code *code_p, struct rx_gpu_error *error)
{
	char list[120] = "";
	size_t used = 0;
	int best = 0;

	for (const struct built_in *b = built_in; b->arch; b++) {
		int how_well = suits(b->arch, arch);

		if (how_well > best) {
			best = how_well;
			*code_p = (struct gpu_code){.image = b->image};
		}
		if (used < sizeof(list))
			used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s",
				used ? ", " : "", b->arch);
	}
	if (best)
		return RX_GPU_OK;
	return gpu_fail(error, RX_GPU_E_UNSUPPORTED, 0,
		"no code for %s is built in, but for: %s; build with %s=%s",
		*arch ? arch : "this device", *list ? list : "nothing",
		GPU_PICK("CUDA_ARCHS", "HIP_ARCHS"), *arch ? arch : "its name");
}

int gpu_code_find(const struct rx_gpu *gpu, const char *arch, struct gpu_code *code_p,
	struct rx_gpu_error *error)
{
	void *data = NULL;
	int result = RX_GPU_OK;

	if (!gpu->code_file)
		return find_built_in(arch, code_p, error);
	result = read_file(gpu->code_file, &data, error);
	if (result == RX_GPU_OK)
		*code_p = (struct gpu_code){.image = data, .owned = data};
	return result;
}
