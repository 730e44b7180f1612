"""`load_program`: modules with host code, whose host functions and kernels can be called."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from mlir import ir

from xegpu_py.compiled import compile
from xegpu_py.dialects import visa
from xegpu_py.ir.context import Context
from xegpu_py.ir.module import Module, parse_source, source_of
from xegpu_py.ir.source import Source
from xegpu_py.ir.verifier import walk
from xegpu_py.programs import process
from xegpu_py.programs.lowering import own_module


def read(source: Source, imported: process.Imported, context: Context) -> Module:
    """Read a program.

    Args:
        imported: whether its kernels are in upstream's dialects and are imported; with "upstream", upstream's own
            passes lower them first.

    Raises:
        DiagnosticError: if it cannot be parsed, or is not valid.
    """
    if imported:
        via = None if imported is True else imported
        made: Module = importlib.import_module("xegpu_py.upstream").import_upstream(source, via=via)
        return made
    return parse_source(source, context=context)


class HostFunction:
    """A function of host code. Each call runs it in a new child process, from the program's initial state.

    Attributes:
        name: its name.
    """

    def __init__(self, program: Program, name: str) -> None:
        self._program = program
        self.name = name

    def __call__(self, *arguments: Any) -> Any:
        """Call the function. Its output goes to this process's standard output.

        Args:
            arguments: a numpy array for each memref, which is changed in place when the function returns; otherwise a
                number.

        Returns:
            Its result, or a tuple of its results. Memrefs are returned as arrays.

        Raises:
            TypeError, ValueError: if an argument does not fit.
            DiagnosticError: if the program cannot be lowered, a launch fails, or host code crashes.
        """
        return self._program.call(self.name, *arguments)


class Kernels(Mapping[str, Any]):
    """A program's kernels by name, or by "module::name" if it is ambiguous. Kernels are compiled when first used."""

    def __init__(self, program: Program) -> None:
        self._program = program
        funcs = visa.kernels(program.module.operation)
        names = [visa.name_of(f) for f in funcs]
        self._funcs = {
            name if names.count(name) == 1 else f"{visa.name_of(f.parent)}::{name}": f for name, f in zip(names, funcs)
        }

    def __getitem__(self, name: str) -> Any:
        func = self._funcs[name]
        module = own_module(func.parent.operation, self._program.module)
        return compile(module, visa.name_of(func), **self._program.options)

    def __iter__(self) -> Iterator[str]:
        return iter(self._funcs)

    def __len__(self) -> int:
        return len(self._funcs)


class Program:
    """A program: `program.main()` calls its host function `main`, and `program.kernels["name"]` is one of its kernels.

    Attributes:
        module: its module.
        options: the options of `xegpu_py.compile` for all its kernels.
        kernels: its kernels; see `Kernels`.
        functions: the names of its host functions.
    """

    def __init__(
        self, module: Module, source: Source, imported: process.Imported, seed: int, options: dict[str, Any]
    ) -> None:
        """Make a program of a parsed module; see `load_program`."""
        self.module, self.options = module, options
        self._source, self._imported, self._seed = source, imported, seed
        self.kernels = Kernels(self)
        self.functions = tuple(
            str(ir.StringAttr(op.attributes["sym_name"]).value)
            for op in walk(module.operation)
            if op.name == "func.func" and len(op.regions[0].blocks)
        )

    def __getattr__(self, name: str) -> HostFunction:
        if name in self.__dict__.get("functions", ()):
            return HostFunction(self, name)
        raise AttributeError(f"the program has no host function '{name}'; it has {', '.join(self.functions) or 'none'}")

    def call(self, name: str, *arguments: Any) -> Any:
        """Call a host function by its name; see `HostFunction`."""
        job = process.Job(self._source, self._imported, name, options=self.options, seed=self._seed)
        results = process.run(job, arguments)
        return None if not results else results[0] if len(results) == 1 else tuple(results)


def load_program(
    program: Module | str | Path,
    *,
    import_upstream: bool = False,
    via: Literal["upstream"] | None = None,
    seed: int = 0,
    **options: Any,
) -> Program:
    """Read a program: kernels, and host code that launches them.

        program = xegpu_py.load_program("gemm.mlir")
        program.main()
        c = program.test(a, b)
        program.kernels["gemm"](a, b, c, grid=(4, 4))

    Args:
        program: a module, its text, or the path of a file that holds it.
        import_upstream: whether its kernels are in the dialects of upstream MLIR or IMEX.
        via: "upstream" for kernels that upstream's own passes lower first; see `import_upstream`.
        seed: the seed of the random numbers with which the program fills arrays.
        options: the options of `xegpu_py.compile`.

    Raises:
        DiagnosticError: if it cannot be parsed, or is not valid.
        OSError: if the file cannot be read.
    """
    if isinstance(program, Module):
        name = program.sources[0].name if program.sources else "<module>"
        source = Source(program.text(debuginfo=True), name)
    else:
        source = source_of(program)
    imported = via or import_upstream
    module = read(source, imported, Context())
    return Program(module, source, imported, seed, options)
