/* SPDX-License-Identifier: MIT */
/* The test double's functions, declared under the runtime's symbols. */
#ifndef RX_GPU_EMU_H
#define RX_GPU_EMU_H

#include "../../kernels/gpu/gpu_api.h"

#define EMU_N_DEVICES 8
#define EMU_EXPORT    __attribute__((visibility("default")))

#define EMU_DECLARE(member, needed, cuda, hip, parameters)                                         \
	EMU_EXPORT int emu_##member parameters __asm__(GPU_PICK(cuda, hip));
GPU_SYMBOLS(EMU_DECLARE)

/* For tests: what an owner's allocator does with cuMemCreate() and hipMemCreate(). */
EMU_EXPORT int emu_virtual_alloc(uint64_t *address_p, size_t bytes, uint32_t n_pieces);

#endif
