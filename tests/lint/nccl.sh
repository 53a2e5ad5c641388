#!/bin/bash
# SPDX-License-Identifier: MIT
# The NCCL interface: the libraries export what client/nccl/functions.h lists, each function and its
# twin, and nothing else; the map and the table in nccl(7) say the same.
. "$(dirname "$0")/lib.sh"
need nm
need readelf
bad=0

# differ WHAT A B
differ() {
	diff <(echo "$2") <(echo "$3") || { echo "client/nccl/functions.h (<) and $1 (>) differ"; bad=1; }
}

functions=$(sed -n 's/^\tF(\([A-Za-z0-9]*\), NCCL_[A-Z]*).*/\1/p' client/nccl/functions.h | sort)
[ "$(echo "$functions" | wc -l)" -gt 90 ] || { echo "client/nccl/functions.h does not look as this test expects"; exit 1; }
twins=$({ echo "$functions"; while read -r f; do echo "p$f"; done <<<"$functions"; } | sort)
answers=$(sed -n 's/^\tF(\([A-Za-z0-9]*\), NCCL_\([A-Z]*\)).*/\1 \L\2/p' client/nccl/functions.h | sort)

differ client/nccl/nccl.map "$twins" "$(sed -n 's/^\t\([a-zA-Z0-9]*\);$/\1/p' client/nccl/nccl.map | sort)"
differ "the table in man/nccl.7" "$answers" \
	"$(sed -n 's/^\.It Fn \([A-Za-z0-9]*\) Ta \([a-z]*\) .*/\1 \2/p' man/nccl.7 | sort)"
for name in librccl.so.1 libnccl.so.2; do
	lib=$builddir/client/nccl/.libs/$name
	[ -e "$lib" ] || { echo "no $lib: run make first"; exit 1; }
	differ "what $name exports" "$twins" \
		"$(nm -D --defined-only "$lib" | awk '$2 != "A" {print $3}' | sort)"
	readelf -d "$lib" | grep -q "(SONAME).*\[$name\]" || { echo "$name: another soname"; bad=1; }
	readelf -d "$lib" | grep -q '(SYMBOLIC)\|SYMBOLIC' || { echo "$name: another NCCL could take its calls"; bad=1; }
done
exit $bad
