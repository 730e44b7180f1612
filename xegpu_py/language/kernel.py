"""Kernels of the tile language: what a decorated Python function becomes, and how it is launched."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import numpy as np
from mlir import ir as mlir

from xegpu_py import build
from xegpu_py.compiled import CompiledKernel, compile
from xegpu_py.ir.context import Context, current
from xegpu_py.ir.diagnostics import DiagnosticError
from xegpu_py.ir.module import Module
from xegpu_py.language import types
from xegpu_py.language.compiler import Compiler
from xegpu_py.language.fingerprint import fingerprint
from xegpu_py.language.memory import Array
from xegpu_py.language.source import code_of
from xegpu_py.language.types import DType, dtype_of
from xegpu_py.language.values import BUILDING, Value
from xegpu_py.lowered import ModuleSource

REGISTERS = 256
"""Registers of a thread, unless the kernel's options say otherwise: tiles take many."""


class Constexpr:
    """Annotates a parameter of a kernel that is known as the kernel is compiled: `BLOCK: Constexpr`."""


@dataclass(frozen=True)
class ArrayType:
    """What an array argument is compiled for.

    Attributes:
        dtype: its element type.
        shape: its extents; None for one that is known only when the kernel is called.
        strides: elements between indices likewise; None for a row-major array without gaps.
    """

    dtype: DType
    shape: tuple[int | None, ...]
    strides: tuple[int | None, ...] | None = None

    @property
    def memref(self) -> str:
        """MLIR's type."""
        extents = "x".join("?" if n is None else str(n) for n in (*self.shape, self.dtype.mlir))
        if self.strides is None:
            return f"memref<{extents}>"
        return f"memref<{extents}, strided<[{', '.join('?' if n is None else str(n) for n in self.strides)}]>>"

    def __str__(self) -> str:
        shown = ", ".join("?" if n is None else str(n) for n in self.shape)
        return f"{self.dtype}[{shown}]"


@dataclass(frozen=True)
class ScalarType:
    """What a number that is passed to a kernel is compiled for.

    Attributes:
        dtype: its type.
    """

    dtype: DType

    def argument(self, given: Any) -> Any:
        """The number as it is passed: MLIR's integers have no sign, so those of upper half become negative."""
        if self.dtype.kind == "uint" and given >= 1 << self.dtype.bits - 1:
            return int(given) - (1 << self.dtype.bits)
        return given

    def __str__(self) -> str:
        return str(self.dtype)


@dataclass(frozen=True)
class Known:
    """An argument that is known as the kernel is compiled.

    Attributes:
        value: the argument.
    """

    value: Any

    def __str__(self) -> str:
        return repr(self.value)


ArgumentType = ArrayType | ScalarType | Known


@contextmanager
def _building(context: Context | None) -> Iterator[Module]:
    """A module in which a kernel is built. Ops have the locations that the compiler gives them."""
    with context or Context(), mlir.Location.unknown():
        made = Module(mlir.Module.create())
        BUILDING.enter()
        try:
            with mlir.InsertionPoint(made.body):
                yield made
        finally:
            BUILDING.leave()
        made.verify()


def build_module(function: FunctionType, arguments: Mapping[str, ArgumentType]) -> Module:
    """The module of XeTile that a Python function stands for.

    Args:
        arguments: what each parameter is compiled for.

    Raises:
        DiagnosticError: at the line of the user's file that cannot be compiled.
    """
    code = code_of(function)
    kinds = {name: kind for name, kind in arguments.items() if not isinstance(kind, Known)}
    passed = [kind.memref if isinstance(kind, ArrayType) else kind.dtype.mlir for kind in kinds.values()]
    given = {name: kind.value for name, kind in arguments.items() if isinstance(kind, Known)}
    where = code.position(code.node)
    try:
        with (
            _building(current()) as module,
            mlir.Location.file(where.file, where.line, where.column),
            build.gpu_module("kernels"),
            build.kernel(function.__name__, *passed) as values,
        ):
            given |= {name: _argument(kind, value) for (name, kind), value in zip(kinds.items(), values)}
            Compiler().run(function, [], given)
    except DiagnosticError as e:
        e.sources = [*e.sources, code.source]
        raise
    return Module(module.ir, (code.source,))


def _argument(kind: ArrayType | ScalarType, value: mlir.Value) -> Array | Value:
    """What the function gets for an argument of the kernel."""
    return (Array if isinstance(kind, ArrayType) else Value)(value, kind.dtype)


