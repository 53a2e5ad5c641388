#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""PyTorch's "nccl" backend with several processes, also on one GPU: each row is one thing that works or not.

Started by torch.sh, once per rank, with torchrun's variables; each row has process groups of its own.
Rank 0 prints the table; the exit status is the number of rows that failed.

"torch_job.py spawn N killed" starts N ranks itself, without a launcher that ends all when one ends.
"""
import ctypes
import os
import random
import signal
import socket
import subprocess
import sys
import time
from datetime import timedelta

if sys.argv[1:2] != ["spawn"]:
    import torch
    import torch._dynamo  # else DistributedDataParallel imports it, in a circle, beside threads of PyTorch's
    import torch.distributed as dist
    import torch.nn as nn
    from torch.nn.parallel import DistributedDataParallel


def spawn(n, args):
    """The last of @n ranks kills itself, the others have to end well."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    ranks = []
    for rank in range(n):
        env = dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(n), MASTER_ADDR="127.0.0.1",
                   MASTER_PORT=str(port))
        ranks.append(subprocess.Popen([sys.executable, __file__, *args], env=env))
    ends = [rank.wait() for rank in ranks]
    wanted = [0] * (n - 1) + [-signal.SIGKILL]
    if ends != wanted:
        print(f"{n} ranks  FAILED: they ended with {ends}, expected {wanted}", flush=True)
    return ends != wanted


if sys.argv[1:2] == ["spawn"]:
    sys.exit(spawn(int(sys.argv[2]), sys.argv[3:]))

RANK = int(os.environ["RANK"])
N = int(os.environ["WORLD_SIZE"])
DEVICE = torch.device("cuda", RANK % max(torch.cuda.device_count(), 1))
ODD = 10007


def expect(condition, text):
    if not condition:
        raise AssertionError(text)


def data(rank, count=ODD, dtype=torch.float32):
    """Small integers that differ by rank and index: their sums are exact in every type."""
    values = (torch.arange(count, device=DEVICE) * (rank + 3) + rank) % 7
    return (values % 2 == 1) if dtype == torch.bool else values.to(dtype)


def sum_of_all(count=ODD, dtype=torch.float32):
    return torch.stack([data(r, count, torch.float64) for r in range(N)]).sum(0).to(dtype)


def same(got, wanted, what=""):
    expect(torch.equal(got, wanted), f"{what} differs at {int((got != wanted).sum())} places")


def all_reduce():
    for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.int64, torch.int32, torch.uint8):
        x = data(RANK, dtype=dtype)
        dist.all_reduce(x)
        same(x, sum_of_all(dtype=dtype), str(dtype))
    x = data(RANK, dtype=torch.bool)
    dist.all_reduce(x)
    same(x, torch.stack([data(r, dtype=torch.bool) for r in range(N)]).any(0), "bool")
    for op, fold in ((dist.ReduceOp.MAX, "amax"), (dist.ReduceOp.MIN, "amin"), (dist.ReduceOp.PRODUCT, "prod")):
        x = data(RANK)
        dist.all_reduce(x, op)
        same(x, getattr(torch.stack([data(r) for r in range(N)]), fold)(0), str(op))


def sizes():
    for count in (1, 2, 31, 1 << 10, (1 << 20) + 1, 1 << 24):
        x = data(RANK, count)
        dist.all_reduce(x)
        same(x, sum_of_all(count), str(count))


class Managed:
    """Memory that host and device see, as a tensor: what torch.as_tensor() asks for."""

    def __init__(self, count):
        runtime, at = ctypes.CDLL(f"libcudart.so.{torch.version.cuda.split('.')[0]}"), ctypes.c_void_p()
        expect(runtime.cudaMallocManaged(ctypes.byref(at), ctypes.c_size_t(4 * count), 1) == 0, "no managed memory")
        self.__cuda_array_interface__ = {"shape": (count,), "typestr": "<f4", "data": (at.value, False), "version": 3}


def managed_memory():
    x = torch.as_tensor(Managed(ODD), device=DEVICE)
    for _ in range(3):
        x.copy_(data(RANK))
        dist.all_reduce(x)
        same(x, sum_of_all(ODD))


def all_gather_into_tensor():
    out = torch.empty(N * ODD, device=DEVICE)
    dist.all_gather_into_tensor(out, data(RANK))
    same(out, torch.cat([data(r) for r in range(N)]))


def all_gather_list():
    out = [torch.empty(ODD, device=DEVICE) for _ in range(N)]
    dist.all_gather(out, data(RANK))
    same(torch.cat(out), torch.cat([data(r) for r in range(N)]))


def reduce_scatter_tensor():
    out = torch.empty(ODD, device=DEVICE)
    dist.reduce_scatter_tensor(out, data(RANK, N * ODD))
    same(out, sum_of_all(N * ODD)[RANK * ODD : (RANK + 1) * ODD])


