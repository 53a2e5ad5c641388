#!/bin/bash
# SPDX-License-Identifier: MIT
# The host kernels compile for 64-bit Arm, where NEON is always there. Nothing runs them here.
. "$(dirname "$0")/lib.sh"
need aarch64-linux-gnu-gcc
flags=(-std=gnu17 -D_GNU_SOURCE -I. -O2 -ffp-contract=off -Wall -Wextra -Wshadow -Wconversion -Werror)
object=$(mktemp)
trap 'rm -f "$object"' EXIT

for source in kernels/*.c kernels/host/*.c kernels/codec/mxfp8.c kernels/codec/mx_portable.c; do
	own=()
	[ "$source" != kernels/host/fold_isa.c ] || own=(-DRX_FOLD_TABLE=rx_fold_neon -DRX_FOLD_NEON)
	aarch64-linux-gnu-gcc "${flags[@]}" "${own[@]}" -c "$source" -o "$object" || { echo "$source"; exit 1; }
	[ "$source" != kernels/host/fold_isa.c ] && continue
	# The folds became vector instructions. (No -q: it would end the pipe early.)
	aarch64-linux-gnu-objdump -d "$object" | grep -E 'fadd[[:space:]]+v[0-9]+\.4s' >/dev/null ||
		{ echo "$source: no vector additions"; exit 1; }
done
