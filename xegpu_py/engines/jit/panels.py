"""Panels: loaded blocks in the format in which dpas multiplies them. The threads that a worker runs share them.

Subgroups of a workgroup load the same blocks of A and B. The first subgroup that loads a block widens it into a panel;
the others find the panel by a key that is made from the message's operands. Panels are kept in a ring buffer, in which
a new panel overwrites the oldest. A table has two entries for each hash of a key; the first entry has the newer panel.

A panel is valid until the worker accesses memory in another way. Stores of blocks to allocations from which no panel
was loaded are the exception: they leave panels valid. So a thread loads the current data if it has stored to memory
itself, or if a barrier, an atomic or a load orders it after the store of another thread. Without such an order any
value is correct.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from xegpu_py.engines.jit.code import PTR, Code, Value, vector
from xegpu_py.engines.jit.frame import context_offset
from xegpu_py.engines.jit.host import LINE_BYTES, Host
from xegpu_py.engines.memory import aligned

_HEAD, _FLOOR, _SPAN, _NEXT, _RING, _END, _STEPS, _SOURCES = range(0, 64, 8)
_LAST, _CURSOR, _STOP = 64, 72, 80
_TABLE = 128
"""Byte offsets in the memory of panels. Each field is an i64:

- `_HEAD`: the total size in bytes of all panels made so far;
- `_FLOOR`: panels that were made before the total reached this size are not found;
- `_SPAN`: panels that were made more than this number of bytes ago are not found;
- `_NEXT`: the address of the next panel; `_RING`, `_END`: the first address of the ring, and the address behind it;
- `_STEPS`: the number of steps of a loop for which panels are kept before they are multiplied;
- `_SOURCES`: the allocations from which blocks were loaded: bit n stands for numbers whose remainder modulo 64 is n;
- `_LAST`: the index of the last entry of the table that is in use;
- `_CURSOR`, `_STOP`: the addresses of the next item and of the end of the list of lines to prefetch;
- `_TABLE`: the table of panels, which that list follows."""

_ENTRIES = 1 << 10
_ENTRY = 64
"""The size in bytes of an entry of the table: four words of a key, the total size of the panels that were made before
this one, the panel's address, and the number of bytes that its message moves."""

_BEFORE, _PLACE, _MOVED = 32, 40, 48

_LIST = _TABLE + _ENTRY * _ENTRIES
_LIST_BYTES = 1 << 15
_LINES_AT_ONCE = 2
"""The offset and size in bytes of the list of lines to prefetch, which has one pointer for each line; and the number of
lines that are prefetched at each step of a multiplication.

The panel that is being made determines the lines that later iterations of the loop load. A core can wait for about 16
lines at once, and a prefetch beyond these blocks all other loads. So only a few lines are prefetched at a time, spread
over the multiplications."""

_FACTORS = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F
"""Odd factors of the hash function: their products with small numbers differ in the upper bits."""

_RING_BYTES, _THREAD_BYTES = 3 << 16, 1 << 12
"""The size in bytes of a ring for several threads, and the additional size for each thread. The ring holds the panels
of one time slice of each of the 32 or 64 threads of a GEMM, and fits into a part of a second-level cache of 1 MiB."""

_MOST_STEPS = 8
_STEPS_BYTES = 51 << 10
"""The largest number of steps of a loop that are multiplied together, and the largest size in bytes of the panels that
a thread loads in these steps. Larger panels do not stay in the first-level cache while the rows of the accumulators are
computed."""


