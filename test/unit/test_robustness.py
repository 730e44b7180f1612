"""Bad input gives a located diagnostic: never another exception, a hang or a crash."""

import faulthandler
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import forked_tools
import numpy as np
import pytest
from effort import examples, some
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import xegpu_py
from xegpu_py.dialects import visa
from xegpu_py.extensions.editor import document
from xegpu_py.ir.context import Context
from xegpu_py.ir.diagnostics import MAX_NESTING, DiagnosticError, Source, decode_utf8
from xegpu_py.ir.module import parse_source
from xegpu_py.ir.passes import run_pipeline
from xegpu_py.target import TARGETS
from xegpu_py.visa import assembly
from xegpu_py.visa.verify import verify

faulthandler.enable()

ROOT = Path(__file__).parents[2]
GEMM = (ROOT / "examples/gemm.mlir").read_text()
FILES = [p for folder in ("examples", "test/dialects", "test/visa") for p in sorted((ROOT / folder).rglob("*.mlir"))]
TOKEN = re.compile(r'\s+|%[\w$.#-]+|[!#@]?[\w.$]+|->|"[^"\n]*"|.', re.DOTALL)


@cache
def corpus() -> list[str]:
    pieces = [piece for f in FILES for piece in f.read_text().split("// -----\n")]
    pieces = [re.sub(r"^\s*// (RUN|CHECK).*\n", "", p, flags=re.MULTILINE) for p in pieces if "expected-error" not in p]
    generic = [parse(p).text(generic=True) for p in (*pieces[:4], *[p for p in pieces if "visa." in p][:4])]
    return [p for p in (*pieces, *generic) if p.strip()]


CONTEXT = Context()
CONTEXT.allow_unregistered_dialects = True


def parse(text: str):
    return parse_source(Source(text, "m.mlir"), context=CONTEXT)


GARBAGE = [
    *'{}<>()[]",:=?x%#!\\',
    *["99999999999999999999", "-1", "0", "01", "0x", "//", "é", "\u2028", "->", "::", "none", "unit", "4x", "loc("],
    *["array<i64: 1>", "array<i32: 1, 1, 1, 1>", "dense<0>", "affine_map<(d0) -> (d0)>", "operandSegmentSizes"],
    *["i99999999", "vector<[4]xf32>", "memref<*xf32>", "!xegpu.", "#xegpu.", "xegpu.", "\x01", "#xegpu.mode<vc>"],
    *["visa.", "visa.mov", "!visa.var", "(M1, 16)", "<1;1,0>", "0x0:f", "null", "%[0]", '"%(0,0)<1>"', "visa.target"],
    *["!xetile.", "#xetile.", "xetile.", "#xetile.tile_attr<>", "!xetile.tile<8x16xf16>", "sg_layout = [0]"],
    *["!xegpu.tensor_desc<8x16xf16>", "#xegpu.scattered", "^bb0", "@f", "unrealized", "vector<0xf32>", "tensor<?xf32>"],
]


@cache
def tokens_and_words(pieces: Callable[[], list[str]]) -> tuple[list[list[str]], list[str]]:
    found = [TOKEN.findall(piece) for piece in pieces()]
    return found, sorted({t for tokens in found for t in tokens if t.strip()} | set(GARBAGE))


@st.composite
def mutants(draw: st.DrawFn, pieces: Callable[[], list[str]]) -> str:
    whole, words = tokens_and_words(pieces)
    tokens = [*draw(st.sampled_from(whole))]
    for _ in range(draw(st.integers(1, 5))):
        if not tokens:
            break
        at = draw(st.integers(0, len(tokens) - 1))
        kind = draw(st.sampled_from(["delete", "repeat", "swap", "replace", "insert", "cut"]))
        if kind == "delete":
            del tokens[at]
        elif kind == "repeat":
            tokens.insert(at, tokens[at])
        elif kind == "swap":
            other = draw(st.integers(0, len(tokens) - 1))
            tokens[at], tokens[other] = tokens[other], tokens[at]
        elif kind == "replace":
            tokens[at] = draw(st.sampled_from(words))
        elif kind == "insert":
            tokens.insert(at, draw(st.sampled_from(words)))
        else:
            tokens = tokens[:at]
    return "".join(tokens)


def check(text: str) -> bool:
    """Read a text; whether it is valid. What is valid must print, and read and print again the same."""
    start = time.process_time()
    try:
        printed = parse(text).text()
    except DiagnosticError as e:
        assert e.diagnostics
        # A location given in the text may name another file.
        assert all(d.position.file and d.position.line for d in e.diagnostics), e.diagnostics
        assert "error: " in str(e)
        return False
    else:
        assert parse(printed).text() == printed
        return True
    finally:
        assert time.process_time() - start < 10


