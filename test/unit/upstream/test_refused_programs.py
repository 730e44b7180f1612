"""Programs of upstream's that are valid, but that no kernel of ours can do: the op and the sentence."""

import re

import pytest

from xegpu_py.ir.diagnostics import DiagnosticError
from xegpu_py.ir.module import parse
from xegpu_py.upstream import export_upstream, import_upstream

T = "!xegpu.tensor_desc"
CUBE, SCATTERED = f"{T}<1x8x16xf32>", f"{T}<16xf32, #xegpu.scatter_tdesc_attr<>>"
DESC = "!llvm.struct<(ptr<1>, ptr<1>, i64, array<1 x i64>, array<1 x i64>)>"
PAIR = "!llvm.struct<(i32, i32)>"
LANES = "#xegpu.layout<sg_layout = [2, 1], sg_data = [8, 16]>"


def gpu(body, arguments="", more=""):
    return f"gpu.module @m {{ {more} gpu.func @k({arguments}) kernel {{ {body} gpu.return }} }}"


def llvm(body, arguments="", more=""):
    return f"gpu.module @m {{ {more} llvm.func spir_kernelcc @k({arguments}) {{ {body} llvm.return }} }}"


def either(kind):
    """A value of two paths, which both have the same, so that its definition is not seen."""
    return f"%d = scf.if %p -> ({kind}) {{ scf.yield %b : {kind} }} else {{ scf.yield %b : {kind} }}"


def element(position):
    return (
        "%v = llvm.mlir.zero : vector<4xi32> %w = llvm.insertelement %x, %v[%x : i32] : vector<4xi32> "
        f"%n = llvm.mlir.constant({position} : i32) : i32 %e = llvm.extractelement %w[%n : i32] : vector<4xi32> "
        "llvm.store %e, %p : i32, !llvm.ptr<1>"
    ), "%x: i32, %p: !llvm.ptr<1>"


def called(name, *types, body=""):
    """A call of a function with values %0, %1 and so on."""
    kinds = ", ".join(types)
    return f"{body} llvm.call @{name}({', '.join(f'%{i}' for i in range(len(types)))}) : ({kinds}) -> ()"


def moved(what, data):
    """A call of a function that moves a block between memory and private memory."""
    name = f"intel_sub_group_2d_block_{what}_32b_8r16x1c"
    kinds = ("!llvm.ptr<1>", "i32", "i32", "i32", "vector<2xi32>", "!llvm.ptr")
    body = (
        "%1 = llvm.mlir.constant(64 : i32) : i32 %2 = llvm.mlir.constant(8 : i32) : i32 "
        f"%3 = llvm.mlir.constant(64 : i32) : i32 %4 = llvm.mlir.zero : vector<2xi32> %5 = {data}"
    )
    return called(name, *kinds, body=body), "%0: !llvm.ptr<1>, %q: !llvm.ptr", f"llvm.func @{name}({', '.join(kinds)})"


def fenced(scope, flags):
    name = "_Z22atomic_work_item_fencejii"
    body = f"%1 = llvm.mlir.constant(4 : i32) : i32 %2 = llvm.mlir.constant({scope} : i32) : i32 {flags}"
    return called(name, "i32", "i32", "i32", body=body), "%f: i32", f"llvm.func @{name}(i32, i32, i32)"


def dimension(number):
    name = "_Z13get_global_idj"
    return f"{number} %i = llvm.call @{name}(%0) : (i32) -> i64", "%n: i32", f"llvm.func @{name}(i32) -> i64"


