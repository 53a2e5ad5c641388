#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A client of NCCL through ctypes, as inference servers have it.

usage: nccl_client.py load               bind every function; call nothing that needs a daemon
       nccl_client.py run RANKS          that many processes: allreduce, all-gather, send and receive

The library is $VLLM_NCCL_SO_PATH, else $SGLANG_NCCL_SO_PATH, else libnccl.so.2 as the loader finds it.
"""
import ctypes
import os
import subprocess
import sys

INT32, SUM = 2, 0


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_byte * 128)]


ptr, size, num = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
FUNCTIONS = {
    "ncclGetErrorString": (ctypes.c_char_p, [num]),
    "ncclGetLastError": (ctypes.c_char_p, [ptr]),
    "ncclGetVersion": (num, [ctypes.POINTER(num)]),
    "ncclGetUniqueId": (num, [ctypes.POINTER(UniqueId)]),
    "ncclCommInitRank": (num, [ctypes.POINTER(ptr), num, UniqueId, num]),
    "ncclAllReduce": (num, [ptr, ptr, size, num, num, ptr, ptr]),
    "ncclReduce": (num, [ptr, ptr, size, num, num, num, ptr, ptr]),
    "ncclAllGather": (num, [ptr, ptr, size, num, ptr, ptr]),
    "ncclReduceScatter": (num, [ptr, ptr, size, num, num, ptr, ptr]),
    "ncclSend": (num, [ptr, size, num, num, ptr, ptr]),
    "ncclRecv": (num, [ptr, size, num, num, ptr, ptr]),
    "ncclBroadcast": (num, [ptr, ptr, size, num, num, ptr, ptr]),
    "ncclCommDestroy": (num, [ptr]),
    "ncclCommAbort": (num, [ptr]),
    "ncclGroupStart": (num, []),
    "ncclGroupEnd": (num, []),
    "ncclCommWindowRegister": (num, [ptr, ptr, size, ctypes.POINTER(ptr), num]),
    "ncclCommWindowDeregister": (num, [ptr, ptr]),
    "ncclCommSuspend": (num, [ptr, num]),
    "ncclCommResume": (num, [ptr]),
}


class Nccl:
    def __init__(self):
        path = os.environ.get("VLLM_NCCL_SO_PATH") or os.environ.get("SGLANG_NCCL_SO_PATH") or "libnccl.so.2"
        self.lib = ctypes.CDLL(path)
        for name, (result, args) in FUNCTIONS.items():
            function = getattr(self.lib, name)
            function.restype, function.argtypes = result, args

    def call(self, name, *args):
        result = getattr(self.lib, name)(*args)
        if result != 0:
            sys.exit(f"{name}: {result} ({self.lib.ncclGetLastError(None).decode()})")

    def version(self):
        code = num()
        self.call("ncclGetVersion", ctypes.byref(code))
        digits = str(code.value)
        return f"{digits[0].lstrip('0')}.{digits[1:3].lstrip('0')}.{digits[3:].lstrip('0')}"


def rank_main(rank, n):
    nccl = Nccl()
    own = UniqueId()
    if rank == 0:
        nccl.call("ncclGetUniqueId", ctypes.byref(own))
        sys.stdout.buffer.write(bytes(own.internal))
        sys.stdout.flush()
    else:
        data = sys.stdin.buffer.read(128)
        assert len(data) == 128, len(data)
        ctypes.memmove(ctypes.addressof(own), data, 128)
    comm = ptr()
    nccl.call("ncclCommInitRank", ctypes.byref(comm), n, own, rank)
    mine, total = num(rank + 1), num()
    nccl.call("ncclAllReduce", ctypes.byref(mine), ctypes.byref(total), 1, INT32, SUM, comm, None)
    assert total.value == n * (n + 1) // 2, total.value
    everybody = (num * n)()
    nccl.call("ncclAllGather", ctypes.byref(mine), everybody, 1, INT32, comm, None)
    assert list(everybody) == list(range(1, n + 1)), list(everybody)
    got = num()
    nccl.call("ncclGroupStart")
    nccl.call("ncclSend", ctypes.byref(mine), 1, INT32, (rank + 1) % n, comm, None)
    nccl.call("ncclRecv", ctypes.byref(got), 1, INT32, (rank - 1) % n, comm, None)
    nccl.call("ncclGroupEnd")
    assert got.value == (rank - 1) % n + 1, got.value
    # Not destroyed: servers do not, since it is a collective elsewhere.


def run(n):
    """Rank 0 writes the id to its standard output; it goes to the others' standard inputs."""
    argv = [sys.executable, __file__, "rank"]
    ranks = [subprocess.Popen(argv + [str(r), str(n)], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE if r == 0 else None) for r in range(n)]
    unique_id = ranks[0].stdout.read(128)
    for rank in ranks[1:]:
        try:
            rank.stdin.write(unique_id)
            rank.stdin.close()
        except BrokenPipeError:
            pass
    failed = [r for r, rank in enumerate(ranks) if rank.wait() != 0]
    if failed:
        sys.exit(f"ranks {failed} failed")
    print(f"{n} ranks: good")


def main():
    if sys.argv[1] == "load":
        print(Nccl().version())
    elif sys.argv[1] == "run":
        run(int(sys.argv[2]))
    else:
        rank_main(int(sys.argv[2]), int(sys.argv[3]))


main()
