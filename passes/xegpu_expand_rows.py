"""`xegpu-expand-rows`: blocks of one long row become blocks of rows that each fill a register."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mlir import ir
from mlir.dialects import arith
from msgspec import Struct

from xegpu_py.dialects import xegpu
from xegpu_py.dialects.xegpu import Mode, TensorDesc
from xegpu_py.dialects.xegpu.op_interfaces import BlockLoad
from xegpu_py.ir.definition import FUNCTIONS
from xegpu_py.ir.operation import implements
from xegpu_py.ir.passes import Pass, register_pass
from xegpu_py.passes.analysis.affine_analysis import IndexForms, constant_part, plus
from xegpu_py.passes.analysis.block_surfaces import argument_of, is_unaligned
from xegpu_py.passes.analysis.integer_analysis import Integers
from xegpu_py.passes.analysis.ir_queries import (
    SIGNED_CASTS,
    argument_number,
    constant_of,
    defining_op,
    is_used,
    shape_of,
    subgroup_functions,
    view_numbers,
)
from xegpu_py.passes.analysis.launch_assumptions import EXPANDED, assumed_divisor, unaligned_arguments
from xegpu_py.passes.analysis.target_messages import hints_of, load_like
from xegpu_py.passes.rewriting import builders as build
from xegpu_py.passes.rewriting.builders import Index
from xegpu_py.target import Target


@register_pass("xegpu-expand-rows")
class XeGPUExpandRows(Pass):
    """Load and store long rows with fewer messages.

    A 2D block message has at most 64 bytes of a row, but up to 32 rows. A row of a matrix whose length is known to be a
    multiple of 64 bytes is the same memory as a matrix of rows of 64 bytes, and so are the registers of both blocks, if
    the row and the block begin at multiples of 64 bytes. The row must be known to be one of the matrix. Descriptors
    that are moved or that control flow passes on stay, and so do those of arrays in `xegpu.unaligned`. The attribute
    `xegpu.expanded` lists the other arrays, which are assumed to be aligned.

        %m = memref.reinterpret_cast %A to offset: [0], sizes: [%rows, %n], strides: [%pitch, 1]
        %d = xegpu.create_nd_tdesc %m[%row, %x] {mode = vc} : ... -> !xegpu.tensor_desc<1x128xf32>
        %v = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<1x128xf32> -> vector<1x128xf32>

    becomes, if 16 divides `%n`, `%pitch` and `%x`,

        %m = memref.reinterpret_cast %A to offset: [%row * %pitch], sizes: [%n / 16, 16], strides: [16, 1]
        %d = xegpu.create_nd_tdesc %m[%x / 16, 0] {mode = vc} : ... -> !xegpu.tensor_desc<8x16xf32>
        %w = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>
        %v = vector.shape_cast %w : vector<8x16xf32> to vector<1x128xf32>
    """

    target: str = ""
    kernel: str = ""

    def run(self, op: ir.Operation) -> None:
        for func, ops, gpu in subgroup_functions(op, self.target, self.kernel):
            integers, forms, unaligned = Integers(), IndexForms(), unaligned_arguments(func)
            expanded = set[int]()
            for maker in [op for op in ops if op.name == "xegpu.create_nd_tdesc"]:
                array = argument_of(maker.opview.source)
                if is_unaligned(maker.opview, unaligned):
                    continue
                if _expand(maker, gpu, integers, forms) and array is not None:
                    expanded.add(array)
            if expanded:
                func.attributes[EXPANDED] = ir.DenseI64ArrayAttr.get(sorted(expanded))


def _expand(maker: ir.Operation, target: Target, integers: Integers, forms: IndexForms) -> bool:
    """Replace a descriptor and its uses, if that is possible; whether it was."""
    view: Any = maker.opview
    desc, limits = TensorDesc.of(view.tdesc), target.block2d
    if view.mode != Mode.VC or limits is None or len(desc.shape) != 2 or desc.shape[0] != 1 or desc.in_slm:
        return False
    if desc.attr.array_length != 1 or desc.attr.message or desc.bits < 8:
        return False
    columns = 8 * target.grf_bytes // desc.bits
    uses = [use.owner.operation for use in view.tdesc.uses]
    if desc.shape[1] % columns or desc.shape[1] <= columns or not all(map(_is_plain, uses)):
        return False
    if limits.surface_problem(target.grf_bytes, None, target.grf_bytes, None) is not None:
        return False
    row = _row_of(view, integers, forms)
    if row is None or any(n % columns for n in row.divisors(integers)) or integers.divisor(view.offsets[1]) % columns:
        return False
    with maker.location, ir.InsertionPoint(maker):
        start = build.add(row.first, build.multiply(row.number, row.pitch))
        rows = _divided(row.length, columns, arith.shrui)
        matrix = build.reinterpret_cast(row.memref, start, [rows, columns], [columns, 1])
        expanded = replace(desc, shape=(desc.shape[1] // columns, columns))
        # The block may begin before the row: the number is negative then.
        first_row = _divided(view.offsets[1], columns, arith.shrsi)
        tdesc = xegpu.create_nd_tdesc(matrix, [first_row, 0], tdesc=expanded, mode=view.mode)
    for use in uses:
        with use.location, ir.InsertionPoint(use):
            _access(use.opview, tdesc, expanded.shape)
        use.erase()
    source = defining_op(view.source)
    maker.erase()
    if source is not None and not is_used(source.results[0]):
        source.erase()
    return True


def _is_plain(use: ir.Operation) -> bool:
    """Whether an op loads, stores or prefetches a block as it lies in memory."""
    if implements(use, BlockLoad):
        view: Any = use.opview
        return view.transpose is None and view.vnni_axis is None and len(shape_of(view.value)) == 2
    return use.name in ("xegpu.store_nd", "xegpu.prefetch_nd")


class _Row(Struct):
    """A row of a matrix in memory.

    Attributes:
        memref: the memory.
        first: the matrix's first element.
        number: the row's number.
        pitch: the elements from one row to the next.
        length: the row's elements.
    """

    memref: ir.Value
    first: Index
    number: Index
    pitch: Index
    length: Index

    def divisors(self, integers: Integers) -> tuple[int, int, int]:
        """The powers of two that are known to divide where the matrix and the row begin, and the row's length."""
        number, pitch = integers.divisor(self.number), integers.divisor(self.pitch)
        return integers.divisor(self.first), number * pitch, integers.divisor(self.length)


