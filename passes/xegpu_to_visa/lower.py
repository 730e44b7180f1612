"""Lowering of one kernel: the driver that walks its ops, and what the ops' rules share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from mlir import ir
from xegpu_py.passes.xegpu_to_visa.emit import Emitter, const
from xegpu_py.passes.xegpu_to_visa.values import (
    INDEX,
    Block,
    Const,
    KnownMask,
    Lanes,
    Mask,
    Memory,
    NamedBarrier,
    Numbers,
    Reg,
    Value,
    register_type,
    shape_and_element,
)

from xegpu_py.ir.diagnostics import Diagnostic, DiagnosticError, position_of
from xegpu_py.numerics.formats import TYPES
from xegpu_py.target import Target
from xegpu_py.visa.operands import Variable
from xegpu_py.visa.program import Input

FIRST_INPUT = 64
"""Offset of a kernel's first argument in a thread's payload in bytes: behind r0 on every target."""

Rule = Callable[["Lowering", ir.Operation], None]
RULES: dict[str, Rule] = {}
"""What lowers each op, by its name."""


def lowers(*names: str) -> Callable[[Rule], Rule]:
    """Register a function that lowers these ops."""

    def register(rule: Rule) -> Rule:
        for name in names:
            RULES[name] = rule
        return rule

    return register


@dataclass
class Lowering:
    """One kernel as it is lowered.

    Attributes:
        emit: takes the instructions.
        values: what each SSA value is.
        slm_bytes: shared local memory given out so far.
        barriers: named barriers that the kernel allocates.
    """

    target: Target
    emit: Emitter
    values: dict[ir.Value, Value] = field(default_factory=dict)
    slm_bytes: int = 0
    barriers: int = 0
    _op: ir.Operation | None = None
    _implicit: dict[str, Reg] = field(default_factory=dict)
    _payload: int = FIRST_INPUT

    def fail(self, message: str, *notes: str) -> NoReturn:
        """Refuse the op that is being lowered.

        Raises:
            DiagnosticError: at the op.
        """
        assert self._op is not None
        where = position_of(self._op.location)
        attached = tuple(Diagnostic("note", n, where) for n in notes)
        raise DiagnosticError([Diagnostic("error", f"'{self._op.name}' op {message}", where, attached)])

    def block(self, block: ir.Block) -> None:
        """Lower the ops of a block, except its terminator."""
        ops = list(block.operations)
        for op in ops[:-1]:
            self.op(op.operation)

    def op(self, op: ir.Operation) -> None:
        """Lower one op."""
        outer, self._op = self._op, op
        self.emit.where = position_of(op.location)
        rule = RULES.get(op.name)
        if rule is None:
            dialects = ", ".join(sorted({name.partition(".")[0] for name in RULES}))
            self.fail("cannot be lowered to vISA", f"kernels may contain ops of {dialects}, but not all of them")
        try:
            rule(self, op)
        except ValueError as e:
            self.fail(f"cannot be lowered to vISA: {e}")
        self._op = outer
        if outer is not None:
            self.emit.where = position_of(outer.location)

    def value(self, value: ir.Value) -> Value:
        """What an SSA value is."""
        return self.values[value]

    def numbers(self, value: ir.Value) -> Numbers:
        """An SSA value that is numbers."""
        found = self.values[value]
        if not isinstance(found, (Reg, Const)):
            self.fail(f"cannot take a value of type {value.type}")
        return found

    def reg(self, value: ir.Value, type_name: str = "") -> Reg:
        """An SSA value's numbers in registers, one register number for each of its elements."""
        numbers = self.numbers(value)
        shape, _ = shape_and_element(str(value.type))
        count = 1
        for n in shape:
            count *= n
        if isinstance(numbers, Const):
            numbers = self.emit.apply("mov", type_name or numbers.type, count, numbers)
        if numbers.count != count:
            numbers = self.emit.spread(numbers, count)
        return self.emit.in_registers(numbers, type_name)

    def mask(self, value: ir.Value) -> Mask:
        """An SSA value that is truth values, in predicates."""
        found = self.values[value]
        if isinstance(found, KnownMask):
            return self.emit.set_flags(found)
        if not isinstance(found, Mask):
            self.fail(f"cannot take a value of type {value.type}")
        return found

    def set(self, op: ir.Operation, *values: Value) -> None:
        """Say what an op's results are."""
        for result, value in zip(op.results, values):
            self.values[result] = value

    def implicit(self, kind: str, index: int) -> Reg:
        """One of the three dwords of an implicit input."""
        found = self._implicit.get(kind)
        if found is None:
            found = Reg(self.input(kind.lower(), "ud", 3, kind), 0, 3)
            self._implicit[kind] = found
        return self.emit.as_type(Reg(found.var, index, 1), INDEX)

    def input(self, name: str, type_name: str, count: int = 1, kind: str = "") -> Variable:
        """A new input of the kernel."""
        size = TYPES[type_name].bytes
        align = {1: "byte", 2: "word", 4: "dword", 8: "qword"}[size]
        var = Variable(name, type_name, count, align)
        self.emit.variables.append(var)
        self._payload = -(-self._payload // size) * size
        self.emit.inputs.append(Input(var, self._payload, size * count, kind, self.emit.where))
        self._payload += size * count
        return var

    def argument(self, index: int, argument: ir.Value) -> Value:
        """What a kernel's argument is. A memref is its address, and what of its shape and strides is dynamic."""
        text = str(argument.type)
        name = f"in{index}"
        if isinstance(argument.type, ir.MemRefType):
            return self._memref_argument(name, ir.MemRefType(argument.type))
        shape, element = shape_and_element(text)
        if element == "i1":
            raise ValueError(f"argument {index} of type {text}: pass truth values as i8")
        count = 1
        for n in shape:
            count *= n
        return Reg(self.input(name, register_type(element), count), 0, count)

    def _memref_argument(self, name: str, memref: ir.MemRefType) -> Memory:
        base = Reg(self.input(name, "uq"), 0, 1)
        dynamic = ir.ShapedType.get_dynamic_size()

        def number(what: str, value: int, sentinel: int) -> Numbers:
            return Reg(self.input(f"{name}_{what}", INDEX), 0, 1) if value == sentinel else const(value, INDEX)

        shape = tuple(number(f"size{i}", n, dynamic) for i, n in enumerate(memref.shape))
        strides, offset = memref.get_strides_and_offset()
        unknown = ir.ShapedType.get_dynamic_stride_or_offset()
        contiguous = memref.layout == ir.AffineMapAttr.get(ir.AffineMap.get_identity(memref.rank, memref.context))
        found: list[Numbers] = []
        for i in reversed(range(len(strides))):
            if strides[i] != unknown:
                found.insert(0, const(strides[i], INDEX))
            elif contiguous:
                # Contiguous: each stride is the extent of all that lies within.
                found.insert(0, self.multiply(found[0], shape[i + 1]))
            else:
                found.insert(0, number(f"stride{i}", strides[i], unknown))
        return Memory(base, number("offset", offset, unknown), shape, tuple(found), str(memref.element_type))

    def add(self, a: Numbers, b: Numbers) -> Numbers:
        """The sum of two indices."""
        if isinstance(a, Const) and isinstance(b, Const):
            return const(a.value + b.value, INDEX)
        if isinstance(a, Const):
            a, b = b, a
        if isinstance(b, Const) and b.value == 0:
            return a
        return self.emit.apply("add", INDEX, 1, a, b)

    def multiply(self, a: Numbers, b: Numbers) -> Numbers:
        """The product of two indices."""
        if isinstance(a, Const) and isinstance(b, Const):
            return const(a.value * b.value, INDEX)
        if isinstance(a, Const):
            a, b = b, a
        if isinstance(b, Const):
            if b.value == 1:
                return a
            if b.value == 0:
                return b
            if b.value > 0 and b.value & (b.value - 1) == 0:
                return self.emit.apply("shl", INDEX, 1, a, const(b.value.bit_length() - 1, INDEX))
        return self.emit.apply("mul", INDEX, 1, a, b)

    def address(self, base: Numbers, offset: Numbers, size: int) -> Numbers:
        """A 64-bit address: `base` and `offset` elements of `size` bytes."""
        if isinstance(offset, Const):
            if offset.value == 0:
                return base
            return self.emit.apply("add", "uq", 1, base, const(offset.value * size, "q"))
        wide = self.emit.apply("mul", "q", 1, offset, const(size, INDEX)) if size > 1 else offset
        return self.emit.apply("add", "uq", 1, base, wide)

    def local_address(self, base: Numbers, offset: Numbers, size: int) -> Numbers:
        """An address in shared local memory, ud: `base` and `offset` elements of `size` bytes."""
        place = self.multiply(offset, const(size, INDEX))
        if isinstance(base, Const) and isinstance(place, Const):
            return const(base.value + place.value, "ud")
        if isinstance(base, Const):
            base, place = place, base
        if isinstance(place, Const) and place.value == 0:
            return self.emit.as_type(self.emit.in_registers(base), "ud")
        return self.emit.apply("add", "ud", 1, base, place)

    def index_list(self, values: Sequence[Any]) -> list[Numbers]:
        """Indices that are SSA values or integers."""
        return [const(v, INDEX) if isinstance(v, int) else self.numbers(v) for v in values]


def parts_of(value: Value) -> list[Numbers | Mask | KnownMask]:
    """The registers, constants and predicates that a value consists of."""
    if isinstance(value, (Reg, Const, Mask, KnownMask)):
        return [value]
    if isinstance(value, Block):
        return [value.base, *value.surface, *value.lead, *value.strides, *value.offsets]
    if isinstance(value, Lanes):
        return [value.addresses]
    if isinstance(value, NamedBarrier):
        return [value.id, value.count]
    assert isinstance(value, Memory)
    return [value.base, value.offset, *value.shape, *value.strides]


def with_parts(value: Value, parts: Sequence[Any]) -> Value:
    """The value with other parts, in the order of `parts_of`."""
    if isinstance(value, (Reg, Const, Mask, KnownMask)):
        part: Value = parts[0]
        return part
    if isinstance(value, Block):
        rest = iter(parts[1:])
        groups = (value.surface, value.lead, value.strides, value.offsets)
        return Block(parts[0], *(tuple(next(rest) for _ in group) for group in groups))
    if isinstance(value, Lanes):
        return Lanes(parts[0])
    if isinstance(value, NamedBarrier):
        return NamedBarrier(parts[0], parts[1])
    assert isinstance(value, Memory)
    rank = len(value.shape)
    return Memory(
        parts[0], parts[1], tuple(parts[2 : 2 + rank]), tuple(parts[2 + rank : 2 + 2 * rank]), value.element, value.slm
    )


__all__ = ["RULES", "Lowering", "lowers", "parts_of", "with_parts"]
