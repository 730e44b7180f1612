"""Lines that differ from others in SSA names and constants only are read and printed as if each were alone."""

import time

import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from xegpu_py import DiagnosticError, parse
from xegpu_py.ir.context import Context
from xegpu_py.ir.diagnostics import Source
from xegpu_py.ir.module import parse_source
from xegpu_py.ir.printer import Printer
from xegpu_py.ir.reader import Reader

FUNC = (
    "func.func @f(%m: memref<64x64xf32>, %d: !xegpu.tensor_desc<8x16xf32>, %i: index, %v: vector<8x16xf32>) {{\n{}}}\n"
)


class Plain(Reader):
    """Reads each line without templates."""

    def _known_lines(self, start, end):
        return start


numbers = st.integers(-9, 200)
indices = st.one_of(numbers.map(str), st.just("%i"))
names = st.sampled_from(["%a", "%b#1", "%7", "%long.name", "%x"])
spaces = st.sampled_from(["", " ", "  // 5% [1, 2] of %x", "\t"])
lines = st.one_of(
    st.builds("{} = xegpu.create_nd_tdesc %m[{}, {}] : memref<64x64xf32> -> !xegpu.tensor_desc<8x16xf32>{}".format,
              names, indices, indices, spaces),
    st.builds("{} = xegpu.update_nd_offset {}, [{}, {}] {{mode = vc}} : !xegpu.tensor_desc<8x16xf32> -> "
              "!xegpu.tensor_desc<8x16xf32>{}".format, names, names, indices, indices, spaces),
    st.builds("{} = xegpu.load_nd {} : !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>{}".format,
              names, names, spaces),
    st.builds("xegpu.store_nd {}, {} {{mode = {}}} : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>{}".format,
              names, names, st.sampled_from(["vc", "simt"]), spaces),
    st.builds("{} = xegpu.dpas {}, {}, {} : vector<8x16xf32>, vector<8x16xf16>, vector<8x16x2xf16> -> "
              "vector<8x16xf32>{}".format, names, names, names, names, spaces),
    st.builds("{} = arith.addf {}, {} : vector<8x16xf32>{}".format, names, names, names, spaces),
    st.builds("{} = builtin.unrealized_conversion_cast {} : index to !xegpu.nbarrier{}".format, names, names, spaces),
    st.builds('"test.op"() {{xegpu.note = [{}, 2], "xegpu.x" = "%a"}} : () -> (){}'.format, numbers, spaces),
)  # fmt: skip


@settings(max_examples=examples(25))
@given(st.lists(lines, min_size=2, max_size=12), st.data())
def test_lines_read_the_same_with_and_without_what_is_known(pool, data):
    chosen = data.draw(st.lists(st.sampled_from(pool), max_size=12))
    text = "\n".join(pool + chosen) + "\n"
    with Context() as context:
        found, expected = (cls(Source(text, "x.mlir"), context.irdl_dialects).rewrite() for cls in (Reader, Plain))
        assert found.text == expected.text
        for line, written in enumerate(found.text.split("\n"), 1):
            for column in range(1, len(written) + 2):
                assert found.source_offset(line, column) == expected.source_offset(line, column)


@settings(max_examples=examples(20))
@given(st.lists(st.tuples(indices, indices, indices, indices), min_size=2, max_size=8))
def test_lines_print_the_same_with_and_without_what_is_known(offsets):
    body = "".join(
        f"%a{n} = xegpu.create_nd_tdesc %m[{a}, {b}] : memref<64x64xf32> -> !xegpu.tensor_desc<8x16xf32>\n"
        f"%b{n} = xegpu.update_nd_offset %a{n}, [{c}, {d}] : !xegpu.tensor_desc<8x16xf32> -> "
        f"!xegpu.tensor_desc<8x16xf32>\n"
        for n, (a, b, c, d) in enumerate(offsets)
    )
    module = parse(FUNC.format(body + "return\n"))
    printed = module.operation.get_asm(assume_verified=True)
    alone = [Printer(module.context.irdl_dialects).rewrite(line) for line in printed.split("\n")]
    assert str(module).split("\n") == alone
    assert str(parse(str(module))) == str(module)


def test_an_error_on_a_line_like_others_is_located():
    load = "  %{} = xegpu.load_nd %{} : !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>\n"
    text = FUNC.format(load.format("a", "d") + load.format("b", "nowhere") + "return\n")
    with pytest.raises(DiagnosticError) as error:
        parse(text, name="x.mlir")
    (found,) = error.value.diagnostics
    assert "undeclared SSA value name" in found.message
    assert (found.position.line, found.position.column) == (3, 22)


