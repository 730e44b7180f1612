"""Text of MLIR's `llvm` dialect, written value by value.

The JIT writes whole functions of some thousand ops. As text MLIR parses them several times faster than its Python
builders make them, and what is written here is LLVM IR already: no lowering passes run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import gcd


@dataclass(frozen=True)
class Value:
    """An SSA value: its name and its type in MLIR's text."""

    name: str
    type: str

    def __str__(self) -> str:
        return self.name

    @property
    def lanes(self) -> int:
        """Elements of a vector; 0 for a scalar."""
        return lanes_of(self.type)

    @property
    def element(self) -> str:
        """The type, or a vector's element type."""
        return element_of(self.type)


PTR = "!llvm.ptr"


def vector(lanes: int, element: str) -> str:
    """The type of so many elements; a scalar for none."""
    return f"vector<{lanes}x{element}>" if lanes else element


def lanes_of(kind: str) -> int:
    """Elements of a type; 0 for a scalar."""
    return int(kind[7:].partition("x")[0]) if kind.startswith("vector<") else 0


def element_of(kind: str) -> str:
    """A vector type's element type; else the type."""
    return kind[7:-1].partition("x")[2] if kind.startswith("vector<") else kind


def bits_of(kind: str) -> int:
    """Width of a type's elements in bits."""
    element = element_of(kind)
    return 64 if element == PTR else 16 if element == "bf16" else int(element[1:])


