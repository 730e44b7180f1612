"""Programs that upstream's verifier refuses: ours does too, and stock mlir-opt agrees where it is installed."""

import bisect
import re
import subprocess

import pytest

from xegpu_py import external_tools
from xegpu_py.ir.context import Context
from xegpu_py.ir.diagnostics import DiagnosticError, Source
from xegpu_py.upstream import import_upstream
from xegpu_py.upstream.importer import read_upstream

T = "!xegpu.tensor_desc"
SCATTER, BLOCK, LAYOUT = "#xegpu.scatter_tdesc_attr", "#xegpu.block_tdesc_attr", "#xegpu.layout"
WIDE, ODD = f"{T}<8x16xf32>", f"{LAYOUT}<inst_data = [3, 16]>"


def typed(text):
    """A function with an argument of a type."""
    return "", f"%a: {T}<{text}>"


def created(source, rest):
    return f"%d = xegpu.create_nd_tdesc %s : {source} -> {T}<{rest}>", f"%s: {source}"


def loaded(desc, value, properties=""):
    text = f" <{{{properties}}}>" if properties else ""
    return f"%v = xegpu.load_nd %d{text} : {T}<{desc}> -> vector<{value}>", f"%d: {T}<{desc}>"


def stored(desc, value, properties=""):
    text = f" <{{{properties}}}>" if properties else ""
    return f"xegpu.store_nd %v, %d{text} : vector<{value}>, {T}<{desc}>", f"%d: {T}<{desc}>, %v: vector<{value}>"


def gathered(source, value, properties=""):
    text = f" <{{{properties}}}>" if properties else ""
    kinds = f"{source}, vector<16xindex>, vector<16xi1>"
    names = f"%s: {source}, %o: vector<16xindex>, %m: vector<16xi1>"
    return f"%v = xegpu.load %s[%o], %m{text} : {kinds} -> vector<{value}>", names


def multiplied(a, b, d, acc=""):
    more = (f", vector<{acc}>", f", %c: vector<{acc}>") if acc else ("", "")
    text = f"%r = xegpu.dpas %a, %b{', %c' if acc else ''} : vector<{a}>, vector<{b}>{more[0]} -> vector<{d}>"
    return text, f"%a: vector<{a}>, %b: vector<{b}>{more[1]}"


def converted(source, target):
    properties = f"<{{input_layout = {source}, target_layout = {target}}}>"
    return f"%r = xegpu.convert_layout %a {properties} : vector<8x16xf16>", "%a: vector<8x16xf16>"


def matrix(source, desc):
    return f"%d = xegpu.create_mem_desc %s : {source} -> !xegpu.mem_desc<{desc}>", f"%s: {source}"


def of_matrix(value, offsets="0, 0", desc="16x64xf16", properties=""):
    desc, text = f"!xegpu.mem_desc<{desc}>", f" <{{{properties}}}>" if properties else ""
    return f"%v = xegpu.load_matrix %d[{offsets}]{text} : {desc} -> {value}", f"%d: {desc}"


def by_blocks(lanes, stride, block):
    """A matrix that a subgroup loads from in one message."""
    properties = f"subgroup_block_io, layout = {LAYOUT}<{lanes}>"
    desc = f"32x32xf32, #xegpu.mem_layout<stride = {stride}, block = {block}>"
    return of_matrix("vector<16x16xf32>", desc=desc, properties=properties)


def prefetched(source, properties=""):
    text = f" <{{{properties}}}>" if properties else ""
    return f"xegpu.prefetch %s[%o]{text} : {source}, vector<4xindex>", f"%s: {source}, %o: vector<4xindex>"


def scaled(layout, value):
    """A product whose operand, of its five, has a layout."""
    kinds = ["8x32xf8E5M2", "32x16xf8E5M2", "8x16xf32", "8x1xf8E8M0FNU", "1x16xf8E8M0FNU"]
    names = [f"%{name}: vector<{kind}>" for name, kind in zip("abcst", kinds)]
    types = ", ".join(f"vector<{kind}>" for kind in kinds)
    text = f"%a, %b, %c scale_a = %s scale_b = %t <{{{value} = {layout}}}>"
    return f"%r = xegpu.dpas_mx {text} : ({types}) -> vector<8x16xf32>", ", ".join(names)


LANES = f"{LAYOUT}<lane_layout = [1, 16], lane_data = [1, 1]>"
GROUPS = f"{LAYOUT}<sg_layout = [2, 2], sg_data = [4, 8]>"

