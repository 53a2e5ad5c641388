/* SPDX-License-Identifier: MIT */
#include "gpu_error.h"

#include <stdarg.h>
#include <stdio.h>

int gpu_fail(struct rx_gpu_error *error, int result, int native, const char *format, ...)
{
	va_list args;

	if (!error)
		return result;
	error->result = (uint32_t)result;
	error->native = native;
	va_start(args, format);
	(void)vsnprintf(error->text, sizeof(error->text), format, args);
	va_end(args);
	return result;
}

bool gpu_is_lost(int native)
{
	switch (native) {
	case 46:   /* device unavailable */
	case 214:  /* memory error that could not be corrected */
	case 220:  /* the same on a link */
	case 700:  /* illegal address */
	case 702:  /* kernel timed out */
	case 709:  /* context is destroyed */
	case 710:  /* assertion */
	case 714:  /* stack error */
	case 715:  /* illegal instruction */
	case 716:  /* misaligned address */
	case 717:  /* invalid address space */
	case 718:  /* invalid program counter */
	case 719:  /* launch failure */
	case 999:  /* unknown */
	case 1052: /* the runtime below failed */
	case 1053:
		return true;
	default:
		return false;
	}
}

static int from_native(int native)
{
	switch (native) {
	case GPU_SUCCESS:
		return RX_GPU_OK;
	case GPU_NOT_READY:
		return RX_GPU_BUSY;
	case GPU_INVALID_VALUE:
		return RX_GPU_E_INVALID;
	case GPU_OUT_OF_MEMORY:
		return RX_GPU_E_MEMORY;
	case GPU_NO_DEVICE:
		return RX_GPU_E_ABSENT;
	case GPU_NO_BINARY:
	case GPU_NOT_FOUND:
	case GPU_NOT_SUPPORTED:
		return RX_GPU_E_UNSUPPORTED;
	case GPU_NOT_PERMITTED:
		return RX_GPU_E_PERMISSION;
	default:
		return gpu_is_lost(native) ? RX_GPU_E_DEVICE : RX_GPU_E_FAILED;
	}
}

int gpu_check(const struct gpu_sym *sym, int native, const char *what, struct rx_gpu_error *error)
{
	const char *name = NULL;
	int result = from_native(native);

	if (result == RX_GPU_OK || result == RX_GPU_BUSY)
		return result;
	GPU_ONLY_HIP(name = sym->error_name(native);)
	GPU_ONLY_CUDA(if (sym->error_name(native, &name) != GPU_SUCCESS) name = NULL;)
	return gpu_fail(error, result, native, "%s: " GPU_NAME " error %d (%s)", what, native,
		name ? name : "without a name");
}
