#!/bin/bash
# SPDX-License-Identifier: MIT
# Latency and bus bandwidth over size, ours and peers, from bench.sh's measurements.
#
# Usage: plot.sh BENCH-FILE DIRECTORY      writes latency.svg and busbw.svg there
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [ $# -ne 2 ]; then
	echo "usage: plot.sh BENCH-FILE DIRECTORY" >&2
	exit 2
fi
if ! command -v gnuplot >/dev/null; then
	echo "plot.sh: gnuplot is missing (Debian: gnuplot-nox)" >&2
	exit 2
fi
data=$(mktemp "${TMPDIR:-/tmp}/rcclx-plot.XXXXXX")
trap 'rm -f "$data"' EXIT
"$here/report.py" --columns allreduce2 "$1" >"$data"

# plot FILE TITLE YLABEL KEY EXPRESSION, where {t} in the expression is the time's column
plot() {
	gnuplot <<-END
		set terminal svg size 800,500 font "sans,13" background "white"
		set output "$1"
		set title "$2"
		set xlabel "message, bytes"
		set ylabel "$3"
		set logscale x 2
		set logscale y
		set format y "%g"
		set xtics (8, "64" 64, "512" 512, "4 Ki" 4096, "32 Ki" 32768, "256 Ki" 262144, \
			"2 Mi" 2097152, "16 Mi" 16777216)
		set grid
		set key $4
		set style data linespoints
		set datafile missing "NaN"
		plot for [i = 2:$(head -n 1 "$data" | wc -w)] "$data" using 1:(t = column(i), $5) \
			title columnheader(i) linewidth 2 pointsize 0.5
	END
}
title="allreduce, float sum, 2 ranks on 2 cores, p50"
plot "$2/latency.svg" "$title" "microseconds" "left top" 't'
# Of 2 ranks the factor from algorithm to bus bandwidth is 1.
plot "$2/busbw.svg" "$title" "bus bandwidth, GB/s" "left top" 'column(1) / t / 1e3'