INVALID = [
    (typed(f"8x16xf32, {LAYOUT}<sg_data = [8, 16]>"), "a layout needs sg_layout, inst_data or lane_layout"),
    (typed(f"8x16xf32, {LAYOUT}<inst_data = [8, 16], sg_data = [8, 16]>"), "sg_layout and sg_data need each other"),
    (typed(f"8x16xf32, {LAYOUT}<inst_data = [8, 16], lane_data = [1, 1]>"), "lane_data need each other"),
    (typed(f"8x16xf32, {LAYOUT}<inst_data = [8, 16], order = [0, 1]>"), "order needs sg_layout or lane_layout"),
    (typed(f"8x16xf32, {LAYOUT}<sg_layout = [2, 2], sg_data = [4, 8], order = [0]>"), "a layout have one rank"),
    (typed(f"8x16xf32, {LAYOUT}<sg_layout = [2, 2], sg_data = [4, 8], inst_data = [4, 8, 1]>"), "have one rank"),
    (typed(f"8x16xf32, {LAYOUT}<lane_layout = [2, 8], lane_data = [1]>"), "the parts of a layout have one rank"),
    (typed(f"8x16xf32, {LAYOUT}<sg_layout = [2], sg_data = [4]>"), "1 dimensions does not fit a descriptor of 8x16"),
    (typed(f"8x16xf32, {LAYOUT}<sg_layout = [3, 2], sg_data = [4, 8]>"), "cannot divide 8x16 equally"),
    (typed(f"8x16xf32, {LAYOUT}<sg_layout = [2, 2], sg_data = [3, 8]>"), "cannot divide 8x16 equally"),
    (typed(f"8x16xf32, {LAYOUT}<lane_layout = [1, 16], lane_data = [1, 2]>"), "cannot divide 8x16 equally"),
    (typed(f"8x16xf32, {LAYOUT}<inst_data = [16, 16]>"), "cannot divide 8x16 equally"),
    (typed(f"8x16xf32, {BLOCK}<memory_space = slm>"), "a block in shared local memory must have one dimension"),
    (typed("f32"), "a tensor descriptor needs positive dimensions"),
    (typed(f"16xf32, {SCATTER}<chunk_size = 2>"), "a descriptor of one dimension must have chunk_size 1"),
    (typed(f"16x5xf32, {SCATTER}<chunk_size = 4>"), "the last dimension must be the chunk_size 4, but is 5"),
    (typed(f"16x3xf16, {SCATTER}<chunk_size = 3>"), "chunks of f16 must be multiples of 2 elements, but have 3"),
    (
        typed(f"16x4xf16, {SCATTER}<chunk_size = 4>, {LAYOUT}<lane_layout = [16, 1], lane_data = [1, 1]>"),
        "lane_data must divide chunks into multiples of 2 elements",
    ),
    (created("memref<24x32xf32, 3>", "16xf32"), "the descriptor's memory is global"),
    (created("memref<24x32xf32>", f"16xf32, {BLOCK}<memory_space = slm>"), "the descriptor's memory is slm"),
    (created("memref<24xf32>", "8x16xf32"), "needs a source of as many dimensions"),
    (created("memref<24x32xf32>", "8x16xf16"), "differ from the memref's"),
    (created("memref<24x32xf32>", f"16xf32, {SCATTER}<>"), "makes descriptors of blocks"),
    (loaded("8x16xf32", "8x1xf32"), "the descriptor's block is 8x16, but the value is vector<8x1xf32>"),
    (loaded("8x16xf32", "3xf32"), "vector<3xf32> is no equal part of 8x16 elements"),
    (loaded("8x16xf32", "128xf32"), "the descriptor's block is 8x16"),
    (loaded("8x16xf32", "8x16xf32", "transpose = array<i64: 1, 0>"), "the descriptor's block is 16x8"),
    (loaded("16x16xf16", "16x16xf16", "packed"), "the descriptor's block is"),
    (loaded("16x16xf16", "8x16x2xf16"), "the descriptor's block is 16x16"),
    (loaded(f"8x16xf16, {BLOCK}<array_length = 2>", "8x16xf16"), "the descriptor's block is 2x8x16"),
    (loaded(f"8x16xf32, {LANES}", "8xf32"), "needs a descriptor without layout"),
    (loaded("8x16xf32", "8x16xf32", "l2_hint = #xegpu.cache_hint<write_back>"), "is not a valid hint for a read"),
    (loaded(f"16x2xf32, {SCATTER}<chunk_size = 2>", "16x2xf32"), "loads blocks"),
    (stored("8x16xf32", "3xf32"), "vector<3xf32> is no equal part of 8x16 elements"),
    (stored("8x16xf32", "16x8xf32"), "the descriptor's block is 8x16"),
    (stored("8x16xf32", "8x16xf32", "l1_hint = #xegpu.cache_hint<streaming>"), "is not a valid hint for a write"),
    (stored(f"8x16xf16, {BLOCK}<array_length = 2>", "2x8x16xf16"), "cannot store to a descriptor with an array_length"),
    ((f"%v = xegpu.load_nd %d[0] : {WIDE} -> vector<8x16xf32>", f"%d: {WIDE}"), "needs 2 offsets, but got 1"),
    ((f"xegpu.prefetch_nd %d[0] : {WIDE}", f"%d: {WIDE}"), "needs 2 offsets, but got 1"),
    ((f"%v = xegpu.load_nd %d[0, 0] : {T}<16xf32> -> vector<16xf32>", f"%d: {T}<16xf32>"), "needs 1 offsets"),
    ((f"xegpu.prefetch_nd %d <{{l1_hint = #xegpu.cache_hint<write_back>}}> : {WIDE}", f"%d: {WIDE}"), "for a read"),
    ((f"xegpu.prefetch_nd %d : {T}<8xf16, {SCATTER}<>>", f"%d: {T}<8xf16, {SCATTER}<>>"), "prefetches blocks"),
    (gathered("memref<?xf16>", "16xf32"), "needs a memref of elements as in vector<16xf32>"),
    (gathered("ui64", "8xf32"), "accesses 16, but has a value of vector<8xf32>"),
    (gathered("ui64", "16xf32", "l1_hint = #xegpu.cache_hint<write_through>"), "for a read"),
    (gathered("memref<4x4xf32>", "16xf32"), "needs a memref of one dimension"),
    (prefetched("memref<4x4xf32>"), "needs a memref of one dimension"),
    (prefetched("memref<16xf32>", "offset_align_byte = 4"), "offset_align_byte needs an address"),
    (prefetched("ui64"), "needs offset_align_byte"),
    (multiplied("8x8xf16", "8x16x2xf16", "8x16xf32"), "8x8 times 8x16x2 is not 8x16"),
    (multiplied("16x16xf16", "8x16x2xf16", "8x16xf32"), "16x16 times 8x16x2 is not 8x16"),
    (multiplied("8x16xf16", "16x16xf16", "8x16xf32", "8x16xf16"), "the accumulator vector<8x16xf16> differs"),
    (multiplied("8x16xf16", "16x16xbf16", "8x16xf32"), "which have different elements"),
    (multiplied("8xf16", "15xf16", "8xf32"), "must fill multiples of 32 bits"),
    (converted(LANES, GROUPS), "either both layouts divide among subgroups, or none"),
    (converted(f"{LAYOUT}<sg_layout = [4], sg_data = [4]>", GROUPS), "cannot divide 8x16 equally"),
    (converted(f"#xegpu.slice<{GROUPS}, dims = [0, 0]>", GROUPS), "the dimensions of a slice must differ"),
    (converted(f"#xegpu.slice<{GROUPS}, dims = [2]>", GROUPS), "a slice of 2 dimensions cannot drop [2]"),
    (matrix("memref<1024xi8, 3>", "16x64xf16"), "source and matrix must have one size"),
    (of_matrix("vector<32x16xf16>"), "exceeds the matrix of 16x64"),
    (of_matrix("vector<8x16xf32>"), "differ from the descriptor's"),
    (by_blocks("lane_layout = [1, 16], lane_data = [2, 1]", "[32, 1]", "[1, 16]"), "along the last dimension only"),
    (by_blocks("lane_layout = [1, 16], lane_data = [1, 1]", "[1, 32]", "[1, 16]"), "the dimension of stride 1"),
    (by_blocks("lane_layout = [1, 16], lane_data = [1, 1]", "[32, 1]", "[1, 17]"), "needs blocks of lane_layout 1x16"),
    (
        (
            f"%r = xegpu.atomic_rmw addf %d, %m, %v : {T}<16x8xf32, {SCATTER}<chunk_size = 8>>, vector<16xi1>, "
            "vector<16x4xf32> -> vector<16x8xf32>",
            f"%d: {T}<16x8xf32, {SCATTER}<chunk_size = 8>>, %m: vector<16xi1>, %v: vector<16x4xf32>",
        ),
        "must have one shape",
    ),
    (
        ("xegpu.store %v, %s[%o], %m : vector<1xf32>, ui64, vector<1xindex>, i1",
         "%v: vector<1xf32>, %s: ui64, %o: vector<1xindex>, %m: i1"),
        "has offsets for 1, but a mask of i1",
    ),
    (
        (f"%r = xegpu.update_nd_offset %d, [0, 2] : {T}<8x2xf32, {SCATTER}<chunk_size = 2>>",
         f"%d: {T}<8x2xf32, {SCATTER}<chunk_size = 2>>"),
        "moves blocks",
    ),
    (
        ("xegpu.store %v, %s[%o], %m : vector<4xf32>, ui64, vector<1xindex>, vector<1xi1>",
         "%v: vector<4xf32>, %s: ui64, %o: vector<1xindex>, %m: vector<1xi1>"),
        "accesses 1, but has a value of vector<4xf32>",
    ),
    (typed(f"4xf32, {SCATTER}<chunk_size = 0>"), "chunk_size must be positive"),
    (
        (f"%d = xegpu.create_tdesc %s, %o : memref<64xf32>, vector<4xindex> -> "
         f"{T}<4x2xf32, {SCATTER}<memory_space = slm, chunk_size = 2>>", "%s: memref<64xf32>, %o: vector<4xindex>"),
        "the descriptor's memory is slm",
    ),
]  # fmt: skip

