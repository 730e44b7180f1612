"""LLVM IR as text, and the conversions of numbers in it."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from math import gcd
from typing import NamedTuple

from msgspec import Struct

from xegpu_py.engines.jit.llvm import major_version
from xegpu_py.engines.operands import span
from xegpu_py.numerics.formats import Format
from xegpu_py.visa.spec import Span

# Functions of LLVM IR, written as text, value by value.
#
# LLVM reads its own text faster than bindings make instructions, and a person can read it too.

PTR = "ptr"

_NAMES = {"f16": "half", "bf16": "bfloat", "f32": "float", "f64": "double"}
"""LLVM's names of types, where they differ from the names here."""


class LLVMValue(NamedTuple):
    """An SSA value or a constant: its text and its type.

    Types are those of LLVM, written `i32`, `f32` or `ptr`, and `vector<16xf32>` of these.
    """

    name: str
    type: str

    def __str__(self) -> str:
        """The value with its type, as operands are written."""
        return f"{llvm_type(self.type)} {self.name}"

    @property
    def lanes(self) -> int:
        """Elements of a vector; 0 for a scalar."""
        return lanes_of(self.type)

    @property
    def element(self) -> str:
        """The type, or a vector's element type."""
        return element_of(self.type)


@lru_cache(None)
def llvm_type(ty: str) -> str:
    """A type in LLVM's text. A vector of one element is a scalar, which LLVM compiles in half the time."""
    if lanes_of(ty) == 1:
        return llvm_type(element_of(ty))
    if ty.startswith("vector<"):
        return f"<{lanes_of(ty)} x {llvm_type(element_of(ty))}>"
    return _NAMES.get(ty, ty)


@lru_cache(None)
def _suffix(ty: str) -> str:
    """A type in the name of an intrinsic."""
    lanes, element = lanes_of(ty), element_of(ty)
    return (f"v{lanes}" if lanes > 1 else "") + ("p0" if element == PTR else element)


def vector(lanes: int, element: str) -> str:
    """The type of a vector of `lanes` elements; a scalar for 0."""
    return f"vector<{lanes}x{element}>" if lanes else element


@lru_cache(None)
def lanes_of(ty: str) -> int:
    """Elements of a type; 0 for a scalar."""
    return int(ty[7:].partition("x")[0]) if ty.startswith("vector<") else 0


@lru_cache(None)
def element_of(ty: str) -> str:
    """A vector type's element type; for other types the type itself."""
    return ty[7:-1].partition("x")[2] if ty.startswith("vector<") else ty


def bits_of(ty: str) -> int:
    """Width of a type's elements in bits."""
    element = element_of(ty)
    return 64 if element == PTR else 16 if element == "bf16" else int(element[1:])


@lru_cache(4096)
def constant(pattern: int, ty: str) -> LLVMValue:
    """A constant of a bit pattern, in every lane."""
    element = element_of(ty)
    if element[0] == "i":
        bits = int(element[1:])
        pattern &= (1 << bits) - 1
        text = str(pattern - (1 << bits) if pattern >> (bits - 1) and bits > 1 else pattern)
        if bits == 1:
            text = "true" if pattern else "false"
    elif element == "f32":
        # In LLVM's text constants of f32 are written as f64.
        (number,) = struct.unpack("<f", struct.pack("<I", pattern))
        text = f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"
    elif element == "f64":
        text = f"0x{pattern:016X}"
    else:
        text = f"0x{'H' if element == 'f16' else 'R'}{pattern:04X}"
    return LLVMValue(f"splat ({llvm_type(element)} {text})" if lanes_of(ty) > 1 else text, ty)


