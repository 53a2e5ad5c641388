# SPDX-License-Identifier: MIT
# GPU backends: one source, once for each runtime. They link no GPU library.

pkglib_LTLIBRARIES += rcclx_backend_hip.la rcclx_backend_cuda.la

gpu_sources = \
	kernels/device/device_abi.h \
	kernels/gpu/gpu_absent.c \
	kernels/gpu/gpu_api.h \
	kernels/gpu/gpu_backend.c \
	kernels/gpu/gpu_code.c \
	kernels/gpu/gpu_context.c \
	kernels/gpu/gpu_device.c \
	kernels/gpu/gpu_error.c \
	kernels/gpu/gpu_error.h \
	kernels/gpu/gpu_impl.h \
	kernels/gpu/gpu_map.c \
	kernels/gpu/gpu_map_new.c \
	kernels/gpu/gpu_memory.c \
	kernels/gpu/gpu_open.c \
	kernels/gpu/gpu_owner.c \
	kernels/gpu/gpu_prove.c \
	kernels/gpu/gpu_run.c \
	kernels/gpu/gpu_sym.c \
	kernels/gpu/gpu_sym.h \
	kernels/rx_backend.h

# Never unloaded, whoever closes it: runtimes have threads and exit handlers.
gpu_ldflags = $(AM_LDFLAGS) -module -avoid-version -shared -Wl,-z,nodelete -Wl,-z,defs

rcclx_backend_hip_la_SOURCES = $(gpu_sources)
rcclx_backend_hip_la_CPPFLAGS = $(AM_CPPFLAGS) -DRX_GPU_HIP
rcclx_backend_hip_la_LDFLAGS = $(gpu_ldflags)

rcclx_backend_cuda_la_SOURCES = $(gpu_sources)
rcclx_backend_cuda_la_CPPFLAGS = $(AM_CPPFLAGS) -DRX_GPU_CUDA
rcclx_backend_cuda_la_LDFLAGS = $(gpu_ldflags)

# What the compilers that configure found made of kernels/device. (Named by a variable, automake
# does not take this for the rule that makes the object.)
hip_with_code = kernels/gpu/rcclx_backend_hip_la-gpu_code.lo
cuda_with_code = kernels/gpu/rcclx_backend_cuda_la-gpu_code.lo

if HAVE_HIP_CODE
rcclx_backend_hip_la_CPPFLAGS += -DRX_GPU_CODE_LIST='"kernels/device/code_hip.inc"'
$(hip_with_code): kernels/device/code_hip.inc
endif

if HAVE_CUDA_CODE
rcclx_backend_cuda_la_CPPFLAGS += -DRX_GPU_CODE_LIST='"kernels/device/code_cuda.inc"'
$(cuda_with_code): kernels/device/code_cuda.inc
endif
