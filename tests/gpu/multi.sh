#!/bin/bash
# SPDX-License-Identifier: MIT
# The whole of what several GPUs have to show, on a machine with 2, 4 or 8 of them: needs an installed rcclxd
# and PyTorch with CUDA. Tables go to standard output and, with the logs, to a folder.
#
#   multi.sh [--dry] [PREFIX [SECTION...]]   PREFIX: where rcclxd was installed; /usr/local
#
# Sections, all by default; a machine that is lent for minutes may want them in two calls:
#   topo      what is there: devices, links, peers as the daemon sees them
#   matrix    PyTorch's rows (torch_job.py) with one and with two ranks for each GPU; and every collective, type
#             and operation against the oracle, where MULTI_PACK names what "run.sh pack" has made
#   bench     allreduce, all-gather, reduce-scatter, all-to-all, 1 KiB to 1 GiB, bf16 and fp32, beside NCCL
#   choices   the same for configurations of the daemon: MULTI_CHOICES names a file with "NAME CONFIGURATION" lines
#   fp8       allreduce of 16 MiB to 1 GiB in low precision, beside NCCL's exact one
#   small     allreduce of up to 512 KiB in graphs, beside NCCL
#   killed    one of the ranks is killed, the others have to hear of it
#
# --dry: what works without several GPUs, a few small sizes; without any, on host memory beside Gloo. Of a bench
# it says that it runs, not how fast it is.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
dry=
[ "${1:-}" = --dry ] && dry=1 && shift
prefix=${1:-/usr/local}
[ $# -gt 0 ] && shift
sections=("$@")
[ $# -gt 0 ] || sections=(topo matrix bench choices fp8 small killed)
out=${MULTI_OUT:-$PWD/multi-out}
mkdir -p "$out"
python=${MULTI_PYTHON:-python3}
# Multicast needs a fabric manager and rights that lent machines do not have.
export NCCL_NVLS_ENABLE=0
folder=$prefix/lib/rcclxd/nccl

skip() { echo "skipped: $1"; }

n_gpus=$("$python" -c 'import torch; print(torch.cuda.device_count())' 2>/dev/null) ||
	{ skip "no PyTorch for $python: MULTI_PYTHON names another one"; exit 77; }
if [ -z "$dry" ] && [ "$n_gpus" -lt 2 ]; then
	skip "$n_gpus GPUs, expected 2 or more; --dry runs what does not need them"
	exit 77
fi
n=$n_gpus
[ "$n" -ge 2 ] || n=2

work=$(mktemp -d)
daemon=
stop_daemon() {
	[ -n "$daemon" ] || return 0
	kill "$daemon" 2>/dev/null
	wait "$daemon" || { echo "FAILED: the daemon ended with $?"; failed=1; }
	daemon=
}
trap '[ -z "$daemon" ] || kill "$daemon" 2>/dev/null; rm -rf "$work"' EXIT

start_daemon() { # NAME CONFIGURATION
	stop_daemon
	printf '%s\n' "$2" >"$work/conf"
	rm -f "$work/sock"
	export RCCLX_SOCKET=$work/sock RCCLX_NCCL_DIR=$folder
	"$prefix/sbin/rcclxd" --private --socket "$work/sock" --config "$work/conf" 2>"$out/daemon-$1.log" &
	daemon=$!
	for _ in $(seq 100); do [ -S "$work/sock" ] && return; sleep 0.1; done
	echo "FAILED: the daemon does not start: $(tail -3 "$out/daemon-$1.log")"
	exit 1
}

ranks() { # N SECONDS ARGUMENT...   as many processes of multi_bench.py; those that are left over are ended
	local count=$1 seconds=$2 port status=0 rank pids=()
	shift 2
	port=$("$python" -c 'import socket; s = socket.socket(); s.bind(("", 0)); print(s.getsockname()[1])')
	for rank in $(seq 0 $((count - 1))); do
		RANK=$rank WORLD_SIZE=$count MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \
			timeout -k 5 "$seconds" "$python" "$here/multi_bench.py" "$folder" "$@" 2>>"$work/errors" &
		pids+=($!)
	done
	for rank in "${pids[@]}"; do wait "$rank" || status=1; done
	return "$status"
}

bench() { # ARGUMENT...
	: >"$work/errors"
	ranks "$n" 500 "$@" && return
	echo "FAILED: $*"
	grep -v Warning "$work/errors" | tail -8
	failed=1
}

sizes() { # FIRST LAST   powers of two, every second one; in a rehearsal a few small ones
	local shift
	if [ -n "$dry" ]; then
		echo 1024 65536
		return
	fi
	for shift in $(seq "$1" 2 "$2"); do echo $((1 << shift)); done
}

rows() { # N   torch_job.py
	timeout -k 5 300 "$prefix/bin/rcclxctl" run -- "$python" -m torch.distributed.run --standalone \
		--nproc-per-node "$1" "$here/torch_job.py" 2>"$out/rows-$1.log" && return
	echo "FAILED: $1 ranks: $(tail -5 "$out/rows-$1.log")"
	failed=1
}

section_topo() {
	if command -v nvidia-smi >/dev/null; then
		nvidia-smi --query-gpu=index,name,driver_version,pci.bus_id,compute_mode --format=csv,noheader
		nvidia-smi topo -m || true
		nvidia-smi topo -p2p rw || true
		nvidia-smi nvlink --status | head -24 || true
	else
		skip "no nvidia-smi"
	fi
	"$prefix/bin/rcclxctl" topo
	"$prefix/bin/rcclxctl" devices || [ "$n_gpus" = 0 ]
}

section_matrix() {
	if [ "$n_gpus" = 0 ]; then
		skip "PyTorch's rows are about GPUs"
	else
		rows "$n"
		rows $((2 * n))
	fi
	if [ -z "${MULTI_PACK:-}" ]; then
		skip "the matrix against the oracle: MULTI_PACK names no folder of \"run.sh pack\""
	else
		"$here/run.sh" run "$MULTI_PACK" || failed=1
	fi
}

section_bench() {
	# shellcheck disable=SC2046 # sizes are words
	bench --bytes $(sizes 10 30)
}

section_choices() {
	local name config
	if [ -z "${MULTI_CHOICES:-}" ]; then
		skip "MULTI_CHOICES names no file: on devices this daemon has one algorithm"
		return
	fi
	# Twice, as machines change their speed.
	for _ in 1 2; do
		while read -r name config; do
			start_daemon "$name" "$config"
			echo "### $name: $config"
			# shellcheck disable=SC2046 # sizes are words
			bench --ops all_reduce --bytes $(sizes 10 30)
		done <"$MULTI_CHOICES"
	done
	start_daemon defaults ""
}

section_fp8() {
	[ -z "$dry" ] || export RCCL_LOW_PRECISION_MIN_BYTES=1024
	# shellcheck disable=SC2046 # sizes are words
	RCCL_LOW_PRECISION_ENABLE=1 bench --ops all_reduce --bytes $(sizes 24 30) --tolerance 0.1 --normal
}

section_killed() {
	if [ "$n_gpus" = 0 ]; then
		skip "torch_job.py is about GPUs; tests/integration/test_nccl_comm has this for host memory"
		return
	fi
	timeout -k 5 60 "$prefix/bin/rcclxctl" run -- "$python" "$here/torch_job.py" spawn $((n < 3 ? 3 : n)) killed \
		2>"$out/killed.log" || { echo "FAILED: $(tail -5 "$out/killed.log")"; failed=1; }
}

run_section() { # NAME
	echo "## $1"
	case $1 in
	topo) section_topo ;;
	matrix) section_matrix ;;
	bench) section_bench ;;
	choices) section_choices ;;
	fp8) section_fp8 ;;
	small) bench --graphs ;;
	killed) section_killed ;;
	*) echo "FAILED: there is no section \"$1\""; failed=1 ;;
	esac
	kill -0 "$daemon" 2>/dev/null || { echo "FAILED: the daemon has died"; failed=1; start_daemon again ""; }
}

failed=0
exec > >(tee "$out/tables.md")
tee=$!
echo "# $n_gpus GPUs, $n ranks, $("$python" -c 'import torch; print("PyTorch", torch.__version__)')${dry:+ (rehearsal)}"
start_daemon defaults ""
for section in "${sections[@]}"; do run_section "$section"; done
stop_daemon
[ $failed = 0 ] && echo "all good" || echo "something FAILED"
exec >&-
wait "$tee" || failed=1
exit $failed
