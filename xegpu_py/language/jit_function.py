"""Kernels of the tile language: decorators of Python functions, compilation and launches."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import operator
import os
import pickle
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

import numpy as np
from mlir import ir as mlir

from xegpu_py import build
from xegpu_py.argument_types import unknown_option
from xegpu_py.ir.context import current
from xegpu_py.ir.diagnostics import Diagnostic, DiagnosticError
from xegpu_py.ir.module import Module, kernels
from xegpu_py.language import eager
from xegpu_py.language.compiler import Compiler
from xegpu_py.language.function_source import Uses, code_of
from xegpu_py.language.scopes import LoopCarryRequired
from xegpu_py.lower_kernel import ModuleSource, compile
from xegpu_py.passes.analysis.ir_queries import SHARES
from xegpu_py.passes.analysis.tile_division import can_be_divided
from xegpu_py.passes.analysis.tile_layout_inference import has_maps
from xegpu_py.plugins import plugin
from xegpu_py.runtime.kernel import CompiledKernel
from xegpu_py.runtime.launch import NO_GRID, Statistics
from xegpu_py.runtime.options import OPTIONS, refuse_checks, refuse_choices
from xegpu_py.target import DEFAULT
from xegpu_py.target import target as target_of
from xegpu_py.tiles.arrays import Array
from xegpu_py.tiles.element_types import (
    ArgumentType,
    ArrayType,
    Known,
    Reversed,
    ScalarType,
    argument_type,
    as_argument,
    dtype_of,
    flattened,
    is_passed,
    is_reversed,
    nested,
)
from xegpu_py.tiles.tile_values import Value
from xegpu_py.tiles.value_base import BUILDING
from xegpu_py.visa.finalizer import GPUS, available, finalize
from xegpu_py.visa.program import extent

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from xegpu_py.runtime.options import JitKeywords

Function = TypeVar("Function", bound=Callable[..., Any])

VARIABLE = "XEGPU_PY_INTERPRET"
"""The environment variable that selects the eager engine for all kernels."""

EAGER = "eager"

REGISTERS = 256
"""The default number of registers of a thread: tiles need many."""


def build_module(
    function: FunctionType, arguments: Mapping[str, ArgumentType], target: str = DEFAULT, shares: bool = True
) -> Module:
    """Compile a Python function to a module of XeTile.

    Args:
        arguments: the type of each parameter.
        target: the GPU; it decides how `dot_scaled` multiplies.
        shares: whether all subgroups of a workgroup work on the same values, if the kernel can be divided among them.

    Raises:
        DiagnosticError: at the line of the user's file that cannot be compiled.
    """
    carried_types: dict[ast.AST, dict[str, Any]] = {}
    while True:
        try:
            module, uses_shares = _built_module(function, arguments, target, carried_types, shares)
            (kernel,) = kernels(module.outline)
            if not uses_shares or has_maps(kernel):
                return module
            if can_be_divided(kernel):
                with module.context:
                    kernel.attributes[SHARES] = mlir.UnitAttr.get()
                return module
            shares = False
        except LoopCarryRequired as e:
            carried_types.setdefault(e.loop, {})[e.name] = e.outline


def _built_module(
    function: FunctionType,
    arguments: Mapping[str, ArgumentType],
    target: str,
    carried_types: Mapping[ast.AST, Mapping[str, Any]],
    shares: bool,
) -> tuple[Module, bool]:
    """As `build_module`; also whether it relies on `shares`. Raises `LoopCarryRequired`."""
    code = code_of(function)
    mlir_types = [type_of_argument.mlir for type_of_argument in _passed(arguments).values()]
    where = code.position(code.node)
    with current(), mlir.Location.file(where.file, where.line, where.column):
        module = Module(mlir.Module.create(mlir.Location.unknown()), (code.source,))
        BUILDING.enter(target=target, shares=shares)
        uses_shares = False
        try:
            with (
                mlir.InsertionPoint(module.body),
                build.gpu_module("kernels"),
                build.kernel(function.__name__, *mlir_types) as values,
            ):
                result = Compiler(carried_types).run(function, [], _given(arguments, values))
            if result is not None:
                returned = (n for n in ast.walk(code.node) if isinstance(n, ast.Return) and n.value)
                raise DiagnosticError([Diagnostic("error", eager.NO_RESULT, code.position(next(returned, code.node)))])
        except DiagnosticError as e:
            e.sources = [*e.sources, code.source]
            raise
        finally:
            uses_shares = BUILDING.leave()
        module.verify()
    return module, uses_shares


def _warn_of_pressure(kernel: CompiledKernel) -> None:
    """Warn of a kernel that needs more registers than a thread has; hardware would spill them."""
    allocation = kernel.executor.allocation
    if allocation.beyond:
        where, count = allocation.where, kernel.subgroups or 1
        pressure = f"register pressure {allocation.pressure} of {allocation.registers} GRFs"
        remedy = f"smaller tiles, or more subgroups than {count}, by num_warps or maps, need fewer registers"
        message = f"kernel '{kernel.name}' does not fit: {pressure}; {remedy}"
        warnings.warn_explicit(message, UserWarning, where.file, where.line)


def _given(arguments: Mapping[str, ArgumentType], values: Iterable[mlir.Value]) -> dict[str, Any]:
    """The arguments of the Python function, for the SSA values of the kernel's arguments."""
    python_arguments: dict[str, Any] = {}
    for name, type_of_argument in arguments.items():
        if isinstance(type_of_argument, Known):
            python_arguments[name] = type_of_argument.value
        elif isinstance(type_of_argument, ScalarType) and type_of_argument.number is not None:
            python_arguments[name] = Value.constant(type_of_argument.dtype, type_of_argument.number)
    for (name, type_of_argument), value in zip(_passed(arguments).items(), values):
        python_arguments[name] = (Array if isinstance(type_of_argument, ArrayType) else Value)(
            value, type_of_argument.dtype
        )
    return nested({name: python_arguments[name] for name in arguments})


