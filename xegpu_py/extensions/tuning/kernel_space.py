"""The subject of `xegpu-tune`: a kernel of a file, its arguments and its grid; and kernels written as files."""

from __future__ import annotations

import inspect
import json
import re
import runpy
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct

from xegpu_py.extensions.tuning.evaluation import TrialLaunch
from xegpu_py.extensions.tuning.space import Configuration, Space, expression
from xegpu_py.ir.diagnostics import Position, decode_utf8, error_at
from xegpu_py.ir.module import decode
from xegpu_py.runtime.host_arrays import DTYPES
from xegpu_py.runtime.kernel import CompiledKernel
from xegpu_py.runtime.options import OPTIONS


class GridExpression(Struct):
    """A grid as text: one to three expressions of the space's names and the kernel's arguments, with commas.

    Attributes:
        text: it.
        constants: the space's constants.
    """

    text: str
    constants: dict[str, Any]

    def __call__(self, values: Mapping[str, Any]) -> tuple[int, ...]:
        names = {**self.constants, **values}
        grid = expression(self.text, names, "grid")[1](names)
        return tuple(int(n) for n in (grid if isinstance(grid, tuple) else (grid,)))


class ModuleKernel(Struct):
    """A kernel of a module: makes its launches for `tune`.

    Attributes:
        text: the module.
        kernel: the kernel's name; None for the only one.
        grid: the workgroups, or a `GridExpression` of the parameters.
    """

    text: str
    kernel: str | None
    grid: Any

    def __call__(self, **configuration: Any) -> tuple[str, Any, dict[str, Any]]:
        grid = self.grid(configuration) if callable(self.grid) else self.grid
        options = {name: value for name, value in configuration.items() if name in OPTIONS}
        return self.text, grid, {"kernel": self.kernel, **options}


class Subject(Struct):
    """The subject of a search; see `tune`.

    Attributes:
        make_kernel, grid: arguments of `tune`.
        arguments: the arguments of a launch, or a function that makes them of parameters, which it takes by name.
    """

    make_kernel: Any
    arguments: Any
    grid: Any = None

    @property
    def own(self) -> set[str]:
        """The parameters that are not the kernel's, but only make the arguments."""
        if not callable(self.arguments):
            return set()
        kernel = self.make_kernel
        parameters = (
            OPTIONS if isinstance(kernel, ModuleKernel) else OPTIONS | inspect.signature(kernel).parameters.keys()
        )
        return inspect.signature(self.arguments).parameters.keys() - parameters

    def arguments_of(self, configuration: Configuration) -> tuple[Any, ...]:
        """The arguments of a launch of a configuration."""
        if not callable(self.arguments):
            return tuple(self.arguments)
        names = inspect.signature(self.arguments).parameters
        return tuple(self.arguments(**{name: configuration[name] for name in names}))


def subject_of(path: Path, space: Space, kernel: str | None, arguments: Sequence[Any], grid: str | None) -> Subject:
    """The kernel of a file, which has a module or is a Python file, with its arguments and its grid.

    A Python file may define `arguments` and `grid`.

    Args:
        kernel: the kernel's name; None for the only one.
        arguments: the arguments of a launch, instead of the file's.
        grid: a `GridExpression`, instead of the file's.

    Raises:
        OSError: if it cannot be read.
        ValueError: if there is no such kernel, or there are no arguments.
        DiagnosticError: if the file fails.
    """
    size = GridExpression(grid, space.constants) if grid else None
    parameters = [*space.constants, *(p.name for p in space.parameters)]
    if path.suffix != ".py":
        source = decode(path.read_bytes(), str(path))
        if grid:
            expression(grid, parameters, "grid")
        return Subject(ModuleKernel(source.text, kernel, size or 1), tuple(arguments))
    names = _run(path)
    kernels = {name: member for name, member in names.items() if hasattr(member, "__kernel_function__")}
    kernels = {name: member for name, member in kernels.items() if hasattr(member, "with_options")}
    if kernel is None and len(kernels) != 1:
        listed = f"has several kernels: {', '.join(kernels)}" if kernels else "has no kernel of the tile language"
        raise ValueError(f"'{path}' {listed}; --kernel NAME chooses one, or a function that makes launches")
    kernel_function = next(iter(kernels.values())) if kernel is None else names.get(kernel)
    if not callable(kernel_function):
        raise ValueError(f"'{path}' defines no kernel or function '{kernel}'")
    if grid:
        expression(grid, [*parameters, *inspect.signature(kernel_function).parameters], "grid")
    launch_arguments: Any = tuple(arguments) or names.get("arguments")
    if launch_arguments is None:
        raise ValueError(f"'{path}' defines no 'arguments', and there is no ARG")
    return Subject(kernel_function, launch_arguments, size or names.get("grid"))