class Code:
    """The body of one function."""

    def __init__(
        self, name: str, arguments: Sequence[str], result: str = "", attributes: str = "", alignment: int = 1
    ) -> None:
        """Begin a function.

        Args:
            arguments: types, with their attributes in braces.
            result: its result's type; "" for none.
            attributes: LLVM's attributes of the function, as items of `passthrough`.
            alignment: of what `fetch` and `put` work on.
        """
        self.name, self.result, self.attributes, self.alignment = name, result, attributes, alignment
        self.arguments = [Value(f"%a{i}", t.partition(" {")[0]) for i, t in enumerate(arguments)]
        self._signature = ", ".join(f"%a{i}: {t}" for i, t in enumerate(arguments))
        self._entry: list[str] = []
        self._lines: list[str] = []
        self._constants: dict[tuple[str, str], Value] = {}
        self._count = 0

    def text(self, linkage: str = "internal ", extra: str = "") -> str:
        """The whole function."""
        result = f" -> {self.result}" if self.result else ""
        attributes = f" attributes {{passthrough = [{self.attributes}]{extra}}}" if self.attributes or extra else ""
        head = f"llvm.func {linkage}@{self.name}({self._signature}){result}{attributes} {{"
        return "\n".join([head, *self._entry, *self._lines, "}"])

    # Values and plain ops.

    def fresh(self) -> str:
        """A name that nothing has."""
        self._count += 1
        return f"%{self._count}"

    def line(self, text: str) -> None:
        """An op without a result."""
        self._lines.append(text)

    def op(self, text: str, kind: str) -> Value:
        """An op with a result of a type."""
        name = self.fresh()
        self._lines.append(f"{name} = {text}")
        return Value(name, kind)

    def _constant(self, literal: str, kind: str) -> Value:
        found = self._constants.get((literal, kind))
        if found is None:
            name = self.fresh()
            typed = literal if kind == "i1" else f"{literal} : {kind}"
            self._entry.append(f"{name} = llvm.mlir.constant({typed}) : {kind}")
            found = self._constants[literal, kind] = Value(name, kind)
        return found

    def const(self, pattern: int, kind: str) -> Value:
        """A constant of a bit pattern, in every lane."""
        element = element_of(kind)
        if element[0] == "i":
            bits = int(element[1:])
            pattern &= (1 << bits) - 1
            literal = str(pattern - (1 << bits) if pattern >> (bits - 1) and bits > 1 else pattern)
            if bits == 1:
                literal = "true" if pattern else "false"
        else:
            literal = f"0x{pattern:0{bits_of(kind) // 4}X}"
        return self._constant(f"dense<{literal}>" if kind != element else literal, kind)

    def consts(self, numbers: Sequence[int], element: str) -> Value:
        """A vector of integer constants."""
        return self._constant(f"dense<[{', '.join(map(str, numbers))}]>", vector(len(numbers), element))

    def poison(self, kind: str) -> Value:
        """No particular value."""
        found = self._constants.get(("poison", kind))
        if found is None:
            name = self.fresh()
            self._entry.append(f"{name} = llvm.mlir.poison : {kind}")
            found = self._constants["poison", kind] = Value(name, kind)
        return found

    def alloca(self, size: int, align: int) -> Value:
        """Memory of the function's frame."""
        name = self.fresh()
        self.reserve(name, size, align)
        return Value(name, PTR)

    def reserve(self, name: str, size: int, align: int = 64) -> None:
        """The same under a name."""
        count = self.const(size, "i64")
        self._entry.append(f"{name} = llvm.alloca {count} x i8 {{alignment = {align} : i64}} : (i64) -> {PTR}")

    def bin(self, name: str, a: Value, b: Value) -> Value:
        """An op of two operands of one type: add, fadd, and, shl, ..."""
        return self.op(f"llvm.{name} {a}, {b} : {a.type}", a.type)

    def add(self, a: Value, b: Value) -> Value:
        return self.bin("add", a, b)

    def sub(self, a: Value, b: Value) -> Value:
        return self.bin("sub", a, b)

    def mul(self, a: Value, b: Value) -> Value:
        return self.bin("mul", a, b)

    def and_(self, a: Value, b: Value) -> Value:
        return self.bin("and", a, b)

    def or_(self, a: Value, b: Value) -> Value:
        return self.bin("or", a, b)

    def xor(self, a: Value, b: Value) -> Value:
        return self.bin("xor", a, b)

    def shl(self, a: Value, by: int | Value) -> Value:
        return self.bin("shl", a, self.const(by, a.type) if isinstance(by, int) else by)

    def lshr(self, a: Value, by: int | Value) -> Value:
        return self.bin("lshr", a, self.const(by, a.type) if isinstance(by, int) else by)

    def ashr(self, a: Value, by: int | Value) -> Value:
        return self.bin("ashr", a, self.const(by, a.type) if isinstance(by, int) else by)

    def mask(self, a: Value, bits: int) -> Value:
        """`a & bits`."""
        return self.and_(a, self.const(bits, a.type))

    def icmp(self, how: str, a: Value, b: Value | int) -> Value:
        other = self.const(b, a.type) if isinstance(b, int) else b
        return self.op(f'llvm.icmp "{how}" {a}, {other} : {a.type}', vector(a.lanes, "i1"))

    def fcmp(self, how: str, a: Value, b: Value) -> Value:
        return self.op(f'llvm.fcmp "{how}" {a}, {b} : {a.type}', vector(a.lanes, "i1"))

    def not_(self, a: Value) -> Value:
        return self.xor(a, self.const(-1, a.type))

    def select(self, which: Value, a: Value, b: Value) -> Value:
        return self.op(f"llvm.select {which}, {a}, {b} : {which.type}, {a.type}", a.type)

    def cast(self, name: str, a: Value, element: str) -> Value:
        """A conversion of each element: zext, sext, trunc, bitcast, fpext, fptrunc, sitofp, ..."""
        kind = vector(a.lanes, element)
        if kind == a.type:
            return a
        return self.op(f"llvm.{name} {a} : {a.type} to {kind}", kind)

    def recast(self, a: Value, kind: str) -> Value:
        """The same bits as another type."""
        return a if kind == a.type else self.op(f"llvm.bitcast {a} : {a.type} to {kind}", kind)

    def resize(self, a: Value, bits: int, signed: bool) -> Value:
        """An integer in another width."""
        own = bits_of(a.type)
        if own == bits:
            return a
        return self.cast("trunc" if bits < own else "sext" if signed else "zext", a, f"i{bits}")

    def intrinsic(self, name: str, *operands: Value, kind: str = "") -> Value:
        """An intrinsic of MLIR's `llvm.intr`; its result has its first operand's type unless said otherwise."""
        result = kind or operands[0].type
        types = ", ".join(o.type for o in operands)
        return self.op(f'"llvm.intr.{name}"({", ".join(map(str, operands))}) : ({types}) -> {result}', result)

    # Vectors.

    def extract(self, a: Value, index: int) -> Value:
        return self.op(f"llvm.extractelement {a}[{self.const(index, 'i32')} : i32] : {a.type}", a.element)

    def insert(self, a: Value, element: Value, index: int) -> Value:
        return self.op(f"llvm.insertelement {element}, {a}[{self.const(index, 'i32')} : i32] : {a.type}", a.type)

    def splat(self, scalar: Value, lanes: int) -> Value:
        """A scalar in every lane."""
        one = self.insert(self.poison(vector(lanes, scalar.type)), scalar, 0)
        return one if lanes == 1 else self.shuffle(one, one, [0] * lanes)

    def shuffle(self, a: Value, b: Value, picks: Sequence[int]) -> Value:
        """Elements of two vectors laid end to end."""
        kind = vector(len(picks), a.element)
        return self.op(f"llvm.shufflevector {a}, {b} [{', '.join(map(str, picks))}] : {a.type}", kind)

    def bits_to_mask(self, bits: Value, lanes: int) -> Value:
        """The lowest bits of an i32 as a vector of i1."""
        narrow = bits if lanes == 32 else self.op(f"llvm.trunc {bits} : i32 to i{lanes}", f"i{lanes}")
        return self.recast(narrow, vector(lanes, "i1"))

    def mask_to_bits(self, mask: Value) -> Value:
        """A vector of i1 as the lowest bits of an i32."""
        narrow = self.recast(mask, f"i{mask.lanes}")
        return narrow if mask.lanes == 32 else self.op(f"llvm.zext {narrow} : i{mask.lanes} to i32", "i32")

    def any(self, mask: Value) -> Value:
        """Whether a bit of a vector of i1 is set."""
        return self.icmp("ne", self.recast(mask, f"i{mask.lanes}"), 0) if mask.lanes else mask

    # Memory.

    def at(self, base: Value, offset: int | Value) -> Value:
        """A pointer some bytes on."""
        if isinstance(offset, int):
            if not offset:
                return base
            return self.op(f"llvm.getelementptr {base}[{offset}] : ({PTR}) -> {PTR}, i8", PTR)
        return self.op(f"llvm.getelementptr {base}[{offset}] : ({PTR}, {offset.type}) -> {PTR}, i8", PTR)

    def load(self, pointer: Value, kind: str, align: int = 1, volatile: bool = False) -> Value:
        """Load; a volatile load hides from LLVM what is loaded."""
        word = "volatile " if volatile else ""
        return self.op(f"llvm.load {word}{pointer} {{alignment = {align} : i64}} : {PTR} -> {kind}", kind)

    def store(self, value: Value, pointer: Value, align: int = 1) -> None:
        self.line(f"llvm.store {value}, {pointer} {{alignment = {align} : i64}} : {value.type}, {PTR}")

    def fetch(self, base: Value, offset: int, kind: str) -> Value:
        """Load from a place of a register file."""
        return self.load(self.at(base, offset), kind, gcd(offset, self.alignment))

    def put(self, value: Value, base: Value, offset: int) -> None:
        """Store to a place of a register file."""
        self.store(value, self.at(base, offset), gcd(offset, self.alignment))

    def masked_load(self, pointer: Value, mask: Value, other: Value) -> Value:
        return self.op(
            f"llvm.intr.masked.load {pointer}, {mask}, {other} {{alignment = 1 : i32}} : ({PTR}, {mask.type}, "
            f"{other.type}) -> {other.type}",
            other.type,
        )

    def masked_store(self, value: Value, pointer: Value, mask: Value) -> None:
        self.line(
            f"llvm.intr.masked.store {value}, {pointer}, {mask} {{alignment = 1 : i32}} : {value.type}, {mask.type} "
            f"into {PTR}"
        )

    # Control flow.

    def label(self) -> str:
        """The name of a block to come."""
        self._count += 1
        return f"^b{self._count}"

    def begin(self, label: str) -> None:
        """Begin a block."""
        self._lines.append(f"{label}:")

    def begin_with(self, label: str, *kinds: str) -> list[Value]:
        """Begin a block that takes arguments; gives them."""
        arguments = [Value(self.fresh(), kind) for kind in kinds]
        self._lines.append(f"{label}({', '.join(f'{a}: {a.type}' for a in arguments)}):")
        return arguments

    def br(self, label: str, *operands: Value) -> None:
        self.line(f"llvm.br {self._to(label, operands)}")

    def cond_br(self, which: Value, yes: str, no: str, *operands: Value) -> None:
        """Go on at one of two blocks, of which the second one takes operands."""
        self.line(f"llvm.cond_br {which}, {yes}, {self._to(no, operands)}")

    @staticmethod
    def _to(label: str, operands: Sequence[Value]) -> str:
        if not operands:
            return label
        return f"{label}({', '.join(map(str, operands))} : {', '.join(o.type for o in operands)})"

    def switch(self, value: Value, default: str, cases: Sequence[tuple[int, str]]) -> None:
        listed = ",\n".join(f"{n}: {label}" for n, label in cases)
        self.line(f"llvm.switch {value} : {value.type}, {default} [\n{listed}\n]" if cases else f"llvm.br {default}")

    def ret(self, value: Value | None = None) -> None:
        self.line(f"llvm.return {value} : {value.type}" if value else "llvm.return")

    def call(self, name: str, *operands: Value, result: str = "") -> Value:
        """Call a function of the module by its name, or through a pointer where `name` is a value's."""
        types = ", ".join(o.type for o in operands)
        callee = f"{name} : {PTR}," if name.startswith("%") else ""
        inner = f"({', '.join(map(str, operands))})"
        text = f"llvm.call {name}{inner} : {PTR}, ({types})" if callee else f"llvm.call @{name}{inner} : ({types})"
        if not result:
            self.line(f"{text} -> ()")
            return Value("", "")
        return self.op(f"{text} -> {result}", result)

    def repeat(self, count: Value, body: Callable[[Value], None]) -> None:
        """Run a body for 0 to `count` - 1, an i64."""
        head, inner, done = self.label(), self.label(), self.label()
        slot = self.alloca(8, 8)
        self.store(self.const(0, "i64"), slot, 8)
        self.br(head)
        self.begin(head)
        index = self.load(slot, "i64", 8)
        self.cond_br(self.icmp("slt", index, count), inner, done)
        self.begin(inner)
        body(index)
        self.store(self.add(index, self.const(1, "i64")), slot, 8)
        self.br(head)
        self.begin(done)
