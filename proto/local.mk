# SPDX-License-Identifier: MIT
# Wire: messages, frames, checks.

noinst_LTLIBRARIES += librx_pb.la librx_proto.la

BUILT_SOURCES += proto/rcclx.pb-c.c proto/rcclx.pb-c.h
CLEANFILES += proto/rcclx.pb-c.c proto/rcclx.pb-c.h
EXTRA_DIST += proto/rcclx.proto

proto/rcclx.pb-c.h: proto/rcclx.pb-c.c
proto/rcclx.pb-c.c: $(srcdir)/proto/rcclx.proto
	$(AM_V_GEN)$(MKDIR_P) proto && $(PROTOC_C) --proto_path=$(srcdir) --c_out=. $(srcdir)/proto/rcclx.proto

# Generated code keeps its own style: none of our warnings.
nodist_librx_pb_la_SOURCES = proto/rcclx.pb-c.c proto/rcclx.pb-c.h
librx_pb_la_CFLAGS = $(RX_CFLAGS) $(PROTOBUF_C_CFLAGS)

librx_proto_la_SOURCES = \
	proto/rx_arena.c \
	proto/rx_arena.h \
	proto/rx_check.c \
	proto/rx_check.h \
	proto/rx_fdset.c \
	proto/rx_fdset.h \
	proto/rx_frame.c \
	proto/rx_frame.h \
	proto/rx_msg.c \
	proto/rx_msg.h \
	proto/rx_msg_table.c \
	proto/rx_proto.h
librx_proto_la_CFLAGS = $(AM_CFLAGS) $(PROTOBUF_C_CFLAGS)
librx_proto_la_LIBADD = librx_pb.la $(PROTOBUF_C_LIBS)
