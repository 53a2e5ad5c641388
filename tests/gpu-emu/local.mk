# SPDX-License-Identifier: MIT
# A test double of the GPU runtimes, and the tests of the backends on it.

check_LTLIBRARIES += gpu_emu_hip.la gpu_emu_cuda.la

gpu_emu_sources = \
	tests/gpu-emu/emu.h \
	tests/gpu-emu/emu_device.c \
	tests/gpu-emu/emu_graph.c \
	tests/gpu-emu/emu_kernel.c \
	tests/gpu-emu/emu_memory.c \
	tests/gpu-emu/emu_stream.c \
	tests/gpu-emu/emu_user.c \
	tests/gpu-emu/emu_user.h

# With an rpath libtool makes something that can be loaded.
gpu_emu_ldflags = $(AM_LDFLAGS) -module -avoid-version -shared -rpath /nowhere

gpu_emu_hip_la_SOURCES = $(gpu_emu_sources)
gpu_emu_hip_la_CPPFLAGS = $(AM_CPPFLAGS) -DRX_GPU_HIP
gpu_emu_hip_la_LIBADD = librx_gpu_cpu.la
gpu_emu_hip_la_LDFLAGS = $(gpu_emu_ldflags)

gpu_emu_cuda_la_SOURCES = $(gpu_emu_sources)
gpu_emu_cuda_la_CPPFLAGS = $(AM_CPPFLAGS) -DRX_GPU_CUDA
gpu_emu_cuda_la_LIBADD = librx_gpu_cpu.la
gpu_emu_cuda_la_LDFLAGS = $(gpu_emu_ldflags)

gpu_emu_tests = tests/gpu-emu/test_gpu_backend tests/gpu-emu/test_gpu_run
backend_fixture = tests/gpu-emu/backend_fixture.c tests/gpu-emu/backend_fixture.h

check_PROGRAMS += $(gpu_emu_tests)
TESTS += $(gpu_emu_tests)

tests_gpu_emu_test_gpu_backend_SOURCES = tests/gpu-emu/test_gpu_backend.c $(backend_fixture)
tests_gpu_emu_test_gpu_backend_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_gpu_emu_test_gpu_backend_LDADD = $(CMOCKA_LIBS)

tests_gpu_emu_test_gpu_run_SOURCES = tests/gpu-emu/test_gpu_run.c $(backend_fixture)
tests_gpu_emu_test_gpu_run_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_gpu_emu_test_gpu_run_LDADD = $(CMOCKA_LIBS)

# Real daemons and processes.
if HAVE_CMOCKA
gpu_emu_daemon_tests = \
	tests/gpu-emu/test_gpu_colls_cuda \
	tests/gpu-emu/test_gpu_colls_hip \
	tests/gpu-emu/test_gpu_faults_cuda \
	tests/gpu-emu/test_gpu_faults_hip \
	tests/gpu-emu/test_gpu_kernels_inline_cuda \
	tests/gpu-emu/test_gpu_kernels_inline_hip \
	tests/gpu-emu/test_gpu_lowprec_cuda \
	tests/gpu-emu/test_gpu_lowprec_hip \
	tests/gpu-emu/test_gpu_nccl_cuda \
	tests/gpu-emu/test_gpu_nccl_hip \
	tests/gpu-emu/test_gpu_rank_kernels_cuda \
	tests/gpu-emu/test_gpu_rank_kernels_hip \
	tests/gpu-emu/test_gpu_stream_cuda \
	tests/gpu-emu/test_gpu_stream_hip
gpu_node = tests/gpu-emu/gpu_node.c tests/gpu-emu/gpu_node.h

check_PROGRAMS += $(gpu_emu_daemon_tests)
TESTS += $(gpu_emu_daemon_tests)

gpu_emu_cuda_flags = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) -DTEST_FAMILY='"cuda"'
gpu_emu_hip_flags = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) -DTEST_FAMILY='"hip"'

tests_gpu_emu_test_gpu_colls_cuda_SOURCES = tests/gpu-emu/test_gpu_colls.c $(gpu_node)
tests_gpu_emu_test_gpu_colls_cuda_CPPFLAGS = $(gpu_emu_cuda_flags)
tests_gpu_emu_test_gpu_colls_cuda_LDADD = $(integration_libs)

tests_gpu_emu_test_gpu_colls_hip_SOURCES = tests/gpu-emu/test_gpu_colls.c $(gpu_node)
tests_gpu_emu_test_gpu_colls_hip_CPPFLAGS = $(gpu_emu_hip_flags)
tests_gpu_emu_test_gpu_colls_hip_LDADD = $(integration_libs)

tests_gpu_emu_test_gpu_faults_cuda_SOURCES = tests/gpu-emu/test_gpu_faults.c $(gpu_node)
tests_gpu_emu_test_gpu_faults_cuda_CPPFLAGS = $(gpu_emu_cuda_flags)
tests_gpu_emu_test_gpu_faults_cuda_LDADD = $(integration_libs)

tests_gpu_emu_test_gpu_faults_hip_SOURCES = tests/gpu-emu/test_gpu_faults.c $(gpu_node)
tests_gpu_emu_test_gpu_faults_hip_CPPFLAGS = $(gpu_emu_hip_flags)
tests_gpu_emu_test_gpu_faults_hip_LDADD = $(integration_libs)

