"""Rules of the target by op: checks that the target has the messages and instructions to which an op is lowered."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from mlir import ir
from msgspec import Struct

from xegpu_py.dialects.xegpu import Mode, TensorDesc
from xegpu_py.dialects.xegpu.matrix_ops import MAX_REPEAT_COUNT
from xegpu_py.dialects.xegpu.op_interfaces import BlockAccess, BlockLoad
from xegpu_py.dialects.xegpu.types import EXACT_SURFACES, XeGPU, is_slm
from xegpu_py.ir.builtin import bit_width, is_float, rounding_problem
from xegpu_py.ir.diagnostics import Diagnostic, DiagnosticError, emit_error, op_error
from xegpu_py.ir.module import walk
from xegpu_py.ir.operation import field_of, implements
from xegpu_py.numerics.block_scaled import COLUMNS, ROWS, scaled_depth
from xegpu_py.numerics.dpas import types_problem
from xegpu_py.numerics.formats import BYTE_FLOATS, TYPES
from xegpu_py.passes.analysis.block_surfaces import SurfaceChecks, stride_problem, tensor_of
from xegpu_py.passes.analysis.ir_queries import (
    FLOAT_ARITHMETIC,
    FLOAT_FUNCTIONS,
    INTEGRAL_FUNCTIONS,
    constant_of,
    register_type,
    shape_and_element,
)
from xegpu_py.passes.analysis.target_messages import (
    READ_CACHE_WORDS,
    WRITE_CACHE_WORDS,
    atomic_message_of,
    block_load,
    block_problem,
    caches_of,
    dpas_step,
    lanes_problem,
    line_messages,
    precision_of,
    scaled_problem,
    transposes_in_message,
)
from xegpu_py.passes.rewriting.rewriter import Rules
from xegpu_py.target import Target, verdict
from xegpu_py.target.message_rules import RULES
from xegpu_py.visa.instructions import INSTRUCTIONS, precision_problem
from xegpu_py.visa.messages import broken_shape
from xegpu_py.visa.operands import Raw, Variable
from xegpu_py.visa.spec import BlockShape, CacheAttribute, Problem

# Limits of a message or an instruction stand in the table of `xegpu_py.visa.instructions`, so that vISA's verifier
# accepts all ops that these rules accept.

SPLIT_REMEDY = "xegpu-legalize splits it"

REWRITE_REMEDY = "xegpu-legalize rewrites it"

_ROUNDED_THROUGH_F32 = ("bf16", "tf32")
"""Formats to which f64 is rounded through f32."""

SLM_ALIGNMENT = 64
"""The alignment in bytes of buffers in shared local memory."""

MOST_REGISTER_FILES = 256
"""A value may be this many times as large as the registers of a thread.