def _passed(arguments: Mapping[str, ArgumentType]) -> dict[str, ArrayType | ScalarType]:
    """The arguments that are passed at run time."""
    return {name: type_of_argument for name, type_of_argument in arguments.items() if is_passed(type_of_argument)}


def is_eager(engine: Any) -> bool:
    """Whether Python runs a kernel: its engine is "eager", or `XEGPU_PY_INTERPRET` is set."""
    return engine == EAGER or os.environ.get(VARIABLE, "0") not in ("", "0")


_MEASURED = "measured launch"
"""A keyword of calls by `profile` and `fidelity`, which no argument can have. A function between would be in the
tracebacks."""


@dataclass
class TileKernel:
    """A kernel for given types of its arguments, compiled when it is first needed.

    Attributes:
        function: the Python function.
        arguments: the type of each parameter.
        options: of `xegpu_py.compile`; also the engine "eager".
    """

    function: FunctionType
    arguments: Mapping[str, ArgumentType]
    options: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Its name."""
        return self.function.__name__

    @property
    def module(self) -> Module:
        """The module of XeTile that holds it."""
        _ = self.uses
        return self._read()

    @functools.cached_property
    def _read(self) -> functools._lru_cache_wrapper[Module]:
        """Builds the module at its first call. It does not refer to this object, which has kernels that refer to it."""
        divided = self._subgroups is not None
        return functools.cache(functools.partial(build_module, self.function, self.arguments, self._target, divided))

    @functools.cached_property
    def uses(self) -> Uses:
        """The objects that the function referred to when it was compiled."""
        return Uses(self.function, self.arguments)

    def is_like(self, earlier: TileKernel) -> bool:
        """Whether this is the kernel that an earlier one is, of which that cannot be known without compiling it."""
        if not earlier.uses.opaque:
            return False
        if not earlier._read.cache_info().currsize:
            # It is not compiled yet.
            del earlier.uses
            return True
        one, other = (kernel.module.ir.operation.get_asm(enable_debug_info=True) for kernel in (self, earlier))
        return bool(one == other)

    @property
    def _target(self) -> str:
        return str(self.options.get("target", DEFAULT))

    @property
    def _subgroups(self) -> int | None:
        return cast("int | None", self.options.get("subgroups", 0))

    def compile(self, **options: Any) -> CompiledKernel:
        """The kernel lowered to vISA; see `xegpu_py.compile`."""
        if any(
            options.get(name, setting) != setting
            for name, setting in (("target", self._target), ("subgroups", self._subgroups))
        ):
            return TileKernel(self.function, self.arguments, {**self.options, **options}).compile()
        source = ModuleSource(self._read, self.uses.fingerprint)
        return compile(source, self.name, **{**self._lowering(), **options})

    def _lowering(self) -> dict[str, Any]:
        """The options, with those that follow from the arguments."""
        options = {**self.options}
        if options.get("engine") == EAGER:
            del options["engine"]
        options["subgroups"] = self._subgroups
        unaligned = [i for i, k in enumerate(_passed(self.arguments).values()) if not getattr(k, "aligned", True)]
        if unaligned and options.get("engine") != "reference":
            options.setdefault("unaligned", unaligned)
        return options

    @functools.cached_property
    def compiled(self) -> CompiledKernel:
        """The kernel lowered to vISA with its own options, by default for 256 registers a thread."""
        compiled_kernel = self.compile(registers=self.options.get("registers", REGISTERS))
        compiled_kernel.names = [*_passed(self.arguments)]
        if isinstance(compiled_kernel, CompiledKernel):
            _warn_of_pressure(compiled_kernel)
        return compiled_kernel

    @functools.cached_property
    def _undivided(self) -> TileKernel:
        return TileKernel(self.function, self.arguments, {"subgroups": None, **self.options})

    def for_block(self, block: int | Sequence[int] | None) -> TileKernel:
        """The kernel for calls with a block, whose subgroups each execute the whole of it where it has no maps."""
        return self if block is None or "subgroups" in self.options else self._undivided

    @property
    def asm(self) -> Listings:
        """The kernel's text at each level, made on demand; see `Listings`."""
        return Listings(self.compiled)

    def __call__(
        self,
        *arguments: Any,
        grid: int | Sequence[int] = NO_GRID,
        block: int | Sequence[int] | None = None,
        counted: bool = False,
        measure: Callable[..., Any] | None = None,
    ) -> Any:
        """Run the kernel; see `CompiledKernel`. `block` follows from the kernel's maps.

        Args:
            counted: whether a kernel that Python runs is compiled after all, since its instructions are counted.
            measure: the method of `CompiledKernel` that runs the launch and gives the result, such as `profile`.
        """
        return self.launcher(grid, block, counted, measure)(*self.converted(arguments), grid=grid, block=block)

    def launcher(
        self,
        grid: int | Sequence[int],
        block: int | Sequence[int] | None,
        counted: bool = False,
        measure: Callable[..., Any] | None = None,
    ) -> Callable[..., Any]:
        """The function that runs a call, with converted arguments: the compiled kernel, if nothing else is asked for.

        The arguments are those of `__call__`.
        """
        kernel = self.for_block(block)
        if kernel is not self:
            return kernel.launcher(grid, block, counted, measure)
        if measure:
            return functools.partial(measure, self.compiled)
        runs = self.compiled if counted or not is_eager(self.options.get("engine")) else None
        if _is_empty(grid):
            # As in Triton, a grid without workgroups launches nothing.
            return functools.partial(_launch_nothing, runs)
        return self._run_eagerly if runs is None else runs

    def _run_eagerly(self, *arguments: Any, grid: int | Sequence[int], block: int | Sequence[int] | None) -> Any:
        """Let Python run the kernel."""
        passed_types = _passed(self.arguments)
        refuse_checks(EAGER, self.options.get("check", ()))
        refuse_choices(EAGER, self.options.get("choices", ()))
        arguments_of = functools.partial(_given, self.arguments)
        types = [type_of_argument.mlir for type_of_argument in passed_types.values()]
        model = self.options.get("model", "fma")
        launch = {"grid": grid, "block": block, "model": model, "target": self._target, "names": [*passed_types]}
        return eager.run(self.function, types, arguments, arguments_of, **launch)

    def converted(self, arguments: Sequence[Any]) -> Sequence[Any]:
        """The arguments of a call as the compiled kernel takes them."""
        passed_types = _passed(self.arguments).values()
        if len(arguments) != len(passed_types):
            return arguments
        return [type_of_argument.argument(argument) for type_of_argument, argument in zip(passed_types, arguments)]

    def __str__(self) -> str:
        return str(self.module)

    def __reduce__(self) -> Any:
        # Pickled by the name of its function, as functions are, and compiled again or read from the cache.
        module, name = self.function.__module__, self.function.__qualname__
        if "<locals>" in name:
            raise pickle.PicklingError(f"cannot pickle a version of the local function {module}.{name}")
        return _version, (module, name, dict(self.arguments), dict(self.options))

    def _repr_html_(self) -> str:
        return self.module._repr_html_()

    def __repr__(self) -> str:
        return f"<kernel {self.name}({', '.join(f'{n}: {k}' for n, k in self.arguments.items())})>"


