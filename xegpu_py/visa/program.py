"""`Program`: a kernel decoded into plain immutable records, which engines, allocator and writers read."""

from __future__ import annotations

import hashlib
import importlib
import operator
import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, update_wrapper
from types import MappingProxyType
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
from msgspec import Struct, structs

from xegpu_py.ir.diagnostics import Position
from xegpu_py.target import Target
from xegpu_py.visa.operands import Guard, Predicate, Variable

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
"""The name of the input that is the address of a buffer into which the kernel prints; see `visa.printing`."""

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
        where: where it stands. Instructions that differ in nothing else are equal.
        effects: what `effects` of `visa.accesses` has found.
        legal_on: the target on which `instruction_problem` of `visa.verify` has found it to be legal.
    """

    name: str
    values: Mapping[str, Any] = {}
    exec_size: int = 1
    mask: str = "M1"
    guard: Guard | None = None
    saturate: bool = False
    where: Position = NOWHERE
    effects: Any = None
    legal_on: Target | None = None

    def replaced(self, **fields: Any) -> Instruction:
        """The instruction with other values of some fields."""
        return structs.replace(self, effects=None, legal_on=None, **fields)

    def renamed(self, variables: Mapping[Any, Any]) -> Instruction:
        """The instruction with other variables, by a mapping of the old ones; those not in it stay."""
        values = {}
        for name, value in self.values.items():
            var = variables.get(getattr(value, "var", None))
            if var is not None:
                values[name] = structs.replace(value, var=var)
        guard = self.guard
        if guard is not None and guard.var in variables:
            guard = structs.replace(guard, var=variables[guard.var])
        if not values and guard is self.guard:
            return self
        return self.replaced(values={**self.values, **values}, guard=guard)

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def _compared(self) -> tuple[Any, ...]:
        return self.name, self.values, self.exec_size, self.mask, self.guard, self.saturate

    def __reduce__(self) -> tuple[Any, ...]:
        return Instruction, (*self._compared(), self.where)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Instruction) and self._compared() == other._compared()

    def __hash__(self) -> int:
        return hash((self.name, tuple(self.values.items()), self.exec_size, self.mask, self.guard, self.saturate))

    @property
    def sources(self) -> tuple[Any, ...]:
        """The operands `src0`, `src1` and so on."""
        return tuple([value for name, value in self.values.items() if name.startswith("src")])

    @property
    def first_lane(self) -> int:
        """Number of the thread's SIMD lane that is the instruction's first."""
        return 4 * (int(self.mask[1]) - 1)

    @property
    def no_mask(self) -> bool:
        """Whether disabled lanes run too."""
        return self.mask.endswith("_NM")


@dataclass(frozen=True)
class Program:
    """One kernel.

    Attributes:
        name: the kernel's name.
        variables: general variables, an alias after what it is an alias of.
        predicates: predicate variables.
        inputs: variables with values from the start.
        attributes: kernel attributes, such as `SimdSize`, `SLMSize` (KiB), `NBarrierCnt`.
        instructions: what runs, labels included.
        where: where the kernel stands.
        declared: where each variable and predicate is declared, by name, where known.
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
    known: dict[tuple[Any, ...], Any] = field(default_factory=dict, compare=False, repr=False, init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "attributes", MappingProxyType(dict(self.attributes)))
        object.__setattr__(self, "declared", MappingProxyType(dict(self.declared)))

    def __getstate__(self) -> dict[str, Any]:
        """The state to pickle: the fields, with those of `_BODY` as bytes of their own."""
        found = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("known", *_BODY)}
        found["attributes"] = dict(self.attributes)
        found["known"] = {key: value for key, value in self.known.items() if key[0] in _KEPT}
        if "_body" not in vars(self):
            body = {name: getattr(self, name) for name in _BODY} | {"declared": dict(self.declared)}
            vars(self)["_body"] = pickle.dumps(body, pickle.HIGHEST_PROTOCOL)
        return found | {"_body": vars(self)["_body"]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, attributes=MappingProxyType(state["attributes"]))

    def __getattr__(self, name: str) -> Any:
        """A field of `_BODY` of a program that was pickled: native code runs without them, and they take long to read.

        Raises:
            AttributeError: if there is no such attribute.
        """
        if name not in _BODY or "_body" not in vars(self):
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'", name=name, obj=self)
        body = pickle.loads(vars(self)["_body"])
        vars(self).update(body, declared=MappingProxyType(body["declared"]))
        return vars(self)[name]

    def _repr_html_(self) -> str:
        # Only notebooks need these modules, the second of which imports this one.
        html = importlib.import_module("xegpu_py.lexers").html
        return str(html(importlib.import_module("xegpu_py.visa.assembly").write([self])))

    @property
    def digest(self) -> str | None:
        """A digest of the executable content, for cache keys; None for a program that was never pickled."""
        body = vars(self).get("_body")
        if body is None:
            return None
        head = repr((self.name, self.predicates, self.inputs, dict(self.attributes)))
        return hashlib.sha256(head.encode() + body).hexdigest()

    @cached_property
    def labels(self) -> Mapping[str, int]:
        """Index of the instruction of each label."""
        return {i["label"]: at for at, i in enumerate(self.instructions) if i.name == LABEL}

    @property
    def simd_size(self) -> int:
        """Work items of a hardware thread."""
        return int(self.attributes.get("SimdSize", 16))

    @property
    def slm_bytes(self) -> int:
        """Shared local memory of a workgroup in bytes; the attribute is in KiB."""
        return int(self.attributes.get("SLMSize", 0)) << 10

    @property
    def arguments(self) -> tuple[Input, ...]:
        """The inputs that the caller gives, in order."""
        return tuple(i for i in self.inputs if not i.kind and i.var.name != PRINT_BUFFER)

    @cached_property
    def prints(self) -> bool:
        """Whether it has a buffer into which it prints; see `visa.printing`."""
        return any(i.var.name == PRINT_BUFFER for i in self.inputs)

    def with_instructions(self, instructions: Sequence[Instruction]) -> Program:
        """The program with other instructions; itself if they are the same, so that cached results are kept."""
        if len(instructions) == len(self.instructions) and all(map(operator.is_, instructions, self.instructions)):
            return self
        return replace(self, instructions=tuple(instructions))


