"""The coverage table of random programs: each op and attribute value of the dialects, by element type.

Rows and columns are read from the dialects' declarations. A second table has MLIR's own ops, which are those that the
reference evaluates, and their forms, in kernels of threads and of work items. Cells that no program can reach are in
`IMPOSSIBLE`, with the reason.
"""

from __future__ import annotations

import importlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import fields
from functools import cache, lru_cache
from random import Random
from typing import Any

from mlir import ir

import xegpu_py
from xegpu_py.dialects import iree_vector_ext, tt, xegpu, xetile
from xegpu_py.dialects.xegpu.matrix_ops import WIDE_FLOATS, accumulators
from xegpu_py.dialects.xegpu.types import CHUNK_SIZES, TdescAttr, TensorDesc
from xegpu_py.dialects.xetile.types import Tile, TileAttr
from xegpu_py.ir.builtin import bit_width, is_float
from xegpu_py.ir.codecs import BoolCodec, NumberCodec, WordCodec
from xegpu_py.ir.definition import EnumCodec
from xegpu_py.ir.module import walk
from xegpu_py.ir.operation import AttributeField, Operation
from xegpu_py.reference.machine import RULES

from . import upstream
from .core import CONTRACTIONS, dimensions
from .ops import FLOATS, NARROW, NUMBERS, STORED
from .program import Program

DIALECTS = (xegpu.XeGPU, xetile.XeTile, iree_vector_ext.IreeVectorExt)
ELEMENTS = (*NUMBERS, *STORED, *NARROW)
"""The columns: elements of memory of which generators write programs."""
NONE = "-"
"""The column of ops that have no element."""
MODES = ("vc", "simt")
"""The columns of MLIR's own ops: kernels of threads, and of work items."""

_DOMAINS: dict[str, tuple[int, ...]] = {
    "vnni_axis": (0, 1),
    "transpose_bit_width": (8, 16, 32, 64),
    "array_length": (1, 2, 4),
    "chunk_size_per_lane": CHUNK_SIZES,
    "memory_space": (0, 3),
}
"""The values of attributes that are declared as any integer."""

_OURS = ("xegpu.", "xetile.", "iree_vector_ext.", "builtin.")
_SETTINGS = {"!xegpu.tensor_desc": TdescAttr, "!xetile.tile": TileAttr}


def values_of(kind: Any, name: str) -> tuple[str, ...]:
    """The values of an attribute that are told apart."""
    if isinstance(kind, EnumCodec):
        return tuple(str(case.value) for case in kind.cases)
    if hasattr(kind, "cases"):
        return tuple(case.name for case in kind.cases)
    if isinstance(kind, BoolCodec):
        return ("true", "false")
    if isinstance(kind, WordCodec):
        return kind.words
    if isinstance(kind, NumberCodec):
        return tuple(map(str, kind.numbers))
    return tuple(map(str, _DOMAINS.get(name, ("given",))))


def value_text(kind: Any, name: str, value: Any) -> str:
    """Which of its values an attribute has."""
    if value is None:
        return "none"
    known = values_of(kind, name)
    if known == ("given",):
        return "given"
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, (str, int)) or hasattr(value, "value"):
        text = str(value.value)
        return text if text in known else str(value.name)
    return str(value)


_OF_XEVM = "message"
"""The field of descriptors that only imported kernels of XeVM have: `test_memory` has random surfaces for their messages."""


@lru_cache(maxsize=1)
def rows() -> tuple[str, ...]:
    """The rows: ops, and their attributes' values; types' settings."""
    found: list[str] = []
    for dialect in DIALECTS:
        for cls in dict.fromkeys(dialect.operations.values()):
            found.append(cls.OPERATION_NAME)
            for name, field in cls.spec.attributes.items():
                found += [f"{cls.OPERATION_NAME} {name} = {v}" for v in _field_values(name, field)]
    for head, cls in _SETTINGS.items():
        for field in fields(cls):
            if field.name == _OF_XEVM:
                continue
            kind = cls.parameters()[field.name]
            values = values_of(kind, field.name)
            found += [f"{head} {field.name} = {v}" for v in (*values, *(["none"] if field.default is None else []))]
    found += [
        f"upstream {level} {what}" for level, ops in upstream.WRITTEN.items() for what in (*ops, "block of rank 4")
    ]
    found += [f"arith.constant NaN = {name}" for name in NANS]
    found += sorted(cls.OPERATION_NAME for cls in set(tt.Tt.operations.values()))
    return (*found, *(f"xegpu.create_nd_tdesc source = {name}" for name in SOURCES))


