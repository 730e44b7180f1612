"""vISA programs as records: variables, operands, instructions and print records."""

from __future__ import annotations

import hashlib
import operator
import pickle
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, lru_cache, update_wrapper
from typing import TYPE_CHECKING, Any, ClassVar, Concatenate, Literal, ParamSpec, TypeVar, final
from weakref import WeakValueDictionary

import numpy as np
from msgspec import Struct, StructMeta, structs
from msgspec.structs import astuple

from xegpu_py.deferred import deferred, pattern
from xegpu_py.ir.builtin import formatted, is_float
from xegpu_py.ir.diagnostics import Position
from xegpu_py.numerics.formats import FLOATS, TYPES, Array, Format

if TYPE_CHECKING:
    from xegpu_py import highlighting
else:
    highlighting = deferred("xegpu_py.highlighting")

assembly: Any = deferred("xegpu_py.visa.assembly")
"""The reader and writer of assembly, which itself needs programs: a program shows itself as its text."""

# `Program`: a kernel decoded into plain immutable records, which engines, allocator and writers read.

NOWHERE = Position("<unknown>")

P = ParamSpec("P")

R = TypeVar("R")


@dataclass(frozen=True)
class Input:
    """A variable that has its value from the start: an argument of the kernel, or something of the launch.

    Attributes:
        var: the variable.
        offset: where it lies in the thread's payload in bytes, from the start of r0.
        size: its size in bytes.
        kind: "" for an argument; else three dwords for x, y and z: "LOCAL_SIZE", the workgroup's work items;
            "GROUP_COUNT", the grid's workgroups; "LOCAL_ID", where in its workgroup the thread's first work item is.
        where: where it is declared.
    """

    var: Variable
    offset: int
    size: int
    kind: str = ""
    where: Position = field(default=NOWHERE, compare=False)


PRINT_BUFFER = "printf_buffer"
"""The name of the input that is the address of a buffer into which the kernel prints; see `read_records`."""

LABEL = "label"
"""The name of the instruction that marks the place to which jumps to its label go."""

IMPLICIT_KINDS = ("LOCAL_SIZE", "GROUP_COUNT", "LOCAL_ID")


