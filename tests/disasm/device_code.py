#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Is in the GPU kernels' machine code what the source means to have there?

    device_code.py OBJDUMP READELF FILE...

FILE is gfxNNN.co, sm_NN.code or compute_NN.code (any name that begins so). AMD's is disassembled:
accesses of 16 bytes; in barriers, what makes a release and an acquire of them for the whole system;
fp8 conversions; no scratch memory, registers within a budget. Of NVIDIA's machine code only the
compiler's own account of registers and stack is read, for which no tool is needed. Of inline kernels
also, there and in NVIDIA's PTX: every loop that waits looks at the words that end it, what ranks tell
each other is for the whole system, and nothing but the two counters is changed atomically. Prints
what is wrong, exit status 1.
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
MOST_LANES = {"": 0, "rx_mx_": 12, "rx_reduce_e4m3": 8, "rx_reduce_e5m2": 8, "rx_inl_": 56, "rx_inl_copy": 0}

# Words of 32 bits that a wait looks at: its own failure, that of the rank that it waits for, abort
# and epoch.
WAIT_WORDS = 4
# Loops that wait: for marks, and for words; of folds those of two rounds.
LEAST_WAITS = {"rx_inl_": 2}

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
    """{kernel: [line of an instruction, ...]}"""
    kernels, now = {}, []
    for line in run(objdump, "-d", path).splitlines():
        symbol = re.match(r"[0-9a-f]+ <(\w+)>:", line)
        if symbol:
            now = kernels.setdefault(symbol[1], [])
        elif line.startswith("\t"):
            now.append(line)
    return kernels


def amd_blocks(text):
    """Basic blocks of one kernel's disassembly, as loops() wants them."""
    lines = []
    for line in text:
        found = re.match(r"\t(.*?)\s*// ([0-9A-F]+):.*?(?:<\w+(?:\+0x([0-9a-f]+))?>)?$", line)
        lines.append((int(found[2], 16), found[1], found[3]))
    start = lines[0][0]
    jumps = {address: start + int(to or "0", 16) for address, what, to in lines
             if re.match(r"s_c?branch", what)}
    heads = {start, *jumps.values()}
    blocks, now = {}, None
    for i, (address, what, _) in enumerate(lines):
        if now is None or address in heads:
            if now is not None:
                blocks[now][1].append(address)
            now = address
            blocks[now] = ([], [])
        blocks[now][0].append(what)
        following = [lines[i + 1][0]] if i + 1 < len(lines) else []
        if address in jumps:
            blocks[now][1].extend([jumps[address]] + ([] if what.startswith("s_branch") else following))
            now = None
        elif what.startswith("s_endpgm"):
            now = None
    return blocks


def dominators(blocks):
    """{head: bits of the heads that every way to it goes through}, of {head: (..., [next head, ...])}."""
    number, left = {}, [next(iter(blocks))]
    while left:
        head = left.pop()
        if head not in number:
            number[head] = len(number)
            left.extend(blocks[head][1])
    before = {head: [] for head in number}
    for head in number:
        for other in blocks[head][1]:
            before[other].append(head)
    through = {head: (1 << len(number)) - 1 for head in number}
    through[next(iter(number))] = 1
    changed = True
    while changed:
        changed = False
        for head in list(number)[1:]:
            now = (1 << len(number)) - 1
            for other in before[head]:
                now &= through[other]
            now |= 1 << number[head]
            changed |= now != through[head]
            through[head] = now
    return number, before, through


def loops(blocks):
    """The heads in each loop of {head: ([instruction, ...], [next head, ...])}, the inner ones first."""
    number, before, through = dominators(blocks)
    found = {}
    for head in number:
        for top in blocks[head][1]:
            if not through[head] >> number[top] & 1:
                continue
            body = found.setdefault(top, {top})
            left = [head]
            while left:
                block = left.pop()
                if block not in body:
                    body.add(block)
                    left.extend(before[block])
    return sorted(found.values(), key=len)


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


def check_waits(path, kernel, blocks, waits, looks):
    """Every loop that has one of @waits, and none such within it, has the @looks that end it."""
    waiting = {head for head, (text, _) in blocks.items() if any(re.match(waits, what) for what in text)}
    seen = []
    for body in loops(blocks):
        if not waiting & body or any(inner <= body for inner in seen):
            continue
        seen.append(body)
        n = sum(re.match(looks, text) is not None for head in body for text in blocks[head][0])
        if n < WAIT_WORDS:
            complain(path, kernel, f"a wait that looks at {n} of {WAIT_WORDS} words that end it")
    if len(seen) < most(LEAST_WAITS, kernel):
        complain(path, kernel, f"{len(seen)} loops that wait")


