"""A lowered kernel: its parameters, its code, its assumptions and options."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, get_args

import numpy as np
from mlir import ir as mlir
from msgspec import Struct, structs

from xegpu_py.argument_types import Range, check_fields, checked, unknown_option
from xegpu_py.ir.diagnostics import Diagnostic, Position, Source
from xegpu_py.numerics import integers
from xegpu_py.numerics.choices import CHOICES, selected
from xegpu_py.numerics.dpas import MODELS, NARROW, Model
from xegpu_py.numerics.formats import ARRAYS, STORAGE, dtype_named, element_bits
from xegpu_py.numerics.systolic import Systolic
from xegpu_py.runtime.host_arrays import Window, packed_shape
from xegpu_py.target import DEFAULT, FARTHEST_PREFETCH, GRID_LIMIT
from xegpu_py.target import target as target_of
from xegpu_py.target.message_rules import Block2DLimits
from xegpu_py.visa.dataflow import referenced_variables
from xegpu_py.visa.operands import GROUP_IDS
from xegpu_py.visa.program import Input, Program, extent

# The options of a kernel: how it is lowered, and how it runs.

Engine = Literal["jit", "interpreter", "both"]

ENGINES: tuple[Engine, ...] = get_args(Engine)

REFERENCE = "reference"
"""The engine that evaluates a kernel without lowering it."""

CHECKS = ("memory", "uninit", "races", "bounds", "surfaces")
"""The checks of a running kernel. `memory` finds accesses outside of allocations; both engines always check them.
`uninit` finds reads of registers that were never written. `races` finds unordered accesses of one byte by two threads.
`bounds` finds loads and stores of 2D blocks that are not within their surface, whose other elements read as zero. It
does not report elements that a mask leaves out.
`surfaces` finds 2D blocks of XeGPU of which upstream's lowering would make messages that break a rule of the target.
"""

ALL_CHECKS = "all"
"""A name for all checks."""


MOST_THREADS = max(1024, os.cpu_count() or 1)
"""The largest number of operating system threads of a launch."""


class Options(Struct, frozen=True):
    """All options of a kernel.

    Attributes:
        target: the GPU's name.
        registers: registers of a thread, 128 or 256; by default the target's usual number.
        optimize: whether the pass visa-optimize runs.
        prefetch: XeTile kernels only: how many iterations ahead loops prefetch the tiles that they load; 0 for none.
        load_ahead: XeTile kernels only: whether loops load tiles one iteration ahead.
        subgroups: XeTile kernels without maps only: the number of subgroups of a workgroup, among which the tiles are
            divided; 0 for a number that suits the tiles. By default each subgroup executes the whole kernel.
        unaligned: the numbers of the arguments whose unknown addresses, extents and strides need not satisfy the rules
            of 2D block messages. For the other arguments they are assumed to, and a call with an array that does not
            satisfy the rules compiles the kernel again.
        large: whether arrays, index arguments and grids may be larger than `SMALL`. By default they may not, and a
            call with a larger one compiles the kernel again.
        strided: the numbers of the memref arguments whose innermost stride is not assumed to be 1 if it is dynamic.
        aliased: whether arguments may share memory. By default subgroups among which tiles without maps are divided
            wait for each other where they access one argument, and a call with arrays that overlap compiles the kernel
            again.
        model: how dpas rounds: "fma", "stage" or "exact" (docs/numerics.md), or a `numerics.Systolic`, such as
            `numerics.systolic.read_model` gives.
        dpas_denormals: whether dpas keeps subnormal numbers, "keep", or takes them for zeros, "flush", where no source
            decides (docs/numerics.md). These are bf and tf32 on pvc, pvcxt and dg2, and eight-bit floats and e2m1 in
            assembly for cri that does not keep them. Kernels for other targets choose it in `%cr0`.
        choices: alternatives of rules that no source decides, each as "NAME=ALTERNATIVE" (docs/numerics.md lists them).
            Constants that the lowering has folded follow the default rules.
        check: the checks, or "all" for all of them. `memory` (accesses outside of allocations) is always on. `uninit`
            finds reads of registers that were never written, `races` unordered accesses of one byte, and `bounds` 2D
            blocks beyond their surface. `surfaces` finds blocks of XeGPU whose messages, as upstream makes them, break
            rules of the target (docs/message-rules.md).
        schedules: with the check `races`: in how many other orders of threads the interpreter runs the launch first;
            results that differ are an error.
        strict_grf: whether it is an error if the variables do not fit into the registers.
        engine: "jit" (native code), "interpreter" (the definition), or "both", which runs both and compares all
            memory. The default is the JIT, or with `uninit` the interpreter, which reports the first uninitialised read
            of all threads. If the JIT finds a race, the interpreter runs the launch again and reports it. "reference"
            evaluates a kernel of MLIR at its own level. Of the other options only `model` and the choice
            `reduction-order` then have an effect, and `check` is refused.
        threads: the number of operating system threads of the JIT; by default one for each processor.
        cache: the folder where lowered kernels and native code are kept, or "off"; by default the value of the
            environment variable XEGPU_PY_CACHE, otherwise a folder in the user's cache directory.
        progress: whether runs of more than a second show a progress bar if standard error is a terminal.
    """

    target: str = DEFAULT
    registers: int | None = None
    optimize: bool = True
    prefetch: Annotated[int, Range(0, FARTHEST_PREFETCH)] = 0
    load_ahead: bool = False
    subgroups: int | None = None
    unaligned: tuple[Annotated[int, Range(0)], ...] = ()
    large: bool | None = None
    strided: tuple[int, ...] = ()
    aliased: bool = False
    model: Model = "fma"
    dpas_denormals: Literal["keep", "flush"] = "keep"
    choices: tuple[str, ...] = ()
    check: tuple[str, ...] = ()
    schedules: Annotated[int, Range(0)] = 0
    strict_grf: bool = False
    engine: Engine | Literal["reference"] | None = None
    threads: Annotated[int, Range(1, MOST_THREADS)] | None = None
    cache: str | PathLike[str] | None = None
    progress: bool = True

    def __post_init__(self) -> None:
        check_fields(self, leave_out=("model", "engine", "dpas_denormals"))
        gpu = target_of(self.target)
        for name in ("model", "engine", "dpas_denormals"):
            if hasattr(given := getattr(self, name), "__array__"):
                raise TypeError(f"'{name}' must be a name, but got {given!r}")
        if self.model not in MODELS and not isinstance(self.model, Systolic):
            raise ValueError(f"'model' must be one of {', '.join(MODELS)}, but got {self.model!r}")
        if self.dpas_denormals not in DENORMALS:
            legal_values = ", ".join(DENORMALS)
            raise ValueError(f"'dpas_denormals' must be one of {legal_values}, but got {self.dpas_denormals!r}")
        decided = gpu.systolic_denormals and not {*NARROW} & {*gpu.dpas_precisions}
        if self.dpas_denormals == "flush" and (decided or self.engine == REFERENCE):
            where = f"kernels for target {self.target} choose it in %cr0"
            if self.engine == REFERENCE:
                where = f"the engine '{REFERENCE}' keeps subnormal numbers"
            raise ValueError(f"'dpas_denormals' cannot be 'flush': {where}")
        alternatives = selected(self.choices)
        _refuse_unknown_checks(self.check)
        if self.schedules and "races" not in self.check:
            raise ValueError(f"'schedules' must be a number of orders for the check races, but got {self.schedules!r}")
        if self.engine == REFERENCE:
            refuse_choices(REFERENCE, [name for name in alternatives if name != "reduction-order"])
            refuse_checks(REFERENCE, self.check)
            return
        if self.engine is not None and self.engine not in ENGINES:
            raise ValueError(f"'engine' must be one of {', '.join(ENGINES)}, but got {self.engine!r}")
        if self.subgroups is not None and not 0 <= self.subgroups <= gpu.threads:
            raise ValueError(f"'subgroups', or num_warps, must be 0 to {gpu.threads}, but got {self.subgroups}")
        if self.registers is not None and self.registers not in gpu.grf_counts:
            counts = " or ".join(map(str, gpu.grf_counts))
            raise ValueError(f"target {self.target} has {counts} registers, not {self.registers}")

    @classmethod
    @checked
    def from_keywords(
        cls,
        *,
        check: str | Sequence[str] = (),
        choices: str | Sequence[str] = (),
        unaligned: Sequence[int] | None = None,
        **others: Any,
    ) -> Options:
        """The options of a call of a public function; `check` may be one of `CHECKS`, and `choices` one text.

        Raises:
            TypeError: if there is no such option.
            ValueError: if a value is not legal.
        """
        for name in others:
            if name not in OPTIONS:
                raise TypeError(unknown_option(name, OPTIONS))
        checks, rules = ((texts,) if isinstance(texts, str) else tuple(texts) for texts in (check, choices))
        checks = CHECKS if ALL_CHECKS in checks else checks
        return cls(check=checks, choices=rules, unaligned=tuple(sorted(unaligned or ())), **others)

    def key(self) -> str:
        """The options on which the lowered kernel depends."""
        lowering_options = structs.replace(self, large=bool(self.large))
        own = [getattr(lowering_options, name) for name in _LOWERING]
        return repr([*own, "surfaces" in self.check, self.reduction_order])

    @property
    def reduction_order(self) -> str:
        """The alternative of the choice `reduction-order`; empty for the default."""
        return selected(self.choices).get("reduction-order", "")


_LOWERING = (
    "target", "registers", "optimize", "prefetch", "load_ahead", "subgroups", "unaligned", "large", "strided",
    "aliased",
)  # fmt: skip
"""The options that decide how a kernel is lowered."""

if TYPE_CHECKING:
    # Type checkers take the keywords of a function from no other class than a TypedDict.
    from typing_extensions import TypedDict

    class _Keywords(TypedDict, total=False):
        target: str
        registers: int | None
        optimize: bool
        prefetch: int
        load_ahead: bool
        subgroups: int | None
        unaligned: Sequence[int] | None
        large: bool | None
        model: Model
        dpas_denormals: Literal["keep", "flush"]
        choices: str | Sequence[str]
        check: str | Sequence[str]
        schedules: int
        strict_grf: bool
        threads: int | None
        cache: str | PathLike[str] | None
        progress: bool

    class CompileKeywords(_Keywords, total=False):
        """The keywords of `compile`."""

        engine: Engine | None

    class JitKeywords(_Keywords, total=False):
        """The keywords of `jit`, of which the last have no effect."""

        engine: Engine | Literal["reference", "eager"] | None
        do_not_specialize: Sequence[str | int]
        do_not_specialize_on_alignment: Sequence[str | int]
        noinline: bool
        debug: bool | None
        version: Any
        repr: Any
        launch_metadata: Any


DENORMALS = CHOICES["dpas-denormals"].values
"""The values of `dpas_denormals`."""

OPTIONS = frozenset(Options.__struct_fields__) - {"strided", "aliased"}
"""The options that callers choose."""


def refuse_checks(engine: str, check: Sequence[str]) -> None:
    """Reject the checks that an evaluator of values cannot make: all but `memory`, which it always makes.

    Raises:
        ValueError: if there is another check, or no check of a name.
    """
    _refuse_unknown_checks(check)
    refused = [name for name in check if name != "memory"]
    if refused:
        raise ValueError(
            f"engine '{engine}' does not support the check{'s' * (len(refused) > 1)} {', '.join(refused)}: it has "
            "neither registers and messages nor concurrent threads; the engines of vISA make these checks"
        )


def refuse_choices(engine: str, choices: Sequence[str] | Mapping[str, str]) -> None:
    """Reject alternatives of rules, which only the engines of vISA follow.

    Raises:
        ValueError: if there is one.
    """
    if choices:
        raise ValueError(f"engine '{engine}' does not support the option choices: it follows the default rules")


def _refuse_unknown_checks(check: Sequence[str]) -> None:
    for name in check:
        if name not in CHECKS:
            raise ValueError(f"unknown check '{name}'; there are {', '.join((*CHECKS, ALL_CHECKS))}")


# The parameters of a lowered kernel: which arguments fit them, and what the lowering may assume about them.

SMALL = {"bytes": (1 << 31) - (1 << 16), "index": 1 << 30, "grid": GRID_LIMIT}
"""The limits that the first version of a kernel is compiled for: the bytes from the first to the last byte of an array,
the absolute value of index arguments, and the workgroups in each dimension."""

_ALSO = {"tf32": ("f32",), "index": ("i64", "ui64"), **{f"i{n}": (f"i{n}", f"ui{n}") for n in (8, 16, 32, 64)}}
"""The types of array elements that fit an MLIR element type, if they are not just the type of the same name."""


class Parameter(Struct, frozen=True):
    """A parameter of a kernel. It is plain data, so that kernels from the cache need no MLIR context.

    Attributes:
        type: the MLIR type.
        element: the MLIR type of an element; for a scalar the type itself.
        kind: "scalar", "vector" or "memref"; or "input", of a kernel of assembly.
        shape: extents of a memref or vector; None for dynamic ones.
        strides: strides of a memref in elements; None for dynamic ones.
        offset: offset of a memref's first element, in elements; None if it is dynamic.
        contiguous: whether a memref is row-major without gaps.
        name: the user's name of it: `%C` in MLIR, of assembly the input's name; empty if the text has none.
    """

    type: str
    element: str
    kind: str = "scalar"
    shape: tuple[int | None, ...] = ()
    strides: tuple[int | None, ...] = ()
    offset: int | None = 0
    contiguous: bool = True
    name: str = ""

    @property
    def is_packed(self) -> bool:
        """Whether it is a memref whose elements are smaller than a byte."""
        return self.is_memref and self.element in ARRAYS

    @property
    def is_memref(self) -> bool:
        """Whether it is a memref."""
        return self.kind == "memref"

    def listed(self, index: int) -> str:
        """The parameter in a list of all."""
        return self.name if self.kind == "input" else f"{self.name or index}: {self.type}"

    def title(self, index: int, kernel: str) -> str:
        """The parameter in a message about its argument."""
        if self.kind == "input":
            return self.shown(index)
        return f"{self.shown(index)} of kernel '{kernel}', {_article(self.type)},"

    def shown(self, index: int) -> str:
        """The parameter's argument in other messages."""
        return f"argument '{self.name}'" if self.name else f"argument {index}"

    def inputs(self, index: int, argument: Any, title: str) -> dict[str, Any]:
        """The inputs of the lowered kernel for an argument: the array or number, then extents and strides.

        Args:
            index: the parameter's number.
            title: the argument's name in messages.

        Raises:
            TypeError, ValueError: if the argument does not fit.
        """
        name = self.name if self.kind == "input" else f"in{index}"
        if not self.is_memref:
            if self.kind == "scalar" and not _is_number(argument):
                array = isinstance(argument, np.ndarray)
                raise TypeError(f"{title} must be a number, but got {'an array' if array else type(argument).__name__}")
            return {name: argument}
        if not isinstance(argument, np.ndarray):
            raise TypeError(f"{title} must be a numpy array, but got {type(argument).__name__}")
        self._check_element(argument, title)
        shape = packed_shape(self.shape, self.element)
        shape_matches = len(argument.shape) == len(shape) and all(
            want in (None, have) for want, have in zip(shape, argument.shape)
        )
        if not shape_matches:
            packed = f" of bytes, which hold {8 // element_bits(self.element)} elements each" if self.is_packed else ""
            raise ValueError(f"{title} cannot be an array of shape {argument.shape}{packed}")
        # An array without dimensions is not a number, which would be an address.
        return {name: np.atleast_1d(argument)} | self._layout(name, argument, title)

    def _check_element(self, argument: np.ndarray[Any, Any], title: str) -> None:
        if self.is_packed:
            if argument.dtype not in (np.uint8, np.int8):
                names = " or ".join(ARRAYS[self.element])
                raise TypeError(
                    f"{title} must be an array of {names}, or packed in uint8, but got an array of {argument.dtype}"
                )
            return
        types = _ALSO.get(self.element, (self.element.removeprefix("s"),))
        legal_dtypes = [dtype_named(STORAGE[t]) for t in types if t in STORAGE]
        if not legal_dtypes:
            raise TypeError(f"{title} has elements of {self.element}, which no array has")
        if argument.dtype not in legal_dtypes:
            names = " or ".join(str(d) for d in legal_dtypes)
            raise TypeError(f"{title} must be an array of {names}, but got an array of {argument.dtype}")

    def _layout(self, name: str, argument: np.ndarray[Any, Any], title: str) -> dict[str, int]:
        input_values = {f"{name}_size{d}": n for d, n in enumerate(argument.shape)}
        if self.contiguous:
            if not argument.flags.c_contiguous:
                raise ValueError(f"{title} must lie in memory in row-major order; numpy.ascontiguousarray makes it so")
            return input_values
        if argument.size and any(s % argument.itemsize for s in argument.strides):
            raise ValueError(
                f"{title} cannot be an array of strides {argument.strides} bytes, which are not multiples of "
                f"{argument.itemsize}, the size of its elements; numpy.ascontiguousarray makes a copy"
            )
        element_strides = [s // argument.itemsize for s in argument.strides]
        per_byte = 8 // element_bits(self.element) if self.is_packed else 1
        strides = [
            n if n is None or i == len(element_strides) - 1 else n // per_byte for i, n in enumerate(self.strides)
        ]
        # numpy gives empty arrays strides of 0.
        strides_match = not argument.size or all(
            want in (None, have) or size == 1 for want, have, size in zip(strides, element_strides, argument.shape)
        )
        if not strides_match:
            raise ValueError(f"{title} cannot be an array of strides {tuple(element_strides)} elements")
        if self.offset not in (0, None):
            raise ValueError(
                f"{title} begins {self.offset} elements into its buffer, which no array does; let it be dynamic"
            )
        return input_values | {f"{name}_stride{d}": s for d, s in enumerate(element_strides)} | {f"{name}_offset": 0}

    def misfits(self, array: Any, limits: Block2DLimits | None) -> bool:
        """Whether an array has a dynamic shape or stride, and 2D block messages cannot address it."""
        if limits is None or not (self.is_memref and isinstance(array, np.ndarray) and array.ndim > 1):
            return False
        if None not in (*self.shape[-2:], *self.strides):
            return False
        return limits.array_problem(array) is not None

    def is_strided(self, array: Any) -> bool:
        """Whether an array has an innermost stride other than 1, and the type's innermost stride is dynamic."""
        unknown = self.is_memref and bool(self.strides) and self.strides[-1] is None
        return unknown and isinstance(array, np.ndarray) and array.strides[-1:] != (array.itemsize,)

    def reach(self, argument: Any) -> int:
        """The greatest of: the bytes that an array spans, its extents in bytes, its strides in bytes."""
        if not (self.is_memref and isinstance(argument, np.ndarray)):
            return 0
        strides = [abs(n) for n in argument.strides]
        # Strides of contiguous memrefs are computed from their extents, even if there are no elements.
        contiguous = math.prod(argument.shape[1:]) * argument.itemsize
        reach = sum((n - 1) * s for n, s in zip(argument.shape, strides)) + argument.itemsize
        return int(max(*(n * argument.itemsize for n in argument.shape), *strides, contiguous, reach))

    def greatest_index(self, argument: Any) -> int:
        """The greatest absolute value of an index argument or a vector of indices; 0 for other arguments."""
        if self.is_memref or self.element != "index":
            return 0
        index_array = np.asarray(argument)
        is_integral = np.issubdtype(index_array.dtype, np.integer) or index_array.dtype == object
        return max((abs(int(n)) for n in index_array.ravel()), default=0) if is_integral else 0


def parameters_of(types: Sequence[mlir.Type], names: Sequence[str] = ()) -> tuple[Parameter, ...]:
    """The parameters of these MLIR types, and their names in the text."""
    return tuple(structs.replace(_parameter(t), name=n) for t, n in zip(types, names or [""] * len(types)))


def _parameter(type_: mlir.Type) -> Parameter:
    text = str(type_)
    if isinstance(type_, mlir.VectorType):
        vector = mlir.VectorType(type_)
        return Parameter(text, str(vector.element_type), "vector", tuple(vector.shape))
    if not isinstance(type_, mlir.MemRefType):
        return Parameter(text, text)
    memref = mlir.MemRefType(type_)
    strides, offset = memref.get_strides_and_offset()
    size, step = mlir.ShapedType.get_dynamic_size(), mlir.ShapedType.get_dynamic_stride_or_offset()
    identity = mlir.AffineMapAttr.get(mlir.AffineMap.get_identity(memref.rank, memref.context))
    return Parameter(
        text,
        str(memref.element_type),
        "memref",
        tuple(None if n == size else int(n) for n in memref.shape),
        tuple(None if n == step else int(n) for n in strides),
        None if offset == step else int(offset),
        memref.layout == identity,
    )


def beyond(
    parameters: Sequence[Parameter],
    arguments: Sequence[Any],
    grid: int | Sequence[int],
    limits: Mapping[str, int] = SMALL,
) -> str | None:
    """Return the limit that a call exceeds, as a clause; None if it does not. A limit of 0 means no limit."""
    if not any(limits.values()):
        return None
    limit_of = {quantity: limits.get(quantity) or math.inf for quantity in SMALL}
    if max(extent(grid, "grid")) > limit_of["grid"]:
        return f"'grid' has more than {limit_of['grid']} workgroups in a dimension"
    for i, (parameter, argument) in enumerate(zip(parameters, arguments)):
        if parameter.reach(argument) > limit_of["bytes"]:
            return f"{parameter.shown(i)} is an array of more than {limit_of['bytes']} bytes"
        if parameter.greatest_index(argument) > limit_of["index"]:
            return f"{parameter.shown(i)} is an index of more than {limit_of['index']}"
    return None


def _article(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeio' or noun.startswith('f') else 'a'} {noun}"


def _is_number(argument: Any) -> bool:
    return isinstance(argument, (bool, int, float, np.generic)) or (
        isinstance(argument, np.ndarray) and argument.ndim == 0
    )


# 2D surfaces whose extents a kernel computes from its arguments: whether 2D block messages can address them.

Expression: TypeAlias = "int | tuple[Any, ...]"
"""A number; ("argument", i); ("extent", i, d), of an array; or an op's name and its operands."""

OPERATIONS: dict[str, integers.Integers] = {
    **integers.SIGNED,
    **integers.UNSIGNED,
    "shli": lambda a, b: a << b if b < 64 else 0,
    "shrui": lambda a, b: a >> b,
}
"""Ops of arith on extents, which do not wrap around."""

_OF_ANY_SIGN = ("addi", "subi", "muli", "minsi", "maxsi")
"""The ops whose operands may be negative."""


class Surface(Struct, frozen=True):
    """The surface of a descriptor or tile. It is plain data, as parameters are.

    Attributes:
        argument: the number of the argument whose memory contains the surface.
        size: bytes of an element.
        width, rows, pitch: elements of a row, number of rows, and elements from one row to the next; None if it is not
            computed from arguments alone.
    """

    argument: int
    size: int
    width: Expression | None
    rows: Expression | None
    pitch: Expression | None

    def misfits(self, arguments: Sequence[Any], limits: Block2DLimits) -> bool:
        """Whether 2D block messages cannot address it in a call."""
        width, rows, pitch = (evaluated(e, arguments) for e in (self.width, self.rows, self.pitch))
        in_bytes = [None if n is None else n * self.size for n in (width, pitch)]
        address = arguments[self.argument]
        start = int(address) if isinstance(address, (int, np.integer)) else None
        return limits.surface_problem(in_bytes[0], rows, in_bytes[1], start) is not None


class Multiple(Struct, frozen=True):
    """A number that a kernel assumes to be a positive multiple of another.

    Attributes:
        argument: the number of the array that is accessed as if it were; a version for which the array is unaligned
            assumes nothing.
        number: the number.
        of: of what it is a multiple.
    """

    argument: int
    number: Expression
    of: int

    def holds(self, arguments: Sequence[Any]) -> bool:
        """Whether it is one in a call."""
        number = evaluated(self.number, arguments)
        return number is not None and number > 0 and number % self.of == 0


class Sum(Struct, frozen=True):
    """A sum of products of numbers that a kernel assumes to fit 32 bits.

    Attributes:
        argument: the number of the array that is accessed as if it did; see `Multiple`.
        terms: of each product, its factor and its numbers.
    """

    argument: int
    terms: tuple[tuple[int, tuple[Expression, ...]], ...]

    def holds(self, arguments: Sequence[Any]) -> bool:
        """Whether it fits in a call."""
        terms = (n * math.prod(evaluated(e, arguments) or 0 for e in numbers) for n, numbers in self.terms)
        return -(1 << 31) <= sum(terms) < 1 << 31


class Product(Struct, frozen=True):
    """A product of matrices that are loaded from surfaces.

    Attributes:
        where: the product's place in the source.
        columns, rows: the inner sizes of its surfaces: columns of the left one, and rows of the right one.
    """

    where: str
    columns: Expression
    rows: Expression

    def unlike(self, arguments: Sequence[Any]) -> str | None:
        """A warning of inner sizes that do not fit in a call; None if they do.

        Sizes of which one is a multiple of the other are not reported: matrices stacked in one array have them.
        """
        columns, rows = evaluated(self.columns, arguments), evaluated(self.rows, arguments)
        if not columns or not rows or max(columns, rows) % min(columns, rows) == 0:
            return None
        return (
            f"{self.where}: the left matrix is loaded from rows of {columns} elements, but the right one from "
            f"{rows} rows; out-of-bounds elements are zero, and check='bounds' finds the first load of them"
        )


def evaluated(expression: Expression | None, arguments: Sequence[Any]) -> int | None:
    """The value of an expression for the arguments of a call; None if it is not known."""
    if expression is None or isinstance(expression, int):
        return expression
    operator, *operands = expression
    if operator == "argument":
        argument = arguments[operands[0]]
        return int(argument) if isinstance(argument, (int, np.integer)) else None
    if operator == "extent":
        shape = np.shape(arguments[operands[0]])
        return shape[operands[1]] if operands[1] < len(shape) else None
    numbers = [evaluated(e, arguments) for e in operands]
    if None in numbers or (operator not in _OF_ANY_SIGN and min(n for n in numbers if n is not None) < 0):
        return None
    a, b = (n for n in numbers if n is not None)
    return int(OPERATIONS[operator](a, b))


# The executable.


def reads_group_ids(program: Program) -> bool:
    """Whether an instruction of a program reads the id of its workgroup."""
    return not GROUP_IDS.isdisjoint(referenced_variables(program.instructions))


class Executable(Struct, frozen=True):
    """A kernel lowered to vISA, as plain data that can be pickled and read again without MLIR.

    Attributes:
        name: the kernel's name.
        parameters: its parameters.
        program: the vISA program.
        limits: the limits of its launches, with the keys of `SMALL`; 0 for no limit.
        known: the extents of grid and block that the kernel fixes, by "grid" and "block".
        subgroups: the number of subgroups of a workgroup if the kernel's maps define it; otherwise None.
        remarks: the remarks of the lowering about code that is correct but slow.
        source: the text from which it was read, for diagnostics.
        surfaces: the 2D surfaces whose extents or strides are computed from arguments.
        multiples: the numbers that it assumes to be multiples of others.
        sums: the sums that it assumes to fit 32 bits.
        products: the products of matrices, whose inner sizes a call compares.
        unit_strides: the numbers of the arguments whose innermost stride must be 1 although their types allow others.
        changed: the numbers of the arguments that may not share memory with others, since subgroups change them without
            waiting for accesses of those.
        places: the position of each argument in the kernel's text.
        is_assembly: whether its parameters are the program's inputs.
        exact_messages: whether its messages are as its author wrote them; see `engines.operands.Layout.exact`.
        exact_addresses: whether this is a kernel of XeVM, whose addresses are its author's, as those of assembly; see
            `engines.operands.Layout.exact_addresses`.
        repaired: of kernels that are written in XeGPU, a warning of the first 2D block that other messages move, since
            a 2D block message, as upstream's lowering makes one, would break a rule of the target; empty if there is
            none. None for other kernels.
        reads_block_ids: whether its author reads the ids of blocks, which differ from workgroup to workgroup. Programs
            that print or assert read them too.
    """

    name: str
    parameters: tuple[Parameter, ...]
    program: Program
    limits: Mapping[str, int] = {}
    known: Mapping[str, tuple[int, ...]] = {}
    subgroups: int | None = None
    remarks: tuple[Diagnostic, ...] = ()
    source: Source | None = None
    surfaces: tuple[Surface, ...] = ()
    multiples: tuple[Multiple, ...] = ()
    sums: tuple[Sum, ...] = ()
    products: tuple[Product, ...] = ()
    unit_strides: tuple[int, ...] = ()
    changed: tuple[int, ...] = ()
    places: tuple[Position, ...] = ()
    is_assembly: bool = False
    exact_messages: bool = False
    exact_addresses: bool = False
    repaired: str | None = None
    reads_block_ids: bool = False

    @classmethod
    def of_assembly(cls, program: Program, source: Source | None = None) -> Executable:
        """The executable of a program that was read from assembly."""
        parameters = tuple(Parameter(i.var.type, i.var.type, "input", name=i.var.name) for i in program.arguments)
        return cls(
            program.name,
            parameters,
            program,
            source=source,
            is_assembly=True,
            exact_messages=True,
            reads_block_ids=reads_group_ids(program),
        )

    def unaligned(self, arguments: Sequence[Any], limits: Block2DLimits | None) -> set[int]:
        """The numbers of the arrays that it accesses by an assumption which does not hold in a call.

        Args:
            limits: those of the target's 2D block messages; None if it has none.
        """
        misaligned = {i for i, (p, a) in enumerate(zip(self.parameters, arguments)) if p.misfits(a, limits)}
        misaligned |= {s.argument for s in self.surfaces if limits is not None and s.misfits(arguments, limits)}
        misaligned |= {m.argument for m in self.multiples if not m.holds(arguments)}
        if limits is not None:
            windows = ((i, a) for i, a in enumerate(arguments) if isinstance(a, Window))
            misaligned |= {i for i, window in windows if not window.is_aligned(limits.base_alignment)}
        return misaligned | {s.argument for s in self.sums if not s.holds(arguments)}

    def strided(self, arguments: Sequence[Any]) -> tuple[int, ...]:
        """The numbers of the arguments whose innermost stride is assumed to be 1, but is not."""
        return tuple(i for i in self.unit_strides if self.parameters[i].is_strided(arguments[i]))

    def shares_changed(self, arguments: Sequence[Any]) -> bool:
        """Whether an array that must not share memory with others does."""
        return any(
            i != other and isinstance(found, np.ndarray) and np.may_share_memory(arguments[i], found)
            for i in self.changed
            for other, found in enumerate(arguments)
        )


def is_pointer(item: Input) -> bool:
    """Whether an input takes the address of an array."""
    return item.var.type == "uq" and item.var.count == 1


def value_of(item: Input, argument: Any, title: str) -> bytes:
    """The bytes of an argument that is passed by value.

    Raises:
        TypeError, ValueError: if it does not fit the input.
    """
    fmt, count = item.var.format, item.var.count
    number_kind = "number" if fmt.is_float else "integer"
    expected_text = f"{count} {number_kind}s" if count > 1 else f"a{'n' * (number_kind == 'integer')} {number_kind}"
    requirement = f"{title} must be {expected_text} of type {fmt.name}"
    if is_pointer(item):
        requirement = f"{title} must be a numpy array, or an integer as its address"
    try:
        array = np.asarray(argument)
    except ValueError:
        raise TypeError(f"{requirement}, but got {argument!r}") from None
    if array.dtype == bool and not is_pointer(item):
        array = array.astype(np.uint8)
    if array.dtype == fmt.dtype and array.size == count:
        return array.tobytes()
    is_convertible = np.issubdtype(array.dtype, np.integer) or (
        fmt.is_float and np.issubdtype(array.dtype, np.floating)
    )
    # numpy represents integers of more than 64 bits as objects.
    if not is_convertible and not (array.dtype == object and all(isinstance(v, int) for v in array.ravel())):
        actual_type = array.dtype if isinstance(argument, (np.ndarray, np.generic)) else type(argument).__name__
        raise TypeError(f"{requirement}, but got {actual_type}")
    if array.size != count:
        raise ValueError(f"{requirement}, but got {array.size} of them")
    if not fmt.is_float:
        info = np.iinfo(fmt.dtype)
        if any(not info.min <= int(v) <= info.max for v in array.ravel()):
            raise ValueError(f"{requirement}, from {info.min} to {info.max}, but got {argument!r}")
        return array.astype(fmt.dtype).tobytes()
    try:
        with np.errstate(over="ignore"):
            values = array.astype(fmt.dtype)
    except OverflowError:
        values = np.full(array.shape, np.inf, fmt.dtype)
    if (np.isinf(values) & (array != values)).any():
        raise ValueError(f"{requirement} in its range, but got {argument!r}")
    return values.tobytes()
