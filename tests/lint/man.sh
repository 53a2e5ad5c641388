#!/bin/bash
# SPDX-License-Identifier: MIT
# Man pages are well-formed; each public function has one, and is in the overview; each option of
# rcclxd and each key of its configuration is described.
. "$(dirname "$0")/lib.sh"
need mandoc
need python3
pages=$(mktemp -d)
trap 'rm -rf "$pages"' EXIT
bad=0

python3 man/gen-man.py --strict client/rcclx.h "$pages" || bad=1
mandoc -Tlint -Wwarning man/*.[13578] "$pages"/*.3 || bad=1

functions=$(python3 man/gen-man.py --list client/rcclx.h | sort)
listed=$(sed -n 's|^\tman/man3/\(.*\)\.3.*|\1|p' man/functions.mk | sort)
diff <(echo "$listed") <(echo "$functions") || {
	echo "man/functions.mk (<) and the functions of rcclx.h (>) differ"
	bad=1
}
for function in $functions; do
	grep -q "^\.Xr $function 3" man/librcclx.3 || {
		echo "man/librcclx.3: $function is missing"
		bad=1
	}
done

options=$(sed -n 's/^\t{"\([a-z-]*\)", [a-z]*_argument, .*/\1/p' daemon/options.c)
keys=$(sed -n 's/^\t{"\([a-z_]*\)", KIND_.*/\1/p' daemon/config.c)
if [ -z "$options" ] || [ -z "$keys" ]; then
	echo "daemon/options.c and daemon/config.c do not look as this test expects"
	exit 1
fi
for option in $options; do
	grep -qE "Fl Fl $option( |\$)" man/rcclxd.8 || {
		echo "man/rcclxd.8: --$option is missing"
		bad=1
	}
done
for key in $keys; do
	grep -qE "^\.It Ic $key( |\$)" man/rcclxd.conf.5 || {
		echo "man/rcclxd.conf.5: $key is missing"
		bad=1
	}
	grep -qE "^#  *$key = " contrib/rcclxd.conf || {
		echo "contrib/rcclxd.conf: $key is missing"
		bad=1
	}
done
exit $bad
