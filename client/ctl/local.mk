# SPDX-License-Identifier: MIT
# rcclxctl

bin_PROGRAMS += client/ctl/rcclxctl

ctl_parts = \
	client/ctl/admin.c \
	client/ctl/admin.h \
	client/ctl/doctor.c \
	client/ctl/doctor.h \
	client/ctl/explain.c \
	client/ctl/explain.h \
	client/ctl/late.c \
	client/ctl/late.h \
	client/ctl/number.c \
	client/ctl/number.h \
	client/ctl/print.c \
	client/ctl/print.h \
	client/ctl/thresholds.c \
	client/ctl/thresholds.h \
	client/ctl/tune_file.c \
	client/ctl/tune_file.h \
	client/ctl/tune_run.c \
	client/ctl/tune_run.h \
	client/ctl/tune_sweep.c \
	client/ctl/tune_sweep.h

client_ctl_rcclxctl_SOURCES = \
	$(ctl_parts) \
	client/ctl/cmd_abi_check.c \
	client/ctl/cmd_clients.c \
	client/ctl/cmd_comms.c \
	client/ctl/cmd_devices.c client/ctl/devices.h \
	client/ctl/cmd_doctor.c \
	client/ctl/cmd_drain.c \
	client/ctl/cmd_explain.c \
	client/ctl/explain_devices.c \
	client/ctl/explain_devices.h \
	client/ctl/cmd_run.c \
	client/ctl/cmd_status.c \
	client/ctl/cmd_topo.c \
	client/ctl/cmd_tune.c \
	client/ctl/cmd_version.c \
	client/ctl/cmd_which.c \
	client/ctl/elf_file.c \
	client/ctl/elf_file.h \
	client/ctl/ctl.h \
	client/ctl/ctl_main.c
client_ctl_rcclxctl_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS) \
	-DSYSCONFDIR='"$(sysconfdir)"' -DRCCLX_BINDIR='"$(bindir)"' \
	-DRCCLX_NCCLDIR='"$(nccldir)"' -DRCCLX_BACKENDDIR='"$(pkglibdir)"' $(LIBELF_CFLAGS)
client_ctl_rcclxctl_LDADD = librx_proto.la librx_kernels.la librx_shm.la $(JANSSON_LIBS) \
	$(LIBELF_LIBS) -lm

if HAVE_CMOCKA
check_PROGRAMS += tests/unit/test_ctl tests/unit/test_doctor tests/unit/test_explain
TESTS += tests/unit/test_ctl tests/unit/test_doctor tests/unit/test_explain
tests_unit_test_doctor_SOURCES = tests/unit/test_doctor.c client/ctl/doctor.c client/ctl/doctor.h
tests_unit_test_doctor_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_doctor_LDADD = $(CMOCKA_LIBS)
tests_unit_test_ctl_SOURCES = tests/unit/test_ctl.c $(ctl_parts)
tests_unit_test_ctl_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_test_ctl_LDADD = librx_proto.la librx_kernels.la librx_shm.la $(JANSSON_LIBS) \
	$(CMOCKA_LIBS) -lm
tests_unit_test_explain_SOURCES = tests/unit/test_explain.c $(ctl_parts)
tests_unit_test_explain_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_test_explain_LDADD = $(tests_unit_test_ctl_LDADD)
endif