def block(what, bits, rows, columns, count, value):
    """An access of a block by XeVM, for which a lane has a value."""
    numbers = "%p, %n, %n, %n, %n, %n"
    named = {"elem_size_in_bits": bits, "tile_width": columns, "tile_height": rows, "v_blocks": count}
    sizes = ", ".join(f"{name} = {n} : i32" for name, n in named.items())
    kinds = "!llvm.ptr<1>, i32, i32, i32, i32, i32"
    arguments = f"%p: !llvm.ptr<1>, %n: i32, %v: {value}"
    if what == "blockstore2d":
        sizes = sizes.partition(", v_blocks")[0]
        return f"xevm.{what} {numbers}, %v <{{{sizes}}}> : ({kinds}, {value})", arguments
    more = "transpose = false, pack_register = false"
    return f"%r = xevm.{what} {numbers} <{{{sizes}, {more}}}> : ({kinds}) -> {value}", arguments


def multiplied(a, b, d, columns=16, scales=(), depth=16, kind="f16"):
    """A product of XeVM, of lanes' parts of matrices."""
    values = {"a": a, "b": b, **{f"s{i}": scale for i, scale in enumerate(scales)}, "c": d}
    types = f"<d = f32, a = {kind}, b = {kind}, c = f32>"
    return (
        f"%r = xevm.mma{'_mx' if scales else ''} {', '.join(f'%{v}' for v in values)} "
        f"{{shape = <m = 8, n = {columns}, k = {depth}>, types = {types}}} : ({', '.join(values.values())}) -> {d}",
        ", ".join(f"%{v}: {t}" for v, t in values.items()),
    )


PART, PAIRS, SUMS = "vector<8xi16>", "vector<8xi32>", "vector<8xf32>"

OF_LLVM = [
    (('%a = llvm.mlir.constant("text") : !llvm.array<4 x i8>',), "its value is \"text\""),
    (("%a = llvm.mlir.constant(1.0 : f32) : i32",), "its value is 1.0"),
    (element(4), "its position is 4, in a vector of 4"),
    (element(-1), "its position is -1, in a vector of 4"),
    ((f"%e = llvm.extractvalue %x[0] : {PAIR}", f"%x: {PAIR}"), f"its {PAIR} is not made where it can be seen"),
    ((f"%x = llvm.load %p : !llvm.ptr<1> -> {PAIR}", "%p: !llvm.ptr<1>"), f"it accesses a value of {PAIR}"),
    ((f"llvm.store %x, %p : {PAIR}, !llvm.ptr<1>", f"%p: !llvm.ptr<1>, %x: {PAIR}"), f"it accesses a value of {PAIR}"),
    (("%x = llvm.load %p : !llvm.ptr<1> -> i128", "%p: !llvm.ptr<1>"), "it accesses elements of 128 bits"),
    (("%x = llvm.load %p : !llvm.ptr<1> -> vector<2xi24>", "%p: !llvm.ptr<1>"), "it accesses elements of 24 bits"),
    (("llvm.call %f() : !llvm.ptr, () -> ()", "%f: !llvm.ptr"), "it calls a function through a pointer"),
    (dimension("%0 = llvm.mlir.constant(3 : i32) : i32"), "its dimension is not 0, 1 or 2"),
    (dimension("%0 = llvm.mlir.constant(-1 : i32) : i32"), "its dimension is not 0, 1 or 2"),
    (dimension("%0 = llvm.freeze %n : i32"), "its dimension is not 0, 1 or 2"),
    (("%a = llvm.alloca %n x f32 : (i32) -> !llvm.ptr<3>", "%n: i32"), "its size is not known"),
    (("%a = llvm.mlir.addressof @g : !llvm.ptr<1>", "",
      "llvm.mlir.global internal @g() {addr_space = 1 : i32} : !llvm.array<4 x f32>"),
     "@g is not a global in shared local memory"),
    (moved("read", "llvm.freeze %q : !llvm.ptr"), "its source or destination is not in private memory"),
    (moved("write", "llvm.alloca %2 x i32 : (i32) -> !llvm.ptr"), "the value that it stores was never initialized"),
    (fenced(3, "%0 = llvm.mlir.constant(1 : i32) : i32"), "its memories or its scope are not known"),
    (fenced(1, "%0 = llvm.freeze %f : i32"), "its memories or its scope are not known"),
    (("%n = llvm.mlir.constant(1 : i32) : i32 %p = llvm.alloca %n x i32 : (i32) -> !llvm.ptr "
      "llvm.store %x, %p : i32, !llvm.ptr %y = llvm.load %p : !llvm.ptr -> i64", "%x: i32"),
     "it loads i64 from memory that holds i32"),
    (("%r = llvm.atomicrmw nand %p, %x monotonic : !llvm.ptr<1>, i32", "%p: !llvm.ptr<1>, %x: i32"),
     "this update of an element of memory is not supported"),
    (("%r = llvm.atomicrmw fadd %p, %x monotonic : !llvm.ptr<1>, vector<2xf16>",
      "%p: !llvm.ptr<1>, %x: vector<2xf16>"), "this update of an element of memory is not supported"),
    (multiplied(PART, PAIRS, SUMS, columns=8), "it makes 8 columns; the lanes of a subgroup, 16, have one each"),
    (multiplied("vector<4xi16>", PAIRS, SUMS), "its factors are not of 8x16 and 16x16 elements of 16 bits"),
    (multiplied(PART, "vector<4xi32>", SUMS), "its factors are not of 8x16 and 16x16 elements of 16 bits"),
    (multiplied(PART, PAIRS, SUMS, scales=("vector<2xi8>", "i8"), depth=32, kind="bf8"),
     "scale_a must have 1 numbers of 8 bits, one for 32 elements of K"),
    (multiplied(PART, PAIRS, SUMS, scales=("i8", "vector<2xi8>"), depth=32, kind="bf8"),
     "scale_b must have 1 numbers of 8 bits, one for 32 elements of K"),
    (block("blockload2d", 32, 8, 16, 1, "vector<4xi32>"),
     "a lane has 256 bits of 1 blocks of 8x16 elements of 32 bits, not vector<4xi32>"),
    (block("blockload2d", 16, 8, 16, 2, "vector<8xi16>"),
     "a lane has 256 bits of 2 blocks of 8x16 elements of 16 bits, not vector<8xi16>"),
    (block("blockstore2d", 32, 8, 16, 1, "vector<4xi32>"),
     "a lane has 256 bits of a block of 8x16 elements of 32 bits, not vector<4xi32>"),
]  # fmt: skip