def test_corpus_is_valid() -> None:
    assert len(corpus()) > 5
    for text in corpus():
        assert check(text), text


@settings(max_examples=examples(2500), suppress_health_check=list(HealthCheck))
@given(mutants(corpus))
def test_mutants(text: str) -> None:
    check(text)


def check_assembly(text: str) -> bool:
    """Read assembly; whether it is valid. What is valid is the same kernel in the visa dialect."""
    try:
        programs = assembly.read(Source(text, "k.visaasm"))
    except DiagnosticError as e:
        assert all(d.position.file == "k.visaasm" and d.position.line for d in e.diagnostics), e.diagnostics
        return False
    issues = [issue for program in programs for issue in verify(program, TARGETS["pvcxt"])]
    assert all(issue.diagnostic().position.line for issue in issues), issues
    written = assembly.write(programs)
    assert assembly.write(assembly.read(Source(written, "k.visaasm"))) == written
    if not issues:
        module = parse(visa.module_of(programs).text())
        assert [visa.program_of(func) for func in visa.kernels(module.operation)] == programs
    return not issues


@cache
def assembly_corpus() -> list[str]:
    return [
        assembly.write([visa.program_of(func)])
        for piece in corpus()
        if "visa." in piece and '"visa.' not in piece
        for module in [parse(piece)]
        for func in visa.kernels(module.operation)
    ]


def test_assembly_corpus_is_valid() -> None:
    assert len(assembly_corpus()) > 10
    for text in assembly_corpus():
        assert check_assembly(text), text


@settings(max_examples=examples(2500), suppress_health_check=list(HealthCheck))
@given(mutants(assembly_corpus))
def test_assembly_mutants(text: str) -> None:
    check_assembly(text)


def test_assembly_truncated_at_every_byte() -> None:
    text = assembly_corpus()[0]
    for n in range(len(text)):
        check_assembly(text[:n])


def test_truncated_at_every_byte() -> None:
    start = GEMM.index("gpu.module")
    end = GEMM.rindex("}")
    for n in some(range(start + 1, end), 1 / 3):
        assert not check(GEMM[:n]), n


@pytest.mark.parametrize(
    ("before", "opening", "closing"),
    [
        ("func.func @f(%c: i1) {", "scf.if %c {\n", "}"),
        ("func.func private @f() attributes {x = ", "[", "]"),
        ("func.func private @f(", "tuple<", ">"),
        ("func.func private @f(", "(", ")"),
        ("", "module {", "}"),
        ("module {} loc(", "callsite(", ")"),
        ("func.func @f(%t: !xegpu.tensor_desc<8x16xf16", ", #xegpu.tdesc_attr<map = <", ">>"),
    ],
)
@pytest.mark.parametrize("depth", [MAX_NESTING + 1, 100_000])
@pytest.mark.parametrize("close", [True, False])
def test_deep_nesting(before: str, opening: str, closing: str, depth: int, close: bool) -> None:
    text = before + opening * depth + closing * depth * close
    with pytest.raises(DiagnosticError, match=f"m.mlir:.*error: brackets are nested deeper than {MAX_NESTING}"):
        parse(text)


def test_nesting_within_the_limit_is_read() -> None:
    depth = MAX_NESTING - 2
    assert check("func.func @f(%c: i1) {" + "scf.if %c {\n" * depth + "}" * depth + " return }")


def test_brackets_in_comments_and_strings_do_not_nest() -> None:
    many = "([{<" * MAX_NESTING
    assert check(f'// {many}\nfunc.func private @f() attributes {{x = "{many}"}} // {many}\n')


def test_arrows_do_not_hide_nesting() -> None:
    with pytest.raises(DiagnosticError, match="nested deeper"):
        parse("func.func private @f() -> ()\n" * 1000 + "module {" * (MAX_NESTING + 1))


OP = "xegpu.load_nd %t {mode = vc} : !xegpu.tensor_desc<8x16xf16> -> vector<8x16xf16> "


@pytest.mark.parametrize(
    "text",
    [
        "func.func @f(%t: !xegpu.tensor_desc<8x16xf16>) {" + OP * 7_000 + "return }",
        "func.func @f(%t: !xegpu.tensor_desc<8x16xf16>) {"
        + OP[:-1].replace("vc}", f'vc, a.b = "{"x" * 10**6}"}}')
        + " return }",
        f"func.func private @f() // {'x' * 10**6}",
    ],
    ids=["ops", "attribute", "comment"],
)
def test_long_lines(text: str) -> None:
    start = time.process_time()
    assert check(text)
    assert time.process_time() - start < 8


