"""The buffer into which kernels print, and the records in it.

A kernel that prints, or checks an assertion, has one more input, `printf_buffer`, the address of a buffer in global
memory. Its first dword counts the bytes in use, these eight included; the second is its size. A thread adds the size
of a record to the first by an atomic message, which returns the offset of the record. The thread writes the record
there unless it would reach beyond the end of the buffer. A record consists of words of 64 bits:

| Word | Low half | High half |
| --- | --- | --- |
| 0 | bytes of the record | the thread's number in its workgroup |
| 1 | the workgroup's place in x | in y |
| 2 | in z | the lane; with the highest bit set, an assertion that does not hold |
| 3 | bytes of the text | 0 |

The text follows, padded with zeros to whole words: MLIR's types of the numbers with commas between them, a zero byte,
and the format. Then come the numbers, a word each, in the low bits.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from xegpu_py.ir.builtin import formatted, is_float
from xegpu_py.numerics.formats import FLOATS, Array

BUFFER_BYTES = 1 << 22
"""Size of the buffer."""

FIRST_RECORD = 8
"""The offset of the first record."""

HEADER_WORDS = 4

STOPS = 1 << 31
"""The bit that marks the record of a failed assertion, in the word that holds the lane."""


def text_words(elements: Sequence[str], text: str) -> list[int]:
    """The words of a record that hold its text.

    Args:
        elements: MLIR's types of the numbers.
        text: the format.
    """
    data = text_bytes(elements, text)
    return [w for (w,) in struct.iter_unpack("<Q", data + bytes(-len(data) % 8))]


def text_bytes(elements: Sequence[str], text: str) -> bytes:
    """The bytes of a record's text, without padding."""
    return ",".join(elements).encode() + b"\0" + text.encode()


class Record(Struct, frozen=True):
    """The output of one thread, or of one lane of it.

    Attributes:
        group: the workgroup's place in x, y and z.
        thread: the thread's number in its workgroup.
        lane: the lane.
        stops: whether this is the message of an assertion that does not hold.
        text: the printed text.
    """

    group: tuple[int, int, int]
    thread: int
    lane: int
    stops: bool
    text: str


def read_records(data: Array) -> tuple[list[Record], int]:
    """The records of a buffer, and the number of bytes of records that did not fit.

    The records are sorted by workgroup (x fastest), then by thread, then in the order in which the thread printed
    them. Records of lanes that printed together are sorted by lane.

    Args:
        data: the bytes of the buffer.
    """
    used_bytes, size = (int(n) for n in data[:FIRST_RECORD].view(np.uint32))
    records, at = [], FIRST_RECORD
    while at + 8 * HEADER_WORDS <= min(used_bytes, size):
        length = int(data[at : at + 4].view(np.uint32)[0])
        if length == 0 or at + length > size:
            break
        records.append(_record(data[at : at + length].tobytes()))
        at += length
    records.sort(key=lambda r: (r.group[::-1], r.thread))
    return records, max(used_bytes - at, 0)


def _record(data: bytes) -> Record:
    _, thread, x, y, z, lane, length, _ = struct.unpack_from("<8I", data)
    start = 8 * HEADER_WORDS
    types, _, text = data[start : start + length].partition(b"\0")
    elements = types.decode().split(",") if types else []
    value_words = data[start + -(-length // 8) * 8 :]
    values = [_number(e, value_words[8 * i : 8 * i + 8]) for i, e in enumerate(elements)]
    message = formatted(text.decode(), elements, values)
    return Record((x, y, z), thread, lane & ~STOPS, bool(lane & STOPS), message)


def _number(element: str, raw: bytes) -> int | float:
    if is_float(element):
        dtype = np.dtype(FLOATS[element].dtype)
        return float(np.frombuffer(raw[: dtype.itemsize], dtype)[0])
    return int.from_bytes(raw, "little")
