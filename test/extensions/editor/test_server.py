"""The language server, asked through the protocol as editors do."""

import itertools
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import pytest_lsp
from lsprotocol import types as lsp
from markdown import ROOT
from pygls.exceptions import JsonRpcException
from pytest_lsp import ClientServerConfig, LanguageClient, client_capabilities

from xegpu_py.extensions.editor.document import TOKEN_KINDS
from xegpu_py.extensions.editor.server import _DELAY

pytest_plugins = ["pytest_lsp"]
_NUMBERS = itertools.count()
GEMM = (ROOT / "examples" / "gemm.mlir").read_text()


# One server answers all tests, since it takes as long to start as all of them together.
@pytest_lsp.fixture(
    scope="module",
    config=ClientServerConfig(server_command=[str(Path(sys.executable).with_name("xegpu-lsp"))]),
)
async def client(lsp_client: LanguageClient):
    await lsp_client.initialize_session(
        lsp.InitializeParams(capabilities=client_capabilities("visual-studio-code"), root_uri=None)
    )
    yield
    await lsp_client.shutdown_session()


def opened(client, text, kind="mlir"):
    """Open a text as a file that was not opened before."""
    uri = f"file:///file{next(_NUMBERS)}.{kind}"
    client.text_document_did_open(lsp.DidOpenTextDocumentParams(lsp.TextDocumentItem(uri, "mlir", 1, text)))
    return lsp.TextDocumentIdentifier(uri)


def place(text, needle, inside=0):
    """The position of a text, `inside` characters after its start."""
    offset = text.index(needle) + inside
    line = text.count("\n", 0, offset)
    return lsp.Position(line, offset - (text.rfind("\n", 0, offset) + 1))


def shown(text, where):
    """What a range holds."""
    lines = text.split("\n")
    assert where.start.line == where.end.line
    return lines[where.start.line][where.start.character : where.end.character]