_AFFINE = ("apply", "for", "if", "load", "max", "min", "parallel", "store", "vector_load", "vector_store")
_TRANSFERS = ("of no dimension", "out of bounds", "masked", "in vector.mask", "transposed", "broadcast")
SOURCES = ("subview", "strided memref", "rank 4")
"""What blocks are parts of, besides arguments and addresses."""
LOOPS = ("index", "i8", "i16", "i32", "i64")


@lru_cache(maxsize=1)
def own_rows() -> tuple[str, ...]:
    """The rows of the second table: MLIR's own ops, and forms of them."""
    names = {f"affine.{name}" for name in _AFFINE} | {name for name in RULES if not name.startswith(_OURS)}
    with xegpu_py.parse("module {}").context as context:
        # Ops of other versions of MLIR are not read.
        found = sorted(name for name in names if context.is_registered_operation(name))
    found += [f"arith on {e}" for e in (*NUMBERS, *NARROW, "i1", "index")]
    found += [f"scf.for of {e} whose bounds are far apart" for e in LOOPS]
    found += [f"vector.transfer_{way} {how}" for way in ("read", "write") for how in _TRANSFERS]
    found += [f"vector.contract {form}" for form in CONTRACTIONS]
    found += [f"{name} of {n} dimensions" for name in ("grid", "block") for n in (1, 2, 3)]
    found += [f"fragments of {n} lanes" for n in (8, 16, 32)]
    return (*found, "lanes without access read as zero")


def _field_values(name: str, field: AttributeField) -> tuple[str, ...]:
    if name.startswith("static_") or name == "operandSegmentSizes":
        return ()
    none = () if field.required or field.default is not None else ("none",)
    return (*values_of(field.codec, name), *none)


def cells(program: Program) -> set[str]:
    """The cells that a program reaches, as `row | element`."""
    if program.is_assembly:
        return set()
    if program.upstream:
        return set(_upstream_cells(program))
    module = program.module(verify=False)
    if "tt.func" in program.text:
        return {f"{op.name} | {NONE}" for op in walk(module.operation) if op.name.startswith("tt.")}
    mode = "simt" if "xegpu.subgroup_size" in program.text else "vc"
    return {*_cells(module), *(f"{row} | {mode}" for row in _own_cells(module, program))}


def _own_cells(module: Any, program: Program) -> Iterator[str]:
    known = own_rows()
    numbers = [int(w.partition(":")[2]) if re.fullmatch(r"i\d+:-?\d+", w) else None for w in program.arguments]
    for name, size in (("grid", program.grid), ("block", program.block)):
        yield f"{name} of {max((i + 1 for i, n in enumerate(size) if n > 1), default=1)} dimensions"
    for rows_, columns in re.findall(r"wi_layout = \[(\d+), (\d+)\]", program.text):
        yield f"fragments of {int(rows_) * int(columns)} lanes"
    for op in walk(module.operation):
        name = op.name
        if name in known:
            yield name
        if name.startswith("arith.") and op.operands:
            yield f"arith on {_element(str(op.operands[0].type))}"
        elif name == "scf.for":
            low, high = (_number(v, numbers) for v in list(op.operands)[:2])
            kind = str(op.operands[0].type)
            bits = 64 if kind == "index" else bit_width(kind)
            if low is not None and high is not None and abs(high - low) >= 1 << (bits - 1):
                yield f"scf.for of {kind} whose bounds are far apart"
        elif name in ("vector.transfer_read", "vector.transfer_write"):
            yield from (f"{name} {how}" for how in _forms_of_transfer(op))
        elif name == "vector.contract":
            maps = [[e.position for e in m.value.results] for m in ir.ArrayAttr(op.attributes["indexing_maps"])]
            yield from (f"{name} {form}" for form in CONTRACTIONS if dimensions(form) == maps)
        elif name == "xegpu.load_gather" and any(use.owner.name != "arith.select" for use in op.results[0].uses):
            yield "lanes without access read as zero"


