"""Documents as the server asks them, in this process: words, types, hints, completions, formatted and lowered text."""

import re

import pytest
from markdown import ROOT

import xegpu_py
from xegpu_py.extensions.editor.document import Document
from xegpu_py.visa.instructions import INSTRUCTIONS

GEMM = (ROOT / "examples" / "gemm.mlir").read_text()
SCAN = (ROOT / "test" / "run" / "scan.visaasm").read_text()

TYPES = """\
!line = memref<16xi32>
func.func @f(%x: i32, %y: f32, %m: !line) -> i32 {
  %s,
  %o = arith.addui_extended %x, %x : i32, i1
  %p:2, %q = scf.if %o -> (i32, f32, i1) { scf.yield %s, %y, %o : i32, f32, i1 } else {
    %t, %u = arith.addui_extended %x, %p0, : i32, i1
    scf.yield %t, %y, %u : i32, f32, i1
  }
  cf.br ^end(%p#0 : i32)
^end(%z: i32):
  return %z : i32
}
""".replace("%p0,", "%s")


def mlir(text):
    return Document.of(text, "file.mlir")


def visa(text):
    return Document.of(text, "file.visaasm")


def places(text, name):
    return [m.start() for m in re.finditer(re.escape(name) + r"\b", text)]


def fenced(text, language="mlir"):
    return f"```{language}\n{text}\n```"


@pytest.fixture(scope="module")
def typed():
    document = mlir(TYPES)
    assert document.diagnostics == []
    return document


@pytest.mark.parametrize(
    ("name", "kind"),
    [("%x", "i32"), ("%y", "f32"), ("%m", "memref<16xi32>"), ("%s", "i32"), ("%o", "i1"), ("%p", "i32, f32"),
     ("%q", "i1"), ("%t", "i32"), ("%u", "i1"), ("%z", "i32")],
)  # fmt: skip
def test_the_type_of_each_value(name, kind, typed):
    for offset in places(TYPES, name):
        first, line = typed.hover(offset).split("\n\n")
        assert first == fenced(f"{name} : {kind}")
        assert line == fenced(next(line for line in TYPES.splitlines() if name in line).strip())


def test_results_of_one_of_several_ops_on_a_line():
    text = TYPES.replace(" else {\n   ", " else {").replace("%t, %u =", "%t:1, %u:1 =")
    document = mlir(text.replace("scf.yield %t", "scf.yield %t#0"))
    assert [document.hover(text.index(f"{name}:1")).split("\n")[1] for name in ("%t", "%u")] == ["%t : i32", "%u : i1"]


def test_values_of_text_with_mistakes_have_no_type():
    text = TYPES.replace("-> i32 {", "-> {")
    assert mlir(text).diagnostics and mlir(text).hover(text.index("%s")) == f"{fenced('%s')}\n\n{fenced('%s,')}"


def test_words():
    """A position is between two characters: a word is at its start, inside, and at its end."""
    for text in ("%a, @b.c ^d0 !e.f<g>\n#h 1 x-y  \n\n  $z %", "x", " ", ""):
        words = [*re.finditer(r"[%@^!#]?[\w$][\w$.-]*", text)]
        for offset in range(len(text) + 1):
            found = mlir(text).word(offset)
            assert (found and found[0]) == next((m[0] for m in words if m.start() <= offset <= m.end()), None)


def test_hover_of_names_and_words():
    document = mlir(TYPES)
    for offset in places(TYPES, "!line"):
        assert document.hover(offset) == fenced("!line = memref<16xi32>")
    for offset in places(TYPES, "^end"):
        assert document.hover(offset) == fenced("^end(%z: i32):")
    assert document.hover(TYPES.index("arith.addui")).startswith("**arith.addui_extended**\n\n")
    assert document.hover(TYPES.index("memref<")) is None and document.hover(len(TYPES)) is None
    document = mlir(GEMM)
    for word, title in (("xegpu.store_nd", "xegpu.store_nd"), ("!xegpu.tensor_desc", "xegpu.tensor_desc")):
        assert title in document.hover(GEMM.index(word)).split("\n")[0]
    assert mlir("#xegpu.tdesc_attr").hover(3) and mlir("#xegpu.cache_hint").hover(3) is not None
    assert mlir("#xegpu.load_nd !xegpu.tdesc_attr xegpu.tensor_desc other.op").hover(3) is None


