# SPDX-License-Identifier: MIT
# rcclx-perf

bin_PROGRAMS += client/perf/rcclx-perf

perf_parts = \
	client/perf/check.c \
	client/perf/check.h \
	client/perf/choice.h \
	client/perf/colls.c \
	client/perf/colls.h \
	client/perf/error.c \
	client/perf/error.h \
	client/perf/id_file.c \
	client/perf/id_file.h \
	client/perf/layout.c \
	client/perf/layout.h \
	client/perf/measure.c \
	client/perf/measure.h \
	client/perf/options.c \
	client/perf/options.h \
	client/perf/place.c \
	client/perf/place.h \
	client/perf/print.c \
	client/perf/print.h

client_perf_rcclx_perf_SOURCES = \
	$(perf_parts) \
	client/ctl/admin.c \
	client/ctl/admin.h \
	client/ctl/explain.h \
	client/ctl/thresholds.c \
	client/ctl/thresholds.h \
	client/perf/choice.c \
	client/perf/perf_main.c \
	client/perf/private_daemon.c \
	client/perf/private_daemon.h \
	client/perf/rank.c \
	client/perf/rank.h \
	client/perf/spawn.c \
	client/perf/spawn.h \
	client/perf/sweep.c \
	client/perf/sweep.h \
	client/perf/watchdog.c \
	client/perf/watchdog.h
client_perf_rcclx_perf_CPPFLAGS = $(AM_CPPFLAGS) -DRCCLX_SBINDIR='"$(sbindir)"'
client_perf_rcclx_perf_LDADD = librcclx.la librx_proto.la librx_kernels.la librx_shm.la -lm

if HAVE_CMOCKA
check_PROGRAMS += tests/unit/test_perf
TESTS += tests/unit/test_perf
tests_unit_test_perf_SOURCES = tests/unit/test_perf.c $(perf_parts)
tests_unit_test_perf_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_perf_LDADD = librcclx.la librx_kernels.la $(CMOCKA_LIBS) -lm
endif
