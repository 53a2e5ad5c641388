#!/bin/bash
# SPDX-License-Identifier: MIT
# summary.sh LOG...: cmocka's own closing lines, added up over the programs that wrote these logs.
set -euo pipefail
[ $# -gt 0 ] || exit 0
{ cat -- "$@" 2>/dev/null || true; } | awk '
	match($0, /^\[==========\] [0-9]+ test\(s\) run/) { run += $2; programs++ }
	match($0, /^\[  PASSED  \] [0-9]+ test/) { passed += $4 }
	match($0, /^\[  FAILED  \] [0-9]+ test/) { failed += $4 }
	match($0, /^\[  SKIPPED \] [0-9]+ test/) { skipped += $4 }
	END {
		if (!programs)
			exit
		printf "[==========] %d test(s) run.\n[  PASSED  ] %d test(s).\n", run, passed
		if (skipped)
			printf "[  SKIPPED ] %d test(s).\n", skipped
		if (failed)
			printf "[  FAILED  ] %d test(s).\n", failed
	}'