def test_long_lines_are_shown_in_part() -> None:
    with pytest.raises(DiagnosticError) as caught:
        parse("func.func @f() {" + " " * 10**6 + "xegpu.nothing }")
    assert len(str(caught.value)) < 1000
    assert "xegpu.nothing" in str(caught.value)


def test_long_chains_of_aliases() -> None:
    lines = [f".decl X{i} v_type=G type=d num_elts=1 alias=<X{i - 1},0>" for i in range(1, 3000)]
    text = '.kernel "k"\n.decl X0 v_type=G type=d num_elts=1\n' + "\n".join(lines)
    with pytest.raises(
        DiagnosticError, match="k.visaasm:67:45: error: 'X64' exceeds the maximum length of a chain of aliases, 64"
    ):
        assembly.read(Source(text, "k.visaasm"))
    lines = [f'%{i} = visa.decl "X{i}", d x 1, alias = %{i - 1}' for i in range(1, 3000)]
    text = 'gpu.module @m {\ngpu.func @k() kernel {\n%0 = visa.decl "X0", d x 1\n' + "\n".join(lines)
    with pytest.raises(DiagnosticError, match="m.mlir:68:7: error: 'visa.decl' op exceeds the maximum length"):
        parse(text + "\nvisa.ret (M1, 1)\ngpu.return }}")


def test_numbers_of_many_digits() -> None:
    digits = "1" * 5000
    with pytest.raises(DiagnosticError, match="m.mlir:1:37: error: number must not have more than 1000 digits"):
        parse(f"func.func @f() attributes {{test.x = {digits}}} {{ return }}")
    with pytest.raises(DiagnosticError, match="k.visaasm:2:10: error: number must not have more than 1000 digits"):
        assembly.read(Source(f'.kernel "k"\n    add ({digits})\n', "k.visaasm"))
    assert check(f'func.func private @f() attributes {{test.x = "{digits}"}} // {digits}\n')


@pytest.mark.parametrize("text", ["array<index: 1>", "array<index>", "array < // x\n index : 1>", "array<!t: 1>"])
def test_arrays_of_indices(text: str) -> None:
    """MLIR's reader ends the process on them."""
    with pytest.raises(DiagnosticError, match="m.mlir:2:14: error: elements of 'array' must be"):
        parse(f'!t = index\n"t.a"() {{x = {text}}} : () -> ()')
    assert check('"t.a"() {x = array<i64: 1>, y = "array<index: 1>"} : () -> () // array<index: 1>')


@pytest.mark.parametrize(
    "text",
    [
        '"t.a"() {transform.x} : () -> ()',
        '"t.a"() {x = !transform.any_op} : () -> ()',
        '"t.a"() {x = #transform.x} : () -> ()',
        '"transform.yield"() : () -> ()',
        "transform.yield",
    ],
)
def test_dialect_transform(text: str) -> None:
    """It loads upstream's C++ dialect xegpu, whose name is taken: MLIR ends the process."""
    with pytest.raises(DiagnosticError, match="m.mlir:2:.*: error: dialect 'transform' cannot be read beside 'xegpu'"):
        parse(f"// transform.yield\n{text}")
    assert check('"t.a"() {a.transform.x, x = "transform.y"} : () -> () // transform.yield "transform.yield"()')
    assert check('func.func private @"transform.f"() func.func @g() { func.call @"transform.f"() : () -> () return }')


@pytest.mark.parametrize(
    ("first", "twice"),
    [("#a0 = [1 : i32]", "#a{} = [#a{}, #a{}]"), ("!a0 = tuple<i1, i1>", "!a{} = tuple<!a{},\n !a{}>")],
)
def test_aliases_that_double(first: str, twice: str) -> None:
    lines = [first, *(twice.format(i + 1, i, i) for i in range(30))]
    start = time.process_time()
    with pytest.raises(DiagnosticError, match=r"m.mlir:\d+:1: error: alias '.a\d+' has more than 1000000 characters"):
        parse("\n".join(lines))
    assert check("\n".join(lines[:8]))
    assert time.process_time() - start < 10


