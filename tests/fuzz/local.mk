# SPDX-License-Identifier: MIT
# Fuzzers, with --enable-fuzz (clang); --enable-sanitizer=address,undefined besides finds more.
#
# One more: its name here, what it links below, and seeds in corpus/NAME/.

EXTRA_DIST += tests/fuzz/corpus tests/fuzz/run.sh
EXTRA_DIST += tests/fuzz/fuzz_conf.c tests/fuzz/fuzz_frame.c tests/fuzz/fuzz_msg.c \
	tests/fuzz/fuzz_mxfp8.c tests/fuzz/fuzz_ring_sq.c tests/fuzz/fuzz_tuning.c

fuzz_programs =

if ENABLE_FUZZ
fuzz_programs += tests/fuzz/fuzz_conf tests/fuzz/fuzz_frame tests/fuzz/fuzz_msg \
	tests/fuzz/fuzz_mxfp8 tests/fuzz/fuzz_ring_sq tests/fuzz/fuzz_tuning
noinst_PROGRAMS += $(fuzz_programs)

fuzz_ldflags = $(AM_LDFLAGS) -fsanitize=fuzzer

tests_fuzz_fuzz_conf_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_conf_LDADD = librx_daemon.la

tests_fuzz_fuzz_frame_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_frame_LDADD = librx_proto.la librx_shm.la

tests_fuzz_fuzz_msg_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_msg_LDADD = librx_proto.la librx_shm.la

tests_fuzz_fuzz_mxfp8_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_mxfp8_LDADD = librx_kernels.la

tests_fuzz_fuzz_ring_sq_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_ring_sq_LDADD = librx_daemon.la

tests_fuzz_fuzz_tuning_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_tuning_LDADD = librx_daemon.la
endif
