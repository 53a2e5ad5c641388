# SPDX-License-Identifier: MIT
# rcclxd. Everything but main.c is a library of its own, so that the unit tests link it.

noinst_LTLIBRARIES += librx_daemon.la
librx_daemon_la_SOURCES = \
	daemon/account.c daemon/account.h \
	daemon/answer.c daemon/answer.h \
	daemon/comm.c daemon/comm.h \
	daemon/comm_mem.c daemon/comm_mem.h \
	daemon/conf.c daemon/conf.h \
	daemon/captured.c daemon/captured.h \
	daemon/config.c daemon/config.h daemon/config_error.h \
	daemon/daemon.c daemon/daemon.h \
	daemon/dispatch.c daemon/dispatch.h \
	daemon/entry.c daemon/entry.h \
	daemon/exec.c daemon/exec.h \
	daemon/gate.c daemon/gate.h \
	daemon/gpu.c daemon/gpu.h \
	daemon/gpu_bells.c daemon/gpu_bells.h \
	daemon/gpu_blocks.c daemon/gpu_blocks.h \
	daemon/gpu_choice.c daemon/gpu_choice.h \
	daemon/gpu_counts.c daemon/gpu_counts.h \
	daemon/gpu_exchange.c daemon/gpu_exchange.h \
	daemon/gpu_host.c daemon/gpu_host.h \
	daemon/gpu_launch.c daemon/gpu_launch.h \
	daemon/gpu_mem.c daemon/gpu_mem.h \
	daemon/gpu_run.c daemon/gpu_run.h \
	daemon/gpu_stage.c daemon/gpu_stage.h \
	daemon/gpu_streams.c daemon/gpu_streams.h \
	daemon/gpu_words.c daemon/gpu_words.h \
	daemon/h_admin.c \
	daemon/h_comm.c \
	daemon/h_gpu.c \
	daemon/h_hello.c \
	daemon/h_mem.c \
	daemon/h_tuning.c \
	daemon/inline_kernels.c daemon/inline_kernels.h \
	daemon/latency.c daemon/latency.h \
	daemon/listener.c daemon/listener.h \
	daemon/loop.c daemon/loop.h \
	daemon/op.c daemon/op.h daemon/op_impl.h \
	daemon/op_run.c \
	daemon/options.c daemon/options.h \
	daemon/p2p.c daemon/p2p.h \
	daemon/peer.c daemon/peer.h \
	daemon/policy.c daemon/policy.h \
	daemon/region.c daemon/region.h \
	daemon/reply.c daemon/reply.h \
	daemon/ringsrv.c daemon/ringsrv.h \
	daemon/scratch.c daemon/scratch.h \
	daemon/sd.c daemon/sd.h \
	daemon/session.c daemon/session.h \
	daemon/sockets.c daemon/sockets.h \
	daemon/slab.c daemon/slab.h \
	daemon/stall.c daemon/stall.h \
	daemon/stats.h \
	daemon/topology.c daemon/topology.h \
	daemon/tuning.c daemon/tuning.h \
	daemon/uniqueid.c daemon/uniqueid.h
librx_daemon_la_CPPFLAGS = $(AM_CPPFLAGS) \
	-DSYSCONFDIR='"$(sysconfdir)"' -DPKGLIBDIR='"$(pkglibdir)"' -DRX_DAEMON_VERSION='"$(PACKAGE_VERSION)"'
librx_daemon_la_CFLAGS = $(AM_CFLAGS) $(LIBUV_CFLAGS) $(SYSTEMD_CFLAGS) $(LIBCONFIG_CFLAGS) \
	$(HWLOC_CFLAGS)
librx_daemon_la_LIBADD = librx_kernels.la librx_proto.la librx_shm.la \
	$(LIBUV_LIBS) $(SYSTEMD_LIBS) $(LIBCONFIG_LIBS) $(HWLOC_LIBS) $(PROTOBUF_C_LIBS) -lpthread

EXTRA_DIST += doc/daemon.md doc/low-precision.md

sbin_PROGRAMS += daemon/rcclxd
daemon_rcclxd_SOURCES = daemon/main.c
daemon_rcclxd_CPPFLAGS = $(librx_daemon_la_CPPFLAGS)
daemon_rcclxd_CFLAGS = $(librx_daemon_la_CFLAGS)
daemon_rcclxd_LDADD = librx_daemon.la