def _version(module: str, name: str, arguments: Mapping[str, ArgumentType], options: Mapping[str, Any]) -> TileKernel:
    """A pickled kernel."""
    kernel_object = operator.attrgetter(name)(importlib.import_module(module))
    function = getattr(kernel_object, "__kernel_function__", None) or getattr(kernel_object, "function", kernel_object)
    return TileKernel(function, arguments, options)


def _launch_nothing(kernel: CompiledKernel | None, *_: Any, grid: Any, block: Any) -> Statistics | None:
    """The statistics of a launch without workgroups; None if the kernel is not lowered to vISA."""
    if not isinstance(kernel, CompiledKernel):
        return None
    return Statistics(0, np.zeros(len(kernel.program.instructions), np.int64), Counter(), kernel.executor.allocation)


def _is_empty(grid: Any) -> bool:
    """Whether a grid has no workgroups: one of its one to three numbers is 0, and none is negative."""
    numbers = grid if isinstance(grid, (tuple, list)) else (grid,)
    return 1 <= len(numbers) <= 3 and all(isinstance(n, (int, np.integer)) for n in numbers) and min(numbers) == 0


class Listings(Mapping[str, str]):
    """A kernel's text at each level, made on demand.

    "xetile" and "xegpu" are modules, "visa" is assembly, and "gen" is native assembly by Intel's finalizer. Without the
    finalizer "gen" is not listed, and access to it raises `xegpu_py.visa.finalizer.FinalizerMissing`.
    """

    def __init__(self, kernel: CompiledKernel) -> None:
        self._kernel = kernel

    def __getitem__(self, level: str) -> str:
        if level == "visa":
            return self._kernel.asm
        kernel = self._kernel
        if level == "gen" and kernel.target.name in GPUS:
            return finalize(kernel.asm, kernel.target.name, kernel.options.registers).text
        if level in kernel.levels:
            return kernel.ir(level)
        raise KeyError(level)

    def __iter__(self) -> Iterator[str]:
        yield from self._kernel.levels
        if available(self._kernel.target.name):
            yield "gen"

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"<listings of kernel {self._kernel.name}: {', '.join(self)}>"


