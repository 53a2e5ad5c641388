#!/bin/bash
# SPDX-License-Identifier: MIT
# The systemd files: valid, hardened, and users and folders as described.
. "$(dirname "$0")/lib.sh"
need systemd-analyze
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
units=$root/units
mkdir -p "$units" "$root/etc" "$root/usr/lib/sysusers.d" "$root/usr/lib/tmpfiles.d"
cp contrib/systemd/*.socket "$units/"
sed "s|@sbindir@|/bin|; s|/bin/rcclxd --systemd|/bin/true|" contrib/systemd/rcclxd.service.in >"$units/rcclxd.service"

# It exits 0 on unknown keys: demand silence instead. The man pages are not installed here.
said=$(systemd-analyze verify --man=no "$units"/rcclxd.service "$units"/*.socket 2>&1 | grep -v 'Failed to.*cgroup' || true)
[ -z "$said" ] || { echo "$said"; exit 1; }
systemd-analyze security --offline=true --threshold=20 "$units/rcclxd.service" | tail -2

cp contrib/systemd/rcclx.sysusers "$root/usr/lib/sysusers.d/rcclx.conf"
cp contrib/systemd/rcclx.tmpfiles "$root/usr/lib/tmpfiles.d/rcclx.conf"
systemd-sysusers --root="$root" rcclx.conf
grep -q '^rcclxd:' "$root/etc/passwd"
grep -q '^rcclx:.*rcclxd' "$root/etc/group"
touch "$root/etc/machine-id"
systemd-tmpfiles --root="$root" --create rcclx.conf
[ -d "$root/run/rcclx" ]