def _run(path: Path) -> dict[str, Any]:
    """The names that a Python file defines."""
    decode_utf8(path.read_bytes(), str(path))
    sys.path.insert(0, str(path.resolve().parent))
    try:
        return runpy.run_path(str(path))
    except SyntaxError as e:
        raise error_at(Position(e.filename or str(path), e.lineno or 1, e.offset or 1), e.msg) from None
    except Exception as e:
        frames = [f for f in traceback.extract_tb(e.__traceback__) if f.filename == str(path)]
        line = frames[-1].lineno if frames else 1
        raise error_at(Position(str(path), line or 1, 1), f"{type(e).__name__}: {e}") from None


# Kernels as files.

_WRITTEN = ("target", "registers", "optimize", "prefetch", "load_ahead", "model")


def module_text(kernel: CompiledKernel, head: Sequence[str]) -> str:
    """The module of a kernel, which `compile` takes, after lines of comment. It holds the kernel's options.

    Raises:
        ValueError: if the kernel has no module.
    """
    if not kernel.levels:
        raise ValueError("the kernel has no module")
    options = {name: getattr(kernel.options, name) for name in _WRITTEN}
    stated = {name: value for name, value in options.items() if value is not None}
    return "".join(f"// {line}\n" for line in head) + with_options(kernel.ir(kernel.levels[0]), stated)


def with_options(text: str, options: Mapping[str, Any]) -> str:
    """The text of a module with the attribute that gives the defaults of `compile`."""
    return re.sub(r"^module( @[\w$.]+)?( attributes \{)?", lambda m: _head(m, options), text, count=1, flags=re.M)


def _head(match: re.Match[str], options: Mapping[str, Any]) -> str:
    option_text = ", ".join(
        f"{name} = {json.dumps(value) if isinstance(value, (str, bool)) else f'{value} : i64'}"
        for name, value in options.items()
    )
    attribute = f"xegpu.options = {{{option_text}}}"
    return f"module{match[1] or ''} attributes {{{attribute}{', ' if match[2] else '}'}"


def write_launch(path: Path, launch: TrialLaunch, arguments: Sequence[Any], head: Sequence[str]) -> None:
    """Write a launch as a module, whose first line runs it, beside the arrays that are its arguments.

    Raises:
        ValueError: if a function of the user's hides the kernel.
    """
    if launch.bound is None:
        raise ValueError("the kernel is hidden by a function that launches it")
    call = launch.bound(arguments)
    kernel, grid = call.kernel, call.grid
    names = {dtype: name for name, dtype in DTYPES.items()}
    words = []
    for i, (argument, kind) in enumerate(zip(call.given, kernel.types)):
        if isinstance(argument, np.ndarray) and argument.ndim:
            file = path.with_name(f"{path.stem}-{i}.npy")
            np.save(file, argument)
            words.append(f"{names[argument.dtype]}:{file.name}")
        else:
            words.append(f"{kind}:{argument}")
    size = grid if isinstance(grid, (tuple, list)) else (grid,)
    command = f"xegpu-run {path.name} {' '.join(words)} --grid {','.join(map(str, size))} --engine=both"
    path.write_text(module_text(kernel, [command, *head]))