def tile_kernel(
    *arguments: tuple[Any, Sequence[int | None]], **options: Any
) -> Callable[[Callable[..., Any]], TileKernel]:
    """Make a kernel of a function of arrays whose types are known.

        @build.tile_kernel((bfloat16, (None, None)), (np.float32, (None, None)))
        def double(X, Y): ...

    Args:
        arguments: the element type and the shape of each array, with None for an extent that is known only at run time.
        options: of `xegpu_py.compile`.

    Raises:
        TypeError: if the function has another number of parameters.
        DiagnosticError: if the function cannot be compiled.
    """

    def make(function: Callable[..., Any]) -> TileKernel:
        array_types = [ArrayType(dtype_of(dtype), tuple(shape)) for dtype, shape in arguments]
        names = list(inspect.signature(function).parameters)
        if len(names) != len(array_types):
            raise TypeError(f"{function.__name__} takes {len(names)} arrays, but {len(array_types)} are typed")
        tile_kernel_ = TileKernel(cast(FunctionType, function), dict(zip(names, array_types)), options)
        if not is_eager(options.get("engine")):
            tile_kernel_.module.verify()
        return tile_kernel_

    return make


LAUNCH_HINTS = ("num_warps", "num_stages", "num_ctas", "maxnreg")
"""Triton's launch options. `num_warps` is the option `subgroups`, `num_stages` of 2 and more `load_ahead`; the others
have no effect."""

