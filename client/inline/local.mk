# SPDX-License-Identifier: MIT
# The inline executor; its sources are compiled into the library and into a test of its own.

inline_sources = \
	client/inline/counts.c \
	client/inline/direct.c \
	client/inline/fast.c \
	client/inline/fast.h \
	client/inline/inline.c \
	client/inline/inline.h \
	client/inline/link.c \
	client/inline/link.h \
	client/inline/lowprec.c \
	client/inline/lowprec.h \
	client/inline/lowprec_allreduce.c \
	client/inline/lowprec_relay.c \
	client/inline/relay.c \
	client/inline/run.h \
	client/inline/shape.c \
	client/inline/shape.h \
	client/inline/single.c \
	client/inline/two_shot.c \
	client/inline/wait.c \
	client/inline/wait.h \
	client/reach.c \
	client/reach.h