@pytest.mark.parametrize("program, message", OF_LLVM)
def test_kernels_in_llvm(program, message):
    with pytest.raises(DiagnosticError, match="cannot be imported: " + re.escape(message)):
        import_upstream(llvm(*program))


@pytest.mark.parametrize(
    "program",
    [element(3), element(0), dimension("%0 = llvm.mlir.constant(2 : i32) : i32"),
     dimension("%0 = llvm.mlir.constant(0 : i32) : i32"), fenced(4, "%0 = llvm.mlir.constant(1 : i32) : i32"),
     fenced(0, "%0 = llvm.mlir.constant(2 : i32) : i32")],
)  # fmt: skip
def test_kernels_in_llvm_at_the_ends_of_ranges(program):
    import_upstream(llvm(*program))


def loaded(desc, value):
    return (f"%d = xegpu.create_nd_tdesc %a : memref<64x64xf32> -> {T}<{desc}> "
            f"%v = xegpu.load_nd %d[0, 0] : {T}<{desc}> -> vector<{value}>"), "%a: memref<64x64xf32>"  # fmt: skip


def stored(desc, value):
    return (f"%d = xegpu.create_nd_tdesc %a : memref<64x64xf32> -> {T}<{desc}> "
            f"%v = arith.constant dense<1.0> : vector<{value}> "
            f"xegpu.store_nd %v, %d[0, 0] : vector<{value}>, {T}<{desc}>"), "%a: memref<64x64xf32>"  # fmt: skip


