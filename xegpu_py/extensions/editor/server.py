"""The language server: the Language Server Protocol (version 3.17) in front of `Document`."""

from __future__ import annotations

import asyncio
import itertools
import re
import tempfile
from pathlib import Path
from urllib.parse import unquote, urlparse

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer
from pygls.workspace import TextDocument

from xegpu_py.extensions.editor.document import TOKEN_KINDS, Document
from xegpu_py.extensions.editor.names import Definition
from xegpu_py.ir.diagnostics import Diagnostic, DiagnosticError, Position

SHOW_LOWERED = "xegpu.showLowered"
"""The command that lowers the kernel at a position. Arguments: a URI and a position. Result: vISA assembly."""

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
"""Half of a character of UTF-16, which no text in UTF-8 has. A client sends it escaped in JSON."""

_DELAY = 0.1
"""A file is checked after this many seconds without a change."""

_SEVERITIES = {
    "error": lsp.DiagnosticSeverity.Error,
    "warning": lsp.DiagnosticSeverity.Warning,
    "remark": lsp.DiagnosticSeverity.Information,
    "note": lsp.DiagnosticSeverity.Hint,
}

_COMPLETIONS = {
    "op": lsp.CompletionItemKind.Function,
    "attribute": lsp.CompletionItemKind.Property,
    "value": lsp.CompletionItemKind.EnumMember,
    "type": lsp.CompletionItemKind.Class,
    "name": lsp.CompletionItemKind.Variable,
}

_SYMBOLS = {
    "module": lsp.SymbolKind.Module,
    "symbol": lsp.SymbolKind.Function,
    "kernel": lsp.SymbolKind.Function,
    "block": lsp.SymbolKind.Key,
    "label": lsp.SymbolKind.Key,
    "variable": lsp.SymbolKind.Variable,
}


class Server(LanguageServer):
    """A language server for MLIR with our dialects and for vISA assembly."""

    def __init__(self, version: str) -> None:
        super().__init__("xegpu-lsp", version, text_document_sync_kind=lsp.TextDocumentSyncKind.Incremental)
        self._documents: dict[str, tuple[int | None, str, Document]] = {}
        self._waiting: dict[str, asyncio.Task[None]] = {}

    def document(self, uri: str) -> Document:
        """The current version of a file; see `text`."""
        text = self.text(uri)
        cached = self._documents.get(uri)
        if cached is None or cached[:2] != (text.version, text.source):
            document = Document.of(
                _LONE_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text.source), unquote(urlparse(uri).path)
            )
            cached = self._documents[uri] = (text.version, text.source, document)
        return cached[2]

    def close(self, uri: str) -> None:
        """Forget a file."""
        self._documents.pop(uri, None)
        self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, []))

    def check(self, uri: str) -> None:
        """Send a file's diagnostics."""
        if not self._is_open(uri):
            return  # it was closed meanwhile
        document = self.document(uri)
        diagnostics = [self.diagnostic(uri, document, d) for d in document.diagnostics]
        version = self.text(uri).version
        self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, diagnostics, version))

    def check_soon(self, uri: str) -> None:
        """Send a file's diagnostics after a pause in typing."""
        if task := self._waiting.pop(uri, None):
            task.cancel()

        async def wait() -> None:
            await asyncio.sleep(_DELAY)
            self.check(uri)

        self._waiting[uri] = asyncio.ensure_future(wait())

    def text(self, uri: str) -> TextDocument:
        """The file's text, which converts positions to the client's units.

        Raises:
            JsonRpcInvalidParams: if the client has not opened it: no request reads other files.
        """
        if not self._is_open(uri):
            raise JsonRpcInvalidParams(f"the file '{uri}' is not open")
        return self.workspace.get_text_document(uri)

    def _is_open(self, uri: str) -> bool:
        # Releases of pygls differ in whether they decode `%20`.
        return not {uri, unquote(uri)}.isdisjoint(self.workspace.text_documents)

    def units(self, uri: str, text: str) -> int:
        """The length of a text in the client's units."""
        return len(text) if text.isascii() else int(self.text(uri).position_codec.client_num_units(text))

    def range(self, uri: str, start: int, end: int) -> lsp.Range:
        """The range between two offsets."""
        return lsp.Range(self.position(uri, start), self.position(uri, end))

    def position(self, uri: str, offset: int) -> lsp.Position:
        """The position of an offset."""
        source = self.document(uri).source
        where = source.position(offset)
        return lsp.Position(where.line - 1, self.units(uri, source.text[offset - where.column + 1 : offset]))

    def offset(self, uri: str, position: lsp.Position) -> int:
        """The offset of a position."""
        text = self.text(uri)
        return text.offset_at_position(position)

    def diagnostic(self, uri: str, document: Document, reported: Diagnostic) -> lsp.Diagnostic:
        """A diagnostic with its notes, as the protocol's type."""
        return lsp.Diagnostic(
            self._place(uri, document, reported.position),
            reported.message,
            severity=_SEVERITIES[reported.severity],
            source="xegpu-lsp",
            related_information=[
                lsp.DiagnosticRelatedInformation(
                    lsp.Location(uri, self._place(uri, document, note.position)), note.message
                )
                for d in reported.notes
                for note in d.flat()
            ],
        )

    def _place(self, uri: str, document: Document, position: Position) -> lsp.Range:
        start = document.source.offset(position.line or 1, position.column)
        return self.range(uri, start, max(document.end_of(position) if position.line else start, start))

    def tokens(self, uri: str) -> list[int]:
        """The file's tokens, five numbers each: lines and characters since the last one, length, type, modifiers."""
        source = self.document(uri).source
        numbers = {kind: n for n, kind in enumerate(TOKEN_KINDS)}
        data, line, last = [], 0, 0
        for offset, text, kind in self.document(uri).tokens():
            where = source.position(offset)
            new = where.line - 1 - line
            # Counted from the last token: a file can be one long line.
            start = offset - where.column + 1 if new else last
            data += [
                new,
                self.units(uri, source.text[start:offset]),
                self.units(uri, text),
                numbers[kind],
                0,
            ]
            line, last = where.line - 1, offset
        return data

    def occurrences(self, uri: str, position: lsp.Position) -> list[lsp.Range]:
        """The definition and the uses of the name at a position; nothing where there is none."""
        definition = self.document(uri).names.at(self.offset(uri, position))
        return (
            [self.occurrence(uri, definition, s).range for s in (definition.start, *definition.uses)]
            if definition
            else []
        )

    def occurrence(self, uri: str, definition: Definition, start: int) -> lsp.Location:
        """The location of an occurrence of a name."""
        return lsp.Location(uri, self.range(uri, start, start + len(definition.name)))