class Instruction(Struct, frozen=True, eq=False, gc=False):
    """One instruction.

    Attributes:
        name: its name in vISA, such as "add" or "lsc_load".
        values: operands and attributes by the names of its declaration; they do not change.
        exec_size: number of SIMD lanes.
        mask: execution mask: "M1" to "M8" give the first lane in steps of four; with "_NM" all lanes run, whether
            enabled or not.
        guard: the predicate, or None.
        saturate: whether the result is clamped to the destination's range.
        rounding: how it rounds where `%cr0` says so: "even", "up", "down" or "zero"; see `visa.modes`. It is not text.
        flushed: the formats whose subnormal numbers are zeros to it, as sources and results; see `visa.modes`. It is
            not text either.
        alternatives: names of chosen rules, and of the alternative that it follows for each; see `visa.choices`. It is
            not text either.
        clipped: whether elements outside of the surface of a 2D block are those that a mask of the kernel leaves out:
            the check `bounds` does not report them. It is not text.
        where: where it stands. Instructions that differ in nothing else are equal.
        known: cached results: "effects", its `Effects` (visa.dataflow), "legal on", a target (visa.verify), and
            "written", the instruction of the text in whose place it stands (`visa.legacy_messages`).
    """

    name: str
    values: Mapping[str, Any] = {}
    exec_size: int = 1
    mask: str = "M1"
    guard: Guard | None = None
    saturate: bool = False
    where: Position = NOWHERE
    rounding: Literal["even", "up", "down", "zero"] = "even"
    flushed: tuple[str, ...] = ()
    alternatives: tuple[tuple[str, str], ...] = ()
    clipped: bool = False
    known: dict[str, Any] = {}

    def replaced(self, **fields: Any) -> Instruction:
        """The instruction with other values of some fields."""
        return structs.replace(self, known={}, **fields)

    def renamed(self, variables: Mapping[Any, Any]) -> Instruction:
        """The instruction with other variables, by a mapping of the old ones; those not in it stay."""
        values = {}
        for name, value in self.values.items():
            var = variables.get(getattr(value, "var", None))
            if var is not None:
                values[name] = structs.replace(value, var=var)
            kind = type(value)
            if kind is Indirect and any(base in variables for base in value.bases):
                bases = tuple(variables.get(base, base) for base in value.bases)
                values[name] = structs.replace(values.get(name, value), bases=bases)
            if kind is Address and isinstance(value.base, Region) and value.base.var in variables:
                base = structs.replace(value.base, var=variables[value.base.var])
                values[name] = structs.replace(values.get(name, value), base=base)
        guard = self.guard
        if guard is not None and guard.var in variables:
            guard = structs.replace(guard, var=variables[guard.var])
        if not values and guard is self.guard:
            return self
        return self.replaced(values={**self.values, **values}, guard=guard)

    @property
    def written(self) -> Instruction:
        """The instruction of the text: another one if it stands in that one's place."""
        original: Instruction = self.known.get("written", self)
        return original

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def _compared(self) -> tuple[Any, ...]:
        header = self.name, self.values, self.exec_size, self.mask, self.guard, self.saturate
        return *header, self.rounding, self.flushed, self.alternatives, self.clipped

    def __reduce__(self) -> tuple[Any, ...]:
        *header, rounding, flushed, alternatives, clipped = self._compared()
        return Instruction, (*header, self.where, rounding, flushed, alternatives, clipped)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Instruction) and self._compared() == other._compared()

    def __ne__(self, other: object) -> bool:
        # That of a Struct would compare identities.
        return not self == other

    def __hash__(self) -> int:
        return hash((self.name, tuple(self.values.items()), self.exec_size, self.mask, self.guard, self.saturate))

    @property
    def sources(self) -> tuple[Any, ...]:
        """The operands `src0`, `src1` and so on."""
        return tuple([value for name, value in self.values.items() if name.startswith("src")])

    @property
    def indirect(self) -> list[Indirect]:
        """The operands at places that address variables hold."""
        return [value for value in self.values.values() if isinstance(value, Indirect)]

    @property
    def first_lane(self) -> int:
        """Number of the thread's SIMD lane that is the instruction's first."""
        return 4 * (int(self.mask[1]) - 1)

    @property
    def no_mask(self) -> bool:
        """Whether disabled lanes run too."""
        return self.mask.endswith("_NM")

    def flushes(self, name: str) -> bool:
        """Whether subnormal numbers of a type are zeros to it. Outside of dpas bf follows f, whose exponents it has."""
        return name in self.flushed or (name == "bf" and "f" in self.flushed)

    def follows(self, choice: str) -> str:
        """The alternative of a chosen rule that it follows; empty for the default."""
        return dict(self.alternatives).get(choice, "") if self.alternatives else ""


DEFAULT_VERSION = "3.8"
"""The version of assembly that the lowering makes, which GenX_IR of 2022 reads."""

VERSION_OF = pattern(r"\d+\.\d+")
"""The text of a version."""


