# SPDX-License-Identifier: MIT
# Unit tests of client/, against a daemon that the tests play themselves.

client_unit_tests = \
	tests/unit/test_args \
	tests/unit/test_conn \
	tests/unit/test_err \
	tests/unit/test_mem \
	tests/unit/test_op \
	tests/unit/test_session

check_PROGRAMS += $(client_unit_tests)
TESTS += $(client_unit_tests)

client_unit_common = tests/unit/fake_daemon.c tests/unit/fake_daemon.h
client_unit_cppflags = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
client_unit_libs = librx_client.la librx_proto.la librx_kernels.la librx_shm.la \
	$(PROTOBUF_C_LIBS) $(CMOCKA_LIBS) -lpthread

tests_unit_test_args_SOURCES = tests/unit/test_args.c $(client_unit_common)
tests_unit_test_args_CPPFLAGS = $(client_unit_cppflags)
tests_unit_test_args_LDADD = $(client_unit_libs)

tests_unit_test_conn_SOURCES = tests/unit/test_conn.c $(client_unit_common)
tests_unit_test_conn_CPPFLAGS = $(client_unit_cppflags)
tests_unit_test_conn_LDADD = $(client_unit_libs)

tests_unit_test_err_SOURCES = tests/unit/test_err.c $(client_unit_common)
tests_unit_test_err_CPPFLAGS = $(client_unit_cppflags)
tests_unit_test_err_LDADD = $(client_unit_libs)

tests_unit_test_mem_SOURCES = tests/unit/test_mem.c $(client_unit_common)
tests_unit_test_mem_CPPFLAGS = $(client_unit_cppflags)
tests_unit_test_mem_LDADD = $(client_unit_libs)

tests_unit_test_op_SOURCES = tests/unit/test_op.c $(client_unit_common)
tests_unit_test_op_CPPFLAGS = $(client_unit_cppflags)
tests_unit_test_op_LDADD = $(client_unit_libs)

tests_unit_test_session_SOURCES = tests/unit/test_session.c $(client_unit_common)
tests_unit_test_session_CPPFLAGS = $(client_unit_cppflags)
tests_unit_test_session_LDADD = $(client_unit_libs)
