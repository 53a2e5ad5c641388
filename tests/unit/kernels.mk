# SPDX-License-Identifier: MIT
# Unit tests of kernels/.

kernels_unit_tests = \
	tests/unit/test_coll_counts \
	tests/unit/test_coll_types \
	tests/unit/test_convert \
	tests/unit/test_device_plan \
	tests/unit/test_mxfp8 \
	tests/unit/test_mxfp8_error \
	tests/unit/test_mxfp8_shapes \
	tests/unit/test_mxfp8_vectors \
	tests/unit/test_reduce

mxfp8_ref = tests/unit/mxfp8_ref.c tests/unit/mxfp8_ref.h
mxfp8_golden = tests/unit/mxfp8_golden.c tests/unit/mxfp8_golden.h

check_PROGRAMS += $(kernels_unit_tests)
TESTS += $(kernels_unit_tests)

tests_unit_test_coll_counts_SOURCES = tests/unit/test_coll_counts.c
tests_unit_test_coll_counts_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_coll_counts_LDADD = librx_kernels.la $(CMOCKA_LIBS)

tests_unit_test_coll_types_SOURCES = tests/unit/test_coll_types.c
tests_unit_test_coll_types_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_coll_types_LDADD = librx_kernels.la $(CMOCKA_LIBS)

tests_unit_test_convert_SOURCES = tests/unit/test_convert.c
tests_unit_test_convert_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_convert_LDADD = librx_oracle.la librx_kernels.la $(CMOCKA_LIBS) -lm

tests_unit_test_device_plan_SOURCES = tests/unit/test_device_plan.c
tests_unit_test_device_plan_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_device_plan_LDADD = librx_kernels.la $(CMOCKA_LIBS)

tests_unit_test_mxfp8_SOURCES = tests/unit/test_mxfp8.c $(mxfp8_ref)
tests_unit_test_mxfp8_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_mxfp8_LDADD = librx_oracle.la librx_kernels.la $(CMOCKA_LIBS) -lm

tests_unit_test_mxfp8_error_SOURCES = tests/unit/test_mxfp8_error.c $(mxfp8_ref)
tests_unit_test_mxfp8_error_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_mxfp8_error_LDADD = librx_oracle.la librx_kernels.la $(CMOCKA_LIBS) -lm

tests_unit_test_mxfp8_shapes_SOURCES = tests/unit/test_mxfp8_shapes.c $(mxfp8_ref)
tests_unit_test_mxfp8_shapes_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_mxfp8_shapes_LDADD = librx_oracle.la librx_kernels.la $(CMOCKA_LIBS) -lm

tests_unit_test_mxfp8_vectors_SOURCES = tests/unit/test_mxfp8_vectors.c $(mxfp8_golden)
tests_unit_test_mxfp8_vectors_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_mxfp8_vectors_LDADD = librx_kernels.la $(CMOCKA_LIBS)
EXTRA_DIST += tests/unit/mxfp8_vectors.py tests/unit/mxfp8_vectors.txt tests/unit/mxint8_vectors.txt

tests_unit_test_reduce_SOURCES = tests/unit/test_reduce.c
tests_unit_test_reduce_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_reduce_LDADD = librx_oracle.la librx_kernels.la $(CMOCKA_LIBS) -lm
