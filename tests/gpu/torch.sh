#!/bin/bash
# SPDX-License-Identifier: MIT
# torch_job.py over an installed rcclxd, with 2 and 4 processes on one GPU: prints its tables.
# usage: torch.sh [PREFIX]   where rcclxd was installed; /usr/local
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
prefix=${1:-/usr/local}
python3 -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' 2>/dev/null ||
	{ echo "skipped: no PyTorch with a GPU"; exit 77; }
dir=$(mktemp -d)
export RCCLX_SOCKET=$dir/rcclxd.sock RCCLX_NCCL_DIR=$prefix/lib/rcclxd/nccl
"$prefix/sbin/rcclxd" --socket "$RCCLX_SOCKET" 2>"$dir/log" &
daemon=$!
trap 'kill $daemon 2>/dev/null; rm -rf "$dir"' EXIT
for _ in $(seq 100); do [ -S "$RCCLX_SOCKET" ] && break; sleep 0.1; done

job() {
	local n=$1
	shift
	timeout 240 "$prefix/bin/rcclxctl" run -- python3 -m torch.distributed.run --standalone \
		--nproc-per-node "$n" "$here/torch_job.py" "$@" 2>"$dir/errors" && return
	echo "$n ranks $*: exit status $?" && failed=1
	grep -v '^ *\(warnings.warn\|W[0-9]\)' "$dir/errors" | tail -25
}

failed=0
python3 -c 'import torch; print("PyTorch", torch.__version__, torch.cuda.get_device_name(0))'
for n in 2 4; do job $n; done
job 3 killed
"$prefix/bin/rcclxctl" devices || failed=1
kill -0 $daemon || { echo "the daemon has died"; failed=1; }
[ $failed = 0 ] || tail -30 "$dir/log"
exit $failed