KERNEL = "gpu.module @m {{ gpu.func @k(%a: memref<?xi8>, %n: index, %o: memref<8xindex>) kernel {{\n{}\n}} }}"
STORE = "%c0 = arith.constant 0 : index memref.store %r, %o[%c0] : memref<8xindex> gpu.return"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            f"%d = arith.constant -1 : index %r = memref.dim %a, %d : memref<?xi8> {STORE}",
            "dimension -1 is out of range",
        ),
        (f"%d = arith.constant 4 : index %r = memref.dim %a, %d : memref<?xi8> {STORE}", "dimension 4 is out of range"),
        (
            "%d = arith.constant 5 : index %e = arith.addi %d, %d : index "
            f"%r = memref.dim %a, %e : memref<?xi8> {STORE}",
            "dimension 10 is out of range for a memref of rank 1",
        ),
        (f"%r = affine.apply affine_map<(d0) -> (d0 floordiv 0)>(%n) {STORE}", "division by non-positive value"),
        ("cf.br ^a\n^a:\ncf.br ^a", "never ends: no block ends with 'gpu.return'"),
    ],
)
def test_ops_on_which_passes_of_upstream_end_the_process(body: str, message: str) -> None:
    with pytest.raises(DiagnosticError, match=f"m.mlir:[12]:.*error: .*{message}"):
        run_pipeline(parse(KERNEL.format(body)), "builtin.module(lower-affine,xetile-to-visa-pipeline)")


def test_chains_of_ops_that_are_longer_than_the_stack() -> None:
    """Stacks of matrices, which a pass splits, behind more elementwise ops than Python has calls."""
    count, tile = 2000, "!xetile.tile<4x64xf32, #xetile.tile_attr<scattered = true>>"
    kind, half = "vector<4x64xf32>", "vector<2x64xf32>"
    chain = "\n".join(f"%y{n + 1} = arith.addf %y{n}, %x : {kind}" for n in range(count))
    parts = "\n".join(
        f"%p{n} = vector.extract_strided_slice %y{count} {{offsets = [{2 * n}, 0], sizes = [2, 64], strides = [1, 1]}}"
        f" : {kind} to {half}"
        for n in range(2)
    )
    module = parse(
        f"""gpu.module @m {{ gpu.func @k(%a: memref<?xf32>, %i: vector<4x64xindex>) kernel {{
          %t = xetile.init_tile %a, %i : memref<?xf32>, vector<4x64xindex> -> {tile}
          %y0 = xetile.load %t : {tile} -> {kind}
          %x = arith.constant dense<1.0> : {kind}
          {chain}
          {parts}
          %r = vector.shuffle %p0, %p1 [0, 1, 2, 3] : {half}, {half}
          xetile.store %r, %t : {kind}, {tile}
          gpu.return }} }}"""
    )
    run_pipeline(module, "builtin.module(gpu.module(gpu.func(xetile-split-stacks,xegpu-dce)))")
    text = str(module)
    assert text.count(": vector<2x64xf32>") >= 2 * count
    assert text.count("xetile.load") == text.count("xetile.store") == 2


@pytest.mark.parametrize("offset", [2**63 - 1, 2**62])
def test_offsets_that_exceed_64_bits(offset: int) -> None:
    tile = "!xetile.tile<8x16xi8>"
    text = f"""gpu.module @m {{ gpu.func @k(%a: memref<8x16xi8>, %b: memref<8x16xi8>) kernel {{
      %s = xetile.init_tile %a[0, 0] : memref<8x16xi8> -> {tile}
      %x = xetile.load_tile %s : {tile} -> vector<8x16xi8>
      %d = xetile.init_tile %b[0, {offset}] : memref<8x16xi8> -> {tile}
      xetile.store_tile %x, %d : vector<8x16xi8>, {tile}
      gpu.return }} }}"""
    a, b = np.ones((8, 16), np.int8), np.zeros((8, 16), np.int8)
    xegpu_py.compile(text, engine="both", cache="off")(a, b)
    assert not b.any()


@pytest.mark.parametrize("text", ["", "\n\n", "// only a comment", "module {\r\n}\r\n"])
def test_odd_but_valid(text: str) -> None:
    source = decode_utf8(text.encode(), "m.mlir")
    parse_source(source)


@pytest.mark.parametrize(
    ("data", "position", "message"),
    [
        (b"module {\n  \xff\n}", "2:3", "byte 0xff is not valid UTF-8"),
        ("// é\n".encode() + b"\xc3(", "2:1", "byte 0xc3 is not valid UTF-8"),
        (b"module {\n\0}", "2:1", "unexpected NUL character"),
        (b"ML\xefR\x01", "1:3", "byte 0xef is not valid UTF-8"),
    ],
)
def test_bytes_that_are_no_text(data: bytes, position: str, message: str) -> None:
    with pytest.raises(DiagnosticError, match=f"m.mlir:{position}: error: {message}"):
        decode_utf8(data, "m.mlir")