def amd_inline(path, kernel, lines, code, old):
    """What ranks tell each other, and how they wait for it."""
    scope = r".* glc$" if old else r".* sc0 sc1$"
    check_waits(path, kernel, amd_blocks(lines), r"s_sleep", r"global_load_dword " + scope)
    counters = [text for text in code if "atomic" in text]
    if len(counters) != 2 or not all(re.match(r"global_atomic_add_x2", text) for text in counters):
        complain(path, kernel, f"atomic changes that are not those of the two counters: {counters}")
    if not old and not all(re.search(r" sc1$", text) for text in counters):
        complain(path, kernel, f"a counter that is not the whole system's: {counters}")
    if any(re.match(r"flat_|scratch_|s_store|buffer_(load|store|atomic)", text) for text in code):
        complain(path, kernel, "accesses of memory that are not known to be of what was given")
    releases = [i for i, text in enumerate(code) if re.match(r"global_store_dwordx2", text)
                and near(code, i, -1, 8, r"buffer_wbl2$" if old else r"buffer_wbl2 sc0 sc1")]
    if not releases:
        complain(path, kernel, "no mark that is a release for the system")
    invalidate = r"buffer_invl2$" if old else r"buffer_inv sc0 sc1$"
    if not any(re.match(r"global_load_dwordx2" + scope, text) and near(code, i, 1, 8, invalidate)
               for i, text in enumerate(code)):
        complain(path, kernel, "no mark that is read as an acquire for the system")
    if not old:
        # Eight bytes are a mark, a word of data or a turn: whoever reads them may be elsewhere.
        plain = [text for text in code if re.match(r"global_store_dwordx2", text) and not re.match(scope, text)]
        if plain:
            complain(path, kernel, f"a store of eight bytes that is not for the system: {plain[0]}")


def check_amd(objdump, readelf, path, arch):
    resources = amd_resources(readelf, path)
    lines = amd_code(objdump, path)
    code = {kernel: [line.split("//")[0].strip() for line in text] for kernel, text in lines.items()}
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
        if kernel.startswith("rx_inl_"):
            amd_inline(path, kernel, lines[kernel], code[kernel], arch == "gfx90a")
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


def ptx_kernels(path):
    """{kernel: [line, ...]}"""
    kernels, now = {}, None
    for line in open(path, encoding="utf-8"):
        entry = re.match(r"\.visible \.entry (\w+)\(", line)
        if entry:
            now = kernels.setdefault(entry[1], [])
        elif line.startswith("}"):
            now = None
        elif now is not None and line.strip():
            now.append(line.strip())
    return kernels


def ptx_blocks(lines):
    """Basic blocks, as loops() wants them, numbered by line."""
    labels = {line[:-1]: i for i, line in enumerate(lines) if re.match(r"\$\w+:$", line)}
    blocks, now = {}, None
    for i, line in enumerate(lines):
        if now is None or line[:-1] in labels:
            if now is not None:
                blocks[now][1].append(i)
            now = i
            blocks[now] = ([], [])
        blocks[now][0].append(line)
        jump = re.match(r"(@!?%p\d+ )?bra(?:\.uni)?\s+(\$\w+);", line)
        if jump:
            blocks[now][1].extend([labels[jump[2]]] + ([i + 1] if jump[1] else []))
            now = None
        elif line in ("ret;", "exit;"):
            now = None
    return blocks


def check_ptx(path):
    """Inline kernels, as far as PTX tells."""
    kernels = ptx_kernels(path)
    for kernel, lines in kernels.items():
        if not kernel.startswith("rx_inl_"):
            continue
        check_waits(path, kernel, ptx_blocks(lines), r"mov\.u64 %rd\d+, %globaltimer",
                    r"ld\.relaxed\.sys\.global\.u32")
        changes = [line for line in lines if re.match(r"(@!?%p\d+ )?(atom|red)\..*\.global\.", line)]
        if len(changes) != 2 or not all(re.search(r"(atom|red)\.relaxed\.sys\.global\.add\.u64", c) for c in changes):
            complain(path, kernel, f"atomic changes that are not those of the two counters: {changes}")
        for what in (r"st\.release\.sys\.global\.u64", r"ld\.acquire\.sys\.global\.u64"):
            if not any(re.match(what, line) for line in lines):
                complain(path, kernel, "no " + what.replace("\\", ""))
        for line in lines:
            if re.match(r"(ld|st)\.local|\.local", line):
                complain(path, kernel, f"accesses of memory that nobody gave: {line}")
    return len(kernels)


def main():
    objdump, readelf, *paths = sys.argv[1:]
    for path in paths:
        arch = re.match(r"gfx\w+?(?=[.-])|(sm|compute)_\d+", path.rsplit("/", 1)[-1])[0]
        if arch.startswith("sm_"):
            n = check_nvidia(path)
        elif arch.startswith("compute_"):
            n = check_ptx(path)
        else:
            n = check_amd(objdump, readelf, path, arch)
        print(f"{arch}: {n} kernels")
    return bad != 0


sys.exit(main())
