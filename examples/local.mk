# SPDX-License-Identifier: MIT
# Programs to copy from; built, not installed.

noinst_PROGRAMS += examples/allreduce

examples_allreduce_SOURCES = examples/allreduce.c
examples_allreduce_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/client
examples_allreduce_LDADD = librcclx.la
