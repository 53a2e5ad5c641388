#!/bin/bash
# SPDX-License-Identifier: MIT
# Man pages are well-formed, and there is one for each public function.
. "$(dirname "$0")/lib.sh"
need mandoc
need python3
pages=$(mktemp -d)
trap 'rm -rf "$pages"' EXIT
python3 man/gen-man.py client/rcclx.h "$pages"
mandoc -Tlint -Wwarning man/*.[13578] "$pages"/*.3
listed=$(sed -n 's|^\tman/man3/\(.*\)\.3.*|\1|p' man/functions.mk | sort)
diff <(echo "$listed") <(python3 man/gen-man.py --list client/rcclx.h | sort) ||
	{ echo "man/functions.mk (<) and the functions of rcclx.h (>) differ"; exit 1; }
