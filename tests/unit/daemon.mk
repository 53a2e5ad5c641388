# SPDX-License-Identifier: MIT
# Unit tests of the daemon, and of the collectives that its workers run.

daemon_unit_tests = \
	tests/unit/test_account \
	tests/unit/test_config \
	tests/unit/test_daemon_comm \
	tests/unit/test_daemon_hostile \
	tests/unit/test_daemon_op \
	tests/unit/test_daemon_p2p \
	tests/unit/test_entry \
	tests/unit/test_host_coll \
	tests/unit/test_topology \
	tests/unit/test_tuning

check_PROGRAMS += $(daemon_unit_tests)
TESTS += $(daemon_unit_tests)

daemon_unit_cppflags = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
daemon_unit_cflags = $(AM_CFLAGS) $(LIBUV_CFLAGS)
daemon_unit_libs = librx_daemon.la $(CMOCKA_LIBS) -lpthread
daemon_unit_fixture = tests/unit/daemon_fixture.c tests/unit/daemon_fixture.h

tests_unit_test_account_SOURCES = tests/unit/test_account.c
tests_unit_test_account_CPPFLAGS = $(daemon_unit_cppflags)
tests_unit_test_account_LDADD = $(daemon_unit_libs)

tests_unit_test_config_SOURCES = tests/unit/test_config.c
tests_unit_test_config_CPPFLAGS = $(daemon_unit_cppflags)
tests_unit_test_config_LDADD = $(daemon_unit_libs)

tests_unit_test_daemon_comm_SOURCES = tests/unit/test_daemon_comm.c $(daemon_unit_fixture)
tests_unit_test_daemon_comm_CPPFLAGS = $(daemon_unit_cppflags)
tests_unit_test_daemon_comm_CFLAGS = $(daemon_unit_cflags)
tests_unit_test_daemon_comm_LDADD = $(daemon_unit_libs)

tests_unit_test_daemon_hostile_SOURCES = tests/unit/test_daemon_hostile.c $(daemon_unit_fixture)
tests_unit_test_daemon_hostile_CPPFLAGS = $(daemon_unit_cppflags)
tests_unit_test_daemon_hostile_CFLAGS = $(daemon_unit_cflags)
tests_unit_test_daemon_hostile_LDADD = $(daemon_unit_libs)

tests_unit_test_daemon_op_SOURCES = tests/unit/test_daemon_op.c $(daemon_unit_fixture)
tests_unit_test_daemon_op_CPPFLAGS = $(daemon_unit_cppflags)
tests_unit_test_daemon_op_CFLAGS = $(daemon_unit_cflags)
tests_unit_test_daemon_op_LDADD = $(daemon_unit_libs)

tests_unit_test_daemon_p2p_SOURCES = tests/unit/test_daemon_p2p.c $(daemon_unit_fixture)
tests_unit_test_daemon_p2p_CPPFLAGS = $(daemon_unit_cppflags)
tests_unit_test_daemon_p2p_CFLAGS = $(daemon_unit_cflags)
tests_unit_test_daemon_p2p_LDADD = $(daemon_unit_libs)

tests_unit_test_entry_SOURCES = tests/unit/test_entry.c
tests_unit_test_entry_CPPFLAGS = $(daemon_unit_cppflags)
tests_unit_test_entry_LDADD = $(daemon_unit_libs)

tests_unit_test_host_coll_SOURCES = tests/unit/test_host_coll.c
tests_unit_test_host_coll_CPPFLAGS = $(daemon_unit_cppflags)
tests_unit_test_host_coll_LDADD = librx_oracle.la librx_kernels.la $(CMOCKA_LIBS) -lm

tests_unit_test_topology_SOURCES = tests/unit/test_topology.c
tests_unit_test_topology_CPPFLAGS = $(daemon_unit_cppflags)
tests_unit_test_topology_LDADD = $(daemon_unit_libs)

tests_unit_test_tuning_SOURCES = tests/unit/test_tuning.c
tests_unit_test_tuning_CPPFLAGS = $(daemon_unit_cppflags)
tests_unit_test_tuning_LDADD = $(daemon_unit_libs)