# MLIR 22.1.8 ends the process on the first two, accepts the next four (the third and fourth LLVM's main refuses), and
# has no ops of scaled products.
OURS = [
    (matrix("memref<2048xi8>", "16x64xf16"), "the descriptor's memory is slm"),
    (created("memref<24xindex>", "24xindex"), "must be integers or floating-point numbers, but got index"),
    (of_matrix("vector<8x16xf16>", "0"), "a matrix of 16x64 needs 2 offsets, but got 1"),
    (gathered("ui64", "16x4xf32", "chunk_size = 2 : i64"), "accesses 16x2 with a chunk_size of 2, but has a value of"),
    (gathered("ui64", "16xf32", "contiguity = 1 : i64"), "contiguity must be at least 2 and divide"),
    (gathered("ui64", "16xf32", "contiguity = 3 : i64"), "contiguity must be at least 2 and divide"),
    (gathered("ui64", "16xf32", f"layout = {LAYOUT}<lane_layout = [16], lane_data = [3]>"), "cannot divide 16 equally"),
    (loaded("8x16xf32", "8x16xf32", f"layout = {LAYOUT}<inst_data = [3, 16]>"), "cannot divide 8x16 equally"),
    (stored("8x16xf32", "8x16xf32", f"layout = {LAYOUT}<inst_data = [16]>"), "cannot divide 8x16 equally"),
    ((f"xegpu.prefetch_nd %d <{{layout = {ODD}}}> : {WIDE}", f"%d: {WIDE}"), "cannot divide 8x16 equally"),
    (
        (
            f"xegpu.prefetch %s[%o] <{{layout = {LAYOUT}<inst_data = [3]>}}> : ui64, vector<16xindex>",
            "%s: ui64, %o: vector<16xindex>",
        ),
        "cannot divide 16 equally",
    ),
    (
        (
            f"%r = xegpu.dpas %a, %b {{layout_a = {ODD}}} : vector<8x16xf16>, vector<16x16xf16> -> vector<8x16xf32>",
            "%a: vector<8x16xf16>, %b: vector<16x16xf16>",
        ),
        "cannot divide 8x16 equally",
    ),
    (of_matrix("vector<8x16xf16>", properties=f"layout = {ODD}"), "cannot divide 8x16 equally"),
    (typed(f"8x16xf32, {LAYOUT}<sg_layout = [2, 2]>"), "sg_layout and sg_data need each other"),
    (typed(f"8x16xf32, {LAYOUT}<lane_layout = [1, 16]>"), "lane_layout and lane_data need each other"),
    (
        scaled(f"{LAYOUT}<sg_layout = [1, 1], sg_data = [8, 64]>", "layout_a"),
        "cannot divide 8x32 equally",
    ),
    (
        scaled(f"{LAYOUT}<sg_layout = [1, 1], sg_data = [3, 11]>", "layout_b_scale"),
        "cannot divide 1x16",
    ),
]

