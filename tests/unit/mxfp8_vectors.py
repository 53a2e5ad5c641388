#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Golden vectors of the low-precision codec, by exact arithmetic on fractions.

Usage: mxfp8_vectors.py fp8 >mxfp8_vectors.txt
       mxfp8_vectors.py int8 >mxint8_vectors.txt

Each line is one block of 1 to 32 elements, in hexadecimal, fields separated by blanks:
  dtype   float32, bfloat16 or float16
  input   the elements' bits, each as 8 or 4 digits, joined by commas
  scale   the scale byte
  elems   the element bytes, two digits each, joined without a separator
  output  the bits that they decode to, as input
Lines that begin with # are comments.
"""
import random
import sys
from fractions import Fraction

# name: digits, stored fraction bits, bias, exponent field's width
TYPES = {"float32": (8, 23, 127, 8), "bfloat16": (4, 7, 127, 8), "float16": (4, 10, 15, 5)}


def two(n):
    return Fraction(2) ** n


def value_of(bits, fraction_bits, bias, width):
    """Fraction, or "nan", "inf", "-inf"; and the sign"""
    sign = bits >> (fraction_bits + width)
    field = bits >> fraction_bits & ((1 << width) - 1)
    fraction = bits & ((1 << fraction_bits) - 1)
    if field == (1 << width) - 1:
        return ("nan" if fraction else "-inf" if sign else "inf"), sign
    if field == 0:
        magnitude = fraction * two(1 - bias - fraction_bits)
    else:
        magnitude = (fraction + (1 << fraction_bits)) * two(field - bias - fraction_bits)
    return (-magnitude if sign else magnitude), sign


def finite_codes(fraction_bits, bias, width, n):
    return [value_of(code, fraction_bits, bias, width)[0] if not e4m3_top(code, width)
            else Fraction(code - 0x78 + 8) * 32 for code in range(n)]


def e4m3_top(code, width):
    """E4M3 uses the exponent field of all ones for numbers too."""
    return width == 4 and code >> 3 == 15


INT8 = sys.argv[1:] == ["int8"]
E5M2 = finite_codes(2, 15, 5, 0x7C)
# What elements are outside of escapes, and the unit of those with scale byte 0
CODES = [Fraction(i) for i in range(128)] if INT8 else finite_codes(3, 7, 4, 0x7F)
FIRST = two(-133) if INT8 else two(-127)


def nearest(codes, magnitude):
    """Ties to even"""
    return min(range(len(codes)), key=lambda code: (abs(codes[code] - magnitude), code % 2))


def round_to(name, magnitude):
    """Bits of the nearest finite value of a type; what is beyond the largest becomes that"""
    _, fraction_bits, bias, width = TYPES[name]
    largest = ((1 << width) - 1 << fraction_bits) - 1
    low, high = 0, largest
    while low < high:  # the largest bits whose value does not exceed it
        middle = (low + high + 1) // 2
        if value_of(middle, fraction_bits, bias, width)[0] <= magnitude:
            low = middle
        else:
            high = middle - 1
    if low == largest:
        return low
    below = magnitude - value_of(low, fraction_bits, bias, width)[0]
    above = value_of(low + 1, fraction_bits, bias, width)[0] - magnitude
    return low + (above < below or (above == below and low % 2 == 1))


def encode(values):
    """values: (value, sign) pairs; returns scale byte and element bytes"""
    finite = [abs(v) for v, _ in values if not isinstance(v, str)]
    amax = max(finite, default=Fraction(0))
    special = len(finite) < len(values)
    if special or amax > CODES[-1] * FIRST * two(247):
        k = next(k for k in range(8) if amax <= 57344 * two(24 * k - 55))
        scale, unit, codes = 248 + k, two(24 * k - 55), E5M2
    else:
        scale = next(s for s in range(248) if amax <= CODES[-1] * FIRST * two(s))
        unit, codes = FIRST * two(scale), CODES
    out = []
    for v, sign in values:
        if v == "nan":
            out.append(0x7F)
        elif isinstance(v, str):
            out.append(sign << 7 | 0x7C)
        elif INT8 and scale < 248:
            magnitude = nearest(codes, abs(v) / unit)
            out.append(256 - magnitude if sign and magnitude else magnitude)
        else:
            out.append(sign << 7 | nearest(codes, abs(v) / unit))
    return scale, out


def decode(name, scale, elems):
    digits, fraction_bits, _, width = TYPES[name]
    infinity = (1 << width) - 1 << fraction_bits
    out = []
    for elem in elems:
        code, sign = elem & 0x7F, elem >> 7 << digits * 4 - 1
        if INT8 and scale < 248:
            out.append(sign | round_to(name, (256 - elem if sign else elem) * FIRST * two(scale)))
        elif scale < 248:
            out.append(sign | round_to(name, CODES[code] * FIRST * two(scale)))
        elif code < 0x7C:
            out.append(sign | round_to(name, E5M2[code] * two(24 * (scale - 248) - 55)))
        elif code == 0x7C:
            out.append(sign | infinity)
        else:
            out.append(infinity | 1 << fraction_bits - 1)
    return out


def line(name, inputs):
    digits, fraction_bits, bias, width = TYPES[name]
    scale, elems = encode([value_of(bits, fraction_bits, bias, width) for bits in inputs])
    outputs = decode(name, scale, elems)

    def show(bits):
        return ",".join(f"{b:0{digits}x}" for b in bits)

    print(name, show(inputs), f"{scale:02x}", bytes(elems).hex(), show(outputs))


def special_inputs(name):
    """Blocks that test one thing each"""
    digits, fraction_bits, bias, width = TYPES[name]
    sign = 1 << digits * 4 - 1
    infinity = (1 << width) - 1 << fraction_bits
    nan = infinity | 1 << fraction_bits - 1
    one = bias << fraction_bits
    largest = infinity - 1
    tiny = 1
    yield "zeros", [0, sign] * 16
    yield "one value", [one]
    yield "smallest subnormals", [tiny, sign | tiny, 2, 3, 4, 5, 7, 9]
    yield "largest subnormal, smallest normal", [(1 << fraction_bits) - 1, 1 << fraction_bits, 1]
    yield "largest values", [largest, sign | largest, largest - 1, largest // 2, one, tiny]
    yield "infinities among ones", [infinity, sign | infinity, one, sign | one, one // 2, 0, sign]
    yield "NaN with and without a sign, quiet and not", [nan, sign | nan, infinity | 1, one, one + 3]
    yield "only infinities", [infinity, sign | infinity] * 4
    yield "NaN and zeros", [nan] + [0] * 31
    yield "an infinity among the largest", [infinity, largest, sign | largest, largest - 5]
    yield "an infinity among subnormals", [infinity, tiny, 77, sign | 100]
    quarter = 3 << fraction_bits - 2
    for hair in (-1, 0, 1):
        yield f"at the scale's boundary {hair:+d}", [one + quarter + hair, one, one + 1, sign | one]
    scaled = one + (8 << fraction_bits) + quarter  # 448: the scale is 127, elements are values
    if INT8:
        largest = round_to(name, Fraction(127))
        ties = [round_to(name, Fraction(2 * i + 1, 2)) for i in range(8)]
        yield "ties to even", [largest] + [sign | tie for tie in ties] + ties
        yield "a hair from ties", [largest] + [tie + hair for tie in ties for hair in (-1, 1)]
        yield "above 127", [largest + 1, largest, sign | largest]
        yield "where escapes begin", [round_to(name, 127 * two(114)) + hair for hair in (-1, 0, 1)]
        yield "126.5 and its neighbours", [largest] + [
            sign | round_to(name, Fraction(253, 2)) + hair for hair in (-1, 0, 1)]
        return
    half = 1 << fraction_bits - 4
    yield "ties to even", [scaled] + [one + half * (2 * i + 1) for i in range(8)]
    yield "a hair from ties", [scaled] + [
        one + half * (2 * i + 1) + hair for i in range(8) for hair in (-1, 1)]
    yield "ties of E4M3's subnormals", [scaled] + [
        round_to(name, Fraction(2 * i + 1) * two(-10)) for i in range(9)]


def main():
    rng = random.Random(8)
    print("# made by mxfp8_vectors.py, which says what the fields are")
    for name, (digits, fraction_bits, bias, width) in TYPES.items():
        for title, inputs in special_inputs(name):
            print(f"# {title}")
            line(name, inputs)
        print("# any bits")
        for n in list(range(1, 33)) + [32] * 24:
            line(name, [rng.randrange(1 << digits * 4) for _ in range(n)])
        print("# near each other in magnitude")
        for n in [32] * 40:
            top = rng.randrange(8, (1 << width) - 1)
            line(name, [rng.getrandbits(1) << digits * 4 - 1
                        | (top - rng.randrange(8)) << fraction_bits
                        | rng.getrandbits(fraction_bits) for _ in range(n)])


main()