def scaled(a, b, d, scale):
    """A block-scaled product of constants, with a scale of this type for the first factor."""
    factors = [f"vector<{shape}xf8E5M2>" for shape in (a, b)]
    body = " ".join(f"%{n} = arith.constant dense<1.0> : {kind}" for n, kind in zip("ab", factors))
    return (f"{body} %r = xegpu.dpas_mx %a, %b scale_a = %s : ({', '.join(factors)}, {scale}) -> vector<{d}xf32>",
            f"%s: {scale}")  # fmt: skip


AT_A_LEVEL = [
    ("workgroup", (f"%d = xegpu.create_nd_tdesc %a : memref<64x64xf32> -> {T}<16x16xf32, {LANES}> "
                   f"%v = xegpu.load_nd %d[0, 0] : {T}<16x16xf32, {LANES}> -> vector<16x16xf32> "
                   "scf.if %p { } else { } {sg_id_range = #xegpu.range<[0, 1]>}", "%a: memref<64x64xf32>, %p: i1"),
     "some subgroups of its range execute it and others do not"),
    ("workgroup", (f"%d = xegpu.create_nd_tdesc %a : memref<64x64xf16> -> {T}<16x16xf16> "
                   f"%v = xegpu.load_nd %d[0, 0] <{{packed}}> : {T}<16x16xf16> -> vector<8x16x2xf16>",
                   "%a: memref<64x64xf16>"), "it packs elements, which has no meaning for a workgroup's vector"),
    ("workgroup", (f"%d = xegpu.create_nd_tdesc %a : memref<4x64x64xf32> -> {T}<2x16x16xf32> %v = xegpu.load_nd "
                   f"%d[0, 0, 0] <{{transpose = array<i64: 0, 2, 1>}}> : {T}<2x16x16xf32> -> vector<2x16x16xf32>",
                   "%a: memref<4x64x64xf32>"), "it transposes a block of more than two dimensions"),
    *(("workgroup", (f"%o = vector.step : vector<16xindex> %m = arith.constant dense<true> : vector<16xi1> "
                     f"%d = xegpu.create_tdesc %a, %o : memref<64xf32>, vector<16xindex> -> {SCATTERED} "
                     f"%x = arith.constant dense<1.0> : vector<16xf32> {access}", "%a: memref<64xf32>"),
       "at workgroup level it takes offsets, and no scattered descriptor")
      for access in (f"%v = xegpu.load %d, %m : {SCATTERED}, vector<16xi1> -> vector<16xf32>",
                     f"xegpu.store %x, %d, %m : vector<16xf32>, {SCATTERED}, vector<16xi1>",
                     f"%v = xegpu.atomic_rmw addf %d, %m, %x : {SCATTERED}, vector<16xi1>, vector<16xf32> "
                     "-> vector<16xf32>")),
    ("lane", (f"%d = xegpu.create_nd_tdesc %a : memref<64x64xf32> -> {T}<8x8xf32> "
              f"%v = xegpu.load_nd %d[0, 0] : {T}<8x8xf32> -> vector<4xf32>", "%a: memref<64x64xf32>"),
     "16 lanes cannot divide a block of 8x8 x f32"),
    ("lane", ("%v = xegpu.atomic_rmw addf %a[%o], %m, %x : memref<64xf32>, vector<1xindex>, vector<1xi1>, vector<2xf32>"
              " -> vector<2xf32>",
              "%a: memref<64xf32>, %o: vector<1xindex>, %m: vector<1xi1>, %x: vector<2xf32>"),
     "a lane updates one element, not 2"),
    ("lane", (f"%v = xegpu.load %d, %m : {T}<1xf32, #xegpu.scatter_tdesc_attr<>>, vector<1xi1> -> vector<1xf32>",
              f"%d: {T}<1xf32, #xegpu.scatter_tdesc_attr<>>, %m: vector<1xi1>"),
     "its descriptor is not made where it can be seen"),
    ("lane", (f"%d = xegpu.create_nd_tdesc %a[1, 0, 0] : memref<4x64x64xf32> -> {CUBE} "
              f"%v = xegpu.load_nd %d[0, 0, 0] : {CUBE} -> vector<8xf32>", "%a: memref<4x64x64xf32>"),
     "it has offsets for outer dimensions, and so has the descriptor"),
    ("lane", (f"%b = xegpu.create_nd_tdesc %a : memref<4x64x64xf32> -> {CUBE} {either(CUBE)} "
              f"%v = xegpu.load_nd %d[1, 0, 0] : {CUBE} -> vector<8xf32>", "%a: memref<4x64x64xf32>, %p: i1"),
     "it has 3 offsets for a descriptor that is not made where it can be seen"),
    ("subgroup", (f"%b = xegpu.create_mem_desc %a : memref<2048xi8, 3> -> !xegpu.mem_desc<16x64xf16> "
                  f"{either('!xegpu.mem_desc<16x64xf16>')} "
                  "%v = xegpu.load_matrix %d[0, 0] : !xegpu.mem_desc<16x64xf16> -> vector<8x16xf16>",
                  "%a: memref<2048xi8, 3>, %p: i1"), "its mem_desc is not made where it can be seen"),
    ("subgroup", ("%l = gpu.lane_id",), "lanes have no number of their own at subgroup level"),
    (None, (f"%s = llvm.mlir.undef : {DESC} %m = builtin.unrealized_conversion_cast %s : {DESC} to memref<?xf32>",),
     "the descriptor that it uses as a memref is incomplete"),
    ("workgroup", ("%r = xegpu.dpas %a, %b : vector<8xf16>, vector<16xf16> -> vector<8xf32>",
                   "%a: vector<8xf16>, %b: vector<16xf16>"), "it multiplies 8 and 16, which are not matrices"),
    ("workgroup", scaled("8x64", "64x16", "8x16", scale="f8E8M0FNU"), "its scale must be a matrix, but got f8E8M0FNU"),
    ("workgroup", ("", "%v: vector<8x16xi1>"),
     "its argument of type vector<8x16xi1> has elements that are not loaded from memory"),
    ("workgroup", ("", "%v: vector<8xindex>"),
     "its argument of type vector<8xindex> has elements that are not loaded from memory"),
    ("subgroup", loaded("8x16xf32", "8xf32"), "a block of 8x16 is loaded as 8"),
    ("subgroup", stored("8x16xf32", "8xf32"), "a subgroup has 128 elements of a block of 8x16, not vector<8xf32>"),
    ("lane", loaded("8x16xf32", "8x16xf32"), "a lane has 8 elements of a block of 8x16, not 8x16"),
    ("lane", stored("8x16xf32", "8x16xf32"), "a lane has 8 elements of a block of 8x16, not vector<8x16xf32>"),
    ("subgroup", ("%r = xegpu.dpas %a, %b : vector<8xf16>, vector<16xf16> -> vector<8xf32>",
                  "%a: vector<8xf16>, %b: vector<16xf16>"), "it multiplies 8 and 16"),
    ("subgroup", scaled("8x64", "64x16", "8x16", scale="f8E8M0FNU"), "its scale must be a matrix, but got f8E8M0FNU"),
    ("workgroup", (f"%d = xegpu.create_nd_tdesc %a, shape: [8, 32], strides: [64, 2] : i64 -> {T}<8x32xi4> "
                   f"%v = xegpu.load_nd %d[0, 0] : {T}<8x32xi4> -> vector<8x32xi4>", "%a: i64"),
     "the innermost stride of elements of i4 is not 1, so that they do not fill bytes"),
    ("workgroup", (f"%b = xegpu.create_nd_tdesc %a : memref<64x64xi4> -> {T}<8x32xi4> {either(f'{T}<8x32xi4>')} "
                   f"%v = xegpu.load_nd %d[0, 0] : {T}<8x32xi4> -> vector<8x32xi4>", "%a: memref<64x64xi4>, %p: i1"),
     "it passes on a descriptor of elements of i4"),
    ("workgroup", (f"%d = xegpu.create_nd_tdesc %a : memref<64x64xi4> -> {T}<8x32xi4> %v = xegpu.load_nd %d[0, 0] "
                   f"<{{transpose = array<i64: 1, 0>}}> : {T}<8x32xi4> -> vector<32x8xi4>", "%a: memref<64x64xi4>"),
     "it exchanges elements of i4 as it loads them"),
    ("workgroup", (f"%d = xegpu.create_nd_tdesc %a : memref<64x64xi4> -> {T}<8x32xi4> "
                   f"%v = xegpu.load_nd %d[0, 3] : {T}<8x32xi4> -> vector<8x32xi4>", "%a: memref<64x64xi4>"),
     "it is not known to begin at a byte"),
    ("workgroup", (f"%d = xegpu.create_nd_tdesc %a : memref<64x64xi4> -> {T}<8x32xi4> "
                   f"%v = xegpu.load_nd %d[0, %i] : {T}<8x32xi4> -> vector<8x32xi4>",
                   "%a: memref<64x64xi4>, %i: index"),
     "it is not known to begin at a byte"),
    ("workgroup", (f"%d = xegpu.create_nd_tdesc %a : memref<64x64xi4> -> {T}<8x31xi4> "
                   f"%v = xegpu.load_nd %d[0, 0] : {T}<8x31xi4> -> vector<8x31xi4>", "%a: memref<64x64xi4>"),
     f"the rows of a block of {T}<8x31xi4> end within a byte"),
]  # fmt: skip