@dataclass(frozen=True)
class Program:
    """One kernel.

    Attributes:
        name: the kernel's name.
        variables: general variables, an alias after what it is an alias of.
        predicates: predicate variables.
        inputs: variables with values from the start.
        attributes: kernel attributes, such as `SimdSize`, `SLMSize` (KiB), `NBarrierCnt`; True for one without a value.
            `SLMBytes` is ours: how much of the shared local memory may be accessed.
        instructions: in order, labels included.
        where: where the kernel stands.
        declared: where each variable and predicate is declared, by name, where known.
        version: the version of the assembly in which it is written. IGC prints 4.2.
        functions: labels that begin functions (`.function`): the kernel itself, then its subroutines.
        callees: functions of other texts that it calls (`.funcdecl`).
        resources: its samplers and surfaces.
        is_function: whether it is a function that others call (`.global_function`), and no kernel.
        known: cached results of analyses; see `analysis`.
    """

    name: str
    variables: tuple[Variable, ...] = field(default_factory=tuple)
    predicates: tuple[Predicate, ...] = ()
    inputs: tuple[Input, ...] = ()
    attributes: Mapping[str, int | str] = field(default_factory=dict)
    instructions: tuple[Instruction, ...] = field(default_factory=tuple)
    where: Position = field(default=NOWHERE, compare=False)
    declared: Mapping[str, Position] = field(default_factory=dict, compare=False)
    version: str = DEFAULT_VERSION
    functions: tuple[str, ...] = ()
    callees: tuple[str, ...] = ()
    resources: tuple[Resource, ...] = ()
    is_function: bool = False
    known: dict[tuple[Any, ...], Any] = field(default_factory=dict, compare=False, repr=False, init=False)

    def __getstate__(self) -> dict[str, Any]:
        """The state to pickle: of the cached results those of a `pickled_analysis`."""
        pickled = {key: value for key, value in self.known.items() if key[0] in _PICKLED}
        return {f.name: getattr(self, f.name) for f in fields(self)} | {"known": pickled}

    def _repr_html_(self) -> str:
        return highlighting.html(assembly.write([self]))

    @cached_property
    def labels(self) -> Mapping[str, int]:
        """Index of the instruction of each label."""
        return {i["label"]: at for at, i in enumerate(self.instructions) if i.name == LABEL}

    @cached_property
    def function_of(self) -> Sequence[int]:
        """Return, for each instruction, the number of its function, in the order of `functions`."""
        starts = {self.labels[name] for name in self.functions[1:] if name in self.labels}
        function_numbers, number = [], 0
        for at in range(len(self.instructions)):
            number += at in starts
            function_numbers.append(number)
        return function_numbers

    @cached_property
    def frame_bits(self) -> int:
        """The bits of a program counter: a lane in its nth call counts from -n times the power of two of them on."""
        return (len(self.instructions) + 2).bit_length()

    def function_address(self, name: str) -> int:
        """The address of a function, which `faddr` gives and `ifcall` takes."""
        return FUNCTION_BYTES * (1 + self.functions.index(name))

    @property
    def modern(self) -> bool:
        """Whether it is written as IGC prints programs, from version 4 on."""
        return int(self.version.partition(".")[0]) >= MODERN

    @property
    def local_bits(self) -> int:
        """The bits of addresses of shared local memory that count: IGC sets bit 28 in those that are not null."""
        return (1 << 32) - 1 - (self.modern << 28)

    @property
    def simd_size(self) -> int:
        """Work items of a hardware thread."""
        return int(self.attributes.get("SimdSize", 16))

    @property
    def slm_bytes(self) -> int:
        """Shared local memory of a workgroup in bytes; the attribute is in KiB."""
        return int(self.attributes.get("SLMBytes", int(self.attributes.get("SLMSize", 0)) << 10))

    @property
    def arguments(self) -> tuple[Input, ...]:
        """The inputs that the caller gives, in order."""
        return tuple(i for i in self.inputs if not i.kind and i.var.name != PRINT_BUFFER)

    @cached_property
    def prints(self) -> bool:
        """Whether it has a buffer into which it prints."""
        return any(i.var.name == PRINT_BUFFER for i in self.inputs)

    def with_instructions(self, instructions: Sequence[Instruction]) -> Program:
        """The program with other instructions; itself if they are the same, so that cached results are kept."""
        if len(instructions) == len(self.instructions) and all(map(operator.is_, instructions, self.instructions)):
            return self
        return replace(self, instructions=tuple(instructions))


MODERN = 4
"""The first version in which IGC prints what it compiles."""

FUNCTION_BYTES = 16
"""The distance of the addresses of functions."""

Dim = tuple[int, int, int]
"""The extents of a grid or of a workgroup in x, y and z."""


def extent(dimensions: int | Sequence[int], name: str) -> Dim:
    """A grid or block in x, y and z.

    Raises:
        TypeError, ValueError: if it is not one to three positive integers; the message calls it `name`.
    """
    try:
        given = list(dimensions) if isinstance(dimensions, (Sequence, np.ndarray)) else [dimensions]
        if any(isinstance(v, (bool, np.bool_)) for v in given):
            raise TypeError
        values = [operator.index(v) for v in given]
    except TypeError:
        raise TypeError(f"'{name}' must be one to three positive integers, but got {dimensions!r}") from None
    if not 1 <= len(values) <= 3 or not all(1 <= v < 1 << 32 for v in values):
        raise ValueError(f"'{name}' must be one to three positive integers of 32 bits, but got {dimensions!r}")
    x, y, z = (*values, 1, 1)[:3]
    return x, y, z


