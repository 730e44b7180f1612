"""The server's answers in each of the protocol's units of positions, asked in this process."""

import asyncio
import re

import pytest
from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcInvalidParams
from pygls.workspace import Workspace

from xegpu_py.extensions.editor import server
from xegpu_py.extensions.editor.document import TOKEN_KINDS

URI = "file:///a%20b.mlir"
TEXT = """\
// \U0001f600 \u00e4
module {
  func.func @f(%x: f32) -> f32 attributes {note = "\U0001f600\u00e4"} { %y = arith.addf %x, %x : f32
    cf.br ^end
  ^end: /*"\u20ac"*/ // %x
    return %y : f32
  }
  func.func @g() attributes {note = "\u20ac"} { call @f() : () -> ()
    return }

  gpu.module @kernels {
    gpu.func @k() kernel {
      gpu.return
    }
  }
}
""".replace('/*"\u20ac"*/ ', "")
UNITS = {
    lsp.PositionEncodingKind.Utf8: ("utf-8", 1),
    lsp.PositionEncodingKind.Utf16: ("utf-16-le", 2),
    lsp.PositionEncodingKind.Utf32: ("utf-32-le", 4),
}


class Asked:
    """A server with one open file, and what it sent."""

    def __init__(self, units, text=TEXT):
        self.text, self.units, self.sent, self.shown = text, units, [], []
        self.server = server.make("1")
        self.server.protocol._workspace = Workspace(None, position_encoding=units)
        self.server.workspace.put_text_document(lsp.TextDocumentItem(URI, "mlir", 7, text))
        self.server.text_document_publish_diagnostics = self.sent.append
        self.server.window_show_message = self.shown.append
        self.identifier = lsp.TextDocumentIdentifier(URI)

    def __call__(self, request, *params, kind):
        return self.server.protocol.fm.features[request](kind(self.identifier, *params))

    def at(self, offset):
        start = self.text.rfind("\n", 0, offset) + 1
        encoding, size = UNITS[self.units]
        return lsp.Position(self.text.count("\n", 0, offset), len(self.text[start:offset].encode(encoding)) // size)

    def range(self, start, length):
        return lsp.Range(self.at(start), self.at(start + length))


@pytest.fixture(params=UNITS, ids=lambda units: units.value)
def asked(request):
    return Asked(request.param)


def occurrences(name):
    code = re.sub(r'//[^\n]*|"[^"]*"', lambda m: " " * len(m[0]), TEXT)
    return [m.start() for m in re.finditer(re.escape(name) + r"\b", code)]


@pytest.mark.parametrize("name", ["@f", "%x", "%y", "^end"])
def test_occurrences(asked, name):
    # The definition, then the uses: a block may be used before it.
    starts = sorted(occurrences(name), reverse=name == "^end")
    ranges = [asked.range(start, len(name)) for start in starts]
    assert len(starts) == (3 if name == "%x" else 2)
    for start, own in zip(starts, ranges):
        for offset in (start, start + len(name)):
            position = asked.at(offset)
            marked = asked("textDocument/documentHighlight", position, kind=lsp.DocumentHighlightParams)
            kinds = [lsp.DocumentHighlightKind.Write] + [lsp.DocumentHighlightKind.Read] * (len(starts) - 1)
            assert [(m.range, m.kind) for m in marked] == [*zip(ranges, kinds)]
            found = asked("textDocument/definition", position, kind=lsp.DefinitionParams)
            assert found == lsp.Location(URI, ranges[0])
            assert asked("textDocument/prepareRename", position, kind=lsp.PrepareRenameParams) == own
            edit = asked("textDocument/rename", position, "new", kind=lsp.RenameParams)
            assert edit.changes == {URI: [lsp.TextEdit(r, f"{name[0]}new") for r in ranges]}
            for declared in (False, True):
                context = lsp.ReferenceContext(include_declaration=declared)
                params = lsp.ReferenceParams(context, asked.identifier, position)
                uses = asked.server.protocol.fm.features["textDocument/references"](params)
                assert [use.range for use in uses] == ranges[not declared :]


def test_places_without_a_name(asked):
    position = asked.at(TEXT.index("\u00e4"))
    assert asked("textDocument/documentHighlight", position, kind=lsp.DocumentHighlightParams) == []
    assert asked("textDocument/definition", position, kind=lsp.DefinitionParams) is None
    assert asked("textDocument/prepareRename", position, kind=lsp.PrepareRenameParams) is None
    assert asked("textDocument/hover", position, kind=lsp.HoverParams) is None
    params = lsp.ReferenceParams(lsp.ReferenceContext(include_declaration=True), asked.identifier, position)
    assert asked.server.protocol.fm.features["textDocument/references"](params) == []
    with pytest.raises(JsonRpcInvalidParams, match="there is no name of a value, symbol, block"):
        asked("textDocument/rename", position, "new", kind=lsp.RenameParams)
    with pytest.raises(JsonRpcInvalidParams, match="'%a b' is not a name"):
        asked("textDocument/rename", asked.at(occurrences("%y")[0]), "a b", kind=lsp.RenameParams)


def test_tokens(asked):
    data = asked("textDocument/semanticTokens/full", kind=lsp.SemanticTokensParams).data
    line = column = 0
    found = []
    for step, start, length, kind, modifiers in zip(*(data[n::5] for n in range(5))):
        line, column = line + step, start if step else column + start
        found.append((lsp.Position(line, column), length, TOKEN_KINDS[kind], modifiers))
    encoding, size = UNITS[asked.units]
    document = asked.server.document(URI)
    wanted = [(asked.at(at), len(text.encode(encoding)) // size, kind, 0) for at, text, kind in document.tokens()]
    assert found == wanted and {"comment", "string", "parameter", "variable"} <= {kind for _, _, kind, _ in found}


def test_outline_and_folds(asked):
    kinds = {"f": lsp.SymbolKind.Function, "g": lsp.SymbolKind.Function, "k": lsp.SymbolKind.Function,
             "end": lsp.SymbolKind.Key, "kernels": lsp.SymbolKind.Module}  # fmt: skip
    found = asked("textDocument/documentSymbol", kind=lsp.DocumentSymbolParams)
    assert {s.name: s.kind for s in found} == kinds
    for symbol in found:
        sigil = "^" if symbol.name == "end" else "@"
        assert symbol.range == symbol.selection_range
        assert symbol.range == asked.range(occurrences(sigil + symbol.name)[symbol.name == "end"], len(symbol.name) + 1)
    # What a fold hides ends before the line of the brace; two adjacent lines are no fold.
    folds = asked("textDocument/foldingRange", kind=lsp.FoldingRangeParams)
    assert sorted((f.start_line, f.end_line) for f in folds) == [(1, 14), (2, 5), (10, 13), (11, 12)]


def test_hover_and_completions(asked):
    start = TEXT.index("arith.addf")
    hover = asked("textDocument/hover", asked.at(start + 3), kind=lsp.HoverParams)
    assert hover.contents.value.startswith("**arith.addf**") and hover.range == asked.range(start, len("arith.addf"))
    for offset, begin in ((start + 8, start), (start, start), (TEXT.index("%y", start) + 1, TEXT.index("%y", start))):
        items = asked("textDocument/completion", asked.at(offset), kind=lsp.CompletionParams)
        assert items and all(i.text_edit.range == asked.range(begin, offset - begin) for i in items)
        assert {i.label for i in items} == {i.text_edit.new_text for i in items}
    (item,) = [i for i in items if i.label == "%x"]
    assert (item.kind, item.documentation) == (lsp.CompletionItemKind.Variable, None)


def test_diagnostics(asked):
    wrong = TEXT.replace("return %y", "return %no")
    asked.text = wrong
    asked.server.workspace.put_text_document(lsp.TextDocumentItem(URI, "mlir", 8, wrong))
    item = lsp.TextDocumentItem(URI, "mlir", 8, wrong)
    asked.server.protocol.fm.features["textDocument/didOpen"](lsp.DidOpenTextDocumentParams(item))
    asked("textDocument/didClose", kind=lsp.DidCloseTextDocumentParams)
    asked.server.workspace.remove_text_document(URI)
    asked.server.check(URI)
    found, none = asked.sent
    assert (found.uri, found.version, len(found.diagnostics)) == (URI, 8, 1)
    assert (none.uri, none.version, none.diagnostics) == (URI, None, [])
    (error,) = found.diagnostics
    assert error.range == asked.range(wrong.index("%no"), 3)
    assert (error.severity, error.source) == (lsp.DiagnosticSeverity.Error, "xegpu-lsp")


@pytest.mark.sweep("utf-8", "utf-32")
def test_formatting_replaces_the_whole_text(asked):
    asked.text = TEXT.replace("    gpu.func @k", "gpu.func @k").replace("call @f() : () -> ()", "")
    asked.server.workspace.put_text_document(lsp.TextDocumentItem(URI, "mlir", 8, asked.text))
    options = lsp.FormattingOptions(tab_size=2, insert_spaces=True)
    (edit,) = asked("textDocument/formatting", options, kind=lsp.DocumentFormattingParams)
    assert edit.range == asked.range(0, len(asked.text)) and "    gpu.func @k() kernel {" in edit.new_text
    asked.server.workspace.put_text_document(lsp.TextDocumentItem(URI, "mlir", 9, edit.new_text))
    assert asked("textDocument/formatting", options, kind=lsp.DocumentFormattingParams) == []


def test_hints_are_those_of_the_range(asked):
    asked.text = TEXT.replace("call @f() : () -> ()", "")
    asked.server.workspace.put_text_document(lsp.TextDocumentItem(URI, "mlir", 8, asked.text))
    place = asked.text.index("@k()") + 2
    end = len(asked.text)
    for first, last, count in ((0, end, 1), (place, place, 1), (place + 1, end, 0), (0, place - 1, 0)):
        span = lsp.Range(asked.at(first), asked.at(last))
        hints = asked("textDocument/inlayHint", span, kind=lsp.InlayHintParams)
        assert [h.position for h in hints] == [asked.at(place)] * count
    assert [asked.server.offset(URI, asked.at(n)) for n in range(len(asked.text))] == [*range(len(asked.text))]


def test_actions_and_lowered_kernels(asked):
    asked.text = TEXT.replace("call @f() : () -> ()", "")
    asked.server.workspace.put_text_document(lsp.TextDocumentItem(URI, "mlir", 8, asked.text))
    span = asked.range(asked.text.index("@k"), 0)
    (action,) = asked("textDocument/codeAction", span, lsp.CodeActionContext([]), kind=lsp.CodeActionParams)
    assert (action.title, action.command, action.arguments) == (
        "Show the kernel's assembly", "xegpu.showLowered", [URI, span.start]
    )  # fmt: skip
    asked.server.workspace.put_text_document(lsp.TextDocumentItem(URI, "mlir", 9, "module {\n}\n"))
    assert asked("textDocument/codeAction", span, lsp.CodeActionContext([]), kind=lsp.CodeActionParams) == []


def test_a_file_is_checked_after_a_pause_in_typing(monkeypatch):
    asked = Asked(lsp.PositionEncodingKind.Utf16)
    monkeypatch.setattr(server, "_DELAY", 0.001)

    async def typed():
        for n, text in enumerate(("module {", "module { }", "nothing")):
            asked.server.workspace.put_text_document(lsp.TextDocumentItem(URI, "mlir", n, text))
            identifier = lsp.VersionedTextDocumentIdentifier(n, URI)
            await asked.server.protocol.fm.features["textDocument/didChange"](
                lsp.DidChangeTextDocumentParams(identifier, [])
            )
            if n:
                await asyncio.sleep(0.05)

    asyncio.run(typed())
    assert [(d.version, len(d.diagnostics)) for d in asked.sent] == [(1, 0), (2, 1)]


def test_the_assembly_of_a_kernel_is_shown(tmp_path, monkeypatch):
    """In a file that the client opens if it can; an error is a message."""
    asked, opened = Asked(lsp.PositionEncodingKind.Utf16), []

    async def opens(params):
        opened.append((params.uri, params.take_focus))

    def lowered(document, offset):
        if offset == 3:
            raise ValueError("no kernel")
        return f"assembly at {offset}"

    asked.server.window_show_document_async = opens
    monkeypatch.setattr(server.tempfile, "mkdtemp", lambda prefix: str(tmp_path))
    monkeypatch.setattr(type(asked.server.document(URI)), "lowered", lowered)
    command, file = asked.server.protocol.fm.commands["xegpu.showLowered"], tmp_path / "a b.visaasm"
    for window in (
        None,
        lsp.WindowClientCapabilities(),
        lsp.WindowClientCapabilities(show_document=lsp.ShowDocumentClientCapabilities(True)),
    ):
        assert not opened and not file.exists()
        asked.server.protocol.client_capabilities = lsp.ClientCapabilities(window=window)
        assert asyncio.run(command(URI, asked.at(50))) == "assembly at 50"
    assert opened == [(file.as_uri(), True)] and file.read_text() == "assembly at 50"
    assert asyncio.run(command(URI, None)) == "assembly at 0"
    assert not asked.shown and asyncio.run(command(URI, asked.at(3))) is None and len(opened) == 2
    (message,) = asked.shown
    assert message.type == lsp.MessageType.Error and message.message == "no kernel"
