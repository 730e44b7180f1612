"""Elements of less than a byte in kernels of workgroups: tiles hold bytes, and elements are extracted from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from mlir import ir
from mlir.dialects import arith, vector

from xegpu_py.passes.common.builders import index
from xegpu_py.passes.common.divisors import divisor
from xegpu_py.passes.common.elements import narrow_bits
from xegpu_py.passes.common.values import defining_op, shape_of
from xegpu_py.upstream import ops as upstream
from xegpu_py.upstream.rebuilding import HINTS, PREFIX, element_of, refuse, vector_type
from xegpu_py.upstream.tensors import tensor_of
from xegpu_py.upstream.types import Layout, Slice, TensorDesc, layout_of

_ACCESSES = tuple(PREFIX + name for name in ("load_nd", "store_nd", "prefetch_nd", "update_nd_offset"))


def take_bytes(ops: Sequence[ir.Operation]) -> bool:
    """Let descriptors of elements of 4 bits be of the bytes that hold these, and vectors be cast.

    Returns:
        Whether anything may have changed.

    Raises:
        DiagnosticError: at a descriptor or block that is not known to begin at a byte.
    """
    changes = [(op, change) for op in ops for change in _changes(op)]
    for op, change in changes:
        with ir.InsertionPoint(op), op.location:
            change(op)
    return bool(changes)


def _changes(op: ir.Operation) -> Iterator[Callable[[ir.Operation], None]]:
    if op.name == "vector.interleave":
        yield _interleave_bytes
    elif op.name == PREFIX + "create_nd_tdesc" and narrow_bits(TensorDesc.of(op.results[0]).element):
        yield _describe_bytes


def _interleave_bytes(op: ir.Operation) -> None:
    """The even and the odd elements of bytes, transposed and interleaved, are the elements of the transposed bytes."""
    halves = [defining_op(v) for v in op.operands]
    if not all(h is not None and h.name == "vector.transpose" for h in halves):
        return
    orders = {tuple(ir.DenseI64ArrayAttr(h.attributes["permutation"])) for h in halves if h}
    pairs = {defining_op(h.operands[0]) for h in halves if h}
    (pair,) = pairs if len(pairs) == 1 else (None,)
    if pair is None or pair.name != "vector.deinterleave" or orders != {(1, 0)}:
        return
    taken = defining_op(pair.operands[0])
    in_order = all(h is not None and h.operands[0] == r for h, r in zip(halves, pair.results))
    if not in_order or taken is None or taken.name != "vector.bitcast":
        return
    held, kind = taken.operands[0], op.results[0].type
    if 2 * narrow_bits(element_of(op.results[0])) != 8 or element_of(held) != "i8":
        return
    swapped = vector.transpose(vector_type(shape_of(held)[::-1], "i8"), held, [1, 0])
    op.results[0].replace_all_uses_with(vector.bitcast(kind, swapped))
    op.erase()


def _describe_bytes(op: ir.Operation) -> None:
    """The descriptor of the bytes of blocks, and accesses by it."""
    view: Any = op.opview
    desc = TensorDesc.of(view.tdesc)
    each = 8 // narrow_bits(desc.element)
    if desc.scatter:
        refuse(view, f"it has scattered elements of {desc.element}", "let memory have i8 and cast vectors")
    address, extents, strides = tensor_of(view.source, list(view.shape), list(view.strides))
    if strides[-1] != 1:
        refuse(view, f"the innermost stride of elements of {desc.element} is not 1, so that they do not fill bytes")
    made = upstream.CreateNdTdescOp(
        address,
        _byte_offsets(view, list(view.offsets), each),
        [*extents[:-1], _in_bytes(view, extents[-1], each)],
        [*(_in_bytes(view, n, each) for n in strides[:-1]), 1],
        tdesc=_byte_desc(view, desc, each).to_ir(),
    ).tdesc
    _access_bytes(view.tdesc, made, each)
    op.erase()


def _access_bytes(old: ir.Value, new: ir.Value, each: int) -> None:
    """Replace a descriptor of elements by one of bytes in all its users."""
    for use in list(old.uses):
        op = use.owner.operation
        if op.name not in _ACCESSES:
            desc = TensorDesc.of(old)
            refuse(
                op, f"it passes on a descriptor of elements of {desc.element}", "let memory have i8 and cast vectors"
            )
        with ir.InsertionPoint(op), op.location:
            view: Any = op.opview
            offsets = _byte_offsets(op, list(view.offsets), each)
            if op.name.endswith("update_nd_offset"):
                moved = upstream.UpdateNdOffsetOp(new, offsets, result=new.type).result
                _access_bytes(op.results[0], moved, each)
                op.erase()
                continue
            given = {name: getattr(view, name) for name in HINTS if getattr(view, name) is not None}
            if view.layout is not None:
                given["layout"] = _byte_layout(view.layout, each)
            if op.name.endswith("prefetch_nd"):
                upstream.PrefetchNdOp(new, offsets, **given)
            elif op.name.endswith("store_nd"):
                held = vector.bitcast(_byte_vector(op, view.value, each), view.value)
                upstream.StoreNdOp(held, new, offsets, **given)
            else:
                if view.transpose is not None or view.packed:
                    refuse(op, f"it exchanges elements of {element_of(view.value)} as it loads them")
                made = upstream.LoadNdOp(new, offsets, value=_byte_vector(op, view.value, each), **given)
                view.value.replace_all_uses_with(vector.bitcast(view.value.type, made.value))
        op.erase()


def _byte_vector(op: ir.Operation, value: ir.Value, each: int) -> ir.Type:
    *outer, inner = shape_of(value)
    if inner % each:
        refuse(op, f"the rows of {value.type} end within a byte")
    return vector_type((*outer, inner // each), "i8")


def _byte_desc(op: Any, desc: TensorDesc, each: int) -> TensorDesc:
    *outer, inner = desc.shape
    if inner % each:
        refuse(op, f"the rows of a block of {desc} end within a byte")
    layout = desc.layout
    if layout != "unit":
        layout = _byte_layout(layout_of(layout), each).encode()
    return replace(desc, shape=(*outer, inner // each), element="i8", layout=layout)


def _byte_layout(layout: Layout | Slice, each: int) -> Layout | Slice:
    """The same subgroups' parts in bytes. The parts of instructions and lanes do not count here."""
    if isinstance(layout, Slice):
        return layout
    data = layout.sg_data
    if data and data[-1] % each == 0:
        data = (*data[:-1], data[-1] // each)
    elif data:
        # A layout never changes a value.
        data = ()
    return Layout(layout.sg_layout, data, order=layout.order)


def _byte_offsets(op: Any, offsets: Sequence[Any], each: int) -> list[Any]:
    return [*offsets[:-1], _in_bytes(op, offsets[-1], each)] if offsets else []


def _in_bytes(op: Any, number: Any, each: int) -> Any:
    """Convert a number of elements to a number of bytes."""
    if divisor(number) % each:
        refuse(op, "it is not known to begin at a byte", f"offsets and strides must be multiples of {each} elements")
    return number // each if isinstance(number, int) else arith.divui(number, index(each))
