#!/bin/bash
# SPDX-License-Identifier: MIT
# .clang-format decides; and no file is longer than 1000 lines,
# but the public header, which is the manual of every function.
. "$(dirname "$0")/lib.sh"
need clang-format
sources -name '*.c' -o -name '*.h' | xargs clang-format --dry-run --Werror
long=$(sources -name '*.c' -o -name '*.h' | xargs wc -l | awk '$2 != "total" && $2 != "client/rcclx.h" && $1 > 1000 {print}')
[ -z "$long" ] || { echo "files over 1000 lines:"; echo "$long"; exit 1; }