def all_to_all_single():
    out = torch.empty(N * 100, device=DEVICE)
    dist.all_to_all_single(out, data(RANK, N * 100))
    same(out, torch.cat([data(r, N * 100)[RANK * 100 : (RANK + 1) * 100] for r in range(N)]))
    sends = [10 * (to + 1) for to in range(N)]
    out = torch.empty(N * sends[RANK], device=DEVICE)
    dist.all_to_all_single(out, data(RANK, sum(sends)), [sends[RANK]] * N, sends)
    first = sum(sends[:RANK])
    same(out, torch.cat([data(r, sum(sends))[first : first + sends[RANK]] for r in range(N)]), "uneven")


def broadcast_and_reduce():
    x = data(RANK)
    dist.broadcast(x, N - 1)
    same(x, data(N - 1), "broadcast")
    x = data(RANK)
    dist.reduce(x, 0)
    if RANK == 0:
        same(x, sum_of_all(), "reduce")


def send_recv():
    x = torch.empty(ODD, device=DEVICE)
    if RANK % 2 == 0 and RANK + 1 < N:
        dist.send(data(RANK), RANK + 1)
        dist.recv(x, RANK + 1)
        same(x, data(RANK + 1))
    elif RANK % 2 == 1:
        dist.recv(x, RANK - 1)
        dist.send(data(RANK), RANK - 1)
        same(x, data(RANK - 1))


def batch_isend_irecv():
    x = torch.empty(ODD, device=DEVICE)
    mine = data(RANK)
    ops = [dist.P2POp(dist.isend, mine, (RANK + 1) % N), dist.P2POp(dist.irecv, x, (RANK - 1) % N)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    same(x, data((RANK - 1) % N))


def new_group():
    groups = [dist.new_group([r for r in range(N) if r % 2 == which]) for which in (0, 1)]
    x = data(RANK)
    dist.all_reduce(x, group=groups[RANK % 2])
    same(x, torch.stack([data(r) for r in range(RANK % 2, N, 2)]).sum(0))
    torch.cuda.synchronize()
    dist.destroy_process_group(groups[RANK % 2])


def groups_come_and_go():
    """Ranks leave at different times, and while others still wait for the end of theirs."""
    random.seed(RANK)
    n_groups = N // 2
    for turn in range(10):
        groups = [dist.new_group([r for r in range(N) if r % n_groups == which]) for which in range(n_groups)]
        mine = groups[RANK % n_groups]
        x = data(RANK, 1 << 18)
        time.sleep(random.random() / 50)
        dist.all_reduce(x, group=mine)
        time.sleep(random.random() / 50)
        if RANK < 2:
            torch.cuda.synchronize()
        dist.destroy_process_group(mine)
        wanted = torch.stack([data(r, 1 << 18) for r in range(RANK % n_groups, N, n_groups)]).sum(0)
        same(x, wanted, f"round {turn}")


def coalesced():
    tensors = [data(RANK, count) for count in (5, 100, ODD)]
    with dist._coalescing_manager(device=DEVICE, async_ops=True) as manager:
        for x in tensors:
            dist.all_reduce(x)
    manager.wait()
    for x in tensors:
        same(x, sum_of_all(len(x)))


def async_op():
    works = []
    for _ in range(20):
        x = data(RANK)
        works.append((dist.all_reduce(x, async_op=True), x))
    for work, x in works:
        work.wait()
        same(x * 1, sum_of_all())


def stream_order():
    """The host never waits: the producer is slow, and the consumer comes at once."""
    slow = torch.randn(4096, 4096, device=DEVICE)
    x = torch.zeros(1 << 20, device=DEVICE)
    for i in range(20):
        for _ in range(4):
            slow = slow @ slow / 4096
        x.fill_(i + RANK)
        dist.all_reduce(x)
        wanted = N * i + N * (N - 1) // 2
        y = (x - wanted).abs().max()
        expect(float(y) == 0, f"round {i}: off by {float(y)}")


def barrier():
    for _ in range(5):
        dist.barrier()


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.layers = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 8))

    def forward(self, x):
        return self.layers(x)


def train(model, first, count, steps=20):
    """Losses of the whole batch, of which this process has @count rows."""
    torch.manual_seed(2)
    xs, ys = torch.randn(steps, 32 * N, 64, device=DEVICE), torch.randn(steps, 32 * N, 8, device=DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    losses = []
    for x, y in zip(xs, ys):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x[first : first + count]), y[first : first + count])
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses)


def compare_training(wrap):
    alone = train(Model().to(DEVICE), 0, 32 * N)
    shared = train(wrap(Model().to(DEVICE)), 32 * RANK, 32)
    dist.all_reduce(shared, dist.ReduceOp.AVG)
    worst = float((shared - alone).abs().max())
    expect(worst < 1e-4, f"losses differ by {worst}")


