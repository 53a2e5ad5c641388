# SPDX-License-Identifier: MIT
# librccl.so.1 and libnccl.so.2: the same code under two names, in a folder where nothing looks for
# it by itself. The versions are theirs, not ours: .1 and .2 are what programs ask for.

nccldir = $(pkglibdir)/nccl
nccl_LTLIBRARIES = client/nccl/librccl.la client/nccl/libnccl.la
ncclincludedir = $(pkglibdir)/nccl
ncclinclude_HEADERS = client/nccl/nccl.h

noinst_LTLIBRARIES += client/nccl/librx_nccl.la

client_nccl_librx_nccl_la_CPPFLAGS = $(AM_CPPFLAGS) -DRCCLX_SBINDIR='"$(sbindir)"'
client_nccl_librx_nccl_la_SOURCES = \
	client/nccl/api.h \
	client/nccl/autostart.c \
	client/nccl/autostart.h \
	client/nccl/batch.c \
	client/nccl/batch.h \
	client/nccl/call.c \
	client/nccl/call.h \
	client/nccl/coll.c \
	client/nccl/coll_config.c \
	client/nccl/comm.c \
	client/nccl/comm.h \
	client/nccl/connection.c \
	client/nccl/connection.h \
	client/nccl/debug.c \
	client/nccl/debug.h \
	client/nccl/end.c \
	client/nccl/error.c \
	client/nccl/error.h \
	client/nccl/functions.h \
	client/nccl/group.c \
	client/nccl/group.h \
	client/nccl/init.c \
	client/nccl/job.c \
	client/nccl/job.h \
	client/nccl/memory.c \
	client/nccl/options.c \
	client/nccl/options.h \
	client/nccl/param.c \
	client/nccl/place.c \
	client/nccl/place.h \
	client/nccl/query.c \
	client/nccl/ranges.c \
	client/nccl/ranges.h \
	client/nccl/redop.c \
	client/nccl/redop.h \
	client/nccl/refused.c \
	client/nccl/report.c \
	client/nccl/report.h \
	client/nccl/runtime.c \
	client/nccl/runtime.h \
	client/nccl/split.c \
	client/nccl/together.c \
	client/nccl/together.h \
	client/nccl/variables.c \
	client/nccl/variables.h

# -Bsymbolic: beside another NCCL in the process, each calls its own functions.
nccl_ldflags = $(AM_LDFLAGS) -Wl,--version-script=$(srcdir)/client/nccl/nccl.map \
	-Wl,-Bsymbolic -Wl,-z,relro,-z,now
if !SANITIZED
nccl_ldflags += -Wl,-z,defs
endif
nccl_libadd = client/nccl/librx_nccl.la librcclx.la librx_shm.la

client_nccl_librccl_la_SOURCES = client/nccl/nccl.h
client_nccl_librccl_la_LIBADD = $(nccl_libadd)
client_nccl_librccl_la_LDFLAGS = $(nccl_ldflags) -version-info 1:0:0
EXTRA_client_nccl_librccl_la_DEPENDENCIES = $(srcdir)/client/nccl/nccl.map

client_nccl_libnccl_la_SOURCES = client/nccl/nccl.h
client_nccl_libnccl_la_LIBADD = $(nccl_libadd)
client_nccl_libnccl_la_LDFLAGS = $(nccl_ldflags) -version-info 2:0:0
EXTRA_client_nccl_libnccl_la_DEPENDENCIES = $(srcdir)/client/nccl/nccl.map

EXTRA_DIST += client/nccl/nccl.map
