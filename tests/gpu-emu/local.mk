# SPDX-License-Identifier: MIT
# A test double of the GPU runtimes, and the tests of the backends on it.

check_LTLIBRARIES += gpu_emu_hip.la gpu_emu_cuda.la

gpu_emu_sources = \
	tests/gpu-emu/emu.c \
	tests/gpu-emu/emu.h \
	tests/gpu-emu/emu_stream.c

# With an rpath libtool makes something that can be loaded.
gpu_emu_ldflags = $(AM_LDFLAGS) -module -avoid-version -shared -rpath /nowhere

gpu_emu_hip_la_SOURCES = $(gpu_emu_sources)
gpu_emu_hip_la_CPPFLAGS = $(AM_CPPFLAGS) -DRX_GPU_HIP
gpu_emu_hip_la_LDFLAGS = $(gpu_emu_ldflags)

gpu_emu_cuda_la_SOURCES = $(gpu_emu_sources)
gpu_emu_cuda_la_CPPFLAGS = $(AM_CPPFLAGS) -DRX_GPU_CUDA
gpu_emu_cuda_la_LDFLAGS = $(gpu_emu_ldflags)

check_PROGRAMS += tests/gpu-emu/test_gpu_backend
TESTS += tests/gpu-emu/test_gpu_backend

tests_gpu_emu_test_gpu_backend_SOURCES = tests/gpu-emu/test_gpu_backend.c
tests_gpu_emu_test_gpu_backend_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_gpu_emu_test_gpu_backend_LDADD = $(CMOCKA_LIBS)

EXTRA_DIST += tests/gpu/backend.c tests/gpu/backend.sh tests/gpu/backend_words.cu
