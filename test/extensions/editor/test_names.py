"""Definitions and uses of names, found in text."""

import os
import re
from collections import Counter

import pytest
from effort import some
from files import VALID
from markdown import ROOT

import xegpu_py
from xegpu_py.extensions.editor.document import in_child
from xegpu_py.extensions.editor.names import mlir_names, visa_names
from xegpu_py.ir.diagnostics import Source

DUMPED = sorted((ROOT / "test" / "dialects" / "tt" / "dumped").glob("*.ttir"))


@pytest.mark.parametrize("path", [*VALID, *DUMPED], ids=lambda p: str(p.relative_to(ROOT)))
def test_every_value_of_a_valid_file_has_a_definition(path):
    text = path.read_text()
    names = mlir_names(text)
    code = re.sub(r'//[^\n]*|"(?:[^"\\\n]|\\.)*"', lambda m: " " * len(m[0]), text)
    for m in re.finditer(r"%[\w$.-]+", code):
        found = names.at(m.start())
        if m[0] == "%slm" and found is None and re.search(r"^\s*visa\.\w", code[: m.start()].rpartition("\n")[2]):
            # A surface of vISA is no value.
            continue
        assert found is not None and found.name == m[0], (m[0], text.count("\n", 0, m.start()) + 1)
        assert found.start <= m.start() or "^" in text


NESTED = """\
gpu.module @a {
  gpu.func @f(%x: index, %y: index) kernel {
    %r:2 = scf.for %i = %x to %y step %x iter_args(%s = %x, %t = %y) -> (index, index) {
      %x2 = arith.addi %s, %i : index
      scf.yield %x2, %t : index, index
    }
    %q = scf.while (%w = %x) : (index) -> index {
      %c = arith.cmpi slt, %w, %y : index
      scf.condition(%c) %w : index
    } do {
    ^bb0(%w: index):
      %n = arith.addi %w, %r#1 : index
      scf.yield %n : index
    }
    gpu.return
  }
  gpu.func @g(%x: index) kernel attributes {known = 1 : i32} {
    %z = arith.addi %x, %x : index
    func.call @h(%z) : (index) -> ()
    gpu.return
  }
  func.func private @h(index)
}
"""


def occurrences(text, pattern):
    return [m.start() for m in re.finditer(pattern, text)]


def test_regions_have_names_of_their_own():
    names = mlir_names(NESTED)
    xs = occurrences(NESTED, r"%x\b")
    second = NESTED.index("@g")
    first = names.at(xs[0])
    assert first.uses == [x for x in xs[1:] if x < second]
    assert names.at(xs[-1]).start == NESTED.index("%x", second)
    ws = occurrences(NESTED, r"%w\b")
    assert names.at(ws[2]).start == ws[0]  # In the condition, what the loop begins with.
    assert names.at(ws[4]).start == ws[3]  # After `do`, the block's argument.


def test_results_and_owners():
    names = mlir_names(NESTED)
    r = names.at(NESTED.index("%r#1"))
    assert (r.result, NESTED[r.owner :].startswith("scf.for")) == (0, True)
    assert names.at(NESTED.index("@h(%z)")).start == NESTED.index("@h(index)")
    assert names.at(NESTED.index("arith.cmpi")) is None


REGIONS = [
    ("test.op {unit}", []),
    ("test.op {}", []),
    ("test.op {unit, two.words}", []),
    ("test.op {a = 1 : i32, b.c = 2 : i32}", []),
    ('test.op {"a" = 1 : i32}', []),
    ("test.op {a.b = {c}}", []),
    ("gpu.module @m attributes {a.b} { gpu.return }", ["{ gpu.return }"]),
    ("gpu.func @f() kernel attributes {unit} { gpu.return }", ["{ gpu.return }"]),
    ("gpu.func @f(%a: i32 {tt.divisibility = 16 : i32}, %b: i32 {unit}) { gpu.return }", ["{ gpu.return }"]),
    ("test.op #a<{x = 1}> {\n gpu.return }", ["{\n gpu.return }"]),
    ("scf.if %c { scf.yield } else { %x = a.b }", ["{ scf.yield }", "{ %x = a.b }"]),
    ('"a.b"() ({ c.d }) {unit} : () -> ()', ["{ c.d }"]),
    ('"a.b"() <{a = 1 : i32}> ({ c.d }, {\n%x = e.f }) {unit} : () -> ()', ["{ c.d }", "{\n%x = e.f }"]),
    ("test.op ({a = 1}, {b = 2}) { c.d }", ["{ c.d }"]),
]


