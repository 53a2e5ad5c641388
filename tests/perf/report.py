#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tables and verdicts from bench.sh's measurements, in Markdown.

Times are medians, over the rounds, of each run's p50 and p99. "x" columns say how many times faster
ours is than the fastest peer.

Usage: report.py FILE
       report.py --columns SECTION FILE      for plot.sh: bytes and p50 of each contestant
"""
import json
import statistics
import sys

KIB, MIB = 1 << 10, 1 << 20
OURS = ("registered", "private")
MPIS = ("openmpi", "openmpi-sm", "mpich")
NAMES = {"openmpi": "Open MPI", "openmpi-sm": "Open MPI sm", "mpich": "MPICH", "gloo": "Gloo"}

# Section, our memory, peers of whom the fastest counts, sizes from and to, times faster than it.
FASTER = (
    ("allreduce2", "registered", MPIS, 8, 64 * MIB, 1.5),
    ("allreduce2", "registered", MPIS, 64 * KIB, 4 * MIB, 3.0),
    ("allreduce2", "private", MPIS, 8, 64 * MIB, 1.2),
    ("allreduce2", "registered", ("gloo",), 8, MIB, 20.0),
    ("allreduce2", "private", ("gloo",), 8, MIB, 20.0),
    ("others2", "private", ("openmpi", "mpich"), 8, 16 * MIB, 1.3),
    ("others2", "registered", ("openmpi", "mpich"), 64 * KIB, 16 * MIB, 2.0),
    ("allreduce4", "registered", ("openmpi",), 8, 4 * MIB, 1.5),
    ("allreduce4", "private", ("openmpi",), 8, 4 * MIB, 1.5),
    ("allreduce8", "registered", ("openmpi",), 8, 4 * MIB, 1.5),
    ("allreduce8", "private", ("openmpi",), 8, 4 * MIB, 1.5),
    ("allreduce4", "registered", ("gloo",), 8, MIB, 20.0),
    ("allreduce4", "private", ("gloo",), 8, MIB, 20.0),
    ("allreduce8", "registered", ("gloo",), 8, MIB, 20.0),
    ("allreduce8", "private", ("gloo",), 8, MIB, 20.0),
)
BANDWIDTH_PERCENT = 80  # of the copy bandwidth, at 64 MiB registered
TYPES_FACTOR = 1.3  # bf16 and fp16 over fp32, time for the same bytes
MONOTONE_FACTOR = 2.0  # a smaller message over a larger one

TITLES = {
    "allreduce2": "Allreduce, float sum, 2 ranks",
    "touch2": "Allreduce, 2 ranks, inputs rewritten and results read between calls (`--touch`)",
    "others2": "Other collectives, float, 2 ranks",
    "otherstouch2": "Other collectives, 2 ranks, inputs rewritten and results read between calls",
    "allreduce4": "Allreduce, 4 ranks on 2 cores",
    "allreduce8": "Allreduce, 8 ranks on 2 cores",
}


class Results:
    """Medians over the rounds, by section, contestant, collective, type and size."""

    def __init__(self, path):
        p50, p99 = {}, {}
        self.failures, self.copy = {}, {}
        with open(path, encoding="utf-8") as lines:
            for line in map(json.loads, lines):
                if "failed" in line:
                    who = (line["section"], line["contestant"], line["failed"])
                    self.failures[who] = self.failures.get(who, 0) + 1
                elif line["section"] == "copy":
                    way = (line["ranks"], line["stream"])
                    self.copy.setdefault(way, []).append(line["gbs"])
                else:
                    key = (line["section"], line["contestant"], line["collective"],
                           line["dtype"], line["bytes"])
                    p50.setdefault(key, []).append(line["time_us_p50"])
                    p99.setdefault(key, []).append(line["time_us_p99"])
        self.p50 = {key: statistics.median(values) for key, values in p50.items()}
        self.p99 = {key: statistics.median(values) for key, values in p99.items()}
        self.rounds = max((len(values) for values in p50.values()), default=0)

    def has(self, section):
        return any(key[0] == section for key in self.p50)

    def values(self, section, position):
        """What occurs at a position of the section's keys, in the order of the file."""
        return list(dict.fromkeys(key[position] for key in self.p50 if key[0] == section))

    def time(self, section, who, size, collective="all_reduce", dtype="float32"):
        return self.p50.get((section, who, collective, dtype, size))

    def fastest(self, section, peers, size, collective="all_reduce"):
        times = [self.time(section, peer, size, collective) for peer in peers]
        return min((t for t in times if t), default=None)


