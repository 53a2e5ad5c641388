#!/bin/bash
# SPDX-License-Identifier: MIT
# A barrier of the GPU kernels that is broken on purpose is noticed by ThreadSanitizer, and the
# whole one is not.
set -euo pipefail
srcdir=${RCCLX_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
# shellcheck disable=SC2206 # CC may have options
cc=(${CC:-gcc} -std=gnu17 -D_GNU_SOURCE -O1 -g -fno-strict-aliasing -fsanitize=thread -pthread)

if ! echo 'int main(void) { return 0; }' | "${cc[@]}" -x c - -o "$dir/probe" 2>/dev/null || ! "$dir/probe"; then
	echo "skipped: ${CC:-gcc} has no ThreadSanitizer"
	exit 77
fi

# check NAME EXPECTED [FLAG]: build $mutant with FLAG; are races reported or not?
check() {
	"${cc[@]}" ${3:+"$3"} "$srcdir/tests/gpu-cpu/$mutant.c" "$srcdir/tests/gpu-cpu/gpu_cpu.c" -o "$dir/$1"
	said=clean
	TSAN_OPTIONS=exitcode=66 "$dir/$1" >"$dir/log" 2>&1 || said=failed
	if grep -q 'WARNING: ThreadSanitizer: data race' "$dir/log"; then
		said=race
	fi
	echo "$1: $said, $(grep '^results' "$dir/log" || true)"
	[ "$said" = "$2" ] || { cat "$dir/log"; exit 1; }
}

mutant=mutant
check whole clean
check no-exit-barrier race -DRX_DEV_MUTATE_NO_EXIT
check relaxed-signal race -DRX_DEV_MUTATE_RELAXED
check one-region race -DRX_DEV_MUTATE_ONE_REGION
check no-sums-barrier race -DRX_DEV_MUTATE_NO_SUMS_BARRIER

mutant=mutant_inline
check inline-whole clean
check inline-relaxed-signal race -DRX_DEV_MUTATE_RELAXED
check inline-relaxed-wait race -DRX_DEV_MUTATE_ACQUIRE
check inline-one-slot race -DRX_DEV_MUTATE_ONE_REGION
check inline-mark-not-awaited race -DRX_DEV_MUTATE_NO_MARK