def _number(value: ir.Value, arguments: Sequence[int | None]) -> int | None:
    """The number that a value is: a constant, or an argument of the kernel."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return arguments[ir.BlockArgument(value).arg_number] if owner.owner.name == "gpu.func" else None
    return ir.IntegerAttr(owner.attributes["value"]).value if owner.name == "arith.constant" else None


def _forms_of_transfer(op: ir.Operation) -> Iterator[str]:
    results = op.attributes["permutation_map"].value.results
    dims = [e.position if isinstance(e, ir.AffineDimExpr) else None for e in results]
    known = [d for d in dims if d is not None]
    *_, masked = ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])
    yield from (
        ["of no dimension"] * (not dims) + ["transposed"] * (known != sorted(known)) + ["broadcast"] * (None in dims)
    )
    yield from ["masked"] * masked + ["in vector.mask"] * (op.parent.name == "vector.mask")
    if any(not ir.BoolAttr(b).value for b in ir.ArrayAttr(op.attributes["in_bounds"])):
        yield "out of bounds"


def nan_of(element: str, bits: int) -> str | None:
    """Which NaN other than the canonical one a bit pattern is."""
    mantissa = {"f8E5M2": 2, "f8E4M3FN": 3, "bf16": 7, "f16": 10, "f32": 23, "f64": 52}[element]
    sign, rest = bits >> bit_width(element) - 1, bits & (1 << bit_width(element) - 1) - 1
    infinity = (1 << bit_width(element) - 1) - (1 << mantissa)
    if element == "f8E4M3FN":
        return "negative" if sign and rest == 0x7F else None
    if rest <= infinity:
        return None
    if not rest & 1 << mantissa - 1:
        return "signaling"
    return "payload" if rest & (1 << mantissa - 1) - 1 else "negative" if sign else None


NANS = ("negative", "signaling", "payload")
"""NaNs that are not the canonical one."""


def _upstream_cells(program: Program) -> Iterator[str]:
    """An op of a level, and each element in its types; blocks of memrefs of four dimensions."""
    for line in program.text.splitlines():
        op = re.search(r"\b(?:xegpu|vector|scf)\.\w+", line)
        if op is None:
            continue
        found = [op[0]] if op[0] in upstream.WRITTEN[program.upstream] else []
        if op[0] == "xegpu.create_nd_tdesc" and re.search(r" : memref<(\d+x){4}\w+> -> ", line):
            found.append("block of rank 4")
        for element in dict.fromkeys(re.findall(r"(?:x|\b)(b?f\d+(?:E\d\w+)?|i\d+)\b", line[op.end() :])):
            yield from (f"upstream {program.upstream} {what} | {element}" for what in found)


def _cells(module: Any) -> Iterator[str]:
    for op in walk(module.operation):
        view = op.opview
        if op.name == "arith.constant" and (
            nan := re.search(r"0x(\w+).* : (?:vector<.*x)?(\w+)>?$", str(op.attributes["value"]))
        ):
            kind = nan_of(nan[2], int(nan[1], 16)) if nan[2] in FLOATS else None
            yield from [f"arith.constant NaN = {kind} | {nan[2]}"] * bool(kind)
        if not isinstance(view, Operation) or view.dialect_class not in DIALECTS:
            continue
        element = element_of(op)
        found = [op.name]
        if op.name == "xegpu.create_nd_tdesc":
            found += [f"{op.name} source = {kind}" for kind in _sources(op.operands[0])]
        for name, field in view.spec.attributes.items():
            if _field_values(name, field):
                found.append(f"{op.name} {name} = {value_text(field.codec, name, getattr(view, name))}")
        yield from (f"{row} | {element}" for row in found)
        for value in op.results:
            for head, cls in ((h, c) for h, c in _SETTINGS.items() if str(value.type).startswith(h)):
                attr = (TensorDesc if cls is TdescAttr else Tile).of(value).attr
                for field in fields(cls):
                    text = value_text(cls.parameters()[field.name], field.name, getattr(attr, field.name))
                    yield f"{head} {field.name} = {text} | {element}"


def _sources(value: ir.Value) -> Iterator[str]:
    """What a block is a part of."""
    if "strided<" in str(value.type):
        yield "strided memref"
    while str(value.type).startswith("memref<"):
        if ir.MemRefType(value.type).rank >= 4:
            yield "rank 4"
        if isinstance(value.owner, ir.Block) or not value.owner.operands:
            return
        if value.owner.name == "memref.subview":
            yield "subview"
        value = value.owner.operands[0]


def element_of(op: ir.Operation) -> str:
    """The element that an op works on: that of its descriptor or tile, or of its first vector; a factor's for dpas."""
    view: Any = op.opview
    if op.name == "xegpu.dpas":
        return _element(str(view.lhs.type))
    kinds = [str(v.type) for v in (*op.operands, *op.results)]
    for head in ("!xegpu.tensor_desc", "!xetile.tile", "vector<"):
        for kind in kinds:
            if kind.startswith(head):
                return _element(kind)
    return NONE


