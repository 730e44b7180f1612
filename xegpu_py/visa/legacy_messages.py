"""Messages of GPUs before Xe2, and `switchjmp`: instructions of the table that stand for others, which engines execute.

Each is declared with its operands, its rules and what it stands for: messages of today (`lsc_load`, `lsc_store`,
`lsc_atomic`), in the registers of which its data lies. Of surfaces, which need a table of the driver's, only `%slm`
exists: shared local memory. Sources: the vISA documentation, for registers of 64 bytes the lengths of the messages that
Intel's finalizers make.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from itertools import count, product
from typing import Any

from msgspec import structs

from xegpu_py.target import Target
from xegpu_py.visa.messages import MEMORY
from xegpu_py.visa.operands import Address, Destination, Flag, Guard, Immediate, Predicate, Raw, Region, Variable
from xegpu_py.visa.program import Instruction, Program
from xegpu_py.visa.spec import (
    Attribute,
    Check,
    DataShape,
    InstructionSpec,
    IntegerAttribute,
    KeywordAttribute,
    LabelsAttribute,
    OperandSpec,
    Problem,
    SuffixAttribute,
    SurfaceAttribute,
    all_of,
)

_MESSAGES = {spec.name: spec for spec in MEMORY}

_SVM_SIZES = (1, 2, 4, 8, 16)

_CHANNELS = tuple("".join(c for c, kept in zip("RGBA", bits) if kept) for bits in product((1, 0), repeat=4))[:-1]

_ATOMICS = {
    "add": "iadd", "sub": "isub", "inc": "iinc", "dec": "idec", "min": "umin", "max": "umax", "xchg": "store",
    "cmpxchg": "icas", "and": "and", "or": "or", "xor": "xor", "minsint": "smin", "maxsint": "smax", "fmax": "fmax",
    "fmin": "fmin", "fcmpwr": "fcas", "fadd": "fadd", "fsub": "fsub",
}  # fmt: skip
"""Names of the atomic operations in LSC messages."""


class Scratch:
    """Makes variables whose names are not taken."""

    def __init__(self, used_names: Container[str]) -> None:
        self.variables: list[Variable] = []
        self.predicates: list[Predicate] = []
        self._names = (name for n in count() if (name := f"older{n}") not in used_names)

    def variable(self, type_: str, elements: int) -> Variable:
        """A variable that begins at a register."""
        self.variables.append(Variable(next(self._names), type_, elements, "GRF"))
        return self.variables[-1]

    def predicate(self) -> Predicate:
        """A predicate of one bit."""
        self.predicates.append(Predicate(next(self._names), 1))
        return self.predicates[-1]


Expansion = Callable[[Instruction, Target, Scratch], Iterator[Instruction]]


def _scaled(inst: Instruction, name: str, scratch: Scratch, shift: int = 0) -> tuple[list[Instruction], Region]:
    """A number times a power of two, and the instructions that compute it."""
    offset_operand = inst[name]
    if shift == 0 and isinstance(offset_operand, Region):
        return [], offset_operand
    # IGC writes 0 of a base as 32 bits.
    scaled_var = scratch.variable("uq" if name == "base" else offset_operand.format.name, 1)
    by = Immediate(shift, "ud")
    values = {"dst": Destination(scaled_var), "src0": offset_operand, **({"src1": by} if shift else {})}
    shift_insts = structs.replace(
        inst, name="shl" if shift else "mov", values=values, exec_size=1, mask="M1_NM", guard=None, known={}
    )
    return [shift_insts], Region(scaled_var, 0, 0, 0, 1, 0)


def _lsc_message(
    inst: Instruction, name: str, shape: DataShape, address: Address, aligned: int, **operands: Raw
) -> Instruction:
    """A message of today in the place of an older one."""
    slm = "surface" in inst.values
    values = {
        "sfid": "slm" if slm else "ugm", "address_size": "a32" if slm else "a64", "data": shape, "caches": "",
        "address": address, "aligned": aligned, **operands,
    }  # fmt: skip
    return inst.replaced(name=name, values=values)


def _shape(size: int, elements: int = 1) -> DataShape:
    """The data of each lane: numbers of 4 or 8 bytes, or of 1 or 2 in the lowest part of 4."""
    return DataShape(f"d{8 * size}" + "c32" * (size < 4), elements)


def _lsc_data(inst: Instruction) -> tuple[str, str]:
    return ("lsc_load", "dst") if "dst" in inst.values else ("lsc_store", "src")


def _access(inst: Instruction, shape: DataShape, address: Address, aligned: int = 1, plus: int = 0) -> Instruction:
    name, data = _lsc_data(inst)
    operand = structs.replace(inst[data], offset=inst[data].offset + plus)
    return _lsc_message(inst, name, shape, address, aligned, **{"dst" if data == "dst" else "src0": operand})


# Their expansions.


def _block(inst: Instruction, target: Target, scratch: Scratch) -> Iterator[Instruction]:
    """Owords from one address on, of all lanes."""
    if "surface" in inst.values:
        unaligned = inst.name.endswith("unaligned")
        scale_insts, scaled_offset = _scaled(inst, "offset", scratch, 0 if unaligned else 4)
        aligned = 4 if unaligned else 16
    else:
        scale_insts, scaled_offset = _scaled(inst, "base", scratch)
        # IGC reads a load without the word as unaligned; stores must be aligned unless they say otherwise.
        unaligned = inst["alignment"] == "unaligned" or (not inst["alignment"] and "dst" in inst.values)
        aligned = 4 if unaligned else 16
    yield from scale_insts
    address = Address(
        scaled_offset.var, scaled_offset.row * target.grf_bytes + scaled_offset.col * scaled_offset.format.bytes
    )
    yield _access(inst, DataShape("d32", 4 * inst["owords"], True), address, aligned).replaced(mask="M1_NM")


def _svm_lanes(inst: Instruction, target: Target, scratch: Scratch) -> Iterator[Instruction]:
    """Blocks at each lane's address. Blocks of a byte lie side by side: 4 and 8 of them are a number."""
    size, blocks = inst["size"], inst["blocks"]
    shape = _shape(blocks) if size == 1 else _shape(size, blocks)
    yield _access(inst, shape, Address(inst["addresses"].var, inst["addresses"].offset), size)


