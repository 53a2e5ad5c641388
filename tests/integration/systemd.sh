#!/bin/bash
# SPDX-License-Identifier: MIT
# Boots a real systemd in a container, with what `make install` installs, and runs systemd_guest.sh
# in it. Needs root, and once the network: a small Debian is made and kept in the user's cache.
set -euo pipefail

src=$(cd "${RCCLX_SRCDIR:-.}" && pwd)
build=$(cd "${RCCLX_BUILDDIR:-.}" && pwd)
cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/rcclxd
packages=systemd,systemd-sysv,dbus,libuv1,libprotobuf-c1,libconfig9,libhwloc15,libjansson4,libelf1

skip() {
	echo "skipped: $1"
	exit 77
}
variable() { # NAME: of the Makefile
	# shellcheck disable=SC2016 # for make to expand
	printf 'include Makefile\nprint-it:\n\t@printf %%s "$(%s)"\n' "$1" |
		make -s -C "$build" -f - print-it | tail -n 1
}

[ "$(id -u)" = 0 ] || skip "not root"
for tool in debootstrap systemd-nspawn flock make pkg-config; do
	command -v "$tool" >/dev/null || skip "$tool is not installed"
done
# The container runs what was built here: the same release of the same distribution.
# shellcheck source=/dev/null
release=$(. /etc/os-release && [ "${ID:-}" = debian ] && printf %s "${VERSION_CODENAME:-}") ||
	skip "this is not Debian"
prefix=$(variable prefix)
case $prefix in
/usr | /usr/local) ;;
*) skip "systemd does not look for units in the prefix $prefix" ;;
esac

mkdir -p "$cache"
base=$cache/root-$release
exec 9>"$base.lock"
flock 9
if [ "$(cat "$base/packages" 2>/dev/null)" != "$packages" ]; then
	rm -rf "$base" "$base.new"
	debootstrap --variant=minbase --include="$packages" "$release" "$base.new" >"$base.log" 2>&1 ||
		skip "debootstrap failed: $(tail -n 1 "$base.log")"
	rm -rf "$base.new/var/cache/apt/archives" "$base.new/var/lib/apt/lists"
	printf '%s\n' "$packages" >"$base.new/packages"
	mv "$base.new" "$base"
fi

root=$(mktemp -d "$cache/run.XXXXXX")
trap 'rm -rf "$root"' EXIT
cp -a --reflink=auto "$base/." "$root/"
flock -u 9

make -s -C "$build" install DESTDIR="$root" >"$root/install.log" 2>&1 || {
	cat "$root/install.log"
	exit 1
}
chroot "$root" ldconfig
if chroot "$root" ldd "$(variable sbindir)/rcclxd" | grep 'not found'; then
	skip "this build needs libraries that a Debian $release does not have"
fi

PKG_CONFIG_LIBDIR=$root$(variable libdir)/pkgconfig
export PKG_CONFIG_LIBDIR PKG_CONFIG_SYSROOT_DIR=$root
export PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 PKG_CONFIG_ALLOW_SYSTEM_LIBS=1
read -r -a cc <<<"${CC:-cc}"
read -r -a flags <<<"$(pkg-config --cflags --libs rcclx)"
"${cc[@]}" -std=gnu17 -Wall -Wextra -Werror -o "$root/usr/bin/pair" "$src/tests/integration/pair.c" \
	"${flags[@]}"

install -m 755 "$src/tests/integration/systemd_guest.sh" "$root/guest.sh"
cat >"$root/etc/systemd/system/guest.service" <<'UNIT'
[Unit]
After=basic.target
[Service]
Type=oneshot
ExecStart=/guest.sh
ExecStopPost=systemctl poweroff --force --force
UNIT
cat >"$root/etc/systemd/system/guest.target" <<'UNIT'
[Unit]
Requires=basic.target guest.service
After=basic.target
AllowIsolate=yes
UNIT

timeout --kill-after=10 180 systemd-nspawn -q -D "$root" --machine="rcclx-test-$$" --register=no --keep-unit \
	--private-network --boot systemd.unit=guest.target systemd.show_status=0 \
	</dev/null >"$root/console" 2>&1 || true
if [ ! -e "$root/report" ]; then
	cat "$root/console"
	# Not ours: no namespaces, no cgroups, no mounts where this test runs.
	grep -q 'systemd .* running in system mode' "$root/console" ||
		skip "systemd does not boot here: $(tail -n 1 "$root/console" | tr -d '\r')"
	exit 1
fi
cat "$root/report"
grep -qx 'guest: passed' "$root/report" || {
	tail -n 30 "$root/console"
	exit 1
}
