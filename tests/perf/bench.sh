#!/bin/bash
# SPDX-License-Identifier: MIT
# rcclx beside MPI and Gloo on this machine: every peer that is installed, in interleaved rounds.
# Measurements go to a file of JSON lines; report.py makes tables and verdicts from their medians
# over the rounds, plot.sh makes plots.
#
# Usage: bench.sh [BUILD-DIRECTORY]      (default: $RCCLX_BUILDDIR, else the current one)
# Environment:
#   ROUNDS               5
#   SECTIONS             "copy allreduce2 touch2 types2 neighbours2 others2 otherstouch2 allreduce4
#                        allreduce8 idle"
#   BENCH_FILE           bench.jsonl in the build directory; replaced
#   BENCH_PREFIX         command before each measured program, such as "chrt -f 10" on a busy machine
#   BENCH_PREFIX_SHARED  the same when ranks share cores, where "chrt -r 10" takes turns
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$(cd "${1:-${RCCLX_BUILDDIR:-.}}" && pwd)
rounds=${ROUNDS:-5}
sections=${SECTIONS:-copy allreduce2 touch2 types2 neighbours2 others2 otherstouch2 allreduce4 allreduce8 idle}
file=${BENCH_FILE:-$build/bench.jsonl}
read -ra prefix_alone <<<"${BENCH_PREFIX:-}"
read -ra prefix_shared <<<"${BENCH_PREFIX_SHARED:-}"

perf=$build/client/perf/rcclx-perf
export RCCLXD=$build/daemon/rcclxd
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
for program in "$perf" "$RCCLXD" "$build/tests/perf/copy_bandwidth"; do
	if [ ! -x "$program" ]; then
		echo "bench.sh: $program is missing: run make bench" >&2
		exit 2
	fi
done

work=$(mktemp -d "${TMPDIR:-/tmp}/rcclx-bench.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# ---- the peers ----

peers=()
build_mpi() { # NAME
	if command -v "mpicc.$1" "mpirun.$1" >/dev/null &&
		"mpicc.$1" -std=gnu17 -O2 "$here/mpi_coll.c" -o "$work/mpi_$1"; then
		peers+=("$1")
	else
		echo "bench.sh: no $1 (Debian: openmpi-bin libopenmpi-dev; mpich libmpich-dev)" >&2
	fi
}
build_mpi openmpi
build_mpi mpich
has() { # PEER
	[[ " ${peers[*]} " == *" $1 "* ]]
}
python=/usr/bin/python3
if "$python" -c 'import torch.distributed as d; assert d.is_gloo_available()' 2>/dev/null; then
	peers+=(gloo)
else
	echo "bench.sh: no torch with Gloo (Debian: python3-torch)" >&2
fi

# ---- one measurement ----

# Bounded, and whatever becomes of it the others go on.
record() { # SECTION CONTESTANT ROUND RANKS COMMAND...
	local section=$1 name=$2 round=$3 ranks=$4 prefix=("${prefix_alone[@]}") status=0
	shift 4
	[ "$ranks" -le "$(nproc)" ] || prefix=("${prefix_shared[@]}")
	timeout -k 5 120 "${prefix[@]}" "$@" >"$work/out" 2>"$work/err" </dev/null || status=$?
	if [ "$status" -ne 0 ]; then
		echo "bench.sh: $section: $name: exit status $status: $(tail -n 1 "$work/err")" >&2
		printf '{"section": "%s", "contestant": "%s", "round": %d, "failed": %d}\n' \
			"$section" "$name" "$round" "$status" >>"$file"
	fi
	# What it measured before it failed is good.
	sed -n "s/^{\(.*\)}\$/{\"section\": \"$section\", \"contestant\": \"$name\", \"round\": $round, \1}/p" \
		"$work/out" >>"$file"
}

ours() { # SECTION ROUND RANKS MEMORY COLLECTIVE SIZES [OPTION...]
	local section=$1 round=$2 ranks=$3 memory=$4 collective=$5 sizes=$6
	shift 6
	record "$section" "$memory" "$round" "$ranks" "$perf" "$collective" --private --json \
		--ranks "$ranks" --memory "$memory" --sizes "$sizes" "$@"
}

mpi() { # SECTION ROUND RANKS NAME ARGUMENT...
	local section=$1 round=$2 ranks=$3 name=$4
	local open=(mpirun.openmpi --bind-to none --oversubscribe --mca pml ob1 --mca btl "self,vader")
	shift 4
	case $name in
	openmpi) record "$section" "$name" "$round" "$ranks" \
		"${open[@]}" -np "$ranks" "$work/mpi_openmpi" "$@" ;;
	openmpi-sm) record "$section" "$name" "$round" "$ranks" \
		"${open[@]}" --mca coll_sm_priority 90 -np "$ranks" "$work/mpi_openmpi" "$@" ;;
	mpich) record "$section" "$name" "$round" "$ranks" \
		mpirun.mpich -np "$ranks" "$work/mpi_mpich" "$@" ;;
	esac
}

