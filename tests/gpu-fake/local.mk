# SPDX-License-Identifier: MIT
# A backend without a GPU, for what the daemon and the library do with one.

check_LTLIBRARIES += tests/gpu-fake/rcclx_backend_fake.la

tests_gpu_fake_rcclx_backend_fake_la_SOURCES = \
	tests/gpu-fake/fake.h \
	tests/gpu-fake/fake_backend.c
tests_gpu_fake_rcclx_backend_fake_la_LIBADD = librx_kernels.la librx_shm.la -lpthread
tests_gpu_fake_rcclx_backend_fake_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared \
	-rpath $(abs_builddir)/tests/gpu-fake

if HAVE_CMOCKA
gpu_fake_tests = tests/gpu-fake/test_gpu

check_PROGRAMS += $(gpu_fake_tests)
TESTS += $(gpu_fake_tests)

tests_gpu_fake_test_gpu_SOURCES = tests/gpu-fake/test_gpu.c
tests_gpu_fake_test_gpu_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_gpu_fake_test_gpu_LDADD = $(integration_libs)
endif
