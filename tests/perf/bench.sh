#!/bin/bash
# SPDX-License-Identifier: MIT
# rcclx beside MPI on this machine: allreduce of floats, every peer that is installed, in interleaved
# rounds, medians over the rounds; then what idle sessions cost the daemon.
#
# Usage: bench.sh [BUILD-DIRECTORY]      (default: $RCCLX_BUILDDIR, else the current one)
# Environment: ROUNDS (5), RANKS ("2 4"; "": idle cost only), MAX_BYTES (67108864), SESSIONS (64)
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$(cd "${1:-${RCCLX_BUILDDIR:-.}}" && pwd)
rounds=${ROUNDS:-5}
ranks_list=${RANKS-2 4}
max_bytes=${MAX_BYTES:-67108864}
n_sessions=${SESSIONS:-64}

perf=$build/client/perf/rcclx-perf
ctl=$build/client/ctl/rcclxctl
daemon=$build/daemon/rcclxd
idle=$build/tests/perf/idle_sessions

work=$(mktemp -d "${TMPDIR:-/tmp}/rcclx-bench.XXXXXX")
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

for program in "$perf" "$ctl" "$daemon" "$idle"; do
	if [ ! -x "$program" ]; then
		echo "bench.sh: $program is missing: run make bench" >&2
		exit 2
	fi
done

export RCCLXD=$daemon
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# ---- the contestants ----

openmpi=
mpich=
if command -v mpicc.openmpi mpirun.openmpi >/dev/null; then
	mpicc.openmpi -std=gnu17 -O2 "$here/mpi_allreduce.c" -o "$work/mpi_openmpi"
	openmpi=yes
else
	echo "# Open MPI is missing (Debian: openmpi-bin libopenmpi-dev)"
fi
if command -v mpicc.mpich mpirun.mpich >/dev/null; then
	mpicc.mpich -std=gnu17 -O2 "$here/mpi_allreduce.c" -o "$work/mpi_mpich"
	mpich=yes
else
	echo "# MPICH is missing (Debian: mpich libmpich-dev)"
fi

contestants=(rcclx-registered rcclx-private)
[ -z "$openmpi" ] || contestants+=(openmpi openmpi-sm)
[ -z "$mpich" ] || contestants+=(mpich)

run_openmpi() { # RANKS MCA-OPTIONS...
	local ranks=$1
	shift
	mpirun.openmpi --bind-to none --oversubscribe --mca pml ob1 --mca btl self,vader "$@" \
		-np "$ranks" "$work/mpi_openmpi" "$max_bytes"
}

run_contestant() { # NAME RANKS
	case $1 in
	rcclx-registered | rcclx-private)
		"$perf" all_reduce --private --ranks "$2" -e "$max_bytes" --memory "${1#rcclx-}" --json
		;;
	openmpi) run_openmpi "$2" ;;
	openmpi-sm) run_openmpi "$2" --mca coll_sm_priority 90 ;;
	mpich) mpirun.mpich -np "$2" "$work/mpi_mpich" "$max_bytes" ;;
	esac
}

# One line per size into the results: name, ranks, bytes, p50, p99.
record() { # NAME RANKS
	local lines
	if ! lines=$(run_contestant "$1" "$2" 2>"$work/stderr"); then
		echo "bench.sh: $1 with $2 ranks failed:" >&2
		cat "$work/stderr" >&2
		return 1
	fi
	sed -nE 's/.*"bytes": ([0-9]+).*"time_us_p50": ([0-9.]+).*"time_us_p99": ([0-9.]+).*/\1 \2 \3/p' \
		<<<"$lines" | sed "s/^/$1 $2 /" >>"$work/results"
}

# ---- the table ----

