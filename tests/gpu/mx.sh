#!/bin/bash
# SPDX-License-Identifier: MIT
# mx.c on a machine with an NVIDIA GPU, gcc and nvcc: builds what it needs, prints tables.
set -euo pipefail
cd "$(dirname "$0")/../.."
PATH=$PATH:/usr/local/cuda/bin
command -v nvcc >/dev/null || { echo "skipped: nvcc is not installed"; exit 77; }
cuda=$(dirname "$(dirname "$(command -v nvcc)")")
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
cc=(gcc -std=gnu17 -D_GNU_SOURCE -O2 -Wall -ffp-contract=off)
top=$PWD
cd "$out"
"${cc[@]}" -c "$top"/kernels/coll_*.c "$top"/kernels/precision*.c "$top"/kernels/codec/{mxfp8,mx_portable}.c \
	"$top"/kernels/host/{convert,copy,host_coll,host_lowprec,reduce}.c
"${cc[@]}" -DRX_FOLD_AVX2 -mavx2 -mf16c -c "$top/kernels/codec/mx_avx2.c"
"${cc[@]}" -DRX_FOLD_TABLE=rx_fold_scalar -c "$top/kernels/host/fold_isa.c" -o fold_scalar.o
"${cc[@]}" -DRX_FOLD_TABLE=rx_fold_avx2 -DRX_FOLD_AVX2 -mavx2 -mf16c -c "$top/kernels/host/fold_isa.c" -o fold_avx2.o
"${cc[@]}" -DRX_FOLD_TABLE=rx_fold_avx512 -DRX_FOLD_AVX512 -mavx512f -mavx512bw -mavx512vl -mavx512dq -mf16c \
	-c "$top/kernels/host/fold_isa.c" -o fold_avx512.o
cd "$top"
"${cc[@]}" -I"$cuda/include" tests/gpu/mx.c "$out"/*.o -L"$cuda/lib64/stubs" -lcuda -o "$out/mx"
nvcc -x cu -std=c++17 -O3 --fmad=false -cubin -arch=native kernels/device/mx.hip -o "$out/mx.cubin"
"$out/mx" "$out/mx.cubin"
