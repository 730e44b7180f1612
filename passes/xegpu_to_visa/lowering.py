"""Lowering of one kernel: the driver that walks its ops, and the conversions, index arithmetic and inputs of rules."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from functools import lru_cache
from typing import Any, TypeVar

from mlir import ir
from msgspec.structs import replace

from xegpu_py.dialects.xegpu import Mode, TensorDesc
from xegpu_py.dialects.xegpu.types import is_slm
from xegpu_py.ir.diagnostics import Position, position_of
from xegpu_py.numerics.formats import TYPES
from xegpu_py.passes.analysis.integer_analysis import (
    Bounds,
    Integers,
    Limits,
    checked,
    contains,
    products,
    sums,
    type_range,
)
from xegpu_py.passes.analysis.ir_queries import (
    INDEX,
    byte_memref,
    constant_of,
    defining_op,
    memref_bits,
    register_type,
    shape_and_element,
    shape_of,
)
from xegpu_py.passes.rewriting.rewriter import Rewriter, Rules
from xegpu_py.passes.xegpu_to_visa.arith_expansion import assign, constants_in_registers, copy_to_new_registers, product
from xegpu_py.passes.xegpu_to_visa.emitter import ALIGNMENTS, MOST_OFFSET, Emitter
from xegpu_py.passes.xegpu_to_visa.register_values import (
    NARROW,
    AnyNumbers,
    BlockDescriptor,
    Const,
    Dense,
    KnownMask,
    Lanes,
    Mask,
    MemRefValue,
    NamedBarrierNumbers,
    Numbers,
    Reg,
    Splat,
    Value,
    bounds_of,
    clamp,
    const,
    index_type,
    value_parts,
    with_value_parts,
)
from xegpu_py.target import Target
from xegpu_py.visa.operands import Variable
from xegpu_py.visa.program import PRINT_BUFFER, Input

FIRST_INPUT = 64
"""Offset of a kernel's first argument in a thread's payload in bytes: after r0 on every target."""

_LAUNCH_IDS = {"LOCAL_ID": "thread_id", "LOCAL_SIZE": "block_dim", "GROUP_COUNT": "grid_dim"}
"""The names of the dwords of implicit inputs."""

_Handle = TypeVar("_Handle", BlockDescriptor, Lanes, MemRefValue, NamedBarrierNumbers)

Term = tuple[Numbers, int, int]
"""An index as the product of an index and a constant, plus a constant."""


Results = Value | tuple[Value, ...] | None
"""The value of an op's result, or those of all results; None if the rule has set them."""

LoweringRule = Callable[["Lowering", ir.Operation], Results]

vc_lowering_rule: Rules[LoweringRule] = Rules()
"""The lowering rules by op name."""


