#!/bin/bash
# SPDX-License-Identifier: MIT
# kernels/gpu/gpu_api.h says what the runtimes' own headers say, where those are installed.
. "$(dirname "$0")/lib.sh"
cc=${CC:-gcc}
n=0

# check FLAVOUR INCLUDE... : compiles the assertions read from standard input
check() {
	local flavour=$1
	shift
	# shellcheck disable=SC2086 # CC may have options
	{ printf '#include "kernels/gpu/gpu_api.h"\n'; cat; } |
		$cc -std=gnu17 -D_GNU_SOURCE "-DRX_GPU_$flavour" -I. "$@" -fsyntax-only -w -x c -
	echo "$flavour: as in the header"
	n=$((n + 1))
}

cuda=${CUDA_INCLUDE:-/usr/local/cuda/include}
if [ -e "$cuda/cuda.h" ]; then
	check CUDA -I"$cuda" <<'END'
#include <cuda.h>
#include <stddef.h>
#define SAME(a, b) _Static_assert((int)(a) == (int)(b), #a)
SAME(GPU_LOCATION_DEVICE, CU_MEM_LOCATION_TYPE_DEVICE);
SAME(GPU_ACCESS_READ_WRITE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
SAME(GPU_HANDLE_TYPE_FD, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
SAME(GPU_IPC_LAZY_PEER, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
SAME(GPU_HOST_PORTABLE_MAPPED, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
SAME(GPU_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
SAME(GPU_CAPTURE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
SAME(GPU_WAIT_GEQ, CU_STREAM_WAIT_VALUE_GEQ);
SAME(GPU_WAIT_EQ, CU_STREAM_WAIT_VALUE_EQ);
SAME(GPU_PEER_ATOMICS, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED);
SAME(GPU_ATTR_UNITS, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
SAME(GPU_ATTR_WARP, CU_DEVICE_ATTRIBUTE_WARP_SIZE);
SAME(GPU_ATTR_STREAM_MEM, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS);
SAME(GPU_ATTR_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME(GPU_ATTR_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME(GPU_ATTR_FD, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
SAME(GPU_POINTER_CONTEXT, CU_POINTER_ATTRIBUTE_CONTEXT);
SAME(GPU_POINTER_TYPE, CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
SAME(GPU_POINTER_ID, CU_POINTER_ATTRIBUTE_BUFFER_ID);
SAME(GPU_POINTER_MANAGED, CU_POINTER_ATTRIBUTE_IS_MANAGED);
SAME(GPU_POINTER_DEVICE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
SAME(GPU_POINTER_IPC, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE);
SAME(GPU_POINTER_POOL, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE);
SAME(GPU_POINTER_BLOCK_ID, CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID);
SAME(GPU_MEMORY_TYPE_DEVICE, CU_MEMORYTYPE_DEVICE);
SAME(GPU_LAUNCH_ARGS, (long)CU_LAUNCH_PARAM_BUFFER_POINTER);
SAME(GPU_LAUNCH_ARGS_BYTES, (long)CU_LAUNCH_PARAM_BUFFER_SIZE);
SAME(GPU_LAUNCH_END, (long)CU_LAUNCH_PARAM_END);
SAME(GPU_NOT_READY, CUDA_ERROR_NOT_READY);
SAME(GPU_NOT_SUPPORTED, CUDA_ERROR_NOT_SUPPORTED);
SAME(sizeof(struct gpu_ipc_handle), sizeof(CUipcMemHandle));
SAME(sizeof(struct gpu_access), sizeof(CUmemAccessDesc));
SAME(sizeof(struct gpu_rows_cuda), sizeof(CUDA_MEMCPY2D));
SAME(offsetof(struct gpu_rows_cuda, to_device), offsetof(CUDA_MEMCPY2D, dstDevice));
SAME(offsetof(struct gpu_rows_cuda, width), offsetof(CUDA_MEMCPY2D, WidthInBytes));
END
fi

hip=${HIP_INCLUDE:-/usr/include}
if [ -e "$hip/hip/hip_runtime_api.h" ]; then
	check HIP -I"$hip" -D__HIP_PLATFORM_AMD__ <<'END'
#include <hip/hip_runtime_api.h>
#define SAME(a, b) _Static_assert((int)(a) == (int)(b), #a)
SAME(GPU_LOCATION_DEVICE, hipMemLocationTypeDevice);
SAME(GPU_ACCESS_READ_WRITE, hipMemAccessFlagsProtReadWrite);
SAME(GPU_HANDLE_TYPE_FD, hipMemHandleTypePosixFileDescriptor);
SAME(GPU_HOST_PORTABLE_MAPPED, hipHostRegisterPortable | hipHostRegisterMapped);
SAME(GPU_STREAM_NON_BLOCKING, hipStreamNonBlocking);
SAME(GPU_CAPTURE_THREAD_LOCAL, hipStreamCaptureModeThreadLocal);
SAME(GPU_WAIT_GEQ, hipStreamWaitValueGte);
SAME(GPU_WAIT_EQ, hipStreamWaitValueEq);
SAME(GPU_ALLOC_FINE_GRAINED, hipDeviceMallocFinegrained);
SAME(GPU_MEMCPY_DEFAULT, hipMemcpyDefault);
SAME(GPU_PEER_ATOMICS, hipDevP2PAttrNativeAtomicSupported);
SAME(GPU_ATTR_UNITS, hipDeviceAttributeMultiprocessorCount);
SAME(GPU_ATTR_WARP, hipDeviceAttributeWarpSize);
SAME(GPU_ATTR_STREAM_MEM, hipDeviceAttributeCanUseStreamWaitValue);
SAME(GPU_POINTER_TYPE, HIP_POINTER_ATTRIBUTE_MEMORY_TYPE);
SAME(GPU_POINTER_ID, HIP_POINTER_ATTRIBUTE_BUFFER_ID);
SAME(GPU_POINTER_MANAGED, HIP_POINTER_ATTRIBUTE_IS_MANAGED);
SAME(GPU_POINTER_DEVICE, HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
SAME(GPU_POINTER_POOL, HIP_POINTER_ATTRIBUTE_MEMPOOL_HANDLE);
SAME(GPU_LAUNCH_END, (long)HIP_LAUNCH_PARAM_END);
SAME(GPU_NOT_READY, hipErrorNotReady);
SAME(GPU_NOT_SUPPORTED, hipErrorNotSupported);
SAME(sizeof(struct gpu_ipc_handle), sizeof(hipIpcMemHandle_t));
SAME(sizeof(struct gpu_access), sizeof(hipMemAccessDesc));
END
fi
[ "$n" -gt 0 ] || { echo "skipped: neither cuda.h nor hip_runtime_api.h is installed"; exit 77; }