async def diagnostics(client, document):
    """The next diagnostics of a document."""
    while document.uri not in client.diagnostics:
        await client.wait_for_notification(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    return client.diagnostics.pop(document.uri)


@pytest.mark.asyncio(loop_scope="module")
async def test_diagnostics_have_ranges_and_notes(client):
    bad = GEMM.replace("xegpu.load_nd %a_desc {mode = vc,", "xegpu.load_nd %a_desc {mode = vc, l1_hint = write_back,")
    bad = bad.replace(
        "xegpu.store_nd %c_tile, %c_desc {mode = vc}", "xegpu.store_nd %c_tile, %c_desc {mode = vc, l1_hint = cached}"
    )
    found = await diagnostics(client, opened(client, bad))
    assert [d.severity for d in found] == [lsp.DiagnosticSeverity.Error] * 2
    assert [shown(bad, d.range) for d in found] == ["xegpu.load_nd", "xegpu.store_nd"]
    assert "l1_hint = write_back is not a valid hint for a read" in found[0].message
    [note, *_] = found[0].related_information
    assert "hints for a read are" in note.message and shown(bad, note.location.range) == "xegpu.load_nd"


def server_seconds(client):
    """The processor time that the server has used, where the system tells it, or else the time of the clock."""
    stat = Path(f"/proc/{client._server.pid}/stat")
    if not stat.exists():
        return time.perf_counter()
    user, system = stat.read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


@pytest.mark.asyncio(loop_scope="module")
async def test_a_change_is_checked_within_300_ms(client):
    body = GEMM[GEMM.index("gpu.module") :]
    text = "".join(body.replace("@kernels", f"@k{i}").replace("1024", str(1024 + 16 * i)) for i in range(60))
    assert text.count("\n") > 2000
    document = opened(client, text)
    assert not await diagnostics(client, document)
    line = place(text, "{mode = vc, vnni_axis = 1}", 1)
    hint = "l1_hint = write_back, "
    taken = []
    for version, new in ((2, hint), (3, ""), (4, hint)):
        end = lsp.Position(line.line, line.character + (0 if new else len(hint)))
        change = lsp.TextDocumentContentChangePartial(lsp.Range(line, end), new)
        identifier = lsp.VersionedTextDocumentIdentifier(version, document.uri)
        start = server_seconds(client)
        client.text_document_did_change(lsp.DidChangeTextDocumentParams(identifier, [change]))
        found = await diagnostics(client, document)
        taken.append(server_seconds(client) - start)
        assert len(found) == bool(new)
    # The server also waits for a pause in typing, which takes no processor time.
    assert min(taken) + _DELAY < 0.3


@pytest.mark.asyncio(loop_scope="module")
async def test_hover_tells_types_documentation_and_layouts(client):
    document = opened(client, GEMM)
    value = await client.text_document_hover_async(lsp.HoverParams(document, place(GEMM, "%acc,", 1)))
    assert "%acc : vector<8x16xf32>" in value.contents.value
    op = await client.text_document_hover_async(lsp.HoverParams(document, place(GEMM, "xegpu.dpas", 8)))
    assert "Multiplies matrices" in op.contents.value and shown(GEMM, op.range) == "xegpu.dpas"
    nothing = await client.text_document_hover_async(lsp.HoverParams(document, lsp.Position(2, 0)))
    assert nothing is None
    desc = "!xetile.tile<64x64xf32, #xetile.tile_attr<wg_map = <sg_layout = [4, 2], sg_data = [16, 32]>>>"
    tiles = f"""\
!b = {desc}
gpu.module @kernels {{
  gpu.func @copy(%A: memref<64x64xf32>, %B: memref<64x64xf32>) kernel {{
    %c0 = arith.constant 0 : index
    %a = xetile.init_tile %A[%c0, %c0] : memref<64x64xf32> -> !xetile.tile<64x64xf32>
    %v = xetile.load_tile %a : !xetile.tile<64x64xf32> -> vector<64x64xf32>
    %b = xetile.init_tile %B[%c0, %c0] : memref<64x64xf32> -> !b
    xetile.store_tile %v, %b : vector<64x64xf32>, !b
    gpu.return
  }}
}}
"""
    document = opened(client, tiles)
    inferred = await client.text_document_hover_async(lsp.HoverParams(document, place(tiles, "%a =", 1)))
    assert "sg_layout = [4, 2], sg_data = [16, 32]" in inferred.contents.value


@pytest.mark.asyncio(loop_scope="module")
async def test_definitions_and_references(client):
    document = opened(client, GEMM)
    use = place(GEMM, "%a_desc {", 3)
    found = await client.text_document_definition_async(lsp.DefinitionParams(document, use))
    assert found.range.start == place(GEMM, "%a_desc =")
    for declaration in (False, True):
        context = lsp.ReferenceContext(include_declaration=declaration)
        params = lsp.ReferenceParams(context, document, place(GEMM, "%acc = ", 1))
        uses = await client.text_document_references_async(params)
        assert [shown(GEMM, u.range) for u in uses] == ["%acc"] * (1 + declaration)
        assert uses[-1].range.start == place(GEMM, "%acc, %a")


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("xegpu.lo", {"xegpu.load_nd", "xegpu.load_gather", "xegpu.load"}),
        ("arith.mul", {"arith.muli", "arith.mulf"}),
        ("%a = xegpu.load_nd %t {l1_hint = ", {"cached", "uncached", "streaming", "read_invalidate", "write_back"}),
        ("%a = xegpu.load_nd %t {mode = vc, ", {"transpose", "l1_hint", "l2_hint"}),
        ("#xegpu.tdesc_attr<memory_scope = ", {"slm", "global"}),
        ("#xegpu.sg_", {"#xegpu.sg_map"}),
        ("xegpu.store_nd %c_", {"%c_tile", "%c_desc"}),
    ],
)
async def test_completion(client, typed, expected):
    text = GEMM.replace("    gpu.return", f"    {typed}\n    gpu.return")
    document = opened(client, text)
    params = lsp.CompletionParams(document, place(text, f"    {typed}\n", 4 + len(typed)))
    found = await client.text_document_completion_async(params)
    labels = {item.label for item in found}
    assert {item.documentation.kind for item in found if item.documentation} <= {lsp.MarkupKind.Markdown}
    assert expected <= labels and "mode" not in labels


@pytest.mark.asyncio(loop_scope="module")
async def test_outline(client):
    document = opened(client, GEMM)
    found = await client.text_document_document_symbol_async(lsp.DocumentSymbolParams(document))
    assert [s.name for s in found] == ["kernels", "gemm"]


