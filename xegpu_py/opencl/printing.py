"""printf of OpenCL C: the buffer into which kernels write records, and the text that they say.

Source: the printf formatter of intel/compute-runtime, and kernels that were compiled.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

BUFFER_BYTES = 1 << 22
"""The size of the buffer."""

FIRST_RECORD = 4
"""Where the first record begins: after the offset of the next one."""

_SCALARS = {1: "<i1", 2: "<i2", 3: "<i4", 4: "<f4", 6: "<i8", 7: "<u8", 8: "<f8"}

_VECTORS = {9: "<i1", 10: "<i2", 11: "<i4", 12: "<i8", 13: "<f4", 14: "<f8"}

_STRING = 5

_CONVERSION = re.compile(rb"%(?:%|([-+ #0]*\d*(?:\.\d+)?)(?:v\d+)?(hh|hl|h|ll|l|j|z|t)?([a-zA-Z]))")


def printed(data: bytes, strings: Mapping[int, bytes]) -> str:
    """The text of a buffer of printf.

    Args:
        data: the buffer: the offset after the last record, then records: the address of the format, then for each
            argument its kind and value.
        strings: memory in which strings lie, by its address.
    """

    def string(address: int) -> bytes:
        for base, held in strings.items():
            if base <= address < base + len(held):
                return held[address - base :].split(b"\0", 1)[0]
        return b"(null)"

    def number(at: int, size: int) -> int:
        return int.from_bytes(data[at : at + size], "little")

    out, at, end = [], FIRST_RECORD, min(number(0, 4), len(data))
    while at + 8 <= end:
        text = string(number(at, 8))
        at, last = at + 8, 0
        for m in _CONVERSION.finditer(text):
            out.append(text[last : m.start()])
            last = m.end()
            if m[0] == b"%%":
                out.append(b"%")
                continue
            kind, at = number(at, 4), at + 4
            if kind == _STRING:
                out.append((b"%" + m[1] + b"s") % string(number(at, 8)))
                at += 8
                continue
            count = 1
            if kind in _VECTORS:
                count, at = number(at, 4), at + 4
            dtype = np.dtype({**_SCALARS, **_VECTORS}[kind])
            values = np.frombuffer(data, dtype, count, at)
            at += -(-count * dtype.itemsize // 4) * 4
            out.append(b",".join(_formatted(m[1], m[2], m[3], v) for v in values))
        out.append(text[last:])
    return b"".join(out).decode(errors="replace")


def _formatted(flags: bytes, length: bytes | None, conversion: bytes, value: Any) -> bytes:
    """A number as a conversion of C's printf shows it."""
    if conversion in b"aA":
        shown = float(value).hex().encode()
        return shown.upper() if conversion == b"A" else shown
    if conversion in b"eEfFgG":
        return bytes((b"%" + flags + conversion) % float(value))
    bits = {b"hh": 8, b"h": 16}.get(length or b"", 8 * value.dtype.itemsize)
    whole = int(value) & (1 << bits) - 1
    if conversion == b"c":
        return bytes((b"%" + flags + b"c") % (whole & 0xFF))
    if conversion == b"p":
        return b"%#x" % whole
    if conversion in b"di" and whole >> bits - 1:
        whole -= 1 << bits
    return bytes((b"%" + flags + (conversion if conversion in b"xXo" else b"d")) % whole)
