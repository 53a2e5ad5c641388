# SPDX-License-Identifier: MIT
# librcclx, and the programs over it.

include client/inline/local.mk

# Interface number; see "Updating version info" in the manual of libtool.
LT_RCCLX = 0:0:0

# All of the library, with internal symbols visible to the unit tests.
noinst_LTLIBRARIES += librx_client.la

librx_client_la_SOURCES = \
	client/args.c \
	client/args.h \
	client/args_coll.c \
	client/args_coll.h \
	client/bounce.c \
	client/bounce.h \
	client/call.c \
	client/call.h \
	client/coll.c \
	client/coll_v.c \
	client/comm.c \
	client/comm.h \
	client/comm_state.c \
	client/conn.c \
	client/conn.h \
	client/create.c \
	client/create.h \
	client/derive.c \
	client/dial.c \
	client/dial.h \
	client/err.c \
	client/err.h \
	client/fork_guard.c \
	client/fork_guard.h \
	client/gates.c \
	client/gates.h \
	client/gpu.c \
	client/gpu.h \
	client/gpu_mem.c \
	client/gpu_runtime.h \
	client/group.c \
	client/group.h \
	client/import.c \
	client/import.h \
	$(inline_sources) \
	client/mem.c \
	client/mem.h \
	client/op.c \
	client/op.h \
	client/op_parts.c \
	client/op_queue.c \
	client/op_state.h \
	client/placement.c \
	client/placement.h \
	client/precision.c \
	client/precision.h \
	client/rank_faults.c \
	client/rank_kernels.c \
	client/rank_kernels.h \
	client/session.c \
	client/session.h \
	client/stage.c \
	client/stage.h \
	client/stream.c \
	client/stream.h \
	client/version.c
librx_client_la_CPPFLAGS = $(AM_CPPFLAGS) -DPKGLIBDIR='"$(pkglibdir)"'
librx_client_la_LIBADD = librx_proto.la librx_kernels.la librx_shm.la

lib_LTLIBRARIES += librcclx.la

librcclx_la_SOURCES = client/rcclx.h
librcclx_la_LIBADD = librx_client.la $(PROTOBUF_C_LIBS)
librcclx_la_LDFLAGS = $(AM_LDFLAGS) -version-info $(LT_RCCLX) \
	-Wl,--version-script=$(srcdir)/client/rcclx.map -Wl,-z,relro,-z,now -Wl,-z,nodelete
EXTRA_librcclx_la_DEPENDENCIES = $(srcdir)/client/rcclx.map
# The runtime of a sanitizer is in the program, not in the libraries.
if !SANITIZED
librcclx_la_LDFLAGS += -Wl,-z,defs
endif

include_HEADERS += client/rcclx.h
pkgconfig_DATA += client/rcclx.pc
EXTRA_DIST += client/rcclx.map

include client/ctl/local.mk
include client/nccl/local.mk
include client/perf/local.mk
