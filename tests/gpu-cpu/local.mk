# SPDX-License-Identifier: MIT
# GPU kernels on threads of the CPU.

check_LTLIBRARIES += librx_gpu_cpu.la
librx_gpu_cpu_la_SOURCES = \
	tests/gpu-cpu/gpu_cpu.c \
	tests/gpu-cpu/gpu_cpu.h \
	tests/gpu-cpu/kernels_cpu.c
# Vectors of any type are loaded and stored as words.
librx_gpu_cpu_la_CFLAGS = $(AM_CFLAGS) -fno-strict-aliasing -pthread
EXTRA_librx_gpu_cpu_la_DEPENDENCIES = $(device_sources)

check_PROGRAMS += tests/gpu-cpu/test_gpu_kernels
TESTS += tests/gpu-cpu/test_gpu_kernels

tests_gpu_cpu_test_gpu_kernels_SOURCES = \
	tests/gpu-cpu/gpu_runner.h \
	tests/gpu-cpu/runner_cpu.c \
	tests/gpu-cpu/test_gpu_kernels.c
tests_gpu_cpu_test_gpu_kernels_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_gpu_cpu_test_gpu_kernels_LDADD = \
	librx_gpu_cpu.la librx_oracle.la librx_kernels.la $(CMOCKA_LIBS) -lm

check_PROGRAMS += tests/gpu-cpu/test_gpu_mx
TESTS += tests/gpu-cpu/test_gpu_mx

tests_gpu_cpu_test_gpu_mx_SOURCES = tests/gpu-cpu/test_gpu_mx.c $(mxfp8_golden)
tests_gpu_cpu_test_gpu_mx_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_gpu_cpu_test_gpu_mx_LDADD = \
	librx_gpu_cpu.la librx_oracle.la librx_kernels.la $(CMOCKA_LIBS) -lm

check_PROGRAMS += tests/gpu-cpu/test_gpu_inline
TESTS += tests/gpu-cpu/test_gpu_inline

tests_gpu_cpu_test_gpu_inline_SOURCES = tests/gpu-cpu/test_gpu_inline.c
tests_gpu_cpu_test_gpu_inline_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_gpu_cpu_test_gpu_inline_LDADD = \
	librx_gpu_cpu.la librx_oracle.la librx_kernels.la $(CMOCKA_LIBS) -lm

dist_check_SCRIPTS += tests/gpu-cpu/mutations.sh
TESTS += tests/gpu-cpu/mutations.sh
EXTRA_DIST += tests/gpu-cpu/mutant.c tests/gpu-cpu/mutant_inline.c tests/gpu/mx.c tests/gpu/mx.sh

# The same on a device, where there is one.
check_PROGRAMS += tests/gpu/test_gpu_real
TESTS += tests/gpu/test_gpu_real

tests_gpu_test_gpu_real_SOURCES = \
	tests/gpu-cpu/gpu_runner.h \
	tests/gpu-cpu/test_gpu_kernels.c \
	tests/gpu/runner_real.c
tests_gpu_test_gpu_real_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_gpu_test_gpu_real_LDADD = \
	librx_oracle.la librx_kernels.la $(CMOCKA_LIBS) -lm