@pytest.mark.parametrize("word", ["#xegpu.load_nd", "!xegpu.tdesc_attr", "xegpu.tensor_desc", "other.op", "arith.no"])
def test_words_of_another_kind_have_no_documentation(word):
    assert mlir(word).hover(1) is None


TWO = """\
gpu.module @m {
  gpu.func @first(%y: memref<16xi32>) kernel {
    %c0 = arith.constant 0 : index
    %c7 = arith.constant 7 : i32
    memref.store %c7, %y[%c0] : memref<16xi32>
    gpu.return
  }

  gpu.func @second(%y: memref<16xi32>) kernel {
    gpu.return
  }
}
"""


@pytest.mark.parametrize(
    ("place", "kernel"),
    [("gpu.module", "first"), ("@first", "first"), ("\n  gpu.func @second", "first"), ("@second", "second"),
     ("}\n}\n", "second")],
)  # fmt: skip
def test_the_kernel_at_a_position_is_lowered(place, kernel):
    lowered = mlir(TWO).lowered(TWO.index(place))
    assert re.findall(r'\.kernel "(\w+)"', lowered) == [kernel]


def test_the_kernel_at_a_position_of_assembly_is_lowered():
    """The assembly is a document of the same kernels."""
    both = "".join(mlir(TWO).lowered(TWO.index(f"@{name}")) for name in ("first", "second"))
    text = ".version" + both.replace(".version", "//")[2:]
    start = text.index('.kernel "second"')
    for offset, name in ((0, "first"), (start - 1, "first"), (start, "second"), (len(text), "second")):
        assert re.findall(r'\.kernel "(\w+)"', visa(text).lowered(offset)) == [name]


def test_files_without_a_kernel():
    with pytest.raises(ValueError, match="there is no kernel: a gpu.func with the attribute 'kernel'"):
        mlir(TWO.replace(" kernel", "")).lowered(0)
    with pytest.raises(ValueError, match="^there is no kernel$"):
        visa("// nothing\n").lowered(0)


def test_registers_of_kernels():
    for text in (TWO, TWO.replace("@second", "@other")):
        found = mlir(text).hints()
        names = [m.end() for m in re.finditer(r"func @\w+", text)]
        assert [hint.offset for hint in found] == names
        assert all(hint.text.startswith(" register pressure") for hint in found)
    # The others of a kernel that cannot be lowered have theirs.
    body = "%i = arith.constant 1 : i32\n    vector.print %i : i32"
    text = TWO.replace("    gpu.return\n  }\n}", f"    {body}\n    gpu.return\n  }}\n}}")
    assert [hint.offset for hint in mlir(text).hints()] == [text.index("(%y")]
    assert mlir(TWO.replace("%c7, %y", "%c8, %y")).hints() == []
    assert mlir(TYPES).hints() == []


def test_places_of_variables_of_assembly():
    document = visa(SCAN)
    assert document.diagnostics == []
    found = {SCAN[: hint.offset].rpartition("\n")[2]: hint.text for hint in document.hints()}
    kernel, *lines = found
    assert kernel == '.kernel "scan"' and found[kernel].startswith(" register pressure")
    # A predicate has no bytes.
    assert lines == re.findall(r"^\.decl .*v_type=G.*", SCAN, re.MULTILINE)
    for line in lines:
        name = line.split()[1]
        start, end = re.fullmatch(r" r(\S+) to r(\S+)", found[line]).groups()
        first, last = (int(row) * 64 + int(byte) for row, byte in (at.split(".") for at in (start, end)))
        elements = int(re.search(r"num_elts=(\d+)", line)[1])
        assert last - first + 1 == elements * {"uq": 8, "ud": 4, "d": 4}[re.search(r" type=(\w+) ", line)[1]]
        hover = document.hover(SCAN.index(f".decl {name}") + 6)
        assert hover.startswith(fenced(line, "visaasm") + f"\n\nBytes r{start} to r{end} of the register file on ")
    broken = visa(SCAN.replace("64 size", "63 size"))
    assert broken.hints() == [] and broken.hover(SCAN.index(f".decl {name}") + 6) == fenced(line, "visaasm")


def test_tokens_of_several_lines():
    text = "/* one\n two\nthree */ .version 3.8\n"
    found = list(visa(text).tokens())
    assert all(text.startswith(token, offset) for offset, token, _ in found)
    assert [(token, kind) for _, token, kind in found] == [
        *((line, "comment") for line in ("/* one", " two", "three */")), (".version", "keyword"), ("3.8", "number"),
    ]  # fmt: skip