def human(size):
    for unit, name in ((MIB, "MiB"), (KIB, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


def us(value):
    if value is None:
        return "-"
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"


def times_faster(ours, peer):
    return f"{peer / ours:.2f}x" if ours and peer else "-"


def table(head, rows):
    print("| " + " | ".join(head) + " |")
    print("|" + " ---: |" * len(head))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()


def section_rows(results, section, peers, collective):
    mpis = [peer for peer in peers if peer != "gloo"]
    for size in sorted(results.values(section, 4)):
        if results.time(section, "registered", size, collective) is None:
            continue
        row = [human(size)]
        for who in OURS:
            p99 = results.p99.get((section, who, collective, "float32", size))
            row.append(f"{us(results.time(section, who, size, collective))} ({us(p99)})")
        row += [us(results.time(section, peer, size, collective)) for peer in peers]
        best = results.fastest(section, mpis, size, collective)
        row += [times_faster(results.time(section, who, size, collective), best) for who in OURS]
        yield row


def print_section(results, section):
    peers = [who for who in results.values(section, 1) if who not in OURS]
    print(f"## {TITLES[section]}\n\np50 in us; ours with p99; times faster than the fastest MPI.\n")
    head = ["size"] + [who + " (p99)" for who in OURS] + [NAMES[peer] for peer in peers]
    head += [who + " x" for who in OURS]
    for collective in results.values(section, 2):
        if collective != "all_reduce":
            print(f"### {collective}\n")
        table(head, section_rows(results, section, peers, collective))


def verdict(missed, text, value, target, met):
    print(f"* {text}: {value} (target {target}): {'met' if met else 'MISSED'}")
    if not met:
        missed.append(f"{text}: {value}, target {target}")


def check_faster(results, missed):
    """Each target at its worst size, and every size at which it is missed."""
    for section, ours, peers, low, high, target in FASTER:
        ratios = []
        for collective in results.values(section, 2):
            for size in results.values(section, 4):
                mine = results.time(section, ours, size, collective)
                peer = results.fastest(section, peers, size, collective)
                if low <= size <= high and mine and peer:
                    ratios.append((peer / mine, collective, size))
        if not ratios:
            continue
        worst, collective, size = min(ratios)
        n_met = sum(ratio >= target for ratio, _, _ in ratios)
        against = "the fastest MPI" if len(peers) > 1 else NAMES[peers[0]]
        print(f"* {section}, {ours}, {human(low)} to {human(high)}, against {against}: target "
              f"{target}x, met in {n_met} of {len(ratios)}; least {worst:.2f}x "
              f"({collective}, {human(size)})")
        for ratio, collective, size in ratios:
            if ratio < target:
                missed.append(f"{section}, {ours}, {collective}, {human(size)}, against {against}: "
                              f"{ratio:.3f}x, target {target}x")


def print_copy(results, missed):
    if not results.copy:
        return
    print("## Memory bandwidth: copying 64 MiB per core, and what 64 MiB of allreduce reach\n")
    best = {}
    for (cores, stream), values in sorted(results.copy.items()):
        gbs = statistics.median(values)
        best[cores] = max(best.get(cores, 0), gbs)
        way = "past the cache" if stream else "through the cache"
        print(f"* {cores} core{'s' if cores > 1 else ''}, {way}: {gbs:.1f} GB/s copied")
    # Each of 2 ranks reads its half of both inputs, and writes it into both results.
    moved = 2 * 64 * MIB
    gbs = best.get(2, best.get(1))
    ideal = moved / gbs / 1e3
    print(f"\n{moved} bytes must be read and as many written (each of 2 ranks: its half of two "
          f"inputs, into two results): {ideal:.0f} us at the copy bandwidth.\n")
    for section, what in (("allreduce2", ""), ("touch2", ", touched")):
        mine = results.time(section, "registered", 64 * MIB)
        if not mine:
            continue
        percent = 100 * ideal / mine
        text = f"allreduce of 64 MiB, registered{what}: {us(mine)} us, share of the bandwidth"
        verdict(missed, text, f"{percent:.0f} %", f"{BANDWIDTH_PERCENT} %",
                percent >= BANDWIDTH_PERCENT)
    print()


def print_types(results, missed):
    if not results.has("types2"):
        return
    print("## bf16 and fp16 beside fp32: allreduce, 2 ranks, p50 in us for the same bytes\n")
    types = ("float32", "bfloat16", "float16")
    rows, worst = [], {}
    for who in OURS:
        for size in sorted(results.values("types2", 4)):
            times = [results.time("types2", who, size, dtype=dtype) for dtype in types]
            if None in times:
                continue
            rows.append([who, human(size)] + [us(t) for t in times] +
                        [f"{t / times[0]:.2f}" for t in times[1:]])
            for dtype, time in zip(types[1:], times[1:]):
                worst.setdefault((who, dtype), []).append((time / times[0], size))
    table(["memory", "size", *types, "bf16 / fp32", "fp16 / fp32"], rows)
    for (who, dtype), ratios in worst.items():
        ratio, size = max(ratios)
        verdict(missed, f"{dtype} over float32, {who}, worst at {human(size)}", f"{ratio:.2f}",
                f"{TYPES_FACTOR}", ratio <= TYPES_FACTOR)
    print()


def print_monotone(results, missed):
    if not results.has("neighbours2"):
        return
    print("## No dead zones: powers of two and their neighbours, one element less and more\n")
    for who in OURS:
        times = sorted((size, results.time("neighbours2", who, size))
                       for size in results.values("neighbours2", 4))
        worst = max(((a[1] / b[1], a[0], b[0]) for i, a in enumerate(times)
                     for b in times[i + 1:]), default=None)
        if worst:
            verdict(missed, f"{who}: longest time over that of a larger message "
                    f"({human(worst[1])} over {human(worst[2])})", f"{worst[0]:.2f}",
                    f"{MONOTONE_FACTOR}", worst[0] <= MONOTONE_FACTOR)
    print()


def report(results):
    missed = []
    print(f"Medians over {results.rounds} interleaved rounds.\n")
    for section in TITLES:
        if results.has(section):
            print_section(results, section)
    print_copy(results, missed)
    print_types(results, missed)
    print_monotone(results, missed)
    print("## Targets\n")
    check_faster(results, missed)
    print(f"\n## Missed: {len(missed)}\n")
    for text in missed:
        print("* " + text)
    for (section, who, status), n in results.failures.items():
        print(f"* {section}: {who} failed {n} times with exit status {status}")


def columns(results, section):
    contestants = results.values(section, 1)
    print("bytes", *contestants)
    for size in sorted(results.values(section, 4)):
        times = [results.time(section, who, size) for who in contestants]
        print(size, *("NaN" if t is None else f"{t:.3f}" for t in times))


def main():
    if len(sys.argv) == 4 and sys.argv[1] == "--columns":
        columns(Results(sys.argv[3]), sys.argv[2])
    elif len(sys.argv) == 2:
        report(Results(sys.argv[1]))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
