#!/bin/bash
# SPDX-License-Identifier: MIT
. "$(dirname "$0")/lib.sh"
need shellcheck
mapfile -t scripts < <(find . -name '*.sh' -not -path './build/*' -not -path './contrib/build-aux/*' | sort)
extra=()
[ ! -e .ci/run ] || extra=(.ci/run)
shellcheck -x -P SCRIPTDIR autogen.sh quickstart "${extra[@]}" "${scripts[@]}"
