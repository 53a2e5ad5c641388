#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Collectives by the daemon beside those of PyTorch's own NCCL, in one process, in turns.

multi.sh starts it, once per rank, with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. The daemon is called through its
librccl.so.1, the other side through torch.distributed. Both get the same tensors, and what they make of them is
compared. Without a GPU buffers are in host memory, and the other side is Gloo: a rehearsal, no measurement.

Time is from a call to the end of the stream (of one call: "once"; of several, put there together, for each: "queued");
the slowest rank counts, then the median of the rounds. busbw is that of nccl-tests, of the better of the two times.
"""
import argparse
import ctypes
import os
import statistics
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist

RANK, N = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
GPUS = torch.cuda.device_count()
DEVICE = torch.device("cuda", RANK % GPUS) if GPUS else torch.device("cpu")
TYPES = {"bf16": (torch.bfloat16, 9), "fp32": (torch.float32, 7)}
OPS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")
BATCH = 20  # calls that are queued together
GRAPH_CALLS = 64


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_char * 128)]


class Daemon:
    """The daemon, by the C interface that NCCL's callers use."""

    name = "rcclxd"

    def __init__(self, folder, group):
        self.lib = ctypes.CDLL(os.path.join(folder, "librccl.so.1"))
        self.lib.ncclGetLastError.restype = ctypes.c_char_p
        unique = UniqueId()
        if RANK == 0:
            self.check(self.lib.ncclGetUniqueId(ctypes.byref(unique)))
        raw = [ctypes.string_at(ctypes.byref(unique), 128)]
        dist.broadcast_object_list(raw, 0, group=group)
        ctypes.memmove(ctypes.byref(unique), raw[0], 128)
        self.comm = ctypes.c_void_p()
        self.check(self.lib.ncclCommInitRank(ctypes.byref(self.comm), N, unique, RANK))

    def check(self, result):
        if result != 0:
            raise RuntimeError(f"rcclxd: {result}: {self.lib.ncclGetLastError(None).decode()}")

    def call(self, op, send, recv):
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream if GPUS else None)
        here, there = ctypes.c_void_p(send.data_ptr()), ctypes.c_void_p(recv.data_ptr())
        dtype = {t: code for t, code in TYPES.values()}[send.dtype]
        if op == "all_reduce":
            r = self.lib.ncclAllReduce(here, there, ctypes.c_size_t(send.numel()), dtype, 0, self.comm, stream)
        elif op == "all_gather":
            r = self.lib.ncclAllGather(here, there, ctypes.c_size_t(send.numel()), dtype, self.comm, stream)
        elif op == "reduce_scatter":
            r = self.lib.ncclReduceScatter(here, there, ctypes.c_size_t(recv.numel()), dtype, 0, self.comm, stream)
        else:
            r = self.lib.ncclAlltoAll(here, there, ctypes.c_size_t(send.numel() // N), dtype, self.comm, stream)
        self.check(r)

    def end(self):
        self.check(self.lib.ncclCommDestroy(self.comm))


class Peer:
    """NCCL, or Gloo where there is no GPU; what works in place there is given its result first."""

    def __init__(self, group):
        self.group = group
        self.name = "NCCL" if GPUS else "Gloo"

    def call(self, op, send, recv):
        if op == "all_reduce":
            recv.copy_(send)
            dist.all_reduce(recv, group=self.group)
        elif op == "all_gather":
            dist.all_gather(list(recv.chunk(N)), send, group=self.group)
        elif GPUS and op == "reduce_scatter":
            dist.reduce_scatter_tensor(recv, send, group=self.group)
        elif GPUS:
            dist.all_to_all_single(recv, send, group=self.group)
        else:
            whole = [torch.empty_like(send) for _ in range(N)]
            dist.all_gather(whole, send, group=self.group)
            share = slice(RANK * send.numel() // N, (RANK + 1) * send.numel() // N)
            parts = [rank[share] for rank in whole]
            recv.copy_(torch.stack(parts).sum(0) if op == "reduce_scatter" else torch.cat(parts))

    def call_in_place(self, op, send, recv):
        """As nccl-tests time it: an allreduce without the copy before it."""
        if op == "all_reduce":
            dist.all_reduce(recv, group=self.group)
        elif op == "all_gather" and GPUS:
            dist.all_gather_into_tensor(recv, send, group=self.group)
        else:
            self.call(op, send, recv)

    def end(self):
        pass


class Bench:
    def __init__(self, args):
        self.args = args
        dist.init_process_group("gloo", timeout=timedelta(seconds=120))
        self.control = dist.group.WORLD
        if GPUS:
            torch.cuda.set_device(DEVICE)
        self.daemon = Daemon(args.folder, self.control)
        self.sides = [self.daemon]
        # NCCL has no communicator of several ranks of one device.
        if not GPUS or N <= GPUS:
            self.sides.append(Peer(dist.new_group(backend="nccl") if GPUS else self.control))
        most = max(args.bytes)
        generator = torch.Generator().manual_seed(RANK + 1)
        # Small integers, whose sums are exact in every type; normal ones are what low precision is for.
        values = torch.randn(min(most, 1 << 22), generator=generator)
        if not args.normal:
            values = (values * 1e6).remainder(8).floor()
        self.buffers = {}
        for dtype, _ in TYPES.values():
            count = most // torch.empty(0, dtype=dtype).element_size()
            repeats = -(-count // values.numel())
            send = values.to(dtype).repeat(repeats)[:count].to(DEVICE)
            self.buffers[dtype] = (send, torch.empty(count, dtype=dtype, device=DEVICE))

    def say(self, text):
        if RANK == 0:
            print(text, flush=True)

    def slowest(self, seconds):
        t = torch.tensor([seconds], dtype=torch.float64)
        dist.all_reduce(t, dist.ReduceOp.MAX, group=self.control)
        return float(t)

    def tensors(self, op, dtype, n_bytes):
        send, recv = self.buffers[dtype]
        count = max(n_bytes // send.element_size() // N, 1) * N
        return (send[: count // N] if op == "all_gather" else send[:count],
                recv[: count // N] if op == "reduce_scatter" else recv[:count])

    def sync(self):
        if GPUS:
            torch.cuda.synchronize()

    def timed(self, call, n):
        dist.barrier(group=self.control)
        began = time.perf_counter()
        for _ in range(n):
            call()
        self.sync()
        return self.slowest((time.perf_counter() - began) / n)

    def compare(self, op, send, recv, tolerance=0.0):
        """What both make of the same tensors; "-" where there is only one side."""
        results = []
        for side in self.sides:
            recv.fill_(-1)
            side.call(op, send, recv)
            self.sync()
            results.append(recv.clone())
        if len(results) < 2:
            return "-"
        got, wanted = (r.to(torch.float64) for r in results)
        error = float((got - wanted).norm() / wanted.norm().clamp(min=1e-300))
        if self.slowest(error) > tolerance:
            raise RuntimeError(f"{op} of {send.numel()} {send.dtype}: relative error {error} on rank {RANK}")
        if not tolerance:
            return "same"
        return f"{self.slowest(error):.1e}" if self.slowest(error) > 1e-3 else "exact: not in low precision"

    def rounds(self, op, send, recv, n, queued):
        calls = [getattr(side, "call_in_place", side.call) for side in self.sides]
        times = [[] for _ in calls]
        for _ in range(self.args.rounds):
            for call, mine in zip(calls, times):
                count = BATCH if queued else 1
                for _ in range(max(n // count, 1)):
                    mine.append(self.timed(lambda c=call: c(op, send, recv), count))
        return [statistics.median(t) * 1e6 for t in times]

    def busbw(self, op, n_bytes, us):
        factor = (N - 1) / N * (2 if op == "all_reduce" else 1)
        return factor * n_bytes / us / 1e3

    def row(self, op, name, n_bytes, tolerance=0.0):
        send, recv = self.tensors(op, TYPES[name][0], n_bytes)
        same = self.compare(op, send, recv, tolerance)
        n = 20 if n_bytes <= 1 << 20 else 5 if n_bytes <= 1 << 26 else 2
        for side in self.sides:
            self.timed(lambda s=side: s.call(op, send, recv), 5)
        once = self.rounds(op, send, recv, n, False)
        queued = self.rounds(op, send, recv, n, True) if n_bytes <= 1 << 26 else once
        best = [min(pair) for pair in zip(once, queued)]
        cells = [op, name, str(n_bytes)]
        cells += [f"{t:.1f}" for t in once] + [f"{t:.1f}" for t in queued]
        cells += [f"{self.busbw(op, n_bytes, t):.1f}" for t in best]
        if len(best) == 2:
            cells += [f"{once[1] / once[0]:.2f}", f"{best[1] / best[0]:.2f}"]
        self.say("| " + " | ".join(cells + [same]) + " |")

    def header(self):
        names = [side.name for side in self.sides]
        head = ["op", "type", "bytes"] + [f"{x}, once, us" for x in names] + [f"{x}, queued, us" for x in names]
        head += [f"{x}, GB/s" for x in names]
        head += ["faster by, once", "by, best"] if len(names) == 2 else []
        self.say("| " + " | ".join(head + ["results"]) + " |")
        self.say("|" + "---|" * (len(head) + 1))

    def table(self):
        self.header()
        for op in self.args.ops:
            for name in self.args.types:
                for n_bytes in self.args.bytes:
                    self.row(op, name, n_bytes, self.args.tolerance)

    def graph(self, side, send, recv):
        for _ in range(3):
            side.call("all_reduce", send, recv)
        self.sync()
        dist.barrier(group=self.control)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(GRAPH_CALLS):
                getattr(side, "call_in_place", side.call)("all_reduce", send, recv)
        self.sync()
        return graph

    def graphs(self):
        """Small allreduces in a graph, replayed: time of each."""
        if not GPUS:
            self.say("skipped: no GPU, so no graphs")
            return
        names = [side.name for side in self.sides]
        self.say("| allreduce in a graph, bytes | " + " | ".join(f"{x}, us" for x in names) + " |")
        self.say("|" + "---|" * (len(names) + 1))
        for n_bytes in (1 << 10, 1 << 14, 1 << 18, 1 << 19):
            send, recv = self.tensors("all_reduce", torch.bfloat16, n_bytes)
            replays = [self.graph(side, send, recv) for side in self.sides]
            times = [[] for _ in replays]
            for _ in range(5 * self.args.rounds):
                for graph, mine in zip(replays, times):
                    mine.append(self.timed(graph.replay, 1) / GRAPH_CALLS * 1e6)
            self.say(f"| {n_bytes} | " + " | ".join(f"{statistics.median(t):.1f}" for t in times) + " |")

    def end(self):
        for side in self.sides:
            side.end()
        dist.destroy_process_group()


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="where librccl.so.1 is")
    parser.add_argument("--ops", nargs="+", default=OPS, choices=OPS)
    # Gloo has no bf16.
    parser.add_argument("--types", nargs="+", default=list(TYPES) if GPUS else ["fp32"], choices=list(TYPES))
    parser.add_argument("--bytes", nargs="+", type=int, default=[1 << s for s in range(10, 31, 2)])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tolerance", type=float, default=0.0, help="relative error; 0: the same bits")
    parser.add_argument("--normal", action="store_true", help="normal values instead of small integers")
    parser.add_argument("--graphs", action="store_true")
    return parser.parse_args()


def main():
    args = arguments()
    bench = Bench(args)
    if args.graphs:
        bench.graphs()
    else:
        bench.table()
    bench.end()


if __name__ == "__main__":
    try:
        main()
    except Exception as error:  # one line for the one that fails, rather than a page for each
        print(f"rank {RANK} of {N}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        os._exit(1)
