#!/bin/bash
# SPDX-License-Identifier: MIT
# Error of low precision over sigma and number of ranks, from what test_mxfp8_error prints.
#
# Usage: plot_mxfp8.sh TEST-PROGRAM DIRECTORY      writes low-precision.svg there
set -euo pipefail

if [ $# -ne 2 ]; then
	echo "usage: plot_mxfp8.sh TEST-PROGRAM DIRECTORY" >&2
	exit 2
fi
if ! command -v gnuplot >/dev/null; then
	echo "plot_mxfp8.sh: gnuplot is missing (Debian: gnuplot-nox)" >&2
	exit 2
fi
data=$(mktemp "${TMPDIR:-/tmp}/rcclx-plot.XXXXXX")
trap 'rm -f "$data"' EXIT
"$1" | grep '^float32 ' >"$data"

gnuplot <<-END
	set terminal svg size 800,560 font "sans,13" background "white"
	set output "$2/low-precision.svg"
	set title "relative L2 error, float32, N(0, sigma)"
	set xlabel "sigma"
	set ylabel "error"
	set logscale xy
	set format x "1e%T"
	set yrange [0.005:1.5]
	set grid
	set key outside bottom center
	set style data linespoints
	plot "$data" using 2:4 title "cast to E4M3 without a scale" linewidth 2, \
		"" using 2:6 title "MXFP8, allreduce of 2 ranks" linewidth 2, \
		"" using 2:12 title "MXFP8, allreduce of 8 ranks" linewidth 2, \
		"" using 2:3 title "MXFP8, once" linewidth 2, \
		"" using 2:5 title "INT8 with MXFP8's scales, once" linewidth 2
END