def test_hover_of_assembly():
    document = visa(SCAN)
    mad = INSTRUCTIONS["mad"]
    assert document.hover(SCAN.index("    mad") + 4) == (
        f"**mad**\n\n{mad.doc}\n\n{fenced(mad.form, 'visaasm')}\n\nSource: {mad.source}"
    )
    assert "**lsc_load**" in document.hover(SCAN.index("lsc_load.ugm"))
    assert document.hover(SCAN.index("Again:")) == fenced("Again:", "visaasm")
    assert document.hover(SCAN.index("More")) == fenced(".decl More v_type=P num_elts=1", "visaasm")
    assert document.hover(SCAN.index("0:ud")) is None


@pytest.mark.parametrize(
    ("typed", "found", "missing"),
    [
        ("", {"mad", "Id", "Again"}, {"scan"}),
        ("  ma", {"mad", "madw"}, {"add", "Again"}),
        ("(More) ma", {"mad"}, {"add"}),
        ("(!More) ", {"mad", "add"}, {"scan"}),
        ("add (M1, 16) ", {"X", "Y", "More"}, {"add", "mad"}),
        ("add (M1, 16) X(0,0)<1> N", {"Number"}, {"add", "X"}),
    ],
)
def test_completions_of_assembly(typed, found, missing):
    text = SCAN.replace("Again:\n", f"Again:\n{typed}\n")
    labels = {c.text for c in visa(text).completions(text.index("Again:\n") + len("Again:\n") + len(typed))}
    assert found <= labels and not missing & labels
    assert typed.strip() or {c.kind for c in visa(text).completions(0)} == {"op", "name"}


def test_formatting_of_assembly_keeps_comments():
    text = re.sub("//.*\n", "", SCAN).strip() + "\n"
    new = visa(text.replace("    ", "  ")).formatted()
    assert new == visa(new).formatted() == visa(text).formatted()
    assert new.count("\n    mov (M1_NM, ") == text.count("\n    mov (M1_NM, ") > 10
    for kept in (SCAN, text + "  // the end", text + "/* the\nend */", text.replace("    mad ", "  nothing ")):
        assert visa(kept).formatted() == kept


@pytest.mark.parametrize(
    ("typed", "labels", "kinds"),
    [
        ("%c", ["%c0", "%c8", "%c16", "%c_desc", "%c_init"], {"name"}),
        ("@", ["@kernels", "@gemm"], {"name"}),
        ("xegpu.store", ["xegpu.store_nd", "xegpu.store"], {"op"}),
        ("!xegpu.t", ["!xegpu.tensor_desc"], {"type"}),
        ("xegpu.dpas %x {\n   ", ["mode"], {"attribute"}),
        ("xegpu.dpas %x {mode = v", ["simt", "vc"], {"value"}),
        ("xegpu.dpas %x {nothing = ", [], set()),
        ("other.op %x {mode = ", [], None),
        ("#xegpu.tdesc_attr<nothing = ", [], set()),
    ],
)
def test_completions(typed, labels, kinds):
    text = GEMM.replace("\n    %c_tile =", f"\n    {typed}\n    %c_tile =", 1)
    found = mlir(text).completions(text.index(typed + "\n", text.index("%c_init")) + len(typed))
    own = [c for c in found if c.detail != "upstream"]
    if kinds is None:
        assert {c.kind for c in found} == {"op"}
    else:
        assert ([c.text for c in own if c.text in labels], {c.kind for c in own}) == (labels, kinds)
        assert kinds != {"name"} or [c.text for c in own] == labels


def test_values_of_no_known_type_are_offered():
    """In text with a mistake values have no types."""
    found = mlir("%one = other.op\n%two = other.op\n%").completions(len("%one = other.op\n%two = other.op\n%"))
    assert [(c.text, c.detail) for c in found] == [("%one", ""), ("%two", "")]


def test_attributes_that_are_there_are_not_offered():
    both = "l1_hint = cached, mode = vc, "
    for inside, missing in (("", set()), ("mode = vc, ", {"mode"}), (both, {"mode", "l1_hint"})):
        text = f"%a = xegpu.load_nd %t {{{inside}"
        labels = {c.text for c in mlir(f"gpu.module @m {{ {text} }}").completions(len("gpu.module @m { " + text))}
        assert {"mode", "l1_hint", "l2_hint", "transpose"} - labels == missing


