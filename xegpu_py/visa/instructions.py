"""The table of instructions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xegpu_py.numerics.block_scaled import SCALED_PRECISIONS, scale_bytes, scaled_types_problem
from xegpu_py.numerics.dpas import operand_bytes, types_problem
from xegpu_py.numerics.formats import PRECISIONS, TYPES
from xegpu_py.target import Target
from xegpu_py.visa.operands import (
    Destination,
    Flag,
    Immediate,
    Raw,
    Region,
    Variable,
    Vector,
    align_bytes,
    first_byte,
)
from xegpu_py.visa.program import Instruction
from xegpu_py.visa.spec import (
    FLOATS,
    INTEGERS,
    Attribute,
    Block,
    Caches,
    Choice,
    InstructionSpec,
    Name,
    Number,
    OperandSpec,
    Problem,
    Shape,
    Use,
)

_ARITHMETIC = ("-", "abs", "-abs")
_LOGIC = ("~",)
_ALL = tuple(TYPES)
_WITHOUT_BF = tuple(t for t in _ALL if t != "bf")
_MATH = ("hf", "f")
_MATH_DOUBLE = ("hf", "f", "df")


def _dst(types: tuple[str, ...], flags: bool = False) -> OperandSpec:
    return OperandSpec("dst", "dst", "write", types, flags=flags)


def _src(name: str, types: tuple[str, ...], modifiers: tuple[str, ...] = (), flags: bool = False) -> OperandSpec:
    return OperandSpec(name, "src", "read", types, immediate=True, modifiers=modifiers, flags=flags)


def _types(inst: Instruction) -> list[str]:
    """Types of the sources that are regions or immediates."""
    found = []
    for name, value in inst.values.items():
        if name.startswith("src") and isinstance(value, Region):
            found.append(value.var.type)
        elif name.startswith("src") and isinstance(value, Immediate):
            found.append(value.type)
    return found


def _one_kind(inst: Instruction, target: Target) -> Problem:
    """Sources are all integers or all floats; f64 meets f64 alone, and integer results come from integers."""
    sources = _types(inst)
    floats = [t for t in sources if TYPES[t].is_float]
    if floats and len(floats) < len(sources):
        return (f"sources of {', '.join(sources)} mix integers and floats", "convert one of them by a mov")
    dst = inst["dst"].var.type
    types = [*sources, dst]
    if floats and "df" in types and set(types) != {"df"}:
        return ("f64 meets no other type", "convert by a mov")
    if floats and not TYPES[dst].is_float:
        return (f"result of {', '.join(sources)} cannot have the type {dst}", "convert by a mov")
    if not floats and TYPES[dst].is_float and inst.name != "sel":
        return (f"result of {', '.join(sources)} cannot have the type {dst}", "convert by a mov")
    return _brain(inst, target)


def _brain(inst: Instruction, target: Target) -> Problem:
    """bf meets bf and f alone."""
    types = {*_types(inst), inst["dst"].var.type}
    if "bf" in types and not types <= {"bf", "f"}:
        return (f"bf meets bf and f alone, not {', '.join(sorted(types - {'bf', 'f'}))}", "convert by a mov")
    return None


def _all_of(*checks: Callable[[Instruction, Target], Problem]) -> Callable[[Instruction, Target], Problem]:
    def check(inst: Instruction, target: Target) -> Problem:
        return next((p for p in (c(inst, target) for c in checks) if p), None)

    return check


def _alu(
    name: str,
    doc: str,
    types: tuple[str, ...],
    sources: int,
    *,
    modifiers: tuple[str, ...] = _ARITHMETIC,
    sat: bool = True,
    category: str = "alu",
    check: Callable[[Instruction, Target], Problem] = _one_kind,
    **facts: Any,
) -> InstructionSpec:
    slots = (_dst(types), *(_src(f"src{i}", types, modifiers) for i in range(sources)))
    operands = " ".join(f"{{src{i}}}" for i in range(sources))
    form = f"{name}{'{sat}' if sat else ''} {{exec}} {{dst}} {operands}"
    return InstructionSpec(name, doc, form, slots, category=category, guard=True, check=check, **facts)


def _math(name: str, doc: str, sources: int = 1, types: tuple[str, ...] = _MATH) -> InstructionSpec:
    return _alu(name, doc, types, sources, category="math", check=_all_of(_one_kind, _double_math))


def _double_math(inst: Instruction, target: Target) -> Problem:
    if "df" not in _types(inst):
        return None
    if inst.saturate:
        return ("of f64 cannot saturate",)
    if not target.double_math:
        return (f"target {target.name} has no {inst.name} of f64",)
    regions = [v for v in inst.values.values() if isinstance(v, (Region, Destination))]
    if any(r.col or not r.reach(inst.exec_size)[1] for r in regions):
        return ("of f64 has operands that begin at a register and lie side by side",)
    return None


def _no_wide_product(inst: Instruction, target: Target) -> Problem:
    wide = [t for t in _types(inst)[:2] if t in ("q", "uq")]
    if wide:
        return (f"cannot multiply {wide[0]}", "multiply its 32-bit halves")
    return None


def _logic(name: str, doc: str, sources: int, **facts: Any) -> InstructionSpec:
    slots = (_dst(INTEGERS, flags=True), *(_src(f"src{i}", INTEGERS, _LOGIC, flags=True) for i in range(sources)))
    operands = " ".join(f"{{src{i}}}" for i in range(sources))
    form = f"{name} {{exec}} {{dst}} {operands}"
    return InstructionSpec(name, doc, form, slots, guard=True, check=_flags_or_none, low_bits=True, **facts)


def _flags_or_none(inst: Instruction, target: Target) -> Problem:
    kinds = {isinstance(v, Flag) for v in inst.values.values()}
    if len(kinds) > 1:
        return ("predicates meet predicates alone",)
    if kinds == {True} and inst.guard:
        return ("on predicates cannot be predicated",)
    return None


def _shift(name: str, doc: str, **facts: Any) -> InstructionSpec:
    return _alu(name, doc, INTEGERS, 2, sat=False, modifiers=("-",), identity=(0, "same"), **facts)


def _check_mov(inst: Instruction, target: Target) -> Problem:
    dst, src = inst["dst"].var.type, inst["src0"]
    if isinstance(src, Flag):
        if inst.exec_size != 1 or dst not in ("uw", "w", "ud", "d"):
            return ("of a predicate must have execution size 1 and a destination of 16 or 32 bits",)
        if inst.guard or inst.saturate:
            return ("of a predicate can neither be predicated nor saturate",)
        return None
    other = src.type if isinstance(src, Immediate) else src.var.type
    if (dst == "bf") != (other == "bf") and "f" not in (dst, other):
        return (f"cannot convert {other} to {dst}", "bf is converted from and to f alone")
    if dst == other == "bf" and (inst.saturate or getattr(src, "modifier", "")):
        return ("of bf to bf can neither saturate nor have a source modifier",)
    return None


_CONDITIONS = Choice(("eq", "ne", "gt", "ge", "lt", "le"))


def _check_cmp(inst: Instruction, target: Target) -> Problem:
    sources = _types(inst)
    if len({TYPES[t].is_float for t in sources}) > 1:
        return (f"sources of {', '.join(sources)} mix integers and floats", "convert one of them by a mov")
    if "df" in sources and set(sources) != {"df"}:
        return ("f64 meets no other type", "convert by a mov")
    dst = inst["dst"]
    types = {*sources, *([] if isinstance(dst, Flag) else [dst.var.type])}
    if "bf" in types and not types <= {"bf", "f"}:
        return ("bf meets bf and f alone", "convert by a mov")
    return None


_LOAD_CACHES = Caches(("df.df", "uc.uc", "uc.ca", "ca.uc", "ca.ca", "st.uc", "st.ca", "ri.ca"))
_STORE_CACHES = Caches(("df.df", "uc.uc", "uc.wb", "wt.uc", "wt.wb", "st.uc", "st.wb", "wb.wb"))
_ATOMIC_CACHES = Caches(("df.df", "uc.uc", "uc.wb"))
_MEMORY = Choice(("ugm", "slm"))
_ADDRESS_SIZE = Choice(("a32", "a64"))


def _data_bytes(inst: Instruction, target: Target) -> int:
    """Bytes of a message's data in registers: element by element, each for all lanes, and each in whole GRFs."""
    shape = inst["data"]
    if shape.transpose:
        return int(shape.vector * shape.register_bytes)
    lanes = inst.exec_size * shape.register_bytes
    if shape.vector == 1:
        return int(lanes)
    return int(shape.vector * (-(-lanes // target.grf_bytes) * target.grf_bytes))


def _address_bytes(inst: Instruction, target: Target) -> int:
    return inst.exec_size * (8 if inst["address_size"] == "a64" else 4)


def _messages(inst: Instruction, target: Target) -> Problem:
    shape, name = inst["data"], inst.name
    atomic = name.startswith("lsc_atomic")
    if atomic and (shape.vector != 1 or shape.transpose):
        return ("moves one element a lane, and does not transpose",)
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
    if inst["sfid"] == "ugm" and inst["address_size"] == "a32":
        return ("to ugm has 64-bit addresses", "it is stateless: an address is that of the whole memory")
    lanes = 1 if shape.transpose else max(inst.exec_size, 8)
    each = -(-lanes * shape.register_bytes * (shape.vector if shape.transpose else 1) // target.grf_bytes)
    used = each if shape.transpose else shape.vector * each
    if used > target.message_grfs:
        return (f"moves {used} registers, but target {target.name} moves at most {target.message_grfs}",)
    return None


def _address(name: str = "address") -> OperandSpec:
    return OperandSpec(name, "address", "read", bytes=_address_bytes)


def _data(name: str, use: Use, null: bool = False) -> OperandSpec:
    return OperandSpec(name, "raw", use, null=null, bytes=_data_bytes)


_MESSAGE_ATTRIBUTES: dict[str, Attribute] = {"sfid": _MEMORY, "data": Shape(), "address_size": _ADDRESS_SIZE}


def _needs_vector(inst: Instruction, target: Target) -> Problem:
    shape = inst["data"]
    if shape.transpose and shape.vector not in (1, 2, 3, 4, 8, 16, 32, 64):
        return (f"moves 1, 2, 3, 4, 8, 16, 32 or 64 elements, not {shape.vector}",)
    return None


def _block_bytes(inst: Instruction, target: Target) -> int:
    block = inst["block"]
    return int(block.count * block.block_bytes(target.grf_bytes))


def _blocks(inst: Instruction, target: Target) -> Problem:
    limits, block = target.block2d, inst["block"]
    if limits is None:
        return (f"is not there on target {target.name}, which has no 2D block messages",)
    store = inst.name == "lsc_store_block2d"
    if block.size not in limits.counts:
        return (f"has no elements of {block.size} bits",)
    if store and (block.transpose or block.vnni or block.count != 1):
        return ("can neither transpose, pack, nor store several blocks",)
    if block.transpose and block.vnni:
        return ("cannot both transpose and pack",)
    if block.vnni and block.size not in limits.vnni:
        return (f"cannot pack elements of {block.size} bits", "VNNI packs 8 and 16 bits to 32")
    height = limits.store_height if store else limits.load_height
    if not 1 <= block.height <= height:
        return (f"has 1 to {height} rows, not {block.height}",)
    if block.transpose:
        if block.size not in limits.transposed:
            return (f"cannot transpose elements of {block.size} bits", "it transposes 32 and 64 bits")
        width, rows = limits.transposed[block.size]
        if block.count != 1 or block.width > width or block.height > rows:
            return (f"transposes one block of at most {width}x{rows} elements, not {block}",)
        if block.size == 64 and (block.height != 8 or block.width not in (1, 2, 4)):
            return (f"transposes 64 bits in blocks of 1x8, 2x8 and 4x8, not {block.width}x{block.height}",)
    if block.count not in limits.counts[block.size]:
        counts = ", ".join(map(str, limits.counts[block.size]))
        return (f"moves {counts} blocks of {block.size} bits, not {block.count}",)
    row = block.count * block.width * block.size // 8
    if block.width * block.size < 32 or row > limits.row_bytes:
        return (f"has rows of 4 to {limits.row_bytes} bytes over all its blocks, not {row}",)
    if block.width * block.size % 32:
        return (f"has rows of a multiple of 4 bytes, not {block.width * block.size // 8}",)
    used = _block_bytes(inst, target) // target.grf_bytes
    if used > 32:
        return (f"moves at most 32 registers, not {used}",)
    return None


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


def _check_atomic(inst: Instruction, target: Target) -> Problem:
    operation = inst.name.removeprefix("lsc_atomic_")
    wanted = ATOMICS[operation][0]
    for i in range(2):
        given = inst[f"src{i}"].var is not None
        if given != (i < wanted):
            return (f"has {wanted} operand{'s' * (wanted != 1)} besides the address",)
    if operation in ("fadd", "fsub") and inst["sfid"] == "slm":
        return ("is of ugm alone",)
    if operation != "icas" and inst["sfid"] == "slm" and inst["data"].size == "d64":
        return ("of d64 is of ugm alone", "icas is the one atomic operation that slm has of d64")
    if inst["data"].size not in ("d16c32", "d32", "d64"):
        return (f"is of d16c32, d32 and d64, not of {inst['data'].size}",)
    if operation[0] == "f" and inst["data"].size == "d64" and operation not in ("fadd", "fsub"):
        return ("of floats is of d16c32 and d32",)
    return None


def _atomic(operation: str) -> InstructionSpec:
    name = f"lsc_atomic_{operation}"
    slots = (
        _data("dst", "write", null=True),
        _address(),
        _data("src0", "read", null=True),
        _data("src1", "read", null=True),
    )
    doc = f"Atomically {ATOMICS[operation][1]} at each lane's `address`; `dst` gets what was there."
    form = f"{name}.{{sfid}}{{caches}} {{exec}} {{dst}}:{{data}} flat[{{address}}]:{{address_size}} {{src0}} {{src1}}"
    return InstructionSpec(
        name,
        doc.replace("{src0}", "`src0`").replace("{src1}", "`src1`"),
        form,
        slots,
        {**_MESSAGE_ATTRIBUTES, "caches": _ATOMIC_CACHES},
        category="atomic",
        guard=True,
        check=_all_of(_messages, _check_atomic),
        source="finalizer",
    )


def _dpas_bytes(which: int) -> Callable[[Instruction, Target], int]:
    def size(inst: Instruction, target: Target) -> int:
        return operand_bytes(inst["W"], inst["A"], inst["SD"], inst["RC"], inst.exec_size)[which]

    return size


def _accumulator_bytes(name: str) -> Callable[[Instruction, Target], int]:
    def size(inst: Instruction, target: Target) -> int:
        return int(inst["RC"] * inst.exec_size * inst[name].var.format.bytes)

    return size


def _check_dpas(inst: Instruction, target: Target) -> Problem:
    w, a = inst["W"], inst["A"]
    for precision in (w, a):
        if precision not in target.dpas_precisions:
            return (f"target {target.name} has no precision {precision}; it has {', '.join(target.dpas_precisions)}",)
    if inst["SD"] not in target.dpas_depths:
        depths = ", ".join(map(str, target.dpas_depths))
        return (f"target {target.name} has systolic depth {depths}, not {inst['SD']}",)
    if inst.exec_size not in target.dpas_exec_sizes:
        sizes = " and ".join(map(str, target.dpas_exec_sizes))
        return (f"target {target.name} has execution size {sizes}, not {inst.exec_size}",)
    dst, acc = inst["dst"].var.type, inst["src0"].var
    problem = types_problem(w, a, dst, acc.type if acc else dst)
    if problem:
        return (problem, "DPAS.md, legal combinations of types and precisions")
    if not target.dpas_half_accumulators and {dst, acc.type if acc else dst} & {"bf", "hf"}:
        return (f"target {target.name} accumulates {w} in f alone",)
    for name in ("src1", "src2"):
        if (inst[name].var.type == "df") != (w == "df"):
            return (f"{name} of precision {w} must be of type {'df' if w == 'df' else 'd or ud'}",)
    for name in ("dst", "src0", "src1"):
        raw: Raw = inst[name]
        if raw.offset % target.grf_bytes:
            return (f"{name} must begin at a register, but is {raw.offset} bytes behind one", "DPAS.md, alignment")
    vector: Vector = inst["src2"]
    bits = PRECISIONS[a].bits
    alignment = operand_bytes(w, a, inst["SD"], 1, inst.exec_size)[1] if bits < 64 else target.grf_bytes
    if first_byte(vector, target.grf_bytes) % max(alignment, 4):
        return (
            f"src2 must begin at a multiple of {max(alignment, 4)} bytes, but is at "
            f"{first_byte(vector, target.grf_bytes)}",
            "DPAS.md, alignment",
        )
    return None


_DPAS = InstructionSpec(
    "dpas",
    "Multiplies matrix A in `src2` by B in `src1` and adds the accumulator `src0`.",
    "dpas.{W}.{A}.{SD}.{RC} {exec} {dst} {src0} {src1} {src2}",
    (
        OperandSpec("dst", "raw", "write", ("d", "ud", "f", "bf", "hf", "df"), bytes=_accumulator_bytes("dst")),
        OperandSpec(
            "src0", "raw", "read", ("d", "ud", "f", "bf", "hf", "df"), null=True, bytes=_accumulator_bytes("src0")
        ),
        OperandSpec("src1", "raw", "read", ("d", "ud", "df"), bytes=_dpas_bytes(0)),
        OperandSpec("src2", "vector", "read", ("d", "ud", "df"), bytes=_dpas_bytes(1)),
    ),
    {
        "W": Choice(tuple(PRECISIONS)),
        "A": Choice(tuple(PRECISIONS)),
        "SD": Number((1, 2, 4, 8)),
        "RC": Number(tuple(range(1, 9))),
    },
    category="dpas",
    exec_sizes=(8, 16),
    all_lanes=True,
    check=_check_dpas,
    source="DPAS.md",
)


def _scale_bytes(which: int) -> Callable[[Instruction, Target], int]:
    return lambda inst, target: scale_bytes(inst["W"], inst["A"])[which]


def _check_bdpas(inst: Instruction, target: Target) -> Problem:
    w, a, dst, acc = inst["W"], inst["A"], inst["dst"].var.type, inst["src0"].var
    problem = scaled_types_problem(w, a, dst, acc.type if acc else dst)
    if problem:
        return (problem, "bf, hf and e2m1 meet themselves, and bf8 and hf8 each other")
    for name, granule in (("src3", 16), ("src4", 8)):
        var = inst[name].var
        if not isinstance(var, Variable):
            continue
        root, offset = var.root
        place = (offset + first_byte(inst[name], target.grf_bytes)) % target.grf_bytes
        # The scales of the second block of e2m1 are in the second half of the register.
        limit = target.grf_bytes // 2 if w == "e2m1" else target.grf_bytes
        if place % granule or place >= limit:
            places = ", ".join(map(str, range(0, limit, granule)))
            return (f"{name} must begin at byte {places} of a register, not at {place}",)
        need = target.grf_bytes if w == "e2m1" else granule
        if align_bytes(root.align, target.grf_bytes) < need:
            return (f"{name} must be in a variable aligned to {need} bytes", "declare it with align=GRF")
    return None


_BDPAS = InstructionSpec(
    "bdpas",
    "Multiplies matrix A in `src2` with scales `src4` by B in `src1` with scales `src3`, and adds `src0`; "
    "32 elements of K share a scale, and null scales are ones.",
    "bdpas.{W}.{A}.{SD}.{RC} {exec} {dst} {src0} {src1} {src2} {src3} {src4}",
    (
        OperandSpec("dst", "raw", "write", ("f", "bf", "hf"), bytes=_accumulator_bytes("dst")),
        OperandSpec("src0", "raw", "read", ("f", "bf", "hf"), null=True, bytes=_accumulator_bytes("src0")),
        OperandSpec("src1", "raw", "read", ("ud", "bf", "hf"), bytes=_dpas_bytes(0)),
        OperandSpec("src2", "raw", "read", ("ud", "bf", "hf"), bytes=_dpas_bytes(1)),
        OperandSpec("src3", "vector", "read", ("ub",), null=True, bytes=_scale_bytes(0)),
        OperandSpec("src4", "vector", "read", ("ub",), null=True, bytes=_scale_bytes(1)),
    ),
    {
        "W": Choice(SCALED_PRECISIONS),
        "A": Choice(SCALED_PRECISIONS),
        "SD": Number((8,)),
        "RC": Number((8,)),
    },
    category="dpas",
    exec_sizes=(16,),
    all_lanes=True,
    check=_check_bdpas,
    source="Intel Graphics Compiler, visa/",
)


def _check_srnd(inst: Instruction, target: Target) -> Problem:
    pair = {"hf": "f", "ub": "hf"}[inst["dst"].var.type]
    for source in _types(inst):
        if source != pair:
            return (f"to {inst['dst'].var.type} has sources of {pair}, not of {source}", "SRND.md, operand type maps")
    return None


_FCVT_PAIRS = (("ub", "hf"), ("hf", "ub"), ("ud", "f"))


def _check_fcvt(inst: Instruction, target: Target) -> Problem:
    pair = (inst["dst"].var.type, inst["src0"].var.type)
    if pair not in _FCVT_PAIRS:
        known = ", ".join(f"{s} to {d}" for d, s in _FCVT_PAIRS)
        return (f"cannot convert {pair[1]} to {pair[0]}; it converts {known}", "FCVT.md: ub holds bf8, ud holds tf32")
    if pair[0] == "ud" and not target.tf32_conversion:
        return (f"to tf32 is not there on target {target.name}", "FCVT.md: PVC_XT and later have it")
    return None


_SPECS = (
    _DPAS,
    _BDPAS,
    InstructionSpec(
        "srnd",
        "Rounds `src0` stochastically, with the random bits `src1`.",
        "srnd {exec} {dst} {src0} {src1}",
        (
            _dst(("hf", "ub")),
            OperandSpec("src0", "src", types=("f", "hf")),
            OperandSpec("src1", "src", types=("f", "hf"), immediate=True),
        ),
        category="alu",
        no_mask_only=lambda inst: True,
        check=_check_srnd,
        source="SRND.md",
    ),
    InstructionSpec(
        "fcvt",
        "Converts between hf and bf8 (held in ub), or f to tf32 (held in ud).",
        "fcvt {exec} {dst} {src0}",
        (_dst(("ub", "hf", "ud")), OperandSpec("src0", "src", types=("hf", "ub", "f"))),
        category="alu",
        no_mask_only=lambda inst: inst["dst"].var.type == "ub",
        check=_check_fcvt,
        source="FCVT.md",
    ),
    InstructionSpec(
        "mov",
        "Copies `src0`, converted to the type of `dst`; or a predicate's bits.",
        "mov{sat} {exec} {dst} {src0}",
        (_dst(_ALL), _src("src0", _ALL, _ARITHMETIC, flags=True)),
        guard=True,
        check=_check_mov,
        low_bits=True,
    ),
    _alu("add", "`src0 + src1`.", _ALL, 2, commutes=True, identity=(0, "any"), low_bits=True),
    _alu(
        "mul",
        "`src0 * src1`.",
        _ALL,
        2,
        check=_all_of(_one_kind, _no_wide_product),
        commutes=True,
        identity=(1, "any"),
        zero=True,
        low_bits=True,
    ),
    _alu("mulh", "The upper 32 bits of the 64-bit product of `src0` and `src1`.", ("ud", "d"), 2, sat=False),
    _alu(
        "mad",
        "`src0 * src1 + src2`, of floats rounded once.",
        _ALL,
        3,
        check=_all_of(_one_kind, _no_wide_product),
        low_bits=True,
    ),
    _math("div", "`src0 / src1`.", 2, _MATH_DOUBLE),
    _math("inv", "`1 / src0`.", 1, _MATH_DOUBLE),
    _math("sqrt", "The square root of `src0`.", 1, _MATH_DOUBLE),
    _math("rsqrt", "`1 / sqrt(src0)`."),
    _math("exp", "2 to the power of `src0`."),
    _math("log", "The logarithm of `src0` to the base 2."),
    _math("sin", "The sine of `src0` in radians."),
    _math("cos", "The cosine of `src0` in radians."),
    _alu("min", "The smaller of `src0` and `src1`; of a number and a NaN the number.", _WITHOUT_BF, 2),
    _alu("max", "The greater of `src0` and `src1`; of a number and a NaN the number.", _WITHOUT_BF, 2),
    _alu("rndd", "`src0` rounded down to an integral value.", ("f",), 1),
    _alu("rndu", "`src0` rounded up to an integral value.", ("f",), 1),
    _alu("rnde", "`src0` rounded to the nearest integral value, halves to the even one.", ("f",), 1),
    _alu("rndz", "`src0` rounded toward zero to an integral value.", ("f",), 1),
    _logic(
        "and",
        "Bitwise `src0 & src1`, of integers or predicates.",
        2,
        commutes=True,
        identity=(-1, "narrower"),
        zero=True,
    ),
    _logic("or", "Bitwise `src0 | src1`, of integers or predicates.", 2, commutes=True, identity=(0, "narrower")),
    _logic("xor", "Bitwise `src0 ^ src1`, of integers or predicates.", 2, commutes=True, identity=(0, "narrower")),
    _logic("not", "Bitwise `~src0`, of an integer or predicate.", 1),
    _alu("cbit", "How many bits of `src0` are set.", ("ud",), 1, sat=False, modifiers=()),
    _alu("lzd", "How many zeros are above the highest bit of `src0` that is set.", ("ud",), 1, sat=False, modifiers=()),
    _shift(
        "shl",
        "`src0` shifted left by the lowest bits of `src1`: 6 where `dst` or `src0` has 64 bits, else 5.",
        low_bits=True,
    ),
    _shift("shr", "`src0` shifted right by the lowest bits of `src1`, zeros shifted in."),
    _shift("asr", "`src0` shifted right by the lowest bits of `src1`, its sign shifted in."),
    InstructionSpec(
        "cmp",
        "Compares `src0` with `src1`; `dst` gets a bit a lane, or all bits of an element.",
        "cmp.{condition} {exec} {dst} {src0} {src1}",
        (_dst(INTEGERS + FLOATS, flags=True), _src("src0", _ALL, _ARITHMETIC), _src("src1", _ALL, _ARITHMETIC)),
        {"condition": _CONDITIONS},
        check=_check_cmp,
    ),
    _alu("sel", "`src0` in the lanes of the predicate that are set, else `src1`.", _ALL, 2, selects=True),
    InstructionSpec(
        "setp",
        "Sets the predicate `dst` to the lowest bits of the scalar `src0`.",
        "setp {exec} {dst} {src0}",
        (OperandSpec("dst", "flag", "write"), _src("src0", ("uw", "w", "ud", "d"))),
    ),
    InstructionSpec(
        "lsc_load",
        "Loads `data` from each lane's `address` into `dst`; a null `dst` prefetches.",
        "lsc_load.{sfid}{caches} {exec} {dst}:{data} flat[{address}]:{address_size}",
        (_data("dst", "write", null=True), _address()),
        {**_MESSAGE_ATTRIBUTES, "caches": _LOAD_CACHES},
        category="load",
        guard=True,
        check=_all_of(_messages, _needs_vector),
        source="finalizer",
    ),
    InstructionSpec(
        "lsc_store",
        "Stores `data` from `src0` to each lane's `address`.",
        "lsc_store.{sfid}{caches} {exec} flat[{address}]:{address_size} {src0}:{data}",
        (_address(), _data("src0", "read")),
        {**_MESSAGE_ATTRIBUTES, "caches": _STORE_CACHES},
        category="store",
        guard=True,
        check=_all_of(_messages, _needs_vector),
        source="finalizer",
    ),
    InstructionSpec(
        "lsc_load_block2d",
        "Loads blocks of a 2D surface into `dst`, zeros where they reach out of it; a null `dst` prefetches.",
        f"lsc_load_block2d.{{sfid}}{{caches}} {{exec}} {{dst}}:{{block}} {_SURFACE_TEXT}",
        (OperandSpec("dst", "raw", "write", null=True, bytes=_block_bytes), *_SURFACE_SLOTS),
        {"sfid": Choice(("ugm",)), "block": Block(), "caches": _LOAD_CACHES},
        category="load",
        guard=True,
        exec_sizes=(1,),
        check=_blocks,
        source="finalizer",
    ),
    InstructionSpec(
        "lsc_store_block2d",
        "Stores a block to a 2D surface, except what reaches out of it.",
        f"lsc_store_block2d.{{sfid}}{{caches}} {{exec}} {_SURFACE_TEXT} {{src0}}:{{block}}",
        (*_SURFACE_SLOTS, OperandSpec("src0", "raw", "read", bytes=_block_bytes)),
        {"sfid": Choice(("ugm",)), "block": Block(), "caches": _STORE_CACHES},
        category="store",
        guard=True,
        exec_sizes=(1,),
        check=_blocks,
        source="finalizer",
    ),
    *map(_atomic, ATOMICS),
    InstructionSpec(
        "lsc_fence",
        "Orders the thread's accesses to memory before it and after it.",
        "lsc_fence.{sfid}.{flush}.{scope}",
        (),
        {
            "sfid": _MEMORY,
            "flush": Choice(("none", "evict", "invalidate", "discard", "clean", "flushl3", "type6")),
            "scope": Choice(("group", "local", "tile", "gpu", "gpus", "sysrel", "sysacq")),
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
    InstructionSpec(
        "barrier",
        "Waits until all threads of the workgroup are there.",
        "barrier",
        category="sync",
        exec_sizes=(),
        source="finalizer",
    ),
    InstructionSpec(
        "sbarrier.signal",
        "Tells the workgroup's threads that this one is there, and goes on.",
        "sbarrier.signal",
        category="sync",
        exec_sizes=(),
        source="finalizer",
    ),
    InstructionSpec(
        "sbarrier.wait",
        "Waits until all threads of the workgroup have signalled.",
        "sbarrier.wait",
        category="sync",
        exec_sizes=(),
        source="finalizer",
    ),
    InstructionSpec(
        "nbarrier.signal",
        "Tells the named barrier `id` that one of `count` threads is there, and goes on.",
        "nbarrier.signal {id} {count}",
        (_src("id", ("ub",)), _src("count", ("ub",))),
        category="sync",
        exec_sizes=(),
        source="finalizer",
        named_barrier=True,
    ),
    InstructionSpec(
        "nbarrier.wait",
        "Waits until the named barrier `id` has all its threads.",
        "nbarrier.wait {id}",
        (_src("id", ("ub",)),),
        category="sync",
        exec_sizes=(),
        source="finalizer",
        named_barrier=True,
    ),
    InstructionSpec(
        "label",
        "A place that jumps name.",
        "label {label}",
        (),
        {"label": Name()},
        category="control",
        exec_sizes=(),
    ),
    InstructionSpec(
        "jmp",
        "Goes on at the label with all enabled lanes, where the predicate's first bit, or any or all of it, says so.",
        "jmp {exec} {label}",
        (),
        {"label": Name()},
        category="control",
        guard=True,
        exec_sizes=(1,),
        jumps=True,
        uniform=True,
    ),
    InstructionSpec(
        "goto",
        "Lanes whose predicate is set go on at the label; they meet the others again where those get there.",
        "goto {exec} {label}",
        (),
        {"label": Name()},
        category="control",
        guard=True,
        jumps=True,
    ),
    InstructionSpec(
        "ret",
        "Ends the enabled lanes; with its last lane the thread ends.",
        "ret {exec}",
        category="control",
        exec_sizes=(1,),
        ends=True,
    ),
)

INSTRUCTIONS = {s.name: s for s in _SPECS}
"""The instructions by vISA's names."""