@pytest.mark.asyncio(loop_scope="module")
async def test_modules_are_modules_and_regions_fold(client):
    document = opened(client, GEMM)
    outline = await client.text_document_document_symbol_async(lsp.DocumentSymbolParams(document))
    assert ("kernels", lsp.SymbolKind.Module) in [(s.name, s.kind) for s in outline]
    folds = await client.text_document_folding_range_async(lsp.FoldingRangeParams(document))
    lines = GEMM.split("\n")
    assert {lines[f.start_line].split()[0] for f in folds} == {"gpu.module", "gpu.func", "%c_tile"}
    assert all(lines[f.end_line + 1].strip() == "}" for f in folds)


@pytest.mark.asyncio(loop_scope="module")
async def test_rename_and_highlight(client):
    document = opened(client, GEMM)
    at = place(GEMM, "%a_desc", 3)
    marked = await client.text_document_document_highlight_async(lsp.DocumentHighlightParams(document, at))
    assert len(marked) == GEMM.count("%a_desc") and {shown(GEMM, m.range) for m in marked} == {"%a_desc"}
    assert [m.kind for m in marked].count(lsp.DocumentHighlightKind.Write) == 1
    span = await client.text_document_prepare_rename_async(lsp.PrepareRenameParams(document, at))
    assert shown(GEMM, span) == "%a_desc"
    edit = await client.text_document_rename_async(lsp.RenameParams(document, at, "left"))
    lines = GEMM.split("\n")
    for e in sorted(edit.changes[document.uri], key=lambda e: (e.range.start.line, -e.range.start.character)):
        line = lines[e.range.start.line]
        lines[e.range.start.line] = line[: e.range.start.character] + e.new_text + line[e.range.end.character :]
    assert "\n".join(lines) == GEMM.replace("%a_desc", "%left")
    for name, why in (("b_desc", "is the name of something else here"), ("a b", "is not a name")):
        with pytest.raises(Exception, match=why):
            await client.text_document_rename_async(lsp.RenameParams(document, at, name))
    nothing = await client.text_document_prepare_rename_async(lsp.PrepareRenameParams(document, lsp.Position(0, 0)))
    assert nothing is None


@pytest.mark.asyncio(loop_scope="module")
async def test_tokens_have_kinds_and_places_in_the_units_of_the_client(client):
    text = "// \U0001f600 ä\nfunc.func @f(%x: f32) {\n  %y = arith.addf %x, %x : f32\n  return // é\n}\n"
    found = await client.text_document_semantic_tokens_full_async(lsp.SemanticTokensParams(opened(client, text)))
    lines = [line.encode("utf-16-le") for line in text.split("\n")]
    line = column = 0
    tokens = []
    for n in range(0, len(found.data), 5):
        step, start, length, kind, _ = found.data[n : n + 5]
        line, column = line + step, start if step else column + start
        tokens.append((lines[line][2 * column : 2 * (column + length)].decode("utf-16-le"), TOKEN_KINDS[kind]))
    assert tokens == [
        ("// \U0001f600 ä", "comment"),
        ("func.func", "method"),
        *(("@f", "function"), ("%x", "parameter"), ("f32", "type")),
        *(("%y", "variable"), ("arith.addf", "method"), ("%x", "parameter"), ("%x", "parameter"), ("f32", "type")),
        ("return", "keyword"),
        ("// é", "comment"),
    ]


@pytest.mark.asyncio(loop_scope="module")
async def test_hints_tell_layouts_and_registers(client):
    text = (ROOT / "test" / "run" / "xetile_gemm.mlir").read_text()
    whole = lsp.Range(lsp.Position(0, 0), lsp.Position(text.count("\n"), 0))
    found = await client.text_document_inlay_hint_async(lsp.InlayHintParams(opened(client, text), whole))
    shown_at = {text.split("\n")[h.position.line][: h.position.character].split()[-1]: h.label.strip() for h in found}
    assert shown_at["%va"] == "<sg_layout = [8, 4], sg_data = [32, 32]>"
    assert any(label.startswith("register pressure") for label in shown_at.values())
    assembly = (ROOT / "test" / "run" / "scan.visaasm").read_text()
    found = await client.text_document_inlay_hint_async(
        lsp.InlayHintParams(opened(client, assembly, "visaasm"), lsp.Range(lsp.Position(0, 0), lsp.Position(40, 0)))
    )
    assert found[0].label.strip().startswith("register pressure") and found[1].label.strip().startswith("r1.0 to")