def _element(kind: str) -> str:
    if kind.startswith("!xegpu.tensor_desc"):
        return TensorDesc.decode(kind).element
    if kind.startswith("!xetile.tile"):
        return Tile.decode(kind).element
    return re.sub(r"^(\d+x)*", "", kind.removeprefix("vector<").removesuffix(">"))


def _multiplied(element: str) -> bool:
    return bool(accumulators(element, element))


_INTEGER_KINDS = "addi|andi|maxs|maxu|mins|minu|muli|ori|xori"
_FLOAT_KINDS = "addf|maximumf|maxnumf|minimumf|minnumf|mulf"
_INTEGER_REDUCTIONS = "and|or|xor|minui|minsi|maxui|maxsi"
_SCATTERED = r"xegpu\.(create_tdesc|load_gather|store_scatter|prefetch|update_offset|atomic_rmw)"
_READS = r"(xegpu\.(load_nd|prefetch_nd|load_gather|prefetch)|xetile\.(load_tile|prefetch_tile|load))"
_WRITES = r"(xegpu\.(store_nd|store_scatter)|xetile\.(store_tile|store))"

_BY_HAND = (
    "descriptor_(gather|scatter|reduce)|atomic_(load|store|poll)|extern_elementwise|approx_divf|ptr_to_int|int_to_ptr"
)