@pytest.mark.parametrize(
    ("old", "new", "result"),
    [("%a_desc", "left", "%left"), ("%a_desc", "%left", "%left"), ("@gemm", "^f", "@f"), ("%k ", "0", "%0"),
     ("%a_desc", "b_desc", "'%b_desc' is the name of something else here"), ("%a_desc", "", "'%' is not a name"),
     ("%a_desc", "a b", "'%a b' is not a name"), ("@gemm", "0", "'@0' is not a name"),
     ("gpu.return", "x", "there is no name of a value, symbol, block, variable or label")],
)  # fmt: skip
def test_new_names(old, new, result):
    if " " not in result:
        assert mlir(GEMM).renamed(GEMM.index(old), new) == result
    else:
        with pytest.raises(ValueError, match=f"^{re.escape(result)}$"):
            mlir(GEMM).renamed(GEMM.index(old), new)


def test_pieces_of_a_file_are_checked_each():
    wrong = TWO.replace("%c7, %y", "%c8, %y")
    for text, lines in (
        (f"{TWO}// -----\n{TWO}", []),
        (f"{wrong}// -----\n{TWO}", [5]),
        (f"{TWO}// -----\n{wrong}", [5 + 13]),
        (f"{wrong}// -----\n{wrong}", [5, 5 + 13]),
    ):
        document = mlir(text)
        assert [d.position.line for d in document.diagnostics] == lines
        assert document.formatted() == text


def test_formatting_keeps_text_that_it_cannot_read():
    assert mlir(TWO.replace("    %c7", "%c7")).formatted() == TWO
    wrong = TWO.replace("gpu.return", "gpu .. return")
    assert mlir(wrong).formatted() == wrong


TILES = """\
!b = !xetile.tile<64x64xf32, #xetile.tile_attr<wg_map = <sg_layout = [4, 2], sg_data = [16, 32]>>>
gpu.module @kernels {
  gpu.func @copy(%A: memref<64x64xf32>, %B: memref<64x64xf32>) kernel {
    %c0 = arith.constant 0 : index
    %a = xetile.init_tile %A[%c0, %c0] : memref<64x64xf32> -> !xetile.tile<64x64xf32>
    %v = xetile.load_tile %a : !xetile.tile<64x64xf32> -> vector<64x64xf32>
    %b = xetile.init_tile %B[%c0, %c0] : memref<64x64xf32> -> !b
    xetile.store_tile %v, %b : vector<64x64xf32>, !b
    gpu.return
  }
}
"""


def test_derived_layouts():
    document = mlir(TILES)
    derived = "<sg_layout = [4, 2], sg_data = [16, 32]>"
    hints = {TILES[: hint.offset].split()[-1]: hint for hint in document.hints()}
    assert {name: hint.text for name, hint in hints.items() if name[0] == "%"} == {
        "%a": f" {derived}", "%v": f" {derived}", "%b": f" {derived}"
    }  # fmt: skip
    assert hints["@copy"].text.startswith(" register pressure")
    for name in ("%a", "%v", "%b"):
        *_, last = document.hover(TILES.index(f"{name} =")).split("\n\n```")
        assert "Layout, as derived:" in document.hover(TILES.index(f"{name} =")) and derived in last
        assert hints[name].tooltip.startswith("Layout, as derived:\n\n```mlir\n")
    assert "Layout" not in document.hover(TILES.index("%c0 ="))
    # A line that states its layout has no hint.
    alias, whole = TILES.partition("\n")[0].split(" = ", 1)
    stated = mlir(TILES.replace(f"-> {alias}", f"-> {whole}"))
    stated.__dict__["_registers"] = {}  # which take a second
    assert [hint.text for hint in stated.hints()] == [f" {derived}"] * 2
    assert all(not hint.text.startswith(" <") for hint in mlir(TILES.replace("%v, %b :", "%v, %c :")).hints())


def test_registers_of_values_of_visa():
    text = xegpu_py.compile(TWO, "first").ir("visa")
    found = {
        name: document.hover(at)
        for document in [mlir(text)]
        for name, at in ((m[1], m.start()) for m in re.finditer(r"(%[\w$]+) = visa\.(?:decl|input) ", text))
    }
    assert found and all(re.search(r"Bytes r\d+\.\d+ to r\d+\.\d+ of the register file on ", t) for t in found.values())