@pytest.mark.parametrize("level, program, message", AT_A_LEVEL)
def test_kernels_at_a_level(level, program, message):
    with pytest.raises(DiagnosticError, match="cannot be imported: " + re.escape(message)):
        import_upstream(gpu(*program), level=level)


VC = "{mode = vc}"
EXPORTED = [
    ((f"%d = xegpu.create_nd_tdesc %a[0, 0] {VC} : memref<64x64xf16> -> {T}<8x16xf16, array_length = 2> "
      f"xegpu.store_nd %v, %d {VC} : vector<2x8x16xf16>, {T}<8x16xf16, array_length = 2>",
      "%a: memref<64x64xf16>, %v: vector<2x8x16xf16>"), "it stores an array of blocks"),
    (("xegpu.alloc_nbarrier %n : index", "%n: index"), "its number of barriers is not a constant"),
    ((f"%o = arith.constant dense<0> : vector<16xindex> %m = arith.constant dense<true> : vector<16xi1> %d = "
      "xegpu.create_tdesc %a, %o {chunk_size_per_lane = 2, mode = vc} : i64, vector<16xindex> -> "
      f"{T}<16x2xi32, #xegpu.scattered> "
      f"%r = xegpu.atomic_rmw addi, %v, %d, %m {VC} : vector<2x16xi32>, {T}<16x2xi32, #xegpu.scattered>, "
      "vector<16xi1> -> vector<2x16xi32>", "%a: i64, %v: vector<2x16xi32>"), "it works on 2 elements a lane"),
    ((f"%o = arith.constant dense<0> : vector<16xindex> %m = arith.constant dense<true> : vector<16xi1> "
      f"%d = xegpu.create_tdesc %a, %o {VC} : i64, vector<16xindex> -> {T}<16xi32, #xegpu.scattered> "
      f"%r = xegpu.atomic_rmw assign, %v, %d, %m expecting %v {VC} : vector<16xi32>, {T}<16xi32, #xegpu.scattered>, "
      "vector<16xi1> expecting vector<16xi32> -> vector<16xi32>", "%a: i64, %v: vector<16xi32>"),
     "upstream's atomic_rmw does not compare"),
]  # fmt: skip


@pytest.mark.parametrize("program, message", EXPORTED)
def test_kernels_that_upstream_does_not_have(program, message):
    with pytest.raises(DiagnosticError, match="cannot be exported: " + re.escape(message)):
        export_upstream(parse(gpu(*program)))
