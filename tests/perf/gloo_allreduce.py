#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Gloo beside rcclx: allreduce of floats through torch.distributed, measured as rcclx-perf does.

Every call is timed on every rank and the slowest rank counts; ranks are pinned to core
(rank mod cores); results are checked. One JSON object per size.

Usage: gloo_allreduce.py RANKS SIZE...      (exits with 77 when torch with Gloo is not installed)
"""
import json
import os
import sys
import tempfile
import time

try:
    import torch
    import torch.distributed as dist
    import torch.multiprocessing as mp
except ImportError:
    sys.exit(77)

WARMUP = 5
BUDGET_S = 0.08
ITERATIONS_MIN, ITERATIONS_MAX = 20, 20000


def time_calls(tensor, n):
    """Seconds of each call, the slowest rank's, sorted; the tensor is summed in place."""
    seconds = torch.empty(n, dtype=torch.float64)
    for i in range(n):
        tensor.fill_(1)
        start = time.perf_counter()
        dist.all_reduce(tensor)
        seconds[i] = time.perf_counter() - start
    dist.all_reduce(seconds, op=dist.ReduceOp.MAX)
    return seconds.sort().values


def measure(size, rank, ranks):
    tensor = torch.empty(size // 4)
    typical = time_calls(tensor, WARMUP)[WARMUP // 2].item()
    n = min(max(int(BUDGET_S / typical), ITERATIONS_MIN), ITERATIONS_MAX)
    seconds = time_calls(tensor, n)
    if not bool((tensor == ranks).all()):
        raise SystemExit("gloo_allreduce: wrong result")
    if rank == 0:
        print(json.dumps({
            "collective": "all_reduce", "bytes": size // 4 * 4, "dtype": "float32",
            "ranks": ranks, "touch": False,
            "time_us_p50": round(seconds[n // 2].item() * 1e6, 3),
            "time_us_p99": round(seconds[n * 99 // 100].item() * 1e6, 3)}), flush=True)


def run(rank, ranks, sizes, meeting):
    torch.set_num_threads(1)
    os.sched_setaffinity(0, {rank % os.cpu_count()})
    dist.init_process_group("gloo", init_method="file://" + meeting, rank=rank, world_size=ranks)
    for size in sizes:
        measure(size, rank, ranks)
    dist.destroy_process_group()


def main():
    ranks, sizes = int(sys.argv[1]), [int(size) for size in sys.argv[2:]]
    if not dist.is_available() or not dist.is_gloo_available():
        sys.exit(77)
    with tempfile.TemporaryDirectory() as directory:
        mp.spawn(run, (ranks, sizes, os.path.join(directory, "meeting")), nprocs=ranks)


if __name__ == "__main__":
    main()
