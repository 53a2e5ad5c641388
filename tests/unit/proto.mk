# SPDX-License-Identifier: MIT
# Unit tests of proto/.

proto_unit_tests = \
	tests/unit/test_arena \
	tests/unit/test_check \
	tests/unit/test_fdset \
	tests/unit/test_frame \
	tests/unit/test_msg

check_PROGRAMS += $(proto_unit_tests)
TESTS += $(proto_unit_tests)

proto_unit_samples = tests/unit/msg_samples.c tests/unit/msg_samples.h
proto_unit_libs = librx_proto.la librx_shm.la $(PROTOBUF_C_LIBS) $(CMOCKA_LIBS)

tests_unit_test_arena_SOURCES = tests/unit/test_arena.c tests/unit/shm_util.h
tests_unit_test_arena_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_arena_LDADD = $(proto_unit_libs)

tests_unit_test_check_SOURCES = tests/unit/test_check.c tests/unit/shm_util.h $(proto_unit_samples)
tests_unit_test_check_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_check_LDADD = $(proto_unit_libs)

tests_unit_test_fdset_SOURCES = tests/unit/test_fdset.c tests/unit/shm_util.h
tests_unit_test_fdset_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_fdset_LDADD = $(proto_unit_libs)

tests_unit_test_frame_SOURCES = tests/unit/test_frame.c tests/unit/shm_util.h
tests_unit_test_frame_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_frame_LDADD = $(proto_unit_libs)
tests_unit_test_frame_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=recvmsg -Wl,--wrap=sendmsg

tests_unit_test_msg_SOURCES = tests/unit/test_msg.c tests/unit/shm_util.h $(proto_unit_samples)
tests_unit_test_msg_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_msg_LDADD = $(proto_unit_libs)
tests_unit_test_msg_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc
