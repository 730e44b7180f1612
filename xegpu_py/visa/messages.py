"""Messages to memory and fences, of the table of instructions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from xegpu_py.target import Target
from xegpu_py.visa.operands import STATE, Address, Immediate, Region, align_bytes
from xegpu_py.visa.program import Instruction
from xegpu_py.visa.spec import (
    Attribute,
    BlockShape,
    BlockShapeAttribute,
    CacheAttribute,
    Check,
    DataShapeAttribute,
    InstructionSpec,
    KeywordAttribute,
    OperandSpec,
    Problem,
    Use,
    all_of,
    payload_lanes,
)

_READING, _WRITING = ("df", "uc", "ca", "cc", "st", "ri"), ("df", "uc", "wb", "wt", "st")

_LOAD_CACHES = CacheAttribute(
    ("df.df", "uc.uc", "uc.ca", "ca.uc", "ca.ca", "st.uc", "st.ca", "ri.ca"), ("df", "uc", "ca", "cc", "st", "ri")
)

_STORE_CACHES = CacheAttribute(
    ("df.df", "uc.uc", "uc.wb", "wt.uc", "wt.wb", "st.uc", "st.wb", "wb.wb"), ("df", "uc", "wb", "wt", "st")
)

_ATOMIC_CACHES = CacheAttribute(("df.df", "uc.uc", "uc.wb"), ("df", "uc", "wb"))

_MEMORY = KeywordAttribute(("ugm", "slm"))

_ADDRESS_SIZE = KeywordAttribute(("a32", "a64", "a32u", "a32s"))


SCRATCH = ("ss", "surf")
"""Address spaces of the thread's scratch memory, whose offsets begin at `%scratchloc`."""


def _data_bytes(inst: Instruction, target: Target) -> int:
    """Bytes of a message's data in registers: element by element, each for all lanes, and each in whole GRFs."""
    shape = inst["data"]
    if shape.transpose:
        return int(shape.vector * shape.register_bytes)
    if shape.vector == 1:
        return int(inst.exec_size * shape.register_bytes)
    return int(shape.vector * shape.row_bytes(inst.exec_size, target.grf_bytes))


def address_base(inst: Instruction) -> Region | Immediate | None:
    """The operand that a message adds to lanes' offsets: the base of its address, or the start of the thread's scratch
    memory.
    """
    address: Address = inst.values.get("address", Address(None))
    return Region(STATE["%scratchloc"], 0, 0, 0, 1, 0) if address.space in SCRATCH else address.base


def alignment(inst: Instruction, exact: bool) -> tuple[int, str]:
    """The bytes of which each lane's address must be a multiple, and the rule of `target.message_rules` that says so.

    Args:
        exact: whether the rules of gathers of vectors and of consecutive elements count; see `Layout.exact_addresses`.
    """
    if "aligned" in inst.values:
        return int(inst["aligned"]), ""
    shape = inst["data"]
    if inst.name.startswith("lsc_atomic"):
        return shape.memory_bytes, "atomic-align"
    if exact and shape.transpose and shape.memory_bytes >= 4:
        return shape.memory_bytes, "lsc-transposed-align"
    return (4, "lsc-vector-align") if exact and shape.vector > 1 else (1, "")


def _address_bytes(inst: Instruction, target: Target) -> int:
    return inst.exec_size * (8 if inst["address_size"] == "a64" else 4)


def written_back(inst: Instruction, target: Target) -> int:
    """The bytes of the registers that belong to a message's result on hardware, at least those that it writes."""
    shape = inst.values.get("data")
    if shape is None or shape.transpose or inst.values.get("dst") is None:
        return 0
    return int(shape.vector * shape.row_bytes(inst.exec_size, target.grf_bytes))


def address_lanes(inst: Instruction, target: Target) -> int:
    """The lanes of whose addresses a message reads registers."""
    data = inst.values.get("data")
    return 1 if data is None or data.transpose else payload_lanes(inst.exec_size, target.grf_bytes)


def holds_payload(address: Address, inst: Instruction, target: Target) -> bool:
    """Whether a gather or scatter message finds its addresses at this operand also on hardware.

    The message reads whole registers, from the start of a register on. The finalizer neither aligns the variable nor
    checks its size. A variable that begins elsewhere gives wrong addresses, and one that is too small may end at the
    last register, where the finalizer crashes.
    """
    grf, var = target.grf_bytes, address.var
    size, lanes = 8 if inst["address_size"] == "a64" else 4, address_lanes(inst, target)
    root, alias_offset = var.root
    aligned = align_bytes(root.align, grf) >= grf and (alias_offset + address.offset) % grf == 0
    return aligned and address.offset + lanes * size <= var.bytes