def place_in(size: Dim, number: int) -> Dim:
    """The position of a workgroup in a grid, or of a work item in a workgroup, by its number; x varies fastest."""
    x, y, _ = size
    return number % x, number // x % y, number // (x * y)


def kernel_index(names: Sequence[str], kernel_name: str | None) -> int:
    """Return the index of the kernel of a name among those of a file; without a name, the index of the only one.

    Raises:
        ValueError: if there is no such kernel, or the name is missing or is that of several kernels.
    """
    names_text = ", ".join(names)
    if not names:
        raise ValueError("there is no kernel; in MLIR, a kernel is a gpu.func with the attribute 'kernel'")
    if kernel_name is None and len(names) != 1:
        raise ValueError(f"one kernel must be named: there are {names_text}")
    if kernel_name is not None and names.count(kernel_name) != 1:
        problem = "are several kernels" if kernel_name in names else "is no kernel"
        raise ValueError(f"there {problem} '{kernel_name}'; there are {names_text}")
    return 0 if kernel_name is None else names.index(kernel_name)


def analysis(compute: Callable[Concatenate[Program, P], R]) -> Callable[Concatenate[Program, P], R]:
    """Decorate a function of a program so that it runs once for each program and further arguments.

    Programs are immutable, so the optimizer, allocator, engines and checks can share the results.
    """

    def found(program: Program, /, *args: P.args, **kwargs: P.kwargs) -> R:
        key = (found, args, tuple(kwargs.items()))
        if key not in program.known:
            program.known[key] = compute(program, *args, **kwargs)
        return program.known[key]

    update_wrapper(found, compute)
    return found


def pickled_analysis(compute: Callable[Concatenate[Program, P], R]) -> Callable[Concatenate[Program, P], R]:
    """An `analysis` whose results are pickled with the program."""
    cached_analysis = analysis(compute)
    _PICKLED.add(cached_analysis)
    return cached_analysis


_PICKLED: set[Any] = set()


@pickled_analysis
def digest_of(program: Program) -> str:
    """A digest of all that engines execute, for cache keys: of the fields that are compared."""
    content = {f.name: getattr(program, f.name) for f in fields(program) if f.compare}
    content["inputs"] = [(i.var, i.offset, i.size, i.kind) for i in program.inputs]
    content["instructions"] = [inst._compared() for inst in program.instructions]
    return hashlib.sha256(pickle.dumps(content, pickle.HIGHEST_PROTOCOL)).hexdigest()


# Operands of instructions: variables, predicates, and the forms that name parts of them.
#
# The records hold the variable as an object; where only text is available, as in MLIR, they hold its name instead.


class _Interned(StructMeta):
    """Makes equal records one object, compared and hashed by identity, since analyses mostly hash and compare."""

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any) -> None:
        super().__init__(name, bases, namespace, **options)
        cls._known: WeakValueDictionary[tuple[Any, ...], Any] = WeakValueDictionary()

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        instance = super().__call__(*args, **kwargs)
        return cls._known.setdefault(astuple(instance), instance)


class _Declared(Struct, frozen=True, eq=False, dict=True, weakref=True, metaclass=_Interned):
    """Base of the declarations of a kernel."""


class Variable(_Declared, frozen=True, eq=False):
    """A general variable: a typed region of registers, mutable, declared once (`.decl v_type=G`).

    Attributes:
        name: its name.
        type: vISA's name of its element type.
        count: number of elements.
        align: one of `ALIGNMENTS`.
        alias: the variable whose registers it shares and the byte offset of it there, or None.
        kind: "G" for a general variable; "A" for an address variable (`.decl v_type=A`), whose elements are places of
            bytes in the register file.
        attrs: IGC's annotations, such as `{Output}`, which has no effect; or nothing.
    """

    name: str
    type: str
    count: int
    align: str = "byte"
    alias: tuple[Variable, int] | None = None
    kind: str = "G"
    attrs: str = ""

    @cached_property
    def format(self) -> Format:
        """The element type."""
        return TYPES[self.type]

    @cached_property
    def bytes(self) -> int:
        """Its size in bytes."""
        return self.count * self.format.bytes

    @property
    def aliases(self) -> int:
        """The number of variables that it is an alias of, directly or through other aliases."""
        count, var = 0, self
        while var.alias is not None:
            count, var = count + 1, var.alias[0]
        return count

    @property
    def root(self) -> tuple[Variable, int]:
        """The variable that is not an alias in which it lies, and its byte offset there."""
        if self.alias is None:
            return self, 0
        base, offset = self.alias[0].root
        return base, offset + self.alias[1]