# ---- the sections ----

powers() { # FIRST LAST: powers of two, bytes
	local size list=()
	for ((size = $1; size <= $2; size *= 2)); do list+=("$size"); done
	echo "${list[*]}"
}
commas() { # WORD...
	local IFS=,
	echo "$*"
}
read -ra small <<<"$(powers 8 1048576)"
read -ra medium <<<"$(powers 8 4194304)"
read -ra large <<<"$(powers 8 67108864)"
few=(8 4096 65536 1048576 16777216)
mapfile -t neighbours < <(for size in "${large[@]}"; do
	printf '%d\n' $((size - 4)) "$size" $((size + 4))
done | sort -nu)

section_copy() { # ROUND
	record copy machine "$1" 2 "$build/tests/perf/copy_bandwidth"
}
section_allreduce2() {
	local memory
	for memory in registered private; do
		ours allreduce2 "$1" 2 "$memory" all_reduce "$(commas "${large[@]}")"
	done
	! has openmpi || mpi allreduce2 "$1" 2 openmpi all_reduce "${large[@]}"
	! has openmpi || mpi allreduce2 "$1" 2 openmpi-sm all_reduce "${large[@]}"
	! has mpich || mpi allreduce2 "$1" 2 mpich all_reduce "${large[@]}"
	! has gloo || record allreduce2 gloo "$1" 2 \
		"$python" "$here/gloo_allreduce.py" 2 "${small[@]}"
}
section_touch2() {
	local memory sizes=("${few[@]}" 67108864)
	for memory in registered private; do
		ours touch2 "$1" 2 "$memory" all_reduce "$(commas "${sizes[@]}")" --touch
	done
	! has openmpi || mpi touch2 "$1" 2 openmpi --touch all_reduce "${sizes[@]}"
	! has openmpi || mpi touch2 "$1" 2 openmpi-sm --touch all_reduce "${sizes[@]}"
	! has mpich || mpi touch2 "$1" 2 mpich --touch all_reduce "${sizes[@]}"
}
section_types2() {
	local dtype memory
	for dtype in float bfloat16 half; do
		for memory in registered private; do
			ours types2 "$1" 2 "$memory" all_reduce "$(commas "${few[@]}" 67108864)" -d "$dtype"
		done
	done
}
section_neighbours2() {
	local memory
	for memory in registered private; do
		ours neighbours2 "$1" 2 "$memory" all_reduce "$(commas "${neighbours[@]}")"
	done
}
others() { # SECTION ROUND [--touch]
	local section=$1 round=$2 collective memory peer mpi_args=("${@:3}") place
	for collective in all_gather reduce_scatter broadcast all_to_all reduce; do
		# MPI_Bcast has one buffer: a root that also copies to another would move twice as much.
		place=()
		[ "$collective" != broadcast ] || place=(--in-place)
		for memory in registered private; do
			ours "$section" "$round" 2 "$memory" "$collective" "$(commas "${few[@]}")" \
				"${place[@]}" "${@:3}"
		done
		mpi_args+=("$collective" "${few[@]}")
	done
	for peer in openmpi mpich; do
		! has "$peer" || mpi "$section" "$round" 2 "$peer" "${mpi_args[@]}"
	done
}
section_others2() { others others2 "$1"; }
section_otherstouch2() { others otherstouch2 "$1" --touch; }
shared_cores() { # ROUND RANKS
	local memory
	for memory in registered private; do
		ours "allreduce$2" "$1" "$2" "$memory" all_reduce "$(commas "${medium[@]}")"
	done
	! has openmpi || mpi "allreduce$2" "$1" "$2" openmpi all_reduce "${medium[@]}"
	! has gloo || record "allreduce$2" gloo "$1" "$2" \
		"$python" "$here/gloo_allreduce.py" "$2" 8 4096 65536 1048576
}
section_allreduce4() { shared_cores "$1" 4; }
section_allreduce8() { shared_cores "$1" 8; }

: >"$file" || exit 2
for section in $sections; do
	[ "$section" != idle ] || continue
	if ! declare -F "section_$section" >/dev/null; then
		echo "bench.sh: no section $section" >&2
		exit 2
	fi
done
for round in $(seq "$rounds"); do
	for section in $sections; do
		[ "$section" != idle ] || continue
		echo "bench.sh: round $round of $rounds: $section" >&2
		"section_$section" "$round"
	done
done
echo "# $(nproc) cores, $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), Linux $(uname -r)"
echo
"$python" "$here/report.py" "$file" || exit 1
if [[ " $sections " == *" idle "* ]]; then
	echo
	"$here/idle.sh" "$build"
fi