def _row_of(view: Any, integers: Integers, forms: IndexForms) -> _Row | None:
    """The row of consecutive elements in which a descriptor's block lies; None if that may not be in the matrix."""
    op, row = defining_op(view.source), view.offsets[0]
    if op is None or op.name != "memref.reinterpret_cast" or len(view.shape):
        return None
    (first,), sizes, strides = view_numbers(op)
    if constant_of(strides[1]) != 1:
        return None
    beyond = constant_part(plus(forms.scalar(sizes[0]), forms.scalar(row), -1))
    is_inside = beyond is not None and beyond > 0 and integers.of(row)[0].bounds[0] >= 0
    return _Row(op.operands[0], first, row, strides[0], sizes[1]) if is_inside and _is_positive(sizes[1]) else None


def _is_positive(length: Index) -> bool:
    """Whether a length is a positive constant or an argument that is assumed to be a positive multiple."""
    constant = constant_of(length)
    if constant is not None:
        return constant > 0
    assert isinstance(length, ir.Value)
    op = defining_op(length)
    if op is None:
        number = argument_number(length, *FUNCTIONS)
        return number is not None and assumed_divisor(length.owner.owner.operation, number) > 1
    extends = op.name == "arith.extsi" or (op.name in SIGNED_CASTS and isinstance(length.type, ir.IndexType))
    is_same = extends or (op.name == "arith.maxsi" and constant_of(op.operands[1]) == 0)
    return is_same and _is_positive(op.operands[0])


def _divided(multiple: Index, columns: int, shift: Callable[[ir.Value, ir.Value], ir.Value]) -> Index:
    """The quotient of a multiple of a power of two and that, by an op that shifts."""
    constant, amount = constant_of(multiple), columns.bit_length() - 1
    return shift(build.index(multiple), build.index(amount)) if constant is None else constant >> amount


def _access(view: Any, tdesc: ir.Value, shape: tuple[int, ...]) -> None:
    """Access a expanded block instead of a row."""
    if isinstance(view, xegpu.StoreNdOp):
        xegpu.store_nd(build.shape_cast(view.value, shape), tdesc, mode=view.mode, **hints_of(view))
    elif implements(view.operation, BlockLoad):
        loaded = load_like(view, tdesc, value=build.with_shape(view.value.type, shape))
        view.value.replace_all_uses_with(build.shape_cast(loaded, shape_of(view.value)))
    else:
        xegpu.prefetch_nd(tdesc, mode=view.mode, memory_scope=view.memory_scope, **hints_of(view))