_JIT_HINTS = ("noinline", "debug", "version", "repr", "launch_metadata", "do_not_specialize_on_alignment")
"""Triton's options of `jit` without effect: functions are always inlined, and assertions always checked."""


def check_hints(hints: Mapping[str, Any]) -> None:
    """Check Triton's launch options.

    Raises:
        ValueError: if one is not a positive integer.
    """
    for name, hint in hints.items():
        if isinstance(hint, bool) or not isinstance(hint, (int, np.integer)) or hint < 1:
            raise ValueError(f"'{name}' must be a positive integer, but got {hint!r}")


def hinted_options(hints: Mapping[str, int]) -> dict[str, Any]:
    """The options of `xegpu_py.compile` that Triton's launch options are."""
    compile_options: dict[str, Any] = {"load_ahead": True} if hints.get("num_stages", 1) > 1 else {}
    return compile_options | ({"subgroups": hints["num_warps"]} if "num_warps" in hints else {})


class Named(dict[str, Any]):
    """The arguments of a kernel by name, for the user's functions of them.

    Raises:
        KeyError: that says which arguments there are, for another name.
    """

    def __init__(self, kernel: str, arguments: Mapping[str, Any]) -> None:
        super().__init__(arguments)
        self._kernel = kernel

    def __missing__(self, name: str) -> Any:
        raise KeyError(f"the call of kernel '{self._kernel}' gives {', '.join(self)}, but not {name!r}")


class OnGrid(functools.partial[Any]):
    """A kernel, or what chooses its arguments, with its grid: `kernel[grid]`."""

    def on(self, scheduler: Any = None, **options: Any) -> Callable[..., Any]:
        """The kernel with its grid in chunks of workgroups, on the workers of a Dask cluster.

            gemm[grid].on(client)(a, b, c)

        Args:
            scheduler: a Dask client, or the address of a scheduler; by default a cluster of this machine's processors.
            options: `chunk`, `workers`, `limit` and `memory` of `launch_on`, the plugin that runs it.
        """

        def launch(*arguments: Any, **keywords: Any) -> Any:
            chooser: Any = self.func
            kernel, bound_arguments = chooser.chosen(arguments, keywords, **self.keywords)
            return plugin("launch_on")(
                scheduler, kernel, bound_arguments, self.keywords["grid"], self.keywords.get("block"), **options
            )

        return launch

    def profile(self, *arguments: Any, **keywords: Any) -> Any:
        """Run the kernel on the grid, and count what it does; see `CompiledKernel.profile`."""
        return self.func.profile(*arguments, **{**self.keywords, **keywords})  # type: ignore[attr-defined]

    def fidelity(self, *arguments: Any, **keywords: Any) -> Any:
        """Run the kernel on the grid, and tell which chosen rules it depends on; see `CompiledKernel.fidelity`."""
        return self.func.fidelity(*arguments, **{**self.keywords, **keywords})  # type: ignore[attr-defined]


