/* SPDX-License-Identifier: MIT */
/* The runtime's library: found, opened, its functions looked up. */
#ifndef RX_GPU_SYM_H
#define RX_GPU_SYM_H

#include "gpu_api.h"
#include "../rx_backend.h"

#define GPU_MEMBER(member, needed, cuda, hip, parameters) int(*member) parameters;

/* NULL where this version of the library lacks an optional function. */
struct gpu_sym {
	GPU_SYMBOLS(GPU_MEMBER)
	GPU_ONLY_HIP(const char *(*error_name)(int code);)
};

/**
 * gpu_sym_load() - fill @sym
 * @library:     file name, or NULL for the usual ones
 * @loaded_only: take only what this process has loaded before
 *
 * The library is never closed again.
 * Return: RX_GPU_OK, or RX_GPU_E_ABSENT or _UNSUPPORTED with @error.
 */
RX_WARN_UNUSED int gpu_sym_load(
	struct gpu_sym *sym, const char *library, bool loaded_only, struct rx_gpu_error *error);

#endif