def _scattered(inst: Instruction, target: Target, scratch: Scratch) -> Iterator[Instruction]:
    """An element at each lane's offset, which `gather` and `scatter` count in elements."""
    size, scale = (inst["size"], inst["size"]) if "size" in inst.values else (inst["bytes"], 1)
    scale_insts, scaled_base = _scaled(inst, "offset", scratch, scale.bit_length() - 1)
    yield from scale_insts
    yield _access(
        inst, _shape(size), Address(inst["offsets"].var, inst["offsets"].offset, 0, scale, "flat", scaled_base)
    )


def _qwords(inst: Instruction, target: Target, scratch: Scratch) -> Iterator[Instruction]:
    yield _access(inst, _shape(8), Address(inst["offsets"].var, inst["offsets"].offset))


def _channels(inst: Instruction, target: Target, scratch: Scratch) -> Iterator[Instruction]:
    """A message for each group of dwords side by side. The next one's addresses must not be where data is loaded."""
    scale_insts, scaled_base = _scaled(inst, "offset" if "surface" in inst.values else "base", scratch)
    yield from scale_insts
    channel_indices = ["RGBA".index(c) for c in inst["channels"]]
    firsts = [n for n, c in enumerate(channel_indices) if n == 0 or channel_indices[n - 1] != c - 1]
    offsets = inst["offsets"]
    if len(firsts) > 1 and "dst" in inst.values:
        root = inst["dst"].var.root[0]
        if scaled_base.var.root[0] is root:
            copies, scaled_base = _copied(inst, scaled_base, scratch)
            yield copies
        if offsets.var.root[0] is root:
            offset_var = scratch.variable(offsets.var.type, inst.exec_size)
            size = offset_var.format.bytes
            for lane in range(0, inst.exec_size, 8):
                row, byte = divmod(offsets.offset + lane * size, target.grf_bytes)
                source = Region(offsets.var, row, byte // size, 1, 1, 0)
                to = divmod(lane * size, target.grf_bytes)
                yield _plain(inst, 8, Destination(offset_var, to[0], to[1] // size), source)
            offsets = Raw(offset_var)
    row = DataShape("d32", 2).row_bytes(inst.exec_size, target.grf_bytes)
    for n, group_end in zip(firsts, [*firsts[1:], len(channel_indices)]):
        address = Address(offsets.var, offsets.offset, 4 * channel_indices[n], 1, "flat", scaled_base)
        yield _access(inst, DataShape("d32", group_end - n), address, 4, n * row)


def _plain(inst: Instruction, lanes: int, dst: Destination, source: Region) -> Instruction:
    values = {"dst": dst, "src0": source}
    return structs.replace(inst, name="mov", values=values, exec_size=lanes, mask="M1_NM", guard=None, known={})


def _copied(inst: Instruction, scalar: Region, scratch: Scratch) -> tuple[Instruction, Region]:
    copy_var = scratch.variable(scalar.format.name, 1)
    return _plain(inst, 1, Destination(copy_var), scalar), Region(copy_var, 0, 0, 0, 1, 0)


def _atomically(inst: Instruction, target: Target, scratch: Scratch) -> Iterator[Instruction]:
    """An atomic operation. `cmpxchg` writes src0 where memory has src1; that of today has them the other way round."""
    at = inst["addresses"] if "addresses" in inst.values else inst["offsets"]
    sources = inst["src0"], inst["src1"]
    if inst["change"] == "cmpxchg":
        sources = sources[::-1]
    size = int(inst["width"] or 32) // 8
    name = f"lsc_atomic_{_ATOMICS[inst['change']]}"
    shape, address = _shape(size), Address(at.var, at.offset)
    yield _lsc_message(inst, name, shape, address, size, dst=inst["dst"], src0=sources[0], src1=sources[1])


def _switch(inst: Instruction, target: Target, scratch: Scratch) -> Iterator[Instruction]:
    """A jump for each label but the last, to which greater numbers, which are not legal, jump too."""
    *jump_labels, default_label = inst["labels"]
    for number, label in enumerate(jump_labels):
        flag, source = scratch.predicate(), inst["src0"]
        values = {"condition": "eq", "dst": Flag(flag), "src0": source, "src1": Immediate(number, source.format.name)}
        yield inst.replaced(name="cmp", values=values, mask="M1_NM")
        yield inst.replaced(name="jmp", values={"label": label}, guard=Guard(flag))
    yield inst.replaced(name="jmp", values={"label": default_label})


_FENCES = {"fence_local": ("slm", "group"), "fence_global": ("ugm", "gpu")}
"""The memory and the scope of each fence."""

_FLUSHED = tuple(
    word
    for bits in product((1, 0), repeat=6)
    if (word := "".join(w for w, kept in zip(("E", "I", "S", "C", "R", "L1"), bits) if kept)) not in ("", "R")
)
"""Whether the thread waits for the fence (E), and the caches that it flushes, which hold what memory does here. Intel's
finalizers read all but R alone, which they take for a channel."""


def _fence(inst: Instruction, target: Target, scratch: Scratch) -> Iterator[Instruction]:
    memory, scope = _FENCES[inst.name]
    yield inst.replaced(name="lsc_fence", values={"sfid": memory, "flush": "none", "scope": scope})


# Rules.


def _legacy_problem(expand: Expansion) -> Callable[[Instruction, Target], Problem]:
    """Return the first error of the LSC messages that a legacy message expands to."""

    def check(inst: Instruction, target: Target) -> Problem:
        for message in expand(inst, target, Scratch(())):
            spec = _MESSAGES.get(message.name)
            if spec and (problem := spec.check(message, target)):
                return problem
        return None

    return check


def _one_number(name: str) -> Callable[[Instruction, Target], Problem]:
    def check(inst: Instruction, target: Target) -> Problem:
        value = inst[name]
        if isinstance(value, Region) and not value.is_scalar:
            return (f"operand '{name}' is one number, with the region <0;1,0>",)
        return None

    return check


def _several_blocks(inst: Instruction, target: Target) -> Problem:
    if inst["size"] == 1:
        return None
    if inst["blocks"] > 1 and inst.exec_size < 8:
        return ("of several blocks has execution size 8 or 16",)
    if inst["blocks"] == 8 and (inst["size"], inst.exec_size) != (4, 8):
        return ("of 8 blocks is of 4 bytes and execution size 8",)
    return None


def _of_width(inst: Instruction, target: Target) -> Problem:
    """Data of 8 bytes has a type of 8 bytes."""
    bits = 64 if inst.values.get("width") == "64" or inst.values.get("size") == 8 else 32
    for name in ("dst", "src", "src0", "src1"):
        var = getattr(inst.values.get(name), "var", None)
        if var is not None and "blocks" not in inst.values and var.format.bits != bits:
            return (f"operand '{name}' must be of {bits} bits, but got {var.type}",)
    return None


_TYPES = {"add": ("d", "ud"), "sub": ("d", "ud"), "minsint": ("d",), "maxsint": ("d",)}


def _dword_types(inst: Instruction, target: Target) -> Problem:
    """Intel's finalizers want ud for all numbers of 16 bits, and refuse those that are compared."""
    change = inst["change"]
    if inst["width"] and change in ("cmpxchg", "fcmpwr"):
        return (f"of 16 bits does not support '{change}'",)
    legal_types = ("ud",) if inst["width"] else ("f",) if change[0] == "f" else _TYPES.get(change, ("ud",))
    for name in ("dst", "src0", "src1"):
        var = inst[name].var
        if var is not None and var.type not in legal_types:
            return (f"operand '{name}' must be of type {' or '.join(legal_types)}, but got {var.type}",)
    return None


# Operands.


def _lane_bytes(size: int) -> Callable[[Instruction, Target], int]:
    return lambda inst, target: inst.exec_size * size


def _data_bytes(expand: Expansion) -> Callable[[Instruction, Target], int]:
    """The bytes of the data of all messages that one stands for."""

    def size(inst: Instruction, target: Target) -> int:
        data = inst[_lsc_data(inst)[1]]
        end_offsets = [
            operand.offset - data.offset + _MESSAGES[message.name].size(name, message, target)
            for message in expand(inst, target, Scratch(()))
            for name in ("dst", "src0")
            if message.name in _MESSAGES and (operand := message.values.get(name))
        ]
        return max(end_offsets)

    return size


def _number(name: str, type_: str) -> OperandSpec:
    return OperandSpec(name, "src", "read", (type_,), immediate=True)


_BASE, _OFFSET = _number("base", "uq"), _number("offset", "ud")

_BASE_OR_ZERO = OperandSpec("base", "src", "read", ("uq", "ud"), immediate=True)


def _wide_base(inst: Instruction, target: Target) -> Problem:
    if isinstance(inst["base"], Region) and inst["base"].format.name == "ud":
        return ("operand 'base' must be of type uq unless it is immediate, but got ud",)
    return None


_ADDRESSES = OperandSpec("addresses", "raw", "read", ("uq",), bytes=_lane_bytes(8))


def _offsets(size: int) -> OperandSpec:
    return OperandSpec("offsets", "raw", "read", ("uq",) if size == 8 else ("ud",), bytes=_lane_bytes(size))


def _pair(
    names: Sequence[str], text: str, doc: str, expand: Expansion, attributes: dict[str, Attribute], *slots: OperandSpec,
    types: tuple[str, ...] = (), sizes: tuple[int, ...] = (), **facts: Any,
) -> Iterator[InstructionSpec]:  # fmt: skip
    """A load and a store, or only one of them."""
    for name in names:
        stores = name.split("_")[-1].startswith(("st", "scatter")) or "scatter" in name
        data = OperandSpec(
            "src" if stores else "dst", "raw", "read" if stores else "write", types, bytes=_data_bytes(expand)
        )
        if "surface" in text:
            attributes = {**attributes, "surface": SurfaceAttribute()}
        checks = [_one_number(s.name) for s in slots if s.kind == "src"]
        checks += [facts["check"]] if "check" in facts else []
        yield InstructionSpec(
            name,
            doc.format("Stores" if stores else "Loads", "from `src`" if stores else "into `dst`"),
            f"{name}{text} {{{data.name}}}",
            (*slots, data),
            attributes,
            category="store" if stores else "load",
            guard=bool(sizes) and "{modified}" not in text,
            exec_sizes=sizes,
            check=all_of(*checks, _legacy_problem(expand)),
            expansion=expand,
        )


def _atomic(
    name: str, text: str, at: OperandSpec, attributes: dict[str, Attribute], order: str, widths: tuple[str, ...],
    types: Check,
) -> InstructionSpec:  # fmt: skip
    # 16 bits lie in the lowest part of 32.
    def size(inst: Instruction, target: Target) -> int:
        return inst.exec_size * max(int(inst["width"] or 32) // 8, 4)

    operands = [OperandSpec(n, "raw", "read", null=True, bytes=size) for n in ("src0", "src1")]
    return InstructionSpec(
        name,
        "Atomically changes each lane's location, a number of `width` bits; `dst` receives the old values. `cmpxchg` "
        "writes `src0` where it equals `src1`, and `fcmpwr` writes `src1` where it equals `src0`.",
        f"{name}.{{change}}{{width}} {{exec}} {text} {order}",
        (at, OperandSpec("dst", "raw", "write", null=True, bytes=size), *operands),
        {"change": KeywordAttribute(tuple(_ATOMICS)), "width": SuffixAttribute(widths), **attributes},
        category="atomic",
        guard=True,
        exec_sizes=_SVM_SIZES,
        check=all_of(types, _legacy_problem(_atomically)),
        expansion=_atomically,
    )


_DWORDS = ("ud", "d", "f")

_QUADS: dict[str, Attribute] = {"channels": KeywordAttribute(_CHANNELS)}

OLDER = (
    *_pair(
        ("svm_block_ld", "svm_block_st"),
        "{alignment} ({owords}) {base}",
        "{} `owords` times 16 bytes at the address `base` {}, whatever the execution mask.",
        _block,
        {"alignment": SuffixAttribute(("aligned", "unaligned")), "owords": IntegerAttribute((1, 2, 4, 8))},
        _BASE,
    ),
    *_pair(
        ("svm_gather", "svm_scatter"),
        ".{size}.{blocks} {exec} {addresses}",
        "{} `blocks` times `size` bytes at each lane's address {}.",
        _svm_lanes,
        {"size": IntegerAttribute((1, 4, 8)), "blocks": IntegerAttribute((1, 2, 4, 8))},
        _ADDRESSES,
        sizes=_SVM_SIZES,
        check=_several_blocks,
    ),
    *_pair(
        ("svm_gather4scaled", "svm_scatter4scaled"),
        ".{channels} {exec} {base} {offsets}",
        "{} the chosen ones of four dwords at `base` and each lane's offset {}.",
        _channels,
        _QUADS,
        _BASE_OR_ZERO,
        _offsets(8),
        types=_DWORDS,
        sizes=(8, 16),
        check=_wide_base,
    ),
    _atomic("svm_atomic", "{addresses}", _ADDRESSES, {}, "{dst} {src0} {src1}", ("16", "32", "64"), _of_width),
    *_pair(
        ("gather", "scatter"),
        ".{size} {exec}{modified} {surface} {offset} {offsets}",
        "{} `size` bytes at each lane's offset and `offset`, counted in elements, {}.",
        _scattered,
        {"size": IntegerAttribute((1, 2, 4)), "modified": SuffixAttribute(("mod",))},
        _OFFSET,
        _offsets(4),
        types=_DWORDS,
        sizes=(1, 8, 16),
    ),
    *_pair(
        ("gather_scaled", "scatter_scaled"),
        ".{bytes} {exec} {surface} {offset} {offsets}",
        "{} 1, 2 or 4 bytes at each lane's offset and `offset` {}.",
        _scattered,
        {"bytes": IntegerAttribute((1, 2, 4))},
        _OFFSET,
        _offsets(4),
        types=_DWORDS,
        sizes=(1, 2, 4, 8, 16, 32),
    ),
    *_pair(
        ("gather4_scaled", "scatter4_scaled"),
        ".{channels} {exec} {surface} {offset} {offsets}",
        "{} the chosen ones of four dwords at each lane's offset and `offset` {}.",
        _channels,
        _QUADS,
        _OFFSET,
        _offsets(4),
        types=_DWORDS,
        sizes=(8, 16),
    ),
    *_pair(
        ("qw_gather", "qw_scatter"),
        ".{blocks} {exec} {surface} {offsets}",
        "{} 8 bytes at each lane's offset {}.",
        _qwords,
        {"blocks": IntegerAttribute((1,))},
        _offsets(4),
        types=("q", "uq", "df"),
        sizes=_SVM_SIZES,
    ),
    _atomic(
        "dword_atomic",
        "{surface} {offsets}",
        _offsets(4),
        {"surface": SurfaceAttribute()},
        "{src0} {src1} {dst}",
        ("16",),
        _dword_types,
    ),
    *_pair(
        ("oword_ld", "oword_st"),
        "{modified} ({owords}) {surface} {offset}",
        "{} `owords` times 16 bytes at `offset`, counted in 16 bytes, {}, whatever the execution mask.",
        _block,
        {"modified": SuffixAttribute(("mod",)), "owords": IntegerAttribute((1, 2, 4, 8, 16))},
        _OFFSET,
    ),
    *_pair(
        ("oword_ld_unaligned",),
        "{modified} ({owords}) {surface} {offset}",
        "{} `owords` times 16 bytes at `offset`, a multiple of 4 bytes, {}, whatever the execution mask.",
        _block,
        {"modified": SuffixAttribute(("mod",)), "owords": IntegerAttribute((1, 2, 4, 8, 16))},
        _OFFSET,
    ),
    *(
        InstructionSpec(
            name,
            f"Orders the thread's accesses to {memory} memory before it and after it.",
            f"{name}{{flushed}}",
            (),
            {"flushed": SuffixAttribute(_FLUSHED)},
            category="sync",
            exec_sizes=(),
            expansion=_fence,
        )
        for name, memory in (("fence_local", "shared local"), ("fence_global", "global"))
    ),
    InstructionSpec(
        "switchjmp",
        "Jumps with all enabled lanes to the label with the number `src0`, counted from 0.",
        "switchjmp {exec} {src0} ({labels})",
        (OperandSpec("src0", "src", "read", ("ud", "uw", "ub"), immediate=True),),
        {"labels": LabelsAttribute()},
        category="control",
        exec_sizes=(1,),
        check=lambda inst, target: None if 1 <= len(inst["labels"]) <= 32 else ("has 1 to 32 labels",),
        jumps=True,
        uniform=True,
        expansion=_switch,
    ),
)
"""The instructions that stand for others."""

_EXPANSIONS = {spec.name: spec.expansion for spec in OLDER if spec.expansion}


def expand_legacy(program: Program, target: Target) -> Program:
    """The program with other instructions in the place of those that stand for others; itself if it has none."""
    if not any(inst.name in _EXPANSIONS for inst in program.instructions):
        return program
    scratch = Scratch({*(var.name for var in program.variables), *(p.name for p in program.predicates)})
    instructions: list[Instruction] = []
    for inst in program.instructions:
        expand = _EXPANSIONS.get(inst.name)
        for replacement in expand(inst, target, scratch) if expand else ():
            replacement.known["written"] = inst
            instructions.append(replacement)
        if not expand:
            instructions.append(inst)
    return structs.replace(
        program,
        variables=(*program.variables, *scratch.variables),
        predicates=(*program.predicates, *scratch.predicates),
        instructions=tuple(instructions),
    )
