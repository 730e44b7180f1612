"""Upstream MLIR's XeGPU programs: reading them, and rebuilding their kernels in our dialects.

`import_upstream` reads a program in the dialect of LLVM 22.1.8, of its main branch or of IMEX, and gives a module in
which each kernel is in `xegpu` or `xetile`. All other ops are unchanged.
"""

from __future__ import annotations

import contextlib
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from xegpu_py.argument_types import checked
from xegpu_py.deferred import deferred
from xegpu_py.dialects.xegpu.spelling import UPSTREAM_NAME, Spelling, has_rfc_syntax, is_xevm_text, spelling_of
from xegpu_py.ir.context import Context
from xegpu_py.ir.diagnostics import DiagnosticError, Source
from xegpu_py.ir.module import Module, parse_source, source_of
from xegpu_py.upstream.levels import Level

if TYPE_CHECKING:
    from xegpu_py.upstream import classification, importer
    from xegpu_py.upstream.classification import Classification, classify
    from xegpu_py.upstream.export import export_upstream
    from xegpu_py.upstream.importer import lower_by_upstream
else:
    classification = deferred("xegpu_py.upstream.classification")
    importer = deferred("xegpu_py.upstream.importer")


@checked
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
        return importer.lower_by_upstream(source, level=level)
    return importer.rebuild(source, level=level, verify=verify, context=context)


def recognized(module: Module) -> Module:
    """A module whose kernels are in our dialects: those of upstream's XeGPU are rebuilt.

    Raises:
        DiagnosticError: if one of them cannot be rebuilt.
    """
    has_upstream = any(dialect.name == UPSTREAM_NAME for dialect in module.context.irdl_dialects)
    return importer.convert(module) if has_upstream and classification.classify(module).of("upstream") else module


def read_kernels(source: Source, context: Context | None = None, verify: bool = True) -> Module:
    """Read a module in any of the dialects, and rebuild its kernels in ours.

    Args:
        context: where to make the module; by default the current context, or a new one.
        verify: whether to verify a module that is in our dialects already.

    Raises:
        DiagnosticError: if it cannot be parsed, is not valid, or a kernel cannot be rebuilt.
    """
    if is_xevm_text(source.text):
        return import_upstream(source, context=context)
    is_upstream = spelling_of(source.text) == Spelling.UPSTREAM
    try:
        return recognized(parse_source(source, context=context, verify=verify or is_upstream))
    except DiagnosticError:
        if is_upstream or "xegpu." not in source.text or has_rfc_syntax(source.text):
            raise
        # Nothing in the text is of one spelling alone.
        with contextlib.suppress(DiagnosticError):
            return import_upstream(source, context=context)
        raise


Imported = bool | Literal["upstream"] | Level
"""Whether kernels must be in upstream's dialects, or their level; "upstream" if its own passes lower them first."""


def read_source(source: Source, imported: Imported, context: Context) -> Module:
    """Read a module.

    Args:
        imported: whether its kernels must be in upstream's dialects; false if their text tells. Also the level of all
            kernels, or "upstream" if upstream's own passes lower them first.

    Raises:
        DiagnosticError: if it cannot be parsed, or is not valid.
    """
    if isinstance(imported, bool):
        return import_upstream(source) if imported else read_kernels(source, context)
    if imported == "upstream":
        return import_upstream(source, via=imported)
    return import_upstream(source, level=imported)


_MODULES = {
    "Classification": "classification",
    "classify": "classification",
    "export_upstream": "export",
    "lower_by_upstream": "importer",
}


def __getattr__(name: str) -> Any:
    # Most runs read no upstream program: the importer is imported when it is used.
    if name in _MODULES:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


__all__ = [
    "Classification",
    "Imported",
    "Level",
    "classify",
    "export_upstream",
    "import_upstream",
    "is_xevm_text",
    "lower_by_upstream",
    "read_kernels",
    "read_source",
    "recognized",
]