@pytest.mark.asyncio(loop_scope="module")
async def test_formatting(client):
    ugly = GEMM.replace("    %sum = ", "%sum = ").replace("{mode = vc, vnni_axis = 1}", "{vnni_axis = 1, mode = vc}")
    document = opened(client, ugly)
    options = lsp.FormattingOptions(tab_size=2, insert_spaces=True)
    (edit,) = await client.text_document_formatting_async(lsp.DocumentFormattingParams(document, options))
    assert "      %sum = xegpu.dpas" in edit.new_text and "{mode = vc, vnni_axis = 1}" in edit.new_text
    assert "// C = A x B" in edit.new_text
    document = opened(client, edit.new_text)
    again = await client.text_document_formatting_async(lsp.DocumentFormattingParams(document, options))
    assert not again


@pytest.mark.asyncio(loop_scope="module")
async def test_show_lowered_opens_the_assembly(client):
    document = opened(client, GEMM)
    here = lsp.Range(lsp.Position(5, 0), lsp.Position(5, 0))
    asked = lsp.CodeActionParams(document, here, lsp.CodeActionContext([]))
    (action,) = await client.text_document_code_action_async(asked)
    params = lsp.ExecuteCommandParams(action.command, action.arguments)
    text = await client.workspace_execute_command_async(params)
    assert '.kernel "gemm"' in text and "dpas.bf.bf.8.8" in text
    # The assembly itself is a file that the server knows.
    document = opened(client, text, "visaasm")
    hover = await client.text_document_hover_async(lsp.HoverParams(document, place(text, "v8.0 v8.0", 1)))
    assert "of the register file" in hover.contents.value and "aligned to GRF" in hover.contents.value
    jump = await client.text_document_definition_async(
        lsp.DefinitionParams(document, place(text, "jmp (M1, 1) For", 13))
    )
    assert shown(text, jump.range) == "For1"


@pytest.mark.asyncio(loop_scope="module")
async def test_assembly_diagnostics(client):
    bad = '.version 3.8\n.kernel "k"\n    ad (M1, 1) v1(0,0)<1> 0x1:d\n    ret (M1, 1)\n'
    (found,) = await diagnostics(client, opened(client, bad, "visaasm"))
    assert shown(bad, found.range) == "ad" and "ad" in found.message


def test_without_pygls_it_says_what_to_install():
    code = "import sys; sys.modules['pygls'] = None; from xegpu_py.tools.xegpu_lsp import run; run([])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.returncode == 2 and "install xegpu-py with the extra 'lsp'" in ran.stderr
    assert "Traceback" not in ran.stderr


def tokens_of(client, document):
    return client.text_document_semantic_tokens_full_async(lsp.SemanticTokensParams(document))


@pytest.mark.asyncio(loop_scope="module")
async def test_a_file_of_one_long_line_takes_time_in_proportion_to_its_length(client):
    text = "module { %é = " * 3000
    document = opened(client, text)
    start = time.monotonic()
    position = lsp.Position(0, len(text))
    completions = await client.text_document_completion_async(lsp.CompletionParams(document, position))
    assert completions[0].text_edit.range == lsp.Range(position, position)
    # It took a minute when each token counted the characters of its line.
    tokens = (await tokens_of(client, document)).data
    assert time.monotonic() - start < 15
    assert list(tokens[:10]) == [0, 0, 6, TOKEN_KINDS.index("keyword"), 0, 0, 9, 2, TOKEN_KINDS.index("variable"), 0]
    assert list(tokens[10:13]) == [0, 5, 6]


@pytest.mark.asyncio(loop_scope="module")
async def test_halves_of_characters_are_replaced(client):
    document = opened(client, "// \ud800\nmodule {\n  func.func @f() { return }\n}\n")
    assert list(await diagnostics(client, document)) == []
    symbols = await client.text_document_document_symbol_async(lsp.DocumentSymbolParams(document))
    assert [s.name for s in symbols] == ["f"]


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("uri", ["file:///etc/passwd", "file:///nonexistent", "None", "http://example.org/x"])
async def test_files_that_are_not_open_are_not_read(client, uri):
    message = f"the file '{uri}' is not open"
    position = lsp.Position(0, 0)
    with pytest.raises(JsonRpcException, match=message):
        await client.workspace_execute_command_async(
            lsp.ExecuteCommandParams("xegpu.showLowered", [uri, {"line": 0, "character": 0}])
        )
    with pytest.raises(JsonRpcException, match=message):
        await client.text_document_hover_async(lsp.HoverParams(lsp.TextDocumentIdentifier(uri), position))


