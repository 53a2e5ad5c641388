# SPDX-License-Identifier: MIT
# The NCCL interface. The same tests once more against the header of a real NCCL, where there is one.

nccl_tests = tests/integration/test_nccl_colls tests/integration/test_nccl_comm
nccl_libs = client/nccl/libnccl.la $(integration_libs)
nccl_rank = tests/integration/nccl_rank.c tests/integration/nccl_rank.h

check_PROGRAMS += $(nccl_tests)
TESTS += $(nccl_tests)

tests_integration_test_nccl_colls_SOURCES = tests/integration/test_nccl_colls.c $(nccl_rank)
tests_integration_test_nccl_colls_LDADD = $(nccl_libs)
tests_integration_test_nccl_comm_SOURCES = tests/integration/test_nccl_comm.c $(nccl_rank)
tests_integration_test_nccl_comm_LDADD = $(nccl_libs)

if HAVE_NCCL_HEADER
real_nccl_tests = tests/integration/test_real_nccl_colls tests/integration/test_real_nccl_comm
check_PROGRAMS += $(real_nccl_tests)
TESTS += $(real_nccl_tests)
real_nccl_cppflags = $(AM_CPPFLAGS) $(NCCL_HEADER_CPPFLAGS) -DNCCL_HEADER='<nccl.h>'

tests_integration_test_real_nccl_colls_SOURCES = $(tests_integration_test_nccl_colls_SOURCES)
tests_integration_test_real_nccl_colls_CPPFLAGS = $(real_nccl_cppflags)
tests_integration_test_real_nccl_colls_LDADD = $(nccl_libs)
tests_integration_test_real_nccl_comm_SOURCES = $(tests_integration_test_nccl_comm_SOURCES)
tests_integration_test_real_nccl_comm_CPPFLAGS = $(real_nccl_cppflags)
tests_integration_test_real_nccl_comm_LDADD = $(nccl_libs)
endif

dist_check_SCRIPTS += tests/integration/nccl_ways.sh
EXTRA_DIST += tests/integration/nccl_client.py
TESTS += tests/integration/nccl_ways.sh
