# SPDX-License-Identifier: MIT
lint_tests = \
	tests/lint/aarch64.sh \
	tests/lint/atomics.sh \
	tests/lint/format.sh \
	tests/lint/gpu_api.sh \
	tests/lint/layers.sh \
	tests/lint/man.sh \
	tests/lint/nccl.sh \
	tests/lint/shell.sh \
	tests/lint/symbols.sh \
	tests/lint/units.sh

dist_check_SCRIPTS += $(lint_tests)
EXTRA_DIST += tests/lint/lib.sh
TESTS += $(lint_tests)