def ddp():
    compare_training(lambda model: DistributedDataParallel(model, device_ids=[DEVICE.index]))


def fsdp():
    from torch.distributed.fsdp import fully_shard

    compare_training(fully_shard)


class TensorParallel(nn.Module):
    """Two layers: columns of the first and rows of the second, one sum after them."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        up, down = torch.randn(512, 256, device=DEVICE) / 16, torch.randn(256, 512, device=DEVICE) / 16
        self.whole = (up, down)
        self.up, self.down = up.chunk(N, 0)[RANK].contiguous(), down.chunk(N, 1)[RANK].contiguous()

    def forward(self, x):
        y = torch.relu(x @ self.up.T) @ self.down.T
        dist.all_reduce(y)
        return y

    def alone(self, x):
        up, down = self.whole
        return torch.relu(x @ up.T) @ down.T


def close_to(got, wanted, what):
    worst = float((got - wanted).abs().max())
    expect(worst < 1e-3, f"{what}: off by {worst}")


def tensor_parallel():
    model = TensorParallel()
    for seed in range(10):
        torch.manual_seed(seed)
        x = torch.randn(16, 256, device=DEVICE)
        close_to(model(x), model.alone(x), "eager")


def tensor_parallel_graph():
    model = TensorParallel()
    x = torch.zeros(16, 256, device=DEVICE)
    for _ in range(3):
        model(x)
    torch.cuda.synchronize()
    dist.barrier()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = model(x)
    torch.cuda.synchronize()
    dist.barrier()
    for replay in range(1000):
        torch.manual_seed(replay % 50)
        x.copy_(torch.randn(16, 256, device=DEVICE))
        graph.replay()
        if replay % 100 == 99:
            close_to(y, model.alone(x), f"replay {replay}")
            close_to(model(x), model.alone(x), f"eager after replay {replay}")


ROWS = [all_reduce, sizes, managed_memory, all_gather_into_tensor, all_gather_list, reduce_scatter_tensor,
        all_to_all_single, broadcast_and_reduce, send_recv, batch_isend_irecv, new_group, groups_come_and_go,
        coalesced, async_op, stream_order, barrier, ddp, fsdp, tensor_parallel, tensor_parallel_graph]

# What ProcessGroupNCCL does by default when a communicator fails, which is to end the process, leaves no table.
os.environ.setdefault("TORCH_NCCL_ASYNC_ERROR_HANDLING", "0")


def start():
    torch.cuda.set_device(DEVICE)
    torch.backends.cuda.matmul.allow_tf32 = False
    by_launcher = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    return dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), N,
                         is_master=RANK == 0 and not by_launcher, timeout=timedelta(seconds=60))


def open_groups(store, name):
    """With $BOUND set, groups are made by ncclCommSplit()."""
    dist.init_process_group("nccl", store=dist.PrefixStore(name, store), rank=RANK, world_size=N,
                            timeout=timedelta(seconds=60), device_id=DEVICE if "BOUND" in os.environ else None)


def attempt(row, store):
    """What is wrong with it, or "good"."""
    try:
        open_groups(store, row.__name__)
        row()
        torch.cuda.synchronize()
        return "good"
    except Exception as error:  # a table of what fails is what this is for
        return f"FAILED on rank {RANK}: {type(error).__name__}: {str(error)[:300]}"


def close_groups():
    try:
        if dist.is_initialized():
            dist.destroy_process_group()
        return "good"
    except Exception as error:
        return f"FAILED at the end on rank {RANK}: {type(error).__name__}: {str(error)[:300]}"


def run_rows(store):
    wanted = os.environ.get("ROWS", "").split()
    failed = 0
    for row in ROWS:
        if wanted and row.__name__ not in wanted:
            continue
        started = time.monotonic()
        text = attempt(row, store)
        took = time.monotonic() - started
        end = close_groups()
        text = end if text == "good" else text
        failed += text != "good"
        if RANK == 0 or text != "good":
            print(f"{N} ranks  {row.__name__:24} {took:6.2f} s  {text}", flush=True)
    return failed


def killed_rank():
    """The last rank dies; the others' next operation has to end with an error, not to hang."""
    dist.barrier()
    torch.cuda.synchronize()
    if RANK == N - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.5)
    started, text = time.monotonic(), "FAILED: the operation succeeded"
    try:
        dist.all_reduce(data(RANK))
        torch.cuda.synchronize()
    except Exception as error:
        text = f"good: {type(error).__name__}: {str(error).splitlines()[0][:120]}"
    print(f"{N} ranks  {'killed_rank':24} {time.monotonic() - started:6.2f} s  rank {RANK}: {text}", flush=True)
    os._exit(0 if text.startswith("good") else 1)


if __name__ == "__main__":
    the_store = start()
    if sys.argv[1:] == ["killed"]:
        open_groups(the_store, "killed")
        killed_rank()
    sys.exit(min(run_rows(the_store), 100))