def panel_stride(size: int) -> int:
    """Bytes from one panel to the next. It is not a multiple of the page size, with which the lines of all panels would
    map to the same cache sets."""
    return -(-size // 64) * 64 + 64


def steps_together(step_bytes: int) -> int:
    """The number of steps of a loop that are multiplied together, a power of two.

    Args:
        step_bytes: bytes of the panels that a thread loads in each step.
    """
    most = min(_MOST_STEPS, _STEPS_BYTES // max(step_bytes, 1))
    return 1 << max(most.bit_length() - 1, 0)


class Panels:
    """The panels of one worker."""

    def __init__(self, largest: int, step_bytes: int) -> None:
        """Create an empty set of panels.

        Args:
            largest: bytes of the largest panel.
            step_bytes: bytes of the panels that a thread loads in a step of a loop.
        """
        self._largest, self._step_bytes = largest, step_bytes
        self._ring = aligned(0)
        # A step reads beyond the end of the list. These words must be addresses that the TLB can translate.
        self._memory = aligned(_LIST + _LIST_BYTES + 8 * _LINES_AT_ONCE).view(np.int64)
        self._memory[_LIST // 8 :] = self.address

    @property
    def address(self) -> int:
        """The address of the panels' memory, for native code."""
        return int(self._memory.ctypes.data)

    @property
    def made(self) -> int:
        """The total size in bytes of all panels made so far."""
        return int(self._memory[_HEAD // 8])

    def begin(self, threads: int) -> None:
        """Forget all panels, and provide a ring for workgroups of `threads` threads: a short one for one thread."""
        steps = 1 if threads == 1 else steps_together(self._step_bytes)
        # At the ring's end some bytes are left over.
        needed = self._step_bytes * steps + 2 * self._largest
        length = needed + (self._largest if threads == 1 else max(needed, _RING_BYTES + _THREAD_BYTES * threads))
        if len(self._ring) != length:
            self._ring = aligned(length)
        memory = self._memory
        memory[_FLOOR // 8], memory[_SOURCES // 8] = memory[_HEAD // 8], 0
        memory[_SPAN // 8], memory[_STEPS // 8] = length - needed, steps
        # A thread alone seldom loads a block again: one entry stays in the first-level cache.
        memory[_LAST // 8] = 0 if threads == 1 else _ENTRIES - 1
        memory[_CURSOR // 8] = memory[_STOP // 8] = self.address + _LIST
        memory[_RING // 8] = memory[_NEXT // 8] = self._ring.ctypes.data
        memory[_END // 8] = self._ring.ctypes.data + len(self._ring)


class Found(Struct, frozen=True):
    """The result of a search for a panel.

    Attributes:
        known: whether the panel was found.
        place: its address if it was found, an i64.
        moved: bytes that its message moves if it was found, an i64.
        entry: the table entry to which a new panel is written.
        key: the key that is written there.
    """

    known: Value
    place: Value
    moved: Value
    entry: Value
    key: Sequence[Value]


class Ahead(Struct, frozen=True):
    """The block that a later iteration of the loop loads.

    Attributes:
        known: whether the block's place is known, an i1.
        address: address of the block's first element, an i64.
        pitch: bytes from one row to the next, an i64.
        rows: number of rows of the block.
        row_bytes: bytes of each row.
    """

    known: Value
    address: Value
    pitch: Value
    rows: int
    row_bytes: int


def key_of(code: Code, function: str, base: Value, extents: Sequence[Value], x: Value, y: Value) -> list[Value]:
    """The key of a message's panel, i64 each: the function that loads it, the surface, and the block's place.

    Args:
        extents: width, height and pitch, from one on. Those of legal surfaces are far below 2**32.
    """
    width, height, pitch = extents
    tag = code.const(zlib.crc32(function.encode()), "i64")
    place = code.or_(code.shl(code.resize(x, 64, False), 32), code.resize(y, 64, False))
    return [base, code.or_(code.shl(width, 32), height), code.or_(code.shl(pitch, 32), tag), place]


def find_panel(code: Code, ctx: Value, key: Sequence[Value]) -> Found:
    """Search for a panel by its key."""
    panels = _panels(code, ctx)
    base, _, form, place = key
    mixed = code.mul(code.xor(place, form), code.const(_FACTORS[0], "i64"))
    mixed = code.mul(code.xor(code.add(mixed, base), code.lshr(mixed, 32)), code.const(_FACTORS[1], "i64"))
    index = code.lshr(mixed, 64 - (_ENTRIES.bit_length() - 1))
    index = code.and_(index, code.load(code.at(panels, _LAST), "i64", 8))
    entry = code.at(code.at(panels, _TABLE), code.mul(index, code.const(_ENTRY, "i64")))
    return _found(code, panels, entry, key)


def find_beside(code: Code, ctx: Value, entry: Value, key: Sequence[Value]) -> Found:
    """Look for a panel in the second entry of its key, whose first one has another panel.

    If it is not there, that other one is moved there, or is lost if it is the older one of both.
    """
    other = code.op(f"inttoptr {code.xor(code.cast('ptrtoint', entry, 'i64'), code.const(_ENTRY, 'i64'))} to ptr", PTR)
    found = _found(code, _panels(code, ctx), other, key)
    first, second = (code.load(code.at(each, _BEFORE), "i64", 8) for each in (entry, other))
    with code.when(code.and_(code.not_(found.known), code.icmp("sge", first, second))):
        code.store(code.load(entry, vector(_ENTRY // 8, "i64"), _ENTRY), other, _ENTRY)
    return found


def _found(code: Code, panels: Value, entry: Value, key: Sequence[Value]) -> Found:
    differs = code.const(0, "i64")
    for i, word in enumerate(key):
        differs = code.or_(differs, code.xor(word, code.load(code.at(entry, 8 * i), "i64", 8)))
    before = code.load(code.at(entry, _BEFORE), "i64", 8)
    moved = code.resize(code.load(code.at(entry, _MOVED), "i32", 4), 64, False)
    head, floor, span = (code.load(code.at(panels, at), "i64", 8) for at in (_HEAD, _FLOOR, _SPAN))
    recent = code.and_(code.icmp("sge", before, floor), code.icmp("sle", code.sub(head, before), span))
    known = code.and_(code.icmp("eq", differs, 0), recent)
    return Found(known, code.load(code.at(entry, _PLACE), "i64", 8), moved, entry, key)


class Prefetches:
    """The prefetches of listed lines, in the code of a multiplication."""

    def __init__(self, code: Code, ctx: Value) -> None:
        """Start after the lines that earlier code has prefetched."""
        self._code, self._panels = code, _panels(code, ctx)
        self._cursor = code.alloca(8, 8)
        cursor, self._stop = (code.load(code.at(self._panels, at), "i64", 8) for at in (_CURSOR, _STOP))
        code.store(cursor, self._cursor, 8)

    def some(self) -> None:
        """Prefetch some lines. If no others are listed, prefetch the last ones again."""
        code = self._code
        cursor = code.load(self._cursor, "i64", 8)
        place = code.op(f"inttoptr {cursor} to ptr", PTR)
        for i in range(_LINES_AT_ONCE):
            # To be read, into the second-level cache, of data.
            line = code.load(code.at(place, 8 * i), PTR, 8)
            code.call("llvm.prefetch.p0", line, *(code.const(n, "i32") for n in (0, 2, 1)))
        following = code.add(cursor, code.const(8 * _LINES_AT_ONCE, "i64"))
        code.store(code.intrinsic("umin", following, self._stop), self._cursor, 8)

    def end(self) -> None:
        """Record which lines are not prefetched yet."""
        code = self._code
        code.store(code.load(self._cursor, "i64", 8), code.at(self._panels, _CURSOR), 8)


def list_lines(code: Code, ctx: Value, ahead: Ahead) -> None:
    """List the lines of a block that the loop's later steps load, if its place is known and the list has space."""
    panels = _panels(code, ctx)
    cursor, stop = (code.load(code.at(panels, at), "i64", 8) for at in (_CURSOR, _STOP))
    start = code.add(code.cast("ptrtoint", panels, "i64"), code.const(_LIST, "i64"))
    empty = code.icmp("eq", cursor, stop)
    place = code.select(empty, start, stop)
    across = range(0, ahead.row_bytes, LINE_BYTES)
    count = ahead.rows * len(across)
    end = code.add(place, code.const(8 * count, "i64"))
    room = code.icmp("ule", end, code.add(start, code.const(_LIST_BYTES, "i64")))
    with code.when(code.and_(ahead.known, room)):
        rows = code.mul(code.splat(ahead.pitch, count), code.consts([n // len(across) for n in range(count)], "i64"))
        within = code.consts([*across] * ahead.rows, "i64")
        lines = code.add(code.add(code.splat(ahead.address, count), within), rows)
        code.store(lines, code.op(f"inttoptr {place} to ptr", PTR), 8)
        code.store(code.select(empty, start, cursor), code.at(panels, _CURSOR), 8)
        code.store(end, code.at(panels, _STOP), 8)


def make_panel(
    code: Code, ctx: Value, size: int, entry: Value, key: Sequence[Value], moved: Value, source: Value
) -> Value:
    """The place of a new panel, which is found by its key from now on; `source` is what `allocation_bit` gives."""
    panels = _panels(code, ctx)
    sources = code.at(panels, _SOURCES)
    code.store(code.or_(code.load(sources, "i64", 8), source), sources, 8)
    stride = code.const(panel_stride(size), "i64")
    head, following, ring, end = (code.load(code.at(panels, at), "i64", 8) for at in (_HEAD, _NEXT, _RING, _END))
    # The unused bytes at the ring's end count as made.
    fits = code.icmp("ule", code.add(following, stride), end)
    place = code.select(fits, following, ring)
    before = code.select(fits, head, code.add(head, code.sub(end, following)))
    code.store(code.add(before, stride), code.at(panels, _HEAD), 8)
    code.store(code.add(place, stride), code.at(panels, _NEXT), 8)
    for i, word in enumerate((*key, before, place)):
        code.store(word, code.at(entry, 8 * i), 8)
    code.store(code.resize(moved, 32, False), code.at(entry, _MOVED), 4)
    return code.op(f"inttoptr {place} to ptr", PTR)


def forget_panels(code: Code, ctx: Value, source: Value | None = None) -> None:
    """Invalidate all panels made so far; with an allocation's bit, only if there are panels of that allocation."""
    panels = _panels(code, ctx)
    head, floor = code.load(code.at(panels, _HEAD), "i64", 8), code.at(panels, _FLOOR)
    if source:
        sources = code.load(code.at(panels, _SOURCES), "i64", 8)
        head = code.select(code.icmp("ne", code.and_(sources, source), 0), head, code.load(floor, "i64", 8))
    code.store(head, floor, 8)


def allocation_bit(name: str, host: Host) -> str:
    """The function that gives the bit of the allocation in which an address is, an i64; 0 if it is in none.

    It takes the context and the address, an i64.
    """
    code = host.function(name, [PTR, "i64"], "i64")
    ctx, address = code.arguments
    table = code.load(code.at(ctx, context_offset("table")), PTR, 8)
    bit = code.alloca(8, 8)
    code.store(code.const(0, "i64"), bit, 8)

    def look(index: Value) -> None:
        entry = code.at(table, code.mul(index, code.const(24, "i64")))
        start, length = (code.load(code.at(entry, 8 * i), "i64", 8) for i in range(2))
        within = code.icmp("ult", code.sub(address, start), length)
        own = code.bin("shl", code.const(1, "i64"), code.mask(index, 63))
        code.store(code.select(within, own, code.load(bit, "i64", 8)), bit, 8)

    code.repeat(code.load(code.at(ctx, context_offset("buffers")), "i64", 8), look)
    code.ret(code.load(bit, "i64", 8))
    return code.text()


def steps_of(code: Code, ctx: Value) -> Value:
    """Steps of a loop after which panels must be multiplied, an i64."""
    return code.load(code.at(_panels(code, ctx), _STEPS), "i64", 8)


def _panels(code: Code, ctx: Value) -> Value:
    return code.load(code.at(ctx, context_offset("panels")), PTR, 8)