SCATTERED = f"16xf32, {SCATTER}<>"
MEMREF, ADDRESS = "%s: memref<8x16xf32>", "%s: i64"
OURS += [
    (created("memref<16xf32>", SCATTERED), "makes descriptors of blocks, not"),
    (created("i64", "8x16xf32"), "needs shape and strides, as the source is an address"),
    (created("memref<?x16xf32>", "8x16xf32"), "needs shape and strides, as those of memref<?x16xf32> are not known"),
    (created("memref<16xf32>", "8x16xf32"), "a descriptor of 8x16 needs a source of as many dimensions, but has 1"),
    (created("memref<8x16xf16>", "8x16xf32"), "the descriptor's elements, f32, differ from the memref's, f16"),
    ((f"%d = xegpu.create_nd_tdesc %s, shape : [8, 16], strides : [1] : i64 -> {WIDE}", ADDRESS), "as many strides as"),
    ((f"%d = xegpu.create_nd_tdesc %s[0] : memref<8x16xf32> -> {WIDE}", MEMREF), "needs 2 offsets, but got 1"),
    (loaded(SCATTERED, "16xf32"), "loads blocks, but"),
    (stored(SCATTERED, "16xf32"), "stores blocks, but"),
    ((f"xegpu.prefetch_nd %d : {T}<{SCATTERED}>", f"%d: {T}<{SCATTERED}>"), "prefetches blocks, but"),
    ((f"%e = xegpu.update_nd_offset %d, [1] : {T}<{SCATTERED}>", f"%d: {T}<{SCATTERED}>"), "moves blocks, but"),
    ((f"%e = xegpu.update_nd_offset %d, [1] : {WIDE}", f"%d: {WIDE}"), "2 dimensions moves by 2 offsets, not 1"),
    ((f"%v = xegpu.load_nd %d[1] : {WIDE} -> vector<8x16xf32>", f"%d: {WIDE}"), "needs 2 offsets, but got 1"),
    (
        (
            f"%d = xegpu.create_tdesc %s, %o : memref<64xf32>, vector<8xindex> -> {T}<{SCATTERED}>",
            "%s: memref<64xf32>, %o: vector<8xindex>",
        ),
        "needs one offset for each of 16 lanes, but got vector<8xindex>",
    ),
    *(
        (
            (
                f"%v = xegpu.load %d{at}, %m : {kind}{offsets}, vector<16xi1> -> vector<16xf32>",
                f"%d: {kind}, %m: vector<16xi1>, %o: vector<16xindex>",
            ),
            message,
        )
        for kind, at, offsets, message in (
            ("memref<64xf32>", "", "", "needs offsets, unless they are in a scattered descriptor"),
            (f"{T}<{SCATTERED}>", "[%o]", ", vector<16xindex>", "needs offsets, unless they are in a scattered desc"),
            (WIDE, "", "", f"needs a scattered descriptor, but got {WIDE}"),
        )
    ),
    *(
        (
            (
                f'%d = "xegpu.create_nd_tdesc"(%s) <{{{given} = array<i64: 64, 1>, '
                f"operandSegmentSizes = array<i32: 1, 0, 0, 0>}}> : (i64) -> {WIDE}",
                ADDRESS,
            ),
            "needs both shape and strides, or neither",
        )
        for given in ("const_shape", "const_strides")
    ),
    (
        (
            "%d = xegpu.dpas %a, %b : vector<8xf16>, vector<16x2xf16> -> vector<8xf32>",
            "%a: vector<8xf16>, %b: vector<16x2xf16>",
        ),
        "has 8 times 16x2 is 8: at lane level all of these have one dimension",
    ),
    (
        (
            "%d = xegpu.dpas %a, %b : vector<2x8x16xf16>, vector<16x16xf16> -> vector<2x8x16xf32>",
            "%a: vector<2x8x16xf16>, %b: vector<16x16xf16>",
        ),
        "cannot multiply 2x8x16 and 16x16 to 2x8x16",
    ),
    *(
        (
            (
                f"%d = xegpu.dpas_mx %a, %b scale_a = %p scale_b = %q : ({', '.join(kinds)}) -> vector<8x16xf32>",
                ", ".join(f"%{name}: {kind}" for name, kind in zip("abpq", kinds)),
            ),
            message,
        )
        for kinds, message in (
            (
                ("vector<8x64xf8E5M2>", "vector<64x16xf8E5M2>", "vector<8x2xf8E8M0FNU>", "vector<1x16xf8E8M0FNU>"),
                "scale_a has 2 blocks along K, but scale_b has 1",
            ),
            (
                ("vector<8x64xf8E5M2>", "vector<64x16xf8E5M2>", "vector<8x2xf8E8M0FNU>", "vector<2x16xi8>"),
                "scale_b must have elements f8E8M0FNU, but got vector<2x16xi8>",
            ),
        )
    ),
    (
        ("", "%a: i32) attributes {x = #xegpu.range<[1, 2, 3]>} kernel { gpu.return } gpu.func @g("),
        "a range has a start and an end",
    ),
    (typed("8x16xf32, 5 : i32"), "expected a layout or the attribute of a descriptor, but got '5 : i32'"),
    (typed(f"8x16xf32, {LAYOUT}<lane_layout = [1, 16], lane_data = [1, 1], order = [1, 2]>"), "order must be a permut"),
    (typed(f"16xf32, {BLOCK}<array_length = 2>"), "array_length is for 2D descriptors only"),
]


