# SPDX-License-Identifier: MIT
# Unit tests of shm/ and the models of its handshakes.

shm_unit_tests = \
	tests/unit/test_abi \
	tests/unit/test_fabric \
	tests/unit/test_idmap \
	tests/unit/test_list \
	tests/unit/test_log \
	tests/unit/test_map \
	tests/unit/test_memfd \
	tests/unit/test_ring \
	tests/unit/test_wake

check_PROGRAMS += $(shm_unit_tests)
TESTS += $(shm_unit_tests)

shm_unit_common = tests/unit/shm_region.h tests/unit/shm_util.h
shm_unit_libs = librx_shm.la $(CMOCKA_LIBS) -lpthread

tests_unit_test_abi_SOURCES = tests/unit/test_abi.c $(shm_unit_common)
tests_unit_test_abi_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_abi_LDADD = $(shm_unit_libs)

tests_unit_test_fabric_SOURCES = tests/unit/test_fabric.c $(shm_unit_common)
tests_unit_test_fabric_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_fabric_LDADD = $(shm_unit_libs)

tests_unit_test_idmap_SOURCES = tests/unit/test_idmap.c $(shm_unit_common)
tests_unit_test_idmap_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_idmap_LDADD = $(shm_unit_libs)
tests_unit_test_idmap_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=reallocarray

tests_unit_test_list_SOURCES = tests/unit/test_list.c $(shm_unit_common)
tests_unit_test_list_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_list_LDADD = $(shm_unit_libs)

tests_unit_test_log_SOURCES = tests/unit/test_log.c $(shm_unit_common)
tests_unit_test_log_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_log_LDADD = $(shm_unit_libs)
tests_unit_test_log_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=send

tests_unit_test_map_SOURCES = tests/unit/test_map.c $(shm_unit_common)
tests_unit_test_map_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_map_LDADD = $(shm_unit_libs)
tests_unit_test_map_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=madvise

tests_unit_test_memfd_SOURCES = tests/unit/test_memfd.c $(shm_unit_common)
tests_unit_test_memfd_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_memfd_LDADD = $(shm_unit_libs)
tests_unit_test_memfd_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=memfd_create -Wl,--wrap=fchmod \
	-Wl,--wrap=ftruncate -Wl,--wrap=fallocate -Wl,--wrap=fcntl

tests_unit_test_ring_SOURCES = tests/unit/test_ring.c $(shm_unit_common)
tests_unit_test_ring_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_ring_LDADD = $(shm_unit_libs)

tests_unit_test_wake_SOURCES = tests/unit/test_wake.c $(shm_unit_common)
tests_unit_test_wake_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_wake_LDADD = $(shm_unit_libs)

# The models: a mutation that a model does not notice is a failure too.
dist_check_SCRIPTS += tests/model/run.sh
TESTS += tests/model/run.sh
EXTRA_DIST += tests/model/ring.pml tests/model/sleep.pml

# The real rx_ring.c, with each of its atomic accesses under the control of a search.
check_PROGRAMS += tests/model/interleave
TESTS += tests/model/interleave
tests_model_interleave_SOURCES = tests/model/hook.h tests/model/interleave.c shm/rx_map.c shm/rx_ring.c
tests_model_interleave_CPPFLAGS = $(AM_CPPFLAGS) -include $(srcdir)/tests/model/hook.h
