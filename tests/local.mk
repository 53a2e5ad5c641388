# SPDX-License-Identifier: MIT
# Tests. Each folder has its own part.

AM_TESTS_ENVIRONMENT = \
	RCCLXD='$(abs_builddir)/daemon/rcclxd'; export RCCLXD; \
	RCCLX_BUILDDIR='$(abs_builddir)'; export RCCLX_BUILDDIR; \
	RCCLX_SRCDIR='$(abs_srcdir)'; export RCCLX_SRCDIR; \
	CC='$(CC)'; export CC; \
	HIP_CLANG='$(HIP_CLANG)'; HIP_FLAGS='$(HIP_FLAGS)'; HIP_OBJDUMP='$(HIP_OBJDUMP)'; \
	export HIP_CLANG HIP_FLAGS HIP_OBJDUMP; \
	NVCC='$(NVCC)'; CUDA_FLAGS='$(CUDA_FLAGS)'; export NVCC CUDA_FLAGS;

# A test that hangs is ended, and fails.
LOG_COMPILER = $(srcdir)/tests/limit.sh
TEST_EXTENSIONS = .sh
SH_LOG_COMPILER = $(srcdir)/tests/limit.sh

include tests/lint/local.mk
include tests/disasm/local.mk
include tests/perf/local.mk
include tests/fuzz/local.mk
include tests/abi/local.mk

if HAVE_CMOCKA
include tests/oracle/local.mk
include tests/unit/shm.mk
include tests/unit/proto.mk
include tests/unit/kernels.mk
include tests/unit/daemon.mk
include tests/unit/client.mk
include tests/unit/inline.mk
include tests/integration/local.mk
include tests/gpu-cpu/local.mk
include tests/gpu-emu/local.mk
endif
include tests/integration/systemd.mk

EXTRA_DIST += tests/limit.sh tests/summary.sh

check-local: check-TESTS
	@$(srcdir)/tests/summary.sh $(TEST_LOGS)

# The same tests again, built with sanitizers in a folder of their own.
# Sanitizers see nothing of a GPU's code, so it is not made again.
sanitized_configure = $(abs_srcdir)/configure --enable-werror --without-hip --without-cuda CFLAGS='-O1 -g'

.PHONY: check-asan check-tsan check-model check-lint check-long check-fuzzers check-fuzz bench

check-asan:
	$(MKDIR_P) asan && cd asan && \
	{ test -f Makefile || $(sanitized_configure) --enable-sanitizer=address,undefined; } && \
	ASAN_OPTIONS=detect_stack_use_after_return=0 RCCLX_TEST_SLOW=4 $(MAKE) $(AM_MAKEFLAGS) check-sanitized

check-tsan:
	$(MKDIR_P) tsan && cd tsan && \
	{ test -f Makefile || $(sanitized_configure) --enable-sanitizer=thread; } && \
	RCCLX_TEST_SLOW=8 $(MAKE) $(AM_MAKEFLAGS) check-sanitized

# What a sanitized build runs: programs only; scripts check the same thing everywhere.
sanitized_tests = $(check_PROGRAMS)
check-sanitized:
	$(MAKE) $(AM_MAKEFLAGS) check TESTS='$(sanitized_tests)'

# Scripts alone need no test programs.
check_scripts = check-TESTS check_PROGRAMS= check_LTLIBRARIES=

check-model: all
	$(MAKE) $(AM_MAKEFLAGS) tests/model/interleave$(EXEEXT)
	$(MAKE) $(AM_MAKEFLAGS) $(check_scripts) TESTS='tests/model/run.sh tests/model/interleave$(EXEEXT)'

check-lint: all
	$(MAKE) $(AM_MAKEFLAGS) $(check_scripts) TESTS='$(lint_tests)'

# For distcheck, which comes on top of a check: what shows that nothing is missing in a release.
quick_tests = $(lint_tests) $(tools_tests) $(filter tests/unit/%,$(check_PROGRAMS))

check-long:
	RCCLX_LONG=1 $(MAKE) $(AM_MAKEFLAGS) check

check-fuzzers: $(fuzz_programs)

check-fuzz: check-fuzzers
	$(srcdir)/tests/fuzz/run.sh $(FUZZ_SECONDS)

bench: all
	$(MAKE) $(AM_MAKEFLAGS) $(bench_programs)
	RCCLX_BUILDDIR='$(abs_builddir)' $(srcdir)/tests/perf/bench.sh
