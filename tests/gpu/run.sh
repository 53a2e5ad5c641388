#!/bin/bash
# SPDX-License-Identifier: MIT
# Daemon and client processes on a machine with an NVIDIA GPU, which need not have what the build
# needs: calls in streams and graphs (tests/gpu-emu/test_gpu_stream.c on the GPU), and times.
#
#   run.sh pack BUILDDIR DIR   after a build with make check: everything that runs, into DIR; needs nvcc
#   run.sh run DIR             on the machine; DIR may be a copy. Logs and tables go to DIR/out
set -euo pipefail

pack() {
	local build dir source lib
	build=$(realpath "$1") dir=$2 source=$(cd "$(dirname "$0")/../.." && pwd)
	PATH=$PATH:/usr/local/cuda/bin
	command -v nvcc >/dev/null || { echo "skipped: nvcc is not installed"; exit 77; }
	local cuda
	cuda=$(dirname "$(dirname "$(command -v nvcc)")")
	mkdir -p "$dir"/{daemon,client/ctl,tests,.libs,lib}
	dir=$(realpath "$dir")
	cp "$source/tests/gpu/run.sh" "$dir/"
	cp "$build/daemon/rcclxd" "$dir/daemon/"
	cp "$build/client/ctl/rcclxctl" "$dir/client/ctl/"
	cp "$build/tests/gpu-emu/.libs/test_gpu_stream_cuda" "$dir/tests/"
	cp "$build/.libs/rcclx_backend_cuda.so" "$dir/.libs/"
	cp "$build/.libs/librcclx.so.0" "$dir/lib/"
	local cc=(gcc -std=gnu17 -D_GNU_SOURCE -O2 -Wall -Wextra -I"$cuda/include")
	"${cc[@]}" -fPIC -shared -fvisibility=hidden "$source/tests/gpu/cuda_user.c" \
		-L"$cuda/lib64/stubs" -lcuda -o "$dir/.libs/cuda_user.so"
	"${cc[@]}" "$source/tests/gpu/times.c" -L"$build/.libs" -lrcclx -L"$cuda/lib64/stubs" \
		-lcuda -o "$dir/tests/times"
	nvcc -x cu -std=c++17 -O3 --fmad=false -cubin -arch="${RX_TEST_GPU_ARCH:-sm_90}" \
		"$source/kernels/device/kernels.hip" -o "$dir/kernels.cubin"
	for lib in $(ldd "$dir"/daemon/rcclxd "$dir"/client/ctl/rcclxctl "$dir"/tests/test_gpu_stream_cuda |
		awk '$3 ~ /^\// {print $3}' | sort -u); do
		case $lib in
		*/libc.so.* | */libm.so.* | */librcclx.so.*) ;;
		*) cp -L "$lib" "$dir/lib/" ;;
		esac
	done
}

run_times() { # NAME, first line of the configuration
	local dir=$PWD daemon status=0
	printf '%s\ngpu = { backend = "cuda"; dir = "%s/.libs"; code = "%s/kernels.cubin"; };\n' \
		"$2" "$dir" "$dir" >"$work/conf"
	daemon/rcclxd --private --socket "$work/sock" --config "$work/conf" \
		2>"out/daemon-$1.log" & daemon=$!
	for _ in $(seq 100); do [ -S "$work/sock" ] && break; sleep 0.1; done
	echo "## ${2:-defaults}"
	timeout 120 tests/times "$work/sock" "$dir/kernels.cubin" 2>"out/times-$1.err" |
		tee "out/times-$1.md" || status=1
	client/ctl/rcclxctl --socket "$work/admin.sock" devices | tee "out/devices-$1"
	kill "$daemon"
	wait "$daemon" || status=1
	[ "$status" = 0 ] || tail -5 "out/daemon-$1.log" "out/times-$1.err"
	return "$status"
}

run() {
	local status=0
	cd "$1"
	mkdir -p out
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	export LD_LIBRARY_PATH=$PWD/lib RCCLX_BUILDDIR=$PWD RX_TEST_GPU_CODE=$PWD/kernels.cubin
	export RCCLX_BACKEND_DIR=$PWD/.libs RCCLX_GPU_CODE=$PWD/kernels.cubin
	nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
	timeout 200 tests/test_gpu_stream_cuda >out/stream.log 2>&1 || status=1
	grep -E '^\[ +(OK|FAILED)|^rank |ERROR' out/stream.log || status=1
	run_times eager 'waiting = { busy_poll_us = 0; };' || status=1
	run_times busy 'waiting = { busy_poll_us = 200; };' || status=1
	return "$status"
}

case ${1:-} in
pack) pack "$2" "$3" ;;
run) run "$2" ;;
*) sed -n '3,9s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
