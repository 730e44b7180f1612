"""Modules: reading, printing and verifying them in dialect syntax."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, TypeVar

from mlir import ir as mlir

from xegpu_py.ir.bindings import blocks_in
from xegpu_py.ir.bodies import Bodies
from xegpu_py.ir.context import Context, current
from xegpu_py.ir.diagnostics import Diagnostic, DiagnosticError, Position, enter, position_of
from xegpu_py.ir.mixed import with_cast
from xegpu_py.ir.printer import Printer
from xegpu_py.ir.reader import Reader, Rewritten
from xegpu_py.ir.source import Source, decode_utf8
from xegpu_py.ir.verifier import verify, walk

if TYPE_CHECKING:
    from pathlib import Path

_BUFFER = "-"
"""The file name that MLIR gives to text that it parses from memory."""

Op = TypeVar("Op", bound=mlir.OpView)


class Module:
    """A module in a context with our dialects.

    Attributes:
        sources: the texts that its locations speak of, for diagnostics.
        bodies: functions that passes have lowered below the IR. Their ops are created when the module is read.
    """

    def __init__(self, module: mlir.Module, sources: tuple[Source, ...] = ()) -> None:
        self._module = module
        self.sources = sources
        self.bodies = Bodies()

    @property
    def ir(self) -> mlir.Module:
        """The module as the MLIR bindings see it."""
        self.bodies.forget()
        return self._module

    @property
    def context(self) -> Context:
        """The MLIR context."""
        context: Context = self._module.context
        return context

    @property
    def operation(self) -> mlir.Operation:
        """The `builtin.module` op."""
        return self.ir.operation

    @property
    def outline(self) -> mlir.Operation:
        """The `builtin.module` op, in which functions that are lowered below the IR may be empty; see `bodies`."""
        return self._module.operation

    @property
    def body(self) -> mlir.Block:
        """The module's one block."""
        return self.ir.body

    def ops(self, kind: type[Op] = mlir.OpView) -> list[Op]:
        """The ops of a class in the module, in order; by default all."""
        found: list[Op] = []

        def visit(op: mlir.Operation) -> mlir.WalkResult:
            view = op.opview
            if isinstance(view, kind):
                found.append(view)
            return mlir.WalkResult.ADVANCE

        self.operation.walk(visit, mlir.WalkOrder.PRE_ORDER)
        return found

    def verify(self) -> None:
        """Check the module by MLIR's rules and by those of our dialects.

        Raises:
            DiagnosticError: with a diagnostic for each broken rule.
        """
        self._verify()

    def _verify(self, repeated: frozenset[int] = frozenset()) -> None:
        self.bodies.build()
        found = problems(self.outline, self.bodies, repeated)
        if found:
            raise DiagnosticError(found, self.sources)

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        from xegpu_py.lexers import html

        return html(self.text())

    def text(self, **options: Any) -> str:
        """The module as text; see `print_op` for the options."""
        self.bodies.build()
        return print_op(self.outline, **options)


def problems(op: mlir.Operation, bodies: Bodies, repeated: frozenset[int] = frozenset()) -> list[Diagnostic]:
    """The rules of MLIR and of our dialects that `op`, the ops in it or its pending bodies break.

    Ops on the lines `repeated` equal others, and need not be verified by the rules of our dialects.
    """
    try:
        op.verify()
    except mlir.MLIRError as e:
        return from_mlir(e, op.context)
    return verify(op, bodies, repeated) or bodies.verify()


def print_op(
    op: mlir.Operation,
    *,
    generic: bool = False,
    debuginfo: bool = False,
    print_defaults: bool = False,
    verified: bool = False,
) -> str:
    """An op as text in dialect syntax.

    Args:
        generic: print generic form, with types and attributes as IRDL has them: what stock `mlir-opt` reads.
        debuginfo: print locations.
        print_defaults: print attributes of our ops that have their default value too.
        verified: the op is known to be valid, and MLIR need not check that before it prints.
    """
    text = op.get_asm(enable_debug_info=debuginfo, print_generic_op_form=generic, assume_verified=verified)
    if generic:
        return str(text)
    return Printer(op.context.own, print_defaults).rewrite(text)


def parse(text_or_path: str | Path, *, name: str = "<string>", verify: bool = True) -> Module:
    """Read a module, and verify it.

    Args:
        text_or_path: the module's text, or the path of a file that holds it. A string is taken for a path if it is one
            line, does not read as MLIR text (it holds none of `{ } % @ = " #`), or names a file that exists.
        name: what diagnostics call the text if it is not a file.
        verify: whether to check the rules of our dialects too.

    Raises:
        DiagnosticError: if the text does not read, or breaks a rule.
        OSError: if the file cannot be read.
    """
    return parse_source(source_of(text_or_path, name), verify=verify)


