"""2D block messages. Each shape of block is one function of the module, which checks its surface once."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from xegpu_py.deferred import deferred
from xegpu_py.engines.jit.checks import KINDS, NULL
from xegpu_py.engines.jit.ir_text import PTR, FunctionBody, LLVMValue, bits_of, vector
from xegpu_py.engines.jit.native_launch_struct import TRAFFIC, context_offset, traffic_offset
from xegpu_py.engines.jit.operands import Emitter
from xegpu_py.engines.jit.packed_operand_cache import (
    MAX_BESIDE,
    WORDS,
    Matrix,
    block_bytes,
    listed_lines,
    panel_stride,
)
from xegpu_py.engines.jit.prefetching import prefetch_line, prefetch_next
from xegpu_py.engines.jit.rules.memory import locate
from xegpu_py.engines.semantics import Table
from xegpu_py.numerics.formats import PRECISIONS
from xegpu_py.target import Target
from xegpu_py.visa.dataflow import accesses
from xegpu_py.visa.operands import Immediate, Region, Variable
from xegpu_py.visa.program import Instruction, Program, analysis
from xegpu_py.visa.spec import BlockShape

if TYPE_CHECKING:
    from xegpu_py.engines.jit import dpas_functions
else:
    dpas_functions = deferred("xegpu_py.engines.jit.dpas_functions")

RULES = Table()
"""The rule of each instruction."""

_UNROLLED = 4
"""Lines of a block that are made in each step of a loop."""

_CONTEXT, _DATA, _HOST, _STRIDE = PTR, f"{PTR} noalias", "i64", PTR

_SURFACE = ["i64", "i64", "i64", "i64", "i32", "i32"]


def surface(emitter: Emitter, inst: Instruction) -> list[LLVMValue]:
    """Base, width, height and pitch as i64, the latter three from one on, and the block's place as i32."""
    code = emitter.code
    base, *extents = (emitter.scalar(inst[name]) for name in ("base", "width", "height", "pitch"))
    return [
        base,
        *(code.add(code.resize(extent, 64, False), 1) for extent in extents),
        *_position(emitter, inst),
    ]


def _position(emitter: Emitter, inst: Instruction) -> list[LLVMValue]:
    """The column and row of a message's block, as i32."""
    return [emitter.code.resize(emitter.scalar(inst[name]), 32, True) for name in ("x", "y")]