class Predicate(_Declared, frozen=True, eq=False):
    """A predicate variable: one bit for each SIMD lane (`.decl v_type=P`).

    Attributes:
        name: its name.
        count: number of bits: 1, 2, 4, 8, 16 or 32.
    """

    name: str
    count: int


class Resource(_Declared, frozen=True, eq=False):
    """A sampler or a surface (`.decl v_type=S` or `T`).

    Attributes:
        name: its name.
        kind: "S" for a sampler, "T" for a surface.
        count: number of elements.
        spelling: its second name (`v_name`).
    """

    name: str
    kind: str
    count: int
    spelling: str


MAX_ALIASES = 64
"""The greatest depth of aliases of aliases. Properties of a variable are computed recursively."""

PREDICATE_SIZES = (1, 2, 4, 8, 16, 32)
"""Numbers of bits that predicates have."""

ALIGNMENTS = {
    "byte": 1, "word": 2, "dword": 4, "qword": 8, "oword": 16, "hword": 32, "wordx32": 64, "wordx64": 128,
    "GRF": 0, "GRFx2": 0,
}  # fmt: skip
"""Alignments and their bytes; 0 for those that depend on the size of a GRF."""

HEADER = {
    v.name: v
    for v in (
        Variable("%r0", "ud", 16, "GRF"),
        Variable("%group_id_x", "ud", 1, "dword"),
        Variable("%group_id_y", "ud", 1, "dword"),
        Variable("%group_id_z", "ud", 1, "dword"),
    )
}
"""Variables in the thread's payload header, which is `%r0`. They can only be read."""

GROUP_IDS = frozenset(variable for name, variable in HEADER.items() if name.startswith("%group_id"))
"""The variables that differ between workgroups."""

STATE = {
    v.name: v
    for v in (
        Variable("%cr0", "ud", 4, "oword"),
        Variable("%sr0", "ud", 4, "oword"),
        Variable("%msg0", "ud", 4, "oword"),
        Variable("%tsc", "ud", 4, "oword"),
        Variable("%scratchloc", "uq", 1, "wordx64"),
        Variable("%sp", "uq", 1, "wordx64"),
        Variable("%fp", "uq", 1, "wordx64"),
        Variable("%arg", "ud", 256, "wordx64"),
        Variable("%retval", "ud", 256, "wordx64"),
    )
}
"""Variables of the thread's state: control, state, message and time stamp registers, the address of the thread's part
of scratch memory, and what calls use: the pointers of stack and frame, arguments, and results."""

BUILTINS = HEADER | STATE
"""Variables that each thread has from the start."""

CHANGEABLE = ("%cr0", "%scratchloc", "%sp", "%fp", "%arg", "%retval")
"""Variables among them that instructions can write."""

OTHER_BUILTINS = (
    "%thread_x",
    "%thread_y",
    "%hw_id",
    "%ce0",
    "%dbg0",
    "%color",
    "%impl_arg_buf_ptr",
    "%local_id_buf_ptr",
)
"""Variables of vISA that no engine has."""


def align_bytes(align: str, grf_bytes: int) -> int:
    """The bytes of an alignment."""
    return ALIGNMENTS[align] or grf_bytes * (2 if align == "GRFx2" else 1)