Kernels that do not fit run nevertheless, with a warning, but the lowering of larger values takes minutes.
"""

_REGISTER_OPS = (
    "scf.for",
    "scf.while",
    "scf.if",
    "xetile.load",
    "xetile.tile_mma",
    "xegpu.load",
    "xegpu.dpas",
    "vector.load",
)
"""Prefixes of the names of ops whose results are in registers at once, unless only parts of them are used."""

_SLICING_OPS = ("vector.extract", "xetile.tile_mma", "xegpu.dpas")
"""Prefixes of the names of ops that need only parts of their operands at a time: slices and products."""


def require_registers(ops: Iterable[ir.Operation], target: Target) -> None:
    """Check that the vectors of a subgroup are not so large that the lowering takes minutes.

    Raises:
        DiagnosticError: at the first op with a vector that is `MOST_REGISTER_FILES` times larger than the registers.
    """
    count = max(target.grf_counts)
    size = count * target.grf_bytes
    for op in ops:
        if not op.name.startswith(_REGISTER_OPS):
            continue
        for result in op.results:
            shape, element = shape_and_element(result)
            used = math.prod(shape) * (32 if element == "index" else bit_width(element)) // 8 if shape else 0
            if used > MOST_REGISTER_FILES * size and not all(
                u.owner.name.startswith(_SLICING_OPS) for u in result.uses
            ):
                emit_error(
                    op,
                    f"makes a {result.type} of {used:,} bytes, but a thread has {size:,} bytes of registers, "
                    f"{count} of {target.grf_bytes} bytes",
                    "divide the tile among subgroups by a map, or compute it in smaller tiles",
                )


def element_problem(element: str) -> Problem:
    """The reason why registers cannot hold elements of a type; None if they can."""
    try:
        register_type(element)
    except ValueError as e:
        return (str(e), "supported widths are 8, 16, 32 and 64 bits; pack narrower elements")
    return None


def caches_problem(view: Any, instruction: str, write: bool = False) -> Problem:
    """The reason why a message does not have this pair of cache hints; None if it has."""
    pair = caches_of(view, write)
    declared = INSTRUCTIONS[instruction].attributes["caches"]
    assert isinstance(declared, CacheAttribute)
    if not pair or pair in declared.pairs:
        return None
    words = {word: hint.value for hint, word in (WRITE_CACHE_WORDS if write else READ_CACHE_WORDS).items()}
    supported = [p.split(".") for p in declared.pairs if p != "df.df"]
    pairs = ", ".join(f"{words[a]}/{words.get(b, b)}" for a, b in supported if a in words)
    a, b = pair.split(".")
    return (
        f"cache hints {words[a]}/{words[b]} for L1/L3 are not supported",
        f"supported pairs are {pairs}; a level without a hint is {'written back' if write else 'cached'}",
    )


_ATOMIC_DATA = Raw(Variable("data", "ud", 1, "GRF"))


class RuleContext(Struct):
    """The properties of the enclosing kernel that rules use.

    Attributes:
        target: the GPU.
        surfaces: the checks of surfaces of 2D block messages.
        slm_bytes: bytes of shared local memory that preceding ops allocate.
        barriers: named barriers that the kernel allocates; None if their number is not known.
        has_workgroup_barrier: whether the kernel has a barrier of the workgroup, which takes one named barrier.
    """

    target: Target
    surfaces: SurfaceChecks
    slm_bytes: int = 0
    barriers: int | None = 0
    has_workgroup_barrier: bool = False


TargetRule = Callable[[RuleContext, ir.Operation], Problem]

target_rule: Rules[TargetRule] = Rules()
"""The rules by op name. A rule returns the reason why the target does not support an op."""


def verify(functions: Iterable[tuple[ir.Operation, Target]]) -> None:
    """Check that targets support all ops of functions.

    Raises:
        DiagnosticError: with an error for each op that its target does not support.
    """
    # Legalization makes several ops of one; an error that they share is reported once.
    diagnostics = dict.fromkeys(problem for func, gpu in functions for problem in problems(func, gpu))
    if diagnostics:
        raise DiagnosticError(list(diagnostics))


def problems(func: ir.Operation, target: Target) -> list[Diagnostic]:
    """The errors for the ops of a kernel that a target does not support, one for each op, in order."""
    ops = walk(func)
    kernel = RuleContext(target, SurfaceChecks(target, exact=EXACT_SURFACES in func.attributes))
    # For a function that kernels call, the number is not known.
    kernel.barriers = _named_barriers(ops) if func.name == "gpu.func" else None
    kernel.has_workgroup_barrier = any(op.name == "gpu.barrier" for op in ops)
    diagnostics = []
    # Equal ops have equal problems. Problems that depend on more than types and attributes are not cached.
    cache: dict[Any, Problem] = {}
    for op in ops:
        name = op.name
        check = target_rule.get(name)
        if check is None:
            continue
        attributes = op.attributes
        if name in _CONTEXT_DEPENDENT or "transpose" in attributes:
            problem = None if _is_simt(op) else check(kernel, op)
        else:
            key = (name, *[v.type for v in (*op.operands, *op.results)], tuple(attributes.items()))
            if key not in cache:
                cache[key] = None if _is_simt(op) else check(kernel, op)
            problem = cache[key]
        if problem:
            diagnostics.append(op_error(op, *problem))
    return diagnostics


def _is_simt(op: ir.Operation) -> bool:
    return op.name.startswith("xegpu.") and field_of(op, "mode", Mode.VC) != Mode.VC


def _desc_problem(desc: TensorDesc) -> Problem:
    if problem := element_problem(desc.element):
        return problem
    if len(desc.shape) > 1 and desc.in_slm:
        return (
            "of a 2D block in shared local memory is not supported",
            "use 1D descriptors of its rows, or a scattered descriptor",
        )
    if any(n != 1 for n in desc.shape[:-2]):
        return (f"of a block of {len(desc.shape)} dimensions is not supported", SPLIT_REMEDY)
    if len(desc.shape) == 1:
        size = desc.shape[0] * bit_width(desc.element) // 8
        if len(line_messages(size)) > 1:
            return (f"of {size} bytes requires more than one message", SPLIT_REMEDY)
    return None


@target_rule(*XeGPU.implementing(BlockAccess))
def block_access(kernel: RuleContext, op: ir.Operation) -> Problem:
    """Check that one 2D block message, or 1D messages, move the block. Prefetches of shared local memory need none."""
    view: Any = op.opview
    desc, target, stores = TensorDesc.of(view.tdesc), kernel.target, op.name == "xegpu.store_nd"
    if op.name == "xegpu.prefetch_nd" and desc.in_slm:
        return None
    if problem := _desc_problem(desc):
        return problem
    message, (*_, columns) = "lsc_store" if stores else "lsc_load", desc.shape
    if len(desc.shape) == 1:
        return caches_problem(view, message, stores)
    transposed = False
    if stores:
        block = BlockShape(desc.bits, desc.attr.array_length, columns, desc.shape[-2])
    elif implements(op, BlockLoad):
        rank = len(desc.shape)
        order = tuple(view.transpose or range(rank))
        if order[:-2] != tuple(range(rank - 2)):
            return (f"cannot transpose by {list(order)}", REWRITE_REMEDY)
        transposed = order[-2:] == (rank - 1, rank - 2)
        if transposed and rank > 2:
            return (f"cannot transpose a block of {rank} dimensions", REWRITE_REMEDY)
        block = block_load(desc, transposed, view.transpose_bit_width, view.vnni_axis)
    else:
        block = block_load(desc, False, None, None)
    problem = block_problem(block, target, stores, desc.attr.message)
    if problem and desc.attr.message:
        rule = target.block2d and broken_shape(block, target, stores)
        return (problem[0], verdict(RULES[rule], target)) if rule else problem[:1]
    if problem:
        remedy = "widen the block, or use store_scatter" if stores and columns * desc.bits % 32 else _remedy(block)
        return problem if target.block2d is None else (*problem, remedy)
    if (
        transposed
        and target.block2d
        and not desc.attr.message
        and not transposes_in_message(view, desc, target.block2d)
    ):
        return (
            f"transposes units of {block.size} bits, but is not known to begin at a multiple of them",
            REWRITE_REMEDY,
        )
    return caches_problem(view, f"{message}_block2d", stores)


def _remedy(block: BlockShape) -> str:
    if block.transpose and block.size < 32:
        return "xegpu-legalize transposes units of 32 bits, as with transpose_bit_width = 32, and splits them"
    return SPLIT_REMEDY


@target_rule("xegpu.create_nd_tdesc")
def create_nd_tdesc(kernel: RuleContext, op: ir.Operation) -> Problem:
    """Check that elements are consecutive, and that 2D block messages can address the surface, as far as known."""
    view: Any = op.opview
    desc = TensorDesc.of(view.tdesc)
    if desc.attr.message:
        return None
    tensor = tensor_of(view)
    problem = stride_problem(tensor)
    if problem is not None:
        return problem, REWRITE_REMEDY
    if kernel.target.block2d is None or len(desc.shape) < 2 or desc.in_slm:
        return None
    problem = kernel.surfaces.problem(view, tensor)
    return element_problem(desc.element) or (None if problem is None else (problem, REWRITE_REMEDY))


@target_rule("xegpu.load_gather", "xegpu.prefetch", "xegpu.store_scatter")
def scattered_access(kernel: RuleContext, op: ir.Operation) -> Problem:
    """Check that there is a message with an address for each lane."""
    desc, stores = TensorDesc.of(op.opview.tdesc), op.name == "xegpu.store_scatter"
    message = "lsc_store" if stores else "lsc_load"
    if problem := element_problem(desc.element):
        return problem
    problem = lanes_problem(desc, kernel.target, message)
    return (*problem, SPLIT_REMEDY) if problem else caches_problem(op.opview, message, stores)


@target_rule("xegpu.atomic_rmw")
def atomic_rmw(kernel: RuleContext, op: ir.Operation) -> Problem:
    """Check that there is an atomic message for each element of a lane, or one that a loop can use."""
    view: Any = op.opview
    desc = TensorDesc.of(view.tdesc)
    if problem := element_problem(desc.element):
        return problem
    if desc.bits == 8 and is_float(desc.element) and view.kind.name != "assign" and desc.element not in BYTE_FLOATS:
        return (f"arithmetic on {desc.element} is not supported", "update f16 or f32, or use 'assign'")
    operation = atomic_message_of(view, desc.element, desc.in_slm, kernel.target)
    second = _ATOMIC_DATA if operation == "icas" else Raw(None)
    problem = lanes_problem(desc, kernel.target, f"lsc_atomic_{operation}", src0=_ATOMIC_DATA, src1=second)
    if problem and "registers" in problem[0]:
        return (*problem, SPLIT_REMEDY)
    return problem


@target_rule("xegpu.dpas")
def dpas(kernel: RuleContext, op: ir.Operation) -> Problem:
    """Check that one dpas instruction computes the product."""
    view: Any = op.opview
    target = kernel.target
    a_shape, a = shape_and_element(view.lhs)
    b = shape_and_element(view.rhs)[1]
    (m, n), d = shape_and_element(view.result)
    w_precision, a_precision = precision_of(b), precision_of(a)
    problem = precision_problem(target, w_precision, a_precision)
    if problem:
        return problem
    acc = d if view.acc is None else shape_and_element(view.acc)[1]
    types = types_problem(w_precision, a_precision, register_type(d), register_type(acc))
    if types:
        return (types,)
    if not target.dpas_half_accumulators and {"bf16", "f16"} & {d, acc}:
        return (
            f"target '{target.name}' supports only f32 accumulators for {w_precision}",
            "use f32 and truncate the result",
        )
    if n not in target.dpas_exec_sizes:
        remedy = SPLIT_REMEDY if target.dpas_columns(n) else f"pad B to a multiple of {target.dpas_exec_size} columns"
        return (f"has {n} columns, but target '{target.name}' requires {target.dpas_exec_size}", remedy)
    if m > MAX_REPEAT_COUNT:
        return (f"has {m} rows, but the repeat count is at most {MAX_REPEAT_COUNT}", SPLIT_REMEDY)
    k = math.prod(a_shape) // m
    each = dpas_step(w_precision, a_precision, target)
    if k != each:
        remedy = SPLIT_REMEDY if k % each == 0 else f"pad K to a multiple of {each}"
        return (f"multiplies {k} elements along K, but {w_precision} x {a_precision} takes {each} at a time", remedy)
    return None


@target_rule("xegpu.truncf")
def truncf(kernel: RuleContext, op: ir.Operation) -> Problem:
    """Report that there is no instruction; `xegpu-legalize` rewrites the op as arithmetic on bits."""
    return (f"to {_element_name(op.results[0])} has no vISA instruction", REWRITE_REMEDY)


@target_rule("xegpu.dpas_mx")
def dpas_mx(kernel: RuleContext, op: ir.Operation) -> Problem:
    """Check that one bdpas instruction computes the product."""
    view: Any = op.opview
    if problem := scaled_problem(kernel.target):
        return problem
    a_shape, a = shape_and_element(view.lhs)
    (m, n), _ = shape_and_element(view.result)
    w_precision, a_precision = precision_of(shape_and_element(view.rhs)[1]), precision_of(a)
    for extent, actual, required in (
        ("rows", m, ROWS),
        ("columns", n, COLUMNS),
        ("elements along K", math.prod(a_shape) // m, scaled_depth(w_precision, a_precision)),
    ):
        if actual != required:
            return (f"has {actual} {extent}, but bdpas of {w_precision} x {a_precision} has {required}", SPLIT_REMEDY)
    return None


def _named_barriers(ops: list[ir.Operation]) -> int | None:
    total = 0
    for op in ops:
        if op.name == "xegpu.alloc_nbarrier":
            count = _constant(op.opview.count) if op.opview.nbarrier_num is None else op.opview.nbarrier_num
            if count is None:
                return None
            total = max(total, count)
    return total


def _constant(value: ir.Value | None) -> int | None:
    """The value of a constant integer; an integer of 8 bits is unsigned."""
    if value is None:
        return None
    number = constant_of(value)
    return number & 0xFF if number is not None and str(value.type) in ("i8", "ui8", "si8") else number


@target_rule("xegpu.alloc_nbarrier")
def alloc_nbarrier(kernel: RuleContext, op: ir.Operation) -> Problem:
    """Check that the target has this number of named barriers."""
    most = kernel.target.named_barriers
    if most == 0:
        return (f"target '{kernel.target.name}' does not support named barriers", "use gpu.barrier")
    count = _constant(op.opview.count) if op.opview.nbarrier_num is None else op.opview.nbarrier_num
    if count is not None and count > most - kernel.has_workgroup_barrier:
        reserved = "" if not kernel.has_workgroup_barrier else ", of which gpu.barrier takes one"
        return (
            f"allocates {count} named barriers, but target '{kernel.target.name}' supports at most {most}{reserved}",
        )
    return None


@target_rule("xegpu.init_nbarrier")
def init_nbarrier(kernel: RuleContext, op: ir.Operation) -> Problem:
    """Check that the kernel has the barrier, and that a workgroup can have this number of threads."""
    return _barrier_number_problem(kernel, op) or _thread_count_problem(
        kernel, _constant(op.opview.participant_thread_num)
    )


def _barrier_number_problem(kernel: RuleContext, op: ir.Operation) -> Problem:
    """Check that the kernel has the barrier."""
    if kernel.target.named_barriers == 0:
        return (f"target '{kernel.target.name}' does not support named barriers", "use gpu.barrier")
    if kernel.barriers == 0:
        return ("uses a named barrier, but the kernel allocates none", "use xegpu.alloc_nbarrier")
    number = _constant(op.opview.nbarrier_id)
    if number is not None and kernel.barriers is not None and number >= kernel.barriers:
        return (f"uses named barrier {number}, but the kernel allocates {kernel.barriers}", "numbers begin at 0")
    return None


def _thread_count_problem(kernel: RuleContext, threads: int | None) -> Problem:
    if threads is not None and not 1 <= threads <= kernel.target.threads:
        return (f"number of threads must be 1 to {kernel.target.threads}, but got {threads}",)
    return None


@target_rule("xegpu.create_nbarrier")
def create_nbarrier(kernel: RuleContext, op: ir.Operation) -> Problem:
    """Check that the kernel has the barrier, and that all its threads both arrive and wait."""
    if _constant(op.opview.nbarrier_role) != 0:
        return (
            "role must be 0, that of threads that both arrive and wait",
            "use one barrier for each direction, with xegpu.init_nbarrier",
        )
    return _barrier_number_problem(kernel, op) or _thread_count_problem(kernel, op.opview.num_producers)


@target_rule("memref.alloc", "memref.alloca")
def allocate(kernel: RuleContext, op: ir.Operation) -> Problem:
    """Check that the buffers fit into the shared local memory of a workgroup."""
    return _slm_problem(kernel, [ir.MemRefType(op.results[0].type)])


@target_rule("gpu.func")
def attributions(kernel: RuleContext, op: ir.Operation) -> Problem:
    """Check the buffers that a kernel declares."""
    block = op.regions[0].blocks[0]
    count = len(ir.FunctionType(ir.TypeAttr(op.attributes["function_type"]).value).inputs)
    return _slm_problem(kernel, [ir.MemRefType(a.type) for a in list(block.arguments)[count:]])


def _slm_problem(kernel: RuleContext, memrefs: list[ir.MemRefType]) -> Problem:
    limit = kernel.target.slm_bytes
    for memref in memrefs:
        if not is_slm(memref.memory_space) or not memref.has_static_shape:
            continue
        start = -(-kernel.slm_bytes // SLM_ALIGNMENT) * SLM_ALIGNMENT
        element = str(memref.element_type)
        bits = TYPES[register_type(element)].bits if element == "index" else bit_width(element)
        before, kernel.slm_bytes = kernel.slm_bytes, start + math.prod(memref.shape) * bits // 8
        if kernel.slm_bytes > limit >= before:
            kib = -(-kernel.slm_bytes // 1024)
            return (
                f"requires {kib} KiB of shared local memory, but target '{kernel.target.name}' has {limit >> 10} KiB",
                "allocations in shared local memory are live until the workgroup ends",
            )
    return None


def _element_name(value: ir.Value) -> str:
    return shape_and_element(value)[1]


@target_rule("arith.extf", "arith.truncf")
def convert(kernel: RuleContext, op: ir.Operation) -> Problem:
    """Check that the target has the conversion."""
    if problem := rounding_problem(op):
        return problem
    source, to = _element_name(op.operands[0]), _element_name(op.results[0])
    for element in (source, to):
        if bit_width(element) == 8 and element not in BYTE_FLOATS:
            direction = "from" if element == source else "to"
            return (f"conversion {direction} {element} is not supported", f"use {' or '.join(BYTE_FLOATS)}")
    if op.name == "arith.truncf" and (
        (to in BYTE_FLOATS and source != "f16") or (source == "f64" and to in _ROUNDED_THROUGH_F32)
    ):
        return (f"from {source} to {to} has no vISA instruction", REWRITE_REMEDY)
    return None


@target_rule("arith.sitofp", "arith.uitofp", "arith.fptosi", "arith.fptoui")
def convert_integers(kernel: RuleContext, op: ir.Operation) -> Problem:
    """Check that the target has the conversion between integers and floats."""
    for element in (_element_name(op.operands[0]), _element_name(op.results[0])):
        if is_float(element) and bit_width(element) == 8:
            remedy = REWRITE_REMEDY if element in BYTE_FLOATS else "convert in memory"
            return (f"conversion between integers and {element} is not supported", remedy)
    return None


@target_rule(
    *FLOAT_ARITHMETIC,
    *FLOAT_FUNCTIONS,
    *INTEGRAL_FUNCTIONS,
    "math.sqrt",
    "math.rsqrt",
    "arith.negf",
    "math.absf",
    "vector.fma",
    "math.fma",
)
def compute(kernel: RuleContext, op: ir.Operation) -> Problem:
    """Check that the elements have arithmetic."""
    element = _element_name(op.operands[0])
    if not is_float(element):
        return None
    if (bit_width(element) == 8 or element == "bf16") and op.name not in ("arith.negf", "math.absf"):
        remedy = REWRITE_REMEDY if element in (*BYTE_FLOATS, "bf16") else "convert to f16 or f32 in memory"
        return (f"arithmetic on {element} is not supported", remedy)
    if element == "f64":
        if op.name in ("arith.divf", "math.sqrt") and not kernel.target.double_math:
            missing = "does not divide f64" if op.name == "arith.divf" else "has no f64 square root"
            return (f"target '{kernel.target.name}' {missing}", "use f32")
        if op.name.startswith("math.") and op.name not in ("math.fma", "math.absf", "math.sqrt"):
            return ("of f64 has no vISA instruction", REWRITE_REMEDY)
    return None


_CONTEXT_DEPENDENT = (
    "memref.alloc", "memref.alloca", "gpu.func", "xegpu.init_nbarrier", "xegpu.create_nbarrier", "xegpu.alloc_nbarrier",
)  # fmt: skip
"""Ops whose problems depend on more than their types and attributes."""
