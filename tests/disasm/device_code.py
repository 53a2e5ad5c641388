#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Is in the GPU kernels' machine code what the source means to have there?

    device_code.py OBJDUMP READELF FILE...

FILE is gfxNNN.co or sm_NN.code (any name that begins so). AMD's is disassembled: accesses of 16 bytes;
in barriers, what makes a release and an acquire of them for the whole system; fp8 conversions; no
scratch memory, registers within a budget. Of NVIDIA's only the compiler's own account of registers
and stack is read, for which no tool is needed. Prints what is wrong, exit status 1.
"""
import re
import struct
import subprocess
import sys

# Vector registers with which four wavefronts fit each SIMD of gfx90a and later, and a block of 512
# threads a multiprocessor..
MOST_VGPRS = {"": 128}
MOST_REGS = {"": 128, "rx_mx_f32": 64}
# Bytes of a thread's stack.
MOST_STACK = {"": 0}
# Scalar registers that are kept in lanes of a vector register, not in memory: none where messages
# are moved and added most.
MOST_LANES = {"": 0, "rx_mx_": 12, "rx_reduce_e4m3": 8, "rx_reduce_e5m2": 8}

WITH_BARRIERS = re.compile(r"rx_(copy|reduce_\w+|mx\w*)$")
KEYS = (".private_segment_fixed_size", ".vgpr_spill_count", ".sgpr_spill_count", ".vgpr_count")

bad = 0


def complain(path, kernel, what):
    global bad
    bad += 1
    print(f"{path}: {kernel}: {what}")


def most(budget, kernel):
    return next(budget[name] for name in reversed(budget) if kernel.startswith(name))


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


# ---- AMD ----


def amd_resources(readelf, path):
    """{kernel: {key: value}} of the metadata."""
    kernels, now = {}, {}
    for line in run(readelf, "--notes", path).splitlines():
        key, _, value = line.strip().lstrip("- ").partition(":")
        if key == ".agpr_count" and line.lstrip().startswith("-"):
            now = {}
        elif key == ".name" and value.strip().startswith("rx_"):
            kernels[value.strip()] = now
        elif key in KEYS:
            now[key] = int(value)
    return kernels


def amd_code(objdump, path):
    """{kernel: [instruction, ...]}"""
    kernels, now = {}, []
    for line in run(objdump, "-d", path).splitlines():
        symbol = re.match(r"[0-9a-f]+ <(\w+)>:", line)
        if symbol:
            now = kernels.setdefault(symbol[1], [])
        elif line.startswith("\t"):
            now.append(line.split("//")[0].strip())
    return kernels


def near(code, at, step, n, pattern):
    """Is there one of @pattern among the @n instructions before or after the one at @at?"""
    return any(re.match(pattern, code[i]) for i in range(at + step, at + step * (n + 1), step)
               if 0 <= i < len(code))


def amd_order(path, kernel, code, old):
    """The signal of a barrier is a release, the wait for it an acquire."""
    release = r"buffer_wbl2$" if old else r"buffer_wbl2 sc0 sc1"
    store = r"global_store_dwordx2 .*" if old else r"global_store_dwordx2 .* sc0 sc1$"
    load = r"global_load_dwordx2 .* glc$" if old else r"global_load_dwordx2 .* sc0 sc1$"
    invalidate = [r"buffer_invl2$", r"buffer_wbinvl1_vol$"] if old else [r"buffer_inv sc0 sc1$"]
    stores = [i for i, text in enumerate(code) if re.match(store, text)]
    signals = [i for i in stores if near(code, i, -1, 8, release)
               and near(code, i, -1, 8, r"s_waitcnt .*vmcnt\(0\)|s_waitcnt vmcnt\(0\)")]
    waits = [i for i, text in enumerate(code) if re.match(load, text)]
    if not signals:
        complain(path, kernel, "no store that is a release for the system")
    # Where they can be told from others by their bits, all of them are.
    if not old and len(signals) != len(stores):
        complain(path, kernel, f"{len(stores) - len(signals)} stores for the system without a release")
    if not waits:
        complain(path, kernel, "no load for the system")
    for at in waits:
        if not all(near(code, at, 1, 8, pattern) for pattern in invalidate):
            complain(path, kernel, f"a load for the system that is no acquire: {code[at]}")


def check_amd(objdump, readelf, path, arch):
    resources = amd_resources(readelf, path)
    code = amd_code(objdump, path)
    if not resources:
        complain(path, "", "no kernels")
    for kernel, has in resources.items():
        lanes, vectors = most(MOST_LANES, kernel), most(MOST_VGPRS, kernel)
        if has[".private_segment_fixed_size"] or has[".vgpr_spill_count"]:
            complain(path, kernel, f"scratch memory: {has}")
        if has[".sgpr_spill_count"] > lanes:
            complain(path, kernel, f"{has['.sgpr_spill_count']} scalar registers are spilled, not {lanes}")
        if has[".vgpr_count"] > vectors:
            complain(path, kernel, f"{has['.vgpr_count']} vector registers, not {vectors}")
        if not WITH_BARRIERS.match(kernel):
            continue
        for access in ("global_load_dwordx4", "global_store_dwordx4"):
            n = sum(text.startswith(access) for text in code[kernel])
            if n < (5 if kernel.startswith("rx_mx") else 8):
                complain(path, kernel, f"few {access}: {n}")
        if any(re.match(r"flat_(load|store)|scratch_", text) for text in code[kernel]):
            complain(path, kernel, "accesses that are not known to be of global memory")
        amd_order(path, kernel, code[kernel], arch == "gfx90a")
        if kernel.startswith("rx_mx_") and arch in ("gfx942", "gfx950") \
                and not any(text.startswith("v_cvt_pk_fp8_f32") for text in code[kernel]):
            complain(path, kernel, "no v_cvt_pk_fp8_f32")
    return len(resources)


# ---- NVIDIA ----

FRAME_SIZE, REG_COUNT = 0x11, 0x2F


def elf_sections(data):
    at, = struct.unpack_from("<Q", data, 0x28)
    size, n, names = struct.unpack_from("<HHH", data, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", data, at + i * size) for i in range(n)]

    def text(table, offset):
        start = headers[table][4] + offset
        return data[start:data.index(b"\0", start)].decode()

    return {text(names, h[0]): (data[h[4]:h[4] + h[5]], h[6]) for h in headers}, text


def check_nvidia(path):
    data = open(path, "rb").read()
    sections, text = elf_sections(data)
    symbols, strings = sections[".symtab"]
    info, _ = sections[".nv.info"]
    frames, registers, at = {}, {}, 0
    while at < len(info):
        form, attribute, size = struct.unpack_from("<BBH", info, at)
        if form == 4 and attribute in (FRAME_SIZE, REG_COUNT):
            symbol, value = struct.unpack_from("<II", info, at + 4)
            name = text(strings, struct.unpack_from("<I", symbols, symbol * 24)[0])
            (frames if attribute == FRAME_SIZE else registers)[name] = value
        at += 4 + (size if form == 4 else 0)
    kernels = [name for name in registers if name.startswith("rx_")]
    if not kernels:
        complain(path, "", "no kernels")
    for kernel in kernels:
        if frames.get(kernel, 1 << 20) > most(MOST_STACK, kernel):
            complain(path, kernel, f"a stack of {frames.get(kernel)} bytes: registers are spilled, or arrays indexed")
        if registers[kernel] > most(MOST_REGS, kernel):
            complain(path, kernel, f"{registers[kernel]} registers, not {most(MOST_REGS, kernel)}")
    return len(kernels)


def main():
    objdump, readelf, *paths = sys.argv[1:]
    for path in paths:
        arch = re.match(r"gfx\w+?(?=[.-])|sm_\d+", path.rsplit("/", 1)[-1])[0]
        n = check_nvidia(path) if arch.startswith("sm_") else check_amd(objdump, readelf, path, arch)
        print(f"{arch}: {n} kernels")
    return bad != 0


sys.exit(main())