def _warn_of_pressure(kernel: CompiledKernel) -> None:
    """Say once where a kernel needs more registers than a thread has; hardware would spill them."""
    allocation = kernel.kernel.launcher.allocation
    if allocation.beyond:
        where = kernel.kernel.program.instructions[allocation.peak].where
        warnings.warn(f"{where}: kernel '{kernel.name}' does not fit: {allocation.report()}", stacklevel=4)


@dataclass
class TileKernel:
    """A kernel that was compiled for given types of its arguments.

    Attributes:
        name: its name.
        build: compiles it to the module of XeTile that holds it.
        options: of `xegpu_py.compile`.
        source: all that the module depends on, under which it is kept on disk; empty if that cannot be told.
    """

    name: str
    build: Callable[[], Module]
    options: Mapping[str, Any]
    source: tuple[str, ...] = ()

    @functools.cached_property
    def module(self) -> Module:
        """The module of XeTile that holds it."""
        return self.build()

    def compile(self, **options: Any) -> CompiledKernel:
        """The kernel lowered to vISA; see `xegpu_py.compile`."""
        source = ModuleSource(lambda: self.module, self.source)
        found: CompiledKernel = compile(source, self.name, **{**self.options, **options})
        return found

    @functools.cached_property
    def compiled(self) -> CompiledKernel:
        """The kernel lowered to vISA with its own options, 256 registers a thread where they do not say."""
        found = self.compile(registers=self.options.get("registers", REGISTERS))
        if isinstance(found, CompiledKernel):
            _warn_of_pressure(found)
        return found

    @property
    def asm(self) -> dict[str, str]:
        """The kernel's text at each level: "xetile", "xegpu", "visa" (assembly)."""
        found = self.compiled
        levels: dict[str, str] = {level: found.ir(level) for level in ("xetile", "xegpu") if level in found.levels}
        return {**levels, "visa": self.compiled.asm}

    def __call__(self, *arguments: Any, grid: int | Sequence[int] = 1, block: int | Sequence[int] | None = None) -> Any:
        """Run the kernel; see `CompiledKernel`. `block` follows from the kernel's maps."""
        return self.compiled(*arguments, grid=grid, block=block)

    def __str__(self) -> str:
        return str(self.module)


def tile_kernel(*arguments: tuple[Any, Sequence[int | None]], **options: Any) -> Callable[[FunctionType], TileKernel]:
    """Make a kernel of a function of arrays whose types are known.

        @build.tile_kernel((bfloat16, (None, None)), (np.float32, (None, None)))
        def double(X, Y): ...

    Args:
        arguments: the element type and the shape of each array, with None for an extent that calls decide.
        options: of `xegpu_py.compile`.

    Raises:
        TypeError: if the function has another number of parameters.
        DiagnosticError: if the function cannot be compiled.
    """

    def make(function: FunctionType) -> TileKernel:
        kinds = [ArrayType(dtype_of(dtype), tuple(shape)) for dtype, shape in arguments]
        names = list(inspect.signature(function).parameters)
        if len(names) != len(kinds):
            raise TypeError(f"{function.__name__} takes {len(names)} arrays, but {len(kinds)} are typed")
        module = build_module(function, dict(zip(names, kinds)))
        return TileKernel(function.__name__, lambda: module, options, fingerprint(function, dict(zip(names, kinds))))

    return make


