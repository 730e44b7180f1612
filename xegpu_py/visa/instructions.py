"""The table of instructions: arithmetic, control flow, products; those of memory are in `messages`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from xegpu_py.numerics.block_scaled import (
    COLUMNS,
    ROWS,
    SCALE_GROUP,
    SCALED_PRECISIONS,
    scale_bytes,
    scaled_types_problem,
)
from xegpu_py.numerics.dpas import operand_bytes, types_problem
from xegpu_py.numerics.formats import PRECISIONS, TYPES, Array
from xegpu_py.target import Target
from xegpu_py.visa.legacy_messages import OLDER
from xegpu_py.visa.messages import MEMORY
from xegpu_py.visa.operands import Destination, Flag, Raw, Region, Variable, align_bytes, first_byte
from xegpu_py.visa.program import LABEL, Instruction
from xegpu_py.visa.spec import (
    FLOATS,
    INTEGERS,
    ByteAttribute,
    Check,
    InstructionSpec,
    IntegerAttribute,
    KeywordAttribute,
    LabelAttribute,
    OperandKind,
    OperandSpec,
    Problem,
    Span,
    SuffixAttribute,
    SymbolAttribute,
    Use,
    all_of,
)

# Arithmetic, logic, math and conversions, of the table of instructions.

_ARITHMETIC = ("-", "abs", "-abs")

_LOGIC = ("~",)

_ALL = tuple(TYPES)

_WITHOUT_BF = tuple(t for t in _ALL if t != "bf")

_MATH = ("hf", "f")

_MATH_DOUBLE = ("hf", "f", "df")

_CONDITIONS = KeywordAttribute(("eq", "ne", "gt", "ge", "lt", "le"))


def _dst(types: tuple[str, ...], flags: bool = False) -> OperandSpec:
    return OperandSpec("dst", "dst", "write", types, flags=flags)


def _src(name: str, types: tuple[str, ...], modifiers: tuple[str, ...] = (), **facts: Any) -> OperandSpec:
    return OperandSpec(name, "src", "read", types, immediate=True, modifiers=modifiers, **facts)


def source_types(inst: Instruction) -> list[str]:
    """Types of the sources that are regions or immediates."""
    return [source.format.name for source in inst.sources if not isinstance(source, Flag)]


# Rules on the types of operands of one instruction.


def _types(inst: Instruction) -> list[str]:
    """Types of the sources and of the result, without predicates."""
    dst = inst["dst"]
    return [*source_types(inst), *([] if isinstance(dst, Flag) else [dst.var.type])]


def _mixed(sources: Sequence[str], types: Sequence[str]) -> Problem:
    """Sources must be all integers or all floats; f64 cannot be mixed with other types."""
    floats = [t for t in sources if TYPES[t].is_float]
    if floats and len(floats) < len(sources):
        return (f"sources of {', '.join(sources)} mix integers and floats", "convert one of them by a mov")
    if floats and "df" in types and set(types) != {"df"}:
        return ("f64 cannot be combined with another type", "convert by a mov")
    return None


def _brain(inst: Instruction, target: Target) -> Problem:
    """bf can only be combined with bf and f."""
    types = set(_types(inst))
    if "bf" in types and not types <= {"bf", "f"}:
        return (
            f"bf can be combined only with bf and f, not {', '.join(sorted(types - {'bf', 'f'}))}",
            "convert by a mov",
        )
    return None


def _same_kind(inst: Instruction, target: Target) -> Problem:
    """Float sources require a float result."""
    *sources, dst = types = _types(inst)
    problem = _mixed(sources, types)
    if problem is None and TYPES[sources[0]].is_float and not TYPES[dst].is_float:
        return (f"result of {', '.join(sources)} cannot have the type {dst}", "convert by a mov")
    return problem


def _integers_give_integers(inst: Instruction, target: Target) -> Problem:
    *sources, dst = _types(inst)
    if not TYPES[sources[0]].is_float and TYPES[dst].is_float:
        return (f"result of {', '.join(sources)} cannot have the type {dst}", "convert by a mov")
    return None


_one_kind = all_of(_same_kind, _integers_give_integers, _brain)


def _sums_of_floats_saturate(inst: Instruction, target: Target) -> Problem:
    if inst.saturate and not TYPES[source_types(inst)[0]].is_float:
        return ("of integers cannot saturate", "IGC 2.40")
    return None


def _compared(inst: Instruction, target: Target) -> Problem:
    sources = source_types(inst)
    return _mixed(sources, sources)


def _double_math(inst: Instruction, target: Target) -> Problem:
    if "df" not in source_types(inst):
        return None
    if inst.saturate:
        return ("of f64 cannot saturate",)
    if not target.double_math:
        return (f"target '{target.name}' does not support {inst.name} of f64",)
    regions = [v for v in inst.values.values() if isinstance(v, (Region, Destination))]
    if inst.name in ("divm", "sqrtm"):
        # IGC 2.40 repeats a scalar source.
        regions = [r for r in regions if isinstance(r, Destination) or not r.is_scalar]
    if any(r.col or not r.reach(inst.exec_size)[1] for r in regions):
        return ("of f64 has operands that begin at a register and lie side by side",)
    return None


def _flags_or_none(inst: Instruction, target: Target) -> Problem:
    are_flags = {isinstance(v, Flag) for v in inst.values.values()}
    if len(are_flags) > 1:
        return ("predicates can be combined only with predicates",)
    if are_flags == {True} and inst.guard:
        return ("on predicates cannot be predicated",)
    return None


def _check_mov(inst: Instruction, target: Target) -> Problem:
    dst, src = inst["dst"].format.name, inst["src0"]
    if isinstance(src, Flag):
        if inst.exec_size != 1 or dst not in ("uw", "w", "ud", "d"):
            return ("of a predicate must have execution size 1 and a destination of 16 or 32 bits",)
        if inst.guard or inst.saturate:
            return ("of a predicate can neither be predicated nor saturate",)
        return None
    (src_type,) = source_types(inst)
    if (dst == "bf") != (src_type == "bf") and "f" not in (dst, src_type):
        return (f"cannot convert {src_type} to {dst}", "bf can be converted only from and to f")
    if dst == src_type == "bf" and (inst.saturate or getattr(src, "modifier", "")):
        return ("of bf to bf can neither saturate nor have a source modifier",)
    return None


def _check_srnd(inst: Instruction, target: Target) -> Problem:
    dst = inst["dst"].var.type
    src_type = {"hf": "f", "ub": "hf"}[dst]
    for source in source_types(inst):
        if source != src_type:
            return (f"to {dst} has sources of {src_type}, not of {source}", "SRND.md, operand type maps")
    return None


_FCVT_PAIRS = (("ub", "hf"), ("hf", "ub"), ("ud", "f"))


def _check_fcvt(inst: Instruction, target: Target) -> Problem:
    src, dst = _types(inst)
    if (dst, src) not in _FCVT_PAIRS:
        pairs_text = ", ".join(f"{s} to {d}" for d, s in _FCVT_PAIRS)
        return (f"cannot convert {src} to {dst}; it converts {pairs_text}", "FCVT.md: ub holds bf8, ud holds tf32")
    if dst == "ud" and not target.tf32_conversion:
        return (f"to tf32 is not supported on target '{target.name}'", "FCVT.md: PVC_XT and later support it")
    return None


def _addresses(inst: Instruction, target: Target) -> Problem:
    source = inst["src0"]
    if inst["dst"].var.kind != "A" or (isinstance(source, Region) and source.var.kind != "A"):
        return ("adds a number to the place of a variable or to an address, and writes an address variable",)
    return None


def _fields(inst: Instruction, target: Target) -> Problem:
    field, dst = source_types(inst)[2], inst["dst"].var.type
    return None if field == dst else (f"takes a field of {field} to {dst}, but both must have one type",)


# Entries of the table.


def _alu(
    name: str,
    doc: str,
    types: tuple[str, ...],
    sources: int,
    *,
    modifiers: tuple[str, ...] = _ARITHMETIC,
    sat: bool = True,
    flags: bool = False,
    check: Check = _one_kind,
    **facts: Any,
) -> InstructionSpec:
    names = [f"src{i}" for i in range(sources)]
    slots = (_dst(types, flags), *(_src(n, types, modifiers, flags=flags) for n in names))
    form = f"{name}{'{sat}' * sat} {{exec}} {{dst}} " + " ".join(f"{{{n}}}" for n in names)
    return InstructionSpec(name, doc, form, slots, guard=True, check=check, **facts)


def _math(name: str, doc: str, sources: int = 1, types: tuple[str, ...] = _MATH) -> InstructionSpec:
    return _alu(name, doc, types, sources, category="math", check=all_of(_one_kind, _double_math))


def _logic(name: str, doc: str, sources: int = 2, **facts: Any) -> InstructionSpec:
    facts |= {"modifiers": _LOGIC, "sat": False, "flags": True, "low_bits": True}
    return _alu(name, f"Bitwise {doc}", INTEGERS, sources, check=_flags_or_none, **facts)


def _shift(name: str, doc: str, types: tuple[str, ...] = INTEGERS, **facts: Any) -> InstructionSpec:
    return _alu(name, doc, types, 2, sat=False, modifiers=("-",), identity=(0, "same"), **facts)


# Legal integer results.


def _sum(*spans: Span) -> Span:
    return sum(low for low, _ in spans), sum(high for _, high in spans)


_SUM: dict[str, Any] = {"commutes": True, "identity": (0, "any"), "low_bits": True, "interval": _sum}


def _product(a: Span, b: Span, c: Span = (0, 0)) -> Span:
    products = [x * y for x, y in product(a, b)]
    return _sum((min(products), max(products)), c)


def _no_wide_product(inst: Instruction, target: Target) -> Problem:
    wide = [t for t in source_types(inst)[:2] if t in ("q", "uq")]
    if wide:
        return (f"cannot multiply {wide[0]}", "multiply its 32-bit halves")
    return None


_multiplied = all_of(_one_kind, _no_wide_product)

_summed_product = all_of(_multiplied, _sums_of_floats_saturate)

_PRODUCT: dict[str, Any] = {"check": _multiplied, "low_bits": True, "interval": _product}


def _chosen(*sources: Span) -> Span:
    return min(low for low, _ in sources), max(high for _, high in sources)


_ORDERED: dict[str, Any] = {"ordered": True, "interval": _chosen}

_ROTATED = ("uw", "w", "ud", "d", "uq", "q")


def _rotated(inst: Instruction, target: Target) -> Problem:
    widths = {TYPES[t].bits for t in (source_types(inst)[0], inst["dst"].var.type)}
    if len(widths) > 1:
        return ("has a result as wide as `src0`",)
    if not target.long_rotation and 64 in {TYPES[t].bits for t in source_types(inst)}:
        return (f"of 64 bits is not supported by target '{target.name}'",)
    return None


def _with_carry(name: str, doc: str) -> InstructionSpec:
    slots = (
        _dst(("ud",)),
        OperandSpec("carry", "dst", "write", ("ud",)),
        _src("src0", ("ud",)),
        _src("src1", ("ud",)),
    )
    return InstructionSpec(name, doc, f"{name} {{exec}} {{dst}} {{carry}} {{src0}} {{src1}}", slots, guard=True)


FIELDS = {"b32": 32, "b16v2": 16, "b8v4": 8}
"""The widths of the fields of lfsr."""


def _side_by_side(inst: Instruction, target: Target) -> Problem:
    sources = [source for source in inst.sources if isinstance(source, Region)]
    plain = all((s.vstride, s.width, s.hstride) in ((1, 1, 0), (0, 1, 0)) for s in sources)
    if inst["dst"].stride != 1 or not plain:
        return ("has a result of stride 1, and sources <1;1,0> or <0;1,0>", "IGC 2.40")
    return None


TABLE = 16
"""Entries of the table of shfl_idx4."""


def _check_shuffle(inst: Instruction, target: Target) -> Problem:
    table, index = inst["src0"], inst["src1"]
    region = (1, 1, 0) if inst.exec_size == TABLE else (0, 16, 1)
    if (table.vstride, table.width, table.hstride) != region or table.col:
        region_text = "<1;1,0>" if inst.exec_size == TABLE else "<0;16,1>"
        return (f"has a table {region_text} that begins at a register", "IGC 2.40")
    stride = 4 // index.var.format.bytes
    if (index.vstride, index.width, index.hstride) != (stride, 1, 0) or index.col >= stride:
        return (
            f"has indices <{stride};1,0> of {index.var.type}, from one of the first {stride} elements on",
            "IGC 2.40",
        )
    return None


def _shuffled(inst: Instruction, target: Target) -> int:
    return 4 * inst.exec_size


def _with_special(name: str, doc: str, sources: int) -> InstructionSpec:
    """A function whose special results a predicate marks."""
    names = [f"src{n}" for n in range(sources)]
    slots = (
        _dst(("f", "df")),
        OperandSpec("special", "flag", "write"),
        *(_src(n, ("f", "df"), _ARITHMETIC) for n in names),
    )
    form = f"{name} {{exec}} {{dst}} {{special}} " + " ".join(f"{{{n}}}" for n in names)
    doc += "; `special` is set where that is a NaN, an infinity or a zero."
    check = all_of(_one_kind, _double_math)
    return InstructionSpec(name, doc, form, slots, category="math", guard=True, check=check)


def _upper_half(inst: Instruction, target: Target) -> Destination:
    """The destination of madw's upper halves: the registers after those of the lower halves."""
    dst = inst["dst"]
    return Destination(dst.var, dst.row + -(-4 * inst.exec_size // target.grf_bytes), 0, 1)


def _check_madw(inst: Instruction, target: Target) -> Problem:
    dst = inst["dst"]
    start = dst.var.root[1] + first_byte(dst, target.grf_bytes)
    aligned = align_bytes(dst.var.root[0].align, target.grf_bytes) >= target.grf_bytes
    if dst.stride != 1 or start % target.grf_bytes or not aligned:
        return ("has a result that begins at a register, of stride 1", "MADW.md: dst must be GRF aligned")
    end_byte = first_byte(_upper_half(inst, target), target.grf_bytes) + 4 * inst.exec_size
    if end_byte > dst.var.bytes:
        return (f"writes upper halves up to byte {end_byte} of '{dst.var.name}', which has {dst.var.bytes}",)
    if len({*_types(inst)}) > 1:
        return ("has operands of one type",)
    return None


ARITHMETIC = (
    InstructionSpec(
        "srnd",
        "Rounds `src0` stochastically, with the random bits `src1`.",
        "srnd {exec} {dst} {src0} {src1}",
        (
            _dst(("hf", "ub")),
            OperandSpec("src0", "src", types=("f", "hf")),
            OperandSpec("src1", "src", types=("f", "hf"), immediate=True),
        ),
        no_mask_only=lambda inst: True,
        check=_check_srnd,
        on_bits=True,
        source="SRND.md",
    ),
    InstructionSpec(
        "fcvt",
        "Converts between hf and bf8 (held in ub), or f to tf32 (held in ud).",
        "fcvt {exec} {dst} {src0}",
        (_dst(("ub", "hf", "ud")), OperandSpec("src0", "src", types=("hf", "ub", "f"))),
        no_mask_only=lambda inst: inst["dst"].var.type == "ub",
        check=_check_fcvt,
        on_bits=True,
        source="FCVT.md",
    ),
    InstructionSpec(
        "mov",
        "Copies `src0`, converted to the type of `dst`; or a predicate's bits.",
        "mov{sat} {exec} {dst} {src0}",
        (
            OperandSpec("dst", "dst", "write", _ALL, indirect=True, addresses=True),
            _src("src0", _ALL, _ARITHMETIC, flags=True, all_bits=True, indirect=True),
        ),
        guard=True,
        check=_check_mov,
        low_bits=True,
        copies=True,
    ),
    _alu("add", "`src0 + src1`.", _ALL, 2, **_SUM),
    _alu(
        "add3",
        "`src0 + src1 + src2`.",
        ("d", "ud", "w", "uw"),
        3,
        low_bits=True,
        interval=_sum,
    ),
    _alu("mul", "`src0 * src1`.", _ALL, 2, commutes=True, identity=(1, "any"), zero=True, **_PRODUCT),
    _alu("mulh", "The upper 32 bits of the 64-bit product of `src0` and `src1`.", ("ud", "d"), 2, sat=False),
    _with_carry("addc", "`src0 + src1`; `carry` is 1 where the sum has more than 32 bits, else 0."),
    _with_carry("subb", "`src0 - src1`; `carry` is 1 where `src1` is the greater, else 0."),
    _alu("mad", "`src0 * src1 + src2`, of floats rounded once.", _ALL, 3, **{**_PRODUCT, "check": _summed_product}),
    InstructionSpec(
        "madw",
        "`src0 * src1 + src2` of 64 bits: the lower halves, and in the registers behind them the upper halves.",
        "madw {exec} {dst} {src0} {src1} {src2}",
        (_dst(("ud", "d")), *(_src(f"src{n}", ("ud", "d"), _ARITHMETIC) for n in range(3))),
        guard=True,
        check=_check_madw,
        second=_upper_half,
        source="MADW.md",
    ),
    _alu("avg", "The average of `src0` and `src1`, halves rounded up.", ("ub", "b", "uw", "w", "ud", "d"), 2),
    _alu("lrp", "`src0 * src1 + src2 * (1 - src0)`.", ("f",), 3),
    InstructionSpec(
        "lfsr",
        "The next state of a Galois shift register with the polynomial `src1`, or of those in fields of 16 or 8 bits.",
        "lfsr.{fields} {exec} {dst} {src0} {src1}",
        (_dst(("ud",)), OperandSpec("src0", "src", types=("ud",)), _src("src1", ("ud",))),
        {"fields": KeywordAttribute(tuple(FIELDS))},
        guard=True,
        check=_side_by_side,
        source="IGC 2.40",
    ),
    InstructionSpec(
        "shfl_idx4",
        "Each part of a dword from the table `src0`, by the 4 bits of `src1` for it: halves with ub, bytes with uw.",
        "shfl_idx4 {exec} {dst} {src0} {src1}",
        (
            OperandSpec("dst", "raw", "write", ("ud",), bytes=_shuffled),
            OperandSpec("src0", "src", types=("ud",)),
            OperandSpec("src1", "src", types=("ub", "uw")),
        ),
        guard=True,
        exec_sizes=(16, 32),
        check=_check_shuffle,
        source="IGC 2.40",
    ),
    _math("div", "`src0 / src1`.", 2, _MATH_DOUBLE),
    _math("divm", "`src0 / src1`, correctly rounded.", 2, ("f", "df")),
    _math("sqrtm", "The square root of `src0`, correctly rounded.", 1, ("f", "df")),
    _with_special("invm", "`src0 / src1`, which a library function refines", 2),
    _with_special("rsqtm", "`1 / sqrt(src0)`, which a library function refines", 1),
    _math("pow", "`abs(src0)` to the power of `src1`.", 2),
    _math("tanh", "The hyperbolic tangent of `src0`."),
    _math("sigm", "`1 / (1 + exp(-src0))`, the logistic function."),
    _math("inv", "`1 / src0`.", 1, _MATH_DOUBLE),
    _math("sqrt", "The square root of `src0`.", 1, _MATH_DOUBLE),
    _math("rsqrt", "`1 / sqrt(src0)`."),
    _math("exp", "2 to the power of `src0`."),
    _math("log", "The logarithm of `src0` to the base 2."),
    _math("sin", "The sine of `src0` in radians."),
    _math("cos", "The cosine of `src0` in radians."),
    _alu("min", "The smaller of `src0` and `src1`; of a number and a NaN the number.", _WITHOUT_BF, 2, **_ORDERED),
    _alu("max", "The greater of `src0` and `src1`; of a number and a NaN the number.", _WITHOUT_BF, 2, **_ORDERED),
    _alu("frc", "`src0` less the greatest integral value below it.", ("f",), 1, sat=False),
    _alu("rndd", "`src0` rounded down to an integral value.", ("f",), 1),
    _alu("rndu", "`src0` rounded up to an integral value.", ("f",), 1),
    _alu("rnde", "`src0` rounded to the nearest integral value, halves to the even one.", ("f",), 1),
    _alu("rndz", "`src0` rounded toward zero to an integral value.", ("f",), 1),
    _logic("and", "`src0 & src1`, of integers or predicates.", commutes=True, identity=(-1, "narrower"), zero=True),
    _logic("or", "`src0 | src1`, of integers or predicates.", commutes=True, identity=(0, "narrower")),
    _logic("xor", "`src0 ^ src1`, of integers or predicates.", commutes=True, identity=(0, "narrower")),
    _logic("not", "`~src0`, of an integer or predicate.", 1),
    InstructionSpec(
        "bfn",
        "For each bit the bit of `function` of number `src0 + 2 * src1 + 4 * src2`, by the bits of the sources.",
        "bfn.x{function} {exec} {dst} {src0} {src1} {src2}",
        (_dst(("d", "ud", "w", "uw")), *(_src(f"src{i}", ("d", "ud", "w", "uw")) for i in range(3))),
        {"function": ByteAttribute()},
        guard=True,
        low_bits=True,
        check=_one_kind,
    ),
    _alu(
        "bfe",
        "The `src0` bits of `src2` from bit `src1` on, both modulo 32, with the sign of the highest of them if signed.",
        ("ud", "d"),
        3,
        sat=False,
        modifiers=(),
        check=_fields,
    ),
    _alu(
        "bfi",
        "`src3`, in which the lowest `src0` bits of `src2` stand from bit `src1` on, both modulo 32.",
        ("ud", "d"),
        4,
        sat=False,
        modifiers=(),
        low_bits=True,
    ),
    _alu(
        "dp4a",
        "`src0` plus the products of the four bytes of `src1` and those of `src2`, signed or not by their types.",
        ("ud", "d"),
        3,
        modifiers=(),
    ),
    _alu("bfrev", "The bits of `src0` in reverse order.", ("ud", "d"), 1, sat=False, modifiers=()),
    _alu(
        "fbl",
        "The number of the lowest set bit of `src0`; of 0, all ones.",
        ("ud",),
        1,
        sat=False,
        modifiers=(),
    ),
    _alu("cbit", "How many bits of `src0` are set.", ("ud", "uw", "ub"), 1, sat=False, modifiers=()),
    _alu("lzd", "How many zeros are above the highest bit of `src0` that is set.", ("ud",), 1, sat=False, modifiers=()),
    # IGC 2.40 prints negated counts, and leaves the sign out of its native code.
    _shift("rol", "The bits of `src0`, rotated left by `src1`.", types=_ROTATED, check=_rotated),
    _shift("ror", "The bits of `src0`, rotated right by `src1`.", types=_ROTATED, check=_rotated),
    _shift(
        "shl",
        "`src0` shifted left by the lowest bits of `src1`: 6 where `dst` or `src0` has 64 bits, else 5.",
        low_bits=True,
    ),
    _shift("shr", "`src0` shifted right by the lowest bits of `src1`, zeros shifted in."),
    _shift("asr", "`src0` shifted right by the lowest bits of `src1`, its sign shifted in.", **_ORDERED),
    InstructionSpec(
        "cmp",
        "Compares `src0` with `src1`; `dst` gets a bit a lane, or all bits of an element.",
        "cmp.{condition} {exec} {dst} {src0} {src1}",
        (_dst(INTEGERS + FLOATS, flags=True), _src("src0", _ALL, _ARITHMETIC), _src("src1", _ALL, _ARITHMETIC)),
        {"condition": _CONDITIONS},
        check=all_of(_compared, _brain),
        **_ORDERED,
    ),
    _alu(
        "sel",
        "`src0` in the lanes of the predicate that are set, else `src1`.",
        _ALL,
        2,
        check=all_of(_same_kind, _brain),
        copies=True,
        selects=True,
    ),
    InstructionSpec(
        "addr_add",
        "The place of a variable, or an address, `src0`, plus the bytes `src1`.",
        "addr_add {exec} {dst} {src0} {src1}",
        (
            OperandSpec("dst", "dst", "write", ("ud",), addresses=True),
            OperandSpec("src0", "place", addresses=True),
            _src("src1", ("uw", "w", "ud", "d")),
        ),
        category="address",
        check=_addresses,
        low_bits=True,
        source="IGC 2.40",
    ),
    InstructionSpec(
        "faddr",
        "The address of the function or constant `symbol`.",
        "faddr {symbol} {dst}",
        (_dst(("uq", "q", "ud", "d")),),
        {"symbol": SymbolAttribute(quoted=True)},
        category="address",
        exec_sizes=(),
        all_lanes=True,
        source="IGC 2.40",
    ),
    InstructionSpec(
        "setp",
        "Sets the predicate `dst` to the lowest bits of the scalar `src0`.",
        "setp {exec} {dst} {src0}",
        (OperandSpec("dst", "flag", "write"), _src("src0", ("uw", "w", "ud", "d"))),
    ),
)


# Barriers and control flow, of the table of instructions.

_LABEL = {"label": LabelAttribute()}

_REGISTERS = {"sent": IntegerAttribute(tuple(range(33))), "received": IntegerAttribute(tuple(range(33)))}


def _byte(name: str) -> OperandSpec:
    return OperandSpec(name, "src", types=("ub",), immediate=True)


def _barrier(name: str, doc: str, *operands: str, **facts: object) -> InstructionSpec:
    form = " ".join([name, *(f"{{{operand}}}" for operand in operands)])
    facts |= {"category": "sync", "exec_sizes": (), "source": "finalizer", "named_barrier": "id" in operands}
    return InstructionSpec(name, doc, form, tuple(map(_byte, operands)), **facts)  # type: ignore[arg-type]


CONTROL = (
    _barrier("barrier", "Waits until all threads of the workgroup have arrived.", barrier="both"),
    _barrier("sbarrier.signal", "Signals arrival at the workgroup's barrier without waiting.", barrier="signal"),
    _barrier("sbarrier.wait", "Waits until all threads of the workgroup have signalled.", barrier="wait"),
    _barrier(
        "nbarrier.signal",
        "Signals the arrival of one of `count` threads at the named barrier `id`, without waiting.",
        "id",
        "count",
        barrier="signal",
    ),
    _barrier("nbarrier.wait", "Waits until all threads of the named barrier `id` have arrived.", "id", barrier="wait"),
    InstructionSpec(
        LABEL,
        "Defines a label, the target of jumps.",
        "label {label}",
        attributes=_LABEL,
        category="control",
        exec_sizes=(),
    ),
    InstructionSpec(
        "jmp",
        "Jumps to the label with all enabled lanes if the predicate's first bit, any bit, or all its bits are set.",
        "jmp {exec} {label}",
        attributes=_LABEL,
        category="control",
        guard=True,
        exec_sizes=(1,),
        jumps=True,
        uniform=True,
    ),
    InstructionSpec(
        "goto",
        "Lanes whose predicate is set jump to the label, where they reconverge with the other lanes; with execution "
        "size 1, all enabled lanes or none, by the predicate's first bit.",
        "goto {exec} {label}",
        attributes=_LABEL,
        category="control",
        guard=True,
        jumps=True,
    ),
    InstructionSpec(
        "ret",
        "Ends the enabled lanes; with its last lane the thread ends. In a subroutine they return to the caller.",
        "ret {exec}",
        category="control",
        ends=True,
    ),
    InstructionSpec(
        "call",
        "The enabled lanes run the subroutine at the label until its `ret`.",
        "call {exec} {label}",
        attributes=_LABEL,
        category="control",
        guard=True,
        source="IGC 2.40",
        calls=True,
    ),
    InstructionSpec(
        "fcall",
        "The enabled lanes run the function `callee`, of `sent` registers of arguments and `received` of results.",
        "fcall {exec} {callee} {sent} {received}",
        attributes={"callee": SymbolAttribute(), **_REGISTERS},
        category="control",
        guard=True,
        source="IGC 2.40",
        calls=True,
    ),
    InstructionSpec(
        "ifcall",
        "The enabled lanes run the function whose address is `src0`, until its `fret`.",
        "ifcall{uniform} {exec} {src0} {sent} {received}",
        (_src("src0", ("uq", "q", "ud", "d")),),
        {"uniform": SuffixAttribute(("uniform",)), **_REGISTERS},
        category="control",
        guard=True,
        source="IGC 2.40",
        calls=True,
    ),
    InstructionSpec(
        "fret",
        "The enabled lanes return from a function to its caller.",
        "fret {exec}",
        category="control",
        source="IGC 2.40",
        ends=True,
    ),
)


# Products of matrices, of the table of instructions.


def _matrix(name: str, operand_kind: OperandKind, matrix_index: int, types: tuple[str, ...]) -> OperandSpec:
    """B in src1, or A in src2."""

    def size(inst: Instruction, target: Target) -> int:
        return operand_bytes(inst["W"], inst["A"], inst["SD"], inst["RC"], inst.exec_size)[matrix_index]

    return OperandSpec(name, operand_kind, types=types, bytes=size)


def _accumulator(name: str, use: Use, types: tuple[str, ...]) -> OperandSpec:
    """The result or the accumulator; each lane holds one column."""

    def size(inst: Instruction, target: Target) -> int:
        return int(inst["RC"] * inst.exec_size * inst[name].var.format.bytes)

    def columns(inst: Instruction, target: Target) -> Array:
        rows = np.arange(size(inst, target)).reshape(inst["RC"], inst.exec_size, -1)
        return rows.transpose(1, 0, 2).reshape(inst.exec_size, -1)

    return OperandSpec(name, "raw", use, types, null=use == "read", bytes=size, lane_bytes=columns)


def precision_problem(target: Target, *precisions: str) -> Problem:
    """Why a target's dpas does not multiply numbers of these precisions."""
    for precision in precisions:
        if precision not in target.dpas_precisions:
            supported = ", ".join(target.dpas_precisions)
            return (f"target '{target.name}' does not support precision {precision}", f"it supports {supported}")
    return None


def _check_dpas(inst: Instruction, target: Target) -> Problem:
    w, a = inst["W"], inst["A"]
    unsupported = precision_problem(target, w, a)
    if unsupported:
        return unsupported
    if inst["SD"] not in target.dpas_depths:
        depths = ", ".join(map(str, target.dpas_depths))
        return (f"target '{target.name}' supports systolic depth {depths}, but got {inst['SD']}",)
    if inst.exec_size not in target.dpas_exec_sizes:
        sizes = " and ".join(map(str, target.dpas_exec_sizes))
        return (f"target '{target.name}' supports execution size {sizes}, but got {inst.exec_size}",)
    dst, acc = inst["dst"].var.type, inst["src0"].var
    problem = types_problem(w, a, dst, acc.type if acc else dst)
    if problem:
        return (problem, "DPAS.md, legal combinations of types and precisions")
    if not target.dpas_half_accumulators and {dst, acc.type if acc else dst} & {"bf", "hf"}:
        return (f"target '{target.name}' supports only f accumulators for {w}",)
    for name in ("src1", "src2"):
        if (inst[name].var.type == "df") != (w == "df"):
            return (f"{name} of precision {w} must be of type {'df' if w == 'df' else 'd or ud'}",)
    for name in ("dst", "src0", "src1"):
        raw: Raw = inst[name]
        if raw.offset % target.grf_bytes:
            return (f"{name} must begin at a register, but is {raw.offset} bytes behind one", "DPAS.md, alignment")
    row = operand_bytes(w, a, inst["SD"], 1, inst.exec_size)[1]
    alignment = max(row, 4) if PRECISIONS[a].bits < 64 else target.grf_bytes
    start = first_byte(inst["src2"], target.grf_bytes)
    if start % alignment:
        return (f"src2 must begin at a multiple of {alignment} bytes, but is at {start}", "DPAS.md, alignment")
    return None


_DPAS = InstructionSpec(
    "dpas",
    "Multiplies matrix A in `src2` by B in `src1` and adds the accumulator `src0`.",
    "dpas.{W}.{A}.{SD}.{RC} {exec} {dst} {src0} {src1} {src2}",
    (
        _accumulator("dst", "write", ("d", "ud", "f", "bf", "hf", "df")),
        _accumulator("src0", "read", ("d", "ud", "f", "bf", "hf", "df")),
        _matrix("src1", "raw", 0, ("d", "ud", "df")),
        _matrix("src2", "vector", 1, ("d", "ud", "df")),
    ),
    {
        "W": KeywordAttribute(tuple(PRECISIONS)),
        "A": KeywordAttribute(tuple(PRECISIONS)),
        "SD": IntegerAttribute((1, 2, 4, 8)),
        "RC": IntegerAttribute(tuple(range(1, 9))),
    },
    category="dpas",
    exec_sizes=(8, 16),
    all_lanes=True,
    check=_check_dpas,
    source="DPAS.md",
)


def _scales(name: str, matrix_index: int) -> OperandSpec:
    """The scales of B in src3, or of A in src4. Bytes between the scales of two blocks are not read."""

    def size(inst: Instruction, target: Target) -> int:
        return scale_bytes(inst["W"], inst["A"])[matrix_index]

    def blocks(inst: Instruction, target: Target) -> Array:
        scale_offsets = np.arange(0, size(inst, target), SCALE_GROUP)[:, None] + np.arange(
            (COLUMNS, ROWS)[matrix_index]
        )
        return scale_offsets.reshape(1, -1)

    return OperandSpec(name, "vector", types=("ub",), null=True, bytes=size, lane_bytes=blocks)


def _check_bdpas(inst: Instruction, target: Target) -> Problem:
    w, a, dst, acc = inst["W"], inst["A"], inst["dst"].var.type, inst["src0"].var
    problem = scaled_types_problem(w, a, dst, acc.type if acc else dst)
    if problem:
        return (problem, "both factors must be bf, hf or e2m1, or 8-bit floats (bf8, hf8)")
    for name, granule in (("src3", 16), ("src4", 8)):
        var = inst[name].var
        if not isinstance(var, Variable):
            continue
        root, offset = var.root
        grf_offset = (offset + first_byte(inst[name], target.grf_bytes)) % target.grf_bytes
        # The scales of the second block of e2m1 are in the second half of the register.
        limit = target.grf_bytes // 2 if w == "e2m1" else target.grf_bytes
        if grf_offset % granule or grf_offset >= limit:
            legal_offsets = ", ".join(map(str, range(0, limit, granule)))
            return (f"{name} must begin at byte {legal_offsets} of a register, not at {grf_offset}",)
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
        _accumulator("dst", "write", ("f", "bf", "hf")),
        _accumulator("src0", "read", ("f", "bf", "hf")),
        _matrix("src1", "raw", 0, ("ud", "bf", "hf")),
        _matrix("src2", "raw", 1, ("ud", "bf", "hf")),
        _scales("src3", 0),
        _scales("src4", 1),
    ),
    {
        "W": KeywordAttribute(SCALED_PRECISIONS),
        "A": KeywordAttribute(SCALED_PRECISIONS),
        "SD": IntegerAttribute((8,)),
        "RC": IntegerAttribute((8,)),
    },
    category="dpas",
    exec_sizes=(16,),
    all_lanes=True,
    check=_check_bdpas,
    source="Intel Graphics Compiler, visa/",
)

MATRIX = (_DPAS, _BDPAS)


# The table of instructions.

INSTRUCTIONS = {spec.name: spec for spec in (*MATRIX, *ARITHMETIC, *MEMORY, *OLDER, *CONTROL)}
"""The instructions by vISA's names."""
