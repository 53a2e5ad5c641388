#!/bin/bash
# SPDX-License-Identifier: MIT
# What a newcomer does: compile the example with pkg-config against an installed rcclx, and run it.
# Installs into a directory of its own, where neither the build tree nor the system can help.
set -euo pipefail

src=$(cd "${RCCLX_SRCDIR:-.}" && pwd)
build=$(cd "${RCCLX_BUILDDIR:-.}" && pwd)

skip() {
	echo "skipped: $1"
	exit 77
}
command -v pkg-config >/dev/null || skip "no pkg-config"
# The compiler may come with options: CC="gcc -m64".
read -r -a cc <<<"${CC:-cc}"
command -v "${cc[0]}" >/dev/null || skip "no compiler ${cc[0]}"

root=$(mktemp -d "${TMPDIR:-/tmp}/rcclx-example.XXXXXX")
daemon=
finish() {
	if [ -n "$daemon" ]; then
		kill "$daemon" 2>/dev/null || true
		wait "$daemon" 2>/dev/null || true
	fi
	rm -rf "$root"
}
trap finish EXIT

make -C "$build" install DESTDIR="$root" >"$root/install.log" 2>&1 || {
	cat "$root/install.log"
	exit 1
}
pc=$(find "$root" -name rcclx.pc -print -quit)
[ -n "$pc" ] || {
	echo "no rcclx.pc installed"
	exit 1
}
libdir=$(dirname "$(find "$root" -name 'librcclx.so' -print -quit)")
sbin=$(dirname "$(find "$root" -name rcclxd -perm -u+x -type f -print -quit)")
bin=$(dirname "$(find "$root" -name rcclx-perf -perm -u+x -type f -print -quit)")

export PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR=$root
PKG_CONFIG_PATH=$(dirname "$pc")
read -r -a flags <<<"$(pkg-config --cflags --libs rcclx)"
cp "$src/examples/allreduce.c" "$root/example.c"
"${cc[@]}" -Wall -Wextra -Werror -o "$root/example" "$root/example.c" "${flags[@]}"

export LD_LIBRARY_PATH=$libdir RCCLX_SOCKET=$root/s
"$sbin/rcclxd" --private --socket "$root/s" 2>"$root/daemon.log" &
daemon=$!
for _ in $(seq 500); do
	[ ! -S "$root/s" ] || break
	sleep 0.01
done
"$root/example" >"$root/out" || {
	cat "$root/out" "$root/daemon.log"
	exit 1
}

# 1 + 2 + 3 + 4 times the index.
cat "$root/out"
n_right=$(grep -c 'x\[1\] = 10, x\[999\] = 9990$' "$root/out")
[ "$n_right" -eq 4 ] || {
	echo "$n_right of 4 ranks have the right result"
	exit 1
}

# The installed tools find each other too.
unset RCCLXD
"$bin/rcclxctl" status | grep -q '^rcclxd .*: serving'
"$bin/rcclx-perf" all_reduce --private --ranks 2 -e 64K -n 20 --check | tail -n 2
echo "example: passed"
