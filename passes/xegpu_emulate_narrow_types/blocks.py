"""`xegpu`: blocks of elements of 2 and 4 bits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from mlir import ir

from xegpu_py.dialects import xegpu
from xegpu_py.dialects.xegpu import Mode, TensorDesc
from xegpu_py.ir.diagnostics import remark
from xegpu_py.passes.common import builders as build
from xegpu_py.passes.common.builders import Index, add, index, known, make, vector_type
from xegpu_py.passes.common.elements import desc_bits
from xegpu_py.passes.common.messages import hints_of
from xegpu_py.passes.common.transforms import plain_shape, transformed
from xegpu_py.passes.common.values import defining_op, shape_of
from xegpu_py.passes.xegpu_emulate_narrow_types.emulation import Emulation, pattern
from xegpu_py.passes.xegpu_emulate_narrow_types.memory import bytes_before, joined, place_in_byte


def _numbers(e: Emulation, values: Any) -> list[Index]:
    return [n if isinstance(n, int) else known(e.one(n)) for n in values]


@pattern("xegpu.create_nd_tdesc")
def create_nd_tdesc(e: Emulation, op: ir.Operation) -> None:
    """Create a descriptor of bytes; if blocks may begin within a byte, create two."""
    view: Any = op.opview
    each, kind = e.each(view.tdesc.type), e.desc_type(view.tdesc.type)
    offsets, shape, strides = (_numbers(e, v) for v in (view.offsets, view.shape, view.strides))
    given: dict[str, Any] = {}
    if strides and strides[-1] != 1:
        e.fail("has an innermost stride that is not known to be 1, so that elements do not fill bytes")
    if shape:
        for what, found in (("shape", shape[-1:]), ("strides", strides[:-1])):
            bad = next((n for n in found if isinstance(n, int) and n % each), None)
            if bad is not None and len(shape) > 1:
                e.fail(f"has {what} of {bad} elements, which do not fill bytes", f"let it be a multiple of {each}")
        given = {
            "shape": [*shape[:-1], bytes_before(add(shape[-1], each - 1), each)],
            "strides": [*(bytes_before(n, each) for n in strides[:-1]), strides[-1]],
        }
    source = e.one(view.source)

    def at(column: Index) -> ir.Value:
        return xegpu.create_nd_tdesc(source, [*offsets[:-1], column], tdesc=kind, mode=view.mode, **given)

    first = at(bytes_before(offsets[-1], each))
    if not e.shifted:
        e.replace(op, (first,))
        return
    behind = at(bytes_before(add(offsets[-1], each - 1), each))
    e.replace(op, (first, behind, index(place_in_byte(offsets[-1], each))))


@pattern("xegpu.update_nd_offset")
def update_nd_offset(e: Emulation, op: ir.Operation) -> None:
    """Move the descriptors by bytes, and update the number of the first element in its byte."""
    view: Any = op.opview
    each = e.each(view.tdesc.type)
    *outer, by = _numbers(e, view.offsets)
    held = e.get(view.tdesc)

    def moved(desc: ir.Value, column: Index) -> ir.Value:
        return xegpu.update_nd_offset(desc, [*outer, column], result=desc.type, mode=view.mode)

    if not e.shifted:
        e.replace(op, (moved(held[0], bytes_before(by, each)),))
        return
    first, behind, place = held
    total = add(place, by)
    ends = bytes_before(add(total, each - 1), each), bytes_before(add(place, each - 1), each)
    further = make("arith.subi", place.type, index(ends[0]), index(ends[1]))
    e.replace(op, (moved(first, bytes_before(total, each)), moved(behind, further), index(place_in_byte(total, each))))


@pattern("xegpu.prefetch_nd")
def prefetch_nd(e: Emulation, op: ir.Operation) -> None:
    """Prefetch the bytes in which the block's rows begin."""
    view: Any = op.opview
    xegpu.prefetch_nd(e.get(view.tdesc)[0], mode=view.mode, memory_scope=view.memory_scope, **hints_of(view))
    e.erase(op)


@pattern("xegpu.load_nd")
def load_nd(e: Emulation, op: ir.Operation) -> None:
    """Load bytes. The message does transforms that keep bytes whole; other transforms are done in registers."""
    view: Any = op.opview
    bits = desc_bits(view.tdesc.type)
    desc = TensorDesc.of(view.tdesc)
    result = view.value.type
    unit = view.transpose_bit_width or bits
    by_message = view.vnni_axis is None
    if view.transpose is not None:
        keeps_rows = view.transpose[-1] == len(view.transpose) - 1
        aligned = view.mode != Mode.VC or view.tdesc not in e.within_bytes
        by_message = keeps_rows or (unit >= 8 and aligned)
    given = hints_of(view)
    if by_message:
        if view.transpose is not None:
            given["transpose"] = view.transpose
            if unit > 8:
                given["transpose_bit_width"] = unit
        kind: ir.Type = e.held_type(result)
        e.replace(op, (_loaded(e, view, kind, bits, given),))
        return
    if view.mode != Mode.VC:
        e.fail(
            f"moves single elements of {desc.element}, which work items do not have whole bytes of",
            "let the matrix be packed in memory as the product needs it, or load it in VC mode",
        )
    kind = e.held_type(vector_type(plain_shape(view), ir.VectorType(result).element_type))
    e.give(op, transformed(view, e.spread(_loaded(e, view, kind, bits, given), bits)))


