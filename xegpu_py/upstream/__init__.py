"""Upstream MLIR's XeGPU programs: reading them, and rebuilding their kernels in our dialects.

`import_upstream` reads a program in the dialect of LLVM 22.1.8, of its main branch or of IMEX, and gives a module in
which each kernel is in `xegpu` or `xetile`. All other ops are unchanged.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from xegpu_py.ir.diagnostics import Source
from xegpu_py.ir.module import Context, Module, source_of
from xegpu_py.upstream.export import export_upstream
from xegpu_py.upstream.importer import lower_by_upstream, rebuild
from xegpu_py.upstream.rebuilding import Level, looks_upstream
from xegpu_py.upstream.xevm import looks_xevm


def import_upstream(
    text_or_path: str | Path | Source,
    *,
    level: Level | None = None,
    via: Literal["upstream"] | None = None,
    name: str = "<string>",
    verify: bool = True,
    context: Context | None = None,
) -> Module:
    """Read a program in upstream MLIR's XeGPU, and rebuild its kernels in our dialects.

    Kernels of subgroups become `xegpu` in VC mode, kernels of lanes `xegpu` in SIMT mode, kernels of workgroups
    `xetile`. IMEX's older programs, in the RFC's dialect and in XeTile, stay as they are: those dialects are ours. Code
    outside of `gpu.module`s is unchanged, except that layouts are removed: they never change a value.

    Args:
        text_or_path: the program: text, a path, or a source that has been read.
        level: the level of all kernels; without it each kernel's is found from its ops.
        via: "upstream" to let upstream's own passes lower the kernels first, by stock mlir-opt in a child process, and
            to import the result; see `lower_by_upstream`. Programs in our dialects are exported first.
        name: what diagnostics call the text if it is not a file.
        verify: whether to verify the result.
        context: where to make the module; by default a new one.

    Raises:
        DiagnosticError: if the program cannot be parsed, breaks a rule of upstream's, or cannot be imported.
        OSError: if the file cannot be read.
    """
    source = text_or_path if isinstance(text_or_path, Source) else source_of(text_or_path, name)
    if via:
        return lower_by_upstream(source, level=level)
    return rebuild(source, level=level, verify=verify, context=context)


__all__ = ["Level", "export_upstream", "import_upstream", "looks_upstream", "looks_xevm", "lower_by_upstream"]
