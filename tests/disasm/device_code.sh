#!/bin/bash
# SPDX-License-Identifier: MIT
# The machine code of the GPU kernels that this build has in it (device_code.py), and that code
# which is wrong is noticed: compiled from sources that were spoilt on purpose.
set -euo pipefail
srcdir=${RCCLX_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}
builddir=${RCCLX_BUILDDIR:-$srcdir/build}
command -v python3 >/dev/null || { echo "skipped: python3 is not installed"; exit 77; }
shopt -s nullglob
amd=("$builddir"/kernels/device/gfx*.co)
nvidia=("$builddir"/kernels/device/sm_*.code)
bin=$(dirname "${HIP_OBJDUMP:-}")
if ! [ -x "$bin/llvm-objdump" ] || ! [ -x "$bin/llvm-readelf" ]; then
	[ ${#amd[@]} = 0 ] || echo "not looked at: AMD's; llvm-objdump and llvm-readelf are not in ${bin}"
	amd=()
fi
[ ${#amd[@]} -gt 0 ] || [ ${#nvidia[@]} -gt 0 ] || { echo "skipped: no code for GPUs that can be looked at is built"; exit 77; }

look() {
	python3 "$srcdir/tests/disasm/device_code.py" "$bin/llvm-objdump" "$bin/llvm-readelf" "$@"
}
look "${amd[@]}" "${nvidia[@]}"

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/kernels" "$dir/shm"
cp "$srcdir"/kernels/*.h "$dir/kernels/"
cp -r "$srcdir/kernels/codec" "$srcdir/kernels/device" "$dir/kernels/"
cp "$srcdir"/shm/*.h "$dir/shm/"

# spoilt NAME WHAT FILE COMMAND...: COMMAND makes FILE, and WHAT is said of it
spoilt() {
	local name=$1 what=$2 file=$3
	shift 3
	"$@" "$dir/kernels/device/copy.hip" -o "$file"
	if look "$file" >"$dir/said"; then
		echo "$name: not noticed in ${file##*/}"
		exit 1
	fi
	grep -q "$what" "$dir/said" || { echo "$name: something else was said:"; cat "$dir/said"; exit 1; }
	echo "$name: noticed in ${file##*/}"
}

# wrong PATTERN BY: in the copy of device.h, which has it
wrong() {
	cp "$srcdir/kernels/device/device.h" "$dir/kernels/device/"
	sed -i "s/$1/$2/" "$dir/kernels/device/device.h"
	! cmp -s "$srcdir/kernels/device/device.h" "$dir/kernels/device/device.h"
}

for object in "${amd[@]}"; do
	arch=$(basename "$object" .co)
	# shellcheck disable=SC2206 # flags are several
	hip=("$HIP_CLANG" $HIP_FLAGS --offload-arch="$arch")
	out=$dir/$arch.co
	cp "$srcdir/kernels/device/device.h" "$dir/kernels/device/"
	spoilt "no release" "that is a release" "$out" "${hip[@]}" -DRX_DEV_MUTATE_RELAXED
	wrong 'DEV_AS_GLOBAL(const uint64_t, p), __ATOMIC_ACQUIRE' 'DEV_AS_GLOBAL(const uint64_t, p), __ATOMIC_RELAXED'
	spoilt "no acquire" "no acquire" "$out" "${hip[@]}"
	wrong 'dev_u32x4 v = \*DEV_AS_GLOBAL(const dev_u32x4, p)' \
		'const volatile DEV_GLOBAL uint32_t *w = (const volatile DEV_GLOBAL uint32_t *)p; dev_u32x4 v = {w[0], w[1], w[2], w[3]}'
	spoilt "narrow accesses" "few global_load_dwordx4" "$out" "${hip[@]}"
	wrong '_Pragma("unroll")' '_Pragma("unroll 1")'
	spoilt "an array with an index" "scratch memory" "$out" "${hip[@]}"
done
for object in "${nvidia[@]}"; do
	arch=$(basename "$object" .code)
	# shellcheck disable=SC2206 # flags are several
	cuda=("$NVCC" $CUDA_FLAGS -cubin -arch="$arch")
	wrong '_Pragma("unroll")' '_Pragma("unroll 1")'
	spoilt "an array with an index" "arrays indexed" "$dir/$arch.code" "${cuda[@]}"
done