class FunctionBody:
    """The body of one function."""

    def __init__(
        self, name: str, arguments: Sequence[str], result: str = "", attributes: str = "", alignment: int = 1
    ) -> None:
        """Begin a function.

        Args:
            arguments: types, each with its attributes behind it.
            result: its result's type; "" for none.
            attributes: LLVM's attributes of the function.
            alignment: the alignment of the memory that `fetch` and `put` access, but from pointers in `alignments`.
        """
        self.name, self.result, self.attributes, self.alignment = name, result, attributes, alignment
        self.alignments: dict[str, int] = {}
        types = [ty.partition(" ") for ty in arguments]
        self.arguments = [LLVMValue(f"%a{i}", ty) for i, (ty, _, _) in enumerate(types)]
        self._signature = ", ".join(
            f"{llvm_type(ty)} {argument_name} {value.name}"
            for (ty, _, argument_name), value in zip(types, self.arguments)
        )
        self._entry: list[str] = []
        self._lines: list[str] = []
        self._count = 0
        self._here = "entry"
        # Pointers that were computed in this block, by offset; they may not dominate other blocks.
        self._pointers: dict[tuple[str, int], LLVMValue] = {}
        self._incoming: dict[str, list[tuple[str, Sequence[LLVMValue]]]] = {}
        self._merged: list[tuple[int, str, list[LLVMValue]]] = []

    def text(self) -> str:
        """The whole function."""
        lines = list(self._lines)
        for at, label, values in self._merged:
            incoming = self._incoming.get(label, ())
            lines[at] = "\n".join(self._phi(i, value, incoming) for i, value in enumerate(values))
        result = llvm_type(self.result) if self.result else "void"
        head = f"define hidden {result} @{self.name}({self._signature}) {self.attributes} {{\nentry:"
        return "\n".join([head, *self._entry, *lines, "}"])

    def body(self) -> str:
        """The instructions of a function without branches, which a template contains."""
        return "\n".join(self._lines)

    @staticmethod
    def _phi(index: int, value: LLVMValue, incoming: Sequence[tuple[str, Sequence[LLVMValue]]]) -> str:
        if not incoming:
            # No branch leads to the block.
            return f"{value.name} = freeze {llvm_type(value.type)} poison"
        sources = ", ".join(f"[{operands[index].name}, %{label}]" for label, operands in incoming)
        return f"{value.name} = phi {llvm_type(value.type)} {sources}"

    # Values and plain instructions.

    def fresh(self) -> str:
        """An unused name."""
        self._count += 1
        return f"%v{self._count}"

    def line(self, text: str) -> None:
        """An instruction without a result."""
        self._lines.append(text)

    def op(self, text: str, ty: str) -> LLVMValue:
        """An instruction with a result of a type."""
        name = self.fresh()
        self._lines.append(f"{name} = {text}")
        return LLVMValue(name, ty)

    @staticmethod
    def const(pattern: int, ty: str) -> LLVMValue:
        """A constant of a bit pattern, in every lane."""
        return constant(pattern, ty)

    @staticmethod
    def consts(numbers: Sequence[int], element: str) -> LLVMValue:
        """A vector of integer constants."""
        if len(numbers) == 1:
            text = str(numbers[0])
        elif any(numbers):
            text = f"<{', '.join(f'{element} {n}' for n in numbers)}>"
        else:
            text = "zeroinitializer"
        return LLVMValue(text, vector(len(numbers), element))

    @staticmethod
    def poison(ty: str) -> LLVMValue:
        """An undefined value."""
        return LLVMValue("poison", ty)

    def alloca(self, size: int, align: int) -> LLVMValue:
        """Memory of the function's frame."""
        name = self.fresh()
        self.reserve(name, size, align)
        return LLVMValue(name, PTR)

    def reserve(self, name: str, size: int, align: int = 64) -> None:
        """Memory of the function's frame, under a name.

        SROA of LLVM 22 joins vectors that are stored to parts of such memory where the last part is stored, even if
        others are computed after that (llvm/llvm-project#189680); code generation then aborts the process. It leaves
        memory alone that anything but loads and stores uses, such as the begin of its lifetime.
        """
        self._entry.append(f"{name} = alloca [{size} x i8], align {align}")
        if major_version() == 22:
            self._entry.append(f"call void @llvm.lifetime.start.p0(ptr {name})")

    def variable(self, name: str, ty: str) -> None:
        """A named integer variable of the function, initially zero. LLVM keeps it in a register."""
        self._entry.append(f"{name} = alloca {ty}, align 8\nstore {ty} 0, ptr {name}, align 8")

    def _like(self, a: LLVMValue, b: LLVMValue | int) -> str:
        """An operand of the type of another one; an integer is a constant."""
        return (self.const(b, a.type) if isinstance(b, int) else b).name

    def bin(self, name: str, a: LLVMValue, b: LLVMValue | int) -> LLVMValue:
        """An instruction of two operands of one type: add, fadd, and, shl, ..."""
        return self.op(f"{name} {a}, {self._like(a, b)}", a.type)

    def add(self, a: LLVMValue, b: LLVMValue | int) -> LLVMValue:
        return self.bin("add", a, b)

    def sub(self, a: LLVMValue, b: LLVMValue | int) -> LLVMValue:
        return self.bin("sub", a, b)

    def mul(self, a: LLVMValue, b: LLVMValue | int) -> LLVMValue:
        return self.bin("mul", a, b)

    def and_(self, a: LLVMValue, b: LLVMValue | int) -> LLVMValue:
        return self.bin("and", a, b)

    def or_(self, a: LLVMValue, b: LLVMValue | int) -> LLVMValue:
        return self.bin("or", a, b)

    def xor(self, a: LLVMValue, b: LLVMValue | int) -> LLVMValue:
        return self.bin("xor", a, b)

    def shl(self, a: LLVMValue, by: LLVMValue | int) -> LLVMValue:
        return a if by == 0 else self.bin("shl", a, by)

    def lshr(self, a: LLVMValue, by: LLVMValue | int) -> LLVMValue:
        return a if by == 0 else self.bin("lshr", a, by)

    def ashr(self, a: LLVMValue, by: LLVMValue | int) -> LLVMValue:
        return self.bin("ashr", a, by)

    def mask(self, a: LLVMValue, bits: int) -> LLVMValue:
        """`a & bits`."""
        return self.and_(a, bits)

    def icmp(self, how: str, a: LLVMValue, b: LLVMValue | int) -> LLVMValue:
        return self.op(f"icmp {how} {a}, {self._like(a, b)}", vector(a.lanes, "i1"))

    def fcmp(self, how: str, a: LLVMValue, b: LLVMValue) -> LLVMValue:
        return self.op(f"fcmp {how} {a}, {b.name}", vector(a.lanes, "i1"))

    def not_(self, a: LLVMValue) -> LLVMValue:
        return self.xor(a, -1)

    def select(self, condition: LLVMValue, a: LLVMValue, b: LLVMValue) -> LLVMValue:
        return self.op(f"select {condition}, {a}, {b}", a.type)

    def merge(self, condition: LLVMValue, new_value: LLVMValue, old_value: LLVMValue) -> LLVMValue:
        """`select` of integers that any instructions of a program computed.

        With AVX-512, LLVM 22 computes wrong bits for `select(mask, (x & c) | (y & ~c), y)` of a constant `c`: it makes
        one masked `vpternlog` whose immediate does not fit the order of its operands. It also makes a masked store of
        what is stored where `y` was loaded: see `masked_store`. The fence keeps it from seeing `y`.
        """
        return self.select(condition, new_value, self._fenced(old_value))

    def _fenced(self, a: LLVMValue) -> LLVMValue:
        """The same bits, of which LLVM does not know how they were made. This is not an instruction."""
        words, rest = divmod(a.lanes * bits_of(a.type), 32)
        if a.element == "i1" or a.lanes < 2 or rest or not a.name.startswith("%"):
            return a
        ty = vector(words, "f32")
        return self.recast(self.intrinsic("arithmetic.fence", self.recast(a, ty)), a.type)

    def cast(self, name: str, a: LLVMValue, element: str) -> LLVMValue:
        """A conversion of each element: zext, sext, trunc, bitcast, fpext, fptrunc, sitofp, ..."""
        ty = vector(a.lanes, element)
        if ty == a.type:
            return a
        return self.op(f"{name} {a} to {llvm_type(ty)}", ty)

    def recast(self, a: LLVMValue, ty: str) -> LLVMValue:
        """The same bits as another type."""
        to = llvm_type(ty)
        return LLVMValue(a.name, ty) if to == llvm_type(a.type) else self.op(f"bitcast {a} to {to}", ty)

    def resize(self, a: LLVMValue, bits: int, signed: bool) -> LLVMValue:
        """An integer in another width."""
        current_bits = bits_of(a.type)
        if current_bits == bits:
            return a
        return self.cast("trunc" if bits < current_bits else "sext" if signed else "zext", a, f"i{bits}")

    def intrinsic(
        self, name: str, *operands: LLVMValue, ty: str = "", overloads: Sequence[str] | None = None
    ) -> LLVMValue:
        """A call of an intrinsic; by default its result has the type of its first operand.

        Args:
            overloads: the types that are part of its name; by default the first operand's.
        """
        result = ty or operands[0].type
        if name.startswith("vector.reduce.") and operands[0].lanes == 1:
            return self.extract(operands[0], 0)
        overload_types = [operands[0].type] if overloads is None else overloads
        return self.call(".".join(["llvm", name, *map(_suffix, overload_types)]), *operands, result=result)

    # Vectors.

    def extract(self, a: LLVMValue, index: int) -> LLVMValue:
        return LLVMValue(a.name, a.element) if a.lanes == 1 else self.op(f"extractelement {a}, i32 {index}", a.element)

    def insert(self, a: LLVMValue, element: LLVMValue, index: int) -> LLVMValue:
        return (
            LLVMValue(element.name, a.type)
            if a.lanes == 1
            else self.op(f"insertelement {a}, {element}, i32 {index}", a.type)
        )

    def splat(self, scalar: LLVMValue, lanes: int) -> LLVMValue:
        """A scalar in every lane."""
        first_lane_set = self.insert(self.poison(vector(lanes, scalar.type)), scalar, 0)
        return first_lane_set if lanes == 1 else self.shuffle(first_lane_set, first_lane_set, [0] * lanes)

    def shuffle(self, a: LLVMValue, b: LLVMValue, picks: Sequence[int]) -> LLVMValue:
        """Elements of the concatenation of two vectors."""
        if len(picks) == 1:
            source, index = (a, picks[0]) if picks[0] < a.lanes else (b, picks[0] - a.lanes)
            return self.recast(self.extract(source, max(index, 0)), vector(1, a.element))
        if a.lanes == 1:
            result = self.poison(vector(len(picks), a.element))
            if len(set(picks)) == 1:
                zeros = self.consts([0] * len(picks), "i32")
                scalar_vector = self.insert(result, self.extract(b if picks[0] else a, 0), 0)
                return self.op(f"shufflevector {scalar_vector}, {scalar_vector}, {zeros}", result.type)
            for index, pick in enumerate(picks):
                if pick >= 0:
                    result = self.insert(result, self.extract(b if pick else a, 0), index)
            return result
        mask = self.consts(picks, "i32")
        return self.op(f"shufflevector {a}, {b}, {mask}", vector(len(picks), a.element))

    def bits_to_mask(self, bits: LLVMValue, lanes: int) -> LLVMValue:
        """The lowest bits of an i32 as a vector of i1."""
        narrow = bits if lanes == 32 else self.op(f"trunc {bits} to i{lanes}", f"i{lanes}")
        return self.recast(narrow, vector(lanes, "i1"))

    def mask_to_bits(self, mask: LLVMValue) -> LLVMValue:
        """A vector of i1 as the lowest bits of an i32."""
        narrow = self.recast(mask, f"i{mask.lanes}")
        return narrow if mask.lanes == 32 else self.op(f"zext {narrow} to i32", "i32")

    def any(self, mask: LLVMValue) -> LLVMValue:
        """Whether a bit of a vector of i1 is set."""
        return self.icmp("ne", self.recast(mask, f"i{mask.lanes}"), 0) if mask.lanes else mask

    # Memory.

    def at(self, base: LLVMValue, offset: int | LLVMValue) -> LLVMValue:
        """A pointer plus an offset in bytes."""
        if not isinstance(offset, int):
            return self.op(f"getelementptr i8, {base}, {offset}", PTR)
        if not offset:
            return base
        known_pointer = self._pointers.get((base.name, offset))
        if known_pointer is None:
            known_pointer = self.op(f"getelementptr i8, {base}, i64 {offset}", PTR)
            self._pointers[base.name, offset] = known_pointer
        return known_pointer

    def load(self, pointer: LLVMValue, ty: str, align: int = 1, volatile: bool = False) -> LLVMValue:
        """Load; LLVM assumes nothing about the result of a volatile load."""
        volatile_keyword = "volatile " if volatile else ""
        return self.op(f"load {volatile_keyword}{llvm_type(ty)}, {pointer}, align {align}", ty)

    def store(self, value: LLVMValue, pointer: LLVMValue, align: int = 1) -> None:
        self.line(f"store {value}, {pointer}, align {align}")

    def fetch(self, base: LLVMValue, offset: int, ty: str) -> LLVMValue:
        """Load from a position of a register file.

        LLVM loads more of small vectors than they have, as far as the alignment says that it may. The host then waits
        for stores of the other elements, so no more is said than that they are aligned to their size.
        """
        size = max(max(lanes_of(ty), 1) * bits_of(ty) // 8, 1)
        return self.load(self.at(base, offset), ty, gcd(self._aligned(base, offset), 1 << size.bit_length() - 1))

    def put(self, value: LLVMValue, base: LLVMValue, offset: int) -> None:
        """Store to a position of a register file."""
        self.store(value, self.at(base, offset), self._aligned(base, offset))

    def _aligned(self, base: LLVMValue, offset: int) -> int:
        """The alignment of a position of a register file."""
        return gcd(offset, self.alignments.get(base.name, self.alignment))

    def count(self, pointer: LLVMValue, increment: LLVMValue) -> None:
        """Add to an i64 in memory."""
        self.store(self.add(self.load(pointer, "i64", 8), increment), pointer, 8)

    def _pair(self, a: LLVMValue, b: LLVMValue) -> LLVMValue:
        return self.shuffle(a, b, [0, 1])

    def masked_load(self, pointer: LLVMValue, mask: LLVMValue, passthru: LLVMValue) -> LLVMValue:
        """Load the elements that the mask sets; the others are those of `passthru`."""
        if passthru.lanes == 1:
            two_lanes = self.masked_load(
                pointer, self._pair(mask, self.const(0, mask.type)), self._pair(passthru, passthru)
            )
            return self.shuffle(two_lanes, two_lanes, [0])
        ty = llvm_type(passthru.type)
        return self.op(
            f"call {ty} @llvm.masked.load.{_suffix(passthru.type)}.p0("
            f"{_unaligned('ptr', pointer)}, {mask}, {passthru})",
            passthru.type,
        )

    def masked_store(self, value: LLVMValue, pointer: LLVMValue, mask: LLVMValue) -> None:
        """Store the elements that the mask sets.

        With AVX-512, LLVM 22 stores too many bytes if the value is truncated and the mask is known to set one lane.
        """
        if value.lanes == 1:
            value, mask = self._pair(value, value), self._pair(mask, self.const(0, mask.type))
        value = self._fenced(value)
        name = f"llvm.masked.store.{_suffix(value.type)}.p0"
        self.line(f"call void @{name}({value}, {_unaligned('ptr', pointer)}, {mask})")

    def gather(self, pointers: LLVMValue, mask: LLVMValue, passthru: LLVMValue) -> LLVMValue:
        """Load through the pointers of the lanes that the mask sets; the other elements are those of `passthru`."""
        ty = llvm_type(passthru.type)
        name = f"llvm.masked.gather.{_suffix(passthru.type)}.{_suffix(pointers.type)}"
        pointer_text = _unaligned(llvm_type(pointers.type), pointers)
        return self.op(f"call {ty} @{name}({pointer_text}, {mask}, {passthru})", passthru.type)

    def scatter(self, values: LLVMValue, pointers: LLVMValue, mask: LLVMValue) -> None:
        """Store through the pointers of the lanes that the mask sets, in the order of lanes."""
        name = f"llvm.masked.scatter.{_suffix(values.type)}.{_suffix(pointers.type)}"
        self.line(f"call void @{name}({values}, {_unaligned(llvm_type(pointers.type), pointers)}, {mask})")

    # Control flow.

    def label(self) -> str:
        """The name of a new block, which is begun later."""
        self._count += 1
        return f"b{self._count}"

    def begin(self, label: str) -> None:
        """Begin a block."""
        self._lines.append(f"{label}:")
        self._here = label
        self._pointers.clear()

    def begin_with(self, label: str, *types: str) -> list[LLVMValue]:
        """Begin a block with phis of values from the branches to it; return the phis."""
        self.begin(label)
        values = [LLVMValue(self.fresh(), ty) for ty in types]
        self._merged.append((len(self._lines), label, values))
        self._lines.append("")
        return values

    def br(self, label: str, *operands: LLVMValue) -> None:
        self.line(f"br label %{self._to(label, operands)}")

    def cond_br(self, condition: LLVMValue, yes: str, no: str, *operands: LLVMValue) -> None:
        """Branch to one of two blocks; the second has phis."""
        self.line(f"br {condition}, label %{yes}, label %{self._to(no, operands)}")

    def _to(self, label: str, operands: Sequence[LLVMValue]) -> str:
        if operands:
            self._incoming.setdefault(label, []).append((self._here, operands))
        return label

    def switch(self, value: LLVMValue, default: str, targets: Sequence[tuple[int, str]]) -> None:
        listed = " ".join(f"{value.type} {n}, label %{label}" for n, label in targets)
        self.line(f"switch {value}, label %{default} [ {listed} ]")

    def ret(self, value: LLVMValue | None = None) -> None:
        self.line(f"ret {value}" if value else "ret void")

    def call(self, name: str | LLVMValue, *operands: LLVMValue, result: str = "") -> LLVMValue:
        """Call a function by its name, or through a pointer."""
        callee = name.name if isinstance(name, LLVMValue) else f"@{name}"
        text = f"call {llvm_type(result) if result else 'void'} {callee}({', '.join(map(str, operands))})"
        if not result:
            self.line(text)
            return LLVMValue("", "")
        return self.op(text, result)

    @contextmanager
    def when(self, condition: LLVMValue) -> Iterator[None]:
        """Execute the code that is written in the context only if an i1 is set."""
        body_label, done_label = self.label(), self.label()
        self.cond_br(condition, body_label, done_label)
        self.begin(body_label)
        yield
        self.br(done_label)
        self.begin(done_label)

    def choose(self, condition: LLVMValue, yes: Callable[[], object], no: Callable[[], object]) -> None:
        """Execute the code that one function writes if an i1 is set, and otherwise that of the other one."""
        true_label, false_label, done_label = self.label(), self.label(), self.label()
        self.cond_br(condition, true_label, false_label)
        for label, body in ((true_label, yes), (false_label, no)):
            self.begin(label)
            body()
            self.br(done_label)
        self.begin(done_label)

    def go_on_if(self, condition: LLVMValue, elsewhere: str) -> None:
        """Branch to another block unless an i1 is set."""
        next_label = self.label()
        self.cond_br(condition, next_label, elsewhere)
        self.begin(next_label)

    def return_unless(self, condition: LLVMValue, value: LLVMValue) -> None:
        """Return unless an i1 is set."""
        continue_label, return_label = self.label(), self.label()
        self.cond_br(condition, continue_label, return_label)
        self.begin(return_label)
        self.ret(value)
        self.begin(continue_label)

    def repeat(self, count: LLVMValue, body: Callable[[LLVMValue], None]) -> None:
        """Run a body for 0 to `count` - 1, an i64."""
        head_label, body_label, done_label = self.label(), self.label(), self.label()
        slot = self.alloca(8, 8)
        self.store(self.const(0, "i64"), slot, 8)
        self.br(head_label)
        self.begin(head_label)
        index = self.load(slot, "i64", 8)
        self.cond_br(self.icmp("slt", index, count), body_label, done_label)
        self.begin(body_label)
        body(index)
        self.store(self.add(index, 1), slot, 8)
        self.br(head_label)
        self.begin(done_label)


def _unaligned(ty: str, pointer: LLVMValue) -> str:
    """The pointer of an unaligned masked access."""
    return f"{ty} align 1 {pointer.name}"


# Conversions of numbers in native code, with results that are bit-identical to those of `numerics.convert`.
#
# Native code computes df in f64 and other floats in f32. It computes integers in the narrowest sufficient width.

ONE = {"f32": 0x3F800000, "f64": 0x3FF << 52}


def widen(code: FunctionBody, pattern: LLVMValue, fmt: Format) -> LLVMValue:
    """A float's bit patterns as numbers: f64 for df, otherwise f32. Exact."""
    if fmt.name == "bf":
        return code.cast("bitcast", code.shl(code.resize(pattern, 32, False), 16), "f32")
    if fmt.name == "hf":
        return code.cast("fpext", code.cast("bitcast", pattern, "f16"), "f32")
    return code.cast("bitcast", pattern, "f32" if fmt.name == "f" else "f64")


def narrow(
    code: FunctionBody, values: LLVMValue, fmt: Format, saturate: bool = False, any_nan: bool = False
) -> LLVMValue:
    """Numbers, f32 or f64, rounded to a float type, as bit patterns with canonical NaNs.

    Args:
        saturate: whether the numbers are clamped to the range 0 to 1; NaN becomes 0.
        any_nan: whether a NaN of f or df may have any bits. For bf NaNs are always canonical, since rounding would
            convert some NaNs to other values.
    """
    if saturate:
        zero, one_value = code.const(0, values.type), code.const(ONE[values.element], values.type)
        values = code.select(code.fcmp("ogt", values, zero), values, zero)
        values = code.select(code.fcmp("ogt", values, one_value), one_value, values)
    if fmt.name == "bf":
        bits = code.cast("bitcast", values, "i32")
        odd = code.mask(code.lshr(bits, 16), 1)
        biased_bits = code.add(code.add(bits, odd), 0x7FFF)
        pattern = code.resize(code.lshr(biased_bits, 16), 16, False)
    elif fmt.name == "hf":
        single = to_odd(code, values) if values.element == "f64" else values
        pattern = code.cast("bitcast", code.cast("fptrunc", single, "f16"), "i16")
    else:
        wide_type = "f32" if fmt.name == "f" else "f64"
        cast_name = "fptrunc" if bits_of(wide_type) < bits_of(values.type) else "fpext"
        pattern = code.cast("bitcast", code.cast(cast_name, values, wide_type), f"i{fmt.bits}")
    if saturate or (any_nan and fmt.name in ("f", "df")):
        return pattern
    return code.select(code.fcmp("uno", values, values), code.const(fmt.nan, pattern.type), pattern)


def flushed(code: FunctionBody, pattern: LLVMValue, fmt: Format) -> LLVMValue:
    """A float's bit patterns, zeros of their signs in place of subnormal numbers."""
    subnormal = code.icmp("eq", code.mask(pattern, fmt.infinity), 0)
    return code.select(subnormal, code.mask(pattern, 1 << (fmt.bits - 1)), pattern)


def to_odd(code: FunctionBody, values: LLVMValue) -> LLVMValue:
    """f64 numbers rounded to odd to f32 (toward zero, and the lowest bit set if inexact), to be rounded again."""
    nearest = code.cast("fptrunc", values, "f32")
    back = code.cast("fpext", nearest, "f64")
    bits = code.cast("bitcast", nearest, "i32")
    rounded_up = code.fcmp("ogt", code.intrinsic("fabs", back), code.intrinsic("fabs", values))
    toward_zero = code.select(rounded_up, code.sub(bits, 1), bits)
    odd = code.or_(toward_zero, 1)
    return code.cast("bitcast", code.select(code.fcmp("one", back, values), odd, bits), "f32")


def two_sum(code: FunctionBody, a: LLVMValue, b: LLVMValue) -> tuple[LLVMValue, LLVMValue]:
    """The sum of floats, and its error, exactly (Knuth)."""
    total = code.bin("fadd", a, b)
    back = code.bin("fsub", total, a)
    return total, code.bin("fadd", code.bin("fsub", a, code.bin("fsub", total, back)), code.bin("fsub", b, back))


def odd_sum(code: FunctionBody, a: LLVMValue, b: LLVMValue) -> LLVMValue:
    """The sum of f64 numbers, rounded to odd (Boldo and Melquiond)."""
    total, error = two_sum(code, a, b)
    zero, bits = code.const(0, a.type), code.cast("bitcast", total, "i64")
    even = code.icmp("eq", code.mask(bits, 1), 0)
    # If the rounded sum is larger in magnitude than the exact sum, the previous number is the result. It is odd, since
    # the rounded sum is even.
    outward = code.icmp("slt", code.xor(bits, code.cast("bitcast", error, "i64")), 0)
    ulp = code.const(1, bits.type)
    adjusted_bits = code.select(outward, code.sub(bits, ulp), code.add(bits, ulp))
    inexact = code.and_(code.fcmp("one", error, zero), even)
    return code.cast("bitcast", code.select(inexact, adjusted_bits, bits), "f64")


def modified(code: FunctionBody, values: LLVMValue, modifier: str, signed: bool = True) -> LLVMValue:
    """Apply a source modifier to numbers: floats, or integers that are wide enough."""
    if values.element[0] == "f":
        if "abs" in modifier:
            values = code.intrinsic("fabs", values)
        return code.op(f"fneg {values}", values.type) if modifier.startswith("-") else values
    if modifier == "~":
        return code.not_(values)
    zero = code.const(0, values.type)
    if "abs" in modifier and signed:
        values = code.select(code.icmp("slt", values, 0), code.sub(zero, values), values)
    return code.sub(zero, values) if modifier.startswith("-") else values


def modified_bits(code: FunctionBody, pattern: LLVMValue, fmt: Format, modifier: str) -> LLVMValue:
    """Apply a source modifier to a float's patterns; only the sign bit changes."""
    sign = 1 << (fmt.bits - 1)
    if "abs" in modifier:
        pattern = code.mask(pattern, sign - 1)
    return code.xor(pattern, sign) if modifier.startswith("-") else pattern


def float_to_integer(code: FunctionBody, values: LLVMValue, fmt: Format) -> LLVMValue:
    """Numbers truncated and saturated to an integer type; NaN becomes 0."""
    ty = vector(values.lanes, f"i{fmt.bits}")
    name = "fptoui.sat" if fmt.kind == "u" else "fptosi.sat"
    return code.intrinsic(name, values, ty=ty, overloads=[ty, values.type])


def integer_to_float(code: FunctionBody, pattern: LLVMValue, fmt: Format, modifier: str, target: Format) -> LLVMValue:
    """Integers as numbers that `narrow` rounds to the target: f32 for f, f64 for df and hf."""
    work = "f32" if target.name == "f" else "f64"
    signed = fmt.kind == "s"
    if fmt.bits < 64:
        values = modified(code, code.resize(pattern, 64, signed), modifier)
        if fmt.bits < 32 or (signed and not modifier):
            values = code.resize(values, 32, True)
        return code.cast("sitofp", values, work)
    if "abs" in modifier and signed:
        pattern, signed = modified(code, pattern, "abs"), False
    if target.name == "hf":
        # Far beyond the range of hf, and still exact in f64.
        bit_limit = code.const(1 << 20, pattern.type)
        pattern = code.intrinsic("smin" if signed else "umin", pattern, bit_limit)
        if signed:
            pattern = code.intrinsic("smax", pattern, code.const(-(1 << 20), pattern.type))
    values = code.cast("sitofp" if signed else "uitofp", pattern, work)
    # Not a change of the sign bit: integers have no negative zero.
    return code.bin("fsub", code.const(0, values.type), values) if modifier.startswith("-") else values


class Width(Struct, frozen=True):
    """An integer type: the number of bits, and whether the highest is a sign."""

    bits: int
    signed: bool


def width_of(spans: Sequence[Span]) -> Width:
    """The smallest integer type that holds all of these numbers."""
    low, high = min(s[0] for s in spans), max(s[1] for s in spans)
    for bits in (8, 16, 32, 64):
        if -(1 << (bits - 1)) <= low and high < 1 << (bits - 1):
            return Width(bits, True)
        if low >= 0 and high < 1 << bits:
            return Width(bits, False)
    return Width(128, True)


def clamped(code: FunctionBody, values: LLVMValue, width: Width, target: Format) -> LLVMValue:
    """Integers saturated to the target type. The source type holds all numbers of the target."""
    low, high = span(target.name)
    if width.signed:
        values = code.intrinsic("smax", values, code.const(low, values.type))
        values = code.intrinsic("smin", values, code.const(high, values.type))
    else:
        values = code.intrinsic("umin", values, code.const(high, values.type))
    return code.resize(values, target.bits, width.signed)


def converted(
    code: FunctionBody, pattern: LLVMValue, fmt: Format, modifier: str, target: Format, saturate: bool, any_nan: bool
) -> LLVMValue:
    """A source's elements converted as mov does; patterns in, patterns out; see `narrow` for `any_nan`."""
    if not fmt.is_float and not target.is_float:
        if not saturate:
            signed = fmt.kind == "s"
            # A magnitude depends on all bits of its source.
            bits = max(fmt.bits, target.bits) if "abs" in modifier else target.bits
            values = modified(code, code.resize(pattern, bits, signed), modifier, signed)
            return code.resize(values, target.bits, signed)
        width = width_of([span(fmt.name, modifier), span(fmt.name), span(target.name)])
        values = modified(code, code.resize(pattern, width.bits, fmt.kind == "s"), modifier, fmt.kind == "s")
        return clamped(code, values, width, target)
    if not fmt.is_float:
        return narrow(code, integer_to_float(code, pattern, fmt, modifier, target), target, saturate)
    pattern = modified_bits(code, pattern, fmt, modifier)
    if not target.is_float:
        return float_to_integer(code, widen(code, pattern, fmt), target)
    if fmt.name == target.name and not saturate:
        return pattern
    return narrow(code, widen(code, pattern, fmt), target, saturate, any_nan)