tests_gpu_emu_test_gpu_kernels_inline_cuda_SOURCES = tests/gpu-emu/test_gpu_kernels_inline.c $(gpu_node)
tests_gpu_emu_test_gpu_kernels_inline_cuda_CPPFLAGS = $(gpu_emu_cuda_flags)
tests_gpu_emu_test_gpu_kernels_inline_cuda_LDADD = $(integration_libs)

tests_gpu_emu_test_gpu_kernels_inline_hip_SOURCES = tests/gpu-emu/test_gpu_kernels_inline.c $(gpu_node)
tests_gpu_emu_test_gpu_kernels_inline_hip_CPPFLAGS = $(gpu_emu_hip_flags)
tests_gpu_emu_test_gpu_kernels_inline_hip_LDADD = $(integration_libs)

tests_gpu_emu_test_gpu_lowprec_cuda_SOURCES = tests/gpu-emu/test_gpu_lowprec.c $(gpu_node)
tests_gpu_emu_test_gpu_lowprec_cuda_CPPFLAGS = $(gpu_emu_cuda_flags)
tests_gpu_emu_test_gpu_lowprec_cuda_LDADD = $(integration_libs)

tests_gpu_emu_test_gpu_lowprec_hip_SOURCES = tests/gpu-emu/test_gpu_lowprec.c $(gpu_node)
tests_gpu_emu_test_gpu_lowprec_hip_CPPFLAGS = $(gpu_emu_hip_flags)
tests_gpu_emu_test_gpu_lowprec_hip_LDADD = $(integration_libs)

gpu_nccl = tests/gpu-emu/test_gpu_nccl.c $(gpu_node) $(nccl_rank)

tests_gpu_emu_test_gpu_nccl_cuda_SOURCES = $(gpu_nccl)
tests_gpu_emu_test_gpu_nccl_cuda_CPPFLAGS = $(gpu_emu_cuda_flags)
tests_gpu_emu_test_gpu_nccl_cuda_LDADD = $(nccl_libs)

tests_gpu_emu_test_gpu_nccl_hip_SOURCES = $(gpu_nccl)
tests_gpu_emu_test_gpu_nccl_hip_CPPFLAGS = $(gpu_emu_hip_flags)
tests_gpu_emu_test_gpu_nccl_hip_LDADD = $(nccl_libs)

tests_gpu_emu_test_gpu_rank_kernels_cuda_SOURCES = tests/gpu-emu/test_gpu_rank_kernels.c $(gpu_node)
tests_gpu_emu_test_gpu_rank_kernels_cuda_CPPFLAGS = $(gpu_emu_cuda_flags)
tests_gpu_emu_test_gpu_rank_kernels_cuda_LDADD = $(integration_libs)

tests_gpu_emu_test_gpu_rank_kernels_hip_SOURCES = tests/gpu-emu/test_gpu_rank_kernels.c $(gpu_node)
tests_gpu_emu_test_gpu_rank_kernels_hip_CPPFLAGS = $(gpu_emu_hip_flags)
tests_gpu_emu_test_gpu_rank_kernels_hip_LDADD = $(integration_libs)

tests_gpu_emu_test_gpu_stream_cuda_SOURCES = tests/gpu-emu/test_gpu_stream.c $(gpu_node)
tests_gpu_emu_test_gpu_stream_cuda_CPPFLAGS = $(gpu_emu_cuda_flags)
tests_gpu_emu_test_gpu_stream_cuda_LDADD = $(integration_libs)

tests_gpu_emu_test_gpu_stream_hip_SOURCES = tests/gpu-emu/test_gpu_stream.c $(gpu_node)
tests_gpu_emu_test_gpu_stream_hip_CPPFLAGS = $(gpu_emu_hip_flags)
tests_gpu_emu_test_gpu_stream_hip_LDADD = $(integration_libs)
endif

EXTRA_DIST += tests/gpu/backend.c tests/gpu/backend.sh tests/gpu/backend_words.cu \
	tests/gpu/bench.c tests/gpu/cuda_user.c tests/gpu/inline.c tests/gpu/inline.sh tests/gpu/multi.sh tests/gpu/multi_bench.py \
	tests/gpu/run.sh tests/gpu/times.c tests/gpu/torch.sh tests/gpu/torch_job.py

gpu_code_tests = \
	tests/gpu-emu/test_gpu_code_cuda \
	tests/gpu-emu/test_gpu_code_hip
check_PROGRAMS += $(gpu_code_tests)
TESTS += $(gpu_code_tests)

gpu_code_sources = \
	kernels/gpu/gpu_code.c \
	kernels/gpu/gpu_error.c \
	tests/gpu-emu/code_list.h \
	tests/gpu-emu/test_gpu_code.c
gpu_code_cppflags = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) -I$(srcdir) \
	-DRX_GPU_CODE_LIST='"tests/gpu-emu/code_list.h"'

tests_gpu_emu_test_gpu_code_cuda_SOURCES = $(gpu_code_sources)
tests_gpu_emu_test_gpu_code_cuda_CPPFLAGS = $(gpu_code_cppflags) -DRX_GPU_CUDA
tests_gpu_emu_test_gpu_code_cuda_LDADD = $(CMOCKA_LIBS)

tests_gpu_emu_test_gpu_code_hip_SOURCES = $(gpu_code_sources)
tests_gpu_emu_test_gpu_code_hip_CPPFLAGS = $(gpu_code_cppflags) -DRX_GPU_HIP
tests_gpu_emu_test_gpu_code_hip_LDADD = $(CMOCKA_LIBS)