def test_a_broken_rule_is_reported_on_each_line():
    store = "  xegpu.store_nd %v, %d {l1_hint = streaming} : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>\n"
    wrong = "  xegpu.store_nd %v, %e : vector<8x16xf32>, !xegpu.tensor_desc<16x16xf32>\n"
    text = FUNC.format(store + wrong + store + wrong + "return\n").replace(
        "%i: index", "%i: index, %e: !xegpu.tensor_desc<16x16xf32>"
    )
    with pytest.raises(DiagnosticError) as error:
        parse(text)
    assert [d.position.line for d in error.value.diagnostics] == [3, 5]


def test_a_name_is_that_of_an_op_or_of_an_attribute_by_what_surrounds_it():
    text = "func.func @f() attributes {\n  xegpu.a,\n  xegpu.b = 1\n} {\n  return\n}\n"
    assert "xegpu.a, xegpu.b = 1" in str(parse(text))


@pytest.mark.parametrize("op", ["fpext", "fptrunc"])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("llvm.{op} %a fastmath<contract> : vector<4x{a}> to vector<4x{b}>", ""),
        ("llvm.{op} %a fastmath<nnan, contract> {{k}} : vector<4x{a}> to vector<4x{b}>", " {k}"),
        ('"llvm.{op}"(%a) <{{fastmathFlags = #llvm.fastmath<nnan, contract>}}> : (vector<4x{a}>) -> vector<4x{b}>', ""),
    ],
)
def test_flags_of_later_releases_of_llvm(op: str, before: str, after: str) -> None:
    """Of every such op; what follows them on a line keeps its column."""
    a, b = ("f16", "f32") if op == "fpext" else ("f32", "f16")
    statement = before.format(op=op, a=a, b=b)
    func = f"llvm.func @f(%a: vector<4x{a}>) {{\n  %x = {statement}\n  %y = {statement}\n  llvm.return\n}}\n"
    printed = str(parse(func))
    assert printed.count(f"llvm.{op} %arg0{after} : vector<4x{a}> to vector<4x{b}>\n") == 2
    assert "fastmath" not in printed
    wrong = func.replace("%y", "%x")
    with pytest.raises(DiagnosticError, match=r":3:3: error: redefinition of SSA value '%x'"):
        parse(wrong, name="x.mlir")
    other = func.replace("llvm.return", "llvm.return fastmath<contract>")
    with pytest.raises(DiagnosticError, match=":4:15: error: .*fastmath"):
        parse(other, name="x.mlir")


def test_locations_are_read_in_linear_time():
    """The aliases of locations, of which TTIR has one for each op, were read up to the end of the text."""

    def seconds(count):
        ops = "\n".join(f"    %x{i} = arith.addi %a, %a : i32 loc(#loc{i})" for i in range(count))
        locations = "\n".join(f'#loc{i} = loc("file.py":{i + 1}:3)' for i in range(count))
        text = f"module {{\n  tt.func public @k(%a: i32) {{\n{ops}\n    tt.return\n  }}\n}}\n{locations}\n"
        start = time.process_time()
        module = parse_source(Source(text, "<ttir>"))
        assert module.operation
        return time.process_time() - start

    assert seconds(2000) < 25 * min(seconds(200) for _ in range(2))


@pytest.mark.parametrize(
    ("name", "attributes", "message"),
    [
        ("offsets", "mode = #xegpu.mode<vc>", "has no attribute 'offsets'; did you mean 'static_offsets'"),
        ("static_offset", "mode = #xegpu.mode<vc>", "has no attribute 'static_offset'; did you mean 'static_offsets'"),
        ("static_offsets", "mode = #xegpu.mode<vc>", ""),
        ("static_offsets", "other = 1 : i32", "has no attribute 'other'; it has static_offsets, mode"),
    ],
)
def test_constants_of_an_index_list_in_generic_form(name, attributes, message):
    kind = "!xegpu.tensor_desc<8x16xf32>"
    text = f"""func.func @f(%d: {kind}) {{
      %e = "xegpu.update_nd_offset"(%d) {{{name} = array<i64: 0, 8>, {attributes}}} : ({kind}) -> {kind}
      return
    }}"""
    if not message:
        assert "xegpu.update_nd_offset %arg0, [0, 8]" in str(parse(text))
        return
    with pytest.raises(DiagnosticError) as found:
        parse(text)
    assert message in str(found.value), str(found.value)