def _messages(inst: Instruction, target: Target) -> Problem:
    shape, address = inst["data"], inst.values.get("address", Address(None))
    if "c" in shape.size and shape.vector != 1:
        return (f"of {shape.size} moves one element a lane",)
    if shape.transpose:
        if inst.exec_size != 1:
            return (f"of transposed data needs execution size 1, but has {inst.exec_size}",)
        if shape.size not in ("d32", "d64") and shape.vector > 1:
            return (f"of {shape.size} cannot move a vector", "vectors are of d32 and d64")
    elif shape.vector > 1:
        if shape.size not in ("d32", "d64"):
            return (f"of {shape.size} cannot move a vector", "vectors are of d32 and d64")
        if shape.vector not in (2, 3, 4, 8):
            return (f"moves 1, 2, 3, 4 or 8 elements a lane, not {shape.vector}", "more need the transposed form")
    if shape.size in ("d8", "d16") and not shape.transpose:
        return (f"of {shape.size} needs transposed data", f"use {shape.size}c32")
    if inst["sfid"] == "slm" and inst["address_size"] == "a64":
        return ("to slm has 32-bit addresses",)
    base = address.base
    width = 32 if inst["sfid"] == "slm" else 64
    if isinstance(base, Region) and address.space == "flat" and base.var.format.bits != width:
        return (f"adds a base of type {base.var.type}, which is not as wide as an address",)
    if address.space not in ("flat", *SCRATCH):
        return (f"addresses memory by '{address.space}'", "only flat memory, and scratch memory by ss and surf, exist")
    if inst["sfid"] == "ugm" and inst["address_size"] != "a64" and address_base(inst) is None:
        return ("to ugm has 64-bit addresses", "it is stateless: an address is that of the whole memory")
    grf = target.grf_bytes
    row_bytes = shape.register_bytes if shape.transpose else shape.row_bytes(inst.exec_size, grf)
    registers_used = -(-shape.vector * row_bytes // grf)
    if registers_used > target.message_grfs:
        return (f"moves {registers_used} registers, but target {target.name} moves at most {target.message_grfs}",)
    return None


def _address(name: str = "address") -> OperandSpec:
    return OperandSpec(name, "address", "read", bytes=_address_bytes)


def _data(name: str, use: Use, null: bool = False) -> OperandSpec:
    return OperandSpec(name, "raw", use, null=null, bytes=_data_bytes)


_MESSAGE_ATTRIBUTES: dict[str, Attribute] = {
    "sfid": _MEMORY,
    "data": DataShapeAttribute(),
    "address_size": _ADDRESS_SIZE,
}


def _needs_vector(inst: Instruction, target: Target) -> Problem:
    shape = inst["data"]
    if shape.transpose and shape.vector not in (1, 2, 3, 4, 8, 16, 32, 64):
        return (f"moves 1, 2, 3, 4, 8, 16, 32 or 64 elements, not {shape.vector}",)
    return None


def _block_bytes(inst: Instruction, target: Target) -> int:
    block = inst["block"]
    return int(block.count * block.block_bytes(target.grf_bytes))


def broken_shape(block: BlockShape, target: Target, store: bool) -> str | None:
    """The name of the rule of `target.message_rules` that a 2D block of this shape breaks; None if it is legal."""
    found = next(_shape_problems(block, target, store), None)
    return found and found[0]


def _shape_problems(block: BlockShape, target: Target, store: bool) -> Iterator[tuple[str, Problem]]:
    """The rules that a block's shape breaks, and how, for a target with 2D block messages."""
    limits = target.block2d
    assert limits
    row = block.count * block.width * block.size // 8
    if block.size not in limits.counts:
        yield "block2d-row-bytes", (f"has no elements of {block.size} bits",)
        return
    if store and (block.transpose or block.vnni or block.count != 1):
        yield "block2d-count", ("can neither transpose, pack, nor store several blocks",)
    if block.transpose and block.vnni:
        yield "block2d-transpose", ("cannot both transpose and pack",)
    if block.vnni and block.size not in limits.vnni:
        yield (
            "block2d-transpose",
            (f"cannot pack elements of {block.size} bits", "VNNI packs 8 and 16 bits to 32"),
        )
    height = limits.store_height if store else limits.load_height
    if not 1 <= block.height <= height:
        yield "block2d-rows", (f"has 1 to {height} rows, not {block.height}",)
    if block.transpose:
        if block.size not in limits.transposed:
            yield (
                "block2d-transpose",
                (f"cannot transpose elements of {block.size} bits", "it transposes 32 and 64 bits"),
            )
            return
        width, rows = limits.transposed[block.size]
        if block.count != 1 or block.width > width or block.height > rows:
            yield "block2d-transpose", (f"transposes one block of at most {width}x{rows} elements, not {block}",)
        if block.size == 64 and (block.height != 8 or block.width not in (1, 2, 4)):
            shape = f"{block.width}x{block.height}"
            yield "block2d-transpose", (f"transposes 64 bits in blocks of 1x8, 2x8 and 4x8, not {shape}",)
    if block.count not in limits.counts[block.size]:
        counts = ", ".join(map(str, limits.counts[block.size]))
        yield "block2d-count", (f"moves {counts} blocks of {block.size} bits, not {block.count}",)
    if block.width * block.size < 32 or row > limits.row_bytes:
        yield "block2d-row-bytes", (f"has rows of 4 to {limits.row_bytes} bytes over all its blocks, not {row}",)
    if block.width * block.size % 32:
        yield "block2d-row-bytes", (f"has rows of a multiple of 4 bytes, not {block.width * block.size // 8}",)
    registers_used = block.count * block.block_bytes(target.grf_bytes) // target.grf_bytes
    if registers_used > 32:
        yield "block2d-row-bytes", (f"moves at most 32 registers, not {registers_used}",)


def _blocks(inst: Instruction, target: Target, *, store: bool) -> Problem:
    limits = target.block2d
    if limits is None:
        return (f"is not supported on target '{target.name}', which has no 2D block messages",)
    mixed = isinstance(inst.values.get("x"), Immediate) != isinstance(inst.values.get("y"), Immediate)
    if mixed and not limits.mixed_place:
        rule = "IGC since 2024 accepts X and Y both in registers or both immediate"
        return ("has one coordinate in a register and the other immediate", rule)
    return next((problem for _, problem in _shape_problems(inst["block"], target, store)), None)


_SURFACE = ("base", "width", "height", "pitch", "x", "y")

_SURFACE_SLOTS = tuple(
    OperandSpec(n, "scalar", "read", ("uq", "q") if n == "base" else ("ud", "d"), immediate=n != "base")
    for n in _SURFACE
)

_SURFACE_TEXT = "flat[" + ",".join(f"{{{n}}}" for n in _SURFACE) + "]"

ATOMICS = {
    "iinc": (0, "adds 1"),
    "idec": (0, "subtracts 1"),
    "load": (0, "reads"),
    "store": (1, "writes {src0}"),
    "iadd": (1, "adds {src0}"),
    "isub": (1, "subtracts {src0}"),
    "smin": (1, "takes the signed minimum with {src0}"),
    "smax": (1, "takes the signed maximum with {src0}"),
    "umin": (1, "takes the unsigned minimum with {src0}"),
    "umax": (1, "takes the unsigned maximum with {src0}"),
    "and": (1, "takes the bitwise and with {src0}"),
    "or": (1, "takes the bitwise or with {src0}"),
    "xor": (1, "takes the bitwise exclusive or with {src0}"),
    "icas": (2, "writes {src1} where it equals {src0}"),
    "fadd": (1, "adds the float {src0}"),
    "fsub": (1, "subtracts the float {src0}"),
    "fmin": (1, "takes the float minimum with {src0}"),
    "fmax": (1, "takes the float maximum with {src0}"),
    "fcas": (2, "writes {src1} where it equals the float {src0}"),
}
"""Atomic operations: how many operands each has, and what it does to each location."""


def _one_element(inst: Instruction, target: Target) -> Problem:
    shape = inst["data"]
    if shape.vector != 1 or shape.transpose:
        return ("moves one element a lane, and does not transpose",)
    return None


def _check_atomic(operation: str) -> Check:
    operand_count, adds_floats = ATOMICS[operation][0], operation in ("fadd", "fsub")

    def check(inst: Instruction, target: Target) -> Problem:
        size, slm = inst["data"].size, inst["sfid"] == "slm"
        if [inst[f"src{i}"].var is not None for i in range(2)] != [i < operand_count for i in range(2)]:
            return (f"has {operand_count} operand{'s' * (operand_count != 1)} besides the address",)
        if slm and adds_floats:
            return ("is supported only by ugm",)
        if slm and size == "d64" and operation != "icas":
            return ("of d64 is supported only by ugm", "icas is the one atomic operation that slm has of d64")
        if size not in ("d16c32", "d32", "d64"):
            return (f"is of d16c32, d32 and d64, not of {size}",)
        if operation[0] == "f" and size == "d64" and not adds_floats:
            return ("of floats is of d16c32 and d32",)
        return None

    return check


def _atomic(operation: str) -> InstructionSpec:
    name = f"lsc_atomic_{operation}"
    slots = (
        _data("dst", "write", null=True),
        _address(),
        _data("src0", "read", null=True),
        _data("src1", "read", null=True),
    )
    doc = f"Atomically {ATOMICS[operation][1]} at each lane's `address`; `dst` receives the old values."
    form = f"{name}.{{sfid}}{{caches}} {{exec}} {{dst}}:{{data}} {{address}}:{{address_size}} {{src0}} {{src1}}"
    return InstructionSpec(
        name,
        doc.replace("{src0}", "`src0`").replace("{src1}", "`src1`"),
        form,
        slots,
        {**_MESSAGE_ATTRIBUTES, "caches": _ATOMIC_CACHES},
        category="atomic",
        guard=True,
        check=all_of(_one_element, _messages, _check_atomic(operation)),
        source="finalizer",
        atomic=operation,
    )


def _access(
    name: str, doc: str, text: str, slots: Sequence[OperandSpec], attributes: dict[str, Attribute], check: Check
) -> InstructionSpec:
    """A load or store; `text` is its syntax after the execution size."""
    stores, block = name.startswith("lsc_store"), name.endswith("block2d")
    caches = {**attributes, "caches": _STORE_CACHES if stores else _LOAD_CACHES}
    category, sizes = "store" if stores else "load", {"exec_sizes": (1,)} if block else {}
    form = f"{name}.{{sfid}}{{caches}} {{exec}} {text}"
    common: dict[str, Any] = {"category": category, "guard": True, "check": check, "source": "finalizer", **sizes}
    return InstructionSpec(name, doc, form, tuple(slots), caches, **common)


_BLOCK_ATTRIBUTES: dict[str, Attribute] = {"sfid": KeywordAttribute(("ugm",)), "block": BlockShapeAttribute()}

MEMORY = (
    _access(
        "lsc_load",
        "Loads `data` from each lane's `address` into `dst`; a null `dst` prefetches.",
        "{dst}:{data} {address}:{address_size}",
        (_data("dst", "write", null=True), _address()),
        _MESSAGE_ATTRIBUTES,
        all_of(_messages, _needs_vector),
    ),
    _access(
        "lsc_store",
        "Stores `data` from `src0` to each lane's `address`.",
        "{address}:{address_size} {src0}:{data}",
        (_address(), _data("src0", "read")),
        _MESSAGE_ATTRIBUTES,
        all_of(_messages, _needs_vector),
    ),
    _access(
        "lsc_load_block2d",
        "Loads blocks of a 2D surface into `dst`, where out-of-bounds elements read as zero; a null `dst` prefetches.",
        f"{{dst}}:{{block}} {_SURFACE_TEXT}",
        (OperandSpec("dst", "raw", "write", null=True, bytes=_block_bytes), *_SURFACE_SLOTS),
        _BLOCK_ATTRIBUTES,
        partial(_blocks, store=False),
    ),
    _access(
        "lsc_store_block2d",
        "Stores a block to a 2D surface; out-of-bounds elements are not written.",
        f"{_SURFACE_TEXT} {{src0}}:{{block}}",
        (*_SURFACE_SLOTS, OperandSpec("src0", "raw", "read", bytes=_block_bytes)),
        _BLOCK_ATTRIBUTES,
        partial(_blocks, store=True),
    ),
    *map(_atomic, ATOMICS),
    InstructionSpec(
        "lsc_fence",
        "Orders the thread's accesses to memory before it and after it.",
        "lsc_fence.{sfid}.{flush}.{scope}",
        (),
        {
            "sfid": _MEMORY,
            "flush": KeywordAttribute(("none", "evict", "invalidate", "discard", "clean", "flushl3", "type6")),
            "scope": KeywordAttribute(("group", "local", "tile", "gpu", "gpus", "sysrel", "sysacq")),
        },
        category="sync",
        exec_sizes=(),
        check=lambda inst, target: (
            ("of slm must be none.group",)
            if inst["sfid"] == "slm" and (inst["flush"], inst["scope"]) != ("none", "group")
            else None
        ),
        source="finalizer",
    ),
    InstructionSpec(
        "fence_sw",
        "Keeps compilers from moving instructions across it. It does nothing as the kernel runs.",
        "fence_sw",
        category="sync",
        exec_sizes=(),
        source="finalizer",
    ),
)