@pytest.mark.parametrize(("text", "regions"), REGIONS)
def test_braces_of_regions_and_of_attributes(text, regions):
    assert [text[start : end + 1] for start, end in mlir_names(text).regions] == regions


def test_names_in_each_region_of_a_generic_op():
    text = '"scf.if"(%c) ({\n  %x = "a.b"() : () -> i32\n  "c.d"(%x) : (i32) -> ()\n}, {\n'
    text += '  %x = "a.c"() : () -> i32\n  "c.e"(%x) : (i32) -> ()\n}) : (i1) -> ()\n'
    first, second = mlir_names(text).definitions
    assert [first.start, *first.uses, second.start, *second.uses] == occurrences(text, "%x")


def test_the_first_and_the_last_name_of_a_text():
    text = "%a = test.op\n%b, %c:2 = test.op %a, %b#1, %c"
    names = mlir_names(text)
    assert [(d.name, d.start, d.result, d.uses) for d in names.definitions] == [
        ("%a", 0, 0, [32]), ("%b", 13, 0, [36]), ("%c", 17, 1, [42])
    ]  # fmt: skip
    assert [text[d.owner :][:7] for d in names.definitions] == ["test.op"] * 3
    # A position is between two characters: it is in a name from its start to its end.
    for start in (0, 13, 17, 32, 36, 42):
        assert {names.at(start + n).name for n in range(3)} == {text[start : start + 2]}
    assert names.at(3) is None and names.at(16) is None and names.at(12) is None


ONE_LINE = """\
func.func @f(%x: index, %m: memref<4xi32>) {
  %r = memref.generic_atomic_rmw %m[%x] : memref<4xi32> { ^bb0(%a: i32): %b = arith.addi %a, %a : i32
    memref.atomic_yield %b : i32 }
  %s = scf.for %i = %x to %x step %x iter_args(%c = %r) -> (i32) { %d, %e = arith.mulsi_extended %c, %c : i32
    scf.yield %e : i32 }
  scf.execute_region { cf.br ^one(%x : index) ^one(%y: index): cf.br ^two ^two: gpu.barrier %z = arith.addi %y, %y
    : index scf.yield }
  return
}
"""


def check_other_names(text):
    """The text is the same program with another name for each value, block and alias, and for symbols of one op."""
    definitions = mlir_names(text).definitions
    ops_of = Counter(found.name for found in definitions)
    edits, symbols = [], {}
    for n, found in enumerate(definitions):
        if found.name[0] == "@" and ops_of[found.name] > 1:
            continue
        new = f"{found.name[0]}renamed{n}"
        edits += [(at, found.name, new) for at in (found.start, *found.uses)]
        symbols[found.name] = new
    other = text
    for at, old, new in sorted(edits, reverse=True):
        assert other.startswith(old, at)
        other = other[:at] + new + other[at + len(old) :]
    before = str(xegpu_py.parse(text))
    assert str(xegpu_py.parse(other)) == re.sub(r"@[\w$.-]+", lambda m: symbols.get(m[0], m[0]), before)


@pytest.mark.parametrize("path", some([*VALID, *DUMPED]), ids=lambda p: str(p.relative_to(ROOT)))
def test_a_file_with_other_names_is_the_same(path):
    text = path.read_text()
    if "allow-unregistered" not in text:
        check_other_names(text)


NAMES = """\
#map = affine_map<(d0) -> (d0)>
!t = memref<4xindex, #map>
module attributes {gpu.container_module} {
  func.func @f(%x: index, %m: !t) -> index {
    %r:2 = scf.for %i = %x to %x step %x iter_args(%s = %x, %t = %x) -> (index, index) {
      scf.yield %t, %s : index, index
    }
    %0 = "arith.addi"(%r#1, %r#0) : (index, index) -> index
    %1, %2 = func.call @g(%0) : (index) -> (index, index)
    cf.br ^late(%2, %1 : index, index)
  ^early(%p: index):
    return %p : index
  ^late(%a: index, %b: index):
    %c = arith.constant {a = #map} 1 : index
    %d = arith.cmpi eq, %b, %c : index
    cf.cond_br %d, ^early(%0 : index), ^late(%b, %a : index, index)
  }
  func.func private @g(index) -> (index, index)
  gpu.module @inner {
    gpu.func @kernel() kernel {
      gpu.return
    } loc(#late)
  }
  func.func @host(%c: index) {
    gpu.launch_func @inner::@kernel blocks in (%c, %c, %c) threads in (%c, %c, %c)
    return
  }
}
#late = loc("a.py":1:2)
"""


