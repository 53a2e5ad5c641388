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

job() { # N ARGUMENT...
	local n=$1
	shift
	timeout 240 "${with_daemon[@]}" "$@" 2>"$dir/errors" && return
	echo "$n ranks: exit status $?" && failed=1
	grep -v '^ *\(warnings.warn\|W[0-9]\)' "$dir/errors" | tail -25
}

with_daemon=("$prefix/bin/rcclxctl" run -- python3)

failed=0
python3 -c 'import torch; print("PyTorch", torch.__version__, torch.cuda.get_device_name(0))'
for n in 2 4; do
	job $n -m torch.distributed.run --standalone --nproc-per-node $n "$here/torch_job.py"
done
echo "Groups made by ncclCommSplit(), in communicators that do not block:"
BOUND=1 TORCH_NCCL_USE_COMM_NONBLOCKING=1 ROWS="all_reduce new_group groups_come_and_go coalesced" \
	job 4 -m torch.distributed.run --standalone --nproc-per-node 4 "$here/torch_job.py"
echo "Memory in expandable segments:"
PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True \
	ROWS="all_reduce sizes all_gather_into_tensor all_to_all_single send_recv ddp fsdp tensor_parallel_graph" \
	job 4 -m torch.distributed.run --standalone --nproc-per-node 4 "$here/torch_job.py"
job 3 "$here/torch_job.py" spawn 3 killed
"$prefix/bin/rcclxctl" devices || failed=1
kill -0 $daemon || { echo "the daemon has died"; failed=1; }
[ $failed = 0 ] || tail -30 "$dir/log"
exit $failed