class Kernel:
    """A kernel that is compiled for the arguments that it is called with.

        @xegpu_py.jit
        def double(X, Y, ROWS: Constexpr):
            m = program_id(0) * ROWS
            Y.tile((ROWS, 64), at=(m, 0)).store(X.tile((ROWS, 64), at=(m, 0)).load() * 2)

        double[grid](x, y, ROWS=32)

    Arrays are numpy's, or anything with `__array_interface__` or DLPack on the CPU. A parameter annotated with an
    element type is a scalar of it; otherwise integers are int32, or int64 if they do not fit, and other numbers are
    float32. Parameters annotated `Constexpr`, truth values, None, strings and the integer 1 are known as the kernel is
    compiled.

    Attributes:
        versions: what has been compiled, by what the arguments were.
    """

    __name__: str

    def __init__(self, function: FunctionType, **options: Any) -> None:
        functools.update_wrapper(self, function)
        self._function, self._options = function, options
        self.versions: dict[tuple[ArgumentType, ...], TileKernel] = {}
        try:
            self._signature = inspect.signature(function, eval_str=True)
        except (NameError, TypeError):
            self._signature = inspect.signature(function)
        self.__signature__ = self._signature

    @property
    def __kernel_function__(self) -> FunctionType:
        return self._function

    def _kind(self, parameter: inspect.Parameter, given: Any) -> ArgumentType:
        wanted = parameter.annotation
        if wanted is Constexpr or isinstance(given, (bool, str, tuple, type(None), DType)):
            return Known(given)
        if isinstance(given, np.ndarray) and given.ndim:
            return _array_type(given)
        if isinstance(given, (int, float, np.generic)):
            if wanted is not inspect.Parameter.empty:
                dtype = dtype_of(wanted)
                if not dtype.holds(given.item() if isinstance(given, np.generic) else given):
                    raise OverflowError(f"argument '{parameter.name}': {given} does not fit {dtype}")
                return ScalarType(dtype)
            if isinstance(given, (int, np.integer)):
                if given == 1:
                    return Known(1)
                return ScalarType(types.int32 if types.int32.holds(given) else types.int64)
            return ScalarType(types.of_scalar(given))
        if callable(given):
            return Known(given)
        raise TypeError(
            f"argument '{parameter.name}' of kernel '{self.__name__}' must be an array or a number, "
            f"not {type(given).__name__}"
        )

    def bind(self, *arguments: Any, **keywords: Any) -> tuple[TileKernel, list[Any], dict[str, Any]]:
        """The version for these arguments, those that it is called with, and all by their names.

        Raises:
            TypeError: if an argument is missing, or is no array or number.
        """
        bound = self._signature.bind(*arguments, **keywords)
        bound.apply_defaults()
        values = {name: _as_array(value) for name, value in bound.arguments.items()}
        kinds = {name: self._kind(self._signature.parameters[name], value) for name, value in values.items()}
        key = tuple(kinds.values())
        version = self.versions.get(key)
        if version is None:
            make = functools.partial(build_module, self._function, kinds)
            version = TileKernel(self.__name__, make, self._options, fingerprint(self._function, kinds))
            self.versions[key] = version
        passed = [
            kind.argument(values[name]) if isinstance(kind, ScalarType) else values[name]
            for name, kind in kinds.items()
            if not isinstance(kind, Known)
        ]
        return version, passed, values

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        """The kernel with a grid: a number, a tuple, or a function of the arguments by name that gives one."""
        return functools.partial(self, grid=grid)

    def __call__(
        self, *arguments: Any, grid: Any = 1, block: int | Sequence[int] | None = None, **keywords: Any
    ) -> Any:
        """Run the kernel, compiled for these arguments if it is not; see `CompiledKernel`."""
        version, passed, values = self.bind(*arguments, **keywords)
        return version(*passed, grid=grid(values) if callable(grid) else grid, block=block)

    def compile(self, *arguments: Any, **keywords: Any) -> CompiledKernel:
        """The kernel compiled for these arguments, which are not changed."""
        return self.bind(*arguments, **keywords)[0].compiled

    def __repr__(self) -> str:
        return f"<kernel {self.__name__}{self._signature}, {len(self.versions)} versions>"


def _as_array(given: Any) -> Any:
    """An argument as a numpy array where it is an array."""
    if isinstance(given, (np.ndarray, np.generic, int, float, str, tuple, type(None))):
        return given
    if hasattr(given, "__array_interface__"):
        return np.asarray(given)
    if hasattr(given, "__dlpack__"):
        return np.from_dlpack(given)
    return given


def _array_type(array: np.ndarray[Any, Any]) -> ArrayType:
    dtype, shape = dtype_of(array.dtype), (None,) * array.ndim
    if array.flags.c_contiguous:
        return ArrayType(dtype, shape)
    steps = [s // array.itemsize for s in array.strides]
    return ArrayType(dtype, shape, tuple(1 if s == 1 else None for s in steps))


def jit(function: FunctionType | None = None, **options: Any) -> Any:
    """Make a kernel of a Python function, compiled for the arguments that it is called with; see `Kernel`.

    Args:
        options: of `xegpu_py.compile`, such as `target` and `engine`.
    """
    if function is None:
        return functools.partial(Kernel, **options)
    return Kernel(function, **options)


def function(function: FunctionType) -> FunctionType:
    """Mark a Python function that kernels call. It is compiled with each of them; the mark says so to readers."""
    function.__kernel_function__ = function  # type: ignore[attr-defined]
    return function