class Lowering(Rewriter):
    """The state of the lowering of one kernel.

    Attributes:
        emit: builds the program.
        integers: the bounds of its integers.
        limits: the limits of its launches.
        values: the registers, constants or handles of each SSA value.
        slm_bytes: bytes of shared local memory allocated so far.
        barriers: named barriers that the kernel allocates, and the barrier of `has_workgroup_barrier`.
        has_workgroup_barrier: whether the kernel has a barrier of the workgroup, which on hardware is named barrier 0.
            The kernel's named barriers then begin at 1.
    """

    rules = vc_lowering_rule

    def __init__(
        self, target: Target, emit: Emitter, integers: Integers, limits: Limits, has_workgroup_barrier: bool = False
    ) -> None:
        """Create the state before the first op."""
        self.target, self.emit, self.integers, self.limits = target, emit, integers, limits
        self.has_workgroup_barrier = has_workgroup_barrier
        self.values: dict[ir.Value, Value] = {}
        self.slm_bytes = self.barriers = 0
        self._implicit: dict[str, Reg] = {}
        self._address_only: dict[ir.Value, bool] = {}
        self._dividends: dict[tuple[Variable, int, int], tuple[Reg, int]] = {}
        self._prints: Reg | None = None
        self._payload = FIRST_INPUT
        self._last: tuple[ir.Location, Position] | None = None

    def block(self, block: ir.Block) -> None:
        """Lower the ops of a block, except its terminator."""
        for op in list(block.operations)[:-1]:
            self.op(op.operation)

    def op(self, op: ir.Operation) -> None:
        """Lower one op."""
        outer, self._op = self._op, op
        self.emit.where = self._position(op)
        lowering = self.rules.get(op.name)
        if lowering is None:
            dialects = ", ".join(sorted({name.partition(".")[0] for name in self.rules}))
            self.fail("cannot be lowered to vISA", f"kernels can contain supported ops of {dialects}")
        try:
            with self.emit.scope() if len(op.regions) else nullcontext():
                self.apply(lowering, op)
        except ValueError as e:
            self.fail(f"cannot be lowered to vISA: {e}")
        self._op = outer
        if outer is not None:
            self.emit.where = self._position(outer)

    def _position(self, op: ir.Operation) -> Position:
        # Comparing locations takes a tenth of the time of reading one; most ops have that of the previous op.
        location = op.location
        if self._last is None or location != self._last[0]:
            self._last = location, position_of(location)
        return self._last[1]

    def require_vc(self, op: ir.Operation) -> Any:
        """The view of an op, which must not be in SIMT mode."""
        view = op.opview
        if view.mode != Mode.VC:
            self.fail("in SIMT mode cannot be lowered to vISA", "add 'mode = vc', or run xegpu-simt-to-vc first")
        return view

    def value(self, value: ir.Value) -> Value:
        """The registers, constant or handle of an SSA value. Splats and vectors of constants are moved to registers."""
        representation = self.values[value]
        if isinstance(representation, Splat):
            number = representation.number
            lanes = replace(self.emit.cse("mov", number.type, representation.count, number), bounds=number.bounds)
            self._keep_dividends(number, lanes)
            return lanes
        if isinstance(representation, Dense):
            registers = constants_in_registers(self.emit, representation.numbers)
            is_index = shape_and_element(value)[1] == "index"
            return self.as_index(registers, self.integers.bounds(value)) if is_index else registers
        return representation

    def handle(self, value: ir.Value, kind: type[_Handle]) -> _Handle:
        """An SSA value that is a descriptor, memref or barrier."""
        found = self.value(value)
        assert isinstance(found, kind)
        return found

    def numbers(self, value: ir.Value) -> Numbers:
        """An SSA value as numbers."""
        found = self.value(value)
        if not isinstance(found, (Reg, Const)):
            self.fail(f"cannot take a value of type {value.type}")
        return found

    def operand(self, value: ir.Value) -> Numbers:
        """An SSA value as an operand of an instruction; the number of a splat is read for all lanes."""
        representation = self.values[value]
        return representation.number if isinstance(representation, Splat) else self.numbers(value)

    def type_of(self, value: ir.Value) -> str:
        """The register type of numeric SSA values; for an index the least type for its range."""
        element = shape_and_element(value)[1]
        return index_type(self.integers.bounds(value)) if element == "index" else register_type(element)

    def reg(self, value: ir.Value, type_name: str = "") -> Reg:
        """An SSA value's numbers in registers, one register number for each of its elements."""
        numbers = self.numbers(value)
        count = math.prod(shape_of(value))
        if isinstance(numbers, Const):
            numbers = self.emit.apply("mov", type_name or numbers.type, count, numbers)
        return self.emit.in_registers(self.emit.broadcast(numbers, count), type_name)

    def mask(self, value: ir.Value) -> Mask:
        """An SSA value that is truth values, in predicates."""
        found = self.values[value]
        if isinstance(found, KnownMask):
            return self.emit.set_flags(found)
        if not isinstance(found, Mask):
            self.fail(f"cannot take a value of type {value.type}")
        return found

    def replace(self, op: ir.Operation, *values: Value) -> None:
        """Set the results of an op."""
        for result, value in zip(op.results, values):
            self.define(result, value)

    def define(self, result: ir.Value, value: Value) -> None:
        """Set an SSA value. An index gets the register type and bounds of its range."""
        if isinstance(value, (Reg, Const)) and shape_and_element(result)[1] == "index":
            value = self.as_index(value, self.integers.bounds(result))
        self.values[result] = value

    def as_index(self, numbers: Numbers, bounds: Bounds | None = None) -> Numbers:
        """Convert signed integers to indices of the type that their bounds need."""
        if isinstance(numbers, Const):
            return self.index(numbers.value, numbers.count)
        low, high = bounds_of(numbers)
        bounds = (max(low, bounds[0]), min(high, bounds[1])) if bounds else (low, high)
        result = replace(self.cast(numbers, index_type(bounds)), bounds=bounds)
        self._keep_dividends(numbers, result)
        return result

    def cast_to_merge_type(self, value: Value, merged: ir.Value, fixed: Sequence[bool] = ()) -> Value:
        """Convert a value to the register types of an SSA value that merges several values.

        Args:
            fixed: the parts that are the same in all merged values; by default none.
        """
        if isinstance(value, (BlockDescriptor, MemRefValue)):
            parts = value_parts(value)
            # The parts before these are addresses, or always have 32 bits.
            first = 1 + len(value.surface) if isinstance(value, BlockDescriptor) else 1
            types = [INDEX] * len(parts)
            if isinstance(value, BlockDescriptor):
                bounds = self._offsets_of(value, merged)
                types[len(parts) - len(bounds) :] = map(index_type, bounds)
            unchanged = [i < first or bool(fixed and fixed[i]) for i in range(len(parts))]
            converted = [
                p if k or isinstance(p, (Mask, KnownMask)) else self.cast(p, t)
                for p, t, k in zip(parts, types, unchanged)
            ]
            return with_value_parts(value, converted)
        if isinstance(value, (Reg, Const)) and shape_and_element(merged)[1] == "index":
            return self.cast(value, self.type_of(merged))
        return value

    def with_range(self, value: Value, merged: ir.Value) -> Value:
        """Set the bounds of a merged value to the range of its SSA value."""
        if isinstance(value, BlockDescriptor):
            pairs = zip(value.offsets, self._offsets_of(value, merged))
            return replace(value, offsets=tuple(replace(o, bounds=b) if isinstance(o, Reg) else o for o, b in pairs))
        if isinstance(value, Reg) and shape_and_element(merged)[1] == "index":
            return replace(value, bounds=self.integers.bounds(merged))
        return value

    def _offsets_of(self, block: BlockDescriptor, value: ir.Value) -> list[Bounds]:
        """The bounds of a block's offsets; offsets within a surface have 32 bits."""
        bounds = list(self.integers.offsets(value, len(block.offsets)))
        if block.surface:
            bounds[-2:] = [clamp(b) for b in bounds[-2:]]
        return bounds

    def cast(self, numbers: AnyNumbers, name: str) -> AnyNumbers:
        """Signed integers extended or truncated to another type."""
        if isinstance(numbers, Const):
            return const(numbers.value, name, numbers.count)
        bits, target_bits = numbers.format.bits, TYPES[name].bits
        if bits == target_bits:
            return self.emit.as_type(numbers, name)
        if bits > target_bits and numbers.count == 1:
            # The lower half of a 64-bit element is a 32-bit element.
            return self.emit.as_type(numbers, name).slice(0, 1)
        return self.emit.apply("mov", name, numbers.count, numbers)

    @staticmethod
    @lru_cache(maxsize=4096)
    def index(value: int, count: int = 1) -> Const:
        """A constant index."""
        return const(value, index_type((value, value)), count)

    def implicit_input(self, kind: str, index: int) -> Reg:
        """One of the three dwords of an implicit input, an index."""
        dwords = self._implicit.get(kind)
        if dwords is None:
            dwords = Reg(self.input(kind.lower(), "ud", 3, kind), 0, 3)
            self._implicit[kind] = dwords
        bounds = self.limits.launch_range(_LAUNCH_IDS[kind], index)
        return replace(self.cast(Reg(dwords.var, index, 1), index_type(bounds)), bounds=bounds)

    def input(self, name: str, type_name: str, count: int = 1, kind: str = "") -> Variable:
        """A new input of the kernel."""
        size = TYPES[type_name].bytes
        var = Variable(name, type_name, count, ALIGNMENTS[size])
        self.emit.variables.append(var)
        self._payload = -(-self._payload // size) * size
        grf, total = self.target.grf_bytes, size * count
        if total <= grf < self._payload % grf + total:
            # The finalizer refuses an input smaller than a register that crosses a register boundary.
            self._payload = -(-self._payload // grf) * grf
        self.emit.inputs.append(Input(var, self._payload, size * count, kind, self.emit.where))
        self._payload += size * count
        return var

    def print_buffer(self) -> Reg:
        """The address of the print buffer."""
        if self._prints is None:
            self._prints = Reg(self.input(PRINT_BUFFER, "uq"), 0, 1)
        return self._prints

    def argument(self, index: int, argument: ir.Value) -> Value:
        """The inputs of a kernel's argument. A memref has its address, and its dynamic extents and strides.

        A memref of elements of 2 or 4 bits becomes a memref of bytes.
        """
        name = f"in{index}"
        if isinstance(argument.type, ir.MemRefType):
            if is_slm(ir.MemRefType(argument.type).memory_space):
                remedy = "allocate it in the kernel by memref.alloc or as its workgroup memory"
                raise ValueError(f"argument {index} of type {argument.type} is in shared local memory: {remedy}")
            return self._memref_argument(name, ir.MemRefType(argument.type))
        shape, element = shape_and_element(argument)
        if element == "i1":
            raise ValueError(f"argument {index} of type {argument.type} is not supported: pass i1 as i8")
        count = math.prod(shape)
        if element == "index":
            bounds = self.limits.argument
            return Reg(self.input(name, index_type(bounds), count), 0, count, bounds)
        return Reg(self.input(name, register_type(element), count), 0, count)

    def _memref_argument(self, name: str, memref: ir.MemRefType) -> MemRefValue:
        if memref_bits(memref):
            memref = byte_memref(memref)
        base = Reg(self.input(name, "uq"), 0, 1)
        dynamic = ir.ShapedType.get_dynamic_size()

        bounds = self.limits.array(str(memref.element_type))

        def number(suffix: str, value: int, sentinel: int) -> Numbers:
            if value != sentinel:
                return self.index(value)
            return Reg(self.input(f"{name}_{suffix}", index_type(bounds)), 0, 1, bounds)

        shape = tuple(number(f"size{i}", n, dynamic) for i, n in enumerate(memref.shape))
        strides, offset = memref.get_strides_and_offset()
        unknown = ir.ShapedType.get_dynamic_stride_or_offset()
        contiguous = memref.layout == ir.AffineMapAttr.get(ir.AffineMap.get_identity(memref.rank, memref.context))
        known_strides: list[Numbers] = []
        for i in reversed(range(len(strides))):
            if strides[i] != unknown:
                known_strides.insert(0, self.index(strides[i]))
            elif contiguous:
                # A contiguous memref: each stride is the product of the inner extents.
                known_strides.insert(0, self.multiply(known_strides[0], shape[i + 1], bounds))
            else:
                known_strides.insert(0, number(f"stride{i}", strides[i], unknown))
        return MemRefValue(
            base, number("offset", offset, unknown), shape, tuple(known_strides), str(memref.element_type)
        )

    def add(self, a: Numbers, b: Numbers, within: Bounds | None = None) -> Numbers:
        """The sum of two indices, optionally with known bounds."""
        if isinstance(a, Const) and isinstance(b, Const):
            return self.index(a.value + b.value)
        if isinstance(a, Const):
            a, b = b, a
        if isinstance(b, Const) and b.value == 0:
            return a
        return self._index_instruction("add", a, b, within or sums(bounds_of(a), bounds_of(b)))

    def multiply(self, a: Numbers, b: Numbers, within: Bounds | None = None) -> Numbers:
        """The product of two indices, optionally with known bounds."""
        if isinstance(a, Const) and isinstance(b, Const):
            return self.index(a.value * b.value)
        if isinstance(a, Const):
            a, b = b, a
        bounds = within or products(bounds_of(a), bounds_of(b))
        if isinstance(b, Const):
            if b.value == 1:
                return a
            if b.value == 0:
                return b
            if b.value > 0 and b.value & (b.value - 1) == 0 and index_type(bounds) == NARROW:
                return self._index_instruction("shl", a, const(b.value.bit_length() - 1, NARROW), bounds)
        return self._index_instruction("mul", a, b, bounds)

    def _index_instruction(self, instruction: str, a: Numbers, b: Numbers, bounds: Bounds) -> Reg:
        """An instruction on two indices with known bounds of the result; the first index is in registers."""
        kind, bounds = index_type(bounds), checked(bounds)
        if kind == NARROW:
            a, b = (self.cast(n, NARROW) for n in (a, b))
            result = self.emit.cse(instruction, kind, 1, a, b)
        elif instruction == "mul":
            result = self.product(a, b, 1)
        else:
            result = self.emit.cse(instruction, kind, 1, *self.widen_for_64_bit_sum(a, b))
        return replace(result, bounds=bounds)

    def product(self, a: Numbers, b: Numbers, count: int) -> Reg:
        """The lowest 64 bits of a product, or the available product of the same integers."""
        return self.emit.memoized(("product", a, b, count), lambda: product(self.emit, a, b, count), (a, b))

    def widen_for_64_bit_sum(self, a: Numbers, b: Numbers) -> tuple[Numbers, Numbers]:
        """The operands of a 64-bit sum. One is widened to 64 bits if none is, because they determine the width."""
        if INDEX in (a.type, b.type):
            return a, b
        if isinstance(b, Const):
            return a, const(b.value, INDEX, b.count)
        return self.emit.in_registers(a, INDEX), b

    def clamp_to_32_bits(self, numbers: Numbers) -> Numbers:
        """An index clamped to the range of 32 bits."""
        if isinstance(numbers, Const):
            return const(clamp(bounds_of(numbers))[0], NARROW, numbers.count)
        if numbers.type == NARROW:
            return numbers
        result = self.emit.cse("mov", NARROW, numbers.count, numbers, saturate=True)
        return replace(result, bounds=clamp(bounds_of(numbers)))

    def add_clamped(self, a: Numbers, b: Numbers) -> Numbers:
        """The sum of two indices, clamped to the range of 32 bits."""
        bounds = sums(bounds_of(a), bounds_of(b))
        if index_type(bounds) == NARROW:
            return self.add(a, b)
        if isinstance(a, Const):
            a, b = b, a
        if isinstance(a, Const) or (isinstance(b, Const) and b.value == 0):
            return self.clamp_to_32_bits(self.add(a, b))
        total = self.emit.cse("add", NARROW, 1, a, b, saturate=True)
        return replace(total, bounds=clamp(bounds))

    def address(self, base: Numbers, offset: Numbers, size: int, slm: bool = False) -> Numbers:
        """An address: `base` and `offset` elements of `size` bytes; 64 bits, uq, or in shared local memory ud."""
        if slm:
            return self._slm_address(base, offset, size)
        if isinstance(offset, Const):
            if offset.value == 0:
                return base
            return self.emit.cse("add", "uq", 1, base, const(offset.value * size, INDEX))
        return self.emit.cse("add", "uq", 1, base, self.lane_offsets_in_bytes(offset, size))

    def note_exact_shift(self, quotients: Reg, dividends: Reg, bits: int) -> None:
        """Remember the integers whose right shift by `bits` is exact, for addresses, which would undo the shift."""
        self._dividends[_registers_of(quotients)] = self.emit.as_unsigned(dividends), bits

    def _keep_dividends(self, numbers: Reg, copies: Reg) -> None:
        if (dividends := self._dividends.get(_registers_of(numbers))) is not None:
            self._dividends[_registers_of(copies)] = dividends

    def _undivided(self, offsets: Numbers, size: int) -> tuple[Numbers, int]:
        """Offsets in elements of `size` bytes, or in bytes if an exact shift divided those by `size`; and the unit."""
        if isinstance(offsets, Reg):
            dividends, bits = self._dividends.get(_registers_of(offsets), (offsets, 0))
            if bits and size == 1 << bits:
                return self.emit.broadcast(dividends, offsets.count), 1
        return offsets, size

    def in_bytes(self, offsets: Numbers, size: int) -> Numbers:
        """Offsets in elements of `size` bytes as 64-bit offsets in bytes, or as they are if that is the same."""
        return self.product(offsets, const(size, NARROW), offsets.count) if size > 1 else offsets

    def lane_offsets_in_bytes(self, offsets: Numbers, size: int) -> Numbers:
        """The offsets of lanes in bytes; in 32 bits, if their bounds allow."""
        offsets, size = self._undivided(offsets, size)
        low, high = bounds_of(offsets)
        if offsets.type != INDEX and low >= 0 and high * size < 1 << 32 and size.bit_count() == 1 < size:
            shift = const(size.bit_length() - 1, "uw")
            return self.emit.cse("shl", "ud", offsets.count, self.emit.as_type(offsets, "ud"), shift)
        return self.in_bytes(offsets, size)

    def _slm_address(self, base: Numbers, offset: Numbers, size: int) -> Numbers:
        """An address in shared local memory, ud: `base` and `offset` elements of `size` bytes."""
        offset_in_bytes = self.slm_offset_in_bytes(offset, size)
        if isinstance(base, Const) and isinstance(offset_in_bytes, Const):
            return const(base.value + offset_in_bytes.value, "ud")
        if isinstance(base, Const):
            base, offset_in_bytes = offset_in_bytes, base
        if isinstance(offset_in_bytes, Const) and offset_in_bytes.value == 0:
            return self.emit.as_type(self.emit.in_registers(base), "ud")
        assert isinstance(base, Reg)
        return self.add_slm_offsets(base, offset_in_bytes)

    def slm_offset_in_bytes(self, offsets: Numbers, size: int) -> Numbers:
        """Offsets in elements of `size` bytes as 32-bit offsets in bytes.

        Offsets that are far out of bounds saturate, since they must not wrap around to valid offsets.
        """
        offsets, size = self._undivided(offsets, size)
        offsets = self.clamp_to_32_bits(offsets)
        low, high = (n * size for n in bounds_of(offsets))
        if isinstance(offsets, Const):
            return const(clamp((low, high))[0], NARROW, offsets.count)
        if size == 1:
            return offsets
        if contains((low, high), type_range(32)):
            shift = const(size.bit_length() - 1, "uw")
            scaled = self.emit.cse("shl", NARROW, offsets.count, offsets, shift)
        else:
            scaled = self.emit.cse("mul", NARROW, offsets.count, offsets, const(size, "w"), saturate=True)
        return replace(scaled, bounds=clamp((low, high)))

    def add_slm_offsets(self, at: Reg, addend: Numbers, into: Reg | None = None) -> Reg:
        """The sum of offsets in shared local memory, in bytes, ud. One that could wrap around saturates.

        Args:
            into: the registers of the result; by default those of any equal sum.
        """
        bounds = sums(bounds_of(at), bounds_of(addend))
        saturates = not contains(bounds, type_range(32))
        name = NARROW if saturates else "ud"
        operands = [self.emit.as_type(n, name) if n.type == "ud" else n for n in (at, addend)]
        if into is None:
            into = self.emit.as_type(self.emit.cse("add", name, at.count, *operands, saturate=saturates), "ud")
        else:
            self.emit.apply("add", name, at.count, *operands, into=self.emit.as_type(into, name), saturate=saturates)
        return replace(into, bounds=None if saturates else bounds)

    def element_address(
        self, base: Numbers, indices: Iterable[Term], strides: Iterable[Numbers], size: int, slm: bool
    ) -> tuple[Reg, int]:
        """The address of an element of `size` bytes: one in a register, and the bytes that its messages add to it.

        Args:
            indices: its index in each dimension; they may begin with the offset of a memref, whose stride is 1.
            strides: the stride of each dimension, in elements.
        """
        constant = 0
        terms: list[tuple[Numbers, Numbers]] = []
        for (index, factor, step), stride in zip(indices, strides):
            if isinstance(stride, Const):
                constant += step * stride.value
                stride = self.index(factor * stride.value)
            else:
                index = self.add(self.multiply(index, self.index(factor)), self.index(step))
            if index != self.index(0):
                terms.append((index, stride))
        pairs, constant, size = self._terms_in_bytes(terms, constant, size, slm)
        total: Numbers = self.index(0)
        for index, stride in pairs:
            total = self.add(total, self.multiply(index, stride))
        low, high = bounds_of(total)
        # Addresses in shared local memory have 32 bits: an index beyond them must not wrap around.
        wraps = slm and index_type((min(low, low + constant), max(high, high + constant))) != NARROW
        if wraps or abs(constant * size) >= MOST_OFFSET:
            total, constant = self.add(total, self.index(constant)), 0
        byte_offset = constant * size
        if isinstance(base, Const):
            base, byte_offset = const(0, base.type), byte_offset + base.value
        return self.emit.in_registers(self.address(base, total, size, slm)), byte_offset

    def _terms_in_bytes(
        self, terms: Sequence[tuple[Numbers, Numbers]], constant: int, size: int, slm: bool
    ) -> tuple[Sequence[tuple[Numbers, Numbers]], int, int]:
        """Convert a sum of products and a constant to bytes if that saves an instruction; also returns their unit."""
        scaled = [(index, self.index(s.value * size)) for index, s in terms if isinstance(s, Const) and s.value != 1]
        if len(scaled) < len(terms) or not scaled:
            return terms, constant, size
        corners = [[bound * s.value for bound in bounds_of(index)] for index, s in scaled]
        bounds = sum(map(min, corners)) + constant * size, sum(map(max, corners)) + constant * size
        # A product that wraps around would be a valid offset in shared local memory; offsets must saturate instead.
        return (terms, constant, size) if slm and not contains(bounds, type_range(64)) else (scaled, constant * size, 1)

    def affine_term(self, index: ir.Value | int | Numbers, depth: int = 4) -> Term:
        """An index as the product of an index and a constant, plus a constant.

        Constants are extracted from sums and products up to a depth, and from those that only addresses use. Addresses
        multiply by the factors; other products are computed.
        """
        if isinstance(index, (int, Const)):
            return self.index(0), 1, index if isinstance(index, int) else index.value
        if isinstance(index, Reg):
            return index, 1, 0
        numbers, op = self.numbers(index), defining_op(index)
        if isinstance(numbers, Const):
            return self.affine_term(numbers)
        if op is None or op.name not in ("arith.addi", "arith.muli"):
            return numbers, 1, 0
        second, adds = self.numbers(op.operands[1]), op.name == "arith.addi"
        if isinstance(second, Const) and self._only_addresses(index):
            variable, factor, constant = self.affine_term(op.operands[0])
            addend = second.value
            return (variable, factor, constant + addend) if adds else (variable, factor * addend, constant * addend)
        if depth and adds:
            (a, _, first), (b, _, last) = (self.affine_term(v, depth - 1) for v in op.operands)
            if first or last:
                return self.add(a, b), 1, first + last
        elif depth and isinstance(second, Const):
            variable, _, constant = self.affine_term(op.operands[0], depth - 1)
            if constant:
                return self.multiply(variable, second), 1, constant * second.value
        return numbers, 1, 0

    def _only_addresses(self, value: ir.Value) -> bool:
        """Return whether all uses of an index, and of its sums with constants, are addresses of elements or lines."""
        only_addresses = self._address_only.get(value)
        if only_addresses is None:
            only_addresses = self._address_only[value] = all(map(self._is_address_use, value.uses))
        return only_addresses

    def _is_address_use(self, use: ir.OpOperand) -> bool:
        op = use.owner
        if op.name == "arith.addi":
            return constant_of(op.operands[1]) is not None and self._only_addresses(op.results[0])
        if op.name == "xegpu.create_nd_tdesc":
            return len(TensorDesc.of(op.results[0]).shape) <= 1
        return op.name in ("memref.load", "memref.store")

    def split_uniform(self, value: ir.Value) -> tuple[Numbers, Reg]:
        """Split a vector of indices into the sum of an index and a vector, which has 32 bits if its range allows."""
        total: Numbers = self.index(0)
        uniform_parts: dict[ir.Value, Numbers | None] = {}
        while not isinstance(value.owner, ir.Block) and self.type_of(value) == INDEX:
            op = value.owner.operation
            if op.name != "arith.addi":
                break
            sums = [self._uniform(v, uniform_parts) for v in op.operands]
            number = next((i for i, n in enumerate(sums) if n), None)
            if number is None:
                break
            total, value = self.add(total, sums[number] or total), op.operands[1 - number]
        return total, self.reg(value)

    def _uniform(self, value: ir.Value, known: dict[ir.Value, Numbers | None]) -> Numbers | None:
        """The index of all elements of a vector, if it is a broadcast or computed from broadcasts, computed once."""
        if value not in known:
            known[value] = self._new_uniform(value, known)
        return known[value]

    def _new_uniform(self, value: ir.Value, known: dict[ir.Value, Numbers | None]) -> Numbers | None:
        if isinstance(value.owner, ir.Block):
            return None
        numbers, op = self.values[value], value.owner.operation
        if isinstance(numbers, Const):
            return self.index(numbers.value)
        if op.name == "vector.broadcast" and not shape_and_element(op.operands[0])[0]:
            return self.numbers(op.operands[0])
        if op.name in ("arith.addi", "arith.muli"):
            a, b = (self._uniform(v, known) for v in op.operands)
            if a and b:
                return self.add(a, b) if op.name == "arith.addi" else self.multiply(a, b)
        return None

    def index_list(self, values: Sequence[Any]) -> list[Numbers]:
        """Indices that are SSA values or integers."""
        return [self.index(v) if isinstance(v, int) else self.numbers(v) for v in values]


def _registers_of(numbers: Reg) -> tuple[Variable, int, int]:
    """The registers of numbers, whatever their type."""
    root, inner = numbers.var.root
    return root, inner + numbers.first * numbers.format.bytes, numbers.count


def result_of(low: Lowering, op: ir.Operation) -> tuple[int, str, str]:
    """The number of elements, the MLIR element type and the vISA type of an op's result."""
    shape, element = shape_and_element(op.results[0])
    return math.prod(shape), element, "" if element == "i1" else low.type_of(op.results[0])


def sources_of(low: Lowering, op: ir.Operation) -> list[Numbers]:
    """The operands of an op as those of an instruction."""
    return [low.operand(v) for v in op.operands]


def select_handle(low: Lowering, op: ir.Operation) -> Value:
    """`arith.select` of descriptors, memrefs and barriers: a branch."""
    condition, true_value, false_value = op.operands
    result = copy_to_new_registers(low.emit, low.cast_to_merge_type(low.value(true_value), op.results[0]))
    end = low.emit.label("EndSelect")
    low.emit.jump(end, when=low.mask(condition))
    assign(low.emit, result, low.value(false_value))
    low.emit.emit_label(end)
    return low.with_range(result, op.results[0])
