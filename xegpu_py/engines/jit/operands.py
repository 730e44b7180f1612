"""Operands of instructions in native code: registers, predicates and masks of one hardware thread."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from math import gcd
from string import Template
from typing import TYPE_CHECKING

from msgspec import Struct, field

from xegpu_py.engines.jit.consecutive_addresses import SharedNumber
from xegpu_py.engines.jit.host import Host
from xegpu_py.engines.jit.ir_text import PTR, FunctionBody, LLVMValue, bits_of, lanes_of, vector
from xegpu_py.engines.jit.llvm import function_of
from xegpu_py.engines.jit.native_launch_struct import Frame, Status, context_offset
from xegpu_py.engines.jit.prefetching import stride_offset
from xegpu_py.engines.jit.register_promotion import RegisterPromotion, Repeat
from xegpu_py.engines.operands import RegisterPositions
from xegpu_py.numerics.dpas import Model
from xegpu_py.visa.dataflow import accesses, effects
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.operands import (
    Address,
    AddressOf,
    Destination,
    Immediate,
    Indirect,
    Predicate,
    Raw,
    Region,
    Variable,
    Vector,
    first_byte,
)
from xegpu_py.visa.program import Instruction, Program

if TYPE_CHECKING:
    from xegpu_py.engines.jit.packed_operand_cache import Matrices, Matrix


_WIDEST_LOAD = 256
"""The largest extent in bytes of strided elements that are loaded together and shuffled."""

_TILES = LLVMValue("%tiles", PTR)
"""The variable of a function with the number of the tile registers' configuration; 0 if it is not known."""

_EXIT = "leave"
"""The block that returns from a thread's function so that the function can be entered again."""


class Queue(Struct, frozen=True):
    """Steps of a loop whose products are not added to the accumulators yet.

    Attributes:
        count: the function's variable with the number of these steps.
        memory: the array of pointers to their matrices.
        flush: the function that multiplies them, from the context, the thread's block, this memory and a number of
            steps.
    """

    count: LLVMValue
    memory: LLVMValue
    flush: str


class _PackedFields(Struct, frozen=True):
    """Parts of wider integers of a register file: `bits` bits of each, from bit `first` on.

    Attributes:
        words: the integers.
        word_offset: their byte offset.
    """

    words: LLVMValue
    word_offset: int
    first: int
    bits: int

    def of(self, code: FunctionBody) -> LLVMValue:
        """The parts."""
        return code.resize(code.lshr(self.words, self.first), self.bits, False)

    def with_(self, code: FunctionBody, values: LLVMValue) -> LLVMValue:
        """The integers with other parts."""
        wide = code.resize(values, bits_of(self.words.type), False)
        ones = (1 << bits_of(self.words.type)) - 1
        other_bits = code.mask(self.words, ones ^ ((1 << self.bits) - 1) << self.first)
        return code.or_(other_bits, code.shl(wide, self.first))