_BODY = ("variables", "instructions", "declared")
"""The fields of a program that engines of native code do not read to run it."""


Dim = tuple[int, int, int]
"""The extents of a grid or of a workgroup in x, y and z."""


def extent(given: int | Sequence[int], name: str) -> Dim:
    """A grid or block in x, y and z.

    Raises:
        TypeError, ValueError: if it is not one to three positive integers; the message calls it `name`.
    """
    try:
        values = [operator.index(v) for v in (given if isinstance(given, (Sequence, np.ndarray)) else (given,))]
    except TypeError:
        raise TypeError(f"'{name}' must be one to three positive integers, but got {given!r}") from None
    if not 1 <= len(values) <= 3 or not all(1 <= v < 1 << 32 for v in values):
        raise ValueError(f"'{name}' must be one to three positive integers of 32 bits, but got {given!r}")
    x, y, z = (*values, 1, 1)[:3]
    return x, y, z


def place_in(size: Dim, number: int) -> Dim:
    """The position of a workgroup in a grid, or of a work item in a workgroup, by its number; x varies fastest."""
    x, y, _ = size
    return number % x, number // x % y, number // (x * y)


def chosen(names: Sequence[str], wanted: str | None) -> int:
    """The index of the wanted kernel among those of a file; without a name that of the only one.

    Raises:
        ValueError: if there is no such kernel, or the name is missing or is that of several kernels.
    """
    known = ", ".join(names)
    if not names:
        raise ValueError("there is no kernel; in MLIR, a kernel is a gpu.func with the attribute 'kernel'")
    if wanted is None and len(names) != 1:
        raise ValueError(f"one kernel must be named: there are {known}")
    if wanted is not None and names.count(wanted) != 1:
        found = "are several kernels" if wanted in names else "is no kernel"
        raise ValueError(f"there {found} '{wanted}'; there are {known}")
    return 0 if wanted is None else names.index(wanted)


def analysis(compute: Callable[Concatenate[Program, P], R]) -> Callable[Concatenate[Program, P], R]:
    """Decorate a function of a program so that it runs once for each program and further arguments.

    Programs are immutable, so the optimizer, allocator, engines and checks can share the results.
    """

    def found(program: Program, /, *args: P.args, **kwargs: P.kwargs) -> R:
        key = (found, args, tuple(kwargs.items()))
        if key not in program.known:
            program.known[key] = compute(program, *args, **kwargs)
        result: R = program.known[key]
        return result

    update_wrapper(found, compute)
    return found


def kept_analysis(compute: Callable[Concatenate[Program, P], R]) -> Callable[Concatenate[Program, P], R]:
    """An `analysis` whose results are pickled with the program."""
    found = analysis(compute)
    _KEPT.add(found)
    return found


_KEPT: set[Any] = set()