@pytest.mark.parametrize("path", [".", "missing.mlir", "no/such/folder/x.mlir"])
def test_files_that_cannot_be_read(path: str, tmp_path: Path) -> None:
    tool = forked_tools.folder() / "xegpu-opt"
    done = subprocess.run([tool, path], capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith(f"xegpu-opt: error: cannot open input file '{path}'")
    assert done.stderr.count("\n") == 1


ABORT = """
import os, sys
from xegpu_py.ir import diagnostics
from xegpu_py.tools import driver

def run(argv):
    diagnostics.enter("pass 'x' of MLIR", diagnostics.Position("m.mlir", 3, 5))
    if argv:
        os.kill(os.getpid(), int(argv[0]))
    return 7

driver.main(run)
"""


@pytest.mark.parametrize(
    ("number", "status", "error"),
    [
        (signal.SIGABRT, 1, "m.mlir:3:5: error: pass 'x' of MLIR ended the process (SIGABRT)\n"),
        (signal.SIGSEGV, 1, "m.mlir:3:5: error: pass 'x' of MLIR ended the process (SIGSEGV)\n"),
        (signal.SIGTERM, -signal.SIGTERM, ""),
        (None, 7, ""),
    ],
)
def test_tools_whose_process_is_ended(number: int | None, status: int, error: str) -> None:
    words = [] if number is None else [str(int(number))]
    done = subprocess.run([sys.executable, "-c", ABORT, *words], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (status, "", error)


def test_signals_to_tools_reach_their_child() -> None:
    code = """import time
from xegpu_py.tools import driver
driver.main(lambda _: print("up", flush=True) or time.sleep(60))
"""
    for number, status in ((signal.SIGTERM, -signal.SIGTERM), (signal.SIGINT, 130)):
        with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as running:
            assert running.stdout and running.stdout.readline() == "up\n"
            running.send_signal(number)
            assert running.wait(20) == status


INTERRUPTED_IMPORT = """
import os, signal, sys
class Finder:
    @staticmethod
    def find_spec(name, *_):
        if name == sys.argv[1]:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder)
sys.argv[0] = "/usr/bin/xegpu-opt"
from xegpu_py.tools.xegpu_opt import main
sys.exit("the module was not imported")
"""


@pytest.mark.parametrize("module", ["xegpu_py.ir.passes", "numpy", "mlir._mlir_libs._mlir", "xegpu_py.tools.driver"])
def test_interrupts_in_imports_end_tools_without_text(module: str) -> None:
    done = subprocess.run([sys.executable, "-c", INTERRUPTED_IMPORT, module], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.parametrize("words", [("-m", "xegpu_py.tools.xegpu_opt"), (Path(sys.executable).with_name("xegpu-opt"),)])
def test_crashes_in_imports_are_reported(words: tuple[str | Path, ...], tmp_path: Path) -> None:
    (tmp_path / "mlir.py").write_text("import os; os.abort()")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "error: the process was ended (SIGABRT)\n")


def test_processes_that_work_for_a_tool_have_no_child_that_works_for_them() -> None:
    """Python starts them with the tool's name as first argument, but not on their command line."""
    code = "import os, sys; sys.argv[0] = '/usr/bin/xegpu-tune'; me = os.getpid()"
    code += "; import xegpu_py.tools; print(os.getpid() == me)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")


def test_a_crash_of_an_interrupted_tool_is_an_interrupt() -> None:
    code = """import os, signal
from xegpu_py.tools import driver
driver.main(lambda _: os.kill(os.getppid(), signal.SIGINT) or os.abort())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_an_import_of_the_package_leaves_interrupts_to_its_user() -> None:
    code = "import signal, xegpu_py; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "True\n"


def test_documents_on_which_mlir_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """The language server shows an error, and lives on."""
    monkeypatch.setattr(document, "_survives", lambda _: os.abort())
    made = document.Document.of(GEMM, "m.mlir")
    assert [d.message for d in made.diagnostics] == ["MLIR cannot process this text, and ends the process (SIGABRT)"]
    monkeypatch.undo()
    monkeypatch.setattr(document, "run_pipeline", lambda *_: os.abort())
    with pytest.raises(DiagnosticError, match="ends the process \\(SIGABRT\\)"):
        document.Document.of(GEMM, "m.mlir").lowered(0)
