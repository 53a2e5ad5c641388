# SPDX-License-Identifier: MIT
# Tests of the installed programs: rcclx-perf, rcclxctl, the example.

tools_tests = tests/integration/tools.sh tests/integration/tuning.sh tests/integration/example_installed.sh

dist_check_SCRIPTS += $(tools_tests)
TESTS += $(tools_tests)