def program(case):
    body, arguments = case
    return f"gpu.module @m {{ gpu.func @f({arguments}) {{\n{body}\n gpu.return }} }}"


@pytest.mark.parametrize(("case", "message"), INVALID + OURS)
def test_what_upstream_refuses_is_refused(case, message):
    with pytest.raises(DiagnosticError) as e:
        import_upstream(program(case))
    (found,) = e.value.diagnostics[:1]
    assert message in found.message
    assert found.position.line == (2 if case[0] else 1)
    assert "upstream_" not in str(e.value)


def test_stock_mlir_opt_refuses_the_same():
    tool = external_tools.find("mlir-opt")
    if tool is None:
        pytest.skip("mlir-opt is not installed")
    texts = [program(case) for case, _ in INVALID]
    starts = [1 + 4 * i for i in range(len(texts))]
    command = [tool, "--split-input-file", "-"]
    joined = "\n// -----\n".join(texts)
    done = subprocess.run(command, input=joined, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1, done.stderr[-2000:]
    refused = {bisect.bisect(starts, int(line)) - 1 for line in re.findall(r":(\d+):\d+: error:", done.stderr)}
    assert [texts[i] for i in range(len(texts)) if i not in refused] == []


VALID = [
    loaded("8x16xf32", "8xf32"),
    loaded("16x16xf16", "8x16x2xf16", "packed"),
    loaded(f"32x16xf16, {BLOCK}<array_length = 2>", "64xf16", "packed"),
    loaded("16x8xf32", "8x16xf32", "transpose = array<i64: 1, 0>"),
    loaded(f"8x16xf16, {BLOCK}<array_length = 2>", "2x8x16xf16"),
    stored("8x16xf32", "8x16xf32", "l1_hint = #xegpu.cache_hint<cached>"),
    typed(f"32x64xf32, {LAYOUT}<sg_layout = [8, 1], sg_data = [8, 64]>"),
    created("memref<24x32xf32, 3>", f"16xf32, {BLOCK}<memory_space = slm>"),
    # LLVM's main branch, and not 22.1.8:
    loaded(f"16x16xf16, {BLOCK}<array_length = 2>", "16x16x2xf16", "packed"),
    typed(f"128x4xf16, {LAYOUT}<sg_layout = [8, 8], sg_data = [16, 4]>"),
    typed(f"16x1xf16, {LAYOUT}<lane_layout = [1, 16], lane_data = [1, 1]>"),
    of_matrix("vector<16xf16>", "0", "64xf16"),
    gathered("ui64", "16x2xf32"),
    gathered("ui64", "16xf32", "chunk_size = 4 : i64"),
    gathered("ui64", "16xf32", "contiguity = 4 : i64"),
    typed(f"4x8xf32, {LAYOUT}<lane_layout = [2, 8], lane_data = [4, 1]>"),
    prefetched("memref<64xf32>"),
    prefetched("ui64", "offset_align_byte = 4 : i64"),
]


@pytest.mark.parametrize("case", VALID)
def test_what_upstream_accepts_is_read(case):
    with Context(()) as context:
        read_upstream(Source(program(case), "<string>"), context).verify()
