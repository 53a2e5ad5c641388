#!/bin/bash
# SPDX-License-Identifier: MIT
# What idle sessions cost the daemon: CPU time and memory, beside their targets.
#
# Usage: idle.sh [BUILD-DIRECTORY]      (default: $RCCLX_BUILDDIR, else the current one)
# Environment: SESSIONS (64)
set -euo pipefail

build=$(cd "${1:-${RCCLX_BUILDDIR:-.}}" && pwd)
n_sessions=${SESSIONS:-64}
ctl=$build/client/ctl/rcclxctl
daemon=$build/daemon/rcclxd
idle=$build/tests/perf/idle_sessions

work=$(mktemp -d "${TMPDIR:-/tmp}/rcclx-idle.XXXXXX")
started=()
finish() {
	local pid
	for pid in "${started[@]}"; do
		kill "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
	rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM

cpu_ns() { # PID: on all its threads
	awk '{ sum += $1 } END { printf "%.0f", sum }' /proc/"$1"/task/*/schedstat
}

private_kib() { # PID
	awk '/^Private_(Clean|Dirty):/ { sum += $2 } END { print sum + 0 }' /proc/"$1"/smaps_rollup
}

ring_bytes() { # all sessions together
	"$ctl" --socket "$work/admin.sock" --json clients |
		sed -nE 's/.*"ring_bytes": ([0-9]+).*/\1/p' | awk '{ sum += $1 } END { printf "%.0f", sum }'
}

until_true() { # WHAT COMMAND...: within 5 s
	local what=$1
	shift
	for _ in $(seq 500); do
		! "$@" || return 0
		sleep 0.01
	done
	echo "idle.sh: $what: not within 5 s" >&2
	return 1
}

"$daemon" --private --socket "$work/rcclxd.sock" 2>"$work/daemon.log" &
pid=$!
started+=("$pid")
until_true "daemon" test -S "$work/admin.sock"
"$ctl" --socket "$work/admin.sock" status >/dev/null
before=$(private_kib "$pid")
mkfifo "$work/stdin"
"$idle" "$work/rcclxd.sock" "$n_sessions" <"$work/stdin" >"$work/ready" &
started+=("$!")
exec 9>"$work/stdin"
until_true "sessions" grep -q ready "$work/ready"
rings=$(ring_bytes)
memory=$(private_kib "$pid")
sleep 1
cpu=$(cpu_ns "$pid")
sleep 5
after=$(cpu_ns "$pid")
exec 9>&-
awk -v n="$n_sessions" -v cpu="$((after - cpu))" -v kib="$((memory - before))" -v rings="$rings" '
BEGIN {
	percent = cpu / 5e9 * 100
	each = kib / n + rings / 1024 / n
	printf "## %d idle sessions\n\n", n
	printf "* daemon CPU over 5 s: %.4f %% of a core (target: under 0.1): %s\n", percent,
		(percent < 0.1) ? "met" : "MISSED"
	printf "* memory per session: %.1f KiB, of it rings %.1f (target: at most 256): %s\n", each,
		rings / 1024 / n, (rings > 0 && each <= 256) ? "met" : "MISSED"
}'