class Kernel:
    """A kernel that is compiled for the arguments that it is called with.

        @xegpu_py.jit
        def double(X, Y, ROWS: Constexpr):
            m = program_id(0) * ROWS
            Y.tile((ROWS, 64), at=(m, 0)).store(X.tile((ROWS, 64), at=(m, 0)).load() * 2)

        double[grid](x, y, ROWS=32)

    Arrays are numpy's, or anything with `__array_interface__` or DLPack on the CPU. A parameter annotated with an
    element type is a scalar of it; otherwise integers are int32, or int64 if they do not fit, and other numbers are
    float32. Parameters annotated `Constexpr`, truth values, None, strings and the integer 1 are known at compile
    time.

    Attributes:
        versions: the compiled kernels, by the types of their arguments.
    """

    __name__: str
    __qualname__: str
    _function: Any
    _options: dict[str, Any]
    _unspecialized: frozenset[str]

    def __init__(self, function: Any, **options: Any) -> None:
        if isinstance(function, Kernel):
            own_options = {**function._options, "do_not_specialize": sorted(function._unspecialized)}
            function, options = function._function, {**own_options, **options}
        plain_function: Any = getattr(function, "__func__", function)
        if not isinstance(plain_function, FunctionType):
            raise TypeError(f"jit makes kernels of Python functions, not of {function!r}")
        functools.update_wrapper(self, plain_function)
        self._options = {name: value for name, value in options.items() if name not in _JIT_HINTS}
        self._function, unspecialized = plain_function, self._options.get("do_not_specialize") or ()
        for name in self._options:
            if name != "do_not_specialize" and name not in OPTIONS:
                raise TypeError(f"jit() {unknown_option(name, (*OPTIONS, 'do_not_specialize'))}")
        self.versions: dict[tuple[Any, ...], TileKernel] = {}
        self._variants: dict[tuple[tuple[str, Any], ...], Kernel] = {}
        try:
            self._signature = inspect.signature(plain_function, eval_str=True)
        except (NameError, TypeError):
            self._signature = inspect.signature(plain_function)
        for parameter in self._signature.parameters.values():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise TypeError(
                    f"kernel '{self.__name__}' takes '{parameter}', but kernels have a fixed number of arguments"
                )
        self.__signature__ = self._signature
        names = list(self._signature.parameters)
        self._options.pop("do_not_specialize", None)
        for parameter_name in unspecialized:
            if parameter_name not in (names if isinstance(parameter_name, str) else range(len(names))):
                raise TypeError(
                    f"do_not_specialize names {parameter_name!r}, but kernel '{self.__name__}' has no such parameter"
                )
        self._unspecialized = frozenset(n if isinstance(n, str) else names[n] for n in unspecialized)

    @property
    def __kernel_function__(self) -> FunctionType:
        return self._function

    def bind(self, *arguments: Any, **keywords: Any) -> tuple[TileKernel, list[Any], dict[str, Any]]:
        """The version for these arguments, the arguments that are passed to it, and all arguments by name.

        Raises:
            TypeError: if an argument is missing, or is neither an array nor a number.
        """
        try:
            bound = self._signature.bind(*arguments, **keywords)
        except TypeError as e:
            hint = "; 'jit' makes no methods: a kernel gets no object" if "self" in self._signature.parameters else ""
            option = next((name for name in keywords if name in OPTIONS - {*self._signature.parameters}), None)
            if option:
                hint = f"; '{option}' is an option of 'jit': jit({option}=...) or with_options (docs/options.md)"
            raise TypeError(f"{self.__name__}(): {e}{hint}") from None
        bound.apply_defaults()
        values = {name: as_argument(value) for name, value in bound.arguments.items()}
        flat = flattened(values)
        for name, value in flat.items():
            if name not in values and is_reversed(value):
                raise TypeError(
                    f"argument '{name}' of kernel '{self.__name__}' must not have a negative stride in a tuple"
                )
        limits = target_of(self._options.get("target", DEFAULT)).block2d
        parameters = self._signature.parameters
        argument_types = {
            name: argument_type(parameters[of], value, limits, self.__name__, of not in self._unspecialized, name)
            for name, value in flat.items()
            for of in (name.partition("[")[0],)
        }
        key: tuple[Any, ...] = (
            tuple(argument_types.items()) if len(flat) > len(values) else tuple(argument_types.values())
        )
        version = self.versions.get(key)
        if version is None or not version.uses.is_same():
            # The kernel is new, or something that it refers to has changed, or may have.
            new = TileKernel(self._function, argument_types, self._options)
            if version is None or not new.is_like(version):
                version = self.versions[key] = new
        passed_arguments = [flat[name] for name, kind in argument_types.items() if is_passed(kind)]
        return version, passed_arguments, values

    def bound(self, *arguments: Any, **keywords: Any) -> dict[str, Any]:
        """The arguments of a call by name, arrays as numpy's; some may be missing.

        Raises:
            TypeError: if the kernel has no such parameter.
        """
        bound_arguments = self._signature.bind_partial(*arguments, **keywords).arguments
        return {name: as_argument(value) for name, value in bound_arguments.items()}

    def chosen(
        self, arguments: Sequence[Any], keywords: Mapping[str, Any], grid: Any = 1, block: Any = None
    ) -> tuple[Kernel, dict[str, Any]]:
        """The kernel that a call runs, and its arguments by name: as of what chooses a kernel's arguments."""
        return self, self.bound(*arguments, **keywords)

    def with_options(self, **options: Unpack[JitKeywords]) -> Kernel:
        """The same kernel with other options of `xegpu_py.compile`."""
        own_options = {**self._options, "do_not_specialize": sorted(self._unspecialized)}
        return Kernel(self._function, **{**own_options, **options})

    def _variant(self, options: tuple[tuple[str, Any], ...]) -> Kernel:
        """The same kernel with further options, which remembers its own versions."""
        if options not in self._variants:
            self._variants[options] = self.with_options(**dict(options))
        return self._variants[options]

    def __get__(self, instance: Any, owner: type | None = None) -> Kernel:
        # A kernel in a class is like a static method. `__get__` also makes `help` show a function.
        return self

    def __reduce__(self) -> str:
        # Pickled by name, as functions are.
        return str(self.__qualname__)

    def __reduce_by_value__(self) -> Any:
        # For processes that cannot import its module; see `tuning.cluster.packed`. Annotations that are text may name
        # globals that do not travel, since the code does not use them.
        options = {**self._options, "do_not_specialize": sorted(self._unspecialized)}
        python_function = self._function
        function = FunctionType(
            python_function.__code__,
            python_function.__globals__,
            python_function.__name__,
            python_function.__defaults__,
            python_function.__closure__,
        )
        function.__kwdefaults__, function.__qualname__, function.__module__ = (
            python_function.__kwdefaults__, python_function.__qualname__, python_function.__module__,
        )  # fmt: skip
        parameters = self._signature.parameters.values()
        function.__annotations__ = {p.name: p.annotation for p in parameters if p.annotation is not p.empty}
        return functools.partial(Kernel, **options), (function,)

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        """The kernel with a grid: a number, a tuple, or a function that computes one from the arguments by name.

        Raises:
            TypeError: in a kernel.
        """
        if BUILDING.is_active:
            raise TypeError(
                f"kernel '{self.__name__}' cannot be launched in a kernel; a call without a grid inlines its function"
            )
        return OnGrid(self, grid=grid)

    def __call__(
        self, *arguments: Any, grid: Any = NO_GRID, block: int | Sequence[int] | None = None, **keywords: Any
    ) -> Any:
        """Run the kernel, compiled for these arguments if it is not; see `CompiledKernel`.

        Triton's `LAUNCH_HINTS` may be given too.
        """
        measure = keywords.pop(_MEASURED, None)
        parameters = self._signature.parameters
        hints = {name: keywords.pop(name) for name in LAUNCH_HINTS if name in keywords and name not in parameters}
        try:
            check_hints(hints)
            hint_options = {name: n for name, n in hinted_options(hints).items() if name not in self._options}
            variant = self._variant(tuple(hint_options.items())) if hint_options else self
            version, passed_arguments, values = variant.bind(*arguments, **keywords)
        except Reversed:
            try:
                self._refuse_overlaps((*arguments, *keywords.values()))
            except ValueError as e:
                raise e.with_traceback(None) from None
            with self._copied(arguments, keywords) as (copies, named_copies):
                return variant(*copies, grid=grid, block=block, **named_copies, **{_MEASURED: measure})
        except (TypeError, ValueError, OverflowError) as e:
            # The caller's line is the place of the mistake.
            raise e.with_traceback(None) from None
        size = grid(Named(self.__name__, values)) if callable(grid) else grid
        try:
            for extents, extent_name in (
                (1 if _is_empty(size) else size, "grid"),
                (1 if block is None else block, "block"),
            ):
                extent(extents, extent_name)
        except (TypeError, ValueError) as e:
            raise e.with_traceback(None) from None
        if is_eager(self._options.get("engine")):
            return version(*passed_arguments, grid=size, block=block, measure=measure)
        try:
            launch = version.launcher(size, block, measure=measure)
            return launch(*version.converted(passed_arguments), grid=size, block=block)
        except (DiagnosticError, TypeError, ValueError, OverflowError) as e:
            # A diagnostic has the place of the mistake in the kernel; the place of the others is the caller's line.
            raise e.with_traceback(None) from None

    def profile(self, *arguments: Any, grid: Any = 1, block: int | Sequence[int] | None = None, **keywords: Any) -> Any:
        """Run the kernel, and count what it does; see `CompiledKernel.profile`. The arguments are those of a call."""
        return self(*arguments, grid=grid, block=block, **keywords, **{_MEASURED: CompiledKernel.profile})

    def fidelity(
        self,
        *arguments: Any,
        grid: Any = 1,
        block: int | Sequence[int] | None = None,
        only: Sequence[str] = (),
        **keywords: Any,
    ) -> Any:
        """Run the kernel, and tell which chosen rules it depends on; see `CompiledKernel.fidelity`. The arguments are
        those of a call.
        """
        measure = functools.partial(CompiledKernel.fidelity, only=only)
        return self(*arguments, grid=grid, block=block, **keywords, **{_MEASURED: measure})

    def compile(self, *arguments: Any, **keywords: Any) -> CompiledKernel:
        """The kernel compiled for these arguments, which are not changed."""
        try:
            return self.bind(*arguments, **keywords)[0].compiled
        except Reversed:
            with self._copied(arguments, keywords, back=False) as (copies, named_copies):
                return self.compile(*copies, **named_copies)

    def _refuse_overlaps(self, arguments: Sequence[Any]) -> list[Any]:
        """The arguments, arrays as numpy's; none with a negative stride shares memory with another."""
        host_arguments = [as_argument(value) for value in arguments]
        arrays = [value for value in host_arguments if isinstance(value, np.ndarray)]
        for i, value in enumerate(arrays):
            other_arrays = (*arrays[:i], *arrays[i + 1 :])
            if is_reversed(value) and any(np.may_share_memory(value, other_array) for other_array in other_arrays):
                raise ValueError(f"kernel '{self.__name__}': an array with a negative stride overlaps another argument")
        return host_arguments

    @contextmanager
    def _copied(
        self, arguments: Sequence[Any], keywords: Mapping[str, Any], back: bool = True
    ) -> Iterator[tuple[list[Any], dict[str, Any]]]:
        """The arguments of a call, of arrays with negative strides contiguous copies.

        Args:
            back: whether to copy what the kernel has written back in the end.

        Raises:
            ValueError: if another argument shares memory with such an array.
        """
        host_arguments = self._refuse_overlaps((*arguments, *keywords.values()))
        copies = [np.ascontiguousarray(value) if is_reversed(value) else value for value in host_arguments]
        for value, copy in zip(host_arguments, copies):
            if copy is value:
                continue
            copy.flags.writeable = value.flags.writeable
        yield copies[: len(arguments)], dict(zip(keywords, copies[len(arguments) :]))
        for value, copy in zip(host_arguments, copies):
            if back and copy is not value and value.flags.writeable:
                value[...] = copy

    def __repr__(self) -> str:
        count = len(self.versions)
        return f"<kernel {self.__name__}{self._signature}, {count} version{'s' * (count != 1)}>"


@overload
def jit(function: Callable[..., Any], **options: Unpack[JitKeywords]) -> Kernel: ...


@overload
def jit(function: None = None, **options: Unpack[JitKeywords]) -> Callable[[Callable[..., Any]], Kernel]: ...


def jit(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Make a kernel of a Python function, compiled for the arguments that it is called with; see `Kernel`.

    Args:
        options: of `xegpu_py.compile`, such as `target` and `engine`; and Triton's: `do_not_specialize` lists
            parameters, by name or number, for whose value 1 no version of its own is compiled. Triton's `noinline`,
            `debug`, `version`, `repr` and `launch_metadata` have no effect.
    """
    if function is None:
        return functools.partial(Kernel, **options)
    return Kernel(function, **options)


def function(function: Function) -> Function:
    """Mark a Python function that kernels call, for readers. It is compiled with each kernel that calls it."""
    if not isinstance(function, FunctionType):
        raise TypeError(f"'function' must be a Python function, but got {function!r}")
    function.__kernel_function__ = function  # type: ignore[attr-defined]
    return function