def _loaded(e: Emulation, view: Any, kind: ir.Type, bits: int, given: dict[str, Any]) -> ir.Value:
    """Load the bytes of a block that may begin within a byte."""
    held = e.get(view.tdesc)
    parts = held[:2] if view.tdesc in e.within_bytes else held[:1]
    found = [xegpu.load_nd(d, value=kind, mode=view.mode, **given) for d in parts]
    return found[0] if len(found) == 1 else joined(found[0], found[1], held[2], bits)


@pattern("xegpu.store_nd")
def store_nd(e: Emulation, op: ir.Operation) -> None:
    """Store bytes."""
    view: Any = op.opview
    each = e.each(view.tdesc.type)
    if view.tdesc in e.within_bytes:
        _store_within_bytes(e, view, each)
    else:
        xegpu.store_nd(e.packed(view.value), e.get(view.tdesc)[0], mode=view.mode, **hints_of(view))
    e.erase(op)


def _place(desc: ir.Value) -> tuple[ir.Value, list[ir.Value | int]] | None:
    """The tensor of a descriptor, and the sums of its offsets; None if these are not known."""
    op = defining_op(desc)
    view: Any = op.opview if op is not None else None
    if isinstance(view, xegpu.CreateNdTdescOp):
        is_memref = isinstance(view.source.type, ir.MemRefType)
        return (view.source, list(view.offsets)) if is_memref and not view.shape else None
    if not isinstance(view, xegpu.UpdateNdOffsetOp):
        return None
    found = _place(view.tdesc)
    if found is None:
        return None
    source, offsets = found
    inner = len(offsets) - len(view.offsets)
    return source, [*offsets[:inner], *map(add, offsets[inner:], view.offsets)]


def _store_within_bytes(e: Emulation, view: Any, each: int) -> None:
    """Store the whole bytes of a block by a block store, and update the partial bytes by compare and swap."""
    found = _place(view.tdesc)
    if found is None or view.mode != Mode.VC:
        e.fail(
            "stores a block that may begin within a byte, whose other elements it would have to leave",
            f"let its columns be multiples of {each}, for example by arith.muli",
            "or create its descriptor beside the store, in VC mode, from a memref without a shape",
        )
    remark(
        view.operation,
        "updates bytes shared with other elements by compare-and-swap loops: it may begin within a byte",
    )
    source, offsets = e.one(found[0]), _numbers(e, found[1])
    held, byte = e.packed(view.value), bytes_before(offsets[-1], each)
    *rows, size = shape_of(held)
    wide, i8 = build.with_element(held.type, build.integer_type(16)), build.integer_type(8)
    inside = index(build.multiply(place_in_byte(offsets[-1], each), 8 // each))
    by = make("arith.index_cast", build.integer_type(16), inside)
    moved = build.binary("shli", make("arith.extui", wide, held), build.broadcast(by, wide))
    full = build.binary("shli", build.constant(build.integer_type(16), 0xFF), by)
    # `low` are the bits that stay in their byte after the shift, and `high` those that move into the next byte.
    low, high = (make("arith.trunci", held.type, v) for v in (moved, build.binary("shrui", moved, 8)))
    masks = [make("arith.trunci", i8, v) for v in (full, build.binary("shrui", full, 8))]
    if size > 1:
        inner = (*rows, size - 1)
        first = [0] * len(rows)
        middle = build.binary(
            "ori", build.extract_slice(low, [*first, 1], inner), build.extract_slice(high, [*first, 0], inner)
        )
        kind = TensorDesc(inner, "i8", TensorDesc.of(view.tdesc).attr).to_ir()
        at = [*offsets[:-1], add(byte, 1)]
        desc = xegpu.create_nd_tdesc(source, at, tdesc=kind, mode=view.mode)
        xegpu.store_nd(middle, desc, mode=view.mode, **hints_of(view))
    lead = len(offsets) - len(rows) - 1
    for place in np.ndindex(*rows):
        at = [*offsets[:lead], *map(add, offsets[lead:-1], map(int, place))]
        _update_byte(source, [*at, byte], build.extract(low, [*map(int, place), 0]), masks[0])
        _update_byte(source, [*at, add(byte, size)], build.extract(high, [*map(int, place), size - 1]), masks[1])


def _update_byte(memref: ir.Value, place: list[Index], value: ir.Value, mask: ir.Value) -> None:
    """Write the bits of a byte that a mask selects, if it selects any and the byte is in bounds."""
    happens = build.compare("ne", mask, build.constant(mask.type, 0))
    indices = [index(i) for i in place]
    for d, at in enumerate(indices):
        extent = make("memref.dim", build.index_type(), memref, index(d))
        happens = build.binary("andi", happens, build.compare("ult", at, extent))

    def change(before: ir.Value) -> ir.Value:
        others = build.binary("andi", before, build.binary("xori", mask, -1))
        return build.binary("ori", others, build.binary("andi", value, mask))

    def update() -> Sequence[ir.Value]:
        build.atomic_update(memref, indices, value.type, change)
        return ()

    build.if_(happens, [], update)
