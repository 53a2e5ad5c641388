#!/bin/bash
# SPDX-License-Identifier: MIT
# run.sh [SECONDS]: every fuzzer on its corpus, for SECONDS (30) each. Run it in the build folder.
#
# The corpus is only read; inputs that crash, hang or leak are left in ./fuzz-found/.
set -u
seconds=${1:-30}
corpus=$(cd "$(dirname "$0")" && pwd)/corpus
programs=tests/fuzz
found=$PWD/fuzz-found
bad=0
n=0

case $seconds in
'' | 0* | *[!0-9]*)
	echo "usage: run.sh [SECONDS]" >&2
	exit 2
	;;
esac
new=$(mktemp -d)
trap 'rm -rf "$new"' EXIT

for fuzzer in "$programs"/fuzz_*; do
	name=${fuzzer##*/}
	# Also there: sources, and objects of the build.
	[[ $name != *.* && -f $fuzzer && -x $fuzzer ]] || continue
	n=$((n + 1))
	mkdir -p "$new/$name" "$found"
	seeds=()
	[ -d "$corpus/$name" ] && seeds=("$corpus/$name")
	echo "== $name: $seconds s"
	if "$fuzzer" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=65700 \
		-print_final_stats=1 -verbosity=1 -artifact_prefix="$found/$name-" \
		"$new/$name" "${seeds[@]}" </dev/null >"$new/$name.log" 2>&1; then
		grep -E 'stat::number_of_executed_units|stat::new_units_added' "$new/$name.log"
	else
		echo "$name failed; inputs that did it are in $found:"
		tail -n 60 "$new/$name.log"
		bad=1
	fi
done
rmdir "$found" 2>/dev/null
if [ "$n" -eq 0 ]; then
	echo "no fuzzers in $PWD/$programs: configure with --enable-fuzz CC=clang" >&2
	exit 2
fi
exit $bad