table() { # RANKS
	awk -v ranks="$1" -v names="${contestants[*]}" '
	function median(text,    values, n, i, j, t) {
		n = split(text, values, " ")
		for (i = 2; i <= n; i++)
			for (j = i; j > 1 && values[j] + 0 < values[j - 1] + 0; j--) {
				t = values[j]; values[j] = values[j - 1]; values[j - 1] = t
			}
		return n ? values[int((n + 1) / 2)] + 0 : 0
	}
	function ratio(ours, peer) {
		return peer > 0 ? sprintf("%.2f", ours / peer) : "-"
	}
	function target(what, met) {
		printf "# %-4s %s\n", met ? "met" : "MISSED", what
	}
	$2 == ranks {
		if (!($3 in seen)) { seen[$3]; sizes[++n_sizes] = $3 }
		p50[$1, $3] = p50[$1, $3] " " $4
		p99[$1, $3] = p99[$1, $3] " " $5
	}
	END {
		n = split(names, name, " ")
		printf "\n# allreduce, float sum, %d ranks: p50 (p99) in us; ratio of p50 to the fastest MPI\n", ranks
		printf "%10s", "bytes"
		for (i = 1; i <= n; i++) printf " %22s", name[i]
		printf " %10s %10s\n", "registered", "private"
		for (s = 1; s <= n_sizes; s++) {
			b = sizes[s]; best = 0
			printf "%10d", b
			for (i = 1; i <= n; i++) {
				m = median(p50[name[i], b])
				if (i > 2 && m > 0 && (best == 0 || m < best)) best = m
				printf " %11.2f (%8.2f)", m, median(p99[name[i], b])
			}
			ours_r = median(p50["rcclx-registered", b])
			ours_p = median(p50["rcclx-private", b])
			printf " %10s %10s\n", ratio(ours_r, best), ratio(ours_p, best)
			if (best > 0) {
				if (b == 8) small = ours_r / best
				if (ours_r / best > worst_r) { worst_r = ours_r / best; at_r = b }
				if (ours_p / best > worst_p) { worst_p = ours_p / best; at_p = b }
			}
			ompi = median(p50["openmpi", b])
			if (ompi > 0 && ours_r / ompi > worst_ompi) { worst_ompi = ours_r / ompi; at_ompi = b }
		}
		if (n < 3) { print "# no MPI to compare with"; exit }
		printf "# largest ratios: registered %.2f at %d B, private %.2f at %d B\n", worst_r, at_r, worst_p, at_p
		if (ranks == 2) {
			target(sprintf("8 B no slower than the fastest MPI: %.2f", small), small <= 1)
			target("no size slower than 1.5 x the fastest MPI, registered", worst_r <= 1.5)
			target("no size slower than 1.5 x the fastest MPI, private", worst_p <= 1.5)
		} else if (worst_ompi > 0)
			target(sprintf("no size slower than Open MPI: largest ratio %.2f at %d B", worst_ompi, at_ompi), worst_ompi <= 1)
	}' "$work/results"
}

# ---- idle sessions ----

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

wait_for() { # FILE-OR-SOCKET
		for _ in $(seq 500); do
		[ ! -e "$1" ] || return 0
		sleep 0.01
	done
	echo "bench.sh: $1 does not appear within 5 s" >&2
	return 1
}

idle_cost() {
	local pid before after cpu memory rings
	"$daemon" --private --socket "$work/rcclxd.sock" 2>"$work/daemon.log" &
	pid=$!
	started+=("$pid")
	wait_for "$work/admin.sock"
	"$ctl" --socket "$work/admin.sock" status >/dev/null
	before=$(private_kib "$pid")
	mkfifo "$work/stdin"
	"$idle" "$work/rcclxd.sock" "$n_sessions" <"$work/stdin" >"$work/ready" &
	started+=("$!")
	exec 9>"$work/stdin"
	for _ in $(seq 500); do
		! grep -q ready "$work/ready" || break
		sleep 0.01
	done
	grep -q ready "$work/ready"
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
		printf "\n# %d idle sessions\n", n
		printf "daemon CPU over 5 s          %.4f %% of a core\n", percent
		printf "memory per session           %.1f KiB (rings %.1f, daemon %.1f)\n", each, rings / 1024 / n, kib / n
		printf "# %-4s under 0.1 %% of a core\n", (percent < 0.1) ? "met" : "MISSED"
		printf "# %-4s at most 256 KiB per session\n", (rings > 0 && each <= 256) ? "met" : "MISSED"
	}'
}

echo "# $(nproc) cores, $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), Linux $(uname -r)"
echo "# $rounds rounds of: ${contestants[*]}"
for ranks in $ranks_list; do
	for _ in $(seq "$rounds"); do
		for name in "${contestants[@]}"; do
			record "$name" "$ranks"
		done
	done
	table "$ranks"
done
idle_cost