UPSTREAM = """\
gpu.module @kernels {
  gpu.func @copy(%a: memref<64x64xf32>, %b: memref<64x64xf32>) kernel {
    %from = xegpu.create_nd_tdesc %a : memref<64x64xf32> -> !xegpu.tensor_desc<8x16xf32>
    %to = xegpu.create_nd_tdesc %b : memref<64x64xf32> -> !xegpu.tensor_desc<8x16xf32>
    %v = xegpu.load_nd %from[0, 0] <{l1_hint = #xegpu.cache_hint<cached>}> : !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>
    xegpu.store_nd %v, %to[0, 0] : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    gpu.return
  }
}
"""  # noqa: E501


@pytest.mark.asyncio(loop_scope="module")
async def test_upstreams_spelling_is_recognized(client):
    document = opened(client, UPSTREAM)
    assert not await diagnostics(client, document)
    hover = await client.text_document_hover_async(lsp.HoverParams(document, place(UPSTREAM, "xegpu.load_nd", 8)))
    assert "`packed`" in hover.contents.value and "vnni_axis" not in hover.contents.value
    typed = UPSTREAM.replace("<{l1", "<{ l1")
    edited = opened(client, typed)
    asked = lsp.CompletionParams(edited, place(typed, "<{ l1", 2))
    found = {item.label for item in await client.text_document_completion_async(asked)}
    assert {"packed", "transpose", "l2_hint"} <= found and not {"mode", "vnni_axis"} & found
    options = lsp.FormattingOptions(tab_size=2, insert_spaces=True)
    edits = await client.text_document_formatting_async(lsp.DocumentFormattingParams(edited, options))
    assert [edit.new_text for edit in edits] == [UPSTREAM]
    bad = UPSTREAM.replace("memref<64x64xf32> -> !xegpu", "memref<64x64xf32, 3> -> !xegpu").replace(
        "%a: memref<64x64xf32>", "%a: memref<64x64xf32, 3>"
    )
    bad = bad.replace("create_nd_tdesc %b : memref<64x64xf32, 3>", "create_nd_tdesc %b : memref<64x64xf32>")
    (error,) = await diagnostics(client, opened(client, bad))
    assert error.message.startswith("'xegpu.create_nd_tdesc' op the descriptor's memory is global")


TTIR = (ROOT / "test" / "dialects" / "tt" / "dumped" / "softmax.ttir").read_text()


@pytest.mark.asyncio(loop_scope="module")
async def test_dumped_ir_of_triton(client):
    """Its locations name the Python program, and its regions stand in parentheses."""
    document = opened(client, TTIR, "ttir")
    assert not await diagnostics(client, document)
    value = await client.text_document_hover_async(lsp.HoverParams(document, place(TTIR, "%x_4 =", 1)))
    assert "%x_4 : tensor<256x!tt.ptr<f32>>" in value.contents.value
    op = await client.text_document_hover_async(lsp.HoverParams(document, place(TTIR, "tt.addptr", 4)))
    assert shown(TTIR, op.range) == "tt.addptr" and "AddPtrOp" in op.contents.value
    for use, definition in (("%e_9, %e_10 : f32", "%e_9: f32"), ("#loc31)", "#loc31 = ")):
        found = await client.text_document_definition_async(lsp.DefinitionParams(document, place(TTIR, use, 1)))
        assert found.range.start == place(TTIR, definition)
    new = await client.text_document_rename_async(lsp.RenameParams(document, place(TTIR, "#loc31)", 1), "load"))
    edits = new.changes[document.uri]
    assert {edit.new_text for edit in edits} == {"#load"} and len(edits) == TTIR.count("#loc31)") + 1

    typed = TTIR.replace("tt.return", "tt.descriptor_", 1)
    document = opened(client, typed, "ttir")
    at = place(typed, "tt.descriptor_", len("tt.descriptor_"))
    found = await client.text_document_completion_async(lsp.CompletionParams(document, at))
    assert "tt.descriptor_load" in [item.label for item in found]


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ("tt.make_range {end = 256", "tt.make_range {end = 128", "tt.make_range"),
        ("tt.load", "tt.lod", "tt.lod"),
        ("loc(#loc31)", "loc(#nowhere)", "#nowhere"),
    ],
)
@pytest.mark.asyncio(loop_scope="module")
async def test_mistakes_in_dumped_ir_are_shown_at_their_lines(client, old, new, word):
    bad = TTIR.replace(old, new, 1)
    (found,) = await diagnostics(client, opened(client, bad, "ttir"))
    assert shown(bad, found.range) == word