def surface_rules(emitter: Emitter, shape: BlockShape) -> str:
    """The name of the function that checks the rules of surfaces (`target.message_rules.SURFACE_RULES`)."""
    limits, size = emitter.layout.target.block2d, shape.size // 8
    assert limits
    executed = limits.executed
    return emitter.template(
        "addresses.ll",
        "legal_surface_$bytes",
        bytes=size,
        base_mask=executed.base_alignment - 1,
        width_mask=max(executed.width_granule, size) - 1,
        pitch_mask=executed.pitch_granule - 1,
        x_mask=max(executed.column_granule // size, 1) - 1 if emitter.layout.exact else 0,
        least_bytes=executed.least_bytes,
        most_pitch=executed.most_pitch,
        most_extent=executed.most_extent,
    )


def surface_function(emitter: Emitter, shape: BlockShape) -> str:
    """The name of the function that checks a surface, and converts its base to the host's address."""
    legal, find = surface_rules(emitter, shape), locate(emitter, 1)
    return emitter.template("addresses.ll", "surface_$bytes", bytes=shape.size // 8, legal=legal, locate=find)


def _accessed_surface(
    emitter: Emitter, code: FunctionBody, shape: BlockShape, operands: Sequence[LLVMValue], host: LLVMValue
) -> LLVMValue:
    """The host's address of the base of a surface that may reach beyond the allocation, since a mask clips the block.

    Args:
        operands: the context, and those of `surface`.
        host: the address if the whole surface is within an allocation, otherwise 0.
    """
    words = {"bytes": shape.size // 8, "legal": surface_rules(emitter, shape), "locate": locate(emitter, 1)}
    name = emitter.template("addresses.ll", "accessed_surface_$bytes", **words)
    result = code.alloca(8, 8)
    code.store(host, result, 8)
    with code.when(code.icmp("eq", host, 0)):
        counts = (code.const(n, "i64") for n in (shape.count * shape.width, shape.height))
        code.store(code.call(name, *operands, *counts, result="i64"), result, 8)
    return code.load(result, "i64", 8)


def _call(emitter: Emitter, inst: Instruction, at: int, function: str, data: LLVMValue) -> None:
    with _acting(emitter, inst):
        _note_column(emitter, inst, at)
        host, operands = _located(emitter, inst, at)
        fine = emitter.code.call(function, emitter.ctx, data, host, *operands, emitter.strides(at), result="i1")
        emitter.require(fine, at)


def _located(emitter: Emitter, inst: Instruction, at: int) -> tuple[LLVMValue, list[LLVMValue]]:
    """The host's address of a message's surface, which is checked, and the message's operands; see `surface`.

    A basic block checks a surface once, unless the rules depend on the block's column.
    """
    extents = tuple(inst[name] for name in ("base", "width", "height", "pitch"))
    key = (inst["block"].size, extents, inst.clipped)
    checked, code = emitter.surfaces.get(key), emitter.code
    if checked is None:
        operands = surface(emitter, inst)
        host = code.call(surface_function(emitter, inst["block"]), emitter.ctx, *operands[:5], result="i64")
        if not inst.clipped:
            emitter.require(code.icmp("ne", host, 0), at)
        checked = host, *operands[:4]
        if not emitter.layout.exact and emitter.acting(inst) is None:
            emitter.surfaces[key] = checked
    host, *known = checked
    operands = [*known, *_position(emitter, inst)]
    if inst.clipped:
        host = _accessed_surface(emitter, code, inst["block"], [emitter.ctx, *operands], host)
        emitter.require(code.icmp("ne", host, 0), at)
    return host, operands


def _note_column(emitter: Emitter, inst: Instruction, at: int) -> None:
    """Note a block at a column that breaks a rule; see `Layout.watches_columns`. Known columns break none."""
    limits, code = emitter.layout.target.block2d, emitter.code
    assert limits
    odd = max(limits.executed.column_granule // (inst["block"].size // 8), 1) - 1
    if not emitter.layout.watches_columns or not odd or isinstance(inst["x"], Immediate):
        return
    x = code.resize(emitter.scalar(inst["x"]), 32, True)
    with code.when(code.icmp("ne", code.mask(x, odd), 0)):
        traffic = code.load(code.at(emitter.ctx, context_offset("traffic")), PTR, 8)
        first = code.at(traffic, 8 * len(TRAFFIC))
        code.store(code.intrinsic("smin", code.load(first, "i64", 8), code.const(at, "i64")), first, 8)


def _acting(emitter: Emitter, inst: Instruction) -> AbstractContextManager[None]:
    """Execute the code that the `with` block emits only if the thread acts."""
    code, acting = emitter.code, emitter.acting(inst)
    return nullcontext() if acting is None else code.when(code.icmp("ne", code.mask(acting, 1), 0))


@RULES.of("lsc_load_block2d")
def lsc_load_block2d(emitter: Emitter, inst: Instruction, at: int) -> None:
    """Load blocks of a surface."""
    if inst["dst"].var is None:
        if emitter.frame.logs:
            return
        name = f"prefetch2d_{inst['block']}".replace(".", "_")
        emitter.helper(name, lambda: _BlockFunction(emitter, name, inst["block"]).prefetch())
        with _acting(emitter, inst):
            _note_column(emitter, inst, at)
            operands = emitter.ctx, emitter.thread, *surface(emitter, inst), emitter.thread
            emitter.require(emitter.code.call(name, *operands, result="i1"), at)
        return
    matrix_ref = emitter.matrix(inst["dst"])
    if matrix_ref:
        panel = _panel(emitter, inst, at, inst["block"], matrix_ref[0])
        size = block_bytes(inst["block"], emitter.layout.target.grf_bytes)
        emitter.note_panel(inst["dst"], size, emitter.code.op(f"inttoptr {panel} to ptr", PTR))
        return
    name, strict = _named(emitter, inst, f"load2d_{inst['block']}")
    emitter.helper(name, lambda: _BlockFunction(emitter, name, inst["block"], strict=strict, is_located=True).load())
    _call(emitter, inst, at, name, emitter.code.at(emitter.thread, emitter.register_offset(inst["dst"])))


def _named(emitter: Emitter, inst: Instruction, name: str) -> tuple[str, bool]:
    """The name of the function of a message, and whether it fails if the block does not lie in its surface."""
    strict = emitter.layout.is_strict(inst)
    return f"{'strict_' * strict}{name}".replace(".", "_"), strict


def count_beside(emitter: Emitter, run: Sequence[Instruction]) -> int:
    """Count the loads that make one panel if their blocks are adjacent; 1 if each needs its own check."""
    is_strict = any(map(emitter.layout.is_strict, run))
    return emitter.matrices.beside(run) if emitter.matrices and not is_strict else 1


def emit_beside(emitter: Emitter, run: Sequence[tuple[int, Instruction]]) -> None:
    """Load blocks as one panel if they lie side by side, and otherwise one by one."""
    code, (at, first_inst) = emitter.code, run[0]
    matrix_ref, shape = emitter.matrix(first_inst["dst"]), first_inst["block"]
    assert matrix_ref
    size = block_bytes(shape, emitter.layout.target.grf_bytes)
    panel_slots = [code.alloca(8, 8) for _ in run]
    x, y = ([code.resize(emitter.scalar(inst[name]), 32, True) for _, inst in run] for name in ("x", "y"))
    not_adjacent = code.const(0, "i32")
    for number in range(1, len(run)):
        expected_x = code.add(x[0], number * shape.count * shape.width)
        not_adjacent = code.or_(not_adjacent, code.or_(code.xor(x[number], expected_x), code.xor(y[number], y[0])))

    def together() -> None:
        panel = _panel(emitter, first_inst, at, replace(shape, count=len(run) * shape.count), matrix_ref[0])
        for number, panel_slot in enumerate(panel_slots):
            code.store(code.add(panel, number * size * matrix_ref[0].scale), panel_slot, 8)

    def alone() -> None:
        for (inst_index, inst), panel_slot in zip(run, panel_slots):
            code.store(_panel(emitter, inst, inst_index, shape, matrix_ref[0]), panel_slot, 8)

    code.choose(code.icmp("eq", not_adjacent, 0), together, alone)
    for (_, inst), panel_slot in zip(run, panel_slots):
        emitter.note_panel(inst["dst"], size, code.load(panel_slot, PTR, 8))


def _panel(emitter: Emitter, inst: Instruction, at: int, shape: BlockShape, matrix: Matrix) -> LLVMValue:
    """The address of a panel with the block of a message, or with several side by side: an i64."""
    code = emitter.code
    name, strict = _named(emitter, inst, f"{'clipped_' * inst.clipped}load2d_{shape}_as_{matrix.name}")
    make = f"make_{name}"
    entered = ["i64", PTR, "i64", "i64", "i64"]
    clipped = inst.clipped
    emitter.helper(
        make, lambda: _BlockFunction(emitter, make, shape, matrix, entered, strict, clipped=clipped).make_panel()
    )
    emitter.template("packed_operand_cache.ll", "$find", find=name, make=make, tag=zlib.crc32(name.encode()), **WORDS)
    _note_column(emitter, inst, at)
    extents = surface(emitter, inst)
    assert emitter.matrices
    across, down = (emitter.matrices.steps * _step(emitter, inst[n]) for n in ("x", "y"))
    panel_address = code.call(name, emitter.ctx, *extents, code.const((across << 32) + down, "i64"), result="i64")
    emitter.require(code.icmp("ne", panel_address, 0), at)
    return panel_address


def _step(emitter: Emitter, operand: Region | Immediate) -> int:
    """The number that the current loop adds to a scalar in each step; 0 if it is not known."""
    if emitter.loop is None or isinstance(operand, Immediate):
        return 0
    root_variable = operand.var.root
    change = _changes(emitter.program, emitter.layout.target, emitter.loop).get(root_variable[0])
    if change is None or change.name != "add":
        return 0
    to, source, by = change["dst"], change["src0"], change["src1"]
    if (
        isinstance(source, Immediate)
        or not isinstance(by, Immediate)
        or to.var.root != root_variable
        or source.var.root != root_variable
    ):
        return 0
    return by.bits - (by.bits >> 31 << 32)


@analysis
def _changes(program: Program, target: Target, loop: range) -> dict[Variable, Instruction | None]:
    """The only instruction of a loop that writes each variable; None for a variable that several write."""
    writers: dict[Variable, Instruction | None] = {}
    for inst in program.instructions[loop.start : loop.stop]:
        for var in {access.var for access in accesses(inst, target) if access.writes}:
            writers[var] = None if var in writers else inst
    return writers


@RULES.of("lsc_store_block2d")
def lsc_store_block2d(emitter: Emitter, inst: Instruction, at: int) -> None:
    """Store a block to a surface."""
    name, strict = _named(emitter, inst, f"store2d_{inst['block']}")
    emitter.helper(name, lambda: _BlockFunction(emitter, name, inst["block"], strict=strict, is_located=True).store())
    _call(emitter, inst, at, name, emitter.code.at(emitter.thread, emitter.register_offset(inst["src0"])))


class _Inside(Struct, frozen=True):
    """The part of a block that lies in its surface: first and last column and row, each an i64."""

    left: LLVMValue
    right: LLVMValue
    top: LLVMValue
    bottom: LLVMValue


class _BlockFunction:
    """The function that moves blocks of one shape: to registers, or to a panel."""

    def __init__(
        self,
        emitter: Emitter,
        name: str,
        shape: BlockShape,
        matrix: Matrix | None = None,
        extra_arguments: Sequence[str] = (),
        strict: bool = False,
        is_located: bool = False,
        clipped: bool = False,
        is_partial: bool = False,
    ) -> None:
        """Begin the function.

        Args:
            is_located: whether the caller has checked the surface, and passes the host's address of its base.
            is_partial: whether the block does not lie in its surface, as the caller has found.
            extra_arguments: types of arguments beside the surface, of functions of panels.
            strict: whether the message fails if the block does not lie in its surface.
            clipped: whether the surface may reach beyond the allocation; see `_accessed_surface`.
        """
        self.strict, self.clipped, self.is_partial = strict, clipped, is_partial
        self.emitter, self.shape, self.matrix = emitter, shape, matrix
        self.grf_bytes = emitter.layout.target.grf_bytes
        self.size = shape.size // 8
        self.element = f"i{shape.size}"
        self.name = name
        if matrix:
            self.code = code = emitter.host.function(name, [_CONTEXT, *_SURFACE, *extra_arguments], "i64")
            self.ctx, *arguments = code.arguments
        else:
            located = [_HOST] if is_located else []
            self.code = code = emitter.host.function(name, [_CONTEXT, _DATA, *located, *_SURFACE, _STRIDE], "i1")
            self.ctx, self.registers, *arguments = code.arguments
        self.host = arguments.pop(0) if is_located else None
        self.base, self.width, self.height, self.pitch, self.x, self.y = arguments[: len(_SURFACE)]
        self.more = arguments[len(_SURFACE) :]

    @property
    def _surface(self) -> tuple[LLVMValue, ...]:
        """The operands on which the rules of surfaces depend."""
        return self.base, self.width, self.height, self.pitch, self.x

    def _check(self) -> LLVMValue:
        """The host's address of the surface's base. Return if the surface is not legal, or not within one allocation,
        unless the caller has checked that."""
        code = self.code
        if self.host is not None:
            return self.host
        host = code.call(surface_function(self.emitter, self.shape), self.ctx, *self._surface, result="i64")
        if self.clipped:
            host = _accessed_surface(self.emitter, code, self.shape, [self.ctx, *self._surface, self.y], host)
        code.return_unless(code.icmp("ne", host, 0), code.const(0, code.result))
        return host

    def _locate(self, extent: LLVMValue) -> tuple[LLVMValue, LLVMValue]:
        """Whether the surface's first bytes lie in one allocation, an i1, and where the host's address of them is."""
        code, host = self.code, self.code.alloca(8, 8)
        base, first_byte = code.splat(self.base, 1), code.const(1, "i32")
        return code.call(locate(self.emitter, 1), self.ctx, base, extent, first_byte, host, result="i1"), host

    def _place(self, host: LLVMValue) -> tuple[LLVMValue, LLVMValue, LLVMValue]:
        """A pointer to the block's first element, wherever that is, and x and y as i64."""
        code = self.code
        x, y = code.resize(self.x, 64, True), code.resize(self.y, 64, True)
        offset = code.add(code.mul(y, self.pitch), code.mul(x, self.size))
        address = code.add(host, offset)
        return code.op(f"inttoptr {address} to ptr", PTR), x, y

    def _moved(self, category: str, elements: LLVMValue) -> None:
        """Count the elements that are moved."""
        code = self.code
        traffic = code.load(code.at(self.ctx, context_offset("traffic")), PTR, 8)
        counter_pointer = code.at(traffic, traffic_offset("ugm", category))
        bytes_moved = code.mul(elements, self.size)
        code.count(counter_pointer, bytes_moved)

    def _within(
        self,
        category: str,
        emit_whole: Callable[[LLVMValue, LLVMValue], None],
        emit_partial: Callable[[LLVMValue, LLVMValue, _Inside], None],
    ) -> None:
        """Run one action if the block lies in its surface, and another if it does not; both end their blocks.

        They get a pointer to the block's first element, and how many elements are moved, whose bytes are counted.
        Partial blocks that a short function moves have a function of their own, so that the other one has no frame.
        """
        code, shape = self.code, self.shape
        pointer, x, y = self._place(self._check())
        zero, across = code.const(0, "i64"), shape.count * shape.width
        columns = code.lshr(self.width, self.size.bit_length() - 1)
        columns_left, rows_left = code.sub(columns, x), code.sub(self.height, y)
        if not self.is_partial:
            inside = code.and_(
                code.and_(code.icmp("sge", x, 0), code.icmp("sge", y, 0)),
                code.and_(code.icmp("sge", columns_left, across), code.icmp("sge", rows_left, shape.height)),
            )
            slow = code.label()
            code.go_on_if(inside, slow)
            elements, all_rows = code.const(across * shape.height, "i64"), code.const(shape.height, "i64")
            self._moved(category, elements)
            self._note(category, pointer, _Inside(zero, code.const(across, "i64"), zero, all_rows))
            emit_whole(pointer, elements)
            code.begin(slow)
            if self.strict:
                code.ret(code.const(0, code.result))
                return
            if self._is_short:
                code.ret(code.call(self._partial_function(category), *code.arguments, result=code.result))
                return

        def bounds(start: LLVMValue, extent_left: LLVMValue, count: int) -> tuple[LLVMValue, LLVMValue]:
            limit = code.const(count, "i64")
            first_index = code.intrinsic("smin", code.intrinsic("smax", code.sub(zero, start), zero), limit)
            return first_index, code.intrinsic("smin", code.intrinsic("smax", extent_left, zero), limit)

        inner_part = _Inside(*bounds(x, columns_left, across), *bounds(y, rows_left, shape.height))
        wide = code.intrinsic("smax", code.sub(inner_part.right, inner_part.left), zero)
        high = code.intrinsic("smax", code.sub(inner_part.bottom, inner_part.top), zero)
        elements = code.mul(wide, high)
        self._moved(category, elements)
        self._note(category, pointer, inner_part)
        emit_partial(pointer, elements, inner_part)

    @property
    def _is_short(self) -> bool:
        """Whether a call takes about as long as to move the rows."""
        return self.matrix is None and not self.shape.transpose and self.shape.height <= _UNROLLED

    def _partial_function(self, category: str) -> str:
        """The name of the function with the same arguments for blocks that do not lie in their surface."""
        name = f"partial_{self.name}"

        def text() -> str:
            block = _BlockFunction(self.emitter, name, self.shape, is_located=True, is_partial=True)
            return block.load() if category == "load" else block.store()

        return self.emitter.helper(name, text)

    def _note(self, category: str, pointer: LLVMValue, inside: _Inside) -> None:
        """Record the accesses of rows if races are detected; return if an access may race with one."""
        if not self.emitter.frame.races:
            return

        code, size = self.code, self.code.const(self.size, "i64")
        left_bytes, count = code.mul(inside.left, size), code.mul(code.sub(inside.right, inside.left), size)
        x, y = (code.resize(v, 64, True) for v in (self.x, self.y))
        offset_in_surface = code.add(code.mul(self.pitch, inside.top), left_bytes)
        first_address = code.add(code.add(self.base, code.mul(x, size)), code.mul(y, self.pitch))
        line = code.const(self.shape.register_shape()[1] * self.size, "i64")
        values = NULL
        if category == "store":
            values = code.at(self.registers, code.add(code.mul(inside.top, line), left_bytes))
        row_addresses = code.add(first_address, offset_in_surface), code.at(pointer, offset_in_surface), self.pitch
        rows = code.sub(inside.bottom, inside.top), count, values, line, code.const(KINDS[category], "i32")
        fine = code.call("race_note_rows", self.ctx, *row_addresses, *rows, result="i1")
        code.return_unless(fine, code.const(0, code.result))

    def _mask(self, row: LLVMValue, inside: _Inside, columns: int) -> LLVMValue:
        """The mask of the columns of a row that lie in the surface."""
        code = self.code
        column = code.consts(list(range(columns)), "i32")
        first_column, last_column = (
            code.splat(code.resize(v, 32, False), columns) for v in (inside.left, inside.right)
        )
        row_inside = code.and_(code.icmp("sle", inside.top, row), code.icmp("sgt", inside.bottom, row))
        across = code.and_(code.icmp("sge", column, first_column), code.icmp("slt", column, last_column))
        return code.and_(across, code.splat(row_inside, columns))

    def load(self) -> str:
        """The function that loads to registers."""
        code, arrange = self.code, self.code.label()

        def whole(pointer: LLVMValue, elements: LLVMValue) -> None:
            self._prefetch_next(pointer, "load")
            code.br(arrange, pointer, self.pitch)

        def parts(pointer: LLVMValue, elements: LLVMValue, inside: _Inside) -> None:
            size, outside = block_bytes(self.shape, self.grf_bytes), code.label()
            code.go_on_if(code.icmp("ne", elements, 0), outside)
            code.br(arrange, *self._copy(pointer, inside))
            code.begin(outside)
            code.call("llvm.memset.p0.i64", self.registers, *map(code.const, (0, size, 0), ("i8", "i64", "i1")))
            code.ret(code.const(1, "i1"))

        self._within("load", whole, parts)
        pointer, pitch = code.begin_with(arrange, PTR, "i64")
        self._arrange(pointer, pitch)
        code.ret(code.const(1, "i1"))
        return code.text()

    def make_panel(self) -> str:
        """The function that makes a panel; gives its address, or zero if the message is refused."""
        code, arrange = self.code, self.code.label()
        assert self.matrix
        size = block_bytes(self.shape, self.grf_bytes) * self.matrix.scale
        step, entry, *key = self.more
        surface = self.width, self.height, self.pitch, self.x, self.y

        def panel(pointer: LLVMValue, elements: LLVMValue) -> LLVMValue:
            bytes_moved = code.mul(elements, self.size)
            self._call_panels(
                "list_lines_$shape", pointer, *surface, step, template_words=WORDS | listed_lines(self.shape)
            )
            stride = code.const(panel_stride(size), "i64")
            panel_address = self._call_panels(
                "new_panel", entry, self.base, *key, stride, bytes_moved, self._source(), result="i64"
            )
            return code.op(f"inttoptr {panel_address} to ptr", PTR)

        def whole(pointer: LLVMValue, elements: LLVMValue) -> None:
            code.br(arrange, pointer, self.pitch, panel(pointer, elements))

        def parts(pointer: LLVMValue, elements: LLVMValue, inside: _Inside) -> None:
            code.br(arrange, *self._copy(pointer, inside), panel(pointer, elements))

        self._within("load", whole, parts)
        pointer, pitch, self.registers = code.begin_with(arrange, PTR, "i64", PTR)
        self._arrange(pointer, pitch)
        code.ret(code.cast("ptrtoint", self.registers, "i64"))
        return code.text()

    def _source(self) -> LLVMValue:
        """The bit that stands for the allocation that the block accesses."""
        code, zero = self.code, self.code.const(0, "i64")
        x, y = (code.intrinsic("smax", code.resize(v, 64, True), zero) for v in (self.x, self.y))
        first = code.add(self.base, code.add(code.mul(y, self.pitch), code.mul(x, self.size)))
        return self._call_panels("allocation_bit", first, result="i64")

    def _call_panels(
        self, name: str, *operands: LLVMValue, result: str = "", template_words: Mapping[str, object] = WORDS
    ) -> LLVMValue:
        """Call a function of `packed_operand_cache.ll` with the context and operands."""
        return self.code.call(
            self.emitter.template("packed_operand_cache.ll", name, **template_words), self.ctx, *operands, result=result
        )

    def _copy(self, pointer: LLVMValue, inside: _Inside) -> tuple[LLVMValue, LLVMValue]:
        """Copy a block, with zeros for what is outside; returns the address of the copy, and its pitch."""
        code, shape = self.code, self.shape
        across = shape.count * shape.width
        row_type = vector(across, self.element)
        copy, pitch = code.alloca(shape.height * across * self.size, 64), code.const(across * self.size, "i64")

        def row(number: LLVMValue) -> None:
            source = code.at(pointer, code.mul(self.pitch, number))
            row_values = code.masked_load(source, self._mask(number, inside, across), code.const(0, row_type))
            code.store(row_values, code.at(copy, code.mul(pitch, number)))

        code.repeat(code.const(shape.height, "i64"), row)
        return copy, pitch

    def prefetch(self) -> str:
        """The function that prefetches. A prefetch fails only if its surface is not legal."""
        code = self.code
        if self.emitter.layout.exact:
            is_legal = code.call(surface_rules(self.emitter, self.shape), *self._surface, result="i1")
            code.return_unless(is_legal, code.const(0, "i1"))
        is_located, host = self._locate(code.const(1, "i64"))
        with code.when(is_located):
            pointer, _, _ = self._place(code.load(host, "i64", 8))
            self._prefetch_rows(pointer, "load")
        code.ret(code.const(1, "i1"))
        return code.text()

    def _prefetch_rows(self, pointer: LLVMValue, category: str) -> None:
        """Prefetch the first element of each row of a block, to be read or to be written."""
        code = self.code
        for number in range(self.shape.height):
            row = code.at(pointer, code.mul(self.pitch, number))
            prefetch_line(code, row, category)

    def _prefetch_next(self, pointer: LLVMValue, category: str) -> None:
        """Prefetch the block that the thread's message accesses the next time, if that is known."""
        prefetch_next(
            self.code, self.more[0], pointer, lambda next_pointer: self._prefetch_rows(next_pointer, category)
        )

    def _arrange(self, pointer: LLVMValue, pitch: LLVMValue) -> None:
        """Write rows to registers in the message's layout: padded, transposed or packed."""
        code, shape = self.code, self.shape
        rows, columns, pack = shape.register_shape()
        block_bytes, line_bytes = shape.block_bytes(self.grf_bytes), columns * pack * self.size
        # Lines that are built in the same way from consecutive rows are built in a loop.
        alike = not shape.transpose and shape.height % pack == 0 and rows % _UNROLLED == 0
        step = _UNROLLED if alike else rows

        def lines(index: LLVMValue) -> None:
            start = code.at(pointer, code.mul(pitch, code.mul(index, step * pack)))
            scale = self.matrix.scale if self.matrix else 1
            to = code.at(self.registers, code.mul(index, step * line_bytes * scale))
            loaded_rows: dict[int, LLVMValue] = {}

            def row(block: int, number: int) -> LLVMValue:
                # Of all blocks at once: together they are one vector of the host.
                if number not in loaded_rows:
                    at = code.at(start, code.mul(pitch, number))
                    loaded_rows[number] = code.load(at, vector(shape.count * shape.width, self.element))
                if shape.count == 1:
                    return loaded_rows[number]
                block_columns = range(block * shape.width, (block + 1) * shape.width)
                return code.shuffle(loaded_rows[number], loaded_rows[number], list(block_columns))

            for i in range(step):
                for block in range(shape.count):
                    self._put(
                        self._line(partial(row, block), i, columns, pack), to, block * block_bytes + i * line_bytes
                    )

        code.repeat(code.const(rows // step, "i64"), lines)
        used_bytes = rows * line_bytes
        for block in range(shape.count if used_bytes < block_bytes else 0):
            self._put(
                code.const(0, vector((block_bytes - used_bytes), "i8")),
                self.registers,
                block * block_bytes + used_bytes,
            )

    def _put(self, line: LLVMValue, registers: LLVMValue, offset: int) -> None:
        """Write what belongs at a byte of the registers."""
        code, matrix = self.code, self.matrix
        if matrix is None:
            code.put(line, registers, offset)
            return

        fmt, at, size = PRECISIONS[matrix.precision], matrix.scale * offset, line.lanes * bits_of(line.type) // 8
        if not matrix.columns:
            elements = code.recast(line, vector(8 * size // fmt.bits, f"i{fmt.bits}"))
            numbers = dpas_functions.as_float(code, elements, fmt)
            code.put(numbers if matrix.bits == 32 else code.resize(numbers, 16, False), registers, at)
            return
        dwords = code.recast(line, vector(size // 4, "i32"))
        for first_column in range(0, size // 4, matrix.columns):
            columns = list(range(first_column, first_column + matrix.columns))
            line_part = dwords if len(columns) == dwords.lanes else code.shuffle(dwords, dwords, columns)
            rows = dpas_functions.rows_of(code, line_part, fmt)
            for row in rows if matrix.bits == 32 else dpas_functions.words_of(code, rows):
                code.put(row, registers, at)
                at += 4 * matrix.columns

    def _line(self, row_of: Callable[[int], LLVMValue], line: int, columns: int, pack: int) -> LLVMValue:
        """Build one register row of a block from its rows in memory."""
        code, shape = self.code, self.shape
        if shape.transpose:
            picks: list[tuple[int, int] | None] = [(c, line) if c < shape.height else None for c in range(columns)]
        else:
            picks = [
                (line * pack + p, c) if line * pack + p < shape.height and c < shape.width else None
                for c in range(columns)
                for p in range(pack)
            ]
        if pack == 1 and not shape.transpose and columns == shape.width:
            return row_of(line)
        count = len(picks)
        result = code.const(0, vector(count, self.element))
        used_rows = sorted({p[0] for p in picks if p})
        if pack == 2 and len(used_rows) == 2 and all(picks):
            flat = [p[1] + (shape.width if p[0] == used_rows[1] else 0) for p in picks if p]
            return code.shuffle(row_of(used_rows[0]), row_of(used_rows[1]), flat)
        for number in used_rows:
            source = row_of(number)
            spread = code.shuffle(source, source, [p[1] if p and p[0] == number else 0 for p in picks])
            result = code.shuffle(
                result, spread, [count + i if p and p[0] == number else i for i, p in enumerate(picks)]
            )
        return result

    def store(self) -> str:
        """The function that stores a block."""
        code, shape = self.code, self.shape
        columns = shape.register_shape()[1]
        row_type = vector(shape.width, self.element)

        panels = self.emitter.matrices is not None and self.emitter.matrices.panel_bytes > 0

        def rows(pointer: LLVMValue) -> None:
            for number in range(shape.height):
                value = code.fetch(self.registers, number * columns * self.size, row_type)
                to = code.at(pointer, code.mul(self.pitch, number))
                code.store(value, to)

        def whole(pointer: LLVMValue, _: LLVMValue) -> None:
            # In a GEMM, matrices evict the next workgroup's block before it is stored.
            if not panels:
                self._prefetch_next(pointer, "store")
            rows(pointer)
            code.ret(code.const(1, "i1"))

        def parts(pointer: LLVMValue, _: LLVMValue, inside: _Inside) -> None:
            def row(number: LLVMValue) -> None:
                value = code.load(code.at(self.registers, code.mul(number, columns * self.size)), row_type)
                to = code.at(pointer, code.mul(self.pitch, number))
                code.masked_store(value, to, self._mask(number, inside, shape.width))

            code.repeat(code.const(shape.height, "i64"), row)
            code.ret(code.const(1, "i1"))

        if panels and not self.is_partial:
            self._call_panels("forget_panels", self._source())
        self._within("store", whole, parts)
        return code.text()


RUNS = {"lsc_load_block2d": (MAX_BESIDE, count_beside, emit_beside)}
