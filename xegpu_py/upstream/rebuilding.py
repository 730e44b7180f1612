"""Helpers for rebuilding a kernel at every level: types, values, refusals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NoReturn

from mlir import ir
from mlir.dialects import arith, memref

from xegpu_py.dialects import xegpu as ours
from xegpu_py.dialects.xegpu.types import READ_HINTS, WRITE_HINTS
from xegpu_py.ir.builtin import vector_text
from xegpu_py.ir.definition import DYNAMIC
from xegpu_py.ir.diagnostics import error_at, position_of, remark
from xegpu_py.ir.verifier import walk
from xegpu_py.passes.common.builders import Index, index, integer_type, make, shape_cast
from xegpu_py.passes.common.target_rules import caches_problem
from xegpu_py.passes.common.values import defining_op, shape_of
from xegpu_py.passes.common.values import element_of as element_type_of
from xegpu_py.upstream.types import NAME, BlockTdescAttr, MemDesc, NBarrier, TensorDesc

LANES = 16
"""Lanes of a subgroup: what upstream's lowering takes for these GPUs, and `intel_reqd_sub_group_size` says."""

PREFIX = NAME + "."


def spelled(text: str) -> str:
    """A text with the dialect's name as users spell it."""
    return text.replace(PREFIX, "xegpu.")


def refuse(op: ir.Operation | ir.OpView, reason: str, *notes: str) -> NoReturn:
    """Raise the diagnostic that an op cannot be imported.

    Raises:
        DiagnosticError: always.
    """
    op = op.operation
    where = position_of(op.location)
    message = f"'{spelled(op.name)}' op cannot be imported: {spelled(reason)}"
    raise error_at(where, message, *map(spelled, notes))


@lru_cache(maxsize=4096)
def _is_kind(text: str) -> str:
    for cls in (TensorDesc, MemDesc, NBarrier):
        if cls.accepts(text):
            return cls.name
    return ""


def is_desc(kind: ir.Type) -> bool:
    """Whether this is the type of a tensor descriptor of upstream's."""
    return _is_kind(str(kind)) == TensorDesc.name


def parts(op: ir.Operation) -> list[ir.Operation]:
    """All ops within an op, outer ones before inner ones."""
    return walk(op)[1:]


def functions_of(root: ir.Operation) -> list[ir.Operation]:
    """The ops in the bodies of a program's `gpu.module`s: kernels, other functions, and what they share."""
    return [op for module in within(root, "gpu.module") for op in within(module)]


def within(op: ir.Operation, *names: str) -> list[ir.Operation]:
    """The ops directly in a module, all or those of some names."""
    found = [inner.operation for inner in op.regions[0].blocks[0].operations]
    return [inner for inner in found if not names or inner.name in names]


def values_of(op: ir.Operation) -> Iterable[ir.Value]:
    """The results of an op, and the arguments of its regions' blocks."""
    yield from op.results
    for region in op.regions:
        for block in region:
            yield from block.arguments


def mixed(entries: Sequence[Index]) -> list[ir.Value]:
    """The values of a list of index values and constants."""
    return [index(e) for e in entries]


def element_of(value: ir.Value) -> str:
    """The type of a vector's elements, or of a number."""
    return str(element_type_of(value))


def vector_type(shape: Sequence[int], element: str | ir.Type) -> ir.Type:
    """A vector type; without dimensions its element type."""
    return ir.Type.parse(vector_text(shape, str(element)) if shape else str(element))


def extents_of(source: ir.Value, given: Sequence[Index] = ()) -> list[Index]:
    """The extents of a memref; those that its type does not have are given, or else computed."""
    return [
        n if n != DYNAMIC else given[i] if given else memref.dim(source, index(i))
        for i, n in enumerate(ir.MemRefType(source.type).shape)
    ]


def long_address(source: ir.Value) -> ir.Value:
    """An address of 32 bits as one of 64 bits; other addresses and memrefs are unchanged."""
    if isinstance(source.type, ir.MemRefType) or str(source.type) in ("i64", "ui64", "si64"):
        return source
    return arith.extui(integer_type(64), signless(source))


def signless(value: ir.Value) -> ir.Value:
    """An integer as one of a signless type."""
    kind = ir.IntegerType(value.type)
    return value if kind.is_signless else make("builtin.unrealized_conversion_cast", integer_type(kind.width), value)


def cast(value: ir.Value, shape: Sequence[int]) -> ir.Value:
    """The elements of a vector in another shape."""
    op = defining_op(value)
    if op is not None and op.name == "vector.shape_cast" and shape_of(op.operands[0]) == tuple(shape):
        return op.operands[0]
    return shape_cast(value, shape)


def block_attr(desc: TensorDesc) -> BlockTdescAttr:
    """The attribute of a descriptor that is known to be of a block."""
    found = desc.block
    assert found is not None
    return found


def scope_of(desc: TensorDesc) -> str:
    """Our name for the memory space of a descriptor."""
    attr = desc.scatter or block_attr(desc)
    return str(attr.memory_space.value)


HINTS = ("l1_hint", "l2_hint", "l3_hint")


def put_hints(made: ir.Operation | ir.OpView, source: Any, message: str, write: bool = False) -> None:
    """Give an op of ours the cache hints of upstream's, unless no message has such a pair."""
    given = {h: getattr(source, h) for h in HINTS if getattr(source, h) is not None}
    if not given:
        return
    operation = made.operation
    known = WRITE_HINTS if write else READ_HINTS
    foreign = next((h.value for h in given.values() if h not in known), None)
    if foreign:
        remark(
            operation,
            f"is imported without its cache hints: {foreign} is not a hint of a {'write' if write else 'read'}",
        )
        return
    for name, hint in given.items():
        operation.attributes[name] = _hint(operation.context, hint)
    problem = _hint_problem(operation.opview, message, write)
    if problem:
        for name in given:
            del operation.attributes[name]
        remark(operation, f"is imported without its cache hints: {problem}")


_HINT_PROBLEMS: dict[Any, str | None] = {}


def _hint(context: ir.Context, value: ours.CacheHint) -> ir.Attribute:
    return ir.Attribute.parse(ours.XeGPU.enums["cache_hint"].encode(value), context)


def _hint_problem(view: Any, message: str, write: bool) -> str | None:
    key = (message, write, view.l1_hint, view.l2_hint, view.l3_hint)
    if key not in _HINT_PROBLEMS:
        found = caches_problem(view, message, write)
        _HINT_PROBLEMS[key] = found[0] if found else None
    return _HINT_PROBLEMS[key]


def is_true(value: ir.Value) -> bool:
    """Whether a value is the constant true, or a vector in which all elements are true."""
    op = defining_op(value)
    if op is None:
        return False
    if op.name in ("vector.broadcast", "vector.extract", "vector.shape_cast"):
        return is_true(op.operands[0])
    if op.name != "arith.constant":
        return False
    text = str(op.attributes["value"])
    return text.startswith(("true", "dense<true>", "1 : i1"))