@pytest.mark.parametrize("text", [NESTED, NAMES], ids=["nested", "names"])
def test_other_names_at_all_places(text):
    check_other_names(text)
    places = occurrences(text, r"[%^#!][\w$.-]*\w")
    names = mlir_names(text)
    assert [m for m in places if names.at(m) is None and text[m] != "#"] == []


def test_several_ops_and_blocks_on_a_line():
    names = mlir_names(ONE_LINE)
    for name in (*(f"%{letter}" for letter in "xmrabsicdeyz"), "^bb0", "^one", "^two"):
        places = occurrences(ONE_LINE, re.escape(name) + r"\b")
        found = names.at(places[0])
        assert found is not None and found.name == name, name
        assert sorted([found.start, *found.uses]) == places, name
    assert ONE_LINE[names.at(ONE_LINE.index("%e")).owner :].startswith("arith.mulsi_extended")
    assert names.at(ONE_LINE.index("%e")).result == 1


VISA = """\
.version 3.8
.kernel "one"
.decl v1 v_type=G type=d num_elts=16 align=GRF
Loop:
    add (M1, 16) v1(0,0)<1> v1(0,0)<1;1,0> 0x1:d
    jmp (M1, 1) Loop
.kernel "two"
.decl v1 v_type=G type=d num_elts=16 align=GRF
    mov (M1, 16) v1(0,0)<1> 0x1:d   // v1
"""


def test_assembly_names_belong_to_their_kernel():
    names = visa_names(VISA)
    vs = occurrences(VISA, r"\bv1\b")
    assert names.at(vs[0]).uses == vs[1:3]
    assert names.at(vs[3]).uses == [vs[4]]
    assert names.at(vs[5]) is None  # In a comment.
    assert names.at(VISA.rindex("Loop")).start == VISA.index("Loop")
    assert names.at(VISA.rindex("Loop")).kind == "label"


NAMED_AS_OTHERS = """\
.version 3.8
.kernel "add"
.decl v v_type=G type=d num_elts=16 align=GRF
    add (M1, 16) v(0,0)<1> v(0,0)<1;1,0> 0x1:d
.kernel "x"
.decl x v_type=G type=d num_elts=16 align=GRF
.decl P v_type=P num_elts=16
x:
    (P) mov (M1, 16) x(0,0)<1> 0x1:d
.kernel "v"
    mov (M1, 16) v(0,0)<1> 0x1:d
"""


def test_kernels_may_have_the_names_of_instructions_and_variables():
    names = visa_names(NAMED_AS_OTHERS)
    found = [(d.name, d.kind, NAMED_AS_OTHERS.count("\n", 0, d.start), len(d.uses)) for d in names.definitions]
    assert found == [("add", "kernel", 1, 0), ("v", "variable", 2, 2), ("x", "kernel", 4, 0), ("x", "variable", 5, 1),
                     ("P", "variable", 6, 1), ("x", "label", 7, 0), ("v", "kernel", 9, 0)]  # fmt: skip
    starts = occurrences(NAMED_AS_OTHERS, r'(?<=kernel ").')
    assert names.regions == [*zip(starts, [*starts[1:], len(NAMED_AS_OTHERS)])]


def test_pieces_of_a_file_have_names_of_their_own():
    piece = "#map = affine_map<(d0) -> (d0)>\n" + NESTED.replace("known", "m = #map, known") + "func.func @top() {\n"
    piece += "  call @top() : () -> ()\n  return\n}\n"
    text = f"{piece}// -----\n{piece}  // -----  more\n{piece}"
    one, all_names = mlir_names(piece), mlir_names(text)
    ats = [0, *(m.end() for m in re.finditer(r".*// -----.*\n", text))]
    assert [(d.name, d.start, d.owner, d.uses) for d in all_names.definitions] == [
        (d.name, d.start + at, d.owner + at, [use + at for use in d.uses]) for at in ats for d in one.definitions
    ]
    assert all_names.regions == [(begin + at, end + at) for at in ats for begin, end in one.regions]
    assert [len(d.uses) for d in one.definitions if d.name in ("#map", "@top")] == [1, 1]


def test_what_forks_print_does_not_reach_the_client(capfd):
    """The server's standard output is its connection."""

    def work():
        for stream in (1, 2):
            os.write(stream, b"printed")
        return os.read(0, 1)

    assert in_child(work, Source("", "test.mlir")) == b""
    assert capfd.readouterr() == ("", "")
