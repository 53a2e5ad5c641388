#!/bin/bash
# SPDX-License-Identifier: MIT
# The libraries' binary interfaces beside those that are on record: what a program was linked
# against must not go. `abidiff.sh --record` writes the record anew, after additions.
set -euo pipefail
srcdir=${RCCLX_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}
builddir=${RCCLX_BUILDDIR:-$srcdir/build}
command -v abidiff >/dev/null || { echo "skipped: abidiff is not installed (abigail-tools)"; exit 77; }
[ "$(uname -m)" = x86_64 ] || { echo "skipped: the record is of x86-64"; exit 77; }

# check LIBRARY HEADER
check() {
	local lib=$builddir/$1 header=$srcdir/$2 record rc=0
	record=$srcdir/tests/abi/$(basename "$1").abi
	if [ "${record_only:-}" = 1 ]; then
		abidw --no-corpus-path --no-comp-dir-path --no-show-locs \
			--header-file "$header" --drop-private-types "$lib" >"$record"
		return
	fi
	abidiff --header-file2 "$header" --drop-private-types --no-show-locs \
		--no-added-syms "$record" "$lib" || rc=$?
	# Bit 3: incompatible; bits 0 and 1: abidiff itself failed.
	[ $((rc & 11)) = 0 ] || { echo "$1: no longer what programs were linked against"; exit 1; }
}

[ "${1:-}" != --record ] || record_only=1
check .libs/librcclx.so.0 client/rcclx.h
check client/nccl/.libs/libnccl.so.2 client/nccl/nccl.h
