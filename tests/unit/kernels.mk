# SPDX-License-Identifier: MIT
# Unit tests of kernels/.

kernels_unit_tests = \
	tests/unit/test_coll_types \
	tests/unit/test_convert \
	tests/unit/test_reduce

check_PROGRAMS += $(kernels_unit_tests)
TESTS += $(kernels_unit_tests)

tests_unit_test_coll_types_SOURCES = tests/unit/test_coll_types.c
tests_unit_test_coll_types_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_coll_types_LDADD = librx_kernels.la $(CMOCKA_LIBS)

tests_unit_test_convert_SOURCES = tests/unit/test_convert.c
tests_unit_test_convert_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_convert_LDADD = librx_oracle.la librx_kernels.la $(CMOCKA_LIBS) -lm

tests_unit_test_reduce_SOURCES = tests/unit/test_reduce.c
tests_unit_test_reduce_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_reduce_LDADD = librx_oracle.la librx_kernels.la $(CMOCKA_LIBS) -lm