def make(version: str) -> Server:
    """Make a server, and register its features."""
    server = Server(version)

    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: lsp.DidOpenTextDocumentParams) -> None:
        server.check(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    async def changed(params: lsp.DidChangeTextDocumentParams) -> None:
        server.check_soon(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: lsp.DidCloseTextDocumentParams) -> None:
        server.close(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    def hover(params: lsp.HoverParams) -> lsp.Hover | None:
        uri = params.text_document.uri
        document, offset = server.document(uri), server.offset(uri, params.position)
        text = document.hover(offset)
        word = document.word(offset)
        if not text or not word:
            return None
        return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, text), server.range(uri, *word.span()))

    @server.feature(lsp.TEXT_DOCUMENT_DEFINITION)
    def definition(params: lsp.DefinitionParams) -> lsp.Location | None:
        uri = params.text_document.uri
        named = server.document(uri).names.at(server.offset(uri, params.position))
        return server.occurrence(uri, named, named.start) if named else None

    @server.feature(lsp.TEXT_DOCUMENT_REFERENCES)
    def references(params: lsp.ReferenceParams) -> list[lsp.Location]:
        uri = params.text_document.uri
        definition = server.document(uri).names.at(server.offset(uri, params.position))
        if definition is None:
            return []
        starts = [definition.start] * params.context.include_declaration + definition.uses
        return [server.occurrence(uri, definition, start) for start in starts]

    @server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT)
    def highlight(params: lsp.DocumentHighlightParams) -> list[lsp.DocumentHighlight]:
        kinds = itertools.chain([lsp.DocumentHighlightKind.Write], itertools.repeat(lsp.DocumentHighlightKind.Read))
        ranges = server.occurrences(params.text_document.uri, params.position)
        return [lsp.DocumentHighlight(span, kind) for span, kind in zip(ranges, kinds)]

    @server.feature(lsp.TEXT_DOCUMENT_PREPARE_RENAME)
    def prepare_rename(params: lsp.PrepareRenameParams) -> lsp.Range | None:
        ranges = server.occurrences(params.text_document.uri, params.position)
        return next((p for p in ranges if p.start <= params.position <= p.end), None)

    @server.feature(lsp.TEXT_DOCUMENT_RENAME, lsp.RenameOptions(prepare_provider=True))
    def rename(params: lsp.RenameParams) -> lsp.WorkspaceEdit:
        uri = params.text_document.uri
        try:
            name = server.document(uri).renamed(server.offset(uri, params.position), params.new_name)
        except ValueError as e:
            raise JsonRpcInvalidParams(str(e)) from None
        ranges = server.occurrences(uri, params.position)
        return lsp.WorkspaceEdit({uri: [lsp.TextEdit(span, name) for span in ranges]})

    @server.feature(lsp.TEXT_DOCUMENT_FOLDING_RANGE)
    def folding(params: lsp.FoldingRangeParams) -> list[lsp.FoldingRange]:
        document = server.document(params.text_document.uri)
        lines = ((document.source.position(at).line - 1 for at in ends) for ends in document.names.regions)
        return [lsp.FoldingRange(first, last - 1) for first, last in lines if last > first + 1]

    @server.feature(lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, lsp.SemanticTokensLegend([*TOKEN_KINDS], []))
    @server.thread()
    def tokens(params: lsp.SemanticTokensParams) -> lsp.SemanticTokens:
        return lsp.SemanticTokens(server.tokens(params.text_document.uri))

    # Kernels are lowered for their registers, and the server answers other requests meanwhile, as for tokens and
    # completions.
    @server.feature(lsp.TEXT_DOCUMENT_INLAY_HINT)
    @server.thread()
    def hints(params: lsp.InlayHintParams) -> list[lsp.InlayHint]:
        uri = params.text_document.uri
        first, last = (server.offset(uri, p) for p in (params.range.start, params.range.end))
        return [
            lsp.InlayHint(
                server.position(uri, hint.offset),
                hint.text,
                kind=lsp.InlayHintKind.Type,
                tooltip=lsp.MarkupContent(lsp.MarkupKind.Markdown, hint.tooltip) if hint.tooltip else None,
            )
            for hint in server.document(uri).hints()
            if first <= hint.offset <= last
        ]

    @server.feature(
        lsp.TEXT_DOCUMENT_COMPLETION, lsp.CompletionOptions(trigger_characters=[".", "%", "@", "{", "=", "<", "!", "#"])
    )
    @server.thread()
    def completion(params: lsp.CompletionParams) -> list[lsp.CompletionItem]:
        uri = params.text_document.uri
        offset = server.offset(uri, params.position)
        text = server.document(uri).source.text
        start = offset
        while start and (text[start - 1].isalnum() or text[start - 1] in "_.$%@^!#-"):
            start -= 1
        span = server.range(uri, start, offset)
        return [
            lsp.CompletionItem(
                c.text,
                kind=_COMPLETIONS[c.kind],
                detail=c.detail,
                documentation=lsp.MarkupContent(lsp.MarkupKind.Markdown, c.doc) if c.doc else None,
                text_edit=lsp.TextEdit(span, c.text),
            )
            for c in server.document(uri).completions(offset)
        ]

    @server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    def symbols(params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
        uri = params.text_document.uri
        document_symbols = []
        for d in server.document(uri).names.definitions:
            if d.kind in _SYMBOLS:
                span = server.range(uri, d.start, d.start + len(d.name))
                document_symbols.append(lsp.DocumentSymbol(d.name.lstrip("@^"), _SYMBOLS[d.kind], span, span))
        return document_symbols

    @server.feature(lsp.TEXT_DOCUMENT_FORMATTING)
    def formatting(params: lsp.DocumentFormattingParams) -> list[lsp.TextEdit]:
        uri = params.text_document.uri
        document = server.document(uri)
        new_text = document.formatted()
        if new_text == document.source.text:
            return []
        return [lsp.TextEdit(server.range(uri, 0, len(document.source.text)), new_text)]

    @server.feature(lsp.TEXT_DOCUMENT_CODE_ACTION)
    def actions(params: lsp.CodeActionParams) -> list[lsp.Command]:
        uri = params.text_document.uri
        if "gpu.func" not in server.document(uri).source.text:
            return []
        return [lsp.Command("Show the kernel's assembly", SHOW_LOWERED, arguments=[uri, params.range.start])]

    @server.command(SHOW_LOWERED)
    async def show_lowered(uri: str, position: lsp.Position | None = None) -> str | None:
        try:
            lowered = server.document(uri).lowered(server.offset(uri, position) if position else 0)
        except (DiagnosticError, ValueError) as e:
            server.window_show_message(lsp.ShowMessageParams(lsp.MessageType.Error, str(e)))
            return None
        if server.client_capabilities.window and server.client_capabilities.window.show_document:
            folder = Path(tempfile.mkdtemp(prefix="xegpu-lsp-"))
            path = folder / f"{Path(unquote(urlparse(uri).path)).stem}.visaasm"
            path.write_text(lowered)
            await server.window_show_document_async(lsp.ShowDocumentParams(path.as_uri(), take_focus=True))
        return lowered

    return server
