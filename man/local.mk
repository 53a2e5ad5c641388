# SPDX-License-Identifier: MIT
include man/functions.mk

dist_man_MANS += \
	man/librcclx.3 \
	man/nccl.7 \
	man/rcclx-perf.1 \
	man/rcclx-protocol.7 \
	man/rcclx-ring.7 \
	man/rcclx-tuning.5 \
	man/rcclxctl.1 \
	man/rcclxd.8 \
	man/rcclxd.conf.5
dist_man_MANS += $(function_pages)
EXTRA_DIST += man/gen-man.py man/man3/stamp
# Releases bring them.
MAINTAINERCLEANFILES += $(function_pages) man/man3/stamp

$(function_pages): man/man3/stamp
man/man3/stamp: $(srcdir)/client/rcclx.h $(srcdir)/man/gen-man.py
	$(AM_V_GEN)$(MKDIR_P) man/man3 && \
	$(PYTHON3) $(srcdir)/man/gen-man.py $(srcdir)/client/rcclx.h man/man3 && touch $@