@lru_cache(maxsize=4096)
def _elements(vstride: int, width: int, hstride: int, lanes: int) -> tuple[tuple[int, ...], int, bool]:
    indices = tuple((i // width) * vstride + (i % width) * hstride for i in range(lanes))
    return indices, max(indices), indices == tuple(range(lanes))


class _ByteOperand(Struct, frozen=True, dict=True):
    """Base of the operands whose elements are at computed bytes of registers."""

    @cached_property
    def byte_offsets(self) -> dict[tuple[int, int], tuple[Variable, list[int]]]:
        """Cache of its byte offsets, by lanes and the size of a register."""
        return {}


@final
class Region(_ByteOperand, frozen=True):
    """A source `V(row,col)<vstride;width,hstride>`: element i is at `(i // width) * vstride + (i % width) * hstride`.

    Attributes:
        var: the variable.
        row: first register, counted in GRFs from the variable's start.
        col: first element, counted in elements from that register's start.
        vstride, width, hstride: the region in elements.
        modifier: "", "-", "abs", "-abs" or "~".
    """

    var: Any
    row: int = 0
    col: int = 0
    vstride: int = 1
    width: int = 1
    hstride: int = 0
    modifier: str = ""

    def elements(self, exec_size: int) -> list[int]:
        """Return the index of each lane's element, counted from that of lane 0."""
        return list(_elements(self.vstride, max(self.width, 1), self.hstride, exec_size)[0])

    def reach(self, exec_size: int) -> tuple[int, bool]:
        """The last of the elements, and whether they lie side by side."""
        return _elements(self.vstride, max(self.width, 1), self.hstride, exec_size)[1:]

    @property
    def format(self) -> Format:
        """The element type."""
        return self.var.format

    @property
    def is_scalar(self) -> bool:
        """Whether all lanes read one element."""
        return self.vstride == 0 and (self.width == 1 or self.hstride == 0)


@final
class Destination(_ByteOperand, frozen=True):
    """A destination `V(row,col)<stride>`: element i is at `i * stride`."""

    var: Any
    row: int = 0
    col: int = 0
    stride: int = 1

    @property
    def format(self) -> Format:
        """The element type."""
        return self.var.format

    def elements(self, exec_size: int) -> list[int]:
        """Return the index of each lane's element, counted from that of lane 0."""
        return list(_elements(self.stride, 1, 0, exec_size)[0])

    def reach(self, exec_size: int) -> tuple[int, bool]:
        """The last of the elements, and whether they lie side by side."""
        return _elements(self.stride, 1, 0, exec_size)[1:]


@final
class Raw(Struct, frozen=True, gc=False):
    """A whole variable from a byte offset on: `V.64`. A `var` of None is the null operand `%null.0`."""

    var: Any
    offset: int = 0


@final
class Vector(Struct, frozen=True, gc=False):
    """Consecutive elements from `V(row,col)` on, such as src2 of dpas."""

    var: Any
    row: int = 0
    col: int = 0


PACKED = {"v": "w", "uv": "uw", "vf": "f"}
"""The types of packed constants, and those of their elements. Eight integers of four bits are signed or unsigned; four
floats have a sign, three bits of exponent (bias 3) and four of mantissa. Lanes beyond them begin with the first again.
"""


@final
class Immediate(Struct, frozen=True, gc=False):
    """A constant: its bit pattern, and vISA's name of its type, which may be one of `PACKED`."""

    bits: int
    type: str
    modifier: ClassVar[str] = ""

    @property
    def format(self) -> Format:
        """The type of an element."""
        return TYPES[PACKED.get(self.type, self.type)]

    @property
    def is_packed(self) -> bool:
        """Whether lanes have elements of their own, so that `bits` is no number."""
        return self.type in PACKED

    def elements(self, exec_size: int) -> list[int]:
        """The bit pattern of each lane's element."""
        if not self.is_packed:
            return [self.bits] * exec_size
        if self.type == "vf":
            return [_float_of_byte(self.bits >> 8 * (i % 4) & 0xFF) for i in range(exec_size)]
        nibbles = [self.bits >> 4 * (i % 8) & 0xF for i in range(exec_size)]
        return [n | 0xFFF0 if self.type == "v" and n & 8 else n for n in nibbles]


def _float_of_byte(byte: int) -> int:
    """The bits of the f32 that a packed float is: of no exponent and mantissa a zero, else 1.m * 2**(e - 3)."""
    sign, magnitude = (byte & 0x80) << 24, byte & 0x7F
    return sign | (((magnitude >> 4) + 124) << 23 | (magnitude & 0xF) << 19 if magnitude else 0)


@final
class Indirect(Struct, frozen=True, dict=True):
    """Elements at places of the register file that an address variable holds.

    A source is `r[A(col),plus]<vstride;width,hstride>:type`, a region that begins at one address, or
    `r[A(col),plus]<width,hstride>:type`, where each row of the region has an address of its own. A destination is
    `r[A(col),plus]<stride>:type`.

    Attributes:
        var: the address variable.
        col: its element that is the first address.
        plus: bytes that are added to each address.
        vstride, width, hstride: the region in elements; a vertical stride of None if each row has its own address.
            The region of a destination is <stride;1,0>.
        type: vISA's name of the element type.
        modifier: that of a source.
        bases: the variables in which the addresses lie: those of which the program takes the address for `var`.
    """

    var: Any
    col: int
    plus: int
    vstride: int | None
    width: int
    hstride: int
    type: str
    modifier: str = ""
    bases: tuple[Variable, ...] = ()

    @property
    def format(self) -> Format:
        """The element type."""
        return TYPES[self.type]

    def addresses(self, exec_size: int) -> int:
        """The number of addresses that it reads."""
        return 1 if self.vstride is not None else -(-exec_size // self.width)

    def elements(self, exec_size: int) -> list[tuple[int, int]]:
        """Return, for each lane, the index of its address, and the displacement of its element in bytes."""
        size = self.format.bytes
        if self.vstride is None:
            return [(i // self.width, i % self.width * self.hstride * size) for i in range(exec_size)]
        indices = _elements(self.vstride, self.width, self.hstride, exec_size)[0]
        return [(0, index * size) for index in indices]


@final
class AddressOf(Struct, frozen=True, dict=True):
    """The place of a variable in the register file, and a number of bytes: `&V`, `&V[64]`."""

    var: Any
    offset: int = 0
    modifier: ClassVar[str] = ""

    @property
    def format(self) -> Format:
        """The type of addresses."""
        return TYPES["ud"]


@final
class Address(Struct, frozen=True, gc=False):
    """Addresses of a message: those in a variable from a byte offset on, each times a scale plus a constant of bytes.

    Attributes:
        var: the variable of lanes' addresses, or of offsets if there is a base.
        offset: the byte of the variable at which they begin.
        plus: bytes that are added.
        scale: the factor of what is in the variable.
        space: the address space: "flat"; "ss", "surf" and "bss" of a surface; "arg" of indirect data.
        base: of "flat", the address or the constant to which offsets are added; of surfaces the surface's offset; or
            None.
    """

    var: Any
    offset: int = 0
    plus: int = 0
    scale: int = 1
    space: str = "flat"
    base: Region | Immediate | None = None


@final
class Flag(Struct, frozen=True, gc=False):
    """A predicate as source or destination."""

    var: Any


class Guard(Struct, frozen=True, gc=False):
    """The predicate of an instruction.

    Attributes:
        var: the predicate.
        inverted: whether lanes whose bit is 0 run.
        control: "" for each lane by its own bit, "any" or "all" for all lanes by all bits.
    """

    var: Any
    inverted: bool = False
    control: str = ""


Operand = Region | Destination | Raw | Vector | Immediate | Address | Flag | Indirect | AddressOf
"""Any operand but the guard."""


VERTICAL_STRIDES, WIDTHS, HORIZONTAL_STRIDES = (0, 1, 2, 4, 8, 16, 32), (1, 2, 4, 8, 16), (0, 1, 2, 4)
"""Legal strides and widths of source regions."""


def strides_of(elements: Sequence[int]) -> tuple[int, int, int] | None:
    """Vertical stride, width and horizontal stride of a region with these elements; None if no region has them.

    They may be strides that no instruction supports.
    """
    if all(e == 0 for e in elements):
        return 0, 1, 0
    step = elements[1]
    if step and all(e == i * step for i, e in enumerate(elements)):
        return step, 1, 0
    width = next(w for w in range(1, len(elements) + 1) if w == len(elements) or elements[w] != w * step)
    if len(elements) % width or width == len(elements):
        return None
    across = elements[width]
    matches = all(e == (i // width) * across + (i % width) * step for i, e in enumerate(elements))
    return (across, width, step) if matches and across >= 0 else None


def first_byte(operand: Region | Destination | Vector | Raw | Address, grf_bytes: int) -> int:
    """Byte offset of an operand's first element from its variable's start."""
    if type(operand) is Raw or type(operand) is Address:
        return operand.offset
    return operand.row * grf_bytes + operand.col * operand.var.format.bytes


def variables(operands: Iterable[object]) -> list[Variable]:
    """The general variables that operands name, in order."""
    return [var for var in (getattr(o, "var", None) for o in operands) if isinstance(var, Variable)]


# The buffer into which kernels print, and the records in it.
#
# A kernel that prints, or checks an assertion, has one more input, `printf_buffer`, the address of a buffer in global
# memory. Its first dword counts the bytes in use, these eight included; the second is its size. A thread adds the size
# of a record to the first by an atomic message, which returns the offset of the record. The thread writes the record
# there unless it would reach beyond the end of the buffer. A record consists of words of 64 bits:
#
# | Word | Low half | High half |
# | --- | --- | --- |
# | 0 | bytes of the record | the thread's number in its workgroup |
# | 1 | the workgroup's place in x | in y |
# | 2 | in z | the lane; with the highest bit set, an assertion that does not hold |
# | 3 | bytes of the text | 0 |
#
# The text follows, padded with zeros to whole words: MLIR's types of the numbers with commas between them, a zero byte,
# and the format. Then come the numbers, a word each, in the low bits.

BUFFER_BYTES = 1 << 22
"""Size of the buffer."""

FIRST_RECORD = 8
"""The offset of the first record."""

HEADER_WORDS = 4

STOPS = 1 << 31
"""The bit that marks the record of a failed assertion, in the word that holds the lane."""


def text_words(elements: Sequence[str], text: str) -> list[int]:
    """The words of a record that hold its text.

    Args:
        elements: MLIR's types of the numbers.
        text: the format.
    """
    data = text_bytes(elements, text)
    return [w for (w,) in struct.iter_unpack("<Q", data + bytes(-len(data) % 8))]


def text_bytes(elements: Sequence[str], text: str) -> bytes:
    """The bytes of a record's text, without padding."""
    return ",".join(elements).encode() + b"\0" + text.encode()


class Record(Struct, frozen=True):
    """The output of one thread, or of one lane of it.

    Attributes:
        group: the workgroup's place in x, y and z.
        thread: the thread's number in its workgroup.
        lane: the lane.
        stops: whether this is the message of an assertion that does not hold.
        text: the printed text.
    """

    group: tuple[int, int, int]
    thread: int
    lane: int
    stops: bool
    text: str


def read_records(data: Array) -> tuple[list[Record], int]:
    """The records of a buffer, and the number of bytes of records that did not fit.

    The records are sorted by workgroup (x fastest), then by thread, then in the order in which the thread printed
    them. Records of lanes that printed together are sorted by lane.

    Args:
        data: the bytes of the buffer.
    """
    used_bytes, size = (int(n) for n in data[:FIRST_RECORD].view(np.uint32))
    records, at = [], FIRST_RECORD
    while at + 8 * HEADER_WORDS <= min(used_bytes, size):
        length = int(data[at : at + 4].view(np.uint32)[0])
        if length == 0 or at + length > size:
            break
        records.append(_record(data[at : at + length].tobytes()))
        at += length
    records.sort(key=lambda r: (r.group[::-1], r.thread))
    return records, max(used_bytes - at, 0)


def _record(data: bytes) -> Record:
    _, thread, x, y, z, lane, length, _ = struct.unpack_from("<8I", data)
    start = 8 * HEADER_WORDS
    types, _, text = data[start : start + length].partition(b"\0")
    elements = types.decode().split(",") if types else []
    value_words = data[start + -(-length // 8) * 8 :]
    values = [_number(e, value_words[8 * i : 8 * i + 8]) for i, e in enumerate(elements)]
    message = formatted(text.decode(), elements, values)
    return Record((x, y, z), thread, lane & ~STOPS, bool(lane & STOPS), message)


def _number(element: str, raw: bytes) -> int | float:
    if is_float(element):
        dtype = np.dtype(FLOATS[element].dtype)
        return float(np.frombuffer(raw[: dtype.itemsize], dtype)[0])
    return int.from_bytes(raw, "little")