IMPOSSIBLE: tuple[tuple[str, Any, str], ...] = (
    (r"tt\.", lambda e: e != NONE, "programs of Triton's IR are counted by op"),
    (r"tt\.(print|assert)", lambda e: True, "what is printed is not compared"),
    (r"tt\.(elementwise_inline_asm|grid_dependency_\w+)", lambda e: True, "is for NVIDIA's GPUs"),
    (rf"tt\.({_BY_HAND})$", lambda e: True, "test_lowering and the conformance tests try it"),
    (r"vector\.scalable", lambda e: True, "Xe GPUs have no scalable vectors"),
    (r"gpu\.printf|cf\.assert", lambda e: True, "what is printed is not compared"),
    (r"vector\.transfer_write broadcast", lambda e: True, "a write has each element once"),
    (r"gpu\.(shuffle|rotate|subgroup_(reduce|broadcast))", lambda e: e == "vc", "a thread is a subgroup of its own"),
    (r"fragments", lambda e: e == "vc", "are parts of work items"),
    (r"lanes without", lambda e: e == "simt", "the RFC has gathers in VC mode only"),
    (r"arith\.constant NaN", lambda e: e not in FLOATS, "integers have none"),
    (r"arith\.constant NaN = (signaling|payload)", lambda e: e == "f8E4M3FN", "the format has two NaNs"),
    (r"xegpu\.create_nd_tdesc source", lambda e: e in NARROW, "views of such elements are kept simple"),
    (r"upstream \w+ xegpu\.dpas_mx", lambda e: e not in upstream.SCALED, "no product of scaled matrices has it"),
    (
        r"upstream (?!\w+ xegpu\.dpas_mx)",
        lambda e: e not in upstream.ELEMENTS,
        "numpy computes the programs of upstream's dialect in others",
    ),
    (r"upstream \w+ xegpu\.dpas$", lambda e: e not in sum(upstream.PRODUCTS, ()), "no product has it"),
    (r"upstream \w+ xegpu\.atomic_rmw", lambda e: e not in ("i32", "f32"), "updates are of 32 bits"),
    (
        r"xegpu\.(alloc_nbarrier|(?:init|create)_nbarrier|nbarrier_\w+|fence|compile_hint)\b",
        lambda e: e != NONE,
        "has no element",
    ),
    (
        r"(?!tt\.|xegpu\.(alloc_nbarrier|(?:init|create)_nbarrier|nbarrier_\w+|fence|compile_hint)\b)",
        lambda e: e == NONE,
        "always has an element",
    ),
    (
        r"(?!xegpu\.(create_nd_tdesc|update_nd_offset|prefetch_nd|load_nd|store_nd|dpas)\b|!xegpu)",
        lambda e: e in NARROW,
        "blocks and products alone have elements of less than a byte",
    ),
    (r"!xegpu\.tensor_desc (scattered|chunk_size\w*) = (?!none)", lambda e: e in NARROW, "blocks alone have them"),
    (r".* vnni_axis = [01]", lambda e: e != NONE and bit_width(e) >= 32, "VNNI packing is of less than 32 bits"),
    (r".* transpose_bit_width = 8$", lambda e: e != NONE and bit_width(e) > 8, "a unit holds whole elements"),
    (r".* transpose_bit_width = 16", lambda e: e != NONE and bit_width(e) > 16, "a unit holds whole elements"),
    (r".* transpose_bit_width = 32", lambda e: e != NONE and bit_width(e) > 32, "a unit holds whole elements"),
    (_SCATTERED + " mode = simt", lambda e: True, "the RFC has it in VC mode only"),
    (r"xegpu\.dpas|xetile\.tile_mma", lambda e: e != NONE and not _multiplied(e), "dpas does not multiply it"),
    (r"xegpu\.dpas mode = simt", lambda e: e in NARROW, "a work item's columns of it are no whole bytes"),
    (r"xegpu\.truncf", lambda e: e not in WIDE_FLOATS, "the op rounds from wide floats"),
    (
        r"xegpu\.dpas_mx",
        lambda e: e not in ("bf16", "f16", "f8E5M2", "f8E4M3FN"),
        "dpas_mx does not multiply it, or memory does not have it",
    ),
    (r"xegpu\.dpas_mx mode = simt", lambda e: True, "test_dpas_mx tries it; scales of fragments are written by hand"),
    (r"xegpu\.lane_shuffle", lambda e: e not in NUMBERS, "fragments of it go on as what registers compute with"),
    (_READS + r" l\d_hint = write_\w+", lambda e: True, "a hint of writes"),
    (_WRITES + r" l\d_hint = (cached|read_invalidate)", lambda e: True, "a hint of reads"),
    (r".* l3_hint = (streaming|read_invalidate|write_through)", lambda e: True, "no message has it for L3"),
    (r"iree_vector_ext\.to_sim[dt]", lambda e: True, "vector-distribute makes it, and none is left when it is done"),
    (r"iree_vector_ext\.", lambda e: e.startswith("u"), "vector.transfer_read needs a constant, which it has not"),
    (r"xetile\.reduction", lambda e: e not in NUMBERS, "arith does not compute with it"),
    (rf"xetile\.reduction kind = ({_INTEGER_REDUCTIONS})$", lambda e: e != NONE and is_float(e), "a kind for integers"),
    (r"xetile\.reduction kind = \w+f$", lambda e: e != NONE and not is_float(e), "a kind for floats"),
    (rf".*atomic_rmw kind = ({_INTEGER_KINDS})", lambda e: e != NONE and is_float(e), "a kind for integers"),
    (rf".*atomic_rmw kind = ({_FLOAT_KINDS})", lambda e: e != NONE and not is_float(e), "a kind for floats"),
    (r"xe\w+\.atomic_rmw kind = (maxs|mins)$", lambda e: e.startswith("u"), "a kind for signed integers"),
    (r".*_rmw kind = \w+f$", lambda e: e.startswith("tf"), "there is no arithmetic on it"),
)
"""Cells that no program reaches: rows and elements, and why."""


