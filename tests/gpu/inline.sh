#!/bin/bash
# SPDX-License-Identifier: MIT
# The inline kernels on a machine with one NVIDIA GPU, which need not have what the build needs:
# results of 2, 4 and 8 processes under MPS against the oracle, and times (inline.c).
#
#   inline.sh pack DIR         what runs, into DIR; needs gcc and nvcc
#   inline.sh run DIR [sweep]  on the machine; DIR may be a copy. Tables go to DIR/out. MPS is
#                              started for it alone, and ended. sweep: what rx_inl_plan() is made of
set -euo pipefail

pack() {
	local dir source cuda
	dir=$1 source=$(cd "$(dirname "$0")/../.." && pwd)
	PATH=$PATH:/usr/local/cuda/bin
	command -v nvcc >/dev/null || { echo "skipped: nvcc is not installed"; exit 77; }
	cuda=$(dirname "$(dirname "$(command -v nvcc)")")
	mkdir -p "$dir"
	dir=$(realpath "$dir")
	cd "$source"
	cp tests/gpu/inline.sh "$dir/"
	gcc -std=gnu17 -D_GNU_SOURCE -O2 -Wall -Wextra -I"$cuda/include" tests/gpu/inline.c \
		tests/oracle/oracle.c kernels/coll_extent.c kernels/coll_types.c \
		-L"$cuda/lib64/stubs" -lcuda -lm -o "$dir/inline"
	nvcc -x cu -std=c++17 -O3 --fmad=false -cubin -arch="${RX_TEST_GPU_ARCH:-sm_90}" \
		kernels/device/kernels.hip -o "$dir/kernels.cubin"
}

end_mps() {
	echo quit | timeout 20 nvidia-cuda-mps-control >/dev/null 2>&1 || true
	rm -rf "$work"
}

run() {
	local status=0 ranks
	cd "$1"
	mkdir -p out
	command -v nvidia-cuda-mps-control >/dev/null || { echo "skipped: no nvidia-cuda-mps-control"; exit 77; }
	work=$(mktemp -d)
	trap end_mps EXIT
	export CUDA_MPS_PIPE_DIRECTORY=$work/pipe CUDA_MPS_LOG_DIRECTORY=$work/log
	mkdir "$work/pipe" "$work/log"
	nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
	nvidia-cuda-mps-control -d
	for ranks in 2 4 8; do
		timeout 250 ./inline kernels.cubin check "$ranks" || status=1
	done
	{
		echo "| ranks | launched by | type | bytes | plan | queued, us | replayed graph of 64, us | host, us |"
		echo "|---|---|---|---|---|---|---|---|"
		for ranks in 2 4 8; do
			timeout 250 ./inline kernels.cubin times "$ranks" || status=1
		done
	} >out/times.md
	cat out/times.md
	[ "${2:-}" = sweep ] || return "$status"
	for ranks in 2 4 8; do
		timeout 250 ./inline kernels.cubin sweep "$ranks" || status=1
	done >out/sweep.txt
	return "$status"
}

case ${1:-} in
pack) pack "$2" ;;
run) run "$2" "${3:-}" ;;
*) sed -n '3,9s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
