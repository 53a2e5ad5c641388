/* SPDX-License-Identifier: MIT */
/* Which machine code a device gets. */
#include "gpu_impl.h"
#include "../../shm/rx_cleanup.h"

#include <fcntl.h>
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

int gpu_code_find(const struct rx_gpu *gpu, const char *arch, struct gpu_code *code_p,
	struct rx_gpu_error *error)
{
	void *data = NULL;
	int result = RX_GPU_OK;

	if (!gpu->code_file)
		return gpu_fail(error, RX_GPU_E_UNSUPPORTED, 0, "no code for %s is built in",
			*arch ? arch : "this device");
	result = read_file(gpu->code_file, &data, error);
	if (result == RX_GPU_OK)
		*code_p = (struct gpu_code){.image = data, .owned = data};
	return result;
}
