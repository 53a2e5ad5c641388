# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Common to the lint scripts. Sourced.
set -euo pipefail
srcdir=${RCCLX_SRCDIR:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
builddir=${RCCLX_BUILDDIR:-$srcdir/build}
export builddir
cd "$srcdir"

# need TOOL: skip this test when TOOL is not installed
need() {
	command -v "$1" >/dev/null || { echo "skipped: $1 is not installed"; exit 77; }
}

# sources GLOB...: files of the tree that belong to us, not built ones
sources() {
	find shm proto kernels client daemon tests examples \( -name '*.pb-c.*' -prune \) -o -type f \( "$@" \) -print | sort
}