@cache
def impossible(row: str, element: str) -> str | None:
    """Why no program reaches a cell; None if one does."""
    return next((why for pattern, fits, why in IMPOSSIBLE if re.match(pattern, row) and fits(element)), None)


def missing(found: Counter[str]) -> list[str]:
    """The cells that were not reached though they can be."""
    tables = ((rows(), (*ELEMENTS, NONE)), (own_rows(), MODES))
    return [
        f"{row} | {column}"
        for table_rows, columns in tables
        for row in table_rows
        for column in columns
        if not impossible(row, column) and not found[f"{row} | {column}"]
    ]


_LEVELS = {"xetile": "xetile", "xegpu": "xegpu_vc", "iree_vector_ext": "nested"}
"""The generators that reach a dialect's cells; of those in SIMT mode it is another one."""


def level_of(cell: str) -> str:
    """The generator that reaches a cell."""
    row, _, column = cell.rpartition(" | ")
    if row.startswith(("upstream ", "tt.")):
        return "upstream" if row[0] == "u" else "triton"
    if column in MODES or row.startswith("arith."):
        kernel = "xegpu_vc" if column == "vc" else "xegpu_simt"
        return kernel if row.startswith(("fragments", "lanes without")) else "core"
    simt = row.endswith("mode = simt") or (row.endswith("map = given") and row.startswith("!xegpu."))
    return "xegpu_simt" if simt else _LEVELS[row.lstrip("!").partition(".")[0]]


def survey(r: Random, rounds: int, length: int) -> Counter[str]:
    """What tours reach, which are written and not run: round by round those of elements with cells that are missing.

    Args:
        rounds: the most rounds.
        length: statements of a tour.
    """
    found: Counter[str] = Counter()
    for _ in range(rounds):
        wanted = {(level_of(cell), cell.rpartition(" ")[2]) for cell in missing(found)}
        if not wanted:
            break
        for level, element in sorted(wanted):
            module = importlib.import_module(f"{__package__}.{level}")
            found.update(cells(module.tour(r, element if element in ELEMENTS or level == "core" else None, length)))
    return found


def table(found: Counter[str]) -> str:
    """How often each cell was reached; `.` where it cannot be, and 0 where it could."""
    width = max(map(len, (*rows(), *own_rows())))
    lines = []
    for table_rows, columns in ((rows(), (*ELEMENTS, NONE)), (own_rows(), MODES)):
        lines.append(" " * width + "".join(f"{e.replace('f8E', 'E'):>7}" for e in columns))
        for row in table_rows:
            counts = []
            for column in columns:
                count = found[f"{row} | {column}"]
                counts.append("." if not count and impossible(row, column) else str(count))
            lines.append(f"{row:{width}}" + "".join(f"{c:>7}" for c in counts))
    reached = sum(1 for cell in found if found[cell])
    lines.append(f"{reached} cells reached, {len(missing(found))} missing")
    return "\n".join(lines)
