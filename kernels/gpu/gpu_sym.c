/* SPDX-License-Identifier: MIT */
#include "gpu_sym.h"
#include "gpu_error.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

/* In the order in which they are tried. */
static const char *const usual_names[] = {GPU_ONLY_CUDA("libcuda.so.1") GPU_ONLY_HIP(
	"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so")};

#define PART_OF_NAME GPU_PICK("libcuda.so", "libamdhip64")
#define KNOWN_BY     GPU_PICK("cuInit", "hipInit")

struct search {
	char *path;
};

/* Wheels bring the runtime under names of their own, and load it for themselves. */
static int is_runtime(struct dl_phdr_info *info, size_t size, void *data)
{
	struct search *search = data;
	const char *slash = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
	const char *file = slash ? slash + 1 : info->dlpi_name;

	(void)size;
	if (!file || strncmp(file, PART_OF_NAME, strlen(PART_OF_NAME)) != 0)
		return 0;
	search->path = strdup(info->dlpi_name);
	return 1;
}

static void *open_loaded(void)
{
	struct search search = {0};
	void *handle = NULL;

	(void)dl_iterate_phdr(is_runtime, &search);
	if (search.path)
		handle = dlopen(search.path, RTLD_NOW | RTLD_NOLOAD);
	free(search.path);
	if (!handle && dlsym(RTLD_DEFAULT, KNOWN_BY))
		handle = dlopen(NULL, RTLD_NOW);
	return handle;
}

static void *open_library(const char *library, bool loaded_only)
{
	void *handle = NULL;

	if (library)
		return dlopen(library, RTLD_NOW | (loaded_only ? RTLD_NOLOAD : 0));
	handle = open_loaded();
	for (size_t i = 0; !handle && !loaded_only && i < RX_ARRAY_SIZE(usual_names); i++)
		handle = dlopen(usual_names[i], RTLD_NOW);
	return handle;
}

/* A function pointer has the size of a data pointer wherever there is dlsym(). */
static bool look_up(void *handle, const char *name, void *member_p)
{
	void *address = dlsym(handle, name);

	memcpy(member_p, &address, sizeof(address));
	return address != NULL;
}

int gpu_sym_load(
	struct gpu_sym *sym, const char *library, bool loaded_only, struct rx_gpu_error *error)
{
	void *handle = open_library(library, loaded_only);
	const char *missing = NULL;

	if (!handle && loaded_only)
		return gpu_fail(error, RX_GPU_E_ABSENT, 0,
			"this process has not loaded the " GPU_NAME " runtime");
	if (!handle)
		return gpu_fail(error, RX_GPU_E_ABSENT, 0,
			"no " GPU_NAME " runtime: %s cannot be opened; install %s",
			library ? library : usual_names[0],
			GPU_PICK("NVIDIA's driver", "ROCm (libamdhip64)"));
	memset(sym, 0, sizeof(*sym));
#define LOOK_UP(member, needed, cuda, hip, parameters)                                             \
	if (!look_up(handle, GPU_PICK(cuda, hip), &sym->member) && (needed) && !missing)           \
		missing = GPU_PICK(cuda, hip);
	GPU_SYMBOLS(LOOK_UP)
	GPU_ONLY_HIP(if (!look_up(handle, "hipGetErrorName", &sym->error_name) && !missing)
			     missing = "hipGetErrorName";)
	if (missing)
		return gpu_fail(error, RX_GPU_E_UNSUPPORTED, 0,
			"the " GPU_NAME " runtime has no function %s: it is too old, or too new",
			missing);
	return RX_GPU_OK;
}