class Emitter(Struct):
    """The state of code generation that rules use: the function of a thread, and its module.

    Attributes:
        program: the program.
        layout: where its variables lie.
        frame: where the thread's state lies.
        model: how dpas rounds.
        code: the function that is written.
        host: the CPU for which code is generated.
        helpers: functions that the thread's function calls, by name.
        live: the first and last instruction of the live range of each variable that is no alias; None to keep all.
        active: the variable with the enabled lanes, an i32; None if all lanes are enabled.
        matrices: variables that are not in registers; None if all are there.
        promotion: what LLVM may keep as values; see `RegisterPromotion`.
        loop: the block that is written, if it jumps to itself.
        queue: the products that are queued in that block.
        surfaces: the surfaces that the block has checked: by the size of elements, their operands and whether a
            mask clips the block, the host's address, and the operands' values.
        numbers: the shared numbers of addresses; see `consecutive_addresses`.
    """

    program: Program
    layout: RegisterPositions
    frame: Frame
    model: Model
    code: FunctionBody
    host: Host
    helpers: dict[str, str] = field(default_factory=dict)
    active: LLVMValue | None = None
    live: Mapping[Variable, tuple[int, int]] | None = None
    matrices: Matrices | None = None
    promotion: RegisterPromotion = field(default_factory=RegisterPromotion)
    loop: range | None = None
    queue: Queue | None = None
    surfaces: dict[tuple[int, Sequence[Region | Immediate], bool], tuple[LLVMValue, ...]] = field(default_factory=dict)
    numbers: dict[SharedNumber, LLVMValue] = field(default_factory=dict)
    _queues: list[Queue] = field(default_factory=list)
    _panels: dict[Variable, list[tuple[int, int, LLVMValue]]] = field(default_factory=dict)
    _reserved: dict[Variable, LLVMValue] = field(default_factory=dict)
    _truths: dict[Predicate, LLVMValue] = field(default_factory=dict)
    _scratch: int = 0
    _leaves: bool = False
    _tiles: dict[str, int] = field(default_factory=dict)
    _tables: list[str] = field(default_factory=list)
    _shifts: dict[Hashable, LLVMValue] = field(default_factory=dict)
    _passed: LLVMValue | None = None

    def repeat(self, repeat: Repeat, body: Callable[[], None]) -> None:
        """Write instructions that execute as iterations of a loop: `body` writes those of the first one."""

        def iteration(index: LLVMValue) -> None:
            code = self.code
            self._passed = code.resize(code.mul(index, repeat.period), 32, False)
            values: dict[tuple[int, ...], LLVMValue] = {}
            pointers: dict[tuple[int, ...], LLVMValue] = {}
            for key, distances in repeat.distances.items():
                if distances not in values:
                    values[distances] = self._distance(index, distances)
                    pointers[distances] = code.at(self.thread, values[distances])
                    code.alignments[pointers[distances].name] = gcd(code.alignment, *distances)
                is_number = isinstance(key, Immediate) or (isinstance(key, tuple) and key[0] == "plus")
                self._shifts[key] = (values if is_number else pointers)[distances]
            body()
            self._shifts, self._passed = {}, None

        self.code.repeat(self.code.const(repeat.count, "i64"), iteration)

    def _distance(self, index: LLVMValue, distances: Sequence[int]) -> LLVMValue:
        """The distance of an iteration: a multiple of its index, or from a table."""
        step = distances[1]
        if list(distances) == [n * step for n in range(len(distances))]:
            return self.code.mul(index, step)
        name, count = f"{self.code.name}_distances_{len(self._tables)}", len(distances)
        numbers = ", ".join(f"i64 {distance}" for distance in distances)
        self._tables.append(f"@{name} = private unnamed_addr constant [{count} x i64] [{numbers}]\n")
        return self.code.load(self.code.at(LLVMValue(f"@{name}", PTR), self.code.mul(index, 8)), "i64", 8)

    def base(self, key: Hashable) -> LLVMValue:
        """The pointer from which places in the thread's block count, for an operand or predicate of an instruction."""
        return self._shifts.get(key, self.thread)

    def pointer(self, operand: Raw | Address | Region) -> LLVMValue:
        """The pointer to an operand in registers."""
        return self.code.at(self.base(operand), self.register_offset(operand))

    def _number(self, operand: Immediate) -> LLVMValue:
        """A constant, which may be another one in each iteration."""
        element, shift = f"i{operand.format.bits}", self._shifts.get(operand)
        number = self.code.const(operand.bits, element)
        return number if shift is None else self.code.add(self.code.resize(shift, operand.format.bits, False), number)

    def first_address(self, at: int) -> LLVMValue:
        """The address of the first lane of a message; see `consecutive_addresses`."""
        first, shift = self.promotion.addresses[at], self._shifts.get(("plus", at))
        address = self.code.add(self.numbers[first.number], first.plus)
        return address if shift is None else self.code.add(address, shift)

    def index(self, at: int) -> LLVMValue:
        """The index of an instruction, i32."""
        number = self.code.const(at, "i32")
        return number if self._passed is None else self.code.add(self._passed, number)

    def note_numbers(self, at: int) -> None:
        """Read the shared numbers of addresses before instruction `at` executes."""
        for number in self.promotion.numbers.get(at, ()):
            self.numbers[number] = self.scalar(number.source)

    def forget(self, inst: Instruction) -> None:
        """Forget the surfaces whose operands an instruction changes."""
        if self.surfaces:
            written = {access.var for access in effects(inst, self.layout.target).writes}
            for key in list(self.surfaces):
                if any(not isinstance(o, Immediate) and o.var.root[0] in written for o in key[1]):
                    del self.surfaces[key]

    def forgotten(self, at: int, reader: int) -> bool:
        """Whether the result of instruction `at` is dead after instruction `reader`."""
        if self.live is None:
            return False
        root = self.program.instructions[at]["dst"].var.root[0]
        return self.live[root][1] == reader

    def strides(self, at: int) -> LLVMValue:
        """Return the pointer to the strides of message `at`; see `Frame.strides`."""
        return self.code.at(self.base(("strides", at)), self.frame.strides + stride_offset(self.program, at))

    def scratch(self, size: int) -> LLVMValue:
        """Memory of the function that is used for one instruction only."""
        self._scratch = max(self._scratch, size)
        return LLVMValue("%scratch", PTR)

    def finish(self) -> str:
        """The function's text."""
        if self._scratch:
            self.code.reserve("%scratch", self._scratch)
        if self._leaves:
            self._write_exit()
        if self.host.multiplies_tiles:
            self.code.variable(_TILES.name, "i32")
        return "".join([*self._tables, self.code.text()])

    def matrix(self, operand: Raw | Vector) -> tuple[Matrix, int] | None:
        """The matrix that holds an operand instead of registers, and the byte of the variable."""
        matrix_ref = self.matrices.of(operand.var) if self.matrices else None
        if matrix_ref is None:
            return None
        matrix, offset = matrix_ref
        return matrix, offset + self.register_offset(operand) - self.layout.offset(operand.var)

    def panel_of(self, operand: Raw | Vector) -> tuple[LLVMValue, int] | None:
        """The memory that holds an operand instead of registers: a pointer and a size in bytes."""
        matrix_ref = self.matrix(operand)
        if matrix_ref is None:
            return None
        matrix, offset = matrix_ref
        for panel_start, panel_end, panel in reversed(self._panels[operand.var.root[0]]):
            if panel_start <= offset < panel_end:
                return panel, matrix.scale * (offset - panel_start)
        raise AssertionError(f"{operand.var.name} is read where it was not loaded")

    def note_panel(self, operand: Raw, size: int, panel: LLVMValue) -> None:
        """Record the panel to which a message has loaded `size` bytes of a variable."""
        matrix_ref = self.matrix(operand)
        assert matrix_ref
        start = matrix_ref[1]
        self._panels.setdefault(operand.var.root[0], []).append((start, start + size, panel))

    def new_queue(self, queue: Queue, size: int) -> None:
        """Begin a queue of `size` bytes in the current loop."""
        self.code.variable(queue.count.name, "i64")
        self.code.reserve(queue.memory.name, size)
        self.queue = queue
        self._queues.append(queue)

    def flush(self, queue: Queue | None) -> None:
        """Multiply the queued panels, which is necessary before other instructions access the accumulators."""
        if queue is None:
            return
        code = self.code
        count = code.load(queue.count, "i64", 8)
        with code.when(code.icmp("ne", count, 0)):
            code.call(queue.flush, self.ctx, self.thread, queue.memory, count)
            code.store(code.const(0, "i64"), queue.count, 8)

    @property
    def ctx(self) -> LLVMValue:
        """The worker's context."""
        return self.code.arguments[0]

    @property
    def thread(self) -> LLVMValue:
        """The thread's block."""
        return self.code.arguments[1]

    def helper(self, name: str, make: Callable[[], str]) -> str:
        """The name of a function, which is written at its first use."""
        if name not in self.helpers:
            self.helpers[name] = ""
            self.helpers[name] = make()
        return name

    def template(self, file: str, name: str, **words: object) -> str:
        """The name of a function of a template file (see `llvm.function_of`), written at its first use."""
        words["attributes"] = self.host.attributes
        return self.helper(Template(name).substitute(words), lambda: function_of(file, name, **words))

    def context(self, name: str, ty: str = "i64") -> LLVMValue:
        """A field of the context."""
        return self.code.load(self.code.at(self.ctx, context_offset(name)), ty, 8)

    # Tile registers of the host.

    def configure_tiles(self, function: str) -> None:
        """Configure the tile registers by calling a function, unless they are configured."""
        code, number = self.code, self._tiles.setdefault(function, len(self._tiles) + 1)
        with code.when(code.icmp("ne", code.load(_TILES, "i32", 4), number)):
            code.call(function)
            code.store(code.const(number, "i32"), _TILES, 4)

    def release_tiles(self) -> None:
        """Release the tile registers if they are in use; otherwise the system saves their state for each thread."""
        if self._tiles:
            self.code.call("llvm.x86.tilerelease")

    # Registers.

    def register_offset(self, operand: Region | Destination | Vector | Raw | Address) -> int:
        """Byte offset of an operand in the register file."""
        return self.layout.offset(operand.var) + first_byte(operand, self.layout.target.grf_bytes)

    def where(self, operand: Region | Destination) -> tuple[LLVMValue, int]:
        """The memory of an operand's first byte: a pointer and an offset in bytes."""
        register_offset, (root, _) = self.register_offset(operand), operand.var.root
        if root not in self.promotion.variables:
            return self.base(operand), register_offset
        base = self._reserved.get(root)
        if base is None:
            base = self._reserved[root] = self.code.alloca(root.bytes, 64)
        return base, register_offset - self.layout.offset(root)

    def read(self, operand: Region | Immediate | Indirect | AddressOf, lanes: int) -> LLVMValue:
        """A source's elements as integers of their width."""
        code = self.code
        if isinstance(operand, AddressOf):
            operand = Immediate(self.layout.offset(operand.var) + operand.offset, operand.format.name)
        if isinstance(operand, Indirect):
            return self.read_indirect(operand, lanes)
        if isinstance(operand, Immediate) and operand.is_packed:
            return code.consts(operand.elements(lanes), f"i{operand.format.bits}")
        if isinstance(operand, Immediate):
            if operand in self._shifts:
                return code.splat(self._number(operand), lanes)
            return code.const(operand.bits, vector(lanes, f"i{operand.format.bits}"))
        size = operand.var.format.bytes
        element, (block, base) = f"i{8 * size}", self.where(operand)
        if operand.is_scalar:
            return code.splat(code.fetch(block, base, element), lanes)
        element_indices = operand.elements(lanes)
        if element_indices == list(range(lanes)):
            return code.fetch(block, base, vector(lanes, element))
        span, root = max(element_indices) + 1, operand.var.root[0]
        if root in self.promotion.variables and root.bytes <= _WIDEST_LOAD and base % size == root.bytes % size == 0:
            # The whole variable: LLVM promotes memory to values only if loads and stores have the same type.
            element_indices = [base // size + element_index for element_index in element_indices]
            span, base = root.bytes // size, 0
        elif lanes > 1 and element_indices == [lane * element_indices[1] for lane in range(lanes)]:
            packed_fields = self._as_packed_fields(operand, lanes, element_indices[1])
            if packed_fields is not None:
                return packed_fields.of(code)
        if span * size <= _WIDEST_LOAD:
            all_elements = code.fetch(block, base, vector(span, element))
            return code.shuffle(all_elements, all_elements, element_indices)
        lane_values = code.poison(vector(lanes, element))
        for lane, element_index in enumerate(element_indices):
            lane_values = code.insert(lane_values, code.fetch(block, base + element_index * size, element), lane)
        return lane_values

    def _element_offsets(self, operand: Indirect, lanes: int) -> LLVMValue:
        """Return the offset in the register file of each lane's element, i64."""
        code, (address_lanes, element_displacements) = self.code, zip(*operand.elements(lanes))
        address_offset = self.layout.offset(operand.var) + 4 * operand.col
        starts = code.fetch(self.thread, address_offset, vector(operand.addresses(lanes), "i32"))
        starts = code.resize(code.shuffle(starts, starts, address_lanes), 64, False)
        return code.add(
            starts, code.consts([displacement + operand.plus for displacement in element_displacements], "i64")
        )

    def _pointers(self, operand: Indirect, lanes: int, displacement: int) -> list[LLVMValue]:
        """Return a pointer to each lane's element. Pointers of disabled lanes are clamped to the register file."""
        code, element_offsets = self.code, self._element_offsets(operand, lanes)
        element_offsets = code.intrinsic(
            "umin", element_offsets, code.const(self.frame.registers - operand.format.bytes, element_offsets.type)
        )
        return [
            code.at(code.at(self.thread, displacement), code.extract(element_offsets, lane)) for lane in range(lanes)
        ]

    def read_indirect(self, operand: Indirect, lanes: int, displacement: int = 0) -> LLVMValue:
        """Read each lane's element as an integer, `displacement` bytes after the address of the operand."""
        lane_values = self.code.poison(vector(lanes, f"i{operand.format.bits}"))
        for lane, pointer in enumerate(self._pointers(operand, lanes, displacement)):
            lane_values = self.code.insert(lane_values, self.code.load(pointer, lane_values.element), lane)
        return lane_values

    def require_in_bounds(self, inst: Instruction, at: int) -> None:
        """Emit a bounds check of the indirect operands of an instruction: their elements must be within variables."""
        code = self.code
        for operand in inst.indirect:
            element_offsets, bits = self._element_offsets(operand, inst.exec_size), self.acting(inst)
            outside = code.const((1 << inst.exec_size) - 1, "i32") if bits is None else bits
            for base in operand.bases:
                offset_in_variable = code.sub(element_offsets, self.layout.offset(base))
                count = max(base.bytes - operand.format.bytes + 1, 0)
                out_of_bounds = code.icmp("uge", offset_in_variable, code.const(count, element_offsets.type))
                outside = code.and_(outside, code.mask_to_bits(out_of_bounds))
            self.require(code.icmp("eq", outside, 0), at)

    def write_indirect(
        self, operand: Indirect, values: LLVMValue, mask: LLVMValue | None, displacement: int = 0
    ) -> None:
        """Write each lane's element, `displacement` bytes after the address of the operand."""
        code, lanes = self.code, lanes_of(values.type)
        for lane, element_pointer in enumerate(self._pointers(operand, lanes, displacement)):
            value = code.extract(values, lane)
            if mask is None:
                code.store(value, element_pointer)
                continue
            with code.when(code.extract(mask, lane)):
                code.store(value, element_pointer)

    def _as_packed_fields(self, operand: Region | Destination, lanes: int, stride: int) -> _PackedFields | None:
        """Every `stride`-th element as a part of an integer `stride` times as wide; None if no integers contain them.

        LLVM compiles these in two thirds of the time that shuffles of all elements in between take.
        """
        size, (block, base), root = operand.var.format.bytes, self.where(operand), operand.var.root[0]
        unit = stride * size
        inside = root not in self.promotion.variables or root.bytes % unit == 0
        if unit not in (2, 4, 8) or base % size or not inside:
            return None
        word_offset = base - base % unit
        words = self.code.fetch(block, word_offset, vector(lanes, f"i{8 * unit}"))
        return _PackedFields(words, word_offset, 8 * (base % unit), 8 * size)

    def scalar(self, operand: Region | Immediate) -> LLVMValue:
        """The first element of a source, an integer."""
        if isinstance(operand, Immediate):
            return self._number(operand)
        return self.code.fetch(*self.where(operand), f"i{operand.format.bits}")

    def write(self, operand: Destination | Indirect, values: LLVMValue, mask: LLVMValue | None) -> None:
        """Write integers of the destination's width to the lanes that a mask sets; None for all."""
        code = self.code
        if isinstance(operand, Indirect):
            self.write_indirect(operand, values, mask)
            return
        size, lanes, (block, base) = operand.var.format.bytes, lanes_of(values.type), self.where(operand)
        if operand.stride == 1 or lanes == 1:
            if mask is not None:
                values = code.merge(mask, values, code.fetch(block, base, values.type))
            code.put(values, block, base)
            return
        packed_fields = self._as_packed_fields(operand, lanes, operand.stride)
        if packed_fields is not None:
            if mask is not None:
                values = code.merge(mask, values, packed_fields.of(code))
            code.put(packed_fields.with_(code, values), block, packed_fields.word_offset)
            return
        span = (lanes - 1) * operand.stride + 1
        if span * size <= _WIDEST_LOAD:
            old_elements = code.fetch(block, base, vector(span, values.element))
            if mask is not None:
                values = code.merge(mask, values, code.shuffle(old_elements, old_elements, operand.elements(lanes)))
            spread = code.shuffle(values, values, [min(i, lanes - 1) for i in range(span)])
            picks = [i if i % operand.stride else span + i // operand.stride for i in range(span)]
            code.put(code.shuffle(old_elements, spread, picks), block, base)
            return
        for lane, element_index in enumerate(operand.elements(lanes)):
            value, at = code.extract(values, lane), base + element_index * size
            if mask is not None:
                value = code.select(code.extract(mask, lane), value, code.fetch(block, at, value.type))
            code.put(value, block, at)

    # Predicates and masks. A predicate is an i32.

    def flag_offset(self, predicate: Predicate) -> int:
        """Byte offset of a predicate in the thread's block."""
        return self.frame.flags + 4 * self.layout.predicates[predicate]

    def any_nan(self, operand: Destination | Indirect) -> bool:
        """Whether the written value may be a NaN with any bits."""
        return operand.var.root[0] in self.promotion.nans

    def truth(self, predicate: Predicate) -> LLVMValue | None:
        """A predicate that is a vector of i1, with the lanes of all instructions that access it, or None."""
        return self._truths[predicate] if predicate in self.promotion.predicates else None

    def flag(self, predicate: Predicate) -> LLVMValue:
        """All bits of a predicate in the thread's block, an i32."""
        # As many bytes as `write_flag` writes at once: see `Code.fetch`.
        bits = predicate.count if predicate.count in (8, 16) else 32
        return self.code.resize(
            self.code.fetch(self.base(predicate), self.flag_offset(predicate), f"i{bits}"), 32, False
        )

    def chosen(self, inst: Instruction) -> LLVMValue:
        """The guard's bits for the instruction's lanes, the lowest of an i32. Inversion is after any and all."""
        code, guard, lanes = self.code, inst.guard, inst.exec_size
        assert guard
        truth = self.chosen_lanes(inst)
        if truth is not None:
            return code.mask_to_bits(truth)
        bits = self.flag(guard.var)
        if guard.control:
            all_bits = (1 << guard.var.count) - 1
            predicate_bits = code.mask(bits, all_bits)
            any_or_all = (
                code.icmp("ne", predicate_bits, 0)
                if guard.control == "any"
                else code.icmp("eq", predicate_bits, all_bits)
            )
            bits = code.cast("sext", any_or_all, "i32")
        elif not INSTRUCTIONS[inst.name].goes_together(inst):
            bits = code.lshr(bits, inst.first_lane) if inst.first_lane else bits
        if guard.inverted:
            bits = code.not_(bits)
        return code.mask(bits, (1 << lanes) - 1) if lanes < 32 else bits

    def chosen_lanes(self, inst: Instruction) -> LLVMValue | None:
        """`chosen` as a vector of i1, if the guard is one."""
        assert inst.guard
        truth = self.truth(inst.guard.var)
        return self.code.not_(truth) if truth and inst.guard.inverted else truth

    def acting(self, inst: Instruction) -> LLVMValue | None:
        """The lanes in which an instruction acts, the lowest bits of an i32; None for all."""
        code, lanes = self.code, inst.exec_size
        enabled = None
        if self.active is not None and not inst.no_mask and INSTRUCTIONS[inst.name].exec_sizes:
            enabled = code.load(self.active, "i32", 4)
            enabled = code.lshr(enabled, inst.first_lane) if inst.first_lane else enabled
            enabled = code.mask(enabled, (1 << lanes) - 1) if lanes < 32 else enabled
        if inst.guard is None or INSTRUCTIONS[inst.name].selects:
            return enabled
        predicate_bits = self.chosen(inst)
        return predicate_bits if enabled is None else code.and_(predicate_bits, enabled)

    def mask(self, inst: Instruction) -> LLVMValue | None:
        """The lanes in which an instruction acts, as a vector of i1; None for all."""
        if inst.guard and not INSTRUCTIONS[inst.name].selects:
            truth = self.chosen_lanes(inst)
            if truth is not None:
                return truth
        bits = self.acting(inst)
        return None if bits is None else self.code.bits_to_mask(bits, inst.exec_size)

    def write_truth(self, inst: Instruction, truth: LLVMValue) -> None:
        """Write a vector of i1 to the predicate that is the destination, in the lanes that act."""
        if inst["dst"].var in self.promotion.predicates:
            self._truths[inst["dst"].var] = truth
        else:
            self.write_flag(inst, self.code.mask_to_bits(truth))

    def write_flag(self, inst: Instruction, bits: LLVMValue) -> None:
        """Write the lowest bits of an i32 to the predicate that is the destination, in the lanes that act."""
        code, base, flag_offset = self.code, self.base(inst["dst"].var), self.flag_offset(inst["dst"].var)
        lane_mask = (1 << inst.exec_size) - 1
        acting = self.acting(inst)
        if acting is None and inst.exec_size % 8 == 0 and inst.first_lane % 8 == 0:
            # LLVM 22 loses the other lanes when it inserts a byte or word into a value in a mask register.
            code.put(code.resize(bits, inst.exec_size, False), base, flag_offset + inst.first_lane // 8)
            return
        bits = code.mask(bits, lane_mask)
        where = code.const(lane_mask, "i32") if acting is None else acting
        if acting is not None:
            bits = code.and_(bits, acting)
        if inst.first_lane:
            bits, where = code.shl(bits, inst.first_lane), code.shl(where, inst.first_lane)
        old_bits = code.fetch(base, flag_offset, "i32")
        code.put(code.or_(code.and_(old_bits, code.not_(where)), bits), base, flag_offset)

    # Leaving the function.

    def leave(self, at: int, status: Status) -> None:
        """Return; the next call continues at an instruction."""
        self.code.br(_EXIT, *self._leaving(at, status))

    def _leaving(self, at: int, status: Status) -> tuple[LLVMValue, LLVMValue]:
        self._leaves = True
        return self.index(at), self.code.const(status, "i32")

    def _write_exit(self) -> None:
        code = self.code
        at, status = code.begin_with(_EXIT, "i32", "i32")
        for queue in self._queues:
            self.flush(queue)
        code.put(at, self.thread, self.frame.pc)
        if self.active is not None:
            code.put(code.load(self.active, "i32", 4), self.thread, self.frame.active)
        self.release_tiles()
        code.ret(status)

    def require(self, fine: LLVMValue, at: int) -> None:
        """Fail before instruction `at` unless an i1 is set."""
        code = self.code
        continue_label = code.label()
        code.cond_br(fine, continue_label, _EXIT, *self._leaving(at, Status.FAULT))
        code.begin(continue_label)

    def call_semantics(self, at: int) -> None:
        """Run an instruction by its semantic function on the thread's block."""
        code, inst = self.code, self.program.instructions[at]
        assert not any(access.var in self.promotion.variables for access in accesses(inst, self.layout.target))
        active = code.load(self.active, "i32", 4) if self.active is not None else code.const(-1, "i32")
        pointer = self.context("semantics", PTR)
        status = code.call(pointer, self.context("worker"), self.index(at), self.thread, active, result="i32")
        if self.host.multiplies_tiles:
            # Python's libraries may use tiles too.
            code.store(code.const(0, "i32"), _TILES, 4)
        self.require(code.icmp("ne", status, 0), at)
