#!/bin/bash
# SPDX-License-Identifier: MIT
# librcclx exports what its map says and what rcclx.h documents, and nothing else.
. "$(dirname "$0")/lib.sh"
need nm
need python3

lib=$builddir/.libs/librcclx.so
[ -e "$lib" ] || { echo "no $lib: run make first"; exit 1; }
exported=$(nm -D --defined-only "$lib" | awk '$2 != "A" {sub(/@.*/, "", $3); print $3}' | sort -u)
map=$(sed -n 's/^\t\(rcclx_[a-z0-9_]*\);$/\1/p' client/rcclx.map | sort -u)
documented=$(python3 man/gen-man.py --list client/rcclx.h | sort -u)

diff <(echo "$map") <(echo "$exported") || { echo "client/rcclx.map (<) and exported symbols (>) differ"; exit 1; }
diff <(echo "$map") <(echo "$documented") || { echo "client/rcclx.map (<) and docstrings (>) differ"; exit 1; }
if nm -D --defined-only "$builddir/daemon/rcclxd" | grep -qE ' [TDB] rx_'; then
	echo "rcclxd exports internal symbols"
	exit 1
fi
