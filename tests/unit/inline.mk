# SPDX-License-Identifier: MIT
# The plan, and the inline executor with ranks as threads.

inline_unit_tests = tests/unit/test_coll_plan tests/unit/test_inline
check_PROGRAMS += $(inline_unit_tests)
TESTS += $(inline_unit_tests)

tests_unit_test_coll_plan_SOURCES = tests/unit/test_coll_plan.c
tests_unit_test_coll_plan_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_coll_plan_LDADD = librx_kernels.la $(CMOCKA_LIBS)

tests_unit_test_inline_SOURCES = tests/unit/test_inline.c $(inline_sources)
tests_unit_test_inline_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_inline_LDADD = librx_kernels.la librx_shm.la $(CMOCKA_LIBS) -lpthread
