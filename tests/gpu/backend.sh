#!/bin/bash
# SPDX-License-Identifier: MIT
# backend.c on a machine with an NVIDIA GPU, gcc and nvcc: builds what it needs, prints a table.
set -euo pipefail
cd "$(dirname "$0")/../.."
PATH=$PATH:/usr/local/cuda/bin
command -v nvcc >/dev/null || { echo "skipped: nvcc is not installed"; exit 77; }
cuda=$(dirname "$(dirname "$(command -v nvcc)")")
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
cc=(gcc -std=gnu17 -D_GNU_SOURCE -O2 -Wall)
"${cc[@]}" -fPIC -shared -fvisibility=hidden -DRX_GPU_CUDA kernels/gpu/*.c -o "$out/plugin.so" -Wl,-z,nodelete
"${cc[@]}" -I"$cuda/include" tests/gpu/backend.c -L"$cuda/lib64/stubs" -lcuda -o "$out/backend"
nvcc -cubin -arch=native tests/gpu/backend_words.cu -o "$out/words.cubin"
"$out/backend" "$out/plugin.so" "$out/words.cubin"
