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
ptx=("$builddir"/kernels/device/compute_*.code)
bin=$(dirname "${HIP_OBJDUMP:-}")
if ! [ -x "$bin/llvm-objdump" ] || ! [ -x "$bin/llvm-readelf" ]; then
	[ ${#amd[@]} = 0 ] || echo "not looked at: AMD's; llvm-objdump and llvm-readelf are not in ${bin}"
	amd=()
fi
[ ${#amd[@]} -gt 0 ] || [ ${#nvidia[@]} -gt 0 ] || { echo "skipped: no code for GPUs that can be looked at is built"; exit 77; }

look() {
	python3 "$srcdir/tests/disasm/device_code.py" "$bin/llvm-objdump" "$bin/llvm-readelf" "$@"
}
look "${amd[@]}" "${nvidia[@]}" "${ptx[@]}"

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/kernels" "$dir/shm"
cp "$srcdir"/kernels/*.h "$dir/kernels/"
cp -r "$srcdir/kernels/codec" "$srcdir/kernels/device" "$dir/kernels/"
cp "$srcdir"/shm/*.h "$dir/shm/"

# Of inline kernels the one that has no types.
sed -i "/---- folds ----/,\$d" "$dir/kernels/device/inline.hip"
source=copy.hip

# spoilt NAME WHAT FILE COMMAND...: COMMAND makes FILE of $source, and WHAT is said of it
spoilt() {
	local name=$1 what=$2 file=$3
	shift 3
	"$@" "$dir/kernels/device/$source" -o "$file"
	if look "$file" >"$dir/said"; then
		echo "$name: not noticed in ${file##*/}"
		exit 1
	fi
	grep -q "$what" "$dir/said" || { echo "$name: something else was said:"; cat "$dir/said"; exit 1; }
	echo "$name: noticed in ${file##*/}"
}

# wrong PATTERN BY [FILE]: in the copy of device.h or FILE, which has it; all others are whole
wrong() {
	local file=${3:-device.h}
	cp "$srcdir"/kernels/device/*.h "$dir/kernels/device/"
	sed -i "s/$1/$2/" "$dir/kernels/device/$file"
	! cmp -s "$srcdir/kernels/device/$file" "$dir/kernels/device/$file"
}

# What inline kernels must not do; COMMAND... makes a file of their source
spoilt_inline() {
	local file=$1
	shift
	wrong 'if (dev_load_word(&page->abort) ||' 'if (' dev_inline.h
	spoilt "nobody looks at the abort word" "looks at 3 of 4" "$file" "$@"
	wrong 'dev_store_word(&a->mem\[me\]->failed, status)' '(void)dev_count_up(\&a->mem[me]->failed)' dev_inline.h
	spoilt "another atomic change" "atomic changes that are not" "$file" "$@"
}

for object in "${amd[@]}"; do
	arch=$(basename "$object" .co)
	# shellcheck disable=SC2206 # flags are several
	hip=("$HIP_CLANG" $HIP_FLAGS --offload-arch="$arch")
	out=$dir/$arch.co
	source=copy.hip
	cp "$srcdir"/kernels/device/*.h "$dir/kernels/device/"
	spoilt "no release" "that is a release" "$out" "${hip[@]}" -DRX_DEV_MUTATE_RELAXED
	wrong 'DEV_AS_GLOBAL(const uint64_t, p), __ATOMIC_ACQUIRE' 'DEV_AS_GLOBAL(const uint64_t, p), __ATOMIC_RELAXED'
	spoilt "no acquire" "no acquire" "$out" "${hip[@]}"
	wrong 'dev_u32x4 v = \*DEV_AS_GLOBAL(const dev_u32x4, p)' \
		'const volatile DEV_GLOBAL uint32_t *w = (const volatile DEV_GLOBAL uint32_t *)p; dev_u32x4 v = {w[0], w[1], w[2], w[3]}'
	spoilt "narrow accesses" "few global_load_dwordx4" "$out" "${hip[@]}"
	wrong '_Pragma("unroll")' '_Pragma("unroll 1")'
	spoilt "an array with an index" "scratch memory" "$out" "${hip[@]}"
	source=inline.hip
	spoilt_inline "$out" "${hip[@]}"
	cp "$srcdir"/kernels/device/*.h "$dir/kernels/device/"
	spoilt "a mark that is no release" "no mark that is a release" "$out" "${hip[@]}" -DRX_DEV_MUTATE_RELAXED
	[ "$arch" != gfx90a ] || continue
	wrong 'DEV_AS_GLOBAL(uint64_t, p), v, __ATOMIC_RELAXED, __MEMORY_SCOPE_SYSTEM' \
		'DEV_AS_GLOBAL(uint64_t, p), v, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE'
	spoilt "words for this device" "not for the system" "$out" "${hip[@]}"
done
source=copy.hip
for object in "${nvidia[@]}"; do
	arch=$(basename "$object" .code)
	# shellcheck disable=SC2206 # flags are several
	cuda=("$NVCC" $CUDA_FLAGS -cubin -arch="$arch")
	wrong '_Pragma("unroll")' '_Pragma("unroll 1")'
	spoilt "an array with an index" "arrays indexed" "$dir/$arch.code" "${cuda[@]}"
done
source=inline.hip
for object in "${ptx[@]}"; do
	arch=$(basename "$object" .code)
	# shellcheck disable=SC2206 # flags are several
	cuda=("$NVCC" $CUDA_FLAGS -ptx -arch="$arch")
	spoilt_inline "$dir/$arch.code" "${cuda[@]}"
	wrong 'st.release.sys' 'st.relaxed.sys'
	spoilt "a mark that is no release" "no st.release.sys" "$dir/$arch.code" "${cuda[@]}"
	wrong 'ld.acquire.sys' 'ld.relaxed.gpu'
	spoilt "a mark that is no acquire" "no ld.acquire.sys" "$dir/$arch.code" "${cuda[@]}"
done
