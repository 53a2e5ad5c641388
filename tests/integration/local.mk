# SPDX-License-Identifier: MIT
# Integration tests: real daemons, real processes.

check_LTLIBRARIES += libtest_harness.la tests/fault/fail_nth.la

libtest_harness_la_SOURCES = \
	tests/integration/admin.c \
	tests/integration/admin.h \
	tests/integration/bystander.c \
	tests/integration/bystander.h \
	tests/integration/coll_case.c \
	tests/integration/coll_case.h \
	tests/integration/harness.c \
	tests/integration/harness.h \
	tests/integration/matrix.c \
	tests/integration/matrix.h \
	tests/integration/node.c \
	tests/integration/node.h \
	tests/integration/proc.c \
	tests/integration/proc.h \
	tests/integration/raw.c \
	tests/integration/raw.h \
	tests/integration/world.c \
	tests/integration/world.h
libtest_harness_la_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)

# Preloaded into daemons: -rpath makes libtool build a shared object of it.
tests_fault_fail_nth_la_SOURCES = tests/fault/fail_nth.c tests/fault/fail_nth.h
tests_fault_fail_nth_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared \
	-rpath $(abs_builddir)/tests/fault

integration_tests = \
	tests/integration/test_align \
	tests/integration/test_allreduce \
	tests/integration/test_async \
	tests/integration/test_barrier \
	tests/integration/test_churn \
	tests/integration/test_colls \
	tests/integration/test_colls_failure \
	tests/integration/test_colls_mismatch \
	tests/integration/test_daemon_death \
	tests/integration/test_fault \
	tests/integration/test_fork \
	tests/integration/test_hostile \
	tests/integration/test_hostile_peer \
	tests/integration/test_hostile_ring \
	tests/integration/test_idle \
	tests/integration/test_large \
	tests/integration/test_large_colls \
	tests/integration/test_lifecycle \
	tests/integration/test_limits \
	tests/integration/test_lowprec \
	tests/integration/test_mismatch \
	tests/integration/test_more_than_fits \
	tests/integration/test_namespace \
	tests/integration/test_peer_death \
	tests/integration/test_single_copy \
	tests/integration/test_threads \
	tests/integration/test_waiting

check_PROGRAMS += $(integration_tests)
TESTS += $(integration_tests)

integration_libs = libtest_harness.la librx_oracle.la librcclx.la librx_proto.la librx_kernels.la \
	librx_shm.la $(PROTOBUF_C_LIBS) $(CMOCKA_LIBS) -lpthread -lm

tests_integration_test_align_LDADD = $(integration_libs)
tests_integration_test_allreduce_LDADD = $(integration_libs)
tests_integration_test_colls_LDADD = $(integration_libs)
tests_integration_test_waiting_LDADD = $(integration_libs)
tests_integration_test_colls_failure_LDADD = $(integration_libs)
tests_integration_test_colls_mismatch_LDADD = $(integration_libs)
tests_integration_test_async_LDADD = $(integration_libs)
tests_integration_test_barrier_LDADD = $(integration_libs)
tests_integration_test_churn_LDADD = $(integration_libs)
tests_integration_test_daemon_death_LDADD = $(integration_libs)
tests_integration_test_fault_LDADD = $(integration_libs)
tests_integration_test_fork_LDADD = $(integration_libs)
tests_integration_test_hostile_LDADD = $(integration_libs)
tests_integration_test_hostile_peer_LDADD = $(integration_libs)
tests_integration_test_hostile_ring_LDADD = $(integration_libs)
tests_integration_test_idle_LDADD = $(integration_libs)
tests_integration_test_large_LDADD = $(integration_libs)
tests_integration_test_large_colls_LDADD = $(integration_libs)
tests_integration_test_lifecycle_LDADD = $(integration_libs)
tests_integration_test_limits_LDADD = $(integration_libs)
tests_integration_test_lowprec_LDADD = $(integration_libs)
tests_integration_test_mismatch_LDADD = $(integration_libs)
tests_integration_test_more_than_fits_LDADD = $(integration_libs)
tests_integration_test_namespace_LDADD = $(integration_libs)
tests_integration_test_peer_death_LDADD = $(integration_libs)
tests_integration_test_single_copy_LDADD = $(integration_libs)
tests_integration_test_threads_LDADD = $(integration_libs)

include tests/integration/nccl.mk
include tests/integration/tools.mk
include tests/stress/local.mk