def source_of(text_or_path: str | Path, name: str = "<string>") -> Source:
    """The source that `parse` reads.

    Raises:
        DiagnosticError: if it is not UTF-8.
        OSError: if the file cannot be read.
    """
    if isinstance(text_or_path, str) and not _is_path(text_or_path):
        return decode_utf8(text_or_path.encode("utf-8", "surrogateescape"), name)
    with open(text_or_path, "rb") as f:
        return decode_utf8(f.read(), str(text_or_path))


def _is_path(text: str) -> bool:
    if "\n" in text or not text.strip():
        return False
    return not re.search(r'[{}%@="#]', text) or os.path.isfile(text)


def parse_source(source: Source, *, context: Context | None = None, verify: bool = True) -> Module:
    """Read a module from a source, and verify it.

    Raises:
        DiagnosticError: if the text does not read, or breaks a rule.
    """
    context = context or current()
    source.check_nesting()
    source.check_numbers()
    source.check_arrays()
    source.check_aliases()
    context.load_met(source.text)
    while True:
        rewritten = Reader(source, context.own).rewrite()
        enter("MLIR's reader", source.position(0))
        try:
            with context:
                module = mlir.Module.parse(rewritten.text)
            break
        except mlir.MLIRError as e:
            # MLIR 22 refuses some texts without a diagnostic.
            found = from_mlir(e, context, rewritten) or [Diagnostic("error", "cannot be parsed", source.position(0))]
            mended = with_cast(source, found)
            if mended is None:
                raise DiagnosticError(found, [source]) from None
            source = mended
    _relocate(module.operation, rewritten)
    made = Module(module, (source,))
    if verify:
        # Where the text states locations, lines do not tell ops apart.
        repeated = {line + source.first_line - 1 for line in rewritten.repeated} if "loc(" not in source.text else ()
        made._verify(frozenset(repeated))
    return made


def _relocate(root: mlir.Operation, rewritten: Rewritten) -> None:
    """Make locations refer to the user's file instead of the rewritten text."""
    context, source = root.context, rewritten.source
    shifted = rewritten.shifted_lines()
    file, name, before = mlir.Location.file, source.name, source.first_line - 1

    def moved(line: int, column: int) -> mlir.Location:
        if line in shifted:
            where = source.position(rewritten.source_offset(line, column))
            return file(where.file, where.line, where.column, context)
        return file(name, line + before, column, context)

    stated = "loc(" in source.text

    def is_ours(location: mlir.Location) -> bool:
        return location.is_a_file() and (not stated or _file_of(location) == _BUFFER)

    moves: list[tuple[mlir.Operation, mlir.Location]] = []
    for op in walk(root):
        location = op.location
        if is_ours(location) and (line := location.start_line):
            moves.append((op, moved(line, location.start_col)))
        for block in blocks_in(op):
            for argument in block.arguments:
                location = argument.location
                if is_ours(location):
                    argument.set_location(moved(location.start_line, location.start_col))
    # The innermost first: setting the location of an op without results may replace it (`bindings`).
    for op, where in reversed(moves):
        op.location = where
    root.location = file(source.name, source.first_line, 1, context)


def _file_of(location: mlir.Location) -> str:
    name = location.filename
    return name.value if isinstance(name, mlir.StringAttr) else str(name)


def from_mlir(error: mlir.MLIRError, context: Context, rewritten: Rewritten | None = None) -> list[Diagnostic]:
    """The diagnostics of an MLIR error, at positions in the user's text and in dialect syntax."""
    printer = Printer(context.own)
    return [_from_mlir(d, printer, rewritten) for d in error.error_diagnostics]


def from_diagnostic(info: Any, context: Context) -> Diagnostic:
    """A diagnostic that MLIR reports, in dialect syntax."""
    return _from_mlir(info, Printer(context.own), None)


def _from_mlir(info: Any, printer: Printer, rewritten: Rewritten | None) -> Diagnostic:
    where = position_of(info.location)
    if rewritten and where.file == _BUFFER:
        source = rewritten.source
        offset = rewritten.source_offset(where.line, where.column) if where.line else 0
        where = source.position(offset)
    notes = tuple(_from_mlir(n, printer, rewritten) for n in info.notes)
    severity: Any = str(info.severity).rpartition(".")[2].lower() if info.message else "error"
    return Diagnostic(severity, printer.rewrite(info.message), where, notes)


__all__ = ["Module", "Position", "from_mlir", "parse", "parse_source", "print_op"]
