"""vISA programs as records: programs, their inputs and their instructions."""

from __future__ import annotations

import hashlib
import operator
import pickle
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, update_wrapper
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, TypeVar, cast

import numpy as np
from msgspec import Struct, field, structs
from msgspec.structs import replace

from xegpu_py.deferred import deferred, pattern
from xegpu_py.ir.diagnostics import Position
from xegpu_py.visa.operands import Address, Guard, Indirect, Predicate, Region, Resource, Variable

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


class Input(Struct, frozen=True, eq=False):
    """A variable that has its value from the start: an argument of the kernel, or something of the launch.

    Attributes:
        var: the variable.
        offset: where it lies in the thread's payload in bytes, from the start of r0.
        size: its size in bytes.
        kind: "" for an argument; else three dwords for x, y and z: "LOCAL_SIZE", the workgroup's work items;
            "GROUP_COUNT", the grid's workgroups; "LOCAL_ID", where in its workgroup the thread's first work item is.
        where: where it is declared, which is not compared.
    """

    var: Variable
    offset: int
    size: int
    kind: str = ""
    where: Position = NOWHERE

    def compared(self) -> tuple[Any, ...]:
        """The fields that are compared."""
        return self.var, self.offset, self.size, self.kind

    def __eq__(self, other: object) -> bool:
        return self.compared() == other.compared() if isinstance(other, Input) else NotImplemented

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.compared())


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


class Program(Struct, frozen=True, eq=False, dict=True):
    """One kernel.

    Attributes:
        name: the kernel's name.
        variables: general variables, an alias after what it is an alias of.
        predicates: predicate variables.
        inputs: variables with values from the start.
        attributes: kernel attributes, such as `SimdSize`, `SLMSize` (KiB), `NBarrierCnt`; True for one without a value.
            `SLMBytes` is ours: how much of the shared local memory may be accessed.
        instructions: in order, labels included.
        where: where the kernel stands, which is not compared.
        declared: where each variable and predicate is declared, by name, where known, which is not compared.
        version: the version of the assembly in which it is written. IGC prints 4.2.
        functions: labels that begin functions (`.function`): the kernel itself, then its subroutines.
        callees: functions of other texts that it calls (`.funcdecl`).
        resources: its samplers and surfaces.
        is_function: whether it is a function that others call (`.global_function`), and no kernel.
    """

    name: str
    variables: tuple[Variable, ...] = ()
    predicates: tuple[Predicate, ...] = ()
    inputs: tuple[Input, ...] = ()
    attributes: Mapping[str, int | str] = field(default_factory=dict)
    instructions: tuple[Instruction, ...] = ()
    where: Position = NOWHERE
    declared: Mapping[str, Position] = field(default_factory=dict)
    version: str = DEFAULT_VERSION
    functions: tuple[str, ...] = ()
    callees: tuple[str, ...] = ()
    resources: tuple[Resource, ...] = ()
    is_function: bool = False

    def compared(self) -> dict[str, Any]:
        """The fields that are compared: all that engines execute."""
        return {name: value for name, value in structs.asdict(self).items() if name not in ("where", "declared")}

    def __eq__(self, other: object) -> bool:
        return self.compared() == other.compared() if isinstance(other, Program) else NotImplemented

    def __ne__(self, other: object) -> bool:
        return not self == other

    @cached_property
    def known(self) -> dict[tuple[Any, ...], Any]:
        """Cached results of analyses; see `analysis`. A changed copy begins with none."""
        return {}

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle it with the cached results of each `pickled_analysis`."""
        pickled = {key: value for key, value in self.known.items() if key[0] in _PICKLED}
        return _unpickled, (structs.astuple(self), pickled)

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


def _unpickled(values: Sequence[Any], known: Mapping[tuple[Any, ...], Any]) -> Program:
    program = Program(*values)
    program.known.update(known)
    return program


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


_ITSELF = object()
"""In the results of analyses, the program that has them."""


def analysis(compute: Callable[Concatenate[Program, P], R]) -> Callable[Concatenate[Program, P], R]:
    """Decorate a function of a program so that it runs once for each program and further arguments.

    Programs are immutable, so the optimizer, allocator, engines and checks can share the results.
    """

    def found(program: Program, /, *args: P.args, **kwargs: P.kwargs) -> R:
        key = (found, args, tuple(kwargs.items()))
        if key not in program.known:
            result: Any = compute(program, *args, **kwargs)
            # A program in its own results would be kept until the next garbage collection.
            program.known[key] = _ITSELF if result is program else result
        known: R = program.known[key]
        return cast("R", program) if known is _ITSELF else known

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
    content = program.compared()
    content["inputs"] = [i.compared() for i in program.inputs]
    content["instructions"] = [inst._compared() for inst in program.instructions]
    return hashlib.sha256(pickle.dumps(content, pickle.HIGHEST_PROTOCOL)).hexdigest()
