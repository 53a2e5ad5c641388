#!/bin/bash
# SPDX-License-Identifier: MIT
# Checks the models of the sleep handshakes, and that each mutation of them is noticed.
set -u -o pipefail

dir=$(cd "$(dirname "$0")" && pwd)
if ! command -v spin >/dev/null; then
	echo "SKIP: spin is not installed (Debian package: spin)"
	exit 77
fi
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
n_failed=0

read -r -a cc <<<"${CC:-cc}"

# explore NAME MODEL FLAG...: leaves the verifier's report in $work/NAME/report
explore() {
	local name=$1 model=$2
	shift 2
	mkdir -p "$work/$name" && cd "$work/$name" || return 1
	spin -a "$@" "$dir/$model.pml" >build.log 2>&1 || { cat build.log; return 1; }
	"${cc[@]}" -O2 -w -DSAFETY -DMEMLIM=1500 -o pan pan.c >build.log 2>&1 ||
		{ cat build.log; return 1; }
	timeout 300 ./pan -m1000000 -n >report 2>&1
}

states() {
	sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' "$work/$1/report"
}

# Every state was visited and none is wrong.
must_hold() {
	local name=$1
	if explore "$@" && grep -q 'errors: 0$' "$work/$name/report" &&
		! grep -Eq 'depth too small|Search not completed|out of memory' "$work/$name/report"; then
		echo "PASS: $name holds ($(states "$name") states)"
	else
		echo "FAIL: $name"
		cat "$work/$name/report" 2>/dev/null
		n_failed=$((n_failed + 1))
	fi
}

# The model finds a lost wake-up.
must_fail() {
	local name=$1
	explore "$@"
	if grep -q 'invalid end state' "$work/$name/report" 2>/dev/null; then
		echo "PASS: $name is found"
	else
		echo "FAIL: $name is not noticed"
		cat "$work/$name/report" 2>/dev/null
		n_failed=$((n_failed + 1))
	fi
}

must_hold ring ring
must_fail ring-no-fence ring -DNO_FENCE
must_fail ring-no-recheck ring -DNO_RECHECK
must_fail ring-event-late ring -DEVENT_LATE
must_hold sleep sleep
must_hold sleep-3-ranks sleep -DRANKS=3 -DOPS=2
must_fail sleep-no-fence sleep -DNO_FENCE
must_fail sleep-no-recheck sleep -DNO_RECHECK

[ "$n_failed" -eq 0 ]
